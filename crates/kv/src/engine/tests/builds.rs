//! Trees made of a table's rows beside the work: on every replica, through crashes and failovers.

use base::engine::{Build, Built, Preparation, PreparedTransactions, Rekeyed, RowKey, TableLock};
use base::key::ColumnOrder;
use base::SequenceId;

use super::*;
use crate::check::check;

const OLD: TreeId = TreeId(16_384);
const NEW: TreeId = TreeId(16_390);
const FIRST_INDEX: TreeId = TreeId(16_391);

/// Rows that take some pieces to read.
const ROWS: u64 = 1_500;

fn column(column: usize) -> IndexColumn {
    IndexColumn {
        column,
        kind: KeyKind::Bytes,
        order: ColumnOrder::ASCENDING,
    }
}

fn index(table: TreeId, of: usize, unique: bool) -> IndexDescriptor {
    IndexDescriptor {
        table,
        columns: vec![column(of)],
        unique,
        missing: Vec::new(),
    }
}

/// A row of a name that nobody else has and of one that some share.
fn row(number: u64) -> Vec<u8> {
    RowBuilder::new(2)
        .value(format!("name {}", number * 7_919 % 1_000_003).as_bytes())
        .value(format!("kind {}", number % 7).as_bytes())
        .finish()
}

fn load(engine: &KvEngine) -> Result<()> {
    let mut txn = begin(engine)?;
    txn.begin_statement()?;
    let kind = TreeKind::Table;
    let made = TreeDescriptor { id: OLD, kind }.to_row();
    txn.insert(TreeId::DESCRIPTORS, &OLD.descriptor_key(), &made)?;
    for number in 1..=ROWS {
        txn.insert(OLD, &number.to_be_bytes(), &row(number))?;
    }
    commit(engine, txn)
}

/// A transaction that has locked the old table.
fn locked(engine: &KvEngine, mode: TableLock) -> Result<Box<dyn Transaction>> {
    let mut txn = begin(engine)?;
    txn.begin_statement()?;
    txn.lock_table(OLD, mode, LockWait::Block)?;
    txn.begin_statement()?;
    Ok(txn)
}

fn two_indexes(rekeyed: Option<Rekeyed>) -> Build {
    two_indexes_from(FIRST_INDEX, rekeyed)
}

fn two_indexes_from(first: TreeId, rekeyed: Option<Rekeyed>) -> Build {
    let table = rekeyed.as_ref().map_or(OLD, |new| new.tree);
    Build {
        source: OLD,
        rekeyed,
        indexes: vec![
            (first, index(table, 0, true)),
            (TreeId(first.0 + 1), index(table, 1, false)),
        ],
    }
}

fn by_name() -> Option<Rekeyed> {
    let key = RowKey::Columns(index(NEW, 0, true));
    Some(Rekeyed { tree: NEW, key })
}

/// Locks a row of a table, which is there.
fn lock(txn: &mut dyn Transaction, tree: TreeId, key: &[u8]) -> Result<()> {
    let mut row = Vec::new();
    assert!(txn.get(tree, key, &mut row)?, "{key:02x?} in tree {tree}");
    txn.lock_row(tree, key, RowLock::Update, LockWait::Block, &mut row)?;
    Ok(())
}

fn drop_old(txn: &mut dyn Transaction) -> Result<()> {
    let (tree, key) = (TreeId::DESCRIPTORS, OLD.descriptor_key());
    lock(txn, tree, &key)?;
    txn.delete(tree, &key)
}

fn delete_old(txn: &mut dyn Transaction, number: u64) -> Result<()> {
    lock(txn, OLD, &number.to_be_bytes())?;
    txn.delete(OLD, &number.to_be_bytes())
}

fn count(txn: &mut dyn Transaction, tree: TreeId) -> Result<usize> {
    let mut batch = RowBatch::default();
    let (mut count, mut rest) = (0, Some(KeyRange::all()));
    while let Some(range) = rest {
        rest = txn.scan(tree, &range, Direction::Forward, usize::MAX, &mut batch)?;
        count += batch.len();
    }
    Ok(count)
}

/// A cluster with the table, whose trees are built beside the work.
fn cluster(seed: u64, voters: u64) -> Cluster {
    let settings = GroupSettings {
        segment_bytes: 64 << 10,
        rows_built_in_line: 5,
        ..GroupSettings::default()
    };
    let mut cluster = Cluster::with(seed, voters, settings);
    cluster.session(|node| load(&node.engine));
    cluster
}

impl Cluster {
    /// Waits until every node shows the same and builds nothing, and checks disks too.
    fn assert_sound(&mut self) {
        let nodes = self.nodes.clone();
        self.world.until("replicas to be equal", |_| {
            let nodes = nodes.lock();
            let digests = nodes.values().map(|node| node.engine.group().digest());
            let digests: Vec<_> = digests.map(|digest| digest.expect("sound trees")).collect();
            let settled = nodes.values().all(|node| {
                let status = node.engine.group().status();
                status.commit == digests[0].applied
            });
            settled && digests.windows(2).all(|pair| pair[0] == pair[1])
        });
        let ids: Vec<_> = self.nodes.lock().keys().copied().collect();
        for id in ids {
            self.world.pass(Duration::from_millis(50));
            let host = self.world.host(id);
            let check = check(host, 9, GroupId(1), "g1");
            let report = self.world.run(check).expect("a sound directory");
            let open = report.trees.get(&TreeId::BUILDS).copied().unwrap_or(0);
            assert_eq!(open, 0, "builds under way on {id:?}");
        }
    }
}

#[test]
fn every_replica_makes_the_trees_from_its_own_rows() {
    for voters in [1, 3] {
        let mut cluster = cluster(voters, voters);
        let records = cluster.session(|node| {
            let engine = &node.engine;
            let before = engine.group().status().commit;
            let mut txn = locked(engine, TableLock::AccessExclusive)?;
            assert_eq!(txn.build(&two_indexes(by_name()))?, Built::Done);
            txn.begin_statement()?;
            for tree in [NEW, FIRST_INDEX] {
                assert_eq!(count(&mut *txn, tree)?, ROWS as usize, "tree {tree}");
            }
            let mut name = Vec::new();
            base::key::put_key_column(
                &mut name,
                KeyKind::Bytes,
                ColumnOrder::ASCENDING,
                Some(b"name 7919"),
            )?;
            let mut found = Vec::new();
            assert!(txn.get(NEW, &name, &mut found)?);
            assert_eq!(found, row(1));
            // The new tree is written as any other before it is switched to.
            lock(&mut *txn, NEW, &name)?;
            txn.delete(NEW, &name)?;
            drop_old(&mut *txn)?;
            commit(engine, txn)?;
            Ok(engine.group().status().commit.0 - before.0)
        });
        assert!(records < 8, "{records} records for one table");
        cluster.session(|node| {
            let mut txn = begin(&node.engine)?;
            txn.begin_statement()?;
            for tree in [NEW, FIRST_INDEX, TreeId(FIRST_INDEX.0 + 1)] {
                assert_eq!(count(&mut *txn, tree)?, ROWS as usize - 1, "tree {tree}");
            }
            assert_eq!(count(&mut *txn, OLD)?, 0);
            Ok(())
        });
        cluster.assert_sound();
    }
}

#[test]
fn rows_are_numbered_behind_all_that_were_given() {
    let mut cluster = cluster(4, 3);
    let sequence = SequenceId(99);
    cluster.session(move |node| {
        let engine = &node.engine;
        assert_eq!(engine.advance(sequence, 10)?.0, 1);
        let mut txn = locked(engine, TableLock::AccessExclusive)?;
        // One row less, one changed, one more.
        delete_old(&mut *txn, 5)?;
        lock(&mut *txn, OLD, &6u64.to_be_bytes())?;
        txn.update(OLD, &6u64.to_be_bytes(), &row(90_000))?;
        txn.insert(OLD, &90_001u64.to_be_bytes(), &row(90_001))?;
        let key = RowKey::Numbers(sequence);
        let build = two_indexes(Some(Rekeyed { tree: NEW, key }));
        assert_eq!(txn.build(&build)?, Built::Done);
        drop_old(&mut *txn)?;
        commit(engine, txn)?;
        let next = engine.advance(sequence, 1)?.0;
        assert!(next >= 11 + ROWS, "{next} was given to a row");
        let mut txn = begin(engine)?;
        txn.begin_statement()?;
        let mut batch = RowBatch::default();
        txn.scan(NEW, &KeyRange::all(), Direction::Backward, 2, &mut batch)?;
        let (key, last) = batch.get(0);
        assert_eq!(
            (key, last),
            (&(10 + ROWS).to_be_bytes()[..], &row(90_001)[..])
        );
        let (key, last) = batch.get(1);
        assert_eq!(
            (key, last),
            (&(9 + ROWS).to_be_bytes()[..], &row(90_000)[..])
        );
        Ok(())
    });
    cluster.assert_sound();
}

#[test]
fn duplicates_are_found_and_nothing_is_left() {
    let mut cluster = cluster(5, 3);
    cluster.session(|node| {
        let engine = &node.engine;
        let mut txn = begin(engine)?;
        txn.begin_statement()?;
        txn.insert(OLD, &90_000u64.to_be_bytes(), &row(17))?;
        commit(engine, txn)?;
        // Ids are never used again.
        let mut ids = (20_000..).step_by(10).map(TreeId);
        for rekeyed in [by_name(), None] {
            let mut build = || {
                let mut build = two_indexes_from(ids.next().expect("no end"), rekeyed.clone());
                if let Some(new) = &mut build.rekeyed {
                    new.tree = TreeId(build.indexes[0].0 .0 + 5);
                    build
                        .indexes
                        .iter_mut()
                        .for_each(|(_, index)| index.table = new.tree);
                }
                build
            };
            let mut txn = locked(engine, TableLock::AccessExclusive)?;
            let wanted = build();
            let tree = match &wanted.rekeyed {
                Some(new) => new.tree,
                None => wanted.indexes[0].0,
            };
            let row_17 = row(17);
            let expected = Built::Duplicate { tree, row: row_17 };
            assert_eq!(txn.build(&wanted)?, expected);
            drop(txn);
            // A row that the transaction takes away first is no duplicate …
            let mut txn = locked(engine, TableLock::AccessExclusive)?;
            delete_old(&mut *txn, 17)?;
            assert_eq!(txn.build(&build())?, Built::Done);
            drop(txn);
            // … but one that it adds is.
            let mut txn = locked(engine, TableLock::AccessExclusive)?;
            delete_old(&mut *txn, 17)?;
            txn.insert(OLD, &90_001u64.to_be_bytes(), &row(18))?;
            let built = txn.build(&build())?;
            assert!(matches!(built, Built::Duplicate { .. }), "{built:?}");
        }
        Ok(())
    });
    cluster.world.pass(Duration::from_millis(300));
    cluster.assert_sound();
}

#[test]
fn an_index_knows_what_its_transaction_wrote_before() {
    let mut cluster = cluster(6, 3);
    cluster.session(|node| {
        let engine = &node.engine;
        let mut txn = locked(engine, TableLock::Share)?;
        let key = 17u64.to_be_bytes();
        lock(&mut *txn, OLD, &key)?;
        txn.update(OLD, &key, &row(90_000))?;
        txn.insert(OLD, &90_001u64.to_be_bytes(), &row(90_001))?;
        assert_eq!(txn.build(&two_indexes(None))?, Built::Done);
        txn.begin_statement()?;
        assert_eq!(count(&mut *txn, FIRST_INDEX)?, ROWS as usize + 1);
        let key = 90_002u64.to_be_bytes();
        assert_eq!(
            txn.insert(OLD, &key, &row(90_000))?,
            Inserted::Duplicate(FIRST_INDEX)
        );
        txn.insert(OLD, &key, &row(90_002))?;
        commit(engine, txn)
    });
    cluster.assert_sound();
}

#[test]
fn a_savepoint_takes_a_build_back() {
    let mut cluster = cluster(7, 3);
    cluster.session(|node| {
        let engine = &node.engine;
        let mut txn = locked(engine, TableLock::AccessExclusive)?;
        let savepoint = txn.savepoint();
        assert_eq!(txn.build(&two_indexes(by_name()))?, Built::Done);
        txn.rollback_to(savepoint);
        txn.begin_statement()?;
        txn.insert(OLD, &90_001u64.to_be_bytes(), &row(90_001))?;
        commit(engine, txn)
    });
    cluster.world.pass(Duration::from_millis(300));
    cluster.assert_sound();
}

/// Builds an index and writes a row, for as long as the node leads. Says how many were built.
fn build_again_and_again(node: &Node, ids: std::ops::Range<u64>) -> usize {
    let mut built = 0;
    for id in ids.step_by(2) {
        match build_once(&node.engine, id) {
            Ok(()) => built += 1,
            Err(error) => {
                let state = error.state();
                let known = [SqlState::SERIALIZATION_FAILURE];
                assert!(known.contains(&state), "{error:?}");
            }
        }
    }
    built
}

fn build_once(engine: &KvEngine, id: u64) -> Result<()> {
    let mut txn = locked(engine, TableLock::Share)?;
    let indexes = [
        (TreeId(id), index(OLD, 0, true)),
        (TreeId(id + 1), index(OLD, 1, false)),
    ];
    let build = Build {
        source: OLD,
        rekeyed: None,
        indexes: indexes.into(),
    };
    assert_eq!(txn.build(&build)?, Built::Done);
    commit(engine, txn)?;
    let mut txn = locked(engine, TableLock::RowExclusive)?;
    txn.insert(OLD, &(100_000 + id).to_be_bytes(), &row(100_000 + id))?;
    commit(engine, txn)
}

#[test]
fn builds_survive_crashes_and_failovers() {
    let all_built = Arc::new(Mutex::new(0));
    for seed in 0..8 {
        let settings = GroupSettings {
            segment_bytes: 64 << 10,
            rows_built_in_line: 5,
            // Some are in the middle of a build, and replicas are caught up by them.
            checkpoint_interval: Duration::from_millis(40),
            checkpoint_log_bytes: 8 << 10,
            kept_log_bytes: 8 << 10,
            absent_log_bytes_max: 16 << 10,
            ..GroupSettings::default()
        };
        let mut cluster = Cluster::with(seed, 3, settings);
        cluster.session(|node| load(&node.engine));
        for round in 0..6 {
            let (leader, node) = cluster.leader();
            let first = 17_000 + 1_000 * round;
            let session = start(&node, move |node| {
                build_again_and_again(node, first..first + 10)
            });
            let sum = all_built.clone();
            cluster
                .world
                .spawn(async move { *sum.lock() += session.await });
            let pause = cluster.world.random() % 40_000;
            cluster.world.pass(Duration::from_micros(pause));
            let victim = NodeId(1 + cluster.world.random() % 3);
            match cluster.world.random() % 4 {
                0 => {
                    cluster.crash(victim);
                    cluster.world.pass(Duration::from_millis(30));
                    cluster.start(victim);
                }
                1 => {
                    cluster.cut_off(leader, true);
                    cluster.world.pass(Duration::from_millis(900));
                    cluster.cut_off(leader, false);
                }
                2 => {
                    cluster.cut_off(victim, true);
                    cluster.world.pass(Duration::from_millis(100));
                    cluster.cut_off(victim, false);
                }
                _ => cluster.world.pass(Duration::from_millis(20)),
            }
        }
        cluster.world.pass(Duration::from_secs(3));
        for id in 1..=3 {
            assert_eq!(cluster.world.stopped(NodeId(id)), None, "seed {seed}");
        }
        cluster.assert_sound();
    }
    let built = *all_built.lock();
    assert!(built > 40, "{built} were built");
}

/// Builds two indexes in a transaction that is prepared then.
fn prepare_two_indexes(engine: &KvEngine) -> Result<()> {
    let mut txn = locked(engine, TableLock::Share)?;
    assert_eq!(txn.build(&two_indexes(None))?, Built::Done);
    let preparation = Preparation {
        name: "a".to_owned(),
        owner: 10,
        database: 5,
    };
    let debt = txn.prepare(preparation, Durability::On)?;
    coro::wait(engine.settle(debt, Durability::On))?
}

#[test]
fn a_build_that_is_prepared_waits_for_what_becomes_of_it_whoever_leads() {
    for (seed, commits) in [(91, true), (92, false)] {
        let mut cluster = cluster(seed, 3);
        cluster.session(|node| prepare_two_indexes(&node.engine));
        let (leader, _) = cluster.leader();
        cluster.crash(leader);
        cluster.session(|node| {
            // The table is locked still, and nobody sees the trees.
            let mut other = begin(&node.engine)?;
            other.begin_statement()?;
            assert!(!other.lock_table(OLD, TableLock::RowExclusive, LockWait::Skip)?);
            assert_eq!(count(&mut *other, FIRST_INDEX)?, 0);
            Ok(())
        });
        cluster.start(leader);
        cluster.session(move |node| {
            let (engine, options) = (&*node.engine, TxnOptions::default());
            let debt = engine.resolve("a", commits, options, Durability::On, &|_| Ok(()))?;
            coro::wait(engine.settle(debt, Durability::On))??;
            let mut txn = locked(engine, TableLock::RowExclusive)?;
            let entries = if commits { ROWS as usize } else { 0 };
            for tree in [FIRST_INDEX, TreeId(FIRST_INDEX.0 + 1)] {
                assert_eq!(count(&mut *txn, tree)?, entries);
            }
            // The name of another row.
            let inserted = txn.insert(OLD, &(ROWS + 1).to_be_bytes(), &row(1))?;
            let expected = match commits {
                true => Inserted::Duplicate(FIRST_INDEX),
                false => Inserted::Done,
            };
            assert_eq!(inserted, expected);
            Ok(())
        });
        cluster.assert_sound();
    }
}
