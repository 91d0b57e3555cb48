//! Large transactions: logged in chunks, between which others commit.
//!
//! A transaction of more than `chunk_bytes` would hold up everybody's small commits if it were one
//! record: on the wire, in the log, and while it is applied. So at its COMMIT, with all its locks
//! held, it is logged in many records and decided on by the last of them:
//!
//! ```text
//! session    chunk ─ chunk ─ (waits: too much is on its way) ─ chunk ─ decision, visible
//! others        commit   commit  commit  commit  commit   commit
//! ```
//!
//! Each record is applied as any other, by every replica, when it is appended; what the chunks
//! change is shown by nobody before the decision ([`storage::Store::apply_chunk`]).
//!
//! # Pace
//! A chunk is appended only while the bytes of less than [`CHUNKS_ON_THE_WAY`] are not committed;
//! while somebody waits for the log, or has lately, only once the one before is committed, and then
//! chunks are of a quarter of the size. So no more than one chunk stands before a small commit,
//! whether on the wire, on its way to the disk or being applied, and the bulk fills the time in
//! between.
//!
//! # Ends
//! | what happens | who ends it |
//! |---|---|
//! | all chunks are logged, SERIALIZABLE agrees | the leader: committed |
//! | the session is cancelled, the disk is full, SERIALIZABLE refuses | the leader: aborted |
//! | the leader is replaced, or restarts | the first entry of the next term: aborted |
//!
//! Before the decision is in the log nothing is: whoever loses its leader in the middle gets 40001.
//!
//! # Invariants
//! - From the first chunk to the decision the transaction holds its locks. What an abort frees
//!   others may change at once: of a transaction that its own leader aborted no other leader can
//!   find a commit, and a leader that has aborted others' serves only once that is committed.
//! - A checkpoint waits until no transaction is in its chunks ([`super::checkpoints`]).
//!
//! # What it leaves out
//! A row is in one chunk, however long it is. Tables that get their rows from a build
//! ([`crate::build`]) in the same transaction are logged with the decision.

use std::iter::Peekable;
use std::sync::atomic::Ordering;

use base::engine::{TreeDescriptor, TreeKind};
use base::{coro, Error, Position, Result, SqlState, Term, TreeId, TxnId};

use super::core::Core;
use super::pieces::is_large;
use super::sequencer::{not_fatal, RECORD_BYTES_MAX};
use super::Group;
use crate::apply::{derive, derive_chunk, derive_decision, made_by, Derived};
use crate::record::{self, Change, RowChange};
use crate::serial::Ticket;

/// Chunks' bytes that are not committed at which a large transaction waits before its next chunk:
/// they would stand before every small commit.
const CHUNKS_ON_THE_WAY: usize = if cfg!(test) { 0 } else { 8 };

/// While somebody waits for the log, a chunk is smaller by so much: a small commit that comes just
/// after it waits for it on the wire, on two disks and in two lines of records.
const CHUNKS_BESIDE_OTHERS: usize = 4;

/// Beside a chunk, a part of this size counts for little.
const CHUNK_PARTS: usize = 8;

/// Rows of a chunk. They are applied in one go, while others wait for the line.
const CHUNK_ROWS_MAX: usize = 1_000;

/// A transaction that is in its chunks. Dropped before the decision, it is aborted.
struct Open<'a> {
    group: &'a Group,
    term: Term,
    txn: TxnId,
    /// There is a chunk in the log, and no decision.
    begun: bool,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if self.begun {
            let mut core = self.group.lock();
            core.aborting.push((self.term, self.txn));
            self.group.log_aborts(&mut core);
            core.after.work = true;
        }
    }
}

/// What is logged with the decision and not in chunks.
#[derive(Default)]
struct InLine {
    changes: Vec<RowChange>,
    bytes: usize,
    made: Vec<TreeDescriptor>,
    /// Trees that were built, and tables with indexes that were.
    tables: Vec<TreeId>,
}

impl Group {
    /// As [`Group::commit`], for a transaction that is too large for one record. Its changes come
    /// in the order of a record. Waits, inside a coroutine, between chunks.
    pub(super) fn commit_in_chunks(
        &self,
        term: Term,
        txn: TxnId,
        serial: Option<Ticket>,
        changes: impl Iterator<Item = Result<RowChange>>,
    ) -> Result<Position> {
        self.wait_for_checkpoint()?;
        let mut changes = changes.peekable();
        let mut inline = self.in_line(&mut changes)?;
        let mut open = Open {
            group: self,
            term,
            txn,
            begun: false,
        };
        if let Some(announcement) = inline.announcement() {
            self.append_chunk(&mut open, &announcement)?;
        }
        let mut chunk = Vec::new();
        let mut bytes = 0;
        for change in changes {
            let change = change?;
            if inline.tables.contains(&change.tree) {
                inline.push(change)?;
                continue;
            }
            // As in a small transaction: trees that it has made and dropped again are none.
            let is_made = |made: &TreeDescriptor| made.id == change.tree;
            if !self.registry.is_table(change.tree) && !inline.made.iter().any(is_made) {
                continue;
            }
            bytes += change.bytes();
            chunk.push(change);
            if bytes >= self.chunk_bytes() || chunk.len() == CHUNK_ROWS_MAX {
                self.append_chunk(&mut open, &chunk)?;
                chunk.clear();
                bytes = 0;
            }
        }
        if !chunk.is_empty() {
            self.append_chunk(&mut open, &chunk)?;
        }
        self.append_decision(open, serial, inline.changes)
    }

    /// What a chunk has at most, apart from its last row.
    fn chunk_bytes(&self) -> usize {
        let most = self.config.settings.chunk_bytes;
        match self.is_waited_for() {
            true => most / CHUNKS_BESIDE_OTHERS,
            false => most,
        }
    }

    /// The changes that come first: those of the catalog.
    fn in_line(
        &self,
        changes: &mut Peekable<impl Iterator<Item = Result<RowChange>>>,
    ) -> Result<InLine> {
        let mut inline = InLine::default();
        let is_first = |change: &Result<RowChange>| {
            change
                .as_ref()
                .map_or(true, |c| c.tree < TreeId::FIRST_USER)
        };
        while let Some(change) = changes.next_if(is_first) {
            inline.push(change?)?;
        }
        let mut built = Vec::new();
        for change in &inline.changes {
            if change.tree == TreeId::BUILDS && change.change == Change::Delete {
                let build = self
                    .registry
                    .builds()
                    .get(TreeId::of_descriptor_key(&change.key)?);
                let build = build.ok_or_else(super::term_is_over)?;
                built.extend(build.plan.trees());
            }
        }
        for descriptor in made_by(&inline.changes)? {
            if !built.contains(&descriptor.id) {
                inline.made.push(descriptor);
                continue;
            }
            inline.tables.push(match descriptor.kind {
                TreeKind::Table => descriptor.id,
                TreeKind::Index(index) => index.table,
            });
        }
        Ok(inline)
    }

    /// While a checkpoint is wanted, nobody begins what it would have to wait for.
    fn wait_for_checkpoint(&self) -> Result<()> {
        Ok(coro::wait(self.room.until(|| {
            let core = self.lock();
            let free = !core.checkpoint_wanted || core.led.is_none() || core.failed;
            free.then_some(())
        }))?)
    }

    fn append_chunk(&self, open: &mut Open<'_>, changes: &[RowChange]) -> Result<()> {
        let derived = derive_chunk(&self.store(), &self.registry, open.txn, changes);
        let derived = self.of_term(open.term, derived)?;
        let record = record::encode_chunk(open.txn, changes);
        check_size(record.len())?;
        self.wait_for_the_way()?;
        self.reserve(record.len())?;
        let (store, large) = (self.store(), is_large(record.len()));
        let (_visit, mut core) = self.lock_with_leaves(&store, (&derived, large), None)?;
        let position = self.propose(&mut core, open.term, record)?;
        open.begun = true;
        match large {
            true => self.apply_in_pieces(core, position, derived),
            false => self.apply_proposed(&mut core, position, derived),
        }
    }

    fn append_decision(
        &self,
        mut open: Open<'_>,
        serial: Option<Ticket>,
        mut changes: Vec<RowChange>,
    ) -> Result<Position> {
        record::sort(&mut changes);
        let (store, registry, txn) = (self.store(), &self.registry, open.txn);
        let (derived, record) = match open.begun {
            true => (
                derive_decision(&store, registry, (txn, true), &changes),
                record::encode_decision(txn, true, &changes),
            ),
            // All of it is in line.
            false => (
                derive(&store, registry, &changes),
                record::encode_transaction(txn, &changes),
            ),
        };
        let derived = self.of_term(open.term, derived)?;
        check_size(record.len())?;
        self.wait_for_the_way()?;
        self.reserve(record.len())?;
        let large = is_large(record.len());
        let (_visit, mut core) = self.lock_with_leaves(&store, (&derived, large), None)?;
        if let Some(ticket) = &serial {
            ticket.validate()?;
        }
        let position = self.propose(&mut core, open.term, record)?;
        open.begun = false;
        if let Some(ticket) = &serial {
            ticket.appended(position.lsn);
        }
        match large {
            true => self.apply_in_pieces(core, position, derived)?,
            false => self.apply_proposed(&mut core, position, derived)?,
        }
        Ok(position)
    }

    /// Waits while too much is on its way, and then gives others their turn.
    fn wait_for_the_way(&self) -> Result<()> {
        let chunk = self.config.settings.chunk_bytes;
        let is_free = || {
            let most = bytes_on_the_way(chunk, self.is_waited_for());
            self.shared.uncommitted.load(Ordering::SeqCst) < most
        };
        if is_free() {
            return Ok(coro::yield_now()?);
        }
        self.pump(&mut self.lock());
        let free = || (is_free() || self.leading().is_none()).then_some(());
        Ok(coro::wait(self.room.until(free))?)
    }

    /// What was looked up, if it was in this term.
    fn of_term(&self, term: Term, derived: Result<Derived>) -> Result<Derived> {
        derived.map_err(|error| match self.check_term(term) {
            Ok(()) => not_fatal(error),
            Err(over) => over,
        })
    }

    /// Logs the aborts of transactions that ended in their chunks, unless their term has ended too.
    pub(super) fn log_aborts(&self, core: &mut Core) {
        while core.takes_records() && !core.failed && !core.deaf {
            let Some((term, txn)) = core.aborting.pop() else {
                return;
            };
            if core.led != Some(term) {
                continue;
            }
            let derived = derive_decision(&self.store(), &self.registry, (txn, false), &[]);
            let record = record::encode_decision(txn, false, &[]);
            // If it is refused, the term is about to end, and the transaction with it.
            let _ = derived.and_then(|derived| self.append(core, term, record, derived));
        }
    }
}

impl InLine {
    fn push(&mut self, change: RowChange) -> Result<()> {
        self.bytes += change.bytes();
        check_size(self.bytes)?;
        self.changes.push(change);
        Ok(())
    }

    /// The chunk that tells of trees, if any are made or dropped.
    fn announcement(&self) -> Option<Vec<RowChange>> {
        let is_made = |id: TreeId| self.made.iter().any(|made| made.id == id);
        let is_told = |change: &&RowChange| match &change.change {
            _ if change.tree != TreeId::DESCRIPTORS => false,
            Change::Insert(_) => TreeId::of_descriptor_key(&change.key).is_ok_and(is_made),
            Change::Update(_) => false,
            Change::Delete => true,
        };
        let told: Vec<RowChange> = self.changes.iter().filter(is_told).cloned().collect();
        (!told.is_empty()).then_some(told)
    }
}

/// The next chunk is logged while fewer bytes than these are not committed. Chunks are not all of
/// the same size: while others wait, what counts for little beside one may be on the way.
fn bytes_on_the_way(chunk: usize, others_wait: bool) -> usize {
    match others_wait {
        true => 1 + chunk / CHUNK_PARTS,
        false => 1 + CHUNKS_ON_THE_WAY * chunk,
    }
}

fn check_size(bytes: usize) -> Result<()> {
    if bytes <= RECORD_BYTES_MAX {
        return Ok(());
    }
    Err(Error::new(
        SqlState::PROGRAM_LIMIT_EXCEEDED,
        format!("a record of {bytes} bytes is too large"),
    )
    .with_detail(format!("The maximum is {RECORD_BYTES_MAX} bytes.")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn while_others_wait_a_chunk_keeps_the_next_one_back() {
        let chunk = 64 << 10;
        // A chunk is closed by the first row that does not fit, so it is seldom quite full.
        assert!(chunk - 1_300 >= bytes_on_the_way(chunk, true));
        // Small commits alone do not hold it up.
        assert!(2_000 < bytes_on_the_way(chunk, true));
    }
}
