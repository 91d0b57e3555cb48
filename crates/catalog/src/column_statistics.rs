//! What ANALYZE has found of one column, or of one expression (PostgreSQL 15 manual, section 72.1), and its
//! form in rows of the catalog ([`super::statistics`], [`super::extended`]).
//!
//! ```text
//! no NULLs, 4 bytes, 3 values: 'a' 0.5, 'b' 0.3, 'c' 0.2
//! ```
//!
//! # Invariants
//! - Fractions are of all rows of the table, NULLs among them.
//! - Values ascend in a histogram and frequencies descend in a list of common values, which has none
//!   of the values that the histogram is over.

use base::codec::{put_bytes, put_signed, put_varint, Reader};
use base::{Error, Result};
use types::{decode_column, encode_column, Datum, TypeId, NO_TYPMOD};

use super::lists::read_list;

/// Of a column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ColumnStatistics {
    /// Its type then.
    pub type_id: TypeId,
    /// Which part of the rows has NULL.
    pub null_fraction: f32,
    /// The average width of the others, in bytes as PostgreSQL stores them.
    pub width: i32,
    /// How many different values there are; negative: that many times the number of rows. 0 if nobody
    /// knows.
    pub distinct: f32,
    /// The most common values, the most common one first.
    pub common: Vec<Datum>,
    /// Which part of the rows has each of them.
    pub frequencies: Vec<f32>,
    /// Values that divide all others into parts with equally many rows, the least and the greatest
    /// among them; none if there are less than two.
    pub histogram: Vec<Datum>,
    /// How far the order of the values is that of the rows, from -1 to 1; none if that means nothing.
    pub correlation: Option<f32>,
}

impl ColumnStatistics {
    /// How many different values a table of so many rows has there; none if nobody knows.
    pub fn distinct_of(&self, rows: f64) -> Option<f64> {
        let distinct = f64::from(self.distinct);
        match distinct {
            0.0 => None,
            _ if distinct < 0.0 => Some((-distinct * rows).max(1.0)),
            _ => Some(distinct.min(rows).max(1.0)),
        }
    }
}

fn put_float(out: &mut Vec<u8>, value: f32) {
    out.extend_from_slice(&value.to_bits().to_be_bytes());
}

fn read_float(reader: &mut Reader<'_>) -> Result<f32> {
    let bytes = reader.take(4)?;
    let bits = bytes
        .iter()
        .fold(0, |sum, byte| sum << 8 | u32::from(*byte));
    Ok(f32::from_bits(bits))
}

fn put_values(out: &mut Vec<u8>, type_id: TypeId, values: &[Datum]) -> Result<()> {
    put_varint(out, values.len() as u64);
    let mut bytes = Vec::new();
    for value in values {
        bytes.clear();
        encode_column(type_id, NO_TYPMOD, value, &mut bytes)?;
        put_bytes(out, &bytes);
    }
    Ok(())
}

fn read_values(reader: &mut Reader<'_>, type_id: TypeId) -> Result<Vec<Datum>> {
    read_list(reader, |reader| {
        decode_column(type_id, NO_TYPMOD, reader.bytes()?)
    })
}

/// Appends what was found of a column.
pub(super) fn put_column(out: &mut Vec<u8>, column: &ColumnStatistics) -> Result<()> {
    put_varint(out, u64::from(column.type_id.0));
    put_float(out, column.null_fraction);
    put_signed(out, i64::from(column.width));
    put_float(out, column.distinct);
    put_values(out, column.type_id, &column.common)?;
    for frequency in &column.frequencies {
        put_float(out, *frequency);
    }
    put_values(out, column.type_id, &column.histogram)?;
    out.push(u8::from(column.correlation.is_some()));
    put_float(out, column.correlation.unwrap_or_default());
    Ok(())
}

/// Reads what [`put_column`] made.
pub(super) fn read_column(reader: &mut Reader<'_>) -> Result<ColumnStatistics> {
    let mut column = ColumnStatistics {
        type_id: TypeId(reader.varint_as()?),
        null_fraction: read_float(reader)?,
        width: narrow(reader.signed()?)?,
        distinct: read_float(reader)?,
        ..ColumnStatistics::default()
    };
    column.common = read_values(reader, column.type_id)?;
    for _ in 0..column.common.len() {
        column.frequencies.push(read_float(reader)?);
    }
    column.histogram = read_values(reader, column.type_id)?;
    let has_correlation = reader.u8()? != 0;
    let correlation = read_float(reader)?;
    column.correlation = has_correlation.then_some(correlation);
    Ok(column)
}

/// A number that must fit.
pub(super) fn narrow(value: i64) -> Result<i32> {
    i32::try_from(value).map_err(|_| Error::corrupted("statistics with a large number"))
}
