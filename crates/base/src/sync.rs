//! Latches and events: what threads of one node share, and nothing else does.
//!
//! A *latch* ([`Mutex`], [`RwLock`]) guards memory for microseconds. No latch may be held across a
//! wait, because whoever waits gives its thread to others that may want the same latch. Every
//! guard is therefore counted per thread, and [`crate::coro::wait`] asserts that the count is 0.
//!
//! An [`Event`] wakes tasks: it remembers nothing but who waits, so the state that is waited for
//! is checked after registering.
//!
//! This module is the shim behind which shared structures run under a model checker: whatever takes
//! its latches, events and atomics from here can be compiled with the checker's instead
//! (`base/src/model.rs`, and the modules of that name in other crates).

use std::cell::Cell;
use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

// Not `crate::`: a model checker's may be beside this very file (`model.rs`).
use super::threads;
pub use super::threads::atomic;

use atomic::{AtomicU64, Ordering};

thread_local! {
    static LATCHES: Cell<usize> = const { Cell::new(0) };
}

/// Latches that this thread holds now.
pub fn latches_held() -> usize {
    LATCHES.with(Cell::get)
}

/// Counts one latch of this thread for as long as it lives.
#[derive(Debug)]
struct Held;

impl Held {
    fn new() -> Held {
        LATCHES.with(|count| count.set(count.get() + 1));
        Held
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        LATCHES.with(|count| count.set(count.get() - 1));
    }
}

macro_rules! guard {
    ($(#[$doc:meta])* $name:ident, $inner:ident) => {
        $(#[$doc])*
        pub struct $name<'a, T: ?Sized> {
            inner: threads::$inner<'a, T>,
            _held: Held,
        }

        impl<T: ?Sized> Deref for $name<'_, T> {
            type Target = T;
            fn deref(&self) -> &T {
                &self.inner
            }
        }
    };
}

guard! {
    /// Exclusive access to what a [`Mutex`] guards.
    MutexGuard, MutexGuard
}
guard! {
    /// Shared access to what an [`RwLock`] guards.
    ReadGuard, RwLockReadGuard
}
guard! {
    /// Exclusive access to what an [`RwLock`] guards.
    WriteGuard, RwLockWriteGuard
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

impl<T: ?Sized> DerefMut for WriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

/// A latch with one holder.
#[derive(Debug, Default)]
pub struct Mutex<T: ?Sized>(threads::Mutex<T>);

impl<T> Mutex<T> {
    /// A free latch around `value`.
    pub const fn new(value: T) -> Mutex<T> {
        Mutex(threads::Mutex::new(value))
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Blocks this thread until the latch is free. Held for microseconds only, never across a wait.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard {
            inner: self.0.lock(),
            _held: Held::new(),
        }
    }

    /// The latch if it is free now.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        let inner = self.0.try_lock()?;
        Some(MutexGuard {
            inner,
            _held: Held::new(),
        })
    }
}

/// A latch with one writer or many readers.
#[derive(Debug, Default)]
pub struct RwLock<T: ?Sized>(threads::RwLock<T>);

impl<T> RwLock<T> {
    /// A free latch around `value`.
    pub const fn new(value: T) -> RwLock<T> {
        RwLock(threads::RwLock::new(value))
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Blocks this thread until no writer holds the latch.
    pub fn read(&self) -> ReadGuard<'_, T> {
        ReadGuard {
            inner: self.0.read(),
            _held: Held::new(),
        }
    }

    /// Blocks this thread until nobody holds the latch.
    pub fn write(&self) -> WriteGuard<'_, T> {
        WriteGuard {
            inner: self.0.write(),
            _held: Held::new(),
        }
    }

    /// The latch for writing, if nobody holds it now.
    pub fn try_write(&self) -> Option<WriteGuard<'_, T>> {
        let inner = self.0.try_write()?;
        Some(WriteGuard {
            inner,
            _held: Held::new(),
        })
    }
}

/// Wakes every task that waits, each time it is notified.
///
/// ```
/// # use base::sync::Event;
/// # fn ready() -> bool { true }
/// # async fn example(event: &Event) {
/// event.until(|| ready().then_some(())).await;
/// # }
/// ```
#[derive(Debug, Default)]
pub struct Event {
    waiters: Mutex<Vec<(u64, Waker)>>,
    next_id: AtomicU64,
}

impl Event {
    /// An event that nobody waits for.
    pub const fn new() -> Event {
        Event {
            waiters: Mutex::new(Vec::new()),
            next_id: AtomicU64::new(0),
        }
    }

    /// Wakes everyone who waits now.
    pub fn notify_all(&self) {
        let waiters = std::mem::take(&mut *self.waiters.lock());
        for (_, waker) in waiters {
            waker.wake();
        }
    }

    /// Waits until `condition` gives a value. It is tried once at once, and again after each
    /// notification; it runs with no latch of the event held.
    pub fn until<T, F: FnMut() -> Option<T>>(&self, condition: F) -> Until<'_, F> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        Until {
            event: self,
            condition,
            id,
        }
    }

    fn register(&self, id: u64, waker: &Waker) {
        let mut waiters = self.waiters.lock();
        match waiters.iter_mut().find(|(other, _)| *other == id) {
            Some((_, old)) => old.clone_from(waker),
            None => waiters.push((id, waker.clone())),
        }
    }

    fn forget(&self, id: u64) {
        self.waiters.lock().retain(|(other, _)| *other != id);
    }
}

/// The future of [`Event::until`].
#[derive(Debug)]
pub struct Until<'a, F> {
    event: &'a Event,
    condition: F,
    id: u64,
}

impl<F> Unpin for Until<'_, F> {}

impl<T, F: FnMut() -> Option<T>> Future for Until<'_, F> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        if let Some(value) = (self.condition)() {
            return Poll::Ready(value);
        }
        self.event.register(self.id, cx.waker());
        match (self.condition)() {
            Some(value) => Poll::Ready(value),
            None => Poll::Pending,
        }
    }
}

impl<F> Drop for Until<'_, F> {
    fn drop(&mut self) {
        self.event.forget(self.id);
    }
}
