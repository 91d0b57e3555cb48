//! A TCP relay that makes loopback behave like a network: delay, bandwidth, loss, cut-offs.
//!
//! A relay listens at one address and passes every connection on to another. Each direction has a
//! [`Line`] of its own, which may change while connections are open:
//!
//! ```text
//! client ──▶ forward: delay, bandwidth, loss, cut ──▶ server
//!        ◀── back:    delay, bandwidth, loss, cut ◀──
//! ```
//!
//! - **Delay** is a delay line, not a pause per read: bytes are stamped when they arrive and leave
//!   when their time has come, so any number may be under way, as on a long cable.
//! - **Bandwidth** is shared by all connections of a direction. What does not fit waits for at most
//!   [`BUFFER_TIME`] inside the relay and then in the sender's own socket, so that a small message on
//!   another connection does not stand behind megabytes.
//! - **Loss** is what loss is to TCP: each [`PACKET_BYTES`] are lost by that chance, and they and all
//!   that follows arrive a retransmission later.
//! - **Cut** holds a direction: nothing arrives until it is mended, and nothing that was sent is
//!   forgotten, because TCP sends it again. New connections are accepted and stay silent. Whether
//!   anybody gives up in the meantime is their affair.
//!
//! The same relay stands between nodes of Quorate and between PostgreSQL and its standbys.
//!
//! [`control`] changes lines by commands while the relay runs.
//!
//! # What it leaves out
//! Three or four threads per connection: it is for the few connections between servers, not for thousands of
//! clients. Reordering, which TCP hides.

pub mod control;
pub mod serve;

use std::collections::VecDeque;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

/// What the relay keeps of a direction whose bandwidth is used up; more stays with the sender.
pub const BUFFER_TIME: Duration = Duration::from_millis(5);

/// Bytes under way in one direction of one connection at most: 400 MB/s over 80 ms.
pub const UNDER_WAY_BYTES_MAX: usize = 32 << 20;

/// What is lost or arrives as a whole.
pub const PACKET_BYTES: usize = 1_448;

/// The least time after which TCP sends again what nobody acknowledged.
pub const RETRANSMISSION_MIN: Duration = Duration::from_millis(200);

/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;

/// The system's own buffer before the relay; small, so that bandwidth means something.
const SOCKET_BYTES: usize = 64 << 10;

/// How long the relay tries to reach the server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// What one direction does to the bytes that pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// The time from one end to the other.
    pub delay: Duration,
    /// Bytes per second; none is no limit.
    pub bandwidth: Option<u64>,
    /// The chance of a packet to be lost, from 0 to 1.
    pub loss: f64,
    /// Nothing arrives.
    pub cut: bool,
}

impl Default for Line {
    fn default() -> Line {
        Line {
            delay: Duration::ZERO,
            bandwidth: None,
            loss: 0.0,
            cut: false,
        }
    }
}

impl Line {
    /// A line that only delays.
    pub fn delayed(delay: Duration) -> Line {
        Line {
            delay,
            ..Line::default()
        }
    }
}

/// One way through a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From who connected to who is connected to.
    Forward,
    /// The other way.
    Back,
}

impl Direction {
    /// Both.
    pub const ALL: [Direction; 2] = [Direction::Forward, Direction::Back];
}

/// A running relay; its connections end when it is dropped.
#[derive(Debug)]
pub struct Relay {
    shared: Arc<Shared>,
    address: SocketAddr,
    acceptor: Option<std::thread::JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    target: SocketAddr,
    directions: [Way; 2],
    connections: Mutex<Connections>,
}

#[derive(Debug, Default)]
struct Connections {
    ended: bool,
    next: u64,
    open: Vec<(u64, [TcpStream; 2])>,
}

/// One direction, shared by all connections.
#[derive(Debug, Default)]
struct Way {
    state: Mutex<WayState>,
    changed: Condvar,
}

#[derive(Debug)]
struct WayState {
    line: Line,
    /// When the line has sent all that it took.
    free_at: Option<Instant>,
    /// Bytes that came in so far.
    bytes: u64,
    random: u64,
    ended: bool,
}

impl Default for WayState {
    fn default() -> WayState {
        WayState {
            line: Line::default(),
            free_at: None,
            bytes: 0,
            random: 0x9e37_79b9_7f4a_7c15,
            ended: false,
        }
    }
}

/// A panic of another thread leaves nothing half done here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Relay {
    /// Listens at `address` (port 0 is any) and passes connections on to `target`.
    ///
    /// # Errors
    /// Whatever the system refuses.
    pub fn start(address: SocketAddr, target: SocketAddr) -> Result<Relay> {
        let listener = listen(address)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            target,
            directions: [Way::default(), Way::default()],
            connections: Mutex::default(),
        });
        let acceptor = std::thread::spawn({
            let shared = shared.clone();
            move || accept_all(&shared, &listener)
        });
        Ok(Relay {
            shared,
            address,
            acceptor: Some(acceptor),
        })
    }

    /// Listens at any free port of 127.0.0.1.
    ///
    /// # Errors
    /// As [`Relay::start`].
    pub fn to(target: SocketAddr) -> Result<Relay> {
        Relay::start((Ipv4Addr::LOCALHOST, 0).into(), target)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where connections go.
    pub fn target(&self) -> SocketAddr {
        self.shared.target
    }

    /// What a direction does now.
    pub fn line(&self, direction: Direction) -> Line {
        lock(&self.shared.way(direction).state).line
    }

    /// Changes a direction, for what arrives from now on. A cut, and its end, hold for what is under
    /// way too.
    pub fn set(&self, direction: Direction, line: Line) {
        let way = self.shared.way(direction);
        lock(&way.state).line = line;
        way.changed.notify_all();
    }

    /// Changes both directions alike.
    pub fn set_both(&self, line: Line) {
        for direction in Direction::ALL {
            self.set(direction, line);
        }
    }

    /// Cuts or mends both directions.
    pub fn cut(&self, cut: bool) {
        for direction in Direction::ALL {
            let line = self.line(direction);
            self.set(direction, Line { cut, ..line });
        }
    }

    /// Bytes that came in for a direction since the start.
    pub fn bytes(&self, direction: Direction) -> u64 {
        lock(&self.shared.way(direction).state).bytes
    }

    /// Ends all connections; new ones are welcome.
    pub fn break_connections(&self) {
        for socket in lock(&self.shared.connections)
            .open
            .iter()
            .flat_map(|(_, pair)| pair)
        {
            // One that has ended already is as good.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        lock(&self.shared.connections).ended = true;
        for way in &self.shared.directions {
            lock(&way.state).ended = true;
            way.changed.notify_all();
        }
        self.break_connections();
        // Wakes the acceptor, which then sees the end.
        let _ = TcpStream::connect_timeout(&self.address, CONNECT_TIMEOUT);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

/// Accepted sockets inherit the small buffer.
fn listen(address: SocketAddr) -> Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.set_recv_buffer_size(SOCKET_BYTES)?;
    let bound = socket.bind(&address.into());
    bound.map_err(|error| {
        Error::new(error.kind(), format!("cannot listen at {address}: {error}"))
    })?;
    socket.listen(128)?;
    Ok(socket.into())
}

fn accept_all(shared: &Arc<Shared>, listener: &TcpListener) {
    loop {
        let accepted = listener.accept();
        if lock(&shared.connections).ended {
            return;
        }
        match accepted {
            Ok((client, _)) => {
                let shared = shared.clone();
                std::thread::spawn(move || shared.serve(client));
            }
            // No descriptors, or a connection that ended before it was taken.
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

impl Shared {
    fn way(&self, direction: Direction) -> &Way {
        match direction {
            Direction::Forward => &self.directions[0],
            Direction::Back => &self.directions[1],
        }
    }

    /// Serves one connection to its end.
    fn serve(self: &Arc<Shared>, client: TcpStream) {
        // Before anything reaches the other side, a first packet has to.
        if !self.way(Direction::Forward).wait_until_mended() {
            return;
        }
        let Ok(server) = connect(self.target) else {
            return;
        };
        let Ok(number) = self.keep(&client, &server) else {
            return;
        };
        if let (Ok(client_too), Ok(server_too)) = (client.try_clone(), server.try_clone()) {
            std::thread::scope(|scope| {
                scope.spawn(|| self.way(Direction::Back).carry(server_too, client_too));
                self.way(Direction::Forward).carry(client, server);
            });
        }
        let mut connections = lock(&self.connections);
        connections.open.retain(|(open, _)| *open != number);
    }

    fn keep(&self, client: &TcpStream, server: &TcpStream) -> Result<u64> {
        for socket in [client, server] {
            socket.set_nodelay(true)?;
        }
        let pair = [client.try_clone()?, server.try_clone()?];
        let mut connections = lock(&self.connections);
        if connections.ended {
            return Err(ErrorKind::Interrupted.into());
        }
        connections.next += 1;
        let number = connections.next;
        connections.open.push((number, pair));
        Ok(number)
    }
}

fn connect(target: SocketAddr) -> Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(target), Type::STREAM, None)?;
    socket.set_recv_buffer_size(SOCKET_BYTES)?;
    socket.connect_timeout(&target.into(), CONNECT_TIMEOUT)?;
    Ok(socket.into())
}

/// What is under way in one direction of one connection.
#[derive(Default)]
struct Cable {
    state: Mutex<CableState>,
    changed: Condvar,
}

#[derive(Default)]
struct CableState {
    /// What arrives, and when, in order; nothing is the end of the stream.
    packets: VecDeque<(Instant, Option<Vec<u8>>)>,
    bytes: usize,
    /// The receiving side is gone.
    closed: bool,
}

impl Way {
    /// Carries one connection's bytes until its end.
    fn carry(&self, mut from: TcpStream, to: TcpStream) {
        let cable = Cable::default();
        std::thread::scope(|scope| {
            scope.spawn(|| self.deliver(&cable, &to));
            let mut buffer = vec![0; READ_BYTES];
            loop {
                self.wait_for_room();
                let count = from.read(&mut buffer).unwrap_or(0);
                let (due, end) = (self.due(count), count == 0);
                let packet = (!end).then(|| buffer[..count].to_vec());
                if !cable.push(due, packet) || end {
                    break;
                }
            }
        });
        let _ = from.shutdown(Shutdown::Read);
    }

    /// When so many bytes that came now arrive.
    fn due(&self, count: usize) -> Instant {
        let mut state = lock(&self.state);
        let now = Instant::now();
        let mut sent = now;
        if let Some(bandwidth) = state.line.bandwidth {
            let start = state.free_at.map_or(now, |free| free.max(now));
            sent = start + Duration::from_secs_f64(count as f64 / bandwidth.max(1) as f64);
            state.free_at = Some(sent);
        }
        state.bytes += count as u64;
        let mut due = sent + state.line.delay;
        if state.line.loss > 0.0 {
            let packets = count.div_ceil(PACKET_BYTES).max(1);
            if (0..packets).any(|_| state.is_lost()) {
                due += RETRANSMISSION_MIN.max(state.line.delay * 2);
            }
        }
        due
    }

    /// Waits while the line has enough to send.
    fn wait_for_room(&self) {
        loop {
            let ahead = match lock(&self.state).free_at {
                Some(free) => free.saturating_duration_since(Instant::now()),
                None => return,
            };
            match ahead.checked_sub(BUFFER_TIME) {
                Some(over) if !over.is_zero() => std::thread::sleep(over),
                _ => return,
            }
        }
    }

    /// Waits while the direction is cut; false once the relay has ended.
    fn wait_until_mended(&self) -> bool {
        let mut state = lock(&self.state);
        while state.line.cut && !state.ended {
            let waited = self.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        !state.ended
    }

    /// Writes what is due, until the end.
    fn deliver(&self, cable: &Cable, mut to: &TcpStream) {
        while let Some((due, packet)) = cable.pop() {
            sleep_until(due);
            if !self.wait_until_mended() {
                break;
            }
            let Some(packet) = packet else {
                let _ = to.shutdown(Shutdown::Write);
                break;
            };
            if to.write_all(&packet).is_err() {
                // Whoever sends must hear of it too.
                let _ = to.shutdown(Shutdown::Both);
                break;
            }
        }
        cable.close();
    }
}

impl WayState {
    fn is_lost(&mut self) -> bool {
        // Xorshift: enough for a coin.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        ((self.random >> 11) as f64 / (1u64 << 53) as f64) < self.line.loss
    }
}

impl Cable {
    /// Puts in what arrives at `due`, waiting while too much is under way; false when nobody takes
    /// it any more.
    fn push(&self, due: Instant, packet: Option<Vec<u8>>) -> bool {
        let mut state = lock(&self.state);
        while state.bytes > UNDER_WAY_BYTES_MAX && !state.closed {
            let waited = self.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        state.bytes += packet.as_ref().map_or(0, Vec::len);
        // A line that has become faster overtakes nothing.
        let due = state.packets.back().map_or(due, |(last, _)| due.max(*last));
        state.packets.push_back((due, packet));
        self.changed.notify_all();
        !state.closed
    }

    fn pop(&self) -> Option<(Instant, Option<Vec<u8>>)> {
        let mut state = lock(&self.state);
        loop {
            if let Some((due, packet)) = state.packets.pop_front() {
                state.bytes -= packet.as_ref().map_or(0, Vec::len);
                self.changed.notify_all();
                return Some((due, packet));
            }
            if state.closed {
                return None;
            }
            let waited = self.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn close(&self) {
        lock(&self.state).closed = true;
        self.changed.notify_all();
    }
}

fn sleep_until(due: Instant) {
    let left = due.saturating_duration_since(Instant::now());
    if !left.is_zero() {
        std::thread::sleep(left);
    }
}

#[cfg(test)]
mod tests;
