//! Keys that are not there: found once for many rows that are inserted in the order of their keys.
//!
//! Whoever inserts a row looks whether it is there, at the newest version of its leaf. Of rows that
//! come in order most lie in one gap between two keys of the store, mostly in the one behind the
//! last. So after [`ROWS_BEFORE`] of them the whole gap is looked up, and rows in it are known to be
//! absent for as long as nothing else becomes visible.
//!
//! ```text
//! store     … 17 18 19 │                 nothing behind 19 as of LSN 40
//! inserts               20 21 22 … 3000  no look at the store while 40 is the visible LSN
//! ```
//!
//! # Why that is enough
//! A key that somebody else has inserted in the gap is locked by him until its LSN is visible. So
//! whoever has got its lock and still finds the old visible LSN knows that it is absent. A gap ends
//! with its leaf, and while the visible LSN stays so does what a look at the leaf owes: the look at
//! the first key has added it.

use base::{Lsn, Result, TreeId};
use storage::Gap;

use super::{Leader, Txn, View};

/// So many rows in order are looked for one by one before a gap is.
const ROWS_BEFORE: usize = 16;

/// What is known of the keys behind the one that was looked for last.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    tree: Option<TreeId>,
    last: Vec<u8>,
    /// Rows in order since the last gap.
    rows: usize,
    /// Absent keys from `last` on, while this LSN is the visible one.
    gap: Option<(Gap, Lsn)>,
}

impl Ahead {
    fn passes(&mut self, tree: TreeId, key: &[u8]) -> bool {
        let is_next = self.tree == Some(tree) && self.last.as_slice() < key;
        self.tree = Some(tree);
        self.last.clear();
        self.last.extend_from_slice(key);
        is_next
    }

    /// Whether a key that is locked is known to be absent.
    pub(super) fn is_absent(&mut self, tree: TreeId, key: &[u8], visible: Lsn) -> bool {
        let Some((gap, known)) = &self.gap else {
            return false;
        };
        let is_in = *known == visible && gap.has(key);
        if !self.passes(tree, key) || !is_in {
            self.gap = None;
            self.rows = 0;
            return false;
        }
        true
    }
}

impl<L: Leader> Txn<L> {
    /// A key was looked for in the store, while or after that LSN was the visible one.
    pub(super) fn look_ahead(&mut self, tree: TreeId, key: &[u8], visible: Lsn) -> Result<()> {
        let is_next = self.ahead.passes(tree, key);
        self.ahead.rows = if is_next { self.ahead.rows + 1 } else { 0 };
        // A tree that is built beside gets its rows unseen.
        if self.ahead.rows < ROWS_BEFORE || self.is_built(tree) {
            return Ok(());
        }
        self.ahead.rows = 0;
        let gap = self.view()?.gap(tree, key)?;
        if self.leader.visible() == visible {
            self.ahead.gap = gap.map(|gap| (gap, visible));
        }
        Ok(())
    }
}
