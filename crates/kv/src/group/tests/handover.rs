//! Leadership that is handed over.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use base::cluster::Administration;
use base::{Durability, NodeId, Result, SqlState};

use super::cluster::{commit, insert, millis, rows, Cluster};
use crate::group::is_not_leader;

fn name(node: NodeId) -> Arc<str> {
    format!("n{node}").into()
}

fn three(seed: u64) -> Cluster {
    let mut cluster = Cluster::new(seed, 3);
    cluster.create_table();
    cluster
}

fn ask(cluster: &mut Cluster, wish: Administration) -> Result<u64> {
    let (_, group) = cluster.leader();
    cluster
        .world
        .run(async move { group.administer(wish).await })
}

fn other(cluster: &mut Cluster) -> NodeId {
    let (leader, _) = cluster.leader();
    NodeId(leader.0 % 3 + 1)
}

#[test]
fn leadership_goes_where_it_is_told() {
    for seed in 0..10 {
        let mut cluster = three(seed);
        cluster.commit_at(insert("a", "1"), Durability::Off);
        let to = other(&mut cluster);
        let leader = ask(&mut cluster, Administration::Switchover(Some(name(to))));
        assert_eq!(leader.expect("it is handed over"), to.0);
        let (leader, _) = cluster.leader();
        assert_eq!(leader, to);
        cluster.commit_at(insert("b", "1"), Durability::On);
        // What was committed before is there, at whatever level.
        cluster.assert_equal();
        assert_eq!(rows(&cluster.groups[&leader]).len(), 2);
    }
}

#[test]
fn a_short_transaction_that_waits_goes_on_elsewhere() {
    let mut cluster = three(1);
    let (_, group) = cluster.leader();
    let open = group.open_transaction().expect("it leads");
    let begun = group.env.now();
    let to = other(&mut cluster);
    let handing = group.clone();
    let done = Rc::new(RefCell::new(None));
    let result = done.clone();
    cluster.world.spawn(async move {
        let outcome = handing.switchover(Some(&name(to))).await;
        *result.borrow_mut() = Some(outcome);
    });
    cluster.world.pass(millis(500));
    // New ones go on, and commit.
    let (leading, changes) = (group.clone(), insert("new", "1"));
    let new = cluster.world.session(move || {
        let _open = leading.open_transaction()?;
        commit(&leading, changes)
    });
    new.expect("nobody waits yet");
    assert!(done.borrow().is_none(), "it waits for the one that is open");
    cluster
        .world
        .until("new ones to wait", |_| group.handover_holds());
    assert!(
        group.env.now().since(begun) >= millis(1_500),
        "it had its time"
    );
    // It was open for too long.
    let leading = group.clone();
    let waited = cluster
        .world
        .session(move || leading.open_transaction().map(drop));
    let error = waited.expect_err("another leads now");
    assert!(is_not_leader(&error), "{error:?}");
    cluster
        .world
        .until("the switchover", |_| done.borrow().is_some());
    let outcome = done.borrow_mut().take();
    assert_eq!(outcome.expect("it is over").expect("it went well"), to.0);
    drop(open);
}

#[test]
fn a_transfer_to_a_node_that_stands_still_ends_the_leadership() {
    let mut cluster = three(2);
    let (leader, group) = cluster.leader();
    let to = other(&mut cluster);
    // It has everything.
    cluster.world.pass(millis(200));
    let term = group.leading().expect("it leads");
    cluster.world.freeze(to, true);
    let error = ask(&mut cluster, Administration::Switchover(Some(name(to))));
    let error = error.expect_err("it does not answer").state();
    assert_eq!(error, SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE);
    assert_ne!(group.leading(), Some(term), "nothing is known of the other");
    cluster.world.freeze(to, false);
    cluster.commit_at(insert("a", "1"), Durability::On);
    cluster.assert_equal();
    let _ = leader;
}

#[test]
fn learners_never_lead() {
    let mut cluster = Cluster::learning(3);
    cluster.create_table();
    for wish in [Some(name(NodeId(2))), None] {
        let error = ask(&mut cluster, Administration::Switchover(wish));
        let error = error.expect_err("there is no other voter").state();
        assert_eq!(error, SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE);
    }
}

#[test]
fn leaders_go_where_priority_and_zone_say() {
    let mut cluster = three(4);
    let to = other(&mut cluster);
    let set = |node: NodeId, zone: &str, priority| Administration::SetNode {
        name: name(node),
        zone: Some(zone.into()),
        priority: Some(priority),
        key: None,
    };
    ask(&mut cluster, set(to, "far", 9)).expect("it is set");
    cluster.world.pass(millis(10_000));
    let (leader, _) = cluster.leader();
    assert_eq!(leader, to, "the highest priority leads");
    let near = NodeId(to.0 % 3 + 1);
    ask(&mut cluster, set(near, "near", 1)).expect("it is set");
    cluster.world.pass(millis(10_000));
    assert_eq!(cluster.leader().0, to);
    ask(&mut cluster, Administration::SetLeaderZone("near".into())).expect("it is set");
    cluster.world.pass(millis(10_000));
    assert_eq!(cluster.leader().0, near, "a zone goes first");
}

#[test]
fn who_leaves_leads_only_until_another_can() {
    let mut cluster = three(5);
    let leaving = other(&mut cluster);
    let set = Administration::SetNode {
        name: name(leaving),
        zone: None,
        priority: Some(9),
        key: None,
    };
    ask(&mut cluster, set).expect("it is set");
    let (_, group) = cluster.leader();
    let marked = async move { group.mark_leaving(&name(leaving)).await };
    cluster.world.run(marked).expect("it is marked");
    cluster.world.pass(millis(10_000));
    assert_ne!(cluster.leader().0, leaving, "its priority counts no more");
    let there = Administration::Switchover(Some(name(leaving)));
    assert_eq!(ask(&mut cluster, there), Ok(leaving.0));
    cluster.world.pass(millis(2_000));
    assert_ne!(cluster.leader().0, leaving, "it hands over by itself");
}
