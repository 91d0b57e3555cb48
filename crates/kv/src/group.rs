//! One group on one node.

use std::sync::Arc;

use base::engine::{CatalogVersion, ClusterStatus, IndexDescriptor};
use base::env::{BoxFuture, Env};
use base::{
    Debt, Durability, Error, ErrorClass, GroupId, Lsn, NodeId, Position, Result, SequenceId,
    SqlState, Term, TreeId, TxnId,
};

use crate::config::{GroupConfig, Observer, Transport};
use crate::record::RowChange;

/// One group on one node.
#[derive(Debug)]
pub struct Group {}

/// A transaction that asks to be committed.
#[derive(Debug)]
pub struct CommitRequest {
    /// The term of its first snapshot or lock.
    pub term: Term,
    /// Its id.
    pub txn: TxnId,
    /// Its changes, one per row, in any order.
    pub changes: Vec<RowChange>,
    /// The level at which its reply will be awaited.
    pub durability: Durability,
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

impl Drop for Snapshot {
    fn drop(&mut self) {
        let _ = &self.group;
    }
}

/// 57P01: this node does not lead the group, so it can neither read nor write. Nothing was done;
/// whoever passes sessions on may try the leader.
pub fn not_leader() -> Error {
    Error::of_class(
        ErrorClass::Session,
        SqlState::ADMIN_SHUTDOWN,
        "this node is not the leader",
    )
}

/// 40001: the transaction began under a leader that has been replaced.
pub fn term_is_over() -> Error {
    Error::serialization("could not serialize access due to a failover")
}

#[allow(unused_variables)]
impl Group {
    /// Opens the group's directory: the last checkpoint, then the log above it. Tasks go on in the
    /// background.
    pub async fn open(
        env: Arc<dyn Env>,
        config: GroupConfig,
        transport: Arc<dyn Transport>,
        observer: Arc<dyn Observer>,
    ) -> Result<Arc<Group>> {
        todo!()
    }

    /// The group's id.
    pub fn id(&self) -> GroupId {
        todo!()
    }

    /// This node.
    pub fn node(&self) -> NodeId {
        todo!()
    }

    /// A frame from another member.
    pub fn receive(&self, from: NodeId, frame: &[u8]) {
        todo!()
    }

    /// The newest visible position, made sure of by the lease (waits, inside a coroutine, until
    /// there is one).
    ///
    /// # Errors
    /// [`not_leader`]; the interrupt that ended the wait.
    pub fn snapshot(self: &Arc<Self>) -> Result<Snapshot> {
        todo!()
    }

    /// Moves a snapshot on to what is visible now, as a new statement at READ COMMITTED does.
    ///
    /// # Errors
    /// As [`Group::snapshot`]; [`term_is_over`].
    pub fn refresh(&self, snapshot: &mut Snapshot) -> Result<()> {
        todo!()
    }

    /// Fails unless this node has led in `term` all the time until now. What was read from the
    /// store before this call is then of that term's history.
    ///
    /// # Errors
    /// [`term_is_over`].
    pub fn check_term(&self, term: Term) -> Result<()> {
        todo!()
    }

    /// The term in which this node leads and may serve.
    pub fn leading(&self) -> Option<Term> {
        todo!()
    }

    /// The newest position that is wholly applied and visible. No lease is asked.
    pub fn visible(&self) -> Position {
        todo!()
    }

    /// Who leads, if known.
    pub fn leader(&self) -> Option<NodeId> {
        todo!()
    }

    /// A new transaction's id.
    ///
    /// # Errors
    /// [`not_leader`].
    pub fn next_txn(&self) -> Result<TxnId> {
        todo!()
    }

    /// Logs, applies and makes visible a transaction whose locks are all held. Waits (inside a
    /// coroutine) only before anything is logged, while too much is uncommitted. On return the
    /// caller releases its locks; the outcome rests on the position.
    ///
    /// # Errors
    /// [`term_is_over`], [`not_leader`], an interrupt. Nothing has been logged then.
    pub fn commit(&self, request: CommitRequest) -> Result<Position> {
        todo!()
    }

    /// As [`base::engine::Engine::advance`].
    ///
    /// # Errors
    /// [`not_leader`], an interrupt.
    pub fn advance(&self, sequence: SequenceId, count: u64) -> Result<(u64, Debt)> {
        todo!()
    }

    /// The secondary indexes of a table, as of the newest applied position.
    pub fn indexes(&self, table: TreeId) -> Arc<[(TreeId, IndexDescriptor)]> {
        todo!()
    }

    /// The descriptor of an index, as of the newest applied position.
    pub fn index(&self, tree: TreeId) -> Option<IndexDescriptor> {
        todo!()
    }

    /// As [`base::engine::Engine::catalog_version`].
    pub fn catalog_version(&self) -> CatalogVersion {
        todo!()
    }

    /// As [`base::engine::Engine::is_settled`], for one position.
    pub fn is_settled(&self, position: Position, durability: Durability) -> bool {
        todo!()
    }

    /// As [`base::engine::Engine::settle`], for one position.
    pub fn settle(
        self: &Arc<Self>,
        position: Position,
        durability: Durability,
    ) -> BoxFuture<'static, Result<()>> {
        todo!()
    }

    /// As [`base::engine::Engine::status`].
    pub fn status(&self) -> ClusterStatus {
        todo!()
    }
}
