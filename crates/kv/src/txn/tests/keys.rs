//! Unique keys, new trees and new indexes.

use super::*;

use Isolation::ReadCommitted;

fn two(leader: &Alone) -> (Client, Client) {
    (
        Client::new(leader, ReadCommitted),
        Client::new(leader, ReadCommitted),
    )
}

#[test]
fn the_second_insert_of_a_key_waits_for_the_first() {
    let leader = Alone::with_table();
    let (one, other) = two(&leader);
    assert_eq!(one.insert("k", row("1", "")).end(), Ok(Inserted::Done));
    let mut second = other.insert("k", row("2", ""));
    assert!(second.waits());
    one.rollback();
    assert_eq!(second.end(), Ok(Inserted::Done));
    let mut third = one.insert("k", row("3", ""));
    assert!(third.waits());
    other.commit().unwrap();
    assert_eq!(third.end(), Ok(Inserted::Duplicate(TABLE)));
    assert!(leader.0.locks.is_empty(), "a duplicate is not locked");
}

#[test]
fn rows_in_order_meet_those_that_came_in_between() {
    let leader = Alone::with_table();
    let (one, other) = two(&leader);
    let key = |number: u32| format!("k{number}");
    let insert = |client: &Client, number| client.insert(&key(number), row("1", "")).end();
    (100..140).for_each(|number| assert_eq!(insert(&one, number), Ok(Inserted::Done)));
    for number in [150, 160] {
        assert_eq!(insert(&other, number), Ok(Inserted::Done));
    }
    let mut waits = one.insert(&key(150), row("1", ""));
    assert!(waits.waits());
    other.commit().unwrap();
    assert_eq!(waits.end(), Ok(Inserted::Duplicate(TABLE)));
    for number in 151..200 {
        let expected = match number {
            160 => Inserted::Duplicate(TABLE),
            _ => Inserted::Done,
        };
        assert_eq!(insert(&one, number), Ok(expected), "row {number}");
    }
    // Backwards, and those that it has itself.
    for number in [141, 199, 140] {
        let expected = match number {
            199 => Inserted::Duplicate(TABLE),
            _ => Inserted::Done,
        };
        assert_eq!(insert(&one, number), Ok(expected), "row {number}");
    }
    assert_eq!(insert(&other, 300), Ok(Inserted::Done));
    other.commit().unwrap();
    assert_eq!(insert(&one, 300), Ok(Inserted::Duplicate(TABLE)));
    one.commit().unwrap();
}

#[test]
fn many_who_wait_for_one_key_do_not_block_each_other() {
    let leader = Alone::with_table();
    let clients: [_; 4] = std::array::from_fn(|_| Client::new(&leader, ReadCommitted));
    assert_eq!(
        clients[0].insert("k", row("1", "")).end(),
        Ok(Inserted::Done)
    );
    let mut waiting: Vec<_> = clients[1..]
        .iter()
        .map(|client| client.insert("k", row("2", "")))
        .collect();
    assert!(waiting.iter_mut().all(Statement::waits));
    clients[0].rollback();
    // They look one after the other; in the end exactly one has inserted and the others wait.
    for _ in 0..3 {
        for statement in &mut waiting {
            statement.poll();
        }
    }
    let done = waiting.iter_mut().position(Statement::poll).unwrap();
    assert_eq!(waiting.iter_mut().filter(|w| w.result.is_some()).count(), 1);
    clients[1 + done].commit().unwrap();
    for (place, statement) in waiting.into_iter().enumerate() {
        let expected = match place == done {
            true => Inserted::Done,
            false => Inserted::Duplicate(TABLE),
        };
        assert_eq!(statement.end(), Ok(expected));
    }
}

#[test]
fn a_duplicate_of_a_row_that_is_only_referred_to_is_known_at_once() {
    let leader = Alone::with_table();
    let (one, other) = two(&leader);
    one.insert("k", row("1", "")).end().unwrap();
    one.commit().unwrap();
    for strength in [RowLock::KeyShare, RowLock::NoKeyUpdate] {
        let lock = move |txn: &mut Txn<Alone>| {
            txn.lock_row(TABLE, b"k", strength, LockWait::Block, &mut Vec::new())
        };
        assert_eq!(one.now(lock), LockedRow::Unchanged);
        let duplicate = other.insert("k", row("2", "")).end();
        assert_eq!(duplicate, Ok(Inserted::Duplicate(TABLE)));
    }
    assert!(one.delete("k").end().unwrap());
    let mut waiting = other.insert("k", row("2", ""));
    assert!(waiting.waits(), "the row may go");
    one.commit().unwrap();
    assert_eq!(waiting.end(), Ok(Inserted::Done));
}

#[test]
fn values_of_a_unique_index_are_there_once() {
    let leader = Alone::with_table();
    let (one, other) = two(&leader);
    assert_eq!(one.insert("a", row("1", "x")).end(), Ok(Inserted::Done));
    let duplicate = one.insert("b", row("1", "x")).end();
    assert_eq!(duplicate, Ok(Inserted::Duplicate(UNIQUE)));
    assert_eq!(one.insert("n", row("1", "")).end(), Ok(Inserted::Done));
    assert_eq!(one.insert("m", row("1", "")).end(), Ok(Inserted::Done));
    let mut waiting = other.insert("b", row("1", "x"));
    assert!(waiting.waits());
    let (third, _) = two(&leader);
    let longer = third.insert("c", row("1", "xx")).end();
    assert_eq!(longer, Ok(Inserted::Done));
    one.commit().unwrap();
    assert_eq!(waiting.end(), Ok(Inserted::Duplicate(UNIQUE)));
}

#[test]
fn a_value_that_is_about_to_go_is_waited_for() {
    let leader = Alone::with_table();
    let (one, other) = two(&leader);
    one.insert("a", row("1", "x")).end().unwrap();
    one.insert("b", row("1", "y")).end().unwrap();
    one.commit().unwrap();

    assert!(one.delete("a").end().unwrap());
    let mut waiting = other.insert("c", row("1", "x"));
    assert!(waiting.waits());
    one.commit().unwrap();
    assert_eq!(waiting.end(), Ok(Inserted::Done));
    other.commit().unwrap();

    let moved = one.update("b", |_| row("1", "z")).end();
    assert_eq!(moved, Ok(Some(Inserted::Done)));
    let mut waiting = other.update("c", |_| row("1", "y"));
    assert!(waiting.waits());
    one.rollback();
    assert_eq!(waiting.end(), Ok(Some(Inserted::Duplicate(UNIQUE))));
    // Columns that no unique index has may change while another changes its own.
    one.update("b", |_| row("2", "y")).end().unwrap();
    assert_eq!(
        other.update("c", |_| row("3", "x")).end(),
        Ok(Some(Inserted::Done))
    );
}

#[test]
fn a_row_may_take_its_own_value_again() {
    let leader = Alone::with_table();
    let (one, _) = two(&leader);
    one.insert("a", row("1", "x")).end().unwrap();
    one.commit().unwrap();
    let before = leader.visible();
    assert!(one.delete("a").end().unwrap());
    assert_eq!(one.insert("b", row("1", "x")).end(), Ok(Inserted::Done));
    assert!(one.delete("b").end().unwrap());
    assert_eq!(one.insert("a", row("2", "x")).end(), Ok(Inserted::Done));
    one.commit().unwrap();
    assert_eq!(leader.visible(), before.next());
    assert_eq!(first_of(&leader.newest(TABLE, b"a").unwrap()), "2");
    assert_eq!(leader.all(UNIQUE).len(), 1);
    assert_eq!(leader.all(INDEX).len(), 1);
}

#[test]
fn what_comes_and_goes_is_not_logged() {
    let leader = Alone::with_table();
    let (one, _) = two(&leader);
    let before = leader.visible();
    one.insert("a", row("1", "x")).end().unwrap();
    assert!(one.delete("a").end().unwrap());
    one.commit().unwrap();
    assert_eq!(leader.visible(), before);
    assert!(leader.0.locks.is_empty());
}

#[test]
fn an_index_shows_own_writes() {
    let leader = Alone::with_table();
    let (one, _) = two(&leader);
    for key in ["a", "b", "c", "d", "e"] {
        one.insert(key, row(key, "")).end().unwrap();
    }
    one.commit().unwrap();
    one.update("b", |_| row("z", "")).end().unwrap();
    assert!(one.delete("d").end().unwrap());
    one.insert("f", row("aa", "")).end().unwrap();
    for direction in [Direction::Forward, Direction::Backward] {
        for limit in 1..6 {
            let entries =
                one.now(move |txn| scan_all(txn, INDEX, KeyRange::all(), direction, limit));
            let keys: Vec<_> = entries.iter().map(|(key, _)| key[key.len() - 1]).collect();
            let mut expected = *b"afceb";
            if direction == Direction::Backward {
                expected.reverse();
            }
            assert_eq!(keys, expected);
        }
    }
}

fn insert_descriptor(client: &Client, id: TreeId, kind: TreeKind) -> Statement<Inserted> {
    client.start(move |txn| {
        let row = TreeDescriptor { id, kind }.to_row();
        txn.insert(TreeId::DESCRIPTORS, &id.descriptor_key(), &row)
    })
}

fn delete_descriptor(client: &Client, id: TreeId) {
    client.now(move |txn| {
        let key = id.descriptor_key();
        let (strength, wait) = (RowLock::Update, LockWait::Block);
        let locked = txn.lock_row(TreeId::DESCRIPTORS, &key, strength, wait, &mut Vec::new())?;
        assert_eq!(locked, LockedRow::Unchanged);
        txn.delete(TreeId::DESCRIPTORS, &key)
    });
}

#[test]
fn a_table_is_truncated_and_filled_in_one_record() {
    let leader = Alone::with_table();
    let (one, _) = two(&leader);
    one.insert("a", row("1", "x")).end().unwrap();
    one.commit().unwrap();
    let before = leader.visible();
    let (table, index) = (TreeId(17_000), TreeId(17_001));
    one.insert("late", row("0", "")).end().unwrap();
    for tree in [TABLE, INDEX, UNIQUE] {
        delete_descriptor(&one, tree);
    }
    insert_descriptor(&one, table, TreeKind::Table)
        .end()
        .unwrap();
    let on_new = IndexDescriptor {
        table,
        ..index_on(1, true)
    };
    insert_descriptor(&one, index, TreeKind::Index(on_new))
        .end()
        .unwrap();
    one.now(move |txn| {
        assert!(!txn.get(table, b"a", &mut Vec::new())?);
        assert_eq!(txn.insert(table, b"a", &row("2", "x"))?, Inserted::Done);
        Ok(())
    });
    one.now(move |txn| {
        assert!(txn.get(table, b"a", &mut Vec::new())?);
        let again = txn.insert(table, b"b", &row("2", "x"))?;
        assert_eq!(again, Inserted::Duplicate(index));
        let rows = scan_all(txn, table, KeyRange::all(), Direction::Forward, 9)?;
        assert_eq!(rows.len(), 1);
        let entries = scan_all(txn, index, KeyRange::all(), Direction::Backward, 9)?;
        assert_eq!(entries.len(), 1);
        Ok(())
    });
    one.commit().unwrap();
    assert_eq!(leader.visible(), before.next());
    assert_eq!(leader.all(table).len(), 1);
    assert_eq!(leader.all(index).len(), 1);
    assert!(leader.newest(TABLE, b"late").is_none());
    assert!(leader.0.registry.indexes(TABLE).is_none());
}

#[test]
fn a_table_made_and_dropped_leaves_no_record() {
    let leader = Alone::with_table();
    let (one, _) = two(&leader);
    let before = leader.visible();
    let table = TreeId(17_000);
    insert_descriptor(&one, table, TreeKind::Table)
        .end()
        .unwrap();
    one.now(move |txn| txn.insert(table, b"a", &row("1", "")));
    delete_descriptor(&one, table);
    one.commit().unwrap();
    assert_eq!(leader.visible(), before);
}

#[test]
fn a_new_table_goes_with_its_savepoint() {
    let leader = Alone::with_table();
    let (one, _) = two(&leader);
    let table = TreeId(17_000);
    let savepoint = one.run(|txn| Ok(txn.savepoint())).end().unwrap();
    insert_descriptor(&one, table, TreeKind::Table)
        .end()
        .unwrap();
    one.now(move |txn| txn.insert(table, b"a", &row("1", "")));
    one.now(move |txn| {
        txn.rollback_to(savepoint);
        Ok(())
    });
    insert_descriptor(&one, table, TreeKind::Table)
        .end()
        .unwrap();
    let found = one.now(move |txn| txn.get(table, b"a", &mut Vec::new()));
    assert!(!found);
}

#[test]
fn an_index_made_on_rows_has_its_entries() {
    let leader = Alone::with_table();
    let (one, other) = two(&leader);
    for (key, second) in [("a", "x"), ("b", "y"), ("c", "")] {
        one.insert(key, row("same", second)).end().unwrap();
    }
    one.commit().unwrap();
    let (index, unique) = (TreeId(17_001), TreeId(17_002));
    one.insert("d", row("own", "")).end().unwrap();
    let made = insert_descriptor(&one, index, TreeKind::Index(index_on(0, false)));
    assert_eq!(made.end(), Ok(Inserted::Done));
    one.insert("e", row("later", "")).end().unwrap();
    let count = move |txn: &mut Txn<Alone>| {
        Ok(scan_all(txn, index, KeyRange::all(), Direction::Forward, 2)?.len())
    };
    assert_eq!(one.now(count), 5);
    one.commit().unwrap();
    assert_eq!(one.now(count), 5);
    let refused = insert_descriptor(&other, unique, TreeKind::Index(index_on(0, true)));
    assert_eq!(refused.end(), Ok(Inserted::Duplicate(unique)));
}

#[test]
fn a_new_key_is_inserted_without_a_lock() {
    let leader = Alone::with_table();
    let (one, two) = (
        Client::new(&leader, Isolation::ReadCommitted),
        Client::new(&leader, Isolation::ReadCommitted),
    );
    let insert = |client: &Client, key: &'static str, value: &'static str| {
        client.now(move |txn| txn.insert_new(TABLE, key.as_bytes(), &row(value, "")))
    };
    let before = leader.0.locks.len();
    assert_eq!(insert(&one, "1", "a"), Inserted::Done);
    assert_eq!(one.read("1").as_deref(), Some("a"));
    assert_eq!(two.read("1"), None);
    assert_eq!(leader.0.locks.len(), before);
    one.commit().unwrap();
    assert_eq!(two.read("1").as_deref(), Some("a"));
}
