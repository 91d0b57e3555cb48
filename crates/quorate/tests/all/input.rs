//! Bad input at every port: a clear error, and nothing else suffers.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use base::framed::put_framed;
use base::NodeId;
use lab::host::{run, wait_for, Endpoint, PATIENCE};
use lab::quorate::Cluster;
use node::wire::{ClusterId, Hello, Purpose};

use crate::kill::program;
use crate::shared::one_node;

/// What a server sends until it closes, after it was sent some bytes.
fn answer(address: &str, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).expect("a connection");
    let timeout = Some(Duration::from_secs(10));
    stream.set_read_timeout(timeout).expect("a timeout");
    // The server may close before it has read everything.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

fn address(node: &Endpoint) -> String {
    format!("{}:{}", node.host, node.port)
}

/// A startup packet, then whatever comes.
fn session(following: &[u8]) -> Vec<u8> {
    let body = b"\0\x03\0\0user\0postgres\0database\0postgres\0\0";
    let mut bytes = (body.len() as u32 + 4).to_be_bytes().to_vec();
    bytes.extend_from_slice(body);
    bytes.extend_from_slice(following);
    bytes
}

#[test]
fn nonsense_at_the_clients_port() {
    let cluster = one_node();
    let node = &cluster.nodes()[0];
    let address = address(node);
    let pid = cluster.status().expect("a status")[0].pid;
    for bytes in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[0xff; 100_000],
        &[0, 0, 0, 4],
        &session(b"Q\xff\xff\xff\xff"),
        &session(b"Q\0\0\0\x02"),
        &session(b"\0\0\0\0\0"),
    ] {
        let answer = answer(&address, bytes);
        assert!(
            contains(&answer, "08P01"),
            "{:?}",
            String::from_utf8_lossy(&answer)
        );
    }
    // Clients that go in the middle of a message, or of a transaction.
    for bytes in [
        session(b"Q\0\0\x10\0select"),
        session(b"Q\0\0\0\x0abegin\0"),
    ] {
        let mut stream = TcpStream::connect(&address).expect("a connection");
        stream.write_all(&bytes).expect("it is sent");
    }
    assert_eq!(node.query("select 1").expect("an answer"), "1");
    assert_eq!(cluster.status().expect("a status")[0].pid, pid);
}

#[test]
fn statements_of_any_size() {
    let node = &one_node().nodes()[0];
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("statement.sql");
    let say = |text: &str| {
        std::fs::write(&file, text).expect("the file is written");
        run(node.psql().arg("-f").arg(&file))
    };
    let chain = |operators: usize| format!("select 1{};", "+1".repeat(operators));
    assert_eq!(say(&chain(1_000)).expect("a sum").trim(), "1001");
    let too_deep = say(&format!("\\set VERBOSITY verbose\n{}", chain(1_000_000)));
    let error = too_deep.expect_err("too complex").to_string();
    assert!(error.contains("54001"), "{:.500}", error);
    let nonsense = say(&"lorem ipsum ".repeat(1_000_000)).expect_err("nonsense");
    assert!(
        nonsense.to_string().contains("syntax error"),
        "{:.500}",
        nonsense.to_string()
    );
    assert_eq!(node.query("select 1").expect("an answer"), "1");
}

#[test]
fn nonsense_at_the_nodes_port() {
    let cluster = one_node();
    let node = &cluster.nodes()[0];
    let layout = std::fs::read_to_string(cluster.data().join("cluster.json")).expect("a layout");
    let layout: serde_json::Value = serde_json::from_str(&layout).expect("JSON");
    let peer = layout["nodes"][0]["peer_address"]
        .as_str()
        .expect("an address");
    let mut stranger = Vec::new();
    let hello = Hello {
        cluster: ClusterId(u128::from_be_bytes([9; 16])),
        from: NodeId(2),
        to: NodeId(1),
        incarnation: 1,
        name: "n2".into(),
        address: "127.0.0.1:1".into(),
        purpose: Purpose::Groups(Vec::new()),
    };
    put_framed(&mut stranger, &hello.encode());
    for (bytes, expected) in [
        (
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            "a frame of 1195725856 bytes",
        ),
        (b"\0\0\0\x05QUORx", "the node speaks version 120"),
        (&stranger, "it belongs to another cluster, 0909"),
    ] {
        let answer = answer(peer, bytes);
        // That it is refused, and not a word more.
        assert_eq!(answer, b"\0\0\0\x01\x02", "{expected}");
        // It is logged, perhaps after the answer has left.
        wait_for("the refusal in the log", PATIENCE, || {
            let log = std::fs::read_to_string(cluster.data().join("n1/node.log"));
            log.is_ok_and(|log| log.contains(expected))
        })
        .expect("it is logged");
    }
    assert_eq!(node.query("select 1").expect("an answer"), "1");
}

#[test]
fn too_many_clients() {
    let dir = tempfile::tempdir().expect("a directory");
    let settings = ["max_connections=3"];
    let cluster = Cluster::start(program(), dir.path(), 1, &settings).expect("a node");
    let address = address(&cluster.nodes()[0]);
    // The sessions of the start's own questions end in their own time.
    let mut held = Vec::new();
    wait_for("three sessions", PATIENCE, || {
        let mut stream = TcpStream::connect(&address).expect("a connection");
        stream.write_all(&session(b"")).expect("it is sent");
        let mut first = [0];
        stream.read_exact(&mut first).expect("an answer");
        if first == *b"R" {
            held.push(stream);
        }
        held.len() == 3
    })
    .expect("three sessions");
    let refused = answer(&address, &session(b""));
    assert!(
        contains(&refused, "53300"),
        "{:?}",
        String::from_utf8_lossy(&refused)
    );
    held.pop();
    let node = &cluster.nodes()[0];
    wait_for("a place", PATIENCE, || node.query("select 1").is_ok()).expect("a place");
}

#[test]
fn roles_and_databases_that_do_not_exist() {
    let cluster = one_node();
    let node = &cluster.nodes()[0];
    let says = |arguments: &[&str], expected: &str| {
        let mut command = std::process::Command::new("psql");
        command
            .args(["-X", "-h", &node.host, "-p", &node.port.to_string()])
            .args(arguments)
            .args(["-c", "select 1"]);
        let error = run(&mut command).expect_err("nobody is let in").to_string();
        assert!(error.contains(expected), "{error}");
    };
    says(
        &["-U", "nobody", "postgres"],
        "role \"nobody\" does not exist",
    );
    says(
        &["-U", "postgres", "nowhere"],
        "database \"nowhere\" does not exist",
    );
}
