//! Three voters, or one and a learner.

use std::sync::Arc;
use std::time::Duration;

use base::{coro, Durability, GroupId, NodeId, Position, SqlState};

use super::cluster::{commit, insert, millis, row, rows, update, Cluster, TABLE};
use crate::config::GroupSettings;
use crate::frame::Frame;
use crate::group::{Group, Missing};
use crate::txn::View;

const NODES: [NodeId; 3] = [NodeId(1), NodeId(2), NodeId(3)];

fn three(seed: u64) -> Cluster {
    let mut cluster = Cluster::new(seed, 3);
    cluster.create_table();
    cluster
}

fn isolate(cluster: &mut Cluster, node: NodeId, up: bool) {
    for other in NODES.into_iter().filter(|other| *other != node) {
        cluster.world.link(node, other, up);
    }
}

/// Commits on a node without waiting for anything.
fn commit_on(cluster: &mut Cluster, group: &Arc<Group>, key: &str) -> base::Result<Position> {
    let (group, changes) = (group.clone(), insert(key, "a"));
    cluster.world.session(move || commit(&group, changes))
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
        assert_eq!(rows(&cluster.groups[&NodeId(2)]).len(), 30);
    }
}

#[test]
fn a_new_leader_takes_the_tail_of_the_old_one_back() {
    let mut cluster = three(1);
    let (old, group) = cluster.leader();
    cluster.commit_at(insert("kept", "a"), Durability::On);
    isolate(&mut cluster, old, false);
    let position = commit_on(&mut cluster, &group, "lost").expect("it still leads");
    let settle = group.settle(position, Durability::On);
    assert!(
        rows(&group).contains_key("lost"),
        "visible before it is settled"
    );
    cluster.groups.remove(&old);
    let (new, _) = cluster.leader();
    assert_ne!(new, old);
    cluster.commit_at(insert("new", "a"), Durability::On);
    // The old leader has stepped down by itself, and serves nobody.
    cluster.world.pass(millis(1_000));
    let error = commit_on(&mut cluster, &group, "late").expect_err("it leads no more");
    assert_eq!(error.state(), SqlState::SERIALIZATION_FAILURE);
    isolate(&mut cluster, old, true);
    let error = cluster.world.run(settle).expect_err("it was taken back");
    assert_eq!(error.state(), SqlState::SERIALIZATION_FAILURE);
    cluster.groups.insert(old, group);
    cluster.assert_equal();
    let keys: Vec<_> = rows(&cluster.groups[&old]).into_keys().collect();
    assert_eq!(keys, ["kept", "new"]);
}

/// Whoever never had an entry has nothing to take back, and tells all the same that it is gone.
#[test]
fn what_a_leader_has_appended_alone_is_not_settled_where_another_entry_took_its_place() {
    let mut cluster = three(5);
    let (old, group) = cluster.leader();
    let kept = cluster.commit_at(insert("kept", "a"), Durability::On);
    isolate(&mut cluster, old, false);
    let lost = commit_on(&mut cluster, &group, "lost").expect("it still leads");
    cluster.groups.remove(&old);
    let (_, new) = cluster.leader();
    for i in 0..5 {
        cluster.commit_at(insert(&format!("new{i}"), "a"), Durability::On);
    }
    assert!(new.committed() > lost.lsn);
    let followers: Vec<_> = cluster.groups.values().cloned().collect();
    for replica in followers {
        assert!(replica.is_settled(kept, Durability::On));
        assert!(!replica.is_settled(lost, Durability::On));
        let settle = replica.settle(lost, Durability::On);
        let error = cluster.world.run(settle).expect_err("another stands there");
        assert_eq!(error.state(), SqlState::SERIALIZATION_FAILURE);
    }
    isolate(&mut cluster, old, true);
    cluster.groups.insert(old, group);
    cluster.assert_equal();
}

/// The answer of the next leader overtakes its log: an entry that it makes a deposed one take back
/// is no proof of anything, however large its LSN.
#[test]
fn a_tail_that_the_next_leader_lacks_is_not_as_new_as_its_log() {
    let mut cluster = three(4);
    let (old, group) = cluster.leader();
    cluster.commit_at(insert("k", "old"), Durability::On);
    isolate(&mut cluster, old, false);
    for i in 0..5 {
        commit_on(&mut cluster, &group, &format!("tail{i}")).expect("it still leads");
    }
    cluster.groups.remove(&old);
    let (new, leader) = cluster.leader();
    cluster.commit_at(update("k", "old", "new"), Durability::On);
    cluster.world.pass(millis(1_000));
    assert_eq!(group.leading(), None);
    assert!(group.visible().lsn > leader.visible().lsn);
    let shown = Arc::new(base::sync::Mutex::new(None));
    let (slot, reader) = (shown.clone(), group.clone());
    cluster.world.spawn(coro::run(Arc::default(), move || {
        let view = reader.standby_view(Some(Duration::ZERO)).expect("a view");
        let mut row = Vec::new();
        let at = view.position().lsn;
        view.get(TABLE, b"k", at, &mut row).expect("a row");
        *slot.lock() = Some(row);
    }));
    cluster.world.pass(millis(10));
    let answer = Frame::Visible {
        asked: cluster.world.now().0,
        visible: leader.visible(),
    };
    group.receive(new, &answer.encode(GroupId(1)));
    cluster.world.pass(millis(50));
    assert_eq!(*shown.lock(), None, "shown before the log was cut");
    isolate(&mut cluster, old, true);
    cluster.world.until("a row", |_| shown.lock().is_some());
    assert_eq!(*shown.lock(), Some(row("k", "new")));
}

#[test]
fn a_wait_survives_the_loss_of_leadership() {
    let mut cluster = three(2);
    let (old, group) = cluster.leader();
    let position = commit_on(&mut cluster, &group, "k").expect("it leads");
    let mut settle = group.settle(position, Durability::On);
    // The record leaves with the first poll; then the answers are cut off.
    let waker = std::task::Waker::noop();
    let poll = settle
        .as_mut()
        .poll(&mut std::task::Context::from_waker(waker));
    assert!(poll.is_pending());
    cluster.world.pass(std::time::Duration::from_micros(160));
    isolate(&mut cluster, old, false);
    cluster.groups.remove(&old);
    cluster.leader();
    cluster.world.pass(millis(1_000));
    assert_eq!(group.leading(), None);
    isolate(&mut cluster, old, true);
    let outcome = cluster.world.run(settle);
    cluster.groups.insert(old, group.clone());
    cluster.assert_equal();
    assert_eq!(outcome.is_ok(), rows(&group).contains_key("k"));
}

#[test]
fn a_far_follower_gets_a_checkpoint() {
    let settings = GroupSettings {
        segment_bytes: 8 << 10,
        checkpoint_log_bytes: 16_000,
        kept_log_bytes: 4_000,
        absent_log_bytes_max: 8_000,
        ..GroupSettings::default()
    };
    let mut cluster = Cluster::with(6, 3, settings);
    cluster.create_table();
    let (leader, _) = cluster.leader();
    let away = NODES
        .into_iter()
        .find(|node| *node != leader)
        .expect("another");
    cluster.crash(away);
    for i in 0..600 {
        let value = "a value that makes the log grow";
        cluster.commit_at(insert(&format!("k{i:04}"), value), Durability::On);
        if i % 10 == 0 {
            cluster.world.pass(millis(20));
        }
    }
    cluster.start(away);
    cluster.assert_equal();
    assert!(cluster.groups[&away].store().checkpoint().lsn > base::Lsn(300));
    // It is a full member again.
    cluster.crash(leader);
    cluster.commit_at(insert("after", "a"), Durability::On);
    cluster.crash(away);
    cluster.start(leader);
    cluster.start(away);
    cluster.assert_equal();
    cluster.check();
}

#[test]
fn a_fetch_that_was_interrupted_goes_on() {
    let settings = GroupSettings {
        segment_bytes: 64 << 10,
        checkpoint_log_bytes: 100_000,
        kept_log_bytes: 4_000,
        absent_log_bytes_max: 8_000,
        ..GroupSettings::default()
    };
    let mut cluster = Cluster::with(8, 3, settings);
    cluster.create_table();
    let (leader, _) = cluster.leader();
    let others: Vec<_> = NODES.into_iter().filter(|node| *node != leader).collect();
    let away = others[0];
    cluster.crash(away);
    let value = "a long value ".repeat(100);
    for i in 0..3_000 {
        cluster.commit_at(insert(&format!("k{i:04}"), &value), Durability::Local);
    }
    cluster.world.pass(millis(2_000));
    cluster.start(away);
    let import = "g1/store/store.import".to_owned();
    let pages = |world: &crate::testing::World| {
        let files = world.files(away);
        let file = files.get(&import).map_or(&[][..], |file| file);
        let mut blocks = file.chunks(8_192);
        blocks
            .by_ref()
            .filter(|block| block.iter().any(|byte| *byte != 0))
            .count()
    };
    cluster
        .world
        .until("half of the pages", |world| pages(world) > 300);
    // Longer than any answer is waited for, and meanwhile there is a newer checkpoint.
    for node in &NODES {
        cluster.world.link(away, *node, false);
    }
    let before = cluster.groups[&leader].store().checkpoint().lsn;
    for i in 0..200 {
        cluster.commit_at(insert(&format!("l{i:04}"), &value), Durability::Local);
    }
    cluster.world.pass(millis(20_000));
    assert!(cluster.groups[&leader].store().checkpoint().lsn > before);
    assert!(pages(&cluster.world) > 300);
    for node in &NODES {
        cluster.world.link(away, *node, true);
    }
    cluster.assert_equal();
    let (kept, all) = *cluster.groups[&away].catchup.fetched.lock();
    assert!(kept > 290 && kept < all, "{kept} of {all}");
    cluster.check();
}

fn naming(names: &str) -> GroupSettings {
    GroupSettings {
        synchronous_standby_names: names.into(),
        ..GroupSettings::default()
    }
}

#[test]
fn named_standbys_are_waited_for() {
    let mut cluster = Cluster::with(3, 3, naming("ANY 2 (n1, n2, n3)"));
    cluster.create_table();
    let (leader, _) = cluster.leader();
    cluster.commit_at(insert("both", "a"), Durability::RemoteApply);
    let away: Vec<_> = NODES.into_iter().filter(|node| *node != leader).collect();
    // The leader's own name counts as one: one further standby is enough.
    cluster.world.freeze(away[0], true);
    cluster.commit_at(insert("one", "a"), Durability::On);
    cluster.world.freeze(away[0], false);
    cluster.world.pass(millis(500));

    let mut cluster = Cluster::with(4, 3, naming("ANY 3 (n1, n2, n3)"));
    cluster.create_table();
    let (leader, _) = cluster.leader();
    let away = NODES
        .into_iter()
        .find(|node| *node != leader)
        .expect("another");
    cluster.world.freeze(away, true);
    let position = cluster.commit_at(insert("k", "a"), Durability::Local);
    cluster.world.pass(millis(1_000));
    let group_of_leader = cluster.groups[&leader].clone();
    assert!(group_of_leader.gate.commit() >= position.lsn, "committed");
    assert!(
        !group_of_leader.is_settled(position, Durability::On),
        "and not settled"
    );
    cluster.world.freeze(away, false);
    cluster.world.pass(millis(1_000));
    assert!(group_of_leader.is_settled(position, Durability::On));
}

#[test]
fn a_learner_follows_and_never_leads() {
    let mut cluster = Cluster::learning(5);
    cluster.create_table();
    for i in 0..20 {
        cluster.commit_at(insert(&format!("k{i:02}"), "a"), Durability::On);
    }
    cluster.assert_equal();
    let learner = cluster.groups[&NodeId(2)].clone();
    let status = cluster.groups[&NodeId(1)].status();
    assert_eq!(status.leader, Some(NodeId(1)));
    assert!(
        !status.replicas[1].voter && status.replicas[1].connected,
        "{status:?}"
    );
    cluster.crash(NodeId(1));
    cluster.world.pass(millis(3_000));
    assert_eq!(learner.leading(), None);
    assert_eq!(rows(&learner).len(), 20);
}

#[test]
fn the_status_has_true_figures() {
    let mut cluster = three(7);
    for i in 0..10 {
        cluster.commit_at(insert(&format!("k{i:02}"), "a"), Durability::On);
        cluster.world.pass(millis(10));
    }
    cluster.assert_equal();
    cluster.world.pass(millis(200));
    let (leader, group) = cluster.leader();
    let status = group.status();
    assert_eq!(status.leader, Some(leader));
    for replica in &status.replicas {
        let marks = [
            replica.sent,
            replica.received,
            replica.flushed,
            replica.applied,
        ];
        assert_eq!(marks, [status.commit; 4], "{replica:?}");
        assert!(replica.connected, "{replica:?}");
        if replica.node != leader {
            let lag = replica.flush_lag.expect("a lag was measured");
            assert!(lag < millis(10), "{replica:?}");
            assert!(replica.connected_since.is_some(), "{replica:?}");
        }
    }
    cluster
        .world
        .freeze(NODES.into_iter().find(|n| *n != leader).expect("one"), true);
    cluster.world.pass(millis(1_000));
    let away = cluster.groups[&leader].status();
    assert_eq!(away.replicas.iter().filter(|r| !r.connected).count(), 1);
}

#[test]
fn a_broken_disk_stops_its_node_and_no_other() {
    let mut cluster = three(8);
    let (leader, group) = cluster.leader();
    cluster.world.break_disk(leader);
    let position = commit_on(&mut cluster, &group, "k").expect("it leads");
    let _ = cluster.world.run(group.settle(position, Durability::Local));
    cluster
        .world
        .until("the node to stop", |world| world.stopped(leader).is_some());
    let error = cluster.world.run(group.settle(position, Durability::Local));
    let error = error.expect_err("it was never flushed");
    assert_eq!(error.state(), SqlState::TRANSACTION_RESOLUTION_UNKNOWN);
    drop(group);
    cluster.groups.remove(&leader);
    cluster.commit_at(insert("on", "a"), Durability::On);
}

/// A follower without space for its log refuses nothing and does not stop: the others go on, and
/// when there is space it catches up.
#[test]
fn a_full_disk_of_a_follower_holds_nobody_up() {
    let settings = GroupSettings {
        segment_bytes: 256 << 10,
        ..GroupSettings::default()
    };
    let mut cluster = Cluster::with(6, 3, settings);
    cluster.create_table();
    let (leader, _) = cluster.leader();
    let full = NODES.into_iter().find(|node| *node != leader);
    let full = full.expect("a follower");
    cluster.world.fill_disk(full, true);
    let value = "x".repeat(1_000);
    for i in 0..700 {
        cluster.commit_at(insert(&format!("k{i:04}"), &value), Durability::On);
    }
    cluster.world.pass(millis(2_000));
    assert_eq!(cluster.world.stopped(full), None);
    let behind = rows(&cluster.groups[&full]).len();
    assert!((10..700).contains(&behind), "{behind} rows have come");
    assert_eq!(cluster.leader().0, leader);
    cluster.world.fill_disk(full, false);
    cluster.commit_at(insert("later", &value), Durability::On);
    cluster.assert_equal();
    assert_eq!(rows(&cluster.groups[&full]).len(), 701);
}

fn names(missing: &Missing) -> Vec<&str> {
    missing.voters.iter().map(|member| &*member.name).collect()
}

#[test]
fn who_hears_of_no_leader_knows_whom_it_misses() {
    let mut cluster = three(11);
    let (old, group) = cluster.leader();
    assert!(group.missing().is_none(), "it leads");
    isolate(&mut cluster, old, false);
    cluster.world.pass(millis(2_000));
    let missing = group.missing().expect("it leads no more");
    assert_eq!(missing.voters.len(), 2);
    assert!(!missing.is_majority_there);
    let others: Vec<_> = cluster.groups.values().cloned().collect();
    let others = others.iter().filter(|one| one.node() != old);
    assert!(others.clone().count() == 2);
    for other in others {
        assert!(other.missing().is_none(), "one of them leads");
    }
    isolate(&mut cluster, old, true);
    cluster.world.pass(millis(2_000));
    assert!(group.missing().is_none());
}

#[test]
fn a_learner_misses_the_voter_that_led() {
    let mut cluster = Cluster::learning(12);
    cluster.create_table();
    let learner = cluster.groups[&NodeId(2)].clone();
    cluster.world.pass(millis(500));
    assert!(learner.missing().is_none(), "it has heard of the leader");
    cluster.crash(NodeId(1));
    cluster.world.pass(millis(2_000));
    let missing = learner.missing().expect("nobody leads");
    assert_eq!(names(&missing), ["n1"]);
    assert!(!missing.is_majority_there);
}

/// A leader that is cut off knows how new its data is, as a follower does that has asked.
#[test]
fn an_old_leader_shows_data_of_an_age() {
    let mut cluster = three(13);
    let (old, group) = cluster.leader();
    cluster.commit_at(insert("kept", "a"), Durability::On);
    isolate(&mut cluster, old, false);
    cluster.world.pass(millis(2_000));
    assert!(group.leading().is_none());
    let view = |age: u64| {
        let group = group.clone();
        move || group.standby_view(Some(millis(age))).map(drop)
    };
    cluster.world.session(view(60_000)).expect("it is newer");
    let error = cluster.world.session(view(500)).expect_err("it is older");
    assert_eq!(error.state(), SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE);
}
