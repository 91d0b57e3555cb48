//! Transactions across groups: the host of the crate `spanning`, for one group on one node.
//!
//! A commit is one append in each group that the transaction has written in, all at once
//! ([`commit_across`]): its parts ([`crate::parts`]). The reply rests on all of their positions, and
//! nobody waits for anything else. Afterwards the groups' leaders tell each other what they have:
//!
//! ```text
//! session            part of group 1 at LSN 70, of group 2 at LSN 31      reply rests on both
//! group 2, n1 leads  31 is committed ─► "prepared, I propose 98" ─► leader of group 1
//! group 1, n1 leads  70 is committed, so is 31: committed at 105; resolves at LSN 71
//!                    "committed at 105" ─► leader of group 2, which resolves at LSN 32
//! ```
//! [`Across`] is what a group's leader remembers for that. What it says is carried out by a task of the
//! engine: messages go to the leaders of other groups, entries are appended by transactions of their
//! own. A new leader has the parts from its log, with their locks, before it serves anybody, and asks
//! for the rest.
//!
//! # Invariants
//! - While a part is being appended nobody is told that it is not there.
//! - Before a commit is resolved in a group the clock of the group is past its timestamp.
//! - What is carried out twice changes nothing the second time.
//!
//! Sessions come here through [`crate::engine::database`].
//!
//! # What it leaves out
//! The levels below `on` do not exist across groups.

mod host;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use base::engine::{Gate, TxnOptions};
use base::env::{LocalBoxFuture, Reactor};
use base::{coro, Debt, Durability, Error, GroupId, Result, SqlState, Term, Timestamp};
use spanning::{Event, Flushed, Ledger, Message, Outcome, Output, SpanningId};

use super::branch::prepare::{Elsewhere, Handed, Preparing};
use super::branch::{agree, Branch, Branching};
use super::KvEngine;
use crate::frame::Frame;
use crate::group::{not_leader, within, Group};
use crate::locks::{Party, TxnLocks};
use crate::parts::name_of;
use crate::txn::{Resolution, Txn};
use host::ledger;
pub(super) use host::Across;
pub use host::Neighbours;

/// What nobody has answered is said again after this.
const TICK: Duration = Duration::from_millis(100);

/// Commits what a transaction has written in several groups: on return its parts are in their logs,
/// and the commit rests on the debt returned. It is visible, and its locks are given up, soon after
/// that is settled. `heard` is the greatest timestamp that its session has heard of.
///
/// # Errors
/// 40001 when one of the groups has another leader; as [`base::engine::Transaction::prepare`]. It is
/// not committed then, and never will be.
pub fn commit_across(
    branches: Vec<Branch>,
    heard: Timestamp,
    durability: Durability,
) -> Result<Debt> {
    let mut parts = branches.into_iter();
    let none = || Error::internal("a transaction across groups has written in none");
    let coordinator = parts.next().ok_or_else(none)?;
    let others = parts.map(|branch| Box::new(branch) as Box<dyn Branching>);
    let appended = append_parts(coordinator, others.collect(), heard, durability)?;
    Ok(appended.debt)
}

/// A transaction whose parts are in the logs of its groups, or some of them are.
pub(super) struct Appended {
    pub id: SpanningId,
    /// What it rests on, as far as that is known.
    pub debt: Debt,
    /// Its parts in groups that other nodes lead. If there are any, somebody has to wait for what
    /// becomes of it ([`KvEngine::await_decision`]).
    pub elsewhere: Vec<Elsewhere>,
    /// What one of those had against it, or that its answer was lost.
    pub refusal: Option<Error>,
}

/// Appends a transaction's parts; `coordinator` is the branch in the group that coordinates it. What
/// other nodes have against their parts is in the answer, since this one's is in the log by then.
///
/// # Errors
/// As [`commit_across`].
pub(super) fn append_parts(
    coordinator: Branch,
    others: Vec<Box<dyn Branching>>,
    heard: Timestamp,
    durability: Durability,
) -> Result<Appended> {
    let own = coordinator.participant()?;
    let mut participants = vec![own];
    for other in &others {
        participants.push(other.participant()?);
    }
    let engine = coordinator.engine.clone();
    let (id, unfinished) = engine.across.coordinate(own.term, &participants, heard)?;
    // Whatever ends this function early refuses what is not appended then; and while it lasts nobody
    // else asks for the others' parts.
    let mut appending = Appending::of(&engine, id);
    let preparing = Preparing {
        id,
        unfinished,
        participants,
        heard,
        durability,
    };
    // The own part comes last here: without it none of the others is ever committed, so an error is
    // true.
    let (mut debt, mut asked) = (Debt::NONE, Vec::new());
    for other in others {
        match other.prepare_part(&preparing)? {
            Handed::Appended(rests_on) => debt.merge(&rests_on),
            Handed::Asked(part) => asked.push(part),
        }
    }
    let awaits = !asked.is_empty();
    if awaits {
        engine.across.expect_decision(id);
    }
    engine.group.pass(heard);
    let txn = coordinator.txn;
    let own = txn.prepare_part(id, &preparing.participants, durability);
    debt.merge(&own.inspect_err(|_| engine.across.forget_decided(id))?);
    appending.done();
    if awaits {
        let first = engine.group.id();
        let own = debt.groups().filter(|part| part.group == first);
        own.for_each(|part| engine.push(Debt::of(first, part.position)));
    }
    let (mut elsewhere, mut refusal) = (Vec::new(), None);
    for part in asked {
        match part.answered() {
            Ok((rests_on, part)) => {
                debt.merge(&rests_on);
                elsewhere.push(part);
            }
            Err(error) => refusal = refusal.or(Some(error)),
        }
    }
    Ok(Appended {
        id,
        debt,
        elsewhere,
        refusal,
    })
}

/// Begins a statement that reads all of these branches' groups: it sees one state of them, with
/// everything that was committed before. `heard` is the greatest timestamp that its session has heard
/// of; the answer is what it has heard of then.
///
/// # Errors
/// As [`base::engine::Transaction::begin_statement`]; 40001 when too much is committed meanwhile.
pub fn begin_statement_across(branches: &mut [Branch], heard: Timestamp) -> Result<Timestamp> {
    let mut all: Vec<_> = (branches.iter_mut())
        .map(|branch| branch as &mut dyn Branching)
        .collect();
    let timestamp = agree(&mut all, heard)?;
    for branch in all {
        branch.take_view()?;
    }
    Ok(timestamp)
}

/// A part that is about to be appended. Dropped before it is [`done`](Appending::done), it is refused.
pub(super) struct Appending {
    engine: Arc<KvEngine>,
    id: SpanningId,
    is_done: bool,
}

impl Appending {
    pub(super) fn of(engine: &Arc<KvEngine>, id: SpanningId) -> Appending {
        engine.begin_tending();
        Appending {
            engine: engine.clone(),
            id,
            is_done: false,
        }
    }

    /// It is in the log.
    pub(super) fn done(&mut self) {
        self.is_done = true;
    }
}

impl Drop for Appending {
    fn drop(&mut self) {
        let engine = &self.engine;
        match self.is_done {
            true => engine.across.appended(self.id),
            false => {
                let (ledger, group) = (engine.ledger(), engine.group.id());
                engine.across.not_appended(&ledger, group, self.id);
            }
        }
        engine.group.standing_changed().notify_all();
    }
}

impl KvEngine {
    pub(super) fn ledger(&self) -> Ledger {
        ledger(&self.group)
    }

    /// Whether anything is prepared, or decided across groups, in the log.
    pub(super) fn has_standing(&self) -> bool {
        let decisions = self.group.decisions().newest();
        let prepared = self.group.prepared().newest();
        !decisions.is_empty() || prepared.parts().next().is_some()
    }

    /// Begins to carry out what the group's leader says, if that has not begun. Groups that have no
    /// part in any transaction across groups do without.
    pub(super) fn begin_tending(self: &Arc<Self>) {
        if self.across.is_first_to_tend() {
            let this = self.clone();
            let tend = move || -> LocalBoxFuture<'static, ()> { Box::pin(this.tend_across()) };
            let env = self.group.env();
            env.spawn(Reactor::Group, "transactions across groups", Box::new(tend));
        }
    }

    /// A message from the leader of another group.
    pub(crate) fn receive_across(self: &Arc<Self>, from: GroupId, message: Message) {
        self.begin_tending();
        // In this order, as below; and here too, for what is answered rests on what is committed, and
        // where nothing else happens nobody says so.
        let commit = self.group.committed();
        let ledger = self.ledger();
        self.across.committed(&ledger, commit);
        self.across.receive(&ledger, from, message);
        self.group.standing_changed().notify_all();
    }

    /// Carries out what the group's leader has to say and to append, as long as the group runs.
    pub(super) async fn tend_across(self: Arc<Self>) {
        let mut tried_again = Vec::new();
        while !self.group.is_over() {
            while let Some(output) = self.across.next() {
                if let Err(output) = self.carry_out(output).await {
                    tried_again.push(output);
                }
            }
            let seen = self.standing();
            // In this order: whatever is committed by then is in the ledger.
            let commit = self.group.committed();
            let ledger = self.ledger();
            self.across.committed(&ledger, commit);
            if self.across.has_work() {
                continue;
            }
            let is_new = || {
                let is_new = self.across.has_work() || self.standing() != seen;
                (is_new || self.group.is_over()).then_some(())
            };
            let news = self.group.standing_changed().until(is_new);
            if self.across.is_idle(&ledger) && tried_again.is_empty() {
                news.await;
            } else if within(&**self.group.env(), TICK, news).await.is_none() {
                for output in tried_again.drain(..) {
                    let _ = self.carry_out(output).await;
                }
                self.across.tick(&self.ledger());
            }
        }
    }

    /// What changes when there may be something to say.
    fn standing(&self) -> (Option<Term>, u64, u64) {
        let (prepared, decisions) = (self.group.prepared(), self.group.decisions());
        let leading = self.group.leading();
        (leading, prepared.version(), decisions.version())
    }

    /// Does what the leader of the group says; gives back what must be tried again.
    async fn carry_out(self: &Arc<Self>, output: Output) -> Result<(), Output> {
        match &output {
            Output::Send { to, message } => self.tell(*to, message.clone()),
            Output::Decided { .. } => self.group.standing_changed().notify_all(),
            Output::Append { event, .. } => {
                let (engine, event) = (self.clone(), event.clone());
                let appended = coro::run(Arc::default(), move || match event {
                    Event::Resolution { id, outcome } => engine.resolve_part(id, outcome),
                    Event::Forgotten { id } => engine.forget_decision(id),
                    Event::Local | Event::Prepare { .. } | Event::Ceiling(_) => Ok(()),
                });
                if appended.await.is_err() && self.group.leading().is_some() {
                    return Err(output);
                }
            }
        }
        Ok(())
    }

    /// Says something to the leader of another group, as far as is known who that is.
    fn tell(&self, to: GroupId, message: Message) {
        let Some(other) = self.across.neighbour(to) else {
            return;
        };
        let from = self.group.id();
        if other.group.leading().is_some() {
            other.receive_across(from, message);
        } else if let Some(node) = other.group.leader() {
            let frame = Frame::Across { from, message };
            other.group.send(node, &frame);
        }
    }

    /// A transaction of the group's own.
    fn begin_own(&self, locks: Option<TxnLocks>) -> Result<Txn<Arc<Group>>> {
        let open = self.group.open_transaction()?;
        let term = self.group.leading().ok_or_else(not_leader)?;
        let id = self.next_id(term)?;
        let mut locks =
            locks.unwrap_or_else(|| TxnLocks::new(self.locks.clone(), Party::Transaction(id)));
        locks.bind(term)?;
        let options = TxnOptions::default();
        let mut txn = Txn::new(self.group.clone(), id, locks, &self.serial, options);
        txn.set_open(open);
        Ok(txn)
    }

    /// Has what a debt in this group rests on committed, though nobody waits for it here.
    pub(super) fn push(&self, debt: Debt) {
        let mut settled = self.settle(debt, Durability::On);
        // What is to leave leaves now.
        let polled = Pin::new(&mut settled).poll(&mut Context::from_waker(Waker::noop()));
        if polled.is_pending() {
            let settle = move || -> LocalBoxFuture<'static, ()> {
                Box::pin(async move {
                    // Whoever waits for it hears of it by itself.
                    let _ = settled.await;
                })
            };
            let env = self.group.env();
            env.spawn(Reactor::Group, "commit of a part", Box::new(settle));
        }
    }

    /// Waits until a part of this group, which this node leads, is resolved; until the wait is
    /// interrupted, or another leads, at the longest: it is decided all the same. What resolves it is
    /// owed.
    pub(super) fn await_resolution(&self, id: SpanningId, debt: &mut Debt) {
        let name = name_of(id);
        let resolved = || {
            let stands = self.group.prepared().newest().get(&name).is_some();
            (!stands || self.group.leading().is_none()).then_some(())
        };
        coro::wait_unless_interrupted(self.group.standing_changed().until(resolved));
        debt.add(self.group.id(), self.group.visible());
    }

    /// Waits until it is known what becomes of a transaction that this group coordinates; none where
    /// this node leads no longer, or the wait is interrupted. Of an abort that is not all
    /// ([`KvEngine::await_abort`]).
    pub(super) fn await_decision(
        &self,
        id: SpanningId,
        elsewhere: &[Elsewhere],
    ) -> Option<Outcome> {
        // Whoever leads again in another term remembers nothing of it.
        let decided = || match self.across.decided(id) {
            Some(outcome) => Some(Some(outcome)),
            None => (self.group.leading() != Some(id.term)).then_some(None),
        };
        let mut flushed: Vec<_> = elsewhere
            .iter()
            .map(|part| Some(Box::pin(part.flushed(id))))
            .collect();
        let mut news = self.group.standing_changed().until(decided);
        let known = std::future::poll_fn(|cx| {
            for part in &mut flushed {
                let polled = part.as_mut().map(|part| part.as_mut().poll(cx));
                if let Some(Poll::Ready(flushed)) = polled {
                    *part = None;
                    self.count_flushed(&flushed);
                }
            }
            Pin::new(&mut news).poll(cx)
        });
        let outcome = coro::wait_unless_interrupted(known);
        self.across.forget_decided(id);
        outcome.flatten()
    }

    /// Waits until the group's log has that a transaction is aborted, for good; false where this node
    /// leads no longer, or the wait is interrupted. Before, the abort need not be true: a leader that has
    /// lost its group without knowing may take for refused what is over and forgotten.
    pub(super) fn await_abort(&self, id: SpanningId) -> bool {
        let name = name_of(id);
        let leads = || self.group.leading() == Some(id.term);
        let resolved = || {
            let stands = self.group.prepared().newest().get(&name).is_some();
            (!stands || !leads()).then_some(())
        };
        let news = self.group.standing_changed().until(resolved);
        let was_resolved = coro::wait_unless_interrupted(news).is_some();
        // In this order: what was resolved in its term, was so at this position.
        let newest = self.group.visible();
        if !was_resolved || newest.term != id.term {
            return false;
        }
        let settled = self.settle(Debt::of(self.group.id(), newest), Durability::On);
        matches!(coro::wait_unless_interrupted(settled), Some(Ok(())))
    }

    /// Nodes have parts on disk.
    fn count_flushed(&self, flushed: &[Flushed]) {
        let ledger = self.ledger();
        for flushed in flushed {
            self.across.flushed(&ledger, *flushed);
        }
        self.group.standing_changed().notify_all();
    }

    /// Makes the changes of a part, or drops them; nothing when it is not there any more.
    fn resolve_part(&self, id: SpanningId, outcome: Outcome) -> Result<()> {
        let name = name_of(id);
        let mut resolving = match self.prepared.begin(&name, &self.locks) {
            Err(error) if error.state() == SqlState::UNDEFINED_OBJECT => return Ok(()),
            resolving => resolving?,
        };
        let newest = self.group.prepared().newest();
        let Some(header) = newest.get(&name) else {
            return Ok(());
        };
        if let Outcome::Committed(at) = outcome {
            self.group.pass(at);
        }
        let mut txn = self.begin_own(Some(resolving.locks()))?;
        let commits = matches!(outcome, Outcome::Committed(_));
        if let Some(ticket) = resolving.ticket().filter(|_| commits) {
            txn.set_resolves(ticket);
        }
        txn.resolve(header, Resolution::Decided(outcome), Durability::On)?;
        resolving.done(commits);
        // Readers wait for it.
        self.group.standing_changed().notify_all();
        Ok(())
    }

    /// Nobody will ask any more what became of a transaction.
    fn forget_decision(&self, id: SpanningId) -> Result<()> {
        self.begin_own(None)?.forget_decision(id)
    }
}
