//! Collections that may be large, and give way while they are dropped.
//!
//! To drop a map of a hundred thousand rows takes a thread tens of milliseconds, in which the other
//! sessions of its reactor stand still. A [`Large`] collection is dropped item by item, and what that
//! takes counts as work ([`coro::work_uninterrupted`]): so whoever keeps rows need not think of how
//! they go, whichever way is left, by `?` or at the end.
//!
//! ```
//! use base::large::Large;
//!
//! let mut rows = Large::<Vec<String>>::default();
//! rows.push("all that a vector can".into());
//! assert_eq!(rows.len(), 1);
//! drop(rows); // in turns, inside a coroutine
//! ```
//!
//! # What it leaves out
//! An item is dropped at once, however large it is. So is everything outside of coroutines, under a
//! latch, and while a panic unwinds or a statement that was not at its end is dropped: nobody can give
//! way there. What ends a session in order therefore drops it in a coroutine.

use std::ops::{Deref, DerefMut};

use crate::coro;

/// What dropping an item counts for, in the units of [`coro::work`]: its own memory and that of two
/// or three values.
pub const DROP_WORK: usize = 128;

/// A collection that may be large.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Large<C: Default + IntoIterator>(C);

impl<C: Default + IntoIterator> Large<C> {
    /// Takes the items out, and leaves none.
    pub fn take(&mut self) -> C {
        std::mem::take(&mut self.0)
    }

    /// Drops all items, and the memory that they lay in.
    pub fn clear(&mut self) {
        self.take().into_iter().for_each(dropped);
    }
}

fn dropped<T>(item: T) {
    drop(item);
    coro::work_uninterrupted(DROP_WORK);
}

impl<C: Default + IntoIterator> Drop for Large<C> {
    fn drop(&mut self) {
        self.clear();
    }
}

impl<C: Default + IntoIterator> Deref for Large<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.0
    }
}

impl<C: Default + IntoIterator> DerefMut for Large<C> {
    fn deref_mut(&mut self) -> &mut C {
        &mut self.0
    }
}

impl<C: Default + IntoIterator> From<C> for Large<C> {
    fn from(items: C) -> Large<C> {
        Large(items)
    }
}

impl<C: Default + IntoIterator> IntoIterator for Large<C> {
    type Item = C::Item;
    type IntoIter = Items<C::IntoIter>;

    fn into_iter(mut self) -> Items<C::IntoIter> {
        Items(self.take().into_iter())
    }
}

impl<'a, C: Default + IntoIterator> IntoIterator for &'a Large<C>
where
    &'a C: IntoIterator,
{
    type Item = <&'a C as IntoIterator>::Item;
    type IntoIter = <&'a C as IntoIterator>::IntoIter;

    fn into_iter(self) -> Self::IntoIter {
        (&self.0).into_iter()
    }
}

/// The items of a collection, one after the other. Those that nobody takes go as the collection does.
#[derive(Debug)]
pub struct Items<I: Iterator>(I);

impl<I: Iterator> Iterator for Items<I> {
    type Item = I::Item;

    fn next(&mut self) -> Option<I::Item> {
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<I: Iterator> Drop for Items<I> {
    fn drop(&mut self) {
        self.0.by_ref().for_each(dropped);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::WORK_PER_TURN;
    use crate::sync::Mutex;
    use std::future::Future;
    use std::pin::Pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};

    /// Items that take four turns to drop.
    const MANY: usize = 4 * WORK_PER_TURN / DROP_WORK;

    fn rows() -> Large<Vec<Vec<u8>>> {
        Large::from(vec![vec![7]; MANY])
    }

    /// How often a statement gives way.
    fn turns(statement: impl FnOnce() + 'static) -> usize {
        let mut run = coro::run(Arc::default(), statement);
        let mut cx = Context::from_waker(Waker::noop());
        let mut turns = 0;
        while Pin::new(&mut run).poll(&mut cx) == Poll::Pending {
            turns += 1;
        }
        turns
    }

    #[test]
    fn what_is_large_is_dropped_in_turns() {
        assert_eq!(turns(|| drop(rows())), 4);
        assert_eq!(turns(|| drop(rows().into_iter())), 4);
        let cleared = || {
            let mut rows = rows();
            rows.clear();
            assert!(rows.take().is_empty());
        };
        assert_eq!(turns(cleared), 4);
        drop(rows());
    }

    #[test]
    fn where_nobody_can_give_way_it_is_dropped_at_once() {
        let latched = || {
            let latch = Mutex::new(());
            let _held = latch.lock();
            drop(rows());
        };
        assert_eq!(turns(latched), 0);
        let panicked = || {
            let told: Result<(), _> = coro::catch_panic(|| {
                let _rows = rows();
                panic!("with rows");
            });
            assert_eq!(told, Err("with rows".into()));
        };
        assert_eq!(turns(panicked), 0);
    }

    #[test]
    fn a_statement_that_is_dropped_drops_at_once_what_it_has() {
        let mut run = coro::run(Arc::default(), || {
            let _rows = rows();
            coro::yield_now().unwrap();
        });
        let mut cx = Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut run).poll(&mut cx).is_pending());
        drop(run);
        // Also in the midst of dropping.
        let mut run = coro::run(Arc::default(), || drop(rows()));
        assert!(Pin::new(&mut run).poll(&mut cx).is_pending());
        drop(run);
    }
}
