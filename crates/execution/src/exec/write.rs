//! INSERT, UPDATE, DELETE and row locks.
//!
//! UPDATE and DELETE scan with the statement's snapshot, then lock each row. At READ COMMITTED a
//! row that was changed meanwhile is looked at again: if its newest version still meets the
//! condition, it is that version that is changed (PostgreSQL 15 manual, section 13.2.1). A row that
//! a join gives twice is changed once: to the second lock it is gone.

use base::engine::{Inserted, Isolation, LockWait, LockedRow, RowBatch, RowLock};
use base::{Error, Key, KeyRange, Result, SequenceId, SqlState, TreeId};

use super::cursor::{open, open_to_lock, Cursor};
use super::entries::{self, Taken};
use super::{foreign, index_text, long, rows, Exec};
use crate::exec::program::Evaluate;
use catalog::{Index, Table};
use planner::plan::permit::PermittedPlan;
use planner::plan::EntryRule;
use planner::plan::Program;
use planner::plan::{Conflict, Delete, Insert, LockRows, Plan, PolicyCheck, Row, Target, Update};
use types::{self, Datum};

/// The rows that a writing node returns: none without RETURNING, but all are written.
fn returned(target: &Target, row: &[Datum], cx: &mut Exec<'_>) -> Result<Option<Row>> {
    match &target.returning {
        None => Ok(None),
        Some(columns) => columns
            .iter()
            .map(|column| column.eval(cx, row))
            .collect::<Result<_>>()
            .map(Some),
    }
}

/// Computes the generated columns of a new row, and checks it against policies, NOT NULL, CHECK and
/// the conditions of views.
fn check_row(
    target: &Target,
    policies: &[PolicyCheck],
    row: &mut [Datum],
    cx: &mut Exec<'_>,
) -> Result<()> {
    for (place, value) in &target.generated {
        row[*place] = value.eval(cx, row)?;
    }
    check_policies(&target.table, policies, "", row, cx)?;
    check_values(&target.table, &target.checks, row, cx)?;
    for (view, condition) in &target.view_checks {
        // Here NULL is one: the view would not show the row.
        if !condition.test(cx, row)? {
            let message = format!("new row violates check option for view \"{view}\"");
            return Err(failing_row(
                Error::new(SqlState::of("44000"), message),
                &target.table,
                row,
                cx,
            ));
        }
    }
    Ok(())
}

/// 42501 for a row that policies do not let be written. What it holds is not said.
fn check_policies(
    table: &Table,
    policies: &[PolicyCheck],
    which: &str,
    row: &[Datum],
    cx: &mut Exec<'_>,
) -> Result<()> {
    for check in policies {
        if check.condition.test(cx, row)? {
            continue;
        }
        let named = check.policy.as_ref();
        let named = named.map_or_else(String::new, |name| format!(" \"{name}\""));
        return Err(Error::new(
            SqlState::INSUFFICIENT_PRIVILEGE,
            format!(
                "new row violates row-level security policy{named}{which} for table \"{}\"",
                table.name
            ),
        ));
    }
    Ok(())
}

/// Checks the values of a row against NOT NULL and these CHECK constraints.
pub(super) fn check_values(
    table: &Table,
    checks: &[(String, Program)],
    row: &[Datum],
    cx: &mut Exec<'_>,
) -> Result<()> {
    for (column, value) in table.columns.iter().zip(row) {
        if column.not_null && value.is_null() && !column.dropped {
            let error = Error::new(
                SqlState::NOT_NULL_VIOLATION,
                format!(
                    "null value in column \"{}\" of relation \"{}\" violates not-null constraint",
                    column.name, table.name
                ),
            );
            let mut error = failing_row(error, table, row, cx);
            error.fields_mut().column = Some(column.name.clone());
            return Err(about(error, table, cx));
        }
    }
    for (name, condition) in checks {
        // NULL is no violation.
        if condition.eval(cx, row)? == Datum::Bool(false) {
            let error = Error::new(
                SqlState::CHECK_VIOLATION,
                format!(
                    "new row for relation \"{}\" violates check constraint \"{name}\"",
                    table.name
                ),
            );
            let mut error = failing_row(error, table, row, cx);
            error.fields_mut().constraint = Some(name.clone());
            return Err(about(error, table, cx));
        }
    }
    Ok(())
}

/// The same error, about a table.
pub(super) fn about(mut error: Error, table: &Table, cx: &Exec<'_>) -> Error {
    let schema = cx.catalog.schema_by_oid(table.schema);
    error.fields_mut().schema = schema.map(|schema| schema.name.clone());
    error.fields_mut().table = Some(table.name.clone());
    error
}

/// The same error with the row that fails, as far as the role may see its columns.
fn failing_row(error: Error, table: &Table, row: &[Datum], cx: &Exec<'_>) -> Error {
    const VALUE_CHARS_MAX: usize = 64;
    // Of a table that guards its rows, no column.
    if !cx.may_see(table, std::iter::empty()) {
        return error;
    }
    let sees_all = cx.may_see(table, std::iter::once(usize::MAX));
    let (mut names, mut values) = (Vec::new(), Vec::new());
    for (place, (column, value)) in table.columns.iter().zip(row).enumerate() {
        // Who has given a value may be shown it.
        let sees = sees_all
            || cx.permit.gives(table.oid, place as u32 + 1)
            || cx.may_see(table, std::iter::once(place));
        if column.dropped || !sees {
            continue;
        }
        names.push(column.name.as_str());
        values.push(match value {
            Datum::Null => "null".to_owned(),
            value => {
                let text = types::output(cx.context, column.type_id, value).unwrap_or_default();
                match text.char_indices().nth(VALUE_CHARS_MAX) {
                    Some((end, _)) => format!("{}...", &text[..end]),
                    None => text,
                }
            }
        });
    }
    let (names, values) = (names.join(", "), values.join(", "));
    match (sees_all, names.is_empty()) {
        (true, _) => error.with_detail(format!("Failing row contains ({values}).")),
        (false, true) => error,
        (false, false) => {
            error.with_detail(format!("Failing row contains ({names}) = ({values})."))
        }
    }
}

/// 23505 for a row whose key in an index of columns is taken.
fn duplicate_key(table: &Table, index: &Index, row: &[Datum], cx: &Exec<'_>) -> Error {
    let columns = index.columns.iter().map(|column| column.column);
    let values: Vec<_> = columns
        .map(|place| (table.columns[place].type_id, row[place].clone()))
        .collect();
    taken_key(table, index, &values, cx)
}

/// 23505 for a row whose key in an index, with these values, is taken.
fn taken_key(
    table: &Table,
    index: &Index,
    values: &[(types::TypeId, Datum)],
    cx: &Exec<'_>,
) -> Error {
    let mut error = Error::new(
        SqlState::UNIQUE_VIOLATION,
        format!(
            "duplicate key value violates unique constraint \"{}\"",
            index.name
        ),
    );
    let seen: Option<Vec<_>> = (0..index.key_count())
        .map(|place| index.key_column(place))
        .collect();
    // Whose values an expression shows is not asked: only who sees the whole table sees it.
    let mut seen = seen
        .unwrap_or_else(|| vec![table.columns.len()])
        .into_iter();
    if cx.may_see(table, &mut seen) {
        error = error.with_detail(format!(
            "{} already exists.",
            key_text(table, index, values, cx)
        ));
    }
    error.fields_mut().constraint = Some(index.name.clone());
    about(error, table, cx)
}

/// `Key (names)=(values)`.
pub fn key_text(
    table: &Table,
    index: &Index,
    values: &[(types::TypeId, Datum)],
    cx: &Exec<'_>,
) -> String {
    let values = values.iter().map(|(ty, value)| match value {
        Datum::Null => "null".to_owned(),
        value => types::output(cx.context, *ty, value).unwrap_or_default(),
    });
    format!(
        "Key ({})=({})",
        index_text::key_names(cx, table, index),
        values.collect::<Vec<_>>().join(", ")
    )
}

/// The key for a new row.
fn new_key(table: &Table, row: &[Datum], cx: &mut Exec<'_>) -> Result<Key> {
    match table.primary_key() {
        Some(index) => rows::index_key(table, index, row),
        None => {
            let number = cx.session.next_number(SequenceId(u64::from(table.oid)))?;
            Ok(number.to_be_bytes().to_vec())
        }
    }
}

fn index_of(table: &Table, tree: TreeId) -> Result<usize> {
    let mut indexes = table.indexes.iter();
    indexes
        .position(|index| index.tree == tree)
        .ok_or_else(|| Error::internal(format!("tree {tree} is no index of {}", table.name)))
}

/// The rows that an INSERT returns.
pub struct InsertCursor<'p> {
    insert: &'p Insert,
    input: Box<dyn Cursor + 'p>,
}

impl<'p> InsertCursor<'p> {
    /// The INSERT that a plan is, for rows that come from elsewhere, and a cursor that writes them.
    pub fn of(permitted: PermittedPlan<'p>) -> Result<(&'p Insert, InsertCursor<'p>)> {
        match permitted.plan() {
            Plan::Insert(insert) => Ok((insert, InsertCursor::new(insert))),
            _ => Err(Error::internal("rows are written by no INSERT")),
        }
    }

    /// A cursor over what such an INSERT returns.
    pub(super) fn new(insert: &'p Insert) -> InsertCursor<'p> {
        InsertCursor {
            insert,
            input: open(&insert.input),
        }
    }

    /// Inserts a row or does what ON CONFLICT says; none when nothing was written.
    fn write(&mut self, mut row: Row, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        InsertCursor::check(self.insert, &mut row, cx)?;
        self.write_checked(row, cx)
    }

    /// Computes the generated columns of a row that is to be inserted, and checks it.
    ///
    /// # Errors
    /// 23502, 23514.
    pub fn check(insert: &Insert, row: &mut [Datum], cx: &mut Exec<'_>) -> Result<()> {
        check_row(&insert.target, &insert.target.policy_checks, row, cx)
    }

    /// Inserts a row that was checked or does what ON CONFLICT says; none when nothing was
    /// written.
    ///
    /// # Errors
    /// 23505 and what the engine raises.
    pub fn write_checked(&mut self, row: Row, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        let target = &self.insert.target;
        let table = &target.table;
        let key = new_key(table, &row, cx)?;
        let encoded = long::encode(table, &row, None, cx)?;
        // Row numbers are never given twice.
        let is_new = table.primary_key().is_none();
        loop {
            let inserted = match is_new {
                true => cx.txn.insert_new(table.tree, &key, &encoded.row)?,
                false => cx.txn.insert(table.tree, &key, &encoded.row)?,
            };
            let (place, taken) = match inserted {
                Inserted::Done => match entries::insert(&target.entries, table, &key, &row, cx)? {
                    None => {
                        encoded.store(table, cx.txn)?;
                        if let Some(rules) = &target.rules {
                            foreign::inserted(rules, 0, &key, &row, cx);
                        }
                        return Ok(Some(row));
                    }
                    Some(taken) => {
                        cx.txn.delete(table.tree, &key)?;
                        (taken.index, Some(taken))
                    }
                },
                Inserted::Duplicate(tree) => (index_of(table, tree)?, None),
            };
            let Some((conflict, place)) = self.arbiter(place, &row, cx)? else {
                let index = &table.indexes[place];
                return Err(match taken {
                    Some(taken) => taken_key(table, index, &taken.values, cx),
                    None => duplicate_key(table, index, &row, cx),
                });
            };
            if conflict.set.is_none() {
                check_is_seen(target, place, &row, cx)?;
                return Ok(None);
            }
            match self.update(conflict, place, &row, cx)? {
                Upserted::Again => {}
                Upserted::Skipped => return Ok(None),
                Upserted::Row(row) => return Ok(Some(row)),
            }
        }
    }

    /// What ON CONFLICT says of a row whose keys are taken in an index, and the index by which it
    /// finds the row in the way. One that it names goes before any other that the keys are taken in
    /// too; none if no index that it names has them.
    fn arbiter(
        &self,
        taken: usize,
        row: &[Datum],
        cx: &mut Exec<'_>,
    ) -> Result<Option<(&'p Conflict, usize)>> {
        let Some(conflict) = &self.insert.conflict else {
            return Ok(None);
        };
        let Some(named) = &conflict.indexes else {
            return Ok(Some((conflict, taken)));
        };
        if named.contains(&taken) {
            return Ok(Some((conflict, taken)));
        }
        let target = &self.insert.target;
        for place in named {
            let index = &target.table.indexes[*place];
            let mut columns = index.columns.iter();
            // The key of the table is looked at before all others, so it is free.
            if index.primary || columns.any(|column| row[column.column].is_null()) {
                continue;
            }
            if existing_key(target, *place, row, cx)?.is_some() {
                return Ok(Some((conflict, *place)));
            }
        }
        Ok(None)
    }

    fn update(
        &mut self,
        conflict: &Conflict,
        index: usize,
        row: &[Datum],
        cx: &mut Exec<'_>,
    ) -> Result<Upserted> {
        let target = &self.insert.target;
        let table = &target.table;
        let Some(key) = existing_key(target, index, row, cx)? else {
            // It came after the snapshot: look again with a newer one.
            if cx.txn.isolation() != Isolation::ReadCommitted {
                return Err(Error::serialization(
                    "could not serialize access due to concurrent update",
                ));
            }
            cx.txn.begin_statement()?;
            return Ok(Upserted::Again);
        };
        if cx.txn.is_written_by_command(table.tree, &key) {
            return Err(Error::new(
                SqlState::CARDINALITY_VIOLATION,
                "ON CONFLICT DO UPDATE command cannot affect row a second time",
            )
            .with_hint(
                "Ensure that no rows proposed for insertion within the same command have \
                 duplicate constrained values.",
            ));
        }
        let mut bytes = Vec::new();
        let tree = table.tree;
        // As PostgreSQL: by the columns that are set, whatever to.
        let strength = strength(conflict.sets_keys);
        match (cx.txn).lock_row_in_the_way(tree, &key, strength, &mut bytes)? {
            LockedRow::Gone | LockedRow::Skipped => return Ok(Upserted::Again),
            LockedRow::Changed => {}
            LockedRow::Unchanged => {
                if !cx.txn.get(tree, &key, &mut bytes)? {
                    return Ok(Upserted::Again);
                }
            }
        }
        let old = rows::decode(table, &[], &bytes, &key, false)?;
        let width = old.len();
        let mut both = old;
        both.extend_from_slice(row);
        if let Some(condition) = &conflict.condition {
            if !condition.test(cx, &both)? {
                return Ok(Upserted::Skipped);
            }
        }
        let (table, old) = (&target.table, &both[..width]);
        check_policies(table, &conflict.old_checks, " (USING expression)", old, cx)?;
        let mut new = old.to_vec();
        for (place, value) in conflict.set.iter().flatten() {
            new[*place] = value.eval(cx, &both)?;
        }
        check_row(target, &conflict.new_checks, &mut new, cx)?;
        replace_row(target, &key, &both[..width], &new, cx)?;
        Ok(Upserted::Row(new))
    }
}

enum Upserted {
    /// The row in the way is gone: try the insert again.
    Again,
    /// WHERE was not met.
    Skipped,
    /// The row as it is now.
    Row(Row),
}

/// Above READ COMMITTED, what ON CONFLICT DO NOTHING gives way to must be what the transaction
/// sees, or it would learn of rows that came after its snapshot.
fn check_is_seen(target: &Target, index: usize, row: &[Datum], cx: &mut Exec<'_>) -> Result<()> {
    let table = &target.table;
    if cx.txn.isolation() == Isolation::ReadCommitted {
        return Ok(());
    }
    let is_seen = match existing_key(target, index, row, cx)? {
        Some(key) if cx.txn.is_written_by_command(table.tree, &key) => true,
        Some(key) => cx.txn.get(table.tree, &key, &mut Vec::new())?,
        None => false,
    };
    match is_seen {
        true => Ok(()),
        false => Err(Error::serialization(
            "could not serialize access due to concurrent update",
        )),
    }
}

/// The key of the row that has `row`'s values in a unique index now, whatever the snapshot shows.
fn existing_key(
    target: &Target,
    index: usize,
    row: &[Datum],
    cx: &mut Exec<'_>,
) -> Result<Option<Key>> {
    let table = &target.table;
    if let Some(rule) = target.entries.iter().find(|rule| rule.index == index) {
        return entries::existing_key(rule, table, row, cx);
    }
    let index = &table.indexes[index];
    let key = rows::index_key(table, index, row)?;
    if index.primary {
        return Ok(Some(key));
    }
    let mut batch = RowBatch::default();
    let range = KeyRange::prefix(&key);
    cx.txn.scan_newest(index.tree, &range, 1, &mut batch)?;
    if batch.is_empty() {
        return Ok(None);
    }
    rows::row_key_of_entry(table, index, batch.get(0)).map(|key| Some(key.to_vec()))
}

/// Puts a new row in the place of a locked one, and tells foreign keys.
fn replace_row(
    target: &Target,
    key: &[u8],
    old: &[Datum],
    new: &[Datum],
    cx: &mut Exec<'_>,
) -> Result<()> {
    let new_key = replace(&target.table, &target.entries, key, old, new, cx)?;
    if let Some(rules) = &target.rules {
        foreign::updated(rules, 0, (key, &new_key), (old, new), cx);
    }
    Ok(())
}

/// Puts a new row in the place of a locked one; returns its key.
pub(super) fn replace(
    table: &Table,
    rules: &[EntryRule],
    key: &[u8],
    old: &[Datum],
    new: &[Datum],
    cx: &mut Exec<'_>,
) -> Result<Key> {
    let encoded = long::encode(table, new, Some(old), cx)?;
    let new_key = match table.primary_key() {
        Some(index) if index.columns.iter().any(|c| old[c.column] != new[c.column]) => {
            rows::index_key(table, index, new)?
        }
        _ => key.to_vec(),
    };
    let outcome = if new_key == key {
        cx.txn.update(table.tree, key, &encoded.row)?
    } else {
        cx.txn.delete(table.tree, key)?;
        cx.txn.insert(table.tree, &new_key, &encoded.row)?
    };
    match outcome {
        Inserted::Done => {
            let moved = entries::update(rules, table, (key, old), (&new_key, new), cx)?;
            if let Some(Taken { index, values }) = moved {
                return Err(taken_key(table, &table.indexes[index], &values, cx));
            }
            long::forget(table, old, Some(new), cx.txn)?;
            encoded.store(table, cx.txn)?;
            Ok(new_key)
        }
        Inserted::Duplicate(tree) => {
            let index = &table.indexes[index_of(table, tree)?];
            Err(duplicate_key(table, index, new, cx))
        }
    }
}

impl Cursor for InsertCursor<'_> {
    fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        while let Some(row) = self.input.next(cx)? {
            let Some(row) = self.write(row, cx)? else {
                continue;
            };
            cx.note_written();
            if let Some(row) = returned(&self.insert.target, &row, cx)? {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }
}

/// PostgreSQL calls a row that is gone an updated one where it was only to be locked.
pub fn as_only_locked(error: Error) -> Error {
    match error.message() {
        "could not serialize access due to concurrent delete" => {
            Error::serialization("could not serialize access due to concurrent update")
        }
        _ => error,
    }
}

/// Locks the row under `row`'s key, which stands after the table's columns, which begin at
/// `start`. A row that changed meanwhile is put in its place if it still meets the condition.
fn lock(
    table: &Table,
    start: usize,
    row: &mut Row,
    strength: RowLock,
    wait: LockWait,
    recheck: Option<&Program>,
    cx: &mut Exec<'_>,
) -> Result<Option<Locked>> {
    let width = table.columns.len();
    let Datum::Bytea(key) = &row[start + width] else {
        // The empty side of an outer join has no row to lock.
        return Ok(None);
    };
    let key = key.to_vec();
    let mut newest = Vec::new();
    match cx
        .txn
        .lock_row(table.tree, &key, strength, wait, &mut newest)?
    {
        LockedRow::Unchanged => Ok(Some(Locked {
            key,
            is_changed: false,
        })),
        LockedRow::Gone | LockedRow::Skipped => Ok(None),
        LockedRow::Changed => {
            let values = rows::decode(table, &[], &newest, &key, false)?;
            for (place, value) in values.into_iter().enumerate() {
                row[start + place] = value;
            }
            match recheck {
                Some(condition) if !condition.test(cx, row)? => Ok(None),
                _ => Ok(Some(Locked {
                    key,
                    is_changed: true,
                })),
            }
        }
    }
}

/// A row that was locked.
struct Locked {
    key: Key,
    /// It was changed meanwhile.
    is_changed: bool,
}

/// How a row is locked that is to be updated.
fn strength(moves_keys: bool) -> RowLock {
    match moves_keys {
        true => RowLock::Update,
        false => RowLock::NoKeyUpdate,
    }
}

fn moves_keys(table: &Table, old: &[Datum], new: &[Datum]) -> bool {
    let mut columns = table.key_columns();
    columns.any(|column| old[column] != new[column])
}

/// The rows that an UPDATE returns.
pub struct UpdateCursor<'p> {
    update: &'p Update,
    input: Box<dyn Cursor + 'p>,
}

impl<'p> UpdateCursor<'p> {
    /// A cursor over what such an UPDATE returns.
    pub fn new(update: &'p Update) -> UpdateCursor<'p> {
        UpdateCursor {
            update,
            // Where keys may move, a row has to be looked at before it is known how to lock it.
            input: match update.sets_keys {
                true => open(&update.input),
                false => open_to_lock(&update.input, strength(false)),
            },
        }
    }

    fn write(&mut self, mut row: Row, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        let update = self.update;
        let table = &update.target.table;
        let width = table.columns.len();
        let mut new = match update.sets_keys {
            true => Some(self.new_row(&row, cx)?),
            false => None,
        };
        loop {
            let moves = |new: &Row| moves_keys(table, &row[..width], new);
            let strength = strength(new.as_ref().is_some_and(moves));
            let (wait, recheck) = (LockWait::Block, update.recheck.as_ref());
            let Some(locked) = lock(table, 0, &mut row, strength, wait, recheck, cx)? else {
                return Ok(None);
            };
            let new_row = match new.take().filter(|_| !locked.is_changed) {
                Some(new) => new,
                None => self.new_row(&row, cx)?,
            };
            if strength < RowLock::Update && moves_keys(table, &row[..width], &new_row) {
                // What came of the row meanwhile makes its keys move.
                new = Some(new_row);
                continue;
            }
            replace_row(&update.target, &locked.key, &row[..width], &new_row, cx)?;
            row[..width].clone_from_slice(&new_row);
            return Ok(Some(row));
        }
    }

    /// What becomes of a row, of which the first columns are the table's.
    fn new_row(&self, row: &Row, cx: &mut Exec<'_>) -> Result<Row> {
        let update = self.update;
        let mut new = row[..update.target.table.columns.len()].to_vec();
        for (place, value) in &update.set {
            new[*place] = value.eval(cx, row)?;
        }
        check_row(&update.target, &update.target.policy_checks, &mut new, cx)?;
        Ok(new)
    }
}

impl Cursor for UpdateCursor<'_> {
    fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        while let Some(row) = self.input.next(cx)? {
            let Some(row) = self.write(row, cx)? else {
                continue;
            };
            cx.note_written();
            if let Some(row) = returned(&self.update.target, &row, cx)? {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }
}

/// The rows that a DELETE returns.
pub struct DeleteCursor<'p> {
    delete: &'p Delete,
    input: Box<dyn Cursor + 'p>,
}

impl<'p> DeleteCursor<'p> {
    /// A cursor over what such a DELETE returns.
    pub fn new(delete: &'p Delete) -> DeleteCursor<'p> {
        DeleteCursor {
            delete,
            input: open_to_lock(&delete.input, RowLock::Update),
        }
    }
}

impl Cursor for DeleteCursor<'_> {
    fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        while let Some(mut row) = self.input.next(cx)? {
            let table = &self.delete.target.table;
            let recheck = self.delete.recheck.as_ref();
            let wait = LockWait::Block;
            let Some(locked) = lock(table, 0, &mut row, RowLock::Update, wait, recheck, cx)? else {
                continue;
            };
            let key = locked.key;
            cx.txn.delete(table.tree, &key)?;
            let old = &row[..table.columns.len()];
            entries::delete(&self.delete.target.entries, table, &key, old, cx)?;
            if let Some(rules) = &self.delete.target.rules {
                foreign::deleted(rules, 0, &row[..table.columns.len()], cx);
            }
            cx.note_written();
            // What is returned may have to be read first.
            let shown = returned(&self.delete.target, &row, cx)?;
            long::forget(table, &row[..table.columns.len()], None, cx.txn)?;
            if let Some(row) = shown {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }
}

/// The rows of a [`Plan::Lock`].
pub struct LockCursor<'p> {
    input: Box<dyn Cursor + 'p>,
    tables: &'p [LockRows],
}

impl<'p> LockCursor<'p> {
    /// A cursor over such a plan.
    pub fn new(input: &'p Plan, tables: &'p [LockRows]) -> LockCursor<'p> {
        let input = match tables {
            [one] if one.wait == LockWait::Block => open_to_lock(input, one.strength),
            _ => open(input),
        };
        LockCursor { input, tables }
    }
}

impl Cursor for LockCursor<'_> {
    fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        'rows: while let Some(mut row) = self.input.next(cx)? {
            for lock_rows in self.tables {
                let LockRows {
                    table,
                    start,
                    strength,
                    wait,
                    recheck,
                } = lock_rows;
                if row[*start + table.columns.len()].is_null() {
                    continue;
                }
                let recheck = recheck.as_ref();
                let locked = lock(table, *start, &mut row, *strength, *wait, recheck, cx);
                if locked.map_err(as_only_locked)?.is_none() {
                    continue 'rows;
                }
            }
            return Ok(Some(row));
        }
        Ok(None)
    }
}
