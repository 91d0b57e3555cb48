//! A group of one voter: commit, crash, open again.

use base::{Durability, Lsn, NodeId, SequenceId, SqlState};

use super::cluster::{assert_index, delete, insert, millis, rows, update, Cluster};
use crate::config::GroupSettings;
use crate::group::TXN_SEQUENCE;

const N1: NodeId = NodeId(1);

fn one(seed: u64) -> Cluster {
    let mut cluster = Cluster::new(seed, 1);
    cluster.create_table();
    cluster
}

#[test]
fn what_is_committed_is_there_after_a_crash() {
    for seed in 0..20 {
        let mut cluster = one(seed);
        for i in 0..20 {
            let level = Durability::ALL[1 + i % 4];
            cluster.commit_at(insert(&format!("k{i}"), "a"), level);
        }
        cluster.commit_at(update("k3", "a", "b"), Durability::On);
        cluster.commit_at(delete("k4"), Durability::On);
        let before = rows(&cluster.groups[&N1]);
        cluster.crash(N1);
        cluster.start(N1);
        cluster.leader();
        let group = &cluster.groups[&N1];
        assert_eq!(rows(group), before, "seed {seed}");
        assert_index(group);
        cluster.commit_at(insert("k4", "c"), Durability::On);
        assert_index(&cluster.groups[&N1]);
    }
}

#[test]
fn without_a_flush_a_suffix_may_be_lost() {
    let mut lost = 0;
    for seed in 0..40 {
        let mut cluster = one(seed);
        for i in 0..50 {
            cluster.commit_at(insert(&format!("k{i:02}"), "a"), Durability::Off);
        }
        cluster.crash(N1);
        cluster.start(N1);
        let rows = rows(&cluster.groups[&N1]);
        let expected: Vec<_> = (0..rows.len()).map(|i| format!("k{i:02}")).collect();
        assert_eq!(rows.into_keys().collect::<Vec<_>>(), expected);
        lost += usize::from(expected.len() < 50);
    }
    assert!(lost > 0, "nothing was ever lost");
}

#[test]
fn commits_without_a_waiter_are_flushed_soon() {
    for seed in 0..10 {
        let mut cluster = one(seed);
        cluster.commit_at(insert("k", "a"), Durability::Off);
        cluster.world.pass(millis(15));
        cluster.crash(N1);
        cluster.start(N1);
        assert_eq!(rows(&cluster.groups[&N1]).len(), 1, "seed {seed}");
    }
}

#[test]
fn a_checkpoint_shortens_the_log() {
    let settings = GroupSettings {
        checkpoint_log_bytes: 20_000,
        kept_log_bytes: 4_000,
        segment_bytes: 8 << 10,
        ..GroupSettings::default()
    };
    let mut cluster = Cluster::with(3, 1, settings);
    cluster.create_table();
    for i in 0..600 {
        cluster.commit_at(
            insert(&format!("k{i:04}"), "a value of some length"),
            Durability::On,
        );
        if i % 10 == 0 {
            cluster.world.pass(millis(20));
        }
    }
    let group = &cluster.groups[&N1];
    let checkpoint = group.store().checkpoint().lsn;
    assert!(checkpoint > Lsn(300), "checkpoint at {checkpoint}");
    let first = group.log.first();
    assert!(first > Lsn(100), "the log begins at {first}");
    cluster.crash(N1);
    cluster.start(N1);
    cluster.leader();
    assert_eq!(rows(&cluster.groups[&N1]).len(), 600);
    assert_index(&cluster.groups[&N1]);
}

/// Whether it is bytes or records that are bounded.
#[test]
fn a_stream_of_writes_leaves_no_more_to_replay_than_is_allowed() {
    const RECORDS: u64 = 600;
    const BYTES: u64 = 40_000;
    let usual = GroupSettings {
        kept_log_bytes: 4_000,
        segment_bytes: 8 << 10,
        ..GroupSettings::default()
    };
    let by_records = GroupSettings {
        checkpoint_log_records: RECORDS,
        ..usual.clone()
    };
    let by_bytes = GroupSettings {
        checkpoint_log_bytes: BYTES,
        ..usual
    };
    for (settings, most) in [
        (by_records, (RECORDS, u64::MAX)),
        (by_bytes, (u64::MAX, BYTES)),
    ] {
        let mut cluster = Cluster::with(3, 1, settings);
        cluster.create_table();
        let mut longest = (0, 0);
        for i in 0..3_000 {
            let row = insert(&format!("k{i:04}"), "a value of some length");
            cluster.commit_at(row, Durability::On);
            cluster.world.pass(millis(1));
            let group = &cluster.groups[&N1];
            let from = group.store().checkpoint().lsn;
            let records = group.visible().lsn.0 - from.0;
            longest.0 = longest.0.max(records);
            longest.1 = longest.1.max(group.log.bytes_after(from));
        }
        assert!(longest.0 <= most.0, "{} records to replay", longest.0);
        assert!(longest.1 <= most.1, "{} bytes to replay", longest.1);
        let last = cluster.groups[&N1].store().checkpoint().lsn;
        assert!(last > Lsn(2_000), "the last checkpoint is at {last}");
    }
}

#[test]
fn a_checkpoint_is_made_when_one_is_asked_for() {
    let mut cluster = Cluster::new(3, 1);
    cluster.create_table();
    cluster.commit_at(insert("k", "a"), Durability::On);
    let group = cluster.groups[&N1].clone();
    let visible = group.visible().lsn;
    assert!(group.store().checkpoint_lsn() < visible);
    let asked = group.clone();
    let checkpoint = async move { asked.checkpoint_of_now().await };
    cluster.world.run(checkpoint).expect("a checkpoint");
    let made = group.store().checkpoint_lsn();
    assert!(made >= visible, "{made} and not {visible}");
}

#[test]
fn a_checkpoint_for_which_there_is_no_space_is_an_error() {
    let settings = GroupSettings {
        segment_bytes: 8 << 20,
        ..GroupSettings::default()
    };
    let mut cluster = Cluster::with(3, 1, settings);
    cluster.create_table();
    cluster.world.fill_disk(N1, true);
    // The log has space for this, and the trees' file has not.
    let value = "x".repeat(1_000);
    for i in 0..3_000 {
        let key = format!("k{i:04}");
        cluster.commit_at(insert(&key, &value), Durability::Off);
    }
    let ask = |cluster: &mut Cluster| {
        let asked = cluster.groups[&N1].clone();
        let checkpoint = async move { asked.checkpoint_of_now().await };
        cluster.world.run(checkpoint)
    };
    let error = ask(&mut cluster).expect_err("no space");
    assert_eq!(error.state(), SqlState::DISK_FULL);
    cluster.world.fill_disk(N1, false);
    ask(&mut cluster).expect("there is space");
}

#[test]
fn numbers_are_never_given_twice() {
    let mut cluster = one(5);
    let mut last = 0;
    for round in 0..5 {
        for _ in 0..100 {
            let (_, group) = cluster.leader();
            let (first, debt) = group.advance(SequenceId(9), 3).expect("numbers");
            assert!(first > last, "{first} after {last} in round {round}");
            last = first + 2;
            let position = debt.groups().next().expect("a debt").position;
            cluster
                .world
                .run(group.settle(position, Durability::On))
                .expect("settled");
        }
        cluster.crash(N1);
        cluster.start(N1);
    }
}

#[test]
fn a_change_that_does_not_fit_is_refused_and_the_node_goes_on() {
    let mut cluster = one(1);
    cluster.commit_at(insert("k", "a"), Durability::On);
    let error = cluster.commit(insert("k", "b")).expect_err("it is there");
    assert_eq!(error.state(), SqlState::INTERNAL_ERROR);
    let error = cluster.commit(delete("none")).expect_err("it is not there");
    assert_eq!(error.state(), SqlState::INTERNAL_ERROR);
    assert_eq!(cluster.world.stopped(N1), None);
    cluster.commit_at(delete("k"), Durability::On);
}

#[test]
fn a_check_changes_nothing_and_finds_damage() {
    let settings = GroupSettings {
        checkpoint_interval: millis(500),
        segment_bytes: 64 << 10,
        ..GroupSettings::default()
    };
    let mut cluster = Cluster::with(4, 1, settings);
    cluster.create_table();
    cluster.check();
    for i in 0..50 {
        cluster.commit_at(insert(&format!("k{i}"), "value"), Durability::On);
    }
    cluster.world.pass(millis(1_000));
    cluster.commit_at(insert("last", "value"), Durability::On);
    assert!(cluster.groups[&N1].store().checkpoint().lsn > Lsn(10));
    cluster.world.pass(millis(50));
    let before = cluster.world.files(N1);
    cluster.check();
    assert!(cluster.world.files(N1) == before, "a file was changed");
    let mut found = 0;
    for (path, content) in before {
        let used = content.iter().rposition(|byte| *byte != 0).unwrap_or(0);
        for offset in (0..used).step_by(used / 20 + 1) {
            cluster.world.damage(N1, &path, offset);
            found += usize::from(cluster.try_check(N1).is_err());
            cluster.world.damage(N1, &path, offset);
        }
    }
    assert!(found >= 10, "{found} damages were found");
}

/// Segments of the log that were begun and got no name.
fn unfinished(cluster: &Cluster) -> usize {
    let files = cluster.world.files(N1);
    files.keys().filter(|path| path.ends_with(".tmp")).count()
}

#[test]
fn a_full_disk_is_an_error_and_no_broken_one() {
    let settings = GroupSettings {
        checkpoint_log_bytes: 100_000,
        segment_bytes: 256 << 10,
        ..GroupSettings::default()
    };
    let mut cluster = Cluster::with(4, 1, settings);
    cluster.create_table();
    cluster.world.fill_disk(N1, true);
    let value = "x".repeat(1_000);
    let mut error = None;
    for i in 0..2_000 {
        match cluster.commit(insert(&format!("k{i:04}"), &value)) {
            Ok(_) => cluster.world.pass(millis(2)),
            Err(full) => {
                error = Some(full);
                break;
            }
        }
    }
    let error = error.expect("the disk is full");
    assert_eq!(error.state(), SqlState::DISK_FULL);
    cluster.world.pass(millis(10_000));
    assert_eq!(cluster.world.stopped(N1), None);
    assert!(rows(&cluster.groups[&N1]).len() > 50, "reads go on");
    assert_eq!(unfinished(&cluster), 0, "segments that were not made");
    cluster.world.fill_disk(N1, false);
    cluster.commit_at(insert("later", &value), Durability::On);
    cluster.world.pass(millis(10_000));
    let group = &cluster.groups[&N1];
    assert!(group.store().checkpoint().lsn > Lsn(10));
    assert_index(group);
}

#[test]
fn runs_repeat() {
    let trace = |seed| {
        let mut cluster = one(seed);
        for i in 0..20 {
            cluster.commit_at(insert(&format!("k{i}"), "a"), Durability::On);
        }
        cluster.crash(N1);
        cluster.start(N1);
        cluster.leader();
        cluster.world.trace()
    };
    assert_eq!(trace(8), trace(8));
    assert_ne!(trace(8), trace(9));
}

/// Transactions and entries of the log are counted in 64 bits: nothing happens at 2³², where
/// PostgreSQL's transaction ids begin anew.
#[test]
fn nothing_happens_after_four_billion_transactions() {
    const FOUR_BILLION: u64 = 1 << 32;
    for voters in [1, 3] {
        let mut cluster = Cluster::new(5, voters);
        cluster.create_table();
        cluster.commit_at(insert("before", "a"), Durability::On);
        cluster.world.pass(millis(1_000));
        cluster.move_on(Lsn(FOUR_BILLION - 20));
        let (_, group) = cluster.leader();
        let near = group.next_txn().expect("it leads").0 + 20;
        group
            .advance(TXN_SEQUENCE, FOUR_BILLION - near)
            .expect("it leads");
        for number in 0..40 {
            let position = cluster.commit_at(insert(&format!("k{number:02}"), "a"), Durability::On);
            let position = position.lsn.0;
            assert!(position > FOUR_BILLION - 20, "{position}");
        }
        cluster.commit_at(update("k02", "a", "b"), Durability::On);
        cluster.commit_at(update("before", "a", "b"), Durability::On);
        let (node, group) = cluster.leader();
        assert!(group.next_txn().expect("it leads").0 > FOUR_BILLION);
        assert!(group.visible().lsn.0 > FOUR_BILLION);
        cluster.assert_equal();
        let before = rows(&group);
        assert_eq!(before.len(), 41);
        cluster.crash(node);
        cluster.start(node);
        cluster.leader();
        cluster.assert_equal();
        assert_eq!(rows(&cluster.groups[&node]), before);
        cluster.check();
    }
}
