//! One run: a cluster under the lab's workload and faults, then peace, then judgement.
//!
//! ```text
//! set up ── workload ───────────────────────────────────────────── read all, compare replicas
//!               │ crash, freeze, cut, slow disk, all by chance │ heal │ all must converge │
//! ```
//! The safety phase looks for anything false; the liveness phase demands that the healed cluster
//! settles and that every replica holds the same.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use base::env::{sleep, Reactor};
use base::sync::Mutex;
use base::Durability;
use lab::client::Client;
use lab::registers::{self, Oracle, Worker};

use crate::cluster::Cluster;
use crate::world::HostId;

/// What to run.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Everything follows from it.
    pub seed: u64,
    /// How many nodes.
    pub nodes: usize,
    /// How long the faults go on, in virtual time.
    pub faults: Duration,
    /// Whether the nodes' logs are printed.
    pub verbose: bool,
}

/// How often each fault was injected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// The leader was killed, with lost and torn writes.
    pub leader_crashes: u64,
    /// Another node was killed.
    pub follower_crashes: u64,
    /// All nodes were killed at once.
    pub total_crashes: u64,
    /// A node was frozen and woke.
    pub freezes: u64,
    /// A node was cut off in both directions.
    pub partitions: u64,
    /// A node was cut off in one direction.
    pub one_way_cuts: u64,
    /// A disk was slow.
    pub slow_disks: u64,
}

impl Faults {
    /// The kinds by name, for reports and floors.
    pub fn kinds(&self) -> [(&'static str, u64); 7] {
        [
            ("leader crashes", self.leader_crashes),
            ("follower crashes", self.follower_crashes),
            ("total crashes", self.total_crashes),
            ("freezes", self.freezes),
            ("partitions", self.partitions),
            ("one-way cuts", self.one_way_cuts),
            ("slow disks", self.slow_disks),
        ]
    }

    /// Adds the counts of another run.
    pub fn add(&mut self, other: &Faults) {
        self.leader_crashes += other.leader_crashes;
        self.follower_crashes += other.follower_crashes;
        self.total_crashes += other.total_crashes;
        self.freezes += other.freezes;
        self.partitions += other.partitions;
        self.one_way_cuts += other.one_way_cuts;
        self.slow_disks += other.slow_disks;
    }
}

/// What a run has shown.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// What was wrong, if anything.
    pub violation: Option<String>,
    /// The course of the run as one number.
    pub trace: u64,
    /// Faults injected.
    pub faults: Faults,
    /// Changes of leader.
    pub failovers: u64,
    /// Commits acknowledged.
    pub commits: u64,
    /// Reads answered.
    pub reads: u64,
}

/// The levels at which the clients write, one client each.
const CLIENT_LEVELS: [Durability; 7] = [
    Durability::On,
    Durability::On,
    Durability::On,
    Durability::RemoteApply,
    Durability::RemoteWrite,
    Durability::Local,
    Durability::Off,
];

/// A healed cluster must settle within this.
const CONVERGE_MAX: Duration = Duration::from_secs(60);

/// A new cluster must have its tables within this.
const SETUP_MAX: Duration = Duration::from_secs(60);

/// A slow disk's sync takes about this.
const SLOW_DISK: Duration = Duration::from_millis(30);

/// A sound disk's sync takes about this.
const SOUND_DISK: Duration = Duration::from_micros(100);

/// Runs one scenario to its end.
pub fn run(config: Config) -> Outcome {
    let mut run = Run::new(config);
    let violation = run.whole().err();
    let oracle = run.oracle.lock();
    Outcome {
        seed: config.seed,
        violation,
        trace: run.cluster.world.trace_hash(),
        faults: run.faults,
        failovers: run.failovers,
        commits: oracle.commits,
        reads: oracle.reads,
    }
}

struct Run {
    config: Config,
    cluster: Cluster,
    oracle: Arc<Mutex<Oracle>>,
    stop: Arc<AtomicBool>,
    faults: Faults,
    failovers: u64,
    last_leader: Option<(usize, u64)>,
}

impl Run {
    fn new(config: Config) -> Run {
        // Small limits, so that checkpoints and catching up from them happen often.
        let settings = [
            ("quorate.log_segment_size", "64kB".to_owned()),
            ("quorate.checkpoint_log_size", "96kB".to_owned()),
            ("quorate.absent_log_size", "128kB".to_owned()),
            ("checkpoint_timeout", "3s".to_owned()),
        ];
        let mut cluster = Cluster::new(config.seed, config.nodes, &settings);
        cluster.world.set_verbose(config.verbose);
        Run {
            config,
            cluster,
            oracle: Arc::default(),
            stop: Arc::default(),
            faults: Faults::default(),
            failovers: 0,
            last_leader: None,
        }
    }

    fn whole(&mut self) -> Result<(), String> {
        for node in 0..self.cluster.len() {
            self.cluster.start(node);
        }
        self.set_up()?;
        self.start_workers();
        let end = self.cluster.world.elapsed() + self.config.faults;
        while self.cluster.world.elapsed() < end {
            self.pass(200, 1_200)?;
            self.fault()?;
        }
        self.heal();
        self.pass(1_000, 2_000)?;
        self.stop.store(true, Ordering::SeqCst);
        if !self.cluster.converge(CONVERGE_MAX) {
            return Err(format!(
                "no peace after {CONVERGE_MAX:?}: {}",
                self.states()
            ));
        }
        self.judge()
    }

    /// Lets the world go on for a while, and looks whether something was wrong.
    fn pass(&mut self, low_ms: u64, high_ms: u64) -> Result<(), String> {
        let nanos = self
            .cluster
            .world
            .draw(|chance| chance.between(low_ms * 1_000_000, high_ms * 1_000_000));
        let slice = Duration::from_millis(50);
        let mut left = Duration::from_nanos(nanos);
        while !left.is_zero() {
            self.cluster.world.run_for(left.min(slice));
            left = left.saturating_sub(slice);
            self.watch_leader();
        }
        self.look()
    }

    fn look(&self) -> Result<(), String> {
        if let Some(violation) = &self.oracle.lock().violation {
            return Err(violation.clone());
        }
        self.cluster.stopped().map_or(Ok(()), Err)
    }

    fn watch_leader(&mut self) {
        let leader = self.cluster.leader();
        if leader.is_some() && leader != self.last_leader {
            self.failovers += u64::from(self.last_leader.is_some());
            self.last_leader = leader;
        }
    }

    fn states(&self) -> String {
        (0..self.cluster.len())
            .map(|node| match self.cluster.node(node) {
                Some(node) => format!("{:?}", node.status()),
                None => "down".to_owned(),
            })
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// Runs a task of the clients' host to its end.
    fn ask<F>(&mut self, limit: Duration, what: &str, start: F) -> Result<(), String>
    where
        F: AsyncFnOnce(Arc<dyn base::env::Env>) -> Result<(), String> + Send + 'static,
    {
        let result = Arc::new(Mutex::new(None));
        let (slot, env) = (
            result.clone(),
            self.cluster.world.env(self.cluster.client_host()),
        );
        let task_env = env.clone();
        env.spawn(
            Reactor::Session(0),
            "ask",
            Box::new(move || {
                Box::pin(async move {
                    let answer = start(task_env).await;
                    *slot.lock() = Some(answer);
                })
            }),
        );
        let done = result.clone();
        self.cluster
            .world
            .run_until(limit, move |_| done.lock().is_some());
        let answer = result.lock().take();
        self.look()?;
        answer.unwrap_or_else(|| Err(format!("{what}: not done in {limit:?}")))
    }

    fn set_up(&mut self) -> Result<(), String> {
        let address = self.cluster.addresses().swap_remove(0);
        self.ask(SETUP_MAX, "set-up", async move |env| {
            let limit = Duration::from_secs(20);
            let mut client = loop {
                match Client::connect(&*env, &address, limit).await {
                    Ok(client) => break client,
                    Err(_) => sleep(&*env, Duration::from_millis(100)).await,
                }
            };
            for statement in [registers::SETUP, &registers::opening()] {
                let answer = client.query(&*env, statement, limit).await;
                answer.map_err(|failure| format!("set-up: {failure:?}"))?;
            }
            Ok(())
        })
    }

    fn start_workers(&mut self) {
        let addresses = self.cluster.addresses();
        for (number, durability) in CLIENT_LEVELS.into_iter().enumerate() {
            let env = self.cluster.world.env(self.cluster.client_host());
            let (oracle, stop) = (self.oracle.clone(), self.stop.clone());
            let (task_env, addresses) = (env.clone(), addresses.clone());
            env.spawn(
                Reactor::Session(number),
                "worker",
                Box::new(move || {
                    let worker = Worker::new(task_env, oracle, &addresses, durability);
                    Box::pin(worker.run(move || stop.load(Ordering::SeqCst)))
                }),
            );
        }
    }

    /// Injects one fault and, after a while, takes it back.
    fn fault(&mut self) -> Result<(), String> {
        let nodes = self.cluster.len() as u64;
        let (kind, node) = self
            .cluster
            .world
            .draw(|chance| (chance.below(14), chance.below(nodes) as usize));
        match kind {
            0..=3 => {
                let leader = self.cluster.leader().map_or(node, |(leader, _)| leader);
                self.faults.leader_crashes += 1;
                self.crash_and_restart(&[leader])
            }
            4..=5 => {
                let leader = self.cluster.leader().map(|(leader, _)| leader);
                let follower = match leader {
                    Some(leader) if leader == node => (node + 1) % self.cluster.len(),
                    _ => node,
                };
                self.faults.follower_crashes += 1;
                self.crash_and_restart(&[follower])
            }
            6 => {
                self.faults.total_crashes += 1;
                let all: Vec<usize> = (0..self.cluster.len()).collect();
                self.crash_and_restart(&all)
            }
            7..=8 => {
                self.faults.freezes += 1;
                self.cluster.world.pause(self.cluster.host(node), true);
                self.pass(50, 3_000)?;
                self.cluster.world.pause(self.cluster.host(node), false);
                Ok(())
            }
            9..=10 => {
                self.faults.partitions += 1;
                self.cut(node, true, true, true);
                self.pass(100, 4_000)?;
                self.cut(node, true, true, false);
                Ok(())
            }
            11..=12 => {
                self.faults.one_way_cuts += 1;
                let inward = kind == 11;
                self.cut(node, inward, !inward, true);
                self.pass(100, 3_000)?;
                self.cut(node, inward, !inward, false);
                Ok(())
            }
            _ => {
                self.faults.slow_disks += 1;
                let host = self.cluster.host(node);
                self.cluster.world.set_disk_delay(host, SLOW_DISK);
                self.pass(200, 2_000)?;
                self.cluster.world.set_disk_delay(host, SOUND_DISK);
                Ok(())
            }
        }
    }

    fn crash_and_restart(&mut self, nodes: &[usize]) -> Result<(), String> {
        for node in nodes {
            self.cluster.crash(*node);
        }
        self.pass(10, 2_500)?;
        for node in nodes {
            self.cluster.restart(*node);
        }
        Ok(())
    }

    /// Cuts the ways between a node and the others, to it, from it, or both; or heals them.
    fn cut(&mut self, node: usize, inward: bool, outward: bool, cut: bool) {
        let own = self.cluster.host(node);
        let others: Vec<HostId> = (0..self.cluster.len())
            .map(|other| self.cluster.host(other))
            .filter(|other| *other != own)
            .collect();
        for other in others {
            if inward {
                self.cluster.world.set_cut(other, own, cut);
            }
            if outward {
                self.cluster.world.set_cut(own, other, cut);
            }
        }
    }

    fn heal(&mut self) {
        for node in 0..self.cluster.len() {
            self.cut(node, true, true, false);
            if !self.cluster.is_alive(node) {
                self.cluster.restart(node);
            }
        }
    }

    fn judge(&mut self) -> Result<(), String> {
        for address in self.cluster.addresses() {
            let oracle = self.oracle.clone();
            self.ask(CONVERGE_MAX, "the last reads", async move |env| {
                registers::read_all(&*env, &address, &oracle)
                    .await
                    .map_err(|failure| format!("the last reads: {failure:?}"))
            })?;
        }
        self.compare_replicas()
    }

    fn compare_replicas(&mut self) -> Result<(), String> {
        if !self.cluster.converge(CONVERGE_MAX) {
            return Err(format!("no peace at the end: {}", self.states()));
        }
        let mut digests = Vec::new();
        for node in 0..self.cluster.len() {
            let Some(running) = self.cluster.node(node) else {
                return Err(format!("n{} is down at the end", node + 1));
            };
            let digest = running.group().digest();
            digests.push(digest.map_err(|error| format!("n{}: {error:?}", node + 1))?);
        }
        if digests.windows(2).any(|pair| pair[0] != pair[1]) {
            return Err(format!("replicas differ: {digests:?}"));
        }
        Ok(())
    }
}
