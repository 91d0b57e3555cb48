//! `quorate up`: a whole cluster on this machine, each node a process of its own.
//!
//! Nobody restarts a node that ends: killing one is how a user tries Quorate out, and
//! `quorate start --data DIR/n2` brings it back. Ctrl-C stops all of them, those too. When none is
//! left, `up` ends.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use node::config::NodeSettings;
use node::real::host;
use node::wire::ClusterId;

use crate::health::Looked;
use crate::layout::{self, Cluster, NodeAddress, Ports, Route};
use crate::stop::{self, Late};
use crate::{groups, privacy, status, Failure};

/// Where clients find the first node, if the command line and the directory do not say.
const SQL_PORT: u16 = 5433;

/// Where the first status page is, if nobody says.
const HTTP_PORT: u16 = 7433;

/// The port for other nodes is this far above the one for clients, or the next that is free.
const PEER_PORT_DISTANCE: u16 = 1_000;

/// Nodes that have not become ready after this are a failure.
const READY_WAIT_MAX: Duration = Duration::from_secs(60);

/// A node that was stopped and has not ended after this is killed.
const END_WAIT_MAX: Duration = Duration::from_secs(10);

/// How often nodes are looked at.
const LOOK: Duration = Duration::from_millis(50);

/// Lines of a node's log that are shown when it could not start.
const LOG_LINES_SHOWN: usize = 5;

#[derive(Debug, clap::Args)]
pub struct Options {
    /// How many nodes that vote, for a new directory (default 3)
    #[arg(long, value_name = "N", visible_alias = "nodes")]
    voters: Option<usize>,
    /// How many further nodes that have the data and never vote, for a new directory (default none)
    #[arg(long, value_name = "N")]
    learners: Option<usize>,
    /// How many groups there are to be: those that lack are founded (default 1)
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    groups: u32,
    /// Where the nodes stand, in order, for a new directory; around again when there are fewer
    #[arg(long, value_name = "ZONE,…", value_delimiter = ',')]
    zones: Vec<String>,
    /// Where the cluster is kept; made at first use
    #[arg(long, value_name = "DIR", default_value = "./quorate-data")]
    data: PathBuf,
    /// Where clients connect (default 5433)
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Where the status pages are (default 7433)
    #[arg(long, value_name = "PORT")]
    http_port: Option<u16>,
    /// Where nodes connect to one another (default: 1000 above --port)
    #[arg(long, value_name = "PORT")]
    peer_port: Option<u16>,
    /// A setting of every node, or the default of a setting of every session
    #[arg(short = 'c', value_name = "NAME=VALUE", value_parser = parse_setting)]
    settings: Vec<(String, String)>,
    /// Where a node connects to in place of another, for example at a relay: n1-n2=127.0.0.1:20001
    #[arg(long = "route", value_name = "FROM-TO=ADDRESS")]
    routes: Vec<Route>,
}

pub fn parse_setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("not of the form name=value")?;
    let name = name.trim().to_ascii_lowercase();
    match name.is_empty() {
        true => Err("not of the form name=value".to_owned()),
        false => Ok((name, value.trim_start().to_owned())),
    }
}

/// Runs the cluster until it is told to stop.
pub fn run(options: &Options) -> Result<(), Failure> {
    // First of all: a signal that comes while nodes start must not leave them behind.
    host::hold_stop_signals();
    let cluster = prepare(options)?;
    let nodes = layout::nodes_of(&options.data)?;
    let mut children = Vec::new();
    let mut result = start_all(&nodes, &mut children);
    if let (Ok(Start::Ready), true) = (&result, options.groups > 1) {
        let founded = groups::found(&options.data, options.groups);
        result = founded.map(|()| Start::Ready);
    }
    if let Ok(Start::Ready) = result {
        print_welcome(&cluster, &options.data);
        if let Watched::AllEnded(outcome) = watch(&options.data, &nodes, &mut children) {
            return outcome;
        }
    }
    // Also after a failure: what was started is stopped, and what was added meanwhile.
    let nodes = layout::nodes_of(&options.data).unwrap_or(nodes);
    let stopped = stop::stop_all(&nodes, Late::Kill);
    for (_, child) in &mut children {
        end(child);
    }
    result.map(drop).and(stopped)
}

// ---- Before the start ----

/// Makes or updates the directory.
fn prepare(options: &Options) -> Result<Cluster, Failure> {
    let settings: BTreeMap<String, String> = options.settings.iter().cloned().collect();
    // Said here, once, and not in every node's log.
    NodeSettings::read(&settings).map_err(|error| error.message().to_owned())?;
    let old = layout::read_cluster(&options.data)?;
    let asked = Topology::of(options, old.as_ref())?;
    let first = old.as_ref().and_then(|old| old.nodes.first());
    match &old {
        None => {
            let count = asked.voters + asked.learners;
            let names: Vec<_> = (1..=count).map(layout::node_name).collect();
            layout::check_empty(&options.data, &names)?;
        }
        Some(old) => {
            refuse_elsewhere(&options.data, &old.nodes)?;
            refuse_running(&options.data, &old.nodes)?;
            layout::check_nodes(&options.data, old)?;
        }
    }
    let made = host::create_dir(&options.data);
    made.map_err(|error| format!("could not make {}: {error}", options.data.display()))?;
    let is_marked = old.as_ref().is_some_and(|old| old.private);
    let narrowed = privacy::check_cluster(&options.data, &[layout::CLUSTER_FILE], is_marked)?;
    if let Some(narrowed) = narrowed.filter(|_| old.is_some()) {
        println!("{narrowed}");
    }
    let ports = [options.port, options.http_port, options.peer_port];
    let nodes = match &old {
        Some(old) if ports == [None; 3] => old.nodes.clone(),
        _ => {
            let count = asked.voters + asked.learners;
            let mut nodes = choose_addresses(options, count, first)?;
            match &old {
                None => asked.appoint(&mut nodes, &options.zones),
                Some(old) => keep_places(&mut nodes, &old.nodes),
            }
            nodes
        }
    };
    layout::check_addresses(&nodes)?;
    for node in &nodes {
        for address in [node.sql_address, node.peer_address, node.http_address] {
            check_free(&node.name, address)?;
        }
    }
    let cluster = Cluster {
        format: layout::FORMAT,
        incarnation: old.as_ref().map_or(1, |old| old.incarnation),
        begun_after: old.as_ref().map_or(0, |old| old.begun_after),
        private: true,
        cluster: match old {
            Some(old) => old.cluster,
            None => new_cluster_id()?.to_string(),
        },
        nodes,
    };
    for name in options
        .routes
        .iter()
        .flat_map(|route| [&route.from, &route.to])
    {
        if !cluster.nodes.iter().any(|node| node.name == *name) {
            return Err(format!(
                "--route names {name}, which is no node of the cluster"
            ));
        }
    }
    let (user, routes) = (host::user(), &options.routes);
    layout::write(&options.data, &cluster, &user, &settings, routes, None)?;
    Ok(cluster)
}

/// How many nodes of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Topology {
    voters: usize,
    learners: usize,
}

impl Topology {
    /// What the command line asks for, or what there is. Both at once must agree.
    fn of(options: &Options, old: Option<&Cluster>) -> Result<Topology, Failure> {
        let Some(old) = old else {
            let asked = Topology {
                voters: options.voters.unwrap_or(3),
                learners: options.learners.unwrap_or(0),
            };
            return asked.check();
        };
        let voters = old.nodes.iter().filter(|node| node.voter).count();
        let there = Topology {
            voters,
            learners: old.nodes.len() - voters,
        };
        let asked = Topology {
            voters: options.voters.unwrap_or(there.voters),
            learners: options.learners.unwrap_or(there.learners),
        };
        match asked == there && options.zones.is_empty() {
            true => Ok(there),
            false => Err(format!(
                "the cluster in {} has {there} already; change it with quorate node, or choose \
                 another directory with --data",
                options.data.display(),
            )),
        }
    }

    fn check(self) -> Result<Topology, Failure> {
        let most = layout::NODES_MAX;
        if !(1..=most).contains(&self.voters) {
            let voters = self.voters;
            return Err(format!(
                "--voters is a number from 1 to {most}, not {voters}"
            ));
        }
        if self.voters + self.learners > most {
            return Err(format!("{self} are more than {most} nodes"));
        }
        Ok(self)
    }

    /// Voters come first.
    fn appoint(self, nodes: &mut [NodeAddress], zones: &[String]) {
        for (index, node) in nodes.iter_mut().enumerate() {
            node.voter = index < self.voters;
            if !zones.is_empty() {
                node.zone.clone_from(&zones[index % zones.len()]);
            }
        }
    }
}

impl std::fmt::Display for Topology {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let voters = if self.voters == 1 { "voter" } else { "voters" };
        write!(f, "{} {voters}", self.voters)?;
        match self.learners {
            0 => Ok(()),
            1 => f.write_str(" and 1 learner"),
            many => write!(f, " and {many} learners"),
        }
    }
}

/// Nodes that were there keep everything but their addresses.
fn keep_places(nodes: &mut [NodeAddress], old: &[NodeAddress]) {
    for (node, old) in nodes.iter_mut().zip(old) {
        let addresses = (node.sql_address, node.peer_address, node.http_address);
        node.clone_from(old);
        (node.sql_address, node.peer_address, node.http_address) = addresses;
    }
}

/// The nodes of `quorate init` belong to machines of their own.
fn refuse_elsewhere(dir: &Path, nodes: &[NodeAddress]) -> Result<(), Failure> {
    let is_elsewhere = |node: &&NodeAddress| !node.sql_address.ip().is_loopback();
    match nodes.iter().find(is_elsewhere) {
        None => Ok(()),
        Some(node) => Err(format!(
            "{} belongs to the machine with the address {}; start it there with: quorate start \
             --data {}",
            node.name,
            node.sql_address.ip(),
            layout::node_dir(dir, node).display()
        )),
    }
}

fn refuse_running(dir: &Path, nodes: &[NodeAddress]) -> Result<(), Failure> {
    for node in nodes {
        if let Some(pid) = host::owner(&layout::node_dir(dir, node)) {
            let dir = dir.display();
            return Err(format!(
                "{} of {dir} runs already (process {pid}); stop it with: quorate stop --data {dir}",
                node.name
            ));
        }
    }
    Ok(())
}

/// The ports of the command line, else those of the last time, else the usual ones.
fn choose_addresses(
    options: &Options,
    count: usize,
    first: Option<&NodeAddress>,
) -> Result<Vec<NodeAddress>, Failure> {
    let kept = |asked: Option<u16>, old: fn(&NodeAddress) -> SocketAddr| {
        asked.or(first.map(|first| old(first).port()))
    };
    let mut ports = Ports {
        sql: kept(options.port, |node| node.sql_address).unwrap_or(SQL_PORT),
        http: kept(options.http_port, |node| node.http_address).unwrap_or(HTTP_PORT),
        peer: 0,
    };
    let old_peer = match options.port {
        None => kept(options.peer_port, |node| node.peer_address),
        Some(_) => options.peer_port,
    };
    if let Some(peer) = old_peer {
        ports.peer = peer;
        return layout::addresses(count, ports);
    }
    // Nobody types this port, so one that is taken is no reason to fail.
    let start = match ports.sql.checked_add(PEER_PORT_DISTANCE) {
        Some(start) => start,
        None => ports.sql - PEER_PORT_DISTANCE,
    };
    for peer in (start..).take(100).filter(|peer| *peer != ports.http) {
        ports.peer = peer;
        let nodes = layout::addresses(count, ports)?;
        if nodes
            .iter()
            .all(|node| host::try_bind(node.peer_address).is_ok())
        {
            return Ok(nodes);
        }
    }
    Err(format!(
        "no port from {start} on is free for the nodes; choose one with --peer-port"
    ))
}

fn check_free(name: &str, address: SocketAddr) -> Result<(), Failure> {
    host::try_bind(address).map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            format!(
                "port {} of {} is in use; {name} cannot listen there",
                address.port(),
                address.ip()
            )
        }
        _ => format!("{name} cannot listen on {address}: {error}"),
    })
}

pub fn new_cluster_id() -> Result<ClusterId, Failure> {
    let seed = host::seed().map_err(|error| format!("no randomness: {error}"))?;
    let mut id = [0; 16];
    id.copy_from_slice(&seed[..16]);
    Ok(ClusterId(u128::from_be_bytes(id)))
}

// ---- The nodes ----

type Children = Vec<(usize, Child)>;

/// How the start went.
enum Start {
    /// Clients can begin sessions.
    Ready,
    /// The user did not wait for it.
    ToldToStop,
}

/// Starts all nodes and waits until clients can begin sessions.
fn start_all(nodes: &[(NodeAddress, PathBuf)], children: &mut Children) -> Result<Start, Failure> {
    let program = std::env::current_exe().map_err(|error| format!("no program: {error}"))?;
    for (index, (node, dir)) in nodes.iter().enumerate() {
        let child = spawn(&program, dir)
            .map_err(|error| format!("could not start {}: {error}", node.name))?;
        children.push((index, child));
    }
    let mut waited = Duration::ZERO;
    while waited < READY_WAIT_MAX {
        if host::wait_for_stop(LOOK).is_some() {
            return Ok(Start::ToldToStop);
        }
        waited += LOOK;
        for (index, child) in &mut *children {
            let (node, dir) = &nodes[*index];
            if let Ok(Some(_)) = child.try_wait() {
                return Err(format!("{} did not start\n{}", node.name, log_end(dir)));
            }
        }
        let is_ready = |node: &Looked| node.answer.as_ref().is_some_and(|answer| answer.ready);
        if status::look(nodes).iter().all(is_ready) {
            return Ok(Start::Ready);
        }
    }
    let logs: Vec<_> = nodes.iter().map(|(_, dir)| log_end(dir)).collect();
    Err(format!(
        "the nodes were not ready after {waited:?}\n{}",
        logs.join("\n")
    ))
}

fn spawn(program: &Path, dir: &Path) -> std::io::Result<Child> {
    let log = host::append_to(&layout::log_file(dir))?;
    Command::new(program)
        .args(["start", "--data"])
        .arg(dir)
        // What it says before its log is open comes into the log too.
        .args(["--log", "-"])
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        // A group of its own: Ctrl-C in a terminal reaches `up`, which stops the nodes in order.
        .process_group(0)
        .spawn()
}

/// Waits for a node that was stopped, or that had not come far enough to be found.
fn end(child: &mut Child) {
    let pid = child.id() as i32;
    let mut waited = Duration::ZERO;
    while let Ok(None) = child.try_wait() {
        // It may have ended in between; then there is nothing to tell it.
        let _ = match waited < END_WAIT_MAX {
            true => host::signal(pid, stop::SIGTERM),
            false => child.kill(),
        };
        host::sleep(LOOK);
        waited += LOOK;
    }
}

fn log_end(dir: &Path) -> String {
    let path = layout::log_file(dir);
    let text = host::read_text(&path).unwrap_or_default();
    let lines: Vec<_> = text.lines().collect();
    let start = lines.len().saturating_sub(LOG_LINES_SHOWN);
    format!("{}:\n{}", path.display(), lines[start..].join("\n"))
}

fn print_welcome(cluster: &Cluster, dir: &Path) {
    let count = cluster.nodes.len();
    println!(
        "{count} node{} of Quorate in {}:",
        if count == 1 { "" } else { "s" },
        dir.display()
    );
    for node in &cluster.nodes {
        let (ip, port) = (node.sql_address.ip(), node.sql_address.port());
        println!("  {}  psql -h {ip} -p {port} postgres", node.name);
    }
    println!(
        "Status: quorate status --data {0}, or http://{1}/status",
        dir.display(),
        cluster.nodes[0].http_address
    );
    println!("Ctrl-C stops all.");
}

/// How watching ended.
enum Watched {
    /// The user wants it to stop.
    ToldToStop,
    /// No node is left: in order, or not.
    AllEnded(Result<(), Failure>),
}

/// Tells of nodes that end, until told to stop or until none of the directory runs, whoever
/// started it.
fn watch(dir: &Path, nodes: &[(NodeAddress, PathBuf)], children: &mut Children) -> Watched {
    let mut last = Ok(());
    loop {
        let before = children.len();
        let mut failed = None;
        children.retain_mut(|(index, child)| {
            let Ok(Some(status)) = child.try_wait() else {
                return true;
            };
            let (node, dir) = &nodes[*index];
            println!("{} (process {}) has ended: {status}", node.name, child.id());
            if !status.success() {
                println!("  to bring it back: quorate start --data {}", dir.display());
                let log = log_end(dir);
                failed = Some(format!(
                    "no node runs any more; {} was the last: {status}\n{log}",
                    node.name
                ));
            }
            false
        });
        if children.len() < before {
            last = failed.map_or(Ok(()), Err);
        }
        if children.is_empty() && !runs_any(dir) {
            return Watched::AllEnded(last);
        }
        if host::wait_for_stop(LOOK).is_some() {
            println!("Stopping.");
            return Watched::ToldToStop;
        }
    }
}

/// Whether a node of a cluster runs, also one that was started or added by hand.
fn runs_any(dir: &Path) -> bool {
    let nodes = layout::nodes_of(dir).unwrap_or_default();
    nodes.iter().any(|(_, dir)| host::owner(dir).is_some())
}
