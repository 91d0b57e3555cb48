//! How far a statement that commits as it goes may run ahead of what is durable.
//!
//! A COMMIT inside a DO block only adds to what the statement owes, which is paid before anything
//! leaves. So a long block would run ahead of its standbys without bound; `quorate.max_inflight`
//! says by how many commits at most.
//!
//! ```text
//! most 1000    commits …   500         1000         1500
//!                           └ mark A     └ mark B     └ mark C
//!                                        waits for A  waits for B
//! ```
//! There are never more than two such halves of which nothing is known.

use base::{coro, Debt, Durability, Result};

use super::Session;

/// The commits of the statement at work.
#[derive(Debug, Default)]
pub struct InFlight {
    /// Since the last mark.
    commits: u64,
    /// What was owed at the last mark.
    mark: Vec<(Debt, Durability)>,
}

impl Session {
    /// A statement that goes on has committed: waits, if too much of what it has committed is not
    /// durable at its level.
    pub(super) fn note_in_flight(&mut self) -> Result<()> {
        let most = self.shared.settings.parsed().max_in_flight;
        self.in_flight.commits += 1;
        if most == 0 || self.in_flight.commits < most.div_ceil(2) {
            return Ok(());
        }
        self.in_flight.commits = 0;
        let owed = self.owed.levels().to_vec();
        let before = std::mem::replace(&mut self.in_flight.mark, owed);
        for (debt, level) in before {
            let gate = &self.shared.engine.gate;
            if !gate.is_settled(&debt, level) {
                coro::wait(gate.settle(debt, level))??;
            }
        }
        Ok(())
    }

    /// Another message begins.
    pub(super) fn forget_in_flight(&mut self) {
        self.in_flight = InFlight::default();
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::sync::atomic::Ordering;
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};

    use base::coro;

    use crate::session::fake::FakeEngine;
    use crate::session::tests::{connect, run};

    /// How often a block of 100 commits waits, where nothing is durable before it is waited for.
    fn waits(bound: u64) -> u64 {
        let engine = FakeEngine::of_slow_disks();
        let waits = engine.waits.clone();
        let mut work = Box::pin(coro::run(Arc::default(), move || {
            let mut session = connect(&engine, "postgres", "postgres").unwrap();
            run(&mut session, "create table t (i int primary key)");
            run(&mut session, &format!("set quorate.max_inflight = {bound}"));
            let before = engine.waits.load(Ordering::Relaxed);
            let block = "do $$ begin for i in 1..100 loop insert into t values (i); commit; end loop; end $$";
            assert_eq!(run(&mut session, block), ["DO"]);
            before
        }));
        let mut cx = Context::from_waker(Waker::noop());
        let Poll::Ready(before) = work.as_mut().poll(&mut cx) else {
            panic!("nothing waits long")
        };
        waits.load(Ordering::Relaxed) - before
    }

    #[test]
    fn a_block_waits_for_every_half_of_what_it_may_be_ahead() {
        assert_eq!(waits(0), 0);
        assert_eq!(waits(1_000), 0);
        assert_eq!(waits(100), 1);
        assert_eq!(waits(10), 19);
    }
}
