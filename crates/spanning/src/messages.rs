//! What stands in the logs of groups about transactions that span them, and what leaders say to
//! each other.

use base::{GroupId, NodeId, Term, Timestamp};

/// A transaction that spans groups. The term is a part of it because a group may give a number
/// again after a tail of its log was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpanningId {
    /// The group whose leader coordinates it.
    pub group: GroupId,
    /// The term in which that leader leads.
    pub term: Term,
    /// Which of that leader's transactions it is; they ascend.
    pub number: u64,
}

/// A group in which a transaction writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Participant {
    /// The group.
    pub group: GroupId,
    /// The only term in which it may prepare.
    pub term: Term,
}

/// What became of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is committed, at this timestamp in all its groups.
    Committed(Timestamp),
    /// It never happened.
    Aborted,
}

/// What a participant says of its prepare, for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vote {
    /// It is committed in the participant's log, and proposes this timestamp.
    Prepared(Timestamp),
    /// There is none and never will be.
    Refused,
}

/// A replica has a prepare on disk. Where the coordinator hears of it before the group's leader, that
/// saves half a round trip: with three voters, of which the coordinator's node is one, a commit takes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flushed {
    /// The transaction.
    pub id: SpanningId,
    /// The group whose log it is.
    pub group: GroupId,
    /// The term in which the replica was when its disk had it.
    pub term: Term,
    /// The replica's node.
    pub node: NodeId,
    /// How many voters the group has. While a change of membership is not committed nothing counts.
    pub voters: usize,
    /// The timestamp that the prepare proposes.
    pub proposed: Timestamp,
}

/// An entry of a group's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamped {
    /// Greater than that of the entry before. A prepare proposes it as its transaction's.
    pub timestamp: Timestamp,
    /// What happened.
    pub event: Event,
}

/// What an entry says, as far as this crate is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Something that concerns this group alone.
    Local,
    /// The writes of a transaction, which nobody sees yet.
    Prepare {
        /// The transaction.
        id: SpanningId,
        /// All its groups, this one among them.
        participants: Vec<Participant>,
    },
    /// What became of a prepare. It stands above it, and below anything that overwrites its rows.
    Resolution {
        /// The transaction.
        id: SpanningId,
        /// What became of it.
        outcome: Outcome,
    },
    /// Nobody will ask any more what became of a transaction.
    Forgotten {
        /// The transaction.
        id: SpanningId,
    },
    /// Reads may be served up to this timestamp, and later leaders begin above it.
    Ceiling(Timestamp),
}

/// What the leader of a group says to that of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Please prepare. The host sends the writes along.
    Prepare {
        /// The transaction.
        id: SpanningId,
        /// All its groups.
        participants: Vec<Participant>,
        /// Of this coordinator's transactions, all with smaller numbers are over.
        unfinished: u64,
    },
    /// What the sender's group has of a transaction.
    Vote {
        /// The transaction.
        id: SpanningId,
        /// What it has.
        vote: Vote,
        /// The term in which the sender leads.
        term: Term,
    },
    /// What became of a transaction, from one who knows.
    Outcome {
        /// The transaction.
        id: SpanningId,
        /// What became of it.
        outcome: Outcome,
        /// All its groups.
        participants: Vec<Participant>,
    },
    /// The sender is in doubt: what became of this transaction?
    Inquiry {
        /// The transaction.
        id: SpanningId,
        /// All its groups.
        participants: Vec<Participant>,
    },
    /// The sender's resolution is committed in its log.
    Resolved {
        /// The transaction.
        id: SpanningId,
    },
    /// All participants' resolutions are committed in their logs.
    Forget {
        /// The transaction.
        id: SpanningId,
    },
}

/// The term that a list of participants names for a group.
pub(crate) fn named(participants: &[Participant], group: GroupId) -> Option<Term> {
    let mut found = participants.iter().filter(|one| one.group == group);
    found.next().map(|one| one.term)
}
