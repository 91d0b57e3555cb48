//! Seeds.

use super::run;
use crate::planted::Bug;

/// Worlds without a bug, if `QUORATE_SPANNING_SEEDS` says nothing else.
const SEEDS: u64 = 1_000;
/// Within so many worlds each bug is found.
const SEEDS_OF_BUG: u64 = 1_000;

#[test]
fn worlds_are_sound() {
    let (mut commits, mut spanning, mut reads, mut elections) = (0, 0, 0, 0);
    let wanted = std::env::var("QUORATE_SPANNING_SEEDS");
    let seeds = wanted.map_or(SEEDS, |seeds| seeds.parse().expect("a number"));
    for seed in 1..=seeds {
        let report = run(seed, None);
        assert_eq!(report.violation, None, "seed {seed}: {report:?}");
        commits += report.commits;
        spanning += report.spanning;
        reads += report.reads;
        elections += report.elections;
    }
    println!(
        "{seeds} seeds: {commits} commits, {spanning} of them across groups, {reads} reads, \
         {elections} elections"
    );
    assert!(spanning > 10 * seeds as usize && elections > 10 * seeds as usize);
}

#[test]
fn every_planted_bug_is_found() {
    let mut missed = Vec::new();
    for bug in Bug::ALL {
        let found =
            (1..=SEEDS_OF_BUG).find_map(|seed| Some((seed, run(seed, Some(bug)).violation?)));
        match found {
            Some((seed, violation)) => {
                let short: String = violation.chars().take(160).collect();
                println!("{bug:?}: seed {seed}: {short}");
            }
            None => missed.push(bug),
        }
    }
    assert_eq!(missed, Vec::new());
}

#[test]
fn a_seed_runs_the_same_twice() {
    assert_eq!(format!("{:?}", run(3, None)), format!("{:?}", run(3, None)));
}
