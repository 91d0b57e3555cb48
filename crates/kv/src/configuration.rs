//! The settings of the cluster on one replica: those in force, and those that a record brings
//! which is not committed yet.
//!
//! ```text
//! log         … 41      42            43      44            45 …
//! loaded          names = a                names = b
//!                               ▲ commit index
//! in force    a (42);  pending  b (44)
//! ```
//! A leader that counts standbys obeys what is in force and what is pending, whichever asks for
//! more: so no reply above 44 forgets b, whatever becomes of 44.
//!
//! # Invariants
//! - Pending ones are in the order of their LSNs, above the one in force.
//! - What is in force is committed, so a cut never concerns it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use base::engine::Configuration;
use base::sync::{Event, Mutex};
use base::Lsn;

/// The settings of the cluster on one replica.
#[derive(Debug, Default)]
pub struct Configurations {
    state: Mutex<State>,
    /// Changes with `state`, read without the latch.
    version: AtomicU64,
    /// The LSN of the first pending one, 0 for none.
    next: AtomicU64,
    /// Others are in force, or pending ones are no more.
    pub changed: Event,
}

#[derive(Debug, Default)]
struct State {
    in_force: Arc<Configuration>,
    pending: VecDeque<Arc<Configuration>>,
}

impl Configurations {
    /// A record has brought these.
    pub fn note(&self, configuration: Configuration) {
        let mut state = self.state.lock();
        let newest = state.pending.back().unwrap_or(&state.in_force).lsn;
        let lsn = configuration.lsn;
        assert!(lsn >= newest, "settings of {lsn} after those of {newest}");
        state.pending.push_back(Arc::new(configuration));
        self.publish(&state);
    }

    /// A checkpoint has brought these; all before are forgotten.
    pub fn begin_anew(&self, configuration: Configuration) {
        let mut state = self.state.lock();
        state.pending.clear();
        state.pending.push_back(Arc::new(configuration));
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
        assert!(in_force <= to, "a cut to {to} below settings of {in_force}");
        state.pending.retain(|pending| pending.lsn <= to);
        self.publish(&state);
        drop(state);
        self.changed.notify_all();
    }

    fn publish(&self, state: &State) {
        let next = state.pending.front().map_or(0, |first| first.lsn.0.max(1));
        self.next.store(next, Ordering::Release);
        self.version.fetch_add(1, Ordering::AcqRel);
    }

    /// Changes whenever those in force or the pending ones change.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Those in force.
    pub fn in_force(&self) -> Arc<Configuration> {
        self.state.lock().in_force.clone()
    }

    /// Those in force and the pending ones, oldest first.
    pub fn all(&self) -> Vec<Arc<Configuration>> {
        let state = self.state.lock();
        let first = std::iter::once(&state.in_force);
        first.chain(&state.pending).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn naming(lsn: u64, name: &str) -> Configuration {
        Configuration {
            lsn: Lsn(lsn),
            values: [("names".to_owned(), name.to_owned())].into(),
        }
    }

    fn names(configurations: &Configurations) -> Vec<String> {
        let all = configurations.all();
        let names = all.iter().map(|one| one.values.get("names").cloned());
        names.map(Option::unwrap_or_default).collect()
    }

    #[test]
    fn settings_are_in_force_once_committed() {
        let settings = Configurations::default();
        settings.note(naming(42, "a"));
        settings.note(naming(44, "b"));
        assert!(!settings.commit(Lsn(41)));
        assert_eq!(names(&settings), ["", "a", "b"]);
        assert!(settings.commit(Lsn(43)));
        assert_eq!(names(&settings), ["a", "b"]);
        settings.cut(Lsn(43));
        assert_eq!(names(&settings), ["a"]);
        assert!(!settings.commit(Lsn(50)));
        settings.begin_anew(naming(90, "c"));
        assert!(settings.commit(Lsn(90)));
        assert_eq!(names(&settings), ["c"]);
    }
}
