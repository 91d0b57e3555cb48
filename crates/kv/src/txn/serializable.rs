//! What a transaction tells of itself at SERIALIZABLE ([`crate::serial`]); at other levels each of
//! these is one look at an option that is none.

use base::engine::{Direction, Isolation, LockWait, LockedRow, RowLock};
use base::{KeyRange, Result, SqlState, TreeId};

use super::{Leader, Txn, View};
use crate::serial::{KeyVisitor, Safety, SerialTxn, Ticket};
use crate::write_set::{covered, WriteSet};

/// The catalog is read and written without marks.
fn is_marked(tree: TreeId) -> bool {
    tree >= TreeId::FIRST_USER
}

impl<L: Leader> Txn<L> {
    /// The snapshot that a transaction above READ COMMITTED keeps.
    pub(super) fn first_snapshot(&mut self) -> Result<L::Snapshot> {
        if self.isolation != Isolation::Serializable {
            return self.leader.snapshot();
        }
        let read_only = self.options.read_only;
        let waits = read_only && self.options.deferrable;
        loop {
            let txn = self
                .serial
                .begin(self.options.session, read_only, self.leader.visible());
            let snapshot = self.leader.snapshot()?;
            let shown = (snapshot.position().lsn, snapshot.also());
            let mut safety = txn.has_snapshot(shown, waits)?;
            if waits && safety == Safety::Unknown {
                safety = txn.wait_for_safety()?;
            }
            match safety {
                Safety::Safe => return Ok(snapshot),
                Safety::Spoilt if waits => {}
                _ => {
                    self.serial_txn = Some(txn);
                    return Ok(snapshot);
                }
            }
        }
    }

    /// It is about to be given a snapshot of several groups ([`Txn::begin_statement_with`]), which it
    /// must not put forward by itself: from here on it is known among the transactions at SERIALIZABLE.
    pub fn expect_snapshot(&mut self) {
        if self.isolation == Isolation::Serializable {
            let (session, read_only) = (self.options.session, self.options.read_only);
            let visible = self.leader.visible();
            self.serial_txn = Some(self.serial.begin(session, read_only, visible));
            self.is_branch = true;
        }
    }

    /// The snapshot that it expected is there.
    pub(super) fn take_expected(&mut self) -> Result<()> {
        let Some(txn) = &self.serial_txn else {
            return Ok(());
        };
        let view = self.view()?;
        let shown = (view.position().lsn, view.also());
        let waits = self.options.read_only && self.options.deferrable;
        if txn.has_snapshot(shown, waits)? == Safety::Safe {
            self.serial_txn = None;
        }
        Ok(())
    }

    /// Waits, where it is READ ONLY and DEFERRABLE, until it is known that its snapshot is safe; false
    /// where it is not, and another should be taken.
    ///
    /// # Errors
    /// The interrupt that ended the wait; 40001 when the term is over.
    pub fn is_safe(&mut self) -> Result<bool> {
        let waits = self.options.read_only && self.options.deferrable;
        let Some(txn) = self.serial_txn.as_ref().filter(|_| waits) else {
            return Ok(true);
        };
        let is_safe = txn.wait_for_safety()? == Safety::Safe;
        self.serial_txn = None;
        Ok(is_safe)
    }

    /// Another snapshot is about to be taken in the place of the first.
    pub fn give_up_snapshot(&mut self) {
        self.snapshot = None;
    }

    /// Whether what it has read keeps others from something.
    pub fn has_marks(&self) -> bool {
        let txn = self.serial_txn.as_ref();
        txn.is_some_and(SerialTxn::has_marks)
    }

    /// Puts the snapshot forward to now, if nothing that was read so far has changed since; false
    /// where it may have, or something is still read as of the old one.
    pub(super) fn move_on(&mut self) -> Result<bool> {
        let Some(txn) = &self.serial_txn else {
            return Ok(false);
        };
        if self.options.read_only || self.is_branch || !self.views.is_empty() {
            return Ok(false);
        }
        let mut newer = self.view()?.clone();
        self.leader.refresh(&mut newer)?;
        let moves = txn.move_on((newer.position().lsn, newer.also()));
        if moves {
            self.snapshot = Some(newer);
        }
        Ok(moves)
    }

    /// Locks a row that is there and is going to be locked anyway, and then reads it; false where
    /// it should be read first.
    pub(super) fn lock_and_get(
        &mut self,
        tree: TreeId,
        key: &[u8],
        strength: RowLock,
        row: &mut Vec<u8>,
    ) -> Result<bool> {
        let reads_first = self.serial_txn.is_none()
            || strength < RowLock::NoKeyUpdate
            || !is_marked(tree)
            || self.is_built(tree)
            || self.is_new_tree(tree)
            || self.writes.newest(tree, key)?.is_some();
        if reads_first {
            return Ok(false);
        }
        // Nobody waits for a row that is not there.
        let view = self.view()?;
        if !view.get(tree, key, view.position().lsn, row)?.exists {
            return Ok(false);
        }
        let mark = self.locks.mark();
        self.locks.row(tree, key, strength, LockWait::Block)?;
        match self.compare_with_newest(tree, key, strength, false) {
            Ok(LockedRow::Unchanged | LockedRow::Changed) => {}
            Ok(_) => {
                self.locks.rollback_to(mark);
                return Ok(false);
            }
            // Who locks it after reading it is told.
            Err(error) if error.state() == SqlState::SERIALIZATION_FAILURE => return Ok(false),
            Err(error) => return Err(error),
        }
        self.last_locked.as_seen = true;
        row.clear();
        row.extend_from_slice(&self.last_locked.row);
        self.has_read_key(tree, key)?;
        Ok(true)
    }

    /// Gives up marks that a snapshot which is safe by now does not need.
    pub(super) fn look_for_safety(&mut self) {
        let is_safe = |txn: &mut SerialTxn| txn.safety() == Safety::Safe;
        if self.options.read_only {
            self.serial_txn.take_if(is_safe);
        }
    }

    /// A key was read, there or not.
    pub(super) fn has_read_key(&mut self, tree: TreeId, key: &[u8]) -> Result<()> {
        match &mut self.serial_txn {
            Some(txn) if is_marked(tree) => txn.read_key(tree, key),
            _ => Ok(()),
        }
    }

    /// A range was read up to where `rest` is left.
    pub(super) fn has_read_range(
        &mut self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        rest: Option<&KeyRange>,
    ) -> Result<()> {
        match &mut self.serial_txn {
            Some(txn) if is_marked(tree) => txn.read_range(tree, &covered(range, direction, rest)),
            _ => Ok(()),
        }
    }

    /// A row is about to be written.
    pub(super) fn will_write(&mut self, tree: TreeId, key: &[u8]) -> Result<()> {
        match &mut self.serial_txn {
            Some(txn) if is_marked(tree) => txn.will_write(tree, key),
            _ => Ok(()),
        }
    }

    /// A key that was to be inserted is there already.
    pub(super) fn met_duplicate(&self, tree: TreeId, key: &[u8]) -> Result<()> {
        match &self.serial_txn {
            Some(txn) if is_marked(tree) => txn.met_duplicate(tree, key),
            _ => Ok(()),
        }
    }

    /// Tells the others what is about to be committed.
    pub(super) fn publish(
        &mut self,
        writes: &mut WriteSet,
        dropped: &[Vec<u8>],
    ) -> Result<Option<Ticket>> {
        let Some(txn) = &mut self.serial_txn else {
            return Ok(None);
        };
        let keys = |f: &mut KeyVisitor<'_>| {
            writes.for_each_key(&mut |tree, key| {
                if is_marked(tree) {
                    f(tree, key);
                }
            })
        };
        let dropped = dropped
            .iter()
            .map(|key| TreeId(key.iter().fold(0, |id, byte| id << 8 | u64::from(*byte))));
        txn.publish(keys, dropped).map(Some)
    }
}
