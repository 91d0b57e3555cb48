//! Members come, change and go.

use std::sync::Arc;

use base::cluster::{Administration, NewNode};
use base::{Durability, NodeId, Result, SqlState};

use super::cluster::{insert, millis, rows, Cluster};
use crate::config::{GroupSettings, Member};
use crate::group::Group;

const FOUR: NodeId = NodeId(4);

fn name(node: NodeId) -> Arc<str> {
    format!("n{node}").into()
}

fn new_node(number: u64) -> Administration {
    Administration::AddNode(NewNode {
        name: format!("n{number}").into(),
        peer_address: format!("10.0.0.{number}:6433").into(),
        sql_address: format!("10.0.0.{number}:5433").into(),
        ..NewNode::default()
    })
}

fn ask(cluster: &mut Cluster, wish: Administration) -> Result<u64> {
    let (_, group) = cluster.leader();
    cluster
        .world
        .run(async move { group.administer(wish).await })
}

/// Adds a node, as the group knows it from then on, and starts it.
fn add(cluster: &mut Cluster, number: u64) {
    assert_eq!(ask(cluster, new_node(number)).expect("it is added"), number);
    let (_, group) = cluster.leader();
    cluster.members = group.directory().members.clone();
    cluster.start(NodeId(number));
}

fn voters(group: &Group) -> Vec<u64> {
    let directory = group.directory();
    let members = directory.members.iter().filter(|member| member.voter);
    members.map(|member| member.node.0).collect()
}

fn fill(cluster: &mut Cluster, from: usize, to: usize) {
    for i in from..to {
        cluster.commit_at(insert(&format!("k{i:03}"), "a"), Durability::On);
    }
}

fn wait_for_voters(cluster: &mut Cluster, expected: &[u64]) {
    let groups: Vec<_> = cluster.groups.values().cloned().collect();
    cluster.world.until("all to know the voters", |_| {
        groups.iter().all(|group| voters(group) == expected)
    });
}

#[test]
fn a_node_is_added_catches_up_and_votes() {
    for seed in 0..5 {
        let mut cluster = Cluster::new(seed, 3);
        cluster.create_table();
        fill(&mut cluster, 0, 20);
        add(&mut cluster, 4);
        assert_eq!(voters(&cluster.groups[&FOUR]), [1, 2, 3]);
        ask(&mut cluster, Administration::PromoteNode(name(FOUR))).expect("it has caught up");
        fill(&mut cluster, 20, 30);
        wait_for_voters(&mut cluster, &[1, 2, 3, 4]);
        cluster.assert_equal();
        assert_eq!(rows(&cluster.groups[&FOUR]).len(), 30);
        ask(&mut cluster, Administration::DemoteNode(name(FOUR))).expect("it is demoted");
        wait_for_voters(&mut cluster, &[1, 2, 3]);
    }
}

#[test]
fn a_node_that_is_added_to_a_long_log_gets_a_checkpoint() {
    let settings = GroupSettings {
        segment_bytes: 64 << 10,
        checkpoint_log_bytes: 4 << 10,
        kept_log_bytes: 1 << 10,
        ..GroupSettings::default()
    };
    let mut cluster = Cluster::with(3, 1, settings);
    cluster.create_table();
    for i in 0..200 {
        cluster.commit_at(
            insert(&format!("k{i:03}"), &"x".repeat(800)),
            Durability::On,
        );
    }
    cluster.world.pass(millis(2_000));
    let (_, group) = cluster.leader();
    assert!(
        group.log.base().lsn > base::Lsn::ZERO,
        "the log was compacted"
    );
    drop(group);
    add(&mut cluster, 2);
    ask(&mut cluster, Administration::PromoteNode(name(NodeId(2)))).expect("it has caught up");
    cluster.assert_equal();
    wait_for_voters(&mut cluster, &[1, 2]);
}

#[test]
fn a_removed_node_stops_by_itself() {
    let mut cluster = Cluster::new(5, 3);
    cluster.create_table();
    let (leader, _) = cluster.leader();
    let others: Vec<_> = cluster.groups.keys().copied().collect();
    let gone = others
        .into_iter()
        .find(|node| *node != leader)
        .expect("another");
    let error = ask(&mut cluster, Administration::RemoveNode(name(leader)));
    let error = error.expect_err("it leads").state();
    assert_eq!(error, SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE);
    ask(&mut cluster, Administration::RemoveNode(name(gone))).expect("it is removed");
    cluster
        .world
        .until("it to stop", |world| world.stopped(gone).is_some());
    let why = cluster.world.stopped(gone).expect("it stopped");
    assert!(why.contains("was removed"), "{why}");
    cluster.groups.remove(&gone);
    fill(&mut cluster, 0, 5);
    cluster.assert_equal();
    // Its number is not given again.
    let next = ask(&mut cluster, new_node(gone.0)).expect("it is added anew");
    assert_eq!(next, 4);
}

#[test]
fn what_cannot_be_is_refused() {
    let mut cluster = Cluster::new(6, 2);
    cluster.create_table();
    let (leader, group) = cluster.leader();
    let other = NodeId(3 - leader.0);
    let expect = |cluster: &mut Cluster, wish, state| {
        let error = ask(cluster, wish).expect_err("it is refused");
        assert_eq!(error.state(), state, "{error}");
    };
    let unknown = Administration::PromoteNode("n9".into());
    expect(&mut cluster, unknown, SqlState::UNDEFINED_OBJECT);
    expect(&mut cluster, new_node(1), SqlState::DUPLICATE_OBJECT);
    let votes = Administration::PromoteNode(name(other));
    expect(
        &mut cluster,
        votes,
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
    );
    let bad = Administration::AddNode(NewNode {
        name: "n 4".into(),
        ..NewNode::default()
    });
    expect(&mut cluster, bad, SqlState::INVALID_PARAMETER_VALUE);
    // A learner that nobody has started does not vote.
    ask(&mut cluster, new_node(3)).expect("it is added");
    let absent = Administration::PromoteNode("n3".into());
    expect(
        &mut cluster,
        absent,
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
    );
    assert_eq!(voters(&group), [1, 2]);
}

#[test]
fn a_directory_survives_restarts() {
    let mut cluster = Cluster::new(7, 1);
    cluster.create_table();
    let set = Administration::SetNode {
        name: "n1".into(),
        zone: Some("here".into()),
        priority: Some(7),
        key: None,
    };
    ask(&mut cluster, set).expect("it is set");
    ask(&mut cluster, Administration::SetLeaderZone("here".into())).expect("it is set");
    cluster.crash(NodeId(1));
    cluster.start(NodeId(1));
    let (_, group) = cluster.leader();
    cluster.world.until("the directory", |_| {
        let directory = group.directory();
        let member: &Member = &directory.members[0];
        (&*member.zone, member.priority, &*directory.leader_zone) == ("here", 7, "here")
    });
}

/// Whoever was removed meanwhile is told so by those whom it knows only.
#[test]
fn who_restarts_alone_knows_whom_it_knew() {
    let mut cluster = Cluster::new(11, 3);
    cluster.create_table();
    let before = cluster.members.clone();
    add(&mut cluster, 4);
    let knows = |group: &Group| {
        let directory = group.directory();
        directory.members.iter().any(|member| member.node == FOUR)
    };
    let second = cluster.groups[&NodeId(2)].clone();
    cluster.world.until("news of it", |_| knows(&second));
    // What need not be flushed by itself is flushed with these.
    fill(&mut cluster, 0, 4);
    cluster.world.pass(millis(50));
    (1..=4).for_each(|node| cluster.crash(NodeId(node)));
    cluster.members = before;
    cluster.start(NodeId(2));
    cluster.world.pass(millis(100));
    assert!(knows(&cluster.groups[&NodeId(2)]));
}

/// Leaders crash in the middle of changes; whoever leads next ends them, and nobody disagrees.
#[test]
fn changes_are_safe_at_any_crash() {
    for seed in 0..20 {
        let mut cluster = Cluster::new(seed, 3);
        cluster.create_table();
        add(&mut cluster, 4);
        for round in 0..4 {
            let (leader, group) = cluster.leader();
            let wish = match round % 2 {
                0 => Administration::PromoteNode(name(FOUR)),
                _ => Administration::DemoteNode(name(FOUR)),
            };
            // It dies with the leader.
            let asked = group.clone();
            let task = move || -> base::env::LocalBoxFuture<'static, ()> {
                Box::pin(async move {
                    let _ = asked.administer(wish).await;
                })
            };
            let reactor = base::env::Reactor::Group;
            group.env.spawn(reactor, "wish", Box::new(task));
            let pause = cluster.world.random() % 6_000;
            cluster.world.pass(std::time::Duration::from_micros(pause));
            cluster.crash(leader);
            cluster.start(leader);
            let (_, group) = cluster.leader();
            cluster.world.until("the change to be over", |_| {
                !group.core.lock().consensus.is_changing_membership()
            });
            let key = format!("r{round}");
            cluster.commit_at(insert(&key, "a"), Durability::On);
        }
        let groups: Vec<_> = cluster.groups.values().cloned().collect();
        cluster.world.until("all to agree", |_| {
            groups
                .windows(2)
                .all(|two| voters(&two[0]) == voters(&two[1]))
        });
        cluster.assert_equal();
    }
}
