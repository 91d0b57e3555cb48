//! `quorate status`: how a cluster is, and what every node of it says of itself.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use node::real::host;
use serde::Serialize;

use crate::health::{self, Answer, Looked};
use crate::layout::{self, NodeAddress};
use crate::{DataDir, Failure};

/// A node that does not answer within this is shown as silent.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Ends with 0 if the cluster is healthy, 1 if it is degraded, 2 if no writes are possible (no majority,
no leader, or writes wait), 3 if nothing runs, and 4 if it cannot be told.")]
pub struct Options {
    #[command(flatten)]
    dir: DataDir,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// One node, as shown. A figure that nobody can tell is null.
#[derive(Clone, Debug, Serialize)]
struct Shown {
    /// Its name.
    name: String,
    /// Where it takes clients.
    sql_address: SocketAddr,
    /// Its process, while it runs.
    pid: Option<i32>,
    /// `leader`, `follower`, `learner`; `starting`; `silent` when it runs and does not answer; `down`;
    /// `outdated` when others do not hear it.
    role: String,
    /// Whether commits wait for it, as the leader says: a word of `pg_stat_replication`.
    sync_state: Option<String>,
    /// The group.
    group: Option<u64>,
    /// The term.
    term: Option<u64>,
    /// The newest position in its operating system.
    received: Option<u64>,
    /// The newest position on its disk.
    flushed: Option<u64>,
    /// The newest position that it has applied.
    applied: Option<u64>,
    /// The commit index as it knows it.
    commit: Option<u64>,
}

#[derive(Serialize)]
struct Status {
    /// The first words of `summary`.
    health: &'static str,
    /// The first line for people.
    summary: String,
    exit_code: u8,
    nodes: Vec<Shown>,
}

/// Prints how the cluster is, and its nodes.
pub fn run(options: &Options) -> Result<ExitCode, Failure> {
    let nodes = layout::nodes_of(&options.dir.data)?;
    let looked = look(&nodes);
    let health = health::judge(&looked);
    let shown: Vec<_> = nodes
        .iter()
        .zip(&looked)
        .map(|((node, dir), one)| show(node, dir, one, health::leader(&looked)))
        .collect();
    let exit_code = health.state.exit_code();
    crate::end_with_the_reader();
    if options.json {
        let status = Status {
            health: health.state.name(),
            summary: health.to_string(),
            exit_code,
            nodes: shown,
        };
        let text = serde_json::to_string(&status).map_err(|error| error.to_string())?;
        println!("{text}");
    } else {
        println!("{health}");
        print_table(&shown);
    }
    Ok(ExitCode::from(exit_code))
}

/// The nodes of a directory as they are now. All are asked at once, so that those that are silent
/// cost one timeout and not several.
pub fn look(nodes: &[(NodeAddress, PathBuf)]) -> Vec<Looked> {
    let running = nodes.iter().map(|(_, dir)| host::owner(dir).is_some());
    let running: Vec<bool> = running.collect();
    let asked = nodes.iter().zip(&running).filter(|(_, runs)| **runs);
    let addresses: Vec<_> = asked.map(|((node, _), _)| node.http_address).collect();
    let mut answers = host::http_get_all(&addresses, "/status", ANSWER_TIMEOUT).into_iter();
    let mut looked = Vec::new();
    for ((node, _), runs) in nodes.iter().zip(running) {
        let text = runs.then(|| answers.next()).flatten().and_then(Result::ok);
        let starts = text.as_deref().is_some_and(|text| is_starting(text, node));
        let answer = text.and_then(|text| serde_json::from_str::<Answer>(&text).ok());
        looked.push(Looked {
            name: node.name.clone(),
            voter: node.voter,
            runs,
            answer: answer.filter(|answer| answer.name == node.name),
            starting: starts,
            outdated: false,
        });
    }
    let answers = looked.iter().filter_map(|one| one.answer.as_ref());
    let members = answers.flat_map(|answer| &answer.members);
    let outdated = members.filter(|member| member.outdated);
    let outdated: Vec<String> = outdated.map(|member| member.name.clone()).collect();
    for one in &mut looked {
        one.outdated = outdated.contains(&one.name);
    }
    looked
}

/// Whether a status page is that of a node that does not serve yet.
fn is_starting(page: &str, node: &NodeAddress) -> bool {
    let page: serde_json::Value = serde_json::from_str(page).unwrap_or_default();
    page["role"] == health::STARTING && page["name"] == node.name.as_str()
}

fn show(node: &NodeAddress, dir: &Path, looked: &Looked, leader: Option<&Answer>) -> Shown {
    let figure = |figure: fn(&Answer) -> u64| looked.answer.as_ref().map(figure);
    let mut members = leader.into_iter().flat_map(|leader| &leader.members);
    let member = members.find(|member| member.name == node.name);
    Shown {
        name: node.name.clone(),
        sql_address: node.sql_address,
        pid: host::owner(dir),
        role: looked.role().to_owned(),
        sync_state: member.and_then(|member| member.sync_state.clone()),
        group: figure(|answer| answer.group),
        term: figure(|answer| answer.term),
        received: figure(|answer| answer.received),
        flushed: figure(|answer| answer.flushed),
        applied: figure(|answer| answer.applied),
        commit: figure(|answer| answer.commit),
    }
}

fn print_table(nodes: &[Shown]) {
    println!(
        "{:<6}{:<18}{:>8}  {:<10}{:<10}{:>6}{:>9}{:>12}{:>12}{:>12}{:>12}",
        "name",
        "sql address",
        "pid",
        "role",
        "sync",
        "group",
        "term",
        "received",
        "flushed",
        "applied",
        "commit"
    );
    let text = |figure: Option<u64>| figure.map_or("-".to_owned(), |figure| figure.to_string());
    for node in nodes {
        println!(
            "{:<6}{:<18}{:>8}  {:<10}{:<10}{:>6}{:>9}{:>12}{:>12}{:>12}{:>12}",
            node.name,
            node.sql_address.to_string(),
            text(node.pid.map(|pid| pid as u64)),
            node.role,
            node.sync_state.as_deref().unwrap_or("-"),
            text(node.group),
            text(node.term),
            text(node.received),
            text(node.flushed),
            text(node.applied),
            text(node.commit),
        );
    }
}
