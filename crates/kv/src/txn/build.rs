//! Trees made of the rows that a table has: new indexes, and rows under new keys.
//!
//! # Beside the work
//! A table of many rows: each replica makes the trees of its own rows ([`crate::build`]). What this
//! transaction has changed of them is left to it. The trees are read like those of the store, and
//! merged with what it writes from then on; the end of the build is in the write set too, so that a
//! savepoint takes the whole back.
//!
//! # In the write set
//! A table that this transaction has made, or one of few rows: what is built goes into the write
//! set. Entries of indexes are derived again when the record is applied, in line; rows under new
//! keys are in the record.

use std::collections::BTreeSet;

use base::coro;
use base::engine::{
    Build, Built, Direction, IndexDescriptor, Inserted, RowBatch, RowKey, TreeDescriptor, TreeKind,
};
use base::limits::{ROWS_PER_YIELD, SCAN_BATCH_ROWS};
use base::row::Row;
use base::{KeyRange, Result, TreeId};

use super::unique::unique_prefix;
use super::{Leader, Txn, AFTER_ALL};
use crate::build::{key_of_columns, NewKey, Plan};
use crate::group::BuildHandle;
use crate::registry::index_key;
use crate::write_set::WriteSet;

impl<L: Leader> Txn<L> {
    /// As [`base::engine::Building::build`].
    pub(super) fn build_trees(&mut self, build: &Build) -> Result<Built> {
        match self.is_large(build.source)? {
            true => self.build_beside(build),
            false => self.build_in_write_set(build),
        }
    }

    /// Whether a table is one that the store has, with many rows.
    fn is_large(&mut self, tree: TreeId) -> Result<bool> {
        if self.is_new_tree(tree) {
            return Ok(false);
        }
        let most = self.leader.rows_built_in_line();
        Ok(self.count_rows(tree, most)? > most)
    }

    fn build_beside(&mut self, build: &Build) -> Result<Built> {
        let own = self.writes.changed_rows(build.source)?;
        let except = own.into_iter().map(|(key, _, _)| key).collect();
        let (first, rows) = self.take_row_numbers(build)?;
        let plan = Plan::new(build, first, except);
        let term = self.at()?.term;
        let handle = self.leader.begin_build(term, self.id, &plan)?;
        // What is said of the rows rests on them, and they are all below.
        self.owe(term, handle.begun().lsn);
        let built = handle.wait()?;
        if built != Built::Done {
            return Ok(built);
        }
        let (tree, key) = (TreeId::BUILDS, plan.id().descriptor_key());
        let row = plan.to_row();
        self.writes.put(tree, &key, Some(&row), None, self.latest)?;
        self.builds.push(handle);
        self.write_descriptors(build)?;
        if build.rekeyed.is_none() {
            return self.move_own_entries(build);
        }
        let own: Vec<_> = self
            .writes
            .changed_rows(build.source)?
            .into_iter()
            .filter_map(|(key, _, newest)| Some((key, newest?)))
            .collect();
        // Own rows come after all others.
        let numbers = (first + rows).saturating_sub(own.len() as u64)..;
        for (number, (key, row)) in numbers.zip(&own) {
            let refused = self.build_row(build, number, key, row)?;
            if let Some(refused) = refused {
                return Ok(refused);
            }
        }
        Ok(Built::Done)
    }

    /// Rows that this transaction has changed are in the new indexes as they were before.
    fn move_own_entries(&mut self, build: &Build) -> Result<Built> {
        let own = self.writes.changed_rows(build.source)?;
        for (tree, index) in &build.indexes {
            for (key, base, _) in &own {
                if let Some(base) = base {
                    let entry = index_key(index, &Row::parse(base)?, key)?;
                    self.writes.put_entry(*tree, &entry, false, self.latest)?;
                }
            }
            for (key, _, newest) in &own {
                let Some(newest) = newest else { continue };
                let row = Row::parse(newest)?;
                if self.is_in_index(*tree, index, &row)? {
                    return Ok(duplicate(*tree, newest));
                }
                let entry = index_key(index, &row, key)?;
                self.writes.put_entry(*tree, &entry, true, self.latest)?;
            }
        }
        Ok(Built::Done)
    }

    /// Whether a unique index has the values of this row.
    fn is_in_index(
        &mut self,
        tree: TreeId,
        index: &IndexDescriptor,
        row: &Row<'_>,
    ) -> Result<bool> {
        if !index.unique {
            return Ok(false);
        }
        match unique_prefix(index, row)? {
            Some(values) => self.has_entry(tree, &values),
            None => Ok(false),
        }
    }

    /// The first of the numbers that rows get, and how many rows there are; zero where they get none.
    fn take_row_numbers(&mut self, build: &Build) -> Result<(u64, u64)> {
        match build.rekeyed.as_ref().map(|new| &new.key) {
            Some(RowKey::Numbers(sequence)) => {
                let rows = self.count_rows(build.source, usize::MAX)? as u64;
                let by = self.numbering.as_ref().unwrap_or(&self.leader);
                let (first, owed) = by.numbers(*sequence, rows.max(1))?;
                if owed.group != self.leader.group() {
                    self.debt.add(owed.group, owed.position);
                }
                Ok((first, rows))
            }
            _ => Ok((0, 0)),
        }
    }

    fn build_in_write_set(&mut self, build: &Build) -> Result<Built> {
        self.write_descriptors(build)?;
        let (mut number, _) = self.take_row_numbers(build)?;
        let mut outcome = Built::Done;
        self.for_each_row(build.source, |this, key, row| {
            let refused = this.build_row(build, number, key, row)?;
            number += 1;
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
        for made in Plan::new(build, 0, BTreeSet::new()).descriptors() {
            // Nobody else knows the id, so there is nothing to lock.
            let (tree, key) = (TreeId::DESCRIPTORS, made.id.descriptor_key());
            let row = made.to_row();
            self.writes.put(tree, &key, None, Some(&row), self.latest)?;
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
            if self.exists_now(new.tree, &key)? {
                return Ok(Some(duplicate(new.tree, bytes)));
            }
            self.writes
                .put(new.tree, &key, None, Some(bytes), self.latest)?;
        }
        for (tree, index) in &build.indexes {
            if self.is_in_index(*tree, index, &row)? {
                return Ok(Some(duplicate(*tree, bytes)));
            }
            let entry = index_key(index, &row, &key)?;
            self.writes.put_entry(*tree, &entry, true, self.latest)?;
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

    /// How many rows there are; not all are counted when there are more than `most`.
    fn count_rows(&mut self, tree: TreeId, most: usize) -> Result<usize> {
        let mut count = 0;
        self.for_each_row(tree, |_, _, _| {
            count += 1;
            Ok(count <= most)
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
}

fn duplicate(tree: TreeId, row: &[u8]) -> Built {
    let row = row.to_vec();
    Built::Duplicate { tree, row }
}

/// Whether the commit of these writes switches to what was built.
pub(super) fn is_switched(writes: &WriteSet, build: &BuildHandle) -> bool {
    let key = build.plan().id().descriptor_key();
    // These rows are in memory.
    let own = writes.newest(TreeId::BUILDS, &key).ok().flatten();
    own.is_some_and(|own| own.row.is_none())
}
