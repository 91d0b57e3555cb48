//! When an idle session hears of notifications: at once, and whoever has its client learns in time how
//! far it has heard.
//!
//! A session whose channels are quiet has heard all the same. A new leader that takes it over must
//! know, since notifications are not kept for ever; so where another node has the client, it is told
//! every [`TOLD_EVERY`], if others have told one another something meanwhile.

use std::task::Context;
use std::time::Duration;

use base::coro;
use base::env::Instant;
use pg::seam::Sql;

use super::{Driver, End, Timer, Work};

/// How often whoever has the client is told how far a session has heard.
const TOLD_EVERY: Duration = Duration::from_secs(60);

const _: () = assert!(TOLD_EVERY.as_secs() * 5 <= kv::notifications::KEPT_SECONDS as u64);

/// When a session tells what it has heard without hearing anything.
#[derive(Default)]
pub(super) struct Hearing {
    timer: Timer,
    next: Option<Instant>,
}

impl<S: Sql> Driver<S> {
    /// Has an idle session tell its client what there is to hear, once all else has left.
    pub(super) fn start_hearing(&mut self, cx: &mut Context<'_>) -> bool {
        let may_tell = matches!(self.end, End::NotYet)
            && self.leaves_since.is_none()
            && self.channel.output.borrow().pending() == 0;
        let Work::Idle(session) = &mut self.work else {
            return false;
        };
        if !may_tell || !session.may_tell() || !session.listens() {
            return false;
        }
        let is_due = session.poll_hearing(cx).is_ready();
        let deadline = self.passed_on.then(|| {
            let now = self.env.now();
            *self.hearing.next.get_or_insert(now.after(TOLD_EVERY))
        });
        let is_time = self.hearing.timer.passed(&*self.env, deadline, cx);
        if is_time {
            self.hearing.next = None;
        }
        let tells = is_due || is_time && session.is_ahead();
        if !tells {
            return is_time;
        }
        match std::mem::replace(&mut self.work, Work::Ended) {
            Work::Idle(session) => {
                let run = coro::run(self.interrupts.clone(), move || pg::session::hear(session));
                self.work = Work::Running(run);
            }
            other => self.work = other,
        }
        true
    }
}
