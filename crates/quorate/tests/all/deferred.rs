//! Unique constraints that are deferred, and exclusion constraints, under attack: sessions that put the
//! same few keys into one table and take them out again, at all isolation levels, with savepoints, while leaders are killed;
//! and transactions so large that their write set lies in scratch space. Nobody ever sees a committed
//! duplicate.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lab::host::{wait_for, Endpoint};

use crate::kill::Patient;
use crate::stage::Stage;
use crate::writers::connect;

/// Sessions that write at once.
const WRITERS: u64 = 8;

/// Keys that they write.
const KEYS: u64 = 12;

/// How long they do, before and after each kill.
const ROUND: Duration = Duration::from_secs(4);

/// Rows of a large transaction.
const ROWS: u64 = 40_000;

/// How long it may take until a writer waits for another one.
const WAITING_MAX: Duration = Duration::from_secs(20);

const DUPLICATES: &str = "select k from taken where k is not null group by k having count(*) > 1";

const OVERLAPS: &str = "select k from (select k, lag(k) over (order by k) as before from taken \
                        where k is not null) t where k - before < 3";

/// Numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// One transaction.
fn transaction(random: &mut Random) -> Vec<String> {
    let level = ["read committed", "repeatable read", "serializable"][random.below(3) as usize];
    let mut steps = vec![format!("begin isolation level {level}")];
    for _ in 0..1 + random.below(4) {
        let (k, other) = (random.below(KEYS), random.below(KEYS));
        steps.push(match random.below(8) {
            0..=2 => format!("insert into taken values ({k}, now()::text)"),
            3 => format!("update taken set k = {k} where k = {other}"),
            4 => format!("update taken set k = k + 1 where k < {k}"),
            5 => format!("delete from taken where k = {k}"),
            6 => format!(
                "savepoint s; delete from taken where k = {k}; \
                 insert into taken values ({k}, 'back'); rollback to s"
            ),
            _ => format!(
                "savepoint s; delete from taken where k = {k}; set constraints all immediate; \
                 set constraints all deferred; rollback to s"
            ),
        });
    }
    steps.push("commit".to_owned());
    steps
}

/// Whether a transaction may end so.
fn is_allowed(error: &postgres::Error) -> bool {
    let Some(error) = error.as_db_error() else {
        return true;
    };
    let state = error.code().code();
    let allowed = ["23505", "23P01", "40001", "40P01"];
    allowed.contains(&state) || state.starts_with("08") || state.starts_with("57")
}

struct Sessions {
    ended: Arc<AtomicBool>,
    commits: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Sessions {
    fn start(nodes: &[Endpoint]) -> Sessions {
        let (ended, commits) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let writers = (1..=WRITERS).map(|seed| {
            let (nodes, ended, commits) = (nodes.to_vec(), ended.clone(), commits.clone());
            std::thread::spawn(move || {
                let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
                while !ended.load(Ordering::Relaxed) {
                    let node = &nodes[random.below(nodes.len() as u64) as usize];
                    let Ok(mut client) = connect(node) else {
                        std::thread::sleep(Duration::from_millis(50));
                        continue;
                    };
                    while !ended.load(Ordering::Relaxed) && !client.is_closed() {
                        let steps = transaction(&mut random);
                        let outcome = steps.iter().try_for_each(|sql| client.batch_execute(sql));
                        match outcome {
                            Ok(()) => drop(commits.fetch_add(1, Ordering::Relaxed)),
                            Err(error) => {
                                assert!(is_allowed(&error), "{steps:?}: {error:?}");
                                let _ = client.batch_execute("rollback");
                            }
                        }
                    }
                }
            })
        });
        Sessions {
            threads: writers.collect(),
            ended,
            commits,
        }
    }

    fn finish(self) -> u64 {
        self.ended.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().expect("a writer");
        }
        self.commits.load(Ordering::Relaxed)
    }
}

/// Looks for what must never be there until so much time is over.
fn watch(nodes: &[Endpoint], wrong: &str, time: Duration) {
    let until = Instant::now() + time;
    let mut looks = 0;
    while Instant::now() < until {
        let client = nodes.iter().find_map(|node| connect(node).ok());
        let Some(mut client) = client else { continue };
        while let Ok(rows) = client.query(wrong, &[]) {
            let keys: Vec<Option<i32>> = rows.iter().map(|row| row.get(0)).collect();
            assert!(keys.is_empty(), "committed twice: {keys:?}");
            looks += 1;
            if Instant::now() >= until {
                break;
            }
        }
    }
    assert!(looks > 0, "nobody looked");
}

fn attacked(table: &str, wrong: &str) {
    let mut patient = Patient::new(3);
    let mut client = connect(&patient.nodes()[0]).expect("a session");
    client.batch_execute(table).expect("the table is made");
    let sessions = Sessions::start(patient.nodes());
    for _ in 0..2 {
        watch(patient.nodes(), wrong, ROUND);
        let leader = patient.cluster.leader().expect("a leader");
        patient.kill(leader);
        watch(patient.nodes(), wrong, ROUND);
        patient.start(leader);
        patient.wait_until_answering(leader);
    }
    let commits = sessions.finish();
    println!("{commits} transactions committed");
    assert!(commits > 100, "only {commits} transactions committed");
    patient.wait_until_caught_up();
    watch(patient.nodes(), wrong, Duration::from_millis(100));
}

#[test]
fn no_two_sessions_commit_one_value() {
    let table = "create table taken (k int unique deferrable initially deferred, v text)";
    attacked(table, DUPLICATES);
}

#[test]
fn no_two_sessions_commit_one_key() {
    let table = "create table taken (k int primary key deferrable initially deferred, v text)";
    attacked(table, DUPLICATES);
}

#[test]
fn no_two_sessions_commit_ranges_that_overlap() {
    let table = "create table taken (k int, v text, \
                 exclude using gist (int4range(k, k + 3) with &&))";
    attacked(table, OVERLAPS);
}

#[test]
fn no_two_sessions_commit_ranges_that_overlap_later() {
    let table = "create table taken (k int, v text, exclude using gist \
                 (int4range(k, k + 3) with &&) deferrable initially deferred)";
    attacked(table, OVERLAPS);
}

/// Both in scratch space and in chunks: every key moves onto its neighbour's, and a key that was
/// written twice is found among them all.
#[test]
fn large_transactions_find_their_duplicates() {
    let patient = Patient::with_settings(1, &["quorate.txn_mem=1MB"]);
    let node = &patient.nodes()[0];
    let mut client = connect(node).expect("a session");
    client
        .batch_execute(&format!(
            "create table taken (k int unique deferrable, v text); \
             insert into taken select i, repeat('x', 50) from generate_series(1, {ROWS}) i; \
             update taken set k = k + 1"
        ))
        .expect("keys move");
    let twice = format!(
        "begin; set constraints all deferred; insert into taken select i, 'y' from \
         generate_series({ROWS} + 2, 2 * {ROWS}) i; insert into taken values ({ROWS} + 7, 'z')"
    );
    let refused = |error: postgres::Error| {
        let error = error.as_db_error().expect("an error").clone();
        assert_eq!(error.code().code(), "23505", "{error:?}");
        let detail = error.detail().unwrap_or_default().to_owned();
        assert_eq!(detail, format!("Key (k)=({}) already exists.", ROWS + 7));
    };
    client.batch_execute(&twice).expect("it is deferred");
    refused(client.batch_execute("commit").expect_err("a duplicate"));
    client.batch_execute(&twice).expect("it is deferred");
    client
        .batch_execute("delete from taken where v = 'z'; commit")
        .expect("no duplicate is left");
    // Another session's row waits for a large transaction, and is refused.
    client
        .batch_execute("begin; set constraints all deferred; update taken set k = -k")
        .expect("they are written");
    let mut other = connect(node).expect("a session");
    let writer = std::thread::spawn(move || other.batch_execute("insert into taken values (-77)"));
    wait_for("the writer's lock", WAITING_MAX, || {
        let waiting = "select from pg_locks where not granted";
        let locks = client.query(waiting, &[]).expect("an answer");
        assert!(!writer.is_finished(), "it must wait");
        !locks.is_empty()
    })
    .expect("the writer waits");
    client.batch_execute("commit").expect("it is committed");
    let error = writer.join().expect("a thread").expect_err("a duplicate");
    assert_eq!(error.code().map(|state| state.code()), Some("23505"));
    let count = client.query(DUPLICATES, &[]).expect("an answer").len();
    assert_eq!(count, 0);
}

/// A statement goes on with the index that it was planned with, which is not the one that REINDEX has
/// made: it is refused, and nothing is there twice.
#[test]
fn an_index_that_is_made_anew_meanwhile_is_noticed() {
    let stage = Stage::one_node();
    stage.table("anew", "k int unique deferrable initially deferred", "(1)");
    let session = stage.session();
    session.ok(
        "create or replace function make_anew() returns int language plpgsql as \
         $$ begin reindex table anew; return 2; end $$",
    );
    assert_eq!(
        session.refused("insert into anew values (make_anew())"),
        "55006"
    );
    let both = "insert into anew values (2), (make_anew()), (2)";
    assert_eq!(session.refused(both), "55006");
    assert_eq!(session.ok("select k from anew"), "1");
    let late = "begin; insert into anew values (1); reindex table anew";
    assert_eq!(session.refused(late), "23505");
    session.ok("rollback; begin; insert into anew values (3)");
    session.ok("delete from anew; insert into anew values (1), (1); delete from anew where k = 1");
    session.ok("insert into anew values (7); reindex table anew; insert into anew values (7)");
    assert_eq!(session.refused("commit"), "23505");
    session.ok("drop table anew; drop function make_anew");
}
