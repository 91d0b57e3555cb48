//! Runs the scripts of `testdata/scenarios`. A line `> command` is followed by its output; `#`
//! begins a comment. `REWRITE=1 cargo test` writes the outputs anew, to be reviewed.
//!
//! ```text
//! cluster VOTERS [LEARNERS]       a group of new replicas
//! run TIME                        lets time pass
//! trace TIME                      the same, and shows every message
//! campaign N                      stands for election
//! propose N DATA                  proposes
//! hurry N A,B                     others than these get what is proposed late
//! crash N, restart N, add N       of a process; a new one
//! stall N, resume N               as SIGSTOP and SIGCONT do
//! isolate N, cut A B, heal        the network; one direction only
//! slow N TIME                     a disk's latency
//! disk N hangs|works              what the driver says of the disk
//! compact N                       a checkpoint, and no log before it
//! transfer A B                    hands leadership over
//! change N +4 -3 ~2               adds a voter, removes, adds a learner
//! status, log, memberships        what the replicas know
//! satisfied N [NAMES]             what the levels have reached; nodes are named n1, n2, …
//! ```

use std::fmt::Write;
use std::path::{Path, PathBuf};

use base::{Durability, Lsn, NodeId};
use raft::{Condition, ConfChange, Laziness, StandbyNames};

use crate::cluster::{milliseconds, Cluster};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/scenarios")
}

#[test]
fn scripts_give_their_recorded_output() {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(directory())
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    let mut wrong = Vec::new();
    for path in paths {
        let recorded = std::fs::read_to_string(&path).unwrap();
        let actual = replay(&recorded);
        if actual == recorded {
            continue;
        }
        if std::env::var_os("REWRITE").is_some() {
            #[allow(clippy::disallowed_methods)]
            std::fs::write(&path, actual).unwrap();
        } else {
            println!("---- {}\n{actual}", path.display());
            wrong.push(path);
        }
    }
    assert!(wrong.is_empty(), "other output than recorded: {wrong:?}");
}

/// The script with the output that it gives now.
fn replay(recorded: &str) -> String {
    let mut out = String::new();
    let mut cluster = Cluster::new(&[1], &[], 1);
    let mut after_command = false;
    for line in recorded.lines() {
        if let Some(command) = line.strip_prefix("> ") {
            let words: Vec<&str> = command.split_whitespace().collect();
            let _ = writeln!(out, "{line}");
            out.push_str(&execute(&mut cluster, &words));
            after_command = true;
        } else if line.is_empty() || line.starts_with('#') {
            let _ = writeln!(out, "{line}");
            after_command = false;
        } else {
            assert!(after_command, "output without a command: {line}");
        }
    }
    out
}

fn execute(cluster: &mut Cluster, words: &[&str]) -> String {
    cluster.transitions.clear();
    let mut out = String::new();
    match words {
        ["cluster", voters] => *cluster = Cluster::new(&ids(voters), &[], 1),
        ["cluster", voters, learners] => {
            *cluster = Cluster::new(&ids(voters), &ids(learners), 1);
        }
        ["run", time] => cluster.run(milliseconds(time)),
        ["trace", time] => {
            cluster.trace = Some(Vec::new());
            cluster.run(milliseconds(time));
            for line in cluster.trace.take().unwrap_or_default() {
                let _ = writeln!(out, "{line}");
            }
        }
        ["campaign", id] => {
            let now = cluster.replicas[&node(id)].now(cluster.time);
            cluster.up(node(id)).campaign(now);
            cluster.drain(node(id));
        }
        ["propose", id, data] => match cluster.propose(node(id), data.as_bytes()) {
            Ok(at) => drop(writeln!(out, "{}.{}", at.term, at.lsn)),
            Err(error) => drop(writeln!(out, "{error}")),
        },
        ["hurry", id, only] => {
            let hurried = Laziness::Except(ids(only).into_iter().map(NodeId).collect());
            cluster.up(node(id)).be_lazy(hurried);
            cluster.drain(node(id));
        }
        ["crash", id] => cluster.crash(node(id)),
        ["restart", id] => cluster.start(node(id)),
        ["add", id] => cluster.add(node(id)),
        ["stall", id] => cluster.replica(node(id)).stalled = true,
        ["resume", id] => cluster.resume(node(id)),
        ["isolate", id] => cluster.isolate(node(id)),
        ["cut", from, to] => cluster.cut.extend([(node(from), node(to))]),
        ["heal"] => cluster.cut.clear(),
        ["slow", id, time] => cluster.replica(node(id)).flush_latency = milliseconds(time),
        ["disk", id, how] => cluster
            .up(node(id))
            .note_condition(Condition::default(), *how == "hangs"),
        ["compact", id] => cluster.compact(node(id)),
        ["transfer", from, to] => match cluster.up(node(from)).transfer_leadership(node(to)) {
            Ok(()) => cluster.drain(node(from)),
            Err(error) => drop(writeln!(out, "{error}")),
        },
        ["change", id, changes @ ..] => out.push_str(&change(cluster, node(id), changes)),
        ["status"] => out.push_str(&status(cluster)),
        ["log"] => out.push_str(&log(cluster)),
        ["memberships"] => out.push_str(&memberships(cluster)),
        ["satisfied", id, names @ ..] => {
            out.push_str(&satisfied(cluster, node(id), &names.join(" ")));
        }
        _ => panic!("no such command: {words:?}"),
    }
    for transition in cluster.transitions.drain(..) {
        let _ = writeln!(out, "{transition}");
    }
    out
}

fn ids(text: &str) -> Vec<u64> {
    text.split(',').map(|id| id.parse().unwrap()).collect()
}

fn node(text: &str) -> NodeId {
    NodeId(text.parse().unwrap())
}

fn change(cluster: &mut Cluster, at: NodeId, changes: &[&str]) -> String {
    let changes: Vec<ConfChange> = changes
        .iter()
        .map(|change| match change.split_at(1) {
            ("+", id) => ConfChange::AddVoter(node(id)),
            ("~", id) => ConfChange::AddLearner(node(id)),
            ("-", id) => ConfChange::Remove(node(id)),
            _ => panic!("no such change: {change}"),
        })
        .collect();
    let term = cluster.up(at).term();
    let result = cluster
        .up(at)
        .propose_conf_change(term, &changes, Vec::new());
    cluster.drain(at);
    match result {
        Ok(at) => format!("{}.{}\n", at.term, at.lsn),
        Err(error) => format!("{error}\n"),
    }
}

fn status(cluster: &Cluster) -> String {
    let mut out = format!(
        "{:>4} {:<13} {:>4} {:>6} {:>6} {:>4} {:>8} {:>7} {:>7} {:>5}\n",
        "node",
        "role",
        "term",
        "leader",
        "commit",
        "last",
        "received",
        "flushed",
        "applied",
        "lease"
    );
    for replica in cluster.replicas.values() {
        let Some(consensus) = &replica.consensus else {
            let _ = writeln!(out, "{:>4} down", replica.id);
            continue;
        };
        let now = replica.now(cluster.time);
        let status = consensus.status(now);
        let leader = status.leader.map_or("-".to_owned(), |l| l.to_string());
        let lease = match consensus.lease_is_valid(now) {
            true => "yes",
            false => "no",
        };
        let _ = writeln!(
            out,
            "{:>4} {:<13} {:>4} {:>6} {:>6} {:>4} {:>8} {:>7} {:>7} {:>5}",
            replica.id,
            status.role.name(),
            status.term,
            leader,
            status.commit,
            status.last,
            status.received,
            status.flushed,
            status.applied,
            lease
        );
        for peer in status.peers {
            let _ = writeln!(
                out,
                "     to {} {:?}{}: sent {}, received {}, flushed {}, applied {}",
                peer.node,
                peer.state,
                if peer.active { "" } else { ", not heard of" },
                peer.sent,
                peer.received,
                peer.flushed,
                peer.applied
            );
        }
    }
    out
}

fn log(cluster: &Cluster) -> String {
    let mut out = String::new();
    for replica in cluster.replicas.values() {
        let content = replica.log.0.borrow();
        let _ = write!(out, "{}:", replica.id);
        if content.before.lsn > Lsn::ZERO {
            let _ = write!(out, " …{}", content.before.lsn);
        }
        for entry in &content.entries {
            let data = match entry.kind {
                raft::EntryKind::Normal => String::from_utf8_lossy(&entry.data).into_owned(),
                kind => format!("{kind:?}").to_lowercase(),
            };
            let _ = write!(out, " {}.{} {data},", entry.term, entry.lsn);
        }
        let _ = writeln!(out);
    }
    out
}

fn memberships(cluster: &Cluster) -> String {
    let mut out = String::new();
    for replica in cluster.replicas.values() {
        let Some(consensus) = &replica.consensus else {
            continue;
        };
        let membership = consensus.membership();
        let list = |nodes: &[NodeId]| {
            let nodes: Vec<String> = nodes.iter().map(ToString::to_string).collect();
            nodes.join(",")
        };
        let _ = writeln!(
            out,
            "{}: voters {}; outgoing {}; learners {}",
            replica.id,
            list(&membership.voters),
            list(&membership.outgoing),
            list(&membership.learners)
        );
    }
    out
}

fn satisfied(cluster: &Cluster, at: NodeId, names: &str) -> String {
    let members: Vec<(NodeId, String)> = cluster
        .replicas
        .keys()
        .map(|node| (*node, format!("n{node}")))
        .collect();
    let members: Vec<(NodeId, &str)> = members
        .iter()
        .map(|(node, name)| (*node, name.as_str()))
        .collect();
    let standbys = StandbyNames::parse(names).unwrap().resolve(&members);
    let replica = &cluster.replicas[&at];
    let now = replica.now(cluster.time);
    let consensus = replica.consensus.as_ref().unwrap();
    let mut out = String::new();
    for level in Durability::ALL {
        let lsn = consensus.satisfied(level, &standbys, now);
        let lsn = match lsn {
            Lsn::MAX => "all".to_owned(),
            lsn => lsn.to_string(),
        };
        let _ = write!(out, "{} {lsn}  ", level.name());
    }
    format!("{}\n", out.trim_end())
}
