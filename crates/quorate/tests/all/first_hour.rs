//! What somebody meets who tries Quorate out: how a cluster is, directories that are taken, a lost
//! majority, memory, and where the log is. With real processes.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use lab::host::{free_port, has_ended, output, signal, wait_for, Endpoint, Process, PATIENCE};
use lab::quorate::{Cluster, Topology, ADDRESSES};
use lab::real::cgroup::MemoryGroup;
use node::real::host::{http_get, memory_bytes};

use crate::kill::program;

/// A client must be told within this that there is no majority.
const REFUSED_WITHIN: Duration = Duration::from_secs(1);

fn quorate(arguments: &[&str], data: &Path) -> Output {
    let mut command = Command::new(program());
    output(command.args(arguments).arg("--data").arg(data)).expect("it runs")
}

/// The first line of `quorate status`, and what it ended with.
fn status(data: &Path) -> (String, Option<i32>) {
    let done = quorate(&["status"], data);
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    let first = said.lines().next().unwrap_or_default();
    (first.to_owned(), done.status.code())
}

fn wait_for_status(data: &Path, expected: &str, code: i32) {
    let mut last = status(data);
    let waited = wait_for(expected, PATIENCE, || {
        last = status(data);
        last == (expected.to_owned(), Some(code))
    });
    waited.unwrap_or_else(|error| panic!("{error}: it is {last:?}"));
}

fn json(data: &Path) -> serde_json::Value {
    let done = quorate(&["status", "--json"], data);
    serde_json::from_slice(&done.stdout).expect("JSON")
}

fn three() -> (tempfile::TempDir, Cluster) {
    let dir = tempfile::tempdir().expect("a directory");
    let cluster = Cluster::start(program(), dir.path(), 3, &[]).expect("a cluster");
    (dir, cluster)
}

fn kill(cluster: &Cluster, node: usize) {
    let pid = cluster.pid(node).expect("it runs");
    signal(pid, "KILL").expect("it is killed");
    wait_for("its end", PATIENCE, || has_ended(pid)).expect("it ends");
}

/// The leader, and the others in order.
fn roles(cluster: &Cluster) -> (usize, [usize; 2]) {
    let leader = cluster.leader().expect("a leader");
    let mut others = (0..3).filter(|node| *node != leader);
    let mut next = || others.next().expect("three nodes");
    (leader, [next(), next()])
}

fn name(node: usize) -> String {
    format!("n{}", node + 1)
}

fn node_log(dir: &Path) -> String {
    fs::read_to_string(dir.join("node.log")).unwrap_or_default()
}

/// `quorate up` with a port of its own, whose output can be read.
fn up(data: &Path, more: &[&str]) -> Child {
    let port = free_port(&ADDRESSES).expect("a port").to_string();
    let http = free_port(&ADDRESSES).expect("a port").to_string();
    let mut command = Command::new(program());
    command
        .args(["up", "--port", &port, "--http-port", &http])
        .args(more)
        .arg("--data")
        .arg(data)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().expect("it starts")
}

/// Reads what `up` prints until it is ready.
fn wait_until_ready(up: &mut Child) -> Vec<String> {
    let out = up.stdout.as_mut().expect("its output");
    let mut lines = Vec::new();
    for line in BufReader::new(out).lines() {
        lines.push(line.expect("a line"));
        if lines.last().is_some_and(|line| line.starts_with("Ctrl-C")) {
            return lines;
        }
    }
    let _ = up.wait();
    panic!("it is not ready: {lines:?}");
}

fn pid_of(dir: &Path) -> u32 {
    let text = fs::read_to_string(dir.join("lock")).expect("a lock");
    text.trim().parse().expect("a process id")
}

// ---- How a cluster is ----

#[test]
fn status_says_first_how_the_cluster_is_and_ends_with_it() {
    let (_dir, mut cluster) = three();
    let data = cluster.data().to_owned();
    wait_for_status(&data, "healthy", 0);
    let (_, [first, second]) = roles(&cluster);
    kill(&cluster, first);
    wait_for_status(&data, &format!("degraded: {} is down", name(first)), 1);
    let shown = json(&data);
    assert_eq!(shown["health"], "degraded");
    assert_eq!(
        shown["summary"],
        format!("degraded: {} is down", name(first))
    );
    assert_eq!(shown["exit_code"], 1);
    // One that stands still is there, and silent.
    let frozen = cluster.pid(second).expect("it runs");
    signal(frozen, "STOP").expect("it runs");
    let mut absent = [(first, "down"), (second, "silent")];
    let [one, other] = absent.map(|(node, how)| format!("{} is {how}", name(node)));
    wait_for_status(&data, &format!("no majority: {one}, {other}"), 2);
    signal(frozen, "CONT").expect("it runs");
    wait_for_status(&data, &format!("degraded: {one}"), 1);
    kill(&cluster, second);
    absent.sort_unstable();
    let [one, other] = absent.map(|(node, _)| name(node));
    wait_for_status(&data, &format!("no majority: {one}, {other} are down"), 2);
    let leader = 3 - first - second;
    let health = json(&data)["nodes"][leader].clone();
    assert_eq!(health["role"], "follower", "{health}");
    kill(&cluster, leader);
    wait_for_status(&data, "nothing runs: n1, n2, n3 are down", 3);
    assert_eq!(
        quorate(&["status"], &data.join("no")).status.code(),
        Some(4)
    );
    cluster
        .process_mut()
        .wait()
        .expect("up ends with its last node");
}

#[test]
fn a_standby_that_is_given_up_is_shown_as_that() {
    let (_dir, cluster) = three();
    let (leader, [away, _]) = roles(&cluster);
    let (node, name) = (&cluster.nodes()[leader], name(away));
    node.query("create table t(i int primary key)")
        .expect("a table");
    let set = |setting: &str, value: &str| {
        let set = format!("alter system set {setting} = '{value}'");
        let mut psql = node.psql();
        psql.env("PGOPTIONS", "-c synchronous_commit=local");
        psql.args(["-c", &set, "-c", "select pg_reload_conf()"]);
        lab::host::run(&mut psql).expect("it is set");
    };
    set("synchronous_standby_names", &format!("FIRST 1 ({name})"));
    wait_for_status(cluster.data(), "healthy", 0);
    let frozen = cluster.pid(away).expect("it runs");
    signal(frozen, "STOP").expect("it runs");
    let waits = format!(
        "writes wait: too few of synchronous_standby_names (FIRST 1 ({name})) are connected; \
         {name} is silent"
    );
    wait_for_status(cluster.data(), &waits, 2);
    set("quorate.standby_timeout", "500ms");
    node.query("insert into t values (1)")
        .expect("it is given up");
    let shown = "select sync_state, state from pg_stat_replication where application_name = ";
    let mut psql = node.psql();
    psql.env("PGOPTIONS", "-c synchronous_commit=local");
    let shown = lab::host::run(psql.args(["-c", &format!("{shown}'{name}'")])).expect("a row");
    assert_eq!(shown.trim(), "given up|silent");
    let degraded = format!("degraded: {name} is silent, {name} is given up");
    wait_for_status(cluster.data(), &degraded, 1);
    assert_eq!(
        json(cluster.data())["nodes"][away]["sync_state"],
        "given up"
    );
    let http = cluster.http_address(leader).expect("an address");
    let health = http_get(http, "/health", REFUSED_WITHIN).expect("it serves clients");
    assert_eq!(
        health,
        format!("{{\"health\":\"degraded: {name} given up\"}}")
    );
    signal(frozen, "CONT").expect("it runs");
    wait_for_status(cluster.data(), "healthy", 0);
    let health = http_get(http, "/health", REFUSED_WITHIN).expect("it serves clients");
    assert_eq!(health, "{\"health\":\"ok\"}");
}

// ---- Directories ----

fn refused(arguments: &[&str], data: &Path) -> String {
    let done = quorate(arguments, data);
    assert!(!done.status.success(), "{arguments:?} succeeded");
    String::from_utf8_lossy(&done.stderr).into_owned()
}

fn assert_says(said: &str, expected: &str) {
    assert!(
        said.contains(expected),
        "{said:?} does not say {expected:?}"
    );
}

fn names(dir: &Path) -> Vec<String> {
    lab::host::read_names(dir).expect("it can be read")
}

#[test]
fn a_directory_of_something_else_is_left_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("passwd"), "root").expect("it is written");
    assert_says(
        &refused(&["up"], dir.path()),
        "is not empty, and no cluster's directory",
    );
    assert_eq!(names(dir.path()), ["passwd"]);
    let password = dir.path().join("passwd").display().to_string();
    let init = [
        "init",
        "--node",
        "n1=192.0.2.1",
        "--password-file",
        &password,
    ];
    assert_says(&refused(&init, dir.path()), "is not empty");
    assert_eq!(names(dir.path()), ["passwd"]);
    assert_says(&refused(&["start"], dir.path()), "is no node's directory");
    assert_eq!(names(dir.path()), ["passwd"]);
    // An empty one will do, also one whose first file was not finished, or with rules of access.
    fs::remove_file(dir.path().join("passwd")).expect("it is there");
    fs::create_dir(dir.path().join("n1")).expect("a directory");
    fs::write(dir.path().join("n1/notes"), "").expect("it is written");
    assert_says(&refused(&["up"], dir.path()), "is not empty");
    fs::remove_file(dir.path().join("n1/notes")).expect("it is there");
    fs::write(
        dir.path().join("n1/pg_hba.conf"),
        "host all all all trust\n",
    )
    .expect("rules");
    fs::write(dir.path().join("cluster.json.new"), "{").expect("it is written");
    let mut up = up(dir.path(), &["--voters", "1"]);
    wait_until_ready(&mut up);
    assert_says(
        &refused(&["up"], &dir.path().join("n1")),
        "is the directory of one node",
    );
    signal(up.id(), "INT").expect("it runs");
    assert!(up.wait().expect("it ends").success());
}

#[test]
fn nodes_that_do_not_belong_there_are_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let [ours, theirs] = ["ours", "theirs"].map(|name| {
        let data = dir.path().join(name);
        let mut up = up(&data, &["--voters", "2"]);
        wait_until_ready(&mut up);
        signal(up.id(), "INT").expect("it runs");
        assert!(up.wait().expect("it ends").success());
        data
    });
    let copy = |from: &Path, to: &Path| {
        let mut command = Command::new("cp");
        lab::host::run(command.arg("-a").args([from, to])).expect("it is copied");
    };
    // The same node twice.
    copy(&ours.join("n1"), &ours.join("n4"));
    let said = refused(&["start"], &ours.join("n4"));
    assert_says(&said, "has a copy of n1");
    fs::remove_dir_all(ours.join("n4")).expect("it is there");
    // A node of another cluster.
    fs::rename(ours.join("n2"), dir.path().join("kept")).expect("it is there");
    copy(&theirs.join("n2"), &ours.join("n2"));
    for (arguments, at) in [("start", ours.join("n2")), ("up", ours.clone())] {
        let said = refused(&[arguments], &at);
        assert_says(&said, "and is in the directory of cluster");
    }
    // Something else, and another node of this one.
    fs::remove_file(ours.join("n2/node.json")).expect("it is there");
    assert_says(&refused(&["up"], &ours), "not the directory of n2");
    fs::remove_dir_all(ours.join("n2")).expect("it is there");
    copy(&ours.join("n1"), &ours.join("n2"));
    assert_says(
        &refused(&["up"], &ours),
        "is the directory of n1, not of n2",
    );
    fs::remove_dir_all(ours.join("n2")).expect("it is there");
    fs::rename(dir.path().join("kept"), ours.join("n2")).expect("it is there");
    // One that has the address of another.
    let path = ours.join("n2/node.json");
    let text = fs::read_to_string(&path).expect("a file");
    let mut file: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    file["nodes"][1]["sql_address"] = file["nodes"][0]["sql_address"].clone();
    fs::write(&path, file.to_string()).expect("it is written");
    let said = refused(&["start"], &ours.join("n2"));
    assert_says(&said, "n2 and n1 have the same address, 127.0.0.1:");
    fs::write(&path, text).expect("it is written");
    let port = free_port(&ADDRESSES).expect("a port").to_string();
    let same = ["up", "--port", &port, "--http-port", &port];
    assert_says(&refused(&same, &ours), "n1 has the address");
    assert_says(
        &refused(&same, &dir.path().join("new")),
        "n1 has the address",
    );
    // What was refused has changed nothing.
    let mut again = up(&ours, &[]);
    wait_until_ready(&mut again);
    let shown = json(&ours);
    let taken = shown["nodes"][0]["sql_address"]
        .as_str()
        .expect("an address");
    for more in [["--sql-address", taken], ["--http-address", taken]] {
        let add = [&["node", "add"], &more[..]].concat();
        assert_says(&refused(&add, &ours), "address");
    }
    assert_eq!(names(&ours), ["cluster.json", "n1", "n2"]);
    signal(again.id(), "INT").expect("it runs");
    assert!(again.wait().expect("it ends").success());
}

#[test]
fn up_ends_with_its_last_node() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let mut first = up(&data, &["--voters", "2"]);
    wait_until_ready(&mut first);
    let [one, other] = ["n1", "n2"].map(|name| pid_of(&data.join(name)));
    signal(one, "KILL").expect("it runs");
    wait_for("its end", PATIENCE, || has_ended(one)).expect("it ends");
    // Brought back by hand it is one more that runs.
    let mut command = Command::new(program());
    command.args(["start", "--data"]).arg(data.join("n1"));
    let back = Process::start(&mut command, &dir.path().join("back.log")).expect("it starts");
    wait_for_status(&data, "healthy", 0);
    signal(other, "KILL").expect("it runs");
    wait_for("its end", PATIENCE, || has_ended(other)).expect("it ends");
    std::thread::sleep(Duration::from_millis(300));
    assert!(matches!(first.try_wait(), Ok(None)), "n1 runs");
    back.signal("KILL").expect("it runs");
    let mut ended = None;
    wait_for("up to end", PATIENCE, || {
        ended = first.try_wait().expect("it can be asked");
        ended.is_some()
    })
    .expect("it ends");
    assert_eq!(ended.and_then(|status| status.code()), Some(1));
    let said = first.wait_with_output().expect("its output").stderr;
    let said = String::from_utf8_lossy(&said);
    assert_says(&said, "no node runs any more; n2 was the last: signal: 9");
    drop(back);
    // In order is no error.
    let mut again = up(&data, &[]);
    wait_until_ready(&mut again);
    let stopped = quorate(&["stop"], &data);
    assert!(stopped.status.success(), "{stopped:?}");
    assert!(again.wait().expect("it ends").success());
}

// ---- Without a majority ----

/// How long a connection takes to be refused, and what is said.
fn refusal(at: &Endpoint) -> (Duration, String) {
    let begun = Instant::now();
    let done = output(at.psql().args(["-c", "select 1"])).expect("psql runs");
    assert!(!done.status.success(), "{done:?}");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    (begun.elapsed(), said)
}

fn read_with_age(at: &Endpoint, age: &str) -> Output {
    let mut psql = at.psql();
    psql.env("PGOPTIONS", format!("-c quorate.follower_reads={age}"));
    output(psql.args(["-c", "select count(*) from t"])).expect("psql runs")
}

#[test]
fn without_a_majority_clients_are_told_at_once_and_old_reads_go_on() {
    for survivor_leads in [true, false] {
        let (_dir, cluster) = three();
        let (leader, [first, _]) = roles(&cluster);
        let survivor = if survivor_leads { leader } else { first };
        let node = &cluster.nodes()[survivor];
        let fill = "create table t(i int primary key); insert into t values (1), (2)";
        node.query(fill).expect("rows");
        // A follower learns how new its data is by being asked.
        let fresh = read_with_age(node, "10s");
        assert!(fresh.status.success(), "{fresh:?}");
        let others = (0..3).filter(|node| *node != survivor);
        let others: Vec<usize> = others.collect();
        others.iter().for_each(|node| kill(&cluster, *node));
        let absent: Vec<_> = others.iter().map(|node| name(*node)).collect();
        let expected = format!("no majority: {} are down", absent.join(", "));
        wait_for_status(cluster.data(), &expected, 2);
        // The fastest of some, because others use this machine too.
        let told: Vec<_> = (0..3).map(|_| refusal(node)).collect();
        let fastest = told.iter().map(|(took, _)| *took).min();
        assert!(
            fastest.is_some_and(|took| took < REFUSED_WITHIN),
            "{told:?}"
        );
        for (_, said) in &told {
            assert_says(said, "the database system is not accepting connections");
            let hint = format!("HINT:  {} hears nothing of {} (", name(survivor), absent[0]);
            assert_says(said, &hint);
            assert_says(said, &format!(", {} (", absent[1]));
        }
        let client = crate::writers::connect(node).map(drop);
        let error = client.expect_err("nobody leads");
        assert_eq!(
            error.code().map(|state| state.code()),
            Some("57P03"),
            "{error}"
        );
        for age in ["10min", "settled"] {
            let read = read_with_age(node, age);
            let said = String::from_utf8_lossy(&read.stdout).into_owned();
            assert_eq!(said.trim(), "2", "{age}, leads: {survivor_leads}: {read:?}");
        }
        let read = read_with_age(node, "200ms");
        let said = String::from_utf8_lossy(&read.stderr).into_owned();
        assert_says(&said, "does not say how old the data of this standby is");
    }
}

/// A learner elects nobody, so it is told by nobody that the only voter is gone.
#[test]
fn a_learner_whose_voter_stands_still_tells_clients_so() {
    let dir = tempfile::tempdir().expect("a directory");
    let topology = Topology {
        voters: 1,
        learners: 1,
    };
    let cluster = Cluster::start_as(program(), dir.path(), topology, &[]).expect("a cluster");
    let voter = cluster.pid(0).expect("it runs");
    signal(voter, "STOP").expect("it runs");
    wait_for_status(cluster.data(), "no majority: n1 is silent", 2);
    let told: Vec<_> = (0..3).map(|_| refusal(&cluster.nodes()[1])).collect();
    let fastest = told.iter().map(|(took, _)| *took).min();
    assert!(
        fastest.is_some_and(|took| took < REFUSED_WITHIN),
        "{told:?}"
    );
    assert_says(&told[0].1, "HINT:  n2 hears nothing of n1 (127.0.0.1:");
    signal(voter, "CONT").expect("it runs");
    wait_for_status(cluster.data(), "healthy", 0);
    let answer = cluster.nodes()[1].query("select 1").expect("an answer");
    assert_eq!(answer, "1");
}

#[test]
fn without_a_majority_nodes_stop_when_they_are_told_to() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let mut up = up(&data, &[]);
    let welcome = wait_until_ready(&mut up);
    let line = welcome
        .iter()
        .find(|line| line.contains("psql -h 127.0.0.1"));
    let port = line.and_then(|line| line.split(' ').rev().nth(1)?.parse().ok());
    let nodes = ADDRESSES.map(|host| Endpoint::at(host, port.expect("a port")));
    let shown = json(&data);
    let all = shown["nodes"].as_array().expect("nodes");
    let leads = all
        .iter()
        .position(|node| node["role"] == "leader")
        .expect("a leader");
    nodes[leads]
        .query("create table t(i int primary key)")
        .expect("a table");
    let frozen: Vec<u32> = (0..3)
        .filter(|node| *node != leads)
        .map(|node| pid_of(&data.join(name(node))))
        .collect();
    for pid in &frozen {
        signal(*pid, "STOP").expect("it runs");
    }
    // One that waits for its commit, and one that has nothing to wait for.
    let waiting = || {
        let mut psql = nodes[leads].psql();
        psql.args(["-c", "insert into t values (1)"]);
        psql.stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        psql.spawn().expect("psql starts")
    };
    let mut clients = [waiting(), waiting()];
    std::thread::sleep(Duration::from_millis(100));
    let node = pid_of(&data.join(name(leads)));
    let begun = Instant::now();
    signal(node, "TERM").expect("it runs");
    wait_for("the node to stop", PATIENCE, || has_ended(node)).expect("it stops");
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(4), "the node took {took:?}");
    for client in &mut clients {
        client.wait().expect("psql ends");
    }
    // Those that are frozen are told as well, and not waited for very long.
    let begun = Instant::now();
    signal(up.id(), "INT").expect("it runs");
    let ended = up.wait().expect("it ends");
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(8), "up took {took:?}");
    assert!(ended.success() && ended.signal().is_none(), "{ended:?}");
    assert!(frozen.iter().all(|pid| has_ended(*pid)));
}

// ---- Memory ----

/// A size as SHOW prints it.
fn megabytes(shown: &str) -> u64 {
    let digits: String = shown.chars().take_while(char::is_ascii_digit).collect();
    let number: u64 = digits.parse().expect("a number");
    match &shown[digits.len()..] {
        "kB" => number >> 10,
        "MB" => number,
        "GB" => number << 10,
        other => panic!("{other}"),
    }
}

#[test]
fn nodes_of_one_machine_share_its_memory() {
    let limit = 1_200 << 20;
    let group = MemoryGroup::limited_to(limit).ok();
    let memory = match group {
        Some(_) => limit,
        None => memory_bytes().expect("the machine says"),
    };
    let dir = tempfile::tempdir().expect("a directory");
    let topology = Topology::voters(3);
    let cluster = Cluster::launch(program(), dir.path(), topology, &[], false, group.as_ref());
    let cluster = cluster.expect("a cluster");
    let share = (memory / 3) >> 20;
    for node in 0..3 {
        let show = |setting: &str| {
            let mut psql = cluster.nodes()[node].psql();
            psql.env("PGOPTIONS", "-c quorate.follower_reads=settled");
            let shown = lab::host::run(psql.args(["-c", &format!("show {setting}")]));
            shown.expect("a setting").trim().to_owned()
        };
        let (buffers, query) = (show("shared_buffers"), show("quorate.query_mem"));
        assert!(
            megabytes(&buffers).abs_diff(share / 4) <= 1,
            "{buffers} of {share} MB"
        );
        let expected = (share / 8).min(2_048);
        assert!(
            megabytes(&query).abs_diff(expected) <= 1,
            "{query} of {share} MB"
        );
        let log = node_log(&cluster.node_dir(node));
        let said = format!(
            "takes, of {} MB of memory for 3 nodes: shared_buffers = ",
            memory >> 20
        );
        assert_says(&log, &said);
        assert_says(&log, ", quorate.query_mem = ");
    }
    drop(cluster);
    drop(group);
}

// ---- The log ----

#[test]
fn a_nodes_log_is_in_its_directory_whoever_starts_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let mut up = up(&data, &["--voters", "1"]);
    wait_until_ready(&mut up);
    signal(up.id(), "INT").expect("it runs");
    assert!(up.wait().expect("it ends").success());
    let node = data.join("n1");
    let takes = "takes clients at 127.0.0.1:";
    assert_eq!(node_log(&node).matches(takes).count(), 1);

    // By hand: the log goes on there, and the terminal is told.
    let start = |more: &[&Path], name: &str| -> (Process, PathBuf) {
        let said = dir.path().join(name);
        let mut command = Command::new(program());
        command.args(["start", "--data"]).arg(&node).args(more);
        (
            Process::start(&mut command, &said).expect("it starts"),
            said,
        )
    };
    let wait_for_text = |path: &Path, text: &str| {
        let is_there = || fs::read_to_string(path).is_ok_and(|said| said.contains(text));
        wait_for(text, PATIENCE, is_there).expect("it says so");
    };
    let (process, said) = start(&[], "hand.out");
    wait_for_text(&said, takes);
    wait_for_text(
        &said,
        &format!("its log is {}", node.join("node.log").display()),
    );
    // The log's own thread writes it, a little after the terminal was told.
    let logged_twice = || node_log(&node).matches(takes).count() == 2;
    wait_for("a second start in the log", PATIENCE, logged_twice).expect("it is logged");
    let begun = node_log(&node);
    // One more does not start, says why, and leaves the first alone.
    let error = refused(&["start"], &node);
    assert_says(&error, "runs on");
    assert_says(&node_log(&node)[begun.len()..], "runs on");
    // A log that was moved away is begun anew when files are read anew.
    fs::rename(node.join("node.log"), node.join("node.log.1")).expect("it is there");
    process.signal("HUP").expect("it runs");
    wait_for_text(&node.join("node.log"), "read the rules of access");
    drop(process);
    assert_says(&node_log(&node), "stopped");
    assert!(!fs::read_to_string(&said)
        .expect("a file")
        .contains("told to stop"));

    // Elsewhere, if it is said.
    let elsewhere = dir.path().join("elsewhere.log");
    let (process, said) = start(&[Path::new("--log"), &elsewhere], "elsewhere.out");
    wait_for_text(&elsewhere, takes);
    wait_for_text(&said, takes);
    drop(process);
    let before = node_log(&node);
    let (process, said) = start(&[Path::new("--log"), Path::new("-")], "terminal.out");
    wait_for_text(&said, &format!("LOG: n1 {takes}"));
    drop(process);
    assert_eq!(node_log(&node), before);
}
