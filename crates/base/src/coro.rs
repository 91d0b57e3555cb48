//! Statements that can wait deep inside: stackful coroutines over ordinary futures.
//!
//! A statement is straight-line code. Where it must wait (a lock, a page, a peer), it calls
//! [`wait`] with a future; the coroutine is suspended, its thread goes on with others, and when the
//! future is ready the statement continues where it stood. A statement that never waits costs one
//! switch of stacks and no allocation beyond a pooled stack.
//!
//! ```
//! use base::coro::{self, Interrupts};
//! use std::sync::Arc;
//!
//! let interrupts = Arc::new(Interrupts::default());
//! let statement = coro::run(interrupts, || {
//!     let six = coro::wait(async { 6 }).unwrap();
//!     six * 7
//! });
//! # let mut statement = Box::pin(statement);
//! # let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
//! # use std::future::Future;
//! assert_eq!(statement.as_mut().poll(&mut cx), std::task::Poll::Ready(42));
//! ```
//!
//! # Rules
//! - No latch is held across a wait; [`wait`] asserts it.
//! - A coroutine never changes its thread ([`Run`] is not `Send`).
//! - It never suspends across frames of another language: foreign code runs on the thread's own
//!   stack, through [`on_thread_stack`].
//! - Recursion is checked against the stack that is left ([`check_depth`], 54001).
//!
//! # Giving way
//! Nothing interrupts a coroutine but itself. Whatever can be long says how much it has done
//! ([`work`]), in bytes, elements, digits or steps, and now and then that gives way to others and
//! looks for interrupts. What is deeply recursive and long runs on a large stack of its own
//! ([`on_large_stack`]), where it can give way, unlike on the thread's ([`on_thread_stack`]). What is
//! not to be ended half-way counts too ([`work_uninterrupted`]); so does dropping what is large
//! ([`crate::large`]).

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::{pin, Pin};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use corosensei::stack::{DefaultStack, Stack};
use corosensei::{Coroutine, CoroutineResult, Yielder};

use crate::budget::{Account, Budget, Holder};
use crate::error::{Error, ErrorClass, SqlState};
use crate::limits::{
    COROUTINE_STACK_BYTES, LARGE_STACK_BYTES, POOLED_STACKS_MAX, POOLED_STACK_BYTES, WORK_PER_TURN,
};
use crate::sync::{latches_held, Mutex};
use crate::tally::Tally;

/// Why a statement is told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Interrupt {
    /// A client's CancelRequest or `pg_cancel_backend`.
    Cancel = 1,
    /// `statement_timeout`.
    StatementTimeout = 2,
    /// The node's memory is used up, and the session has the most of it ([`crate::budget`]).
    OutOfMemory = 3,
    /// `idle_in_transaction_session_timeout` and the like: the session ends.
    IdleTimeout = 4,
    /// The log was cut below what the session has read.
    HistoryCut = 5,
    /// The session is told to end: shutdown, `pg_terminate_backend`, the client is gone.
    Terminate = 6,
}

impl Interrupt {
    fn of(code: u8) -> Option<Interrupt> {
        [
            Interrupt::Cancel,
            Interrupt::StatementTimeout,
            Interrupt::OutOfMemory,
            Interrupt::IdleTimeout,
            Interrupt::HistoryCut,
            Interrupt::Terminate,
        ]
        .into_iter()
        .find(|interrupt| *interrupt as u8 == code)
    }
}

impl From<Interrupt> for Error {
    fn from(interrupt: Interrupt) -> Error {
        let (state, message) = match interrupt {
            Interrupt::Cancel => (
                SqlState::QUERY_CANCELED,
                "canceling statement due to user request",
            ),
            Interrupt::StatementTimeout => (
                SqlState::QUERY_CANCELED,
                "canceling statement due to statement timeout",
            ),
            Interrupt::OutOfMemory => return crate::budget::out_of_memory(),
            Interrupt::IdleTimeout => (
                SqlState::of("25P03"),
                "terminating connection due to idle-in-transaction timeout",
            ),
            Interrupt::HistoryCut => (
                SqlState::SERIALIZATION_FAILURE,
                "could not serialize access due to a failover",
            ),
            Interrupt::Terminate => (
                SqlState::ADMIN_SHUTDOWN,
                "terminating connection due to administrator command",
            ),
        };
        let class = match interrupt {
            Interrupt::IdleTimeout | Interrupt::Terminate => ErrorClass::Session,
            _ => ErrorClass::Engine,
        };
        Error::of_class(class, state, message)
    }
}

/// Where others leave an interrupt for a session, and the session finds it.
///
/// The strongest pending one wins; it stays until taken.
#[derive(Debug, Default)]
pub struct Interrupts {
    pending: AtomicU8,
    waiter: Mutex<Option<Waker>>,
    memory: Account,
    tally: Tally,
}

impl Holder for Interrupts {
    fn reserved(&self) -> usize {
        self.memory.reserved()
    }

    fn refuse(&self) {
        self.raise(Interrupt::OutOfMemory);
    }
}

impl Interrupts {
    /// Those of a session that takes its memory from a budget.
    pub fn within(budget: Arc<Budget>) -> Interrupts {
        Interrupts {
            memory: Account::of(budget),
            ..Interrupts::default()
        }
    }

    /// The memory that the session has taken.
    pub fn memory(&self) -> &Account {
        &self.memory
    }

    /// What it has used while somebody counted.
    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Leaves an interrupt and wakes the session if it waits.
    pub fn raise(&self, interrupt: Interrupt) {
        self.pending.fetch_max(interrupt as u8, Ordering::AcqRel);
        let waiter = self.waiter.lock().take();
        if let Some(waker) = waiter {
            waker.wake();
        }
    }

    /// Takes the pending interrupt, if there is one.
    pub fn take(&self) -> Option<Interrupt> {
        if !self.is_pending() {
            return None;
        }
        Interrupt::of(self.pending.swap(0, Ordering::AcqRel))
    }

    fn is_pending(&self) -> bool {
        self.pending.load(Ordering::Acquire) != 0
    }

    /// Whether what the session has seen may be of a history that is over, or the session is to end.
    pub fn is_cut(&self) -> bool {
        self.pending.load(Ordering::Acquire) >= Interrupt::HistoryCut as u8
    }

    /// Forgets what was meant for a statement, which a new one must not inherit. What ends the
    /// session stays.
    pub fn clear_statement(&self) {
        for interrupt in [
            Interrupt::Cancel,
            Interrupt::StatementTimeout,
            Interrupt::OutOfMemory,
        ] {
            let code = interrupt as u8;
            let _ = self
                .pending
                .compare_exchange(code, 0, Ordering::AcqRel, Ordering::Acquire);
        }
    }

    /// Takes the pending interrupt, or has the task woken by the next one; for a session while it
    /// executes nothing.
    pub fn poll_take(&self, cx: &mut Context<'_>) -> Poll<Interrupt> {
        self.register(cx.waker());
        self.take().map_or(Poll::Pending, Poll::Ready)
    }

    fn register(&self, waker: &Waker) {
        *self.waiter.lock() = Some(waker.clone());
    }
}

type Switch = Yielder<NonNull<()>, ()>;

/// What the code inside a coroutine knows of it.
#[derive(Clone, Copy)]
struct Current {
    yielder: NonNull<Switch>,
    interrupts: NonNull<Interrupts>,
    /// The task context of the latest resume, behind an erased lifetime.
    context: NonNull<()>,
    stack_limit: usize,
    /// Whether it has been seen so deep that its stack is not worth keeping.
    is_deep: bool,
}

thread_local! {
    static CURRENT: Cell<Option<Current>> = const { Cell::new(None) };
    static STACKS: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
    /// What the coroutine at work has done since it was resumed.
    static WORK: Cell<usize> = const { Cell::new(0) };
    /// A coroutine is being dropped: what unwinds is no panic.
    static UNWINDING: Cell<bool> = const { Cell::new(false) };
}

/// Waits for a future inside a coroutine.
///
/// # Errors
/// The pending [`Interrupt`], taken; the future is then dropped. A ready future wins over an
/// interrupt that arrives with it.
///
/// # Panics
/// Outside a coroutine, or while this thread holds a latch.
pub fn wait<F: Future>(future: F) -> Result<F::Output, Interrupt> {
    wait_or(future, |interrupts, waker| {
        interrupts.register(waker);
        interrupts.take()
    })
}

/// Waits as [`wait`] does, but leaves a pending interrupt where it is, for whoever looks next: what was
/// done before the wait stands, and the session is to hear of both. None where one ended the wait.
///
/// # Panics
/// As [`wait`].
pub fn wait_unless_interrupted<F: Future>(future: F) -> Option<F::Output> {
    let waited = wait_or(future, |interrupts, waker| {
        interrupts.register(waker);
        interrupts.is_pending().then_some(())
    });
    waited.ok()
}

/// Waits where no interrupt may come between: the wait ends only with the future.
///
/// # Panics
/// As [`wait`].
pub fn wait_uninterrupted<F: Future>(future: F) -> F::Output {
    match wait_or(future, |_, _| None::<Infallible>) {
        Ok(value) => value,
        Err(never) => match never {},
    }
}

/// Waits for a future inside a coroutine, until it is ready or `give_up`, which is asked each time that
/// it is not, says why not to.
fn wait_or<F: Future, E>(
    future: F,
    mut give_up: impl FnMut(&Interrupts, &Waker) -> Option<E>,
) -> Result<F::Output, E> {
    let mut future = pin!(future);
    loop {
        let current = current();
        assert_eq!(latches_held(), 0, "a latch is held across a wait");
        // SAFETY: `context` is the context of the poll that resumed this coroutine and that is
        // still running below us on the thread's own stack.
        let cx = unsafe { current.context.cast::<Context<'_>>().as_mut() };
        if let Poll::Ready(value) = future.as_mut().poll(cx) {
            return Ok(value);
        }
        // SAFETY: `Run` keeps the interrupts alive for as long as the coroutine lives.
        let interrupts = unsafe { current.interrupts.as_ref() };
        if let Some(why) = give_up(interrupts, cx.waker()) {
            return Err(why);
        }
        suspend(current);
    }
}

/// Lets others run, then goes on; for long computations, every
/// [`crate::limits::ROWS_PER_YIELD`] rows.
///
/// # Errors
/// The pending interrupt.
pub fn yield_now() -> Result<(), Interrupt> {
    wait(crate::turns::give_way())
}

/// Counts what was done, and gives way to others each [`WORK_PER_TURN`] units. A unit is about a
/// nanosecond: a byte looked at, a tenth of a step of an expression. Outside a coroutine, and where
/// it cannot wait because it runs on the thread's own stack, it only counts.
///
/// # Errors
/// The pending interrupt.
///
/// # Panics
/// As [`wait`], when it gives way: no latch may be held.
#[inline]
pub fn work(units: usize) -> Result<(), Interrupt> {
    match count(units) < WORK_PER_TURN {
        true => Ok(()),
        false => end_turn(),
    }
}

/// As [`work`], of what is not to be ended half-way: giving up, taking back and dropping. Does not
/// look for interrupts, and gives way only where that can be: not outside a coroutine, under a latch,
/// or while a panic unwinds.
#[inline]
pub fn work_uninterrupted(units: usize) {
    if count(units) >= WORK_PER_TURN {
        end_turn_if_possible();
    }
}

/// Counts work; what was done in this turn.
#[inline]
fn count(units: usize) -> usize {
    WORK.with(|done| {
        let sum = done.get().saturating_add(units);
        done.set(sum);
        sum
    })
}

/// As [`work`], in the midst of code that cannot fail: an interrupt unwinds to [`interruptible`].
///
/// # Panics
/// As [`work`].
#[inline]
pub fn work_or_unwind(units: usize) {
    if let Err(interrupt) = work(units) {
        std::panic::resume_unwind(Box::new(interrupt));
    }
}

/// Runs code that calls [`work_or_unwind`].
///
/// # Errors
/// The interrupt that has ended it.
pub fn interruptible<R>(f: impl FnOnce() -> R) -> Result<R, Interrupt> {
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f));
    ended.map_err(|panic| match panic.downcast::<Interrupt>() {
        Ok(interrupt) => *interrupt,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

#[cold]
fn end_turn() -> Result<(), Interrupt> {
    match inside() {
        true => yield_now(),
        false => Ok(()),
    }
}

#[cold]
fn end_turn_if_possible() {
    // How many panics unwind is counted for the thread: others must not run meanwhile.
    if inside() && latches_held() == 0 && !std::thread::panicking() {
        wait_uninterrupted(crate::turns::give_way());
    }
}

/// Whether this code runs inside a coroutine.
pub fn inside() -> bool {
    CURRENT.with(|current| current.get().is_some())
}

/// A number that tells the coroutine at work from all others of its thread that live; 0 outside
/// coroutines. For what belongs to a statement and must outlive its waits.
pub fn number() -> usize {
    CURRENT.with(|current| current.get().map_or(0, |at| at.yielder.as_ptr().addr()))
}

/// Runs foreign or deeply recursive code on the thread's own, large stack. Outside a coroutine it
/// just calls `f`. `f` must not wait.
pub fn on_thread_stack<R>(f: impl FnOnce() -> R + Send) -> R {
    let Some(current) = CURRENT.with(Cell::take) else {
        return f();
    };
    /// Goes back into the coroutine, also when `f` panics.
    struct Back(Current);
    impl Drop for Back {
        fn drop(&mut self) {
            CURRENT.with(|slot| slot.set(Some(self.0)));
        }
    }
    let back = Back(current);
    // SAFETY: the yielder lives as long as the coroutine that this code runs in.
    unsafe { back.0.yielder.as_ref() }.on_parent_stack(f)
}

/// Runs deeply recursive code that is long on a large stack of its own, where it may wait, and so
/// give way. Outside a coroutine it just calls `f`.
///
/// # Errors
/// 53200 where the system has no address space for the stack.
pub fn on_large_stack<R>(f: impl FnOnce() -> R) -> Result<R, Error> {
    let Some(current) = CURRENT.with(Cell::get) else {
        return Ok(f());
    };
    let Ok(stack) = DefaultStack::new(LARGE_STACK_BYTES) else {
        let message = "out of memory: no address space for a stack";
        return Err(Error::new(SqlState::OUT_OF_MEMORY, message));
    };
    let mut result = None;
    let slot = &mut result;
    let body: Box<dyn FnOnce() + '_> = Box::new(move || *slot = Some(f()));
    // SAFETY: the inner coroutine is at its end, or unwound, before this function's frame is left:
    // `Run` is dropped here in any case. So nothing that `f` borrows is gone while it runs.
    let body: Box<dyn FnOnce() + 'static> = unsafe { std::mem::transmute(body) };
    wait_uninterrupted(start(stack, false, interrupts_of(current), body));
    Ok(result.expect("it has run to its end"))
}

/// Runs `f`, and gives what it panicked with instead of unwinding further. A coroutine that is
/// being dropped is unwound past this.
///
/// # Errors
/// The panic's message.
pub fn catch_panic<R>(f: impl FnOnce() -> R) -> Result<R, String> {
    // How deep the panic came from nobody knows.
    let is_deep = true;
    let inside = CURRENT.with(Cell::get);
    let inside = inside.map(|current| Current { is_deep, ..current });
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).map_err(|panic| {
        if UNWINDING.with(Cell::get) {
            std::panic::resume_unwind(panic);
        }
        CURRENT.with(|slot| slot.set(inside));
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        text.unwrap_or_else(|| "a panic without a message".to_owned())
    })
}

/// Checks that enough stack is left for a few more calls, and notes of a stack that has been used deep
/// down that it is not worth keeping. Outside a coroutine nothing is checked.
///
/// # Errors
/// 54001.
pub fn check_depth() -> Result<(), Error> {
    const RESERVE: usize = 64 << 10;
    let Some(current) = CURRENT.with(Cell::get) else {
        return Ok(());
    };
    let here = std::ptr::from_ref(&current).addr();
    if here < current.stack_limit + (COROUTINE_STACK_BYTES - POOLED_STACK_BYTES) && !current.is_deep
    {
        let is_deep = true;
        CURRENT.with(|slot| slot.set(Some(Current { is_deep, ..current })));
    }
    if here < current.stack_limit + RESERVE {
        return Err(Error::new(
            SqlState::STATEMENT_TOO_COMPLEX,
            "stack depth limit exceeded",
        )
        .with_hint("Write the statement with less nesting."));
    }
    Ok(())
}

/// The interrupts of the session whose coroutine is at work; none outside coroutines.
pub fn interrupts() -> Option<Arc<Interrupts>> {
    CURRENT.with(Cell::get).map(interrupts_of)
}

/// Does something with the interrupts of the session whose coroutine is at work, if there is one.
pub(crate) fn with_interrupts(act: impl FnOnce(&Interrupts)) {
    if let Some(current) = CURRENT.with(Cell::get) {
        // SAFETY: `Run` keeps the interrupts alive for as long as the coroutine lives.
        act(unsafe { current.interrupts.as_ref() });
    }
}

fn interrupts_of(current: Current) -> Arc<Interrupts> {
    // SAFETY: `Run` holds this very reference count for as long as the coroutine's code runs.
    unsafe {
        Arc::increment_strong_count(current.interrupts.as_ptr());
        Arc::from_raw(current.interrupts.as_ptr())
    }
}

fn current() -> Current {
    CURRENT.with(Cell::get).expect("only a coroutine can wait")
}

fn suspend(current: Current) {
    // SAFETY: as in `on_thread_stack`. The input is the context of the next resume.
    let context = unsafe { current.yielder.as_ref() }.suspend(());
    CURRENT.with(|slot| {
        slot.set(Some(Current { context, ..current }));
    });
}

/// Makes a coroutine of `body`; it starts when first polled. Dropped before its end, it is unwound.
pub fn run<R: 'static>(interrupts: Arc<Interrupts>, body: impl FnOnce() -> R + 'static) -> Run<R> {
    let stack = STACKS
        .with(|stacks| stacks.borrow_mut().pop())
        .unwrap_or_else(|| {
            DefaultStack::new(COROUTINE_STACK_BYTES).expect("address space for a stack")
        });
    start(stack, true, interrupts, body)
}

fn start<R: 'static>(
    stack: DefaultStack,
    is_pooled: bool,
    interrupts: Arc<Interrupts>,
    body: impl FnOnce() -> R + 'static,
) -> Run<R> {
    let stack_limit = stack.limit().get();
    let shared = NonNull::from(&*interrupts);
    let coroutine = Coroutine::with_stack(stack, move |yielder: &Switch, context| {
        CURRENT.with(|slot| {
            slot.set(Some(Current {
                yielder: NonNull::from(yielder),
                interrupts: shared,
                context,
                stack_limit,
                is_deep: false,
            }));
        });
        body()
    });
    Run {
        coroutine: Some(coroutine),
        is_pooled,
        _interrupts: interrupts,
        not_send: PhantomData,
    }
}

type Body<R> = Coroutine<NonNull<()>, (), R, DefaultStack>;

/// A running coroutine: the future of its result.
pub struct Run<R: 'static> {
    coroutine: Option<Body<R>>,
    /// Whether its stack is one of those that are kept, unless it goes deep.
    is_pooled: bool,
    _interrupts: Arc<Interrupts>,
    not_send: PhantomData<*mut ()>,
}

impl<R> Unpin for Run<R> {}

impl<R> std::fmt::Debug for Run<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Run")
    }
}

impl<R> Future for Run<R> {
    type Output = R;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<R> {
        let coroutine = self.coroutine.as_mut().expect("polled after its end");
        let outer = CURRENT.with(Cell::take);
        let outer = Outer(outer);
        WORK.with(|done| done.set(0));
        let result = coroutine.resume(NonNull::from(cx).cast());
        let inside = CURRENT.with(Cell::get);
        drop(outer);
        match result {
            CoroutineResult::Yield(()) => Poll::Pending,
            CoroutineResult::Return(value) => {
                let coroutine = self.coroutine.take().expect("it has just returned");
                if self.is_pooled && inside.is_some_and(|inside| !inside.is_deep) {
                    pool(coroutine.into_stack());
                }
                Poll::Ready(value)
            }
        }
    }
}

impl<R> Drop for Run<R> {
    fn drop(&mut self) {
        // The body is unwound by `force_unwind`; it may look for its coroutine on the way, and
        // finds none, so a destructor that waits would panic.
        if let Some(mut coroutine) = self.coroutine.take() {
            let outer = Outer(CURRENT.with(Cell::take));
            let unwinding = UNWINDING.with(|flag| flag.replace(true));
            coroutine.force_unwind();
            UNWINDING.with(|flag| flag.set(unwinding));
            drop(outer);
        }
    }
}

/// Goes back into the coroutine around, if there is one, also when the inner one panics.
struct Outer(Option<Current>);

impl Drop for Outer {
    fn drop(&mut self) {
        CURRENT.with(|slot| slot.set(self.0));
    }
}

/// Keeps a stack for a later statement. What was deep is not kept: its pages would stay taken, and
/// nobody counts them.
fn pool(stack: DefaultStack) {
    let _ = STACKS.try_with(|stacks| {
        let mut stacks = stacks.borrow_mut();
        if stacks.len() < POOLED_STACKS_MAX {
            stacks.push(stack);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::Event;
    use std::rc::Rc;

    fn poll<R>(run: &mut Run<R>) -> Poll<R> {
        let mut cx = Context::from_waker(Waker::noop());
        Pin::new(run).poll(&mut cx)
    }

    #[test]
    fn a_statement_goes_on_where_it_waited() {
        let event = Rc::new(Event::new());
        let open = Rc::new(Cell::new(false));
        let (inner_event, inner_open) = (event.clone(), open.clone());
        let mut statement = run(Arc::default(), move || {
            wait(inner_event.until(|| inner_open.get().then_some(5))).unwrap() + 1
        });
        assert!(poll(&mut statement).is_pending());
        open.set(true);
        event.notify_all();
        assert_eq!(poll(&mut statement), Poll::Ready(6));
    }

    #[test]
    fn an_interrupt_that_ended_a_wait_may_stay_for_the_next() {
        let interrupts = Arc::new(Interrupts::default());
        let mut statement = run(interrupts.clone(), || {
            let first = wait_unless_interrupted(std::future::pending::<()>());
            let ready = wait_unless_interrupted(async { 5 });
            (first, ready, wait(std::future::pending::<()>()))
        });
        assert!(poll(&mut statement).is_pending());
        interrupts.raise(Interrupt::Terminate);
        let expected = (None, Some(5), Err(Interrupt::Terminate));
        assert_eq!(poll(&mut statement), Poll::Ready(expected));
    }

    #[test]
    fn an_interrupt_ends_the_wait() {
        let interrupts = Arc::new(Interrupts::default());
        let mut statement = run(interrupts.clone(), || wait(std::future::pending::<()>()));
        assert!(poll(&mut statement).is_pending());
        interrupts.raise(Interrupt::Cancel);
        assert_eq!(poll(&mut statement), Poll::Ready(Err(Interrupt::Cancel)));
    }

    #[test]
    fn a_dropped_statement_is_unwound() {
        struct Flag(Rc<Cell<bool>>);
        impl Drop for Flag {
            fn drop(&mut self) {
                self.0.set(true);
            }
        }
        let dropped = Rc::new(Cell::new(false));
        let flag = Flag(dropped.clone());
        let mut statement = run(Arc::default(), move || {
            let _flag = flag;
            let _ = wait(std::future::pending::<()>());
        });
        assert!(poll(&mut statement).is_pending());
        drop(statement);
        assert!(dropped.get());
    }

    #[test]
    fn recursion_without_end_is_an_error() {
        fn deeper(level: u64) -> Result<u64, Error> {
            check_depth()?;
            let below = deeper(level + 1)?;
            Ok(below.max(level))
        }
        let mut statement = run(Arc::default(), || deeper(0));
        match poll(&mut statement) {
            Poll::Ready(Err(error)) => assert_eq!(error.state(), SqlState::STATEMENT_TOO_COMPLEX),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_stack_that_was_deep_is_not_kept() {
        fn down(to: usize) -> Result<u8, Error> {
            let frame = std::hint::black_box([1_u8; 4_096]);
            check_depth()?;
            Ok(match to.checked_sub(frame.len()) {
                Some(rest) => frame[0].max(down(rest)?),
                None => frame[1],
            })
        }
        let kept = || STACKS.with(|stacks| stacks.borrow().len());
        let after = |bytes| {
            let ended = poll(&mut run(Arc::default(), move || down(bytes).unwrap()));
            assert_eq!(ended, Poll::Ready(1));
            kept()
        };
        assert_eq!(after(POOLED_STACK_BYTES / 4), 1);
        assert_eq!(
            after(POOLED_STACK_BYTES),
            0,
            "it took the one that was kept"
        );
        assert_eq!(after(POOLED_STACK_BYTES / 4), 1);
    }

    #[test]
    fn long_work_gives_way_and_can_be_ended() {
        let interrupts = Arc::new(Interrupts::default());
        let mut statement = run(interrupts.clone(), || loop {
            work(WORK_PER_TURN / 4)?;
        });
        for _ in 0..3 {
            assert!(poll(&mut statement).is_pending());
        }
        interrupts.raise(Interrupt::StatementTimeout);
        let ended: Poll<Result<(), Interrupt>> = poll(&mut statement);
        assert_eq!(ended, Poll::Ready(Err(Interrupt::StatementTimeout)));
    }

    #[test]
    fn an_interrupt_unwinds_what_cannot_fail() {
        let interrupts = Arc::new(Interrupts::default());
        let mut statement = run(interrupts.clone(), || {
            let mut values: Vec<_> = (0..1_000).rev().collect();
            let sorted = interruptible(|| {
                values.sort_by(|a, b| {
                    work_or_unwind(WORK_PER_TURN / 4);
                    a.cmp(b)
                });
            });
            values.sort_unstable();
            (sorted, values.len(), values[999])
        });
        assert!(poll(&mut statement).is_pending());
        interrupts.raise(Interrupt::Cancel);
        let ended = poll(&mut statement);
        assert_eq!(ended, Poll::Ready((Err(Interrupt::Cancel), 1_000, 999)));
    }

    fn recurse(levels: usize) -> Result<usize, Interrupt> {
        let frame = std::hint::black_box([levels; 64]);
        work(WORK_PER_TURN / 64)?;
        Ok(match levels {
            0 => frame[0],
            _ => recurse(levels - 1)? + frame[63] - levels + 1,
        })
    }

    #[test]
    fn what_is_deep_and_long_gives_way_on_a_stack_of_its_own() {
        const LEVELS: usize = COROUTINE_STACK_BYTES / 64;
        let mut statement = run(Arc::default(), || {
            on_large_stack(|| recurse(LEVELS)).unwrap()
        });
        let mut turns = 0;
        let result = loop {
            match poll(&mut statement) {
                Poll::Ready(result) => break result,
                Poll::Pending => turns += 1,
            }
        };
        assert_eq!(result, Ok(LEVELS));
        assert!(turns > LEVELS / 128, "{turns} turns");
        assert!(!inside());
    }

    #[test]
    fn what_waits_on_a_large_stack_is_unwound_with_its_statement() {
        struct Flag<'a>(&'a Cell<usize>);
        impl Drop for Flag<'_> {
            fn drop(&mut self) {
                self.0.set(self.0.get() + 1);
            }
        }
        let dropped = Rc::new(Cell::new(0));
        let shared = dropped.clone();
        let mut statement = run(Arc::default(), move || {
            let _outer = Flag(&shared);
            let caught = catch_panic(|| {
                on_large_stack(|| {
                    let _inner = Flag(&shared);
                    let _ = wait(std::future::pending::<()>());
                })
            });
            unreachable!("{caught:?}");
        });
        assert!(poll(&mut statement).is_pending());
        drop(statement);
        assert_eq!(dropped.get(), 2);
    }

    #[test]
    fn a_panic_is_caught_wherever_it_happens() {
        let mut statement = run(Arc::default(), || {
            let here = catch_panic(|| panic!("here"));
            let below = catch_panic(|| on_thread_stack(|| panic!("{}", "on the thread's stack")));
            let beside = catch_panic(|| on_large_stack(|| panic!("on a large stack")).unwrap());
            assert!(inside());
            yield_now().unwrap();
            [here, below, beside].map(|caught: Result<(), _>| caught.unwrap_err())
        });
        assert!(poll(&mut statement).is_pending());
        let told = ["here", "on the thread's stack", "on a large stack"];
        assert_eq!(poll(&mut statement), Poll::Ready(told.map(String::from)));
    }

    #[test]
    fn foreign_code_runs_on_the_large_stack() {
        let mut statement = run(Arc::default(), || {
            assert!(inside());
            let on_stack = on_thread_stack(inside);
            assert!(inside());
            on_stack
        });
        assert_eq!(poll(&mut statement), Poll::Ready(false));
    }
}
