//! The very source of [`crate::sync`] under a model checker, which runs a few threads in thousands
//! of orders of their steps.
//!
//! Steps of different threads are interleaved, never reordered: what a weaker memory order than
//! the sequentially consistent one may show is left to the stress of real threads
//! (`sync_stress.rs`).

#[allow(dead_code, clippy::duplicate_mod)] // Not all of it is used by every model.
mod threads;

#[allow(dead_code, clippy::duplicate_mod)]
#[path = "sync.rs"]
mod sync;

use std::sync::Arc;

use sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use sync::{Event, Mutex, RwLock};

use shuttle::future::block_on;
use shuttle::thread;
use threads::check;

#[test]
fn whoever_waits_for_an_event_is_woken() {
    check(|| {
        let shared = Arc::new((Event::new(), AtomicUsize::new(0)));
        let waiters = [1, 2, 2].map(|wanted| {
            let shared = shared.clone();
            thread::spawn(move || {
                let (event, number) = &*shared;
                let reached = || (number.load(Ordering::SeqCst) >= wanted).then_some(());
                block_on(event.until(reached));
            })
        });
        for _ in 0..2 {
            shared.1.fetch_add(1, Ordering::SeqCst);
            shared.0.notify_all();
        }
        for one in waiters {
            one.join().unwrap();
        }
    });
}

/// The claim to write a log, a turn to make a segment: a flag that one of many takes.
#[test]
fn a_flag_is_handed_to_one_at_a_time_and_never_lost() {
    check(|| {
        let shared = Arc::new((Event::new(), AtomicBool::new(false), Mutex::new((0, false))));
        let takers = [(); 3].map(|()| {
            let shared = shared.clone();
            thread::spawn(move || {
                let (free, taken, inside) = &*shared;
                let turn = || (!taken.swap(true, Ordering::AcqRel)).then_some(());
                block_on(free.until(turn));
                assert!(
                    !std::mem::replace(&mut inside.lock().1, true),
                    "two at once"
                );
                thread::yield_now();
                let mut inside = inside.lock();
                *inside = (inside.0 + 1, false);
                drop(inside);
                taken.store(false, Ordering::Release);
                free.notify_all();
            })
        });
        for one in takers {
            one.join().unwrap();
        }
        assert_eq!(*shared.2.lock(), (3, false));
    });
}

/// Whoever gives up waiting takes nothing with it.
#[test]
fn who_leaves_an_event_takes_nobodys_wake_up() {
    check(|| {
        let shared = Arc::new((Event::new(), AtomicBool::new(false)));
        let leaver = shared.clone();
        let leaver = thread::spawn(move || {
            let (event, flag) = &*leaver;
            let mut waits =
                std::pin::pin!(event.until(|| flag.load(Ordering::SeqCst).then_some(())));
            let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
            let _ = std::future::Future::poll(waits.as_mut(), &mut cx);
        });
        let stayer = shared.clone();
        let stayer = thread::spawn(move || {
            let (event, flag) = &*stayer;
            block_on(event.until(|| flag.load(Ordering::SeqCst).then_some(())));
        });
        shared.1.store(true, Ordering::SeqCst);
        shared.0.notify_all();
        leaver.join().unwrap();
        stayer.join().unwrap();
    });
}

#[test]
fn latches_keep_others_out() {
    check(|| {
        let shared = Arc::new((RwLock::new([0, 0]), Mutex::new(0)));
        let writers = [1, 2].map(|by| {
            let shared = shared.clone();
            thread::spawn(move || {
                let Some(mut pair) = shared.0.try_write() else {
                    return;
                };
                pair[0] += by;
                thread::yield_now();
                pair[1] += by;
                *shared.1.lock() += by;
            })
        });
        let pair = *shared.0.read();
        assert_eq!(pair[0], pair[1]);
        for one in writers {
            one.join().unwrap();
        }
        assert_eq!(shared.0.read()[0], *shared.1.lock());
    });
}

/// An event that forgets to look again after it has noted who waits: the checker finds it.
#[test]
#[should_panic(expected = "deadlock")]
fn an_event_that_looks_only_once_is_found_out() {
    check(|| {
        let shared = Arc::new((Mutex::new(Vec::new()), AtomicBool::new(false)));
        let waits = shared.clone();
        let waiter = thread::spawn(move || {
            block_on(std::future::poll_fn(|cx| {
                if waits.1.load(Ordering::SeqCst) {
                    return std::task::Poll::Ready(());
                }
                waits.0.lock().push(cx.waker().clone());
                std::task::Poll::Pending
            }));
        });
        shared.1.store(true, Ordering::SeqCst);
        let wakers = std::mem::take(&mut *shared.0.lock());
        wakers.into_iter().for_each(std::task::Waker::wake);
        waiter.join().unwrap();
    });
}
