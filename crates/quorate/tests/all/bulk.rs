//! Large transactions on real servers: the set-up of the commit loop's benchmark, two INSERTs of a
//! million rows, with little memory for a transaction; beside it another session commits small
//! ones, and none of them waits for long. A load that is cancelled leaves nothing.

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use lab::host::{wait_for, Endpoint, PATIENCE};
use lab::quorate::Cluster;

use crate::kill::{open_directory, program};
use crate::questions::psql;
use crate::source;

/// Rows of each of the two tables that are filled.
const ROWS: u64 = 1_000_000;

/// A small commit beside the load takes less than this …
const SMALL_COMMIT_MAX: Duration = Duration::from_secs(3);

/// … or than this part of the load. It takes milliseconds; test machines are slow and busy, and then
/// the load is long, too.
const SMALL_COMMIT_PART: u32 = 10;

fn in_background(endpoint: &Endpoint, configure: impl FnOnce(&mut Command)) -> Child {
    let mut command = endpoint.client("psql");
    command.args(["-X", "-q", "-v", "ON_ERROR_STOP=1"]);
    configure(&mut command);
    command.arg("postgres").spawn().expect("psql")
}

/// Commits small transactions until the load has ended; how many, and the longest.
fn commit_beside(endpoint: &Endpoint, load: &mut Child) -> (u64, Duration) {
    let (mut count, mut longest) = (0, Duration::ZERO);
    loop {
        let begun = Instant::now();
        psql(endpoint, "insert into small values (default)");
        longest = longest.max(begun.elapsed());
        count += 1;
        if let Some(status) = load.try_wait().expect("it is ours") {
            assert!(status.success(), "the load: {status}");
            return (count, longest);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn load_beside_small_commits(nodes: usize) {
    let dir = open_directory();
    let settings = ["quorate.txn_mem=2MB"];
    let cluster = Cluster::start(program(), dir.path(), nodes, &settings).expect("a cluster");
    let number = cluster.leader().expect("a leader");
    let leader = &cluster.nodes()[number];
    psql(leader, "create table small (id serial primary key)");
    let script = source::root().join("tests/scripts/b_setup.sql");
    let mut load = in_background(leader, |command| {
        command
            .args(["-v", &format!("rows={ROWS}"), "-f"])
            .arg(script);
    });
    let begun = Instant::now();
    let (count, longest) = commit_beside(leader, &mut load);
    let most = SMALL_COMMIT_MAX.max(begun.elapsed() / SMALL_COMMIT_PART);
    println!("{nodes} nodes: {count} small commits, the longest took {longest:?}");
    assert!(longest < most, "{longest:?} of {count}, {most:?} allowed");
    assert!(count > 20, "{count} small commits");
    for table in ["test1", "test3"] {
        let sql = format!("select count(*), sum(id::bigint), count(info) from {table}");
        let expected = format!("{ROWS}|{}|{ROWS}", ROWS * (ROWS + 1) / 2);
        assert_eq!(psql(leader, &sql), expected, "{table}");
    }
    assert_eq!(
        psql(leader, "select count(*) from small"),
        count.to_string()
    );
    // The disk that the transactions have taken for themselves is given back.
    let path = format!("n{}/group1/writes.scratch", number + 1);
    let scratch = cluster.data().join(path);
    let trimmed = || std::fs::metadata(&scratch).is_ok_and(|file| file.len() == 0);
    wait_for("an empty scratch file", PATIENCE, trimmed).expect("it is trimmed");
    // What is rolled back is gone at once, and what it had locked is free.
    let sql = "begin; update test1 set info = 'x'; rollback; \
               update test1 set info = 'y' where id = 7; \
               select count(*) from test1 where info < 'z' and length(info) = 1";
    assert_eq!(psql(leader, sql).lines().last(), Some("1"));
}

#[test]
fn a_million_rows_on_one_node() {
    load_beside_small_commits(1);
}

#[test]
fn a_million_rows_on_three_nodes() {
    load_beside_small_commits(3);
}
