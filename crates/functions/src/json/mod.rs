//! The functions and operators of `json`, `jsonb` and `jsonpath`.
//!
//! | module | what |
//! |---|---|
//! | [`text`] | `json`: text is gone through from its beginning each time |
//! | [`read`] | `jsonb`: a part is found without looking at the others |
//! | [`contain`] | `@>`, `?` and kin |
//! | [`change`] | `jsonb_set`, `-`, `\|\|` and kin |
//! | [`make`] | JSON of SQL values, aggregates |
//! | [`ask`], [`follow`], [`item`], [`moment`], [`pattern`] | jsonpath |
//! | [`record`] | rows of SQL values of JSON |
//!
//! ```text
//! select '{"a": [1, 2]}'::jsonb #> '{a,1}'      read::jsonb_extract_path
//! select row_to_json(row(1, 'x'))               make::row_to_json
//! ```

mod ask;
mod change;
mod contain;
mod follow;
mod item;
pub mod make;
mod moment;
mod pattern;
mod populate;
mod read;
mod record;
mod text;

pub(crate) use ask::*;
pub use change::ASSIGN;
pub(crate) use change::*;
pub(crate) use contain::*;
pub(crate) use make::{
    array_to_json, array_to_json_pretty, json_build_array, json_build_array_noargs,
    json_build_object, json_build_object_noargs, json_object, json_object_two_arg,
    jsonb_build_array, jsonb_build_array_noargs, jsonb_build_object, jsonb_build_object_noargs,
    jsonb_object, jsonb_object_two_arg, row_to_json, row_to_json_pretty, to_json, to_jsonb,
};
pub(crate) use populate::*;
pub use read::subscript;
pub(crate) use read::*;
pub(crate) use record::*;
pub(crate) use text::*;

use crate::Function;
use base::error::{Error, Result, SqlState};
use base::jsonb::Value;
use types::Datum;

/// The jsonb of an argument.
fn jsonb(args: &[Datum], index: usize) -> Result<Value<'_>> {
    match args.get(index) {
        Some(Datum::Jsonb(value)) => Ok(Value(value)),
        other => Err(Error::internal(format!(
            "argument {index} is {other:?} where a jsonb is wanted"
        ))),
    }
}

/// Whether a function takes a column definition list, as arguments behind its own.
pub fn takes_columns(function: &Function) -> bool {
    matches!(function.oid, 3204 | 3205 | 3490 | 3491)
}

/// Whether a function fills the row that it is given first; one of no type with a column definition list,
/// as [`takes_columns`] says.
pub fn fills(function: &Function) -> bool {
    matches!(function.oid, 3209 | 3475 | 3960 | 3961)
}

/// What the only column of a function's rows is called, if not as the function.
pub fn column_of(function: &Function) -> Option<&'static str> {
    match function.oid {
        3219 | 3465 | 3955 | 3969 => Some("value"),
        // pg_partition_ancestors
        3425 => Some("relid"),
        _ => None,
    }
}

/// 22023.
fn invalid(message: impl Into<String>) -> Error {
    Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// The steps of a path: an array's elements, or the arguments that are left. `None` with a NULL.
fn path_of(args: &[Datum]) -> Option<Vec<&str>> {
    let steps = match args {
        [Datum::Array(array)] => &array.elements[..],
        args => args,
    };
    let step = |step| match step {
        &Datum::Null => None,
        step => Some(Datum::as_str(step)),
    };
    steps.iter().map(step).collect()
}

/// A step of a path as an index, as C's `strtoint` reads it.
fn index_of(step: &str) -> Option<i32> {
    let body = step.trim_start_matches(types::numeric::is_space);
    body.parse().ok()
}

/// The place of an index in a list of that length; negative ones count from the end.
fn place_of(index: i32, len: usize) -> Option<usize> {
    let place = match index < 0 {
        true => len.checked_sub(index.unsigned_abs() as usize)?,
        false => index as usize,
    };
    (place < len).then_some(place)
}
