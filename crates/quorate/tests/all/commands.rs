//! What the commands say when they cannot do what they were asked to.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use lab::host::{free_port, output, run, wait_for, PATIENCE};
use lab::quorate::{Cluster, Topology, ADDRESSES};

use crate::kill::program;

/// Runs the binary, which must fail, and returns what it says.
fn failure(arguments: &[&str], dir: &Path) -> String {
    let mut command = Command::new(program());
    command.args(arguments);
    if arguments[0] != "check" {
        command.arg("--data");
    }
    let output = output(command.arg(dir)).expect("it runs");
    assert!(!output.status.success(), "{arguments:?} succeeded");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!said.contains("panicked"), "{said}");
    said
}

fn assert_says(said: &str, expected: &str) {
    assert!(
        said.contains(expected),
        "{said:?} does not say {expected:?}"
    );
}

#[test]
fn a_directory_of_something_else_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    for command in ["status", "stop"] {
        assert_says(&failure(&[command], dir.path()), "no directory of Quorate");
    }
    assert_says(&failure(&["start"], dir.path()), "no node's directory");
}

#[test]
fn a_damaged_or_foreign_directory_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let cluster = dir.path().join("cluster.json");
    fs::write(&cluster, "{\"format\": 2, \"clus").expect("it is written");
    for command in ["status", "up"] {
        assert_says(&failure(&[command], dir.path()), "is damaged");
    }
    fs::write(&cluster, "{\"format\": 99}").expect("it is written");
    for command in ["status", "up"] {
        let said = failure(&[command], dir.path());
        assert_says(
            &said,
            "is of format 99, and this version of Quorate knows formats 2 to 18",
        );
    }
}

#[test]
fn bad_options_of_up_are_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let port = free_port(&ADDRESSES).expect("a free port").to_string();
    let up = |more: &[&str]| failure(&[&["up", "--port", &port], more].concat(), &data);
    assert_says(&up(&["--nodes", "0"]), "--voters is a number from 1 to 9");
    assert_says(&up(&["-c", "max_connections"]), "name=value");
    assert_says(
        &up(&["-c", "max_connections=many"]),
        "invalid value for parameter \"max_connections\": \"many\"",
    );
    assert_says(
        &up(&["-c", "no_such_setting=1"]),
        "unrecognized configuration parameter \"no_such_setting\"",
    );
}

#[test]
fn a_port_in_use_is_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("its number").port();
    let said = failure(
        &["up", "--port", &port.to_string()],
        &dir.path().join("data"),
    );
    assert_says(&said, &format!("port {port} of 127.0.0.1 is in use"));
}

#[test]
fn a_directory_is_served_by_one_node() {
    let dir = tempfile::tempdir().expect("a directory");
    let cluster = Cluster::start(program(), dir.path(), 1, &[]).expect("a node");
    let pid = cluster.status().expect("a status")[0].pid.expect("it runs");
    let said = failure(&["start"], &cluster.data().join("n1"));
    assert_says(&said, &format!("another node (process {pid}) runs on"));
    let said = failure(&["up"], cluster.data());
    assert_says(&said, &format!("runs already (process {pid})"));
    let said = failure(&["check"], cluster.data());
    assert_says(&said, &format!("n1: it runs (process {pid})"));
}

#[test]
fn a_cluster_keeps_its_nodes_and_its_data() {
    let dir = tempfile::tempdir().expect("a directory");
    let cluster = Cluster::start(program(), dir.path(), 1, &[]).expect("a node");
    let node = &cluster.nodes()[0];
    node.query("create table kept(i int primary key)")
        .expect("a table");
    node.query("insert into kept values (7)").expect("a row");
    let data = cluster.data().to_owned();
    drop(cluster);

    assert_says(
        &failure(&["up", "--nodes", "3"], &data),
        "has 1 voter already",
    );
    let checked = run(Command::new(program()).arg("check").arg(&data)).expect("it is sound");
    assert_says(&checked, "n1: sound");
    let cluster = Cluster::start(program(), dir.path(), 1, &[]).expect("the node again");
    let kept = cluster.nodes()[0]
        .query("select i from kept")
        .expect("a row");
    assert_eq!(kept, "7");
}

/// Every topology of the articles that is not three voters: who leads, who follows, who learns, and
/// that what is committed at the highest level is on all of them.
#[test]
fn clusters_have_the_shape_that_was_asked_for() {
    for (voters, learners) in [(1, 2), (3, 1), (5, 0)] {
        let dir = tempfile::tempdir().expect("a directory");
        let topology = Topology { voters, learners };
        let cluster = Cluster::start_as(program(), dir.path(), topology, &[]).expect("a cluster");
        let leader = cluster.leader().expect("a leader");
        assert!(leader < voters, "learners never lead");
        let all = "create table t(i int primary key); set synchronous_commit = remote_apply; \
                   insert into t values (1)";
        cluster.nodes()[voters + learners - 1]
            .query(all)
            .expect("a row by way of the last node");
        wait_for("all to have everything", PATIENCE, || {
            let nodes = cluster.status().unwrap_or_default();
            let applied: Vec<_> = nodes.iter().map(|node| node.applied).collect();
            applied
                .iter()
                .all(|lsn| lsn.is_some() && *lsn == applied[0])
        })
        .expect("replicas that are equal");
        let roles: Vec<_> = cluster
            .status()
            .expect("a status")
            .into_iter()
            .map(|node| node.role)
            .collect();
        let count = |role: &str| roles.iter().filter(|one| *one == role).count();
        let counts = (count("leader"), count("follower"), count("learner"));
        assert_eq!(counts, (1, voters - 1, learners), "{roles:?}");
    }
}
