//! Records that are applied in pieces. In tests a record of 256 bytes is large, and a piece has two
//! changes and a pause of a millisecond.

use std::sync::Arc;

use base::row::RowBuilder;
use base::{Durability, NodeId, Position, SqlState};

use super::cluster::{commit, insert, millis, rows, Cluster, TABLE};
use crate::group::Group;
use crate::record::{Change, RowChange};

fn many(from: usize, count: usize) -> Vec<RowChange> {
    (from..from + count)
        .flat_map(|number| insert(&format!("k{number:05}"), "a value of some bytes"))
        .collect()
}

fn commit_on(cluster: &mut Cluster, group: &Arc<Group>, changes: Vec<RowChange>) -> Position {
    let group = group.clone();
    let committed = cluster.world.session(move || commit(&group, changes));
    committed.expect("it leads")
}

#[test]
fn a_large_record_shows_whole_everywhere() {
    let mut cluster = Cluster::new(3, 3);
    cluster.create_table();
    let (leader, group) = cluster.leader();
    let position = commit_on(&mut cluster, &group, many(0, 300));
    assert_eq!(rows(&group).len(), 300);
    let settle = group.settle(position, Durability::On);
    cluster.world.run(settle).expect("it is settled");
    // Who is not needed for the majority may come later.
    let others = cluster.groups.iter().filter(|(node, _)| **node != leader);
    let others = others.filter(|(_, other)| other.log.last().lsn >= position.lsn);
    let others: Vec<_> = others.collect();
    assert!(!others.is_empty(), "nobody has {position:?}");
    for (_, other) in others {
        let in_pieces = other.core.lock().applying.is_some();
        assert!(in_pieces, "a flush is acknowledged before it is applied");
        assert!(other.visible().lsn < position.lsn, "shown in part");
    }
    // What comes behind it waits for it.
    cluster.commit_at(insert("behind", "b"), Durability::RemoteApply);
    cluster.assert_equal();
    assert_eq!(rows(&group).len(), 301);
}

#[test]
fn a_replica_that_is_stopped_in_the_middle_replays_all() {
    let mut cluster = Cluster::new(4, 3);
    cluster.create_table();
    let (leader, group) = cluster.leader();
    let position = commit_on(&mut cluster, &group, many(0, 300));
    let settle = group.settle(position, Durability::On);
    cluster.world.run(settle).expect("it is settled");
    let other = NodeId(leader.0 % 3 + 1);
    cluster.crash(other);
    cluster.start(other);
    cluster.assert_equal();
    assert_eq!(rows(&cluster.groups[&other]).len(), 300);
}

#[test]
fn a_large_record_is_cut_off_in_the_middle() {
    let mut cluster = Cluster::new(7, 5);
    cluster.create_table();
    cluster.commit_at(insert("kept", "a"), Durability::On);
    let nodes: Vec<NodeId> = cluster.groups.keys().copied().collect();
    let (old, group) = cluster.leader();
    let heard = nodes.iter().copied().find(|node| *node != old);
    let heard = heard.expect("five nodes");
    let follower = cluster.groups[&heard].clone();
    let link = |cluster: &mut Cluster, a: NodeId, up: bool| {
        for b in nodes.iter().filter(|node| **node != a) {
            cluster.world.link(a, *b, up);
        }
    };
    // One follower alone hears of it, and both are cut off.
    link(&mut cluster, old, false);
    cluster.world.link(old, heard, true);
    let position = commit_on(&mut cluster, &group, many(0, 4_000));
    let mut settle = group.settle(position, Durability::On);
    let waker = std::task::Waker::noop();
    let mut context = std::task::Context::from_waker(waker);
    assert!(settle.as_mut().poll(&mut context).is_pending());
    cluster.world.until("the record to arrive", |_| {
        follower.core.lock().applying.is_some()
    });
    link(&mut cluster, old, false);
    link(&mut cluster, heard, false);
    cluster.world.pass(millis(10));
    assert!(rows(&follower).len() > 1, "nothing was applied");
    cluster.groups.remove(&old);
    cluster.groups.remove(&heard);
    cluster.leader();
    cluster.commit_at(insert("new", "a"), Durability::On);
    let in_pieces = follower.core.lock().applying.is_some();
    assert!(in_pieces, "it was applied before it could be cut");
    link(&mut cluster, old, true);
    link(&mut cluster, heard, true);
    let error = cluster.world.run(settle).expect_err("it was taken back");
    assert_eq!(error.state(), SqlState::SERIALIZATION_FAILURE);
    cluster.groups.insert(old, group);
    cluster.groups.insert(heard, follower);
    cluster.assert_equal();
    let keys: Vec<_> = rows(&cluster.groups[&heard]).into_keys().collect();
    assert_eq!(keys, ["kept", "new"]);
}

#[test]
fn no_checkpoint_begins_in_the_middle() {
    let mut cluster = Cluster::new(5, 3);
    cluster.settings.checkpoint_log_bytes = 1_000;
    for node in [1, 2, 3].map(NodeId) {
        cluster.crash(node);
        cluster.start(node);
    }
    cluster.create_table();
    for round in 0..5 {
        cluster.commit_at(many(round * 1_000, 500), Durability::On);
    }
    cluster.assert_equal();
    cluster.world.pass(millis(2_000));
    for node in [1, 2, 3].map(NodeId) {
        let checkpoint = cluster.groups[&node].store().checkpoint().lsn;
        assert!(checkpoint.0 > 0, "node {node} made no checkpoint");
        cluster.crash(node);
        cluster.start(node);
    }
    cluster.assert_equal();
    assert_eq!(rows(&cluster.groups[&NodeId(1)]).len(), 2_500);
    cluster.check();
}

#[test]
fn a_leader_waits_for_those_who_take_a_large_record_in() {
    for (bytes, leads) in [(100, false), (8 << 20, true)] {
        let mut cluster = Cluster::new(6, 3);
        cluster.create_table();
        let (leader, group) = cluster.leader();
        let row = RowBuilder::new(3).value(b"k").value(b"a");
        let change = RowChange {
            tree: TABLE,
            key: b"k".to_vec(),
            change: Change::Insert(row.value(&vec![b'a'; bytes]).finish()),
        };
        commit_on(&mut cluster, &group, vec![change]);
        cluster.world.pass(millis(20));
        for other in [1, 2, 3].map(NodeId) {
            if other != leader {
                cluster.world.link(leader, other, false);
            }
        }
        // Longer than an election timeout, but not than 8 MB may take.
        cluster.world.pass(millis(700));
        assert_eq!(group.leading().is_some(), leads, "{bytes} bytes");
        assert!(!group.holds_lease(), "a lease without answers");
        cluster.world.pass(millis(1_500));
        assert_eq!(group.leading(), None, "it is cut off");
    }
}
