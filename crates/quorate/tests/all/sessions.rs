//! What sessions see of one another: every scenario runs on PostgreSQL 15 and on three nodes of
//! Quorate, with the same assertions.

use std::io::{Read, Write};
use std::net::TcpStream;

use lab::host::Endpoint;

use crate::stage::{Session, Stage};

macro_rules! scenarios {
    ($($name:ident)*) => {
        mod postgresql {
            $(#[test] fn $name() { super::$name(&super::Stage::postgresql()) })*
        }
        mod quorate {
            $(#[test] fn $name() { super::$name(&super::Stage::quorate()) })*
        }
    };
}

scenarios! {
    uncommitted_rows_are_nobody_elses
    temporary_tables_are_nobody_elses
    read_committed_takes_a_snapshot_per_statement
    read_committed_updates_check_the_newest_version
    read_committed_skips_what_no_longer_matches
    read_committed_skips_what_was_deleted
    read_committed_counts_every_increment
    repeatable_read_keeps_its_snapshot
    repeatable_read_loses_to_an_earlier_update
    repeatable_read_loses_to_an_update_it_waited_for
    repeatable_read_goes_on_after_a_rollback
    repeatable_read_allows_write_skew
    repeatable_read_counts_every_increment_with_retries
    inserts_of_one_key_wait_for_each_other
    on_conflict_waits_for_the_other_insert
    unique_columns_wait_like_keys
    rows_can_be_locked_by_reading
    readers_never_wait_for_writers
    lock_timeout_ends_the_wait
    lock_timeout_can_be_caught
    statement_timeout_ends_a_wait
    statement_timeout_ends_a_computation
    a_deadlock_has_one_victim
    a_deadlock_of_three_has_one_victim
    a_savepoint_gives_its_locks_back
    a_failed_transaction_gives_its_locks_back
    a_client_that_goes_gives_its_locks_back
    a_client_that_breaks_off_gives_its_locks_back
    advisory_locks_go_with_their_session
    lock_timeout_ends_a_wait_for_an_advisory_lock
    serializable_transactions_count_every_increment_with_retries
    a_driver_cancels_a_wait
    a_driver_cancels_a_computation
    a_cancel_request_works_through_any_node
    a_cancel_request_needs_the_right_key
    truncate_waits_for_a_writer
    others_wait_for_truncate
    drop_waits_for_a_writer
    a_do_block_commits_for_everybody
    parameters_and_transactions_of_a_driver
    mistakes_in_the_protocol_are_errors_and_no_more
}

/// A table of one row, (1, 0), and two sessions.
fn counter(stage: &Stage, table: &str) -> (Session, Session) {
    stage.table(table, "k int primary key, v int", "(1, 0)");
    (stage.session(), stage.session())
}

// ---- READ COMMITTED ----

fn uncommitted_rows_are_nobody_elses(stage: &Stage) {
    let (ann, bob) = counter(stage, "uncommitted");
    ann.ok(
        "begin; insert into uncommitted values (2, 2); update uncommitted set v = 9 where k = 1",
    );
    assert_eq!(ann.ok("select * from uncommitted order by k"), "1|9\n2|2");
    assert_eq!(bob.ok("select * from uncommitted order by k"), "1|0");
    ann.ok("rollback");
    assert_eq!(ann.ok("select * from uncommitted order by k"), "1|0");
}

fn temporary_tables_are_nobody_elses(stage: &Stage) {
    let (ann, bob) = (stage.session(), stage.session());
    for (session, value) in [(&ann, "1"), (&bob, "2")] {
        session.ok("create temp table own_rows (id int primary key, v text)");
        session.ok(&format!("insert into own_rows values (1, '{value}')"));
    }
    // The same text in both, so that a plan of one would be found by the other.
    let read = "select v from own_rows where id = 1";
    for (session, value) in [(&ann, "1"), (&bob, "2"), (&ann, "1"), (&bob, "2")] {
        assert_eq!(session.ok(read), value);
    }
    ann.ok("drop table own_rows");
    assert_eq!(ann.refused(read), "42P01");
    assert_eq!(bob.ok(read), "2");
    drop(bob);
    assert_eq!(stage.session().refused(read), "42P01");
}

fn read_committed_takes_a_snapshot_per_statement(stage: &Stage) {
    let (ann, bob) = counter(stage, "snapshots");
    bob.ok("begin");
    assert_eq!(bob.ok("select v from snapshots"), "0");
    ann.ok("update snapshots set v = 1");
    assert_eq!(bob.ok("select v from snapshots"), "1");
    ann.ok("insert into snapshots values (2, 2)");
    assert_eq!(bob.ok("select count(*) from snapshots"), "2");
    bob.ok("commit");
}

fn read_committed_updates_check_the_newest_version(stage: &Stage) {
    let (ann, bob) = counter(stage, "newest");
    ann.ok("begin; update newest set v = v + 1 where k = 1");
    bob.start("update newest set v = v + 10 where k = 1");
    bob.waits();
    ann.ok("commit");
    assert_eq!(bob.finish(), Ok("1 touched".into()));
    assert_eq!(ann.ok("select v from newest"), "11");
}

fn read_committed_skips_what_no_longer_matches(stage: &Stage) {
    let (ann, bob) = counter(stage, "nomatch");
    ann.ok("begin; update nomatch set v = 5");
    bob.start("update nomatch set v = v + 10 where v = 0");
    bob.waits();
    ann.ok("commit");
    assert_eq!(bob.finish(), Ok("0 touched".into()));
    ann.ok("begin; update nomatch set v = 6");
    bob.start("delete from nomatch where v = 5");
    bob.waits();
    ann.ok("rollback");
    assert_eq!(bob.finish(), Ok("1 touched".into()));
    assert_eq!(ann.ok("select count(*) from nomatch"), "0");
}

fn read_committed_skips_what_was_deleted(stage: &Stage) {
    let (ann, bob) = counter(stage, "deleted");
    ann.ok("begin; delete from deleted where k = 1");
    bob.start("update deleted set v = 7 where k = 1 returning v");
    bob.waits();
    ann.ok("commit");
    assert_eq!(bob.finish(), Ok("0 touched".into()));
}

fn read_committed_counts_every_increment(stage: &Stage) {
    let (_, watcher) = counter(stage, "increments");
    let sessions: Vec<Session> = (0..4).map(|_| stage.session()).collect();
    for session in &sessions {
        session.start(
            "do $$ begin for i in 1..50 loop \
             update increments set v = v + 1 where k = 1; commit; end loop; end $$",
        );
    }
    for session in &sessions {
        session.finish().expect("the increments");
    }
    assert_eq!(watcher.ok("select v from increments"), "200");
}

// ---- REPEATABLE READ ----

fn repeatable_read_keeps_its_snapshot(stage: &Stage) {
    let (ann, bob) = counter(stage, "kept_snapshot");
    bob.ok("begin isolation level repeatable read");
    assert_eq!(bob.ok("select * from kept_snapshot order by k"), "1|0");
    ann.ok("update kept_snapshot set v = 1; insert into kept_snapshot values (2, 2)");
    assert_eq!(bob.ok("select * from kept_snapshot order by k"), "1|0");
    bob.ok("insert into kept_snapshot values (3, 3)");
    assert_eq!(bob.ok("select * from kept_snapshot order by k"), "1|0\n3|3");
    bob.ok("commit");
    assert_eq!(
        bob.ok("select * from kept_snapshot order by k"),
        "1|1\n2|2\n3|3"
    );
}

fn repeatable_read_loses_to_an_earlier_update(stage: &Stage) {
    let (ann, bob) = counter(stage, "earlier");
    for change in [
        "update earlier set v = 2",
        "delete from earlier where k = 1",
        "select * from earlier for update",
    ] {
        bob.ok("begin isolation level repeatable read");
        bob.ok("select v from earlier");
        ann.ok("update earlier set v = v + 1");
        assert_eq!(bob.refused(change), "40001", "{change}");
        assert_eq!(bob.refused("select 1"), "25P02");
        bob.ok("rollback");
    }
    assert_eq!(ann.ok("select v from earlier"), "3");
}

fn repeatable_read_loses_to_an_update_it_waited_for(stage: &Stage) {
    let (ann, bob) = counter(stage, "waited");
    bob.ok("begin isolation level repeatable read");
    bob.ok("select v from waited");
    ann.ok("begin; update waited set v = 1");
    bob.start("update waited set v = 2");
    bob.waits();
    ann.ok("commit");
    let refusal = bob.finish().expect_err("the first updater wins");
    assert_eq!(refusal.state, "40001");
    assert_eq!(
        refusal.message,
        "could not serialize access due to concurrent update"
    );
    bob.ok("rollback");
    assert_eq!(bob.ok("select v from waited"), "1");
}

fn repeatable_read_goes_on_after_a_rollback(stage: &Stage) {
    let (ann, bob) = counter(stage, "rolled_back");
    bob.ok("begin isolation level repeatable read");
    bob.ok("select v from rolled_back");
    ann.ok("begin; update rolled_back set v = 1");
    bob.start("update rolled_back set v = 2");
    bob.waits();
    ann.ok("rollback");
    assert_eq!(bob.finish(), Ok("1 touched".into()));
    bob.ok("commit");
    assert_eq!(ann.ok("select v from rolled_back"), "2");
}

fn repeatable_read_allows_write_skew(stage: &Stage) {
    stage.table("skew", "k int primary key, v int", "(1, 1), (2, 1)");
    let (ann, bob) = (stage.session(), stage.session());
    for session in [&ann, &bob] {
        session.ok("begin isolation level repeatable read");
        assert_eq!(session.ok("select sum(v) from skew"), "2");
    }
    ann.ok("update skew set v = 0 where k = 1");
    bob.ok("update skew set v = 0 where k = 2");
    ann.ok("commit");
    bob.ok("commit");
    assert_eq!(ann.ok("select sum(v) from skew"), "0");
}

fn repeatable_read_counts_every_increment_with_retries(stage: &Stage) {
    let (_, watcher) = counter(stage, "retries");
    let increment = |session: &Session| loop {
        session.ok("begin isolation level repeatable read");
        let value: i32 = session
            .ok("select v from retries")
            .parse()
            .expect("a number");
        session.start(&format!("update retries set v = {}", value + 1));
        match session.finish() {
            Ok(_) => break session.ok("commit"),
            Err(refusal) => assert_eq!(refusal.state, "40001"),
        }
        session.ok("rollback");
    };
    let sessions: Vec<Session> = (0..3).map(|_| stage.session()).collect();
    std::thread::scope(|scope| {
        for session in sessions {
            scope.spawn(move || (0..20).for_each(|_| drop(increment(&session))));
        }
    });
    assert_eq!(watcher.ok("select v from retries"), "60");
}

// ---- Keys ----

fn inserts_of_one_key_wait_for_each_other(stage: &Stage) {
    let (ann, bob) = counter(stage, "onekey");
    ann.ok("begin; insert into onekey values (2, 1)");
    bob.start("insert into onekey values (2, 2)");
    bob.waits();
    ann.ok("commit");
    assert_eq!(bob.finish().expect_err("there is one").state, "23505");
    ann.ok("begin; insert into onekey values (3, 1)");
    bob.start("insert into onekey values (3, 2)");
    bob.waits();
    ann.ok("rollback");
    assert_eq!(bob.finish(), Ok("1 touched".into()));
    ann.ok("begin; delete from onekey where k = 3");
    bob.start("insert into onekey values (3, 3)");
    bob.waits();
    ann.ok("commit");
    assert_eq!(bob.finish(), Ok("1 touched".into()));
    assert_eq!(ann.ok("select * from onekey order by k"), "1|0\n2|1\n3|3");
}

fn on_conflict_waits_for_the_other_insert(stage: &Stage) {
    let (ann, bob) = counter(stage, "conflicts");
    ann.ok("begin; insert into conflicts values (2, 1)");
    bob.start("insert into conflicts values (2, 2) on conflict do nothing");
    bob.waits();
    ann.ok("commit");
    assert_eq!(bob.finish(), Ok("0 touched".into()));
    ann.ok("begin; insert into conflicts values (3, 1)");
    bob.start(
        "insert into conflicts values (3, 2) on conflict (k) do update set v = conflicts.v + 10",
    );
    bob.waits();
    ann.ok("commit");
    assert_eq!(bob.finish(), Ok("1 touched".into()));
    assert_eq!(ann.ok("select v from conflicts where k = 3"), "11");
}

fn unique_columns_wait_like_keys(stage: &Stage) {
    stage.table("uniques", "k int primary key, v int unique", "(1, 1)");
    let (ann, bob) = (stage.session(), stage.session());
    ann.ok("begin; update uniques set v = 2 where k = 1");
    bob.start("insert into uniques values (2, 2)");
    bob.waits();
    ann.ok("commit");
    assert_eq!(bob.finish().expect_err("there is one").state, "23505");
    ann.ok("begin; update uniques set v = 3 where k = 1");
    bob.start("insert into uniques values (2, 2)");
    bob.waits();
    ann.ok("commit");
    assert_eq!(bob.finish(), Ok("1 touched".into()));
}

// ---- Waiting ----

fn rows_can_be_locked_by_reading(stage: &Stage) {
    stage.table("locked", "k int primary key, v int", "(1, 1), (2, 2)");
    let (ann, bob) = (stage.session(), stage.session());
    ann.ok("begin");
    assert_eq!(ann.ok("select v from locked where k = 1 for update"), "1");
    assert_eq!(
        bob.refused("select v from locked where k = 1 for update nowait"),
        "55P03"
    );
    assert_eq!(
        bob.ok("select v from locked order by k for update skip locked"),
        "2"
    );
    assert_eq!(bob.ok("select v from locked where k = 1"), "1");
    bob.start("update locked set v = 3 where k = 1");
    bob.waits();
    ann.ok("commit");
    assert_eq!(bob.finish(), Ok("1 touched".into()));
    // Those who only share do not wait for one another.
    ann.ok("begin; select v from locked where k = 1 for share");
    bob.ok("begin");
    assert_eq!(bob.ok("select v from locked where k = 1 for share"), "3");
    bob.ok("commit");
    bob.start("delete from locked where k = 1");
    bob.waits();
    ann.ok("commit");
    assert_eq!(bob.finish(), Ok("1 touched".into()));
}

fn readers_never_wait_for_writers(stage: &Stage) {
    let (ann, bob) = counter(stage, "readers");
    ann.ok("begin; update readers set v = 1; insert into readers values (2, 2)");
    assert_eq!(bob.ok("select * from readers order by k"), "1|0");
    bob.ok("begin isolation level repeatable read");
    assert_eq!(bob.ok("select count(*) from readers"), "1");
    // Nor writers for readers.
    ann.ok("commit");
    ann.ok("delete from readers");
    assert_eq!(bob.ok("select count(*) from readers"), "1");
    bob.ok("commit");
    assert_eq!(bob.ok("select count(*) from readers"), "0");
}

// ---- Time limits ----

fn lock_timeout_ends_the_wait(stage: &Stage) {
    let (ann, bob) = counter(stage, "lock_time");
    ann.ok("begin; update lock_time set v = 1");
    bob.ok("set lock_timeout = '100ms'");
    bob.start("update lock_time set v = 2");
    let refusal = bob.finish().expect_err("the lock is held");
    assert_eq!(refusal.state, "55P03");
    assert_eq!(refusal.message, "canceling statement due to lock timeout");
    // In a block it spoils the block, and a savepoint saves it.
    bob.ok("begin; insert into lock_time values (5, 5); savepoint s");
    assert_eq!(bob.refused("delete from lock_time where k = 1"), "55P03");
    assert_eq!(bob.refused("select 1"), "25P02");
    bob.ok("rollback to s; commit");
    assert_eq!(bob.refused("truncate lock_time"), "55P03");
    ann.ok("commit");
    bob.ok("update lock_time set v = 2 where k = 1");
    assert_eq!(ann.ok("select * from lock_time order by k"), "1|2\n5|5");
}

fn lock_timeout_can_be_caught(stage: &Stage) {
    let (ann, bob) = counter(stage, "lock_caught");
    ann.ok("begin; update lock_caught set v = 1");
    bob.ok("set lock_timeout = '100ms'");
    bob.ok("do $$ begin \
            begin update lock_caught set v = 2; \
            exception when lock_not_available then insert into lock_caught values (2, 2); end; \
            end $$");
    ann.ok("rollback");
    assert_eq!(ann.ok("select * from lock_caught order by k"), "1|0\n2|2");
}

fn statement_timeout_ends_a_wait(stage: &Stage) {
    let (ann, bob) = counter(stage, "statement_time");
    ann.ok("begin; update statement_time set v = 1");
    bob.ok("set statement_timeout = '100ms'");
    bob.start("update statement_time set v = 2");
    let refusal = bob.finish().expect_err("the lock is held");
    assert_eq!(refusal.state, "57014");
    assert_eq!(
        refusal.message,
        "canceling statement due to statement timeout"
    );
    ann.ok("commit");
    assert_eq!(bob.ok("select v from statement_time"), "1");
}

/// Longer than anybody waits.
const COMPUTATION: &str =
    "select count(*) from generate_series(1, 100000) a, generate_series(1, 100000) b";

fn statement_timeout_ends_a_computation(stage: &Stage) {
    let bob = stage.session();
    bob.ok("set statement_timeout = '200ms'");
    assert_eq!(bob.refused(COMPUTATION), "57014");
    assert_eq!(
        bob.refused("do $$ begin loop perform 1; end loop; end $$"),
        "57014"
    );
    // `others` does not catch it.
    assert_eq!(
        bob.refused(
            "do $$ begin begin loop null; end loop; exception when others then null; end; end $$"
        ),
        "57014"
    );
    assert_eq!(bob.ok("select 1"), "1");
}

// ---- Deadlocks ----

fn a_deadlock_has_one_victim(stage: &Stage) {
    deadlock(stage, "deadlock2", 2);
}

fn a_deadlock_of_three_has_one_victim(stage: &Stage) {
    deadlock(stage, "deadlock3", 3);
}

/// Each session holds its row and wants the next one's.
fn deadlock(stage: &Stage, table: &str, count: usize) {
    let rows: Vec<String> = (0..count).map(|row| format!("({row}, 0)")).collect();
    stage.table(table, "k int primary key, v int", &rows.join(", "));
    let sessions: Vec<Session> = (0..count).map(|_| stage.session()).collect();
    let add = |row: usize| format!("update {table} set v = v + 1 where k = {row}");
    for (row, session) in sessions.iter().enumerate() {
        session.ok(&format!("begin; {}", add(row)));
    }
    for (row, session) in sessions.iter().enumerate() {
        session.start(&add((row + 1) % count));
    }
    // Whoever is left waiting goes on as the one before it ends.
    let (told, outcomes) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        for session in sessions {
            let told = told.clone();
            scope.spawn(move || {
                let outcome = session.finish();
                session.ok("commit");
                told.send(outcome).expect("the test lives");
            });
        }
    });
    drop(told);
    let victims: Vec<_> = outcomes.iter().filter_map(Result::err).collect();
    assert_eq!(victims.len(), 1, "{victims:?}");
    assert_eq!(victims[0].state, "40P01");
    assert_eq!(victims[0].message, "deadlock detected");
    let sum = stage.session().ok(&format!("select sum(v) from {table}"));
    assert_eq!(sum, (2 * (count - 1)).to_string());
}

// ---- Locks given back ----

fn a_savepoint_gives_its_locks_back(stage: &Stage) {
    stage.table("savepoints", "k int primary key, v int", "(1, 0), (2, 0)");
    let (ann, bob) = (stage.session(), stage.session());
    ann.ok("begin; update savepoints set v = 1 where k = 1; savepoint s");
    ann.ok("update savepoints set v = 1 where k = 2");
    bob.start("update savepoints set v = 2 where k = 2");
    bob.waits();
    ann.ok("rollback to s");
    assert_eq!(bob.finish(), Ok("1 touched".into()));
    bob.start("update savepoints set v = 2 where k = 1");
    bob.waits();
    ann.ok("commit");
    assert_eq!(bob.finish(), Ok("1 touched".into()));
    assert_eq!(ann.ok("select * from savepoints order by k"), "1|2\n2|2");
}

fn a_failed_transaction_gives_its_locks_back(stage: &Stage) {
    let (ann, bob) = counter(stage, "failed");
    ann.ok("begin; update failed set v = 1");
    assert_eq!(ann.refused("select 1 / 0"), "22012");
    assert_eq!(bob.ok("update failed set v = 2"), "1 touched");
    ann.ok("rollback");
    assert_eq!(ann.ok("select v from failed"), "2");
}

fn a_client_that_goes_gives_its_locks_back(stage: &Stage) {
    let (ann, bob) = counter(stage, "gone");
    ann.ok("begin; update gone set v = 1");
    bob.start("update gone set v = v + 10");
    bob.waits();
    drop(ann);
    assert_eq!(bob.finish(), Ok("1 touched".into()));
    assert_eq!(bob.ok("select v from gone"), "10");
}

fn a_client_that_breaks_off_gives_its_locks_back(stage: &Stage) {
    let (_, bob) = counter(stage, "broken_off");
    for node in stage.nodes() {
        let mut ann = Raw::connect(node);
        ann.query("begin");
        ann.until(b'Z');
        ann.query("update broken_off set v = 100");
        ann.until(b'Z');
        bob.start("update broken_off set v = v + 1");
        bob.waits();
        // In the middle of a message, without a word.
        ann.stream.write_all(b"Q\0\0\x10\0selec").expect("a part");
        drop(ann);
        assert_eq!(bob.finish(), Ok("1 touched".into()));
    }
    let count = stage.nodes().len().to_string();
    assert_eq!(bob.ok("select v from broken_off"), count);
}

// ---- Cancelling ----

fn a_driver_cancels_a_wait(stage: &Stage) {
    let (ann, bob) = counter(stage, "cancelled");
    ann.ok("begin; update cancelled set v = 1");
    bob.ok("begin");
    bob.start("update cancelled set v = 2");
    bob.waits();
    bob.cancel();
    let refusal = bob.finish().expect_err("it was cancelled");
    assert_eq!(refusal.state, "57014");
    assert_eq!(refusal.message, "canceling statement due to user request");
    assert_eq!(bob.refused("select 1"), "25P02");
    bob.ok("rollback");
    ann.ok("commit");
    assert_eq!(bob.ok("select v from cancelled"), "1");
}

fn a_driver_cancels_a_computation(stage: &Stage) {
    let bob = stage.session();
    for statement in [
        COMPUTATION,
        "do $$ begin loop perform 1; end loop; end $$",
        "do $$ begin loop null; end loop; end $$",
    ] {
        bob.start(statement);
        bob.waits();
        bob.cancel();
        assert_eq!(bob.finish().expect_err("it was cancelled").state, "57014");
        assert_eq!(bob.ok("select 1"), "1");
    }
}

fn a_cancel_request_works_through_any_node(stage: &Stage) {
    let (ann, _) = counter(stage, "any_node");
    ann.ok("begin; update any_node set v = 1");
    for to in stage.nodes() {
        for through in stage.nodes() {
            let mut bob = Raw::connect(to);
            bob.query("update any_node set v = 2");
            std::thread::sleep(std::time::Duration::from_millis(50));
            cancel(through, &bob.key);
            let error = bob.until(b'E');
            assert!(
                error.contains("57014"),
                "of {} through {}: {error}",
                to.host,
                through.host
            );
            bob.until(b'Z');
            bob.query("select 1");
            bob.until(b'D');
        }
    }
    ann.ok("rollback");
}

fn a_cancel_request_needs_the_right_key(stage: &Stage) {
    let (ann, _) = counter(stage, "wrong_key");
    ann.ok("begin; update wrong_key set v = 1");
    let mut bob = Raw::connect(&stage.nodes()[0]);
    bob.query("update wrong_key set v = v + 2");
    for node in stage.nodes() {
        let mut key = bob.key;
        key[7] ^= 1;
        cancel(node, &key);
        cancel(node, &[0xff; 8]);
    }
    ann.ok("commit");
    let complete = bob.until(b'C');
    assert!(complete.starts_with("UPDATE 1"), "{complete}");
    assert_eq!(ann.ok("select v from wrong_key"), "3");
}

// ---- Tables ----

fn truncate_waits_for_a_writer(stage: &Stage) {
    let (ann, bob) = counter(stage, "truncated");
    ann.ok("begin; insert into truncated values (2, 2)");
    bob.start("truncate truncated");
    bob.waits();
    ann.ok("commit");
    bob.finish().expect("it is truncated");
    assert_eq!(ann.ok("select count(*) from truncated"), "0");
}

fn others_wait_for_truncate(stage: &Stage) {
    let (ann, bob) = counter(stage, "truncating");
    ann.ok("begin; truncate truncating; insert into truncating values (7, 7)");
    bob.start("insert into truncating values (1, 1)");
    bob.waits();
    ann.ok("commit");
    assert_eq!(bob.finish(), Ok("1 touched".into()));
    assert_eq!(ann.ok("select k from truncating order by k"), "1\n7");
    ann.ok("begin; truncate truncating");
    bob.start("update truncating set v = 0");
    bob.waits();
    ann.ok("rollback");
    assert_eq!(bob.finish(), Ok("2 touched".into()));
}

fn drop_waits_for_a_writer(stage: &Stage) {
    let (ann, bob) = counter(stage, "dropped");
    ann.ok("begin; update dropped set v = 1");
    bob.start("drop table dropped");
    bob.waits();
    ann.ok("commit");
    bob.finish().expect("it is dropped");
    assert_eq!(ann.refused("select * from dropped"), "42P01");
    ann.ok("create table dropped (other text)");
    bob.ok("insert into dropped values ('x')");
    assert_eq!(ann.ok("select * from dropped"), "x");
}

fn a_do_block_commits_for_everybody(stage: &Stage) {
    let (ann, bob) = counter(stage, "do_commits");
    ann.ok("begin; update do_commits set v = 1 where k = 1");
    bob.start(
        "do $$ begin insert into do_commits values (2, 2); commit; \
         update do_commits set v = v + 10 where k = 1; rollback; \
         insert into do_commits values (3, 3); end $$",
    );
    bob.waits();
    // The block waits for a lock, and what it has committed is there.
    assert_eq!(ann.ok("select v from do_commits where k = 2"), "2");
    ann.ok("commit");
    bob.finish().expect("the block ends");
    assert_eq!(
        ann.ok("select * from do_commits order by k"),
        "1|1\n2|2\n3|3"
    );
}

// ---- Drivers ----

fn parameters_and_transactions_of_a_driver(stage: &Stage) {
    stage.table(
        "driven",
        "k int primary key, b bool, i8 int8, n text, f float8, x bytea",
        "",
    );
    for (number, node) in (0..).zip(stage.nodes()) {
        let mut client = crate::writers::connect(node).expect("a session");
        let insert = client
            .prepare("insert into driven values ($1, $2, $3, $4, $5, $6)")
            .expect("a statement");
        let bytes: &[u8] = &[0, 255, number as u8];
        for (k, text) in [(number, Some("one")), (number + 10, None)] {
            let inserted = client
                .execute(&insert, &[&k, &true, &i64::MAX, &text, &1.5f64, &bytes])
                .expect("a row");
            assert_eq!(inserted, 1);
        }
        let again = client.execute(&insert, &[&number, &false, &0i64, &"", &0f64, &bytes]);
        let error = again.expect_err("there is one");
        assert_eq!(
            error.code().map(postgres::error::SqlState::code),
            Some("23505")
        );

        let mut transaction = client.transaction().expect("a transaction");
        let select = "select k, b, i8, n, f, x from driven where k = $1";
        let row = transaction.query_one(select, &[&number]).expect("the row");
        assert_eq!(row.get::<_, i32>(0), number);
        assert!(row.get::<_, bool>(1));
        assert_eq!(row.get::<_, i64>(2), i64::MAX);
        assert_eq!(row.get::<_, Option<&str>>(3), Some("one"));
        assert_eq!(row.get::<_, f64>(4).to_bits(), 1.5f64.to_bits());
        assert_eq!(row.get::<_, &[u8]>(5), bytes);
        transaction
            .execute("delete from driven where k >= $1", &[&0])
            .expect("rows go");
        transaction.rollback().expect("they come back");
        let count: i64 = client
            .query_one("select count(*) from driven where n is null", &[])
            .expect("a count")
            .get(0);
        assert_eq!(count, i64::from(number) + 1);
        // A portal that is read part by part.
        let mut transaction = client.transaction().expect("a transaction");
        let portal = transaction
            .bind("select g from generate_series(1, $1) g", &[&5i32])
            .expect("a portal");
        let mut read = |most| -> Vec<i32> {
            let rows = transaction.query_portal(&portal, most).expect("rows");
            rows.iter().map(|row| row.get(0)).collect()
        };
        assert_eq!(read(2), [1, 2]);
        assert_eq!(read(2), [3, 4]);
        assert_eq!(read(0), [5]);
    }
}

/// A message: its kind and its body.
type Message = (u8, &'static [u8]);

/// Extended messages that go wrong, and the SQLSTATE that each must have.
const MISTAKES: [(&str, &[Message], &str); 10] = [
    ("a syntax error", &[(b'P', b"\0selec\0\0\0")], "42601"),
    (
        "two statements",
        &[(b'P', b"\0select 1; select 2\0\0\0")],
        "42601",
    ),
    (
        "parameters of any type",
        &[(b'P', b"\0select $1 + $2\0\0\0")],
        "42725",
    ),
    (
        "no such statement",
        &[(b'B', b"\0nosuch\0\0\0\0\0\0\0")],
        "26000",
    ),
    ("no such portal", &[(b'E', b"nosuch\0\0\0\0\0")], "34000"),
    ("nothing to describe", &[(b'D', b"Snosuch\0")], "26000"),
    (
        "too few parameters",
        &[
            (b'P', b"\0select $1::int\0\0\0"),
            (b'B', b"\0\0\0\0\0\0\0\0"),
        ],
        "08P01",
    ),
    (
        "a bad text",
        &[
            (b'P', b"\0select $1::int\0\0\0"),
            (b'B', b"\0\0\0\0\0\x01\0\0\0\x01x\0\0"),
        ],
        "22P02",
    ),
    (
        "a short binary",
        &[
            (b'P', b"\0select $1::int\0\0\0"),
            (b'B', b"\0\0\0\x01\0\x01\0\x01\0\0\0\x01x\0\0"),
        ],
        "08P01",
    ),
    ("no UTF-8", &[(b'P', b"\0select '\xff'\0\0\0")], "22021"),
];

fn mistakes_in_the_protocol_are_errors_and_no_more(stage: &Stage) {
    for node in stage.nodes() {
        let mut session = Raw::connect(node);
        for (what, messages, state) in MISTAKES {
            for (kind, body) in messages {
                session.send(Some(*kind), body);
            }
            // Up to Sync nothing more is done.
            session.send(Some(b'P'), b"\0select 1\0\0\0");
            session.send(Some(b'S'), b"");
            let error = session.until(b'E');
            assert!(error.contains(&format!("C{state}\0")), "{what}: {error:?}");
            assert_eq!(session.until(b'Z'), "I", "{what}");
            session.query("select 1");
            assert!(session.until(b'D').ends_with('1'), "{what}");
            session.until(b'Z');
        }
    }
}

// ---- Quorate alone: PostgreSQL lets waiters overtake one another ----

#[test]
fn waiters_are_served_in_their_order() {
    let stage = Stage::quorate();
    stage.table("queue", "k int primary key, v text", "(1, '')");
    let holder = stage.session();
    holder.ok("begin; update queue set v = v || 'a' where k = 1");
    let waiters: Vec<Session> = ["b", "c", "d"]
        .iter()
        .map(|name| {
            let waiter = stage.session();
            waiter.start(&format!(
                "update queue set v = v || '{name}' where k = 1 returning v"
            ));
            waiter.waits();
            waiter
        })
        .collect();
    holder.ok("commit");
    let seen: Vec<String> = waiters
        .iter()
        .map(|waiter| waiter.finish().expect("its turn"))
        .collect();
    assert_eq!(seen, ["ab", "abc", "abcd"]);
}

// ---- Advisory locks, SERIALIZABLE ----

fn advisory_locks_go_with_their_session(stage: &Stage) {
    let (ann, bob) = (stage.session(), stage.session());
    ann.ok("select pg_advisory_lock(810), pg_advisory_lock_shared(8, 11)");
    bob.start("select pg_advisory_lock(810), pg_advisory_lock(8, 11), 'got them'");
    bob.waits();
    drop(ann);
    assert_eq!(bob.finish(), Ok("||got them".into()));
    bob.ok("discard all");
    let eve = stage.session();
    assert_eq!(
        eve.ok("select pg_try_advisory_xact_lock(810), pg_try_advisory_xact_lock(8, 11)"),
        "t|t"
    );
}

fn lock_timeout_ends_a_wait_for_an_advisory_lock(stage: &Stage) {
    let (ann, bob) = (stage.session(), stage.session());
    ann.ok("select pg_advisory_lock(812)");
    bob.ok("set lock_timeout = '50ms'");
    assert_eq!(bob.refused("select pg_advisory_lock(812)"), "55P03");
    assert_eq!(
        bob.refused("select pg_advisory_xact_lock_shared(812)"),
        "55P03"
    );
    assert_eq!(bob.ok("select pg_advisory_unlock(812)"), "f");
    assert_eq!(ann.ok("select pg_advisory_unlock(812)"), "t");
    bob.ok("select pg_advisory_lock(812); select pg_advisory_unlock_all()");
}

fn serializable_transactions_count_every_increment_with_retries(stage: &Stage) {
    let (_, watcher) = counter(stage, "serial_increments");
    let sessions: Vec<Session> = (0..4).map(|_| stage.session()).collect();
    std::thread::scope(|scope| {
        for session in sessions {
            scope.spawn(move || {
                for _ in 0..25 {
                    let add = "begin isolation level serializable; \
                               insert into serial_increments \
                               select max(k) + 1, 0 from serial_increments; commit";
                    while let Err(refusal) = session.answer(add) {
                        assert!(
                            ["40001", "23505"].contains(&refusal.state.as_str()),
                            "{refusal:?}"
                        );
                        session.ok("rollback");
                    }
                }
            });
        }
    });
    assert_eq!(
        watcher.ok("select count(*), max(k) from serial_increments"),
        "101|101"
    );
}

// ---- The protocol by hand ----

/// A session without a driver.
struct Raw {
    stream: TcpStream,
    /// Process id and secret, as BackendKeyData gives them.
    key: [u8; 8],
}

impl Raw {
    fn connect(node: &Endpoint) -> Raw {
        let stream = TcpStream::connect((node.host.as_str(), node.port)).expect("a connection");
        let limit = Some(std::time::Duration::from_secs(20));
        stream.set_read_timeout(limit).expect("a time limit");
        let mut raw = Raw {
            stream,
            key: [0; 8],
        };
        let body = b"\0\x03\0\0user\0postgres\0database\0postgres\0\0";
        raw.send(None, body);
        raw.until(b'Z');
        raw
    }

    fn send(&mut self, kind: Option<u8>, body: &[u8]) {
        let mut message: Vec<u8> = kind.into_iter().collect();
        let length = u32::try_from(body.len() + 4).expect("a short message");
        message.extend(length.to_be_bytes());
        message.extend(body);
        self.stream.write_all(&message).expect("it is sent");
    }

    fn query(&mut self, sql: &str) {
        self.send(Some(b'Q'), format!("{sql}\0").as_bytes());
    }

    /// Reads up to a message of that kind and returns its body.
    fn until(&mut self, kind: u8) -> String {
        loop {
            let mut head = [0; 5];
            self.stream.read_exact(&mut head).expect("a message");
            let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
            let mut body = vec![0; length as usize - 4];
            self.stream.read_exact(&mut body).expect("its body");
            if head[0] == b'K' {
                self.key.copy_from_slice(&body);
            }
            if head[0] == kind {
                return String::from_utf8_lossy(&body).into_owned();
            }
        }
    }
}

/// Sends a CancelRequest and waits until the server has closed the connection.
fn cancel(node: &Endpoint, key: &[u8; 8]) {
    let mut stream = TcpStream::connect((node.host.as_str(), node.port)).expect("a connection");
    let request = [&16u32.to_be_bytes()[..], &80_877_102u32.to_be_bytes(), key].concat();
    stream.write_all(&request).expect("it is sent");
    let read = stream.read_to_end(&mut Vec::new()).expect("it is closed");
    assert_eq!(read, 0, "a cancel request was answered");
}
