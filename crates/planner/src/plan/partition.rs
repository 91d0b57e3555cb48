//! The partitions below a partitioned table, and the heirs of a table, as statements about it see them.
//!
//! ```text
//! m by range (k)               tree: level by k
//! ├─ m1 [1, 9)                 ├─ leaf 0: its rows have their columns where m's have them
//! └─ m2 [9, 20) by list (c)    └─ tree: level by c
//!    └─ m2a ('a')                  └─ leaf 1: columns at other places
//! ```
//! A table that others inherit from ([`catalog::inheritance`]) is read and changed in the same way: its own
//! rows and those of each heir are leaves, between which no row moves.
//!
//! Rows of such a table have, after its columns, the key of the row if that was asked for, and the oid of
//! the leaf that has it.

use std::rc::Rc;
use std::sync::Arc;

use super::{ComputedAccess, Expr, Insert, KnownTogether, Program, Row};
use catalog::partition::{place_of, Bound, ColumnMap};
use catalog::Table;
use types::{Datum, TypeId};

/// All that is below a partitioned table, or a table with all that inherit from it, itself first.
#[derive(Debug)]
pub struct Partitions {
    /// Which leaf a row belongs to; none where each stays in the table that it is in.
    pub tree: Option<Tree>,
    /// The tables of rows, in the order in which they are read.
    pub leaves: Vec<Leaf>,
}

/// A partitioned table.
#[derive(Debug)]
pub struct Tree {
    /// By what its rows are divided.
    pub level: Rc<Level>,
    /// What is below it, in the order of the level's bounds.
    pub below: Vec<Below>,
}

/// A partition.
#[derive(Debug)]
pub enum Below {
    /// A table of rows, by its place among the leaves.
    Leaf(usize),
    /// A partitioned table.
    Tree(Tree),
}

/// By what the rows of a partitioned table are divided.
#[derive(Debug)]
pub struct Level {
    /// The table.
    pub table: Arc<Table>,
    /// The types of its key.
    pub types: Vec<TypeId>,
    /// The key, over the columns of the table that the statement is about.
    pub keys: Vec<Expr>,
    /// The same.
    pub programs: Vec<Program>,
    /// The bounds of its partitions.
    pub bounds: Vec<Bound>,
}

impl Level {
    /// Which of its partitions rows with this key belong to.
    pub fn place_of(&self, key: &[Datum]) -> Option<usize> {
        place_of(&self.types, self.bounds.iter(), key)
    }
}

/// A table of rows.
#[derive(Debug)]
pub struct Leaf {
    /// The table.
    pub table: Arc<Table>,
    /// Where it has the columns; none if all stand at the same places.
    pub columns: Option<ColumnMap>,
    /// It has columns that the table above has not.
    pub has_more: bool,
    /// Its computed indexes.
    pub computed: Option<Rc<[ComputedAccess]>>,
    /// What is known of several of its columns together.
    pub together: Option<Rc<[KnownTogether]>>,
    /// The levels above it, and its place in each.
    pub levels: Vec<(Rc<Level>, usize)>,
}

impl Leaf {
    /// Where it has a column of the table above.
    pub fn place_of(&self, place: usize) -> Option<usize> {
        match &self.columns {
            None => Some(place),
            Some(map) => map.get(place).copied().flatten(),
        }
    }

    /// A row of the leaf as one of the table above it.
    pub fn raised(&self, row: &[Datum]) -> Row {
        raised(self.columns.as_ref(), row, self.table.columns.len())
    }

    /// A row of the table above as one of the leaf, where that has no more columns.
    pub fn lowered(&self, row: &[Datum]) -> Row {
        lowered(self.columns.as_ref(), row, self.table.columns.len())
    }

    /// What becomes of a row of the leaf when the table above has changed its part of it to `row`.
    pub fn lowered_over(&self, old: &[Datum], row: &[Datum]) -> Row {
        let Some(map) = self.columns.as_ref().filter(|_| self.has_more) else {
            return self.lowered(row);
        };
        let mut lowered = old.to_vec();
        for (place, value) in map.iter().zip(row) {
            if let Some(place) = place {
                lowered[*place] = value.clone();
            }
        }
        lowered
    }
}

fn raised(columns: Option<&ColumnMap>, row: &[Datum], width: usize) -> Row {
    match columns {
        None => row[..width].to_vec(),
        Some(map) => {
            let value = |place: &Option<usize>| place.map(|place| row[place].clone());
            let values = map.iter().map(|place| value(place).unwrap_or(Datum::Null));
            values.collect()
        }
    }
}

fn lowered(columns: Option<&ColumnMap>, row: &[Datum], width: usize) -> Row {
    match columns {
        None => row[..width].to_vec(),
        Some(map) => {
            let mut lowered = vec![Datum::Null; width];
            for (place, value) in map.iter().zip(row) {
                if let Some(place) = place {
                    lowered[*place] = value.clone();
                }
            }
            lowered
        }
    }
}

/// A partitioned table through which a leaf is written.
#[derive(Clone, Debug)]
pub struct Through {
    /// The table.
    pub table: Arc<Table>,
    /// Where the leaf has its columns; none if all stand at the same places.
    pub columns: Option<ColumnMap>,
}

impl Through {
    /// A row of the leaf as one of the table.
    pub fn raised(&self, row: &[Datum]) -> Row {
        raised(self.columns.as_ref(), row, row.len())
    }

    /// A row of the table as one of a leaf of so many columns.
    pub fn lowered(&self, row: &[Datum], width: usize) -> Row {
        lowered(self.columns.as_ref(), row, width)
    }
}

impl Partitions {
    /// The leaf that is that table.
    pub fn leaf_of(&self, oid: u32) -> Option<(usize, &Leaf)> {
        let mut leaves = self.leaves.iter().enumerate();
        leaves.find(|(_, leaf)| leaf.table.oid == oid)
    }
}

/// What a statement that writes a partitioned table does with each of its leaves.
#[derive(Debug)]
pub struct Routes {
    /// What there is.
    pub partitions: Rc<Partitions>,
    /// How rows are inserted, and for the most part updated and deleted: leaf by leaf.
    pub leaves: Vec<Insert>,
}

/// What a table that is a partition asks of its rows.
#[derive(Debug)]
pub struct PartitionCheck {
    /// The levels above it, over its own columns, and its place in each.
    pub levels: Vec<(Rc<Level>, usize)>,
}

/// The types of what stands behind the columns of a partitioned table's rows.
pub fn hidden_types(with_key: bool) -> Vec<TypeId> {
    match with_key {
        true => vec![TypeId::BYTEA, TypeId::OID],
        false => vec![TypeId::OID],
    }
}
