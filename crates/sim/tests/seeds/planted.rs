//! The simulator finds the bugs that are planted on purpose (`raft::planted`).
//!
//! `planted.txt` names for each bug a seed that finds it; the same seed finds nothing without the
//! bug. A change of the product changes the course of a seed, so where the recorded seed has
//! nothing to say any more, the seeds after it are tried, up to a bound; `make soak` then records
//! another. A fourth word names a file that says what is on in those worlds, and how often.

use sim::mix::Mix;
use sim::scenario::{run, Config};
use sim::Bug;

/// What is recorded: a bug, how many nodes its worlds have, and a seed that finds it.
const RECORDED: &str = include_str!("planted.txt");

/// What is on in the worlds of a line with a fourth word.
const MIXES: [(&str, &str); 7] = [
    ("deposed.toml", include_str!("deposed.toml")),
    ("files.toml", include_str!("files.toml")),
    ("groups.toml", include_str!("groups.toml")),
    ("leases.toml", include_str!("leases.toml")),
    ("parts.toml", include_str!("parts.toml")),
    ("sound.toml", include_str!("sound.toml")),
    ("transfers.toml", include_str!("transfers.toml")),
];

fn mix_of(name: &str) -> Mix {
    let known = MIXES.into_iter().find(|mix| mix.0 == name);
    let (_, text) = known.unwrap_or_else(|| panic!("{name} is not among the files"));
    Mix::parse(text).expect("a mix")
}

fn recorded() -> Vec<(Bug, Config)> {
    RECORDED
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (bug, nodes, seed, mix) = match words[..] {
                [bug, nodes, seed] => (bug, nodes, seed, Mix::default()),
                [bug, nodes, seed, mix] => (bug, nodes, seed, mix_of(mix)),
                _ => panic!("{line:?} has other words"),
            };
            let bug = Bug::parse(bug).unwrap_or_else(|| panic!("no bug is called {bug}"));
            let number = |word: &str| word.parse::<u64>().expect("a number");
            let config = Config::new(number(seed), number(nodes) as usize);
            (bug, Config { mix, ..config })
        })
        .collect()
}

#[test]
fn every_bug_has_a_recorded_seed() {
    let bugs: Vec<Bug> = recorded().into_iter().map(|(bug, _)| bug).collect();
    assert_eq!(bugs, Bug::ALL);
}

#[test]
fn without_the_bug_the_recorded_seeds_are_sound() {
    for (bug, config) in recorded() {
        let seed = config.seed;
        let outcome = run(config);
        assert_eq!(outcome.violation, None, "seed {seed}, for {}", bug.name());
    }
}

#[cfg(feature = "planted-bugs")]
mod with_bugs {
    use super::*;
    use crate::run_all;

    /// Seeds that are tried after a recorded one that finds nothing any more.
    const SEEDS_AFTER: u64 = 300;

    #[test]
    fn recorded_seeds_find_the_planted_bugs() {
        for (bug, recorded) in recorded() {
            let (seed, nodes) = (recorded.seed, recorded.nodes);
            let config = |seed| Config {
                bug: Some(bug),
                seed,
                ..recorded
            };
            let name = bug.name();
            if let Some(found) = run(config(seed)).violation {
                println!("{name}: seed {seed} of {nodes} nodes: {found}");
                continue;
            }
            let found = |outcome: &sim::scenario::Outcome| outcome.violation.is_some();
            let totals = run_all(seed + 1, SEEDS_AFTER, config, found);
            let Some((another, found)) = totals.violations.first() else {
                panic!("{name}: not found by seed {seed} nor by {SEEDS_AFTER} after it");
            };
            println!(
                "{name}: seed {seed} has nothing to say any more, but seed {another} of {nodes} \
                 nodes does: {found}"
            );
        }
    }
}
