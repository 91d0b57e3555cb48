//! What a slow reader costs: one who reads at an old snapshot, and slowly, while everything
//! changes, gets what was there when he began; what is kept for him is in the spill file and not
//! in memory, and is gone when he has ended.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lab::quorate::Cluster;
use postgres::Client;

use crate::kill::{open_directory, program};
use crate::writers::connect;

/// Rows that are read and changed: more than fits the buffers of two sockets.
const ROWS: u64 = 60_000;

/// How often all of them change meanwhile.
const ROUNDS: u64 = 5;

/// Bytes of a row.
const ROW_BYTES: u64 = 300;

/// Old versions may take an eighth of these, and of so little memory most go to the spill file.
const SETTINGS: [&str; 1] = ["shared_buffers=16MB"];

/// Everything that nobody needs has gone by then. It takes a second; test machines are slow.
const PATIENCE: Duration = Duration::from_secs(60);

fn spill_files(data: &Path) -> Vec<PathBuf> {
    let nodes = std::fs::read_dir(data).expect("the cluster's directory");
    let nodes = nodes.map(|node| node.expect("a node's directory").path());
    let mut files: Vec<PathBuf> = nodes
        .map(|node| node.join("group1/store/undo.scratch"))
        .filter(|path| path.parent().is_some_and(Path::is_dir))
        .collect();
    files.sort();
    files
}

fn bytes(file: &Path) -> u64 {
    std::fs::metadata(file).map_or(0, |metadata| metadata.len())
}

fn run(client: &mut Client, statement: &str) {
    let done = client.batch_execute(statement);
    done.unwrap_or_else(|error| panic!("{statement}: {error}"));
}

fn a_slow_reader_beside_writers(nodes: usize) {
    let dir = open_directory();
    let cluster = Cluster::start(program(), dir.path(), nodes, &SETTINGS).expect("a cluster");
    let leader = &cluster.nodes()[cluster.leader().expect("a leader")];
    let mut writer = connect(leader).expect("a session");
    run(
        &mut writer,
        "create table slow (k int primary key, v int, w text)",
    );
    let load = format!(
        "insert into slow select k, 0, repeat('x', {ROW_BYTES}) from generate_series(1, {ROWS}) k"
    );
    run(&mut writer, &load);
    let mut reader = connect(leader).expect("a session");
    run(&mut reader, "begin isolation level repeatable read");
    let (mut rows, mut first) = (1, String::new());
    {
        let copy = reader.copy_out("copy slow to stdout").expect("COPY");
        let mut copy = BufReader::with_capacity(1_000, copy);
        copy.read_line(&mut first).expect("a row");
        for _ in 0..ROUNDS {
            run(&mut writer, "update slow set v = v + 1");
        }
        let files = spill_files(cluster.data());
        assert_eq!(files.len(), nodes, "{files:?}");
        let spilled: Vec<u64> = files.iter().map(|file| bytes(file)).collect();
        let most = spilled.iter().max().copied().unwrap_or_default();
        // Of what lies between his snapshot and the newest state little is kept.
        assert!(most > ROWS * ROW_BYTES / 2, "{spilled:?} bytes are spilled");
        for line in copy.lines() {
            let line = line.expect("a row");
            rows += 1;
            assert_eq!(line.split('\t').nth(1), Some("0"), "row {rows}");
        }
    }
    assert_eq!(rows, ROWS, "after {first}");
    let sum = "select count(*), sum(v)::bigint from slow";
    let row = reader.query_one(sum, &[]).expect("a row");
    assert_eq!((row.get(0), row.get(1)), (ROWS as i64, 0_i64));
    run(&mut reader, "commit");
    let row = reader.query_one(sum, &[]).expect("a row");
    assert_eq!(row.get::<_, i64>(1), (ROWS * ROUNDS) as i64);
    let begun = Instant::now();
    loop {
        let files = spill_files(cluster.data());
        let left: u64 = files.iter().map(|file| bytes(file)).sum();
        if left == 0 {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "{left} bytes are left");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_slow_reader_on_one_node() {
    a_slow_reader_beside_writers(1);
}

#[test]
fn a_slow_reader_on_three_nodes() {
    a_slow_reader_beside_writers(3);
}
