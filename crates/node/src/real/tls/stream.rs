//! An encrypted stream over any other.
//!
//! The library works on bytes in memory; this hands them to and fro. A write counts as done once
//! all of its encrypted bytes have been taken by the stream below, so that whoever writes and then
//! closes loses nothing.

use std::io::{self, Read, Write};
use std::task::{ready, Context, Poll, Waker};

use base::env::Stream;
use rustls::Connection;

/// Encrypted bytes read at once.
const READ_BYTES: usize = 16 << 10;

/// Bytes that are encrypted at once.
const WRITE_BYTES_MAX: usize = 64 << 10;

/// A stream with TLS on it.
pub struct TlsStream {
    below: Box<dyn Stream>,
    tls: Connection,
    /// Encrypted bytes that have come and that the library has not taken yet: from `start` on.
    incoming: Vec<u8>,
    start: usize,
    /// Encrypted bytes that the stream below has not taken yet: from `sent` on.
    outgoing: Vec<u8>,
    sent: usize,
    /// Bytes of the caller that are among them, if the caller has not been told.
    taken: usize,
}

impl TlsStream {
    /// Shakes hands.
    ///
    /// # Errors
    /// `InvalidData` where the other side is refused or speaks nonsense; whatever the stream gives.
    pub async fn shake_hands(below: Box<dyn Stream>, tls: Connection) -> io::Result<TlsStream> {
        let mut stream = TlsStream {
            below,
            tls,
            incoming: Vec::new(),
            start: 0,
            outgoing: Vec::new(),
            sent: 0,
            taken: 0,
        };
        while stream.tls.is_handshaking() {
            std::future::poll_fn(|cx| stream.poll_flush(cx)).await?;
            if stream.tls.is_handshaking() {
                let count = std::future::poll_fn(|cx| stream.poll_fill(cx)).await?;
                if count == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
        }
        std::future::poll_fn(|cx| stream.poll_flush(cx)).await?;
        Ok(stream)
    }

    /// What the library knows of the connection.
    pub fn tls(&self) -> &Connection {
        &self.tls
    }

    /// Writes what the library has to say.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            while self.sent < self.outgoing.len() {
                let written = ready!(self.below.poll_write(cx, &self.outgoing[self.sent..]))?;
                if written == 0 {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                self.sent += written;
            }
            self.outgoing.clear();
            self.outgoing.shrink_to(2 * WRITE_BYTES_MAX);
            self.sent = 0;
            if !self.tls.wants_write() {
                return Poll::Ready(Ok(()));
            }
            self.tls.write_tls(&mut self.outgoing)?;
        }
    }

    /// Gives the library encrypted bytes, read if need be: how many there were, 0 at the end.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.start == self.incoming.len() {
            self.incoming.resize(READ_BYTES, 0);
            self.start = READ_BYTES;
            let read = self.below.poll_read(cx, &mut self.incoming);
            let count = match read {
                Poll::Ready(Ok(count)) => count,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            };
            self.incoming.truncate(count);
            self.start = 0;
        }
        let mut rest = &self.incoming[self.start..];
        let count = self.tls.read_tls(&mut rest)?;
        self.start += count;
        if let Err(error) = self.tls.process_new_packets() {
            // The other side should learn why, if it still listens.
            let _ = self.poll_flush(cx);
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, error)));
        }
        Poll::Ready(Ok(count))
    }
}

impl Stream for TlsStream {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            match self.tls.reader().read(buffer) {
                Ok(count) => return Poll::Ready(Ok(count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // It was closed without a goodbye: to a protocol with an end of its own, an end.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    return Poll::Ready(Ok(0));
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
            ready!(self.poll_fill(cx))?;
            // What was read may ask for an answer of the library's own.
            if self.tls.wants_write() && self.taken == 0 {
                if let Poll::Ready(Err(error)) = self.poll_flush(cx) {
                    return Poll::Ready(Err(error));
                }
            }
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.taken == 0 {
            ready!(self.poll_flush(cx))?;
            let count = bytes.len().min(WRITE_BYTES_MAX);
            self.taken = self.tls.writer().write(&bytes[..count])?;
        }
        ready!(self.poll_flush(cx))?;
        Poll::Ready(Ok(std::mem::take(&mut self.taken)))
    }

    fn can_finish(&self) -> bool {
        self.below.can_finish()
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.tls.send_close_notify();
        ready!(self.poll_flush(cx))?;
        self.below.poll_finish(cx)
    }

    fn detach(&mut self) -> io::Result<()> {
        self.below.detach()
    }
}

impl Drop for TlsStream {
    /// Says goodbye, if that takes no wait: OpenSSL's clients complain of an end without one.
    fn drop(&mut self) {
        self.tls.send_close_notify();
        let _ = self.poll_flush(&mut Context::from_waker(Waker::noop()));
    }
}
