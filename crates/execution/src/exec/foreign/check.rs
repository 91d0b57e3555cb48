//! Whether a row refers to something that is there.
//!
//! The lock is the look: [`Locking::lock_row`](base::engine::Locking::lock_row) takes
//! FOR KEY SHARE on the key and says what its newest version is. Only who deletes the row or
//! changes its key is waited for, never who changes its other columns. A row that another
//! transaction is inserting is not there, and is not waited for either.

use base::engine::{Isolation, LockWait, LockedRow, RowBatch, RowLock};
use base::{Error, Key, KeyRange, Result, TreeId};

use super::{
    owner, parent_key, parent_values, shown, violation, where_values_are, within, Event, Link,
    Rules,
};
use crate::exec::write::as_only_locked;
use crate::exec::{long, partition, rows, Exec};
use catalog::{Index, Table};
use types::Datum;

/// Looks are repeated so often while rows move from key to key.
const LOOKS_MAX: usize = 100;

/// Checks that values of the child refer to a row, and keeps it there.
///
/// # Errors
/// 23503 when there is none.
pub fn reference(rules: &Rules, link: usize, values: &[Datum], cx: &mut Exec<'_>) -> Result<()> {
    refuse_mixed(rules, &rules.links[link], values, cx)?;
    match is_met(rules, link, values, cx)? {
        true => Ok(()),
        false => Err(missing(rules, &rules.links[link], values, cx)),
    }
}

/// Whether values of the child refer to a row that is there; keeps it there.
///
/// # Errors
/// What looking raises.
pub fn is_met(rules: &Rules, link: usize, values: &[Datum], cx: &mut Exec<'_>) -> Result<bool> {
    if values.iter().any(Datum::is_null) {
        return Ok(false);
    }
    let link = &rules.links[link];
    look_up(rules, link, cx)?;
    let Some(key) = parent_key(link, rules, values, cx)? else {
        return Ok(false);
    };
    let place = match &link.partitions {
        None => Some(link.parent_index(rules)),
        Some(_) => match parent_values(link, rules, values, cx)? {
            Some(values) => where_values_are(link, rules, &values, cx)?,
            None => None,
        },
    };
    let Some(place) = place else {
        return Ok(false);
    };
    is_there(place, &key, cx).map_err(|e| within(e, || query(rules, link, cx)))
}

/// So many references are looked at together.
const AHEAD_MAX: usize = 256;

/// Locks the rows that the references which wait first refer to, where another node has them: those by its
/// primary key of a table. How many events there is nothing more to look ahead for.
///
/// # Errors
/// What looking raises.
pub fn lock_ahead(cx: &mut Exec<'_>) -> Result<usize> {
    if cx.host.txn().isolation() != Isolation::ReadCommitted {
        return Ok(usize::MAX);
    }
    let first = cx.events.first(AHEAD_MAX);
    let mut trees: Vec<_> = first.filter_map(parent_tree).collect();
    trees.dedup();
    if !trees.iter().any(|tree| cx.host.txn().is_far(*tree)) {
        return Ok(cx.events.first(AHEAD_MAX).count());
    }
    let first = cx.events.first(AHEAD_MAX).map(|event| match event {
        Event::Refers {
            rules,
            link,
            values,
            ..
        } if parent_tree(event).is_some() => Some((rules.clone(), *link, values.clone())),
        _ => None,
    });
    let first: Vec<_> = first.collect();
    let mut by_tree: Vec<(TreeId, Vec<Key>)> = Vec::new();
    for (rules, link, values) in first.iter().flatten() {
        let link = &rules.links[*link];
        let (table, _) = link.parent_index(rules);
        if values.iter().any(Datum::is_null) || !cx.host.txn().is_far(table.tree) {
            continue;
        }
        let Some(key) = parent_key(link, rules, values, cx)? else {
            continue;
        };
        match by_tree.iter_mut().find(|(tree, _)| *tree == table.tree) {
            Some((_, keys)) if keys.contains(&key) => {}
            Some((_, keys)) => keys.push(key),
            None => by_tree.push((table.tree, vec![key])),
        }
    }
    for (tree, keys) in by_tree.into_iter().filter(|(_, keys)| keys.len() > 1) {
        let (strength, wait) = (RowLock::KeyShare, LockWait::Skip);
        cx.host.txn().lock_ahead(tree, &keys, strength, wait)?;
    }
    Ok(first.len())
}

/// The tree in which a reference is looked for by the primary key of one table.
fn parent_tree(event: &Event) -> Option<TreeId> {
    let Event::Refers { rules, link, .. } = event else {
        return None;
    };
    let link = &rules.links[*link];
    let (table, index) = link.parent_index(rules);
    (link.partitions.is_none() && index.primary).then_some(table.tree)
}

/// MATCH FULL: all columns are NULL, or none is.
fn refuse_mixed(rules: &Rules, link: &Link, values: &[Datum], cx: &Exec<'_>) -> Result<()> {
    if !values.iter().any(Datum::is_null) {
        return Ok(());
    }
    let detail = "MATCH FULL does not allow mixing of null and nonnull key values.".to_owned();
    let child = &rules.tables[link.child].table;
    let about = (&**child, &*link.key.name);
    Err(violation(about, message(rules, link), detail, cx))
}

fn message(rules: &Rules, link: &Link) -> String {
    format!(
        "insert or update on table \"{}\" violates foreign key constraint \"{}\"",
        rules.tables[link.child].table.name, link.key.name
    )
}

fn missing(rules: &Rules, link: &Link, values: &[Datum], cx: &Exec<'_>) -> Error {
    let child = &rules.tables[link.child].table;
    let parent = &rules.tables[link.parent].table;
    let detail = format!(
        "{} is not present in table \"{}\".",
        shown(child, &link.key.columns, values, cx),
        parent.name
    );
    violation((child, &link.key.name), message(rules, link), detail, cx)
}

/// 42501 unless the owner of the parent may look for its rows.
pub(super) fn look_up(rules: &Rules, link: &Link, cx: &Exec<'_>) -> Result<()> {
    let needs = owner::Need::to_lock(&link.key.referenced);
    let parent = &rules.tables[link.parent].table;
    owner::check(parent, &needs, |cx| query(rules, link, cx), cx)
}

/// The query with which PostgreSQL looks.
fn query(rules: &Rules, link: &Link, cx: &Exec<'_>) -> String {
    let parent = &rules.tables[link.parent].table;
    let conditions: Vec<_> = (1..)
        .zip(&link.columns)
        .map(|(number, column)| {
            let name = super::quoted(&parent.columns[column.parent].name);
            format!("{name} OPERATOR(pg_catalog.=) ${number}")
        })
        .collect();
    format!(
        "SELECT 1 FROM {}{} x WHERE {} FOR KEY SHARE OF x",
        super::only(parent),
        super::qualified(parent, cx),
        conditions.join(" AND ")
    )
}

/// Whether a table has a row under a key of a unique index; locks it.
pub fn is_there((table, index): (&Table, &Index), key: &[u8], cx: &mut Exec<'_>) -> Result<bool> {
    if index.primary {
        if !in_snapshot(table.tree, key, cx)? {
            return Ok(false);
        }
        let locked = lock(table.tree, key, &mut Vec::new(), cx).map_err(as_only_locked)?;
        if locked == LockedRow::Gone && table.partition_of.is_some() {
            partition::check_not_moved(table, key, cx)?;
        }
        return Ok(!matches!(locked, LockedRow::Gone | LockedRow::Skipped));
    }
    let (mut batch, mut newest) = (RowBatch::default(), Vec::new());
    let range = KeyRange::prefix(key);
    for _ in 0..LOOKS_MAX {
        cx.host
            .txn()
            .scan_newest(index.tree, &range, 1, &mut batch)?;
        if batch.is_empty() {
            return Ok(false);
        }
        let row_key = rows::row_key_of_entry(table, index, batch.get(0))?;
        if !in_snapshot(table.tree, row_key, cx)? {
            return Ok(false);
        }
        match lock(table.tree, row_key, &mut newest, cx).map_err(as_only_locked)? {
            LockedRow::Unchanged => return Ok(true),
            LockedRow::Changed => {
                let row = rows::decode(table, &[], &newest, row_key, false)?;
                if rows::index_key(table, index, &row)? == key {
                    return Ok(true);
                }
            }
            LockedRow::Gone | LockedRow::Skipped => {}
        }
    }
    Err(Error::serialization(
        "could not serialize access due to concurrent update",
    ))
}

/// Above READ COMMITTED a row must be in the transaction's snapshot.
pub(super) fn in_snapshot(tree: TreeId, key: &[u8], cx: &mut Exec<'_>) -> Result<bool> {
    match cx.host.txn().isolation() {
        Isolation::ReadCommitted => Ok(true),
        _ => cx.host.txn().get(tree, key, &mut Vec::new()),
    }
}

fn lock(tree: TreeId, key: &[u8], newest: &mut Vec<u8>, cx: &mut Exec<'_>) -> Result<LockedRow> {
    let strength = RowLock::KeyShare;
    let locked = cx
        .host
        .txn()
        .lock_row(tree, key, strength, LockWait::Skip, newest)?;
    if locked != LockedRow::Skipped {
        return Ok(locked);
    }
    // Who holds it inserts the row, or deletes it, or changes its key.
    let mut batch = RowBatch::default();
    cx.host
        .txn()
        .scan_newest(tree, &KeyRange::point(key), 1, &mut batch)?;
    if batch.is_empty() {
        return Ok(LockedRow::Gone);
    }
    cx.host
        .txn()
        .lock_row(tree, key, strength, LockWait::Block, newest)
}

/// Checks the rows that were there when a constraint was made. Nobody else can write either table.
///
/// # Errors
/// 23503 for the first that refers to nothing.
pub fn check_existing(rules: &Rules, link: usize, cx: &mut Exec<'_>) -> Result<()> {
    let link = &rules.links[link];
    let child = &rules.tables[link.child].table;
    let (mut batch, mut found) = (RowBatch::default(), RowBatch::default());
    let mut rest = Some(KeyRange::all());
    let mut last = None;
    while let Some(range) = rest {
        rest = cx
            .host
            .txn()
            .scan_newest(child.tree, &range, usize::MAX, &mut batch)?;
        for (key, bytes) in batch.iter() {
            cx.tick()?;
            let mut row = rows::decode(child, &[], bytes, key, false)?;
            for column in &link.columns {
                row[column.child] = long::read(&row[column.child], cx.host.txn())?;
            }
            let values = link.child_values(&row);
            let nulls = values.iter().filter(|value| value.is_null()).count();
            if nulls == values.len() || (nulls > 0 && !link.key.match_full) {
                continue;
            }
            refuse_mixed(rules, link, &values, cx)?;
            let key = parent_key(link, rules, &values, cx)?;
            if key.is_some() && key == last {
                continue;
            }
            found.clear();
            let fitted = match &key {
                Some(_) => parent_values(link, rules, &values, cx)?,
                None => None,
            };
            let place = match fitted {
                Some(values) => where_values_are(link, rules, &values, cx)?,
                None => None,
            };
            if let (Some(key), Some((parent, index))) = (&key, place) {
                let (tree, range) = match index.primary {
                    true => (parent.tree, KeyRange::point(key)),
                    false => (index.tree, KeyRange::prefix(key)),
                };
                cx.host.txn().scan_newest(tree, &range, 1, &mut found)?;
            }
            if found.is_empty() {
                return Err(missing(rules, link, &values, cx));
            }
            last = key;
        }
    }
    Ok(())
}
