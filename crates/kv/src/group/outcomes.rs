//! What became of transactions: ids for clients, and answers about them
//! ([`base::engine::XidStatus`] says what ids are made of).
//!
//! | tree | key | row | written by |
//! |---|---|---|---|
//! | `TERMS` | term | the LSN of its first entry | that entry, on every replica |
//! | `OUTCOMES` | an id that was asked for | when (seconds) | its transaction's commit |
//! | `SESSIONS` | a session that was passed on | the flight it is in, when | each commit of it |
//!
//! All are ordinary rows: a cut takes them back, a checkpoint has them. An id that was asked for
//! and is no row belongs to a transaction that goes on, which this leader knows, or to none.
//!
//! # What it leaves out
//! Rows of `TERMS` stay for ever: some twenty bytes an election.

use std::collections::BTreeSet;
use std::sync::Arc;

use base::codec::Reader;
use base::engine::{Direction, Flight, RowBatch, XidKind, XidStatus};
use base::row::{Row, RowBuilder};
use base::sync::Mutex;
use base::{coro, Durability, Error, KeyRange, Lsn, Position, Result, SqlState, Term, TreeId, Xid};
use raft::planted::{is_planted, Bug};
use storage::Store;

use super::{Group, Snapshot};
use crate::record::{Change, RowChange};

/// How long it is known what became of a transaction whose id was asked for, at least.
pub const OUTCOMES_KEPT_SECONDS: i64 = 2 * 3_600;

/// Rows that are older are deleted by later commits, which look at so many each.
pub const LOOKED_AT_PER_COMMIT: usize = 2;

/// How long a session's row is kept after its last commit. One that goes on after that needs none.
pub const SESSIONS_KEPT_SECONDS: i64 = 24 * 3_600;

/// Every so many flights a session looks for rows of sessions that are gone.
pub const FLIGHTS_PER_LOOK: u64 = 32;

/// The transactions of this leader that have asked for their ids and go on.
#[derive(Debug, Default)]
pub struct Asked(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    term: Term,
    last: u64,
    open: BTreeSet<Xid>,
}

/// An id that a transaction has asked for; until it is dropped, the transaction goes on.
#[derive(Debug)]
pub struct AskedXid {
    asked: Arc<Asked>,
    xid: Xid,
}

impl AskedXid {
    /// The id.
    pub fn xid(&self) -> Xid {
        self.xid
    }
}

impl Drop for AskedXid {
    fn drop(&mut self) {
        self.asked.0.lock().open.remove(&self.xid);
    }
}

impl Asked {
    /// An id for a transaction of this term.
    pub fn next(self: &Arc<Self>, term: Term) -> Result<AskedXid> {
        let mut state = self.0.lock();
        if state.term != term {
            *state = State {
                term,
                ..State::default()
            };
        }
        let xid = Xid::new(term, XidKind::Asked, state.last + 1).ok_or_else(used_up)?;
        state.last += 1;
        state.open.insert(xid);
        Ok(AskedXid {
            asked: self.clone(),
            xid,
        })
    }

    fn is_open(&self, xid: Xid) -> bool {
        self.0.lock().open.contains(&xid)
    }

    fn last(&self, term: Term) -> u64 {
        let state = self.0.lock();
        match state.term == term {
            true => state.last,
            false => 0,
        }
    }
}

fn used_up() -> Error {
    Error::new(
        SqlState::PROGRAM_LIMIT_EXCEEDED,
        "the transaction IDs of this term are used up",
    )
    .with_hint("Make another node the leader.")
}

/// What the first entry of a term notes.
pub fn note_term(first: Position) -> RowChange {
    RowChange {
        tree: TreeId::TERMS,
        key: first.term.0.to_be_bytes().to_vec(),
        change: Change::Insert(
            RowBuilder::new(1)
                .value(&first.lsn.0.to_be_bytes())
                .finish(),
        ),
    }
}

/// The row of an id that was asked for.
pub fn outcome_row(now_seconds: i64) -> Vec<u8> {
    RowBuilder::new(1)
        .value(&now_seconds.to_be_bytes())
        .finish()
}

/// When a row of `OUTCOMES` or `SESSIONS` was written.
pub fn time_of(row: &[u8]) -> Result<i64> {
    let last = Row::parse(row)?.columns().len().saturating_sub(1);
    number(row, last).map(|time| time as i64)
}

/// The row of a session that was passed on.
pub fn session_row(flight: Flight, now_seconds: i64) -> Vec<u8> {
    RowBuilder::new(2)
        .value(&flight.number.to_be_bytes())
        .value(&now_seconds.to_be_bytes())
        .finish()
}

fn number(row: &[u8], column: usize) -> Result<u64> {
    let row = Row::parse(row)?;
    let bytes = row.column(column).unwrap_or_default();
    let mut reader = Reader::new(bytes);
    let number = reader.u64()?;
    reader.finish()?;
    Ok(number)
}

/// The LSN of the first entry of a term.
fn term_start(store: &Store, term: Term) -> Result<Option<Lsn>> {
    let mut row = Vec::new();
    let found = store.get(TreeId::TERMS, &term.0.to_be_bytes(), Lsn::MAX, &mut row)?;
    match found.exists {
        true => number(&row, 0).map(|lsn| Some(Lsn(lsn))),
        false => Ok(None),
    }
}

/// The LSN of the first entry of the first term after this one.
fn next_start(store: &Store, term: Term) -> Result<Option<Lsn>> {
    let range = KeyRange {
        start: (term.0 + 1).to_be_bytes().to_vec(),
        ..KeyRange::all()
    };
    let mut batch = RowBatch::default();
    let direction = Direction::Forward;
    store.scan(TreeId::TERMS, &range, direction, Lsn::MAX, 1, &mut batch)?;
    let first = batch.iter().next();
    first.map(|(_, row)| number(row, 0).map(Lsn)).transpose()
}

impl Group {
    /// The id of the transaction whose record is there.
    pub fn xid_at(&self, position: Position) -> Option<Xid> {
        let start = term_start(&self.store(), position.term).ok()??;
        let number = (position.lsn.0 + 1).checked_sub(start.0)?;
        Xid::new(position.term, XidKind::ByCommit, number)
    }

    /// The time by the wall, in seconds.
    pub fn wall_seconds(&self) -> i64 {
        self.env.wall_clock().0 / 1_000_000
    }

    /// An id for a transaction that goes on in this term.
    pub fn ask_xid(&self, term: Term) -> Result<AskedXid> {
        self.asked.next(term)
    }

    /// As [`base::engine::Engine::xid_status`].
    ///
    /// # Errors
    /// [`super::not_leader`]; 22023 for an id of the future.
    pub fn xid_status(self: &Arc<Self>, xid: Xid) -> Result<Option<XidStatus>> {
        let snapshot = self.snapshot()?;
        let (term, kind, number) = xid.parts();
        let is_future = match kind {
            _ if term != snapshot.term() => term > snapshot.term(),
            XidKind::ByCommit => self.commit_at(term, number)? > Some(snapshot.lsn()),
            XidKind::Asked => number > self.asked.last(term),
        };
        if is_future {
            let message = format!("transaction ID {xid} is in the future");
            return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
        let status = match kind {
            XidKind::ByCommit => self.status_by_commit(term, number, &snapshot)?,
            XidKind::Asked => self.status_of_asked(xid)?,
        };
        self.settle_newest(snapshot.term())?;
        Ok(status)
    }

    /// What was seen in this term until now is so for good. Before an entry of its own term is
    /// committed, a leader does not know what became of earlier ones that it does not have.
    fn settle_newest(self: &Arc<Self>, term: Term) -> Result<()> {
        self.check_term(term)?;
        let lsn = self.visible().lsn;
        coro::wait(self.settle(Position { term, lsn }, Durability::On))?
    }

    fn commit_at(&self, term: Term, number: u64) -> Result<Option<Lsn>> {
        let start = term_start(&self.store(), term)?;
        Ok(start
            .map(|start| Lsn(start.0 + number - 1))
            .filter(|_| number > 0))
    }

    fn status_by_commit(
        &self,
        term: Term,
        number: u64,
        snapshot: &Snapshot,
    ) -> Result<Option<XidStatus>> {
        let Some(lsn) = self.commit_at(term, number)? else {
            // The whole term left nothing, or it is no id at all.
            let is_id = term > Term(0) && number > 0;
            return Ok(is_id.then_some(XidStatus::Aborted));
        };
        let end = next_start(&self.store(), term)?;
        let happened = lsn <= snapshot.lsn() && end.is_none_or(|end| lsn < end);
        Ok(Some(match happened {
            true => XidStatus::Committed,
            false => XidStatus::Aborted,
        }))
    }

    fn status_of_asked(&self, xid: Xid) -> Result<Option<XidStatus>> {
        if xid.parts().2 == 0 {
            return Ok(None);
        }
        // Whoever ends between the two looks is a row at the third.
        let has_row = || -> Result<bool> {
            let mut row = Vec::new();
            let key = xid.0.to_be_bytes();
            let found = self
                .store()
                .get(TreeId::OUTCOMES, &key, Lsn::MAX, &mut row)?;
            Ok(found.exists)
        };
        if has_row()? {
            return Ok(Some(XidStatus::Committed));
        }
        if self.asked.is_open(xid) && !has_row()? {
            return Ok(Some(XidStatus::InProgress));
        }
        if has_row()? {
            return Ok(Some(XidStatus::Committed));
        }
        match self.is_forgotten(xid)? {
            true => Ok(None),
            false => Ok(Some(XidStatus::Aborted)),
        }
    }

    /// Whether rows of ids as old as this one may have been deleted: there is none before it.
    fn is_forgotten(&self, xid: Xid) -> Result<bool> {
        let mut batch = RowBatch::default();
        let (tree, range, direction) = (TreeId::OUTCOMES, KeyRange::all(), Direction::Forward);
        self.store()
            .scan(tree, &range, direction, Lsn::MAX, 1, &mut batch)?;
        let (term, ..) = xid.parts();
        let oldest = batch.iter().next().map(|(key, _)| key.to_vec());
        // Without any row, only this term's ids are sure not to have had one.
        Ok(match oldest {
            Some(oldest) => xid.0.to_be_bytes()[..] < oldest[..],
            None => Some(term) != self.leading(),
        })
    }

    /// As [`base::engine::Engine::flight_outcome`].
    ///
    /// # Errors
    /// [`super::not_leader`].
    pub fn flight_outcome(self: &Arc<Self>, flight: Flight) -> Result<Option<Xid>> {
        let snapshot = self.snapshot()?;
        let mut row = Vec::new();
        let key = flight.session.to_be_bytes();
        let store = self.store();
        let read = store.get(TreeId::SESSIONS, &key, snapshot.lsn(), &mut row)?;
        self.settle_newest(snapshot.term())?;
        let retried = is_planted(Bug::CommitRetried);
        if retried || !read.exists || number(&row, 0)? < flight.number {
            return Ok(None);
        }
        let term = self.log.term(read.version);
        let xid = term.and_then(|term| {
            self.xid_at(Position {
                term,
                lsn: read.version,
            })
        });
        // A version that the log does not know any more was committed long ago.
        Ok(Some(xid.unwrap_or(Xid(0))))
    }
}
