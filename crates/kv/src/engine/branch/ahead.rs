//! What a command has been told before it came to ask: rows that were read or locked together.

use std::collections::VecDeque;

use base::engine::{LockedRow, RowLock};
use base::{Key, TreeId};

/// What is known of rows ahead; each is told once.
#[derive(Default)]
pub(super) struct Ahead {
    read: VecDeque<Read>,
    locked: VecDeque<Locked>,
}

struct Read {
    tree: TreeId,
    key: Key,
    row: Option<Vec<u8>>,
}

struct Locked {
    tree: TreeId,
    key: Key,
    strength: RowLock,
    found: (LockedRow, Vec<u8>),
}

impl Ahead {
    /// What is seen, or what is locked, may be something else from here on.
    pub fn clear(&mut self) {
        self.read.clear();
        self.locked.clear();
    }

    /// Rows of a tree were read, in place of those that were read ahead before.
    pub fn keep_read(&mut self, tree: TreeId, keys: &[Key], rows: Vec<Option<Vec<u8>>>) {
        let rows = keys.iter().cloned().zip(rows);
        self.read = rows.map(|(key, row)| Read { tree, key, row }).collect();
    }

    /// A row that was read ahead, if it is there.
    pub fn take_read(&mut self, tree: TreeId, key: &[u8]) -> Option<Option<Vec<u8>>> {
        let is_it = |read: &Read| read.tree == tree && read.key == key;
        let place = self.read.iter().position(is_it)?;
        self.read.remove(place).map(|read| read.row)
    }

    /// Locking a row found this, and its newest version.
    pub fn keep_locked(
        &mut self,
        tree: TreeId,
        key: Key,
        strength: RowLock,
        found: (LockedRow, Vec<u8>),
    ) {
        self.locked.push_back(Locked {
            tree,
            key,
            strength,
            found,
        });
    }

    fn locked(&self, tree: TreeId, key: &[u8], strength: RowLock) -> Option<usize> {
        let is_it = |row: &Locked| row.tree == tree && row.key == key && row.strength >= strength;
        self.locked.iter().position(is_it)
    }

    /// Whether it is known what locking a row finds.
    pub fn has_locked(&self, tree: TreeId, key: &[u8], strength: RowLock) -> bool {
        self.locked(tree, key, strength).is_some()
    }

    /// What locking a row found.
    pub fn take_locked(
        &mut self,
        tree: TreeId,
        key: &[u8],
        strength: RowLock,
    ) -> Option<(LockedRow, Vec<u8>)> {
        let place = self.locked(tree, key, strength)?;
        self.locked.remove(place).map(|row| row.found)
    }
}
