//! A transaction at SERIALIZABLE that comes to lock a row which has changed since its snapshot: it
//! goes on where nothing that it has read has changed, and fails where something may have.

use super::*;

const SERIALIZABLE: Isolation = Isolation::Serializable;

/// A table whose rows `a`, `b` and `c` are 0.
fn counters() -> Alone {
    let leader = Alone::with_table();
    let client = Client::new(&leader, Isolation::ReadCommitted);
    for key in ["a", "b", "c"] {
        let inserted = client.insert(key, row("0", "")).end();
        assert_eq!(inserted, Ok(Inserted::Done));
    }
    client.commit().unwrap();
    leader
}

fn one_more(old: &[u8]) -> Vec<u8> {
    let number: i64 = first_of(old).parse().unwrap();
    row(&(number + 1).to_string(), "")
}

fn add_one(client: &Client, key: &str) {
    let updated = client.update(key, one_more).end();
    assert_eq!(updated, Ok(Some(Inserted::Done)), "{key}");
}

/// Adds one to a row and commits.
fn count(leader: &Alone, isolation: Isolation, key: &str) {
    let client = Client::new(leader, isolation);
    add_one(&client, key);
    client.commit().unwrap();
}

fn now(leader: &Alone, key: &str) -> String {
    let client = Client::new(leader, Isolation::ReadCommitted);
    client.read(key).expect("the row is there")
}

#[test]
fn who_waits_for_a_hot_row_goes_on_with_it_as_it_is_then() {
    let leader = counters();
    let (one, two) = (
        Client::new(&leader, SERIALIZABLE),
        Client::new(&leader, SERIALIZABLE),
    );
    add_one(&one, "a");
    let mut waiting = two.update("a", one_more);
    assert!(waiting.waits());
    one.commit().unwrap();
    assert_eq!(waiting.end(), Ok(Some(Inserted::Done)));
    // Its snapshot has moved for everything.
    count(&leader, SERIALIZABLE, "c");
    assert_eq!(two.read("c").as_deref(), Some("0"));
    two.commit().unwrap();
    assert_eq!(now(&leader, "a"), "2");
}

#[test]
fn several_hot_rows_one_after_the_other() {
    let leader = counters();
    let client = Client::new(&leader, SERIALIZABLE);
    add_one(&client, "a");
    // What it has changed itself stays as it is, and so does what it has read.
    assert_eq!(client.read("c").as_deref(), Some("0"));
    count(&leader, SERIALIZABLE, "b");
    add_one(&client, "b");
    client.commit().unwrap();
    assert_eq!(
        (now(&leader, "a"), now(&leader, "b")),
        ("1".into(), "2".into())
    );
}

#[test]
fn who_has_read_what_has_changed_fails() {
    let leader = counters();
    let client = Client::new(&leader, SERIALIZABLE);
    assert_eq!(client.read("b").as_deref(), Some("0"));
    count(&leader, SERIALIZABLE, "b");
    count(&leader, SERIALIZABLE, "a");
    let state = client.update("a", one_more).state();
    assert_eq!(state, SqlState::SERIALIZATION_FAILURE);
}

#[test]
fn who_has_read_the_row_itself_fails() {
    let leader = counters();
    let client = Client::new(&leader, SERIALIZABLE);
    assert_eq!(client.read("a").as_deref(), Some("0"));
    count(&leader, SERIALIZABLE, "a");
    let state = client.update("a", one_more).state();
    assert_eq!(state, SqlState::SERIALIZATION_FAILURE);
    client.rollback();
    // Nor may it be the row of a range.
    let client = Client::new(&leader, SERIALIZABLE);
    client.now(|txn| scan_all(txn, TABLE, KeyRange::all(), Direction::Forward, 10));
    count(&leader, SERIALIZABLE, "a");
    let state = client.update("a", one_more).state();
    assert_eq!(state, SqlState::SERIALIZATION_FAILURE);
}

#[test]
fn writers_below_serializable_keep_readers_where_they_are() {
    let leader = counters();
    let reads = Client::new(&leader, SERIALIZABLE);
    assert_eq!(reads.read("b").as_deref(), Some("0"));
    // It tells nobody what it writes, so it may have been what was read.
    count(&leader, Isolation::ReadCommitted, "c");
    count(&leader, SERIALIZABLE, "a");
    let state = reads.update("a", one_more).state();
    assert_eq!(state, SqlState::SERIALIZATION_FAILURE);
    // Who has read nothing does not mind.
    let writes = Client::new(&leader, SERIALIZABLE);
    writes.now(|_| Ok(()));
    count(&leader, Isolation::ReadCommitted, "b");
    add_one(&writes, "b");
    writes.commit().unwrap();
    assert_eq!(now(&leader, "b"), "2");
}

#[test]
fn a_cursor_that_is_still_read_keeps_its_transaction_where_it_is() {
    let leader = counters();
    let client = Client::new(&leader, SERIALIZABLE);
    let view = client.now(|txn| txn.keep_view());
    count(&leader, SERIALIZABLE, "a");
    let state = client.update("a", one_more).state();
    assert_eq!(state, SqlState::SERIALIZATION_FAILURE);
    client.rollback();
    let view = (view, client.now(|txn| txn.keep_view()));
    client.now(move |txn| {
        txn.drop_view(view.1);
        Ok(())
    });
    count(&leader, SERIALIZABLE, "a");
    add_one(&client, "a");
    client.commit().unwrap();
}

#[test]
fn a_row_that_has_gone_is_none_to_change() {
    let leader = counters();
    let client = Client::new(&leader, SERIALIZABLE);
    add_one(&client, "b");
    let other = Client::new(&leader, SERIALIZABLE);
    assert_eq!(other.delete("a").end(), Ok(true));
    other.commit().unwrap();
    assert_eq!(client.update("a", one_more).end(), Ok(None));
    assert_eq!(client.read("a"), None);
    client.commit().unwrap();
}
