//! Bytes of a stream cut into messages, and the pieces that messages are made of.
//!
//! A message is a type byte, a length (4 bytes, itself included) and a body; only the first packet
//! of a connection lacks the type ([`crate::startup`]). A [`Framer`] collects bytes until a whole
//! message is there; it never trusts a length with memory that has not arrived.
//!
//! ```
//! use pg::frame::{Framer, Side};
//! let mut framer = Framer::new(Side::Backend);
//! framer.feed(b"Z\0\0\0\x05");
//! assert!(framer.next().unwrap().is_none());
//! framer.feed(b"I");
//! let frame = framer.next().unwrap().unwrap();
//! assert_eq!((frame.kind, frame.body), (b'Z', &b"I"[..]));
//! ```
//!
//! Source: PostgreSQL 15 manual, sections 55.1.1 and 55.6.

use base::error::{Error, ErrorClass, Result, SqlState};
use base::limits::MESSAGE_BYTES_MAX;

/// Messages that carry no query, data or parameters may be at most this long; a longer one closes
/// the connection with 08P01 (PostgreSQL's own limit).
pub const SMALL_MESSAGE_BYTES_MAX: usize = 10_000;

/// An empty framer gives memory above this back.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// The least room that [`Framer::space`] offers.
const SPACE_BYTES_MIN: usize = 8 << 10;

/// Type byte and length.
const HEADER_BYTES: usize = 5;

/// Who sent the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// A client: types and lengths are checked strictly.
    Frontend,
    /// A server.
    Backend,
}

/// One whole message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its type byte.
    pub kind: u8,
    /// What follows the length.
    pub body: &'a [u8],
}

/// A message with memory of its own, to be used again for the next.
#[derive(Clone, Debug, Default)]
pub struct Message {
    /// Its type byte.
    pub kind: u8,
    /// What follows the length.
    pub body: Vec<u8>,
}

/// FATAL 08P01.
pub fn violation(message: impl Into<String>) -> Error {
    Error::of_class(ErrorClass::Session, SqlState::PROTOCOL_VIOLATION, message)
}

/// Collects bytes until whole messages are there.
///
/// Invariant: `mark <= start <= end <= buffer.len()`; what lies between the latter is received and
/// not yet taken, and what lies between the former is taken and kept, to be taken again.
#[derive(Debug)]
pub struct Framer {
    side: Side,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    taken: u64,
    /// Where what is kept begins; none where nothing is.
    mark: Option<usize>,
}

impl Framer {
    /// Nothing received yet.
    pub fn new(side: Side) -> Framer {
        Framer {
            side,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            taken: 0,
            mark: None,
        }
    }

    /// The memory that it takes, in bytes.
    pub fn memory(&self) -> usize {
        self.buffer.capacity()
    }

    /// How many bytes were taken, of all that were received.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Room to read into; [`Framer::filled`] says how much came.
    pub fn space(&mut self) -> &mut [u8] {
        let kept = self.start - self.mark.unwrap_or(self.start);
        if kept > KEPT_BYTES_MAX {
            self.mark = None;
        }
        let low = self.mark.unwrap_or(self.start);
        if low == self.end {
            self.start = 0;
            self.end = 0;
            self.mark = self.mark.map(|_| 0);
            if self.buffer.len() > KEPT_BYTES_MAX {
                self.buffer = Vec::new();
            }
        }
        if self.buffer.len() - self.end < SPACE_BYTES_MIN {
            let low = self.mark.unwrap_or(self.start);
            self.buffer.copy_within(low..self.end, 0);
            self.end -= low;
            self.start -= low;
            self.mark = self.mark.map(|_| 0);
            let wanted = (self.end + SPACE_BYTES_MIN).max(self.end * 3 / 2);
            if self.buffer.len() < self.end + SPACE_BYTES_MIN {
                self.buffer.resize(wanted, 0);
            }
        }
        &mut self.buffer[self.end..]
    }

    /// The first `count` bytes of [`Framer::space`] have been filled.
    pub fn filled(&mut self, count: usize) {
        assert!(
            self.end + count <= self.buffer.len(),
            "{count} bytes filled at {} of {}",
            self.end,
            self.buffer.len()
        );
        self.end += count;
    }

    /// Takes some bytes in.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let space = self.space();
            let count = space.len().min(bytes.len());
            space[..count].copy_from_slice(&bytes[..count]);
            self.filled(count);
            bytes = &bytes[count..];
        }
    }

    /// What is taken from here on is kept, unless it becomes too much.
    pub fn keep(&mut self) {
        self.mark = Some(self.start);
    }

    /// Nothing is kept any more.
    pub fn forget(&mut self) {
        self.mark = None;
    }

    /// What was kept is there to be taken again; false when it was too much.
    pub fn rewind(&mut self) -> bool {
        let Some(mark) = self.mark.take() else {
            return false;
        };
        self.taken -= (self.start - mark) as u64;
        self.start = mark;
        true
    }

    /// Bytes received and not yet taken.
    pub fn buffered(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Whether a whole message (or an error) is there to be taken.
    pub fn has_message(&self) -> bool {
        !matches!(self.length(), Ok(None))
    }

    /// The next whole message.
    ///
    /// # Errors
    /// FATAL 08P01 for an unknown type or an impossible length; nothing can follow.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Frame<'_>>> {
        let Some(length) = self.length()? else {
            return Ok(None);
        };
        let start = self.start;
        self.start += length;
        self.taken += length as u64;
        let bytes = &self.buffer[start..start + length];
        Ok(Some(Frame {
            kind: bytes[0],
            body: &bytes[HEADER_BYTES..],
        }))
    }

    /// Moves the next whole message into `message`; false when there is none yet.
    ///
    /// # Errors
    /// As [`Framer::next`].
    pub fn next_into(&mut self, message: &mut Message) -> Result<bool> {
        let Some(frame) = self.next()? else {
            return Ok(false);
        };
        message.kind = frame.kind;
        message.body.clear();
        if message.body.capacity() > KEPT_BYTES_MAX && frame.body.len() < KEPT_BYTES_MAX {
            message.body.shrink_to(KEPT_BYTES_MAX);
        }
        message.body.extend_from_slice(frame.body);
        Ok(true)
    }

    /// The next message's type byte, when a whole message is there.
    pub fn peek(&self) -> Option<u8> {
        match self.length() {
            Ok(Some(_)) => self.buffered().first().copied(),
            _ => None,
        }
    }

    /// The length of the next message, header included, once all of it is there.
    fn length(&self) -> Result<Option<usize>> {
        let bytes = self.buffered();
        let Some(kind) = bytes.first() else {
            return Ok(None);
        };
        if self.side == Side::Frontend && body_bytes_max(*kind) == 0 {
            return Err(violation(format!("invalid frontend message type {kind}")));
        }
        let Some(length) = bytes.get(1..HEADER_BYTES) else {
            return Ok(None);
        };
        let length = u32::from_be_bytes([length[0], length[1], length[2], length[3]]) as usize;
        let most = match self.side {
            Side::Frontend => body_bytes_max(*kind),
            Side::Backend => MESSAGE_BYTES_MAX,
        };
        if length < 4 || length > most {
            return Err(violation(format!(
                "invalid message length {length} (at most {most})"
            )));
        }
        Ok((bytes.len() > length).then_some(length + 1))
    }
}

/// The longest length that a frontend message of this type may have; 0 for no such type.
fn body_bytes_max(kind: u8) -> usize {
    match kind {
        b'Q' | b'P' | b'B' | b'F' | b'd' => MESSAGE_BYTES_MAX,
        b'C' | b'D' | b'E' | b'H' | b'S' | b'X' | b'c' | b'f' | b'p' => SMALL_MESSAGE_BYTES_MAX,
        _ => 0,
    }
}

/// Appends one message: its type, a length that is filled in, and what `body` appends.
pub fn put_message(out: &mut Vec<u8>, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
    out.push(kind);
    put_sized(out, body);
}

/// Appends a length that counts itself, and what `body` appends.
pub(crate) fn put_sized(out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    body(out);
    let length = out.len() - start;
    assert!(
        i32::try_from(length).is_ok(),
        "a message of {length} bytes is longer than the protocol can say"
    );
    out[start..start + 4].copy_from_slice(&(length as u32).to_be_bytes());
}

/// Appends text and its terminating zero; zeros inside cannot be said and are left out.
pub fn put_cstr(out: &mut Vec<u8>, text: &[u8]) {
    if text.contains(&0) {
        out.extend(text.iter().filter(|byte| **byte != 0));
    } else {
        out.extend_from_slice(text);
    }
    out.push(0);
}

/// Appends a count, which must fit 16 bits.
pub(crate) fn put_count(out: &mut Vec<u8>, count: usize) {
    let count = u16::try_from(count).expect("lists are limited to what 16 bits can count");
    out.extend_from_slice(&count.to_be_bytes());
}

/// Reads the body of a message; whatever is malformed is FATAL 08P01.
#[derive(Clone, Copy, Debug)]
pub struct BodyReader<'a> {
    rest: &'a [u8],
}

impl<'a> BodyReader<'a> {
    /// Reads from the start of a body.
    pub fn new(body: &'a [u8]) -> BodyReader<'a> {
        BodyReader { rest: body }
    }

    /// The next `count` bytes.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        if count > self.rest.len() {
            return Err(violation("insufficient data left in message"));
        }
        let (head, tail) = self.rest.split_at(count);
        self.rest = tail;
        Ok(head)
    }

    /// Everything that is left.
    pub fn take_rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// One byte.
    pub fn u8(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    /// A 16-bit integer.
    pub fn i16(&mut self) -> Result<i16> {
        let bytes = self.take(2)?;
        Ok(i16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// A 16-bit count.
    pub fn count(&mut self) -> Result<usize> {
        Ok(self.i16()? as u16 as usize)
    }

    /// A 32-bit integer.
    pub fn i32(&mut self) -> Result<i32> {
        let bytes = self.take(4)?;
        Ok(i32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// Text up to its terminating zero.
    pub fn cstr(&mut self) -> Result<&'a [u8]> {
        let Some(length) = self.rest.iter().position(|byte| *byte == 0) else {
            return Err(violation("invalid string in message"));
        };
        let text = &self.rest[..length];
        self.rest = &self.rest[length + 1..];
        Ok(text)
    }

    /// A nullable value: a length, -1 for NULL, and its bytes.
    pub fn value(&mut self) -> Result<Option<&'a [u8]>> {
        match self.i32()? {
            -1 => Ok(None),
            length => match usize::try_from(length) {
                Ok(length) => self.take(length).map(Some),
                Err(_) => Err(violation(format!("invalid value length {length}"))),
            },
        }
    }

    /// Whether everything has been read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Checks that everything has been read.
    pub fn finish(self) -> Result<()> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(violation("invalid message format"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_out_whole_however_they_arrive() {
        let mut stream = Vec::new();
        put_message(&mut stream, b'Q', |out| put_cstr(out, b"select 1"));
        put_message(&mut stream, b'S', |_| {});
        put_message(&mut stream, b'Q', |out| put_cstr(out, &[b'x'; 100_000]));
        for step in [1, 2, 3, 7, 4096, 1 << 20] {
            let mut framer = Framer::new(Side::Frontend);
            let mut seen = Vec::new();
            for part in stream.chunks(step) {
                framer.feed(part);
                while let Some(frame) = framer.next().unwrap() {
                    seen.push((frame.kind, frame.body.len()));
                }
            }
            assert_eq!(seen, [(b'Q', 9), (b'S', 0), (b'Q', 100_001)], "step {step}");
            assert!(framer.buffered().is_empty());
        }
    }

    #[test]
    fn what_is_kept_comes_again() {
        let mut framer = Framer::new(Side::Frontend);
        let mut text = Vec::new();
        for size in [3, 40_000, 5, 20_000] {
            text.clear();
            put_message(&mut text, b'Q', |out| out.resize(out.len() + size, b'x'));
            framer.feed(&text);
            let taken = framer.taken();
            framer.keep();
            assert_eq!(framer.next().unwrap().unwrap().kind, b'Q');
            framer.feed(b"S\0\0\0\x04");
            assert_eq!(framer.next().unwrap().unwrap().kind, b'S');
            // What comes in meanwhile stays behind.
            framer.feed(b"H\0\0\0\x04");
            assert!(framer.rewind(), "{size} bytes are kept");
            assert_eq!(framer.taken(), taken);
            let frame = framer.next().unwrap().unwrap();
            assert_eq!((frame.kind, frame.body.len()), (b'Q', size));
            assert_eq!(framer.next().unwrap().unwrap().kind, b'S');
            assert_eq!(framer.next().unwrap().unwrap().kind, b'H');
            framer.keep();
            framer.forget();
            assert!(!framer.rewind(), "nothing is kept any more");
        }
        framer.keep();
        for _ in 0..4 {
            text.clear();
            put_message(&mut text, b'Q', |out| out.resize(out.len() + 40_000, b'x'));
            framer.feed(&text);
            framer.next().unwrap().unwrap();
        }
        assert!(!framer.rewind(), "that was too much");
    }

    #[test]
    fn impossible_frames_are_violations() {
        for bytes in [
            &b"!"[..],
            b"Q\0\0\0\x03",
            b"Q\xff\xff\xff\xff",
            b"S\0\x01\0\0",
            b"Q\x40\0\0\x01",
        ] {
            let mut framer = Framer::new(Side::Frontend);
            framer.feed(bytes);
            assert!(framer.has_message());
            let error = framer.next().unwrap_err();
            assert_eq!(error.state(), SqlState::PROTOCOL_VIOLATION, "{bytes:?}");
        }
    }
}
