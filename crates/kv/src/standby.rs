//! The engine of sessions that read on a standby.
//!
//! ```text
//! psql ──► n3, which follows ──► StandbyEngine ──► Group: what it has applied
//!                                      │              └─► gate: is that committed?
//!                                      └─► KvEngine, once n3 leads
//! ```
//!
//! Its transactions read and do not write. What they show is settled when the standby's commit
//! index covers it, at whatever level: so nobody sees what a failover could take back, and, since
//! what was shown is committed and a replica keeps what is committed, no session sees the past
//! after the present.
//!
//! # Changes of the schema
//! Nobody locks anything on a standby: a record that drops a table is applied while statements
//! read it, and they go on reading it as it was. What must agree is the plan and the snapshot. So
//! the snapshot is taken where a transaction of a leader takes its locks, and SQL looks whether
//! the plan still holds after that.
//!
//! # What it leaves out
//! SERIALIZABLE, which PostgreSQL refuses on a standby too; advisory locks.

use std::sync::Arc;
use std::time::Duration;

use base::cluster::Administration;
use base::engine::{
    Administrator, AdvisoryLocking, Announced, Build, Building, Built, CatalogChanges,
    CatalogVersion, ClusterMonitor, ClusterStatus, Direction, Engine, Gate, Inserted, Isolation,
    LockInfo, LockManager, LockWait, LockedRow, Locking, Reading, RowBatch, RowLock, Savepoint,
    Savepoints, SessionLocks, SnapshotSharing, TableLock, Ticket, Transaction, Transactions,
    TxnOptions, TxnOutcome, ViewId, Views, Writing,
};
use base::env::{BoxFuture, Env};
use base::{
    Debt, Durability, Error, GroupDebt, GroupId, Key, KeyRange, Lsn, Position, Result, SequenceId,
    SessionId, SqlState, Term, Timestamp, TreeId, TxnId,
};
use raft::planted::{is_planted, Bug};

use crate::build::Plan;
use crate::group::outcomes::AskedXid;
use crate::group::{BuildHandle, CommitRequest, Group, StandbyView};
use crate::locks::{LockTable, Party, TxnLocks};
use crate::notifications::Listeners;
use crate::registry::Indexes;
use crate::serial::Serial;
use crate::txn::{Exports, Leader, Txn};

/// The engine of sessions that read on a standby.
pub struct StandbyEngine {
    /// What sessions get where this node leads.
    leader: Engine,
    group: Arc<Group>,
    /// Nobody takes a lock of these.
    locks: Arc<LockTable>,
    serial: Arc<Serial>,
    exports: Arc<Exports<StandbyView>>,
}

impl StandbyEngine {
    /// Reads on the node of this replica of the first group, where the other engine is that of sessions
    /// on the leader.
    pub fn new(env: Arc<dyn Env>, group: Arc<Group>, leader: Engine) -> StandbyEngine {
        StandbyEngine {
            leader,
            group,
            locks: Arc::new(LockTable::new(env)),
            serial: Serial::new(),
            exports: Arc::default(),
        }
    }

    /// The engine of sessions that read here: what differs on a standby is this one, and the rest
    /// the leader's.
    pub fn to_engine(self: &Arc<StandbyEngine>) -> Engine {
        Engine {
            transactions: self.clone(),
            gate: self.clone(),
            cluster: self.clone(),
            locks: Some(self.clone()),
            administrator: Some(self.clone()),
            ..self.leader.clone()
        }
    }

    fn group(&self) -> &Arc<Group> {
        &self.group
    }

    fn level(&self, durability: Durability) -> Durability {
        match self.is_standby() {
            true => durability.max(Durability::On),
            false => durability,
        }
    }
}

/// 25006, as PostgreSQL answers to whoever would write.
fn reads_only(what: &str) -> Error {
    let message = format!("cannot execute {what} during recovery");
    Error::new(SqlState::READ_ONLY_SQL_TRANSACTION, message)
}

impl Transactions for StandbyEngine {
    fn begin(&self, options: TxnOptions) -> Result<Box<dyn Transaction>> {
        if !self.is_standby() {
            return self.leader.transactions.begin(options);
        }
        if options.isolation == Isolation::Serializable {
            return Err(Error::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot use serializable mode in a hot standby",
            )
            .with_hint("You can use REPEATABLE READ instead."));
        }
        let standby = Standby {
            group: self.group().clone(),
            most: options.standby_age_max,
        };
        let id = TxnId(0);
        let locks = TxnLocks::new(self.locks.clone(), Party::Transaction(id));
        let mut inner = Txn::new(standby, id, locks, &self.serial, options);
        inner.set_exports(self.exports.clone());
        Ok(Box::new(StandbyTxn {
            inner,
            has_fresh: false,
        }))
    }

    fn catalog_version(&self) -> CatalogVersion {
        self.leader.transactions.catalog_version()
    }

    fn catalog_changes(&self, since: CatalogVersion) -> Option<CatalogChanges> {
        self.leader.transactions.catalog_changes(since)
    }
}

impl Gate for StandbyEngine {
    fn is_settled(&self, debt: &Debt, durability: Durability) -> bool {
        if is_planted(Bug::StandbyAhead) {
            return true;
        }
        self.leader.gate.is_settled(debt, self.level(durability))
    }

    fn settle(&self, debt: Debt, durability: Durability) -> BoxFuture<'static, Result<()>> {
        self.leader.gate.settle(debt, self.level(durability))
    }
}

impl ClusterMonitor for StandbyEngine {
    fn status(&self) -> ClusterStatus {
        self.leader.cluster.status()
    }

    fn is_standby(&self) -> bool {
        self.group().leading().is_none()
    }

    fn replayed_until(&self) -> Option<Timestamp> {
        Some(self.group().replayed_until())
    }
}

impl LockManager for StandbyEngine {
    fn session_locks(&self, session: SessionId) -> Result<Box<dyn SessionLocks>> {
        match self.is_standby() {
            true => Err(Error::unsupported("advisory locks on a standby")),
            false => self.leader.locks()?.session_locks(session),
        }
    }

    fn blockers(&self, session: SessionId) -> Vec<SessionId> {
        self.leader
            .locks()
            .map_or_else(|_| Vec::new(), |locks| locks.blockers(session))
    }

    fn snapshot_blockers(&self, session: SessionId) -> Vec<SessionId> {
        self.leader
            .locks()
            .map_or_else(|_| Vec::new(), |locks| locks.snapshot_blockers(session))
    }

    fn blockers_everywhere(&self, session: SessionId) -> Result<Vec<SessionId>> {
        match self.leader.locks() {
            Ok(locks) => locks.blockers_everywhere(session),
            Err(_) => Ok(Vec::new()),
        }
    }

    fn lock_infos(&self) -> Result<Vec<LockInfo>> {
        match self.leader.locks() {
            Ok(locks) => locks.lock_infos(),
            Err(_) => Ok(Vec::new()),
        }
    }
}

impl Administrator for StandbyEngine {
    fn administer(&self, wish: Administration) -> BoxFuture<'static, Result<u64>> {
        if wish.is_local() || !self.is_standby() {
            return match self.leader.administrator() {
                Ok(administrator) => administrator.administer(wish),
                Err(error) => Box::pin(std::future::ready(Err(error))),
            };
        }
        let message = "recovery is in progress";
        let hint = "Members are changed in sessions that do not read on a standby.";
        let state = SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE;
        let error = Error::new(state, message).with_hint(hint);
        Box::pin(std::future::ready(Err(error)))
    }

    fn checkpoint(&self) -> BoxFuture<'static, Result<()>> {
        match self.leader.administrator() {
            Ok(administrator) => administrator.checkpoint(),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}

/// A replica as a transaction's source of snapshots.
#[derive(Debug)]
struct Standby {
    group: Arc<Group>,
    /// How old they may be.
    most: Option<Duration>,
}

impl Leader for Standby {
    type Snapshot = StandbyView;

    const LOCKS: bool = false;

    fn group(&self) -> GroupId {
        self.group.id()
    }

    fn snapshot(&self) -> Result<StandbyView> {
        self.group.standby_view(self.most)
    }

    fn refresh(&self, snapshot: &mut StandbyView) -> Result<()> {
        *snapshot = self.snapshot()?;
        Ok(())
    }

    /// A view looks by itself whether it is of the past.
    fn check_term(&self, _term: Term) -> Result<()> {
        Ok(())
    }

    fn lies_elsewhere(&self, group: GroupId) -> Error {
        let what = format!("reading on a standby what lies in group {group}");
        Error::unsupported(&what)
    }

    fn visible(&self) -> Lsn {
        Group::visible(&self.group).lsn
    }

    fn indexes(&self, table: TreeId) -> Option<Indexes> {
        self.group.indexes(table)
    }

    fn rows_built_in_line(&self) -> usize {
        0
    }

    fn begin_build(&self, _: Term, _: TxnId, _: &Plan) -> Result<BuildHandle> {
        Err(reads_only("this statement"))
    }

    fn numbers(&self, _: SequenceId, _: u64) -> Result<(u64, GroupDebt)> {
        Err(reads_only("this statement"))
    }

    fn ask_xid(&self, _: Term) -> Result<AskedXid> {
        Err(reads_only("pg_current_xact_id()"))
    }

    fn now_micros(&self) -> i64 {
        self.group.wall_micros()
    }

    fn notifications(&self) -> Result<(&Listeners, u64)> {
        Err(reads_only("NOTIFY"))
    }

    fn commit(&self, _: CommitRequest) -> Result<Position> {
        Err(reads_only("this statement"))
    }
}

/// A transaction on a standby: reads go to the one inside, and nothing else does.
struct StandbyTxn {
    inner: Txn<Standby>,
    /// The snapshot of the statement that is about to begin is taken.
    has_fresh: bool,
}

impl Transaction for StandbyTxn {
    fn id(&self) -> TxnId {
        self.inner.id()
    }

    fn isolation(&self) -> Isolation {
        self.inner.isolation()
    }

    fn set_options(&mut self, options: TxnOptions) {
        self.inner.set_options(options);
    }

    fn begin_statement(&mut self) -> Result<()> {
        match std::mem::take(&mut self.has_fresh) {
            true => Ok(()),
            false => self.inner.begin_statement(),
        }
    }

    fn next_command(&mut self) {
        self.inner.next_command();
    }

    fn owe(&mut self, debt: &Debt) {
        Transaction::owe(&mut self.inner, debt);
    }

    fn debt(&self) -> &Debt {
        self.inner.debt()
    }

    fn advisory(&mut self) -> Result<&mut dyn AdvisoryLocking> {
        Err(Error::unsupported("advisory locks on a standby"))
    }

    fn outcome(&mut self) -> Result<&mut dyn TxnOutcome> {
        self.inner.outcome()
    }

    fn snapshots(&mut self) -> Result<&mut dyn SnapshotSharing> {
        self.inner.snapshots()
    }

    /// How old a snapshot may be is for each transaction to say, so none is used again.
    fn end_reading(&mut self) -> bool {
        false
    }

    fn begin_again(&mut self, _: TxnOptions) -> bool {
        false
    }

    fn commit(self: Box<Self>, durability: Durability) -> Result<Debt> {
        Box::new(self.inner).commit(durability)
    }
}

impl Reading for StandbyTxn {
    fn get(&mut self, tree: TreeId, key: &[u8], row: &mut Vec<u8>) -> Result<bool> {
        self.inner.get(tree, key, row)
    }

    fn scan(
        &mut self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
        batch: &mut RowBatch,
    ) -> Result<Option<KeyRange>> {
        self.inner.scan(tree, range, direction, limit, batch)
    }

    fn scan_newest_in(
        &mut self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
        batch: &mut RowBatch,
    ) -> Result<Option<KeyRange>> {
        self.inner.scan(tree, range, direction, limit, batch)
    }
}

impl Locking for StandbyTxn {
    /// Nobody waits for a lock here.
    fn set_lock_timeout(&mut self, _timeout: Duration) {}

    fn lock_row(
        &mut self,
        _: TreeId,
        _: &[u8],
        _: RowLock,
        _: LockWait,
        _: &mut Vec<u8>,
    ) -> Result<LockedRow> {
        Err(reads_only("SELECT FOR UPDATE"))
    }

    fn lock_key(&mut self, _: TreeId, _: &[u8], _: RowLock, _: LockWait) -> Result<bool> {
        Err(reads_only("INSERT"))
    }

    fn wait_for_key(&mut self, _: TreeId, _: &[u8], _: RowLock) -> Result<()> {
        Err(reads_only("INSERT"))
    }

    fn announce(&mut self, _: TreeId, _: &[u8], _: &[u8]) -> Result<Ticket> {
        Err(reads_only("INSERT"))
    }

    fn announced(&mut self, _: TreeId, _: &[u8], _: Ticket) -> Result<Vec<Announced>> {
        Err(reads_only("INSERT"))
    }

    fn wait_for_announced(&mut self, _: &Announced) -> Result<()> {
        Err(reads_only("INSERT"))
    }

    fn withdraw(&mut self, _: Ticket) {}

    fn lock_table(&mut self, tree: TreeId, mode: TableLock, _: LockWait) -> Result<bool> {
        if mode > TableLock::RowExclusive {
            return Err(reads_only("LOCK TABLE"));
        }
        self.inner.check_lies_here(tree)?;
        self.inner.begin_statement()?;
        self.has_fresh = true;
        Ok(true)
    }
}

impl Writing for StandbyTxn {
    fn insert(&mut self, _: TreeId, _: &[u8], _: &[u8]) -> Result<Inserted> {
        Err(reads_only("INSERT"))
    }

    fn update(&mut self, _: TreeId, _: &[u8], _: &[u8]) -> Result<Inserted> {
        Err(reads_only("UPDATE"))
    }

    fn delete(&mut self, _: TreeId, _: &[u8]) -> Result<()> {
        Err(reads_only("DELETE"))
    }

    fn note_moved(&mut self, _: TreeId, _: &[u8]) {}

    fn was_moved(&self, _: TreeId, _: &[u8]) -> Result<bool> {
        Ok(false)
    }

    fn is_written_by_command(&self, _: TreeId, _: &[u8]) -> bool {
        false
    }

    fn catalog_writes(&self) -> &[(TreeId, Key)] {
        &[]
    }
}

impl Building for StandbyTxn {
    fn build(&mut self, _: &Build) -> Result<Built> {
        Err(reads_only("CREATE INDEX"))
    }
}

impl Savepoints for StandbyTxn {
    fn savepoint(&mut self) -> Savepoint {
        self.inner.savepoint()
    }

    fn rollback_to(&mut self, savepoint: Savepoint) {
        self.inner.rollback_to(savepoint);
    }

    fn release(&mut self, savepoint: Savepoint) {
        self.inner.release(savepoint);
    }
}

impl Views for StandbyTxn {
    fn keep_view(&mut self) -> Result<ViewId> {
        self.inner.keep_view()
    }

    fn swap_view(&mut self, view: ViewId) -> Result<()> {
        self.inner.swap_view(view)
    }

    fn drop_view(&mut self, view: ViewId) {
        self.inner.drop_view(view);
    }
}
