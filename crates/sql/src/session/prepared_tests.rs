//! Prepared statements at rest: what is used rarely keeps its text only, and nobody notices.

use super::tests::{run, session, Lines};
use super::*;

fn whole(session: &Session) -> usize {
    let statements = session.shared.statements.values();
    statements.filter(|named| named.is_whole()).count()
}

/// Executes a statement by its name, as SQL does.
fn execute(session: &mut Session, name: &str) -> Vec<String> {
    run(session, &format!("execute {name}"))
}

#[test]
fn a_name_that_is_used_again_is_no_older_than_its_statement() {
    let mut session = session();
    run(&mut session, "prepare before as select 1");
    for number in 0..PREPARED_WHOLE_MAX {
        let drop = ["deallocate all", "deallocate again"][number % 2];
        run(&mut session, &format!("prepare again as select {number}"));
        run(&mut session, drop);
        run(&mut session, "deallocate all; prepare before as select 1");
    }
    run(&mut session, "prepare after as select 2");
    assert_eq!(whole(&session), 2);
}

#[test]
fn statements_beyond_the_limit_keep_their_texts() {
    let mut session = session();
    run(
        &mut session,
        "create table t (i int); insert into t values (1), (2)",
    );
    let count = PREPARED_WHOLE_MAX * 4;
    for number in 0..count {
        let text = format!("select i + {number} as sum from t order by i");
        match number % 2 {
            0 => {
                let prepared = session.prepare(&text, &[]).unwrap();
                session
                    .keep_prepared(&format!("s{number}"), prepared)
                    .unwrap();
            }
            _ => {
                let text = format!("select 1; prepare s{number} as {text}; select 2");
                assert_eq!(run(&mut session, &text).len(), 7);
            }
        }
        session.sync(&mut Lines::default()).unwrap();
    }
    assert!(whole(&session) <= PREPARED_WHOLE_MAX);
    let columns = |session: &Session, name: &str| {
        let prepared = session.prepared(name).unwrap();
        prepared.columns().map(|columns| columns[0].name.clone())
    };
    for number in [0, 1, count - 1, 7, 0] {
        let name = format!("s{number}");
        let shown = [(1 + number).to_string(), (2 + number).to_string()];
        assert_eq!(execute(&mut session, &name)[1..3], shown);
        assert_eq!(columns(&session, &name).as_deref(), Some("sum"));
    }
    assert!(whole(&session) <= PREPARED_WHOLE_MAX);
    let listed = run(
        &mut session,
        "select count(*), count(*) filter (where from_sql), max(statement) filter (where name = 's2') \
         from pg_prepared_statements",
    );
    let half = count / 2;
    assert_eq!(
        listed[1],
        format!("{count}|{half}|select i + 2 as sum from t order by i")
    );
}

#[test]
fn a_statement_at_rest_keeps_the_types_of_its_rows() {
    let mut session = session();
    run(
        &mut session,
        "create table t (i int); insert into t values (1)",
    );
    run(&mut session, "prepare old as select * from t");
    for number in 0..=PREPARED_WHOLE_MAX {
        run(
            &mut session,
            &format!("prepare s{number} as select {number}"),
        );
    }
    assert!(!session.shared.statements.get("old").unwrap().is_whole());
    run(&mut session, "drop table t; create table t (i text)");
    let changed = "0A000 cached plan must not change result type";
    let shown = execute(&mut session, "old");
    assert_eq!(shown.last().map(String::as_str), Some(changed));
    run(&mut session, "drop table t; create table t (i int)");
    assert_eq!(execute(&mut session, "old"), ["[i]", "SELECT 0"]);
}

#[test]
fn a_statement_that_is_in_use_does_not_rest() {
    let mut session = session();
    run(
        &mut session,
        "create table t (i int); insert into t values (1), (2)",
    );
    let prepared = session.prepare("select * from t", &[]).unwrap();
    session.keep_prepared("used", prepared.clone()).unwrap();
    let mut portal = session.bind(&prepared, &[]).unwrap();
    for number in 0..=PREPARED_WHOLE_MAX {
        run(
            &mut session,
            &format!("prepare s{number} as select {number}"),
        );
    }
    assert!(session.shared.statements.get("used").unwrap().is_whole());
    let mut lines = Lines::default();
    session.execute(&mut portal, 0, &mut lines).unwrap();
    assert_eq!(lines.lines.len(), 2);
}

#[test]
fn a_prepared_call_has_the_types_of_its_procedure() {
    let mut session = session();
    run(
        &mut session,
        "create procedure twice(inout n int, times int8) language plpgsql as $$ begin n := n * times; end $$",
    );
    let prepared = session.prepare("call twice($1, $2)", &[]).unwrap();
    assert_eq!(prepared.param_type_ids(), [TypeId::INT4, TypeId::INT8]);
    assert_eq!(prepared.types, [TypeId::INT4]);
}

#[test]
fn executions_are_counted_at_rest_too() {
    let mut session = session();
    run(&mut session, "prepare old as select 1; select 2;");
    execute(&mut session, "old");
    run(&mut session, "explain execute old");
    for number in 0..=PREPARED_WHOLE_MAX {
        run(
            &mut session,
            &format!("prepare s{number} as select {number}"),
        );
    }
    assert!(!session.shared.statements.get("old").unwrap().is_whole());
    let of_old = "from pg_prepared_statements where name = 'old'";
    let shown = format!("select statement, generic_plans, custom_plans {of_old}");
    let text = "prepare old as select 1; select 2;";
    assert_eq!(run(&mut session, &shown)[1], format!("{text}|2|0"));
    execute(&mut session, "old");
    assert_eq!(run(&mut session, &shown)[1], format!("{text}|3|0"));
    let known = session.shared.statements.get("old").unwrap();
    assert_eq!(known.text_alone(), Some("prepare old as select 1"));
    let known = session.shared.statements.get("s0").unwrap();
    assert_eq!(known.text_alone(), Some("prepare s0 as select 0"));
}
