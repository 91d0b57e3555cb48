//! Time, randomness, disk and network, as the rest of Quorate sees them.
//!
//! All code reaches the outside world through an [`Env`]. A real node gives it sockets, files and
//! clocks; the simulator gives it a seeded world on one thread and runs the very same code. So
//! that both can, everything that may take time is a future, tasks are spawned through the
//! environment, and no code names an executor.
//!
//! # Who runs where
//! A node has a few *reactors* ([`Reactor`]), each one thread with one executor in a real node and
//! one virtual executor in the simulator. A task stays on its reactor for life, so a task need not
//! be `Send`; only what creates it is.
//!
//! # What it leaves out
//! Reading wall clocks decides nothing but what `now()` shows and timestamps; leases and timeouts
//! use [`Env::now`] alone.

use std::fmt::Debug;
use std::future::Future;
use std::io::{self, IoSliceMut};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::ids::{GroupId, Timestamp};

/// A future that may move between threads.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A future that stays on its reactor.
pub type LocalBoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// What a task is made of on the reactor that will run it.
pub type TaskStart = Box<dyn FnOnce() -> LocalBoxFuture<'static, ()> + Send>;

/// Nanoseconds on a clock that never goes back and counts time spent in suspend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(pub u64);

impl Instant {
    /// The time from `earlier` to this; zero if that lies later.
    pub fn since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// This instant moved on by `duration`.
    #[must_use]
    pub fn after(self, duration: Duration) -> Instant {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Instant(self.0.saturating_add(nanos))
    }
}

/// Where a task runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reactor {
    /// Client sessions; numbered from 0 to [`Env::session_reactors`].
    Session(usize),
    /// Raft, peers and timers, where no statement can starve them.
    Group,
    /// Connections that have not shown yet who they are: whoever floods them with handshakes keeps
    /// neither statements nor Raft from their threads.
    Handshakes,
    /// The thread of one group's log, which may block in [`File::sync`]; numbered from 0 to
    /// [`LOG_REACTORS`], which groups take in turn.
    Log(usize),
    /// Background work on storage: checkpoints, builds of trees.
    Background,
    /// Reading and writing single pages of trees, which may block; numbered from 0 to
    /// [`PAGE_REACTORS`].
    Pages(usize),
    /// What can neither give way nor be ended, and may be long: parsing long texts; numbered from 0
    /// to [`PARSE_REACTORS`].
    Parse(usize),
}

/// How many reactors write logs: so many groups of a node sync beside one another.
pub const LOG_REACTORS: usize = 3;

impl Reactor {
    /// That of a group's log.
    pub fn of_log(group: GroupId) -> Reactor {
        Reactor::Log(group.0.saturating_sub(1) as usize % LOG_REACTORS)
    }
}

/// How many reactors parse long texts: so many such statements are parsed at a time, others wait.
pub const PARSE_REACTORS: usize = 4;

/// How many reactors read and write pages: so many reads a disk is asked for at a time. Four get
/// three quarters of what sixteen do from a virtual disk, and less from a fast one.
pub const PAGE_REACTORS: usize = 16;

/// One node's access to the outside world.
pub trait Env: Send + Sync + 'static {
    /// The monotonic clock. Differences are meant; the origin means nothing.
    fn now(&self) -> Instant;

    /// The wall clock, which may jump.
    fn wall_clock(&self) -> Timestamp;

    /// 64 random bits; not for secrets.
    fn random(&self) -> u64;

    /// Random bytes that nobody can guess, from the operating system's own generator: for salts,
    /// nonces, keys, and whatever else must not be foretold from what was drawn before. A simulated
    /// world has no secrets ([`no_secret`]); nobody falls back to that by leaving this out.
    fn secret(&self) -> [u8; 32];

    /// Ready when [`Env::now`] has reached `deadline`.
    fn sleep_until(&self, deadline: Instant) -> BoxFuture<'static, ()>;

    /// Runs a task on a reactor until it ends. The name appears in traces.
    fn spawn(&self, reactor: Reactor, name: &'static str, start: TaskStart);

    /// Says that others wait for what the current reactor does next, so that it should rather
    /// stay awake for a moment than sleep until it is woken. Changes nothing but speed.
    fn hurry(&self) {}

    /// How many reactors serve sessions, at least 1.
    fn session_reactors(&self) -> usize;

    /// The node's data directory.
    fn disk(&self) -> Arc<dyn Disk>;

    /// A file of the node's machine, by its path there, to be read from its start: for statements
    /// that name one. It may block: call it, and read, where that harms nobody.
    ///
    /// # Errors
    /// Whatever the system refuses; `Unsupported` for what is no regular file, and in a world that
    /// has no such files.
    fn read_server_file(&self, path: &str) -> io::Result<Box<dyn io::Read + Send>> {
        let _ = path;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The same, to be written: an empty file, whatever was in it.
    ///
    /// # Errors
    /// As [`Env::read_server_file`].
    fn write_server_file(&self, path: &str) -> io::Result<Box<dyn io::Write + Send>> {
        let _ = path;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The network.
    fn net(&self) -> Arc<dyn Net>;

    /// One line for the operator.
    fn log(&self, severity: Severity, message: &str);

    /// Appends whole lines to one of the server's logs, for the operator too. Never waits: what the
    /// disk cannot take in time is counted and left out. A world without files keeps nothing.
    fn write_log(&self, to: LogDestination, lines: String) {
        let _ = (to, lines);
    }

    /// What [`Env::log`] is given goes to these logs too from now on, in their forms.
    fn log_also(&self, to: &[LogDestination]) {
        let _ = to;
    }

    /// Whether a panic of a statement is to be answered as its error. Where every panic must come
    /// to light, as in a simulated world, it is not.
    fn contains_panics(&self) -> bool {
        true
    }

    /// The processor time that the calling thread has used so far; for figures, decides nothing.
    fn thread_time(&self) -> Duration {
        Duration::ZERO
    }

    /// Stops the node at once, as a failed fsync demands (P6). In the simulator it returns, and
    /// no task of the node is ever polled again.
    fn stop_node(&self, reason: &str);
}

/// The forms of the server's log, each a file of its own (`log_destination`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogDestination {
    /// Lines of text, among those of [`Env::log`].
    Stderr,
    /// A record of comma-separated values for each message.
    Csv,
    /// A JSON object for each message.
    Json,
}

impl Debug for dyn Env {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Env")
    }
}

/// What a world without secrets draws in place of one: reproducible, from 64 bits of its own.
pub fn no_secret(mut bits: u64) -> [u8; 32] {
    let mut secret = [0; 32];
    for part in secret.chunks_exact_mut(8) {
        part.copy_from_slice(&bits.to_le_bytes());
        bits = bits.rotate_left(29).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    secret
}

/// Sleeps for a while.
pub fn sleep(env: &dyn Env, duration: Duration) -> BoxFuture<'static, ()> {
    env.sleep_until(env.now().after(duration))
}

/// How much an operator should care.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// For whoever looks for a bug.
    Debug,
    /// A change of state.
    Info,
    /// Something an operator may want to mend.
    Warning,
    /// The node stops or something was refused.
    Error,
}

/// The files of one node. Paths are relative to its data directory, with `/` between parts.
///
/// Calls other than [`File::sync`] and [`Disk::sync_dir`] reach the operating system only; what
/// they did may be lost or torn at a crash until the file (for its content) and the directory (for
/// its name) were synced.
pub trait Disk: Send + Sync {
    /// Opens a file for reading and writing.
    fn open(&self, path: &str, mode: OpenMode) -> io::Result<Arc<dyn File>>;
    /// The names in a directory, sorted.
    fn list(&self, path: &str) -> io::Result<Vec<String>>;
    /// Makes a directory and its parents; it may be there already.
    fn create_dir(&self, path: &str) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &str) -> io::Result<()>;
    /// Removes a directory and everything in it; it may be missing already.
    fn remove_dir(&self, path: &str) -> io::Result<()>;
    /// Puts a file in another's place, atomically.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, path: &str) -> io::Result<()>;
}

/// How [`Disk::open`] treats a file that is there or is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// The file must be there.
    Existing,
    /// The file is made if it is missing.
    Create,
    /// The file must be missing.
    CreateNew,
}

/// One open file.
pub trait File: Send + Sync {
    /// Fills `buffer` from `offset`; a file that ends earlier is `UnexpectedEof`.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
    /// Fills several buffers, one after the other, as [`File::read_at`] does one.
    fn read_vectored_at(&self, buffers: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<()> {
        let mut from = offset;
        for buffer in buffers {
            self.read_at(buffer, from)?;
            from += buffer.len() as u64;
        }
        Ok(())
    }
    /// Says that so many bytes from `offset` will be read soon, so that the system may fetch them
    /// meanwhile. Changes nothing but speed.
    fn will_read(&self, _offset: u64, _len: u64) {}
    /// Writes all of `bytes` at `offset`, growing the file if needed.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Says that what was written of so many bytes from `offset` will be synced soon, so that the
    /// system may begin to bring it to the disk. Makes nothing durable, and changes nothing but
    /// speed.
    fn will_sync(&self, _offset: u64, _len: u64) {}
    /// The length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Whether the file is empty.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Sets the length; reserves the space it adds, which reads as zeros.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Makes everything written before the call durable (fdatasync).
    ///
    /// In a real node the future does its work, blocking, when first polled: call it on a thread
    /// where that harms nobody. A failure is final: after it, nobody knows what is on disk.
    fn sync(&self) -> BoxFuture<'_, io::Result<()>>;
}

/// Connections between nodes and from clients.
pub trait Net: Send + Sync {
    /// Starts to listen. Addresses are `ip:port`.
    fn listen(&self, address: &str) -> io::Result<Box<dyn Listener>>;
    /// Connects.
    fn connect(&self, address: &str) -> BoxFuture<'static, io::Result<Box<dyn Stream>>>;
}

/// A listening socket.
pub trait Listener: Send {
    /// The next connection and the address it comes from. The stream belongs to the reactor that
    /// first polls it, until it is [detached](Stream::detach).
    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<(Box<dyn Stream>, String)>>;
}

/// A stream of bytes in both directions. Dropping it closes it.
pub trait Stream: Send {
    /// Reads some bytes; 0 when the other side has closed.
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>>;
    /// Writes some bytes.
    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>>;
    /// Whether [`Stream::poll_finish`] does anything: where it does not, dropping the stream is the
    /// only end, and loses nothing that is on its way.
    fn can_finish(&self) -> bool {
        false
    }
    /// Says that nothing more will be written: the other side reads what is on its way, and then an
    /// end. What it still sends can be read on.
    ///
    /// # Errors
    /// `Unsupported`; whatever the system refuses.
    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let _ = cx;
        Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
    }
    /// Lets the stream go from the reactor that has polled it, so that it belongs to the next one
    /// that does.
    ///
    /// # Errors
    /// Whatever the system refuses; the stream is lost then.
    fn detach(&mut self) -> io::Result<()> {
        Ok(())
    }
    /// Another way into the stream, for every reactor. The stream is closed when both are dropped.
    ///
    /// # Errors
    /// `Unsupported` where there is none; whatever the system refuses.
    fn outlet(&mut self) -> io::Result<Arc<dyn Outlet>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Writes to a stream from any reactor, where that takes no wait. Who writes when is the caller's
/// affair.
pub trait Outlet: Send + Sync {
    /// Writes some bytes, or fails with `WouldBlock`.
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize>;
}

/// Reads some bytes.
pub async fn read(stream: &mut dyn Stream, buffer: &mut [u8]) -> io::Result<usize> {
    std::future::poll_fn(|cx| stream.poll_read(cx, buffer)).await
}

/// Writes all of `bytes`.
pub async fn write_all(stream: &mut dyn Stream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = std::future::poll_fn(|cx| stream.poll_write(cx, bytes)).await?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = &bytes[written..];
    }
    Ok(())
}
