//! What the programs around a node need of the machine: its randomness, files, signals, processes.

use std::fs;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// 32 random bytes of the system, by getrandom(2): it needs no file descriptor, which may all be in
/// use, and waits after a boot until the system has any randomness.
///
/// # Errors
/// Whatever the system refuses.
pub fn seed() -> io::Result<[u8; 32]> {
    let mut seed = [0; 32];
    let mut filled = 0;
    while filled < seed.len() {
        let rest = &mut seed[filled..];
        // SAFETY: the pointer is valid for writes of that length.
        match unsafe { libc::getrandom(rest.as_mut_ptr().cast(), rest.len(), 0) } {
            count if count > 0 => filled += count as usize,
            _ => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
    Ok(seed)
}

/// Files and directories that this process makes from now on are their owner's alone, whoever makes
/// them in it. Called first of all.
pub fn make_all_private() {
    // SAFETY: it cannot fail, and no other thread runs yet.
    unsafe { libc::umask(OTHERS) };
}

/// What others than the owner may do.
const OTHERS: libc::mode_t = 0o077;

/// Whether a file or a directory belongs to the user who runs this process.
///
/// # Errors
/// Whatever the system refuses.
pub fn is_own(path: &Path) -> io::Result<bool> {
    // SAFETY: it cannot fail.
    let user = unsafe { libc::geteuid() };
    Ok(fs::metadata(path)?.uid() == user)
}

/// Whether others than its owner may do anything with a file or a directory. A link is looked
/// through by nobody here: what it leads to lies elsewhere.
///
/// # Errors
/// Whatever the system refuses.
pub fn is_wide(path: &Path) -> io::Result<bool> {
    let metadata = fs::symlink_metadata(path)?;
    Ok(!metadata.is_symlink() && metadata.mode() & OTHERS != 0)
}

/// A directory, then everything in it, as long as `visit` wants more.
///
/// # Errors
/// Whatever the system refuses. A file that is gone by the time it is looked at is none.
fn walk(path: &Path, visit: &mut impl FnMut(&Path) -> io::Result<bool>) -> io::Result<bool> {
    let is_gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    match visit(path) {
        Ok(true) => {}
        Err(error) if is_gone(&error) => return Ok(true),
        ended => return ended,
    }
    if !fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir()) {
        return Ok(true);
    }
    for name in list(path)? {
        if !walk(&path.join(name), visit)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The first of a directory and all in it with which others than the owner may do anything.
///
/// # Errors
/// Whatever the system refuses.
pub fn first_wide(dir: &Path) -> io::Result<Option<PathBuf>> {
    let mut found = None;
    walk(dir, &mut |path| {
        if is_wide(path)? {
            found = Some(path.to_owned());
        }
        Ok(found.is_none())
    })?;
    Ok(found)
}

/// Takes from others what they may do with a file or a directory; whether they could do anything.
///
/// # Errors
/// Whatever the system refuses.
pub fn narrow(path: &Path) -> io::Result<bool> {
    let wide = is_wide(path)?;
    if wide {
        let mode = fs::metadata(path)?.mode() & 0o7777 & !OTHERS;
        fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    }
    Ok(wide)
}

/// The same with a directory and all in it; how many of them were wide.
///
/// # Errors
/// Whatever the system refuses.
pub fn narrow_all(dir: &Path) -> io::Result<usize> {
    let mut count = 0;
    walk(dir, &mut |path| {
        count += usize::from(narrow(path)?);
        Ok(true)
    })?;
    Ok(count)
}

/// Seconds since 1970, by the wall clock.
pub fn unix_time() -> i64 {
    /// 2000-01-01, from which Quorate counts.
    const EPOCH: i64 = 946_684_800;
    super::clock::wall_clock().0.div_euclid(1_000_000) + EPOCH
}

/// The whole text of a file.
///
/// # Errors
/// Whatever the system refuses.
pub fn read_text(path: &Path) -> io::Result<String> {
    fs::read_to_string(path)
}

/// The memory that this process may use: the machine's, or less in a control group; none where
/// nobody says.
pub fn memory_bytes() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok()?;
    let total = machine.lines().find_map(|l| l.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = total.split_whitespace().next()?.parse().ok()?;
    let limits = control_groups();
    let limit = limits.iter().filter_map(|path| {
        let text = fs::read_to_string(path).ok()?;
        text.trim().parse::<u64>().ok()
    });
    Some(limit.fold(kilobytes << 10, u64::min))
}

/// Files that may hold a limit of this process's memory.
fn control_groups() -> Vec<String> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        let (root, name) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        // The group, and all that it is in.
        let mut path = path.trim_end_matches('/');
        loop {
            files.push(format!("{root}{path}/{name}"));
            match path.rfind('/') {
                Some(end) => path = &path[..end],
                None => break,
            }
        }
    }
    files
}

/// What the name of a file ends with that is about to take another's place.
const BESIDE: &str = ".new";

/// The name that a file has while [`write_text`] writes it.
pub fn name_beside(name: &str) -> String {
    format!("{name}{BESIDE}")
}

/// The path without links, and from the root.
///
/// # Errors
/// Whatever the system refuses.
pub fn canonical(path: &Path) -> io::Result<PathBuf> {
    fs::canonicalize(path)
}

/// Puts `text` in the place of a file, so that a crash leaves the old one or the new one.
///
/// # Errors
/// Whatever the system refuses.
pub fn write_text(path: &Path, text: &str) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(BESIDE);
    let mut file = fs::File::create(&beside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        fs::File::open(dir)?.sync_all()?;
    }
    Ok(())
}

/// Refuses a secret that others than its owner may read, as PostgreSQL does.
///
/// # Errors
/// `PermissionDenied` when they may; whatever the system refuses.
pub fn check_secret(path: &Path) -> io::Result<()> {
    let metadata = fs::metadata(path)?;
    // One that belongs to root may be readable by a group of the node's.
    let others = if metadata.uid() == 0 { 0o027 } else { 0o077 };
    match metadata.mode() & others {
        0 => Ok(()),
        _ => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "private key file \"{}\" has group or world access; make it readable by its owner \
                 only (chmod 600)",
                path.display()
            ),
        )),
    }
}

/// Writes a new file that nobody but its owner may read.
///
/// # Errors
/// `AlreadyExists` when there is one; whatever the system refuses.
pub fn write_secret(path: &Path, text: &str) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Makes a directory and its parents.
///
/// # Errors
/// Whatever the system refuses.
pub fn create_dir(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

/// Moves things of a directory into another that is on the same file system, in their order, with a
/// copy of a file.
///
/// # Errors
/// Whatever the system refuses; then the last thing is still where it was.
pub fn set_aside(dir: &Path, moved: &[String], copied: &str, aside: &Path) -> io::Result<()> {
    let text = fs::read_to_string(dir.join(copied))?;
    write_secret(&aside.join(copied), &text)?;
    for moved in moved {
        match fs::rename(dir.join(moved), aside.join(moved)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            result => result?,
        }
    }
    fs::File::open(aside)?.sync_all()?;
    fs::File::open(dir)?.sync_all()
}

/// The names in a directory, sorted.
///
/// # Errors
/// Whatever the system refuses.
pub fn list(path: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// Opens a file to append to, for the output of a child process.
///
/// # Errors
/// Whatever the system refuses.
pub fn append_to(path: &Path) -> io::Result<fs::File> {
    fs::OpenOptions::new().create(true).append(true).open(path)
}

/// The name of the operating-system user that runs this process.
pub fn user() -> String {
    let mut buffer = [0; 4_096];
    // SAFETY: all zeros is a valid place for the entry, which `getpwuid_r` fills in.
    let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
    let mut found = std::ptr::null_mut();
    // SAFETY: all pointers are valid for the lengths given.
    let result = unsafe {
        libc::getpwuid_r(
            libc::geteuid(),
            &mut entry,
            buffer.as_mut_ptr(),
            buffer.len(),
            &mut found,
        )
    };
    if result != 0 || found.is_null() {
        return "postgres".to_owned();
    }
    // SAFETY: the name points into `buffer`, which lives until the end of this function.
    let name = unsafe { std::ffi::CStr::from_ptr(entry.pw_name) };
    name.to_string_lossy().into_owned()
}

/// Raises the number of files and sockets that this process may have open as far as it may.
pub fn raise_file_limit() {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is valid. Where the system refuses, the old limit goes on.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}

/// Cores that this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Blocks this thread for a while.
pub fn sleep(duration: Duration) {
    std::thread::sleep(duration);
}

/// Whether this machine lets a process listen on an address now.
///
/// # Errors
/// Why not.
pub fn try_bind(address: SocketAddr) -> io::Result<()> {
    super::net::bind(address).map(drop)
}

/// A socket that listens on a port of loopback that was free.
///
/// # Errors
/// Whatever the system refuses.
pub fn listen_anywhere() -> io::Result<std::net::TcpListener> {
    super::net::bind(SocketAddr::from(([127, 0, 0, 1], 0)))
}

/// The process that holds a node's data directory, if one does.
pub fn owner(data_dir: &Path) -> Option<i32> {
    super::disk::owner(data_dir)
}

/// Sends a signal to a process.
///
/// # Errors
/// Whatever the system refuses, `NotFound` when there is no such process.
pub fn signal(pid: i32, signal: i32) -> io::Result<()> {
    assert!(pid > 1, "{pid} is no process of ours");
    // SAFETY: any signal may be sent to any process that the system lets us.
    if unsafe { libc::kill(pid, signal) } == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ESRCH) => Err(io::ErrorKind::NotFound.into()),
        _ => Err(error),
    }
}

fn stop_signals() -> libc::sigset_t {
    // SAFETY: all zeros is a valid place for a set, which is then filled in.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            libc::sigaddset(&mut set, signal);
        }
        set
    }
}

/// Holds back SIGINT, SIGTERM and SIGHUP for [`wait_for_stop`]. Called first of all, so that every
/// thread inherits it.
pub fn hold_stop_signals() {
    // SAFETY: the set is valid.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &stop_signals(), std::ptr::null_mut()) };
}

/// Whether a signal asks to read files anew rather than to stop.
pub fn is_reload(signal: i32) -> bool {
    signal == libc::SIGHUP
}

/// Blocks until the process is told to stop, at most for `timeout`. Returns the signal.
pub fn wait_for_stop(timeout: Duration) -> Option<i32> {
    let timeout = libc::timespec {
        tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    };
    // SAFETY: the set and the time are valid; nothing is asked of the signal but its number.
    let signal = unsafe { libc::sigtimedwait(&stop_signals(), std::ptr::null_mut(), &timeout) };
    (signal > 0).then_some(signal)
}

/// Fetches a page of a node's status server.
///
/// # Errors
/// When nobody answers within `timeout`, or the answer is no success.
pub fn http_get(address: SocketAddr, path: &str, timeout: Duration) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, timeout)?;
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(timeout))?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )?;
    let answer = io::read_to_string(stream)?;
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .ok_or(io::ErrorKind::InvalidData)?;
    if head.split(' ').nth(1) != Some("200") {
        let line = head.lines().next().unwrap_or_default();
        return Err(io::Error::other(line.to_owned()));
    }
    Ok(body.to_owned())
}

/// Fetches the same page of several status servers at once; the answers are in their order.
pub fn http_get_all(
    addresses: &[SocketAddr],
    path: &str,
    timeout: Duration,
) -> Vec<io::Result<String>> {
    std::thread::scope(|scope| {
        let asked: Vec<_> = addresses
            .iter()
            .map(|address| scope.spawn(move || http_get(*address, path, timeout)))
            .collect();
        asked
            .into_iter()
            .map(|answer| match answer.join() {
                Ok(answer) => answer,
                Err(_) => Err(io::Error::other("asking panicked")),
            })
            .collect()
    })
}
