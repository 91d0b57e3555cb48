//! A simulated group: replicas, their disks, and the network between them, on one thread.
//!
//! Time is simulated; every replica has a clock of its own that may run fast or slow. Messages go
//! through their bytes. What is appended reaches the disk after the disk's latency, and a crash
//! forgets everything else.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use base::env::Instant;
use base::{Chain, GroupId, Lsn, NodeId, Position, Result, Term};
use raft::lease::default_drift;
use raft::{
    Config, Consensus, Entry, HardState, LogView, Membership, Message, Ready, Recovered, Role,
    SnapshotMeta,
};

pub const MILLISECOND: u64 = 1_000_000;

/// What a disk holds.
#[derive(Clone)]
pub struct Content {
    pub before: Position,
    /// The chain there.
    pub chain: Chain,
    pub entries: Vec<Entry>,
    pub hard_state: HardState,
    pub checkpoint: Option<SnapshotMeta>,
}

impl Default for Content {
    fn default() -> Content {
        Content {
            before: Position::default(),
            chain: Chain::START,
            entries: Vec::new(),
            hard_state: HardState::default(),
            checkpoint: None,
        }
    }
}

impl Content {
    fn last(&self) -> Lsn {
        Lsn(self.before.lsn.0 + self.entries.len() as u64)
    }

    fn append(&mut self, entries: Vec<Entry>) {
        if let Some(first) = entries.first() {
            assert!(first.lsn > self.before.lsn && first.lsn <= self.last().next());
            let keep = first.lsn.0 - self.before.lsn.0 - 1;
            self.entries.truncate(keep as usize);
            self.entries.extend(entries);
        }
    }

    fn term(&self, lsn: Lsn) -> Option<Term> {
        if lsn == self.before.lsn {
            return Some(self.before.term);
        }
        let index = lsn.0.checked_sub(self.before.lsn.0 + 1)?;
        self.entries.get(index as usize).map(|entry| entry.term)
    }
}

/// The log as the replica sees it.
#[derive(Clone, Default)]
pub struct MemoryLog(pub Rc<RefCell<Content>>);

impl LogView for MemoryLog {
    fn first(&self) -> Lsn {
        self.0.borrow().before.lsn.next()
    }

    fn last(&self) -> Lsn {
        self.0.borrow().last()
    }

    fn term(&self, lsn: Lsn) -> Option<Term> {
        self.0.borrow().term(lsn)
    }

    fn chain(&self, lsn: Lsn) -> Option<Chain> {
        let content = self.0.borrow();
        content.term(lsn)?;
        let entries = content.entries.iter();
        let up_to = entries.take_while(|entry| entry.lsn <= lsn);
        let mut chain = Some(content.chain);
        for entry in up_to {
            let kind = entry.kind.code();
            let digest = base::chain::digest(entry.position(), kind, &entry.data);
            chain = Chain::next(chain, kind, digest);
        }
        chain
    }

    fn entries(&self, low: Lsn, high: Lsn, bytes_max: usize) -> Result<Vec<Entry>> {
        let content = self.0.borrow();
        assert!(low > content.before.lsn && low < high && high <= content.last().next());
        let mut bytes = 0;
        let from = (low.0 - content.before.lsn.0 - 1) as usize;
        let entries = content.entries[from..]
            .iter()
            .take((high.0 - low.0) as usize)
            .take_while(|entry| {
                let fits = bytes <= bytes_max;
                bytes += entry.data.len();
                fits
            });
        Ok(entries.cloned().collect())
    }

    fn snapshot(&self) -> Option<SnapshotMeta> {
        self.0.borrow().checkpoint.clone()
    }
}

pub struct Replica {
    pub id: NodeId,
    pub consensus: Option<Consensus<MemoryLog>>,
    pub log: MemoryLog,
    disk: Content,
    /// What will be on disk, and when, oldest first; `u64` is the number to report.
    flushing: Vec<(u64, Content)>,
    pub flush_latency: u64,
    pub stalled: bool,
    /// What arrived while it stood still.
    inbox: Vec<Event>,
    /// Counts restarts: events of an older life are dropped.
    life: u64,
    clock_offset: u64,
    /// The clock's rate in thousandths.
    pub clock_rate: u64,
    fetch_latency: u64,
}

impl Replica {
    pub fn now(&self, time: u64) -> Instant {
        Instant(self.clock_offset + time / 1000 * self.clock_rate)
    }
}

#[derive(Clone, Debug)]
enum Event {
    Tick,
    Deliver { from: NodeId, bytes: Vec<u8> },
    Written(u64),
    Flushed,
    Fetched(Position),
}

/// A group and everything around it.
pub struct Cluster {
    pub time: u64,
    pub replicas: BTreeMap<NodeId, Replica>,
    events: BTreeMap<(u64, u64), (NodeId, u64, Event)>,
    sequence: u64,
    /// Links that are down, in one direction.
    pub cut: BTreeSet<(NodeId, NodeId)>,
    /// The least and the most that a message takes.
    pub latency: (u64, u64),
    /// Of a thousand messages, so many are lost.
    pub lossy: u64,
    pub seed: u64,
    /// Set to see every message.
    pub trace: Option<Vec<String>>,
    /// Set to keep every message's bytes.
    pub record: Option<Vec<Vec<u8>>>,
    pub transitions: Vec<String>,
    membership: Membership,
    /// What a replica's election timeout is drawn from whenever it starts, in milliseconds.
    pub election_timeouts: &'static [u64],
    /// Who led in each term, and whether it was told to give way.
    pub leaders: BTreeMap<Term, NodeId>,
    /// What was ever committed.
    pub committed: BTreeMap<Lsn, (Term, Vec<u8>)>,
    pub leases_seen: u64,
    /// Whether messages are made up, so that nothing need agree.
    lies: bool,
    /// Who stopped for good, and why, where somebody may.
    pub stopped: Option<Vec<(NodeId, String)>>,
    /// Whose log was forged: what it takes for committed is not.
    forged: Option<NodeId>,
}

impl Cluster {
    pub fn new(voters: &[u64], learners: &[u64], seed: u64) -> Cluster {
        let nodes = |ids: &[u64]| ids.iter().copied().map(NodeId).collect::<Vec<_>>();
        let membership = Membership::new(&nodes(voters), &nodes(learners));
        let mut cluster = Cluster {
            time: 0,
            replicas: BTreeMap::new(),
            events: BTreeMap::new(),
            sequence: 0,
            cut: BTreeSet::new(),
            latency: (MILLISECOND, MILLISECOND),
            lossy: 0,
            seed,
            trace: None,
            record: None,
            transitions: Vec::new(),
            membership,
            election_timeouts: &[],
            leaders: BTreeMap::new(),
            committed: BTreeMap::new(),
            leases_seen: 0,
            lies: false,
            stopped: None,
            forged: None,
        };
        for id in cluster.membership.nodes() {
            cluster.add(id);
        }
        cluster
    }

    /// A replica with an empty disk.
    pub fn add(&mut self, id: NodeId) {
        let replica = Replica {
            id,
            consensus: None,
            log: MemoryLog::default(),
            disk: Content::default(),
            flushing: Vec::new(),
            flush_latency: MILLISECOND / 2,
            stalled: false,
            inbox: Vec::new(),
            life: 0,
            clock_offset: id.0 * 1_000_000_000_000,
            clock_rate: 1000,
            fetch_latency: 20 * MILLISECOND,
        };
        self.replicas.insert(id, replica);
        self.start(id);
    }

    pub fn random(&mut self) -> u64 {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.seed;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn at(&mut self, time: u64, node: NodeId, event: Event) {
        self.sequence += 1;
        let life = self.replicas[&node].life;
        self.events
            .insert((time, self.sequence), (node, life, event));
    }

    pub fn replica(&mut self, id: NodeId) -> &mut Replica {
        self.replicas.get_mut(&id).expect("a replica of the group")
    }

    pub fn up(&mut self, id: NodeId) -> &mut Consensus<MemoryLog> {
        self.replica(id).consensus.as_mut().expect("it is up")
    }

    pub fn start(&mut self, id: NodeId) {
        let membership = self.membership.clone();
        let (time, timeouts) = (self.time, self.election_timeouts);
        let replica = self.replica(id);
        let content = replica.disk.clone();
        let checkpoint = content.checkpoint.clone();
        let recovered = Recovered {
            hard_state: HardState::decode(&content.hard_state.encode()).unwrap(),
            checkpoint: checkpoint
                .as_ref()
                .map_or(Lsn::ZERO, |meta| meta.position.lsn),
            membership: checkpoint.map_or(membership, |meta| meta.membership),
            ..Recovered::default()
        };
        replica.log = MemoryLog(Rc::new(RefCell::new(content)));
        let config = match timeouts.is_empty() {
            true => Config::new(GroupId(1), id, 7),
            false => {
                let index = self.random() as usize % timeouts.len();
                let election_timeout = Duration::from_millis(timeouts[index]);
                Config {
                    election_timeout,
                    drift_max: default_drift(election_timeout),
                    ..Config::new(GroupId(1), id, 7)
                }
            }
        };
        let replica = self.replica(id);
        let now = replica.now(time);
        let log = replica.log.clone();
        replica.consensus = Some(Consensus::new(config, log, recovered, now).unwrap());
        self.applied_all(id);
        self.at(time, id, Event::Tick);
        self.drain(id);
    }

    pub fn crash(&mut self, id: NodeId) {
        let replica = self.replica(id);
        replica.consensus = None;
        replica.stalled = false;
        replica.flushing.clear();
        replica.inbox.clear();
        replica.life += 1;
    }

    /// Puts another entry in the place of one on the disk of a replica that is down: as if it had
    /// been of another history.
    pub fn forge(&mut self, id: NodeId, lsn: Lsn) {
        self.forged = Some(id);
        let disk = &mut self.replica(id).disk;
        let mut entries = disk.entries.iter_mut();
        let entry = entries.find(|entry| entry.lsn == lsn).expect("it is there");
        entry.data = b"forged".to_vec();
    }

    pub fn resume(&mut self, id: NodeId) {
        let replica = self.replica(id);
        replica.stalled = false;
        let inbox = std::mem::take(&mut replica.inbox);
        for event in inbox {
            self.happen(id, event);
        }
    }

    /// Runs for a while.
    pub fn run(&mut self, duration: u64) {
        let end = self.time + duration;
        while let Some((&(time, sequence), _)) = self.events.first_key_value() {
            if time > end {
                break;
            }
            let (node, life, event) = self.events.remove(&(time, sequence)).unwrap();
            self.time = time;
            let replica = self.replica(node);
            if replica.life != life || replica.consensus.is_none() {
                continue;
            }
            if replica.stalled {
                replica.inbox.push(event);
                continue;
            }
            self.happen(node, event);
            self.check_leases();
        }
        self.time = end;
        self.check_leases();
    }

    fn happen(&mut self, node: NodeId, event: Event) {
        let time = self.time;
        let now = self.replica(node).now(time);
        match event {
            Event::Tick => {
                self.up(node).tick(now);
                let wait = self.up(node).next_tick().since(now).as_nanos() as u64;
                let rate = self.replica(node).clock_rate;
                self.at(time + wait.max(1) * 1000 / rate + 1000, node, Event::Tick);
            }
            Event::Deliver { from, bytes } => {
                let message = Message::decode(&bytes).expect("what was encoded is decoded");
                assert_eq!(message.encode(), bytes);
                if let Some(trace) = &mut self.trace {
                    trace.push(format!("{from} → {node}  {}", describe(&message)));
                }
                let stepped = self.up(node).step(from, message, now);
                if let (Err(error), Some(stopped)) = (&stepped, &mut self.stopped) {
                    stopped.push((node, error.to_string()));
                    return self.crash(node);
                }
                stepped.unwrap();
            }
            Event::Written(number) => self.up(node).written(number),
            Event::Flushed => {
                let replica = self.replica(node);
                let (number, content) = replica.flushing.remove(0);
                replica.disk = content;
                self.up(node).persisted(number, now);
            }
            Event::Fetched(position) => {
                self.up(node).snapshot_fetched(position, now).unwrap();
            }
        }
        self.drain(node);
    }

    /// Does everything that a replica asks for.
    pub fn drain(&mut self, node: NodeId) {
        while let Some(ready) = self.up(node).ready().unwrap() {
            self.handle(node, ready);
        }
    }

    /// Does what a replica asks for, and forgets it at its next crash.
    pub fn obey_in_memory(&mut self, node: NodeId, mut ready: Ready) {
        self.lies = true;
        ready.must_sync = false;
        ready.offer = None;
        ready.messages.clear();
        ready.state = None;
        self.handle(node, ready);
        self.lies = false;
    }

    fn handle(&mut self, node: NodeId, ready: Ready) {
        let time = self.time;
        if let Some(state) = ready.state {
            self.transitions.push(format!(
                "{node} is {} in term {}{}",
                state.role.name(),
                state.term,
                state
                    .leader
                    .map_or(String::new(), |l| format!(" under {l}")),
            ));
            if state.role == Role::Leader {
                let known = self.leaders.insert(state.term, node);
                assert!(known.is_none_or(|known| known == node), "two leaders");
            }
        }
        for envelope in ready.messages {
            self.post(node, envelope.to, envelope.message.encode());
        }
        let replica = self.replica(node);
        {
            let mut content = replica.log.0.borrow_mut();
            if let Some(meta) = &ready.snapshot {
                content.before = meta.position;
                content.chain = meta.chain.expect("it is known");
                content.entries.clear();
                content.checkpoint = Some(meta.clone());
            }
            content.append(ready.entries);
            if let Some(state) = ready.hard_state {
                content.hard_state = state;
            }
        }
        if ready.must_sync {
            let content = replica.log.0.borrow().clone();
            replica.flushing.push((ready.number, content));
            let latency = replica.flush_latency;
            self.at(time + latency / 4, node, Event::Written(ready.number));
            self.at(time + latency, node, Event::Flushed);
        }
        if let Some(offer) = ready.offer {
            let latency = self.replica(node).fetch_latency;
            self.at(time + latency, node, Event::Fetched(offer.meta.position));
        }
        self.up(node).advance(ready.number);
        self.applied_all(node);
        if !self.lies {
            self.check_committed(node, ready.committed);
        }
    }

    /// Trees follow the log at once here.
    fn applied_all(&mut self, node: NodeId) {
        let log = self.replica(node).log.clone();
        let lsn = log.last();
        let term = log.term(lsn).unwrap();
        self.up(node).applied(Position { term, lsn });
    }

    fn post(&mut self, from: NodeId, to: NodeId, bytes: Vec<u8>) {
        if let Some(record) = &mut self.record {
            record.push(bytes.clone());
        }
        let lost = self.random() % 1000 < self.lossy;
        if lost || self.cut.contains(&(from, to)) || !self.replicas.contains_key(&to) {
            return;
        }
        let (least, most) = self.latency;
        let latency = least + self.random() % (most - least + 1);
        self.at(self.time + latency, to, Event::Deliver { from, bytes });
    }

    /// No two replicas ever disagree about what is committed.
    fn check_committed(&mut self, node: NodeId, committed: Lsn) {
        if self.forged == Some(node) {
            return;
        }
        let log = self.replicas[&node].log.0.borrow().clone();
        for entry in log.entries.iter().filter(|entry| entry.lsn <= committed) {
            let found = (entry.term, entry.data.clone());
            let known = self
                .committed
                .entry(entry.lsn)
                .or_insert_with(|| found.clone());
            assert_eq!(*known, found, "{node} at {:?}", entry.lsn);
        }
    }

    /// While a lease is valid, nobody has been elected in a later term.
    pub fn check_leases(&mut self) {
        let newest = self.leaders.last_key_value().map(|(term, _)| *term);
        for replica in self.replicas.values() {
            let Some(consensus) = &replica.consensus else {
                continue;
            };
            let now = replica.now(self.time);
            let Some(lease) = consensus.lease().filter(|lease| lease.is_valid(now)) else {
                continue;
            };
            self.leases_seen += 1;
            assert!(
                newest.is_some_and(|newest| newest <= lease.term),
                "at {} ms node {} has a lease of term {}, but term {newest:?} has a leader",
                self.time / MILLISECOND,
                replica.id,
                lease.term
            );
        }
    }

    pub fn leader(&self) -> Option<NodeId> {
        let leads = |replica: &&Replica| {
            let consensus = replica.consensus.as_ref();
            consensus.is_some_and(|consensus| consensus.is_leader()) && !replica.stalled
        };
        let term = |replica: &Replica| replica.consensus.as_ref().map(|c| c.term());
        self.replicas
            .values()
            .filter(leads)
            .max_by_key(|replica| term(replica))
            .map(|replica| replica.id)
    }

    pub fn propose(&mut self, node: NodeId, data: &[u8]) -> Result<Position> {
        let term = self.up(node).term();
        let position = self.up(node).propose(term, data.to_vec());
        self.drain(node);
        position
    }

    /// Makes a checkpoint at the commit index and forgets the log up to `keep_from`.
    pub fn compact(&mut self, node: NodeId) {
        let committed = self.up(node).committed().min(self.up(node).flushed());
        let membership = self.up(node).membership().clone();
        let replica = self.replica(node);
        let chain = replica.log.chain(committed).expect("it is known");
        let mut content = replica.log.0.borrow_mut();
        let term = content.term(committed).unwrap();
        let position = Position {
            term,
            lsn: committed,
        };
        content.entries.retain(|entry| entry.lsn > committed);
        (content.before, content.chain) = (position, chain);
        content.checkpoint = Some(SnapshotMeta {
            position,
            chain: Some(chain),
            membership,
        });
        let (before, checkpoint) = (content.before, content.checkpoint.clone());
        drop(content);
        for disk in replica
            .flushing
            .iter_mut()
            .map(|(_, content)| content)
            .chain([&mut replica.disk])
        {
            disk.entries.retain(|entry| entry.lsn > before.lsn);
            (disk.before, disk.chain) = (before, chain);
            disk.checkpoint = checkpoint.clone();
        }
    }

    pub fn isolate(&mut self, node: NodeId) {
        for other in self.replicas.keys().copied().collect::<Vec<_>>() {
            if other != node {
                self.cut.insert((node, other));
                self.cut.insert((other, node));
            }
        }
    }
}

pub fn milliseconds(text: &str) -> u64 {
    let number = text.strip_suffix("ms").expect("a time in ms");
    number.parse::<u64>().expect("a number") * MILLISECOND
}

pub fn describe(message: &Message) -> String {
    match message {
        Message::Raft(message) => message.to_string(),
        other => format!("{other:?}"),
    }
}
