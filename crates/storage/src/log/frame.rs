//! Frames: what a segment is made of after its header.
//!
//! | bytes | what |
//! |---|---|
//! | 0–3 | CRC-32C of all that follows, the payload included |
//! | 4–7 | length of the payload |
//! | 8–15 | serial: one more than that of the last frame before, whatever its segment |
//! | 16–23 | term |
//! | 24–31 | LSN |
//! | 32 | [`FrameKind`] |
//! | 33 | the caller's kind of an entry |
//! | 34–39 | zero |
//! | 40– | payload, then zeros up to a multiple of 8 |
//!
//! All numbers are little-endian. Marks and starts are made where frames are laid out, so they
//! take no serial of their own: theirs is the serial of the frame that follows.

use base::codec::{checksum, checksum_append};
use base::{Error, Lsn, Position, Result, Term};

/// Bytes before the payload.
pub(crate) const HEADER: usize = 40;

/// Bytes of a mark's payload.
pub(crate) const MARK_PAYLOAD: usize = 16;

/// Frames begin at multiples of this.
pub(crate) const ALIGN: usize = 8;

/// The longest payload; a longer entry is refused when it is appended.
pub(crate) const PAYLOAD_MAX: usize = 1 << 30;

/// What a frame says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum FrameKind {
    /// An entry of the log.
    Entry = 0xe1,
    /// The hard state of consensus: the newest one counts.
    HardState = 0xe2,
    /// A file position up to which everything was durable when the mark was written.
    Mark = 0xe3,
    /// Begins a segment: where the log went on from, and what it needs of earlier segments.
    Start = 0xe4,
    /// The log ends at this frame's position: what follows replaces its tail.
    Truncate = 0xe5,
    /// The log is empty and goes on after this frame's position.
    Install = 0xe6,
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

/// What the payload of a [`FrameKind::Start`] says; the position before the segment's first entry
/// stands in the frame's header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    /// Where the log stood when it went on here; frames of that segment behind it count for
    /// nothing, and so do segments between the two. Sequence 0: nowhere.
    pub(crate) from: FilePosition,
    /// As in a mark.
    pub(crate) durable: FilePosition,
    /// The hard state at this point.
    pub(crate) hard_state: Vec<u8>,
}

/// Bytes that a frame with a payload of this length takes.
pub(crate) fn frame_len(payload: usize) -> usize {
    (HEADER + payload).next_multiple_of(ALIGN)
}

/// Appends a frame.
pub(crate) fn put_frame(out: &mut Vec<u8>, frame: Frame, payload: &[u8]) {
    assert!(
        payload.len() <= PAYLOAD_MAX,
        "a frame of {} bytes, at most {PAYLOAD_MAX}",
        payload.len()
    );
    let mut header = [0u8; HEADER];
    header[4..8].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    header[8..16].copy_from_slice(&frame.serial.to_le_bytes());
    header[16..24].copy_from_slice(&frame.position.term.0.to_le_bytes());
    header[24..32].copy_from_slice(&frame.position.lsn.0.to_le_bytes());
    header[32] = frame.kind as u8;
    header[33] = frame.user_kind;
    let crc = checksum_append(checksum(&header[4..]), payload);
    header[..4].copy_from_slice(&crc.to_le_bytes());
    out.extend_from_slice(&header);
    out.extend_from_slice(payload);
    let padded = out.len() - HEADER - payload.len() + frame_len(payload.len());
    out.resize(padded, 0);
}

/// Appends a mark.
pub(crate) fn put_mark(out: &mut Vec<u8>, serial: u64, last: Position, durable: FilePosition) {
    let mut payload = Vec::with_capacity(MARK_PAYLOAD);
    put_file_position(&mut payload, durable);
    let frame = Frame {
        kind: FrameKind::Mark,
        user_kind: 0,
        serial,
        position: last,
    };
    put_frame(out, frame, &payload);
}

/// Appends the frame that begins a segment.
pub(crate) fn put_start(out: &mut Vec<u8>, serial: u64, last: Position, start: &Start) {
    let mut payload = Vec::with_capacity(32 + start.hard_state.len());
    put_file_position(&mut payload, start.from);
    put_file_position(&mut payload, start.durable);
    payload.extend_from_slice(&start.hard_state);
    let frame = Frame {
        kind: FrameKind::Start,
        user_kind: 0,
        serial,
        position: last,
    };
    put_frame(out, frame, &payload);
}

fn put_file_position(out: &mut Vec<u8>, position: FilePosition) {
    out.extend_from_slice(&position.sequence.to_le_bytes());
    out.extend_from_slice(&position.offset.to_le_bytes());
}

/// How long the payload after a header is, if it may be one.
pub(crate) fn payload_len(header: &[u8]) -> Option<usize> {
    let len = le_u32(header.get(4..HEADER)?) as usize;
    (len <= PAYLOAD_MAX).then_some(len)
}

/// The frame that `bytes` begin with, and its payload; none if there is none that is sound.
pub(crate) fn parse_frame(bytes: &[u8]) -> Option<(Frame, &[u8])> {
    let header = bytes.get(..HEADER)?;
    let kind = FrameKind::from_u8(header[32])?;
    let len = le_u32(&header[4..8]) as usize;
    if len > PAYLOAD_MAX || header[34..40] != [0; 6] {
        return None;
    }
    let payload = bytes.get(HEADER..HEADER + len)?;
    let crc = checksum_append(checksum(&header[4..]), payload);
    if crc != le_u32(&header[..4]) {
        return None;
    }
    let frame = Frame {
        kind,
        user_kind: header[33],
        serial: le_u64(&header[8..16]),
        position: Position {
            term: Term(le_u64(&header[16..24])),
            lsn: Lsn(le_u64(&header[24..32])),
        },
    };
    Some((frame, payload))
}

/// The durable position that a sound mark or start tells.
pub(crate) fn parse_durable(frame: Frame, payload: &[u8]) -> Result<Option<FilePosition>> {
    match frame.kind {
        FrameKind::Mark => Ok(Some(parse_file_position(payload)?)),
        FrameKind::Start => Ok(Some(parse_start(payload)?.durable)),
        _ => Ok(None),
    }
}

/// The payload of a start.
pub(crate) fn parse_start(payload: &[u8]) -> Result<Start> {
    Ok(Start {
        from: parse_file_position(payload)?,
        durable: parse_file_position(payload.get(16..).unwrap_or_default())?,
        hard_state: payload.get(32..).unwrap_or_default().to_vec(),
    })
}

fn parse_file_position(bytes: &[u8]) -> Result<FilePosition> {
    if bytes.len() < 16 {
        return Err(Error::corrupted("a mark of the log is too short"));
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

    #[test]
    fn frames_come_back_and_damage_is_seen() {
        let frame = Frame {
            kind: FrameKind::Entry,
            user_kind: 7,
            serial: 9,
            position: Position {
                term: Term(3),
                lsn: Lsn(4),
            },
        };
        for len in [0, 1, 8, 9, 1000] {
            let payload = vec![0xab; len];
            let mut out = Vec::new();
            put_frame(&mut out, frame, &payload);
            assert_eq!(out.len(), frame_len(len));
            assert_eq!(parse_frame(&out), Some((frame, &payload[..])));
            for at in 0..HEADER + len {
                let mut damaged = out.clone();
                damaged[at] ^= 1;
                assert_eq!(parse_frame(&damaged), None, "byte {at} of {len}");
            }
        }
        assert_eq!(parse_frame(&[0; 64]), None);
    }
}
