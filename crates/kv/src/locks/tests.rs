//! The lock table, driven by a few coroutines that are polled by hand.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Waker};

use base::coro::{Interrupts, Run};
use base::engine::{RowLock, TableLock};
use base::env::{BoxFuture, Disk, Instant, Net, Reactor, Severity, TaskStart};
use base::limits::WORK_PER_TURN;
use base::{Timestamp, TxnId};

use super::*;

/// An environment with a clock that a test moves.
#[derive(Default)]
pub(crate) struct Clock {
    now: Mutex<Instant>,
}

impl Clock {
    pub(crate) fn advance(&self, duration: Duration) {
        let mut now = self.now.lock();
        *now = now.after(duration);
    }
}

/// A handle on the clock; sleeps end when they are polled after their deadline.
pub(crate) struct TestEnv(pub(crate) Arc<Clock>);

impl Env for TestEnv {
    fn now(&self) -> Instant {
        *self.0.now.lock()
    }
    fn wall_clock(&self) -> Timestamp {
        Timestamp(0)
    }
    fn random(&self) -> u64 {
        4
    }
    fn secret(&self) -> [u8; 32] {
        base::env::no_secret(self.random())
    }

    fn sleep_until(&self, deadline: Instant) -> BoxFuture<'static, ()> {
        let clock = self.0.clone();
        Box::pin(std::future::poll_fn(move |_| {
            if *clock.now.lock() >= deadline {
                return Poll::Ready(());
            }
            Poll::Pending
        }))
    }
    fn spawn(&self, _: Reactor, _: &'static str, _: TaskStart) {
        unreachable!("locks need no task")
    }
    fn session_reactors(&self) -> usize {
        1
    }
    fn disk(&self) -> Arc<dyn Disk> {
        unreachable!("locks need no disk")
    }
    fn net(&self) -> Arc<dyn Net> {
        unreachable!("locks need no network")
    }
    fn log(&self, _: Severity, _: &str) {}
    fn stop_node(&self, reason: &str) {
        panic!("{reason}")
    }
}

const TREE: TreeId = TreeId(16_384);
const ROWS: [RowLock; 4] = [
    RowLock::KeyShare,
    RowLock::Share,
    RowLock::NoKeyUpdate,
    RowLock::Update,
];
const TABLES: [TableLock; 8] = [
    TableLock::AccessShare,
    TableLock::RowShare,
    TableLock::RowExclusive,
    TableLock::ShareUpdateExclusive,
    TableLock::Share,
    TableLock::ShareRowExclusive,
    TableLock::Exclusive,
    TableLock::AccessExclusive,
];

struct World {
    clock: Arc<Clock>,
    table: Arc<LockTable>,
    next: RefCell<u64>,
}

impl World {
    fn new() -> World {
        let clock = Arc::new(Clock::default());
        let table = Arc::new(LockTable::new(Arc::new(TestEnv(clock.clone()))));
        table.begin_term(Term(1));
        World {
            clock,
            table,
            next: RefCell::new(1),
        }
    }

    fn session(&self) -> Session {
        let mut next = self.next.borrow_mut();
        let owner = TxnId(*next);
        *next += 1;
        Session {
            locks: Rc::new(RefCell::new(Some(TxnLocks::new(
                self.table.clone(),
                Party::Transaction(owner),
            )))),
            interrupts: Arc::default(),
        }
    }
}

struct Session {
    /// Taken out while a request runs, so that no borrow is held across a wait.
    locks: Rc<RefCell<Option<TxnLocks>>>,
    interrupts: Arc<Interrupts>,
}

impl Session {
    fn start(&self, ask: impl FnOnce(&mut TxnLocks) -> Result<Acquired> + 'static) -> Pending {
        let slot = self.locks.clone();
        let mut pending = Pending {
            run: coro::run(self.interrupts.clone(), move || {
                let mut locks = slot.borrow_mut().take().expect("one request at a time");
                let result = ask(&mut locks);
                *slot.borrow_mut() = Some(locks);
                result
            }),
            result: None,
        };
        pending.poll();
        pending
    }

    fn row(&self, key: &'static str, strength: RowLock) -> Pending {
        self.row_or(key, strength, LockWait::Block)
    }

    fn row_or(&self, key: &'static str, strength: RowLock, wait: LockWait) -> Pending {
        self.start(move |locks| locks.row(TREE, key.as_bytes(), strength, wait))
    }

    fn table(&self, mode: TableLock) -> Pending {
        self.start(move |locks| locks.table(TREE, mode, LockWait::Block))
    }

    fn with<R>(&self, f: impl FnOnce(&mut TxnLocks) -> R) -> R {
        f(self.locks.borrow_mut().as_mut().expect("no request runs"))
    }

    fn end(self) {
        self.with(TxnLocks::release_all);
    }
}

struct Pending {
    run: Run<Result<Acquired>>,
    result: Option<Result<Acquired>>,
}

impl Pending {
    fn poll(&mut self) -> bool {
        if self.result.is_none() {
            let mut cx = Context::from_waker(Waker::noop());
            if let Poll::Ready(result) = Pin::new(&mut self.run).poll(&mut cx) {
                self.result = Some(result);
            }
        }
        self.result.is_some()
    }

    fn waits(&mut self) -> bool {
        !self.poll()
    }

    fn granted(&mut self) -> bool {
        self.poll() && self.result == Some(Ok(Acquired::Granted))
    }

    fn error(&mut self) -> Error {
        assert!(self.poll(), "it still waits");
        match self.result.clone() {
            Some(Err(error)) => error,
            other => panic!("no error but {other:?}"),
        }
    }
}

#[test]
fn what_very_many_locks_have_taken_is_given_back() {
    let world = World::new();
    // One each: a transaction with more than a few takes coarser ones here.
    let sessions: Vec<_> = (0..20_000_u32)
        .map(|number| {
            let session = world.session();
            let key = number.to_be_bytes();
            let taken =
                session.with(|locks| locks.row(TREE, &key, RowLock::Update, LockWait::Block));
            assert_eq!(taken, Ok(Acquired::Granted));
            session
        })
        .collect();
    let room = || -> usize {
        let shards = world.table.shards.iter();
        shards.map(|shard| shard.lock().locks.capacity()).sum()
    };
    assert!(room() >= 20_000, "room for {}", room());
    sessions.into_iter().for_each(Session::end);
    assert!(world.table.is_empty());
    let most = 2 * SHARDS * SHARD_LOCKS_KEPT;
    assert!(room() <= most, "room for {} is left", room());
}

#[test]
fn every_pair_of_row_locks_conflicts_as_in_postgresql() {
    // PostgreSQL 15 manual, table 13.3, read off by hand: requested below, held across.
    let conflicts = ["...X", "..XX", ".XXX", "XXXX"];
    for (i, wanted) in ROWS.into_iter().enumerate() {
        for (j, held) in ROWS.into_iter().enumerate() {
            let world = World::new();
            let (first, second) = (world.session(), world.session());
            assert!(first.row("a", held).granted());
            let expected = conflicts[i].as_bytes()[j] == b'X';
            let refused = world.session().row_or("a", wanted, LockWait::NoWait);
            assert_eq!(
                matches!(refused.result, Some(Err(_))),
                expected,
                "{wanted:?} against {held:?} without waiting"
            );
            drop(refused);
            let mut asked = second.row("a", wanted);
            assert_eq!(asked.waits(), expected, "{wanted:?} against {held:?}");
            first.end();
            assert!(asked.granted());
            second.end();
            assert!(world.table.is_empty());
        }
    }
}

#[test]
fn every_pair_of_table_locks_conflicts_as_in_postgresql() {
    // PostgreSQL 15 manual, table 13.2, read off by hand: requested below, held across.
    let conflicts = [
        ".......X", "......XX", "....XXXX", "...XXXXX", "..XX.XXX", "..XXXXXX", ".XXXXXXX",
        "XXXXXXXX",
    ];
    for (i, wanted) in TABLES.into_iter().enumerate() {
        for (j, held) in TABLES.into_iter().enumerate() {
            let world = World::new();
            let (first, second) = (world.session(), world.session());
            assert!(first.table(held).granted());
            let mut asked = second.table(wanted);
            let expected = conflicts[i].as_bytes()[j] == b'X';
            assert_eq!(asked.waits(), expected, "{wanted:?} against {held:?}");
            first.end();
            assert!(asked.granted());
        }
    }
}

#[test]
fn rows_and_tables_of_different_names_are_different_locks() {
    let world = World::new();
    let (first, second) = (world.session(), world.session());
    assert!(first.row("a", RowLock::Update).granted());
    assert!(second.row("b", RowLock::Update).granted());
    assert!(second.row("", RowLock::Update).granted());
    assert!(first.table(TableLock::AccessExclusive).granted());
    assert_eq!(world.table.len(), 4);
}

#[test]
fn requests_are_served_in_the_order_they_came() {
    let world = World::new();
    let holder = world.session();
    assert!(holder.row("a", RowLock::Update).granted());
    let waiters: Vec<_> = (0..5).map(|_| world.session()).collect();
    let mut asked: Vec<_> = waiters
        .iter()
        .map(|session| session.row("a", RowLock::Update))
        .collect();
    holder.end();
    for (place, session) in waiters.into_iter().enumerate() {
        for (other, pending) in asked.iter_mut().enumerate() {
            assert_eq!(
                pending.poll(),
                other <= place,
                "{other} while {place} holds"
            );
        }
        session.end();
    }
    assert!(world.table.is_empty());
}

#[test]
fn a_reader_does_not_overtake_a_waiting_writer() {
    let world = World::new();
    let sessions: [_; 4] = std::array::from_fn(|_| world.session());
    let [first, writer, reader, bystander] = sessions;
    assert!(first.row("a", RowLock::Share).granted());
    let mut writing = writer.row("a", RowLock::NoKeyUpdate);
    let mut reading = reader.row("a", RowLock::Share);
    assert!(writing.waits() && reading.waits());
    // Nothing that waits excludes the weakest lock.
    assert!(bystander.row("a", RowLock::KeyShare).granted());
    first.end();
    assert!(writing.granted() && reading.waits());
    writer.end();
    assert!(reading.granted());
}

#[test]
fn shared_waiters_are_served_together() {
    let world = World::new();
    let holder = world.session();
    assert!(holder.row("a", RowLock::Update).granted());
    let sessions: [_; 3] = std::array::from_fn(|_| world.session());
    let mut asked = [
        sessions[0].row("a", RowLock::Share),
        sessions[1].row("a", RowLock::KeyShare),
        sessions[2].row("a", RowLock::Update),
    ];
    holder.end();
    assert!(asked[0].granted() && asked[1].granted() && asked[2].waits());
}

#[test]
fn an_upgrade_goes_before_those_who_wait() {
    let world = World::new();
    let sessions: [_; 3] = std::array::from_fn(|_| world.session());
    let [first, second, waiter] = sessions;
    assert!(first.row("a", RowLock::KeyShare).granted());
    assert!(second.row("a", RowLock::Share).granted());
    let mut waiting = waiter.row("a", RowLock::Update);
    assert!(waiting.waits());
    let mut upgrading = first.row("a", RowLock::NoKeyUpdate);
    assert!(upgrading.waits(), "the second holder is in the way");
    second.end();
    assert!(upgrading.granted() && waiting.waits());
    first.end();
    assert!(waiting.granted());
}

#[test]
fn an_upgrade_does_not_queue_behind_its_own_victims() {
    let world = World::new();
    let (first, waiter) = (world.session(), world.session());
    assert!(first.row("a", RowLock::Share).granted());
    let mut waiting = waiter.row("a", RowLock::Update);
    assert!(waiting.waits());
    assert!(first.row("a", RowLock::Update).granted());
    assert_eq!(
        first.row("a", RowLock::Share).result,
        Some(Ok(Acquired::Held))
    );
    first.end();
    assert!(waiting.granted());
}

#[test]
fn a_lock_that_is_not_to_be_had_is_refused_or_skipped() {
    let world = World::new();
    let (first, second) = (world.session(), world.session());
    assert!(first.row("a", RowLock::NoKeyUpdate).granted());
    let error = second
        .row_or("a", RowLock::Update, LockWait::NoWait)
        .error();
    assert_eq!(error.state(), SqlState::LOCK_NOT_AVAILABLE);
    assert_eq!(error.class(), ErrorClass::Engine);
    assert_eq!(
        error.message(),
        "could not obtain lock on row in relation \"tree 16384\""
    );
    let skipped = second.row_or("a", RowLock::Update, LockWait::Skip);
    assert_eq!(skipped.result, Some(Ok(Acquired::Skipped)));
    assert!(first.table(TableLock::Exclusive).granted());
    let refused = second
        .start(|locks| locks.table(TREE, TableLock::Share, LockWait::NoWait))
        .error();
    assert_eq!(
        refused.message(),
        "could not obtain lock on relation \"tree 16384\""
    );
    first.end();
    assert!(world.table.is_empty(), "refused requests leave no trace");
}

#[test]
fn two_in_a_circle_lose_the_newer() {
    let world = World::new();
    let (first, second) = (world.session(), world.session());
    assert!(first.row("a", RowLock::Update).granted());
    assert!(second.row("b", RowLock::Update).granted());
    let mut waiting = first.row("b", RowLock::NoKeyUpdate);
    assert!(waiting.waits());
    let error = second.row("a", RowLock::Share).error();
    assert_eq!(error.state(), SqlState::DEADLOCK_DETECTED);
    assert_eq!(error.message(), "deadlock detected");
    assert_eq!(
        error.fields().detail.as_deref(),
        Some(
            "Transaction 2 waits for ForShareLock on row in relation \"tree 16384\"; blocked by \
             transaction 1.\n\
             Transaction 1 waits for ForNoKeyUpdateLock on row in relation \"tree 16384\"; \
             blocked by transaction 2."
        )
    );
    assert!(waiting.waits(), "one victim is enough");
    second.end();
    assert!(waiting.granted());
    first.end();
    assert!(world.table.is_empty());
}

#[test]
fn three_in_a_circle_lose_one() {
    let world = World::new();
    let sessions: [_; 3] = std::array::from_fn(|_| world.session());
    let keys = ["a", "b", "c"];
    for (session, key) in sessions.iter().zip(keys) {
        assert!(session.row(key, RowLock::Update).granted());
    }
    let mut first = sessions[0].row("b", RowLock::Update);
    let mut second = sessions[1].row("c", RowLock::Update);
    assert!(first.waits() && second.waits());
    let error = sessions[2].row("a", RowLock::Update).error();
    assert_eq!(error.state(), SqlState::DEADLOCK_DETECTED);
    assert_eq!(
        error.fields().detail.as_ref().map(|d| d.lines().count()),
        Some(3)
    );
    let [one, two, three] = sessions;
    three.end();
    assert!(second.granted() && first.waits());
    two.end();
    assert!(first.granted());
    one.end();
    assert!(world.table.is_empty());
}

/// As PostgreSQL's isolation specification `deadlock-soft`.
#[test]
fn a_circle_of_the_lines_making_is_opened() {
    let world = World::new();
    let (first, second) = (world.session(), world.session());
    let (alone, other) = (world.session(), world.session());
    assert!(first.row("a", RowLock::KeyShare).granted());
    assert!(second.row("b", RowLock::KeyShare).granted());
    let mut on_a = alone.row("a", RowLock::Update);
    let mut on_b = other.row("b", RowLock::Update);
    assert!(on_a.waits() && on_b.waits());
    let mut behind_b = first.row("b", RowLock::KeyShare);
    assert!(behind_b.waits());
    let mut behind_a = second.row("a", RowLock::KeyShare);
    assert!(behind_a.waits());
    assert!(behind_b.granted(), "put ahead of whoever stands in line");
    first.end();
    assert!(on_a.granted() && behind_a.waits());
    alone.end();
    assert!(behind_a.granted() && on_b.waits());
    second.end();
    assert!(on_b.granted());
    other.end();
    assert!(world.table.is_empty());
}

/// Neither order of the line opens the circle: what is held is waited for besides.
#[test]
fn a_circle_that_no_order_opens_loses_the_newer() {
    let world = World::new();
    let (first, second, third) = (world.session(), world.session(), world.session());
    assert!(first.row("a", RowLock::Update).granted());
    assert!(second.row("b", RowLock::Update).granted());
    let mut ahead = third.row("a", RowLock::Update);
    let mut behind = second.row("a", RowLock::Update);
    assert!(ahead.waits() && behind.waits());
    let error = first.row("b", RowLock::Update).error();
    assert_eq!(error.state(), SqlState::DEADLOCK_DETECTED);
    assert!(ahead.waits() && behind.waits());
    first.end();
    assert!(ahead.granted() && behind.waits(), "the line is as it was");
    third.end();
    assert!(behind.granted());
}

#[test]
fn two_upgrades_of_one_lock_are_a_deadlock() {
    let world = World::new();
    let (first, second) = (world.session(), world.session());
    assert!(first.row("a", RowLock::Share).granted());
    assert!(second.row("a", RowLock::Share).granted());
    let mut upgrading = first.row("a", RowLock::Update);
    assert!(upgrading.waits());
    let error = second.row("a", RowLock::Update).error();
    assert_eq!(error.state(), SqlState::DEADLOCK_DETECTED);
    assert_eq!(
        second.with(|locks| locks.mark()),
        1,
        "it still shares the row"
    );
    second.end();
    assert!(upgrading.granted());
}

#[test]
fn a_circle_through_the_line_is_opened() {
    let world = World::new();
    let sessions: [_; 3] = std::array::from_fn(|_| world.session());
    let [sharer, writer, third] = sessions;
    assert!(sharer.row("a", RowLock::Share).granted());
    assert!(third.row("b", RowLock::Update).granted());
    let mut writing = writer.row("a", RowLock::Update);
    let mut behind = third.row("a", RowLock::Share);
    assert!(writing.waits() && behind.waits());
    let mut asked = sharer.row("b", RowLock::Update);
    assert!(asked.waits() && behind.granted() && writing.waits());
    third.end();
    assert!(asked.granted() && writing.waits());
    sharer.end();
    assert!(writing.granted());
}

#[test]
fn a_chain_is_no_circle() {
    let world = World::new();
    let sessions: [_; 4] = std::array::from_fn(|_| world.session());
    assert!(sessions[0].row("a", RowLock::Update).granted());
    assert!(sessions[1].row("b", RowLock::Update).granted());
    assert!(sessions[2].row("c", RowLock::Update).granted());
    let mut asked = [
        sessions[1].row("a", RowLock::Update),
        sessions[2].row("b", RowLock::Update),
        sessions[3].row("c", RowLock::Update),
    ];
    assert!(asked.iter_mut().all(Pending::waits));
}

#[test]
fn the_lock_timeout_bounds_each_wait() {
    let world = World::new();
    let (first, second) = (world.session(), world.session());
    assert!(first.row("a", RowLock::Update).granted());
    second.with(|locks| locks.set_timeout(Duration::from_millis(1_500)));
    let mut waiting = second.row("a", RowLock::Update);
    world.clock.advance(Duration::from_millis(1_499));
    assert!(waiting.waits());
    world.clock.advance(Duration::from_millis(1));
    let error = waiting.error();
    assert_eq!(error.state(), SqlState::LOCK_NOT_AVAILABLE);
    assert_eq!(error.message(), "canceling statement due to lock timeout");
    first.end();
    assert!(world.table.is_empty());
}

#[test]
fn a_cancelled_waiter_leaves_the_line() {
    let world = World::new();
    let sessions: [_; 3] = std::array::from_fn(|_| world.session());
    let [first, second, third] = sessions;
    assert!(first.row("a", RowLock::Share).granted());
    let mut writing = second.row("a", RowLock::Update);
    let mut reading = third.row("a", RowLock::Share);
    assert!(writing.waits() && reading.waits());
    second.interrupts.raise(Interrupt::Cancel);
    assert_eq!(writing.error().state(), SqlState::QUERY_CANCELED);
    assert!(reading.granted(), "nobody is ahead of it now");
    first.end();
    third.end();
    assert!(world.table.is_empty());
    assert!(world.table.waits.lock().is_empty());
}

#[test]
fn an_unwound_waiter_leaves_the_line_and_gives_up_what_it_holds() {
    let world = World::new();
    let sessions: [_; 3] = std::array::from_fn(|_| world.session());
    let [first, second, third] = sessions;
    assert!(first.row("a", RowLock::Update).granted());
    assert!(second.row("b", RowLock::Update).granted());
    let mut unwound = second.row("a", RowLock::Update);
    let mut waiting = third.row("b", RowLock::Update);
    assert!(unwound.waits() && waiting.waits());
    drop(unwound);
    assert!(waiting.granted());
    third.end();
    first.end();
    assert!(world.table.is_empty());
}

#[test]
fn a_grant_that_nobody_takes_is_passed_on() {
    let world = World::new();
    let sessions: [_; 3] = std::array::from_fn(|_| world.session());
    let [first, second, third] = sessions;
    assert!(first.row("a", RowLock::Update).granted());
    let unwound = second.row("a", RowLock::Update);
    let mut waiting = third.row("a", RowLock::Update);
    first.end();
    // The second holds the lock now, and is dropped before it learns of it.
    drop(unwound);
    assert!(waiting.granted());
}

#[test]
fn a_savepoint_gives_back_later_locks_and_earlier_strengths() {
    let world = World::new();
    let (first, second) = (world.session(), world.session());
    assert!(first.row("a", RowLock::KeyShare).granted());
    let mark = first.with(|locks| locks.mark());
    assert!(first.row("a", RowLock::Update).granted());
    assert!(first.row("b", RowLock::Update).granted());
    assert!(first.table(TableLock::Exclusive).granted());
    let mut on_a = second.row("a", RowLock::NoKeyUpdate);
    assert!(on_a.waits());
    first.with(|locks| locks.rollback_to(mark));
    assert!(on_a.granted());
    assert!(second.row("b", RowLock::Update).granted());
    assert!(second.table(TableLock::Exclusive).granted());
    let mut deleting = second.row("a", RowLock::Update);
    assert!(deleting.waits(), "the key is still shared");
    // What was forgotten with the savepoint is asked for anew.
    assert!(first.row_or("b", RowLock::Share, LockWait::NoWait).poll());
    first.end();
    assert!(deleting.granted());
}

#[test]
fn locks_end_with_their_term() {
    let world = World::new();
    let (first, second) = (world.session(), world.session());
    assert!(first.row("a", RowLock::Share).granted());
    let mut waiting = second.row("a", RowLock::Update);
    assert!(waiting.waits());
    world.table.clear();
    assert_eq!(waiting.error().state(), SqlState::SERIALIZATION_FAILURE);
    assert!(world.table.is_empty());
    let closed = world.session().row("a", RowLock::Share).error();
    assert_eq!(closed.state(), SqlState::SERIALIZATION_FAILURE);

    world.table.begin_term(Term(2));
    let late = first.row("b", RowLock::Share).error();
    assert_eq!(late.state(), SqlState::SERIALIZATION_FAILURE);
    let fresh = world.session();
    assert!(fresh.row("a", RowLock::Update).granted());
    assert_eq!(fresh.with(|locks| locks.term()), Some(Term(2)));
    // What the old term's transactions give up is not what the new one's hold.
    first.end();
    assert!(world.session().row("a", RowLock::KeyShare).waits());
}

#[test]
fn a_transaction_locks_under_the_term_it_read_under() {
    let world = World::new();
    let session = world.session();
    session.with(|locks| locks.bind(Term(1))).unwrap();
    world.table.begin_term(Term(2));
    let error = session.row("a", RowLock::Share).error();
    assert_eq!(error.state(), SqlState::SERIALIZATION_FAILURE);
    assert!(session.with(|locks| locks.bind(Term(2))).is_err());
}

/// Random requests, grants, cancels and savepoints by many sessions: at the end nothing is left,
/// nobody starves, and no two hold what excludes one another.
#[test]
fn random_histories_leave_nothing_behind() {
    const KEYS: [&str; 4] = ["a", "b", "c", "d"];
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % below
    };
    let world = World::new();
    let (mut deadlocks, mut waits) = (0, 0);
    for _round in 0..300 {
        let mut live: Vec<(Session, Option<Pending>)> =
            (0..6).map(|_| (world.session(), None)).collect();
        for _step in 0..60 {
            let (session, pending) = &mut live[random(6)];
            if let Some(waiting) = pending {
                if random(8) == 0 {
                    session.interrupts.raise(Interrupt::Cancel);
                }
                if waiting.poll() {
                    session.interrupts.clear_statement();
                    *pending = None;
                }
                continue;
            }
            match random(10) {
                0 => session.with(TxnLocks::release_all),
                1 => {
                    let mark = session.with(|locks| locks.mark());
                    session.with(|locks| locks.rollback_to(mark / 2));
                }
                _ => {
                    let mut asked = session.row(KEYS[random(4)], ROWS[random(4)]);
                    if asked.waits() {
                        waits += 1;
                        *pending = Some(asked);
                    } else if let Some(Err(error)) = asked.result {
                        assert_eq!(error.state(), SqlState::DEADLOCK_DETECTED);
                        deadlocks += 1;
                    }
                }
            }
            assert_compatible(&world.table);
        }
        // Without new requests everyone is served in the end: there is no undetected circle.
        while !live.is_empty() {
            let before = live.len();
            live.retain_mut(|(session, pending)| {
                if pending.as_mut().is_some_and(Pending::waits) {
                    return true;
                }
                session.with(TxnLocks::release_all);
                false
            });
            assert!(live.len() < before, "{} wait for ever", live.len());
        }
        assert!(world.table.is_empty());
        assert_eq!(world.table.rows.total(), 0);
        assert!(world.table.waits.lock().is_empty());
    }
    assert!(deadlocks > 100 && waits > 1_000, "{deadlocks}, {waits}");
}

fn assert_compatible(table: &LockTable) {
    for shard in &table.shards {
        for lock in shard.lock().locks.values() {
            lock.assert_compatible();
        }
    }
}

/// Locks rows `from` to `to` for update, and says how many locks there are.
fn lock_rows(world: &World, session: &Session, from: u32, to: u32) -> usize {
    for number in from..to {
        let locked = session.start(move |locks| {
            let key = number.to_be_bytes();
            locks.row(TREE, &key, RowLock::Update, LockWait::Block)
        });
        assert!(matches!(locked.result, Some(Ok(_))), "row {number}");
    }
    world.table.len()
}

fn try_row(session: &Session, number: u32, strength: RowLock) -> Option<Result<Acquired>> {
    let asked = session.start(move |locks| {
        let key = number.to_be_bytes();
        locks.row(TREE, &key, strength, LockWait::Skip)
    });
    asked.result
}

#[test]
fn many_row_locks_become_few() {
    let world = World::new();
    let (first, second, third) = (world.session(), world.session(), world.session());
    // Two rows in the middle are others', one of them weakly.
    let skipped = Some(Ok(Acquired::Skipped));
    let granted = Some(Ok(Acquired::Granted));
    assert_eq!(try_row(&second, 1_500, RowLock::Update), granted);
    assert_eq!(try_row(&third, 1_700, RowLock::KeyShare), granted);
    for (from, to) in [(1_000, 1_500), (1_501, 1_700), (1_701, 2_000)] {
        let locks = lock_rows(&world, &first, from, to);
        assert!(locks < 2 * ROW_LOCKS_MAX, "{locks} locks");
    }
    // All of its rows are locked, and what others have stays theirs.
    for number in [1_000, 1_499, 1_501, 1_699, 1_701, 1_999] {
        assert_eq!(try_row(&second, number, RowLock::KeyShare), skipped);
    }
    assert_eq!(
        try_row(&second, 1_500, RowLock::Update),
        Some(Ok(Acquired::Held))
    );
    assert_eq!(
        try_row(&third, 1_700, RowLock::KeyShare),
        Some(Ok(Acquired::Held))
    );
    assert_eq!(try_row(&first, 1_500, RowLock::KeyShare), skipped);
    assert_eq!(
        try_row(&first, 1_200, RowLock::Share),
        Some(Ok(Acquired::Held))
    );
    assert_eq!(try_row(&second, 999, RowLock::Update), granted);
    assert_eq!(try_row(&second, 2_000, RowLock::Update), granted);
    let refused = second.start(|locks| {
        let key = 1_100u32.to_be_bytes();
        locks.row(TREE, &key, RowLock::Update, LockWait::NoWait)
    });
    let message = refused.result.expect("it ends").expect_err("locked");
    let expected = "could not obtain lock on row in relation \"tree 16384\"";
    assert_eq!(message.message(), expected);
    // Who waits gets its row at the end, and no more than that.
    let mut waits = third.start(|locks| {
        let key = 1_100u32.to_be_bytes();
        locks.row(TREE, &key, RowLock::NoKeyUpdate, LockWait::Block)
    });
    assert!(waits.waits());
    first.end();
    assert!(waits.granted());
    assert_eq!(try_row(&second, 1_100, RowLock::Share), skipped);
    assert_eq!(try_row(&second, 1_101, RowLock::Update), granted);
    second.end();
    third.end();
    assert!(world.table.is_empty());
}

#[test]
fn who_has_ranges_makes_them_longer_before_there_are_many_row_locks_again() {
    let world = World::new();
    let (first, second) = (world.session(), world.session());
    lock_rows(&world, &first, 1_000, 1_000 + ROW_LOCKS_MAX as u32);
    for number in 1_000 + ROW_LOCKS_MAX as u32..1_500 {
        let locks = lock_rows(&world, &first, number, number + 1);
        assert!(locks <= ROW_LOCKS_MAX / 2, "{locks} locks at row {number}");
    }
    // Rows that others lock among them stay row locks of its own beside further ranges.
    let granted = Some(Ok(Acquired::Granted));
    assert_eq!(try_row(&second, 1_520, RowLock::Update), granted);
    lock_rows(&world, &first, 1_500, 1_520);
    lock_rows(&world, &first, 1_521, 1_600);
    let (held, skipped) = (Some(Ok(Acquired::Held)), Some(Ok(Acquired::Skipped)));
    assert_eq!(try_row(&second, 1_520, RowLock::Update), held);
    for number in [1_000, 1_499, 1_519, 1_521, 1_599] {
        assert_eq!(try_row(&second, number, RowLock::KeyShare), skipped);
    }
    assert_eq!(try_row(&second, 1_600, RowLock::Update), granted);
    first.end();
    second.end();
    assert!(world.table.is_empty());
}

#[test]
fn keys_that_grow_need_no_row_locks_while_nobody_else_has_any() {
    let world = World::new();
    let (first, second, third) = (world.session(), world.session(), world.session());
    let (granted, held) = (Some(Ok(Acquired::Granted)), Some(Ok(Acquired::Held)));
    let skipped = Some(Ok(Acquired::Skipped));
    let from = 1_000 + ROW_LOCKS_MAX as u32;
    let few = lock_rows(&world, &first, 1_000, from);
    assert_eq!(world.table.rows.total(), 0);
    for number in from..1_500 {
        assert_eq!(try_row(&first, number, RowLock::Update), held);
        assert_eq!(world.table.len(), few);
        assert_eq!(try_row(&second, number, RowLock::KeyShare), skipped);
        assert_eq!(world.table.rows.total(), 0);
    }
    // What others have ahead is not run over, be it a row or a range.
    assert_eq!(try_row(&second, 1_600, RowLock::KeyShare), granted);
    assert_eq!(try_row(&first, 1_700, RowLock::Update), granted);
    assert_eq!(try_row(&second, 1_600, RowLock::KeyShare), held);
    first.with(|locks| locks.rollback_to(locks.mark() - 1));
    second.end();
    assert_eq!(world.table.rows.total(), 0);
    lock_rows(&world, &third, 3_000, 3_000 + ROW_LOCKS_MAX as u32);
    assert_eq!(try_row(&first, 5_000, RowLock::Update), granted);
    assert_eq!(try_row(&third, 3_001, RowLock::Update), held);
    assert_eq!(try_row(&third, 4_000, RowLock::Update), granted);
    assert_eq!(try_row(&first, 4_000, RowLock::KeyShare), skipped);
    assert_eq!(try_row(&first, 3_001, RowLock::KeyShare), skipped);
    // A weaker lock in the range is in it, a stronger one does not make it longer.
    assert_eq!(try_row(&first, 1_499, RowLock::Share), held);
    first.end();
    third.end();
    assert!(world.table.is_empty());
    assert_eq!(world.table.rows.total(), 0);
}

#[test]
fn a_deadlock_over_a_range_is_found() {
    let world = World::new();
    let (first, second) = (world.session(), world.session());
    assert_eq!(
        try_row(&second, 1, RowLock::Update),
        Some(Ok(Acquired::Granted))
    );
    lock_rows(&world, &first, 1_000, 1_100);
    let mut waits = first.start(|locks| {
        let key = 1u32.to_be_bytes();
        locks.row(TREE, &key, RowLock::Update, LockWait::Block)
    });
    assert!(waits.waits());
    let mut closes = second.start(|locks| {
        let key = 1_010u32.to_be_bytes();
        locks.row(TREE, &key, RowLock::Update, LockWait::Block)
    });
    assert_eq!(closes.error().state(), SqlState::DEADLOCK_DETECTED);
    second.end();
    assert!(waits.granted());
    first.end();
    assert!(world.table.is_empty());
}

#[test]
fn a_savepoint_gives_up_the_ranges_made_after_it() {
    let world = World::new();
    let (first, second) = (world.session(), world.session());
    lock_rows(&world, &first, 0, 10);
    let mark = first.with(|locks| locks.mark());
    for number in 0..200u32 {
        let locked = first.start(move |locks| {
            let key = number.to_be_bytes();
            locks.row(TreeId(16_385), &key, RowLock::Update, LockWait::Block)
        });
        assert!(matches!(locked.result, Some(Ok(_))), "row {number}");
    }
    assert!(world.table.len() < 2 * ROW_LOCKS_MAX);
    first.with(|locks| locks.rollback_to(mark));
    for number in [0u32, 100, 199] {
        let locked = second.start(move |locks| {
            let key = number.to_be_bytes();
            locks.row(TreeId(16_385), &key, RowLock::Update, LockWait::NoWait)
        });
        assert!(
            matches!(locked.result, Some(Ok(Acquired::Granted))),
            "row {number}"
        );
    }
    assert_eq!(
        try_row(&second, 9, RowLock::KeyShare),
        Some(Ok(Acquired::Skipped))
    );
    // And after the rollback there may be many again.
    lock_rows(&world, &first, 10, 500);
    assert!(
        world.table.len() < 2 * ROW_LOCKS_MAX,
        "{}",
        world.table.len()
    );
    first.end();
    second.end();
    assert!(world.table.is_empty());
}

#[test]
fn many_locks_are_given_up_in_turns() {
    given_up_in_turns(TxnLocks::release_all);
    given_up_in_turns(|locks| locks.rollback_to(0));
    given_up_in_turns(|locks| {
        let empty = TxnLocks::new(locks.table.clone(), Party::Session(SessionId(1)));
        drop(std::mem::replace(locks, empty));
    });
}

fn given_up_in_turns(give_up: fn(&mut TxnLocks)) {
    const TREES: u64 = (3 * WORK_PER_TURN / GIVE_UP_WORK) as u64;
    let world = World::new();
    let (first, second) = (world.session(), world.session());
    let table = |session: &Session, number: u64| {
        let tree = TreeId(TREE.0 + number);
        session.start(move |locks| locks.table(tree, TableLock::AccessExclusive, LockWait::Block))
    };
    assert!((0..TREES).all(|number| table(&first, number).granted()));
    let mut release = first.start(move |locks| {
        give_up(locks);
        Ok(Acquired::Held)
    });
    assert!(release.waits(), "others have their turn");
    assert!(table(&second, TREES - 1).granted(), "the newest is free");
    let mut oldest = table(&second, 0);
    assert!(oldest.waits());
    // What is committed ends, whoever wants to cancel it.
    first.interrupts.raise(Interrupt::Cancel);
    while release.waits() {}
    assert!(oldest.granted());
    second.end();
    assert!(world.table.is_empty());
}
