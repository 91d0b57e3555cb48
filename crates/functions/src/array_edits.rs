//! Functions that make an array of another, or of nothing: `array_replace`, `array_positions`,
//! `trim_array`, `array_fill`.
//!
//! Source: PostgreSQL 15 manual, section 9.19.

use std::sync::Arc;

use base::coro;
use base::error::{Error, Result, SqlState};

use super::arguments::Arguments;
use super::comparison::check_equality;
use super::Call;
use types::growth;
use types::{compare, Array, Datum, Dimension, TypeId};

/// What comparing or copying an element counts for, in the units of [`coro::work`].
const ELEMENT_WORK: usize = 8;
/// PostgreSQL's arrays have no more elements.
const ELEMENTS_MAX: usize = 134_217_727;
/// An array has no more dimensions.
const DIMENSIONS_MAX: usize = 6;

fn element_error(message: impl Into<String>) -> Error {
    Error::new(SqlState::of("2202E"), message.into())
}

/// 42883 for elements that cannot be compared, where there are any.
pub(crate) fn check_elements(array: &Array) -> Result<()> {
    match array.elements.is_empty() {
        true => Ok(()),
        false => check_equality(array.element),
    }
}

/// The same where one is looked for: NULL is not among those that are all there.
pub(crate) fn check_wanted(array: &Array, wanted: &Datum) -> Result<()> {
    match wanted.is_null() && !array.elements.iter().any(Datum::is_null) {
        true => Ok(()),
        false => check_elements(array),
    }
}

/// `array_replace(array, from, to)`; NULL is found and put as any value.
pub(crate) fn replace(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let Datum::Array(array) = args.any(0)? else {
        return Ok(Datum::Null);
    };
    check_elements(array)?;
    let (from, to) = (args.any(1)?, args.any(2)?);
    coro::work(array.elements.len() * ELEMENT_WORK)?;
    let mut new = (**array).clone();
    for element in &mut new.elements {
        if compare::equal(array.element, element, from) {
            *element = to.clone();
        }
    }
    Ok(Datum::Array(Arc::new(new)))
}

/// `array_positions(array, element)`.
pub(crate) fn positions(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let Datum::Array(array) = args.any(0)? else {
        return Ok(Datum::Null);
    };
    let lower = match array.dimensions.as_slice() {
        [] => 1,
        [only] => only.lower,
        _ => {
            let message = "searching for elements in multidimensional arrays is not supported";
            return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
    };
    let wanted = args.any(1)?;
    check_wanted(array, wanted)?;
    coro::work(array.elements.len() * ELEMENT_WORK)?;
    let found = (lower..).zip(&array.elements);
    let found = found.filter(|(_, element)| compare::equal(array.element, element, wanted));
    let places = found.map(|(place, _)| Datum::Int4(place)).collect();
    Ok(Datum::Array(Arc::new(Array::of(TypeId::INT4, places))))
}

/// `trim_array(array, n)`: without the last `n` of its first dimension.
pub(crate) fn trim(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (array, count) = (args.array(0)?, args.int4(1)?);
    let length = array.dimensions.first().map_or(0, |first| first.len);
    if !(0..=length).contains(&count) {
        return Err(element_error(format!(
            "number of elements to trim must be between 0 and {length}"
        )));
    }
    let kept = length - count;
    if kept == 0 {
        return Ok(Datum::Array(Arc::new(Array::of(array.element, Vec::new()))));
    }
    let each = array.elements.len() / length as usize;
    let mut dimensions = array.dimensions.clone();
    dimensions[0].len = kept;
    dimensions
        .iter_mut()
        .for_each(|dimension| dimension.lower = 1);
    let elements = array.elements[..each * kept as usize].to_vec();
    coro::work(elements.len() * ELEMENT_WORK)?;
    Ok(Datum::Array(Arc::new(Array {
        element: array.element,
        dimensions,
        elements,
    })))
}

/// The numbers of an argument of `array_fill`.
fn numbers(value: &Datum) -> Result<Vec<i32>> {
    let null = |message: &str| Error::new(SqlState::of("22004"), message);
    let Datum::Array(array) = value else {
        return Err(null("dimension array or low bound array cannot be null"));
    };
    if array.dimensions.len() > 1 {
        return Err(element_error("wrong number of array subscripts")
            .with_detail("Dimension array must be one dimensional."));
    }
    let number = |element: &Datum| match element {
        Datum::Int4(number) => Ok(*number),
        _ => Err(null("dimension values cannot be null")),
    };
    array.elements.iter().map(number).collect()
}

/// `array_fill(value, lengths [, lower bounds])`.
pub(crate) fn fill(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let element = call.result.array_element().unwrap_or(TypeId::TEXT);
    let lengths = numbers(args.any(1)?)?;
    let lowers = match args.get(2) {
        Some(lowers) => numbers(lowers)?,
        None => vec![1; lengths.len()],
    };
    if lengths.len() > DIMENSIONS_MAX {
        return Err(Error::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!(
                "number of array dimensions ({}) exceeds the maximum allowed ({DIMENSIONS_MAX})",
                lengths.len()
            ),
        ));
    }
    if lowers.len() != lengths.len() {
        return Err(element_error("wrong number of array subscripts")
            .with_detail("Low bound array has different size than dimensions array."));
    }
    // A negative length counts as too many, whatever the others are.
    if lengths.iter().any(|length| *length < 0) {
        return Err(Error::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!("array size exceeds the maximum allowed ({ELEMENTS_MAX})"),
        ));
    }
    let mut count = usize::from(!lengths.is_empty());
    for length in &lengths {
        count = count.saturating_mul(*length as usize);
    }
    growth::check_elements(count)?;
    growth::check_memory(count * growth::ELEMENT_BYTES)?;
    let too_large = |(length, lower): (&i32, &i32)| length.checked_add(*lower).is_none();
    if let Some(place) = lengths.iter().zip(&lowers).position(too_large) {
        return Err(Error::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!("array lower bound is too large: {}", lowers[place]),
        ));
    }
    coro::work(count * ELEMENT_WORK)?;
    if count == 0 {
        return Ok(Datum::Array(Arc::new(Array::of(element, Vec::new()))));
    }
    let dimensions = lengths.into_iter().zip(lowers);
    let dimensions = dimensions.map(|(len, lower)| Dimension { len, lower });
    Ok(Datum::Array(Arc::new(Array {
        element,
        dimensions: dimensions.collect(),
        elements: vec![args.any(0)?.clone(); count],
    })))
}
