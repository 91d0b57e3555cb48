//! What a statement keeps takes its memory from the node's budget, and gives it back by itself.
//!
//! ```
//! use base::memory::Reservation;
//! # fn rows() -> Vec<Vec<u8>> { Vec::new() }
//! # fn sort() -> base::Result<()> {
//! let (mut rows_kept, mut kept) = (Vec::new(), Reservation::of("a sort"));
//! for row in rows() {
//!     kept.grow(row.len())?;
//!     rows_kept.push(row);
//! }
//! # Ok(())
//! # }
//! # sort().unwrap();
//! ```
//! A [`Reservation`] belongs to the session in whose coroutine it grows for the first time. It takes
//! nothing for its first [`FREE_BYTES`], so that a short statement touches nothing that is shared,
//! and then a step at a time. Outside coroutines, and where there is no budget, it only counts.
//!
//! # Invariants
//! - What it has taken covers what it counts, but for [`FREE_BYTES`].

use std::sync::Arc;

use crate::budget::{Answer, Holder};
use crate::coro::{self, Interrupts};
use crate::error::{Error, ErrorClass, Result, SqlState};
use crate::sync::latches_held;

/// So many bytes cost nothing.
pub const FREE_BYTES: usize = 16 << 10;

/// What is taken is a multiple of this.
const STEP_BYTES: usize = 64 << 10;

/// One who grows takes such a part of what it has ahead, up to so many bytes.
const AHEAD_PART: usize = 8;
const AHEAD_BYTES_MAX: usize = 1 << 20;

/// Memory that is kept for one purpose, until it is dropped.
#[derive(Debug)]
pub struct Reservation {
    what: &'static str,
    bytes: usize,
    /// Up to here it grows without asking.
    covered: usize,
    /// What was taken from the budget.
    held: usize,
    session: Option<Arc<Interrupts>>,
}

impl Default for Reservation {
    fn default() -> Reservation {
        Reservation::of("Rows")
    }
}

impl Reservation {
    /// Nothing yet, for what an error names so.
    pub const fn of(what: &'static str) -> Reservation {
        Reservation {
            what,
            bytes: 0,
            covered: FREE_BYTES,
            held: 0,
            session: None,
        }
    }

    /// Nothing yet, for a session that need not be at work.
    pub fn for_session(what: &'static str, session: Arc<Interrupts>) -> Reservation {
        Reservation {
            session: Some(session),
            ..Reservation::of(what)
        }
    }

    /// The bytes that it counts.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Counts more.
    ///
    /// # Errors
    /// 53200 when the node's memory is used up and the session has the most of it; the pending
    /// interrupt.
    #[inline]
    pub fn grow(&mut self, bytes: usize) -> Result<()> {
        self.bytes = self.bytes.saturating_add(bytes);
        match self.bytes <= self.covered {
            true => Ok(()),
            false => self.extend(),
        }
    }

    /// Counts less.
    pub fn shrink(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
        let kept = steps(self.bytes);
        if self.held > 2 * kept + AHEAD_BYTES_MAX {
            self.give_back_to(kept);
        }
    }

    /// Counts so many.
    ///
    /// # Errors
    /// As [`Reservation::grow`].
    #[inline]
    pub fn set(&mut self, bytes: usize) -> Result<()> {
        match bytes.checked_sub(self.bytes) {
            Some(more) => self.grow(more),
            None => {
                self.shrink(self.bytes - bytes);
                Ok(())
            }
        }
    }

    /// Whether there is room for so many bytes more, now.
    ///
    /// # Errors
    /// As [`Reservation::grow`].
    pub fn probe(&mut self, bytes: usize) -> Result<()> {
        let outcome = self.grow(bytes);
        self.shrink(bytes);
        outcome
    }

    fn give_back_to(&mut self, kept: usize) {
        let Some(session) = &self.session else {
            return;
        };
        session.memory().give_back(self.held - kept);
        self.held = kept;
        self.covered = kept.max(FREE_BYTES);
    }

    #[cold]
    fn extend(&mut self) -> Result<()> {
        if self.session.is_none() {
            self.session = coro::interrupts();
        }
        let Some(session) = &self.session else {
            return Ok(());
        };
        if session.memory().budget().is_none() {
            self.covered = usize::MAX;
            return Ok(());
        }
        let ahead = (self.bytes / AHEAD_PART).min(AHEAD_BYTES_MAX);
        let wanted = steps(self.bytes.saturating_add(ahead));
        take(session, wanted - self.held, self.what)?;
        self.held = wanted;
        self.covered = wanted;
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.held > 0 {
            self.give_back_to(0);
        }
    }
}

fn steps(bytes: usize) -> usize {
    bytes.div_ceil(STEP_BYTES).saturating_mul(STEP_BYTES)
}

/// Takes from the budget of a session, and waits for others where it can.
fn take(session: &Arc<Interrupts>, bytes: usize, what: &'static str) -> Result<()> {
    let holder: Arc<dyn Holder> = session.clone();
    let Some(budget) = session.memory().budget() else {
        return Ok(());
    };
    loop {
        match session.memory().ask(&holder, bytes) {
            Answer::Granted => return Ok(()),
            Answer::Wait if coro::inside() && latches_held() == 0 => {
                if coro::wait(budget.room(bytes))? {
                    continue;
                }
            }
            Answer::Wait | Answer::Refused => {}
        }
        let (state, class) = (SqlState::OUT_OF_MEMORY, ErrorClass::Engine);
        let error = Error::of_class(class, state, "out of memory");
        return Err(error.with_detail(format!(
            "{what} asked for {bytes} bytes more. Of the node's {} bytes {} are taken, and {} of \
             them by this session.",
            budget.limit(),
            budget.used(),
            holder.reserved()
        )));
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready, Future};
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::budget::{Budget, SMALL_BYTES_MAX};
    use crate::coro::{Interrupt, Run};

    const MB: usize = 1 << 20;

    fn budget(limit: usize, waits: bool) -> Arc<Budget> {
        Arc::new(Budget::new(
            limit,
            MB,
            Box::new(move || match waits {
                true => Box::pin(pending()),
                false => Box::pin(ready(())),
            }),
        ))
    }

    fn session(budget: &Arc<Budget>) -> Arc<Interrupts> {
        Arc::new(Interrupts::within(budget.clone()))
    }

    fn kept(session: &Arc<Interrupts>, bytes: usize) -> Result<Reservation> {
        let mut kept = Reservation::for_session("a test", session.clone());
        kept.grow(bytes).map(|()| kept)
    }

    fn poll<R>(run: &mut Run<R>) -> Poll<R> {
        let mut cx = Context::from_waker(Waker::noop());
        Pin::new(run).poll(&mut cx)
    }

    fn state<T>(outcome: Result<T>) -> Option<SqlState> {
        outcome.err().map(|error| error.state())
    }

    #[test]
    fn what_is_kept_is_given_back() {
        let budget = budget(100 * MB, false);
        let session = session(&budget);
        let mut rows = kept(&session, FREE_BYTES).unwrap();
        assert_eq!(budget.used(), MB, "the first bytes cost nothing");
        rows.grow(10 * MB).unwrap();
        let ahead = AHEAD_BYTES_MAX + STEP_BYTES;
        let taken = budget.used() - MB;
        assert!(
            taken >= 10 * MB && taken <= 10 * MB + FREE_BYTES + ahead,
            "{taken}"
        );
        assert_eq!(session.memory().reserved(), taken);
        rows.set(MB).unwrap();
        assert!(budget.used() < 4 * MB, "{}", budget.used());
        drop(rows);
        assert_eq!((budget.used(), session.memory().reserved()), (MB, 0));
    }

    #[test]
    fn who_asks_for_most_is_refused() {
        let budget = budget(100 * MB, false);
        let (small, large) = (session(&budget), session(&budget));
        let _small = kept(&small, 20 * MB).unwrap();
        let refused = kept(&large, 90 * MB);
        assert_eq!(state(refused), Some(SqlState::OUT_OF_MEMORY));
        assert_eq!(large.memory().reserved(), 0);
        assert_eq!(small.take(), None);
    }

    #[test]
    fn the_largest_is_told_to_give_up_and_others_go_on() {
        let budget = budget(100 * MB, true);
        let (small, large) = (session(&budget), session(&budget));
        let rows = kept(&large, 80 * MB).unwrap();
        // Of the last part, while the largest ends.
        let first = kept(&small, 10 * MB).unwrap();
        assert_eq!(large.take(), Some(Interrupt::OutOfMemory));
        let asks = small.clone();
        let mut waits = coro::run(small.clone(), move || kept(&asks, 20 * MB));
        assert!(poll(&mut waits).is_pending());
        assert_eq!(large.take(), None, "it is told once");
        assert_eq!(state(kept(&large, 20 * MB)), Some(SqlState::OUT_OF_MEMORY));
        drop(rows);
        let Poll::Ready(Ok(second)) = poll(&mut waits) else {
            panic!("there is room");
        };
        drop((first, second));
        assert_eq!(budget.used(), MB);
    }

    #[test]
    fn what_is_taken_for_good_later_leaves_something_for_others() {
        let budget = budget(100 * MB, false);
        let session = session(&budget);
        let rows = kept(&session, 30 * MB).unwrap();
        assert!(!budget.fix(39 * MB, 20 * MB), "there is room for it");
        assert_eq!((budget.fixed(), budget.limit()), (40 * MB, 100 * MB));
        assert_eq!(
            state(kept(&session, 40 * MB)),
            Some(SqlState::OUT_OF_MEMORY)
        );
        assert!(budget.fix(50 * MB, 20 * MB));
        assert_eq!((budget.fixed(), budget.limit()), (90 * MB, 110 * MB));
        drop(rows);
        assert_eq!(budget.used(), 90 * MB);
        drop(kept(&session, 5 * MB).unwrap());
    }

    #[test]
    fn nobody_waits_for_ever() {
        let budget = budget(100 * MB, false);
        let (small, large) = (session(&budget), session(&budget));
        let _rows = kept(&large, 80 * MB).unwrap();
        let asks = small.clone();
        let mut waits = coro::run(small.clone(), move || state(kept(&asks, 30 * MB)));
        assert_eq!(poll(&mut waits), Poll::Ready(Some(SqlState::OUT_OF_MEMORY)));
        assert_eq!(large.take(), Some(Interrupt::OutOfMemory));
    }

    #[test]
    fn small_ones_have_a_part_for_themselves() {
        let budget = budget(100 * MB, false);
        let large = session(&budget);
        let _rows = kept(&large, 84 * MB).unwrap();
        assert_eq!(state(kept(&large, 20 * MB)), Some(SqlState::OUT_OF_MEMORY));
        let small: Vec<_> = (0..10)
            .map(|_| kept(&session(&budget), SMALL_BYTES_MAX / 2).unwrap())
            .collect();
        assert_eq!(large.take(), None);
        drop(small);
    }

    #[test]
    fn without_a_budget_nothing_is_counted() {
        let session = Arc::new(Interrupts::default());
        let mut rows = kept(&session, usize::MAX / 2).unwrap();
        rows.grow(usize::MAX).unwrap();
        let mut outside = Reservation::of("a test");
        outside.grow(usize::MAX).unwrap();
        assert_eq!(session.memory().reserved(), 0);
    }
}
