//! Floods at every port, beside a load that goes on: silent sockets, halves of TLS handshakes, wrong
//! keys, cancel requests for sessions that are somebody else's, connections that come and go.
//!
//! By itself it takes some twenty seconds. `make floods` sets `QUORATE_FLOOD_SECONDS=600`: ten minutes
//! with 1,000 connections a second and 500 open, after which pgbench's p99 is compared with what it is
//! beside a loop that burns as much processor time as the flood did: it may be twice that.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lab::host::{run, wait_for, Endpoint, Process, PATIENCE};
use lab::quorate::Cluster;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};

use crate::kill::{open_directory, program};
use crate::security::equip;

/// What the nodes are started with: TLS wherever there can be.
const SETTINGS: [&str; 5] = [
    "ssl=on",
    "ssl_cert_file=node.crt",
    "ssl_key_file=node.key",
    "quorate.peer_tls=on",
    "authentication_timeout=5s",
];

/// Clients of pgbench.
const CLIENTS: usize = 4;

/// A connection of the flood that is not made within this is given up.
const CONNECT_MAX: Duration = Duration::from_millis(500);

/// How much of a flood there is.
#[derive(Clone, Copy)]
pub struct Size {
    pub seconds: u64,
    /// Connections that are made a second, and of those that stay open the most.
    pub per_second: u64,
    pub open: usize,
    /// Whether pgbench's p99 is compared.
    pub is_measured: bool,
}

impl Size {
    fn chosen() -> Size {
        match std::env::var("QUORATE_FLOOD_SECONDS") {
            Ok(seconds) => Size {
                seconds: seconds.parse().expect("a number of seconds"),
                per_second: 1_000,
                open: 500,
                is_measured: true,
            },
            Err(_) => Size {
                seconds: 10,
                per_second: 300,
                open: 300,
                is_measured: false,
            },
        }
    }
}

/// Three nodes with TLS, and a certificate that is nobody's.
pub fn cluster(dir: &Path, more: &[&str]) -> Cluster {
    let certs = dir.join("certs");
    let quorate = |arguments: &[&str]| {
        run(Command::new(program())
            .args(arguments)
            .arg("--dir")
            .arg(&certs))
        .expect("it does what it is asked");
    };
    quorate(&["cert", "ca"]);
    for name in ["n1", "n2", "n3"] {
        quorate(&["cert", "node", name]);
        equip(&certs, name, &dir.join("data").join(name));
    }
    quorate(&["cert", "node", STRANGER]);
    Cluster::start(program(), dir, 3, &[&SETTINGS, more].concat()).expect("a cluster")
}

/// Who has a certificate of the cluster's authority, and a key that is no member's.
const STRANGER: &str = "n9";

/// How the stranger connects to nodes.
pub fn stranger(dir: &Path) -> Arc<rustls::ClientConfig> {
    let certs = dir.join("certs");
    let file = |end: &str| certs.join(format!("{STRANGER}.{end}"));
    let mut roots = rustls::RootCertStore::empty();
    let ca = CertificateDer::from_pem_file(certs.join("ca.crt")).expect("the authority");
    roots.add(ca).expect("a certificate");
    let chain = CertificateDer::from_pem_file(file("crt")).expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(file("key")).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_client_auth_cert(vec![chain], key);
    Arc::new(config.expect("a certificate"))
}

/// Where a node listens.
#[derive(Clone, Copy)]
pub struct Ports {
    clients: SocketAddr,
    nodes: SocketAddr,
    status: SocketAddr,
}

/// Where the nodes listen.
pub fn addresses(cluster: &Cluster) -> Vec<Ports> {
    let file = std::fs::read_to_string(cluster.data().join("cluster.json")).expect("a file");
    let file: serde_json::Value = serde_json::from_str(&file).expect("JSON");
    let nodes = file["nodes"].as_array().expect("nodes");
    let ports = |node: &serde_json::Value| {
        let address = |field: &str| node[field].as_str().expect("an address").parse();
        Ports {
            clients: address("sql_address").expect("an address"),
            nodes: address("peer_address").expect("an address"),
            status: address("http_address").expect("an address"),
        }
    };
    nodes.iter().map(ports).collect()
}

/// The beginning of a ClientHello that says it is longer.
const HALF_A_HELLO: &[u8] =
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03half of what there is to say";

/// Kinds of connections in a flood.
const KINDS: u64 = 12;

/// A request for TLS, as clients begin.
const ENCRYPT: &[u8] = b"\0\0\0\x08\x04\xd2\x16\x2f";

/// One connection of the flood; the stream if it stays open.
fn annoy(kind: u64, at: Ports, stranger: &Arc<rustls::ClientConfig>) -> Option<TcpStream> {
    let Ports {
        clients,
        nodes,
        status,
    } = at;
    let connect = |to: SocketAddr| {
        let stream = TcpStream::connect_timeout(&to, CONNECT_MAX).ok()?;
        stream.set_read_timeout(Some(CONNECT_MAX)).ok()?;
        stream.set_write_timeout(Some(CONNECT_MAX)).ok()?;
        Some(stream)
    };
    let say = |to: SocketAddr, bytes: &[u8]| {
        let mut stream = connect(to)?;
        stream.write_all(bytes).ok()?;
        Some(stream)
    };
    match kind % KINDS {
        // Silent ones.
        0 => connect(clients),
        1 => connect(nodes),
        // Halves of handshakes.
        2 => {
            let mut stream = say(clients, ENCRYPT)?;
            let mut answer = [0];
            stream.read_exact(&mut answer).ok()?;
            stream.write_all(HALF_A_HELLO).ok()?;
            Some(stream)
        }
        3 => say(nodes, HALF_A_HELLO),
        // Half of a startup packet, and one that is never followed by what it promises.
        4 => say(clients, b"\0\0\0\x40\0\x03"),
        // Nonsense where a certificate is wanted.
        5 => {
            drop(say(nodes, b"\0\0\0\x20QUOR in the clear, as nobody may"));
            None
        }
        // Cancels of sessions that may be there, with keys that are not theirs.
        6 | 7 => {
            let mut request = b"\0\0\0\x10\x04\xd2\x16\x2e".to_vec();
            let pid = ((((kind / KINDS) % 3 + 1) << 20) | ((kind / 33) % 20)) as i32;
            request.extend(pid.to_be_bytes());
            request.extend(
                (kind as i32)
                    .wrapping_mul(0x9e37_79b1_u32 as i32)
                    .to_be_bytes(),
            );
            drop(say(clients, &request));
            None
        }
        // Those that come and go.
        8 => {
            drop(connect(clients));
            None
        }
        9 => {
            drop(connect(nodes));
            None
        }
        // A whole handshake, with a key that no member has, and then nothing.
        10 => {
            let name = ServerName::try_from("n1").ok()?;
            let mut tls = rustls::ClientConnection::new(stranger.clone(), name).ok()?;
            let mut stream = connect(nodes)?;
            while tls.is_handshaking() {
                tls.complete_io(&mut stream).ok()?;
            }
            Some(stream)
        }
        // One that never ends its question, at the status page.
        _ => say(status, b"GET /status HTTP/1.1\r\n"),
    }
}

/// Processor time of this thread.
fn thread_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap_or_default();
    ticks_of(&stat)
}

/// What `/proc/…/stat` says of processor time, in ticks of 10 ms.
fn ticks_of(stat: &str) -> Duration {
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let mut fields = after_name.split_whitespace().skip(11);
    let mut next = || fields.next().and_then(|ticks| ticks.parse::<u64>().ok());
    let ticks = next().unwrap_or(0) + next().unwrap_or(0);
    Duration::from_millis(10 * ticks)
}

/// Processor time of the nodes' threads for handshakes.
fn handshakes_time(pids: &[u32]) -> Duration {
    let mut all = Duration::ZERO;
    for pid in pids {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("its threads");
        for task in tasks.flatten() {
            let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            if stat.contains("(handshakes)") {
                all += ticks_of(&stat);
            }
        }
    }
    all
}

/// Floods until the time is over: how many connections there were, and the processor time it took.
pub fn flood(size: Size, nodes: &[Ports], stranger: &Arc<rustls::ClientConfig>) -> (u64, Duration) {
    const THREADS: u64 = 4;
    let made = Arc::new(AtomicU64::new(0));
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let (nodes, made, stranger) = (nodes.to_vec(), made.clone(), stranger.clone());
            std::thread::spawn(move || {
                let mut open = VecDeque::new();
                let begun = Instant::now();
                let end = Duration::from_secs(size.seconds);
                for number in 0.. {
                    let due = Duration::from_micros(number * THREADS * 1_000_000 / size.per_second);
                    if due >= end || begun.elapsed() >= end {
                        break;
                    }
                    std::thread::sleep(due.saturating_sub(begun.elapsed()));
                    let kind = number * THREADS + thread;
                    let at = nodes[(kind / KINDS) as usize % nodes.len()];
                    open.extend(annoy(kind, at, &stranger));
                    if open.len() > size.open / THREADS as usize {
                        open.pop_front();
                    }
                    made.fetch_add(1, Ordering::Relaxed);
                }
                thread_time()
            })
        })
        .collect();
    let times = threads
        .into_iter()
        .map(|thread| thread.join().expect("a flood"));
    let time = times.sum();
    (made.load(Ordering::Relaxed), time)
}

/// Burns as much processor time a second.
fn burn(per_second: Duration, seconds: u64) {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(seconds) {
        let slice = Instant::now();
        let share = per_second / 100;
        while slice.elapsed() < share.min(Duration::from_millis(10)) {
            std::hint::spin_loop();
        }
        std::thread::sleep(Duration::from_millis(10).saturating_sub(slice.elapsed()));
    }
}

/// pgbench beside something: its 99th percentile, in milliseconds.
pub fn pgbench_beside<T>(
    dir: &Path,
    at: &Endpoint,
    seconds: u64,
    beside: impl FnOnce() -> T,
) -> (f64, T) {
    let prefix = dir.join("latency");
    let mut command = Command::new("pgbench");
    command
        .args(["-h", &at.host, "-p", &at.port.to_string(), "-U", "postgres"])
        .args(["-n", "-c", &CLIENTS.to_string(), "-j", "2", "-l"])
        .args(["-T", &seconds.to_string(), "-b", "simple-update"])
        .arg(format!("--log-prefix={}", prefix.display()))
        .arg("postgres")
        .env("PGSSLMODE", "require");
    let mut process = Process::start(&mut command, &dir.join("pgbench.out")).expect("pgbench");
    let result = beside();
    let said = || std::fs::read_to_string(dir.join("pgbench.out")).unwrap_or_default();
    process.wait().expect("pgbench ends");
    assert!(said().contains("tps = "), "{}", said());
    assert!(!said().contains("aborted"), "{}", said());
    let mut latencies = Vec::new();
    for entry in std::fs::read_dir(dir).expect("the directory").flatten() {
        if entry.file_name().to_string_lossy().starts_with("latency") {
            let log = std::fs::read_to_string(entry.path()).expect("a log");
            let third = |line: &str| line.split(' ').nth(2)?.parse::<u64>().ok();
            latencies.extend(log.lines().filter_map(third));
            std::fs::remove_file(entry.path()).expect("it is removed");
        }
    }
    latencies.sort_unstable();
    assert!(latencies.len() > 10, "{} transactions", latencies.len());
    (latencies[latencies.len() * 99 / 100] as f64 / 1e3, result)
}

#[test]
fn floods_at_every_port_leave_the_work_alone() {
    let size = Size::chosen();
    let dir = open_directory();
    let cluster = cluster(dir.path(), &[]);
    let leader = cluster.leader().expect("a leader");
    let pids: Vec<u32> = (0..3)
        .map(|node| cluster.pid(node).expect("it runs"))
        .collect();
    let at = cluster.nodes()[leader].clone();
    let follower = cluster.nodes()[(leader + 1) % 3].clone();
    run(Command::new("pgbench")
        .args(["-h", &at.host, "-p", &at.port.to_string(), "-U", "postgres"])
        .args(["-i", "-s", "1", "-q", "postgres"]))
    .expect("pgbench's tables");
    let nodes = addresses(&cluster);

    // New sessions come in meanwhile, at a node that passes them on.
    let is_over = Arc::new(AtomicBool::new(false));
    let visits = {
        let is_over = is_over.clone();
        std::thread::spawn(move || {
            let (mut count, mut failures) = (0, Vec::new());
            while !is_over.load(Ordering::Relaxed) {
                match follower.query("select count(*) from pgbench_branches") {
                    Ok(_) => count += 1,
                    Err(error) => failures.push(error.to_string()),
                }
                std::thread::sleep(Duration::from_millis(200));
            }
            (count, failures)
        })
    };
    let elections = || {
        let logs = (0..3).map(|node| cluster.node_dir(node).join("node.log"));
        let logs = logs.map(|log| std::fs::read_to_string(log).expect("a log"));
        logs.map(|log| log.matches("leader in term").count())
            .sum::<usize>()
    };
    let elected = elections();
    let before = handshakes_time(&pids);
    let stranger = stranger(dir.path());
    let (p99, (made, time)) = pgbench_beside(dir.path(), &at, size.seconds, || {
        flood(size, &nodes, &stranger)
    });
    let shaken = handshakes_time(&pids) - before;
    is_over.store(true, Ordering::Relaxed);
    let (visited, failures) = visits.join().expect("no panic");
    println!(
        "{made} connections in {} s, {time:?} of processor time, and {shaken:?} of the nodes; p99 \
         {p99:.1} ms; {visited} visits, {} failed",
        size.seconds,
        failures.len()
    );
    assert!(
        made > size.seconds * size.per_second / 4,
        "{made} connections are no flood"
    );
    assert!(
        visited > 5 && failures.is_empty(),
        "{visited} visits: {failures:?}"
    );
    // Nobody has ended, and nobody else leads, or has led.
    assert_eq!(elections(), elected);
    let now: Vec<u32> = (0..3)
        .map(|node| cluster.pid(node).expect("it runs"))
        .collect();
    assert_eq!(now, pids);
    assert_eq!(cluster.leader().expect("a leader"), leader);
    for node in ["n1", "n2", "n3"] {
        let log = std::fs::read_to_string(cluster.data().join(node).join("node.log"));
        let log = log.expect("a log");
        assert!(log.contains("closed the connection of a node at"), "{log}");
        let lines = log.lines().filter(|line| line.contains("WARNING")).count();
        let most = 110 * (size.seconds as usize / 10 + 3) * 2;
        assert!(lines <= most, "{node} has {lines} lines of warnings");
    }
    // All that was held is given back.
    wait_for("the connections to end", PATIENCE, || {
        let open = |pid: &u32| {
            let files = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("its files");
            files.count()
        };
        pids.iter().all(|pid| open(pid) < 150)
    })
    .expect("they are closed");

    if size.is_measured {
        let per_second = (time + shaken) / u32::try_from(size.seconds).expect("seconds");
        let (alone, ()) = pgbench_beside(dir.path(), &at, size.seconds.min(60), || {
            burn(per_second, size.seconds.min(60));
        });
        println!(
            "beside a loop that burns {per_second:?} a second: p99 {alone:.1} ms; the flood makes it {:.2} \
             times that",
            p99 / alone
        );
        assert!(p99 <= 2.0 * alone, "p99 of {p99} ms beside {alone} ms");
    }
}

/// Sockets that are silent use up every descriptor that a node has for sockets; its files are none of
/// them, and it goes on.
#[test]
fn a_node_without_descriptors_goes_on() {
    const FILES: usize = 160;
    let dir = open_directory();
    let cluster = Cluster::start(program(), dir.path(), 1, &[]).expect("a node");
    let node = cluster.nodes()[0].clone();
    let data = cluster.data().join("n1");
    drop(cluster);
    let script = format!(
        "ulimit -n {FILES}; exec {} start --log - --data {}",
        program().display(),
        data.display()
    );
    let mut command = Command::new("bash");
    command.args(["-c", &script]);
    let process = Process::start(&mut command, &dir.path().join("few.log")).expect("it starts");
    node.wait().expect("it answers");
    let mut client = postgres::Config::new()
        .host(&node.host)
        .port(node.port)
        .user("postgres")
        .dbname("postgres")
        .connect(postgres::NoTls)
        .expect("a session");
    client
        .batch_execute("create table t(id serial primary key, word text)")
        .expect("a table");
    let address: SocketAddr = format!("{}:{}", node.host, node.port)
        .parse()
        .expect("an address");
    let mut held: Vec<TcpStream> = Vec::new();
    for round in 0..20 {
        for _ in 0..FILES / 10 {
            held.extend(TcpStream::connect_timeout(&address, CONNECT_MAX).ok());
        }
        // Also what opens files.
        client
            .batch_execute(
                "insert into t(word) select repeat('w', 100) from generate_series(1, 500)",
            )
            .expect("rows");
        if round % 5 == 4 {
            client.batch_execute("checkpoint").expect("a checkpoint");
        }
    }
    assert!(held.len() > FILES, "{} connections", held.len());
    let log = std::fs::read_to_string(dir.path().join("few.log")).expect("a log");
    assert!(log.contains("could not accept a connection"), "{log}");
    assert!(log.matches("could not accept").count() < 100, "{log}");
    drop(held);
    wait_for("room", PATIENCE, || node.query("select 1").is_ok()).expect("it takes clients again");
    let count = client
        .query_one("select count(*) from t", &[])
        .expect("a count");
    assert_eq!(count.get::<_, i64>(0), 10_000);
    drop(process);
}

/// More silent sockets than a port has places for: the oldest make room.
#[test]
fn whoever_is_silent_longest_makes_room() {
    const SILENT: usize = node::unproved::UNPROVED_MAX + 100;
    let dir = open_directory();
    let cluster = Cluster::start(program(), dir.path(), 1, &[]).expect("a node");
    let node = &cluster.nodes()[0];
    let script = format!(
        "ulimit -n {}; for i in $(seq {SILENT}); do exec {{to}}<>/dev/tcp/{}/{}; done; echo all; \
         sleep 60",
        SILENT + 50,
        node.host,
        node.port
    );
    let mut command = Command::new("bash");
    command.args(["-c", &script]);
    let said = dir.path().join("silent.log");
    let silent = Process::start(&mut command, &said).expect("they connect");
    let log = || {
        let log = std::fs::read_to_string(cluster.data().join("n1/node.log"));
        log.expect("a log")
    };
    wait_for("all to be connected", PATIENCE, || {
        let said = std::fs::read_to_string(&said).unwrap_or_default();
        said.contains("all") && log().contains("turned out a connection of clients")
    })
    .unwrap_or_else(|_| panic!("{}", log()));
    for _ in 0..20 {
        assert_eq!(node.query("select 1").expect("an answer"), "1");
    }
    drop(silent);
}

fn ordinary(node: &Endpoint, user: &str) -> Result<postgres::Client, String> {
    let connected = postgres::Config::new()
        .host(&node.host)
        .port(node.port)
        .user(user)
        .dbname("postgres")
        .connect(postgres::NoTls);
    connected.map_err(|error| match error.as_db_error() {
        Some(error) => format!("{} {}", error.code().code(), error.message()),
        None => error.to_string(),
    })
}

#[test]
fn the_last_places_are_for_superusers() {
    let dir = open_directory();
    let settings = ["max_connections=5", "superuser_reserved_connections=2"];
    let cluster = Cluster::start(program(), dir.path(), 3, &settings).expect("a cluster");
    let leader = cluster.leader().expect("a leader");
    let (at, follower) = (
        cluster.nodes()[leader].clone(),
        cluster.nodes()[(leader + 1) % 3].clone(),
    );
    at.query("create role ann login").expect("a role");
    let reserved = "53300 remaining connection slots are reserved for non-replication superuser \
                    connections";
    // Sessions of the start end in their own time.
    let mut held = Vec::new();
    wait_for("three sessions", PATIENCE, || {
        // Those at another node count where they are served.
        let node = [&at, &follower][held.len() % 2];
        held.extend(ordinary(node, "ann"));
        held.len() == 3
    })
    .expect("three sessions");
    for node in [&at, &follower] {
        assert_eq!(ordinary(node, "ann").err().as_deref(), Some(reserved));
    }
    let first = ordinary(&at, "postgres").expect("a superuser");
    let second = ordinary(&follower, "postgres").expect("another");
    let full = "53300 sorry, too many clients already";
    assert_eq!(ordinary(&at, "postgres").err().as_deref(), Some(full));
    // Whoever has not shown who it is takes no place of anybody.
    drop((first, second, held));
    let address: SocketAddr = format!("{}:{}", at.host, at.port)
        .parse()
        .expect("an address");
    let silent: Vec<TcpStream> = (0..20)
        .map(|_| TcpStream::connect(address).expect("a connection"))
        .collect();
    wait_for("a place", PATIENCE, || ordinary(&at, "ann").is_ok()).expect("a place");
    drop(silent);
}

#[test]
fn whoever_does_not_show_who_it_is_is_let_go() {
    let dir = open_directory();
    let settings = ["authentication_timeout=1s"];
    let cluster = Cluster::start(program(), dir.path(), 1, &settings).expect("a node");
    let node = cluster.nodes()[0].clone();
    let rules = "host all ann all scram-sha-256\nhost all all all trust\n";
    std::fs::write(cluster.data().join("n1/pg_hba.conf"), rules).expect("the rules");
    node.query("create role ann login password 'x'")
        .expect("a role");
    node.query("select pg_reload_conf()")
        .expect("the rules are read");
    let address: SocketAddr = format!("{}:{}", node.host, node.port)
        .parse()
        .expect("an address");
    let ended = |first: &[u8]| {
        let begun = Instant::now();
        let mut stream = TcpStream::connect(address).expect("a connection");
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .expect("a timeout");
        stream.write_all(first).expect("it is sent");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("its end");
        let waited = begun.elapsed();
        assert!(
            (900..5_000).contains(&waited.as_millis()),
            "after {waited:?}"
        );
        String::from_utf8_lossy(&answer).into_owned()
    };
    assert_eq!(ended(b""), "");
    assert_eq!(ended(b"\0\0\0\x40\0\x03"), "");
    let mut startup = b"\0\0\0\0\0\x03\0\0user\0ann\0database\0postgres\0\0".to_vec();
    startup[3] = startup.len() as u8;
    let said = ended(&startup);
    assert!(
        said.contains("canceling authentication due to timeout"),
        "{said}"
    );
}
