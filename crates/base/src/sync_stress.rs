//! [`crate::sync`] on real threads.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use crate::sync::{latches_held, Event, Mutex, RwLock};

const THREADS: u64 = 4;
const ROUNDS: u64 = 20_000;

/// After so many naps, some of them cut short, a waiter counts as forgotten.
const NAPS_MAX: usize = 1_000;
const NAP: Duration = Duration::from_millis(20);

struct ThreadWaker(Thread, AtomicBool);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.1.store(true, Ordering::Release);
        self.0.unpark();
    }
}

/// Runs a future, asleep until it is woken.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let woken = Arc::new(ThreadWaker(thread::current(), AtomicBool::new(false)));
    let waker = Waker::from(woken.clone());
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return value;
        }
        let mut naps = 0;
        while !woken.1.swap(false, Ordering::AcqRel) {
            assert!(naps < NAPS_MAX, "nobody woke a waiter");
            naps += 1;
            thread::park_timeout(NAP);
        }
    }
}

#[test]
fn guards_are_counted_while_they_live() {
    let mutex = Mutex::new(1);
    let lock = RwLock::new(2);
    assert_eq!(latches_held(), 0);
    let held = (mutex.lock(), lock.read());
    assert_eq!(latches_held(), 2);
    drop(held);
    assert_eq!(latches_held(), 0);
}

/// A ring of threads, each of which waits for the one before: one lost wake-up and all stand still.
#[test]
fn a_turn_goes_around_without_getting_lost() {
    let (event, turn) = (Event::new(), AtomicU64::new(0));
    let go_around = &|number: u64| {
        for round in 0..ROUNDS {
            let wanted = round * THREADS + number;
            let is_mine = || (turn.load(Ordering::Acquire) == wanted).then_some(());
            block_on(event.until(is_mine));
            turn.store(wanted + 1, Ordering::Release);
            event.notify_all();
        }
    };
    thread::scope(|scope| {
        for number in 0..THREADS {
            scope.spawn(move || go_around(number));
        }
    });
    assert_eq!(turn.load(Ordering::Acquire), ROUNDS * THREADS);
}

/// Everybody wants the one flag, and what it guards is only ever changed by who has it.
#[test]
fn a_flag_has_one_holder() {
    let (free, taken) = (Event::new(), AtomicBool::new(false));
    let [one, other] = [AtomicU64::new(0), AtomicU64::new(0)];
    let work = || {
        for _ in 0..ROUNDS {
            let turn = || (!taken.swap(true, Ordering::AcqRel)).then_some(());
            block_on(free.until(turn));
            let seen = one.load(Ordering::Relaxed);
            assert_eq!(seen, other.load(Ordering::Relaxed), "somebody is inside");
            one.store(seen + 1, Ordering::Relaxed);
            other.store(seen + 1, Ordering::Relaxed);
            taken.store(false, Ordering::Release);
            free.notify_all();
        }
    };
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(work);
        }
    });
    assert_eq!(one.load(Ordering::Relaxed), ROUNDS * THREADS);
}
