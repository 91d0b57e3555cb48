//! The group task: ticks, records that gathered, entries that are applied in turns.

use std::future::Future;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use base::env::Instant;
use base::limits::OFF_FLUSH_DELAY;
use base::turns::give_way;

use super::Group;

/// Commits within this time let the group task look often, so that it need not be woken for each.
const BUSY_FOR: Duration = Duration::from_millis(100);

impl Group {
    /// The group task.
    pub(super) async fn run(self: Arc<Self>) {
        let mut busy_until = Instant(0);
        let mut deadline = self.turn(&mut busy_until);
        while !self.is_over() {
            self.sleep_or_work(deadline).await;
            deadline = self.turn(&mut busy_until);
        }
    }

    async fn sleep_or_work(&self, deadline: Instant) {
        let has_work = || self.shared.woken.load(Ordering::SeqCst) || self.is_over();
        if has_work() || self.env.now() >= deadline {
            // At least one turn for others between two of ours.
            return give_way().await;
        }
        let mut sleep = self.env.sleep_until(deadline);
        let mut work = self.work.until(|| has_work().then_some(()));
        std::future::poll_fn(|cx| {
            let work = std::pin::Pin::new(&mut work).poll(cx);
            let sleep = sleep.as_mut().poll(cx);
            match work.is_ready() || sleep.is_ready() {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }

    /// One turn; returns when the next is due at the latest.
    fn turn(self: &Arc<Self>, busy_until: &mut Instant) -> Instant {
        self.shared.woken.store(false, Ordering::SeqCst);
        let now = self.env.now();
        if self.shared.committed.swap(false, Ordering::SeqCst) {
            *busy_until = now.after(BUSY_FOR);
        }
        let busy = now < *busy_until;
        self.shared.busy.store(busy, Ordering::SeqCst);
        self.tend_catchup(now);
        let often = now.after(OFF_FLUSH_DELAY / 2);
        let mut core = self.lock();
        if core.failed || core.deaf {
            return often;
        }
        let mut late = Duration::ZERO;
        if !self.must_ask_first(&mut core) {
            late = now.since(core.consensus.next_tick());
            core.consensus.tick(now);
        }
        core.pace.tick(now);
        self.tend_condition(&mut core, late, now);
        self.tend_eagerness(&mut core, busy, now);
        if core.led.is_some() {
            self.note_visible(now);
        }
        self.tend_standbys(&mut core, now);
        self.tend_preference(&mut core, now);
        self.log_aborts(&mut core);
        self.pump(&mut core);
        let tick = match core.has_asked {
            true => core.consensus.next_tick(),
            false => often,
        };
        let tick = core.pace.sync_at().map_or(tick, |at| tick.min(at));
        match busy {
            true => tick.min(often),
            false => tick,
        }
    }
}
