//! Large transactions. In these tests a chunk has a few rows, and a large transaction waits before
//! each chunk until the one before is committed.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use base::coro::{self, Interrupt, Interrupts};
use base::engine::{IndexColumn, IndexDescriptor, TreeDescriptor, TreeKind};
use base::key::{ColumnOrder, KeyKind};
use base::{Durability, Lsn, NodeId, Position, Result, SqlState, TreeId};

use super::cluster::{commit, delete, insert, millis, rows, update, Cluster, INDEX, TABLE};
use crate::apply::for_each_row;
use crate::config::GroupSettings;
use crate::group::Group;
use crate::record::{Change, RowChange};

fn settings() -> GroupSettings {
    GroupSettings {
        segment_bytes: 64 << 10,
        chunk_bytes: 200,
        ..GroupSettings::default()
    }
}

fn many(from: usize, count: usize) -> Vec<RowChange> {
    (from..from + count)
        .flat_map(|number| insert(&format!("k{number:05}"), "a value of some bytes"))
        .collect()
}

type Outcome = Rc<RefCell<Option<Result<Position>>>>;

/// Begins a commit as a session would, and lets the world go on.
fn begin(cluster: &mut Cluster, changes: Vec<RowChange>) -> (Outcome, Arc<Interrupts>) {
    let (node, group) = cluster.leader();
    let outcome = Outcome::default();
    let interrupts = Arc::new(Interrupts::default());
    let (slot, interrupt) = (outcome.clone(), interrupts.clone());
    let body = coro::run(interrupt, move || commit(&group, changes));
    let session = async move { *slot.borrow_mut() = Some(body.await) };
    cluster.world.spawn_on(node, session);
    (outcome, interrupts)
}

/// Waits until some chunks of a large transaction are in the log, and its end is not.
fn into_the_middle(cluster: &mut Cluster, group: &Arc<Group>, outcome: &Outcome) {
    let from = group.visible().lsn;
    cluster.world.until("some chunks", |_| {
        group.visible().lsn.0 > from.0 + 5 || outcome.borrow().is_some()
    });
    assert!(outcome.borrow().is_none(), "it is over: {outcome:?}");
    assert!(group.store().has_undecided(), "no chunk is there");
}

#[test]
fn others_commit_between_the_chunks_and_nobody_sees_them() {
    // The decision is not forgotten before it is looked at.
    let settings = GroupSettings {
        cache_bytes: 1 << 20,
        ..settings()
    };
    let mut cluster = Cluster::with(1, 3, settings);
    cluster.create_table();
    cluster.commit_at(insert("k00007", "old"), Durability::On);
    let (_, group) = cluster.leader();
    let mut changes = many(10, 300);
    changes.extend(update("k00007", "old", "new"));
    let (outcome, _) = begin(&mut cluster, changes);
    let mut between = 0;
    while outcome.borrow().is_none() {
        let position =
            cluster.commit_at(insert(&format!("s{between}"), "x"), Durability::RemoteApply);
        between += 1;
        if outcome.borrow().is_none() {
            let mut showing = 0;
            for group in cluster.groups.values() {
                // Who is not needed for the majority may come later.
                if group.visible().lsn < position.lsn {
                    continue;
                }
                let found = rows(group);
                assert_eq!(found.len(), between + 1, "at {position:?} on {group:?}");
                assert_eq!(found["k00007"], "old");
                showing += 1;
            }
            assert!(showing >= 2, "{showing} show {position:?}");
        }
    }
    assert!(between > 10, "{between} others");
    let position = outcome.take().expect("over").expect("committed");
    let mut row = Vec::new();
    let read = group.store().get(TABLE, b"k00020", position.lsn, &mut row);
    let read = read.expect("a readable table");
    // Once all of it has settled, the decision is forgotten.
    let is_forgotten = group.store().known_bulks() == 0;
    assert!(read.exists);
    assert!(read.owes == position.lsn || is_forgotten, "{read:?}");
    let before = Lsn(position.lsn.0 - 1);
    let read = group.store().get(TABLE, b"k00020", before, &mut row);
    assert!(!read.expect("a readable table").exists || is_forgotten);
    cluster.commit_at(delete("k00020"), Durability::On);
    cluster.assert_equal();
    assert_eq!(rows(&group).len(), 300 + between);
    assert_eq!(rows(&group)["k00007"], "new");
    cluster.world.pass(millis(200));
    for group in cluster.groups.values() {
        assert_eq!(group.store().known_bulks(), 0, "{group:?} remembers it");
        assert_eq!(group.store().old_versions(), 0, "{group:?}");
    }
}

#[test]
fn a_cancelled_one_is_aborted_everywhere() {
    let mut cluster = Cluster::with(2, 3, settings());
    cluster.create_table();
    cluster.commit_at(insert("k00007", "old"), Durability::On);
    let (_, group) = cluster.leader();
    let mut changes = many(10, 300);
    changes.extend(delete("k00007"));
    let (outcome, interrupts) = begin(&mut cluster, changes);
    into_the_middle(&mut cluster, &group, &outcome);
    interrupts.raise(Interrupt::Cancel);
    cluster
        .world
        .until("its end", |_| outcome.borrow().is_some());
    let error = outcome.take().expect("over").expect_err("cancelled");
    assert_eq!(error.state(), SqlState::QUERY_CANCELED);
    // Its rows are free at once.
    cluster.commit_at(update("k00007", "old", "newer"), Durability::On);
    cluster.commit_at(insert("k00010", "mine"), Durability::On);
    cluster.assert_equal();
    assert_eq!(rows(&group).len(), 2);
    cluster.world.pass(millis(200));
    for group in cluster.groups.values() {
        assert_eq!(group.store().known_bulks(), 0, "{group:?} remembers it");
    }
    cluster.check();
}

#[test]
fn a_new_leader_aborts_what_its_predecessor_began() {
    for (seed, whole) in [(3, false), (4, true)] {
        let mut cluster = Cluster::with(seed, 3, settings());
        cluster.create_table();
        let (old, group) = cluster.leader();
        let (outcome, _) = begin(&mut cluster, many(10, 300));
        into_the_middle(&mut cluster, &group, &outcome);
        for node in [1, 2, 3].map(NodeId) {
            if whole || node == old {
                cluster.crash(node);
            }
        }
        for node in [1, 2, 3].map(NodeId) {
            if whole {
                cluster.start(node);
            }
        }
        drop(group);
        cluster.commit_at(insert("k00010", "mine"), Durability::On);
        if !whole {
            cluster.start(old);
        }
        cluster.assert_equal();
        assert_eq!(rows(&cluster.leader().1).len(), 1);
        cluster.commit_at(many(11, 300), Durability::On);
        cluster.assert_equal();
        assert_eq!(rows(&cluster.leader().1).len(), 301);
        cluster.check();
    }
}

#[test]
fn what_was_cut_off_is_40001() {
    let mut cluster = Cluster::with(5, 3, settings());
    cluster.create_table();
    let (old, group) = cluster.leader();
    let (outcome, _) = begin(&mut cluster, many(10, 300));
    into_the_middle(&mut cluster, &group, &outcome);
    for node in [1, 2, 3].map(NodeId) {
        if node != old {
            cluster.world.link(old, node, false);
        }
    }
    cluster.groups.remove(&old);
    cluster.commit_at(insert("k00010", "mine"), Durability::On);
    for node in [1, 2, 3].map(NodeId) {
        if node != old {
            cluster.world.link(old, node, true);
        }
    }
    cluster.groups.insert(old, group);
    cluster.assert_equal();
    assert_eq!(rows(&cluster.leader().1).len(), 1);
    let error = outcome.take().expect("over").expect_err("cut off");
    assert_eq!(error.state(), SqlState::SERIALIZATION_FAILURE);
}

#[test]
fn checkpoints_come_between_large_transactions() {
    let settings = GroupSettings {
        checkpoint_log_bytes: 2_000,
        kept_log_bytes: 1_000,
        absent_log_bytes_max: 2_000,
        ..settings()
    };
    let mut cluster = Cluster::with(6, 3, settings);
    cluster.create_table();
    let (leader, group) = cluster.leader();
    let absent = NodeId(leader.0 % 3 + 1);
    cluster.crash(absent);
    // There is always one in its chunks: two sessions commit one after another.
    let ends: Vec<Outcome> = (0..2).map(|_| Outcome::default()).collect();
    for (number, end) in ends.iter().enumerate() {
        let (group, end) = (group.clone(), end.clone());
        let body = move || -> Result<Position> {
            let mut last = Err(base::Error::internal("none"));
            for round in 0..12 {
                let from = number * 40_000 + round * 200;
                last = Ok(commit(&group, many(from, 100 + number * 57))?);
            }
            last
        };
        let body = coro::run(Arc::new(Interrupts::default()), body);
        let session = async move { *end.borrow_mut() = Some(body.await) };
        cluster.world.spawn_on(leader, session);
    }
    let mut made = 0;
    let mut last = Lsn::ZERO;
    while ends.iter().any(|end| end.borrow().is_none()) {
        cluster.world.pass(millis(50));
        let checkpoint = group.store().checkpoint().lsn;
        made += usize::from(checkpoint > last);
        last = checkpoint;
    }
    assert!(made > 2, "{made} checkpoints");
    for end in &ends {
        end.take().expect("over").expect("committed");
    }
    cluster.world.pass(millis(1_000));
    for group in cluster.groups.values() {
        let checkpoint = group.store().checkpoint().lsn;
        assert!(checkpoint > Lsn::ZERO, "{group:?} made no checkpoint");
    }
    // One that has lost the log gets a checkpoint in the middle of a further one.
    let (outcome, _) = begin(&mut cluster, many(90_000, 300));
    into_the_middle(&mut cluster, &group, &outcome);
    cluster.start(absent);
    cluster
        .world
        .until("the end", |_| outcome.borrow().is_some());
    cluster.assert_equal();
    assert_eq!(rows(&group).len(), 12 * 257 + 300);
    cluster.check();
}

/// Makes a table and its index, and another on a table that is there, whose index it drops; and
/// fills both tables.
fn remake((table, on_new, on_old): (TreeId, TreeId, TreeId)) -> Vec<RowChange> {
    let index = |table| {
        TreeKind::Index(IndexDescriptor {
            table,
            columns: vec![IndexColumn {
                column: 1,
                kind: KeyKind::Bytes,
                order: ColumnOrder::DESCENDING,
            }],
            unique: false,
            missing: Vec::new(),
        })
    };
    let made = [
        (table, TreeKind::Table),
        (on_new, index(table)),
        (on_old, index(TABLE)),
    ];
    let mut changes: Vec<RowChange> = made
        .into_iter()
        .map(|(id, kind)| RowChange {
            tree: TreeId::DESCRIPTORS,
            key: id.descriptor_key(),
            change: Change::Insert(TreeDescriptor { id, kind }.to_row()),
        })
        .collect();
    changes.push(RowChange {
        tree: TreeId::DESCRIPTORS,
        key: INDEX.descriptor_key(),
        change: Change::Delete,
    });
    changes.extend(many(10, 200));
    changes.extend(update("k00001", "old", "new"));
    changes.extend(many(500, 200).into_iter().map(|change| RowChange {
        tree: table,
        ..change
    }));
    changes
}

#[test]
fn tables_and_indexes_may_be_made_by_the_same_transaction() {
    let mut cluster = Cluster::with(7, 3, settings());
    cluster.create_table();
    cluster.commit_at(insert("k00001", "old"), Durability::On);
    let (_, group) = cluster.leader();
    let first = (TreeId(16_400), TreeId(16_401), TreeId(16_402));
    let (outcome, interrupts) = begin(&mut cluster, remake(first));
    into_the_middle(&mut cluster, &group, &outcome);
    assert!(group.indexes(first.0).is_none(), "seen before it is there");
    interrupts.raise(Interrupt::Cancel);
    cluster
        .world
        .until("its end", |_| outcome.borrow().is_some());
    assert!(outcome.take().expect("over").is_err());
    cluster.world.pass(millis(200));
    cluster.assert_equal();
    assert!(!group.store().has_tree(first.0), "left behind");
    let (table, on_new, on_old) = (TreeId(16_410), TreeId(16_411), TreeId(16_412));
    let changes = remake((table, on_new, on_old));
    let position = cluster.commit_at(changes, Durability::RemoteApply);
    cluster.world.pass(millis(100));
    for group in cluster.groups.values() {
        let count = |tree| {
            let mut count = 0;
            for_each_row(&group.store(), tree, |_, _| {
                count += 1;
                Ok(())
            })
            .expect("a readable tree");
            count
        };
        let counts = [TABLE, on_old, table, on_new, INDEX].map(count);
        assert_eq!(counts, [201, 201, 200, 200, 0], "{group:?} at {position:?}");
        assert!(group.index(INDEX).is_none());
    }
    let first = cluster.leader().1.digest().expect("sound trees");
    for group in cluster.groups.values() {
        assert_eq!(group.digest().expect("sound trees"), first);
    }
    cluster.check_sound();
}
