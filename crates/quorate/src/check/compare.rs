//! Comparing stopped nodes of one cluster: first the histories that their logs tell, then what those
//! of one history hold at an LSN to which all of them can be brought.
//!
//! ```text
//! n1   checkpoint 60 ─────────────────── last 95
//! n2        checkpoint 40 ────────────────── last 97      contents are compared at 95
//! n3   last 50                                            its log alone: the others cannot go back
//! ```
//! Where most agree, the others are named as those who differ.
//!
//! # What it leaves out
//! Contents below the checkpoints: what differs there and not at the common LSN was mended since.

use base::Lsn;
use kv::contents::Contents;
use kv::history::{agreeing, Compared};

use super::{contents_at, Checked};
use crate::Failure;

/// Ranges of keys that are told of a node; of further ones, how many there are.
const RANGES_TOLD_MAX: usize = 10;

/// What a comparison found, in words.
#[derive(Default)]
pub(super) struct Found {
    /// What is the same, or could not be compared.
    pub(super) same: Vec<String>,
    /// What differs.
    pub(super) different: Vec<String>,
}

/// Compares nodes whose files are sound.
pub(super) fn compare(nodes: &[Checked]) -> Result<Found, Failure> {
    if let Some(other) = nodes
        .iter()
        .find(|node| node.config.cluster != nodes[0].config.cluster)
    {
        let (one, other) = (&nodes[0].name, &other.name);
        return Err(format!("{one} and {other} belong to different clusters"));
    }
    let mut found = Found::default();
    let parties = histories(nodes, &mut found);
    for party in parties.iter().filter(|party| party.len() > 1) {
        let party: Vec<&Checked> = party.iter().map(|place| &nodes[*place]).collect();
        contents(&party, &mut found)?;
    }
    Ok(found)
}

fn names<'a>(nodes: impl IntoIterator<Item = &'a Checked>) -> String {
    let names: Vec<&str> = nodes.into_iter().map(|node| &node.name[..]).collect();
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

/// Compares the logs; who agrees with whom.
fn histories(nodes: &[Checked], found: &mut Found) -> Vec<Vec<usize>> {
    let compared = |a: usize, b: usize| nodes[a].report.history.compare(&nodes[b].report.history);
    let parties = agreeing(nodes.len(), |a, b| {
        matches!(compared(a, b), Compared::One(_))
    });
    let of = |party: &[usize]| names(party.iter().map(|place| &nodes[*place]));
    if let [all] = &parties[..] {
        found.same.push(format!("{} have one history", of(all)));
        return parties;
    }
    for other in &parties[1..] {
        let (first, this) = (of(&parties[0]), of(other));
        let have = if other.len() == 1 { "has" } else { "have" };
        let line = match compared(parties[0][0], other[0]) {
            Compared::Two(lsn) => {
                format!("{this} {have} another history than {first} from LSN {lsn} on")
            }
            Compared::TwoBefore(lsn) => format!(
                "{this} {have} another history than {first}: they differ at LSN {lsn}, the first that \
                 both logs have, or before"
            ),
            Compared::Apart | Compared::One(_) => {
                let line = format!("the logs of {this} and {first} have no LSN in common");
                found.same.push(line);
                continue;
            }
        };
        found.different.push(line);
    }
    parties
}

/// Compares what nodes of one history hold.
fn contents(party: &[&Checked], found: &mut Found) -> Result<(), Failure> {
    let newest = party.iter().max_by_key(|node| node.report.history.last());
    let Some(newest) = newest else {
        return Ok(());
    };
    // Up to where a log is part of the history, for what lies above may be nobody's.
    let end = |node: &Checked| match newest.report.history.compare(&node.report.history) {
        Compared::One(lsn) => lsn,
        _ => Lsn::ZERO,
    };
    let floor = party.iter().map(|node| node.report.checkpoint).max();
    let floor = floor.unwrap_or(Lsn::ZERO);
    let (there, behind): (Vec<&Checked>, Vec<&Checked>) =
        party.iter().partition(|node| end(node) >= floor);
    if !behind.is_empty() {
        found.same.push(format!(
            "of {} the log alone is compared: it ends before the checkpoint of another at LSN {floor}",
            names(behind)
        ));
    }
    let Some(lsn) = there.iter().map(|node| end(node)).min() else {
        return Ok(());
    };
    let mut held: Vec<(&Checked, Contents)> = Vec::new();
    for node in there {
        if let Some(contents) = contents_at(node, lsn)? {
            held.push((node, contents));
        }
    }
    if held.len() > 1 {
        tell(&held, lsn, found);
    }
    Ok(())
}

fn tell(held: &[(&Checked, Contents)], lsn: Lsn, found: &mut Found) {
    let parties = agreeing(held.len(), |a, b| held[a].1 == held[b].1);
    let of = |party: &[usize]| names(party.iter().map(|place| held[*place].0));
    let rows = held[0].1.rows();
    if let [all] = &parties[..] {
        let line = format!(
            "{} hold the same at LSN {lsn}: {rows} rows and entries",
            of(all)
        );
        return found.same.push(line);
    }
    for other in &parties[1..] {
        let (first, this) = (of(&parties[0]), of(other));
        let differences = held[parties[0][0]].1.differences(&held[other[0]].1);
        let verb = if other.len() == 1 {
            "differs"
        } else {
            "differ"
        };
        for difference in differences.iter().take(RANGES_TOLD_MAX) {
            let line = format!("{this} {verb} from {first} at LSN {lsn}: {difference}");
            found.different.push(line);
        }
        if differences.len() > RANGES_TOLD_MAX {
            let more = differences.len() - RANGES_TOLD_MAX;
            found.different.push(format!(
                "{this} {verb} from {first} in {more} further ranges"
            ));
        }
    }
}
