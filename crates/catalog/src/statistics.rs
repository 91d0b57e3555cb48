//! What ANALYZE has found out of tables and their columns (PostgreSQL 15 manual, sections 14.2 and
//! 72.1), and the rows of [`crate::layout::STATISTICS`] in which it is kept ([`super::statistics_store`]
//! writes them).
//!
//! ```text
//! database, table, column, what
//! 5, 16384, 0, FOUND       1,000,000 rows, analyzed 2 times
//! 5, 16384, 2, FOUND       no NULLs, 4 bytes, 3 values: 'a' 0.5, 'b' 0.3, 'c' 0.2
//! 5, 16384, 2, TARGET      ALTER COLUMN … SET STATISTICS 500
//! ```
//! They are rows of the catalog like others: written by transactions, the same on all replicas, part
//! of each version of a [`Catalog`].
//!
//! # Invariants
//! - Fractions are of all rows of the table, NULLs among them.
//! - Values ascend in a histogram and frequencies descend in a list of common values, which has none
//!   of the values that the histogram is over.
//! - What was found of a column is of use only while the column has the type it had.
//!
//! # What it leaves out
//! Statistics of expressions of indexes, of elements of arrays, and of several columns together.

use std::sync::Arc;

use base::codec::{put_bytes, put_signed, put_varint, Reader};
use base::row::{Row, RowBuilder};
use base::{Error, Result};
use types::{decode_column, encode_column, Datum, TypeId, NO_TYPMOD};

use super::lists::read_list;
use super::{Catalog, Table};

/// The version of this encoding.
const FORMAT: u64 = 1;

/// What ANALYZE has found.
pub(super) const FOUND: u32 = 0;
/// What ALTER COLUMN … SET STATISTICS has said.
pub(super) const TARGET: u32 = 1;

/// Of a table: what is true of it as a whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableStatistics {
    /// How many rows it had.
    pub rows: f64,
    /// When somebody's ANALYZE last looked at it, in microseconds since 2000-01-01 UTC.
    pub analyzed: i64,
    /// How often that was.
    pub count: u64,
    /// When it was last looked at by itself.
    pub auto_analyzed: i64,
    /// How often that was.
    pub auto_count: u64,
}

impl TableStatistics {
    /// When somebody's ANALYZE last looked at it, if ever.
    pub fn last_analyze(&self) -> Option<i64> {
        (self.count > 0).then_some(self.analyzed)
    }

    /// When it was last looked at by itself, if ever.
    pub fn last_auto_analyze(&self) -> Option<i64> {
        (self.auto_count > 0).then_some(self.auto_analyzed)
    }
}

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

/// A row of [`crate::layout::STATISTICS`].
#[derive(Clone, Debug, PartialEq)]
pub enum Known {
    /// Of a table.
    Table(Arc<TableStatistics>),
    /// Of a column.
    Column(Arc<ColumnStatistics>),
    /// How many common values and parts of a histogram a column is to have.
    Target(i32),
}

/// Table, column (from 1; 0 the table itself) and what is known.
pub type Place = (u32, u32, u32);

impl Catalog {
    /// What was found of a table.
    pub fn table_statistics(&self, table: u32) -> Option<&Arc<TableStatistics>> {
        match self.statistics.get(&(table, 0, FOUND)) {
            Some(Known::Table(found)) => Some(found),
            _ => None,
        }
    }

    /// What was found of a column, by its place, if it still has the type it had.
    pub fn column_statistics(
        &self,
        table: &Table,
        column: usize,
    ) -> Option<&Arc<ColumnStatistics>> {
        let number = number(column);
        match self.statistics.get(&(table.oid, number, FOUND)) {
            Some(Known::Column(found)) => {
                let now = table.columns.get(column)?.type_id;
                (found.type_id == now).then_some(found)
            }
            _ => None,
        }
    }

    /// What was said of how much there is to be found of a column, by its place.
    pub fn statistics_target(&self, table: u32, column: usize) -> Option<i32> {
        match self.statistics.get(&(table, number(column), TARGET)) {
            Some(Known::Target(target)) => Some(*target),
            _ => None,
        }
    }
}

/// The number of a column, by its place.
pub(super) fn number(column: usize) -> u32 {
    u32::try_from(column + 1).unwrap_or(u32::MAX)
}

/// The place that a key names, whose first part is the database.
pub(super) fn place_of(oids: &[u32]) -> Place {
    (oids[1], oids[2], oids[3])
}

const KIND_TABLE: u8 = 0;
const KIND_COLUMN: u8 = 1;
const KIND_TARGET: u8 = 2;
/// As [`KIND_TABLE`], with what was looked at by itself.
const KIND_TABLE_AND_AUTO: u8 = 3;

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

/// The row.
pub(super) fn encode(known: &Known) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    put_varint(&mut out, FORMAT);
    match known {
        Known::Table(table) => {
            out.push(KIND_TABLE_AND_AUTO);
            out.extend_from_slice(&table.rows.to_bits().to_be_bytes());
            put_signed(&mut out, table.analyzed);
            put_varint(&mut out, table.count);
            put_signed(&mut out, table.auto_analyzed);
            put_varint(&mut out, table.auto_count);
        }
        Known::Column(column) => {
            out.push(KIND_COLUMN);
            put_varint(&mut out, u64::from(column.type_id.0));
            put_float(&mut out, column.null_fraction);
            put_signed(&mut out, i64::from(column.width));
            put_float(&mut out, column.distinct);
            put_values(&mut out, column.type_id, &column.common)?;
            for frequency in &column.frequencies {
                put_float(&mut out, *frequency);
            }
            put_values(&mut out, column.type_id, &column.histogram)?;
            out.push(u8::from(column.correlation.is_some()));
            put_float(&mut out, column.correlation.unwrap_or_default());
        }
        Known::Target(target) => {
            out.push(KIND_TARGET);
            put_signed(&mut out, i64::from(*target));
        }
    }
    Ok(RowBuilder::new(1).value(&out).finish())
}

/// Reads what [`encode`] made.
///
/// # Errors
/// XX001 when it is something else.
pub(super) fn decode(row: &[u8]) -> Result<Known> {
    let row = Row::parse(row)?;
    let bytes = row.column(0).unwrap_or_default();
    let mut reader = Reader::new(bytes);
    let format = reader.varint()?;
    if format != FORMAT {
        let message = format!("statistics of format {format}, not {FORMAT}");
        return Err(Error::corrupted(message));
    }
    let narrow = |value: i64| {
        i32::try_from(value).map_err(|_| Error::corrupted("statistics with a large number"))
    };
    let known = match reader.u8()? {
        kind @ (KIND_TABLE | KIND_TABLE_AND_AUTO) => {
            let rows = reader.take(8)?;
            let rows = rows.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
            let mut table = TableStatistics {
                rows: f64::from_bits(rows),
                analyzed: reader.signed()?,
                count: reader.varint()?,
                ..TableStatistics::default()
            };
            if kind == KIND_TABLE_AND_AUTO {
                table.auto_analyzed = reader.signed()?;
                table.auto_count = reader.varint()?;
            }
            Known::Table(Arc::new(table))
        }
        KIND_COLUMN => {
            let mut column = ColumnStatistics {
                type_id: TypeId(reader.varint_as()?),
                null_fraction: read_float(&mut reader)?,
                width: narrow(reader.signed()?)?,
                distinct: read_float(&mut reader)?,
                ..ColumnStatistics::default()
            };
            column.common = read_values(&mut reader, column.type_id)?;
            for _ in 0..column.common.len() {
                column.frequencies.push(read_float(&mut reader)?);
            }
            column.histogram = read_values(&mut reader, column.type_id)?;
            let has_correlation = reader.u8()? != 0;
            let correlation = read_float(&mut reader)?;
            column.correlation = has_correlation.then_some(correlation);
            Known::Column(Arc::new(column))
        }
        KIND_TARGET => Known::Target(narrow(reader.signed()?)?),
        other => return Err(Error::corrupted(format!("statistics of kind {other}"))),
    };
    reader.finish()?;
    Ok(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_read_as_it_was_written() {
        let text = |text: &str| Datum::text(text);
        let column = ColumnStatistics {
            type_id: TypeId::TEXT,
            null_fraction: 0.25,
            width: 4,
            distinct: -0.5,
            common: vec![text("b"), text("")],
            frequencies: vec![0.5, 0.125],
            histogram: vec![text("a"), text("z")],
            correlation: Some(-0.75),
        };
        let table = TableStatistics {
            rows: 12.5,
            analyzed: -7,
            count: 3,
            auto_analyzed: 9,
            auto_count: 1,
        };
        let all = [
            Known::Table(Arc::new(table)),
            Known::Column(Arc::new(column)),
            Known::Column(Arc::new(ColumnStatistics::default())),
            Known::Target(-1),
        ];
        for known in all {
            let row = encode(&known).expect("a row");
            assert_eq!(decode(&row).expect("what was written"), known);
        }
    }

    #[test]
    fn what_is_something_else_is_refused() {
        let row = RowBuilder::new(1).value(&[1, 9]).finish();
        assert!(decode(&row).is_err());
        assert!(decode(&RowBuilder::new(1).value(&[2]).finish()).is_err());
    }
}
