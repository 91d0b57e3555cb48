//! Three voters.

use base::{Durability, NodeId};

use super::cluster::{insert, rows, Cluster};

fn three(seed: u64) -> Cluster {
    let mut cluster = Cluster::new(seed, 3);
    cluster.create_table();
    cluster
}

#[test]
fn all_replicas_show_the_same() {
    for seed in 0..10 {
        let mut cluster = three(seed);
        for i in 0..30 {
            let level = Durability::ALL[i % 5];
            cluster.commit_at(insert(&format!("k{i:02}"), "a"), level);
        }
        cluster.assert_equal();
        let node = NodeId(2);
        assert_eq!(rows(&cluster.groups[&node]).len(), 30);
    }
}
