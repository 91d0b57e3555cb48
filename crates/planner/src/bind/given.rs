//! Columns whose values are not for the statement to give: identity columns and generated ones.

use base::{Error, Result, SqlState};
use pg_query::protobuf::{InsertStmt, OverridingKind};

use catalog::{Column, Identity, Table};

/// What becomes of a value that INSERT gives for a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Given {
    /// It is taken.
    Taken,
    /// The column's default is taken instead (OVERRIDING USER VALUE).
    Ignored,
    /// Only DEFAULT may be given.
    Refused,
}

/// What becomes of the values of these columns.
pub(super) fn given(insert: &InsertStmt, table: &Table, places: &[usize]) -> Vec<Given> {
    let overriding = OverridingKind::try_from(insert.r#override);
    let of = |place: &usize| {
        let column = &table.columns[*place];
        match (column.generated, column.identity, overriding) {
            (true, _, _) => Given::Refused,
            (_, Identity::None, _) => Given::Taken,
            (_, _, Ok(OverridingKind::OverridingUserValue)) => Given::Ignored,
            (_, Identity::Always, Ok(OverridingKind::OverridingSystemValue)) => Given::Taken,
            (_, Identity::Always, _) => Given::Refused,
            (_, Identity::ByDefault, _) => Given::Taken,
        }
    };
    places.iter().map(of).collect()
}

/// 428C9 for a value that is given to such a column.
pub(super) fn refused_insert(column: &Column) -> Error {
    let message = format!(
        "cannot insert a non-DEFAULT value into column \"{}\"",
        column.name
    );
    let error = explained(message, column);
    match column.generated {
        true => error,
        false => error.with_hint("Use OVERRIDING SYSTEM VALUE to override."),
    }
}

/// Refuses to set such a column to anything but DEFAULT.
pub(super) fn check_update(column: &Column) -> Result<()> {
    if !column.generated && column.identity != Identity::Always {
        return Ok(());
    }
    let message = format!("column \"{}\" can only be updated to DEFAULT", column.name);
    Err(explained(message, column))
}

fn explained(message: String, column: &Column) -> Error {
    let what = match column.generated {
        true => "a generated column",
        false => "an identity column defined as GENERATED ALWAYS",
    };
    let detail = format!("Column \"{}\" is {what}.", column.name);
    Error::new(SqlState::of("428C9"), message).with_detail(detail)
}
