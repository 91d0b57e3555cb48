//! The memory of a node: one limit, and who has taken how much of it.
//!
//! Whatever grows with data or with what clients send takes its bytes from the node's [`Budget`]
//! before it keeps them (`memory::Reservation`). What has a bound of its own (pages, old versions,
//! logs, queues of what is applied) is taken off once, when the node starts.
//!
//! ```text
//! 0 ─────────┬──────────────────────────────────────┬───────────────── limit
//!   fixed    │ anybody                              │ the last eighth: small holders,
//!            │                                      │ and others while the largest ends
//! ```
//! Beyond the mark the **largest** holder is told to give up what it does ([`Holder::refuse`]), not
//! the one that happens to ask. Who asks gets what is left, then waits until the largest has given
//! back; it is refused itself only when it is the largest, or when nothing came back for a while.
//!
//! # Invariants
//! - What is taken never exceeds the limit.
//! - A holder with at most [`SMALL_BYTES_MAX`] is refused only when the limit itself is reached.
//! - At most one holder at a time is told to give up.
//!
//! # What it leaves out
//! It counts what it is told, not what the allocator has: memory between values, stacks and code
//! are what the part of the machine beyond the budget is for.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::Poll;

use crate::env::BoxFuture;
use crate::error::{Error, ErrorClass, SqlState};
use crate::sync::{Event, Mutex};

/// A holder with no more than this may take from the last part of the budget.
pub const SMALL_BYTES_MAX: usize = 1 << 20;

/// The last part of the budget, as a part of the whole.
const RESERVE_PART: usize = 8;

/// Who takes from a budget: a session.
pub trait Holder: Send + Sync {
    /// The bytes that it has taken.
    fn reserved(&self) -> usize;

    /// Tells it to give up what it does. Called without latches.
    fn refuse(&self);
}

/// 53200 for whoever was told to give up.
pub(crate) fn out_of_memory() -> Error {
    let state = SqlState::OUT_OF_MEMORY;
    Error::of_class(ErrorClass::Engine, state, "out of memory").with_detail(
        "The node's memory is used up, and this session has more of it than any other.",
    )
}

/// How long somebody waits for what the largest gives back.
type Pause = Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

/// What a request for memory was answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is taken.
    Granted,
    /// The largest was told to give up; there may be room soon ([`Budget::room`]).
    Wait,
    /// There is none: who asks is the largest.
    Refused,
}

/// The memory of a node.
pub struct Budget {
    limit: AtomicUsize,
    fixed: AtomicUsize,
    used: AtomicUsize,
    refusals: AtomicU64,
    book: Mutex<Book>,
    given_back: Event,
    pause: Pause,
}

#[derive(Default)]
struct Book {
    holders: Vec<Weak<dyn Holder>>,
    /// Who was told to give up, and what it had then.
    ending: Option<(Weak<dyn Holder>, usize)>,
}

impl std::fmt::Debug for Budget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Budget({} of {})", self.used(), self.limit())
    }
}

impl Book {
    /// Adds a holder; those that are gone make room for it.
    fn list(&mut self, holder: &Arc<dyn Holder>) {
        if self.holders.len() == self.holders.capacity() {
            self.holders.retain(|holder| holder.strong_count() > 0);
        }
        self.holders.push(Arc::downgrade(holder));
    }

    /// The largest holder that is still there.
    fn largest(&mut self) -> Option<(Arc<dyn Holder>, usize)> {
        self.holders.retain(|holder| holder.strong_count() > 0);
        let live = self.holders.iter().filter_map(Weak::upgrade);
        let sized = live.map(|holder| {
            let reserved = holder.reserved();
            (holder, reserved)
        });
        sized.max_by_key(|(_, reserved)| *reserved)
    }

    /// Who was told to give up and has not given back half of what it had.
    fn ending(&mut self) -> Option<Arc<dyn Holder>> {
        let (holder, had) = self.ending.as_ref()?;
        let still = holder.upgrade().filter(|it| it.reserved() > had / 2);
        if still.is_none() {
            self.ending = None;
        }
        still
    }
}

impl Budget {
    /// A budget of `limit` bytes, of which `fixed` are taken for good. `pause` says how long
    /// somebody waits for others.
    pub fn new(limit: usize, fixed: usize, pause: Pause) -> Budget {
        Budget {
            limit: AtomicUsize::new(limit),
            fixed: AtomicUsize::new(fixed),
            used: AtomicUsize::new(fixed),
            refusals: AtomicU64::new(0),
            book: Mutex::default(),
            given_back: Event::new(),
            pause,
        }
    }

    /// All of it, in bytes.
    pub fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    /// What has a bound of its own, in bytes.
    pub fn fixed(&self) -> usize {
        self.fixed.load(Ordering::Relaxed)
    }

    /// Another part of the node takes so many bytes for good, from now on. Where that would leave
    /// less than `least` for all others, the limit rises; whether it did.
    pub fn fix(&self, bytes: usize, least: usize) -> bool {
        let fixed = self.fixed.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.used.fetch_add(bytes, Ordering::AcqRel);
        self.limit.fetch_max(fixed + least, Ordering::Relaxed) < fixed + least
    }

    /// What is taken, the fixed part included, in bytes.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// What the largest holder has, in bytes.
    pub fn largest(&self) -> usize {
        self.book
            .lock()
            .largest()
            .map_or(0, |(_, reserved)| reserved)
    }

    /// How often somebody was refused, or told to give up.
    pub fn refusals(&self) -> u64 {
        self.refusals.load(Ordering::Relaxed)
    }

    /// Up to where anybody may take.
    fn open(&self) -> usize {
        let limit = self.limit();
        limit - limit / RESERVE_PART
    }

    fn take_up_to(&self, most: usize, bytes: usize) -> bool {
        let fits = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= most);
        let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
        self.used.fetch_update(success, failure, fits).is_ok()
    }

    fn ask(&self, asks: &Arc<dyn Holder>, bytes: usize) -> Answer {
        if self.take_up_to(self.open(), bytes) {
            return Answer::Granted;
        }
        let wanted = asks.reserved().saturating_add(bytes);
        if wanted <= SMALL_BYTES_MAX && self.take_up_to(self.limit(), bytes) {
            return Answer::Granted;
        }
        let told = {
            let mut book = self.book.lock();
            let ending = book.ending();
            let largest = book.largest();
            match (ending, largest) {
                (Some(ending), _) if Arc::ptr_eq(&ending, asks) => return self.refused(),
                (Some(_), _) => None,
                (None, Some((largest, reserved))) if reserved > wanted => {
                    book.ending = Some((Arc::downgrade(&largest), reserved));
                    Some(largest)
                }
                (None, _) => return self.refused(),
            }
        };
        if let Some(largest) = told {
            self.refusals.fetch_add(1, Ordering::Relaxed);
            largest.refuse();
        }
        match self.take_up_to(self.limit(), bytes) {
            true => Answer::Granted,
            false => Answer::Wait,
        }
    }

    fn refused(&self) -> Answer {
        self.refusals.fetch_add(1, Ordering::Relaxed);
        Answer::Refused
    }

    /// Whoever was told to give up does not: another may be told.
    fn give_up_waiting(&self) {
        self.book.lock().ending = None;
        self.refusals.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits until so many bytes are free, or for as long as one waits; whether they are.
    pub async fn room(&self, bytes: usize) -> bool {
        let room = || self.used().saturating_add(bytes) <= self.limit();
        let mut room = std::pin::pin!(self.given_back.until(|| room().then_some(())));
        let mut pause = (self.pause)();
        let there_is = std::future::poll_fn(|cx| match room.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(true),
            Poll::Pending => pause.as_mut().poll(cx).map(|()| false),
        })
        .await;
        if !there_is {
            self.give_up_waiting();
        }
        there_is
    }

    fn give_back(&self, bytes: usize) {
        let before = self.used.fetch_sub(bytes, Ordering::AcqRel);
        assert!(
            before >= bytes + self.fixed(),
            "{bytes} given back of {before}"
        );
        if before > self.open() {
            self.given_back.notify_all();
        }
    }
}

/// What one holder has taken. Without a budget nothing is counted.
#[derive(Debug, Default)]
pub struct Account {
    budget: Option<Arc<Budget>>,
    reserved: AtomicUsize,
    is_listed: AtomicBool,
}

impl Account {
    /// Nothing taken from that budget.
    pub fn of(budget: Arc<Budget>) -> Account {
        Account {
            budget: Some(budget),
            ..Account::default()
        }
    }

    /// From what it takes.
    pub fn budget(&self) -> Option<&Arc<Budget>> {
        self.budget.as_ref()
    }

    /// The bytes that it has taken.
    pub fn reserved(&self) -> usize {
        self.reserved.load(Ordering::Relaxed)
    }

    /// Takes more for `holder`, whose account this is.
    pub fn ask(&self, holder: &Arc<dyn Holder>, bytes: usize) -> Answer {
        let Some(budget) = &self.budget else {
            return Answer::Granted;
        };
        if !self.is_listed.swap(true, Ordering::Relaxed) {
            budget.book.lock().list(holder);
        }
        let answer = budget.ask(holder, bytes);
        if answer == Answer::Granted {
            self.reserved.fetch_add(bytes, Ordering::Relaxed);
        }
        answer
    }

    /// Gives back what was taken.
    pub fn give_back(&self, bytes: usize) {
        let Some(budget) = &self.budget else {
            return;
        };
        let before = self.reserved.fetch_sub(bytes, Ordering::Relaxed);
        assert!(before >= bytes, "{bytes} given back of {before}");
        budget.give_back(bytes);
    }
}
