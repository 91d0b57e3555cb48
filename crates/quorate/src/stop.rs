//! `quorate stop`: ends nodes in order, the leader last, so that no election happens on the way.

use std::path::{Path, PathBuf};
use std::time::Duration;

use node::real::host;

use crate::layout::{self, NodeAddress};
use crate::{status, Failure};

/// SIGTERM, which asks a node to stop.
pub const SIGTERM: i32 = 15;

/// A node that has not ended after this is reported.
const STOP_WAIT_MAX: Duration = Duration::from_secs(20);

/// How often a node is looked at that is about to end.
const LOOK: Duration = Duration::from_millis(20);

/// Stops the node, or all nodes, of a directory.
pub fn run(dir: &Path) -> Result<(), Failure> {
    let nodes = layout::nodes_of(dir)?;
    let running = nodes.iter().any(|(_, dir)| host::owner(dir).is_some());
    if !running {
        println!("No node of {} runs.", dir.display());
        return Ok(());
    }
    stop_all(&nodes)
}

/// Stops those of the nodes that run: each is asked and waited for before the next.
pub fn stop_all(nodes: &[(NodeAddress, PathBuf)]) -> Result<(), Failure> {
    let mut nodes: Vec<_> = nodes
        .iter()
        .map(|(node, dir)| (status::one(node, dir).role == "leader", node, dir))
        .collect();
    nodes.sort_by_key(|(is_leader, ..)| *is_leader);
    let mut failures = Vec::new();
    for (_, node, dir) in nodes {
        if let Err(failure) = stop_one(&node.name, dir) {
            failures.push(failure);
        }
    }
    match failures.is_empty() {
        true => Ok(()),
        false => Err(failures.join("; ")),
    }
}

fn stop_one(name: &str, dir: &Path) -> Result<(), Failure> {
    let Some(pid) = host::owner(dir) else {
        return Ok(());
    };
    match host::signal(pid, SIGTERM) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(format!("could not stop {name} (process {pid}): {error}"));
        }
        _ => {}
    }
    let mut waited = Duration::ZERO;
    while host::owner(dir) == Some(pid) {
        if waited > STOP_WAIT_MAX {
            return Err(format!(
                "{name} (process {pid}) has not stopped in {waited:?}"
            ));
        }
        host::sleep(LOOK);
        waited += LOOK;
    }
    println!("{name} stopped");
    Ok(())
}
