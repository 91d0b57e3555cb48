//! What happens to the rows that refer to a key which a row of the parent left.

use base::engine::{Isolation, LockWait, LockedRow, RowLock};
use base::{Error, Key, Result};
use std::rc::Rc;

use super::find::Referrers;
use super::owner::{self, Need};
use super::{
    check, only, qualified, quoted, shown, violation, where_values_are, within, Link, Rules,
};
use crate::exec::program::Evaluate;
use crate::exec::{checked, entries, long, new_row, partition, rows, trigger, write, Exec};
use crate::state::ActiveTrigger;
use catalog::access::Privileges;
use catalog::trigger::{Events, Timing};
use catalog::{Action, Table};
use planner::plan::trigger::with_generated;
use planner::plan::Row;
use types::Datum;

/// A row of the parent had these values, and now has others or is no more.
///
/// # Errors
/// 23503 where rows still refer to them and may not.
pub fn left(
    rules: &Rc<Rules>,
    link: usize,
    old: &[Datum],
    new: Option<&[Datum]>,
    cx: &mut Exec<'_>,
) -> Result<()> {
    let link = &rules.links[link];
    let action = match new {
        None => link.key.on_delete,
        Some(_) => link.key.on_update,
    };
    if action == Action::NoAction && has_successor(rules, link, old, cx)? {
        return Ok(());
    }
    if !action.writes() {
        return refuse(rules, link, old, cx);
    }
    let child = &rules.tables[link.child].table;
    let of_change = match (action, new) {
        (Action::Cascade, None) => Need::of(Privileges::DELETE, &[]),
        (_, None) => Need::of(Privileges::UPDATE, link.key.set_on_delete()),
        (_, Some(_)) => Need::of(Privileges::UPDATE, &link.key.columns),
    };
    let needs = [of_change, Need::of(Privileges::SELECT, &link.key.columns)];
    let own_query = |cx: &Exec<'_>| query(rules, link, action, new.is_none(), cx);
    owner::check(child, &needs, own_query, cx)?;
    // PostgreSQL does it in a trigger of its own, which counts.
    let active = ActiveTrigger {
        table: rules.tables[link.parent].table.oid,
        transition: None,
    };
    let depth = cx.host.shared().firing.len();
    cx.host.session().firing.push(active);
    let outcome = cx.as_role(child.owner, |cx| {
        let deletes = action == Action::Cascade && new.is_none();
        let (event, updated) = match (deletes, new) {
            (true, _) => (Events::DELETE, Vec::new()),
            (false, None) => (Events::UPDATE, link.key.set_on_delete().to_vec()),
            (false, Some(_)) => (Events::UPDATE, link.key.columns.clone()),
        };
        // The statement is about the table that has the whole of the foreign key.
        let named = &link.named.table;
        let triggers = match named.oid == child.oid {
            true => &rules.tables[link.child].triggers,
            false => &link.named.triggers,
        };
        let Some(triggers) = triggers else {
            return change(rules, link, action, old, new, cx);
        };
        if named.oid != child.oid && triggers.keeps_rows(event) {
            let what = "a foreign key's action on a partitioned table whose triggers name its rows";
            return Err(Error::unsupported(what));
        }
        let names = updated.iter().map(|place| &child.columns[*place].name);
        let updated: Vec<usize> = names.filter_map(|name| named.column(name)).collect();
        let updated = with_generated(named, &updated);
        trigger::before_statement(triggers, event, &updated, cx)?;
        change(rules, link, action, old, new, cx)?;
        trigger::after_statement(triggers, event, &updated, cx)
    });
    cx.host.session().firing.truncate(depth);
    outcome.map_err(
        |e| match e.state() == base::SqlState::FOREIGN_KEY_VIOLATION {
            true => e,
            false => within(e, || own_query(cx)),
        },
    )?;
    cx.host.txn().next_command();
    // The default may be the very key that went.
    if action == Action::SetDefault && !has_successor(rules, link, old, cx)? {
        refuse(rules, link, old, cx)?;
    }
    Ok(())
}

/// Whether another row of the parent has the key now.
fn has_successor(rules: &Rules, link: &Link, values: &[Datum], cx: &mut Exec<'_>) -> Result<bool> {
    check::look_up(rules, link, cx)?;
    let (table, index) = link.parent_index(rules);
    let mut key = Key::new();
    for indexed in &index.columns {
        let at = link.columns.iter().position(|c| c.parent == indexed.column);
        let value = at.map_or(&Datum::Null, |at| &values[at]);
        rows::put_key_value(table, indexed, value, &mut key)?;
    }
    match where_values_are(link, rules, values, cx)? {
        Some(place) => check::is_there(place, &key, cx),
        None => Ok(false),
    }
}

/// 23503 if a row still refers to the values.
fn refuse(rules: &Rules, link: &Link, values: &[Datum], cx: &mut Exec<'_>) -> Result<()> {
    let child = &rules.tables[link.child].table;
    let parent = &rules.tables[link.parent].table;
    let named = &link.named;
    let needs = Need::to_lock(&named.columns);
    owner::check(&named.table, &needs, |cx| look(link, cx), cx)?;
    let mut referrers = Referrers::new(rules, link, values)?;
    while let Some((key, _)) = referrers.next(cx)? {
        let mut newest = Vec::new();
        let (strength, wait) = (RowLock::KeyShare, LockWait::Block);
        let locked = match check::in_snapshot(child.tree, &key, cx)? {
            true => cx
                .host
                .txn()
                .lock_row(child.tree, &key, strength, wait, &mut newest)?,
            // It has come since, and is there: that is no conflict of the transaction's own.
            false => LockedRow::Unchanged,
        };
        let row = match locked {
            LockedRow::Gone | LockedRow::Skipped => continue,
            LockedRow::Unchanged => None,
            LockedRow::Changed => Some(rows::decode(child, &[], &newest, &key, false)?),
        };
        if let Some(row) = row {
            if !referrers.holds(&row, cx)? {
                continue;
            }
            if cx.host.txn().isolation() != Isolation::ReadCommitted {
                return Err(Error::serialization(
                    "could not serialize access due to concurrent update",
                ));
            }
        }
        let message = format!(
            "update or delete on table \"{}\" violates foreign key constraint \"{}\" on table \"{}\"",
            link.left.name, named.name, named.table.name
        );
        let detail = format!(
            "{} is still referenced from table \"{}\".",
            shown(parent, &link.key.referenced, values, cx),
            named.table.name
        );
        return Err(violation((&named.table, &named.name), message, detail, cx));
    }
    Ok(())
}

/// Deletes or changes every row that refers to the values.
fn change(
    rules: &Rc<Rules>,
    link: &Link,
    action: Action,
    old: &[Datum],
    new: Option<&[Datum]>,
    cx: &mut Exec<'_>,
) -> Result<()> {
    let mut referrers = Referrers::new(rules, link, old)?;
    cx.host.txn().next_command();
    let deletes = action == Action::Cascade && new.is_none();
    let child: &Table = &rules.tables[link.child].table;
    while let Some((key, mut row)) = referrers.next(cx)? {
        let may_move = rules.tables[link.child].triggers.is_some();
        let strength = match deletes || may_move || changes_keys(child, link) {
            true => RowLock::Update,
            false => RowLock::NoKeyUpdate,
        };
        let mut newest = Vec::new();
        let wait = LockWait::Block;
        match cx
            .host
            .txn()
            .lock_row(child.tree, &key, strength, wait, &mut newest)?
        {
            LockedRow::Gone | LockedRow::Skipped => {
                // A trigger of a row before this one may have written it.
                if rules.tables[link.child].triggers.is_some() {
                    trigger::check_untouched(child.tree, &key, "updated", cx)?;
                }
                continue;
            }
            LockedRow::Unchanged => {}
            LockedRow::Changed => {
                row = rows::decode(child, &[], &newest, &key, false)?;
                if !referrers.holds(&row, cx)? {
                    continue;
                }
            }
        }
        if deletes {
            delete(rules, link, &key, &row, cx)?;
            continue;
        }
        update(rules, link, action, (&key, &row), new, cx)?;
    }
    Ok(())
}

/// Deletes a row that refers to a row that is gone.
fn delete(rules: &Rc<Rules>, link: &Link, key: &[u8], row: &Row, cx: &mut Exec<'_>) -> Result<()> {
    let child = &rules.tables[link.child];
    let table = &child.table;
    if let Some(triggers) = &child.triggers {
        let timing = (Timing::Before, Events::DELETE);
        if trigger::row(triggers, timing, &[], Some(row), None, cx)?.is_none() {
            return Ok(());
        }
        trigger::check_untouched(table.tree, key, "deleted", cx)?;
    }
    cx.host.txn().delete(table.tree, key)?;
    cx.host.session().counting.deleted(table.oid);
    entries::delete(&child.entries, table, key, row, cx)?;
    long::forget(table, row, None, cx.host.txn())?;
    let foreign_keys = |cx: &mut Exec<'_>| super::deleted(rules, link.child, row, cx);
    match &child.triggers {
        None => foreign_keys(cx)?,
        Some(triggers) => {
            let rows = (Some(&row[..]), None);
            trigger::after(triggers, Events::DELETE, &[], rows, cx, foreign_keys)?;
        }
    }
    Ok(())
}

fn changes_keys(child: &Table, link: &Link) -> bool {
    let mut unique = child.indexes.iter().filter(|index| index.is_unique());
    unique.any(|index| {
        let mut columns = index.columns.iter();
        columns.any(|column| link.key.columns.contains(&column.column))
    })
}

fn update(
    rules: &Rc<Rules>,
    link: &Link,
    action: Action,
    (key, old): (&[u8], &Row),
    new: Option<&[Datum]>,
    cx: &mut Exec<'_>,
) -> Result<()> {
    let child = &rules.tables[link.child];
    let mut row = old.clone();
    let set = match new {
        None => link.key.set_on_delete(),
        Some(_) => &link.key.columns,
    };
    for place in set {
        row[*place] = match (action, new) {
            (Action::Cascade, Some(new)) => follow(rules, link, *place, new)?,
            (Action::SetDefault, _) => {
                let default = child.defaults.iter().find(|default| default.0 == *place);
                match default {
                    Some((_, program)) => program.eval(cx, &[])?,
                    None => Datum::Null,
                }
            }
            _ => Datum::Null,
        };
    }
    let mut updated = Vec::new();
    if let Some(triggers) = &child.triggers {
        updated = with_generated(&child.table, set);
        let before = trigger::before(triggers, Events::UPDATE, &updated, Some(old), row, cx)?;
        row = match before {
            Some(row) => row,
            None => return Ok(()),
        };
        trigger::check_untouched(child.table.tree, key, "updated", cx)?;
    }
    for (place, value) in &child.generated {
        row[*place] = value.eval(cx, &row)?;
    }
    new_row::check_values((&child.table, None), &child.checks, &row, cx)?;
    let moves = partition::check(
        (&child.table, None),
        child.partition_check.as_deref(),
        &row,
        cx,
    );
    if moves.is_err() && link.named.table.oid != child.table.oid {
        let what = "a foreign key whose action takes a row to another partition";
        return Err(Error::unsupported(what));
    }
    moves?;
    let new_key = write::replace(&child.table, &child.entries, key, old, &row, cx)?;
    let keys = (key, &new_key[..]);
    let constraints = |cx: &mut Exec<'_>| {
        let (before, after) = (Some((key, &old[..])), (&new_key[..], &row[..]));
        let written = (&child.table, &child.entries);
        checked::written(written, true, before, after, cx)?;
        super::updated(rules, link.child, keys, (old, &row), cx)?;
        checked::written(written, false, before, after, cx)
    };
    match &child.triggers {
        None => constraints(cx)?,
        Some(triggers) => {
            let rows = (Some(&old[..]), Some(&row[..]));
            trigger::after(triggers, Events::UPDATE, &updated, rows, cx, constraints)?;
        }
    }
    Ok(())
}

/// The new value of a column that follows the parent's.
fn follow(rules: &Rules, link: &Link, place: usize, new: &[Datum]) -> Result<Datum> {
    let at = link.columns.iter().position(|c| c.child == place);
    let at = at.ok_or_else(|| Error::internal("a column that refers to nothing"))?;
    let column = &rules.tables[link.child].table.columns[place];
    match rows::fit_key(column.type_id, &new[at]) {
        rows::KeyFit::Value(value) => Ok(value),
        rows::KeyFit::Null => Ok(Datum::Null),
        _ => Err(Error::new(
            base::SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            format!("{} out of range", column.type_id),
        )),
    }
}

/// The query with which PostgreSQL looks for rows that refer to a key.
fn look(link: &Link, cx: &Exec<'_>) -> String {
    let child = &link.named.table;
    let name = |place: &usize| quoted(&child.columns[*place].name);
    let conditions = (1..).zip(&link.named.columns);
    let conditions: Vec<_> = conditions
        .map(|(number, place)| format!("${number} OPERATOR(pg_catalog.=) {}", name(place)))
        .collect();
    format!(
        "SELECT 1 FROM {}{} x WHERE {} FOR KEY SHARE OF x",
        only(child),
        qualified(child, cx),
        conditions.join(" AND ")
    )
}

/// The query with which PostgreSQL changes the rows.
fn query(rules: &Rules, link: &Link, action: Action, deletes: bool, cx: &Exec<'_>) -> String {
    let child = &rules.tables[link.child].table;
    let name = |place: &usize| quoted(&child.columns[*place].name);
    let set: Vec<_> = match (action, deletes) {
        (Action::Cascade, true) => Vec::new(),
        (Action::Cascade, false) => (1..)
            .zip(&link.key.columns)
            .map(|(number, place)| format!("{} = ${number}", name(place)))
            .collect(),
        (action, _) => {
            let value = match action {
                Action::SetNull => "NULL",
                _ => "DEFAULT",
            };
            let places = match deletes {
                true => link.key.set_on_delete(),
                false => &link.key.columns,
            };
            let set = places
                .iter()
                .map(|place| format!("{} = {value}", name(place)));
            set.collect()
        }
    };
    let first = match (action, deletes) {
        (Action::Cascade, false) => set.len() + 1,
        _ => 1,
    };
    let conditions: Vec<_> = (first..)
        .zip(&link.key.columns)
        .map(|(number, place)| format!("${number} OPERATOR(pg_catalog.=) {}", name(place)))
        .collect();
    let (table, conditions) = (qualified(child, cx), conditions.join(" AND "));
    match set.is_empty() {
        true => format!("DELETE FROM ONLY {table} WHERE {conditions}"),
        false => format!(
            "UPDATE ONLY {table} SET {} WHERE {conditions}",
            set.join(", ")
        ),
    }
}
