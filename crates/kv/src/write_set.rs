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
//! - A row is in memory, or else in the newest of the [`runs`] that has it; wherever it is found,
//!   there is all that is known of it.
//! - Trees below [`TreeId::FIRST_USER`] are in memory.
//!
//! # Beyond memory
//! When what is in memory takes more than the limit that it was made with, rows and entries of
//! indexes go to scratch space, as a sorted run ([`runs`]). What is written again comes back first.
//! The changes of a transaction that has runs are handed to its commit one by one ([`Changes`]).
//!
//! # What it leaves out
//! Without scratch space a write set beyond [`WRITE_SET_BYTES_MAX`] is 53200.

mod runs;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::{btree_map, BTreeMap};
use std::ops::Bound;
use std::sync::Arc;

use base::engine::{Direction, RowBatch};
use base::row::RowDelta;
use base::{CommandId, Error, Key, KeyRange, Result, SqlState, TreeId};
use storage::Scratch;

use runs::{Entry, Merge, Runs};

use crate::record::{Change, RowChange};

/// Bytes of keys and rows that one transaction may have written at a time; more is 53200.
pub const WRITE_SET_BYTES_MAX: usize = 1 << 30;

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

/// What was written in one tree.
#[derive(Debug, Default)]
struct Tree {
    /// These are entries of a secondary index: they follow from rows, and are not in the record.
    is_index: bool,
    stacks: BTreeMap<Key, Stack>,
}

impl Tree {
    /// Whether a key lies behind all that are here, as it does where keys only grow. Much faster to
    /// know than where in the middle a key would be.
    fn is_behind(&self, key: &[u8]) -> bool {
        let last = self.stacks.last_key_value();
        last.is_none_or(|(last, _)| last.as_slice() < key)
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
    log: Vec<(TreeId, Key)>,
    /// Rows that came back from scratch space since the oldest savepoint: the log may not have them.
    fetched: Vec<(TreeId, Key)>,
    bytes: usize,
    /// Rows in `trees`.
    rows: usize,
    /// Where rows go beyond so many bytes.
    scratch: Option<(Arc<Scratch>, usize)>,
    runs: Option<Runs>,
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
    /// More than there is memory for, one by one, in the order of trees and keys.
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
        self.trees.is_empty() && self.runs.is_none()
    }

    /// Whether anything is written in a tree.
    pub fn touches(&self, tree: TreeId) -> bool {
        self.trees.contains_key(&tree) || self.has_runs(tree)
    }

    /// Whether some of what is written in a tree is in scratch space.
    pub fn has_runs(&self, tree: TreeId) -> bool {
        self.runs.as_ref().is_some_and(|runs| runs.has_tree(tree))
    }

    fn stack(&self, tree: TreeId, key: &[u8]) -> Option<&Stack> {
        let written = self.trees.get(&tree)?;
        match written.is_behind(key) {
            true => None,
            false => written.stacks.get(key),
        }
    }

    fn stack_in_runs(&self, tree: TreeId, key: &[u8]) -> Result<Option<Stack>> {
        match &self.runs {
            None => Ok(None),
            Some(runs) => {
                self.check()?;
                runs.get(tree, key)
            }
        }
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
        if let Some(stack) = self.stack(tree, key) {
            return Ok(stack.before(command).map(Own::from));
        }
        let stack = self.stack_in_runs(tree, key)?;
        let version = stack.and_then(|stack| stack.before(command).cloned());
        Ok(version.map(Own::of))
    }

    /// What was last written of a row.
    ///
    /// # Errors
    /// As [`WriteSet::visible`].
    pub fn newest(&self, tree: TreeId, key: &[u8]) -> Result<Option<Own<'_>>> {
        if let Some(stack) = self.stack(tree, key) {
            return Ok(Some(Own::from(&stack.newest)));
        }
        let stack = self.stack_in_runs(tree, key)?;
        Ok(stack.map(|stack| Own::of(stack.newest)))
    }

    /// Whether the row of a tree below [`TreeId::FIRST_USER`] was written, and was absent before the
    /// transaction.
    pub fn is_new(&self, tree: TreeId, key: &[u8]) -> bool {
        self.stack(tree, key).is_some_and(|s| s.base.is_none())
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
        self.write(tree, key, base, row, command).map(|_| ())
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
        self.write(tree, key, None, row, command)?.is_index = true;
        Ok(())
    }

    fn write(
        &mut self,
        tree: TreeId,
        key: &[u8],
        base: Option<&[u8]>,
        row: Option<&[u8]>,
        command: CommandId,
    ) -> Result<&mut Tree> {
        let bytes = 2 * key.len() + base.map_or(0, <[u8]>::len) + row.map_or(0, <[u8]>::len);
        match &self.scratch {
            Some((_, most)) if self.memory() + bytes > *most => self.spill()?,
            None if self.bytes + bytes > WRITE_SET_BYTES_MAX => {
                let limit = format!("A transaction may write at most {WRITE_SET_BYTES_MAX} bytes.");
                let error = Error::new(SqlState::OUT_OF_MEMORY, "out of memory");
                return Err(error.with_detail(limit));
            }
            _ => {}
        }
        if self.has_runs(tree) && self.stack(tree, key).is_none() {
            self.fetch(tree, key)?;
        }
        self.serial += 1;
        let version = Version {
            command,
            serial: self.serial,
            state: row.map(<[u8]>::to_vec),
        };
        self.bytes += version.bytes();
        let floor = self.marks.last().map_or(0, |mark| mark.serial);
        let kept = self.pins.iter().copied().fold(floor, u64::max);
        let written = self.trees.entry(tree).or_default();
        let known = match written.is_behind(key) {
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
        Ok(written)
    }

    /// Memory that is in use, about.
    fn memory(&self) -> usize {
        self.bytes + self.rows * ROW_OVERHEAD
    }

    /// Brings a row that is to be written again back from scratch space.
    fn fetch(&mut self, tree: TreeId, key: &[u8]) -> Result<()> {
        let Some(stack) = self.stack_in_runs(tree, key)? else {
            return Ok(());
        };
        if !self.marks.is_empty() {
            self.fetched.push((tree, key.to_vec()));
        }
        self.bytes += key.len() + stack.bytes();
        self.rows += 1;
        let is_index = self
            .runs
            .as_ref()
            .and_then(|runs| runs.trees().get(&tree).copied());
        let written = self.trees.entry(tree).or_default();
        written.is_index = is_index.unwrap_or(false);
        written.stacks.insert(key.to_vec(), stack);
        Ok(())
    }

    /// Puts rows into scratch space.
    fn spill(&mut self) -> Result<()> {
        self.check()?;
        let Some((scratch, _)) = &self.scratch else {
            return Ok(());
        };
        let spilled = self.trees.split_off(&TreeId::FIRST_USER);
        if spilled.is_empty() {
            return Ok(());
        }
        let runs = self.runs.get_or_insert_with(|| Runs::new(scratch.clone()));
        let trees: Vec<_> = spilled
            .iter()
            .map(|(id, tree)| (*id, tree.is_index))
            .collect();
        let entries = spilled.into_iter().flat_map(|(tree, written)| {
            let stacks = written.stacks.into_iter();
            stacks.map(move |(key, stack)| Entry { tree, key, stack })
        });
        if let Err(error) = runs.add(trees, entries) {
            self.broken = Some(error.clone());
            return Err(error);
        }
        // Runs need no log to be rolled back.
        self.fetched.clear();
        let mut place = 0;
        let mut marks = self.marks.iter_mut().peekable();
        let mut kept = 0;
        self.log.retain(|(tree, _)| {
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
        }
        for (tree, key) in std::mem::take(&mut self.fetched) {
            self.bytes -= self.take_back(tree, &key, mark.serial);
            self.fetched.push((tree, key));
        }
        if let Some(runs) = &mut self.runs {
            runs.take_back(mark.serial);
        }
    }

    /// Takes back a row's versions above a serial number and returns their bytes.
    fn take_back(&mut self, tree: TreeId, key: &[u8], floor: u64) -> usize {
        let btree_map::Entry::Occupied(mut written) = self.trees.entry(tree) else {
            return 0;
        };
        let stacks = &mut written.get_mut().stacks;
        let Some(stack) = stacks.get_mut(key) else {
            return 0;
        };
        let (mut bytes, is_left) = stack.take_back(floor);
        if !is_left {
            bytes += key.len() + stack.base.as_ref().map_or(0, Vec::len);
            stacks.remove(key);
            self.rows -= 1;
        }
        if stacks.is_empty() {
            written.remove();
        }
        bytes
    }

    /// Forgets the savepoint of that number and later ones, keeping what was written since.
    pub fn release(&mut self, number: usize) {
        self.marks.truncate(number - 1);
        if self.marks.is_empty() {
            self.fetched.clear();
            self.bytes -= self.log.drain(..).map(|(_, key)| key.len()).sum::<usize>();
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
        let end = range.end.as_deref();
        let is_empty = end.is_some_and(|end| end <= range.start.as_slice());
        let written = self.trees.get(&tree).filter(|_| !is_empty);
        let bounds = (
            Bound::Included(range.start.as_slice()),
            end.map_or(Bound::Unbounded, Bound::Excluded),
        );
        OwnRows {
            stacks: written.map(|written| written.stacks.range::<[u8], _>(bounds)),
            direction,
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
        let Some(runs) = &self.runs else {
            return Err(Error::internal(
                "a write set without runs is read from runs",
            ));
        };
        let is_empty = range.end.as_ref().is_some_and(|end| *end <= range.start);
        if is_empty {
            return Ok(collected);
        }
        let mut merge = Merge::range(runs, tree, range, direction)?;
        let mut stored = merge.next(runs)?;
        let mut memory = self.stacks(tree, range, direction).peekable();
        loop {
            let from_memory = match (&stored, memory.peek()) {
                (None, None) => return Ok(collected),
                (None, Some(_)) => true,
                (Some(_), None) => false,
                (Some(entry), Some((key, _))) => match direction {
                    Direction::Forward => **key <= entry.key,
                    Direction::Backward => **key >= entry.key,
                },
            };
            let (key, stack) = match from_memory {
                true => {
                    let (key, stack) = memory.next().expect("it was just seen");
                    // Memory knows better.
                    if stored.as_ref().is_some_and(|entry| entry.key == *key) {
                        stored = merge.next(runs)?;
                    }
                    (key.clone(), Cow::Borrowed(stack))
                }
                false => {
                    let entry = stored.take().expect("it was just seen");
                    stored = merge.next(runs)?;
                    (entry.key, Cow::Owned(entry.stack))
                }
            };
            if let Some(version) = stack.before(command) {
                if collected.rows.len() >= limit {
                    collected.stop = Some(key);
                    return Ok(collected);
                }
                collected.rows.push((key, version.state.clone()));
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

    fn stacks<'a>(
        &'a self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
    ) -> impl Iterator<Item = (&'a Key, &'a Stack)> {
        let end = range.end.as_deref();
        let bounds = (
            Bound::Included(range.start.as_slice()),
            end.map_or(Bound::Unbounded, Bound::Excluded),
        );
        let written = self.trees.get(&tree);
        let mut stacks = written.map(|written| written.stacks.range::<[u8], _>(bounds));
        std::iter::from_fn(move || match direction {
            Direction::Forward => stacks.as_mut()?.next(),
            Direction::Backward => stacks.as_mut()?.next_back(),
        })
    }

    /// Every row of a tree that was written.
    ///
    /// # Errors
    /// As [`WriteSet::visible`].
    pub fn changed_rows(&mut self, tree: TreeId) -> Result<Vec<Changed>> {
        let changed = |key: Key, stack: Stack| (key, stack.base, stack.newest.state);
        if !self.has_runs(tree) {
            let stacks = self.trees.get(&tree).map(|written| &written.stacks);
            let stacks = stacks.into_iter().flatten();
            return Ok(stacks
                .map(|(key, s)| changed(key.clone(), s.clone()))
                .collect());
        }
        self.spill()?;
        let mut all = Vec::new();
        if let Some(runs) = &self.runs {
            let everything = KeyRange::all();
            let mut merge = Merge::range(runs, tree, &everything, Direction::Forward)?;
            while let Some(entry) = merge.next(runs)? {
                all.push(changed(entry.key, entry.stack));
            }
        }
        Ok(all)
    }

    /// Calls `f` with everything that was written, entries of indexes too, in the order of trees
    /// and keys.
    ///
    /// # Errors
    /// As [`WriteSet::visible`].
    pub fn for_each_key(&mut self, f: &mut dyn FnMut(TreeId, &[u8])) -> Result<()> {
        if self.runs.is_some() {
            self.spill()?;
        }
        for (tree, written) in &self.trees {
            written.stacks.keys().for_each(|key| f(*tree, key));
        }
        if let Some(runs) = &self.runs {
            let mut merge = Merge::all(runs)?;
            while let Some(entry) = merge.next(runs)? {
                f(entry.tree, &entry.key);
            }
        }
        Ok(())
    }

    /// What the transaction does, one change per row, in the order of trees and keys. Entries of
    /// secondary indexes are left out, and trees for which `is_dropped` holds.
    ///
    /// # Errors
    /// XX001 when a row is no row; as [`WriteSet::visible`].
    pub fn collapse(mut self, is_dropped: impl Fn(TreeId) -> bool + 'static) -> Result<Changes> {
        if self.runs.is_some() {
            self.spill()?;
        }
        let mut changes = Vec::new();
        for (tree, written) in self.trees {
            if written.is_index || is_dropped(tree) {
                continue;
            }
            for (key, stack) in written.stacks {
                if let Some(change) = stack.collapse()? {
                    changes.push(RowChange { tree, key, change });
                }
            }
        }
        let Some(runs) = self.runs else {
            return Ok(Changes::All(changes));
        };
        let mut merge = Merge::all(&runs)?;
        let rest = std::iter::from_fn(move || loop {
            let Entry { tree, key, stack } = match merge.next(&runs) {
                Ok(entry) => entry?,
                Err(error) => return Some(Err(error)),
            };
            let is_index = runs.trees().get(&tree).copied();
            if is_index == Some(true) || is_dropped(tree) {
                continue;
            }
            match stack.collapse() {
                Ok(Some(change)) => return Some(Ok(RowChange { tree, key, change })),
                Ok(None) => {}
                Err(error) => return Some(Err(error)),
            }
        });
        let all = changes.into_iter().map(Ok).chain(rest);
        Ok(Changes::Stream(Box::new(all)))
    }
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
#[derive(Debug)]
pub struct OwnRows<'a> {
    stacks: Option<btree_map::Range<'a, Key, Stack>>,
    direction: Direction,
    command: CommandId,
}

impl<'a> Iterator for OwnRows<'a> {
    type Item = (&'a [u8], Option<&'a [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        let stacks = self.stacks.as_mut()?;
        loop {
            let (key, stack) = match self.direction {
                Direction::Forward => stacks.next()?,
                Direction::Backward => stacks.next_back()?,
            };
            if let Some(version) = stack.before(self.command) {
                return Some((key, version.state.as_deref()));
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
