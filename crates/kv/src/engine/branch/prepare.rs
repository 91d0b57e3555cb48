//! The parts of a commit across groups, on their way to the logs of groups that other nodes lead.
//!
//! All parts are appended at once, so a commit takes the one round trip that others take:
//!
//! ```text
//! session on n1    asks n2 to prepare      appends its own part          hears of n2's, and counts
//! n2, group 2              appends it, and has it on disk ─► answers
//! n1, group 2                     has it on disk, too                    two of three: it is committed
//! n3, group 1                                          ─► acknowledges   two of three: so is its own
//! ```
//! What the majority of a group's voters have on disk in the term of the leader that has appended it, is
//! committed, whether that leader knows yet or not. So the coordinator counts, of each other group, the
//! leader, which answers as soon as it is on its own disk, and the replica on its own node ([`Prepared`]).
//! With three voters these are a majority; with more, or while voters change, the group's own commit is
//! waited for.
//!
//! # Invariants
//! - Nothing is counted twice, or by who is no voter, or in another term than the part was appended in.
//! - An error of a part is true once the coordinator's own log has its abort.

use std::sync::Arc;

use base::{Debt, Durability, GroupId, NodeId, Position, Result, Timestamp};
use raft::planted::{is_planted, Bug};
use spanning::{Flushed, Participant, SpanningId};

use super::calls::Answer;
use super::link::Connection;
use super::place::{unexpected, Place};
use crate::group::Group;

/// A part of a commit across groups, to be prepared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preparing {
    /// The transaction.
    pub id: SpanningId,
    /// Of the same coordinator's transactions, all with smaller numbers are over.
    pub unfinished: u64,
    /// All its groups.
    pub participants: Vec<Participant>,
    /// The greatest timestamp that its session has heard of.
    pub heard: Timestamp,
    /// At which level its reply is awaited.
    pub durability: Durability,
}

/// A part that whoever leads its group has been given.
pub enum Handed {
    /// In the log of a group that this node leads.
    Appended(Debt),
    /// Asked of another node.
    Asked(Asked),
}

/// What the leader of a group says of a part that it has appended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prepared {
    /// The timestamp that it proposes.
    pub proposed: Timestamp,
    /// Whose disks count, the leader's among them, which has it; nobody's where the group's own commit
    /// is to be waited for.
    pub voters: Vec<NodeId>,
}

/// A part that another node was asked for. Dropped before it has answered, the connection is closed.
pub struct Asked {
    pub(super) place: Place,
    pub(super) connection: Option<Connection>,
    pub(super) debt: Debt,
}

impl Asked {
    /// What was answered: what its reply rests on, and where to look for it.
    ///
    /// # Errors
    /// As [`Branching::prepare_part`](super::Branching::prepare_part).
    pub fn answered(mut self) -> Result<(Debt, Elsewhere)> {
        let (answer, condition) = self.place.last_answer(&mut self.connection)?;
        let prepared = match answer? {
            Answer::Prepared(prepared) => prepared,
            _ => return unexpected(),
        };
        let group = self.place.group.id();
        let mut parts = condition.debt.groups();
        let Some(part) = parts.find(|part| part.group == group) else {
            return unexpected();
        };
        self.debt.merge(&condition.debt);
        let elsewhere = Elsewhere {
            leader: self.place.node,
            here: self.place.group.clone(),
            position: part.position,
            prepared,
        };
        Ok((self.debt, elsewhere))
    }
}

/// A part in the log of a group that another node leads.
#[derive(Debug)]
pub struct Elsewhere {
    leader: NodeId,
    /// The group, as this node has it.
    here: Arc<Group>,
    position: Position,
    prepared: Prepared,
}

impl Elsewhere {
    /// Its group.
    pub fn group(&self) -> GroupId {
        self.here.id()
    }

    /// Who has it on disk, once this node has; nobody where this node does not count.
    pub async fn flushed(&self, id: SpanningId) -> Vec<Flushed> {
        let Prepared { proposed, voters } = &self.prepared;
        let flushed = |node: NodeId| Flushed {
            id,
            group: self.here.id(),
            term: self.position.term,
            node,
            voters: voters.len(),
            proposed: *proposed,
        };
        let (there, here) = (self.leader, self.here.node());
        let counts = [there, here].iter().all(|node| voters.contains(node));
        if counts
            && (is_planted(Bug::PartUncommitted) || self.here.has_flushed(self.position).await)
        {
            return vec![flushed(there), flushed(here)];
        }
        Vec::new()
    }
}
