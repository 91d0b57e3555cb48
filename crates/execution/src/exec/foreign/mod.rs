//! Foreign keys at work: what writing a row sets off in other tables.
//!
//! Writing a row queues [`Event`]s; they are carried out when the statement is at its end
//! ([`finish`]), in the order in which they were queued, or at COMMIT where a constraint is
//! deferred. What an event changes (ON DELETE CASCADE, …) queues further events behind the others.
//! Where very many wait, references to rows that are there already are looked at before ([`settle`]).
//!
//! ```text
//! insert into c values (1, 7)     Event::Refers: is there a p with key 7?  lock it FOR KEY SHARE
//! delete from p where k = 7       Event::Left:   who refers to 7?  NO ACTION: 23503 if anyone does
//!                                                CASCADE: delete them, which queues more
//! ```
//!
//! What there is to do is settled when the statement is planned: [`Rules`] hold the tables that it
//! can reach, the foreign keys between them as [`Link`]s, and the programs of constraints and
//! defaults. A statement that touches no column of any foreign key has no rules.
//!
//! # What is looked at
//! The newest committed versions, not the statement's snapshot. A reference is one look at the
//! referenced key, which the lock does: [`check`]. Above READ COMMITTED the row must be in the
//! transaction's snapshot as well; rows that refer to a key and are too new for it are 40001, as in
//! PostgreSQL.
//!
//! # In whose name
//! PostgreSQL does all this with queries, each of which the owner of the table runs that it looks at.
//! So the owner must hold the privileges that the query needs ([`owner`]), and what is computed while
//! rows change, and shown of them in an error, is the owner's. What a missing or remaining reference
//! is told with, is the session's own.
//!
//! # What it leaves out
//! Comparing types that have an equality but no implicit cast in either direction: those are refused
//! when the constraint is made.

mod act;
mod check;
mod find;
mod owner;

use std::rc::Rc;

use base::{Error, Key, Result, SqlState};

use super::measure::Called;
use super::program::Evaluate;
use super::rows::{self, KeyFit};
use super::{checked, events, exclusion, partition, posted, trigger, Exec};
pub(super) use crate::state::constraints::Event;
use catalog::{Index, RelationKind, Table};
use planner::plan::foreign::{Compare, Link, Rules};
use planner::plan::Row;
use types::{self, Datum};

pub use check::check_existing;
pub(super) use find::newest_row;

/// An event is not queued if one of so many before it looks at the same.
const ALIKE_MAX: usize = 4;

/// The key of the referenced index for these values of the child; none when no row of the
/// parent can have it.
fn parent_key(
    link: &Link,
    rules: &Rules,
    values: &[Datum],
    cx: &mut Exec<'_>,
) -> Result<Option<Key>> {
    let (table, index) = link.parent_index(rules);
    let mut key = Key::new();
    for indexed in &index.columns {
        let at = link
            .columns
            .iter()
            .position(|column| column.parent == indexed.column)
            .ok_or_else(|| Error::internal("a foreign key to an index of other columns"))?;
        let column = &table.columns[indexed.column];
        let fitted = match &link.columns[at].compare {
            Compare::Same => None,
            Compare::Integers => match rows::fit_key(column.type_id, &values[at]) {
                KeyFit::Value(value) => Some(value),
                _ => return Ok(None),
            },
            Compare::Cast(program) => Some(program.eval(cx, &values[at..=at])?),
        };
        let value = fitted.as_ref().unwrap_or(&values[at]);
        rows::put_key_value(table, indexed, value, &mut key)?;
    }
    Ok(Some(key))
}

/// The values of the child's columns as those of the parent's; none when no row of the parent can have
/// them.
fn parent_values(
    link: &Link,
    rules: &Rules,
    values: &[Datum],
    cx: &mut Exec<'_>,
) -> Result<Option<Vec<Datum>>> {
    let table = &rules.tables[link.parent].table;
    let mut fitted = Vec::with_capacity(values.len());
    for (column, value) in link.columns.iter().zip(values) {
        fitted.push(match &column.compare {
            Compare::Same => value.clone(),
            Compare::Integers => match rows::fit_key(table.columns[column.parent].type_id, value) {
                KeyFit::Value(value) => value,
                _ => return Ok(None),
            },
            Compare::Cast(program) => program.eval(cx, std::slice::from_ref(value))?,
        });
    }
    Ok(Some(fitted))
}

/// The table that has the rows of the parent with these values, and its part of the referenced index;
/// none if no partition has any.
fn where_values_are<'r>(
    link: &'r Link,
    rules: &'r Rules,
    values: &[Datum],
    cx: &mut Exec<'_>,
) -> Result<Option<(&'r Table, &'r Index)>> {
    let Some(parts) = &link.partitions else {
        return Ok(Some(link.parent_index(rules)));
    };
    let table = &rules.tables[link.parent].table;
    let mut row = vec![Datum::Null; table.columns.len()];
    for (column, value) in link.columns.iter().zip(values) {
        row[column.parent] = value.clone();
    }
    let leaf = partition::leaf_for(&parts.partitions, &row, cx)?;
    Ok(leaf.map(|leaf| {
        let table = &parts.partitions.leaves[leaf].table;
        (&**table, &table.indexes[parts.indexes[leaf]])
    }))
}

/// Whether these values of the child refer to that key of the referenced index.
fn refers_to(
    link: &Link,
    rules: &Rules,
    values: &[Datum],
    key: &[u8],
    cx: &mut Exec<'_>,
) -> Result<bool> {
    if values.iter().any(Datum::is_null) {
        return Ok(false);
    }
    let own = parent_key(link, rules, values, cx)?;
    Ok(own.is_some_and(|own| own == key))
}

/// A row was inserted.
///
/// # Errors
/// As [`Exec::defer`].
pub fn inserted(
    rules: &Rc<Rules>,
    table: usize,
    key: &[u8],
    row: &[Datum],
    cx: &mut Exec<'_>,
) -> Result<()> {
    let mut refers_here = rules.tables[table].refers.iter();
    refers_here.try_for_each(|link| refers(rules, *link, key, row, cx))
}

/// A row was deleted.
///
/// # Errors
/// As [`Exec::defer`].
pub fn deleted(rules: &Rc<Rules>, table: usize, row: &[Datum], cx: &mut Exec<'_>) -> Result<()> {
    let mut referred = rules.tables[table].referred.iter();
    referred.try_for_each(|link| left(rules, *link, row, None, cx))
}

/// A row goes to another partition of a table, where it will be `new`, here with the columns where the
/// partition that it leaves has them.
///
/// # Errors
/// 0A000 if somebody refers to a table between the partition and that one; as [`Exec::defer`].
pub fn moved(
    rules: &Rc<Rules>,
    whole: &Table,
    (old, new): (&[Datum], &[Datum]),
    cx: &mut Exec<'_>,
) -> Result<()> {
    let from = &rules.tables[0];
    for link in &from.referred {
        let known = &rules.links[*link];
        let named = &rules.tables[known.parent].table;
        let mut above = cx.catalog.with_ancestors(named).into_iter().skip(1);
        let is_below = above.any(|above| above.oid == whole.oid);
        let Some(of_whole) = known.whole else {
            left(rules, *link, old, None, cx)?;
            continue;
        };
        if is_below {
            let message = "cannot move tuple across partitions when a non-root ancestor of the \
                           source partition is directly referenced in a foreign key";
            return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message)
                .with_detail(format!(
                    "A foreign key points to ancestor \"{}\" but not the root ancestor \"{}\".",
                    named.name, whole.name
                ))
                .with_hint(format!(
                    "Consider defining the foreign key on table \"{}\".",
                    whole.name
                )));
        }
        let (old, new) = (known.left_values(old), known.left_values(new));
        if old != new {
            values_left(rules, of_whole, old, Some(new), cx)?;
        }
    }
    Ok(())
}

/// A row was changed, perhaps to another key.
///
/// # Errors
/// As [`Exec::defer`].
pub fn updated(
    rules: &Rc<Rules>,
    table: usize,
    (old_key, new_key): (&[u8], &[u8]),
    (old, new): (&[Datum], &[Datum]),
    cx: &mut Exec<'_>,
) -> Result<()> {
    for link in &rules.tables[table].referred {
        let columns = &rules.links[*link].columns;
        if columns.iter().any(|c| old[c.left] != new[c.left]) {
            left(rules, *link, old, Some(new), cx)?;
        }
    }
    for link in &rules.tables[table].refers {
        let columns = &rules.links[*link].columns;
        let moved = cx
            .host
            .shared()
            .constraints
            .is_deferred(&rules.links[*link].key)
            && old_key != new_key;
        if moved || columns.iter().any(|c| old[c.child] != new[c.child]) {
            refers(rules, *link, new_key, new, cx)?;
        }
    }
    Ok(())
}

fn refers(
    rules: &Rc<Rules>,
    link: usize,
    key: &[u8],
    row: &[Datum],
    cx: &mut Exec<'_>,
) -> Result<()> {
    let values = rules.links[link].child_values(row);
    let nulls = values.iter().filter(|value| value.is_null()).count();
    let full = rules.links[link].key.match_full;
    if nulls == values.len() || (nulls > 0 && !full) {
        return Ok(());
    }
    let event = Event::Refers {
        rules: rules.clone(),
        link,
        row: key.to_vec(),
        values,
    };
    queue(event, true, cx)
}

fn left(
    rules: &Rc<Rules>,
    link: usize,
    old: &[Datum],
    new: Option<&[Datum]>,
    cx: &mut Exec<'_>,
) -> Result<()> {
    let known = &rules.links[link];
    let (old, new) = (
        known.left_values(old),
        new.map(|new| known.left_values(new)),
    );
    values_left(rules, link, old, new, cx)
}

fn values_left(
    rules: &Rc<Rules>,
    link: usize,
    old: Vec<Datum>,
    new: Option<Vec<Datum>>,
    cx: &mut Exec<'_>,
) -> Result<()> {
    let known = &rules.links[link];
    if old.iter().any(Datum::is_null) {
        return Ok(());
    }
    let action = match new {
        None => known.key.on_delete,
        Some(_) => known.key.on_update,
    };
    let event = Event::Left {
        rules: rules.clone(),
        link,
        old,
        new,
    };
    queue(event, action == catalog::Action::NoAction, cx)
}

fn queue(event: Event, may_wait: bool, cx: &mut Exec<'_>) -> Result<()> {
    let (Event::Refers { rules, link, .. } | Event::Left { rules, link, .. }) = &event else {
        return Ok(());
    };
    // As triggers of the origin: a replica's rows have been looked at there.
    if cx.host.shared().settings.parsed().replica {
        return Ok(());
    }
    if may_wait
        && cx
            .host
            .shared()
            .constraints
            .is_deferred(&rules.links[*link].key)
    {
        cx.defer(event)?;
    } else if !cx.events.has_like(&event, ALIKE_MAX) {
        events::wait(event, cx)?;
        settle(cx)?;
    }
    Ok(())
}

/// Looks at references before the statement is at its end, where very many wait. One that is there
/// is locked then, so others keep it there; and if the transaction itself takes it away, that looks
/// who refers to it ([`Event::Left`]). The others wait on, since what the statement writes, it sees
/// at its end only.
fn settle(cx: &mut Exec<'_>) -> Result<()> {
    let Some(mut waiting) = cx.events.take_if_many() else {
        return Ok(());
    };
    while let Some(event) = waiting.pop() {
        cx.tick()?;
        let is_settled = match &event {
            Event::Refers {
                rules,
                link,
                values,
                ..
            } => check::is_met(rules, *link, values, cx)?,
            _ => false,
        };
        if !is_settled {
            cx.events.push(event)?;
        }
    }
    cx.events.settled();
    Ok(())
}

/// Carries out what a statement has set off.
///
/// # Errors
/// 23503; 23505 of a row that was written; what changing further rows raises.
pub fn finish(cx: &mut Exec<'_>) -> Result<()> {
    posted::settle(cx)?;
    if cx.events.is_empty() {
        return Ok(());
    }
    cx.host.txn().next_command();
    let mut known = 0;
    loop {
        if known == 0 {
            known = check::lock_ahead(cx)?;
        }
        let Some(event) = cx.events.pop() else { break };
        known = known.saturating_sub(1);
        cx.tick()?;
        run(&event, cx)?;
    }
    posted::settle(cx)
}

/// Carries out one event.
///
/// # Errors
/// As [`finish`].
fn run(event: &Event, cx: &mut Exec<'_>) -> Result<()> {
    let Some(measures) = cx.measures.clone() else {
        return carry_out(event, cx);
    };
    let (rules, link, leaves) = match event {
        Event::Refers { rules, link, .. } => (rules, *link, false),
        Event::Left { rules, link, .. } => (rules, *link, true),
        _ => return carry_out(event, cx),
    };
    let link = &rules.links[link];
    let (name, table) = match leaves {
        true => (&link.named.name, &link.left),
        false => (&link.key.name, &rules.tables[link.child].table),
    };
    let called = Called::ForeignKey(name.clone());
    measures.calls(called, (table.oid, &table.name), || carry_out(event, cx))
}

fn carry_out(event: &Event, cx: &mut Exec<'_>) -> Result<()> {
    match event {
        Event::Refers {
            rules,
            link,
            values,
            ..
        } => check::reference(rules, *link, values, cx),
        Event::Left {
            rules,
            link,
            old,
            new,
        } => act::left(rules, *link, old, new.as_deref(), cx),
        Event::Equal {
            table,
            index,
            row,
            values,
        } => checked::check(table, *index, (row, values), cx),
        Event::Excluded {
            table,
            rules,
            rule,
            row,
        } => exclusion::check(table, &rules[*rule], row, cx),
        Event::Fire(fire) => trigger::run(fire, cx),
    }
}

/// Carries out an event that was deferred: a row that is no more, or refers to something else by
/// now, is passed over.
///
/// # Errors
/// As [`finish`].
pub fn run_deferred(event: &Event, cx: &mut Exec<'_>) -> Result<()> {
    cx.host.txn().next_command();
    if let Event::Refers {
        rules,
        link,
        row,
        values,
    } = event
    {
        let link = &rules.links[*link];
        let table = &rules.tables[link.child].table;
        let Some(now) = find::newest_row(table, row, cx)? else {
            return Ok(());
        };
        if link.child_values(&now) != *values {
            return Ok(());
        }
    }
    run(event, cx)
}

/// 23503, about the table that refers.
fn violation(
    (child, name): (&Table, &str),
    message: String,
    detail: String,
    cx: &Exec<'_>,
) -> Error {
    let mut error = Error::new(SqlState::FOREIGN_KEY_VIOLATION, message).with_detail(detail);
    error.fields_mut().constraint = Some(name.to_owned());
    super::new_row::about(error, child, cx)
}

/// `Key (a, b)=(1, 2)`, as details have it; mere `Key` for a role that may not see the columns.
fn shown(table: &Table, columns: &[usize], values: &[Datum], cx: &Exec<'_>) -> String {
    if !cx.may_see(table, columns.iter().copied()) {
        return "Key".to_owned();
    }
    let names: Vec<_> = columns
        .iter()
        .map(|place| table.columns[*place].name.as_str())
        .collect();
    let texts: Vec<_> = columns
        .iter()
        .zip(values)
        .map(|(place, value)| match value {
            Datum::Null => "null".to_owned(),
            value => {
                let ty = table.columns[*place].type_id;
                types::output(cx.context, ty, value).unwrap_or_default()
            }
        })
        .collect();
    format!("Key ({})=({})", names.join(", "), texts.join(", "))
}

/// `ONLY `, as queries have it before a table that is not partitioned.
fn only(table: &Table) -> &'static str {
    match table.kind {
        RelationKind::Partitioned => "",
        _ => "ONLY ",
    }
}

/// A name in quotes.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A name with its schema, both in quotes, as PostgreSQL writes the queries of its checks.
fn qualified(table: &Table, cx: &Exec<'_>) -> String {
    let schema = cx.catalog.schema_by_oid(table.schema);
    let schema = schema.map_or("", |schema| schema.name.as_str());
    format!("{}.{}", quoted(schema), quoted(&table.name))
}

/// The same error with the query in which PostgreSQL would have met it.
fn within(mut error: Error, query: impl FnOnce() -> String) -> Error {
    let line = format!("SQL statement \"{}\"", query());
    let context = &mut error.fields_mut().context;
    *context = Some(match context.take() {
        Some(before) => format!("{before}\n{line}"),
        None => line,
    });
    error
}

/// A row as a whole.
type Found = (Key, Row);
