//! Nodes that come back with an older or a shorter history than they had: what they would break is
//! noticed before it is spread, and what was acknowledged is there as long as anybody has it.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use lab::host::{output, run, wait_for, Endpoint, Process, PATIENCE};
use lab::quorate::Cluster;

use crate::kill::program;

/// Two of three that lead nobody for so long will not by themselves.
const NOBODY_LEADS: Duration = Duration::from_secs(3);

/// Three nodes, each a process of its own.
struct Trio {
    data: PathBuf,
    nodes: Vec<Endpoint>,
    running: [Option<Process>; 3],
    _dir: tempfile::TempDir,
}

impl Trio {
    /// A stopped cluster with a table and a row.
    fn new() -> Trio {
        Trio::with(&[])
    }

    /// The same, with settings.
    fn with(settings: &[&str]) -> Trio {
        let dir = tempfile::tempdir().expect("a directory");
        let mut cluster = Cluster::start(program(), dir.path(), 3, settings).expect("a cluster");
        cluster.nodes()[0]
            .query("create table held(k int primary key)")
            .expect("a table");
        cluster.nodes()[0]
            .query("insert into held values (0)")
            .expect("a row");
        let (data, nodes) = (cluster.data().to_owned(), cluster.nodes().to_vec());
        cluster.process_mut().signal("TERM").expect("it runs");
        cluster.process_mut().wait().expect("it stops");
        Trio {
            data,
            nodes,
            running: [None, None, None],
            _dir: dir,
        }
    }

    fn dir(&self, node: usize) -> PathBuf {
        self.data.join(format!("n{}", node + 1))
    }

    fn start(&mut self, nodes: &[usize]) {
        for node in nodes {
            let mut command = Command::new(program());
            command.args(["start", "--data"]).arg(self.dir(*node));
            let said = self.data.join(format!("said{}", node + 1));
            let process = Process::start(&mut command, &said).expect("it starts");
            self.running[*node] = Some(process);
        }
    }

    /// In order, unless it is killed.
    fn end(&mut self, node: usize, how: &str) {
        let mut process = self.running[node].take().expect("it runs");
        process.signal(how).expect("it is told");
        let _ = process.wait();
    }

    /// Waits until a node has ended by itself, and says with which words.
    fn last_words(&mut self, node: usize) -> String {
        let mut process = self.running[node].take().expect("it was started");
        let ended = process.wait();
        let said = fs::read_to_string(self.data.join(format!("said{}", node + 1)));
        let said = said.unwrap_or_default() + &self.log(node);
        ended.unwrap_or_else(|_| panic!("it runs: {said}"));
        said
    }

    fn log(&self, node: usize) -> String {
        fs::read_to_string(self.dir(node).join("node.log")).unwrap_or_default()
    }

    fn insert(&self, node: usize, k: u32) {
        let insert = format!("insert into held values ({k})");
        wait_for("a row", PATIENCE, || {
            self.nodes[node].query(&insert).is_ok()
        })
        .expect("a row");
    }

    fn assert_nobody_leads(&self, node: usize) {
        std::thread::sleep(NOBODY_LEADS);
        let answer = self.nodes[node].query("select count(*) from held");
        assert!(answer.is_err(), "it answers: {answer:?}");
    }

    fn assert_holds(&self, node: usize, expected: &str) {
        let select = "select string_agg(k::text, ',' order by k) from held";
        let mut found = String::new();
        let found_it = wait_for("the rows", PATIENCE, || {
            found = self.nodes[node].query(select).unwrap_or_default();
            found == expected
        });
        found_it.unwrap_or_else(|_| panic!("{found}, not {expected}"));
    }

    /// What `quorate check` prints of all nodes, and what it complains of.
    fn check(&self) -> (String, String) {
        check(&[&self.data])
    }

    fn quorate(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(program());
        let command = command.args(arguments).arg("--data").arg(&self.data);
        run(command).expect("it does what it is asked")
    }

    /// Brings a node back without its history, and waits until it votes and has everything.
    fn rejoin(&mut self, node: usize, expected: &str) {
        let name = format!("n{}", node + 1);
        let said = self.quorate(&["node", "rejoin", &name, "--discard-history"]);
        assert!(said.contains("discarded-1"), "{said}");
        let aside = self.dir(node).join("discarded-1");
        assert!(aside.join("group1/log").is_dir(), "the old data is gone");
        self.start(&[node]);
        self.nodes[node].wait().expect("it answers");
        self.quorate(&["node", "promote", &name]);
        self.assert_holds(node, expected);
        let other = &self.nodes[(node + 1) % 3];
        let voters = other.query("select count(*) from quorate.nodes where voter");
        assert_eq!(voters.expect("an answer"), "3");
    }
}

/// What `quorate check` prints of directories, and what it complains of, if it ends with that.
fn check(directories: &[&Path]) -> (String, String) {
    let ended = output(Command::new(program()).arg("check").args(directories)).expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let complaint = text(&ended.stderr);
    assert_eq!(ended.status.success(), complaint.is_empty(), "{complaint}");
    (text(&ended.stdout), complaint)
}

/// Changes a value wherever it stands in a file, and leaves the CRC-32C of whatever it is part of as
/// it was: what is added to it, modulo 2, is the polynomial of that checksum.
fn forge(file: &Path, value: &[u8]) {
    let polynomial = (1 | 0x82f6_3b78_u64 << 1).to_le_bytes();
    let content = fs::read(file).expect("a file");
    let places = content.windows(value.len()).enumerate();
    let places: Vec<usize> = places
        .filter(|(_, found)| *found == value)
        .map(|(at, _)| at)
        .collect();
    assert!(!places.is_empty(), "the value is not there");
    let file = OpenOptions::new().write(true).open(file).expect("it opens");
    for at in places {
        let forged: Vec<u8> = value
            .iter()
            .zip(polynomial)
            .map(|(old, add)| old ^ add)
            .collect();
        file.write_all_at(&forged, at as u64)
            .expect("it is written");
    }
}

fn copy(from: &Path, to: &Path) {
    run(Command::new("cp").arg("-r").arg(from).arg(to)).expect("a copy");
}

/// Rows that n2 and n3 acknowledged while n1 was away; then n3 comes back as it was before, and
/// meets only n1.
#[test]
fn a_voter_with_an_older_directory_is_not_heard() {
    let mut trio = Trio::new();
    let old = trio.data.join("old");
    copy(&trio.dir(2), &old);
    trio.start(&[0, 1, 2]);
    trio.insert(0, 1);
    trio.end(0, "KILL");
    trio.insert(1, 2);
    trio.end(1, "TERM");
    trio.end(2, "TERM");
    fs::remove_dir_all(trio.dir(2)).expect("it is removed");
    copy(&old, &trio.dir(2));

    trio.start(&[0, 2]);
    let said = trio.last_words(2);
    assert!(said.contains("older than what others know"), "{said}");
    assert!(said.contains("n1 has seen its start"), "{said}");
    // However often it is started.
    trio.start(&[2]);
    trio.last_words(2);
    trio.start(&[2]);
    trio.last_words(2);
    trio.assert_nobody_leads(0);
    let log = trio.log(0);
    assert!(log.contains("node 3 is not heard"), "{log}");

    trio.start(&[1]);
    trio.assert_holds(0, "0,1,2");
    trio.insert(0, 3);
    trio.start(&[2]);
    trio.last_words(2);
    trio.rejoin(2, "0,1,2,3");
}

/// The end of a log that was acknowledged is gone.
#[test]
fn a_log_that_was_cut_is_noticed() {
    let mut trio = Trio::new();
    trio.start(&[0, 1, 2]);
    trio.insert(0, 1);
    trio.end(2, "KILL");
    trio.insert(0, 2);
    trio.end(1, "KILL");
    trio.end(0, "KILL");
    let log = trio.dir(0).join("group1/log");
    let mut segments: Vec<PathBuf> = fs::read_dir(&log)
        .expect("a log")
        .map(|entry| entry.expect("a name").path())
        .filter(|path| path.extension().is_some_and(|end| end == "seg"))
        .collect();
    segments.sort();
    let last = segments.last().expect("a segment");
    let file = OpenOptions::new().write(true).open(last).expect("it opens");
    let bytes = file.metadata().expect("its length").len();
    file.set_len(bytes - 400).expect("it is cut");

    trio.start(&[0, 2]);
    let said = trio.last_words(0);
    assert!(said.contains("its end is gone"), "{said}");
    trio.assert_nobody_leads(2);
    trio.start(&[1]);
    trio.assert_holds(2, "0,1,2");
    trio.rejoin(0, "0,1,2");
}

/// `quorate check` of several directories: of nodes that ended in order, that were killed, that are
/// behind.
#[test]
fn directories_of_one_history_are_found_to_be_the_same() {
    let mut trio = Trio::new();
    let (said, complaint) = trio.check();
    assert_eq!(complaint, "");
    assert!(said.contains("n1, n2 and n3 have one history"), "{said}");
    assert!(
        said.contains("n1, n2 and n3 hold the same at LSN"),
        "{said}"
    );
    trio.start(&[0, 1, 2]);
    trio.insert(0, 1);
    trio.end(2, "KILL");
    trio.insert(0, 2);
    trio.end(0, "KILL");
    trio.end(1, "KILL");
    let (said, complaint) = trio.check();
    assert_eq!(complaint, "");
    assert!(said.contains("n1, n2 and n3 have one history"), "{said}");
    // One alone is compared with nobody.
    let (said, _) = check(&[&trio.dir(1)]);
    assert_eq!(said.lines().count(), 1, "{said}");
    let (said, _) = check(&[&trio.dir(1), &trio.dir(0)]);
    assert!(said.contains("n2 and n1 hold the same at LSN"), "{said}");
}

/// Has a table whose row 250 is another on one node, which it names first, and then the others.
fn forge_a_row(trio: &mut Trio) -> [String; 3] {
    trio.start(&[0, 1, 2]);
    trio.nodes[0].wait().expect("it answers");
    let query = |text: &str| trio.nodes[0].query(text).expect("an answer");
    query("create table forged(k int primary key, v bytea)");
    query("insert into forged select g, sha256(g::text::bytea) from generate_series(1, 500) g");
    let value = query("select encode(v, 'hex') from forged where k = 250");
    let value: Vec<u8> = (0..16)
        .map(|at| u8::from_str_radix(&value[2 * at..2 * at + 2], 16).expect("a byte"))
        .collect();
    query("checkpoint");
    let leader = query("select leader from quorate.groups");
    (0..3).for_each(|node| trio.end(node, "TERM"));
    let store = trio.data.join(&leader).join("group1/store/store");
    forge(&store, &value[..8]);
    let others = ["n1", "n2", "n3"].into_iter();
    let others: Vec<&str> = others.filter(|name| *name != leader).collect();
    let [one, other] = others[..] else {
        panic!("{leader} leads");
    };
    [leader.clone(), one.to_owned(), other.to_owned()]
}

/// A row of one replica is another, and everything that the replica itself can look at is sound.
#[test]
fn a_row_that_was_changed_behind_the_checksums_is_found_by_comparing() {
    let mut trio = Trio::new();
    let [leader, one, other] = forge_a_row(&mut trio);
    let (said, complaint) = trio.check();
    assert!(said.contains(&format!("{leader}: sound")), "{said}");
    assert!(said.contains("have one history"), "{said}");
    let expected = format!("{leader} differs from {one} and {other} at LSN");
    assert!(complaint.contains(&expected), "{said}\n{complaint}");
    assert_eq!(complaint.lines().count(), 1, "{complaint}");
    // Of two, neither is in the right.
    let two = [&leader, &other].map(|name| trio.data.join(name));
    let (_, complaint) = check(&[&two[0], &two[1]]);
    let expected = format!("{other} differs from {leader} at LSN");
    assert!(complaint.contains(&expected), "{complaint}");
}

/// A cluster went on from one point twice, and one node is of the other course.
#[test]
fn another_history_under_the_same_positions_is_found_by_comparing() {
    let mut trio = Trio::new();
    let copies: Vec<PathBuf> = (0..3)
        .map(|node| trio.data.join(format!("copy{node}")))
        .collect();
    for (node, to) in copies.iter().enumerate() {
        copy(&trio.dir(node), to);
    }
    trio.start(&[0, 1, 2]);
    trio.insert(0, 1);
    (0..3).for_each(|node| trio.end(node, "TERM"));
    let other = trio.data.join("other");
    copy(&trio.dir(2), &other);
    for (node, from) in copies.iter().enumerate() {
        fs::remove_dir_all(trio.dir(node)).expect("it is removed");
        copy(from, &trio.dir(node));
    }
    trio.start(&[0, 1, 2]);
    trio.insert(0, 7);
    (0..3).for_each(|node| trio.end(node, "TERM"));
    assert_eq!(trio.check().1, "");

    let (said, complaint) = check(&[&trio.dir(0), &trio.dir(1), &other]);
    assert!(said.contains("n3: sound"), "{said}");
    let expected = "n3 has another history than n1 and n2 from LSN";
    assert!(complaint.contains(expected), "{complaint}");
    assert!(said.contains("n1 and n2 hold the same at LSN"), "{said}");
}

/// The same row, while the nodes work: the leader's comparison finds it by itself, and all say so.
#[test]
fn replicas_that_differ_are_noticed_while_they_work() {
    let mut trio = Trio::with(&["quorate.consistency_check=1s"]);
    let [odd, one, other] = forge_a_row(&mut trio);
    trio.start(&[0, 1, 2]);
    let alarm = format!("replicas differ: {odd} differs from {one} and {other} at LSN ");
    wait_for("the alarm", PATIENCE, || {
        (0..3).all(|node| trio.log(node).contains(&alarm))
    })
    .unwrap_or_else(|_| panic!("{}", trio.log(0)));
    let query = |text: &str| trio.nodes[0].query(text).expect("an answer");
    assert_eq!(query("select quorate.check_consistency()"), "1");
    let shown =
        "select relation::regclass, deviating, agreeing, from_key < to_key or to_key is null \
                 from quorate.inconsistencies";
    assert_eq!(query(shown), format!("forged|{odd}|{one}, {other}|t"));
    let mut status = Command::new(program());
    let status = output(status.args(["status", "--data"]).arg(&trio.data)).expect("it runs");
    let said = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(
        said.contains(&format!("degraded: {odd} differs from {one}")),
        "{said}"
    );
    assert_eq!(status.status.code(), Some(1));

    let odd = ["n1", "n2", "n3"]
        .iter()
        .position(|name| *name == odd)
        .expect("a node");
    trio.end(odd, "TERM");
    trio.rejoin(odd, "0");
    let left = trio.nodes[odd].query("select quorate.check_consistency()");
    assert_eq!(left.expect("an answer"), "0");
}
