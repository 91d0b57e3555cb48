//! Space for a log: segments made ahead of need, and what happens when the disk has none.
//!
//! Whoever is about to append reserves space first ([`Log::reserve`]) and is told 53100 where there
//! is none, so that a full disk is an error and no broken disk. What cannot ask (an entry of another
//! leader, a vote) is appended to memory, and [`Log::write`] takes it from there only when there are
//! segments for all of it. Until then the log is like one whose sync takes long: nothing of it is
//! acknowledged, and nothing is lost but time. A follower whose log is full asks for no more of it
//! ([`Log::is_full`]), so that memory does not fill instead.
//!
//! # What it leaves out
//! File systems that cannot reserve space: there a full disk shows when a segment is filled with
//! zeros, or, in a segment made in a hurry, with the write itself, which stops the node.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use base::env::{Reactor, Severity};
use base::{Error, Result, SqlState};

use super::frame::{self, FrameKind, MARK_MAX};
use super::segment::{self, SEGMENT_HEADER};
use super::state::{Batch, Framed};
use super::{remove, Log, Writer};

impl Log {
    /// Bytes that can be appended without asking the file system for space.
    pub fn room(&self) -> u64 {
        let pending = self.state.lock().pending.bytes.len() as u64;
        self.room.load(Ordering::Relaxed).saturating_sub(pending)
    }

    /// Whether so many bytes are too many for the space there is, as far as is known. Then it is
    /// tried again to get more.
    pub fn is_full(&self, bytes: u64) -> bool {
        let is_full = self.lacks_space() && self.room() < bytes;
        if is_full {
            self.prepare_segment();
        }
        is_full
    }

    /// Whether there was no space for the next segment when it was last tried to make one.
    pub fn lacks_space(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// Sees to it that `bytes` can be appended without asking the file system for space.
    ///
    /// # Errors
    /// 53100 when there is no space; the log is as it was.
    pub async fn reserve(&self, bytes: u64) -> Result<()> {
        while self.room() < bytes {
            let _turn = self.prepared.until(|| self.take_turn()).await;
            if self.room() < bytes {
                self.make_spare(bytes).await?;
            }
        }
        Ok(())
    }

    /// The turn to make a segment, unless somebody has it.
    pub(super) fn take_turn(&self) -> Option<Turn<'_>> {
        (!self.preparing.swap(true, Ordering::AcqRel)).then_some(Turn(self))
    }

    /// Starts to make the next segment ahead of need.
    pub(super) fn prepare_segment(&self) {
        if self.preparing.swap(true, Ordering::AcqRel) {
            return;
        }
        let me = self.me.clone();
        let task = move || -> base::env::LocalBoxFuture<'static, ()> {
            Box::pin(async move {
                let Some(log) = me.upgrade() else { return };
                let _turn = Turn(&log);
                let result = log.make_spare(0).await;
                if let Some(error) = result.err().filter(|error| !is_for_want_of_space(error)) {
                    log.env.log(Severity::Warning, error.message());
                }
            })
        };
        self.env
            .spawn(Reactor::Background, "log segment", Box::new(task));
    }

    async fn make_spare(&self, payload: u64) -> Result<()> {
        let sequence = self.writer.lock().take_sequence();
        let bytes = self.options.segment_bytes.max(payload + writer_overhead(0));
        let disk = self.env.disk();
        let owner = self.options.owner;
        // Whoever waits for room is in a hurry.
        let paced = (payload == 0).then_some(&*self.env);
        let spare =
            segment::create_durable(&*disk, &self.dir, owner, sequence, bytes, &[], paced).await;
        self.note_full(spare.as_ref().is_err_and(is_for_want_of_space));
        let spare = spare?;
        let mut writer = self.writer.lock();
        if sequence < writer.current.sequence {
            // The log had to go on without it.
            return remove(&*disk, &self.dir, sequence);
        }
        let place = writer
            .spares
            .partition_point(|other| other.sequence < sequence);
        writer.spares.insert(place, Arc::new(spare));
        self.room.store(writer.room(), Ordering::Relaxed);
        Ok(())
    }

    fn note_full(&self, is_full: bool) {
        if self.full.swap(is_full, Ordering::Relaxed) != is_full {
            let (severity, message) = match is_full {
                true => (Severity::Warning, "there is no space for the log"),
                false => (Severity::Info, "there is space for the log again"),
            };
            self.env.log(severity, message);
        }
    }

    /// Takes what waits to be written, once there are segments for all of it.
    ///
    /// # Errors
    /// 53100 when there is no space for a segment; nothing was taken then. Any other is final.
    pub(super) fn take_batch(&self, writer: &mut Writer) -> Result<Batch> {
        loop {
            let missing = {
                let mut state = self.state.lock();
                match writer.missing(&state.pending) {
                    None => return Ok(std::mem::take(&mut state.pending)),
                    Some(bytes) => bytes,
                }
            };
            let result = self.make_segment(writer, missing);
            self.note_full(result.as_ref().is_err_and(is_for_want_of_space));
            if let Err(error) = result {
                if !is_for_want_of_space(&error) {
                    writer.failed = Some(error.clone());
                }
                return Err(error);
            }
        }
    }

    /// Makes a segment at once, because the log cannot go on without it.
    fn make_segment(&self, writer: &mut Writer, needed: u64) -> Result<()> {
        let sequence = writer.take_sequence();
        let bytes = self.options.segment_bytes.max(needed);
        let disk = self.env.disk();
        let owner = self.options.owner;
        let spare = segment::create(&*disk, &self.dir, owner, sequence, bytes)?;
        writer.names_unsynced = true;
        writer.spares.push(Arc::new(spare));
        Ok(())
    }
}

/// The turn to make a segment: one at a time. It ends also where whoever has it is given up, as a
/// session is that ends while it waits for space.
pub(super) struct Turn<'l>(&'l Log);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.preparing.store(false, Ordering::Release);
        self.0.prepared.notify_all();
    }
}

impl Writer {
    fn take_sequence(&mut self) -> u64 {
        self.next_sequence += 1;
        self.next_sequence - 1
    }

    pub(super) fn room(&self) -> u64 {
        let overhead = writer_overhead(self.hard_state.len());
        let current = self.current.bytes - self.offset;
        let spares = self.spares.iter().map(|spare| spare.bytes);
        spares.fold(current, |sum, bytes| sum + bytes.saturating_sub(overhead))
    }

    /// Bytes of a segment that must be made before the batch can be written, if any must.
    fn missing(&self, batch: &Batch) -> Option<u64> {
        let mut free = (self.current.bytes - self.offset).saturating_sub(MARK_MAX as u64);
        if batch.bytes.len() as u64 <= free {
            return None;
        }
        let mut spares = self.spares.iter();
        let mut hard_state = self.hard_state.len();
        let mut start = 0;
        for Framed { frame, end, .. } in &batch.frames {
            let len = (end - start) as u64;
            start = *end;
            if frame.kind == FrameKind::HardState {
                hard_state = hard_state.max(len as usize);
            }
            let overhead = writer_overhead(hard_state);
            while len > free {
                let Some(spare) = spares.next() else {
                    return Some(overhead + len);
                };
                free = spare.bytes.saturating_sub(overhead);
            }
            free -= len;
        }
        None
    }
}

fn is_for_want_of_space(error: &Error) -> bool {
    error.state() == SqlState::DISK_FULL
}

/// Bytes that a segment needs besides entries: its header, its start, and a mark.
pub(super) fn writer_overhead(hard_state: usize) -> u64 {
    SEGMENT_HEADER + (frame::start_max(hard_state) + MARK_MAX) as u64
}
