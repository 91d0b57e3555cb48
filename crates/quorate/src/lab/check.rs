//! `quorate lab check`: correctness alone, of any server that speaks the protocol.

use std::io::{Error, Result};
use std::time::Duration;

use lab::check::{self, Plan};
use lab::host::{cores, resolve};
use lab::url::Url;

use super::client::Client;

#[derive(Debug, clap::Args)]
pub struct Options {
    /// A server; the one that takes writes first, then those that may take its place
    #[arg(long, required = true, value_name = "postgres://…")]
    url: Vec<Url>,
    /// How long the workloads run
    #[arg(long, value_name = "N", default_value_t = 15)]
    seconds: u64,
    /// Sessions of each workload
    #[arg(long, value_name = "N", default_value_t = 6)]
    sessions: usize,
    /// A command of the shell that harms the servers, run after a third of the time
    #[arg(long, value_name = "COMMAND")]
    fault: Option<String>,
    /// Fail where only the order of time is broken, too
    #[arg(long)]
    strict: bool,
    /// For everything that is drawn
    #[arg(long, default_value_t = 7)]
    seed: u64,
}

/// Runs the checks.
pub fn run(options: &Options) -> Result<()> {
    let mut targets = Vec::new();
    for url in &options.url {
        targets.push(url.target(resolve(&url.host, url.port)?));
    }
    let client = Client::start(cores())?;
    let plan = Plan {
        targets,
        sessions: options.sessions.max(3),
        length: Duration::from_secs(options.seconds),
        fault: options.fault.clone(),
        seed: options.seed,
    };
    let findings = check::run(client.driver(), &plan)?;
    let mut broken = 0;
    for finding in &findings {
        let held = finding.wrong.is_empty();
        println!("{} {}", if held { "ok   " } else { "WRONG" }, finding.what);
        for wrong in &finding.wrong {
            println!("        {wrong}");
        }
        broken += usize::from(!held && (!finding.is_strict || options.strict));
    }
    match broken {
        0 => Ok(()),
        _ => Err(Error::other(format!(
            "{broken} of {} checks did not hold",
            findings.len()
        ))),
    }
}
