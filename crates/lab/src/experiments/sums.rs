//! Experiment D: transfers at REPEATABLE READ while others read the sum of all accounts, on every
//! node.

use std::io::Result;

use super::{interleave, Collected, Context};
use crate::pgbench::checks;
use crate::results::{Better, Check, Experiment};

pub(super) fn run(context: &Context<'_>, found: &mut Experiment) -> Result<()> {
    let systems = context.start(false, found)?;
    let mut figures = Collected::new(1);
    let mut broken: Vec<(String, String)> = Vec::new();
    interleave(&systems, context.extent.rounds, |system, is_warm_up| {
        if is_warm_up {
            // The tables are made anew for each run.
            return Ok(());
        }
        let seconds = context.extent.seconds;
        let done = checks::transfers(
            system.endpoint(),
            &system.endpoints(),
            &context.dir,
            seconds,
        );
        match done {
            Ok(done) => {
                figures.add(0, "16 clients", system.name(), done.rate);
                context.live.figure(system.name(), done.rate, "transfers/s");
            }
            Err(error) => broken.push((system.name().to_owned(), error.to_string())),
        }
        Ok(())
    })?;
    for system in &systems {
        let mut wrong = broken.iter().filter(|(name, _)| name == system.name());
        let error = wrong.next();
        found.checks.push(Check {
            what: match error {
                None => format!("{}: every sum is the same, on every node", system.name()),
                Some((name, error)) => format!("{name}: {error}"),
            },
            held: error.is_none(),
            expected: true,
        });
    }
    let title = "Transfers while sums are read";
    let chart = figures.chart(0, title, "transfers/s", "transferring", Better::More);
    found.charts.push(chart);
    Ok(())
}
