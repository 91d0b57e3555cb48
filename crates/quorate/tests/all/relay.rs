//! Three nodes with relays between them: distance is felt where a majority is waited for, and only
//! there, and who is cut off neither leads nor acknowledges.

use std::time::{Duration, Instant};

use lab::host::{wait_for, PATIENCE};
use lab::quorate::{Cluster, Topology};
use lab::real::relay::Line;

use crate::kill::{open_directory, program};

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
