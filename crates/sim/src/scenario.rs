//! One run: a cluster under the lab's workload and faults, then peace, then judgement.
//!
//! ```text
//! set up ── workload ───────────────────────────────────────────── read all, compare replicas
//!               │ faults by chance ([`crate::faults`]) │ heal │ all must converge │
//! ```
//! The safety phase looks for anything false; the liveness phase demands that the healed cluster
//! settles and that every replica holds the same.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;

use base::cluster::Administration;
use base::env::{sleep, Env, LocalBoxFuture, Reactor, TaskStart};
use base::sync::Mutex;
use base::{Durability, GroupId};
use kv::history::{Compared, History};
use kv::planted::{self, Bug};
use kv::Group;
use lab::client::{Addresses, Client};
use lab::lists::ListClient;
use lab::registers::{self, Manner, Mood, Oracle, Worker};
use lab::restless::RestlessClient;

use crate::cluster::Cluster;
use crate::faults::{Counts, Injector};
use crate::further::Further;
use crate::mix::Mix;
use crate::operator::News;
use crate::schema::SchemaClient;
use crate::two_phase::{self, Books, TwoPhaseClient};
use crate::watch::Watch;

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
    /// The bug that the nodes have on purpose, in builds that know any.
    pub bug: Option<Bug>,
    /// What is on, and how often.
    pub mix: Mix,
}

impl Config {
    /// The usual run of a seed.
    pub fn new(seed: u64, nodes: usize) -> Config {
        Config {
            seed,
            nodes,
            faults: FAULTS_FOR,
            verbose: false,
            bug: None,
            mix: Mix::default(),
        }
    }

    /// Whether a node that dies keeps what it wrote without a sync, because only its process dies.
    /// So it is in every third seed.
    pub fn power_holds(&self) -> bool {
        self.seed % 3 == 0
    }

    /// The weakest level that survives every fault of this run.
    fn surviving(&self) -> Durability {
        match (self.nodes, self.power_holds()) {
            (1, _) => Durability::Local,
            (_, true) => Durability::RemoteWrite,
            (_, false) => Durability::On,
        }
    }
}

/// Who has found that something is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// What clients were promised, and what they saw.
    Clients,
    /// A node: it has panicked, or stopped itself.
    Nodes,
    /// What leaders believe, held against the truth ([`crate::watch`]).
    Figures,
    /// The comparison of replicas that the nodes make themselves while they run.
    Comparison,
    /// The operator: members that should have gone are there, or the other way round.
    Operator,
    /// The healed cluster: it does not settle, replicas differ, or what disks kept is damaged.
    End,
}

impl Check {
    /// As reports name it.
    pub fn name(self) -> &'static str {
        match self {
            Check::Clients => "clients",
            Check::Nodes => "nodes",
            Check::Figures => "figures",
            Check::Comparison => "comparison",
            Check::Operator => "operator",
            Check::End => "end",
        }
    }
}

/// What a run has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// What was wrong, if anything, after the name of the [`Check`] that has found it.
    pub violation: Option<String>,
    /// The course of the run as one number.
    pub trace: u64,
    /// Events of the run.
    pub events: u64,
    /// Faults injected.
    pub faults: Counts,
    /// Changes of leader.
    pub failovers: u64,
    /// Commits acknowledged.
    pub commits: u64,
    /// Reads answered.
    pub reads: u64,
    /// Writes refused because a disk was full.
    pub lacked_space: u64,
}

/// Faults go on for so long in the usual run.
pub const FAULTS_FOR: Duration = Duration::from_secs(6);

/// The clients that write: the level of each, and for how many milliseconds it waits for an answer.
/// Those who give up sooner find new leaders sooner.
const WRITERS: [(Durability, u64); 8] = [
    (Durability::On, 6_000),
    (Durability::On, 700),
    (Durability::On, 250),
    (Durability::RemoteApply, 400),
    (Durability::RemoteWrite, 700),
    (Durability::RemoteWrite, 250),
    (Durability::Local, 400),
    (Durability::Off, 700),
];

/// How long they rest between operations, on average.
const WRITER_PACE: Duration = Duration::from_millis(15);

/// The clients that only read: level, patience and rest in milliseconds. They stay where they are
/// connected, so some of them are on every leader that has been replaced and does not know it.
const READERS: [(Durability, u64, u64); 5] = [
    (Durability::On, 250, 4),
    (Durability::On, 250, 12),
    (Durability::RemoteWrite, 250, 8),
    (Durability::On, 4_000, 150),
    (Durability::On, 8_000, 400),
];

/// The clients that read on standbys, if that is what they are connected to, and how old what they
/// read may be.
const STANDBY_READERS: [&str; 2] = ["settled", registers::NO_AGE];

/// How long they wait for an answer, and how long they rest.
const STANDBY_PATIENCE: Duration = Duration::from_millis(1_000);
const STANDBY_PACE: Duration = Duration::from_millis(10);

/// The levels of those who pipeline, cancel and disconnect, and of those who append to lists.
const RESTLESS: [Durability; 2] = [Durability::On, Durability::RemoteWrite];
const LISTS: [Durability; 3] = [Durability::On, Durability::RemoteApply, Durability::Local];

/// A healed cluster must settle within this.
const CONVERGE_MAX: Duration = Duration::from_secs(60);

/// How often it is asked whether it has.
const SETTLE_LOOK: Duration = Duration::from_millis(5);

/// The loss of a majority must be over within this.
const GRAVE_MAX: Duration = Duration::from_secs(40);

/// A new cluster must have its tables within this.
const SETUP_MAX: Duration = Duration::from_secs(60);

/// How often the figures of leaders are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Runs one scenario to its end. A panic of a node is a violation too.
pub fn run(config: Config) -> Outcome {
    planted::plant(config.bug);
    let mut run = Run::new(config);
    let ended = catch_unwind(AssertUnwindSafe(|| run.whole()));
    planted::plant(None);
    let violation = match ended {
        Ok(result) => result.err(),
        Err(panic) => {
            run.check = Check::Nodes;
            let outcome = run.outcome(Some(format!("panic: {}", panic_message(&*panic))));
            // What panicked cannot be trusted to be taken down in order.
            std::mem::forget(run);
            return outcome;
        }
    };
    run.outcome(violation)
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("without a message")
}

struct Run {
    config: Config,
    cluster: Cluster,
    oracle: Arc<Mutex<Oracle>>,
    stop: Arc<AtomicBool>,
    /// How many clients are at work.
    working: Arc<AtomicUsize>,
    injector: Injector,
    watch: Watch,
    further: Further,
    books: Arc<Mutex<Books>>,
    failovers: u64,
    last_leader: Option<(usize, u64)>,
    /// Whoever finds it, if anything is wrong next.
    check: Check,
}

/// Transactions of more bytes come in chunks: those of a load in all worlds, in some whatever has
/// more than one row.
fn chunk_size(seed: u64) -> &'static str {
    match seed % 3 {
        0 => "16B",
        1 => "300B",
        _ => "3kB",
    }
}

/// In one world of so many nodes do not agree on the election timeout.
const MIXED_SETTINGS_ONE_IN: u64 = 5;

/// What it is there: the usual one, one that is half as long, and one that is longer than most cuts.
const MIXED_ELECTION_TIMEOUTS: &[&str] = &["300ms", "150ms", "900ms"];

/// Memory for pages: in every second world so little that something leaves it all the time.
fn leaders(mix: Mix) -> &'static str {
    match mix.leaders_apart {
        true => "spread",
        false => "together",
    }
}

fn shared_buffers(seed: u64) -> &'static str {
    match seed % 2 {
        0 => "128kB",
        _ => "128MB",
    }
}

impl Run {
    fn new(config: Config) -> Run {
        // Small limits, so that checkpoints and catching up from them happen often.
        let settings = [
            ("quorate.log_segment_size", "64kB".to_owned()),
            ("quorate.checkpoint_log_size", "96kB".to_owned()),
            ("quorate.absent_log_size", "128kB".to_owned()),
            ("checkpoint_timeout", "3s".to_owned()),
            ("quorate.txn_mem", "30kB".to_owned()),
            ("quorate.chunk_size", chunk_size(config.seed).to_owned()),
            ("shared_buffers", shared_buffers(config.seed).to_owned()),
            ("quorate.consistency_check", "500ms".to_owned()),
            ("quorate.leaders", leaders(config.mix).to_owned()),
        ];
        let mut cluster = Cluster::new(config.seed, config.nodes, &settings);
        if config.seed % MIXED_SETTINGS_ONE_IN == 4 {
            cluster.mix_election_timeouts(MIXED_ELECTION_TIMEOUTS);
        }
        cluster.world.set_verbose(config.verbose);
        Run {
            config,
            cluster,
            oracle: Arc::new(Mutex::new(Oracle::new(config.surviving()))),
            stop: Arc::default(),
            working: Arc::default(),
            injector: Injector::new(config.nodes, config.power_holds(), config.mix.faults),
            watch: Watch::default(),
            further: Further::default(),
            books: Arc::default(),
            failovers: 0,
            last_leader: None,
            check: Check::End,
        }
    }

    fn outcome(&self, violation: Option<String>) -> Outcome {
        let oracle = self.oracle.lock();
        Outcome {
            seed: self.config.seed,
            violation: violation.map(|wrong| format!("{}: {wrong}", self.check.name())),
            trace: self.cluster.world.trace_hash(),
            events: self.cluster.world.events(),
            faults: self.injector.counts,
            failovers: self.failovers,
            commits: oracle.commits + self.further.commits() + self.books.lock().committed(),
            reads: oracle.reads,
            lacked_space: oracle.lacked_space,
        }
    }

    fn whole(&mut self) -> Result<(), String> {
        for node in 0..self.cluster.len() {
            self.cluster.start(node);
        }
        self.set_up()?;
        self.start_workers();
        self.pass(100, 500)?;
        let end = self.cluster.world.elapsed() + self.config.faults;
        while self.cluster.world.elapsed() < end {
            self.injector.inject(&mut self.cluster);
            self.pass(20, 700)?;
        }
        let end = self.cluster.world.elapsed() + GRAVE_MAX;
        while self.injector.is_grave() && self.cluster.world.elapsed() < end {
            self.pass(20, 700)?;
        }
        self.injector.undo_all(&mut self.cluster);
        self.pass(500, 1_500)?;
        self.stop.store(true, Ordering::SeqCst);
        self.converge()?;
        self.judge()
    }

    /// Runs until clients have ended what they were at (what is acknowledged later would be missing
    /// in the last reads), the operator's wishes have come true and every member has the same.
    fn converge(&mut self) -> Result<(), String> {
        let end = self.cluster.world.elapsed() + CONVERGE_MAX;
        loop {
            self.cluster.world.run_for(SETTLE_LOOK);
            self.tend()?;
            self.look()?;
            let working = self.working.load(Ordering::SeqCst);
            if working == 0 && self.injector.is_idle() && self.is_settled() {
                return Ok(());
            }
            if self.cluster.world.elapsed() > end {
                return Err(format!(
                    "no peace after {CONVERGE_MAX:?}, {working} clients at work: {}",
                    self.states()
                ));
            }
        }
    }

    fn is_settled(&self) -> bool {
        self.cluster.is_settled(self.config.mix.groups) && Further::is_settled(&self.cluster)
    }

    /// Looks at what has become of the operator's wishes.
    fn tend(&mut self) -> Result<(), String> {
        let news = self.injector.tend(&mut self.cluster);
        match news.inspect_err(|_| self.check = Check::Operator)? {
            Some(News::Doomed) => self.oracle.lock().mark(),
            Some(News::Lost) => {
                self.oracle.lock().forget();
                self.further.forget();
            }
            None => {}
        }
        self.further.tend(&self.cluster, &self.stop);
        Ok(())
    }

    /// Lets the world go on for a while, and looks whether something was wrong.
    fn pass(&mut self, low_ms: u64, high_ms: u64) -> Result<(), String> {
        let nanos = self
            .cluster
            .world
            .draw(|chance| chance.between(low_ms * 1_000_000, high_ms * 1_000_000));
        let mut left = Duration::from_nanos(nanos);
        while !left.is_zero() {
            self.cluster.world.run_for(left.min(LOOK_EVERY));
            left = left.saturating_sub(LOOK_EVERY);
            // Before anybody dies who knows what has become of the operator's wishes.
            self.tend()?;
            self.injector.undo_due(&mut self.cluster);
            self.watch_leader();
            self.look()?;
        }
        Ok(())
    }

    fn look(&mut self) -> Result<(), String> {
        let seen = self.oracle.lock().violation.clone();
        let seen = seen.or_else(|| self.further.violation());
        let stopped = || self.cluster.stopped();
        let watch = &mut self.watch;
        let mut believed = || match self.config.mix.looks_inside {
            true => watch.look(&self.cluster, &self.injector.deaths),
            false => None,
        };
        let found = seen.map(|wrong| (Check::Clients, wrong));
        let found = found.or_else(|| stopped().map(|wrong| (Check::Nodes, wrong)));
        let found = found.or_else(|| believed().map(|wrong| (Check::Figures, wrong)));
        let differ = || Some((Check::Comparison, self.cluster.inconsistency()?));
        let Some((check, wrong)) = found.or_else(differ) else {
            return Ok(());
        };
        self.check = check;
        Err(wrong)
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
        F: AsyncFnOnce(Arc<dyn Env>) -> Result<(), String> + Send + 'static,
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
        self.found_groups()?;
        let address = self.cluster.address(0);
        let tables = match self.config.mix {
            Mix { groups, spread, .. } if groups > 1 && spread => {
                registers::setup_in_groups(groups)
            }
            _ => registers::SETUP.to_owned(),
        };
        self.ask(SETUP_MAX, "set-up", async move |env| {
            let limit = Duration::from_secs(20);
            let mut client = loop {
                match Client::connect(&*env, &address, limit).await {
                    Ok(client) => break client,
                    Err(_) => sleep(&*env, Duration::from_millis(100)).await,
                }
            };
            for statement in [&tables, &registers::opening()] {
                let answer = client.query(&*env, statement, limit).await;
                answer.map_err(|failure| format!("set-up: {failure:?}"))?;
            }
            Ok(())
        })?;
        // A standby may show a new session the past, in which the bank was empty.
        self.settle_groups(self.config.mix.groups)
    }

    /// Waits until there is peace in so many groups.
    fn settle_groups(&mut self, groups: usize) -> Result<(), String> {
        let end = self.cluster.world.elapsed() + SETUP_MAX;
        while !self.cluster.is_settled(groups) {
            if self.cluster.world.elapsed() > end {
                return Err(format!("set-up: no peace after {SETUP_MAX:?}"));
            }
            self.cluster.world.run_for(SETTLE_LOOK);
        }
        Ok(())
    }

    /// Founds the groups beside the first, and waits until there is peace in them.
    fn found_groups(&mut self) -> Result<(), String> {
        if self.config.mix.groups == 1 {
            return Ok(());
        }
        let end = self.cluster.world.elapsed() + SETUP_MAX;
        let mut groups = 1;
        let mut founded = None;
        while groups < self.config.mix.groups || !self.cluster.is_settled(groups) {
            if self.cluster.world.elapsed() > end {
                return Err(format!("set-up: no peace after {SETUP_MAX:?}"));
            }
            self.cluster.world.run_for(SETTLE_LOOK);
            if groups < self.config.mix.groups {
                let wish = || self.cluster.wish(0, Administration::AddGroup);
                let answer = founded.get_or_insert_with(wish).lock().take();
                if let Some(answer) = answer {
                    let number = answer.map_err(|error| format!("set-up: {error}"))?;
                    groups += 1;
                    founded = None;
                    if number != groups as u64 {
                        return Err(format!("set-up: group {number} instead of {groups}"));
                    }
                }
            }
        }
        Ok(())
    }

    fn start_workers(&mut self) {
        let clients = self.config.mix.clients;
        let writers = WRITERS.map(|(level, patience)| Manner {
            level,
            writes: true,
            patience: Duration::from_millis(patience),
            pace: WRITER_PACE,
            standby: None,
        });
        let readers = READERS.map(|(level, patience, pace)| Manner {
            level,
            writes: false,
            patience: Duration::from_millis(patience),
            pace: Duration::from_millis(pace),
            standby: None,
        });
        let on_standbys = STANDBY_READERS.map(|age| Manner {
            level: Durability::On,
            writes: false,
            patience: STANDBY_PATIENCE,
            pace: STANDBY_PACE,
            standby: Some(age),
        });
        let mut number = 0;
        let mut next = || {
            number += 1;
            number - 1
        };
        let mix = self.config.mix;
        let among_groups = mix.groups >= 3 && mix.spread;
        for _ in 0..clients.schema {
            self.start_client(next(), move |env, oracle, addresses, mood| {
                Box::pin(SchemaClient::new(env, addresses, oracle, among_groups).run(mood))
            });
        }
        let writers = writers.into_iter().cycle().take(clients.writers);
        let readers = readers.into_iter().cycle().take(clients.readers);
        let on_standbys = on_standbys
            .into_iter()
            .cycle()
            .take(clients.standby_readers);
        for manner in writers.chain(readers).chain(on_standbys) {
            let number = next();
            self.start_client(number, move |env, oracle, addresses, mood| {
                Box::pin(Worker::new(env, oracle, &addresses, number, manner).run(mood))
            });
        }
        for level in RESTLESS.into_iter().cycle().take(clients.restless) {
            let number = next();
            self.start_client(number, move |env, oracle, addresses, mood| {
                Box::pin(RestlessClient::new(env, oracle, &addresses, number, level).run(mood))
            });
        }
        for place in 0..clients.two_phase {
            let books = self.books.clone();
            self.start_client(next(), move |env, oracle, addresses, mood| {
                Box::pin(TwoPhaseClient::new(env, addresses, oracle, books, place).run(mood))
            });
        }
        for level in LISTS.into_iter().cycle().take(clients.lists) {
            self.start_client(next(), move |env, oracle, addresses, mood| {
                Box::pin(ListClient::new(env, oracle, &addresses, level).run(mood))
            });
        }
    }

    fn start_client(
        &mut self,
        number: usize,
        start: impl FnOnce(
                Arc<dyn Env>,
                Arc<Mutex<Oracle>>,
                Addresses,
                Box<dyn Fn() -> Mood + Send>,
            ) -> LocalBoxFuture<'static, ()>
            + Send
            + 'static,
    ) {
        let env = self.cluster.world.env(self.cluster.client_host());
        let (oracle, mood) = (self.oracle.clone(), Box::new(self.mood()));
        let (task_env, addresses) = (env.clone(), self.cluster.addresses().clone());
        self.working.fetch_add(1, Ordering::SeqCst);
        let working = self.working.clone();
        let start: TaskStart = Box::new(move || {
            let client = start(task_env, oracle, addresses, mood);
            Box::pin(async move {
                client.await;
                working.fetch_sub(1, Ordering::SeqCst);
            })
        });
        env.spawn(Reactor::Session(number), "client", start);
    }

    /// What tells clients what they may do.
    fn mood(&self) -> impl Fn() -> Mood + Send + 'static {
        let (stop, lull) = (self.stop.clone(), self.injector.lull.clone());
        move || match (stop.load(Ordering::SeqCst), lull.load(Ordering::SeqCst)) {
            (true, _) => Mood::Stop,
            (false, true) => Mood::Read,
            (false, false) => Mood::Work,
        }
    }

    fn judge(&mut self) -> Result<(), String> {
        if self.config.mix.clients.two_phase > 0 {
            let (leader, _) = self.cluster.leader().ok_or("nobody leads at the end")?;
            let (address, books) = (self.cluster.address(leader), self.books.clone());
            self.ask(CONVERGE_MAX, "two phases", async move |env| {
                two_phase::judge(&*env, &address, &books).await
            })?;
        }
        for node in self.members() {
            let (address, oracle) = (self.cluster.address(node), self.oracle.clone());
            self.ask(CONVERGE_MAX, "the last reads", async move |env| {
                registers::read_all(&*env, &address, &oracle)
                    .await
                    .map_err(|failure| format!("the last reads: {failure:?}"))
            })?;
        }
        self.compare_replicas()?;
        self.check_files()
    }

    /// The nodes that belong to the group now.
    fn members(&self) -> Vec<usize> {
        let directory = self.cluster.directory();
        let members = directory.iter().flat_map(|directory| &directory.members);
        members
            .filter_map(|member| self.cluster.place_of(member.node))
            .collect()
    }

    /// All lose their power, and what their disks kept must be sound, and of one history.
    fn check_files(&mut self) -> Result<(), String> {
        let mut histories: BTreeMap<GroupId, Vec<(Arc<str>, History)>> = BTreeMap::new();
        for node in self.members() {
            self.cluster.crash(node, true);
            let host = self.cluster.host(node);
            self.cluster.world.restart(host);
            let (name, reports) = (self.cluster.name(node), self.cluster.check(node)?);
            for report in reports {
                let others = histories.entry(report.group).or_default();
                for (other, history) in others.iter() {
                    let compared = history.compare(&report.history);
                    if matches!(compared, Compared::Two(_) | Compared::TwoBefore(_)) {
                        let group = report.group;
                        return Err(format!(
                            "histories of group {group} of {other} and {name}: {compared:?}"
                        ));
                    }
                }
                others.push((name.clone(), report.history));
            }
        }
        Ok(())
    }

    /// Whether a group has let go of the node of this replica, which leaves. Its leader says so: who is let
    /// go before it has caught up hears nothing of it any more.
    fn has_let_go(&self, replica: &Group) -> bool {
        let nodes = self.members().into_iter();
        let running = nodes.filter_map(|node| self.cluster.node(node));
        let mut engines = running.filter_map(|node| node.hosting().engine(replica.id()));
        let leader = engines.find(|engine| engine.group().leading().is_some());
        leader.is_some_and(|leader| {
            let directory = leader.group().directory();
            directory.member(replica.node()).is_none()
        })
    }

    fn compare_replicas(&mut self) -> Result<(), String> {
        self.converge()?;
        let mut digests: BTreeMap<GroupId, Vec<_>> = BTreeMap::new();
        for node in self.members() {
            let name = self.cluster.name(node);
            let Some(running) = self.cluster.node(node) else {
                return Err(format!("{name} is down at the end"));
            };
            let mut groups = running.hosting().groups();
            groups.retain(|group| !self.has_let_go(group));
            self.further.judge_together(&groups, &name)?;
            for group in groups {
                self.further.judge(&group, &name)?;
                let digest = group.digest();
                let digest = digest.map_err(|error| format!("{name}: {error:?}"))?;
                digests.entry(group.id()).or_default().push(digest);
            }
        }
        for (group, digests) in &digests {
            if digests.windows(2).any(|pair| pair[0] != pair[1]) {
                return Err(format!("replicas of group {group} differ: {digests:?}"));
            }
        }
        Ok(())
    }
}
