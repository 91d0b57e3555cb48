//! Nodes that come back with an older or a shorter history than they had: what they would break is
//! noticed before it is spread, and what was acknowledged is there as long as anybody has it.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use lab::host::{run, wait_for, Endpoint, Process, PATIENCE};
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
        let dir = tempfile::tempdir().expect("a directory");
        let mut cluster = Cluster::start(program(), dir.path(), 3, &[]).expect("a cluster");
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
