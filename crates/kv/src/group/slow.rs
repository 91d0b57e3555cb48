//! A log whose disk hangs, is slow, or is full, and a leader that therefore gives way.
//!
//! A leader's commits need no disk of its own: two of three others' will do. So a leader whose disk
//! hangs goes on leading, while its checkpoints, and whatever reads pages, stand still. Every replica
//! measures its syncs, followers report theirs with each answer to a heartbeat, and a leader hands over:
//!
//! ```text
//!  leader    sync begins ├──── HANGS_AFTER ────┤ hands over, without its disk
//!  n2        ░ 2 ms   ░ 1 ms   ░ 2 ms          it has everything, and was quick all the time
//!  n3        ░ 400 ms ░ 380 ms ░ 290 ms        not this one
//! ```
//!
//! # Why leadership does not wander
//! It goes only to a replica that is quick: the leader's unfinished sync has taken [`QUICKER`] times as
//! long as its longest recent one. And only where such replicas are a majority: whoever is to lead needs
//! votes, and a vote is synced. Where all disks are slow, as where all nodes share one, there is none. A
//! leader that was handed leadership to keeps it for [`MOVE_PAUSE`], whatever its disk does.
//!
//! What counts of a sync is the time in which this replica could see it: a process that stood still is
//! no hanging disk.
//!
//! # What it leaves out
//! What a follower on a fast disk receives is synced by the thread that receives it
//! ([`super::flush`]). When the disk begins to hang just then, that node is silent for the others, and
//! applies nothing, until the sync has ended. Nobody waits for it.

use std::sync::Arc;
use std::time::Duration;

use base::env::{Instant, Reactor, Severity};
use base::{NodeId, Result};
use raft::{DiskReport, PeerStatus};

use super::core::Core;
use super::Group;

/// A sync that takes longer hangs.
pub const HANGS_AFTER: Duration = Duration::from_millis(300);

/// See above.
const QUICKER: u32 = 4;

/// A leader that was handed leadership to does not give it away for its disk before this has passed,
/// nor does one that has tried.
pub const MOVE_PAUSE: Duration = Duration::from_secs(10);

/// Syncs of the last such time, and of the one before it, are recent.
const RECENT: Duration = Duration::from_secs(5);

/// Of the time between two looks at a sync that is under way, so much counts.
const LOOK_MAX: Duration = Duration::from_millis(50);

/// After a sync that took longer, none holds up a thread that others need for a while: more may follow.
const CALM_MAX: Duration = Duration::from_millis(100);

/// Whoever is to lead must have been heard of within so many heartbeats.
const HEARD_WITHIN_HEARTBEATS: u32 = 3;

/// How long recent syncs took.
#[derive(Debug, Default)]
struct SyncTimes {
    begun: Instant,
    slowest: Duration,
    slowest_before: Duration,
}

impl SyncTimes {
    fn note(&mut self, took: Duration, now: Instant) {
        if now.since(self.begun) >= RECENT {
            self.slowest_before = self.longest(now);
            self.slowest = Duration::ZERO;
            self.begun = now;
        }
        self.slowest = self.slowest.max(took);
    }

    fn longest(&self, now: Instant) -> Duration {
        let passed = now.since(self.begun);
        match (passed < RECENT, passed < RECENT * 2) {
            (true, _) => self.slowest.max(self.slowest_before),
            (false, true) => self.slowest,
            (false, false) => Duration::ZERO,
        }
    }
}

/// What a replica knows of its log's disk.
#[derive(Debug, Default)]
pub struct LogDisk {
    times: SyncTimes,
    /// The sync that is under way, by when it began, as it was last looked at.
    watched: Option<Instant>,
    looked: Instant,
    /// How much of it was seen.
    seen: Duration,
    /// Since when this node leads.
    leads_since: Instant,
    /// When it last tried to give leadership away.
    tried: Option<Instant>,
}

impl LogDisk {
    /// Looks at the sync that is under way, if one is; how long it has been.
    fn watch(&mut self, under_way: Option<Instant>, now: Instant) -> Duration {
        if self.watched != under_way {
            self.watched = under_way;
            self.seen = Duration::ZERO;
        } else if under_way.is_some() {
            self.seen += now.since(self.looked).min(LOOK_MAX);
        }
        self.looked = now;
        self.seen
    }

    /// Whether no recent sync took long.
    pub(super) fn is_calm(&self, now: Instant) -> bool {
        self.times.longest(now) <= CALM_MAX
    }

    fn hangs(&self) -> bool {
        self.seen >= HANGS_AFTER
    }
}

/// Why a leader had better not lead.
#[derive(Clone, Copy, Debug)]
enum Trouble {
    /// It syncs for so long.
    Hangs(Duration),
    /// There is no space for its log.
    Full,
}

impl Trouble {
    /// Whether a replica with that disk would lead better.
    fn is_less(self, disk: &DiskReport) -> bool {
        let is_quicker = match self {
            Trouble::Hangs(seen) => disk.slowest * QUICKER <= seen,
            Trouble::Full => disk.slowest < HANGS_AFTER,
        };
        !disk.full && is_quicker
    }
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Trouble::Hangs(seen) => {
                write!(
                    f,
                    "a sync of the log has taken {} ms so far",
                    seen.as_millis()
                )
            }
            Trouble::Full => f.write_str("there is no space for the log"),
        }
    }
}

impl Trouble {
    /// One word for it.
    fn name(self) -> &'static str {
        match self {
            Trouble::Hangs(_) => "slow",
            Trouble::Full => "full",
        }
    }
}

impl Group {
    /// What is amiss with the disk of the log, if anything: in one word, `slow` or `full`, and in more.
    pub fn disk_trouble(&self) -> Option<(&'static str, String)> {
        let trouble = match (self.log.lacks_space(), self.disk_hangs_for()) {
            (true, _) => Trouble::Full,
            (false, Some(age)) => Trouble::Hangs(age),
            (false, None) => return None,
        };
        Some((trouble.name(), trouble.to_string()))
    }

    /// For how long the log's disk has hung, if it does.
    pub fn disk_hangs_for(&self) -> Option<Duration> {
        let since = {
            let core = self.lock();
            core.writing.then_some(core.writing_since)
        };
        let age = self.env.now().since(since?);
        (age >= HANGS_AFTER && !self.log.lacks_space()).then_some(age)
    }

    /// Looks after the disk of the log; a leader that has trouble with it hands over.
    pub(super) fn tend_disk(&self, core: &mut Core, now: Instant) {
        let full = self.log.lacks_space();
        let under_way = core.writing.then_some(core.writing_since);
        let hung = core.disk.hangs();
        // What waits for space waits for no sync.
        let seen = core.disk.watch(under_way.filter(|_| !full), now);
        let hangs = core.disk.hangs();
        if hangs && !hung {
            let message = format!("the disk hangs: {}", Trouble::Hangs(seen));
            self.env.log(Severity::Warning, &message);
        }
        let slowest = core.disk.times.longest(now).max(seen);
        core.consensus
            .note_disk(DiskReport { slowest, full }, hangs);
        if core.led.is_none() {
            core.disk.leads_since = now;
            return;
        }
        let trouble = match (full, hangs) {
            (true, _) => Trouble::Full,
            (false, true) => Trouble::Hangs(seen),
            (false, false) => return,
        };
        let is_recent = |at: Instant| now.since(at) < MOVE_PAUSE;
        let came_lately = core.consensus.was_handed_over() && is_recent(core.disk.leads_since);
        if came_lately || core.disk.tried.is_some_and(is_recent) {
            return;
        }
        let Some(to) = self.better_leader(core, trouble, now) else {
            return;
        };
        core.disk.tried = Some(now);
        let directory = self.directory();
        let name = directory.member(to).map_or("", |member| &member.name);
        let message = format!("{trouble}, and {name} has no such trouble: it is to lead");
        self.env.log(Severity::Warning, &message);
        let Some(group) = self.me.upgrade() else {
            return;
        };
        let task = move || -> base::env::LocalBoxFuture<'static, ()> {
            Box::pin(async move { group.give_way(to).await })
        };
        self.env.spawn(Reactor::Group, "give way", Box::new(task));
    }

    /// What was appended is written and synced, which took so long.
    pub(super) fn note_sync(&self, core: &mut Core, took: Duration) {
        let now = self.env.now();
        core.disk.times.note(took, now);
        if took >= HANGS_AFTER {
            let message = format!("a sync of the log took {} ms", took.as_millis());
            self.env.log(Severity::Warning, &message);
        }
    }

    /// Whether a replica has said of late that its disk is not fit for a leader.
    pub(super) fn has_trouble(&self, core: &Core, node: NodeId) -> bool {
        let status = core.consensus.status(self.env.now());
        let peer = status.peers.iter().find(|peer| peer.node == node);
        peer.is_some_and(|peer| peer.disk.full || peer.disk.slowest >= HANGS_AFTER)
    }

    /// The voter with the quickest disk that has what is committed and less trouble, if those with less
    /// trouble can elect it.
    fn better_leader(&self, core: &Core, trouble: Trouble, now: Instant) -> Option<NodeId> {
        let within = self.config.settings.heartbeat_interval * HEARD_WITHIN_HEARTBEATS;
        let status = core.consensus.status(now);
        let is_fit = |peer: &&PeerStatus| {
            peer.voter
                && peer.heard.is_some_and(|heard| now.since(heard) <= within)
                && self.transport.is_connected(peer.node)
                && trouble.is_less(&peer.disk)
        };
        let fit: Vec<&PeerStatus> = status.peers.iter().filter(is_fit).collect();
        let membership = &status.membership;
        if !membership.is_majority(|node| fit.iter().any(|peer| peer.node == node)) {
            return None;
        }
        let whole = fit.iter().filter(|peer| peer.flushed >= status.commit);
        let best = whole.min_by_key(|peer| (peer.disk.slowest, peer.node));
        best.map(|peer| peer.node)
    }

    /// Hands over at once: no transaction gets more time than a short one needs.
    async fn give_way(self: Arc<Self>, to: NodeId) {
        let handed: Result<()> = match self.begin_handover() {
            Ok(busy) => self.hold_and_transfer(busy, to).await,
            Err(error) => Err(error),
        };
        if let Err(error) = handed {
            let message = format!("could not hand leadership over: {}", error.message());
            self.env.log(Severity::Warning, &message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant(0).after(Duration::from_millis(millis))
    }

    #[test]
    fn a_sync_counts_for_as_long_as_it_is_looked_at() {
        let mut disk = LogDisk::default();
        for look in 0..=10 {
            disk.watch(Some(at(0)), at(look * 25));
        }
        assert_eq!(disk.seen, Duration::from_millis(250));
        // The process stood still.
        disk.watch(Some(at(0)), at(9_000));
        assert_eq!(disk.seen, Duration::from_millis(300));
        assert!(disk.hangs());
        disk.watch(Some(at(9_010)), at(9_020));
        assert!(!disk.hangs());
        disk.watch(None, at(9_500));
        assert_eq!(disk.seen, Duration::ZERO);
    }

    #[test]
    fn slow_syncs_are_forgotten_after_a_while() {
        let mut times = SyncTimes::default();
        let (slow, fast) = (Duration::from_secs(1), Duration::from_millis(1));
        times.note(slow, at(1_000));
        times.note(fast, at(5_100));
        assert_eq!(times.longest(at(6_000)), slow);
        assert_eq!(times.longest(at(10_200)), fast);
        times.note(slow, at(10_300));
        assert_eq!(times.longest(at(40_000)), Duration::ZERO);
    }
}
