//! What leaders say of their replicas, held against the replicas themselves.
//!
//! A leader counts what replicas have received and applied, and its clients' replies rest on that.
//! So no leader may believe more of a replica than is true, and none may believe that a replica
//! has more than the leader's own log. The exception is a replica that has lost power since the
//! leader's term began: what it had not synced it has lost honestly.

use std::collections::BTreeMap;
use std::time::Duration;

use base::engine::{ClusterStatus, ReplicaStatus};

use crate::cluster::Cluster;

/// Looks at a cluster again and again.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// When each term's leader was first seen, and the time of the look before that.
    terms: BTreeMap<u64, Duration>,
    last_look: Duration,
}

impl Watch {
    /// What is wrong with the figures of any leader now.
    pub fn look(&mut self, cluster: &Cluster, lost_power: &[Option<Duration>]) -> Option<String> {
        let statuses: Vec<Option<ClusterStatus>> = (0..cluster.len())
            .map(|node| Some(cluster.node(node)?.group().status()))
            .collect();
        let before = std::mem::replace(&mut self.last_look, cluster.world.elapsed());
        for status in statuses.iter().flatten() {
            if status.leader != Some(status.node) {
                continue;
            }
            let since = *self.terms.entry(status.term.0).or_insert(before);
            let own = figures(status)?;
            for replica in &status.replicas {
                let number = replica.node.0 as usize - 1;
                let term = status.term;
                let believed = replica.received.max(replica.applied);
                if believed > own.sent {
                    return Some(format!(
                        "n{} leads in term {term} up to LSN {} and believes that {} has {believed}",
                        status.node, own.sent, replica.name
                    ));
                }
                let truth = statuses[number].as_ref();
                let truth = truth.filter(|truth| truth.term == term);
                let is_excused = lost_power[number].is_some_and(|lost| lost >= since);
                let Some(truth) = truth.filter(|_| !is_excused).and_then(figures) else {
                    continue;
                };
                if replica.received > truth.received || replica.applied > truth.applied {
                    return Some(format!(
                        "n{} leads in term {term} and believes that {} has received {} and \
                         applied {}, but it has received {} and applied {}",
                        status.node,
                        replica.name,
                        replica.received,
                        replica.applied,
                        truth.received,
                        truth.applied
                    ));
                }
            }
        }
        None
    }
}

/// What a replica says of itself.
fn figures(status: &ClusterStatus) -> Option<&ReplicaStatus> {
    status.replicas.iter().find(|one| one.node == status.node)
}
