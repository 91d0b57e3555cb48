//! How long replicas take: between a flush here and a replica's word that it has as much.
//!
//! The leader remembers when it flushed what, and when a replica's watermark passes one of those
//! positions, the time since then is its lag, as in PostgreSQL's lag tracker. A replica that has
//! caught up has no lag once its last measurement is old.

use std::collections::VecDeque;
use std::time::Duration;

use base::env::Instant;
use base::hash::HashMap;
use base::{Lsn, NodeId, Timestamp};

/// Flushes that are remembered; of more, every second is forgotten.
const SAMPLES_MAX: usize = 4_096;

/// A replica is looked at at most this often.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A measurement of a replica that has caught up is shown for so long.
const SHOWN_FOR: Duration = Duration::from_secs(2);

/// What is measured of one replica: written, flushed, applied.
pub type Marks = [Lsn; 3];

/// What a leader remembers to measure lags.
#[derive(Debug, Default)]
pub struct Lag {
    flushed: VecDeque<(Lsn, Instant)>,
    replicas: HashMap<NodeId, Replica>,
}

/// What is known of one replica.
#[derive(Clone, Copy, Debug, Default)]
pub struct Replica {
    looked: Instant,
    marks: Marks,
    lags: [Option<(Duration, Instant)>; 3],
    /// When it was first heard of after a silence.
    pub connected_since: Option<Timestamp>,
    /// When it was last heard of.
    pub reported_at: Option<Timestamp>,
}

impl Lag {
    /// Everything up to `lsn` was flushed here.
    pub fn flushed(&mut self, lsn: Lsn, now: Instant) {
        if self.flushed.back().is_some_and(|last| last.0 >= lsn) {
            return;
        }
        self.flushed.push_back((lsn, now));
        if self.flushed.len() > SAMPLES_MAX {
            let mut keep = false;
            self.flushed.retain(|_| {
                keep = !keep;
                keep
            });
        }
    }

    /// A replica was heard of; whether its marks should be noted now.
    pub fn heard(&mut self, node: NodeId, now: Instant, wall: Timestamp) -> bool {
        let replica = self.replicas.entry(node).or_default();
        replica.reported_at = Some(wall);
        replica.connected_since.get_or_insert(wall);
        if now.since(replica.looked) < LOOK_EVERY {
            return false;
        }
        replica.looked = now;
        true
    }

    /// A replica is silent.
    pub fn silent(&mut self, node: NodeId) {
        if let Some(replica) = self.replicas.get_mut(&node) {
            replica.connected_since = None;
        }
    }

    /// A replica has come so far.
    pub fn note(&mut self, node: NodeId, marks: Marks, now: Instant) {
        let replica = self.replicas.entry(node).or_default();
        for (index, mark) in marks.into_iter().enumerate() {
            let before = replica.marks[index];
            let covered = self.flushed.partition_point(|sample| sample.0 <= mark);
            let newest = covered.checked_sub(1).map(|at| self.flushed[at]);
            if let Some((_, at)) = newest.filter(|sample| sample.0 > before) {
                replica.lags[index] = Some((now.since(at), now));
            }
            replica.marks[index] = mark;
        }
        let marks = self.replicas.values().map(|r| r.marks.into_iter().min());
        let passed = marks.flatten().min().unwrap_or_default();
        while self.flushed.front().is_some_and(|first| first.0 < passed) {
            self.flushed.pop_front();
        }
    }

    /// What is known of a replica, and its lags if it lags behind `last` or did a moment ago.
    pub fn of(&self, node: NodeId, last: Lsn, now: Instant) -> (Replica, [Option<Duration>; 3]) {
        let replica = self.replicas.get(&node).copied().unwrap_or_default();
        let mut lags = [None; 3];
        for (index, lag) in replica.lags.into_iter().enumerate() {
            let behind = replica.marks[index] < last;
            let fresh = |at: &Instant| now.since(*at) < SHOWN_FOR;
            lags[index] = lag.filter(|(_, at)| behind || fresh(at)).map(|lag| lag.0);
        }
        (replica, lags)
    }

    /// Leadership has changed.
    pub fn clear(&mut self) {
        *self = Lag::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lag_is_the_time_since_the_flush_here() {
        let mut lag = Lag::default();
        let at = |millis: u64| Instant(millis * 1_000_000);
        let node = NodeId(2);
        lag.flushed(Lsn(5), at(10));
        lag.flushed(Lsn(9), at(20));
        lag.note(node, [Lsn(9), Lsn(6), Lsn(4)], at(23));
        let (_, lags) = lag.of(node, Lsn(9), at(24));
        let millis = |millis| Some(Duration::from_millis(millis));
        assert_eq!(lags, [millis(3), millis(13), None]);
        lag.note(node, [Lsn(9); 3], at(30));
        let (_, lags) = lag.of(node, Lsn(9), at(31));
        assert_eq!(lags, [millis(3), millis(10), millis(10)]);
        let (_, lags) = lag.of(node, Lsn(9), at(9_000));
        assert_eq!(lags, [None; 3]);
    }
}
