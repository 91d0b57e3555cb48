//! Commands of documents, run as they stand by somebody who pastes them: those of the README from an
//! empty directory on, and those of docs/OPERATIONS.md on a cluster with the trouble that each is
//! for.
//!
//! What is changed before they run is little: other ports, so that this can run beside other
//! clusters; less load; the cluster's directory for `DIR`; after each node that is started or killed
//! a while for the others; and what meets an election, or a node that has not caught up, is tried
//! again.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use lab::host::{free_port, output, wait_for, Process};
use lab::quorate::ADDRESSES;

use crate::kill::program;
use crate::source;

/// Until a cluster of three is there.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is skipped: what the test does itself, and what has a gap for the reader to fill.
const SKIPPED: [&str; 6] = [
    "make install",
    "export PATH",
    "--learners",
    "MACHINE",
    "IP:",
    "(PID)",
];

/// A user who is told that there is no leader yet, or that a node has not caught up, tries again.
const AGAIN: &str = "again() { for _ in {1..30}; do \"$@\" && return; sleep 1; done; return 1; }\n";

/// The blocks of a document that a shell is to run, in order, without their indentation.
fn blocks(path: &str) -> Vec<String> {
    let text = source::text(path);
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(indent) = line.strip_suffix("```sh") {
            let inside = lines.by_ref().take_while(|line| line.trim() != "```");
            let inside =
                inside.map(|line| format!("{}\n", line.strip_prefix(indent).unwrap_or(line)));
            blocks.push(inside.collect::<String>());
        }
    }
    blocks.retain(|block| !SKIPPED.iter().any(|part| block.contains(part)));
    blocks
}

/// Somebody at a terminal, in a directory of their own.
struct Newcomer {
    dir: tempfile::TempDir,
    path: String,
    port: u16,
    http_port: u16,
}

impl Newcomer {
    fn new() -> Newcomer {
        let bin = program().parent().expect("a directory").display();
        let path = std::env::var("PATH").expect("a path");
        Newcomer {
            dir: tempfile::tempdir().expect("a directory"),
            path: format!("{bin}:{path}"),
            port: free_port(&ADDRESSES).expect("a free port"),
            http_port: free_port(&ADDRESSES).expect("another"),
        }
    }

    fn shell(&self, commands: &str) -> Command {
        let mut shell = Command::new("bash");
        shell.args(["-e", "-c", commands]);
        shell.env("PATH", &self.path).current_dir(self.dir.path());
        shell
    }

    /// `quorate up`, until clients can begin sessions.
    fn up(&self) -> Process {
        let (port, http_port) = (self.port, self.http_port);
        let up = format!("exec quorate up --port {port} --http-port {http_port}");
        let log = self.dir.path().join("up.log");
        let up = Process::start(&mut self.shell(&up), &log).expect("it starts");
        wait_for("three nodes", PATIENCE, || {
            fs::read_to_string(&log).is_ok_and(|said| said.contains("Ctrl-C stops all"))
        })
        .expect("three nodes");
        up
    }

    /// Runs commands; what they leave behind running does not hold this up.
    fn run(&self, commands: &str) {
        let here = self.dir.path().display();
        let commands = commands
            .replace("DIR", "quorate-data")
            .replace("/other", &format!("{here}/other"))
            .replace("/backup", &format!("{here}/backup"))
            .replace("5433", &self.port.to_string())
            .replace("-s 10 ", "-s 1 ")
            .replace("-T 10 ", "-T 2 ")
            .replace("\\\n", " ");
        let mut script = AGAIN.to_owned();
        for line in commands.lines() {
            let line = line.split(" #").next().unwrap_or_default().trim_end();
            let again = ["psql ", "quorate node promote "];
            if again.iter().any(|command| line.starts_with(command)) {
                script.push_str("again ");
            }
            script.push_str(line);
            match line {
                // Its exit code says how the cluster is, and it may be anything here.
                _ if line.starts_with("quorate status") => script.push_str(" || true\n"),
                _ if line.ends_with('&') || line.starts_with("kill") => {
                    script.push_str("\nsleep 2\n");
                }
                _ => script.push('\n'),
            }
        }
        let log: PathBuf = self.dir.path().join("output");
        let file = File::create(&log).expect("a file");
        let mut shell = self.shell(&script);
        shell.stdout(file.try_clone().expect("the file"));
        let status = shell.stderr(file).status().expect("it runs");
        let said = fs::read_to_string(&log).expect("what it says");
        assert!(status.success(), "{script}\n{said}");
    }
}

impl Drop for Newcomer {
    fn drop(&mut self) {
        // Nothing is left where a command failed.
        for data in ["quorate-data", "backup/n3"] {
            let _ = output(&mut self.shell(&format!("quorate stop --data {data}")));
        }
    }
}

#[test]
fn the_readme() {
    let newcomer = Newcomer::new();
    let (mut up, mut tried) = (None, 0);
    let mut blocks = blocks("README.md");
    // How all nodes are stopped comes before what else they can do.
    let stop = blocks.iter().position(|block| block == "quorate stop\n");
    let stop = blocks.remove(stop.expect("how all nodes are stopped"));
    for block in blocks {
        match block.as_str() {
            "quorate up\n" => up = Some(newcomer.up()),
            block => newcomer.run(block),
        }
        tried += 1;
    }
    newcomer.run(&stop);
    assert!(tried >= 7, "{tried} blocks were tried");
    drop(up);
}

/// What a block of docs/OPERATIONS.md is told by, and the trouble that it is for.
const TROUBLES: [(&str, &str); 7] = [
    (
        "tail -20 DIR/n2/node.log",
        "kill -9 \"$(cat DIR/n2/lock)\"; sleep 1",
    ),
    ("kill -CONT", "kill -STOP \"$(cat DIR/n2/lock)\""),
    (
        "quorate start --data DIR/n2 &\nquorate start --data DIR/n3 &",
        "kill -9 \"$(cat DIR/n2/lock)\" \"$(cat DIR/n3/lock)\"; sleep 1",
    ),
    (
        "quorate promote n1 --accept-data-loss",
        "kill -9 \"$(cat DIR/n2/lock)\" \"$(cat DIR/n3/lock)\"; sleep 1",
    ),
    (
        "quorate node remove n3",
        "kill -9 \"$(cat DIR/n3/lock)\"; sleep 1; rm -r DIR/n3/group1; \
         ! quorate start --data DIR/n3",
    ),
    (
        "quorate node rejoin n3",
        "kill -9 \"$(cat DIR/n3/lock)\"; sleep 1",
    ),
    ("quorate promote --data /backup/n3", "quorate stop"),
];

#[test]
fn the_operators_page() {
    let newcomer = Newcomer::new();
    let _up = newcomer.up();
    newcomer.run(
        "mkdir other backup\n\
         psql -h 127.0.0.1 -p 5433 postgres -c 'create table kept(i int primary key)' \
         -c 'insert into kept values (1)'",
    );
    let mut met = Vec::new();
    for block in blocks("docs/OPERATIONS.md") {
        for (sign, trouble) in TROUBLES {
            if block.contains(sign) {
                newcomer.run(trouble);
                met.push(sign);
            }
        }
        newcomer.run(&block);
        if block.starts_with("rm -r DIR/n2\n") {
            // "The same for n3."
            newcomer.run(&block.replace("n2", "n3"));
        }
    }
    assert_eq!(met.len(), TROUBLES.len(), "{met:?}");
    // What is left is the copy that was restored, at the addresses of n3.
    newcomer.run("psql -h 127.0.0.3 -p 5433 postgres -c 'insert into kept values (2)'");
}
