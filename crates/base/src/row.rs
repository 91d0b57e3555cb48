//! Rows as they are stored, logged and sent between nodes: columns of bytes, each perhaps absent.
//!
//! What the bytes of a column mean is SQL's affair; below SQL only [`crate::key`] looks inside, to
//! derive index keys. A row is `varint(columns)`, then for each column `varint(0)` for NULL or
//! `varint(length + 1)` and the bytes. Columns added to a table later are missing at the end of
//! older rows and read as NULL here.
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
use crate::limits::COLUMNS_MAX;

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
        self.written += 1;
        match column {
            None => put_varint(&mut self.bytes, 0),
            Some(bytes) => {
                put_varint(&mut self.bytes, bytes.len() as u64 + 1);
                self.bytes.extend_from_slice(bytes);
            }
        }
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
}

impl<'a> Row<'a> {
    /// Takes the bytes of a row apart.
    ///
    /// # Errors
    /// XX001 when they are not a row.
    pub fn parse(bytes: &'a [u8]) -> Result<Row<'a>> {
        let mut row = Row {
            columns: Vec::new(),
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
        for _ in 0..count {
            let column = match reader.varint_as::<usize>()? {
                0 => None,
                len => Some(reader.take(len - 1)?),
            };
            self.columns.push(column);
        }
        reader.finish()
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
        for (index, column) in new.columns().iter().enumerate() {
            if index < old.len() && old.column(index) == *column {
                continue;
            }
            put_varint(&mut bytes, index as u64);
            match column {
                None => put_varint(&mut bytes, 0),
                Some(value) => {
                    put_varint(&mut bytes, value.len() as u64 + 1);
                    bytes.extend_from_slice(value);
                }
            }
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
        let mut columns: Vec<Option<&[u8]>> = (0..count).map(|i| old.column(i)).collect();
        while !reader.is_empty() {
            let index: usize = reader.varint_as()?;
            let value = match reader.varint_as::<usize>()? {
                0 => None,
                len => Some(reader.take(len - 1)?),
            };
            let column = columns
                .get_mut(index)
                .ok_or_else(|| Error::corrupted("a changed column beyond the row"))?;
            *column = value;
        }
        let mut row = RowBuilder::new(count);
        columns.into_iter().for_each(|column| row.push(column));
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
