//! `quorate lab`: measures Quorate beside PostgreSQL, on this machine.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use lab::commit_loop::{self, Extent};
use lab::host::{read_file, run as run_command, scratch_dir};
use lab::report::replace_section;

use crate::Failure;

#[derive(Debug, Args)]
pub struct Options {
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(Debug, Subcommand)]
enum Experiment {
    /// One session inserts row by row and commits each one, at every level
    CommitLoop(CommitLoop),
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

/// Runs an experiment and prints its report.
pub fn run(options: &Options) -> Result<(), Failure> {
    match &options.experiment {
        Experiment::CommitLoop(options) => run_commit_loop(options),
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
        conditions(&program, options)?,
        commit_loop::report(&cells)
    );
    println!("{report}");
    match &options.document {
        Some(document) => replace_section(document, "commit-loop", &report),
        None => Ok(()),
    }
}

/// What was measured, and where: versions, cores, rounds.
fn conditions(program: &std::path::Path, options: &CommitLoop) -> std::io::Result<String> {
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
        "{} beside {}; {cores} cores, one disk; {} rounds, interleaved; medians (lowest–highest).",
        quorate.trim(),
        postgres.trim(),
        options.rounds
    ))
}
