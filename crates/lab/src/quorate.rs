//! A cluster of Quorate's own binary, as `quorate up` starts it.

use std::io::{Error, Result};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::host::{
    create_dir, free_port, output, read_file, wait_for, Endpoint, Process, PATIENCE,
};
use crate::real::cgroup::MemoryGroup;
use crate::real::relay::control::Named;
use crate::real::relay::Relay;

/// The addresses of the nodes that `quorate up` starts, in order.
pub const ADDRESSES: [&str; 9] = [
    "127.0.0.1",
    "127.0.0.2",
    "127.0.0.3",
    "127.0.0.4",
    "127.0.0.5",
    "127.0.0.6",
    "127.0.0.7",
    "127.0.0.8",
    "127.0.0.9",
];

/// How many nodes of each kind a cluster has: the topologies of PostgreSQL are among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Nodes that vote; they come first.
    pub voters: usize,
    /// Nodes that have the data and never vote.
    pub learners: usize,
}

impl Topology {
    /// So many voters, and no learner.
    pub const fn voters(voters: usize) -> Topology {
        Topology {
            voters,
            learners: 0,
        }
    }
}

/// A node as `quorate status --json` shows it.
#[derive(Clone, Debug, Deserialize)]
pub struct NodeStatus {
    /// `n1`, `n2`, …
    pub name: String,
    /// Where it listens for clients.
    pub sql_address: String,
    /// Its process, while it runs.
    pub pid: Option<u32>,
    /// `leader`, `follower`, …; `down` while it does not run.
    pub role: String,
    /// The newest position that it has applied.
    pub applied: Option<u64>,
}

#[derive(Deserialize)]
struct Status {
    nodes: Vec<NodeStatus>,
}

/// A running cluster; it is stopped when this value is dropped.
#[derive(Debug)]
pub struct Cluster {
    process: Process,
    program: PathBuf,
    data: PathBuf,
    nodes: Vec<Endpoint>,
    relays: Vec<Named>,
}

impl Cluster {
    /// Starts `nodes` nodes, all voters, in `dir` with the binary at `program`, and waits until all answer.
    ///
    /// # Errors
    /// The binary cannot be started, or a node does not answer in time.
    pub fn start(program: &Path, dir: &Path, nodes: usize, settings: &[&str]) -> Result<Cluster> {
        Cluster::start_as(program, dir, Topology::voters(nodes), settings)
    }

    /// The same with learners.
    ///
    /// # Errors
    /// As [`Cluster::start`].
    pub fn start_as(
        program: &Path,
        dir: &Path,
        topology: Topology,
        settings: &[&str],
    ) -> Result<Cluster> {
        Cluster::launch(program, dir, topology, settings, false, None)
    }

    /// As [`Cluster::start_as`], with a relay before each node for each other node: what `n1` sends
    /// to `n2` passes forward through the relay `n1-n2`, and only the answer to its first words
    /// comes back there.
    ///
    /// # Errors
    /// As [`Cluster::start`].
    pub fn start_relayed(
        program: &Path,
        dir: &Path,
        topology: Topology,
        settings: &[&str],
    ) -> Result<Cluster> {
        Cluster::launch(program, dir, topology, settings, true, None)
    }

    /// With relays if asked, and in a group whose memory is limited if there is one.
    ///
    /// # Errors
    /// As [`Cluster::start`].
    pub fn launch(
        program: &Path,
        dir: &Path,
        topology: Topology,
        settings: &[&str],
        relayed: bool,
        group: Option<&MemoryGroup>,
    ) -> Result<Cluster> {
        let nodes = topology.voters + topology.learners;
        let addresses = &ADDRESSES[..nodes];
        let relayed_port = match relayed {
            true => Some(free_port(addresses)?),
            false => None,
        };
        let relays = match relayed_port {
            Some(port) => relays(nodes, port)?,
            None => Vec::new(),
        };
        let port = free_port(addresses)?;
        let http_port = free_port(addresses)?;
        create_dir(dir)?;
        let data = dir.join("data");
        let mut command = MemoryGroup::command(group, program);
        command
            .arg("up")
            .args(["--voters", &topology.voters.to_string()])
            .args(["--learners", &topology.learners.to_string()])
            .arg("--data")
            .arg(&data)
            .args(["--port", &port.to_string()])
            .args(["--http-port", &http_port.to_string()]);
        for setting in settings {
            command.args(["-c", setting]);
        }
        if let Some(port) = relayed_port {
            command.args(["--peer-port", &port.to_string()]);
        }
        for named in &relays {
            let route = format!("{}={}", named.name, named.relay.address());
            command.args(["--route", &route]);
        }
        let process = Process::start(&mut command, &dir.join("up.log"))?;
        let nodes: Vec<Endpoint> = addresses
            .iter()
            .map(|host| Endpoint::at(host, port))
            .collect();
        for node in &nodes {
            node.wait()?;
        }
        Ok(Cluster {
            process,
            program: program.to_path_buf(),
            data,
            nodes,
            relays,
        })
    }

    /// The process of `quorate up`.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// The same, to be waited for.
    pub fn process_mut(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Its binary.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Where the nodes keep their data.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// What `quorate status` says of every node.
    ///
    /// # Errors
    /// The command fails or prints something else.
    pub fn status(&self) -> Result<Vec<NodeStatus>> {
        // How the command ends says how the cluster is; what it prints is there in any case.
        let done = output(
            Command::new(&self.program)
                .args(["status", "--json", "--data"])
                .arg(&self.data),
        )?;
        let failed = |error| {
            let said = String::from_utf8_lossy(&done.stderr);
            Error::other(format!("no status: {error}: {}", said.trim()))
        };
        let status: Status = serde_json::from_slice(&done.stdout).map_err(failed)?;
        Ok(status.nodes)
    }

    /// Where a node has its status page.
    ///
    /// # Errors
    /// The node's file does not say.
    pub fn http_address(&self, node: usize) -> Result<SocketAddr> {
        let file = read_file(&self.node_dir(node).join("node.json"))?;
        let file: serde_json::Value = serde_json::from_str(&file).map_err(Error::other)?;
        let address = file["nodes"][node]["http_address"].as_str();
        address.unwrap_or_default().parse().map_err(Error::other)
    }

    /// Waits until a node leads, and returns its place among the nodes.
    ///
    /// # Errors
    /// None leads in time.
    pub fn leader(&self) -> Result<usize> {
        let mut leader = None;
        wait_for("a leader", PATIENCE, || {
            let nodes = self.status().unwrap_or_default();
            leader = nodes.iter().position(|node| node.role == "leader");
            leader.is_some()
        })?;
        leader.ok_or_else(|| Error::other("no leader"))
    }

    /// The relays between the nodes, where there are any.
    pub fn relays(&self) -> &[Named] {
        &self.relays
    }

    /// The relay for what one node sends to another, counted from 0.
    pub fn relay(&self, from: usize, to: usize) -> Option<&Relay> {
        let name = relay_name(from, to);
        let found = self.relays.iter().find(|named| named.name == name);
        found.map(|named| &named.relay)
    }

    /// Cuts a node off from all others, or mends that; clients still reach it.
    pub fn cut_off(&self, node: usize, cut: bool) {
        for other in 0..self.nodes.len() {
            for (from, to) in [(node, other), (other, node)] {
                if let Some(relay) = self.relay(from, to) {
                    relay.cut(cut);
                }
            }
        }
    }

    /// The process of a node, counted from 0.
    ///
    /// # Errors
    /// It does not run.
    pub fn pid(&self, node: usize) -> Result<u32> {
        let pid = self.status()?.get(node).and_then(|node| node.pid);
        pid.ok_or_else(|| Error::other(format!("n{} does not run", node + 1)))
    }

    /// Where a node keeps its data.
    pub fn node_dir(&self, node: usize) -> PathBuf {
        self.data.join(format!("n{}", node + 1))
    }

    /// Starts a node that has ended: `quorate up` looks after nobody.
    ///
    /// # Errors
    /// The binary cannot be started.
    pub fn start_again(&self, node: usize) -> Result<Process> {
        let dir = self.node_dir(node);
        let mut command = Command::new(&self.program);
        command.args(["start", "--data"]).arg(&dir);
        Process::start(&mut command, &dir.join("restarted.log"))
    }

    /// The nodes, in order.
    pub fn nodes(&self) -> &[Endpoint] {
        &self.nodes
    }
}

fn relay_name(from: usize, to: usize) -> String {
    format!("n{}-n{}", from + 1, to + 1)
}

/// One for each ordered pair of nodes that listen for one another on `port`.
fn relays(nodes: usize, port: u16) -> Result<Vec<Named>> {
    let mut relays = Vec::new();
    for from in 0..nodes {
        for to in (0..nodes).filter(|to| *to != from) {
            let host: IpAddr = ADDRESSES[to].parse().map_err(Error::other)?;
            relays.push(Named {
                name: relay_name(from, to),
                relay: Relay::to((host, port).into())?,
            });
        }
    }
    Ok(relays)
}
