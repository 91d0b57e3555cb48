//! The write set against a model: every state of every command and savepoint, kept whole.

use base::row::{Row, RowBuilder};

use super::*;

const TREE: TreeId = TreeId(16_384);
const INDEX: TreeId = TreeId(16_385);
const DROPPED: TreeId = TreeId(16_386);

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }
}

type Rows = BTreeMap<Key, Vec<u8>>;

fn row(value: u64) -> Vec<u8> {
    RowBuilder::new(2)
        .value(b"same")
        .value(&value.to_be_bytes())
        .finish()
}

/// What a range of the store returns: rows as of the base, a few at a time.
fn stored(
    base: &Rows,
    range: &KeyRange,
    direction: Direction,
    limit: usize,
) -> (RowBatch, Option<KeyRange>) {
    let mut found: Vec<_> = base.iter().filter(|(key, _)| range.contains(key)).collect();
    if direction == Direction::Backward {
        found.reverse();
    }
    let mut batch = RowBatch::default();
    found
        .iter()
        .take(limit)
        .for_each(|(key, row)| batch.push(key, row));
    let rest = (found.len() > limit).then(|| rest_of(range, direction, found[limit].0));
    (batch, rest)
}

#[test]
fn statements_and_savepoints_see_what_they_should() {
    for seed in 1..400u64 {
        let random = &mut Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        run(random, WriteSet::default(), seed % 2 == 0);
    }
}

fn scratch() -> Arc<Scratch> {
    use base::env::Env;
    let host = crate::testing::World::new(1).start(base::NodeId(1));
    Scratch::open(&host.disk(), "writes").unwrap()
}

#[test]
fn they_see_the_same_where_little_fits_memory() {
    let scratch = scratch();
    for seed in 1..400u64 {
        let random = &mut Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let most = 300 + random.below(4_000);
        run(
            random,
            WriteSet::with_scratch(Some((scratch.clone(), most))),
            seed % 2 == 0,
        );
        assert_eq!(scratch.used(), 0, "seed {seed}");
    }
}

#[test]
fn a_large_write_set_takes_little_memory() {
    const ROWS: u64 = 60_000;
    let scratch = scratch();
    let mut set = WriteSet::with_scratch(Some((scratch.clone(), 100_000)));
    // In an order of their own.
    let keys = (0..ROWS).map(|n| (n.wrapping_mul(7_919) % ROWS).to_be_bytes());
    set.mark();
    for (n, key) in keys.enumerate() {
        assert!(set.newest(TREE, &key).unwrap().is_none());
        set.put(TREE, &key, None, Some(&row(n as u64)), CommandId(1))
            .unwrap();
        set.put_entry(INDEX, &key, true, CommandId(1)).unwrap();
        assert!(set.memory() < 101_000, "{} bytes", set.memory());
    }
    assert!(scratch.used() > 1_000_000, "{} bytes", scratch.used());
    set.mark();
    let late = row(7);
    for key in (0..ROWS).step_by(3).map(u64::to_be_bytes) {
        let there = set.newest(TREE, &key).unwrap().expect("it is there");
        assert!(there.row.is_some());
        set.put(TREE, &key, None, Some(&late), CommandId(2))
            .unwrap();
    }
    set.rollback_to(2);
    let found = set.visible(TREE, &0u64.to_be_bytes(), CommandId(9));
    assert_eq!(found.unwrap().unwrap().row.as_deref(), Some(&row(0)[..]));
    let Changes::Stream(changes) = set.collapse(|_| false).unwrap() else {
        panic!("it is in memory")
    };
    let mut next = 0u64;
    for change in changes {
        let RowChange { tree, key, change } = change.unwrap();
        assert_eq!((tree, &key[..]), (TREE, &next.to_be_bytes()[..]));
        assert!(matches!(change, Change::Insert(_)));
        next += 1;
    }
    assert_eq!(next, ROWS);
    assert_eq!(scratch.used(), 0);
    // A rollback of everything is at once.
    let mut set = WriteSet::with_scratch(Some((scratch.clone(), 100_000)));
    set.mark();
    for key in (0..ROWS).map(u64::to_be_bytes) {
        set.put(TREE, &key, None, Some(&late), CommandId(1))
            .unwrap();
    }
    set.rollback_to(1);
    assert_eq!(scratch.used(), 0);
    assert!(set.newest(TREE, &7u64.to_be_bytes()).unwrap().is_none());
}

#[test]
fn keys_that_grow_make_one_run_and_no_map() {
    const ROWS: u64 = 20_000;
    let scratch = scratch();
    let mut set = WriteSet::with_scratch(Some((scratch.clone(), 100_000)));
    let put = |set: &mut WriteSet, key: u64, value: u64, command| {
        let key = key.to_be_bytes();
        set.put(TREE, &key, None, Some(&row(value)), CommandId(command))
            .unwrap();
        set.put_entry(INDEX, &key, true, CommandId(command))
            .unwrap();
    };
    set.mark();
    (0..ROWS / 2).for_each(|key| put(&mut set, key, key, 1));
    set.mark();
    (ROWS / 2..ROWS).for_each(|key| put(&mut set, key, key, 2));
    assert!(set.log.is_empty());
    for tree in [TREE, INDEX] {
        assert!(set.trees[&tree].stacks.is_empty());
        assert_eq!(set.trees[&tree].runs.count(), 1);
    }
    // What is cut off is written again, behind a run that was cut.
    set.rollback_to(2);
    let last = (ROWS / 2 - 1).to_be_bytes();
    assert!(set.newest(TREE, &last).unwrap().is_some());
    let cut = (ROWS / 2).to_be_bytes();
    assert!(set.newest(TREE, &cut).unwrap().is_none());
    (ROWS / 2..2 * ROWS).for_each(|key| put(&mut set, key, key + 1, 3));
    let rows: Vec<_> = set.collapse(|_| false).unwrap().all().unwrap();
    assert_eq!(rows.len() as u64, 2 * ROWS);
    for (key, change) in (0..).zip(rows) {
        let value = if key < ROWS / 2 { key } else { key + 1 };
        let wanted = (key.to_be_bytes().to_vec(), Change::Insert(row(value)));
        assert_eq!((change.key, change.change), wanted);
    }
    assert_eq!(scratch.used(), 0);
}

#[test]
fn what_a_full_disk_has_lost_is_not_committed() {
    use base::env::Env;
    let mut world = crate::testing::World::new(1);
    let host = world.start(base::NodeId(1));
    let scratch = Scratch::open(&host.disk(), "writes").unwrap();
    let mut set = WriteSet::with_scratch(Some((scratch, 10_000)));
    let put = |set: &mut WriteSet, n: u64| {
        let key = n.to_be_bytes();
        set.put(TREE, &key, None, Some(&row(n)), CommandId(1))
    };
    (0..20).for_each(|n| put(&mut set, n).unwrap());
    set.mark();
    world.fill_disk(base::NodeId(1), true);
    let full = (20..20_000).find_map(|n| put(&mut set, n).err());
    assert_eq!(full.expect("it is full").state(), SqlState::DISK_FULL);
    world.fill_disk(base::NodeId(1), false);
    set.rollback_to(1);
    let read = set.newest(TREE, &7u64.to_be_bytes());
    assert_eq!(read.unwrap_err().state(), SqlState::DISK_FULL);
    assert!(set.touches(TREE) && !set.is_empty());
    let commit = set.collapse(|_| false);
    assert_eq!(commit.unwrap_err().state(), SqlState::DISK_FULL);
}

/// With keys that grow, mostly: some are behind all others, others were written before.
fn run(random: &mut Random, mut set: WriteSet, grow: bool) {
    let count = if grow { 80 } else { 24u8 };
    let keys: Vec<Key> = (0..count).map(|n| vec![b'a' + n / 5, n]).collect();
    let mut grown = 0;
    let base: Rows = keys
        .iter()
        .filter(|_| random.below(if grow { 8 } else { 2 }) == 0)
        .map(|key| (key.clone(), row(0)))
        .collect();
    // `now` is the state after all writes, `before` what the current command sees.
    let (mut now, mut before) = (base.clone(), base.clone());
    let mut command = CommandId(1);
    let mut savepoints: Vec<Rows> = Vec::new();
    for step in 1..120 {
        match random.below(12) {
            0 | 1 => {
                command.0 += 1;
                before = now.clone();
            }
            2 => {
                assert_eq!(set.mark(), savepoints.len() + 1);
                savepoints.push(now.clone());
            }
            3 if !savepoints.is_empty() => {
                let number = 1 + random.below(savepoints.len());
                set.rollback_to(number);
                savepoints.truncate(number);
                now = savepoints[number - 1].clone();
                command.0 += 1;
                before = now.clone();
            }
            4 if !savepoints.is_empty() => {
                let number = 1 + random.below(savepoints.len());
                set.release(number);
                savepoints.truncate(number - 1);
            }
            _ => {
                let key = match grow {
                    true if random.below(3) > 0 && grown + 1 < keys.len() => grown + 1,
                    true => random.below(grown + 1),
                    false => random.below(keys.len()),
                };
                grown = grown.max(key);
                let key = &keys[key];
                let new = (random.below(3) > 0).then(|| row(step));
                let old = base.get(key).map(Vec::as_slice);
                set.put(TREE, key, old, new.as_deref(), command).unwrap();
                match new {
                    Some(new) => now.insert(key.clone(), new),
                    None => now.remove(key),
                };
            }
        }
        assert_eq!(set.bytes, counted(&set));
        let tails = set.trees.values().map(|written| written.tail.memory());
        assert_eq!(set.packed, tails.sum::<usize>());
        check(&set, &base, &before, command, random, &keys);
        check(&set, &base, &now, CommandId(u32::MAX), random, &keys);
    }
    assert_eq!(commit(set, &base), now);
}

/// The bytes that a write set holds, counted one by one.
fn counted(set: &WriteSet) -> usize {
    let stacks = set.trees.values().flat_map(|tree| &tree.stacks);
    let stacks = stacks.map(|(key, stack)| {
        let versions = stack.older.iter().chain([&stack.newest]);
        let base = stack.base.as_ref().map_or(0, Vec::len);
        key.len() + base + versions.map(Version::bytes).sum::<usize>()
    });
    let logged: usize = set.log.iter().map(|(_, key)| key.len()).sum();
    stacks.sum::<usize>() + logged
}

fn check(
    set: &WriteSet,
    base: &Rows,
    expected: &Rows,
    command: CommandId,
    random: &mut Random,
    keys: &[Key],
) {
    for key in keys {
        let own = set.visible(TREE, key, command).unwrap();
        let row = match &own {
            Some(own) => own.row.as_deref(),
            None => base.get(key).map(Vec::as_slice),
        };
        assert_eq!(row, expected.get(key).map(Vec::as_slice), "{key:?}");
    }
    let (low, high) = (random.below(keys.len()), random.below(keys.len()));
    let range = KeyRange {
        start: keys[low].clone(),
        end: (high > 0).then(|| keys[high].clone()),
    };
    let direction = [Direction::Forward, Direction::Backward][random.below(2)];
    let mut wanted: Vec<_> = expected
        .iter()
        .filter(|(key, _)| range.contains(key))
        .map(|(key, row)| (key.clone(), row.clone()))
        .collect();
    if direction == Direction::Backward {
        wanted.reverse();
    }
    let (limit, few) = (1 + random.below(9), 1 + random.below(9));
    let mut found = Vec::new();
    let mut rest = Some(range);
    while let Some(range) = rest {
        let (batch, store_rest) = stored(base, &range, direction, few);
        let covered = covered(&range, direction, store_rest.as_ref());
        let mut out = RowBatch::default();
        let within = (&covered, direction, command);
        let stop = set
            .merge_into(TREE, within, &batch, limit, few, &mut out)
            .unwrap();
        assert!(out.len() <= limit);
        rest = match stop {
            Some(key) => Some(rest_of(&range, direction, &key)),
            None => store_rest,
        };
        found.extend(out.iter().map(|(key, row)| (key.to_vec(), row.to_vec())));
    }
    assert_eq!(found, wanted);
}

/// Applies the collapsed changes to the base.
fn commit(set: WriteSet, base: &Rows) -> Rows {
    let mut rows = base.clone();
    for RowChange { key, change, .. } in set.collapse(|_| false).unwrap().all().unwrap() {
        let old = rows.remove(&key);
        match (change, old) {
            (Change::Insert(row), None) => drop(rows.insert(key, row)),
            (Change::Update(delta), Some(old)) => {
                drop(rows.insert(key, delta.apply(&old).unwrap()));
            }
            (Change::Delete, Some(_)) => {}
            (change, old) => panic!("{change:?} of {old:?}"),
        }
    }
    rows
}

#[test]
fn a_row_collapses_to_one_change() {
    let (old, new) = (row(1), row(2));
    let mut set = WriteSet::default();
    let mut command = CommandId(1);
    let mut put = |key: &str, base: Option<&[u8]>, row: Option<&[u8]>| {
        command.0 += 1;
        set.put(TREE, key.as_bytes(), base, row, command).unwrap();
    };
    put("insert, delete", None, Some(&old));
    put("insert, delete", None, None);
    put("insert, update", None, Some(&old));
    put("insert, update", None, Some(&new));
    put("delete, insert", Some(&old), None);
    put("delete, insert", Some(&old), Some(&new));
    put("update, delete", Some(&old), Some(&new));
    put("update, delete", Some(&old), None);
    put("update", Some(&old), Some(&new));
    set.put_entry(INDEX, b"derived", true, command).unwrap();
    set.put(DROPPED, b"lost", None, Some(&old), command)
        .unwrap();
    let changes: Vec<_> = set
        .collapse(|tree| tree == DROPPED)
        .unwrap()
        .all()
        .unwrap()
        .into_iter()
        .map(|change| (String::from_utf8(change.key).unwrap(), change.change))
        .collect();
    let delta = RowDelta::between(&old, &new).unwrap();
    assert!(delta.as_bytes().len() < Row::parse(&new).unwrap().column(1).unwrap().len() + 4);
    let expected = [
        ("delete, insert", Change::Update(delta.clone())),
        ("insert, update", Change::Insert(new)),
        ("update", Change::Update(delta)),
        ("update, delete", Change::Delete),
    ];
    assert_eq!(
        changes,
        expected.map(|(key, change)| (key.to_string(), change))
    );
}

#[test]
fn stacks_stay_small() {
    let mut set = WriteSet::default();
    for command in 1..1_000 {
        let new = row(u64::from(command));
        set.put(TREE, b"hot", None, Some(&new), CommandId(command))
            .unwrap();
        set.put(TREE, b"hot", None, Some(&new), CommandId(command))
            .unwrap();
        assert!(set.trees[&TREE].stack(b"hot").unwrap().older.len() <= 1);
    }
    assert!(set.log.is_empty());
}

#[test]
fn many_changes_are_collapsed_in_turns() {
    use std::future::Future;
    use std::task::{Context, Poll, Waker};
    const ROWS: u64 = 3 * ROWS_PER_YIELD as u64;
    let collapse = || {
        let mut set = WriteSet::default();
        for key in (0..ROWS).map(u64::to_be_bytes) {
            set.put(TREE, &key, None, Some(&row(1)), CommandId(1))
                .unwrap();
        }
        set.collapse(|_| false)
    };
    let interrupts = std::sync::Arc::new(coro::Interrupts::default());
    let mut cx = Context::from_waker(Waker::noop());
    let mut run = std::pin::pin!(coro::run(interrupts.clone(), collapse));
    let mut turns = 0;
    let changes = loop {
        match run.as_mut().poll(&mut cx) {
            Poll::Ready(changes) => break changes.unwrap(),
            Poll::Pending => turns += 1,
        }
    };
    assert_eq!(turns, 3);
    assert_eq!(changes.all().unwrap().len() as u64, ROWS);
    interrupts.raise(coro::Interrupt::Cancel);
    let mut run = std::pin::pin!(coro::run(interrupts, collapse));
    let Poll::Ready(Err(error)) = run.as_mut().poll(&mut cx) else {
        panic!("it goes on");
    };
    assert_eq!(error.state(), SqlState::QUERY_CANCELED);
}

/// How often a statement gives way.
fn turns(statement: impl FnOnce() + 'static) -> usize {
    use std::future::Future;
    use std::task::{Context, Poll, Waker};
    let mut run = coro::run(Arc::default(), statement);
    let mut cx = Context::from_waker(Waker::noop());
    let mut turns = 0;
    while std::pin::Pin::new(&mut run).poll(&mut cx) == Poll::Pending {
        turns += 1;
    }
    turns
}

/// So many rows in a map, which would take two turns to drop.
const MANY: u64 = (2 * base::limits::WORK_PER_TURN / DROP_WORK) as u64;

fn write_many(writes: &mut WriteSet) {
    for number in (0..MANY).rev() {
        let key = number.to_be_bytes();
        writes
            .put(TREE, &key, Some(b"old"), None, CommandId(1))
            .unwrap();
    }
}

#[test]
fn what_was_written_is_dropped_and_taken_back_in_turns() {
    let written = |end: fn(WriteSet)| {
        let mut writes = WriteSet::default();
        writes.mark();
        write_many(&mut writes);
        turns(move || end(writes))
    };
    // The map, and the log.
    assert_eq!(written(drop), 4);
    let taken_back = written(|mut writes| {
        writes.rollback_to(1);
        assert!(writes.is_empty());
        assert_eq!(writes.memory(), 0);
    });
    assert!(taken_back >= 4, "{taken_back} turns");
    let released = written(|mut writes| {
        writes.release(1);
        std::mem::forget(writes);
    });
    assert_eq!(released, 2);
}

#[test]
fn entries_of_indexes_that_are_not_logged_are_dropped_in_turns() {
    let mut writes = WriteSet::default();
    for number in (0..MANY).rev() {
        let key = number.to_be_bytes();
        writes.put_entry(INDEX, &key, true, CommandId(1)).unwrap();
    }
    let turns = turns(move || {
        let changes = writes.collapse(|_| false).unwrap();
        assert!(changes.all().unwrap().is_empty());
    });
    assert_eq!(turns, 2);
}
