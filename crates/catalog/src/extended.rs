//! Extended statistics: what is to be found out of several columns together, or of expressions, and what
//! ANALYZE has found of them (PostgreSQL 15 manual, sections 14.2.2 and 72.2).
//!
//! ```text
//! create statistics s (dependencies, mcv) on city, zip, (lower(name)) from t
//!
//! database, table, statistics, what
//! 5, 16384, 16390, OBJECT      s: columns 2 and 3, expression "lower(name)", dependencies and common values
//! 5, 16384, 16390, GATHERED    3 => 2: 0.98; Paris 75001 ann: 0.02, …; lower(name): 900 values
//! ```
//! Both are rows of [`crate::layout::STATISTICS`] beside those of the table's columns: so they go with their
//! table, belong to one session if it does, and are the same on all replicas.
//!
//! What statistics are about are *parts*, numbered as PostgreSQL numbers them: columns by their numbers,
//! ascending, then expressions as -1, -2 and so on ([`Extended::parts`]).
//!
//! # Invariants
//! - Columns ascend, and none is there twice.
//! - The texts of expressions name the table's columns as they are called now, as those of indexes.
//! - What was found is of use only while the parts have the types they had; whoever gives a column another
//!   type forgets it.
//!
//! # What it leaves out
//! What is true of a table together with those that inherit from it.

use std::sync::Arc;

use base::codec::{put_bytes, put_f64, put_signed, put_varint, Reader};
use base::{Error, Result};
use functions::mcv_list;
use types::TypeId;

pub use functions::mcv_list::{Combination, CommonCombinations};

use super::column_statistics::{narrow, put_column, read_column, ColumnStatistics};
use super::lists::read_list;
use super::Table;

/// Statistics are about so many columns and expressions at most.
pub const PARTS_MAX: usize = 8;

/// The object.
pub(super) const OBJECT: u32 = 2;
/// What ANALYZE has found of it.
pub(super) const GATHERED: u32 = 3;

/// Which statistics of several parts are to be kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds {
    /// How many combinations of values there are.
    pub distinct: bool,
    /// How far some parts say what others are.
    pub dependencies: bool,
    /// The most common combinations.
    pub common: bool,
}

impl Kinds {
    /// All of them.
    pub const ALL: Kinds = Kinds {
        distinct: true,
        dependencies: true,
        common: true,
    };
}

/// An expression that statistics are about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expression {
    /// As SQL over the table's columns.
    pub text: String,
    /// Its type.
    pub type_id: TypeId,
    /// The type's modifier, or -1.
    pub typmod: i32,
    /// The places of the columns that it looks at.
    pub uses: Vec<usize>,
}

/// What CREATE STATISTICS makes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extended {
    /// Its oid.
    pub oid: u32,
    /// Its schema.
    pub schema: u32,
    /// Its name.
    pub name: String,
    /// The role that owns it.
    pub owner: u32,
    /// The table that it is about.
    pub table: u32,
    /// How much is to be kept, or -1.
    pub target: i32,
    /// What is to be found of several parts.
    pub kinds: Kinds,
    /// The places of its columns.
    pub columns: Vec<usize>,
    /// Its expressions.
    pub expressions: Vec<Expression>,
}

impl Extended {
    /// Its parts by number.
    pub fn parts(&self) -> Vec<i16> {
        let columns = self.columns.iter();
        let columns = columns.map(|place| i16::try_from(place + 1).unwrap_or(i16::MAX));
        let expressions = 1..=self.expressions.len();
        let expressions = expressions.map(|place| -i16::try_from(place).unwrap_or(i16::MAX));
        columns.chain(expressions).collect()
    }

    /// The types of its parts.
    pub fn types(&self, table: &Table) -> Vec<TypeId> {
        let columns = self.columns.iter();
        let columns = columns.map(|place| {
            let column = table.columns.get(*place);
            column.map_or(TypeId::NONE, |column| column.type_id)
        });
        let expressions = self.expressions.iter().map(|known| known.type_id);
        columns.chain(expressions).collect()
    }

    /// Whether it looks at a column.
    pub fn looks_at(&self, place: usize) -> bool {
        let mut expressions = self.expressions.iter();
        self.columns.contains(&place) || expressions.any(|known| known.uses.contains(&place))
    }
}

/// How many combinations some parts have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Combined {
    /// The parts, by their numbers.
    pub parts: Vec<i16>,
    /// How many combinations of values.
    pub distinct: f64,
}

/// How far some parts say what another is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Degree {
    /// The parts, by their numbers; the last is the one that follows from the others.
    pub parts: Vec<i16>,
    /// For which part of the rows, from 0 to 1.
    pub degree: f64,
}

/// What ANALYZE has found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gathered {
    /// How many combinations there are of each two or more parts.
    pub distinct: Option<Vec<Combined>>,
    /// Which parts follow from others, as far as they do at all.
    pub dependencies: Option<Vec<Degree>>,
    /// The most common combinations.
    pub common: Option<CommonCombinations>,
    /// What was found of each expression by itself; none if nothing.
    pub expressions: Vec<Option<Arc<ColumnStatistics>>>,
}

pub(super) fn put_extended(out: &mut Vec<u8>, made: &Extended) {
    for number in [made.oid, made.schema, made.owner, made.table] {
        put_varint(out, u64::from(number));
    }
    put_bytes(out, made.name.as_bytes());
    put_signed(out, i64::from(made.target));
    let kinds = [
        made.kinds.distinct,
        made.kinds.dependencies,
        made.kinds.common,
    ];
    out.extend(kinds.map(u8::from));
    put_places(out, &made.columns);
    put_varint(out, made.expressions.len() as u64);
    for known in &made.expressions {
        put_bytes(out, known.text.as_bytes());
        put_varint(out, u64::from(known.type_id.0));
        put_signed(out, i64::from(known.typmod));
        put_places(out, &known.uses);
    }
}

fn put_places(out: &mut Vec<u8>, places: &[usize]) {
    put_varint(out, places.len() as u64);
    for place in places {
        put_varint(out, *place as u64);
    }
}

pub(super) fn read_extended(reader: &mut Reader<'_>) -> Result<Extended> {
    Ok(Extended {
        oid: reader.varint_as()?,
        schema: reader.varint_as()?,
        owner: reader.varint_as()?,
        table: reader.varint_as()?,
        name: reader.str()?.to_owned(),
        target: narrow(reader.signed()?)?,
        kinds: Kinds {
            distinct: reader.u8()? != 0,
            dependencies: reader.u8()? != 0,
            common: reader.u8()? != 0,
        },
        columns: read_list(reader, |reader| reader.varint_as())?,
        expressions: read_list(reader, |reader| {
            Ok(Expression {
                text: reader.str()?.to_owned(),
                type_id: TypeId(reader.varint_as()?),
                typmod: narrow(reader.signed()?)?,
                uses: read_list(reader, |reader| reader.varint_as())?,
            })
        })?,
    })
}

/// Lists of parts, each with a number.
fn put_numbered<'l>(out: &mut Vec<u8>, list: impl ExactSizeIterator<Item = (&'l [i16], f64)>) {
    put_varint(out, list.len() as u64);
    for (parts, number) in list {
        put_varint(out, parts.len() as u64);
        for part in parts {
            put_signed(out, i64::from(*part));
        }
        put_f64(out, number);
    }
}

fn read_numbered(reader: &mut Reader<'_>) -> Result<Vec<(Vec<i16>, f64)>> {
    read_list(reader, |reader| {
        let parts = read_list(reader, |reader| {
            let part = i16::try_from(reader.signed()?);
            part.map_err(|_| Error::corrupted("statistics of a column with a large number"))
        })?;
        Ok((parts, reader.f64()?))
    })
}

pub(super) fn put_gathered(out: &mut Vec<u8>, found: &Gathered) -> Result<()> {
    out.push(u8::from(found.distinct.is_some()));
    if let Some(distinct) = &found.distinct {
        let list = distinct.iter();
        put_numbered(out, list.map(|known| (&known.parts[..], known.distinct)));
    }
    out.push(u8::from(found.dependencies.is_some()));
    if let Some(dependencies) = &found.dependencies {
        let list = dependencies.iter();
        put_numbered(out, list.map(|known| (&known.parts[..], known.degree)));
    }
    out.push(u8::from(found.common.is_some()));
    if let Some(common) = &found.common {
        mcv_list::put(out, common)?;
    }
    put_varint(out, found.expressions.len() as u64);
    for known in &found.expressions {
        out.push(u8::from(known.is_some()));
        if let Some(known) = known {
            put_column(out, known)?;
        }
    }
    Ok(())
}

pub(super) fn read_gathered(reader: &mut Reader<'_>) -> Result<Gathered> {
    let mut found = Gathered::default();
    if reader.u8()? != 0 {
        let list = read_numbered(reader)?.into_iter();
        let list = list.map(|(parts, distinct)| Combined { parts, distinct });
        found.distinct = Some(list.collect());
    }
    if reader.u8()? != 0 {
        let list = read_numbered(reader)?.into_iter();
        let list = list.map(|(parts, degree)| Degree { parts, degree });
        found.dependencies = Some(list.collect());
    }
    if reader.u8()? != 0 {
        found.common = Some(mcv_list::read(reader)?);
    }
    found.expressions = read_list(reader, |reader| match reader.u8()? {
        0 => Ok(None),
        _ => Ok(Some(Arc::new(read_column(reader)?))),
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use types::Datum;

    use super::*;
    use crate::statistics::{decode, encode, Known};

    fn read_back(known: Known) {
        let row = encode(&known).expect("a row");
        assert_eq!(decode(&row).expect("what was written"), known);
    }

    #[test]
    fn objects_and_what_was_found_of_them_are_read_as_they_were_written() {
        let expression = Expression {
            text: "lower(a)".to_owned(),
            type_id: TypeId::TEXT,
            typmod: -1,
            uses: vec![0],
        };
        let made = Extended {
            oid: 16_390,
            schema: 2_200,
            name: "s".to_owned(),
            owner: 10,
            table: 16_384,
            target: -1,
            kinds: Kinds {
                common: true,
                ..Kinds::default()
            },
            columns: vec![0, 2],
            expressions: vec![expression],
        };
        assert_eq!(made.parts(), [1, 3, -1]);
        assert!(made.looks_at(2) && !made.looks_at(1));
        read_back(Known::Extended(Arc::new(made)));
        let item = Combination {
            values: vec![Datum::Int4(1), Datum::Null],
            frequency: 0.5,
            base_frequency: 0.25,
        };
        let found = Gathered {
            distinct: Some(vec![Combined {
                parts: vec![1, 3],
                distinct: 12.0,
            }]),
            dependencies: Some(vec![Degree {
                parts: vec![1, -1],
                degree: 0.75,
            }]),
            common: Some(CommonCombinations {
                types: vec![TypeId::INT4, TypeId::TEXT],
                items: vec![item],
            }),
            expressions: vec![None, Some(Arc::new(ColumnStatistics::default()))],
        };
        read_back(Known::Gathered(Arc::new(found)));
        read_back(Known::Gathered(Arc::default()));
    }
}
