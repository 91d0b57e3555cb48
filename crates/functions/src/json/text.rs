//! Parts of `json`, which is text: each call goes through all of it.

use base::error::{Error, Result};

use super::{index_of, invalid, path_of, place_of};
use crate::arguments::Arguments;
use crate::sets::Records;
use crate::{Call, Rows};
use types::json::{Event, Parser};
use types::{Datum, Record, TypeId};

/// A part of the outermost container of a text.
struct Child<'a> {
    /// Its key, in an object.
    key: &'a str,
    /// How it begins.
    event: Event,
    /// What it says, as it is written.
    written: &'a str,
    /// The value of a string.
    string: &'a str,
}

impl Child<'_> {
    /// As `->` and `->>` give it.
    fn datum(&self, as_text: bool) -> Datum {
        match (as_text, self.event) {
            (true, Event::Null) => Datum::Null,
            (true, Event::String) => Datum::text(self.string),
            _ => Datum::text(self.written),
        }
    }
}

/// Goes through the parts of the outermost value; gives how it begins. A scalar is a part of itself.
fn visit(text: &str, mut each: impl FnMut(usize, &Child<'_>) -> Result<()>) -> Result<Event> {
    let mut parser = Parser::new(text, true);
    let mut outer = Event::Null;
    let (mut key, mut from, mut index) = (String::new(), 0, 0);
    let mut begun = Event::Null;
    let mut first = true;
    while let Some(event) = parser.next()? {
        let (start, end) = parser.place();
        let opens = matches!(event, Event::BeginArray | Event::BeginObject);
        if std::mem::take(&mut first) {
            outer = event;
            if opens {
                continue;
            }
        }
        let depth = parser.depth();
        let at_part = depth == usize::from(opens) + usize::from(is_container(outer));
        if event.begins_value() && at_part {
            (from, begun) = (start, event);
        }
        match event {
            Event::Key if depth == 1 => {
                key.clear();
                key.push_str(parser.text());
            }
            _ if event.ends_value() && depth == usize::from(is_container(outer)) => {
                let child = Child {
                    key: &key,
                    event: begun,
                    written: &text[from..end],
                    string: parser.text(),
                };
                each(index, &child)?;
                index += 1;
            }
            _ => {}
        }
    }
    Ok(outer)
}

fn is_container(event: Event) -> bool {
    matches!(event, Event::BeginArray | Event::BeginObject)
}

fn field(args: &[Datum], as_text: bool) -> Result<Datum> {
    let key = args.text(1)?;
    let mut found = Datum::Null;
    let outer = visit(args.text(0)?, |_, child| {
        if child.key == key {
            found = child.datum(as_text);
        }
        Ok(())
    })?;
    Ok(match outer {
        Event::BeginObject => found,
        _ => Datum::Null,
    })
}

fn element(text: &str, index: i32, as_text: bool) -> Result<Datum> {
    let mut place = usize::try_from(index).ok();
    if place.is_none() {
        let len = length(text)?;
        place = len.and_then(|len| place_of(index, len));
    }
    let mut found = Datum::Null;
    let outer = visit(text, |at, child| {
        if Some(at) == place {
            found = child.datum(as_text);
        }
        Ok(())
    })?;
    Ok(match outer {
        Event::BeginArray => found,
        _ => Datum::Null,
    })
}

/// How many elements an array has.
fn length(text: &str) -> Result<Option<usize>> {
    let mut len = 0;
    let outer = visit(text, |_, _| {
        len += 1;
        Ok(())
    })?;
    Ok((outer == Event::BeginArray).then_some(len))
}

pub(crate) fn json_object_field(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    field(args, false)
}

pub(crate) fn json_object_field_text(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    field(args, true)
}

pub(crate) fn json_array_element(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    element(args.text(0)?, args.int4(1)?, false)
}

pub(crate) fn json_array_element_text(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    element(args.text(0)?, args.int4(1)?, true)
}

fn extract(args: &[Datum], as_text: bool) -> Result<Datum> {
    let Some(path) = path_of(&args[1..]) else {
        return Ok(Datum::Null);
    };
    let mut value = args.any(0)?.clone();
    for (at, step) in path.iter().enumerate() {
        let text = value.as_str();
        let as_text = as_text && at + 1 == path.len();
        let mut found = Datum::Null;
        let outer = visit(text, |_, child| {
            if child.key == *step {
                found = child.datum(as_text);
            }
            Ok(())
        })?;
        found = match (outer, index_of(step)) {
            (Event::BeginObject, _) => found,
            (Event::BeginArray, Some(index)) => element(text, index, as_text)?,
            _ => Datum::Null,
        };
        if found.is_null() {
            return Ok(Datum::Null);
        }
        value = found;
    }
    if path.is_empty() && as_text {
        let mut scalar = value.clone();
        let outer = visit(value.as_str(), |_, child| {
            scalar = child.datum(true);
            Ok(())
        })?;
        return Ok(if is_container(outer) { value } else { scalar });
    }
    Ok(value)
}

pub(crate) fn json_extract_path(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    extract(args, false)
}

pub(crate) fn json_extract_path_text(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    extract(args, true)
}

pub(crate) fn json_array_length(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let mut len = 0;
    match visit(args.text(0)?, |_, _| {
        len += 1;
        Ok(())
    })? {
        Event::BeginArray => Ok(Datum::Int4(len)),
        Event::BeginObject => Err(invalid("cannot get array length of a non-array")),
        _ => Err(invalid("cannot get array length of a scalar")),
    }
}

pub(crate) fn json_typeof(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let mut parser = Parser::new(args.text(0)?, false);
    Ok(Datum::text(match parser.next()? {
        Some(Event::BeginObject) => "object",
        Some(Event::BeginArray) => "array",
        Some(Event::String) => "string",
        Some(Event::Number) => "number",
        Some(Event::True | Event::False) => "boolean",
        _ => "null",
    }))
}

fn elements(args: &[Datum], as_text: bool, name: &str) -> Result<Rows> {
    let mut rows = Vec::new();
    let outer = visit(args.text(0)?, |_, child| {
        rows.push(Ok(child.datum(as_text)));
        Ok(())
    })?;
    match outer {
        Event::BeginArray => Ok(Box::new(rows.into_iter())),
        Event::BeginObject => Err(invalid(format!("cannot call {name} on a non-array"))),
        _ => Err(invalid(format!("cannot call {name} on a scalar"))),
    }
}

pub(crate) fn json_array_elements(_: &Call<'_>, args: &[Datum]) -> Result<Rows> {
    elements(args, false, "json_array_elements")
}

pub(crate) fn json_array_elements_text(_: &Call<'_>, args: &[Datum]) -> Result<Rows> {
    elements(args, true, "json_array_elements_text")
}

pub(crate) fn json_object_keys(_: &Call<'_>, args: &[Datum]) -> Result<Rows> {
    let mut rows = Vec::new();
    let outer = visit(args.text(0)?, |_, child| {
        rows.push(Ok(Datum::text(child.key)));
        Ok(())
    })?;
    match outer {
        Event::BeginObject => Ok(Box::new(rows.into_iter())),
        Event::BeginArray => Err(invalid("cannot call json_object_keys on an array")),
        _ => Err(invalid("cannot call json_object_keys on a scalar")),
    }
}

pub(crate) static JSON_EACH: Records = Records {
    columns: &[("key", TypeId::TEXT), ("value", TypeId::JSON)],
    rows: json_each,
};

pub(crate) static JSON_EACH_TEXT: Records = Records {
    columns: &[("key", TypeId::TEXT), ("value", TypeId::TEXT)],
    rows: json_each_text,
};

fn members(args: &[Datum], as_text: bool, records: &'static Records) -> Result<Rows> {
    let mut rows = Vec::new();
    let outer = visit(args.text(0)?, |_, child| {
        let values = vec![Datum::text(child.key), child.datum(as_text)];
        rows.push(Ok(records.row(values)));
        Ok(())
    })?;
    match outer {
        Event::BeginObject => Ok(Box::new(rows.into_iter())),
        Event::BeginArray => Err(invalid("cannot deconstruct an array as an object")),
        _ => Err(invalid("cannot deconstruct a scalar")),
    }
}

fn json_each(_: &Call<'_>, args: &[Datum]) -> Result<Rows> {
    members(args, false, &JSON_EACH)
}

fn json_each_text(_: &Call<'_>, args: &[Datum]) -> Result<Rows> {
    members(args, true, &JSON_EACH_TEXT)
}

/// Without the members of objects that are null, and without spaces.
pub(crate) fn json_strip_nulls(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let text = args.text(0)?;
    let mut parser = Parser::new(text, true);
    let mut out = types::growth::Growing::default();
    // A key is written when it is known that its value is not null.
    let mut key: Option<String> = None;
    let mut follows = false;
    while let Some(event) = parser.next()? {
        let mut before = |out: &mut types::growth::Growing, key: Option<String>| {
            if std::mem::take(&mut follows) {
                out.push(',')?;
            }
            match key {
                Some(key) => {
                    out.push_str(&key)?;
                    out.push(':')
                }
                None => Ok(()),
            }
        };
        match event {
            Event::Key => {
                let mut written = String::new();
                types::json::write_string(parser.text(), &mut written);
                key = Some(written);
                continue;
            }
            Event::Null if key.is_some() => {
                key = None;
                continue;
            }
            Event::BeginArray | Event::BeginObject => {
                before(&mut out, key.take())?;
                out.push(if event == Event::BeginArray { '[' } else { '{' })?;
                continue;
            }
            Event::EndArray => out.push(']')?,
            Event::EndObject => out.push('}')?,
            Event::String => {
                before(&mut out, key.take())?;
                let mut written = String::new();
                types::json::write_string(parser.text(), &mut written);
                out.push_str(&written)?;
            }
            Event::Number | Event::True | Event::False | Event::Null => {
                before(&mut out, key.take())?;
                out.push_str(parser.token())?;
            }
        }
        follows = true;
    }
    Ok(out.into_datum())
}

/// The members of an object, or of each object of an array: for [`super::record`].
pub(super) type Members = Vec<(String, Datum)>;

/// The members of an object, `None` if it is none; their values are json, or NULL for null.
pub(super) fn object_members(text: &str) -> Result<Option<Members>> {
    let mut all = Vec::new();
    let outer = visit(text, |_, child| {
        let value = match child.event {
            Event::Null => Datum::Null,
            _ => Datum::text(child.written),
        };
        all.push((child.key.to_owned(), value));
        Ok(())
    })?;
    Ok((outer == Event::BeginObject).then_some(all))
}

/// The elements of an array as json.
pub(super) fn array_elements(text: &str, what: &str) -> Result<Vec<Datum>> {
    let mut all = Vec::new();
    let outer = visit(text, |_, child| {
        all.push(Datum::text(child.written));
        Ok(())
    })?;
    match outer {
        Event::BeginArray => Ok(all),
        Event::BeginObject => Err(invalid(format!("cannot call {what} on an object"))),
        _ => Err(invalid(format!("cannot call {what} on a scalar"))),
    }
}

/// A row of a record without a type of its own.
pub(super) fn row(types: &[TypeId], values: Vec<Datum>) -> Result<Datum> {
    if types.len() != values.len() {
        return Err(Error::internal("a row of other than its columns"));
    }
    Ok(Datum::Record(std::sync::Arc::new(Record {
        types: types.to_vec(),
        values,
        names: None,
    })))
}
