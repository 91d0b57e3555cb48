//! Clients that mean harm, of all kinds at once, on three nodes beside pgbench: statements without end
//! that are cancelled, timed out, terminated, or whose client is killed; the fuzzer's; floods at every
//! port. No process may end, what was taken is given back, and others hardly notice.
//!
//! By itself it takes about a minute. `make hostile` sets `QUORATE_HOSTILE_SECONDS=3600`, and prints
//! how long others waited: for the end of a statement that was told to end, and for a new session.
//!
//! ```text
//!   warm up ─ at rest: so much memory ─ the same trouble for long ─ at rest: at most a tenth more
//! ```

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lab::host::{resident_bytes, run, wait_for, Endpoint, Process, PATIENCE};
use lab::quorate::Cluster;

use crate::floods::{addresses, cluster, flood, pgbench_beside, stranger, Size};
use crate::hostile::{ENDLESS, TOO_LONG};
use crate::kill::{open_directory, program};
use crate::shared;
use crate::stage::Session;
use crate::writers::connect;

/// Little memory, so that it is all in use soon, and more would show.
const SETTINGS: [&str; 2] = ["quorate.memory_budget=384MB", "shared_buffers=48MB"];

/// More than `shared_buffers`: a page cache that fills up meanwhile would look like memory that is not
/// given back.
const FILLER: &str = "create table filler as
    select number, repeat(md5(number::text), 20) as text from generate_series(1, 100000) as number";

/// Sessions that run hostile statements, spread over the nodes.
const SESSIONS: usize = 4;

/// Of the time, this part is for warming up.
const WARM_UP_PART: u64 = 5;

/// A cancel that comes before its statement is lost, as in PostgreSQL; so another is sent after a while.
const CANCEL_AGAIN: Duration = Duration::from_secs(3);

/// On a machine on which everything else runs, too, a statement that is told to end does so within this.
const END_MAX: Duration = Duration::from_secs(60);

/// Of what was resident before, so much may be more when all is at rest again.
const MORE_PERCENT: u64 = 10;

/// How often a new client comes.
const VISIT_EVERY: Duration = Duration::from_millis(200);

/// Connections of the flood.
const FLOOD: Size = Size {
    seconds: 0,
    per_second: 100,
    open: 100,
    is_measured: false,
};

/// How long the trouble lasts, warming up apart.
fn seconds() -> u64 {
    let given = std::env::var("QUORATE_HOSTILE_SECONDS");
    given.map_or(25, |seconds| seconds.parse().expect("a number of seconds"))
}

/// Numbers that look like chance, the same in each run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    fn statement(&mut self) -> &'static str {
        let place = self.below(ENDLESS.len() + TOO_LONG.len());
        match ENDLESS.get(place) {
            Some(statement) => statement,
            None => TOO_LONG[place - ENDLESS.len()],
        }
    }

    fn moment(&mut self) -> Duration {
        Duration::from_millis(20 + self.below(800) as u64)
    }
}

/// How long something took, each time.
#[derive(Default)]
struct Times(Vec<Duration>);

impl Times {
    fn line(&mut self, what: &str) -> String {
        self.0.sort_unstable();
        let at = |percent: usize| self.0.get(self.0.len() * percent / 100);
        let shown = |time: Option<&Duration>| time.map_or(0, Duration::as_millis);
        format!(
            "{what}: {} times, p50 {} ms, p99 {} ms, longest {} ms",
            self.0.len(),
            shown(at(50)),
            shown(at(99)),
            shown(self.0.last())
        )
    }
}

/// Waits for the end of what was told to end, telling it again where that may have come too early;
/// what it took.
fn end(session: &Session, statement: &str, tell: impl Fn()) -> Duration {
    let begun = Instant::now();
    tell();
    while session.answered(CANCEL_AGAIN).is_none() {
        assert!(begun.elapsed() < END_MAX, "no end of {statement}");
        tell();
    }
    begun.elapsed()
}

/// Runs one hostile statement and has it end in one of the ways there are; how long its end took, if
/// it did not come by itself.
fn trouble(at: &Endpoint, chance: &mut Chance) -> Option<Duration> {
    let (statement, moment) = (chance.statement(), chance.moment());
    let client = connect(at).ok()?;
    let session = Session::new(client);
    match chance.below(4) {
        0 => {
            session.start(statement);
            if session.answered(moment).is_some() {
                return None;
            }
            Some(end(&session, statement, || session.cancel()))
        }
        1 => {
            session.ok(&format!("set statement_timeout = {}", moment.as_millis()));
            session.start(statement);
            let begun = Instant::now();
            let ended = session.answered(END_MAX);
            assert!(ended.is_some(), "no end of {statement}");
            begun.elapsed().checked_sub(moment)
        }
        2 => {
            let pid = session.ok("select pg_backend_pid()");
            session.start(statement);
            if session.answered(moment).is_some() {
                return None;
            }
            Some(end(&session, statement, || {
                let terminated = at.query(&format!("select pg_terminate_backend({pid})"));
                terminated.expect("a session beside it");
            }))
        }
        // Its client is gone. The server finds out, which the memory at the end shows.
        _ => {
            let mut psql = at.client("psql");
            psql.args(["-Xqc", statement, "postgres"]);
            let out = std::env::temp_dir().join(format!("hostile-{}", std::process::id()));
            let process = Process::start(&mut psql, &out.with_extension(format!("{}", chance.0)));
            std::thread::sleep(moment);
            drop(process);
            None
        }
    }
}

/// All trouble at once, beside pgbench, for so many seconds: how long statements took to end, and new
/// clients to be served.
fn trouble_beside_pgbench(cluster: &Cluster, dir: &std::path::Path, seconds: u64) -> [Times; 2] {
    let (nodes, is_over) = (cluster.nodes(), &AtomicBool::new(false));
    let go_on = || !is_over.load(Ordering::Relaxed);
    let (ports, stranger) = (addresses(cluster), stranger(dir));
    let leader = cluster.leader().expect("a leader");
    std::thread::scope(|scope| {
        let hostile: Vec<_> = (0..SESSIONS)
            .map(|number| {
                let mut chance = Chance(0x9e37_79b9 + number as u64 * seconds);
                scope.spawn(move || {
                    let mut ends = Vec::new();
                    while go_on() {
                        let at = &nodes[chance.below(nodes.len())];
                        ends.extend(trouble(at, &mut chance));
                    }
                    ends
                })
            })
            .collect();
        let visits = scope.spawn(move || {
            let mut times = Vec::new();
            for number in 0.. {
                if !go_on() {
                    break;
                }
                let begun = Instant::now();
                let client = connect(&nodes[number % nodes.len()]);
                let answer = client.and_then(|mut client| client.simple_query("select 1"));
                answer.expect("a new client is served");
                times.push(begun.elapsed());
                std::thread::sleep(VISIT_EVERY);
            }
            times
        });
        let mut fuzz = Command::new(program());
        let url = |at: &Endpoint| format!("postgres://{}:{}/fuzz_beside", at.host, at.port);
        fuzz.args(["lab", "fuzz", "--url", &url(&nodes[leader])])
            .args(["--beside", &url(shared::postgres())])
            .args(["--seconds", &seconds.to_string()])
            .args(["--differences", "1000"]);
        let fuzz = Process::start(&mut fuzz, &dir.join("fuzz.log")).expect("the fuzzer");
        let size = Size { seconds, ..FLOOD };
        let (p99, _) = pgbench_beside(dir, &nodes[leader], seconds, || {
            flood(size, &ports, &stranger)
        });
        is_over.store(true, Ordering::Relaxed);
        drop(fuzz);
        println!("pgbench's p99 {p99:.1} ms");
        let ends = hostile.into_iter().map(|one| one.join().expect("no panic"));
        let ends = Times(ends.flatten().collect());
        [ends, Times(visits.join().expect("no panic"))]
    })
}

/// Resident memory of each node.
fn resident(pids: &[u32]) -> Vec<u64> {
    let bytes = |pid: &u32| resident_bytes(&[*pid]).expect("its memory");
    pids.iter().map(bytes).collect()
}

#[test]
fn hostile_clients_leave_nothing_behind() {
    let dir = open_directory();
    let cluster = cluster(dir.path(), &SETTINGS);
    let leader = cluster.leader().expect("a leader");
    let at = cluster.nodes()[leader].clone();
    run(Command::new("pgbench")
        .args(["-h", &at.host, "-p", &at.port.to_string(), "-U", "postgres"])
        .args(["-i", "-s", "1", "-q", "postgres"]))
    .expect("pgbench's tables");
    for server in [&at, shared::postgres()] {
        let made = server.query("create database fuzz_beside");
        made.expect("a database for the fuzzer");
    }
    at.query("create table hostile (a int, v text); insert into hostile values (1, 'a')")
        .expect("a table");
    at.query(FILLER).expect("the page caches are full");
    let pids = || -> Vec<u32> {
        let pid = |node| cluster.pid(node).expect("it runs");
        (0..cluster.nodes().len()).map(pid).collect()
    };
    let begun = pids();
    let only_these = || {
        let count = "select count(*) from pg_stat_activity where backend_type = 'client backend'";
        let alone = |node: &Endpoint| node.query(count).is_ok_and(|count| count == "1");
        wait_for("the hostile sessions to end", PATIENCE, || {
            cluster.nodes().iter().all(alone)
        })
        .expect("they end");
    };

    trouble_beside_pgbench(&cluster, dir.path(), (seconds() / WARM_UP_PART).max(5));
    only_these();
    let before = resident(&begun);
    let [mut ends, mut visits] = trouble_beside_pgbench(&cluster, dir.path(), seconds());
    println!("{}", ends.line("a hostile statement's end"));
    println!("{}", visits.line("a new client"));
    only_these();
    assert!(
        ends.0.len() > 5,
        "{} statements are no trouble",
        ends.0.len()
    );
    assert_eq!(pids(), begun, "a process has ended");
    let mut after = Vec::new();
    let is_back = wait_for("the memory to be given back", PATIENCE, || {
        after = resident(&begun);
        let mut pairs = before.iter().zip(&after);
        pairs.all(|(before, after)| *after <= before + before * MORE_PERCENT / 100)
    });
    println!("resident before {before:?}, after {after:?}");
    is_back.expect("no more than before");
    for node in 0..cluster.nodes().len() {
        let log = std::fs::read_to_string(cluster.node_dir(node).join("node.log"));
        let log = log.expect("a log");
        assert!(!log.contains("panicked"), "{log}");
    }
    cluster.nodes().iter().for_each(|node| {
        let answer = node.query("select count(*) from pgbench_accounts");
        assert_eq!(answer.expect("an answer"), "100000");
    });
}
