//! Several groups on real nodes: a bank whose accounts lie in all of them, while leaders are lost and
//! accounts move from one group to another, and the commands that make and show groups.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use lab::host::{output, wait_for, Endpoint, Process, PATIENCE};
use lab::quorate::Cluster;
use postgres::Client;

use crate::failover::Stage;
use crate::kill::program;
use crate::writers::connect;

/// Accounts, and what each holds at first.
const ACCOUNTS: i32 = 30;
const OPENING: i64 = 100;

/// So many transfers are acknowledged between two leaders' ends.
const TRANSFERS: usize = 40;

/// Leaders that are lost.
const LOSSES: usize = 2;

/// A cluster of three nodes and three groups, with a bank.
fn bank(stage: Stage) -> Stage {
    let node = stage.node(stage.leader());
    for number in ["2", "3"] {
        let added = node.query("select quorate.add_group()");
        assert_eq!(added.expect("a group"), number);
    }
    let partition = |remainder: i32| {
        let group = remainder + 1;
        format!(
            "create table accounts_{remainder} partition of accounts \
             for values with (modulus 3, remainder {remainder}) with (quorate.group = {group});"
        )
    };
    let partitions: String = (0..3).map(partition).collect();
    let tables = format!(
        "create table accounts(id int primary key, balance bigint) partition by hash (id); \
         {partitions} \
         insert into accounts select n, {OPENING} from generate_series(1, {ACCOUNTS}) n; \
         create table transfers(id text primary key, account int references accounts) \
         with (quorate.group = 3)"
    );
    node.query(&tables).expect("the bank");
    let lies = "select count(distinct group_id) from quorate.tablets";
    assert_eq!(node.query(lies).expect("the groups"), "3");
    stage
}

/// A transfer, and a row that says so.
fn transfer(client: &mut Client, id: &str, (from, to): (i32, i32)) -> Result<(), postgres::Error> {
    let mut txn = client.transaction()?;
    let change = "update accounts set balance = balance + $2 where id = $1";
    txn.execute(change, &[&from, &-1_i64])?;
    txn.execute(change, &[&to, &1_i64])?;
    txn.execute("insert into transfers values ($1, $2)", &[&id, &to])?;
    txn.commit()
}

/// Moves a part of the accounts to the next group, by way of a node.
fn move_accounts(node: &Endpoint, remainder: usize) {
    let group = (remainder + 1) % 3 + 1;
    let table = format!("accounts_{remainder}");
    let ask = format!("alter table {table} set (quorate.group = {group})");
    // It may be what gives way to transfers, or find its leader lost.
    wait_for("accounts to move", PATIENCE, || node.query(&ask).is_ok()).expect("they move");
    let lies = format!(
        "select distinct group_id from quorate.tablets where relation = '{table}'::regclass"
    );
    let lies = node.query(&lies).expect("the group");
    assert_eq!(lies, group.to_string(), "{table}");
}

/// Makes transfers until it is told to end; those that were acknowledged.
fn client(
    node: Endpoint,
    name: usize,
    told: Arc<std::sync::Mutex<BTreeSet<String>>>,
    ends: Arc<AtomicBool>,
) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut session = None;
        for number in 0.. {
            if ends.load(Ordering::SeqCst) {
                return;
            }
            let Some(client) = session.as_mut() else {
                session = connect(&node).ok();
                std::thread::sleep(Duration::from_millis(20));
                continue;
            };
            let id = format!("{name}-{number}");
            let between = (number * 7 % ACCOUNTS + 1, (number * 11 + 5) % ACCOUNTS + 1);
            match transfer(client, &id, between) {
                Ok(()) => drop(told.lock().expect("the list").insert(id)),
                Err(_) if client.is_closed() => session = None,
                Err(_) => {}
            }
        }
    })
}

/// The sum of all accounts, of one statement.
fn sum(node: &Endpoint) -> Option<i64> {
    let answer = node
        .query("select sum(balance)::bigint from accounts")
        .ok()?;
    answer.parse().ok()
}

#[test]
fn a_bank_in_three_groups_keeps_its_sum_while_leaders_are_lost_and_accounts_move() {
    keeps_its_sum(&bank(Stage::new()));
}

#[test]
fn a_bank_whose_groups_are_led_by_three_nodes_keeps_its_sum() {
    let stage = bank(Stage::with(&["quorate.leaders=spread"]));
    let node = stage.node(stage.leader());
    let leaders = "select count(distinct leader) from quorate.groups";
    wait_for("leaders on three nodes", PATIENCE, || {
        node.query(leaders).is_ok_and(|count| count == "3")
    })
    .expect("they are spread");
    keeps_its_sum(&stage);
}

#[test]
fn what_waits_at_another_leader_is_seen_in_pg_locks_and_by_pg_blocking_pids() {
    let stage = bank(Stage::with(&["quorate.leaders=spread"]));
    let node = stage.node(stage.leader());
    let leaders = "select count(distinct leader) from quorate.groups";
    wait_for("leaders on three nodes", PATIENCE, || {
        node.query(leaders).is_ok_and(|count| count == "3")
    })
    .expect("they are spread");
    for account in 0..3 {
        let table = format!("accounts_{account}");
        let update = format!("update {table} set balance = balance");
        let mut holder = connect(node).expect("a client");
        let pid = |client: &mut Client| -> i32 {
            let row = client.query_one("select pg_backend_pid()", &[]);
            row.expect("a number").get(0)
        };
        let holding = pid(&mut holder);
        let mut held = holder.transaction().expect("a transaction");
        held.batch_execute(&update).expect("an update");
        let mut waiter = connect(node).expect("a client");
        let waiting = pid(&mut waiter);
        let waits = std::thread::spawn(move || waiter.batch_execute(&update));
        let seen = format!(
            "select array_to_string(pg_blocking_pids({waiting}), ' '), mode, l.relation::regclass \
             from pg_locks l where not granted and pid = {waiting}"
        );
        let expected = format!("{holding}|ForNoKeyUpdateLock|{table}");
        let mut last = String::new();
        wait_for("the lock", PATIENCE, || {
            last = node.query(&seen).unwrap_or_default();
            last == expected
        })
        .unwrap_or_else(|error| panic!("{error}: {last:?} is not {expected:?}"));
        let modes = format!(
            "select distinct mode from pg_locks where granted and pid = {holding} \
             and relation = '{table}'::regclass and locktype = 'relation'"
        );
        assert_eq!(node.query(&modes).expect("locks"), "RowExclusiveLock");
        held.rollback().expect("it ends");
        waits.join().expect("it ends").expect("an update");
    }
}

fn keeps_its_sum(stage: &Stage) {
    let (told, ends) = (Arc::default(), Arc::new(AtomicBool::new(false)));
    let clients: Vec<_> = (0..3)
        .map(|node| {
            client(
                stage.node(node).clone(),
                node,
                Arc::clone(&told),
                ends.clone(),
            )
        })
        .collect();
    let count = || told.lock().expect("the list").len();
    let mut restarted = Vec::new();
    let expected = i64::from(ACCOUNTS) * OPENING;
    for loss in 0..=LOSSES {
        let before = count();
        wait_for("transfers", PATIENCE, || {
            for node in 0..3 {
                // Whoever answers answers right.
                assert_eq!(sum(stage.node(node)).unwrap_or(expected), expected);
            }
            count() >= before + TRANSFERS
        })
        .expect("transfers go on");
        move_accounts(stage.node(loss % 3), loss);
        if loss < LOSSES {
            let lost = stage.kill_leader();
            wait_for("another leader", PATIENCE, || {
                let leader = stage.cluster().leader();
                leader.is_ok_and(|leader| leader != lost)
            })
            .expect("another leads");
            restarted.push(stage.cluster().start_again(lost).expect("it starts"));
        }
    }
    ends.store(true, Ordering::SeqCst);
    for client in clients {
        client.join().expect("a client");
    }
    let node = stage.node(stage.leader());
    assert_eq!(sum(node), Some(expected));
    let kept = node
        .query("select id from transfers")
        .expect("the transfers");
    let kept: BTreeSet<String> = kept.lines().map(str::to_owned).collect();
    let told = told.lock().expect("the list");
    assert_eq!(
        told.difference(&kept).next(),
        None,
        "acknowledged, and gone"
    );
}

/// Tables of one node with two groups, and what belongs to them.
const FURNISHED: &str = "
    create table parent(id int primary key) with (quorate.group = 2);
    insert into parent values (1);
    create table moved(id serial primary key, v text not null, n int unique,
        parent int references parent, long text, twice int generated always as (n * 2) stored);
    create index on moved(lower(v));
    create index on moved(v) where n > 5;
    create index on moved using gin (to_tsvector('english', v));
    insert into moved(v, n, parent, long)
        select 'row ' || g, g, 1, repeat(md5(g::text), 100) from generate_series(1, 100) g;
    alter table moved add column late int default 9;
    create table child(moved int references moved on delete cascade);
    insert into child values (3), (4);
    create view seen as select id from moved where n < 4;
    create table keyless(a int);
    insert into keyless values (1), (1), (null)";

/// What stays as it is wherever the table `moved` lies.
const SAME: [(&str, &str); 6] = [
    ("select count(*) || ' ' || sum(length(long)) || ' ' || min(late) || ' ' || sum(twice) from moved",
     "100 320000 9 10100"),
    ("select string_agg(id::text, ',' order by id) from seen", "1,2,3"),
    ("select id from moved where lower(v) = 'row 77'", "77"),
    ("select id from moved where v = 'row 9' and n > 5", "9"),
    ("select count(*) from moved where to_tsvector('english', v) @@ 'row & 50'", "1"),
    ("select count(*) from moved join parent on parent = parent.id", "100"),
];

#[test]
fn a_table_moves_with_all_that_belongs_to_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let cluster = Cluster::start(program(), dir.path(), 1, &[]).expect("a node");
    let node = &cluster.nodes()[0];
    let ask = |query: &str| node.query(query).expect(query);
    let refused = |query: &str, state: &str| {
        let mut client = connect(node).expect("a session");
        let error = client.batch_execute(query).expect_err(query);
        let found = error.code().map(|code| code.code().to_owned());
        assert_eq!(found.as_deref(), Some(state), "{query}: {error}");
    };
    let group_of = |table: &str| {
        ask(&format!(
            "select string_agg(distinct group_id::text, ',') from quorate.tablets \
             where relation in (select oid from pg_class where relname ~ '^{table}')"
        ))
    };
    assert_eq!(ask("select quorate.add_group()"), "2");
    ask(FURNISHED);
    let mut kept = connect(node).expect("a session");
    let prepared = kept.prepare(SAME[1].0).expect("a statement");
    for (statement, group) in [
        ("alter table moved set (quorate.group = 2)", "2"),
        ("alter table moved reset (quorate.group)", "1"),
        (
            "begin; alter table moved set (quorate.group = 2); rollback",
            "1",
        ),
        (
            "begin; savepoint s; alter table moved set (quorate.group = 2); rollback to s; commit",
            "1",
        ),
        (
            "alter table moved set (fillfactor = 50, quorate.group = 2)",
            "2",
        ),
    ] {
        ask(statement);
        assert_eq!(group_of("moved"), group, "{statement}");
        for (query, answer) in SAME {
            assert_eq!(ask(query), answer, "{statement}; {query}");
        }
        let row = kept.query_one(&prepared, &[]).expect("the same statement");
        assert_eq!(row.get::<_, &str>(0), SAME[1].1);
        refused("insert into moved(v, n) values ('twice', 3)", "23505");
        refused(
            "insert into moved(v, n, parent) values ('x', 1000, 2)",
            "23503",
        );
        refused("delete from parent", "23503");
        refused("insert into child values (1000)", "23503");
    }
    ask("delete from moved where id = 3");
    assert_eq!(ask("select moved from child"), "4");
    ask("begin; alter table keyless set (quorate.group = 2); insert into keyless values (7); commit");
    ask("insert into keyless values (8)");
    assert_eq!(
        ask("select string_agg(a::text, ',' order by a) from keyless"),
        "1,1,7,8"
    );

    refused("alter table moved set (quorate.group = 9)", "42704");
    refused("alter table moved set (quorate.group = 'x')", "22023");
    refused(
        "alter table moved set (quorate.group = 2, quorate.group = 1)",
        "22023",
    );
    refused(
        "create temp table own(a int); alter table own set (quorate.group = 2)",
        "0A000",
    );
    refused(
        "set quorate.default_group = 2; alter view seen reset (quorate.group)",
        "0A000",
    );
    refused(
        "begin read only; alter table moved set (quorate.group = 1)",
        "25006",
    );
    refused(
        "create role stranger; set role stranger; alter table moved set (quorate.group = 1)",
        "42501",
    );
    refused(
        "begin; declare c cursor for table moved; fetch c; alter table moved set (quorate.group = 1)",
        "55006",
    );
    ask(
        "create table large(a text); insert into large select repeat(md5(g::text), 10) \
         from generate_series(1, 60000) g",
    );
    refused("alter table large set (quorate.group = 2)", "54000");
    assert_eq!(group_of("large"), "1");
    assert_eq!(ask("select count(*) from large"), "60000");
    // Whoever has one snapshot for all sees nothing of the new trees, and is told so.
    for written in [
        "alter table keyless set (quorate.group = 1)",
        "alter table keyless alter a type bigint",
        "truncate keyless",
    ] {
        for read in ["select count(*) from keyless", "copy keyless to stdout"] {
            let mut steady = connect(node).expect("a session");
            steady
                .batch_execute("begin isolation level repeatable read; select from parent")
                .expect("a snapshot");
            ask("insert into keyless values (9)");
            ask(written);
            let error = steady.batch_execute(read).expect_err("a table anew");
            let state = error.code().map(|code| code.code().to_owned());
            assert_eq!(
                state.as_deref(),
                Some("40001"),
                "{written}; {read}: {error}"
            );
            drop(steady);
            ask("alter table keyless set (quorate.group = 2), alter a type int");
        }
    }
}

/// What `quorate` answers to this, in one line of JSON where that is asked for.
fn quorate(arguments: &[&str], data: &Path) -> String {
    let mut command = Command::new(program());
    let done = output(command.args(arguments).arg("--data").arg(data)).expect("it runs");
    assert!(done.status.success(), "{arguments:?}: {done:?}");
    String::from_utf8(done.stdout).expect("text")
}

/// The numbers of the groups that are listed, all of which n1 leads.
fn listed(data: &Path) -> Vec<u64> {
    let text = quorate(&["group", "list", "--json"], data);
    let groups: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let groups = groups.as_array().expect("groups");
    let number = |group: &serde_json::Value| {
        assert_eq!(group["leader"], "n1", "{group}");
        assert_eq!(group["voters"], serde_json::json!(["n1"]), "{group}");
        group["group"].as_u64().expect("a number")
    };
    groups.iter().map(number).collect()
}

#[test]
fn groups_are_added_and_listed_by_commands_and_founded_by_up() {
    let dir = tempfile::tempdir().expect("a directory");
    let cluster = Cluster::start(program(), dir.path(), 1, &[]).expect("a node");
    let data = cluster.data().to_owned();
    assert_eq!(listed(&data), [1]);
    assert_eq!(quorate(&["group", "add"], &data), "group 2 is there\n");
    assert_eq!(listed(&data), [1, 2]);
    let shown = quorate(&["group", "list"], &data);
    assert_eq!(shown.lines().count(), 3, "{shown}");
    drop(cluster);
    // Two are there, so a third is founded; it is there the next time as well.
    for _ in 0..2 {
        let mut up = Command::new(program());
        let up = up.args(["up", "--groups", "3", "--data"]).arg(&data);
        let mut up = Process::start(up, &dir.path().join("up.log")).expect("it starts");
        wait_for("all groups", PATIENCE, || {
            let mut command = Command::new(program());
            let list = command.args(["group", "list", "--data"]).arg(&data);
            let said = output(list).map_or(String::new(), |done| {
                String::from_utf8_lossy(&done.stdout).into_owned()
            });
            said.lines().count() == 4 && !said.contains("none")
        })
        .expect("three groups");
        assert_eq!(listed(&data), [1, 2, 3]);
        up.signal("INT").expect("it is told to stop");
        up.wait().expect("it ends in order");
    }
}
