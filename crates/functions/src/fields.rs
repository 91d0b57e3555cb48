//! Fields of rows as values: what `(r).f` reads, and what `SET r.f = …` makes.
//!
//! They are functions for the binder alone ([`FIELD`], [`ASSIGN`]): no name leads to them. A field is
//! named by its place from 0; its name comes behind it, for whoever shows the expression.

use std::sync::Arc;

use base::error::{Error, Result};

use super::{Body, Call, Function, Native, Volatility};
use types::{Datum, Record, TypeId};

const fn internal(oid: u32, name: &'static str, strict: bool, body: Native) -> Function {
    Function {
        oid,
        name,
        arguments: &[TypeId::RECORD, TypeId::ANY],
        variadic: true,
        defaults: 0,
        result: TypeId::ANY,
        volatility: Volatility::Immutable,
        strict,
        body: Body::Native(body),
    }
}

/// The value of a field: the row, the field's place, its name.
pub static FIELD: Function = internal(u32::MAX - 3, "record_field", true, field);
/// The row with another value in a field: the row, the field's place, the types of all fields, the
/// value. NULL as the row has NULLs in all other fields.
pub static ASSIGN: Function = internal(u32::MAX - 4, "record_assign", false, assign);

/// The row with names for its fields.
pub static NAMED: Function = internal(u32::MAX - 5, "record_named", true, named);

fn named(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let [Datum::Record(record), Datum::Array(names)] = args else {
        return Err(Error::internal("names for no row"));
    };
    let names = names.elements.iter().map(|name| name.as_str().to_owned());
    Ok(Datum::Record(Arc::new(Record {
        names: Some(names.collect()),
        ..(**record).clone()
    })))
}

fn place_of(place: &Datum) -> Result<usize> {
    let place = place.as_i64().and_then(|place| usize::try_from(place).ok());
    place.ok_or_else(|| Error::internal("a field without a place"))
}

fn field(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let [Datum::Record(record), place, ..] = args else {
        return Err(Error::internal("a field of no row"));
    };
    Ok(match record.values.get(place_of(place)?) {
        Some(value) => value.clone(),
        None => Datum::Null,
    })
}

fn assign(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let [record, place, Datum::Array(types), value] = args else {
        return Err(Error::internal("an assignment to no row"));
    };
    let place = place_of(place)?;
    let mut record = match record {
        Datum::Record(record) => (**record).clone(),
        _ => {
            let types: Vec<TypeId> = types
                .elements
                .iter()
                .map(|oid| TypeId(oid.as_i64().unwrap_or(0) as u32))
                .collect();
            Record {
                values: vec![Datum::Null; types.len()],
                types,
                names: None,
            }
        }
    };
    match record.values.get_mut(place) {
        Some(field) => *field = value.clone(),
        None => return Err(Error::internal("an assignment to no field")),
    }
    Ok(Datum::Record(Arc::new(record)))
}
