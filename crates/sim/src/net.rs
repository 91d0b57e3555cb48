//! The network: streams with latency that hosts open to one another, and ways that can be cut.
//!
//! A stream keeps its order, as TCP does. While a way is cut, what was sent on it waits; when a
//! host dies, the other ends see a reset once the news can reach them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use base::env::{BoxFuture, Listener, Net, Outlet, Stream};

use crate::env::Sleep;
use crate::world::{HostId, Incarnation, Shared, State, Timer};

/// Shortest and longest time that a message is under way.
const LATENCY_NANOS: (u64, u64) = (20_000, 400_000);

/// Once in so many messages the network is slow.
const SLOW_ONE_IN: u64 = 200;

/// How long a slow message is under way at most.
const SLOW_NANOS_MAX: u64 = 20_000_000;

/// Bytes that a stream takes before its writer waits.
const WINDOW_BYTES: usize = 1 << 20;

/// How often a blocked delivery is tried again.
const RETRY_NANOS: u64 = 2_000_000;

enum Packet {
    Bytes(Vec<u8>),
    Close,
    Reset,
}

/// One direction of a stream.
struct Pipe {
    from: HostId,
    to: HostId,
    under_way: VecDeque<(u64, Packet)>,
    readable: VecDeque<u8>,
    window_used: usize,
    closed: bool,
    reset: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

struct Accepting {
    host: HostId,
    incarnation: Incarnation,
    incoming: VecDeque<(usize, usize, String)>,
    waker: Option<Waker>,
}

/// All streams and listeners.
#[derive(Default)]
pub(crate) struct NetState {
    pipes: BTreeMap<usize, Pipe>,
    next_pipe: usize,
    listeners: BTreeMap<String, Accepting>,
    cuts: BTreeSet<(HostId, HostId)>,
}

impl NetState {
    pub fn set_cut(&mut self, from: HostId, to: HostId, cut: bool) {
        if cut {
            self.cuts.insert((from, to));
        } else {
            self.cuts.remove(&(from, to));
        }
    }

    fn open(&mut self, from: HostId, to: HostId) -> usize {
        let pipe = Pipe {
            from,
            to,
            under_way: VecDeque::new(),
            readable: VecDeque::new(),
            window_used: 0,
            closed: false,
            reset: false,
            reader: None,
            writer: None,
        };
        self.next_pipe += 1;
        self.pipes.insert(self.next_pipe, pipe);
        self.next_pipe
    }

    /// Delivers what is due on a pipe; returns whom to wake.
    pub fn deliver(state: &mut State, id: usize) -> Vec<Waker> {
        let now = state.now;
        let net = &mut state.net;
        let Some(pipe) = net.pipes.get_mut(&id) else {
            return Vec::new();
        };
        if net.cuts.contains(&(pipe.from, pipe.to)) {
            state.add_timer(now + RETRY_NANOS, Timer::Deliver(id));
            return Vec::new();
        }
        let mut wakers = Vec::new();
        while pipe.under_way.front().is_some_and(|(due, _)| *due <= now) {
            match pipe.under_way.pop_front() {
                Some((_, Packet::Bytes(bytes))) => pipe.readable.extend(bytes),
                Some((_, Packet::Close)) => pipe.closed = true,
                Some((_, Packet::Reset)) => pipe.reset = true,
                None => break,
            }
            wakers.extend(pipe.reader.take());
            if pipe.reset {
                wakers.extend(pipe.writer.take());
            }
        }
        state.note("deliver", id as u64);
        wakers
    }

    /// Resets every stream of a host and forgets its listeners.
    pub fn host_died(state: &mut State, host: HostId) -> Vec<Waker> {
        let touching: Vec<usize> = state
            .net
            .pipes
            .iter()
            .filter(|(_, pipe)| pipe.from == host || pipe.to == host)
            .map(|(id, _)| *id)
            .collect();
        let mut wakers = Vec::new();
        for id in touching {
            if state.net.pipes[&id].to == host {
                let pipe = state.net.pipes.remove(&id);
                wakers.extend(pipe.and_then(|pipe| pipe.writer));
            } else {
                send(state, id, Packet::Reset);
            }
        }
        let dead: Vec<String> = state
            .net
            .listeners
            .iter()
            .filter(|(_, listener)| listener.host == host)
            .map(|(address, _)| address.clone())
            .collect();
        for address in dead {
            state.net.listeners.remove(&address);
        }
        wakers
    }
}

/// Puts a packet on its way, behind what is under way already.
fn send(state: &mut State, id: usize, packet: Packet) {
    let mut nanos = state.chance.between(LATENCY_NANOS.0, LATENCY_NANOS.1);
    if state.chance.one_in(SLOW_ONE_IN) {
        nanos = state.chance.between(nanos, SLOW_NANOS_MAX);
    }
    let mut due = state.now + nanos;
    let Some(pipe) = state.net.pipes.get_mut(&id) else {
        return;
    };
    due = due.max(pipe.under_way.back().map_or(0, |(due, _)| *due));
    pipe.under_way.push_back((due, packet));
    state.add_timer(due, Timer::Deliver(id));
}

/// One life's access to the network.
pub(crate) struct SimNet {
    shared: Arc<Shared>,
    host: HostId,
    incarnation: Incarnation,
}

impl SimNet {
    pub fn new(shared: Arc<Shared>, host: HostId, incarnation: Incarnation) -> SimNet {
        SimNet {
            shared,
            host,
            incarnation,
        }
    }
}

impl Net for SimNet {
    fn listen(&self, address: &str) -> io::Result<Box<dyn Listener>> {
        let mut state = self.shared.state();
        if !state.lives(self.host, self.incarnation) {
            return Err(ErrorKind::Interrupted.into());
        }
        if state.net.listeners.contains_key(address) {
            return Err(ErrorKind::AddrInUse.into());
        }
        let accepting = Accepting {
            host: self.host,
            incarnation: self.incarnation,
            incoming: VecDeque::new(),
            waker: None,
        };
        state.net.listeners.insert(address.to_owned(), accepting);
        Ok(Box::new(SimListener {
            shared: self.shared.clone(),
            host: self.host,
            incarnation: self.incarnation,
            address: address.to_owned(),
        }))
    }

    fn connect(&self, address: &str) -> BoxFuture<'static, io::Result<Box<dyn Stream>>> {
        let (shared, host, incarnation) = (self.shared.clone(), self.host, self.incarnation);
        let address = address.to_owned();
        Box::pin(async move {
            loop {
                let nanos = {
                    let mut state = shared.state();
                    state.chance.between(LATENCY_NANOS.0, LATENCY_NANOS.1)
                };
                Sleep::world(shared.clone(), host, nanos).await;
                let (result, waker) = establish(&shared, host, incarnation, &address);
                if let Some(waker) = waker {
                    waker.wake();
                }
                match result {
                    // The way is cut: the packets are sent again until it heals.
                    Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                    result => return result,
                }
            }
        })
    }
}

fn establish(
    shared: &Arc<Shared>,
    host: HostId,
    incarnation: Incarnation,
    address: &str,
) -> (io::Result<Box<dyn Stream>>, Option<Waker>) {
    let mut guard = shared.state();
    let state = &mut *guard;
    if !state.lives(host, incarnation) {
        return (Err(ErrorKind::Interrupted.into()), None);
    }
    let net = &mut state.net;
    let Some(to) = net.listeners.get(address).map(|listener| listener.host) else {
        return (Err(ErrorKind::ConnectionRefused.into()), None);
    };
    if net.cuts.contains(&(host, to)) || net.cuts.contains(&(to, host)) {
        return (Err(ErrorKind::WouldBlock.into()), None);
    }
    let (there, back) = (net.open(host, to), net.open(to, host));
    let mut waker = None;
    if let Some(listener) = net.listeners.get_mut(address) {
        let from = format!("127.0.0.{}:{}", host.0, 40_000 + there % 20_000);
        listener.incoming.push_back((there, back, from));
        waker = listener.waker.take();
    }
    state.note("connect", there as u64);
    let stream = SimStream {
        shared: shared.clone(),
        host,
        incarnation,
        read: back,
        write: there,
    };
    (Ok(Box::new(stream)), waker)
}

struct SimListener {
    shared: Arc<Shared>,
    host: HostId,
    incarnation: Incarnation,
    address: String,
}

impl Listener for SimListener {
    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<(Box<dyn Stream>, String)>> {
        let mut state = self.shared.state();
        let Some(listener) = state.net.listeners.get_mut(&self.address) else {
            return Poll::Ready(Err(ErrorKind::Interrupted.into()));
        };
        let Some((read, write, from)) = listener.incoming.pop_front() else {
            listener.waker = Some(cx.waker().clone());
            return Poll::Pending;
        };
        let stream = SimStream {
            shared: self.shared.clone(),
            host: self.host,
            incarnation: self.incarnation,
            read,
            write,
        };
        Poll::Ready(Ok((Box::new(stream), from)))
    }
}

impl Drop for SimListener {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        let own =
            state.net.listeners.get(&self.address).is_some_and(|other| {
                (other.host, other.incarnation) == (self.host, self.incarnation)
            });
        if own {
            state.net.listeners.remove(&self.address);
        }
    }
}

struct SimStream {
    shared: Arc<Shared>,
    host: HostId,
    incarnation: Incarnation,
    read: usize,
    write: usize,
}

impl Stream for SimStream {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let (result, waker) = {
            let mut state = self.shared.state();
            if !state.lives(self.host, self.incarnation) {
                return Poll::Ready(Err(ErrorKind::ConnectionReset.into()));
            }
            let Some(pipe) = state.net.pipes.get_mut(&self.read) else {
                return Poll::Ready(Err(ErrorKind::ConnectionReset.into()));
            };
            if pipe.readable.is_empty() {
                if pipe.reset {
                    return Poll::Ready(Err(ErrorKind::ConnectionReset.into()));
                }
                if pipe.closed {
                    return Poll::Ready(Ok(0));
                }
                pipe.reader = Some(cx.waker().clone());
                return Poll::Pending;
            }
            let len = pipe.readable.len().min(buffer.len());
            for (slot, byte) in buffer.iter_mut().zip(pipe.readable.drain(..len)) {
                *slot = byte;
            }
            pipe.window_used -= len;
            (len, pipe.writer.take())
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        Poll::Ready(Ok(result))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut state = self.shared.state();
        if !state.lives(self.host, self.incarnation) {
            return Poll::Ready(Err(ErrorKind::BrokenPipe.into()));
        }
        match write(&mut state, self.read, self.write, bytes) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if let Some(pipe) = state.net.pipes.get_mut(&self.write) {
                    pipe.writer = Some(cx.waker().clone());
                }
                Poll::Pending
            }
            result => Poll::Ready(result),
        }
    }

    fn outlet(&mut self) -> io::Result<Arc<dyn Outlet>> {
        Ok(Arc::new(SimOutlet {
            shared: self.shared.clone(),
            host: self.host,
            incarnation: self.incarnation,
            read: self.read,
            write: self.write,
        }))
    }
}

/// Writes what the window takes, or fails with `WouldBlock`.
fn write(state: &mut State, read: usize, write: usize, bytes: &[u8]) -> io::Result<usize> {
    let reset = state.net.pipes.get(&read).is_none_or(|pipe| pipe.reset);
    let pipe = state.net.pipes.get_mut(&write).filter(|_| !reset);
    let pipe = pipe.ok_or(ErrorKind::BrokenPipe)?;
    let room = WINDOW_BYTES.saturating_sub(pipe.window_used);
    if room == 0 {
        return Err(ErrorKind::WouldBlock.into());
    }
    let len = room.min(bytes.len());
    pipe.window_used += len;
    send(state, write, Packet::Bytes(bytes[..len].to_vec()));
    Ok(len)
}

struct SimOutlet {
    shared: Arc<Shared>,
    host: HostId,
    incarnation: Incarnation,
    read: usize,
    write: usize,
}

impl Outlet for SimOutlet {
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.shared.state();
        match state.lives(self.host, self.incarnation) {
            true => write(&mut state, self.read, self.write, bytes),
            false => Err(ErrorKind::BrokenPipe.into()),
        }
    }
}

impl Drop for SimStream {
    fn drop(&mut self) {
        let waker = {
            let mut state = self.shared.state();
            if !state.lives(self.host, self.incarnation) {
                return;
            }
            send(&mut state, self.write, Packet::Close);
            let read = state.net.pipes.remove(&self.read);
            read.and_then(|pipe| pipe.writer)
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
