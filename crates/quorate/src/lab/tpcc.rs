//! `quorate lab tpcc`: loads, runs and checks TPC-C on a server that is running.

use std::io::{Error, IsTerminal, Result, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

use base::env::{Env, LocalBoxFuture, Reactor};
use clap::{Args, Subcommand};
use lab::client::Failure;
use lab::host::{pause, peak_memory_bytes, processor_micros, resolve, scratch_dir, write_file};
use lab::session::Target;
use lab::tpcc::consistency::{self, Checked};
use lab::tpcc::load::{self, Progress};
use lab::tpcc::report::{ClientCosts, Figures};
use lab::tpcc::run::{Plan, Run};
use lab::tpcc::{stub, DISTRICTS_PER_WAREHOUSE};
use lab::url::Url;
use node::real::{host, RealEnv, RealOptions};

/// How often progress is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// Transactions under way at the end of a run are waited for so long.
const END_WAIT_MAX: Duration = Duration::from_secs(70);

/// A client that is busier than this measures itself.
const BUSY_PERCENT: f64 = 85.0;

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
            let checked = client.check(&server.target()?)?;
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

/// This process's reactors.
pub struct Client {
    env: Arc<dyn Env>,
    real: Arc<RealEnv>,
    reactors: usize,
    /// Nothing is written there; removed at the end.
    #[allow(dead_code)]
    dir: lab::host::ScratchDir,
}

impl Client {
    /// Starts so many reactors for sessions.
    pub fn start(reactors: usize) -> Result<Client> {
        host::raise_file_limit();
        let dir = scratch_dir("quorate-lab-client")?;
        let real = RealEnv::start(&RealOptions {
            name: "lab".to_owned(),
            data_dir: dir.path().to_owned(),
            session_reactors: reactors,
            spin: Duration::ZERO,
            routes: Vec::new(),
        })?;
        Ok(Client {
            env: real.clone(),
            real,
            reactors,
            dir,
        })
    }

    /// Checks the consistency conditions.
    pub fn check(&self, target: &Target) -> Result<Vec<Checked>> {
        let (env, target) = (self.env.clone(), target.clone());
        let checking = move || async move { consistency::check(&*env, &target).await };
        self.real.block_on("check", checking)?.map_err(explain)
    }

    /// Makes the tables and loads them, over so many sessions at once.
    pub fn load(&self, target: &Target, warehouses: u64, sessions: usize, seed: u64) -> Result<()> {
        let (env, to) = (self.env.clone(), target.clone());
        let creating = move || async move { load::create_tables(&*env, &to).await };
        self.real.block_on("create", creating)?.map_err(explain)?;
        let progress = Progress::new(warehouses);
        let (sender, receiver) = std::sync::mpsc::channel();
        for index in 0..sessions.max(1) {
            let (env, target) = (self.env.clone(), target.clone());
            let (progress, sender) = (progress.clone(), sender.clone());
            let start = Box::new(move || -> LocalBoxFuture<'static, ()> {
                Box::pin(async move {
                    let loaded = load::load_pieces(&*env, &target, &progress, seed).await;
                    // The receiver lasts until all have reported.
                    let _ = sender.send(loaded);
                })
            });
            let reactor = Reactor::Session(index % self.reactors);
            self.env.spawn(reactor, "load", start);
        }
        drop(sender);
        let shows = std::io::stderr().is_terminal();
        loop {
            match receiver.recv_timeout(LOOK) {
                Ok(loaded) => loaded.map_err(explain)?,
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) if shows => show_bar(&progress),
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
            }
        }
        if shows {
            eprintln!("\r{:70}\r", "");
        }
        Ok(())
    }

    /// Runs a plan: a warm-up, then the measurement.
    pub fn run(&self, plan: &Plan, warm_up: Duration, seconds: Duration) -> Result<Figures> {
        let shows = std::io::stderr().is_terminal();
        let run = Run::start(&self.env, plan);
        pause(warm_up);
        let this = [std::process::id()];
        let before = processor_micros(&this)?;
        let begin = self.env.now();
        run.begin(begin);
        let mut last = 0;
        while self.env.now().since(begin) < seconds {
            pause(LOOK.min(seconds - self.env.now().since(begin)));
            let passed = self.env.now().since(begin).as_secs();
            if shows && passed != last {
                last = passed;
                let done = run.so_far().completed();
                let rate = done as f64 / self.env.now().since(begin).as_secs_f64();
                eprint!(
                    "\r{passed:5} s {rate:10.0} transactions/s {:8} waiting ",
                    run.waiting()
                );
            }
        }
        if shows {
            eprintln!("\r{:70}\r", "");
        }
        let measured = run.finish();
        let took = self.env.now().since(begin).as_secs_f64();
        let micros = processor_micros(&this)? - before;
        run.stop();
        let stopping = self.env.now();
        while !run.has_ended() && self.env.now().since(stopping) < END_WAIT_MAX {
            pause(Duration::from_millis(10));
        }
        let costs = ClientCosts {
            processor_micros: micros / measured.completed().max(1) as f64,
            busy_percent: micros / took / 1e4 / plan.reactors as f64,
            memory_bytes: peak_memory_bytes()?,
        };
        Ok(Figures::of(plan, &measured, took, costs))
    }
}

fn show_bar(progress: &Progress) {
    let rows = progress.rows.load(Ordering::Relaxed);
    let share = (rows as f64 / progress.rows_expected as f64).min(1.0);
    let full = (share * 40.0) as usize;
    eprint!(
        "\r[{:40}] {:3.0}% {rows} rows ",
        "#".repeat(full),
        share * 100.0
    );
    // A terminal that is gone is no reason to stop.
    let _ = std::io::stderr().flush();
}

/// What a server or a connection said.
pub fn explain(failure: Failure) -> Error {
    match failure {
        Failure::Refused(error) | Failure::Broken(error) => Error::other(format!(
            "{}: {}",
            error.state().as_str(),
            crate::explain(&error)
        )),
    }
}

fn run_load(options: &Load) -> Result<()> {
    let client = Client::start(options.connections.clamp(1, host::cores()))?;
    let target = options.server.target()?;
    let start = client.env.now();
    client.load(
        &target,
        options.warehouses,
        options.connections,
        options.seed,
    )?;
    println!(
        "{} warehouses loaded in {:.1} s",
        options.warehouses,
        client.env.now().since(start).as_secs_f64()
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
    let figures = client.run(&plan, Duration::from_secs(options.warm_up), seconds)?;
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
    let checked = client.check(&target)?;
    println!("{}.", consistency::verdict(&checked));
    match checked.iter().any(|one| one.broken > 0) {
        true => Err(Error::other("the database is not consistent")),
        false => Ok(()),
    }
}

fn run_stub(options: &Stub) -> Result<()> {
    host::hold_stop_signals();
    let client = Client::start(host::cores())?;
    stub::start(&client.env, &options.listen.to_string())?;
    println!("answers at {}", options.listen);
    while host::wait_for_stop(Duration::from_secs(3_600)).is_none() {}
    Ok(())
}
