//! Leadership handed over while clients work: whoever has no block open notices a pause at most.
//!
//! Workers at every node commit one statement after another, or short blocks, and fail the test by
//! any error that they must not see. Beside them idle sessions keep settings and prepared
//! statements, and one block stays open for too long.

use std::collections::BTreeSet;
use std::error::Error;
use std::io::{self, ErrorKind};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lab::host::{run, signal, wait_for, Endpoint, PATIENCE};
use postgres::error::SqlState;
use postgres::Client;

use crate::failover;
use crate::kill::{program, Patient};
use crate::writers::connect;

/// Work before and after each switchover.
const BETWEEN: u64 = 30;

/// Switchovers to one node after the other.
const ROUNDS: usize = 6;

/// The middle one of the longest pauses of all rounds is no longer. New transactions are held for
/// 100 ms; on a machine that does much else, what comes before and after takes its time too.
const PAUSE_MEDIAN_MAX: Duration = Duration::from_millis(250);

/// No pause is longer: shorter than an election could be.
const PAUSE_MAX: Duration = Duration::from_millis(1_500);

/// Rows by worker and number, or what a worker must not have seen.
type Acknowledged = Result<BTreeSet<(i32, i32)>, String>;

/// What a worker and the test tell one another.
#[derive(Default)]
struct Shared {
    over: AtomicBool,
    done: AtomicU64,
    /// The longest that one statement took, in microseconds, since this was last taken.
    longest: AtomicU64,
    failed_blocks: AtomicU64,
    /// The node whose clients are told to go, counted from 1.
    stopping: AtomicU64,
}

/// One client.
struct Worker {
    number: i32,
    node: u64,
    in_blocks: bool,
    shared: Arc<Shared>,
    acknowledged: BTreeSet<(i32, i32)>,
}

impl Worker {
    fn run(mut self, mut client: Client) -> Acknowledged {
        let insert = client.prepare("insert into worked values ($1, $2)");
        let insert = insert.map_err(|error| error.to_string())?;
        let mut seq = 0;
        while !self.shared.over.load(Ordering::SeqCst) {
            seq += 2;
            let rows = [(self.number, seq), (self.number, seq + 1)];
            let result = match self.in_blocks {
                false => {
                    self.timed(|| client.execute(&insert, &[&rows[0].0, &rows[0].1]).map(drop))
                }
                true => self.block(&mut client, &insert, &rows),
            };
            match result {
                Ok(()) if self.in_blocks => self.acknowledged.extend(rows),
                Ok(()) => drop(self.acknowledged.insert(rows[0])),
                Err(error) if self.is_allowed(&error) => {
                    if self.shared.stopping.load(Ordering::SeqCst) == self.node {
                        return Ok(self.acknowledged);
                    }
                    self.shared.failed_blocks.fetch_add(1, Ordering::SeqCst);
                    self.timed(|| client.batch_execute("rollback"))
                        .map_err(|error| self.explain(&error))?;
                    continue;
                }
                Err(error) => return Err(self.explain(&error)),
            }
            self.shared.done.fetch_add(1, Ordering::SeqCst);
        }
        Ok(self.acknowledged)
    }

    fn block(
        &self,
        client: &mut Client,
        insert: &postgres::Statement,
        rows: &[(i32, i32)],
    ) -> Result<(), postgres::Error> {
        self.timed(|| client.batch_execute("begin"))?;
        for (number, seq) in rows {
            self.timed(|| client.execute(insert, &[number, seq]))?;
        }
        self.timed(|| client.batch_execute("commit"))
    }

    fn timed<T>(&self, mut statement: impl FnMut() -> T) -> T {
        let start = Instant::now();
        let result = statement();
        let micros = u64::try_from(start.elapsed().as_micros()).expect("not for ever");
        self.shared.longest.fetch_max(micros, Ordering::SeqCst);
        result
    }

    /// Who has a block open may lose it, and clients of a node that stops are told so, unless they
    /// send while it closes: then the operating system resets the connection.
    fn is_allowed(&self, error: &postgres::Error) -> bool {
        let code = error.code();
        if self.shared.stopping.load(Ordering::SeqCst) == self.node {
            let cause = error.source().and_then(|cause| cause.downcast_ref());
            let is_reset = cause.is_some_and(|cause: &io::Error| {
                let kinds = [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
                kinds.contains(&cause.kind())
            });
            return is_reset || error.is_closed() || code == Some(&SqlState::ADMIN_SHUTDOWN);
        }
        self.in_blocks && code == Some(&SqlState::T_R_SERIALIZATION_FAILURE)
    }

    fn explain(&self, error: &postgres::Error) -> String {
        let habit = if self.in_blocks { "block" } else { "statement" };
        format!("a {habit} at n{}: {error}: {error:?}", self.node)
    }
}

/// Workers at all nodes.
struct Workers {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<Acknowledged>>,
}

impl Workers {
    fn start(nodes: &[Endpoint]) -> Workers {
        let shared = Arc::new(Shared::default());
        let mut threads = Vec::new();
        for (place, node) in nodes.iter().enumerate() {
            for in_blocks in [false, true] {
                let worker = Worker {
                    number: i32::try_from(threads.len()).expect("few workers"),
                    node: place as u64 + 1,
                    in_blocks,
                    shared: shared.clone(),
                    acknowledged: BTreeSet::new(),
                };
                let client = connect(node).expect("a session");
                threads.push(std::thread::spawn(move || worker.run(client)));
            }
        }
        Workers { shared, threads }
    }

    /// Lets them work.
    fn work(&self) {
        let goal = self.shared.done.load(Ordering::SeqCst) + BETWEEN;
        let worked = wait_for("the workers", PATIENCE, || {
            let ended = self.threads.iter().any(JoinHandle::is_finished);
            let stops = self.shared.stopping.load(Ordering::SeqCst) > 0;
            self.shared.done.load(Ordering::SeqCst) >= goal || ended && !stops
        });
        worked.expect("they work");
    }

    /// The longest pause while something is done.
    fn pause_while(&self, does: impl FnOnce()) -> Duration {
        self.work();
        self.shared.longest.store(0, Ordering::SeqCst);
        does();
        self.work();
        Duration::from_micros(self.shared.longest.load(Ordering::SeqCst))
    }

    /// Everything acknowledged.
    fn finish(self) -> BTreeSet<(i32, i32)> {
        self.shared.over.store(true, Ordering::SeqCst);
        let mut all = BTreeSet::new();
        for thread in self.threads {
            let acknowledged = thread.join().expect("a worker ends in order");
            all.extend(acknowledged.unwrap_or_else(|error| panic!("{error}")));
        }
        all
    }
}

fn switch_over(patient: &Patient, to: Option<usize>) {
    let mut command = Command::new(program());
    command.arg("switchover");
    if let Some(to) = to {
        command.arg(format!("n{}", to + 1));
    }
    run(command.arg("--data").arg(patient.cluster.data())).expect("it is handed over");
}

fn wait_for_leader(patient: &Patient, expected: usize) {
    let what = format!("n{} to lead", expected + 1);
    wait_for(&what, PATIENCE, || {
        patient
            .cluster
            .leader()
            .is_ok_and(|leader| leader == expected)
    })
    .expect("it leads");
}

/// Asserts that every node has everything acknowledged.
fn check(patient: &Patient, acknowledged: &BTreeSet<(i32, i32)>) {
    for node in patient.nodes() {
        let mut client = connect(node).expect("a session");
        let rows = client.query("select worker, seq from worked", &[]);
        let rows = rows.expect("rows").into_iter();
        let found: BTreeSet<(i32, i32)> = rows.map(|row| (row.get(0), row.get(1))).collect();
        let missing: Vec<_> = acknowledged.difference(&found).collect();
        assert!(missing.is_empty(), "acknowledged and lost: {missing:?}");
    }
}

fn cluster() -> Patient {
    let patient = Patient::new(3);
    let made = "create table worked(worker int, seq int, primary key (worker, seq)); \
                create sequence numbers";
    patient.nodes()[0].query(made).expect("the table is made");
    patient
}

#[test]
fn a_switchover_is_a_pause_and_no_more() {
    let patient = cluster();
    let nodes = patient.nodes();
    let mut idle: Vec<_> = nodes
        .iter()
        .map(|node| failover::Session::new(connect(node).expect("a session")))
        .collect();
    let workers = Workers::start(nodes);
    let mut pauses = Vec::new();
    for round in 0..ROUNDS {
        let leader = patient.cluster.leader().expect("a leader");
        let to = (leader + 1 + round % 2) % 3;
        pauses.push(workers.pause_while(|| switch_over(&patient, Some(to))));
        wait_for_leader(&patient, to);
        idle.iter_mut().for_each(failover::Session::check);
    }
    // A block that stays open delays a switchover, and nobody else.
    let mut open = connect(&nodes[1]).expect("a session");
    let block = "begin; insert into worked values (-1, 1)";
    open.batch_execute(block).expect("it is open");
    let start = Instant::now();
    let pause = workers.pause_while(|| switch_over(&patient, None));
    assert!(start.elapsed() > Duration::from_secs(2), "it had its time");
    pauses.push(pause);
    let lost = open.batch_execute("commit").expect_err("it is lost");
    assert_eq!(lost.code(), Some(&SqlState::T_R_SERIALIZATION_FAILURE));
    open.batch_execute("rollback; insert into worked values (-1, 2)")
        .expect("the session goes on");
    idle.iter_mut().for_each(failover::Session::check);

    let blocks = workers.shared.failed_blocks.load(Ordering::SeqCst);
    let acknowledged = workers.finish();
    pauses.sort_unstable();
    println!("pauses {pauses:?}, {blocks} blocks lost");
    check(&patient, &acknowledged);
    let median = pauses[pauses.len() / 2];
    assert!(median <= PAUSE_MEDIAN_MAX, "{pauses:?}");
    let longest = pauses[pauses.len() - 1];
    assert!(longest <= PAUSE_MAX, "{pauses:?}");
}

#[test]
fn a_leader_that_is_told_to_stop_hands_over_to_the_preferred() {
    let mut patient = cluster();
    let nodes = patient.nodes().to_vec();
    let first = patient.cluster.leader().expect("a leader");
    let (preferred, second) = ((first + 1) % 3, (first + 2) % 3);
    let prefer = format!(
        "select quorate.set_node('n{}', '', 300), quorate.set_node('n{}', '', 200)",
        preferred + 1,
        second + 1
    );
    let workers = Workers::start(&nodes);
    let moved = workers.pause_while(|| {
        nodes[first].query(&prefer).expect("priorities");
        wait_for_leader(&patient, preferred);
    });
    let pid = patient.pid(preferred);
    let stopping = preferred as u64 + 1;
    workers.shared.stopping.store(stopping, Ordering::SeqCst);
    let stopped = workers.pause_while(|| {
        signal(pid, "TERM").expect("it is told to stop");
        wait_for_leader(&patient, second);
    });
    println!("pauses: moved {moved:?}, stopped {stopped:?}");
    assert!(moved.max(stopped) <= PAUSE_MAX, "{moved:?}, {stopped:?}");
    let acknowledged = workers.finish();
    patient.start(preferred);
    patient.wait_until_answering(preferred);
    check(&patient, &acknowledged);
    // It leads again, because it is preferred.
    wait_for_leader(&patient, preferred);
}
