//! The snapshots in use, so that the versions they need are kept.
//!
//! # Invariants
//! - A snapshot's LSN is read and registered in one step, and the horizon is computed in one step:
//!   so a horizon never passes a snapshot that is being taken.

use std::collections::BTreeMap;

use base::sync::Mutex;
use base::Lsn;

/// A multiset of LSNs.
#[derive(Debug, Default)]
pub struct Snapshots {
    held: Mutex<BTreeMap<Lsn, usize>>,
}

impl Snapshots {
    /// Registers what `visible` gives.
    pub fn take<T>(&self, visible: impl FnOnce() -> (Lsn, T)) -> (Lsn, T) {
        let mut held = self.held.lock();
        let (lsn, with) = visible();
        *held.entry(lsn).or_default() += 1;
        (lsn, with)
    }

    /// Gives one registration back.
    pub fn give_back(&self, lsn: Lsn) {
        let mut held = self.held.lock();
        let count = held.get_mut(&lsn);
        let count = count.unwrap_or_else(|| panic!("a snapshot at {lsn} is not registered"));
        *count -= 1;
        if *count == 0 {
            held.remove(&lsn);
        }
    }

    /// The LSN below which no version is needed, given the commit index.
    pub fn horizon(&self, commit: Lsn) -> Lsn {
        let held = self.held.lock();
        let oldest = held.first_key_value().map(|(lsn, _)| *lsn);
        oldest.map_or(commit, |oldest| oldest.min(commit))
    }

    /// The snapshots below the commit index, in order.
    pub fn below(&self, commit: Lsn) -> Vec<Lsn> {
        let held = self.held.lock();
        held.range(..commit).map(|(lsn, _)| *lsn).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_snapshot_holds_the_horizon() {
        let snapshots = Snapshots::default();
        snapshots.take(|| (Lsn(5), ()));
        snapshots.take(|| (Lsn(5), ()));
        snapshots.take(|| (Lsn(7), ()));
        assert_eq!(snapshots.horizon(Lsn(9)), Lsn(5));
        assert_eq!(snapshots.horizon(Lsn(3)), Lsn(3));
        assert_eq!(snapshots.below(Lsn(9)), [Lsn(5), Lsn(7)]);
        assert_eq!(snapshots.below(Lsn(7)), [Lsn(5)]);
        snapshots.give_back(Lsn(5));
        assert_eq!(snapshots.horizon(Lsn(9)), Lsn(5));
        snapshots.give_back(Lsn(5));
        assert_eq!(snapshots.horizon(Lsn(9)), Lsn(7));
        snapshots.give_back(Lsn(7));
        assert_eq!(snapshots.horizon(Lsn(9)), Lsn(9));
    }
}
