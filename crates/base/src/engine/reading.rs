//! Reading rows, as the statement at work sees them.
//!
//! # Invariants
//! - A statement sees what its snapshot shows and what earlier commands of its own transaction have
//!   written, never what its own command has.
//! - Whatever is found, an absence too, adds to the transaction's debt.

use super::{RowBatch, RowLock};
use crate::error::Result;
use crate::ids::TreeId;
use crate::key::{Key, KeyRange};

/// Which way a scan goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Direction {
    /// From small keys to large ones.
    #[default]
    Forward,
    /// From large keys to small ones.
    Backward,
}

/// Reads rows.
pub trait Reading {
    /// Reads one row into `row` (cleared first); false when there is none.
    fn get(&mut self, tree: TreeId, key: &[u8], row: &mut Vec<u8>) -> Result<bool>;

    /// Whether each step in a tree that waits for an answer costs a message to another node.
    fn is_far(&self, tree: TreeId) -> bool {
        let _ = tree;
        false
    }

    /// Rows that the command will read next, as far as it can: where they are far, they are read together,
    /// and [`Reading::get`] then knows of them already.
    ///
    /// # Errors
    /// As there.
    fn read_ahead(&mut self, tree: TreeId, keys: &[Key]) -> Result<()> {
        let _ = (tree, keys);
        Ok(())
    }

    /// A scan that the command will begin, of as many rows as there are: where it is far, it begins now, and
    /// [`Reading::scan`] finds its first rows there, if it asks for the same and for
    /// [`crate::limits::SCAN_BATCH_ROWS`].
    ///
    /// # Errors
    /// As there.
    fn scan_ahead(&mut self, tree: TreeId, range: &KeyRange, direction: Direction) -> Result<()> {
        let _ = (tree, range, direction);
        Ok(())
    }

    /// As [`Reading::get`], of a row that the statement will lock at this strength, waiting, if
    /// it is there, whatever is in it. An engine may lock it before it reads it, so that nothing is
    /// read that is old once the lock is there.
    fn get_to_lock(
        &mut self,
        tree: TreeId,
        key: &[u8],
        strength: RowLock,
        row: &mut Vec<u8>,
    ) -> Result<bool> {
        let _ = strength;
        self.get(tree, key, row)
    }

    /// Reads the next rows of a range into `batch` (cleared first), at most `limit` and
    /// [`crate::limits::SCAN_BATCH_ROWS`]. Returns what is left of the range, or `None` at its end.
    fn scan(
        &mut self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
        batch: &mut RowBatch,
    ) -> Result<Option<KeyRange>>;

    /// Like [`Reading::scan`] forward, but sees the newest committed version of each row and
    /// all that this transaction has written, whatever its snapshot: what foreign keys must look at.
    fn scan_newest(
        &mut self,
        tree: TreeId,
        range: &KeyRange,
        limit: usize,
        batch: &mut RowBatch,
    ) -> Result<Option<KeyRange>> {
        self.scan_newest_in(tree, range, Direction::Forward, limit, batch)
    }

    /// The same in either direction.
    fn scan_newest_in(
        &mut self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
        batch: &mut RowBatch,
    ) -> Result<Option<KeyRange>>;
}
