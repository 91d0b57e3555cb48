//! Nodes come, lead, and go, in clusters of real processes.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use lab::host::{output, run, wait_for, Endpoint, Process, PATIENCE};
use lab::quorate::{Cluster, Topology};

use crate::kill::program;
use crate::writers::{create_table, Writers};

/// Runs a command of the binary about a directory.
fn quorate(arguments: &[&str], data: &Path) -> String {
    let mut command = Command::new(program());
    run(command.args(arguments).arg("--data").arg(data)).expect("it does what it is asked")
}

/// Runs a command that must fail, and returns what it says.
fn refused(arguments: &[&str], data: &Path) -> String {
    let mut command = Command::new(program());
    let output = output(command.args(arguments).arg("--data").arg(data)).expect("it runs");
    assert!(!output.status.success(), "{arguments:?} succeeded");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn start(data: &Path, name: &str) -> Process {
    let mut command = Command::new(program());
    command.args(["start", "--data"]).arg(data.join(name));
    Process::start(&mut command, &data.join(name).join("process.log")).expect("it starts")
}

fn log_of(data: &Path, name: &str) -> String {
    lab::host::read_file(&data.join(name).join("node.log")).unwrap_or_default()
}

fn role(cluster: &Cluster, name: &str) -> String {
    let nodes = cluster.status().unwrap_or_default();
    let node = nodes.into_iter().find(|node| node.name == name);
    node.map(|node| node.role).unwrap_or_default()
}

fn wait_for_role(cluster: &Cluster, name: &str, expected: &str) {
    let what = format!("{name} to be {expected}");
    wait_for(&what, PATIENCE, || role(cluster, name) == expected).expect("its role");
}

fn at(cluster: &Cluster, name: &str) -> Endpoint {
    let nodes = cluster.status().expect("a status");
    let node = nodes
        .iter()
        .find(|node| node.name == name)
        .expect("the node");
    let (host, port) = node.sql_address.rsplit_once(':').expect("an address");
    Endpoint::at(host, port.parse().expect("a port"))
}

#[test]
fn nodes_are_added_lead_and_are_removed() {
    let dir = tempfile::tempdir().expect("a directory");
    let cluster = Cluster::start(program(), dir.path(), 1, &[]).expect("a node");
    let data = cluster.data().to_owned();
    let first = &cluster.nodes()[0];
    let fill = "create table t(i int primary key); insert into t select generate_series(1, 1000)";
    first.query(fill).expect("rows");

    assert!(quorate(&["node", "add"], &data).contains("n2 is a learner"));
    let second = start(&data, "n2");
    wait_for_role(&cluster, "n2", "learner");
    let error = refused(&["switchover", "n2"], &data);
    assert!(error.contains("learners never lead"), "{error}");
    quorate(&["node", "promote", "n2"], &data);
    wait_for_role(&cluster, "n2", "follower");
    let shown = first
        .query("select name, role, voter, connected from quorate.nodes order by node")
        .expect("nodes");
    assert_eq!(shown, "n1|leader|t|t\nn2|follower|t|t");
    let shown = first
        .query("select leader, voters, learners, incarnation, changing from quorate.groups")
        .expect("groups");
    assert_eq!(shown, "n1|2|0|1|f");

    assert_eq!(quorate(&["switchover", "n2"], &data).trim(), "n2 leads");
    assert_eq!(role(&cluster, "n2"), "leader");
    let count = first.query("select count(*) from t").expect("by way of n1");
    assert_eq!(count, "1000");
    // The old leader goes; the new one goes on alone.
    quorate(&["node", "remove", "n1"], &data);
    let second_sql = at(&cluster, "n2");
    second_sql.query("insert into t values (0)").expect("a row");
    let shown = second_sql
        .query("select string_agg(name, ',') from quorate.nodes")
        .expect("nodes");
    assert_eq!(shown, "n2");
    wait_for("n1 to stop", PATIENCE, || first.query("select 1").is_err()).expect("it stops");
    drop(second);
}

/// Rows of the log that a new node lacks, and how many characters of each cannot be compressed.
const LACKED_ROWS: u32 = 50_000;
const ROW_CHARACTERS: usize = 600;

/// How long nobody may commit while a node catches up, on a machine that does other things too.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// A file for COPY with as much log as would take a leader long to send at one time.
fn write_rows(path: &Path) {
    let mut state = 7_u64;
    let mut letter = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        char::from(b'a' + ((state >> 40) % 26) as u8)
    };
    let mut text = String::new();
    for row in 0..LACKED_ROWS {
        text.push_str(&format!("{row}\t"));
        text.extend((0..ROW_CHARACTERS).map(|_| letter()));
        text.push('\n');
    }
    std::fs::write(path, text).expect("a file");
}

#[test]
fn a_learner_that_catches_up_disturbs_nobody() {
    let dir = tempfile::tempdir().expect("a directory");
    let cluster = Cluster::start(program(), dir.path(), 3, &[]).expect("three nodes");
    let data = cluster.data().to_owned();
    let first = &cluster.nodes()[0];
    create_table(first);
    first
        .query("create table lacked(i int primary key, t text)")
        .expect("a table");
    let rows = dir.path().join("rows.copy");
    write_rows(&rows);
    first
        .query(&format!("\\copy lacked from '{}'", rows.display()))
        .expect("rows");
    let term = || {
        first
            .query("select term from quorate.groups")
            .expect("a term")
    };
    let before = term();
    let writers = Writers::start(cluster.nodes(), 4, dir.path());
    writers.wait_for_more(50, PATIENCE).expect("they write");
    let (mut learners, mut longest) = (Vec::new(), Duration::ZERO);
    for name in ["n4", "n5"] {
        std::thread::scope(|scope| {
            let added = scope.spawn(|| {
                quorate(&["node", "add"], &data);
                let process = start(&data, name);
                let has_all = || {
                    let nodes = cluster.status().unwrap_or_default();
                    let applied = |name: &str| {
                        let node = nodes.iter().find(|node| node.name == name);
                        node.and_then(|node| node.applied).unwrap_or(0)
                    };
                    let (there, here) = (applied("n1"), applied(name));
                    here > 0 && here + 1_000 > there
                };
                wait_for("it to catch up", PATIENCE, has_all).expect("it catches up");
                process
            });
            while !added.is_finished() {
                let pause = writers.wait_for_more(1, PAUSE_MAX * 5);
                longest = longest.max(pause.expect("writes go on"));
            }
            learners.push(added.join().expect("it was added"));
        });
    }
    println!("the longest pause while two nodes were added: {longest:?}");
    assert_eq!(term(), before, "there was an election");
    assert!(longest < PAUSE_MAX, "nobody committed for {longest:?}");
    writers.finish().check(first);
}

#[test]
fn members_change_in_sql_too() {
    let dir = tempfile::tempdir().expect("a directory");
    let topology = Topology {
        voters: 2,
        learners: 1,
    };
    let cluster = Cluster::start_as(program(), dir.path(), topology, &[]).expect("a cluster");
    let leader = cluster.leader().expect("a leader");
    let other = ["n2", "n1"][leader];
    let sql = &cluster.nodes()[2];
    sql.query("select quorate.promote_node('n3')")
        .expect("it votes");
    wait_for_role(&cluster, "n3", "follower");
    sql.query("select quorate.set_node('n3', 'far', 50)")
        .expect("it is set");
    let shown = sql.query("select zone, priority from quorate.nodes where name = 'n3'");
    assert_eq!(shown.expect("a row"), "far|50");
    let id = sql.query("select quorate.add_node('n9', '127.0.0.9:1', '127.0.0.9:2')");
    assert_eq!(id.expect("a number"), "4");
    sql.query("select quorate.remove_node('n9')")
        .expect("it is removed");
    for (statement, state) in [
        ("select quorate.promote_node('n9')", "does not exist"),
        ("select quorate.promote_node('n3')", "is a voter already"),
        ("select pg_promote()", "recovery is not in progress"),
    ] {
        let error = sql.query(statement).expect_err("it is refused").to_string();
        assert!(error.contains(state), "{error}");
    }
    let by_other = "create role weak; set role weak; select quorate.remove_node('n1')";
    let error = sql.query(by_other).expect_err("no superuser").to_string();
    assert!(
        error.contains("permission denied for function remove_node"),
        "{error}"
    );
    let to = sql.query(&format!("select quorate.switchover('{other}')"));
    assert_eq!(to.expect("it begins"), other);
    wait_for_role(&cluster, other, "leader");
}

#[test]
fn a_node_goes_on_alone_and_the_old_ones_stop() {
    let dir = tempfile::tempdir().expect("a directory");
    let topology = Topology {
        voters: 1,
        learners: 1,
    };
    let cluster = Cluster::start_as(program(), dir.path(), topology, &[]).expect("a cluster");
    let data = cluster.data().to_owned();
    let [first, second] = cluster.nodes() else {
        panic!("two nodes");
    };
    let both = "create table t(i int primary key); set synchronous_commit = remote_apply; \
                insert into t values (1)";
    first.query(both).expect("a row");
    wait_for("n2 to have it", PATIENCE, || {
        let nodes = cluster.status().unwrap_or_default();
        nodes.len() == 2 && nodes[0].applied == nodes[1].applied
    })
    .expect("replicas that are equal");
    let error = refused(&["promote", "n2", "--accept-data-loss"], &data);
    assert!(error.contains("leads the group, and answers"), "{error}");
    let pid = cluster.status().expect("a status")[0].pid.expect("it runs");
    lab::host::signal(pid, "KILL").expect("it runs");
    wait_for("n2 to miss n1", PATIENCE, || {
        let mut command = Command::new(program());
        command.args(["promote", "n2", "--accept-data-loss", "--data"]);
        let done = output(command.arg(&data)).expect("it runs");
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        done.status.success() && said.contains("n2 goes on alone from LSN")
    })
    .expect("it goes on");
    assert_eq!(
        second.query("select count(*) from t").expect("a count"),
        "1"
    );
    second.query("insert into t values (2)").expect("a row");

    let mut old = start(&data, "n1");
    old.wait().expect("it stops by itself");
    let said = log_of(&data, "n1");
    assert!(said.contains("goes on in incarnation 2"), "{said}");
    let count = second.query("select count(*) from t").expect("a count");
    assert_eq!(count, "2");
    // It comes back under another number.
    quorate(&["node", "add", "n3"], &data);
    let third = start(&data, "n3");
    quorate(&["node", "promote", "n3"], &data);
    wait_for_role(&cluster, "n3", "follower");
    drop(third);
}

#[test]
fn a_survivor_is_promoted_in_sql() {
    let dir = tempfile::tempdir().expect("a directory");
    let cluster = Cluster::start(program(), dir.path(), 3, &[]).expect("a cluster");
    let leader = cluster.leader().expect("a leader");
    let survivor = (leader + 1) % 3;
    let endpoint = &cluster.nodes()[survivor];
    let both = "create table t(i int primary key); set synchronous_commit = remote_apply; \
                insert into t values (1)";
    endpoint.query(both).expect("a row");
    let promote = || {
        let mut psql = endpoint.psql();
        psql.args(["-X", "-A", "-t", "-q", "-c", "select pg_promote()"]);
        psql.env("PGOPTIONS", "-c quorate.follower_reads=settled");
        let done = output(&mut psql).expect("psql runs");
        let said = [done.stdout, done.stderr].concat();
        String::from_utf8_lossy(&said).trim().to_owned()
    };
    let said = promote();
    assert!(said.contains("leads the group, and answers"), "{said}");
    wait_for("all to have it", PATIENCE, || {
        let nodes = cluster.status().unwrap_or_default();
        nodes
            .iter()
            .all(|node| node.applied == nodes[survivor].applied)
    })
    .expect("replicas that are equal");
    let status = cluster.status().expect("a status");
    for node in (0..3).filter(|node| *node != survivor) {
        let pid = status[node].pid.expect("it runs");
        lab::host::signal(pid, "KILL").expect("it runs");
    }
    wait_for("it to miss the leader", PATIENCE, || promote() == "t").expect("it goes on");
    let shown = endpoint.query("select count(*) from t").expect("a count");
    assert_eq!(shown, "1");
    // The last position that was left is told.
    let shown = endpoint
        .query("select leader, voters, incarnation, begun_after > '0/0' from quorate.groups")
        .expect("a group");
    assert_eq!(shown, format!("n{}|1|2|t", survivor + 1));
    let mut old = start(cluster.data(), &format!("n{}", leader + 1));
    old.wait().expect("it stops by itself");
}

#[test]
fn a_node_without_its_data_does_not_come_back_under_its_number() {
    let dir = tempfile::tempdir().expect("a directory");
    let cluster = Cluster::start(program(), dir.path(), 1, &[]).expect("a node");
    let data = cluster.data().to_owned();
    drop(cluster);
    std::fs::remove_dir_all(data.join("n1/group1")).expect("it is wiped");
    let error = refused(&["start"], &data.join("n1"));
    assert!(error.contains("the data of n1"), "{error}");
    assert!(error.contains("quorate node add n1"), "{error}");
}
