//! What a group shows of itself.

use std::sync::Arc;

use base::engine::{ClusterStatus, ReplicaStatus};
use base::env::Instant;
use base::{Lsn, NodeId};

use super::core::Core;
use super::Group;
use crate::config::Member;

impl Group {
    /// As [`base::engine::Engine::status`].
    pub fn status(&self) -> ClusterStatus {
        let now = self.env.now();
        let status = self.lock().consensus.status(now);
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
                return replica;
            };
            let (seen, lags) = lag.of(member.node, status.flushed, now);
            replica.voter = peer.voter;
            replica.connected = peer.active;
            replica.connected_since = seen.connected_since.filter(|_| peer.active);
            replica.reported_at = seen.reported_at;
            replica.sent = peer.sent;
            replica.received = peer.received;
            replica.flushed = peer.flushed;
            replica.applied = peer.applied;
            [replica.write_lag, replica.flush_lag, replica.replay_lag] = lags;
            replica
        };
        let mut replicas: Vec<_> = self.config.members.iter().map(known).collect();
        replicas.sort_by_key(|replica| replica.node);
        ClusterStatus {
            group: self.config.group,
            node: self.config.node,
            leader: status.leader,
            term: status.term,
            commit: status.commit,
            synchronous_standby_names: Arc::clone(&self.config.settings.synchronous_standby_names),
            replicas,
        }
    }

    /// A message of another replica was taken: a leader measures how far it has come.
    pub(super) fn note_lag(&self, core: &Core, from: NodeId) {
        if core.led.is_none() {
            return;
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
