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
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    taken: Counts,
    /// From where on snapshots may still be taken anywhere.
    awaiting: Counts,
}

type Counts = BTreeMap<Lsn, usize>;

fn give_back(counts: &mut Counts, lsn: Lsn) {
    let count = counts.get_mut(&lsn);
    let count = count.unwrap_or_else(|| panic!("a snapshot at {lsn} is not registered"));
    *count -= 1;
    if *count == 0 {
        counts.remove(&lsn);
    }
}

impl Snapshots {
    /// Registers what `visible` gives.
    pub fn take<T>(&self, visible: impl FnOnce() -> (Lsn, T)) -> (Lsn, T) {
        let mut held = self.held.lock();
        let (lsn, with) = visible();
        *held.taken.entry(lsn).or_default() += 1;
        (lsn, with)
    }

    /// Whoever has a snapshot at this LSN may take others at later ones, until it says otherwise.
    pub fn begin_awaiting(&self, lsn: Lsn) {
        *self.held.lock().awaiting.entry(lsn).or_default() += 1;
    }

    /// Ends what [`Snapshots::begin_awaiting`] has begun.
    pub fn end_awaiting(&self, lsn: Lsn) {
        give_back(&mut self.held.lock().awaiting, lsn);
    }

    /// Gives one registration back.
    pub fn give_back(&self, lsn: Lsn) {
        give_back(&mut self.held.lock().taken, lsn);
    }

    /// The LSN below which no version is needed, given the commit index.
    pub fn horizon(&self, commit: Lsn) -> Lsn {
        let held = self.held.lock();
        let oldest = held.taken.first_key_value().map(|(lsn, _)| *lsn);
        oldest.map_or(commit, |oldest| oldest.min(commit))
    }

    /// The snapshots below the commit index, in order, and from where on others may be taken.
    pub fn below(&self, commit: Lsn) -> (Vec<Lsn>, Lsn) {
        let held = self.held.lock();
        let below = held.taken.range(..commit).map(|(lsn, _)| *lsn);
        let awaiting = held.awaiting.first_key_value().map(|(lsn, _)| *lsn);
        (
            below.collect(),
            awaiting.map_or(commit, |from| from.min(commit)),
        )
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
        assert_eq!(snapshots.below(Lsn(9)), (vec![Lsn(5), Lsn(7)], Lsn(9)));
        assert_eq!(snapshots.below(Lsn(7)), (vec![Lsn(5)], Lsn(7)));
        snapshots.begin_awaiting(Lsn(6));
        assert_eq!(snapshots.below(Lsn(7)), (vec![Lsn(5)], Lsn(6)));
        snapshots.end_awaiting(Lsn(6));
        assert_eq!(snapshots.below(Lsn(7)), (vec![Lsn(5)], Lsn(7)));
        snapshots.give_back(Lsn(5));
        assert_eq!(snapshots.horizon(Lsn(9)), Lsn(5));
        snapshots.give_back(Lsn(5));
        assert_eq!(snapshots.horizon(Lsn(9)), Lsn(7));
        snapshots.give_back(Lsn(7));
        assert_eq!(snapshots.horizon(Lsn(9)), Lsn(9));
    }
}
