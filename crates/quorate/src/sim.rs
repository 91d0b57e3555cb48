//! `quorate sim`: whole clusters in simulated worlds, each decided by its seed.

use std::time::Duration;

use ::sim::scenario::{self, Config, Faults, Outcome};

use crate::Failure;

/// Every so many seeds one runs twice, and both courses must be the same.
const REPEAT_EVERY: u64 = 10;

#[derive(Debug, clap::Args)]
pub struct Options {
    /// The first seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How many seeds, one after another
    #[arg(long, value_name = "M", default_value_t = 1)]
    runs: u64,
    /// Nodes of each cluster
    #[arg(long, value_name = "N", default_value_t = 3)]
    nodes: usize,
    /// Virtual seconds of faults in each run
    #[arg(long, value_name = "S", default_value_t = 20)]
    seconds: u64,
    /// Print what the nodes log
    #[arg(long)]
    verbose: bool,
}

/// What all runs have shown together.
#[derive(Default)]
struct Total {
    faults: Faults,
    failovers: u64,
    commits: u64,
    reads: u64,
    failed: Vec<u64>,
}

/// Runs the seeds.
pub fn run(options: &Options) -> Result<(), Failure> {
    if !(1..=crate::layout::NODES_MAX).contains(&options.nodes) {
        return Err(format!(
            "--nodes is a number from 1 to {}",
            crate::layout::NODES_MAX
        ));
    }
    let mut total = Total::default();
    for seed in (options.seed..).take(usize::try_from(options.runs).unwrap_or(usize::MAX)) {
        let config = Config {
            seed,
            nodes: options.nodes,
            faults: Duration::from_secs(options.seconds),
            verbose: options.verbose,
        };
        let outcome = scenario::run(config);
        let mut violation = outcome.violation.clone();
        if violation.is_none() && seed % REPEAT_EVERY == 0 {
            let again = scenario::run(config);
            if again.trace != outcome.trace {
                violation = Some(format!(
                    "it does not repeat itself: traces {:016x} and {:016x}",
                    outcome.trace, again.trace
                ));
            }
        }
        report(&outcome, violation.as_deref());
        total.add(&outcome, violation.is_some());
    }
    total.report(options.runs);
    match total.failed.first() {
        None => Ok(()),
        Some(seed) => Err(format!(
            "{} of {} seeds failed; replay the first with: quorate sim --seed {seed} --nodes {} \
             --seconds {} --verbose",
            total.failed.len(),
            options.runs,
            options.nodes,
            options.seconds,
        )),
    }
}

fn report(outcome: &Outcome, violation: Option<&str>) {
    println!(
        "seed {}: {} commits, {} reads, {} failovers, trace {:016x}: {}",
        outcome.seed,
        outcome.commits,
        outcome.reads,
        outcome.failovers,
        outcome.trace,
        violation.unwrap_or("sound"),
    );
}

impl Total {
    fn add(&mut self, outcome: &Outcome, has_failed: bool) {
        self.faults.add(&outcome.faults);
        self.failovers += outcome.failovers;
        self.commits += outcome.commits;
        self.reads += outcome.reads;
        if has_failed {
            self.failed.push(outcome.seed);
        }
    }

    fn report(&self, runs: u64) {
        println!(
            "{runs} seeds: {} commits, {} reads, {} failovers",
            self.commits, self.reads, self.failovers
        );
        let kinds = self.faults.kinds();
        let kinds: Vec<_> = kinds
            .iter()
            .map(|(name, count)| format!("{count} {name}"))
            .collect();
        println!("faults: {}", kinds.join(", "));
    }
}
