//! Rows in memory, counted.
//!
//! [`RowStore`] is where a statement keeps rows: each is taken from the node's memory
//! ([`base::memory`]) before it is kept, and given back with the store, which is dropped in turns
//! ([`base::large`]).

use base::coro;
use base::hash::HashMap;
use base::large::{Items, Large, DROP_WORK};
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
    rows: Large<Vec<Row>>,
    held: Reservation,
}

impl RowStore {
    /// No rows yet, for what an error names so.
    pub fn of(what: &'static str) -> RowStore {
        RowStore {
            rows: Large::default(),
            held: Reservation::of(what),
        }
    }

    /// These rows, with the memory that was taken for them.
    pub fn holding(rows: Vec<Row>, held: Reservation) -> RowStore {
        let rows = rows.into();
        RowStore { rows, held }
    }

    /// Rows that were made elsewhere.
    ///
    /// # Errors
    /// As [`Reservation::grow`].
    pub fn counted(what: &'static str, rows: Vec<Row>) -> Result<RowStore> {
        let mut held = Reservation::of(what);
        held.grow(rows.iter().map(row_bytes).sum())?;
        Ok(RowStore::holding(rows, held))
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

    /// Forgets all rows but the first, and gives the memory of the others back.
    pub fn truncate(&mut self, count: usize) {
        let others = self.rows.get(count..).unwrap_or_default();
        let bytes = others.iter().map(row_bytes).sum();
        self.rows.truncate(count);
        self.held.shrink(bytes);
    }

    /// Forgets all rows, and gives their memory back.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.held.shrink(usize::MAX);
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
    rows: Items<std::vec::IntoIter<Row>>,
    _held: Reservation,
}

impl Iterator for StoredRows {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        self.rows.next()
    }
}

/// Rows that are as wide as one another, of which only some columns ever have a value: those are kept,
/// one row behind the other.
///
/// Such are the inputs of joins, which are as wide as their tables: most columns of a wide table are
/// needed by nobody.
#[derive(Debug)]
pub struct PackedRows {
    /// How many columns a row has.
    width: usize,
    /// Which of them are kept, in ascending order.
    kept: Vec<usize>,
    /// Pieces of [`PIECE_ROWS`] rows each, so that none is moved when more come.
    pieces: Vec<Vec<Datum>>,
    len: usize,
    held: Reservation,
}

/// How many rows lie in one piece of memory.
const PIECE_ROWS: usize = 256;

impl Drop for PackedRows {
    fn drop(&mut self) {
        self.drop_pieces(0);
    }
}

impl PackedRows {
    /// No rows yet, of so many columns, of which these are kept.
    pub fn new(what: &'static str, width: usize, kept: Vec<usize>) -> PackedRows {
        PackedRows {
            width,
            kept,
            pieces: Vec::new(),
            len: 0,
            held: Reservation::of(what),
        }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Keeps a row's values; what is left of it is good for nothing but its memory.
    ///
    /// # Errors
    /// As [`Reservation::grow`].
    pub fn push(&mut self, row: &mut [Datum]) -> Result<()> {
        let stride = self.kept.len();
        if self.len % PIECE_ROWS == 0 {
            // Many have but a few rows.
            let rows = if self.len > 0 { PIECE_ROWS } else { 0 };
            if self.pieces.len() <= self.len / PIECE_ROWS {
                self.pieces.push(Vec::with_capacity(rows * stride));
            }
        }
        let apart: usize = self.kept.iter().map(|place| apart(&row[*place])).sum();
        self.held.grow(stride * size_of::<Datum>() + apart)?;
        if let Some(piece) = self.pieces.last_mut() {
            let values = self
                .kept
                .iter()
                .map(|place| std::mem::replace(&mut row[*place], Datum::Null));
            piece.extend(values);
            self.len += 1;
        }
        Ok(())
    }

    /// Forgets all rows, and keeps the memory of a few.
    pub fn clear(&mut self) {
        self.drop_pieces(1);
        self.pieces.iter_mut().for_each(Vec::clear);
        self.len = 0;
        self.held.shrink(usize::MAX);
    }

    /// Drops the pieces from a place on, in turns.
    fn drop_pieces(&mut self, first: usize) {
        while self.pieces.len() > first {
            let values = self.pieces.pop().map_or(0, |piece| piece.len());
            coro::work_uninterrupted(values * DROP_WORK / 4);
        }
    }

    /// The kept values of a row.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn get(&self, place: usize) -> &[Datum] {
        assert!(place < self.len, "row {place} of {}", self.len);
        let start = place % PIECE_ROWS * self.kept.len();
        &self.pieces[place / PIECE_ROWS][start..start + self.kept.len()]
    }

    /// Where a column stands among the kept values, if it is kept.
    pub fn position(&self, column: usize) -> Option<usize> {
        self.kept.binary_search(&column).ok()
    }

    /// Appends a whole row to others' columns.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn append_to(&self, place: usize, row: &mut Row) {
        let values = self.get(place);
        if self.kept.len() == self.width {
            row.extend_from_slice(values);
            return;
        }
        row.reserve(self.width);
        let mut next = 0;
        for (column, value) in self.kept.iter().zip(values) {
            row.extend((next..*column).map(|_| Datum::Null));
            row.push(value.clone());
            next = column + 1;
        }
        row.extend((next..self.width).map(|_| Datum::Null));
    }

    /// Appends some columns of a row to others' columns.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn append_some(&self, place: usize, columns: &[usize], row: &mut Row) {
        let values = self.get(place);
        match self.kept.len() == self.width {
            true => row.extend(columns.iter().map(|column| values[*column].clone())),
            false => row.extend(columns.iter().map(|column| match self.position(*column) {
                Some(at) => values[at].clone(),
                None => Datum::Null,
            })),
        }
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
}

/// Places of rows by the hash of something, those of one hash one after the other.
#[derive(Debug, Default)]
pub struct HashedPlaces {
    /// The latest place of each hash, and by place the one before, each plus one.
    latest: HashMap<u64, u32>,
    before: Vec<u32>,
}

impl HashedPlaces {
    /// None yet, with room for so many.
    pub fn with_capacity(places: usize) -> HashedPlaces {
        let mut hashed = HashedPlaces::default();
        hashed.latest.reserve(places);
        hashed
    }

    /// Adds a place, which is shown before those that were added earlier.
    ///
    /// # Panics
    /// On more places than have a number.
    pub fn add(&mut self, hash: u64, place: usize) {
        let number = u32::try_from(place + 1).expect("fewer rows than fit in memory");
        if self.before.len() <= place {
            self.before.resize(place + 1, 0);
        }
        self.before[place] = self.latest.insert(hash, number).unwrap_or(0);
    }

    /// The place of a hash that was added last.
    #[inline]
    pub fn first(&self, hash: u64) -> Option<usize> {
        self.latest.get(&hash).map(|number| *number as usize - 1)
    }

    /// The one of the same hash that was added before.
    #[inline]
    pub fn next(&self, place: usize) -> Option<usize> {
        (self.before[place] as usize).checked_sub(1)
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
        | Datum::Hstore(bytes)
        | Datum::Vector(bytes)
        | Datum::TsVector(bytes)
        | Datum::TsQuery(bytes) => counted(bytes.len()),
        Datum::Geometry(numbers) => counted(size_of_val(&numbers[..])),
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
        | Datum::Hstore(bytes)
        | Datum::Vector(bytes)
        | Datum::TsVector(bytes)
        | Datum::TsQuery(bytes) => bytes.len(),
        Datum::Geometry(numbers) => size_of_val(&numbers[..]),
        Datum::Array(array) => size_of_val(&array.elements[..]),
        Datum::Multirange(multirange) => size_of_val(multirange.ranges()),
        _ => 0,
    };
    match bytes < LARGE_BYTES_MIN {
        true => 0,
        false => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_rows_come_back_whole() {
        let mut rows = PackedRows::new("A test", 4, vec![1, 3]);
        for number in 0..1_000 {
            let text = Datum::text(number.to_string());
            rows.push(&mut [Datum::Null, Datum::Int4(number), Datum::Bool(true), text])
                .unwrap();
        }
        assert_eq!(rows.len(), 1_000);
        assert!(rows.bytes() > 1_000 * 2 * size_of::<Datum>());
        for number in [0, 255, 256, 999] {
            let mut row = vec![Datum::Int8(7)];
            rows.append_to(number, &mut row);
            let (value, text) = (Datum::Int4(number as i32), Datum::text(number.to_string()));
            assert_eq!(row, [Datum::Int8(7), Datum::Null, value, Datum::Null, text]);
        }
        assert_eq!(rows.position(3), Some(1));
        assert_eq!(rows.position(2), None);
    }

    #[test]
    fn places_of_one_hash_come_from_the_latest_on() {
        let mut places = HashedPlaces::default();
        for place in 0..10 {
            places.add(place as u64 % 3, place);
        }
        let all: Vec<_> =
            std::iter::successors(places.first(1), |place| places.next(*place)).collect();
        assert_eq!(all, [7, 4, 1]);
        assert_eq!(places.first(3), None);
    }

    /// How often a statement gives way.
    fn turns(statement: impl FnOnce() + 'static) -> usize {
        use std::future::Future;
        use std::task::{Context, Poll, Waker};
        let mut run = coro::run(std::sync::Arc::default(), statement);
        let mut cx = Context::from_waker(Waker::noop());
        let mut turns = 0;
        while std::pin::Pin::new(&mut run).poll(&mut cx) == Poll::Pending {
            turns += 1;
        }
        turns
    }

    #[test]
    fn rows_that_are_kept_are_dropped_in_turns() {
        const TURN: usize = base::limits::WORK_PER_TURN / DROP_WORK;
        let mut rows = RowStore::of("A test");
        let mut packed = PackedRows::new("A test", 4, vec![0, 1, 2, 3]);
        for _ in 0..2 * TURN {
            let row = vec![Datum::Int4(1), Datum::Null, Datum::Null, Datum::Null];
            packed.push(&mut row.clone()).unwrap();
            rows.push(row).unwrap();
        }
        let rest = rows.rows_mut().split_off(TURN);
        let mut rest = RowStore::counted("A test", rest).unwrap().into_iter();
        assert!(rest.next().is_some());
        assert_eq!(turns(|| drop(rows)), 1);
        assert_eq!(turns(|| drop(rest)), 0, "one is missing");
        assert_eq!(turns(|| drop(packed)), 2);
    }
}
