//! Connections between the nodes of a small world, on which branches are served.

use std::collections::VecDeque;
use std::io;
use std::task::{Context, Poll, Waker};

use base::env::{BoxFuture, Stream};

use super::across::All;
use super::*;
use crate::engine::{serve_branches, Links, Served};

/// One way of a connection.
#[derive(Default)]
struct Way {
    bytes: VecDeque<u8>,
    is_closed: bool,
    reader: Option<Waker>,
}

/// One end of a connection.
struct End {
    from: Arc<Mutex<Way>>,
    to: Arc<Mutex<Way>>,
}

impl Stream for End {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut way = self.from.lock();
        if way.bytes.is_empty() && !way.is_closed {
            way.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let count = buffer.len().min(way.bytes.len());
        for (place, byte) in buffer.iter_mut().zip(way.bytes.drain(..count)) {
            *place = byte;
        }
        Poll::Ready(Ok(count))
    }

    fn poll_write(&mut self, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut way = self.to.lock();
        if way.is_closed {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        way.bytes.extend(bytes);
        if let Some(reader) = way.reader.take() {
            reader.wake();
        }
        Poll::Ready(Ok(bytes.len()))
    }
}

impl Drop for End {
    fn drop(&mut self) {
        for way in [&self.from, &self.to] {
            let mut way = way.lock();
            way.is_closed = true;
            if let Some(reader) = way.reader.take() {
                reader.wake();
            }
        }
    }
}

/// How a node of a small world reaches the others.
pub(super) struct Pipes {
    pub nodes: All,
    pub from: NodeId,
}

impl Links for Pipes {
    fn connect(&self, node: NodeId) -> BoxFuture<'static, io::Result<Box<dyn Stream>>> {
        let there = self.nodes.lock().get(&node).cloned();
        let from = self.from;
        Box::pin(async move {
            let there = there.ok_or(io::ErrorKind::ConnectionRefused)?;
            let (forth, back) = (Arc::<Mutex<Way>>::default(), Arc::default());
            let end = End {
                from: Arc::clone(&forth),
                to: Arc::clone(&back),
            };
            let served = Served {
                groups: there.clone(),
                memory: None,
            };
            let task = move || -> env::LocalBoxFuture<'static, ()> {
                Box::pin(async move {
                    let _ = serve_branches(served, from, Box::new(end), Vec::new()).await;
                })
            };
            let host = &there.host;
            host.spawn(Reactor::Session(0), "branches", Box::new(task));
            let end = End {
                from: back,
                to: forth,
            };
            Ok(Box::new(end) as Box<dyn Stream>)
        })
    }
}
