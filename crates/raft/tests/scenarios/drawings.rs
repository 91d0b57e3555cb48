//! Draws what the levels have reached, for the cases of `testdata/watermarks.txt`.
//!
//! A case is a few lines of input and, after `=`, the drawing: a column for each LSN; a replica's
//! row shows `#` where it is flushed, `+` where it is only received, and an `a` under what it has
//! applied; the levels follow, each an arrow up to the LSN that satisfies it.
//! `REWRITE=1 cargo test` draws anew.

use std::fmt::Write;
use std::path::Path;

use base::{Durability, Lsn, NodeId};
use raft::watermarks::{satisfied, Replica, View};
use raft::{Membership, StandbyNames};

/// The last LSN drawn.
const WIDTH: u64 = 12;

#[derive(Default)]
struct Case {
    membership: Membership,
    leader: NodeId,
    commit: Lsn,
    term_start: Lsn,
    replicas: Vec<Replica>,
    names: String,
}

#[test]
fn levels_are_drawn_as_recorded() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/watermarks.txt");
    let recorded = std::fs::read_to_string(&path).unwrap();
    let mut drawn = String::new();
    let mut case = Case::default();
    let mut in_drawing = false;
    for line in recorded.lines() {
        if line == "=" {
            let _ = writeln!(drawn, "=\n{}", case.draw().trim_end());
            case = Case::default();
            in_drawing = true;
        } else if line.is_empty() || line.starts_with('#') {
            let _ = writeln!(drawn, "{line}");
            in_drawing = false;
        } else if !in_drawing {
            case.read(line);
            let _ = writeln!(drawn, "{line}");
        }
    }
    if drawn != recorded && std::env::var_os("REWRITE").is_some() {
        #[allow(clippy::disallowed_methods)]
        std::fs::write(&path, drawn).unwrap();
        return;
    }
    assert!(drawn == recorded, "{drawn}");
}

fn number(text: &str) -> u64 {
    text.trim_start_matches('n').parse().unwrap()
}

fn nodes(words: &[&str]) -> Vec<NodeId> {
    words.iter().map(|word| NodeId(number(word))).collect()
}

impl Case {
    fn read(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["voters", ref rest @ ..] => self.membership.voters = nodes(rest),
            ["outgoing", ref rest @ ..] => self.membership.outgoing = nodes(rest),
            ["learners", ref rest @ ..] => self.membership.learners = nodes(rest),
            ["leader", leader, "commit", commit, "term-start", start] => {
                self.leader = NodeId(number(leader));
                self.commit = Lsn(number(commit));
                self.term_start = Lsn(number(start));
            }
            ["names", ref rest @ ..] => self.names = rest.join(" "),
            [node, "received", received, "flushed", flushed, "applied", applied, ref gone @ ..] => {
                self.replicas.push(Replica {
                    node: NodeId(number(node)),
                    active: gone.is_empty(),
                    received: Lsn(number(received)),
                    flushed: Lsn(number(flushed)),
                    applied: Lsn(number(applied)),
                });
            }
            _ => panic!("no such line: {line}"),
        }
    }

    fn draw(&self) -> String {
        let mut out = String::new();
        let row = |mark: &dyn Fn(u64) -> char| (1..=WIDTH).map(mark).collect::<String>();
        for replica in &self.replicas {
            let flushed = row(&|lsn| match lsn {
                lsn if lsn <= replica.flushed.0 => '#',
                lsn if lsn <= replica.received.0 => '+',
                _ => '.',
            });
            let applied = row(&|lsn| if lsn <= replica.applied.0 { 'a' } else { ' ' });
            let gone = if replica.active { "" } else { "  gone" };
            let _ = writeln!(out, "{:<13} {flushed}{gone}", format!("n{}", replica.node));
            let _ = writeln!(out, "{:<13} {}", "", applied.trim_end());
        }
        let view = View {
            membership: &self.membership,
            leader: self.leader,
            replicas: &self.replicas,
            commit: self.commit,
            term_start: self.term_start,
        };
        let names: Vec<(NodeId, String)> = self
            .replicas
            .iter()
            .map(|replica| (replica.node, format!("n{}", replica.node)))
            .collect();
        let names: Vec<(NodeId, &str)> = names.iter().map(|(n, s)| (*n, s.as_str())).collect();
        let standbys = StandbyNames::parse(&self.names).unwrap().resolve(&names);
        for level in Durability::ALL {
            let lsn = satisfied(level, &view, &standbys);
            let arrow = match lsn {
                Lsn(0) => "|".to_owned(),
                lsn if lsn.0 > WIDTH => format!("{}…", "-".repeat(WIDTH as usize)),
                lsn => format!("{}> {lsn}", "-".repeat(lsn.0 as usize - 1)),
            };
            let _ = writeln!(out, "{:<13} {arrow}", level.name());
        }
        out.lines()
            .filter(|line| !line.trim().is_empty())
            .map(|line| format!("{line}\n"))
            .collect()
    }
}
