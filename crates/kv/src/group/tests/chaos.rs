//! Clients on three nodes while nodes crash and links are cut, judged by an oracle outside.
//!
//! Each client has a counter of its own. It raises it by committing the new value together with a
//! row that names it, and now and then reads somebody else's. The oracle knows:
//!
//! - what was acknowledged at `on` is there for every later reader, and at the end;
//! - what was answered with 40001 is never there;
//! - whatever is there is whole: a counter at n has exactly the rows 1 to n;
//! - in the end all replicas and their indexes are equal.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base::coro::{self, Interrupts};
use base::env::sleep;
use base::row::Row;
use base::{Durability, Error, NodeId, Position, Result, SqlState};

use super::cluster::{commit, insert, millis, rows, update, Cluster, TABLE};
use crate::config::GroupSettings;
use crate::group::Group;

/// What the world outside knows.
#[derive(Default)]
pub struct Oracle {
    next_client: u64,
    /// The highest value acknowledged for each client.
    acknowledged: BTreeMap<u64, u64>,
    never: BTreeSet<(u64, u64)>,
    pub commits: usize,
    pub refused: usize,
    pub reads: usize,
}

type Shared = Rc<RefCell<Oracle>>;

fn counter(client: u64) -> String {
    format!("c{client:04}")
}

fn log_key(client: u64, value: u64) -> String {
    format!("r{client:04}-{value:06}")
}

/// One client of one node, in one life of it.
struct Client {
    id: u64,
    group: Arc<Group>,
    oracle: Shared,
}

impl Client {
    /// What a client's counter is as of a new snapshot, and what that rests on.
    fn read(&self, client: u64) -> Result<(u64, Position)> {
        let snapshot = self.group.snapshot()?;
        let mut row = Vec::new();
        let key = counter(client);
        let found = self
            .group
            .store()
            .get(TABLE, key.as_bytes(), snapshot.lsn(), &mut row)?;
        self.group.check_term(snapshot.term())?;
        let owes = Position {
            term: snapshot.term(),
            lsn: found.owes,
        };
        if !found.exists {
            return Ok((0, owes));
        }
        let row = Row::parse(&row)?;
        let text = std::str::from_utf8(row.column(1).unwrap_or_default());
        Ok((text.expect("text").parse().expect("a number"), owes))
    }

    fn settle(&self, position: Position, level: Durability) -> Result<()> {
        coro::wait(self.group.settle(position, level))?
    }

    fn write(&self, level: Durability) -> Result<()> {
        let (value, owes) = self.read(self.id)?;
        self.settle(owes, Durability::On)?;
        let next = value + 1;
        let mut changes = match value {
            0 => insert(&counter(self.id), &next.to_string()),
            _ => update(&counter(self.id), &value.to_string(), &next.to_string()),
        };
        changes.extend(insert(&log_key(self.id, next), "x"));
        let position = commit(&self.group, changes)?;
        let result = self.settle(position, level);
        let mut oracle = self.oracle.borrow_mut();
        match &result {
            Ok(()) if level >= Durability::On => {
                oracle.commits += 1;
                let known = oracle.acknowledged.entry(self.id).or_default();
                *known = next.max(*known);
            }
            Err(error) if error.state() == SqlState::SERIALIZATION_FAILURE => {
                oracle.never.insert((self.id, next));
                oracle.refused += 1;
            }
            _ => {}
        }
        result
    }

    /// Reads another's counter: never less than what was acknowledged before.
    fn look(&self, choice: u64) -> Result<()> {
        let Some((client, before)) = ({
            let oracle = self.oracle.borrow();
            let index = choice as usize % oracle.acknowledged.len().max(1);
            oracle
                .acknowledged
                .iter()
                .nth(index)
                .map(|(id, value)| (*id, *value))
        }) else {
            return Ok(());
        };
        let (value, owes) = self.read(client)?;
        self.settle(owes, Durability::On)?;
        assert!(value >= before, "client {client}: {value} after {before}");
        self.oracle.borrow_mut().reads += 1;
        Ok(())
    }
}

async fn live(client: Client, env: Arc<dyn base::env::Env>) {
    let client = Rc::new(client);
    loop {
        sleep(&*env, Duration::from_micros(env.random() % 20_000)).await;
        if client.group.leading().is_none() {
            continue;
        }
        let (choice, me) = (env.random(), client.clone());
        let level = Durability::ALL[(env.random() % 5) as usize];
        let body = move || match choice % 3 {
            0 => me.look(choice / 3),
            _ => me.write(level),
        };
        let result = coro::run(Arc::new(Interrupts::default()), body).await;
        let expected = |error: &Error| {
            let states = [
                SqlState::SERIALIZATION_FAILURE,
                SqlState::TRANSACTION_RESOLUTION_UNKNOWN,
            ];
            states.contains(&error.state())
        };
        if let Err(error) = result {
            assert!(expected(&error), "{error:?}");
        }
    }
}

/// A cluster under attack.
pub struct Chaos {
    pub cluster: Cluster,
    pub oracle: Shared,
    pub clients_per_node: u64,
}

impl Chaos {
    pub fn new(seed: u64, settings: GroupSettings) -> Chaos {
        let mut cluster = Cluster::with(seed, 3, settings);
        cluster.create_table();
        let mut chaos = Chaos {
            cluster,
            oracle: Rc::default(),
            clients_per_node: 3,
        };
        for node in 1..=3 {
            chaos.add_clients(NodeId(node));
        }
        chaos
    }

    fn add_clients(&mut self, node: NodeId) {
        for _ in 0..self.clients_per_node {
            let id = {
                let mut oracle = self.oracle.borrow_mut();
                oracle.next_client += 1;
                oracle.next_client
            };
            let group = self.cluster.groups[&node].clone();
            let env = group.env.clone();
            let oracle = self.oracle.clone();
            let client = Client { id, group, oracle };
            self.cluster.world.spawn_on(node, live(client, env));
        }
    }

    pub fn crash(&mut self, node: NodeId) {
        self.cluster.crash(node);
    }

    pub fn restart(&mut self, node: NodeId) {
        self.cluster.start(node);
        self.add_clients(node);
    }

    pub fn isolate(&mut self, node: NodeId, up: bool) {
        for other in (1..=3).map(NodeId).filter(|other| *other != node) {
            self.cluster.world.link(node, other, up);
        }
    }

    fn random(&self, below: u64) -> u64 {
        self.cluster.world.random() % below
    }

    pub fn pass(&mut self, most: u64) {
        let time = self.random(most);
        self.cluster.world.pass(millis(time));
        for node in (1..=3).map(NodeId) {
            assert_eq!(self.cluster.world.stopped(node), None, "node {node}");
        }
    }

    /// One thing goes wrong, for a while.
    pub fn fault(&mut self) {
        let groups = &self.cluster.groups;
        let leader = groups.iter().find(|(_, group)| group.leading().is_some());
        let node = match (leader, self.random(2)) {
            (Some((leader, _)), 0) => *leader,
            _ => NodeId(1 + self.random(3)),
        };
        match self.random(6) {
            0 => {
                self.isolate(node, false);
                self.pass(1_000);
                self.isolate(node, true);
            }
            1 => {
                let other = NodeId(1 + node.0 % 3);
                self.cluster.world.link(node, other, false);
                self.pass(1_000);
                self.cluster.world.link(node, other, true);
            }
            2 => {
                // Long enough for the others to let go of the log.
                self.isolate(node, false);
                self.pass(1_000);
                self.pass(6_000);
                self.isolate(node, true);
            }
            3 => {
                self.cluster.world.freeze(node, true);
                self.pass(2_000);
                self.cluster.world.freeze(node, false);
            }
            4 => {
                let all = (1..=3).map(NodeId);
                all.clone().for_each(|node| self.crash(node));
                self.pass(100);
                all.for_each(|node| self.restart(node));
            }
            _ => {
                self.crash(node);
                self.pass(1_000);
                self.restart(node);
            }
        }
    }

    /// The world is whole again: everything must be as the oracle knows it.
    pub fn judge(&mut self) {
        // Clients die with their hosts; so the state comes to rest.
        for node in (1..=3).map(NodeId) {
            self.crash(node);
        }
        for node in (1..=3).map(NodeId) {
            self.cluster.start(node);
        }
        self.cluster.leader();
        self.cluster
            .commit_at(insert("last", "1"), Durability::RemoteApply);
        self.cluster.assert_equal();
        self.cluster.check();
        let rows = rows(&self.cluster.groups[&NodeId(1)]);
        let oracle = self.oracle.borrow();
        for client in 1..=oracle.next_client {
            let value = rows
                .get(&counter(client))
                .map_or(0, |text| text.parse().expect("number"));
            let acknowledged = oracle.acknowledged.get(&client).copied().unwrap_or(0);
            assert!(
                value >= acknowledged,
                "{client}: {value} and not {acknowledged}"
            );
            for logged in 1..=value + 1 {
                let there = rows.contains_key(&log_key(client, logged));
                assert_eq!(there, logged <= value, "{client}: {logged} of {value}");
            }
        }
    }
}

fn settings() -> GroupSettings {
    GroupSettings {
        segment_bytes: 8 << 10,
        checkpoint_log_bytes: 16_000,
        kept_log_bytes: 5_000,
        absent_log_bytes_max: 10_000,
        ..GroupSettings::default()
    }
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_stale_is_shown() {
    survive(&settings());
}

#[test]
fn transactions_in_chunks_are_whole_or_not_there() {
    // The counter and the row that names it are in chunks of their own.
    survive(&GroupSettings {
        chunk_bytes: 1,
        ..settings()
    });
}

fn survive(settings: &GroupSettings) {
    let (mut commits, mut reads, mut refused) = (0, 0, 0);
    let seeds = std::env::var("KV_SEEDS").map_or(0..6, |text| {
        let mut parts = text
            .split("..")
            .map(|part| part.parse::<u64>().expect("a number"));
        parts.next().expect("a start")..parts.next().expect("an end")
    });
    for seed in seeds {
        println!("seed {seed}");
        let mut chaos = Chaos::new(seed, settings.clone());
        for _ in 0..8 {
            chaos.pass(1_500);
            chaos.fault();
        }
        chaos.pass(1_000);
        chaos.judge();
        let oracle = chaos.oracle.borrow();
        commits += oracle.commits;
        reads += oracle.reads;
        refused += oracle.refused;
    }
    println!("{commits} commits, {reads} reads, {refused} refused");
    assert!(commits > 500, "{commits} commits");
    assert!(reads > 300, "{reads} reads");
}
