//! Transactions of sessions over two groups.

use base::engine::TableLock;

use super::across::{bank, check, is_settled_down, run_on, Both, Groups, Ways, FIRST, SECOND};
use super::*;

fn begin(node: &Both, isolation: Isolation) -> Result<Box<dyn Transaction>> {
    node.database.to_engine().transactions.begin(TxnOptions {
        isolation,
        session: Some(SessionId(node.host.random() as u32)),
        ..TxnOptions::default()
    })
}

/// Locks the tables of both groups, as the plan of a statement does.
fn lock_tables(txn: &mut dyn Transaction) -> Result<()> {
    for group in [FIRST, SECOND] {
        for tree in [ACCOUNTS, LEDGER] {
            let mode = TableLock::RowExclusive;
            txn.lock_table(tree.in_group(group), mode, LockWait::Block)?;
        }
    }
    Ok(())
}

fn transfer(node: &Both, id: &str, (from, to): (i64, i64), amount: i64) -> Result<Debt> {
    let isolation = match id.as_bytes()[0] % 2 {
        0 => Isolation::ReadCommitted,
        _ => Isolation::RepeatableRead,
    };
    let mut txn = begin(node, isolation)?;
    lock_tables(&mut *txn)?;
    // Not all go the same way, so that they come into each other's.
    let mut steps = vec![(FIRST, from, -amount), (SECOND, to, amount)];
    if id.len() % 2 == 0 {
        steps.reverse();
    }
    for (group, account, amount) in steps {
        add_in(group, &mut *txn, account, amount)?;
        let taken_back = txn.savepoint();
        add_in(group, &mut *txn, account, 1_000)?;
        txn.rollback_to(taken_back);
        coro::wait(env::sleep(&*node.host, Duration::from_millis(1)))?;
        txn.begin_statement()?;
        let row = RowBuilder::new(3)
            .value(id.as_bytes())
            .value(account.to_string().as_bytes())
            .value(amount.to_string().as_bytes());
        let ledger = LEDGER.in_group(group);
        let inserted = txn.insert(ledger, id.as_bytes(), &row.finish())?;
        assert_eq!(inserted, Inserted::Done);
    }
    txn.commit(Durability::On)
}

fn read(node: &Both) -> Result<(i64, [BTreeSet<String>; 2])> {
    let repeats = node.host.random() % 2 == 0;
    let isolation = match repeats {
        true => Isolation::RepeatableRead,
        false => Isolation::ReadCommitted,
    };
    let mut txn = begin(node, isolation)?;
    lock_tables(&mut *txn)?;
    txn.begin_statement()?;
    let (mut sum, mut ledgers) = (0, [BTreeSet::new(), BTreeSet::new()]);
    for (group, ledger) in [FIRST, SECOND].into_iter().zip(&mut ledgers) {
        for tree in [ACCOUNTS, LEDGER] {
            coro::wait(env::sleep(&*node.host, Duration::from_millis(1)))?;
            if repeats {
                txn.begin_statement()?;
            }
            let (mut rest, mut batch) = (Some(KeyRange::all()), RowBatch::default());
            while let Some(range) = rest {
                let (there, forward) = (tree.in_group(group), Direction::Forward);
                rest = txn.scan(there, &range, forward, 10, &mut batch)?;
                for (key, row) in batch.iter() {
                    match tree == ACCOUNTS {
                        true => sum += value_of(row),
                        false => drop(ledger.insert(String::from_utf8_lossy(key).into())),
                    }
                }
            }
        }
    }
    let debt = txn.commit(Durability::On)?;
    node.settle(&debt)?;
    Ok((sum, ledgers))
}

const OF_SESSIONS: Ways = Ways { transfer, read };

/// The balance of an account, read in a statement that has locked its table before.
fn balance(txn: &mut dyn Transaction, group: GroupId, account: i64) -> Result<i64> {
    let mut row = Vec::new();
    let accounts = ACCOUNTS.in_group(group);
    assert!(txn.get(accounts, account.to_string().as_bytes(), &mut row)?);
    Ok(value_of(&row))
}

/// Two groups with accounts in both.
fn with_accounts(seed: u64) -> Groups {
    let mut groups = Groups::new(seed);
    groups.keep_together();
    groups.session(|node| {
        let mut engines = node.engines.iter();
        engines.try_for_each(|engine| create(engine, BALANCES))
    });
    groups
}

#[test]
fn transfers_of_sessions_are_all_or_nothing_whoever_leads() {
    let (mut committed, mut read) = (0, 0);
    for seed in 70..73 {
        let (told, reads) = bank(seed, OF_SESSIONS, 4);
        committed += told.committed.len();
        read += reads;
    }
    assert!(committed > 200 && read > 200, "{committed}, {read}");
}

#[test]
fn of_two_who_wait_for_one_another_in_two_groups_one_fails() {
    let mut groups = with_accounts(74);
    let (_, node) = groups.leader();
    let answers: Arc<Mutex<Vec<Result<()>>>> = Arc::default();
    for order in [[FIRST, SECOND], [SECOND, FIRST]] {
        let answered = run_on(&node, move |node| {
            let mut txn = begin(node, Isolation::ReadCommitted)?;
            lock_tables(&mut *txn)?;
            for group in order {
                add_in(group, &mut *txn, 1, 5)?;
                coro::wait(env::sleep(&*node.host, Duration::from_millis(20)))?;
            }
            node.settle(&txn.commit(Durability::On)?)
        });
        let answers = answers.clone();
        groups.world.spawn(async move {
            let answer = answered.await;
            answers.lock().push(answer);
        });
    }
    groups.world.until("both", |_| answers.lock().len() == 2);
    let mut states: Vec<_> = (answers.lock().iter())
        .filter_map(|answer| answer.as_ref().err().map(Error::state))
        .collect();
    assert_eq!(states.pop(), Some(SqlState::DEADLOCK_DETECTED));
    assert!(states.is_empty(), "{states:?}");
}

#[test]
fn whoever_has_locked_rows_takes_part_in_the_commit() {
    let mut groups = with_accounts(75);
    groups.session(|node| {
        for locks in [true, false] {
            let mut txn = begin(node, Isolation::ReadCommitted)?;
            lock_tables(&mut *txn)?;
            add_in(FIRST, &mut *txn, 2, 1)?;
            if locks {
                let accounts = ACCOUNTS.in_group(SECOND);
                txn.lock_key(accounts, b"2", RowLock::KeyShare, LockWait::Block)?;
            }
            let before = node.engines[1].group().visible();
            let debt = txn.commit(Durability::On)?;
            let is_part = node.engines[1].group().visible() > before;
            assert_eq!(is_part, locks);
            node.settle(&debt)?;
            let lock = |engine: &Arc<KvEngine>| engine.locks().is_empty();
            while !node.engines.iter().all(lock) {
                coro::wait(env::sleep(&*node.host, Duration::from_millis(1)))?;
            }
        }
        Ok(())
    });
}

#[test]
fn a_group_joins_a_statement_late_only_where_nothing_has_changed() {
    let mut groups = with_accounts(76);
    groups.session(|node| {
        let accounts = |group| ACCOUNTS.in_group(group);
        let lock = |txn: &mut dyn Transaction, group| {
            txn.lock_table(accounts(group), TableLock::AccessShare, LockWait::Block)
        };
        let begun = || -> Result<Box<dyn Transaction>> {
            let mut txn = begin(node, Isolation::ReadCommitted)?;
            lock(&mut *txn, FIRST)?;
            txn.begin_statement()?;
            assert_eq!(balance(&mut *txn, FIRST, 3)?, 100);
            Ok(txn)
        };
        let mut quiet = begun()?;
        lock(&mut *quiet, SECOND)?;
        assert_eq!(balance(&mut *quiet, SECOND, 3)?, 100);
        drop(quiet);
        let mut late = begun()?;
        node.settle(&transfer(node, "one", (4, 4), 1)?)?;
        lock(&mut *late, SECOND)?;
        let error = balance(&mut *late, SECOND, 4).unwrap_err();
        assert_eq!(error.state(), SqlState::SERIALIZATION_FAILURE);
        drop(late);
        // From now on it has been there from the beginning.
        let mut again = begun()?;
        node.settle(&transfer(node, "two", (4, 4), 1)?)?;
        assert_eq!(balance(&mut *again, SECOND, 4)?, 101);
        Ok(())
    });
}

#[test]
fn what_is_of_one_group_alone_is_refused_in_another() {
    let mut groups = with_accounts(77);
    groups.session(|node| {
        let accounts = ACCOUNTS.in_group(SECOND);
        let mut txn = begin(node, Isolation::Serializable)?;
        let lock = txn.lock_table(accounts, TableLock::AccessShare, LockWait::Block);
        assert_eq!(lock.unwrap_err().state(), SqlState::FEATURE_NOT_SUPPORTED);
        // One that began when there was one group learns that there is another.
        let mut alone = node.engines[0].begin(TxnOptions::default())?;
        let lock = alone.lock_table(accounts, TableLock::AccessShare, LockWait::Block);
        assert_eq!(lock.unwrap_err().state(), SqlState::SERIALIZATION_FAILURE);
        Ok(())
    });
    let (_, node) = groups.leader();
    let all = node.clone();
    groups
        .world
        .until("nothing to be left", move |_| is_settled_down(&all));
    check(&node, &Told::default());
}
