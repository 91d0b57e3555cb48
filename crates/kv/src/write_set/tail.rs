//! Rows that came behind all others of their tree: packed, in the order of their keys.
//!
//! Bulk work writes keys that only grow, and each row once. A map of such rows costs two
//! allocations and some hundred bytes for each; here they are bytes in blocks, in the form of a
//! run ([`entry`](super::entry)), which goes to scratch space as it is.
//!
//! ```text
//! map          b'                 b was written again: the map knows better
//! tail    a b c │ d e f │ g h     the next row must lie behind h
//! ```
//!
//! # Invariants
//! - Keys and serial numbers ascend, and commands do not descend.
//! - All rows are plain: inserted, and absent before the transaction.
//! - A block has a row at least, and at most [`BLOCK_BYTES`] or one row.
//!
//! A savepoint is brought back by cutting the tail off: what was written since lies at its end.

use base::large::Large;
use base::{Key, KeyRange};

use super::entry::{Entry, Plain};

/// Bytes of a block at most, unless a row has more.
pub(super) const BLOCK_BYTES: usize = if cfg!(test) { 200 } else { 16 << 10 };

/// Bytes of a row beside key and row, at most.
const PLAIN_OVERHEAD: usize = 30;

/// Rows that follow one another.
#[derive(Debug, Default)]
pub(super) struct Block {
    pub(super) bytes: Vec<u8>,
    /// Where each row begins.
    places: Vec<u32>,
}

impl Block {
    pub(super) fn rows(&self) -> usize {
        self.places.len()
    }

    pub(super) fn row(&self, index: usize) -> Plain<'_> {
        let row = Plain::decode(&self.bytes[self.places[index] as usize..]);
        row.expect("a tail is as it was written")
    }

    fn memory(&self) -> usize {
        self.bytes.len() + self.places.len() * size_of::<u32>()
    }

    /// The first row whose key is this or larger.
    fn lower_bound(&self, key: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.rows());
        while low < high {
            let middle = (low + high) / 2;
            match self.row(middle).key < key {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// Drops the rows above a serial number.
    fn cut(&mut self, floor: u64) {
        while let Some(last) = self.rows().checked_sub(1) {
            if self.row(last).serial <= floor {
                return;
            }
            self.bytes.truncate(self.places[last] as usize);
            self.places.pop();
        }
    }
}

/// A row's place: its block and where in it. Behind the last row is the first of a block that is
/// not there.
type Place = (usize, usize);

/// The rows of one tree that came behind all others.
#[derive(Debug, Default)]
pub(super) struct Tail {
    blocks: Large<Vec<Block>>,
    memory: usize,
    /// The last key; empty when there is none.
    last: Key,
}

impl Tail {
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Bytes of memory.
    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        self.memory
    }

    pub(super) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Whether a key lies behind all that are here.
    pub(super) fn is_behind(&self, key: &[u8]) -> bool {
        self.is_empty() || self.last.as_slice() < key
    }

    /// Adds a row that lies behind all others; how much memory it takes.
    pub(super) fn push(&mut self, row: Plain<'_>) -> usize {
        assert!(self.is_behind(row.key), "{row:?} after {:?}", self.last);
        let most = row.key.len() + row.row.len() + PLAIN_OVERHEAD;
        let has_room = |block: &Block| block.bytes.len() + most <= BLOCK_BYTES;
        if !self.blocks.last().is_some_and(has_room) {
            // Many transactions write little.
            let bytes = if self.is_empty() { most } else { BLOCK_BYTES };
            self.blocks.push(Block {
                bytes: Vec::with_capacity(bytes.max(most)),
                places: Vec::new(),
            });
        }
        let at = self.blocks.len() - 1;
        let block = &mut self.blocks[at];
        let before = block.memory();
        block.places.push(block.bytes.len() as u32);
        row.encode(&mut block.bytes);
        let added = block.memory() - before;
        self.memory += added;
        self.last.clear();
        self.last.extend_from_slice(row.key);
        added
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<Plain<'_>> {
        if self.is_empty() || self.last.as_slice() < key {
            return None;
        }
        let (block, index) = self.lower_bound(key);
        let row = self.blocks.get(block)?.row(index);
        (row.key == key).then_some(row)
    }

    /// The place of the first row whose key is this or larger.
    fn lower_bound(&self, key: &[u8]) -> Place {
        let after = self.blocks.partition_point(|block| block.row(0).key <= key);
        let Some(block) = after.checked_sub(1) else {
            return (0, 0);
        };
        let index = self.blocks[block].lower_bound(key);
        match index == self.blocks[block].rows() {
            true => (block + 1, 0),
            false => (block, index),
        }
    }

    /// The rows of a range.
    pub(super) fn range(&self, range: &KeyRange) -> Rows<'_> {
        Rows {
            tail: self,
            from: self.lower_bound(&range.start),
            to: match &range.end {
                Some(end) => self.lower_bound(end),
                None => (self.blocks.len(), 0),
            },
        }
    }

    /// Takes back the rows above a serial number; how much memory they took.
    pub(super) fn take_back(&mut self, floor: u64) -> usize {
        let before = self.memory;
        while let Some(block) = self.blocks.last_mut() {
            self.memory -= block.memory();
            block.cut(floor);
            if block.rows() > 0 {
                self.memory += block.memory();
                break;
            }
            self.blocks.pop();
        }
        self.last.clear();
        if let Some(block) = self.blocks.last() {
            self.last.extend_from_slice(block.row(block.rows() - 1).key);
        }
        before - self.memory
    }

    /// All rows, whose blocks go one by one.
    pub(super) fn into_entries(self) -> impl Iterator<Item = Entry> {
        self.blocks.into_iter().flat_map(|block| {
            let rows = block.rows();
            (0..rows).map(move |index| block.row(index).to_entry())
        })
    }
}

/// The rows of a range, from both ends.
#[derive(Debug)]
pub(super) struct Rows<'a> {
    tail: &'a Tail,
    from: Place,
    to: Place,
}

impl<'a> Iterator for Rows<'a> {
    type Item = Plain<'a>;

    fn next(&mut self) -> Option<Plain<'a>> {
        if self.from >= self.to {
            return None;
        }
        let (block, index) = self.from;
        self.from = match index + 1 == self.tail.blocks[block].rows() {
            true => (block + 1, 0),
            false => (block, index + 1),
        };
        Some(self.tail.blocks[block].row(index))
    }
}

impl DoubleEndedIterator for Rows<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.from >= self.to {
            return None;
        }
        let (block, index) = match self.to {
            (block, 0) => (block - 1, self.tail.blocks[block - 1].rows() - 1),
            (block, index) => (block, index - 1),
        };
        self.to = (block, index);
        Some(self.tail.blocks[block].row(index))
    }
}
