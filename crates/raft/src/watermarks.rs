//! Which LSN each level of `synchronous_commit` has reached: pure functions over watermarks.
//!
//! ```text
//! level          the group                                   each standby named
//! off            everything                                  (not asked)
//! local          the leader's flush                          (not asked)
//! remote_write   a majority has received it; with one        received
//!                voter, flushed
//! on             the commit index                            flushed
//! remote_apply   the commit index, and a majority applied    applied
//! ```
//! The result is the smaller of the two columns: standbys named add to the majority, and never
//! subtract from it. A majority is one of each configuration while two are joint.
//!
//! # Invariants
//! * `on` is the commit index, never a count of ours.
//! * Every figure in a [`View`] was reported in the leader's term, up to where that replica's log
//!   is known to match; [`crate::Consensus`] sees to that.
//! * A new leader opens nothing from `remote_write` up, beyond the commit index that it knows,
//!   before the first entry of its own term satisfies that level. Until then a majority may hold
//!   entries of older terms that another leader could still replace.

use base::{Durability, Lsn, NodeId};

use crate::standby_names::{Method, Standbys};
use crate::types::Membership;

/// How far one replica is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replica {
    /// The node.
    pub node: NodeId,
    /// Whether it was heard of within an election timeout. `FIRST` passes over those that were
    /// not.
    pub active: bool,
    /// The operating system has the log up to here.
    pub received: Lsn,
    /// The disk has it up to here.
    pub flushed: Lsn,
    /// Its trees show it up to here.
    pub applied: Lsn,
}

/// What a leader knows of its group.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The membership in effect.
    pub membership: &'a Membership,
    /// The leader itself.
    pub leader: NodeId,
    /// All members, the leader included.
    pub replicas: &'a [Replica],
    /// Raft's commit index.
    pub commit: Lsn,
    /// The first entry of the leader's term.
    pub term_start: Lsn,
}

impl View<'_> {
    fn replica(&self, node: NodeId) -> Option<&Replica> {
        self.replicas.iter().find(|replica| replica.node == node)
    }

    /// The majority's figure.
    fn majority(&self, figure: impl Fn(&Replica) -> Lsn) -> Lsn {
        Lsn(majority(self.membership, |node| {
            self.replica(node).map_or(0, |replica| figure(replica).0)
        }))
    }
}

/// The highest LSN that satisfies a level.
pub fn satisfied(level: Durability, view: &View<'_>, standbys: &Standbys) -> Lsn {
    match level {
        Durability::Off => Lsn::MAX,
        Durability::Local => view
            .replica(view.leader)
            .map_or(Lsn::ZERO, |leader| leader.flushed),
        Durability::RemoteWrite => remote_write(view).min(named(view, standbys, level)),
        Durability::On => view.commit.min(named(view, standbys, level)),
        Durability::RemoteApply => remote_apply(view).min(named(view, standbys, level)),
    }
}

/// What a level asks of a standby that is named.
pub fn figure(level: Durability, replica: &Replica) -> Lsn {
    match level {
        Durability::Off | Durability::Local => Lsn::MAX,
        Durability::RemoteWrite => replica.received,
        Durability::On => replica.flushed,
        Durability::RemoteApply => replica.applied,
    }
}

/// What a majority has received. What is committed a majority even has on disk, whatever this
/// leader has heard of it.
fn remote_write(view: &View<'_>) -> Lsn {
    let counted = if view.membership.is_sole_voter(view.leader) {
        view.majority(|replica| replica.flushed)
    } else {
        view.majority(|replica| replica.received)
    };
    view.commit.max(after_own_entry(counted, view))
}

/// What is committed and a majority has applied.
fn remote_apply(view: &View<'_>) -> Lsn {
    view.commit.min(view.majority(|replica| replica.applied))
}

/// A count, once it covers an entry of the leader's own term; what it says before that may still
/// be replaced.
fn after_own_entry(counted: Lsn, view: &View<'_>) -> Lsn {
    if counted >= view.term_start {
        counted
    } else {
        counted.min(view.commit)
    }
}

/// What the standbys named agree on; everything if none are named.
fn named(view: &View<'_>, standbys: &Standbys, level: Durability) -> Lsn {
    if standbys.count == 0 {
        return Lsn::MAX;
    }
    let mut figures: Vec<Lsn> = Vec::with_capacity(standbys.nodes.len());
    for listed in &standbys.nodes {
        if listed.node == view.leader {
            // The leader is no standby, but a name given to it is satisfied.
            if !listed.by_star {
                figures.push(Lsn::MAX);
            }
            continue;
        }
        let Some(replica) = view.replica(listed.node).filter(|replica| replica.active) else {
            continue;
        };
        figures.push(figure(level, replica));
    }
    if figures.len() < standbys.count {
        return Lsn::ZERO;
    }
    match standbys.method {
        // The first so many of those that are there, in the order of the list.
        Method::First => figures.truncate(standbys.count),
        Method::Any => {}
    }
    figures.sort_unstable_by(|a, b| b.cmp(a));
    figures[standbys.count - 1]
}

/// The highest value that a majority of every configuration in effect has reached.
pub(crate) fn majority(membership: &Membership, value: impl Fn(NodeId) -> u64) -> u64 {
    let of = |voters: &[NodeId]| {
        let mut values: Vec<u64> = voters.iter().map(|voter| value(*voter)).collect();
        values.sort_unstable_by(|a, b| b.cmp(a));
        values.get(voters.len() / 2).copied()
    };
    // An empty outgoing configuration asks nothing; an empty group reaches nothing.
    let new = of(&membership.voters).unwrap_or(0);
    of(&membership.outgoing).map_or(new, |old| new.min(old))
}
