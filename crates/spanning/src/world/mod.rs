//! A world of several groups, on one thread and from one seed: three nodes with a replica of each,
//! a network that loses, delays and doubles, leaders that are lost, clocks that jump, and clients
//! that append to lists and read them.
//!
//! [`replica`] is a group's log in the small (terms, flushes, a majority's acknowledgements), and what
//! a host does with this crate: the part that `kv` will play. [`client`] is what sessions do, and
//! [`check`] looks at what they were told, and at nothing else: whether there is one order in which
//! all of it happened, whether what was acknowledged is seen from then on, whether anything was lost,
//! done twice or in part, and whether everything comes to an end when the faults do.

mod check;
mod client;
mod replica;
mod tests;

use std::collections::BTreeMap;

use base::{GroupId, Lsn, Term, Timestamp};

use crate::messages::{Flushed, Message, Outcome, Participant, SpanningId};
use crate::planted::{self, Bug};
use client::Client;
use replica::{Entry, Replica};

/// Replicas of each group, one on each node.
const NODES: usize = 3;
/// Keys of each group.
const KEYS: u8 = 5;
const CLIENTS: usize = 12;
const MILLISECOND: u64 = 1_000;
const SECOND: u64 = 1_000 * MILLISECOND;
/// For so long there are faults, and then none.
const FAULTS_FOR: u64 = 6 * SECOND;
/// Then everything must have come to its end.
const ENDS_AT: u64 = FAULTS_FOR + 6 * SECOND;
/// How far a machine's clock may be from a majority's, in microseconds.
const CLOCK_BOUND: i64 = SECOND as i64;

/// What a transaction appends to a list: its own number.
type Item = u64;
/// A list of a group.
type Row = (GroupId, u8);
/// The values of some lists.
type Values = BTreeMap<Row, Vec<Item>>;

/// What arrives at a replica.
#[derive(Clone)]
enum Packet {
    /// From the leader of its group: entries after `before`.
    Append {
        from: usize,
        term: Term,
        before: (Term, usize),
        entries: Vec<Entry>,
        commit: usize,
    },
    /// From a follower: it has flushed what stands up to there.
    Acked { from: usize, term: Term, len: usize },
    /// From a follower: it lacks what comes before, or has something else.
    Rejected { from: usize, term: Term, len: usize },
    /// From the leader of another group, a prepare with its rows.
    Spanning {
        from: GroupId,
        node: usize,
        message: Message,
        keys: Vec<u8>,
        item: Item,
    },
    /// From a replica of some group, to the node that coordinates.
    Flushed(Flushed),
    /// From a client.
    Request {
        client: usize,
        op: u64,
        request: Request,
    },
}

/// What a client asks of the leader of a group.
#[derive(Clone)]
enum Request {
    /// In which term do you lead?
    Lead,
    /// Append this number to these lists.
    Commit {
        item: Item,
        parts: Vec<(Participant, Vec<u8>)>,
        heard: Timestamp,
    },
    /// All lists, as they are, for a session that has heard of this timestamp.
    Read(Timestamp),
    /// Your last timestamp, and which prepares stand.
    Last,
    /// What became of these prepares?
    Settled(Vec<SpanningId>),
    /// All lists at this timestamp.
    ReadAt(Timestamp),
}

#[derive(Clone)]
enum Reply {
    Leads(Term),
    Committed(Timestamp),
    Aborted,
    Values(Values, Timestamp),
    Last(Timestamp, Vec<SpanningId>),
    Settled(Vec<Outcome>),
    NotYet,
}

enum Event {
    Arrives {
        group: GroupId,
        node: usize,
        packet: Packet,
    },
    Flushed {
        group: GroupId,
        node: usize,
        generation: u64,
        len: usize,
        ack: Option<(usize, Term)>,
    },
    Answer {
        client: usize,
        op: u64,
        from: GroupId,
        reply: Reply,
    },
    Wake {
        client: usize,
        op: u64,
    },
    /// Reads once more at the same timestamp.
    Again {
        client: usize,
        op: u64,
    },
    Tick,
    Fault,
    Restart(usize),
    /// A node is reached again.
    Return(usize),
    /// Elects a leader, who is cut off at once, or after whom nobody is.
    Elect {
        group: GroupId,
        cut: bool,
    },
    Heal,
}

/// What is to be seen of a world when it has ended.
#[derive(Debug, Default)]
struct Report {
    violation: Option<String>,
    commits: usize,
    spanning: usize,
    reads: usize,
    elections: usize,
}

struct World {
    state: u64,
    now: u64,
    sequence: u64,
    events: BTreeMap<(u64, u64), Event>,
    replicas: BTreeMap<GroupId, Vec<Replica>>,
    clients: Vec<Client>,
    /// Nodes that nobody reaches.
    isolated: [bool; NODES],
    /// Replicas that the others of their group do not reach.
    cut: BTreeMap<(GroupId, usize), ()>,
    /// How far each node's clock is off.
    offsets: [i64; NODES],
    /// Of so many messages one is very late.
    late: u64,
    /// Of four statements so many are about one group.
    alone: u64,
    /// Whether leaders are often lost in all groups at once.
    stormy: bool,
    /// What is not said within this time, a session goes on without.
    patience: u64,
    /// At most so long is it quiet between two faults.
    quiet: u64,
    items: Item,
    /// Whom each node believes to lead each group.
    believed: BTreeMap<(usize, GroupId), usize>,
    /// Whose message is being answered.
    asker: Option<(GroupId, usize)>,
    history: check::History,
    elections: usize,
}

/// Runs the world of a seed to its end.
fn run(seed: u64, bug: Option<Bug>) -> Report {
    planted::plant(bug);
    let mut world = World::new(seed);
    world.go();
    let report = world.report();
    planted::plant(None);
    report
}

impl World {
    fn new(seed: u64) -> World {
        let mut world = World {
            state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5555,
            now: 1_000 * SECOND,
            sequence: 0,
            events: BTreeMap::new(),
            replicas: BTreeMap::new(),
            clients: (0..CLIENTS).map(|_| Client::default()).collect(),
            isolated: [false; NODES],
            cut: BTreeMap::new(),
            offsets: [0; NODES],
            late: 40,
            quiet: 0,
            alone: 0,
            stormy: false,
            patience: 0,
            items: 0,
            believed: BTreeMap::new(),
            asker: None,
            history: check::History::default(),
            elections: 0,
        };
        let groups = 2 + world.below(4) as u32;
        for group in 1..=groups {
            let replicas = (0..NODES).map(|_| Replica::default()).collect();
            world.replicas.insert(GroupId(group), replicas);
        }
        let skew = [50, 900, 1_800][world.below(3) as usize] * MILLISECOND;
        for node in 0..NODES {
            world.offsets[node] = world.below(skew) as i64 - (skew / 2) as i64;
        }
        if world.below(3) == 0 {
            // No two clocks agree, so none may be used.
            world.offsets = [0, 1, 2].map(|node| node * 3_600 * SECOND as i64);
        }
        world.late = [60, 25, 10][world.below(3) as usize];
        world.alone = world.below(4);
        world.stormy = world.below(3) == 0;
        world.patience = [300, 900][world.below(2) as usize] * MILLISECOND;
        world.quiet = [500, 400, 200][world.below(3) as usize] * MILLISECOND;
        world
    }

    fn go(&mut self) {
        let begin = self.now;
        for group in self.groups() {
            self.elect(group);
        }
        self.after(0, Event::Tick);
        self.after(200 * MILLISECOND, Event::Fault);
        for client in 0..CLIENTS {
            self.after(5 * MILLISECOND, Event::Wake { client, op: 0 });
        }
        while let Some(((time, _), event)) = self.events.pop_first() {
            self.now = time;
            if time > begin + ENDS_AT {
                break;
            }
            self.handle(event, begin);
        }
    }

    fn handle(&mut self, event: Event, begin: u64) {
        let faulty = self.now < begin + FAULTS_FOR;
        match event {
            Event::Arrives {
                group,
                node,
                packet,
            } => self.arrives(group, node, packet),
            Event::Flushed {
                group,
                node,
                generation,
                len,
                ack,
            } => self.flushed(group, node, generation, len, ack),
            Event::Answer {
                client,
                op,
                from,
                reply,
            } => self.answered(client, op, from, reply),
            Event::Wake { client, op } => self.wake(client, op, faulty),
            Event::Again { client, op } => self.read_again(client, op),
            Event::Tick => {
                self.tick();
                self.after(20 * MILLISECOND, Event::Tick);
            }
            Event::Fault if faulty => {
                self.fault();
                let pause = 20 * MILLISECOND + self.below(self.quiet);
                self.after(pause, Event::Fault);
            }
            Event::Fault => {
                self.heal();
                for node in 0..NODES {
                    self.restart(node);
                }
            }
            Event::Restart(node) => self.restart(node),
            Event::Return(node) => self.isolated[node] = false,
            Event::Elect { group, cut } => {
                if !cut {
                    self.cut.retain(|(of, _), ()| *of != group);
                }
                self.elect(group);
                if let Some(leader) = self.leader(group).filter(|_| cut) {
                    self.cut.insert((group, leader), ());
                }
            }
            Event::Heal => self.heal(),
        }
    }

    fn heal(&mut self) {
        self.isolated = [false; NODES];
        self.cut.clear();
    }

    fn fault(&mut self) {
        let node = self.below(NODES as u64) as usize;
        let groups = self.groups();
        let group = groups[self.below(groups.len() as u64) as usize];
        let kind = match self.stormy && self.below(2) == 0 {
            true => 5,
            false => self.below(10),
        };
        match kind {
            0 => {
                for group in groups {
                    self.crash(group, node);
                }
                let pause = 50 * MILLISECOND + self.below(400 * MILLISECOND);
                self.after(pause, Event::Restart(node));
            }
            1 => self.isolated[node] = true,
            2 | 3 => {
                // A leader that hears other groups, but not its own.
                let leader = self.leader(group).unwrap_or(node);
                self.cut.insert((group, leader), ());
            }
            4 => self.elect(group),
            5 => {
                // Leaders are lost with what they have not sent, and so are the next ones.
                for group in groups {
                    if let Some(leader) = self.leader(group) {
                        self.cut.insert((group, leader), ());
                    }
                    let pause = self.below(40 * MILLISECOND);
                    let cut = self.below(2) == 0;
                    self.after(pause, Event::Elect { group, cut });
                    let pause = pause + self.below(250 * MILLISECOND);
                    self.after(pause, Event::Elect { group, cut: false });
                }
            }
            6 | 7 => {
                // Who was away hears other groups before its own.
                self.isolated[node] = true;
                for group in groups {
                    self.cut.insert((group, node), ());
                }
                let pause = 100 * MILLISECOND + self.below(300 * MILLISECOND);
                self.after(pause, Event::Return(node));
                let pause = pause + 100 * MILLISECOND + self.below(400 * MILLISECOND);
                self.after(pause, Event::Heal);
                return;
            }
            8 => {
                let seconds = [0, 3_600, -3_600, 1, -1][self.below(5) as usize];
                self.offsets[node] += seconds * SECOND as i64;
            }
            _ => self.heal(),
        }
        if self.isolated != [false; NODES] || !self.cut.is_empty() {
            let pause = 50 * MILLISECOND + self.below(400 * MILLISECOND);
            self.after(pause, Event::Heal);
        }
    }

    fn groups(&self) -> Vec<GroupId> {
        self.replicas.keys().copied().collect()
    }

    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random() % bound
    }

    fn after(&mut self, delay: u64, event: Event) {
        self.sequence += 1;
        self.events.insert((self.now + delay, self.sequence), event);
    }

    /// The clock of a node, if it may be used.
    fn own_clock(&self, node: usize) -> Option<Timestamp> {
        let clock = |node: usize| Timestamp(self.now as i64 + self.offsets[node]);
        let others: Vec<Timestamp> = (0..NODES).filter(|one| *one != node).map(clock).collect();
        crate::trusted(clock(node), &others, CLOCK_BOUND)
    }

    /// How long a message takes: most are quick, some very late.
    fn latency(&mut self) -> u64 {
        match self.below(self.late) {
            0 => match self.below(3) {
                0 => MILLISECOND * (50 + self.below(700)),
                _ => MILLISECOND * (10 + self.below(150)),
            },
            1 => MILLISECOND + self.below(12 * MILLISECOND),
            _ => 100 + self.below(MILLISECOND),
        }
    }

    /// Sends a packet from a node to a replica; it may be lost or arrive twice.
    fn send(&mut self, from: usize, group: GroupId, node: usize, packet: Packet) {
        let inside = matches!(
            packet,
            Packet::Append { .. } | Packet::Acked { .. } | Packet::Rejected { .. }
        );
        let severed = self.isolated[from] != self.isolated[node]
            || self.isolated[from] && from != node
            || inside
                && (self.cut.contains_key(&(group, from)) || self.cut.contains_key(&(group, node)));
        let copies = match self.below(60) {
            _ if severed && from != node => 0,
            0 => 0,
            // A session's connection delivers once.
            1..=4 if !matches!(packet, Packet::Request { .. }) => 2,
            _ => 1,
        };
        for _ in 0..copies {
            let delay = self.latency();
            let packet = packet.clone();
            self.after(
                delay,
                Event::Arrives {
                    group,
                    node,
                    packet,
                },
            );
        }
    }

    /// Sends a packet to the leader of a group, as far as the sender knows: it may have missed some.
    fn send_to_leader(&mut self, from: usize, group: GroupId, packet: Packet) {
        let leader = self.leader(group);
        let looks = self.below(6) == 0;
        let believed = self.believed.entry((from, group)).or_insert(0);
        if let Some(leader) = leader.filter(|_| looks) {
            *believed = leader;
        }
        let node = *believed;
        self.send(from, group, node, packet);
    }

    /// The node of the leader with the greatest term.
    fn leader(&self, group: GroupId) -> Option<usize> {
        let replicas = self.replicas[&group].iter().enumerate();
        let leaders = replicas.filter(|(_, one)| one.lead.is_some());
        leaders
            .max_by_key(|(_, one)| one.term)
            .map(|(node, _)| node)
    }

    fn report(&self) -> Report {
        let mut report = self.history.report();
        report.elections = self.elections;
        let wrong = self
            .unfinished()
            .or_else(|| self.history.check(&self.lists()));
        report.violation = wrong;
        report
    }

    /// What should be over by now.
    fn unfinished(&self) -> Option<String> {
        for (group, replicas) in &self.replicas {
            let Some(leader) = self.leader(*group) else {
                return Some(format!("group {group} has no leader"));
            };
            let ledger = &replicas[leader].state.ledger;
            if !ledger.open.is_empty() {
                return Some(format!(
                    "group {group} has open prepares: {:?}",
                    ledger.open
                ));
            }
            if !ledger.kept.is_empty() {
                return Some(format!("group {group} keeps outcomes: {:?}", ledger.kept));
            }
        }
        None
    }

    /// All lists as they are in the end.
    fn lists(&self) -> Values {
        let mut values = Values::new();
        for (group, replicas) in &self.replicas {
            let Some(leader) = self.leader(*group) else {
                continue;
            };
            for key in 0..KEYS {
                values.insert((*group, key), replicas[leader].state.items(key));
            }
        }
        values
    }
}

/// The LSN of the entry that makes a log this long.
fn lsn(len: usize) -> Lsn {
    Lsn(len as u64)
}
