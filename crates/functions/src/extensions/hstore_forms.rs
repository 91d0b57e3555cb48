//! What an `hstore` is made of, and what it becomes: texts, arrays, rows, JSON.
//!
//! ```text
//! hstore(array['a','1','b',null])        "a"=>"1", "b"=>NULL
//! hstore_to_json_loose('a=>1, b=>t')     {"a": 1, "b": true}
//! row(1, 'x')::pair #= 'b=>y'            (1,y)
//! ```
//!
//! Source: PostgreSQL 15 manual, section F.18.

use std::sync::Arc;

use base::coro;
use base::error::{Error, Result, SqlState};

use super::super::arguments::Arguments;
use super::super::Call;
use super::hstore::{text_of, texts};
use types::growth::Growing;
use types::hstore::{datum, find, pairs, Pair};
use types::json::{self, parse::is_number};
use types::{Array, Datum, Dimension, Record, TypeId};

fn null_key() -> Error {
    let message = "null value not allowed for hstore key";
    Error::new(SqlState::of("22004"), message)
}

fn bad_array(message: &str) -> Error {
    Error::new(SqlState::of("2202E"), message)
}

pub(crate) fn of_texts(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Text(key), value] => datum(vec![(key, text_of(value))]),
        _ => Ok(Datum::Null),
    }
}

/// The pair of a key, which must not be NULL, and its value.
fn pair<'a>(key: &'a Datum, value: &'a Datum) -> Result<Pair<'a>> {
    coro::work(16)?;
    Ok((text_of(key).ok_or_else(null_key)?, text_of(value)))
}

/// `hstore(keys, values)`: NULL for the values as NULLs.
pub(crate) fn of_arrays(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let [Datum::Array(keys), values] = args else {
        return Ok(Datum::Null);
    };
    let nested = |array: &Array| array.dimensions.len() > 1;
    let values = match values {
        _ if nested(keys) => return Err(bad_array("wrong number of array subscripts")),
        Datum::Array(values) if nested(values) => {
            return Err(bad_array("wrong number of array subscripts"));
        }
        Datum::Array(values) if values.dimensions != keys.dimensions => {
            return Err(bad_array("arrays must have same bounds"));
        }
        Datum::Array(values) => values.elements.as_slice(),
        _ => &[],
    };
    let values = values.iter().chain(std::iter::repeat(&Datum::Null));
    let all = keys.elements.iter().zip(values);
    datum(
        all.map(|(key, value)| pair(key, value))
            .collect::<Result<_>>()?,
    )
}

/// `hstore(array)`: keys and values in turn, or in two columns.
pub(crate) fn of_array(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let array = args.array(0)?;
    match array.dimensions.as_slice() {
        [] => {}
        [one] if one.len % 2 != 0 => {
            return Err(bad_array("array must have even number of elements"));
        }
        [_, columns] if columns.len != 2 => {
            return Err(bad_array("array must have two columns"));
        }
        [_] | [_, _] => {}
        _ => return Err(bad_array("wrong number of array subscripts")),
    }
    let all = array.elements.chunks_exact(2);
    datum(all.map(|of| pair(&of[0], &of[1])).collect::<Result<_>>()?)
}

/// `hstore(record)`: the fields by their names; of NULL of a type NULLs.
pub(crate) fn of_record(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let kind = call.argument_types.first().copied().unwrap_or_default();
    let fields = match kind.is_composite() {
        true => call.context.fields(kind)?,
        false => Vec::new(),
    };
    let Datum::Record(record) = args.any(0)? else {
        return match kind.is_composite() {
            true => datum(fields.iter().map(|field| (&*field.name, None)).collect()),
            false => Err(Error::unsupported("hstore of NULL in the place of a row")),
        };
    };
    let mut all: Vec<(String, Option<String>)> = Vec::with_capacity(record.values.len());
    for (place, (kind, value)) in record.types.iter().zip(&record.values).enumerate() {
        let name = record.names.as_ref().and_then(|names| names.get(place));
        let name = name.or(fields.get(place).map(|field| &field.name));
        let name = name.map_or_else(|| format!("f{}", place + 1), String::clone);
        let value = match value {
            Datum::Null => None,
            value => Some(types::output(call.context, *kind, value)?),
        };
        all.push((name, value));
    }
    let all = all.iter();
    datum(
        all.map(|(name, value)| (&**name, value.as_deref()))
            .collect(),
    )
}

/// An object of JSON. Loose: with numbers and truths where values look so.
pub(crate) fn object(bytes: &[u8], loose: bool) -> Result<String> {
    let mut out = Growing::default();
    out.push('{')?;
    for (place, (key, value)) in pairs(bytes)?.into_iter().enumerate() {
        let mut member = String::new();
        if place > 0 {
            member.push_str(", ");
        }
        json::write_string(key, &mut member);
        member.push_str(": ");
        match value {
            None => member.push_str("null"),
            Some("t") if loose => member.push_str("true"),
            Some("f") if loose => member.push_str("false"),
            Some(number) if loose && is_number(number) => member.push_str(number),
            Some(text) => json::write_string(text, &mut member),
        }
        out.push_str(&member)?;
    }
    out.push('}')?;
    Ok(out.into_string())
}

pub(crate) fn json(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    object(&args.hstore(0)?, false).map(Datum::text)
}

pub(crate) fn json_loose(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    object(&args.hstore(0)?, true).map(Datum::text)
}

pub(crate) fn jsonb(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    json::input_jsonb(&object(&args.hstore(0)?, false)?)
}

pub(crate) fn jsonb_loose(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    json::input_jsonb(&object(&args.hstore(0)?, true)?)
}

/// Keys and values in turn.
pub(crate) fn array(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let bytes = args.hstore(0)?;
    let pairs = pairs(&bytes)?;
    Ok(texts(pairs.iter().flat_map(|pair| [Some(pair.0), pair.1])))
}

/// Keys and values in two columns.
pub(crate) fn matrix(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let Datum::Array(flat) = array(call, args)? else {
        return Ok(Datum::Null);
    };
    if flat.elements.is_empty() {
        return Ok(Datum::Array(flat));
    }
    let rows = i32::try_from(flat.elements.len() / 2).unwrap_or(i32::MAX);
    let dimension = |len| Dimension { len, lower: 1 };
    Ok(Datum::Array(Arc::new(Array {
        element: TypeId::TEXT,
        dimensions: vec![dimension(rows), dimension(2)],
        elements: flat.elements.clone(),
    })))
}

/// `populate_record(row, hstore)`, which is `#=` too: the row with the fields that the keys name.
pub(crate) fn populate(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let kind = call.argument_types.first().copied().unwrap_or_default();
    let (row, given) = (args.any(0)?, args.any(1)?);
    let base = match row {
        Datum::Record(record) => Some(record),
        _ => None,
    };
    if !kind.is_composite() && kind != TypeId::RECORD {
        return Err(Error::new(
            SqlState::DATATYPE_MISMATCH,
            "first argument must be a rowtype",
        ));
    }
    let Datum::Hstore(bytes) = given else {
        return Ok(row.clone());
    };
    let all = pairs(bytes)?;
    if all.is_empty() && base.is_some() {
        return Ok(row.clone());
    }
    let fields = match (kind.is_composite(), base) {
        (true, _) => call.context.fields(kind)?,
        (false, Some(_)) => return Err(Error::unsupported("populate_record of a row of no type")),
        (false, None) => return Ok(Datum::Null),
    };
    if fields.iter().any(|field| field.of_domain) {
        let what = "a row with a field of a domain of an hstore";
        return Err(Error::unsupported(what));
    }
    let mut values = Vec::with_capacity(fields.len());
    for (place, field) in fields.iter().enumerate() {
        let found = find(&all, &field.name).map(|place| all[place].1);
        let before = base.and_then(|base| base.values.get(place));
        values.push(match (found, before) {
            (Some(Some(text)), _) => types::input(call.context, field.kind, field.typmod, text)?,
            (None, Some(before)) => before.clone(),
            (Some(None) | None, _) => Datum::Null,
        });
    }
    Ok(Datum::Record(Arc::new(Record {
        types: fields.iter().map(|field| field.kind).collect(),
        values,
        names: Some(fields.into_iter().map(|field| field.name).collect()),
    })))
}
