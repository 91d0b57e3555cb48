//! What the leader of a group remembers of transactions that span groups, for as long as it leads:
//! those that it coordinates, those about whose outcome it is in doubt, and what it has refused.
//!
//! The host calls, and then does what [`Leader::take`] gives, in that order, before it calls again:
//! so the [`Ledger`] that it hands over next has what was appended.

use std::collections::{BTreeMap, BTreeSet};

use base::{GroupId, Lsn, NodeId, Term, Timestamp};

use crate::ledger::{Kept, Ledger};
use crate::messages::{named, Event, Flushed, Message, Outcome, Participant, SpanningId, Vote};
use crate::planted::{is_planted, Bug};

/// What the host does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Append this, at a timestamp above `heard`. A prepare comes with its writes.
    Append {
        /// What.
        event: Event,
        /// What its timestamp is above.
        heard: Timestamp,
    },
    /// Send this to the leader of a group, as far as is known who that is.
    Send {
        /// The group.
        to: GroupId,
        /// What to say.
        message: Message,
    },
    /// The client of a transaction that is coordinated here may learn what became of it: of a
    /// commit at once, of an abort when everything that is appended so far is committed. A leader
    /// that has lost its group without knowing may take for refused what is over and forgotten.
    Decided {
        /// The transaction.
        id: SpanningId,
        /// What became of it.
        outcome: Outcome,
    },
}

/// What to do with a prepare that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Validate it, and then [`accept`](Leader::accept) or [`refuse`](Leader::refuse) it.
    Validate,
    /// Nothing: it was here before, or comes too late, and that is answered.
    Answered,
}

/// The votes on a transaction.
#[derive(Debug)]
struct Gathering {
    participants: Vec<Participant>,
    votes: BTreeMap<GroupId, Vote>,
    /// Who has the prepares on disk.
    flushed: BTreeMap<GroupId, BTreeSet<NodeId>>,
    /// Whether the coordinator's term is known to be over, so that all may be asked.
    orphaned: bool,
}

impl Gathering {
    fn new(participants: &[Participant]) -> Gathering {
        Gathering {
            participants: participants.to_vec(),
            votes: BTreeMap::new(),
            flushed: BTreeMap::new(),
            orphaned: false,
        }
    }

    /// The outcome, if the votes so far say it.
    fn outcome(&self) -> Option<Outcome> {
        let mut greatest = Timestamp(i64::MIN);
        let mut missing = false;
        for participant in &self.participants {
            match self.votes.get(&participant.group) {
                Some(Vote::Prepared(proposed)) => greatest = greatest.max(*proposed),
                Some(Vote::Refused) => return Some(Outcome::Aborted),
                None => missing = true,
            }
        }
        (!missing).then_some(Outcome::Committed(greatest))
    }

    /// The groups that have not voted.
    fn silent(&self) -> Vec<GroupId> {
        let groups = self.participants.iter().map(|one| one.group);
        groups.filter(|one| !self.votes.contains_key(one)).collect()
    }
}

/// Of one coordinating group, the prepares that may not be appended any more.
#[derive(Debug, Default)]
struct Handled {
    /// Those of earlier terms are all among them.
    term: Term,
    /// Of that term, all numbers below.
    below: u64,
    /// And these.
    numbers: BTreeSet<u64>,
}

impl Handled {
    fn contains(&self, id: SpanningId) -> bool {
        id.term < self.term
            || id.term == self.term && (id.number < self.below || self.numbers.contains(&id.number))
    }

    fn insert(&mut self, id: SpanningId) {
        if id.term > self.term {
            *self = Handled {
                term: id.term,
                ..Handled::default()
            };
        }
        if !self.contains(id) {
            self.numbers.insert(id.number);
        }
    }

    /// All of a term's numbers below are over.
    fn settle(&mut self, term: Term, below: u64) {
        if term == self.term && below > self.below {
            self.below = below;
            self.numbers = self.numbers.split_off(&below);
        }
    }
}

/// A leader, in one term.
#[derive(Debug)]
pub struct Leader {
    group: GroupId,
    term: Term,
    /// The first entry of its term.
    first: Lsn,
    commit: Lsn,
    next: u64,
    /// Numbers of its transactions that may still be asked for.
    unfinished: BTreeSet<u64>,
    /// What it coordinates and has not decided.
    coordinated: BTreeMap<SpanningId, Gathering>,
    /// What it coordinated and was aborted, with those who have not said that they know.
    aborted: BTreeMap<SpanningId, (Vec<Participant>, BTreeSet<GroupId>)>,
    /// What it is in doubt about.
    doubts: BTreeMap<SpanningId, Gathering>,
    /// Open prepares that had no outcome at the last tick.
    waited: BTreeSet<SpanningId>,
    /// Who has its resolution committed, of transactions that this group coordinated.
    resolved: BTreeMap<SpanningId, BTreeSet<GroupId>>,
    handled: BTreeMap<GroupId, Handled>,
    outputs: Vec<Output>,
}

impl Leader {
    /// Begins to lead a group whose log is committed up to `commit`; `first` is where the first
    /// entry of the term stands.
    pub fn new(group: GroupId, term: Term, first: Lsn, commit: Lsn) -> Leader {
        Leader {
            group,
            term,
            first,
            commit,
            next: 1,
            unfinished: BTreeSet::new(),
            coordinated: BTreeMap::new(),
            aborted: BTreeMap::new(),
            doubts: BTreeMap::new(),
            waited: BTreeSet::new(),
            resolved: BTreeMap::new(),
            handled: BTreeMap::new(),
            outputs: Vec::new(),
        }
    }

    /// What there is to do, and in which order.
    pub fn take(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.outputs)
    }

    /// Begins the commit of a transaction whose writes in this group are valid and locked. `heard`
    /// is the greatest timestamp that it has heard of: one proposal above it, this group's, is enough,
    /// since the commit is at the greatest of them.
    pub fn coordinate(&mut self, participants: &[Participant], heard: Timestamp) -> SpanningId {
        let (group, term, number) = (self.group, self.term, self.next);
        let id = SpanningId {
            group,
            term,
            number,
        };
        self.next += 1;
        self.unfinished.insert(number);
        self.coordinated.insert(id, Gathering::new(participants));
        let heard = match is_planted(Bug::HeardIgnored) {
            true => Timestamp(i64::MIN),
            false => heard,
        };
        self.append_prepare(id, participants, heard);
        self.ask_to_prepare(id);
        id
    }

    fn ask_to_prepare(&mut self, id: SpanningId) {
        let unfinished = self.unfinished.first().copied().unwrap_or(id.number);
        let Some(gathering) = self.coordinated.get(&id) else {
            return;
        };
        for to in gathering.silent() {
            if to != self.group {
                let message = Message::Prepare {
                    id,
                    participants: gathering.participants.clone(),
                    unfinished,
                };
                self.outputs.push(Output::Send { to, message });
            }
        }
    }

    /// A prepare has arrived, and with it that all of its coordinator's transactions below
    /// `unfinished` are over.
    pub fn admit(
        &mut self,
        ledger: &Ledger,
        id: SpanningId,
        participants: &[Participant],
        unfinished: u64,
    ) -> Admission {
        let handled = self.handled.entry(id.group).or_default();
        handled.settle(id.term, unfinished);
        let is_new = !handled.contains(id)
            && !ledger.open.contains_key(&id)
            && !ledger.kept.contains_key(&id);
        let term = named(participants, self.group);
        let in_term = term == Some(self.term)
            || is_planted(Bug::PreparedInLaterTerm) && term < Some(self.term);
        if is_new && in_term {
            return Admission::Validate;
        }
        self.answer(ledger, id, participants, id.group);
        Admission::Answered
    }

    /// A prepare is valid, and its rows are locked: appends it.
    pub fn accept(&mut self, id: SpanningId, participants: &[Participant]) {
        self.append_prepare(id, participants, Timestamp(i64::MIN));
    }

    fn append_prepare(&mut self, id: SpanningId, participants: &[Participant], heard: Timestamp) {
        if !is_planted(Bug::PreparedTwice) {
            self.handled.entry(id.group).or_default().insert(id);
        }
        let participants = participants.to_vec();
        self.append(Event::Prepare { id, participants }, heard);
    }

    /// A prepare is not valid: this group will never have it.
    pub fn refuse(&mut self, id: SpanningId) {
        self.handled.entry(id.group).or_default().insert(id);
        let (to, vote, term) = (id.group, Vote::Refused, self.term);
        let message = Message::Vote { id, vote, term };
        self.outputs.push(Output::Send { to, message });
    }

    /// What this group knows of a transaction, for good, if anything. To say that there is no
    /// prepare is a promise that there will be none.
    fn fact(
        &mut self,
        ledger: &Ledger,
        id: SpanningId,
        participants: &[Participant],
    ) -> Option<Message> {
        let term = self.term;
        if let Some(kept) = ledger.kept.get(&id) {
            return Some(told(id, kept));
        }
        if let Some(open) = ledger.open.get(&id) {
            let sure = open.lsn <= self.commit || is_planted(Bug::CountedUncommitted);
            let vote = Vote::Prepared(open.proposed);
            return sure.then_some(Message::Vote { id, vote, term });
        }
        let named = named(participants, self.group)?;
        if named == term && !is_planted(Bug::RefusalForgotten) {
            self.handled.entry(id.group).or_default().insert(id);
        }
        let vote = Vote::Refused;
        (named == term || self.is_sure_since(named)).then_some(Message::Vote { id, vote, term })
    }

    /// Whether this leader came after that term, and has all that was committed then.
    fn is_sure_since(&self, term: Term) -> bool {
        self.term > term && self.first <= self.commit
    }

    fn answer(
        &mut self,
        ledger: &Ledger,
        id: SpanningId,
        participants: &[Participant],
        to: GroupId,
    ) {
        if let Some(message) = self.fact(ledger, id, participants) {
            self.outputs.push(Output::Send { to, message });
        }
    }

    /// A message from the leader of another group; prepares go to [`admit`](Self::admit).
    pub fn receive(&mut self, ledger: &Ledger, from: GroupId, message: Message) {
        match message {
            Message::Prepare { .. } => debug_assert!(false, "a prepare is admitted"),
            Message::Vote { id, vote, term } => {
                if let Some(doubt) = self.doubts.get_mut(&id) {
                    doubt.orphaned |= from == id.group && term > id.term;
                }
                self.count(ledger, id, from, vote);
            }
            Message::Outcome {
                id,
                outcome,
                participants,
            } => self.learn(ledger, from, id, outcome, &participants),
            Message::Inquiry { id, participants } => {
                // Until it is decided there is nothing to say, and others are not asked.
                if !self.coordinated.contains_key(&id) {
                    self.answer(ledger, id, &participants, from);
                }
            }
            Message::Resolved { id } => self.note_resolved(ledger, from, id),
            Message::Forget { id } => {
                let kept = ledger.kept.get(&id);
                if kept.is_some_and(|kept| kept.lsn <= self.commit) {
                    self.append(Event::Forgotten { id }, Timestamp(i64::MIN));
                }
            }
        }
    }

    fn append(&mut self, event: Event, heard: Timestamp) {
        self.outputs.push(Output::Append { event, heard });
    }

    fn send(&mut self, to: GroupId, message: Message) {
        self.outputs.push(Output::Send { to, message });
    }

    fn count(&mut self, ledger: &Ledger, id: SpanningId, from: GroupId, vote: Vote) {
        let gathering = match self.coordinated.get_mut(&id) {
            Some(gathering) => gathering,
            None => match self.doubts.get_mut(&id) {
                Some(doubt) => doubt,
                None => return,
            },
        };
        gathering.votes.insert(from, vote);
        if let Some(outcome) = gathering.outcome() {
            self.conclude(ledger, id, outcome);
        }
    }

    /// A replica of some group has a prepare on disk. A majority of those that had it in the term in
    /// which it was appended have committed it, whether their leader knows or not.
    pub fn flushed(&mut self, ledger: &Ledger, flushed: Flushed) {
        let (id, group) = (flushed.id, flushed.group);
        let Some(gathering) = self.coordinated.get_mut(&id) else {
            return;
        };
        // What a later leader has handed on may still be replaced by another's entries.
        if named(&gathering.participants, group) != Some(flushed.term) {
            return;
        }
        let nodes = gathering.flushed.entry(group).or_default();
        nodes.insert(flushed.node);
        if 2 * nodes.len() > flushed.voters || is_planted(Bug::FlushedByOne) {
            self.count(ledger, id, group, Vote::Prepared(flushed.proposed));
        }
    }

    /// The outcome of a transaction is known: resolves it here, and tells others if that is up to
    /// this leader.
    fn conclude(&mut self, ledger: &Ledger, id: SpanningId, outcome: Outcome) {
        self.doubts.remove(&id);
        if ledger.open.contains_key(&id) {
            // The clock moves past the commit first, so whatever comes later here is later.
            let heard = match outcome {
                Outcome::Committed(at) if !is_planted(Bug::ClockBehindCommit) => at,
                _ => Timestamp(i64::MIN),
            };
            self.append(Event::Resolution { id, outcome }, heard);
        }
        let Some(gathering) = self.coordinated.remove(&id) else {
            return;
        };
        self.outputs.push(Output::Decided { id, outcome });
        let participants = gathering.participants;
        let groups = participants.iter().map(|one| one.group);
        let others: BTreeSet<GroupId> = groups.filter(|one| *one != self.group).collect();
        for to in &others {
            let message = Message::Outcome {
                id,
                outcome,
                participants: participants.clone(),
            };
            self.send(*to, message);
        }
        if outcome == Outcome::Aborted {
            self.aborted.insert(id, (participants, others));
        }
    }

    fn learn(
        &mut self,
        ledger: &Ledger,
        from: GroupId,
        id: SpanningId,
        outcome: Outcome,
        participants: &[Participant],
    ) {
        let is_open = ledger.open.contains_key(&id);
        if is_open || self.coordinated.contains_key(&id) {
            self.conclude(ledger, id, outcome);
            return;
        }
        let Some(named) = named(participants, self.group) else {
            return;
        };
        let is_resolved = match ledger.kept.get(&id) {
            Some(kept) => kept.lsn <= self.commit,
            // Forgotten, or it never prepared and now never will.
            None if named == self.term => {
                self.handled.entry(id.group).or_default().insert(id);
                true
            }
            None => self.is_sure_since(named),
        };
        if is_resolved {
            self.send(from, Message::Resolved { id });
        }
    }

    fn note_resolved(&mut self, ledger: &Ledger, from: GroupId, id: SpanningId) {
        if let Some(kept) = ledger.kept.get(&id) {
            self.resolved.entry(id).or_default().insert(from);
            self.forget_if_resolved(id, kept);
        } else if let Some((_, silent)) = self.aborted.get_mut(&id) {
            silent.remove(&from);
            if silent.is_empty() {
                self.aborted.remove(&id);
                self.unfinished.remove(&id.number);
            }
        } else if !ledger.open.contains_key(&id)
            && !self.coordinated.contains_key(&id)
            && (self.term == id.term || self.is_sure_since(id.term))
        {
            // It was forgotten here, so all are resolved.
            self.send(from, Message::Forget { id });
        }
    }

    /// Forgets a commit that this group coordinated once all resolutions are committed.
    fn forget_if_resolved(&mut self, id: SpanningId, kept: &Kept) {
        let none = BTreeSet::new();
        let resolved = self.resolved.get(&id).unwrap_or(&none);
        let mut others = kept.participants.iter().map(|one| one.group);
        let all = others.all(|one| one == self.group || resolved.contains(&one));
        if !all || kept.lsn > self.commit {
            return;
        }
        self.resolved.remove(&id);
        if id.term == self.term {
            self.unfinished.remove(&id.number);
        }
        self.append(Event::Forgotten { id }, Timestamp(i64::MIN));
        for participant in &kept.participants {
            if participant.group != self.group {
                self.send(participant.group, Message::Forget { id });
            }
        }
    }

    /// The group's log is committed up to there.
    pub fn committed(&mut self, ledger: &Ledger, commit: Lsn) {
        let before = self.commit;
        self.commit = before.max(commit);
        let is_new = |lsn: Lsn| lsn > before && lsn <= commit;
        for (id, open) in ledger.open.iter().filter(|(_, open)| is_new(open.lsn)) {
            let (id, vote) = (*id, Vote::Prepared(open.proposed));
            if id.group == self.group {
                self.count(ledger, id, self.group, vote);
            } else {
                let term = self.term;
                self.send(id.group, Message::Vote { id, vote, term });
            }
        }
        for (id, kept) in ledger.kept.iter().filter(|(_, kept)| is_new(kept.lsn)) {
            if is_planted(Bug::ForgottenEarly) {
                self.append(Event::Forgotten { id: *id }, Timestamp(i64::MIN));
            } else if id.group == self.group {
                self.forget_if_resolved(*id, kept);
            } else {
                self.send(id.group, Message::Resolved { id: *id });
            }
        }
    }

    /// Whether there is nothing that a [`tick`](Self::tick) would say again.
    pub fn is_idle(&self, ledger: &Ledger) -> bool {
        self.coordinated.is_empty()
            && self.aborted.is_empty()
            && ledger.open.is_empty()
            && ledger.kept.is_empty()
    }

    /// Some time has passed, several round trips: says again what nobody has answered.
    pub fn tick(&mut self, ledger: &Ledger) {
        let undecided: Vec<SpanningId> = self.coordinated.keys().copied().collect();
        for id in undecided {
            self.ask_to_prepare(id);
        }
        for (id, (participants, silent)) in &self.aborted {
            for to in silent {
                let message = Message::Outcome {
                    id: *id,
                    outcome: Outcome::Aborted,
                    participants: participants.clone(),
                };
                self.outputs.push(Output::Send { to: *to, message });
            }
        }
        self.ask_about_doubts(ledger);
        for (id, kept) in &ledger.kept {
            if id.group != self.group {
                if kept.lsn <= self.commit {
                    self.send(id.group, Message::Resolved { id: *id });
                }
                continue;
            }
            let resolved = self.resolved.entry(*id).or_default();
            for participant in &kept.participants {
                let to = participant.group;
                if to != self.group && !resolved.contains(&to) {
                    let message = told(*id, kept);
                    self.outputs.push(Output::Send { to, message });
                }
            }
        }
    }

    /// Asks for the outcomes of prepares that have waited since the last tick.
    fn ask_about_doubts(&mut self, ledger: &Ledger) {
        let waited = std::mem::take(&mut self.waited);
        for (id, open) in &ledger.open {
            if open.lsn > self.commit || self.coordinated.contains_key(id) {
                continue;
            }
            self.waited.insert(*id);
            if !waited.contains(id) {
                continue;
            }
            let doubt = self.doubts.entry(*id).or_insert_with(|| {
                let mut doubt = Gathering::new(&open.participants);
                doubt
                    .votes
                    .insert(self.group, Vote::Prepared(open.proposed));
                // A leader of the coordinating group that does not coordinate it came later.
                doubt.orphaned = id.group == self.group;
                doubt
            });
            let asked = match doubt.orphaned {
                true => doubt.silent(),
                false => vec![id.group],
            };
            for to in asked {
                let (id, participants) = (*id, open.participants.clone());
                let message = Message::Inquiry { id, participants };
                self.outputs.push(Output::Send { to, message });
            }
        }
    }
}

/// A commit, as it is told to others.
fn told(id: SpanningId, kept: &Kept) -> Message {
    Message::Outcome {
        id,
        outcome: Outcome::Committed(kept.timestamp),
        participants: kept.participants.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::Stamped;

    const ID: SpanningId = SpanningId {
        group: GroupId(1),
        term: Term(4),
        number: 1,
    };

    fn participants() -> Vec<Participant> {
        let one = |group: u32, term: u64| Participant {
            group: GroupId(group),
            term: Term(term),
        };
        vec![one(1, 4), one(2, 9)]
    }

    fn inquiry() -> Message {
        let (id, participants) = (ID, participants());
        Message::Inquiry { id, participants }
    }

    fn vote(vote: Vote, term: u64) -> Message {
        let (id, term) = (ID, Term(term));
        Message::Vote { id, vote, term }
    }

    /// What a leader says, without what it appends.
    fn said(leader: &mut Leader) -> Vec<(u32, Message)> {
        let outputs = leader.take().into_iter();
        let sent = outputs.filter_map(|output| match output {
            Output::Send { to, message } => Some((to.0, message)),
            _ => None,
        });
        sent.collect()
    }

    /// Does what a leader asks for to its log, every entry a microsecond after the one before.
    fn append(leader: &mut Leader, ledger: &mut Ledger, next: &mut u64) -> Vec<Output> {
        let outputs = leader.take();
        for output in &outputs {
            if let Output::Append { event, heard } = output {
                let timestamp = Timestamp(ledger.last.0.max(heard.0) + 1);
                let event = event.clone();
                ledger.apply(Lsn(*next), &Stamped { timestamp, event });
                *next += 1;
            }
        }
        outputs
    }

    #[test]
    fn a_commit_is_decided_by_its_prepares_alone() {
        let (mut ledger, mut next) = (Ledger::default(), 70);
        let mut leader = Leader::new(GroupId(1), Term(4), Lsn(10), Lsn(69));
        let id = leader.coordinate(&participants(), Timestamp(104));
        assert_eq!(id, ID);
        append(&mut leader, &mut ledger, &mut next);
        leader.committed(&ledger, Lsn(70));
        leader.receive(&ledger, GroupId(2), vote(Vote::Prepared(Timestamp(98)), 9));
        let outcome = Outcome::Committed(Timestamp(105));
        let outputs = append(&mut leader, &mut ledger, &mut next);
        assert!(outputs.contains(&Output::Decided { id, outcome }));
        // What comes next in this group is after the commit.
        assert!(ledger.last > Timestamp(105));
        assert!(ledger.open.is_empty() && ledger.kept.contains_key(&ID));
        // It is kept until both resolutions are committed.
        leader.receive(&ledger, GroupId(2), Message::Resolved { id });
        assert_eq!(append(&mut leader, &mut ledger, &mut next), Vec::new());
        leader.committed(&ledger, Lsn(71));
        append(&mut leader, &mut ledger, &mut next);
        assert!(ledger.kept.is_empty());
    }

    #[test]
    fn a_majority_that_has_a_prepare_in_the_named_term_has_committed_it() {
        let (mut ledger, mut next) = (Ledger::default(), 70);
        let mut leader = Leader::new(GroupId(1), Term(4), Lsn(10), Lsn(69));
        let id = leader.coordinate(&participants(), Timestamp(104));
        append(&mut leader, &mut ledger, &mut next);
        leader.committed(&ledger, Lsn(70));
        let mut flushed = |node: u64, term: u64| {
            let flushed = Flushed {
                id,
                group: GroupId(2),
                term: Term(term),
                node: NodeId(node),
                voters: 3,
                proposed: Timestamp(300),
            };
            leader.flushed(&ledger, flushed);
            leader.take()
        };
        // Twice one; and one in a later term, whose leader another may follow without the entry.
        for (node, term) in [(1, 9), (1, 9), (2, 10)] {
            assert_eq!(flushed(node, term), Vec::new());
        }
        let outcome = Outcome::Committed(Timestamp(300));
        assert!(flushed(3, 9).contains(&Output::Decided { id, outcome }));
    }

    /// Entries of the named term may still stand at a replica that leads next: then they are
    /// committed after all.
    #[test]
    fn a_new_leader_promises_nothing_before_it_has_committed_an_entry() {
        let ledger = Ledger::default();
        let mut leader = Leader::new(GroupId(2), Term(10), Lsn(32), Lsn(30));
        leader.receive(&ledger, GroupId(1), inquiry());
        assert_eq!(said(&mut leader), Vec::new());
        leader.committed(&ledger, Lsn(32));
        leader.receive(&ledger, GroupId(1), inquiry());
        assert_eq!(said(&mut leader), vec![(1, vote(Vote::Refused, 10))]);
    }

    #[test]
    fn who_has_refused_in_the_named_term_does_not_prepare() {
        let ledger = Ledger::default();
        let mut leader = Leader::new(GroupId(2), Term(9), Lsn(20), Lsn(30));
        leader.receive(&ledger, GroupId(1), inquiry());
        assert_eq!(said(&mut leader), vec![(1, vote(Vote::Refused, 9))]);
        let admission = leader.admit(&ledger, ID, &participants(), 1);
        assert_eq!(admission, Admission::Answered);
    }

    /// Others might refuse what is still on its way to them.
    #[test]
    fn while_the_coordinator_leads_only_it_is_asked() {
        let (mut ledger, mut next) = (Ledger::default(), 31);
        let mut leader = Leader::new(GroupId(2), Term(9), Lsn(20), Lsn(30));
        let mut all = participants();
        all.push(Participant {
            group: GroupId(3),
            term: Term(1),
        });
        leader.admit(&ledger, ID, &all, 1);
        leader.accept(ID, &all);
        append(&mut leader, &mut ledger, &mut next);
        leader.committed(&ledger, Lsn(31));
        said(&mut leader);
        let asked = |leader: &mut Leader| {
            leader.tick(&ledger);
            leader.tick(&ledger);
            let mut asked: Vec<u32> = said(leader).into_iter().map(|one| one.0).collect();
            asked.dedup();
            asked
        };
        assert_eq!(asked(&mut leader), vec![1]);
        // Its group has prepared, and says so in a later term.
        leader.receive(&ledger, GroupId(1), vote(Vote::Prepared(Timestamp(5)), 5));
        assert_eq!(asked(&mut leader), vec![3]);
    }
}
