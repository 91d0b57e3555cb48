//! The grammar, by example.

use super::ast::{Level, LoopHead, Message, StatementKind};
use super::parse::parse;

fn kinds(text: &str) -> Vec<StatementKind> {
    let block = parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
    block.body.into_iter().map(|one| one.kind).collect()
}

#[test]
fn the_commit_loop() {
    let text = " begin truncate demo; for i in 1..1e4 loop insert into demo(i) values(i); \
                commit; end loop; end; ";
    let kinds = kinds(text);
    let [StatementKind::Sql { query, into: None }, StatementKind::Loop(inner)] = &kinds[..] else {
        panic!("{kinds:?}");
    };
    assert_eq!(query.text, "truncate demo");
    let LoopHead::Integers {
        variable,
        reverse: false,
        first,
        last,
        step: None,
    } = &inner.head
    else {
        panic!("{:?}", inner.head);
    };
    assert_eq!(
        (variable.as_str(), &*first.text, &*last.text),
        ("i", "1", "1e4")
    );
    let [insert, commit] = &inner.body[..] else {
        panic!("{:?}", inner.body);
    };
    let StatementKind::Sql { query, into: None } = &insert.kind else {
        panic!("{insert:?}");
    };
    assert_eq!(query.text, "insert into demo(i) values(i)");
    assert_eq!(&text[query.start..query.start + 6], "insert");
    assert_eq!(
        commit.kind,
        StatementKind::EndTransaction {
            commit: true,
            chain: false
        }
    );
}

#[test]
fn an_into_clause_leaves_spaces() {
    let kinds = kinds("declare a int; b text; begin select x, y into strict a, b from t; end");
    let [StatementKind::Sql {
        query,
        into: Some(into),
    }] = &kinds[..]
    else {
        panic!("{kinds:?}");
    };
    assert_eq!(query.text, "select x, y                  from t");
    assert!(into.strict);
    let targets: Vec<_> = into.targets.iter().map(|one| one.text.as_str()).collect();
    assert_eq!(targets, ["a", "b"]);
}

#[test]
fn an_expression_may_hold_the_languages_own_words() {
    let kinds = kinds("begin if case when a then b else c end then null; else x := 1; end if; end");
    let [StatementKind::If {
        branches,
        otherwise,
    }] = &kinds[..]
    else {
        panic!("{kinds:?}");
    };
    assert_eq!(branches[0].0.text, "case when a then b else c end");
    assert_eq!(otherwise.len(), 1);
}

#[test]
fn raise_in_its_forms() {
    let kinds = kinds(
        "begin raise notice 'a % b %%', x + 1; raise exception using message = 'm', \
         errcode = '22012'; raise division_by_zero; raise sqlstate '40001'; raise; end",
    );
    let levels: Vec<_> = kinds
        .iter()
        .map(|kind| match kind {
            StatementKind::Raise(raise) => (raise.level, raise.options.len()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(levels[0], (Level::Notice, 0));
    assert_eq!(levels[1], (Level::Exception, 2));
    let StatementKind::Raise(first) = &kinds[0] else {
        panic!("{:?}", kinds[0]);
    };
    let Message::Format { format, arguments } = &first.message else {
        panic!("{first:?}");
    };
    assert_eq!(
        (format.as_str(), arguments[0].text.as_str()),
        ("a % b %%", "x + 1")
    );
}

#[test]
fn blocks_nest_and_catch() {
    let block = parse(
        "<<outer>>\ndeclare\n x constant numeric(10,2) not null := 1.5;\nbegin\n <<l>> while true \
         loop exit l when x > 1; end loop l;\n begin perform f(x); exception when unique_violation \
         or others then get stacked diagnostics x = message_text; end;\nend outer;",
    )
    .unwrap();
    assert_eq!(block.label.as_deref(), Some("outer"));
    let declaration = &block.declarations[0];
    assert!(declaration.constant && declaration.not_null);
    assert_eq!(declaration.type_name.text, "numeric(10,2)");
    assert_eq!((declaration.line, block.body[0].line), (3, 5));
    let StatementKind::Block(inner) = &block.body[1].kind else {
        panic!("{:?}", block.body[1]);
    };
    assert_eq!(inner.handlers[0].conditions.len(), 2);
    let StatementKind::Perform(perform) = &inner.body[0].kind else {
        panic!("{:?}", inner.body[0]);
    };
    assert_eq!(perform.text, "SELECT  f(x)");
}

#[test]
fn errors_have_their_place() {
    for (text, message, position) in [
        ("begin x := ; end", "syntax error at or near \";\"", 12),
        ("begin if a then end", "syntax error at end of input", 20),
        ("begin end end", "syntax error at or near \"end\"", 11),
        ("select 1", "syntax error at or near \"select\"", 1),
    ] {
        let error = parse(text).unwrap_err();
        assert_eq!(error.message(), message, "{text}");
        assert_eq!(error.fields().position, Some(position), "{text}");
    }
}
