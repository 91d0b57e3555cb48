//! What the leader of a group remembers of transactions across groups: a [`spanning::Leader`], for as
//! long as its term lasts, what is being appended, and what it has said and nobody has carried out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use base::sync::{Mutex, RwLock};
use base::{GroupId, Lsn, Result, Term, Timestamp};
use spanning::{
    Admission, Event, Flushed, Leader, Ledger, Message, Open, Outcome, Output, Participant,
    SpanningId, Vote,
};

use super::super::KvEngine;
use crate::group::{not_leader, term_is_over, Group};
use crate::parts::Part;

/// The groups that a node has.
pub trait Neighbours: Send + Sync {
    /// The engine of a group, if the node has it.
    fn engine(&self, group: GroupId) -> Option<Arc<KvEngine>>;

    /// The engines of all groups, the first's first.
    fn engines(&self) -> Vec<Arc<KvEngine>>;
}

/// What a group knows of transactions across groups from its rows.
pub(crate) fn ledger(group: &Group) -> Ledger {
    let prepared = group.prepared().newest();
    let decisions = group.decisions().newest();
    let open = |part: &Part| {
        let open = Open {
            lsn: part.lsn,
            proposed: part.proposed,
            participants: part.participants.clone(),
        };
        (part.id, open)
    };
    Ledger {
        open: prepared.parts().map(open).collect(),
        kept: (decisions.iter())
            .map(|(id, kept)| (id, (**kept).clone()))
            .collect(),
        ..Ledger::default()
    }
}

/// What the leader of a group remembers of transactions across groups.
#[derive(Default)]
pub struct Across {
    state: Mutex<State>,
    neighbours: RwLock<Option<Weak<dyn Neighbours>>>,
    /// Somebody carries out what is said.
    tended: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    leading: Option<Leading>,
    /// What is to be carried out, in order.
    todo: VecDeque<Output>,
}

#[derive(Debug)]
struct Leading {
    term: Term,
    leader: Leader,
    /// What is being appended.
    appending: BTreeSet<SpanningId>,
    /// What became of those for whose outcome somebody waits, as far as it is known.
    awaited: BTreeMap<SpanningId, Option<Outcome>>,
}

impl State {
    /// Whoever leads in `term`.
    fn in_term(&mut self, term: Term) -> Result<&mut Leading> {
        let leading = self.leading.as_mut().ok_or_else(not_leader)?;
        match leading.term == term {
            true => Ok(leading),
            false => Err(term_is_over()),
        }
    }

    /// Takes what the leader says. What its session appends itself is left out, and what it asks
    /// others to prepare, which the session does too.
    fn take(&mut self) {
        let Some(leading) = &mut self.leading else {
            return;
        };
        let (appending, awaited) = (&leading.appending, &mut leading.awaited);
        let said = leading.leader.take().into_iter();
        self.todo.extend(said.filter(|output| match output {
            Output::Append { event, .. } => !matches!(event, Event::Prepare { .. }),
            Output::Decided { id, outcome } => {
                if let Some(known) = awaited.get_mut(id) {
                    *known = Some(*outcome);
                }
                true
            }
            // Its session asks, and is not done yet.
            Output::Send {
                message: Message::Prepare { id, .. },
                ..
            } => !appending.contains(id),
            _ => true,
        }));
    }
}

impl std::fmt::Debug for Across {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Across").field(&*self.state.lock()).finish()
    }
}

impl Across {
    /// True for whoever asks first.
    pub(crate) fn is_first_to_tend(&self) -> bool {
        !self.tended.swap(true, Ordering::SeqCst)
    }

    /// These are the groups of its node.
    pub fn set_neighbours(&self, neighbours: Weak<dyn Neighbours>) {
        *self.neighbours.write() = Some(neighbours);
    }

    /// The engine of another group of its node.
    pub(crate) fn neighbour(&self, group: GroupId) -> Option<Arc<KvEngine>> {
        let neighbours = self.neighbours.read().as_ref().and_then(Weak::upgrade);
        neighbours.and_then(|neighbours| neighbours.engine(group))
    }

    /// This node leads the group: its term begins at `first`, and up to `commit` the log is known to
    /// be committed.
    pub(crate) fn begin_term(&self, group: GroupId, term: Term, first: Lsn, commit: Lsn) {
        *self.state.lock() = State {
            leading: Some(Leading {
                term,
                leader: Leader::new(group, term, first, commit),
                appending: BTreeSet::new(),
                awaited: BTreeMap::new(),
            }),
            todo: VecDeque::new(),
        };
    }

    /// This node leads the group no longer.
    pub(crate) fn end_term(&self) {
        *self.state.lock() = State::default();
    }

    /// Begins a commit that this group coordinates: its id, and below which number all transactions
    /// of the same coordinator are over. Its part of this group is about to be appended.
    ///
    /// # Errors
    /// 40001 when the term is over.
    pub(crate) fn coordinate(
        &self,
        term: Term,
        participants: &[Participant],
        heard: Timestamp,
    ) -> Result<(SpanningId, u64)> {
        let mut state = self.state.lock();
        let leading = state.in_term(term)?;
        let id = leading.leader.coordinate(participants, heard);
        leading.appending.insert(id);
        let mut below = id.number;
        // The session hands the others' parts over itself, and appends its own.
        for output in leading.leader.take() {
            if let Output::Send {
                message: Message::Prepare { unfinished, .. },
                ..
            } = output
            {
                below = unfinished;
            }
        }
        Ok((id, below))
    }

    /// Somebody will wait for the outcome of this transaction, which this group coordinates.
    pub(crate) fn expect_decision(&self, id: SpanningId) {
        if let Some(leading) = &mut self.state.lock().leading {
            leading.awaited.insert(id, None);
        }
    }

    /// Somebody has a part on disk.
    pub(crate) fn flushed(&self, ledger: &Ledger, flushed: Flushed) {
        let mut state = self.state.lock();
        if let Some(leading) = &mut state.leading {
            leading.leader.flushed(ledger, flushed);
            state.take();
        }
    }

    /// What became of a transaction for whose outcome somebody waits, if it is known.
    pub(crate) fn decided(&self, id: SpanningId) -> Option<Outcome> {
        let state = self.state.lock();
        let leading = state.leading.as_ref()?;
        leading.awaited.get(&id).copied().flatten()
    }

    /// Nobody waits for it any more.
    pub(crate) fn forget_decided(&self, id: SpanningId) {
        if let Some(leading) = &mut self.state.lock().leading {
            leading.awaited.remove(&id);
        }
    }

    /// A part of this group is about to be appended.
    ///
    /// # Errors
    /// 40001 when the term is over, or it was said that there will be no such part.
    pub(crate) fn admit(
        &self,
        ledger: &Ledger,
        term: Term,
        (id, unfinished): (SpanningId, u64),
        participants: &[Participant],
    ) -> Result<()> {
        let mut state = self.state.lock();
        let leading = state.in_term(term)?;
        let admission = leading.leader.admit(ledger, id, participants, unfinished);
        let is_new = admission == Admission::Validate;
        if is_new {
            leading.leader.accept(id, participants);
            leading.appending.insert(id);
        }
        state.take();
        match is_new {
            true => Ok(()),
            false => Err(term_is_over()),
        }
    }

    /// A part is in the log, and all others are asked for.
    pub(crate) fn appended(&self, id: SpanningId) {
        let mut state = self.state.lock();
        if let Some(leading) = &mut state.leading {
            leading.appending.remove(&id);
        }
    }

    /// A part that was to be appended is not in the log.
    pub(crate) fn not_appended(&self, ledger: &Ledger, group: GroupId, id: SpanningId) {
        let mut state = self.state.lock();
        let Some(leading) = &mut state.leading else {
            return;
        };
        if !leading.appending.remove(&id) {
            return;
        }
        match id.group == group {
            true => {
                let (vote, term) = (Vote::Refused, leading.term);
                let message = Message::Vote { id, vote, term };
                leading.leader.receive(ledger, group, message);
            }
            false => leading.leader.refuse(id),
        }
        state.take();
    }

    /// A message from the leader of another group.
    pub(crate) fn receive(&self, ledger: &Ledger, from: GroupId, message: Message) {
        let mut state = self.state.lock();
        let Some(leading) = &mut state.leading else {
            return;
        };
        match message {
            // It is not there yet, and may be any moment: whoever asks asks again.
            Message::Prepare { id, .. } | Message::Inquiry { id, .. }
                if leading.appending.contains(&id) => {}
            Message::Prepare {
                id,
                participants,
                unfinished,
            } => {
                let admission = leading.leader.admit(ledger, id, &participants, unfinished);
                if admission == Admission::Validate {
                    // Its session is no more, and nobody else has what it has written.
                    leading.leader.refuse(id);
                }
            }
            message => leading.leader.receive(ledger, from, message),
        }
        state.take();
    }

    /// The group's log is committed up to there. The ledger was taken afterwards.
    pub(crate) fn committed(&self, ledger: &Ledger, commit: Lsn) {
        let mut state = self.state.lock();
        if let Some(leading) = &mut state.leading {
            leading.leader.committed(ledger, commit);
            state.take();
        }
    }

    /// Some time has passed; whether there is anything that waits for more of it.
    pub(crate) fn tick(&self, ledger: &Ledger) -> bool {
        let mut state = self.state.lock();
        let Some(leading) = &mut state.leading else {
            return false;
        };
        leading.leader.tick(ledger);
        let is_idle = leading.leader.is_idle(ledger);
        state.take();
        !is_idle
    }

    /// Whether a later [`Across::tick`] could have anything to say.
    pub(crate) fn is_idle(&self, ledger: &Ledger) -> bool {
        let state = self.state.lock();
        let leading = state.leading.as_ref();
        leading.is_none_or(|leading| leading.leader.is_idle(ledger))
    }

    /// What is to be carried out next.
    pub(crate) fn next(&self) -> Option<Output> {
        self.state.lock().todo.pop_front()
    }

    /// Whether there is anything to carry out.
    pub(crate) fn has_work(&self) -> bool {
        !self.state.lock().todo.is_empty()
    }
}
