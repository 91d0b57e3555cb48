//! Trees made of the rows that a table has.

use base::engine::IndexColumn;
use base::key::put_key_column;
use base::row::Row;
use base::{Key, Result};

/// The key that a row gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewKey {
    /// This one.
    Is(Key),
    /// None, because this column is NULL.
    Null(usize),
}

/// The key of a row that is made of some of its columns.
///
/// # Errors
/// XX001 when `row` is not a row of the table; 54000 when the key grows too long.
pub fn key_of_columns(columns: &[IndexColumn], row: &Row<'_>) -> Result<NewKey> {
    let mut key = Key::new();
    for column in columns {
        let Some(value) = row.column(column.column) else {
            return Ok(NewKey::Null(column.column));
        };
        put_key_column(&mut key, column.kind, column.descending, Some(value))?;
    }
    Ok(NewKey::Is(key))
}
