//! What happened, in order, until it is released or taken back.
//!
//! Events come at one end and go at both: released at the front, taken back at the rear. While an
//! old snapshot holds the front back there may be very many, so those in the middle are kept as
//! *chunks* of bytes, which go to the spill file as versions do ([`super::UndoStore`]):
//!
//! ```text
//!   released ◄── │ head │   chunk   chunk   chunk   chunk   │ tail │ ◄── noted
//!                            └─ spill file ─┘  └─ memory ─┘         ──► taken back
//! ```
//!
//! # Invariants
//! - The tail is empty only if there are no chunks.
//! - The events of the newest LSN are in the tail, all of them.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::Arc;

use base::codec::{put_bytes, put_varint, Reader};
use base::{Lsn, Result, TreeId, TxnId};

use super::{UndoId, UndoStore};
use crate::scratch::Run;
use crate::store::Event;

/// Chunks that are read before they are needed.
const CHUNKS_AHEAD: usize = 4;

/// Bytes of a segment of the undo store for which a chunk has one event.
const BYTES_PER_EVENT: usize = 256;

/// Something that happened, and at which LSN.
pub(crate) type Noted = (Lsn, Event);

#[derive(Clone, Debug)]
enum Place {
    Memory(Arc<Vec<u8>>),
    Spilled(Arc<Run>),
}

#[derive(Debug)]
struct Chunk {
    place: Place,
}

/// The chunks of a history.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    /// The number of the first one.
    first: u64,
    queue: VecDeque<Chunk>,
    /// All before this one were looked at whether they should be spilled.
    next_to_spill: u64,
    /// So many at the front are wanted in memory soon.
    wanted: usize,
}

/// Events in order.
#[derive(Debug)]
pub(crate) struct History {
    undo: Arc<UndoStore>,
    /// Events of a chunk.
    chunk_events: usize,
    head: VecDeque<Noted>,
    tail: VecDeque<Noted>,
    /// Events in chunks.
    between: usize,
}

impl History {
    pub(crate) fn new(undo: Arc<UndoStore>) -> History {
        History {
            chunk_events: undo.segment_bytes / BYTES_PER_EVENT,
            undo,
            head: VecDeque::new(),
            tail: VecDeque::new(),
            between: 0,
        }
    }

    /// How many events there are.
    pub(crate) fn len(&self) -> usize {
        self.head.len() + self.between + self.tail.len()
    }

    pub(crate) fn push_back(&mut self, lsn: Lsn, event: Event) {
        if self.tail.len() >= 2 * self.chunk_events && self.tail[self.chunk_events - 1].0 < lsn {
            let bytes = encode(self.tail.drain(..self.chunk_events));
            self.between += self.chunk_events;
            self.undo.put_chunk(bytes);
        }
        self.tail.push_back((lsn, event));
    }

    pub(crate) fn back(&self) -> Option<&Noted> {
        self.tail.back().or_else(|| self.head.back())
    }

    /// The newest event first, as far back as the events of the newest LSN at least.
    pub(crate) fn newest_mut(&mut self) -> impl Iterator<Item = &mut Noted> {
        self.tail.iter_mut().rev()
    }

    /// Takes the newest event; may read from the disk.
    pub(crate) fn pop_back(&mut self) -> Result<Option<Noted>> {
        let newest = match self.tail.pop_back() {
            None => return Ok(self.head.pop_back()),
            newest => newest,
        };
        if self.tail.is_empty() && self.between > 0 {
            if let Some(bytes) = self.undo.take_chunk(false)? {
                decode(&bytes, &mut self.tail)?;
                self.between -= self.tail.len();
            }
        }
        Ok(newest)
    }

    /// Sees to it that [`History::front`] tells the oldest event. False when that is in the spill
    /// file and `may_block` is not set: it is being read then.
    pub(crate) fn see_to_front(&mut self, may_block: bool) -> Result<bool> {
        if self.between == 0 {
            return Ok(true);
        }
        if self.head.len() < self.chunk_events / 2 {
            self.undo.want_chunks();
        }
        if !self.head.is_empty() {
            return Ok(true);
        }
        if !may_block && !self.undo.is_chunk_in_memory() {
            return Ok(false);
        }
        if let Some(bytes) = self.undo.take_chunk(true)? {
            decode(&bytes, &mut self.head)?;
            self.between -= self.head.len();
        }
        Ok(true)
    }

    /// The oldest event, once it was [seen to](History::see_to_front).
    pub(crate) fn front(&self) -> Option<&Noted> {
        self.oldest().next()
    }

    /// The oldest events, as far as they are in memory.
    pub(crate) fn oldest(&self) -> impl Iterator<Item = &Noted> {
        let tail = if self.between == 0 {
            self.tail.len()
        } else {
            0
        };
        self.head.iter().chain(self.tail.range(..tail))
    }

    /// Takes the oldest event, once it was [seen to](History::see_to_front).
    pub(crate) fn pop_front(&mut self) -> Option<Noted> {
        match self.head.pop_front() {
            None if self.between == 0 => self.tail.pop_front(),
            oldest => oldest,
        }
    }
}

impl UndoStore {
    fn put_chunk(self: &Arc<Self>, bytes: Vec<u8>) {
        self.memory.fetch_add(bytes.len(), Ordering::Relaxed);
        let place = Place::Memory(Arc::new(bytes));
        self.chunks.lock().queue.push_back(Chunk { place });
        self.tend_if_over();
    }

    /// Takes the first chunk, or the last one.
    fn take_chunk(self: &Arc<Self>, is_first: bool) -> Result<Option<Vec<u8>>> {
        let chunk = {
            let mut chunks = self.chunks.lock();
            match is_first {
                true => {
                    chunks.first += 1;
                    chunks.wanted = chunks.wanted.saturating_sub(1);
                    chunks.queue.pop_front()
                }
                false => chunks.queue.pop_back(),
            }
        };
        match chunk.map(|chunk| chunk.place) {
            None => Ok(None),
            Some(Place::Memory(bytes)) => {
                self.memory.fetch_sub(bytes.len(), Ordering::Relaxed);
                Ok(Some(Arc::unwrap_or_clone(bytes)))
            }
            Some(Place::Spilled(run)) => {
                let mut bytes = Vec::with_capacity(run.len());
                run.read(&mut bytes)?;
                self.throw_away(run);
                self.tend();
                Ok(Some(bytes))
            }
        }
    }

    fn throw_away(&self, run: Arc<Run>) {
        self.segments.write().trash.push(run);
    }

    fn is_chunk_in_memory(&self) -> bool {
        let chunks = self.chunks.lock();
        let first = chunks.queue.front();
        first.is_none_or(|chunk| matches!(chunk.place, Place::Memory(_)))
    }

    /// Has the first chunks read.
    fn want_chunks(self: &Arc<Self>) {
        let is_missing = {
            let mut chunks = self.chunks.lock();
            chunks.wanted = CHUNKS_AHEAD;
            let mut soon = chunks.queue.iter().take(CHUNKS_AHEAD);
            soon.any(|chunk| matches!(chunk.place, Place::Spilled(_)))
        };
        if is_missing {
            self.tend();
        }
    }

    /// Reads one of the chunks that are wanted; false when all of them are in memory.
    pub(super) fn load_wanted(&self) -> Result<bool> {
        let (number, run) = {
            let chunks = self.chunks.lock();
            let soon = chunks.queue.iter().take(chunks.wanted).enumerate();
            let mut spilled = soon.filter_map(|(index, chunk)| match &chunk.place {
                Place::Spilled(run) => Some((chunks.first + index as u64, run.clone())),
                Place::Memory(_) => None,
            });
            match spilled.next() {
                Some(found) => found,
                None => return Ok(false),
            }
        };
        let mut bytes = Vec::with_capacity(run.len());
        run.read(&mut bytes)?;
        let len = bytes.len();
        let place = Place::Memory(Arc::new(bytes));
        if self.replace(number, place) {
            self.memory.fetch_add(len, Ordering::Relaxed);
            self.throw_away(run);
        }
        Ok(true)
    }

    /// Says where a chunk is now; false when it has gone.
    fn replace(&self, number: u64, place: Place) -> bool {
        let mut chunks = self.chunks.lock();
        let index = number.checked_sub(chunks.first);
        let chunk = index.and_then(|index| chunks.queue.get_mut(index as usize));
        chunk.map(|chunk| chunk.place = place).is_some()
    }

    /// Writes a chunk to the spill file; false when none is left that should go there.
    pub(super) fn spill_chunk(&self) -> Result<bool> {
        let (number, bytes) = {
            let mut chunks = self.chunks.lock();
            loop {
                let number = chunks
                    .next_to_spill
                    .max(chunks.first + chunks.wanted as u64);
                let index = (number - chunks.first) as usize;
                match chunks.queue.get(index).map(|chunk| &chunk.place) {
                    None => return Ok(false),
                    Some(Place::Memory(bytes)) => break (number, bytes.clone()),
                    Some(Place::Spilled(_)) => chunks.next_to_spill = number + 1,
                }
            }
        };
        let run = self.scratch.write(&bytes)?;
        if self.replace(number, Place::Spilled(Arc::new(run))) {
            self.memory.fetch_sub(bytes.len(), Ordering::Relaxed);
        }
        Ok(true)
    }
}

const CHANGE: u8 = 0;
const CREATED: u8 = 1;
const DROPPED: u8 = 2;
const CHUNK: u8 = 3;
const DECIDED: u8 = 4;
const VACANT: u8 = 5;

const DELETED: u8 = 0x80;

fn encode(events: impl Iterator<Item = Noted>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut last = Lsn::ZERO;
    for (lsn, event) in events {
        let (kind, number) = match &event {
            Event::Change { tree, deleted, .. } => {
                (CHANGE | (u8::from(*deleted) * DELETED), tree.0)
            }
            Event::Created(tree) => (CREATED, tree.0),
            Event::Dropped(tree) => (DROPPED, tree.0),
            Event::Chunk(txn) => (CHUNK, txn.0),
            Event::Decided(txn) => (DECIDED, txn.0),
            Event::Vacant(tree, _) => (VACANT, tree.0),
        };
        out.push(kind);
        put_varint(&mut out, lsn.0 - last.0);
        put_varint(&mut out, number);
        last = lsn;
        match event {
            Event::Change { key, previous, .. } => {
                put_bytes(&mut out, &key);
                put_varint(&mut out, previous.0);
            }
            Event::Vacant(_, key) => put_bytes(&mut out, &key),
            _ => {}
        }
    }
    out
}

fn decode(bytes: &[u8], events: &mut VecDeque<Noted>) -> Result<()> {
    let mut reader = Reader::new(bytes);
    let mut lsn = Lsn::ZERO;
    while !reader.is_empty() {
        let kind = reader.u8()?;
        lsn = Lsn(lsn.0 + reader.varint()?);
        let number = reader.varint()?;
        let event = match kind & !DELETED {
            CHANGE => Event::Change {
                tree: TreeId(number),
                key: reader.bytes()?.into(),
                previous: UndoId(reader.varint()?),
                deleted: kind & DELETED != 0,
            },
            CREATED => Event::Created(TreeId(number)),
            DROPPED => Event::Dropped(TreeId(number)),
            CHUNK => Event::Chunk(TxnId(number)),
            DECIDED => Event::Decided(TxnId(number)),
            _ => Event::Vacant(TreeId(number), reader.bytes()?.into()),
        };
        events.push_back((lsn, event));
    }
    Ok(())
}
