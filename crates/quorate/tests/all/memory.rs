//! A node with little memory, and statements of every kind that keep something: each gets what it
//! needs or 53200, the node lives, and who needs little notices nothing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lab::host::Endpoint;
use lab::quorate::Cluster;
use postgres::{Client, SimpleQueryMessage};

use crate::kill::{open_directory, program};
use crate::writers::connect;

/// What the node may take; pages, old versions and the log have 18 MB of it.
const SETTINGS: [&str; 4] = [
    "quorate.memory_budget=64MB",
    "shared_buffers=8MB",
    "quorate.max_inflight=8MB",
    "quorate.txn_mem=32MB",
];

/// By so much the process may grow beyond what it was when it had started: the budget, and what lies
/// between values.
const GROWTH_MAX: u64 = 100 << 20;

/// And by so much where rows go through the buffers of many parts, which leave holes, however many rows
/// there are.
const SPILLED_GROWTH_MAX: u64 = 140 << 20;

/// Beside greedy statements a small one takes less, on a busy machine without optimization.
const SMALL_MAX: Duration = Duration::from_secs(5);

/// Statements that need more than there is, each in one place.
const TOO_MUCH: &[(&str, &str)] = &[
    ("a sort", "select a from generate_series(1, 3000000) a order by -a offset 3000000"),
    ("a hash join", "select count(*) from generate_series(1, 3000000) a full join generate_series(1, 3000000) b on a = b"),
    ("a cross join", "select max(a + b) from generate_series(1, 3000000) a, generate_series(1, 3000000) b"),
    ("groups", "select count(*) from (select a, count(*) from generate_series(1, 3000000) a group by 1) s"),
    ("distinct", "select count(*) from (select distinct a from generate_series(1, 3000000) a) s"),
    ("distinct arguments", "select count(distinct a) from generate_series(1, 3000000) a"),
    ("ordered arguments", "select array_agg(a order by -a) from generate_series(1, 3000000) a"),
    ("a union", "select count(*) from (select a from generate_series(1, 2000000) a union select -a from generate_series(1, 2000000) a) s"),
    ("an intersection", "select count(*) from (select a from generate_series(1, 2000000) a intersect all select a from generate_series(1, 2000000) a) s"),
    ("a window", "select count(*) from (select sum(a) over (order by a rows between unbounded preceding and unbounded following) from generate_series(1, 1000000) a) s"),
    ("with", "with s as materialized (select a from generate_series(1, 3000000) a) select count(*) from s"),
    ("a recursion", "with recursive r(i) as (select 1 union all select i + 1 from r where i < 3000000) select count(*) from r"),
    ("array_agg", "select array_length(array_agg(a::text), 1) from generate_series(1, 3000000) a"),
    ("array_agg of groups", "select count(*) from (select a % 1000, array_agg(a::text) from generate_series(1, 3000000) a group by 1) s"),
    ("string_agg", "select length(string_agg(repeat('x', 100), ',')) from generate_series(1, 1000000)"),
    ("string_agg of groups", "select count(*) from (select a % 1000, string_agg(repeat('x', 100), ',') from generate_series(1, 1000000) a group by 1) s"),
    ("json_agg", "select length(json_agg(repeat('x', 100))::text) from generate_series(1, 1000000)"),
    ("jsonb_agg", "select length(jsonb_agg(a)::text) from generate_series(1, 3000000) a"),
    ("jsonb_object_agg", "select length(jsonb_object_agg(a, a)::text) from generate_series(1, 3000000) a"),
    ("an array of rows", "select array_length(array(select a::text from generate_series(1, 3000000) a), 1)"),
    ("members", "select count(*) from generate_series(1, 3) a where a not in (select b from generate_series(10, 3000000) b)"),
    ("a long value", "select length(repeat('x', 100000000))"),
    ("long values side by side", "select repeat('x', 10000000), repeat('y', 10000000), repeat('z', 10000000), repeat('u', 10000000), repeat('v', 10000000), repeat('w', 10000000)"),
    ("long values in a value", "select length(concat(repeat('x', 10000000), repeat('y', 10000000), repeat('z', 10000000)))"),
    ("a long array", "select array_length(array_fill(0, array[10000000]), 1)"),
    ("parts of a text", "select array_length(string_to_array(repeat('a,', 1500000), ','), 1)"),
    ("matches", "select array_length(regexp_split_to_array(repeat('a,', 1500000), ','), 1)"),
    ("the input of an array", "select array_length(('{' || repeat('1,', 2000000) || '1}')::int[], 1)"),
    ("a variable", "do $$ declare t text := 'x'; begin loop t := t || t; end loop; end $$"),
    ("an array in a variable", "do $$ declare t text[] := '{}'; begin for i in 1..1000 loop t := t || repeat('x', 100000); end loop; end $$"),
    ("cursors", "do $$ declare c refcursor; begin loop c := null; open c for select a from kept; end loop; end $$"),
    ("a temporary table", "create temporary table greedy as select a, repeat('x', 100) from generate_series(1, 1000000) a"),
    ("advisory locks", "select count(pg_advisory_lock(a)) from generate_series(1, 1000000) a"),
    ("advisory locks of a transaction", "select count(pg_advisory_xact_lock(a)) from generate_series(1, 1000000) a"),
    ("deferred constraints", "create table p (k int primary key); create table c (k int references p deferrable initially deferred); insert into c select a from generate_series(1, 1000000) a"),
    ("rows that refer to one another", "create table s (k int primary key, r int references s); insert into s select a, a from generate_series(1, 1000000) a"),
    ("a cursor", "begin; declare greedy cursor with hold for select a, repeat('x', 100) from generate_series(1, 1000000) a; commit"),
];

/// Statements whose rows take more than there is, and go to scratch space beyond `work_mem`.
const SPILLED: &[&str] = &[
    "select a, repeat('x', 100) from generate_series(1, 700000) a order by -a offset 700000",
    "select count(*) from (select a, repeat('x', 100) as t from generate_series(1, 500000) a) x full join generate_series(1, 500000) b on a = b",
    "select count(*) from (select repeat('x', 100) || a, count(*) from generate_series(1, 400000) a group by 1) s",
    "select count(*) from (select distinct repeat('x', 100) || a from generate_series(1, 400000) a) s",
    "select count(*) from (select repeat('x', 100) || a from generate_series(1, 400000) a intersect select repeat('x', 100) || a from generate_series(1, 400000) a) s",
    "select max(n) from (select count(*) over () n from (select a, repeat('x', 100) from generate_series(1, 500000) a) t) s",
    "with s as materialized (select a, repeat('x', 100) from generate_series(1, 500000) a) select count(*) from s",
    "with recursive r(i, t) as (select 1, repeat('x', 100) union all select i + 1, t from r where i < 500000) select count(*) from r",
    "begin; declare kept_rows cursor with hold for select a, repeat('x', 100) from generate_series(1, 500000) a; commit; fetch last from kept_rows; close kept_rows",
];

/// Statements that need no more than there is.
const ENOUGH: &[&str] = &[
    "select count(*) from (select a from generate_series(1, 50000) a order by -a) s",
    "select count(*) from generate_series(1, 3) a right join generate_series(1, 50000) b on a = b",
    "select count(*) from (select a, count(*) from generate_series(1, 50000) a group by 1) s",
    "select length(string_agg(a::text, ',')) from generate_series(1, 100000) a",
    "select length(repeat('x', 5000000))",
    "do $$ declare r record; n bigint := 0; begin for r in select a, repeat('x', 100) from generate_series(1, 1000000) a loop n := n + 1; end loop; assert n = 1000000; end $$",
    "insert into kept select a, repeat('x', 100) from generate_series(1, 20000) a; truncate kept",
    "select count(*) from generate_series(1, 1000) a, generate_series(1, 1000) b",
    "create table p (k int primary key); create table c (k int references p); insert into p select a from generate_series(1, 1000) a; insert into c select a % 1000 + 1 from generate_series(1, 400000) a; drop table c, p",
];

struct Node {
    cluster: Cluster,
    _dir: tempfile::TempDir,
    base: u64,
}

impl Node {
    fn start() -> Node {
        let dir = open_directory();
        let cluster = Cluster::start(program(), dir.path(), 1, &SETTINGS).expect("a node");
        let mut node = Node {
            cluster,
            _dir: dir,
            base: 0,
        };
        let mut client = node.client();
        client
            .batch_execute("create table kept (a int primary key, v text)")
            .expect("a table");
        node.base = node.memory("VmRSS:");
        node
    }

    fn endpoint(&self) -> &Endpoint {
        &self.cluster.nodes()[0]
    }

    fn client(&self) -> Client {
        let mut client = connect(self.endpoint()).expect("a session");
        client
            .batch_execute(
                "set quorate.query_mem = '2GB'; set work_mem = '2GB'; set statement_timeout = '100s'",
            )
            .expect("settings");
        client
    }

    /// What the system says of the node's memory, in bytes.
    fn memory(&self, what: &str) -> u64 {
        let pid = self.cluster.pid(0).expect("its number");
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("its status");
        let line = status.lines().find_map(|line| line.strip_prefix(what));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix("kB"));
        kilobytes
            .and_then(|it| it.trim().parse::<u64>().ok())
            .expect("a figure")
            << 10
    }

    fn check(&self) {
        self.check_growth(GROWTH_MAX);
    }

    fn check_growth(&self, most: u64) {
        let grown = self.memory("VmHWM:").saturating_sub(self.base);
        eprintln!(
            "started with {} MB, grew by {} MB at most",
            self.base >> 20,
            grown >> 20
        );
        assert!(grown < most, "grown by {} MB", grown >> 20);
        self.client().batch_execute("select 1").expect("it answers");
    }
}

/// The SQLSTATE with which a statement failed, if it did.
fn state(outcome: Result<(), postgres::Error>) -> Option<String> {
    let error = outcome.err()?;
    let state = error.code().map(|state| state.code().to_owned());
    Some(state.unwrap_or_else(|| error.to_string()))
}

fn out_of_memory() -> Option<String> {
    Some("53200".to_owned())
}

#[test]
fn whatever_keeps_too_much_is_refused_and_the_node_lives() {
    let node = Node::start();
    let mut client = node.client();
    for (what, statement) in TOO_MUCH {
        let begun = Instant::now();
        let outcome = state(client.batch_execute(statement));
        let peak = node.memory("VmHWM:").saturating_sub(node.base) >> 20;
        eprintln!("{:>8.1?} {peak:>5} MB {outcome:?} {what}", begun.elapsed());
        assert_eq!(outcome, out_of_memory(), "{what}");
        client
            .batch_execute("rollback; select pg_advisory_unlock_all()")
            .expect("the session goes on");
    }
    for statement in ENOUGH {
        let outcome = state(client.batch_execute(statement));
        assert_eq!(outcome, None, "{statement}");
    }
    node.check();
}

#[test]
fn what_goes_to_scratch_space_needs_little_memory() {
    let node = Node::start();
    let mut client = node.client();
    client.batch_execute("reset work_mem").expect("a setting");
    for statement in SPILLED {
        let outcome = state(client.batch_execute(statement));
        let peak = node.memory("VmHWM:").saturating_sub(node.base) >> 20;
        eprintln!("{peak:>5} MB {statement}");
        assert_eq!(outcome, None, "{statement}");
    }
    node.check_growth(SPILLED_GROWTH_MAX);
}

#[test]
fn savepoints_are_refused_when_there_is_no_room() {
    let node = Node::start();
    let mut client = node.client();
    let names: String = (0..5_000).map(|_| "savepoint greedy;").collect();
    for round in 0..2 {
        client.batch_execute("begin").expect("a block");
        let made = (0..200).find_map(|batch| {
            let outcome = client.batch_execute(&names);
            state(outcome).map(|state| (batch, state))
        });
        let (batches, refusal) = made.expect("a limit");
        assert_eq!(refusal, "53200", "after {batches} batches in round {round}");
        assert!(batches > 5, "{batches} in round {round}");
        client.batch_execute("rollback").expect("room again");
    }
    node.check();
}

#[test]
fn what_sessions_keep_between_statements_counts_and_is_given_back() {
    let node = Node::start();
    for round in 0..2 {
        let mut client = node.client();
        // Prepared statements, until there is no room for another.
        let filler = "x".repeat(8_000);
        let made = (0..20_000).find_map(|number| {
            let prepare = format!("prepare p{number} as select '{filler}'");
            state(client.batch_execute(&prepare)).map(|state| (number, state))
        });
        let (count, refusal) = made.expect("a limit");
        assert_eq!(refusal, "53200", "after {count}");
        assert!(count > 500, "{count} in round {round}");
        client.batch_execute("deallocate all").expect("room again");
        // A long message.
        let text = "x".repeat(60 << 20);
        let refused = client
            .query("select length($1::text)", &[&text])
            .map(|_| ());
        assert_eq!(state(refused), out_of_memory());
        // A long text of a statement.
        let mut client = node.client();
        let list = vec!["1"; 1_000_000].join(",");
        let long = format!("select 1 where 1 in ({list})");
        assert_eq!(state(client.batch_execute(&long)), out_of_memory());
        client
            .batch_execute("select 1")
            .expect("the session goes on");
    }
    node.check();
}

#[test]
fn the_largest_makes_room_for_others_and_small_ones_go_on() {
    let node = Node::start();
    let stop = Arc::new(AtomicBool::new(false));
    let mut small = node.client();
    let stopped = stop.clone();
    let beside = std::thread::spawn(move || {
        let (mut count, mut longest) = (0, Duration::ZERO);
        while !stopped.load(Ordering::Relaxed) {
            let begun = Instant::now();
            let written = format!("insert into kept values ({count}, 'x')");
            small.batch_execute(&written).expect("a small write");
            let read = small
                .simple_query("select v from kept where a = 0")
                .expect("a read");
            assert!(matches!(
                read.first(),
                Some(SimpleQueryMessage::RowDescription(_) | SimpleQueryMessage::Row(_))
            ));
            let sorted =
                "select count(*) from (select a from generate_series(1, 3000) a order by -a) s";
            small.batch_execute(sorted).expect("a small sort");
            longest = longest.max(begun.elapsed());
            count += 1;
        }
        (count, longest)
    });
    // Many greedy ones at a time.
    let threads: Vec<_> = (0..6)
        .map(|which| {
            let mut client = node.client();
            std::thread::spawn(move || {
                let mut states = Vec::new();
                for round in 0..4 {
                    let statement = TOO_MUCH[(5 * which + round) % TOO_MUCH.len()].1;
                    states.push(state(client.batch_execute(statement)));
                    client
                        .batch_execute("rollback")
                        .expect("the session goes on");
                }
                states
            })
        })
        .collect();
    for thread in threads {
        for state in thread.join().expect("no panic") {
            assert_eq!(state, out_of_memory());
        }
    }
    // One that holds much for later has to go when another needs room.
    let mut holder = node.client();
    holder
        .batch_execute(
            "begin; declare held cursor with hold for
             select a, repeat('x', 100) from generate_series(1, 120000) a; commit",
        )
        .expect("room for it");
    let mut other = node.client();
    let enough = "select count(*) from (select a, repeat('x', 100) from generate_series(1, 80000) a order by -a) s";
    assert_eq!(state(other.batch_execute(enough)), None);
    stop.store(true, Ordering::Relaxed);
    let (count, longest) = beside.join().expect("small statements never fail");
    eprintln!("{count} small rounds, the longest took {longest:?}");
    assert!(
        count > 3 && longest < SMALL_MAX,
        "{count} rounds, {longest:?}"
    );
    node.check();
}

#[test]
fn no_session_raises_the_budget() {
    let node = Node::start();
    let mut client = node.client();
    let shown = client
        .simple_query("show quorate.memory_budget")
        .expect("it is shown");
    assert!(shown
        .iter()
        .any(|it| matches!(it, SimpleQueryMessage::Row(row) if row.get(0) == Some("64MB"))));
    for (statement, why) in [
        ("set quorate.memory_budget = '1GB'", "55P02"),
        (
            "alter role postgres set quorate.memory_budget = '1GB'",
            "55P02",
        ),
        ("alter system set quorate.memory_budget = '1GB'", "0A000"),
    ] {
        let refused = state(client.batch_execute(statement));
        assert_eq!(refused.as_deref(), Some(why), "{statement}");
    }
}
