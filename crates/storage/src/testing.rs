//! A world for tests: a disk in memory that forgets at a crash what was not synced, and an
//! environment around it.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use base::env::{BoxFuture, Disk, Env, File, Instant, Net, OpenMode, Reactor, Severity, TaskStart};
use base::sync::Mutex;
use base::Timestamp;

/// Runs a future to its end on this thread.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..1_000_000 {
        if let Poll::Ready(value) = future.as_mut().poll(&mut cx) {
            return value;
        }
    }
    panic!("a future never ends");
}

/// Gives others their turn: a test that polls by hand can do things meanwhile.
fn pause() -> BoxFuture<'static, ()> {
    let mut paused = false;
    Box::pin(std::future::poll_fn(move |cx| {
        if paused {
            return Poll::Ready(());
        }
        paused = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    }))
}

/// A small generator with a seed.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// True once in `times`.
    pub(crate) fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

const SECTOR: usize = 512;

/// What was done to a file since it was last synced.
enum Change {
    Write(u64, Vec<u8>),
    Len(u64),
}

#[derive(Default)]
struct Content {
    now: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<Change>,
}

#[derive(Clone, Default)]
struct MemFile {
    content: Arc<Mutex<Content>>,
    disk: Arc<Faults>,
}

/// What goes wrong on purpose.
#[derive(Default)]
struct Faults {
    /// Syncs until one fails; 0 is never.
    syncs_to_failure: AtomicU64,
    /// Syncs so far.
    syncs: AtomicU64,
    /// Changes of files and names so far.
    changes: AtomicU64,
    /// At this change the power fails; 0 is never.
    power_off_at: AtomicU64,
    /// How often space was asked for.
    growths: AtomicU64,
    /// From this time on there is none; 0 is never.
    full_at: AtomicU64,
}

impl Faults {
    fn change(&self) -> io::Result<()> {
        let count = self.changes.fetch_add(1, Ordering::Relaxed) + 1;
        let end = self.power_off_at.load(Ordering::Relaxed);
        match end > 0 && count >= end {
            true => Err(io::Error::other("the power is off")),
            false => Ok(()),
        }
    }

    fn grow(&self) -> io::Result<()> {
        let count = self.growths.fetch_add(1, Ordering::Relaxed) + 1;
        let full = self.full_at.load(Ordering::Relaxed);
        match full > 0 && count >= full {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        }
    }
}

/// What was done to a disk so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    pub(crate) changes: u64,
    pub(crate) syncs: u64,
    pub(crate) growths: u64,
}

enum NameChange {
    Set(String, MemFile),
    Remove(String),
}

impl NameChange {
    fn apply(self, names: &mut BTreeMap<String, MemFile>) {
        match self {
            NameChange::Set(name, file) => drop(names.insert(name, file)),
            NameChange::Remove(name) => drop(names.remove(&name)),
        }
    }
}

#[derive(Default)]
struct Names {
    now: BTreeMap<String, MemFile>,
    durable: BTreeMap<String, MemFile>,
    unsynced: Vec<Vec<NameChange>>,
}

/// A disk in memory.
#[derive(Default)]
pub(crate) struct MemDisk {
    names: Mutex<Names>,
    faults: Arc<Faults>,
}

fn apply(content: &mut Vec<u8>, change: &Change, random: Option<&mut Random>) {
    match change {
        Change::Len(len) => content.resize(*len as usize, 0),
        Change::Write(offset, bytes) => {
            let offset = *offset as usize;
            if content.len() < offset + bytes.len() {
                content.resize(offset + bytes.len(), 0);
            }
            let Some(random) = random else {
                content[offset..offset + bytes.len()].copy_from_slice(bytes);
                return;
            };
            // Sectors of an unsynced write are kept or lost one by one, or all alike.
            let all = random.below(3);
            let mut at = 0;
            while at < bytes.len() {
                let end = ((offset + at) / SECTOR + 1) * SECTOR - offset;
                let end = end.min(bytes.len());
                let keep = match all {
                    0 => true,
                    1 => false,
                    _ => random.one_in(2),
                };
                if keep {
                    content[offset + at..offset + end].copy_from_slice(&bytes[at..end]);
                }
                at = end;
            }
        }
    }
}

impl MemDisk {
    /// Loses what was not synced, in part and torn, as the seed says.
    pub(crate) fn crash(&self, random: &mut Random) {
        let mut names = self.names.lock();
        let unsynced = std::mem::take(&mut names.unsynced);
        let survivors = random.below(unsynced.len() + 1);
        let mut durable = std::mem::take(&mut names.durable);
        for change in unsynced.into_iter().take(survivors) {
            change.into_iter().for_each(|c| c.apply(&mut durable));
        }
        for file in durable.values_mut() {
            let mut content = file.content.lock();
            let mut after = std::mem::take(&mut content.durable);
            for change in std::mem::take(&mut content.unsynced) {
                apply(&mut after, &change, Some(random));
            }
            drop(content);
            file.content = Arc::new(Mutex::new(Content {
                now: after.clone(),
                durable: after,
                unsynced: Vec::new(),
            }));
        }
        names.now = durable.clone();
        names.durable = durable;
    }

    /// Lets the sync after so many others fail.
    pub(crate) fn fail_sync_after(&self, syncs: u64) {
        self.faults
            .syncs_to_failure
            .store(syncs + 1, Ordering::Relaxed);
    }

    /// What was done so far.
    pub(crate) fn done(&self) -> Done {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Done {
            changes: count(&self.faults.changes),
            syncs: count(&self.faults.syncs),
            growths: count(&self.faults.growths),
        }
    }

    /// From the change of that number on, every one fails; 0 is never.
    pub(crate) fn power_off_at(&self, change: u64) {
        self.faults.power_off_at.store(change, Ordering::Relaxed);
    }

    /// From the time of that number on that space is asked for, there is none; 0 is never.
    pub(crate) fn full_at(&self, growth: u64) {
        self.faults.full_at.store(growth, Ordering::Relaxed);
    }

    /// Every file and its content.
    pub(crate) fn files(&self) -> Vec<(String, Vec<u8>)> {
        let names = self.names.lock();
        let content =
            |(name, file): (&String, &MemFile)| (name.clone(), file.content.lock().now.clone());
        names.now.iter().map(content).collect()
    }

    /// Damages a file, durably.
    pub(crate) fn damage(&self, name: &str, offset: usize) {
        let names = self.names.lock();
        let mut content = names.now[name].content.lock();
        content.now[offset] ^= 0x10;
        if let Some(byte) = content.durable.get_mut(offset) {
            *byte ^= 0x10;
        }
    }

    fn change(&self, change: Vec<NameChange>) -> io::Result<()> {
        self.faults.change()?;
        let mut names = self.names.lock();
        let copy = change.iter().map(|c| match c {
            NameChange::Set(name, file) => NameChange::Set(name.clone(), file.clone()),
            NameChange::Remove(name) => NameChange::Remove(name.clone()),
        });
        let copy: Vec<_> = copy.collect();
        copy.into_iter().for_each(|c| c.apply(&mut names.now));
        names.unsynced.push(change);
        Ok(())
    }
}

impl Disk for MemDisk {
    fn open(&self, path: &str, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let found = self.names.lock().now.get(path).cloned();
        match (found, mode) {
            (Some(_), OpenMode::CreateNew) => Err(io::ErrorKind::AlreadyExists.into()),
            (Some(file), _) => Ok(Arc::new(file)),
            (None, OpenMode::Existing) => Err(io::ErrorKind::NotFound.into()),
            (None, _) => {
                self.faults.grow()?;
                let file = MemFile {
                    content: Arc::default(),
                    disk: self.faults.clone(),
                };
                self.change(vec![NameChange::Set(path.to_owned(), file.clone())])?;
                Ok(Arc::new(file))
            }
        }
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let prefix = format!("{path}/");
        let names = self.names.lock();
        let inside = names.now.keys().filter_map(|n| n.strip_prefix(&prefix));
        Ok(inside.map(str::to_owned).collect())
    }

    fn create_dir(&self, _path: &str) -> io::Result<()> {
        Ok(())
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        if !self.names.lock().now.contains_key(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.change(vec![NameChange::Remove(path.to_owned())])
    }

    fn remove_dir(&self, path: &str) -> io::Result<()> {
        for name in self.list(path)? {
            self.remove(&format!("{path}/{name}"))?;
        }
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let file = self.names.lock().now.get(from).cloned();
        let file = file.ok_or(io::ErrorKind::NotFound)?;
        self.change(vec![
            NameChange::Remove(from.to_owned()),
            NameChange::Set(to.to_owned(), file),
        ])
    }

    fn sync_dir(&self, _path: &str) -> io::Result<()> {
        self.faults.change()?;
        let mut names = self.names.lock();
        let unsynced = std::mem::take(&mut names.unsynced);
        for change in unsynced {
            change.into_iter().for_each(|c| c.apply(&mut names.durable));
        }
        Ok(())
    }
}

impl File for MemFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let content = self.content.lock();
        let start = offset as usize;
        let bytes = content.now.get(start..start + buffer.len());
        buffer.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.disk.change()?;
        let mut content = self.content.lock();
        let change = Change::Write(offset, bytes.to_vec());
        apply(&mut content.now, &change, None);
        content.unsynced.push(change);
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.content.lock().now.len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.disk.change()?;
        let mut content = self.content.lock();
        if len > content.now.len() as u64 {
            self.disk.grow()?;
        }
        let change = Change::Len(len);
        apply(&mut content.now, &change, None);
        content.unsynced.push(change);
        Ok(())
    }

    fn sync(&self) -> BoxFuture<'_, io::Result<()>> {
        Box::pin(async move {
            self.disk.change()?;
            self.disk.syncs.fetch_add(1, Ordering::Relaxed);
            let countdown = &self.disk.syncs_to_failure;
            if countdown.load(Ordering::Relaxed) > 0
                && countdown.fetch_sub(1, Ordering::Relaxed) == 1
            {
                return Err(io::Error::other("injected"));
            }
            // What is written while it is under way need not be durable when it ends.
            let count = self.content.lock().unsynced.len();
            pause().await;
            let mut content = self.content.lock();
            let count = count.min(content.unsynced.len());
            let synced: Vec<Change> = content.unsynced.drain(..count).collect();
            for change in &synced {
                apply(&mut content.durable, change, None);
            }
            Ok(())
        })
    }
}

/// An environment around a [`MemDisk`]; spawned tasks run when the test says so.
#[derive(Default)]
pub(crate) struct TestEnv {
    pub(crate) disk: Arc<MemDisk>,
    clock: AtomicU64,
    tasks: Mutex<Vec<TaskStart>>,
    /// Whether it has, if it may.
    may_stop: Mutex<Option<bool>>,
}

impl TestEnv {
    pub(crate) fn new() -> Arc<TestEnv> {
        Arc::default()
    }

    /// An environment with the same disk, as after a restart.
    pub(crate) fn restart(&self) -> Arc<TestEnv> {
        Arc::new(TestEnv {
            disk: self.disk.clone(),
            ..TestEnv::default()
        })
    }

    /// Another environment with a copy of the disk, as after a restart.
    pub(crate) fn copy(&self) -> Arc<TestEnv> {
        let disk = MemDisk::default();
        {
            let mut names = disk.names.lock();
            for (name, bytes) in self.disk.files() {
                let content = Content {
                    now: bytes.clone(),
                    durable: bytes,
                    unsynced: Vec::new(),
                };
                let file = MemFile {
                    content: Arc::new(Mutex::new(content)),
                    disk: disk.faults.clone(),
                };
                names.now.insert(name.clone(), file.clone());
                names.durable.insert(name, file);
            }
        }
        Arc::new(TestEnv {
            disk: Arc::new(disk),
            ..TestEnv::default()
        })
    }

    /// From now on the node may stop.
    pub(crate) fn may_stop(&self) {
        *self.may_stop.lock() = Some(false);
    }

    /// Forgets what was spawned: tasks hold what holds this.
    pub(crate) fn end(&self) {
        self.tasks.lock().clear();
    }

    /// Whether the node has stopped.
    pub(crate) fn has_stopped(&self) -> bool {
        *self.may_stop.lock() == Some(true)
    }

    /// Runs what was spawned to its end.
    pub(crate) fn run_tasks(&self) {
        let tasks = std::mem::take(&mut *self.tasks.lock());
        for task in tasks {
            block_on(task());
        }
    }
}

impl Env for TestEnv {
    fn now(&self) -> Instant {
        Instant(self.clock.fetch_add(1, Ordering::Relaxed))
    }

    fn wall_clock(&self) -> Timestamp {
        Timestamp(0)
    }

    fn random(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    fn secret(&self) -> [u8; 32] {
        base::env::no_secret(self.random())
    }

    fn sleep_until(&self, _deadline: Instant) -> BoxFuture<'static, ()> {
        pause()
    }

    fn spawn(&self, _reactor: Reactor, _name: &'static str, start: TaskStart) {
        self.tasks.lock().push(start);
    }

    fn session_reactors(&self) -> usize {
        1
    }

    fn disk(&self) -> Arc<dyn Disk> {
        self.disk.clone()
    }

    fn net(&self) -> Arc<dyn Net> {
        panic!("storage needs no network")
    }

    fn log(&self, _severity: Severity, _message: &str) {}

    fn stop_node(&self, reason: &str) {
        let stopped = *self.may_stop.lock();
        assert!(stopped.is_some(), "node stopped: {reason}");
        *self.may_stop.lock() = Some(true);
    }
}
