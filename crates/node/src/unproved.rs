//! Connections that have not shown yet who they are: few, and not for long.
//!
//! Anybody who reaches a port can connect to it, and say nothing, or begin to shake hands over and
//! over. What that costs is bounded here, for each port on which a node listens:
//!
//! ```text
//! accepted ──► Probation ──► has shown who it is: it counts no more
//!                  │
//!                  └── one more than UNPROVED_MAX came: the oldest is turned out
//! ```
//! Who is turned out was there for [`GRACE`] at least, and as long as nobody is, no further
//! connection is accepted: they wait in the system's queue. So a crowd of honest clients, which take
//! milliseconds each, comes in batch by batch, and a flood of silent ones has a place for
//! `UNPROVED_MAX` of them at a time.
//!
//! Shaking hands costs processor time: that is spent on a thread of its own
//! ([`Reactor::Handshakes`](base::env::Reactor::Handshakes)), so neither Raft nor statements stand behind it.
//!
//! Refusals are logged, each with address and reason, but at most [`LINES_MAX`] in [`LINES_WITHIN`]:
//! a flood must not fill the disk either. How many more there were is logged afterwards.
//!
//! # What it leaves out
//! Addresses are not counted: all clients may stand behind one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base::coro::{Interrupt, Interrupts};
use base::env::{Env, Instant, Severity};
use base::sync::{Event, Mutex};

use crate::wait::either;

/// Connections of one port at most that have not shown who they are.
pub const UNPROVED_MAX: usize = 512;

/// Nobody is turned out before this.
pub const GRACE: Duration = Duration::from_millis(100);

/// Lines about refusals that are logged within [`LINES_WITHIN`].
pub const LINES_MAX: u32 = 100;

/// See [`LINES_MAX`].
pub const LINES_WITHIN: Duration = Duration::from_secs(10);

/// A port, and those who stand before it.
pub struct Unproved {
    env: Arc<dyn Env>,
    /// Who comes to it, in words.
    whose: &'static str,
    state: Mutex<State>,
    /// Somebody has left.
    moved: Event,
}

#[derive(Default)]
struct State {
    next: u64,
    /// By number, so the oldest comes first.
    waiting: BTreeMap<u64, Arc<Case>>,
    lines: Lines,
}

/// How many lines were logged lately.
#[derive(Default)]
struct Lines {
    since: Option<Instant>,
    count: u32,
    /// The last of those that were not.
    unsaid: Option<String>,
}

/// One that has not shown who it is.
struct Case {
    since: Instant,
    is_turned_out: AtomicBool,
    turned_out: Event,
    /// Where it is told, once it has a place among the sessions.
    interrupts: OnceLock<Arc<Interrupts>>,
}

impl Case {
    fn turn_out(&self) {
        self.is_turned_out.store(true, Ordering::SeqCst);
        self.turned_out.notify_all();
        if let Some(interrupts) = self.interrupts.get() {
            interrupts.raise(Interrupt::Terminate);
        }
    }
}

/// A connection's place among those that have not shown who they are; dropped once it has.
pub struct Probation {
    unproved: Arc<Unproved>,
    number: u64,
    case: Arc<Case>,
}

impl Probation {
    /// Ready when the connection has to make room for others.
    pub async fn turned_out(&self) {
        let is_turned_out = || self.case.is_turned_out.load(Ordering::SeqCst).then_some(());
        self.case.turned_out.until(is_turned_out).await;
    }

    /// Those among whom it is.
    pub fn unproved(&self) -> &Arc<Unproved> {
        &self.unproved
    }

    /// From now on it is told by an interrupt, too.
    pub fn interrupt(&self, interrupts: &Arc<Interrupts>) {
        let _ = self.case.interrupts.set(interrupts.clone());
        if self.case.is_turned_out.load(Ordering::SeqCst) {
            interrupts.raise(Interrupt::Terminate);
        }
    }
}

impl Drop for Probation {
    fn drop(&mut self) {
        self.unproved.state.lock().waiting.remove(&self.number);
        self.unproved.moved.notify_all();
    }
}

/// A probation that ends wherever it is first known that the connection has shown who it is.
#[derive(Clone, Default)]
pub struct Proving(Arc<Mutex<Option<Probation>>>);

impl Proving {
    /// With a place among the sessions, over which it is told that it has to go.
    pub fn new(probation: Probation, interrupts: &Arc<Interrupts>) -> Proving {
        probation.interrupt(interrupts);
        Proving(Arc::new(Mutex::new(Some(probation))))
    }

    /// It has shown who it is.
    pub fn done(&self) {
        let probation = self.0.lock().take();
        drop(probation);
    }
}

impl Unproved {
    /// A port before which nobody stands yet.
    pub fn new(env: Arc<dyn Env>, whose: &'static str) -> Unproved {
        Unproved {
            env,
            whose,
            state: Mutex::default(),
            moved: Event::new(),
        }
    }

    /// How many stand before it.
    pub fn count(&self) -> usize {
        self.state.lock().waiting.len()
    }

    /// A place for a connection that was accepted. Waits while there is none and nobody has been
    /// there for long enough to be turned out.
    pub async fn enter(self: &Arc<Self>) -> Probation {
        loop {
            let due = match self.try_enter() {
                Ok(probation) => return probation,
                Err(due) => due,
            };
            let room = || (self.count() < UNPROVED_MAX).then_some(());
            either(self.moved.until(room), self.env.sleep_until(due)).await;
        }
    }

    /// A place, or when there will be one.
    fn try_enter(self: &Arc<Self>) -> Result<Probation, Instant> {
        let now = self.env.now();
        let mut state = self.state.lock();
        let mut oldest = None;
        if state.waiting.len() >= UNPROVED_MAX {
            let first = state.waiting.first_entry();
            let due = first.as_ref().map(|first| first.get().since.after(GRACE));
            match (first, due) {
                (Some(first), Some(due)) if due <= now => oldest = Some(first.remove()),
                (_, due) => return Err(due.unwrap_or(now)),
            }
        }
        state.next += 1;
        let number = state.next;
        let case = Arc::new(Case {
            since: now,
            is_turned_out: AtomicBool::new(false),
            turned_out: Event::new(),
            interrupts: OnceLock::new(),
        });
        state.waiting.insert(number, case.clone());
        drop(state);
        if let Some(oldest) = oldest {
            oldest.turn_out();
            self.log(format!(
                "turned out a connection of {} that had not shown who it is: there are more than \
                 {UNPROVED_MAX}",
                self.whose
            ));
        }
        Ok(Probation {
            unproved: self.clone(),
            number,
            case,
        })
    }

    /// Logs that somebody was refused, unless that was said too often just now.
    pub fn log(&self, message: String) {
        let mut said = Vec::new();
        {
            let now = self.env.now();
            let lines = &mut self.state.lock().lines;
            let is_over = lines
                .since
                .is_none_or(|since| now >= since.after(LINES_WITHIN));
            if is_over {
                let more = lines.count.saturating_sub(LINES_MAX);
                if let Some(last) = lines.unsaid.take() {
                    said.push(format!("{more} more lines like this one: {last}"));
                }
                (lines.since, lines.count) = (Some(now), 0);
            }
            lines.count = lines.count.saturating_add(1);
            match lines.count <= LINES_MAX {
                true => said.push(message),
                false => lines.unsaid = Some(message),
            }
        }
        for line in said {
            self.env.log(Severity::Warning, &line);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::session::world::WorldEnv;

    fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    fn entered(unproved: &Arc<Unproved>) -> Probation {
        match poll(pin!(unproved.enter())) {
            Poll::Ready(probation) => probation,
            Poll::Pending => panic!("there is no place"),
        }
    }

    #[test]
    fn the_oldest_makes_room_after_a_while() {
        let env = WorldEnv::default();
        let unproved = Arc::new(Unproved::new(Arc::new(env.clone()), "clients"));
        let first = entered(&unproved);
        let mut others: Vec<_> = (1..UNPROVED_MAX).map(|_| entered(&unproved)).collect();
        // Nobody was there for long: one more waits, until somebody has shown who it is.
        let mut waiting = pin!(unproved.enter());
        assert!(poll(waiting.as_mut()).is_pending());
        drop(others.pop());
        assert!(poll(waiting.as_mut()).is_ready());
        assert!(poll(pin!(first.turned_out())).is_pending());
        others.push(entered(&unproved));
        assert_eq!(unproved.count(), UNPROVED_MAX);

        let mut waiting = pin!(unproved.enter());
        assert!(poll(waiting.as_mut()).is_pending());
        env.0.pass(GRACE);
        let Poll::Ready(late) = poll(waiting.as_mut()) else {
            panic!("the oldest stays");
        };
        assert!(poll(pin!(first.turned_out())).is_ready());
        assert!(poll(pin!(late.turned_out())).is_pending());
        // One with a session is told so by an interrupt, whenever it comes to have one.
        let interrupts: Arc<Interrupts> = Arc::default();
        let proving = Proving::new(first, &interrupts);
        assert_eq!(interrupts.take(), Some(Interrupt::Terminate));
        proving.done();
        drop((late, others));
        assert_eq!(unproved.count(), 0);
    }
}
