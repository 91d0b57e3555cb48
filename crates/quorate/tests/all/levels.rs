//! Levels of commit and reads on standbys, with real processes, one of which freezes.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lab::host::{output, signal, wait_for, Endpoint, PATIENCE};
use lab::quorate::Cluster;

use crate::kill::program;

struct Three {
    cluster: Cluster,
    _dir: tempfile::TempDir,
}

impl Three {
    fn start() -> Three {
        let dir = tempfile::tempdir().expect("a directory");
        let cluster = Cluster::start(program(), dir.path(), 3, &[]).expect("a cluster");
        Three { cluster, _dir: dir }
    }

    /// The leader, and the others.
    fn roles(&self) -> (usize, [usize; 2]) {
        let leader = self.cluster.leader().expect("a leader");
        (leader, [(leader + 1) % 3, (leader + 2) % 3])
    }

    fn node(&self, node: usize) -> &Endpoint {
        &self.cluster.nodes()[node]
    }

    fn signal(&self, node: usize, name: &str) {
        let status = self.cluster.status().expect("a status");
        let pid = status[node].pid.expect("the node runs");
        signal(pid, name).expect("the node gets the signal");
    }
}

fn psql(endpoint: &Endpoint, options: &str, statements: &[&str]) -> Command {
    let mut psql = endpoint.psql();
    psql.args(["-X", "-A", "-t", "-q"])
        .env("PGOPTIONS", options);
    for statement in statements {
        psql.args(["-c", statement]);
    }
    psql
}

/// What the statements print, one row a line.
fn ask(endpoint: &Endpoint, options: &str, statements: &[&str]) -> String {
    let printed = output(&mut psql(endpoint, options, statements)).expect("psql");
    let text = String::from_utf8_lossy(&printed.stdout).into_owned();
    let errors = String::from_utf8_lossy(&printed.stderr).into_owned();
    (text + &errors).trim().to_owned()
}

/// Does not wait for what it reads to be on other nodes.
const HASTY: &str = "-c synchronous_commit=local";

const ON_STANDBY: &str = "-c quorate.follower_reads=settled";

fn configure(endpoint: &Endpoint, name: &str, value: &str) {
    let set = format!("alter system set {name} = '{value}'");
    let answer = ask(endpoint, "", &[&set, "select pg_reload_conf()"]);
    assert_eq!(answer, "t", "{name} = {value}");
}

/// Sends a statement and does not wait for its end.
fn begin(endpoint: &Endpoint, statement: &str) -> std::process::Child {
    let mut psql = psql(endpoint, "-c application_name=waiting", &[statement]);
    psql.stdout(Stdio::piped()).stderr(Stdio::piped());
    psql.spawn().expect("psql starts")
}

fn finish(child: std::process::Child) -> String {
    let printed = child.wait_with_output().expect("psql ends");
    let text = String::from_utf8_lossy(&printed.stdout).into_owned();
    (text + &String::from_utf8_lossy(&printed.stderr))
        .trim()
        .to_owned()
}

fn wait_until(endpoint: &Endpoint, what: &str, question: &str) {
    wait_for(what, PATIENCE, || ask(endpoint, HASTY, &[question]) == "t").expect(what);
}

const WAITS: &str = "select count(*) = 1 from pg_stat_activity \
    where application_name = 'waiting' and wait_event_type = 'IPC' and wait_event = 'SyncRep'";

#[test]
fn a_named_standby_that_freezes_is_waited_for_until_the_timeout() {
    let three = Three::start();
    let (leader, [away, other]) = three.roles();
    let (node, name) = (three.node(leader), format!("n{}", away + 1));
    ask(node, "", &["create table t(i int primary key)"]);
    configure(
        node,
        "synchronous_standby_names",
        &format!("FIRST 1 ({name})"),
    );
    let states = "select application_name, sync_state, sync_priority from pg_stat_replication order by 2 desc";
    let expected = format!("{name}|sync|1\nn{}|quorum|1", other + 1);
    assert_eq!(ask(node, HASTY, &[states]), expected);
    ask(node, "", &["insert into t values (1)"]);

    three.signal(away, "STOP");
    let waiting = begin(node, "insert into t values (2)");
    wait_until(node, "the commit to wait", WAITS);
    // The one that is frozen stands still, and nobody else does.
    let reader = begin(node, "select count(*) from t");
    wait_until(node, "the commit to reach the other standby", &format!(
        "select flush_lsn >= pg_current_wal_lsn() from pg_stat_replication where application_name = 'n{}'", other + 1));
    let slot = format!("select restart_lsn < pg_current_wal_lsn() from pg_replication_slots where slot_name = '{name}'");
    assert_eq!(ask(node, HASTY, &[&slot]), "t");
    // A cancelled commit says what it knows; a reader says nothing of what it read.
    let cancel = "select count(pg_cancel_backend(pid)) from pg_stat_activity where application_name = 'waiting'";
    wait_until(node, "both to wait", &WAITS.replace("= 1", "= 2"));
    assert_eq!(ask(node, HASTY, &[cancel]), "2");
    let said = finish(waiting);
    assert!(
        said.starts_with("WARNING:  canceling wait for synchronous replication"),
        "{said}"
    );
    let said = finish(reader);
    assert!(
        said.starts_with("ERROR:  canceling statement due to user request"),
        "{said}"
    );

    let waiting = begin(node, "insert into t values (3)");
    wait_until(node, "the commit to wait", WAITS);
    configure(node, "quorate.standby_timeout", "1s");
    let start = Instant::now();
    assert_eq!(finish(waiting), "");
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "{:?}",
        start.elapsed()
    );
    // Given up: nobody waits for it any more.
    let start = Instant::now();
    assert_eq!(ask(node, "", &["insert into t values (4)"]), "");
    assert!(
        start.elapsed() < Duration::from_secs(1),
        "{:?}",
        start.elapsed()
    );

    three.signal(away, "CONT");
    wait_until(node, "the standby to be taken back", &format!(
        "select sync_state = 'sync' and flush_lsn = pg_current_wal_lsn() and replay_lsn = flush_lsn \
         from pg_stat_replication where application_name = '{name}'"));
    configure(node, "quorate.standby_timeout", "0");
    assert_eq!(
        ask(three.node(away), ON_STANDBY, &["select count(*) from t"]),
        "4"
    );

    // Who is named survives the leader.
    configure(node, "synchronous_standby_names", "n9");
    let in_flight = begin(three.node(other), "insert into t values (5)");
    wait_until(node, "the commit to wait", WAITS);
    three.signal(leader, "KILL");
    let survivor = three.node(other);
    wait_for("another leader", PATIENCE, || {
        ask(survivor, HASTY, &["show synchronous_standby_names"]) == "n9"
    })
    .expect("another leader");
    let waiting = begin(survivor, "insert into t values (6)");
    wait_until(survivor, "the commit to wait", WAITS);
    ask(
        survivor,
        HASTY,
        &[
            "alter system reset synchronous_standby_names",
            "select pg_reload_conf()",
        ],
    );
    assert_eq!(finish(waiting), "");
    // What became of it was waited for at its level, the named standby included.
    let said = finish(in_flight);
    assert!(
        said.contains("the outcome of the transaction is unknown"),
        "{said}"
    );
}

#[test]
fn standbys_show_what_was_waited_for_and_know_what_they_are() {
    let three = Three::start();
    let (leader, followers) = three.roles();
    let node = three.node(leader);
    ask(node, "", &["create table t(i int primary key)"]);
    configure(node, "synchronous_standby_names", "FIRST 2 (*)");
    for i in 0..10 {
        let insert = format!("insert into t values ({i})");
        ask(node, "-c synchronous_commit=remote_apply", &[&insert]);
        for follower in followers {
            let count = ask(
                three.node(follower),
                ON_STANDBY,
                &["select count(*) from t"],
            );
            assert_eq!(count, (i + 1).to_string(), "n{}", follower + 1);
        }
    }
    configure(node, "synchronous_standby_names", "");
    // No older than the question: whatever was acknowledged is there.
    for i in 10..20 {
        ask(node, "", &[&format!("insert into t values ({i})")]);
        for follower in followers {
            let options = "-c quorate.follower_reads=0ms";
            let count = ask(three.node(follower), options, &["select count(*) from t"]);
            assert_eq!(count, (i + 1).to_string(), "n{}", follower + 1);
        }
    }
    let standby = three.node(followers[0]);
    let state = "select pg_is_in_recovery(), current_setting('in_hot_standby'), \
        current_setting('transaction_read_only'), pg_last_wal_replay_lsn() >= '0/1', \
        pg_last_wal_receive_lsn() >= pg_last_wal_replay_lsn(), (select count(*) from pg_stat_wal_receiver)";
    assert_eq!(ask(standby, ON_STANDBY, &[state]), "t|on|on|t|t|1");
    assert_eq!(ask(standby, "", &[state]), "f|off|off|||0");
    for (statement, expected) in [
        (
            "insert into t values (99)",
            "ERROR:  cannot execute INSERT in a read-only transaction",
        ),
        (
            "select * from t for update",
            "ERROR:  cannot execute SELECT FOR UPDATE in a read-only transaction",
        ),
        (
            "drop sequence s",
            "ERROR:  cannot execute DROP SEQUENCE in a read-only transaction",
        ),
        ("vacuum t", "ERROR:  cannot execute VACUUM during recovery"),
        (
            "analyze t",
            "ERROR:  cannot execute ANALYZE during recovery",
        ),
        (
            "begin read write",
            "ERROR:  cannot set transaction read-write mode during recovery",
        ),
        (
            "begin isolation level serializable",
            "ERROR:  cannot use serializable mode in a hot standby",
        ),
        (
            "select pg_current_wal_lsn()",
            "ERROR:  recovery is in progress",
        ),
        (
            "select quorate.set_leader_zone('a')",
            "ERROR:  recovery is in progress",
        ),
        (
            "set quorate.follower_reads = off",
            "ERROR:  parameter \"quorate.follower_reads\" cannot be set after connection start",
        ),
    ] {
        let said = ask(standby, ON_STANDBY, &[statement]);
        assert_eq!(said.lines().next(), Some(expected), "{statement}");
    }
    // A checkpoint is one of the node where it is asked for.
    let made = "checkpoint; select checkpoint_lsn > '0/0' from quorate.storage";
    assert_eq!(ask(standby, ON_STANDBY, &[made]), "t");
    // Where a session is served is decided before it begins; how old its reads are is not.
    let change = "set quorate.follower_reads = '1min'; show quorate.follower_reads";
    assert_eq!(ask(standby, ON_STANDBY, &[change]), "1min");
    let said = ask(standby, "", &["set quorate.follower_reads = settled"]);
    assert!(
        said.contains("cannot be set after connection start"),
        "{said}"
    );
    // A role may always read where it connects.
    ask(
        node,
        "",
        &[
            "create role reader login superuser",
            "alter role reader set quorate.follower_reads = settled",
        ],
    );
    let as_reader = || {
        let mut psql = psql(standby, "", &["select pg_is_in_recovery()"]);
        let printed = output(psql.args(["-U", "reader"])).expect("psql");
        String::from_utf8_lossy(&printed.stdout).trim().to_owned()
    };
    wait_for("the role to be known on the standby", PATIENCE, || {
        as_reader() == "t"
    })
    .expect("a role");
    // libpq finds the node that it is told to find.
    let all = three.cluster.nodes();
    let hosts: Vec<_> = all.iter().map(|node| node.host.clone()).collect();
    let ports: Vec<_> = all.iter().map(|node| node.port.to_string()).collect();
    for (wanted, is_standby) in [
        ("any", None),
        ("read-write", Some("f")),
        ("primary", Some("f")),
        ("read-only", Some("t")),
        ("standby", Some("t")),
        ("prefer-standby", Some("t")),
    ] {
        let conninfo = format!(
            "host={} port={} dbname=postgres user=postgres target_session_attrs={wanted}",
            hosts.join(","),
            ports.join(",")
        );
        let mut psql = Command::new("psql");
        psql.args([
            "-X",
            "-A",
            "-t",
            "-c",
            "select pg_is_in_recovery()",
            &conninfo,
        ]);
        let printed = output(psql.env("PGOPTIONS", ON_STANDBY)).expect("psql");
        let found = String::from_utf8_lossy(&printed.stdout).trim().to_owned();
        if let Some(is_standby) = is_standby {
            assert_eq!(found, is_standby, "{wanted}");
        }
    }
}

#[test]
fn a_standby_session_outlives_the_leader() {
    let three = Three::start();
    let (leader, [follower, _]) = three.roles();
    ask(
        three.node(leader),
        "",
        &[
            "create table t(i int primary key)",
            "insert into t values (1)",
        ],
    );
    // One session: it reads, the leader dies, it reads again.
    let statements = [
        "select count(*) from t",
        "select pg_sleep(3)",
        "select count(*) from t",
    ];
    let mut reader = psql(three.node(follower), ON_STANDBY, &statements);
    reader.stdout(Stdio::piped()).stderr(Stdio::piped());
    let reader = reader.spawn().expect("psql starts");
    std::thread::sleep(Duration::from_secs(1));
    three.signal(leader, "KILL");
    assert_eq!(finish(reader), "1\n\n1");
}
