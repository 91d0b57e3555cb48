//! The log of one group: what a commit waits for.
//!
//! Entries are appended to memory, handed to the operating system in batches, and made durable by
//! one sync at a time, always of everything written so far:
//!
//! ```text
//!   append(entries)      memory, microseconds, under the caller's own lock if it likes
//!   write()              one write of all that was appended: the operating system has it
//!   sync().await         it is on disk; sync marks in the next batch say so
//! ```
//!
//! A driver runs `write`, reports what was received, awaits `sync`, reports what is flushed, and
//! begins anew; a lone commit of a one-voter group may call both itself. Whoever calls `sync` while
//! another is in flight waits for it first.
//!
//! # On disk
//! A directory of segments (`segment`) filled with frames (`frame`). Nothing is overwritten in
//! place: when a tail is replaced, a frame says so, and the new entries follow. Each batch begins
//! with a mark that names the file position which was durable before it, so that `recovery` can
//! tell a torn tail, which is cut, from a broken disk, which stops the node.
//!
//! At open, what lies above the last recorded durable position is written anew, into a new segment,
//! and synced before anybody sees it: after a failed sync the kernel may show what is not on disk.
//!
//! # Invariants
//! - `base ≤ durable ≤ written ≤ last`, as LSNs, and entries in memory and on disk have every LSN
//!   above `base` up to `last` exactly once.
//! - An entry that is not written yet is in the cache.
//! - A batch is written once there are segments for all of it (`space`); where there is no space for
//!   one, it stays in memory until there is.
//! - After any other failure of a write or sync every further one fails: the caller stops the node.
//!
//! # What it leaves out
//! Old segments are removed, not used again. Entries have no compression.

mod frame;
mod index;
mod recovery;
mod segment;
mod space;
mod state;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use base::env::Env;
use base::sync::{Event, Mutex, RwLock};
use base::{Chain, Error, ErrorClass, Lsn, Position, Result, SqlState, Term};

use crate::Owner;
use frame::{FilePosition, Frame, FrameKind, Next, Start, HEADER_MAX, PAYLOAD_MAX, USER_KIND_MAX};
use index::Place;
use segment::{Segment, SEGMENT_HEADER};
use space::writer_overhead;
use state::State;

/// One entry of a group's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// The term of the leader that proposed it.
    pub term: Term,
    /// Its place in the log.
    pub lsn: Lsn,
    /// What it is; the caller's affair. At most 15.
    pub kind: u8,
    /// Its content.
    pub data: Vec<u8>,
}

impl LogEntry {
    /// Term and LSN.
    pub fn position(&self) -> Position {
        Position {
            term: self.term,
            lsn: self.lsn,
        }
    }
}

/// Bytes of entries that are read at once.
const READ_BYTES_MAX: u64 = 4 << 20;

/// How a log is kept.
#[derive(Clone, Copy, Debug)]
pub struct LogOptions {
    /// Whose log it is.
    pub owner: Owner,
    /// Bytes of one segment; a larger entry gets a larger one.
    pub segment_bytes: u64,
    /// Bytes of recent entries that are kept in memory besides those not written yet.
    pub cache_bytes: usize,
    /// A segment that is shorter than it was made is damage. Only simulations of that mistake say no.
    pub checks_length: bool,
}

impl LogOptions {
    /// The usual sizes.
    pub fn new(owner: Owner) -> LogOptions {
        LogOptions {
            owner,
            segment_bytes: 16 << 20,
            cache_bytes: 32 << 20,
            checks_length: true,
        }
    }
}

/// What was found when a log was opened. All of it is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRecovered {
    /// The newest hard state, empty if there never was one.
    pub hard_state: Vec<u8>,
    /// The position before the first entry.
    pub base: Position,
    /// The last entry, or `base`.
    pub last: Position,
}

/// What [`check`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogReport {
    /// Segments that count.
    pub segments: usize,
    /// Frames in them.
    pub frames: usize,
    /// The position before the first entry.
    pub base: Position,
    /// The last entry, or `base`.
    pub last: Position,
}

/// The log of one group; see the module's text.
pub struct Log {
    me: Weak<Log>,
    env: Arc<dyn Env>,
    dir: String,
    options: LogOptions,
    state: Mutex<State>,
    writer: Mutex<Writer>,
    segments: RwLock<BTreeMap<u64, Arc<Segment>>>,
    syncing: AtomicBool,
    sync_done: Event,
    preparing: AtomicBool,
    prepared: Event,
    /// Bytes free in the current segment and the spare ones, as of the last write.
    room: AtomicU64,
    /// There was no space for the next segment when it was last tried to make one.
    full: AtomicBool,
    /// Bytes of marks and starts since the log was opened.
    marks: AtomicU64,
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Log({})", self.dir)
    }
}

/// Lays frames out in segments. Its latch is taken before that of the state.
struct Writer {
    current: Arc<Segment>,
    offset: u64,
    /// Segments made ahead, ascending, whose content is zeros, and durable unless they were made
    /// in a hurry.
    spares: Vec<Arc<Segment>>,
    next_sequence: u64,
    /// Segments written since they were last synced.
    unsynced: Vec<Arc<Segment>>,
    /// Whether a segment was made whose name is not durable.
    names_unsynced: bool,
    durable: FilePosition,
    /// The durable position that the newest mark tells.
    marked: FilePosition,
    /// As of the last frame laid out.
    last: Position,
    /// There, if it is known.
    chain: Option<Chain>,
    hard_state: Vec<u8>,
    failed: Option<Error>,
}

impl Log {
    /// Opens the log in `dir`, or makes an empty one.
    ///
    /// # Errors
    /// XX001 when something that was durable is damaged; 55000 when the log is another's.
    pub async fn open(
        env: Arc<dyn Env>,
        dir: &str,
        options: LogOptions,
    ) -> Result<(Arc<Log>, LogRecovered)> {
        let disk = env.disk();
        disk.create_dir(dir)
            .map_err(|e| Error::io(format_args!("create \"{dir}\""), e))?;
        let mut scan = recovery::scan(&*disk, dir, options.owner, options.checks_length)?;
        for path in &scan.unfinished {
            let _ = disk.remove(path);
        }
        let rewritten = state::rewrite(&scan)?;
        let sequence = scan.next_sequence;
        let content = rewritten.content(sequence);
        let needed = SEGMENT_HEADER + content.len() as u64;
        let current = segment::create_durable(
            &*disk,
            dir,
            options.owner,
            sequence,
            options.segment_bytes.max(needed),
            &content,
            None,
        )
        .await?;
        remove_stale(&*disk, dir, &scan)?;
        let state = rewritten.state(&mut scan, sequence)?;
        let recovered = LogRecovered {
            hard_state: rewritten.hard_state.clone(),
            base: state.base,
            last: state.last(),
        };
        let durable = FilePosition {
            sequence,
            offset: needed,
        };
        let current = Arc::new(current);
        let mut segments: BTreeMap<u64, Arc<Segment>> = scan
            .chain
            .into_iter()
            .filter(|segment| segment.sequence <= scan.durable.sequence)
            .map(|segment| (segment.sequence, Arc::new(segment)))
            .collect();
        segments.insert(sequence, current.clone());
        let framed = (state.framed, state.chain(state.framed.lsn));
        let writer = Writer::new(current, durable, framed, rewritten.hard_state);
        let log = Arc::new_cyclic(|me| Log {
            me: me.clone(),
            env,
            dir: dir.to_owned(),
            options,
            state: Mutex::new(state),
            room: AtomicU64::new(writer.room()),
            writer: Mutex::new(writer),
            segments: RwLock::new(segments),
            syncing: AtomicBool::new(false),
            sync_done: Event::new(),
            preparing: AtomicBool::new(false),
            prepared: Event::new(),
            full: AtomicBool::new(false),
            marks: AtomicU64::new(0),
        });
        Ok((log, recovered))
    }

    /// Appends to memory: the hard state, then the entries in order, so that a torn tail never
    /// keeps an entry without the term that it was appended in. An entry that is not above the last
    /// one replaces the tail from its LSN on.
    ///
    /// # Errors
    /// XX000 when an entry would leave a gap or replace what is at or below [`Log::base`], or its
    /// kind is too large; 54000 when it is too long. Nothing has been appended then.
    pub fn append(&self, entries: Vec<LogEntry>, hard_state: Option<&[u8]>) -> Result<()> {
        let mut state = self.state.lock();
        let mut last = state.last().lsn;
        for entry in &entries {
            if entry.lsn > last.next() || entry.lsn <= state.base.lsn {
                return Err(Error::internal(format!(
                    "log entry {} does not follow {last} or lies below {}",
                    entry.lsn, state.base.lsn
                )));
            }
            if entry.kind > USER_KIND_MAX {
                return Err(Error::internal(format!(
                    "a log entry of kind {}, at most {USER_KIND_MAX}",
                    entry.kind
                )));
            }
            if entry.data.len() > PAYLOAD_MAX {
                return Err(Error::new(
                    SqlState::PROGRAM_LIMIT_EXCEEDED,
                    format!("a log entry of {} bytes is too long", entry.data.len()),
                ));
            }
            last = entry.lsn;
        }
        if let Some(hard_state) = hard_state {
            state.append_hard_state(hard_state);
        }
        for entry in entries {
            state.append(entry);
        }
        Ok(())
    }

    /// Whether something was appended that [`Log::write`] has not taken.
    pub fn has_unwritten(&self) -> bool {
        !self.state.lock().pending.frames.is_empty()
    }

    /// How many bytes those are.
    pub fn unwritten_bytes(&self) -> usize {
        self.state.lock().pending.bytes.len()
    }

    /// Gives everything appended so far to the operating system; returns the last position that
    /// is there.
    ///
    /// # Errors
    /// 53100 when there is no space for it: everything is as it was, and it can be tried again.
    /// Any other is final: the caller stops the node.
    pub fn write(&self) -> Result<Position> {
        let mut writer = self.writer.lock();
        if let Some(error) = &writer.failed {
            return Err(error.clone());
        }
        let batch = self.take_batch(&mut writer)?;
        if batch.frames.is_empty() {
            return Ok(self.written());
        }
        let places = match self.lay_out(&mut writer, &batch) {
            Ok(places) => places,
            Err(error) => {
                // Part of the batch may be there: even a full disk is final here.
                let error = Error::of_class(ErrorClass::Node, error.state(), error.message());
                writer.failed = Some(error.clone());
                return Err(error);
            }
        };
        let low_on_room = writer.spares.is_empty()
            && writer.offset > self.options.segment_bytes.min(writer.current.bytes) / 2;
        self.room.store(writer.room(), Ordering::Relaxed);
        let written = self
            .state
            .lock()
            .note_written(&places, batch, self.options.cache_bytes);
        drop(writer);
        if low_on_room {
            self.prepare_segment();
        }
        Ok(written)
    }

    /// Makes everything written so far durable; returns the last position that is.
    ///
    /// # Errors
    /// Any is final: the caller stops the node (P6).
    pub async fn sync(&self) -> Result<Position> {
        let flag = &self.syncing;
        let turn = || (!flag.swap(true, Ordering::AcqRel)).then_some(());
        self.sync_done.until(turn).await;
        let mut attempt = {
            let mut writer = self.writer.lock();
            let attempt = Attempt {
                log: self,
                segments: std::mem::take(&mut writer.unsynced),
                names: std::mem::take(&mut writer.names_unsynced),
                done: false,
            };
            if let Some(error) = &writer.failed {
                return Err(error.clone());
            }
            self.state.lock().begin_sync();
            (attempt, writer.end())
        };
        let (attempt, end) = (&mut attempt.0, attempt.1);
        let result = attempt.run().await;
        let mut writer = self.writer.lock();
        attempt.done = true;
        if let Err(error) = result {
            writer.failed.get_or_insert(error.clone());
            return Err(error);
        }
        writer.durable = writer.durable.max(end);
        let durable = self.state.lock().end_sync();
        Ok(durable)
    }

    /// [`Log::write`], then [`Log::sync`].
    ///
    /// # Errors
    /// As those.
    pub async fn flush(&self) -> Result<Position> {
        self.write()?;
        self.sync().await
    }

    /// After [`Log::flush`] and before an orderly end: says in the log itself that everything in it
    /// is durable, so that the next to open it tells lost bytes from a torn tail.
    ///
    /// # Errors
    /// As [`Log::sync`].
    pub async fn seal(&self) -> Result<()> {
        {
            let mut writer = self.writer.lock();
            if let Some(error) = &writer.failed {
                return Err(error.clone());
            }
            let mut mark = Vec::new();
            if writer.durable > writer.marked {
                frame::put_mark(&mut mark, writer.end(), writer.durable);
            }
            // Where there is no room for it, the next segment's start would say so.
            if mark.is_empty() || writer.offset + mark.len() as u64 > writer.current.bytes {
                return Ok(());
            }
            if let Err(error) = writer.put(&mark) {
                writer.failed = Some(error.clone());
                return Err(error);
            }
            writer.marked = writer.durable;
        }
        self.sync().await.map(drop)
    }

    /// The position before the first entry.
    pub fn base(&self) -> Position {
        self.state.lock().base
    }

    /// The LSN of the first entry that is there, or would be.
    pub fn first(&self) -> Lsn {
        self.base().lsn.next()
    }

    /// The last entry appended, or [`Log::base`].
    pub fn last(&self) -> Position {
        self.state.lock().last()
    }

    /// The last entry that the operating system has.
    pub fn written(&self) -> Position {
        self.state.lock().written
    }

    /// The last entry that is durable.
    pub fn durable(&self) -> Position {
        self.state.lock().durable
    }

    /// The term of an entry, [`Log::base`] included; none outside the log.
    pub fn term(&self, lsn: Lsn) -> Option<Term> {
        self.state.lock().term(lsn)
    }

    /// The [chain](base::chain) behind an entry, [`Log::base`] included; none outside the log, and
    /// where nobody knows it.
    pub fn chain(&self, lsn: Lsn) -> Option<Chain> {
        self.state.lock().chain(lsn)
    }

    /// The entries from `low` up to and excluding `high`, as many as fit `bytes_max` and at least
    /// one. None when `low` is not in the log.
    ///
    /// # Errors
    /// XX001 or 58030, fatal for the node, when an entry cannot be read back.
    pub fn entries(&self, low: Lsn, high: Lsn, bytes_max: usize) -> Result<Vec<LogEntry>> {
        let (places, mut recent) = self.state.lock().entries(low, high, bytes_max);
        let mut entries = Vec::with_capacity(places.len() + recent.len());
        let mut rest = &places[..];
        while !rest.is_empty() {
            let count = together(rest);
            let first = Lsn(low.0 + entries.len() as u64);
            self.read(first, &rest[..count], &mut entries)?;
            rest = &rest[count..];
        }
        entries.append(&mut recent);
        Ok(entries)
    }

    /// Bytes of entries above `lsn`.
    pub fn bytes_after(&self, lsn: Lsn) -> u64 {
        self.state.lock().bytes_after(lsn)
    }

    /// Bytes that were appended since the log was opened: entries, hard states, what frames them, and
    /// the marks and starts between them.
    pub fn appended_bytes(&self) -> u64 {
        self.state.lock().appended_bytes + self.marks.load(Ordering::Relaxed)
    }

    /// How many frames were appended, and how often the log was synced, since it was opened.
    pub fn appended_frames_and_syncs(&self) -> (u64, u64) {
        let state = self.state.lock();
        (state.appended_frames, state.syncs)
    }

    /// Lets go of entries up to `up_to`, in whole segments, where nothing above it and no newest
    /// hard state is lost.
    ///
    /// # Errors
    /// 58030 when a file cannot be removed.
    pub fn compact(&self, up_to: Lsn) -> Result<()> {
        let durable = self.writer.lock().durable;
        loop {
            let oldest = self.segments.read().keys().next().copied();
            let Some(sequence) = oldest.filter(|oldest| *oldest < durable.sequence) else {
                return Ok(());
            };
            if !self.state.lock().drop_segment(sequence, up_to) {
                return Ok(());
            }
            self.segments.write().remove(&sequence);
            remove(&*self.env.disk(), &self.dir, sequence)?;
        }
    }

    /// Empties the log: it goes on after `base`, whose state is in a checkpoint, with that chain if
    /// it is known. In memory at once;
    /// on disk with the next write and sync. A log that is found to end before the checkpoint, when
    /// it is opened, must be told again.
    pub fn install(&self, base: Position, chain: Option<Chain>) {
        self.state.lock().install(base, chain);
    }

    /// Writes a batch behind what is there, and returns where each frame went.
    fn lay_out(&self, writer: &mut Writer, batch: &state::Batch) -> Result<Vec<FilePosition>> {
        let mut out = Vec::with_capacity(batch.bytes.len() + 64);
        let mut places = Vec::with_capacity(batch.frames.len());
        let mut start = 0;
        if writer.durable > writer.marked {
            frame::put_mark(&mut out, writer.end(), writer.durable);
            if writer.offset + (out.len() as u64) < writer.current.bytes {
                writer.marked = writer.durable;
                self.marks.fetch_add(out.len() as u64, Ordering::Relaxed);
            } else {
                out.clear();
            }
        }
        for state::Framed { frame, end, chain } in &batch.frames {
            let bytes = &batch.bytes[start..*end];
            if writer.offset + (out.len() + bytes.len()) as u64 > writer.current.bytes {
                writer.put(&out)?;
                out.clear();
                self.roll(writer, *frame, bytes.len() as u64, &mut out)?;
            }
            places.push(FilePosition {
                sequence: writer.current.sequence,
                offset: writer.offset + out.len() as u64,
            });
            assert!(
                frame::follows(bytes, *frame, writer.last),
                "{frame:?} was made for another place than behind {:?}",
                writer.last
            );
            out.extend_from_slice(bytes);
            if frame.kind == FrameKind::HardState {
                writer.hard_state = frame::payload(bytes).to_vec();
            }
            writer.last = Next::after(*frame, writer.last).last;
            writer.chain = *chain;
            start = *end;
        }
        writer.put(&out)?;
        Ok(places)
    }

    /// Goes on in the next segment, whose first frame is put into `out`.
    fn roll(&self, writer: &mut Writer, next: Frame, len: u64, out: &mut Vec<u8>) -> Result<()> {
        let needed = writer_overhead(writer.hard_state.len()) + len;
        let from = writer.end();
        writer.current = loop {
            if writer.spares.is_empty() {
                // `take_batch` has seen to it that this does not happen.
                return Err(Error::internal(format!(
                    "no log segment has been made for a frame of {len} bytes"
                )));
            }
            let spare = writer.spares.remove(0);
            if spare.bytes >= needed {
                break spare;
            }
            // What has a lower number than the current segment is of no use.
            remove(&*self.env.disk(), &self.dir, spare.sequence)?;
        };
        writer.offset = SEGMENT_HEADER;
        let sequence = writer.current.sequence;
        self.segments
            .write()
            .insert(sequence, writer.current.clone());
        writer.marked = writer.durable;
        let start = Start {
            from,
            durable: writer.durable,
            chain: writer.chain,
            hard_state: writer.hard_state.clone(),
        };
        frame::put_start(out, next.serial, writer.last, &start);
        self.marks.fetch_add(out.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Reads entries that lie [together], of which the first has the LSN `low`.
    fn read(&self, low: Lsn, places: &[Place], out: &mut Vec<LogEntry>) -> Result<()> {
        let (Some(first), Some(last)) = (places.first(), places.last()) else {
            return Ok(());
        };
        let (sequence, start) = (first.at.sequence, first.at.offset);
        let segment = self.segments.read().get(&sequence).cloned();
        let segment =
            segment.ok_or_else(|| Error::internal(format!("log segment {sequence} is gone")))?;
        let end = end_of(last).min(segment.bytes);
        let mut bytes = vec![0; (end - start) as usize];
        segment
            .file
            .read_at(&mut bytes, start)
            .map_err(|e| Error::io(format_args!("read log segment {sequence}"), e))?;
        for (place, lsn) in places.iter().zip(low.0..) {
            let at = (place.at.offset - start) as usize;
            let next = Next {
                serial: place.serial,
                last: Position {
                    term: place.term,
                    lsn: Lsn(lsn).prev(),
                },
            };
            match frame::parse_frame(&bytes[at..], place.at, Some(next)) {
                Some(found) if found.frame.serial == place.serial => out.push(LogEntry {
                    term: found.frame.position.term,
                    lsn: found.frame.position.lsn,
                    kind: found.frame.user_kind,
                    data: found.payload.to_vec(),
                }),
                _ => {
                    return Err(Error::corrupted(format!(
                        "log segment {sequence} is damaged at offset {}",
                        place.at.offset
                    )))
                }
            }
        }
        Ok(())
    }
}

/// Where the frame of an entry ends at the latest.
fn end_of(place: &Place) -> u64 {
    place.at.offset + HEADER_MAX as u64 + u64::from(place.bytes)
}

/// How many entries at the front lie in one segment, so near to one another that they are read at
/// once.
fn together(places: &[Place]) -> usize {
    let first = &places[0];
    let is_near = |place: &&Place| {
        place.at.sequence == first.at.sequence
            && end_of(place).saturating_sub(first.at.offset) <= READ_BYTES_MAX
    };
    places.iter().take_while(is_near).count().max(1)
}

impl Writer {
    /// Goes on in a segment that is durable up to `durable`.
    fn new(
        current: Arc<Segment>,
        durable: FilePosition,
        (last, chain): (Position, Option<Chain>),
        hard_state: Vec<u8>,
    ) -> Writer {
        Writer {
            offset: durable.offset,
            spares: Vec::new(),
            next_sequence: durable.sequence + 1,
            unsynced: Vec::new(),
            names_unsynced: false,
            durable,
            marked: durable,
            last,
            chain,
            hard_state,
            failed: None,
            current,
        }
    }

    fn end(&self) -> FilePosition {
        FilePosition {
            sequence: self.current.sequence,
            offset: self.offset,
        }
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let end = self.offset + bytes.len() as u64;
        assert!(
            end <= self.current.bytes,
            "a write up to {end} in a segment of {}",
            self.current.bytes
        );
        self.current
            .file
            .write_at(bytes, self.offset)
            .map_err(|e| {
                Error::io(
                    format_args!("write log segment {}", self.current.sequence),
                    e,
                )
            })?;
        self.offset = end;
        let known = self.unsynced.last().map(|segment| segment.sequence);
        if known != Some(self.current.sequence) {
            self.unsynced.push(self.current.clone());
        }
        Ok(())
    }
}

fn remove(disk: &dyn base::env::Disk, dir: &str, sequence: u64) -> Result<()> {
    // The directory is synced after each, so that what is left is never a chain with a hole.
    let path = segment::name(dir, sequence);
    disk.remove(&path)
        .and_then(|()| disk.sync_dir(dir))
        .map_err(|e| Error::io(format_args!("remove \"{path}\""), e))
}

/// Removes the segments that count no more once what is above the durable point was written anew.
fn remove_stale(disk: &dyn base::env::Disk, dir: &str, scan: &recovery::Scan) -> Result<()> {
    let superseded = |s: &&Segment| s.sequence > scan.durable.sequence;
    let superseded = scan.chain.iter().filter(superseded).map(|s| s.sequence);
    for stale in scan.stale.iter().copied().chain(superseded) {
        remove(disk, dir, stale)?;
    }
    Ok(())
}

/// One sync; dropped before its end, it leaves what it did not sync to the next.
struct Attempt<'a> {
    log: &'a Log,
    segments: Vec<Arc<Segment>>,
    names: bool,
    done: bool,
}

impl Attempt<'_> {
    async fn run(&self) -> Result<()> {
        for segment in &self.segments {
            let synced = segment.file.sync().await;
            synced.map_err(|e| {
                Error::io(format_args!("fsync log segment {}", segment.sequence), e)
            })?;
        }
        if self.names {
            let dir = &self.log.dir;
            let synced = self.log.env.disk().sync_dir(dir);
            synced.map_err(|e| Error::io(format_args!("fsync \"{dir}\""), e))?;
        }
        Ok(())
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if !self.done {
            // Only a dropped future comes here, never with the writer's latch held, save where
            // the log has failed and nothing matters any more.
            if let Some(mut writer) = self.log.writer.try_lock() {
                let mut segments = std::mem::take(&mut self.segments);
                segments.append(&mut writer.unsynced);
                segments.dedup_by_key(|segment| segment.sequence);
                writer.unsynced = segments;
                writer.names_unsynced |= self.names;
            }
        }
        self.log.syncing.store(false, Ordering::Release);
        self.log.sync_done.notify_all();
    }
}

/// Reads the log in `dir`, which nobody has open, and changes nothing.
///
/// # Errors
/// XX001 when something that was durable is damaged; 55000 when the log is another's.
pub fn check(disk: &dyn base::env::Disk, dir: &str, owner: Owner) -> Result<LogReport> {
    let mut scan = recovery::scan(disk, dir, owner, true)?;
    let sequence = scan.next_sequence;
    let state = state::rewrite(&scan)?.state(&mut scan, sequence)?;
    Ok(LogReport {
        segments: scan.chain.len(),
        frames: scan.count,
        base: state.base,
        last: state.last(),
    })
}
