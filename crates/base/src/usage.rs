//! What a session's statement uses of pages and of the log, for who asks for it: EXPLAIN's BUFFERS and WAL.
//!
//! ```text
//! EXPLAIN         Counting::begin ──► used() … used()     what was used between the two
//! the store       found 3 pages, had 1 read          │
//! a transaction   changed a row: 57 bytes of log     ▼
//!                          Interrupts of the session ── found 3, read 1, records 1, bytes 57
//! ```
//! Figures belong to the session whose coroutine is at work. As long as nobody counts, who uses something
//! looks at one number of the process and goes on.
//!
//! # What it leaves out
//! What tasks do that belong to no session: writing pages, applying records.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;

use crate::coro::{self, Interrupts};

/// How many count now, whichever session.
static COUNTING: AtomicUsize = AtomicUsize::new(0);

/// What was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Pages that were looked at in the cache, those that had been read for it among them.
    pub found: u64,
    /// Pages that were read for it, those that it will need soon among them.
    pub read: u64,
    /// Changes of rows that go to the log.
    pub records: u64,
    /// The bytes that they have there.
    pub bytes: u64,
}

impl Used {
    /// What was used since.
    pub fn since(self, before: Used) -> Used {
        Used {
            found: self.found.saturating_sub(before.found),
            read: self.read.saturating_sub(before.read),
            records: self.records.saturating_sub(before.records),
            bytes: self.bytes.saturating_sub(before.bytes),
        }
    }
}

impl std::ops::AddAssign for Used {
    fn add_assign(&mut self, other: Used) {
        self.found += other.found;
        self.read += other.read;
        self.records += other.records;
        self.bytes += other.bytes;
    }
}

/// While it lives, what its session uses is counted.
#[derive(Debug)]
pub struct Counting {
    session: Option<Arc<Interrupts>>,
}

impl Counting {
    /// Begins to count what the session at work uses; outside coroutines that is nothing.
    pub fn begin() -> Counting {
        COUNTING.fetch_add(1, Ordering::Relaxed);
        Counting {
            session: coro::interrupts(),
        }
    }

    /// What the session has ever used while somebody counted.
    pub fn used(&self) -> Used {
        let Some(session) = &self.session else {
            return Used::default();
        };
        let tally = session.tally();
        Used {
            found: tally.found.load(Ordering::Relaxed),
            read: tally.read.load(Ordering::Relaxed),
            records: tally.records.load(Ordering::Relaxed),
            bytes: tally.bytes.load(Ordering::Relaxed),
        }
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        COUNTING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether anybody counts.
#[inline]
pub fn is_counted() -> bool {
    COUNTING.load(Ordering::Relaxed) != 0
}

/// A page was looked at in the cache.
#[cold]
pub fn found_page() {
    coro::with_interrupts(|session| add(&session.tally().found, 1));
}

/// So many pages have to be read.
#[cold]
pub fn read_pages(pages: usize) {
    coro::with_interrupts(|session| add(&session.tally().read, pages as u64));
}

/// A change of a row goes to the log, with so many bytes.
#[cold]
pub fn logged(bytes: usize) {
    coro::with_interrupts(|session| {
        add(&session.tally().records, 1);
        add(&session.tally().bytes, bytes as u64);
    });
}

fn add(figure: &AtomicU64, more: u64) {
    figure.fetch_add(more, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_counts_sees_what_its_own_session_uses() {
        let session = Arc::new(Interrupts::default());
        let mut run = Box::pin(coro::run(session.clone(), || {
            let counting = Counting::begin();
            assert!(is_counted());
            let before = counting.used();
            found_page();
            found_page();
            read_pages(3);
            logged(40);
            let used = counting.used().since(before);
            assert_eq!((used.found, used.read), (2, 3));
            assert_eq!((used.records, used.bytes), (1, 40));
        }));
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        let polled = std::future::Future::poll(run.as_mut(), &mut cx);
        assert!(polled.is_ready());
        // Outside of coroutines nobody is there who could have used something.
        let counting = Counting::begin();
        found_page();
        assert_eq!(counting.used(), Used::default());
    }
}
