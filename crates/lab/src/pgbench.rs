//! The real pgbench, its scripts and its tables.
//!
//! [`checks`] says whether what its clients did adds up.

pub mod checks;
mod setup;

use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::host::{read_file, read_names, remove_file, run, write_file, Endpoint};

pub use setup::{make_pgbench_tables, Tables};

/// Scripts of `tests/scripts`, as they stand there.
const SCRIPTS: [Script; 6] = [
    Script {
        file: "b_read.sql",
        text: include_str!("../../../tests/scripts/b_read.sql"),
    },
    Script {
        file: "b_upsert.sql",
        text: include_str!("../../../tests/scripts/b_upsert.sql"),
    },
    Script {
        file: "b_mixed_read.sql",
        text: include_str!("../../../tests/scripts/b_mixed_read.sql"),
    },
    Script {
        file: "b_mixed_write.sql",
        text: include_str!("../../../tests/scripts/b_mixed_write.sql"),
    },
    Script {
        file: "d_transfer.sql",
        text: include_str!("../../../tests/scripts/d_transfer.sql"),
    },
    Script {
        file: "d_sum.sql",
        text: include_str!("../../../tests/scripts/d_sum.sql"),
    },
];

/// A script of `tests/scripts`.
#[derive(Clone, Copy, Debug)]
struct Script {
    file: &'static str,
    text: &'static str,
}

/// The text of a script by its file's name.
pub fn script(file: &str) -> Option<&'static str> {
    let found = SCRIPTS.iter().find(|script| script.file == file);
    found.map(|script| script.text)
}

/// Writes a script where pgbench can read it.
fn place(file: &str, dir: &Path) -> Result<PathBuf> {
    let path = dir.join(file);
    let text = script(file).ok_or_else(|| Error::other(format!("no script {file}")))?;
    write_file(&path, text)?;
    Ok(path)
}

/// What pgbench printed of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    /// Transactions that went through.
    pub transactions: f64,
    /// Transactions that failed for serialization or a deadlock.
    pub failed: f64,
    /// Transactions per second.
    pub rate: f64,
}

/// Runs pgbench with so many clients for so long.
///
/// # Errors
/// It fails, or a client of it was thrown out.
pub fn pgbench(
    endpoint: &Endpoint,
    clients: usize,
    seconds: usize,
    arguments: &[&str],
) -> Result<Run> {
    run_command(&mut command(endpoint, clients, seconds, arguments))
}

fn command(endpoint: &Endpoint, clients: usize, seconds: usize, arguments: &[&str]) -> Command {
    let mut command = endpoint.client("pgbench");
    command
        .args(["-n", "-c", &clients.to_string()])
        .args(["-j", &clients.min(2).to_string()])
        .args(["-T", &seconds.to_string()])
        .args(arguments)
        .arg(endpoint.database());
    command
}

/// Runs a command of pgbench's and reads what it prints.
///
/// # Errors
/// It fails, or a client of it was thrown out.
pub fn run_command(command: &mut Command) -> Result<Run> {
    let printed = run(command)?;
    parse(&printed).ok_or_else(|| Error::other(format!("not what pgbench prints: {printed}")))
}

/// Microseconds that each transaction of a run took. With `--rate`, from the moment when it was due.
///
/// # Errors
/// As [`pgbench`], or nothing was logged.
pub fn latencies(
    endpoint: &Endpoint,
    dir: &Path,
    clients: usize,
    seconds: usize,
    arguments: &[&str],
) -> Result<Vec<f64>> {
    latencies_at(endpoint, dir, "on", clients, seconds, arguments)
}

/// As [`latencies`], at a level of `synchronous_commit`.
///
/// # Errors
/// As [`latencies`].
pub fn latencies_at(
    endpoint: &Endpoint,
    dir: &Path,
    level: &str,
    clients: usize,
    seconds: usize,
    arguments: &[&str],
) -> Result<Vec<f64>> {
    static LOGS: AtomicUsize = AtomicUsize::new(0);
    let log = format!("pgbench-log-{}", LOGS.fetch_add(1, Ordering::Relaxed));
    let mut command = command(endpoint, clients, seconds, arguments);
    command
        .env("PGOPTIONS", format!("-c synchronous_commit={level}"))
        .args(["-l", "--log-prefix"])
        .arg(dir.join(&log));
    run_command(&mut command)?;
    let mut micros = Vec::new();
    for name in read_names(dir)? {
        if name.starts_with(&format!("{log}.")) {
            let path = dir.join(name);
            let text = read_file(&path)?;
            // Client, transaction, microseconds, script, seconds, microseconds.
            let latency = |line: &str| line.split(' ').nth(2)?.parse::<f64>().ok();
            micros.extend(text.lines().filter_map(latency));
            remove_file(&path)?;
        }
    }
    match micros.is_empty() {
        true => Err(Error::other("pgbench logged no transaction")),
        false => Ok(micros),
    }
}

fn parse(printed: &str) -> Option<Run> {
    let number = |start: &str| -> Option<f64> {
        let rest = printed.lines().find_map(|line| line.strip_prefix(start))?;
        rest.split([' ', '/']).next()?.parse().ok()
    };
    let transactions = number("number of transactions actually processed: ")?;
    Some(Run {
        transactions,
        failed: number("number of failed transactions: ")?,
        // Of none it prints no rate.
        rate: match transactions > 0.0 {
            true => number("tps = ")?,
            false => 0.0,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_pgbench_prints_is_read() {
        let printed = "number of transactions actually processed: 2901\n\
                       number of failed transactions: 11 (0.378%)\n\
                       latency average = 2.859 ms\n\
                       tps = 1448.783192 (without initial connection time)\n";
        let run = Run {
            transactions: 2_901.0,
            failed: 11.0,
            rate: 1_448.783192,
        };
        assert_eq!(parse(printed), Some(run));
        assert_eq!(parse("tps = 1"), None);
    }
}
