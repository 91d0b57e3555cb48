//! What concurrent transactions may and may not see of one another.

use super::*;

use Isolation::{ReadCommitted, RepeatableRead};

fn with_rows(rows: &[(&str, &str)]) -> Alone {
    let leader = Alone::with_table();
    let setup = Client::new(&leader, ReadCommitted);
    for (key, first) in rows {
        assert_eq!(setup.insert(key, row(first, "")).end(), Ok(Inserted::Done));
    }
    setup.commit().unwrap();
    leader
}

fn add(amount: i64) -> impl Fn(&[u8]) -> Vec<u8> {
    move |old| {
        row(
            &(first_of(old).parse::<i64>().unwrap() + amount).to_string(),
            "",
        )
    }
}

#[test]
fn no_update_is_lost_at_read_committed() {
    let leader = with_rows(&[("a", "100")]);
    let (one, two) = (
        Client::new(&leader, ReadCommitted),
        Client::new(&leader, ReadCommitted),
    );
    assert_eq!(one.update("a", add(10)).end(), Ok(Some(Inserted::Done)));
    let mut second = two.update("a", add(20));
    assert!(second.waits());
    one.commit().unwrap();
    assert_eq!(second.end(), Ok(Some(Inserted::Done)));
    two.commit().unwrap();
    assert_eq!(one.read("a").as_deref(), Some("130"));
}

#[test]
fn an_update_after_a_rollback_sees_the_row_unchanged() {
    let leader = with_rows(&[("a", "100")]);
    let (one, two) = (
        Client::new(&leader, RepeatableRead),
        Client::new(&leader, RepeatableRead),
    );
    assert_eq!(one.update("a", add(10)).end(), Ok(Some(Inserted::Done)));
    let mut second = two.update("a", add(20));
    assert!(second.waits());
    one.rollback();
    assert_eq!(second.end(), Ok(Some(Inserted::Done)));
    two.commit().unwrap();
    assert_eq!(one.read("a").as_deref(), Some("120"));
}

#[test]
fn the_first_updater_wins_at_repeatable_read() {
    let leader = with_rows(&[("a", "100"), ("b", "1")]);
    let (one, two) = (
        Client::new(&leader, ReadCommitted),
        Client::new(&leader, RepeatableRead),
    );
    assert_eq!(two.read("b").as_deref(), Some("1"));
    assert_eq!(one.update("a", add(10)).end(), Ok(Some(Inserted::Done)));
    let waiting = two.update("a", add(20));
    one.commit().unwrap();
    let error = waiting.end().unwrap_err();
    assert_eq!(error.state(), SqlState::SERIALIZATION_FAILURE);
    assert_eq!(
        error.message(),
        "could not serialize access due to concurrent update"
    );
    two.rollback();

    // The same where nobody has to wait, and where the row is gone.
    assert_eq!(two.read("b").as_deref(), Some("1"));
    assert_eq!(one.delete("b").end(), Ok(true));
    one.commit().unwrap();
    assert_eq!(two.read("b").as_deref(), Some("1"));
    let error = two.update("b", add(1)).end().unwrap_err();
    assert_eq!(
        error.message(),
        "could not serialize access due to concurrent delete"
    );
}

#[test]
fn each_level_sees_what_it_should() {
    let leader = with_rows(&[("a", "1")]);
    let (statement, transaction, writer) = (
        Client::new(&leader, ReadCommitted),
        Client::new(&leader, RepeatableRead),
        Client::new(&leader, ReadCommitted),
    );
    assert_eq!(statement.read("a").as_deref(), Some("1"));
    assert_eq!(transaction.read("a").as_deref(), Some("1"));
    writer.update("a", add(1)).end().unwrap();
    assert_eq!(statement.read("a").as_deref(), Some("1"), "not committed");
    writer.commit().unwrap();
    assert_eq!(statement.read("a").as_deref(), Some("2"));
    assert_eq!(transaction.read("a").as_deref(), Some("1"));
    transaction.commit().unwrap();
    assert_eq!(transaction.read("a").as_deref(), Some("2"));
}

#[test]
fn a_row_deleted_meanwhile_is_passed_over_at_read_committed() {
    let leader = with_rows(&[("a", "1")]);
    let (one, two) = (
        Client::new(&leader, ReadCommitted),
        Client::new(&leader, ReadCommitted),
    );
    assert_eq!(one.delete("a").end(), Ok(true));
    let mut second = two.update("a", add(1));
    assert!(second.waits());
    one.commit().unwrap();
    assert_eq!(second.end(), Ok(None));
    assert!(
        leader.0.locks.is_empty(),
        "a row that is gone is not locked"
    );
}

#[test]
fn skip_and_nowait_do_not_wait() {
    let leader = with_rows(&[("a", "1")]);
    let (one, two) = (
        Client::new(&leader, ReadCommitted),
        Client::new(&leader, ReadCommitted),
    );
    let lock = |wait| {
        move |txn: &mut Txn<Alone>| {
            txn.lock_row(TABLE, b"a", RowLock::Update, wait, &mut Vec::new())
        }
    };
    assert_eq!(one.now(lock(LockWait::Block)), LockedRow::Unchanged);
    assert_eq!(two.now(lock(LockWait::Skip)), LockedRow::Skipped);
    let refused = two.start(lock(LockWait::NoWait));
    assert_eq!(refused.state(), SqlState::LOCK_NOT_AVAILABLE);
}

#[test]
fn a_deadlock_has_one_victim() {
    let leader = with_rows(&[("a", "1"), ("b", "2")]);
    let (one, two) = (
        Client::new(&leader, ReadCommitted),
        Client::new(&leader, ReadCommitted),
    );
    one.update("a", add(1)).end().unwrap();
    two.update("b", add(1)).end().unwrap();
    let mut waiting = one.update("b", add(1));
    assert!(waiting.waits());
    let victim = two.update("a", add(1));
    assert_eq!(victim.state(), SqlState::DEADLOCK_DETECTED);
    two.rollback();
    assert_eq!(waiting.end(), Ok(Some(Inserted::Done)));
    one.commit().unwrap();
    assert_eq!(one.read("b").as_deref(), Some("3"));
}

#[test]
fn a_statement_does_not_meet_its_own_writes() {
    let leader = with_rows(&[("a", "1"), ("c", "2")]);
    let client = Client::new(&leader, ReadCommitted);
    // Each row found puts another one ahead of the scan: without care this would never end.
    let found = client.now(|txn| {
        let mut found = Vec::new();
        let mut batch = RowBatch::default();
        let mut rest = Some(KeyRange::all());
        while let Some(range) = rest {
            rest = txn.scan(TABLE, &range, Direction::Forward, 1, &mut batch)?;
            for (key, old) in batch.iter() {
                let mut ahead = key.to_vec();
                ahead.push(b'z');
                assert_eq!(txn.insert(TABLE, &ahead, old)?, Inserted::Done);
                found.push(key.to_vec());
            }
        }
        assert!(!txn.get(TABLE, b"az", &mut Vec::new())?);
        txn.next_command();
        assert!(txn.get(TABLE, b"az", &mut Vec::new())?);
        Ok(found)
    });
    assert_eq!(found, [b"a".to_vec(), b"c".to_vec()]);
    client.commit().unwrap();
    assert_eq!(leader.all(TABLE).len(), 4);
}

#[test]
fn a_row_written_by_the_same_command_is_gone_to_it() {
    let leader = with_rows(&[("a", "1")]);
    let client = Client::new(&leader, ReadCommitted);
    client.now(|txn| {
        assert_eq!(update(txn, b"a", add(1))?, Some(Inserted::Done));
        assert!(txn.is_written_by_command(TABLE, b"a"));
        assert_eq!(update(txn, b"a", add(1))?, None);
        Ok(())
    });
    client.now(|txn| {
        assert!(!txn.is_written_by_command(TABLE, b"a"));
        assert_eq!(update(txn, b"a", add(5))?, Some(Inserted::Done));
        Ok(())
    });
    client.commit().unwrap();
    assert_eq!(client.read("a").as_deref(), Some("7"));
}

#[test]
fn a_savepoint_takes_back_rows_entries_and_locks() {
    let leader = with_rows(&[("a", "1"), ("b", "2")]);
    let (one, two) = (
        Client::new(&leader, ReadCommitted),
        Client::new(&leader, ReadCommitted),
    );
    one.update("a", add(10)).end().unwrap();
    let savepoint = one.run(|txn| Ok(txn.savepoint())).end().unwrap();
    one.update("a", add(100)).end().unwrap();
    one.delete("b").end().unwrap();
    one.insert("c", row("3", "")).end().unwrap();
    assert_eq!(one.read("a").as_deref(), Some("111"));
    let mut waiting = two.update("b", add(1));
    assert!(waiting.waits());
    one.run(move |txn| {
        txn.rollback_to(savepoint);
        Ok(())
    })
    .end()
    .unwrap();
    assert_eq!(waiting.end(), Ok(Some(Inserted::Done)));
    two.commit().unwrap();
    assert_eq!(one.read("a").as_deref(), Some("11"));
    assert_eq!(one.read("b").as_deref(), Some("3"));
    assert_eq!(one.read("c"), None);
    let entries = one.now(|txn| scan_all(txn, INDEX, KeyRange::all(), Direction::Forward, 9));
    assert_eq!(entries.len(), 2);
    one.update("a", add(1000)).end().unwrap();
    one.run(move |txn| {
        txn.release(savepoint);
        Ok(())
    })
    .end()
    .unwrap();
    one.commit().unwrap();
    assert_eq!(one.read("a").as_deref(), Some("1011"));
}

#[test]
fn dropping_a_transaction_leaves_nothing() {
    let leader = with_rows(&[("a", "1")]);
    let (one, two) = (
        Client::new(&leader, ReadCommitted),
        Client::new(&leader, ReadCommitted),
    );
    one.update("a", add(1)).end().unwrap();
    let waiting = two.update("a", add(1));
    drop(waiting); // unwound in its wait, and its transaction with it
    one.rollback();
    assert!(leader.0.locks.is_empty());
    assert_eq!(first_of(&leader.newest(TABLE, b"a").unwrap()), "1");
}

#[test]
fn leadership_ends_transactions() {
    let leader = with_rows(&[("a", "1")]);
    let client = Client::new(&leader, ReadCommitted);
    client.update("a", add(1)).end().unwrap();
    leader.0.term.set(Term(2));
    leader.0.locks.begin_term(Term(2));
    let read = client.start(|txn| txn.get(TABLE, b"a", &mut Vec::new()));
    assert_eq!(read.state(), SqlState::SERIALIZATION_FAILURE);
    let error = client.commit().unwrap_err();
    assert_eq!(error.state(), SqlState::SERIALIZATION_FAILURE);
    assert_eq!(client.read("a").as_deref(), Some("1"));
}

#[test]
fn a_debt_is_what_was_looked_at() {
    let leader = with_rows(&[("a", "1")]); // LSN 1 made the table, LSN 2 the row
    let (client, writer) = (
        Client::new(&leader, RepeatableRead),
        Client::new(&leader, ReadCommitted),
    );
    let at = |lsn| {
        let position = Position {
            term: Term(1),
            lsn: Lsn(lsn),
        };
        Debt::of(base::ids::FIRST_GROUP, position)
    };
    writer.insert("b", row("2", "")).end().unwrap();
    assert_eq!(writer.commit(), Ok(at(3)));
    assert_eq!(client.read("a").as_deref(), Some("1"));
    assert_eq!(client.run(|txn| Ok(txn.debt().clone())).end(), Ok(at(2)));
    assert_eq!(client.read("missing"), None);
    assert_eq!(client.run(|txn| Ok(txn.debt().clone())).end(), Ok(at(3)));
    writer.insert("c", row("3", "")).end().unwrap();
    assert_eq!(writer.commit(), Ok(at(4)));
    assert_eq!(client.read("missing"), None, "bounded by the snapshot");
    assert_eq!(client.run(|txn| Ok(txn.debt().clone())).end(), Ok(at(3)));
    // A duplicate is looked for among the newest rows.
    let duplicate = client.insert("c", row("9", "")).end();
    assert_eq!(duplicate, Ok(Inserted::Duplicate(TABLE)));
    assert_eq!(client.commit(), Ok(at(4)), "and nothing is logged");
    assert_eq!(leader.visible(), Lsn(4));
}

#[test]
fn a_key_share_lock_is_disturbed_by_changes_of_keys_only() {
    for isolation in [ReadCommitted, RepeatableRead] {
        let leader = with_rows(&[("a", "100"), ("b", "1")]);
        let (one, two) = (
            Client::new(&leader, ReadCommitted),
            Client::new(&leader, isolation),
        );
        let lock = |key: &'static str| {
            two.run(move |txn| {
                let (strength, wait) = (RowLock::KeyShare, LockWait::Block);
                txn.lock_row(TABLE, key.as_bytes(), strength, wait, &mut Vec::new())
            })
        };
        assert_eq!(two.read("a").as_deref(), Some("100"));
        assert_eq!(one.update("a", add(10)).end(), Ok(Some(Inserted::Done)));
        assert_eq!(one.delete("b").end(), Ok(true));
        one.commit().unwrap();
        assert_eq!(lock("a").end(), Ok(LockedRow::Unchanged));
        match isolation {
            ReadCommitted => assert_eq!(lock("b").end(), Ok(LockedRow::Gone)),
            _ => assert!(lock("b").end().is_err()),
        }
    }
}

#[test]
fn the_newest_rows_can_be_seen_past_a_snapshot() {
    let leader = with_rows(&[("a", "1"), ("b", "2")]);
    let (one, two) = (
        Client::new(&leader, ReadCommitted),
        Client::new(&leader, RepeatableRead),
    );
    assert_eq!(two.read("a").as_deref(), Some("1"));
    assert_eq!(one.insert("c", row("3", "")).end(), Ok(Inserted::Done));
    assert_eq!(one.delete("a").end(), Ok(true));
    one.commit().unwrap();
    assert_eq!(two.insert("d", row("4", "")).end(), Ok(Inserted::Done));
    let seen = two.run(|txn| {
        let mut batch = RowBatch::default();
        txn.scan_newest(TABLE, &KeyRange::all(), 10, &mut batch)?;
        Ok(batch
            .iter()
            .map(|(_, row)| first_of(row))
            .collect::<Vec<_>>())
    });
    assert_eq!(seen.end().unwrap(), ["2", "3", "4"]);
}

#[test]
fn a_kept_view_shows_what_its_statement_saw() {
    let leader = with_rows(&[("a", "1"), ("b", "2")]);
    let (reader, other) = (
        Client::new(&leader, ReadCommitted),
        Client::new(&leader, ReadCommitted),
    );
    reader.update("a", |_| row("own", "")).end().unwrap();
    let view = reader.now(|txn| txn.keep_view());
    // Others commit, and the transaction itself writes the same row by two more commands.
    other.update("b", |_| row("theirs", "")).end().unwrap();
    other.commit().unwrap();
    reader.update("a", |_| row("later", "")).end().unwrap();
    reader.update("a", |_| row("latest", "")).end().unwrap();
    reader.insert("c", row("new", "")).end().unwrap();
    let all = |txn: &mut Txn<Alone>| -> Result<Vec<String>> {
        let (mut batch, mut rest) = (RowBatch::default(), Some(KeyRange::all()));
        let mut found = Vec::new();
        while let Some(range) = rest {
            rest = txn.scan(TABLE, &range, Direction::Forward, 10, &mut batch)?;
            found.extend(batch.iter().map(|(_, row)| first_of(row)));
        }
        Ok(found)
    };
    let seen = reader.now(move |txn| {
        let now = all(txn)?;
        txn.swap_view(view)?;
        let then = all(txn)?;
        txn.swap_view(view)?;
        Ok((now, then, all(txn)?))
    });
    let now = ["latest", "theirs", "new"].map(str::to_owned).to_vec();
    let then = ["own", "2"].map(str::to_owned).to_vec();
    assert_eq!(seen, (now.clone(), then, now));
    reader.now(move |txn| {
        txn.drop_view(view);
        assert!(txn.swap_view(view).is_err(), "it is kept no longer");
        Ok(())
    });
}
