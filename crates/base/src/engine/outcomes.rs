//! What is kept of transactions that have ended, so that nobody has to guess.
//!
//! # Ids
//! ```text
//! 63      43  42   41                     0
//! │ term    │kind│ number within the term │
//!            0  by its commit: how many entries after the first of its term
//!            1  asked for before its commit: how many before it in this term
//! ```
//! An id of the first kind needs no table: the entry at that place of the log is of that term, or
//! it never happened. One of the second kind is a row that its transaction inserts when it commits.
//! A term has one leader, so neither is ever given twice.
//!
//! # Flights
//! A node that passes a session on to the leader numbers what it has sent and has no answer to: a
//! *flight*. Each commit of the session overwrites one row with the number. When the leader is
//! lost, the row tells the next one whether anything of the flight was appended:
//!
//! ```text
//! row < flight   nothing was: it may be sent again, nobody has seen anything of it
//! row ≥ flight   something was: 08007 with its id
//! ```

use crate::ids::{Term, Xid};

const NUMBER_BITS: u32 = 42;
const ASKED: u64 = 1 << NUMBER_BITS;
const TERM_SHIFT: u32 = NUMBER_BITS + 1;

/// Numbers of one kind in one term. A leader that has given all of them gives no more; at 100,000
/// a second that is after more than a year.
pub const XIDS_MAX: u64 = ASKED - 1;

/// What became of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XidStatus {
    /// It goes on.
    InProgress,
    /// It has committed.
    Committed,
    /// It has not, and will not.
    Aborted,
}

impl XidStatus {
    /// As `pg_xact_status()` says it.
    pub fn name(self) -> &'static str {
        match self {
            XidStatus::InProgress => "in progress",
            XidStatus::Committed => "committed",
            XidStatus::Aborted => "aborted",
        }
    }
}

/// Messages of a session that was passed on, to which there is no answer yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flight {
    /// The session, drawn at random by the node that has the client.
    pub session: u64,
    /// Larger than that of every earlier flight of the session.
    pub number: u64,
}

/// Where an id comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XidKind {
    /// From the place of its commit in the log.
    ByCommit,
    /// It was asked for before.
    Asked,
}

impl Xid {
    /// The id of a kind and a number from 1 in a term; none when the numbers have run out.
    pub fn new(term: Term, kind: XidKind, number: u64) -> Option<Xid> {
        let fits = number <= XIDS_MAX && term.0 < 1 << (63 - TERM_SHIFT);
        let asked = match kind {
            XidKind::ByCommit => 0,
            XidKind::Asked => ASKED,
        };
        fits.then_some(Xid(term.0 << TERM_SHIFT | asked | number))
    }

    /// The term, the kind and the number.
    pub fn parts(self) -> (Term, XidKind, u64) {
        let kind = match self.0 & ASKED {
            0 => XidKind::ByCommit,
            _ => XidKind::Asked,
        };
        (Term(self.0 >> TERM_SHIFT), kind, self.0 & XIDS_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_apart_and_fit_a_bigint() {
        for kind in [XidKind::ByCommit, XidKind::Asked] {
            for (term, number) in [(1, 1), (77, 123_456), ((1 << 20) - 1, XIDS_MAX)] {
                let xid = Xid::new(Term(term), kind, number).unwrap();
                assert_eq!(xid.parts(), (Term(term), kind, number));
                assert!(i64::try_from(xid.0).is_ok(), "{xid}");
            }
        }
        assert_eq!(Xid::new(Term(1), XidKind::Asked, XIDS_MAX + 1), None);
        assert_eq!(Xid::new(Term(1 << 20), XidKind::Asked, 1), None);
    }
}
