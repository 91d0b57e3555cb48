//! What was written in one tree, and going over it.
//!
//! ```text
//! map     b' e f' k      newest
//! tail           h j l   behind all runs
//! runs    a b c          an older version is covered, never mixed
//! ```
//!
//! The tail lies behind the runs, so the two are one line of rows, and the map is laid over it.

use std::collections::{btree_map, BTreeMap};
use std::iter::Peekable;
use std::ops::Bound;

use base::engine::Direction;
use base::large::{Items, Large};
use base::{CommandId, Key, KeyRange, Result};

use super::entry::{Entry, Plain};
use super::runs::{Merge, Runs};
use super::tail::{self, Tail};
use super::{Own, Stack};

/// What is known of a row that is in memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum Known<'a> {
    Stack(&'a Stack),
    Plain(Plain<'a>),
}

impl<'a> Known<'a> {
    /// What a command sees of it, if earlier ones wrote it.
    pub(super) fn before(self, command: CommandId) -> Option<Own<'a>> {
        match self {
            Known::Stack(stack) => stack.before(command).map(Own::from),
            Known::Plain(row) => (row.command < command).then(|| row.own()),
        }
    }

    /// As [`Known::before`], the row alone: none where it was deleted.
    pub(super) fn row_before(self, command: CommandId) -> Option<Option<&'a [u8]>> {
        match self {
            Known::Stack(stack) => stack.before(command).map(|seen| seen.state.as_deref()),
            Known::Plain(row) => (row.command < command).then_some(Some(row.row)),
        }
    }

    pub(super) fn newest(self) -> Own<'a> {
        match self {
            Known::Stack(stack) => Own::from(&stack.newest),
            Known::Plain(row) => row.own(),
        }
    }
}

/// What was written in one tree.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// These are entries of a secondary index: they follow from rows, and are not in the record.
    pub(super) is_index: bool,
    pub(super) stacks: Large<BTreeMap<Key, Stack>>,
    pub(super) tail: Tail,
    pub(super) runs: Runs,
}

impl Tree {
    /// Whether a key lies behind all that are in the map, as it does where keys only grow. Much
    /// faster to know than where in the middle a key would be.
    pub(super) fn is_behind_map(&self, key: &[u8]) -> bool {
        let last = self.stacks.last_key_value();
        last.is_none_or(|(last, _)| last.as_slice() < key)
    }

    /// Whether a key lies behind all that were written.
    pub(super) fn is_behind(&self, key: &[u8]) -> bool {
        self.tail.is_behind(key) && self.is_behind_map(key) && self.runs.is_behind(key)
    }

    pub(super) fn stack(&self, key: &[u8]) -> Option<&Stack> {
        match self.is_behind_map(key) {
            true => None,
            false => self.stacks.get(key),
        }
    }

    pub(super) fn in_memory(&self, key: &[u8]) -> Option<Known<'_>> {
        match self.stack(key) {
            Some(stack) => Some(Known::Stack(stack)),
            None => self.tail.get(key).map(Known::Plain),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.stacks.is_empty() && self.tail.is_empty() && self.runs.is_empty()
    }

    /// What is in memory of a range.
    pub(super) fn range(&self, range: &KeyRange, direction: Direction) -> InMemory<'_> {
        let bounds = (
            Bound::Included(range.start.as_slice()),
            range
                .end
                .as_deref()
                .map_or(Bound::Unbounded, Bound::Excluded),
        );
        let stacks = Directed {
            inner: self.stacks.range::<[u8], _>(bounds),
            direction,
        };
        let tail = Directed {
            inner: self.tail.range(range),
            direction,
        };
        InMemory {
            stacks: stacks.peekable(),
            tail: tail.peekable(),
            direction,
        }
    }
}

/// An iterator that goes from one of its ends.
pub(super) struct Directed<I> {
    inner: I,
    direction: Direction,
}

impl<I: DoubleEndedIterator> Iterator for Directed<I> {
    type Item = I::Item;

    fn next(&mut self) -> Option<I::Item> {
        match self.direction {
            Direction::Forward => self.inner.next(),
            Direction::Backward => self.inner.next_back(),
        }
    }
}

/// The rows of a range that are in memory.
pub(super) struct InMemory<'a> {
    stacks: Peekable<Directed<btree_map::Range<'a, Key, Stack>>>,
    tail: Peekable<Directed<tail::Rows<'a>>>,
    direction: Direction,
}

impl<'a> Iterator for InMemory<'a> {
    type Item = (&'a [u8], Known<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let is_in_map = match (self.stacks.peek(), self.tail.peek()) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some((key, _)), Some(row)) => match self.direction {
                Direction::Forward => key.as_slice() <= row.key,
                Direction::Backward => key.as_slice() >= row.key,
            },
        };
        if !is_in_map {
            return self.tail.next().map(|row| (row.key, Known::Plain(row)));
        }
        let (key, stack) = self.stacks.next()?;
        // The map knows better.
        self.tail.next_if(|row| row.key == key);
        Some((key, Known::Stack(stack)))
    }
}

/// All rows of a tree in order, which go as they are taken.
pub(super) struct Rows {
    stacks: Peekable<Items<btree_map::IntoIter<Key, Stack>>>,
    tail: Box<dyn Iterator<Item = Entry>>,
    runs: Runs,
    merge: Merge,
    /// The next row of the runs, and then of the tail, which lies behind them.
    below: Option<Entry>,
}

impl Rows {
    pub(super) fn new(written: Tree) -> Result<Rows> {
        let merge = Merge::all(&written.runs)?;
        let mut rows = Rows {
            stacks: written.stacks.into_iter().peekable(),
            tail: Box::new(written.tail.into_entries()),
            runs: written.runs,
            merge,
            below: None,
        };
        rows.step()?;
        Ok(rows)
    }

    /// Goes on to the next row below the map; returns the one that was next.
    pub(super) fn step(&mut self) -> Result<Option<Entry>> {
        let stored = self.merge.next(&self.runs)?;
        let next = stored.or_else(|| self.tail.next());
        Ok(std::mem::replace(&mut self.below, next))
    }

    pub(super) fn next(&mut self) -> Result<Option<Entry>> {
        let is_in_map = match (self.stacks.peek(), &self.below) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some((key, _)), Some(entry)) => *key <= entry.key,
        };
        if !is_in_map {
            return self.step();
        }
        let Some((key, stack)) = self.stacks.next() else {
            return Ok(None);
        };
        // The map knows better.
        if self.below.as_ref().is_some_and(|entry| entry.key == key) {
            self.step()?;
        }
        Ok(Some(Entry { key, stack }))
    }
}
