//! What leaders believe, held against the truth.
//!
//! **Leases.** Who holds one serves reads alone, so no two nodes may hold one at the same time.
//!
//! **Watermarks.** A leader counts what replicas have received and applied, and its clients' replies
//! rest on that. So no leader may believe more of a replica than is true, and none may believe that a replica
//! has more than the leader's own log. Excepted is a replica that has died since the leader's term
//! began: with its memory it has lost what was applied and not written, and with its power what was
//! written and not synced.

use std::collections::BTreeMap;
use std::time::Duration;

use base::engine::{ClusterStatus, ReplicaStatus};
use base::GroupId;

use crate::cluster::Cluster;
use crate::faults::Deaths;

/// Looks at a cluster again and again.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// When each term's leader was first seen, and the time of the look before that.
    terms: BTreeMap<u64, Duration>,
    last_look: Duration,
}

impl Watch {
    /// What is wrong with the figures of any leader now.
    pub fn look(&mut self, cluster: &Cluster, deaths: &[Deaths]) -> Option<String> {
        let statuses: Vec<Option<ClusterStatus>> = (0..cluster.len())
            .map(|node| Some(cluster.node(node)?.group().status()))
            .collect();
        let before = std::mem::replace(&mut self.last_look, cluster.world.elapsed());
        if let Some(wrong) = two_leases(cluster) {
            return Some(wrong);
        }
        for status in statuses.iter().flatten() {
            if status.leader != Some(status.node) {
                continue;
            }
            let since = *self.terms.entry(status.term.0).or_insert(before);
            let own = figures(status)?;
            for replica in &status.replicas {
                let Some(number) = cluster.place_of(replica.node) else {
                    continue;
                };
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
                let Some(truth) = truth.and_then(figures) else {
                    continue;
                };
                let excused = |death: Option<Duration>| death.is_some_and(|at| at >= since);
                let died = deaths.get(number).copied().unwrap_or_default();
                let received = replica.received > truth.received && !excused(died.power);
                let applied = replica.applied > truth.applied && !excused(died.process);
                if received || applied {
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

fn two_leases(cluster: &Cluster) -> Option<String> {
    let nodes = (0..cluster.len()).filter_map(|node| cluster.node(node));
    let mut holders: BTreeMap<GroupId, Vec<String>> = BTreeMap::new();
    for node in nodes {
        for group in node.hosting().groups() {
            if group.holds_lease() {
                holders
                    .entry(group.id())
                    .or_default()
                    .push(node.status().name);
            }
        }
    }
    let (group, several) = holders.iter().find(|(_, of)| of.len() > 1)?;
    let names = several.join(" and ");
    Some(format!(
        "{names} hold a lease of group {group} at the same time"
    ))
}

/// What a replica says of itself.
fn figures(status: &ClusterStatus) -> Option<&ReplicaStatus> {
    status.replicas.iter().find(|one| one.node == status.node)
}
