//! `quorate lab tpcc`: loads, runs and checks TPC-C on a server that is running.

use std::io::{Error, Result};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use lab::driver::BUSY_PERCENT;
use lab::host::{resolve, write_file};
use lab::session::Target;
use lab::tpcc::consistency;
use lab::tpcc::run::Plan;
use lab::tpcc::{stub, DISTRICTS_PER_WAREHOUSE};
use lab::url::Url;
use node::real::host;

use super::client::Client;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make the tables anew and fill them
    Load(Load),
    /// Drive terminals, measure, and check the consistency conditions
    Run(RunOptions),
    /// Check the consistency conditions
    Check(Server),
    /// Answer as a server that knows all answers, to measure the client alone
    Stub(Stub),
}

/// A server that is running.
#[derive(Debug, Args)]
pub struct Server {
    /// Where it is
    #[arg(
        long,
        value_name = "postgres://…",
        default_value = "postgres://127.0.0.1:5433"
    )]
    url: Url,
}

#[derive(Debug, Args)]
pub struct Load {
    #[command(flatten)]
    server: Server,
    /// How many warehouses, about 100 MB each
    #[arg(long, value_name = "N", default_value_t = 1)]
    warehouses: u64,
    /// Sessions that load at once
    #[arg(long, value_name = "N", default_value_t = 4)]
    connections: usize,
    /// For everything that is drawn
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Debug, Args)]
pub struct RunOptions {
    #[command(flatten)]
    server: Server,
    /// How many warehouses were loaded
    #[arg(long, value_name = "N", default_value_t = 1)]
    warehouses: u64,
    /// Sessions; terminals share them (default: 16, or one per warehouse up to 64)
    #[arg(long, value_name = "N")]
    connections: Option<usize>,
    /// Threads that drive them
    #[arg(long, value_name = "N", default_value_t = 2)]
    threads: usize,
    /// Seconds before the measurement
    #[arg(long, value_name = "N", default_value_t = 10)]
    warm_up: u64,
    /// Seconds of the measurement
    #[arg(long, value_name = "N", default_value_t = 60)]
    seconds: u64,
    /// No think and keying times: every session works all the time
    #[arg(long)]
    no_wait: bool,
    /// Wait for each statement before the next is sent
    #[arg(long)]
    one_by_one: bool,
    /// The isolation level
    #[arg(long, value_name = "LEVEL", default_value = "serializable")]
    isolation: String,
    /// synchronous_commit of all sessions
    #[arg(long, value_name = "LEVEL")]
    commit: Option<String>,
    /// Do not check the consistency conditions afterwards
    #[arg(long)]
    no_check: bool,
    /// For everything that is drawn
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// Where the figures go, in JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Stub {
    /// Where it listens
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:5999")]
    listen: SocketAddr,
}

/// Does what the command says.
pub fn run(command: &Command) -> Result<()> {
    match command {
        Command::Load(options) => run_load(options),
        Command::Run(options) => run_run(options),
        Command::Check(server) => {
            let client = Client::start(1)?;
            let checked = client.driver().check_tpcc(&server.target()?)?;
            println!("{}", consistency::verdict(&checked));
            match checked.iter().any(|one| one.broken > 0) {
                true => Err(Error::other("the database is not consistent")),
                false => Ok(()),
            }
        }
        Command::Stub(options) => run_stub(options),
    }
}

impl Server {
    fn target(&self) -> Result<Target> {
        Ok(self.url.target(resolve(&self.url.host, self.url.port)?))
    }
}

fn run_load(options: &Load) -> Result<()> {
    let client = Client::start(options.connections.clamp(1, host::cores()))?;
    let target = options.server.target()?;
    let start = client.driver().env().now();
    client.driver().load_tpcc(
        &target,
        options.warehouses,
        options.connections,
        options.seed,
    )?;
    println!(
        "{} warehouses loaded in {:.1} s",
        options.warehouses,
        client.driver().env().now().since(start).as_secs_f64()
    );
    Ok(())
}

fn run_run(options: &RunOptions) -> Result<()> {
    let client = Client::start(options.threads.max(1))?;
    let mut target = options.server.target()?;
    target.one_by_one = options.one_by_one;
    let isolation = ("default_transaction_isolation", Some(&options.isolation));
    let commit = ("synchronous_commit", options.commit.as_ref());
    for (name, value) in [isolation, commit] {
        if let Some(value) = value {
            target.settings.push((name.to_owned(), value.clone()));
        }
    }
    let usual = (options.warehouses as usize).clamp(16, 64);
    let plan = Plan {
        target: target.clone(),
        warehouses: options.warehouses,
        terminals_per_warehouse: DISTRICTS_PER_WAREHOUSE,
        connections: options.connections.unwrap_or(usual),
        wait: !options.no_wait,
        reactors: options.threads.max(1),
        seed: options.seed,
    };
    let seconds = Duration::from_secs(options.seconds);
    let figures = client
        .driver()
        .run_tpcc(&plan, Duration::from_secs(options.warm_up), seconds)?;
    println!("{}", figures.show());
    if figures.client.busy_percent > BUSY_PERCENT {
        println!("Warning: the client was busy all the time; it is what was measured.");
    }
    if let Some(path) = &options.json {
        let text = serde_json::to_string_pretty(&figures).map_err(Error::other)?;
        write_file(path, &text)?;
    }
    if options.no_check {
        return Ok(());
    }
    let checked = client.driver().check_tpcc(&target)?;
    println!("{}.", consistency::verdict(&checked));
    match checked.iter().any(|one| one.broken > 0) {
        true => Err(Error::other("the database is not consistent")),
        false => Ok(()),
    }
}

fn run_stub(options: &Stub) -> Result<()> {
    host::hold_stop_signals();
    let client = Client::start(host::cores())?;
    stub::start(client.driver().env(), &options.listen.to_string())?;
    println!("answers at {}", options.listen);
    while host::wait_for_stop(Duration::from_secs(3_600)).is_none() {}
    Ok(())
}
