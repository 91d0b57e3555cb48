//! The seam between SQL and the transaction engine.
//!
//! SQL turns statements into reads and writes of *trees*: ordered maps from encoded keys
//! ([`crate::key`]) to encoded rows ([`crate::row`]). The engine gives it transactions over them
//! and knows nothing of types or names.
//!
//! ```
//! # use base::engine::*; use base::*;
//! # fn example(engine: &Engine, tree: TreeId) -> Result<()> {
//! let mut txn = engine.transactions.begin(TxnOptions::default())?;
//! txn.begin_statement()?;
//! let mut row = Vec::new();
//! if !txn.get(tree, b"k", &mut row)? {
//!     txn.insert(tree, b"k", b"...")?;
//! }
//! let debt = txn.commit(Durability::On)?;
//! // The reply leaves once `engine.gate.settle(debt, Durability::On)` is ready.
//! # Ok(()) }
//! ```
//!
//! # Interfaces
//! What may be asked of an engine is divided into interfaces, small traits with a module each. An
//! [`Engine`] says who answers to each of them. Whoever needs one takes just that one, and whoever
//! stands around another engine answers to those that it changes, and leaves the rest as they are:
//!
//! | interface | what it does | who asks |
//! |---|---|---|
//! | [`Transactions`] | begins transactions, says how far the catalog has come | sessions |
//! | [`Gate`] | says when a reply may leave | whoever holds replies |
//! | [`Sequences`] | gives numbers that are never taken back | `nextval`, OIDs, hidden row numbers |
//! | [`ClusterSettings`] | knows the settings in force | sessions, ALTER SYSTEM |
//! | [`ClusterMonitor`] | sees the cluster from this node | views, status pages |
//! | [`StorageMonitor`] | says how large things are | `pg_relation_size`, `quorate.storage` |
//! | [`LockManager`] | locks of sessions; who waits for whom | advisory locks, `pg_locks` |
//! | [`Outcomes`] | knows what became of transactions | sessions after a failover, `txid_status` |
//! | [`Notifications`] | knows who listens, and tells them what was committed | LISTEN |
//! | [`PreparedTransactions`] | knows and resolves prepared transactions | COMMIT PREPARED, `pg_prepared_xacts` |
//! | [`Administrator`] | does what an operator asks for | schema `quorate`, CHECKPOINT |
//! | [`TempSpace`] | scratch space | statements whose rows do not fit in memory |
//!
//! An engine may do without the last six; what needs the first five of them is then 0A000, and
//! without scratch space a statement fails when its memory is used up. A [`Transaction`] is
//! divided in the same manner: what each of them can do are its supertraits, and the last four,
//! which some do without, are asked for:
//!
//! | interface | what is done |
//! |---|---|
//! | [`Reading`] | rows, as the statement sees them |
//! | [`Locking`] | locks on rows and tables |
//! | [`Writing`] | rows, into the write set |
//! | [`Building`] | trees made of a table's rows |
//! | [`Savepoints`] | going back |
//! | [`Views`] | what cursors read |
//! | [`AdvisoryLocking`] | advisory locks, until its end |
//! | [`TxnOutcome`] | its id, and what its commit is noted under |
//! | [`SnapshotSharing`] | exported snapshots |
//! | [`Notifying`] | what its commit tells others |
//!
//! # Waiting
//! Every method may wait (for a lock, a lease, a page) and therefore runs inside a coroutine
//! ([`crate::coro`]); an interrupt surfaces as an error.
//!
//! # Debt
//! Whatever a transaction shows its caller, a row, an absence, an error caused by data, adds to
//! [`Transaction::debt`]. Replies made of it must not leave before [`Gate::settle`] is ready.
//!
//! # Bootstrapping
//! The trees below [`TreeId::FIRST_USER`] exist from the start, each without secondary indexes.
//! [`TreeId::DESCRIPTORS`] holds a [`TreeDescriptor`] for every further tree: inserting such a row
//! makes the tree, deleting it drops the tree, both as transactional as any other write.
//!
//! # What it leaves out
//! Types, names, and everything else that SQL knows of a row. Applying a record runs no SQL.
//!
//! [`TreeId::FIRST_USER`]: crate::TreeId::FIRST_USER
//! [`TreeId::DESCRIPTORS`]: crate::TreeId::DESCRIPTORS

mod administration;
mod batch;
mod build;
mod configuration;
mod gate;
mod locking;
mod notifications;
mod outcomes;
mod prepared;
mod reading;
mod savepoints;
mod sequences;
mod session_locks;
mod snapshots;
mod status;
mod storage;
mod temp;
mod transaction;
mod trees;
mod writing;

use std::sync::Arc;

pub use administration::Administrator;
pub use batch::RowBatch;
pub use build::{Build, Building, Built, Rekeyed, RowKey};
pub use configuration::{
    configuration_key, configuration_row, read_configuration, ClusterSettings, Configuration, Stage,
};
pub use gate::Gate;
pub use locking::{Announced, LockWait, LockedRow, Locking, RowLock, TableLock, Ticket};
pub use notifications::{Channel, Heard, Listener, Notification, Notifications, Notifying};
pub use outcomes::{
    Flight, Outcomes, TxnOutcome, XidKind, XidStatus, FIRST_XID, PLACES_AHEAD_MAX,
    PLACES_BETWEEN_TERMS,
};
pub use prepared::{MayResolve, Preparation, PreparedTransaction, PreparedTransactions};
pub use reading::{Direction, Reading};
pub use savepoints::{Savepoint, Savepoints, ViewId, Views};
pub use sequences::{SequencePosition, SequenceSpec, SequenceValues, Sequences};
pub use session_locks::{
    AdvisoryKey, AdvisoryLocking, AdvisoryMode, LockInfo, LockManager, LockTarget, SessionLocks,
};
pub use snapshots::SnapshotSharing;
pub use status::{
    range_words, ClusterMonitor, ClusterStatus, Consistency, Inconsistency, ReplicaStatus,
    SyncState,
};
pub use storage::{StorageMonitor, StorageStatus, TreeSize};
pub use temp::{TempBlock, TempSpace};
pub use transaction::{
    CatalogChanges, CatalogVersion, Isolation, Transaction, Transactions, TxnOptions,
};
pub use trees::{IndexColumn, IndexDescriptor, TreeDescriptor, TreeKind};
pub use writing::{Inserted, Post, Write, Writing};

use crate::error::{Error, Result};

/// Who answers to each interface of a node's engine, for the sessions of one kind.
#[derive(Clone)]
pub struct Engine {
    /// Begins transactions.
    pub transactions: Arc<dyn Transactions>,
    /// Says when replies may leave.
    pub gate: Arc<dyn Gate>,
    /// Gives numbers.
    pub sequences: Arc<dyn Sequences>,
    /// Knows the cluster's settings.
    pub settings: Arc<dyn ClusterSettings>,
    /// Sees the cluster.
    pub cluster: Arc<dyn ClusterMonitor>,
    /// Says how large things are.
    pub storage: Arc<dyn StorageMonitor>,
    /// Gives locks to sessions; none where nobody ever waits for a lock.
    pub locks: Option<Arc<dyn LockManager>>,
    /// Knows what became of transactions; none where nothing is kept of them.
    pub outcomes: Option<Arc<dyn Outcomes>>,
    /// Knows who listens to notifications; none where nobody can.
    pub notifications: Option<Arc<dyn Notifications>>,
    /// Knows prepared transactions; none where none can be.
    pub prepared: Option<Arc<dyn PreparedTransactions>>,
    /// Does what operators ask for; none where there is no cluster.
    pub administrator: Option<Arc<dyn Administrator>>,
    /// Scratch space of statements; none where there is no disk.
    pub temp: Option<Arc<dyn TempSpace>>,
}

impl Engine {
    /// Who gives locks to sessions.
    ///
    /// # Errors
    /// 0A000 where nobody does.
    pub fn locks(&self) -> Result<&dyn LockManager> {
        let absent = || Error::unsupported("asking for locks of sessions here");
        self.locks.as_deref().ok_or_else(absent)
    }

    /// Who knows what became of transactions.
    ///
    /// # Errors
    /// 0A000 where nobody does.
    pub fn outcomes(&self) -> Result<&dyn Outcomes> {
        let absent = || Error::unsupported("asking for outcomes of transactions here");
        self.outcomes.as_deref().ok_or_else(absent)
    }

    /// Who knows who listens to notifications.
    ///
    /// # Errors
    /// 0A000 where nobody does.
    pub fn notifications(&self) -> Result<&dyn Notifications> {
        let absent = || Error::unsupported("notifications here");
        self.notifications.as_deref().ok_or_else(absent)
    }

    /// Who knows prepared transactions.
    ///
    /// # Errors
    /// 0A000 where nobody does.
    pub fn prepared(&self) -> Result<&dyn PreparedTransactions> {
        let absent = || Error::unsupported("prepared transactions here");
        self.prepared.as_deref().ok_or_else(absent)
    }

    /// Who does what an operator asks for.
    ///
    /// # Errors
    /// 0A000 where nobody does.
    pub fn administrator(&self) -> Result<&dyn Administrator> {
        let absent = || Error::unsupported("administering a cluster here");
        self.administrator.as_deref().ok_or_else(absent)
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Engine")
    }
}
