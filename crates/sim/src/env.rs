//! A host's access to the simulated world: the [`Env`] that whole nodes run on.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use base::env::{BoxFuture, Disk, Env, Instant, Net, Reactor, Severity, TaskStart};
use base::ids::Timestamp;

use crate::disk::SimDisk;
use crate::net::SimNet;
use crate::world::{self, HostId, Incarnation, Shared, Timer};

/// Wall clocks begin at 2026-01-01 00:00 UTC.
const WALL_CLOCK_START_MICROS: i64 = 820_454_400_000_000;

/// Reactors for sessions on each simulated node.
const SESSION_REACTORS: usize = 2;

/// One life of one host.
#[derive(Clone)]
pub(crate) struct SimEnv {
    shared: Arc<Shared>,
    host: HostId,
    incarnation: Incarnation,
}

impl SimEnv {
    pub fn new(shared: Arc<Shared>, host: HostId, incarnation: Incarnation) -> SimEnv {
        SimEnv {
            shared,
            host,
            incarnation,
        }
    }
}

impl Env for SimEnv {
    fn now(&self) -> Instant {
        Instant(self.shared.state().clock(self.host))
    }

    fn wall_clock(&self) -> Timestamp {
        let state = self.shared.state();
        let micros = (state.now / 1_000) as i64 + state.hosts[self.host.0].wall_error;
        Timestamp(WALL_CLOCK_START_MICROS + micros)
    }

    fn random(&self) -> u64 {
        self.shared.state().chance.bits()
    }

    fn secret(&self) -> [u8; 32] {
        base::env::no_secret(self.random())
    }

    fn sleep_until(&self, deadline: Instant) -> BoxFuture<'static, ()> {
        Box::pin(Sleep {
            shared: self.shared.clone(),
            host: self.host,
            deadline: deadline.0,
            timer: None,
        })
    }

    fn spawn(&self, reactor: Reactor, name: &'static str, start: TaskStart) {
        self.shared
            .spawn(self.host, self.incarnation, reactor, name, start);
    }

    fn session_reactors(&self) -> usize {
        SESSION_REACTORS
    }

    fn disk(&self) -> Arc<dyn Disk> {
        Arc::new(SimDisk::new(
            self.shared.clone(),
            self.host,
            self.incarnation,
        ))
    }

    fn net(&self) -> Arc<dyn Net> {
        Arc::new(SimNet::new(
            self.shared.clone(),
            self.host,
            self.incarnation,
        ))
    }

    fn log(&self, severity: Severity, message: &str) {
        world::log(&self.shared.state(), self.host, severity, message);
    }

    fn contains_panics(&self) -> bool {
        false
    }

    fn stop_node(&self, reason: &str) {
        let mut state = self.shared.state();
        if !state.lives(self.host, self.incarnation) {
            return;
        }
        world::log(&state, self.host, Severity::Error, reason);
        state.note("stop", self.host.0 as u64);
        state.deaths = true;
        let host = &mut state.hosts[self.host.0];
        host.alive = false;
        host.stopped = Some(reason.to_owned());
    }
}

/// Ready when the host's clock shows the deadline.
pub(crate) struct Sleep {
    shared: Arc<Shared>,
    host: HostId,
    deadline: u64,
    timer: Option<(u64, u64)>,
}

impl Sleep {
    /// Ready after so many nanoseconds of world time.
    pub fn world(shared: Arc<Shared>, host: HostId, nanos: u64) -> Sleep {
        let deadline = shared.state().clock(host) + nanos;
        Sleep {
            shared,
            host,
            deadline,
            timer: None,
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let shared = self.shared.clone();
        let mut state = shared.state();
        if let Some(timer) = self.timer.take() {
            state.cancel_timer(timer);
        }
        let left = state.until_clock(self.host, self.deadline);
        if left == 0 {
            return Poll::Ready(());
        }
        let due = state.now + left;
        self.timer = Some(state.add_timer(due, Timer::Wake(cx.waker().clone())));
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(timer) = self.timer.take() {
            self.shared.state().cancel_timer(timer);
        }
    }
}
