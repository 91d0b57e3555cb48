//! The gate: whether a reply may leave, given what it rests on and what replicas have.
//!
//! A reply rests on a [`Position`]: an LSN and the term of the leader under which it was seen.
//! For each level there is one number, the *satisfied* LSN, that the group computes from
//! watermarks; a position at or below it is settled. Waiters stand in one queue per level, ordered
//! by LSN, so that whoever raises the number wakes exactly those it releases.
//!
//! # Cuts
//! A failover may take back the end of the log. An LSN then names another entry than before, which
//! is why positions carry a term:
//!
//! ```text
//! term 1   1 2 3 4 5 6          a reply rests on (1, 6), another on (1, 4)
//! term 2   1 2 3 4 ┊ 5' 6' 7'   cut: term 2, to 4
//!          (1, 4) goes on waiting, and is settled once 4 is;  (1, 6) never happened: 40001
//! ```
//!
//! A position of an older term above a cut is void. Where a replica was rebuilt from a checkpoint
//! its own history above its last commit index cannot be compared any more: such positions are
//! *unknown* (08007).
//!
//! # Invariants
//! - Cuts are kept in ascending order of term and of LSN: a later cut makes earlier ones at or
//!   above it superfluous.
//! - The commit index never goes back. The levels' numbers rise within a term, and are set anew
//!   when the term changes or the log is cut.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use base::{Durability, Error, ErrorClass, Lsn, Position, Result, SqlState, Term};

// Not `base::`: a model checker's may be beside this very file (`model.rs`).
use super::sync::atomic::{AtomicU64, Ordering};
use super::sync::Mutex;

/// Cuts that are remembered; positions of terms before the oldest of them are unknown.
const CUTS_MAX: usize = 1_024;

const LEVELS: usize = Durability::ALL.len();

/// For each level the LSN up to which it is satisfied.
pub type Satisfied = [Lsn; LEVELS];

/// What the end of a log lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cut {
    term: Term,
    to: Lsn,
    /// Whether what was lost is known to be in no history.
    known: bool,
}

/// What is known about a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The reply may leave.
    Settled,
    /// Not yet.
    Waits,
    /// A failover took it back.
    TakenBack,
    /// Nobody can tell any more.
    Unknown,
}

/// Decides when replies may leave.
#[derive(Debug, Default)]
pub struct Gate {
    state: Mutex<State>,
    /// What `state` says of each level and the term of the newest cut, for the decision that most
    /// replies get, without a latch. Both are set before a position of a new term can exist.
    satisfied: [AtomicU64; LEVELS],
    newest_cut: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    commit: Lsn,
    satisfied: Satisfied,
    cuts: Vec<Cut>,
    /// Terms below this had cuts that were forgotten.
    forgotten_below: Term,
    queues: [BTreeMap<(Lsn, u64), Waker>; LEVELS],
    next_waiter: u64,
    eager: bool,
    closed: bool,
}

impl State {
    fn verdict(&self, position: Position, level: Durability) -> Verdict {
        if position.lsn == Lsn::ZERO {
            return Verdict::Settled;
        }
        // The oldest cut of a later term than the position's lies lowest.
        let later = self.cuts.iter().find(|cut| cut.term > position.term);
        if let Some(cut) = later.filter(|cut| cut.to < position.lsn) {
            return match cut.known {
                true => Verdict::TakenBack,
                false => Verdict::Unknown,
            };
        }
        if level == Durability::Off || position.lsn <= self.satisfied[level as usize] {
            return match position.term < self.forgotten_below {
                true => Verdict::Unknown,
                false => Verdict::Settled,
            };
        }
        match self.closed {
            true => Verdict::Unknown,
            false => Verdict::Waits,
        }
    }

    /// Takes the waiters at or below the satisfied positions out of their queues.
    fn release(&mut self, released: &mut Vec<Waker>) {
        for (queue, satisfied) in self.queues.iter_mut().zip(self.satisfied) {
            let first = queue.first_key_value().map(|((lsn, _), _)| *lsn);
            if first.is_none_or(|lsn| lsn > satisfied) {
                continue;
            }
            let rest = queue.split_off(&(satisfied.next(), 0));
            released.extend(std::mem::replace(queue, rest).into_values());
        }
    }

    fn everyone(&mut self) -> Vec<Waker> {
        let queues = std::mem::take(&mut self.queues);
        queues.into_iter().flat_map(BTreeMap::into_values).collect()
    }
}

impl Gate {
    /// A gate of a group whose commit index is known to be this.
    pub fn new(commit: Lsn) -> Gate {
        let gate = Gate::default();
        gate.change_term(commit, [commit; LEVELS]);
        gate
    }

    /// What is known about a position.
    pub fn verdict(&self, position: Position, level: Durability) -> Verdict {
        self.state.lock().verdict(position, level)
    }

    /// Whether a reply may leave now. Never waits.
    pub fn is_settled(&self, position: Position, level: Durability) -> bool {
        // In this order: what is satisfied by entries that came after a cut shows the cut.
        let satisfied = self.satisfied[level as usize].load(Ordering::Acquire);
        let uncut = position.term.0 >= self.newest_cut.load(Ordering::Acquire);
        if uncut && position.lsn.0 <= satisfied {
            return true;
        }
        self.verdict(position, level) == Verdict::Settled
    }

    /// Ready when the reply may leave or never will.
    pub fn settle(self: &Arc<Self>, position: Position, level: Durability) -> Settle {
        Settle {
            gate: self.clone(),
            position,
            level,
            id: None,
        }
    }

    /// The group has come so far. Within a term the numbers only rise. Whom that releases is left
    /// in `released`, for the caller to wake.
    pub fn raise(&self, commit: Lsn, satisfied: Satisfied, released: &mut Vec<Waker>) {
        self.set(commit, satisfied, Lsn::max, released);
    }

    /// The term has changed: the levels' numbers may go back.
    pub fn change_term(&self, commit: Lsn, satisfied: Satisfied) {
        let mut released = Vec::new();
        self.set(commit, satisfied, |_, new| new, &mut released);
        released.into_iter().for_each(Waker::wake);
    }

    fn set(
        &self,
        commit: Lsn,
        satisfied: Satisfied,
        choose: impl Fn(Lsn, Lsn) -> Lsn,
        released: &mut Vec<Waker>,
    ) {
        let mut state = self.state.lock();
        let old = state.commit;
        assert!(commit >= old, "the commit index goes back: {old}, {commit}");
        state.commit = commit;
        for (number, new) in state.satisfied.iter_mut().zip(satisfied) {
            *number = choose(*number, new);
        }
        self.publish(&state);
        state.release(released);
    }

    fn publish(&self, state: &State) {
        for (shown, number) in self.satisfied.iter().zip(state.satisfied) {
            shown.store(number.0, Ordering::Release);
        }
    }

    /// The leader of `term` took entries above `to` out of the log. `known` says that they are in
    /// no history; otherwise this replica cannot tell.
    pub fn cut(&self, term: Term, to: Lsn, known: bool) {
        let mut state = self.state.lock();
        let newest = state.cuts.last().map_or(Term(0), |cut| cut.term);
        assert!(term >= newest, "a cut of term {term} after one of {newest}");
        let commit = state.commit;
        assert!(
            to >= commit,
            "a cut to {to} below the commit index {commit}"
        );
        state.cuts.retain(|cut| cut.to < to);
        state.cuts.push(Cut { term, to, known });
        if state.cuts.len() > CUTS_MAX {
            state.cuts.remove(0);
            state.forgotten_below = state.cuts[0].term;
        }
        for number in &mut state.satisfied {
            *number = (*number).min(to);
        }
        self.newest_cut.store(term.0, Ordering::Release);
        self.publish(&state);
        let waiters = state.everyone();
        drop(state);
        waiters.into_iter().for_each(Waker::wake);
    }

    /// The node stops: nobody will ever learn more.
    pub fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        let waiters = state.everyone();
        drop(state);
        waiters.into_iter().for_each(Waker::wake);
    }

    /// Whether somebody waits for what only watermarks of received or applied entries tell, or
    /// did since this was last asked.
    pub fn wants_eager(&self) -> bool {
        let mut state = self.state.lock();
        let levels = [Durability::RemoteWrite, Durability::RemoteApply];
        let waits = levels
            .iter()
            .any(|level| !state.queues[*level as usize].is_empty());
        std::mem::replace(&mut state.eager, waits) || waits
    }

    /// The lowest position that somebody waits for at a level.
    pub fn first_waiter(&self, level: Durability) -> Option<Lsn> {
        let state = self.state.lock();
        let first = state.queues[level as usize].first_key_value();
        first.map(|((lsn, _), _)| *lsn)
    }

    /// The commit index that the gate was last told.
    pub fn commit(&self) -> Lsn {
        self.state.lock().commit
    }

    /// The LSN up to which a level is satisfied.
    pub fn satisfied(&self, level: Durability) -> Lsn {
        self.state.lock().satisfied[level as usize]
    }
}

/// The future of [`Gate::settle`].
#[derive(Debug)]
pub struct Settle {
    gate: Arc<Gate>,
    position: Position,
    level: Durability,
    id: Option<u64>,
}

impl Future for Settle {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let this = &mut *self;
        let mut state = this.gate.state.lock();
        let verdict = state.verdict(this.position, this.level);
        if verdict == Verdict::Waits {
            state.eager |= this.level == Durability::RemoteWrite;
            state.eager |= this.level == Durability::RemoteApply;
            let id = *this.id.get_or_insert_with(|| {
                state.next_waiter += 1;
                state.next_waiter
            });
            let place = (this.position.lsn, id);
            state.queues[this.level as usize].insert(place, cx.waker().clone());
            return Poll::Pending;
        }
        if let Some(id) = this.id.take() {
            state.queues[this.level as usize].remove(&(this.position.lsn, id));
        }
        Poll::Ready(outcome(verdict))
    }
}

impl Drop for Settle {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            let mut state = self.gate.state.lock();
            state.queues[self.level as usize].remove(&(self.position.lsn, id));
        }
    }
}

fn outcome(verdict: Verdict) -> Result<()> {
    match verdict {
        Verdict::Settled => Ok(()),
        Verdict::TakenBack => Err(Error::serialization(
            "could not serialize access: a failover took the transaction back",
        )),
        Verdict::Waits | Verdict::Unknown => Err(outcome_unknown()),
    }
}

/// 08007: nobody here can say any more what becomes of a transaction.
pub fn outcome_unknown() -> Error {
    Error::of_class(
        ErrorClass::Session,
        SqlState::TRANSACTION_RESOLUTION_UNKNOWN,
        "the outcome of the transaction is unknown",
    )
}
