//! Frames: what a segment is made of after its header.
//!
//! | part | what |
//! |---|---|
//! | 4 bytes | CRC-32C of all that follows and of what is implied |
//! | 1 byte | [`FrameKind`] in the upper three bits, 16 if the next three parts are there, and the caller's kind of an entry, at most [`USER_KIND_MAX`] |
//! | varint | length of the payload |
//! | varint | serial: one more than that of the last frame before, whatever its segment |
//! | varint, varint | term, LSN |
//! | | payload |
//!
//! An entry that follows the one before it in the same term needs none of the three, nor does a hard
//! state: six bytes stand before the payload. But they are under the checksum, so that a frame is
//! sound only where it belongs:
//!
//! ```text
//!   Start 7 (2, 40)   Entry   Entry   Truncate 9 (2, 41)   Entry 10 (3, 42)   Entry
//!                     7       8                                               11
//!                     (2, 41) (2, 42)                                         (3, 43)
//! ```
//!
//! Marks and starts are made where frames are laid out, so they take no serial of their own: theirs
//! is the serial of the frame that follows. The [chain](base::chain) of the log behind its position
//! stands in a start and in an install, where it is known; that of any other place follows from the
//! entries. A mark is looked for where nothing is known of what is
//! before it, so what is implied there is the place where it stands.

use base::codec::{checksum, checksum_append, put_varint, Reader};
use base::{Chain, Error, Lsn, Position, Result, Term};

/// The most bytes before the payload.
pub(crate) const HEADER_MAX: usize = 5 + 5 + 3 * VARINT_MAX;

/// The most bytes of a mark.
pub(crate) const MARK_MAX: usize = 6 + MARK_PAYLOAD_MAX;

const VARINT_MAX: usize = 10;
const MARK_PAYLOAD_MAX: usize = 2 * VARINT_MAX;

/// Where the byte with the kind is.
const KIND_AT: usize = 4;
const KIND_SHIFT: u32 = 5;
const EXPLICIT: u8 = 16;

/// The largest of the caller's kinds.
pub(crate) const USER_KIND_MAX: u8 = 15;

/// What stands in place of the caller's kind of a start that tells the chain.
const WITH_CHAIN: u8 = 1;

/// The longest payload; a longer entry is refused when it is appended.
pub(crate) const PAYLOAD_MAX: usize = 1 << 30;

/// What a frame says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum FrameKind {
    /// An entry of the log.
    Entry = 1,
    /// The hard state of consensus: the newest one counts.
    HardState = 2,
    /// A file position up to which everything was durable when the mark was written.
    Mark = 3,
    /// Begins a segment: where the log went on from, and what it needs of earlier segments.
    Start = 4,
    /// The log ends at this frame's position: what follows replaces its tail.
    Truncate = 5,
    /// The log is empty and goes on after this frame's position.
    Install = 6,
}

impl FrameKind {
    fn from_u8(code: u8) -> Option<FrameKind> {
        use FrameKind::*;
        [Entry, HardState, Mark, Start, Truncate, Install]
            .into_iter()
            .find(|kind| *kind as u8 == code)
    }

    /// Whether the frame is numbered.
    pub(crate) fn takes_serial(self) -> bool {
        !matches!(self, FrameKind::Mark | FrameKind::Start)
    }

    /// Whether the log ends at the frame's position.
    pub(crate) fn moves(self) -> bool {
        !matches!(self, FrameKind::HardState | FrameKind::Mark)
    }

    /// The position that need not be said after a frame at `last`.
    fn implied(self, last: Position) -> Option<Position> {
        match self {
            FrameKind::Entry => Some(Position {
                term: last.term,
                lsn: last.lsn.next(),
            }),
            FrameKind::HardState | FrameKind::Mark => Some(last),
            FrameKind::Start | FrameKind::Truncate | FrameKind::Install => None,
        }
    }
}

/// A place in the log's files: a segment's sequence number and an offset in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct FilePosition {
    /// The segment.
    pub(crate) sequence: u64,
    /// Bytes from its beginning.
    pub(crate) offset: u64,
}

/// A frame without its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: FrameKind,
    pub(crate) user_kind: u8,
    pub(crate) serial: u64,
    pub(crate) position: Position,
}

/// What is known of the next frame from those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Next {
    /// Its serial.
    pub(crate) serial: u64,
    /// Where the log ends before it.
    pub(crate) last: Position,
}

impl Next {
    /// What is known behind a frame, if `last` was where the log ended before it.
    pub(crate) fn after(frame: Frame, last: Position) -> Next {
        Next {
            serial: frame.serial + u64::from(frame.kind.takes_serial()),
            last: if frame.kind.moves() {
                frame.position
            } else {
                last
            },
        }
    }
}

/// A sound frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parsed<'a> {
    pub(crate) frame: Frame,
    pub(crate) payload: &'a [u8],
    /// Bytes of the whole.
    pub(crate) len: usize,
}

/// What the payload of a [`FrameKind::Start`] says; the position before the segment's first entry
/// stands in the frame's header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    /// Where the log stood when it went on here; frames of that segment behind it count for
    /// nothing, and so do segments between the two. Sequence 0: nowhere.
    pub(crate) from: FilePosition,
    /// As in a mark.
    pub(crate) durable: FilePosition,
    /// The chain before the segment's first entry, if it is known.
    pub(crate) chain: Option<Chain>,
    /// The hard state at this point.
    pub(crate) hard_state: Vec<u8>,
}

/// Appends a frame behind one at `last`.
pub(crate) fn put_frame(out: &mut Vec<u8>, frame: Frame, last: Position, payload: &[u8]) {
    let implied = frame.kind.implied(last) == Some(frame.position);
    let words = [frame.serial, frame.position.term.0, frame.position.lsn.0];
    put(out, frame, implied, words, payload);
}

fn put(out: &mut Vec<u8>, frame: Frame, implied: bool, words: [u64; 3], payload: &[u8]) {
    assert!(
        payload.len() <= PAYLOAD_MAX && frame.user_kind <= USER_KIND_MAX,
        "a frame of {} bytes, at most {PAYLOAD_MAX}, of kind {}, at most {USER_KIND_MAX}",
        payload.len(),
        frame.user_kind
    );
    let begin = out.len();
    let explicit = if implied { 0 } else { EXPLICIT };
    out.extend_from_slice(&[0; KIND_AT]);
    out.push((frame.kind as u8) << KIND_SHIFT | explicit | frame.user_kind);
    put_varint(out, payload.len() as u64);
    if !implied {
        words.iter().for_each(|word| put_varint(out, *word));
    }
    let crc = seal(&out[begin + KIND_AT..], words, payload);
    out[begin..begin + KIND_AT].copy_from_slice(&crc.to_le_bytes());
    out.extend_from_slice(payload);
}

/// The checksum of a frame: `words` are under it whether they are written or not.
fn seal(header: &[u8], words: [u64; 3], payload: &[u8]) -> u32 {
    let mut implied = [0; 24];
    for (bytes, word) in implied.chunks_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    checksum_append(checksum_append(checksum(header), &implied), payload)
}

/// Appends a mark that will stand at `at`, not below what is durable.
pub(crate) fn put_mark(out: &mut Vec<u8>, at: FilePosition, durable: FilePosition) {
    assert!(
        durable <= at,
        "a mark at {at:?} of what is durable up to {durable:?}"
    );
    let back = at.sequence - durable.sequence;
    let mut payload = Vec::with_capacity(MARK_PAYLOAD_MAX);
    put_varint(&mut payload, back);
    put_varint(
        &mut payload,
        match back {
            0 => at.offset - durable.offset,
            _ => durable.offset,
        },
    );
    let frame = Frame {
        kind: FrameKind::Mark,
        user_kind: 0,
        serial: 0,
        position: Position::default(),
    };
    put(out, frame, true, [at.sequence, at.offset, 0], &payload);
}

/// Appends the frame that begins a segment.
pub(crate) fn put_start(out: &mut Vec<u8>, serial: u64, last: Position, start: &Start) {
    let mut payload = Vec::with_capacity(36 + start.hard_state.len());
    put_file_position(&mut payload, start.from);
    put_file_position(&mut payload, start.durable);
    payload.extend(chain_bytes(start.chain).into_iter().flatten());
    payload.extend_from_slice(&start.hard_state);
    let frame = Frame {
        kind: FrameKind::Start,
        user_kind: if start.chain.is_some() { WITH_CHAIN } else { 0 },
        serial,
        position: last,
    };
    put_frame(out, frame, last, &payload);
}

/// The most bytes of a start with a hard state of this length.
pub(crate) fn start_max(hard_state: usize) -> usize {
    HEADER_MAX + 36 + hard_state
}

/// A chain as starts and installs have it.
pub(crate) fn chain_bytes(chain: Option<Chain>) -> Option<[u8; 4]> {
    chain.map(|chain| chain.0.to_le_bytes())
}

/// The chain that a start or an install tells.
pub(crate) fn parse_chain(kind: FrameKind, user_kind: u8, payload: &[u8]) -> Option<Chain> {
    let at = match kind {
        FrameKind::Start if user_kind == WITH_CHAIN => 32,
        FrameKind::Install => 0,
        _ => return None,
    };
    let bytes = payload.get(at..at + 4)?;
    Some(Chain(le_u32(bytes)))
}

fn put_file_position(out: &mut Vec<u8>, position: FilePosition) {
    out.extend_from_slice(&position.sequence.to_le_bytes());
    out.extend_from_slice(&position.offset.to_le_bytes());
}

/// What the first bytes of a frame say, sound or not.
struct Header {
    kind: FrameKind,
    user_kind: u8,
    /// Serial, term, LSN, if they are there.
    words: Option<[u64; 3]>,
    len: usize,
    payload: usize,
}

impl Header {
    fn parse(bytes: &[u8]) -> Option<Header> {
        let rest = bytes.get(KIND_AT..)?;
        let mut reader = Reader::new(rest);
        let first = reader.u8().ok()?;
        let kind = FrameKind::from_u8(first >> KIND_SHIFT)?;
        let payload = reader.varint_as().ok()?;
        let mut words = None;
        if first & EXPLICIT != 0 {
            let mut word = || reader.varint().ok();
            words = Some([word()?, word()?, word()?]);
        }
        (payload <= PAYLOAD_MAX).then_some(Header {
            kind,
            user_kind: first & USER_KIND_MAX,
            words,
            len: KIND_AT + rest.len() - reader.rest().len(),
            payload,
        })
    }
}

/// Bytes of the start that `bytes` begin with, if it may be one.
pub(crate) fn start_len(bytes: &[u8]) -> Option<usize> {
    let header = Header::parse(bytes).filter(|header| header.kind == FrameKind::Start)?;
    Some(header.len + header.payload)
}

/// Whether `bytes` may begin with a mark.
pub(crate) fn may_be_mark(bytes: &[u8]) -> bool {
    let is_short = |len: &u8| usize::from(*len) <= MARK_PAYLOAD_MAX;
    bytes.get(KIND_AT) == Some(&((FrameKind::Mark as u8) << KIND_SHIFT))
        && bytes.get(KIND_AT + 1).is_some_and(is_short)
}

/// The payload of a frame that was just made.
pub(crate) fn payload(bytes: &[u8]) -> &[u8] {
    let header = Header::parse(bytes);
    let payload = header.and_then(|header| bytes.get(header.len..header.len + header.payload));
    payload.unwrap_or_default()
}

/// Whether a frame that was just made says, or rightly implies, its position behind `last`.
pub(crate) fn follows(bytes: &[u8], frame: Frame, last: Position) -> bool {
    let is_explicit = bytes.get(KIND_AT).is_some_and(|kind| kind & EXPLICIT != 0);
    is_explicit || frame.kind.implied(last) == Some(frame.position)
}

/// The frame that `bytes`, which stand at `at`, begin with; none if there is none that is sound.
/// Where nothing is known of what is before it, only one that implies nothing of that can be.
pub(crate) fn parse_frame(
    bytes: &[u8],
    at: FilePosition,
    next: Option<Next>,
) -> Option<Parsed<'_>> {
    let header = Header::parse(bytes)?;
    let payload = bytes.get(header.len..)?.get(..header.payload)?;
    let (sealed, frame) = match (header.kind, header.words) {
        (FrameKind::Mark, Some(_)) => return None,
        (FrameKind::Mark, None) => {
            let next = next.unwrap_or(Next {
                serial: 0,
                last: Position::default(),
            });
            let sealed = [at.sequence, at.offset, 0];
            (sealed, (next.serial, next.last))
        }
        (_, Some([serial, term, lsn])) => {
            let position = Position {
                term: Term(term),
                lsn: Lsn(lsn),
            };
            ([serial, term, lsn], (serial, position))
        }
        (kind, None) => {
            let Next { serial, last } = next?;
            let position = kind.implied(last)?;
            let sealed = [serial, position.term.0, position.lsn.0];
            (sealed, (serial, position))
        }
    };
    if seal(&bytes[KIND_AT..header.len], sealed, payload) != le_u32(bytes) {
        return None;
    }
    let (serial, position) = frame;
    Some(Parsed {
        frame: Frame {
            kind: header.kind,
            user_kind: header.user_kind,
            serial,
            position,
        },
        payload,
        len: header.len + header.payload,
    })
}

/// The durable position that a sound mark or start at `at` tells.
pub(crate) fn parse_durable(
    kind: FrameKind,
    payload: &[u8],
    at: FilePosition,
) -> Result<Option<FilePosition>> {
    match kind {
        FrameKind::Mark => Ok(Some(parse_mark(payload, at)?)),
        FrameKind::Start => Ok(Some(parse_start(0, payload)?.durable)),
        _ => Ok(None),
    }
}

fn parse_mark(payload: &[u8], at: FilePosition) -> Result<FilePosition> {
    let mut reader = Reader::new(payload);
    let (back, offset) = (reader.varint()?, reader.varint()?);
    let sequence = at.sequence.checked_sub(back);
    let offset = match back {
        0 => at.offset.checked_sub(offset),
        _ => Some(offset),
    };
    match (sequence, offset) {
        (Some(sequence), Some(offset)) => Ok(FilePosition { sequence, offset }),
        _ => Err(Error::corrupted("a mark of the log points before it")),
    }
}

/// The payload of a start.
pub(crate) fn parse_start(user_kind: u8, payload: &[u8]) -> Result<Start> {
    let chain = parse_chain(FrameKind::Start, user_kind, payload);
    let rest = if chain.is_some() { 36 } else { 32 };
    Ok(Start {
        chain,
        from: parse_file_position(payload)?,
        durable: parse_file_position(payload.get(16..).unwrap_or_default())?,
        hard_state: payload.get(rest..).unwrap_or_default().to_vec(),
    })
}

fn parse_file_position(bytes: &[u8]) -> Result<FilePosition> {
    if bytes.len() < 16 {
        return Err(Error::corrupted("a start of the log is too short"));
    }
    Ok(FilePosition {
        sequence: le_u64(&bytes[..8]),
        offset: le_u64(&bytes[8..16]),
    })
}

pub(crate) fn le_u32(bytes: &[u8]) -> u32 {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

pub(crate) fn le_u64(bytes: &[u8]) -> u64 {
    u64::from(le_u32(bytes)) | u64::from(le_u32(&bytes[4..])) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: FilePosition = FilePosition {
        sequence: 2,
        offset: 500,
    };

    fn position(term: u64, lsn: u64) -> Position {
        Position {
            term: Term(term),
            lsn: Lsn(lsn),
        }
    }

    #[test]
    fn frames_come_back_and_damage_is_seen() {
        let frame = Frame {
            kind: FrameKind::Entry,
            user_kind: 7,
            serial: 9,
            position: position(3, 4),
        };
        for len in [0, 1, 8, 9, 1000] {
            for last in [position(3, 3), position(2, 3), position(3, 1 << 40)] {
                let next = Some(Next { serial: 9, last });
                let payload = vec![0xab; len];
                let mut out = Vec::new();
                put_frame(&mut out, frame, last, &payload);
                let parsed = parse_frame(&out, AT, next).unwrap();
                assert_eq!((parsed.frame, parsed.payload), (frame, &payload[..]));
                assert_eq!(parsed.len, out.len());
                for at in 0..out.len() {
                    let mut damaged = out.clone();
                    damaged[at] ^= 1;
                    assert_eq!(parse_frame(&damaged, AT, next), None, "byte {at} of {len}");
                    assert_eq!(parse_frame(&out[..at], AT, next), None, "cut at {at}");
                }
            }
        }
        let next = Next {
            serial: 1,
            last: position(0, 0),
        };
        assert_eq!(parse_frame(&[0; 64], AT, Some(next)), None);
    }

    #[test]
    fn a_frame_is_sound_only_where_it_belongs() {
        let next = Next {
            serial: 9,
            last: position(3, 3),
        };
        let frame = Frame {
            kind: FrameKind::Entry,
            user_kind: 0,
            serial: 9,
            position: position(3, 4),
        };
        let mut entry = Vec::new();
        put_frame(&mut entry, frame, next.last, b"data");
        assert!(parse_frame(&entry, AT, Some(next)).is_some());
        for (serial, last) in [
            (8, position(3, 3)),
            (9, position(4, 3)),
            (9, position(3, 2)),
        ] {
            let other = Next { serial, last };
            assert_eq!(parse_frame(&entry, AT, Some(other)), None, "{other:?}");
        }
        assert_eq!(parse_frame(&entry, AT, None), None);

        for durable in [(2, 500), (2, 64), (1, 70_000)] {
            let (sequence, offset) = durable;
            let durable = FilePosition { sequence, offset };
            let mut mark = Vec::new();
            put_mark(&mut mark, AT, durable);
            assert!(may_be_mark(&mark) && mark.len() <= MARK_MAX);
            let parsed = parse_frame(&mark, AT, None).unwrap();
            let told = parse_durable(parsed.frame.kind, parsed.payload, AT).unwrap();
            assert_eq!(told, Some(durable));
            let elsewhere = FilePosition { offset: 501, ..AT };
            assert_eq!(parse_frame(&mark, elsewhere, Some(next)), None);
        }
    }

    /// What every commit pays.
    #[test]
    fn six_bytes_frame_an_entry_and_nine_a_batch() {
        let last = position(300, 1 << 40);
        let entry = Frame {
            kind: FrameKind::Entry,
            user_kind: 1,
            serial: 1 << 41,
            position: position(300, (1 << 40) + 1),
        };
        let mut out = Vec::new();
        put_frame(&mut out, entry, last, &[1; 100]);
        assert_eq!(out.len(), 6 + 100);
        out.clear();
        put_mark(&mut out, AT, FilePosition { offset: 300, ..AT });
        assert_eq!(out.len(), 9);
    }
}
