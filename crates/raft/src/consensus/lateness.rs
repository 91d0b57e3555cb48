//! A leader that is heard too late.
//!
//! A lease runs from the moment in which its question was asked, so answers that take as long as an
//! election timeout give none: not where the way to the followers, or back, is that slow. They hear
//! heartbeats all the same, each as late as the one before, and the leader hears them; so the library
//! finds nothing amiss, nobody stands for election, and whatever needs a snapshot waits.
//!
//! ```text
//! leader  ──s──────────────── s + E − drift ┤ no lease: too late
//!            ╲                         ╱
//! voter   ──────╲──── 400 ms ───────╱──────
//! ```
//! Such a leader steps down once it has had no lease for an election timeout, and leaves it to others
//! to stand for [`REST_TIMEOUTS`] more: those that hear of one another sooner are elected meanwhile.
//! Where everybody is that far from everybody, nobody can have a lease, whoever leads.
//!
//! Time counts by ticks, which are never made up: a process that stood still is no long way. One that
//! hears of no majority at all is the library's to judge, and so are followers that have a large append
//! to take in.

use super::*;

/// For so many election timeouts a leader that was heard too late does not stand again.
const REST_TIMEOUTS: usize = 2;

/// Since when a leader has had no lease, and how long one that gave up rests.
#[derive(Debug, Default)]
pub(super) struct Lateness {
    without_lease: usize,
    rest: usize,
}

impl<L: LogView> Consensus<L> {
    /// A tick of a leader.
    pub(super) fn tend_lateness(&mut self, now: Instant) {
        self.lateness.rest = 0;
        let is_late = !self.lease_is_valid(now)
            && self.raw.raft.lead_transferee.is_none()
            && self.hears_majority(now)
            && !self.peers.values().any(|peer| now < peer.excused_until);
        if !is_late {
            self.lateness.without_lease = 0;
            return;
        }
        self.lateness.without_lease += 1;
        if self.lateness.without_lease < self.config.election_ticks() {
            return;
        }
        let term = self.term();
        self.raw.raft.become_follower(term.0, raft_rs::INVALID_ID);
        self.lateness = Lateness {
            without_lease: 0,
            rest: REST_TIMEOUTS * self.config.election_ticks(),
        };
    }

    /// A tick of a replica that does not lead; whether it rests.
    pub(super) fn tend_rest(&mut self) -> bool {
        let rests = self.rests();
        self.lateness.rest = self.lateness.rest.saturating_sub(1);
        self.lateness.without_lease = 0;
        rests
    }

    /// Whether this replica led, was heard too late, and does not stand for election for a while.
    pub fn rests(&self) -> bool {
        self.lateness.rest > 0
    }

    /// Whether so many of the others were heard of of late that they are a majority with this replica.
    fn hears_majority(&self, now: Instant) -> bool {
        let is_recent = |heard: Instant| now.since(heard) < self.config.election_timeout;
        self.membership.is_majority(|node| {
            let heard = self.peers.get(&node).and_then(|peer| peer.heard);
            node == self.config.node || heard.is_some_and(is_recent)
        })
    }
}
