//! The parts of transactions across groups whose changes were made last, as a replica remembers them
//! for readers that came before ([`crate::group`], *standing*).

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use base::sync::Mutex;
use base::{Lsn, Timestamp};
use spanning::SpanningId;

/// How many are remembered: those of the time for which a reader waits.
const REMEMBERED: usize = 4_096;

/// A part that was committed.
#[derive(Clone, Copy, Debug)]
pub struct Resolved {
    /// Its transaction.
    pub id: SpanningId,
    /// Where its prepare stands.
    pub prepared: Lsn,
    /// The timestamp of the commit.
    pub at: Timestamp,
    /// Where its changes were made.
    pub lsn: Lsn,
}

/// The parts that were committed last, in the order in which their changes were made.
#[derive(Debug, Default)]
pub struct Resolutions {
    state: Mutex<Remembered>,
    /// Whether any part stood as of a version of what is prepared: twice that version, plus one if so.
    stood: AtomicU64,
}

#[derive(Debug, Default)]
struct Remembered {
    resolved: VecDeque<Resolved>,
    /// Up to here some are forgotten.
    forgotten: Lsn,
}

impl Resolutions {
    /// Whether any part stands as of the version of what is prepared that there is now. `stand` is
    /// asked once for each version.
    pub fn stand(&self, version: impl Fn() -> u64, stand: impl FnOnce() -> bool) -> bool {
        let asked = version();
        let known = self.stood.load(Ordering::Acquire);
        if known >> 1 == asked {
            return known & 1 == 1;
        }
        let stand = stand();
        // What has changed meanwhile is asked anew.
        if version() == asked {
            let word = asked << 1 | u64::from(stand);
            self.stood.store(word, Ordering::Release);
        }
        stand
    }

    /// The record at `lsn` has made the changes of a part that was prepared at `prepared`.
    pub fn note(&self, id: SpanningId, prepared: Lsn, at: Timestamp, lsn: Lsn) {
        let mut state = self.state.lock();
        if state.resolved.len() == REMEMBERED {
            let oldest = state.resolved.pop_front();
            state.forgotten = oldest.map_or(state.forgotten, |oldest| oldest.lsn);
        }
        state.resolved.push_back(Resolved {
            id,
            prepared,
            at,
            lsn,
        });
    }

    /// Entries above `to` were taken out of the log.
    pub fn cut(&self, to: Lsn) {
        let mut state = self.state.lock();
        state.resolved.retain(|one| one.lsn <= to);
        state.forgotten = state.forgotten.min(to);
    }

    /// Those whose changes were made above `from`; none when some of them are forgotten.
    pub fn above(&self, from: Lsn) -> Option<Vec<Resolved>> {
        let state = self.state.lock();
        let above = state.resolved.iter().filter(|one| one.lsn > from);
        (state.forgotten <= from).then(|| above.copied().collect())
    }
}

#[cfg(test)]
mod tests {
    use base::{GroupId, Term};

    use super::*;

    #[test]
    fn resolutions_are_known_until_they_are_forgotten() {
        let id = |number| SpanningId {
            group: GroupId(1),
            term: Term(1),
            number,
        };
        let resolutions = Resolutions::default();
        let note = |lsn: u64| {
            let prepared = Lsn(lsn - 1);
            resolutions.note(id(lsn), prepared, Timestamp(lsn as i64), Lsn(lsn));
        };
        (10..20).for_each(note);
        let above = |from| {
            let above = resolutions.above(Lsn(from));
            above.map(|all| all.iter().map(|one| one.lsn.0).collect::<Vec<_>>())
        };
        assert_eq!(above(17), Some(vec![18, 19]));
        resolutions.cut(Lsn(18));
        assert_eq!(above(17), Some(vec![18]));
        (19..19 + REMEMBERED as u64).for_each(note);
        assert_eq!(above(17), None);
        assert_eq!(above(18).map(|all| all.len()), Some(REMEMBERED));
    }
}
