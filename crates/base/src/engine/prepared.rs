//! Prepared transactions: those whose sessions are done with them, and that are yet to be committed
//! or rolled back, by whoever knows their names.
//!
//! ```text
//! begin … update account …
//! prepare("order 7")            logged; its locks are held on, by nobody's session
//! … the session ends, its leader is lost, another one holds the locks …
//! resolve("order 7", true)      committed
//! ```
//! # Invariants
//! - What is prepared can be committed: nothing that it needs can be taken from it, whatever becomes
//!   of nodes and sessions, as long as a majority of disks is there.
//! - A name is that of one prepared transaction at most.
//!
//! Source: PostgreSQL 15 manual, PREPARE TRANSACTION, COMMIT PREPARED, `pg_prepared_xacts`.

use super::TxnOptions;
use crate::durability::{Debt, Durability};
use crate::error::Result;
use crate::ids::{Timestamp, Xid};

/// As what a transaction is prepared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preparation {
    /// The name by which it is resolved; without a zero byte.
    pub name: String,
    /// The role that prepares it, by its OID.
    pub owner: u32,
    /// The database in which it is prepared, by its OID.
    pub database: u32,
}

/// A transaction that is prepared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedTransaction {
    /// As what it was prepared.
    pub preparation: Preparation,
    /// Its id.
    pub xid: Xid,
    /// When it was prepared, by the wall of the node that led then.
    pub prepared_at: Timestamp,
}

/// Whether somebody may resolve a prepared transaction: an error if not.
pub type MayResolve<'a> = &'a dyn Fn(&PreparedTransaction) -> Result<()>;

/// Knows and resolves prepared transactions.
pub trait PreparedTransactions: Send + Sync {
    /// Those that there are, as far as this node knows, by name; what they rest on.
    ///
    /// # Errors
    /// 40001 when this node can show nothing.
    fn prepared(&self) -> Result<(Vec<PreparedTransaction>, Debt)>;

    /// Commits a prepared transaction or rolls it back, in a transaction with these options, unless
    /// `may_resolve` refuses. The debt is that of its end.
    ///
    /// # Errors
    /// What `may_resolve` says; 42704 when there is none of that name; 55000 when somebody else is
    /// about to resolve it; 40001 when this node does not lead. Nothing has been logged then.
    fn resolve(
        &self,
        name: &str,
        commit: bool,
        options: TxnOptions,
        durability: Durability,
        may_resolve: MayResolve<'_>,
    ) -> Result<Debt>;
}
