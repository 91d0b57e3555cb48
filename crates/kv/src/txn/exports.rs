//! Snapshots that transactions lend one another, by name: `pg_export_snapshot` and
//! `SET TRANSACTION SNAPSHOT`.
//!
//! ```text
//! ann: begin isolation level repeatable read; select pg_export_snapshot();  →  00000003-1F4-1
//! bob: begin isolation level repeatable read; set transaction snapshot '00000003-1F4-1';
//! ```
//!
//! # Invariants
//! - A snapshot can be borrowed while the transaction that lends it is open, and no longer; whoever
//!   has borrowed it keeps it, and with it the versions that it shows.
//! - A name says at which position the snapshot is. So one that was given on another node, or under
//!   another leader, is unknown here or stands for the same rows.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use base::hash::HashMap;
use base::sync::Mutex;
use base::{Error, Lsn, Result, SqlState};

use super::{Leader, Txn, View};

/// How many snapshots can be lent at a time; one more is 53400.
const EXPORTS_MAX: usize = 10_000;

/// The snapshots that can be borrowed.
#[derive(Debug)]
pub struct Exports<S> {
    lent: Mutex<HashMap<String, S>>,
    next: AtomicU64,
}

impl<S> Default for Exports<S> {
    fn default() -> Exports<S> {
        Exports {
            lent: Mutex::default(),
            next: AtomicU64::new(1),
        }
    }
}

impl<S: View + Clone> Exports<S> {
    fn lend(self: &Arc<Self>, snapshot: S) -> Result<Export<S>> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let at = snapshot.position();
        let name = format!("{:08X}-{:X}-{number:X}", at.term.0, at.lsn.0);
        let mut lent = self.lent.lock();
        if lent.len() >= EXPORTS_MAX {
            let message = format!("more than {EXPORTS_MAX} snapshots are exported");
            return Err(Error::new(SqlState::CONFIGURATION_LIMIT_EXCEEDED, message));
        }
        lent.insert(name.clone(), snapshot);
        let exports = self.clone();
        Ok(Export { exports, name })
    }

    fn borrow(&self, name: &str) -> Option<S> {
        self.lent.lock().get(name).cloned()
    }
}

/// A snapshot that is lent until this is dropped.
#[derive(Debug)]
pub(super) struct Export<S> {
    exports: Arc<Exports<S>>,
    name: String,
}

impl<S> Drop for Export<S> {
    fn drop(&mut self) {
        let gone = self.exports.lent.lock().remove(&self.name);
        // It tells its group, which is no affair of whoever waits for the latch.
        drop(gone);
    }
}

impl<L: Leader> Txn<L> {
    /// Lends snapshots to, and borrows them from, whoever has the same exports.
    pub fn set_exports(&mut self, exports: Arc<Exports<L::Snapshot>>) {
        self.exports = Some(exports);
    }

    pub(super) fn lend_snapshot(&mut self) -> Result<String> {
        if !self.savepoints.is_empty() {
            return Err(Error::new(
                SqlState::ACTIVE_SQL_TRANSACTION,
                "cannot export a snapshot from a subtransaction",
            ));
        }
        let exports = self.exports.as_ref();
        let exports = exports.ok_or_else(|| Error::unsupported("pg_export_snapshot()"))?;
        let export = exports.lend(self.view()?.clone())?;
        let name = export.name.clone();
        self.exported.push(export);
        Ok(name)
    }

    pub(super) fn borrow_snapshot(&mut self, name: &str) -> Result<Option<Lsn>> {
        let exports = self.exports.as_ref();
        let Some(snapshot) = exports.and_then(|exports| exports.borrow(name)) else {
            return Ok(None);
        };
        let at = snapshot.position();
        self.leader.check_term(at.term)?;
        self.snapshot = Some(snapshot);
        Ok(Some(at.lsn))
    }
}
