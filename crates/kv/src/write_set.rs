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
//! # What it leaves out
//! A write set beyond [`WRITE_SET_BYTES_MAX`] is to become a private tree in scratch space; until
//! then it is 53200.

#[cfg(test)]
mod tests;

use std::collections::{btree_map, BTreeMap};
use std::ops::Bound;

use base::engine::{Direction, RowBatch};
use base::row::RowDelta;
use base::{CommandId, Error, Key, KeyRange, Result, SqlState, TreeId};

use crate::record::{Change, RowChange};

/// Bytes of keys and rows that one transaction may have written at a time; more is 53200.
pub const WRITE_SET_BYTES_MAX: usize = 1 << 30;

/// One state of a row: its bytes, or `None` where it is deleted.
type State = Option<Vec<u8>>;

#[derive(Debug)]
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

#[derive(Debug)]
struct Stack {
    base: State,
    newest: Version,
    older: Vec<Version>,
}

impl Stack {
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Own<'a> {
    /// The command that wrote it.
    pub command: CommandId,
    /// Its bytes; `None` when it was deleted.
    pub row: Option<&'a [u8]>,
}

impl<'a> From<&'a Version> for Own<'a> {
    fn from(version: &'a Version) -> Own<'a> {
        Own {
            command: version.command,
            row: version.state.as_deref(),
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
    bytes: usize,
}

impl WriteSet {
    /// Whether nothing is written.
    pub fn is_empty(&self) -> bool {
        self.trees.is_empty()
    }

    /// Whether anything is written in a tree.
    pub fn touches(&self, tree: TreeId) -> bool {
        self.trees.contains_key(&tree)
    }

    fn stack(&self, tree: TreeId, key: &[u8]) -> Option<&Stack> {
        self.trees.get(&tree)?.stacks.get(key)
    }

    /// What a command sees of a row that earlier commands wrote.
    pub fn visible(&self, tree: TreeId, key: &[u8], command: CommandId) -> Option<Own<'_>> {
        self.stack(tree, key)?.before(command).map(Own::from)
    }

    /// What was last written of a row.
    pub fn newest(&self, tree: TreeId, key: &[u8]) -> Option<Own<'_>> {
        self.stack(tree, key).map(|stack| Own::from(&stack.newest))
    }

    /// Whether the row was written, and was absent before the transaction.
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
        if self.bytes + bytes > WRITE_SET_BYTES_MAX {
            let limit = format!("A transaction may write at most {WRITE_SET_BYTES_MAX} bytes.");
            return Err(Error::new(SqlState::OUT_OF_MEMORY, "out of memory").with_detail(limit));
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
        let is_logged = match written.stacks.get_mut(key) {
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

    /// Every row of a tree that was written: its key, the newest version before the transaction, the
    /// newest of the transaction.
    pub fn changed_rows(
        &self,
        tree: TreeId,
    ) -> impl Iterator<Item = (&Key, Option<&[u8]>, Option<&[u8]>)> {
        let stacks = self.trees.get(&tree).map(|written| &written.stacks);
        let stacks = stacks.into_iter().flatten();
        stacks.map(|(key, stack)| {
            let newest = stack.newest.state.as_deref();
            (key, stack.base.as_deref(), newest)
        })
    }

    /// Everything that was written, entries of indexes too, in the order of trees and keys.
    pub fn keys(&self) -> impl Iterator<Item = (TreeId, &[u8])> {
        let trees = self.trees.iter();
        trees.flat_map(|(tree, written)| written.stacks.keys().map(|key| (*tree, key.as_slice())))
    }

    /// What the transaction does, one change per row, in the order of trees and keys. Entries of
    /// secondary indexes are left out, and trees for which `is_dropped` holds.
    ///
    /// # Errors
    /// XX001 when a row is no row.
    pub fn collapse(self, is_dropped: impl Fn(TreeId) -> bool) -> Result<Vec<RowChange>> {
        let mut changes = Vec::new();
        for (tree, written) in self.trees {
            if written.is_index || is_dropped(tree) {
                continue;
            }
            for (key, stack) in written.stacks {
                let change = match (stack.base, stack.newest.state) {
                    (None, None) => continue,
                    (None, Some(row)) => Change::Insert(row),
                    (Some(_), None) => Change::Delete,
                    // Also where no column differs: who holds an older snapshot must notice.
                    (Some(old), Some(new)) => Change::Update(RowDelta::between(&old, &new)?),
                };
                changes.push(RowChange { tree, key, change });
            }
        }
        Ok(changes)
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
pub fn merge<'a>(
    stored: &'a RowBatch,
    own: OwnRows<'a>,
    limit: usize,
    out: &mut RowBatch,
) -> Option<&'a [u8]> {
    let direction = own.direction;
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
