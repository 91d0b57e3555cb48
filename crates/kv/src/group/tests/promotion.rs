//! A node goes on alone.

use base::cluster::{Administration, NewNode};
use base::engine::XidStatus;
use base::{Durability, NodeId, Result, SqlState, Xid};

use super::cluster::{insert, millis, rows, Cluster};

const ONE: NodeId = NodeId(1);
const TWO: NodeId = NodeId(2);

fn promote(cluster: &mut Cluster, node: NodeId) -> Result<u64> {
    let group = cluster.groups[&node].clone();
    let wish = Administration::PromoteAlone;
    cluster
        .world
        .run(async move { group.administer(wish).await })
}

fn keys(cluster: &Cluster, node: NodeId) -> Vec<String> {
    rows(&cluster.groups[&node]).into_keys().collect()
}

#[test]
fn a_learner_goes_on_and_the_old_leader_stops() {
    for seed in 0..5 {
        let mut cluster = Cluster::learning(seed);
        cluster.create_table();
        cluster.commit_at(insert("both", "1"), Durability::RemoteApply);
        cluster.world.until("the learner to have it", {
            let group = cluster.groups[&TWO].clone();
            move |_| rows(&group).contains_key("both")
        });
        let error = promote(&mut cluster, TWO).expect_err("there is a leader");
        assert_eq!(error.state(), SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE);
        cluster.world.link(ONE, TWO, false);
        cluster.commit_at(insert("lost", "1"), Durability::On);
        cluster.world.pass(millis(1_000));
        let last = cluster.groups[&TWO].log.last().lsn;
        assert_eq!(promote(&mut cluster, TWO).expect("it goes on"), last.0);
        let group = cluster.groups[&TWO].clone();
        assert_eq!(group.directory().incarnation, 2);
        assert_eq!(group.directory().begun_after, last);
        drop(group);
        let old = cluster.groups.remove(&ONE).expect("the old one");
        cluster.commit_at(insert("new", "1"), Durability::On);
        assert_eq!(keys(&cluster, TWO), ["both", "new"]);
        // The old one serves on until it hears of it. That it asks is the node's part.
        assert!(cluster.world.stopped(ONE).is_none());
        cluster.world.link(ONE, TWO, true);
        old.note_removed(2, last);
        let why = cluster.world.stopped(ONE).expect("it stopped");
        assert!(why.contains("goes on in incarnation 2"), "{why}");

        // The decree survives a restart.
        cluster.crash(TWO);
        cluster.start(TWO);
        cluster.commit_at(insert("newer", "1"), Durability::On);
        assert_eq!(cluster.groups[&TWO].directory().incarnation, 2);
        assert_eq!(cluster.groups[&TWO].directory().members.len(), 1);
        assert_eq!(keys(&cluster, TWO), ["both", "new", "newer"]);
    }
}

#[test]
fn a_survivor_of_three_goes_on_and_takes_in_new_nodes() {
    let mut cluster = Cluster::new(7, 3);
    cluster.create_table();
    cluster.commit_at(insert("a", "1"), Durability::On);
    let (leader, _) = cluster.leader();
    let survivor = NodeId(leader.0 % 3 + 1);
    // The majority that has it need not be the survivor's.
    cluster.world.pass(millis(20));
    for node in [1, 2, 3].map(NodeId) {
        if node != survivor {
            cluster.crash(node);
        }
    }
    cluster.world.pass(millis(1_000));
    promote(&mut cluster, survivor).expect("it goes on");
    cluster.commit_at(insert("b", "1"), Durability::On);
    let (_, group) = cluster.leader();
    let add = Administration::AddNode(NewNode {
        name: "n4".into(),
        peer_address: "10.0.0.4:1".into(),
        sql_address: "10.0.0.4:2".into(),
        ..NewNode::default()
    });
    let number = cluster.world.run({
        let group = group.clone();
        async move { group.administer(add).await }
    });
    let number = number.expect("it is added");
    assert_eq!(number, 4, "old numbers are not given again");
    let directory = group.directory();
    cluster.members = directory.members.clone();
    (cluster.incarnation, cluster.begun_after) = (directory.incarnation, directory.begun_after);
    cluster.start(NodeId(4));
    let promote = Administration::PromoteNode("n4".into());
    let promoted = cluster
        .world
        .run(async move { group.administer(promote).await });
    promoted.expect("it has caught up");
    cluster.assert_equal();
    assert_eq!(keys(&cluster, NodeId(4)), ["a", "b"]);
}

/// Asks for an id on whoever leads.
fn ask(cluster: &mut Cluster) -> Xid {
    let (_, group) = cluster.leader();
    let term = group.leading().expect("it leads");
    let asked = cluster.world.session(move || group.ask_xid(term));
    asked.expect("an id").xid()
}

/// Each forced recovery adds a million to the term; ids go on.
#[test]
fn ids_survive_forced_recoveries() {
    let mut cluster = Cluster::learning(11);
    cluster.create_table();
    let mut ids = vec![ask(&mut cluster)];
    for last in [TWO, NodeId(3), NodeId(4)] {
        cluster.commit_at(insert(&format!("{last}"), "1"), Durability::RemoteApply);
        let before: Vec<NodeId> = cluster.groups.keys().copied().collect();
        cluster.world.pass(millis(500));
        for node in before.into_iter().filter(|node| *node != last) {
            cluster.crash(node);
        }
        cluster.world.pass(millis(1_000));
        promote(&mut cluster, last).expect("it goes on");
        ids.push(ask(&mut cluster));
        let position = cluster.commit_at(insert(&format!("{last} alone"), "1"), Durability::On);
        let (_, group) = cluster.leader();
        let by_commit = group.xid_at(position).expect("an id");
        ids.push(by_commit);
        let of_both = [ids[0], by_commit];
        let known = cluster.world.session({
            let group = group.clone();
            move || of_both.map(|id| group.xid_status(id).expect("it is known"))
        });
        assert_eq!(known[1], Some(XidStatus::Committed));
        assert_ne!(known[0], Some(XidStatus::Committed));
        let next = last.0 + 1;
        let add = Administration::AddNode(NewNode {
            name: format!("n{next}").into(),
            peer_address: format!("10.0.0.{next}:1").into(),
            sql_address: format!("10.0.0.{next}:2").into(),
            ..NewNode::default()
        });
        let adding = group.clone();
        let number = cluster
            .world
            .run(async move { adding.administer(add).await });
        assert_eq!(number, Ok(next));
        let directory = group.directory();
        cluster.members = directory.members.clone();
        (cluster.incarnation, cluster.begun_after) = (directory.incarnation, directory.begun_after);
        cluster.start(NodeId(next));
        cluster.assert_equal();
    }
    let term = cluster.leader().1.leading().expect("it leads");
    assert!(term.0 > 3_000_000, "{term}");
    let mut sorted = ids.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted, ids);
}
