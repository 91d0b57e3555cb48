//! In the place of `base::threads`: shuttle's primitives, each of whose uses is a point at which
//! another thread may go on. They have the names and the manners of the real ones. And how models
//! are run.

use std::ops::{Deref, DerefMut};

pub use shuttle::sync::atomic;

/// Orders of steps that each model is run in.
const ORDERS: usize = 3_000;

/// Preemptions per run, for the half of the orders in which they are few.
const PREEMPTIONS: usize = 3;

/// Half the orders are drawn evenly, half have few preemptions, which finds rare ones sooner.
pub(crate) fn check(model: impl Fn() + Send + Sync + Clone + 'static) {
    shuttle::check_random(model.clone(), ORDERS / 2);
    shuttle::check_pct(model, ORDERS / 2, PREEMPTIONS);
}

/// A lock with one holder.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T: ?Sized>(shuttle::sync::Mutex<T>);

/// It, held.
pub(crate) type MutexGuard<'a, T> = shuttle::sync::MutexGuard<'a, T>;

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Mutex<T> {
        Mutex(shuttle::sync::Mutex::new(value))
    }
}

impl<T: ?Sized> Mutex<T> {
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().expect("no thread panics with it")
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().ok()
    }
}

/// A lock with one writer or many readers.
#[derive(Debug, Default)]
pub(crate) struct RwLock<T: ?Sized>(shuttle::sync::RwLock<T>);

/// It, held by a reader.
pub(crate) struct RwLockReadGuard<'a, T: ?Sized>(shuttle::sync::RwLockReadGuard<'a, T>);

/// It, held by a writer.
pub(crate) struct RwLockWriteGuard<'a, T: ?Sized>(shuttle::sync::RwLockWriteGuard<'a, T>);

impl<T> RwLock<T> {
    pub(crate) const fn new(value: T) -> RwLock<T> {
        RwLock(shuttle::sync::RwLock::new(value))
    }
}

impl<T: ?Sized> RwLock<T> {
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
        RwLockReadGuard(self.0.read().expect("no thread panics with it"))
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
        RwLockWriteGuard(self.0.write().expect("no thread panics with it"))
    }

    pub(crate) fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        self.0.try_write().ok().map(RwLockWriteGuard)
    }
}

impl<T: ?Sized> Deref for RwLockReadGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: ?Sized> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
