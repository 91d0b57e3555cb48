//! `quorate node`, `quorate switchover`, `quorate promote`: who belongs to a cluster, and who leads.
//!
//! Each asks a running node of the directory, which passes the wish on to the leader. What has
//! changed then is written to the directory's files too, so that `quorate up` starts those nodes
//! that are members. The group's own log decides who is one; the files only say where to find them.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base::cluster::{Administration, NewNode};
use node::real::{admin, host};
use serde::de::DeserializeOwned;
use serde::Deserialize;

use crate::layout::{self, Cluster, NodeAddress, NodeFile};
use crate::{cert, DataDir, Failure};

/// A status page that does not answer within this is passed over.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug, clap::Args)]
pub struct NodeOptions {
    #[command(subcommand)]
    command: NodeCommand,
}

#[derive(Debug, clap::Subcommand)]
enum NodeCommand {
    /// Add a node: a learner, whose directory is made ready for `quorate start`
    Add(AddOptions),
    /// Remove a node for good; its process stops
    Remove(NamedOptions),
    /// Let a learner vote, once it has caught up
    Promote(NamedOptions),
    /// Make a voter a learner
    Demote(NamedOptions),
    /// Bring a stopped node back without its history, which others contradict: as a learner with a
    /// new number, and what the others have
    Rejoin(RejoinOptions),
    /// Change where a node stands, or how much it is preferred as the leader
    Set(SetOptions),
    /// Prefer leaders in a zone; an empty one for none
    LeaderZone(ZoneOptions),
    /// Show the members
    List(ListOptions),
}

#[derive(Debug, clap::Args)]
struct AddOptions {
    /// Its name (default: the next of n1, n2, …)
    name: Option<String>,
    #[command(flatten)]
    dir: DataDir,
    /// Where clients will connect to it (default: the next address of this machine)
    #[arg(long, value_name = "IP:PORT")]
    sql_address: Option<SocketAddr>,
    /// Where other nodes will connect to it
    #[arg(long, value_name = "IP:PORT")]
    peer_address: Option<SocketAddr>,
    /// Where its status page will be
    #[arg(long, value_name = "IP:PORT")]
    http_address: Option<SocketAddr>,
    /// Where it stands
    #[arg(long, default_value = "")]
    zone: String,
    /// How much it is preferred as the leader, once it votes
    #[arg(long, default_value_t = kv::PRIORITY_USUAL)]
    priority: u32,
    /// Its directory, to be moved to its machine (default: beside those of the others)
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct NamedOptions {
    /// The node's name
    name: String,
    #[command(flatten)]
    dir: DataDir,
}

#[derive(Debug, clap::Args)]
struct RejoinOptions {
    /// The node's name
    name: String,
    #[command(flatten)]
    dir: DataDir,
    /// What this node has and the others do not is set aside, and is no part of the cluster any
    /// more
    #[arg(long, required = true)]
    discard_history: bool,
}

#[derive(Debug, clap::Args)]
struct SetOptions {
    /// The node's name
    name: String,
    #[command(flatten)]
    dir: DataDir,
    /// Where it stands
    #[arg(long)]
    zone: Option<String>,
    /// Leaders go to the voter with the highest
    #[arg(long)]
    priority: Option<u32>,
    /// The certificate that it is to show other nodes, where that has another key than before: both
    /// keys count until it has shown the new one
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct ZoneOptions {
    /// The zone
    zone: String,
    #[command(flatten)]
    dir: DataDir,
}

#[derive(Debug, clap::Args)]
struct ListOptions {
    #[command(flatten)]
    dir: DataDir,
    /// As JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub struct SwitchoverOptions {
    /// Who is to lead (default: the most fitting voter)
    name: Option<String>,
    #[command(flatten)]
    dir: DataDir,
}

#[derive(Debug, clap::Args)]
pub struct PromoteOptions {
    /// Which node goes on alone, where the directory is a cluster's
    name: Option<String>,
    #[command(flatten)]
    dir: DataDir,
    /// What this node does not have may be lost for good
    #[arg(long, required = true)]
    accept_data_loss: bool,
}

/// What a node's status page says of the members.
#[derive(Clone, Debug, Deserialize)]
struct Known {
    leader: Option<String>,
    incarnation: u64,
    begun_after: u64,
    leader_zone: String,
    members: Vec<KnownMember>,
}

#[derive(Clone, Debug, Deserialize, serde::Serialize)]
struct KnownMember {
    node: u64,
    name: String,
    peer_address: SocketAddr,
    sql_address: SocketAddr,
    voter: bool,
    zone: String,
    priority: u32,
}

/// Runs `quorate node …`.
pub fn run(options: &NodeOptions) -> Result<(), Failure> {
    match &options.command {
        NodeCommand::Add(options) => add(options),
        NodeCommand::Remove(options) => {
            let wish = Administration::RemoveNode(options.name.as_str().into());
            change(&options.dir.data, &wish)?;
            println!("{} was removed", options.name);
            Ok(())
        }
        NodeCommand::Promote(options) => {
            let wish = Administration::PromoteNode(options.name.as_str().into());
            change(&options.dir.data, &wish)?;
            println!("{} votes", options.name);
            Ok(())
        }
        NodeCommand::Demote(options) => {
            let wish = Administration::DemoteNode(options.name.as_str().into());
            change(&options.dir.data, &wish)?;
            println!("{} is a learner", options.name);
            Ok(())
        }
        NodeCommand::Rejoin(options) => rejoin(options),
        NodeCommand::Set(options) => {
            let wish = Administration::SetNode {
                name: options.name.as_str().into(),
                zone: options.zone.as_deref().map(Into::into),
                priority: options.priority,
                key: match &options.certificate {
                    Some(certificate) => Some(cert::key_of(certificate)?.0),
                    None => None,
                },
            };
            change(&options.dir.data, &wish)
        }
        NodeCommand::LeaderZone(options) => {
            let wish = Administration::SetLeaderZone(options.zone.as_str().into());
            change(&options.dir.data, &wish)
        }
        NodeCommand::List(options) => list(options),
    }
}

/// Runs `quorate switchover`.
pub fn switchover(options: &SwitchoverOptions) -> Result<(), Failure> {
    let wish = Administration::Switchover(options.name.as_deref().map(Into::into));
    let leader = ask(&options.dir.data, &wish)?;
    let known = known(&options.dir.data)?;
    let name = known.members.iter().find(|member| member.node == leader);
    let name = name.map_or_else(|| format!("node {leader}"), |member| member.name.clone());
    println!("{name} leads");
    Ok(())
}

/// Runs `quorate promote`.
pub fn promote(options: &PromoteOptions) -> Result<(), Failure> {
    let nodes = layout::nodes_of(&options.dir.data)?;
    let chosen: Vec<_> = match &options.name {
        Some(name) => nodes
            .iter()
            .filter(|(node, _)| node.name == *name)
            .collect(),
        None => nodes.iter().collect(),
    };
    let [(node, dir)] = chosen[..] else {
        return Err(match &options.name {
            Some(name) => format!("there is no node {name} in {}", options.dir.data.display()),
            None => "say which node goes on alone: quorate promote NODE".to_owned(),
        });
    };
    if host::owner(dir).is_none() {
        return Err(format!(
            "{} does not run; start it with: quorate start --data {}",
            node.name,
            dir.display()
        ));
    }
    let outcome = admin::ask(dir, &Administration::PromoteAlone)
        .map_err(|error| format!("could not ask {}: {error}", node.name))?;
    let lsn = outcome.0.map_err(|error| crate::explain(&error))?;
    write_known(&options.dir.data, &known_of(node)?)?;
    println!(
        "{} goes on alone from LSN {lsn}, the last that it has: what others had beyond is lost. \
         They stop when they learn of it.",
        node.name
    );
    Ok(())
}

/// Asks a running node of the directory.
pub(crate) fn ask(dir: &Path, wish: &Administration) -> Result<u64, Failure> {
    let mut last = format!("no node of {} runs", dir.display());
    let mut nodes = layout::nodes_of(dir)?;
    if let Administration::RemoveNode(name) = wish {
        // The one that is removed stops, perhaps before it can say what became of it.
        nodes.sort_by_key(|(node, _)| *node.name == **name);
    }
    for (node, dir) in nodes {
        if host::owner(&dir).is_none() {
            continue;
        }
        match admin::ask(&dir, wish) {
            Ok(outcome) => return outcome.0.map_err(|error| crate::explain(&error)),
            Err(error) => last = format!("could not ask {}: {error}", node.name),
        }
    }
    Err(last)
}

/// What a node's status page says.
fn known_of<K: DeserializeOwned>(node: &NodeAddress) -> Result<K, Failure> {
    let text = host::http_get(node.http_address, "/status", ANSWER_TIMEOUT)
        .map_err(|error| format!("{} does not answer: {error}", node.name))?;
    serde_json::from_str(&text)
        .map_err(|error| format!("{} answers something else: {error}", node.name))
}

/// The status page of whoever leads, by what `leader` finds in it, or of whoever answers.
pub(crate) fn known_by<K: DeserializeOwned>(
    dir: &Path,
    leader: impl Fn(&K) -> Option<&str>,
) -> Result<K, Failure> {
    let mut last = Err(format!("no node of {} runs", dir.display()));
    for (node, dir) in layout::nodes_of(dir)? {
        if host::owner(&dir).is_none() {
            continue;
        }
        let known = known_of(&node);
        match &known {
            Ok(answer) if leader(answer) == Some(&*node.name) => return known,
            Err(_) if last.is_ok() => {}
            _ => last = known,
        }
    }
    last
}

/// The members as the leader knows them, or whoever answers.
fn known(dir: &Path) -> Result<Known, Failure> {
    known_by(dir, |known: &Known| known.leader.as_deref())
}

/// Changes the membership, and the files with it.
fn change(dir: &Path, wish: &Administration) -> Result<(), Failure> {
    ask(dir, wish)?;
    write_known(dir, &known(dir)?)
}

/// Writes who is a member to the cluster's file, if the directory has one.
fn write_known(dir: &Path, known: &Known) -> Result<(), Failure> {
    let Some(mut cluster) = layout::read_cluster(dir)? else {
        return Ok(());
    };
    cluster.incarnation = known.incarnation;
    cluster.begun_after = known.begun_after;
    cluster.nodes.retain_mut(|node| {
        let Some(member) = known.members.iter().find(|member| member.node == node.id) else {
            return false;
        };
        node.voter = member.voter;
        node.zone.clone_from(&member.zone);
        node.priority = member.priority;
        true
    });
    layout::write_cluster(dir, &cluster)
}

// ---- A further node ----

fn add(options: &AddOptions) -> Result<(), Failure> {
    let dir = &options.dir.data;
    let known_before = known(dir)?;
    let new = choose(options, &known_before)?;
    let target = match &options.out {
        Some(out) => out.clone(),
        None if layout::read_cluster(dir)?.is_some() => dir.join(&new.name),
        None => return Err("say where its directory is to be made: --out DIR".to_owned()),
    };
    if layout::is_node(&target) {
        return Err(format!(
            "{} is a node's directory already",
            target.display()
        ));
    }
    let (_, beside) = layout::nodes_of(dir)?.swap_remove(0);
    let like = NodeFile {
        routes: Default::default(),
        private: true,
        ..layout::read_node(&beside)?
    };
    layout::check_address(&new, &addresses_of(&known_before, &like.nodes, &new))?;
    layout::make_private_dir(&target)?;
    let new = make_member(dir, new, like, &target, options.out.is_none())?;
    println!(
        "{} is a learner of the cluster; start it with: quorate start --data {}",
        new.name,
        target.display()
    );
    Ok(())
}

/// Adds a member, and makes a directory ready for it, with the settings of `like`.
fn make_member(
    dir: &Path,
    new: NodeAddress,
    like: NodeFile,
    target: &Path,
    is_beside: bool,
) -> Result<NodeAddress, Failure> {
    let wish = Administration::AddNode(NewNode {
        name: new.name.as_str().into(),
        peer_address: new.peer_address.to_string().into(),
        sql_address: new.sql_address.to_string().into(),
        zone: new.zone.as_str().into(),
        priority: new.priority,
    });
    let id = ask(dir, &wish)?;
    let new = NodeAddress { id, ..new };
    let after = known(dir)?;
    let file = NodeFile {
        format: layout::FORMAT,
        id,
        nodes: addresses_of(&after, &like.nodes, &new),
        incarnation: after.incarnation,
        begun_after: after.begun_after,
        started: false,
        ..like
    };
    layout::write_node(target, &file)?;
    if let Some(cluster) = layout::read_cluster(dir)? {
        let mut nodes = cluster.nodes.clone();
        if is_beside {
            nodes.push(new.clone());
        }
        layout::write_cluster(dir, &Cluster { nodes, ..cluster })?;
    }
    Ok(new)
}

/// Removes a stopped node, sets its data aside, and adds it anew under its old name and addresses.
fn rejoin(options: &RejoinOptions) -> Result<(), Failure> {
    let (dir, name) = (&options.dir.data, &options.name);
    let nodes = layout::nodes_of(dir)?;
    let known_before = known(dir)?;
    let target = match nodes.iter().find(|(node, _)| node.name == *name) {
        Some((_, target)) => target.clone(),
        // It was removed before, by a try that was cut short.
        None => dir.join(name),
    };
    if !layout::is_node(&target) {
        return Err(format!("there is no node {name} in {}", dir.display()));
    }
    if let Some(pid) = host::owner(&target) {
        return Err(format!("{name} runs (process {pid}); stop it first"));
    }
    let old = layout::read_node(&target)?;
    let this = old.this()?.clone();
    let member = known_before.members.iter().find(|one| one.name == *name);
    let is_new = member.is_some_and(|member| member.node != this.id);
    if is_new {
        return Err(format!(
            "node \"{name}\" is a member with another number than {} has",
            target.display()
        ));
    }
    if member.is_some() {
        change(dir, &Administration::RemoveNode(name.as_str().into()))?;
    }
    let aside = set_aside(&target)?;
    let new = NodeAddress {
        id: 0,
        voter: false,
        key: None,
        zone: member.map_or(this.zone.clone(), |member| member.zone.clone()),
        priority: member.map_or(this.priority, |member| member.priority),
        ..this
    };
    let new = make_member(dir, new, old, &target, true)?;
    println!(
        "{name} is a learner of the cluster, as node {}. What it had lies in {}; delete that once \
         nobody misses anything.\nStart it with: quorate start --data {}",
        new.id,
        aside.display(),
        target.display()
    );
    if member.is_some_and(|member| member.voter) {
        println!("Once it has caught up, let it vote again: quorate node promote {name}");
    }
    Ok(())
}

/// Moves a node's data, with the file that says whose it is, out of its own way.
fn set_aside(target: &Path) -> Result<PathBuf, Failure> {
    let mut places = (1..).map(|number| target.join(format!("discarded-{number}")));
    let aside = places
        .find(|place| !place.exists())
        .ok_or("there is no place for the old data")?;
    layout::make_private_dir(&aside)?;
    let failed = |error: std::io::Error| format!("could not set the old data aside: {error}");
    let names = host::list(target).map_err(failed)?;
    // The first group's goes last: with it, the node is what it was.
    let mut groups = node::hosting::directories_among(names);
    groups.reverse();
    host::set_aside(target, &groups, layout::NODE_FILE, &aside).map_err(failed)?;
    Ok(aside)
}

/// Name and addresses of a new node, where nobody says: the next on this machine.
fn choose(options: &AddOptions, known: &Known) -> Result<NodeAddress, Failure> {
    let name = options.name.clone().unwrap_or_else(|| {
        let taken = |name: &String| known.members.iter().any(|member| member.name == *name);
        let mut names = (known.members.len() + 1..).map(|number| format!("n{number}"));
        names.find(|name| !taken(name)).unwrap_or_default()
    });
    let (last, _) = layout::nodes_of(&options.dir.data)?
        .pop()
        .ok_or("there is no node")?;
    let next = |address: SocketAddr| next_address(address, &known.members);
    Ok(NodeAddress {
        id: 0,
        name,
        sql_address: options
            .sql_address
            .map_or_else(|| next(last.sql_address), Ok)?,
        peer_address: options
            .peer_address
            .map_or_else(|| next(last.peer_address), Ok)?,
        http_address: options
            .http_address
            .map_or_else(|| next(last.http_address), Ok)?,
        voter: false,
        zone: options.zone.clone(),
        priority: options.priority,
        key: None,
    })
}

/// The same port on the next free host of the loopback network, or the next free port.
fn next_address(like: SocketAddr, members: &[KnownMember]) -> Result<SocketAddr, Failure> {
    let free = |address: SocketAddr| {
        let known =
            |member: &KnownMember| member.sql_address == address || member.peer_address == address;
        !members.iter().any(known) && host::try_bind(address).is_ok()
    };
    let missing = || "say where it will listen: --sql-address, --peer-address, --http-address";
    let IpAddr::V4(ip) = like.ip() else {
        return Err(missing().to_owned());
    };
    if !ip.is_loopback() {
        return Err(missing().to_owned());
    }
    let [a, b, c, _] = ip.octets();
    let mut hosts = (1..=u8::MAX).map(|d| SocketAddr::from(([a, b, c, d], like.port())));
    if let Some(address) = hosts.find(|address| free(*address)) {
        return Ok(address);
    }
    let mut ports = (like.port()..u16::MAX).map(|port| SocketAddr::new(like.ip(), port));
    ports
        .find(|address| free(*address))
        .ok_or_else(|| missing().to_owned())
}

/// All members with their addresses. What nobody here knows is where others' status pages are.
fn addresses_of(known: &Known, here: &[NodeAddress], new: &NodeAddress) -> Vec<NodeAddress> {
    let of = |member: &KnownMember| {
        let known = here.iter().find(|node| node.id == member.node);
        let http = known.map_or(member.sql_address, |node| node.http_address);
        NodeAddress {
            id: member.node,
            name: member.name.clone(),
            sql_address: member.sql_address,
            peer_address: member.peer_address,
            http_address: if member.node == new.id {
                new.http_address
            } else {
                http
            },
            voter: member.voter,
            zone: member.zone.clone(),
            priority: member.priority,
            key: known.and_then(|node| node.key.clone()),
        }
    };
    known.members.iter().map(of).collect()
}

// ---- Who is there ----

fn list(options: &ListOptions) -> Result<(), Failure> {
    let known = known(&options.dir.data)?;
    if options.json {
        let text = serde_json::to_string(&known.members).map_err(|error| error.to_string())?;
        println!("{text}");
        return Ok(());
    }
    println!(
        "{:>4}  {:<10}{:<9}{:<24}{:<24}{:<12}{:>8}",
        "node", "name", "kind", "sql address", "peer address", "zone", "priority"
    );
    for member in &known.members {
        let leads = known.leader.as_ref() == Some(&member.name);
        let kind = match (leads, member.voter) {
            (true, _) => "leader",
            (_, true) => "voter",
            _ => "learner",
        };
        println!(
            "{:>4}  {:<10}{kind:<9}{:<24}{:<24}{:<12}{:>8}",
            member.node,
            member.name,
            member.sql_address.to_string(),
            member.peer_address.to_string(),
            member.zone,
            member.priority
        );
    }
    if !known.leader_zone.is_empty() {
        println!("Leaders are preferred in zone {}.", known.leader_zone);
    }
    if known.incarnation > 1 {
        println!("The group is in incarnation {}.", known.incarnation);
    }
    Ok(())
}
