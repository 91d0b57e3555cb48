//! The log of a node: lines on standard error, which may be led into a file, and beside it, where
//! `log_destination` says so, sessions' messages and the node's own as CSV and JSON.
//!
//! ```text
//! DIR/node.log        2026-11-22 05:55:49.498 UTC [2347] n2 LOG: told to stop
//! DIR/node.log.csv    csvlog
//! DIR/node.log.json   jsonlog
//! DIR/node.log.1      what was put aside last
//! ```
//! Nobody who has something to say waits for the disk: lines are queued, and a thread of the log's
//! own writes them. Where the queue is full, lines are counted instead, and the count is written as
//! soon as there is room. A file that has grown to `log_rotation_size` is put aside, and of those
//! that were only the newest are kept ([`bound`]): so strangers who connect again and again fill
//! no disk.
//!
//! Led into a file is standard error itself, so that whatever ends the process leaves its last
//! words there. Who started the process by hand still sees what went wrong: lines of severity ERROR
//! go to where standard error led before, too.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use base::env::{LogDestination, Severity};
use base::{Error, SqlState};
use pg::log::{own_record, Kind, Who};
use sql::session::LogLevel;

use super::{clock, host};
use crate::config::LogFiles;

/// Bytes that wait to be written; what comes beyond is left out, and counted.
const QUEUED_BYTES_MAX: usize = 4 << 20;

/// Standard error and standard output.
const STANDARD: [RawFd; 2] = [libc::STDERR_FILENO, libc::STDOUT_FILENO];

/// Where standard error led before it was led into a file.
struct Led {
    before: File,
}

static LED: OnceLock<Led> = OnceLock::new();

/// The node's own lines in the forms of other programs.
struct Own {
    also_to: Vec<LogDestination>,
    /// How many there were, as CSV and as JSON.
    counts: [u64; 2],
}

static OWN: Mutex<Own> = Mutex::new(Own {
    also_to: Vec::new(),
    counts: [0; 2],
});

/// The node's own lines go there too from now on.
pub(super) fn also_to(destinations: &[LogDestination]) {
    let others = destinations.iter().copied();
    let others = others.filter(|to| *to != LogDestination::Stderr);
    lock(&OWN).also_to = others.collect();
}

/// A line of the node's own, in each of the other forms that are wanted.
fn own_records(name: &str, severity: Severity, message: &str) -> Vec<(LogDestination, String)> {
    static STARTED: OnceLock<base::Timestamp> = OnceLock::new();
    let now = clock::wall_clock();
    let who = Who {
        pid: i32::try_from(std::process::id()).unwrap_or_default(),
        started: *STARTED.get_or_init(|| now),
        kind: Kind::Node,
        ..Who::default()
    };
    let (level, state) = match severity {
        Severity::Debug | Severity::Info => (LogLevel::Log, SqlState::SUCCESSFUL_COMPLETION),
        Severity::Warning => (LogLevel::Warning, SqlState::WARNING),
        Severity::Error => (LogLevel::Error, SqlState::INTERNAL_ERROR),
    };
    let body = Error::new(state, message);
    let mut own = lock(&OWN);
    let Own { also_to, counts } = &mut *own;
    let record = |to: &LogDestination| {
        let count = &mut counts[usize::from(*to == LogDestination::Json)];
        (
            *to,
            own_record(*to, (&who, name), (level, &body), now, count),
        )
    };
    also_to.iter().map(record).collect()
}

/// Leads standard error into a file from now on, behind what is there. Done once.
///
/// # Errors
/// Whatever the system refuses.
pub fn lead_to(path: &Path) -> io::Result<()> {
    // SAFETY: the system gives a new descriptor, which nobody else has, or refuses.
    let before = unsafe {
        let copy = libc::fcntl(libc::STDERR_FILENO, libc::F_DUPFD_CLOEXEC, 3);
        if copy < 0 {
            return Err(io::Error::last_os_error());
        }
        File::from_raw_fd(copy)
    };
    let to = path.to_owned();
    open_file(&to, [true, false])?;
    assert!(LED.set(Led { before }).is_ok(), "a log is led once");
    Ok(())
}

/// Opens the files anew, where there are any: the old ones may have been moved out of the way.
///
/// # Errors
/// Whatever the system refuses; the log goes on where it was.
pub fn open_anew() -> io::Result<()> {
    let mut files = lock(&LOG.files);
    files.open = [None, None];
    files.lengths = [None; 3];
    match (&files.path, files.leads) {
        (Some(path), leads) if leads[0] => open_file(path, leads),
        _ => Ok(()),
    }
}

/// Leads standard error, standard output, or both into a file, behind what is there.
fn open_file(path: &Path, leads: [bool; 2]) -> io::Result<()> {
    let file = host::append_to(path)?;
    for (fd, _) in STANDARD.into_iter().zip(leads).filter(|(_, leads)| *leads) {
        // SAFETY: both descriptors are open.
        if unsafe { libc::dup2(file.as_raw_fd(), fd) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Whether a descriptor leads into that very file.
fn is_led_to(fd: RawFd, path: &Path) -> bool {
    // SAFETY: the descriptor is one of the process's own, and is not closed here.
    let file = ManuallyDrop::new(unsafe { File::from_raw_fd(fd) });
    let identity = |found: fs::Metadata| (found.dev(), found.ino());
    match (file.metadata(), fs::metadata(path)) {
        (Ok(here), Ok(there)) => identity(here) == identity(there),
        _ => false,
    }
}

/// Says something where standard error led before it was led into a file; nothing where it still
/// leads there.
pub fn tell_starter(text: &str) {
    if let Some(led) = LED.get() {
        // Nobody can be told that it is closed.
        let _ = (&led.before).write_all(format!("{text}\n").as_bytes());
    }
}

/// Where the log of a process goes, and what has not got there yet.
struct Log {
    queue: Mutex<Queue>,
    arrived: Condvar,
    /// Taken by whoever writes.
    files: Mutex<Files>,
}

#[derive(Default)]
struct Queue {
    lines: Vec<(LogDestination, String)>,
    bytes: usize,
    /// How many were left out.
    lost: u64,
}

/// The files of the log, by form.
struct Files {
    /// The file of lines; those of the other forms have longer names. None where nobody said.
    path: Option<PathBuf>,
    /// Whether standard error and standard output lead into it, whoever has led them there.
    leads: [bool; 2],
    bound: LogFiles,
    /// The files of the other forms, once there was something for them.
    open: [Option<File>; 2],
    /// How long the files are; none where nobody has looked.
    lengths: [Option<u64>; 3],
}

static LOG: Log = Log {
    queue: Mutex::new(Queue {
        lines: Vec::new(),
        bytes: 0,
        lost: 0,
    }),
    arrived: Condvar::new(),
    files: Mutex::new(Files {
        path: None,
        leads: [false; 2],
        bound: LogFiles {
            bytes_max: None,
            kept: 0,
        },
        open: [None, None],
        lengths: [None; 3],
    }),
};

/// A lock that goes on after a panic: what it guards is whole after every step.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says which file the log of lines is, or would be, and how long files may be.
pub fn bound(path: PathBuf, bound: LogFiles) {
    let mut files = lock(&LOG.files);
    files.leads = STANDARD.map(|fd| is_led_to(fd, &path));
    files.path = Some(path);
    files.bound = bound;
}

/// Starts the thread that writes. Without it, lines wait until the queue is flushed.
pub(super) fn start(name: &str) {
    static STARTED: OnceLock<()> = OnceLock::new();
    if STARTED.set(()).is_err() {
        return;
    }
    let name = name.to_owned();
    let writer = move || loop {
        let mut queue = lock(&LOG.queue);
        while queue.lines.is_empty() {
            queue = LOG
                .arrived
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
        }
        drop(queue);
        flush(&name);
    };
    // Without a thread everything is written where it is said, which is slower and no loss.
    let _ = std::thread::Builder::new()
        .name("server log".to_owned())
        .spawn(writer);
}

/// Writes what waits, in this thread.
pub fn flush(name: &str) {
    let mut files = lock(&LOG.files);
    let taken = std::mem::take(&mut *lock(&LOG.queue));
    for (destination, lines) in &taken.lines {
        files.write(*destination, lines);
    }
    if taken.lost > 0 {
        let message = format!("{} messages were left out of the log", taken.lost);
        files.write(
            LogDestination::Stderr,
            &text_of(name, Severity::Warning, &message),
        );
    }
}

/// Takes lines for a file of the log.
pub(super) fn write(to: LogDestination, lines: String) {
    let mut queue = lock(&LOG.queue);
    if queue.bytes + lines.len() > QUEUED_BYTES_MAX {
        queue.lost += 1;
        return;
    }
    queue.bytes += lines.len();
    queue.lines.push((to, lines));
    LOG.arrived.notify_one();
}

impl Files {
    fn write(&mut self, to: LogDestination, lines: &str) {
        self.make_room(to, lines.len() as u64);
        let place = match to {
            LogDestination::Stderr => {
                // Nobody can be told that standard error is closed.
                let _ = io::stderr().lock().write_all(lines.as_bytes());
                return;
            }
            LogDestination::Csv => 0,
            LogDestination::Json => 1,
        };
        if self.open[place].is_none() {
            self.open[place] = self
                .path_of(to)
                .and_then(|path| host::append_to(&path).ok());
        }
        let written = self.open[place]
            .as_mut()
            .map(|file| file.write_all(lines.as_bytes()));
        if !matches!(written, Some(Ok(()))) {
            // Better in the wrong file than nowhere.
            let _ = io::stderr().lock().write_all(lines.as_bytes());
        }
    }

    fn path_of(&self, of: LogDestination) -> Option<PathBuf> {
        let mut path: OsString = self.path.clone()?.into();
        path.push(match of {
            LogDestination::Stderr => "",
            LogDestination::Csv => ".csv",
            LogDestination::Json => ".json",
        });
        Some(path.into())
    }

    /// Puts a file aside that would grow too long.
    fn make_room(&mut self, of: LogDestination, more: u64) {
        let is_ours = of != LogDestination::Stderr || self.leads[0];
        let (Some(most), Some(path), true) = (self.bound.bytes_max, self.path_of(of), is_ours)
        else {
            return;
        };
        let known = &mut self.lengths[of as usize];
        let length = known.unwrap_or_else(|| fs::metadata(&path).map_or(0, |found| found.len()));
        *known = Some(length + more);
        if length == 0 || length + more <= most {
            return;
        }
        put_aside(&path, self.bound.kept);
        self.lengths[of as usize] = Some(more);
        match of {
            LogDestination::Stderr => {
                // If it cannot be opened, lines go on into the one that was put aside.
                let _ = open_file(&path, self.leads);
            }
            LogDestination::Csv => self.open[0] = None,
            LogDestination::Json => self.open[1] = None,
        }
    }
}

/// Gives a file the name with 1 behind it, and those that have numbers the next ones.
fn put_aside(path: &Path, kept: u32) {
    let numbered = |number: u32| -> PathBuf {
        let mut name: OsString = path.into();
        name.push(format!(".{number}"));
        name.into()
    };
    if kept == 0 {
        // What fails here is tried again at the next line.
        let _ = fs::remove_file(path);
        return;
    }
    for number in (1..kept).rev() {
        let _ = fs::rename(numbered(number), numbered(number + 1));
    }
    let _ = fs::rename(path, numbered(1));
}

fn text_of(name: &str, severity: Severity, message: &str) -> String {
    let word = match severity {
        Severity::Debug => "DEBUG",
        Severity::Info => "LOG",
        Severity::Warning => "WARNING",
        Severity::Error => "ERROR",
    };
    let time = clock::utc_text(clock::wall_clock());
    format!("{time} [{}] {name} {word}: {message}\n", std::process::id())
}

/// Says something of the node's own. What is said of an error is written before this returns: the
/// process may be about to end.
pub(super) fn line(name: &str, severity: Severity, message: &str) {
    if severity == Severity::Debug {
        return;
    }
    let line = text_of(name, severity, message);
    if severity == Severity::Error {
        tell_starter(line.trim_end());
        flush(name);
        let records = own_records(name, severity, message);
        let mut files = lock(&LOG.files);
        files.write(LogDestination::Stderr, &line);
        for (to, record) in records {
            files.write(to, &record);
        }
        return;
    }
    for (to, record) in own_records(name, severity, message) {
        write(to, record);
    }
    write(LogDestination::Stderr, line);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_put_aside_and_the_oldest_go() {
        let directory = tempfile::tempdir().unwrap();
        let mut files = Files {
            path: Some(directory.path().join("node.log")),
            leads: [false; 2],
            bound: LogFiles {
                bytes_max: Some(10),
                kept: 2,
            },
            open: [None, None],
            lengths: [None; 3],
        };
        for number in 0..6 {
            files.write(LogDestination::Csv, &format!("line {number}\n"));
        }
        let mut names: Vec<_> = fs::read_dir(directory.path())
            .unwrap()
            .map(|found| found.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["node.log.csv", "node.log.csv.1", "node.log.csv.2"]);
        let text = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
        assert_eq!(text("node.log.csv"), "line 5\n");
        assert_eq!(text("node.log.csv.2"), "line 3\n");
    }
}
