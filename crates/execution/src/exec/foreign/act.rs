//! What happens to the rows that refer to a key which a row of the parent left.

use base::engine::{Isolation, LockWait, LockedRow, RowLock};
use base::{Error, Key, Result};
use std::rc::Rc;

use super::find::Referrers;
use super::owner::{self, Need};
use super::{check, qualified, quoted, shown, violation, within, Link, Rules};
use crate::exec::program::Evaluate;
use crate::exec::{entries, long, rows, write, Exec};
use catalog::access::Privileges;
use catalog::{Action, Table};
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
    let outcome = cx.as_role(child.owner, |cx| change(rules, link, action, old, new, cx));
    outcome.map_err(
        |e| match e.state() == base::SqlState::FOREIGN_KEY_VIOLATION {
            true => e,
            false => within(e, || own_query(cx)),
        },
    )?;
    cx.txn.next_command();
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
    check::is_there(rules, link, &key, cx)
}

/// 23503 if a row still refers to the values.
fn refuse(rules: &Rules, link: &Link, values: &[Datum], cx: &mut Exec<'_>) -> Result<()> {
    let child = &rules.tables[link.child].table;
    let parent = &rules.tables[link.parent].table;
    let needs = Need::to_lock(&link.key.columns);
    owner::check(child, &needs, |cx| look(rules, link, cx), cx)?;
    let mut referrers = Referrers::new(rules, link, values)?;
    while let Some((key, _)) = referrers.next(cx)? {
        let mut newest = Vec::new();
        let (strength, wait) = (RowLock::KeyShare, LockWait::Block);
        let locked = match check::in_snapshot(child.tree, &key, cx)? {
            true => cx
                .txn
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
            if cx.txn.isolation() != Isolation::ReadCommitted {
                return Err(Error::serialization(
                    "could not serialize access due to concurrent update",
                ));
            }
        }
        let message = format!(
            "update or delete on table \"{}\" violates foreign key constraint \"{}\" on table \"{}\"",
            parent.name, link.key.name, child.name
        );
        let detail = format!(
            "{} is still referenced from table \"{}\".",
            shown(parent, &link.key.referenced, values, cx),
            child.name
        );
        return Err(violation(rules, link, message, detail, cx));
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
    cx.txn.next_command();
    let deletes = action == Action::Cascade && new.is_none();
    let child: &Table = &rules.tables[link.child].table;
    let own = &rules.tables[link.child].entries;
    while let Some((key, mut row)) = referrers.next(cx)? {
        let strength = match deletes || changes_keys(child, link) {
            true => RowLock::Update,
            false => RowLock::NoKeyUpdate,
        };
        let mut newest = Vec::new();
        let wait = LockWait::Block;
        match cx
            .txn
            .lock_row(child.tree, &key, strength, wait, &mut newest)?
        {
            LockedRow::Gone | LockedRow::Skipped => continue,
            LockedRow::Unchanged => {}
            LockedRow::Changed => {
                row = rows::decode(child, &[], &newest, &key, false)?;
                if !referrers.holds(&row, cx)? {
                    continue;
                }
            }
        }
        if deletes {
            cx.txn.delete(child.tree, &key)?;
            entries::delete(own, child, &key, &row, cx)?;
            long::forget(child, &row, None, cx.txn)?;
            super::deleted(rules, link.child, &row, cx);
            continue;
        }
        update(rules, link, action, (&key, &row), new, cx)?;
    }
    Ok(())
}

fn changes_keys(child: &Table, link: &Link) -> bool {
    let mut unique = child.indexes.iter().filter(|index| index.unique);
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
    for (place, value) in &child.generated {
        row[*place] = value.eval(cx, &row)?;
    }
    write::check_values(&child.table, &child.checks, &row, cx)?;
    let new_key = write::replace(&child.table, &child.entries, key, old, &row, cx)?;
    super::updated(rules, link.child, (key, &new_key), (old, &row), cx);
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
fn look(rules: &Rules, link: &Link, cx: &Exec<'_>) -> String {
    let child = &rules.tables[link.child].table;
    let name = |place: &usize| quoted(&child.columns[*place].name);
    let conditions = (1..).zip(&link.key.columns);
    let conditions: Vec<_> = conditions
        .map(|(number, place)| format!("${number} OPERATOR(pg_catalog.=) {}", name(place)))
        .collect();
    format!(
        "SELECT 1 FROM ONLY {} x WHERE {} FOR KEY SHARE OF x",
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
