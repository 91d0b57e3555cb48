//! Reading a log's files: which segments count, where the log ends, what was known to be durable.
//!
//! Segments form a chain: each begins with a start frame that names the place where the one before
//! it was left. Where two claim the same predecessor, the later one was written by a recovery and
//! counts, because a recovery leaves what it found and writes anew what may not be durable.
//!
//! | the first unsound frame is | and | so |
//! |---|---|---|
//! | below a position that a later mark or start calls durable | | the disk is broken |
//! | above every such position | nothing | a torn tail: cut here |
//! | at the place where the next segment takes over | | no end at all: go on there |
//!
//! A segment that is shorter than it was made is broken, wherever the log ends.
//!
//! # What cannot be known here
//! Of the last batch before a crash nothing says that it was synced: the mark that would say so
//! comes with the batch after it, or with an orderly end ([`super::Log::seal`]). A disk that loses
//! just that batch, and leaves zeros in its place, looks like a torn tail. Other replicas know.
//!
//! Marks behind an unsound frame are looked for byte by byte: a hole in the middle of what was
//! durable must not look like a torn tail.

use base::env::{Disk, OpenMode};
use base::{chain, Chain, Error, Result};

use super::frame::{
    may_be_mark, parse_chain, parse_durable, parse_frame, parse_start, start_len, FilePosition,
    Frame, FrameKind, Next, HEADER_MAX, MARK_MAX,
};
use super::segment::{self, Header, Segment, SEGMENT_HEADER};
use super::state::Below;
use crate::Owner;

/// Where marks are looked for, blocks of zeros are passed over.
const CLAIM_BLOCK: usize = 4096;
const ZEROS: [u8; CLAIM_BLOCK] = [0; CLAIM_BLOCK];

/// A frame and where it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed {
    pub(crate) frame: Frame,
    pub(crate) at: FilePosition,
    /// Bytes of the payload.
    pub(crate) len: u32,
    /// Bytes of the whole.
    pub(crate) frame_len: u32,
    /// That of an entry; 0 for all else.
    pub(crate) digest: u32,
    /// What a start or an install tells.
    pub(crate) chain: Option<Chain>,
}

/// What the files of a log say.
#[derive(Debug)]
pub(super) struct Scan {
    /// The segments that count, in order.
    pub(crate) chain: Vec<Segment>,
    /// Sequence numbers of those that do not.
    pub(crate) stale: Vec<u64>,
    /// Files that never became segments.
    pub(crate) unfinished: Vec<String>,
    /// What the frames say that are known to be durable …
    pub(super) below: Below,
    /// … and those above, in order, as far as they count.
    pub(super) frames: Vec<Placed>,
    /// How many frames count.
    pub(crate) count: usize,
    /// What is known of the next frame.
    pub(super) next: Option<Next>,
    /// Up to here everything is known to be durable.
    pub(crate) durable: FilePosition,
    /// No segment has this sequence number or a higher one.
    pub(crate) next_sequence: u64,
}

impl Scan {
    /// Frames that are known to be durable by now take no more memory than what they say.
    fn fold(&mut self) -> Result<()> {
        let durable = self.durable;
        let count = self.frames.partition_point(|placed| placed.at < durable);
        self.frames
            .drain(..count)
            .try_for_each(|placed| self.below.add(placed))
    }
}

/// One segment, and what its first bytes say.
struct Loaded {
    segment: Segment,
    /// What its start frame says, if that is sound.
    from: Option<FilePosition>,
}

impl Loaded {
    fn read(&self, offset: u64, len: u64) -> Result<Vec<u8>> {
        read(&self.segment, offset, len)
    }
}

/// Reads the log in `dir` and changes nothing.
///
/// # Errors
/// XX001 when something that was durable is not sound; 55000 when it is another's log.
pub(super) fn scan(disk: &dyn Disk, dir: &str, owner: Owner, checks_length: bool) -> Result<Scan> {
    let (sequences, unfinished) = segment::list(disk, dir)?;
    let next_sequence = sequences.last().map_or(1, |last| last + 1);
    let mut loaded = Vec::with_capacity(sequences.len());
    for sequence in sequences {
        loaded.push(load(disk, dir, owner, sequence, checks_length)?);
    }
    let mut scan = Scan {
        chain: Vec::new(),
        stale: Vec::new(),
        unfinished,
        below: Below::default(),
        frames: Vec::new(),
        count: 0,
        next: None,
        durable: FilePosition::default(),
        next_sequence,
    };
    let kept = follow(&loaded, &mut scan)?;
    for (loaded, kept) in loaded.into_iter().zip(kept) {
        if kept {
            scan.chain.push(loaded.segment);
        } else {
            scan.stale.push(loaded.segment.sequence);
        }
    }
    Ok(scan)
}

/// Reads the frames of the chain, and tells which segments are part of it.
fn follow(loaded: &[Loaded], scan: &mut Scan) -> Result<Vec<bool>> {
    let mut kept = vec![false; loaded.len()];
    let mut at = match loaded.first() {
        Some(first) if first.from.is_none() => {
            return Err(corrupted(first.segment.sequence, SEGMENT_HEADER));
        }
        first => first.map(|_| 0),
    };
    let mut last = FilePosition::default();
    while let Some(index) = at {
        kept[index] = true;
        let sequence = loaded[index].segment.sequence;
        let next = loaded.iter().rposition(|other| {
            other.segment.sequence > sequence
                && other.from.is_some_and(|from| from.sequence == sequence)
        });
        let bound = next.and_then(|next| loaded[next].from).map(|f| f.offset);
        let offset = read_frames(&loaded[index], bound, scan)?;
        last = FilePosition { sequence, offset };
        if index == 0 {
            // Earlier segments were only removed once this one's start was durable.
            let after_start = scan.frames.get(1).map_or(offset, |frame| frame.at.offset);
            scan.durable = scan.durable.max(FilePosition {
                sequence,
                offset: after_start,
            });
        }
        scan.fold()?;
        if bound == Some(offset) {
            at = next;
            continue;
        }
        let claim = highest_claim(&loaded[index..], offset)?;
        if claim.max(Some(scan.durable)) > Some(last) {
            return Err(corrupted(sequence, offset));
        }
        at = None;
    }
    assert!(
        scan.durable <= last,
        "durable up to {:?}, the log ends at {last:?}",
        scan.durable
    );
    Ok(kept)
}

fn corrupted(sequence: u64, offset: u64) -> Error {
    Error::corrupted(format!(
        "log segment {sequence} is damaged at offset {offset}, which was durable"
    ))
}

fn load(
    disk: &dyn Disk,
    dir: &str,
    owner: Owner,
    sequence: u64,
    checks_length: bool,
) -> Result<Loaded> {
    let path = segment::name(dir, sequence);
    let failed = |e| Error::io(format_args!("read \"{path}\""), e);
    let file = disk.open(&path, OpenMode::Existing).map_err(failed)?;
    let bytes = file.len().map_err(failed)?;
    let segment = Segment {
        sequence,
        bytes,
        file,
    };
    let header = read(&segment, 0, bytes.min(SEGMENT_HEADER))?;
    let header = segment::check_header(&header, owner, sequence)?;
    let start = read_start(&segment)?;
    let at = FilePosition {
        sequence,
        offset: SEGMENT_HEADER,
    };
    let from = match (header, parse_frame(&start, at, None)) {
        (Header::Sound { made, .. }, _) if bytes < made && checks_length => {
            return Err(Error::corrupted(format!(
                "log segment {sequence} has {bytes} bytes and was made of {made}: its end is gone"
            )));
        }
        (Header::Sound { .. }, Some(found)) if found.frame.kind == FrameKind::Start => {
            Some(parse_start(found.frame.user_kind, found.payload)?.from)
        }
        (Header::Sound { durable, .. }, _) if durable > 0 => {
            return Err(corrupted(sequence, SEGMENT_HEADER));
        }
        _ => None,
    };
    Ok(Loaded { segment, from })
}

/// The bytes of the first frame, as far as they are there.
fn read_start(segment: &Segment) -> Result<Vec<u8>> {
    let behind = segment.bytes.saturating_sub(SEGMENT_HEADER);
    if behind == 0 {
        // One that was made in a hurry, and lost its length when the machine did.
        return Ok(Vec::new());
    }
    let head = read(segment, SEGMENT_HEADER, behind.min(HEADER_MAX as u64))?;
    match start_len(&head) {
        Some(len) => read(segment, SEGMENT_HEADER, behind.min(len as u64)),
        None => Ok(Vec::new()),
    }
}

fn read(segment: &Segment, offset: u64, len: u64) -> Result<Vec<u8>> {
    let mut bytes = vec![0; len as usize];
    let sequence = segment.sequence;
    segment
        .file
        .read_at(&mut bytes, offset)
        .map_err(|e| Error::io(format_args!("read log segment {sequence}"), e))?;
    Ok(bytes)
}

/// Reads sound frames from the beginning of a segment up to `bound`, and returns where they end.
fn read_frames(loaded: &Loaded, bound: Option<u64>, scan: &mut Scan) -> Result<u64> {
    let mut offset = SEGMENT_HEADER as usize;
    let bound = bound.unwrap_or(u64::MAX);
    let bytes = loaded.read(0, loaded.segment.bytes)?;
    while (offset as u64) < bound {
        let at = FilePosition {
            sequence: loaded.segment.sequence,
            offset: offset as u64,
        };
        let rest = bytes.get(offset..).unwrap_or_default();
        let Some(found) = parse_frame(rest, at, scan.next) else {
            break;
        };
        let frame = found.frame;
        if scan.next.is_some_and(|next| next.serial != frame.serial) {
            break;
        }
        if let Some(durable) = parse_durable(frame.kind, found.payload, at)? {
            scan.durable = scan.durable.max(durable);
        }
        let last = scan.next.map_or(frame.position, |next| next.last);
        scan.next = Some(Next::after(frame, last));
        scan.count += 1;
        scan.frames.push(Placed {
            frame,
            at,
            len: found.payload.len() as u32,
            frame_len: found.len as u32,
            digest: match frame.kind {
                FrameKind::Entry => chain::digest(frame.position, frame.user_kind, found.payload),
                _ => 0,
            },
            chain: parse_chain(frame.kind, frame.user_kind, found.payload),
        });
        offset += found.len;
    }
    Ok(offset as u64)
}

/// The highest durable position that any sound frame claims, in the first segment behind `offset`
/// and anywhere in the others.
fn highest_claim(loaded: &[Loaded], offset: u64) -> Result<Option<FilePosition>> {
    let mut highest = None;
    let mut from = offset as usize;
    for loaded in loaded {
        let bytes = loaded.read(0, loaded.segment.bytes)?;
        let mut places = Vec::new();
        // A start begins a segment, and nothing else is one.
        if from <= SEGMENT_HEADER as usize {
            places.push(SEGMENT_HEADER as usize);
        }
        let mut block = from;
        while block < bytes.len() {
            let end = (block + CLAIM_BLOCK).min(bytes.len());
            // Most of a segment is not written yet.
            if bytes[block..end] != ZEROS[..end - block] {
                let behind = |at: &usize| may_be_mark(&bytes[*at..]);
                places.extend((block.saturating_sub(MARK_MAX).max(from)..end).filter(behind));
            }
            block = end;
        }
        for place in places {
            let at = FilePosition {
                sequence: loaded.segment.sequence,
                offset: place as u64,
            };
            let rest = bytes.get(place..).unwrap_or_default();
            if let Some(found) = parse_frame(rest, at, None) {
                let durable = parse_durable(found.frame.kind, found.payload, at)?;
                highest = highest.max(durable);
            }
        }
        from = SEGMENT_HEADER as usize;
    }
    Ok(highest)
}
