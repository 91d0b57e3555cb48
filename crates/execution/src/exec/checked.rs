//! Constraints that can be deferred. Of unique ones, equal rows are looked for when the statement, or the
//! transaction, ends ([`catalog::checked`]).
//!
//! ```text
//! insert into t values (1)     lock 1 in the index;   is there another row?   no: nothing is left to do
//! insert into t values (1)     there is one           queue: [Equal 1]
//! update t set k = 2 …
//! commit                       lock 1;                is there another row?   no: fine; yes: 23505
//! ```
//!
//! # Why no two rows with equal values are committed
//! Whoever has written values, and has not given them up again, has found them in one row alone at a
//! time from which on it held their lock until it ended: either when it wrote them, or when it carried
//! out the event that it had queued, without which it does not commit. Of two transactions the later
//! one gets the lock when the first has ended, and what that has committed is what it looks at:
//! always the newest versions, at every isolation level. Locks are of one term, as the commit is, so
//! that another leader makes no difference. A rollback to a savepoint gives up a lock together with
//! what was written, or the event carried out, since.
//!
//! A row that another transaction is about to delete or to give other values is waited for by its own
//! lock. Who writes waits for nobody, so that equal rows may come and go in any order, as PostgreSQL
//! has it. What `session_replication_role` turns off in PostgreSQL, where a trigger looks for equal rows,
//! stays on here.

use std::rc::Rc;
use std::sync::Arc;

use base::engine::{LockWait, RowBatch, RowLock};
use base::{Error, Key, KeyRange, Result, SqlState};

use super::foreign::newest_row;
use super::new_row::{about, duplicate_key};
use super::{events, exclusion, foreign, rows, trigger, Exec};
use crate::state::constraints::Event;
use catalog::trigger::Events;
use catalog::{Index, Table};
use planner::plan::{Conflict, EntryRule, Target};
use types::Datum;

/// Looks are repeated so often while rows with the values come and go.
const LOOKS_MAX: usize = 100;

/// The values of a row in an index; none if one of them is NULL, so that no other row equals them.
fn values_of(table: &Table, index: &Index, row: &[Datum]) -> Result<Option<Key>> {
    let mut columns = index.columns.iter();
    if !index.nulls_equal && columns.any(|column| row[column.column].is_null()) {
        return Ok(None);
    }
    rows::index_key(table, index, row).map(Some)
}

/// A row was inserted, or is in the place of `old`: queues what its constraints have to look at, in
/// the order in which PostgreSQL names the triggers that do it there, and its AFTER triggers.
///
/// # Errors
/// As [`Exec::defer`]; 53200.
pub(super) fn queue(
    target: &Target,
    event: Events,
    old: Option<(&[u8], &[Datum])>,
    (key, row): (&[u8], &[Datum]),
    cx: &mut Exec<'_>,
) -> Result<()> {
    let constraints = |cx: &mut Exec<'_>| {
        let (table, entries) = (&target.table, &target.entries);
        written((table, entries), true, old, (key, row), cx)?;
        match (&target.rules, old) {
            (None, _) => {}
            (Some(rules), None) => foreign::inserted(rules, 0, key, row, cx)?,
            (Some(rules), Some((old_key, old))) => {
                foreign::updated(rules, 0, (old_key, key), (old, row), cx)?;
            }
        }
        written((table, entries), false, old, (key, row), cx)
    };
    let Some(triggers) = &target.triggers else {
        return constraints(cx);
    };
    let updated = match old {
        None => &[][..],
        Some(_) => &triggers.updated,
    };
    let rows = (old.map(|(_, old)| old), Some(row));
    trigger::after(triggers, event, updated, rows, cx, constraints)
}

/// A row was written, `primary`: as far as it concerns the primary key, or else all other constraints.
/// `old` is what it was before, with its key.
///
/// # Errors
/// As [`Exec::defer`]; 53200.
pub(super) fn written(
    (table, entries): (&Arc<Table>, &Rc<[EntryRule]>),
    primary: bool,
    old: Option<(&[u8], &[Datum])>,
    (key, row): (&[u8], &[Datum]),
    cx: &mut Exec<'_>,
) -> Result<()> {
    for (place, index) in table.indexes.iter().enumerate() {
        if index.exclusion.is_some() && index.is_deferrable() && !primary {
            let rule = entries.iter().position(|rule| rule.index == place);
            if let Some(rule) = rule {
                exclusion::written(entries, rule, table, old, (key, row), cx)?;
            }
            continue;
        }
        if index
            .checked
            .is_none_or(|checked| checked.primary != primary)
        {
            continue;
        }
        let Some(values) = values_of(table, index, row)? else {
            continue;
        };
        if let Some((_, old)) = old.filter(|(old_key, _)| *old_key == key) {
            if values_of(table, index, old)?.as_ref() == Some(&values) {
                continue;
            }
        }
        if !has_entry(index, &values, key, cx)? {
            return Err(made_anew(index));
        }
        let txn = cx.host.txn();
        if txn.lock_key(index.tree, &values, RowLock::Update, LockWait::Skip)?
            && holders(table, index, &values, cx)?.len() < 2
        {
            continue;
        }
        let event = Event::Equal {
            table: table.clone(),
            index: place,
            row: key.to_vec(),
            values,
        };
        match cx.host.shared().constraints.is_deferred_index(index) {
            true => cx.defer(event)?,
            false => events::wait(event, cx)?,
        }
    }
    Ok(())
}

/// Whether a row has these values now.
fn has_entry(index: &Index, values: &[u8], row: &[u8], cx: &mut Exec<'_>) -> Result<bool> {
    let mut batch = RowBatch::default();
    let entry = KeyRange::point(&[values, row].concat());
    let txn = cx.host.txn();
    txn.scan_newest(index.tree, &entry, 1, &mut batch)?;
    Ok(!batch.is_empty())
}

/// 55006 for a statement that writes a table whose index something that it has called has made anew: it
/// would look for equal rows in the old one.
fn made_anew(index: &Index) -> Error {
    let name = &index.name;
    let message =
        format!("index \"{name}\" was made anew by what a statement on its table has called");
    Error::new(SqlState::OBJECT_IN_USE, message)
}

/// The keys of rows that have these values now: two, where there are as many.
fn holders(table: &Table, index: &Index, values: &[u8], cx: &mut Exec<'_>) -> Result<Vec<Key>> {
    let mut batch = RowBatch::default();
    let mut keys = Vec::new();
    let mut rest = Some(KeyRange::prefix(values));
    while let Some(range) = rest.filter(|_| keys.len() < 2) {
        let txn = cx.host.txn();
        rest = txn.scan_newest(index.tree, &range, 2, &mut batch)?;
        for entry in batch.iter() {
            keys.push(rows::row_key_of_entry(table, index, entry)?.to_vec());
        }
    }
    keys.truncate(2);
    Ok(keys)
}

/// Looks whether another row has the values of one that has been written, and sees to it that no other
/// transaction adds any. If it is gone, or has other values now, there is nothing to look for: who wrote
/// those has queued an event of its own.
///
/// # Errors
/// 23505.
pub(super) fn check(
    table: &Table,
    index: usize,
    (row, values): (&[u8], &[u8]),
    cx: &mut Exec<'_>,
) -> Result<()> {
    let index = &table.indexes[index];
    let wait = LockWait::Block;
    if !has_entry(index, values, row, cx)? {
        return Ok(());
    }
    let (mut looked_at, mut locked) = (Vec::new(), false);
    for _ in 0..LOOKS_MAX {
        let found = holders(table, index, values, cx)?;
        if found.len() < 2 {
            if locked {
                return Ok(());
            }
            // Whoever has the lock may be about to add the values: after that they are looked for again.
            let txn = cx.host.txn();
            txn.lock_key(index.tree, values, RowLock::Update, wait)?;
            (looked_at, locked) = (Vec::new(), true);
            continue;
        }
        if found == looked_at {
            let Some(row) = newest_row(table, &found[0], cx)? else {
                continue;
            };
            return Err(duplicate_key(table, index, &row, cx));
        }
        // Whoever is about to take one away has it locked.
        for key in &found {
            let txn = cx.host.txn();
            txn.lock_key(table.tree, key, RowLock::KeyShare, wait)?;
        }
        looked_at = found;
    }
    Err(Error::serialization(
        "could not serialize access due to concurrent update",
    ))
}

/// Refuses an index for ON CONFLICT that may have equal rows: one of those named, or any, where none
/// are. One whose values are taken is all that matters if it is older: indexes are asked one after the
/// other.
///
/// # Errors
/// 55000.
pub(super) fn refuse_as_arbiter(
    table: &Table,
    conflict: Option<&Conflict>,
    taken: Option<usize>,
    cx: &Exec<'_>,
) -> Result<()> {
    let Some(conflict) = conflict else {
        return Ok(());
    };
    let named = conflict.indexes.as_ref();
    let mut indexes = table.indexes.iter().enumerate();
    let refused = indexes.find(|(place, index)| {
        index.is_deferrable() && named.is_none_or(|named| named.contains(place))
    });
    let Some((_, index)) = refused else {
        return Ok(());
    };
    if taken.is_some_and(|taken| table.indexes[taken].oid < index.oid) {
        return Ok(());
    }
    let message = "ON CONFLICT does not support deferrable unique constraints/exclusion \
                   constraints as arbiters";
    let mut error = Error::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message);
    error.fields_mut().constraint = Some(index.name.clone());
    Err(about(error, table, cx))
}

/// The values that more than one row of a table has in an index; nobody else writes the table.
///
/// # Errors
/// What reading raises.
pub fn find_equal(table: &Table, index: &Index, cx: &mut Exec<'_>) -> Result<Option<Vec<Datum>>> {
    let mut batch = RowBatch::default();
    let mut rest = Some(KeyRange::all());
    let (mut last, mut is_null) = (None, false);
    while let Some(range) = rest {
        let txn = cx.host.txn();
        rest = txn.scan_newest(index.tree, &range, usize::MAX, &mut batch)?;
        for entry in batch.iter() {
            cx.tick()?;
            let row_key = rows::row_key_of_entry(table, index, entry)?;
            let values = &entry.0[..entry.0.len() - row_key.len()];
            if last.as_deref() != Some(values) {
                (last, is_null) = (Some(values.to_vec()), false);
                continue;
            }
            if is_null {
                continue;
            }
            let Some(row) = newest_row(table, row_key, cx)? else {
                continue;
            };
            is_null = values_of(table, index, &row)?.is_none();
            if !is_null {
                let columns = index.columns.iter();
                return Ok(Some(columns.map(|own| row[own.column].clone()).collect()));
            }
        }
    }
    Ok(None)
}
