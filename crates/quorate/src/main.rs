//! `quorate`: starts, stops, watches and checks clusters and their nodes.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

mod allocator;
mod cert;
mod check;
mod groups;
mod health;
mod init;
mod lab;
mod layout;
mod manual;
mod members;
mod privacy;
mod settings;
mod sim;
mod start;
mod status;
mod stop;
mod up;

/// From now on the process ends quietly when nobody reads its output any more: `… | head`.
/// For commands that print and do nothing else.
fn end_with_the_reader() {
    // SAFETY: SIG_DFL is no handler that could do anything unsafe.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

/// What a command says when it cannot do what it was asked to.
type Failure = String;

/// An error as a line: what happened, then what is known of it.
fn explain(error: &base::Error) -> String {
    let fields = error.fields();
    let more: Vec<&str> = [&fields.detail, &fields.hint]
        .into_iter()
        .filter_map(Option::as_deref)
        .collect();
    match more.is_empty() {
        true => error.message().to_owned(),
        false => format!("{} ({})", error.message(), more.join(" ")),
    }
}

/// A distributed SQL database that speaks PostgreSQL's protocol.
#[derive(Debug, Parser)]
#[command(name = "quorate", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start a cluster on this machine, one process per node, until Ctrl-C
    Up(up::Options),
    /// Start one node of a directory that `up` has made
    Start(start::Options),
    /// Stop one node, or all nodes of a cluster's directory
    Stop(DataDir),
    /// Make the directories of a cluster on several machines
    Init(init::Options),
    /// Make certificates for a cluster and its clients
    Cert(cert::Options),
    /// Show the nodes of a cluster
    Status(status::Options),
    /// Add, remove and change the nodes of a cluster
    Node(members::NodeOptions),
    /// Add and show the groups of a cluster
    Group(groups::GroupOptions),
    /// Hand leadership over to another node
    Switchover(members::SwitchoverOptions),
    /// Let one node go on alone with what it has, when there is no majority any more
    Promote(members::PromoteOptions),
    /// Check the files of a node, or of all nodes of a cluster, while they are stopped
    Check(check::Options),
    /// Measure Quorate beside PostgreSQL, on this machine
    Lab(lab::Options),
    /// Run whole clusters in simulated worlds, and judge what they do
    Sim(sim::Options),
    /// Print every setting: meaning, unit, default, values, and when it takes effect
    Settings,
    /// Print what a shell runs to complete these commands
    Completions(manual::CompletionsOptions),
    /// Write a manual page for each of these commands
    Man(manual::ManOptions),
}

/// Which directory a command is about.
#[derive(Debug, Args)]
struct DataDir {
    /// The directory of a cluster, or of one node in it
    #[arg(long, value_name = "DIR", default_value = "./quorate-data")]
    data: PathBuf,
}

/// What a command line ends with that cannot be read: `EX_USAGE` of sysexits.h, because the small
/// numbers mean something where a command says so.
const EXIT_USAGE: u8 = 64;

fn main() -> ExitCode {
    let command = match Cli::try_parse() {
        Ok(cli) => cli.command,
        Err(error) => {
            let code = if error.use_stderr() { EXIT_USAGE } else { 0 };
            // Nobody can be told that the output is closed.
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    // The laboratory starts PostgreSQL as another user, who must be able to read what it makes.
    if !matches!(command, Command::Lab(_)) {
        node::real::host::make_all_private();
    }
    let failed = match command {
        Command::Status(_) => ExitCode::from(health::EXIT_UNKNOWN),
        _ => ExitCode::FAILURE,
    };
    run(&command).unwrap_or_else(|failure| {
        eprintln!("quorate: {failure}");
        failed
    })
}

fn run(command: &Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Up(options) => up::run(options),
        Command::Start(options) => start::run(options),
        Command::Stop(options) => stop::run(&options.data),
        Command::Init(options) => init::run(options),
        Command::Cert(options) => cert::run(options),
        Command::Status(options) => return status::run(options),
        Command::Node(options) => members::run(options),
        Command::Group(options) => groups::run(options),
        Command::Switchover(options) => members::switchover(options),
        Command::Promote(options) => members::promote(options),
        Command::Check(options) => check::run(options),
        Command::Lab(options) => lab::run(options),
        Command::Sim(options) => sim::run(options),
        Command::Settings => settings::run(),
        Command::Completions(options) => manual::completions(options),
        Command::Man(options) => manual::man(options),
    }
    .map(|()| ExitCode::SUCCESS)
}
