use pg_query::protobuf::Node;
use prost::Message as _;

use super::*;
use crate::session::tests::{run, session};
use syntax::parser;

fn about_text(text: &str) -> About {
    let statement = parser::parse(text).unwrap().pop().unwrap();
    about(statement.node())
}

#[test]
fn statements_have_their_class_and_command() {
    for (text, class, command) in [
        ("select 1", All, "SELECT"),
        ("select 1 into t", Ddl, "SELECT"),
        ("select 1 into t union select 2", All, "SELECT"),
        ("copy t from stdin", Mod, "COPY"),
        ("copy t to stdout", All, "COPY"),
        ("prepare p as insert into t values (1)", Mod, "PREPARE"),
        ("explain insert into t values (1)", All, "EXPLAIN"),
        ("explain analyze insert into t values (1)", Mod, "EXPLAIN"),
        ("truncate t", Mod, "TRUNCATE TABLE"),
        ("grant a to b", Ddl, "GRANT ROLE"),
        ("alter view v rename to w", Ddl, "ALTER VIEW"),
        ("alter table t rename a to b", Ddl, "ALTER TABLE"),
        ("alter table t rename constraint a to b", Ddl, "ALTER TABLE"),
        ("alter view v rename a to b", Ddl, "ALTER VIEW"),
        ("drop index i", Ddl, "DROP INDEX"),
        (
            "create rule r as on insert to t do nothing",
            Ddl,
            "CREATE RULE",
        ),
        ("alter rule r on t rename to s", Ddl, "ALTER RULE"),
        ("drop rule r on t", Ddl, "DROP RULE"),
        ("drop aggregate a (int)", Ddl, "DROP AGGREGATE"),
        (
            "create aggregate a (int) (sfunc = f)",
            Ddl,
            "CREATE AGGREGATE",
        ),
        ("drop operator === (int, int)", Ddl, "DROP OPERATOR"),
        (
            "create operator === (function = f, rightarg = int)",
            Ddl,
            "CREATE OPERATOR",
        ),
        (
            "alter operator === (int, int) set (restrict = none)",
            Ddl,
            "ALTER OPERATOR",
        ),
        ("reindex table t", All, "REINDEX"),
        ("cluster t", Ddl, "CLUSTER"),
        ("reset all", All, "RESET"),
        ("reset work_mem", All, "RESET"),
        ("set work_mem to default", All, "SET"),
        ("discard plans", All, "DISCARD PLANS"),
        ("rollback to x", All, "ROLLBACK"),
        ("alter system set work_mem = 1", Ddl, "ALTER SYSTEM"),
        (
            "merge into t using u on a = b when matched then delete",
            Mod,
            "MERGE",
        ),
        (
            "create procedure p() language sql as ''",
            Ddl,
            "CREATE PROCEDURE",
        ),
    ] {
        let about = about_text(text);
        assert_eq!(about.logged, class, "{text}");
        assert_eq!(about.command, command, "{text}");
    }
}

#[test]
fn failed_blocks_take_what_ends_them() {
    for (text, failed) in [
        ("commit", FailedBlock::Ended),
        ("rollback", FailedBlock::Ended),
        ("commit and chain", FailedBlock::Continued),
        ("rollback to x", FailedBlock::Continued),
        ("begin", FailedBlock::Refused),
        ("savepoint x", FailedBlock::Refused),
        ("release x", FailedBlock::Refused),
        ("show all", FailedBlock::Refused),
        ("select 1", FailedBlock::Refused),
    ] {
        assert_eq!(about_text(text).failed, failed, "{text}");
    }
}

/// The statements that the grammar's nodes are, and an empty node of each: the parser's trees come as
/// messages with one field, whose number says which node it is.
fn statements_of_the_grammar() -> Vec<(String, NodeEnum)> {
    // What the parser gives only as a part of something else.
    const PARTS: [&str; 5] = [
        "PlassignStmt",
        "RawStmt",
        "ReplicaIdentityStmt",
        "ReturnStmt",
        "SetOperationStmt",
    ];
    let nodes = (1..1_000_u32).filter_map(|number| {
        let mut message = Vec::new();
        let (field, of_length) = (number << 3, 2);
        prost::encoding::encode_varint(u64::from(field | of_length), &mut message);
        message.push(0);
        Node::decode(message.as_slice()).ok()?.node
    });
    let named = nodes.map(|node| {
        let text = format!("{node:?}");
        let end = text.find('(').expect("a node with a body");
        (text[..end].to_owned(), node)
    });
    named
        .filter(|(name, _)| name.ends_with("Stmt") && !PARTS.contains(&name.as_str()))
        .collect()
}

#[test]
fn every_statement_of_the_grammar_has_a_row() {
    let grammar = statements_of_the_grammar();
    assert!(grammar.len() > 100, "{}", grammar.len());
    let kinds: Vec<_> = statement_kinds().collect();
    for (name, node) in &grammar {
        let rows: Vec<_> = kinds.iter().filter(|kind| kind.0 == name).collect();
        // SELECT INTO has a row of its own, and of what is defined aggregates, collations and operators have,
        // which are first.
        let count = match name.as_str() {
            "DefineStmt" => 4,
            "SelectStmt" => 2,
            _ => 1,
        };
        let is_supported = rows.last().expect(name).1;
        assert_eq!(rows.len(), count, "{name}");
        let about = about(node);
        assert_eq!(about.how != How::Unsupported, is_supported, "{name}");
        assert_ne!(about.command, "this statement", "{name}");
    }
    for (name, _) in kinds {
        let is_known = grammar.iter().any(|known| known.0 == name);
        assert!(is_known, "{name} is no statement of the grammar");
    }
}

#[test]
fn what_is_unsupported_is_refused_by_its_name() {
    let mut session = session();
    for (text, name) in [
        ("create publication p", "CREATE PUBLICATION"),
        (
            "create text search dictionary d (template = simple)",
            "CREATE TEXT SEARCH DICTIONARY",
        ),
        (
            "alter operator family f using btree add function 1 g(int)",
            "ALTER OPERATOR FAMILY",
        ),
        (
            "create transform for int language sql (from sql with function f(internal))",
            "CREATE TRANSFORM",
        ),
        (
            "import foreign schema s from server t into u",
            "IMPORT FOREIGN SCHEMA",
        ),
        ("security label on table t is 'x'", "SECURITY LABEL"),
        ("load 'x'", "LOAD"),
    ] {
        let refused = format!("0A000 {name} is not supported");
        assert_eq!(run(&mut session, text), [refused], "{text}");
    }
}

#[test]
fn what_must_stand_outside_of_blocks_says_so() {
    let mut session = session();
    run(&mut session, "create table t (i int)");
    for (text, name) in [
        ("create database d", "CREATE DATABASE"),
        ("drop database d", "DROP DATABASE"),
        (
            "create index concurrently on t (i)",
            "CREATE INDEX CONCURRENTLY",
        ),
        ("alter system set work_mem = '1MB'", "ALTER SYSTEM"),
        ("discard all", "DISCARD ALL"),
        ("vacuum", "VACUUM"),
        ("reindex schema public", "REINDEX SCHEMA"),
        ("cluster", "CLUSTER"),
    ] {
        let refused = format!("25001 {name} cannot run inside a transaction block");
        run(&mut session, "begin");
        assert_eq!(run(&mut session, text).last(), Some(&refused), "{text}");
        run(&mut session, "rollback");
        let beside = format!("show work_mem; {text}");
        assert_eq!(
            run(&mut session, &beside).last(),
            Some(&refused),
            "{beside}"
        );
        let inside = format!("do $$ begin {text}; end $$");
        assert_eq!(
            run(&mut session, &inside).last(),
            Some(&refused),
            "{inside}"
        );
    }
    let inside = "create schema s create table u (i int) create index concurrently on u (i)";
    let refused = "25001 CREATE INDEX CONCURRENTLY cannot run inside a transaction block";
    assert_eq!(run(&mut session, inside), [refused]);
}

#[test]
fn plpgsql_refuses_what_has_no_place_in_it() {
    let mut session = session();
    for (text, message) in [
        ("savepoint s", "unsupported transaction command in PL/pgSQL"),
        (
            "execute 'savepoint s'",
            "EXECUTE of transaction commands is not implemented",
        ),
        (
            "copy t from stdin",
            "cannot COPY to/from client in PL/pgSQL",
        ),
        (
            "execute 'copy t from stdin'",
            "cannot COPY to/from client in PL/pgSQL",
        ),
    ] {
        let refused = format!("0A000 {message}");
        let inside = format!("do $$ begin {text}; end $$");
        assert_eq!(run(&mut session, &inside), [refused], "{text}");
    }
}
