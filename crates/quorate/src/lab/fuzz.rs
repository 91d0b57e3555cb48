//! `quorate lab fuzz`: random statements, here and on PostgreSQL, and the answers compared.

use std::io::{Error, Result};
use std::net::SocketAddr;
use std::time::Duration;

use lab::fuzz::servers::Answer;
use lab::fuzz::{self, compare, Difference, Findings, Plan};
use lab::host::resolve;
use lab::url::Url;
use node::real::host::http_get;

use super::client::Client;
use crate::health::Answer as StatusPage;

/// A statement that keeps its reactor for longer without giving way keeps others waiting.
const STRETCH_MAX: Duration = Duration::from_millis(20);

/// A status page that does not come within this is none.
const STATUS_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, clap::Args)]
pub struct Options {
    /// A server of Quorate
    #[arg(long, value_name = "postgres://…")]
    url: Url,
    /// A server of PostgreSQL 15; both get tables t0, t1, … in the database that --url names
    #[arg(long, value_name = "postgres://…")]
    beside: Url,
    /// How long it runs at most
    #[arg(long, value_name = "N", default_value_t = 60)]
    seconds: u64,
    /// How many statements it runs at most
    #[arg(long, value_name = "N", default_value_t = u64::MAX)]
    statements: u64,
    /// Differences after which it ends
    #[arg(long, value_name = "N", default_value_t = 20)]
    differences: usize,
    /// Queries of joins and subqueries inside of one another alone
    #[arg(long)]
    nested: bool,
    /// Print how often every function, operator and construct was generated
    #[arg(long)]
    counts: bool,
    /// Quorate's status page: a statement that keeps its reactor for more than 20 ms without giving way
    /// is a failure
    #[arg(long, value_name = "HOST:PORT")]
    status: Option<SocketAddr>,
    /// For everything that is drawn
    #[arg(long, default_value_t = 7)]
    seed: u64,
}

/// Runs it; fails where a difference is not explained.
pub fn run(options: &Options) -> Result<()> {
    let address = |url: &Url| -> Result<String> { Ok(resolve(&url.host, url.port)?.to_string()) };
    let client = Client::start(1)?;
    let plan = Plan {
        ours: address(&options.url)?,
        theirs: address(&options.beside)?,
        database: options.url.database.clone(),
        seed: options.seed,
        length: Duration::from_secs(options.seconds),
        statements_max: options.statements,
        differences_max: options.differences,
        nested_only: options.nested,
    };
    let findings = fuzz::run(client.driver(), &plan, show)?;
    summarize(&findings, options.counts);
    if let Some(address) = options.status {
        check_stretch(address)?;
    }
    match findings.differences.len() {
        0 => Ok(()),
        count => Err(Error::other(format!(
            "{count} differences are not explained"
        ))),
    }
}

/// Looks for how long statements have kept their reactors since the server has started.
fn check_stretch(address: SocketAddr) -> Result<()> {
    let page = http_get(address, "/status", STATUS_TIMEOUT)?;
    let page: StatusPage = serde_json::from_str(&page).map_err(Error::other)?;
    let Some(stretch) = page.longest_stretch else {
        return Ok(());
    };
    let longest = Duration::from_micros(stretch.microseconds);
    let said = format!("a {} kept its reactor for {longest:?}", stretch.command);
    println!("{said} at most");
    match longest <= STRETCH_MAX {
        true => Ok(()),
        false => Err(Error::other(said)),
    }
}

fn show(difference: &Difference) {
    for sql in &difference.before {
        println!("{sql};");
    }
    println!("{};", difference.sql);
    println!(
        "-- here:       {}",
        told(&difference.ours, &difference.theirs)
    );
    println!(
        "-- PostgreSQL: {}\n",
        told(&difference.theirs, &difference.ours)
    );
}

/// An answer, of its rows those that the other one does not have.
fn told(answer: &Answer, other: &Answer) -> String {
    let others: &[_] = match other {
        Answer::Rows(_, rows, _) => rows,
        _ => &[],
    };
    match answer {
        Answer::Refused(state, message) => format!("{state} {message}"),
        Answer::Broken(message) => format!("the connection broke: {message}"),
        Answer::Rows(columns, rows, tag) => {
            let own = rows.iter().filter(|row| !others.contains(row)).take(3);
            let own: Vec<_> = own.collect();
            format!("{tag} {columns:?}, among them {own:?}")
        }
    }
}

fn summarize(findings: &Findings, counts: bool) {
    println!(
        "{} queries, {} changes; both refused {}",
        findings.queries, findings.changes, findings.refused
    );
    for (rule, count) in compare::RULES.iter().zip(&findings.explained) {
        println!("{count:>8} explained: {} ({})", rule.name, rule.why);
    }
    let least = findings.counts.values().min().copied().unwrap_or(0);
    let kinds = findings.counts.len();
    println!("{kinds} functions, operators, casts and constructs, each at least {least} times");
    if counts {
        for (name, count) in &findings.counts {
            println!("{count:>8} {name}");
        }
    }
}
