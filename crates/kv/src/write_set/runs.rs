//! What a write set has no memory for: sorted runs in scratch space.
//!
//! ```text
//! memory   b d f      newest
//! run 2    a b c      a row is in the newest place that has it: there is all that is known of it
//! run 1      b   e
//! ```
//!
//! A run is written once, in blocks, each a piece of scratch space; in memory are the first key of
//! each block, and a filter that tells of most keys that they are not in it. Rows that come in
//! the order of their keys make runs that do not overlap, and cost nothing further; where there are
//! many runs, those of one size become a larger one.
//!
//! # Savepoints
//! A rollback takes nothing out of a run: it notes from which serial number on the run's versions
//! count no more. A run all of whose versions are such goes at once.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hash::BuildHasher;
use std::rc::Rc;
use std::sync::Arc;

use base::codec::{put_bytes, put_varint, Reader};
use base::engine::Direction;
use base::{coro, CommandId, Key, KeyRange, Result, TreeId};
use storage::{Run, Scratch};

use super::{Stack, State, Version};

/// Bytes of a block, about.
const BLOCK_BYTES: usize = 16 << 10;

/// So many runs of one level become one of the next.
const RUNS_PER_LEVEL: usize = 16;

/// Bits of a filter for each key, and how many of them a key sets.
const FILTER_BITS: usize = 10;
const FILTER_HASHES: u64 = 5;

/// A row and all that is known of it.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) tree: TreeId,
    pub(super) key: Key,
    pub(super) stack: Stack,
}

impl Entry {
    fn place(&self) -> (TreeId, &[u8]) {
        (self.tree, &self.key)
    }

    /// The entry, in whose place an empty one is left.
    fn take(&mut self) -> Entry {
        let empty = Stack {
            base: None,
            newest: Version {
                command: CommandId(0),
                serial: 0,
                state: None,
            },
            older: Vec::new(),
        };
        Entry {
            tree: self.tree,
            key: std::mem::take(&mut self.key),
            stack: std::mem::replace(&mut self.stack, empty),
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.tree.0);
        put_bytes(out, &self.key);
        put_state(out, &self.stack.base);
        put_varint(out, self.stack.older.len() as u64);
        for version in self.stack.versions() {
            put_varint(out, u64::from(version.command.0));
            put_varint(out, version.serial);
            put_state(out, &version.state);
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Entry> {
        let tree = TreeId(reader.varint()?);
        let key = reader.bytes()?.to_vec();
        let base = read_state(reader)?;
        let count: usize = reader.varint_as()?;
        let mut older = Vec::with_capacity(count);
        for _ in 0..count {
            older.push(read_version(reader)?);
        }
        let newest = read_version(reader)?;
        let stack = Stack {
            base,
            newest,
            older,
        };
        Ok(Entry { tree, key, stack })
    }
}

fn put_state(out: &mut Vec<u8>, state: &State) {
    out.push(u8::from(state.is_some()));
    if let Some(row) = state {
        put_bytes(out, row);
    }
}

fn read_state(reader: &mut Reader<'_>) -> Result<State> {
    Ok(match reader.u8()? {
        0 => None,
        _ => Some(reader.bytes()?.to_vec()),
    })
}

fn read_version(reader: &mut Reader<'_>) -> Result<Version> {
    Ok(Version {
        command: CommandId(reader.varint_as()?),
        serial: reader.varint()?,
        state: read_state(reader)?,
    })
}

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

fn hash_of(tree: TreeId, key: &[u8]) -> u64 {
    let hasher = base::hash::HashMap::<(), ()>::default();
    let hash = hasher.hasher().hash_one((tree, key));
    hash ^ (hash >> 29)
}

#[derive(Debug)]
struct Block {
    first: (TreeId, Key),
    run: Run,
}

/// A block that was read last.
type Read = Option<(usize, Rc<Vec<Entry>>)>;

#[derive(Debug)]
struct Sorted {
    blocks: Vec<Block>,
    last: (TreeId, Key),
    filter: Filter,
    level: u32,
    /// The serial numbers of its versions.
    oldest: u64,
    newest: u64,
    /// Versions above this count no more.
    cut: u64,
    read: RefCell<Read>,
}

impl Sorted {
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
        let mut reader = Reader::new(&bytes);
        let mut entries = Vec::new();
        while !reader.is_empty() {
            entries.push(Entry::decode(&mut reader)?);
        }
        Ok(Rc::new(entries))
    }

    /// The block in which a place is, or would be.
    fn block_of(&self, place: (TreeId, &[u8])) -> Option<usize> {
        let after = self
            .blocks
            .partition_point(|block| (block.first.0, block.first.1.as_slice()) <= place);
        after.checked_sub(1)
    }

    fn get(&self, tree: TreeId, key: &[u8], hash: &mut Option<u64>) -> Result<Option<Stack>> {
        let place = (tree, key);
        if place > (self.last.0, self.last.1.as_slice()) {
            return Ok(None);
        }
        let hash = *hash.get_or_insert_with(|| hash_of(tree, key));
        if !self.filter.may_have(hash) {
            return Ok(None);
        }
        let Some(index) = self.block_of(place) else {
            return Ok(None);
        };
        let entries = self.block(index)?;
        let found = entries.binary_search_by(|entry| entry.place().cmp(&place));
        Ok(found.ok().map(|at| entries[at].stack.clone()))
    }
}

/// The runs of one write set, oldest first.
#[derive(Debug)]
pub(super) struct Runs {
    scratch: Arc<Scratch>,
    runs: Vec<Sorted>,
    /// The trees that have rows in runs, and whether they are indexes.
    trees: BTreeMap<TreeId, bool>,
}

impl Runs {
    pub(super) fn new(scratch: Arc<Scratch>) -> Runs {
        Runs {
            scratch,
            runs: Vec::new(),
            trees: BTreeMap::new(),
        }
    }

    /// Whether a tree has rows in runs; perhaps only such as were rolled back.
    pub(super) fn has_tree(&self, tree: TreeId) -> bool {
        self.trees.contains_key(&tree)
    }

    /// The trees that have rows in runs, and whether they are indexes.
    pub(super) fn trees(&self) -> &BTreeMap<TreeId, bool> {
        &self.trees
    }

    /// What is known of a row that is not in memory.
    pub(super) fn get(&self, tree: TreeId, key: &[u8]) -> Result<Option<Stack>> {
        if !self.has_tree(tree) {
            return Ok(None);
        }
        // Keys that only grow are behind every run, and need none.
        let mut hash = None;
        for run in self.runs.iter().rev() {
            if let Some(mut stack) = run.get(tree, key, &mut hash)? {
                // Older runs know no more of it.
                let (_, is_left) = stack.take_back(run.cut);
                return Ok(is_left.then_some(stack));
            }
        }
        Ok(None)
    }

    /// Makes a run of rows that come in order.
    pub(super) fn add(
        &mut self,
        trees: impl IntoIterator<Item = (TreeId, bool)>,
        entries: impl Iterator<Item = Entry>,
    ) -> Result<()> {
        self.trees.extend(trees);
        let mut writer = Writer::new(self.scratch.clone(), 0);
        for entry in entries {
            writer.push(entry)?;
        }
        self.runs.extend(writer.finish()?);
        self.merge_levels()
    }

    /// Where there are many runs of a level, they become one of the next.
    fn merge_levels(&mut self) -> Result<()> {
        loop {
            let level = self.runs.last().map_or(0, |run| run.level);
            let same = self.runs.iter().rev();
            let count = same.take_while(|run| run.level == level).count();
            if count < RUNS_PER_LEVEL {
                return Ok(());
            }
            let first = self.runs.len() - count;
            let mut merge = Merge::of_runs(self, first, None, Direction::Forward)?;
            let mut writer = Writer::new(self.scratch.clone(), level + 1);
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
    level: u32,
    blocks: Vec<Block>,
    first: Option<(TreeId, Key)>,
    last: Option<(TreeId, Key)>,
    bytes: Vec<u8>,
    hashes: Vec<u64>,
    oldest: u64,
    newest: u64,
}

impl Writer {
    fn new(scratch: Arc<Scratch>, level: u32) -> Writer {
        Writer {
            scratch,
            level,
            blocks: Vec::new(),
            first: None,
            last: None,
            bytes: Vec::new(),
            hashes: Vec::new(),
            oldest: u64::MAX,
            newest: 0,
        }
    }

    fn push(&mut self, entry: Entry) -> Result<()> {
        self.hashes.push(hash_of(entry.tree, &entry.key));
        if self.first.is_none() {
            self.first = Some((entry.tree, entry.key.clone()));
        }
        for version in entry.stack.versions() {
            self.oldest = self.oldest.min(version.serial);
            self.newest = self.newest.max(version.serial);
        }
        entry.encode(&mut self.bytes);
        self.last = Some((entry.tree, entry.key));
        if self.bytes.len() >= BLOCK_BYTES {
            self.end_block()?;
        }
        Ok(())
    }

    fn end_block(&mut self) -> Result<()> {
        if let Some(first) = self.first.take() {
            let run = self.scratch.write(&self.bytes)?;
            self.blocks.push(Block { first, run });
            self.bytes.clear();
            if coro::inside() {
                // Half a run would be rows lost: nothing ends it but an error of the disk.
                coro::wait_uninterrupted(base::turns::give_way());
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Option<Sorted>> {
        self.end_block()?;
        Ok(self.last.map(|last| Sorted {
            blocks: self.blocks,
            last,
            filter: Filter::of(&self.hashes),
            level: self.level,
            oldest: self.oldest,
            newest: self.newest,
            cut: u64::MAX,
            read: RefCell::default(),
        }))
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
    tree: Option<TreeId>,
    range: KeyRange,
}

impl Merge {
    /// Of all rows.
    pub(super) fn all(runs: &Runs) -> Result<Merge> {
        Merge::of_runs(runs, 0, None, Direction::Forward)
    }

    /// Of a range of one tree.
    pub(super) fn range(
        runs: &Runs,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
    ) -> Result<Merge> {
        Merge::of_runs(runs, 0, Some((tree, range)), direction)
    }

    fn of_runs(
        runs: &Runs,
        first: usize,
        within: Option<(TreeId, &KeyRange)>,
        direction: Direction,
    ) -> Result<Merge> {
        let mut merge = Merge {
            cursors: Vec::new(),
            direction,
            tree: within.map(|(tree, _)| tree),
            range: within.map_or_else(KeyRange::all, |(_, range)| range.clone()),
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
        let place = match (self.tree, forward) {
            (None, _) => return Ok(Some((run.block_once(0)?, 0, 0))),
            (Some(tree), true) => (tree, self.range.start.as_slice()),
            (Some(tree), false) => match &self.range.end {
                Some(end) => (tree, end.as_slice()),
                None => (TreeId(tree.0 + 1), &[][..]),
            },
        };
        let block = match (run.block_of(place), forward) {
            (Some(block), _) => block,
            (None, true) => 0,
            (None, false) => return Ok(None),
        };
        let entries = run.block(block)?;
        let index = entries.partition_point(|entry| entry.place() < place);
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
        let entries = match self.tree {
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
        let Some(tree) = self.tree else { return true };
        entry.tree == tree && self.range.contains(&entry.key)
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
                Direction::Forward => entry.place() <= known.place(),
                Direction::Backward => entry.place() >= known.place(),
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
                    .is_some_and(|(entries, _, index)| entries[*index].place() == entry.place());
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
