//! The store against a model: versions in maps, and a list of records to apply again.

mod crash;
mod export;
mod space;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use base::engine::{Direction, RowBatch};
use base::{ErrorClass, GroupId, Key, KeyRange, Lsn, Result, SqlState, TreeId};

use crate::testing::{block_on, Random, TestEnv};
use crate::{check, Change, Gap, Owner, Room, Store, StoreOptions};

const OWNER: Owner = Owner {
    cluster: 7,
    group: GroupId(1),
};

fn open(env: &Arc<TestEnv>) -> Arc<Store> {
    try_open(env, OWNER).unwrap()
}

/// So few pages that something leaves memory all the time.
const CACHE_PAGES: u64 = 8;

fn try_open(env: &Arc<TestEnv>, owner: Owner) -> Result<Arc<Store>> {
    open_with_cache(env, owner, CACHE_PAGES)
}

fn open_with_cache(env: &Arc<TestEnv>, owner: Owner, pages: u64) -> Result<Arc<Store>> {
    let room = Room::of(pages * 8_192);
    let options = StoreOptions { owner, room };
    block_on(Store::open(env.clone(), "g1", options))
}

fn put<'a>(tree: TreeId, key: &'a [u8], row: &'a [u8]) -> Change<'a> {
    let row = Some(row);
    Change { tree, key, row }
}

fn delete(tree: TreeId, key: &[u8]) -> Change<'_> {
    Change {
        tree,
        key,
        row: None,
    }
}

fn checkpoint(store: &Store) {
    store.start_checkpoint(b"meta".to_vec()).unwrap();
    assert!(block_on(store.write_checkpoint(25)).unwrap());
    assert!(block_on(store.publish_checkpoint()).unwrap());
}

fn value(store: &Store, tree: TreeId, key: &[u8], at: u64) -> Option<Vec<u8>> {
    let mut row = Vec::new();
    let found = store.get(tree, key, Lsn(at), &mut row).unwrap();
    found.exists.then_some(row)
}

const T: TreeId = TreeId(20_000);

#[test]
fn rows_in_order_go_where_they_belong_and_gaps_have_none() {
    const U: TreeId = TreeId(20_001);
    let store = open(&TestEnv::new());
    let mut random = Random::new(7);
    let mut model: BTreeMap<(TreeId, Key), Vec<u8>> = BTreeMap::new();
    for tree in [T, U] {
        store.create_tree(Lsn(1), tree).unwrap();
    }
    for lsn in 1..60u64 {
        // Runs of keys that grow, in both trees, over rows that are there and some that go.
        let mut changes: Vec<(TreeId, Key, Option<Vec<u8>>)> = Vec::new();
        for tree in [T, U] {
            let first = random.below(4_000) as u32;
            let step = 1 + random.below(20) as u32;
            for number in (0..random.below(300) as u32).map(|n| first + n * step) {
                let key = number.to_be_bytes().to_vec();
                let is_there = model.contains_key(&(tree, key.clone()));
                let goes = is_there && random.below(3) == 0;
                let row = (!goes).then(|| vec![lsn as u8; 20 + random.below(100)]);
                changes.push((tree, key, row));
            }
        }
        store.apply(Lsn(lsn), &borrowed(&changes)).unwrap();
        for (tree, key, row) in changes {
            match row {
                Some(row) => drop(model.insert((tree, key), row)),
                None => drop(model.remove(&(tree, key))),
            }
        }
        for ((tree, key), row) in &model {
            assert_eq!(value(&store, *tree, key, lsn).as_ref(), Some(row));
        }
        assert!(store.release(Lsn(lsn), usize::MAX).unwrap());
        for _ in 0..50 {
            let from = (random.below(6_000) as u32).to_be_bytes().to_vec();
            let gap = store.gap(T, &from).unwrap();
            let next = model.range((T, from.clone())..(U, Key::new())).next();
            let next = next.map(|((_, key), _)| key);
            match (&gap, next) {
                (None, _) => assert_eq!(next, Some(&from)),
                (Some(Gap::UpTo(end)), next) => {
                    assert!(*end > from && next.is_none_or(|next| next >= end && *next != from));
                }
                (Some(Gap::ToTheEnd), next) => assert_eq!(next, None),
            }
        }
    }
}

#[test]
fn snapshots_see_their_versions_and_owe_them() {
    let store = open(&TestEnv::new());
    store.create_tree(Lsn(1), T).unwrap();
    store.apply(Lsn(1), &[put(T, b"a", b"1")]).unwrap();
    store
        .apply(Lsn(2), &[put(T, b"a", b"2"), put(T, b"b", b"2")])
        .unwrap();
    store.apply(Lsn(3), &[delete(T, b"a")]).unwrap();
    store.advance(Lsn(9)).unwrap();
    let mut row = Vec::new();
    let mut get = |key: &[u8], at: u64| {
        let read = store.get(T, key, Lsn(at), &mut row).unwrap();
        (read.exists, read.version.0, read.owes.0)
    };
    assert_eq!(get(b"a", 0), (false, 0, 0));
    assert_eq!(get(b"a", 1), (true, 1, 1));
    assert_eq!(get(b"a", 2), (true, 2, 2));
    assert_eq!(get(b"a", 9), (false, 3, 3));
    assert_eq!(get(b"b", 9), (true, 2, 2));
    assert_eq!(get(b"c", 9), (false, 0, 3));
    assert_eq!(get(b"c", 2), (false, 0, 2));
    assert!(store.release(Lsn(9), usize::MAX).unwrap());
    assert_eq!(store.old_versions(), 0);
    assert_eq!(value(&store, T, b"a", 9), None);
    assert_eq!(value(&store, T, b"b", 9), Some(b"2".to_vec()));
    assert_eq!(store.unreleased(), 0);
}

#[test]
fn senseless_changes_are_corruption() {
    let store = open(&TestEnv::new());
    store.apply(Lsn(1), &[put(TreeId(1), b"k", b"v")]).unwrap();
    let refused = |lsn, change| store.apply(Lsn(lsn), &[change]).unwrap_err();
    assert_eq!(
        refused(2, delete(TreeId(1), b"x")).class(),
        ErrorClass::Node
    );
    assert_eq!(
        refused(3, put(T, b"x", b"")).state(),
        SqlState::DATA_CORRUPTED
    );
    assert_eq!(
        refused(1, put(TreeId(1), b"x", b"")).class(),
        ErrorClass::User
    );
    assert!(store.drop_tree(Lsn(4), T).is_err());
}

#[test]
fn a_record_may_change_a_key_twice() {
    let store = open(&TestEnv::new());
    store.create_tree(Lsn(1), T).unwrap();
    store.apply(Lsn(1), &[put(T, b"a", b"1")]).unwrap();
    let twice = [
        delete(T, b"a"),
        put(T, b"a", &[7; 5000]),
        put(T, b"a", b"2"),
    ];
    store.apply(Lsn(2), &twice).unwrap();
    assert_eq!(value(&store, T, b"a", 2), Some(b"2".to_vec()));
    assert_eq!(value(&store, T, b"a", 1), Some(b"1".to_vec()));
    store.take_back(Lsn(1)).unwrap();
    assert_eq!(value(&store, T, b"a", 2), Some(b"1".to_vec()));
    store.apply(Lsn(2), &twice).unwrap();
    store.release(Lsn(2), usize::MAX).unwrap();
    assert_eq!(store.old_versions(), 0);
    store.apply(Lsn(3), &[put(T, b"b", b"3")]).unwrap();
    store.take_back(Lsn(2)).unwrap();
    assert_eq!(value(&store, T, b"b", 2), None);
    store.check_trees(&mut |_, _, _| Ok(())).unwrap();
}

/// A row that changes often has a long chain of versions; releasing them one by one must not walk
/// it each time.
#[test]
fn a_hot_row_is_released_in_no_time() {
    let store = open(&TestEnv::new());
    store.create_tree(Lsn(1), T).unwrap();
    for lsn in 1..=50_000u64 {
        let row = lsn.to_be_bytes();
        store.apply(Lsn(lsn), &[put(T, b"k", &row)]).unwrap();
    }
    assert_eq!(store.old_versions(), 49_999);
    for lsn in 1..=50_000u64 {
        assert!(store.release(Lsn(lsn), 2).unwrap());
    }
    assert_eq!(store.old_versions(), 0);
}

#[test]
fn long_rows_come_back_and_their_pages_too() {
    let env = TestEnv::new();
    let store = open(&env);
    store.create_tree(Lsn(1), T).unwrap();
    let long: Vec<u8> = (0..3_000_000u32).map(|n| ((n * 7) >> 3) as u8).collect();
    store.apply(Lsn(1), &[put(T, b"k", &long)]).unwrap();
    assert_eq!(value(&store, T, b"k", 1).as_deref(), Some(&long[..]));
    checkpoint(&store);
    let store = open(&env.restart());
    assert_eq!(value(&store, T, b"k", 1).as_deref(), Some(&long[..]));
    store.apply(Lsn(2), &[put(T, b"k", &long[1..])]).unwrap();
    assert_eq!(value(&store, T, b"k", 1).as_deref(), Some(&long[..]));
    store.take_back(Lsn(1)).unwrap();
    assert_eq!(value(&store, T, b"k", 9).as_deref(), Some(&long[..]));
    store.apply(Lsn(3), &[delete(T, b"k")]).unwrap();
    assert!(store.release(Lsn(3), usize::MAX).unwrap());
    let report = store.check_trees(&mut |_, _, _| Ok(())).unwrap();
    assert_eq!((report.pages, report.trees[&T]), (1, 0));
}

#[test]
fn a_dropped_tree_goes_bit_by_bit() {
    let env = TestEnv::new();
    let store = open(&env);
    store.create_tree(Lsn(1), T).unwrap();
    for n in 0..5_000u64 {
        let row = vec![1; if n % 100 == 0 { 20_000 } else { 50 }];
        store
            .apply(Lsn(n + 1), &[put(T, &n.to_be_bytes(), &row)])
            .unwrap();
    }
    checkpoint(&store);
    store.drop_tree(Lsn(6_000), T).unwrap();
    store.advance(Lsn(6_000)).unwrap();
    assert_eq!(
        value(&store, T, &[0; 8], 5_999).map(|row| row.len()),
        Some(20_000)
    );
    assert_eq!(value(&store, T, &[0; 8], 6_000), None);
    assert!(!store.release(Lsn(6_000), 5_020).unwrap());
    assert!(!store.has_tree(T));
    checkpoint(&store);
    let none = &mut |_, _: &[u8], _: &[u8]| panic!("a row of a dropped tree is shown");
    check(&*env.disk, "g1", OWNER, none).unwrap();
    // What is left goes after the restart.
    let store = open(&env.restart());
    let mut rounds = 0;
    while !store.release(Lsn(6_000), 10).unwrap() {
        rounds += 1;
    }
    assert!(rounds > 2, "{rounds}");
    assert_eq!(store.check_trees(none).unwrap().pages, 0);
}

#[test]
fn deleted_rows_leave_no_pages_behind() {
    let env = TestEnv::new();
    let store = open(&env);
    store.create_tree(Lsn(1), T).unwrap();
    store.advance(Lsn(1)).unwrap();
    let mut lsn = 1;
    let key = |n: u64| n.to_be_bytes();
    // A queue: rows come at one end and go at the other.
    for n in 0..20_000u64 {
        lsn += 1;
        let new = key(n);
        let old = key(n.saturating_sub(500));
        let mut changes = vec![put(T, &new, &[1; 100])];
        if n >= 500 {
            changes.push(delete(T, &old));
        }
        store.apply(Lsn(lsn), &changes).unwrap();
        store.release(Lsn(lsn.saturating_sub(100)), 10).unwrap();
        if n % 5_000 == 4_999 {
            checkpoint(&store);
        }
    }
    let report = store.check_trees(&mut |_, _, _| Ok(())).unwrap();
    assert_eq!(report.trees[&T], 500);
    assert!(report.pages < 25, "{}", report.pages);
    checkpoint(&store);
    let size = env.disk.files().iter().map(|(_, f)| f.len()).sum::<usize>();
    assert!(size < 3 << 20, "{size}");
    // What was only tombstones at the checkpoint goes after a restart.
    let store = open(&env.restart());
    store.release(Lsn(lsn), usize::MAX).unwrap();
    let report = store.check_trees(&mut |_, _, _| Ok(())).unwrap();
    assert!(report.pages < 25, "{}", report.pages);
}

/// The keys in the leaf that a key belongs to, tombstones included.
fn leaf_keys(store: &Store, tree: TreeId, key: &[u8]) -> Vec<Key> {
    let tree = store.tree(tree).unwrap();
    let mut path = Vec::new();
    store.descend(&tree, key, &mut path).unwrap();
    let page = store.pager.read_here(path[path.len() - 1].id).unwrap();
    (0..page.count())
        .map(|slot| page.key(slot).to_vec())
        .collect()
}

/// The absence of rows owes the LSN at which they went, also when their leaf has gone too.
#[test]
fn absence_owes_the_leaf_that_went() {
    for inside in [0, 1_000, 1_999u64] {
        let store = open(&TestEnv::new());
        store.create_tree(Lsn(1), T).unwrap();
        for n in 0..2_000u64 {
            let row = [1; 100];
            store
                .apply(Lsn(n + 1), &[put(T, &n.to_be_bytes(), &row)])
                .unwrap();
        }
        let pages = store.check_trees(&mut |_, _, _| Ok(())).unwrap().pages;
        let keys = leaf_keys(&store, T, &inside.to_be_bytes());
        let mut lsn = 5_000;
        for key in &keys {
            lsn += 1;
            store.apply(Lsn(lsn), &[delete(T, key)]).unwrap();
            store.release(Lsn(lsn), usize::MAX).unwrap();
        }
        let report = store.check_trees(&mut |_, _, _| Ok(())).unwrap();
        assert_eq!(report.pages, pages - 1, "{inside}");
        let mut row = Vec::new();
        for key in &keys {
            let read = store.get(T, key, Lsn(6_000), &mut row).unwrap();
            assert_eq!((read.exists, read.owes), (false, Lsn(lsn)), "{inside}");
        }
        let mut batch = RowBatch::default();
        let range = KeyRange {
            start: keys[0].clone(),
            end: keys.last().cloned(),
        };
        let scanned = store
            .scan(T, &range, Direction::Backward, Lsn(6_000), 10, &mut batch)
            .unwrap();
        assert_eq!((batch.len(), scanned.owes), (0, Lsn(lsn)));
    }
}

/// A tombstone that was released while a newer version stood above it must not stay for ever when
/// that one is taken back.
#[test]
fn no_tombstone_comes_back_to_stay() {
    let store = open(&TestEnv::new());
    store.create_tree(Lsn(1), T).unwrap();
    store.apply(Lsn(1), &[put(T, b"k", b"1")]).unwrap();
    store.apply(Lsn(2), &[delete(T, b"k")]).unwrap();
    store.apply(Lsn(3), &[put(T, b"k", b"3")]).unwrap();
    store.release(Lsn(2), usize::MAX).unwrap();
    store.take_back(Lsn(2)).unwrap();
    assert_eq!(leaf_keys(&store, T, b"k"), [] as [Key; 0]);
    assert_eq!((store.old_versions(), store.unreleased()), (0, 0));
    // Not yet released, it must come back.
    store.apply(Lsn(3), &[put(T, b"k", b"3")]).unwrap();
    store.apply(Lsn(4), &[delete(T, b"k")]).unwrap();
    store.apply(Lsn(5), &[put(T, b"k", b"5")]).unwrap();
    store.take_back(Lsn(4)).unwrap();
    assert_eq!(value(&store, T, b"k", 4), None);
    assert_eq!(value(&store, T, b"k", 3), Some(b"3".to_vec()));
    store.release(Lsn(4), usize::MAX).unwrap();
    assert_eq!(leaf_keys(&store, T, b"k"), [] as [Key; 0]);
}

#[test]
fn growing_keys_fill_their_pages() {
    let store = open(&TestEnv::new());
    store.create_tree(Lsn(1), T).unwrap();
    for n in 0..10_000u64 {
        store
            .apply(Lsn(n + 1), &[put(T, &n.to_be_bytes(), &[1; 32])])
            .unwrap();
    }
    let report = store.check_trees(&mut |_, _, _| Ok(())).unwrap();
    assert_eq!(report.trees[&T], 10_000);
    // 66 bytes a row with its slot: 123 fit a page.
    assert!(report.pages < 86, "{}", report.pages);
}

#[test]
fn another_clusters_store_and_a_damaged_one_are_refused() {
    let env = TestEnv::new();
    let store = open(&env);
    store.create_tree(Lsn(1), T).unwrap();
    for n in 0..300u64 {
        let row = [n as u8; 300];
        store
            .apply(Lsn(n + 1), &[put(T, &n.to_be_bytes(), &row)])
            .unwrap();
    }
    checkpoint(&store);
    let mut other = OWNER;
    other.cluster = 8;
    let error = try_open(&env, other).unwrap_err();
    assert_eq!(error.state(), SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE);
    let report = check(&*env.disk, "g1", OWNER, &mut |_, _, _| Ok(())).unwrap();
    assert_eq!((report.info.lsn, report.trees[&T]), (Lsn(300), 300));
    // Every block in use has a checksum over all of it.
    let file = "g1/store";
    let mut random = Random::new(5);
    let size = env.disk.files()[0].1.len();
    let mut refused = 0;
    for _ in 0..300 {
        let offset = 2 * 8192 + random.below(size - 2 * 8192);
        env.disk.damage(file, offset);
        match check(&*env.disk, "g1", OWNER, &mut |_, _, _| Ok(())) {
            Err(error) => {
                assert_eq!(error.state(), SqlState::DATA_CORRUPTED);
                refused += 1;
            }
            Ok(found) => assert_eq!(found, report),
        }
        env.disk.damage(file, offset);
    }
    assert!(refused > 20, "{refused}");
}

#[derive(Clone, Debug, Default)]
struct Record {
    created: Vec<TreeId>,
    dropped: Vec<TreeId>,
    changes: Vec<(TreeId, Key, Option<Vec<u8>>)>,
}

#[derive(Clone, Debug, Default)]
struct TreeModel {
    created: u64,
    dropped: Option<u64>,
    rows: BTreeMap<Key, Versions>,
}

/// LSNs and rows, oldest first.
type Versions = Vec<(u64, Option<Vec<u8>>)>;

impl TreeModel {
    fn row(&self, key: &[u8], at: u64) -> Option<&(u64, Option<Vec<u8>>)> {
        let versions = self.rows.get(key)?;
        versions.iter().rev().find(|(lsn, _)| *lsn <= at)
    }
}

#[derive(Clone, Debug, Default)]
struct Model {
    trees: BTreeMap<TreeId, TreeModel>,
    records: BTreeMap<u64, Record>,
    applied: u64,
    released: u64,
}

impl Model {
    fn visible(&self, tree: TreeId, at: u64) -> Option<&TreeModel> {
        let tree = self.trees.get(&tree)?;
        let there = tree.created <= at && tree.dropped.is_none_or(|dropped| dropped > at);
        there.then_some(tree)
    }

    fn apply(&mut self, lsn: u64, record: &Record) {
        for tree in &record.created {
            let created = TreeModel {
                created: lsn,
                ..TreeModel::default()
            };
            self.trees.insert(*tree, created);
        }
        for (tree, key, row) in &record.changes {
            let tree = self.trees.get_mut(tree).unwrap();
            let versions = tree.rows.entry(key.clone()).or_default();
            versions.push((lsn, row.clone()));
        }
        for tree in &record.dropped {
            self.trees.get_mut(tree).unwrap().dropped = Some(lsn);
        }
        self.records.insert(lsn, record.clone());
        self.applied = lsn;
    }

    fn take_back(&mut self, to: u64) {
        self.records.retain(|lsn, _| *lsn <= to);
        self.trees.retain(|_, tree| tree.created <= to);
        for tree in self.trees.values_mut() {
            tree.dropped = tree.dropped.filter(|lsn| *lsn <= to);
            for versions in tree.rows.values_mut() {
                versions.retain(|(lsn, _)| *lsn <= to);
            }
        }
        self.applied = self.applied.min(to);
    }

    fn random_record(&self, random: &mut Random, next_tree: &mut u64) -> Record {
        let mut record = Record::default();
        let there: Vec<TreeId> = self
            .trees
            .iter()
            .filter(|(_, tree)| tree.dropped.is_none())
            .map(|(id, _)| *id)
            .collect();
        if there.len() < 2 || random.one_in(60) {
            *next_tree += 1;
            record.created.push(TreeId(*next_tree));
        }
        if there.len() > 3 && random.one_in(60) {
            record.dropped.push(there[random.below(there.len())]);
        }
        for _ in 0..random.below(8) {
            let choice = random.below(there.len() + record.created.len());
            let mut all = there.iter().chain(&record.created);
            let tree = *all.nth(choice).unwrap();
            let key = random_key(random);
            if record.dropped.contains(&tree)
                || record
                    .changes
                    .iter()
                    .any(|(t, k, _)| *t == tree && *k == key)
            {
                continue;
            }
            let exists = self
                .trees
                .get(&tree)
                .and_then(|tree| tree.row(&key, u64::MAX))
                .is_some_and(|(_, row)| row.is_some());
            if exists && random.one_in(2) {
                record.changes.push((tree, key, None));
            } else {
                let row = random_row(random);
                record.changes.push((tree, key, Some(row)));
            }
        }
        record
    }
}

fn random_key(random: &mut Random) -> Key {
    let number = random.below(300) as u16;
    let mut key = number.to_be_bytes().to_vec();
    // Some keys are long, and always the same for one number.
    match number % 17 {
        0 => key.resize(2_500, 1),
        1 => key.resize(700, 2),
        _ => {}
    }
    key
}

fn random_row(random: &mut Random) -> Vec<u8> {
    let len = match random.below(20) {
        0 => 2_000 + random.below(30_000),
        1..=4 => random.below(1_900),
        _ => random.below(200),
    };
    let byte = random.next() as u8;
    vec![byte; len]
}

fn borrowed(changes: &[(TreeId, Key, Option<Vec<u8>>)]) -> Vec<Change<'_>> {
    let changes = changes.iter().map(|(tree, key, row)| Change {
        tree: *tree,
        key,
        row: row.as_deref(),
    });
    changes.collect()
}

fn replay(store: &Store, lsn: u64, record: &Record) {
    for tree in &record.created {
        store.create_tree(Lsn(lsn), *tree).unwrap();
    }
    for tree in &record.dropped {
        store.drop_tree(Lsn(lsn), *tree).unwrap();
    }
    store.apply(Lsn(lsn), &borrowed(&record.changes)).unwrap();
}

fn compare_get(store: &Store, model: &Model, random: &mut Random, context: &str) {
    let at = model.released + random.below((model.applied - model.released) as usize + 1) as u64;
    let trees: Vec<TreeId> = model.trees.keys().copied().collect();
    if trees.is_empty() {
        return;
    }
    let tree = trees[random.below(trees.len())];
    let key = random_key(random);
    let mut row = Vec::new();
    let read = store.get(tree, &key, Lsn(at), &mut row).unwrap();
    let expected = model.visible(tree, at).and_then(|tree| tree.row(&key, at));
    match expected {
        Some((lsn, Some(expected))) => {
            assert!(read.exists, "{context}: {tree} {key:?} at {at}");
            assert_eq!((&row, read.version), (expected, Lsn(*lsn)), "{context}");
            assert_eq!(read.owes, Lsn(*lsn), "{context}");
        }
        Some((lsn, None)) => {
            assert!(!read.exists, "{context}: {tree} {key:?} at {at}");
            assert!(
                read.owes.0 >= *lsn && read.owes.0 <= at,
                "{context}: {read:?} {lsn}"
            );
        }
        None => assert!(!read.exists && read.owes.0 <= at, "{context}"),
    }
}

fn compare_scan(store: &Store, model: &Model, random: &mut Random, context: &str) {
    let at = model.released + random.below((model.applied - model.released) as usize + 1) as u64;
    let trees: Vec<TreeId> = model.trees.keys().copied().collect();
    if trees.is_empty() {
        return;
    }
    let tree = trees[random.below(trees.len())];
    let mut bounds = [random_key(random), random_key(random)];
    bounds.sort();
    let [start, end] = bounds;
    let range = match random.below(4) {
        0 => KeyRange::all(),
        1 => KeyRange { start, end: None },
        _ => KeyRange {
            start,
            end: Some(end),
        },
    };
    let direction = if random.one_in(2) {
        Direction::Forward
    } else {
        Direction::Backward
    };
    let limit = 1 + random.below(100);
    let mut expected: Vec<(Key, Vec<u8>)> = Vec::new();
    if let Some(tree) = model.visible(tree, at) {
        for key in tree.rows.keys().filter(|key| range.contains(key)) {
            if let Some((_, Some(row))) = tree.row(key, at) {
                expected.push((key.clone(), row.clone()));
            }
        }
    }
    if direction == Direction::Backward {
        expected.reverse();
    }
    let mut found = Vec::new();
    let mut rest = Some(range);
    let mut batch = RowBatch::default();
    while let Some(range) = rest {
        let scanned = store
            .scan(tree, &range, direction, Lsn(at), limit, &mut batch)
            .unwrap();
        assert!(batch.len() <= limit && scanned.owes.0 <= at, "{context}");
        found.extend(batch.iter().map(|(k, r)| (k.to_vec(), r.to_vec())));
        rest = scanned.rest;
    }
    let keys = |rows: &[(Key, Vec<u8>)]| rows.iter().map(|r| r.0[..2].to_vec()).collect::<Vec<_>>();
    assert_eq!(keys(&found), keys(&expected), "{context}: {tree} at {at}");
    assert!(found == expected, "{context}: rows of {tree} at {at}");
}

fn compare_all(store: &Store, model: &Model, context: &str) {
    let mut rows: BTreeMap<TreeId, Vec<(Key, Vec<u8>)>> = BTreeMap::new();
    let report = store
        .check_trees(&mut |tree, key, row| {
            let rows = rows.entry(tree).or_default();
            rows.push((key.to_vec(), row.to_vec()));
            Ok(())
        })
        .unwrap_or_else(|e| panic!("{context}: {e:?}"));
    for (id, tree) in &model.trees {
        if tree.dropped.is_some() {
            continue;
        }
        let expected: Vec<(Key, Vec<u8>)> = tree
            .rows
            .iter()
            .filter_map(|(key, versions)| {
                let newest = versions.last()?.1.clone()?;
                Some((key.clone(), newest))
            })
            .collect();
        assert_eq!(report.trees[id], expected.len() as u64, "{context}: {id}");
        assert!(rows.remove(id).unwrap_or_default() == expected, "{context}");
    }
}

type Writing = Pin<Box<dyn Future<Output = Result<bool>>>>;

struct World {
    env: Arc<TestEnv>,
    store: Arc<Store>,
    model: Model,
    writing: Option<Writing>,
    next_tree: u64,
    evictions: u64,
}

impl World {
    fn step(&mut self, random: &mut Random, context: &str) {
        match random.below(40) {
            0..=13 => {
                let lsn = self.model.applied + 1 + random.below(2) as u64;
                let record = self.model.random_record(random, &mut self.next_tree);
                replay(&self.store, lsn, &record);
                self.model.apply(lsn, &record);
            }
            14..=22 => compare_get(&self.store, &self.model, random, context),
            23..=26 => compare_scan(&self.store, &self.model, random, context),
            27..=28 => self.take_back(random),
            29..=30 => {
                let span = self.model.applied - self.model.released;
                let horizon = self.model.released + random.below(span as usize + 1) as u64;
                if random.one_in(2) {
                    let limit = random.below(100);
                    self.store.release_in_memory(Lsn(horizon), limit).unwrap();
                    self.env.run_tasks();
                } else {
                    assert!(self.store.release(Lsn(horizon), usize::MAX).unwrap());
                }
                self.model.released = horizon;
            }
            31..=32 => {
                if self.store.pending_checkpoint().is_none() && self.writing.is_none() {
                    self.store.start_checkpoint(b"m".to_vec()).unwrap();
                    let store = self.store.clone();
                    let writing = async move { store.write_checkpoint(25).await };
                    self.writing = Some(Box::pin(writing));
                }
            }
            33..=36 => {
                self.poll();
                if random.one_in(2) {
                    self.env.run_tasks();
                }
            }
            37..=38 => {
                if random.one_in(2) {
                    block_on(self.store.publish_checkpoint()).unwrap();
                }
            }
            _ => {
                if random.one_in(4) {
                    self.restart(random, context);
                } else if random.one_in(4) {
                    self.store.discard_checkpoint();
                }
            }
        }
    }

    /// Once nothing is in flight, every block of the file is one of the checkpoint's.
    fn nothing_leaks(&mut self, context: &str) {
        if let Some(writing) = self.writing.take() {
            block_on(writing).unwrap();
        }
        self.store.discard_checkpoint();
        // What the first frees or adopts, the second has settled.
        checkpoint(&self.store);
        checkpoint(&self.store);
        // What is in memory keeps its block until it leaves.
        let away = self.store.pager.away();
        let is_resident = |(id, _): &&(_, _)| self.store.pager.cache.word(*id).is_resident();
        let gone: Vec<_> = away.iter().filter(|away| !is_resident(away)).collect();
        assert!(gone.is_empty(), "{context}: {gone:?}");
        let published = self.store.published.lock();
        let file = &self.store.pager.file;
        let pages = file.map().iter().filter(|b| b.location != 0).count();
        let used = pages + published.record.map.len() + published.root_blocks.len() + 2;
        assert_eq!(file.used_blocks(), used + away.len(), "{context}");
    }

    fn poll(&mut self) {
        let mut cx = Context::from_waker(Waker::noop());
        if let Some(writing) = &mut self.writing {
            if let std::task::Poll::Ready(result) = writing.as_mut().poll(&mut cx) {
                result.unwrap();
                self.writing = None;
            }
        }
    }

    fn take_back(&mut self, random: &mut Random) {
        let lowest = self.model.released.max(self.store.checkpoint_lsn().0);
        if lowest > self.model.applied {
            return;
        }
        let span = (self.model.applied - lowest).min(30) as usize;
        let to = self.model.applied - random.below(span + 1) as u64;
        self.store.take_back(Lsn(to)).unwrap();
        self.model.take_back(to);
        assert_eq!(self.store.applied().0, self.model.applied);
    }

    fn restart(&mut self, random: &mut Random, context: &str) {
        self.writing = None;
        let published = self.store.checkpoint_lsn().0;
        self.env.disk.crash(random);
        self.env = self.env.restart();
        self.evictions += self.store.cache_stats().evictions;
        let pages = [4, 8, 30, 10_000][random.below(4)];
        self.store = open_with_cache(&self.env, OWNER, pages).unwrap();
        let lsn = self.store.applied().0;
        assert_eq!(lsn, published, "{context}");
        let report = check(&*self.env.disk, "g1", OWNER, &mut |_, _, _| Ok(()));
        report.unwrap_or_else(|e| panic!("{context}: {e:?}"));
        let above = self.model.applied.saturating_sub(lsn);
        let settled = lsn + random.below(above as usize + 1) as u64;
        let settled = if random.one_in(2) { settled } else { lsn };
        self.store.settle(Lsn(settled));
        for (at, record) in self.model.records.range(lsn + 1..) {
            replay(&self.store, *at, record);
            let is_old = self.store.old_versions() > 0 && *at <= settled;
            assert!(
                !is_old,
                "{context}: old versions at {at}, settled {settled}"
            );
        }
        if self.store.applied().0 < self.model.applied {
            self.store.advance(Lsn(self.model.applied)).unwrap();
        }
        // What was released at the checkpoint or above is there again, what lies below is not.
        self.model.released = self.model.released.max(settled);
        compare_all(&self.store, &self.model, context);
    }
}

#[test]
fn the_store_does_what_the_model_does() {
    let mut evictions = 0;
    for seed in 0..std::env::var("SEEDS").map_or(40, |n| n.parse().unwrap()) {
        let mut random = Random::new(seed);
        let env = TestEnv::new();
        let mut world = World {
            store: open(&env),
            env,
            model: Model::default(),
            writing: None,
            next_tree: 20_000,
            evictions: 0,
        };
        for step in 0..1_500 {
            let context = format!("seed {seed} step {step}");
            world.step(&mut random, &context);
            if step % 100 == 0 {
                compare_all(&world.store, &world.model, &context);
            }
        }
        let horizon = Lsn(world.model.applied);
        world.store.release(horizon, usize::MAX).unwrap();
        assert_eq!(world.store.old_versions(), 0, "seed {seed}");
        compare_all(&world.store, &world.model, &format!("seed {seed}"));
        evictions += world.evictions + world.store.cache_stats().evictions;
        world.nothing_leaks(&format!("seed {seed}"));
    }
    assert!(evictions > 10_000, "{evictions} pages left memory");
}

/// Readers on threads of their own see whole records only, and a total that never changes.
#[test]
#[allow(clippy::disallowed_methods)]
fn readers_beside_the_writer_see_whole_records() {
    const ACCOUNTS: u64 = 2_000;
    let store = open(&TestEnv::new());
    store.create_tree(Lsn(1), T).unwrap();
    let keys: Vec<[u8; 8]> = (0..ACCOUNTS).map(|n| (n * 7919).to_be_bytes()).collect();
    let first = 100u64.to_be_bytes();
    let rows: Vec<_> = keys.iter().map(|key| put(T, key, &first)).collect();
    store.apply(Lsn(1), &rows).unwrap();
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let readers: Vec<_> = (0..3)
        .map(|seed| {
            let (store, stop) = (store.clone(), stop.clone());
            std::thread::spawn(move || read_totals(&store, &stop, seed))
        })
        .collect();
    let mut random = Random::new(9);
    let mut balances = vec![100u64; ACCOUNTS as usize];
    for lsn in 2..12_000u64 {
        let (from, to) = (random.below(balances.len()), random.below(balances.len()));
        if from == to || balances[from] == 0 {
            store.advance(Lsn(lsn)).unwrap();
            continue;
        }
        balances[from] -= 1;
        balances[to] += 1;
        // Rows of changing length split and merge leaves.
        let mut row = [vec![0; 8], vec![0; random.below(300)]].concat();
        row[..8].copy_from_slice(&balances[from].to_be_bytes());
        let mut other = row.clone();
        other[..8].copy_from_slice(&balances[to].to_be_bytes());
        let changes = [put(T, &keys[from], &row), put(T, &keys[to], &other)];
        store.apply(Lsn(lsn), &changes).unwrap();
        if lsn % 1_000 == 0 {
            checkpoint(&store);
        }
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let totals: usize = readers.into_iter().map(|r| r.join().unwrap()).sum();
    assert!(totals > 0);
    store.check_trees(&mut |_, _, _| Ok(())).unwrap();
}

fn read_totals(store: &Store, stop: &std::sync::atomic::AtomicBool, seed: u64) -> usize {
    let mut random = Random::new(seed);
    let mut batch = RowBatch::default();
    let mut rounds = 0;
    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
        let at = store.applied();
        let direction = if random.one_in(2) {
            Direction::Forward
        } else {
            Direction::Backward
        };
        let (mut total, mut rows) = (0, 0);
        let mut rest = Some(KeyRange::all());
        while let Some(range) = rest {
            let scanned = store.scan(T, &range, direction, at, 256, &mut batch);
            for (_, row) in batch.iter() {
                total += u64::from_be_bytes(row[..8].try_into().unwrap());
                rows += 1;
            }
            rest = scanned.unwrap().rest;
        }
        assert_eq!((rows, total), (2_000, 200_000), "at {at}");
        rounds += 1;
    }
    rounds
}
