//! How far the catalog has come, and which of its rows have changed lately.
//!
//! Sessions keep copies of the catalog. Who has one of an earlier version asks which rows have changed
//! since, and reads those only:
//!
//! ```text
//! version 7 (LSN 40)   RELATIONS 16390, NAMES t     changes(7) = RELATIONS 16391, NAMES u
//! version 8 (LSN 52)   RELATIONS 16391, NAMES u     changes(3) = None: read everything
//! ```
//! # Invariants
//! - A version that is told is visible: a snapshot that is taken after it was told shows its rows.
//!   Records are applied before the visible position moves on, so the newest version may be ahead.
//! - Generations are given once in the life of a process, also when a failover takes changes back.
//!
//! # What it leaves out
//! What changed is not what it changed to; and beyond [`HISTORY_BYTES_MAX`] the oldest is forgotten.

use std::collections::VecDeque;

use base::engine::{CatalogChanges, CatalogVersion};
use base::{Key, Lsn, TreeId};

/// Bytes of the keys that are remembered. Whoever is behind them reads the whole catalog.
pub const HISTORY_BYTES_MAX: usize = 1 << 20;

/// What a key takes besides its bytes, about.
const KEY_OVERHEAD: usize = 32;

/// The versions of the catalog, the newest last.
#[derive(Debug, Default)]
pub struct CatalogHistory {
    newest: CatalogVersion,
    /// The version before the first change.
    before: CatalogVersion,
    changes: VecDeque<CatalogChanges>,
    bytes: usize,
}

impl CatalogHistory {
    /// The newest version, which may not be visible yet.
    pub fn newest(&self) -> CatalogVersion {
        self.newest
    }

    /// The newest version that is visible where records up to `visible` are.
    pub fn version_at(&self, visible: Lsn) -> CatalogVersion {
        if self.newest.lsn <= visible {
            return self.newest;
        }
        let known = self.changes.iter().rev().map(|change| change.to);
        let mut known = known.chain([self.before]);
        // Of what begins anew, nothing earlier is known.
        let shown = known.find(|version| version.lsn <= visible);
        shown.unwrap_or(self.newest)
    }

    /// What has changed since then, up to what is visible.
    pub fn changes(&self, since: CatalogVersion, visible: Lsn) -> Option<CatalogChanges> {
        let to = self.version_at(visible);
        if since.generation < self.before.generation || since.generation > to.generation {
            return None;
        }
        let is_asked = |change: &&CatalogChanges| {
            change.to.generation > since.generation && change.to.generation <= to.generation
        };
        let changes = self.changes.iter().filter(is_asked);
        let keys = changes.flat_map(|change| change.keys.iter().cloned());
        Some(CatalogChanges {
            to,
            keys: keys.collect(),
        })
    }

    /// Rows of the catalog were changed at `lsn`.
    pub fn changed(&mut self, lsn: Lsn, keys: Vec<(TreeId, Key)>) {
        self.next(lsn);
        self.bytes += bytes_of(&keys);
        let to = self.newest;
        self.changes.push_back(CatalogChanges { to, keys });
        while self.bytes > HISTORY_BYTES_MAX {
            let Some(oldest) = self.changes.pop_front() else {
                break;
            };
            self.bytes -= bytes_of(&oldest.keys);
            self.before = oldest.to;
        }
    }

    /// Nobody knows what has changed: changes were taken back to `lsn`, or all trees are others.
    pub fn begin_anew(&mut self, lsn: Lsn) {
        self.next(lsn);
        self.before = self.newest;
        self.changes.clear();
        self.bytes = 0;
    }

    fn next(&mut self, lsn: Lsn) {
        self.newest = CatalogVersion {
            generation: self.newest.generation + 1,
            lsn,
        };
    }
}

fn bytes_of(keys: &[(TreeId, Key)]) -> usize {
    keys.iter().map(|(_, key)| key.len() + KEY_OVERHEAD).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> (TreeId, Key) {
        (TreeId::FIRST_CATALOG, name.as_bytes().to_vec())
    }

    fn names(changes: Option<CatalogChanges>) -> Option<Vec<String>> {
        let name = |key: Key| String::from_utf8(key).unwrap();
        changes.map(|found| found.keys.into_iter().map(|(_, key)| name(key)).collect())
    }

    #[test]
    fn changes_are_those_between_two_versions() {
        let mut history = CatalogHistory::default();
        history.changed(Lsn(3), vec![key("a")]);
        let first = history.newest();
        history.changed(Lsn(5), vec![key("b"), key("c")]);
        let found = history.changes(first, Lsn(9));
        assert_eq!(found.as_ref().map(|found| found.to), Some(history.newest()));
        assert_eq!(names(found), Some(vec!["b".to_owned(), "c".to_owned()]));
        assert_eq!(
            names(history.changes(history.newest(), Lsn(9))),
            Some(vec![])
        );
    }

    #[test]
    fn what_is_not_visible_is_no_version_yet() {
        let mut history = CatalogHistory::default();
        history.changed(Lsn(3), vec![key("a")]);
        let first = history.newest();
        history.changed(Lsn(5), vec![key("b")]);
        assert_eq!(history.version_at(Lsn(4)), first);
        assert_eq!(names(history.changes(first, Lsn(4))), Some(vec![]));
        assert_eq!(history.version_at(Lsn(5)), history.newest());
        // Who has seen the later one, on whatever way, learns nothing from the earlier one.
        assert_eq!(history.changes(history.newest(), Lsn(4)), None);
    }

    #[test]
    fn what_is_taken_back_or_too_long_ago_is_not_known() {
        let mut history = CatalogHistory::default();
        history.changed(Lsn(3), vec![key("a")]);
        let first = history.newest();
        history.begin_anew(Lsn(2));
        assert_eq!(history.changes(first, Lsn(9)), None);
        assert!(history.newest().generation > first.generation);
        let second = history.newest();
        history.changed(Lsn(4), vec![key("b")]);
        let long = "x".repeat(HISTORY_BYTES_MAX / 2);
        history.changed(Lsn(5), vec![key(&long)]);
        assert!(history.changes(second, Lsn(9)).is_some());
        let third = history.newest();
        history.changed(Lsn(6), vec![key(&long)]);
        assert_eq!(history.changes(second, Lsn(9)), None);
        assert!(history.changes(third, Lsn(9)).is_some());
    }
}
