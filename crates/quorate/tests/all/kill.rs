//! Real processes, really killed: nothing acknowledged is missing, nothing is there twice, and what
//! they leave on disk is sound.
//!
//! `QUORATE_KILLS=50` says how often; `make soak` does.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use lab::host::{has_ended, is_stopped, run, signal, wait_for, Endpoint, Process, PATIENCE};
use lab::quorate::Cluster;

use crate::writers::{connect, create_table, Writers};

/// The binary under test.
pub fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_quorate"))
}

/// A directory that another user may enter too: PostgreSQL does not run as root.
pub fn open_directory() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().expect("a directory");
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(dir.path(), open).expect("its permissions");
    dir
}

/// Writes go on within this after the leader is gone.
const FAILOVER_MAX: Duration = Duration::from_secs(3);

/// How often to kill, if nobody says otherwise in `QUORATE_KILLS`.
fn kills(usually: usize) -> usize {
    let told = std::env::var("QUORATE_KILLS");
    told.map_or(usually, |told| told.parse().expect("a number of kills"))
}

/// A cluster whose killed nodes can be brought back.
pub struct Patient {
    pub cluster: Cluster,
    restarted: Vec<Option<Process>>,
    pub dir: tempfile::TempDir,
}

impl Patient {
    pub fn new(nodes: usize) -> Patient {
        Patient::with_settings(nodes, &[])
    }

    pub fn with_settings(nodes: usize, settings: &[&str]) -> Patient {
        let dir = tempfile::tempdir().expect("a directory");
        let cluster = Cluster::start(program(), dir.path(), nodes, settings).expect("a cluster");
        Patient {
            cluster,
            restarted: (0..nodes).map(|_| None).collect(),
            dir,
        }
    }

    pub fn nodes(&self) -> &[Endpoint] {
        self.cluster.nodes()
    }

    pub fn pid(&self, node: usize) -> u32 {
        let status = self.cluster.status().expect("a status");
        status[node].pid.expect("the node runs")
    }

    pub fn kill(&mut self, node: usize) {
        let pid = self.pid(node);
        signal(pid, "KILL").expect("the node is killed");
        // Until its last thread has ended, it has its directory.
        wait_for("the node's end", PATIENCE, || has_ended(pid)).expect("it ends");
        self.restarted[node] = None;
    }

    /// `quorate check` of a node that does not run.
    pub fn check(&self, node: usize) {
        let data = self.data(node);
        run(Command::new(program()).arg("check").arg(data)).expect("its disk is sound");
    }

    fn data(&self, node: usize) -> PathBuf {
        self.cluster.data().join(format!("n{}", node + 1))
    }

    pub fn start(&mut self, node: usize) {
        let data = self.data(node);
        let log = self.dir.path().join(format!("restart{}.log", node + 1));
        let process = Process::start(
            Command::new(program()).args(["start", "--data"]).arg(data),
            &log,
        );
        self.restarted[node] = Some(process.expect("the node starts"));
    }

    pub fn wait_until_answering(&self, node: usize) {
        self.nodes()[node].wait().expect("the node answers");
    }

    pub fn wait_until_caught_up(&self) {
        wait_for("all nodes to have applied the same", PATIENCE, || {
            let Ok(nodes) = self.cluster.status() else {
                return false;
            };
            nodes
                .iter()
                .all(|node| node.role != "down" && node.applied == nodes[0].applied)
        })
        .expect("the nodes catch up");
    }
}

#[test]
fn a_killed_leader_loses_nothing() {
    let mut patient = Patient::new(3);
    create_table(&patient.nodes()[0]);
    let writers = Writers::start(patient.nodes(), 8, patient.dir.path());
    let mut slowest = Duration::ZERO;
    let kills = kills(20);
    for round in 0..kills {
        writers
            .wait_for_more(50, PATIENCE)
            .unwrap_or_else(|| panic!("no commits before kill {round}"));
        let leader = patient.cluster.leader().expect("a leader");
        patient.kill(leader);
        let pause = writers
            .wait_for_more(1, FAILOVER_MAX)
            .unwrap_or_else(|| panic!("kill {round}: no commit within {FAILOVER_MAX:?}"));
        slowest = slowest.max(pause);
        patient.check(leader);
        patient.start(leader);
        patient.wait_until_answering(leader);
    }
    let promises = writers.finish();
    println!(
        "{} commits acknowledged over {kills} kills; slowest pause {slowest:?}",
        promises.kept.len()
    );
    for node in patient.nodes() {
        promises.check(node);
    }
}

#[test]
fn a_killed_follower_disturbs_no_other_nodes_sessions() {
    let mut patient = Patient::new(3);
    create_table(&patient.nodes()[0]);
    let leader = patient.cluster.leader().expect("a leader");
    let follower = (leader + 1) % 3;
    let others: Vec<usize> = (0..3).filter(|node| *node != follower).collect();
    let mut clients: Vec<_> = others
        .iter()
        .map(|node| connect(&patient.nodes()[*node]).expect("a session"))
        .collect();
    let mut seq = 0;
    let start = Instant::now();
    let mut killed = false;
    while start.elapsed() < Duration::from_secs(4) {
        seq += 1;
        if !killed && start.elapsed() > Duration::from_secs(1) {
            patient.kill(follower);
            killed = true;
        }
        for (client, session) in clients.iter_mut().enumerate() {
            let client = i32::try_from(client).expect("two clients");
            session
                .execute("insert into kept values ($1, $2)", &[&client, &seq])
                .expect("no session of another node sees an error");
        }
    }
    patient.start(follower);
    patient.wait_until_answering(follower);
    patient.wait_until_caught_up();
}

#[test]
fn all_nodes_killed_keep_what_was_acknowledged() {
    let mut patient = Patient::new(3);
    create_table(&patient.nodes()[0]);
    let writers = Writers::start(patient.nodes(), 8, patient.dir.path());
    writers.wait_for_more(500, PATIENCE).expect("commits");
    for node in 0..3 {
        patient.kill(node);
    }
    let promises = writers.finish();
    for node in 0..3 {
        patient.start(node);
    }
    for node in 0..3 {
        patient.wait_until_answering(node);
        promises.check(&patient.nodes()[node]);
    }
}

#[test]
fn one_node_killed_keeps_what_was_acknowledged() {
    let mut patient = Patient::new(1);
    create_table(&patient.nodes()[0]);
    for round in 0..3 {
        let dir = patient.dir.path().join(round.to_string());
        std::fs::create_dir(&dir).expect("a directory");
        patient.nodes()[0].query("truncate kept").expect("truncate");
        let writers = Writers::start(patient.nodes(), 8, &dir);
        writers.wait_for_more(300, PATIENCE).expect("commits");
        patient.kill(0);
        let promises = writers.finish();
        patient.start(0);
        patient.wait_until_answering(0);
        promises.check(&patient.nodes()[0]);
    }
}

/// Changes everywhere, as long as the node lives: rows come and go, so that pages split, merge,
/// leave memory and are used again; old versions are held by a snapshot and spill; values are long.
fn churn(endpoint: &Endpoint) {
    let Ok(mut old) = connect(endpoint) else {
        return;
    };
    let Ok(mut session) = connect(endpoint) else {
        return;
    };
    for round in 0.. {
        let from = round * 7_919 % 20_000;
        let changes = format!(
            "insert into churn (k, v) select (g * 31) % 20000, repeat(md5(g::text), 1 + g % 9) \
             from generate_series({from}, {}) g on conflict (k) do update set v = excluded.v; \
             update churn set v = v || 'x', n = n + 1 where k % 97 = {}; \
             delete from churn where k between {from} and {}; \
             insert into churn (k, v) values ({}, repeat(md5('{round}'), 3000)) \
             on conflict (k) do update set v = excluded.v",
            from + 3_000,
            round % 97,
            from + 2_000,
            20_000 + round % 50,
        );
        if round % 8 == 0 {
            let _ = old.batch_execute(
                "commit; begin isolation level repeatable read; select count(*) from churn",
            );
        }
        if session.batch_execute(&changes).is_err() {
            return;
        }
    }
}

/// One node with hardly any memory, in the middle of splits, merges, spills, evictions and
/// checkpoints.
#[test]
fn a_node_killed_under_pressure_is_sound() {
    let settings = [
        "shared_buffers=1MB",
        "quorate.txn_mem=64kB",
        "quorate.checkpoint_log_size=1MB",
    ];
    let mut patient = Patient::with_settings(1, &settings);
    create_table(&patient.nodes()[0]);
    let endpoint = patient.nodes()[0].clone();
    endpoint
        .query("create table churn (k int primary key, v text, n int default 0)")
        .and_then(|_| endpoint.query("create index on churn (n, k)"))
        .expect("a table");
    let kills = kills(3);
    let mut acknowledged = 0;
    for round in 0..kills {
        let dir = patient.dir.path().join(round.to_string());
        std::fs::create_dir(&dir).expect("a directory");
        endpoint.query("truncate kept").expect("truncate");
        let writers = Writers::start(patient.nodes(), 4, &dir);
        let beside = endpoint.clone();
        let churning = std::thread::spawn(move || churn(&beside));
        let more = 100 + 37 * (round as u64 % 10);
        writers.wait_for_more(more, PATIENCE).expect("commits");
        patient.kill(0);
        let promises = writers.finish();
        churning.join().expect("it ends when its node has");
        acknowledged += promises.kept.len();
        patient.check(0);
        patient.start(0);
        patient.wait_until_answering(0);
        promises.check(&patient.nodes()[0]);
    }
    let stats = "select (pages_written > 0)::text from quorate.storage";
    let written = endpoint.query(stats).expect("its figures");
    println!(
        "{acknowledged} commits acknowledged over {kills} kills; pages left memory: {written}"
    );
}

/// Stops a process where it is, and waits until none of its threads runs: on a busy machine some go
/// on for a while after the signal, and may answer what comes in then.
fn freeze(pid: u32) {
    signal(pid, "STOP").expect("it freezes");
    let stands_still = || is_stopped(pid);
    wait_for("a process that stands still", PATIENCE, stands_still).expect("all of it stops");
}

#[test]
fn a_frozen_leader_serves_nothing_stale_when_it_wakes() {
    let patient = Patient::new(3);
    let leader = patient.cluster.leader().expect("a leader");
    let (frozen, other) = (&patient.nodes()[leader], &patient.nodes()[(leader + 1) % 3]);
    frozen
        .query("create table r(k int primary key, v int)")
        .and_then(|_| frozen.query("insert into r values (1, 1), (2, 1)"))
        .expect("a table");
    let mut reader = connect(frozen).expect("a session");
    let mut writer = connect(frozen).expect("a session");
    writer
        .batch_execute("begin; update r set v = 2 where k = 2")
        .expect("an open transaction");
    let pid = patient.pid(leader);
    freeze(pid);
    // Both wait in the frozen leader's sockets.
    let read = std::thread::spawn(move || {
        reader
            .query("select v from r where k = 1", &[])
            .map(|rows| rows[0].get::<_, i32>(0))
    });
    let commit = std::thread::spawn(move || writer.batch_execute("commit"));
    let start = Instant::now();
    wait_for("a newer value elsewhere", PATIENCE, || {
        other.query("update r set v = 3 where k = 1").is_ok()
    })
    .expect("the others go on");
    std::thread::sleep(Duration::from_secs(5).saturating_sub(start.elapsed()));
    signal(pid, "CONT").expect("the leader wakes");
    if let Ok(value) = read.join().expect("the reader ends") {
        assert_eq!(value, 3, "a stale read");
    }
    let committed = commit.join().expect("the writer ends").is_ok();
    let value = other.query("select v from r where k = 2").expect("a value");
    if committed {
        assert_eq!(value, "2", "acknowledged and lost");
    }
    patient.wait_until_caught_up();
}
