//! Transactions that are prepared, over lost leaders, restarts and checkpoints.

use base::engine::{Preparation, PreparedTransactions, TableLock, XidStatus};

use super::*;

fn preparation(name: &str) -> Preparation {
    Preparation {
        name: name.to_owned(),
        owner: 10,
        database: 5,
    }
}

/// Prepares a transaction, and waits until the reply may leave.
fn prepare(engine: &KvEngine, txn: Box<dyn Transaction>, name: &str) -> Result<()> {
    let debt = txn.prepare(preparation(name), Durability::On)?;
    coro::wait(engine.settle(debt, Durability::On))?
}

fn resolve(engine: &KvEngine, name: &str, commit: bool) -> Result<()> {
    let options = TxnOptions::default();
    let debt = engine.resolve(name, commit, options, Durability::On, &|_| Ok(()))?;
    coro::wait(engine.settle(debt, Durability::On))?
}

/// Prepares one that adds 5 to account 1 and notes that in the ledger; its id.
fn prepare_add(engine: &KvEngine, name: &str) -> Result<Xid> {
    let mut txn = begin(engine)?;
    add(&mut *txn, 1, 5)?;
    let row = RowBuilder::new(1).value(name.as_bytes()).finish();
    txn.insert(LEDGER, name.as_bytes(), &row)?;
    txn.lock_table(LEDGER, TableLock::RowExclusive, LockWait::Block)?;
    prepare(engine, txn, name)?;
    let (all, _) = engine.prepared()?;
    let found = all.iter().find(|one| one.preparation.name == name);
    let found = found.expect("it is prepared");
    assert_eq!(found.preparation, preparation(name));
    Ok(found.xid)
}

/// Whether the row of an account can be had.
fn is_free(engine: &KvEngine, account: i64) -> Result<bool> {
    let mut txn = begin(engine)?;
    txn.begin_statement()?;
    let key = account.to_string().into_bytes();
    let (strength, wait) = (RowLock::Update, LockWait::Skip);
    let locked = txn.lock_row(ACCOUNTS, &key, strength, wait, &mut Vec::new())?;
    Ok(locked != LockedRow::Skipped)
}

fn balance(engine: &KvEngine) -> Result<i64> {
    let all = read_all(engine, ACCOUNTS)?;
    let found = all.iter().find(|(key, _)| key == b"1");
    Ok(value_of(&found.expect("account 1").1))
}

/// What holds while it is prepared, whoever leads.
fn check_prepared(engine: &KvEngine, xid: Xid) -> Result<()> {
    assert!(!is_free(engine, 1)?);
    assert!(is_free(engine, 0)?);
    assert_eq!(balance(engine)?, 100);
    assert_eq!(read_all(engine, LEDGER)?, []);
    assert_eq!(engine.xid_status(xid)?, Some(XidStatus::InProgress));
    let mut other = begin(engine)?;
    other.begin_statement()?;
    let mode = TableLock::AccessExclusive;
    assert!(!other.lock_table(LEDGER, mode, LockWait::Skip)?);
    // The value is spoken for in the index too.
    assert!(!other.lock_key(LEDGER, b"a", RowLock::Update, LockWait::Skip)?);
    let taken = other.prepare(preparation("a"), Durability::On);
    assert_eq!(taken.unwrap_err().state(), SqlState::DUPLICATE_OBJECT);
    let unknown = resolve(engine, "b", true).unwrap_err();
    assert_eq!(unknown.state(), SqlState::UNDEFINED_OBJECT);
    let refused = |_: &_| Err(Error::unsupported("this"));
    let options = TxnOptions::default();
    let refused = engine.resolve("a", true, options, Durability::On, &refused);
    assert_eq!(
        refused.unwrap_err().state(),
        SqlState::FEATURE_NOT_SUPPORTED
    );
    Ok(())
}

#[test]
fn what_is_prepared_outlives_leaders_and_can_be_committed() {
    for checkpoint in [false, true] {
        let mut cluster = Cluster::new(51, 3);
        cluster.session(|node| create(&node.engine, 2));
        let xid = cluster.session(|node| prepare_add(&node.engine, "a"));
        cluster.session(move |node| check_prepared(&node.engine, xid));
        if checkpoint {
            cluster.session(|node| coro::wait(node.engine.checkpoint())?);
        }
        // One leader after another is lost, and then all.
        for _ in 0..2 {
            let (leader, _) = cluster.leader();
            cluster.crash(leader);
            cluster.session(move |node| check_prepared(&node.engine, xid));
            cluster.start(leader);
        }
        (1..=3).for_each(|node| cluster.crash(NodeId(node)));
        (1..=3).for_each(|node| cluster.start(NodeId(node)));
        cluster.session(move |node| check_prepared(&node.engine, xid));
        cluster.session(|node| resolve(&node.engine, "a", true));
        let check = move |node: &Node| {
            let engine = &*node.engine;
            assert_eq!(balance(engine)?, 105);
            assert_eq!(read_all(engine, LEDGER)?.len(), 1);
            assert_eq!(read_all(engine, BY_MOVE)?.len(), 1);
            assert_eq!(engine.xid_status(xid)?, Some(XidStatus::Committed));
            assert_eq!(engine.prepared()?.0, []);
            assert!(engine.locks().is_empty());
            let again = resolve(engine, "a", true).unwrap_err();
            assert_eq!(again.state(), SqlState::UNDEFINED_OBJECT);
            Ok(())
        };
        cluster.session(check);
        let (leader, _) = cluster.leader();
        cluster.crash(leader);
        cluster.session(check);
    }
}

#[test]
fn what_is_rolled_back_was_never_there() {
    let mut cluster = Cluster::new(52, 3);
    cluster.session(|node| create(&node.engine, 2));
    let xid = cluster.session(|node| prepare_add(&node.engine, "a"));
    let (leader, _) = cluster.leader();
    cluster.crash(leader);
    cluster.session(|node| resolve(&node.engine, "a", false));
    cluster.session(move |node| {
        let engine = &*node.engine;
        assert_eq!(balance(engine)?, 100);
        assert_eq!(read_all(engine, LEDGER)?, []);
        // Of an earlier leader's transactions nothing is known but that they are not committed.
        assert_eq!(engine.xid_status(xid)?, None);
        assert!(engine.locks().is_empty());
        // The name and the rows are free.
        prepare_add(engine, "a")?;
        resolve(engine, "a", true)?;
        assert_eq!(balance(engine)?, 105);
        Ok(())
    });
}

/// Who waits for a row goes on when what is prepared is resolved, with the row as it is then.
#[test]
fn waiters_go_on_when_it_is_resolved() {
    let mut cluster = Cluster::new(53, 3);
    cluster.session(|node| create(&node.engine, 2));
    cluster.session(|node| prepare_add(&node.engine, "a"));
    let (_, node) = cluster.leader();
    let waits = start(&node, |node| transfer(node, "0", 1, 0, 20));
    let resolves = start(&node, |node| {
        coro::wait(env::sleep(&*node.host, Duration::from_millis(20)))?;
        resolve(&node.engine, "a", true)
    });
    cluster.world.run(async move {
        resolves.await.expect("it commits");
        waits.await.expect("it is served");
    });
    assert_eq!(cluster.session(|node| balance(&node.engine)), 85);
}

/// What only a leader had that nobody followed any more is not there afterwards, nor are its locks.
#[test]
fn what_was_cut_is_not_prepared() {
    let mut cluster = Cluster::new(54, 3);
    cluster.session(|node| create(&node.engine, 2));
    let (old, node) = cluster.leader();
    cluster.cut_off(old, true);
    let engine = node.engine.clone();
    let lost = cluster.world.session(move || {
        let mut txn = begin(&engine)?;
        add(&mut *txn, 1, 5)?;
        txn.prepare(preparation("a"), Durability::Off).map(drop)
    });
    lost.expect("it has appended");
    cluster.nodes.lock().remove(&old);
    let check = |node: &Node| {
        let engine = &*node.engine;
        assert_eq!(engine.prepared()?.0, []);
        assert!(is_free(engine, 1)?);
        Ok(())
    };
    cluster.session(check);
    cluster.cut_off(old, false);
    cluster.nodes.lock().insert(old, node);
    cluster.world.pass(Duration::from_secs(3));
    cluster.session(check);
}

/// Many locks, which are of ranges, and trees that are made and dropped.
#[test]
fn ranges_and_trees_are_prepared_too() {
    const NEW: TreeId = TreeId(20_000);
    const ACCOUNTS_MANY: i64 = 200;
    let mut cluster = Cluster::new(55, 3);
    cluster.session(|node| create(&node.engine, ACCOUNTS_MANY));
    cluster.session(|node| {
        let engine = &*node.engine;
        let mut txn = begin(engine)?;
        for account in 0..ACCOUNTS_MANY / 2 {
            add(&mut *txn, account, 1)?;
        }
        let (id, kind) = (NEW, TreeKind::Table);
        let row = TreeDescriptor { id, kind }.to_row();
        txn.insert(TreeId::DESCRIPTORS, &NEW.descriptor_key(), &row)?;
        txn.insert(NEW, b"k", &number(7))?;
        prepare(engine, txn, "a")
    });
    for _ in 0..2 {
        let (leader, _) = cluster.leader();
        cluster.session(|node| {
            for account in 0..ACCOUNTS_MANY / 2 {
                assert!(!is_free(&node.engine, account)?, "account {account}");
            }
            Ok(())
        });
        cluster.crash(leader);
        cluster.session(|_| Ok(()));
        cluster.start(leader);
    }
    cluster.session(|node| resolve(&node.engine, "a", true));
    cluster.session(|node| {
        let engine = &*node.engine;
        assert!(engine.locks().is_empty());
        let accounts = read_all(engine, ACCOUNTS)?;
        let sum: i64 = accounts.iter().map(|(_, row)| value_of(row)).sum();
        assert_eq!(sum, 100 * ACCOUNTS_MANY + ACCOUNTS_MANY / 2);
        assert_eq!(read_all(engine, NEW)?.len(), 1);
        Ok(())
    });
}

#[test]
fn what_cannot_be_prepared_is_refused() {
    let mut cluster = Cluster::new(56, 1);
    cluster.session(|node| create(&node.engine, 2));
    cluster.session(|node| {
        let engine = &*node.engine;
        let mut txn = engine.begin(TxnOptions {
            isolation: Isolation::Serializable,
            ..TxnOptions::default()
        })?;
        add(&mut *txn, 1, 5)?;
        let refused = txn.prepare(preparation("a"), Durability::On).unwrap_err();
        assert_eq!(refused.state(), SqlState::FEATURE_NOT_SUPPORTED);
        let mut txn = begin(engine)?;
        txn.begin_statement()?;
        let row = vec![7; crate::prepared::CHANGES_BYTES_MAX / 4];
        let row = RowBuilder::new(1).value(&row).finish();
        for key in 0..5_u8 {
            txn.insert(ACCOUNTS, &[b'x', key], &row)?;
        }
        let refused = txn.prepare(preparation("a"), Durability::On).unwrap_err();
        assert_eq!(refused.state(), SqlState::PROGRAM_LIMIT_EXCEEDED);
        assert!(is_free(engine, 1)? && engine.locks().is_empty());
        assert_eq!(engine.prepared()?.0, []);
        Ok(())
    });
}
