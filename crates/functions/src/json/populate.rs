//! Rows of a type that the catalog knows, of JSON: `json_populate_record` and its kin.
//!
//! ```text
//! select * from json_populate_record(null::pair, '{"a": 1}')     (1, NULL)
//! ```
//! What the object does not have, the row that is given first has; without one it is NULL. Whether
//! fields are of their domains is tested by whoever binds the call.

use std::sync::Arc;

use base::coro;
use base::error::{Error, Result, SqlState};
use base::jsonb::{Value, View};

use super::record::{convert_onto, no_object};
use super::{invalid, text};
use crate::arguments::Arguments;
use crate::{listed, Call, Rows};
use types::json;
use types::{Datum, EvalContext, Record, RowField, TypeId, NO_TYPMOD};

/// The fields of the rows: those of the type of the first argument, of the row itself if that is of no
/// type, or of the call's list where it is NULL.
fn fields_of(call: &Call<'_>, args: &[Datum], name: &str) -> Result<Vec<RowField>> {
    match (call.result, args.any(0)?) {
        (TypeId::RECORD, Datum::Record(record)) => Ok(fields_of_row(record)),
        (TypeId::RECORD, _) => listed::fields(args)?.ok_or_else(|| {
            let message = format!("could not determine row type for result of {name}");
            Error::new(SqlState::FEATURE_NOT_SUPPORTED, message).with_hint(listed::HINT)
        }),
        (kind, _) if kind.is_composite() => call.context.fields(kind),
        _ => Err(Error::new(
            SqlState::DATATYPE_MISMATCH,
            format!("first argument of {name} must be a row type"),
        )),
    }
}

fn fields_of_row(record: &Record) -> Vec<RowField> {
    let name = |at: usize| {
        let own = record.names.as_ref().and_then(|names| names.get(at));
        own.map_or_else(|| format!("f{}", at + 1), |own| own.to_string())
    };
    let types = record.types.iter().enumerate();
    let field = |(at, kind): (usize, &TypeId)| RowField {
        name: name(at),
        kind: *kind,
        typmod: NO_TYPMOD,
        of_domain: false,
    };
    types.map(field).collect()
}

/// # Errors
/// As [`listed::check`], if the call has a list and rows of these fields.
fn check_listed(args: &[Datum], fields: &[RowField]) -> Result<()> {
    let Some(wanted) = listed::fields(args)? else {
        return Ok(());
    };
    let Datum::Record(row) = listed::empty(fields) else {
        return Ok(());
    };
    listed::check(&row, &wanted)
}

/// The row of an object.
fn row(context: &EvalContext, fields: &[RowField], base: &Datum, object: &Datum) -> Result<Datum> {
    coro::check_depth()?;
    let members = match object {
        Datum::Jsonb(_) => None,
        object => Some(text::object_members(object.as_str())?.ok_or_else(|| no_object(object))?),
    };
    let base = match base {
        Datum::Record(record) => Some(record),
        _ => None,
    };
    let mut values = Vec::with_capacity(fields.len());
    for (at, field) in fields.iter().enumerate() {
        let part = match (&members, object) {
            (Some(members), _) => {
                let found = members.iter().rfind(|member| member.0 == field.name);
                found.map(|found| found.1.clone())
            }
            (None, Datum::Jsonb(value)) => match Value(value).view() {
                View::Object(object) => object.get(&field.name).map(json::datum),
                _ => return Err(no_object(object)),
            },
            _ => None,
        };
        let before = base.and_then(|base| base.values.get(at));
        values.push(match (part, before) {
            (Some(part), before) => {
                let of = (field.kind, field.typmod);
                let before = before.unwrap_or(&Datum::Null);
                convert_onto(context, of, (before, &part), &field.name)?
            }
            (None, Some(before)) => before.clone(),
            (None, None) => Datum::Null,
        });
    }
    Ok(Datum::Record(Arc::new(Record {
        types: fields.iter().map(|field| field.kind).collect(),
        values,
        names: Some(fields.iter().map(|field| field.name.clone()).collect()),
    })))
}

/// A field of a composite type; what the object does not have is as in the row before.
pub(super) fn nested(
    context: &EvalContext,
    kind: TypeId,
    (before, object): (&Datum, &Datum),
) -> Result<Datum> {
    let fields = context.fields(kind)?;
    row(context, &fields, before, object)
}

/// `json_populate_record(base, object)`, `jsonb_populate_record(base, object)`.
pub(crate) fn populate_record(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (base, object) = (args.any(0)?, args.any(1)?);
    let name = match object {
        Datum::Jsonb(_) => "jsonb_populate_record",
        _ => "json_populate_record",
    };
    let fields = fields_of(call, args, name)?;
    let made = match object.is_null() {
        true => base.clone(),
        false => row(call.context, &fields, base, object)?,
    };
    check_listed(args, &fields)?;
    match made.is_null() && listed::fields(args)?.is_some() {
        true => Ok(listed::empty(&fields)),
        false => Ok(made),
    }
}

fn rows(call: &Call<'_>, args: &[Datum], name: &'static str) -> Result<Rows> {
    let fields = fields_of(call, args, name)?;
    let (base, parts) = (args.any(0)?.clone(), args.any(1)?);
    let parts = match parts {
        Datum::Null => return Ok(Box::new(std::iter::empty())),
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
    check_listed(args, &fields)?;
    let context = call.context.clone();
    let rows = parts.into_iter();
    Ok(Box::new(
        rows.map(move |part| row(&context, &fields, &base, &part)),
    ))
}

/// `json_populate_recordset(base, array of objects)`.
pub(crate) fn json_populate_recordset(call: &Call<'_>, args: &[Datum]) -> Result<Rows> {
    rows(call, args, "json_populate_recordset")
}

/// `jsonb_populate_recordset(base, array of objects)`.
pub(crate) fn jsonb_populate_recordset(call: &Call<'_>, args: &[Datum]) -> Result<Rows> {
    rows(call, args, "jsonb_populate_recordset")
}
