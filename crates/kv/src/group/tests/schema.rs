//! Trees that come and go: descriptors in the records of transactions.

use base::engine::{IndexColumn, IndexDescriptor, TreeDescriptor, TreeKind};
use base::key::{ColumnOrder, KeyKind};
use base::{Durability, NodeId, SqlState, TreeId};

use super::cluster::{assert_index, commit, insert, rows, Cluster, INDEX, TABLE};
use crate::apply::for_each_row;
use crate::record::{Change, RowChange};

const N1: NodeId = NodeId(1);
const SECOND: TreeId = TreeId(16_400);

fn describe(id: TreeId, kind: TreeKind) -> RowChange {
    let row = TreeDescriptor { id, kind }.to_row();
    RowChange {
        tree: TreeId::DESCRIPTORS,
        key: id.descriptor_key(),
        change: Change::Insert(row),
    }
}

fn index_on(column: usize) -> TreeKind {
    let column = IndexColumn {
        column,
        kind: KeyKind::Bytes,
        order: ColumnOrder::DESCENDING,
    };
    TreeKind::Index(IndexDescriptor {
        table: TABLE,
        columns: vec![column],
        unique: true,
        missing: Vec::new(),
    })
}

fn forget(id: TreeId) -> RowChange {
    RowChange {
        tree: TreeId::DESCRIPTORS,
        key: id.descriptor_key(),
        change: Change::Delete,
    }
}

fn count(cluster: &Cluster, tree: TreeId) -> usize {
    let mut count = 0;
    let store = cluster.groups[&N1].store();
    for_each_row(&store, tree, |_, _| {
        count += 1;
        Ok(())
    })
    .expect("a readable tree");
    count
}

#[test]
fn an_index_made_later_gets_entries_of_all_rows() {
    let mut cluster = Cluster::new(1, 1);
    cluster.create_table();
    for i in 0..10 {
        cluster.commit_at(insert(&format!("k{i}"), "a"), Durability::On);
    }
    let mut changes = vec![describe(SECOND, index_on(0))];
    changes.extend(insert("new", "a"));
    changes.push(RowChange {
        tree: TABLE,
        key: b"k3".to_vec(),
        change: Change::Delete,
    });
    cluster.commit_at(changes, Durability::On);
    assert_eq!(count(&cluster, SECOND), 10);
    cluster.commit_at(insert("newer", "a"), Durability::On);
    assert_eq!(count(&cluster, SECOND), 11);
    cluster.check();
    cluster.crash(N1);
    cluster.start(N1);
    assert_eq!(count(&cluster, SECOND), 11);
    let indexes = cluster.groups[&N1].indexes(TABLE).expect("indexes");
    assert_eq!(indexes.len(), 2);
}

#[test]
fn what_is_dropped_is_gone_and_what_was_written_to_it_too() {
    let mut cluster = Cluster::new(2, 1);
    cluster.create_table();
    cluster.commit_at(insert("k", "a"), Durability::On);
    let version = cluster.groups[&N1].catalog_version();
    cluster.commit_at(vec![forget(INDEX)], Durability::On);
    let later = cluster.groups[&N1].catalog_version();
    assert!(later.generation > version.generation && later.lsn > version.lsn);
    assert!(cluster.groups[&N1].index(INDEX).is_none());
    assert!(cluster.groups[&N1].indexes(TABLE).is_none());
    cluster.commit_at(insert("l", "a"), Durability::On);
    let mut changes = insert("m", "a");
    changes.push(forget(TABLE));
    cluster.commit_at(changes, Durability::On);
    let error = cluster.commit(insert("n", "a"));
    // Whoever had no lock on the table writes nothing: its rows are left out of the record.
    assert!(error.is_ok(), "{error:?}");
    cluster.commit_at(vec![describe(SECOND, TreeKind::Table)], Durability::On);
    cluster.crash(N1);
    cluster.start(N1);
    cluster.leader();
    let all = cluster.groups[&N1].registry.all();
    assert_eq!(all.iter().map(|d| d.id).collect::<Vec<_>>(), [SECOND]);
    cluster.check_sound();
}

#[test]
fn a_descriptor_under_a_wrong_key_is_refused() {
    let mut cluster = Cluster::new(3, 1);
    let mut wrong = describe(SECOND, TreeKind::Table);
    wrong.key = TABLE.descriptor_key();
    let error = cluster
        .commit(vec![wrong])
        .expect_err("the key is another's");
    assert_eq!(error.state(), SqlState::INTERNAL_ERROR);
    let low = describe(TreeId(20), TreeKind::Table);
    cluster
        .commit(vec![low])
        .expect_err("below the first user tree");
    assert_eq!(cluster.world.stopped(N1), None);
}

#[test]
fn a_tree_that_is_taken_back_is_forgotten() {
    let mut cluster = Cluster::new(4, 3);
    cluster.create_table();
    cluster.commit_at(insert("k", "a"), Durability::RemoteApply);
    let (old, group) = cluster.leader();
    let others: Vec<_> = (1..=3).map(NodeId).filter(|node| *node != old).collect();
    others
        .iter()
        .for_each(|other| cluster.world.link(old, *other, false));
    let leader = group.clone();
    let changes = vec![describe(SECOND, index_on(0)), forget(INDEX)];
    let result = cluster.world.session(move || commit(&leader, changes));
    result.expect("it still leads");
    assert!(group.index(SECOND).is_some() && group.index(INDEX).is_none());
    let version = group.catalog_version();
    cluster.groups.remove(&old);
    cluster.commit_at(insert("l", "a"), Durability::On);
    others
        .iter()
        .for_each(|other| cluster.world.link(old, *other, true));
    cluster.groups.insert(old, group.clone());
    cluster.assert_equal();
    assert!(group.index(SECOND).is_none() && group.index(INDEX).is_some());
    assert!(group.catalog_version().generation > version.generation);
    assert_index(&group);
    assert_eq!(rows(&group).len(), 2);
}
