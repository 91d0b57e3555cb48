//! The seam between SQL and the transaction engine.
//!
//! SQL turns statements into reads and writes of *trees*: ordered maps from encoded keys
//! ([`crate::key`]) to encoded rows ([`crate::row`]). The engine gives it transactions over them
//! and knows nothing of types or names.
//!
//! ```
//! # use base::engine::*; use base::*;
//! # fn example(engine: &dyn Engine, tree: TreeId) -> Result<()> {
//! let mut txn = engine.begin(TxnOptions::default())?;
//! txn.begin_statement()?;
//! let mut row = Vec::new();
//! if !txn.get(tree, b"k", &mut row)? {
//!     txn.insert(tree, b"k", b"...")?;
//! }
//! let debt = txn.commit(Durability::On)?;
//! // The reply leaves once `engine.settle(debt, Durability::On)` is ready.
//! # Ok(()) }
//! ```
//!
//! # Waiting
//! Every method may wait (for a lock, a lease, a page) and therefore runs inside a coroutine
//! ([`crate::coro`]); an interrupt surfaces as an error.
//!
//! # Debt
//! Whatever a transaction shows its caller, a row, an absence, an error caused by data, adds to
//! [`Transaction::debt`]. Replies made of it must not leave before [`Engine::settle`] is ready.
//!
//! # Bootstrapping
//! The trees below [`TreeId::FIRST_USER`] exist from the start, each without secondary indexes.
//! [`TreeId::DESCRIPTORS`] holds a [`TreeDescriptor`] for every further tree: inserting such a row
//! makes the tree, deleting it drops the tree, both as transactional as any other write.
//!
//! # Trees made of a table's rows
//! An index on a table that has rows, or a table whose rows get other keys, is made by
//! [`Transaction::build`]: each replica makes the trees from its own rows, beside the work, and
//! only the switch to them is in line with other commits.

mod batch;
mod configuration;
mod outcomes;
mod session_locks;
mod status;
mod storage;

use std::sync::Arc;
use std::time::Duration;

pub use batch::RowBatch;
pub use configuration::{
    configuration_key, configuration_row, read_configuration, Configuration, Stage,
};
pub use outcomes::{Flight, XidKind, XidStatus, FIRST_XID, PLACES_AHEAD_MAX, PLACES_BETWEEN_TERMS};
pub use session_locks::{AdvisoryKey, AdvisoryMode, LockInfo, LockTarget, SessionLocks};
pub use status::{ClusterStatus, ReplicaStatus, SyncState};
pub use storage::{StorageStatus, TreeSize};

use crate::codec::{put_bytes, put_varint, Reader};
use crate::durability::{Debt, Durability};
use crate::env::BoxFuture;
use crate::error::{Error, Result};
use crate::ids::{Lsn, SequenceId, SessionId, TreeId, TxnId, Xid};
use crate::key::{Key, KeyKind, KeyRange};

impl TreeId {
    /// The tree of [`TreeDescriptor`]s; the key is the tree's id as 8 bytes, big-endian.
    pub const DESCRIPTORS: TreeId = TreeId(1);
    /// The tree of sequence states, kept by the engine.
    pub const SEQUENCES: TreeId = TreeId(2);
    /// The tree of builds that are under way, kept by the engine.
    pub const BUILDS: TreeId = TreeId(3);
    /// The tree of the cluster's settings ([`Configuration`]): SQL writes it, the engine obeys.
    pub const CONFIGURATION: TreeId = TreeId(4);
    /// The tree of the terms that there were and where each begins, kept by the engine.
    pub const TERMS: TreeId = TreeId(5);
    /// The tree of committed transactions whose ids were asked for, kept by the engine.
    pub const OUTCOMES: TreeId = TreeId(6);
    /// The tree of what sessions that were passed on have appended, kept by the engine.
    pub const SESSIONS: TreeId = TreeId(7);
    /// The first id that SQL may give to a tree of its catalog; these need no descriptor.
    pub const FIRST_CATALOG: TreeId = TreeId(16);
    /// The first id of a tree that has a descriptor.
    pub const FIRST_USER: TreeId = TreeId(16_384);

    /// The key of this tree in [`TreeId::DESCRIPTORS`].
    pub fn descriptor_key(self) -> Key {
        self.0.to_be_bytes().to_vec()
    }

    /// Whether cached plans and catalog entries depend on this tree.
    pub fn is_catalog(self) -> bool {
        let is_kept = TreeId::SEQUENCES <= self && self < TreeId::FIRST_CATALOG;
        self < TreeId::FIRST_USER && !is_kept
    }
}

/// What a tree is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeDescriptor {
    /// The tree.
    pub id: TreeId,
    /// Rows of a table, or entries of an index.
    pub kind: TreeKind,
}

/// Rows of a table, or entries of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeKind {
    /// The rows of a table, keyed by its primary key or by hidden row numbers.
    Table,
    /// A secondary index; its entries are derived from the table's rows when they are applied.
    Index(IndexDescriptor),
}

/// How the entries of a secondary index follow from the rows of its table: the key is the index's
/// columns followed by the row's key, the value is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexDescriptor {
    /// The tree of the table's rows.
    pub table: TreeId,
    /// The columns, most significant first.
    pub columns: Vec<IndexColumn>,
    /// Whether two rows may not agree in all columns (rows with a NULL among them may).
    pub unique: bool,
    /// The values that rows have which are older than a column of the index, by its place.
    pub missing: Vec<(usize, Vec<u8>)>,
}

impl IndexDescriptor {
    /// The value of one of its columns in a row; `None` is NULL.
    pub fn value<'a>(&'a self, row: &crate::row::Row<'a>, column: usize) -> Option<&'a [u8]> {
        if self.missing.is_empty() || column < row.columns().len() {
            return row.column(column);
        }
        let found = self.missing.iter().find(|(place, _)| *place == column);
        found.map(|(_, value)| &value[..])
    }
}

/// One column of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexColumn {
    /// Its place in the row, from 0.
    pub column: usize,
    /// How its bytes become ordered ones.
    pub kind: KeyKind,
    /// Whether its order is inverted.
    pub descending: bool,
}

impl TreeDescriptor {
    /// As stored in [`TreeId::DESCRIPTORS`]: a row of one column.
    pub fn to_row(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, self.id.0);
        match &self.kind {
            TreeKind::Table => out.push(0),
            TreeKind::Index(index) => {
                out.push(1);
                put_varint(&mut out, index.table.0);
                out.push(u8::from(index.unique));
                put_varint(&mut out, index.columns.len() as u64);
                for column in &index.columns {
                    put_varint(&mut out, column.column as u64);
                    out.push(column.kind as u8);
                    out.push(u8::from(column.descending));
                }
                put_varint(&mut out, index.missing.len() as u64);
                for (place, value) in &index.missing {
                    put_varint(&mut out, *place as u64);
                    put_bytes(&mut out, value);
                }
            }
        }
        crate::row::RowBuilder::new(1).value(&out).finish()
    }

    /// Reads what [`TreeDescriptor::to_row`] made.
    ///
    /// # Errors
    /// XX001 when it is something else.
    pub fn from_row(row: &[u8]) -> Result<TreeDescriptor> {
        let row = crate::row::Row::parse(row)?;
        let bytes = row
            .column(0)
            .ok_or_else(|| Error::corrupted("a tree without a descriptor"))?;
        let mut reader = Reader::new(bytes);
        let id = TreeId(reader.varint()?);
        let kind = match reader.u8()? {
            0 => TreeKind::Table,
            1 => {
                let table = TreeId(reader.varint()?);
                let unique = reader.u8()? != 0;
                let count: usize = reader.varint_as()?;
                let columns = (0..count)
                    .map(|_| {
                        Ok(IndexColumn {
                            column: reader.varint_as()?,
                            kind: KeyKind::from_u8(reader.u8()?)?,
                            descending: reader.u8()? != 0,
                        })
                    })
                    .collect::<Result<_>>()?;
                let count: usize = reader.varint_as()?;
                let missing = (0..count)
                    .map(|_| Ok((reader.varint_as()?, reader.bytes()?.to_vec())))
                    .collect::<Result<_>>()?;
                TreeKind::Index(IndexDescriptor {
                    table,
                    columns,
                    unique,
                    missing,
                })
            }
            other => return Err(Error::corrupted(format!("a tree of kind {other}"))),
        };
        reader.finish()?;
        Ok(TreeDescriptor { id, kind })
    }
}

/// Transaction isolation levels. READ UNCOMMITTED is READ COMMITTED, as in PostgreSQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Isolation {
    /// A snapshot per statement.
    #[default]
    ReadCommitted,
    /// One snapshot; the first updater wins (40001).
    RepeatableRead,
    /// Serializable.
    Serializable,
}

/// How a transaction is begun.
#[derive(Clone, Copy, Debug, Default)]
pub struct TxnOptions {
    /// The isolation level.
    pub isolation: Isolation,
    /// Writes are refused by SQL; the engine may take cheaper paths.
    pub read_only: bool,
    /// At SERIALIZABLE and read only: the first statement waits for a snapshot on which no
    /// serialization failure is possible.
    pub deferrable: bool,
    /// The session that it belongs to, whose locks are not in its way.
    pub session: Option<SessionId>,
    /// What its commit is noted under, for whoever passed the session on.
    pub flight: Option<Flight>,
    /// On a standby: what it reads is at most so old.
    pub standby_age_max: Option<Duration>,
}

/// The strengths of row locks (PostgreSQL 15 manual, section 13.3.2), weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowLock {
    /// FOR KEY SHARE: conflicts with `Update` only.
    KeyShare,
    /// FOR SHARE.
    Share,
    /// FOR NO KEY UPDATE: taken by UPDATE of columns that are no key.
    NoKeyUpdate,
    /// FOR UPDATE: taken by DELETE and UPDATE of key columns.
    Update,
}

/// The modes of table locks (PostgreSQL 15 manual, section 13.3.1), weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum TableLock {
    AccessShare,
    RowShare,
    RowExclusive,
    ShareUpdateExclusive,
    Share,
    ShareRowExclusive,
    Exclusive,
    AccessExclusive,
}

/// What to do when a lock is held by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LockWait {
    /// Wait in line, at most for `lock_timeout` (55P03).
    #[default]
    Block,
    /// 55P03 at once.
    NoWait,
    /// Give up this row.
    Skip,
}

/// What locking a row found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockedRow {
    /// The row is as the statement's snapshot shows it.
    Unchanged,
    /// It was changed since (READ COMMITTED only); the newest version is in the buffer and the
    /// statement's conditions must be checked against it.
    Changed,
    /// It was deleted since (READ COMMITTED only).
    Gone,
    /// It was locked by another, and [`LockWait::Skip`] was asked for.
    Skipped,
}

/// What an insert found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// The row is in the transaction's write set.
    Done,
    /// A row with the same key is there: in the table itself, or in the unique index named.
    Duplicate(TreeId),
}

/// Trees to be made of the rows that a table has: indexes, or the table itself under other keys
/// together with its indexes, whose entries end with the new keys.
///
/// ```text
/// CREATE INDEX            source t   rekeyed none        indexes [i on t]
/// ADD PRIMARY KEY (a)     source t   rekeyed u, by a     indexes [all of t's, anew, on u]
/// DROP of a primary key   source t   rekeyed u, numbers  indexes [all of t's, anew, on u]
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    /// The tree of the table's rows. It is not dropped by this.
    pub source: TreeId,
    /// The tree that gets the same rows under other keys, if that is wanted.
    pub rekeyed: Option<Rekeyed>,
    /// New indexes: on the rekeyed tree if there is one, else on the source.
    pub indexes: Vec<(TreeId, IndexDescriptor)>,
}

/// A tree that gets the rows of another under other keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rekeyed {
    /// The new tree.
    pub tree: TreeId,
    /// The new keys.
    pub key: RowKey,
}

/// What the keys of rows are made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowKey {
    /// The columns of such an index on the new tree, none of which may be NULL.
    Columns(IndexDescriptor),
    /// Numbers taken from a sequence, in the order of the old keys (8 bytes, big-endian).
    Numbers(SequenceId),
}

/// How a build ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Built {
    /// The trees are made, for this transaction to read, and for all once it has committed.
    Done,
    /// A further row has the key of another, in the rekeyed tree or in the unique index named. The
    /// caller rolls back, to a savepoint at least.
    Duplicate {
        /// Where.
        tree: TreeId,
        /// The row.
        row: Vec<u8>,
    },
    /// A row has a NULL in a column of its new key. The caller rolls back, to a savepoint at least.
    NullKey {
        /// The column, from 0.
        column: usize,
    },
}

/// Which way a scan goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Direction {
    /// From small keys to large ones.
    #[default]
    Forward,
    /// From large keys to small ones.
    Backward,
}

/// A savepoint of one transaction; larger ones were made later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Savepoint(pub u32);

/// What a statement sees, kept so that its rows can be read piece by piece between others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ViewId(pub u32);

/// How far the catalog has come: cached plans and catalog entries hold while it is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CatalogVersion {
    /// Changes with every change of a catalog tree, a take-back included.
    pub generation: u64,
    /// The newest position at which a catalog tree changed; what uses a cached plan owes it.
    pub lsn: Lsn,
}

/// How the values of a sequence follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceSpec {
    /// The first value of a sequence that was never used.
    pub begins_at: i64,
    /// From one value to the next; negative in a descending sequence, never 0.
    pub increment: i64,
    /// The least value.
    pub min: i64,
    /// The greatest value.
    pub max: i64,
    /// Whether it goes on at its other end.
    pub cycle: bool,
}

/// Where a sequence stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequencePosition {
    /// The last value.
    pub last: i64,
    /// Whether it was given; if not, it is the next to be given.
    pub called: bool,
}

/// Values of a sequence: `first`, `first + increment`, ….
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceValues {
    /// The first.
    pub first: i64,
    /// How many; 0 at the end of the sequence.
    pub count: u64,
}

impl SequenceSpec {
    /// The value after a position; none at the end.
    pub fn next(&self, at: SequencePosition) -> Option<i64> {
        if !at.called {
            return Some(at.last);
        }
        let next = at.last.checked_add(self.increment);
        match next.filter(|next| (self.min..=self.max).contains(next)) {
            Some(next) => Some(next),
            None if self.cycle && self.increment > 0 => Some(self.min),
            None if self.cycle => Some(self.max),
            None => None,
        }
    }

    /// How many values there are from this one on, itself included, until an end is reached.
    pub fn room(&self, from: i64) -> u64 {
        let end = if self.increment > 0 {
            self.max
        } else {
            self.min
        };
        let (from, end) = (i128::from(from), i128::from(end));
        let steps = (end - from) / i128::from(self.increment);
        u64::try_from(steps.max(0)).unwrap_or(u64::MAX - 1) + 1
    }

    /// The value so many steps after this one, which must be within [`SequenceSpec::room`].
    pub fn after(&self, from: i64, steps: u64) -> i64 {
        let at = i128::from(from) + i128::from(self.increment) * i128::from(steps);
        let at = i64::try_from(at);
        at.unwrap_or(if self.increment > 0 {
            self.max
        } else {
            self.min
        })
    }
}

/// Makes transactions, and says when what they showed may leave the server.
pub trait Engine: Send + Sync {
    /// Begins a transaction. Nothing is read yet.
    ///
    /// # Errors
    /// 57P01 when this node does not lead.
    fn begin(&self, options: TxnOptions) -> Result<Box<dyn Transaction>>;

    /// Takes the next `count` numbers of a counter and returns the first: of a sequence, of OIDs,
    /// of hidden row numbers. Never taken back; logged ahead; a counter that was never used starts
    /// at 1. The debt is that of the numbers.
    fn advance(&self, sequence: SequenceId, count: u64) -> Result<(u64, Debt)>;

    /// Takes the next values of a sequence, at most `count`; fewer near its end, none at its end.
    /// Never taken back, and never given twice unless the sequence cycles or was set back: values
    /// are logged ahead, so that after a failover there may be a gap. The debt is theirs.
    fn next_values(
        &self,
        sequence: SequenceId,
        spec: &SequenceSpec,
        count: u64,
    ) -> Result<(SequenceValues, Debt)>;

    /// Sets where a sequence stands, for everyone and at once. The debt is that of the change.
    fn set_sequence(&self, sequence: SequenceId, to: SequencePosition) -> Result<Debt>;

    /// Where a sequence stands, and how many further values are logged.
    fn sequence_position(
        &self,
        sequence: SequenceId,
        spec: &SequenceSpec,
    ) -> Result<(SequencePosition, u64, Debt)>;

    /// Whether this node does not lead, and what sessions of this engine read is a standby's.
    fn is_standby(&self) -> bool {
        false
    }

    /// The time of the newest record that this node has applied.
    fn replayed_until(&self) -> Option<crate::ids::Timestamp> {
        None
    }

    /// How far the catalog has come.
    fn catalog_version(&self) -> CatalogVersion;

    /// Whether a reply with this debt may leave now.
    fn is_settled(&self, debt: &Debt, durability: Durability) -> bool;

    /// Ready when a reply with this debt may leave; starts whatever flush that needs.
    ///
    /// # Errors
    /// 40001 when the debt rests on what a failover took back; for the session's own commit that
    /// means it never happened.
    fn settle(&self, debt: Debt, durability: Durability) -> BoxFuture<'static, Result<()>>;

    /// The cluster as this node sees it.
    fn status(&self) -> ClusterStatus;

    /// Has a checkpoint made; ready when there is one of all that is visible now.
    ///
    /// # Errors
    /// 57P01 when this node does not lead any more; 53100.
    fn checkpoint(&self) -> BoxFuture<'static, Result<()>> {
        Box::pin(std::future::ready(Err(Error::unsupported("CHECKPOINT"))))
    }

    /// The settings of the cluster that are in force on this node.
    fn configuration(&self) -> Arc<Configuration> {
        Arc::default()
    }

    /// Changes whenever other settings come in force.
    fn configuration_generation(&self) -> u64 {
        0
    }

    /// Whether a value may be given to a setting that the engine itself obeys.
    ///
    /// # Errors
    /// As PostgreSQL answers to a malformed one.
    fn check_configuration(&self, name: &str, value: &str) -> Result<()> {
        let _ = (name, value);
        Ok(())
    }

    /// Ready when what was written to [`TreeId::CONFIGURATION`] up to there is committed and in
    /// force. Standbys that are named are not waited for: else nobody could name others while one
    /// is away.
    ///
    /// # Errors
    /// As [`Engine::settle`].
    fn configured(&self, debt: Debt) -> BoxFuture<'static, Result<()>> {
        self.settle(debt, Durability::On)
    }

    /// The advisory locks of a session that holds none yet.
    ///
    /// # Errors
    /// 57P01 when this node does not lead.
    fn session_locks(&self, session: SessionId) -> Result<Box<dyn SessionLocks>> {
        let _ = session;
        Err(Error::unsupported("advisory locks"))
    }

    /// The sessions that a session waits for, each once; none when it waits for no lock.
    fn blockers(&self, session: SessionId) -> Vec<SessionId> {
        let _ = session;
        Vec::new()
    }

    /// The sessions whose transactions a DEFERRABLE transaction of this session waits for.
    fn snapshot_blockers(&self, session: SessionId) -> Vec<SessionId> {
        let _ = session;
        Vec::new()
    }

    /// The id of a transaction that has just committed, from what its commit returned.
    fn committed_xid(&self, commit: &Debt) -> Option<Xid> {
        let _ = commit;
        None
    }

    /// What became of a transaction; waits until that is settled. None for an id that was never
    /// given, or that is so old that nothing is known.
    ///
    /// # Errors
    /// 40001 when this node does not lead; 22023 for an id of the future.
    fn xid_status(&self, xid: Xid) -> Result<Option<XidStatus>> {
        let _ = xid;
        Err(Error::unsupported("outcomes of transactions"))
    }

    /// The newest that a session has committed in a flight or later ones, if anything; waits until
    /// that is settled. Id 0 where something was, or may have been, and it cannot be told which: the
    /// flight began after `since` was committed, and what is known of flights from then on was
    /// forgotten.
    ///
    /// # Errors
    /// 40001 when this node does not lead.
    fn flight_outcome(&self, flight: Flight, since: Lsn) -> Result<Option<Xid>> {
        let _ = (flight, since);
        Err(Error::unsupported("outcomes of transactions"))
    }

    /// Does what an operator asks of the cluster, on its leader.
    ///
    /// # Errors
    /// As the wish; 0A000 where there is no cluster.
    fn administer(&self, wish: crate::cluster::Administration) -> BoxFuture<'static, Result<u64>> {
        let _ = wish;
        let error = Error::unsupported("administration of a cluster");
        Box::pin(std::future::ready(Err(error)))
    }

    /// All locks that are held or waited for.
    fn lock_infos(&self) -> Vec<LockInfo> {
        Vec::new()
    }

    /// How large a tree is on this node now, whatever a snapshot shows of it; none if there is none.
    fn tree_size(&self, tree: TreeId) -> Option<TreeSize> {
        let _ = tree;
        None
    }

    /// What this node's replicas of groups have in memory and on disk.
    fn storage(&self) -> Vec<StorageStatus> {
        Vec::new()
    }
}

/// One transaction. Dropping it rolls it back.
pub trait Transaction {
    /// Its id.
    fn id(&self) -> TxnId;

    /// The isolation level it was begun with.
    fn isolation(&self) -> Isolation;

    /// Changes what it was begun with; only before its first statement.
    fn set_options(&mut self, options: TxnOptions);

    /// What its commit is noted under from now on ([`TxnOptions::flight`]).
    fn set_flight(&mut self, flight: Option<Flight>);

    /// Bounds each wait for a lock; zero is no bound.
    fn set_lock_timeout(&mut self, timeout: Duration);

    /// A new statement begins: it sees what earlier statements of this transaction wrote and, at
    /// READ COMMITTED, what others have committed until now.
    fn begin_statement(&mut self) -> Result<()>;

    /// Makes the writes so far visible to what follows in the same statement (triggers, foreign
    /// keys, PL/pgSQL), keeping the snapshot.
    fn next_command(&mut self);

    /// Reads one row into `row` (cleared first); false when there is none.
    fn get(&mut self, tree: TreeId, key: &[u8], row: &mut Vec<u8>) -> Result<bool>;

    /// As [`Transaction::get`], of a row that the statement will lock at this strength, waiting, if
    /// it is there, whatever is in it. An engine may lock it before it reads it, so that nothing is
    /// read that is old once the lock is there.
    fn get_to_lock(
        &mut self,
        tree: TreeId,
        key: &[u8],
        strength: RowLock,
        row: &mut Vec<u8>,
    ) -> Result<bool> {
        let _ = strength;
        self.get(tree, key, row)
    }

    /// Reads the next rows of a range into `batch` (cleared first), at most `limit` and
    /// [`crate::limits::SCAN_BATCH_ROWS`]. Returns what is left of the range, or `None` at its end.
    fn scan(
        &mut self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
        batch: &mut RowBatch,
    ) -> Result<Option<KeyRange>>;

    /// Like [`Transaction::scan`] forward, but sees the newest committed version of each row and
    /// all that this transaction has written, whatever its snapshot: what foreign keys must look at.
    fn scan_newest(
        &mut self,
        tree: TreeId,
        range: &KeyRange,
        limit: usize,
        batch: &mut RowBatch,
    ) -> Result<Option<KeyRange>>;

    /// Locks a row that this statement has read. `KeyShare` is disturbed by no change that leaves
    /// the row's unique keys as they were. `newest` receives the newest version when it
    /// differs from what was read.
    ///
    /// # Errors
    /// 40001 above READ COMMITTED when the row was changed since the snapshot; 55P03; 40P01.
    fn lock_row(
        &mut self,
        tree: TreeId,
        key: &[u8],
        strength: RowLock,
        wait: LockWait,
        newest: &mut Vec<u8>,
    ) -> Result<LockedRow>;

    /// Locks a row that was in the way of an insert, to change it. Unlike for
    /// [`Transaction::lock_row`], one that was deleted since the snapshot is just gone.
    fn lock_row_in_the_way(
        &mut self,
        tree: TreeId,
        key: &[u8],
        strength: RowLock,
        newest: &mut Vec<u8>,
    ) -> Result<LockedRow> {
        self.lock_row(tree, key, strength, LockWait::Block, newest)
    }

    /// Locks a table (or any object that has a tree) until the end of the transaction.
    fn lock_table(&mut self, tree: TreeId, mode: TableLock, wait: LockWait) -> Result<bool>;

    /// Takes an advisory lock until the end of the transaction; false when another has it and
    /// [`LockWait::Skip`] was asked for.
    fn lock_advisory(
        &mut self,
        key: AdvisoryKey,
        mode: AdvisoryMode,
        wait: LockWait,
    ) -> Result<bool> {
        let _ = (key, mode, wait);
        Err(Error::unsupported("advisory locks"))
    }

    /// Inserts a row: waits for others that write the same key, checks the newest version of the
    /// key and of every unique index.
    fn insert(&mut self, tree: TreeId, key: &[u8], row: &[u8]) -> Result<Inserted>;

    /// The same for a key that was never used before and that nobody else can use: it needs neither
    /// lock nor look.
    fn insert_new(&mut self, tree: TreeId, key: &[u8], row: &[u8]) -> Result<Inserted> {
        self.insert(tree, key, row)
    }

    /// Replaces a row that was locked with `NoKeyUpdate` or `Update` and is there.
    ///
    /// Returns `Duplicate` when a unique index already has the new values.
    fn update(&mut self, tree: TreeId, key: &[u8], row: &[u8]) -> Result<Inserted>;

    /// Deletes a row that was locked with `Update` and is there.
    fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<()>;

    /// Whether the current command itself has written this row. To [`Transaction::lock_row`] such
    /// a row is gone, so that UPDATE passes over it; `ON CONFLICT DO UPDATE` fails with 21000.
    fn is_written_by_command(&self, tree: TreeId, key: &[u8]) -> bool {
        let _ = (tree, key);
        false
    }

    /// Its id for its client, where it has one; it is given one if `assign` says so, or when it has
    /// written.
    ///
    /// # Errors
    /// 40001 when leadership has changed.
    fn xid(&mut self, assign: bool) -> Result<Option<Xid>> {
        let _ = assign;
        Err(Error::unsupported("ids of transactions"))
    }

    /// What is shown from here on rests on this too.
    fn owe(&mut self, debt: &Debt);

    /// Makes trees of a table's rows as they are now, own writes included, and inserts their
    /// descriptors. Ids of the trees are new. Waits until this and enough other replicas have made
    /// them; rows of the source are not logged again.
    ///
    /// The caller holds a table lock on the source that keeps others from writing it
    /// ([`TableLock::Share`] or stronger), and, when its rows get other keys, drops the source's
    /// tree and its indexes' in the same transaction.
    fn build(&mut self, build: &Build) -> Result<Built>;

    /// Lends what the statement at work sees, without what this transaction has written, to others
    /// of this node until this transaction ends; returns the name to ask for it by.
    ///
    /// # Errors
    /// 25001 below a savepoint; 53400 when too many are lent.
    fn export_snapshot(&mut self) -> Result<String> {
        Err(Error::unsupported("pg_export_snapshot()"))
    }

    /// Sees what another transaction lends, instead of what there is now; before anything was read,
    /// at REPEATABLE READ. Returns the newest position that it shows; none where nobody lends
    /// anything by that name.
    ///
    /// # Errors
    /// 40001 when leadership has changed.
    fn import_snapshot(&mut self, name: &str) -> Result<Option<Lsn>> {
        let _ = name;
        Err(Error::unsupported("SET TRANSACTION SNAPSHOT"))
    }

    /// Keeps what the statement at work sees, under a name: its snapshot, and what this
    /// transaction had written before it. A rollback to a savepoint leaves it as it is.
    ///
    /// # Errors
    /// 0A000 where nothing is kept.
    fn keep_view(&mut self) -> Result<ViewId> {
        Err(crate::error::Error::unsupported("reading piece by piece"))
    }

    /// Changes what is kept under a name with what the transaction sees now; a second call changes
    /// them back. Nothing may be written in between.
    ///
    /// # Errors
    /// 40001 when leadership has changed.
    fn swap_view(&mut self, view: ViewId) -> Result<()> {
        let _ = view;
        Ok(())
    }

    /// Keeps what that name stands for no longer.
    fn drop_view(&mut self, view: ViewId) {
        let _ = view;
    }

    /// Marks this point.
    fn savepoint(&mut self) -> Savepoint;

    /// Undoes what came after the savepoint, its locks included; the savepoint stays.
    fn rollback_to(&mut self, savepoint: Savepoint);

    /// Forgets the savepoint and later ones, keeping what came after.
    fn release(&mut self, savepoint: Savepoint);

    /// What the replies of this transaction rest on until now.
    fn debt(&self) -> &Debt;

    /// Ends a transaction that has written nothing, as [`Transaction::commit`] does, but keeps its
    /// memory for [`Transaction::begin_again`]. False when it is not such a transaction; then
    /// nothing has happened.
    fn end_reading(&mut self) -> bool {
        false
    }

    /// Begins again after [`Transaction::end_reading`], as [`Engine::begin`] does, in the memory of
    /// the transaction that has ended. False when that cannot be; then it is of no more use.
    fn begin_again(&mut self, options: TxnOptions) -> bool {
        let _ = options;
        false
    }

    /// Commits. On return the transaction is in the log and visible, its locks are released, and
    /// its outcome rests on the debt returned. A transaction that wrote nothing logs nothing.
    ///
    /// # Errors
    /// 40001 when leadership has changed since the transaction began. After an error nothing has
    /// been logged.
    fn commit(self: Box<Self>, durability: Durability) -> Result<Debt>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_come_back() {
        let index = TreeDescriptor {
            id: TreeId(20_000),
            kind: TreeKind::Index(IndexDescriptor {
                table: TreeId(19_999),
                columns: vec![IndexColumn {
                    column: 3,
                    kind: KeyKind::Bytes,
                    descending: true,
                }],
                unique: true,
                missing: vec![(3, b"x".to_vec())],
            }),
        };
        assert_eq!(TreeDescriptor::from_row(&index.to_row()).unwrap(), index);
        assert!(TreeDescriptor::from_row(b"\x01\x03\x01\x07").is_err());
    }
}
