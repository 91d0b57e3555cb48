//! The queue of one peer: frames that wait for its connection, and whose turn it is to write.
//!
//! Threads of all reactors push frames, and each of them then flushes: it writes to the socket what
//! is there, its own frames and others', unless somebody else has the *turn* and will write them.
//! What the socket does not take at once is left to the task that keeps the connection, together
//! with the turn:
//!
//! ```text
//! thread 1   push a, flush: takes the turn, writes a ──────── writes b, gives the turn up
//! thread 2                     push b, flush: the turn is taken
//!
//! thread 3   push c, flush: takes the turn, the socket takes half of c: the turn is the task's
//! task                                  writes the rest of c and what has come since, gives it up
//! ```
//!
//! Sockets that encrypt have no outlet for threads: there every turn is the task's.
//!
//! # Invariants
//! - One at a time has the turn, so frames leave whole and in the order in which they were pushed.
//! - Whoever gives the turn up looks at the queue again: what was pushed and flushed meanwhile had
//!   to rely on it.
//! - A connection begins with an empty queue and a free turn. Whoever was writing to the one before
//!   touches nothing of the new one.
//! - Of frames no more bytes wait than [`Limits::queued_bytes`]. What does not fit, or comes while
//!   there is no connection, is dropped.
//!
//! # What it leaves out
//! Whether what a socket has taken arrives. Raft repeats what is missing.

use std::collections::VecDeque;
use std::sync::Arc;

use base::env::Outlet;
use base::framed::put_framed;

// Not `base::`: a model checker's may be beside this very file (`model.rs`).
use super::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use super::sync::{Event, Mutex};

/// How much a queue holds, and gives away at a time.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of frames that wait; what goes beyond is dropped.
    pub queued_bytes: usize,
    /// Bytes that leave in one write at most, as long as single frames are smaller.
    pub write_bytes: usize,
}

/// What waits for one peer.
pub struct Queue {
    limits: Limits,
    state: Mutex<State>,
    /// The task has something to write, or to end.
    filled: Event,
    /// For the bytes of one write; whoever has the turn to write uses it.
    buffer: Mutex<Vec<u8>>,
    /// What waits leaves, and then the connection ends.
    leaving: AtomicBool,
    /// Bytes that sockets have taken.
    sent_bytes: AtomicU64,
}

/// Who writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Turn {
    #[default]
    Nobody,
    /// A thread that has flushed.
    Thread,
    /// The task: it is to write, or does so.
    Task,
}

#[derive(Default)]
struct State {
    /// Numbers the connections.
    connection: u64,
    connected: bool,
    outlet: Option<Arc<dyn Outlet>>,
    bytes: usize,
    frames: VecDeque<Vec<u8>>,
    turn: Turn,
    /// What the socket did not take, for the task.
    rest: Vec<u8>,
}

impl State {
    /// Moves frames into `out`, about `most` bytes of them.
    fn take(&mut self, out: &mut Vec<u8>, most: usize) {
        while out.len() < most {
            let Some(frame) = self.frames.pop_front() else {
                break;
            };
            self.bytes -= frame.len();
            put_framed(out, &frame);
        }
    }
}

impl Queue {
    /// A queue without a connection.
    pub fn new(limits: Limits) -> Queue {
        Queue {
            limits,
            state: Mutex::default(),
            filled: Event::new(),
            buffer: Mutex::default(),
            leaving: AtomicBool::new(false),
            sent_bytes: AtomicU64::new(0),
        }
    }

    /// Adds a frame, for the next flush; whether it was taken.
    pub fn push(&self, frame: Vec<u8>) -> bool {
        let mut state = self.state.lock();
        if !state.connected || state.bytes + frame.len() > self.limits.queued_bytes {
            return false;
        }
        state.bytes += frame.len();
        state.frames.push_back(frame);
        true
    }

    /// Writes what is queued, unless another has the turn, who will then write this too. What the
    /// socket does not take is left to the task.
    pub fn flush(&self) {
        loop {
            let mut state = self.state.lock();
            if state.turn != Turn::Nobody || state.frames.is_empty() {
                return;
            }
            let Some(outlet) = state.outlet.clone() else {
                state.turn = Turn::Task;
                drop(state);
                return self.filled.notify_all();
            };
            state.turn = Turn::Thread;
            let connection = state.connection;
            let mut out = std::mem::take(&mut *self.buffer.lock());
            state.take(&mut out, self.limits.write_bytes);
            drop(state);
            // An error shows again when the task writes the rest.
            let written = outlet.try_write(&out).unwrap_or(0);
            self.count(written);
            let mut state = self.state.lock();
            if state.connection != connection {
                return;
            }
            if written < out.len() {
                state.rest = out.split_off(written);
                state.turn = Turn::Task;
                drop(state);
                return self.filled.notify_all();
            }
            state.turn = Turn::Nobody;
            self.shrink(&mut out);
            *self.buffer.lock() = out;
        }
    }

    /// For the task: waits until the turn is its, and moves what is to be written into `out`, which
    /// is empty. False once all that was flushed before [`Queue::leave`] is written.
    pub async fn turn(&self, out: &mut Vec<u8>) -> bool {
        let turn = self.filled.until(|| {
            // This comes first: what was flushed before is then found.
            let leaves = self.is_leaving();
            match self.take_turn(out) {
                true => Some(true),
                false => leaves.then_some(false),
            }
        });
        turn.await
    }

    pub(super) fn take_turn(&self, out: &mut Vec<u8>) -> bool {
        let mut state = self.state.lock();
        if state.turn != Turn::Task {
            return false;
        }
        out.append(&mut state.rest);
        state.take(out, self.limits.write_bytes);
        true
    }

    /// For the task: it has written `out`. What has come meanwhile found the turn taken.
    pub fn end_turn(&self, out: &mut Vec<u8>) {
        self.count(out.len());
        self.shrink(out);
        self.state.lock().turn = Turn::Nobody;
        self.flush();
    }

    fn shrink(&self, out: &mut Vec<u8>) {
        out.clear();
        out.shrink_to(2 * self.limits.write_bytes);
    }

    fn count(&self, written: usize) {
        self.sent_bytes.fetch_add(written as u64, Ordering::Relaxed);
    }

    /// A connection has been made; threads write to its `outlet`, if it has one.
    pub fn connect(&self, outlet: Option<Arc<dyn Outlet>>) {
        self.begin(true, outlet);
    }

    /// The connection is broken.
    pub fn disconnect(&self) {
        self.begin(false, None);
    }

    fn begin(&self, connected: bool, outlet: Option<Arc<dyn Outlet>>) {
        let mut state = self.state.lock();
        *state = State {
            connection: state.connection + 1,
            connected,
            outlet,
            ..State::default()
        };
    }

    /// The peer is one no more: what waits leaves, and then the connection ends. Nobody pushes or
    /// flushes beside this, or after it.
    pub fn leave(&self) {
        self.flush();
        self.leaving.store(true, Ordering::Release);
        self.filled.notify_all();
    }

    /// Whether the peer is one no more.
    pub fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Acquire)
    }

    /// Whether there is a connection.
    pub fn is_connected(&self) -> bool {
        self.state.lock().connected
    }

    /// Bytes that sockets have taken.
    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes.load(Ordering::Relaxed)
    }

    #[cfg(test)]
    pub fn queued_bytes(&self) -> usize {
        let state = self.state.lock();
        let bytes = state.frames.iter().map(Vec::len).sum::<usize>();
        assert_eq!(state.bytes, bytes, "the count is that of the frames");
        bytes
    }
}
