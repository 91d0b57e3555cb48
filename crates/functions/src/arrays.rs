//! The functions of arrays that are there: lengths, elements, joining and splitting text.

use std::sync::Arc;

use base::coro;
use base::error::{Error, Result, SqlState};

use super::arguments::Arguments;
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
            SqlState::of("2202E"),
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

pub(crate) fn append(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let mut found = elements(args.any(0)?)?;
    found.push(args.any(1)?.clone());
    put(call, found)
}

pub(crate) fn prepend(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let mut found = elements(args.any(1)?)?;
    found.insert(0, args.any(0)?.clone());
    put(call, found)
}

pub(crate) fn cat(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    match (args.any(0)?, args.any(1)?) {
        (Datum::Null, other) | (other, Datum::Null) => Ok(other.clone()),
        (a, b) => {
            let mut found = elements(a)?;
            found.extend(elements(b)?);
            put(call, found)
        }
    }
}

pub(crate) fn remove(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    if args.any(0)?.is_null() {
        return Ok(Datum::Null);
    }
    let kind = element_type(call);
    let mut found = elements(args.any(0)?)?;
    let unwanted = args.any(1)?;
    found.retain(|element| !compare::equal(kind, element, unwanted));
    put(call, found)
}

pub(crate) fn position(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let Datum::Array(array) = args.any(0)? else {
        return Ok(Datum::Null);
    };
    let wanted = args.any(1)?;
    let found = array
        .elements
        .iter()
        .position(|element| compare::equal(array.element, element, wanted));
    let lower = array.dimensions.first().map_or(1, |d| d.lower);
    Ok(found.map_or(Datum::Null, |at| Datum::Int4(at as i32 + lower)))
}

/// Whether every element of the second is in the first.
fn includes(a: &Array, b: &Array) -> Result<bool> {
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

/// The parts of a text; `None` for a NULL text.
pub(crate) fn split(args: &[Datum]) -> Result<Option<Vec<Datum>>> {
    let Datum::Text(text) = args.any(0)? else {
        return Ok(None);
    };
    let word = args.get(2).filter(|word| !word.is_null());
    let mut parts = Vec::new();
    let mut add = |part: &str| {
        coro::work(PART_WORK)?;
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
