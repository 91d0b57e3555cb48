//! Positions, statements, depth, tokens.

use super::*;

#[test]
fn statements_know_their_text() {
    let statements = parse("select 1; ; select 'é' ;").unwrap();
    let texts: Vec<_> = statements.iter().map(Statement::own_text).collect();
    assert_eq!(texts, ["select 1", "select 'é'"]);
}

#[test]
fn what_stands_alone_keeps_its_text() {
    let alone = |text: &str, at: usize| {
        let statements = parse(text).unwrap();
        Source::of(&statements[at]).text_alone().to_owned()
    };
    assert_eq!(alone(" select 1 ; ;\n", 0), " select 1 ; ;\n");
    assert_eq!(alone("select 1; select 2;", 0), "select 1");
    assert_eq!(alone("select 1; select 2;", 1), "select 2");
}

#[test]
fn errors_have_positions() {
    let error = parse("select 'é', 1 frm t x").unwrap_err();
    assert_eq!(error.message(), "syntax error at or near \"t\"");
    assert_eq!(error.fields().position, Some(19));
}

#[test]
fn depth_is_an_error_and_no_crash() {
    let deep = format!("select 1{}", "+1".repeat(1_000_000));
    let parsed = std::thread::Builder::new()
        .stack_size(64 << 20)
        .spawn(move || parse(&deep).unwrap_err())
        .unwrap();
    assert_eq!(
        parsed.join().unwrap().state(),
        SqlState::STATEMENT_TOO_COMPLEX
    );
    let wide = format!("select 1{}", "+1".repeat(1_000));
    let parsed = std::thread::Builder::new()
        .stack_size(64 << 20)
        .spawn(move || parse(&wide).unwrap().len())
        .unwrap();
    assert_eq!(parsed.join().unwrap(), 1);
}

#[test]
fn nonsense_is_an_error() {
    assert!(parse(&"garbage ".repeat(1_300_000)).is_err());
    assert!(parse(&"(".repeat(1_000_000)).is_err());
}

#[test]
fn tokens_are_told_apart() {
    let kinds: Vec<_> = tokens("x := 1..$2; -- end\n'a' if")
        .unwrap()
        .iter()
        .map(|token| token.kind)
        .collect();
    assert_eq!(
        kinds,
        [
            TokenKind::Identifier,
            TokenKind::Assign,
            TokenKind::Number,
            TokenKind::DotDot,
            TokenKind::Param,
            TokenKind::Char(b';'),
            TokenKind::String,
            TokenKind::Keyword(false),
        ]
    );
}
