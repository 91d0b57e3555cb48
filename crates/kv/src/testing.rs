//! A small world for this crate's tests: one thread, virtual time, disks that forget what was not
//! synced, links that can be cut. Everything that happens follows from the seed.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use base::coro::{self, Interrupts};
use base::env::{
    BoxFuture, Disk, Env, File, Instant, LocalBoxFuture, Net, OpenMode, Reactor, Severity,
    TaskStart,
};
use base::sync::Mutex;
use base::{NodeId, Timestamp};

use crate::config::Transport;
use crate::group::Group;

const SYNC: Duration = Duration::from_micros(200);
const LINK: Duration = Duration::from_micros(100);
const FROZEN_LINK: Duration = Duration::from_millis(5);

type TaskId = u64;

/// Whether the tasks of one life of a host run.
#[derive(Debug, Default)]
struct Life {
    dead: AtomicBool,
    frozen: AtomicBool,
}

impl Life {
    fn is_over(&self) -> bool {
        self.dead.load(Ordering::SeqCst)
    }

    fn is_frozen(&self) -> bool {
        self.frozen.load(Ordering::SeqCst)
    }
}

/// What all hosts share.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    now: Instant,
    random: u64,
    ready: BTreeSet<TaskId>,
    timers: BTreeMap<(Instant, u64), Waker>,
    frames: BTreeMap<(Instant, u64), (NodeId, NodeId, Vec<u8>)>,
    /// When the last frame on a link arrives, so that the next arrives later.
    links: BTreeMap<(NodeId, NodeId), Instant>,
    cut: BTreeSet<(NodeId, NodeId)>,
    /// What frames of a link take longer than those of others.
    slow: BTreeMap<(NodeId, NodeId), Duration>,
    started: Vec<(Arc<Life>, TaskStart)>,
    next: u64,
    trace: u64,
}

impl State {
    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn within(&mut self, mean: Duration) -> Instant {
        let nanos = mean.as_nanos() as u64;
        let delay = nanos / 2 + self.random() % nanos;
        self.now.after(Duration::from_nanos(delay))
    }
}

struct TaskWaker {
    shared: Arc<Shared>,
    id: TaskId,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.shared.state.lock().ready.insert(self.id);
    }
}

/// The world: an executor and the hosts on it.
pub struct World {
    shared: Arc<Shared>,
    tasks: BTreeMap<TaskId, (Arc<Life>, LocalBoxFuture<'static, ()>)>,
    hosts: BTreeMap<NodeId, Arc<Host>>,
    disks: BTreeMap<NodeId, Arc<MemoryDisk>>,
    groups: BTreeMap<NodeId, Vec<Arc<Group>>>,
    /// Lines for the operator are printed.
    pub verbose: bool,
}

impl World {
    /// A world without hosts.
    pub fn new(seed: u64) -> World {
        let shared = Arc::new(Shared::default());
        shared.state.lock().random = seed;
        World {
            shared,
            tasks: BTreeMap::new(),
            hosts: BTreeMap::new(),
            disks: BTreeMap::new(),
            groups: BTreeMap::new(),
            verbose: std::env::var_os("KV_TRACE").is_some(),
        }
    }

    /// Starts a host on the disk that it had before.
    pub fn start(&mut self, node: NodeId) -> Arc<Host> {
        let disk = self.disks.entry(node).or_insert_with(|| {
            Arc::new(MemoryDisk {
                shared: self.shared.clone(),
                files: Mutex::default(),
                broken: Arc::default(),
                full: Arc::default(),
                sync_nanos: Arc::new(AtomicU64::new(SYNC.as_nanos() as u64)),
            })
        });
        let host = Arc::new(Host {
            shared: self.shared.clone(),
            node,
            disk: disk.clone(),
            life: Arc::default(),
            stopped: Mutex::new(None),
            verbose: self.verbose,
        });
        self.hosts.insert(node, host.clone());
        host
    }

    /// A host that runs.
    pub fn host(&self, node: NodeId) -> Arc<Host> {
        self.hosts[&node].clone()
    }

    /// The files of a host and their content.
    pub fn files(&self, node: NodeId) -> BTreeMap<String, Vec<u8>> {
        let files = self.disks[&node].files.lock();
        let content = files.iter().map(|(name, file)| {
            let content = file.content.lock().current.clone();
            (name.clone(), content)
        });
        content.collect()
    }

    /// From now on, syncs of this host fail.
    pub fn break_disk(&mut self, node: NodeId) {
        let disk = &self.disks[&node];
        disk.broken.store(true, Ordering::SeqCst);
    }

    /// Makes this host's disk full, or frees space.
    pub fn fill_disk(&mut self, node: NodeId, full: bool) {
        self.disks[&node].full.store(full, Ordering::SeqCst);
    }

    /// From now on this host's syncs take about so long; as usual for none.
    pub fn slow_disk(&mut self, node: NodeId, sync: Option<Duration>) {
        let nanos = sync.unwrap_or(SYNC).as_nanos() as u64;
        self.disks[&node].sync_nanos.store(nanos, Ordering::SeqCst);
    }

    /// Inverts one byte of a file.
    pub fn damage(&mut self, node: NodeId, path: &str, offset: usize) {
        let files = self.disks[&node].files.lock();
        let mut content = files[path].content.lock();
        content.current[offset] ^= 0xff;
    }

    /// From now on, frames for `node` go to this group too.
    pub fn attach(&mut self, node: NodeId, group: Arc<Group>) {
        self.groups.entry(node).or_default().push(group);
    }

    /// Loses a host's memory and what its disk had not synced.
    pub fn crash(&mut self, node: NodeId) {
        if let Some(host) = self.hosts.remove(&node) {
            host.life.dead.store(true, Ordering::SeqCst);
        }
        self.groups.remove(&node);
        self.tasks.retain(|_, (life, _)| !life.is_over());
        self.disks[&node].crash();
    }

    /// Why a host stopped itself, if it did.
    pub fn stopped(&self, node: NodeId) -> Option<String> {
        self.hosts
            .get(&node)
            .and_then(|host| host.stopped.lock().clone())
    }

    /// Stops a host for a while, as a signal would; its clock goes on.
    pub fn freeze(&mut self, node: NodeId, frozen: bool) {
        let life = &self.hosts[&node].life;
        life.frozen.store(frozen, Ordering::SeqCst);
    }

    /// Makes everything that one host sends to another take so much longer from now on.
    pub fn slow_link(&mut self, from: NodeId, to: NodeId, more: Duration) {
        self.shared.state.lock().slow.insert((from, to), more);
    }

    /// Cuts or mends all links between two hosts.
    pub fn link(&mut self, a: NodeId, b: NodeId, up: bool) {
        let mut state = self.shared.state.lock();
        for link in [(a, b), (b, a)] {
            match up {
                true => state.cut.remove(&link),
                false => state.cut.insert(link),
            };
        }
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.shared.state.lock().now
    }

    /// A random number.
    pub fn random(&self) -> u64 {
        self.shared.state.lock().random()
    }

    /// A number that stands for everything that has happened.
    pub fn trace(&self) -> u64 {
        self.shared.state.lock().trace
    }

    /// Runs a future to its end.
    ///
    /// # Panics
    /// When it takes more than a minute of virtual time.
    pub fn run<T: 'static>(&mut self, future: impl Future<Output = T> + 'static) -> T {
        let result = std::rc::Rc::new(std::cell::RefCell::new(None));
        let slot = result.clone();
        self.spawn(async move { *slot.borrow_mut() = Some(future.await) });
        let end = self.now().after(Duration::from_secs(60));
        loop {
            if let Some(value) = result.borrow_mut().take() {
                return value;
            }
            assert!(self.now() < end, "a minute has passed");
            self.step(end);
        }
    }

    /// Runs a coroutine to its end, in which a session's code may wait.
    pub fn session<T: 'static>(&mut self, body: impl FnOnce() -> T + 'static) -> T {
        self.run(coro::run(Arc::new(Interrupts::default()), body))
    }

    /// Adds a task.
    pub fn spawn(&mut self, future: impl Future<Output = ()> + 'static) {
        self.add(Arc::default(), Box::pin(future));
    }

    /// Adds a task that dies with its host.
    pub fn spawn_on(&mut self, node: NodeId, future: impl Future<Output = ()> + 'static) {
        let life = self.hosts[&node].life.clone();
        self.add(life, Box::pin(future));
    }

    fn add(&mut self, life: Arc<Life>, future: LocalBoxFuture<'static, ()>) {
        let mut state = self.shared.state.lock();
        let id = state.number();
        state.ready.insert(id);
        self.tasks.insert(id, (life, future));
    }

    /// Lets time pass.
    pub fn pass(&mut self, duration: Duration) {
        let end = self.now().after(duration);
        while self.now() < end {
            self.step(end);
        }
    }

    /// Lets time pass until `done` holds.
    ///
    /// # Panics
    /// When that takes more than a minute.
    pub fn until(&mut self, what: &str, mut done: impl FnMut(&World) -> bool) {
        let end = self.now().after(Duration::from_secs(60));
        while !done(self) {
            assert!(self.now() < end, "waited a minute for {what}");
            self.step(end);
        }
    }

    /// Polls one ready task, or moves time on to what comes next.
    fn step(&mut self, end: Instant) {
        let started = std::mem::take(&mut self.shared.state.lock().started);
        for (life, start) in started {
            if !life.is_over() {
                self.add(life, start());
            }
        }
        let mut state = self.shared.state.lock();
        let runs = |id: &&TaskId| {
            self.tasks
                .get(*id)
                .is_none_or(|(life, _)| !life.is_frozen())
        };
        let count = state.ready.iter().filter(runs).count();
        if count == 0 {
            drop(state);
            return self.advance(end);
        }
        let index = (state.random() % count as u64) as usize;
        let id = state.ready.iter().filter(runs).nth(index);
        let id = *id.expect("below the count");
        state.ready.remove(&id);
        let now = state.now.0;
        state.trace = (state.trace ^ id ^ now).wrapping_mul(0x0100_0000_01b3);
        drop(state);
        let Some((life, mut future)) = self.tasks.remove(&id) else {
            return;
        };
        let waker = Waker::from(Arc::new(TaskWaker {
            shared: self.shared.clone(),
            id,
        }));
        let poll = future.as_mut().poll(&mut Context::from_waker(&waker));
        if poll.is_pending() && !life.is_over() {
            self.tasks.insert(id, (life, future));
        }
    }

    fn advance(&mut self, end: Instant) {
        let mut state = self.shared.state.lock();
        let timer = state.timers.first_key_value().map(|(key, _)| *key);
        let frame = state.frames.first_key_value().map(|(key, _)| *key);
        let next = match (timer, frame) {
            (Some(a), Some(b)) => a.min(b),
            (Some(a), None) | (None, Some(a)) => a,
            (None, None) => (end, 0),
        };
        if next.0 > end || (timer, frame) == (None, None) {
            state.now = end;
            return;
        }
        state.now = state.now.max(next.0);
        if Some(next) == timer {
            let waker = state.timers.remove(&next);
            drop(state);
            waker.into_iter().for_each(Waker::wake);
            return;
        }
        let Some((from, to, frame)) = state.frames.remove(&next) else {
            return;
        };
        let frozen = |node| {
            self.hosts
                .get(node)
                .is_some_and(|host| host.life.is_frozen())
        };
        if frozen(&to) {
            // It waits in the socket.
            let later = state.now.after(FROZEN_LINK);
            state.links.insert((from, to), later);
            state.frames.insert((later, next.1), (from, to, frame));
            return;
        }
        let down = state.cut.contains(&(from, to));
        drop(state);
        for group in self.groups.get(&to).filter(|_| !down).into_iter().flatten() {
            group.receive(from, &frame);
        }
    }
}

/// One life of one host.
pub struct Host {
    shared: Arc<Shared>,
    node: NodeId,
    disk: Arc<MemoryDisk>,
    life: Arc<Life>,
    stopped: Mutex<Option<String>>,
    verbose: bool,
}

impl Env for Host {
    fn now(&self) -> Instant {
        self.shared.state.lock().now
    }
    fn wall_clock(&self) -> Timestamp {
        Timestamp((self.now().0 / 1000) as i64)
    }
    fn random(&self) -> u64 {
        self.shared.state.lock().random()
    }
    fn secret(&self) -> [u8; 32] {
        base::env::no_secret(self.random())
    }

    fn sleep_until(&self, deadline: Instant) -> BoxFuture<'static, ()> {
        let shared = self.shared.clone();
        let mut asked = false;
        Box::pin(std::future::poll_fn(move |cx| {
            let mut state = shared.state.lock();
            if state.now >= deadline {
                return Poll::Ready(());
            }
            if !asked {
                asked = true;
                let number = state.number();
                state.timers.insert((deadline, number), cx.waker().clone());
            }
            Poll::Pending
        }))
    }
    fn spawn(&self, _reactor: Reactor, _name: &'static str, start: TaskStart) {
        let mut state = self.shared.state.lock();
        state.started.push((self.life.clone(), start));
    }
    fn session_reactors(&self) -> usize {
        1
    }
    fn disk(&self) -> Arc<dyn Disk> {
        self.disk.clone()
    }
    fn net(&self) -> Arc<dyn Net> {
        panic!("groups talk through their transport")
    }
    fn log(&self, severity: Severity, message: &str) {
        if self.verbose {
            println!(
                "{:>12} n{} {severity:?}: {message}",
                self.now().0,
                self.node
            );
        }
    }
    fn stop_node(&self, reason: &str) {
        self.log(Severity::Error, reason);
        self.life.dead.store(true, Ordering::SeqCst);
        self.stopped.lock().get_or_insert(reason.to_owned());
    }
}

impl Transport for Host {
    fn send(&self, to: NodeId, frame: Vec<u8>) {
        let mut state = self.shared.state.lock();
        if state.cut.contains(&(self.node, to)) || self.life.is_over() {
            return;
        }
        let link = (self.node, to);
        let last = state.links.get(&link).copied().unwrap_or_default();
        let more = state.slow.get(&link).copied().unwrap_or_default();
        let at = state.within(LINK).after(more).max(last);
        state.links.insert(link, at);
        let number = state.number();
        state.frames.insert((at, number), (self.node, to, frame));
    }

    fn flush(&self) {}
}

struct MemoryDisk {
    shared: Arc<Shared>,
    files: Mutex<BTreeMap<String, Arc<MemoryFile>>>,
    broken: Arc<AtomicBool>,
    full: Arc<AtomicBool>,
    sync_nanos: Arc<AtomicU64>,
}

impl MemoryDisk {
    fn crash(&self) {
        for file in self.files.lock().values() {
            file.crash();
        }
    }
}

#[derive(Clone)]
enum Write {
    Bytes(usize, Vec<u8>),
    Len(usize),
}

impl Write {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Write::Len(len) => content.resize(*len, 0),
            Write::Bytes(offset, bytes) => {
                let end = offset + bytes.len();
                if content.len() < end {
                    content.resize(end, 0);
                }
                content[*offset..end].copy_from_slice(bytes);
            }
        }
    }
}

struct MemoryFile {
    shared: Arc<Shared>,
    broken: Arc<AtomicBool>,
    full: Arc<AtomicBool>,
    sync_nanos: Arc<AtomicU64>,
    content: Mutex<Content>,
}

#[derive(Default)]
struct Content {
    current: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<Write>,
    /// Writes that became durable, so that a sync knows which of its writes are left.
    synced: usize,
}

impl MemoryFile {
    fn crash(&self) {
        let mut content = self.content.lock();
        for write in std::mem::take(&mut content.pending) {
            if self.shared.state.lock().random() % 2 == 0 {
                write.apply(&mut content.durable);
            }
        }
        content.current = content.durable.clone();
    }

    fn change(&self, write: Write) -> io::Result<()> {
        let mut content = self.content.lock();
        let end = match &write {
            Write::Len(len) => *len,
            Write::Bytes(offset, bytes) => offset + bytes.len(),
        };
        if end > content.current.len() && self.full.load(Ordering::SeqCst) {
            return Err(ErrorKind::StorageFull.into());
        }
        write.apply(&mut content.current);
        content.pending.push(write);
        Ok(())
    }
}

impl Disk for MemoryDisk {
    fn open(&self, path: &str, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut files = self.files.lock();
        match (files.get(path), mode) {
            (Some(_), OpenMode::CreateNew) => Err(ErrorKind::AlreadyExists.into()),
            (Some(file), _) => Ok(file.clone()),
            (None, OpenMode::Existing) => Err(ErrorKind::NotFound.into()),
            (None, _) => {
                let file = Arc::new(MemoryFile {
                    shared: self.shared.clone(),
                    broken: self.broken.clone(),
                    full: self.full.clone(),
                    sync_nanos: self.sync_nanos.clone(),
                    content: Mutex::default(),
                });
                files.insert(path.to_owned(), file.clone());
                Ok(file)
            }
        }
    }
    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let prefix = format!("{path}/");
        let files = self.files.lock();
        let names = files.keys().filter_map(|name| name.strip_prefix(&prefix));
        let first = names.filter_map(|name| name.split('/').next());
        let names: BTreeSet<_> = first.map(str::to_owned).collect();
        Ok(names.into_iter().collect())
    }
    fn create_dir(&self, _path: &str) -> io::Result<()> {
        Ok(())
    }
    fn remove(&self, path: &str) -> io::Result<()> {
        match self.files.lock().remove(path) {
            Some(_) => Ok(()),
            None => Err(ErrorKind::NotFound.into()),
        }
    }
    fn remove_dir(&self, path: &str) -> io::Result<()> {
        let prefix = format!("{path}/");
        self.files
            .lock()
            .retain(|name, _| !name.starts_with(&prefix));
        Ok(())
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut files = self.files.lock();
        let inside = format!("{from}/");
        let names: Vec<_> = files
            .keys()
            .filter(|name| *name == from || name.starts_with(&inside))
            .cloned()
            .collect();
        if names.is_empty() {
            return Err(ErrorKind::NotFound.into());
        }
        for name in names {
            let file = files.remove(&name).expect("just listed");
            files.insert(format!("{to}{}", &name[from.len()..]), file);
        }
        Ok(())
    }
    fn sync_dir(&self, _path: &str) -> io::Result<()> {
        Ok(())
    }
}

impl File for MemoryFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let content = self.content.lock();
        let offset = offset as usize;
        let bytes = content.current.get(offset..offset + buffer.len());
        buffer.copy_from_slice(bytes.ok_or(ErrorKind::UnexpectedEof)?);
        Ok(())
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.change(Write::Bytes(offset as usize, bytes.to_vec()))
    }
    fn len(&self) -> io::Result<u64> {
        Ok(self.content.lock().current.len() as u64)
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change(Write::Len(len as usize))
    }
    fn sync(&self) -> BoxFuture<'_, io::Result<()>> {
        let (shared, mut done_at) = (self.shared.clone(), None);
        let mut writes = 0;
        Box::pin(std::future::poll_fn(move |cx| {
            let mut state = shared.state.lock();
            if done_at.is_none() {
                let content = self.content.lock();
                writes = content.synced + content.pending.len();
                let nanos = self.sync_nanos.load(Ordering::SeqCst);
                let at = state.within(Duration::from_nanos(nanos));
                done_at = Some(at);
                let number = state.number();
                state.timers.insert((at, number), cx.waker().clone());
                return Poll::Pending;
            }
            if done_at.is_some_and(|at| state.now < at) {
                return Poll::Pending;
            }
            if self.broken.load(Ordering::SeqCst) {
                return Poll::Ready(Err(ErrorKind::Other.into()));
            }
            let mut content = self.content.lock();
            let content = &mut *content;
            // After a crash in between there is less, and nobody who cares.
            let count = writes.saturating_sub(content.synced);
            let count = count.min(content.pending.len());
            for write in content.pending.drain(..count) {
                write.apply(&mut content.durable);
            }
            content.synced += count;
            Poll::Ready(Ok(()))
        }))
    }
}
