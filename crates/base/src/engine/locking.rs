//! Locks that a transaction takes on rows and tables, until it ends or goes back to a savepoint.
//!
//! ```text
//! get(k)                  as the snapshot shows it: balance 7
//! lock_row(k, Update, …)  waits for who has it; Changed, and the newest version: balance 5
//! update(k, …)            conditions were checked against 5
//! ```
//! Source: PostgreSQL 15 manual, section 13.3 (explicit locking).

use std::time::Duration;

use crate::error::Result;
use crate::ids::TreeId;

/// The strengths of row locks (PostgreSQL 15 manual, section 13.3.2), weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowLock {
    /// FOR KEY SHARE: conflicts with `Update` only.
    KeyShare,
    /// FOR SHARE.
    Share,
    /// FOR NO KEY UPDATE: taken by UPDATE of columns that are no key.
    NoKeyUpdate,
    /// FOR UPDATE: taken by DELETE and UPDATE of key columns.
    Update,
}

/// The modes of table locks (PostgreSQL 15 manual, section 13.3.1), weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum TableLock {
    AccessShare,
    RowShare,
    RowExclusive,
    ShareUpdateExclusive,
    Share,
    ShareRowExclusive,
    Exclusive,
    AccessExclusive,
}

/// What to do when a lock is held by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LockWait {
    /// Wait in line, at most for `lock_timeout` (55P03).
    #[default]
    Block,
    /// 55P03 at once.
    NoWait,
    /// Give up this row.
    Skip,
}

/// What locking a row found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockedRow {
    /// The row is as the statement's snapshot shows it.
    Unchanged,
    /// It was changed since (READ COMMITTED only); the newest version is in the buffer and the
    /// statement's conditions must be checked against it.
    Changed,
    /// It was deleted since (READ COMMITTED only).
    Gone,
    /// It was locked by another, and [`LockWait::Skip`] was asked for.
    Skipped,
}

/// Takes locks.
pub trait Locking {
    /// Bounds each wait for a lock; zero is no bound.
    fn set_lock_timeout(&mut self, timeout: Duration);

    /// Locks a row that this statement has read. `KeyShare` is disturbed by no change that leaves
    /// the row's unique keys as they were. `newest` receives the newest version when it
    /// differs from what was read.
    ///
    /// # Errors
    /// 40001 above READ COMMITTED when the row was changed since the snapshot; 55P03; 40P01.
    fn lock_row(
        &mut self,
        tree: TreeId,
        key: &[u8],
        strength: RowLock,
        wait: LockWait,
        newest: &mut Vec<u8>,
    ) -> Result<LockedRow>;

    /// Locks a row that was in the way of an insert, to change it. Unlike for
    /// [`Locking::lock_row`], one that was deleted since the snapshot is just gone.
    fn lock_row_in_the_way(
        &mut self,
        tree: TreeId,
        key: &[u8],
        strength: RowLock,
        newest: &mut Vec<u8>,
    ) -> Result<LockedRow> {
        self.lock_row(tree, key, strength, LockWait::Block, newest)
    }

    /// Locks a key of a tree, whatever is there now, until the end of the transaction: of a table, or
    /// values of an index. Whether it was to be had; where that is waited for, always.
    ///
    /// # Errors
    /// 55P03; 40P01.
    fn lock_key(
        &mut self,
        tree: TreeId,
        key: &[u8],
        strength: RowLock,
        wait: LockWait,
    ) -> Result<bool>;

    /// Locks a table (or any object that has a tree) until the end of the transaction.
    fn lock_table(&mut self, tree: TreeId, mode: TableLock, wait: LockWait) -> Result<bool>;
}
