//! Transactions on one group.
//!
//! A transaction runs on the leader. It reads the newest versions that its snapshot allows straight
//! from the store, merged with what it has written itself ([`crate::write_set`]); before it writes,
//! it locks ([`crate::locks`]) and looks at the newest version; and when it commits, everything it
//! did is one record.
//!
//! ```text
//! begin_statement   snapshot: visible LSN 17, made sure of by the lease
//! get, scan         store at 17  +  own writes of earlier commands
//! lock_row          lock, then the store at the visible LSN of now: changed since 17?
//! insert, update …  lock, look at the newest version, then into the write set
//! commit            one change per row → sequencer → LSN 23, visible → locks are given up
//! ```
//!
//! # What a statement sees
//! READ COMMITTED takes a snapshot for each statement; a row that others changed since is handed
//! back as it is now, to be checked again. REPEATABLE READ keeps its first snapshot, and a row that
//! others changed since is 40001: the first updater wins. SERIALIZABLE is that, and tells
//! [`crate::serial`] of every read and write; but where that knows of nothing read that has changed
//! since, the snapshot is put forward instead, and the transaction goes on.
//!
//! # Unique keys
//! Two transactions that write the same key stand in line for the lock of the key; for a unique
//! index that is the index's columns without the row's key. Whoever takes a value out of a unique
//! index locks it too, so that nobody reports a duplicate of a value that is about to go. Rows with
//! a NULL in the index's columns are never duplicates.
//!
//! # Debt
//! Everything that was looked at adds to the debt: a row its version's LSN, an absence or a range
//! the highest LSN of the leaves visited, bounded by where it was looked at. Own writes add
//! nothing: what they rest on is the commit.
//!
//! # New and dropped trees
//! A descriptor in the write set makes a tree that the store does not know yet: all of its content
//! is in the write set. An index made on a table that has rows gets its entries in the write set,
//! for this transaction to read; for everyone else they are derived when the record is applied.
//!
//! # What it leaves out
//! Chunks of large transactions, more than one group. At READ COMMITTED a transaction
//! that idles keeps its last statement's snapshot, and so the versions which that needs.

mod ahead;
mod build;
mod exports;
mod locking;
mod notify;
mod outcomes;
mod prepared;
mod serializable;
mod shown;
mod unique;
mod views;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;

use base::coro;
use base::engine::{
    AdvisoryKey, AdvisoryLocking, AdvisoryMode, Build, Building, Built, Direction, Flight,
    Inserted, Isolation, LockWait, LockedRow, Notifying, Preparation, Reading, RowBatch, RowLock,
    Savepoint, Savepoints, SnapshotSharing, Transaction, TreeDescriptor, TreeKind, TxnOptions,
    TxnOutcome, ViewId, Writing,
};
use base::large::Large;
use base::limits::SCAN_BATCH_ROWS;
use base::row::Row;
use base::usage;
use base::{
    CommandId, Debt, Durability, Error, GroupDebt, GroupId, Key, KeyRange, Lsn, Position, Result,
    SequenceId, Term, TreeId, TxnId, Xid,
};
use raft::planted::{is_planted, Bug};
use storage::{Gap, Read, Scanned, Scratch};

use crate::build::Plan;
use crate::group::outcomes::AskedXid;
use crate::group::{BuildHandle, CommitRequest, Open};
use crate::locks::{Acquired, PreparedLocks, TxnLocks};
use crate::notifications::Listeners;
use crate::registry::Indexes;
use crate::serial::{Serial, SerialTxn, Ticket};
use ahead::Ahead;
use build::is_switched;
use exports::Export;
pub use exports::Exports;
use locking::LastLocked;
pub use prepared::Resolution;
use views::Views;

use crate::write_set::{covered, rest_of, Changes, Own, WriteSet};

/// What a transaction needs of the leader of its group.
pub trait Leader: 'static {
    /// Shows the store as of one position, whose versions are kept while it lives.
    type Snapshot: View + Clone;

    /// Whether locks are to be had here, for the term of the snapshot.
    const LOCKS: bool = true;

    /// The group.
    fn group(&self) -> GroupId;
    /// See [`crate::Group::snapshot`].
    fn snapshot(&self) -> Result<Self::Snapshot>;
    /// The same for who resolves what stands, and so cannot wait for it.
    fn snapshot_beside(&self) -> Result<Self::Snapshot> {
        self.snapshot()
    }
    /// Moves a snapshot on to what is visible now, as a new statement at READ COMMITTED does.
    fn refresh(&self, snapshot: &mut Self::Snapshot) -> Result<()>;
    /// See [`crate::Group::check_term`].
    fn check_term(&self, term: Term) -> Result<()>;
    /// The error for a tree that lies in another group, of which a transaction learns that began when
    /// there was none.
    fn lies_elsewhere(&self, _group: GroupId) -> Error {
        Error::serialization("could not serialize access: a group was added meanwhile")
    }
    /// The newest LSN that is wholly applied.
    fn visible(&self) -> Lsn;
    /// The secondary indexes of a table, if it has any.
    fn indexes(&self, table: TreeId) -> Option<Indexes>;
    /// See [`crate::GroupSettings::rows_built_in_line`].
    fn rows_built_in_line(&self) -> usize;
    /// See [`crate::Group::begin_build`].
    fn begin_build(&self, term: Term, txn: TxnId, plan: &Plan) -> Result<BuildHandle>;
    /// See [`crate::Group::ask_xid`].
    fn ask_xid(&self, term: Term) -> Result<AskedXid>;
    /// The time by the wall, in microseconds.
    fn now_micros(&self) -> i64;
    /// The time by the wall, in seconds.
    fn now_seconds(&self) -> i64 {
        self.now_micros() / 1_000_000
    }
    /// The first of `count` numbers of a sequence. What they rest on comes before any commit of
    /// who took them.
    fn numbers(&self, sequence: SequenceId, count: u64) -> Result<(u64, GroupDebt)>;
    /// Who listens to notifications, and how many bytes of them are kept.
    fn notifications(&self) -> Result<(&Listeners, u64)> {
        Err(Error::unsupported("notifications here"))
    }
    /// See [`crate::Group::commit`].
    fn commit(&self, request: CommitRequest) -> Result<Position>;
    /// Where a write set goes of which more than so many bytes are in memory.
    fn scratch(&self) -> Option<(Arc<Scratch>, usize)> {
        None
    }
}

/// What a statement reads from.
pub trait View {
    /// The term under which it was taken, and the newest LSN that it shows.
    fn position(&self) -> Position;
    /// Whether it shows what became visible at an LSN.
    fn shows(&self, lsn: Lsn) -> bool {
        lsn <= self.position().lsn
    }
    /// What it shows above its position: commits across groups.
    fn also(&self) -> &[Lsn] {
        &[]
    }
    /// The newest LSN of what it shows.
    fn newest(&self) -> Lsn {
        self.position().lsn
    }
    /// See [`storage::Store::get`]; `at` is this position or a newer one.
    fn get(&self, tree: TreeId, key: &[u8], at: Lsn, row: &mut Vec<u8>) -> Result<Read>;
    /// See [`storage::Store::gap`]; none where that is not to be had.
    fn gap(&self, _tree: TreeId, _key: &[u8]) -> Result<Option<Gap>> {
        Ok(None)
    }
    /// See [`storage::Store::scan`]; `at` as for [`View::get`].
    fn scan(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        at: Lsn,
        limit: usize,
        batch: &mut RowBatch,
    ) -> Result<Scanned>;
}

/// After every command of any transaction.
const AFTER_ALL: CommandId = CommandId(u32::MAX);

/// One transaction.
#[derive(Debug)]
pub struct Txn<L: Leader> {
    leader: L,
    id: TxnId,
    isolation: Isolation,
    locks: TxnLocks,
    options: TxnOptions,
    /// The transactions at SERIALIZABLE.
    serial: Arc<Serial>,
    /// This one among them, from its snapshot on; none once nothing can go wrong any more.
    serial_txn: Option<SerialTxn>,
    /// Its snapshot is one of several groups.
    is_branch: bool,
    /// For the record by which it resolves one of those that is prepared.
    resolves: Option<Ticket>,
    writes: WriteSet,
    snapshot: Option<L::Snapshot>,
    command: CommandId,
    /// The newest command there was, by which writes are stamped: after one inside of another, that
    /// goes on looking at what it saw before.
    latest: CommandId,
    debt: Debt,
    /// The savepoints and how many locks were held at each.
    savepoints: Vec<(Savepoint, usize)>,
    next_savepoint: u32,
    views: Views<L::Snapshot>,
    last_locked: LastLocked,
    /// Keys that are not there, for whoever inserts many.
    ahead: Ahead,
    /// Trees that are made beside the work, to be switched to when this commits.
    builds: Vec<BuildHandle>,
    /// Rows that it has taken to other trees.
    moved: Large<Vec<(TreeId, Key)>>,
    /// Its id for its client, where that has asked.
    asked: Option<AskedXid>,
    /// What leadership that is handed over waits for.
    open: Option<Open>,
    /// The snapshots that it may borrow.
    exports: Option<Arc<Exports<L::Snapshot>>>,
    /// Those that it lends.
    exported: Vec<Export<L::Snapshot>>,
    /// Where its locks go when it is prepared.
    prepared: Option<Arc<PreparedLocks>>,
    /// Who numbers rows, where that is another group.
    numbering: Option<L>,
    catalog_writes: Vec<(TreeId, Key)>,
    stored: RowBatch,
    probe: RowBatch,
    probe_row: Vec<u8>,
}

impl<L: Leader> Txn<L> {
    /// Counts it among those that are open.
    pub fn set_open(&mut self, open: Open) {
        self.open = Some(open);
    }

    /// A transaction that has done nothing yet.
    pub fn new(
        leader: L,
        id: TxnId,
        locks: TxnLocks,
        serial: &Arc<Serial>,
        options: TxnOptions,
    ) -> Txn<L> {
        let writes = WriteSet::with_scratch(leader.scratch());
        Txn {
            leader,
            id,
            isolation: options.isolation,
            locks,
            options,
            serial: serial.clone(),
            serial_txn: None,
            is_branch: false,
            resolves: None,
            writes,
            snapshot: None,
            command: CommandId(0),
            latest: CommandId(0),
            debt: Debt::NONE,
            savepoints: Vec::new(),
            next_savepoint: 0,
            views: Views::default(),
            last_locked: LastLocked::default(),
            ahead: Ahead::default(),
            builds: Vec::new(),
            moved: Large::default(),
            asked: None,
            open: None,
            exports: None,
            exported: Vec::new(),
            prepared: None,
            numbering: None,
            catalog_writes: Vec::new(),
            stored: RowBatch::default(),
            probe: RowBatch::default(),
            probe_row: Vec::new(),
        }
    }

    /// Puts a row into the write set.
    fn put(
        &mut self,
        tree: TreeId,
        key: &[u8],
        old: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<()> {
        if (TreeId::FIRST_CATALOG..TreeId::FIRST_USER).contains(&tree) {
            self.catalog_writes.push((tree, key.to_vec()));
        }
        if usage::is_counted() {
            crate::record::note_logged(tree, key, old, new)?;
        }
        self.writes.put(tree, key, old, new, self.latest)
    }

    /// The statement's snapshot.
    fn view(&self) -> Result<&L::Snapshot> {
        let missing = || Error::internal("a transaction reads before its first statement");
        self.snapshot.as_ref().ok_or_else(missing)
    }

    /// The position of the statement's snapshot.
    fn at(&self) -> Result<Position> {
        self.view().map(View::position)
    }

    fn owe(&mut self, term: Term, lsn: Lsn) {
        if lsn > Lsn::ZERO {
            self.debt.add(self.leader.group(), Position { term, lsn });
        }
    }

    /// Whether this transaction had the tree built, so that the store shows it at [`Lsn::MAX`] only.
    fn is_built(&self, tree: TreeId) -> bool {
        let mut plans = self.builds.iter().map(BuildHandle::plan);
        plans.any(|plan| plan.trees().any(|built| built == tree))
    }

    /// Where to read a tree, so as to see what there is at `at`.
    fn read_at(&self, tree: TreeId, at: Lsn) -> Lsn {
        match self.is_built(tree) {
            true => Lsn::MAX,
            false => at,
        }
    }

    /// To be called after a tree was read: what is built ends with its term, and then shows nothing.
    fn check_built(&self, tree: TreeId) -> Result<()> {
        match self.is_built(tree) {
            true => self.leader.check_term(self.at()?.term),
            false => Ok(()),
        }
    }

    /// Whether this transaction made the tree, so that the store does not know it.
    fn is_new_tree(&self, tree: TreeId) -> bool {
        tree >= TreeId::FIRST_USER
            && !self.is_built(tree)
            && self.writes.touches(TreeId::DESCRIPTORS)
            && self
                .writes
                .is_new(TreeId::DESCRIPTORS, &tree.0.to_be_bytes())
    }

    /// Reads the store's newest version of a row that is locked, and owes it.
    fn get_newest(&mut self, tree: TreeId, key: &[u8], row: &mut Vec<u8>) -> Result<Read> {
        let view = self.view()?;
        let term = view.position().term;
        let at = self.read_at(tree, self.leader.visible());
        let read = view.get(tree, key, at, row)?;
        self.leader.check_term(term)?;
        self.owe(term, read.owes);
        Ok(read)
    }

    /// Whether a row that is locked is there now, own writes included.
    fn exists_now(&mut self, tree: TreeId, key: &[u8]) -> Result<bool> {
        if let Some(own) = self.writes.newest(tree, key)? {
            return Ok(own.row.is_some());
        }
        if self.is_new_tree(tree) {
            return Ok(false);
        }
        let visible = self.leader.visible();
        if self.ahead.is_absent(tree, key, visible) {
            return self.leader.check_term(self.at()?.term).map(|()| false);
        }
        let mut row = std::mem::take(&mut self.probe_row);
        let read = self.get_newest(tree, key, &mut row);
        self.probe_row = row;
        let exists = read?.exists;
        self.look_ahead(tree, key, visible)?;
        Ok(exists)
    }

    /// Scans as of `at` and `command`, until there is a row or the range ends.
    #[allow(clippy::too_many_arguments)]
    fn scan_as_of(
        &mut self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        (at, command): (Lsn, CommandId),
        limit: usize,
        batch: &mut RowBatch,
    ) -> Result<Option<KeyRange>> {
        let term = self.at()?.term;
        let is_new = self.is_new_tree(tree);
        let at = self.read_at(tree, at);
        let is_written = self.writes.touches(tree);
        batch.clear();
        if is_new && !is_written {
            return Ok(None);
        }
        let mut rest = None;
        loop {
            let left = rest.as_ref().unwrap_or(range);
            let mut stored = std::mem::take(&mut self.stored);
            let into = if is_written { &mut stored } else { &mut *batch };
            into.clear();
            let store_rest = if is_new {
                None
            } else {
                let view = self.view()?;
                let scanned = view.scan(tree, left, direction, at, limit, into)?;
                self.check_built(tree)?;
                self.owe(term, scanned.owes);
                scanned.rest
            };
            rest = if is_written {
                let covered = covered(left, direction, store_rest.as_ref());
                let within = (&covered, direction, command);
                let own_max = SCAN_BATCH_ROWS;
                let writes = &self.writes;
                match writes.merge_into(tree, within, &stored, limit, own_max, batch)? {
                    Some(key) => Some(rest_of(left, direction, &key)),
                    None => store_rest,
                }
            } else {
                store_rest
            };
            self.stored = stored;
            if rest.is_none() || !batch.is_empty() {
                return Ok(rest);
            }
            coro::yield_now()?;
        }
    }

    /// The row to be changed, which is locked: as this transaction has written it, else as it is
    /// in the store.
    fn row_to_change(&mut self, tree: TreeId, key: &[u8]) -> Result<Vec<u8>> {
        let missing = || Error::internal("a row to be changed is not there");
        if let Some(own) = self.writes.newest(tree, key)? {
            return own.row.map(Cow::into_owned).ok_or_else(missing);
        }
        let last = &mut self.last_locked;
        if last.tree == Some(tree) && last.key == key {
            last.tree = None;
            return Ok(std::mem::take(&mut last.row));
        }
        let mut row = Vec::new();
        if self.get_newest(tree, key, &mut row)?.exists {
            return Ok(row);
        }
        Err(missing())
    }

    /// What locking a row found that this transaction has not written: compares what the snapshot
    /// shows with the newest version, which it leaves in `last_locked`.
    fn compare_with_newest(
        &mut self,
        tree: TreeId,
        key: &[u8],
        strength: RowLock,
        in_the_way: bool,
    ) -> Result<LockedRow> {
        self.last_locked.tree = None;
        self.last_locked.as_seen = false;
        let mut row = std::mem::take(&mut self.last_locked.row);
        let read = self.get_newest(tree, key, &mut row);
        self.last_locked.row = row;
        let read = read?;
        let is_seen = self.view()?.shows(read.version) || self.is_built(tree);
        let is_changed = match strength {
            _ if is_seen => false,
            RowLock::KeyShare => !read.exists || !self.has_same_keys(tree, key)?,
            _ => true,
        };
        let may_be_gone = in_the_way && !read.exists;
        let is_refused = is_changed && self.isolation != Isolation::ReadCommitted && !may_be_gone;
        if is_refused && !self.move_on()? {
            let what = if read.exists { "update" } else { "delete" };
            let message = format!("could not serialize access due to concurrent {what}");
            return Err(Error::serialization(message));
        }
        if !read.exists {
            return Ok(LockedRow::Gone);
        }
        // A weaker lock does not keep the row as it is.
        if strength >= RowLock::NoKeyUpdate {
            self.last_locked.tree = Some(tree);
            self.last_locked.key.clear();
            self.last_locked.key.extend_from_slice(key);
        }
        Ok(match is_changed {
            true => LockedRow::Changed,
            false => LockedRow::Unchanged,
        })
    }

    /// Whether the newest version of a row, which is in `last_locked`, has the unique keys that the
    /// snapshot shows.
    fn has_same_keys(&mut self, tree: TreeId, key: &[u8]) -> Result<bool> {
        let mut old = Vec::new();
        let view = self.view()?;
        let at = view.position();
        let read = view.get(tree, key, at.lsn, &mut old)?;
        self.owe(at.term, read.owes);
        if !read.exists {
            return Ok(false);
        }
        let Some(indexes) = self.indexes(tree)? else {
            return Ok(true);
        };
        let old = Row::parse(&old)?;
        let new = Row::parse(&self.last_locked.row)?;
        for (_, index) in indexes.iter().filter(|(_, index)| index.unique) {
            if unique::unique_prefix(index, &old)? != unique::unique_prefix(index, &new)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The indexes of a table, those made and without those dropped by this transaction.
    fn indexes(&self, table: TreeId) -> Result<Option<Indexes>> {
        if table < TreeId::FIRST_USER {
            return Ok(None);
        }
        let known = self.leader.indexes(table);
        if !self.writes.touches(TreeId::DESCRIPTORS) {
            return Ok(known);
        }
        let mut all = known.map_or_else(Vec::new, |known| known.to_vec());
        for (key, row) in self.own_descriptors() {
            all.retain(|(tree, _)| tree.descriptor_key() != key);
            let Some(row) = row else { continue };
            let descriptor = TreeDescriptor::from_row(row)?;
            match descriptor.kind {
                TreeKind::Index(index) if index.table == table => all.push((descriptor.id, index)),
                _ => {}
            }
        }
        Ok((!all.is_empty()).then(|| all.into()))
    }

    fn own_descriptors(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        let (range, direction) = (KeyRange::all(), Direction::Forward);
        self.writes
            .range(TreeId::DESCRIPTORS, &range, direction, AFTER_ALL)
    }

    fn dropped_trees(&self) -> Vec<Vec<u8>> {
        self.own_descriptors()
            .filter(|(_, row)| row.is_none())
            .map(|(key, _)| key.to_vec())
            .collect()
    }

    /// Locks a row and looks what became of it.
    fn lock_and_look(
        &mut self,
        tree: TreeId,
        key: &[u8],
        (strength, wait): (RowLock, LockWait),
        in_the_way: bool,
        newest: &mut Vec<u8>,
    ) -> Result<LockedRow> {
        newest.clear();
        let mark = self.locks.mark();
        if self.locks.row(tree, key, strength, wait)? == Acquired::Skipped {
            return Ok(LockedRow::Skipped);
        }
        let locked = match self.writes.newest(tree, key)? {
            Some(Own { command, row }) if command < self.command && row.is_some() => {
                LockedRow::Unchanged
            }
            Some(_) => LockedRow::Gone,
            None if self.is_new_tree(tree) => LockedRow::Gone,
            None if self.last_locked.is_seen(tree, key, strength) => LockedRow::Unchanged,
            None => self.compare_with_newest(tree, key, strength, in_the_way)?,
        };
        if locked == LockedRow::Changed {
            newest.extend_from_slice(&self.last_locked.row);
        }
        if locked == LockedRow::Gone {
            self.locks.rollback_to(mark);
        }
        Ok(locked)
    }

    /// The end of a transaction that wrote nothing.
    fn end_unwritten(mut self) -> Result<Debt> {
        if let Some(txn) = self.serial_txn.take() {
            txn.committed(None)?;
        }
        Ok(self.debt)
    }

    /// Fails for a tree of another group, of which nothing is known here.
    pub(crate) fn check_lies_here(&self, tree: TreeId) -> Result<()> {
        let (group, here) = (tree.group(), self.leader.group());
        match group == here {
            true => Ok(()),
            false => Err(self.leader.lies_elsewhere(group)),
        }
    }

    /// The place of a savepoint, from 1 as in the write set.
    fn number_of(&self, savepoint: Savepoint) -> usize {
        let place = self
            .savepoints
            .binary_search_by_key(&savepoint, |(id, _)| *id);
        place.unwrap_or_else(|_| panic!("{savepoint:?} is not there")) + 1
    }
}

impl<L: Leader> Transaction for Txn<L> {
    fn id(&self) -> TxnId {
        self.id
    }

    fn isolation(&self) -> Isolation {
        self.isolation
    }

    fn set_options(&mut self, options: TxnOptions) {
        assert!(self.snapshot.is_none(), "{options:?} come after a snapshot");
        self.isolation = options.isolation;
        self.options = options;
    }

    fn begin_statement(&mut self) -> Result<()> {
        match &mut self.snapshot {
            None => self.snapshot = Some(self.first_snapshot()?),
            Some(snapshot) if self.isolation == Isolation::ReadCommitted => {
                self.leader.refresh(snapshot)?;
            }
            Some(snapshot) => {
                self.leader.check_term(snapshot.position().term)?;
                self.look_for_safety();
            }
        }
        if L::LOCKS {
            self.locks.bind(self.at()?.term)?;
        }
        self.owe_shown()?;
        self.next_command();
        Ok(())
    }

    fn next_command(&mut self) {
        self.latest.0 += 1;
        self.command = self.latest;
        assert!(self.command < AFTER_ALL, "{:?} is the last", self.command);
    }

    fn owe(&mut self, debt: &Debt) {
        self.debt.merge(debt);
    }

    fn debt(&self) -> &Debt {
        &self.debt
    }

    fn advisory(&mut self) -> Result<&mut dyn AdvisoryLocking> {
        Ok(self)
    }

    fn outcome(&mut self) -> Result<&mut dyn TxnOutcome> {
        Ok(self)
    }

    fn snapshots(&mut self) -> Result<&mut dyn SnapshotSharing> {
        Ok(self)
    }

    fn notifying(&mut self) -> Result<&mut dyn Notifying> {
        Ok(self)
    }

    fn end_reading(&mut self) -> bool {
        let reads_only = self.isolation == Isolation::ReadCommitted
            && self.writes.is_empty()
            && self.savepoints.is_empty()
            && self.builds.is_empty()
            && self.asked.is_none()
            && self.views.is_unused();
        if reads_only {
            self.locks.release_all();
            self.snapshot = None;
            self.exported.clear();
        }
        reads_only
    }

    fn begin_again(&mut self, options: TxnOptions) -> bool {
        let Some(term) = self.locks.term() else {
            return false;
        };
        // The id has named nothing in the log, and holds for this term.
        if options.isolation != Isolation::ReadCommitted || self.leader.check_term(term).is_err() {
            return false;
        }
        self.set_options(options);
        self.command = CommandId(0);
        self.latest = CommandId(0);
        self.debt = Debt::NONE;
        self.catalog_writes.clear();
        self.last_locked.tree = None;
        self.ahead = Ahead::default();
        true
    }

    fn commit(self: Box<Self>, durability: Durability) -> Result<Debt> {
        let mut this = *self;
        this.note_outcome()?;
        if this.writes.is_empty() {
            return this.end_unwritten();
        }
        let dropped = this.dropped_trees();
        let moved = this.moved_rows();
        let mut writes = std::mem::take(&mut this.writes);
        let ticket = match this.publish(&mut writes, &dropped)? {
            Some(ticket) => {
                ticket.wait_for_parts()?;
                Some(ticket)
            }
            None => this.resolves.take(),
        };
        let changes = writes.collapse(move |tree| dropped.contains(&tree.descriptor_key()))?;
        if matches!(&changes, Changes::All(changes) if changes.is_empty()) {
            return this.end_unwritten();
        }
        let term = this.term_of_writes()?;
        let _unmarked = ticket.is_none().then(|| this.serial.unmarked());
        let position = this.leader.commit(CommitRequest {
            term,
            txn: this.id,
            changes,
            durability,
            serial: ticket.clone(),
        })?;
        this.builds.drain(..).for_each(BuildHandle::switched);
        if let Some(txn) = this.serial_txn.take() {
            txn.committed(ticket)?;
        }
        if !moved.is_empty() {
            this.locks.note_moved(position.lsn, moved);
        }
        this.locks.release_all();
        this.debt.add(this.leader.group(), position);
        Ok(this.debt)
    }

    fn prepare(self: Box<Self>, preparation: Preparation, durability: Durability) -> Result<Debt> {
        self.prepare_as(preparation, durability)
    }
}

impl<L: Leader> Reading for Txn<L> {
    fn get(&mut self, tree: TreeId, key: &[u8], row: &mut Vec<u8>) -> Result<bool> {
        row.clear();
        if !self.writes.is_empty() {
            if let Some(own) = self.writes.visible(tree, key, self.command)? {
                row.extend_from_slice(own.row.as_deref().unwrap_or_default());
                return Ok(own.row.is_some());
            }
            if self.is_new_tree(tree) {
                return Ok(false);
            }
        }
        let view = self.view()?;
        let at = view.position();
        let read = view.get(tree, key, self.read_at(tree, at.lsn), row)?;
        self.check_built(tree)?;
        if read.exists || !is_planted(Bug::AbsenceUngated) {
            self.owe(at.term, read.owes);
        }
        self.has_read_key(tree, key)?;
        Ok(read.exists)
    }

    fn get_to_lock(
        &mut self,
        tree: TreeId,
        key: &[u8],
        strength: RowLock,
        row: &mut Vec<u8>,
    ) -> Result<bool> {
        match self.lock_and_get(tree, key, strength, row)? {
            true => Ok(true),
            false => self.get(tree, key, row),
        }
    }

    fn scan(
        &mut self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
        batch: &mut RowBatch,
    ) -> Result<Option<KeyRange>> {
        let limit = limit.clamp(1, SCAN_BATCH_ROWS);
        let as_of = (self.at()?.lsn, self.command);
        let rest = self.scan_as_of(tree, range, direction, as_of, limit, batch)?;
        self.has_read_range(tree, range, direction, rest.as_ref())?;
        Ok(rest)
    }

    fn scan_newest_in(
        &mut self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
        batch: &mut RowBatch,
    ) -> Result<Option<KeyRange>> {
        let limit = limit.clamp(1, SCAN_BATCH_ROWS);
        let term = self.at()?.term;
        let now = (self.leader.visible(), AFTER_ALL);
        let rest = self.scan_as_of(tree, range, direction, now, limit, batch)?;
        self.leader.check_term(term)?;
        Ok(rest)
    }
}

impl<L: Leader> Writing for Txn<L> {
    fn insert(&mut self, tree: TreeId, key: &[u8], row: &[u8]) -> Result<Inserted> {
        let mark = self.locks.mark();
        if tree == TreeId::DESCRIPTORS {
            self.check_lies_here(TreeId::of_descriptor_key(key)?)?;
        }
        self.will_write(tree, key)?;
        if self.claim_key(tree, key)? {
            self.met_duplicate(tree, key)?;
            self.locks.rollback_to(mark);
            return Ok(Inserted::Duplicate(tree));
        }
        if let Some(index) = self.move_entries(tree, key, None, Some(row))? {
            self.locks.rollback_to(mark);
            return Ok(Inserted::Duplicate(index));
        }
        self.put(tree, key, None, Some(row))?;
        if tree == TreeId::DESCRIPTORS {
            return self.index_was_made(row);
        }
        Ok(Inserted::Done)
    }

    fn insert_new(&mut self, tree: TreeId, key: &[u8], row: &[u8]) -> Result<Inserted> {
        let mark = self.locks.mark();
        self.will_write(tree, key)?;
        if let Some(index) = self.move_entries(tree, key, None, Some(row))? {
            self.locks.rollback_to(mark);
            return Ok(Inserted::Duplicate(index));
        }
        self.put(tree, key, None, Some(row))?;
        Ok(Inserted::Done)
    }

    fn update(&mut self, tree: TreeId, key: &[u8], row: &[u8]) -> Result<Inserted> {
        let mark = self.locks.mark();
        self.will_write(tree, key)?;
        let old = self.row_to_change(tree, key)?;
        if let Some(index) = self.move_entries(tree, key, Some(&old), Some(row))? {
            self.locks.rollback_to(mark);
            return Ok(Inserted::Duplicate(index));
        }
        self.put(tree, key, Some(&old), Some(row))?;
        Ok(Inserted::Done)
    }

    fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<()> {
        self.will_write(tree, key)?;
        let old = self.row_to_change(tree, key)?;
        self.move_entries(tree, key, Some(&old), None)?;
        self.put(tree, key, Some(&old), None)
    }

    fn note_moved(&mut self, tree: TreeId, key: &[u8]) {
        self.moved.push((tree, key.to_vec()));
    }

    fn was_moved(&self, tree: TreeId, key: &[u8]) -> Result<bool> {
        Ok(self.locks.was_moved(tree, key, self.at()?.lsn))
    }

    fn is_written_by_command(&self, tree: TreeId, key: &[u8]) -> bool {
        // What cannot be read now cannot be read by whoever goes on.
        let own = self.writes.newest(tree, key).ok().flatten();
        own.is_some_and(|own| own.command >= self.command)
    }

    fn catalog_writes(&self) -> &[(TreeId, Key)] {
        &self.catalog_writes
    }
}

impl<L: Leader> Building for Txn<L> {
    fn build(&mut self, build: &Build) -> Result<Built> {
        self.build_trees(build)
    }
}

impl<L: Leader> Savepoints for Txn<L> {
    fn savepoint(&mut self) -> Savepoint {
        self.next_savepoint += 1;
        let savepoint = Savepoint(self.next_savepoint);
        self.savepoints.push((savepoint, self.locks.mark()));
        let number = self.writes.mark();
        assert_eq!(number, self.savepoints.len(), "savepoints of the write set");
        savepoint
    }

    fn rollback_to(&mut self, savepoint: Savepoint) {
        let number = self.number_of(savepoint);
        self.savepoints.truncate(number);
        self.writes.rollback_to(number);
        // Whoever is dropped here is given up.
        let writes = &self.writes;
        self.builds.retain(|build| is_switched(writes, build));
        self.locks.rollback_to(self.savepoints[number - 1].1);
        self.last_locked.tree = None;
    }

    fn release(&mut self, savepoint: Savepoint) {
        let number = self.number_of(savepoint);
        self.savepoints.truncate(number - 1);
        self.writes.release(number);
    }
}

impl<L: Leader> base::engine::Views for Txn<L> {
    fn keep_view(&mut self) -> Result<ViewId> {
        let snapshot = self.view()?.clone();
        Ok(self.views.keep(snapshot, self.command, self.writes.pin()))
    }

    fn swap_view(&mut self, view: ViewId) -> Result<()> {
        let kept = self.views.get(view)?;
        let current = self
            .snapshot
            .as_mut()
            .ok_or_else(|| Error::internal("a view is read before any statement"))?;
        std::mem::swap(current, &mut kept.snapshot);
        std::mem::swap(&mut self.command, &mut kept.command);
        let term = self.at()?.term;
        self.leader.check_term(term)
    }

    fn drop_view(&mut self, view: ViewId) {
        if let Some(pin) = self.views.remove(view) {
            self.writes.unpin(pin);
        }
    }
}

impl<L: Leader> AdvisoryLocking for Txn<L> {
    fn lock_advisory(
        &mut self,
        key: AdvisoryKey,
        mode: AdvisoryMode,
        wait: LockWait,
    ) -> Result<bool> {
        Ok(self.locks.advisory(key, mode, wait)? != Acquired::Skipped)
    }
}

impl<L: Leader> TxnOutcome for Txn<L> {
    fn xid(&mut self, assign: bool) -> Result<Option<Xid>> {
        self.give_xid(assign)
    }

    fn set_flight(&mut self, flight: Flight) {
        self.options.flight = Some(flight);
    }
}

impl<L: Leader> SnapshotSharing for Txn<L> {
    fn export_snapshot(&mut self) -> Result<String> {
        self.lend_snapshot()
    }

    fn import_snapshot(&mut self, name: &str) -> Result<Option<Lsn>> {
        self.borrow_snapshot(name)
    }
}
