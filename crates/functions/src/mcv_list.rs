//! The most common combinations of the values of several columns: what `pg_mcv_list` has, and
//! `pg_mcv_list_items`, which shows it.
//!
//! ```text
//! index  values         nulls   frequency  base_frequency
//! 0      {Paris,75001}  {f,f}   0.5        0.375
//! ```
//! A value of the type is a `Datum::Bytea` that [`put`] has made, so that it needs nothing else to be shown;
//! rows of the catalog have the same bytes. Nobody can make one by its text, as in PostgreSQL.
//!
//! # What it leaves out
//! PostgreSQL's form of these bytes, which is its own.

use base::codec::{put_bytes, put_f64, put_varint, Reader};
use base::{Error, Result};
use types::{decode_column, encode_column, output, Array, Datum, TypeId, NO_TYPMOD};

use super::sets::Records;
use super::{Call, Rows};

/// Values of all parts that are common together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Combination {
    /// The values.
    pub values: Vec<Datum>,
    /// Which part of the rows has them.
    pub frequency: f64,
    /// Which part would have them if the parts had nothing to do with one another.
    pub base_frequency: f64,
}

/// The most common combinations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommonCombinations {
    /// The types of the parts.
    pub types: Vec<TypeId>,
    /// The combinations, the most common one first.
    pub items: Vec<Combination>,
}

/// Appends the bytes of a value.
///
/// # Errors
/// What encoding values gives.
pub fn put(out: &mut Vec<u8>, common: &CommonCombinations) -> Result<()> {
    put_varint(out, common.types.len() as u64);
    for ty in &common.types {
        put_varint(out, u64::from(ty.0));
    }
    put_varint(out, common.items.len() as u64);
    let mut bytes = Vec::new();
    for item in &common.items {
        put_f64(out, item.frequency);
        put_f64(out, item.base_frequency);
        for (value, ty) in item.values.iter().zip(&common.types) {
            out.push(u8::from(!value.is_null()));
            if !value.is_null() {
                bytes.clear();
                encode_column(*ty, NO_TYPMOD, value, &mut bytes)?;
                put_bytes(out, &bytes);
            }
        }
    }
    Ok(())
}

/// Reads what [`put`] made.
///
/// # Errors
/// XX001 when it is something else.
pub fn read(reader: &mut Reader<'_>) -> Result<CommonCombinations> {
    let mut common = CommonCombinations::default();
    let parts: usize = reader.varint_as()?;
    for _ in 0..parts {
        common.types.push(TypeId(reader.varint_as()?));
    }
    let count: usize = reader.varint_as()?;
    for _ in 0..count {
        let mut item = Combination {
            frequency: reader.f64()?,
            base_frequency: reader.f64()?,
            ..Combination::default()
        };
        for ty in &common.types {
            item.values.push(match reader.u8()? {
                0 => Datum::Null,
                _ => decode_column(*ty, NO_TYPMOD, reader.bytes()?)?,
            });
        }
        common.items.push(item);
    }
    Ok(common)
}

pub(crate) static ITEMS: Records = Records {
    columns: &[
        ("index", TypeId::INT4),
        ("values", TypeId::TEXT_ARRAY),
        ("nulls", TypeId::BOOL_ARRAY),
        ("frequency", TypeId::FLOAT8),
        ("base_frequency", TypeId::FLOAT8),
    ],
    rows: items,
};

/// `pg_mcv_list_items`: a row for each combination.
fn items(call: &Call<'_>, args: &[Datum]) -> Result<Rows> {
    let Some(Datum::Bytea(bytes)) = args.first() else {
        return Err(Error::internal("a list of combinations that is none"));
    };
    let common = read(&mut Reader::new(bytes))?;
    let list = |element: TypeId, elements: Vec<Datum>| {
        Datum::Array(std::sync::Arc::new(Array::of(element, elements)))
    };
    let mut rows = Vec::with_capacity(common.items.len());
    for (index, item) in common.items.iter().enumerate() {
        let mut values = Vec::with_capacity(item.values.len());
        for (value, ty) in item.values.iter().zip(&common.types) {
            values.push(match value.is_null() {
                true => Datum::Null,
                false => Datum::text(output(call.context, *ty, value)?),
            });
        }
        let nulls = item.values.iter();
        let nulls = nulls.map(|value| Datum::Bool(value.is_null())).collect();
        rows.push(Ok(ITEMS.row(vec![
            Datum::Int4(i32::try_from(index).unwrap_or(i32::MAX)),
            list(TypeId::TEXT, values),
            list(TypeId::BOOL, nulls),
            Datum::Float8(item.frequency),
            Datum::Float8(item.base_frequency),
        ])));
    }
    Ok(Box::new(rows.into_iter()))
}
