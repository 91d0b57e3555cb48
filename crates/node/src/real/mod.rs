//! The real world behind [`base::env::Env`]: threads, sockets, files and clocks.
//!
//! This is the only module of Quorate that names them. Everything else takes an `Env`, so that the
//! simulator can put its own in this one's place and run the same node.
//!
//! # Threads
//! A node has one thread per session reactor, one for its group (Raft, peers, timers), one for
//! connections that have not shown who they are, one for its log, which may block in fdatasync, one for background work, and one for its status page. Each
//! runs one tokio current-thread runtime; tasks never move between them. The threads of sessions have a large
//! stack, because the SQL parser recurses on it.
//!
//! # When code panics
//! A session that panics loses its connection, nothing more, unless it held a latch: then what the
//! latch guards may be half changed, and the node stops. A panic anywhere else stops the node.
//!
//! # What it leaves out
//! Timers have tokio's grain of one millisecond. Threads are not bound to cores.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod clock;
mod disk;
mod net;
mod reactor;
pub mod tls;

pub mod admin;
pub mod host;
pub mod http;
pub mod log;

#[cfg(test)]
mod tests;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::Arc;
use std::time::Duration;

use base::env::{BoxFuture, Disk, Env, Instant, LogDestination, Net, Reactor, Severity, TaskStart};
use base::sync::Mutex;
use base::Timestamp;
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use disk::RealDisk;
use net::RealNet;
use reactor::Reactors;

/// The exit code of a process whose node stopped itself: a broken disk, a damaged directory, a
/// panic outside a session.
pub const EXIT_NODE_STOPPED: i32 = 3;

/// How often it is looked whether the process is told to stop while it waits for something else.
const STOP_LOOK: std::time::Duration = std::time::Duration::from_millis(20);

/// What a [`RealEnv`] is made of.
#[derive(Clone, Debug)]
pub struct RealOptions {
    /// The node's name, shown in its log lines.
    pub name: String,
    /// The data directory; it is made if it is missing.
    pub data_dir: PathBuf,
    /// Threads that serve sessions, at least 1.
    pub session_reactors: usize,
    /// How long a session reactor looks for new input before it sleeps; zero where nodes outnumber
    /// cores.
    pub spin: std::time::Duration,
    /// Addresses that are reached through others: what would connect to the first connects to the
    /// second, where a relay listens.
    pub routes: Vec<(SocketAddr, SocketAddr)>,
    /// Whether it may listen where other machines can connect; the node checks on what terms.
    pub reaches_beyond: bool,
}

/// One node's access to the real world.
pub struct RealEnv {
    name: String,
    disk: Arc<RealDisk>,
    net: Arc<RealNet>,
    random: Mutex<Xoshiro256PlusPlus>,
    reactors: Reactors,
}

impl RealEnv {
    /// Takes the data directory for this process and starts the threads.
    ///
    /// # Errors
    /// `WouldBlock` when another node runs on the directory; whatever the system refuses.
    pub fn start(options: &RealOptions) -> io::Result<Arc<RealEnv>> {
        let disk = RealDisk::open(&options.data_dir)?;
        report_panics(options.name.clone());
        log::start(&options.name);
        Ok(Arc::new(RealEnv {
            name: options.name.clone(),
            disk: Arc::new(disk),
            net: Arc::new(RealNet::new(options.routes.clone(), options.reaches_beyond)),
            random: Mutex::new(Xoshiro256PlusPlus::from_seed(host::seed()?)),
            reactors: Reactors::start(options.session_reactors, options.spin)?,
        }))
    }

    /// Runs a future on the group's reactor and blocks this thread, which must be none of the
    /// node's, until it is ready.
    ///
    /// # Errors
    /// When the task ended without a result.
    pub fn block_on<T, F>(
        &self,
        name: &'static str,
        start: impl FnOnce() -> F + Send + 'static,
    ) -> io::Result<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + 'static,
    {
        let ready = self.begin(name, start).recv();
        ready.map_err(|_| io::Error::other(format!("{name} ended without a result")))
    }

    /// As [`RealEnv::block_on`], or none as soon as the process is told to stop; then the future is
    /// left to itself.
    ///
    /// # Errors
    /// When the task ended without a result.
    pub fn block_on_unless_stopped<T, F>(
        &self,
        name: &'static str,
        start: impl FnOnce() -> F + Send + 'static,
    ) -> io::Result<Option<T>>
    where
        T: Send + 'static,
        F: Future<Output = T> + 'static,
    {
        let receiver = self.begin(name, start);
        loop {
            match receiver.recv_timeout(STOP_LOOK) {
                Ok(result) => return Ok(Some(result)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(io::Error::other(format!("{name} ended without a result")));
                }
            }
            let signal = host::wait_for_stop(std::time::Duration::ZERO);
            if signal.is_some_and(|signal| !host::is_reload(signal)) {
                return Ok(None);
            }
        }
    }

    fn begin<T, F>(
        &self,
        name: &'static str,
        start: impl FnOnce() -> F + Send + 'static,
    ) -> Receiver<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + 'static,
    {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        let task: TaskStart = Box::new(move || {
            Box::pin(async move {
                let _ = sender.send(start().await);
            })
        });
        self.spawn(Reactor::Group, name, task);
        receiver
    }
}

impl Env for RealEnv {
    fn now(&self) -> Instant {
        clock::now()
    }

    fn wall_clock(&self) -> Timestamp {
        clock::wall_clock()
    }

    fn random(&self) -> u64 {
        self.random.lock().next_u64()
    }

    fn secret(&self) -> [u8; 32] {
        // A node that cannot have secrets must not go on as if it had.
        host::seed().unwrap_or_else(|error| {
            self.stop_node(&format!("the system gives no randomness: {error}"));
            unreachable!("the node has stopped")
        })
    }

    fn sleep_until(&self, deadline: Instant) -> BoxFuture<'static, ()> {
        Box::pin(clock::sleep_until(deadline))
    }

    fn spawn(&self, reactor: Reactor, name: &'static str, start: TaskStart) {
        self.reactors.spawn(reactor, name, start);
    }

    fn hurry(&self) {
        reactor::hurry();
    }

    fn session_reactors(&self) -> usize {
        self.reactors.sessions()
    }

    fn disk(&self) -> Arc<dyn Disk> {
        self.disk.clone()
    }

    fn read_server_file(&self, path: &str) -> io::Result<Box<dyn io::Read + Send>> {
        Ok(Box::new(disk::open_for_statement(path, false)?))
    }

    fn write_server_file(&self, path: &str) -> io::Result<Box<dyn io::Write + Send>> {
        Ok(Box::new(disk::open_for_statement(path, true)?))
    }

    fn net(&self) -> Arc<dyn Net> {
        self.net.clone()
    }

    fn log(&self, severity: Severity, message: &str) {
        log::line(&self.name, severity, message);
    }

    fn write_log(&self, to: LogDestination, lines: String) {
        log::write(to, lines);
    }

    fn log_also(&self, to: &[LogDestination]) {
        log::also_to(to);
    }

    fn thread_time(&self) -> Duration {
        clock::thread_time()
    }

    fn stop_node(&self, reason: &str) {
        self.log(Severity::Error, &format!("the node stops: {reason}"));
        exit_now();
    }
}

/// Ends the process without running anything more: no destructor may touch a disk that is broken.
fn exit_now() -> ! {
    // SAFETY: `_exit` takes any code and does not return.
    unsafe { libc::_exit(EXIT_NODE_STOPPED) }
}

/// Logs every panic, and stops the node where more than one session is at stake.
fn report_panics(name: String) {
    std::panic::set_hook(Box::new(move |panic| {
        let latches = base::sync::latches_held();
        let in_session = reactor::current()
            .is_some_and(|at| matches!(at, Reactor::Session(_) | Reactor::Parse(_)));
        log::line(&name, Severity::Error, &panic.to_string());
        let backtrace = std::backtrace::Backtrace::capture();
        if backtrace.status() == std::backtrace::BacktraceStatus::Captured {
            log::line(&name, Severity::Error, &backtrace.to_string());
        }
        if reactor::current().is_some() && (!in_session || latches > 0) {
            let why = format!("the node stops after a panic with {latches} latches held");
            log::line(&name, Severity::Error, &why);
            exit_now();
        }
    }));
}
