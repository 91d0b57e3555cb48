//! Standbys that are waited for: named by the cluster's settings, given up, taken back.

use std::sync::Arc;

use base::engine::{configuration_key, configuration_row, Stage, SyncState};
use base::{Durability, NodeId, Position, TreeId};

use super::cluster::{insert, millis, Cluster};
use crate::config::GroupSettings;
use crate::group::Group;
use crate::record::{Change, RowChange};

fn load(name: &str, value: &str) -> Vec<RowChange> {
    vec![RowChange {
        tree: TreeId::CONFIGURATION,
        key: configuration_key(Stage::Loaded, name),
        change: Change::Insert(configuration_row(value)),
    }]
}

fn unload(name: &str) -> Vec<RowChange> {
    vec![RowChange {
        tree: TreeId::CONFIGURATION,
        key: configuration_key(Stage::Loaded, name),
        change: Change::Delete,
    }]
}

/// Changes the settings and waits until they are in force.
fn configure(cluster: &mut Cluster, changes: Vec<RowChange>) {
    let (_, group) = cluster.leader();
    let position = cluster.commit(changes).expect("it commits");
    let configured = group.configured(position);
    cluster.world.run(configured).expect("it is in force");
}

fn another(leader: NodeId) -> NodeId {
    let nodes = [NodeId(1), NodeId(2), NodeId(3)];
    let mut others = nodes.into_iter().filter(|node| *node != leader);
    others.next().expect("another")
}

/// Commits, and lets a session wait for it at a level.
fn commit_and_wait(cluster: &mut Cluster, key: &str, level: Durability) -> (Arc<Group>, Position) {
    let (_, group) = cluster.leader();
    let position = cluster.commit_at(insert(key, "a"), Durability::Local);
    let settle = group.settle(position, level);
    cluster.world.spawn(async move {
        settle.await.expect("it is settled");
    });
    (group, position)
}

fn state(group: &Group, node: NodeId) -> SyncState {
    let status = group.status();
    let replica = status.replicas.iter().find(|one| one.node == node);
    replica.expect("a member").sync_state
}

#[test]
fn a_standby_that_keeps_others_waiting_is_given_up_and_taken_back() {
    for level in [
        Durability::RemoteWrite,
        Durability::On,
        Durability::RemoteApply,
    ] {
        let settings = GroupSettings {
            synchronous_standby_names: "ANY 3 (n1, n2, n3)".into(),
            standby_timeout: Some(millis(2_000)),
            ..GroupSettings::default()
        };
        let mut cluster = Cluster::with(8, 3, settings);
        cluster.create_table();
        let (leader, _) = cluster.leader();
        let away = another(leader);
        cluster.world.freeze(away, true);
        let (group, position) = commit_and_wait(&mut cluster, "k", level);
        cluster.world.pass(millis(1_500));
        assert!(!group.is_settled(position, level), "{level:?}");
        assert!(group.status().lacks_standbys, "all three are waited for");
        cluster.world.pass(millis(1_000));
        assert!(group.is_settled(position, level), "{level:?}");
        assert_eq!(state(&group, away), SyncState::GivenUp);
        assert!(!group.status().lacks_standbys, "nobody waits for it");
        assert_eq!(
            group.status().synchronous_standby_names.as_ref(),
            "ANY 3 (n1, n2, n3)"
        );
        // A voter is still one of the majority's candidates, connected or not.
        cluster.world.freeze(away, false);
        cluster.world.pass(millis(1_000));
        assert_eq!(state(&group, away), SyncState::Quorum);
        assert!(group.lock().named.in_force().1.is_empty(), "taken back");
        cluster.world.freeze(away, true);
        let (group, position) = commit_and_wait(&mut cluster, "l", level);
        cluster.world.pass(millis(1_500));
        assert!(!group.is_settled(position, level), "waited for again");
        cluster.world.freeze(away, false);
        cluster.world.pass(millis(1_000));
        assert!(group.is_settled(position, level));
    }
}

#[test]
fn nobody_is_given_up_while_nobody_waits() {
    let settings = GroupSettings {
        synchronous_standby_names: "ANY 3 (n1, n2, n3)".into(),
        standby_timeout: Some(millis(500)),
        ..GroupSettings::default()
    };
    let mut cluster = Cluster::with(9, 3, settings);
    cluster.create_table();
    let (leader, _) = cluster.leader();
    cluster.world.freeze(another(leader), true);
    cluster.commit_at(insert("k", "a"), Durability::Local);
    cluster.world.pass(millis(3_000));
    let (_, group) = cluster.leader();
    assert!(group.lock().named.in_force().1.is_empty());
}

#[test]
fn names_come_in_force_while_the_cluster_runs_and_survive_a_failover() {
    let mut cluster = Cluster::new(10, 3);
    cluster.create_table();
    let (leader, _) = cluster.leader();
    let away = another(leader);
    cluster.world.freeze(away, true);
    // To name somebody who is away is not itself something that waits for him.
    configure(
        &mut cluster,
        load("synchronous_standby_names", "ANY 3 (n1, n2, n3)"),
    );
    let (group, position) = commit_and_wait(&mut cluster, "k", Durability::On);
    cluster.world.pass(millis(1_000));
    assert!(group.gate.commit() >= position.lsn, "committed");
    assert!(
        !group.is_settled(position, Durability::On),
        "and not settled"
    );
    cluster.world.freeze(away, false);
    cluster.world.pass(millis(1_000));
    assert!(group.is_settled(position, Durability::On));

    cluster.crash(leader);
    let (new, _) = cluster.leader();
    let (group, position) = commit_and_wait(&mut cluster, "l", Durability::On);
    assert_ne!(new, leader);
    cluster.world.pass(millis(1_000));
    assert!(group.gate.commit() >= position.lsn, "committed");
    assert!(
        !group.is_settled(position, Durability::On),
        "and not settled"
    );
    // Nor does it wait to name nobody.
    configure(&mut cluster, unload("synchronous_standby_names"));
    assert!(group.is_settled(position, Durability::On));
    assert_eq!(group.status().synchronous_standby_names.as_ref(), "");

    cluster.start(leader);
    cluster.assert_equal();
    cluster.check();
}

#[test]
fn settings_survive_a_restart_with_and_without_a_checkpoint() {
    let settings = GroupSettings {
        checkpoint_log_bytes: 2_000,
        ..GroupSettings::default()
    };
    let mut cluster = Cluster::with(11, 1, settings);
    cluster.create_table();
    configure(&mut cluster, load("synchronous_standby_names", "n7"));
    for round in 0..2 {
        cluster.crash(NodeId(1));
        cluster.start(NodeId(1));
        let (_, group) = cluster.leader();
        // In force again with the first entry of the new term, and waited for from the start.
        let position = cluster.commit_at(insert(&format!("r{round}"), "a"), Durability::Local);
        assert!(!group.is_settled(position, Durability::On));
        cluster.world.pass(millis(50));
        assert_eq!(
            group.status().synchronous_standby_names.as_ref(),
            "n7",
            "{round}"
        );
        for i in 0..40 {
            let key = format!("k{round}-{i:03}");
            cluster.commit_at(insert(&key, "a value of some length"), Durability::Local);
            cluster.world.pass(millis(20));
        }
    }
    assert!(cluster.groups[&NodeId(1)].store().checkpoint().lsn > base::Lsn(20));
}
