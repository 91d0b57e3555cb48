//! Snapshots that a transaction lends to others of the same node, as `pg_dump --jobs` does whose
//! sessions share the work.
//!
//! ```text
//! one session   export_snapshot()                → "00000003-29-1"
//! another       import_snapshot("00000003-29-1") → the newest position that it shows
//! ```
//! Source: PostgreSQL 15 manual, section 9.27.5 (snapshot synchronization functions).

use crate::error::Result;
use crate::ids::Lsn;

/// Lends and borrows snapshots.
pub trait SnapshotSharing {
    /// Lends what the statement at work sees, without what this transaction has written, to others
    /// of this node until this transaction ends; returns the name to ask for it by.
    ///
    /// # Errors
    /// 25001 below a savepoint; 53400 when too many are lent.
    fn export_snapshot(&mut self) -> Result<String>;

    /// Sees what another transaction lends, instead of what there is now; before anything was read,
    /// at REPEATABLE READ. Returns the newest position that it shows; none where nobody lends
    /// anything by that name.
    ///
    /// # Errors
    /// 40001 when leadership has changed.
    fn import_snapshot(&mut self, name: &str) -> Result<Option<Lsn>>;
}
