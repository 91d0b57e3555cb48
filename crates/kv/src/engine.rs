//! The engine that SQL talks to: transactions, locks and counters of one group.
//!
//! ```text
//! sql ──► KvEngine ──► Txn ──► LockTable
//!            │          │
//!            └──────────┴──► Group ──► log, store, consensus, gate
//! ```
//!
//! Locks live here and not in the group, which tells of each change of leadership: the lock table
//! is opened for a term when this node begins to lead in it, and cleared when that ends.
//!
//! Sessions on a node that has several groups get [`Database`] instead, which has the engines of all.
//!
//! # What it leaves out
//! A debt may name several groups; for one engine any other than its own is XX000.

mod across;
mod branch;
mod database;

use std::sync::atomic::AtomicI64;
use std::sync::{Arc, OnceLock, Weak};

use base::cluster::Administration;
use base::engine::{
    Administrator, CatalogChanges, CatalogVersion, ClusterMonitor, ClusterSettings, ClusterStatus,
    Configuration, Direction, Engine, Flight, Gate, Listener, LockInfo, LockManager, MayResolve,
    Notifications, Outcomes, PreparedTransaction, PreparedTransactions, RowBatch, SequencePosition,
    SequenceSpec, SequenceValues, Sequences, SessionLocks, StorageMonitor, StorageStatus,
    Transaction, Transactions, TreeSize, TxnOptions, XidStatus,
};
use base::env::{BoxFuture, Env};
use base::sync::Mutex;
use base::{
    Debt, Durability, Error, GroupDebt, GroupId, KeyRange, Lsn, Position, Result, SequenceId,
    SessionId, Term, Timestamp, TreeId, TxnId, Xid,
};
use storage::{AsOf, Gap, Read, Scanned, Scratch, Store};

use crate::build::Plan;
use crate::config::{GroupConfig, Leads, Observer, Transport};
use crate::group::outcomes::AskedXid;
use crate::group::{
    not_leader, term_is_over, Also, BuildHandle, CommitRequest, Group, Shown, Snapshot,
    STANDBY_NAMES, TXN_SEQUENCE,
};
use crate::listener::KvListener;
use crate::locks::{AdvisoryLocks, Elsewhere, LockTable, Party, PreparedLocks, TxnLocks};
use crate::notifications::{Listeners, QUEUE_BYTES_MAX};
use crate::prepared::unknown;
use crate::registry::Indexes;
use crate::serial::Serial;
use crate::txn::{Exports, Leader, Resolution, Txn, View};

use across::Across;
pub use across::{begin_statement_across, commit_across, Neighbours};
pub use branch::link::Links;
pub use branch::serve::{serve as serve_branches, Served};
pub use branch::Branch;
pub use database::Database;

/// Transaction ids that are taken from the group at a time.
const TXN_IDS: u64 = 64;

/// Ids for transactions of one term. An id that another term's leader granted may be granted again
/// when that grant is taken back, so it must not outlive the term.
#[derive(Debug, Default)]
struct Ids {
    term: Term,
    next: u64,
    left: u64,
}

impl Ids {
    fn take(&mut self, term: Term) -> Option<TxnId> {
        if self.term != term || self.left == 0 {
            return None;
        }
        self.next += 1;
        self.left -= 1;
        Some(TxnId(self.next - 1))
    }
}

/// The engine over one group.
#[derive(Debug)]
pub struct KvEngine {
    group: Arc<Group>,
    locks: Arc<LockTable>,
    serial: Arc<Serial>,
    exports: Arc<Exports<GroupView>>,
    prepared: Arc<PreparedLocks>,
    across: Arc<Across>,
    ids: Mutex<Ids>,
    /// Up to this timestamp its group's clock was moved by who has heard of others.
    passed: AtomicI64,
}

/// Opens and clears the lock table as leadership comes and goes.
struct Leadership {
    locks: Arc<LockTable>,
    serial: Arc<Serial>,
    prepared: Arc<PreparedLocks>,
    across: Arc<Across>,
    group: GroupId,
    /// Set once it is open.
    engine: Arc<OnceLock<Weak<KvEngine>>>,
    observer: Arc<dyn Observer>,
}

impl Observer for Leadership {
    fn leading(&self, leads: Option<Leads<'_>>) -> Result<()> {
        self.serial.clear();
        match leads {
            Some(leads) => {
                let term = leads.term;
                self.locks.begin_term(term);
                self.prepared
                    .begin_term(term, &self.locks, leads.prepared)?;
                self.across
                    .begin_term(self.group, term, leads.first, leads.commit);
                let engine = self.engine.get().and_then(Weak::upgrade);
                if let Some(engine) = engine.filter(|engine| engine.has_standing()) {
                    engine.begin_tending();
                }
            }
            None => {
                // In this order: who waits for one of those locks gets 40001, not the lock.
                self.locks.clear();
                self.prepared.clear();
                self.across.end_term();
            }
        }
        self.observer.leading(leads)
    }

    fn told(&self, from: GroupId, message: spanning::Message) {
        if let Some(engine) = self.engine.get().and_then(Weak::upgrade) {
            engine.receive_across(from, message);
        }
    }

    fn cut(&self, term: Term, to: Lsn) {
        self.observer.cut(term, to);
    }
}

impl KvEngine {
    /// Opens the group, and its lock table with it.
    ///
    /// # Errors
    /// As [`Group::open`].
    pub async fn open(
        env: Arc<dyn Env>,
        config: GroupConfig,
        transport: Arc<dyn Transport>,
        observer: Arc<dyn Observer>,
    ) -> Result<Arc<KvEngine>> {
        let locks = Arc::new(LockTable::new(env.clone()));
        let serial = Serial::new();
        let prepared = Arc::new(PreparedLocks::default());
        let across = Arc::new(Across::default());
        let known: Arc<OnceLock<Weak<KvEngine>>> = Arc::default();
        let leadership = Arc::new(Leadership {
            locks: locks.clone(),
            serial: serial.clone(),
            prepared: prepared.clone(),
            across: across.clone(),
            group: config.group,
            engine: known.clone(),
            observer,
        });
        let group = Group::open(env, config, transport, leadership).await?;
        let engine = Arc::new(KvEngine {
            group,
            locks,
            serial,
            exports: Arc::default(),
            prepared,
            across,
            ids: Mutex::default(),
            passed: AtomicI64::new(i64::MIN),
        });
        let _ = known.set(Arc::downgrade(&engine));
        // What stood in the log when it was opened, whoever leads.
        if engine.has_standing() {
            engine.begin_tending();
        }
        Ok(engine)
    }

    /// Tells it of the groups that its node has besides.
    pub fn set_neighbours(&self, neighbours: Weak<dyn Neighbours>) {
        self.across.set_neighbours(neighbours);
    }

    /// These are the engines of all groups of the node, this one included: sessions wait for one another
    /// in several of them, and `elsewhere` knows for whom at other nodes.
    pub fn set_beside(&self, all: &[Arc<KvEngine>], elsewhere: Weak<dyn Elsewhere>) {
        let tables: Vec<_> = all.iter().map(|engine| engine.locks.clone()).collect();
        self.locks.set_beside(&tables, elsewhere);
    }

    /// The engine of sessions on the leader, all of which is this one.
    pub fn to_engine(self: &Arc<KvEngine>) -> Engine {
        Engine {
            transactions: self.clone(),
            gate: self.clone(),
            sequences: self.clone(),
            settings: self.clone(),
            cluster: self.clone(),
            storage: self.clone(),
            locks: Some(self.clone()),
            outcomes: Some(self.clone()),
            notifications: Some(self.clone()),
            prepared: Some(self.clone()),
            administrator: Some(self.clone()),
            temp: Some(self.group.temp()),
        }
    }

    /// The group.
    pub fn group(&self) -> &Arc<Group> {
        &self.group
    }

    /// The locks of the group, if this node leads it.
    pub fn locks(&self) -> &LockTable {
        &self.locks
    }

    fn next_id(&self, term: Term) -> Result<TxnId> {
        if let Some(id) = self.ids.lock().take(term) {
            return Ok(id);
        }
        // This may wait, so no latch is held; of two who do it at once, one's numbers are lost.
        let (next, position) = self.group.take_numbers(TXN_SEQUENCE, TXN_IDS)?;
        if position.term != term {
            return Err(term_is_over());
        }
        let mut ids = self.ids.lock();
        *ids = Ids {
            term,
            next,
            left: TXN_IDS,
        };
        let id = ids.take(term);
        let id = id.ok_or_else(|| Error::internal("numbers were granted, and there are none"))?;
        Ok(id)
    }

    fn of_this_group(&self, part: GroupDebt) -> Result<Position> {
        if part.group == self.group.id() {
            return Ok(part.position);
        }
        let message = format!("a debt in group {}, which is not here", part.group);
        Err(Error::internal(message))
    }
}

impl KvEngine {
    /// As [`Transactions::begin`].
    ///
    /// # Errors
    /// As there.
    pub fn begin_branch(&self, options: TxnOptions) -> Result<Txn<Arc<Group>>> {
        let open = self.group.open_transaction()?;
        let term = self.group.leading().ok_or_else(not_leader)?;
        let id = self.next_id(term)?;
        let party = options
            .session
            .map_or(Party::Transaction(id), Party::Session);
        let mut locks = TxnLocks::new(self.locks.clone(), party);
        locks.bind(term)?;
        let mut txn = Txn::new(self.group.clone(), id, locks, &self.serial, options);
        txn.set_open(open);
        txn.set_exports(self.exports.clone());
        txn.set_prepared(self.prepared.clone());
        Ok(txn)
    }
}

impl Transactions for KvEngine {
    fn begin(&self, options: TxnOptions) -> Result<Box<dyn Transaction>> {
        Ok(Box::new(self.begin_branch(options)?))
    }

    fn catalog_version(&self) -> CatalogVersion {
        self.group.catalog_version()
    }

    fn catalog_changes(&self, since: CatalogVersion) -> Option<CatalogChanges> {
        self.group.catalog_changes(since)
    }
}

impl Gate for KvEngine {
    fn is_settled(&self, debt: &Debt, durability: Durability) -> bool {
        debt.groups().all(|part| {
            let position = self.of_this_group(part);
            position.is_ok_and(|position| self.group.is_settled(position, durability))
        })
    }

    fn settle(&self, debt: Debt, durability: Durability) -> BoxFuture<'static, Result<()>> {
        let positions: Result<Vec<_>> =
            debt.groups().map(|part| self.of_this_group(part)).collect();
        match positions.as_deref() {
            Ok([]) => Box::pin(std::future::ready(Ok(()))),
            Ok([position]) => self.group.settle(*position, durability),
            // Of several terms: what a plan rests on may be older than what a statement did.
            Ok(positions) => {
                let settle = |position: &Position| self.group.settle(*position, durability);
                let parts: Vec<_> = positions.iter().map(settle).collect();
                Box::pin(async move {
                    for part in parts {
                        part.await?;
                    }
                    Ok(())
                })
            }
            Err(error) => Box::pin(std::future::ready(Err(error.clone()))),
        }
    }
}

impl Sequences for KvEngine {
    fn advance(&self, sequence: SequenceId, count: u64) -> Result<(u64, Debt)> {
        self.group.advance(sequence, count)
    }

    fn next_values(
        &self,
        sequence: SequenceId,
        spec: &SequenceSpec,
        count: u64,
    ) -> Result<(SequenceValues, Debt)> {
        self.group.next_values(sequence, spec, count)
    }

    fn set_sequence(&self, sequence: SequenceId, to: SequencePosition) -> Result<Debt> {
        self.group.set_sequence(sequence, to)
    }

    fn sequence_position(
        &self,
        sequence: SequenceId,
        spec: &SequenceSpec,
    ) -> Result<(SequencePosition, u64, Debt)> {
        self.group.sequence_position(sequence, spec)
    }
}

impl ClusterSettings for KvEngine {
    fn configuration(&self) -> Arc<Configuration> {
        self.group.configuration()
    }

    fn generation(&self) -> u64 {
        self.group.configurations().version()
    }

    fn check(&self, name: &str, value: &str) -> Result<()> {
        match name {
            STANDBY_NAMES => raft::StandbyNames::parse(value).map(|_| ()),
            _ => Ok(()),
        }
    }

    fn configured(&self, debt: Debt) -> BoxFuture<'static, Result<()>> {
        let of_this = |part: &GroupDebt| part.group == self.group.id();
        match debt.groups().filter(of_this).last() {
            Some(part) => self.group.configured(part.position),
            None => Box::pin(std::future::ready(Ok(()))),
        }
    }
}

impl ClusterMonitor for KvEngine {
    fn status(&self) -> ClusterStatus {
        self.group.status()
    }

    /// A session of this engine ends when its node no longer leads.
    fn is_standby(&self) -> bool {
        false
    }

    fn replayed_until(&self) -> Option<Timestamp> {
        None
    }
}

impl StorageMonitor for KvEngine {
    fn tree_size(&self, tree: TreeId) -> Option<TreeSize> {
        self.group.store().tree_size(tree)
    }

    fn storage(&self) -> Vec<StorageStatus> {
        vec![self.group.storage_status()]
    }
}

impl LockManager for KvEngine {
    fn session_locks(&self, session: SessionId) -> Result<Box<dyn SessionLocks>> {
        Ok(Box::new(AdvisoryLocks::new(self.locks.clone(), session)))
    }

    fn blockers(&self, session: SessionId) -> Vec<SessionId> {
        self.locks.blockers(session)
    }

    fn snapshot_blockers(&self, session: SessionId) -> Vec<SessionId> {
        self.serial.snapshot_blockers(session)
    }

    fn lock_infos(&self) -> Result<Vec<LockInfo>> {
        Ok(self.locks.infos())
    }
}

impl Outcomes for KvEngine {
    fn committed_xid(&self, commit: &Debt) -> Option<Xid> {
        let of_this = |part: &GroupDebt| part.group == self.group.id();
        let newest = commit.groups().filter(of_this);
        let newest = newest.max_by_key(|part| part.position)?;
        self.group.xid_at(newest.position)
    }

    fn row_place(&self, tree: TreeId, key: &[u8]) -> Result<Option<Lsn>> {
        let store = self.group.store();
        let read = store.get(tree, key, Lsn::MAX, &mut Vec::new())?;
        Ok(read.exists.then_some(read.version))
    }

    fn xid_status(&self, xid: Xid) -> Result<Option<XidStatus>> {
        self.group.xid_status(xid)
    }

    fn flight_outcome(&self, flight: Flight, since: Lsn) -> Result<Option<Xid>> {
        self.group.flight_outcome(flight, since)
    }
}

impl Notifications for KvEngine {
    fn listener(&self, database: u32) -> Box<dyn Listener> {
        Box::new(KvListener::new(self.group.clone(), database))
    }

    fn usage(&self) -> f64 {
        match self.group.listeners().is_unheard() {
            true => self.group.notification_bytes() as f64 / QUEUE_BYTES_MAX as f64,
            false => 0.0,
        }
    }
}

impl PreparedTransactions for KvEngine {
    fn prepared(&self) -> Result<(Vec<PreparedTransaction>, Debt)> {
        let prepared = self.group.prepared();
        let mut debt = Debt::NONE;
        let shown = match self.group.leading() {
            None => prepared.in_force(),
            Some(term) => {
                self.group.snapshot()?;
                let newest = prepared.newest();
                let lsn = self.group.visible();
                self.group.check_term(term)?;
                debt.add(self.group.id(), Position { term, lsn });
                newest
            }
        };
        let all = shown.iter().filter(|header| header.part.is_none());
        let all = all.map(|header| header.prepared.clone());
        Ok((all.collect(), debt))
    }

    fn resolve(
        &self,
        name: &str,
        commit: bool,
        options: TxnOptions,
        durability: Durability,
        may_resolve: MayResolve<'_>,
    ) -> Result<Debt> {
        let open = self.group.open_transaction()?;
        let term = self.group.leading().ok_or_else(not_leader)?;
        let mut resolving = self.prepared.begin(name, &self.locks)?;
        // Nobody else can end it now.
        let newest = self.group.prepared().newest();
        let header = newest.get(name).ok_or_else(|| unknown(name))?;
        may_resolve(&header.prepared)?;
        let id = self.next_id(term)?;
        let locks = resolving.locks();
        let mut txn = Txn::new(self.group.clone(), id, locks, &self.serial, options);
        txn.set_open(open);
        let how = match commit {
            true => Resolution::Committed,
            false => Resolution::RolledBack,
        };
        let debt = txn.resolve(header, how, durability)?;
        resolving.done(commit);
        Ok(debt)
    }
}

impl Administrator for KvEngine {
    fn administer(&self, wish: Administration) -> BoxFuture<'static, Result<u64>> {
        let group = self.group.clone();
        Box::pin(async move {
            match wish {
                // The statement that asks is open itself.
                Administration::Switchover(name) => group.begin_switchover(name.as_deref()),
                wish => group.administer(wish).await,
            }
        })
    }

    fn checkpoint(&self) -> BoxFuture<'static, Result<()>> {
        let group = self.group.clone();
        Box::pin(async move { group.checkpoint_of_now().await })
    }
}

/// A snapshot of a group, and the store that it is of: the group may get another one when it no
/// longer leads.
#[derive(Clone, Debug)]
pub struct GroupView {
    snapshot: Snapshot,
    also: Option<Arc<Also>>,
    store: Arc<Store>,
}

impl GroupView {
    /// What is shown of a group that this node has led since.
    fn of(group: &Arc<Group>, (snapshot, also): Shown) -> GroupView {
        let store = group.store();
        GroupView {
            snapshot,
            also,
            store,
        }
    }

    /// Whether it shows just what another does.
    fn is_same(&self, other: &GroupView) -> bool {
        self.position() == other.position() && self.also() == other.also()
    }

    /// What is seen at this position, or at a newer one.
    fn as_of(&self, at: Lsn) -> AsOf<'_> {
        match &self.also {
            Some(also) if at == self.snapshot.position().lsn => AsOf {
                lsn: at,
                also: &also.lsns,
            },
            _ => at.into(),
        }
    }
}

impl View for GroupView {
    fn position(&self) -> Position {
        self.snapshot.position()
    }

    fn shows(&self, lsn: Lsn) -> bool {
        self.as_of(self.position().lsn).shows(lsn)
    }

    fn also(&self) -> &[Lsn] {
        self.also.as_ref().map_or(&[], |also| &also.lsns)
    }

    fn newest(&self) -> Lsn {
        let also = self.also().iter().copied();
        also.fold(self.position().lsn, Lsn::max)
    }

    fn get(&self, tree: TreeId, key: &[u8], at: Lsn, row: &mut Vec<u8>) -> Result<Read> {
        self.store.get(tree, key, self.as_of(at), row)
    }

    fn gap(&self, tree: TreeId, key: &[u8]) -> Result<Option<Gap>> {
        self.store.gap(tree, key)
    }

    fn scan(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        at: Lsn,
        limit: usize,
        batch: &mut RowBatch,
    ) -> Result<Scanned> {
        let at = self.as_of(at);
        self.store.scan(tree, range, direction, at, limit, batch)
    }
}

impl Leader for Arc<Group> {
    type Snapshot = GroupView;

    fn group(&self) -> GroupId {
        self.id()
    }

    fn scratch(&self) -> Option<(Arc<Scratch>, usize)> {
        Some(Group::scratch(self))
    }

    fn snapshot(&self) -> Result<GroupView> {
        // In this order: while this node leads, its store is not replaced.
        Ok(GroupView::of(self, self.shown()?))
    }

    fn snapshot_beside(&self) -> Result<GroupView> {
        let snapshot = Group::snapshot(self)?;
        Ok(GroupView::of(self, (snapshot, None)))
    }

    fn refresh(&self, view: &mut GroupView) -> Result<()> {
        let term = view.snapshot.term();
        Group::check_term(self, term)?;
        let (snapshot, also) = self.shown()?;
        if snapshot.term() != term {
            return Err(term_is_over());
        }
        view.snapshot = snapshot;
        view.also = also;
        Ok(())
    }

    fn check_term(&self, term: Term) -> Result<()> {
        Group::check_term(self, term)
    }

    fn visible(&self) -> Lsn {
        Group::visible(self).lsn
    }

    fn indexes(&self, table: TreeId) -> Option<Indexes> {
        Group::indexes(self, table)
    }

    fn rows_built_in_line(&self) -> usize {
        self.config().settings.rows_built_in_line
    }

    fn begin_build(&self, term: Term, txn: TxnId, plan: &Plan) -> Result<BuildHandle> {
        Group::begin_build(self, term, txn, plan)
    }

    fn ask_xid(&self, term: Term) -> Result<AskedXid> {
        Group::ask_xid(self, term)
    }

    fn now_micros(&self) -> i64 {
        self.wall_micros()
    }

    fn numbers(&self, sequence: SequenceId, count: u64) -> Result<(u64, GroupDebt)> {
        let (first, position) = Group::take_numbers(self, sequence, count)?;
        let group = self.id();
        Ok((first, GroupDebt { group, position }))
    }

    fn notifications(&self) -> Result<(&Listeners, u64)> {
        Ok((self.listeners(), self.notification_bytes()))
    }

    fn commit(&self, request: CommitRequest) -> Result<Position> {
        Group::commit(self, request)
    }
}

#[cfg(test)]
mod tests;
