//! Kill tests cannot see a missing fsync; strace can. Slow disks are made by delaying fdatasync.

use std::process::Command;
use std::time::{Duration, Instant};

use lab::host::{wait_for, Process, PATIENCE};
use lab::quorate::Cluster;

use crate::kill::program;
use crate::writers::{connect, create_table};

/// What strace adds to each fdatasync of a slow node.
const DELAY: Duration = Duration::from_millis(20);

/// Lone commits per measurement.
const COMMITS: usize = 15;

/// Attaches strace to a node.
fn trace(cluster: &Cluster, node: usize, expression: &str, log: &std::path::Path) -> Process {
    let pid = cluster.status().expect("a status")[node]
        .pid
        .expect("it runs");
    let out = log.with_extension("strace");
    let process = Process::start(
        Command::new("strace")
            .args(["-f", "-qq", "-p", &pid.to_string()])
            .args(["-e", "trace=fdatasync"])
            .args(["-e", expression])
            .arg("-o")
            .arg(&out),
        log,
    )
    .expect("strace attaches");
    wait_for("strace to trace", PATIENCE, || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status
            .lines()
            .any(|line| line.starts_with("TracerPid:") && !line.ends_with("\t0"))
    })
    .expect("strace traces");
    process
}

/// The shortest and the middle time of lone commits at `on`, with the given nodes slow.
fn commit_times(
    cluster: &Cluster,
    dir: &std::path::Path,
    slow: &[usize],
    run: i32,
) -> (Duration, Duration) {
    let delay = format!("inject=fdatasync:delay_enter={}", DELAY.as_micros());
    let _traces: Vec<Process> = slow
        .iter()
        .map(|node| {
            trace(
                cluster,
                *node,
                &delay,
                &dir.join(format!("slow{run}-{node}")),
            )
        })
        .collect();
    let leader = cluster.leader().expect("a leader");
    let mut client = connect(&cluster.nodes()[leader]).expect("a session");
    let insert = client
        .prepare("insert into kept values ($1, $2)")
        .expect("a statement");
    let mut times: Vec<Duration> = (0..COMMITS)
        .map(|seq| {
            // A lone commit: what an earlier one left behind has been synced everywhere.
            std::thread::sleep(DELAY * 4);
            let start = Instant::now();
            let seq = i32::try_from(seq).expect("few commits");
            client.execute(&insert, &[&run, &seq]).expect("a commit");
            start.elapsed()
        })
        .collect();
    times.sort();
    (times[0], times[COMMITS / 2])
}

#[test]
fn a_commit_waits_for_the_disks_of_a_majority_and_of_no_more() {
    let dir = tempfile::tempdir().expect("a directory");
    // Slow disks must not cost the leader its place while it is measured.
    let cluster = Cluster::start(program(), dir.path(), 3, &[]).expect("a cluster");
    create_table(&cluster.nodes()[0]);
    let leader = cluster.leader().expect("a leader");
    let (second, third) = ((leader + 1) % 3, (leader + 2) % 3);
    let two_slow = [[leader, second], [second, third]];
    for (run, slow) in (0..).zip(two_slow) {
        let (shortest, _) = commit_times(&cluster, dir.path(), &slow, run);
        assert!(
            shortest >= DELAY,
            "two slow disks, and a commit took {shortest:?}"
        );
    }
    for (run, slow) in (2..).zip([[leader], [second]]) {
        let (_, middle) = commit_times(&cluster, dir.path(), &slow, run);
        assert!(
            middle < DELAY,
            "one slow disk, and a commit took {middle:?}"
        );
    }
}

#[test]
fn acknowledged_commits_were_synced() {
    let dir = tempfile::tempdir().expect("a directory");
    let cluster = Cluster::start(program(), dir.path(), 1, &[]).expect("a node");
    create_table(&cluster.nodes()[0]);
    let log = dir.path().join("seen");
    let strace = trace(&cluster, 0, "signal=none", &log);
    let mut client = connect(&cluster.nodes()[0]).expect("a session");
    for seq in 0..20 {
        client
            .execute("insert into kept values (1, $1)", &[&seq])
            .expect("a commit");
    }
    drop(strace);
    let seen = std::fs::read_to_string(log.with_extension("strace")).expect("what strace saw");
    let syncs = seen.matches("fdatasync(").count();
    assert!(
        syncs >= 20,
        "20 lone commits and {syncs} calls of fdatasync"
    );
}
