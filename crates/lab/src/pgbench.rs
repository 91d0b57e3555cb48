//! Experiment B and pgbench's own scripts: many clients, on one node and on three, beside PostgreSQL.
//!
//! Two figures for each system and workload: transactions per second as pgbench counts them, and
//! microseconds of processor time that all server processes of the system spend on one. On a machine
//! where clients and servers share the cores, the second says why the first is what it is.
//!
//! Every workload runs on all four systems in turn, round after round, over TCP on loopback. What it
//! changes is checked at the end ([`checks`]).
//!
//! # What it leaves out
//! Latencies beyond the mean, which follows from the rate.

pub mod checks;
mod setup;

use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use crate::host::{pause, run, write_file, Endpoint};
use crate::report::{table, Figure};
use crate::systems::{System, Systems};
use setup::Tables;

/// How much to measure.
#[derive(Clone, Debug)]
pub struct Extent {
    /// Rounds over all systems.
    pub rounds: usize,
    /// Seconds of one run.
    pub seconds: usize,
    /// Names of the workloads to run; all if empty.
    pub only: Vec<String>,
}

/// One line of the report.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// What `--only` calls it.
    pub name: &'static str,
    title: &'static str,
    tables: Tables,
    /// pgbench's arguments besides the script file.
    arguments: &'static [&'static str],
    script: Option<Script>,
    clients: usize,
    /// How many times PostgreSQL's rate each pair should reach: one node, three nodes.
    goals: [Option<f64>; 2],
}

/// A script of `tests/scripts`, as it stands there.
#[derive(Clone, Copy, Debug)]
struct Script {
    file: &'static str,
    text: &'static str,
}

const UPSERT: Script = Script {
    file: "b_upsert.sql",
    text: include_str!("../../../tests/scripts/b_upsert.sql"),
};

const fn upserts(name: &'static str, title: &'static str, clients: usize) -> Workload {
    Workload {
        name,
        title,
        tables: Tables::Upserts,
        arguments: &["-M", "prepared"],
        script: Some(UPSERT),
        clients,
        goals: match clients {
            1 => [Some(1.0), Some(1.5)],
            16 => [Some(1.4), Some(2.0)],
            _ => [Some(2.0), Some(2.5)],
        },
    }
}

const fn selects(
    name: &'static str,
    title: &'static str,
    arguments: &'static [&'static str],
    goal: f64,
) -> Workload {
    Workload {
        name,
        title,
        tables: Tables::Pgbench { scale: 10 },
        arguments,
        script: None,
        clients: 16,
        goals: [Some(goal), None],
    }
}

const fn tpcb(
    name: &'static str,
    title: &'static str,
    scale: usize,
    clients: usize,
    goals: [Option<f64>; 2],
) -> Workload {
    Workload {
        name,
        title,
        tables: Tables::Pgbench { scale },
        arguments: &["-M", "prepared", "-b", "tpcb-like"],
        script: None,
        clients,
        goals,
    }
}

/// How long the processes of PostgreSQL's sessions may take to end after their clients.
const SESSIONS_END: Duration = Duration::from_millis(300);

/// All workloads, in the order of the report; those that share tables stand together.
pub const WORKLOADS: [Workload; 7] = [
    upserts("upsert-1", "upserts, 1 client", 1),
    upserts("upsert-16", "upserts, 16 clients", 16),
    upserts("upsert-64", "upserts, 64 clients", 64),
    selects(
        "select-prepared",
        "select-only, prepared, 16 clients",
        &["-M", "prepared", "-S"],
        1.3,
    ),
    selects(
        "select-simple",
        "select-only, simple protocol, 16 clients",
        &["-M", "simple", "-S"],
        1.5,
    ),
    tpcb(
        "tpcb",
        "TPC-B, scale 10, 16 clients",
        10,
        16,
        [Some(1.3), Some(1.8)],
    ),
    tpcb(
        "tpcb-hot",
        "TPC-B, scale 1, 32 clients",
        1,
        32,
        [Some(2.0), Some(2.0)],
    ),
];

/// The figures of one workload, a cell per system.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// The workload's title.
    pub title: &'static str,
    goals: [Option<f64>; 2],
    cells: Vec<Cell>,
}

#[derive(Clone, Debug, Serialize)]
struct Cell {
    /// Transactions per second.
    rate: Figure,
    /// Microseconds of processor time per transaction, over all server processes.
    cost: Figure,
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

/// Runs all workloads, or those that are asked for, on the systems in turn.
///
/// # Errors
/// A system or pgbench fails, or there is no such workload.
pub fn run_all(systems: &Systems, dir: &Path, extent: &Extent) -> Result<Vec<Line>> {
    for name in &extent.only {
        if !WORKLOADS.iter().any(|workload| workload.name == name) {
            let names: Vec<&str> = WORKLOADS.iter().map(|workload| workload.name).collect();
            return Err(Error::other(format!(
                "no workload {name}; there are {}",
                names.join(", ")
            )));
        }
    }
    let wanted = |workload: &&Workload| {
        extent.only.is_empty() || extent.only.iter().any(|name| name == workload.name)
    };
    let mut lines = Vec::new();
    let mut tables = None;
    for workload in WORKLOADS.iter().filter(wanted) {
        if tables.replace(workload.tables) != Some(workload.tables) {
            for system in systems.all() {
                workload.tables.make(system)?;
            }
        }
        lines.push(measure(workload, systems.all(), dir, extent)?);
        if let Tables::Pgbench { .. } = workload.tables {
            for system in systems.all() {
                checks::tpcb_adds_up(system.endpoint())?;
            }
        }
    }
    Ok(lines)
}

fn measure(workload: &Workload, systems: &[System], dir: &Path, extent: &Extent) -> Result<Line> {
    let none = || Figure { rounds: Vec::new() };
    let mut line = Line {
        title: workload.title,
        goals: workload.goals,
        cells: systems
            .iter()
            .map(|_| Cell {
                rate: none(),
                cost: none(),
            })
            .collect(),
    };
    for round in 1..=extent.rounds {
        for (system, cell) in systems.iter().zip(&mut line.cells) {
            workload.tables.refresh(system.endpoint())?;
            let before = system.processor_micros()?;
            let run = workload.run(system.endpoint(), dir, extent.seconds)?;
            pause(SESSIONS_END);
            let cost = (system.processor_micros()? - before) / run.transactions.max(1.0);
            eprintln!(
                "{} round {round} {}: {:.0} tps, {cost:.0} µs",
                workload.name,
                system.name(),
                run.rate
            );
            cell.rate.rounds.push(run.rate);
            cell.cost.rounds.push(cost);
        }
    }
    Ok(line)
}

impl Workload {
    fn run(&self, endpoint: &Endpoint, dir: &Path, seconds: usize) -> Result<Run> {
        let mut arguments: Vec<String> = self
            .arguments
            .iter()
            .map(|text| (*text).to_owned())
            .collect();
        if let Some(script) = &self.script {
            arguments.extend(["-f".to_owned(), script.place(dir)?.display().to_string()]);
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let done = pgbench(endpoint, self.clients, seconds, &arguments)?;
        match done.failed > 0.0 {
            true => Err(Error::other(format!(
                "{}: {} failed",
                self.name, done.failed
            ))),
            false => Ok(done),
        }
    }
}

impl Script {
    /// Writes the script where pgbench can read it.
    fn place(&self, dir: &Path) -> Result<PathBuf> {
        let path = dir.join(self.file);
        write_file(&path, self.text)?;
        Ok(path)
    }
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
    let mut command = endpoint.client("pgbench");
    command
        .args(["-n", "-c", &clients.to_string()])
        .args(["-j", &clients.min(2).to_string()])
        .args(["-T", &seconds.to_string()])
        .args(arguments)
        .arg("postgres");
    let printed = run(&mut command)?;
    parse(&printed).ok_or_else(|| Error::other(format!("not what pgbench prints: {printed}")))
}

fn parse(printed: &str) -> Option<Run> {
    let number = |start: &str| -> Option<f64> {
        let rest = printed.lines().find_map(|line| line.strip_prefix(start))?;
        rest.split([' ', '/']).next()?.parse().ok()
    };
    Some(Run {
        transactions: number("number of transactions actually processed: ")?,
        failed: number("number of failed transactions: ")?,
        rate: number("tps = ")?,
    })
}

/// Whether everything adds up on Quorate, with one node and with three; says so in a sentence.
///
/// # Errors
/// What does not hold.
pub fn check_all(systems: &Systems, dir: &Path, seconds: usize) -> Result<String> {
    let mut said = Vec::new();
    for system in systems.all().iter().filter(|system| !system.is_postgres()) {
        let endpoint = system.endpoint();
        let mixed = checks::mixed(endpoint, dir, seconds)?;
        let transfers = checks::transfers(endpoint, dir, seconds)?;
        let hot = checks::tpcb(endpoint, 32, seconds)?;
        said.push(format!(
            "{}: {} mixed transactions, {} transfers ({} failed for serialization or a deadlock), \
             {} of TPC-B at scale 1",
            system.name(),
            mixed.transactions,
            transfers.transactions,
            transfers.failed,
            hot.transactions
        ));
    }
    Ok(format!(
        "Checked beside: mixed scripts (64 clients), transfers and sums (16 and 4), TPC-B (32). \
         Every sum was the same, and no update was lost. {}.\n",
        said.join("; ")
    ))
}

/// The tables of the report: workloads down, systems across.
pub fn report(systems: &Systems, lines: &[Line]) -> String {
    let names: Vec<&str> = systems.all().iter().map(System::name).collect();
    let mut head: Vec<String> = std::iter::once("")
        .chain(names.iter().copied())
        .map(str::to_owned)
        .collect();
    let costs: Vec<Vec<String>> = lines.iter().map(cost_row).collect();
    let cost_table = table(&head, &costs);
    for pair in names.chunks(2) {
        if let [theirs, ours] = pair {
            head.push(format!("{ours} / {theirs} (goal)"));
        }
    }
    let rates: Vec<Vec<String>> = lines.iter().map(rate_row).collect();
    format!(
        "**Transactions per second**\n\n{}\n\
         **Processor time of all server processes, µs per transaction**\n\n{cost_table}",
        table(&head, &rates)
    )
}

fn rate_row(line: &Line) -> Vec<String> {
    let mut row = vec![line.title.to_owned()];
    row.extend(line.cells.iter().map(|cell| cell.rate.show()));
    for (pair, goal) in line.cells.chunks(2).zip(line.goals) {
        if let [theirs, ours] = pair {
            let ratio = ours.rate.median() / theirs.rate.median();
            row.push(match goal {
                Some(goal) => format!("{ratio:.2}× ({goal:.1}×)"),
                None => format!("{ratio:.2}×"),
            });
        }
    }
    row
}

fn cost_row(line: &Line) -> Vec<String> {
    let mut row = vec![line.title.to_owned()];
    row.extend(line.cells.iter().map(|cell| cell.cost.show()));
    row
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

    #[test]
    fn ratios_stand_beside_their_goals() {
        let cell = |rate| Cell {
            rate: Figure { rounds: vec![rate] },
            cost: Figure { rounds: vec![1.0] },
        };
        let line = Line {
            title: "upserts",
            goals: [Some(1.4), None],
            cells: [1_000.0, 1_500.0, 100.0, 50.0].map(cell).to_vec(),
        };
        assert_eq!(rate_row(&line)[5..], ["1.50× (1.4×)", "0.50×"]);
    }
}
