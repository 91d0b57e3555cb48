//! What a read of one row costs in memory: nothing.
//!
//! A whole node runs in this process, with an allocator that counts what the thread of its sessions
//! asks for. A client sends what pgbench sends (Bind, Describe, Execute, Sync; or a query of the
//! simple protocol, with other literals each time), thousands of times;
//! once everything that is used again is there, not one allocation may be made between the bytes
//! that come in and those that go out.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

use base::env::Env;
use base::NodeId;
use kv::Member;
use node::config::NodeConfig;
use node::real::{RealEnv, RealOptions};
use node::server::Node;
use node::wire::ClusterId;
use pg::client::Client;
use pg::frame::put_message;
use pg::frontend::put_bind;

/// Asks the system for memory, and counts what the session's thread asks for.
struct Counting;

static COUNTS: AtomicBool = AtomicBool::new(false);
static SHOWS: AtomicBool = AtomicBool::new(true);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static IS_SESSION: Cell<bool> = const { Cell::new(false) };
}

/// Whether this is the thread that serves sessions.
fn is_session() -> bool {
    if IS_SESSION.try_with(Cell::get).unwrap_or(false) {
        return true;
    }
    let mut name = [0_u8; 16];
    // SAFETY: the buffer is as long as is said.
    let result = unsafe {
        libc::pthread_getname_np(libc::pthread_self(), name.as_mut_ptr().cast(), name.len())
    };
    let found = result == 0 && name.starts_with(b"session-");
    let _ = IS_SESSION.try_with(|known| known.set(found));
    found
}

fn count() {
    if !COUNTS.load(Ordering::Relaxed) || !is_session() {
        return;
    }
    ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    // The first few are shown, so that a failure says where they come from.
    const SHOWN: u64 = 3;
    if ALLOCATIONS.load(Ordering::Relaxed) <= SHOWN && SHOWS.load(Ordering::Relaxed) {
        COUNTS.store(false, Ordering::Relaxed);
        eprintln!("{}", std::backtrace::Backtrace::force_capture());
        COUNTS.store(true, Ordering::Relaxed);
    }
}

// SAFETY: everything is handed to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as the caller promises.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Reads until memory is used again.
const WARM_UP: usize = 2_000;

/// Reads that are counted.
const READS: usize = 10_000;

fn free_address() -> String {
    const PORTS: std::ops::Range<u16> = 24_000..31_000;
    let first = (std::process::id() % 7_000) as u16;
    let mut ports = PORTS.cycle().skip(usize::from(first)).take(PORTS.len());
    let free = ports.find(|port| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok());
    format!("127.0.0.1:{}", free.expect("a free port"))
}

fn start(directory: &std::path::Path) -> (Arc<RealEnv>, Arc<Node>, String) {
    let env = RealEnv::start(&RealOptions {
        name: "n1".to_owned(),
        data_dir: directory.to_owned(),
        session_reactors: 1,
        spin: Duration::ZERO,
        routes: Vec::new(),
        reaches_beyond: false,
    })
    .expect("the machine");
    let address = free_address();
    let port: u16 = address.rsplit(':').next().unwrap().parse().unwrap();
    let member = Member {
        node: NodeId(1),
        name: "n1".into(),
        peer_address: format!("127.0.0.1:{}", port + 1).into(),
        sql_address: address.as_str().into(),
        voter: true,
        ..Member::default()
    };
    let config = NodeConfig {
        cluster: ClusterId(1),
        node: NodeId(1),
        members: vec![member],
        incarnation: 1,
        begun_after: base::Lsn::ZERO,
        user: "ann".to_owned(),
        settings: BTreeMap::new(),
        password: None,
        secure: None,
        places: Default::default(),
    };
    let node_env: Arc<dyn Env> = env.clone();
    let node = env
        .block_on("start", move || Node::start(node_env, config))
        .expect("a result")
        .expect("a node");
    (env, node, address)
}

fn send(client: &mut Client, stream: &mut TcpStream) {
    stream.write_all(client.outgoing()).expect("sent");
    client.sent(client.outgoing().len());
}

/// Sends what the client has to say and waits for one reply.
fn exchange(client: &mut Client, stream: &mut TcpStream) {
    send(client, stream);
    let mut buffer = [0; 4_096];
    loop {
        if let Some(reply) = client.poll().expect("a reply") {
            assert!(reply.error.is_none(), "{:?}", reply.error);
            return;
        }
        let count = stream.read(&mut buffer).expect("received");
        assert!(count > 0, "the server has gone");
        client.feed(&buffer[..count]);
    }
}

fn connect(address: &str) -> TcpStream {
    // A node that has just started leads a moment later.
    for _ in 0..100 {
        if let Ok(mut stream) = TcpStream::connect(address) {
            let mut client = Client::new("ann", "postgres", &[]);
            send(&mut client, &mut stream);
            let mut buffer = [0; 4_096];
            while let Ok(count) = stream.read(&mut buffer) {
                if count == 0 {
                    break;
                }
                client.feed(&buffer[..count]);
                if matches!(client.poll(), Ok(Some(reply)) if reply.error.is_none()) {
                    let texts = [
                        "create table accounts(aid int primary key, balance int, name text)",
                        "insert into accounts select i, i * 2, 'x' from generate_series(1, 5000) i",
                    ];
                    for text in texts {
                        client.query(text);
                        exchange(&mut client, &mut stream);
                    }
                    return stream;
                }
            }
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("nobody answers at {address}");
}

/// Reads messages until ReadyForQuery; returns how many rows there were.
fn read_cycle(stream: &mut TcpStream, buffer: &mut [u8]) -> usize {
    let (mut filled, mut at, mut rows) = (0, 0, 0);
    loop {
        while filled - at >= 5 {
            let length = u32::from_be_bytes(buffer[at + 1..at + 5].try_into().unwrap());
            let end = at + 1 + length as usize;
            if end > filled {
                break;
            }
            match buffer[at] {
                b'D' => rows += 1,
                b'E' => panic!("{}", String::from_utf8_lossy(&buffer[at..end])),
                b'Z' => return rows,
                _ => {}
            }
            at = end;
        }
        let count = stream.read(&mut buffer[filled..]).expect("received");
        assert!(count > 0, "the server has gone");
        filled += count;
    }
}

/// What a client sends to read an account.
type Ask = fn(out: &mut Vec<u8>, aid: &str);

fn ask_prepared(out: &mut Vec<u8>, aid: &str) {
    put_bind(out, "", "read", &[Some(aid.as_bytes())], false);
    put_message(out, b'D', |out| out.extend_from_slice(b"P\0"));
    put_message(out, b'E', |out| out.extend_from_slice(&[0; 5]));
    put_message(out, b'S', |_| {});
}

fn ask_simply(out: &mut Vec<u8>, aid: &str) {
    put_message(out, b'Q', |out| {
        out.extend_from_slice(b"SELECT balance FROM accounts WHERE aid = ");
        out.extend_from_slice(aid.as_bytes());
        out.extend_from_slice(b";\0");
    });
}

/// Allocations of reads that are asked for in one way.
fn allocations(ask: Ask, stream: &mut TcpStream) -> u64 {
    let (mut out, mut buffer) = (Vec::new(), vec![0; 4_096]);
    ALLOCATIONS.store(0, Ordering::Relaxed);
    for number in 0..WARM_UP + READS {
        if number == WARM_UP {
            COUNTS.store(true, Ordering::Relaxed);
        }
        out.clear();
        let aid = (number * 37 % 5_000 + 1).to_string();
        ask(&mut out, &aid);
        stream.write_all(&out).expect("sent");
        assert_eq!(read_cycle(stream, &mut buffer), 1, "account {aid}");
    }
    COUNTS.store(false, Ordering::Relaxed);
    ALLOCATIONS.load(Ordering::Relaxed)
}

#[test]
fn a_read_of_one_row_allocates_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let (env, node, address) = start(directory.path());
    let mut stream = connect(&address);
    stream.set_nodelay(true).expect("an option");

    let mut out = Vec::new();
    let text = "select balance from accounts where aid = $1";
    pg::frontend::put_parse(&mut out, "read", text, &[]);
    put_message(&mut out, b'S', |_| {});
    stream.write_all(&out).expect("sent");
    read_cycle(&mut stream, &mut vec![0; 4_096]);

    let prepared = allocations(ask_prepared, &mut stream);
    let simple = allocations(ask_simply, &mut stream);
    // What must allocate is seen.
    SHOWS.store(false, Ordering::Relaxed);
    let computed = allocations(
        |out, aid| {
            put_message(out, b'Q', |out| {
                out.extend_from_slice(b"select 'a' || balance from accounts where aid = ");
                out.extend_from_slice(aid.as_bytes());
                out.push(0);
            });
        },
        &mut stream,
    );
    drop(stream);
    env.block_on("stop", move || async move { node.stop().await })
        .expect("stopped");
    assert_eq!((prepared, simple), (0, 0), "allocations in {READS} reads");
    assert!(computed >= READS as u64, "{computed} allocations");
}
