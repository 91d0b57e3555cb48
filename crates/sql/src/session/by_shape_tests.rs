//! Plans that are kept give what plans made anew give.

use super::tests::{run, session};
use super::*;

const TABLES: &str = "create table t(a int primary key, b bigint, c numeric, d text, e timestamp);
    create view v as select 7 as x, a from t where a < 7;
    create table u(a int default 7, b text default 'x' || 7, c int check (c <> 7));
    insert into t values (1, 2, 3.5, 'x', '2020-01-01'), (2, 3, 4.5, 'y', '2021-01-01')";

/// Statements in which `{}` stands for a literal.
const TEMPLATES: &[&str] = &[
    "select {}",
    "select {} as x, {} as x order by x",
    "select - {}, 3 - {}",
    "select {}, pg_typeof({})",
    "select pg_typeof(- {})",
    "select {}::int",
    "select {}::text || 'a'",
    "select cast({} as varchar(2))",
    "select {}::numeric(4,1)",
    "select interval {}",
    "select interval {} day",
    "select {}::interval(0)",
    "select date {}, timestamp {}",
    "select a from t where a = {}",
    "select a from t where a = - {}",
    "select a from t where b < {} order by a",
    "select a from t where c > {} or d = {} order by 1",
    "select a from t where d in ({}, 'y') order by a limit {}",
    "select a from t where a in (1, {}, {}) order by a desc",
    "select a from t order by {}",
    "select a from t order by a offset {}",
    "select a + {} from t group by a + {} order by 1",
    "select a + {} as s, count(*) from t group by 1 order by {}",
    "select distinct on (a + {}) a from t order by a + {}",
    "select case when a = {} then {} else 'z' end from t order by a",
    "select {} union select {} order by 1",
    "select {} union all select b from t order by 1",
    "select count(*) from t where e < {}",
    "select coalesce(null, {}), nullif({}, {})",
    "values ({}, 'a'), ({}, 'b')",
    "insert into t values ({}, {}, {}, {}, null)",
    "insert into t(a) values ({}) on conflict (a) do update set b = {}",
    "update t set b = {} where a = {}",
    "update t set c = c + {}, d = {}",
    "delete from t where a = {}",
    "with w as (select {} as v) select v from w",
    "select x from (select {} as x) s where x = {}",
    "select {}, x from v where a <> {} order by a",
    "insert into u(c) values ({}) returning a, b, c",
    "insert into u values (default, {}, {}) returning *",
    "update u set a = default, c = {} returning *",
    "select (select max(b) from t where a < {}), {}",
    "select t.a, s.y from t, lateral (select t.b + {} as y) s where s.y > {} order by 1",
    "select a, count(*) filter (where b > {}) from t group by a having count(*) = {} order by a",
    "select case {} when {} then 'same' else 'other' end",
    "select a from t where (a, b) = ({}, {})",
    "select a from t where a between {} and {} order by a",
    "select a from t where a = any (array[{}, {}]) order by a for update",
    "select greatest({}, {}), least({}, 2)",
    "select a from t where d > {} and not d like {} order by d desc nulls last limit 5",
    "select round({}, 1), abs({}), length({})",
    "select to_char({}::timestamp, 'YYYY'), date_trunc('day', {}::timestamp)",
    "select count(distinct {}), sum(a + {}) from t",
    "select {} from t intersect select {}",
    "with recursive r(n) as (select {} union all select n + 1 from r where n < 3) select n from r",
    "select nextval({})",
    "select 'u'::regclass = {}::regclass",
    "select array[{}, {}], ({}, 1)",
    "select exists (select 1 from t where a = {})",
    "select substring('abcdef' from {} for {})",
    "select 'a' like {}, {} is null, not {}",
];

const LITERALS: &[&str] = &[
    "1",
    "2",
    "0",
    "7",
    "2147483647",
    "2147483648",
    "9223372036854775807",
    "9223372036854775808",
    "1.5",
    "1e2",
    "'1'",
    "'x'",
    "'it''s'",
    "'2020-01-01'",
    "'1 day'",
    "' 2 '",
    "'t'",
    "null",
    "true",
];

/// A template with literals in it, drawn by numbers.
fn fill(template: &str, mut draw: impl FnMut() -> usize) -> String {
    let mut parts = template.split("{}");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str(LITERALS[draw() % LITERALS.len()]);
        out.push_str(part);
    }
    out
}

/// What a statement shows, and the position of its error.
fn show(session: &mut Session, text: &str) -> Vec<String> {
    run(session, "begin");
    let shown = run(session, text);
    run(session, "rollback");
    shown
}

#[test]
fn kept_plans_answer_as_new_ones() {
    let (mut kept, mut anew) = (session(), session());
    for session in [&mut kept, &mut anew] {
        run(session, TABLES);
    }
    run(&mut anew, "set plan_cache_mode = force_custom_plan");
    for template in TEMPLATES {
        for first in 0..LITERALS.len() {
            // Each literal everywhere, then all in different places.
            for step in [0, 1, 5] {
                let mut next = first;
                let text = fill(template, || {
                    next += step;
                    next - step
                });
                assert_eq!(show(&mut kept, &text), show(&mut anew, &text), "{text}");
            }
        }
    }
}

#[test]
fn plans_are_shared_by_texts_that_differ_in_literals() {
    let mut session = session();
    run(&mut session, TABLES);
    let texts = [
        "select b from t where a = 1",
        "select b from t where a = 2",
        "select  b from t where /* another */ a = 700 ;",
    ];
    let plans: Vec<_> = texts
        .iter()
        .map(|text| session.plan_by_shape(text, None).unwrap().unwrap())
        .collect();
    assert!(plans.iter().all(|plan| Rc::ptr_eq(plan, &plans[0])));
    let other = [
        "select b from t where a = 3000000000",
        "select b from t where b = 1",
    ];
    for text in other {
        let plan = session.plan_by_shape(text, None).unwrap().unwrap();
        assert!(!Rc::ptr_eq(&plan, &plans[0]), "{text}");
    }
    assert_eq!(run(&mut session, texts[1]), ["[b]", "3", "SELECT 1"]);
    run(&mut session, "create table w(a int)");
    let plan = session.plan_by_shape(texts[0], None).unwrap().unwrap();
    assert!(!Rc::ptr_eq(&plan, &plans[0]), "the catalog has changed");
    run(&mut session, "set timezone = 'Europe/Berlin'");
    let elsewhere = session.plan_by_shape(texts[0], None).unwrap().unwrap();
    assert!(!Rc::ptr_eq(&plan, &elsewhere), "the settings have changed");
}

#[test]
fn statements_prepared_with_one_text_share_a_plan() {
    let mut session = session();
    run(&mut session, TABLES);
    let text = "select b from t where a = $1";
    let int = [Oid(TypeId::INT4.0)];
    let first = session.plan_by_shape(text, Some(&[])).unwrap().unwrap();
    let again = session.plan_by_shape(text, Some(&[])).unwrap().unwrap();
    let typed = [TypeId(int[0].0)];
    let typed = session.plan_by_shape(text, Some(&typed)).unwrap().unwrap();
    assert!(Rc::ptr_eq(&first, &again) && !Rc::ptr_eq(&first, &typed));
    let prepared = session.prepare(text, &[]).unwrap();
    assert_eq!(prepared.param_types(), int);
    // Literals of a prepared statement are its own.
    let one = session
        .plan_by_shape("select 1 + $1", Some(&[]))
        .unwrap()
        .unwrap();
    let two = session
        .plan_by_shape("select 2 + $1", Some(&[]))
        .unwrap()
        .unwrap();
    assert!(!Rc::ptr_eq(&one, &two));
}

#[test]
fn constants_of_other_texts_are_not_taken_for_literals() {
    // The seven of the view's condition stands somewhere in the view's own text. With a seven at
    // the same place of the statement, the two must not be taken for one.
    for before in 7..150 {
        let mut session = session();
        run(&mut session, TABLES);
        let text = |number: i32| format!("{:before$}{number}, count(*) from v", "select");
        let seven = run(&mut session, &text(7));
        assert_eq!(seven, ["[?column? count]", "7|2", "SELECT 1"]);
        let two = run(&mut session, &text(2));
        assert_eq!(two, ["[?column? count]", "2|2", "SELECT 1"], "{before}");
    }
}

#[test]
fn plans_of_the_day_are_not_kept() {
    let mut session = session();
    let text = "select count(*) from generate_series(1, 1) where date 'today' = date 'today'";
    let plans: Vec<_> = (0..2)
        .map(|_| session.plan_by_shape(text, Some(&[])).unwrap().unwrap())
        .collect();
    assert!(!Rc::ptr_eq(&plans[0], &plans[1]));
}

#[test]
fn only_so_many_plans_are_kept() {
    use super::plan_cache::{PARSED_MAX, PLANS_MAX};
    let mut session = session();
    for number in 0..2 * PLANS_MAX {
        let text = format!("select 1 as c{number}");
        session.plan_by_shape(&text, None).unwrap().unwrap();
        // Used all the time, so it stays.
        session.plan_by_shape("select 2", None).unwrap().unwrap();
    }
    let kept = session.plans.len();
    assert!((PLANS_MAX / 2..=PLANS_MAX).contains(&kept), "{kept} plans");
    let first = session.plan_by_shape("select 3", None).unwrap().unwrap();
    assert_eq!(&**first.statement.text(), "select 2");
    for number in 0..2 * PARSED_MAX {
        run(&mut session, &format!("set search_path = s{number}"));
    }
    let again = session.parse("set search_path = s511").unwrap();
    assert_eq!(again.len(), 1);
}
