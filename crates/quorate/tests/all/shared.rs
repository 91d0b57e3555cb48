//! Servers that many tests share: each is started by the first test that wants it and lives as long
//! as the test process.
//!
//! Statics are never dropped, so every shared server has a guard: a shell that waits for the end of
//! a pipe whose other end this process holds. Whatever ends the tests, an abort included, the guard
//! then stops the server and removes its directory.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock};

use lab::host::Endpoint;
use lab::postgres::Postgres;
use lab::quorate::Cluster;

use crate::kill::{open_directory, program};

/// What a guard does: stop the process, by force after 15 s, and remove the directory.
const GUARD: &str = r#"read -r _
kill "-$1" "$2" 2>/dev/null
for _ in $(seq 150); do kill -0 "$2" 2>/dev/null || break; sleep 0.1; done
kill -KILL "$2" 2>/dev/null
rm -rf "$3""#;

/// The guards, with the ends of their pipes, held until the process ends.
static GUARDS: Mutex<Vec<Child>> = Mutex::new(Vec::new());

fn guard(signal: &str, pid: u32, dir: &Path) {
    let shell = Command::new("sh")
        .args(["-c", GUARD, "guard", signal, &pid.to_string()])
        .arg(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a shell");
    GUARDS.lock().expect("no test panics here").push(shell);
}

fn start(nodes: usize) -> Cluster {
    let dir = open_directory().keep();
    // Plans and figures follow from what a test does, and not from when it does it.
    let settings = ["autovacuum=off"];
    let cluster = Cluster::start(program(), &dir, nodes, &settings).expect("a cluster");
    guard("TERM", cluster.process().pid(), &dir);
    cluster
}

/// One node.
pub fn one_node() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| start(1))
}

/// Three nodes.
pub fn three_nodes() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| start(3))
}

/// The three nodes, one that does not lead first and the leader last.
pub fn follower_first() -> Vec<Endpoint> {
    let cluster = three_nodes();
    let leader = cluster.leader().expect("a leader");
    (1..=3)
        .map(|step| cluster.nodes()[(leader + step) % 3].clone())
        .collect()
}

/// PostgreSQL, alone.
pub fn postgres() -> &'static Endpoint {
    static POSTGRES: OnceLock<Postgres> = OnceLock::new();
    let postgres = POSTGRES.get_or_init(|| {
        let dir = open_directory().keep();
        let data = dir.join("pg");
        let settings = [
            "fsync = off",
            "autovacuum = off",
            "deadlock_timeout = '100ms'",
            "max_prepared_transactions = 100",
        ];
        let postgres = Postgres::primary(&data, &settings).expect("PostgreSQL");
        let pid = std::fs::read_to_string(data.join("postmaster.pid")).expect("its process id");
        let pid = pid.lines().next().and_then(|line| line.parse().ok());
        guard("QUIT", pid.expect("a number"), &dir);
        postgres
    });
    postgres.endpoint()
}
