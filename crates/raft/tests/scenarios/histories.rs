//! Replicas whose logs have the same terms and LSNs, and other entries.

use base::{Lsn, NodeId};

use crate::cluster::{Cluster, MILLISECOND};

/// Three voters that have committed some entries, and who leads.
fn agreed() -> (Cluster, NodeId, Lsn) {
    let mut cluster = Cluster::new(&[1, 2, 3], &[], 3);
    cluster.stopped = Some(Vec::new());
    cluster.run(1_000 * MILLISECOND);
    let leader = cluster.leader().expect("a leader");
    for k in 0..5_u8 {
        cluster.propose(leader, &[k; 20]).expect("it leads");
        cluster.run(20 * MILLISECOND);
    }
    let last = cluster.up(leader).last();
    cluster.run(200 * MILLISECOND);
    assert_eq!(cluster.up(leader).committed(), last);
    (cluster, leader, last)
}

fn others(leader: NodeId) -> [NodeId; 2] {
    let others = [1, 2, 3].map(NodeId).into_iter();
    let others: Vec<_> = others.filter(|node| *node != leader).collect();
    [others[0], others[1]]
}

fn stopped(cluster: &Cluster) -> &[(NodeId, String)] {
    cluster.stopped.as_deref().expect("some may stop")
}

#[test]
fn a_follower_of_another_history_stops_and_does_not_count() {
    for back in 0..3 {
        let (mut cluster, leader, last) = agreed();
        let [one, another] = others(leader);
        cluster.crash(one);
        cluster.forge(one, Lsn(last.0 - back));
        cluster.crash(another);
        cluster.start(one);
        // While the leader has no other: nothing that it logs is committed with its help.
        let committed = cluster.up(leader).committed();
        let _ = cluster.propose(leader, b"alone");
        cluster.run(2_000 * MILLISECOND);
        let [(node, why)] = stopped(&cluster) else {
            panic!("{back}: {:?}", cluster.stopped);
        };
        assert_eq!(*node, one);
        assert!(why.contains("another history"), "{why}");
        let now = cluster.up(leader).committed();
        assert_eq!(now, committed, "{back}");
        cluster.start(another);
        cluster.run(2_000 * MILLISECOND);
        let leads = cluster.leader().expect("a leader");
        cluster.propose(leads, b"together").expect("it leads");
        cluster.run(500 * MILLISECOND);
        let (committed, last) = (cluster.up(leads).committed(), cluster.up(leads).last());
        assert_eq!(committed, last);
    }
}

#[test]
fn a_candidate_of_another_history_is_not_elected() {
    let (mut cluster, leader, last) = agreed();
    let [one, another] = others(leader);
    for node in [one, another, leader] {
        cluster.crash(node);
    }
    cluster.forge(one, Lsn(last.0 - 1));
    cluster.start(one);
    cluster.start(another);
    cluster.run(5_000 * MILLISECOND);
    let leads = cluster.leader();
    assert!(leads.is_none_or(|leads| leads == another), "{leads:?}");
    cluster.start(leader);
    cluster.run(3_000 * MILLISECOND);
    let leads = cluster.leader().expect("a leader");
    assert_ne!(leads, one);
    let [(node, why)] = stopped(&cluster) else {
        panic!("{:?}", cluster.stopped);
    };
    assert_eq!(*node, one);
    assert!(why.contains("another history"), "{why}");
}
