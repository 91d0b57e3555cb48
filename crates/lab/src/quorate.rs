//! A cluster of Quorate's own binary, as `quorate up` starts it.

use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::host::{create_dir, free_port, run, wait_for, Endpoint, Process, PATIENCE};

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
        let addresses = &ADDRESSES[..topology.voters + topology.learners];
        let port = free_port(addresses)?;
        let http_port = free_port(addresses)?;
        create_dir(dir)?;
        let data = dir.join("data");
        let mut command = Command::new(program);
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
        let process = Process::start(&mut command, &dir.join("up.log"))?;
        let nodes: Vec<Endpoint> = addresses
            .iter()
            .map(|host| Endpoint {
                host: (*host).to_owned(),
                port,
            })
            .collect();
        for node in &nodes {
            node.wait()?;
        }
        Ok(Cluster {
            process,
            program: program.to_path_buf(),
            data,
            nodes,
        })
    }

    /// The process of `quorate up`.
    pub fn process(&self) -> &Process {
        &self.process
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
        let printed = run(Command::new(&self.program)
            .args(["status", "--json", "--data"])
            .arg(&self.data))?;
        let status: Status = serde_json::from_str(&printed).map_err(Error::other)?;
        Ok(status.nodes)
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

    /// The nodes, in order.
    pub fn nodes(&self) -> &[Endpoint] {
        &self.nodes
    }
}
