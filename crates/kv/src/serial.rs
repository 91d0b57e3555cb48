//! SERIALIZABLE: serializable snapshot isolation (Cahill 2008; Ports and Grittner 2012) on keys
//! and key ranges, in the memory of the group's leader.
//!
//! Snapshot isolation goes wrong only where transactions read past each other's writes: *T1 → T2*
//! says that T1 read something as it was before T2 wrote it, so T1 must come before T2. A history
//! that fits no serial order always contains a **dangerous structure**: T1 → T2 → T3, all
//! concurrent with their neighbours, where T3 is the first of the three to commit (T1 and T3 may
//! be one), and, if T1 wrote nothing, T3 committed before T1's snapshot. One of each such structure
//! has to fail, with 40001.
//!
//! ```text
//! T1 (report)    ───────────────── snapshot, reads x=0 y=20 ──── commit
//! T2 (withdraw)  ── snapshot, reads x=0 y=0 ───────── writes x=-11 ── commit ✗ a pivot:
//! T3 (deposit)   ── snapshot ── writes y=20 ── commit             T1 → T2 over x, T2 → T3 over y
//! ```
//!
//! # How
//! - Every read leaves a mark: on a key, there or not, or on the range that was scanned, gaps and
//!   entries of indexes included ([`marks`]). It also looks for writes that were published there.
//! - A transaction publishes its writes when it is about to commit, and finds the marks of others.
//!   The later of a read and a write always finds the earlier, so no latch is held over both.
//! - The sequencer, in its critical section, asks [`Ticket::validate`]: T2 fails if it has read past
//!   a commit T3, and is read past by some T1 for which that is dangerous. This is the only moment
//!   at which a pivot fails: T3 has committed, so that a retry is not concurrent with it and cannot
//!   fail for the same reason.
//! - If T2 has committed already and T1 reads past it later, T1 fails at that read; or, if T3
//!   committed after T1's snapshot, when T1 writes for the first time.
//! - At T2's commit all T3 that matter have committed. So of a committed transaction nothing is
//!   kept but the first commit that it read past, and edges are kept in one direction only.
//! - Transactions are remembered until nobody runs who was concurrent with them.
//!
//! # Moving on
//! Snapshot isolation refuses a transaction that comes to lock a row which another has changed since
//! its snapshot, and of ten that change one row at a time, nine fail. But where nothing that it has
//! *read* was changed since, it might as well have begun now: its snapshot is put forward
//! ([`SerialTxn::move_on`]), and it goes on with the row as it is. That it has read past no commit is
//! what the graph knows: every commit within the newer snapshot has told its readers by then. A row
//! that is found by its whole key and is to be changed is locked before it is read
//! ([`Reading::get_to_lock`](base::engine::Reading::get_to_lock)), so that the row itself
//! does not count as read before.
//!
//! ```text
//! T1  update w set n = n + 1 ──────────────── commit
//! T2      update w set n = n + 1   waits ………………… locks; newest version is after its snapshot;
//!                                                it has read nothing: snapshot := now, n + 1
//! ```
//! Writers below SERIALIZABLE publish nothing, so a transaction that has read something only moves
//! on if none of those has committed since ([`Serial::unmarked`]).
//!
//! # Reading only
//! A transaction that is declared READ ONLY has a *safe* snapshot once no writer runs that was
//! concurrent with it, and none of those has committed having read past a commit within the
//! snapshot. From then on it leaves no marks and cannot fail. A DEFERRABLE one waits for that
//! before its first read, with ever newer snapshots.
//!
//! # Across groups
//! Each group has marks and a graph of its own, and a cycle may lead through several. So a transaction
//! that has written, and has read or written in several groups, commits only if whatever it has read
//! in each is still as it was ([`Ticket::validate`] of a part that is prepared), and from then until
//! its outcome is known nobody commits a change to that. It might as well have done everything at the
//! timestamp of its commit, so it is no pivot; and as each group orders it by that timestamp, a cycle
//! through several groups would have one within a group, which that group's graph refuses.
//!
//! ```text
//! T (groups 1, 2)   reads x in 1, writes y in 2 ──── prepared in both ──── committed
//! U (group 1)             writes x ───────────────────── waits ……………………………… commits, after T
//! ```
//! One that has only read is looked at by each group for itself. Of a part of which only the log is
//! left, after its leader was lost, nobody knows what it has read. Whoever comes then waits for its
//! outcome before it has a snapshot ([`crate::group`], *standing*), and so comes after it.
//!
//! # Invariants
//! - A transaction is known here before its snapshot is taken, and until it is durable in the
//!   graph that it ended.
//! - Validation, the LSN and [`Ticket::committed`] are one critical section: the order of commits
//!   here is the log's.
//! - Latches are taken in the order: group, graph. A shard of the marks is taken with neither.
//! - Marks belong to a term; [`Serial::clear`] ends it, and every transaction of it fails.
//!
//! # Bounds
//! Marks of one transaction in one tree become coarser (constants in [`marks`]). Of more than
//! [`FINISHED_MAX`] committed transactions the oldest are remembered as one. Both only make more
//! transactions fail.
//!
//! # What it leaves out
//! The catalog is read and written without marks, as in PostgreSQL. Checks of unique keys leave no
//! marks. A table whose rows are put into another tree starts there without marks. On standbys SERIALIZABLE is refused.

mod graph;
mod marks;
mod ranges;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use base::coro;
use base::sync::{Event, Mutex};
use base::{Error, KeyRange, Lsn, Result, SessionId, TreeId};

use graph::{Graph, Leftovers};
use marks::Marks;

pub use graph::{Safety, FINISHED_MAX};

/// A serializable transaction of this leader; larger ones began later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SerialId(pub u64);

/// What is done with each key.
pub type KeyVisitor<'a> = dyn FnMut(TreeId, &[u8]) + 'a;

/// 40001, as PostgreSQL words it.
fn failure(reason: &str) -> Error {
    Error::serialization(
        "could not serialize access due to read/write dependencies among transactions",
    )
    .with_detail(format!("Reason code: {reason}"))
    .with_hint("The transaction might succeed if retried.")
}

/// The serializable transactions of a group, in its leader's memory.
#[derive(Debug)]
pub struct Serial {
    marks: Marks,
    graph: Mutex<Graph>,
    /// A snapshot may have become safe, or spoilt.
    ended: Event,
    /// Commits under way that publish nothing.
    unmarked: AtomicU64,
    /// How many such commits have begun; counted after `unmarked`.
    unmarked_begun: AtomicU64,
}

/// A commit under way whose writes are not published.
#[derive(Debug)]
pub struct Unmarked<'s>(&'s Serial);

impl Drop for Unmarked<'_> {
    fn drop(&mut self) {
        self.0.unmarked.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Serial {
    /// Nothing runs yet.
    pub fn new() -> Arc<Serial> {
        Arc::new(Serial {
            marks: Marks::new(),
            graph: Mutex::default(),
            ended: Event::new(),
            unmarked: AtomicU64::new(0),
            unmarked_begun: AtomicU64::new(0),
        })
    }

    /// The term is over: all marks are gone, and every transaction that left some fails.
    pub fn clear(&self) {
        self.graph.lock().clear();
        self.marks.clear();
        self.ended.notify_all();
    }

    /// To be held while something is committed of which no writes are published.
    pub fn unmarked(&self) -> Unmarked<'_> {
        self.unmarked.fetch_add(1, Ordering::SeqCst);
        self.unmarked_begun.fetch_add(1, Ordering::SeqCst);
        Unmarked(self)
    }

    /// A number that stays the same until such a commit begins; none while one is under way.
    fn quiet_since(&self) -> Option<u64> {
        let begun = self.unmarked_begun.load(Ordering::SeqCst);
        (self.unmarked.load(Ordering::SeqCst) == 0).then_some(begun)
    }

    /// See [`base::engine::LockManager::snapshot_blockers`].
    pub fn snapshot_blockers(&self, session: SessionId) -> Vec<SessionId> {
        self.graph.lock().snapshot_blockers(session)
    }

    /// How many transactions are remembered.
    pub fn len(&self) -> usize {
        self.graph.lock().len()
    }

    /// Whether nothing is remembered of any transaction.
    pub fn is_empty(&self) -> bool {
        self.len() == 0 && self.marks.is_empty()
    }

    /// A transaction that will take its snapshot at `visible` or later.
    pub fn begin(
        self: &Arc<Serial>,
        session: Option<SessionId>,
        read_only: bool,
        visible: Lsn,
    ) -> SerialTxn {
        let quiet_since = self.quiet_since();
        let id = self.graph.lock().begin(session, read_only, visible);
        SerialTxn {
            serial: self.clone(),
            id,
            quiet_since,
            trees: Vec::new(),
            is_over: false,
            writes: false,
        }
    }

    fn sweep(&self) {
        let Leftovers { forget, summarise } = self.graph.lock().sweep();
        for (id, trees) in summarise {
            self.marks.summarise(id, graph::OLD, &trees);
        }
        for (id, trees) in forget {
            self.marks.forget(id, &trees);
        }
    }
}

/// One serializable transaction. Dropped before it has committed, it is rolled back.
#[derive(Debug)]
pub struct SerialTxn {
    serial: Arc<Serial>,
    id: SerialId,
    /// Before its snapshot: see [`Serial::quiet_since`].
    quiet_since: Option<u64>,
    /// Where it has left marks.
    trees: Vec<TreeId>,
    is_over: bool,
    writes: bool,
}

impl SerialTxn {
    /// The snapshot is taken: it shows what was committed up to an LSN, and at those above it. For
    /// one that only reads: whether it is safe; `waits` says that it will wait until that is known.
    ///
    /// # Errors
    /// 40001 when the term is over.
    pub fn has_snapshot(&self, shown: (Lsn, &[Lsn]), waits: bool) -> Result<Safety> {
        let mut graph = self.serial.graph.lock();
        graph.has_snapshot(self.id, shown, waits)
    }

    /// Puts the snapshot forward to one that was taken just now, if whatever was read so far is the
    /// same there; false where it may not be.
    pub fn move_on(&self, to: (Lsn, &[Lsn])) -> bool {
        let serial = &self.serial;
        let has_read = !self.trees.is_empty();
        let begun = serial.unmarked_begun.load(Ordering::SeqCst);
        if has_read && self.quiet_since != Some(begun) {
            return false;
        }
        serial.graph.lock().move_on(self.id, to)
    }

    /// Whether the snapshot is safe by now.
    pub fn safety(&self) -> Safety {
        self.serial.graph.lock().safety(self.id)
    }

    /// Waits, inside a coroutine, until it is known whether the snapshot is safe.
    ///
    /// # Errors
    /// The interrupt that ended the wait; 40001 when the term is over.
    pub fn wait_for_safety(&self) -> Result<Safety> {
        let (serial, id) = (&self.serial, self.id);
        coro::wait(serial.ended.until(|| {
            let graph = serial.graph.lock();
            match graph.safety(id) {
                Safety::Unknown if graph.knows(id) => None,
                Safety::Unknown => Some(Err(crate::group::term_is_over())),
                known => Some(Ok(known)),
            }
        }))?
    }

    /// Whether it has read or published anything.
    pub fn has_marks(&self) -> bool {
        !self.trees.is_empty()
    }

    fn marks_in(&mut self, tree: TreeId) {
        if !self.trees.contains(&tree) {
            self.trees.push(tree);
        }
    }

    /// A key was read, there or not.
    ///
    /// # Errors
    /// 40001 when what was read fits no order.
    pub fn read_key(&mut self, tree: TreeId, key: &[u8]) -> Result<()> {
        self.marks_in(tree);
        let mut writers = Vec::new();
        self.serial.marks.read_key(self.id, tree, key, &mut writers);
        self.read_past(&writers)
    }

    /// A range was read, with its gaps.
    ///
    /// # Errors
    /// As [`SerialTxn::read_key`].
    pub fn read_range(&mut self, tree: TreeId, range: &KeyRange) -> Result<()> {
        self.marks_in(tree);
        let mut writers = Vec::new();
        self.serial
            .marks
            .read_range(self.id, tree, range, &mut writers);
        self.read_past(&writers)
    }

    fn read_past(&self, writers: &[SerialId]) -> Result<()> {
        if writers.is_empty() {
            return Ok(());
        }
        self.serial.graph.lock().read_past(self.id, writers)
    }

    /// A key is about to be written.
    ///
    /// # Errors
    /// 40001 when the transaction could not commit with that write.
    pub fn will_write(&mut self, tree: TreeId, key: &[u8]) -> Result<()> {
        if !self.writes {
            self.serial.graph.lock().writes(self.id)?;
            self.writes = true;
        }
        self.check_pivot(tree, key, true)
    }

    /// A key that was to be written is there already. If the transaction must fail anyway, or
    /// would have to if it wrote the key, that is what it should say.
    ///
    /// # Errors
    /// 40001.
    pub fn met_duplicate(&self, tree: TreeId, key: &[u8]) -> Result<()> {
        self.check_pivot(tree, key, false)
    }

    fn check_pivot(&self, tree: TreeId, key: &[u8], certainly: bool) -> Result<()> {
        let serial = &self.serial;
        if !serial.graph.lock().has_out(self.id) {
            return Ok(());
        }
        let mut readers = Vec::new();
        serial.marks.readers(tree, key, &mut readers);
        match serial.graph.lock().is_pivot(self.id, &readers, certainly) {
            true => Err(failure(
                "Canceled on identification as a pivot, during write.",
            )),
            false => Ok(()),
        }
    }

    /// Publishes everything that the transaction is about to commit: keys, which `each` calls its
    /// argument with, and trees that go.
    ///
    /// # Errors
    /// 40001 when the term is over; what `each` returns.
    pub fn publish(
        &mut self,
        each: impl FnOnce(&mut KeyVisitor<'_>) -> Result<()>,
        dropped: impl Iterator<Item = TreeId>,
    ) -> Result<Ticket> {
        let mut readers = Vec::new();
        let mut last = None;
        each(&mut |tree, key| {
            if last != Some(tree) {
                self.marks_in(tree);
                last = Some(tree);
            }
            self.serial.marks.write(self.id, tree, key, &mut readers);
        })?;
        for tree in dropped {
            self.marks_in(tree);
            self.serial.marks.drop_tree(self.id, tree, &mut readers);
        }
        readers.sort_unstable();
        readers.dedup();
        let trees = self.trees.clone();
        self.serial.graph.lock().was_read(self.id, readers, trees)?;
        Ok(self.ticket(Step::Commit))
    }

    fn ticket(&self, step: Step) -> Ticket {
        Ticket {
            serial: self.serial.clone(),
            id: self.id,
            step,
        }
    }

    /// For the record that says that this part, which was prepared, is committed.
    pub fn to_resolve(&self) -> Ticket {
        self.ticket(Step::Resolve)
    }

    /// The transaction has committed: with its ticket, or having written nothing.
    ///
    /// # Errors
    /// 40001 when it wrote nothing and has failed before.
    pub fn committed(mut self, ticket: Option<Ticket>) -> Result<()> {
        if ticket.is_none() {
            let trees = self.trees.clone();
            self.serial
                .graph
                .lock()
                .committed_read_only(self.id, trees)?;
        }
        self.is_over = true;
        self.serial.ended.notify_all();
        self.serial.sweep();
        Ok(())
    }
}

impl SerialTxn {
    /// The part, which was prepared, is committed, and shown.
    pub fn resolved(mut self) {
        self.is_over = true;
        self.serial.ended.notify_all();
        self.serial.sweep();
    }
}

impl Drop for SerialTxn {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        self.serial.graph.lock().forget(self.id);
        self.serial.marks.forget(self.id, &self.trees);
        self.serial.ended.notify_all();
        self.serial.sweep();
    }
}

/// What a record does for a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Commit,
    Prepare,
    Resolve,
}

/// A transaction's way through the sequencer.
#[derive(Clone, Debug)]
pub struct Ticket {
    serial: Arc<Serial>,
    id: SerialId,
    step: Step,
}

impl Ticket {
    /// The same, for the record that prepares it as a part of a transaction across groups.
    #[must_use]
    pub fn to_prepare(self) -> Ticket {
        Ticket {
            step: Step::Prepare,
            ..self
        }
    }

    /// Waits, inside a coroutine, until nothing that it writes was read by a part whose outcome is
    /// not known yet. That is a matter of a round trip; parts never wait here, so nobody waits in a
    /// circle.
    ///
    /// # Errors
    /// The interrupt that ended the wait.
    pub fn wait_for_parts(&self) -> Result<()> {
        let serial = &self.serial;
        let waits = || serial.graph.lock().is_read_by_prepared(self.id);
        match waits() {
            true => Ok(coro::wait(serial.ended.until(|| (!waits()).then_some(())))?),
            false => Ok(()),
        }
    }

    /// Whether it may commit now, or be prepared, within the sequencer's critical section.
    ///
    /// # Errors
    /// 40001 when not.
    pub fn validate(&self) -> Result<()> {
        let mut graph = self.serial.graph.lock();
        match self.step {
            Step::Commit => graph.validate(self.id),
            Step::Prepare => graph.validate_part(self.id),
            Step::Resolve => Ok(()),
        }
    }

    /// It was given its LSN, within the same critical section.
    pub fn appended(&self, lsn: Lsn) {
        let mut graph = self.serial.graph.lock();
        match self.step {
            Step::Commit | Step::Resolve => graph.committed(self.id, lsn),
            Step::Prepare => graph.prepared(self.id, lsn),
        }
    }
}
