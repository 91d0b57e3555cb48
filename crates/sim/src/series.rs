//! Many seeds, and what they have shown together.
//!
//! Every tenth seed runs twice, and its two runs must take the same course: a world whose course
//! does not follow from its seed alone is a violation like any other.

use std::fmt::Write as _;

use crate::faults::{Counts, Fault};
use crate::scenario::{run, Config, Outcome};

/// Every so many seeds one runs twice.
pub const TWICE_EVERY: u64 = 10;

/// The sums over some runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Seeds that ran.
    pub runs: u64,
    /// Seeds that ran twice and took the same course.
    pub twice: u64,
    /// Faults injected.
    pub faults: Counts,
    /// Changes of leader.
    pub failovers: u64,
    /// Commits acknowledged.
    pub commits: u64,
    /// The fewest commits of a seed, and that seed.
    pub commits_min: Option<(u64, u64)>,
    /// Reads answered.
    pub reads: u64,
    /// Writes refused because a disk was full.
    pub lacked_space: u64,
    /// Events of all worlds.
    pub events: u64,
    /// Seeds with something wrong, and what.
    pub violations: Vec<(u64, String)>,
}

impl Totals {
    /// Adds a run.
    pub fn add(&mut self, outcome: &Outcome) {
        self.runs += 1;
        self.twice += u64::from(is_twice(outcome.seed));
        self.faults.add(&outcome.faults);
        self.failovers += outcome.failovers;
        self.commits += outcome.commits;
        let fewest = (outcome.commits, outcome.seed);
        self.commits_min = Some(self.commits_min.map_or(fewest, |known| known.min(fewest)));
        self.reads += outcome.reads;
        self.lacked_space += outcome.lacked_space;
        self.events += outcome.events;
        if let Some(violation) = &outcome.violation {
            self.violations.push((outcome.seed, violation.clone()));
        }
    }

    /// Adds the sums of other runs.
    pub fn merge(&mut self, other: Totals) {
        self.runs += other.runs;
        self.twice += other.twice;
        self.faults.add(&other.faults);
        self.failovers += other.failovers;
        self.commits += other.commits;
        self.commits_min = match (self.commits_min, other.commits_min) {
            (Some(one), Some(another)) => Some(one.min(another)),
            (one, another) => one.or(another),
        };
        self.reads += other.reads;
        self.lacked_space += other.lacked_space;
        self.events += other.events;
        self.violations.extend(other.violations);
        self.violations.sort();
    }

    /// The sums in one line.
    pub fn line(&self) -> String {
        format!(
            "{} seeds: {} commits, {} reads, {} failovers, {} faults",
            self.runs,
            self.commits,
            self.reads,
            self.failovers,
            self.faults.total()
        )
    }

    /// The sums in words, one figure a line.
    pub fn report(&self) -> String {
        let mut out = String::new();
        let mut line = |name: &str, value: u64| {
            let _ = writeln!(out, "{name:>18} {value}");
        };
        line("seeds", self.runs);
        line("of them run twice", self.twice);
        for fault in Fault::ALL {
            line(fault.name(), self.faults.of(fault));
        }
        line("failovers", self.failovers);
        line("commits", self.commits);
        let (fewest, seed) = self.commits_min.unwrap_or_default();
        line("reads", self.reads);
        line("refused for space", self.lacked_space);
        line("events", self.events);
        line("violations", self.violations.len() as u64);
        let _ = writeln!(out, "the fewest commits are {fewest}, of seed {seed}");
        out
    }
}

/// Whether this seed runs twice.
pub fn is_twice(seed: u64) -> bool {
    seed % TWICE_EVERY == 0
}

/// Runs a seed, twice if its turn has come.
pub fn run_seed(config: Config) -> Outcome {
    match is_twice(config.seed) {
        true => run_twice(config),
        false => run(config),
    }
}

/// Runs a seed twice, unless the first run finds something.
pub fn run_twice(config: Config) -> Outcome {
    let mut outcome = run(config);
    if outcome.violation.is_none() {
        let again = run(config);
        if again != outcome {
            outcome.violation = Some(format!(
                "two runs took different courses: {:016x} after {} events, {:016x} after {}",
                outcome.trace, outcome.events, again.trace, again.events
            ));
        }
    }
    outcome
}

/// One run in a line.
pub fn line(outcome: &Outcome) -> String {
    format!(
        "seed {:<6} {:>3} faults {:>2} failovers {:>5} commits {:>5} reads  trace {:016x}  {}",
        outcome.seed,
        outcome.faults.total(),
        outcome.failovers,
        outcome.commits,
        outcome.reads,
        outcome.trace,
        outcome.violation.as_deref().unwrap_or("sound"),
    )
}

/// The one command that repeats a run. A mix that is not the usual one stands in a file.
pub fn command(config: &Config, mix: Option<&str>) -> String {
    let bug = config
        .bug
        .map_or_else(String::new, |bug| format!(" --bug {}", bug.name()));
    let mix = mix.map_or_else(String::new, |file| format!(" --config {file}"));
    format!(
        "quorate sim --seed {} --nodes {} --seconds {}{mix}{bug} --verbose",
        config.seed,
        config.nodes,
        config.faults.as_secs()
    )
}
