//! `quorate stop`: ends nodes in order, the leader last, so that no election happens on the way.
//!
//! ```text
//! n1, n3 follow   told at once, waited for
//! n2 leads        told when all have ended that answer
//! ```
//! Where nobody leads, all are told at once. A node that is silent holds up nobody else.

use std::path::{Path, PathBuf};
use std::time::Duration;

use node::real::host;

use crate::layout::{self, NodeAddress};
use crate::{health, status, Failure};

/// SIGTERM, which asks a node to stop.
pub const SIGTERM: i32 = 15;

/// SIGKILL, which ends a process whatever it does.
const SIGKILL: i32 = 9;

/// A node that has not ended after this is reported.
const STOP_WAIT_MAX: Duration = Duration::from_secs(20);

/// The same for [`Late::Kill`], where a node answers …
const KILL_WAIT_MAX: Duration = Duration::from_secs(10);

/// … and where it is silent.
const SILENT_WAIT_MAX: Duration = Duration::from_secs(2);

/// How often a node is looked at that is about to end.
const LOOK: Duration = Duration::from_millis(20);

/// What becomes of a node that does not end when it is asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// It is reported.
    Report,
    /// It is killed, at once if this process is told to stop again. A node that is killed loses
    /// nothing that it has acknowledged.
    Kill,
}

/// A node that is to stop.
struct Stopping<'a> {
    name: &'a str,
    dir: &'a Path,
    pid: i32,
    answers: bool,
    leads: bool,
    /// How long it has been told to.
    told: Option<Duration>,
}

/// Stops the node, or all nodes, of a directory.
pub fn run(dir: &Path) -> Result<(), Failure> {
    let nodes = layout::nodes_of(dir)?;
    let running = nodes.iter().any(|(_, dir)| host::owner(dir).is_some());
    if !running {
        println!("No node of {} runs.", dir.display());
        return Ok(());
    }
    stop_all(&nodes, Late::Report)
}

/// Stops those of the nodes that run.
pub fn stop_all(nodes: &[(NodeAddress, PathBuf)], late: Late) -> Result<(), Failure> {
    let looked = status::look(nodes);
    let leader = health::leader(&looked).map(|leader| &*leader.name);
    let mut left = Vec::new();
    for ((node, dir), looked) in nodes.iter().zip(&looked) {
        left.extend(host::owner(dir).map(|pid| Stopping {
            name: &node.name,
            dir,
            pid,
            answers: looked.answer.is_some(),
            leads: leader == Some(&node.name),
            told: None,
        }));
    }
    let mut failures = Vec::new();
    let mut hurries = false;
    while !left.is_empty() {
        let others_answer = left.iter().any(|node| node.answers && !node.leads);
        left.retain_mut(|node| match step(node, late, others_answer, hurries) {
            Ok(is_left) => is_left,
            Err(failure) => {
                failures.push(failure);
                false
            }
        });
        match late {
            Late::Report => host::sleep(LOOK),
            Late::Kill => hurries |= host::wait_for_stop(LOOK).is_some(),
        }
    }
    match failures.is_empty() {
        true => Ok(()),
        false => Err(failures.join("; ")),
    }
}

/// Tells a node to stop when it is its turn, and looks what it does; false when it has ended.
fn step(
    node: &mut Stopping<'_>,
    late: Late,
    others_answer: bool,
    hurries: bool,
) -> Result<bool, Failure> {
    let (name, pid) = (node.name, node.pid);
    if host::owner(node.dir) != Some(pid) {
        println!("{name} stopped");
        return Ok(false);
    }
    let Some(told) = &mut node.told else {
        if !node.leads || !others_answer || hurries {
            tell(name, pid, SIGTERM)?;
            node.told = Some(Duration::ZERO);
        }
        return Ok(true);
    };
    *told += LOOK;
    let patience = match (late, node.answers) {
        (Late::Report, _) => STOP_WAIT_MAX,
        (Late::Kill, true) => KILL_WAIT_MAX,
        (Late::Kill, false) => SILENT_WAIT_MAX,
    };
    if *told <= patience && !hurries {
        return Ok(true);
    }
    if late == Late::Report {
        return Err(format!(
            "{name} (process {pid}) has not stopped in {patience:?}"
        ));
    }
    println!("{name} (process {pid}) does not stop, and is killed");
    tell(name, pid, SIGKILL)?;
    Ok(false)
}

fn tell(name: &str, pid: i32, signal: i32) -> Result<(), Failure> {
    match host::signal(pid, signal) {
        // It may have ended in between.
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("could not stop {name} (process {pid}): {error}"))
        }
        _ => Ok(()),
    }
}
