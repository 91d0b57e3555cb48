//! One group on one node: its log, its trees, and the one line in which its commits stand.
//!
//! A [`Group`] joins consensus (the `raft` crate, which decides), a log and a store (the `storage`
//! crate, which keep) and a gate (which says when a reply may leave). One commit, traced:
//!
//! 1. A transaction takes a [`Snapshot`]: the visible LSN, then the lease is checked.
//! 2. It locks and writes; nothing of that concerns the group.
//! 3. [`Group::commit`] derives what its rows and their index entries become, then enters the
//!    sequencer: term checked, timestamp given, record proposed (its LSN is final), applied,
//!    visible. The caller releases its locks.
//! 4. [`Group::settle`] gets the record moving: to the followers, then to the disk. Commits that
//!    nobody waits for yet gather, and move together: when they are many bytes, after
//!    [`base::limits::OFF_FLUSH_DELAY`], or with the first that is waited for.
//! 5. The log writer syncs, followers answer, watermarks rise; the gate lets the reply go.
//!
//! # Who does what
//! | task | reactor | work |
//! |---|---|---|
//! | sessions | `Session` | snapshots, commits; the flush of a lone commit in a group of one voter |
//! | group | `Group` | ticks, frames, gathered commits, applying in turns, fetching checkpoints |
//! | log writer | `Log` | write and fsync, one at a time |
//! | checkpointer | `Background` | checkpoints, compaction of the log |
//! | applier of a large record | `Background` | its pieces, on a replica that does not lead |
//! | builder | `Background` | trees made of a table's rows ([`crate::build`]) |
//! | comparing, summing up | `Background` | what the replicas hold ([`consistency`]) |
//!
//! All of them meet under one latch ([`core`]), held for microseconds and never across a wait.
//!
//! # What it leaves out
//! Parallel apply.

mod ahead;
mod builder;
mod bulk;
mod catchup;
mod checkpoints;
mod consistency;
mod core;
mod digest;
mod driver;
mod figures;
mod flush;
mod follow;
mod founding;
mod handover;
mod lag;
mod latch;
mod leaves;
mod members;
mod meta;
mod outbox;
pub mod outcomes;
mod pace;
mod pieces;
mod progress;
mod promotion;
mod replay;
mod sequencer;
mod sequences;
mod slow;
mod snapshots;
mod standbys;
mod standing;
mod starts;
mod status;

#[cfg(test)]
mod tests;
mod values;

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use base::engine::{CatalogChanges, CatalogVersion, IndexDescriptor, TempSpace};
use base::env::{Env, Instant};
use base::sync::{Event, Mutex, RwLock};
use base::{coro, Durability, Error, GroupId, Lsn, NodeId, Position, Result, Term, TreeId, TxnId};
use raft::SnapshotMeta;
use storage::log::Log;
use storage::{Scratch, Store};

pub use builder::BuildHandle;
pub use digest::Digest;
pub use follow::StandbyView;
pub use handover::Open;
pub use replay::{history_of, replay_for_check};
pub use sequencer::TXN_SEQUENCE;
pub use standbys::{STANDBY_NAMES, STANDBY_TIMEOUT};
pub(crate) use standing::Look;
pub use standing::{Also, Shown};
pub use starts::Unwelcome;
pub use status::Missing;

use crate::config::{GroupConfig, Observer, Transport};
use crate::directory::Directory;
use crate::frame::Frame;
use crate::gate::Gate;
use crate::notifications::Listeners;
use crate::registry::{Indexes, Registry};
use crate::serial::Ticket;
use crate::temp::StatementScratch;
use crate::write_set::Changes;

/// A snapshot waits for a lease for so many election timeouts; then this node is taken for one
/// that does not lead.
const LEASE_WAIT_TIMEOUTS: u32 = 4;

/// One group on one node.
pub struct Group {
    me: Weak<Group>,
    env: Arc<dyn Env>,
    config: GroupConfig,
    opened_at: Instant,
    starts: starts::StartsFile,
    directory: RwLock<Arc<Directory>>,
    transport: Arc<dyn Transport>,
    observer: Arc<dyn Observer>,
    store: RwLock<Arc<Store>>,
    log: Arc<Log>,
    registry: Registry,
    gate: Arc<Gate>,
    /// Where write sets go that are too large for memory.
    scratch: Arc<Scratch>,
    temp: Arc<StatementScratch>,
    snapshots: snapshots::Snapshots,
    /// The checkpoint that followers can be sent.
    checkpoint: Arc<Mutex<Option<SnapshotMeta>>>,
    /// See [`core::LogReader`].
    floor: Arc<AtomicU64>,
    catchup: catchup::Catchup,
    handover: handover::Handover,
    lag: Mutex<lag::Lag>,
    freshness: follow::Freshness,
    comparing: consistency::Comparing,
    inline: flush::InlinePolicy,
    disk_speed: flush::DiskSpeed,
    abandoned: builder::Abandoned,
    asked: Arc<outcomes::Asked>,
    core: Mutex<core::Core>,
    values: values::Values,
    shared: Shared,
    /// Lease or leadership changed.
    lease_changed: Event,
    /// Another leader is known, or none, or this node serves as one or does no longer.
    leadership_changed: Event,
    /// What is prepared, or decided across groups, is committed further than before.
    standing_changed: Event,
    log_changed: Event,
    /// Uncommitted bytes became fewer.
    room: Event,
    /// The group task has something to do.
    work: Event,
    /// The log writer has something to do.
    log_work: Event,
    /// The near writer has something to do.
    near_work: Event,
}

/// Checkpoints since the node started.
#[derive(Debug, Default)]
struct CheckpointCounts {
    /// Those that began because it was time.
    timed: AtomicU64,
    /// The others.
    requested: AtomicU64,
    /// How long all of them took.
    write_micros: AtomicU64,
}

/// What is read without the latch and written only with it.
#[derive(Debug, Default)]
struct Shared {
    /// The term in which this node leads and has announced so; 0 for none.
    leading: AtomicU64,
    /// The leader that is known; 0 for none.
    leader: AtomicU64,
    /// Until when the lease runs, in nanoseconds; 0 for none.
    lease_until: AtomicU64,
    /// The newest LSN that is wholly applied.
    visible: AtomicU64,
    /// Bytes of this leader's records that are not committed.
    uncommitted: AtomicUsize,
    /// Who waits at a level that asks other nodes.
    majority_waiting: AtomicUsize,
    /// When somebody last waited for the log, in nanoseconds.
    waited_at: AtomicU64,
    /// Somebody waits for a checkpoint at this LSN or above.
    checkpoint_asked: AtomicU64,
    /// How many checkpoints there was no space for.
    checkpoints_refused: AtomicU64,
    /// Those that were made.
    checkpoints: CheckpointCounts,
    /// Bytes of this leader's records that were not handed to the log yet.
    gathered: AtomicUsize,
    /// The log writer has the claim and has not taken it up yet.
    claimed: AtomicBool,
    /// The same of the near writer.
    claimed_near: AtomicBool,
    /// The newest output of the consensus that must be synced. All of it was appended.
    owed: AtomicU64,
    /// The newest output of the consensus that the operating system has.
    written: AtomicU64,
    /// Somebody wants to hear at once what was received.
    eager: AtomicBool,
    /// How often the log was cut, or replaced by a checkpoint: rises before the trees change.
    cuts: AtomicU64,
    /// When another member was last heard of by one that does not lead.
    heard_at: AtomicI64,
    /// The group task was woken and has not looked yet.
    woken: AtomicBool,
    /// There was a commit since the group task last looked.
    committed: AtomicBool,
    /// The group task looks often, because there were commits lately.
    busy: AtomicBool,
    /// There is no other member.
    alone: AtomicBool,
    failed: AtomicBool,
    closed: AtomicBool,
}

impl std::fmt::Debug for Group {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Group({} on {})", self.config.group, self.config.node)
    }
}

/// Who leads, as a node knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leadership {
    /// The leader that is known.
    pub leader: Option<NodeId>,
    /// The term in which this node leads and may serve.
    pub leading: Option<Term>,
}

/// A transaction that asks to be committed.
#[derive(Debug)]
pub struct CommitRequest {
    /// The term of its first snapshot or lock.
    pub term: Term,
    /// Its id.
    pub txn: TxnId,
    /// Its changes, one per row: in any order, or as a stream in the order of trees and keys.
    pub changes: Changes,
    /// The level at which its reply will be awaited.
    pub durability: Durability,
    /// At SERIALIZABLE, what must agree before the record is taken.
    pub serial: Option<Ticket>,
}

/// What a statement sees: everything up to one position. While it lives, the versions that it
/// needs are kept.
#[derive(Debug)]
pub struct Snapshot {
    group: Arc<Group>,
    position: Position,
}

impl Snapshot {
    /// The position: the term under which it was taken, and the newest LSN that it shows.
    pub fn position(&self) -> Position {
        self.position
    }

    /// The newest LSN that it shows.
    pub fn lsn(&self) -> Lsn {
        self.position.lsn
    }

    /// The term under which it was taken.
    pub fn term(&self) -> Term {
        self.position.term
    }
}

impl Clone for Snapshot {
    fn clone(&self) -> Snapshot {
        // The original holds the horizon, so what it shows is there.
        let (_, ()) = self.group.snapshots.take(|| (self.position.lsn, ()));
        Snapshot {
            group: self.group.clone(),
            position: self.position,
        }
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.group.snapshots.give_back(self.position.lsn);
    }
}

/// 40001: this node does not lead the group, so it can neither read nor write. Nothing was done;
/// the session goes on where the leader is.
pub fn not_leader() -> Error {
    Error::failover().with_detail(NOT_LEADER)
}

const NOT_LEADER: &str = "This node does not lead its group.";

/// Whether an error says that another node leads, and nothing was done.
pub fn is_not_leader(error: &Error) -> bool {
    error.fields().detail.as_deref() == Some(NOT_LEADER)
}

/// 40001: the transaction began under a leader that has been replaced.
pub fn term_is_over() -> Error {
    Error::failover()
}

impl Group {
    /// The group's id.
    pub fn id(&self) -> GroupId {
        self.config.group
    }

    /// This node.
    pub fn node(&self) -> NodeId {
        self.config.node
    }

    /// Where a write set goes of which more than so many bytes are in memory.
    pub fn scratch(&self) -> (Arc<Scratch>, usize) {
        (self.scratch.clone(), self.config.settings.txn_memory)
    }

    /// Where statements put rows that do not fit in their memory.
    pub fn temp(&self) -> Arc<dyn TempSpace> {
        self.temp.clone()
    }

    /// What it was opened with.
    pub fn config(&self) -> &GroupConfig {
        &self.config
    }

    /// The trees. Another store takes its place when a checkpoint is fetched, so ask anew for
    /// each statement.
    pub fn store(&self) -> Arc<Store> {
        self.store.read().clone()
    }

    /// A frame from another member. A damaged one, or one of another group, is dropped.
    pub fn receive(&self, from: NodeId, frame: &[u8]) {
        let frame = match Frame::decode(frame) {
            Ok((group, frame)) if group == self.config.group => frame,
            _ => return,
        };
        // Who is not known yet may be a member that this replica has not heard of.
        if self.directory.read().was_removed(from) || self.is_over() {
            return;
        }
        match frame {
            Frame::Consensus(messages) => self.step(from, messages, false),
            Frame::Unhurried(messages) => self.step(from, messages, true),
            Frame::Built { tree } => self.note_built(from, tree),
            Frame::Removed {
                incarnation,
                begun_after,
            } => self.note_removed(incarnation, begun_after),
            Frame::AskVisible { asked } => self.answer_visible(from, asked),
            Frame::Visible { asked, visible } => self.take_visible(asked, visible),
            Frame::CheckRange {
                at,
                tree,
                from: key,
            } => self.take_wanted(from, at, tree, key),
            Frame::RangeSum { at, sum } => self.take_sum(from, at, sum),
            Frame::Consistency(told) => self.take_consistency(from, told),
            Frame::Across { from, message } => self.observer.told(from, message),
            other => self.receive_checkpoint_frame(from, other),
        }
    }

    fn step(&self, from: NodeId, messages: Vec<raft::Message>, unhurried: bool) {
        let now = self.env.now();
        let mut core = self.lock();
        if self.must_ask_first(&mut core) {
            return;
        }
        core.heard.insert(from, now);
        if core.failed || core.deaf {
            return;
        }
        match unhurried {
            // The group task has to know until when.
            true => core.after.work |= core.pace.received_unhurried(now),
            false => core.pace.hurry(),
        }
        if messages.is_empty() {
            self.pump(&mut core);
        }
        for message in messages {
            if core.failed {
                // What the one before brought could not be written.
                return;
            }
            let bytes = message.entry_bytes() as u64;
            if bytes > 0 && self.log.is_full(bytes + sequencer::LOG_BYTES_SPARE) {
                // As if it had been lost on the way: it comes again, and there may be space then.
                continue;
            }
            if let Err(error) = core.consensus.step(from, message, now) {
                return self.fail(&mut core, &error);
            }
            self.note_suspect(&mut core);
            self.pump_before_apply(&mut core);
        }
        self.note_lag(&core, from);
        // Whoever syncs on this thread applies too, once that is acknowledged.
        let near = core.after.write == Some(flush::Writer::Near)
            || self.shared.claimed_near.load(Ordering::SeqCst);
        if core.queue.is_empty() || near {
            return;
        }
        // The flush of what was appended begins before it is applied.
        drop(core);
        self.pump(&mut self.lock());
    }

    /// Tells the consensus that the connection to a node broke.
    pub fn disconnected(&self, node: NodeId) {
        let mut core = self.lock();
        if !core.failed && !core.deaf {
            core.consensus.unreachable(node);
            self.pump(&mut core);
        }
    }

    /// The newest visible position, made sure of by the lease (waits, inside a coroutine, until
    /// there is one).
    ///
    /// # Errors
    /// [`not_leader`]; the interrupt that ended the wait.
    pub fn snapshot(self: &Arc<Self>) -> Result<Snapshot> {
        loop {
            let snapshot = self.take_snapshot()?;
            // The lease is checked after the snapshot was taken, with a clock read after it.
            if self.has_lease(snapshot.term()) {
                return Ok(snapshot);
            }
            drop(snapshot);
            self.wait_for_lease()?;
        }
    }

    fn take_snapshot(self: &Arc<Self>) -> Result<Snapshot> {
        let (lsn, term) = self.snapshots.take(|| {
            let position = self.visible();
            (position.lsn, position.term)
        });
        let snapshot = Snapshot {
            group: self.clone(),
            position: Position { term, lsn },
        };
        match term {
            Term(0) => Err(not_leader()),
            _ => Ok(snapshot),
        }
    }

    fn has_lease(&self, term: Term) -> bool {
        let until = Instant(self.shared.lease_until.load(Ordering::SeqCst));
        let now = self.env.now();
        now < until && self.shared.leading.load(Ordering::SeqCst) == term.0
    }

    /// Whether this node would serve reads at this moment.
    pub fn holds_lease(&self) -> bool {
        self.leading().is_some_and(|term| self.has_lease(term))
    }

    fn wait_for_lease(&self) -> Result<()> {
        let term = self.leading().ok_or_else(not_leader)?;
        let patience = self.config.settings.election_timeout * LEASE_WAIT_TIMEOUTS;
        let until = self.lease_changed.until(|| {
            let over = self.leading() != Some(term);
            (over || self.has_lease(term)).then_some(())
        });
        match coro::wait(within(&*self.env, patience, until))? {
            Some(()) if self.leading() == Some(term) => Ok(()),
            _ => Err(not_leader()),
        }
    }

    /// Fails unless this node has led in `term` all the time until now. What was read from the
    /// store before this call is then of that term's history.
    ///
    /// # Errors
    /// [`term_is_over`].
    pub fn check_term(&self, term: Term) -> Result<()> {
        match self.leading() == Some(term) {
            true => Ok(()),
            false => Err(term_is_over()),
        }
    }

    /// The term in which this node leads and may serve.
    pub fn leading(&self) -> Option<Term> {
        match self.shared.leading.load(Ordering::SeqCst) {
            0 => None,
            term => Some(Term(term)),
        }
    }

    /// The newest position that is wholly applied and visible, with the term in which this node
    /// leads (0 if it does not). No lease is asked.
    pub fn visible(&self) -> Position {
        loop {
            let term = self.shared.leading.load(Ordering::SeqCst);
            let lsn = self.shared.visible.load(Ordering::SeqCst);
            if self.shared.leading.load(Ordering::SeqCst) == term {
                return Position {
                    term: Term(term),
                    lsn: Lsn(lsn),
                };
            }
        }
    }

    /// What this replica knows to be committed.
    pub fn committed(&self) -> Lsn {
        self.gate.commit()
    }

    /// Who leads, if known.
    pub fn leader(&self) -> Option<NodeId> {
        match self.shared.leader.load(Ordering::SeqCst) {
            0 => None,
            node => Some(NodeId(node)),
        }
    }

    /// Who leads, and whether this node serves as the leader.
    pub fn leadership(&self) -> Leadership {
        Leadership {
            leader: self.leader(),
            leading: self.leading(),
        }
    }

    /// Ready when leadership is as wanted.
    pub async fn until_leadership(&self, mut is_wanted: impl FnMut(Leadership) -> bool) {
        let wanted = || is_wanted(self.leadership()).then_some(());
        self.leadership_changed.until(wanted).await;
    }

    /// The secondary indexes of a table, as of the newest applied position.
    pub fn indexes(&self, table: TreeId) -> Option<Indexes> {
        self.registry.indexes(table)
    }

    /// The descriptor of an index, as of the newest applied position.
    pub fn index(&self, tree: TreeId) -> Option<IndexDescriptor> {
        self.registry.index(tree)
    }

    /// As [`base::engine::Transactions::catalog_version`].
    pub fn catalog_version(&self) -> CatalogVersion {
        let catalog = self.registry.catalog();
        catalog.version_at(Lsn(self.shared.visible.load(Ordering::SeqCst)))
    }

    /// Who listens to notifications on this node.
    pub fn listeners(&self) -> &Listeners {
        self.registry.listeners()
    }

    /// Bytes of the notifications that are kept.
    pub fn notification_bytes(&self) -> u64 {
        let size = self.store().tree_size(TreeId::NOTIFICATIONS);
        size.map_or(0, |size| size.bytes)
    }

    /// As [`base::engine::Transactions::catalog_changes`].
    pub fn catalog_changes(&self, since: CatalogVersion) -> Option<CatalogChanges> {
        let catalog = self.registry.catalog();
        catalog.changes(since, Lsn(self.shared.visible.load(Ordering::SeqCst)))
    }

    /// Ends the group's tasks, for a shutdown in order: what was appended is flushed first.
    pub async fn close(&self) -> Result<()> {
        self.flush_all().await;
        self.seal_log().await;
        self.shared.closed.store(true, Ordering::SeqCst);
        self.shared.leading.store(0, Ordering::SeqCst);
        self.shared.lease_until.store(0, Ordering::SeqCst);
        self.gate.close();
        let builds = &self.registry.builds().changed;
        let settings = &self.registry.configurations().changed;
        let groups = &self.registry.groups().changed;
        for event in [
            settings,
            groups,
            &self.lease_changed,
            &self.leadership_changed,
            &self.standing_changed,
            &self.log_changed,
            &self.room,
            &self.work,
            &self.log_work,
            &self.near_work,
            &self.comparing.changed,
            builds,
        ] {
            event.notify_all();
        }
        Ok(())
    }

    /// Whether this replica does nothing any more.
    pub fn is_over(&self) -> bool {
        self.shared.closed.load(Ordering::SeqCst) || self.shared.failed.load(Ordering::SeqCst)
    }

    fn is_sole_member(&self) -> bool {
        self.shared.alone.load(Ordering::Relaxed)
    }

    /// What is prepared, or decided across groups, is committed further than before; or whoever waits
    /// for that has something else to do.
    pub(crate) fn standing_changed(&self) -> &Event {
        &self.standing_changed
    }

    /// Hands a frame to the group's replica on another node.
    pub(crate) fn send(&self, to: NodeId, frame: &Frame) {
        self.transport.send(to, frame.encode(self.config.group));
        self.transport.flush();
    }

    /// Its node.
    pub(crate) fn env(&self) -> &Arc<dyn Env> {
        &self.env
    }

    /// Wakes the group task, unless it is awake already.
    fn wake(&self) {
        if !self.shared.woken.swap(true, Ordering::SeqCst) {
            self.work.notify_all();
        }
    }
}

/// The future's result, unless it takes longer than `patience`.
pub(crate) async fn within<T>(
    env: &dyn Env,
    patience: Duration,
    future: impl std::future::Future<Output = T>,
) -> Option<T> {
    let mut future = std::pin::pin!(future);
    let mut sleep = base::env::sleep(env, patience);
    std::future::poll_fn(|cx| {
        if let std::task::Poll::Ready(value) = future.as_mut().poll(cx) {
            return std::task::Poll::Ready(Some(value));
        }
        sleep.as_mut().poll(cx).map(|()| None)
    })
    .await
}
