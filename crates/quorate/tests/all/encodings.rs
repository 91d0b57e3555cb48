//! Clients that write text in another encoding than UTF-8: messages as bytes, in both directions, the
//! same as PostgreSQL 15's; and what a client may send that is no text at all.

use lab::host::Endpoint;

use crate::shared;
use crate::transcripts::{bind, execute, message, query, sync, Message, Wire};

/// A message as text, with every byte that is none of ASCII; errors without what names PostgreSQL's
/// sources, and without their context.
fn shown((kind, body): &Message) -> String {
    let mut body = body.clone();
    if *kind == b'T' {
        // The OIDs of tables are nobody's to compare.
        let mut at = 2;
        while let Some(length) = body[at..].iter().position(|byte| *byte == 0) {
            body[at + length + 1..at + length + 5].fill(0);
            at += length + 19;
        }
    }
    let parts: Vec<_> = match kind {
        b'E' | b'N' => {
            let fields = body.split(|byte| *byte == 0);
            let is_told = |field: &&[u8]| {
                !matches!(field.first(), None | Some(b'F' | b'L' | b'R' | b'V' | b'W'))
            };
            fields.filter(is_told).collect()
        }
        _ => vec![&body[..]],
    };
    let parts: Vec<_> = parts
        .iter()
        .map(|part| part.escape_ascii().to_string())
        .collect();
    format!("{} {}", *kind as char, parts.join(" | "))
}

fn raw(text: &[u8]) -> Vec<u8> {
    message(b'Q', &[text, b"\0"])
}

fn parse(name: &[u8], text: &[u8]) -> Vec<u8> {
    message(b'P', &[name, b"\0", text, b"\0", b"\0\0"])
}

/// One parameter, as text or in binary; the result in the same form.
fn bind_one(portal: &[u8], statement: &[u8], value: &[u8], binary: bool) -> Vec<u8> {
    let length = (value.len() as u32).to_be_bytes();
    let format: &[u8] = if binary {
        b"\0\x01\0\x01"
    } else {
        b"\0\x01\0\0"
    };
    let body = [
        portal, b"\0", statement, b"\0", format, b"\0\x01", &length, value, format,
    ];
    message(b'B', &body)
}

/// Scripts of which each is answered up to its ReadyForQuery.
fn scripts() -> Vec<Vec<u8>> {
    let one = |text: &[u8], value: &[u8], binary| {
        [
            parse(b"", text),
            bind_one(b"", b"", value, binary),
            message(b'D', &[b"P\0"]),
            execute("", 0),
            sync(),
        ]
        .concat()
    };
    let mut all = vec![
        query("set client_encoding to 'latin1'"),
        raw(b"select 'caf\xe9' as \"caf\xe9\", length('caf\xe9')"),
        raw(b"select 'caf\xe9' from nosuch\xe9"),
        raw(b"do $$ begin raise notice 'caf\xe9'; raise exception '\xe9' using detail = '\xe8'; end $$"),
        raw(b"set application_name to 'caf\xe9'"),
        raw(b"create temp table \"caf\xe9\" (\"\xe9t\xe9\" text)"),
        raw(b"insert into \"caf\xe9\" values ('\xe9'), ('\xff'), ('plain'), (U&'\\20AC')"),
        raw(b"select \"\xe9t\xe9\" from \"caf\xe9\" where \"\xe9t\xe9\" <> U&'\\20AC'"),
        raw(b"select \"\xe9t\xe9\" from \"caf\xe9\""),
        raw(b"copy (select * from \"caf\xe9\" limit 3) to stdout with (header)"),
        raw(b"copy \"caf\xe9\" to stdout"),
        raw(b"copy (select 'caf\xe9', U&'\\20AC') to stdout with (encoding 'latin9')"),
        raw(b"copy (select 'caf\xe9', '\xe9'::bytea) to stdout with (format binary)"),
        raw(b"select array['\xe9', 'b']::text[], row('\xe9', 1), '{\"\xe9\": 1}'::json, '\xe9'::name"),
        one(b"select $1::text, length($1)", b"caf\xe9", false),
        one(b"select $1::text as \"\xe9\"", b"caf\xe9", true),
        one(b"select $1::bytea", b"caf\xe9", true),
        one(b"select $1::json", b"{\"\xe9\": \"\xe8\"}", true),
        one(b"select $1::jsonb", b"\x01{\"\xe9\": \"\xe8\"}", true),
        one(b"select $1::text || U&'\\20AC'", b"x", true),
        one(b"select $1::text || U&'\\20AC'", b"x", false),
        one(b"select $1::text as U&\"\\20AC\"", b"x", false),
        [
            parse(b"pr\xe9par\xe9", b"select $1::text"),
            bind_one(b"port\xe9", b"pr\xe9par\xe9", b"\xe9", false),
            message(b'E', &[b"port\xe9\0\0\0\0\0"]),
            message(b'C', &[b"Sport\xe9\0"]),
            sync(),
        ]
        .concat(),
        raw(b"execute \"pr\xe9par\xe9\"('\xe8')"),
        [parse(b"", b"select 1"), message(b'D', &[b"Pnone\xe9\0"]), sync()].concat(),
        query("set client_encoding to 'sjis'"),
        raw(b"select '\x82\xa0\\\x83\x5c', E'\x83\x5c', length('\xb1\x82\xa0')"),
        raw(b"select '\x82"),
        raw(b"select '\xa0'"),
        one(b"select $1::text, 1", b"\x82\xa0\x83\x5c", false),
        one(b"select $1::text, 1", b"\x82", false),
        one(b"select $1::text, 1", b"\xf0\x40", true),
        [parse(b"\x82", b"select 1"), sync()].concat(),
        query("begin"),
        raw(b"select '\x82"),
        query("select 1"),
        query("rollback"),
        query("set client_encoding to 'gb18030'; select U&'\\4E2D\\+01F600\\00E9'"),
        query("set client_encoding to 'euc_jp'; select U&'\\4E2D\\3042\\FF71\\9ED1'"),
        query("set client_encoding to 'uhc'; select U&'\\AC00\\4E2D'"),
        query("set client_encoding to 'win1251'; select U&'\\0416', U&'\\20AC'"),
        query("set client_encoding to 'sql_ascii'; select U&'\\20AC'"),
        raw(b"select '\xe9'"),
        query("set client_encoding to 'utf8'; select U&'\\20AC'"),
        raw(b"select '\xe9'"),
        query("create temp table taken (a text, b text)"),
    ];
    let copy = |with: &[u8], pieces: &[&[u8]]| {
        let mut script = raw(&[&b"copy taken from stdin "[..], with].concat());
        for piece in pieces {
            script.extend(message(b'd', &[piece]));
        }
        script.extend(message(b'c', &[]));
        script
    };
    all.extend([
        copy(b"with (encoding 'latin1')", &[b"\xe9\t1\n\xe8", b"\t2\n"]),
        // Characters that are cut, and such whose second byte means something by itself.
        copy(
            b"with (encoding 'sjis')",
            &[b"\x83", b"\x5c\t\x82", b"\xa0\n"],
        ),
        copy(
            b"with (encoding 'sjis', format csv)",
            &[b"\x83\x5c,\"\x82\xa0\"\n"],
        ),
        copy(b"with (encoding 'win1252')", &[b"a\t\x81\n"]),
        copy(b"with (encoding 'euc_jp')", &[b"a\t\x8e"]),
        query("select * from taken order by b"),
        query("copy taken to stdout with (encoding 'sjis', format csv, force_quote *)"),
    ]);
    all
}

fn answers(node: &Endpoint) -> Vec<Vec<String>> {
    let mut wire = Wire::connect(node);
    let mut all = Vec::new();
    for script in scripts() {
        wire.send(&script);
        let mut answers: Vec<_> = wire.until_ready().iter().map(shown).collect();
        // PostgreSQL tells of settings when all else is said.
        answers.sort_by_key(|answer| answer.starts_with("S "));
        all.push(answers);
    }
    all
}

#[test]
fn clients_of_other_encodings_get_what_postgresql_sends() {
    let theirs = answers(shared::postgres());
    for node in shared::follower_first() {
        let mut differences = String::new();
        for ((script, ours), theirs) in scripts().iter().zip(answers(&node)).zip(&theirs) {
            if ours != *theirs {
                let sent = script.escape_ascii();
                differences.push_str(&format!("{sent}\n  {ours:?}\n  {theirs:?}\n"));
            }
        }
        assert!(
            differences.is_empty(),
            "ours and PostgreSQL's:\n{differences}"
        );
    }
}

/// With many parameters none goes astray.
#[test]
fn parameters_of_other_encodings_are_converted_one_by_one() {
    let mut wire = Wire::connect(&shared::follower_first()[0]);
    wire.query("set client_encoding to 'utf8'");
    let values: Vec<_> = (0..40).map(|_| Some("é")).collect();
    let sum: Vec<_> = (1..=40).map(|number| format!("${number}::text")).collect();
    let text = format!("select {}", sum.join(" || "));
    wire.send(&[parse(b"many", text.as_bytes()), sync()].concat());
    wire.until_ready();
    wire.query("set client_encoding to 'latin1'");
    let asked = [bind("", "many", &values, false), execute("", 0), sync()].concat();
    wire.send(&asked);
    let rows = wire.until_ready();
    let row = rows.iter().find(|(kind, _)| *kind == b'D').expect("a row");
    // In LATIN1 the two bytes of each are two characters.
    assert_eq!(row.1[6..], "é".repeat(40).into_bytes()[..]);
}
