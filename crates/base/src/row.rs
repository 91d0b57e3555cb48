//! Rows as they are stored, logged and sent between nodes: columns of bytes, each perhaps absent.
//!
//! What the bytes of a column mean is SQL's affair; below SQL only [`crate::key`] looks inside, to
//! derive index keys. A row is `varint(columns)`, then for each column `varint(0)` for NULL or
//! `varint(length + 1)` and the bytes. Columns added to a table later are missing at the end of
//! older rows and read as NULL here.
//!
//! A value may be longer than a row should be. Then what stands for it is in the row, after a mark
//! that is no length; how to come by the value from that is SQL's affair too. Such a column is in
//! no key ([`Row::is_long`]).
//!
//! A [`RowDelta`] is what UPDATE logs: only the columns that changed.
//!
//! ```
//! use base::row::{Row, RowBuilder, RowDelta};
//! let old = RowBuilder::new(2).value(b"alice").value(b"100").finish();
//! let new = RowBuilder::new(2).value(b"alice").null().finish();
//! let delta = RowDelta::between(&old, &new).unwrap();
//! assert_eq!(delta.apply(&old).unwrap(), new);
//! assert_eq!(Row::parse(&new).unwrap().column(1), None);
//! ```

use crate::codec::{put_bytes, put_varint, Reader};
use crate::error::{Error, Result};
use crate::limits::{COLUMNS_MAX, VALUE_BYTES_MAX};

/// In the place of a column's length: what follows, with its length, stands for a long value.
/// Above the length of any value.
const LONG: u64 = 1 << 31;

const _: () = assert!(LONG > VALUE_BYTES_MAX as u64 + 1);

/// A column as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredColumn<'a> {
    /// NULL.
    Null,
    /// A value.
    Value(&'a [u8]),
    /// What stands for a long value.
    Long(&'a [u8]),
}

impl<'a> StoredColumn<'a> {
    /// Reads the next column of a row.
    ///
    /// # Errors
    /// XX001 when it is none.
    #[inline]
    pub fn read(reader: &mut Reader<'a>) -> Result<StoredColumn<'a>> {
        Ok(match reader.varint()? {
            0 => StoredColumn::Null,
            LONG => StoredColumn::Long(reader.bytes()?),
            len => {
                let len = usize::try_from(len - 1);
                StoredColumn::Value(reader.take(len.unwrap_or(usize::MAX))?)
            }
        })
    }

    fn put(self, out: &mut Vec<u8>) {
        match self {
            StoredColumn::Null => put_varint(out, 0),
            StoredColumn::Value(bytes) => {
                put_varint(out, bytes.len() as u64 + 1);
                out.extend_from_slice(bytes);
            }
            StoredColumn::Long(bytes) => {
                put_varint(out, LONG);
                put_bytes(out, bytes);
            }
        }
    }

    fn bytes(self) -> Option<&'a [u8]> {
        match self {
            StoredColumn::Null => None,
            StoredColumn::Value(bytes) | StoredColumn::Long(bytes) => Some(bytes),
        }
    }
}

/// Builds the bytes of a row, column by column.
#[derive(Debug)]
pub struct RowBuilder {
    bytes: Vec<u8>,
    columns: usize,
    written: usize,
}

impl RowBuilder {
    /// A row of so many columns.
    pub fn new(columns: usize) -> RowBuilder {
        let mut bytes = Vec::with_capacity(1 + columns * 8);
        put_varint(&mut bytes, columns as u64);
        RowBuilder {
            bytes,
            columns,
            written: 0,
        }
    }

    /// The next column is NULL.
    #[must_use]
    pub fn null(mut self) -> RowBuilder {
        self.push(None);
        self
    }

    /// The next column has this value.
    #[must_use]
    pub fn value(mut self, bytes: &[u8]) -> RowBuilder {
        self.push(Some(bytes));
        self
    }

    /// The next column.
    pub fn push(&mut self, column: Option<&[u8]>) {
        self.push_stored(column.map_or(StoredColumn::Null, StoredColumn::Value));
    }

    /// The next column, which may be a long one.
    pub fn push_stored(&mut self, column: StoredColumn<'_>) {
        self.written += 1;
        column.put(&mut self.bytes);
    }

    /// The bytes.
    ///
    /// # Panics
    /// When more or fewer columns were given than announced.
    pub fn finish(self) -> Vec<u8> {
        assert_eq!(self.written, self.columns, "columns written and announced");
        self.bytes
    }
}

/// A row taken apart; borrows its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row<'a> {
    columns: Vec<Option<&'a [u8]>>,
    /// The places of columns of which only what stands for them is there; most rows have none.
    long: Vec<usize>,
}

impl<'a> Row<'a> {
    /// Takes the bytes of a row apart.
    ///
    /// # Errors
    /// XX001 when they are not a row.
    pub fn parse(bytes: &'a [u8]) -> Result<Row<'a>> {
        let mut row = Row {
            columns: Vec::new(),
            long: Vec::new(),
        };
        row.read(bytes)?;
        Ok(row)
    }

    fn read(&mut self, bytes: &'a [u8]) -> Result<()> {
        let mut reader = Reader::new(bytes);
        let count: usize = reader.varint_as()?;
        if count > COLUMNS_MAX {
            return Err(Error::corrupted(format!("a row of {count} columns")));
        }
        self.columns.reserve(count);
        for place in 0..count {
            let column = StoredColumn::read(&mut reader)?;
            if matches!(column, StoredColumn::Long(_)) {
                self.long.push(place);
            }
            self.columns.push(column.bytes());
        }
        reader.finish()
    }

    /// Whether the bytes of a column only stand for a long value.
    pub fn is_long(&self, index: usize) -> bool {
        self.long.contains(&index)
    }

    fn stored(&self, index: usize) -> StoredColumn<'a> {
        match self.column(index) {
            None => StoredColumn::Null,
            Some(bytes) if self.is_long(index) => StoredColumn::Long(bytes),
            Some(bytes) => StoredColumn::Value(bytes),
        }
    }

    /// How many columns the row was written with.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Whether it has no column.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// A column; `None` is NULL, also for columns that the row is too old to have.
    pub fn column(&self, index: usize) -> Option<&'a [u8]> {
        self.columns.get(index).copied().flatten()
    }

    /// The columns as written.
    pub fn columns(&self) -> &[Option<&'a [u8]>] {
        &self.columns
    }
}

/// The columns of a row that an update changes, encoded: `varint(columns of the new row)`, then
/// for each changed column `varint(index)` and the column as in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowDelta {
    bytes: Vec<u8>,
}

impl RowDelta {
    /// What must change in `old` to make `new`.
    ///
    /// # Errors
    /// XX001 when either is not a row.
    pub fn between(old: &[u8], new: &[u8]) -> Result<RowDelta> {
        let (old, new) = (Row::parse(old)?, Row::parse(new)?);
        let mut bytes = Vec::new();
        put_varint(&mut bytes, new.len() as u64);
        for index in 0..new.len() {
            let column = new.stored(index);
            if index < old.len() && old.stored(index) == column {
                continue;
            }
            put_varint(&mut bytes, index as u64);
            column.put(&mut bytes);
        }
        Ok(RowDelta { bytes })
    }

    /// A delta as it was logged.
    pub fn from_bytes(bytes: &[u8]) -> RowDelta {
        RowDelta {
            bytes: bytes.to_vec(),
        }
    }

    /// As it is logged.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The new row.
    ///
    /// # Errors
    /// XX001 when `old` is not a row or the delta does not fit it.
    pub fn apply(&self, old: &[u8]) -> Result<Vec<u8>> {
        let old = Row::parse(old)?;
        let mut reader = Reader::new(&self.bytes);
        let count: usize = reader.varint_as()?;
        if count > COLUMNS_MAX {
            return Err(Error::corrupted(format!("a row of {count} columns")));
        }
        let mut columns: Vec<_> = (0..count).map(|i| old.stored(i)).collect();
        while !reader.is_empty() {
            let index: usize = reader.varint_as()?;
            let value = StoredColumn::read(&mut reader)?;
            let column = columns
                .get_mut(index)
                .ok_or_else(|| Error::corrupted("a changed column beyond the row"))?;
            *column = value;
        }
        let mut row = RowBuilder::new(count);
        columns
            .into_iter()
            .for_each(|column| row.push_stored(column));
        Ok(row.finish())
    }
}

/// Appends a row or other bytes that may be absent: `varint(0)`, or a length plus one and bytes.
pub fn put_optional(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        None => put_varint(out, 0),
        Some(bytes) => {
            put_varint(out, 1);
            put_bytes(out, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_columns_are_told_apart() {
        let row = |long: bool| {
            let mut row = RowBuilder::new(3).value(b"a");
            row.push_stored(match long {
                true => StoredColumn::Long(b"xyz"),
                false => StoredColumn::Value(b"xyz"),
            });
            row.null().finish()
        };
        let (short, long) = (row(false), row(true));
        assert_ne!(short, long);
        let read = Row::parse(&long).unwrap();
        let is_long: Vec<_> = (0..4).map(|place| read.is_long(place)).collect();
        assert_eq!(is_long, [false, true, false, false]);
        assert_eq!(read.column(1), Some(&b"xyz"[..]));
        for (old, new) in [(&short, &long), (&long, &short), (&long, &long)] {
            let delta = RowDelta::between(old, new).unwrap();
            assert_eq!(&delta.apply(old).unwrap(), new);
        }
        // A long column that stays is not in the delta, whatever else changes.
        let mut other = RowBuilder::new(3).value(b"b");
        other.push_stored(StoredColumn::Long(b"xyz"));
        let other = other.null().finish();
        let delta = RowDelta::between(&long, &other).unwrap();
        assert_eq!(delta.as_bytes(), [3, 0, 2, b'b']);
        assert_eq!(delta.apply(&long).unwrap(), other);
    }
}
