//! Catalogs that are made from the version before, against those that are read whole.

use super::fake::FakeEngine;
use super::tests::{connect, run};
use super::*;
use base::engine::CatalogVersion;

/// A catalog as text, without what says when it was read.
fn shown(catalog: &Catalog) -> String {
    let mut plain = catalog.clone();
    plain.version = CatalogVersion::default();
    plain.debt = Debt::NONE;
    plain.system = Arc::default();
    format!("{plain:#?}")
}

/// Compares what a session goes by with what there is.
fn check(session: &mut Session, after: &str) {
    let kept = session.current_catalog().unwrap();
    let name = session.catalog.database.name.clone();
    let version = CatalogVersion::default();
    let read = match session.open.as_mut().filter(|open| open.catalog_changed) {
        Some(open) => {
            open.txn.begin_statement().unwrap();
            store::load(open.txn.as_mut(), version, &name)
        }
        None => {
            let transactions = &session.shared.engine.transactions;
            let mut txn = transactions.begin(TxnOptions::default()).unwrap();
            txn.begin_statement().unwrap();
            store::load(txn.as_mut(), version, &name)
        }
    };
    let (kept, read) = (shown(&kept), shown(&read.unwrap().unwrap()));
    for (line, (kept, read)) in kept.lines().zip(read.lines()).enumerate() {
        assert_eq!(kept, read, "line {line} of the catalog after {after}");
    }
    assert_eq!(kept.lines().count(), read.lines().count(), "after {after}");
}

/// One statement of `a`, or of `b`, a line.
const STATEMENTS: &str = "
a create table t (i int primary key, v text unique)
a create table u (i int references t, j int references t)
b create index on t (v)
b create view w as select * from t
a begin
a create schema s
a create table s.x (i int primary key)
b create table y (i serial)
a alter table s.x rename to z
a savepoint p
a drop table u
a create table u (k int)
b comment on table t is 'told by another'
a rollback to p
a create table after (k int references t)
a savepoint p
a drop schema s cascade
a release p
b create role r
a commit
b grant select on t to r
b grant select (v) on t to r
a comment on column t.v is 'told'
a alter default privileges grant select on tables to r
a create table given (i int)
a alter default privileges revoke select on tables from r
b create role q in role r
b alter role q set work_mem = '1MB'
a drop role q
a alter table t rename to old
a create table t (like old)
a alter table old add column more int default 5
b drop view w
a begin isolation level repeatable read
a select 1
b create table unseen (i int)
a create table mine (i int)
a commit
a create temporary table temp (i int primary key)
b create table shared (i int)
a begin
a create temporary table temp2 (i int)
a alter table temp rename to temp3
b drop table shared
a savepoint p
a drop table temp3
a rollback to p
a commit
a drop table temp2
a do $$ begin create table lost (i int); perform 1 / 0; exception when others then create table kept (i int); end $$
a begin
a create table first (i int)
a do $$ begin create table lost (i int); perform 1 / 0; exception when others then null; end $$
a rollback
a truncate old cascade
b drop table old cascade
b drop owned by r cascade
b drop role r
";

#[test]
fn what_is_made_of_changes_is_what_is_read_whole() {
    let engine = FakeEngine::default();
    let mut a = connect(&engine, "postgres", "postgres").unwrap();
    let mut b = connect(&engine, "postgres", "postgres").unwrap();
    for line in STATEMENTS.trim().lines() {
        let (who, statement) = line.split_at(2);
        let session = if who == "a " { &mut a } else { &mut b };
        let out = run(session, statement);
        let is_state = |word: &str| word.len() == 5 && word.contains(|c: char| c.is_ascii_digit());
        let last = out.last().and_then(|shown| shown.split(' ').next());
        assert!(!last.is_some_and(is_state), "{line}: {out:?}");
        check(&mut a, line);
        check(&mut b, line);
    }
    let third = connect(&engine, "postgres", "postgres").unwrap();
    assert!(Arc::ptr_eq(&third.catalog, &b.current_catalog().unwrap()));
}
