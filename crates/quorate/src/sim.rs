//! `quorate sim`: runs whole clusters in simulated worlds, one seed after the other.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ::sim::mix::Mix;
use ::sim::scenario::Config;
use ::sim::series::{command, line, run_seed, run_twice, Totals};

use node::real::host;

use crate::Failure;

/// Which worlds to run.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The first seed; everything follows from it
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many seeds, one after the other
    #[arg(long, default_value_t = 1)]
    runs: u64,
    /// How many nodes each world has
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=9))]
    nodes: u8,
    /// Virtual seconds of faults in each run
    #[arg(long, value_name = "S", default_value_t = ::sim::scenario::FAULTS_FOR.as_secs())]
    seconds: u64,
    /// What is on and how often, where it is not the usual: see docs/TESTING.md
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// A bug that the nodes have on purpose; needs a build with the feature planted-bugs
    #[arg(long, value_name = "NAME")]
    bug: Option<String>,
    /// Run every seed twice, not just every tenth, and compare the courses
    #[arg(long)]
    twice: bool,
    /// Stop at the first seed with something wrong
    #[arg(long)]
    until_wrong: bool,
    /// Print what the nodes log
    #[arg(long)]
    verbose: bool,
}

/// Runs them, prints a line for each and the sums, and fails at the end if anything was wrong.
pub fn run(options: &Options) -> Result<(), Failure> {
    let bug = options.bug.as_deref().map(parse_bug).transpose()?;
    let mix = options.config.as_deref().map(read_mix).transpose()?;
    let file = options.config.as_deref().map(Path::to_string_lossy);
    let mut totals = Totals::default();
    let mut first_wrong = None;
    for seed in (options.seed..).take(usize::try_from(options.runs).unwrap_or(usize::MAX)) {
        let config = Config {
            verbose: options.verbose,
            bug,
            mix: mix.unwrap_or_default(),
            faults: Duration::from_secs(options.seconds),
            ..Config::new(seed, usize::from(options.nodes))
        };
        let outcome = match options.twice {
            true => run_twice(config),
            false => run_seed(config),
        };
        println!("{}", line(&outcome));
        if outcome.violation.is_some() {
            first_wrong.get_or_insert_with(|| command(&config, file.as_deref()));
        }
        totals.add(&outcome);
        if options.until_wrong && first_wrong.is_some() {
            break;
        }
    }
    print!("{}", totals.report());
    println!("{}", totals.line());
    for (seed, violation) in &totals.violations {
        println!("seed {seed}: {violation}");
    }
    first_wrong.map_or(Ok(()), |command| {
        Err(format!("something was wrong; to see it again: {command}"))
    })
}

fn read_mix(path: &Path) -> Result<Mix, Failure> {
    let text = host::read_text(path);
    let text = text.map_err(|error| format!("could not read {}: {error}", path.display()))?;
    Mix::parse(&text).map_err(|wrong| format!("{}: {wrong}", path.display()))
}

fn parse_bug(name: &str) -> Result<::sim::Bug, Failure> {
    let known = || ::sim::Bug::ALL.map(::sim::Bug::name).join(", ");
    let bug = ::sim::Bug::parse(name);
    let bug = bug.ok_or_else(|| format!("no bug is called {name}; there are {}", known()))?;
    match ::sim::CAN_PLANT_BUGS {
        true => Ok(bug),
        false => {
            Err("this build has no planted bugs: build it with --features planted-bugs".into())
        }
    }
}
