//! What a write set has no memory for: sorted runs in scratch space, those of each tree for itself.
//!
//! ```text
//! memory   b d f      newest
//! run 2    a b c      a row is in the newest place that has it: there is all that is known of it
//! run 1      b   e
//! ```
//!
//! A run is written once, in blocks, each a piece of scratch space; in memory are the first key of
//! each block, and a filter that tells of most keys that they are not in it. Where there are many
//! runs, those of one size become a larger one.
//!
//! # Tails
//! Rows that come in the order of their keys cost less: the blocks of a [`Tail`] are written as they
//! are, behind those of the tail before. When its rows came they were in no run, and behind all; so
//! they count as older than any run.
//!
//! # Savepoints
//! A rollback takes nothing out of a run: it notes from which serial number on the run's versions
//! count no more, and nothing is written behind them. A run all of whose versions are such goes at
//! once.

use std::cell::RefCell;
use std::hash::BuildHasher;
use std::rc::Rc;
use std::sync::Arc;

use base::codec::Reader;
use base::engine::Direction;
use base::large::Large;
use base::{coro, Key, KeyRange, Result};
use storage::{Run, Scratch};

use super::entry::Entry;
use super::tail::{self, Tail, BLOCK_BYTES};
use super::Stack;

/// So many runs of one level become one of the next.
const RUNS_PER_LEVEL: usize = 16;

/// What reading a byte of a block counts for, in the units of [`coro::work`].
const BYTE_WORK: usize = 4;

/// Bits of a filter for each key, and how many of them a key sets.
const FILTER_BITS: usize = 10;
const FILTER_HASHES: u64 = 5;

/// Tells of most keys that they are not there.
#[derive(Debug)]
struct Filter {
    bits: Vec<u64>,
}

impl Filter {
    fn of(hashes: &[u64]) -> Filter {
        let words = (hashes.len() * FILTER_BITS).div_ceil(64).max(1);
        let mut filter = Filter {
            bits: vec![0; words],
        };
        for hash in hashes {
            for bit in filter.places(*hash) {
                filter.bits[bit / 64] |= 1 << (bit % 64);
            }
        }
        filter
    }

    fn places(&self, hash: u64) -> impl Iterator<Item = usize> {
        let bits = self.bits.len() as u64 * 64;
        let step = hash.rotate_left(32) | 1;
        (0..FILTER_HASHES).map(move |n| (hash.wrapping_add(n.wrapping_mul(step)) % bits) as usize)
    }

    fn may_have(&self, hash: u64) -> bool {
        let mut places = self.places(hash);
        places.all(|bit| self.bits[bit / 64] & (1 << (bit % 64)) != 0)
    }
}

fn hash_of(key: &[u8]) -> u64 {
    let hasher = base::hash::HashMap::<(), ()>::default();
    let hash = hasher.hasher().hash_one(key);
    hash ^ (hash >> 29)
}

#[derive(Debug)]
struct Block {
    first: Key,
    filter: Filter,
    run: Run,
}

/// A block that was read last.
type Read = Option<(usize, Rc<Vec<Entry>>)>;

#[derive(Debug)]
struct Sorted {
    blocks: Large<Vec<Block>>,
    last: Key,
    level: u32,
    /// The serial numbers of its versions.
    oldest: u64,
    newest: u64,
    /// Versions above this count no more.
    cut: u64,
    read: RefCell<Read>,
}

impl Sorted {
    fn new(level: u32) -> Sorted {
        Sorted {
            blocks: Large::default(),
            last: Key::new(),
            level,
            oldest: u64::MAX,
            newest: 0,
            cut: u64::MAX,
            read: RefCell::default(),
        }
    }

    /// Writes a block behind the others.
    fn add_block(
        &mut self,
        scratch: &Arc<Scratch>,
        first: Key,
        hashes: &[u64],
        bytes: &[u8],
    ) -> Result<()> {
        let (filter, run) = (Filter::of(hashes), scratch.write(bytes)?);
        self.blocks.push(Block { first, filter, run });
        if coro::inside() {
            // Half a run would be rows lost: nothing ends it but an error of the disk.
            coro::wait_uninterrupted(base::turns::give_way());
        }
        Ok(())
    }

    fn block(&self, index: usize) -> Result<Rc<Vec<Entry>>> {
        if let Some((known, entries)) = &*self.read.borrow() {
            if *known == index {
                return Ok(entries.clone());
            }
        }
        let entries = self.block_once(index)?;
        *self.read.borrow_mut() = Some((index, entries.clone()));
        Ok(entries)
    }

    /// As [`Sorted::block`], for who will not ask for it again: the entries are the caller's alone.
    fn block_once(&self, index: usize) -> Result<Rc<Vec<Entry>>> {
        let mut bytes = Vec::new();
        self.blocks[index].run.read(&mut bytes)?;
        coro::work_uninterrupted(bytes.len() * BYTE_WORK);
        let mut reader = Reader::new(&bytes);
        let mut entries = Vec::new();
        while !reader.is_empty() {
            entries.push(Entry::decode(&mut reader)?);
        }
        Ok(Rc::new(entries))
    }

    /// The block in which a key is, or would be.
    fn block_of(&self, key: &[u8]) -> Option<usize> {
        let after = self
            .blocks
            .partition_point(|block| block.first.as_slice() <= key);
        after.checked_sub(1)
    }

    fn get(&self, key: &[u8], hash: &mut Option<u64>) -> Result<Option<Stack>> {
        if key > self.last.as_slice() {
            return Ok(None);
        }
        let Some(index) = self.block_of(key) else {
            return Ok(None);
        };
        let hash = *hash.get_or_insert_with(|| hash_of(key));
        if !self.blocks[index].filter.may_have(hash) {
            return Ok(None);
        }
        let entries = self.block(index)?;
        let found = entries.binary_search_by(|entry| entry.key.as_slice().cmp(key));
        Ok(found.ok().map(|at| entries[at].stack.clone()))
    }
}

/// The runs of one tree.
#[derive(Debug, Default)]
pub(super) struct Runs {
    /// Those of tails, in the order of their keys, which are the oldest; then the others, oldest
    /// first.
    runs: Vec<Sorted>,
    /// How many are of tails.
    tails: usize,
}

impl Runs {
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.runs.len()
    }

    /// Whether a key lies behind all that are here.
    pub(super) fn is_behind(&self, key: &[u8]) -> bool {
        self.runs.iter().all(|run| run.last.as_slice() < key)
    }

    /// What is known of a row that is not in memory.
    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Stack>> {
        // Keys that only grow are behind every run, and need none.
        let mut hash = None;
        for run in self.runs.iter().rev() {
            if let Some(mut stack) = run.get(key, &mut hash)? {
                // Older runs know no more of it.
                let (_, is_left) = stack.take_back(run.cut);
                return Ok(is_left.then_some(stack));
            }
        }
        Ok(None)
    }

    /// Writes the rows of a tail, which lie behind all that are here.
    pub(super) fn add_tail(&mut self, scratch: &Arc<Scratch>, tail: &Tail) -> Result<()> {
        let last_of = |block: &tail::Block| block.row(block.rows() - 1).key.to_vec();
        let mut hashes = Vec::new();
        for block in tail.blocks() {
            let (first, last) = (block.row(0), block.row(block.rows() - 1));
            assert!(self.is_behind(first.key), "{first:?} among runs");
            let before = self.tails.checked_sub(1).map(|last| &self.runs[last]);
            if before.is_none_or(|run| run.cut != u64::MAX) {
                self.runs.insert(self.tails, Sorted::new(0));
                self.tails += 1;
            }
            let run = &mut self.runs[self.tails - 1];
            hashes.clear();
            hashes.extend((0..block.rows()).map(|index| hash_of(block.row(index).key)));
            run.add_block(scratch, first.key.to_vec(), &hashes, &block.bytes)?;
            run.oldest = run.oldest.min(first.serial);
            run.newest = run.newest.max(last.serial);
            run.last = last_of(block);
        }
        Ok(())
    }

    /// Makes a run of rows that come in order.
    pub(super) fn add(
        &mut self,
        scratch: &Arc<Scratch>,
        entries: impl Iterator<Item = Entry>,
    ) -> Result<()> {
        let mut writer = Writer::new(scratch.clone(), 0);
        for entry in entries {
            writer.push(entry)?;
        }
        self.runs.extend(writer.finish()?);
        self.merge_levels(scratch)
    }

    /// Where there are many runs of a level, they become one of the next.
    fn merge_levels(&mut self, scratch: &Arc<Scratch>) -> Result<()> {
        loop {
            let others = &self.runs[self.tails..];
            let level = others.last().map_or(0, |run| run.level);
            let same = others.iter().rev();
            let count = same.take_while(|run| run.level == level).count();
            if count < RUNS_PER_LEVEL {
                return Ok(());
            }
            let first = self.runs.len() - count;
            let mut merge = Merge::of_runs(self, first, None, Direction::Forward)?;
            let mut writer = Writer::new(scratch.clone(), level + 1);
            while let Some(entry) = merge.next(self)? {
                writer.push(entry)?;
            }
            let merged = writer.finish()?;
            self.runs.truncate(first);
            self.runs.extend(merged);
        }
    }

    /// Takes back versions above a serial number.
    pub(super) fn take_back(&mut self, floor: u64) {
        let tails = self.runs[..self.tails].iter();
        self.tails = tails.filter(|run| run.oldest <= floor).count();
        self.runs.retain(|run| run.oldest <= floor);
        for run in &mut self.runs {
            if run.newest > floor {
                run.cut = run.cut.min(floor);
            }
        }
    }
}

/// Writes a run, block by block.
struct Writer {
    scratch: Arc<Scratch>,
    run: Sorted,
    first: Option<Key>,
    bytes: Vec<u8>,
    hashes: Vec<u64>,
    entry: Vec<u8>,
}

impl Writer {
    fn new(scratch: Arc<Scratch>, level: u32) -> Writer {
        Writer {
            scratch,
            run: Sorted::new(level),
            first: None,
            bytes: Vec::new(),
            hashes: Vec::new(),
            entry: Vec::new(),
        }
    }

    fn push(&mut self, entry: Entry) -> Result<()> {
        self.entry.clear();
        entry.encode(&mut self.entry);
        if self.bytes.len() + self.entry.len() > BLOCK_BYTES {
            self.end_block()?;
        }
        self.bytes.extend_from_slice(&self.entry);
        self.hashes.push(hash_of(&entry.key));
        if self.first.is_none() {
            self.first = Some(entry.key.clone());
        }
        for version in entry.stack.versions() {
            self.run.oldest = self.run.oldest.min(version.serial);
            self.run.newest = self.run.newest.max(version.serial);
        }
        self.run.last = entry.key;
        Ok(())
    }

    fn end_block(&mut self) -> Result<()> {
        if let Some(first) = self.first.take() {
            self.run
                .add_block(&self.scratch, first, &self.hashes, &self.bytes)?;
            self.bytes.clear();
            self.hashes.clear();
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Option<Sorted>> {
        self.end_block()?;
        Ok((!self.run.blocks.is_empty()).then_some(self.run))
    }
}

/// A place in a run: the block at hand, its number, and the entry in it.
type Place = (Rc<Vec<Entry>>, usize, usize);

/// Where a merge is in one run.
#[derive(Debug)]
struct Cursor {
    run: usize,
    /// The entry that is next.
    at: Option<Place>,
}

/// The rows of several runs in order, each as its newest run knows it.
#[derive(Debug)]
pub(super) struct Merge {
    cursors: Vec<Cursor>,
    direction: Direction,
    /// Without one it goes over everything, and comes to a block once.
    range: Option<KeyRange>,
}

impl Merge {
    /// Of all rows.
    pub(super) fn all(runs: &Runs) -> Result<Merge> {
        Merge::of_runs(runs, 0, None, Direction::Forward)
    }

    /// Of a range.
    pub(super) fn range(runs: &Runs, range: &KeyRange, direction: Direction) -> Result<Merge> {
        Merge::of_runs(runs, 0, Some(range), direction)
    }

    fn of_runs(
        runs: &Runs,
        first: usize,
        range: Option<&KeyRange>,
        direction: Direction,
    ) -> Result<Merge> {
        let mut merge = Merge {
            cursors: Vec::new(),
            direction,
            range: range.cloned(),
        };
        for (run, sorted) in runs.runs.iter().enumerate().skip(first) {
            let at = merge.seek(sorted)?;
            merge.cursors.push(Cursor { run, at });
        }
        Ok(merge)
    }

    /// Where the range begins in a run.
    fn seek(&self, run: &Sorted) -> Result<Option<Place>> {
        let forward = self.direction == Direction::Forward;
        let Some(range) = &self.range else {
            return Ok(Some((run.block_once(0)?, 0, 0)));
        };
        let last = run.blocks.len() - 1;
        let (block, index) = match (forward, &range.end) {
            (true, _) => (run.block_of(&range.start).unwrap_or(0), Some(&range.start)),
            (false, None) => (last, None),
            (false, Some(end)) => match run.block_of(end) {
                None => return Ok(None),
                Some(block) => (block, Some(end)),
            },
        };
        let entries = run.block(block)?;
        let index = index.map_or(entries.len(), |key| {
            entries.partition_point(|entry| entry.key < *key)
        });
        if forward {
            return self.step(run, (entries, block, index));
        }
        match (index, block) {
            (0, 0) => Ok(None),
            (0, _) => {
                let entries = run.block(block - 1)?;
                let last = entries.len() - 1;
                Ok(Some((entries, block - 1, last)))
            }
            _ => Ok(Some((entries, block, index - 1))),
        }
    }

    /// A place that may be behind the end of its block, moved to the next.
    fn step(&self, run: &Sorted, at: Place) -> Result<Option<Place>> {
        let (entries, block, index) = at;
        if index < entries.len() {
            return Ok(Some((entries, block, index)));
        }
        let next = block + 1;
        if next == run.blocks.len() {
            return Ok(None);
        }
        // Who goes over everything comes here once.
        let entries = match self.range {
            None => run.block_once(next)?,
            Some(_) => run.block(next)?,
        };
        Ok(Some((entries, next, 0)))
    }

    fn advance(&mut self, runs: &Runs, cursor: usize) -> Result<()> {
        let run = &runs.runs[self.cursors[cursor].run];
        let Some((entries, block, index)) = self.cursors[cursor].at.take() else {
            return Ok(());
        };
        self.cursors[cursor].at = match (self.direction, index, block) {
            (Direction::Forward, ..) => self.step(run, (entries, block, index + 1))?,
            (Direction::Backward, 0, 0) => None,
            (Direction::Backward, 0, _) => {
                let entries = run.block(block - 1)?;
                let last = entries.len() - 1;
                Some((entries, block - 1, last))
            }
            (Direction::Backward, ..) => Some((entries, block, index - 1)),
        };
        Ok(())
    }

    fn is_within(&self, entry: &Entry) -> bool {
        let range = self.range.as_ref();
        range.is_none_or(|range| range.contains(&entry.key))
    }

    /// The cursor that has the next row.
    fn winner(&self) -> Option<usize> {
        let mut best: Option<(usize, &Entry)> = None;
        for (number, cursor) in self.cursors.iter().enumerate() {
            let Some((entries, _, index)) = &cursor.at else {
                continue;
            };
            let entry = &entries[*index];
            let is_better = best.is_none_or(|(_, known)| match self.direction {
                // Of several the newest run comes last, and wins.
                Direction::Forward => entry.key <= known.key,
                Direction::Backward => entry.key >= known.key,
            });
            if is_better && self.is_within(entry) {
                best = Some((number, entry));
            }
        }
        best.map(|(winner, _)| winner)
    }

    /// Takes the row at which a cursor is, which goes on.
    fn take(&mut self, runs: &Runs, cursor: usize) -> Result<Option<Entry>> {
        let Some((entries, _, index)) = &mut self.cursors[cursor].at else {
            return Ok(None);
        };
        let entry = match Rc::get_mut(entries) {
            Some(own) => own[*index].take(),
            None => entries[*index].clone(),
        };
        self.advance(runs, cursor)?;
        Ok(Some(entry))
    }

    /// The next row.
    pub(super) fn next(&mut self, runs: &Runs) -> Result<Option<Entry>> {
        while let Some(winner) = self.winner() {
            let Some(mut entry) = self.take(runs, winner)? else {
                break;
            };
            // Older runs know no more of it.
            for number in 0..winner {
                let at = &self.cursors[number].at;
                let same = at
                    .as_ref()
                    .is_some_and(|(entries, _, index)| entries[*index].key == entry.key);
                if same {
                    self.advance(runs, number)?;
                }
            }
            let cut = runs.runs[self.cursors[winner].run].cut;
            if entry.stack.take_back(cut).1 {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }
}
