//! What the log of a group says about transactions that span groups.
//!
//! Entries are applied when they are appended, as rows are; where a tail is cut, the host puts back
//! the ledger of before.

use std::collections::BTreeMap;

use base::{Lsn, Timestamp};

use crate::messages::{Event, Outcome, Participant, SpanningId, Stamped};
use crate::planted::{is_planted, Bug};

/// A prepare without a resolution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// Where it stands.
    pub lsn: Lsn,
    /// The timestamp that it proposes.
    pub proposed: Timestamp,
    /// All groups of the transaction.
    pub participants: Vec<Participant>,
}

/// A commit that somebody may still ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Where its resolution stands.
    pub lsn: Lsn,
    /// The timestamp of the commit.
    pub timestamp: Timestamp,
    /// All groups of the transaction.
    pub participants: Vec<Participant>,
}

/// What a replica knows from its log; a checkpoint holds it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// The timestamp of the last entry.
    pub last: Timestamp,
    /// Up to here reads may have been served.
    pub ceiling: Timestamp,
    /// Where the entry stands that says so.
    pub ceiling_at: Lsn,
    /// Prepares without a resolution.
    pub open: BTreeMap<SpanningId, Open>,
    /// Commits that are kept.
    pub kept: BTreeMap<SpanningId, Kept>,
}

impl Ledger {
    /// Takes in the entry at `lsn`.
    pub fn apply(&mut self, lsn: Lsn, entry: &Stamped) {
        self.last = entry.timestamp;
        match &entry.event {
            Event::Local => {}
            Event::Prepare { id, participants } => {
                let (proposed, participants) = (entry.timestamp, participants.clone());
                let open = Open {
                    lsn,
                    proposed,
                    participants,
                };
                self.open.insert(*id, open);
            }
            Event::Resolution { id, outcome } => {
                let open = self.open.remove(id);
                if let (Some(open), Outcome::Committed(timestamp)) = (open, *outcome) {
                    let participants = open.participants;
                    let kept = Kept {
                        lsn,
                        timestamp,
                        participants,
                    };
                    self.kept.insert(*id, kept);
                }
            }
            Event::Forgotten { id } => {
                self.kept.remove(id);
            }
            Event::Ceiling(ceiling) => {
                self.ceiling = self.ceiling.max(*ceiling);
                self.ceiling_at = lsn;
            }
        }
    }

    /// Where the clock of a leader starts that has this log.
    pub fn begins_after(&self) -> Timestamp {
        match is_planted(Bug::CeilingIgnored) {
            true => self.last,
            false => self.last.max(self.ceiling),
        }
    }

    /// Up to where a leader may serve reads whose log is committed up to there: what the log says
    /// of later leaders' clocks is then sure.
    pub fn readable(&self, commit: Lsn) -> Timestamp {
        match self.ceiling_at <= commit {
            true => self.ceiling,
            false => Timestamp(i64::MIN),
        }
    }
}
