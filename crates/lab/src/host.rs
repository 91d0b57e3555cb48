//! Processes of this machine: started, waited for, and always ended by whoever started them.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use std::ffi::OsStr;
use std::io::{Error, ErrorKind, Result};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::session::Target;

/// How long a server may take to start or to stop.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A process that is ended when this value is dropped: politely, then by force.
#[derive(Debug)]
pub struct Process {
    child: Child,
}

impl Process {
    /// Starts a command with its output in a file.
    ///
    /// # Errors
    /// The command cannot be started, or the file not written.
    pub fn start(command: &mut Command, path: &Path) -> Result<Process> {
        // A node does not start where others may read what lies in its directory.
        let mut options = std::fs::OpenOptions::new();
        let log = options.write(true).create(true).truncate(true).mode(0o600);
        let log = log.open(path)?;
        let child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        Ok(Process { child })
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by its name, such as `TERM` or `KILL`.
    ///
    /// # Errors
    /// The process is gone.
    pub fn signal(&self, name: &str) -> Result<()> {
        signal(self.pid(), name)
    }

    /// Whether the process has ended.
    pub fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)) | Err(_))
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// `TimedOut` after [`PATIENCE`].
    pub fn wait(&mut self) -> Result<()> {
        wait_for("the end of a process", PATIENCE, || self.has_ended())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.has_ended() {
            return;
        }
        let _ = self.signal("TERM");
        if self.wait().is_err() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// The text of a file.
///
/// # Errors
/// It cannot be read.
pub fn read_file(path: &Path) -> Result<String> {
    std::fs::read_to_string(path)
}

/// The names in a directory, sorted.
///
/// # Errors
/// It cannot be read.
pub fn read_names(path: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(path)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// Removes a file.
///
/// # Errors
/// It cannot be removed.
pub fn remove_file(path: &Path) -> Result<()> {
    std::fs::remove_file(path)
}

/// Writes a file, in the place of an older one.
///
/// # Errors
/// It cannot be written.
pub fn write_file(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text)
}

/// Makes a directory and its parents, where they are missing.
///
/// # Errors
/// They cannot be made.
pub fn create_dir(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path)
}

/// Removes a directory with all that is in it.
///
/// # Errors
/// Something in it cannot be removed.
pub fn remove_dir(path: &Path) -> Result<()> {
    std::fs::remove_dir_all(path)
}

/// Sends a signal to a process.
///
/// # Errors
/// There is no such process.
pub fn signal(pid: u32, name: &str) -> Result<()> {
    run(Command::new("kill").args([&format!("-{name}"), &pid.to_string()])).map(drop)
}

/// The processes that this one has started and that have not ended.
///
/// # Errors
/// The system does not say.
pub fn children(pid: u32) -> Result<Vec<u32>> {
    let all = parents()?.into_iter();
    let mine = all.filter(|(_, parent)| *parent == pid);
    Ok(mine.map(|(child, _)| child).collect())
}

/// All processes with those that have started them.
fn parents() -> Result<Vec<(u32, u32)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let pid = name.to_str().and_then(|name| name.parse().ok());
        // One that ends in this moment is none.
        if let Some((pid, Ok(times))) = pid.map(|pid| (pid, ProcessTimes::read(pid))) {
            found.push((pid, times.parent));
        }
    }
    Ok(found)
}

/// Whether a process is gone, or has ended and nobody has asked for its end yet.
pub fn has_ended(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.map_or(true, |stat| is_end(&stat))
}

/// Whether a line of `/proc/PID/stat` (proc(5)) is that of a process that has ended. Its first
/// thread may have done so before the others, which have its files and locks until they do too.
fn is_end(stat: &str) -> bool {
    let mut fields = fields_from_state(stat);
    let (state, threads) = (fields.next(), fields.nth(16));
    state == Some("Z") && threads.is_none_or(|threads| threads == "1")
}

/// Whether every thread of a process stands still because it was told to (SIGSTOP).
pub fn is_stopped(pid: u32) -> bool {
    let is_stopped = |thread: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(thread.path().join("stat"));
        stat.is_ok_and(|stat| fields_from_state(&stat).next() == Some("T"))
    };
    let threads = std::fs::read_dir(format!("/proc/{pid}/task"));
    threads.is_ok_and(|mut threads| threads.all(|thread| thread.is_ok_and(is_stopped)))
}

/// The fields of a line of `/proc/PID/stat` behind the name, which is in brackets and may have any.
fn fields_from_state(stat: &str) -> impl Iterator<Item = &str> {
    let (_, after_name) = stat.rsplit_once(") ").unwrap_or_default();
    after_name.split(' ')
}

/// Microseconds of processor time that these processes and their children have used, those children
/// included that have ended and been waited for.
///
/// # Errors
/// One of `roots` is gone.
pub fn processor_micros(roots: &[u32]) -> Result<f64> {
    let ticks_per_second: f64 = run(Command::new("getconf").arg("CLK_TCK"))?
        .trim()
        .parse()
        .map_err(Error::other)?;
    let mut ticks = 0;
    for root in roots {
        let root = ProcessTimes::read(*root)?;
        ticks += root.own + root.ended_children;
    }
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let pid = name.to_str().and_then(|name| name.parse().ok());
        // One that ends in this moment is not counted.
        if let Some(Ok(child)) = pid.map(ProcessTimes::read) {
            if roots.contains(&child.parent) {
                ticks += child.own + child.ended_children;
            }
        }
    }
    Ok(ticks as f64 / ticks_per_second * 1e6)
}

/// Microseconds of processor time of this process's children that have ended.
///
/// # Errors
/// The system does not say.
pub fn processor_micros_of_children() -> Result<f64> {
    let ticks_per_second: f64 = run(Command::new("getconf").arg("CLK_TCK"))?
        .trim()
        .parse()
        .map_err(Error::other)?;
    let times = ProcessTimes::read(std::process::id())?;
    Ok(times.ended_children as f64 / ticks_per_second * 1e6)
}

/// The processors of this machine.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Bytes that the block device below a directory has been given to write since the machine began,
/// by everything that runs on it; none where no block device is below, as in memory.
///
/// The counters of processes are no measure: they take a page of the page cache for written whole,
/// which may be two megabytes, each time the first of its bytes is changed.
pub fn written_bytes(dir: &Path) -> Option<f64> {
    /// What the counters count in, whatever the device's own sectors are.
    const SECTOR_BYTES: f64 = 512.0;
    const SECTORS_WRITTEN: usize = 6;
    let device = std::fs::metadata(dir).ok()?.dev();
    // As Linux puts the two numbers of a device into one.
    let major = device >> 8 & 0xfff | device >> 32 & !0xfff;
    let minor = device & 0xff | device >> 12 & !0xff;
    let counters = std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/stat")).ok()?;
    let sectors: f64 = counters
        .split_whitespace()
        .nth(SECTORS_WRITTEN)?
        .parse()
        .ok()?;
    Some(sectors * SECTOR_BYTES)
}

/// Bytes that the files below a directory have on the disk. Those that go meanwhile do not count.
pub fn allocated_bytes(dir: &Path) -> u64 {
    /// What `st_blocks` counts in, everywhere.
    const BLOCK_BYTES: u64 = 512;
    let Ok(entries) = std::fs::read_dir(dir) else {
        return 0;
    };
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(about) if about.is_dir() => allocated_bytes(&entry.path()),
        Ok(about) => about.blocks() * BLOCK_BYTES,
        Err(_) => 0,
    };
    entries.filter_map(|entry| entry.ok()).map(size).sum()
}

/// Resident memory of processes and of all that they have started, in bytes; what several of them
/// share counts once. None where the system does not say.
pub fn resident_bytes(roots: &[u32]) -> Option<u64> {
    let all = parents().ok()?;
    let mut pids = roots.to_vec();
    let mut next = 0;
    while let Some(pid) = pids.get(next).copied() {
        let mine = all.iter().filter(|(_, parent)| *parent == pid);
        pids.extend(mine.map(|(child, _)| *child));
        next += 1;
    }
    let shares = |pid: &u32| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    // One that has just ended has nothing.
    let found: Vec<u64> = pids.iter().filter_map(shares).collect();
    (!found.is_empty()).then(|| found.iter().sum::<u64>() << 10)
}

/// The peak of this process's resident memory, in bytes.
///
/// # Errors
/// The system does not say.
pub fn peak_memory_bytes() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    let bytes = kilobytes.map(|kilobytes| kilobytes << 10);
    bytes.ok_or_else(|| Error::other("no VmHWM in /proc/self/status"))
}

/// The address of a host by its name.
///
/// # Errors
/// It has none.
pub fn resolve(host: &str, port: u16) -> Result<std::net::SocketAddr> {
    use std::net::ToSocketAddrs;
    let unknown = || Error::new(ErrorKind::NotFound, format!("{host} has no address"));
    (host, port).to_socket_addrs()?.next().ok_or_else(unknown)
}

/// What `/proc/PID/stat` says of a process, in clock ticks.
#[derive(Debug, PartialEq, Eq)]
struct ProcessTimes {
    parent: u32,
    own: u64,
    ended_children: u64,
}

impl ProcessTimes {
    fn read(pid: u32) -> Result<ProcessTimes> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
        ProcessTimes::parse(&text).ok_or_else(|| Error::other(format!("process {pid}: {text}")))
    }

    fn parse(text: &str) -> Option<ProcessTimes> {
        // The name, in parentheses, may hold anything.
        let fields: Vec<&str> = text.rsplit_once(") ")?.1.split(' ').collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        Some(ProcessTimes {
            parent: fields.get(1)?.parse().ok()?,
            own: number(11)? + number(12)?,
            ended_children: number(13)? + number(14)?,
        })
    }
}

/// Waits until `done` holds.
///
/// # Errors
/// `TimedOut`, naming what was waited for.
pub fn wait_for(what: &str, limit: Duration, mut done: impl FnMut() -> bool) -> Result<()> {
    let start = Instant::now();
    while !done() {
        if start.elapsed() > limit {
            return Err(Error::new(
                ErrorKind::TimedOut,
                format!("waited {limit:?} for {what}"),
            ));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Runs `other` on so many threads of its own while `main` runs on this one.
///
/// # Errors
/// Another thread panicked.
pub fn beside<A, B: Send>(
    count: usize,
    other: impl Fn() -> B + Sync,
    main: impl FnOnce() -> A,
) -> Result<(A, Vec<B>)> {
    std::thread::scope(|scope| {
        let others: Vec<_> = (0..count).map(|_| scope.spawn(&other)).collect();
        let result = main();
        let others: Result<Vec<B>> = others
            .into_iter()
            .map(|other| other.join().map_err(|_| Error::other("a thread panicked")))
            .collect();
        Ok((result, others?))
    })
}

/// Whoever started this wants it to stop.
static STOPPING: AtomicBool = AtomicBool::new(false);

/// Work is to stop soon: what clients are at is ended at once, and [`go_on`] is an error from now
/// on, so that whoever has started servers comes to stop them.
pub fn stop() {
    STOPPING.store(true, Ordering::Relaxed);
    for child in children(std::process::id()).unwrap_or_default() {
        let name = read_file(Path::new(&format!("/proc/{child}/comm"))).unwrap_or_default();
        if ["psql", "pgbench"].contains(&name.trim()) {
            // One that has just ended needs no signal.
            let _ = signal(child, "KILL");
        }
    }
}

/// Whether work may go on.
///
/// # Errors
/// `Interrupted` after [`stop`].
pub fn go_on() -> Result<()> {
    match STOPPING.load(Ordering::Relaxed) {
        true => Err(Error::new(ErrorKind::Interrupted, "told to stop")),
        false => Ok(()),
    }
}

/// Blocks this thread for a while.
pub fn pause(duration: Duration) {
    std::thread::sleep(duration);
}

/// Runs a command to its end and returns what it printed.
///
/// # Errors
/// It cannot be started, or it fails: then with what it wrote to standard error.
pub fn run(command: &mut Command) -> Result<String> {
    let output = output(command)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(Error::other(format!(
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    )))
}

/// Runs a command to its end.
///
/// # Errors
/// It cannot be started.
pub fn output(command: &mut Command) -> Result<Output> {
    command.stdin(Stdio::null()).output().map_err(|error| {
        Error::new(
            error.kind(),
            format!("{}: {error}", command.get_program().to_string_lossy()),
        )
    })
}

/// Ports that are handed out, with room for a thousand more above: below those that the system
/// gives to outgoing connections, one of which could otherwise sit on a server's port while the
/// server restarts.
const PORTS: std::ops::Range<u32> = 20_000..31_000;

/// A TCP port that is free now on all of these addresses, and that this process has not handed out
/// before.
///
/// # Errors
/// `AddrInUse` when none of [`PORTS`] is free.
pub fn free_port(addresses: &[&str]) -> Result<u16> {
    static HANDED_OUT: AtomicU32 = AtomicU32::new(0);
    let start = std::process::id().wrapping_mul(37);
    for _ in PORTS {
        let next = HANDED_OUT.fetch_add(1, Ordering::Relaxed);
        let port = PORTS.start + start.wrapping_add(next) % (PORTS.end - PORTS.start);
        let port = u16::try_from(port).map_err(Error::other)?;
        let is_free = |address: &&str| TcpListener::bind((*address, port)).is_ok();
        if addresses.iter().all(is_free) {
            return Ok(port);
        }
    }
    Err(ErrorKind::AddrInUse.into())
}

/// A server that psql can reach.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Its address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// As whom.
    pub login: Login,
}

/// As whom a server is reached, and in which database.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Login {
    pub user: String,
    pub password: Option<String>,
    pub database: String,
}

impl Default for Login {
    /// `postgres` in database `postgres`, without a password.
    fn default() -> Login {
        Login {
            user: "postgres".to_owned(),
            password: None,
            database: "postgres".to_owned(),
        }
    }
}

impl Endpoint {
    /// There, as `postgres` in database `postgres`.
    pub fn at(host: &str, port: u16) -> Endpoint {
        Endpoint {
            host: host.to_owned(),
            port,
            login: Login::default(),
        }
    }

    /// A command of PostgreSQL's clients pointed at this server, with no start-up file, in UTC and
    /// with messages that are not translated. It may name another database than
    /// [`Endpoint::database`].
    pub fn client(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .args(["-h", &self.host, "-p", &self.port.to_string()])
            .args(["-U", &self.login.user])
            .env("LC_ALL", "C.UTF-8")
            .env("PGTZ", "UTC")
            .env("PGCONNECT_TIMEOUT", "5")
            .env("PGDATABASE", &self.login.database);
        match &self.login.password {
            Some(password) => command.env("PGPASSWORD", password),
            None => command.env_remove("PGPASSWORD"),
        };
        command
    }

    /// The database that workloads use.
    pub fn database(&self) -> &str {
        &self.login.database
    }

    /// Where a session of our own goes.
    pub fn target(&self) -> Target {
        Target {
            user: self.login.user.clone(),
            password: self.login.password.clone(),
            database: self.login.database.clone(),
            // An address of version 6 has colons of its own.
            ..Target::at(&match self.host.contains(':') {
                true => format!("[{}]:{}", self.host, self.port),
                false => format!("{}:{}", self.host, self.port),
            })
        }
    }

    /// psql, quiet, unaligned, stopping at the first error.
    pub fn psql(&self) -> Command {
        let mut command = self.client("psql");
        command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]);
        command.arg(self.database());
        command
    }

    /// What psql prints for some SQL.
    ///
    /// # Errors
    /// psql fails; the error holds what it said.
    pub fn query(&self, sql: &str) -> Result<String> {
        Ok(run(self.psql().args(["-c", sql]))?.trim_end().to_owned())
    }

    /// Waits until the server answers.
    ///
    /// # Errors
    /// `TimedOut` after [`PATIENCE`].
    pub fn wait(&self) -> Result<()> {
        wait_for(
            &format!("an answer from {}:{}", self.host, self.port),
            PATIENCE,
            || self.query("select 1").is_ok_and(|answer| answer == "1"),
        )
    }
}

/// A directory of its own below the system's temporary one, removed when this value is dropped.
#[derive(Debug)]
pub struct ScratchDir(std::path::PathBuf);

impl ScratchDir {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Makes a directory that other users may enter, since PostgreSQL does not run as root.
///
/// # Errors
/// It cannot be made.
pub fn scratch_dir(name: &str) -> Result<ScratchDir> {
    use std::os::unix::fs::PermissionsExt;
    let path = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
    std::fs::create_dir_all(&path)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
    Ok(ScratchDir(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_ends_with_its_last_thread() {
        let line = |state, threads| {
            format!(
                "12 (a ) b) {state} 1 12 12 0 -1 4194304 99 0 0 0 1 2 0 0 20 0 {threads} 0 300 0 0"
            )
        };
        assert!(!is_end(&line("S", 9)));
        assert!(!is_end(&line("R", 1)));
        assert!(!is_end(&line("Z", 8)));
        assert!(is_end(&line("Z", 1)));
    }

    #[test]
    fn processor_times_are_read() {
        let line = "7 (a) b) S 5 7 7 0 -1 4194560 1 2 3 4 100 20 3 1 20 0 1 0 9";
        let times = ProcessTimes {
            parent: 5,
            own: 120,
            ended_children: 4,
        };
        assert_eq!(ProcessTimes::parse(line), Some(times));
        assert_eq!(ProcessTimes::parse("nothing"), None);
    }
}
