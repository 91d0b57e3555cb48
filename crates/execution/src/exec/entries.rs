//! Entries of computed indexes, which are made where rows are written ([`catalog::computed`]).
//!
//! ```text
//! insert   row, then its entries       a duplicate: entries and row are taken back, ON CONFLICT decides
//! update   row, then entries that changed
//! delete   row, then its entries
//! ```
//!
//! # Invariants
//! - An entry is written and deleted by whoever has its row locked, in the same transaction: so the
//!   entries of a row that is locked are those of its newest version.
//! - An entry that ends in the row's key is nobody else's, so it needs no lock. One that does not
//!   is locked like the key of a row, also when it goes: nobody reports a duplicate of a value that
//!   is about to go.
//! - A value that an UPDATE leaves alone costs no entry: what did not change is not written.

use base::engine::{Inserted, LockWait, LockedRow, RowBatch, RowLock};
use base::limits::KEY_BYTES_MAX;
use base::row::{Row as StoredRow, RowBuilder};
use base::{Error, Key, KeyRange, Result, SqlState};

use super::exclusion::{self, Met};
use super::program::Evaluate;
use super::{inverted, long, rows, Exec};
use catalog::{Index, Table};
use planner::plan::{EntryRule, KeyValue};
use types::{Datum, TypeId};

/// One entry.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    key: Key,
    row: Vec<u8>,
    /// Whether it holds the index's values alone, so that there can be one only.
    alone: bool,
}

/// A row cannot have its entry, because another row has one with the same keys, or one that conflicts.
#[derive(Debug)]
pub struct Taken {
    /// The place of the index.
    pub index: usize,
    /// The values of its keys with their types.
    pub values: Vec<(TypeId, Datum)>,
    /// What it conflicts with, if that is a matter of an exclusion constraint.
    pub met: Option<Met>,
}

/// The values of the keys in a row, with their types, as its entry has them.
///
/// # Errors
/// What computing them raises.
pub fn values(rule: &EntryRule, row: &[Datum], cx: &mut Exec<'_>) -> Result<Vec<(TypeId, Datum)>> {
    let mut values = Vec::with_capacity(rule.keys.len());
    for (value, order) in &rule.keys {
        let value = match value {
            KeyValue::Column(place) => long::read(&row[*place], cx.host.txn())?,
            KeyValue::Program(program) => program.eval(cx, row)?,
        };
        values.push((order.type_id, long::read(&value, cx.host.txn())?));
    }
    Ok(values)
}

/// The keys alone, and whether one of them is NULL; none if the row has no entry.
fn prefix(rule: &EntryRule, row: &[Datum], cx: &mut Exec<'_>) -> Result<Option<(Key, bool)>> {
    if let Some(condition) = &rule.condition {
        if !condition.test(cx, row)? {
            return Ok(None);
        }
    }
    let mut key = Key::new();
    let mut has_null = false;
    for ((_, value), (_, order)) in values(rule, row, cx)?.iter().zip(&rule.keys) {
        has_null |= value.is_null();
        rows::put_key(*order, value, &mut key)?;
    }
    Ok(Some((key, has_null)))
}

/// The entries of a row: one, or none, but for an inverted index.
fn entries_of(
    rule: &EntryRule,
    table: &Table,
    row_key: &[u8],
    row: &[Datum],
    cx: &mut Exec<'_>,
) -> Result<Vec<Entry>> {
    let index = &table.indexes[rule.index];
    if index.is_inverted() {
        return items_of(rule, table, row_key, row, cx);
    }
    let Some((mut key, has_null)) = prefix(rule, row, cx)? else {
        return Ok(Vec::new());
    };
    let alone = index.unique && (index.nulls_equal || !has_null);
    let row = match alone {
        true => RowBuilder::new(1).value(row_key).finish(),
        false => {
            key.extend_from_slice(row_key);
            RowBuilder::new(0).finish()
        }
    };
    check_length(index, &key)?;
    Ok(vec![Entry { key, row, alone }])
}

/// The entries of an inverted index, in the order of their keys.
fn items_of(
    rule: &EntryRule,
    table: &Table,
    row_key: &[u8],
    row: &[Datum],
    cx: &mut Exec<'_>,
) -> Result<Vec<Entry>> {
    if let Some(condition) = &rule.condition {
        if !condition.test(cx, row)? {
            return Ok(Vec::new());
        }
    }
    let index = &table.indexes[rule.index];
    let values = values(rule, row, cx)?;
    let prefixes = inverted::prefixes(table, index, &values)?;
    let entries = prefixes.into_iter().map(|mut key| {
        key.extend_from_slice(row_key);
        check_length(index, &key)?;
        Ok(Entry {
            key,
            row: RowBuilder::new(0).finish(),
            alone: false,
        })
    });
    entries.collect()
}

pub(super) fn check_length(index: &Index, key: &Key) -> Result<()> {
    if key.len() <= KEY_BYTES_MAX {
        return Ok(());
    }
    let message = format!(
        "index row size {} exceeds maximum {KEY_BYTES_MAX} for index \"{}\"",
        key.len(),
        index.name
    );
    Err(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message))
}

fn taken(
    rule: &EntryRule,
    table: &Table,
    row: &[Datum],
    met: Option<Met>,
    cx: &mut Exec<'_>,
) -> Result<Taken> {
    Ok(Taken {
        index: rule.index,
        values: exclusion::values(rule, &table.indexes[rule.index], row, cx)?,
        met,
    })
}

/// Writes the entries of a row that was inserted. If an index has its keys already, none of them is
/// left.
///
/// # Errors
/// What computing them raises; 54000 for keys that are too long; what the engine raises.
pub fn insert(
    rules: &[EntryRule],
    table: &Table,
    row_key: &[u8],
    row: &[Datum],
    cx: &mut Exec<'_>,
) -> Result<Option<Taken>> {
    for (place, rule) in rules.iter().enumerate() {
        let index = &table.indexes[rule.index];
        let met = exclusion::met(rule, table, row_key, row, cx)?;
        let mut is_free = met.is_none();
        if is_free {
            for entry in entries_of(rule, table, row_key, row, cx)? {
                is_free = is_free && put(index, &entry, cx)?;
            }
        }
        if is_free {
            continue;
        }
        for rule in &rules[..place] {
            let index = &table.indexes[rule.index];
            for entry in entries_of(rule, table, row_key, row, cx)? {
                cx.host.txn().delete(index.tree, &entry.key)?;
            }
        }
        return taken(rule, table, row, met, cx).map(Some);
    }
    Ok(None)
}

/// Moves the entries of a row that was replaced from its old key and values to its new ones.
///
/// # Errors
/// As [`insert`].
pub fn update(
    rules: &[EntryRule],
    table: &Table,
    (old_key, old): (&[u8], &[Datum]),
    (new_key, new): (&[u8], &[Datum]),
    cx: &mut Exec<'_>,
) -> Result<Option<Taken>> {
    for rule in rules {
        let index = &table.indexes[rule.index];
        let uses = index.computed.iter().flat_map(|computed| &computed.uses);
        let mut uses = uses.copied();
        if old_key == new_key && uses.all(|place| old[place] == new[place]) {
            continue;
        }
        let before = entries_of(rule, table, old_key, old, cx)?;
        let after = entries_of(rule, table, new_key, new, cx)?;
        if before == after {
            continue;
        }
        for entry in not_among(&before, &after) {
            take_away(index, entry, cx)?;
        }
        if let Some(met) = exclusion::met(rule, table, new_key, new, cx)? {
            return taken(rule, table, new, Some(met), cx).map(Some);
        }
        for entry in not_among(&after, &before) {
            if !put(index, entry, cx)? {
                return taken(rule, table, new, None, cx).map(Some);
            }
        }
    }
    Ok(None)
}

/// The entries of one list, in the order of their keys, that another such list has not.
fn not_among<'e>(own: &'e [Entry], others: &'e [Entry]) -> impl Iterator<Item = &'e Entry> {
    own.iter().filter(|entry| {
        let same = others.binary_search_by(|other| other.key.cmp(&entry.key));
        same.ok().is_none_or(|place| others[place] != **entry)
    })
}

/// Deletes the entries of a row that was deleted.
///
/// # Errors
/// As [`insert`].
pub fn delete(
    rules: &[EntryRule],
    table: &Table,
    row_key: &[u8],
    row: &[Datum],
    cx: &mut Exec<'_>,
) -> Result<()> {
    for rule in rules {
        let index = &table.indexes[rule.index];
        for entry in entries_of(rule, table, row_key, row, cx)? {
            take_away(index, &entry, cx)?;
        }
    }
    Ok(())
}

/// The key of the row that has the entry which `row` would have now, or conflicts with it, whatever the
/// snapshot shows.
///
/// # Errors
/// As [`insert`]; XX001 for a malformed entry.
pub fn existing_key(
    rule: &EntryRule,
    table: &Table,
    row: &[Datum],
    cx: &mut Exec<'_>,
) -> Result<Option<Key>> {
    let index = &table.indexes[rule.index];
    if index.exclusion.is_some() {
        let met = exclusion::met(rule, table, &[], row, cx)?;
        return Ok(met.and_then(|met| met.key));
    }
    let key = match prefix(rule, row, cx)? {
        Some((key, has_null)) if index.nulls_equal || !has_null => key,
        _ => return Ok(None),
    };
    let mut batch = RowBatch::default();
    let (tree, range) = (index.tree, KeyRange::prefix(&key));
    cx.host.txn().scan_newest(tree, &range, 1, &mut batch)?;
    if batch.is_empty() {
        return Ok(None);
    }
    let row = StoredRow::parse(batch.get(0).1)?;
    let key = row
        .column(0)
        .ok_or_else(|| Error::corrupted("an entry that leads to no row"))?;
    Ok(Some(key.to_vec()))
}

/// Writes an entry; false if there is one.
fn put(index: &Index, entry: &Entry, cx: &mut Exec<'_>) -> Result<bool> {
    let inserted = match entry.alone {
        true => cx.host.txn().insert(index.tree, &entry.key, &entry.row)?,
        false => cx
            .host
            .txn()
            .insert_new(index.tree, &entry.key, &entry.row)?,
    };
    Ok(matches!(inserted, Inserted::Done))
}

fn take_away(index: &Index, entry: &Entry, cx: &mut Exec<'_>) -> Result<()> {
    if entry.alone {
        let (strength, wait) = (RowLock::Update, LockWait::Block);
        let mut newest = Vec::new();
        match cx
            .host
            .txn()
            .lock_row(index.tree, &entry.key, strength, wait, &mut newest)?
        {
            LockedRow::Unchanged | LockedRow::Changed => {}
            LockedRow::Gone | LockedRow::Skipped => {
                let message = format!("an entry of index \"{}\" is not there", index.name);
                return Err(Error::internal(message));
            }
        }
    }
    cx.host.txn().delete(index.tree, &entry.key)
}
