//! What replicas follow of a group's rows beside its trees: as it is in force, and as records bring
//! it which are not committed yet.
//!
//! ```text
//! log         … 41      42            43      44            45 …
//! rows            names = a                names = b
//!                               ▲ commit index
//! in force    a (42);  pending  b (44)
//! ```
//! The settings of the cluster are followed so, and its groups ([`crate::groups`]). A leader that
//! counts standbys obeys what is in force and what is pending, whichever asks for more: so no reply
//! above 44 forgets b, whatever becomes of 44.
//!
//! # Invariants
//! - Pending ones are in the order of their LSNs, above the one in force.
//! - What is in force is committed, so a cut never concerns it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use base::sync::{Event, Mutex};
use base::Lsn;

/// A value that records change, on one replica.
#[derive(Debug, Default)]
pub struct Followed<T> {
    state: Mutex<State<T>>,
    /// Changes with `state`, read without the latch.
    version: AtomicU64,
    /// The LSN of the first pending one, 0 for none.
    next: AtomicU64,
    /// Another is in force, or pending ones are no more.
    pub changed: Event,
}

#[derive(Debug, Default)]
struct State<T> {
    in_force: As<T>,
    pending: VecDeque<As<T>>,
}

/// A value as of one position.
#[derive(Debug, Default)]
struct As<T> {
    lsn: Lsn,
    value: Arc<T>,
}

impl<T> Followed<T> {
    /// The record at `lsn` has brought this.
    pub fn note(&self, lsn: Lsn, value: T) {
        let mut state = self.state.lock();
        let newest = state.pending.back().unwrap_or(&state.in_force).lsn;
        assert!(lsn >= newest, "what is of {lsn} after what is of {newest}");
        let value = Arc::new(value);
        state.pending.push_back(As { lsn, value });
        self.publish(&state);
    }

    /// A checkpoint at `lsn` has brought this; all before is forgotten.
    pub fn begin_anew(&self, lsn: Lsn, value: T) {
        let mut state = self.state.lock();
        state.pending.clear();
        let value = Arc::new(value);
        state.pending.push_back(As { lsn, value });
        self.publish(&state);
    }

    /// Puts in force what is committed; true when that changes something.
    pub fn commit(&self, commit: Lsn) -> bool {
        let next = self.next.load(Ordering::Acquire);
        if next == 0 || next > commit.0 {
            return false;
        }
        let mut state = self.state.lock();
        while let Some(first) = state.pending.pop_front() {
            if first.lsn > commit {
                state.pending.push_front(first);
                break;
            }
            state.in_force = first;
        }
        self.publish(&state);
        drop(state);
        self.changed.notify_all();
        true
    }

    /// Entries above `to` were taken out of the log.
    pub fn cut(&self, to: Lsn) {
        let mut state = self.state.lock();
        let in_force = state.in_force.lsn;
        assert!(in_force <= to, "a cut to {to} below what is of {in_force}");
        state.pending.retain(|pending| pending.lsn <= to);
        self.publish(&state);
        drop(state);
        self.changed.notify_all();
    }

    fn publish(&self, state: &State<T>) {
        let next = state.pending.front().map_or(0, |first| first.lsn.0.max(1));
        self.next.store(next, Ordering::Release);
        self.version.fetch_add(1, Ordering::AcqRel);
    }

    /// Changes whenever the one in force or the pending ones change.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// The one in force.
    pub fn in_force(&self) -> Arc<T> {
        self.state.lock().in_force.value.clone()
    }

    /// The newest, committed or not.
    pub fn newest(&self) -> Arc<T> {
        let state = self.state.lock();
        let newest = state.pending.back().unwrap_or(&state.in_force);
        newest.value.clone()
    }

    /// The one in force and the pending ones, oldest first.
    pub fn all(&self) -> Vec<Arc<T>> {
        let state = self.state.lock();
        let all = std::iter::once(&state.in_force).chain(&state.pending);
        all.map(|one| one.value.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(followed: &Followed<&'static str>) -> Vec<&'static str> {
        followed.all().iter().map(|one| **one).collect()
    }

    #[test]
    fn what_is_brought_is_in_force_once_committed() {
        let settings = Followed::default();
        settings.note(Lsn(42), "a");
        settings.note(Lsn(44), "b");
        assert!(!settings.commit(Lsn(41)));
        assert_eq!(names(&settings), ["", "a", "b"]);
        assert!(settings.commit(Lsn(43)));
        assert_eq!(names(&settings), ["a", "b"]);
        assert_eq!((*settings.in_force(), *settings.newest()), ("a", "b"));
        settings.cut(Lsn(43));
        assert_eq!(names(&settings), ["a"]);
        assert!(!settings.commit(Lsn(50)));
        settings.begin_anew(Lsn(90), "c");
        assert!(settings.commit(Lsn(90)));
        assert_eq!(names(&settings), ["c"]);
    }
}
