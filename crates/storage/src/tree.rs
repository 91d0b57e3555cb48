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
//!
//! A scan looks ahead now and then, and has the leaves read that are not in memory
//! ([`ahead`]).
//!
//! Where a page is not in memory, all latches are given up, the page is waited for
//! ([`crate::pager`]), and the walk begins anew.

mod ahead;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

use base::engine::{Direction, RowBatch};
use base::{Error, Key, KeyRange, Lsn, Result, TreeId};

use crate::bulk::Bulks;
use crate::cache::{PageRead, Touch};
use crate::page::{overflow_pages, Page, PageId, PageKind, Value};
use crate::pager::{Found, Miss, Stop};
use crate::size::Size;
use crate::store::{Read, Scanned, Store};
use crate::undo::{Seen, UndoId, VersionRef};

/// Leaves that one call of a scan visits at most; then it returns what is left of the range, so
/// that a long run of deleted rows does not keep others waiting.
pub const SCAN_LEAVES_MAX: usize = 64;

/// A scan returns when it has collected about so many bytes.
pub const SCAN_BYTES_MAX: usize = 1 << 20;

/// A tree: where its root is, and when it was made and dropped.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) id: TreeId,
    pub(crate) root: PageId,
    /// [`Lsn::MAX`] while it is being built.
    created: AtomicU64,
    /// 0 while it is there.
    dropped: AtomicU64,
    /// Its pages are being given back.
    gone: AtomicBool,
    pub(crate) size: Size,
}

impl Tree {
    pub(crate) fn new(id: TreeId, root: PageId, created: Lsn, dropped: Option<Lsn>) -> Tree {
        Tree {
            id,
            root,
            created: AtomicU64::new(created.0),
            dropped: AtomicU64::new(dropped.unwrap_or_default().0),
            gone: AtomicBool::new(false),
            size: Size::default(),
        }
    }

    /// The same, of a size that is known.
    pub(crate) fn with_size(self, size: Size) -> Tree {
        Tree { size, ..self }
    }

    /// From now on nobody begins to read it.
    pub(crate) fn set_gone(&self) {
        self.gone.store(true, Ordering::SeqCst);
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

    fn is_visible(&self, at: AsOf<'_>, bulks: &Bulks) -> bool {
        let created = self.created();
        let visible_from = match created {
            Lsn::MAX => Some(created),
            _ => bulks.visible_from(created),
        };
        visible_from.is_some_and(|from| at.shows(from))
            && self.dropped().is_none_or(|dropped| !at.shows(dropped))
    }
}

/// As of when rows are read: everything up to an LSN and, of what is above it, the records named. Those
/// make what was prepared before, and was committed for whoever reads so.
///
/// # Invariant
/// Nothing between the LSN and a record that is named has changed the same rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsOf<'a> {
    /// Everything up to here.
    pub lsn: Lsn,
    /// And these.
    pub also: &'a [Lsn],
}

impl AsOf<'_> {
    /// Whether what becomes visible at `lsn` is seen.
    #[inline]
    pub fn shows(self, lsn: Lsn) -> bool {
        lsn <= self.lsn || self.also.contains(&lsn)
    }
}

impl From<Lsn> for AsOf<'_> {
    fn from(lsn: Lsn) -> Self {
        AsOf { lsn, also: &[] }
    }
}

/// Keys of a tree that are absent, from one on that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gap {
    /// All below this one.
    UpTo(Key),
    /// All.
    ToTheEnd,
}

impl Gap {
    /// Whether a key behind the first one is among them.
    pub fn has(&self, key: &[u8]) -> bool {
        match self {
            Gap::UpTo(end) => key < end.as_slice(),
            Gap::ToTheEnd => true,
        }
    }
}

/// The keys that a leaf answers for.
#[derive(Debug, Default)]
struct Bounds {
    /// The first key; empty in the first leaf.
    low: Key,
    /// The first key of the next leaf.
    high: Option<Key>,
    /// A scan that comes to it should look whether what it comes to next is in memory.
    look: bool,
}

impl Bounds {
    /// Those of a child of the page that they were of.
    fn narrow(&mut self, page: &Page, index: usize) {
        if index > 0 {
            self.low.clear();
            self.low.extend_from_slice(page.key(index - 1));
        }
        if index < page.count() {
            let high = self.high.get_or_insert_with(Key::new);
            high.clear();
            high.extend_from_slice(page.key(index));
        }
    }
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

impl<'a> Aim<'a> {
    /// Where a scan of a range begins.
    fn of(direction: Direction, range: &'a KeyRange) -> Aim<'a> {
        match (direction, range.end.as_deref()) {
            (Direction::Forward, _) => Aim::At(&range.start),
            (Direction::Backward, Some(end)) => Aim::Below(end),
            (Direction::Backward, None) => Aim::Last,
        }
    }

    fn child_index(self, page: &Page) -> usize {
        match self {
            Aim::At(key) => page.child_index(key),
            Aim::Below(end) => page.child_index_below(end),
            Aim::Last => page.count(),
        }
    }

    /// Whether a scan of this range ends in a leaf with these bounds.
    fn ends_in(self, range: &KeyRange, bounds: &Bounds) -> bool {
        match (self, &range.end, &bounds.high) {
            (Aim::At(_), Some(end), Some(high)) => end <= high,
            (Aim::At(_), _, high) => high.is_none(),
            _ => bounds.low <= range.start,
        }
    }
}

/// Rows of which a scan has old versions read before it comes to them.
const SCAN_AHEAD_ROWS: usize = 64;

impl Store {
    /// Reads the newest version at or below `at` into `row`, which is cleared first.
    ///
    /// A tree that is not there at `at` is empty. Inside a coroutine that holds no latch, it may
    /// wait for pages; elsewhere it blocks.
    ///
    /// # Errors
    /// XX001 or 58030, fatal for the node, when a page cannot be read; the interrupt that ended
    /// the wait for one.
    pub fn get<'a>(
        &self,
        tree: TreeId,
        key: &[u8],
        at: impl Into<AsOf<'a>>,
        row: &mut Vec<u8>,
    ) -> Result<Read> {
        let at = at.into();
        row.clear();
        match self.try_get(tree, key, at, row) {
            Ok(read) => Ok(read),
            Err(stop) => self.get_after(stop, tree, key, at, row),
        }
    }

    #[cold]
    fn get_after(
        &self,
        mut stop: Stop,
        tree: TreeId,
        key: &[u8],
        at: AsOf<'_>,
        row: &mut Vec<u8>,
    ) -> Result<Read> {
        let _visit = self.pager.visit();
        loop {
            match stop {
                Stop::Miss(miss) => self.pager.fetch(miss)?,
                Stop::Gone => {}
                Stop::Error(error) => return Err(error),
            }
            row.clear();
            match self.try_get(tree, key, at, row) {
                Ok(read) => return Ok(read),
                Err(again) => stop = again,
            }
        }
    }

    /// Up to where keys of a tree are absent from this one on: no version of any of them is there,
    /// as of any LSN. `None` where there is one of this very key. Waits for pages as [`Store::get`]
    /// does. It ends with a leaf, so a read of this key owes as much as one of any other in it.
    ///
    /// # Errors
    /// As [`Store::get`].
    pub fn gap(&self, tree: TreeId, key: &[u8]) -> Result<Option<Gap>> {
        let mut visit = None;
        loop {
            let Some(tree) = self.tree(tree) else {
                return Ok(None);
            };
            let (mut bounds, range) = (Bounds::default(), KeyRange::point(key));
            match self.find_leaf_and_bounds(&tree, Aim::At(key), &range, &mut bounds) {
                Ok((page, _)) => {
                    return Ok(match page.search(key) {
                        Ok(_) => None,
                        Err(slot) if slot < page.count() => {
                            Some(Gap::UpTo(page.key(slot).to_vec()))
                        }
                        Err(_) => Some(bounds.high.map_or(Gap::ToTheEnd, Gap::UpTo)),
                    });
                }
                Err(Stop::Gone) => {}
                Err(Stop::Error(error)) => return Err(error),
                Err(Stop::Miss(miss)) => {
                    visit.get_or_insert_with(|| self.pager.visit());
                    self.pager.fetch(miss)?;
                }
            }
        }
    }

    pub(crate) fn try_get(
        &self,
        tree: TreeId,
        key: &[u8],
        at: AsOf<'_>,
        row: &mut Vec<u8>,
    ) -> Found<Read> {
        let Some(tree) = self.visible_tree(tree, at) else {
            return Ok(Read {
                exists: false,
                version: Lsn::ZERO,
                owes: self.directory_lsn().min(at.lsn),
            });
        };
        let (page, floor) = self.find_leaf(&tree, key)?;
        let found = match page.search(key) {
            Ok(slot) => self.read_version(&page, slot, at, row)?,
            Err(_) => None,
        };
        let owes = self.bulks.owes(page.lsn().max(floor), at.lsn);
        let owes = owes.max(tree.owes(&self.bulks)).min(at.lsn);
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
    }

    /// Reads rows of a range as of `at` into `batch`, which is cleared first: at most `limit`, and
    /// fewer, even none, when they are large or far between ([`SCAN_BYTES_MAX`],
    /// [`SCAN_LEAVES_MAX`]).
    ///
    /// # Errors
    /// As [`Store::get`].
    pub fn scan<'a>(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        at: impl Into<AsOf<'a>>,
        limit: usize,
        batch: &mut RowBatch,
    ) -> Result<Scanned> {
        let at = at.into();
        batch.clear();
        let mut scan = Scan {
            store: self,
            at,
            limit,
            batch,
            bytes: 0,
            row: Vec::new(),
            owes: Lsn::ZERO,
        };
        let mut rest = range.clone();
        let mut visit = None;
        let mut leaves = 0;
        while leaves < SCAN_LEAVES_MAX {
            let Some(tree) = self.visible_tree(tree, at) else {
                let owes = scan.owes.max(self.directory_lsn().min(at.lsn));
                return Ok(Scanned { rest: None, owes });
            };
            scan.owes = scan.owes.max(tree.owes(&self.bulks));
            if rest.end.as_ref().is_some_and(|end| *end <= rest.start) {
                let owes = scan.owes;
                return Ok(Scanned { rest: None, owes });
            }
            let next = match direction {
                Direction::Forward => scan.forward(&tree, &rest),
                Direction::Backward => scan.backward(&tree, &rest),
            };
            let Progress {
                left,
                full,
                missing,
                look,
            } = match next {
                Ok(progress) => progress,
                Err(Stop::Error(error)) => return Err(error),
                Err(Stop::Gone) => continue,
                Err(Stop::Miss(mut miss)) => {
                    // What was found on the way stays until this leaf is read.
                    visit.get_or_insert_with(|| self.pager.visit());
                    if miss.touch == Touch::Scan && !self.pager.is_asked_for(&miss) {
                        miss.ahead = self.leaves_ahead(&tree, direction, &rest)?;
                    }
                    self.pager.fetch(miss)?;
                    continue;
                }
            };
            if missing.is_none() {
                visit = None;
                leaves += 1;
            }
            if look {
                let ahead = self.leaves_ahead(&tree, direction, &rest)?;
                self.pager.prefetch(&ahead, Touch::Scan);
            }
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
            if let Some(miss) = missing {
                visit.get_or_insert_with(|| self.pager.visit());
                self.pager.fetch(miss)?;
            }
        }
        Ok(Scanned {
            rest: Some(rest),
            owes: scan.owes,
        })
    }

    /// The trees that are there as of `at`, in order.
    pub fn trees_at(&self, at: Lsn) -> Vec<TreeId> {
        let at = AsOf::from(at);
        let trees = self.trees.read();
        let visible = trees
            .values()
            .filter(|tree| tree.is_visible(at, &self.bulks));
        let mut found: Vec<TreeId> = visible.map(|tree| tree.id).collect();
        found.sort_unstable();
        found
    }

    fn visible_tree(&self, tree: TreeId, at: AsOf<'_>) -> Option<Arc<Tree>> {
        self.tree(tree)
            .filter(|tree| tree.is_visible(at, &self.bulks))
    }

    fn root(&self, tree: &Tree) -> Found<PageRead<'_>> {
        let found = self.pager.find(tree.root, Touch::Point);
        // Asked with the latch, or after the page's word was noted: until then, it was the root.
        match tree.gone.load(Ordering::SeqCst) {
            true => Err(Stop::Gone),
            false => found,
        }
    }

    /// Walks to the leaf of a key; also tells the highest LSN of leaves that are gone and for whose
    /// keys this one may answer.
    pub(crate) fn find_leaf(&self, tree: &Tree, key: &[u8]) -> Found<(PageRead<'_>, Lsn)> {
        let mut page = self.root(tree)?;
        let mut floor = Lsn::ZERO;
        while !page.is_leaf() {
            floor = floor.max(page.lsn());
            let child = page.child(page.child_index(key));
            let below = self.pager.find(child, Touch::Point)?;
            check_level(&page, child, &below)?;
            page = below;
        }
        Ok((page, floor))
    }

    /// As [`Store::find_leaf`], and tells what keys the leaf answers for.
    fn find_leaf_and_bounds(
        &self,
        tree: &Tree,
        aim: Aim<'_>,
        range: &KeyRange,
        bounds: &mut Bounds,
    ) -> Found<(PageRead<'_>, Lsn)> {
        let (page, floor) = self.find_inner(tree, aim, bounds)?;
        if page.is_leaf() {
            return Ok((page, floor));
        }
        let index = aim.child_index(&page);
        bounds.narrow(&page, index);
        let touch = match aim.ends_in(range, bounds) {
            true => Touch::Point,
            false => Touch::Scan,
        };
        bounds.look = touch == Touch::Scan && index % self.look_every() == 0;
        let child = page.child(index);
        let leaf = self.pager.find(child, touch)?;
        check_level(&page, child, &leaf)?;
        Ok((leaf, floor.max(page.lsn())))
    }

    /// The page above the leaf that is aimed at, its bounds, and the highest LSN of the pages above
    /// it; the leaf itself where it is the whole tree.
    fn find_inner(
        &self,
        tree: &Tree,
        aim: Aim<'_>,
        bounds: &mut Bounds,
    ) -> Found<(PageRead<'_>, Lsn)> {
        let mut page = self.root(tree)?;
        let mut floor = Lsn::ZERO;
        while page.level() > 1 {
            floor = floor.max(page.lsn());
            let index = aim.child_index(&page);
            bounds.narrow(&page, index);
            let child = page.child(index);
            let below = self.pager.find(child, Touch::Point)?;
            check_level(&page, child, &below)?;
            page = below;
        }
        Ok((page, floor))
    }

    /// Appends the row of the newest version at or below `at`; returns that version and whether it
    /// is a row.
    pub(crate) fn read_version(
        &self,
        page: &Page,
        slot: usize,
        at: AsOf<'_>,
        row: &mut Vec<u8>,
    ) -> Found<Option<(Lsn, bool)>> {
        let cell = page.leaf_cell(slot);
        let shown_at = |lsn: Lsn| self.bulks.visible_from(lsn).filter(|from| at.shows(*from));
        if let Some(from) = shown_at(cell.lsn) {
            let exists = self.read_value(cell.value, row)?;
            return Ok(Some((from, exists)));
        }
        let mut undo = cell.undo;
        loop {
            let found = self.pager.undo.with(undo, |version| {
                let from = shown_at(version.lsn);
                let value = from.map(|_| match version.value {
                    Value::Inline(bytes) => {
                        row.extend_from_slice(bytes);
                        Value::Inline(&[])
                    }
                    Value::Tombstone => Value::Tombstone,
                    Value::Overflow { first, len } => Value::Overflow { first, len },
                });
                (from.unwrap_or(version.lsn), version.previous, value)
            });
            let (lsn, previous, value) = match found {
                Seen::Here(found) => found,
                Seen::Gone => break,
                Seen::Spilled => return Err(Stop::Miss(Miss::of_versions(vec![(undo, at.lsn)]))),
            };
            if let Some(value) = value {
                let exists = self.read_value(value, row)?;
                return Ok(Some((lsn, exists)));
            }
            undo = previous;
        }
        Ok(None)
    }

    /// The first version in the spill file on the way to the one that is shown at `at`.
    fn spilled_version(&self, page: &Page, slot: usize, at: AsOf<'_>) -> Option<UndoId> {
        let visible_from = |lsn: Lsn| self.bulks.visible_from(lsn);
        let is_shown = |lsn: Lsn| visible_from(lsn).is_some_and(|from| at.shows(from));
        let cell = page.leaf_cell(slot);
        let (mut shown, mut undo) = (is_shown(cell.lsn), cell.undo);
        while !shown {
            let look = |version: VersionRef<'_>| (is_shown(version.lsn), version.previous);
            (shown, undo) = match self.pager.undo.with(undo, look) {
                Seen::Here((shown, previous)) => (shown, previous),
                Seen::Gone => return None,
                Seen::Spilled => return Some(undo),
            };
        }
        None
    }

    /// The row in a slot that is shown now, if there is one; reads on the spot what it needs.
    pub(crate) fn read_shown(&self, page: &Page, slot: usize) -> Result<Option<Vec<u8>>> {
        let mut row = Vec::new();
        let _visit = self.pager.visit();
        loop {
            row.clear();
            match self.read_version(page, slot, Lsn::MAX.into(), &mut row) {
                Ok(shown) => return Ok(shown.is_some_and(|(_, exists)| exists).then_some(row)),
                Err(Stop::Miss(miss)) => self.pager.fetch(miss)?,
                Err(Stop::Gone) => return Err(Error::internal("a version of a row has no tree")),
                Err(Stop::Error(error)) => return Err(error),
            }
        }
    }

    /// Appends a value to `row`; false for a tombstone. The latch of its leaf is held.
    fn read_value(&self, value: Value<'_>, row: &mut Vec<u8>) -> Found<bool> {
        match value {
            Value::Tombstone => return Ok(false),
            Value::Inline(bytes) => row.extend_from_slice(bytes),
            Value::Overflow { first, len } => self.read_long(first, len, row)?,
        }
        Ok(true)
    }

    fn read_long(&self, first: PageId, len: u32, row: &mut Vec<u8>) -> Found<()> {
        let cache = &self.pager.cache;
        let words = overflow_pages(first, len).map(|id| (id, cache.word(id)));
        let needed: Vec<_> = words.filter(|(_, word)| !word.is_resident()).collect();
        if !needed.is_empty() {
            return Err(Stop::Miss(Miss {
                needed,
                ahead: Vec::new(),
                versions: Vec::new(),
                touch: Touch::Scan,
            }));
        }
        let expected = row.len() + len as usize;
        row.reserve(len as usize);
        for id in overflow_pages(first, len) {
            let page = self.pager.find(id, Touch::Scan)?;
            if page.is_kind(PageKind::Overflow) {
                row.extend_from_slice(page.content());
            }
        }
        if row.len() != expected {
            let message = format!("the long row at page {} has not {len} bytes", first.0);
            return Err(Error::corrupted(message).into());
        }
        Ok(())
    }
}

/// Asserts that a child is one level below its parent: pages of a damaged file may form a circle.
fn check_level(above: &Page, child: PageId, below: &Page) -> Result<()> {
    if below.level() + 1 == above.level() && (below.is_leaf() || below.is_kind(PageKind::Inner)) {
        return Ok(());
    }
    Err(Error::corrupted(format!(
        "page {} at level {} has child {} at level {}",
        above.id(),
        above.level(),
        child.0,
        below.level()
    )))
}

/// What is left of a range, and whether the batch is full.
struct Progress {
    left: Option<KeyRange>,
    full: bool,
    /// What must come into memory before the rest can be read.
    missing: Option<Miss>,
    /// It is time to look whether what comes next is in memory.
    look: bool,
}

/// Whoever wants so many rows of a page, and more, has it come nearer as a whole.
const WARM_MIN: usize = 32;

struct Scan<'a> {
    store: &'a Store,
    at: AsOf<'a>,
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

    fn progress(&self, left: Option<KeyRange>) -> Progress {
        Progress {
            left,
            full: self.is_full(),
            missing: None,
            look: false,
        }
    }

    /// Takes the entry in a slot if its row is visible; tells what is not in memory.
    #[inline]
    fn take(&mut self, page: &Page, slot: usize) -> Result<Option<Miss>> {
        let cell = page.leaf_cell(slot);
        let shown_from = self.store.bulks.visible_from(cell.lsn);
        match cell.value {
            // Most rows are short, and most are old enough for everybody.
            Value::Inline(row) if shown_from.is_some_and(|from| self.at.shows(from)) => {
                self.batch.push(cell.key, row);
                self.bytes += cell.key.len() + row.len();
                Ok(None)
            }
            _ => self.take_version(page, slot),
        }
    }

    fn take_version(&mut self, page: &Page, slot: usize) -> Result<Option<Miss>> {
        self.row.clear();
        let found = self.store.read_version(page, slot, self.at, &mut self.row);
        match found {
            Ok(Some((_, true))) => {
                let key = page.key(slot);
                self.batch.push(key, &self.row);
                self.bytes += key.len() + self.row.len();
                Ok(None)
            }
            Ok(_) => Ok(None),
            Err(Stop::Miss(miss)) => Ok(Some(miss)),
            Err(Stop::Error(error)) => Err(error),
            Err(Stop::Gone) => Err(Error::internal("a version of a row has no tree")),
        }
    }

    /// Adds what is in the spill file of the next rows to what is missing.
    fn gather(&self, page: &Page, slots: impl Iterator<Item = usize>, missing: &mut Miss) {
        if missing.versions.is_empty() {
            return;
        }
        let spilled = slots.take(self.limit.min(SCAN_AHEAD_ROWS));
        let spilled = spilled.filter_map(|slot| self.store.spilled_version(page, slot, self.at));
        missing.versions.extend(spilled.map(|id| (id, self.at.lsn)));
    }

    fn visit(&mut self, page: &Page, floor: Lsn) {
        let owes = self.store.bulks.owes(page.lsn().max(floor), self.at.lsn);
        self.owes = self.owes.max(owes);
    }

    /// Reads the leaf in which the range begins.
    fn forward(&mut self, tree: &Tree, range: &KeyRange) -> Found<Progress> {
        let mut bounds = Bounds::default();
        let aim = Aim::of(Direction::Forward, range);
        let store = self.store;
        let (page, floor) = store.find_leaf_and_bounds(tree, aim, range, &mut bounds)?;
        self.visit(&page, floor);
        let end = range.end.as_deref();
        let rest_from = |start: &[u8]| KeyRange {
            start: start.to_vec(),
            end: range.end.clone(),
        };
        let (Ok(first) | Err(first)) = page.search(&range.start);
        let behind = match (end, &bounds.high) {
            (None, _) => page.count(),
            (Some(end), Some(high)) if high.as_slice() <= end => page.count(),
            (Some(end), _) => page.child_index_below(end),
        };
        if self.limit >= WARM_MIN && behind - first >= WARM_MIN {
            page.warm();
        }
        for slot in first..behind {
            let is_full = self.is_full();
            let missing = match is_full {
                true => None,
                false => self.take(&page, slot)?,
            };
            if is_full || missing.is_some() {
                let mut progress = self.progress(Some(rest_from(page.key(slot))));
                progress.missing = missing;
                if let Some(miss) = &mut progress.missing {
                    self.gather(&page, slot + 1..page.count(), miss);
                }
                return Ok(progress);
            }
        }
        let start = bounds.high.as_deref();
        let start = start.filter(|start| end.is_none_or(|end| *start < end));
        let mut progress = self.progress(start.map(rest_from));
        progress.look = bounds.look;
        Ok(progress)
    }

    /// Reads the leaf in which the range ends.
    fn backward(&mut self, tree: &Tree, range: &KeyRange) -> Found<Progress> {
        let mut bounds = Bounds::default();
        let aim = Aim::of(Direction::Backward, range);
        let store = self.store;
        let (page, floor) = store.find_leaf_and_bounds(tree, aim, range, &mut bounds)?;
        self.visit(&page, floor);
        let rest_to = |end: Key| KeyRange {
            start: range.start.clone(),
            end: Some(end),
        };
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
                return Ok(self.progress(None));
            }
            let is_full = self.is_full();
            let mut missing = match is_full {
                true => None,
                false => self.take(&page, slot)?,
            };
            if let Some(miss) = &mut missing {
                self.gather(&page, (0..slot).rev(), miss);
            }
            if is_full || missing.is_some() {
                // This key is not read yet: the range ends just behind it.
                let mut end = key.to_vec();
                end.push(0);
                let progress = self.progress(Some(rest_to(end)));
                return Ok(Progress {
                    missing,
                    ..progress
                });
            }
        }
        let left = (bounds.low > range.start).then(|| rest_to(bounds.low));
        let mut progress = self.progress(left);
        progress.look = bounds.look;
        Ok(progress)
    }
}
