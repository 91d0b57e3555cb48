//! The catalogs that the sessions of a node share: of each database the newest version that any of
//! them has asked for.
//!
//! ```text
//! session 1   CREATE TABLE u; select …       reads the rows of u            version 8
//! session 2   select …                       takes version 8
//! session 3   begins                         takes version 8
//! ```
//! A session whose temporary objects are in its catalog has versions of its own, each made from the
//! one before; they share with the others whatever is not temporary.
//!
//! # Invariants
//! - A catalog is one state: between the version that it was read at and the snapshot that shows its
//!   rows nothing has changed.
//! - No latch is held while anything is read. Of two sessions that make the same version one's is
//!   kept.
//!
//! # What it leaves out
//! Forgetting the catalog of a database that nobody uses, before there are [`DATABASES_MAX`].

use std::collections::BTreeMap;
use std::sync::Arc;

use base::engine::{Transaction, Transactions, TxnOptions};
use base::sync::Mutex;
use base::{Key, Result, TreeId};

use super::{changes, store, Catalog};

/// Databases whose catalogs are kept although no session uses them.
pub const DATABASES_MAX: usize = 64;

/// How often a catalog is begun anew because it has changed meanwhile; then it is read whole, which
/// is of one snapshot by itself.
const TRIES_MAX: usize = 8;

/// The catalogs of a node.
#[derive(Debug, Default)]
pub struct Catalogs {
    newest: Mutex<BTreeMap<String, Arc<Catalog>>>,
}

impl Catalogs {
    /// The catalog of a database as it is now; `None` when there is no such database.
    ///
    /// # Errors
    /// What reading raises.
    pub fn current(
        &self,
        transactions: &dyn Transactions,
        database: &str,
    ) -> Result<Option<Arc<Catalog>>> {
        let known = self.newest.lock().get(database).cloned();
        if let Some(known) = &known {
            if known.version == transactions.catalog_version() {
                return Ok(Some(known.clone()));
            }
        }
        let made = next(transactions, known.as_ref(), database)?;
        Ok(made.map(|made| self.keep(database, made)))
    }

    /// Keeps a version, unless the same or a later one is there.
    fn keep(&self, database: &str, made: Arc<Catalog>) -> Arc<Catalog> {
        let mut newest = self.newest.lock();
        if let Some(known) = newest.get(database) {
            let (known_at, made_at) = (known.version.generation, made.version.generation);
            if known_at == made_at {
                return known.clone();
            }
            if known_at > made_at {
                return made;
            }
        }
        if newest.len() >= DATABASES_MAX {
            newest.retain(|_, known| Arc::strong_count(known) > 1);
        }
        newest.insert(database.to_owned(), made.clone());
        made
    }
}

/// The catalog of a database as it is now, made from a version before if there is one.
///
/// # Errors
/// What reading raises.
pub fn next(
    transactions: &dyn Transactions,
    known: Option<&Arc<Catalog>>,
    database: &str,
) -> Result<Option<Arc<Catalog>>> {
    // Read by a transaction of its own: an open one may have an older snapshot.
    let mut txn = transactions.begin(TxnOptions::default())?;
    if let Some(known) = known {
        if let Some(made) = follow(known, transactions, txn.as_mut(), &[])? {
            return Ok(Some(Arc::new(made)));
        }
    }
    let version = transactions.catalog_version();
    txn.begin_statement()?;
    let loaded = store::load(txn.as_mut(), version, database)?;
    Ok(loaded.map(Arc::new))
}

/// The catalog as a transaction sees it with a new snapshot, where all that differs from a version
/// before is what others have changed since, and these rows; `None` if it must be read whole.
///
/// # Errors
/// What reading raises.
pub fn follow(
    known: &Catalog,
    transactions: &dyn Transactions,
    txn: &mut dyn Transaction,
    written: &[(TreeId, Key)],
) -> Result<Option<Catalog>> {
    for _ in 0..TRIES_MAX {
        let Some(found) = transactions.catalog_changes(known.version) else {
            return Ok(None);
        };
        txn.begin_statement()?;
        if transactions.catalog_version() == found.to {
            let changed = found.keys.iter().chain(written);
            return changes::apply(known, found.to, txn, changed);
        }
    }
    Ok(None)
}
