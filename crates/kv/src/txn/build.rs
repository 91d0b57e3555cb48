//! Trees made of the rows that a table has: new indexes, and rows under new keys.
//!
//! # In the write set
//! A table that this transaction has made, or one of few rows: what is built goes into the write
//! set. Entries of indexes are derived again when the record is applied, in line; rows under new
//! keys are in the record.

use base::coro;
use base::engine::{Build, Built, Direction, Inserted, RowBatch, RowKey, TreeDescriptor, TreeKind};
use base::limits::{ROWS_PER_YIELD, SCAN_BATCH_ROWS};
use base::row::Row;
use base::{KeyRange, Result, TreeId};

use super::unique::unique_prefix;
use super::{Leader, Txn, AFTER_ALL};
use crate::build::{key_of_columns, NewKey};
use crate::registry::index_key;

impl<L: Leader> Txn<L> {
    /// As [`base::engine::Transaction::build`].
    pub(super) fn build_trees(&mut self, build: &Build) -> Result<Built> {
        self.write_descriptors(build)?;
        let mut numbers = match build.rekeyed.as_ref().map(|new| &new.key) {
            Some(RowKey::Numbers(sequence)) => {
                let count = self.count_rows(build.source)?;
                self.leader.numbers(*sequence, count.max(1))?
            }
            _ => 0,
        };
        let mut outcome = Built::Done;
        self.for_each_row(build.source, |this, key, row| {
            let refused = this.build_row(build, numbers, key, row)?;
            numbers += 1;
            Ok(match refused {
                None => true,
                Some(refused) => {
                    outcome = refused;
                    false
                }
            })
        })?;
        Ok(outcome)
    }

    fn write_descriptors(&mut self, build: &Build) -> Result<()> {
        let table = build.rekeyed.as_ref().map(|new| TreeDescriptor {
            id: new.tree,
            kind: TreeKind::Table,
        });
        let indexes = build.indexes.iter().map(|(id, index)| TreeDescriptor {
            id: *id,
            kind: TreeKind::Index(index.clone()),
        });
        for made in table.into_iter().chain(indexes) {
            // Nobody else knows the id, so there is nothing to lock.
            let (tree, key) = (TreeId::DESCRIPTORS, made.id.descriptor_key());
            let row = made.to_row();
            self.writes
                .put(tree, &key, None, Some(&row), self.command)?;
        }
        Ok(())
    }

    /// Puts one row of the source where it belongs; returns why it cannot be.
    fn build_row(
        &mut self,
        build: &Build,
        number: u64,
        old_key: &[u8],
        bytes: &[u8],
    ) -> Result<Option<Built>> {
        let row = Row::parse(bytes)?;
        let mut key = old_key.to_vec();
        if let Some(new) = &build.rekeyed {
            key = match &new.key {
                RowKey::Numbers(_) => number.to_be_bytes().to_vec(),
                RowKey::Columns(columns) => match key_of_columns(columns, &row)? {
                    NewKey::Is(key) => key,
                    NewKey::Null(column) => return Ok(Some(Built::NullKey { column })),
                },
            };
            if self.writes.newest(new.tree, &key).is_some() {
                return Ok(Some(duplicate(new.tree, bytes)));
            }
            self.writes
                .put(new.tree, &key, None, Some(bytes), self.command)?;
        }
        for (tree, index) in &build.indexes {
            if index.unique {
                let values = unique_prefix(index, &row)?;
                if values.is_some_and(|values| self.has_own_entry(*tree, &values)) {
                    return Ok(Some(duplicate(*tree, bytes)));
                }
            }
            let entry = index_key(index, &row, &key)?;
            self.writes.put_entry(*tree, &entry, true, self.command)?;
        }
        Ok(None)
    }

    /// A descriptor was written: if it makes an index, its entries go into the write set.
    pub(super) fn index_was_made(&mut self, descriptor: &[u8]) -> Result<Inserted> {
        let TreeDescriptor { id, kind } = TreeDescriptor::from_row(descriptor)?;
        let TreeKind::Index(index) = kind else {
            return Ok(Inserted::Done);
        };
        let build = Build {
            source: index.table,
            rekeyed: None,
            indexes: vec![(id, index)],
        };
        Ok(match self.build_trees(&build)? {
            Built::Done => Inserted::Done,
            Built::Duplicate { tree, .. } => Inserted::Duplicate(tree),
            Built::NullKey { column } => panic!("column {column} is of no new key: {build:?}"),
        })
    }

    fn count_rows(&mut self, tree: TreeId) -> Result<u64> {
        let mut count = 0;
        self.for_each_row(tree, |_, _, _| {
            count += 1;
            Ok(true)
        })?;
        Ok(count)
    }

    /// Calls `f` with every row that is there now, own ones included, until it returns false.
    fn for_each_row(
        &mut self,
        tree: TreeId,
        mut f: impl FnMut(&mut Self, &[u8], &[u8]) -> Result<bool>,
    ) -> Result<()> {
        let now = (self.leader.visible(), AFTER_ALL);
        let (limit, direction) = (SCAN_BATCH_ROWS, Direction::Forward);
        let mut rest = Some(KeyRange::all());
        let mut rows = RowBatch::default();
        let mut since_yield = 0;
        while let Some(range) = rest {
            if since_yield >= ROWS_PER_YIELD {
                coro::yield_now()?;
                since_yield = 0;
            }
            rest = self.scan_as_of(tree, &range, direction, now, limit, &mut rows)?;
            since_yield += rows.len();
            for (key, row) in rows.iter() {
                if !f(self, key, row)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn has_own_entry(&self, index: TreeId, values: &[u8]) -> bool {
        let (range, direction) = (KeyRange::prefix(values), Direction::Forward);
        let mut own = self.writes.range(index, &range, direction, AFTER_ALL);
        own.any(|(_, row)| row.is_some())
    }
}

fn duplicate(tree: TreeId, row: &[u8]) -> Built {
    let row = row.to_vec();
    Built::Duplicate { tree, row }
}
