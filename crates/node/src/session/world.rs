//! A world for tests: a clock that is moved by hand, timers, and streams in memory.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use base::env::{BoxFuture, Disk, Env, Instant, Net, Reactor, Severity, Stream, TaskStart};
use base::sync::Mutex;
use base::Timestamp;

/// An environment whose time stands still until it is moved.
#[derive(Default)]
pub struct World {
    now: Mutex<u64>,
    timers: Mutex<BTreeMap<u64, Vec<Waker>>>,
    random: Mutex<u64>,
    pub stopped: Mutex<Option<String>>,
}

impl World {
    /// Moves the clock on; timers that are due wake their tasks.
    pub fn pass(&self, duration: Duration) {
        let now = {
            let mut now = self.now.lock();
            *now += duration.as_nanos() as u64;
            *now
        };
        let later = self.timers.lock().split_off(&(now + 1));
        let due = std::mem::replace(&mut *self.timers.lock(), later);
        due.into_values().flatten().for_each(Waker::wake);
    }
}

struct Sleep(Arc<World>, Instant);

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.0.now() >= self.1 {
            return Poll::Ready(());
        }
        let mut timers = self.0.timers.lock();
        timers
            .entry(self.1 .0)
            .or_default()
            .push(cx.waker().clone());
        Poll::Pending
    }
}

/// The world as code sees it.
#[derive(Clone, Default)]
pub struct WorldEnv(pub Arc<World>);

impl World {
    fn now(&self) -> Instant {
        Instant(*self.now.lock())
    }
}

impl Env for WorldEnv {
    fn now(&self) -> Instant {
        self.0.now()
    }

    fn wall_clock(&self) -> Timestamp {
        Timestamp(800_000_000_000_000 + self.0.now().0 as i64 / 1_000)
    }

    fn random(&self) -> u64 {
        let mut state = self.0.random.lock();
        *state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        *state
    }

    fn secret(&self) -> [u8; 32] {
        base::env::no_secret(self.random())
    }

    fn sleep_until(&self, deadline: Instant) -> BoxFuture<'static, ()> {
        Box::pin(Sleep(self.0.clone(), deadline))
    }

    fn spawn(&self, _: Reactor, name: &'static str, _: TaskStart) {
        panic!("sessions start no task, but {name} was started");
    }

    fn session_reactors(&self) -> usize {
        1
    }

    fn disk(&self) -> Arc<dyn Disk> {
        panic!("sessions have no disk")
    }

    fn net(&self) -> Arc<dyn Net> {
        panic!("sessions have their stream only")
    }

    fn log(&self, _: Severity, _: &str) {}

    fn stop_node(&self, reason: &str) {
        *self.0.stopped.lock() = Some(reason.to_owned());
    }
}

#[derive(Default)]
struct Pipe {
    to_server: Vec<u8>,
    to_client: Vec<u8>,
    writes: usize,
    client_closed: bool,
    server_closed: bool,
    /// Bytes that the client's side still takes; more wait.
    room: Option<usize>,
    waker: Option<Waker>,
}

/// The client's end of a stream in memory.
#[derive(Clone, Default)]
pub struct ClientEnd(Arc<Mutex<Pipe>>);

impl ClientEnd {
    /// The server's end.
    pub fn server_end(&self) -> Box<dyn Stream> {
        Box::new(ServerEnd(self.0.clone()))
    }

    fn change<R>(&self, change: impl FnOnce(&mut Pipe) -> R) -> R {
        let mut pipe = self.0.lock();
        let result = change(&mut pipe);
        let waker = pipe.waker.take();
        drop(pipe);
        if let Some(waker) = waker {
            waker.wake();
        }
        result
    }

    /// Sends bytes to the server.
    pub fn send(&self, bytes: &[u8]) {
        self.change(|pipe| pipe.to_server.extend_from_slice(bytes));
    }

    /// Closes the client's side.
    pub fn close(&self) {
        self.change(|pipe| pipe.client_closed = true);
    }

    /// What has come, and in how many writes.
    pub fn receive(&self) -> (Vec<u8>, usize) {
        self.change(|pipe| {
            let writes = std::mem::take(&mut pipe.writes);
            (std::mem::take(&mut pipe.to_client), writes)
        })
    }

    /// Takes only so many bytes more; without a number, everything.
    pub fn take_at_most(&self, room: Option<usize>) {
        self.change(|pipe| pipe.room = room);
    }

    /// Whether the server has closed the stream.
    pub fn is_closed(&self) -> bool {
        self.0.lock().server_closed
    }
}

struct ServerEnd(Arc<Mutex<Pipe>>);

impl Drop for ServerEnd {
    fn drop(&mut self) {
        self.0.lock().server_closed = true;
    }
}

impl Stream for ServerEnd {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut pipe = self.0.lock();
        if pipe.to_server.is_empty() && !pipe.client_closed {
            pipe.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let count = buffer.len().min(pipe.to_server.len());
        buffer[..count].copy_from_slice(&pipe.to_server[..count]);
        pipe.to_server.drain(..count);
        Poll::Ready(Ok(count))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut pipe = self.0.lock();
        let count = bytes.len().min(pipe.room.unwrap_or(usize::MAX));
        if count == 0 {
            pipe.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        pipe.room = pipe.room.map(|room| room - count);
        pipe.to_client.extend_from_slice(&bytes[..count]);
        pipe.writes += 1;
        Poll::Ready(Ok(count))
    }
}
