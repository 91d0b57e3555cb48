//! Trees made of a table's rows: an index on a table that has rows, or a table whose rows get other
//! keys. Each replica makes them from its own rows, beside the work, and only the switch to them is
//! in line with other commits.

use super::trees::IndexDescriptor;
use crate::error::Result;
use crate::ids::{SequenceId, TreeId};

/// Trees to be made of the rows that a table has: indexes, or the table itself under other keys
/// together with its indexes, whose entries end with the new keys.
///
/// ```text
/// CREATE INDEX            source t   rekeyed none        indexes [i on t]
/// ADD PRIMARY KEY (a)     source t   rekeyed u, by a     indexes [all of t's, anew, on u]
/// DROP of a primary key   source t   rekeyed u, numbers  indexes [all of t's, anew, on u]
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    /// The tree of the table's rows. It is not dropped by this.
    pub source: TreeId,
    /// The tree that gets the same rows under other keys, if that is wanted.
    pub rekeyed: Option<Rekeyed>,
    /// New indexes: on the rekeyed tree if there is one, else on the source.
    pub indexes: Vec<(TreeId, IndexDescriptor)>,
}

/// A tree that gets the rows of another under other keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rekeyed {
    /// The new tree.
    pub tree: TreeId,
    /// The new keys.
    pub key: RowKey,
}

/// What the keys of rows are made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowKey {
    /// The columns of such an index on the new tree, none of which may be NULL.
    Columns(IndexDescriptor),
    /// Numbers taken from a sequence, in the order of the old keys (8 bytes, big-endian).
    Numbers(SequenceId),
}

/// How a build ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Built {
    /// The trees are made, for this transaction to read, and for all once it has committed.
    Done,
    /// A further row has the key of another, in the rekeyed tree or in the unique index named. The
    /// caller rolls back, to a savepoint at least.
    Duplicate {
        /// Where.
        tree: TreeId,
        /// The row.
        row: Vec<u8>,
    },
    /// A row has a NULL in a column of its new key. The caller rolls back, to a savepoint at least.
    NullKey {
        /// The column, from 0.
        column: usize,
    },
}

/// Makes trees of rows.
pub trait Building {
    /// Makes trees of a table's rows as they are now, own writes included, and inserts their
    /// descriptors. Ids of the trees are new. Waits until this and enough other replicas have made
    /// them; rows of the source are not logged again.
    ///
    /// The caller holds a table lock on the source that keeps others from writing it
    /// ([`super::TableLock::Share`] or stronger), and, when its rows get other keys, drops the
    /// source's tree and its indexes' in the same transaction.
    ///
    /// # Errors
    /// 25006 where nothing is written; 40001 when leadership has changed.
    fn build(&mut self, build: &Build) -> Result<Built>;
}
