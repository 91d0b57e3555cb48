//! Snapshots on a replica that need not lead.
//!
//! A standby shows what it has applied, committed or not; that the reply waits until its commit
//! index covers what it rests on is the gate's business. Nothing is asked of the leader, unless the
//! session wants what it reads to be no older than some time:
//!
//! ```text
//! n3 (standby), at most 200 ms                n1 (leads)
//!   asks, at 12.000 s on its clock ─────────►   visible (7, 4711), and then: has it the lease?
//!   ◄───────────────────────────── (7, 4711), and what was asked
//!   whatever was acknowledged before 12.000 s is in the log of term 7's leader at or below 4711:
//!   so a snapshot at or above (7, 4711) is good for that session until 12.200 s
//! ```
//! Only n3's clock is read, and a leader without the lease does not answer. A leader notes the same
//! for itself again and again: once it leads no more, it knows how old its data is as others do.
//!
//! # Why positions are compared, and not LSNs
//! n3 may have led in term 6, and have a tail up to LSN 4720 that nobody else has and that has not
//! been cut yet, though it hears n1 already. So the newest entry that it has applied, (t, l), is held
//! against the answer (T, L) as Raft compares logs, by the term first:
//!
//! - t = T: its log up to l is that of T's leader, and has all up to L where l ≥ L.
//! - t > T: its log up to l is that of t's leader. That one was elected after n1 had answered, for n1
//!   held the lease then; so its log has whatever had been acknowledged, below its own entries.
//! - t < T: nothing is known, however large l is.
//!
//! # Invariants
//! - The position of such a snapshot has the term of the entry at its end, so that whoever takes
//!   that entry out of the log does so in a later term.
//! - What is read after the log was cut is not shown ([`StandbyView`]): the trees may be another
//!   history's by then. The count of cuts rises before the trees change.

use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

use base::engine::{Direction, RowBatch};
use base::env::{Instant, LocalBoxFuture, Reactor};
use base::sync::{Event, Mutex};
use base::{coro, Error, KeyRange, Lsn, NodeId, Position, Result, SqlState, TreeId};
use storage::{Read, Scanned, Store};

use super::core::Core;
use super::{not_leader, within, Group, Snapshot};
use crate::frame::Frame;
use crate::txn::View;

/// A standby that cannot learn how old its data is gives a session up after this.
const FRESHNESS_WAIT_MAX: Duration = Duration::from_secs(10);

/// An answer that has not come by then is asked for again.
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// How often it is looked whether enough was applied.
const APPLY_LOOK_EVERY: Duration = Duration::from_millis(1);

/// What a standby knows of how new its data is.
#[derive(Debug, Default)]
pub struct Freshness {
    state: Mutex<Known>,
    answered: Event,
}

#[derive(Debug, Default)]
struct Known {
    /// When the leader was asked last.
    asked: Option<Instant>,
    /// The newest answer: when it was asked for, and the position that the leader showed then, in
    /// its own term.
    answer: Option<(Instant, Position)>,
}

/// A snapshot of a replica, and the store that it is of.
#[derive(Clone, Debug)]
pub struct StandbyView {
    snapshot: Snapshot,
    store: Arc<Store>,
    /// How often the log had been cut when it was taken.
    cuts: u64,
}

impl StandbyView {
    /// The trees that it shows, in order.
    pub(super) fn trees(&self) -> Vec<TreeId> {
        self.store.trees_at(self.snapshot.lsn())
    }

    /// The first of them after one.
    pub(super) fn tree_after(&self, tree: TreeId) -> Option<TreeId> {
        self.trees().into_iter().find(|other| *other > tree)
    }

    /// Fails if the log was cut since it was taken.
    ///
    /// # Errors
    /// 40001.
    pub(super) fn check(&self) -> Result<()> {
        match self.snapshot.group.shared.cuts.load(Ordering::SeqCst) == self.cuts {
            true => Ok(()),
            false => Err(
                Error::serialization("canceling statement due to conflict with recovery")
                    .with_detail(
                        "The log was cut by another leader while the statement was reading.",
                    ),
            ),
        }
    }
}

impl View for StandbyView {
    fn position(&self) -> Position {
        self.snapshot.position()
    }

    fn get(&self, tree: TreeId, key: &[u8], at: Lsn, row: &mut Vec<u8>) -> Result<Read> {
        let read = self.store.get(tree, key, at, row);
        self.check()?;
        read
    }

    fn scan(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        at: Lsn,
        limit: usize,
        batch: &mut RowBatch,
    ) -> Result<Scanned> {
        let scanned = self.store.scan(tree, range, direction, at, limit, batch);
        self.check()?;
        scanned
    }
}

impl Group {
    /// What this replica has applied, whether it leads or not. With `most`, waits (inside a
    /// coroutine) until that is no older.
    ///
    /// # Errors
    /// 57P01 when the node stops; 55000 when nobody says how old it is; the interrupt that ended
    /// the wait.
    pub fn standby_view(self: &Arc<Self>, most: Option<Duration>) -> Result<StandbyView> {
        if let Some(most) = most {
            self.wait_until_fresh(most)?;
        }
        let core = self.lock();
        if core.failed || core.deaf || self.is_over() {
            return Err(not_leader());
        }
        self.view_at(&core, core.applied).ok_or_else(not_leader)
    }

    /// What this replica held at a position that it has applied, and of which all is kept; none when
    /// it is being closed. Called with the latch held.
    pub(super) fn view_at(&self, core: &Core, position: Position) -> Option<StandbyView> {
        let group = self.me.upgrade()?;
        assert!(
            position.lsn <= core.applied.lsn,
            "a view at {}, and {} is applied",
            position.lsn,
            core.applied.lsn
        );
        let (_, ()) = self.snapshots.take(|| (position.lsn, ()));
        Some(StandbyView {
            snapshot: Snapshot { group, position },
            store: self.store(),
            cuts: self.shared.cuts.load(Ordering::SeqCst),
        })
    }

    fn wait_until_fresh(self: &Arc<Self>, most: Duration) -> Result<()> {
        let since = self.env.now();
        let give_up = since.after(FRESHNESS_WAIT_MAX);
        loop {
            let now = self.env.now();
            let answer = self.freshness.state.lock().answer;
            // What was asked for by this session is as new as can be had.
            let fresh = answer.filter(|(asked, _)| *asked >= since || asked.after(most) >= now);
            if let Some((_, newest)) = fresh {
                // By term, then by LSN.
                if self.lock().applied >= newest {
                    return Ok(());
                }
                coro::wait(base::env::sleep(&*self.env, APPLY_LOOK_EVERY))?;
            } else {
                self.ask_leader(since, now);
                let answered = self.freshness.answered.until(|| {
                    let known = self.freshness.state.lock();
                    let newer = known.answer.is_some_and(|(asked, _)| asked >= since);
                    (newer || self.is_over()).then_some(())
                });
                coro::wait(within(&*self.env, ASK_AGAIN, answered))?;
            }
            if now >= give_up || self.is_over() {
                return Err(Error::new(
                    SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                    "the leader does not say how old the data of this standby is",
                ));
            }
        }
    }

    /// Asks how far the leader is, unless somebody has lately.
    fn ask_leader(&self, since: Instant, now: Instant) {
        if self.leading().is_some() {
            // This replica leads by now: it need not ask, but must be sure.
            return self.note_visible(now);
        }
        {
            let mut known = self.freshness.state.lock();
            let lately = |asked: Instant| asked >= since && now < asked.after(ASK_AGAIN);
            if known.asked.is_some_and(lately) {
                return;
            }
            known.asked = Some(now);
        }
        if let Some(leader) = self.leader() {
            let frame = Frame::AskVisible { asked: now.0 };
            self.transport.send(leader, frame.encode(self.config.group));
            self.transport.flush();
        }
    }

    /// Notes how far this node is while it leads for sure: should it lead no longer, that is how new
    /// its data is. `now` was read before.
    pub(super) fn note_visible(&self, now: Instant) {
        let visible = self.visible();
        // As in [`Group::answer_visible`].
        if self.standing_parts().is_empty() && self.holds_lease() {
            self.note_fresh(now, visible);
        }
    }

    /// A standby asks how far this node is, which says so if it leads for sure. What is prepared may be
    /// known to be committed: it is resolved first, or the standby would not show it.
    pub(super) fn answer_visible(&self, to: NodeId, asked: u64) {
        let standing = self.standing_parts();
        let (Some(group), false) = (self.me.upgrade(), standing.is_empty()) else {
            return self.answer_visible_now(to, asked);
        };
        let answer = move || -> LocalBoxFuture<'static, ()> {
            Box::pin(async move {
                group.resolved(&standing).await;
                group.answer_visible_now(to, asked);
            })
        };
        self.env
            .spawn(Reactor::Group, "answer a standby", Box::new(answer));
    }

    fn answer_visible_now(&self, to: NodeId, asked: u64) {
        let visible = self.visible();
        // The lease is looked at after the position.
        if !self.holds_lease() {
            return;
        }
        let frame = Frame::Visible { asked, visible };
        self.transport.send(to, frame.encode(self.config.group));
        self.transport.flush();
    }

    /// The leader says how far it was after it was asked.
    pub(super) fn take_visible(&self, asked: u64, visible: Position) {
        self.note_fresh(Instant(asked), visible);
    }

    fn note_fresh(&self, asked: Instant, visible: Position) {
        {
            let mut known = self.freshness.state.lock();
            if known.answer.is_some_and(|(newest, _)| newest >= asked) {
                return;
            }
            known.answer = Some((asked, visible));
        }
        self.freshness.answered.notify_all();
    }
}
