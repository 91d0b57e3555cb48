//! INSERT, row locks, and what UPDATE and DELETE ([`update`](super::update)) have in common with them.
//!
//! UPDATE and DELETE scan with the statement's snapshot, then lock each row. At READ COMMITTED a
//! row that was changed meanwhile is looked at again: if its newest version still meets the
//! condition, it is that version that is changed (PostgreSQL 15 manual, section 13.2.1). A row that
//! a join gives twice is changed once: to the second lock it is gone.

use std::sync::Arc;

use base::engine::{Inserted, Isolation, LockWait, LockedRow, RowBatch, RowLock, Write};
use base::{Error, Key, KeyRange, Result, SequenceId, SqlState, TreeId};

use super::cursor::{open, open_to_lock, Cursor};
use super::entries;
use super::measure::{note_conflict, Measuring};
use super::new_row::{check_policies, check_row, check_views, duplicate_key, taken_entry};
use super::{checked, long, partition, posted, rows, trigger, Exec};
use crate::exec::program::Evaluate;
use catalog::trigger::{Events, Timing};
use catalog::{RelationKind, Table};
use planner::plan::permit::PermittedPlan;
use planner::plan::EntryRule;
use planner::plan::Program;
use planner::plan::{Assignments, Conflict, Insert, LockRows, Plan, Row, Target};
use types::{self, Datum};

/// The rows that a writing node returns: none without RETURNING, but all are written.
pub(super) fn returned(target: &Target, row: &[Datum], cx: &mut Exec<'_>) -> Result<Option<Row>> {
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

pub(super) fn index_of(table: &Table, tree: TreeId) -> Result<usize> {
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
            check_views(&self.insert.target, &row, cx)?;
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
            let write = match is_new {
                true => Write::InsertNew(&encoded.row),
                false => Write::Insert(&encoded.row),
            };
            let inserted = match &self.insert.conflict {
                Some(_) => cx.host.txn().write_as(table.tree, &key, write)?,
                None => {
                    let may_be_taken = !is_new || table.key_columns().next().is_some();
                    posted::write(table, (&key, &row), write, may_be_taken, cx)?
                }
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
    table: &Arc<Table>,
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
    let write = match new_key == key {
        true => Write::Update(&encoded.row),
        false => {
            cx.host.txn().delete(table.tree, key)?;
            Write::Insert(&encoded.row)
        }
    };
    let may_be_taken = moves_keys(table, old, new);
    let outcome = posted::write(table, (&new_key, new), write, may_be_taken, cx)?;
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
pub(super) fn instead(
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
