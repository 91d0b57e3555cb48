//! A disk that can be written and is never changed: writes stay in memory.
//!
//! It lets the ordinary code open a directory, recover its log and replay it, for a check that
//! must leave everything as it was.
//!
//! # What it leaves out
//! Syncs do nothing, and there are no directories: names alone make them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::sync::Arc;

use base::env::{
    BoxFuture, Disk, Env, File, Instant, LogDestination, Net, OpenMode, Reactor, Severity,
    TaskStart,
};
use base::sync::Mutex;
use base::Timestamp;

/// What is kept of a file that was written, in one piece.
const BLOCK: usize = 4_096;

/// An environment whose disk is never changed.
pub struct ReadOnly {
    inner: Arc<dyn Env>,
    disk: Arc<Overlay>,
}

impl ReadOnly {
    /// The same world with writes kept in memory.
    pub fn new(inner: Arc<dyn Env>) -> ReadOnly {
        let disk = Arc::new(Overlay {
            below: inner.disk(),
            names: Mutex::default(),
        });
        ReadOnly { inner, disk }
    }
}

impl Env for ReadOnly {
    fn now(&self) -> Instant {
        self.inner.now()
    }
    fn wall_clock(&self) -> Timestamp {
        self.inner.wall_clock()
    }
    fn random(&self) -> u64 {
        self.inner.random()
    }
    fn secret(&self) -> [u8; 32] {
        self.inner.secret()
    }
    fn sleep_until(&self, deadline: Instant) -> BoxFuture<'static, ()> {
        self.inner.sleep_until(deadline)
    }
    fn spawn(&self, reactor: Reactor, name: &'static str, start: TaskStart) {
        self.inner.spawn(reactor, name, start);
    }
    fn session_reactors(&self) -> usize {
        self.inner.session_reactors()
    }
    fn disk(&self) -> Arc<dyn Disk> {
        self.disk.clone()
    }
    fn net(&self) -> Arc<dyn Net> {
        self.inner.net()
    }
    fn log(&self, severity: Severity, message: &str) {
        self.inner.log(severity, message);
    }
    fn write_log(&self, to: LogDestination, lines: String) {
        self.inner.write_log(to, lines);
    }
    fn log_also(&self, to: &[LogDestination]) {
        self.inner.log_also(to);
    }
    fn stop_node(&self, reason: &str) {
        self.inner.stop_node(reason);
    }
}

/// Names that were given, or (`None`) taken away, since the beginning.
struct Overlay {
    below: Arc<dyn Disk>,
    names: Mutex<BTreeMap<String, Option<Arc<Layer>>>>,
}

impl Overlay {
    fn find(&self, path: &str) -> io::Result<Arc<Layer>> {
        let mut names = self.names.lock();
        match names.get(path) {
            Some(Some(layer)) => return Ok(layer.clone()),
            Some(None) => return Err(ErrorKind::NotFound.into()),
            None => {}
        }
        let below = self.below.open(path, OpenMode::Existing)?;
        let layer = Arc::new(Layer {
            len: Mutex::new((below.len()?, below.len()?)),
            below: Some(below),
            blocks: Mutex::default(),
        });
        names.insert(path.to_owned(), Some(layer.clone()));
        Ok(layer)
    }

    fn make(&self, path: &str) -> Arc<Layer> {
        let layer = Arc::new(Layer {
            below: None,
            len: Mutex::new((0, 0)),
            blocks: Mutex::default(),
        });
        let mut names = self.names.lock();
        names.insert(path.to_owned(), Some(layer.clone()));
        layer
    }
}

impl Disk for Overlay {
    fn open(&self, path: &str, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        match (self.find(path), mode) {
            (Ok(_), OpenMode::CreateNew) => Err(ErrorKind::AlreadyExists.into()),
            (Ok(layer), _) => Ok(layer),
            (Err(error), OpenMode::Existing) => Err(error),
            (Err(error), _) if error.kind() == ErrorKind::NotFound => Ok(self.make(path)),
            (Err(error), _) => Err(error),
        }
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let mut found: BTreeSet<String> = match self.below.list(path) {
            Ok(names) => names.into_iter().collect(),
            Err(error) if error.kind() == ErrorKind::NotFound => BTreeSet::new(),
            Err(error) => return Err(error),
        };
        let inside = format!("{path}/");
        for (name, layer) in self.names.lock().iter() {
            let name = name
                .strip_prefix(&inside)
                .filter(|name| !name.contains('/'));
            match (name, layer) {
                (Some(name), Some(_)) => found.insert(name.to_owned()),
                (Some(name), None) => found.remove(name),
                (None, _) => false,
            };
        }
        Ok(found.into_iter().collect())
    }

    fn create_dir(&self, _path: &str) -> io::Result<()> {
        Ok(())
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.find(path)?;
        self.names.lock().insert(path.to_owned(), None);
        Ok(())
    }

    fn remove_dir(&self, path: &str) -> io::Result<()> {
        for name in self.list(path)? {
            self.names.lock().insert(format!("{path}/{name}"), None);
        }
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let layer = self.find(from)?;
        let mut names = self.names.lock();
        names.insert(from.to_owned(), None);
        names.insert(to.to_owned(), Some(layer));
        Ok(())
    }

    fn sync_dir(&self, _path: &str) -> io::Result<()> {
        Ok(())
    }
}

/// A file: what lies below, and the blocks that were written.
struct Layer {
    below: Option<Arc<dyn File>>,
    /// The length, and how much of what lies below still shows.
    len: Mutex<(u64, u64)>,
    blocks: Mutex<BTreeMap<u64, Vec<u8>>>,
}

impl Layer {
    /// One block as it is now.
    fn block(&self, number: u64) -> io::Result<Vec<u8>> {
        if let Some(block) = self.blocks.lock().get(&number) {
            return Ok(block.clone());
        }
        let mut block = vec![0; BLOCK];
        let start = number * BLOCK as u64;
        let shows = self.len.lock().1.saturating_sub(start).min(BLOCK as u64);
        if let Some(below) = self.below.as_ref().filter(|_| shows > 0) {
            below.read_at(&mut block[..shows as usize], start)?;
        }
        Ok(block)
    }
}

/// The parts of a range of bytes that lie in one block each: the block, where in it, where in the
/// range.
fn parts(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let within = (at % BLOCK as u64) as usize;
        let count = (BLOCK - within).min(len - done);
        let range = done..done + count;
        done += count;
        (count > 0).then_some((at / BLOCK as u64, within, range))
    })
}

impl File for Layer {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        if offset + buffer.len() as u64 > self.len.lock().0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        for (number, within, range) in parts(offset, buffer.len()) {
            let block = self.block(number)?;
            let count = range.len();
            buffer[range].copy_from_slice(&block[within..within + count]);
        }
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        for (number, within, range) in parts(offset, bytes.len()) {
            let mut block = self.block(number)?;
            block[within..within + range.len()].copy_from_slice(&bytes[range]);
            self.blocks.lock().insert(number, block);
        }
        let mut len = self.len.lock();
        len.0 = len.0.max(offset + bytes.len() as u64);
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.len.lock().0)
    }

    fn set_len(&self, new: u64) -> io::Result<()> {
        let mut block = self.block(new / BLOCK as u64)?;
        block[(new % BLOCK as u64) as usize..].fill(0);
        let mut blocks = self.blocks.lock();
        let mut len = self.len.lock();
        if new < len.0 {
            blocks.split_off(&(new / BLOCK as u64));
            blocks.insert(new / BLOCK as u64, block);
            len.1 = len.1.min(new);
        }
        len.0 = new;
        Ok(())
    }

    fn sync(&self) -> BoxFuture<'_, io::Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
