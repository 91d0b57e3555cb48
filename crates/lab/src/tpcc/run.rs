//! A run: terminals, connections, and what they measure.
//!
//! Terminals are split into *shares*, one per reactor, whole warehouses each; a share has its own
//! wheel, queue, connections and histograms, and no reactor touches another's. A terminal whose time
//! has come stands in the share's queue until a connection is free. Its response time begins when it
//! comes due, not when it is sent: a client that falls behind shows it.
//!
//! With `wait` off there are no terminals: every connection carries out one transaction after
//! another, each for a random warehouse.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use base::env::{sleep, Env, Instant, Reactor};
use base::sync::Mutex;
use base::SqlState;
use hdrhistogram::Histogram;

use crate::client::{within, Failure};
use crate::session::{Counts, Session, Target};
use crate::tpcc::random::{Constants, Random};
use crate::tpcc::schema;
use crate::tpcc::transactions::{End, Input, Kind, Place};
use crate::tpcc::wheel::{Wheel, TICKS_MAX};
use crate::tpcc::DISTRICTS_PER_WAREHOUSE;

/// The grain of thinking and typing.
const TICK: Duration = Duration::from_millis(10);

/// A transaction that takes longer is given up with its connection.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often a transaction is tried before it counts as failed.
const TRIES_MAX: u32 = 100;

/// The pause before a connection is tried again.
const RECONNECT_PAUSE: Duration = Duration::from_millis(100);

/// The longest pause before a retry.
const RETRY_PAUSE_MAX: Duration = Duration::from_millis(64);

/// Times above this count as this.
const LATENCY_MICROS_MAX: u64 = 200_000_000;

/// Significant digits of a histogram.
const DIGITS: u8 = 2;

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where.
    pub target: Target,
    /// How many warehouses were loaded.
    pub warehouses: u64,
    /// Terminals per warehouse, at most ten.
    pub terminals_per_warehouse: u64,
    /// Sessions, over all reactors.
    pub connections: usize,
    /// Whether terminals think and type.
    pub wait: bool,
    /// Reactors that drive them.
    pub reactors: usize,
    /// For everything that is drawn.
    pub seed: u64,
}

/// What has been measured of one kind of transaction.
#[derive(Clone, Debug)]
pub struct Tally {
    /// Committed.
    pub committed: u64,
    /// Rolled back on purpose.
    pub rolled_back: u64,
    /// Given up.
    pub failed: u64,
    /// Microseconds from when a terminal came due to the answer.
    pub response: Histogram<u32>,
}

/// What a run has measured.
#[derive(Clone, Debug)]
pub struct Measured {
    /// By kind. The response of a delivery is that of its being queued.
    pub kinds: [Tally; 5],
    /// Microseconds from a delivery's being queued to its end.
    pub deferred: Histogram<u32>,
    /// Tries that failed for serialization.
    pub serialization_retries: u64,
    /// Tries that failed for a deadlock.
    pub deadlock_retries: u64,
    /// Connections that broke.
    pub broken: u64,
    /// What the first failure said.
    pub first_failure: Option<String>,
    /// Statements and round trips.
    pub counts: Counts,
    /// New orders by second since the measurement began.
    pub new_orders_by_second: Vec<u32>,
}

fn histogram() -> Histogram<u32> {
    Histogram::new_with_bounds(1, LATENCY_MICROS_MAX, DIGITS)
        .unwrap_or_else(|error| panic!("bounds of a histogram: {error}"))
}

impl Default for Measured {
    fn default() -> Measured {
        let tally = || Tally {
            committed: 0,
            rolled_back: 0,
            failed: 0,
            response: histogram(),
        };
        Measured {
            kinds: [tally(), tally(), tally(), tally(), tally()],
            deferred: histogram(),
            serialization_retries: 0,
            deadlock_retries: 0,
            broken: 0,
            first_failure: None,
            counts: Counts::default(),
            new_orders_by_second: Vec::new(),
        }
    }
}

impl Measured {
    /// Adds another share's.
    fn add(&mut self, other: &Measured) {
        for (mine, theirs) in self.kinds.iter_mut().zip(&other.kinds) {
            mine.committed += theirs.committed;
            mine.rolled_back += theirs.rolled_back;
            mine.failed += theirs.failed;
            add(&mut mine.response, &theirs.response);
        }
        add(&mut self.deferred, &other.deferred);
        self.serialization_retries += other.serialization_retries;
        self.deadlock_retries += other.deadlock_retries;
        self.broken += other.broken;
        if self.first_failure.is_none() {
            self.first_failure.clone_from(&other.first_failure);
        }
        self.counts.statements += other.counts.statements;
        self.counts.round_trips += other.counts.round_trips;
        let seconds = self
            .new_orders_by_second
            .len()
            .max(other.new_orders_by_second.len());
        self.new_orders_by_second.resize(seconds, 0);
        for (mine, theirs) in self
            .new_orders_by_second
            .iter_mut()
            .zip(&other.new_orders_by_second)
        {
            *mine += theirs;
        }
    }

    /// Transactions that ended as they should.
    pub fn completed(&self) -> u64 {
        let kinds = self.kinds.iter();
        kinds.map(|tally| tally.committed + tally.rolled_back).sum()
    }

    fn note(&mut self, what: &str) {
        if self.first_failure.is_none() {
            self.first_failure = Some(what.to_owned());
        }
    }
}

fn add(mine: &mut Histogram<u32>, theirs: &Histogram<u32>) {
    // Both have the same bounds.
    let added = mine.add(theirs);
    assert!(added.is_ok(), "histograms of different bounds: {added:?}");
}

/// A terminal whose time has come, or a delivery that was queued.
#[derive(Clone, Copy, Debug)]
struct Due {
    terminal: u32,
    kind: Kind,
    since: Instant,
}

/// One reactor's part.
struct Share {
    first_warehouse: u64,
    warehouses: u64,
    wheel: Wheel,
    /// What each terminal does next, as a place in [`Kind::ALL`].
    next: Vec<u8>,
    ready: VecDeque<Due>,
    idle: Vec<Waker>,
    random: Random,
    measured: Measured,
    /// Set while it is measured.
    since: Option<Instant>,
}

/// A run that is under way.
pub struct Run {
    plan: Plan,
    shares: Vec<Arc<Mutex<Share>>>,
    ended: AtomicBool,
    living: AtomicUsize,
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Run")
    }
}

impl Run {
    /// Starts the terminals and the connections.
    pub fn start(env: &Arc<dyn Env>, plan: &Plan) -> Arc<Run> {
        let reactors = plan.reactors.clamp(1, plan.warehouses.max(1) as usize);
        let connections = plan.connections.max(reactors);
        let run = Arc::new(Run {
            plan: plan.clone(),
            shares: (0..reactors)
                .map(|index| Arc::new(Mutex::new(Share::new(plan, index, reactors))))
                .collect(),
            ended: AtomicBool::new(false),
            living: AtomicUsize::new(0),
        });
        for index in 0..reactors {
            let reactor = Reactor::Session(index);
            if plan.wait {
                let (env_too, run) = (env.clone(), run.clone());
                run.living.fetch_add(1, Ordering::Relaxed);
                let start = Box::new(move || -> base::env::LocalBoxFuture<'static, ()> {
                    Box::pin(async move { run.tick(&*env_too, index).await })
                });
                env.spawn(reactor, "terminals", start);
            }
            for number in (index..connections).step_by(reactors) {
                let (env_too, run) = (env.clone(), run.clone());
                run.living.fetch_add(1, Ordering::Relaxed);
                let start = Box::new(move || -> base::env::LocalBoxFuture<'static, ()> {
                    Box::pin(async move { run.serve(&*env_too, index, number).await })
                });
                env.spawn(reactor, "connection", start);
            }
        }
        run
    }

    /// Forgets what was measured so far, and begins anew.
    pub fn begin(&self, now: Instant) {
        for share in &self.shares {
            let mut share = share.lock();
            share.measured = Measured::default();
            share.since = Some(now);
        }
    }

    /// Ends the measurement; what ends later does not count.
    pub fn finish(&self) -> Measured {
        let mut all = Measured::default();
        for share in &self.shares {
            let mut share = share.lock();
            share.since = None;
            all.add(&share.measured);
        }
        all
    }

    /// What has been measured so far.
    pub fn so_far(&self) -> Measured {
        let mut all = Measured::default();
        for share in &self.shares {
            all.add(&share.lock().measured);
        }
        all
    }

    /// Terminals whose time has come and who wait for a connection.
    pub fn waiting(&self) -> usize {
        self.shares
            .iter()
            .map(|share| share.lock().ready.len())
            .sum()
    }

    /// Lets transactions under way end, and starts no more.
    pub fn stop(&self) {
        self.ended.store(true, Ordering::Relaxed);
        for share in &self.shares {
            let idle = std::mem::take(&mut share.lock().idle);
            idle.into_iter().for_each(Waker::wake);
        }
    }

    /// Whether everything has ended after [`Run::stop`].
    pub fn has_ended(&self) -> bool {
        self.living.load(Ordering::Relaxed) == 0
    }

    fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Moves a share's wheel.
    async fn tick(&self, env: &dyn Env, index: usize) {
        let start = env.now();
        while !self.is_ended() {
            sleep(env, TICK).await;
            let now = env.now();
            let tick = (now.since(start).as_nanos() / TICK.as_nanos()) as u64;
            let woken = {
                let mut share = self.shares[index].lock();
                let share = &mut *share;
                let before = share.ready.len();
                share.wheel.advance(tick, |terminal| {
                    let kind = Kind::ALL[usize::from(share.next[terminal as usize])];
                    share.ready.push_back(Due {
                        terminal,
                        kind,
                        since: now,
                    });
                });
                let count = (share.ready.len() - before).min(share.idle.len());
                share.idle.drain(..count).collect::<Vec<_>>()
            };
            woken.into_iter().for_each(Waker::wake);
        }
        self.living.fetch_sub(1, Ordering::Relaxed);
    }

    /// The next transaction for a connection; none at the end of the run.
    async fn next(&self, env: &dyn Env, index: usize) -> Option<Due> {
        if !self.plan.wait {
            let mut share = self.shares[index].lock();
            let terminals = share.warehouses * DISTRICTS_PER_WAREHOUSE;
            let terminal = share.random.between(0, terminals - 1) as u32;
            let kind = Kind::draw(&mut share.random);
            let since = env.now();
            return (!self.is_ended()).then_some(Due {
                terminal,
                kind,
                since,
            });
        }
        std::future::poll_fn(|cx| {
            let mut share = self.shares[index].lock();
            if self.is_ended() {
                return Poll::Ready(None);
            }
            match share.ready.pop_front() {
                Some(due) => Poll::Ready(Some(due)),
                None => {
                    share.idle.push(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Carries out transactions over one connection.
    async fn serve(&self, env: &dyn Env, index: usize, number: usize) {
        let mut random = Random::new(self.plan.seed ^ ((number as u64 + 1) << 40));
        let mut session = None;
        let mut counted = Counts::default();
        while let Some(due) = self.next(env, index).await {
            let place = self.shares[index].lock().place(due.terminal, &self.plan);
            let input = Input::draw(due.kind, place, Constants::RUN, &mut random);
            if due.kind == Kind::Delivery {
                // The terminal is told at once that its delivery is queued (clause 2.7.2).
                self.respond(env, index, due, None);
            }
            let end = self
                .carry_out(env, index, &input, &mut session, &mut random)
                .await;
            let mut share = self.shares[index].lock();
            if let (Some(session), Some(_)) = (&session, share.since) {
                let counts = session.counts();
                let before = std::mem::replace(&mut counted, counts);
                let measured = &mut share.measured.counts;
                measured.statements += counts.statements.saturating_sub(before.statements);
                measured.round_trips += counts.round_trips.saturating_sub(before.round_trips);
            } else {
                counted = session
                    .as_ref()
                    .map_or_else(Counts::default, Session::counts);
            }
            drop(share);
            match due.kind {
                Kind::Delivery => self.delivered(env, index, due, end.is_some()),
                _ => self.respond(env, index, due, Some(end)),
            }
        }
        self.living.fetch_sub(1, Ordering::Relaxed);
    }

    /// Tries until it ends, and says how; none when it was given up.
    async fn carry_out(
        &self,
        env: &dyn Env,
        index: usize,
        input: &Input,
        session: &mut Option<Session>,
        random: &mut Random,
    ) -> Option<End> {
        for tries in 0..TRIES_MAX {
            let tried = match session {
                Some(session) => within(env, PATIENCE, input.run(session)).await,
                None => {
                    let target = &self.plan.target;
                    match within(env, PATIENCE, Session::connect(env, target)).await {
                        Some(Ok(fresh)) => {
                            let fresh = session.insert(fresh);
                            within(env, PATIENCE, input.run(fresh)).await
                        }
                        Some(Err(failure)) => Some(Err(failure)),
                        None => None,
                    }
                }
            };
            let error = match tried {
                Some(Ok(end)) => return Some(end),
                Some(Err(Failure::Refused(error))) => error,
                Some(Err(Failure::Broken(error))) => {
                    *session = None;
                    self.broke(index, error.message());
                    sleep(env, RECONNECT_PAUSE).await;
                    return None;
                }
                None => {
                    *session = None;
                    self.broke(index, "no answer in time");
                    return None;
                }
            };
            if !self.may_retry(index, &error) {
                self.roll_back(env, session).await;
                return None;
            }
            self.roll_back(env, session).await;
            let most = (1u64 << tries.min(6)).min(RETRY_PAUSE_MAX.as_millis() as u64);
            let pause = Duration::from_micros(random.between(0, most * 1_000));
            if tries > 0 {
                sleep(env, pause).await;
            }
        }
        self.shares[index]
            .lock()
            .measured
            .note("every try failed for serialization");
        None
    }

    fn broke(&self, index: usize, what: &str) {
        let mut share = self.shares[index].lock();
        share.measured.broken += 1;
        share.measured.note(what);
    }

    /// Counts a refusal; true when another try may succeed.
    fn may_retry(&self, index: usize, error: &base::Error) -> bool {
        let measured = &mut self.shares[index].lock().measured;
        match error.state() {
            SqlState::SERIALIZATION_FAILURE => measured.serialization_retries += 1,
            SqlState::DEADLOCK_DETECTED => measured.deadlock_retries += 1,
            state => {
                measured.note(&format!("{}: {}", state.as_str(), error.message()));
                return false;
            }
        }
        !self.is_ended()
    }

    async fn roll_back(&self, env: &dyn Env, session: &mut Option<Session>) {
        if let Some(open) = session.as_mut().filter(|session| session.in_block()) {
            open.queue(schema::ROLLBACK, &[]);
            if !matches!(within(env, PATIENCE, open.run()).await, Some(Ok(()))) {
                *session = None;
            }
        }
    }

    /// A terminal has its answer (`end` none: its delivery is queued), and thinks.
    fn respond(&self, env: &dyn Env, index: usize, due: Due, end: Option<Option<End>>) {
        let now = env.now();
        let mut share = self.shares[index].lock();
        let share = &mut *share;
        if let Some(since) = share.since {
            let measured = &mut share.measured;
            let tally = &mut measured.kinds[due.kind as usize];
            match end {
                Some(Some(End::Committed)) => tally.committed += 1,
                Some(Some(End::RolledBack)) => tally.rolled_back += 1,
                Some(None) => tally.failed += 1,
                None => {}
            }
            if end != Some(None) {
                tally.response.saturating_record(micros(now, due.since));
                if due.kind == Kind::NewOrder {
                    let second = now.since(since).as_secs() as usize;
                    if measured.new_orders_by_second.len() <= second {
                        measured.new_orders_by_second.resize(second + 1, 0);
                    }
                    measured.new_orders_by_second[second] += 1;
                }
            }
        }
        if self.plan.wait {
            share.think(due);
        }
    }

    fn delivered(&self, env: &dyn Env, index: usize, due: Due, done: bool) {
        let now = env.now();
        let mut share = self.shares[index].lock();
        if share.since.is_none() {
            return;
        }
        let measured = &mut share.measured;
        let tally = &mut measured.kinds[Kind::Delivery as usize];
        match done {
            true => {
                tally.committed += 1;
                measured.deferred.saturating_record(micros(now, due.since));
            }
            false => tally.failed += 1,
        }
    }
}

fn micros(now: Instant, since: Instant) -> u64 {
    now.since(since)
        .as_micros()
        .clamp(1, LATENCY_MICROS_MAX.into()) as u64
}

impl Share {
    fn new(plan: &Plan, index: usize, shares: usize) -> Share {
        let (index, shares) = (index as u64, shares as u64);
        let start = plan.warehouses * index / shares;
        let end = plan.warehouses * (index + 1) / shares;
        let terminals = match plan.wait {
            true => (end - start) * plan.terminals_per_warehouse,
            false => 0,
        };
        let mut share = Share {
            first_warehouse: start + 1,
            warehouses: end - start,
            wheel: Wheel::new(terminals as usize),
            next: vec![0; terminals as usize],
            ready: VecDeque::new(),
            idle: Vec::new(),
            random: Random::new(plan.seed.wrapping_add(index)),
            measured: Measured::default(),
            since: None,
        };
        for terminal in 0..terminals as u32 {
            share.enter(terminal);
        }
        share
    }

    /// Where a terminal stands.
    fn place(&self, terminal: u32, plan: &Plan) -> Place {
        let per_warehouse = match plan.wait {
            true => plan.terminals_per_warehouse,
            false => DISTRICTS_PER_WAREHOUSE,
        };
        let terminal = u64::from(terminal);
        Place {
            warehouse: self.first_warehouse + terminal / per_warehouse,
            district: terminal % per_warehouse + 1,
            warehouses: plan.warehouses,
        }
    }

    /// The terminal comes in as if all had been at work for long: somewhere in a wait, and more
    /// likely in a long one.
    fn enter(&mut self, terminal: u32) {
        let longest = TICKS_MAX as f64 * TICK.as_secs_f64();
        loop {
            let before = Kind::draw(&mut self.random);
            let (kind, seconds) = self.wait_after(before);
            if self.random.unit() * longest < seconds {
                self.next[terminal as usize] = kind as u8;
                let left = self.random.unit() * seconds;
                return self.wheel.schedule(terminal, ticks(left));
            }
        }
    }

    /// The terminal thinks about its answer, then types its next question.
    fn think(&mut self, due: Due) {
        let (kind, seconds) = self.wait_after(due.kind);
        self.next[due.terminal as usize] = kind as u8;
        self.wheel.schedule(due.terminal, ticks(seconds));
    }

    /// What comes after a transaction, and in how many seconds.
    fn wait_after(&mut self, kind: Kind) -> (Kind, f64) {
        let mean = kind.rules().think_seconds;
        // Negative exponential, at most ten times the mean (clause 5.2.5.4).
        let think = (-mean * (1.0 - self.random.unit()).ln()).min(10.0 * mean);
        let next = Kind::draw(&mut self.random);
        (next, think + next.rules().keying_seconds)
    }
}

fn ticks(seconds: f64) -> u64 {
    let ticks = (seconds / TICK.as_secs_f64()).round() as u64;
    ticks.clamp(1, TICKS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_fit_the_wheel_and_shares_cover_all_warehouses() {
        for kind in Kind::ALL {
            let rules = kind.rules();
            let longest = 10.0 * rules.think_seconds + 18.0;
            assert!(longest / TICK.as_secs_f64() < TICKS_MAX as f64, "{longest}");
        }
        let plan = Plan {
            target: Target::at("127.0.0.1:1"),
            warehouses: 7,
            terminals_per_warehouse: 10,
            connections: 4,
            wait: true,
            reactors: 3,
            seed: 1,
        };
        let shares: Vec<Share> = (0..3).map(|index| Share::new(&plan, index, 3)).collect();
        let covered: u64 = shares.iter().map(|share| share.warehouses).sum();
        assert_eq!(covered, 7);
        assert_eq!(shares[0].first_warehouse, 1);
        assert_eq!(shares[1].first_warehouse, 1 + shares[0].warehouses);
        let last = shares[2].place(shares[2].next.len() as u32 - 1, &plan);
        assert_eq!((last.warehouse, last.district), (7, 10));
    }
}
