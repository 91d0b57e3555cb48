//! The commit loop's scripts as they stand in tests/scripts, on PostgreSQL 15 with two standbys and
//! on three nodes of Quorate through each of them: the same output, except where no two runs agree.

use std::path::PathBuf;
use std::process::Command;

use lab::host::{output, Endpoint};
use lab::postgres::QuorumOfPostgres;
use lab::quorate::Cluster;

use crate::kill::program;
use crate::source;

/// Columns that no two runs agree on; they are compared by [`shape`].
const VOLATILE: [&str; 20] = [
    "version",
    "rows/s",
    "duration",
    "slot_name",
    "active_pid",
    "restart_lsn",
    "safe_wal_size",
    "pid",
    "application_name",
    "client_addr",
    "client_port",
    "backend_start",
    "sent_lsn",
    "write_lsn",
    "flush_lsn",
    "replay_lsn",
    "write_lag",
    "flush_lag",
    "replay_lag",
    "reply_time",
];

/// Lags are absent while there is nothing to catch up on.
const MAY_BE_ABSENT: [&str; 3] = ["write_lag", "flush_lag", "replay_lag"];

fn script(name: &str) -> PathBuf {
    source::root().join("tests/scripts").join(name)
}

/// What a command prints, standard error after standard output.
fn printed(command: &mut Command) -> String {
    let output = output(command).expect("the command runs");
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn psql_file(endpoint: &Endpoint, file: &str) -> String {
    let mut command = endpoint.client("psql");
    let path = script(file);
    printed(command.args(["-X", "-A", "-f"]).arg(path).arg("postgres"))
}

/// Runs everything in order and returns what each step printed.
fn run_scripts(main: &Endpoint, sessions: &[Endpoint]) -> Vec<String> {
    let mut seen = vec![
        psql_file(main, "a_loop.sql"),
        psql_file(main, "a_sessions.sql"),
    ];
    let children: Vec<_> = sessions
        .iter()
        .enumerate()
        .map(|(number, node)| {
            let (host, port) = (node.host.clone(), node.port.to_string());
            std::thread::spawn(move || {
                printed(
                    Command::new("bash")
                        .arg(script("a_session.sh"))
                        .args([&host, &(number + 1).to_string(), &port])
                        .env("PGUSER", "postgres")
                        .env("PGDATABASE", "postgres"),
                )
            })
        })
        .collect();
    for child in children {
        seen.push(child.join().expect("a session ends"));
    }
    seen.push(psql_file(main, "a_standbys.sql"));
    seen
}

/// Letters, digits and signs as classes, runs of the same class as one.
fn shape(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        let class = match c {
            '0'..='9' | 'A'..='F' => '9',
            'a'..='z' | 'G'..='Z' => 'a',
            other => other,
        };
        if !out.ends_with(class) {
            out.push(class);
        }
    }
    out
}

/// The lines that two runs must share: volatile fields replaced by their shapes.
fn comparable(text: &str) -> Vec<String> {
    let mut columns: Option<Vec<&str>> = None;
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.starts_with("Time: ") {
            lines.push("Time: …".to_owned());
        } else if line.starts_with('(') && line.ends_with(')') {
            columns = None;
            lines.push(line.to_owned());
        } else if let Some(columns) = &columns {
            let fields: Vec<String> = line
                .split('|')
                .zip(columns)
                .map(|(field, column)| comparable_field(field, column))
                .collect();
            lines.push(fields.join("|"));
        } else {
            if line.contains('|') || line == "version" {
                columns = Some(line.split('|').collect());
            }
            lines.push(line.replace(&script("").display().to_string(), ""));
        }
    }
    lines
}

fn comparable_field(field: &str, column: &str) -> String {
    if column == "version" {
        return field.split(' ').next().unwrap_or_default().to_owned();
    }
    if MAY_BE_ABSENT.contains(&column) {
        return "…".to_owned();
    }
    if VOLATILE.contains(&column) {
        return shape(field);
    }
    field.to_owned()
}

#[test]
fn the_commit_loops_scripts_print_what_postgresql_prints() {
    let dir = crate::kill::open_directory();
    // Logs are kept for absent standbys up to a limit, as Quorate's are.
    let limit = ["max_slot_wal_keep_size=1GB"];
    let postgres =
        QuorumOfPostgres::start(dir.path(), &limit).expect("PostgreSQL with two standbys");
    let primary = postgres.primary.endpoint();
    let sessions = vec![primary.clone(), primary.clone(), primary.clone()];
    let expected: Vec<Vec<String>> = run_scripts(primary, &sessions)
        .iter()
        .map(|text| comparable(text))
        .collect();
    drop(postgres);
    let cluster = Cluster::start(program(), &dir.path().join("q"), 3, &[]).expect("a cluster");
    for node in cluster.nodes() {
        // PostgreSQL began without it.
        node.query("drop table if exists demo").expect("no table");
        let seen = run_scripts(node, cluster.nodes());
        for (seen, expected) in seen.iter().zip(&expected) {
            let mut found = comparable(seen);
            let mut wanted = expected.clone();
            // Rows without ORDER BY may come in any order.
            found.sort();
            wanted.sort();
            assert_eq!(found, wanted, "through {}: {seen}", node.host);
        }
    }
}

#[test]
fn shapes_keep_types_apart() {
    assert_eq!(shape("0/3A12F8"), shape("1/0"));
    assert_eq!(shape("127.0.0.1"), shape("10.22.33.4"));
    assert_ne!(shape("00:00:01.5"), shape("1.5"));
}
