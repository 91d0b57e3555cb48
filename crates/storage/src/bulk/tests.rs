//! Bulk transactions against a model: a list of records, from which each state is made anew.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::engine::{Direction, RowBatch};
use base::{GroupId, KeyRange, Lsn, TreeId, TxnId};

use crate::testing::{block_on, Random, TestEnv};
use crate::{Change, Owner, Room, Store, StoreOptions};

const OWNER: Owner = Owner {
    cluster: 7,
    group: GroupId(1),
};
const T: TreeId = TreeId(20_000);

fn open(env: &Arc<TestEnv>) -> Arc<Store> {
    let options = StoreOptions {
        owner: OWNER,
        room: Room::of(8 * 8_192),
    };
    block_on(Store::open(env.clone(), "g1", options)).unwrap()
}

fn put<'a>(key: &'a [u8], row: &'a [u8]) -> Change<'a> {
    let (tree, row) = (T, Some(row));
    Change { tree, key, row }
}

fn chunk(store: &Store, lsn: u64, txn: u64, changes: &[Change<'_>]) {
    store.apply_chunk(Lsn(lsn), TxnId(txn), changes).unwrap();
    store.advance(Lsn(lsn)).unwrap();
}

fn decide(store: &Store, lsn: u64, txn: u64, committed: bool) {
    store.decide(Lsn(lsn), TxnId(txn), committed).unwrap();
    store.advance(Lsn(lsn)).unwrap();
}

#[test]
fn chunks_are_shown_from_the_decision_on_and_owe_it() {
    let store = open(&TestEnv::new());
    store.create_tree(Lsn(1), T).unwrap();
    store
        .apply(Lsn(1), &[put(b"a", b"1"), put(b"c", b"1")])
        .unwrap();
    chunk(&store, 2, 7, &[put(b"a", b"2")]);
    store.apply(Lsn(3), &[put(b"c", b"3")]).unwrap();
    chunk(&store, 4, 7, &[put(b"b", b"4")]);
    let mut row = Vec::new();
    let mut get = |key: &[u8], at: u64| {
        let read = store.get(T, key, Lsn(at), &mut row).unwrap();
        (
            read.exists,
            row.first().copied().unwrap_or(0),
            read.version.0,
            read.owes.0,
        )
    };
    assert_eq!(get(b"a", 4), (true, b'1', 1, 1));
    assert_eq!(get(b"b", u64::MAX), (false, 0, 0, 4));
    assert!(store.has_undecided());
    assert!(store.knows_bulk(TxnId(7)));
    decide(&store, 5, 7, true);
    store.apply(Lsn(6), &[put(b"d", b"6")]).unwrap();
    assert!(!store.has_undecided());
    assert_eq!(get(b"a", 4), (true, b'1', 1, 1));
    assert_eq!(get(b"a", 5), (true, b'2', 5, 5));
    assert_eq!(get(b"b", 5), (true, b'4', 5, 5));
    assert_eq!(get(b"c", 5), (true, b'3', 3, 3));
    // An absence in a leaf that was changed since owes the decision too.
    assert_eq!(get(b"e", 5), (false, 0, 0, 5));
    assert_eq!(get(b"e", 6), (false, 0, 0, 6));
    // Nothing is forgotten while a level has not come so far.
    assert!(store.release(Lsn(6), usize::MAX).unwrap());
    assert!(store.clean(Lsn(6), Lsn(4), usize::MAX).unwrap());
    assert_eq!(get(b"a", 6), (true, b'2', 5, 5));
    assert_eq!(store.old_versions(), 0);
    assert!(store.clean(Lsn(6), Lsn(5), usize::MAX).unwrap());
    assert_eq!((store.known_bulks(), store.unreleased()), (0, 0));
    assert_eq!(get(b"a", 6), (true, b'2', 2, 2));
}

#[test]
fn an_aborted_one_leaves_nothing() {
    let store = open(&TestEnv::new());
    store.create_tree(Lsn(1), T).unwrap();
    let long = vec![7; 9_000];
    store.apply(Lsn(1), &[put(b"a", &long)]).unwrap();
    let made = TreeId(20_001);
    store.create_tree_in_chunk(Lsn(2), TxnId(7), made).unwrap();
    let rows = [
        put(b"a", b"2"),
        put(b"b", &long),
        Change {
            tree: made,
            key: b"x",
            row: Some(b"y"),
        },
    ];
    chunk(&store, 2, 7, &rows);
    decide(&store, 3, 7, false);
    // A row is changed again before it was cleaned, and that is taken back.
    store.apply(Lsn(4), &[put(b"b", b"4")]).unwrap();
    store.take_back(Lsn(3)).unwrap();
    let mut row = Vec::new();
    assert!(store.get(T, b"a", Lsn(3), &mut row).unwrap().exists);
    assert_eq!(row, long);
    assert!(!store.get(T, b"b", Lsn(3), &mut row).unwrap().exists);
    assert!(!store.get(made, b"x", Lsn::MAX, &mut row).unwrap().exists);
    assert!(store.clean(Lsn(2), Lsn(2), usize::MAX).unwrap());
    assert!(store.has_undecided());
    while !store.clean(Lsn(3), Lsn(3), 1).unwrap() {}
    assert!(!store.has_undecided() && !store.has_tree(made));
    while !store.release(Lsn(3), 1).unwrap() {}
    assert_eq!((store.known_bulks(), store.unreleased()), (0, 0));
    assert_eq!(store.old_versions(), 0);
    store.check_trees(&mut |_, _, _| Ok(())).unwrap();
    store.start_checkpoint(Vec::new()).unwrap();
}

#[test]
fn what_has_ended_takes_no_chunk() {
    let store = open(&TestEnv::new());
    store.create_tree(Lsn(1), T).unwrap();
    store.advance(Lsn(1)).unwrap();
    chunk(&store, 2, 7, &[put(b"a", b"2")]);
    assert!(store.start_checkpoint(Vec::new()).is_err());
    decide(&store, 3, 7, false);
    let late = store.apply_chunk(Lsn(4), TxnId(7), &[put(b"b", b"4")]);
    assert!(late.is_err());
    assert!(store.decide(Lsn(4), TxnId(7), true).is_err());
    assert!(store.decide(Lsn(4), TxnId(8), true).is_err());
}

type Rows = BTreeMap<u8, Option<Vec<u8>>>;

#[derive(Clone, Debug)]
enum Record {
    Small(Rows),
    Chunk(u64, Rows),
    Decision(u64, bool),
}

fn changes<'a>(rows: &'a Rows, keys: &'a [u8]) -> Vec<Change<'a>> {
    let key = |key: &u8| &keys[usize::from(*key)..usize::from(*key) + 1];
    rows.iter()
        .map(|(at, row)| Change {
            tree: T,
            key: key(at),
            row: row.as_deref(),
        })
        .collect()
}

struct World {
    random: Random,
    store: Arc<Store>,
    records: Vec<Record>,
    /// Rows that each open transaction has locked.
    locked: BTreeMap<u64, BTreeSet<u8>>,
    /// Rows of aborted transactions that somebody might still commit.
    unsure: BTreeMap<u64, BTreeSet<u8>>,
    committed: u64,
    released: u64,
    next_txn: u64,
}

const KEYS: usize = 40;

impl World {
    fn decision(&self, txn: u64) -> Option<(u64, bool)> {
        let found = self.records.iter().enumerate().find_map(|(at, r)| match r {
            Record::Decision(decided, committed) if *decided == txn => Some((at, *committed)),
            _ => None,
        });
        found.map(|(at, committed)| (at as u64 + 2, committed))
    }

    /// The rows at an LSN.
    fn state(&self, at: u64) -> BTreeMap<u8, Vec<u8>> {
        let mut shown: Vec<(u64, usize, &Rows)> = Vec::new();
        for (place, record) in self.records.iter().enumerate() {
            let lsn = place as u64 + 2;
            match record {
                Record::Small(rows) => shown.push((lsn, place, rows)),
                Record::Chunk(txn, rows) => {
                    if let Some((decided, true)) = self.decision(*txn) {
                        shown.push((decided, place, rows));
                    }
                }
                Record::Decision(..) => {}
            }
        }
        shown.sort_by_key(|(lsn, place, _)| (*lsn, *place));
        let mut state = BTreeMap::new();
        for (_, _, rows) in shown.iter().filter(|(lsn, ..)| *lsn <= at) {
            for (key, row) in *rows {
                match row {
                    Some(row) => drop(state.insert(*key, row.clone())),
                    None => drop(state.remove(key)),
                }
            }
        }
        state
    }

    /// What was done, for a message.
    fn course(&self) -> String {
        let records = self.records.iter().zip(2..);
        let lines = records.map(|(record, lsn)| match record {
            Record::Small(rows) => format!("{lsn}: {:?}", rows.keys()),
            Record::Chunk(txn, rows) => format!("{lsn}: {txn} {:?}", rows.keys()),
            Record::Decision(txn, committed) => format!("{lsn}: {txn} is committed: {committed}"),
        });
        lines.collect::<Vec<_>>().join("; ")
    }

    fn last(&self) -> u64 {
        self.records.len() as u64 + 1
    }

    fn rows(&mut self, mine: Option<u64>) -> Rows {
        let now = self.state(u64::MAX);
        let mut rows = Rows::new();
        for _ in 0..1 + self.random.below(6) {
            let key = self.random.below(KEYS) as u8;
            let is_in = |rows: &BTreeSet<u8>| rows.contains(&key);
            let own = mine.is_some_and(|txn| self.locked.get(&txn).is_some_and(is_in));
            let others = self.locked.iter().filter(|(txn, _)| Some(**txn) != mine);
            let taken = others.map(|(_, rows)| rows).chain(self.unsure.values());
            if taken.into_iter().any(is_in) {
                continue;
            }
            let deletes = !own && now.contains_key(&key) && self.random.one_in(3);
            let len = if self.random.one_in(20) { 9_000 } else { 30 };
            rows.insert(key, (!deletes).then(|| vec![self.random.next() as u8; len]));
        }
        if let Some(txn) = mine {
            self.locked.entry(txn).or_default().extend(rows.keys());
        }
        rows
    }

    fn apply(&mut self, record: Record) {
        let lsn = Lsn(self.last() + 1);
        let keys: Vec<u8> = (0..KEYS as u8).collect();
        let store = &self.store;
        match &record {
            Record::Small(rows) => store.apply(lsn, &changes(rows, &keys)).unwrap(),
            Record::Chunk(txn, rows) => {
                store
                    .apply_chunk(lsn, TxnId(*txn), &changes(rows, &keys))
                    .unwrap();
                store.advance(lsn).unwrap();
            }
            Record::Decision(txn, committed) => {
                store.decide(lsn, TxnId(*txn), *committed).unwrap();
                store.advance(lsn).unwrap();
            }
        }
        self.records.push(record);
    }

    fn step(&mut self) {
        let open: Vec<u64> = self.locked.keys().copied().collect();
        match self.random.below(20) {
            0..=6 => {
                let rows = self.rows(None);
                self.apply(Record::Small(rows));
            }
            7..=11 => {
                let txn = match open.is_empty() || self.random.one_in(4) {
                    true => {
                        self.next_txn += 1;
                        self.next_txn
                    }
                    false => open[self.random.below(open.len())],
                };
                let rows = self.rows(Some(txn));
                self.apply(Record::Chunk(txn, rows));
            }
            12..=13 if !open.is_empty() => {
                let txn = open[self.random.below(open.len())];
                let committed = self.random.one_in(2);
                let rows = self.locked.remove(&txn).unwrap();
                if !committed {
                    self.unsure.insert(txn, rows);
                }
                self.apply(Record::Decision(txn, committed));
            }
            14 => self.take_back(),
            15 | 16 => {
                self.committed += self
                    .random
                    .below((self.last() - self.committed) as usize + 1)
                    as u64;
                let (unsure, committed) = (std::mem::take(&mut self.unsure), self.committed);
                self.unsure = unsure
                    .into_iter()
                    .filter(|(txn, _)| self.decision(*txn).is_none_or(|at| at.0 > committed))
                    .collect();
            }
            17 => {
                self.released = self.committed;
                let limit = 1 + self.random.below(10);
                self.store.release(Lsn(self.released), limit).unwrap();
            }
            _ => {
                let committed = Lsn(self.committed);
                let limit = 1 + self.random.below(10);
                self.store.clean(committed, committed, limit).unwrap();
            }
        }
    }

    fn take_back(&mut self) {
        let to = self.committed
            + self
                .random
                .below((self.last() - self.committed) as usize + 1) as u64;
        self.store.take_back(Lsn(to)).unwrap();
        let gone = self.records.split_off(to as usize - 1);
        for record in &gone {
            if let Record::Decision(txn, _) = record {
                self.unsure.remove(txn);
            }
        }
        self.locked.clear();
        for record in &self.records {
            match record {
                Record::Chunk(txn, rows) => {
                    let locked = self.locked.entry(*txn).or_default();
                    locked.extend(rows.keys());
                }
                Record::Decision(txn, _) => drop(self.locked.remove(txn)),
                Record::Small(_) => {}
            }
        }
    }

    fn check(&self) {
        let oldest = self.released.max(1);
        for at in oldest..=self.last() {
            let at = if at == self.last() { u64::MAX } else { at };
            let mut found = BTreeMap::new();
            let mut rest = Some(KeyRange::all());
            let mut batch = RowBatch::default();
            while let Some(range) = rest {
                let scan = self
                    .store
                    .scan(T, &range, Direction::Forward, Lsn(at), 7, &mut batch);
                rest = scan.unwrap().rest;
                found.extend(batch.iter().map(|(key, row)| (key[0], row.to_vec())));
            }
            let expected = self.state(at);
            let differ = |key: &u8| found.get(key) != expected.get(key);
            let differing: Vec<u8> = (0..KEYS as u8).filter(differ).collect();
            assert_eq!(
                differing,
                [0; 0],
                "at {at} of {}: {}",
                self.last(),
                self.course()
            );
        }
        let mut rows = BTreeMap::new();
        self.store
            .check_trees(&mut |_, key, row| {
                rows.insert(key[0], row.to_vec());
                Ok(())
            })
            .unwrap();
        assert_eq!(rows, self.state(u64::MAX));
    }
}

#[test]
fn random_courses_agree_with_the_model() {
    for seed in 1..=60 {
        let store = open(&TestEnv::new());
        store.create_tree(Lsn(1), T).unwrap();
        store.advance(Lsn(1)).unwrap();
        let mut world = World {
            random: Random::new(seed),
            store,
            records: Vec::new(),
            locked: BTreeMap::new(),
            unsure: BTreeMap::new(),
            committed: 1,
            released: 0,
            next_txn: 0,
        };
        for step in 0..250 {
            world.step();
            if step % 5 == 0 {
                world.check();
            }
        }
        // Everybody who is open is aborted, and nothing is left of anything.
        for txn in world.locked.clone().into_keys() {
            world.apply(Record::Decision(txn, false));
        }
        let last = Lsn(world.last());
        while !world.store.clean(last, last, 5).unwrap() {}
        while !world.store.release(last, 5).unwrap() {}
        while !world.store.clean(last, last, 5).unwrap() {}
        world.released = last.0;
        world.check();
        let store = &world.store;
        let left = (
            store.known_bulks(),
            store.unreleased(),
            store.old_versions(),
        );
        assert_eq!(left, (0, 0, 0), "seed {seed}");
        store.start_checkpoint(Vec::new()).unwrap();
    }
}

#[test]
fn a_tree_that_was_made_in_vain_is_made_again() {
    let store = open(&TestEnv::new());
    let made = TreeId(20_001);
    let row = |key: &'static [u8], row: &'static [u8]| Change {
        tree: made,
        key,
        row: Some(row),
    };
    store.create_tree_in_chunk(Lsn(1), TxnId(7), made).unwrap();
    chunk(&store, 1, 7, &[row(b"x", b"1"), row(b"y", b"1")]);
    chunk(&store, 2, 7, &[row(b"x", b"2")]);
    decide(&store, 3, 7, false);
    // Before anything of it is removed.
    store.create_tree_in_chunk(Lsn(4), TxnId(8), made).unwrap();
    chunk(&store, 4, 8, &[row(b"x", b"4")]);
    assert!(store.create_tree(Lsn(5), made).is_err());
    decide(&store, 5, 8, true);
    while !store.clean(Lsn(5), Lsn(5), 1).unwrap() {}
    while !store.release(Lsn(5), 1).unwrap() {}
    while !store.clean(Lsn(5), Lsn(5), 1).unwrap() {}
    let mut there = Vec::new();
    assert!(store.get(made, b"x", Lsn(5), &mut there).unwrap().exists);
    assert_eq!(there, b"4");
    assert!(!store.get(made, b"y", Lsn(5), &mut there).unwrap().exists);
    assert_eq!((store.known_bulks(), store.unreleased()), (0, 0));
    assert_eq!(store.old_versions(), 0);
    store.check_trees(&mut |_, _, _| Ok(())).unwrap();
    store.start_checkpoint(Vec::new()).unwrap();
}
