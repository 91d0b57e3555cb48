//! Rows of SQL values of JSON: `json_to_record` and kin, with a column definition list.
//!
//! The list stands behind the other arguments ([`crate::listed`]).
//!
//! ```text
//! select * from json_to_record('{"a": 1}') as t (a int, b text)     (1, NULL)
//! ```

use base::coro;
use base::error::{Error, Result, SqlState};
use base::jsonb::{Value, View};

use super::{invalid, text};
use crate::arguments::Arguments;
use crate::{listed, Call, Rows};
use types::json::{self, Event, Parser};
use types::{Array, Datum, Dimension, EvalContext, RowField, TypeId};

/// The columns of the call's list.
fn columns(args: &[Datum], name: &str) -> Result<Vec<RowField>> {
    let wrong = || {
        let message = format!("could not determine row type for result of {name}");
        Error::new(SqlState::FEATURE_NOT_SUPPORTED, message).with_hint(listed::HINT)
    };
    listed::fields(args)?.ok_or_else(wrong)
}

/// A part of either kind of JSON, as a `json` text or a `jsonb`; NULL stands for null.
fn convert(context: &EvalContext, of: (TypeId, i32), part: &Datum, column: &str) -> Result<Datum> {
    convert_onto(context, of, (&Datum::Null, part), column)
}

/// The same where a value stood before: the fields of a row that an object does not have stay.
pub(super) fn convert_onto(
    context: &EvalContext,
    (kind, typmod): (TypeId, i32),
    (before, part): (&Datum, &Datum),
    column: &str,
) -> Result<Datum> {
    coro::check_depth()?;
    let null = match part {
        Datum::Jsonb(value) => Value(value).is_null(),
        Datum::Text(text) => text.trim() == "null",
        _ => true,
    };
    match kind {
        _ if part.is_null() => return Ok(Datum::Null),
        // What is JSON's null becomes NULL, also in columns of JSON.
        _ if null => return Ok(Datum::Null),
        TypeId::JSON => {
            return Ok(match part {
                Datum::Jsonb(value) => Datum::text(json::to_text(Value(value))?),
                part => part.clone(),
            });
        }
        TypeId::JSONB => {
            return match part {
                Datum::Jsonb(_) => Ok(part.clone()),
                part => json::input_jsonb(part.as_str()),
            };
        }
        _ => {}
    }
    if let Some(element) = kind.array_element() {
        return convert_array(context, (element, typmod), part, column);
    }
    if kind.is_composite() {
        let is_text = match part {
            Datum::Jsonb(value) => matches!(Value(value).view(), View::String(_)),
            part => part.as_str().trim_start().starts_with('"'),
        };
        if !is_text {
            return super::populate::nested(context, kind, (before, part));
        }
    }
    let written = match part {
        Datum::Jsonb(value) => json::as_text(Value(value))?,
        part => {
            let mut parser = Parser::new(part.as_str(), true);
            match parser.next()? {
                Some(Event::String) => Datum::text(parser.text()),
                _ => part.clone(),
            }
        }
    };
    types::input(context, kind, typmod, written.as_str())
}

/// The elements of a part, if it is an array.
fn elements(part: &Datum) -> Result<Option<Vec<Datum>>> {
    match part {
        Datum::Jsonb(value) => Ok(match Value(value).view() {
            View::Array(array) => Some(array.iter().map(json::datum).collect()),
            _ => None,
        }),
        part => match part.as_str().trim_start().starts_with('[') {
            true => text::array_elements(part.as_str(), "json_to_record").map(Some),
            false => Ok(None),
        },
    }
}

fn expected_array(column: &str, path: &[usize]) -> Error {
    let error = Error::new(SqlState::INVALID_TEXT_REPRESENTATION, "expected JSON array");
    if path.is_empty() {
        return error.with_hint(format!("See the value of key \"{column}\"."));
    }
    let place: String = path.iter().map(|at| format!("[{at}]")).collect();
    error.with_hint(format!(
        "See the array element {place} of key \"{column}\"."
    ))
}

fn malformed() -> Error {
    let error = Error::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        "malformed JSON array",
    );
    error.with_detail("Multidimensional arrays must have sub-arrays with matching dimensions.")
}

fn convert_array(
    context: &EvalContext,
    element: (TypeId, i32),
    part: &Datum,
    column: &str,
) -> Result<Datum> {
    // A text in quotes is an array's literal.
    let string = match part {
        Datum::Jsonb(value) => match Value(value).view() {
            View::String(text) => Some(text.to_owned()),
            _ => None,
        },
        part => {
            let mut parser = Parser::new(part.as_str(), true);
            match parser.next()? {
                Some(Event::String) => Some(parser.text().to_owned()),
                _ => None,
            }
        }
    };
    if let Some(text) = string {
        return types::array::parse(context, element.0, element.1, &text);
    }
    let Some(parts) = elements(part)? else {
        return Err(expected_array(column, &[]));
    };
    let mut array = Array {
        element: element.0,
        dimensions: Vec::new(),
        elements: Vec::new(),
    };
    let mut lens: Vec<Option<i32>> = Vec::new();
    let mut path = Vec::new();
    fill(
        context,
        element,
        &parts,
        (column, &mut path),
        &mut lens,
        &mut array.elements,
    )?;
    if !array.elements.is_empty() {
        let dimension = |len: &Option<i32>| Dimension {
            len: len.unwrap_or(0),
            lower: 1,
        };
        array.dimensions = lens.iter().map(dimension).collect();
    }
    Ok(Datum::Array(std::sync::Arc::new(array)))
}

fn fill(
    context: &EvalContext,
    element: (TypeId, i32),
    parts: &[Datum],
    (column, path): (&str, &mut Vec<usize>),
    lens: &mut Vec<Option<i32>>,
    out: &mut Vec<Datum>,
) -> Result<()> {
    let level = path.len();
    if lens.len() == level {
        lens.push(None);
    }
    let is_json = matches!(element.0, TypeId::JSON | TypeId::JSONB);
    for (at, part) in parts.iter().enumerate() {
        path.push(at);
        let inner = if is_json { None } else { elements(part)? };
        match inner {
            Some(inner) => {
                if lens.len() == level + 1 && !out.is_empty() {
                    return Err(malformed());
                }
                fill(context, element, &inner, (column, path), lens, out)?;
            }
            None if lens.len() > level + 1 => return Err(expected_array(column, path)),
            None => out.push(convert(context, element, part, column)?),
        }
        path.pop();
    }
    match lens[level].replace(parts.len() as i32) {
        Some(before) if before != parts.len() as i32 => Err(malformed()),
        _ => Ok(()),
    }
}

/// The row of an object.
fn row(context: &EvalContext, columns: &[RowField], object: &Datum) -> Result<Datum> {
    let members = match object {
        Datum::Jsonb(_) => None,
        object => Some(text::object_members(object.as_str())?.ok_or_else(|| no_object(object))?),
    };
    let mut values = Vec::with_capacity(columns.len());
    for column in columns {
        let part = match (&members, object) {
            (Some(members), _) => {
                let found = members.iter().rfind(|member| member.0 == column.name);
                found.map_or(Datum::Null, |found| found.1.clone())
            }
            (None, Datum::Jsonb(value)) => match Value(value).view() {
                View::Object(object) => object.get(&column.name).map_or(Datum::Null, json::datum),
                _ => return Err(no_object(object)),
            },
            _ => Datum::Null,
        };
        let of = (column.kind, column.typmod);
        values.push(convert(context, of, &part, &column.name)?);
    }
    let types: Vec<TypeId> = columns.iter().map(|column| column.kind).collect();
    text::row(&types, values)
}

pub(super) fn no_object(value: &Datum) -> Error {
    let array = match value {
        Datum::Jsonb(value) => matches!(Value(value).view(), View::Array(_)),
        value => value.as_str().trim_start().starts_with('['),
    };
    invalid(format!(
        "cannot call populate_composite on {}",
        if array { "an array" } else { "a scalar" }
    ))
}

fn record(call: &Call<'_>, args: &[Datum], name: &str) -> Result<Datum> {
    row(call.context, &columns(args, name)?, args.any(0)?)
}

pub(crate) fn json_to_record(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    record(call, args, "json_to_record")
}

pub(crate) fn jsonb_to_record(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    record(call, args, "jsonb_to_record")
}

fn records(call: &Call<'_>, args: &[Datum], name: &'static str) -> Result<Rows> {
    if args.any(0)?.is_null() {
        return Ok(Box::new(std::iter::empty()));
    }
    let columns = columns(args, name)?;
    let parts = match args.any(0)? {
        Datum::Jsonb(value) => match Value(value).view() {
            View::Array(array) => array.iter().map(json::datum).collect(),
            _ => return Err(invalid(format!("cannot call {name} on a non-array"))),
        },
        part => text::array_elements(part.as_str(), name)?,
    };
    let is_object = |part: &Datum| match part {
        Datum::Jsonb(value) => matches!(Value(value).view(), View::Object(_)),
        part => part.as_str().starts_with('{'),
    };
    if !parts.iter().all(is_object) {
        let message = format!("argument of {name} must be an array of objects");
        return Err(invalid(message));
    }
    let context = call.context.clone();
    let rows = parts.into_iter();
    Ok(Box::new(
        rows.map(move |part| row(&context, &columns, &part)),
    ))
}

pub(crate) fn json_to_recordset(call: &Call<'_>, args: &[Datum]) -> Result<Rows> {
    records(call, args, "json_to_recordset")
}

pub(crate) fn jsonb_to_recordset(call: &Call<'_>, args: &[Datum]) -> Result<Rows> {
    records(call, args, "jsonb_to_recordset")
}
