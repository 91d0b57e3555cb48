//! Large objects as clients use them: functions that are called by their oids, as libpq calls them, and
//! what is left of an object after a restart and after a failover.

use std::path::Path;

use lab::host::signal;
use lab::quorate::Cluster;

use crate::failover::Stage;
use crate::kill::program;
use crate::shared;
use crate::transcripts::{assert_same, message, query, Message, Wire};

const LO_CREATE: u32 = 715;
const LO_IMPORT: u32 = 764;
const LO_OPEN: u32 = 952;
const LOREAD: u32 = 954;
const LOWRITE: u32 = 955;
const LO_LSEEK: u32 = 956;
const LO_TELL64: u32 = 3_171;
const LO_TRUNCATE64: u32 = 3_172;
const LO_GET: u32 = 3_458;
const LO_UNLINK: u32 = 964;
const CURRENT_USER: u32 = 745;
const GENERATE_SERIES: u32 = 1_066;
const SUM: u32 = 2_108;

const READ_WRITE: i32 = 0x6_0000;

/// A call with these formats of its arguments, and of its result.
fn call_in(function: u32, args: &[Option<&[u8]>], formats: &[u16], result: u16) -> Vec<u8> {
    let mut body = function.to_be_bytes().to_vec();
    body.extend((formats.len() as u16).to_be_bytes());
    formats
        .iter()
        .for_each(|format| body.extend(format.to_be_bytes()));
    body.extend((args.len() as u16).to_be_bytes());
    for arg in args {
        match arg {
            None => body.extend((-1i32).to_be_bytes()),
            Some(arg) => {
                body.extend((arg.len() as u32).to_be_bytes());
                body.extend_from_slice(arg);
            }
        }
    }
    body.extend(result.to_be_bytes());
    message(b'F', &[&body])
}

/// A call in binary.
fn call(function: u32, args: &[&[u8]]) -> Vec<u8> {
    let args: Vec<_> = args.iter().map(|arg| Some(*arg)).collect();
    call_in(function, &args, &[1], 1)
}

fn number(number: i32) -> [u8; 4] {
    number.to_be_bytes()
}

fn scripts() -> Vec<(&'static str, Vec<u8>)> {
    let (object, fd) = (number(71_001), number(0));
    let open = call(LO_OPEN, &[&object, &number(READ_WRITE)]);
    vec![
        (
            "an object in a block",
            [
                query("begin"),
                call(LO_CREATE, &[&object]),
                open.clone(),
                call(LOWRITE, &[&fd, b"large object"]),
                call(LO_LSEEK, &[&fd, &number(6), &number(0)]),
                call(LOREAD, &[&fd, &number(100)]),
                call(LO_TELL64, &[&fd]),
                call_in(LOREAD, &[Some(b"0"), Some(b"10")], &[0], 0),
                call_in(
                    LO_LSEEK,
                    &[Some(b"0"), Some(&fd), Some(b"0")],
                    &[0, 1, 0],
                    0,
                ),
                call_in(LOREAD, &[Some(b"0"), Some(b"5")], &[], 0),
                call(LO_TRUNCATE64, &[&fd, &5i64.to_be_bytes()]),
                call_in(LO_GET, &[Some(&object)], &[1], 0),
                query("commit"),
            ]
            .concat(),
        ),
        (
            "a block that is rolled back",
            [
                query("begin"),
                open.clone(),
                call(LOWRITE, &[&fd, b"LARGE"]),
                call(LO_GET, &[&object]),
                call(LOREAD, &[&number(1), &number(1)]),
                call(LOREAD, &[&fd, &number(1)]),
                query("rollback"),
                call(LO_GET, &[&object]),
            ]
            .concat(),
        ),
        (
            "calls outside of blocks",
            [
                open,
                call(LOREAD, &[&fd, &number(1)]),
                call(LO_CREATE, &[&object]),
                call(LO_CREATE, &[&number(71_002)]),
                call(LO_UNLINK, &[&number(71_002)]),
                call(LO_UNLINK, &[&number(71_002)]),
                call_in(CURRENT_USER, &[], &[], 0),
                call_in(LO_OPEN, &[Some(&object), None], &[1], 1),
            ]
            .concat(),
        ),
        (
            "what cannot be called so",
            [
                call(1, &[]),
                call(u32::MAX, &[]),
                call(LO_OPEN, &[&object]),
                call(LO_OPEN, &[&object, &fd, &fd]),
                call_in(LO_OPEN, &[Some(&object), Some(&fd)], &[1, 1, 1], 1),
                call_in(LO_OPEN, &[Some(b"abc"), Some(b"1")], &[0], 0),
                call(LO_OPEN, &[&object, b"12"]),
                call(GENERATE_SERIES, &[&fd, &fd]),
                call(SUM, &[&fd]),
            ]
            .concat(),
        ),
        ("the end", call(LO_UNLINK, &[&object])),
    ]
}

#[test]
fn calls_are_answered_as_by_postgresql() {
    assert_same(&shared::one_node().nodes()[0], scripts());
    assert_same(&shared::follower_first()[0], scripts());
}

#[test]
fn whoever_may_not_call_or_read_is_refused() {
    let mut wire = Wire::connect(&shared::one_node().nodes()[0]);
    let object = number(71_005);
    value(&mut wire, &call(LO_CREATE, &[&object]));
    wire.query("create role wired_guest");
    wire.query("set role wired_guest");
    let mut refused = |call: &[u8]| {
        wire.send(call);
        said(&wire.until_ready())
    };
    let answer = refused(&call(LO_GET, &[&object]));
    assert!(answer.contains("42501"), "{answer}");
    assert!(
        answer.contains("permission denied for large object 71005"),
        "{answer}"
    );
    let answer = refused(&call_in(LO_IMPORT, &[Some(b"/absent")], &[0], 0));
    assert!(
        answer.contains("permission denied for function lo_import"),
        "{answer}"
    );
    assert_eq!(refused(&query("begin")), "C BEGIN\\x00, Z T");
    let answer = refused(&call(LO_UNLINK, &[&object]));
    assert!(
        answer.contains("must be owner of large object 71005"),
        "{answer}"
    );
    let answer = refused(&call_in(CURRENT_USER, &[], &[], 0));
    assert!(answer.contains("25P02"), "{answer}");
    assert!(answer.ends_with("Z E"), "{answer}");
    refused(&query("rollback"));
    refused(&query("reset role; drop role wired_guest"));
    assert_eq!(value(&mut wire, &call(LO_UNLINK, &[&object])), number(1));
}

/// The value that a call gives.
#[track_caller]
fn value(wire: &mut Wire, call: &[u8]) -> Vec<u8> {
    wire.send(call);
    match &wire.until_ready()[..] {
        [(b'V', body), _] => body[4..].to_vec(),
        other => panic!("{}", said(other)),
    }
}

fn said(messages: &[Message]) -> String {
    let shown = messages.iter().map(|(kind, body)| {
        let kind = *kind as char;
        format!("{kind} {}", body.escape_ascii())
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// Makes an object of some pages, with a hole, in a block of calls.
fn make(wire: &mut Wire, oid: i32) {
    wire.query("begin");
    value(wire, &call(LO_CREATE, &[&number(oid)]));
    let fd = value(wire, &call(LO_OPEN, &[&number(oid), &number(READ_WRITE)]));
    for block in 0..20u8 {
        value(wire, &call(LOWRITE, &[&fd, &vec![block; 8_192]]));
    }
    value(wire, &call(LO_LSEEK, &[&fd, &number(500_000), &number(0)]));
    value(wire, &call(LOWRITE, &[&fd, b"the end"]));
    let ended = wire.query("commit");
    assert!(said(&ended).starts_with("C COMMIT"), "{}", said(&ended));
}

fn assert_made(wire: &mut Wire, oid: i32) {
    let mut expected: Vec<u8> = (0..20u8).flat_map(|block| vec![block; 8_192]).collect();
    expected.resize(500_000, 0);
    expected.extend_from_slice(b"the end");
    assert_eq!(value(wire, &call(LO_GET, &[&number(oid)])), expected);
}

#[test]
fn what_was_written_is_there_after_a_restart() {
    let dir = tempfile::tempdir().expect("a directory");
    let cluster = started(dir.path());
    let node = cluster.nodes()[0].clone();
    let mut wire = Wire::connect(&node);
    make(&mut wire, 71_003);
    wire.query("create role kept_reader");
    wire.query("grant select on large object 71003 to kept_reader");
    wire.query("comment on large object 71003 is 'kept'");
    wire.query("begin");
    value(&mut wire, &call(LO_UNLINK, &[&number(71_003)]));
    signal(cluster.pid(0).expect("it runs"), "KILL").expect("it is killed");
    let _again = cluster.start_again(0).expect("it starts");
    node.wait().expect("it answers");
    let mut wire = Wire::connect(&node);
    assert_made(&mut wire, 71_003);
    let known =
        "select lomacl, obj_description(oid, 'pg_largeobject') from pg_largeobject_metadata";
    assert_eq!(
        node.query(known).expect("an answer"),
        "{postgres=rw/postgres,kept_reader=r/postgres}|kept"
    );
}

fn started(dir: &Path) -> Cluster {
    Cluster::start(program(), dir, 1, &[]).expect("a node")
}

#[test]
fn what_a_follower_has_passed_on_outlives_the_leader() {
    let stage = Stage::new();
    let mut wire = Wire::connect(stage.node(stage.follower()));
    make(&mut wire, 71_004);
    wire.query("begin");
    let open = call(LO_OPEN, &[&number(71_004), &number(READ_WRITE)]);
    let fd = value(&mut wire, &open);
    value(&mut wire, &call(LOWRITE, &[&fd, b"lost"]));
    stage.kill_leader();
    wire.send(&call(LOREAD, &[&fd, &number(1)]));
    let lost = wire.until_ready();
    assert!(said(&lost).contains("40001"), "{}", said(&lost));
    wire.query("rollback");
    assert_made(&mut wire, 71_004);
    wire.query("begin");
    let fd = value(&mut wire, &open);
    value(&mut wire, &call(LOWRITE, &[&fd, b"kept"]));
    wire.query("commit");
    let got = value(&mut wire, &call(LO_GET, &[&number(71_004)]));
    assert_eq!(&got[..5], b"kept\0");
}
