//! `quorate status`: what every node of a cluster says of itself.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use node::real::host;
use serde::{Deserialize, Serialize};

use crate::layout::{self, NodeAddress};
use crate::{DataDir, Failure};

/// A node that does not answer within this is shown as silent.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    dir: DataDir,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// One node, as shown. A figure that nobody can tell is null.
#[derive(Clone, Debug, Serialize)]
pub struct Shown {
    /// Its name.
    pub name: String,
    /// Where it takes clients.
    pub sql_address: SocketAddr,
    /// Its process, while it runs.
    pub pid: Option<i32>,
    /// `leader`, `follower`, `learner`; `silent` when it runs and does not answer; `down`.
    pub role: String,
    /// The group.
    pub group: Option<u64>,
    /// The term.
    pub term: Option<u64>,
    /// The newest position in its operating system.
    pub received: Option<u64>,
    /// The newest position on its disk.
    pub flushed: Option<u64>,
    /// The newest position that it has applied.
    pub applied: Option<u64>,
    /// The commit index as it knows it.
    pub commit: Option<u64>,
    /// Whether clients can begin sessions there.
    #[serde(skip)]
    pub ready: bool,
}

/// What is taken from a node's own status page.
#[derive(Deserialize)]
struct Answer {
    name: String,
    role: String,
    group: u64,
    term: u64,
    received: u64,
    flushed: u64,
    applied: u64,
    commit: u64,
    ready: bool,
}

#[derive(Serialize)]
struct Status {
    nodes: Vec<Shown>,
}

/// Prints the nodes.
pub fn run(options: &Options) -> Result<(), Failure> {
    let nodes = all(&options.dir.data)?;
    if options.json {
        let text = serde_json::to_string(&Status { nodes }).map_err(|error| error.to_string())?;
        println!("{text}");
    } else {
        print_table(&nodes);
    }
    Ok(())
}

/// The nodes of a directory as they are now.
pub fn all(dir: &Path) -> Result<Vec<Shown>, Failure> {
    let nodes = layout::nodes_of(dir)?;
    Ok(nodes.iter().map(|(node, dir)| one(node, dir)).collect())
}

/// One node as it is now.
pub fn one(node: &NodeAddress, dir: &Path) -> Shown {
    let pid = host::owner(dir);
    let answer = pid.and_then(|_| ask(node));
    let figure = |figure: fn(&Answer) -> u64| answer.as_ref().map(figure);
    let role = match (&answer, pid) {
        (Some(answer), _) => &answer.role,
        (None, Some(_)) => "silent",
        (None, None) => "down",
    };
    Shown {
        name: node.name.clone(),
        sql_address: node.sql_address,
        pid,
        role: role.to_owned(),
        group: figure(|answer| answer.group),
        term: figure(|answer| answer.term),
        received: figure(|answer| answer.received),
        flushed: figure(|answer| answer.flushed),
        applied: figure(|answer| answer.applied),
        commit: figure(|answer| answer.commit),
        ready: answer.as_ref().is_some_and(|answer| answer.ready),
    }
}

fn ask(node: &NodeAddress) -> Option<Answer> {
    let text = host::http_get(node.http_address, "/status", ANSWER_TIMEOUT).ok()?;
    let answer: Answer = serde_json::from_str(&text).ok()?;
    (answer.name == node.name).then_some(answer)
}

fn print_table(nodes: &[Shown]) {
    println!(
        "{:<6}{:<18}{:>8}  {:<10}{:>6}{:>9}{:>12}{:>12}{:>12}{:>12}",
        "name",
        "sql address",
        "pid",
        "role",
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
            "{:<6}{:<18}{:>8}  {:<10}{:>6}{:>9}{:>12}{:>12}{:>12}{:>12}",
            node.name,
            node.sql_address.to_string(),
            text(node.pid.map(|pid| pid as u64)),
            node.role,
            text(node.group),
            text(node.term),
            text(node.received),
            text(node.flushed),
            text(node.applied),
            text(node.commit),
        );
    }
}
