//! What a transaction has written and nobody else can see.
//!
//! Writes are kept per tree in the order of keys, the entries of secondary indexes among them, so
//! that a scan merges them with what the store returns, whichever tree it goes over. Each key has
//! a small stack of versions, because two readers look into the past:
//!
//! - **A statement** sees what smaller commands wrote and never its own writes, or an UPDATE that
//!   moves a row ahead of its own scan would meet it again and again (the Halloween problem).
//! - **A savepoint** brings back what was there when it was made.
//!
//! ```text
//!                savepoint
//! key  command 1     |     command 2    command 3
//! a    inserted      |                  deleted      command 3 sees it; undone, it is there
//! b                  |     inserted                  command 3 sees it; undone, it is gone
//! ```
//!
//! At commit the stacks do not matter: each row's newest version is compared with its *base*, the
//! newest version before the transaction, which a lock keeps as it was since the first write.
//!
//! | base | newest | record |
//! |---|---|---|
//! | absent | row | insert |
//! | absent | absent | nothing |
//! | row | row | update of the columns that differ |
//! | row | absent | delete |
//!
//! # Invariants
//! - Within a stack, serial numbers and commands ascend.
//! - Versions at or below the newest savepoint's serial number, or the newest pin, are never changed
//!   or dropped, and every row written above the savepoint is in the log.
//! - Above it, a stack has at most two versions: the newest, and the newest of earlier commands.
//!
//! - A row is in the map, or else in the tail, or else in the newest of the [`runs`] that has it;
//!   wherever it is found first, there is all that is known of it.
//! - Trees below [`TreeId::FIRST_USER`] are in the map.
//!
//! # Bulk work
//! A row that was absent and whose key lies behind all that were written in its tree goes to the
//! tree's [`tail`], where rows are packed, and not into the map; when it is written again, it comes
//! to the map first.
//!
//! # Beyond memory
//! When what is in memory takes more than the limit that it was made with, rows and entries of
//! indexes go to scratch space, as sorted [`runs`]. What is written again comes back first.
//! The changes of a transaction that has written much are handed to its commit one by one
//! ([`Changes`]).
//!
//! # What it leaves out
//! Without scratch space a write set beyond [`WRITE_SET_BYTES_MAX`] is 53200.

mod entry;
mod rows;
mod runs;
mod tail;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use base::coro;
use base::engine::{Direction, RowBatch};
use base::large::{Large, DROP_WORK};
use base::limits::ROWS_PER_YIELD;
use base::memory::Reservation;
use base::row::RowDelta;
use base::{CommandId, Error, Key, KeyRange, Result, SqlState, TreeId};
use storage::Scratch;

use entry::{Entry, Plain};
use rows::{InMemory, Known, Rows, Tree};
use runs::Merge;

use crate::record::{Change, RowChange};

/// Bytes of keys and rows that one transaction may have written at a time; more is 53200.
pub const WRITE_SET_BYTES_MAX: usize = 1 << 30;

/// A write set that takes less is not worth scratch space, when the node's memory is used up.
const SPILLED_BYTES_MIN: usize = 1 << 20;

/// Changes of a transaction that have more bytes are handed over one by one.
const ALL_CHANGES_BYTES: usize = if cfg!(test) { 64 << 10 } else { 256 << 10 };

/// What taking back a row counts for, in the units of [`coro::work`].
const TAKE_BACK_WORK: usize = 4 * DROP_WORK;

/// One state of a row: its bytes, or `None` where it is deleted.
type State = Option<Vec<u8>>;

#[derive(Clone, Debug)]
struct Version {
    command: CommandId,
    serial: u64,
    state: State,
}

impl Version {
    fn bytes(&self) -> usize {
        self.state.as_ref().map_or(0, Vec::len)
    }
}

/// Memory that a row takes besides its bytes, about.
const ROW_OVERHEAD: usize = 200;

#[derive(Clone, Debug)]
struct Stack {
    base: State,
    newest: Version,
    older: Vec<Version>,
}

impl Stack {
    /// All versions, the newest last.
    fn versions(&self) -> impl Iterator<Item = &Version> {
        self.older.iter().chain([&self.newest])
    }

    /// Bytes of the base and all versions.
    fn bytes(&self) -> usize {
        let versions: usize = self.versions().map(Version::bytes).sum();
        versions + self.base.as_ref().map_or(0, Vec::len)
    }

    /// What becomes of the row at commit, if anything.
    fn collapse(self) -> Result<Option<Change>> {
        Ok(match (self.base, self.newest.state) {
            (None, None) => None,
            (None, Some(row)) => Some(Change::Insert(row)),
            (Some(_), None) => Some(Change::Delete),
            // Also where no column differs: who holds an older snapshot must notice.
            (Some(old), Some(new)) => Some(Change::Update(RowDelta::between(&old, &new)?)),
        })
    }

    fn before(&self, command: CommandId) -> Option<&Version> {
        if self.newest.command < command {
            return Some(&self.newest);
        }
        self.older.iter().rev().find(|v| v.command < command)
    }

    /// Adds a version. What neither a statement nor a savepoint can ask for goes; its bytes are
    /// returned.
    fn push(&mut self, version: Version, floor: u64) -> usize {
        assert!(
            self.newest.serial < version.serial && self.newest.command <= version.command,
            "{version:?} after {:?}",
            self.newest
        );
        let is_new_command = self.newest.command < version.command;
        let previous = std::mem::replace(&mut self.newest, version);
        if previous.serial > floor && !is_new_command {
            return previous.bytes();
        }
        let is_needless = |older: &Version| previous.serial > floor && older.serial > floor;
        let replaced = match self.older.last() {
            Some(older) if is_needless(older) => self.older.pop(),
            _ => None,
        };
        self.older.push(previous);
        replaced.map_or(0, |version| version.bytes())
    }

    /// Takes back the versions above a serial number: how many bytes they had, and whether a
    /// version is left.
    fn take_back(&mut self, floor: u64) -> (usize, bool) {
        let mut bytes = 0;
        while self.newest.serial > floor {
            bytes += self.newest.bytes();
            match self.older.pop() {
                Some(older) => self.newest = older,
                None => return (bytes, false),
            }
        }
        (bytes, true)
    }
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    serial: u64,
    log: usize,
}

/// What a write set knows of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Own<'a> {
    /// The command that wrote it.
    pub command: CommandId,
    /// Its bytes; `None` when it was deleted.
    pub row: Option<Cow<'a, [u8]>>,
}

impl<'a> From<&'a Version> for Own<'a> {
    fn from(version: &'a Version) -> Own<'a> {
        Own {
            command: version.command,
            row: version.state.as_deref().map(Cow::Borrowed),
        }
    }
}

impl Own<'_> {
    fn of(version: Version) -> Own<'static> {
        Own {
            command: version.command,
            row: version.state.map(Cow::Owned),
        }
    }
}

/// What one transaction has written.
#[derive(Debug, Default)]
pub struct WriteSet {
    trees: BTreeMap<TreeId, Tree>,
    serial: u64,
    marks: Vec<Mark>,
    /// Serial numbers of when statements began that are still read.
    pins: Vec<u64>,
    /// The rows written since the oldest savepoint, in order, at least once for each savepoint.
    log: Large<Vec<(TreeId, Key)>>,
    /// Rows that came to the map from elsewhere since the oldest savepoint: the log may not have
    /// them.
    fetched: Large<Vec<(TreeId, Key)>>,
    /// Bytes of keys and rows in maps, and of keys in the log.
    bytes: usize,
    /// Rows in maps.
    rows: usize,
    /// Memory of tails.
    packed: usize,
    /// What all of that takes of the node's memory.
    held: Reservation,
    /// Where rows go beyond so many bytes.
    scratch: Option<(Arc<Scratch>, usize)>,
    /// Why rows are lost: scratch space could not be written. Nothing is read or committed then,
    /// after a rollback to a savepoint neither.
    broken: Option<Error>,
}

/// A row that was changed: its key, the newest version before the transaction, the newest of the
/// transaction.
pub type Changed = (Key, Option<Vec<u8>>, Option<Vec<u8>>);

/// What a transaction does.
pub enum Changes {
    /// All of it.
    All(Vec<RowChange>),
    /// Much, perhaps more than there is memory for, one by one, in the order of trees and keys.
    Stream(Box<dyn Iterator<Item = Result<RowChange>>>),
}

impl Changes {
    /// All of it, in memory.
    ///
    /// # Errors
    /// As [`WriteSet::visible`].
    pub fn all(self) -> Result<Vec<RowChange>> {
        match self {
            Changes::All(changes) => Ok(changes),
            Changes::Stream(changes) => changes.collect(),
        }
    }
}

impl std::fmt::Debug for Changes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Changes::All(changes) => f.debug_tuple("All").field(changes).finish(),
            Changes::Stream(_) => f.write_str("Stream"),
        }
    }
}

impl WriteSet {
    /// A write set that keeps about so many bytes in memory, and the rest there.
    pub fn with_scratch(scratch: Option<(Arc<Scratch>, usize)>) -> WriteSet {
        WriteSet {
            scratch,
            ..WriteSet::default()
        }
    }

    /// Whether nothing is written.
    pub fn is_empty(&self) -> bool {
        self.trees.is_empty() && self.broken.is_none()
    }

    /// Whether anything is written in a tree.
    pub fn touches(&self, tree: TreeId) -> bool {
        self.trees.contains_key(&tree) || self.broken.is_some()
    }

    /// Whether some of what is written in a tree is in scratch space.
    pub fn has_runs(&self, tree: TreeId) -> bool {
        let written = self.trees.get(&tree);
        written.is_some_and(|written| !written.runs.is_empty())
    }

    /// What is known of a row that is in scratch space.
    fn stack_in_runs(&self, written: Option<&Tree>, key: &[u8]) -> Result<Option<Stack>> {
        self.check()?;
        written.map_or(Ok(None), |written| written.runs.get(key))
    }

    /// Fails when rows are lost.
    fn check(&self) -> Result<()> {
        self.broken.clone().map_or(Ok(()), Err)
    }

    /// What a command sees of a row that earlier commands wrote.
    ///
    /// # Errors
    /// 58030, XX001: scratch space cannot be read. So everywhere below.
    pub fn visible(&self, tree: TreeId, key: &[u8], command: CommandId) -> Result<Option<Own<'_>>> {
        let written = self.trees.get(&tree);
        if let Some(known) = written.and_then(|written| written.in_memory(key)) {
            return Ok(known.before(command));
        }
        let stack = self.stack_in_runs(written, key)?;
        let version = stack.and_then(|stack| stack.before(command).cloned());
        Ok(version.map(Own::of))
    }

    /// What was last written of a row.
    ///
    /// # Errors
    /// As [`WriteSet::visible`].
    pub fn newest(&self, tree: TreeId, key: &[u8]) -> Result<Option<Own<'_>>> {
        let written = self.trees.get(&tree);
        if let Some(known) = written.and_then(|written| written.in_memory(key)) {
            return Ok(Some(known.newest()));
        }
        let stack = self.stack_in_runs(written, key)?;
        Ok(stack.map(|stack| Own::of(stack.newest)))
    }

    /// Whether the row of a tree below [`TreeId::FIRST_USER`] was written, and was absent before the
    /// transaction.
    pub fn is_new(&self, tree: TreeId, key: &[u8]) -> bool {
        let written = self.trees.get(&tree);
        let stack = written.and_then(|written| written.stack(key));
        stack.is_some_and(|stack| stack.base.is_none())
    }

    /// Writes a row, or deletes it. `base` is the newest version before the transaction; it
    /// matters at the first write of a row only.
    ///
    /// # Errors
    /// 53200 when the write set would grow too large.
    pub fn put(
        &mut self,
        tree: TreeId,
        key: &[u8],
        base: Option<&[u8]>,
        row: Option<&[u8]>,
        command: CommandId,
    ) -> Result<()> {
        self.write(tree, key, base, row, command)
    }

    /// Puts an entry into a secondary index, or takes it out.
    ///
    /// # Errors
    /// As [`WriteSet::put`].
    pub fn put_entry(
        &mut self,
        tree: TreeId,
        key: &[u8],
        is_there: bool,
        command: CommandId,
    ) -> Result<()> {
        let row = is_there.then_some(&b""[..]);
        self.write(tree, key, None, row, command)?;
        let written = self.trees.get_mut(&tree);
        written.expect("it was just written").is_index = true;
        Ok(())
    }

    fn write(
        &mut self,
        tree: TreeId,
        key: &[u8],
        base: Option<&[u8]>,
        row: Option<&[u8]>,
        command: CommandId,
    ) -> Result<()> {
        self.make_room(2 * key.len() + base.map_or(0, <[u8]>::len) + row.map_or(0, <[u8]>::len))?;
        self.serial += 1;
        let written = self.trees.entry(tree).or_default();
        match (base, row) {
            (None, Some(row)) if tree >= TreeId::FIRST_USER && written.is_behind(key) => {
                self.packed += written.tail.push(Plain {
                    key,
                    command,
                    serial: self.serial,
                    row,
                });
                Ok(())
            }
            _ => self.write_to_map(tree, key, base, row, command),
        }
    }

    /// Fails, or puts rows elsewhere, when so many bytes more are too many.
    fn make_room(&mut self, bytes: usize) -> Result<()> {
        let has_memory = self.held.set(self.memory() + bytes);
        let refused = has_memory.as_ref().err().map(Error::state);
        let is_refused = refused == Some(SqlState::OUT_OF_MEMORY);
        match &self.scratch {
            Some((_, most)) if self.memory() + bytes > *most => self.spill(),
            Some(_) if is_refused && self.memory() > SPILLED_BYTES_MIN => self.spill(),
            _ if has_memory.is_err() => has_memory,
            None if self.bytes + self.packed + bytes > WRITE_SET_BYTES_MAX => {
                let limit = format!("A transaction may write at most {WRITE_SET_BYTES_MAX} bytes.");
                let error = Error::new(SqlState::OUT_OF_MEMORY, "out of memory");
                Err(error.with_detail(limit))
            }
            _ => Ok(()),
        }
    }

    fn write_to_map(
        &mut self,
        tree: TreeId,
        key: &[u8],
        base: Option<&[u8]>,
        row: Option<&[u8]>,
        command: CommandId,
    ) -> Result<()> {
        self.fetch(tree, key)?;
        let version = Version {
            command,
            serial: self.serial,
            state: row.map(<[u8]>::to_vec),
        };
        self.bytes += version.bytes();
        let floor = self.marks.last().map_or(0, |mark| mark.serial);
        let kept = self.pins.iter().copied().fold(floor, u64::max);
        let written = self.trees.entry(tree).or_default();
        let known = match written.is_behind_map(key) {
            true => None,
            false => written.stacks.get_mut(key),
        };
        let is_logged = match known {
            Some(stack) => {
                let is_logged = stack.newest.serial > floor;
                self.bytes -= stack.push(version, kept);
                is_logged
            }
            None => {
                let stack = Stack {
                    base: base.map(<[u8]>::to_vec),
                    newest: version,
                    older: Vec::new(),
                };
                self.bytes += key.len() + base.map_or(0, <[u8]>::len);
                self.rows += 1;
                written.stacks.insert(key.to_vec(), stack);
                false
            }
        };
        if !self.marks.is_empty() && !is_logged {
            self.bytes += key.len();
            self.log.push((tree, key.to_vec()));
        }
        Ok(())
    }

    /// Memory that is in use, about.
    fn memory(&self) -> usize {
        self.bytes + self.rows * ROW_OVERHEAD + self.packed
    }

    /// Brings a row that is to be written again to the map, if it is elsewhere.
    fn fetch(&mut self, tree: TreeId, key: &[u8]) -> Result<()> {
        let Some(written) = self.trees.get(&tree) else {
            return Ok(());
        };
        if written.tail.is_empty() && written.runs.is_empty() {
            return Ok(());
        }
        let stack = match written.in_memory(key) {
            Some(Known::Stack(_)) => return Ok(()),
            Some(Known::Plain(row)) => Some(row.to_stack()),
            None => self.stack_in_runs(Some(written), key)?,
        };
        let Some(stack) = stack else {
            return Ok(());
        };
        if !self.marks.is_empty() {
            self.fetched.push((tree, key.to_vec()));
        }
        self.bytes += key.len() + stack.bytes();
        self.rows += 1;
        let written = self.trees.entry(tree).or_default();
        written.stacks.insert(key.to_vec(), stack);
        Ok(())
    }

    /// Puts rows into scratch space.
    fn spill(&mut self) -> Result<()> {
        self.check()?;
        let Some((scratch, _)) = &self.scratch else {
            return Ok(());
        };
        for written in self.trees.range_mut(TreeId::FIRST_USER..).map(|(_, w)| w) {
            // What the tail has is the older.
            let (tail, stacks) = (&mut written.tail, &mut written.stacks);
            let (tail, stacks) = (std::mem::take(tail), std::mem::take(stacks));
            let entries = stacks.into_iter();
            let entries = entries.map(|(key, stack)| Entry { key, stack });
            let result = written.runs.add_tail(scratch, &tail);
            drop(tail);
            if let Err(error) = result.and_then(|()| written.runs.add(scratch, entries)) {
                self.broken = Some(error.clone());
                return Err(error);
            }
        }
        // Runs need no log to be rolled back.
        self.fetched.clear();
        let mut place = 0;
        let mut marks = self.marks.iter_mut().peekable();
        let mut kept = 0;
        self.log.retain(|(tree, _)| {
            coro::work_uninterrupted(DROP_WORK);
            while let Some(mark) = marks.next_if(|mark| mark.log <= place) {
                mark.log = kept;
            }
            place += 1;
            let keep = *tree < TreeId::FIRST_USER;
            kept += usize::from(keep);
            keep
        });
        marks.for_each(|mark| mark.log = kept);
        let log: usize = self.log.iter().map(|(_, key)| key.len()).sum();
        let stacks = self.trees.values().flat_map(|tree| &tree.stacks);
        let (mut bytes, mut rows) = (0, 0);
        for (key, stack) in stacks {
            bytes += key.len() + stack.bytes();
            rows += 1;
        }
        self.bytes = log + bytes;
        self.rows = rows;
        self.packed = 0;
        Ok(())
    }

    /// Keeps the versions written until now for as long as somebody reads them.
    pub fn pin(&mut self) -> u64 {
        self.pins.push(self.serial);
        self.serial
    }

    /// Nobody needs what [`WriteSet::pin`] has kept any more.
    pub fn unpin(&mut self, pin: u64) {
        if let Some(place) = self.pins.iter().position(|known| *known == pin) {
            self.pins.swap_remove(place);
        }
    }

    /// Makes a savepoint, and returns how many there are now.
    pub fn mark(&mut self) -> usize {
        self.marks.push(Mark {
            serial: self.serial,
            log: self.log.len(),
        });
        self.marks.len()
    }

    /// Takes back what was written since the savepoint of that number; it stays, later ones go.
    pub fn rollback_to(&mut self, number: usize) {
        let mark = self.marks[number - 1];
        self.marks.truncate(number);
        for (tree, key) in self.log.split_off(mark.log) {
            self.bytes -= key.len() + self.take_back(tree, &key, mark.serial);
            // What is taken back half is not to be cancelled.
            coro::work_uninterrupted(TAKE_BACK_WORK);
        }
        for (tree, key) in self.fetched.take() {
            self.bytes -= self.take_back(tree, &key, mark.serial);
            self.fetched.push((tree, key));
            coro::work_uninterrupted(TAKE_BACK_WORK);
        }
        for written in self.trees.values_mut() {
            self.packed -= written.tail.take_back(mark.serial);
            written.runs.take_back(mark.serial);
        }
        self.trees.retain(|_, written| !written.is_empty());
    }

    /// Takes back a row's versions above a serial number and returns their bytes.
    fn take_back(&mut self, tree: TreeId, key: &[u8], floor: u64) -> usize {
        let stacks = self.trees.get_mut(&tree).map(|written| &mut written.stacks);
        let Some(stacks) = stacks else {
            return 0;
        };
        let Some(stack) = stacks.get_mut(key) else {
            return 0;
        };
        let (mut bytes, is_left) = stack.take_back(floor);
        if !is_left {
            bytes += key.len() + stack.base.as_ref().map_or(0, Vec::len);
            stacks.remove(key);
            self.rows -= 1;
        }
        bytes
    }

    /// Forgets the savepoint of that number and later ones, keeping what was written since.
    pub fn release(&mut self, number: usize) {
        self.marks.truncate(number - 1);
        if self.marks.is_empty() {
            self.fetched.clear();
            for (_, key) in self.log.take() {
                self.bytes -= key.len();
                coro::work_uninterrupted(DROP_WORK);
            }
        }
    }

    /// The rows of a range that were written by commands before `command`.
    pub fn range<'a>(
        &'a self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        command: CommandId,
    ) -> OwnRows<'a> {
        let written = self.trees.get(&tree).filter(|_| !has_no_key(range));
        OwnRows {
            rows: written.map(|written| written.range(range, direction)),
            command,
        }
    }

    /// The first rows of a range that were written by commands before `command`, deleted ones
    /// included, at most `limit`.
    fn collect(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        command: CommandId,
        limit: usize,
    ) -> Result<Collected> {
        self.check()?;
        let mut collected = Collected::default();
        let written = self.trees.get(&tree).filter(|_| !has_no_key(range));
        let Some(written) = written else {
            return Ok(collected);
        };
        let runs = &written.runs;
        let mut merge = Merge::range(runs, range, direction)?;
        let mut stored = merge.next(runs)?;
        let mut memory = written.range(range, direction).peekable();
        loop {
            let from_memory = match (&stored, memory.peek()) {
                (None, None) => return Ok(collected),
                (None, Some(_)) => true,
                (Some(_), None) => false,
                (Some(entry), Some((key, _))) => match direction {
                    Direction::Forward => *key <= entry.key.as_slice(),
                    Direction::Backward => *key >= entry.key.as_slice(),
                },
            };
            let (key, seen) = match from_memory {
                true => {
                    let (key, known) = memory.next().expect("it was just seen");
                    // Memory knows better.
                    if stored.as_ref().is_some_and(|entry| entry.key == key) {
                        stored = merge.next(runs)?;
                    }
                    let row = known.row_before(command);
                    (key.to_vec(), row.map(|row| row.map(<[u8]>::to_vec)))
                }
                false => {
                    let Entry { key, stack } = stored.take().expect("it was just seen");
                    stored = merge.next(runs)?;
                    (
                        key,
                        stack.before(command).map(|version| version.state.clone()),
                    )
                }
            };
            if let Some(row) = seen {
                if collected.rows.len() >= limit {
                    collected.stop = Some(key);
                    return Ok(collected);
                }
                collected.rows.push((key, row));
            }
        }
    }

    /// Merges stored rows of a range with those that were written by commands before `command`,
    /// into `out`: at most until it has `limit` rows, and looking at about `own_max` own ones.
    /// Returns the first key that was left out for that reason.
    ///
    /// # Errors
    /// As [`WriteSet::visible`].
    pub fn merge_into(
        &self,
        tree: TreeId,
        (range, direction, command): (&KeyRange, Direction, CommandId),
        stored: &RowBatch,
        limit: usize,
        own_max: usize,
        out: &mut RowBatch,
    ) -> Result<Option<Key>> {
        self.check()?;
        if !self.has_runs(tree) {
            let own = self.range(tree, range, direction, command);
            let left = merge(stored, own, direction, limit, out);
            return Ok(left.map(<[u8]>::to_vec));
        }
        let own = self.collect(tree, range, direction, command, own_max)?;
        let Some(stop) = &own.stop else {
            let left = merge(stored, own.iter(), direction, limit, out);
            return Ok(left.map(<[u8]>::to_vec));
        };
        let is_before = |key: &[u8]| match direction {
            Direction::Forward => key < stop.as_slice(),
            Direction::Backward => key > stop.as_slice(),
        };
        let mut before = RowBatch::default();
        let rows = stored.iter().take_while(|(key, _)| is_before(key));
        rows.for_each(|(key, row)| before.push(key, row));
        let left = merge(&before, own.iter(), direction, limit, out).map(<[u8]>::to_vec);
        // All stored rows before the own one that was left out are merged.
        Ok(left.or_else(|| Some(stop.clone())))
    }

    /// Calls `f` with every row of a tree that was written.
    fn for_each_in(&self, tree: TreeId, mut f: impl FnMut(&[u8], Known<'_>)) -> Result<()> {
        let Some(written) = self.trees.get(&tree) else {
            return Ok(());
        };
        self.check()?;
        let (all, direction) = (KeyRange::all(), Direction::Forward);
        let mut merge = Merge::range(&written.runs, &all, direction)?;
        let mut stored = merge.next(&written.runs)?;
        for (key, known) in written.range(&all, direction) {
            while let Some(entry) = stored.take_if(|entry| entry.key.as_slice() <= key) {
                // Memory knows better.
                if entry.key != key {
                    f(&entry.key, Known::Stack(&entry.stack));
                }
                stored = merge.next(&written.runs)?;
            }
            f(key, known);
        }
        while let Some(entry) = stored {
            f(&entry.key, Known::Stack(&entry.stack));
            stored = merge.next(&written.runs)?;
        }
        Ok(())
    }

    /// Every row of a tree that was written.
    ///
    /// # Errors
    /// As [`WriteSet::visible`].
    pub fn changed_rows(&self, tree: TreeId) -> Result<Vec<Changed>> {
        let mut all = Vec::new();
        self.for_each_in(tree, |key, known| {
            let (base, newest) = match known {
                Known::Stack(stack) => (stack.base.clone(), stack.newest.state.clone()),
                Known::Plain(row) => (None, Some(row.row.to_vec())),
            };
            all.push((key.to_vec(), base, newest));
        })?;
        Ok(all)
    }

    /// Calls `f` with everything that was written, entries of indexes too, in the order of trees
    /// and keys.
    ///
    /// # Errors
    /// As [`WriteSet::visible`].
    pub fn for_each_key(&self, f: &mut dyn FnMut(TreeId, &[u8])) -> Result<()> {
        for tree in self.trees.keys() {
            self.for_each_in(*tree, |key, _| f(*tree, key))?;
        }
        Ok(())
    }

    /// What the transaction does, one change per row, in the order of trees and keys. Entries of
    /// secondary indexes are left out, and trees for which `is_dropped` holds.
    ///
    /// # Errors
    /// XX001 when a row is no row; the pending interrupt; as [`WriteSet::visible`].
    pub fn collapse(self, is_dropped: impl Fn(TreeId) -> bool + 'static) -> Result<Changes> {
        self.check()?;
        let logged = move |(id, written): &(TreeId, Tree)| !written.is_index && !is_dropped(*id);
        let trees = self.trees.into_iter().filter(logged);
        let mut changes = trees.flat_map(|(tree, written)| changes_of(tree, Rows::new(written)));
        let (mut all, mut bytes) = (Vec::new(), 0);
        for change in changes.by_ref() {
            let change = change?;
            bytes += change.bytes();
            all.push(change);
            if bytes > ALL_CHANGES_BYTES {
                let changes = all.into_iter().map(Ok).chain(changes);
                return Ok(Changes::Stream(Box::new(changes)));
            }
            if all.len() % ROWS_PER_YIELD == 0 && coro::inside() {
                coro::yield_now()?;
            }
        }
        Ok(Changes::All(all))
    }
}

/// What becomes of the rows of one tree.
fn changes_of(tree: TreeId, rows: Result<Rows>) -> impl Iterator<Item = Result<RowChange>> {
    let (mut rows, mut error) = match rows {
        Ok(rows) => (Some(rows), None),
        Err(error) => (None, Some(error)),
    };
    std::iter::from_fn(move || {
        if let Some(error) = error.take() {
            return Some(Err(error));
        }
        loop {
            let Entry { key, stack } = match rows.as_mut()?.next() {
                Ok(entry) => entry?,
                Err(error) => return Some(Err(error)),
            };
            match stack.collapse() {
                Ok(Some(change)) => return Some(Ok(RowChange { tree, key, change })),
                Ok(None) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    })
}

/// Whether a range ends where it begins, or before.
fn has_no_key(range: &KeyRange) -> bool {
    range.end.as_ref().is_some_and(|end| *end <= range.start)
}

/// Written rows of a range.
#[derive(Debug, Default)]
struct Collected {
    /// Keys and rows, `None` where one is deleted.
    rows: Vec<(Key, Option<Vec<u8>>)>,
    /// The first key that was left out.
    stop: Option<Key>,
}

impl Collected {
    fn iter(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        let rows = self.rows.iter();
        rows.map(|(key, row)| (key.as_slice(), row.as_deref()))
    }
}

/// Written rows of a range, deleted ones included.
pub struct OwnRows<'a> {
    rows: Option<InMemory<'a>>,
    command: CommandId,
}

impl<'a> Iterator for OwnRows<'a> {
    type Item = (&'a [u8], Option<&'a [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (key, known) = self.rows.as_mut()?.next()?;
            if let Some(row) = known.row_before(self.command) {
                return Some((key, row));
            }
        }
    }
}

/// Merges stored rows with own ones, which win, into `out`: at most until it has `limit` rows.
/// Returns the first key that was left out for that reason.
///
/// Both sides are in the order of `direction` and cover the same range.
fn merge<'a>(
    stored: &'a RowBatch,
    own: impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)>,
    direction: Direction,
    limit: usize,
    out: &mut RowBatch,
) -> Option<&'a [u8]> {
    let is_before = |a: &[u8], b: &[u8]| match direction {
        Direction::Forward => a < b,
        Direction::Backward => a > b,
    };
    let mut stored = stored.iter().peekable();
    let mut own = own.peekable();
    loop {
        let (key, row) = match (stored.peek().copied(), own.peek().copied()) {
            (None, None) => return None,
            (Some((key, row)), None) => (key, Some(row)),
            (Some((key, row)), Some((own_key, _))) if is_before(key, own_key) => (key, Some(row)),
            (_, Some(own)) => own,
        };
        if let Some(row) = row {
            if out.len() >= limit {
                return Some(key);
            }
            out.push(key, row);
        }
        stored.next_if(|(next, _)| *next == key);
        own.next_if(|(next, _)| *next == key);
    }
}

/// The part of `range` that a store's scan has covered when this rest of it is left.
pub fn covered(range: &KeyRange, direction: Direction, rest: Option<&KeyRange>) -> KeyRange {
    let mut covered = range.clone();
    match (direction, rest) {
        (_, None) => {}
        (Direction::Forward, Some(rest)) => covered.end = Some(rest.start.clone()),
        (Direction::Backward, Some(rest)) => {
            let end = rest.end.clone();
            covered.start = end.expect("what is left ends before what was returned");
        }
    }
    covered
}

/// What is left of `range` from `key` on, which is the next row to be returned.
pub fn rest_of(range: &KeyRange, direction: Direction, key: &[u8]) -> KeyRange {
    let mut rest = range.clone();
    match direction {
        Direction::Forward => rest.start = key.to_vec(),
        Direction::Backward => rest.end = KeyRange::point(key).end,
    }
    rest
}
