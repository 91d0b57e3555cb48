//! Connections to the nodes that lead other groups, on which they serve branches.
//!
//! ```text
//! Links ──connect──► Connection ──► carries one transaction after the other
//!                        ▲    │
//!                        └────┴── idle ones, by node, in Connections
//! ```
//! # Invariants
//! - A connection that is idle has nothing on its way in either direction, but for the end of the
//!   transaction before, and answers that it has not waited for: whoever takes it passes over them.
//! - A connection whose transaction has ended in any other way is closed, which takes the transaction
//!   back.

use std::io;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use base::env::{BoxFuture, Stream};
use base::framed::{put_framed, Incoming};
use base::sync::Mutex;
use base::NodeId;
use std::future::Future;

use super::calls::{Call, FRAME_BYTES_MAX};

/// So many idle connections to one node are kept.
const IDLE_MAX: usize = 64;

/// How the nodes that lead other groups are reached.
pub trait Links: Send + Sync {
    /// A new connection to a node, which serves branches on it from now on.
    ///
    /// # Errors
    /// Whatever the network gives.
    fn connect(&self, node: NodeId) -> BoxFuture<'static, io::Result<Box<dyn Stream>>>;
}

/// A stream of frames, in both directions.
pub(super) struct Connection {
    stream: Box<dyn Stream>,
    incoming: Incoming,
    /// What is to be written, and how much of it is.
    out: Vec<u8>,
    written: usize,
    /// So many answers are on their way.
    awaited: usize,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let waits = self.out.len() - self.written;
        f.debug_struct("Connection").field("waits", &waits).finish()
    }
}

impl Connection {
    /// Over a stream of which this was read already.
    pub fn over(stream: Box<dyn Stream>, read: Vec<u8>) -> Connection {
        Connection {
            stream,
            incoming: Incoming::after(read),
            out: Vec::new(),
            written: 0,
            awaited: 0,
        }
    }

    /// Has a frame written as soon as the connection is polled.
    pub fn put(&mut self, frame: &[u8]) {
        put_framed(&mut self.out, frame);
    }

    /// How many answers are on their way.
    pub fn awaited(&self) -> usize {
        self.awaited
    }

    /// Has a frame written now, as far as it can be, that is answered.
    pub fn ask(&mut self, frame: &[u8]) {
        self.put(frame);
        self.awaited += 1;
        // What goes wrong is found by whoever waits for the answer.
        let _ = self.poll_flush(&mut Context::from_waker(Waker::noop()));
    }

    /// Writes what it can.
    ///
    /// # Errors
    /// Whatever the stream gives.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.out.len() {
            match self.stream.poll_write(cx, &self.out[self.written..]) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(count)) => self.written += count,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
        self.out.clear();
        self.written = 0;
        Poll::Ready(Ok(()))
    }

    /// The next frame; none at the end.
    ///
    /// # Errors
    /// Whatever the stream gives.
    pub fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Vec<u8>>>> {
        let frame = self.incoming.frame(&mut *self.stream, FRAME_BYTES_MAX);
        let polled = pin!(frame).poll(cx);
        polled.map(|frame| frame.map(|frame| frame.map(<[u8]>::to_vec)))
    }

    /// What is answered, once everything is written.
    ///
    /// # Errors
    /// Whatever the stream gives; `UnexpectedEof` at its end.
    pub fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Vec<u8>>> {
        // What does not leave yet need not be in the way of what comes.
        if let Poll::Ready(Err(error)) = self.poll_flush(cx) {
            return Poll::Ready(Err(error));
        }
        match self.poll_frame(cx) {
            Poll::Ready(Ok(Some(frame))) => {
                self.awaited = self.awaited.saturating_sub(1);
                Poll::Ready(Ok(frame))
            }
            Poll::Ready(Ok(None)) => Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// The idle connections of a node to others.
pub(in super::super) struct Connections {
    links: Box<dyn Links>,
    idle: Mutex<Vec<(NodeId, Connection)>>,
}

impl Connections {
    /// None yet.
    pub fn new(links: Box<dyn Links>) -> Connections {
        Connections {
            links,
            idle: Mutex::default(),
        }
    }

    /// One that is idle. It may have broken since.
    pub(super) fn take(&self, node: NodeId) -> Option<Connection> {
        let mut idle = self.idle.lock();
        let place = idle.iter().rposition(|(other, _)| *other == node)?;
        Some(idle.remove(place).1)
    }

    /// A new one.
    ///
    /// # Errors
    /// Whatever the network gives.
    pub(super) async fn connect(&self, node: NodeId) -> io::Result<Connection> {
        let stream = self.links.connect(node).await?;
        Ok(Connection::over(stream, Vec::new()))
    }

    /// Keeps one whose transaction is over, if all that it has to say leaves at once.
    pub(super) fn give_back(&self, node: NodeId, mut connection: Connection) {
        let mut cx = Context::from_waker(Waker::noop());
        let is_flushed = matches!(connection.poll_flush(&mut cx), Poll::Ready(Ok(())));
        if !is_flushed || connection.stream.detach().is_err() {
            return;
        }
        let mut idle = self.idle.lock();
        let count = idle.iter().filter(|(other, _)| *other == node).count();
        if count < IDLE_MAX {
            idle.push((node, connection));
        }
    }

    /// Ends a transaction whose branch is dropped.
    pub(super) fn end(&self, node: NodeId, mut connection: Connection) {
        let mut frame = Vec::new();
        Call::End.encode(&mut frame);
        connection.put(&frame);
        self.give_back(node, connection);
    }
}
