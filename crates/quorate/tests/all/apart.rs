//! Tables whose group another node leads answer as those of the session's own node do: the same steps run
//! over both, and what is told is compared, rows, counts, errors with all their fields. What goes to another
//! node goes in batches, which must not be seen in any answer.

use std::io::Write;

use lab::host::{wait_for, Endpoint, PATIENCE};
use postgres::{Client, SimpleQueryMessage};

use crate::failover::Stage;
use crate::writers::connect;

/// What all steps of a place look at.
const TABLES: &str = "
    create table t(i int primary key, u int unique, s text) {lies};
    create table c(i int primary key, t int references t on delete cascade on update cascade) {lies};
    create table n(v int) {lies};
    create table seen(what text) {lies};
    create function f(i int) returns int language plpgsql as $$
    begin
        update t set s = coalesce(s, '') || 'f' where t.i = f.i + 1;
        return i;
    end $$;
    create function g(a int) returns text language plpgsql as $$
    begin
        insert into t values (a, 1), (a + 1, 2);
        return 'written';
    exception when unique_violation then
        return sqlerrm;
    end $$;";

/// Steps of one session, in this order.
const STEPS: &[&str] = &[
    "insert into t select i, i, 'row' from generate_series(1, 700) i",
    "insert into t values (1001, 1001), (1002, 1002), (1003, 3), (1004, 4)",
    "insert into t values (1001, 1001), (2, 1002), (1003, 3)",
    "select count(*) from t",
    "begin",
    "insert into t values (2001, 2001)",
    "savepoint a",
    "insert into t values (2002, 2002), (2001, 2003)",
    "rollback to a",
    "insert into t values (2003, 2003), (2004, 2004) returning i",
    "commit",
    "select i, u from t where i > 2000 order by i",
    "insert into t values (5, 5) on conflict do nothing",
    "insert into t values (5, 5), (3001, 3001), (6, 9999) \
     on conflict (i) do update set s = excluded.u::text returning i, s",
    "update t set s = 'changed' where i between 100 and 480 and i % 2 = 0",
    "select s, count(*), sum(i) from t group by s order by s",
    "update t set s = t.s || x.n from generate_series(1, 3) x(n) where t.i between 10 and 20",
    "select count(*) from t where s like 'row_' and i between 10 and 20",
    "update t set u = u + 10000 where i <= 50",
    "update t set u = 10060 - i where i in (51, 55)",
    "update t set i = i + 100000 where i between 60 and 70",
    "update t set i = 1 where i = 2",
    "select sum(i), sum(u) from t",
    "select g(40000), g(50000)",
    "select i, u from t where i >= 40000 and i < 100000 order by i",
    "insert into t select 60000 + i, 60000 + f(i) from generate_series(1, 30) i",
    "update t set u = u + 1 where i = f(300)",
    "select i, s from t where s like '%f' order by i",
    "insert into c select i, i from t where i < 300",
    "insert into c values (5001, 1), (5002, 777777)",
    "delete from t where i < 200",
    "select count(*), sum(t) from c",
    "update t set i = i + 200000 where i < 230",
    "select count(*), sum(t) from c",
    "insert into n select i from generate_series(1, 1000) i",
    "delete from n where v % 3 = 0",
    "update n set v = v + 1",
    "select count(*), sum(v) from n",
    "with gone as (delete from n where v < 100 returning v), \
     put as (insert into seen select v::text from gone returning what) select count(*) from put",
    "create trigger marks before update on t for each row execute function mark()",
    "update t set s = 'triggered' where i between 300 and 320",
    "select i, s from t where i between 299 and 321 order by i",
    "drop trigger marks on t",
    "begin isolation level serializable",
    "update t set s = 'once' where i between 400 and 600",
    "insert into t values (400, 1)",
    "rollback",
    "select count(*) from t where s = 'once'",
    "begin",
    "declare k cursor for select i from t order by i",
    "fetch 3 from k",
    "delete from t where i < 260",
    "fetch 2 from k",
    "move 300 in k",
    "fetch 2 from k",
    "rollback",
    "merge into t using (values (270, 'm'), (900001, 'm')) m(i, s) on t.i = m.i \
     when matched then update set s = m.s when not matched then insert values (m.i, m.i, m.s)",
    "select i, u, s from t where s = 'm' order by i",
    "truncate c",
    "delete from t",
    "select count(*) from t",
];

/// A trigger that changes the row behind the one that fires it.
const MARK: &str = "create function mark() returns trigger language plpgsql as $$
    begin
        if old.i % 7 = 0 then
            update t set s = 'marked' where i = old.i + 1000000;
            return null;
        end if;
        return new;
    end $$;";

/// What a client is told.
fn told(client: &mut Client, sql: &str) -> String {
    match client.simple_query(sql) {
        Ok(messages) => {
            let line = |message: SimpleQueryMessage| match message {
                SimpleQueryMessage::Row(row) => {
                    let values = (0..row.len()).map(|place| row.get(place).unwrap_or("NULL"));
                    Some(values.collect::<Vec<_>>().join("|"))
                }
                SimpleQueryMessage::CommandComplete(count) => Some(format!("({count})")),
                _ => None,
            };
            messages
                .into_iter()
                .filter_map(line)
                .collect::<Vec<_>>()
                .join("\n")
        }
        Err(error) => said(&error),
    }
}

/// An error, with all that it says.
fn said(error: &postgres::Error) -> String {
    let error = error.as_db_error().expect("an error of the server");
    format!(
        "{} {} / {:?} / {:?}",
        error.code().code(),
        error.message(),
        error.detail(),
        error.where_()
    )
}

/// Copies lines into a table, and says what became of it.
fn copied(client: &mut Client, lines: &str) -> String {
    let copy = |client: &mut Client| {
        let mut writer = client.copy_in("copy t from stdin")?;
        writer.write_all(lines.as_bytes()).expect("lines");
        writer.finish()
    };
    match copy(client) {
        Ok(count) => format!("({count})"),
        Err(error) => said(&error),
    }
}

/// All that is told of tables that lie somewhere.
fn transcript(node: &Endpoint, schema: &str, lies: &str) -> Vec<(String, String)> {
    let mut client = connect(node).expect("a client");
    let begin = format!("create schema {schema}; set search_path = {schema}; {MARK}");
    let tables = format!("{begin} {}", TABLES.replace("{lies}", lies));
    client.batch_execute(&tables).expect("tables");
    let mut all: Vec<_> = (STEPS.iter())
        .map(|step| ((*step).to_owned(), told(&mut client, step)))
        .collect();
    let lines = |rows: std::ops::Range<i32>| -> String {
        rows.map(|i| format!("{i}\t{i}\tcopied\n")).collect()
    };
    all.push(("copy".into(), copied(&mut client, &lines(1..3_000))));
    let twice = format!(
        "{}2500\t1\tcopied\n{}",
        lines(3_000..3_100),
        lines(3_100..3_200)
    );
    all.push(("copy of one twice".into(), copied(&mut client, &twice)));
    all.push((
        "count".into(),
        told(&mut client, "select count(*), sum(u) from t"),
    ));
    for level in ["read committed", "repeatable read"] {
        all.push((level.into(), met(node, schema, level)));
    }
    all
}

/// What becomes of an update of many rows that meets another's of some of them.
fn met(node: &Endpoint, schema: &str, level: &str) -> String {
    let session = || {
        let mut client = connect(node).expect("a client");
        let path = format!("set search_path = {schema}");
        client.batch_execute(&path).expect("a path");
        client
    };
    let (mut one, mut other) = (session(), session());
    let begin = format!("begin isolation level {level}; select count(*) from t");
    other.batch_execute(&begin).expect("a transaction");
    let first = "begin; update t set s = 'gone', u = -i where i between 50 and 60; \
                 delete from t where i between 70 and 75";
    one.batch_execute(first).expect("an update");
    let update = "update t set s = s || '!' where i < 400 and s <> 'gone'";
    let waits = std::thread::spawn(move || {
        let updated = told(&mut other, update);
        format!("{updated}\n{}", told(&mut other, "commit"))
    });
    let any = "select count(*) > 0 from pg_locks where not granted";
    wait_for("somebody who waits", PATIENCE, || {
        node.query(any).is_ok_and(|waits| waits == "t")
    })
    .unwrap_or_else(|error| panic!("{error} in {schema} at {level}"));
    one.batch_execute("commit").expect("a commit");
    let became = waits.join().expect("it ends");
    let left = "select s, count(*), sum(u) from t where i < 500 group by s order by s";
    let left = told(&mut one, left);
    one.batch_execute("update t set s = 'copied'")
        .expect("an end");
    format!("{became}\n{left}")
}

#[test]
fn what_another_node_leads_answers_as_what_is_here() {
    let stage = Stage::with(&["quorate.leaders=spread"]);
    let node = stage.node(stage.leader());
    for number in ["2", "3"] {
        let added = node.query("select quorate.add_group()");
        assert_eq!(added.expect("a group"), number);
    }
    let leaders = "select count(distinct leader) from quorate.groups";
    wait_for("leaders on three nodes", PATIENCE, || {
        node.query(leaders).is_ok_and(|count| count == "3")
    })
    .expect("they are spread");
    let here = transcript(node, "here", "");
    assert!(
        here[0].1 == "(700)" && here[1].1.starts_with("23505"),
        "{:?}",
        &here[..2]
    );
    for group in [2, 3] {
        let lies = format!("with (quorate.group = {group})");
        let there = transcript(node, &format!("there_{group}"), &lies);
        for ((step, here), (_, there)) in here.iter().zip(there) {
            assert_eq!(there, *here, "{step}");
        }
    }
}
