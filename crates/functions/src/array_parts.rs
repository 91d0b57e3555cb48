//! Parts of arrays: what `a[2:3]` reads, and what `SET a[2] = …` and `SET a[2:3] = …` make.
//!
//! ```text
//! ('{a,b,c}'::text[])[2:]        {b,c}, which begins at 1
//! a[5] = 'x' where a is {a,b}    {a,b,NULL,NULL,x}
//! ```
//! They are functions for the binder alone ([`SLICE`], [`ASSIGN`]): no name leads to them. Behind the
//! array (and the value), an integer says which bounds are left out, bit by bit, and whether it is a
//! slice ([`IS_SLICE`]); then come a lower and an upper bound for each dimension.
//!
//! Source: PostgreSQL 15 manual, section 8.15.4.

use std::sync::Arc;

use base::coro;
use base::error::{Error, Result, SqlState};

use super::{Body, Call, Function, Native, Volatility};
use types::{growth, Array, Datum, Dimension, TypeId};

/// What copying an element counts for, in the units of [`coro::work`].
const ELEMENT_WORK: usize = 8;
/// Elements that an array has at most.
const ELEMENTS_MAX: i64 = 134_217_727;
/// Dimensions that an array has at most.
pub const DIMENSIONS_MAX: usize = 6;
/// Set where a slice is assigned to, rather than an element.
pub const IS_SLICE: i32 = 1 << 30;

const fn internal(oid: u32, name: &'static str, strict: bool, body: Native) -> Function {
    Function {
        oid,
        name,
        arguments: &[TypeId::ANYARRAY, TypeId::ANY],
        variadic: true,
        defaults: 0,
        result: TypeId::ANYARRAY,
        volatility: Volatility::Immutable,
        strict,
        body: Body::Native(body),
    }
}

/// `array[lower:upper]…`; NULL where a bound is.
pub static SLICE: Function = internal(u32::MAX - 1, "array_slice", true, slice);
/// The array with an element or a slice replaced.
pub static ASSIGN: Function = internal(u32::MAX - 2, "array_assign", false, assign);

fn subscript_error(message: &str) -> Error {
    Error::new(SqlState::of("2202E"), message)
}

fn too_large() -> Error {
    Error::new(
        SqlState::PROGRAM_LIMIT_EXCEEDED,
        format!("array size exceeds the maximum allowed ({ELEMENTS_MAX})"),
    )
}

/// A lower and an upper bound, where they are given.
type Bounds = (Option<i64>, Option<i64>);

/// The bounds of each dimension; 22004 for NULL, which only an assignment sees.
fn bounds_of(mask: &Datum, args: &[Datum]) -> Result<(i32, Vec<Bounds>)> {
    let mask = mask.as_i64().and_then(|mask| i32::try_from(mask).ok());
    let mask = mask.ok_or_else(|| Error::internal("bounds without a mask"))?;
    let bound = |at: usize| match (mask >> at & 1, args[at].as_i64()) {
        (1, _) => Ok(None),
        (_, Some(bound)) => Ok(Some(bound)),
        _ => Err(Error::new(
            SqlState::of("22004"),
            "array subscript in assignment must not be null",
        )),
    };
    let pairs = (0..args.len() / 2).map(|pair| Ok((bound(2 * pair)?, bound(2 * pair + 1)?)));
    Ok((mask, pairs.collect::<Result<_>>()?))
}

fn upper_of(dimension: &Dimension) -> i64 {
    i64::from(dimension.lower) + i64::from(dimension.len) - 1
}

fn dimension(lower: i64, upper: i64) -> Result<Dimension> {
    let len = upper - lower + 1;
    if len > ELEMENTS_MAX {
        return Err(too_large());
    }
    if lower + len > i64::from(i32::MAX) {
        return Err(Error::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!("array lower bound is too large: {lower}"),
        ));
    }
    let fits = |number: i64| i32::try_from(number).map_err(|_| too_large());
    Ok(Dimension {
        len: fits(len)?,
        lower: fits(lower)?,
    })
}

/// The places of the elements between bounds, in row-major order.
fn places(dimensions: &[Dimension], bounds: &[(i64, i64)]) -> Vec<usize> {
    let mut places = vec![0usize];
    for (dimension, (lower, upper)) in dimensions.iter().zip(bounds) {
        let first = usize::try_from(lower - i64::from(dimension.lower)).unwrap_or(0);
        let count = usize::try_from(upper - lower + 1).unwrap_or(0);
        let len = usize::try_from(dimension.len).unwrap_or(0);
        let inside = places.iter();
        places = inside
            .flat_map(|place| (first..first + count).map(move |at| place * len + at))
            .collect();
    }
    places
}

fn slice(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let [Datum::Array(array), mask, given @ ..] = args else {
        return Err(Error::internal("a slice of no array"));
    };
    let (_, given) = bounds_of(mask, given)?;
    let empty = || Datum::Array(Arc::new(Array::of(array.element, Vec::new())));
    let dimensions = &array.dimensions;
    if dimensions.is_empty() || dimensions.len() < given.len() {
        return Ok(empty());
    }
    let mut bounds = Vec::with_capacity(dimensions.len());
    for (at, dimension) in dimensions.iter().enumerate() {
        let (lower, upper) = given.get(at).copied().unwrap_or((None, None));
        let (first, last) = (i64::from(dimension.lower), upper_of(dimension));
        let lower = lower.map_or(first, |lower| lower.max(first));
        let upper = upper.map_or(last, |upper| upper.min(last));
        if lower > upper {
            return Ok(empty());
        }
        bounds.push((lower, upper));
    }
    let places = places(dimensions, &bounds);
    coro::work(places.len() * ELEMENT_WORK)?;
    let elements = places.into_iter();
    let elements = elements.filter_map(|place| array.elements.get(place).cloned());
    let kept = bounds
        .iter()
        .map(|(lower, upper)| dimension(1, upper - lower + 1));
    Ok(Datum::Array(Arc::new(Array {
        element: array.element,
        dimensions: kept.collect::<Result<_>>()?,
        elements: elements.collect(),
    })))
}

fn assign(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let [array, value, mask, given @ ..] = args else {
        return Err(Error::internal("an assignment of nothing"));
    };
    let element = call.result.array_element();
    let element = element.ok_or_else(|| Error::internal("an assignment to no array"))?;
    let (mask, given) = bounds_of(mask, given)?;
    let is_slice = mask & IS_SLICE != 0;
    // A slice of NULL changes nothing.
    if is_slice && value.is_null() {
        return Ok(array.clone());
    }
    let mut array = match array {
        Datum::Array(array) => (**array).clone(),
        _ => Array::of(element, Vec::new()),
    };
    coro::work(array.elements.len() * ELEMENT_WORK)?;
    match value {
        Datum::Array(source) if is_slice => set_slice(&mut array, &given, source)?,
        value => {
            let place = given.iter().map(|bounds| bounds.1.unwrap_or(0));
            set_element(&mut array, &place.collect::<Vec<_>>(), value.clone())?;
        }
    }
    Ok(Datum::Array(Arc::new(array)))
}

/// Makes a one-dimensional array reach from one place to another at least.
fn extend(array: &mut Array, lower: i64, upper: i64) -> Result<()> {
    let first = i64::from(array.dimensions[0].lower);
    let last = upper_of(&array.dimensions[0]);
    let extended = dimension(first.min(lower), last.max(upper))?;
    let count = usize::try_from(extended.len).unwrap_or(0);
    if count > array.elements.len() {
        growth::check_elements(count)?;
        growth::check_memory(count * growth::ELEMENT_BYTES)?;
        coro::work((count - array.elements.len()) * ELEMENT_WORK)?;
    }
    let nulls = |count: i64| vec![Datum::Null; usize::try_from(count).unwrap_or(0)];
    array.elements.splice(0..0, nulls(first - lower));
    array.elements.extend(nulls(upper - last));
    array.dimensions[0] = extended;
    Ok(())
}

fn set_element(array: &mut Array, at: &[i64], value: Datum) -> Result<()> {
    if array.dimensions.is_empty() {
        let dimensions = at.iter().map(|place| dimension(*place, *place));
        array.dimensions = dimensions.collect::<Result<_>>()?;
        array.elements = vec![value];
        return Ok(());
    }
    if array.dimensions.len() != at.len() {
        return Err(subscript_error("wrong number of array subscripts"));
    }
    if let [only] = at {
        extend(array, *only, *only)?;
    }
    let is_inside = |(dimension, place): (&Dimension, &i64)| {
        (i64::from(dimension.lower)..=upper_of(dimension)).contains(place)
    };
    if !array.dimensions.iter().zip(at).all(is_inside) {
        return Err(subscript_error("array subscript out of range"));
    }
    let bounds: Vec<_> = at.iter().map(|place| (*place, *place)).collect();
    for place in places(&array.dimensions, &bounds) {
        array.elements[place] = value.clone();
    }
    Ok(())
}

fn set_slice(array: &mut Array, given: &[Bounds], source: &Array) -> Result<()> {
    let reversed = || subscript_error("upper bound cannot be less than lower bound");
    let small = || subscript_error("source array too small");
    if array.dimensions.is_empty() {
        let mut total = 1i64;
        for bounds in given {
            let (Some(lower), Some(upper)) = *bounds else {
                return Err(subscript_error(
                    "array slice subscript must provide both boundaries",
                )
                .with_detail(
                    "When assigning to a slice of an empty array value, slice boundaries must be \
                     fully specified.",
                ));
            };
            if lower > upper {
                return Err(reversed());
            }
            array.dimensions.push(dimension(lower, upper)?);
            total = total.saturating_mul(upper - lower + 1);
        }
        let wanted = usize::try_from(total).unwrap_or(usize::MAX);
        let elements = source.elements.get(..wanted).ok_or_else(small)?;
        array.elements = elements.to_vec();
        return Ok(());
    }
    if array.dimensions.len() < given.len() {
        return Err(subscript_error("wrong number of array subscripts"));
    }
    let mut bounds = Vec::with_capacity(array.dimensions.len());
    for (at, dimension) in array.dimensions.iter().enumerate() {
        let (lower, upper) = given.get(at).copied().unwrap_or((None, None));
        let lower = lower.unwrap_or(i64::from(dimension.lower));
        let upper = upper.unwrap_or(upper_of(dimension));
        if lower > upper {
            return Err(reversed());
        }
        bounds.push((lower, upper));
    }
    if let [(lower, upper)] = bounds[..] {
        extend(array, lower, upper)?;
    }
    let is_inside = |(dimension, (lower, upper)): (&Dimension, &(i64, i64))| {
        i64::from(dimension.lower) <= *lower && *upper <= upper_of(dimension)
    };
    if !array.dimensions.iter().zip(&bounds).all(is_inside) {
        return Err(subscript_error("array subscript out of range"));
    }
    let places = places(&array.dimensions, &bounds);
    let elements = source.elements.get(..places.len()).ok_or_else(small)?;
    for (place, element) in places.into_iter().zip(elements) {
        array.elements[place] = element.clone();
    }
    Ok(())
}
