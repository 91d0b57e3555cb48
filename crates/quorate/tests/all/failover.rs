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
struct Stage {
    cluster: Cluster,
    _dir: tempfile::TempDir,
}

impl Stage {
    fn new() -> Stage {
        let dir = tempfile::tempdir().expect("a directory");
        let cluster = Cluster::start(program(), dir.path(), 3, &[]).expect("a cluster");
        let stage = Stage { cluster, _dir: dir };
        let leader = stage.leader();
        stage
            .node(leader)
            .query("create table kept(id int primary key); create sequence numbers")
            .expect("the table is made");
        stage
    }

    fn leader(&self) -> usize {
        self.cluster.leader().expect("a leader")
    }

    fn node(&self, node: usize) -> &Endpoint {
        &self.cluster.nodes()[node]
    }

    fn follower(&self) -> usize {
        (self.leader() + 1) % 3
    }

    fn connect(&self, node: usize) -> Client {
        connect(self.node(node)).expect("a session")
    }

    fn kill_leader(&self) -> usize {
        let leader = self.leader();
        let status = self.cluster.status().expect("a status");
        signal(status[leader].pid.expect("it runs"), "KILL").expect("it is killed");
        leader
    }

    /// Hands leadership to another node.
    fn switch_over(&self) {
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
