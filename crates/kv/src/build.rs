//! Trees made of the rows that a table has, beside the work: new indexes, and the table itself
//! under other keys.
//!
//! A table may have millions of rows, and neither may they travel through the log again, nor may
//! the line of commits stand still while they are read. So each replica makes the trees from its
//! own rows. Two small records of one transaction enclose that:
//!
//! ```text
//! LSN 20   insert into BUILDS: the plan      leader and followers begin, each at its own pace
//!   …      records of others                 applied as ever, the new trees are seen by nobody
//!          (a follower says that it is done; the leader waits for enough of them)
//! LSN 57   delete from BUILDS,               the switch: the trees are there, an instant
//!          insert descriptors, rest of the transaction
//! ```
//!
//! # Why the rows stand still
//! The transaction holds a lock on the table that keeps others from writing it, from before the
//! first record until after the second. So what a replica reads is the state at the first record,
//! whenever it reads it, and however often it begins anew. A build under which others may write
//! would have to catch up with them; there is none yet.
//!
//! # The log decides, memory only helps
//! What is under way is what [`TreeId::BUILDS`] holds: rows, replicated, taken back and kept in
//! checkpoints like any others. [`Builds`] is that in memory, with how far each has come. What was
//! half built is worth nothing to anyone else: a restart, a take-back or a fetched checkpoint begins
//! anew, and a replica that meets the switch before it is done does the rest there and then.
//!
//! Locks die with their leader, and builds do too: the first entry of a new term deletes all of
//! them, on every replica at the same LSN, before anybody can write the table again, but for those
//! of transactions that are prepared, whose locks the new leader has. A transaction that fails has its
//! row deleted by a small record of its own.
//!
//! # What the transaction has written itself
//! It is in nobody's trees yet. Rows that it has changed are named in the plan. When rows get new
//! keys, these are left out, and the second record inserts them; else their entries are built as
//! they were, and the second record moves them, like those of any index. The leader does not take
//! them for duplicates of others: the transaction compares them itself.

mod plan;
mod run;

use std::collections::BTreeMap;
use std::sync::Arc;

use base::engine::Built;
use base::limits::SCAN_BATCH_ROWS;
use base::sync::{Event, Mutex};
use base::{Error, Lsn, Result, TreeId};
use storage::Store;

pub use plan::{key_of_columns, NewKey, NewKeys, Plan};
pub use run::OpenBuild;

use crate::apply::for_each_row;

/// The builds that are under way on one replica, by the LSN at which they were begun.
#[derive(Debug, Default)]
pub struct Builds {
    open: Mutex<BTreeMap<Lsn, Arc<OpenBuild>>>,
    /// One was begun, or came to its end here or elsewhere.
    pub changed: Event,
}

impl Builds {
    /// The build that makes a tree.
    pub fn get(&self, id: TreeId) -> Option<Arc<OpenBuild>> {
        let open = self.open.lock();
        open.values().find(|build| build.plan.id() == id).cloned()
    }

    /// All of them, oldest first.
    pub fn all(&self) -> Vec<Arc<OpenBuild>> {
        self.open.lock().values().cloned().collect()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.open.lock().is_empty()
    }

    /// The oldest that is not done here.
    pub fn next(&self) -> Option<Arc<OpenBuild>> {
        let open = self.open.lock();
        open.values().find(|build| build.is_running()).cloned()
    }

    /// Begins a build.
    ///
    /// # Errors
    /// Only errors that stop the node.
    pub fn begin(&self, store: &Store, lsn: Lsn, plan: Plan) -> Result<()> {
        for tree in plan.trees() {
            store.begin_build(tree, lsn)?;
        }
        let build = Arc::new(OpenBuild::new(plan, lsn));
        self.open.lock().insert(lsn, build);
        self.changed.notify_all();
        Ok(())
    }

    /// Does what is left to do of a build, and of those before it, whose trees it may read.
    ///
    /// # Errors
    /// XX001 when it is not under way, or cannot be done; what stops the node.
    pub fn complete(&self, store: &Store, id: TreeId) -> Result<()> {
        let unknown = || Error::corrupted(format!("tree {id} is not being built"));
        let last = self.get(id).ok_or_else(unknown)?.lsn;
        for build in self.all().iter().filter(|build| build.lsn <= last) {
            while build.step(|| store)? {}
        }
        let build = self.get(id).ok_or_else(unknown)?;
        match build.outcome() {
            Some(Ok(Built::Done)) => Ok(()),
            other => Err(Error::corrupted(format!(
                "tree {id} cannot be built: {other:?}"
            ))),
        }
    }

    /// Ends a build: trees that were not adopted go.
    pub fn end(&self, store: &Store, id: TreeId) {
        let Some(build) = self.get(id) else {
            return;
        };
        self.open.lock().remove(&build.lsn);
        build.stop();
        build.plan.trees().for_each(|tree| store.drop_build(tree));
        self.changed.notify_all();
    }

    /// Gives up all builds, for [`Builds::load`] to begin those anew that are still wanted.
    pub fn clear(&self, store: &Store) {
        for build in self.all() {
            self.end(store, build.plan.id());
        }
    }

    /// Begins what the store says is under way.
    ///
    /// # Errors
    /// XX001 when a plan is none; what stops the node.
    pub fn load(&self, store: &Store) -> Result<()> {
        let mut found = Vec::new();
        for_each_row(store, TreeId::BUILDS, |key, row| {
            found.push((key.to_vec(), Plan::from_row(row)?));
            Ok(())
        })?;
        let mut unused = Vec::new();
        for (key, plan) in found {
            let lsn = store
                .get(TreeId::BUILDS, &key, Lsn::MAX, &mut unused)?
                .version;
            self.begin(store, lsn, plan)?;
        }
        Ok(())
    }
}

/// Rows that are read at a time.
const PIECE_ROWS: usize = SCAN_BATCH_ROWS;
