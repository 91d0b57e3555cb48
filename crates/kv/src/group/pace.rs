//! Which followers a leader hurries, and how a follower that is not hurried goes about its disk.
//!
//! A commit at `on` waits for a majority, so while few clients wait, the syncs of all others only
//! take the disk and the processors from those that are waited for. The leader therefore marks what
//! it sends to them as *unhurried*: they receive and apply it as always, but sync only after
//! [`SYNC_DELAY`], or with the next frame that is hurried.
//!
//! | clients that wait for a majority | hurried |
//! |---|---|
//! | none | nobody |
//! | up to [`FEW`] | as many followers as a majority needs, those whose disks are ahead |
//! | more | everybody: any of them may be the first to answer |
//!
//! When a hurried follower stalls, another's disk is ahead of it after [`SYNC_DELAY`], and is
//! hurried from then on. Where standbys are named, everybody is hurried: they are waited for.
//!
//! While many wait, commits gather during the leader's own sync, and leave together when it ends,
//! in one frame to each follower, so that one sync there serves as many as one here. A follower
//! that is done earlier gets what has gathered with its acknowledgement. A sync that takes longer
//! than [`GATHER_MAX`] holds nobody up.
//!
//! Who is not hurried gets what is proposed late, too ([`Laziness`]): while it has not acknowledged
//! what it was sent, it gets no more. So a follower that nobody waits for takes one frame and one
//! sync for what is committed within [`SYNC_DELAY`], and is no further behind than by that.
//!
//! Nothing rests on any of this but time: what is acknowledged is on disk, hurried or not.

use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

use base::env::Instant;
use base::{Durability, NodeId};
use raft::Laziness;

use super::core::Core;
use super::Group;
use crate::frame::encode_consensus;

/// What a follower received unhurried is on its way to the disk after this.
const SYNC_DELAY: Duration = Duration::from_millis(2);

/// So many clients that wait for a majority are few.
const FEW: usize = 4;

/// Commits gather for the end of a sync that is no older.
const GATHER_MAX: Duration = Duration::from_millis(1);

/// Who has waited for the log within this time is taken to wait again soon.
const WAITED_FOR: Duration = Duration::from_millis(100);

/// Commits that are not committed and have more bytes leave for everybody at once.
const LAZY_BYTES_MAX: usize = 32 << 10;

/// Another follower must be ahead so many times in a row to be needed instead.
const AHEAD_MAX: u32 = 3;

/// What the latch guards of it.
#[derive(Debug, Default)]
pub struct Pace {
    /// On a leader: the followers that a majority needs, as they were last chosen.
    needed: Arc<[NodeId]>,
    /// How many times others were ahead of them.
    passed: u32,
    /// On a leader: those that were sent something unhurried, and nothing hurried since.
    unhurried: Vec<NodeId>,
    /// On a follower: the log writer does not begin before.
    sync_at: Option<Instant>,
}

impl Pace {
    /// Whether the log writer may begin now.
    pub fn may_sync(&self) -> bool {
        self.sync_at.is_none()
    }

    /// When it may.
    pub fn sync_at(&self) -> Option<Instant> {
        self.sync_at
    }

    /// What waits for the disk waits no longer.
    pub fn hurry(&mut self) {
        self.sync_at = None;
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Instant) {
        self.sync_at = self.sync_at.filter(|at| now < *at);
    }

    /// Something came that is not hurried; whether a delay begins with it.
    pub fn received_unhurried(&mut self, now: Instant) -> bool {
        let begins = self.sync_at.is_none();
        self.sync_at.get_or_insert(now.after(SYNC_DELAY));
        begins
    }

    /// Frames are about to leave for a follower.
    fn note_sent(&mut self, to: NodeId, unhurried: bool) {
        let known = self.unhurried.iter().position(|node| *node == to);
        match (known, unhurried) {
            (None, true) => self.unhurried.push(to),
            (Some(place), false) => drop(self.unhurried.swap_remove(place)),
            _ => {}
        }
    }
}

/// Whether replies at a level wait for other nodes.
pub fn waits_for_majority(level: Durability) -> bool {
    !matches!(level, Durability::Off | Durability::Local)
}

/// The `count` followers whose disks are ahead; of those that are level, the ones in `before`.
fn ahead(followers: &mut [(NodeId, u64)], before: &[NodeId], count: usize) -> Vec<NodeId> {
    followers.sort_unstable_by_key(|(node, flushed)| {
        (std::cmp::Reverse(*flushed), !before.contains(node), *node)
    });
    followers
        .iter()
        .take(count)
        .map(|(node, _)| *node)
        .collect()
}

impl Group {
    /// Somebody waits for the log.
    pub(super) fn note_waiting(&self) {
        let now = self.env.now();
        self.shared.waited_at.store(now.0, Ordering::Relaxed);
    }

    /// Whether somebody waits for the log, or did lately: then what nobody waits for stays short, so
    /// that a commit that is waited for finds little in front of it.
    pub(super) fn is_waited_for(&self) -> bool {
        let waited_at = Instant(self.shared.waited_at.load(Ordering::Relaxed));
        let lately = || waited_at > Instant(0) && self.env.now().since(waited_at) < WAITED_FOR;
        self.inline.somebody_waits() || lately()
    }

    /// Whether many clients wait for other nodes.
    pub(super) fn many_wait(&self) -> bool {
        !self.is_sole_member() && self.shared.majority_waiting.load(Ordering::SeqCst) > FEW
    }

    /// Whether what leaves for a node now is unhurried.
    pub(super) fn is_unhurried(&self, core: &mut Core, to: NodeId) -> bool {
        let unhurried = core.led.is_some() && core.named.is_nobody() && {
            match self.shared.majority_waiting.load(Ordering::SeqCst) {
                0 => true,
                1..=FEW => !core.pace.needed.contains(&to),
                _ => false,
            }
        };
        core.pace.note_sent(to, unhurried);
        unhurried
    }

    /// To whom commits may leave late: to those who are not hurried, while there is little to send.
    pub(super) fn laziness(&self, core: &Core) -> Laziness {
        let little = self.shared.uncommitted.load(Ordering::SeqCst) < LAZY_BYTES_MAX;
        if core.led.is_none() || !core.named.is_nobody() || !little {
            return Laziness::Nobody;
        }
        match self.shared.majority_waiting.load(Ordering::SeqCst) {
            0 => Laziness::Everybody,
            1..=FEW => Laziness::Except(core.pace.needed.clone()),
            _ => Laziness::Nobody,
        }
    }

    /// Chooses the followers that a majority needs.
    pub(super) fn choose_needed(&self, core: &mut Core) {
        let waiting = self.shared.majority_waiting.load(Ordering::SeqCst);
        if core.led.is_none() || !(1..=FEW).contains(&waiting) {
            return;
        }
        let membership = core.consensus.membership();
        // While two configurations are joint, nobody counts: everybody is needed.
        let count = match membership.outgoing.is_empty() {
            true => membership.voters.len() / 2,
            false => usize::MAX,
        };
        let mut followers: Vec<(NodeId, u64)> = core
            .consensus
            .replicas(self.env.now())
            .iter()
            .filter(|replica| replica.node != self.config.node)
            .filter(|replica| membership.is_voter(replica.node))
            .map(|replica| (replica.node, replica.flushed.0))
            .collect();
        let ahead = ahead(&mut followers, &core.pace.needed, count);
        let pace = &mut core.pace;
        let as_before =
            ahead.len() == pace.needed.len() && ahead.iter().all(|node| pace.needed.contains(node));
        pace.passed = if as_before { 0 } else { pace.passed + 1 };
        if pace.passed >= AHEAD_MAX || ahead.len() != pace.needed.len() {
            pace.needed = ahead.into();
            pace.passed = 0;
        }
    }

    /// A follower's disk is waited for by more than this leader: it is among those that are hurried.
    pub(crate) fn need(&self, node: NodeId) {
        let mut core = self.lock();
        let is_voter = core.consensus.membership().is_voter(node);
        if is_voter && !core.pace.needed.contains(&node) {
            let others = core.pace.needed.iter().copied();
            let kept = core.pace.needed.len().saturating_sub(1);
            core.pace.needed = std::iter::once(node).chain(others.take(kept)).collect();
            core.pace.passed = 0;
        }
    }

    /// Whether proposals gather for the end of the sync that is under way.
    pub(super) fn gathers(&self, core: &Core, now: Instant) -> bool {
        core.writing && self.many_wait() && now.since(core.writing_since) < GATHER_MAX
    }

    /// Somebody waits for what may have been sent unhurried: the followers that are needed get to
    /// work on it.
    pub(super) fn hurry_needed(&self, core: &mut Core) {
        if core.led.is_none() || core.pace.unhurried.is_empty() {
            return;
        }
        self.choose_needed(core);
        let needed = core.pace.needed.clone();
        for node in needed.iter().copied() {
            if core.pace.unhurried.contains(&node) {
                core.pace.note_sent(node, false);
                let nothing = encode_consensus(self.config.group, &[], false);
                self.transport.send(node, nothing);
                core.after.send = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_ahead_are_needed() {
        let nodes = |list: &[u64]| list.iter().map(|id| NodeId(*id)).collect::<Vec<_>>();
        let at = |list: &[(u64, u64)]| -> Vec<(NodeId, u64)> {
            list.iter().map(|(id, lsn)| (NodeId(*id), *lsn)).collect()
        };
        let none = nodes(&[]);
        assert_eq!(ahead(&mut at(&[(2, 5), (3, 7)]), &none, 1), nodes(&[3]));
        assert_eq!(ahead(&mut at(&[(2, 7), (3, 7)]), &none, 1), nodes(&[2]));
        let third = nodes(&[3]);
        assert_eq!(ahead(&mut at(&[(2, 7), (3, 7)]), &third, 1), third);
        assert_eq!(ahead(&mut at(&[(2, 8), (3, 7)]), &third, 1), nodes(&[2]));
        let four = &[(2, 1), (3, 2), (4, 3), (5, 4)];
        assert_eq!(ahead(&mut at(four), &none, 2), nodes(&[5, 4]));
    }

    #[test]
    fn a_hurried_frame_ends_the_delay() {
        let mut pace = Pace::default();
        assert!(pace.may_sync());
        assert!(pace.received_unhurried(Instant(1_000)));
        assert!(!pace.received_unhurried(Instant(2_000)));
        assert_eq!(pace.sync_at(), Some(Instant(1_000).after(SYNC_DELAY)));
        pace.tick(Instant(3_000));
        assert!(!pace.may_sync());
        pace.tick(Instant(1_000).after(SYNC_DELAY));
        assert!(pace.may_sync());
        pace.received_unhurried(Instant(9_000));
        pace.hurry();
        assert!(pace.may_sync());
    }
}
