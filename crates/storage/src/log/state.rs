//! What a log keeps in memory: where each entry is, the newest entries themselves, and frames that
//! wait to be written.

use std::collections::VecDeque;

use base::{chain, Chain, Error, Lsn, Position, Result, Term};

use super::frame::{self, put_frame, FilePosition, Frame, FrameKind, Next, Start};
use super::index::{Index, Place};
use super::recovery::{Placed, Scan};
use super::segment::SEGMENT_HEADER;
use super::LogEntry;

/// The memory of a written batch is used again up to this size.
const BATCH_BYTES_KEPT: usize = 1 << 20;

/// Frames, and their bytes.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) bytes: Vec<u8>,
    pub(super) frames: Vec<Framed>,
}

/// One frame of a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Framed {
    pub(super) frame: Frame,
    /// Where it ends in the bytes.
    pub(super) end: usize,
    /// The chain where the log ends behind it, if it is known.
    pub(super) chain: Option<Chain>,
}

/// Everything behind the latch of a log's state.
#[derive(Debug)]
pub(super) struct State {
    pub(super) base: Position,
    /// The chain there, if it is known.
    base_chain: Option<Chain>,
    /// The entries above `base`, without holes.
    index: Index,
    /// The newest entries: a suffix of the index.
    recent: VecDeque<LogEntry>,
    recent_bytes: usize,
    pub(super) pending: Batch,
    /// Bytes of all frames since the log was opened.
    pub(super) appended_bytes: u64,
    /// Frames that were appended, and syncs, since the log was opened.
    pub(super) appended_frames: u64,
    pub(super) syncs: u64,
    next_serial: u64,
    /// Where the log ends behind the newest frame, as who reads the frames knows it.
    pub(super) framed: Position,
    pub(super) written: Position,
    pub(super) durable: Position,
    /// What will be durable when the sync in flight ends.
    syncing: Position,
}

impl State {
    fn new(base: Position, base_chain: Option<Chain>, next_serial: u64) -> State {
        let is_start = base.lsn == Lsn::ZERO;
        State {
            base,
            base_chain: base_chain.or(is_start.then_some(Chain::START)),
            index: Index::default(),
            recent: VecDeque::new(),
            recent_bytes: 0,
            pending: Batch::default(),
            appended_bytes: 0,
            appended_frames: 0,
            syncs: 0,
            next_serial,
            framed: base,
            written: base,
            durable: base,
            syncing: base,
        }
    }

    pub(super) fn last(&self) -> Position {
        Position {
            term: self.index.back().map_or(self.base.term, |place| place.term),
            lsn: Lsn(self.base.lsn.0 + self.index.len() as u64),
        }
    }

    /// The chain behind the last entry, if it is known.
    fn last_chain(&self) -> Option<Chain> {
        self.index
            .back()
            .map_or(self.base_chain, |place| place.chain)
    }

    /// The chain behind an entry or the base, if it is known.
    pub(super) fn chain(&self, lsn: Lsn) -> Option<Chain> {
        if lsn == self.base.lsn {
            return self.base_chain;
        }
        self.index.get(self.slot(lsn)?)?.chain
    }

    /// The entry's place in the index.
    fn slot(&self, lsn: Lsn) -> Option<usize> {
        let slot = lsn.0.checked_sub(self.base.lsn.0 + 1)?;
        usize::try_from(slot).ok().filter(|s| *s < self.index.len())
    }

    pub(super) fn term(&self, lsn: Lsn) -> Option<Term> {
        if lsn == self.base.lsn {
            return Some(self.base.term);
        }
        let place = self.slot(lsn).and_then(|slot| self.index.get(slot));
        place.map(|place| place.term)
    }

    fn push_frame(&mut self, kind: FrameKind, user_kind: u8, position: Position, payload: &[u8]) {
        let frame = Frame {
            kind,
            user_kind,
            serial: self.next_serial,
            position,
        };
        self.next_serial += 1;
        let before = self.pending.bytes.len();
        put_frame(&mut self.pending.bytes, frame, self.framed, payload);
        if kind.moves() {
            self.framed = position;
        }
        self.appended_bytes += (self.pending.bytes.len() - before) as u64;
        self.appended_frames += 1;
        self.pending.frames.push(Framed {
            frame,
            end: self.pending.bytes.len(),
            chain: self.last_chain(),
        });
    }

    fn push_place(
        &mut self,
        term: Term,
        serial: u64,
        at: FilePosition,
        bytes: u32,
        chain: Option<Chain>,
    ) {
        let total = self.index.back().map_or(0, |place| place.total) + u64::from(bytes);
        self.index.push(Place {
            term,
            serial,
            at,
            bytes,
            total,
            chain,
        });
    }

    /// Appends an entry that follows or replaces, as the caller has checked.
    pub(super) fn append(&mut self, entry: LogEntry) {
        if entry.lsn <= self.last().lsn {
            let lsn = entry.lsn.prev();
            let term = self.term(lsn).unwrap_or_default();
            let position = Position { term, lsn };
            self.truncate(position);
            self.push_frame(FrameKind::Truncate, 0, position, &[]);
        }
        assert_eq!(
            entry.lsn,
            self.last().lsn.next(),
            "the entry appended and the next"
        );
        let at = FilePosition::default();
        let digest = chain::digest(entry.position(), entry.kind, &entry.data);
        let chain = Chain::next(self.last_chain(), entry.kind, digest);
        let bytes = entry.data.len() as u32;
        self.push_place(entry.term, self.next_serial, at, bytes, chain);
        self.push_frame(FrameKind::Entry, entry.kind, entry.position(), &entry.data);
        self.recent_bytes += entry.data.len();
        self.recent.push_back(entry);
    }

    pub(super) fn append_hard_state(&mut self, hard_state: &[u8]) {
        self.push_frame(FrameKind::HardState, 0, self.framed, hard_state);
    }

    /// Forgets what is above `after`.
    fn truncate(&mut self, after: Position) {
        while self.last().lsn > after.lsn && self.index.len() > 0 {
            self.index.pop_back();
            if let Some(entry) = self.recent.pop_back() {
                self.recent_bytes -= entry.data.len();
            }
        }
        if after.lsn < self.base.lsn {
            self.base = after;
            self.base_chain = None;
        }
        for position in [&mut self.written, &mut self.durable, &mut self.syncing] {
            if position.lsn > after.lsn {
                *position = after;
            }
        }
    }

    pub(super) fn install(&mut self, base: Position, chain: Option<Chain>) {
        self.reset(base, chain);
        let payload = frame::chain_bytes(chain);
        let payload = payload.as_ref().map_or(&[][..], |bytes| &bytes[..]);
        self.push_frame(FrameKind::Install, 0, base, payload);
    }

    fn reset(&mut self, base: Position, chain: Option<Chain>) {
        self.base_chain = chain;
        self.index.clear();
        self.recent.clear();
        self.recent_bytes = 0;
        self.base = base;
        self.written = base;
        self.durable = base;
        self.syncing = base;
    }

    /// Notes where the frames of a batch went. Some may have been replaced since it was taken.
    pub(super) fn note_written(
        &mut self,
        places: &[FilePosition],
        mut batch: Batch,
        cache_bytes: usize,
    ) -> Position {
        for (Framed { frame, .. }, at) in batch.frames.iter().zip(places) {
            if frame.kind == FrameKind::Entry {
                if let Some(slot) = self.slot(frame.position.lsn) {
                    self.index.note_written(slot, frame.serial, *at);
                }
            }
        }
        self.written = self.last_written();
        while self.recent_bytes > cache_bytes {
            if self.index.len() - self.recent.len() >= self.index.written() {
                break;
            }
            let Some(entry) = self.recent.pop_front() else {
                break;
            };
            self.recent_bytes -= entry.data.len();
        }
        if self.pending.frames.is_empty() && batch.bytes.capacity() <= BATCH_BYTES_KEPT {
            batch.bytes.clear();
            batch.frames.clear();
            self.pending = batch;
        }
        self.written
    }

    /// The last entry with every entry up to it written.
    fn last_written(&self) -> Position {
        let lsn = Lsn(self.base.lsn.0 + self.index.written() as u64);
        Position {
            term: self.term(lsn).unwrap_or_default(),
            lsn,
        }
    }

    pub(super) fn begin_sync(&mut self) {
        self.syncing = self.written;
        self.syncs += 1;
    }

    pub(super) fn end_sync(&mut self) -> Position {
        if self.syncing.lsn > self.durable.lsn {
            self.durable = self.syncing;
        }
        self.durable
    }

    /// Where the entries from `low` on are that must be read, and those after them in memory.
    pub(super) fn entries(
        &self,
        low: Lsn,
        high: Lsn,
        bytes_max: usize,
    ) -> (Vec<Place>, Vec<LogEntry>) {
        let (mut places, mut entries) = (Vec::new(), Vec::new());
        let Some(first) = self.slot(low) else {
            return (places, entries);
        };
        let in_files = self.index.len() - self.recent.len();
        let mut bytes = 0;
        for (slot, place) in (first..).zip(self.index.from(first)) {
            bytes += place.bytes as usize;
            let lsn = self.base.lsn.0 + 1 + slot as u64;
            if lsn >= high.0 || (slot > first && bytes > bytes_max) {
                break;
            }
            match slot.checked_sub(in_files) {
                Some(recent) => entries.push(self.recent[recent].clone()),
                None => places.push(place),
            }
        }
        (places, entries)
    }

    pub(super) fn bytes_after(&self, lsn: Lsn) -> u64 {
        let before_first = self
            .index
            .front()
            .map_or(0, |place| place.total - u64::from(place.bytes));
        let end = self.index.back().map_or(0, |place| place.total);
        let from = match self.slot(lsn) {
            Some(slot) => self.index.get(slot).map_or(end, |place| place.total),
            None if lsn <= self.base.lsn => before_first,
            None => end,
        };
        end - from
    }

    /// Forgets the entries in the oldest segment, if none of them is above `up_to`.
    pub(super) fn drop_segment(&mut self, sequence: u64, up_to: Lsn) -> bool {
        let count = self.index.count_up_to(sequence);
        let lsn = Lsn(self.base.lsn.0 + count as u64);
        if lsn > up_to && count > 0 {
            return false;
        }
        if let Some(term) = self.term(lsn) {
            self.base_chain = self.chain(lsn);
            self.base = Position { term, lsn };
        }
        self.index.drop_up_to(sequence);
        while self.recent.len() > self.index.len() {
            if let Some(entry) = self.recent.pop_front() {
                self.recent_bytes -= entry.data.len();
            }
        }
        true
    }

    /// Does again what a frame found on disk says, which is at `at` by now.
    fn replay(&mut self, placed: &Placed, at: FilePosition) -> Result<()> {
        let frame = placed.frame;
        if frame.kind == FrameKind::Start {
            return self.check_chain(placed);
        }
        if !frame.kind.takes_serial() {
            return Ok(());
        }
        self.next_serial = frame.serial + 1;
        match frame.kind {
            FrameKind::Entry => {
                let chain = Chain::next(self.last_chain(), frame.user_kind, placed.digest);
                self.push_place(frame.position.term, frame.serial, at, placed.len, chain);
            }
            FrameKind::Truncate => self.truncate(frame.position),
            FrameKind::Install => self.reset(frame.position, placed.chain),
            FrameKind::HardState | FrameKind::Mark | FrameKind::Start => {}
        }
        Ok(())
    }

    /// What a segment begins with is what the one before it ended with.
    fn check_chain(&self, start: &Placed) -> Result<()> {
        match (start.chain, self.chain(start.frame.position.lsn)) {
            (Some(told), Some(known)) if told != known => Err(Error::corrupted(format!(
                "log segment {} goes on after another history than that before it, at LSN {}",
                start.at.sequence, start.frame.position.lsn
            ))),
            _ => Ok(()),
        }
    }
}

/// What is written anew when a log is opened: everything above the last recorded durable point.
#[derive(Debug)]
pub(super) struct Rewrite {
    from: FilePosition,
    serial: u64,
    /// The last position below the durable point.
    last: Position,
    /// The chain there.
    chain: Option<Chain>,
    /// The hard state below the durable point.
    hard_state_before: Vec<u8>,
    /// The newest hard state.
    pub(super) hard_state: Vec<u8>,
    /// The frames, as they are on disk.
    tail: Vec<u8>,
}

/// What the frames say that lie below what is known to be durable.
#[derive(Debug, Default)]
pub(super) struct Below {
    /// Nothing, as long as there was no frame.
    state: Option<State>,
    /// The serial of the frame that follows.
    serial: Option<u64>,
    /// The last position.
    last: Position,
    /// The newest frame with a hard state.
    hard_state: Option<Placed>,
}

impl Below {
    /// Takes the next frame.
    pub(super) fn add(&mut self, placed: Placed) -> Result<()> {
        let frame = placed.frame;
        let begun = || State::new(frame.position, placed.chain, frame.serial);
        let state = self.state.get_or_insert_with(begun);
        state.replay(&placed, placed.at)?;
        let next = Next::after(frame, self.last);
        (self.serial, self.last) = (Some(next.serial), next.last);
        if has_hard_state(&placed) {
            self.hard_state = Some(placed);
        }
        Ok(())
    }
}

fn has_hard_state(placed: &Placed) -> bool {
    matches!(placed.frame.kind, FrameKind::HardState | FrameKind::Start)
}

/// Reads what must be written anew.
pub(super) fn rewrite(scan: &Scan) -> Result<Rewrite> {
    let (below, above) = (&scan.below, &scan.frames);
    let mut tail = Vec::new();
    for placed in above.iter().filter(|p| p.frame.kind.takes_serial()) {
        tail.extend_from_slice(&read(scan, placed)?);
    }
    let first = above.first().map(|first| first.frame.serial);
    let newest = above.iter().rev().find(|placed| has_hard_state(placed));
    Ok(Rewrite {
        from: scan.durable,
        serial: first.or(below.serial).unwrap_or(1),
        last: below.last,
        chain: match &below.state {
            Some(state) => state.last_chain(),
            None => State::new(below.last, None, 0).base_chain,
        },
        hard_state_before: hard_state(scan, below.hard_state.as_ref())?,
        hard_state: hard_state(scan, newest.or(below.hard_state.as_ref()))?,
        tail,
    })
}

fn hard_state(scan: &Scan, newest: Option<&Placed>) -> Result<Vec<u8>> {
    let Some(placed) = newest else {
        return Ok(Vec::new());
    };
    let bytes = read(scan, placed)?;
    let payload = frame::payload(&bytes);
    match placed.frame.kind {
        FrameKind::Start => Ok(frame::parse_start(placed.frame.user_kind, payload)?.hard_state),
        _ => Ok(payload.to_vec()),
    }
}

fn read(scan: &Scan, placed: &Placed) -> Result<Vec<u8>> {
    let sequence = placed.at.sequence;
    let segment = scan.chain.iter().find(|s| s.sequence == sequence);
    let segment = segment.ok_or_else(|| Error::internal("a frame of no segment"))?;
    let mut bytes = vec![0; placed.frame_len as usize];
    segment
        .file
        .read_at(&mut bytes, placed.at.offset)
        .map_err(|e| Error::io(format_args!("read log segment {sequence}"), e))?;
    Ok(bytes)
}

impl Rewrite {
    /// The frame that begins the new segment.
    fn start(&self, durable: FilePosition) -> Vec<u8> {
        let start = Start {
            from: self.from,
            durable,
            chain: self.chain,
            hard_state: self.hard_state_before.clone(),
        };
        let mut out = Vec::new();
        frame::put_start(&mut out, self.serial, self.last, &start);
        out
    }

    fn start_len(&self) -> usize {
        self.start(FilePosition::default()).len()
    }

    /// The content of the new segment.
    pub(super) fn content(&self, sequence: u64) -> Vec<u8> {
        let mut out = self.start(FilePosition {
            sequence,
            offset: SEGMENT_HEADER + (self.start_len() + self.tail.len()) as u64,
        });
        out.extend_from_slice(&self.tail);
        out
    }

    /// The state of the log with the new segment, all of it written and durable.
    ///
    /// # Errors
    /// XX001 when a segment does not go on where the one before it ended.
    pub(super) fn state(&self, scan: &mut Scan, sequence: u64) -> Result<State> {
        let first = scan.frames.first();
        let base = first.map_or(Position::default(), |first| first.frame.position);
        let base_chain = first.and_then(|first| first.chain);
        let below = scan.below.state.take();
        let mut state = below.unwrap_or_else(|| State::new(base, base_chain, self.serial));
        let mut offset = SEGMENT_HEADER + self.start_len() as u64;
        for placed in &scan.frames {
            if placed.frame.kind.takes_serial() {
                let at = FilePosition { sequence, offset };
                offset += u64::from(placed.frame_len);
                state.replay(placed, at)?;
            }
        }
        state.next_serial = state.next_serial.max(self.serial);
        state.framed = scan.next.map_or(self.last, |next| next.last);
        let last = state.last();
        state.written = last;
        state.durable = last;
        state.syncing = last;
        Ok(state)
    }
}
