//! Many clients of the real pgbench at once, on one node and on three: whatever they did adds up.
//!
//! The checks are those of `quorate lab run`, in short runs.

use lab::pgbench::checks;
use lab::quorate::Cluster;

use crate::kill::{open_directory, program};

/// Seconds of one run.
const SECONDS: usize = 3;

/// Clients of TPC-B at scale 1, all of which change the one branch.
const HOT_CLIENTS: usize = 32;

fn adds_up(nodes: usize) {
    let dir = open_directory();
    let data = dir.path().join("cluster");
    let cluster = Cluster::start(program(), &data, nodes, &[]).expect("a cluster");
    let endpoint = &cluster.nodes()[cluster.leader().expect("a leader")];
    let mixed = checks::mixed(endpoint, dir.path(), SECONDS).expect("the mixed scripts");
    let transfers = checks::transfers(endpoint, cluster.nodes(), dir.path(), SECONDS)
        .expect("transfers and sums");
    let hot = checks::tpcb(endpoint, HOT_CLIENTS, SECONDS).expect("TPC-B");
    println!("{nodes} nodes: {mixed:?}, {transfers:?}, {hot:?}");
}

#[test]
fn what_many_clients_do_adds_up_on_one_node() {
    adds_up(1);
}

#[test]
fn what_many_clients_do_adds_up_on_three_nodes() {
    adds_up(3);
}
