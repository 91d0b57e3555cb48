//! Rows of partitioned tables, and of such that others inherit from: to which partition each goes, and what
//! becomes of those that are there.
//!
//! ```text
//! insert into m values (3, 'x')       key (3) ─level─► m1: the row, with its columns where m1 has them
//! update m set k = 12 where k = 3     the row of m1 goes, and one of m2 comes
//! ```
//! Conditions, policies, SET and RETURNING are over rows as the partitioned table has them; triggers,
//! checks, indexes and foreign keys are the partition's, over rows as that has them.
//!
//! # Invariants
//! - No row is in a partition whose bound does not name it: each is checked when everything else has been
//!   computed of it.
//! - Policies are asked about the row that is written, after its triggers.

use std::rc::Rc;
use std::sync::Arc;

use base::engine::{Isolation, LockWait, LockedRow, RowLock};
use base::{Error, Key, Result, SqlState};

use super::new_row::{about, check_policies, check_row, check_views, failing_row};
use super::trigger::OwnRows;
use super::write::{assign, lock_moved, moves_keys, replace_row, strength, InsertCursor, Locked};
use super::{entries, foreign, index_text, long, rows, trigger, Exec};
use crate::exec::program::Evaluate;
use catalog::partition::{Bound, Edge, PartitionOf};
use catalog::trigger::{Events, Timing};
use catalog::{KeySource, Table};
use functions::strings::{quote_identifier, quote_string};
use planner::plan::partition::{Below, Leaf, Level, PartitionCheck, Partitions, Routes, Through};
use planner::plan::{Delete, Insert, PolicyCheck, Program, Row, Target, Update};
use types::{self, Datum, EvalContext, TypeId};

/// The place of the table that a statement names among those that inherit from it.
const NAMED: usize = 0;

/// The key of a row on a level.
fn key_on(level: &Level, row: &[Datum], cx: &mut Exec<'_>) -> Result<Vec<Datum>> {
    let programs = level.programs.iter();
    programs.map(|program| program.eval(cx, row)).collect()
}

/// Whether a row belongs where these levels say.
fn belongs(levels: &[(Rc<Level>, usize)], row: &[Datum], cx: &mut Exec<'_>) -> Result<bool> {
    for (level, place) in levels {
        let key = key_on(level, row, cx)?;
        if level.place_of(&key) != Some(*place) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Refuses a row that is not the partition's.
///
/// # Errors
/// 23514.
pub(super) fn check(
    (table, through): (&Table, Option<&Through>),
    check: Option<&PartitionCheck>,
    row: &[Datum],
    cx: &mut Exec<'_>,
) -> Result<()> {
    match check {
        Some(check) if !belongs(&check.levels, row, cx)? => {
            let message = format!(
                "new row for relation \"{}\" violates partition constraint",
                table.name
            );
            let error = Error::new(SqlState::CHECK_VIOLATION, message);
            Err(about(
                failing_row(error, (table, through), row, cx),
                table,
                cx,
            ))
        }
        _ => Ok(()),
    }
}

/// Refuses what ON CONFLICT DO UPDATE makes of a row if it belongs to another partition.
///
/// # Errors
/// 0A000.
pub(super) fn check_stays(
    check: Option<&PartitionCheck>,
    row: &[Datum],
    cx: &mut Exec<'_>,
) -> Result<()> {
    match check {
        Some(check) if !belongs(&check.levels, row, cx)? => {
            let message = "invalid ON UPDATE specification";
            let detail =
                "The result tuple would appear in a different partition than the original tuple.";
            Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message).with_detail(detail))
        }
        _ => Ok(()),
    }
}

/// 23514 for a row that is no partition's.
fn no_partition(level: &Level, key: &[Datum], cx: &mut Exec<'_>) -> Error {
    let table = &level.table;
    let message = format!("no partition of relation \"{}\" found for row", table.name);
    let error = about(Error::new(SqlState::CHECK_VIOLATION, message), table, cx);
    let parts = table.partition_key.iter().flat_map(|key| &key.parts);
    let parts: Vec<_> = parts.collect();
    let uses: Vec<_> = parts
        .iter()
        .flat_map(|part| part.uses.iter().copied())
        .collect();
    if !cx.may_see(table, uses.into_iter()) {
        return error;
    }
    let names = key_names(cx, table, true).unwrap_or_default();
    let values = key.iter().zip(&level.types).map(|(value, ty)| match value {
        Datum::Null => "null".to_owned(),
        value => types::output(cx.context, *ty, value).unwrap_or_default(),
    });
    let values: Vec<_> = values.collect();
    error.with_detail(format!(
        "Partition key of the failing row contains ({}) = ({}).",
        names,
        values.join(", ")
    ))
}

/// The leaf that a row belongs to, by its place, if there is one.
pub(super) fn leaf_for(
    partitions: &Partitions,
    row: &[Datum],
    cx: &mut Exec<'_>,
) -> Result<Option<usize>> {
    let mut tree = partitions.tree.as_ref();
    while let Some(at) = tree {
        let key = key_on(&at.level, row, cx)?;
        match at.level.place_of(&key).map(|place| &at.below[place]) {
            None => return Ok(None),
            Some(Below::Leaf(leaf)) => return Ok(Some(*leaf)),
            Some(Below::Tree(below)) => tree = Some(below),
        }
    }
    Ok(Some(NAMED))
}

/// The leaf that a row belongs to, by its place.
fn route(partitions: &Partitions, row: &[Datum], cx: &mut Exec<'_>) -> Result<usize> {
    let mut tree = partitions.tree.as_ref();
    while let Some(at) = tree {
        let key = key_on(&at.level, row, cx)?;
        let Some(place) = at.level.place_of(&key) else {
            return Err(no_partition(&at.level, &key, cx));
        };
        match &at.below[place] {
            Below::Leaf(leaf) => return Ok(*leaf),
            Below::Tree(below) => tree = Some(below),
        }
    }
    Ok(NAMED)
}

/// The row as RETURNING sees it: with the key, which it cannot ask for, and the oid of its table.
fn shown(mut row: Row, leaf: &Leaf) -> Row {
    row.push(Datum::Null);
    row.push(Datum::Oid(leaf.table.oid));
    row
}

/// Inserts a row into the partition that it belongs to; none if nothing was written.
///
/// # Errors
/// 23514 if there is none, and as for that partition.
pub(super) fn insert(
    target: &Target,
    policies: &[PolicyCheck],
    routes: &Routes,
    row: Row,
    cx: &mut Exec<'_>,
) -> Result<Option<Row>> {
    check(
        (&target.table, None),
        target.partition_check.as_deref(),
        &row,
        cx,
    )?;
    let place = route(&routes.partitions, &row, cx)?;
    let (leaf, own) = (&routes.partitions.leaves[place], &routes.leaves[place]);
    let Some(mut lowered) = InsertCursor::before(own, leaf.lowered(&row), cx)? else {
        return Ok(None);
    };
    if InsertCursor::fires_before_rows(own) {
        check_not_moving(own, leaf, &lowered, cx)?;
    }
    for (place, value) in &own.target.generated {
        lowered[*place] = value.eval(cx, &lowered)?;
    }
    let raised = leaf.raised(&lowered);
    check_policies(&target.table, policies, "", &raised, cx)?;
    check_row(&own.target, &[], &mut lowered, cx)?;
    check_views(target, &raised, cx)?;
    let written = InsertCursor::over(own).write_checked(lowered, cx)?;
    let Some(row) = written.map(|row| leaf.raised(&row)) else {
        return Ok(None);
    };
    trigger::keep(
        target.triggers.as_ref(),
        Events::INSERT,
        (None, Some(&row)),
        cx,
    )?;
    Ok(Some(shown(row, leaf)))
}

/// 0A000 for a row that a trigger which is a part of the partitioned table's has made another partition's.
fn check_not_moving(own: &Insert, leaf: &Leaf, row: &Row, cx: &mut Exec<'_>) -> Result<()> {
    let mut triggers = own
        .target
        .triggers
        .iter()
        .flat_map(|triggers| &triggers.all);
    let part = triggers.find(|planned| {
        let trigger = &planned.trigger;
        let is_part = leaf.table.part_above(trigger.oid).is_some();
        is_part && trigger.is(Timing::Before, true, Events::INSERT)
    });
    let Some(planned) = part else {
        return Ok(());
    };
    if belongs(&leaf.levels, &leaf.raised(row), cx)? {
        return Ok(());
    }
    let schema = cx.catalog.schema_by_oid(leaf.table.schema);
    let message =
        "moving row to another partition during a BEFORE FOR EACH ROW trigger is not supported";
    Err(
        Error::new(SqlState::FEATURE_NOT_SUPPORTED, message).with_detail(format!(
            "Before executing trigger \"{}\", the row was to be in partition \"{}.{}\".",
            planned.trigger.name,
            schema.map_or("", |schema| &schema.name),
            leaf.table.name
        )),
    )
}

/// Locks the row whose key stands behind the columns of a partitioned table, which begin at `start`, and
/// the oid of its table behind that.
pub(super) fn lock(
    table: &Table,
    partitions: &Partitions,
    start: usize,
    row: &mut Row,
    how: (RowLock, LockWait, Option<&Program>),
    cx: &mut Exec<'_>,
) -> Result<Option<Locked>> {
    let locked = lock_in_leaf(table, partitions, start, row, how, cx)?;
    Ok(locked.map(|(locked, _)| locked))
}

/// The same; also the whole row as the leaf has it, if it has changed meanwhile.
fn lock_in_leaf(
    table: &Table,
    partitions: &Partitions,
    start: usize,
    row: &mut Row,
    (strength, wait, recheck): (RowLock, LockWait, Option<&Program>),
    cx: &mut Exec<'_>,
) -> Result<Option<(Locked, Option<Row>)>> {
    let width = table.columns.len();
    let (Datum::Bytea(key), Datum::Oid(oid)) = (&row[start + width], &row[start + width + 1])
    else {
        // The empty side of an outer join has no row to lock.
        return Ok(None);
    };
    let key = key.to_vec();
    let (_, leaf) = leaf_of(partitions, *oid)?;
    let mut newest = Vec::new();
    let txn = cx.host.txn();
    match txn.lock_row(leaf.table.tree, &key, strength, wait, &mut newest)? {
        LockedRow::Unchanged => {
            let is_changed = false;
            Ok(Some((Locked { key, is_changed }, None)))
        }
        LockedRow::Gone => check_not_moved(&leaf.table, &key, cx).map(|()| None),
        LockedRow::Skipped => Ok(None),
        LockedRow::Changed => {
            let values = rows::decode(&leaf.table, &[], &newest, &key, false)?;
            for (place, value) in leaf.raised(&values).into_iter().enumerate() {
                row[start + place] = value;
            }
            match recheck {
                Some(condition) if !condition.test(cx, row)? => Ok(None),
                _ => {
                    let is_changed = true;
                    Ok(Some((Locked { key, is_changed }, Some(values))))
                }
            }
        }
    }
}

/// A locked row as its leaf has it, of which `row` is what the table above shows, and `newest` what was
/// found if it has changed.
fn whole(
    leaf: &Leaf,
    key: &Key,
    row: &[Datum],
    newest: Option<Row>,
    cx: &mut Exec<'_>,
) -> Result<Row> {
    if !leaf.has_more {
        return Ok(leaf.lowered(row));
    }
    if let Some(newest) = newest {
        return Ok(newest);
    }
    let mut kept = Vec::new();
    if !cx.host.txn().get(leaf.table.tree, key, &mut kept)? {
        return Err(Error::internal("a row that is locked and not there"));
    }
    rows::decode(&leaf.table, &[], &kept, key, false)
}

/// Refuses to go on without a row that somebody has taken to another partition meanwhile.
///
/// # Errors
/// 40001 unless it was deleted, or the statement itself has done so.
pub(super) fn check_not_moved(table: &Table, key: &[u8], cx: &mut Exec<'_>) -> Result<()> {
    let txn = cx.host.txn();
    let is_own = txn.is_written_by_command(table.tree, key);
    if is_own || txn.isolation() != Isolation::ReadCommitted || !txn.was_moved(table.tree, key)? {
        return Ok(());
    }
    Err(Error::serialization(
        "tuple to be locked was already moved to another partition due to concurrent update",
    ))
}

pub(super) fn leaf_of(partitions: &Partitions, oid: u32) -> Result<(usize, &Leaf)> {
    let leaf = partitions.leaf_of(oid);
    leaf.ok_or_else(|| Error::internal(format!("a row of {oid}, which is no partition")))
}

/// A row's partition and what it is there.
struct Place<'r> {
    leaf: &'r Leaf,
    target: &'r Target,
}

impl<'r> Place<'r> {
    fn of(routes: &'r Routes, row: &[Datum], width: usize) -> Result<Place<'r>> {
        let Datum::Oid(oid) = row[width + 1] else {
            return Err(Error::internal("a row of no partition"));
        };
        let (place, leaf) = leaf_of(&routes.partitions, oid)?;
        Ok(Place {
            leaf,
            target: &routes.leaves[place].target,
        })
    }
}

/// How the partition is written that has a row of a partitioned table, whose columns come first.
pub(super) fn target_of<'r>(routes: &'r Routes, row: &[Datum], width: usize) -> Result<&'r Target> {
    Place::of(routes, row, width).map(|place| place.target)
}

/// What becomes of a row of a partitioned table.
fn new_row(update: &Update, row: &Row, cx: &mut Exec<'_>) -> Result<Row> {
    let mut new = row[..update.target.table.columns.len()].to_vec();
    assign(&update.set, row, &mut new, cx)?;
    for (place, value) in &update.target.generated {
        new[*place] = value.eval(cx, &new)?;
    }
    Ok(new)
}

/// Updates a row where it is, or moves it to the partition that it belongs to now; none if nothing was
/// written.
pub(super) fn update(
    update: &Update,
    routes: &Routes,
    mut row: Row,
    own: &mut OwnRows,
    cx: &mut Exec<'_>,
) -> Result<Option<Row>> {
    let table = &update.target.table;
    let width = table.columns.len();
    let Place { leaf, target } = Place::of(routes, &row, width)?;
    if let (Some(_), Datum::Bytea(key)) = (&target.triggers, &row[width]) {
        if own.has(target.table.tree, key, cx)? {
            return Ok(None);
        }
    }
    let (key, newest, held, mut new) = loop {
        let new = new_row(update, &row, cx)?;
        let moves = !belongs(&leaf.levels, &new, cx)?;
        let (before, after) = (leaf.lowered(&row), leaf.lowered(&new));
        let held = strength(moves || moves_keys(&target.table, &before, &after));
        let how = (held, LockWait::Block, update.recheck.as_ref());
        let locked = lock_in_leaf(table, &routes.partitions, 0, &mut row, how, cx)?;
        let Some((locked, newest)) = locked else {
            return Ok(None);
        };
        if !locked.is_changed {
            break (locked.key, newest, held, new);
        }
        let new = new_row(update, &row, cx)?;
        let moves = !belongs(&leaf.levels, &new, cx)?;
        let (before, after) = (leaf.lowered(&row), leaf.lowered(&new));
        if held == strength(moves || moves_keys(&target.table, &before, &after)) {
            break (locked.key, newest, held, new);
        }
    };
    let old = whole(leaf, &key, &row, newest, cx)?;
    let mut after = leaf.lowered_over(&old, &new);
    if leaf.has_more {
        for (place, value) in &target.generated {
            after[*place] = value.eval(cx, &after)?;
        }
    }
    if let Some(triggers) = &target.triggers {
        let (event, updated) = (Events::UPDATE, &triggers.updated);
        let Some(mut made) = trigger::before(triggers, event, updated, Some(&old), after, cx)?
        else {
            return Ok(None);
        };
        trigger::check_untouched(target.table.tree, &key, "updated", cx)?;
        for (place, value) in &target.generated {
            made[*place] = value.eval(cx, &made)?;
        }
        lock_moved(&target.table, &key, &old, &made, held, cx)?;
        new = leaf.raised(&made);
        after = made;
    }
    if !belongs(&leaf.levels, &new, cx)? {
        let Some(moved) = move_row(update, routes, (&key, &row), new, own, cx)? else {
            return Ok(None);
        };
        let rows = (Some(&row[..width]), Some(&moved[..width]));
        trigger::keep(update.target.triggers.as_ref(), Events::UPDATE, rows, cx)?;
        row[..width].clone_from_slice(&moved[..width]);
        row[width + 1] = moved[width + 1].clone();
        return Ok(Some(row));
    }
    check(
        (table, None),
        update.target.partition_check.as_deref(),
        &new,
        cx,
    )?;
    check_policies(table, &update.target.policy_checks, "", &new, cx)?;
    check_row(target, &[], &mut after, cx)?;
    check_views(&update.target, &new, cx)?;
    let new_key = replace_row(target, &key, &old, &after, cx)?;
    if target.triggers.is_some() {
        own.note(&key, cx)?;
        own.note(&new_key, cx)?;
    }
    let raised = leaf.raised(&after);
    let rows = (Some(&row[..width]), Some(&raised[..]));
    trigger::keep(update.target.triggers.as_ref(), Events::UPDATE, rows, cx)?;
    row[..width].clone_from_slice(&raised);
    Ok(Some(row))
}

/// Takes a locked row out of its partition and inserts what becomes of it into another.
fn move_row(
    update: &Update,
    routes: &Routes,
    (key, row): (&Key, &Row),
    new: Row,
    own: &mut OwnRows,
    cx: &mut Exec<'_>,
) -> Result<Option<Row>> {
    let width = update.target.table.columns.len();
    let Place { leaf, target } = Place::of(routes, row, width)?;
    // Its long values go with the row.
    let txn = cx.host.txn();
    let new: Result<Row> = new.iter().map(|value| long::read(value, txn)).collect();
    let new = new?;
    let old = leaf.lowered(row);
    let to = (&*update.target.table, leaf.lowered(&new));
    if !remove(target, key, &old, Some(to), own, cx)? {
        return Ok(None);
    }
    let policies = &update.target.policy_checks;
    cx.host.txn().note_moved(target.table.tree, key);
    let moved = insert(&update.target, policies, routes, new, cx)?;
    long::forget(&target.table, &old, None, cx.host.txn())?;
    Ok(moved)
}

/// Takes a locked row away, with all that this sets off; false if a trigger keeps it. If it goes to
/// another partition of a table, `to` says of which, and what it will be.
fn remove(
    target: &Target,
    key: &Key,
    old: &[Datum],
    to: Option<(&Table, Row)>,
    own: &mut OwnRows,
    cx: &mut Exec<'_>,
) -> Result<bool> {
    let table = &target.table;
    if let Some(triggers) = &target.triggers {
        let timing = (Timing::Before, Events::DELETE);
        if trigger::row(triggers, timing, &[], Some(old), None, cx)?.is_none() {
            return Ok(false);
        }
        trigger::check_untouched(table.tree, key, "deleted", cx)?;
        own.note(key, cx)?;
    }
    cx.host.txn().delete(table.tree, key)?;
    cx.host.session().counting.deleted(table.oid);
    entries::delete(&target.entries, table, key, old, cx)?;
    let foreign_keys = |cx: &mut Exec<'_>| match (&target.rules, &to) {
        (Some(rules), Some((whole, new))) => foreign::moved(rules, whole, (old, new), cx),
        (Some(rules), None) => foreign::deleted(rules, 0, old, cx),
        (None, _) => Ok(()),
    };
    match &target.triggers {
        None => foreign_keys(cx)?,
        Some(triggers) => {
            let rows = (Some(old), None);
            trigger::after(triggers, Events::DELETE, &[], rows, cx, foreign_keys)?;
        }
    }
    Ok(true)
}

/// A row that was deleted, whose long values are still there to be returned.
pub(super) struct Deleted<'r> {
    table: &'r Table,
    row: Row,
}

impl Deleted<'_> {
    /// Lets go of them.
    pub(super) fn forget(self, cx: &mut Exec<'_>) -> Result<()> {
        long::forget(self.table, &self.row, None, cx.host.txn())
    }
}

/// Deletes a row of a partitioned table; none if nothing was deleted.
pub(super) fn delete<'r>(
    delete: &Delete,
    routes: &'r Routes,
    mut row: Row,
    own: &mut OwnRows,
    cx: &mut Exec<'_>,
) -> Result<Option<(Row, Deleted<'r>)>> {
    let table = &delete.target.table;
    let width = table.columns.len();
    let Place { leaf, target } = Place::of(routes, &row, width)?;
    if let (Some(_), Datum::Bytea(key)) = (&target.triggers, &row[width]) {
        if own.has(target.table.tree, key, cx)? {
            return Ok(None);
        }
    }
    let how = (RowLock::Update, LockWait::Block, delete.recheck.as_ref());
    let locked = lock_in_leaf(table, &routes.partitions, 0, &mut row, how, cx)?;
    let Some((locked, newest)) = locked else {
        return Ok(None);
    };
    let old = whole(leaf, &locked.key, &row, newest, cx)?;
    if !remove(target, &locked.key, &old, None, own, cx)? {
        return Ok(None);
    }
    let rows = (Some(&row[..width]), None);
    trigger::keep(delete.target.triggers.as_ref(), Events::DELETE, rows, cx)?;
    let table = &target.table;
    Ok(Some((row, Deleted { table, row: old })))
}

/// A value of a bound as definitions have it.
fn constant(context: &EvalContext, ty: TypeId, value: &Datum) -> String {
    let text = match value {
        Datum::Null => return "NULL".to_owned(),
        Datum::Bool(value) => return value.to_string(),
        value => types::output(context, ty, value).unwrap_or_default(),
    };
    let starts_with_digit = text.starts_with(|first: char| first.is_ascii_digit());
    let plain = match ty {
        TypeId::INT4 => starts_with_digit,
        TypeId::NUMERIC => starts_with_digit && text.contains('.'),
        _ => false,
    };
    match plain {
        true => text,
        false => quote_string(&text),
    }
}

/// The parts of the key of a partitioned table.
fn key_names(cx: &Exec<'_>, table: &Arc<Table>, pretty: bool) -> Result<String> {
    let parts = table.partition_key.iter().flat_map(|key| &key.parts);
    let names = parts.map(|part| match &part.source {
        KeySource::Column(place) => Ok(quote_identifier(&table.columns[*place].name)),
        KeySource::Expression { text, .. } => index_text::expression(cx, table, text, pretty),
    });
    Ok(names.collect::<Result<Vec<_>>>()?.join(", "))
}

/// `RANGE (k)`.
pub(super) fn key_text(cx: &Exec<'_>, table: &Arc<Table>) -> Result<String> {
    let word = table.partitioning()?.strategy.word();
    Ok(format!("{word} ({})", key_names(cx, table, false)?))
}

/// `FOR VALUES FROM (1) TO (9)`.
pub(super) fn bound_text(context: &EvalContext, of: &PartitionOf) -> String {
    match &of.bound {
        Bound::Default => "DEFAULT".to_owned(),
        Bound::List(values) => {
            let values = values
                .iter()
                .map(|value| constant(context, of.types[0], value));
            format!("FOR VALUES IN ({})", values.collect::<Vec<_>>().join(", "))
        }
        Bound::Range(low, high) => format!(
            "FOR VALUES FROM {} TO {}",
            end_text(context, &of.types, low),
            end_text(context, &of.types, high)
        ),
        Bound::Hash { modulus, remainder } => {
            format!("FOR VALUES WITH (modulus {modulus}, remainder {remainder})")
        }
    }
}

/// The end of a range as messages and definitions have it.
pub fn end_text(context: &EvalContext, types: &[TypeId], end: &[Edge]) -> String {
    let edges = end.iter().zip(types).map(|(edge, ty)| match edge {
        Edge::Min => "MINVALUE".to_owned(),
        Edge::Value(value) => constant(context, *ty, value),
        Edge::Max => "MAXVALUE".to_owned(),
    });
    format!("({})", edges.collect::<Vec<_>>().join(", "))
}
