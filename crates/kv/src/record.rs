//! The records of a group's log.

use base::row::RowDelta;
use base::{Key, TreeId};

/// One row that a transaction changes. Secondary indexes are not mentioned: their entries are
/// derived when the record is applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowChange {
    /// The tree of the table's rows (never an index's).
    pub tree: TreeId,
    /// The key of the row.
    pub key: Key,
    /// What happens to it.
    pub change: Change,
}

/// What happens to a row, compared with the newest version before the transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It was absent and is now this.
    Insert(Vec<u8>),
    /// It was present and these columns change.
    Update(RowDelta),
    /// It was present and goes.
    Delete,
}
