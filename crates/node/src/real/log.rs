//! The log of a node: lines on standard error, which may be led into a file.
//!
//! ```text
//! 2026-11-22 05:55:49.498 UTC [2347] n2 LOG: told to stop
//! ```
//! Led into a file is standard error itself, so that whatever ends the process leaves its last
//! words there. Who started the process by hand still sees what went wrong: lines of severity ERROR
//! go to where standard error led before, too.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use base::env::Severity;

use super::{clock, host};

/// Where standard error led before, and where it leads now.
struct Led {
    before: File,
    to: PathBuf,
}

static LED: OnceLock<Led> = OnceLock::new();

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
    assert!(LED.set(Led { before, to }).is_ok(), "a log is led once");
    open_anew()
}

/// Opens the file anew, where there is one: the old one may have been moved out of the way.
///
/// # Errors
/// Whatever the system refuses; the log goes on where it was.
pub fn open_anew() -> io::Result<()> {
    let Some(led) = LED.get() else {
        return Ok(());
    };
    let file = host::append_to(&led.to)?;
    // SAFETY: both descriptors are open.
    match unsafe { libc::dup2(file.as_raw_fd(), libc::STDERR_FILENO) } {
        fd if fd < 0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
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

/// Writes one line, in one write.
pub(super) fn line(name: &str, severity: Severity, message: &str) {
    let word = match severity {
        Severity::Debug => return,
        Severity::Info => "LOG",
        Severity::Warning => "WARNING",
        Severity::Error => "ERROR",
    };
    let time = clock::utc_text(clock::wall_clock());
    let line = format!("{time} [{}] {name} {word}: {message}", std::process::id());
    if severity == Severity::Error {
        tell_starter(&line);
    }
    // Nobody can be told that standard error is closed.
    let _ = io::stderr()
        .lock()
        .write_all(format!("{line}\n").as_bytes());
}
