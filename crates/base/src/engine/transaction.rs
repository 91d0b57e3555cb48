//! A transaction, from its beginning to its commit.
//!
//! ```text
//! begin             nothing is read yet
//! begin_statement   a snapshot
//! get, insert …     Reading, Locking, Writing, …
//! commit            in the log, visible, its locks given up → a debt
//! drop              rolled back
//! ```
//! What every transaction can do are the supertraits of [`Transaction`]; what only some can is asked
//! for ([`Transaction::advisory`] and its like), and is 0A000 where it is not to be had.
//!
//! # Invariants
//! - What is shown of a transaction, a row, an absence, an error caused by data, is in
//!   [`Transaction::debt`] before it is shown.
//! - After an error of [`Transaction::commit`] nothing has been logged.
//! - What is done for every row or every transaction is a method of a supertrait, so that it costs
//!   one call through the table of `dyn Transaction`.

use std::time::Duration;

use super::{
    AdvisoryLocking, Building, Flight, Locking, Notifying, Preparation, Reading, Savepoints,
    SnapshotSharing, TxnOutcome, Views, Writing,
};
use crate::durability::{Debt, Durability};
use crate::error::{Error, Result};
use crate::ids::{Lsn, SessionId, TreeId, TxnId};
use crate::key::Key;

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

/// How far the catalog has come: cached plans and catalog entries hold while it is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CatalogVersion {
    /// Changes with every change of a catalog tree, a take-back included.
    pub generation: u64,
    /// The newest position at which a catalog tree changed; what uses a cached plan owes it.
    pub lsn: Lsn,
}

/// The rows of the catalog that have changed between two of its versions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CatalogChanges {
    /// The later version.
    pub to: CatalogVersion,
    /// Their trees and keys, in the order of the changes; some of them several times.
    pub keys: Vec<(TreeId, Key)>,
}

/// Makes transactions.
pub trait Transactions: Send + Sync {
    /// Begins a transaction. Nothing is read yet.
    ///
    /// # Errors
    /// 40001 when this node does not lead.
    fn begin(&self, options: TxnOptions) -> Result<Box<dyn Transaction>>;

    /// How far the catalog has come.
    fn catalog_version(&self) -> CatalogVersion;

    /// What has changed since the catalog was at a version, up to now; `None` when that is not known
    /// any more, and who has a copy of the catalog must read all of it again.
    fn catalog_changes(&self, since: CatalogVersion) -> Option<CatalogChanges>;
}

/// One transaction. Dropping it rolls it back.
pub trait Transaction: Reading + Locking + Writing + Building + Savepoints + Views {
    /// Its id.
    fn id(&self) -> TxnId;

    /// The isolation level it was begun with.
    fn isolation(&self) -> Isolation;

    /// Changes what it was begun with; only before its first statement.
    fn set_options(&mut self, options: TxnOptions);

    /// A new statement begins: it sees what earlier statements of this transaction wrote and, at
    /// READ COMMITTED, what others have committed until now.
    fn begin_statement(&mut self) -> Result<()>;

    /// Makes the writes so far visible to what follows in the same statement (triggers, foreign
    /// keys, PL/pgSQL), keeping the snapshot.
    fn next_command(&mut self);

    /// What is shown from here on rests on this too.
    fn owe(&mut self, debt: &Debt);

    /// What the replies of this transaction rest on until now.
    fn debt(&self) -> &Debt;

    /// Its advisory locks.
    ///
    /// # Errors
    /// 0A000 where there are none.
    fn advisory(&mut self) -> Result<&mut dyn AdvisoryLocking> {
        Err(Error::unsupported("taking advisory locks here"))
    }

    /// What is kept of it when it has ended.
    ///
    /// # Errors
    /// 0A000 where nothing is.
    fn outcome(&mut self) -> Result<&mut dyn TxnOutcome> {
        Err(Error::unsupported("asking for ids of transactions here"))
    }

    /// The snapshots that it lends and borrows.
    ///
    /// # Errors
    /// 0A000 where there are none.
    fn snapshots(&mut self) -> Result<&mut dyn SnapshotSharing> {
        Err(Error::unsupported("exporting snapshots here"))
    }

    /// What its commit tells others.
    ///
    /// # Errors
    /// 0A000 where nobody can be told anything.
    fn notifying(&mut self) -> Result<&mut dyn Notifying> {
        Err(Error::unsupported("notifications here"))
    }

    /// Ends a transaction that has written nothing, as [`Transaction::commit`] does, but keeps its
    /// memory for [`Transaction::begin_again`]. False when it is not such a transaction, or keeps
    /// none; then nothing has happened.
    fn end_reading(&mut self) -> bool;

    /// Begins again after [`Transaction::end_reading`], as [`Transactions::begin`] does, in the
    /// memory of the transaction that has ended. False when that cannot be; then it is of no more
    /// use.
    fn begin_again(&mut self, options: TxnOptions) -> bool;

    /// Commits. On return the transaction is in the log and visible, its locks are released, and
    /// its outcome rests on the debt returned. A transaction that wrote nothing logs nothing.
    ///
    /// # Errors
    /// 40001 when leadership has changed since the transaction began. After an error nothing has
    /// been logged.
    fn commit(self: Box<Self>, durability: Durability) -> Result<Debt>;

    /// Prepares it: on return it is in the log, with its locks, and belongs to no session any more
    /// ([`super::PreparedTransactions`]).
    ///
    /// # Errors
    /// 0A000 where that cannot be done, or not to what it has done; 42710 when the name is taken;
    /// 54000 when it has written too much. After an error nothing has been logged.
    fn prepare(self: Box<Self>, preparation: Preparation, durability: Durability) -> Result<Debt> {
        let _ = (preparation, durability);
        Err(Error::unsupported("preparing a transaction here"))
    }
}
