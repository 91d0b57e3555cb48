//! Scratch space: what does not fit in memory and need not outlive the process.
//!
//! One file, made when it is first needed and removed when it is next opened, cut into runs of
//! bytes. A run is written once, read as often as one likes, and its space is used again when its
//! [`Run`] is dropped.
//!
//! ```
//! # use base::env::Env;
//! # use storage::Scratch;
//! # fn example(env: &dyn Env) -> base::Result<()> {
//! let scratch = Scratch::open(&env.disk(), "g1/writes.scratch")?;
//! let run = scratch.write(b"a piece of a write set")?;
//! let mut bytes = Vec::new();
//! run.read(&mut bytes)?;
//! assert_eq!(bytes, b"a piece of a write set");
//! drop(run); // its space is free again
//! # Ok(()) }
//! ```
//!
//! # Invariants
//! - Nothing is ever synced, and nothing is ever read that this process did not write.
//! - Runs do not overlap; free space is in as few pieces as can be.
//! - A full disk is 53100 for whoever writes, and changes nothing.
//!
//! - The file becomes shorter when somebody asks for that ([`Scratch::trim`]) and much at its end
//!   is free; all of it goes when there is no run.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::codec::checksum;
use base::env::{Disk, File, OpenMode};
use base::sync::Mutex;
use base::{Error, Result};

use crate::owner::space_error;

/// Runs begin and end at multiples of this.
const GRAIN: u64 = 4_096;

/// The file grows by at least so many bytes at a time.
const GROW_BYTES: u64 = 1 << 20;

/// So much at the end of the file may be free while there are runs.
const FREE_END_MAX: u64 = 64 << 20;

/// A file of runs.
pub struct Scratch {
    disk: Arc<dyn Disk>,
    path: String,
    space: Mutex<Space>,
}

#[derive(Default)]
struct Space {
    /// Made with the first run.
    file: Option<Arc<dyn File>>,
    /// Free pieces: where each begins, and its bytes.
    free: BTreeMap<u64, u64>,
    /// Bytes that runs take.
    used: u64,
    /// No run lies here or above.
    end: u64,
    /// What the file has space for.
    reserved: u64,
}

impl std::fmt::Debug for Scratch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Scratch({}, {} bytes)", self.path, self.used())
    }
}

impl Space {
    /// Takes a piece of free space, the first that is large enough.
    fn take(&mut self, bytes: u64) -> Option<u64> {
        let (start, len) = self
            .free
            .iter()
            .find(|(_, len)| **len >= bytes)
            .map(|(start, len)| (*start, *len))?;
        self.free.remove(&start);
        if len > bytes {
            self.free.insert(start + bytes, len - bytes);
        }
        Some(start)
    }

    fn give_back(&mut self, mut start: u64, mut bytes: u64) {
        self.used -= bytes;
        if let Some(behind) = self.free.remove(&(start + bytes)) {
            bytes += behind;
        }
        let before = self.free.range(..start).next_back();
        if let Some((at, len)) = before.map(|(at, len)| (*at, *len)) {
            assert!(
                at + len <= start,
                "scratch space {at}+{len} is free, and {start} too"
            );
            if at + len == start {
                self.free.remove(&at);
                (start, bytes) = (at, len + bytes);
            }
        }
        if start + bytes == self.end {
            self.end = start;
        } else {
            self.free.insert(start, bytes);
        }
    }
}

impl Scratch {
    /// Forgets what an earlier process left there.
    ///
    /// # Errors
    /// 58030 when the old file cannot be removed.
    pub fn open(disk: &Arc<dyn Disk>, path: &str) -> Result<Arc<Scratch>> {
        match disk.remove(path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io(format_args!("remove \"{path}\""), e));
            }
            _ => {}
        }
        Ok(Arc::new(Scratch {
            disk: disk.clone(),
            path: path.to_owned(),
            space: Mutex::default(),
        }))
    }

    /// Writes a run of any length but zero.
    ///
    /// # Errors
    /// 53100 when there is no space; 58030.
    pub fn write(self: &Arc<Self>, bytes: &[u8]) -> Result<Run> {
        let (file, start) = self.reserve(bytes.len() as u64)?;
        let run = Run {
            scratch: self.clone(),
            file,
            start,
            len: bytes.len(),
            crc: checksum(bytes),
        };
        // A failure gives the space back.
        run.file
            .write_at(bytes, start)
            .map_err(|e| space_error(&self.path, e))?;
        Ok(run)
    }

    fn reserve(&self, bytes: u64) -> Result<(Arc<dyn File>, u64)> {
        assert!(bytes > 0, "an empty run");
        let bytes = bytes.next_multiple_of(GRAIN);
        let mut space = self.space.lock();
        let file = match &space.file {
            Some(file) => file.clone(),
            None => {
                let file = self.disk.open(&self.path, OpenMode::CreateNew);
                let file = file.map_err(|e| space_error(&self.path, e))?;
                space.file.insert(file).clone()
            }
        };
        if let Some(start) = space.take(bytes) {
            space.used += bytes;
            return Ok((file, start));
        }
        let needed = space.end + bytes;
        if needed > space.reserved {
            let reserved = needed.next_multiple_of(GROW_BYTES);
            file.set_len(reserved)
                .map_err(|e| space_error(&self.path, e))?;
            space.reserved = reserved;
        }
        let start = std::mem::replace(&mut space.end, needed);
        space.used += bytes;
        Ok((file, start))
    }

    /// Bytes that runs take now.
    pub fn used(&self) -> u64 {
        self.space.lock().used
    }

    /// Bytes that the file takes.
    pub fn file_bytes(&self) -> u64 {
        self.space.lock().reserved
    }

    /// Gives the end of the file back if it is free. It may block on the disk.
    ///
    /// # Errors
    /// 58030.
    pub fn trim(&self) -> Result<()> {
        let mut space = self.space.lock();
        let wanted = space.end.next_multiple_of(GROW_BYTES);
        let free = space.reserved.saturating_sub(wanted);
        if free == 0 || wanted > 0 && free < FREE_END_MAX {
            return Ok(());
        }
        if let Some(file) = &space.file {
            file.set_len(wanted)
                .map_err(|e| Error::io(format_args!("truncate \"{}\"", self.path), e))?;
            space.reserved = wanted;
        }
        Ok(())
    }
}

/// Bytes in scratch space, for as long as it lives.
pub struct Run {
    scratch: Arc<Scratch>,
    file: Arc<dyn File>,
    start: u64,
    len: usize,
    crc: u32,
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Run({}+{})", self.start, self.len)
    }
}

impl Run {
    /// How many bytes there are.
    #[allow(clippy::len_without_is_empty)] // No run is empty.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Appends all of them to `out`. Blocks on the disk: hold no latch.
    ///
    /// # Errors
    /// 58030, XX001, fatal for the node.
    pub fn read(&self, out: &mut Vec<u8>) -> Result<()> {
        let path = &self.scratch.path;
        let before = out.len();
        out.resize(before + self.len, 0);
        let bytes = &mut out[before..];
        self.file
            .read_at(bytes, self.start)
            .map_err(|e| Error::io(format_args!("read \"{path}\""), e))?;
        let found = checksum(bytes);
        if found != self.crc {
            return Err(Error::corrupted(format!(
                "\"{path}\" at {} has checksum {found:08x}, expected was {:08x}",
                self.start, self.crc
            )));
        }
        Ok(())
    }
}

impl Run {
    /// Reads a part. Its checksum is the caller's affair. Blocks on the disk: hold no latch.
    ///
    /// # Errors
    /// 58030, fatal for the node.
    pub(crate) fn read_part(&self, offset: usize, out: &mut [u8]) -> Result<()> {
        let end = offset + out.len();
        assert!(
            end <= self.len,
            "a part up to {end} of a run of {}",
            self.len
        );
        self.file
            .read_at(out, self.start + offset as u64)
            .map_err(|e| Error::io(format_args!("read \"{}\"", self.scratch.path), e))
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let bytes = (self.len as u64).next_multiple_of(GRAIN);
        self.scratch.space.lock().give_back(self.start, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Random, TestEnv};
    use base::env::Env;

    #[test]
    fn runs_come_back_and_space_is_used_again() {
        let env = TestEnv::new();
        let scratch = Scratch::open(&env.disk(), "scratch").unwrap();
        let mut random = Random::new(1);
        let mut runs: Vec<(Run, Vec<u8>)> = Vec::new();
        for round in 0..2_000u32 {
            if runs.len() == 20 {
                let (run, expected) = runs.swap_remove(random.below(20));
                let mut found = b"x".to_vec();
                run.read(&mut found).unwrap();
                assert_eq!(found[1..], expected);
            }
            let bytes = vec![round as u8; 1 + random.below(3 * GRAIN as usize)];
            runs.push((scratch.write(&bytes).unwrap(), bytes));
        }
        assert!(scratch.used() <= 20 * 3 * GRAIN);
        assert!(scratch.space.lock().end <= 60 * 3 * GRAIN);
        runs.clear();
        assert_eq!(scratch.used(), 0);
        assert_eq!(scratch.space.lock().end, 0);
        assert!(scratch.file_bytes() > 0);
        scratch.trim().unwrap();
        assert_eq!((scratch.file_bytes(), env.disk.files()[0].1.len()), (0, 0));
        let run = scratch.write(b"again").unwrap();
        let mut found = Vec::new();
        run.read(&mut found).unwrap();
        assert_eq!(found, b"again");
    }

    #[test]
    fn nothing_is_left_of_an_earlier_process() {
        let env = TestEnv::new();
        let scratch = Scratch::open(&env.disk(), "scratch").unwrap();
        let run = scratch.write(b"abc").unwrap();
        env.disk.damage("scratch", 1);
        let error = run.read(&mut Vec::new()).unwrap_err();
        assert_eq!(error.state(), base::SqlState::DATA_CORRUPTED);
        Scratch::open(&env.disk(), "scratch").unwrap();
        assert!(env.disk.files().is_empty());
    }
}
