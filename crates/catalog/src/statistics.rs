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
//! - What was found of a column is of use only while the column has the type it had.
//!
//! # What it leaves out
//! Statistics of expressions of indexes, and of elements of arrays. Those of several columns together, and
//! of expressions, are objects of their own ([`super::extended`]).

use std::sync::Arc;

use base::codec::{put_f64, put_signed, put_varint, Reader};
use base::row::{Row, RowBuilder};
use base::{Error, Result};

use super::column_statistics::{narrow, put_column, read_column};
use super::extended::{self, Extended, Gathered};
use super::{Catalog, Table};
use crate::layout::FIRST_USER_OID;
use crate::local::is_local;
use functions::strings::quote_identifier;

pub use super::column_statistics::ColumnStatistics;

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

/// A row of [`crate::layout::STATISTICS`].
#[derive(Clone, Debug, PartialEq)]
pub enum Known {
    /// Of a table.
    Table(Arc<TableStatistics>),
    /// Of a column.
    Column(Arc<ColumnStatistics>),
    /// How many common values and parts of a histogram a column is to have.
    Target(i32),
    /// What is to be found of several columns, or of expressions.
    Extended(Arc<Extended>),
    /// What was found of them.
    Gathered(Arc<Gathered>),
}

/// Table, column (from 1; 0 the table itself; the oid of extended statistics) and what is known.
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

impl Catalog {
    /// All extended statistics of the database.
    pub fn all_extended(&self) -> impl Iterator<Item = &Arc<Extended>> {
        self.statistics.iter().filter_map(|(_, known)| match known {
            Known::Extended(found) => Some(found),
            _ => None,
        })
    }

    /// Those that are about a table, in the order in which they were made.
    pub fn extended_of(&self, table: u32) -> impl Iterator<Item = &Arc<Extended>> {
        // Numbers of columns are less than any oid of a user's.
        let of_table = (table, FIRST_USER_OID, 0)..=(table, u32::MAX, u32::MAX);
        let found = self.statistics.range(of_table);
        found.filter_map(|(_, known)| match known {
            Known::Extended(found) => Some(found),
            _ => None,
        })
    }

    /// The extended statistics of that oid.
    pub fn extended(&self, oid: u32) -> Option<&Arc<Extended>> {
        self.all_extended().find(|known| known.oid == oid)
    }

    /// The extended statistics of that name.
    pub fn extended_named(&self, schema: u32, name: &str) -> Option<&Arc<Extended>> {
        let mut all = self.all_extended();
        all.find(|known| known.schema == schema && known.name == name)
    }

    /// The extended statistics that a name without a schema means; temporary ones have none such.
    pub fn visible_extended(&self, search_path: &[u32], name: &str) -> Option<&Arc<Extended>> {
        let mut path = search_path.iter().filter(|schema| !is_local(**schema));
        path.find_map(|schema| self.extended_named(*schema, name))
    }

    /// The name of extended statistics, quoted where it must be, with its schema unless the search path finds it.
    pub fn shown_extended(&self, search_path: &[u32], oid: u32) -> Option<String> {
        let known = self.extended(oid)?;
        let name = quote_identifier(&known.name);
        let visible = self.visible_extended(search_path, &known.name);
        match visible.is_some_and(|found| found.oid == oid) {
            true => Some(name),
            false => {
                let schema = self.schema_by_oid(known.schema)?;
                Some(format!("{}.{name}", quote_identifier(&schema.name)))
            }
        }
    }

    /// What was found of extended statistics, if that is still of use.
    pub fn gathered(&self, of: &Extended) -> Option<&Arc<Gathered>> {
        match self.statistics.get(&(of.table, of.oid, extended::GATHERED)) {
            Some(Known::Gathered(found)) => Some(found),
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
const KIND_EXTENDED: u8 = 4;
const KIND_GATHERED: u8 = 5;

/// The row.
pub(super) fn encode(known: &Known) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    put_varint(&mut out, FORMAT);
    match known {
        Known::Table(table) => {
            out.push(KIND_TABLE_AND_AUTO);
            put_f64(&mut out, table.rows);
            put_signed(&mut out, table.analyzed);
            put_varint(&mut out, table.count);
            put_signed(&mut out, table.auto_analyzed);
            put_varint(&mut out, table.auto_count);
        }
        Known::Column(column) => {
            out.push(KIND_COLUMN);
            put_column(&mut out, column)?;
        }
        Known::Target(target) => {
            out.push(KIND_TARGET);
            put_signed(&mut out, i64::from(*target));
        }
        Known::Extended(made) => {
            out.push(KIND_EXTENDED);
            extended::put_extended(&mut out, made);
        }
        Known::Gathered(found) => {
            out.push(KIND_GATHERED);
            extended::put_gathered(&mut out, found)?;
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
    let known = match reader.u8()? {
        kind @ (KIND_TABLE | KIND_TABLE_AND_AUTO) => {
            let mut table = TableStatistics {
                rows: reader.f64()?,
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
        KIND_COLUMN => Known::Column(Arc::new(read_column(&mut reader)?)),
        KIND_TARGET => Known::Target(narrow(reader.signed()?)?),
        KIND_EXTENDED => Known::Extended(Arc::new(extended::read_extended(&mut reader)?)),
        KIND_GATHERED => Known::Gathered(Arc::new(extended::read_gathered(&mut reader)?)),
        other => return Err(Error::corrupted(format!("statistics of kind {other}"))),
    };
    reader.finish()?;
    Ok(known)
}

#[cfg(test)]
mod tests {
    use types::{Datum, TypeId};

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
