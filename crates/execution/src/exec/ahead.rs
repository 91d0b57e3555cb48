//! Rows of an UPDATE or DELETE that another node has, locked many at a time.
//!
//! ```text
//! input   5 6 7 8 9 …   far: gather some, lock them all, one message; then write one after the other
//!                       here: one after the other
//! ```
//! # Invariants
//! - Rows are locked in the order in which the input gives them, and only those that the statement comes
//!   to lock itself, at that strength.
//! - A row that the input gives twice is not locked ahead a second time: what the first has made of it
//!   decides what becomes of it then.
//!
//! # What it leaves out
//! Statements in which something looks at the rows in between: triggers, and inputs that call what is not
//! known to give the same each time.

use std::collections::VecDeque;

use base::engine::{LockWait, RowLock};
use base::hash::HashSet;
use base::{Key, Result, TreeId};

use super::cursor::Cursor;
use super::{partition, Exec};
use crate::kept::row_bytes;
use catalog::RelationKind;
use planner::plan::{Plan, Row, Target};
use types::Datum;

/// So many rows are locked together …
const ROWS_MAX: usize = 256;

/// … and so many bytes of them.
const BYTES_MAX: usize = 256 << 10;

/// The rows of a cursor.
pub(super) struct LockedAhead<'p> {
    input: Box<dyn Cursor + 'p>,
    target: &'p Target,
    /// At which they will be locked; none where that has to be one by one.
    strength: Option<RowLock>,
    rows: VecDeque<Row>,
}

impl<'p> LockedAhead<'p> {
    /// Over the rows of a plan, which a cursor gives; without a strength where a row has to be looked at
    /// before it is known how to lock it.
    pub fn new(
        (plan, input): (&Plan, Box<dyn Cursor + 'p>),
        target: &'p Target,
        strength: Option<RowLock>,
    ) -> LockedAhead<'p> {
        let is_plain = target.triggers.is_none() && target.table.kind != RelationKind::View;
        LockedAhead {
            input,
            target,
            strength: strength.filter(|_| is_plain && plan.is_settled()),
            rows: VecDeque::new(),
        }
    }

    /// The next row.
    pub fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        if let Some(row) = self.rows.pop_front() {
            return Ok(Some(row));
        }
        let row = self.input.next(cx)?;
        self.strength = self.strength.filter(|_| self.is_far(cx));
        match (row, self.strength) {
            (Some(row), Some(strength)) => self.gather(row, strength, cx).map(Some),
            (row, _) => Ok(row),
        }
    }

    /// Whether another node has any of its rows.
    fn is_far(&self, cx: &mut Exec<'_>) -> bool {
        let txn = cx.host.txn();
        match &self.target.routes {
            None => txn.is_far(self.target.table.tree),
            Some(routes) => {
                let mut leaves = routes.partitions.leaves.iter();
                leaves.any(|leaf| txn.is_far(leaf.table.tree))
            }
        }
    }

    /// The tree and the key of a row, which stands behind the columns of its table; none of the empty side
    /// of an outer join.
    fn place(&self, row: &Row) -> Result<Option<(TreeId, Key)>> {
        let table = &self.target.table;
        let width = table.columns.len();
        let Datum::Bytea(key) = &row[width] else {
            return Ok(None);
        };
        let tree = match (&self.target.routes, row.get(width + 1)) {
            (Some(routes), Some(Datum::Oid(oid))) => {
                partition::leaf_of(&routes.partitions, *oid)?.1.table.tree
            }
            _ => table.tree,
        };
        Ok(Some((tree, key.to_vec())))
    }

    /// Takes rows of other nodes behind a first one, and locks them all; gives that.
    fn gather(&mut self, first: Row, strength: RowLock, cx: &mut Exec<'_>) -> Result<Row> {
        let mut by_tree: Vec<(TreeId, Vec<Key>)> = Vec::new();
        let mut known = HashSet::default();
        let mut bytes = 0;
        let mut next = Some(first);
        while let Some(row) = next.take() {
            let place = self
                .place(&row)?
                .filter(|(tree, _)| cx.host.txn().is_far(*tree));
            bytes += row_bytes(&row);
            self.rows.push_back(row);
            let Some((tree, key)) = place.filter(|place| known.insert(place.clone())) else {
                break;
            };
            match by_tree.iter_mut().find(|(known, _)| *known == tree) {
                Some((_, keys)) => keys.push(key),
                None => by_tree.push((tree, vec![key])),
            }
            if known.len() < ROWS_MAX && bytes < BYTES_MAX {
                next = self.input.next(cx)?;
            }
        }
        if known.len() > 1 {
            for (tree, keys) in by_tree {
                cx.host
                    .txn()
                    .lock_ahead(tree, &keys, strength, LockWait::Block)?;
            }
        }
        let first = self.rows.pop_front();
        first.ok_or_else(|| base::Error::internal("rows that were gathered are gone"))
    }
}
