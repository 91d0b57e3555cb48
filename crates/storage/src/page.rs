//! Pages: 8 KiB, a header, slots that grow up, cells that grow down.
//!
//! ```text
//! 0        64                                                              8192
//! │ header │ slot 0 │ slot 1 │ …        free        … │ cell 1 │ … │ cell 0 │
//! ```
//!
//! | header bytes | what |
//! |---|---|
//! | 0–3 | CRC-32C of all that follows; computed when the page is written |
//! | 4 | [`PageKind`] |
//! | 5 | level: 0 for leaves |
//! | 6–7 | number of slots |
//! | 8–15 | page id (for pages of the map and the root record: an index) |
//! | 16–23 | LSN: for a leaf, the highest that ever changed it; for an inner page, that of leaves that are gone |
//! | 24–31 | tree |
//! | 32–33 | offset of the lowest cell |
//! | 34–35 | bytes of cells that are no longer used |
//! | 36–39 | leftmost child |
//! | 40–43 | bytes of content (overflow pages, root record) |
//! | 44–51 | location and CRC of the next page (root record) |
//!
//! A slot is the offset of its cell. All numbers are little-endian.
//!
//! | leaf cell | | inner cell | |
//! |---|---|---|---|
//! | 0–1 | length of the key | 0–1 | length of the key |
//! | 2 | flags | 2–5 | child for keys at or above this one |
//! | 3 | zero | 6– | key |
//! | 4–7 | length of the row | | |
//! | 8–15 | LSN of the version | | |
//! | 16–23 | link to its predecessor in the undo store; zero on disk | | |
//! | 24– | key, then the row, or its first overflow page, which the others follow by id | | |

use base::codec::checksum;
use base::{Error, Lsn, Result, TreeId};

use crate::undo::{UndoId, UndoStore};

/// Bytes of a page.
pub(crate) const PAGE_BYTES: usize = 8_192;

/// Bytes of the header.
pub(crate) const PAGE_HEADER: usize = 64;

/// Bytes of a page that hold content.
pub(crate) const PAGE_CONTENT: usize = PAGE_BYTES - PAGE_HEADER;

/// A leaf cell longer than this keeps its row in overflow pages.
pub(crate) const INLINE_CELL_MAX: usize = 2_000;

/// Bytes of a leaf cell before the key.
pub(crate) const LEAF_CELL_HEADER: usize = 24;

/// Bytes of an inner cell before the key.
pub(crate) const INNER_CELL_HEADER: usize = 6;

const SLOT: usize = 2;

/// Into so many parts the cells of a leaf are divided at once when a key is looked for.
const SEARCH_WAYS: usize = 8;
const TOMBSTONE: u8 = 1;
const OVERFLOW: u8 = 2;

const _: () = assert!(
    2 * (base::limits::KEY_BYTES_MAX + LEAF_CELL_HEADER + 4 + SLOT) < PAGE_CONTENT
        && 2 * INLINE_CELL_MAX < PAGE_CONTENT,
    "two cells fit a page, so that a split always makes room"
);

/// The name of a page; 0 is none. Where it lies in the file is the page map's affair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PageId(pub u32);

impl PageId {
    pub(crate) const NONE: PageId = PageId(0);
}

/// What a page is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum PageKind {
    /// Rows of a tree.
    Leaf = 1,
    /// Separators and children.
    Inner = 2,
    /// A piece of a long row.
    Overflow = 3,
    /// A piece of the page map.
    Map = 4,
    /// A piece of the root record.
    Root = 5,
}

/// A version's content, by reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    /// The row was deleted.
    Tombstone,
    /// The row.
    Inline(&'a [u8]),
    /// The row is in overflow pages, whose ids follow one another.
    Overflow { first: PageId, len: u32 },
}

/// The pages of a row of so many bytes.
pub(crate) fn overflow_pages(first: PageId, len: u32) -> impl Iterator<Item = PageId> {
    let count = len.div_ceil(PAGE_CONTENT as u32);
    (first.0..first.0.saturating_add(count)).map(PageId)
}

/// A leaf cell taken apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeafCell<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) lsn: Lsn,
    pub(crate) undo: UndoId,
    pub(crate) value: Value<'a>,
}

impl LeafCell<'_> {
    /// Bytes of the cell.
    pub(crate) fn len(&self) -> usize {
        let value = match self.value {
            Value::Tombstone => 0,
            Value::Inline(row) => row.len(),
            Value::Overflow { .. } => 4,
        };
        LEAF_CELL_HEADER + self.key.len() + value
    }

    fn put(&self, out: &mut [u8]) {
        let (flags, row_len) = match self.value {
            Value::Tombstone => (TOMBSTONE, 0),
            Value::Inline(row) => (0, row.len() as u32),
            Value::Overflow { len, .. } => (OVERFLOW, len),
        };
        out[..2].copy_from_slice(&(self.key.len() as u16).to_le_bytes());
        out[2] = flags;
        out[3] = 0;
        out[4..8].copy_from_slice(&row_len.to_le_bytes());
        out[8..16].copy_from_slice(&self.lsn.0.to_le_bytes());
        out[16..24].copy_from_slice(&self.undo.0.to_le_bytes());
        let key_end = LEAF_CELL_HEADER + self.key.len();
        out[LEAF_CELL_HEADER..key_end].copy_from_slice(self.key);
        match self.value {
            Value::Tombstone => {}
            Value::Inline(row) => out[key_end..].copy_from_slice(row),
            Value::Overflow { first, .. } => {
                out[key_end..].copy_from_slice(&first.0.to_le_bytes());
            }
        }
    }
}

/// The memory of a page.
pub(crate) type PageBuffer = Box<[u8; PAGE_BYTES]>;

/// A page in memory.
#[derive(Clone)]
pub(crate) struct Page {
    bytes: PageBuffer,
    /// The epoch (between two checkpoints) of its newest change; 0 if it is as the published
    /// checkpoint has it.
    pub(crate) epoch: u64,
    /// How often it was latched to be changed since it came into memory.
    pub(crate) version: u64,
}

impl std::fmt::Debug for Page {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Page({}, {} slots)", self.id(), self.count())
    }
}

impl Page {
    /// An empty page.
    pub(crate) fn new(kind: PageKind, id: u64, tree: TreeId, level: u8) -> Page {
        let mut page = Page {
            bytes: Box::new([0; PAGE_BYTES]),
            epoch: 0,
            version: 0,
        };
        page.bytes[4] = kind as u8;
        page.bytes[5] = level;
        page.set_u64(8, id);
        page.set_u64(24, tree.0);
        page.set_u16(32, PAGE_BYTES as u16);
        page
    }

    /// The memory of a page that nobody needs any more.
    pub(crate) fn into_buffer(self) -> PageBuffer {
        self.bytes
    }

    /// A page as it was read, after its checksum was found right.
    ///
    /// # Errors
    /// XX001 when it is not a page of that id and kind that the accessors can walk.
    pub(crate) fn from_bytes(bytes: PageBuffer, id: u64) -> Result<Page> {
        let page = Page {
            bytes,
            epoch: 0,
            version: 0,
        };
        if page.u64(8) != id {
            return Err(Error::corrupted(format!(
                "page {} lies where page {id} should",
                page.u64(8)
            )));
        }
        page.validate()
            .map_err(|what| Error::corrupted(format!("page {id}: {what}")))?;
        Ok(page)
    }

    /// Whether it belongs to a tree, and not to the file.
    pub(crate) fn is_of_tree(&self) -> bool {
        let (map, root) = (PageKind::Map as u8, PageKind::Root as u8);
        self.bytes[4] != map && self.bytes[4] != root
    }

    fn validate(&self) -> std::result::Result<(), &'static str> {
        let (leaf, inner) = (PageKind::Leaf as u8, PageKind::Inner as u8);
        if self.bytes[4] == 0 || self.bytes[4] > PageKind::Root as u8 {
            return Err("unknown kind");
        }
        if self.u32(40) as usize > PAGE_CONTENT {
            return Err("too much content");
        }
        if self.bytes[4] != leaf && self.bytes[4] != inner {
            return Ok(());
        }
        if (self.bytes[4] == leaf) != (self.bytes[5] == 0) {
            return Err("a leaf is at level 0 and nothing else is");
        }
        let slots_end = PAGE_HEADER + SLOT * self.count();
        if slots_end > self.cells_start() || self.cells_start() > PAGE_BYTES {
            return Err("slots and cells overlap");
        }
        let header = self.cell_header();
        for slot in 0..self.count() {
            let offset = self.offset(slot);
            if offset < self.cells_start() || offset + header > PAGE_BYTES {
                return Err("a slot points nowhere");
            }
            if self.is_leaf() && self.bytes[offset + 2] & !(TOMBSTONE | OVERFLOW) != 0 {
                return Err("a cell has unknown flags");
            }
            if offset + self.cell_len(slot) > PAGE_BYTES {
                return Err("a cell has no end");
            }
        }
        Ok(())
    }

    pub(crate) fn bytes(&self) -> &[u8; PAGE_BYTES] {
        &self.bytes
    }

    #[inline]
    fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]])
    }

    #[inline]
    pub(crate) fn u32(&self, at: usize) -> u32 {
        let b = &self.bytes[at..at + 4];
        u32::from_le_bytes([b[0], b[1], b[2], b[3]])
    }

    #[inline]
    fn u64(&self, at: usize) -> u64 {
        let b = &self.bytes[at..at + 8];
        u64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]])
    }

    fn set_u16(&mut self, at: usize, value: u16) {
        self.bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn set_u32(&mut self, at: usize, value: u32) {
        self.bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    fn set_u64(&mut self, at: usize, value: u64) {
        self.bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn id(&self) -> u64 {
        self.u64(8)
    }

    #[inline]
    pub(crate) fn is_kind(&self, kind: PageKind) -> bool {
        self.bytes[4] == kind as u8
    }

    #[inline]
    pub(crate) fn is_leaf(&self) -> bool {
        self.is_kind(PageKind::Leaf)
    }

    pub(crate) fn level(&self) -> u8 {
        self.bytes[5]
    }

    pub(crate) fn tree(&self) -> TreeId {
        TreeId(self.u64(24))
    }

    /// How many slots there are.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        usize::from(self.u16(6))
    }

    #[inline]
    pub(crate) fn lsn(&self) -> Lsn {
        Lsn(self.u64(16))
    }

    /// Raises the LSN; it never goes back but in a page that becomes an inner one.
    pub(crate) fn raise_lsn(&mut self, lsn: Lsn) {
        let lsn = self.lsn().max(lsn);
        self.set_u64(16, lsn.0);
    }

    #[inline]
    fn cells_start(&self) -> usize {
        usize::from(self.u16(32))
    }

    /// The leftmost child of an inner page.
    pub(crate) fn link(&self) -> PageId {
        PageId(self.u32(36))
    }

    pub(crate) fn set_link(&mut self, link: PageId) {
        self.set_u32(36, link.0);
    }

    #[inline(always)]
    fn offset(&self, slot: usize) -> usize {
        usize::from(self.u16(PAGE_HEADER + SLOT * slot))
    }

    #[inline]
    fn cell_header(&self) -> usize {
        if self.is_leaf() {
            LEAF_CELL_HEADER
        } else {
            INNER_CELL_HEADER
        }
    }

    /// Bytes of a cell.
    #[inline(always)]
    pub(crate) fn cell_len(&self, slot: usize) -> usize {
        let offset = self.offset(slot);
        let key = self.cell_header() + usize::from(self.u16(offset));
        if !self.is_leaf() {
            return key;
        }
        key + match self.bytes[offset + 2] {
            0 => self.u32(offset + 4) as usize,
            TOMBSTONE => 0,
            _ => 4,
        }
    }

    /// A cell's bytes.
    #[inline]
    pub(crate) fn cell(&self, slot: usize) -> &[u8] {
        let offset = self.offset(slot);
        &self.bytes[offset..offset + self.cell_len(slot)]
    }

    /// A slot's key.
    #[inline]
    pub(crate) fn key(&self, slot: usize) -> &[u8] {
        let offset = self.offset(slot);
        let start = offset + self.cell_header();
        &self.bytes[start..start + usize::from(self.u16(offset))]
    }

    /// Brings all of it near the processor, for whoever goes through its cells: they lie downwards, and
    /// each would be waited for by itself, while these looks wait together.
    pub(crate) fn warm(&self) {
        const LINE: usize = 64;
        let lines = self.bytes.iter().step_by(LINE);
        std::hint::black_box(lines.fold(0, |sum: u8, byte| sum.wrapping_add(*byte)));
    }

    /// A leaf's cell taken apart.
    #[inline(always)]
    pub(crate) fn leaf_cell(&self, slot: usize) -> LeafCell<'_> {
        let cell = &self.bytes[self.offset(slot)..];
        let (head, rest) = cell
            .split_first_chunk::<LEAF_CELL_HEADER>()
            .expect("a cell has its header");
        let word =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let (key, rest) = rest.split_at(usize::from(u16::from_le_bytes([head[0], head[1]])));
        let value = match head[2] {
            0 => Value::Inline(&rest[..word(4) as usize]),
            TOMBSTONE => Value::Tombstone,
            _ => Value::Overflow {
                first: PageId(u32::from_le_bytes([rest[0], rest[1], rest[2], rest[3]])),
                len: word(4),
            },
        };
        LeafCell {
            key,
            lsn: Lsn(long(8)),
            undo: UndoId(long(16)),
            value,
        }
    }

    /// Sets the link of a leaf's cell to its predecessor. No change of content: on disk it is zero.
    pub(crate) fn set_undo(&mut self, slot: usize, undo: UndoId) {
        let offset = self.offset(slot);
        self.set_u64(offset + 16, undo.0);
    }

    /// The slot of a key, or where it would be.
    pub(crate) fn search(&self, key: &[u8]) -> std::result::Result<usize, usize> {
        let (mut low, mut high) = (0, self.count());
        if self.is_leaf() {
            // Leaves are many and seldom near the processor; a cell found by the one before waits for
            // memory by itself. So eight ways are looked at together.
            while high - low > SEARCH_WAYS {
                (low, high) = match self.narrowed(low, high, key) {
                    Ok(slot) => return Ok(slot),
                    Err(narrowed) => narrowed,
                };
            }
            self.look_at(low..high);
        }
        while low < high {
            let middle = (low + high) / 2;
            match self.key(middle).cmp(key) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Ok(middle),
            }
        }
        Err(low)
    }

    /// An eighth of the slots from `low` on and below `high`, in which a key is or would be; or its
    /// slot, if it was come across.
    fn narrowed(
        &self,
        low: usize,
        high: usize,
        key: &[u8],
    ) -> std::result::Result<usize, (usize, usize)> {
        let pivot = |way: usize| low + (high - low) * way / SEARCH_WAYS;
        self.look_at((1..SEARCH_WAYS).map(pivot));
        let (mut first, mut last) = (0, SEARCH_WAYS);
        while last - first > 1 {
            let middle = (first + last) / 2;
            match self.key(pivot(middle)).cmp(key) {
                std::cmp::Ordering::Less => first = middle,
                std::cmp::Ordering::Greater => last = middle,
                std::cmp::Ordering::Equal => return Ok(pivot(middle)),
            }
        }
        let start = match first {
            0 => low,
            first => pivot(first) + 1,
        };
        Err((start, pivot(last)))
    }

    /// Has cells come near the processor, all of them at the same time.
    #[inline]
    fn look_at(&self, slots: impl Iterator<Item = usize>) {
        let looks = slots.map(|slot| self.bytes[self.offset(slot)]);
        std::hint::black_box(looks.fold(0, |sum: u8, byte| sum.wrapping_add(byte)));
    }

    /// As [`Page::search`], for a key that probably lies behind all others.
    pub(crate) fn search_end(&self, key: &[u8]) -> std::result::Result<usize, usize> {
        match self.count() {
            count if count > 0 && self.key(count - 1) < key => Err(count),
            _ => self.search(key),
        }
    }

    /// Which child of an inner page a key belongs to: from 0, the leftmost, to [`Page::count`].
    pub(crate) fn child_index(&self, key: &[u8]) -> usize {
        match self.search(key) {
            Ok(slot) => slot + 1,
            Err(slot) => slot,
        }
    }

    /// Which child holds the keys just below `end`.
    pub(crate) fn child_index_below(&self, end: &[u8]) -> usize {
        match self.search(end) {
            Ok(slot) | Err(slot) => slot,
        }
    }

    /// The child of that index.
    pub(crate) fn child(&self, index: usize) -> PageId {
        match index.checked_sub(1) {
            None => self.link(),
            Some(slot) => PageId(self.u32(self.offset(slot) + 2)),
        }
    }

    /// Bytes that a further cell and its slot may take.
    pub(crate) fn free(&self) -> usize {
        let gap = self.cells_start() - PAGE_HEADER - SLOT * self.count();
        gap + usize::from(self.u16(34))
    }

    /// Whether a cell of that length fits, once the one in `replaced` is gone.
    pub(crate) fn fits(&self, len: usize, replaced: Option<usize>) -> bool {
        let gained = replaced.map_or(0, |slot| self.cell_len(slot) + SLOT);
        len + SLOT <= self.free() + gained
    }

    /// Bytes that all cells and slots take.
    pub(crate) fn used(&self) -> usize {
        PAGE_CONTENT - self.free()
    }

    fn make_room(&mut self, slot: usize, len: usize) -> usize {
        assert!(
            self.fits(len, None),
            "a cell of {len} bytes in {} free ones",
            self.free()
        );
        let slots_end = PAGE_HEADER + SLOT * self.count();
        if slots_end + SLOT + len > self.cells_start() {
            self.compact();
        }
        let offset = self.cells_start() - len;
        let at = PAGE_HEADER + SLOT * slot;
        self.bytes.copy_within(at..slots_end, at + SLOT);
        self.set_u16(at, offset as u16);
        self.set_u16(6, self.count() as u16 + 1);
        self.set_u16(32, offset as u16);
        offset
    }

    /// Puts a cell into a new slot. It must fit.
    pub(crate) fn insert_leaf(&mut self, slot: usize, cell: LeafCell<'_>) {
        let len = cell.len();
        let offset = self.make_room(slot, len);
        cell.put(&mut self.bytes[offset..offset + len]);
    }

    /// Puts a copied cell into a new slot. It must fit.
    pub(crate) fn insert_cell(&mut self, slot: usize, cell: &[u8]) {
        let offset = self.make_room(slot, cell.len());
        self.bytes[offset..offset + cell.len()].copy_from_slice(cell);
    }

    /// Puts a separator and the child at its right into a new slot. It must fit.
    pub(crate) fn insert_inner(&mut self, slot: usize, key: &[u8], child: PageId) {
        let len = INNER_CELL_HEADER + key.len();
        let offset = self.make_room(slot, len);
        self.set_u16(offset, key.len() as u16);
        self.set_u32(offset + 2, child.0);
        self.bytes[offset + INNER_CELL_HEADER..offset + len].copy_from_slice(key);
    }

    /// Replaces a leaf's cell, in place where the lengths agree. It must fit.
    pub(crate) fn replace_leaf(&mut self, slot: usize, cell: LeafCell<'_>) {
        let len = cell.len();
        if self.cell_len(slot) == len {
            let offset = self.offset(slot);
            cell.put(&mut self.bytes[offset..offset + len]);
        } else {
            self.remove(slot);
            self.insert_leaf(slot, cell);
        }
    }

    /// Removes a slot and its cell.
    pub(crate) fn remove(&mut self, slot: usize) {
        let len = self.cell_len(slot);
        let offset = self.offset(slot);
        if offset == self.cells_start() {
            self.set_u16(32, (offset + len) as u16);
        } else {
            let garbage = self.u16(34) + len as u16;
            self.set_u16(34, garbage);
        }
        let end = PAGE_HEADER + SLOT * self.count();
        let at = PAGE_HEADER + SLOT * slot;
        self.bytes.copy_within(at + SLOT..end, at);
        let count = self.count() - 1;
        self.set_u16(6, count as u16);
        if count == 0 {
            self.set_u16(32, PAGE_BYTES as u16);
            self.set_u16(34, 0);
        }
    }

    /// Removes the child of that index and the separator beside it.
    pub(crate) fn remove_child(&mut self, index: usize) {
        if index == 0 {
            let next = self.child(1);
            self.set_link(next);
            self.remove(0);
        } else {
            self.remove(index - 1);
        }
    }

    /// Empties the page from a slot on.
    pub(crate) fn truncate(&mut self, count: usize) {
        let mut kept = Page::new(PageKind::Leaf, self.id(), self.tree(), self.level());
        kept.bytes[..32].copy_from_slice(&self.bytes[..32]);
        kept.bytes[36..PAGE_HEADER].copy_from_slice(&self.bytes[36..PAGE_HEADER]);
        kept.set_u16(6, 0);
        for slot in 0..count {
            kept.insert_cell(slot, self.cell(slot));
        }
        self.bytes = kept.bytes;
    }

    fn compact(&mut self) {
        self.truncate(self.count());
    }

    /// Becomes an empty page of another kind or level, keeping id and tree.
    pub(crate) fn reset(&mut self, kind: PageKind, level: u8) {
        self.bytes = Page::new(kind, self.id(), self.tree(), level).bytes;
    }

    /// Takes over everything but the id from another page.
    pub(crate) fn take_content(&mut self, other: &Page) {
        let (id, lsn) = (self.id(), self.lsn());
        self.bytes.copy_from_slice(&other.bytes[..]);
        self.set_u64(8, id);
        self.raise_lsn(lsn);
    }

    /// The content of an overflow page or a piece of the root record.
    pub(crate) fn content(&self) -> &[u8] {
        &self.bytes[PAGE_HEADER..PAGE_HEADER + self.u32(40) as usize]
    }

    pub(crate) fn set_content(&mut self, content: &[u8]) {
        self.set_u32(40, content.len() as u32);
        self.bytes[PAGE_HEADER..PAGE_HEADER + content.len()].copy_from_slice(content);
    }

    /// The page as it goes to disk, of which nobody needs history: without tombstones and links to
    /// predecessors, its checksum computed. Returns the checksum and the key of a tombstone if
    /// nothing but tombstones was there.
    pub(crate) fn seal(&mut self) -> (u32, Option<Vec<u8>>) {
        let mut vacant = None;
        if self.is_leaf() {
            let mut slot = self.count();
            while slot > 0 {
                slot -= 1;
                if self.leaf_cell(slot).value == Value::Tombstone {
                    if self.count() == 1 {
                        vacant = Some(self.key(0).to_vec());
                    }
                    self.remove(slot);
                } else {
                    self.set_undo(slot, UndoId::NONE);
                }
            }
        }
        (self.stamp(), vacant)
    }

    /// Computes the checksum of the page as it is.
    pub(crate) fn stamp(&mut self) -> u32 {
        let crc = checksum(&self.bytes[4..]);
        self.set_u32(0, crc);
        crc
    }

    fn is_history(&self, slot: usize, undo: &UndoStore) -> bool {
        let cell = self.leaf_cell(slot);
        cell.value == Value::Tombstone || undo.is_there(cell.undo)
    }

    /// Whether the page has tombstones or predecessors of versions, which a page of a checkpoint
    /// has not.
    pub(crate) fn has_history(&self, undo: &UndoStore) -> bool {
        self.is_leaf() && (0..self.count()).any(|slot| self.is_history(slot, undo))
    }

    /// Clears links to what is not there any more; the newest version that has history left.
    pub(crate) fn forget_history(&mut self, undo: &UndoStore) -> Option<Lsn> {
        let slots = if self.is_leaf() { self.count() } else { 0 };
        let mut newest = None;
        for slot in 0..slots {
            let cell = self.leaf_cell(slot);
            let (lsn, link) = (cell.lsn, cell.undo);
            if link != UndoId::NONE && !undo.is_there(link) {
                self.set_undo(slot, UndoId::NONE);
            }
            if self.is_history(slot, undo) {
                newest = newest.max(Some(lsn));
            }
        }
        newest
    }
}

/// The shortest key that is above `low` and not above `high`.
pub(crate) fn separator<'a>(low: &[u8], high: &'a [u8]) -> &'a [u8] {
    assert!(low < high, "a separator of {low:?} and {high:?}");
    let common = low.iter().zip(high).take_while(|(a, b)| a == b).count();
    &high[..common + 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell<'a>(key: &'a [u8], row: &'a [u8]) -> LeafCell<'a> {
        LeafCell {
            key,
            lsn: Lsn(1),
            undo: UndoId::NONE,
            value: Value::Inline(row),
        }
    }

    #[test]
    fn cells_survive_fragmentation() {
        let mut page = Page::new(PageKind::Leaf, 3, TreeId(1), 0);
        let mut count = 0u8;
        while page.fits(LEAF_CELL_HEADER + 1 + 100, None) {
            let slot = page.search(&[count]).unwrap_err();
            page.insert_leaf(slot, cell(&[count], &[count; 100]));
            count += 1;
        }
        for key in (0..count).step_by(2) {
            let slot = page.search(&[key]).unwrap();
            page.remove(slot);
        }
        for key in (1..count).step_by(2) {
            let slot = page.search(&[key]).unwrap();
            page.replace_leaf(slot, cell(&[key], &[key; 150]));
        }
        for key in (1..count).step_by(2) {
            let slot = page.search(&[key]).unwrap();
            assert_eq!(page.leaf_cell(slot).value, Value::Inline(&[key; 150]));
        }
        let (crc, _) = page.seal();
        let again = Page::from_bytes(page.bytes.clone(), 3).unwrap();
        assert_eq!(checksum(&again.bytes()[4..]), crc);
        assert!(Page::from_bytes(page.bytes.clone(), 4).is_err());
    }

    #[test]
    fn separators_are_short() {
        assert_eq!(separator(b"abc", b"abd"), b"abd");
        assert_eq!(separator(b"abc", b"b123"), b"b");
        assert_eq!(separator(b"ab", b"abcdef"), b"abc");
    }
}
