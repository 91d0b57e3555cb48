//! INSERT, UPDATE, DELETE and row locks.
//!
//! UPDATE and DELETE scan with the statement's snapshot, then lock each row. At READ COMMITTED a
//! row that was changed meanwhile is looked at again: if its newest version still meets the
//! condition, it is that version that is changed (PostgreSQL 15 manual, section 13.2.1). A row that
//! a join gives twice is changed once: to the second lock it is gone.

use base::engine::{Inserted, Isolation, LockWait, LockedRow, RowBatch, RowLock};
use base::{Error, Key, KeyRange, Result, SequenceId, SqlState, TreeId};

use super::cursor::{open, open_to_lock, Cursor};
use super::entries;
use super::measure::{note_conflict, Measuring};
use super::new_row::{check_policies, check_row, duplicate_key, taken_entry};
use super::trigger::OwnRows;
use super::{checked, foreign, long, partition, rows, trigger, Exec};
use crate::exec::program::Evaluate;
use catalog::trigger::{Events, Timing};
use catalog::{RelationKind, Table};
use planner::plan::permit::PermittedPlan;
use planner::plan::EntryRule;
use planner::plan::Program;
use planner::plan::{Assignments, Conflict, Delete, Insert, LockRows, Plan, Row, Target, Update};
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

/// The key for a new row.
fn new_key(table: &Table, row: &[Datum], cx: &mut Exec<'_>) -> Result<Key> {
    match table.primary_key() {
        Some(index) => rows::index_key(table, index, row),
        None => {
            let number = cx
                .host
                .session()
                .next_number(SequenceId(u64::from(table.oid)))?;
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

/// How far a statement with triggers is: whether those of the statement have fired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stage {
    #[default]
    Fresh,
    Begun,
    Done,
}

/// The rows that an INSERT returns.
pub struct InsertCursor<'p> {
    insert: &'p Insert,
    input: Box<dyn Cursor + 'p>,
    stage: Stage,
}

impl<'p> InsertCursor<'p> {
    /// The INSERT that a plan is, for rows that come from elsewhere, and a cursor that writes them.
    pub fn of(permitted: PermittedPlan<'p>) -> Result<(&'p Insert, InsertCursor<'p>)> {
        match permitted.plan() {
            Plan::Insert(insert) => Ok((insert, InsertCursor::new(insert, None))),
            _ => Err(Error::internal("rows are written by no INSERT")),
        }
    }

    /// A cursor over what such an INSERT returns.
    pub(super) fn new(insert: &'p Insert, measures: Measuring<'_>) -> InsertCursor<'p> {
        InsertCursor {
            insert,
            input: open(&insert.input, measures),
            stage: Stage::Fresh,
        }
    }

    /// A cursor for rows that come from elsewhere.
    pub(super) fn over(insert: &'p Insert) -> InsertCursor<'p> {
        InsertCursor::new(insert, None)
    }

    /// Inserts a row or does what ON CONFLICT says; none when nothing was written.
    pub(super) fn write(&mut self, row: Row, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        let Some(mut row) = InsertCursor::before(self.insert, row, cx)? else {
            return Ok(None);
        };
        if self.insert.target.table.kind == RelationKind::View {
            return Ok(Some(row));
        }
        InsertCursor::check(self.insert, &mut row, cx)?;
        self.write_checked(row, cx)
    }

    /// What triggers make of a row before it is inserted, or instead; none if nothing is to be done.
    ///
    /// # Errors
    /// What they raise.
    pub fn before(insert: &Insert, row: Row, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        let Some(triggers) = &insert.target.triggers else {
            return Ok(Some(row));
        };
        let timing = match insert.target.table.kind {
            RelationKind::View => Timing::InsteadOf,
            _ => Timing::Before,
        };
        let when = (timing, Events::INSERT);
        let kept = trigger::row(triggers, when, &[], None, Some(row), cx)?;
        Ok(kept.flatten())
    }

    /// Whether triggers fire before each row, which may look at those that are there already.
    pub fn fires_before_rows(insert: &Insert) -> bool {
        let triggers = insert.target.triggers.as_ref();
        triggers.is_some_and(|triggers| triggers.any(Timing::Before, true, Events::INSERT))
    }

    /// Fires the BEFORE triggers of the statement.
    ///
    /// # Errors
    /// What they raise.
    pub fn begin(&mut self, cx: &mut Exec<'_>) -> Result<()> {
        let Some(triggers) = &self.insert.target.triggers else {
            return Ok(());
        };
        if self.stage != Stage::Fresh {
            return Ok(());
        }
        self.stage = Stage::Begun;
        trigger::before_statement(triggers, Events::INSERT, &[], cx)?;
        match self.updates() {
            true => {
                let (event, updated) = (Events::UPDATE, &triggers.updated);
                trigger::before_statement(triggers, event, updated, cx)
            }
            false => Ok(()),
        }
    }

    /// Queues the AFTER triggers of the statement.
    ///
    /// # Errors
    /// What their conditions raise.
    pub fn end(&mut self, cx: &mut Exec<'_>) -> Result<()> {
        let Some(triggers) = &self.insert.target.triggers else {
            return Ok(());
        };
        if self.stage != Stage::Begun {
            return Ok(());
        }
        self.stage = Stage::Done;
        if self.updates() {
            trigger::after_statement(triggers, Events::UPDATE, &triggers.updated, cx)?;
        }
        trigger::after_statement(triggers, Events::INSERT, &[], cx)
    }

    /// Whether ON CONFLICT DO UPDATE may update rows.
    fn updates(&self) -> bool {
        let conflict = self.insert.conflict.as_ref();
        conflict.is_some_and(|conflict| conflict.set.is_some())
    }

    /// Computes the generated columns of a row that is to be inserted, and checks it.
    ///
    /// # Errors
    /// 23502, 23514.
    pub fn check(insert: &Insert, row: &mut [Datum], cx: &mut Exec<'_>) -> Result<()> {
        match insert.target.routes {
            // Its partition checks it.
            Some(_) => Ok(()),
            None => check_row(&insert.target, &insert.target.policy_checks, row, cx),
        }
    }

    /// Inserts a row that was checked or does what ON CONFLICT says; none when nothing was
    /// written.
    ///
    /// # Errors
    /// 23505 and what the engine raises.
    pub fn write_checked(&mut self, row: Row, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        let target = &self.insert.target;
        if let Some(routes) = &target.routes {
            return partition::insert(target, &target.policy_checks, routes, row, cx);
        }
        let table = &target.table;
        let key = new_key(table, &row, cx)?;
        let encoded = long::encode(table, &row, None, cx)?;
        // Row numbers are never given twice.
        let is_new = table.primary_key().is_none();
        loop {
            let inserted = match is_new {
                true => cx.host.txn().insert_new(table.tree, &key, &encoded.row)?,
                false => cx.host.txn().insert(table.tree, &key, &encoded.row)?,
            };
            let (place, taken) = match inserted {
                Inserted::Done => match entries::insert(&target.entries, table, &key, &row, cx)? {
                    None => {
                        checked::refuse_as_arbiter(table, self.insert.conflict.as_ref(), None, cx)?;
                        encoded.store(table, cx.host.txn())?;
                        cx.host.session().counting.inserted(table.oid);
                        checked::queue(target, Events::INSERT, None, (&key, &row), cx)?;
                        return Ok(Some(row));
                    }
                    Some(taken) => {
                        cx.host.txn().delete(table.tree, &key)?;
                        (taken.index, Some(taken))
                    }
                },
                Inserted::Duplicate(tree) => (index_of(table, tree)?, None),
            };
            checked::refuse_as_arbiter(table, self.insert.conflict.as_ref(), Some(place), cx)?;
            let Some((conflict, place)) = self.arbiter(place, &row, cx)? else {
                let index = &table.indexes[place];
                return Err(match taken {
                    Some(taken) => taken_entry(table, &taken, cx),
                    None => duplicate_key(table, index, &row, cx),
                });
            };
            if conflict.set.is_none() {
                check_is_seen(target, place, &row, cx)?;
                note_conflict(self.insert, false, cx);
                return Ok(None);
            }
            let upserted = match self.update(conflict, place, &row, cx)? {
                Upserted::Again => continue,
                Upserted::Skipped => None,
                Upserted::Row(row) => Some(row),
            };
            note_conflict(self.insert, false, cx);
            return Ok(upserted);
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
            if cx.host.txn().isolation() != Isolation::ReadCommitted {
                return Err(Error::serialization(
                    "could not serialize access due to concurrent update",
                ));
            }
            cx.host.txn().begin_statement()?;
            return Ok(Upserted::Again);
        };
        if cx.host.txn().is_written_by_command(table.tree, &key) {
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
        match cx
            .host
            .txn()
            .lock_row_in_the_way(tree, &key, strength, &mut bytes)?
        {
            LockedRow::Gone | LockedRow::Skipped => return Ok(Upserted::Again),
            LockedRow::Changed => {}
            LockedRow::Unchanged => {
                if !cx.host.txn().get(tree, &key, &mut bytes)? {
                    return Ok(Upserted::Again);
                }
            }
        }
        let old = rows::decode(table, &[], &bytes, &key, false)?;
        let Some(mut new) = conflicting(conflict, target, &old, row, cx)? else {
            note_conflict(self.insert, true, cx);
            return Ok(Upserted::Skipped);
        };
        if let Some(triggers) = &target.triggers {
            let (event, updated) = (Events::UPDATE, &triggers.updated);
            let before = trigger::before(triggers, event, updated, Some(&old), new, cx)?;
            new = match before {
                Some(new) => new,
                None => return Ok(Upserted::Skipped),
            };
            trigger::check_untouched(tree, &key, "updated", cx)?;
            lock_moved(table, &key, &old, &new, strength, cx)?;
        }
        partition::check_stays(target.partition_check.as_deref(), &new, cx)?;
        let mut checks = &conflict.new_checks[..];
        if let Some(through) = &target.through {
            check_policies(&through.table, checks, "", &through.raised(&new), cx)?;
            checks = &[];
        }
        check_row(target, checks, &mut new, cx)?;
        replace_row(target, &key, &old, &new, cx)?;
        Ok(Upserted::Row(new))
    }
}

/// What ON CONFLICT DO UPDATE makes of the row in the way of another; none if its WHERE is not met. It
/// is over rows as the table that the INSERT names has them.
fn conflicting(
    conflict: &Conflict,
    target: &Target,
    old: &[Datum],
    row: &[Datum],
    cx: &mut Exec<'_>,
) -> Result<Option<Row>> {
    let (named, mut both, excluded) = match &target.through {
        None => (&*target.table, old.to_vec(), row.to_vec()),
        Some(through) => (&*through.table, through.raised(old), through.raised(row)),
    };
    let width = both.len();
    both.extend(excluded);
    if let Some(condition) = &conflict.condition {
        if !condition.test(cx, &both)? {
            return Ok(None);
        }
    }
    let checks = &conflict.old_checks;
    check_policies(named, checks, " (USING expression)", &both[..width], cx)?;
    let mut new = both[..width].to_vec();
    if let Some(set) = &conflict.set {
        assign(set, &both, &mut new, cx)?;
    }
    Ok(Some(match &target.through {
        None => new,
        Some(through) => through.lowered(&new, old.len()),
    }))
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
    if cx.host.txn().isolation() == Isolation::ReadCommitted {
        return Ok(());
    }
    let is_seen = match existing_key(target, index, row, cx)? {
        Some(key) if cx.host.txn().is_written_by_command(table.tree, &key) => true,
        Some(key) => cx.host.txn().get(table.tree, &key, &mut Vec::new())?,
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
    cx.host
        .txn()
        .scan_newest(index.tree, &range, 1, &mut batch)?;
    if batch.is_empty() {
        return Ok(None);
    }
    rows::row_key_of_entry(table, index, batch.get(0)).map(|key| Some(key.to_vec()))
}

/// Puts a new row in the place of a locked one, and tells foreign keys and triggers; returns its key.
pub(super) fn replace_row(
    target: &Target,
    key: &[u8],
    old: &[Datum],
    new: &[Datum],
    cx: &mut Exec<'_>,
) -> Result<Key> {
    let new_key = replace(&target.table, &target.entries, key, old, new, cx)?;
    checked::queue(
        target,
        Events::UPDATE,
        Some((key, old)),
        (&new_key, new),
        cx,
    )?;
    Ok(new_key)
}

/// Locks a row that is locked already as one whose keys move, if a trigger has made them.
pub(super) fn lock_moved(
    table: &Table,
    key: &[u8],
    old: &[Datum],
    new: &[Datum],
    held: RowLock,
    cx: &mut Exec<'_>,
) -> Result<()> {
    if held < RowLock::Update && moves_keys(table, old, new) {
        let (strength, wait) = (RowLock::Update, LockWait::Block);
        let txn = cx.host.txn();
        txn.lock_row(table.tree, key, strength, wait, &mut Vec::new())?;
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
        cx.host.txn().update(table.tree, key, &encoded.row)?
    } else {
        cx.host.txn().delete(table.tree, key)?;
        cx.host.txn().insert(table.tree, &new_key, &encoded.row)?
    };
    match outcome {
        Inserted::Done => {
            let moved = entries::update(rules, table, (key, old), (&new_key, new), cx)?;
            if let Some(taken) = moved {
                return Err(taken_entry(table, &taken, cx));
            }
            long::forget(table, old, Some(new), cx.host.txn())?;
            encoded.store(table, cx.host.txn())?;
            cx.host.session().counting.updated(table.oid);
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
        self.begin(cx)?;
        while let Some(row) = self.input.next(cx)? {
            let Some(row) = self.write(row, cx)? else {
                continue;
            };
            cx.note_written();
            if let Some(row) = returned(&self.insert.target, &row, cx)? {
                return Ok(Some(row));
            }
        }
        self.end(cx)?;
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
pub(super) fn lock(
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
        .host
        .txn()
        .lock_row(table.tree, &key, strength, wait, &mut newest)?
    {
        LockedRow::Unchanged => Ok(Some(Locked {
            key,
            is_changed: false,
        })),
        LockedRow::Gone if table.partition_of.is_some() => {
            partition::check_not_moved(table, &key, cx).map(|()| None)
        }
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
pub(super) struct Locked {
    pub key: Key,
    /// It was changed meanwhile.
    pub is_changed: bool,
}

/// How a row is locked that is to be updated.
pub(super) fn strength(moves_keys: bool) -> RowLock {
    match moves_keys {
        true => RowLock::Update,
        false => RowLock::NoKeyUpdate,
    }
}

pub(super) fn moves_keys(table: &Table, old: &[Datum], new: &[Datum]) -> bool {
    let mut columns = table.key_columns();
    columns.any(|column| old[column] != new[column])
}

/// What triggers of a view do in the place of what it cannot do; none if nothing was done.
fn instead(
    target: &Target,
    event: Events,
    row: &Row,
    new: Option<Row>,
    cx: &mut Exec<'_>,
) -> Result<Option<Option<Row>>> {
    let Some(triggers) = &target.triggers else {
        return Err(Error::internal("a view is written without triggers"));
    };
    let (old, when) = (
        &row[..target.table.columns.len()],
        (Timing::InsteadOf, event),
    );
    trigger::row(triggers, when, &triggers.updated, Some(old), new, cx)
}

/// Fires the BEFORE triggers of an UPDATE or DELETE as a whole, once.
pub(super) fn begin(
    target: &Target,
    event: Events,
    stage: &mut Stage,
    cx: &mut Exec<'_>,
) -> Result<()> {
    match &target.triggers {
        Some(triggers) if *stage == Stage::Fresh => {
            *stage = Stage::Begun;
            trigger::before_statement(triggers, event, &triggers.updated, cx)
        }
        _ => Ok(()),
    }
}

/// Queues the AFTER triggers of an UPDATE or DELETE as a whole, once.
pub(super) fn end(
    target: &Target,
    event: Events,
    stage: &mut Stage,
    cx: &mut Exec<'_>,
) -> Result<()> {
    match &target.triggers {
        Some(triggers) if *stage == Stage::Begun => {
            *stage = Stage::Done;
            trigger::after_statement(triggers, event, &triggers.updated, cx)
        }
        _ => Ok(()),
    }
}

/// Carries out SET.
pub(super) fn assign(
    set: &Assignments,
    row: &[Datum],
    new: &mut Row,
    cx: &mut Exec<'_>,
) -> Result<()> {
    let mut wider;
    let row = match set.rows.is_empty() {
        true => row,
        false => {
            wider = row.to_vec();
            wider.resize(set.width, Datum::Null);
            for source in &set.rows {
                let value = source.eval(cx, row)?;
                wider.push(value);
            }
            &wider[..]
        }
    };
    for (place, value) in &set.columns {
        new[*place] = value.eval(cx, row)?;
    }
    Ok(())
}

/// The rows that an UPDATE returns.
pub struct UpdateCursor<'p> {
    update: &'p Update,
    input: Box<dyn Cursor + 'p>,
    stage: Stage,
    own: OwnRows,
}

impl<'p> UpdateCursor<'p> {
    /// A cursor over what such an UPDATE returns.
    pub fn new(update: &'p Update, measures: Measuring<'_>) -> UpdateCursor<'p> {
        UpdateCursor {
            update,
            // Where keys may move, a row has to be looked at before it is known how to lock it.
            input: match update.sets_keys || update.target.table.kind == RelationKind::View {
                true => open(&update.input, measures),
                false => open_to_lock(&update.input, strength(false), measures),
            },
            stage: Stage::Fresh,
            own: OwnRows::default(),
        }
    }

    pub(super) fn write(&mut self, mut row: Row, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        let update = self.update;
        let table = &update.target.table;
        let width = table.columns.len();
        let triggers = update.target.triggers.as_ref();
        if let Some(routes) = &update.target.routes {
            return partition::update(update, routes, row, &mut self.own, cx);
        }
        if table.kind == RelationKind::View {
            let new = self.new_row(&row, cx)?;
            let new = instead(&update.target, Events::UPDATE, &row, Some(new), cx)?;
            return Ok(new.flatten().map(|new| {
                row[..width].clone_from_slice(&new);
                row
            }));
        }
        if let (Some(_), Datum::Bytea(key)) = (triggers, &row[width]) {
            if self.own.has(table.tree, key, cx)? {
                return Ok(None);
            }
        }
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
            let new_row = match triggers {
                None => new_row,
                Some(_) => match self.triggered(&locked.key, &row, new_row, strength, cx)? {
                    Some(new_row) => new_row,
                    None => return Ok(None),
                },
            };
            let key = replace_row(&update.target, &locked.key, &row[..width], &new_row, cx)?;
            if triggers.is_some() {
                self.own.note(&locked.key, cx)?;
                self.own.note(&key, cx)?;
            }
            row[..width].clone_from_slice(&new_row);
            return Ok(Some(row));
        }
    }

    /// What becomes of a row, of which the first columns are the table's.
    fn new_row(&self, row: &Row, cx: &mut Exec<'_>) -> Result<Row> {
        let update = self.update;
        let mut new = row[..update.target.table.columns.len()].to_vec();
        assign(&update.set, row, &mut new, cx)?;
        // Those that triggers may still change are checked after that.
        if update.target.triggers.is_none() {
            check_row(&update.target, &update.target.policy_checks, &mut new, cx)?;
        }
        Ok(new)
    }

    /// What triggers make of a row that is locked, checked; none if it is to be passed over.
    fn triggered(
        &self,
        key: &[u8],
        row: &Row,
        new: Row,
        held: RowLock,
        cx: &mut Exec<'_>,
    ) -> Result<Option<Row>> {
        let target = &self.update.target;
        let Some(triggers) = &target.triggers else {
            return Ok(Some(new));
        };
        let old = &row[..target.table.columns.len()];
        let (event, updated) = (Events::UPDATE, &triggers.updated);
        let before = trigger::before(triggers, event, updated, Some(old), new, cx)?;
        let Some(mut new) = before else {
            return Ok(None);
        };
        trigger::check_untouched(target.table.tree, key, "updated", cx)?;
        check_row(target, &target.policy_checks, &mut new, cx)?;
        lock_moved(&target.table, key, old, &new, held, cx)?;
        Ok(Some(new))
    }
}

impl Cursor for UpdateCursor<'_> {
    fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        begin(&self.update.target, Events::UPDATE, &mut self.stage, cx)?;
        while let Some(row) = self.input.next(cx)? {
            let Some(row) = self.write(row, cx)? else {
                continue;
            };
            cx.note_written();
            if let Some(row) = returned(&self.update.target, &row, cx)? {
                return Ok(Some(row));
            }
        }
        end(&self.update.target, Events::UPDATE, &mut self.stage, cx)?;
        Ok(None)
    }
}

/// The rows that a DELETE returns.
pub struct DeleteCursor<'p> {
    delete: &'p Delete,
    input: Box<dyn Cursor + 'p>,
    stage: Stage,
    own: OwnRows,
}

impl<'p> DeleteCursor<'p> {
    /// A cursor over what such a DELETE returns.
    pub fn new(delete: &'p Delete, measures: Measuring<'_>) -> DeleteCursor<'p> {
        DeleteCursor {
            delete,
            input: match delete.target.table.kind {
                RelationKind::View => open(&delete.input, measures),
                _ => open_to_lock(&delete.input, RowLock::Update, measures),
            },
            stage: Stage::Fresh,
            own: OwnRows::default(),
        }
    }

    /// What triggers say of a row that is locked: whether it is to be deleted.
    fn triggered(&mut self, key: &[u8], row: &Row, cx: &mut Exec<'_>) -> Result<bool> {
        let target = &self.delete.target;
        let Some(triggers) = &target.triggers else {
            return Ok(true);
        };
        let old = &row[..target.table.columns.len()];
        let timing = (Timing::Before, Events::DELETE);
        if trigger::row(triggers, timing, &[], Some(old), None, cx)?.is_none() {
            return Ok(false);
        }
        trigger::check_untouched(target.table.tree, key, "deleted", cx)?;
        self.own.note(key, cx)?;
        Ok(true)
    }
}

impl DeleteCursor<'_> {
    /// Deletes a row, and what RETURNING shows of it; none if it is passed over.
    pub(super) fn write(&mut self, mut row: Row, cx: &mut Exec<'_>) -> Result<Option<Option<Row>>> {
        let table = &self.delete.target.table;
        if let Some(routes) = &self.delete.target.routes {
            let deleted = partition::delete(self.delete, routes, row, &mut self.own, cx)?;
            let Some((row, old)) = deleted else {
                return Ok(None);
            };
            cx.note_written();
            let shown = returned(&self.delete.target, &row, cx)?;
            old.forget(cx)?;
            return Ok(Some(shown));
        }
        let triggers = self.delete.target.triggers.as_ref();
        if table.kind == RelationKind::View {
            if instead(&self.delete.target, Events::DELETE, &row, None, cx)?.is_none() {
                return Ok(None);
            }
            cx.note_written();
            return returned(&self.delete.target, &row, cx).map(Some);
        }
        if let (Some(_), Datum::Bytea(key)) = (triggers, &row[table.columns.len()]) {
            if self.own.has(table.tree, key, cx)? {
                return Ok(None);
            }
        }
        let recheck = self.delete.recheck.as_ref();
        let wait = LockWait::Block;
        let Some(locked) = lock(table, 0, &mut row, RowLock::Update, wait, recheck, cx)? else {
            return Ok(None);
        };
        let key = locked.key;
        if triggers.is_some() && !self.triggered(&key, &row, cx)? {
            return Ok(None);
        }
        cx.host.txn().delete(table.tree, &key)?;
        cx.host.session().counting.deleted(table.oid);
        let old = &row[..table.columns.len()];
        entries::delete(&self.delete.target.entries, table, &key, old, cx)?;
        let foreign_keys = |cx: &mut Exec<'_>| match &self.delete.target.rules {
            Some(rules) => foreign::deleted(rules, 0, old, cx),
            None => Ok(()),
        };
        match triggers {
            None => foreign_keys(cx)?,
            Some(triggers) => {
                let rows = (Some(old), None);
                trigger::after(triggers, Events::DELETE, &[], rows, cx, foreign_keys)?;
            }
        }
        cx.note_written();
        // What is returned may have to be read first.
        let shown = returned(&self.delete.target, &row, cx)?;
        long::forget(table, &row[..table.columns.len()], None, cx.host.txn())?;
        Ok(Some(shown))
    }
}

impl Cursor for DeleteCursor<'_> {
    fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        begin(&self.delete.target, Events::DELETE, &mut self.stage, cx)?;
        while let Some(row) = self.input.next(cx)? {
            if let Some(Some(row)) = self.write(row, cx)? {
                return Ok(Some(row));
            }
        }
        end(&self.delete.target, Events::DELETE, &mut self.stage, cx)?;
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
    pub fn new(input: &'p Plan, tables: &'p [LockRows], measures: Measuring<'_>) -> LockCursor<'p> {
        let input = match tables {
            [one] if one.wait == LockWait::Block => open_to_lock(input, one.strength, measures),
            _ => open(input, measures),
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
                    partitions,
                } = lock_rows;
                if row[*start + table.columns.len()].is_null() {
                    continue;
                }
                let recheck = recheck.as_ref();
                let locked = match partitions {
                    None => lock(table, *start, &mut row, *strength, *wait, recheck, cx),
                    Some(parts) => {
                        let how = (*strength, *wait, recheck);
                        partition::lock(table, parts, *start, &mut row, how, cx)
                    }
                };
                if locked.map_err(as_only_locked)?.is_none() {
                    continue 'rows;
                }
            }
            return Ok(Some(row));
        }
        Ok(None)
    }
}
