//! The seeds of every test run, and the floors below which they would prove little.

use sim::faults::Fault;
use sim::mix::Mix;
use sim::scenario::Config;
use sim::series::{command, Totals, TWICE_EVERY};

use crate::run_all;

/// Every kind of fault is injected at least so often …
const FAULTS_OF_A_KIND_MIN: u64 = 50;

/// … but for the loss of a majority, which takes half a run.
const LOST_MAJORITIES_MIN: u64 = 8;

/// … and for old directories and damaged ones, of which a run has one at most, and none before
/// somebody has died.
const OLD_DIRECTORIES_MIN: u64 = 3;

/// Fewer seeds, which have several groups or transactions that are prepared, have leaders die at least so often.
const FAULTS_OF_FEW_SEEDS_MIN: u64 = 10;

/// The leader changes at least so often.
const FAILOVERS_MIN: u64 = 50;

/// So many writes at least are refused because a disk is full.
const LACKED_SPACE_MIN: u64 = 50;

/// Every seed acknowledges at least so many commits.
const COMMITS_MIN: u64 = 100;

fn run(nodes: usize, count: u64) -> Totals {
    run_mixed(nodes, count, None)
}

/// With what a file says.
fn run_mixed(nodes: usize, count: u64, file: Option<(&str, &str)>) -> Totals {
    let (name, mix) = file.map_or((None, Mix::default()), |(name, text)| {
        (Some(name), Mix::parse(text).expect("a mix"))
    });
    let config = |seed| Config {
        mix,
        ..Config::new(seed, nodes)
    };
    let totals = run_all(1, count, config, |_| false);
    println!("{nodes} nodes:\n{}", totals.report());
    let wrong: Vec<String> = totals
        .violations
        .iter()
        .map(|(seed, wrong)| format!("{}: {wrong}", command(&config(*seed), name)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(totals.runs, count);
    assert_eq!(totals.twice, count / TWICE_EVERY);
    let (fewest, seed) = totals.commits_min.expect("seeds ran");
    assert!(
        fewest >= COMMITS_MIN,
        "seed {seed} acknowledged {fewest} commits only"
    );
    totals
}

#[test]
fn two_hundred_seeds_of_three_nodes() {
    let totals = run(3, 200);
    for fault in Fault::ALL {
        let count = totals.faults.of(fault);
        let name = fault.name();
        let least = match fault {
            Fault::LostMajority => LOST_MAJORITIES_MIN,
            Fault::OldDirectory | Fault::BitRot => OLD_DIRECTORIES_MIN,
            _ => FAULTS_OF_A_KIND_MIN,
        };
        assert!(count >= least, "{count} {name} only");
    }
    assert!(totals.failovers >= FAILOVERS_MIN, "{}", totals.report());
    let lacked = totals.lacked_space;
    assert!(lacked >= LACKED_SPACE_MIN, "{}", totals.report());
}

#[test]
fn fifty_seeds_of_one_node() {
    let totals = run(1, 50);
    assert!(totals.faults.of(Fault::LeaderCrash) >= FAULTS_OF_A_KIND_MIN);
}

#[test]
fn twenty_seeds_of_five_nodes() {
    run(5, 20);
}

#[test]
fn forty_seeds_of_three_groups() {
    let file = (
        "crates/sim/tests/seeds/groups.toml",
        include_str!("groups.toml"),
    );
    let totals = run_mixed(3, 40, Some(file));
    assert!(totals.faults.of(Fault::LeaderCrash) >= FAULTS_OF_FEW_SEEDS_MIN);
}

#[test]
fn thirty_seeds_of_three_groups_that_are_led_apart() {
    let file = (
        "crates/sim/tests/seeds/groups-apart.toml",
        include_str!("groups-apart.toml"),
    );
    run_mixed(3, 30, Some(file));
}

#[test]
fn twenty_seeds_of_three_groups_that_lose_majorities() {
    let file = (
        "crates/sim/tests/seeds/groups-lost.toml",
        include_str!("groups-lost.toml"),
    );
    let totals = run_mixed(3, 20, Some(file));
    assert!(totals.faults.of(Fault::LostMajority) > 0);
}

#[test]
fn thirty_seeds_of_two_phases() {
    let file = (
        "crates/sim/tests/seeds/two-phase.toml",
        include_str!("two-phase.toml"),
    );
    let totals = run_mixed(3, 30, Some(file));
    assert!(totals.faults.of(Fault::LeaderCrash) >= FAULTS_OF_FEW_SEEDS_MIN);
}
