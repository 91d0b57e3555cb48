//! The functions of arrays that are there: lengths, elements, joining and splitting text.

use std::sync::Arc;

use base::coro;
use base::error::{Error, Result, SqlState};
use base::memory::Reservation;

use super::arguments::Arguments;
use super::array_edits::{check_elements, check_wanted};
use super::comparison::check_equality;
use super::strings::find;
use super::{Call, Rows};
use types::growth::{self, Growing};
use types::{self, compare, Array, Datum, TypeId};

pub(crate) fn length(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let array = args.array(0)?;
    Ok(dimension(&array, args.int(1)?).map_or(Datum::Null, |d| Datum::Int4(d.len)))
}

fn dimension(array: &Array, number: i64) -> Option<types::Dimension> {
    let index = usize::try_from(number - 1).ok()?;
    array.dimensions.get(index).copied()
}

pub(crate) fn lower(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let array = args.array(0)?;
    Ok(dimension(&array, args.int(1)?).map_or(Datum::Null, |d| Datum::Int4(d.lower)))
}

pub(crate) fn upper(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let array = args.array(0)?;
    let found = dimension(&array, args.int(1)?);
    Ok(found.map_or(Datum::Null, |d| Datum::Int4(d.lower + d.len - 1)))
}

pub(crate) fn ndims(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(match args.array(0)?.dimensions.len() {
        0 => Datum::Null,
        count => Datum::Int4(count as i32),
    })
}

pub(crate) fn cardinality(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(args.array(0)?.elements.len() as i32))
}

/// The elements of an array argument; none for NULL.
fn elements(value: &Datum) -> Result<Vec<Datum>> {
    match value {
        Datum::Null => Ok(Vec::new()),
        Datum::Array(array) if array.dimensions.len() > 1 => Err(Error::new(
            SqlState::of("22000"),
            "argument must be empty or one-dimensional array",
        )),
        Datum::Array(array) => {
            coro::work(array.elements.len() * ELEMENT_WORK)?;
            Ok(array.elements.clone())
        }
        _ => Err(Error::internal("an array is wanted")),
    }
}

fn element_type(call: &Call<'_>) -> TypeId {
    call.result.array_element().unwrap_or(TypeId::TEXT)
}

/// What copying or comparing an element counts for, in the units of [`coro::work`].
const ELEMENT_WORK: usize = 8;

fn put(call: &Call<'_>, elements: Vec<Datum>) -> Result<Datum> {
    growth::check_elements(elements.len())?;
    Ok(Datum::Array(Arc::new(Array::of(
        element_type(call),
        elements,
    ))))
}

/// An array argument that is empty or has one dimension, and where its first element stands; NULL is
/// empty.
fn line(value: &Datum) -> Result<(Vec<Datum>, i32)> {
    let lower = match value {
        Datum::Array(array) => array.dimensions.first().map_or(1, |one| one.lower),
        _ => 1,
    };
    Ok((elements(value)?, lower))
}

/// A one-dimensional array whose first element stands there.
fn put_from(call: &Call<'_>, elements: Vec<Datum>, lower: i32) -> Result<Datum> {
    let len = i32::try_from(elements.len()).unwrap_or(i32::MAX);
    if lower.checked_add(len).is_none() {
        let message = "integer out of range";
        return Err(Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
    }
    put_as(call, elements, vec![types::Dimension { len, lower }])
}

fn put_as(
    call: &Call<'_>,
    elements: Vec<Datum>,
    dimensions: Vec<types::Dimension>,
) -> Result<Datum> {
    growth::check_elements(elements.len())?;
    Ok(Datum::Array(Arc::new(Array {
        element: element_type(call),
        dimensions,
        elements,
    })))
}

pub(crate) fn append(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (mut found, lower) = line(args.any(0)?)?;
    found.push(args.any(1)?.clone());
    put_from(call, found, lower)
}

pub(crate) fn prepend(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (mut found, lower) = line(args.any(1)?)?;
    found.insert(0, args.any(0)?.clone());
    put_from(call, found, lower)
}

/// Puts one array behind another of as many dimensions, or makes it one more element of one with one
/// dimension more. The bounds are those of the first, or of the one with more dimensions.
pub(crate) fn cat(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (a, b) = match (args.any(0)?, args.any(1)?) {
        (Datum::Null, other) | (other, Datum::Null) => return Ok(other.clone()),
        (Datum::Array(a), Datum::Array(b)) => (a, b),
        _ => return Err(Error::internal("an array is wanted")),
    };
    match (a.dimensions.as_slice(), b.dimensions.as_slice()) {
        ([], _) => return Ok(args.any(1)?.clone()),
        (_, []) => return Ok(args.any(0)?.clone()),
        _ => {}
    }
    growth::check_elements(a.elements.len() + b.elements.len())?;
    let dimensions = joined(&a.dimensions, &b.dimensions)?;
    coro::work((a.elements.len() + b.elements.len()) * ELEMENT_WORK)?;
    let elements = a.elements.iter().chain(&b.elements).cloned().collect();
    put_as(call, elements, dimensions)
}

fn joined(a: &[types::Dimension], b: &[types::Dimension]) -> Result<Vec<types::Dimension>> {
    let incompatible = |detail: String| {
        let message = "cannot concatenate incompatible arrays";
        let detail = format!("{detail} are not compatible for concatenation.");
        Err(Error::new(SqlState::of("2202E"), message).with_detail(detail))
    };
    let more = |wider: &[types::Dimension], by: i32| {
        let mut all = wider.to_vec();
        all[0].len += by;
        Ok(all)
    };
    let (wide, narrow) = if a.len() < b.len() { (b, a) } else { (a, b) };
    if a.len() == b.len() {
        return match a[1..] == b[1..] {
            true => more(a, b[0].len),
            false => incompatible("Arrays with differing element dimensions".to_owned()),
        };
    }
    if wide.len() > narrow.len() + 1 {
        return incompatible(format!("Arrays of {} and {} dimensions", a.len(), b.len()));
    }
    match wide[1..] == *narrow {
        true => more(wide, 1),
        false => incompatible("Arrays with differing dimensions".to_owned()),
    }
}

pub(crate) fn remove(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    if args.any(0)?.is_null() {
        return Ok(Datum::Null);
    }
    if let Datum::Array(array) = args.any(0)? {
        check_elements(array)?;
        if array.dimensions.len() > 1 {
            return Err(Error::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "removing elements from multidimensional arrays is not supported",
            ));
        }
    }
    let kind = element_type(call);
    let (mut found, lower) = line(args.any(0)?)?;
    let unwanted = args.any(1)?;
    found.retain(|element| !compare::equal(kind, element, unwanted));
    match found.is_empty() {
        true => put(call, found),
        false => put_from(call, found, lower),
    }
}

pub(crate) fn position(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let Datum::Array(array) = args.any(0)? else {
        return Ok(Datum::Null);
    };
    if array.dimensions.len() > 1 {
        let message = "searching for elements in multidimensional arrays is not supported";
        return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    let wanted = args.any(1)?;
    check_wanted(array, wanted)?;
    let found = array
        .elements
        .iter()
        .position(|element| compare::equal(array.element, element, wanted));
    let lower = array.dimensions.first().map_or(1, |d| d.lower);
    Ok(found.map_or(Datum::Null, |at| Datum::Int4(at as i32 + lower)))
}

/// Whether every element of the second is in the first.
fn includes(a: &Array, b: &Array) -> Result<bool> {
    check_equality(a.element)?;
    for wanted in &b.elements {
        if wanted.is_null() || !has(a, wanted)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a value is an element.
fn has(array: &Array, wanted: &Datum) -> Result<bool> {
    for some in array.elements.chunks(1_000) {
        coro::work(some.len() * ELEMENT_WORK)?;
        let mut some = some.iter();
        if some.any(|element| compare::equal(array.element, element, wanted)) {
            return Ok(true);
        }
    }
    Ok(false)
}

pub(crate) fn contains(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    includes(&*args.array(0)?, &*args.array(1)?).map(Datum::Bool)
}

pub(crate) fn contained(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    includes(&*args.array(1)?, &*args.array(0)?).map(Datum::Bool)
}

pub(crate) fn overlap(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (a, b) = (args.array(0)?, args.array(1)?);
    check_equality(a.element)?;
    for wanted in &a.elements {
        if !wanted.is_null() && has(&b, wanted)? {
            return Ok(Datum::Bool(true));
        }
    }
    Ok(Datum::Bool(false))
}

/// `array_to_string(array, separator [, word for NULL])`.
pub(crate) fn to_text(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (Datum::Array(array), Datum::Text(separator)) = (args.any(0)?, args.any(1)?) else {
        return Ok(Datum::Null);
    };
    let word = args.get(2).filter(|word| !word.is_null());
    let (mut out, mut any) = (Growing::default(), false);
    for element in &array.elements {
        coro::work(ELEMENT_WORK)?;
        let part = match (element.is_null(), word) {
            (false, _) => types::output(call.context, array.element, element)?,
            (true, Some(word)) => word.as_str().to_owned(),
            (true, None) => continue,
        };
        if std::mem::replace(&mut any, true) {
            out.push_str(separator)?;
        }
        out.push_str(&part)?;
    }
    Ok(out.into_datum())
}

/// What a part of a text that becomes an element counts for, beside its bytes.
const PART_WORK: usize = 64;

/// What it takes beside its place and its bytes.
const PART_BYTES: usize = 32;

/// The parts of a text; `None` for a NULL text.
pub(crate) fn split(args: &[Datum]) -> Result<Option<Vec<Datum>>> {
    let Datum::Text(text) = args.any(0)? else {
        return Ok(None);
    };
    let word = args.get(2).filter(|word| !word.is_null());
    let mut parts = Vec::new();
    let mut held = Reservation::of("An array");
    let mut add = |part: &str| {
        coro::work(PART_WORK)?;
        held.grow(2 * growth::ELEMENT_BYTES + PART_BYTES + part.len())?;
        growth::check_elements(parts.len() + 1)?;
        parts.push(match word {
            Some(word) if word.as_str() == part => Datum::Null,
            _ => Datum::text(part),
        });
        Ok::<_, Error>(())
    };
    match args.any(1)? {
        _ if text.is_empty() => {}
        Datum::Null => {
            let mut bytes = [0; 4];
            for c in text.chars() {
                add(c.encode_utf8(&mut bytes))?;
            }
        }
        Datum::Text(separator) if separator.is_empty() => add(text)?,
        separator => {
            let mut rest = &**text;
            while let Some(at) = find(rest, separator.as_str())? {
                add(&rest[..at])?;
                rest = &rest[at + separator.as_str().len()..];
            }
            add(rest)?;
        }
    }
    Ok(Some(parts))
}

/// `string_to_array`.
pub(crate) fn from_text(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(match split(args)? {
        None => Datum::Null,
        Some(parts) => Datum::Array(Arc::new(Array::of(TypeId::TEXT, parts))),
    })
}

/// `unnest(array)`.
pub(crate) fn unnest(_: &Call<'_>, args: &[Datum]) -> Result<Rows> {
    let array = args.array(0)?;
    let element = move |place: usize| Ok(array.elements[place].clone());
    let count = args.array(0)?.elements.len();
    Ok(Box::new((0..count).map(element)))
}

/// `generate_subscripts(array, dimension)`.
pub(crate) fn subscripts(_: &Call<'_>, args: &[Datum]) -> Result<Rows> {
    let array = args.array(0)?;
    let range = match dimension(&array, args.int(1)?) {
        Some(d) => d.lower..d.lower + d.len,
        None => 0..0,
    };
    Ok(Box::new(range.map(|index| Ok(Datum::Int4(index)))))
}
