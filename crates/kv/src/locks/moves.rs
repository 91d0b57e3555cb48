//! Rows that went on in another tree, as a row of a partitioned table does whose key changes.
//!
//! ```text
//! moved (t, k) at 7 │ who read at 5 finds k gone from t: moved │ who read at 8 has not seen k in t
//! ```
//! Whoever waited for such a row must not take it for deleted. The rows are kept in the leader's memory,
//! for its term, as locks are: no snapshot of another term goes on.
//!
//! # Invariants
//! - A move is noted before the locks of the transaction that made it are given up.
//! - At most [`BYTES_MAX`] are kept. Beyond that the oldest are forgotten, and whoever reads at a snapshot
//!   from before a forgotten one is told that any row may have moved.

use std::collections::VecDeque;

use base::hash::HashMap;
use base::sync::Mutex;
use base::{Key, Lsn, TreeId};

/// What the keys of rows that moved take at most, and each with so much beside.
const BYTES_MAX: usize = 1 << 20;
const ROW_BYTES: usize = 96;

/// The rows that moved in this term.
#[derive(Debug, Default)]
pub(super) struct Moves {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// The newest move of each.
    rows: HashMap<(TreeId, Key), Lsn>,
    /// The same, the oldest first, with those that have moved again.
    order: VecDeque<(Lsn, TreeId, Key)>,
    bytes: usize,
    /// All up to here may be forgotten.
    forgotten: Lsn,
}

impl Moves {
    pub(super) fn clear(&self) {
        *self.known.lock() = Known::default();
    }

    /// A commit has moved these rows.
    pub(super) fn note(&self, lsn: Lsn, moved: Vec<(TreeId, Key)>) {
        let bytes = |key: &Key| key.len() + ROW_BYTES;
        let mut known = self.known.lock();
        if moved.iter().map(|row| bytes(&row.1)).sum::<usize>() > BYTES_MAX {
            *known = Known {
                forgotten: lsn,
                ..Known::default()
            };
            return;
        }
        for (tree, key) in moved {
            known.bytes += bytes(&key);
            known.rows.insert((tree, key.clone()), lsn);
            known.order.push_back((lsn, tree, key));
        }
        while known.bytes > BYTES_MAX {
            let Some((lsn, tree, key)) = known.order.pop_front() else {
                break;
            };
            known.bytes -= bytes(&key);
            known.forgotten = lsn;
            let row = (tree, key);
            if known.rows.get(&row) == Some(&lsn) {
                known.rows.remove(&row);
            }
        }
    }

    /// Whether a row that was there at a snapshot, and is gone, may have moved.
    pub(super) fn has(&self, tree: TreeId, key: &[u8], since: Lsn) -> bool {
        let known = self.known.lock();
        let moved = known.rows.get(&(tree, key.to_vec()));
        known.forgotten > since || moved.is_some_and(|lsn| *lsn > since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_are_told_to_older_snapshots_and_forgotten_on_the_safe_side() {
        let (moves, tree) = (Moves::default(), TreeId(20_000));
        moves.note(Lsn(7), vec![(tree, b"a".to_vec())]);
        assert!(moves.has(tree, b"a", Lsn(6)));
        assert!(!moves.has(tree, b"a", Lsn(7)));
        assert!(!moves.has(tree, b"b", Lsn(6)));
        let many = |from: u32| (from..from + 4_000).map(|i| (tree, i.to_be_bytes().to_vec()));
        for (lsn, from) in [(8, 0), (9, 4_000), (10, 8_000)] {
            moves.note(Lsn(lsn), many(from).collect());
        }
        assert!(moves.has(tree, b"b", Lsn(6)), "7 is forgotten");
        assert!(!moves.has(tree, b"b", Lsn(10)));
        assert!(moves.known.lock().bytes <= BYTES_MAX);
        let all = (0..20_000u32).map(|i| (tree, i.to_be_bytes().to_vec()));
        moves.note(Lsn(11), all.collect());
        assert!(moves.has(tree, b"b", Lsn(10)));
        assert!(!moves.has(tree, b"b", Lsn(11)));
        moves.clear();
        assert!(!moves.has(tree, b"b", Lsn(1)));
    }
}
