//! Functions about the shape of arrays: their bounds, arrays of arrays, places and buckets.

use std::cmp::Ordering;
use std::fmt::Write;
use std::sync::Arc;

use base::coro;
use base::error::{Error, Result, SqlState};

use super::arguments::Arguments;
use super::array_edits::check_wanted;
use super::comparison::check_sortable;
use super::sets::Records;
use super::{Call, Rows};
use types::{compare, growth, Array, Datum, Dimension, Record, TypeId};

/// What copying or comparing an element counts for, in the units of [`coro::work`].
const ELEMENT_WORK: usize = 8;

/// An array has at most so many dimensions.
const DIMENSIONS_MAX: usize = 6;

/// `array_dims`: `[1:2][0:3]`.
pub(crate) fn dims(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let array = args.array(0)?;
    let mut shown = String::new();
    for one in &array.dimensions {
        // Writing to a string cannot fail.
        let _ = write!(shown, "[{}:{}]", one.lower, one.lower + one.len - 1);
    }
    Ok(match shown.is_empty() {
        true => Datum::Null,
        false => Datum::text(&shown),
    })
}

/// `generate_subscripts` with a flag to go backwards.
pub(crate) fn subscripts(_: &Call<'_>, args: &[Datum]) -> Result<Rows> {
    let array = args.array(0)?;
    let number = usize::try_from(args.int(1)? - 1).unwrap_or(usize::MAX);
    let range = match array.dimensions.get(number) {
        Some(one) => one.lower..one.lower + one.len,
        None => 0..0,
    };
    Ok(match args.any(2)?.is_true() {
        true => Box::new(range.rev().map(|index| Ok(Datum::Int4(index)))),
        false => Box::new(range.map(|index| Ok(Datum::Int4(index)))),
    })
}

/// `information_schema._pg_expandarray`: the elements with their places from 1 on.
pub(crate) static EXPANDED: Records = Records {
    columns: &[("x", TypeId::ANYELEMENT), ("n", TypeId::INT4)],
    rows: expanded,
};

fn expanded(_: &Call<'_>, args: &[Datum]) -> Result<Rows> {
    let array = args.array(0)?;
    let elements = match array.dimensions.as_slice() {
        [_] => array.elements.clone(),
        _ => Vec::new(),
    };
    let element = array.element;
    let row = move |(place, value): (usize, Datum)| {
        let number = i32::try_from(place + 1).unwrap_or(i32::MAX);
        Ok(Datum::Record(Arc::new(Record {
            types: vec![element, TypeId::INT4],
            values: vec![value, Datum::Int4(number)],
            names: None,
        })))
    };
    Ok(Box::new(elements.into_iter().enumerate().map(row)))
}

/// `array_position` from a subscript on.
pub(crate) fn position_from(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let Datum::Array(array) = args.any(0)? else {
        return Ok(Datum::Null);
    };
    if array.dimensions.len() > 1 {
        let message = "searching for elements in multidimensional arrays is not supported";
        return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    let wanted = args.any(1)?;
    check_wanted(array, wanted)?;
    if args.any(2)?.is_null() {
        return Err(Error::new(
            SqlState::of("22004"),
            "initial position must not be null",
        ));
    }
    let lower = array.dimensions.first().map_or(1, |one| one.lower);
    let skipped = args.int(2)? - i64::from(lower);
    let skipped = usize::try_from(skipped.max(0)).unwrap_or(usize::MAX);
    let mut at = skipped;
    let rest = array.elements.get(skipped..).unwrap_or_default();
    for some in rest.chunks(1_000) {
        coro::work(some.len() * ELEMENT_WORK)?;
        let equal = |element: &Datum| compare::equal(array.element, element, wanted);
        if let Some(found) = some.iter().position(equal) {
            return Ok(Datum::Int4((at + found) as i32 + lower));
        }
        at += some.len();
    }
    Ok(Datum::Null)
}

/// `width_bucket` with the lower bounds of the buckets, in order: how many of them are not above the
/// value.
pub(crate) fn bucket(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (value, bounds) = (args.any(0)?, args.array(1)?);
    if bounds.dimensions.len() > 1 {
        return Err(Error::new(
            SqlState::ARRAY_SUBSCRIPT_ERROR,
            "thresholds must be one-dimensional array",
        ));
    }
    coro::work(bounds.elements.len())?;
    if bounds.elements.iter().any(Datum::is_null) {
        return Err(Error::new(
            SqlState::of("22004"),
            "thresholds array must not contain NULLs",
        ));
    }
    let kind = bounds.element;
    check_sortable(kind)?;
    let is_below = |bound: &Datum| compare::compare(kind, bound, value) != Ordering::Greater;
    Ok(Datum::Int4(bounds.elements.partition_point(is_below) as i32))
}

/// Whether an array can be stacked on others, of which this is the first.
///
/// # Errors
/// 22004 for NULL, 2202E for an empty one, or one of another shape.
pub fn check_stackable(first: Option<&Datum>, value: &Datum) -> Result<()> {
    let refused = |message: &str| Err(Error::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message));
    let Datum::Array(array) = value else {
        return Err(Error::new(
            SqlState::of("22004"),
            "cannot accumulate null arrays",
        ));
    };
    if let Some(Datum::Array(first)) = first {
        return match first.dimensions == array.dimensions {
            true => Ok(()),
            false => refused("cannot accumulate arrays of different dimensionality"),
        };
    }
    match array.dimensions.len() {
        0 => refused("cannot accumulate empty arrays"),
        DIMENSIONS_MAX => Err(Error::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!(
                "number of array dimensions ({}) exceeds the maximum allowed ({DIMENSIONS_MAX})",
                DIMENSIONS_MAX + 1
            ),
        )),
        _ => Ok(()),
    }
}

/// Arrays of one shape as one array with one dimension more; NULL for none.
///
/// # Errors
/// 54000 for more elements than an array has; the pending interrupt.
pub fn stacked(values: &[Datum]) -> Result<Datum> {
    let Some(Datum::Array(first)) = values.first() else {
        return Ok(Datum::Null);
    };
    growth::check_elements(first.elements.len().saturating_mul(values.len()))?;
    let len = i32::try_from(values.len()).unwrap_or(i32::MAX);
    let mut dimensions = vec![Dimension { len, lower: 1 }];
    dimensions.extend_from_slice(&first.dimensions);
    let mut elements = Vec::with_capacity(first.elements.len() * values.len());
    for value in values {
        if let Datum::Array(array) = value {
            coro::work(array.elements.len() * ELEMENT_WORK)?;
            elements.extend_from_slice(&array.elements);
        }
    }
    Ok(Datum::Array(Arc::new(Array {
        element: first.element,
        dimensions,
        elements,
    })))
}
