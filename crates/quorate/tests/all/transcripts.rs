//! Messages as bytes: what PostgreSQL 15 answers is what Quorate must answer, byte by byte.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use lab::host::Endpoint;

use crate::shared;

/// A connection whose messages are seen as they are.
pub struct Wire {
    stream: TcpStream,
}

/// A message's kind and body.
pub type Message = (u8, Vec<u8>);

impl Wire {
    pub fn connect(node: &Endpoint) -> Wire {
        Wire::connect_to(node, "postgres")
    }

    pub fn connect_to(node: &Endpoint, database: &str) -> Wire {
        let stream = TcpStream::connect((node.host.as_str(), node.port)).expect("a connection");
        let patience = Some(Duration::from_secs(20));
        stream.set_read_timeout(patience).expect("a socket");
        let mut wire = Wire { stream };
        let mut packet = vec![0, 3, 0, 0];
        packet.extend_from_slice(b"user\0postgres\0database\0");
        packet.extend_from_slice(database.as_bytes());
        packet.extend_from_slice(b"\0\0");
        let length = packet.len() as u32 + 4;
        let packet = [&length.to_be_bytes()[..], &packet].concat();
        wire.stream.write_all(&packet).expect("it is sent");
        wire.until_ready();
        wire
    }

    fn message(&mut self) -> Message {
        let mut head = [0; 5];
        self.stream.read_exact(&mut head).expect("a message");
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let mut body = vec![0; length - 4];
        self.stream.read_exact(&mut body).expect("its body");
        (head[0], body)
    }

    pub fn until_ready(&mut self) -> Vec<Message> {
        let mut messages = Vec::new();
        loop {
            let message = self.message();
            let is_last = message.0 == b'Z';
            messages.push(message);
            if is_last {
                return messages;
            }
        }
    }

    pub fn query(&mut self, text: &str) -> Vec<Message> {
        self.stream.write_all(&query(text)).expect("it is sent");
        self.until_ready()
    }

    /// Sends messages whose answers are read later.
    pub fn send(&mut self, messages: &[u8]) {
        self.stream.write_all(messages).expect("they are sent");
    }

    /// Sends a query whose answer is read later.
    pub fn start(&mut self, text: &str) {
        self.stream.write_all(&query(text)).expect("it is sent");
    }

    /// The error that ends the session.
    pub fn fatal(&mut self) -> String {
        loop {
            let (kind, body) = self.message();
            if kind == b'E' {
                return String::from_utf8_lossy(&body).into_owned();
            }
        }
    }

    /// Sends a script and returns the answers to it, one a line.
    fn transcript(&mut self, script: &[u8]) -> Vec<String> {
        self.stream.write_all(script).expect("it is sent");
        self.until_ready().iter().map(shown).collect()
    }
}

/// A message as text: errors without what names PostgreSQL's sources, descriptions without OIDs of
/// tables.
fn shown((kind, body): &Message) -> String {
    let kind = *kind as char;
    match kind {
        'E' | 'N' => {
            let fields = body.split(|byte| *byte == 0);
            let fields = fields
                .filter(|field| !matches!(field.first(), None | Some(b'F' | b'L' | b'R' | b'V')));
            let fields: Vec<_> = fields.map(String::from_utf8_lossy).collect();
            format!("{kind} {}", fields.join(" | "))
        }
        'T' => {
            let mut parts = Vec::new();
            let mut rest = &body[2..];
            while !rest.is_empty() {
                let end = rest.iter().position(|byte| *byte == 0).expect("a name");
                let name = String::from_utf8_lossy(&rest[..end]);
                // After the table's OID: attribute, type, length, modifier, format.
                let described = &rest[end + 5..end + 19];
                parts.push(format!("{name} {described:?}"));
                rest = &rest[end + 19..];
            }
            format!("T {}", parts.join(" | "))
        }
        // Without the sender, who is another one each time.
        'A' => format!("A {}", body[4..].escape_ascii()),
        _ => format!("{kind} {}", body.escape_ascii()),
    }
}

pub fn message(kind: u8, body: &[&[u8]]) -> Vec<u8> {
    let body = body.concat();
    let length = body.len() as u32 + 4;
    [&[kind][..], &length.to_be_bytes(), &body].concat()
}

pub fn query(text: &str) -> Vec<u8> {
    message(b'Q', &[text.as_bytes(), b"\0"])
}

pub fn parse(name: &str, text: &str) -> Vec<u8> {
    let body: [&[u8]; 5] = [name.as_bytes(), b"\0", text.as_bytes(), b"\0", b"\0\0"];
    message(b'P', &body)
}

/// Text parameters; results as text or in binary.
pub fn bind(portal: &str, statement: &str, values: &[Option<&str>], binary: bool) -> Vec<u8> {
    let mut params = (values.len() as u16).to_be_bytes().to_vec();
    for value in values {
        match value {
            None => params.extend_from_slice(&(-1i32).to_be_bytes()),
            Some(value) => {
                params.extend_from_slice(&(value.len() as u32).to_be_bytes());
                params.extend_from_slice(value.as_bytes());
            }
        }
    }
    let formats: &[u8] = if binary { b"\0\x01\0\x01" } else { b"\0\0" };
    let body: [&[u8]; 7] = [
        portal.as_bytes(),
        b"\0",
        statement.as_bytes(),
        b"\0",
        b"\0\0",
        &params,
        formats,
    ];
    message(b'B', &body)
}

pub fn describe(kind: u8, name: &str) -> Vec<u8> {
    message(b'D', &[&[kind], name.as_bytes(), b"\0"])
}

fn close(kind: u8, name: &str) -> Vec<u8> {
    message(b'C', &[&[kind], name.as_bytes(), b"\0"])
}

pub fn execute(portal: &str, most: u32) -> Vec<u8> {
    message(b'E', &[portal.as_bytes(), b"\0", &most.to_be_bytes()])
}

pub fn sync() -> Vec<u8> {
    message(b'S', &[])
}

/// One of everything.
const VALUES: &str = "select 1::int2, -2::int4, 3::int8, 1234567.8900::numeric, \
    -0.00012::numeric, 'NaN'::numeric, 0::numeric, 1.5::float4, -2.25::float8, \
    'Infinity'::float8, true, 'text', 'varying'::varchar(10), 'ch'::char(4), '\\x00ff'::bytea, \
    '12345678-1234-5678-1234-567812345678'::uuid, '2021-02-03 04:05:06.789'::timestamp, \
    '2021-02-03 04:05:06.789+02'::timestamptz, '2021-02-03'::date, '04:05:06.7'::time, \
    '1 year 2 months 3 days 04:05:06'::interval, '{1,2,NULL}'::int4[], '{{a,b},{c,d}}'::text[], \
    '{}'::int8[], '{1.5,2.5}'::numeric[], null::int4, 'infinity'::timestamp, 'name'::name, \
    '\"'::\"char\", 7::oid";

fn scripts() -> Vec<(&'static str, Vec<u8>)> {
    let table = "create table wired (k int primary key, v varchar(5) not null, n numeric(5,2) \
                 check (n > 0), constraint wired_v unique (v))";
    let copy_data = |data: &str| message(b'd', &[data.as_bytes()]);
    let copy_done = || message(b'c', &[]);
    vec![
        (
            "a table",
            [query("drop table if exists wired"), query(table)].concat(),
        ),
        ("its table's description", {
            [
                parse("all", "select * from wired where k = $1"),
                describe(b'S', "all"),
                sync(),
            ]
            .concat()
        }),
        ("values in binary", {
            let parts = [
                parse("", VALUES),
                bind("", "", &[], true),
                describe(b'P', ""),
                execute("", 0),
                sync(),
            ];
            parts.concat()
        }),
        ("values as text", {
            let parts = [
                parse("", VALUES),
                bind("", "", &[], false),
                describe(b'P', ""),
                execute("", 0),
                sync(),
            ];
            parts.concat()
        }),
        ("parameters that cannot be read", {
            [
                parse("sum", "select $1::int4 + $2::int4"),
                bind("", "sum", &[Some("1"), Some("x")], false),
                sync(),
                bind("named", "sum", &[Some("y"), Some("2")], false),
                sync(),
                bind("", "sum", &[None, Some("99999999999")], true),
                sync(),
                close(b'S', "sum"),
                sync(),
            ]
            .concat()
        }),
        ("a row limit", {
            let text = "select g from generate_series(1, 5) g";
            [
                parse("", text),
                bind("", "", &[], false),
                execute("", 2),
                execute("", 2),
                execute("", 2),
                execute("", 2),
                sync(),
            ]
            .concat()
        }),
        ("a row limit that is met exactly", {
            let text = "select g from generate_series(1, 2) g";
            [
                parse("", text),
                bind("", "", &[], false),
                execute("", 2),
                execute("", 2),
                sync(),
            ]
            .concat()
        }),
        ("a row limit of what writes", {
            let text = "insert into wired values (1, 'a', 1), (2, 'b', 2), (3, 'c', 3) returning k";
            [
                parse("", text),
                bind("", "", &[], false),
                execute("", 2),
                execute("", 2),
                sync(),
            ]
            .concat()
        }),
        ("a row limit of SHOW", {
            [
                parse("", "show datestyle"),
                bind("", "", &[], false),
                describe(b'P', ""),
                execute("", 1),
                execute("", 1),
                sync(),
            ]
            .concat()
        }),
        ("named statements and portals", {
            let parts = [
                query("begin"),
                parse("s1", "select $1::int + 1 as one"),
                bind("p1", "s1", &[Some("1")], false),
                bind("p2", "s1", &[Some("2")], false),
                describe(b'S', "s1"),
                describe(b'P', "p1"),
                execute("p2", 0),
                execute("p1", 0),
                close(b'P', "p1"),
                execute("p1", 0),
                execute("p2", 0),
                sync(),
            ];
            parts.concat()
        }),
        ("what is left of them", {
            [
                query("rollback"),
                bind("p1", "s1", &[Some("5")], false),
                execute("p1", 0),
                close(b'S', "s1"),
                sync(),
                bind("", "s1", &[Some("5")], false),
                sync(),
            ]
            .concat()
        }),
        ("an error skips to Sync", {
            let parts = [
                // Every row is computed, so that nothing is found out while it is planned.
                parse("", "select 1 / g from generate_series(0, $1::int) g"),
                bind("", "", &[Some("0")], false),
                execute("", 0),
                parse("", "select 1"),
                bind("", "", &[], false),
                execute("", 0),
                sync(),
                parse("", "select 2"),
                bind("", "", &[], false),
                execute("", 0),
                sync(),
            ];
            parts.concat()
        }),
        ("one transaction up to Sync", {
            let parts = [
                parse("", "insert into wired values (4, 'd', 4)"),
                bind("", "", &[], false),
                execute("", 0),
                parse("", "insert into wired values (1, 'd', 4)"),
                bind("", "", &[], false),
                execute("", 0),
                sync(),
                query("select k from wired order by k"),
            ];
            parts.concat()
        }),
        ("violations and their fields", {
            let parts = [
                query("insert into wired values (1, 'x', 1)"),
                query("insert into wired values (9, 'a', 1)"),
                query("insert into wired values (9, null, 1)"),
                query("insert into wired values (9, 'x', -1)"),
                query("insert into wired values (9, 'toolong', 1)"),
                query("insert into wired values (9, 'x', 12345)"),
                query("select nosuch from wired"),
                query("select * from\n  nosuch"),
                query("selec 1"),
                query("select 1 +"),
                query("select 'x'::int"),
                query("select ä, nosuch from wired"),
            ];
            parts.concat()
        }),
        ("empty texts", {
            [
                query(""),
                query(";"),
                parse("", ""),
                bind("", "", &[], false),
                describe(b'P', ""),
                execute("", 0),
                sync(),
            ]
            .concat()
        }),
        (
            "several statements",
            query("select 1; select 2 as b; set datestyle = iso; select 1 / g from generate_series(0, 1) g; select 3"),
        ),
        ("COPY in and out, simple", {
            let parts = [
                query("copy wired from stdin"),
                copy_data("5\te\t5\n6\t"),
                copy_data("f\t6\n"),
                copy_done(),
                query("copy (select * from wired order by k) to stdout"),
                query("copy (select 1, 'two') to stdout (format binary)"),
            ];
            parts.concat()
        }),
        ("COPY fails, and what follows is thrown away", {
            let parts = [
                query("copy wired from stdin"),
                copy_data("7\tg\t7\nx\ty\tz\n"),
                copy_data("8\th\t8\n"),
                copy_done(),
                query("copy wired from stdin"),
                copy_data("7\tg\t7\n"),
                message(b'f', &[b"I have no more\0"]),
                query("select count(*) from wired"),
            ];
            parts.concat()
        }),
        (
            "COPY in the extended protocol, with Sync and Flush among the data",
            {
                let parts = [
                    parse("", "copy wired from stdin csv"),
                    bind("", "", &[], false),
                    describe(b'P', ""),
                    execute("", 0),
                    sync(),
                    copy_data("7,g,"),
                    message(b'H', &[]),
                    copy_data("7\n"),
                    copy_done(),
                    sync(),
                    parse(
                        "",
                        "copy (select k from wired where k > 4 order by k) to stdout",
                    ),
                    bind("", "", &[], false),
                    describe(b'P', ""),
                    execute("", 0),
                    sync(),
                ];
                parts.concat()
            },
        ),
        ("COPY in binary", {
            let header = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
            let row = b"\0\x03\0\0\0\x04\0\0\0\x32\0\0\0\x03bin\xff\xff\xff\xff";
            let copy = |data: &[&[u8]]| {
                let asked = query("copy wired from stdin (format binary)");
                [asked, message(b'd', data), message(b'c', &[])].concat()
            };
            let parts = [
                copy(&[header, row, b"\xff\xff"]),
                copy(&[b"PGCOPY\n\xff\r\n\x01\0\0\0\0\0\0\0\0"]),
                copy(&[&header[..15]]),
                copy(&[header, b"\0\x02"]),
                copy(&[header, &row[..12]]),
                copy(&[header, b"\0\x03\0\0\0\x05\0\0\0\x32\0"]),
                copy(&[header, b"\0\x03\xff\xff\xff\xfe"]),
                copy(&[header, b"\xff\xff", row]),
                query("copy (select k, v, n from wired where k = 50) to stdout (format binary)"),
            ];
            parts.concat()
        }),
        (
            "COPY data for nobody",
            [copy_data("1"), copy_done(), query("select 1")].concat(),
        ),
        ("cursors", {
            let parts = [
                query("begin; declare c cursor for select k, v from wired order by k"),
                parse("", "fetch 2 from c"),
                describe(b'S', ""),
                bind("", "", &[], true),
                execute("", 0),
                sync(),
                parse(
                    "",
                    "declare d cursor for select k from wired where k > $1 order by k",
                ),
                describe(b'S', ""),
                bind("", "", &[Some("4")], false),
                execute("", 0),
                sync(),
                query("fetch all from d"),
                query("commit"),
            ];
            parts.concat()
        }),
        ("portals are cursors, and cursors portals", {
            let parts = [
                query("begin"),
                parse("s2", "select g from generate_series(1, $1::int) g"),
                bind("p", "s2", &[Some("10")], false),
                execute("p", 2),
                sync(),
                query("move 3 in p"),
                query("fetch 2 from p"),
                execute("p", 1),
                sync(),
                query("select name, statement, is_scrollable from pg_cursors"),
                bind("p", "s2", &[Some("10")], false),
                sync(),
                query("rollback"),
                query("begin"),
                bind("p", "s2", &[Some("3")], false),
                sync(),
                query("close p"),
                bind("p", "s2", &[Some("2")], false),
                execute("p", 0),
                sync(),
                query("declare c cursor for select g from generate_series(1, 5) g"),
                describe(b'P', "c"),
                execute("c", 2),
                sync(),
                query("fetch c"),
                close(b'P', "c"),
                sync(),
                query("fetch c"),
                query("rollback"),
                query("begin; declare c cursor for select 1 as one"),
                describe(b'P', "c"),
                sync(),
                query("close c; declare c cursor for select 'a' as two, 3 as three"),
                describe(b'P', "c"),
                execute("c", 0),
                sync(),
                query("rollback"),
                query("begin; declare c cursor for select 1"),
                bind("c", "s2", &[Some("3")], false),
                sync(),
                query("rollback"),
                close(b'S', "s2"),
                sync(),
            ];
            parts.concat()
        }),
        ("SET is a part of its cycle", {
            let run = |text| [parse("", text), bind("", "", &[], false), execute("", 0)].concat();
            let failing = [run("set work_mem = '7MB'"), run("select nosuch")].concat();
            let other = [run("set work_mem = '6MB'"), run("show work_mem")].concat();
            let show = query("show work_mem");
            [failing, sync(), show.clone(), other, sync(), show].concat()
        }),
        ("notifications come before a cycle ends", {
            let run = |text| [parse("", text), bind("", "", &[], false), execute("", 0)].concat();
            let parts = [
                query("listen wired; notify wired, 'own'; notify other, 'not heard'; select 1"),
                run("notify wired, 'of an implicit transaction'"),
                run("select pg_notify('wired', 'the same')"),
                sync(),
                query("begin; notify wired, 'of a block'"),
                query("select 2"),
                query("commit"),
                query("notify wired, 'taken back'; select nosuch"),
                query("unlisten wired; notify wired, 'not heard'"),
            ];
            parts.concat()
        }),
        ("the end", query("drop table wired")),
    ]
}

/// How many times a script asks for ReadyForQuery.
fn cycles(script: &[u8]) -> usize {
    let (mut rest, mut cycles) = (script, 0);
    while !rest.is_empty() {
        let length = u32::from_be_bytes([rest[1], rest[2], rest[3], rest[4]]) as usize;
        cycles += usize::from(matches!(rest[0], b'Q' | b'S' | b'F'));
        rest = &rest[length + 1..];
    }
    cycles
}

/// That scripts are answered as PostgreSQL answers them.
pub fn assert_same(node: &Endpoint, scripts: Vec<(&'static str, Vec<u8>)>) {
    let (mut theirs, mut ours) = (Wire::connect(shared::postgres()), Wire::connect(node));
    let mut wrong = Vec::new();
    for (what, script) in scripts {
        // Sync among the data of a COPY is not answered.
        let unanswered = usize::from(what.contains("Sync and Flush"));
        let mut transcripts = [Vec::new(), Vec::new()];
        for (transcript, wire) in transcripts.iter_mut().zip([&mut theirs, &mut ours]) {
            transcript.extend(wire.transcript(&script));
            for _ in 1..cycles(&script) - unanswered {
                transcript.extend(wire.until_ready().iter().map(shown));
            }
        }
        let [expected, found] = transcripts;
        if found != expected {
            wrong.push(format!("{what}:\n  {expected:?}\n  {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn transcripts_are_postgresqls() {
    assert_same(&shared::one_node().nodes()[0], scripts());
    assert_same(&shared::follower_first()[0], scripts());
}

#[test]
fn parameters_in_binary_come_back() {
    // Whatever PostgreSQL sends in binary is understood in binary.
    let types = [
        "int2",
        "int4",
        "int8",
        "numeric",
        "float4",
        "float8",
        "bool",
        "text",
        "bytea",
        "uuid",
        "timestamp",
        "timestamptz",
        "date",
        "time",
        "interval",
        "int4[]",
        "text[]",
    ];
    let values = [
        "-7",
        "8",
        "-9000000000",
        "-12345.678900",
        "1.5",
        "-2.5e100",
        "t",
        "täxt",
        "\\x00ff01",
        "12345678-1234-5678-1234-567812345678",
        "1999-12-31 23:59:59.999999",
        "2021-02-03 04:05:06+00",
        "0044-03-15",
        "23:59:59.5",
        "-1 mon +2 days -00:00:03.5",
        "{1,NULL,-3}",
        "{\"a b\",NULL,\"\\\"\"}",
    ];
    let (mut theirs, mut ours) = (
        Wire::connect(shared::postgres()),
        Wire::connect(&shared::one_node().nodes()[0]),
    );
    for (ty, value) in types.iter().zip(values) {
        let text = format!("select $1::{ty}");
        let asked = [
            parse("", &text),
            bind("", "", &[Some(value)], true),
            execute("", 0),
            sync(),
        ];
        theirs
            .stream
            .write_all(&asked.concat())
            .expect("it is sent");
        let answers = theirs.until_ready();
        let row = answers.iter().find(|(kind, _)| *kind == b'D');
        let (_, row) = row.unwrap_or_else(|| panic!("{ty}: {answers:?}"));
        // The row's one value, with its length, is the parameter in binary.
        let body: [&[u8]; 4] = [b"\0\0\0\x01\0\x01\0\x01", &row[2..], b"\0\x01\0\x01", b""];
        let back = [
            parse("", &text),
            message(b'B', &body),
            execute("", 0),
            sync(),
        ]
        .concat();
        ours.stream.write_all(&back).expect("it is sent");
        let answers = ours.until_ready();
        let found = answers.iter().find(|(kind, _)| *kind == b'D');
        assert_eq!(
            found.map(|(_, body)| body),
            Some(row),
            "{ty} {value}: {:?}",
            answers.iter().map(shown).collect::<Vec<_>>()
        );
    }
}
