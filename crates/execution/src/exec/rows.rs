//! Rows and keys as bytes.
//!
//! The key of a row is its primary key; a table without one numbers its rows (8 bytes,
//! big-endian), which nobody sees. An entry of a secondary index is the index's columns followed by
//! the row's key ([`base::engine::IndexDescriptor`]).

use base::codec::Reader;
use base::key::{put_key_column, KeyKind, VALUE};
use base::row::{Row as StoredRow, StoredColumn};
use base::{Error, Key, Result};

use super::long;
use catalog::store::no_order;
use catalog::{Index, IndexedColumn, KeyOrder, Table};
use planner::plan::Row;
use types::{self, Datum, TypeId, NO_TYPMOD};

/// The values of a stored row; columns that are not needed are NULL. The key follows them if asked
/// for.
///
/// # Errors
/// XX001 when it is no row of the table.
pub fn decode(
    table: &Table,
    needed: &[bool],
    bytes: &[u8],
    key: &[u8],
    with_key: bool,
) -> Result<Row> {
    let mut row = Row::new();
    decode_into(table, needed, bytes, &mut row)?;
    if with_key {
        row.push(Datum::bytea(key));
    }
    Ok(row)
}

/// Appends the values of a stored row; columns that are not needed are NULL.
///
/// # Errors
/// As [`decode`].
pub fn decode_into(table: &Table, needed: &[bool], bytes: &[u8], row: &mut Row) -> Result<()> {
    let start = row.len();
    let width = table.columns.len();
    row.reserve(width + 1);
    row.resize(start + width, Datum::Null);
    decode_over(table, needed, bytes, &mut row[start..])
}

/// Replaces as many values as the table has columns by those of a stored row; columns that are not
/// needed become NULL.
///
/// # Errors
/// As [`decode`].
pub fn decode_over(table: &Table, needed: &[bool], bytes: &[u8], row: &mut [Datum]) -> Result<()> {
    let mut reader = Reader::new(bytes);
    let stored: usize = reader.varint_as()?;
    // Nothing behind the last that is needed is looked at.
    let mut left = match needed.len() < table.columns.len() {
        true => usize::MAX,
        false => needed.iter().filter(|needed| **needed).count(),
    };
    for (place, (column, into)) in table.columns.iter().zip(row).enumerate() {
        let is_needed = left > 0 && needed.get(place).copied().unwrap_or(true);
        let value = match (left > 0, place < stored) {
            (false, _) => StoredColumn::Null,
            (true, true) => StoredColumn::read(&mut reader)?,
            // The row is older than the column.
            (true, false) => match &column.missing {
                Some(bytes) => StoredColumn::Value(bytes),
                None => StoredColumn::Null,
            },
        };
        left -= usize::from(is_needed);
        match value {
            StoredColumn::Value(bytes) if is_needed && !column.dropped => {
                types::decode_column_into(column.type_id, column.typmod, bytes, into)?;
            }
            // Those of dropped columns too: who replaces or deletes the row lets go of them.
            StoredColumn::Long(stored) if is_needed => *into = long::unread(table, column, stored),
            _ if into.is_null() => {}
            _ => *into = Datum::Null,
        }
    }
    Ok(())
}

/// The key under which an index has a row: its columns alone.
///
/// # Errors
/// 54000 when it is too long.
pub fn index_key(table: &Table, index: &Index, row: &[Datum]) -> Result<Key> {
    let mut key = Key::new();
    for column in &index.columns {
        put_key_value(table, column, &row[column.column], &mut key)?;
    }
    Ok(key)
}

/// Appends one column to a key.
///
/// # Errors
/// 42704 for a type without an order; 54000 when the key is too long.
pub fn put_key_value(
    table: &Table,
    column: &IndexedColumn,
    value: &Datum,
    key: &mut Key,
) -> Result<()> {
    let order = KeyOrder {
        type_id: table.columns[column.column].type_id,
        order: column.order,
    };
    put_key(order, value, key)
}

/// Appends one value to a key.
///
/// # Errors
/// As [`put_key_value`].
pub fn put_key(order: KeyOrder, value: &Datum, key: &mut Key) -> Result<()> {
    let KeyOrder { type_id, order } = order;
    let kind = types::key_kind(type_id).ok_or_else(|| no_order(type_id))?;
    if value.is_null() {
        return put_key_column(key, kind, order, None);
    }
    let mut put = |bytes: &[u8]| put_key_column(key, kind, order, Some(bytes));
    match value {
        // Those that are keys most often need no memory of their own.
        Datum::Int2(value) => put(&value.to_be_bytes()),
        Datum::Int4(value) => put(&value.to_be_bytes()),
        Datum::Int8(value) => put(&value.to_be_bytes()),
        Datum::Text(value) => put(value.as_bytes()),
        value => {
            let mut bytes = Vec::new();
            types::encode_column(type_id, NO_TYPMOD, value, &mut bytes)?;
            put(&bytes)
        }
    }
}

/// The key of the row that an entry of a secondary index, key and value, points to.
///
/// # Errors
/// XX001 when the entry is malformed.
pub fn row_key_of_entry<'k>(
    table: &Table,
    index: &Index,
    (entry, value): (&'k [u8], &'k [u8]),
) -> Result<&'k [u8]> {
    if index.computed.is_some() {
        if let Some(key) = StoredRow::parse(value)?.column(0) {
            return Ok(key);
        }
    }
    let mut rest = entry;
    for place in index.stored_order() {
        let order = index.key_order(table, place).ok_or_else(short)?;
        let type_id = order.type_id;
        let kind = types::key_kind(type_id).ok_or_else(|| no_order(type_id))?;
        rest = skip_column(rest, kind, type_id, order.order.descending)?;
    }
    Ok(rest)
}

/// What follows one column of a key.
fn skip_column(key: &[u8], kind: KeyKind, type_id: TypeId, descending: bool) -> Result<&[u8]> {
    let flip = if descending { 0xff } else { 0 };
    let at = |place: usize| key.get(place).map(|byte| byte ^ flip).ok_or_else(short);
    if at(0)? != VALUE {
        return Ok(&key[1..]);
    }
    let escaped = |mut place: usize| -> Result<usize> {
        loop {
            match (at(place)?, at(place + 1)?) {
                (0, 0) => break Ok(place + 2),
                (0, _) => place += 2,
                _ => place += 1,
            }
        }
    };
    let numeric = |start: usize| -> Result<usize> {
        use base::key::numeric_class::{NEGATIVE, POSITIVE};
        let class = at(start)?;
        match class {
            NEGATIVE | POSITIVE => {
                let inverted = if class == NEGATIVE { 0xff } else { 0 };
                let mut place = start + 3;
                while at(place)? ^ inverted != 0 {
                    place += 2;
                }
                Ok(place + 1)
            }
            _ => Ok(start + 1),
        }
    };
    let end = match kind {
        KeyKind::Fixed | KeyKind::Int => 1 + types::fixed_len(type_id).ok_or_else(short)?,
        KeyKind::Float => 9,
        KeyKind::Interval => 17,
        KeyKind::Bytes | KeyKind::Padded | KeyKind::Range | KeyKind::Folded | KeyKind::Array(_) => {
            escaped(1)?
        }
        KeyKind::Vector | KeyKind::HalfVector | KeyKind::SparseVector => {
            1 + base::key::vector_len(kind, |place| at(place + 1))?
        }
        KeyKind::Numeric => numeric(1)?,
        KeyKind::Jsonb => {
            let inner = |place: usize| at(place + 1);
            base::jsonb::key_len(
                inner,
                |place| Ok(escaped(place + 1)? - 1),
                |place| Ok(numeric(place + 1)? - 1),
            )? + 1
        }
    };
    key.get(end..).ok_or_else(short)
}

fn short() -> Error {
    Error::corrupted("an index entry is too short for its columns")
}

/// A value of another integer type, as a bound on a key column.
#[derive(Clone, Debug)]
pub enum KeyFit {
    /// As a value of the column.
    Value(Datum),
    /// It is NULL, which no key equals.
    Null,
    /// It lies above every value of the column.
    Above,
    /// It lies below every value of the column.
    Below,
}

/// Makes a value fit a key of a type: integers of other widths are converted.
pub fn fit_key(type_id: TypeId, value: &Datum) -> KeyFit {
    if value.is_null() {
        return KeyFit::Null;
    }
    let (low, high) = match type_id {
        TypeId::INT2 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        TypeId::INT4 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        TypeId::INT8 => (i64::MIN, i64::MAX),
        _ => return KeyFit::Value(value.clone()),
    };
    let Some(number) = value.as_i64() else {
        return KeyFit::Value(value.clone());
    };
    if number > high {
        return KeyFit::Above;
    }
    if number < low {
        return KeyFit::Below;
    }
    KeyFit::Value(match type_id {
        TypeId::INT2 => Datum::Int2(number as i16),
        TypeId::INT4 => Datum::Int4(number as i32),
        _ => Datum::Int8(number),
    })
}
