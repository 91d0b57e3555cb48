//! At which timestamp a statement reads that looks at several groups, and what it sees of their
//! prepares.
//!
//! The timestamp is the greatest *last* timestamp of the groups that it reads, so whatever was
//! committed there before is seen. Prepares that stood then are waited for, and the snapshot goes
//! forward to their commits: their clients may know of them already, though none of these groups
//! has heard.
//!
//! A statement that reads one group takes what is visible there, without a clock, unless its session has
//! heard of a later timestamp elsewhere: then it reads at that one, like any other snapshot. Otherwise
//! what is written there next could be earlier than what the session knows, and who reads both
//! groups later would find an order that the session has seen to be another.
//!
//! ```
//! use base::Timestamp;
//! use spanning::{Outcome, Shown, Snapshot};
//! let mut snapshot = Snapshot::new(Timestamp(40));
//! snapshot.heard(Timestamp(100));
//! // A prepare that stood in the groups read was committed at 105.
//! snapshot.settled(Outcome::Committed(Timestamp(105)));
//! assert_eq!(snapshot.timestamp(), Timestamp(105));
//! assert_eq!(snapshot.shows(Timestamp(104), None), Shown::Later);
//! assert_eq!(snapshot.shows(Timestamp(106), None), Shown::Not);
//! ```

use base::Timestamp;

use crate::ledger::Ledger;
use crate::messages::{Outcome, SpanningId};
use crate::planted::{is_planted, Bug};

/// The timestamp of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    timestamp: Timestamp,
}

/// What a snapshot sees of a transaction that spans groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// All of it.
    All,
    /// Nothing.
    Not,
    /// That is known when its outcome is.
    Later,
}

impl Snapshot {
    /// Begins with what its session has heard of.
    pub fn new(heard: Timestamp) -> Snapshot {
        Snapshot { timestamp: heard }
    }

    /// A group that it reads has this last timestamp.
    pub fn heard(&mut self, last: Timestamp) {
        self.timestamp = self.timestamp.max(last);
    }

    /// A prepare that stood in a group which it reads has become this.
    pub fn settled(&mut self, outcome: Outcome) {
        if let (Outcome::Committed(at), false) = (outcome, is_planted(Bug::StandingPassed)) {
            self.timestamp = self.timestamp.max(at);
        }
    }

    /// What it reads at.
    pub fn timestamp(&self) -> Timestamp {
        self.timestamp
    }

    /// What it sees of a transaction that a group has prepared with this proposal, whose outcome
    /// is this as far as the group knows.
    pub fn shows(&self, proposed: Timestamp, outcome: Option<Outcome>) -> Shown {
        match outcome {
            Some(Outcome::Committed(at)) if at <= self.timestamp => Shown::All,
            Some(_) => Shown::Not,
            None if is_planted(Bug::PrepareShown) => Shown::All,
            None if is_planted(Bug::PreparePassed) => Shown::Not,
            // Its commit cannot be earlier than its proposal.
            None if proposed > self.timestamp => Shown::Not,
            None => Shown::Later,
        }
    }
}

/// The prepares that stand in a group.
pub fn standing(ledger: &Ledger) -> Vec<SpanningId> {
    ledger.open.keys().copied().collect()
}
