//! Sessions whole, on the engine in memory: what the protocol layer relies on. What statements
//! answer is compared with PostgreSQL by the corpus in `tests/sql`.

use std::sync::Arc;

use base::engine::Transactions;
use base::{Debt, Durability, Error, Result};

use super::fake::{FakeEngine, FakeEnv};
use super::*;
use execution::state::activity::Activity;

/// Everything that a session shows, as lines.
#[derive(Default)]
pub(super) struct Lines {
    pub(super) lines: Vec<String>,
    owed: Vec<(Debt, Durability)>,
    commits: usize,
}

impl Sink for Lines {
    fn owe(&mut self, debt: &Debt, durability: Durability) {
        self.owed.push((debt.clone(), durability));
    }
    fn committed(&mut self, _: &Debt) {
        self.commits += 1;
    }
    fn row_description(&mut self, columns: &[Column]) -> Result<()> {
        let names: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
        self.lines.push(format!("[{}]", names.join(" ")));
        Ok(())
    }
    fn row(&mut self, row: &RowView<'_>) -> Result<()> {
        let mut line = Vec::new();
        for column in 0..row.len() {
            if column > 0 {
                line.push(b'|');
            }
            if !row.is_null(column) {
                row.put(column, Format::Text, &mut line)?;
            }
        }
        self.lines.push(String::from_utf8(line).unwrap());
        Ok(())
    }
    fn command_complete(&mut self, tag: &CommandTag) -> Result<()> {
        self.lines.push(tag.to_string());
        Ok(())
    }
    fn empty_query(&mut self) -> Result<()> {
        self.lines.push("empty".to_owned());
        Ok(())
    }
    fn notice(&mut self, notice: &Notice) -> Result<()> {
        let severity = notice.severity.name();
        self.lines
            .push(format!("{severity}: {}", notice.body.message()));
        Ok(())
    }
    fn parameter_status(&mut self, name: &str, value: &str) -> Result<()> {
        self.lines.push(format!("{name}={value}"));
        Ok(())
    }
}

pub(super) fn connect(engine: &FakeEngine, user: &str, database: &str) -> Result<Session> {
    let env = Arc::new(FakeEnv::default());
    bootstrap(&engine.to_engine(), env.as_ref(), "ann", None)?;
    let start = SessionStart {
        defaults: Vec::new(),
        user: user.to_owned(),
        database: database.to_owned(),
        backend_pid: 7,
        client_address: None,
        client_port: None,
        server_address: None,
        interrupts: Arc::default(),
        settings: vec![("application_name".to_owned(), "tests".to_owned())],
        activity: Arc::new(Activity::new(7)),
        tls: None,
        registry: None,
        catalogs: engine.catalogs.clone(),
        is_automatic: false,
    };
    Session::new(Arc::new(engine.to_engine()), env, start)
}

pub(super) fn session() -> Session {
    connect(&FakeEngine::default(), "postgres", "postgres").unwrap()
}

/// Runs a message and returns what it shows, an error as its last line.
pub(super) fn run(session: &mut Session, text: &str) -> Vec<String> {
    let mut lines = Lines::default();
    if let Err(error) = session.simple_query(text, &mut lines) {
        lines.lines.push(shown(&error));
    }
    lines.lines
}

fn shown(error: &Error) -> String {
    let detail = error.fields().detail.as_ref();
    let detail = detail.map_or(String::new(), |detail| format!(" ({detail})"));
    let place = error
        .fields()
        .position
        .map_or(String::new(), |at| format!(" at {at}"));
    format!("{} {}{detail}{place}", error.state(), error.message())
}

#[test]
fn users_and_databases_must_exist() {
    let engine = FakeEngine::default();
    let refused =
        |user: &str, database: &str| shown(&connect(&engine, user, database).unwrap_err());
    assert_eq!(refused("bob", "ann"), "28000 role \"bob\" does not exist");
    assert_eq!(
        refused("ann", "bob"),
        "3D000 database \"bob\" does not exist"
    );
    assert!(connect(&engine, "ann", "ann").is_ok());
    assert!(connect(&engine, "postgres", "ann").is_ok());
}

#[test]
fn databases_have_tables_of_their_own() {
    let engine = FakeEngine::default();
    let mut one = connect(&engine, "ann", "ann").unwrap();
    let mut other = connect(&engine, "ann", "postgres").unwrap();
    run(&mut one, "create table t (i int)");
    assert_eq!(
        run(&mut one, "select count(*) from t"),
        ["[count]", "0", "SELECT 1"]
    );
    let missing = "42P01 relation \"t\" does not exist at 15";
    assert_eq!(run(&mut other, "select * from t"), [missing]);
    assert_eq!(run(&mut other, "create table t (i int)"), ["CREATE TABLE"]);
}

#[test]
fn a_message_is_one_transaction() {
    let mut session = session();
    let lines = run(
        &mut session,
        "create table t (i int primary key); insert into t values (1); insert into t values (1)",
    );
    let error = "23505 duplicate key value violates unique constraint \"t_pkey\" \
                 (Key (i)=(1) already exists.)";
    assert_eq!(lines, ["CREATE TABLE", "INSERT 0 1", error]);
    assert_eq!(session.transaction_status(), TransactionStatus::Idle);
    let missing = "42P01 relation \"t\" does not exist at 15";
    assert_eq!(run(&mut session, "select * from t"), [missing]);
    assert_eq!(run(&mut session, " ; "), ["empty"]);
}

#[test]
fn a_failed_block_waits_for_its_end() {
    let mut session = session();
    run(&mut session, "create table t (i int)");
    run(&mut session, "begin; insert into t values (1); savepoint s");
    assert_eq!(session.transaction_status(), TransactionStatus::InBlock);
    run(&mut session, "select 1 / 0");
    assert_eq!(session.transaction_status(), TransactionStatus::Failed);
    let ignored = "25P02 current transaction is aborted, commands ignored until end of \
                   transaction block";
    assert_eq!(run(&mut session, "select 1"), [ignored]);
    assert_eq!(run(&mut session, "rollback to s"), ["ROLLBACK"]);
    assert_eq!(run(&mut session, "commit"), ["COMMIT"]);
    assert_eq!(
        run(&mut session, "select i from t"),
        ["[i]", "1", "SELECT 1"]
    );
}

#[test]
fn ddl_is_rolled_back() {
    let mut session = session();
    run(
        &mut session,
        "create table t (i int); insert into t values (1)",
    );
    let lines = run(
        &mut session,
        "begin; truncate t; create table u (j int); drop table t; select count(*) from u; rollback",
    );
    assert_eq!(
        lines,
        [
            "BEGIN",
            "TRUNCATE TABLE",
            "CREATE TABLE",
            "DROP TABLE",
            "[count]",
            "0",
            "SELECT 1",
            "ROLLBACK"
        ]
    );
    assert_eq!(
        run(&mut session, "select i from t"),
        ["[i]", "1", "SELECT 1"]
    );
    assert!(run(&mut session, "select * from u")[0].starts_with("42P01"));
}

#[test]
fn portals_give_rows_in_portions() {
    let mut session = session();
    let prepared = session
        .prepare("select x from generate_series(1, $1) x", &[])
        .unwrap();
    assert_eq!(prepared.param_types(), [Oid(23)]);
    assert_eq!(prepared.columns().unwrap()[0].name, "x");
    let param = Param {
        format: Format::Text,
        value: Some(b"3"),
    };
    let mut portal = session.bind(&prepared, &[param]).unwrap();
    let mut lines = Lines::default();
    assert_eq!(
        session.execute(&mut portal, 2, &mut lines).unwrap(),
        Executed::Suspended
    );
    let end = session.execute(&mut portal, 2, &mut lines).unwrap();
    assert!(matches!(end, Executed::Complete(Some(_))));
    assert_eq!(lines.lines, ["1", "2", "3"]);
    session.sync(&mut lines).unwrap();
    assert!(session.bind(&prepared, &[]).is_err());
}

#[test]
fn prepared_statements_follow_the_catalog() {
    let mut session = session();
    run(
        &mut session,
        "create table t (i int); insert into t values (1)",
    );
    let prepared = session.prepare("select * from t", &[]).unwrap();
    let mut lines = Lines::default();
    run(&mut session, "truncate t; insert into t values (2)");
    let mut portal = session.bind(&prepared, &[]).unwrap();
    session.execute(&mut portal, 0, &mut lines).unwrap();
    assert_eq!(lines.lines, ["2"]);
    run(&mut session, "drop table t; create table t (j text)");
    let mut portal = session.bind(&prepared, &[]).unwrap();
    let error = session.execute(&mut portal, 0, &mut lines).unwrap_err();
    assert_eq!(error.message(), "cached plan must not change result type");
    assert_eq!(error.fields().routine, Some("RevalidateCachedQuery"));
}

#[test]
fn output_owes_what_it_rests_on() {
    let mut session = session();
    let mut lines = Lines::default();
    session
        .simple_query(
            "create table t (i int); insert into t values (1)",
            &mut lines,
        )
        .unwrap();
    assert_eq!(lines.commits, 1);
    assert!(lines.owed.iter().any(|owed| owed.1 == Durability::On));
    let mut lines = Lines::default();
    session
        .simple_query("select i from t for update", &mut lines)
        .unwrap();
    assert_eq!(lines.commits, 0, "what only reads appends nothing");
    let mut lines = Lines::default();
    let text = "begin; set local synchronous_commit = off; insert into t values (2); commit";
    session.simple_query(text, &mut lines).unwrap();
    let last = lines.owed.last().unwrap();
    assert_eq!((last.1, lines.commits), (Durability::Off, 1));
    assert_eq!(session.durability(), Durability::On);
}

#[test]
fn a_block_may_commit_where_it_is_alone() {
    let mut session = session();
    run(&mut session, "create table t (i int primary key)");
    let block =
        "do $$ begin for i in 1..1e2 loop insert into t values (i); commit; end loop; end $$";
    let mut lines = Lines::default();
    session.simple_query(block, &mut lines).unwrap();
    assert_eq!(
        (lines.lines.as_slice(), lines.commits),
        (&["DO".to_owned()][..], 100)
    );
    let refused = "2D000 invalid transaction termination";
    assert_eq!(
        run(&mut session, "select 1; do $$ begin commit; end $$")[3],
        refused
    );
    run(&mut session, "begin");
    assert_eq!(run(&mut session, "do $$ begin commit; end $$"), [refused]);
}

#[test]
fn settings_are_reported_and_rolled_back() {
    let mut session = session();
    assert_eq!(
        session.setting("application_name").as_deref(),
        Some("tests")
    );
    let lines = run(&mut session, "set application_name = 'other'");
    assert_eq!(lines, ["application_name=other", "SET"]);
    run(&mut session, "begin; set statement_timeout = '1s'");
    assert_eq!(session.statement_timeout(), Some(Duration::from_secs(1)));
    run(&mut session, "rollback");
    assert_eq!(session.statement_timeout(), None);
}

#[test]
fn computed_indexes_are_found_by_what_they_are_on() {
    let mut session = session();
    run(
        &mut session,
        "create table u (id int primary key, name varchar(30), st text, done bool, v int, k int); \
         insert into u select n, 'N' || n, case n % 3 when 0 then 'new' else 'old' end, \
           n % 2 = 0, n, n from generate_series(1, 100) n; \
         create index u_low on u (lower(name)); \
         create index u_sum on u ((v + k) desc); \
         create index u_new on u (v) where st = 'new'; \
         create index u_open on u (k) where not done; \
         create index u_known on u (name) where st is not null; \
         create index u_large on u (v) where v > 50",
    );
    let explained = |session: &mut Session, rest: &str| {
        let lines = run(
            session,
            &format!("explain (costs off) select * from u {rest}"),
        );
        let scan = lines.iter().find(|line| line.contains(" Scan "));
        let scan = scan.expect("a scan").trim_start_matches([' ', '-', '>']);
        scan.replace(" Backward", "")
    };
    for (rest, index) in [
        ("where lower(name) = 'n5'", Some("u_low")),
        ("where 'n5' < lower(name)", Some("u_low")),
        ("where upper(name) = 'N5'", None),
        ("order by lower(name) limit 1", Some("u_low")),
        ("where v + k = 10", Some("u_sum")),
        ("where k + v = 10", None),
        ("order by v + k limit 1", Some("u_sum")),
        ("where v = 3 and st = 'new'", Some("u_new")),
        ("where v = 3 and st in ('new')", Some("u_new")),
        ("where v = 3", None),
        ("where v = 3 and (st = 'new' or st = 'old')", None),
        ("where k = 7 and not done", Some("u_open")),
        ("where k = 7 and done = false", Some("u_open")),
        ("where k = 7 and done", None),
        ("where not done order by k limit 1", Some("u_open")),
        ("where name = 'N5' and st > 'a'", Some("u_known")),
        ("where name = 'N5' and st is null", None),
        ("where v = 63", Some("u_large")),
        ("where v > 50", Some("u_large")),
        ("where v >= 50", None),
    ] {
        let expected = match index {
            Some(index) => format!("Index Scan using {index} on u"),
            None => "Seq Scan on u".to_owned(),
        };
        assert_eq!(explained(&mut session, rest), expected, "{rest}");
    }
    // The literals in a plan that is kept for the next statement are those of the day.
    for (rest, expected) in [
        ("v + k = 10", "5"),
        ("v + k = 12", "6"),
        ("v + v = 12", "6"),
        ("v = 4 and st = 'old'", "4"),
        ("v = 6 and st = 'new'", "6"),
        ("v = 7 and st = 'old'", "7"),
        ("v = 61", "61"),
        ("v = 31", "31"),
        ("v = 62", "62"),
    ] {
        let lines = run(&mut session, &format!("select id from u where {rest}"));
        assert_eq!(lines[1], expected, "{rest}");
    }
}

#[test]
fn keys_are_looked_up_and_ranges_scanned() {
    let mut session = session();
    run(
        &mut session,
        "create table t (a int, b text, c int, primary key (a, b)); \
         create index on t (c); \
         insert into t select x, 'k' || x % 3, x * 10 from generate_series(1, 300) x",
    );
    let plan = |session: &mut Session, condition: &str| {
        run(
            session,
            &format!("explain (costs off) select * from t where {condition}"),
        )[1]
        .clone()
    };
    assert_eq!(
        plan(&mut session, "a = 7 and b = 'k1'"),
        "Index Scan using t_pkey on t"
    );
    assert_eq!(plan(&mut session, "a > 7"), "Index Scan using t_pkey on t");
    assert_eq!(
        plan(&mut session, "c = 70"),
        "Index Scan using t_c_idx on t"
    );
    assert_eq!(plan(&mut session, "b = 'k1'"), "Seq Scan on t");
    let count = |session: &mut Session, condition: &str| {
        run(
            session,
            &format!("select count(*) from t where {condition}"),
        )[1]
        .clone()
    };
    for (condition, expected) in [
        ("a = 7 and b = 'k1'", "1"),
        ("a = 7 and b = 'k2'", "0"),
        ("a = 7", "1"),
        ("a > 290", "10"),
        ("a >= 290 and a < 295", "5"),
        ("a between 10 and 12", "3"),
        ("a = 3000000000", "0"),
        ("a < 3000000000", "300"),
        ("c = 70", "1"),
        ("c > 2990", "1"),
        ("c = null", "0"),
        ("5 > a", "4"),
    ] {
        assert_eq!(count(&mut session, condition), expected, "{condition}");
    }
}

#[test]
fn unknown_statements_are_named() {
    let mut session = session();
    assert_eq!(
        run(&mut session, "load 'x'"),
        ["0A000 LOAD is not supported"]
    );
}

#[test]
fn rows_held_in_memory_have_a_bound() {
    let mut session = session();
    run(&mut session, "set quorate.query_mem = '64kB'");
    let endless = "with recursive q(n) as (select 1 union all select n + 1 from q) ";
    let wide = "from generate_series(1, 100000) as n";
    for query in [
        format!("select n {wide} order by n desc"),
        format!("select n, count(*) {wide} group by n"),
        format!("select distinct n {wide}"),
        format!("select count(distinct n) {wide}"),
        format!("select array_agg(n order by n desc) {wide}"),
        format!("select count(*) from (select n {wide}) as x, (select n {wide}) as y where y.n = x.n"),
        format!("select n {wide} intersect select n {wide}"),
        format!("{endless} select count(*) from q"),
        format!("{endless} select * from (with recursive r(n) as (select 1 union all select n from q) select * from r) as r order by n limit 1"),
    ] {
        let lines = run(&mut session, &query);
        let last = lines.last().map_or("", String::as_str);
        assert!(last.starts_with("53200 "), "{last}: {query}");
    }
    let few = format!("{endless} select sum(n) from (select n from q limit 100) as few");
    assert_eq!(run(&mut session, &few)[1], "5050");
    run(&mut session, "reset quorate.query_mem");
    let sorted = format!("select n {wide} order by n desc limit 1");
    assert_eq!(run(&mut session, &sorted)[1], "100000");
}

#[test]
fn windows_keep_only_rows_that_they_look_at() {
    let mut session = session();
    run(&mut session, "set quorate.query_mem = '64kB'");
    let mut over = |function: &str, window: &str| {
        let query = format!(
            "select max(x) from (select {function} over ({window}) as x \
             from generate_series(1, 100000) as n) as s"
        );
        run(&mut session, &query)[1].clone()
    };
    for (function, window, most) in [
        ("row_number()", "", "100000"),
        ("lag(n)", "", "99999"),
        ("lead(n)", "", "100000"),
        ("sum(n)", "rows unbounded preceding", "5000050000"),
        ("sum(n)", "rows 9 preceding", "999955"),
        (
            "min(n)",
            "rows between 5 preceding and 1 preceding",
            "99995",
        ),
        (
            "last_value(n)",
            "rows between current row and 7 following",
            "100000",
        ),
    ] {
        assert_eq!(over(function, window), most, "{function} over ({window})");
    }
}

#[test]
fn windows_that_must_keep_all_rows_have_a_bound() {
    let mut session = session();
    run(&mut session, "set quorate.query_mem = '64kB'");
    for call in [
        "count(*) over ()",
        "lag(n, 5) over ()",
        "first_value(n) over (rows unbounded preceding)",
        "ntile(4) over ()",
        "sum(n) over (order by n)",
    ] {
        let lines = run(
            &mut session,
            &format!("select {call} from generate_series(1, 100000) as n"),
        );
        let last = lines.last().map_or("", String::as_str);
        assert!(last.starts_with("53200 "), "{last}: {call}");
    }
}

/// Were they not linear, each of these would take billions of steps.
#[test]
fn frames_that_only_grow_or_move_are_linear() {
    let mut session = session();
    for (call, most) in [
        ("sum(n) over (order by n)", "5000050000"),
        ("max(n) over ()", "100000"),
        ("sum(n) over (partition by n / 50000)", "3749975000"),
        ("string_agg(null, '') over (order by n)", ""),
        (
            "count(*) over (order by n range between 50000 preceding and 10 following)",
            "50011",
        ),
        (
            "sum(n) over (rows between 30000 preceding and 20000 following)",
            "3750075000",
        ),
        (
            "avg(n) over (order by n groups between 40000 preceding and current row)",
            "80000.000000000000",
        ),
        ("rank() over (order by n / 2)", "100000"),
        ("cume_dist() over (order by n / 10000)", "1"),
    ] {
        let query = format!(
            "select max(x) from (select {call} as x from generate_series(1, 100000) as n) as s"
        );
        assert_eq!(run(&mut session, &query)[1], most, "{call}");
    }
}

#[test]
fn an_engine_is_bootstrapped_once() {
    let engine = FakeEngine::default();
    let env = FakeEnv::default();
    bootstrap(&engine.to_engine(), &env, "ann", None).unwrap();
    let version = engine.catalog_version();
    bootstrap(&engine.to_engine(), &env, "ann", None).unwrap();
    assert_eq!(engine.catalog_version(), version);
}

/// What one turn of the commit loop costs outside the engine; a figure to look at, not a limit.
#[test]
fn the_commit_loop_keeps_its_plans() {
    let mut session = session();
    run(
        &mut session,
        "create table demo (i int primary key, t timestamp default clock_timestamp())",
    );
    let block = "do $$ begin truncate demo; for i in 1..1e4 loop insert into demo(i) values(i); \
                 commit; end loop; end; $$;";
    assert_eq!(run(&mut session, block), ["DO"]);
    assert_eq!(run(&mut session, "select count(*) from demo")[1], "10000");
}

#[test]
fn every_system_relation_can_be_read() {
    let engine = FakeEngine::default();
    let mut session = connect(&engine, "ann", "ann").unwrap();
    let run = |session: &mut Session, text: &str| {
        let mut lines = Lines::default();
        session.simple_query(text, &mut lines).map(|()| lines.lines)
    };
    let made = "create table t (a int primary key, b text default 'x' check (b <> '')); \
                create index on t (b desc)";
    run(&mut session, made).unwrap();
    for table in catalog::system::tables() {
        let schema = match table.schema {
            catalog::PG_CATALOG => "pg_catalog",
            catalog::INFORMATION_SCHEMA => "information_schema",
            _ => "quorate",
        };
        let text = format!("select * from {schema}.{}", table.name);
        if let Err(error) = run(&mut session, &text) {
            panic!("{text}: {error}");
        }
    }
    let rows = run(
        &mut session,
        "select attname from pg_attribute where attrelid = 't'::regclass",
    );
    assert_eq!(rows.unwrap()[1..], ["a", "b", "SELECT 2"]);
}

#[test]
fn prepared_statements_move_with_the_strings_that_they_were_read_with() {
    let engine = FakeEngine::default();
    let mut old = connect(&engine, "postgres", "postgres").unwrap();
    run(&mut old, "prepare plain as select 'a\\tb'");
    run(&mut old, "set standard_conforming_strings = off");
    run(&mut old, "prepare escaped as select 'a\\tb'");
    let protocols = old.prepare("select 'c\\'d'", &[]).unwrap();
    old.keep_prepared("protocols", protocols).unwrap();
    for strings in ["off", "on"] {
        let set = format!("set standard_conforming_strings = {strings}");
        run(&mut old, &set);
        let mut session = connect(&engine, "postgres", "postgres").unwrap();
        session
            .resume(&old.pack(), TransactionStatus::Idle, None)
            .unwrap();
        for (name, value) in [
            ("plain", "a\\tb"),
            ("escaped", "a\tb"),
            ("protocols", "c'd"),
        ] {
            let shown = run(&mut session, &format!("execute {name}"));
            assert_eq!(shown[1], value, "{name}");
        }
        assert_eq!(session.pack(), old.pack());
    }
}

/// What a client is shown that sends this in a block that was lost with its leader, after `before`.
fn in_a_lost_block(before: &[&str], text: &str) -> String {
    let engine = FakeEngine::default();
    let mut old = connect(&engine, "postgres", "postgres").unwrap();
    run(
        &mut old,
        "prepare p as select 1; create table if not exists t (i int)",
    );
    let packed = old.pack();
    let mut session = connect(&engine, "postgres", "postgres").unwrap();
    session
        .resume(&packed, TransactionStatus::InBlock, None)
        .unwrap();
    for text in before {
        run_as_told(&mut session, text);
    }
    run_as_told(&mut session, text)
}

/// As [`run`], but for the error that the protocol layer shows.
fn run_as_told(session: &mut Session, text: &str) -> String {
    let outcome = session.simple_query(text, &mut Lines::default());
    let status = match session.transaction_status() {
        TransactionStatus::Idle => 'I',
        TransactionStatus::InBlock => 'T',
        TransactionStatus::Failed => 'E',
    };
    match outcome {
        Ok(()) => format!("ok {status}"),
        Err(error) => {
            let told = session.tell_loss().unwrap_or(error);
            format!("{} {status}", told.state())
        }
    }
}

#[test]
fn a_lost_block_says_so_whatever_comes_first() {
    for text in [
        "select 1",
        "rollback to s",
        "release s",
        "savepoint s",
        "begin",
        "fetch c",
        "move c",
        "close c",
        "declare c cursor for select 1",
        "execute p",
        "deallocate p",
        "copy t to stdout",
        "copy t from stdin",
        "show work_mem",
        "set work_mem = '1MB'",
        "set local work_mem = '1MB'",
        "prepare q as select 2",
        "lock table t",
        "select nonsense",
        "nonsense",
        "select 1; rollback",
        "rollback and chain",
    ] {
        assert_eq!(in_a_lost_block(&[], text), "40001 E", "{text}");
        assert_eq!(in_a_lost_block(&[text], "rollback"), "ok I", "{text}");
        assert_eq!(
            in_a_lost_block(&[text], "rollback to s"),
            "40001 E",
            "{text}"
        );
        assert_eq!(in_a_lost_block(&[text], "select 1"), "25P02 E", "{text}");
        assert_eq!(in_a_lost_block(&[text], "commit"), "ok I", "{text}");
    }
    assert_eq!(in_a_lost_block(&[], "commit"), "40001 I");
    assert_eq!(in_a_lost_block(&[], "end"), "40001 I");
    assert_eq!(in_a_lost_block(&[], "commit and chain"), "40001 E");
    assert_eq!(in_a_lost_block(&[], "rollback"), "ok I");
    assert_eq!(in_a_lost_block(&[], "rollback; select 1"), "ok I");
    assert_eq!(in_a_lost_block(&[" ; "], "select 1"), "40001 E");
    assert_eq!(in_a_lost_block(&["rollback"], "fetch c"), "34000 I");
    assert_eq!(
        in_a_lost_block(&["rollback", "begin"], "rollback to s"),
        "3B001 E"
    );
}

/// Runs messages in a coroutine: how often each gave way, and how often dropping the session did.
fn turns(mut session: Box<Session>, texts: &[&'static str]) -> Vec<usize> {
    use std::cell::{Cell, RefCell};
    use std::future::Future;
    use std::task::{Context, Poll, Waker};
    let at = Rc::new(Cell::new(0));
    let turns = Rc::new(RefCell::new(vec![0; texts.len() + 1]));
    let (now, texts) = (at.clone(), texts.to_vec());
    let mut run = base::coro::run(Arc::default(), move || {
        for text in texts {
            let lines = self::run(&mut session, text);
            assert!(
                !lines
                    .iter()
                    .any(|line| line.contains(' ') && line.as_bytes()[0].is_ascii_digit()),
                "{lines:?}"
            );
            now.set(now.get() + 1);
        }
        drop(session);
    });
    let mut cx = Context::from_waker(Waker::noop());
    while std::pin::Pin::new(&mut run).poll(&mut cx) == Poll::Pending {
        turns.borrow_mut()[at.get()] += 1;
    }
    let turns = turns.borrow().clone();
    turns
}

#[test]
fn temporary_rows_end_in_turns() {
    let fill = "insert into t select g, 'row ' || g from generate_series(1, 20000) g";
    let texts = [
        "create temporary table t (i int primary key, x text)",
        "begin; create index on t (x); savepoint a",
        fill,
        "rollback to a",
        fill,
        "rollback",
        "begin",
        fill,
        "commit",
        "create index on t (x)",
        "begin; delete from t",
        // There is nothing to be seen.
        "select count(*) from t",
        "rollback",
        "truncate t",
        fill,
    ];
    let turns = turns(Box::new(session()), &texts);
    for (text, place) in [
        ("rollback to a", 3),
        ("rollback", 5),
        ("commit", 8),
        ("create index", 9),
        ("select", 11),
        ("rollback of a delete", 12),
        ("truncate", 13),
        ("the end of the session", 15),
    ] {
        assert!(turns[place] > 2, "{text}: {turns:?}");
    }
}
