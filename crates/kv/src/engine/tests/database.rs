//! Transactions of sessions over two groups.

use base::engine::TableLock;

use super::across::{
    bank, check, is_settled_down, run_on, Both, Groups, Leaders, Sessions, Ways, FIRST, SECOND,
};
use super::*;

/// Of a session that has its home in the first group where that is led, otherwise in the second.
fn begin(node: &Both, isolation: Isolation) -> Result<Box<dyn Transaction>> {
    let options = TxnOptions {
        isolation,
        session: Some(SessionId(node.host.random() as u32)),
        ..TxnOptions::default()
    };
    match node.engines[0].group().leading() {
        Some(_) => node.database.to_engine().transactions.begin(options),
        None => node.database.begin_at(SECOND, options),
    }
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
    let isolation = match id.as_bytes()[0] % 3 {
        0 => Isolation::ReadCommitted,
        1 => Isolation::RepeatableRead,
        _ => Isolation::Serializable,
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
    let isolation = match node.host.random() % 3 {
        0 => Isolation::ReadCommitted,
        1 => Isolation::RepeatableRead,
        _ => Isolation::Serializable,
    };
    let repeats = isolation != Isolation::ReadCommitted;
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

const OF_SESSIONS: Ways = Ways {
    transfer,
    read,
    leaders: Leaders::Together,
    sessions: Sessions::AtFirst,
};

/// The same where another node leads the second group.
const APART: Ways = Ways {
    leaders: Leaders::Apart,
    ..OF_SESSIONS
};

/// The same where sessions have their homes in both groups.
const HOMES: Ways = Ways {
    sessions: Sessions::AtBoth,
    ..APART
};

/// The balance of an account, read in a statement that has locked its table before.
fn balance(txn: &mut dyn Transaction, group: GroupId, account: i64) -> Result<i64> {
    let mut row = Vec::new();
    let accounts = ACCOUNTS.in_group(group);
    assert!(txn.get(accounts, account.to_string().as_bytes(), &mut row)?);
    Ok(value_of(&row))
}

/// Two groups with accounts in both.
fn with_accounts(seed: u64) -> Groups {
    led(Leaders::Together, seed)
}

fn led(leaders: Leaders, seed: u64) -> Groups {
    let mut groups = Groups::new(seed);
    groups.keep(leaders);
    groups.create_accounts();
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
fn transfers_are_all_or_nothing_where_groups_are_led_by_two_nodes() {
    let (mut committed, mut read) = (0, 0);
    for seed in 90..94 {
        let (told, reads) = bank(seed, APART, 4);
        committed += told.committed.len();
        read += reads;
    }
    assert!(committed > 200 && read > 200, "{committed}, {read}");
}

#[test]
fn transfers_are_all_or_nothing_where_sessions_have_homes_on_two_nodes() {
    let (mut committed, mut read) = (0, 0);
    for seed in 110..113 {
        let (told, reads) = bank(seed, HOMES, 4);
        committed += told.committed.len();
        read += reads;
    }
    assert!(committed > 200 && read > 200, "{committed}, {read}");
}

#[test]
fn of_two_who_wait_for_one_another_in_two_groups_one_fails() {
    one_of_two_fails(Leaders::Together, Sessions::AtFirst);
    one_of_two_fails(Leaders::Apart, Sessions::AtFirst);
    one_of_two_fails(Leaders::Apart, Sessions::AtBoth);
}

fn one_of_two_fails(leaders: Leaders, sessions: Sessions) {
    let mut groups = led(leaders, 74);
    let (_, first) = groups.leader();
    let second = match sessions {
        Sessions::AtFirst => first.clone(),
        // Each has its home where it begins, and waits there for the other in the end.
        Sessions::AtBoth => groups.leader_of_second(),
    };
    let answers: Arc<Mutex<Vec<Result<()>>>> = Arc::default();
    for (node, order) in [(first, [SECOND, FIRST]), (second, [FIRST, SECOND])] {
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
        let (descriptor, mut row) = (accounts(SECOND).descriptor_key(), Vec::new());
        assert!(late.get(TreeId::DESCRIPTORS, &descriptor, &mut row)?);
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

/// A transaction at SERIALIZABLE that has read account 5 of both groups.
fn reader_of_both(node: &Both) -> Result<Box<dyn Transaction>> {
    let mut txn = begin(node, Isolation::Serializable)?;
    lock_tables(&mut *txn)?;
    txn.begin_statement()?;
    for group in [FIRST, SECOND] {
        assert!(balance(&mut *txn, group, 5)? >= 100);
    }
    Ok(txn)
}

#[test]
fn of_two_who_have_read_what_the_other_writes_in_another_group_one_fails() {
    let mut groups = with_accounts(78);
    groups.session(|node| {
        for first_to_commit in 0..2 {
            let mut pair = vec![reader_of_both(node)?, reader_of_both(node)?];
            for (txn, group) in pair.iter_mut().zip([FIRST, SECOND]) {
                add_in(group, &mut **txn, 5, 1)?;
            }
            let committed = pair.remove(first_to_commit).commit(Durability::On)?;
            let failed = pair.remove(0).commit(Durability::On).unwrap_err();
            assert_eq!(failed.state(), SqlState::SERIALIZATION_FAILURE);
            node.settle(&committed)?;
        }
        Ok(())
    });
}

#[test]
fn what_a_prepared_part_has_read_is_not_changed_until_its_outcome_is_known() {
    let mut groups = with_accounts(79);
    groups.session(|node| {
        // Both have looked before either writes, and the second writes in one group alone.
        let mut spanning = reader_of_both(node)?;
        let mut local = begin(node, Isolation::Serializable)?;
        lock_tables(&mut *local)?;
        add_in(FIRST, &mut *local, 5, 1)?;
        add_in(SECOND, &mut *spanning, 5, 1)?;
        let spanning = spanning.commit(Durability::On)?;
        assert!(node.engines[0].has_standing(), "it is not resolved yet");
        let local = local.commit(Durability::On)?;
        // It has waited, and so comes after it.
        let of = |debt: &Debt| debt.groups().map(|part| part.position.lsn).next();
        assert!(of(&local) > of(&spanning), "{local:?} {spanning:?}");
        let prepared = node.engines[0].group().prepared().newest();
        assert!(prepared.parts().next().is_none());
        node.settle(&spanning)?;
        node.settle(&local)
    });
}

#[test]
fn who_has_read_past_a_commit_in_one_group_writes_nothing_in_two() {
    let mut groups = with_accounts(80);
    groups.session(|node| {
        let mut spanning = reader_of_both(node)?;
        let mut local = begin(node, Isolation::Serializable)?;
        lock_tables(&mut *local)?;
        add_in(FIRST, &mut *local, 5, 1)?;
        node.settle(&local.commit(Durability::On)?)?;
        add_in(SECOND, &mut *spanning, 5, 1)?;
        let failed = spanning.commit(Durability::On).unwrap_err();
        assert_eq!(failed.state(), SqlState::SERIALIZATION_FAILURE);
        // Whoever only reads comes before it.
        let mut reader = reader_of_both(node)?;
        let mut local = begin(node, Isolation::Serializable)?;
        lock_tables(&mut *local)?;
        add_in(FIRST, &mut *local, 5, 1)?;
        node.settle(&local.commit(Durability::On)?)?;
        balance(&mut *reader, FIRST, 5)?;
        reader.commit(Durability::On).map(drop)
    });
}

#[test]
fn what_is_written_elsewhere_does_not_outlive_the_numbers_of_the_first_group() {
    let mut groups = with_accounts(82);
    groups.session(|node| {
        let sequences = node.database.to_engine().sequences;
        let (_, debt) = sequences.advance(SequenceId(77), 1)?;
        let given = debt.groups().map(|part| part.position.lsn).next();
        let committed = || Some(node.engines[0].group().committed());
        assert!(committed() < given, "it takes a round trip");
        let mut txn = begin(node, Isolation::ReadCommitted)?;
        lock_tables(&mut *txn)?;
        add_in(SECOND, &mut *txn, 5, 1)?;
        let debt = txn.commit(Durability::On)?;
        assert!(committed() >= given);
        node.settle(&debt)
    });
}

#[test]
fn what_became_of_a_flight_is_known_although_its_parts_are_not_resolved_yet() {
    let mut groups = with_accounts(83);
    groups.session(|node| {
        let flight = Flight {
            session: 7,
            number: 3,
        };
        let engine = node.database.to_engine();
        let mut txn = engine.transactions.begin(TxnOptions {
            flight: Some(flight),
            ..TxnOptions::default()
        })?;
        lock_tables(&mut *txn)?;
        add_in(SECOND, &mut *txn, 5, 1)?;
        let debt = txn.commit(Durability::On)?;
        assert!(node.engines[0].has_standing(), "it is not resolved yet");
        let outcomes = engine.outcomes.expect("outcomes");
        assert!(outcomes.flight_outcome(flight, Lsn::ZERO)?.is_some());
        node.settle(&debt)
    });
}

#[test]
fn a_deferrable_reader_of_two_groups_waits_until_nothing_can_go_wrong() {
    let mut groups = with_accounts(81);
    let (_, node) = groups.leader();
    let writes = run_on(&node, |node| {
        let mut writer = reader_of_both(node)?;
        add_in(FIRST, &mut *writer, 5, 1)?;
        coro::wait(env::sleep(&*node.host, Duration::from_millis(50)))?;
        add_in(SECOND, &mut *writer, 5, -1)?;
        node.settle(&writer.commit(Durability::On)?)?;
        Ok::<_, Error>(node.host.now())
    });
    let reads = run_on(&node, |node| {
        coro::wait(env::sleep(&*node.host, Duration::from_millis(10)))?;
        let mut reader = node.database.to_engine().transactions.begin(TxnOptions {
            isolation: Isolation::Serializable,
            read_only: true,
            deferrable: true,
            ..TxnOptions::default()
        })?;
        lock_tables(&mut *reader)?;
        reader.begin_statement()?;
        let begun = node.host.now();
        let sum = balance(&mut *reader, FIRST, 5)? + balance(&mut *reader, SECOND, 5)?;
        assert_eq!(sum, 200);
        reader.commit(Durability::On)?;
        Ok::<_, Error>(begun)
    });
    let (written, read) = (Arc::new(Mutex::new(None)), Arc::new(Mutex::new(None)));
    let (writer, reader) = (written.clone(), read.clone());
    groups.world.spawn(async move {
        let end = writes.await;
        *writer.lock() = Some(end);
    });
    groups.world.spawn(async move {
        let begun = reads.await;
        *reader.lock() = Some(begun);
    });
    let both = || written.lock().is_some() && read.lock().is_some();
    groups.world.until("both", |_| both());
    let [written, read] = [written, read].map(|at| at.lock().take());
    let (written, read) = (written.expect("an end"), read.expect("a beginning"));
    // It has begun to read once the writer was at its end, or is about to be.
    assert!(
        written.expect("it commits") <= read.expect("it reads").after(Duration::from_millis(5))
    );
}

#[test]
fn what_is_of_one_group_alone_is_refused_in_another() {
    let mut groups = with_accounts(77);
    groups.session(|node| {
        let accounts = ACCOUNTS.in_group(SECOND);
        let mut txn = begin(node, Isolation::RepeatableRead)?;
        txn.lock_table(accounts, TableLock::AccessShare, LockWait::Block)?;
        let exported = txn.snapshots().map(drop);
        assert_eq!(
            exported.unwrap_err().state(),
            SqlState::FEATURE_NOT_SUPPORTED
        );
        drop(txn);
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
