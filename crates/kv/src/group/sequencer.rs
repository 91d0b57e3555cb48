//! The sequencer: the one line in which all commits of a group stand, as short as possible.
//!
//! Before the line, with the transaction's locks held: deltas are merged and index entries
//! derived, the record is encoded, and if too much is uncommitted the commit waits. In the line:
//! SERIALIZABLE is validated, leadership and term are checked, the timestamp is given, the record is
//! proposed and applied, and becomes visible. After an error nothing has been logged.

use std::sync::atomic::Ordering;

use base::limits::UNCOMMITTED_BYTES_MAX;
use base::{
    coro, Debt, Durability, Error, Position, Result, SequenceId, SqlState, Term, Timestamp, TxnId,
};

use raft::planted::{is_planted, Bug};

use super::core::Core;
use super::leaves::VISITED_CHANGES_MAX;
use super::pieces::is_large;
use super::{not_leader, term_is_over, CommitRequest, Group};
use crate::apply::{self, apply, derive, derive_sequence, drop_orphans, Derived};
use crate::record::{self, RowChange};
use crate::write_set::Changes;

/// The sequence from which transaction ids are taken.
pub const TXN_SEQUENCE: SequenceId = SequenceId(0);

/// A transaction with a longer record gets 54000: a message between nodes carries it whole. Large
/// transactions have many records, so this bounds their rows, and what they do to the catalog.
pub const RECORD_BYTES_MAX: usize = 32 << 20;

/// Bytes that are not committed at which commits at `off` wait before they append, so that whoever
/// waits for a flush does not wait for theirs for long.
pub const UNFLUSHED_BYTES_MAX: usize = 1 << 20;

/// The same while somebody waits for the log. On a line of 20 MB/s that is 3 ms.
pub const UNFLUSHED_BESIDE_OTHERS: usize = 64 << 10;

/// Space in the log that commits leave to entries that nobody can refuse, such as those of a new
/// leader.
pub(super) const LOG_BYTES_SPARE: u64 = 64 << 10;

/// Records that nobody waits for gather until they are so many bytes.
const GATHERED_BYTES_MAX: usize = 128 << 10;

const _: () = assert!(RECORD_BYTES_MAX < UNCOMMITTED_BYTES_MAX);
const _: () = assert!(GATHERED_BYTES_MAX < UNFLUSHED_BYTES_MAX);
const _: () = assert!(UNFLUSHED_BESIDE_OTHERS < UNFLUSHED_BYTES_MAX);

impl Group {
    /// Logs, applies and makes visible a transaction whose locks are all held. Waits (inside a
    /// coroutine) only before anything is logged, while too much is uncommitted. On return the
    /// caller releases its locks; the outcome rests on the position.
    ///
    /// # Errors
    /// [`term_is_over`], 40001 at SERIALIZABLE, [`not_leader`], an interrupt; 54000 when it is too large; 53100 when the
    /// disk is full. Nothing has been logged then.
    pub fn commit(&self, request: CommitRequest) -> Result<Position> {
        self.check_term(request.term)?;
        let (term, txn) = (request.term, request.txn);
        let mut changes = match request.changes {
            Changes::All(changes) => changes,
            Changes::Stream(changes) => {
                return self.commit_in_chunks(term, txn, request.serial, changes);
            }
        };
        record::sort(&mut changes);
        let bytes: usize = changes.iter().map(RowChange::bytes).sum();
        if bytes > self.config.settings.chunk_bytes {
            let changes = changes.into_iter().map(Ok);
            return self.commit_in_chunks(term, txn, request.serial, changes);
        }
        drop_orphans(&self.registry, &mut changes)?;
        let store = self.store();
        // What is read from here on stays in memory, for this is short.
        let is_small = changes.len() <= VISITED_CHANGES_MAX;
        let mut visit = is_small.then(|| store.visit());
        let derived = derive(&store, &self.registry, &changes);
        // A build that is no longer under way has ended with its term.
        let derived = derived.map_err(|error| match self.check_term(request.term) {
            Ok(()) => not_fatal(error),
            Err(over) => over,
        })?;
        let record = record::encode_transaction(request.txn, &changes);
        if record.len() > RECORD_BYTES_MAX {
            return Err(Error::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                format!("transaction of {} bytes is too large", record.len()),
            )
            .with_detail(format!("The maximum is {RECORD_BYTES_MAX} bytes.")));
        }
        let large = is_large(record.len());
        if large || self.must_wait(request.durability, record.len()) {
            visit = None;
        }
        self.wait_for_room(request.durability)?;
        self.reserve(record.len())?;
        let (_visit, mut core) = self.lock_with_leaves(&store, (&derived, large), visit)?;
        if let Some(ticket) = &request.serial {
            ticket.validate()?;
        }
        let position = self.propose(&mut core, request.term, record)?;
        if let Some(ticket) = &request.serial {
            ticket.appended(position.lsn);
        }
        match large {
            true => self.apply_in_pieces(core, position, derived)?,
            false => self.apply_proposed(&mut core, position, derived)?,
        }
        Ok(position)
    }

    /// Waits while too much is uncommitted. Who never waits for a flush waits here the sooner, so
    /// that it delays nobody's small commit by a long write.
    fn wait_for_room(&self, durability: Durability) -> Result<()> {
        if self.has_room(durability) {
            return Ok(());
        }
        {
            let mut core = self.lock();
            self.pump(&mut core);
        }
        Ok(coro::wait(self.room.until(|| {
            (self.has_room(durability) || self.leading().is_none()).then_some(())
        }))?)
    }

    pub(super) fn has_room(&self, durability: Durability) -> bool {
        self.shared.uncommitted.load(Ordering::SeqCst) < self.uncommitted_most(durability)
    }

    /// Uncommitted bytes at which a commit waits.
    fn uncommitted_most(&self, durability: Durability) -> usize {
        let most = self.config.settings.max_inflight;
        match durability {
            Durability::Off if self.is_waited_for() => most.min(UNFLUSHED_BESIDE_OTHERS),
            Durability::Off => most.min(UNFLUSHED_BYTES_MAX),
            _ => most,
        }
    }

    /// Sees to it that the record fits the disk, so that a full one is an error and no broken one.
    pub(super) fn reserve(&self, bytes: usize) -> Result<()> {
        match self.room_needed(bytes) {
            Some(needed) => coro::wait(self.log.reserve(needed))?,
            None => Ok(()),
        }
    }

    /// What must be reserved before a record of so many bytes is appended, if anything.
    pub(super) fn room_needed(&self, bytes: usize) -> Option<u64> {
        let gathered = self.shared.gathered.load(Ordering::SeqCst);
        let needed = (bytes + gathered) as u64 + LOG_BYTES_SPARE;
        (self.log.room() < needed).then_some(needed)
    }

    /// The line itself.
    pub(super) fn append(
        &self,
        core: &mut Core,
        term: Term,
        record: Vec<u8>,
        derived: Derived,
    ) -> Result<Position> {
        let position = self.propose(core, term, record)?;
        self.apply_proposed(core, position, derived)?;
        Ok(position)
    }

    pub(super) fn apply_proposed(
        &self,
        core: &mut Core,
        position: Position,
        mut derived: Derived,
    ) -> Result<()> {
        derived.stamp(core.timestamp);
        if let Err(error) = apply(&self.store(), &self.registry, position.lsn, derived) {
            self.fail(core, &error);
            return Err(error);
        }
        self.note_applied(core, position);
        Ok(())
    }

    /// Gives a record its timestamp and its position.
    pub(super) fn propose(
        &self,
        core: &mut Core,
        term: Term,
        mut record: Vec<u8>,
    ) -> Result<Position> {
        let leads = check_leads(core, term);
        if !is_planted(Bug::ProposalForwarded) {
            leads.clone()?;
        }
        let timestamp = core.timestamp.0.saturating_add(1);
        let timestamp = Timestamp(timestamp.max(self.env.wall_clock().0));
        record::stamp(&mut record, timestamp);
        if leads.is_err() {
            core.consensus.forward(record);
            self.pump(core);
            return leads.map(|()| Position::default());
        }
        let bytes = record.len();
        let position = core.consensus.propose(term, record)?;
        core.timestamp = timestamp;
        core.proposals.note(timestamp, position.lsn);
        let expected = core.applied.lsn.next();
        assert_eq!(position.lsn, expected, "a leader has applied all before");
        core.uncommitted.push_back((position.lsn, bytes));
        self.shared.uncommitted.fetch_add(bytes, Ordering::SeqCst);
        let gathered = self.shared.gathered.fetch_add(bytes, Ordering::SeqCst) + bytes;
        self.shared.committed.store(true, Ordering::Relaxed);
        core.after.work |=
            gathered > GATHERED_BYTES_MAX || !self.shared.busy.load(Ordering::SeqCst);
        Ok(position)
    }

    /// What this leader appends from now on has a later timestamp than this.
    pub fn pass(&self, timestamp: Timestamp) {
        let mut core = self.lock();
        core.timestamp = core.timestamp.max(timestamp);
    }

    /// The trees show the record.
    pub(super) fn note_applied(&self, core: &mut Core, position: Position) {
        core.applied = position;
        core.consensus.applied(position);
        self.shared.visible.store(position.lsn.0, Ordering::SeqCst);
        if let Err(error) = self.begin_wanted_checkpoint(core) {
            self.fail(core, &error);
        }
    }

    /// Takes the next `count` numbers of a sequence: the first, and the position they rest on.
    ///
    /// # Errors
    /// [`not_leader`]; 22003 at the end of all numbers.
    pub fn take_numbers(&self, sequence: SequenceId, count: u64) -> Result<(u64, Position)> {
        self.take_numbers_in_line(&mut *self.lock_to_append()?, sequence, count)
    }

    /// The same for who may append.
    pub(super) fn take_numbers_in_line(
        &self,
        core: &mut Core,
        sequence: SequenceId,
        count: u64,
    ) -> Result<(u64, Position)> {
        let term = core.led.filter(|_| !core.failed && !core.deaf);
        let term = term.ok_or_else(not_leader)?;
        if let Some(taken) = core.sequences.take(sequence, count) {
            return Ok(taken);
        }
        let stored = apply::sequence_next(&self.store(), sequence)?;
        let wanted = core.sequences.wanted(sequence, count, stored)?;
        let record = record::encode_sequence(sequence, wanted.end);
        let derived = derive_sequence(sequence, wanted.end);
        let position = self.append(core, term, record, derived)?;
        let first = core.sequences.granted(sequence, wanted, position);
        Ok((first, position))
    }

    /// As [`base::engine::Sequences::advance`].
    ///
    /// # Errors
    /// As [`Group::take_numbers`].
    pub fn advance(&self, sequence: SequenceId, count: u64) -> Result<(u64, Debt)> {
        let (first, position) = self.take_numbers(sequence, count)?;
        Ok((first, Debt::of(self.config.group, position)))
    }

    /// A new transaction's id. It need not be durable before the transaction is, whose record
    /// comes after that of the id.
    ///
    /// # Errors
    /// [`not_leader`].
    pub fn next_txn(&self) -> Result<TxnId> {
        Ok(TxnId(self.take_numbers(TXN_SEQUENCE, 1)?.0))
    }
}

fn check_leads(core: &Core, term: Term) -> Result<()> {
    if core.failed || core.deaf {
        return Err(not_leader());
    }
    match core.led == Some(term) {
        true => Ok(()),
        false => Err(term_is_over()),
    }
}

/// What does not fit the newest state although its rows are locked is the transaction's own fault,
/// not the disk's: nothing has been logged, and the node goes on.
pub(super) fn not_fatal(error: Error) -> Error {
    match error.state() {
        SqlState::DATA_CORRUPTED => Error::internal(error.message()),
        _ => error,
    }
}
