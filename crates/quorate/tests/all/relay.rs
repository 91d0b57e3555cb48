//! Three nodes with relays between them: distance is felt where a majority is waited for, and only
//! there, and who is cut off neither leads nor acknowledges. Leaders that are heard late, and those that
//! hardly get to run, are replaced.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lab::host::{signal, wait_for, PATIENCE};
use lab::quorate::{Cluster, Topology};
use lab::real::relay::{Direction, Line};
use postgres::Client;

use crate::kill::{open_directory, program};
use crate::writers::connect;

/// The time of one insert by a session of its own, at a level.
fn insert(cluster: &Cluster, node: usize, level: &str, i: i32) -> Duration {
    let start = Instant::now();
    let sql = format!("set synchronous_commit = {level}; insert into far values ({i})");
    cluster.nodes()[node].query(&sql).expect("an insert");
    start.elapsed()
}

#[test]
fn distance_costs_what_waits_for_a_majority_and_a_cut_off_leader_is_replaced() {
    let dir = open_directory();
    let cluster = Cluster::start_relayed(program(), dir.path(), Topology::voters(3), &[]);
    let cluster = cluster.expect("a cluster");
    let leader = cluster.leader().expect("a leader");
    let node = &cluster.nodes()[leader];
    node.query("create table far(i int primary key)")
        .expect("a table");

    let one_way = Duration::from_millis(40);
    for named in cluster.relays() {
        named.relay.set_both(Line::delayed(one_way));
    }
    // The catalog's rows settle first: what rests on them waits too.
    std::thread::sleep(4 * one_way);
    let near = insert(&cluster, leader, "local", 1);
    let far = insert(&cluster, leader, "on", 2);
    assert!(far >= 2 * one_way, "{far:?}");
    assert!(near < far, "{near:?} {far:?}");
    for named in cluster.relays() {
        named.relay.set_both(Line::default());
    }

    cluster.cut_off(leader, true);
    wait_for("another leader", PATIENCE, || {
        let nodes = cluster.status().unwrap_or_default();
        let leads = |index: usize| nodes.get(index).is_some_and(|node| node.role == "leader");
        (0..3).any(|index| index != leader && leads(index)) && !leads(leader)
    })
    .expect("it is replaced");
    cluster.cut_off(leader, false);
    let other = (leader + 1) % 3;
    let healed = || {
        let sql = "insert into far values (3) on conflict do nothing";
        cluster.nodes()[other].query(sql).is_ok()
    };
    wait_for("a commit after the cut", PATIENCE, healed).expect("it heals");
    let found = cluster.nodes()[leader].query("select sum(i) from far");
    assert_eq!(found.expect("the rows"), "6");
}

/// From one node to another.
const ONE_WAY: Duration = Duration::from_millis(40);

/// Three groups that three nodes lead, and in each a table, `in_1` to `in_3`; once they are there, the nodes
/// are [`ONE_WAY`] apart.
fn led_apart(dir: &std::path::Path) -> Cluster {
    let topology = Topology::voters(3);
    let spread = ["quorate.leaders=spread"];
    let cluster = Cluster::start_relayed(program(), dir, topology, &spread);
    let cluster = cluster.expect("a cluster");
    let node = &cluster.nodes()[cluster.leader().expect("a leader")];
    for number in ["2", "3"] {
        let added = node.query("select quorate.add_group()");
        assert_eq!(added.expect("a group"), number);
    }
    let leaders = "select count(distinct leader) from quorate.groups";
    wait_for("leaders on three nodes", PATIENCE, || {
        node.query(leaders).is_ok_and(|count| count == "3")
    })
    .expect("they are spread");
    for group in 1..=3 {
        let table = format!(
            "create table in_{group}(i int primary key, v int) with (quorate.group = {group}); \
             insert into in_{group} values (0)"
        );
        node.query(&table).expect("a table");
    }
    for named in cluster.relays() {
        named.relay.set_both(Line::delayed(ONE_WAY));
    }
    cluster
}

#[test]
fn a_commit_in_groups_of_several_leaders_takes_one_round_trip() {
    let dir = open_directory();
    let cluster = led_apart(dir.path());
    let node = &cluster.nodes()[cluster.leader().expect("a leader")];
    let mut client = connect(node).expect("a client");
    let mut shortest = |groups: &[i32]| {
        let commits = (1..=5).map(|i| {
            let mut txn = client.transaction().expect("a transaction");
            for group in groups {
                let update = format!("update in_{group} set i = {i}");
                txn.batch_execute(&update).expect("an update");
            }
            let start = Instant::now();
            txn.commit().expect("a commit");
            start.elapsed()
        });
        commits.min().expect("some")
    };
    // A second one is nearly another 80 ms.
    for groups in [&[1][..], &[1, 2], &[1, 3], &[2, 3], &[1, 2, 3]] {
        let took = shortest(groups);
        assert!(took >= 2 * ONE_WAY, "{groups:?} {took:?}");
        assert!(took < 3 * ONE_WAY, "{groups:?} {took:?}");
    }
}

/// What a statement of a transaction takes, in round trips, where these tables are locked already.
fn round_trips(client: &mut Client, locked: &str, sql: &str) -> u32 {
    let took = (0..3).map(|_| {
        let mut txn = client.transaction().expect("a transaction");
        for mode in ["access share", "row exclusive"] {
            let lock = format!("lock table {locked} in {mode} mode");
            txn.batch_execute(&lock).expect("locks");
        }
        let start = Instant::now();
        txn.batch_execute(sql)
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
        let took = start.elapsed();
        txn.rollback().expect("an end");
        took
    });
    let shortest = took.min().expect("some");
    u32::try_from(shortest.as_micros() / (2 * ONE_WAY).as_micros()).expect("few")
}

#[test]
fn rows_of_groups_that_others_lead_go_in_batches() {
    let dir = open_directory();
    let cluster = led_apart(dir.path());
    let node = &cluster.nodes()[cluster.leader().expect("a leader")];
    let mut client = connect(node).expect("a client");
    for group in 2..=3 {
        let rows = format!("insert into in_{group} select i, i from generate_series(1, 500) i");
        client.batch_execute(&rows).expect("rows");
    }
    // A state of both groups is one of them, each batch of 128 and then 256 rows another.
    for (most, sql) in [
        (2, "select v from in_2 where i = 7"),
        (2, "update in_2 set v = 0 where i = 7"),
        (2, "delete from in_2 where i = 7"),
        (2, "insert into in_2 values (1001, 1)"),
        (
            2,
            "insert into in_2 select i, i from generate_series(1001, 1500) i",
        ),
        (5, "update in_2 set v = v + 1"),
        (5, "delete from in_2"),
        (4, "select sum(v) from in_2"),
    ] {
        let took = round_trips(&mut client, "in_2", sql);
        assert!(took <= most, "{sql}: {took} round trips");
    }
    // Both other nodes are asked at once, except for locks of rows: a state of all groups is two round trips
    // at most.
    let parts: String = (0..3)
        .map(|part| {
            let group = part + 1;
            format!(
                "create table parted_{part} partition of parted \
                 for values with (modulus 3, remainder {part}) with (quorate.group = {group});"
            )
        })
        .collect();
    let parted = format!(
        "create table parted(i int primary key, v int) partition by hash (i); {parts} \
         insert into parted select i, i from generate_series(1, 300) i"
    );
    client.batch_execute(&parted).expect("a table");
    for (most, locked, sql) in [
        (3, "parted", "select sum(v) from parted"),
        (4, "in_1", "select sum(v) from parted"),
        (5, "parted", "update parted set v = v + 1"),
        (
            3,
            "parted",
            "insert into parted select i, i from generate_series(1001, 1300) i",
        ),
    ] {
        let took = round_trips(&mut client, locked, sql);
        assert!(took <= most, "{sql}: {took} round trips");
    }
}

#[test]
fn a_leader_that_the_others_hear_late_is_replaced() {
    let dir = open_directory();
    let cluster = Cluster::start_relayed(program(), dir.path(), Topology::voters(3), &[]);
    let cluster = cluster.expect("a cluster");
    let leader = cluster.leader().expect("a leader");
    let node = &cluster.nodes()[leader];
    node.query("create table late(i int primary key); insert into late values (1)")
        .expect("a table");

    // The others reach it as quickly as before.
    let others = [(leader + 1) % 3, (leader + 2) % 3];
    let set = |line: Line| {
        for other in others {
            let relay = cluster.relay(leader, other).expect("a relay");
            relay.set(Direction::Forward, line);
        }
    };
    // Bit by bit: nobody is ever silent for an election timeout.
    for millis in (50..=400).step_by(50) {
        set(Line::delayed(Duration::from_millis(millis)));
        std::thread::sleep(Duration::from_millis(60));
    }
    wait_for("another leader", PATIENCE, || {
        let nodes = cluster.status().unwrap_or_default();
        let leads = |index: usize| nodes.get(index).is_some_and(|node| node.role == "leader");
        others.into_iter().any(leads) && !leads(leader)
    })
    .expect("it is replaced");
    let log = std::fs::read_to_string(cluster.node_dir(leader).join("node.log"));
    let log = log.expect("its log");
    assert!(log.contains("came too late for a lease"), "{log}");
    let insert = "insert into late values (2) on conflict do nothing";
    let goes_on = || cluster.nodes()[others[0]].query(insert).is_ok();
    wait_for("a commit without it", PATIENCE, goes_on).expect("they go on");
    set(Line::default());
    let healed = || {
        let found = cluster.nodes()[leader].query("select sum(i) from late");
        found.is_ok_and(|sum| sum == "3")
    };
    wait_for("all rows", PATIENCE, healed).expect("nothing is lost");
}

#[test]
fn a_leader_that_hardly_runs_is_replaced() {
    let dir = open_directory();
    // So late that nobody stands for election by itself.
    let settings = ["quorate.election_timeout=5s"];
    let cluster = Cluster::start(program(), dir.path(), 3, &settings).expect("a cluster");
    let leader = cluster.leader().expect("a leader");
    let node = &cluster.nodes()[leader];
    node.query("create table kept(i int primary key); insert into kept values (1)")
        .expect("a table");

    let pid = cluster.pid(leader).expect("it runs");
    let others = [(leader + 1) % 3, (leader + 2) % 3];
    let leads = |index: &usize| {
        let nodes = cluster.status().unwrap_or_default();
        nodes.get(*index).is_some_and(|node| node.role == "leader")
    };
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                for (name, time) in [("STOP", 150), ("CONT", 8)] {
                    signal(pid, name).expect("a signal");
                    std::thread::sleep(Duration::from_millis(time));
                }
            }
        });
        let replaced = wait_for("another leader", PATIENCE, || others.iter().any(leads));
        is_over.store(true, Ordering::SeqCst);
        let log = std::fs::read_to_string(cluster.node_dir(leader).join("node.log"));
        replaced.unwrap_or_else(|error| panic!("{error}: {log:?}"));
    });
    let log = std::fs::read_to_string(cluster.node_dir(leader).join("node.log"));
    let log = log.expect("its log");
    assert!(log.contains("the process could not run for"), "{log}");
    let found = || {
        let found = cluster.nodes()[leader].query("select sum(i) from kept");
        found.is_ok_and(|sum| sum == "1")
    };
    wait_for("all rows", PATIENCE, found).expect("nothing is lost");
}
