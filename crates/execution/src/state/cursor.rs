//! The cursors of a session, as other statements know them: `pg_cursors`, and WHERE CURRENT OF.
//!
//! ```text
//! declare c cursor for select a from t where a > 1;    its rows have two more columns, which nobody sees:
//! fetch c;                                             2 │ the key of the row, the oid of t
//! delete from t where current of c;                    looks up that key
//! ```
//!
//! # What it leaves out
//! A row whose key has been changed since: PostgreSQL follows it, here none is found.

use std::collections::BTreeMap;

use base::{Error, Key, Result, SqlState};
use catalog::{Catalog, Table};
use planner::plan::{CurrentOf, CursorTable};
use types::Datum;

/// What is known of a cursor.
#[derive(Clone, Debug, Default)]
pub struct CursorInfo {
    /// Its name.
    pub name: String,
    /// The DECLARE.
    pub statement: String,
    /// WITH HOLD?
    pub holdable: bool,
    /// May it go back?
    pub scrollable: bool,
    /// When it was declared.
    pub created: i64,
    /// The tables whose rows WHERE CURRENT OF may mean.
    pub tables: Vec<CursorTable>,
    /// Whether its query locks rows.
    pub locks: bool,
    /// Whether the transaction that declared it has ended.
    pub held: bool,
    /// What stands behind the columns of the row that it is on: for each of the tables a key and an oid.
    pub row: Option<Vec<Datum>>,
}

/// The name of the cursor that WHERE CURRENT OF means.
///
/// # Errors
/// 42704 for a variable without a value.
pub fn name_of<'a>(cursor: &'a CurrentOf, params: &'a [Datum]) -> Result<&'a str> {
    match cursor {
        CurrentOf::Named(name) => Ok(name),
        CurrentOf::Variable(place, _) => match params.get(*place) {
            Some(Datum::Text(name)) => Ok(name),
            _ => Err(Error::new(
                SqlState::UNDEFINED_OBJECT,
                format!("no value found for parameter {}", place + 1),
            )),
        },
    }
}

/// The key of the row of a table that a cursor is on, if it is on one of that table.
///
/// # Errors
/// 34000 for a cursor that is not there, 24000 for one that is on no row or cannot be on one.
pub fn current_row(
    cursors: &BTreeMap<String, CursorInfo>,
    catalog: &Catalog,
    name: &str,
    table: &Table,
) -> Result<Option<Key>> {
    let Some(cursor) = cursors.get(name) else {
        let message = format!("cursor \"{name}\" does not exist");
        return Err(Error::new(SqlState::INVALID_CURSOR_NAME, message));
    };
    let refused = |why: &str| {
        let message = format!("cursor \"{name}\" {why}");
        Err(Error::new(SqlState::INVALID_CURSOR_STATE, message))
    };
    if cursor.held {
        return refused("is held from a previous transaction");
    }
    let shown = &table.name;
    let above = catalog.partition_ancestors(table.oid);
    let tables = cursor.tables.iter().enumerate();
    let is_above = |of: u32| above.contains(&of) || catalog.inherits(table, of);
    let own = tables.filter(|(_, of)| of.table == table.oid || is_above(of.table));
    let places: Vec<usize> = own.map(|(place, _)| place).collect();
    let place = match (cursor.locks, places.as_slice()) {
        (_, [place]) => *place,
        (true, []) => {
            let why = format!("does not have a FOR UPDATE/SHARE reference to table \"{shown}\"");
            return refused(&why);
        }
        (true, _) => {
            let why = format!("has multiple FOR UPDATE/SHARE references to table \"{shown}\"");
            return refused(&why);
        }
        (false, _) => {
            return refused(&format!(
                "is not a simply updatable scan of table \"{shown}\""
            ));
        }
    };
    let Some(row) = &cursor.row else {
        return refused("is not positioned on a row");
    };
    match (row.get(2 * place), row.get(2 * place + 1)) {
        (Some(Datum::Bytea(key)), Some(Datum::Oid(of))) if *of == table.oid => {
            Ok(Some(key.to_vec()))
        }
        _ => Ok(None),
    }
}
