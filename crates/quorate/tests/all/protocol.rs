//! The protocol: COPY, portals, cancelling and ending sessions, what is seen of them.
//!
//! Scenarios run on PostgreSQL 15 and on three nodes of Quorate with the same assertions. Messages as
//! bytes are in [`crate::transcripts`].

use std::io::{Read, Write};
use std::thread::sleep;
use std::time::Duration;

use postgres::{Client, NoTls};

use crate::shared;
use crate::stage::{Session, Stage};
use crate::transcripts::Wire;
use crate::writers::connect;

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
    a_driver_copies_in_and_out
    a_copy_that_is_given_up_leaves_nothing
    portals_give_rows_as_they_are_asked_for
    portals_see_what_they_saw_when_they_began
    a_session_ends_another
    a_session_cancels_another
    sessions_see_what_others_do
    idling_in_a_transaction_ends_the_session
    idling_ends_the_session
}

/// So many rows are copied.
const COPIED_ROWS: u64 = 20_000;

fn state(error: &postgres::Error) -> &str {
    error.code().map_or("none", |state| state.code())
}

// ---- COPY ----

fn a_driver_copies_in_and_out(stage: &Stage) {
    stage.table("copied", "k int primary key, v text", "");
    for (number, node) in (0u64..).zip(stage.nodes()) {
        let mut client = connect(node).expect("a session");
        let mut writer = client.copy_in("copy copied from stdin").expect("COPY");
        for row in 0..COPIED_ROWS {
            let key = number * COPIED_ROWS + row;
            writeln!(writer, "{key}\trow {key}").expect("it is taken");
        }
        assert_eq!(writer.finish().expect("they are copied"), COPIED_ROWS);
        let mut text = String::new();
        let mut reader = client
            .copy_out("copy (select * from copied order by k) to stdout")
            .expect("COPY");
        reader.read_to_string(&mut text).expect("rows");
        drop(reader);
        let rows = (0..(number + 1) * COPIED_ROWS).map(|key| format!("{key}\trow {key}\n"));
        assert!(text == rows.collect::<String>(), "other rows came out");
        // Whoever reads slowly, or stops reading, disturbs nobody.
        let mut reader = client.copy_out("copy copied to stdout").expect("COPY");
        let mut few = [0; 100];
        reader.read_exact(&mut few).expect("some bytes");
        drop(reader);
        let one: i32 = client.query_one("select 1", &[]).expect("a row").get(0);
        assert_eq!(one, 1);
    }
}

fn a_copy_that_is_given_up_leaves_nothing(stage: &Stage) {
    stage.table("given_up", "k int primary key", "");
    for node in stage.nodes() {
        let mut client = connect(node).expect("a session");
        let mut writer = client.copy_in("copy given_up from stdin").expect("COPY");
        writer.write_all(b"1\n2\n").expect("it is taken");
        writer.flush().expect("it is sent");
        // The driver says CopyFail.
        drop(writer);
        let mut writer = client.copy_in("copy given_up from stdin").expect("COPY");
        for _ in 0..10_000 {
            // The server may have closed its ear already.
            if writer.write_all(b"3\nnonsense\n").is_err() {
                break;
            }
        }
        let error = writer.finish().expect_err("it is no number");
        assert_eq!(state(&error), "22P02");
        let context = error.as_db_error().and_then(|error| error.where_());
        assert_eq!(
            context,
            Some("COPY given_up, line 2, column k: \"nonsense\"")
        );
        let count: i64 = client
            .query_one("select count(*) from given_up", &[])
            .expect("a row")
            .get(0);
        assert_eq!(count, 0);
    }
}

// ---- Portals ----

fn portals_give_rows_as_they_are_asked_for(stage: &Stage) {
    stage.table("portioned", "k int primary key", "");
    for node in stage.nodes() {
        let mut client = connect(node).expect("a session");
        client
            .batch_execute(
                "truncate portioned; insert into portioned select generate_series(1, 1000)",
            )
            .expect("rows");
        let mut transaction = client.transaction().expect("a transaction");
        // Its third row cannot be computed, and nobody asks for it at first.
        let failing = transaction
            .bind("select 10 / (3 - k) from portioned where k < $1", &[&10i32])
            .expect("a portal");
        let other = transaction
            .bind("select k from portioned order by k desc", &[])
            .expect("a portal");
        let numbers =
            |rows: Vec<postgres::Row>| -> Vec<i32> { rows.iter().map(|row| row.get(0)).collect() };
        let rows = transaction.query_portal(&failing, 1).expect("a row");
        assert_eq!(numbers(rows), [5]);
        let rows = transaction.query_portal(&other, 2).expect("rows");
        assert_eq!(numbers(rows), [1000, 999]);
        let rows = transaction.query_portal(&failing, 1).expect("a row");
        assert_eq!(numbers(rows), [10]);
        let rows = transaction.query_portal(&other, 3).expect("rows");
        assert_eq!(numbers(rows), [998, 997, 996]);
        let rows = transaction.query_portal(&other, 0).expect("rows");
        assert_eq!(rows.len(), 995);
        assert!(transaction
            .query_portal(&other, 0)
            .expect("nothing")
            .is_empty());
        let error = transaction
            .query_portal(&failing, 1)
            .expect_err("a division by zero");
        assert_eq!(state(&error), "22012");
    }
}

fn portals_see_what_they_saw_when_they_began(stage: &Stage) {
    let bob = stage.session();
    for node in stage.nodes() {
        stage.table(
            "viewed",
            "k int primary key, v int",
            "(1, 1), (2, 2), (3, 3)",
        );
        let mut client = connect(node).expect("a session");
        let mut transaction = client.transaction().expect("a transaction");
        transaction
            .execute("update viewed set v = 10 where k = 2", &[])
            .expect("a row");
        let portal = transaction
            .bind("select k, v from viewed order by k", &[])
            .expect("a portal");
        let read = |transaction: &mut postgres::Transaction<'_>, most| -> Vec<(i32, i32)> {
            let rows = transaction.query_portal(&portal, most).expect("rows");
            rows.iter().map(|row| (row.get(0), row.get(1))).collect()
        };
        assert_eq!(read(&mut transaction, 1), [(1, 1)]);
        bob.ok("update viewed set v = 30 where k = 3");
        bob.ok("insert into viewed values (4, 4)");
        transaction
            .execute("update viewed set v = 20 where k = 2", &[])
            .expect("a row");
        transaction
            .execute("update viewed set v = 21 where k = 2", &[])
            .expect("a row");
        let now = transaction
            .query("select v from viewed where k > 1 order by k", &[])
            .expect("rows");
        let now: Vec<i32> = now.iter().map(|row| row.get(0)).collect();
        assert_eq!(now, [21, 30, 4]);
        assert_eq!(read(&mut transaction, 0), [(2, 10), (3, 3)]);
        transaction.commit().expect("a commit");
    }
}

// ---- Sessions and others ----

fn pid(session: &Session) -> String {
    session.ok("select pg_backend_pid()")
}

fn a_session_ends_another(stage: &Stage) {
    stage.table("ended", "k int primary key, v int", "(1, 0)");
    let ann = stage.session();
    // One that idles.
    let bob = stage.session();
    let ended = ann.ok(&format!(
        "select pg_terminate_backend({}, 10000)",
        pid(&bob)
    ));
    assert_eq!(ended, "t");
    bob.start("select 1");
    assert!(bob.finish().is_err(), "it goes on");
    // One that waits, and holds what another wants.
    let tom = stage.session();
    ann.ok("begin; update ended set v = 1");
    for node in stage.nodes() {
        let mut bob = Wire::connect(node);
        bob.query("begin; insert into ended values (2, 2)");
        bob.start("update ended set v = 2");
        tom.start("insert into ended values (2, 3)");
        tom.waits();
        let end = "select pg_terminate_backend(pid) from pg_stat_activity \
                   where query = 'update ended set v = 2'";
        assert_eq!(ann.ok(end), "t");
        let error = bob.fatal();
        assert!(
            error.contains("57P01")
                && error.contains("terminating connection due to administrator command"),
            "{error}"
        );
        assert_eq!(tom.finish(), Ok("1 touched".into()));
        tom.ok("delete from ended where k = 2");
    }
    ann.ok("rollback");
    assert_eq!(ann.ok("select pg_terminate_backend(1999999999)"), "f");
    assert_eq!(ann.refused("select pg_terminate_backend(1, -1)"), "22003");
}

fn a_session_cancels_another(stage: &Stage) {
    stage.table("called_off", "k int primary key, v int", "(1, 0)");
    let (ann, bob) = (stage.session(), stage.session());
    ann.ok("begin; update called_off set v = 1");
    let waiting = pid(&bob);
    bob.start("update called_off set v = 2");
    bob.waits();
    assert_eq!(ann.ok(&format!("select pg_cancel_backend({waiting})")), "t");
    assert_eq!(bob.finish().expect_err("it was cancelled").state, "57014");
    assert_eq!(bob.ok("select 1"), "1");
    ann.ok("rollback");
    assert_eq!(ann.ok("select pg_cancel_backend(1999999999)"), "f");
    assert_eq!(
        ann.refused("select pg_cancel_backend(pg_backend_pid())"),
        "57014"
    );
}

fn sessions_see_what_others_do(stage: &Stage) {
    stage.table("watched", "k int primary key, v int", "(1, 0)");
    let (ann, bob) = (stage.session(), stage.session());
    let watched = pid(&bob);
    let see = |what: &str| {
        ann.ok(&format!(
            "select {what} from pg_stat_activity where pid = {watched}"
        ))
    };
    // A client may have its answer a moment before others see that it idles.
    let shows = |what: &str, expected: &str| {
        for _ in 0..100 {
            if see(what) == expected {
                return;
            }
            sleep(Duration::from_millis(10));
        }
        assert_eq!(see(what), expected, "{what}");
    };
    bob.ok("set application_name = 'watched one'");
    shows(
        "datname, usename, application_name, state, backend_type, wait_event_type, wait_event",
        "postgres|postgres|watched one|idle|client backend|Client|ClientRead",
    );
    shows("query", "set application_name = 'watched one'");
    shows("xact_start", "NULL");
    shows(
        "client_addr is not null and client_port > 0 and datid > 0 and usesysid > 0",
        "t",
    );
    shows(
        "backend_start <= query_start and query_start <= state_change and state_change <= now()",
        "t",
    );
    bob.ok("begin");
    bob.ok("update watched set v = 1");
    shows("state", "idle in transaction");
    shows("query", "update watched set v = 1");
    shows("xact_start <= query_start", "t");
    assert_eq!(bob.refused("select 1 / 0"), "22012");
    shows("state", "idle in transaction (aborted)");
    bob.ok("rollback");
    bob.start("select pg_sleep(1)");
    bob.waits();
    shows("state, query", "active|select pg_sleep(1)");
    bob.finish().expect("it has slept");
    shows("state", "idle");
    let tom = stage.session();
    tom.ok("begin; update watched set v = 5");
    bob.start("update watched set v = 6");
    bob.waits();
    shows(
        "state, wait_event_type, wait_event",
        "active|Lock|transactionid",
    );
    tom.ok("rollback");
    bob.finish().expect("it goes on");
    // A session sees itself at work.
    let own = "select state, query from pg_stat_activity where pid = pg_backend_pid()";
    assert_eq!(ann.ok(own), format!("active|{own}"));
    // Who has gone is seen no more.
    drop(bob);
    for _ in 0..100 {
        if see("pid").contains("touched") {
            return;
        }
        sleep(Duration::from_millis(50));
    }
    panic!("it is seen though it is gone");
}

// ---- Idle sessions ----

fn idling_in_a_transaction_ends_the_session(stage: &Stage) {
    stage.table("left_open", "k int primary key, v int", "(1, 0)");
    let ann = stage.session();
    for node in stage.nodes() {
        let mut bob = Wire::connect(node);
        bob.query("set idle_in_transaction_session_timeout = '300ms'");
        bob.query("set idle_session_timeout = '10s'");
        // Outside of a transaction it may idle.
        sleep(Duration::from_millis(500));
        bob.query("begin");
        bob.query("update left_open set v = v + 1");
        let error = bob.fatal();
        assert!(
            error.contains("25P03")
                && error.contains("terminating connection due to idle-in-transaction timeout"),
            "{error}"
        );
        assert_eq!(ann.ok("update left_open set v = 0"), "1 touched");
    }
}

fn idling_ends_the_session(stage: &Stage) {
    for node in stage.nodes() {
        let mut bob = Wire::connect(node);
        bob.query("set idle_session_timeout = '300ms'");
        let error = bob.fatal();
        assert!(
            error.contains("57P05")
                && error.contains("terminating connection due to idle-session timeout"),
            "{error}"
        );
    }
}

#[test]
fn a_client_may_connect_by_any_driver_setting() {
    let node = &shared::one_node().nodes()[0];
    let config = format!(
        "host={} port={} user=postgres dbname=postgres application_name=driver options='-c statement_timeout=5s'",
        node.host, node.port
    );
    let mut client = Client::connect(&config, NoTls).expect("a session");
    let row = client
        .query_one(
            "select current_setting('application_name'), current_setting('statement_timeout')",
            &[],
        )
        .expect("a row");
    assert_eq!(row.get::<_, &str>(0), "driver");
    assert_eq!(row.get::<_, &str>(1), "5s");
}
