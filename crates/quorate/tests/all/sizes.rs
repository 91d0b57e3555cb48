//! What is told of space: sizes of relations, and `quorate.storage`. The views of one node and of
//! three, on the leader and on a standby.

use std::time::Duration;

use lab::host::{output, wait_for, Endpoint};
use lab::quorate::Cluster;

use crate::kill::{open_directory, program};
use crate::questions::{number, psql};

fn leader(cluster: &Cluster) -> Endpoint {
    cluster.nodes()[cluster.leader().expect("a leader")].clone()
}

fn sizes_are_true(cluster: &Cluster) {
    let leader = leader(cluster);
    let size = |what: &str| number(&leader, &format!("select pg_{what}"));
    psql(&leader, "drop table if exists sized");
    let database_before = size("database_size('postgres')");
    psql(
        &leader,
        "create table sized (id int primary key, note text, mark int);
         create index sized_mark on sized (mark)",
    );
    let empty = size("relation_size('sized')");
    assert_eq!(empty, 8_192, "an empty table is one page");
    psql(
        &leader,
        "insert into sized select n, repeat('x', 100), n from generate_series(1, 20000) n",
    );
    let table = size("table_size('sized')");
    // 20,000 rows of some 110 bytes, on pages that are at least half full.
    assert!((2_200_000..6_000_000).contains(&table), "{table}");
    let index = size("indexes_size('sized')");
    assert!((200_000..2_000_000).contains(&index), "{index}");
    // Its tree for long values is empty.
    assert_eq!(size("relation_size('sized')"), table - 8_192);
    assert_eq!(size("relation_size('sized', 'fsm')"), 0);
    assert_eq!(size("relation_size('sized_mark')"), index);
    // The primary key is the table's own order.
    assert_eq!(size("relation_size('sized_pkey')"), 0);
    assert_eq!(size("total_relation_size('sized')"), table + index);
    let database = size("database_size('postgres')");
    let grown = database - database_before;
    assert!(grown >= table + index, "{grown} of {table} and {index}");
    let by_oid = "select pg_database_size(oid) from pg_database where datname = 'postgres'";
    assert_eq!(number(&leader, by_oid), database);
    assert!(size("tablespace_size('pg_default')") > 0);
    let known = "select relpages, reltuples from pg_class where relname = 'sized'";
    assert_eq!(psql(&leader, known), format!("{}|20000", table / 8_192 - 1));
    for (command, what) in [("\\dt+ sized", table), ("\\di+ sized_mark", index)] {
        let pretty = psql(&leader, &format!("select pg_size_pretty({what}::bigint)"));
        let shown = psql(&leader, command);
        assert!(shown.contains(&pretty), "{command}: {shown}, not {pretty}");
    }
    assert_eq!(psql(&leader, "select pg_relation_size(1)"), "");
    psql(&leader, "delete from sized where id > 100");
    let falls = || size("relation_size('sized')") < table / 4;
    wait_for("space given back", Duration::from_secs(20), falls).expect("it is given back");
    assert_eq!(
        psql(
            &leader,
            "select reltuples from pg_class where relname = 'sized'"
        ),
        "100"
    );
    psql(&leader, "drop table sized");
}

fn another_database_has_a_size_of_its_own(cluster: &Cluster) {
    let leader = leader(cluster);
    psql(&leader, "drop database if exists sized_apart");
    psql(&leader, "create database sized_apart");
    let size = || number(&leader, "select pg_database_size('sized_apart')");
    let before = size();
    let mut command = leader.client("psql");
    let fill = "create table t as select n, repeat('x', 200) from generate_series(1, 5000) n";
    let filled = output(command.args(["-X", "-q", "-c", fill, "sized_apart"])).expect("psql");
    assert!(filled.status.success());
    let grown = size() - before;
    assert!(grown > 1_000_000, "{grown}");
    let listed = psql(&leader, "\\l+ sized_apart");
    let pretty = psql(
        &leader,
        "select pg_size_pretty(pg_database_size('sized_apart'))",
    );
    assert!(listed.contains(&pretty), "{listed}, not {pretty}");
    let refused = "do $$ begin perform pg_database_size('nowhere'); raise 'found'; exception \
                   when invalid_catalog_name then null; end $$";
    psql(&leader, refused);
    psql(&leader, "drop database sized_apart");
}

/// `quorate.storage` of a node follows what is done on the leader.
fn storage_is_true(leader: &Endpoint, node: &Endpoint) {
    let leads = (&leader.host, leader.port) == (&node.host, node.port);
    let figure = |what: &str| {
        let mut command = node.client("psql");
        if !leads {
            command.env("PGOPTIONS", "-c quorate.follower_reads=settled");
        }
        let sql = format!("select {what} from quorate.storage");
        let output = output(command.args(["-X", "-A", "-t", "-c", &sql, "postgres"]));
        let output = output.expect("psql runs");
        let shown = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        shown
            .parse::<i64>()
            .unwrap_or_else(|_| panic!("{what}: {shown} {error}"))
    };
    psql(
        leader,
        "create table stored (id int primary key, note text)",
    );
    psql(leader, "checkpoint");
    let log_before = figure("log_bytes_since_checkpoint");
    psql(
        leader,
        "insert into stored select n, repeat(md5(n::text), 10) from generate_series(1, 10000) n",
    );
    let grown = || figure("log_bytes_since_checkpoint") > log_before + 3_000_000;
    wait_for("the log", Duration::from_secs(20), grown).expect("3.2 MB are in the log");
    assert!(figure("dirty_bytes") > 1_000_000);
    let cached = figure("cached_bytes");
    assert!(cached > 1_000_000 && cached <= figure("cache_limit_bytes"));
    assert!(figure("log_bytes") >= figure("log_bytes_since_checkpoint"));
    let appended = figure("log_appended_bytes");
    assert!(
        appended >= figure("log_bytes_since_checkpoint"),
        "{appended}"
    );
    if leads {
        let lsn = "(checkpoint_lsn - '0/0'::pg_lsn)::bigint";
        let before = figure(lsn);
        psql(leader, "checkpoint");
        assert!(figure(lsn) > before);
        assert!(figure("log_bytes_since_checkpoint") < 1_000_000);
        assert!(figure("dirty_bytes") < 1_000_000);
        assert!(figure("file_bytes - free_bytes") > 3_000_000);
        let age = figure("extract(epoch from checkpoint_age)::bigint");
        assert!((0..60).contains(&age), "{age} s");
    }
    psql(leader, "drop table stored");
}

#[test]
fn one_node_tells_the_truth_about_space() {
    let dir = open_directory();
    let cluster = Cluster::start(program(), dir.path(), 1, &[]).expect("a node");
    sizes_are_true(&cluster);
    another_database_has_a_size_of_its_own(&cluster);
    let leader = leader(&cluster);
    storage_is_true(&leader, &leader);
}

#[test]
fn three_nodes_tell_the_truth_about_space() {
    let dir = open_directory();
    let cluster = Cluster::start(program(), dir.path(), 3, &[]).expect("three nodes");
    sizes_are_true(&cluster);
    let leads = cluster.leader().expect("a leader");
    let nodes = cluster.nodes();
    storage_is_true(&nodes[leads], &nodes[(leads + 1) % 3]);
}
