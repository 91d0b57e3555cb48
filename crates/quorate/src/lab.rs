//! `quorate lab`: measures Quorate beside PostgreSQL, on this machine.

use clap::{Args, Subcommand};

use crate::Failure;

mod check;
mod client;
mod compare;
mod fuzz;
mod relay;
mod run;
mod tpcc;

#[derive(Debug, Args)]
pub struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the experiments
    List,
    /// Run experiments, on systems that it starts itself, and write a page and JSON
    Run(run::Options),
    /// Show what changed between two reports, beyond noise
    Compare(compare::Options),
    /// Write a report's figures into a document, in the places marked for them
    Document(compare::DocumentOptions),
    /// Check the correctness of a running server, under a fault of your own
    Check(check::Options),
    /// Compare the answers to random statements with PostgreSQL's
    Fuzz(fuzz::Options),
    /// TPC-C against a running server
    #[command(subcommand)]
    Tpcc(tpcc::Command),
    /// Pass TCP connections on with delay, bandwidth, loss and cut-offs
    Relay(relay::Options),
}

/// Does what the command says.
pub fn run(options: &Options) -> Result<(), Failure> {
    if matches!(options.command, Command::List | Command::Compare(_)) {
        crate::end_with_the_reader();
    }
    match &options.command {
        Command::List => run::list(),
        Command::Run(options) => run::run(options),
        Command::Compare(options) => compare::run(options),
        Command::Document(options) => compare::document(options),
        Command::Check(options) => check::run(options),
        Command::Fuzz(options) => fuzz::run(options),
        Command::Tpcc(command) => tpcc::run(command),
        Command::Relay(options) => relay::run(options),
    }
    .map_err(|error| error.to_string())
}
