//! Keys that may be there once: of tables, and of unique indexes.

use base::engine::{Direction, IndexDescriptor, LockWait, RowLock};
use base::row::Row;
use base::{Key, KeyRange, Result, TreeId};

use super::{Leader, Txn, AFTER_ALL};
use crate::locks::Acquired;
use crate::registry::{has_null, index_key, index_prefix};

/// The columns of a unique index's key in a row; `None` when one of them is NULL.
pub(super) fn unique_prefix(index: &IndexDescriptor, row: &Row<'_>) -> Result<Option<Key>> {
    if has_null(index, row) {
        return Ok(None);
    }
    let mut prefix = Key::new();
    index_prefix(index, row, &mut prefix)?;
    Ok(Some(prefix))
}

impl<L: Leader> Txn<L> {
    /// Locks a key to insert it, and says whether a row is there already.
    pub(super) fn claim_key(&mut self, tree: TreeId, key: &[u8]) -> Result<bool> {
        let mark = self.locks.mark();
        let claimed = self.locks.row(tree, key, RowLock::Update, LockWait::Skip)?;
        if claimed == Acquired::Skipped {
            // Whoever refers to a row or changes other columns leaves it there: only who inserts
            // or deletes it has to be waited for. The weak lock is given up before the strong one
            // is asked for, or two who wait here would each be in the other's way.
            self.locks
                .row(tree, key, RowLock::KeyShare, LockWait::Block)?;
            if self.exists_now(tree, key)? {
                return Ok(true);
            }
            self.locks.rollback_to(mark);
            self.locks
                .row(tree, key, RowLock::Update, LockWait::Block)?;
        }
        self.exists_now(tree, key)
    }

    /// Moves the entries of a row's indexes from its old state to its new one. Returns the unique
    /// index that has the new values already; nothing is written then.
    pub(super) fn move_entries(
        &mut self,
        tree: TreeId,
        key: &[u8],
        old: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<Option<TreeId>> {
        let Some(indexes) = self.indexes(tree)? else {
            return Ok(None);
        };
        let old = old.map(Row::parse).transpose()?;
        let new = new.map(Row::parse).transpose()?;
        for (tree, index) in indexes.iter().filter(|(_, index)| index.unique) {
            let prefix = |row| unique_prefix(index, row);
            let before = old.as_ref().map(prefix).transpose()?.flatten();
            let after = new.as_ref().map(prefix).transpose()?.flatten();
            if before != after && self.claim_values(*tree, before, after)? {
                return Ok(Some(*tree));
            }
        }
        for (tree, index) in indexes.iter() {
            let entry = |row| index_key(index, row, key);
            let before = old.as_ref().map(entry).transpose()?;
            let after = new.as_ref().map(entry).transpose()?;
            if before == after {
                continue;
            }
            for (entry, is_there) in [(before, false), (after, true)] {
                if let Some(entry) = entry {
                    self.writes
                        .put_entry(*tree, &entry, is_there, self.latest)?;
                }
            }
        }
        Ok(None)
    }

    /// Locks the values that leave a unique index and those that come; says whether the latter are
    /// there already.
    fn claim_values(
        &mut self,
        index: TreeId,
        leaving: Option<Key>,
        coming: Option<Key>,
    ) -> Result<bool> {
        for values in [&leaving, &coming].into_iter().flatten() {
            self.locks
                .row(index, values, RowLock::Update, LockWait::Block)?;
        }
        match coming {
            Some(values) => self.has_entry(index, &values),
            None => Ok(false),
        }
    }

    /// Whether an index has an entry with these values now, own writes included.
    pub(super) fn has_entry(&mut self, index: TreeId, values: &[u8]) -> Result<bool> {
        let term = self.at()?.term;
        let now = (self.leader.visible(), AFTER_ALL);
        let (range, direction) = (KeyRange::prefix(values), Direction::Forward);
        let mut found = std::mem::take(&mut self.probe);
        let scanned = self.scan_as_of(index, &range, direction, now, 1, &mut found);
        let is_there = !found.is_empty();
        self.probe = found;
        scanned?;
        self.leader.check_term(term)?;
        Ok(is_there)
    }
}
