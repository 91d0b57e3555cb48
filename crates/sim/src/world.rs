//! The simulated world: hosts, one virtual clock, one seeded source of chance, one thread.
//!
//! Every task of every host is polled here, one at a time. Among the reactors that have something
//! to do, chance picks the next; within a reactor, tasks run in the order in which they became
//! ready, as they would on a thread. A poll costs a little virtual time; when nothing is ready the
//! clock moves to the next timer. Two runs from one seed are the same event for event, and
//! [`World::trace_hash`] shows it.
//!
//! ```
//! use sim::world::World;
//! use base::env::{sleep, Reactor};
//! use std::time::Duration;
//!
//! let mut world = World::new(7);
//! let host = world.add_host("h1");
//! let env = world.env(host);
//! let inner = env.clone();
//! env.spawn(Reactor::Group, "nap", Box::new(move || Box::pin(async move {
//!     sleep(&*inner, Duration::from_secs(3600)).await;
//! })));
//! world.run_for(Duration::from_secs(3601));
//! assert_eq!(world.tasks(), 0);
//! ```
//!
//! # Invariants
//! - A host that crashed is dead at once: no task of that incarnation is polled again, and what its
//!   destructors try to do to the world is refused.
//! - Wakers are never called while the world's state is latched.
//!
//! # What it leaves out
//! Memory shared by threads that truly run at once: that is for stress tests and model checkers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use base::env::{Env, LocalBoxFuture, Reactor, Severity, TaskStart};
use base::sync::{Mutex, MutexGuard};
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::disk::{DiskCopy, DiskState, Failing};
use crate::env::SimEnv;
use crate::faults::SOUND_DISK;
use crate::net::NetState;

/// A machine of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub usize);

/// Which life of a host: 0 before its first start, one more with each start.
pub type Incarnation = u64;

/// Of the disks that rot, one in so many loses the end of its log instead.
const CUT_LOG_ONE_IN: u64 = 3;

/// Virtual nanoseconds that one poll costs at most.
const POLL_NANOS_MAX: u64 = 4_000;

/// Chance, drawn from the seed alone.
#[derive(Debug)]
pub struct Chance(Xoshiro256PlusPlus);

impl Chance {
    /// The same seed draws the same numbers.
    pub fn new(seed: u64) -> Chance {
        Chance(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `bound`, which is at least 1.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "a number below 0 is wanted");
        self.bits() % bound
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// What a timer does when it is due.
pub(crate) enum Timer {
    Wake(Waker),
    Deliver(usize),
}

type TaskId = u64;
type Queue = (HostId, Reactor);

struct Spawned {
    id: TaskId,
    queue: Queue,
    incarnation: Incarnation,
    name: &'static str,
    start: TaskStart,
}

/// One host as the world keeps it.
pub(crate) struct Host {
    pub name: String,
    pub incarnation: Incarnation,
    pub alive: bool,
    pub paused: bool,
    pub clock_offset: u64,
    /// How many nanoseconds the host's clock gains per million.
    pub clock_drift: i64,
    /// By how many microseconds the host's wall clock is wrong.
    pub wall_error: i64,
    pub disk: DiskState,
    pub disk_delay: Duration,
    pub stopped: Option<String>,
}

/// Everything that hosts share, behind one latch that is never contended.
pub(crate) struct State {
    pub now: u64,
    pub chance: Chance,
    pub hosts: Vec<Host>,
    pub net: NetState,
    pub verbose: bool,
    trace: u64,
    events: u64,
    timers: BTreeMap<(u64, u64), Timer>,
    next_id: u64,
    ready: BTreeMap<Queue, VecDeque<TaskId>>,
    queued: BTreeSet<TaskId>,
    spawned: Vec<Spawned>,
    /// Whether a host died since its tasks were last looked for.
    pub deaths: bool,
}

impl State {
    /// Adds an event to the trace.
    pub fn note(&mut self, kind: &str, number: u64) {
        let mut hash = self.trace;
        for byte in kind
            .bytes()
            .chain(number.to_le_bytes())
            .chain(self.now.to_le_bytes())
        {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        self.trace = hash;
        self.events += 1;
    }

    pub fn add_timer(&mut self, due: u64, timer: Timer) -> (u64, u64) {
        self.next_id += 1;
        let key = (due, self.next_id);
        self.timers.insert(key, timer);
        key
    }

    pub fn cancel_timer(&mut self, key: (u64, u64)) {
        self.timers.remove(&key);
    }

    pub fn lives(&self, host: HostId, incarnation: Incarnation) -> bool {
        let host = &self.hosts[host.0];
        host.alive && host.incarnation == incarnation
    }

    /// The host's own clock.
    pub fn clock(&self, host: HostId) -> u64 {
        let host = &self.hosts[host.0];
        let drift = self.now as i128 * i128::from(host.clock_drift) / 1_000_000;
        (host.clock_offset as i128 + self.now as i128 + drift) as u64
    }

    /// World time from now until the host's clock shows `deadline`.
    pub fn until_clock(&self, host: HostId, deadline: u64) -> u64 {
        let ahead = deadline.saturating_sub(self.clock(host)) as i128;
        let rate = 1_000_000 + i128::from(self.hosts[host.0].clock_drift);
        (ahead * 1_000_000 / rate) as u64 + u64::from(ahead > 0)
    }

    fn enqueue(&mut self, id: TaskId, queue: Queue) {
        if self.queued.insert(id) {
            self.ready.entry(queue).or_default().push_back(id);
        }
    }
}

/// What environments and wakers hold of the world.
pub(crate) struct Shared(Mutex<State>);

impl Shared {
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }

    pub fn spawn(
        &self,
        host: HostId,
        incarnation: Incarnation,
        reactor: Reactor,
        name: &'static str,
        start: TaskStart,
    ) {
        let mut state = self.state();
        if !state.lives(host, incarnation) {
            drop(state);
            drop(start);
            return;
        }
        state.next_id += 1;
        let id = state.next_id;
        let queue = (host, reactor);
        state.spawned.push(Spawned {
            id,
            queue,
            incarnation,
            name,
            start,
        });
        state.enqueue(id, queue);
    }
}

/// It does not keep the world: timers and connections, which are part of the world, keep wakers.
struct TaskWaker {
    shared: Weak<Shared>,
    id: TaskId,
    queue: Queue,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(shared) = self.shared.upgrade() {
            shared.state().enqueue(self.id, self.queue);
        }
    }
}

struct Task {
    host: HostId,
    incarnation: Incarnation,
    name: &'static str,
    future: LocalBoxFuture<'static, ()>,
    waker: Waker,
}

/// The world: the state that hosts share, and their tasks.
pub struct World {
    pub(crate) shared: Arc<Shared>,
    tasks: BTreeMap<TaskId, Task>,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "World(at {:?})", self.elapsed())
    }
}

impl World {
    /// An empty world.
    pub fn new(seed: u64) -> World {
        World {
            shared: Arc::new(Shared(Mutex::new(State {
                now: 0,
                chance: Chance::new(seed),
                hosts: Vec::new(),
                net: NetState::default(),
                verbose: false,
                trace: 0xcbf2_9ce4_8422_2325,
                events: 0,
                timers: BTreeMap::new(),
                next_id: 0,
                ready: BTreeMap::new(),
                queued: BTreeSet::new(),
                spawned: Vec::new(),
                deaths: false,
            }))),
            tasks: BTreeMap::new(),
        }
    }

    /// Prints what nodes log.
    pub fn set_verbose(&mut self, verbose: bool) {
        self.shared.state().verbose = verbose;
    }

    /// Adds a host with an empty disk, a clock of its own, and starts it.
    pub fn add_host(&mut self, name: &str) -> HostId {
        let mut state = self.shared.state();
        let clock_offset = state.chance.below(1 << 50);
        // Monotonic clocks tick at nearly the same rate: within 200 parts in a million.
        let clock_drift = state.chance.below(401) as i64 - 200;
        let wall_error = state.chance.below(4_000_000) as i64 - 2_000_000;
        state.hosts.push(Host {
            name: name.to_owned(),
            incarnation: 1,
            alive: true,
            paused: false,
            clock_offset,
            clock_drift,
            wall_error,
            disk: DiskState::default(),
            disk_delay: SOUND_DISK,
            stopped: None,
        });
        HostId(state.hosts.len() - 1)
    }

    /// The environment of a host's present life.
    pub fn env(&self, host: HostId) -> Arc<dyn Env> {
        let incarnation = self.shared.state().hosts[host.0].incarnation;
        Arc::new(SimEnv::new(self.shared.clone(), host, incarnation))
    }

    /// Virtual time since the world began.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.shared.state().now)
    }

    /// A number that two runs share only when they took the same course.
    pub fn trace_hash(&self) -> u64 {
        self.shared.state().trace
    }

    /// How many events the trace holds.
    pub fn events(&self) -> u64 {
        self.shared.state().events
    }

    /// Draws from the world's chance.
    pub fn draw<T>(&mut self, f: impl FnOnce(&mut Chance) -> T) -> T {
        f(&mut self.shared.state().chance)
    }

    /// Tasks that have not ended.
    pub fn tasks(&self) -> usize {
        self.tasks.len() + self.shared.state().spawned.len()
    }

    /// Whether the host runs: it was started and has neither crashed nor stopped itself.
    pub fn is_alive(&self, host: HostId) -> bool {
        self.shared.state().hosts[host.0].alive
    }

    /// Why a host stopped itself, if it did.
    pub fn stopped(&self, host: HostId) -> Option<String> {
        self.shared.state().hosts[host.0].stopped.clone()
    }

    /// Kills a host: its tasks are gone, its connections break. If it loses power, chance keeps
    /// some of what it wrote and did not sync, loses some and tears some; otherwise only its
    /// programs die, and everything they wrote stays.
    pub fn crash(&mut self, host: HostId, loses_power: bool) {
        {
            let mut guard = self.shared.state();
            let state = &mut *guard;
            state.note("crash", host.0 as u64);
            state.deaths = true;
            state.hosts[host.0].alive = false;
            state.hosts[host.0].paused = false;
            let (hosts, chance) = (&mut state.hosts, &mut state.chance);
            if loses_power {
                hosts[host.0].disk.crash(chance);
            }
        }
        let wakers = NetState::host_died(&mut self.shared.state(), host);
        wakers.into_iter().for_each(Waker::wake);
        self.bury();
    }

    /// Starts a host that is down; the caller then starts its programs through [`World::env`].
    pub fn restart(&mut self, host: HostId) {
        let mut state = self.shared.state();
        assert!(!state.hosts[host.0].alive, "the host is down");
        state.note("restart", host.0 as u64);
        let host = &mut state.hosts[host.0];
        host.incarnation += 1;
        host.alive = true;
        host.stopped = None;
    }

    /// Freezes a host, or lets it go on. Its clock runs on; its sockets fill.
    pub fn pause(&mut self, host: HostId, paused: bool) {
        let mut state = self.shared.state();
        state.note("pause", host.0 as u64 * 2 + u64::from(paused));
        state.hosts[host.0].paused = paused;
    }

    /// Moves a host's wall clock by so many microseconds.
    pub fn jump_wall_clock(&mut self, host: HostId, micros: i64) {
        let mut state = self.shared.state();
        state.note("jump", host.0 as u64);
        state.hosts[host.0].wall_error += micros;
    }

    /// How long a sync takes on that host, about.
    pub fn set_disk_delay(&mut self, host: HostId, delay: Duration) {
        self.shared.state().hosts[host.0].disk_delay = delay;
    }

    /// Leaves so many bytes of room on that host's disk, or room without bound.
    pub fn set_disk_room(&mut self, host: HostId, room: Option<u64>) {
        let mut state = self.shared.state();
        state.note("room", host.0 as u64);
        state.hosts[host.0].disk.set_room(room);
    }

    /// From now on what is asked of that host's disk fails as this says, or not at all.
    pub(crate) fn set_disk_failing(&mut self, host: HostId, failing: Option<Failing>) {
        let mut state = self.shared.state();
        state.note("failing", host.0 as u64 * 2 + u64::from(failing.is_some()));
        state.hosts[host.0].disk.set_failing(failing);
    }

    /// Whether it does.
    pub(crate) fn is_disk_failing(&self, host: HostId) -> bool {
        self.shared.state().hosts[host.0].disk.is_failing()
    }

    /// Turns a bit on the disk of a host that is down, among those that are as they were in an older
    /// copy, or cuts off the end of its log. False if there is none.
    pub(crate) fn rot_disk(&mut self, host: HostId, old: &DiskCopy) -> bool {
        let mut guard = self.shared.state();
        let state = &mut *guard;
        assert!(!state.hosts[host.0].alive, "the host is down");
        state.note("rot", host.0 as u64);
        let (hosts, chance) = (&mut state.hosts, &mut state.chance);
        match chance.one_in(CUT_LOG_ONE_IN) {
            true => hosts[host.0].disk.cut_log(chance),
            false => hosts[host.0].disk.rot(old, chance),
        }
    }

    /// What is durable on that host's disk.
    pub(crate) fn copy_disk(&self, host: HostId) -> DiskCopy {
        self.shared.state().hosts[host.0].disk.copy()
    }

    /// Puts an older copy in the place of all that is on the disk of a host that is down.
    pub(crate) fn restore_disk(&mut self, host: HostId, copy: &DiskCopy) {
        let mut state = self.shared.state();
        assert!(!state.hosts[host.0].alive, "the host is down");
        state.note("restore", host.0 as u64);
        state.hosts[host.0].disk.restore(copy);
    }

    /// Cuts or heals the way from one host to another; what is under way waits for the healing.
    pub fn set_cut(&mut self, from: HostId, to: HostId, cut: bool) {
        let mut state = self.shared.state();
        state.note("cut", (from.0 * 1_000 + to.0 * 2) as u64 + u64::from(cut));
        state.net.set_cut(from, to, cut);
    }

    /// Runs until `done` holds (checked between events) or `limit` has passed; returns which.
    pub fn run_until(&mut self, limit: Duration, mut done: impl FnMut(&World) -> bool) -> bool {
        let end = self.shared.state().now + limit.as_nanos() as u64;
        loop {
            if done(self) {
                return true;
            }
            if self.shared.state().now >= end || !self.step(end) {
                return false;
            }
        }
    }

    /// Runs for a while.
    pub fn run_for(&mut self, duration: Duration) {
        self.run_until(duration, |_| false);
    }

    /// Polls one ready task, or moves the clock to the next timer, at most to `end`. False when
    /// nothing is left to happen before `end`.
    fn step(&mut self, end: u64) -> bool {
        self.adopt();
        let next = {
            let mut state = self.shared.state();
            next_task(&mut state)
        };
        if let Some(id) = next {
            self.poll(id);
            return true;
        }
        self.advance(end)
    }

    /// Makes tasks of what was spawned.
    fn adopt(&mut self) {
        let spawned = std::mem::take(&mut self.shared.state().spawned);
        for Spawned {
            id,
            queue,
            incarnation,
            name,
            start,
        } in spawned
        {
            if !self.shared.state().lives(queue.0, incarnation) {
                continue;
            }
            let waker = Waker::from(Arc::new(TaskWaker {
                shared: Arc::downgrade(&self.shared),
                id,
                queue,
            }));
            let task = Task {
                host: queue.0,
                incarnation,
                name,
                future: start(),
                waker,
            };
            self.tasks.insert(id, task);
        }
    }

    fn poll(&mut self, id: TaskId) {
        let Some(task) = self.tasks.get_mut(&id) else {
            return;
        };
        {
            let mut state = self.shared.state();
            if !state.lives(task.host, task.incarnation) {
                return;
            }
            let cost = state.chance.below(POLL_NANOS_MAX);
            state.now += cost;
            state.note(task.name, id);
        }
        let waker = task.waker.clone();
        let result = task.future.as_mut().poll(&mut Context::from_waker(&waker));
        if result == Poll::Ready(()) {
            self.tasks.remove(&id);
        }
        self.bury();
    }

    /// Drops the tasks of hosts that died.
    fn bury(&mut self) {
        let dead: Vec<TaskId> = {
            let mut state = self.shared.state();
            if !std::mem::take(&mut state.deaths) {
                return;
            }
            self.tasks
                .iter()
                .filter(|(_, task)| !state.lives(task.host, task.incarnation))
                .map(|(id, _)| *id)
                .collect()
        };
        for id in dead {
            self.tasks.remove(&id);
        }
    }

    fn advance(&mut self, end: u64) -> bool {
        let timer = {
            let mut guard = self.shared.state();
            let state = &mut *guard;
            let Some((&(due, id), _)) = state.timers.first_key_value() else {
                state.now = end;
                return false;
            };
            if due > end {
                state.now = end;
                return true;
            }
            state.now = state.now.max(due);
            state.note("timer", id);
            state.timers.remove(&(due, id))
        };
        match timer {
            Some(Timer::Wake(waker)) => waker.wake(),
            Some(Timer::Deliver(pipe)) => {
                let wakers = NetState::deliver(&mut self.shared.state(), pipe);
                wakers.into_iter().for_each(Waker::wake);
            }
            None => {}
        }
        true
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for host in &mut self.shared.state().hosts {
            host.alive = false;
        }
        self.tasks.clear();
        // What never began holds environments, which hold the world.
        let spawned = std::mem::take(&mut self.shared.state().spawned);
        drop(spawned);
    }
}

/// Takes a ready task of a reactor that chance picks.
fn next_task(state: &mut State) -> Option<TaskId> {
    let runnable: Vec<Queue> = state
        .ready
        .keys()
        .filter(|(host, _)| !state.hosts[host.0].paused)
        .copied()
        .collect();
    if runnable.is_empty() {
        return None;
    }
    let pick = runnable[state.chance.below(runnable.len() as u64) as usize];
    let queue = state.ready.get_mut(&pick)?;
    let id = queue.pop_front();
    if queue.is_empty() {
        state.ready.remove(&pick);
    }
    if let Some(id) = id {
        state.queued.remove(&id);
    }
    id
}

/// Prints a line of a node's log when the world is verbose.
pub(crate) fn log(state: &State, host: HostId, severity: Severity, message: &str) {
    if state.verbose {
        println!(
            "{:>12.6} {} {severity:?}: {message}",
            state.now as f64 / 1e9,
            state.hosts[host.0].name
        );
    }
}
