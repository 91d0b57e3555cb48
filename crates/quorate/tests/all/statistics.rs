//! How many rows EXPLAIN expects, beside PostgreSQL 15's EXPLAIN of the same tables after ANALYZE: for
//! simple conditions within a factor of two. Statistics on three nodes, and after a restart.

use std::process::Command;
use std::time::Duration;

use postgres::{Client, NoTls, SimpleQueryMessage};

use lab::host::{output, wait_for, Endpoint, Process};
use lab::quorate::Cluster;

use crate::kill::program;
use crate::questions::psql;
use crate::shared;

const MADE: &str = "
    create table seen_orders (id int primary key, kind int, part int, note text, late bool,
      price numeric, day date, at timestamptz, code varchar(20));
    insert into seen_orders select g,
      case when g % 2 = 0 then 0 when g % 5 = 0 then 1 else g % 300 end,
      case when g % 4 = 0 then g % 50 end, 'note ' || lpad((g * 7 % 1000)::text, 4, '0'),
      g % 10 = 0, (g * g % 977) * 1.5, date '2024-01-01' + g % 700,
      timestamptz '2024-01-01 00:00:00+00' + g * interval '1 minute', 'c' || g % 13
      from generate_series(1, 20000) g;
    create table seen_parts (part int primary key, name text, kind int);
    insert into seen_parts select g, 'part ' || g, g % 7 from generate_series(0, 49) g;
    create table seen_kinds (kind int, word text);
    insert into seen_kinds select g % 100, 'w' || g % 3 from generate_series(1, 1000) g;
    create table seen_stock (part int references seen_parts, place int, amount int, primary key (part, place));
    insert into seen_stock select p, l, p * l % 11 from generate_series(0, 49) p, generate_series(1, 40) l;
    create table seen_lines (id int primary key, part int, place int,
      foreign key (part, place) references seen_stock);
    insert into seen_lines select g, g % 50, g * 7 % 40 + 1 from generate_series(1, 10000) g;
    analyze seen_orders, seen_parts, seen_kinds, seen_stock, seen_lines";

/// Conditions on `seen_orders`.
const CONDITIONS: &[&str] = &[
    "id = 77",
    "id < 1000",
    "id >= 19000",
    "id between 500 and 1500",
    "id > 30000",
    "kind = 0",
    "kind = 1",
    "kind = 7",
    "kind <> 0",
    "kind in (0, 1, 7)",
    "kind not in (0, 1)",
    "kind > 100",
    "part is null",
    "part is not null",
    "part = 8",
    "part < 20",
    "part = 8 and kind = 0",
    "kind = 0 or kind = 1",
    "not (kind = 0)",
    "late",
    "not late",
    "late is true",
    "note like 'note 01%'",
    "note like 'note 0%'",
    "note = 'note 0007'",
    "note > 'note 0500'",
    "price < 100",
    "price >= 1000.5",
    "price between 200 and 400",
    "day = '2024-03-01'",
    "day < '2024-06-01'",
    "day >= '2024-06-01' and day < '2024-07-01'",
    "at > '2024-01-10 00:00:00+00'",
    "at < '2024-01-02 00:00:00+00'",
    "code = 'c5'",
    "code in ('c1', 'c2')",
    "code like 'c1%'",
    "id = any (array[1, 2, 3])",
    "kind = 0 and late",
    "day < '2024-06-01' or part is null",
];

/// Whole queries.
const QUERIES: &[&str] = &[
    "select 1 from seen_orders o join seen_parts p on o.part = p.part",
    "select 1 from seen_orders o join seen_kinds k on o.kind = k.kind",
    "select 1 from seen_orders o join seen_kinds k on o.kind = k.kind where k.word = 'w1'",
    "select 1 from seen_orders o join seen_parts p on o.part = p.part where p.kind = 3",
    "select 1 from seen_orders o, seen_parts p, seen_kinds k where o.part = p.part and p.kind = k.kind",
    "select 1 from seen_lines l join seen_stock s on l.part = s.part and l.place = s.place",
    "select 1 from seen_lines l join seen_stock s on l.part = s.part and l.place = s.place where s.amount = 3",
    "select 1 from seen_lines l, seen_stock s, seen_parts p
     where l.part = s.part and l.place = s.place and p.part = l.part and p.kind = 2",
    "select kind from seen_orders group by kind",
    "select part, late from seen_orders group by part, late",
    "select note from seen_orders where id < 1000 group by note",
    "select distinct code from seen_orders",
];

fn connect(endpoint: &Endpoint) -> Client {
    let mut config = postgres::Config::new();
    config
        .host(&endpoint.host)
        .port(endpoint.port)
        .user("postgres")
        .dbname("postgres");
    config.connect(NoTls).expect("a session")
}

/// The rows that the first node of a plan is expected to give.
fn expected(client: &mut Client, query: &str) -> f64 {
    let said = client.simple_query(&format!("explain {query}"));
    let said = said.unwrap_or_else(|error| panic!("{query}: {error}"));
    let first = said.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    });
    let line = first.expect("a line");
    let rows = line.split_once("rows=").expect("an estimate").1;
    let rows = rows.split_once(' ').expect("a width").0;
    rows.parse().expect("a number")
}

#[test]
fn as_many_rows_are_expected_as_by_postgresql() {
    let mut postgres = connect(shared::postgres());
    let mut quorate = connect(&shared::one_node().nodes()[0]);
    for client in [&mut postgres, &mut quorate] {
        client
            .batch_execute(
                "drop table if exists seen_orders, seen_lines, seen_stock, seen_parts, seen_kinds",
            )
            .expect("none");
        client.batch_execute(MADE).expect("the tables");
    }
    let of_table = |condition: &&str| format!("select 1 from seen_orders where {condition}");
    let conditions = CONDITIONS.iter().map(of_table);
    let queries = conditions.chain(QUERIES.iter().map(|query| (*query).to_owned()));
    let mut wrong = Vec::new();
    for query in queries {
        let (theirs, ours) = (
            expected(&mut postgres, &query),
            expected(&mut quorate, &query),
        );
        if ours > theirs * 2.0 + 1.0 || theirs > ours * 2.0 + 1.0 {
            wrong.push(format!("{query}: {ours}, PostgreSQL {theirs}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A table of which a sample is read: its statistics are about those of all rows.
#[test]
fn a_sample_of_a_table_tells_of_all() {
    let mut client = connect(&shared::one_node().nodes()[0]);
    client
        .batch_execute(
            "drop table if exists seen_many;
             create table seen_many (id int primary key, half int, many int);
             insert into seen_many select g, g % 2, g % 5000 from generate_series(1, 60000) g;
             set default_statistics_target = 10;
             analyze seen_many;
             reset default_statistics_target",
        )
        .expect("its rows");
    let asked = "select n_distinct, array_length(histogram_bounds::text::int[], 1) from pg_stats
        where tablename = 'seen_many' order by attname";
    let rows = client.simple_query(asked).expect("statistics");
    let rows: Vec<(f64, Option<String>)> = rows
        .iter()
        .filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => {
                let distinct = row.get(0).expect("a number").parse().expect("a number");
                Some((distinct, row.get(1).map(str::to_owned)))
            }
            _ => None,
        })
        .collect();
    let [(half, _), (id, bounds), (many, _)] = &rows[..] else {
        panic!("{rows:?}");
    };
    assert_eq!((*half, *id), (2.0, -1.0));
    assert_eq!(bounds.as_deref(), Some("11"));
    let many = if *many < 0.0 { -many * 60_000.0 } else { *many };
    assert!((2_500.0..10_000.0).contains(&many), "{many}");
    let rows = expected(&mut client, "select 1 from seen_many where id < 15000");
    assert!((10_000.0..20_000.0).contains(&rows), "{rows}");
}

/// What is known of the tables, as one value.
const TOLD: &str = "select md5(string_agg(concat_ws('|', tablename, attname, null_frac, avg_width,
      n_distinct, most_common_vals::text, most_common_freqs::text, histogram_bounds::text,
      correlation), '/' order by tablename, attname)) from pg_stats where tablename like 'seen%'";

/// A join whose order follows from it.
const PLAN: &str = "explain select 1 from seen_orders o, seen_parts p, seen_kinds k
    where o.part = p.part and p.kind = k.kind and o.kind = 7";

#[test]
fn statistics_and_plans_are_the_same_on_all_nodes() {
    let dir = tempfile::tempdir().expect("a directory");
    let cluster = Cluster::start(program(), dir.path(), 3, &[]).expect("a cluster");
    let leader = cluster.leader().expect("a leader");
    let first = cluster.nodes()[leader].clone();
    psql(&first, MADE);
    let of_leader = (psql(&first, TOLD), psql(&first, PLAN));
    assert!(of_leader.1.contains("rows="), "{}", of_leader.1);
    let followers = (0..3).filter(|node| *node != leader);
    for node in followers.map(|node| &cluster.nodes()[node]) {
        let ask = |sql: &str| {
            let mut command = node.psql();
            command.env("PGOPTIONS", "-c quorate.follower_reads=settled");
            let said = output(command.args(["-c", sql])).expect("psql");
            String::from_utf8_lossy(&said.stdout).trim_end().to_owned()
        };
        let same = || (ask(TOLD), ask(PLAN)) == of_leader;
        wait_for("the same statistics", Duration::from_secs(20), same).expect("they come");
    }
}

#[test]
fn statistics_outlive_a_restart() {
    let dir = tempfile::tempdir().expect("a directory");
    let cluster = Cluster::start(program(), dir.path(), 1, &[]).expect("a node");
    let node = cluster.nodes()[0].clone();
    psql(&node, MADE);
    psql(&node, "alter table seen_orders alter note set statistics 7");
    let before = (psql(&node, TOLD), psql(&node, PLAN));
    let n1 = cluster.data().join("n1");
    drop(cluster);
    let mut command = Command::new(program());
    command.args(["start", "--data"]).arg(&n1);
    let process = Process::start(&mut command, &dir.path().join("out")).expect("it starts");
    node.wait().expect("it answers");
    assert_eq!((psql(&node, TOLD), psql(&node, PLAN)), before);
    let target = "select attstattarget from pg_attribute
        where attrelid = 'seen_orders'::regclass and attname = 'note'";
    assert_eq!(psql(&node, target), "7");
    drop(process);
}
