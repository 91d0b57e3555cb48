//! Kill tests cannot see a missing fsync; strace can. Slow disks are made by delaying fdatasync.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lab::host::{output, wait_for, Endpoint, Process, PATIENCE};
use lab::quorate::Cluster;

use crate::kill::program;
use crate::writers::{connect, create_table, Writers};

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

/// A sync of a disk that hangs takes so long.
const HANGS: Duration = Duration::from_secs(10);

/// Nobody waits longer than for a failover, on a machine that does other things too.
const PAUSE_MAX: Duration = Duration::from_secs(3);

/// The first line of `quorate status`.
fn health(cluster: &Cluster) -> String {
    let mut status = Command::new(program());
    let status = output(status.arg("status").arg("--data").arg(cluster.data()));
    let said = String::from_utf8_lossy(&status.expect("it runs").stdout).into_owned();
    said.lines().next().unwrap_or_default().to_owned()
}

/// Commits at a node, one after the other, until it is told to stop; the longest time between two.
fn longest_pause(node: &Endpoint, stop: &AtomicBool) -> Duration {
    let (mut client, mut last, mut longest) = (None, Instant::now(), Duration::ZERO);
    while !stop.load(Ordering::SeqCst) {
        let Some(connected) = &mut client else {
            client = connect(node).ok();
            continue;
        };
        match connected.execute("update paused set n = n + 1", &[]) {
            Ok(_) => {
                longest = longest.max(last.elapsed());
                last = Instant::now();
            }
            Err(_) if connected.is_closed() => client = None,
            Err(_) => {}
        }
    }
    longest.max(last.elapsed())
}

/// Lets a node's disk hang beside writers; the longest pause of a client of each node.
fn pauses_while_hung(cluster: &Cluster, dir: &std::path::Path, node: usize) -> Vec<Duration> {
    cluster.nodes()[0]
        .query("create table paused(n int); insert into paused values (0)")
        .expect("a table");
    let stop = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        let one = |node| scope.spawn(move || longest_pause(node, stop));
        let clients: Vec<_> = cluster.nodes().iter().map(one).collect();
        hang(cluster, dir, node);
        stop.store(true, Ordering::SeqCst);
        let pauses = clients.into_iter().map(|client| client.join());
        pauses.map(|pause| pause.expect("it ends")).collect()
    })
}

/// Lets a node's disk hang beside writers, who lose nothing, until it is back.
fn hang(cluster: &Cluster, dir: &std::path::Path, node: usize) {
    let writers = Writers::start(cluster.nodes(), 6, dir);
    writers.wait_for_more(50, PATIENCE).expect("they write");
    let delay = format!("inject=fdatasync:delay_enter={}", HANGS.as_micros());
    let strace = trace(cluster, node, &delay, &dir.join(format!("hung{node}")));
    let (begun, mut said) = (Instant::now(), String::new());
    let slow = format!("degraded: n{} is slow", node + 1);
    while begun.elapsed() < HANGS / 2 {
        let more = writers.wait_for_more(1, PAUSE_MAX);
        more.expect("writes go on");
        if said != slow && begun.elapsed() > Duration::from_secs(2) {
            said = health(cluster);
        }
    }
    assert_eq!(said, slow);
    drop(strace);
    wait_for("the node to come back", PATIENCE, || {
        health(cluster) == "healthy"
    })
    .expect("it comes back by itself");
    let promises = writers.finish();
    cluster.nodes().iter().for_each(|node| promises.check(node));
}

#[test]
fn a_disk_that_hangs_costs_no_more_than_a_failover() {
    for of_leader in [true, false] {
        let dir = tempfile::tempdir().expect("a directory");
        let cluster = Cluster::start(program(), dir.path(), 3, &[]).expect("a cluster");
        create_table(&cluster.nodes()[0]);
        let leader = cluster.leader().expect("a leader");
        let hung = if of_leader { leader } else { (leader + 1) % 3 };
        let pauses = pauses_while_hung(&cluster, dir.path(), hung);
        println!("n{} hung; the longest pauses were {pauses:?}", hung + 1);
        assert!(pauses.iter().all(|pause| *pause < PAUSE_MAX), "{pauses:?}");
        let log = std::fs::read_to_string(cluster.node_dir(hung).join("node.log"));
        let log = log.expect("its log");
        assert!(log.contains("a sync of the log took"), "{log}");
        let moved = cluster.leader().expect("a leader") != leader;
        assert_eq!(moved, of_leader, "{log}");
        assert_eq!(
            log.contains("has no such trouble: it is to lead"),
            of_leader
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
