//! ORDER BY.

use std::cmp::Ordering;

use base::{coro, Result};

use super::cursor::{open, Cursor};
use super::Exec;
use crate::exec::program::Evaluate;
use crate::kept::{RowStore, StoredRows};
use planner::plan::{Plan, Row, SortKey};
use types::{self, Datum, TypeId};

/// A column to sort by: place, type, descending, NULLs first.
pub type SortColumn = (usize, TypeId, bool, bool);

/// What comparing two rows counts for, in the units of [`coro::work`].
const COMPARE_WORK: usize = 32;

/// Sorts rows by columns; rows that are equal there keep their order.
///
/// # Errors
/// The pending interrupt.
pub fn sort_rows(rows: &mut [Row], columns: &[SortColumn]) -> Result<()> {
    let order = |a: &Row, b: &Row| {
        coro::work_or_unwind(COMPARE_WORK);
        for (place, ty, descending, nulls_first) in columns {
            let order = compare(*ty, &a[*place], &b[*place], *descending, *nulls_first);
            if order.is_ne() {
                return order;
            }
        }
        Ordering::Equal
    };
    Ok(coro::interruptible(|| rows.sort_by(order))?)
}

fn compare(ty: TypeId, a: &Datum, b: &Datum, descending: bool, nulls_first: bool) -> Ordering {
    match (a.is_null(), b.is_null()) {
        (true, true) => Ordering::Equal,
        (true, false) if nulls_first => Ordering::Less,
        (true, false) => Ordering::Greater,
        (false, true) if nulls_first => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) if descending => types::compare(ty, b, a),
        (false, false) => types::compare(ty, a, b),
    }
}

/// The rows of a [`Plan::Sort`].
pub struct SortCursor<'p> {
    input: &'p Plan,
    keys: &'p [SortKey],
    rows: Option<StoredRows>,
}

impl<'p> SortCursor<'p> {
    /// A cursor over the rows of `input`, sorted.
    pub fn new(input: &'p Plan, keys: &'p [SortKey]) -> SortCursor<'p> {
        SortCursor {
            input,
            keys,
            rows: None,
        }
    }

    fn compute(&self, cx: &mut Exec<'_>) -> Result<RowStore> {
        let mut rows = RowStore::of("A sort");
        let mut width = 0;
        let mut input = open(self.input, cx.measures.as_ref());
        while let Some(mut row) = input.next(cx)? {
            width = row.len();
            for key in self.keys {
                let value = key.value.eval(cx, &row[..width])?;
                row.push(value);
            }
            rows.push(row)?;
            cx.check_held(rows.bytes())?;
        }
        let columns: Vec<_> = self
            .keys
            .iter()
            .enumerate()
            .map(|(place, key)| (width + place, key.ty, key.descending, key.nulls_first))
            .collect();
        sort_rows(rows.rows_mut(), &columns)?;
        for row in rows.rows_mut() {
            row.truncate(width);
        }
        Ok(rows)
    }
}

impl Cursor for SortCursor<'_> {
    fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        if self.rows.is_none() {
            self.rows = Some(self.compute(cx)?.into_iter());
        }
        Ok(self.rows.as_mut().and_then(Iterator::next))
    }
}
