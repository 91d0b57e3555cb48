//! The lock table under real threads: each runs its coroutines to their end and sleeps only until
//! it is woken, so a wake-up that gets lost shows.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};
use std::thread::{self, Thread};

use base::coro::Interrupts;

use super::tests::{Clock, TestEnv};
use base::TxnId;

use super::*;

const THREADS: usize = 4;
const ROUNDS: usize = 20_000;
const KEYS: usize = 5;
/// Naps of 20 ms, some cut short, after which a waiter counts as forgotten.
const NAPS_MAX: usize = 1_000;
const TREE: TreeId = TreeId(16_384);

/// Wakes one thread, and remembers that it did.
struct ThreadWaker {
    thread: Thread,
    woken: AtomicBool,
}

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
        self.thread.unpark();
    }
}

fn block_on<T: 'static>(body: impl FnOnce() -> T + 'static) -> T {
    let waker = Arc::new(ThreadWaker {
        thread: thread::current(),
        woken: AtomicBool::new(false),
    });
    let mut run = pin!(coro::run(Arc::new(Interrupts::default()), body));
    let task = Waker::from(waker.clone());
    let mut cx = Context::from_waker(&task);
    loop {
        if let Poll::Ready(value) = run.as_mut().poll(&mut cx) {
            return value;
        }
        let mut naps = 0;
        while !waker.woken.swap(false, Ordering::SeqCst) {
            assert!(naps < NAPS_MAX, "nobody woke a waiter");
            naps += 1;
            thread::park_timeout(Duration::from_millis(20));
        }
    }
}

struct Shared {
    table: Arc<LockTable>,
    /// For each key, who is inside: whole writers in the upper half, readers in the lower.
    inside: [AtomicUsize; KEYS],
    granted: AtomicUsize,
    victims: AtomicUsize,
}

const WRITER: usize = 1 << 32;

/// Locks two keys in any order and looks whether it is alone with them.
fn round(shared: &Shared, owner: TxnId, random: u64) -> Result<()> {
    let mut locks = TxnLocks::new(shared.table.clone(), Party::Transaction(owner));
    let mut held = Vec::new();
    for step in 0..2 {
        let bits = (random >> (16 * step)) as usize;
        let key = bits % KEYS;
        let is_writer = bits >> 8 & 3 == 0;
        let strength = match is_writer {
            true => RowLock::Update,
            false => RowLock::Share,
        };
        if held.iter().any(|(other, _)| *other == key) {
            continue;
        }
        let acquired = locks.row(TREE, &[key as u8], strength, LockWait::Block);
        if let Err(error) = acquired {
            leave(shared, &held);
            return Err(error);
        }
        let weight = if is_writer { WRITER } else { 1 };
        let before = shared.inside[key].fetch_add(weight, Ordering::SeqCst);
        let is_alone = if is_writer {
            before == 0
        } else {
            before < WRITER
        };
        assert!(is_alone, "{before:#x} inside key {key}");
        held.push((key, weight));
        if random >> 40 & 3 == 0 {
            coro::yield_now()?;
        }
    }
    leave(shared, &held);
    shared.granted.fetch_add(1, Ordering::SeqCst);
    Ok(())
}

fn leave(shared: &Shared, held: &[(usize, usize)]) {
    for (key, weight) in held {
        shared.inside[*key].fetch_sub(*weight, Ordering::SeqCst);
    }
}

#[test]
fn threads_exclude_one_another_and_lose_no_wake_up() {
    let table = LockTable::new(Arc::new(TestEnv(Arc::new(Clock::default()))));
    table.begin_term(Term(1));
    let shared = Arc::new(Shared {
        table: Arc::new(table),
        inside: Default::default(),
        granted: AtomicUsize::new(0),
        victims: AtomicUsize::new(0),
    });
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let shared = shared.clone();
            scope.spawn(move || {
                let mut random = (thread as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                for number in 0..ROUNDS {
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    let owner = TxnId((number * THREADS + thread) as u64 + 1);
                    let inner = shared.clone();
                    let result = block_on(move || round(&inner, owner, random));
                    if let Err(error) = result {
                        assert_eq!(error.state(), SqlState::DEADLOCK_DETECTED);
                        shared.victims.fetch_add(1, Ordering::SeqCst);
                    }
                }
            });
        }
    });
    let granted = shared.granted.load(Ordering::SeqCst);
    let victims = shared.victims.load(Ordering::SeqCst);
    assert_eq!(granted + victims, THREADS * ROUNDS);
    assert!(granted > victims, "{granted} granted, {victims} victims");
    assert!(shared.table.is_empty());
    assert!(shared.table.waits.lock().is_empty());
}
