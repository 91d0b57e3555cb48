//! What a new row must meet, and the errors of rows that do not: policies, NOT NULL, CHECK, conditions
//! of views, keys that are taken.
//!
//! ```text
//! insert into t values (-1)    generated columns │ policies │ NOT NULL │ CHECK: 23514 │ views
//! ```
//! An error shows as much of the row as the role may see.

use base::{Error, Result, SqlState};

use super::entries::Taken;
use super::{exclusion, index_text, partition, Exec};
use crate::exec::program::Evaluate;
use catalog::{Index, Table};
use planner::plan::partition::Through;
use planner::plan::Program;
use planner::plan::{PolicyCheck, Target};
use types::{self, Datum};

/// Computes the generated columns of a new row, and checks it against policies, NOT NULL, CHECK and
/// the conditions of views.
pub(super) fn check_row(
    target: &Target,
    policies: &[PolicyCheck],
    row: &mut [Datum],
    cx: &mut Exec<'_>,
) -> Result<()> {
    for (place, value) in &target.generated {
        row[*place] = value.eval(cx, row)?;
    }
    check_policies(&target.table, policies, "", row, cx)?;
    let through = target.through.as_ref();
    check_values((&target.table, through), &target.checks, row, cx)?;
    let check = target.partition_check.as_deref();
    partition::check((&target.table, through), check, row, cx)?;
    check_views(target, row, cx)
}

/// Checks a row against the conditions of the views through which it is written.
pub(super) fn check_views(target: &Target, row: &[Datum], cx: &mut Exec<'_>) -> Result<()> {
    for (view, condition) in &target.view_checks {
        // Here NULL is one: the view would not show the row.
        if !condition.test(cx, row)? {
            let message = format!("new row violates check option for view \"{view}\"");
            return Err(failing_row(
                Error::new(SqlState::of("44000"), message),
                (&target.table, None),
                row,
                cx,
            ));
        }
    }
    Ok(())
}

/// 42501 for a row that policies do not let be written. What it holds is not said.
pub(super) fn check_policies(
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

/// 42501 for a row that policies do not let MERGE change.
pub(super) fn check_old_row(
    table: &Table,
    policies: &[PolicyCheck],
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
                "target row violates row-level security policy{named} (USING expression) for \
                 table \"{}\"",
                table.name
            ),
        ));
    }
    Ok(())
}

/// Checks the values of a row against NOT NULL and these CHECK constraints.
pub(super) fn check_values(
    (table, through): (&Table, Option<&Through>),
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
            let mut error = failing_row(error, (table, through), row, cx);
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
            let mut error = failing_row(error, (table, through), row, cx);
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

/// The same error with the row that fails, as far as the role may see its columns: as the table has it
/// through which it is written.
pub(super) fn failing_row(
    error: Error,
    (table, through): (&Table, Option<&Through>),
    row: &[Datum],
    cx: &Exec<'_>,
) -> Error {
    const VALUE_CHARS_MAX: usize = 64;
    if let Some(through) = through {
        return failing_row(error, (&through.table, None), &through.raised(row), cx);
    }
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
pub(super) fn duplicate_key(table: &Table, index: &Index, row: &[Datum], cx: &Exec<'_>) -> Error {
    let columns = index.columns.iter().map(|column| column.column);
    let values: Vec<_> = columns
        .map(|place| (table.columns[place].type_id, row[place].clone()))
        .collect();
    taken_key(table, index, &values, cx)
}

/// 23505 or 23P01 for a row that another has taken the keys of.
pub(super) fn taken_entry(table: &Table, taken: &Taken, cx: &Exec<'_>) -> Error {
    let (index, values) = (&table.indexes[taken.index], &taken.values);
    match &taken.met {
        None => taken_key(table, index, values, cx),
        Some(met) => exclusion::conflicting(table, index, values, &met.values, cx),
    }
}

/// Whether whoever asks may see the values of an index's keys.
pub(super) fn is_shown(table: &Table, index: &Index, cx: &Exec<'_>) -> bool {
    let seen: Option<Vec<_>> = (0..index.key_count())
        .map(|place| index.key_column(place))
        .collect();
    // Whose values an expression shows is not asked: only who sees the whole table sees it.
    let mut seen = seen
        .unwrap_or_else(|| vec![table.columns.len()])
        .into_iter();
    cx.may_see(table, &mut seen)
}

/// 23505 for a row whose key in an index, with these values, is taken.
pub(super) fn taken_key(
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
    if is_shown(table, index, cx) {
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
