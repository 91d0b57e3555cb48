//! The undo store: versions of rows that are no longer the newest, while somebody may need them.
//!
//! A leaf entry links to its predecessor here, and that one to its own. A version goes when its
//! successor is released; the link to it stays and leads nowhere, because finding who holds it
//! would cost a walk along the chain: ids are never used again, and whoever follows a dead one
//! finds nothing.
//!
//! ```text
//!   leaf: k → 24 "c" ──► 19 "b" ──► 17 "a" ──╳        16 was released: what came before is gone
//! ```
//!
//! Readers follow links under the latch of the leaf, and only from versions above their snapshot:
//! none of those is released.
//!
//! # Segments
//! Versions come in the order in which they were replaced, and mostly go in the same order. So they
//! are appended to *segments*; an id says which segment, and where in it. A segment goes when the
//! last of its versions has gone.
//!
//! ```text
//!   segment   7            8            9            10
//!             in the spill file         in memory    filling
//!             │ ╳ ╳ a ╳ │  │ b ╳ c d │  │ e f g h │  │ i j
//! ```
//!
//! What is in memory takes at most the bytes that the store was given. Above that, the oldest
//! segments are written to the spill file ([`crate::Scratch`]), by a task; and before them what is
//! to be released ([`history`]). Which versions of a segment have gone is known without a look at it.
//!
//! Whoever comes to a version in the spill file gives up his latches and has it *recalled*: a copy
//! is in memory for a moment, in which he tries again.
//!
//! # What lies between two snapshots
//! A row that changes ten thousand times while an old snapshot is read has ten thousand versions,
//! of which that snapshot needs one. When a version is put here, those before it are taken out of
//! the chain that no snapshot can see ([`Needed`]), so chains are about as long as there are
//! snapshots. Versions that may be taken back keep their predecessors.
//!
//! # Invariants
//! - What a version says never changes, but for its link, and that only while it is in memory.
//! - Ids are never used again. Only its last version's end frees a segment.
//! - The spill file is never synced and never outlives the process. Each version there has a
//!   checksum.
//! - A full disk loses nothing: what cannot be written stays in memory.

pub(crate) mod history;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;

use base::codec::checksum;
use base::env::{Env, LocalBoxFuture, Reactor};
use base::hash::HashMap;
use base::sync::{Mutex, RwLock};
use base::{Error, Lsn, Result, SqlState};

use crate::bulk::Bulks;
use crate::page::{PageId, Value, INLINE_CELL_MAX};
use crate::room::{Room, UNDO_SHARE};
use crate::scratch::{Run, Scratch};
use history::Chunks;

/// Bytes of a segment, at most and at least.
const SEGMENT_BYTES_MAX: usize = 256 << 10;
const SEGMENT_BYTES_MIN: usize = 16 << 10;

/// What is in memory is at least so many segments.
const SEGMENTS_MIN: usize = 4;

/// Versions begin at multiples of this.
const GRAIN: usize = 16;

/// Bytes of a version before its row.
const HEADER: usize = 32;

/// Bytes of the longest version.
const VERSION_BYTES_MAX: usize = HEADER + INLINE_CELL_MAX;

/// Versions that are recalled at one time, of one row.
const RECALLED_AT_ONCE: usize = 64;

/// Bytes of recalled versions that are kept at least: those of two who wait.
const RECALLED_BYTES_MIN: usize = 2 * RECALLED_AT_ONCE * VERSION_BYTES_MAX;

/// Versions of a row that are looked at when another is put before them.
const LOOKED_AT_MAX: usize = 64;

const OFFSET_BITS: u32 = 24;
const LONG: u64 = 1 << 63;

const _: () = assert!(
    SEGMENT_BYTES_MIN > VERSION_BYTES_MAX && SEGMENT_BYTES_MAX < 1 << OFFSET_BITS,
    "a version fits any segment, and an id any place in one"
);

/// The name of a version in the undo store; 0 is none.
///
/// | bits | what |
/// |---|---|
/// | 63 | its row is in pages of its own |
/// | 24–62 | segment, from 1 |
/// | 0–23 | where in the segment |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct UndoId(pub(crate) u64);

impl UndoId {
    pub(crate) const NONE: UndoId = UndoId(0);

    fn new(segment: u64, offset: usize, is_long: bool) -> UndoId {
        let long = u64::from(is_long) * LONG;
        UndoId(long | segment << OFFSET_BITS | offset as u64)
    }

    fn segment(self) -> u64 {
        (self.0 & !LONG) >> OFFSET_BITS
    }

    fn offset(self) -> usize {
        (self.0 & ((1 << OFFSET_BITS) - 1)) as usize
    }

    fn is_long(self) -> bool {
        self.0 & LONG != 0
    }
}

/// A version's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OwnedValue {
    Tombstone,
    Inline(Box<[u8]>),
    /// The version owns the pages.
    Overflow {
        first: PageId,
        len: u32,
    },
}

impl OwnedValue {
    pub(crate) fn of(value: Value<'_>) -> OwnedValue {
        match value {
            Value::Tombstone => OwnedValue::Tombstone,
            Value::Inline(row) => OwnedValue::Inline(row.into()),
            Value::Overflow { first, len } => OwnedValue::Overflow { first, len },
        }
    }

    pub(crate) fn as_value(&self) -> Value<'_> {
        match self {
            OwnedValue::Tombstone => Value::Tombstone,
            OwnedValue::Inline(row) => Value::Inline(row),
            OwnedValue::Overflow { first, len } => Value::Overflow {
                first: *first,
                len: *len,
            },
        }
    }
}

/// A version that is no longer the newest.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    pub(crate) lsn: Lsn,
    pub(crate) value: OwnedValue,
    pub(crate) previous: UndoId,
}

/// A version where it lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VersionRef<'a> {
    pub(crate) lsn: Lsn,
    pub(crate) value: Value<'a>,
    pub(crate) previous: UndoId,
}

impl VersionRef<'_> {
    fn to_owned(self) -> Version {
        Version {
            lsn: self.lsn,
            value: OwnedValue::of(self.value),
            previous: self.previous,
        }
    }
}

/// What looking for a version finds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Seen<R> {
    Here(R),
    /// It was released.
    Gone,
    /// It is in the spill file.
    Spilled,
}

/// Which versions may be seen: those of some snapshots, and all that is not committed.
#[derive(Debug, Default)]
pub(crate) struct Needed {
    /// In order.
    snapshots: Vec<Lsn>,
    /// Later snapshots are not below this, and nothing at or below it is taken back.
    committed: Lsn,
}

impl Needed {
    /// Whether one of the snapshots sees a version whose successor is that of `next`.
    fn sees(&self, lsn: Lsn, next: Lsn) -> bool {
        let first = self.snapshots.partition_point(|at| *at < lsn);
        self.snapshots.get(first).is_some_and(|at| *at < next)
    }

    /// Whether nothing is to be found between the oldest snapshot and what is committed.
    fn is_narrow(&self) -> bool {
        self.snapshots
            .first()
            .is_none_or(|at| *at >= self.committed)
    }
}

/// How much the undo store holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UndoStats {
    /// Versions that are not the newest of their row.
    pub versions: usize,
    /// Bytes in memory, of versions and of what is to be released.
    pub memory: usize,
    /// As many as there should be at most.
    pub limit: usize,
    /// Bytes in the spill file.
    pub spilled: u64,
}

/// Where the bytes of a segment are.
#[derive(Debug)]
enum Place {
    Filling(Vec<u8>),
    Memory(Arc<Vec<u8>>),
    Spilled(Arc<Run>),
}

#[derive(Debug)]
struct Segment {
    place: Place,
    /// Versions that have not gone.
    live: usize,
    /// A bit for each place at which a version that has gone began; empty while none has.
    gone: Vec<u64>,
}

impl Segment {
    fn bytes(&self) -> Option<&[u8]> {
        match &self.place {
            Place::Filling(bytes) => Some(bytes),
            Place::Memory(bytes) => Some(bytes),
            Place::Spilled(_) => None,
        }
    }

    fn bytes_mut(&mut self) -> Option<&mut Vec<u8>> {
        match &mut self.place {
            Place::Filling(bytes) => Some(bytes),
            // Not while it is being written.
            Place::Memory(bytes) => Arc::get_mut(bytes),
            Place::Spilled(_) => None,
        }
    }

    fn is_gone(&self, id: UndoId) -> bool {
        let at = id.offset() / GRAIN;
        let word = self.gone.get(at / 64);
        word.is_some_and(|word| word & (1 << (at % 64)) != 0)
    }

    fn set_gone(&mut self, id: UndoId) {
        let at = id.offset() / GRAIN;
        if self.gone.len() <= at / 64 {
            self.gone.resize(at / 64 + 1, 0);
        }
        self.gone[at / 64] |= 1 << (at % 64);
        self.live -= 1;
    }
}

#[derive(Debug, Default)]
struct Segments {
    /// The number of the first one in the queue.
    first: u64,
    queue: VecDeque<Option<Segment>>,
    /// All before this one are in the spill file or gone.
    next_to_spill: u64,
    live: usize,
    /// Memory that is used again.
    spare: Option<Vec<u8>>,
    /// Segments whose space in the spill file is to be given back.
    trash: Vec<Arc<Run>>,
}

impl Segments {
    fn get(&self, id: UndoId) -> Option<&Segment> {
        let index = id.segment().checked_sub(self.first)?;
        let segment = self.queue.get(index as usize)?.as_ref()?;
        (!segment.is_gone(id)).then_some(segment)
    }

    fn get_mut(&mut self, id: UndoId) -> Option<&mut Segment> {
        let index = id.segment().checked_sub(self.first)?;
        let segment = self.queue.get_mut(index as usize)?.as_mut()?;
        (!segment.is_gone(id)).then_some(segment)
    }

    /// The number of the segment that is filling, if there is one.
    fn last(&self) -> u64 {
        self.first + self.queue.len() as u64 - 1
    }
}

/// Versions of the spill file of which there are copies in memory, for a moment.
#[derive(Debug, Default)]
struct Recalled {
    by_id: HashMap<UndoId, Version>,
    order: VecDeque<UndoId>,
    bytes: usize,
}

/// All versions that are no longer the newest, and what is to be released.
pub(crate) struct UndoStore {
    env: Arc<dyn Env>,
    scratch: Arc<Scratch>,
    bulks: Arc<Bulks>,
    segment_bytes: usize,
    room: Arc<Room>,
    segments: RwLock<Segments>,
    needed: RwLock<Needed>,
    chunks: Mutex<Chunks>,
    recalled: Mutex<Recalled>,
    /// Bytes in memory.
    memory: AtomicUsize,
    /// A task is at work.
    tending: AtomicBool,
}

impl std::fmt::Debug for UndoStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "UndoStore({:?})", self.stats())
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

/// What of a value must be given back when it goes.
fn long_part(value: Value<'_>) -> OwnedValue {
    match value {
        Value::Overflow { .. } => OwnedValue::of(value),
        _ => OwnedValue::Tombstone,
    }
}

const TOMBSTONE: u8 = 0;
const INLINE: u8 = 1;
const OVERFLOW: u8 = 2;

/// | bytes | what |
/// |---|---|
/// | 0–3 | checksum of the rest, in the spill file only |
/// | 4–7 | bytes of the row |
/// | 8–15 | LSN |
/// | 16–23 | link |
/// | 24 | kind |
/// | 28–31 | first page of a long row |
/// | 32– | the row, but of a long one |
fn encode(out: &mut Vec<u8>, version: VersionRef<'_>) {
    let (kind, len, first, row): (_, _, _, &[u8]) = match version.value {
        Value::Tombstone => (TOMBSTONE, 0, 0, &[]),
        Value::Inline(row) => (INLINE, row.len() as u32, 0, row),
        Value::Overflow { first, len } => (OVERFLOW, len, first.0, &[]),
    };
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(&version.lsn.0.to_le_bytes());
    out.extend_from_slice(&version.previous.0.to_le_bytes());
    out.extend_from_slice(&[kind, 0, 0, 0]);
    out.extend_from_slice(&first.to_le_bytes());
    out.extend_from_slice(row);
    out.resize(start + (out.len() - start).next_multiple_of(GRAIN), 0);
}

/// Bytes of the version at the beginning of `bytes`, without what fills it up.
fn encoded_len(bytes: &[u8]) -> usize {
    let row = if bytes[24] == INLINE {
        u32_at(bytes, 4)
    } else {
        0
    };
    HEADER + row as usize
}

fn decode(bytes: &[u8]) -> VersionRef<'_> {
    let len = u32_at(bytes, 4);
    let value = match bytes[24] {
        TOMBSTONE => Value::Tombstone,
        INLINE => Value::Inline(&bytes[HEADER..HEADER + len as usize]),
        _ => Value::Overflow {
            first: PageId(u32_at(bytes, 28)),
            len,
        },
    };
    VersionRef {
        lsn: Lsn(u64_at(bytes, 8)),
        value,
        previous: UndoId(u64_at(bytes, 16)),
    }
}

/// Computes the checksums of all versions of a segment.
fn stamp(bytes: &mut [u8]) {
    let mut at = 0;
    while at < bytes.len() {
        let len = encoded_len(&bytes[at..]);
        let crc = checksum(&bytes[at + 4..at + len]);
        bytes[at..at + 4].copy_from_slice(&crc.to_le_bytes());
        at += len.next_multiple_of(GRAIN);
    }
}

impl UndoStore {
    /// A store with about a part of that room in memory ([`UNDO_SHARE`]), and the rest in scratch
    /// space.
    pub(crate) fn new(
        env: Arc<dyn Env>,
        scratch: Arc<Scratch>,
        bulks: Arc<Bulks>,
        room: Arc<Room>,
    ) -> Arc<UndoStore> {
        let segment_bytes =
            (room.part() / UNDO_SHARE / 16).clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX);
        let segments = Segments {
            first: 1,
            next_to_spill: 1,
            ..Segments::default()
        };
        Arc::new(UndoStore {
            env,
            scratch,
            bulks,
            segment_bytes,
            room,
            segments: RwLock::new(segments),
            needed: RwLock::default(),
            chunks: Mutex::default(),
            recalled: Mutex::default(),
            memory: AtomicUsize::new(0),
            tending: AtomicBool::new(false),
        })
    }

    /// Keeps a version.
    pub(crate) fn put(
        self: &Arc<Self>,
        lsn: Lsn,
        value: Value<'_>,
        mut previous: UndoId,
    ) -> UndoId {
        let row = if let Value::Inline(row) = value {
            row.len()
        } else {
            0
        };
        let bytes = (HEADER + row).next_multiple_of(GRAIN);
        let is_long = matches!(value, Value::Overflow { .. });
        let mut segments = self.segments.write();
        self.prune(&mut segments, lsn, &mut previous);
        let version = VersionRef {
            lsn,
            value,
            previous,
        };
        let is_new = self.see_to_room(&mut segments, bytes);
        let has_trash = !segments.trash.is_empty();
        let number = segments.last();
        segments.live += 1;
        let Some(Some(Segment { place, live, .. })) = segments.queue.back_mut() else {
            panic!("the undo store has no segment {number}");
        };
        let Place::Filling(out) = place else {
            panic!("segment {number} of the undo store is full");
        };
        let id = UndoId::new(number, out.len(), is_long);
        encode(out, version);
        *live += 1;
        drop(segments);
        if is_new {
            self.tend_if_over();
        }
        if has_trash {
            self.tend();
        }
        id
    }

    /// Begins a segment if the one that is filling has no room; true when one was begun.
    fn see_to_room(&self, segments: &mut Segments, bytes: usize) -> bool {
        if let Some(Some(segment)) = segments.queue.back_mut() {
            match &mut segment.place {
                Place::Filling(filling) if filling.len() + bytes <= self.segment_bytes => {
                    return false;
                }
                Place::Filling(filling) => {
                    let full = std::mem::take(filling);
                    if segment.live == 0 {
                        self.memory.fetch_sub(self.segment_bytes, Ordering::Relaxed);
                        segments.spare = Some(full);
                        segments.queue.pop_back();
                        // Its number is not used again.
                        segments.queue.push_back(None);
                        while matches!(segments.queue.front(), Some(None)) {
                            segments.queue.pop_front();
                            segments.first += 1;
                        }
                    } else {
                        segment.place = Place::Memory(Arc::new(full));
                    }
                }
                _ => {}
            }
        }
        let spare = segments.spare.take();
        let mut filling = spare.unwrap_or_else(|| Vec::with_capacity(self.segment_bytes));
        filling.clear();
        segments.queue.push_back(Some(Segment {
            place: Place::Filling(filling),
            live: 0,
            gone: Vec::new(),
        }));
        self.memory.fetch_add(self.segment_bytes, Ordering::Relaxed);
        true
    }

    /// Looks at a version, if it is in memory.
    pub(crate) fn with<R>(&self, id: UndoId, look: impl FnOnce(VersionRef<'_>) -> R) -> Seen<R> {
        {
            let segments = self.segments.read();
            let Some(segment) = segments.get(id) else {
                return Seen::Gone;
            };
            if let Some(bytes) = segment.bytes() {
                return Seen::Here(look(decode(&bytes[id.offset()..])));
            }
        }
        let recalled = self.recalled.lock();
        let Some(version) = recalled.by_id.get(&id) else {
            return Seen::Spilled;
        };
        Seen::Here(look(VersionRef {
            lsn: version.lsn,
            value: version.value.as_value(),
            previous: version.previous,
        }))
    }

    /// A version wherever it is; reads on the spot what it needs.
    pub(crate) fn read(&self, id: UndoId) -> Result<Option<Version>> {
        match self.with(id, |version| version.to_owned()) {
            Seen::Here(version) => Ok(Some(version)),
            Seen::Gone => Ok(None),
            Seen::Spilled => self.read_spilled(id),
        }
    }

    fn read_spilled(&self, id: UndoId) -> Result<Option<Version>> {
        let run = {
            let segments = self.segments.read();
            match segments.get(id).map(|segment| &segment.place) {
                Some(Place::Spilled(run)) => run.clone(),
                _ => return Ok(None),
            }
        };
        let mut bytes = [0; VERSION_BYTES_MAX];
        let len = VERSION_BYTES_MAX.min(run.len() - id.offset());
        run.read_part(id.offset(), &mut bytes[..len])?;
        let found = encoded_len(&bytes);
        if found > len || checksum(&bytes[4..found]) != u32_at(&bytes, 0) {
            return Err(Error::corrupted(format!(
                "version {:x} of a row is damaged in the spill file",
                id.0
            )));
        }
        Ok(Some(decode(&bytes).to_owned()))
    }

    /// Whether a version is still there.
    pub(crate) fn is_there(&self, id: UndoId) -> bool {
        id != UndoId::NONE && self.segments.read().get(id).is_some()
    }

    /// Gives a version back, if it is still there.
    pub(crate) fn remove(self: &Arc<Self>, id: UndoId) {
        let mut segments = self.segments.write();
        self.remove_from(&mut segments, id);
        let has_trash = !segments.trash.is_empty();
        drop(segments);
        if has_trash {
            self.tend();
        }
    }

    /// Gives a version back, if it is still there; returns what else hangs on it: the pages of a
    /// long row, and the version before, as far as that is known without reading. All but the
    /// first of a chain are given back by whoever has noted them, too.
    pub(crate) fn release(self: &Arc<Self>, id: UndoId) -> Result<Option<(OwnedValue, UndoId)>> {
        let rest = match self.with(id, |version| (long_part(version.value), version.previous)) {
            Seen::Gone => return Ok(None),
            Seen::Here(rest) => rest,
            Seen::Spilled if id.is_long() => match self.read_spilled(id)? {
                Some(version) => (version.value, version.previous),
                None => return Ok(None),
            },
            Seen::Spilled => (OwnedValue::Tombstone, UndoId::NONE),
        };
        self.remove(id);
        Ok(Some(rest))
    }

    fn remove_from(&self, segments: &mut Segments, id: UndoId) {
        let Some(segment) = segments.get_mut(id) else {
            return;
        };
        segment.set_gone(id);
        let is_over = segment.live == 0 && !matches!(segment.place, Place::Filling(_));
        segments.live -= 1;
        if !is_over {
            return;
        }
        let index = (id.segment() - segments.first) as usize;
        match segments.queue[index].take().map(|segment| segment.place) {
            Some(Place::Spilled(run)) => segments.trash.push(run),
            Some(Place::Memory(bytes)) => {
                self.memory.fetch_sub(self.segment_bytes, Ordering::Relaxed);
                if let Ok(bytes) = Arc::try_unwrap(bytes) {
                    segments.spare = Some(bytes);
                }
            }
            _ => {}
        }
        while matches!(segments.queue.front(), Some(None)) {
            segments.queue.pop_front();
            segments.first += 1;
        }
    }

    /// Takes versions out of a chain that no snapshot can see. `next` is the LSN of the version
    /// that is about to be put before `previous`.
    fn prune(&self, segments: &mut Segments, next: Lsn, previous: &mut UndoId) {
        let needed = self.needed.read();
        if needed.is_narrow() {
            return;
        }
        let link = |segments: &Segments, id: UndoId| {
            let bytes = segments.get(id)?.bytes()?;
            let version = decode(&bytes[id.offset()..]);
            Some((version.lsn, version.previous))
        };
        let is_settled = |lsn: Lsn| lsn <= needed.committed && lsn < self.bulks.floor();
        // The newest version that is not taken back any more; none is the one to come.
        let (mut holder, mut above, mut id) = (None, next, *previous);
        for _ in 0..LOOKED_AT_MAX {
            let Some((lsn, before)) = link(segments, id) else {
                return;
            };
            if !is_settled(above) {
                (holder, above, id) = (Some(id), lsn, before);
                continue;
            }
            // A long row's pages are given back by whoever releases it.
            if id.is_long() || needed.sees(lsn, above) {
                return;
            }
            match holder {
                None => *previous = before,
                Some(holder) => {
                    let segment = segments.get_mut(holder);
                    let Some(bytes) = segment.and_then(Segment::bytes_mut) else {
                        return;
                    };
                    let at = holder.offset() + 16;
                    bytes[at..at + 8].copy_from_slice(&before.0.to_le_bytes());
                }
            }
            self.remove_from(segments, id);
            id = before;
        }
    }

    /// Tells which snapshots there are. None that is taken from now on is below `committed`, and
    /// nothing at or below that is taken back.
    pub(crate) fn set_needed(&self, snapshots: impl Iterator<Item = Lsn>, committed: Lsn) {
        let mut snapshots = snapshots.peekable();
        if snapshots.peek().is_none() && self.needed.read().snapshots.is_empty() {
            return;
        }
        let mut needed = self.needed.write();
        needed.snapshots.clear();
        needed.snapshots.extend(snapshots);
        needed.committed = committed;
    }

    /// How many versions there are.
    pub(crate) fn len(&self) -> usize {
        self.segments.read().live
    }

    /// Bytes in memory.
    pub(crate) fn memory(&self) -> usize {
        self.memory.load(Ordering::Relaxed)
    }

    /// As many bytes in memory as there should be at most.
    fn limit(&self) -> usize {
        let limit = self.room.part() / UNDO_SHARE;
        limit.max(SEGMENTS_MIN * self.segment_bytes)
    }

    pub(crate) fn stats(&self) -> UndoStats {
        UndoStats {
            versions: self.len(),
            memory: self.memory(),
            limit: self.limit(),
            spilled: self.scratch.used(),
        }
    }
}

// Spilling and recalling.
impl UndoStore {
    /// Copies the versions of a row from `id` on into memory, up to the first that is shown at
    /// `at`. Blocks on the disk: hold no latch.
    pub(crate) fn recall(&self, mut id: UndoId, at: Lsn) -> Result<()> {
        for _ in 0..RECALLED_AT_ONCE {
            let (lsn, previous) = match self.with(id, |version| (version.lsn, version.previous)) {
                Seen::Gone => return Ok(()),
                Seen::Here(found) => found,
                Seen::Spilled => match self.read_spilled(id)? {
                    None => return Ok(()),
                    Some(version) => {
                        let found = (version.lsn, version.previous);
                        self.keep_recalled(id, version);
                        found
                    }
                },
            };
            if self.bulks.visible_from(lsn).is_some_and(|from| from <= at) {
                return Ok(());
            }
            id = previous;
        }
        Ok(())
    }

    fn keep_recalled(&self, id: UndoId, version: Version) {
        let bytes = |version: &Version| match &version.value {
            OwnedValue::Inline(row) => HEADER + row.len(),
            _ => HEADER,
        };
        let mut recalled = self.recalled.lock();
        recalled.bytes += bytes(&version);
        if let Some(known) = recalled.by_id.insert(id, version) {
            recalled.bytes -= bytes(&known);
            return;
        }
        recalled.order.push_back(id);
        let most = (4 * self.segment_bytes).max(RECALLED_BYTES_MIN);
        while recalled.bytes > most && recalled.order.len() > 1 {
            let oldest = recalled.order.pop_front();
            if let Some(known) = oldest.and_then(|id| recalled.by_id.remove(&id)) {
                recalled.bytes -= bytes(&known);
            }
        }
    }

    fn is_over(&self) -> bool {
        self.memory() > self.limit()
    }

    /// Has a task write to the spill file what is too much for memory.
    fn tend_if_over(self: &Arc<Self>) {
        if self.memory() > 2 * self.limit() {
            // The task has not come to it for long.
            if let Err(error) = self.spill_one() {
                self.env.stop_node(&error.to_string());
            }
        }
        if self.is_over() {
            self.tend();
        }
    }

    fn tend(self: &Arc<Self>) {
        if self.tending.swap(true, Ordering::AcqRel) {
            return;
        }
        let this = self.clone();
        let task = move || -> LocalBoxFuture<'static, ()> { Box::pin(this.tend_to_the_end()) };
        self.env.spawn(Reactor::Background, "undo", Box::new(task));
    }

    async fn tend_to_the_end(self: Arc<Self>) {
        loop {
            let trash = std::mem::take(&mut self.segments.write().trash);
            drop(trash);
            if self.scratch.used() == 0 {
                *self.recalled.lock() = Recalled::default();
            }
            let result = self
                .scratch
                .trim()
                .and_then(|()| self.load_wanted())
                .and_then(|loaded| Ok(loaded || self.is_over() && self.spill_one()?));
            match result {
                Ok(true) => base::turns::give_way().await,
                Ok(false) => break,
                Err(error) => {
                    self.env.stop_node(&error.to_string());
                    break;
                }
            }
        }
        self.tending.store(false, Ordering::Release);
        let has_more = !self.segments.read().trash.is_empty();
        if has_more {
            self.tend();
        }
    }

    /// Writes something to the spill file; false when there is nothing to write, or no space.
    fn spill_one(&self) -> Result<bool> {
        let spilled = match self.spill_chunk() {
            Ok(false) => self.spill_segment(),
            other => other,
        };
        match spilled {
            Err(error) if error.state() == SqlState::DISK_FULL => Ok(false),
            other => other,
        }
    }

    fn spill_segment(&self) -> Result<bool> {
        let (number, bytes) = {
            let mut segments = self.segments.write();
            loop {
                let number = segments.next_to_spill.max(segments.first);
                let index = (number - segments.first) as usize;
                match segments.queue.get(index) {
                    None => return Ok(false),
                    Some(Some(segment)) => match &segment.place {
                        Place::Filling(_) => return Ok(false),
                        Place::Memory(bytes) => break (number, bytes.clone()),
                        Place::Spilled(_) => {}
                    },
                    Some(None) => {}
                }
                segments.next_to_spill = number + 1;
            }
        };
        let mut copy = bytes.to_vec();
        stamp(&mut copy);
        let run = self.scratch.write(&copy)?;
        let mut segments = self.segments.write();
        segments.next_to_spill = segments.next_to_spill.max(number + 1);
        let index = number.checked_sub(segments.first);
        let place = index.and_then(|index| segments.queue.get_mut(index as usize));
        if let Some(Some(segment)) = place {
            segment.place = Place::Spilled(Arc::new(run));
            self.memory.fetch_sub(self.segment_bytes, Ordering::Relaxed);
        }
        Ok(true)
    }
}
