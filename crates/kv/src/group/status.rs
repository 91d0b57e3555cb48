//! What a group shows of itself.

use std::sync::atomic::Ordering;

use base::engine::{ClusterStatus, ReplicaStatus};
use base::env::Instant;
use base::{Lsn, NodeId, Timestamp};

use super::core::Core;
use super::Group;
use crate::config::Member;

impl Group {
    /// As [`base::engine::Engine::status`].
    pub fn status(&self) -> ClusterStatus {
        let now = self.env.now();
        let core = self.lock();
        let status = core.consensus.status(now);
        let names = core.named.text().clone();
        let (standbys, given_up) = core.named.in_force();
        let changing = core.consensus.is_changing_membership();
        let (standbys, given_up) = (standbys.clone(), given_up.to_vec());
        drop(core);
        let several_vote = status.membership.voters.len() > 1;
        let is_counted = |node: NodeId| {
            let peer = status.peers.iter().find(|peer| peer.node == node);
            peer.is_some_and(|peer| peer.active) && !given_up.contains(&node)
        };
        let directory = self.directory();
        let lag = self.lag.lock();
        let known = |member: &Member| {
            let mut replica = ReplicaStatus {
                node: member.node,
                name: member.name.clone(),
                peer_address: member.peer_address.clone(),
                sql_address: member.sql_address.clone(),
                voter: member.voter,
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
            replicas,
        }
    }

    /// How much the log may grow before it lets go of what follows a position; none if it has.
    fn log_left(&self, flushed: Lsn) -> Option<u64> {
        let is_there = self.log.first() <= flushed.next();
        let most = self.config.settings.absent_log_bytes_max;
        is_there.then(|| most.saturating_sub(self.log.bytes_after(flushed)))
    }

    /// The time of the newest record that is applied.
    pub fn replayed_until(&self) -> Timestamp {
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
