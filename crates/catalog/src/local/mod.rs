//! Temporary objects: tables, indexes, sequences and views that one session has to itself.
//!
//! They lie in the session's own memory. [`LocalEngine`] stands around the node's engine from the
//! first temporary object of a session on (a session without any never meets it), and its
//! transactions tell by tree and key what is local:
//!
//! | what | local if |
//! |---|---|
//! | rows of a tree | the tree's id is at least [`FIRST_TREE`] |
//! | descriptors of trees | so is the tree described |
//! | rows of the catalog | they are about an oid of at least [`FIRST_OID`] |
//! | states of sequences | their number is so |
//!
//! So the rest of SQL, DDL included, knows nothing of it: `CREATE TEMP TABLE` inserts the same
//! rows into the same catalog trees, and a scan of these shows them after all others, which their
//! keys are larger than. What is local is never logged, nobody else sees it, and it owes nothing.
//!
//! # Invariants
//! - An oid, a tree or a sequence is local from its birth on or never: [`Local::decide`] says which
//!   for what a statement makes.
//! - A local version is committed when the transaction around it has: the engine commits first.
//! - Nothing in the engine's catalog names a local object.
//!
//! # What it leaves out
//! Spilling to disk: a session's temporary rows have [`LOCAL_BYTES_MAX`] in memory, and 53200 beyond.

mod engine;
mod store;
mod transaction;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use base::engine::SequencePosition;
use base::sync::Mutex;
use base::{Key, SequenceId, TreeId};

pub use engine::LocalEngine;
use store::{Store, Tree};

/// The least oid of a local object.
pub const FIRST_OID: u32 = 0xC000_0000;
/// The least id of a local tree.
pub const FIRST_TREE: TreeId = TreeId(1 << 60);
/// What one session's temporary rows may take in memory.
pub const LOCAL_BYTES_MAX: usize = 1 << 30;

/// Whether an oid is that of a local object.
pub fn is_local(oid: u32) -> bool {
    oid >= FIRST_OID
}

/// What becomes of a temporary table's rows, or of itself, at COMMIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnCommit {
    /// Its rows go.
    Delete,
    /// It goes.
    Drop,
}

/// What one session has to itself.
#[derive(Clone, Default)]
pub struct Local {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    store: Store,
    changes: Changes,
    next_oid: u32,
    next_tree: u64,
    counters: BTreeMap<SequenceId, u64>,
    positions: BTreeMap<SequenceId, SequencePosition>,
    transactions: u64,
    /// Whether what the statement at work makes is local, once that is decided.
    making: Option<bool>,
    on_commit: BTreeMap<u32, OnCommit>,
    schema: Option<u32>,
}

/// Which rows of the local part of the catalog have changed.
#[derive(Default)]
struct Changes {
    /// Changes with every transaction that has changed some.
    generation: u64,
    /// The generation before the oldest that is remembered.
    before: u64,
    /// With the generation from which on they are as they are.
    keys: VecDeque<(u64, (TreeId, Key))>,
}

/// Rows that are remembered. Beyond, a session reads its catalog anew.
const CHANGES_MAX: usize = 1_024;

impl Changes {
    /// A transaction has written these rows of the catalog.
    fn add(&mut self, rows: Vec<(TreeId, Key)>) {
        self.generation += 1;
        let rows = rows.into_iter().map(|row| (self.generation, row));
        self.keys.extend(rows);
        while self.keys.len() > CHANGES_MAX {
            if let Some((generation, _)) = self.keys.pop_front() {
                self.before = generation;
            }
        }
    }

    /// The rows that have changed since a generation, if all of them are known.
    fn since(&self, generation: u64) -> Option<impl Iterator<Item = &(TreeId, Key)>> {
        let first = self.keys.partition_point(|known| known.0 <= generation);
        let is_known = (self.before..=self.generation).contains(&generation);
        is_known.then(|| self.keys.range(first..).map(|known| &known.1))
    }
}

impl Local {
    /// A statement begins: nothing is decided.
    pub fn forget_decision(&self) {
        self.inner.lock().making = None;
    }

    /// Decides whether what the statement makes is local; the first decision holds.
    pub fn decide(&self, local: bool) {
        self.inner.lock().making.get_or_insert(local);
    }

    /// The schema of temporary objects: its oid, once there is one.
    pub fn schema(&self) -> Option<u32> {
        self.inner.lock().schema
    }

    /// Notes the schema.
    pub fn set_schema(&self, oid: u32) {
        self.inner.lock().schema = Some(oid);
    }

    /// Notes what becomes of a table at COMMIT.
    pub fn set_on_commit(&self, table: u32, action: OnCommit) {
        self.inner.lock().on_commit.insert(table, action);
    }

    /// What becomes of which tables at COMMIT; some may be gone.
    pub fn on_commit(&self) -> Vec<(u32, OnCommit)> {
        let inner = self.inner.lock();
        inner
            .on_commit
            .iter()
            .map(|(oid, on)| (*oid, *on))
            .collect()
    }

    /// Forgets what becomes of a table that is gone.
    pub fn forget_on_commit(&self, table: u32) {
        self.inner.lock().on_commit.remove(&table);
    }

    /// Removes all rows of a tree, for good.
    pub fn clear(&self, tree: TreeId) {
        let removed = self.inner.lock().store.remove(tree);
        self.drop_trees(removed);
    }

    /// Drops trees in turns.
    fn drop_trees(&self, trees: Vec<Tree>) {
        for tree in trees {
            let (bytes, versions) = tree.end();
            self.inner.lock().store.forget(bytes, versions);
        }
    }
}
