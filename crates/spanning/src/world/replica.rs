//! A group's log in the small, and what a host does for [`Leader`].

use std::collections::BTreeMap;

use base::{GroupId, NodeId, Term, Timestamp};

use super::{
    lsn, Event, Item, Packet, Reply, Request, Row, Values, World, KEYS, MILLISECOND, NODES,
};
use crate::clock::Clock;
use crate::leader::{Admission, Leader, Output};
use crate::ledger::Ledger;
use crate::messages::{self, Flushed, Message, Outcome, Participant, SpanningId, Stamped};
use crate::planted::{is_planted, Bug};
use crate::snapshot::{standing, Shown, Snapshot};

/// An entry of the log, with the rows of a commit or a prepare.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) term: Term,
    stamped: Stamped,
    keys: Vec<u8>,
    item: Item,
    /// Of a prepare, the node of its coordinator.
    coordinator: usize,
}

#[derive(Clone)]
enum Writer {
    Local(Timestamp),
    Spanning {
        id: SpanningId,
        proposed: Timestamp,
        outcome: Option<Outcome>,
    },
}

#[derive(Clone)]
struct Version {
    item: Item,
    writer: Writer,
}

/// What the log makes.
#[derive(Default)]
pub(super) struct State {
    pub(super) ledger: Ledger,
    rows: BTreeMap<u8, Vec<Version>>,
}

impl State {
    fn apply(&mut self, len: usize, entry: &Entry) {
        self.ledger.apply(lsn(len), &entry.stamped);
        let writer = match &entry.stamped.event {
            messages::Event::Prepare { id, .. } => Writer::Spanning {
                id: *id,
                proposed: entry.stamped.timestamp,
                outcome: None,
            },
            messages::Event::Resolution { id, outcome } => {
                self.resolve(*id, *outcome);
                return;
            }
            _ => Writer::Local(entry.stamped.timestamp),
        };
        for key in &entry.keys {
            let (item, writer) = (entry.item, writer.clone());
            let versions = self.rows.entry(*key).or_default();
            versions.push(Version { item, writer });
        }
    }

    fn resolve(&mut self, resolved: SpanningId, known: Outcome) {
        for version in self.rows.values_mut().flatten() {
            if let Writer::Spanning { id, outcome, .. } = &mut version.writer {
                if *id == resolved && outcome.is_none() {
                    *outcome = Some(known);
                }
            }
        }
    }

    /// Whether a prepare holds the lock of a row.
    fn is_locked(&self, key: u8) -> bool {
        let versions = self.rows.get(&key).into_iter().flatten();
        let is_open =
            |version: &Version| matches!(version.writer, Writer::Spanning { outcome: None, .. });
        versions.filter(|version| is_open(version)).count() > 0
    }

    /// A list as a snapshot sees it; `None` if that is not known yet.
    fn read(&self, key: u8, snapshot: Snapshot) -> Option<Vec<Item>> {
        let mut items = Vec::new();
        for version in self.rows.get(&key).into_iter().flatten() {
            let shown = match version.writer {
                Writer::Local(at) if at <= snapshot.timestamp() => Shown::All,
                Writer::Local(_) => Shown::Not,
                Writer::Spanning {
                    proposed, outcome, ..
                } => snapshot.shows(proposed, outcome),
            };
            match shown {
                Shown::All => items.push(version.item),
                Shown::Not => {}
                Shown::Later => return None,
            }
        }
        Some(items)
    }

    fn read_all(&self, group: GroupId, snapshot: Snapshot) -> Option<Values> {
        let rows = 0..KEYS;
        let read = |key: u8| -> Option<(Row, Vec<Item>)> {
            Some(((group, key), self.read(key, snapshot)?))
        };
        rows.map(read).collect()
    }

    /// A list with all that is in it.
    pub(super) fn items(&self, key: u8) -> Vec<Item> {
        let versions = self.rows.get(&key).into_iter().flatten();
        let is_in = |version: &&Version| {
            let aborted = Some(Outcome::Aborted);
            !matches!(version.writer, Writer::Spanning { outcome, .. } if outcome == aborted)
        };
        versions.filter(is_in).map(|version| version.item).collect()
    }
}

/// A reply that waits until the log is committed up to there.
struct Held {
    len: usize,
    client: usize,
    op: u64,
    reply: Reply,
}

/// What a replica has while it leads.
pub(super) struct Lead {
    core: Leader,
    clock: Clock,
    /// Whether nobody else can have been elected.
    lease: bool,
    acked: [usize; NODES],
    next: [usize; NODES],
    held: Vec<Held>,
    /// What it coordinates: the rows by group, and whose it is.
    bodies: BTreeMap<SpanningId, Body>,
}

struct Body {
    item: Item,
    keys: BTreeMap<GroupId, Vec<u8>>,
    client: Option<(usize, u64)>,
}

#[derive(Default)]
pub(super) struct Replica {
    down: bool,
    pub(super) term: Term,
    log: Vec<Entry>,
    flushed: usize,
    /// How often its log was cut or forgotten.
    generation: u64,
    pub(super) commit: usize,
    pub(super) state: State,
    pub(super) lead: Option<Lead>,
}

impl Replica {
    fn truncate(&mut self, len: usize) {
        if len < self.log.len() {
            self.log.truncate(len);
            self.flushed = self.flushed.min(len);
            self.generation += 1;
            self.state = State::default();
            for (at, entry) in self.log.iter().enumerate() {
                self.state.apply(at + 1, entry);
            }
        }
    }

    fn append(&mut self, entry: Entry) {
        self.log.push(entry);
        let len = self.log.len();
        self.state.apply(len, &self.log[len - 1]);
    }

    fn last(&self) -> (Term, usize) {
        let term = self.log.last().map_or(Term(0), |entry| entry.term);
        (term, self.log.len())
    }

    fn term_at(&self, len: usize) -> Term {
        match len.checked_sub(1) {
            Some(at) => self.log[at].term,
            None => Term(0),
        }
    }
}

impl World {
    fn replica(&mut self, group: GroupId, node: usize) -> &mut Replica {
        let replicas = self.replicas.get_mut(&group).expect("a group");
        &mut replicas[node]
    }

    pub(super) fn crash(&mut self, group: GroupId, node: usize) {
        let replica = self.replica(group, node);
        replica.down = true;
        replica.lead = None;
        replica.commit = 0;
        let flushed = replica.flushed;
        replica.truncate(flushed);
        replica.generation += 1;
    }

    pub(super) fn restart(&mut self, node: usize) {
        for group in self.groups() {
            self.replica(group, node).down = false;
        }
    }

    /// Whether a replica can say anything to the others of its group.
    fn reaches(&self, group: GroupId, node: usize) -> bool {
        !self.isolated[node]
            && !self.cut.contains_key(&(group, node))
            && !self.replicas[&group][node].down
    }

    /// Elects a leader, if a majority can agree on one. The lease of the one before is over then.
    pub(super) fn elect(&mut self, group: GroupId) {
        let candidate = self.below(NODES as u64) as usize;
        if !self.reaches(group, candidate) {
            return;
        }
        let last = self.replicas[&group][candidate].last();
        let voters: Vec<usize> = (0..NODES)
            .filter(|node| self.reaches(group, *node))
            .filter(|node| self.replicas[&group][*node].last() <= last)
            .collect();
        if 2 * voters.len() <= NODES {
            return;
        }
        self.elections += 1;
        let terms = voters.iter().map(|node| self.replicas[&group][*node].term);
        let term = Term(terms.max().map_or(0, |term| term.0) + 1);
        for node in 0..NODES {
            let is_voter = voters.contains(&node);
            let replica = self.replica(group, node);
            if is_voter {
                replica.term = term;
                replica.lead = None;
            } else if let Some(lead) = &mut replica.lead {
                lead.lease = false;
            }
        }
        for node in 0..NODES {
            if self.below(2) == 0 {
                self.believed.insert((node, group), candidate);
            }
        }
        let replica = self.replica(group, candidate);
        let len = replica.log.len();
        let (first, commit) = (lsn(len + 1), lsn(replica.commit));
        replica.lead = Some(Lead {
            core: Leader::new(group, term, first, commit),
            clock: Clock::new(replica.state.ledger.begins_after()),
            lease: true,
            acked: [0; NODES],
            next: [len; NODES],
            held: Vec::new(),
            bodies: BTreeMap::new(),
        });
        let heard = Timestamp(i64::MIN);
        self.append(
            group,
            candidate,
            messages::Event::Local,
            heard,
            (Vec::new(), 0),
        );
        self.replicate(group, candidate);
    }

    pub(super) fn tick(&mut self) {
        for group in self.groups() {
            let leads = |node: usize| {
                let lead = self.replicas[&group][node].lead.as_ref();
                lead.is_some_and(|lead| lead.lease) && self.reaches(group, node)
            };
            if !(0..NODES).any(leads) && self.below(4) == 0 {
                self.elect(group);
            }
            for node in 0..NODES {
                // Each in its own time.
                if self.below(2) == 0 {
                    continue;
                }
                let replica = self.replica(group, node);
                if let Some(lead) = &mut replica.lead {
                    lead.next = lead.acked.map(|acked| acked.min(replica.log.len()));
                    lead.core.tick(&replica.state.ledger);
                    self.drive(group, node);
                    self.replicate(group, node);
                }
            }
        }
    }

    /// Appends an entry at a leader; its log is flushed a little later.
    fn append(
        &mut self,
        group: GroupId,
        node: usize,
        event: messages::Event,
        heard: Timestamp,
        (keys, item): (Vec<u8>, Item),
    ) {
        let own = self.own_clock(node);
        let asker = self.asker.map_or(node, |asker| asker.1);
        let replica = self.replica(group, node);
        let term = replica.term;
        let Some(lead) = &mut replica.lead else {
            return;
        };
        let timestamp = lead.clock.next(own, heard);
        let stamped = Stamped { timestamp, event };
        replica.append(Entry {
            term,
            stamped,
            keys,
            item,
            coordinator: asker,
        });
        let len = replica.log.len();
        self.flush(group, node, len, None);
    }

    /// A replica's disk has its log up to there a little later, and tells a leader of that term.
    fn flush(&mut self, group: GroupId, node: usize, len: usize, ack: Option<(usize, Term)>) {
        let generation = self.replica(group, node).generation;
        let delay = 100 + self.below(2 * MILLISECOND);
        self.after(
            delay,
            Event::Flushed {
                group,
                node,
                generation,
                len,
                ack,
            },
        );
    }

    /// Sends each follower what it lacks.
    fn replicate(&mut self, group: GroupId, node: usize) {
        for to in (0..NODES).filter(|to| *to != node) {
            let replica = self.replica(group, node);
            let (term, commit) = (replica.term, replica.commit);
            let Some(lead) = &mut replica.lead else {
                return;
            };
            let from = lead.next[to];
            lead.next[to] = replica.log.len();
            let before = (replica.term_at(from), from);
            let entries = replica.log[from..].to_vec();
            let packet = Packet::Append {
                from: node,
                term,
                before,
                entries,
                commit,
            };
            self.send(node, group, to, packet);
        }
    }

    /// Does what the leader's part says, until it says nothing more.
    fn drive(&mut self, group: GroupId, node: usize) {
        let mut grew = false;
        loop {
            let outputs = match &mut self.replica(group, node).lead {
                Some(lead) => lead.core.take(),
                None => return,
            };
            if outputs.is_empty() {
                break;
            }
            for output in outputs {
                match output {
                    Output::Append { event, heard } => {
                        let rows = self.rows_of(group, node, &event);
                        self.append(group, node, event, heard, rows);
                        grew = true;
                    }
                    Output::Send { to, message } => self.say(group, node, to, message),
                    Output::Decided { id, outcome } => self.decided(group, node, id, outcome),
                }
            }
        }
        if grew {
            self.replicate(group, node);
        }
    }

    fn rows_of(&mut self, group: GroupId, node: usize, event: &messages::Event) -> (Vec<u8>, Item) {
        let messages::Event::Prepare { id, .. } = event else {
            return (Vec::new(), 0);
        };
        let lead = self.replica(group, node).lead.as_ref();
        let body = lead.and_then(|lead| lead.bodies.get(id)).expect("its rows");
        (body.keys[&group].clone(), body.item)
    }

    fn say(&mut self, group: GroupId, node: usize, to: GroupId, message: Message) {
        let (mut keys, mut item) = (Vec::new(), 0);
        if let Message::Prepare { id, .. } = &message {
            let lead = self.replica(group, node).lead.as_ref();
            let body = lead.and_then(|lead| lead.bodies.get(id)).expect("its rows");
            (keys, item) = (body.keys[&to].clone(), body.item);
        }
        let from = group;
        let packet = Packet::Spanning {
            from,
            node,
            message,
            keys,
            item,
        };
        // An answer may go back to who asked, whether that one still leads or not.
        match self.asker.filter(|asker| asker.0 == to) {
            Some((_, asker)) if self.below(2) == 0 => self.send(node, to, asker, packet),
            _ => self.send_to_leader(node, to, packet),
        }
    }

    fn decided(&mut self, group: GroupId, node: usize, id: SpanningId, outcome: Outcome) {
        let replica = self.replica(group, node);
        let len = replica.log.len();
        let Some(lead) = &mut replica.lead else {
            return;
        };
        let body = lead.bodies.remove(&id);
        let Some((client, op)) = body.and_then(|body| body.client) else {
            return;
        };
        match outcome {
            Outcome::Committed(at) => self.reply(group, client, op, Reply::Committed(at)),
            Outcome::Aborted if is_planted(Bug::AbortUngated) => {
                self.reply(group, client, op, Reply::Aborted);
            }
            Outcome::Aborted => {
                let reply = Reply::Aborted;
                lead.held.push(Held {
                    len,
                    client,
                    op,
                    reply,
                });
            }
        }
    }

    fn reply(&mut self, from: GroupId, client: usize, op: u64, reply: Reply) {
        let delay = self.latency();
        self.after(
            delay,
            Event::Answer {
                client,
                op,
                from,
                reply,
            },
        );
    }

    pub(super) fn flushed(
        &mut self,
        group: GroupId,
        node: usize,
        generation: u64,
        len: usize,
        ack: Option<(usize, Term)>,
    ) {
        let replica = self.replica(group, node);
        if replica.generation != generation || replica.down {
            return;
        }
        let before = replica.flushed.min(len);
        replica.flushed = replica.flushed.max(len);
        let own = replica.term;
        self.tell_coordinators(group, node, (before, len));
        match ack {
            Some((to, term)) if own == term => {
                let from = node;
                self.send(node, group, to, Packet::Acked { from, term, len });
            }
            Some(_) => {}
            None => self.advance(group, node),
        }
    }

    /// Tells those who coordinate the prepares among some entries that they are on disk.
    fn tell_coordinators(&mut self, group: GroupId, node: usize, (from, to): (usize, usize)) {
        let replica = self.replica(group, node);
        let term = replica.term;
        let entries: Vec<Entry> = replica.log[from..to].to_vec();
        for entry in entries {
            if let messages::Event::Prepare { id, .. } = entry.stamped.event {
                let flushed = Flushed {
                    id,
                    group,
                    term,
                    node: NodeId(node as u64),
                    voters: NODES,
                    proposed: entry.stamped.timestamp,
                };
                let packet = Packet::Flushed(flushed);
                self.send(node, id.group, entry.coordinator, packet);
            }
        }
    }

    /// Moves a leader's commit index, and what waits for it.
    fn advance(&mut self, group: GroupId, node: usize) {
        let replica = self.replica(group, node);
        let Some(lead) = &mut replica.lead else {
            return;
        };
        lead.acked[node] = replica.flushed;
        let mut flushed = lead.acked;
        flushed.sort_unstable();
        let majority = flushed[(NODES - 1) / 2];
        if majority > replica.commit && replica.log[majority - 1].term == replica.term {
            replica.commit = majority;
            lead.core.committed(&replica.state.ledger, lsn(majority));
            let (due, held) = std::mem::take(&mut lead.held)
                .into_iter()
                .partition(|held: &Held| held.len <= majority);
            lead.held = held;
            let due: Vec<Held> = due;
            for held in due {
                self.reply(group, held.client, held.op, held.reply);
            }
            self.drive(group, node);
        }
    }

    pub(super) fn arrives(&mut self, group: GroupId, node: usize, packet: Packet) {
        if self.replica(group, node).down {
            return;
        }
        match packet {
            Packet::Append {
                from,
                term,
                before,
                entries,
                commit,
            } => self.follow(group, node, from, term, before, entries, commit),
            Packet::Acked { from, term, len } => {
                let replica = self.replica(group, node);
                if let Some(lead) = replica.lead.as_mut().filter(|_| replica.term == term) {
                    lead.acked[from] = lead.acked[from].max(len);
                    self.advance(group, node);
                }
            }
            Packet::Rejected { from, term, len } => {
                let replica = self.replica(group, node);
                if term > replica.term {
                    replica.term = term;
                    replica.lead = None;
                } else if let Some(lead) = &mut replica.lead {
                    lead.next[from] = len.min(replica.log.len());
                    self.replicate(group, node);
                }
            }
            Packet::Spanning {
                from,
                node: asker,
                message,
                keys,
                item,
            } => {
                self.asker = Some((from, asker));
                self.spanning(group, node, from, message, (keys, item));
                self.asker = None;
            }
            Packet::Flushed(flushed) => {
                let replica = self.replica(group, node);
                if let Some(lead) = &mut replica.lead {
                    lead.core.flushed(&replica.state.ledger, flushed);
                    self.drive(group, node);
                }
            }
            Packet::Request {
                client,
                op,
                request,
            } => self.request(group, node, client, op, request),
        }
    }

    #[allow(clippy::too_many_arguments)] // The fields of one packet.
    fn follow(
        &mut self,
        group: GroupId,
        node: usize,
        from: usize,
        term: Term,
        before: (Term, usize),
        entries: Vec<Entry>,
        commit: usize,
    ) {
        let replica = self.replica(group, node);
        let own = replica.term;
        let matches = replica.log.len() >= before.1 && replica.term_at(before.1) == before.0;
        if term < own || !matches {
            let len = before.1.saturating_sub(1).min(replica.log.len());
            let (term, from, to) = (own.max(term), node, from);
            replica.term = term;
            if own < term {
                replica.lead = None;
            }
            self.send(node, group, to, Packet::Rejected { from, term, len });
            return;
        }
        if term > own {
            replica.term = term;
            replica.lead = None;
        }
        let len = before.1 + entries.len();
        for (at, entry) in entries.into_iter().enumerate() {
            let at = before.1 + at;
            if replica.log.len() > at && replica.log[at].term == entry.term {
                continue;
            }
            replica.truncate(at);
            replica.append(entry);
        }
        replica.commit = replica.commit.max(commit.min(len));
        self.flush(group, node, len, Some((from, term)));
    }

    fn spanning(
        &mut self,
        group: GroupId,
        node: usize,
        from: GroupId,
        message: Message,
        (keys, item): (Vec<u8>, Item),
    ) {
        let replica = self.replica(group, node);
        let Some(lead) = &mut replica.lead else {
            return;
        };
        let ledger = &replica.state.ledger;
        if let Message::Prepare {
            id,
            participants,
            unfinished,
        } = message
        {
            if lead.core.admit(ledger, id, &participants, unfinished) == Admission::Validate {
                if keys.iter().any(|key| replica.state.is_locked(*key)) {
                    lead.core.refuse(id);
                } else {
                    let (keys, client) = (BTreeMap::from([(group, keys)]), None);
                    let body = Body { item, keys, client };
                    lead.bodies.insert(id, body);
                    lead.core.accept(id, &participants);
                }
            }
        } else {
            lead.core.receive(ledger, from, message);
        }
        self.drive(group, node);
    }

    fn request(&mut self, group: GroupId, node: usize, client: usize, op: u64, request: Request) {
        let replica = self.replica(group, node);
        let (len, term, commit) = (replica.log.len(), replica.term, replica.commit);
        let Some(lead) = &mut replica.lead else {
            return;
        };
        let state = &replica.state;
        let reply = match request {
            Request::Lead => Reply::Leads(term),
            Request::Commit { item, parts, heard } => {
                let own = &parts[0].1;
                if own.iter().any(|key| state.is_locked(*key)) {
                    Reply::Aborted
                } else {
                    self.commit(group, node, (client, op), item, parts, heard);
                    return;
                }
            }
            _ if !lead.lease => return,
            // What the session has heard of in this group is below the last timestamp anyway.
            Request::Read(heard) if heard <= state.ledger.last => {
                let mut snapshot = Snapshot::new(heard);
                snapshot.heard(state.ledger.last);
                match state.read_all(group, snapshot) {
                    Some(values) => Reply::Values(values, snapshot.timestamp()),
                    None => Reply::NotYet,
                }
            }
            Request::Read(heard) if is_planted(Bug::ReadUnheard) => {
                let snapshot = Snapshot::new(state.ledger.last);
                match state.read_all(group, snapshot) {
                    Some(values) => Reply::Values(values, heard),
                    None => Reply::NotYet,
                }
            }
            Request::Last => Reply::Last(state.ledger.last, standing(&state.ledger)),
            Request::Settled(ids) => {
                let outcomes = ids.iter().filter_map(|id| match state.ledger.kept.get(id) {
                    Some(kept) => Some(Outcome::Committed(kept.timestamp)),
                    None => state.outcome(*id),
                });
                let outcomes: Vec<Outcome> = outcomes.collect();
                match outcomes.len() == ids.len() {
                    true => Reply::Settled(outcomes),
                    false => Reply::NotYet,
                }
            }
            Request::ReadAt(at) | Request::Read(at) => {
                lead.clock.pass(at);
                if state.ledger.readable(lsn(commit)) < at {
                    if state.ledger.ceiling < at {
                        let ceiling = Timestamp(at.0 + 30 * MILLISECOND as i64);
                        let event = messages::Event::Ceiling(ceiling);
                        self.append(group, node, event, at, (Vec::new(), 0));
                        self.replicate(group, node);
                    }
                    self.reply(group, client, op, Reply::NotYet);
                    return;
                }
                match state.read_all(group, Snapshot::new(at)) {
                    Some(values) => Reply::Values(values, at),
                    None => Reply::NotYet,
                }
            }
        };
        // What an answer rests on is committed before it leaves.
        if len > commit {
            lead.held.push(Held {
                len,
                client,
                op,
                reply,
            });
        } else {
            self.reply(group, client, op, reply);
        }
    }

    fn commit(
        &mut self,
        group: GroupId,
        node: usize,
        (client, op): (usize, u64),
        item: Item,
        parts: Vec<(Participant, Vec<u8>)>,
        heard: Timestamp,
    ) {
        if parts.len() == 1 {
            let rows = (parts[0].1.clone(), item);
            self.append(group, node, messages::Event::Local, heard, rows);
            let replica = self.replica(group, node);
            let (len, at) = (replica.log.len(), replica.state.ledger.last);
            let reply = Reply::Committed(at);
            if let Some(lead) = &mut replica.lead {
                lead.held.push(Held {
                    len,
                    client,
                    op,
                    reply,
                });
            }
            self.replicate(group, node);
            return;
        }
        let participants: Vec<Participant> = parts.iter().map(|part| part.0).collect();
        let keys = parts.into_iter().map(|(one, keys)| (one.group, keys));
        let (keys, client) = (keys.collect(), Some((client, op)));
        let replica = self.replica(group, node);
        // Somebody else led when the terms were asked for.
        let Some(lead) = replica
            .lead
            .as_mut()
            .filter(|_| replica.term == participants[0].term)
        else {
            return;
        };
        let id = lead.core.coordinate(&participants, heard);
        lead.bodies.insert(id, Body { item, keys, client });
        self.drive(group, node);
    }
}

impl State {
    /// What became of a transaction, as far as its rows here show it.
    fn outcome(&self, wanted: SpanningId) -> Option<Outcome> {
        let versions = self.rows.values().flatten();
        let mut found = versions.filter_map(|version| match version.writer {
            Writer::Spanning { id, outcome, .. } if id == wanted => outcome,
            _ => None,
        });
        // A transaction without rows here was cut away with its prepare.
        let is_open = self.ledger.open.contains_key(&wanted);
        found.next().or((!is_open).then_some(Outcome::Aborted))
    }
}
