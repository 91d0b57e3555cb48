//! Parts of `jsonb`.

use std::sync::Arc;

use base::error::{Error, Result, SqlState};
use base::jsonb::{Value, View};

use super::{index_of, invalid, jsonb, path_of, place_of};
use crate::arguments::Arguments;
use crate::sets::Records;
use crate::{Call, Rows};
use types::json::{self, Builder};
use types::{Datum, TypeId};

fn give(found: Option<Value<'_>>, as_text: bool) -> Result<Datum> {
    match (found, as_text) {
        (None, _) => Ok(Datum::Null),
        (Some(value), true) => json::as_text(value),
        (Some(value), false) => Ok(json::datum(value)),
    }
}

fn field<'a>(value: Value<'a>, key: &str) -> Option<Value<'a>> {
    match value.view() {
        View::Object(object) => object.get(key),
        _ => None,
    }
}

/// An element. A scalar is taken for an array of itself, as PostgreSQL keeps it.
fn element(value: Value<'_>, index: i32) -> Option<Value<'_>> {
    match value.view() {
        View::Array(array) => array.get(place_of(index, array.len())?),
        View::Object(_) => None,
        _ => matches!(index, 0 | -1).then_some(value),
    }
}

/// Follows a path.
pub(super) fn follow<'a>(value: Value<'a>, path: &[&str]) -> Option<Value<'a>> {
    path.iter()
        .try_fold(value, |value, step| match value.view() {
            View::Object(object) => object.get(step),
            View::Array(array) => array.get(place_of(index_of(step)?, array.len())?),
            _ => None,
        })
}

pub(crate) fn jsonb_object_field(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    give(field(jsonb(args, 0)?, args.text(1)?), false)
}

pub(crate) fn jsonb_object_field_text(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    give(field(jsonb(args, 0)?, args.text(1)?), true)
}

pub(crate) fn jsonb_array_element(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    give(element(jsonb(args, 0)?, args.int4(1)?), false)
}

pub(crate) fn jsonb_array_element_text(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    give(element(jsonb(args, 0)?, args.int4(1)?), true)
}

fn extract(args: &[Datum], as_text: bool) -> Result<Datum> {
    match path_of(&args[1..]) {
        None => Ok(Datum::Null),
        Some(path) => give(follow(jsonb(args, 0)?, &path), as_text),
    }
}

pub(crate) fn jsonb_extract_path(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    extract(args, false)
}

pub(crate) fn jsonb_extract_path_text(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    extract(args, true)
}

/// `value[a][b]`: each subscript is a text; see the manual, section 8.14.5.
///
/// # Errors
/// XX000 for other values.
pub fn subscript(args: &[Datum]) -> Result<Datum> {
    extract(args, false)
}

pub(crate) fn jsonb_array_length(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    match jsonb(args, 0)?.view() {
        View::Array(array) => Ok(Datum::Int4(array.len() as i32)),
        View::Object(_) => Err(invalid("cannot get array length of a non-array")),
        _ => Err(invalid("cannot get array length of a scalar")),
    }
}

/// What `jsonb_typeof` calls a value.
pub(super) fn type_name(value: Value<'_>) -> &'static str {
    match value.view() {
        View::Null => "null",
        View::Bool(_) => "boolean",
        View::Number(_) => "number",
        View::String(_) => "string",
        View::Array(_) => "array",
        View::Object(_) => "object",
    }
}

pub(crate) fn jsonb_typeof(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::text(type_name(jsonb(args, 0)?)))
}

pub(crate) fn jsonb_pretty(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let mut out = String::new();
    json::pretty(jsonb(args, 0)?, &mut out)?;
    Ok(Datum::text(out))
}

/// The parts of a container one at a time, each a row; the value is kept as long as they are read.
fn rows(
    args: &[Datum],
    len: usize,
    row: impl Fn(Value<'_>, usize) -> Result<Datum> + 'static,
) -> Result<Rows> {
    let Some(Datum::Jsonb(value)) = args.first() else {
        return Err(Error::internal("rows of what is no jsonb"));
    };
    let value = Arc::clone(value);
    Ok(Box::new((0..len).map(move |at| row(Value(&value), at))))
}

fn elements(args: &[Datum], as_text: bool) -> Result<Rows> {
    match jsonb(args, 0)?.view() {
        View::Array(array) => rows(args, array.len(), move |value, at| match value.view() {
            View::Array(array) => give(array.get(at), as_text),
            _ => Ok(Datum::Null),
        }),
        View::Object(_) => Err(invalid("cannot extract elements from an object")),
        _ => Err(invalid("cannot extract elements from a scalar")),
    }
}

pub(crate) fn jsonb_array_elements(_: &Call<'_>, args: &[Datum]) -> Result<Rows> {
    elements(args, false)
}

pub(crate) fn jsonb_array_elements_text(_: &Call<'_>, args: &[Datum]) -> Result<Rows> {
    elements(args, true)
}

pub(crate) fn jsonb_object_keys(_: &Call<'_>, args: &[Datum]) -> Result<Rows> {
    match jsonb(args, 0)?.view() {
        View::Object(object) => rows(args, object.len(), |value, at| match value.view() {
            View::Object(object) => Ok(object.key(at).map_or(Datum::Null, Datum::text)),
            _ => Ok(Datum::Null),
        }),
        View::Array(_) => Err(invalid("cannot call jsonb_object_keys on an array")),
        _ => Err(invalid("cannot call jsonb_object_keys on a scalar")),
    }
}

pub(crate) static JSONB_EACH: Records = Records {
    columns: &[("key", TypeId::TEXT), ("value", TypeId::JSONB)],
    rows: jsonb_each,
};

pub(crate) static JSONB_EACH_TEXT: Records = Records {
    columns: &[("key", TypeId::TEXT), ("value", TypeId::TEXT)],
    rows: jsonb_each_text,
};

fn members(args: &[Datum], as_text: bool, name: &str) -> Result<Rows> {
    let View::Object(object) = jsonb(args, 0)?.view() else {
        return Err(invalid(format!("cannot call {name} on a non-object")));
    };
    rows(args, object.len(), move |value, at| {
        let View::Object(object) = value.view() else {
            return Ok(Datum::Null);
        };
        let records = if as_text {
            &JSONB_EACH_TEXT
        } else {
            &JSONB_EACH
        };
        let key = object.key(at).map_or(Datum::Null, Datum::text);
        Ok(records.row(vec![key, give(object.value(at), as_text)?]))
    })
}

fn jsonb_each(_: &Call<'_>, args: &[Datum]) -> Result<Rows> {
    members(args, false, "jsonb_each")
}

fn jsonb_each_text(_: &Call<'_>, args: &[Datum]) -> Result<Rows> {
    members(args, true, "jsonb_each_text")
}

/// Without the members of objects that are null.
pub(crate) fn jsonb_strip_nulls(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    use base::jsonb::Step;
    let mut builder = Builder::new();
    let mut key = None;
    for step in jsonb(args, 0)?.walk() {
        match (step, key.take()) {
            (Step::Key(found), _) => {
                key = Some(found);
                continue;
            }
            (Step::Scalar(value), Some(_)) if value.is_null() => continue,
            (_, Some(key)) => builder.key(key)?,
            (_, None) => {}
        }
        builder.step(step)?;
    }
    builder.finish()
}

fn cannot_cast(value: Value<'_>, to: &str) -> Error {
    let what = match value.view() {
        View::Null => "jsonb null",
        View::String(_) => "jsonb string",
        View::Number(_) => "jsonb numeric",
        View::Bool(_) => "jsonb boolean",
        View::Array(_) => "jsonb array",
        View::Object(_) => "jsonb object",
    };
    invalid(format!("cannot cast {what} to type {to}"))
}

pub(crate) fn jsonb_bool(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let value = jsonb(args, 0)?;
    match value.view() {
        View::Bool(value) => Ok(Datum::Bool(value)),
        _ => Err(cannot_cast(value, "boolean")),
    }
}

fn number(args: &[Datum], to: &str) -> Result<types::Numeric> {
    let value = jsonb(args, 0)?;
    match value.view() {
        View::Number(bytes) => Ok(json::number(bytes)),
        _ => Err(cannot_cast(value, to)),
    }
}

pub(crate) fn jsonb_numeric(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    number(args, "numeric").map(Datum::Numeric)
}

pub(crate) fn jsonb_int2(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let value = number(args, "smallint")?.to_integer("smallint")?;
    let narrow = i16::try_from(value).map_err(|_| out_of_range("smallint"))?;
    Ok(Datum::Int2(narrow))
}

pub(crate) fn jsonb_int4(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let value = number(args, "integer")?.to_integer("integer")?;
    let narrow = i32::try_from(value).map_err(|_| out_of_range("integer"))?;
    Ok(Datum::Int4(narrow))
}

fn out_of_range(name: &str) -> Error {
    let message = format!("{name} out of range");
    Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message)
}

pub(crate) fn jsonb_int8(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let value = number(args, "bigint")?.to_integer("bigint")?;
    Ok(Datum::Int8(value))
}

pub(crate) fn jsonb_float4(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Float4(number(args, "real")?.to_f32()?))
}

pub(crate) fn jsonb_float8(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Float8(number(args, "double precision")?.to_f64()?))
}
