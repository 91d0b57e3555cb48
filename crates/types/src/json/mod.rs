//! `json`, `jsonb` and `jsonpath`: text in, text out, order.
//!
//! A `json` is its text as it was written ([`Datum::Text`]), checked once. A `jsonb` is kept in a
//! binary form ([`base::jsonb`], [`Datum::Jsonb`]) in which a key is found by binary search and an
//! element by its offset. A `jsonpath` is its text as PostgreSQL prints it ([`path`]).
//!
//! ```
//! use types::{input, output, EvalContext, TypeId, NO_TYPMOD};
//! let context = EvalContext::for_tests();
//! let value = input(&context, TypeId::JSONB, NO_TYPMOD, r#"{"b":[1.0,null],"a":1,"a":2}"#).unwrap();
//! let text = output(&context, TypeId::JSONB, &value).unwrap();
//! assert_eq!(text, r#"{"a": 2, "b": [1.0, null]}"#);
//! ```
//!
//! # Invariants
//! - Nothing here recurses over values, and values are nested [`parse::DEPTH_MAX`] deep at most.
//! - Numbers are exact: their digits and their scale are kept.
//!
//! # What it leaves out
//! Fields of long values are found without decoding the rest, but the whole value is read first.

pub mod build;
pub mod parse;
pub mod path;

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use base::coro;
use base::error::{Error, Result, SqlState};
use base::jsonb::{Step, Value, View};

use crate::{column, growth, Datum, Numeric};
pub use build::Builder;
pub use parse::{Event, Parser};

/// What a step of a walk counts for, in the units of [`coro::work`].
const STEP_WORK: usize = 16;
/// Spaces by which each level of [`pretty`] is indented.
const INDENT: usize = 4;

/// The number of a [`View::Number`].
pub fn number(bytes: &[u8]) -> Numeric {
    column::decode_numeric(bytes).unwrap_or(Numeric::NAN)
}

/// Reads a `json`: it stays as it is.
///
/// # Errors
/// As [`Parser::next`].
pub fn input_json(text: &str) -> Result<Datum> {
    parse::check(text)?;
    Ok(Datum::text(text))
}

/// Reads a `jsonb`.
///
/// # Errors
/// As [`Builder::parse`].
pub fn input_jsonb(text: &str) -> Result<Datum> {
    coro::interruptible(|| {
        let mut builder = Builder::new();
        builder.parse(text)?;
        builder.finish()
    })?
}

/// The version byte that begins the binary form on the wire of `jsonb` and `jsonpath`.
pub const WIRE_VERSION: u8 = 1;

/// The text of a binary message.
///
/// # Errors
/// XX000 for another version, as in PostgreSQL.
pub fn versioned<'a>(what: &str, bytes: &'a [u8]) -> Result<&'a [u8]> {
    match bytes.split_first() {
        Some((&WIRE_VERSION, rest)) => Ok(rest),
        Some((version, _)) => Err(Error::internal(format!(
            "unsupported {what} version number {version}"
        ))),
        None => Err(Error::new(
            SqlState::PROTOCOL_VIOLATION,
            "no data left in message",
        )),
    }
}

/// Appends a string in quotes, with escapes.
pub fn write_string(text: &str, out: &mut String) {
    use std::fmt::Write;
    out.push('"');
    let mut rest = text;
    let special = |byte: u8| byte < b' ' || byte == b'"' || byte == b'\\';
    while let Some(at) = rest.bytes().position(special) {
        out.push_str(&rest[..at]);
        match rest.as_bytes()[at] {
            8 => out.push_str("\\b"),
            12 => out.push_str("\\f"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            byte @ (b'"' | b'\\') => {
                out.push('\\');
                out.push(char::from(byte));
            }
            byte => {
                let _ = write!(out, "\\u{byte:04x}");
            }
        }
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
    out.push('"');
}

/// Appends a scalar as JSON.
pub fn write_scalar(value: Value<'_>, out: &mut String) {
    use std::fmt::Write;
    match value.view() {
        View::Bool(true) => out.push_str("true"),
        View::Bool(false) => out.push_str("false"),
        View::String(text) => write_string(text, out),
        View::Number(bytes) => {
            let _ = write!(out, "{}", number(bytes));
        }
        _ => out.push_str("null"),
    }
}

/// Appends a value as JSON.
///
/// # Errors
/// 54000; the pending interrupt.
pub fn write(value: Value<'_>, out: &mut String) -> Result<()> {
    write_indented(value, None, out)
}

/// Appends a value over several lines.
///
/// # Errors
/// As [`write`].
pub fn pretty(value: Value<'_>, out: &mut String) -> Result<()> {
    write_indented(value, Some(INDENT), out)
}

fn write_indented(value: Value<'_>, indent: Option<usize>, out: &mut String) -> Result<()> {
    let mut level = 0;
    // Whether something stands before, in the same container; whether a key does.
    let (mut follows, mut keyed) = (false, false);
    let line = |out: &mut String, level: usize| {
        if let Some(indent) = indent {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', level * indent));
        }
    };
    for step in value.walk() {
        let before = out.len();
        if !keyed && !matches!(step, Step::EndArray | Step::EndObject) {
            if follows {
                out.push_str(if indent.is_some() { "," } else { ", " });
            }
            if level > 0 {
                line(out, level);
            }
        }
        keyed = false;
        match step {
            Step::Key(key) => {
                write_string(key, out);
                out.push_str(": ");
                keyed = true;
            }
            Step::BeginArray(_) | Step::BeginObject(_) => {
                let array = matches!(step, Step::BeginArray(_));
                out.push(if array { '[' } else { '{' });
                level += 1;
                follows = false;
                continue;
            }
            Step::EndArray | Step::EndObject => {
                level -= 1;
                line(out, level);
                out.push(if step == Step::EndArray { ']' } else { '}' });
            }
            Step::Scalar(value) => write_scalar(value, out),
        }
        follows = true;
        growth::check_room(0, out.len())?;
        coro::work(STEP_WORK + out.len() - before)?;
    }
    Ok(())
}

/// A value as JSON.
///
/// # Errors
/// As [`write`].
pub fn to_text(value: Value<'_>) -> Result<String> {
    let mut out = String::new();
    write(value, &mut out)?;
    Ok(out)
}

/// What `->>` gives of a value: a string without quotes, NULL for null, others as JSON.
///
/// # Errors
/// As [`write`].
pub fn as_text(value: Value<'_>) -> Result<Datum> {
    Ok(match value.view() {
        View::Null => Datum::Null,
        View::String(text) => Datum::text(text),
        _ => Datum::text(to_text(value)?),
    })
}

/// A part of a value as a value of its own.
pub fn datum(value: Value<'_>) -> Datum {
    Datum::Jsonb(Arc::from(value.0))
}

/// Whether two scalars are equal: numbers by value, whatever their scale.
pub fn equal_scalars(a: Value<'_>, b: Value<'_>) -> bool {
    match (a.view(), b.view()) {
        (View::Number(a), View::Number(b)) => a == b || number(a) == number(b),
        _ => a == b,
    }
}

/// The place of a kind of value in the order of kinds.
fn rank(step: &Step<'_>) -> u8 {
    match step {
        Step::Scalar(value) => match value.view() {
            View::Null => 0,
            View::String(_) => 1,
            View::Number(_) => 2,
            _ => 3,
        },
        Step::BeginArray(_) => 4,
        Step::BeginObject(_) => 5,
        // A key meets a key, and an end an end: what they belong to began alike.
        Step::Key(_) | Step::EndArray | Step::EndObject => 6,
    }
}

/// Orders two values as PostgreSQL's btree operator class does; see [`base::jsonb`].
pub fn compare(a: &[u8], b: &[u8]) -> Ordering {
    let (a, b) = (Value(a), Value(b));
    if a.0 == b.0 {
        return Ordering::Equal;
    }
    let empty = |value: Value<'_>| matches!(value.view(), View::Array(array) if array.is_empty());
    match (empty(a), empty(b)) {
        (false, false) => {}
        (a, b) => return b.cmp(&a),
    }
    let mut steps = a.walk().zip(b.walk());
    let order = steps.find_map(|(a, b)| {
        coro::work_or_unwind(STEP_WORK);
        let order = match (a, b) {
            (Step::BeginArray(a), Step::BeginArray(b)) => a.cmp(&b),
            (Step::BeginObject(a), Step::BeginObject(b)) => a.cmp(&b),
            (Step::Key(a), Step::Key(b)) => a.cmp(b),
            (Step::Scalar(x), Step::Scalar(y)) => match (x.view(), y.view()) {
                (View::String(a), View::String(b)) => a.cmp(b),
                (View::Number(a), View::Number(b)) => number(a).cmp(&number(b)),
                (View::Bool(a), View::Bool(b)) => a.cmp(&b),
                _ => rank(&a).cmp(&rank(&b)),
            },
            _ => rank(&a).cmp(&rank(&b)),
        };
        order.is_ne().then_some(order)
    });
    order.unwrap_or(Ordering::Equal)
}

/// Feeds a value to a hasher, in agreement with [`compare`].
pub fn hash_into(value: &[u8], state: &mut impl Hasher) {
    for step in Value(value).walk() {
        rank(&step).hash(state);
        match step {
            Step::BeginArray(len) | Step::BeginObject(len) => len.hash(state),
            Step::Key(key) => key.hash(state),
            Step::EndArray | Step::EndObject => {}
            Step::Scalar(value) => match value.view() {
                View::String(text) => text.hash(state),
                View::Number(bytes) => number(bytes).hash(state),
                View::Bool(value) => value.hash(state),
                _ => {}
            },
        }
    }
}

#[cfg(test)]
mod tests;
