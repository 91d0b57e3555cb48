//! Frames on a stream: a length of 4 bytes, big-endian, then so many bytes.
//!
//! ```
//! use base::framed::put_framed;
//!
//! let mut out = Vec::new();
//! put_framed(&mut out, b"hello");
//! assert_eq!(out, b"\0\0\0\x05hello");
//! ```
//!
//! # What it leaves out
//! What is in a frame, and how long one may be: whoever reads says so.

use std::io;

use crate::env::{read, Stream};

/// How much is read from a connection at once.
const READ_BYTES: usize = 64 << 10;

/// A buffer that a long frame has made larger than this is given back after it.
const BUFFER_KEPT_BYTES: usize = 1 << 20;

/// Appends bytes with their length before them.
pub fn put_framed(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).expect("a frame fits its length");
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(bytes);
}

/// Cuts what comes in on a stream into frames.
///
/// Memory grows with what has come, never with what a length claims.
#[derive(Default)]
pub struct Incoming {
    /// Bytes come in behind `end`, and were handed out before `start`.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Incoming {
    /// Goes on after bytes that were read already.
    pub fn after(read: Vec<u8>) -> Incoming {
        Incoming {
            start: 0,
            end: read.len(),
            buffer: read,
        }
    }

    /// The next frame, once it has come whole; none when the other side has closed between frames.
    ///
    /// # Errors
    /// `InvalidData` for a frame longer than `max`, `UnexpectedEof` within one, whatever the stream
    /// gives.
    pub async fn frame(
        &mut self,
        stream: &mut dyn Stream,
        max: usize,
    ) -> io::Result<Option<&[u8]>> {
        let length = loop {
            match self.length(max)? {
                Some(length) if self.end - self.start >= 4 + length => break length,
                _ => {}
            }
            if self.read(stream).await? == 0 {
                return match self.start == self.end {
                    true => Ok(None),
                    false => Err(io::ErrorKind::UnexpectedEof.into()),
                };
            }
        };
        let start = self.start + 4;
        self.start = start + length;
        Ok(Some(&self.buffer[start..self.start]))
    }

    /// What came after the last frame.
    pub fn into_rest(mut self) -> Vec<u8> {
        self.buffer.truncate(self.end);
        self.buffer.split_off(self.start)
    }

    fn length(&self, max: usize) -> io::Result<Option<usize>> {
        let Some(&[a, b, c, d]) = self.buffer[..self.end].get(self.start..self.start + 4) else {
            return Ok(None);
        };
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if length > max {
            let message = format!("a frame of {length} bytes, more than {max}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(Some(length))
    }

    async fn read(&mut self, stream: &mut dyn Stream) -> io::Result<usize> {
        self.make_room();
        let count = read(stream, &mut self.buffer[self.end..]).await?;
        self.end += count;
        Ok(count)
    }

    /// Leaves at least half of [`READ_BYTES`] free behind `end`.
    fn make_room(&mut self) {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            if self.buffer.len() > BUFFER_KEPT_BYTES {
                self.buffer = Vec::new();
            }
        }
        if self.buffer.len() - self.end >= READ_BYTES / 2 {
            return;
        }
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.buffer.len() - self.end < READ_BYTES / 2 {
            // Twice as much each time, so that a long frame is moved a few times only.
            self.buffer.resize(READ_BYTES.max(2 * self.end), 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    const LONGEST: usize = 256 << 20;

    /// Gives its bytes in pieces, then ends.
    struct Pieces {
        bytes: Vec<u8>,
        piece: usize,
    }

    impl Stream for Pieces {
        fn poll_read(&mut self, _: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
            let count = self.piece.min(buffer.len()).min(self.bytes.len());
            buffer[..count].copy_from_slice(&self.bytes[..count]);
            self.bytes.drain(..count);
            Poll::Ready(Ok(count))
        }

        fn poll_write(&mut self, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(bytes.len()))
        }
    }

    fn now<F: Future>(future: F) -> F::Output {
        let mut cx = Context::from_waker(Waker::noop());
        match pin!(future).poll(&mut cx) {
            Poll::Ready(value) => value,
            Poll::Pending => panic!("nothing here waits"),
        }
    }

    #[test]
    fn frames_come_in_whatever_pieces() {
        let long = vec![7; 3 * READ_BYTES];
        for piece in [1, 1_000, READ_BYTES, usize::MAX] {
            let mut bytes = Vec::new();
            put_framed(&mut bytes, b"one");
            put_framed(&mut bytes, b"");
            put_framed(&mut bytes, &long);
            let mut stream = Pieces { bytes, piece };
            let mut incoming = Incoming::default();
            for expected in [&b"one"[..], b"", &long] {
                let frame = now(incoming.frame(&mut stream, LONGEST)).unwrap();
                assert_eq!(frame, Some(expected));
            }
            assert_eq!(now(incoming.frame(&mut stream, 8)).unwrap(), None);
        }
    }

    #[test]
    fn bad_frames_are_refused() {
        let mut stream = Pieces {
            bytes: vec![0xff; 8],
            piece: 8,
        };
        let error = now(Incoming::default().frame(&mut stream, LONGEST)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        let mut stream = Pieces {
            bytes: vec![0, 0, 0, 9, 1],
            piece: 8,
        };
        let error = now(Incoming::default().frame(&mut stream, LONGEST)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
