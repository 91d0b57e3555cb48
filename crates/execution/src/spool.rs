//! Rows in scratch space: what does not fit into the memory that a statement may take.
//!
//! ```text
//!  RowSpool::push     memory (up to work_mem)        scratch space
//!  ───────────────►   ▪▪▪▪▪▪▪▪▪▪▪▪▪▪   ───────────►  ▪▪▪▪│▪▪▪▪│▪▪▪▪
//!                     the latest rows     all of     blocks, oldest first
//!                                         them
//! ```
//! [`Spill`] says from which number of bytes on somebody's rows go there; a [`SpoolWriter`] packs rows
//! ([`types::packed`]) into blocks, a [`Spooled`] is a list of blocks that a [`SpoolReader`] reads one
//! after the other, and a [`RowSpool`] keeps rows in memory as long as they fit.
//!
//! # Invariants
//! - What fits in memory never touches any of this: a comparison of two numbers decides.
//! - A block is free again as soon as nobody can read it: at the statement's end, however it ends.
//! - A session has no more in scratch space than `temp_file_limit`.
//!
//! # What it leaves out
//! Blocks are not compressed.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use base::codec::Reader;
use base::engine::{TempBlock, TempSpace};
use base::memory::Reservation;
use base::{coro, Error, Result, SqlState};
use planner::plan::Row;
use types::{packed, Datum};

use crate::kept::{RowStore, StoredRows};

/// Blocks have so many bytes at least, and at most unless one row has more.
const BLOCK_BYTES_MIN: usize = 4 << 10;
const BLOCK_BYTES_MAX: usize = 256 << 10;

/// So many blocks fit into the memory that somebody's rows may take.
const BLOCKS_IN_MEMORY: usize = 64;

/// Into so many parts somebody's rows are divided, and so many runs are merged at a time.
const PARTS_MIN: usize = 6;
const PARTS_MAX: usize = 128;

/// What a session has in scratch space.
pub struct TempFiles {
    space: Arc<dyn TempSpace>,
    bytes: Cell<u64>,
    /// Sets of rows that it has ever written there, and their bytes.
    written: Cell<(u64, u64)>,
    /// Bytes that it has ever read there.
    read: Cell<u64>,
}

impl std::fmt::Debug for TempFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TempFiles({} bytes)", self.bytes.get())
    }
}

impl TempFiles {
    /// Nothing yet.
    pub fn new(space: Arc<dyn TempSpace>) -> Rc<TempFiles> {
        Rc::new(TempFiles {
            space,
            bytes: Cell::new(0),
            written: Cell::default(),
            read: Cell::default(),
        })
    }

    /// How many sets of rows the session has ever written there, and how many bytes.
    pub fn written(&self) -> (u64, u64) {
        self.written.get()
    }

    /// How many bytes the session has ever read there.
    pub fn bytes_read(&self) -> u64 {
        self.read.get()
    }

    /// How many bytes the session has there.
    pub fn bytes(&self) -> u64 {
        self.bytes.get()
    }
}

/// A block, and whose it is.
#[derive(Debug)]
struct Block {
    block: Box<dyn TempBlock>,
    files: Rc<TempFiles>,
}

impl Block {
    /// Reads it whole.
    fn read(&self, bytes: &mut Vec<u8>) -> Result<()> {
        self.block.read(bytes)?;
        let read = self.files.read.get();
        self.files.read.set(read + self.block.bytes() as u64);
        Ok(())
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let bytes = self.files.bytes.get();
        self.files.bytes.set(bytes - self.block.bytes() as u64);
    }
}

/// When rows go to scratch space.
#[derive(Clone, Debug)]
pub struct Spill {
    files: Option<Rc<TempFiles>>,
    memory: usize,
    query_memory: usize,
    /// In kilobytes, if there is one.
    limit: Option<u64>,
}

/// 53200: somebody's rows need more than `quorate.query_mem`.
pub fn beyond_query_memory(most: usize) -> Error {
    let error = Error::new(SqlState::OUT_OF_MEMORY, "out of memory");
    let detail = format!(
        "A sort, hash table, grouping, window or WITH query needs more than {most} bytes for its \
         rows."
    );
    let hint = "Consider increasing the configuration parameter \"quorate.query_mem\".";
    error.with_detail(detail).with_hint(hint)
}

impl Spill {
    /// When rows take more than `memory` bytes; where there is no scratch space, they fail beyond
    /// `query_memory`. `limit` is `temp_file_limit`, in kilobytes.
    pub fn new(
        files: Option<Rc<TempFiles>>,
        memory: usize,
        query_memory: usize,
        limit: Option<u64>,
    ) -> Spill {
        Spill {
            files,
            memory: memory.min(query_memory),
            query_memory,
            limit,
        }
    }

    /// Whether rows that take so many bytes go to scratch space.
    ///
    /// # Errors
    /// 53200 where there is none, beyond `quorate.query_mem`.
    #[inline]
    pub fn is_due(&self, bytes: usize) -> Result<bool> {
        match bytes <= self.memory {
            true => Ok(false),
            false => self.look(bytes),
        }
    }

    #[cold]
    fn look(&self, bytes: usize) -> Result<bool> {
        match self.files.is_some() {
            true => Ok(true),
            false if bytes <= self.query_memory => Ok(false),
            false => Err(beyond_query_memory(self.query_memory)),
        }
    }

    /// From how many bytes on.
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// How many bytes a block has.
    fn block_bytes(&self) -> usize {
        (self.memory / BLOCKS_IN_MEMORY).clamp(BLOCK_BYTES_MIN, BLOCK_BYTES_MAX)
    }

    /// How many blocks, each of another part or run, are worked with at a time.
    pub fn parts(&self) -> usize {
        (self.memory / self.block_bytes() / 2).clamp(PARTS_MIN, PARTS_MAX)
    }

    fn write(&self, bytes: Vec<u8>) -> Result<(Block, Vec<u8>)> {
        let Some(files) = &self.files else {
            return Err(beyond_query_memory(self.query_memory));
        };
        let sum = files.bytes.get() + bytes.len() as u64;
        if let Some(limit) = self.limit.filter(|limit| sum > limit * 1_024) {
            return Err(Error::new(
                SqlState::CONFIGURATION_LIMIT_EXCEEDED,
                format!("temporary file size exceeds temp_file_limit ({limit}kB)"),
            ));
        }
        let (block, bytes) = files.space.write(bytes)?;
        files.bytes.set(files.bytes.get() + block.bytes() as u64);
        let (sets, written) = files.written.get();
        files.written.set((sets, written + block.bytes() as u64));
        let files = files.clone();
        Ok((Block { block, files }, bytes))
    }
}

/// A block of rows.
#[derive(Debug)]
struct RowBlock {
    block: Block,
    /// The number of its first row.
    first: usize,
}

/// Rows in scratch space, in the order in which they were written.
#[derive(Debug, Default)]
pub struct Spooled {
    blocks: Vec<RowBlock>,
    rows: usize,
}

impl Spooled {
    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// How many bytes they have.
    pub fn bytes(&self) -> u64 {
        let bytes = self.blocks.iter().map(|block| block.block.block.bytes());
        bytes.sum::<usize>() as u64
    }

    /// How many blocks there are.
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// The block in which a row is, and the number of the block's first row.
    pub fn block_of(&self, row: usize) -> (usize, usize) {
        let after = self.blocks.partition_point(|block| block.first <= row);
        let block = after.saturating_sub(1);
        (block, self.blocks.get(block).map_or(0, |block| block.first))
    }

    /// Reads all rows of a block.
    ///
    /// # Errors
    /// What reading raises ([`TempBlock::read`]).
    pub fn read_block(&self, block: usize, bytes: &mut Vec<u8>) -> Result<Vec<Row>> {
        let Some(block) = self.blocks.get(block) else {
            return Ok(Vec::new());
        };
        block.block.read(bytes)?;
        coro::work(bytes.len())?;
        let mut reader = Reader::new(bytes);
        let mut rows = Vec::new();
        while !reader.is_empty() {
            let mut row = Row::new();
            packed::read_row(&mut reader, &mut row)?;
            rows.push(row);
        }
        Ok(rows)
    }

    /// Gives the space of the first blocks back, of which none has this row or a later one. Rows keep
    /// their numbers.
    pub fn forget(&mut self, before: usize) {
        let kept = self.block_of(before).0;
        if kept >= FORGOTTEN_MIN && kept * 2 >= self.blocks.len() {
            self.blocks.drain(..kept);
        }
    }
}

/// Blocks are forgotten when they are so many, and at least half of all: so that what is left is not
/// moved all the time.
const FORGOTTEN_MIN: usize = 16;

/// Writes rows to scratch space.
#[derive(Debug)]
pub struct SpoolWriter {
    spill: Spill,
    spooled: Spooled,
    /// What does not fill a block yet.
    buffer: Vec<u8>,
    /// How many rows are in blocks.
    written: usize,
    held: Reservation,
}

impl SpoolWriter {
    /// No rows yet, for what an error names so.
    pub fn new(spill: &Spill, what: &'static str) -> SpoolWriter {
        SpoolWriter {
            spill: spill.clone(),
            spooled: Spooled::default(),
            buffer: Vec::new(),
            written: 0,
            held: Reservation::of(what),
        }
    }

    /// How many rows were written.
    pub fn len(&self) -> usize {
        self.spooled.rows
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.spooled.rows == 0
    }

    /// Writes a row.
    ///
    /// # Errors
    /// What writing raises ([`TempSpace::write`]); 53400 beyond `temp_file_limit`; as
    /// [`Reservation::grow`].
    pub fn push(&mut self, row: &[Datum]) -> Result<()> {
        if self.buffer.capacity() == 0 {
            // With room for the row that passes the end: growing by and by would leave holes.
            let block = self.spill.block_bytes();
            self.buffer.reserve_exact(block + block / 4);
        }
        let before = self.buffer.len();
        packed::put_row(row, &mut self.buffer)?;
        coro::work(self.buffer.len() - before)?;
        self.spooled.rows += 1;
        match self.buffer.len() >= self.spill.block_bytes() {
            true => self.flush(),
            false => self.held.set(self.buffer.capacity()),
        }
    }

    /// Writes what does not fill a block.
    ///
    /// # Errors
    /// As [`SpoolWriter::push`].
    pub fn flush(&mut self) -> Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.held.set(self.buffer.capacity())?;
        let is_first = self.spooled.blocks.is_empty() && self.written == 0;
        let (block, mut bytes) = self.spill.write(std::mem::take(&mut self.buffer))?;
        if is_first {
            let (sets, written) = block.files.written.get();
            block.files.written.set((sets + 1, written));
        }
        bytes.clear();
        // One long row should not keep its memory.
        let most = self.spill.block_bytes();
        bytes.shrink_to(most + most / 4);
        self.buffer = bytes;
        let first = std::mem::replace(&mut self.written, self.spooled.rows);
        self.spooled.blocks.push(RowBlock { block, first });
        self.held.set(self.buffer.capacity())
    }

    /// What was written, all but what does not fill a block ([`SpoolWriter::flush`]).
    pub fn spooled(&self) -> &Spooled {
        &self.spooled
    }

    /// Gives the space of rows back; see [`Spooled::forget`].
    pub fn forget(&mut self, before: usize) {
        self.spooled.forget(before);
    }

    /// All rows.
    ///
    /// # Errors
    /// As [`SpoolWriter::push`].
    pub fn finish(mut self) -> Result<Spooled> {
        self.flush()?;
        Ok(self.spooled)
    }
}

/// Where somebody is in rows that lie in scratch space.
#[derive(Debug)]
pub struct SpoolReader {
    /// The number of the next row.
    next: usize,
    /// The block at hand, and the rows behind it.
    block: Option<(usize, usize)>,
    bytes: Vec<u8>,
    at: usize,
    /// Where the first rows of the block begin, as many as were come by.
    starts: Vec<usize>,
    held: Reservation,
}

impl Default for SpoolReader {
    fn default() -> SpoolReader {
        SpoolReader {
            next: 0,
            block: None,
            bytes: Vec::new(),
            at: 0,
            starts: Vec::new(),
            held: Reservation::of("Rows of scratch space"),
        }
    }
}

impl SpoolReader {
    /// Before the first row.
    pub fn new() -> SpoolReader {
        SpoolReader::default()
    }

    /// Goes back before the first row.
    pub fn restart(&mut self) {
        self.next = 0;
        self.block = None;
    }

    /// The next row, into a row whose memory is used again; false at the end.
    ///
    /// # Errors
    /// What reading raises ([`TempBlock::read`]); as [`Reservation::grow`].
    pub fn next_into(&mut self, from: &Spooled, row: &mut Row) -> Result<bool> {
        if self.at >= self.bytes.len() || self.block.is_none() {
            let next = match self.block {
                Some((block, _)) => block + 1,
                None => 0,
            };
            if next >= from.blocks.len() {
                return Ok(false);
            }
            self.load(from, next)?;
        }
        self.decode(row)?;
        Ok(true)
    }

    /// The row of a number, which has to be in a block; cheap if it is the one behind that which was
    /// read last.
    ///
    /// # Errors
    /// As [`SpoolReader::next_into`].
    pub fn read_at(&mut self, from: &Spooled, number: usize, row: &mut Row) -> Result<()> {
        let is_next = self.block.is_some() && self.next == number && self.at < self.bytes.len();
        if !is_next {
            let (block, first) = from.block_of(number);
            if self.block != Some((block, first)) {
                self.load(from, block)?;
            }
            // Behind the last that is known, or there.
            let known = self.starts.len().saturating_sub(1).min(number - first);
            self.at = self.starts.get(known).copied().unwrap_or(0);
            self.next = first + known;
            while self.next < number {
                self.decode(row)?;
            }
        }
        self.decode(row)
    }

    fn load(&mut self, from: &Spooled, block: usize) -> Result<()> {
        self.block = None;
        let read = &from.blocks[block];
        self.held
            .set(read.block.block.bytes().max(self.bytes.capacity()))?;
        read.block.read(&mut self.bytes)?;
        coro::work(self.bytes.len())?;
        self.at = 0;
        self.starts.clear();
        self.next = read.first;
        self.block = Some((block, read.first));
        Ok(())
    }

    fn decode(&mut self, row: &mut Row) -> Result<()> {
        let first = self.block.map_or(0, |(_, first)| first);
        if self.starts.len() == self.next - first {
            self.starts.push(self.at);
        }
        let mut reader = Reader::new(&self.bytes[self.at..]);
        packed::read_row(&mut reader, row)?;
        self.at = self.bytes.len() - reader.rest().len();
        self.next += 1;
        Ok(())
    }
}

/// Rows that are kept: in memory, or beyond that in scratch space.
#[derive(Debug)]
pub struct RowSpool {
    spill: Spill,
    what: &'static str,
    /// The latest rows.
    memory: RowStore,
    /// Those before.
    writer: Option<Box<SpoolWriter>>,
}

impl RowSpool {
    /// No rows yet, for what an error names so.
    pub fn new(spill: Spill, what: &'static str) -> RowSpool {
        RowSpool {
            spill,
            what,
            memory: RowStore::of(what),
            writer: None,
        }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.spooled_len() + self.memory.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn spooled_len(&self) -> usize {
        self.writer.as_ref().map_or(0, |writer| writer.len())
    }

    /// Keeps a row.
    ///
    /// # Errors
    /// As [`SpoolWriter::push`]; 53200 beyond `quorate.query_mem` where there is no scratch space.
    pub fn push(&mut self, row: Row) -> Result<()> {
        self.memory.push(row)?;
        match self.spill.is_due(self.memory.bytes())? {
            true => self.spool(),
            false => Ok(()),
        }
    }

    #[cold]
    fn spool(&mut self) -> Result<()> {
        let (spill, what) = (&self.spill, self.what);
        let new = || Box::new(SpoolWriter::new(spill, what));
        let writer = self.writer.get_or_insert_with(new);
        for row in self.memory.iter() {
            writer.push(row)?;
        }
        self.memory.clear();
        writer.flush()
    }

    /// The row of a number; none if there are fewer.
    ///
    /// # Errors
    /// As [`SpoolReader::next_into`].
    pub fn get(&self, number: usize, reader: &mut Option<Box<SpoolReader>>) -> Result<Option<Row>> {
        let spooled = self.spooled_len();
        if let Some(place) = number.checked_sub(spooled) {
            return Ok(self.memory.get(place).cloned());
        }
        let mut row = Row::new();
        if let Some(writer) = &self.writer {
            let reader = reader.get_or_insert_with(Box::default);
            reader.read_at(writer.spooled(), number, &mut row)?;
        }
        Ok(Some(row))
    }

    /// The rows, one after the other.
    pub fn into_rows(self) -> SpoolRows {
        SpoolRows {
            spooled: self
                .writer
                .map(|writer| Box::new((writer.spooled, SpoolReader::new()))),
            memory: self.memory.into_iter(),
        }
    }
}

/// The rows of a [`RowSpool`], one after the other.
#[derive(Debug)]
pub struct SpoolRows {
    spooled: Option<Box<(Spooled, SpoolReader)>>,
    memory: StoredRows,
}

impl SpoolRows {
    /// The next row.
    ///
    /// # Errors
    /// As [`SpoolReader::next_into`].
    #[inline]
    pub fn next_row(&mut self) -> Result<Option<Row>> {
        match &mut self.spooled {
            None => Ok(self.memory.next()),
            Some(_) => self.next_spooled(),
        }
    }

    #[cold]
    fn next_spooled(&mut self) -> Result<Option<Row>> {
        if let Some(spooled) = &mut self.spooled {
            let (from, reader) = &mut **spooled;
            let mut row = Row::new();
            if reader.next_into(from, &mut row)? {
                return Ok(Some(row));
            }
            self.spooled = None;
        }
        Ok(self.memory.next())
    }
}

impl From<RowStore> for SpoolRows {
    fn from(rows: RowStore) -> SpoolRows {
        SpoolRows {
            spooled: None,
            memory: rows.into_iter(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scratch space that is memory.
    #[derive(Debug)]
    struct InMemory;

    #[derive(Debug)]
    struct Bytes(Vec<u8>);

    impl TempSpace for InMemory {
        fn write(&self, bytes: Vec<u8>) -> Result<(Box<dyn TempBlock>, Vec<u8>)> {
            Ok((Box::new(Bytes(bytes.clone())), bytes))
        }

        fn used(&self) -> u64 {
            0
        }
    }

    impl TempBlock for Bytes {
        fn bytes(&self) -> usize {
            self.0.len()
        }

        fn read(&self, out: &mut Vec<u8>) -> Result<()> {
            out.clone_from(&self.0);
            Ok(())
        }
    }

    fn spill(limit: Option<u64>) -> (Rc<TempFiles>, Spill) {
        let files = TempFiles::new(Arc::new(InMemory));
        let spill = Spill::new(Some(files.clone()), 64 << 10, 1 << 30, limit);
        (files, spill)
    }

    fn row(number: usize) -> Row {
        let text = "x".repeat(number % 50);
        vec![Datum::Int8(number as i64), Datum::text(text)]
    }

    #[test]
    fn rows_come_back_in_any_order() {
        let (files, spill) = spill(None);
        let mut rows = RowSpool::new(spill, "A test");
        let mut reader = None;
        for number in 0..10_000 {
            rows.push(row(number)).unwrap();
            // Somebody reads while others come.
            if number % 997 == 0 {
                let found = rows.get(number / 2, &mut reader).unwrap();
                assert_eq!(found, Some(row(number / 2)));
            }
        }
        assert_eq!(rows.len(), 10_000);
        assert!(files.bytes() > 100_000, "{} bytes", files.bytes());
        let backwards = (0..10_000).rev().step_by(3);
        for number in (0..10_000).chain(backwards).chain([9_999, 0, 5_000]) {
            let found = rows.get(number, &mut reader).unwrap();
            assert_eq!(found, Some(row(number)));
        }
        assert_eq!(rows.get(10_000, &mut reader).unwrap(), None);
        let mut all = rows.into_rows();
        for number in 0..10_000 {
            assert_eq!(all.next_row().unwrap(), Some(row(number)));
        }
        assert_eq!(all.next_row().unwrap(), None);
        drop(all);
        assert_eq!(files.bytes(), 0);
    }

    #[test]
    fn what_fits_stays_in_memory() {
        let (files, spill) = spill(None);
        let mut rows = RowSpool::new(spill, "A test");
        for number in 0..300 {
            rows.push(row(number)).unwrap();
        }
        assert_eq!(files.bytes(), 0);
        assert_eq!(rows.get(299, &mut None).unwrap(), Some(row(299)));
    }

    #[test]
    fn a_session_has_no_more_than_it_may() {
        let (files, spill) = spill(Some(100));
        let mut rows = RowSpool::new(spill, "A test");
        let error = (0..100_000)
            .find_map(|number| rows.push(row(number)).err())
            .unwrap();
        assert_eq!(error.state(), SqlState::CONFIGURATION_LIMIT_EXCEEDED);
        let expected = "temporary file size exceeds temp_file_limit (100kB)";
        assert_eq!(error.message(), expected);
        assert!(files.bytes() <= 100 << 10, "{} bytes", files.bytes());
        drop(rows);
        assert_eq!(files.bytes(), 0);
    }

    #[test]
    fn without_scratch_space_rows_have_a_bound() {
        let spill = Spill::new(None, 64 << 10, 128 << 10, None);
        let mut rows = RowSpool::new(spill, "A test");
        let error = (0..100_000)
            .find_map(|number| rows.push(row(number)).err())
            .unwrap();
        assert_eq!(error.state(), SqlState::OUT_OF_MEMORY);
    }

    #[test]
    fn blocks_are_forgotten_from_the_front() {
        let (files, spill) = spill(None);
        let mut writer = SpoolWriter::new(&spill, "A test");
        for number in 0..10_000 {
            writer.push(&row(number)).unwrap();
        }
        writer.flush().unwrap();
        let before = files.bytes();
        writer.forget(9_000);
        assert!(files.bytes() < before / 5, "{} of {before}", files.bytes());
        let (block, first) = writer.spooled().block_of(9_500);
        let rows = writer.spooled().read_block(block, &mut Vec::new()).unwrap();
        assert_eq!(rows[9_500 - first], row(9_500));
    }
}
