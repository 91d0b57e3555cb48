//! A log whose disk hangs, is slow, or is full, a process that does not get to run, and a leader that
//! therefore gives way.
//!
//! A leader's commits need no disk of its own: two of three others' will do. So a leader whose disk
//! hangs goes on leading, while its checkpoints, and whatever reads pages, stand still. Every replica
//! measures its syncs, followers report theirs with each answer to a heartbeat, and a leader hands over.
//! So it is with a leader whose process gets too little of the processor: it answers, late. It sees that
//! by its ticks, which come late ([`Stalls`]).
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
//! no hanging disk. One that stood still once is not starved either: it is who has run for less than
//! half of each of two seconds, one after the other.
//!
//! # What it leaves out
//! What a follower on a fast disk receives is synced by the thread that receives it
//! ([`super::flush`]). When the disk begins to hang just then, that node is silent for the others, and
//! applies nothing, until the sync has ended. Nobody waits for it.

use std::sync::Arc;
use std::time::Duration;

use base::env::{Instant, Reactor, Severity};
use base::{NodeId, Result};
use raft::{Condition, PeerStatus};

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

/// A tick that comes later than this after it was due says that the process did not get to run.
const TICK_LATE_MAX: Duration = Duration::from_millis(25);

/// For so long a process is watched before it is judged …
const STALLS_WATCHED: Duration = Duration::from_secs(1);

/// … and starved if it could not run for so much of that, twice in a row.
const STARVED_FROM: Duration = Duration::from_millis(500);

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

/// For how long a process should have run, and did not.
#[derive(Debug, Default)]
pub struct Stalls {
    begun: Option<Instant>,
    /// Since then, and in the two stretches of [`STALLS_WATCHED`] before, the newer first.
    lost: Duration,
    before: [Duration; 2],
}

impl Stalls {
    /// Notes by how much a tick was late.
    fn note(&mut self, late: Duration, now: Instant) {
        let begun = *self.begun.get_or_insert(now);
        self.lost += late.saturating_sub(TICK_LATE_MAX);
        if now.since(begun) >= STALLS_WATCHED {
            // What stood still for longer than it is watched is no worse than starved all the time.
            let lost = self.lost.min(STALLS_WATCHED);
            self.before = [lost, self.before[0]];
            (self.begun, self.lost) = (Some(now), Duration::ZERO);
        }
    }

    /// How much it lost in the worse of the last two stretches.
    fn worst(&self) -> Duration {
        self.before[0].max(self.before[1])
    }

    /// How much it lost in the better one, if that is too much.
    fn starved(&self) -> Option<Duration> {
        let lost = self.before[0].min(self.before[1]);
        (lost >= STARVED_FROM).then_some(lost)
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
    /// Of each of the last seconds it could not run for so long.
    Starved(Duration),
}

impl Trouble {
    /// Whether a replica in that condition would lead better.
    fn is_less(self, other: &Condition) -> bool {
        let (hangs, starves) = (
            other.slowest_sync >= HANGS_AFTER,
            other.starved >= STARVED_FROM,
        );
        let is_better = match self {
            Trouble::Hangs(seen) => other.slowest_sync * QUICKER <= seen && !starves,
            Trouble::Full => !hangs && !starves,
            Trouble::Starved(lost) => other.starved * QUICKER <= lost && !hangs,
        };
        !other.is_full && is_better
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
            Trouble::Starved(lost) => {
                let lost = lost.as_millis();
                write!(f, "the process could not run for {lost} ms of a second")
            }
        }
    }
}

impl Trouble {
    /// One word for it.
    fn name(self) -> &'static str {
        match self {
            Trouble::Hangs(_) => "slow",
            Trouble::Full => "full",
            Trouble::Starved(_) => "starved",
        }
    }
}

impl Group {
    /// What is amiss with this replica, if anything: in one word, `slow`, `full` or `starved`, and in
    /// more.
    pub fn trouble(&self) -> Option<(&'static str, String)> {
        let trouble = match (self.log.lacks_space(), self.disk_hangs_for()) {
            (true, _) => Trouble::Full,
            (false, Some(age)) => Trouble::Hangs(age),
            (false, None) => Trouble::Starved(self.lock().stalls.starved()?),
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

    /// Looks after this replica's condition, at a tick that was so late; a leader that has trouble hands over.
    pub(super) fn tend_condition(&self, core: &mut Core, late: Duration, now: Instant) {
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
        let was_starved = core.stalls.starved().is_some();
        core.stalls.note(late, now);
        let starved = core.stalls.starved().map(Trouble::Starved);
        if let Some(trouble) = starved.filter(|_| !was_starved) {
            let message = format!("the node is starved: {trouble}");
            self.env.log(Severity::Warning, &message);
        }
        let condition = Condition {
            slowest_sync: core.disk.times.longest(now).max(seen),
            is_full: full,
            starved: core.stalls.worst(),
        };
        core.consensus.note_condition(condition, hangs);
        if core.led.is_none() {
            core.disk.leads_since = now;
            return;
        }
        let trouble = match (full, hangs, starved) {
            (true, ..) => Trouble::Full,
            (false, true, _) => Trouble::Hangs(seen),
            (false, false, Some(starved)) => starved,
            (false, false, None) => return,
        };
        let is_recent = |at: Instant| now.since(at) < MOVE_PAUSE;
        let came_lately = core.consensus.was_handed_over() && is_recent(core.disk.leads_since);
        if came_lately || core.disk.tried.is_some_and(is_recent) {
            return;
        }
        // What came while the process stood still has not been looked at yet.
        let patience = self.config.settings.heartbeat_interval * HEARD_WITHIN_HEARTBEATS + late;
        let Some(to) = self.better_leader(core, trouble, patience, now) else {
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

    /// Whether a replica has said of late that it is not fit to lead.
    pub(super) fn has_trouble(&self, core: &Core, node: NodeId) -> bool {
        let status = core.consensus.status(self.env.now());
        let peer = status.peers.iter().find(|peer| peer.node == node);
        peer.is_some_and(|peer| {
            let it = &peer.condition;
            it.is_full || it.slowest_sync >= HANGS_AFTER || it.starved >= STARVED_FROM
        })
    }

    /// The fittest voter that was heard of within `patience`, has what is committed, and has less
    /// trouble, if those with less trouble can elect it.
    fn better_leader(
        &self,
        core: &Core,
        trouble: Trouble,
        patience: Duration,
        now: Instant,
    ) -> Option<NodeId> {
        let status = core.consensus.status(now);
        let is_fit = |peer: &&PeerStatus| {
            peer.voter
                && peer.heard.is_some_and(|heard| now.since(heard) <= patience)
                && self.transport.is_connected(peer.node)
                && trouble.is_less(&peer.condition)
        };
        let fit: Vec<&PeerStatus> = status.peers.iter().filter(is_fit).collect();
        let membership = &status.membership;
        if !membership.is_majority(|node| fit.iter().any(|peer| peer.node == node)) {
            return None;
        }
        let whole = fit.iter().filter(|peer| peer.flushed >= status.commit);
        let best = whole.min_by_key(|peer| {
            let it = &peer.condition;
            (it.starved, it.slowest_sync, peer.node)
        });
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
    fn who_could_not_run_for_most_of_two_seconds_is_starved() {
        let mut stalls = Stalls::default();
        let mut now = 0;
        let mut run = |stalls: &mut Stalls, stands: u64, times: usize| {
            for _ in 0..times {
                now += stands;
                let late = Duration::from_millis(stands.saturating_sub(25));
                stalls.note(late, at(now));
                now += 25;
                stalls.note(Duration::ZERO, at(now));
            }
        };
        run(&mut stalls, 25, 100);
        assert_eq!((stalls.starved(), stalls.worst()), (None, Duration::ZERO));
        // Once, however long.
        run(&mut stalls, 5_000, 1);
        run(&mut stalls, 25, 30);
        assert_eq!(stalls.starved(), None);
        assert_eq!(stalls.worst(), STALLS_WATCHED);
        run(&mut stalls, 25, 100);
        assert_eq!(stalls.worst(), Duration::ZERO);
        run(&mut stalls, 250, 10);
        assert!(stalls.starved().is_some());
        run(&mut stalls, 25, 100);
        assert_eq!(stalls.starved(), None);
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
