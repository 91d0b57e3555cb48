//! Files of one data directory.
//!
//! A directory belongs to one process at a time: whoever opens it holds a lock on its file `lock`
//! until the process ends, however it ends.

use std::fs::{self, OpenOptions};
use std::io::{self, IoSliceMut, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use base::env::{BoxFuture, Disk, File, OpenMode};

/// The file in a data directory that its node keeps locked; it holds the process id.
const LOCK_FILE: &str = "lock";

/// Who may use a file that a statement has written: everybody reads it, as with PostgreSQL.
const STATEMENT_FILE_MODE: u32 = 0o644;

/// An exclusive lock of a whole file, which belongs to the open file and so ends with the process.
fn whole_file() -> libc::flock {
    // SAFETY: all zeros is a valid `flock`: from 0, to the end.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock
}

fn lock_call(file: &fs::File, call: libc::c_int, lock: &mut libc::flock) -> bool {
    // SAFETY: the descriptor is open and the lock valid.
    unsafe { libc::fcntl(file.as_raw_fd(), call, std::ptr::from_mut(lock)) == 0 }
}

/// The process that holds a data directory, if one does. Looking takes no lock.
pub fn owner(root: &Path) -> Option<i32> {
    let file = fs::File::open(root.join(LOCK_FILE)).ok()?;
    let mut lock = whole_file();
    let is_free = !lock_call(&file, libc::F_OFD_GETLK, &mut lock)
        || lock.l_type == libc::F_UNLCK as libc::c_short;
    if is_free {
        return None;
    }
    io::read_to_string(file).ok()?.trim().parse().ok()
}

/// The files below one directory.
pub struct RealDisk {
    root: PathBuf,
    /// Locked for as long as it is open.
    _lock: fs::File,
}

impl RealDisk {
    /// Takes the directory, which is made if it is missing.
    pub fn open(root: &Path) -> io::Result<RealDisk> {
        create_durably(root)?;
        let mut lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(root.join(LOCK_FILE))?;
        if !lock_call(&lock, libc::F_OFD_SETLK, &mut whole_file()) {
            let owner = fs::read_to_string(root.join(LOCK_FILE)).unwrap_or_default();
            let message = format!(
                "another node (process {}) runs on the data directory {}",
                owner.trim(),
                root.display()
            );
            return Err(io::Error::new(io::ErrorKind::WouldBlock, message));
        }
        lock.set_len(0)?;
        writeln!(lock, "{}", std::process::id())?;
        Ok(RealDisk {
            root: root.to_owned(),
            _lock: lock,
        })
    }

    /// The path below the root; one that leads out of it is refused.
    fn path(&self, path: &str) -> io::Result<PathBuf> {
        let path = Path::new(path);
        let inside = path
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if !inside {
            let message = format!("{} leads out of the data directory", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        Ok(self.root.join(path))
    }
}

impl Disk for RealDisk {
    fn open(&self, path: &str, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        match mode {
            OpenMode::Existing => {}
            OpenMode::Create => {
                options.create(true).truncate(false);
            }
            OpenMode::CreateNew => {
                options.create_new(true);
            }
        }
        Ok(Arc::new(RealFile(options.open(self.path(path)?)?)))
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.path(path)?)? {
            // Quorate gives all names itself; one that is not Unicode is not its own.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn create_dir(&self, path: &str) -> io::Result<()> {
        create_durably(&self.path(path)?)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        fs::remove_file(self.path(path)?)
    }

    fn remove_dir(&self, path: &str) -> io::Result<()> {
        match fs::remove_dir_all(self.path(path)?) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path(from)?, self.path(to)?)
    }

    fn sync_dir(&self, path: &str) -> io::Result<()> {
        fs::File::open(self.path(path)?)?.sync_all()
    }
}

/// Opens a file anywhere on this machine that a statement names, to be read or to be written anew.
///
/// # Errors
/// What the system refuses; `IsADirectory`, `Unsupported` for whatever else is no regular file.
pub fn open_for_statement(path: &str, to_write: bool) -> io::Result<fs::File> {
    let mut options = OpenOptions::new();
    // To open a pipe without a reader or writer would wait for one.
    options.custom_flags(libc::O_NONBLOCK);
    match to_write {
        false => options.read(true),
        true => options
            .write(true)
            .create(true)
            .truncate(false)
            .mode(STATEMENT_FILE_MODE),
    };
    let file = options.open(path)?;
    let kind = file.metadata()?.file_type();
    match (kind.is_file(), kind.is_dir()) {
        (true, _) if to_write => file.set_len(0).map(|()| file),
        (true, _) => Ok(file),
        (_, true) => Err(io::ErrorKind::IsADirectory.into()),
        _ => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "it is no regular file",
        )),
    }
}

/// Makes a directory and its parents, and the name of each that is new durable: what is synced below
/// is lost with a name that is not.
fn create_durably(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent {
        create_durably(parent)?;
    }
    match fs::create_dir(path) {
        // Somebody else made it meanwhile.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        result => result?,
    }
    fs::File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

/// One open file.
struct RealFile(fs::File);

impl File for RealFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_exact_at(buffer, offset)
    }

    fn read_vectored_at(&self, buffers: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<()> {
        let invalid = |_| io::Error::from(io::ErrorKind::InvalidInput);
        let start = libc::off_t::try_from(offset).map_err(invalid)?;
        let count = libc::c_int::try_from(buffers.len()).map_err(invalid)?;
        let slices = buffers.as_mut_ptr().cast::<libc::iovec>();
        // SAFETY: an `IoSliceMut` is an `iovec` in memory, and all of them are valid for writes.
        let read = unsafe { libc::preadv(self.0.as_raw_fd(), slices, count, start) };
        // What a call leaves out, or an error, is for calls that read one buffer each.
        let mut from = offset;
        let mut read = usize::try_from(read).unwrap_or(0);
        for buffer in buffers {
            let filled = read.min(buffer.len());
            if filled < buffer.len() {
                self.read_at(&mut buffer[filled..], from + filled as u64)?;
            }
            read -= filled;
            from += buffer.len() as u64;
        }
        Ok(())
    }

    fn will_read(&self, offset: u64, len: u64) {
        if let (Ok(offset), Ok(len)) = (offset.try_into(), len.try_into()) {
            // SAFETY: the descriptor is open. It is a hint: nothing is wrong if it is not taken.
            unsafe {
                libc::posix_fadvise(self.0.as_raw_fd(), offset, len, libc::POSIX_FADV_WILLNEED)
            };
        }
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn will_sync(&self, offset: u64, len: u64) {
        if let (Ok(offset), Ok(len)) = (offset.try_into(), len.try_into()) {
            // SAFETY: the descriptor is open. It is a hint: a sync tells of errors.
            unsafe {
                libc::sync_file_range(self.0.as_raw_fd(), offset, len, libc::SYNC_FILE_RANGE_WRITE)
            };
        }
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let old = self.len()?;
        if len <= old {
            return self.0.set_len(len);
        }
        let too_large = |_| io::Error::from(io::ErrorKind::FileTooLarge);
        let offset = libc::off_t::try_from(old).map_err(too_large)?;
        let added = libc::off_t::try_from(len - old).map_err(too_large)?;
        loop {
            // SAFETY: the descriptor is open.
            if unsafe { libc::fallocate(self.0.as_raw_fd(), 0, offset, added) } == 0 {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                // A file system that cannot reserve: the length alone, and a full disk shows late.
                Some(libc::EOPNOTSUPP | libc::ENOSYS) => return self.0.set_len(len),
                _ => return Err(error),
            }
        }
    }

    fn sync(&self) -> BoxFuture<'_, io::Result<()>> {
        Box::pin(async { self.0.sync_data() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_belongs_to_one_node() {
        let dir = tempfile::tempdir().unwrap();
        let first = RealDisk::open(dir.path()).unwrap();
        let second = RealDisk::open(dir.path()).err().expect("it is taken");
        assert_eq!(second.kind(), io::ErrorKind::WouldBlock);
        let owner = std::process::id().to_string();
        assert!(second.to_string().contains(&owner), "{second}");
        assert_eq!(
            super::owner(dir.path()).map(|pid| pid.to_string()),
            Some(owner)
        );
        drop(first);
        assert_eq!(super::owner(dir.path()), None);
        RealDisk::open(dir.path()).unwrap();
    }

    #[test]
    fn files_grow_with_zeros_and_shrink() {
        let dir = tempfile::tempdir().unwrap();
        let disk = RealDisk::open(dir.path()).unwrap();
        disk.create_dir("a/b").unwrap();
        let file = disk.open("a/b/c", OpenMode::CreateNew).unwrap();
        file.write_at(b"xy", 1).unwrap();
        file.set_len(5).unwrap();
        let mut content = [9; 5];
        file.read_at(&mut content, 0).unwrap();
        assert_eq!(&content, b"\0xy\0\0");
        let (mut first, mut second) = ([9; 2], [9; 2]);
        let mut both = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
        file.will_sync(0, 5);
        file.will_read(1, 4);
        file.read_vectored_at(&mut both, 1).unwrap();
        let error = file.read_vectored_at(&mut both, 2).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!([first, second], [*b"y\0", [0, 0]]);
        file.set_len(2).unwrap();
        assert_eq!(file.len().unwrap(), 2);
        let error = file.read_at(&mut content, 0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(disk.list("a").unwrap(), ["b"]);
        disk.remove_dir("a").unwrap();
        disk.remove_dir("a").unwrap();
    }

    #[test]
    fn no_path_leads_out() {
        let dir = tempfile::tempdir().unwrap();
        let disk = RealDisk::open(dir.path()).unwrap();
        assert!(disk.open("../x", OpenMode::Create).is_err());
        assert!(disk.open("/etc/passwd", OpenMode::Existing).is_err());
    }
}
