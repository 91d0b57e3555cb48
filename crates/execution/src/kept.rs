//! Rows in memory, counted.
//!
//! [`RowStore`] is where a statement keeps rows: each is taken from the node's memory
//! ([`base::memory`]) before it is kept, and given back with the store.

use base::memory::Reservation;
use base::Result;
use planner::plan::Row;
use types::Datum;

/// What an allocation takes beside what was asked for, in bytes.
const ALLOCATION: usize = 16;

/// What a place in a hash table by row takes: the hash, the list of places, and what is empty.
pub const HASHED_BYTES: usize = 112;

/// Rows, and the memory that they take.
#[derive(Debug, Default)]
pub struct RowStore {
    rows: Vec<Row>,
    held: Reservation,
}

impl RowStore {
    /// No rows yet, for what an error names so.
    pub fn of(what: &'static str) -> RowStore {
        RowStore {
            rows: Vec::new(),
            held: Reservation::of(what),
        }
    }

    /// These rows, with the memory that was taken for them.
    pub fn holding(rows: Vec<Row>, held: Reservation) -> RowStore {
        RowStore { rows, held }
    }

    /// Rows that were made elsewhere.
    ///
    /// # Errors
    /// As [`Reservation::grow`].
    pub fn counted(what: &'static str, rows: Vec<Row>) -> Result<RowStore> {
        let mut held = Reservation::of(what);
        held.grow(rows.iter().map(row_bytes).sum())?;
        Ok(RowStore { rows, held })
    }

    /// Keeps a row.
    ///
    /// # Errors
    /// As [`Reservation::grow`].
    pub fn push(&mut self, row: Row) -> Result<()> {
        self.held.grow(row_bytes(&row))?;
        self.rows.push(row);
        Ok(())
    }

    /// Counts what is kept beside the rows.
    ///
    /// # Errors
    /// As [`Reservation::grow`].
    pub fn grow(&mut self, bytes: usize) -> Result<()> {
        self.held.grow(bytes)
    }

    /// The memory that they take, in bytes.
    pub fn bytes(&self) -> usize {
        self.held.bytes()
    }

    /// The rows, to be changed in place.
    pub fn rows_mut(&mut self) -> &mut Vec<Row> {
        &mut self.rows
    }
}

impl std::ops::Deref for RowStore {
    type Target = [Row];

    fn deref(&self) -> &[Row] {
        &self.rows
    }
}

impl IntoIterator for RowStore {
    type Item = Row;
    type IntoIter = StoredRows;

    fn into_iter(self) -> StoredRows {
        StoredRows {
            rows: self.rows.into_iter(),
            _held: self.held,
        }
    }
}

/// The rows of a store, one after the other. Their memory is given back when all are gone.
#[derive(Debug)]
pub struct StoredRows {
    rows: std::vec::IntoIter<Row>,
    _held: Reservation,
}

impl Iterator for StoredRows {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        self.rows.next()
    }
}

/// The memory that a row takes, in bytes.
#[allow(clippy::ptr_arg)]
pub fn row_bytes(row: &Row) -> usize {
    let places = size_of::<Row>() + ALLOCATION + row.capacity() * size_of::<Datum>();
    places + row.iter().map(apart).sum::<usize>()
}

/// The memory of a value that is not in its place.
pub fn apart(value: &Datum) -> usize {
    let counted = |bytes: usize| 2 * ALLOCATION + bytes;
    let each = |values: &[Datum]| values.iter().map(apart).sum::<usize>();
    match value {
        Datum::Text(text) => counted(text.len()),
        Datum::Bytea(bytes)
        | Datum::Jsonb(bytes)
        | Datum::TsVector(bytes)
        | Datum::TsQuery(bytes) => counted(bytes.len()),
        Datum::Array(array) => {
            let places = size_of_val(&array.elements[..]) + size_of_val(&array.dimensions[..]);
            counted(size_of_val(&**array) + places) + each(&array.elements)
        }
        Datum::Record(record) => {
            let places = size_of_val(&record.values[..]) + size_of_val(&record.types[..]);
            counted(size_of_val(&**record) + places) + each(&record.values)
        }
        Datum::Numeric(number) => number.bytes_apart(),
        Datum::Bits(bits) => counted(bits.bytes().len()),
        Datum::Range(range) => counted(size_of_val(&**range) + range.bytes()),
        Datum::Multirange(multirange) => counted(multirange.bytes()),
        _ => 0,
    }
}

/// Values of fewer bytes are not counted while they are computed with.
const LARGE_BYTES_MIN: usize = 64 << 10;

/// The bytes of a value that is counted while it is computed with; 0 for all others.
#[inline]
pub fn large_bytes(value: &Datum) -> usize {
    let bytes = match value {
        Datum::Text(text) => text.len(),
        Datum::Bytea(bytes)
        | Datum::Jsonb(bytes)
        | Datum::TsVector(bytes)
        | Datum::TsQuery(bytes) => bytes.len(),
        Datum::Array(array) => size_of_val(&array.elements[..]),
        Datum::Multirange(multirange) => size_of_val(multirange.ranges()),
        _ => 0,
    };
    match bytes < LARGE_BYTES_MIN {
        true => 0,
        false => bytes,
    }
}
