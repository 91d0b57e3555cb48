//! What clients notice when the leader is lost: of an idle session nothing, of work the truth.

use std::process::Command;
use std::time::Duration;

use lab::host::{signal, wait_for, Endpoint, PATIENCE};
use lab::quorate::Cluster;
use postgres::error::SqlState;
use postgres::{Client, Statement};

use crate::kill::program;
use crate::writers::connect;

/// A cluster of three whose leader can be lost.
pub struct Stage {
    cluster: Cluster,
    _dir: tempfile::TempDir,
}

impl Stage {
    pub fn new() -> Stage {
        Stage::with(&[])
    }

    /// With these settings.
    pub fn with(settings: &[&str]) -> Stage {
        let dir = tempfile::tempdir().expect("a directory");
        let cluster = Cluster::start(program(), dir.path(), 3, settings).expect("a cluster");
        let stage = Stage { cluster, _dir: dir };
        let leader = stage.leader();
        stage
            .node(leader)
            .query("create table kept(id int primary key); create sequence numbers")
            .expect("the table is made");
        stage
    }

    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    pub fn leader(&self) -> usize {
        self.cluster.leader().expect("a leader")
    }

    pub fn node(&self, node: usize) -> &Endpoint {
        &self.cluster.nodes()[node]
    }

    pub fn follower(&self) -> usize {
        (self.leader() + 1) % 3
    }

    pub fn connect(&self, node: usize) -> Client {
        connect(self.node(node)).expect("a session")
    }

    pub fn kill_leader(&self) -> usize {
        let leader = self.leader();
        let status = self.cluster.status().expect("a status");
        signal(status[leader].pid.expect("it runs"), "KILL").expect("it is killed");
        leader
    }

    /// Hands leadership to another node.
    pub fn switch_over(&self) {
        let old = self.leader();
        let mut command = Command::new(program());
        command
            .args(["switchover", "--data"])
            .arg(self.cluster.data());
        lab::host::run(&mut command).expect("it is handed over");
        wait_for("another leader", PATIENCE, || {
            self.cluster.leader().is_ok_and(|leader| leader != old)
        })
        .expect("another leads");
    }
}

/// A session with everything that can move.
pub struct Session {
    client: Client,
    prepared: Statement,
    pid: i32,
}

impl Session {
    pub fn new(mut client: Client) -> Session {
        client
            .batch_execute(
                "set application_name to 'moving'; set lock_timeout to '4321ms'; \
                 set quorate_test.custom to 'x'; begin; set local work_mem to '77kB'; commit; \
                 prepare doubled(int) as select $1 * 2; select nextval('numbers')",
            )
            .expect("it is prepared");
        let prepared = client.prepare("select $1::int + 1").expect("a statement");
        let pid = client
            .query_one("select pg_backend_pid()", &[])
            .expect("a row")
            .get(0);
        Session {
            client,
            prepared,
            pid,
        }
    }

    /// That it is what it was.
    pub fn check(&mut self) {
        let row = self
            .client
            .query_one(&self.prepared, &[&41])
            .expect("a row");
        assert_eq!(row.get::<_, i32>(0), 42);
        let row = self
            .client
            .query_one(
                "select current_setting('application_name'), current_setting('lock_timeout'), \
                 current_setting('quorate_test.custom'), current_setting('work_mem'), \
                 pg_backend_pid(), currval('numbers') > 0",
                &[],
            )
            .expect("a row");
        let texts: Vec<String> = (0..4).map(|column| row.get(column)).collect();
        assert_eq!(texts, ["moving", "4321ms", "x", "4MB"]);
        assert_eq!(row.get::<_, i32>(4), self.pid);
        assert!(row.get::<_, bool>(5));
        let rows = self
            .client
            .simple_query("execute doubled(21)")
            .expect("rows");
        let doubled = rows.iter().find_map(|message| match message {
            postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        });
        assert_eq!(doubled.as_deref(), Some("42"));
    }
}

fn state(result: Result<u64, postgres::Error>) -> Option<SqlState> {
    result.expect_err("an error").code().cloned()
}

#[test]
fn sessions_go_on_when_the_leader_is_killed() {
    let stage = Stage::new();
    let follower = stage.follower();
    let mut idle = Session::new(stage.connect(follower));
    let mut open = Session::new(stage.connect(follower));
    open.client
        .batch_execute("begin; insert into kept values (1)")
        .unwrap();
    let mut holding = stage.connect(follower);
    holding
        .batch_execute("declare c cursor with hold for select 1")
        .unwrap();
    let mut locking = stage.connect(follower);
    locking.execute("select pg_advisory_lock(7)", &[]).unwrap();
    let old = stage.kill_leader();
    idle.check();
    // The block is lost, and says so before anything else.
    assert_eq!(
        state(open.client.execute("insert into kept values (2)", &[])),
        Some(SqlState::T_R_SERIALIZATION_FAILURE)
    );
    assert_eq!(
        state(open.client.execute("insert into kept values (2)", &[])),
        Some(SqlState::IN_FAILED_SQL_TRANSACTION)
    );
    open.client.batch_execute("rollback").unwrap();
    open.check();
    open.client
        .batch_execute("insert into kept values (3)")
        .unwrap();
    for client in [&mut holding, &mut locking] {
        let ended = client.execute("select 1", &[]);
        let error = ended.expect_err("what it held is gone");
        let told = error.code() == Some(&SqlState::ADMIN_SHUTDOWN);
        assert!(told || error.is_closed(), "{error}");
    }
    let rows = idle.client.query("select id from kept", &[]).unwrap();
    assert_eq!(rows.len(), 1);
    assert_ne!(stage.leader(), old);
}

#[test]
fn sessions_go_on_when_leadership_is_handed_over() {
    let stage = Stage::new();
    let mut sessions: Vec<_> = (0..3)
        .map(|node| Session::new(stage.connect(node)))
        .collect();
    for round in 0..4 {
        let mut open = stage.connect(round % 3);
        open.batch_execute("begin; select 1").unwrap();
        stage.switch_over();
        for session in &mut sessions {
            session.check();
        }
        let lost = open.batch_execute("commit");
        // One that ended in time did so, any other is told.
        if let Err(error) = lost {
            assert_eq!(
                error.code(),
                Some(&SqlState::T_R_SERIALIZATION_FAILURE),
                "{error}"
            );
        }
    }
}

#[test]
fn who_had_commits_in_flight_is_told_which() {
    let stage = Stage::new();
    let follower = stage.follower();
    let mut other = Session::new(stage.connect(follower));
    let block = "do $$ begin for i in 1..10000000 loop insert into kept values (i); commit; \
                 end loop; end $$";
    // The driver may see the close before the error that stands before it.
    let mut working = stage.node(follower).psql();
    working.args(["-c", "\\set VERBOSITY verbose", "-c", block]);
    let working = std::thread::spawn(move || working.output().expect("psql runs"));
    std::thread::sleep(Duration::from_millis(500));
    stage.kill_leader();
    let output = working.join().expect("it returns");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("FATAL:  08007"), "{told}");
    let detail = told.lines().find(|line| line.starts_with("DETAIL"));
    let mut words = detail.unwrap_or("").split(|c: char| !c.is_ascii_digit());
    let xid = words.find_map(|word| word.parse::<i64>().ok());
    let xid = xid.unwrap_or_else(|| panic!("no transaction in {told:?}"));
    let row = other
        .client
        .query_one("select txid_status($1)", &[&xid])
        .unwrap();
    assert_eq!(row.get::<_, String>(0), "committed");
    other.check();
}

/// What a client sends first after its block was lost, in SQL.
const SENT_FIRST: [&str; 17] = [
    "rollback to s",
    "release s",
    "savepoint t",
    "fetch c",
    "move c",
    "close c",
    "execute doubled(1)",
    "deallocate doubled",
    "copy kept to stdout",
    "copy kept from stdin",
    "commit",
    "end",
    "begin",
    "show work_mem",
    "set local work_mem to '1MB'",
    "select nonsense",
    "select 1",
];

#[test]
fn a_lost_block_is_told_whatever_comes_first() {
    let stage = Stage::new();
    let follower = stage.follower();
    let lose = "begin; insert into kept values (1) on conflict do nothing; savepoint s; \
                declare c cursor for select generate_series(1, 9); fetch c";
    let mut simple: Vec<_> = (0..=SENT_FIRST.len())
        .map(|_| Session::new(stage.connect(follower)))
        .collect();
    let (leaving, rest) = simple.split_last_mut().expect("some");
    for session in rest.iter_mut().chain([&mut *leaving]) {
        // Rows of their own, so that none waits.
        let key = session.pid;
        let begin = lose.replace("(1)", &format!("({key})"));
        session.client.batch_execute(&begin).expect("a block");
    }
    let mut extended: Vec<Client> = (0..3).map(|_| stage.connect(follower)).collect();
    let [portals, statements, parsing] = &mut extended[..] else {
        unreachable!("three were made");
    };
    let numbers = "select generate_series(1, 9)";
    let kept = statements.prepare(numbers).expect("a statement");
    let mut reading = portals.transaction().expect("a block");
    let portal = reading.bind(numbers, &[]).expect("a portal");
    assert_eq!(reading.query_portal(&portal, 2).expect("rows").len(), 2);
    statements
        .batch_execute("begin; select 1")
        .expect("a block");
    parsing.batch_execute("begin; select 1").expect("a block");
    stage.kill_leader();
    let lost = Some(SqlState::T_R_SERIALIZATION_FAILURE);
    for (session, text) in rest.iter_mut().zip(SENT_FIRST) {
        let told = session.client.batch_execute(text);
        let told = told.expect_err(text);
        assert_eq!(told.code().cloned(), lost, "{text}: {told}");
        session.client.batch_execute("rollback").expect("it ends");
        session.check();
    }
    leaving.client.batch_execute("rollback").expect("it ends");
    leaving.check();
    let told = reading.query_portal(&portal, 2).expect_err("it is gone");
    assert_eq!(told.code().cloned(), lost, "a portal: {told}");
    drop(reading);
    assert_eq!(portals.query(numbers, &[]).expect("rows").len(), 9);
    let told = statements.query(&kept, &[]).expect_err("it is gone");
    assert_eq!(told.code().cloned(), lost, "a statement: {told}");
    statements.batch_execute("rollback").expect("it ends");
    assert_eq!(statements.query(&kept, &[]).expect("rows").len(), 9);
    let told = parsing.prepare(numbers).expect_err("it is gone");
    assert_eq!(told.code().cloned(), lost, "parsing: {told}");
}

/// Rows that each loop writes.
const WRITTEN: i32 = 60;

/// Tries a transaction with a savepoint until it is in; how often 40001 was told.
fn insert_with_retries(endpoint: &Endpoint, id: i32, client: &mut Option<Client>) -> usize {
    let mut failures = 0;
    let begun = std::time::Instant::now();
    loop {
        assert!(begun.elapsed() < PATIENCE, "{id} does not get in");
        let Some(connected) = client else {
            *client = connect(endpoint).ok();
            std::thread::sleep(Duration::from_millis(20));
            continue;
        };
        let error = match insert_once(connected, id) {
            Ok(()) => return failures,
            Err(error) => error,
        };
        match error.code() {
            Some(&SqlState::T_R_SERIALIZATION_FAILURE) => failures += 1,
            // It was committed by a try whose answer was lost.
            Some(&SqlState::UNIQUE_VIOLATION) => return failures,
            _ => assert!(error.is_closed() || is_fatal(&error), "{id}: {error:?}"),
        }
        if connected.is_closed() || error.code().is_none() || is_fatal(&error) {
            *client = None;
        }
    }
}

fn is_fatal(error: &postgres::Error) -> bool {
    error
        .as_db_error()
        .is_none_or(|told| told.severity() == "FATAL")
}

/// One try, as a driver's retry loop makes it: whatever fails ends in a rollback.
fn insert_once(client: &mut Client, id: i32) -> Result<(), postgres::Error> {
    let mut block = client.transaction()?;
    block.execute("insert into kept values ($1)", &[&id])?;
    std::thread::sleep(Duration::from_millis(25));
    let mut nested = block.savepoint("nested")?;
    nested.execute("insert into kept values ($1)", &[&-id])?;
    std::thread::sleep(Duration::from_millis(25));
    match id % 2 {
        0 => nested.rollback()?,
        _ => nested.commit()?,
    }
    block.commit()
}

#[test]
fn retry_loops_of_a_driver_get_over_killed_leaders() {
    let mut patient = crate::kill::Patient::new(3);
    patient.nodes()[0]
        .query("create table kept(id int primary key)")
        .expect("the table is made");
    let loops: Vec<_> = (0..3)
        .map(|number: usize| {
            let endpoint = patient.nodes()[number].clone();
            std::thread::spawn(move || {
                let mut client = None;
                let ids = (1..=WRITTEN).map(|id| id * 3 + number as i32);
                let failures = ids.map(|id| insert_with_retries(&endpoint, id, &mut client));
                failures.sum::<usize>()
            })
        })
        .collect();
    while !loops.iter().all(|one| one.is_finished()) {
        std::thread::sleep(Duration::from_millis(700));
        let Ok(leader) = patient.cluster.leader() else {
            continue;
        };
        patient.kill(leader);
        std::thread::sleep(Duration::from_millis(700));
        patient.start(leader);
        patient.wait_until_answering(leader);
    }
    let failures: Vec<usize> = loops
        .into_iter()
        .map(|one| one.join().expect("a loop ends"))
        .collect();
    println!("40001 was told {failures:?} times");
    assert!(failures.iter().sum::<usize>() > 0, "no block was lost");
    let count = |what: &str| {
        let sql = format!("select count(*) from kept where {what}");
        patient.nodes()[0].query(&sql).expect("a count")
    };
    assert_eq!(count("id > 0"), (3 * WRITTEN).to_string());
    assert_eq!(count("id < 0 and id % 2 = 0"), "0");
    assert_eq!(count("id < 0"), count("id > 0 and id % 2 = 1"));
}
