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
use crate::key::Key;

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

/// What another transaction has announced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announced {
    /// What it is waited for by.
    pub name: Vec<u8>,
    /// What was noted with it; none if all of a tree was announced.
    pub note: Option<Vec<u8>>,
}

/// When something was announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// What was announced before it has a lower number.
    pub number: u64,
    /// What was locked before it.
    pub mark: usize,
}

impl Ticket {
    /// Of what nobody else can be about to write: there is nothing to take back.
    pub const ALONE: Ticket = Ticket {
        number: 0,
        mark: usize::MAX,
    };
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

    /// Locks rows that the command will lock next, in this order, as far as it can: where they are far
    /// ([`Reading::is_far`](super::Reading::is_far)), they are locked together, and [`Locking::lock_row`] then
    /// knows of them already, but for those that were skipped. Each row stands there once.
    ///
    /// # Errors
    /// As there; an error that ends it in the middle whatever is asked next has.
    fn lock_ahead(
        &mut self,
        tree: TreeId,
        keys: &[Key],
        strength: RowLock,
        wait: LockWait,
    ) -> Result<()> {
        let _ = (tree, keys, strength, wait);
        Ok(())
    }

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

    /// Waits until such a lock of a key is to be had, and does not take it.
    ///
    /// # Errors
    /// 55P03; 40P01.
    fn wait_for_key(&mut self, tree: TreeId, key: &[u8], strength: RowLock) -> Result<()>;

    /// Announces to other transactions an entry that this one is about to write into a tree, until it
    /// ends or goes back. Of two that announce, the later one finds the other ([`Locking::announced`]).
    ///
    /// # Errors
    /// 55P03; 40P01; 53200.
    fn announce(&mut self, tree: TreeId, key: &[u8], note: &[u8]) -> Result<Ticket>;

    /// What others have announced of a tree before a ticket, and have not ended since, under keys that
    /// begin so.
    ///
    /// # Errors
    /// 40001 when leadership was lost.
    fn announced(&mut self, tree: TreeId, prefix: &[u8], ticket: Ticket) -> Result<Vec<Announced>>;

    /// Waits until whoever has announced something has ended, or has gone back.
    ///
    /// # Errors
    /// 55P03; 40P01.
    fn wait_for_announced(&mut self, announced: &Announced) -> Result<()>;

    /// Takes back what was announced last, if nothing of it was written.
    fn withdraw(&mut self, ticket: Ticket);

    /// Tables that will be locked next, in this order, waiting for them: those of other nodes' groups are
    /// locked now, all at once, as far as nobody is in the way, and [`Locking::lock_table`] then knows of them.
    ///
    /// # Errors
    /// As there.
    fn lock_tables_ahead(&mut self, tables: &[(TreeId, TableLock)]) -> Result<()> {
        let _ = tables;
        Ok(())
    }

    /// Locks a table (or any object that has a tree) until the end of the transaction.
    fn lock_table(&mut self, tree: TreeId, mode: TableLock, wait: LockWait) -> Result<bool>;
}
