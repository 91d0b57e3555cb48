//! `quorate lab`: measures Quorate beside PostgreSQL, on this machine.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use lab::commit_loop::{self, Extent};
use lab::host::{read_file, run as run_command, scratch_dir};
use lab::latency;
use lab::pgbench;
use lab::report::replace_section;
use lab::systems::Systems;

use crate::Failure;

mod relay;
mod tpcc;

#[derive(Debug, Args)]
pub struct Options {
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(Debug, Subcommand)]
enum Experiment {
    /// One session inserts row by row and commits each one, at every level
    CommitLoop(CommitLoop),
    /// Many clients of pgbench: upserts, reads, TPC-B
    Pgbench(Pgbench),
    /// One client's commits while the servers are 0, 5 and 20 ms apart
    Latency(Latency),
    /// TPC-C against a running server
    #[command(subcommand)]
    Tpcc(tpcc::Command),
    /// Pass TCP connections on with delay, bandwidth, loss and cut-offs
    Relay(relay::Options),
}

#[derive(Debug, Args)]
struct CommitLoop {
    /// Rounds over all systems and levels; figures are medians over them
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Inserts of the one-by-one form
    #[arg(long, default_value_t = 2_000)]
    inserts: usize,
    /// A document whose section `commit-loop` receives the tables
    #[arg(long, value_name = "FILE")]
    document: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct Pgbench {
    /// Rounds over all systems; figures are medians over them
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds of one run
    #[arg(long, default_value_t = 5)]
    seconds: usize,
    /// A workload to run, instead of all; may be given again
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Another build of Quorate to measure beside, in PostgreSQL's place
    #[arg(long, value_name = "PROGRAM")]
    beside: Option<PathBuf>,
    /// A document whose section `pgbench` receives the tables
    #[arg(long, value_name = "FILE")]
    document: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct Latency {
    /// Rounds over all distances; figures are medians over them
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds of one run
    #[arg(long, default_value_t = 2)]
    seconds: usize,
    /// A document whose section `latency` receives the table
    #[arg(long, value_name = "FILE")]
    document: Option<PathBuf>,
}

/// Runs an experiment and prints its report.
pub fn run(options: &Options) -> Result<(), Failure> {
    match &options.experiment {
        Experiment::CommitLoop(options) => run_commit_loop(options),
        Experiment::Pgbench(options) => run_pgbench(options),
        Experiment::Latency(options) => run_latency(options),
        Experiment::Tpcc(command) => tpcc::run(command),
        Experiment::Relay(options) => relay::run(options),
    }
    .map_err(|error| error.to_string())
}

fn run_commit_loop(options: &CommitLoop) -> std::io::Result<()> {
    let dir = scratch_dir("quorate-lab")?;
    let program = std::env::current_exe()?;
    let extent = Extent {
        rounds: options.rounds,
        single_inserts: options.inserts,
    };
    let cells = commit_loop::run_all(&program, dir.path(), extent)?;
    let report = format!(
        "{}\n\n{}",
        conditions(&program, options.rounds)?,
        commit_loop::report(&cells)
    );
    println!("{report}");
    match &options.document {
        Some(document) => replace_section(document, "commit-loop", &report),
        None => Ok(()),
    }
}

fn run_pgbench(options: &Pgbench) -> std::io::Result<()> {
    let dir = scratch_dir("quorate-lab")?;
    let program = std::env::current_exe()?;
    let extent = pgbench::Extent {
        rounds: options.rounds,
        seconds: options.seconds,
        only: options.only.clone(),
    };
    let systems = Systems::start(&program, options.beside.as_deref(), dir.path())?;
    let lines = pgbench::run_all(&systems, dir.path(), &extent)?;
    let checked = match options.only.is_empty() {
        true => pgbench::check_all(&systems, dir.path(), options.seconds)?,
        false => String::new(),
    };
    let report = format!(
        "{}\n\n{}\n{checked}",
        conditions(&program, options.rounds)?,
        pgbench::report(&systems, &lines)
    );
    println!("{report}");
    match &options.document {
        Some(document) => replace_section(document, "pgbench", &report),
        None => Ok(()),
    }
}

fn run_latency(options: &Latency) -> std::io::Result<()> {
    let dir = scratch_dir("quorate-lab")?;
    let program = std::env::current_exe()?;
    let extent = latency::Extent {
        rounds: options.rounds,
        seconds: options.seconds,
    };
    let courses = latency::run_all(&program, dir.path(), extent)?;
    let report = format!(
        "{}\n\n{}",
        conditions(&program, options.rounds)?,
        latency::report(&courses)
    );
    println!("{report}");
    match &options.document {
        Some(document) => replace_section(document, "latency", &report),
        None => Ok(()),
    }
}

/// What was measured, and where: versions, cores, rounds.
fn conditions(program: &std::path::Path, rounds: usize) -> std::io::Result<String> {
    use std::process::Command;
    let quorate = run_command(Command::new(program).arg("--version"))?;
    let server = PathBuf::from(lab::postgres::DEBIAN_BIN).join("postgres");
    let postgres = run_command(Command::new(server).arg("--version"))?;
    let cpus = read_file("/proc/cpuinfo".as_ref())?;
    let cores = cpus
        .lines()
        .filter(|line| line.starts_with("processor"))
        .count();
    Ok(format!(
        "{} beside {}; {cores} cores, one disk; {rounds} rounds, interleaved; medians (lowest–highest).",
        quorate.trim(),
        postgres.trim(),
    ))
}
