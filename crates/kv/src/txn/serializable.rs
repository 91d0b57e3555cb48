//! What a transaction tells of itself at SERIALIZABLE ([`crate::serial`]); at other levels each of
//! these is one look at an option that is none.

use base::engine::{Direction, Isolation};
use base::{KeyRange, Result, TreeId};

use super::{Leader, Txn, View};
use crate::serial::{KeyVisitor, Safety, Ticket};
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
            let mut safety = txn.has_snapshot(snapshot.position().lsn, waits)?;
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

    /// Gives up marks that a snapshot which is safe by now does not need.
    pub(super) fn look_for_safety(&mut self) {
        let is_safe = |txn: &mut _| crate::serial::SerialTxn::safety(txn) == Safety::Safe;
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
