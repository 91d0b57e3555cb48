//! Old versions in memory and in the spill file: the same answers, and nothing left of them.

use std::sync::Arc;

use base::engine::{Direction, RowBatch};
use base::{GroupId, KeyRange, Lsn, TreeId};

use crate::testing::{block_on, TestEnv};
use crate::{Change, Owner, Room, Store, StoreOptions};

const T: TreeId = TreeId(20_000);

fn open(env: &Arc<TestEnv>) -> Arc<Store> {
    let options = StoreOptions {
        owner: Owner {
            cluster: 7,
            group: GroupId(1),
        },
        room: Room::of(1 << 20),
    };
    let store = block_on(Store::open(env.clone(), "g1", options)).unwrap();
    store.create_tree(Lsn(1), T).unwrap();
    store.advance(Lsn(1)).unwrap();
    store
}

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

fn row(number: u64, version: u64) -> Vec<u8> {
    format!("{number} as of {version}, {}", "x".repeat(200)).into_bytes()
}

fn put(store: &Store, lsn: u64, number: u64) {
    let (key, row) = (key(number), row(number, lsn));
    let row = Some(&row[..]);
    let tree = T;
    let change = Change {
        tree,
        key: &key,
        row,
    };
    store.apply(Lsn(lsn), &[change]).unwrap();
}

/// All rows as of an LSN.
fn rows(store: &Store, direction: Direction, at: u64) -> Vec<Vec<u8>> {
    let mut batch = RowBatch::default();
    let (mut rest, mut rows) = (Some(KeyRange::all()), Vec::new());
    while let Some(range) = rest {
        let scanned = store.scan(T, &range, direction, Lsn(at), 50, &mut batch);
        rows.extend(batch.iter().map(|(_, row)| row.to_vec()));
        rest = scanned.unwrap().rest;
    }
    rows
}

fn spilled(env: &TestEnv) -> usize {
    let files = env.disk.files();
    let file = files.iter().find(|(name, _)| name == "g1/undo.scratch");
    file.map_or(0, |(_, content)| content.len())
}

const ROWS: u64 = 500;
const ROUNDS: u64 = 40;

/// Rows that change again and again while snapshots in between are kept: the LSNs of these.
fn write(store: &Store, env: &TestEnv) -> Vec<u64> {
    let mut snapshots = Vec::new();
    for round in 0..ROUNDS {
        for number in 0..ROWS {
            put(store, 2 + round * ROWS + number, number);
        }
        snapshots.push(1 + (round + 1) * ROWS);
        env.run_tasks();
    }
    snapshots
}

#[test]
fn what_is_too_much_for_memory_is_read_from_the_spill_file() {
    let env = TestEnv::new();
    let store = open(&env);
    let snapshots = write(&store, &env);
    let stats = store.undo_stats();
    assert_eq!(stats.versions as u64, (ROUNDS - 1) * ROWS);
    assert!(stats.memory <= stats.limit + (64 << 10), "{stats:?}");
    assert!(stats.spilled > 3 << 20, "{stats:?}");
    for direction in [Direction::Forward, Direction::Backward] {
        for (round, at) in snapshots.iter().enumerate().step_by(7) {
            let mut found = rows(&store, direction, *at);
            if direction == Direction::Backward {
                found.reverse();
            }
            let lsn = |number| 2 + round as u64 * ROWS + number;
            let expected: Vec<_> = (0..ROWS).map(|n| row(n, lsn(n))).collect();
            assert!(found == expected, "rows as of {at}");
        }
    }
    assert!(store.undo_stats().memory <= stats.limit + (64 << 10));
}

#[test]
fn nothing_is_left_once_nobody_needs_it() {
    let env = TestEnv::new();
    let store = open(&env);
    let snapshots = write(&store, &env);
    assert!(spilled(&env) > 3 << 20);
    // Some chunks of what is to be released are in the spill file: nobody waits for them.
    let mut put_off = 0;
    let middle = Lsn(snapshots[10]);
    while store.unreleased() as u64 > ROUNDS * ROWS - middle.0 + 1 {
        put_off += 1;
        assert!(put_off < 10_000, "{} are left", store.unreleased());
        store.release_in_memory(middle, 100).unwrap();
        env.run_tasks();
    }
    let left = (ROUNDS - 1) * ROWS - (middle.0 - 1 - ROWS);
    assert_eq!(store.old_versions() as u64, left);
    assert_eq!(
        rows(&store, Direction::Forward, middle.0)[3],
        row(3, middle.0 - ROWS + 4)
    );
    assert!(store.release(Lsn(ROUNDS * ROWS + 1), usize::MAX).unwrap());
    env.run_tasks();
    let stats = store.undo_stats();
    assert_eq!((stats.versions, stats.spilled), (0, 0), "{stats:?}");
    assert!(stats.memory <= 64 << 10, "{stats:?}");
    assert_eq!((store.unreleased(), spilled(&env)), (0, 0));
}

#[test]
fn what_was_spilled_is_taken_back() {
    let env = TestEnv::new();
    let store = open(&env);
    let snapshots = write(&store, &env);
    store.take_back(Lsn(snapshots[0])).unwrap();
    env.run_tasks();
    let expected: Vec<_> = (0..ROWS).map(|n| row(n, 2 + n)).collect();
    assert!(rows(&store, Direction::Forward, u64::MAX) == expected);
    assert_eq!(store.old_versions(), 0);
    assert_eq!(store.unreleased() as u64, ROWS + 1);
    assert!(store.release(Lsn(snapshots[0]), usize::MAX).unwrap());
    env.run_tasks();
    let stats = store.undo_stats();
    assert_eq!(
        (stats.versions, stats.spilled, spilled(&env)),
        (0, 0, 0),
        "{stats:?}"
    );
    put(&store, snapshots[0] + 1, 0);
    assert_eq!(store.old_versions(), 1);
}

/// A row that changes often while a snapshot is old has the one version which that needs, and
/// those that may be taken back.
#[test]
fn versions_between_snapshots_go() {
    let env = TestEnv::new();
    let store = open(&env);
    (0..10).for_each(|number| put(&store, 2 + number, number));
    let (old, lag) = (11, 20);
    for lsn in 12..20_000 {
        let snapshots = if lsn < 10_000 {
            vec![old]
        } else {
            vec![old, 9_999]
        };
        store.set_needed(
            snapshots.into_iter().map(Lsn),
            Lsn(lsn - 1).min(Lsn(lsn - lag.min(lsn))),
        );
        put(&store, lsn, lsn % 10);
    }
    let versions = store.old_versions();
    assert!(versions <= 20 + lag as usize + 10, "{versions} versions");
    for at in [old, 9_999, 19_999] {
        let number = |lsn: u64| if lsn < 12 { lsn - 2 } else { lsn % 10 };
        let newest = |n: u64| (2..=at).rev().find(|lsn| number(*lsn) == n).unwrap();
        let expected: Vec<_> = (0..10).map(|n| row(n, newest(n))).collect();
        assert!(
            rows(&store, Direction::Forward, at) == expected,
            "as of {at}"
        );
    }
    store.take_back(Lsn(19_990)).unwrap();
    assert_eq!(rows(&store, Direction::Forward, 19_990)[0], row(0, 19_990));
    assert!(store.release(Lsn(19_990), usize::MAX).unwrap());
    assert_eq!((store.old_versions(), store.unreleased()), (0, 0));
}

#[test]
fn a_damaged_spill_file_is_no_answer() {
    let env = TestEnv::new();
    let store = open(&env);
    let snapshots = write(&store, &env);
    for offset in (0..spilled(&env)).step_by(1_000) {
        env.disk.damage("g1/undo.scratch", offset);
    }
    let mut batch = RowBatch::default();
    let (all, at) = (KeyRange::all(), Lsn(snapshots[0]));
    let forward = Direction::Forward;
    let error = store
        .scan(T, &all, forward, at, 50, &mut batch)
        .unwrap_err();
    assert_eq!(error.state(), base::SqlState::DATA_CORRUPTED);
}
