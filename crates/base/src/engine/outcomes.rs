//! What is kept of transactions that have ended, so that nobody has to guess.
//!
//! # Ids
//! An id is a place in the log, which every leadership before it moves on by [`PLACES_BETWEEN_TERMS`]:
//!
//! ```text
//! place = LSN + leaderships before × PLACES_BETWEEN_TERMS
//! id    = FIRST_XID + 2 × place + kind
//!                                 0  by its commit: that entry's place
//!                                 1  asked for before its commit: a place above all visible ones
//! ```
//! An id of the first kind needs no table: the entry at that place of the log is of that leadership,
//! or it never happened. One of the second kind is a row that its transaction inserts when it
//! commits. So ids grow, whoever leads, however large terms get, and none is ever given twice: a
//! leader gives no id that lies further beyond what is committed than one leadership moves the
//! next.
//!
//! # What it leaves out
//! Ids below [`FIRST_XID`], and those of forced recoveries above it, were given by earlier builds,
//! which made them of terms; nothing is known of those any more.
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
//! Rows of old are deleted. How old they are, wall clocks say, which may be wrong; so what is deleted
//! is noted too, by the newest LSN at which such a row was written. A flight without a row that began
//! below that may have had one, and is not sent again.

use crate::durability::Debt;
use crate::error::Result;
use crate::ids::{Lsn, TreeId, Xid};

/// Below this, ids of ours begin at no place.
pub const FIRST_XID: u64 = 1 << 62;

/// By so much a leadership moves ids on. Entries of a leader that are not committed, and ids that
/// are asked for beyond them, are half as many at most, so that none reaches the next leadership's.
/// Ids last for some eight thousand million leaderships.
pub const PLACES_BETWEEN_TERMS: u64 = 1 << 28;

/// Ids are given up to so many places beyond what is committed.
pub const PLACES_AHEAD_MAX: u64 = PLACES_BETWEEN_TERMS / 2;

const PLACE_MAX: u64 = (i64::MAX as u64 - FIRST_XID) / 2;

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
    /// The id of a kind at a place; none when they have run out.
    pub fn new(kind: XidKind, place: u64) -> Option<Xid> {
        let asked = match kind {
            XidKind::ByCommit => 0,
            XidKind::Asked => 1,
        };
        (place <= PLACE_MAX).then_some(Xid(FIRST_XID + 2 * place + asked))
    }

    /// The kind and the place; none of an id that is not ours.
    pub fn parts(self) -> Option<(XidKind, u64)> {
        let number = self.0.checked_sub(FIRST_XID)?;
        let kind = match number % 2 {
            0 => XidKind::ByCommit,
            _ => XidKind::Asked,
        };
        Some((kind, number / 2))
    }
}

/// Knows what became of transactions.
pub trait Outcomes: Send + Sync {
    /// The id of a transaction that has just committed, from what its commit returned; none for one
    /// that has logged nothing.
    fn committed_xid(&self, commit: &Debt) -> Option<Xid>;

    /// The place in the log of the commit that wrote the newest version of a row; none where there is
    /// no row.
    ///
    /// # Errors
    /// As reads.
    fn row_place(&self, tree: TreeId, key: &[u8]) -> Result<Option<Lsn>>;

    /// What became of a transaction; waits until that is settled. None for an id that was never
    /// given, or that is so old that nothing is known.
    ///
    /// # Errors
    /// 40001 when this node does not lead; 22023 for an id of the future.
    fn xid_status(&self, xid: Xid) -> Result<Option<XidStatus>>;

    /// The newest that a session has committed in a flight or later ones, if anything; waits until
    /// that is settled. Id 0 where something was, or may have been, and it cannot be told which: the
    /// flight began after `since` was committed, and what is known of flights from then on was
    /// forgotten.
    ///
    /// # Errors
    /// 40001 when this node does not lead.
    fn flight_outcome(&self, flight: Flight, since: Lsn) -> Result<Option<Xid>>;
}

/// What is kept of one transaction when it has ended.
pub trait TxnOutcome {
    /// Its id for its client, where it has one; it is given one if `assign` says so, or when it has
    /// written.
    ///
    /// # Errors
    /// 40001 when leadership has changed.
    fn xid(&mut self, assign: bool) -> Result<Option<Xid>>;

    /// What its commit is noted under from now on ([`super::TxnOptions::flight`]).
    fn set_flight(&mut self, flight: Flight);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_apart_and_fit_a_bigint() {
        for kind in [XidKind::ByCommit, XidKind::Asked] {
            for place in [0, 1, 123_456, PLACES_BETWEEN_TERMS << 32, PLACE_MAX] {
                let xid = Xid::new(kind, place).unwrap();
                assert_eq!(xid.parts(), Some((kind, place)));
                assert!(i64::try_from(xid.0).is_ok(), "{xid}");
            }
        }
        assert_eq!(Xid::new(XidKind::Asked, PLACE_MAX + 1), None);
        assert_eq!(Xid(FIRST_XID - 1).parts(), None);
    }

    #[test]
    fn ids_grow_with_their_places() {
        let id = |kind, place| Xid::new(kind, place).unwrap();
        assert!(id(XidKind::ByCommit, 7) < id(XidKind::Asked, 7));
        assert!(id(XidKind::Asked, 7) < id(XidKind::ByCommit, 8));
    }
}
