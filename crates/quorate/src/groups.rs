//! `quorate group`: the groups of a cluster, each with a log, a leader and replicas of its own.
//!
//! ```text
//! $ quorate group add
//! group 2 is there
//! $ quorate group list
//! group  leader     term   commit  voters
//!     1  n1            3     4711  n1, n2, n3
//!     2  n1            1       12  n1, n2, n3
//! ```
//! What it leaves out: groups do not end, and nothing is moved out of one (`drain`).

use std::path::Path;

use base::cluster::Administration;
use serde::{Deserialize, Serialize};

use crate::members::{ask, known_by};
use crate::{DataDir, Failure};

#[derive(Debug, clap::Args)]
pub struct GroupOptions {
    #[command(subcommand)]
    command: GroupCommand,
}

#[derive(Debug, clap::Subcommand)]
enum GroupCommand {
    /// Add a group, with replicas on the nodes that there are
    Add(DataDir),
    /// Show the groups, and who leads them
    List(ListOptions),
}

#[derive(Debug, clap::Args)]
struct ListOptions {
    #[command(flatten)]
    dir: DataDir,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// A group, as the node that leads the first one knows it.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Known {
    group: u32,
    leader: Option<String>,
    term: u64,
    commit: u64,
    voters: Vec<String>,
    learners: Vec<String>,
}

/// A node's status page: the first group, and what it says of the others.
#[derive(Clone, Debug, Deserialize)]
struct Page {
    group: u32,
    leader: Option<String>,
    term: u64,
    commit: u64,
    members: Vec<Member>,
    groups: Vec<Known>,
}

#[derive(Clone, Debug, Deserialize)]
struct Member {
    name: String,
    voter: bool,
}

/// Runs `quorate group …`.
pub fn run(options: &GroupOptions) -> Result<(), Failure> {
    match &options.command {
        GroupCommand::Add(dir) => {
            let number = ask(&dir.data, &Administration::AddGroup)?;
            println!("group {number} is there");
            Ok(())
        }
        GroupCommand::List(options) => list(options),
    }
}

/// Founds groups until there are so many.
pub fn found(dir: &Path, count: u32) -> Result<(), Failure> {
    while (known(dir)?.len() as u64) < u64::from(count) {
        ask(dir, &Administration::AddGroup)?;
    }
    Ok(())
}

fn known(dir: &Path) -> Result<Vec<Known>, Failure> {
    let page = known_by(dir, |page: &Page| page.leader.as_deref())?;
    let names = |voter: bool| {
        let members = page.members.iter().filter(|member| member.voter == voter);
        members.map(|member| member.name.clone()).collect()
    };
    let mut groups = vec![Known {
        group: page.group,
        leader: page.leader.clone(),
        term: page.term,
        commit: page.commit,
        voters: names(true),
        learners: names(false),
    }];
    groups.extend(page.groups);
    Ok(groups)
}

fn list(options: &ListOptions) -> Result<(), Failure> {
    let groups = known(&options.dir.data)?;
    if options.json {
        let text = serde_json::to_string(&groups).map_err(|error| error.to_string())?;
        println!("{text}");
        return Ok(());
    }
    println!(
        "{:>5}  {:<10}{:>6}{:>10}  voters",
        "group", "leader", "term", "commit"
    );
    for group in groups {
        let leader = group.leader.as_deref().unwrap_or("none");
        let learners = match group.learners.is_empty() {
            true => String::new(),
            false => format!("; learners {}", group.learners.join(", ")),
        };
        println!(
            "{:>5}  {leader:<10}{:>6}{:>10}  {}{learners}",
            group.group,
            group.term,
            group.commit,
            group.voters.join(", "),
        );
    }
    Ok(())
}
