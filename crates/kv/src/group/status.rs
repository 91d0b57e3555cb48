//! What a group shows of itself.

use std::sync::atomic::Ordering;

use base::engine::{ClusterStatus, ReplicaStatus, SyncState};
use base::env::Instant;
use base::{Lsn, NodeId, Timestamp};

use super::core::Core;
use super::Group;
use crate::config::Member;

/// A voter without a leader asks the others for their votes again and again, several times within
/// an election timeout; one that has not been heard of within so many of them is missed.
const HEARD_WITHIN_TIMEOUTS: u32 = 2;

/// Whom a node misses that hears of no leader.
#[derive(Clone, Debug)]
pub struct Missing {
    /// The voters that it has not heard of lately.
    pub voters: Vec<Member>,
    /// Whether the others, itself included if it votes, are a majority: then one of them will lead.
    pub is_majority_there: bool,
}

impl Group {
    /// As [`base::engine::ClusterMonitor::status`].
    pub fn status(&self) -> ClusterStatus {
        let now = self.env.now();
        let core = self.lock();
        let status = core.consensus.status(now);
        let names = core.named.text().clone();
        let (standbys, given_up) = core.named.in_force();
        let changing = core.consensus.is_changing_membership();
        let (standbys, given_up) = (standbys.clone(), given_up.to_vec());
        let is_active = |node: NodeId| {
            let peer = status.peers.iter().find(|peer| peer.node == node);
            peer.is_some_and(|peer| peer.active)
        };
        let lacks_standbys = core.led.is_some() && core.named.lacks(self.config.node, is_active);
        drop(core);
        let several_vote = status.membership.voters.len() > 1;
        let is_counted = |node: NodeId| is_active(node) && !given_up.contains(&node);
        let directory = self.directory();
        let lag = self.lag.lock();
        let known = |member: &Member| {
            let mut replica = ReplicaStatus {
                node: member.node,
                name: member.name.clone(),
                peer_address: member.peer_address.clone(),
                sql_address: member.sql_address.clone(),
                voter: member.voter,
                leaves: member.leaves.is_some(),
                zone: member.zone.clone(),
                priority: member.priority,
                sent_bytes: self.transport.sent_bytes(member.node),
                ..ReplicaStatus::default()
            };
            if member.node == self.config.node {
                replica.connected = true;
                replica.sent = status.last;
                replica.received = status.received;
                replica.flushed = status.flushed;
                replica.applied = status.applied;
                return replica;
            }
            let Some(peer) = status.peers.iter().find(|peer| peer.node == member.node) else {
                if Some(member.node) == status.leader {
                    let heard = self.shared.heard_at.load(Ordering::Relaxed);
                    replica.reported_at = (heard > 0).then_some(Timestamp(heard));
                }
                return replica;
            };
            let (seen, lags) = lag.of(member.node, status.flushed, now);
            replica.voter = peer.voter;
            replica.connected = peer.active;
            replica.connected_since = seen.connected_since.filter(|_| peer.active);
            replica.reported_at = seen.reported_at;
            let in_majority = peer.voter && several_vote;
            (replica.sync_priority, replica.sync_state) =
                standbys.sync_state(peer.node, self.config.node, in_majority, is_counted);
            if given_up.contains(&peer.node) {
                replica.sync_state = SyncState::GivenUp;
            }
            replica.log_left = self.log_left(peer.flushed);
            replica.sent = peer.sent;
            replica.received = peer.received;
            replica.flushed = peer.flushed;
            replica.applied = peer.applied;
            [replica.write_lag, replica.flush_lag, replica.replay_lag] = lags;
            replica
        };
        let mut replicas: Vec<_> = directory.members.iter().map(known).collect();
        replicas.sort_by_key(|replica| replica.node);
        ClusterStatus {
            group: self.config.group,
            node: self.config.node,
            leader: status.leader,
            term: status.term,
            commit: status.commit,
            incarnation: directory.incarnation,
            begun_after: directory.begun_after,
            leader_zone: directory.leader_zone.clone(),
            changing,
            synchronous_standby_names: names,
            lacks_standbys,
            replicas,
            consistency: self.consistency(),
        }
    }

    /// The voters that are missed; none while this node leads or has heard of a leader lately.
    pub fn missing(&self) -> Option<Missing> {
        let now = self.env.now();
        let within = self.config.settings.election_timeout * HEARD_WITHIN_TIMEOUTS;
        let this = self.config.node;
        let core = self.lock();
        let is_heard_lately = |node: NodeId| {
            let heard = core.heard.get(&node);
            node == this || heard.is_some_and(|heard| now.since(*heard) < within)
        };
        let leader = core.consensus.leader();
        if leader.is_some_and(is_heard_lately) {
            return None;
        }
        let membership = core.consensus.membership();
        // Nobody but a leader says anything to a learner.
        let votes = membership.is_voter(this);
        let is_there = |node: NodeId| match votes || leader == Some(node) {
            true => is_heard_lately(node),
            false => self.transport.is_connected(node),
        };
        let directory = self.directory();
        let members = directory.members.iter();
        let absent =
            members.filter(|member| membership.is_voter(member.node) && !is_there(member.node));
        Some(Missing {
            voters: absent.cloned().collect(),
            is_majority_there: membership.is_majority(is_there),
        })
    }

    /// How much the log may grow before it lets go of what follows a position; none if it has.
    fn log_left(&self, flushed: Lsn) -> Option<u64> {
        let is_there = self.log.first() <= flushed.next();
        let most = self.config.settings.absent_log_bytes_max;
        is_there.then(|| most.saturating_sub(self.log.bytes_after(flushed)))
    }

    /// The time of the newest record that is applied.
    pub fn replayed_until(&self) -> Timestamp {
        self.timestamp()
    }

    /// The greatest timestamp that the group has given, has been moved past, or has applied.
    pub fn timestamp(&self) -> Timestamp {
        self.lock().timestamp
    }

    /// A message of another replica was taken: a leader measures how far it has come.
    pub(super) fn note_lag(&self, core: &Core, from: NodeId) {
        if core.led.is_none() {
            let wall = self.env.wall_clock().0;
            return self.shared.heard_at.store(wall, Ordering::Relaxed);
        }
        let now = self.env.now();
        let wall = self.env.wall_clock();
        let mut lag = self.lag.lock();
        if !lag.heard(from, now, wall) {
            return;
        }
        for replica in core.consensus.replicas(now) {
            if replica.node == from {
                let marks = [replica.received, replica.flushed, replica.applied];
                lag.note(from, marks, now);
            } else if !replica.active {
                lag.silent(replica.node);
            }
        }
    }

    pub(super) fn note_flushed(&self, lsn: Lsn, now: Instant) {
        if !self.is_sole_member() {
            self.lag.lock().flushed(lsn, now);
        }
    }
}
