//! Statements that want to bring a server down: values without end, panics, work without end.
//!
//! What they may do is fail. The session beside them, and the next one, must hardly notice.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::stage::{Session, Stage};
use crate::writers::connect;

/// Within this a statement ends that is told to, and a new client is served. Among other tests and
/// without optimization the figure says only that it happens at all: what it takes is printed.
const PROMPTLY: Duration = match cfg!(debug_assertions) {
    true => Duration::from_secs(15),
    false => Duration::from_millis(100),
};

/// How long a value may be in the making, beside other hostile statements.
const PATIENCE: Duration = Duration::from_secs(120);

/// A cancel that comes before its statement is lost, as in PostgreSQL; so another is sent after a while.
const CANCEL_AGAIN: Duration = Duration::from_secs(3);

/// A gigabyte in the making, by whatever can multiply its arguments.
pub const TOO_LONG: &[&str] = &[
    "select length(replace(repeat('a', 1000000), 'a', repeat('b', 1000000)))",
    "select length(repeat('ab', 600000000))",
    "select length(repeat(repeat('a', 1000000), 2000))",
    "select length(lpad('a', 1073741824))",
    "select length(rpad('a', 2000000000, 'xy'))",
    "select length(string_agg(repeat('a', 100000000), ',')) from generate_series(1, 20)",
    "select length(string_agg(a, a)) from generate_series(1, 2000),
     (select decode(repeat('YWJj', 100000), 'base64') a offset 0) s",
    "select array_length(array_agg(repeat('a', 100000000)), 1) from generate_series(1, 20)",
    "select length(regexp_replace(repeat('a', 100000), 'a', repeat('b', 100000), 'g'))",
    "select length(format('%1$s%1$s%1$s%1$s%1$s%1$s%1$s%1$s%1$s%1$s%1$s', repeat('a', 100000000)))",
    "select length(concat(a, a, a, a, a, a)) from (select repeat('a', 200000000) a offset 0) s",
    "select length(concat_ws(a, a, a, a, a)) from (select repeat('a', 200000000) a offset 0) s",
    "select length(a || a || a || a || a || a) from (select repeat('a', 200000000) a offset 0) s",
    "select length(array_to_string(string_to_array(repeat(',', 20000), ','), repeat('x', 100000)))",
    "select length(overlay(a placing a from 2 for 0)) from (select repeat('a', 600000000) a offset 0) s",
    "select a, a, a, a, a, a from (select repeat('a', 200000000) a offset 0) s",
];

#[test]
fn values_that_would_be_too_long_are_refused_before_they_are_made() {
    let session = Stage::one_node().session();
    for statement in TOO_LONG {
        let begun = Instant::now();
        session.start(statement);
        let outcome = session.answered(PATIENCE).expect("an answer in time");
        let state = outcome.map_err(|refusal| refusal.state);
        assert_eq!(state, Err("54000".to_owned()), "{statement}");
        eprintln!("{:>8.1?} {statement}", begun.elapsed());
    }
    assert_eq!(session.ok("select 1"), "1");
}

#[test]
fn a_panic_is_the_error_of_its_statement() {
    let stage = Stage::one_node();
    stage.table(
        "planted",
        "id int primary key, v text",
        "(1, 'a'), (2, 'b')",
    );
    let other = stage.session();
    for (place, statement) in [
        ("parse", "create table never(i int)"),
        ("bind", "select v from planted where id = 1 + 0"),
        ("exec", "select v from planted order by v"),
        ("write", "update planted set v = 'x'"),
        ("write", "insert into planted values (3, 'c'), (4, 'd')"),
    ] {
        let session = stage.session();
        session.ok(&format!("set planted.panic = '{place}'"));
        assert_eq!(session.refused(statement), "XX000", "{place}");
        // Nothing of it stays, not even a lock.
        other.ok("begin; update planted set v = v; lock table planted; commit");
        let rows = "select string_agg(v, '' order by id) from planted";
        assert_eq!(other.ok(rows), "ab", "{place}");
    }
    // The session goes on; a block has failed.
    let session = stage.session();
    session.ok("begin; update planted set v = 'y' where id = 1");
    session.ok("set local planted.panic = 'exec'");
    assert_eq!(session.refused("select v from planted"), "XX000");
    assert_eq!(session.refused("select 1"), "25P02");
    session.ok("rollback");
    session.ok("set planted.panic = ''");
    assert_eq!(session.ok("select v from planted where id = 1"), "a");
}

#[test]
fn a_panic_in_a_commit_leaves_its_outcome_unknown() {
    let stage = Stage::one_node();
    stage.table("uncertain", "id int primary key", "");
    let session = stage.session();
    session.ok("set planted.panic = 'commit'");
    assert_eq!(session.refused("insert into uncertain values (1)"), "08007");
    let other = stage.session();
    other.ok("begin; lock table uncertain; commit");
}

/// Work without end, or nearly so, of every kind.
pub const ENDLESS: &[&str] = &[
    // Single functions over megabytes.
    "select repeat('a', 20000000) like '%a%a%a%a%b'",
    "select repeat('ab', 10000000) like '%a_a_a_a_a_a_a_a_c%'",
    "select repeat('A', 20000000) ilike '%a%a%ab'",
    "select repeat('a', 5000000) ~ '(a|aa)+$b'",
    "select length(regexp_replace(repeat('ab', 5000000), '(a|b)', '\\1\\1', 'g'))",
    "select count(*) from regexp_split_to_table(repeat('a,', 5000000), ',')",
    "select length(replace(repeat('ab', 50000000), 'b', 'cd'))",
    "select length(translate(repeat('abc', 50000000), 'abc', 'xyz'))",
    "select length(upper(repeat('aé', 30000000)))",
    "select length(initcap(repeat('a b ', 30000000)))",
    "select length(reverse(repeat('aé', 30000000)))",
    "select position(repeat('a', 100000) || 'b' in repeat('a', 100000000))",
    "select array_length(string_to_array(repeat('a,', 10000000), ','), 1)",
    "select array_length(string_to_array(repeat('a', 20000000), null), 1)",
    "select split_part(repeat('a,', 50000000), ',', 40000000)",
    "select split_part(repeat('a,', 50000000), ',', -40000000)",
    "select length(decode(repeat('YWJj', 30000000), 'base64'))",
    "select length(decode(repeat('6162', 30000000), 'hex'))",
    "select length(encode(decode(repeat('YWJj', 10000000), 'base64'), 'escape'))",
    "select length(encode(decode(repeat('YWJj', 10000000), 'base64'), 'hex'))",
    "select md5(repeat('a', 500000000))",
    "select length(lpad('a', 200000000, 'xyz'))",
    "select length(rpad('é', 200000000, 'é'))",
    "select length(repeat('é', 400000000))",
    "select substr(repeat('é', 300000000), 250000000, 10)",
    "select right(repeat('é', 300000000), 10)",
    "select length(overlay(repeat('é', 100000000) placing 'a' from 90000000))",
    "select length(format('%200000000s|%-200000000s', 'a', 'b'))",
    "select length(concat_ws(',', repeat('a', 200000000), repeat('b', 200000000)))",
    "select length(quote_literal(repeat('''', 50000000)))",
    // Numbers with many digits.
    "select repeat('9', 60000)::numeric * repeat('9', 60000)::numeric > 1",
    "select repeat('9', 130000)::numeric / repeat('7', 60000)::numeric > 1",
    "select repeat('9', 130000)::numeric % repeat('7', 60000)::numeric > 1",
    "select power(repeat('9', 1000)::numeric, 100) > 1",
    "select 9999999::numeric ^ 18000 > 1",
    "select sqrt(repeat('9', 100000)::numeric) > 1",
    "select ln(repeat('9', 100000)::numeric) > 1",
    "select factorial(30000) > 1",
    "select sum(repeat('9', 50000)::numeric * g) > 1 from generate_series(1, 1000000) g",
    "select variance(repeat('9', 50000)::numeric + g) > 1 from generate_series(1, 1000000) g",
    // Rows without end.
    "select count(*) from generate_series(1, 1000000000)",
    "select count(*) from generate_series(1, 100000) a, generate_series(1, 100000) b",
    "select count(*) from generate_series(1, 100000) a join generate_series(1, 100000) b on a < b",
    "select count(*) from generate_series(1, 3000000) a full join generate_series(1, 3000000) b on a = b",
    "select a from generate_series(1, 3000000) a order by md5(a::text), a desc offset 10000000",
    "select a from generate_series(1, 3000000) a order by -a offset 10000000",
    "select count(*) from (select md5(a::text), count(*) from generate_series(1, 3000000) a group by 1) s",
    "select count(distinct a % 1000000) from generate_series(1, 5000000) a",
    "select sum(a) over (order by a rows between 10000 preceding and 10000 following)
     from generate_series(1, 1000000) a offset 10000000",
    "select max(a) over (order by a rows between 10000 preceding and current row)
     from generate_series(1, 1000000) a offset 10000000",
    "select count(*) over (partition by a % 3 order by a)
     from generate_series(1, 2000000) a offset 10000000",
    "select distinct a % 2000000 from generate_series(1, 5000000) a offset 10000000",
    "select a from generate_series(1, 5000000) a union select a from generate_series(1, 5000000) a
     offset 100000000",
    "select a from generate_series(1, 5000000) a except select a from generate_series(2, 5000000) a
     offset 100000000",
    "with recursive r(i) as (select 1 union all select i + 1 from r where i < 1000000000)
     select count(*) from r",
    "with recursive r(i) as (select 1::bigint union select (i * 7 + 1) % 100000007 from r)
     select count(*) from r",
    "select count(*) from generate_series(1, 100000) a
     where a in (select b from generate_series(1, 1000000) b where b % a = 0)",
    "select count(*) from generate_series(1, 1000000) a
     where exists (select from generate_series(1, 1000000) b where b = -a)",
    "select count(*) from generate_series(1, 1000000) a
     where a = any (array(select -b from generate_series(1, 100000) b))",
    "select array_length(array_agg(a), 1) from generate_series(1, 10000000) a",
    "select length(string_agg(a::text, ',')) from generate_series(1, 10000000) a",
    "select length(string_agg(a::text, ',' order by md5(a::text))) from generate_series(1, 3000000) a",
    "select count(*) from unnest(array(select generate_series(1, 5000000))) a,
     generate_series(1, 1000) b",
    "select array(select generate_series(1, 30000)) <@ array(select generate_series(30000, 1, -1))",
    "select array(select generate_series(1, 30000)) && array(select generate_series(30001, 60000))",
    "select count(*) from generate_series(1, 100000000) a where a::text like '%99999999%9'",
    "do $$ begin loop null; end loop; end $$",
    "do $$ declare i int := 0; begin while true loop i := (i + 1) % 1000; end loop; end $$",
    "do $$ declare t text := ''; begin for i in 1..10000000 loop t := t || 'x'; end loop; end $$",
    "do $$ begin for i in 1..100000000 loop perform i; end loop; end $$",
    "create temporary table hostile_copy as
     select a, md5(a::text) from generate_series(1, 100000000) a",
    "insert into hostile select a, repeat('x', 100) from generate_series(2, 100000000) a",
    "update hostile set v = v || (select count(*) from generate_series(1, 100000000))",
    // Rows on their way out.
    "select array(select generate_series(1, 10000000))::text",
    "select array(select generate_series(1, 10000000))",
    "select pg_sleep(1000)",
];

/// A list of so many, made of their numbers.
fn list(count: usize, one: impl Fn(usize) -> String, between: &str) -> String {
    (0..count).map(one).collect::<Vec<_>>().join(between)
}

fn times_seven(place: usize) -> String {
    (place * 7).to_string()
}

/// How long a new client takes to be served.
fn arrival(stage: &Stage) -> Duration {
    let begun = Instant::now();
    let mut client = connect(&stage.nodes()[0]).expect("a session");
    client.simple_query("select 1").expect("an answer");
    begun.elapsed()
}

/// What became of a hostile statement: how long a client that came meanwhile took, and how long its
/// end, if it had not ended by itself.
fn try_one(stage: &Stage, session: &Session, statement: &str) -> (Duration, Option<Duration>) {
    session.start(statement);
    let early = session.answered(Duration::from_millis(60));
    let came = arrival(stage);
    if early.is_some() || session.answered(Duration::from_millis(40)).is_some() {
        return (came, None);
    }
    let begun = Instant::now();
    session.cancel();
    let outcome = loop {
        if let Some(outcome) = session.answered(CANCEL_AGAIN) {
            break outcome;
        }
        assert!(begun.elapsed() < PATIENCE, "no end of {statement}");
        session.cancel();
    };
    if let Err(refusal) = &outcome {
        let known = ["57014", "54000", "54001", "53200", "22003", "42601"];
        let known = known.contains(&&*refusal.state);
        assert!(known, "{refusal:?}");
    }
    (came, Some(begun.elapsed()))
}

#[test]
fn every_statement_can_be_ended_and_none_starves_others() {
    let stage = Stage::one_node();
    stage.table("hostile", "a int, v text", "(1, 'a')");
    let session = stage.session();
    let mut slow = Vec::new();
    for statement in ENDLESS {
        let shown: String = statement.chars().take(100).collect();
        let (came, ended) = try_one(&stage, &session, statement);
        eprintln!("{came:>10.1?} {ended:>16.1?} {shown}");
        if came > PROMPTLY || ended.is_some_and(|ended| ended > PROMPTLY) {
            slow.push(format!("{came:?} {ended:?} {shown}"));
        }
    }
    assert!(slow.is_empty(), "{slow:#?}");
}

/// Texts of megabytes, which take long before they run, if they run at all; without optimization, of
/// a tenth of that.
fn long_texts() -> Vec<(&'static str, String)> {
    let most = |count: usize| count / if cfg!(debug_assertions) { 10 } else { 1 };
    let list = |count, one: &dyn Fn(usize) -> String, between| list(most(count), one, between);
    let numbers = |count: usize| list(count, &times_seven, ",");
    let rows = "select count(*) from hostile_texts where";
    let arms = list(50_000, &|place| format!("when {place} then {place}"), " ");
    let pairs = list(300_000, &|place| format!("({place},'x')"), ",");
    let equals = list(100_000, &|place| format!("i = {place}"), " or ");
    let joined = |place: usize| format!("hostile_texts t{place}");
    let joins = list(600, &joined, " natural join ");
    let unions = list(20_000, &|place| format!("select {place}"), " union ");
    let calls = list(200_000, &|_| "abs(".to_owned(), "") + "1" + &")".repeat(most(200_000));
    vec![
        ("numbers", format!("{rows} i in ({})", numbers(1_000_000))),
        (
            "a sum",
            format!("select {}", list(500_000, &times_seven, "+")),
        ),
        ("alternatives", format!("{rows} {equals}")),
        ("rows", format!("select count(*) from (values {pairs}) v")),
        ("arms", format!("select case 1 {arms} end")),
        (
            "inserted",
            format!("insert into hostile_texts select i from (values {pairs}) v(i, t)"),
        ),
        (
            "a text",
            format!("select length('{}')", "é''".repeat(most(10_000_000))),
        ),
        ("joins", format!("select count(*) from {joins}")),
        ("unions", format!("select count(*) from ({unions}) s")),
        ("calls", format!("select {calls}")),
        (
            "an array",
            format!("select array[{}] @> array[3]", numbers(1_000_000)),
        ),
        (
            "a function",
            format!("do $$ begin {} end $$", "perform 1; ".repeat(most(200_000))),
        ),
        ("statements", "select 1; ".repeat(most(300_000))),
        ("nonsense", "select ".repeat(most(2_000_000))),
    ]
}

#[test]
fn long_texts_can_be_ended_before_they_run() {
    let stage = Stage::one_node();
    stage.table("hostile_texts", "i int primary key", "(7)");
    let session = stage.session();
    let mut slow = Vec::new();
    for (what, statement) in long_texts() {
        let (came, ended) = try_one(&stage, &session, &statement);
        eprintln!("{came:>10.1?} {ended:>16.1?} {what}");
        if came > PROMPTLY || ended.is_some_and(|ended| ended > PROMPTLY) {
            slow.push(format!("{came:?} {ended:?} {what}"));
        }
    }
    assert!(slow.is_empty(), "{slow:#?}");
}

#[test]
fn who_is_planned_for_long_need_not_wait_until_nobody_changes_the_catalog() {
    let stage = Stage::one_node();
    stage.table("planned_long", "i int primary key", "(7), (8)");
    let (session, changes) = (stage.session(), stage.session());
    let is_over = &AtomicBool::new(false);
    let outcome = std::thread::scope(|scope| {
        scope.spawn(move || {
            while !is_over.load(Ordering::SeqCst) {
                changes.ok("create table changing (i int)");
                changes.ok("drop table changing");
            }
        });
        let numbers = list(100_000, times_seven, ",");
        session.start(&format!(
            "select count(*) from planned_long where i in ({numbers})"
        ));
        let outcome = session.answered(PATIENCE);
        is_over.store(true, Ordering::SeqCst);
        outcome
    });
    assert_eq!(outcome.expect("an answer in time"), Ok("1".to_owned()));
}

#[test]
fn long_lists_and_chains_cost_what_their_length_does() {
    let stage = Stage::one_node();
    stage.table("listed", "i int primary key", "");
    let session = stage.session();
    session.ok("insert into listed select generate_series(1, 1000)");
    let rows = "select count(*) from listed where";
    let numbers = list(100_000, times_seven, ",");
    let unions = |word: &str| list(3_000, |place| format!("select {}", place % 100), word);
    let values = list(100_000, |place| format!("({place})"), ",");
    let chain = list(3_000, |place| format!("i = {}", place * 7), " or ");
    let union = unions(" union ");
    for (statement, answer) in [
        (format!("{rows} i in ({numbers})"), "142"),
        (format!("{rows} i not in ({numbers})"), "858"),
        (format!("{rows} i in ({numbers}, null)"), "142"),
        (format!("{rows} i not in ({numbers}, null)"), "0"),
        (format!("{rows} (i in ({numbers}, null)) is null"), "858"),
        (format!("{rows} {chain}"), "142"),
        (
            format!("select count(*) from ({}) s", unions(" union all ")),
            "3000",
        ),
        (format!("select count(*) from ({union}) s"), "100"),
        (
            format!("select count(*) from ({union} except select 5 union all select 6) s"),
            "100",
        ),
        (
            format!("select count(*) from (values {values}) v"),
            "100000",
        ),
    ] {
        let begun = Instant::now();
        let shown: String = statement.chars().take(60).collect();
        assert_eq!(session.ok(&statement), answer, "{shown}");
        eprintln!("{:>8.1?} {shown}", begun.elapsed());
    }
}
