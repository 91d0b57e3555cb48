//! Transactions whose snapshot is older than the catalog.
//!
//! Statements are planned with the newest catalog, and above READ COMMITTED they read what the
//! first of them has seen. An index that came in between has no entry that such a transaction could
//! see, so it must not go by it:
//!
//! ```text
//! A  begin isolation level repeatable read; select count(*) from t;
//! B                                              create index on t (v);
//! A  select * from t where v = 5;                -- reads all of t
//! ```
//!
//! So once the catalog has changed under it, such a transaction goes by those indexes only whose
//! trees its snapshot shows, and its plans are its own.
//!
//! A table that was written anew meanwhile (another type of a column, TRUNCATE, a move to another
//! group) has nothing in its new trees that such a transaction could see. In PostgreSQL the table
//! looks empty to it (manual, section 13.6); here it is told that it came too late (40001).

use std::collections::BTreeSet;
use std::rc::Rc;

use base::engine::{Direction, Isolation, RowBatch};
use base::limits::SCAN_BATCH_ROWS;
use base::{Error, KeyRange, Result, TreeId};

use super::Session;
use catalog::{store, Catalog};
use execution::state::prepared::TreesSeen;
use planner::bind::Bound;

impl Session {
    /// Whether the catalog has changed since the open transaction began, which goes on reading what
    /// it first saw.
    pub(super) fn is_behind(&self) -> bool {
        self.open.as_ref().is_some_and(|open| {
            open.begun
                && open.txn.isolation() != Isolation::ReadCommitted
                && open.began_with != self.shared.engine.transactions.catalog_version()
        })
    }

    /// Whether a plan that may look for rows by these trees, or by all, is what the open
    /// transaction needs.
    pub(super) fn sees_like(&self, seen: Option<&TreesSeen>) -> bool {
        let open = self.open.as_ref().filter(|_| self.is_behind());
        match (open, seen) {
            (None, None) => true,
            (Some(open), Some(seen)) => {
                let own = open.trees_seen.as_ref();
                own.is_some_and(|own| Rc::ptr_eq(own, seen))
            }
            _ => false,
        }
    }

    /// The trees that the open transaction's snapshot shows, if it is behind.
    ///
    /// # Errors
    /// What reading raises.
    pub(super) fn trees_seen(&mut self) -> Result<Option<TreesSeen>> {
        if !self.is_behind() {
            return Ok(None);
        }
        let Some(open) = &mut self.open else {
            return Ok(None);
        };
        if let Some(known) = &open.trees_seen {
            return Ok(Some(known.clone()));
        }
        open.txn.begin_statement()?;
        let (mut trees, mut batch) = (BTreeSet::new(), RowBatch::default());
        let mut rest = Some(KeyRange::all());
        while let Some(range) = rest {
            let (tree, forward) = (TreeId::DESCRIPTORS, Direction::Forward);
            rest = open
                .txn
                .scan(tree, &range, forward, SCAN_BATCH_ROWS, &mut batch)?;
            for (key, _) in batch.iter() {
                let key = key.try_into();
                let key = key.map_err(|_| Error::corrupted("a descriptor's key is not 8 bytes"))?;
                trees.insert(TreeId(u64::from_be_bytes(key)));
            }
        }
        let trees = Rc::new(trees);
        open.trees_seen = Some(trees.clone());
        Ok(Some(trees))
    }

    /// Looks whether the tables of a statement are those that the open transaction's snapshot shows, if
    /// that is behind.
    ///
    /// # Errors
    /// 40001 for one that was written anew since; what reading raises.
    pub(super) fn check_same_tables(&mut self, catalog: &Catalog, bound: &Bound) -> Result<()> {
        if !self.is_behind() {
            return Ok(());
        }
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        let named: BTreeSet<TreeId> = bound.locks.iter().map(|(tree, _)| *tree).collect();
        let tables = catalog.tables.iter();
        for table in tables.filter(|table| named.contains(&table.tree)) {
            let seen = store::seen_table(open.txn.as_mut(), catalog.database.oid, table.oid)?;
            if seen.is_some_and(|seen| seen.tree != table.tree) {
                let message = "could not serialize access due to concurrent update";
                let detail = format!("Table \"{}\" was written anew.", table.name);
                return Err(Error::serialization(message).with_detail(detail));
            }
        }
        Ok(())
    }
}
