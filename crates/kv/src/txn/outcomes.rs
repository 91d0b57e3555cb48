//! What a transaction writes about itself when it commits (see [`crate::group::outcomes`]).

use base::engine::{Direction, LockWait, RowBatch, RowLock, Transaction, Writing};
use base::{KeyRange, Lsn, Result, TreeId, Xid};

use super::{Leader, Txn};
use crate::group::outcomes::{
    forgotten_lsn, forgotten_row, outcome_row, session_row, time_of, FLIGHTS_PER_LOOK,
    LOOKED_AT_PER_COMMIT, OUTCOMES_KEPT_SECONDS, SESSIONS_FORGOTTEN, SESSIONS_KEPT_SECONDS,
};
use crate::locks::Acquired;

impl<L: Leader> Txn<L> {
    pub(super) fn give_xid(&mut self, assign: bool) -> Result<Option<Xid>> {
        if self.asked.is_none() && (assign || !self.writes.is_empty()) {
            let term = self.at()?.term;
            self.leader.check_term(term)?;
            self.locks.bind(term)?;
            self.asked = Some(self.leader.ask_xid(term)?);
        }
        Ok(self.asked.as_ref().map(|asked| asked.xid()))
    }

    /// Adds to the writes what others may ask about this commit.
    pub(super) fn note_outcome(&mut self) -> Result<()> {
        self.note_flight()?;
        let Some(asked) = &self.asked else {
            return Ok(());
        };
        let now = self.leader.now_seconds();
        let key = asked.xid().0.to_be_bytes();
        self.put_own(TreeId::OUTCOMES, &key, &outcome_row(now))?;
        self.forget(TreeId::OUTCOMES, 0, now - OUTCOMES_KEPT_SECONDS)
    }

    /// Adds to the writes, if there are any, that the session is in this flight.
    pub(super) fn note_flight(&mut self) -> Result<()> {
        match self.writes.is_empty() {
            true => Ok(()),
            false => self.note_flight_anyhow(),
        }
    }

    /// Adds to the writes that the session is in this flight, though the writes may be elsewhere.
    pub(super) fn note_flight_anyhow(&mut self) -> Result<()> {
        if let Some(flight) = self.options.flight {
            let now = self.leader.now_seconds();
            let row = session_row(flight, now);
            self.put_own(TreeId::SESSIONS, &flight.session.to_be_bytes(), &row)?;
            if flight.number % FLIGHTS_PER_LOOK == 0 {
                // Sessions are numbered at random, so this looks somewhere else each time.
                let from = flight
                    .session
                    .rotate_left((flight.number / FLIGHTS_PER_LOOK) as u32);
                self.forget_sessions(from, now - SESSIONS_KEPT_SECONDS)?;
            }
        }
        Ok(())
    }

    /// Writes a row of which only this session knows.
    pub(super) fn put_own(&mut self, tree: TreeId, key: &[u8], row: &[u8]) -> Result<()> {
        self.next_command();
        self.locks
            .row(tree, key, RowLock::Update, LockWait::Block)?;
        match self.exists_now(tree, key)? {
            true => self.update(tree, key, row)?,
            false => self.insert_new(tree, key, row)?,
        };
        Ok(())
    }

    /// As [`Txn::forget`], of sessions, and notes how new the rows were: by another clock than that
    /// of whoever wrote them, some of them may not be old at all.
    fn forget_sessions(&mut self, from: u64, before: i64) -> Result<()> {
        let tree = TreeId::SESSIONS;
        let mut old = self.old_rows(tree, from, before)?;
        old.retain(|key| key != SESSIONS_FORGOTTEN);
        let wait = LockWait::Skip;
        let locked = |this: &mut Self, key: &[u8]| -> Result<bool> {
            Ok(this.locks.row(tree, key, RowLock::Update, wait)? != Acquired::Skipped)
        };
        if old.is_empty() || !locked(self, SESSIONS_FORGOTTEN)? {
            return Ok(());
        }
        let mut row = Vec::new();
        let mut newest = match self.get_newest(tree, SESSIONS_FORGOTTEN, &mut row)?.exists {
            true => forgotten_lsn(&row)?,
            false => Lsn::ZERO,
        };
        for key in old {
            if !locked(self, &key)? {
                continue;
            }
            let read = self.get_newest(tree, &key, &mut row)?;
            if read.exists {
                newest = newest.max(read.version);
                self.delete(tree, &key)?;
            }
        }
        self.put_own(tree, SESSIONS_FORGOTTEN, &forgotten_row(newest))
    }

    /// Looks at a few rows, and deletes those that are older than `before`.
    fn forget(&mut self, tree: TreeId, from: u64, before: i64) -> Result<()> {
        for key in self.old_rows(tree, from, before)? {
            let locked = self
                .locks
                .row(tree, &key, RowLock::Update, LockWait::Skip)?;
            if locked != Acquired::Skipped && self.exists_now(tree, &key)? {
                self.delete(tree, &key)?;
            }
        }
        Ok(())
    }

    /// The keys of those among a few rows that are older than `before`.
    fn old_rows(&mut self, tree: TreeId, from: u64, before: i64) -> Result<Vec<Vec<u8>>> {
        let mut batch = RowBatch::default();
        let count = LOOKED_AT_PER_COMMIT;
        let range = KeyRange {
            start: from.to_be_bytes().to_vec(),
            end: None,
        };
        let direction = Direction::Forward;
        let newest = (self.leader.visible(), super::AFTER_ALL);
        self.scan_as_of(tree, &range, direction, newest, count, &mut batch)?;
        let mut old = Vec::new();
        for (key, row) in batch.iter() {
            if time_of(row)? < before {
                old.push(key.to_vec());
            }
        }
        Ok(old)
    }
}
