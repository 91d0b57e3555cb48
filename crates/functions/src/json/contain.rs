//! What a `jsonb` contains.

use base::coro;
use base::error::Result;
use base::jsonb::{Array, Object, Value, View};

use super::jsonb;
use crate::arguments::Arguments;
use crate::Call;
use types::{json, Datum};

/// What comparing two parts counts for, in the units of [`coro::work`].
const PART_WORK: usize = 16;

/// Whether one value contains another: objects by key, arrays as sets, and an array at the top a
/// scalar that is one of its elements.
fn contains(all: Value<'_>, part: Value<'_>) -> Result<bool> {
    match (all.view(), part.view()) {
        (View::Object(all), View::Object(part)) => object_contains(all, part),
        (View::Array(all), View::Array(part)) => array_contains(all, part),
        (View::Object(_), _) | (_, View::Object(_)) => Ok(false),
        (View::Array(all), _) => has_scalar(all, part),
        // A scalar is an array of itself, but contains no other array.
        (_, View::Array(_)) => Ok(false),
        _ => Ok(json::equal_scalars(all, part)),
    }
}

fn has_scalar(all: Array<'_>, part: Value<'_>) -> Result<bool> {
    for element in all.iter() {
        coro::work(PART_WORK)?;
        if !element.is_container() && json::equal_scalars(element, part) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a part of a container contains a part of the other: of the same kind, at any depth.
fn part_contains(all: Value<'_>, part: Value<'_>) -> Result<bool> {
    match (all.view(), part.view()) {
        (View::Object(all), View::Object(part)) => object_contains(all, part),
        (View::Array(all), View::Array(part)) => array_contains(all, part),
        _ if all.is_container() || part.is_container() => Ok(false),
        _ => Ok(json::equal_scalars(all, part)),
    }
}

fn object_contains(all: Object<'_>, part: Object<'_>) -> Result<bool> {
    coro::check_depth()?;
    if all.len() < part.len() {
        return Ok(false);
    }
    for (key, value) in part.iter() {
        coro::work(PART_WORK + key.len())?;
        match all.get(key) {
            Some(found) if part_contains(found, value)? => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

fn array_contains(all: Array<'_>, part: Array<'_>) -> Result<bool> {
    coro::check_depth()?;
    for wanted in part.iter() {
        let found = match wanted.is_container() {
            false => has_scalar(all, wanted)?,
            true => {
                let mut found = false;
                for element in all.iter() {
                    coro::work(PART_WORK)?;
                    if element.is_container() && part_contains(element, wanted)? {
                        found = true;
                        break;
                    }
                }
                found
            }
        };
        if !found {
            return Ok(false);
        }
    }
    Ok(true)
}

pub(crate) fn jsonb_contains(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    contains(jsonb(args, 0)?, jsonb(args, 1)?).map(Datum::Bool)
}

pub(crate) fn jsonb_contained(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    contains(jsonb(args, 1)?, jsonb(args, 0)?).map(Datum::Bool)
}

/// Whether a text is a key of an object, an element of an array, or the string itself.
fn exists(value: Value<'_>, text: &str) -> Result<bool> {
    let is_it = |value: Value<'_>| value.view() == View::String(text);
    match value.view() {
        View::Object(object) => Ok(object.position(text).is_some()),
        View::Array(array) => {
            for element in array.iter() {
                coro::work(PART_WORK)?;
                if is_it(element) {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        _ => Ok(is_it(value)),
    }
}

pub(crate) fn jsonb_exists(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    exists(jsonb(args, 0)?, args.text(1)?).map(Datum::Bool)
}

/// NULLs among the texts are passed over.
fn first_with(args: &[Datum], wanted: bool) -> Result<bool> {
    let (value, texts) = (jsonb(args, 0)?, args.array(1)?);
    for text in texts.elements.iter().filter(|text| !text.is_null()) {
        if exists(value, text.as_str())? == wanted {
            return Ok(true);
        }
    }
    Ok(false)
}

pub(crate) fn jsonb_exists_any(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    first_with(args, true).map(Datum::Bool)
}

pub(crate) fn jsonb_exists_all(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    first_with(args, false).map(|missing| Datum::Bool(!missing))
}
