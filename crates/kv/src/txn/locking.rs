//! Locks that a statement asks for, and what it announces ([`crate::locks`]).

use std::time::Duration;

use base::engine::{Announced, LockWait, LockedRow, Locking, RowLock, TableLock, Ticket};
use base::{Result, TreeId};

use super::{Leader, Txn};
use crate::locks::Acquired;

/// The row that was locked last, as it was when it was locked: an update or delete of it needs not
/// read it again.
#[derive(Debug, Default)]
pub(super) struct LastLocked {
    pub(super) tree: Option<TreeId>,
    pub(super) key: Vec<u8>,
    pub(super) row: Vec<u8>,
    /// Whether the statement's snapshot shows the row like that.
    pub(super) as_seen: bool,
}

impl LastLocked {
    /// Whether this row is locked so that it stays as it is, and as the snapshot shows it.
    pub(super) fn is_seen(&self, tree: TreeId, key: &[u8], strength: RowLock) -> bool {
        self.as_seen
            && strength >= RowLock::NoKeyUpdate
            && self.tree == Some(tree)
            && self.key == key
    }
}

impl<L: Leader> Locking for Txn<L> {
    fn set_lock_timeout(&mut self, timeout: Duration) {
        self.locks.set_timeout(timeout);
    }

    fn lock_row(
        &mut self,
        tree: TreeId,
        key: &[u8],
        strength: RowLock,
        wait: LockWait,
        newest: &mut Vec<u8>,
    ) -> Result<LockedRow> {
        self.lock_and_look(tree, key, (strength, wait), false, newest)
    }

    fn lock_row_in_the_way(
        &mut self,
        tree: TreeId,
        key: &[u8],
        strength: RowLock,
        newest: &mut Vec<u8>,
    ) -> Result<LockedRow> {
        let how = (strength, LockWait::Block);
        self.lock_and_look(tree, key, how, true, newest)
    }

    fn lock_key(
        &mut self,
        tree: TreeId,
        key: &[u8],
        strength: RowLock,
        wait: LockWait,
    ) -> Result<bool> {
        Ok(self.locks.row(tree, key, strength, wait)? != Acquired::Skipped)
    }

    fn wait_for_key(&mut self, tree: TreeId, key: &[u8], strength: RowLock) -> Result<()> {
        let mark = self.locks.mark();
        self.locks.row(tree, key, strength, LockWait::Block)?;
        self.locks.rollback_to(mark);
        Ok(())
    }

    fn announce(&mut self, tree: TreeId, key: &[u8], note: &[u8]) -> Result<Ticket> {
        self.locks.announce(tree, key, note)
    }

    fn announced(&mut self, tree: TreeId, prefix: &[u8], ticket: Ticket) -> Result<Vec<Announced>> {
        let term = self.at()?.term;
        let announced = self.locks.announced_before(tree, prefix, ticket);
        self.leader.check_term(term)?;
        Ok(announced)
    }

    fn wait_for_announced(&mut self, announced: &Announced) -> Result<()> {
        self.locks.wait_for_announced(announced)
    }

    fn withdraw(&mut self, ticket: Ticket) {
        self.locks.withdraw(ticket);
    }

    fn lock_table(&mut self, tree: TreeId, mode: TableLock, wait: LockWait) -> Result<bool> {
        // Each table is locked before anything of it is looked at.
        self.check_lies_here(tree)?;
        Ok(self.locks.table(tree, mode, wait)? != Acquired::Skipped)
    }
}
