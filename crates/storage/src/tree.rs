//! Reading trees: points and ranges as of a snapshot.
//!
//! A reader walks from the root to a leaf, latch by latch, and looks there for the newest version
//! at or below its snapshot: the entry itself, or one of its predecessors in the undo store.
//!
//! ```text
//!   get(k, at 20)          leaf: k → 24 "c" ──► undo: 19 "b" ──► 17 "a"
//!                                               ^^^^^^^ this one
//! ```
//!
//! A range is read leaf by leaf, each found from the root by the key where the last one ended, so
//! leaves need no links to their neighbours and nothing is held between two calls.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use base::engine::{Direction, RowBatch};
use base::sync::ReadGuard;
use base::{Error, Key, KeyRange, Lsn, Result, TreeId};

use crate::bulk::Bulks;
use crate::cache::Frame;
use crate::page::{Page, PageId, PageKind, Value};
use crate::store::{Read, Scanned, Store};
use crate::undo::OwnedValue;

/// Leaves that one call of a scan visits at most; then it returns what is left of the range, so
/// that a long run of deleted rows does not keep others waiting.
pub const SCAN_LEAVES_MAX: usize = 64;

/// A scan returns when it has collected about so many bytes.
pub const SCAN_BYTES_MAX: usize = 1 << 20;

/// A tree: where its root is, and when it was made and dropped.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) id: TreeId,
    pub(crate) root: Arc<Frame>,
    /// [`Lsn::MAX`] while it is being built.
    created: AtomicU64,
    /// 0 while it is there.
    dropped: AtomicU64,
}

impl Tree {
    pub(crate) fn new(id: TreeId, root: Arc<Frame>, created: Lsn, dropped: Option<Lsn>) -> Tree {
        Tree {
            id,
            root,
            created: AtomicU64::new(created.0),
            dropped: AtomicU64::new(dropped.unwrap_or_default().0),
        }
    }

    pub(crate) fn created(&self) -> Lsn {
        Lsn(self.created.load(Ordering::Acquire))
    }

    pub(crate) fn is_building(&self) -> bool {
        self.created() == Lsn::MAX
    }

    /// Makes a tree that was built one like any other.
    pub(crate) fn adopt(&self, lsn: Lsn) {
        self.created.store(lsn.0, Ordering::Release);
    }

    /// What any read of it owes: that it is there.
    fn owes(&self, bulks: &Bulks) -> Lsn {
        match self.created() {
            Lsn::MAX => Lsn::ZERO,
            created => bulks.visible_from(created).unwrap_or(created),
        }
    }

    pub(crate) fn dropped(&self) -> Option<Lsn> {
        match self.dropped.load(Ordering::Acquire) {
            0 => None,
            lsn => Some(Lsn(lsn)),
        }
    }

    pub(crate) fn set_dropped(&self, lsn: Option<Lsn>) {
        let lsn = lsn.unwrap_or_default().0;
        self.dropped.store(lsn, Ordering::Release);
    }

    fn is_visible(&self, at: Lsn, bulks: &Bulks) -> bool {
        let created = self.created();
        let visible_from = match created {
            Lsn::MAX => Some(created),
            _ => bulks.visible_from(created),
        };
        visible_from.is_some_and(|from| from <= at)
            && self.dropped().is_none_or(|dropped| dropped > at)
    }
}

/// The keys that a leaf answers for.
#[derive(Debug, Default)]
struct Bounds {
    /// The first key; empty in the first leaf.
    low: Key,
    /// The first key of the next leaf.
    high: Option<Key>,
}

/// Which leaf is looked for.
#[derive(Clone, Copy)]
enum Aim<'a> {
    /// The one that a key belongs to.
    At(&'a [u8]),
    /// The one with the largest keys below this one.
    Below(&'a [u8]),
    /// The last one.
    Last,
}

impl Aim<'_> {
    fn child_index(self, page: &Page) -> usize {
        match self {
            Aim::At(key) => page.child_index(key),
            Aim::Below(end) => page.child_index_below(end),
            Aim::Last => page.count(),
        }
    }
}

impl Store {
    /// Reads the newest version at or below `at` into `row`, which is cleared first.
    ///
    /// A tree that is not there at `at` is empty.
    ///
    /// # Errors
    /// XX001 or 58030, fatal for the node, when a page cannot be read.
    pub fn get(&self, tree: TreeId, key: &[u8], at: Lsn, row: &mut Vec<u8>) -> Result<Read> {
        row.clear();
        let Some(tree) = self.visible_tree(tree, at) else {
            return Ok(Read {
                exists: false,
                version: Lsn::ZERO,
                owes: self.directory_lsn().min(at),
            });
        };
        self.find_leaf(&tree.root, tree.root.latch.read(), key, &mut |page| {
            let found = match page.search(key) {
                Ok(slot) => self.read_version(page, slot, at, row)?,
                Err(_) => None,
            };
            let owes = self.bulks.owes(page.lsn(), at);
            let owes = owes.max(tree.owes(&self.bulks)).min(at);
            Ok(match found {
                Some((version, true)) => Read {
                    exists: true,
                    version,
                    owes: version.max(tree.owes(&self.bulks)),
                },
                Some((version, false)) => Read {
                    exists: false,
                    version,
                    owes,
                },
                None => Read {
                    exists: false,
                    version: Lsn::ZERO,
                    owes,
                },
            })
        })
    }

    /// Reads rows of a range as of `at` into `batch`, which is cleared first: at most `limit`, and
    /// fewer, even none, when they are large or far between ([`SCAN_BYTES_MAX`],
    /// [`SCAN_LEAVES_MAX`]).
    ///
    /// # Errors
    /// As [`Store::get`].
    pub fn scan(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        at: Lsn,
        limit: usize,
        batch: &mut RowBatch,
    ) -> Result<Scanned> {
        batch.clear();
        let Some(tree) = self.visible_tree(tree, at) else {
            return Ok(Scanned {
                rest: None,
                owes: self.directory_lsn().min(at),
            });
        };
        let mut scan = Scan {
            store: self,
            at,
            limit,
            batch,
            bytes: 0,
            row: Vec::new(),
            owes: tree.owes(&self.bulks),
        };
        let mut rest = range.clone();
        for _ in 0..SCAN_LEAVES_MAX {
            if rest.end.as_ref().is_some_and(|end| *end <= rest.start) {
                let owes = scan.owes;
                return Ok(Scanned { rest: None, owes });
            }
            let next = match direction {
                Direction::Forward => scan.forward(&tree, &rest)?,
                Direction::Backward => scan.backward(&tree, &rest)?,
            };
            let Progress { left, full } = next;
            match left {
                None => {
                    let owes = scan.owes;
                    return Ok(Scanned { rest: None, owes });
                }
                Some(left) => rest = left,
            }
            if full {
                break;
            }
        }
        Ok(Scanned {
            rest: Some(rest),
            owes: scan.owes,
        })
    }

    fn visible_tree(&self, tree: TreeId, at: Lsn) -> Option<Arc<Tree>> {
        self.tree(tree)
            .filter(|tree| tree.is_visible(at, &self.bulks))
    }

    /// Walks to the leaf of a key and looks at it, latched.
    fn find_leaf<R>(
        &self,
        frame: &Frame,
        page: ReadGuard<'_, Page>,
        key: &[u8],
        look: &mut dyn FnMut(&Page) -> Result<R>,
    ) -> Result<R> {
        if page.is_leaf() {
            return look(&page);
        }
        let child = self.frame(page.child(page.child_index(key)))?;
        let below = child.latch.read();
        check_level(frame.id, &page, child.id, &below)?;
        drop(page);
        self.find_leaf(&child, below, key, look)
    }

    /// As [`Store::find_leaf`], and tells what keys the leaf answers for.
    fn find_leaf_and_bounds<R>(
        &self,
        frame: &Frame,
        page: ReadGuard<'_, Page>,
        aim: Aim<'_>,
        bounds: &mut Bounds,
        look: &mut dyn FnMut(&Page, &Bounds) -> Result<R>,
    ) -> Result<R> {
        if page.is_leaf() {
            return look(&page, bounds);
        }
        let index = aim.child_index(&page);
        if index > 0 {
            bounds.low.clear();
            bounds.low.extend_from_slice(page.key(index - 1));
        }
        if index < page.count() {
            let high = bounds.high.get_or_insert_with(Key::new);
            high.clear();
            high.extend_from_slice(page.key(index));
        }
        let child = self.frame(page.child(index))?;
        let below = child.latch.read();
        check_level(frame.id, &page, child.id, &below)?;
        drop(page);
        self.find_leaf_and_bounds(&child, below, aim, bounds, look)
    }

    /// Appends the row of the newest version at or below `at`; returns that version and whether it
    /// is a row.
    pub(crate) fn read_version(
        &self,
        page: &Page,
        slot: usize,
        at: Lsn,
        row: &mut Vec<u8>,
    ) -> Result<Option<(Lsn, bool)>> {
        let cell = page.leaf_cell(slot);
        let shown_at = |lsn: Lsn| self.bulks.visible_from(lsn).filter(|from| *from <= at);
        if let Some(from) = shown_at(cell.lsn) {
            let exists = self.read_value(cell.value, row)?;
            return Ok(Some((from, exists)));
        }
        let mut undo = cell.undo;
        loop {
            let found = self.undo.with(undo, |version| {
                let from = shown_at(version.lsn);
                let value = from.map(|_| match &version.value {
                    OwnedValue::Inline(bytes) => {
                        row.extend_from_slice(bytes);
                        Value::Inline(&[])
                    }
                    OwnedValue::Tombstone => Value::Tombstone,
                    OwnedValue::Overflow { first, len } => Value::Overflow {
                        first: *first,
                        len: *len,
                    },
                });
                (from.unwrap_or(version.lsn), version.previous, value)
            });
            let Some((lsn, previous, value)) = found else {
                break;
            };
            if let Some(value) = value {
                let exists = self.read_value(value, row)?;
                return Ok(Some((lsn, exists)));
            }
            undo = previous;
        }
        Ok(None)
    }

    /// Appends a value to `row`; false for a tombstone. The latch of its leaf is held.
    fn read_value(&self, value: Value<'_>, row: &mut Vec<u8>) -> Result<bool> {
        match value {
            Value::Tombstone => return Ok(false),
            Value::Inline(bytes) => row.extend_from_slice(bytes),
            Value::Overflow { first, len } => {
                let expected = row.len() + len as usize;
                row.reserve(len as usize);
                let mut id = first;
                while id != PageId::NONE && row.len() < expected {
                    let frame = self.frame(id)?;
                    let page = frame.latch.read();
                    if !page.is_kind(PageKind::Overflow) {
                        break;
                    }
                    row.extend_from_slice(page.content());
                    id = page.link();
                }
                if row.len() != expected || id != PageId::NONE {
                    return Err(Error::corrupted(format!(
                        "the long row at page {} does not have {len} bytes",
                        first.0
                    )));
                }
            }
        }
        Ok(true)
    }
}

/// Asserts that a child is one level below its parent: pages of a damaged file may form a circle.
fn check_level(parent: PageId, above: &Page, child: PageId, below: &Page) -> Result<()> {
    if below.level() + 1 == above.level() && (below.is_leaf() || below.is_kind(PageKind::Inner)) {
        return Ok(());
    }
    Err(Error::corrupted(format!(
        "page {} at level {} has child {} at level {}",
        parent.0,
        above.level(),
        child.0,
        below.level()
    )))
}

/// What is left of a range, and whether the batch is full.
struct Progress {
    left: Option<KeyRange>,
    full: bool,
}

struct Scan<'a> {
    store: &'a Store,
    at: Lsn,
    limit: usize,
    batch: &'a mut RowBatch,
    bytes: usize,
    row: Vec<u8>,
    owes: Lsn,
}

impl Scan<'_> {
    fn is_full(&self) -> bool {
        self.batch.len() >= self.limit || self.bytes >= SCAN_BYTES_MAX
    }

    /// Takes the entry in a slot if its row is visible.
    fn take(&mut self, page: &Page, slot: usize) -> Result<()> {
        self.row.clear();
        let found = self
            .store
            .read_version(page, slot, self.at, &mut self.row)?;
        if let Some((_, true)) = found {
            let key = page.key(slot);
            self.batch.push(key, &self.row);
            self.bytes += key.len() + self.row.len();
        }
        Ok(())
    }

    fn visit(&mut self, page: &Page) {
        self.owes = self.owes.max(self.store.bulks.owes(page.lsn(), self.at));
    }

    /// Reads the leaf in which the range begins.
    fn forward(&mut self, tree: &Tree, range: &KeyRange) -> Result<Progress> {
        let mut bounds = Bounds::default();
        let aim = Aim::At(&range.start);
        let (store, root) = (self.store, tree.root.latch.read());
        let end = range.end.clone();
        store.find_leaf_and_bounds(&tree.root, root, aim, &mut bounds, &mut |page, bounds| {
            self.visit(page);
            let (Ok(first) | Err(first)) = page.search(&range.start);
            for slot in first..page.count() {
                let key = page.key(slot);
                if end.as_deref().is_some_and(|end| key >= end) {
                    let full = self.is_full();
                    return Ok(Progress { left: None, full });
                }
                if self.is_full() {
                    let start = key.to_vec();
                    let end = end.clone();
                    let left = Some(KeyRange { start, end });
                    return Ok(Progress { left, full: true });
                }
                self.take(page, slot)?;
            }
            let start = bounds.high.clone();
            let start = start.filter(|start| end.as_ref().is_none_or(|end| start < end));
            let left = start.map(|start| KeyRange {
                start,
                end: end.clone(),
            });
            let full = self.is_full();
            Ok(Progress { left, full })
        })
    }

    /// Reads the leaf in which the range ends.
    fn backward(&mut self, tree: &Tree, range: &KeyRange) -> Result<Progress> {
        let mut bounds = Bounds::default();
        let aim = range.end.as_deref().map_or(Aim::Last, Aim::Below);
        let (store, root) = (self.store, tree.root.latch.read());
        store.find_leaf_and_bounds(&tree.root, root, aim, &mut bounds, &mut |page, bounds| {
            self.visit(page);
            let mut slot = match &range.end {
                None => page.count(),
                Some(end) => {
                    let (Ok(slot) | Err(slot)) = page.search(end);
                    slot
                }
            };
            while slot > 0 {
                slot -= 1;
                let key = page.key(slot);
                if key < range.start.as_slice() {
                    let full = self.is_full();
                    return Ok(Progress { left: None, full });
                }
                if self.is_full() {
                    // This key is not read yet: the range ends just behind it.
                    let mut end = key.to_vec();
                    end.push(0);
                    let left = Some(KeyRange {
                        start: range.start.clone(),
                        end: Some(end),
                    });
                    return Ok(Progress { left, full: true });
                }
                self.take(page, slot)?;
            }
            let left = (bounds.low > range.start).then(|| KeyRange {
                start: range.start.clone(),
                end: Some(bounds.low.clone()),
            });
            let full = self.is_full();
            Ok(Progress { left, full })
        })
    }
}
