//! What became of transactions: ids for clients, and answers about them
//! ([`base::engine::XidStatus`] says what ids are made of).
//!
//! | tree | key | row | written by |
//! |---|---|---|---|
//! | `TERMS` | term | the LSN of its first entry | that entry, on every replica |
//! | `OUTCOMES` | an id that was asked for | when (seconds) | its transaction's commit |
//! | `SESSIONS` | a session that was passed on | the flight it is in, when | each commit of it |
//! | `SESSIONS` | [`SESSIONS_FORGOTTEN`] | the newest LSN at which a row that was deleted was written | who deletes |
//!
//! All are ordinary rows: a cut takes them back, a checkpoint has them. An id that was asked for
//! and is no row belongs to a transaction that goes on, which this leader knows, or to none.
//!
//! How many leaderships were before one, its rows of `TERMS` tell: all that are below it in any log
//! that has its first entry, and so the same ones wherever that is.
//!
//! # What it leaves out
//! Rows of `TERMS` stay for ever: some twenty bytes an election. An id of long ago is looked for
//! among all that came after it.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::Arc;

use base::codec::Reader;
use base::engine::{
    Direction, Flight, RowBatch, XidKind, XidStatus, PLACES_AHEAD_MAX, PLACES_BETWEEN_TERMS,
};
use base::row::{Row, RowBuilder};
use base::sync::Mutex;
use base::{coro, Durability, Error, KeyRange, Lsn, Position, Result, SqlState, Term, TreeId, Xid};
use raft::planted::{is_planted, Bug};
use storage::Store;

use super::Group;
use crate::record::{Change, RowChange};

/// How long it is known what became of a transaction whose id was asked for, at least.
pub const OUTCOMES_KEPT_SECONDS: i64 = 2 * 3_600;

/// Rows that are older are deleted by later commits, which look at so many each.
pub const LOOKED_AT_PER_COMMIT: usize = 2;

/// How long a session's row is kept after its last commit, if clocks are right. One that goes on
/// after that needs none.
pub const SESSIONS_KEPT_SECONDS: i64 = 24 * 3_600;

/// The key of what is known of rows that were deleted. Sessions' keys have another length.
pub const SESSIONS_FORGOTTEN: &[u8] = &[0xff; 9];

/// Every so many flights a session looks for rows of sessions that are gone.
pub const FLIGHTS_PER_LOOK: u64 = 32;

/// Rows of `TERMS` that are read at once.
const TERMS_PER_LOOK: usize = 256;

/// The transactions of this leader that have asked for their ids and go on.
#[derive(Debug, Default)]
pub struct Asked(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    term: Term,
    /// The place of the newest id.
    last: u64,
    open: BTreeSet<Xid>,
    /// The leadership that was looked for last.
    known: Option<TermPlace>,
}

/// Ids are places that leaderships have moved on ([`base::engine::outcomes`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TermPlace {
    term: Term,
    /// The LSN of its first entry.
    start: Lsn,
    /// How many were before it.
    before: u64,
}

impl TermPlace {
    fn place(&self, lsn: Lsn) -> Option<u64> {
        lsn.0
            .checked_add(self.before.checked_mul(PLACES_BETWEEN_TERMS)?)
    }

    /// The LSN of a place, which may be one that none of its entries has.
    fn lsn(&self, place: u64) -> Option<Lsn> {
        let moved = self.before.checked_mul(PLACES_BETWEEN_TERMS)?;
        place.checked_sub(moved).map(Lsn)
    }
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
    /// An id for a transaction of this term, at a place above `visible` and at most at `most`.
    pub fn next(self: &Arc<Self>, term: Term, visible: u64, most: u64) -> Result<AskedXid> {
        let mut state = self.0.lock();
        if state.term != term {
            *state = State {
                term,
                known: state.known,
                ..State::default()
            };
        }
        let place = state.last.max(visible) + 1;
        let xid = Xid::new(XidKind::Asked, place).filter(|_| place <= most);
        let xid = xid.ok_or_else(used_up)?;
        state.last = place;
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
        "too many transaction IDs were asked for without a commit",
    )
    .with_hint("Commit something, or make another node the leader.")
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

/// The row of [`SESSIONS_FORGOTTEN`].
pub fn forgotten_row(newest: Lsn) -> Vec<u8> {
    RowBuilder::new(1).value(&newest.0.to_be_bytes()).finish()
}

/// What such a row says.
pub fn forgotten_lsn(row: &[u8]) -> Result<Lsn> {
    number(row, 0).map(Lsn)
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

/// Whether no later term had begun at a position that is committed and not in the log any more.
fn is_before_later_terms(store: &Store, Position { term, lsn }: Position) -> Result<bool> {
    let range = KeyRange {
        start: (term.0 + 1).to_be_bytes().to_vec(),
        end: None,
    };
    let mut batch = RowBatch::default();
    let (tree, direction) = (TreeId::TERMS, Direction::Forward);
    store.scan(tree, &range, direction, Lsn::MAX, 1, &mut batch)?;
    let next = batch.iter().next().map(|(_, row)| number(row, 0));
    Ok(next.transpose()?.is_none_or(|start| Lsn(start) > lsn))
}

impl Group {
    /// Whether what the leader of a term had at an LSN, which is committed by now, stands there: no
    /// later leader's entry does. A replica that never had an entry has nothing to take back when
    /// another comes in its place, so of what another node has appended the log alone tells.
    pub(super) fn is_of_history(&self, position: Position) -> Result<bool> {
        // Whoever leads has appended all of its term itself.
        if position.lsn == Lsn::ZERO || self.leading() == Some(position.term) {
            return Ok(true);
        }
        if is_planted(Bug::TailReleased) {
            return Ok(true);
        }
        // There is no entry of a later leader at all.
        if self.log.last().term <= position.term {
            return Ok(true);
        }
        match self.log.term(position.lsn) {
            Some(term) => Ok(term <= position.term),
            None => is_before_later_terms(&self.store(), position),
        }
    }
}

/// How many leaderships are below this one, whose first entry is there.
fn count_before(store: &Store, term: Term) -> Result<u64> {
    let mut range = KeyRange {
        start: Vec::new(),
        end: Some(term.0.to_be_bytes().to_vec()),
    };
    let (mut batch, mut count) = (RowBatch::default(), 0);
    loop {
        batch.clear();
        let (tree, direction) = (TreeId::TERMS, Direction::Forward);
        store.scan(
            tree,
            &range,
            direction,
            Lsn::MAX,
            TERMS_PER_LOOK,
            &mut batch,
        )?;
        let Some((last, _)) = batch.iter().last() else {
            return Ok(count);
        };
        count += batch.len() as u64;
        range.start = [last, &[0]].concat();
    }
}

/// The leadership that a place belongs to, as `newest` and those before it say, and the LSN of the
/// first entry of the one after it.
fn term_of_place(
    store: &Store,
    place: u64,
    newest: TermPlace,
) -> Result<Option<(TermPlace, Option<Lsn>)>> {
    let mut range = KeyRange {
        start: Vec::new(),
        end: Some((newest.term.0 + 1).to_be_bytes().to_vec()),
    };
    let (mut batch, mut before, mut end) = (RowBatch::default(), newest.before, None);
    loop {
        batch.clear();
        let (tree, direction) = (TreeId::TERMS, Direction::Backward);
        store.scan(
            tree,
            &range,
            direction,
            Lsn::MAX,
            TERMS_PER_LOOK,
            &mut batch,
        )?;
        for (key, row) in batch.iter() {
            let leadership = TermPlace {
                term: Term(Reader::new(key).u64()?),
                start: Lsn(number(row, 0)?),
                before,
            };
            if leadership
                .place(leadership.start)
                .is_some_and(|first| first <= place)
            {
                return Ok(Some((leadership, end)));
            }
            end = Some(leadership.start);
            let Some(less) = before.checked_sub(1) else {
                return Ok(None);
            };
            before = less;
            range.end = Some(key.to_vec());
        }
        if batch.is_empty() {
            return Ok(None);
        }
    }
}

impl Group {
    /// A leadership whose first entry is there.
    fn term_place(&self, term: Term) -> Result<Option<TermPlace>> {
        let known = self.asked.0.lock().known;
        if known.is_some_and(|known| known.term == term) {
            return Ok(known);
        }
        let cuts = self.shared.cuts.load(Ordering::SeqCst);
        let store = self.store();
        let Some(start) = term_start(&store, term)? else {
            return Ok(None);
        };
        let leadership = TermPlace {
            term,
            start,
            before: count_before(&store, term)?,
        };
        // Rows that were cut meanwhile may have been counted.
        if self.shared.cuts.load(Ordering::SeqCst) != cuts {
            return Ok(None);
        }
        self.asked.0.lock().known = Some(leadership);
        Ok(Some(leadership))
    }

    /// The id of the transaction whose record is there.
    pub fn xid_at(&self, position: Position) -> Option<Xid> {
        let leadership = self.term_place(position.term).ok()??;
        let is_near = position.lsn.0 <= self.gate.commit().0.saturating_add(PLACES_AHEAD_MAX);
        let place = leadership.place(position.lsn).filter(|_| is_near)?;
        Xid::new(XidKind::ByCommit, place)
    }

    /// The time by the wall, in microseconds.
    pub fn wall_micros(&self) -> i64 {
        self.env.wall_clock().0
    }

    /// An id for a transaction that goes on in this term.
    ///
    /// # Errors
    /// [`super::term_is_over`]; 54000 when too many were asked for since the last commit.
    pub fn ask_xid(&self, term: Term) -> Result<AskedXid> {
        let leadership = self.term_place(term)?.ok_or_else(super::term_is_over)?;
        let visible = leadership.place(self.visible().lsn).ok_or_else(used_up)?;
        let commit = leadership.place(self.gate.commit()).ok_or_else(used_up)?;
        self.check_term(term)?;
        self.asked
            .next(term, visible, commit.saturating_add(PLACES_AHEAD_MAX))
    }

    /// As [`base::engine::Outcomes::xid_status`].
    ///
    /// # Errors
    /// [`super::not_leader`]; 22023 for an id of the future.
    pub fn xid_status(self: &Arc<Self>, xid: Xid) -> Result<Option<XidStatus>> {
        let snapshot = self.snapshot()?;
        let Some((kind, place)) = xid.parts() else {
            return Ok(None);
        };
        let newest = self.term_place(snapshot.term())?;
        let newest = newest.ok_or_else(super::term_is_over)?;
        let visible = newest.place(snapshot.lsn()).unwrap_or(u64::MAX);
        let last = match kind {
            XidKind::ByCommit => visible,
            // One of an earlier term is at most that, and this term's are known.
            XidKind::Asked => self.asked.last(newest.term).max(visible),
        };
        if place > last {
            let message = format!("transaction ID {xid} is in the future");
            return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
        let found = term_of_place(&self.store(), place, newest)?;
        let status = match (kind, found) {
            _ if self.registry.prepared().newest().has(xid) => Some(XidStatus::InProgress),
            (_, None) => None,
            (XidKind::ByCommit, Some((leadership, end))) => {
                let lsn = leadership.lsn(place).unwrap_or(Lsn::MAX);
                let happened = lsn <= snapshot.lsn() && end.is_none_or(|end| lsn < end);
                Some(match happened {
                    true => XidStatus::Committed,
                    false => XidStatus::Aborted,
                })
            }
            (XidKind::Asked, Some((leadership, _))) => {
                self.status_of_asked(xid, leadership.term)?
            }
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

    fn status_of_asked(&self, xid: Xid, term: Term) -> Result<Option<XidStatus>> {
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
        match self.is_forgotten(xid, term)? {
            true => Ok(None),
            false => Ok(Some(XidStatus::Aborted)),
        }
    }

    /// Whether rows of ids as old as this one may have been deleted: there is none before it.
    fn is_forgotten(&self, xid: Xid, term: Term) -> Result<bool> {
        let mut batch = RowBatch::default();
        let (tree, range, direction) = (TreeId::OUTCOMES, KeyRange::all(), Direction::Forward);
        self.store()
            .scan(tree, &range, direction, Lsn::MAX, 1, &mut batch)?;
        let oldest = batch.iter().next().map(|(key, _)| key.to_vec());
        // Without any row, only this term's ids are sure not to have had one.
        Ok(match oldest {
            Some(oldest) => xid.0.to_be_bytes()[..] < oldest[..],
            None => Some(term) != self.leading(),
        })
    }

    /// As [`base::engine::Outcomes::flight_outcome`].
    ///
    /// # Errors
    /// [`super::not_leader`].
    pub fn flight_outcome(self: &Arc<Self>, flight: Flight, since: Lsn) -> Result<Option<Xid>> {
        // What it has written may be in parts whose outcome this leader is yet to learn.
        self.wait_for_standing()?;
        let snapshot = self.snapshot()?;
        let mut row = Vec::new();
        let key = flight.session.to_be_bytes();
        let store = self.store();
        let read = store.get(TreeId::SESSIONS, &key, snapshot.lsn(), &mut row)?;
        let mut mark = Vec::new();
        let marked = store.get(
            TreeId::SESSIONS,
            SESSIONS_FORGOTTEN,
            snapshot.lsn(),
            &mut mark,
        )?;
        self.settle_newest(snapshot.term())?;
        if is_planted(Bug::CommitRetried) {
            return Ok(None);
        }
        if !read.exists {
            let is_forgotten = marked.exists && forgotten_lsn(&mark)? > since;
            return Ok(is_forgotten.then_some(Xid(0)));
        }
        if number(&row, 0)? < flight.number {
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
