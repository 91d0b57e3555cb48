//! Latency at a fixed rate: transactions are due at moments drawn beforehand (pgbench's `--rate`),
//! and latency counts from there, whether a client was free or not.

use std::io::Result;

use hdrhistogram::Histogram;

use super::{interleave, Context};
use crate::host::write_file;
use crate::pgbench::{self, Tables};
use crate::report::Figure;
use crate::results::{Better, Chart, Experiment, Form, Line};
use crate::tpcc::report::Percentiles;

/// Latencies above this count as this.
const MICROS_MAX: u64 = 600_000_000;

pub(super) fn run(context: &Context<'_>, found: &mut Experiment) -> Result<()> {
    let systems = context.start(false, found)?;
    let tables = Tables::Experiment {
        rows: context.extent.rows,
    };
    for system in &systems {
        tables.make(system)?;
    }
    let script = context.dir.join("upsert.sql");
    write_file(&script, pgbench::script("b_upsert.sql").unwrap_or_default())?;
    let clients = context.extent.clients.first().copied().unwrap_or(1);
    let mut tails = Chart::bars("99th percentile", "ms", "arrivals", Better::Less);
    for rate in &context.extent.rates {
        let title = format!("Upserts arriving at {rate} a second");
        let mut chart = Chart::lines(Form::Percentiles, &title, "ms", "percentile, %");
        let mut all: Vec<(String, Histogram<u32>, Figure)> = systems
            .iter()
            .map(|system| {
                let none = Figure { rounds: Vec::new() };
                (system.name().to_owned(), histogram(), none)
            })
            .collect();
        interleave(&systems, context.extent.rounds, |system, is_warm_up| {
            let seconds = if is_warm_up {
                1
            } else {
                context.extent.seconds
            };
            let rate = rate.to_string();
            let micros = pgbench::latencies(
                system.endpoint(),
                &context.dir,
                clients,
                seconds,
                &[
                    "-M",
                    "prepared",
                    "-R",
                    &rate,
                    "-f",
                    &script.display().to_string(),
                ],
            )?;
            if is_warm_up {
                return Ok(());
            }
            let mut round = histogram();
            for value in &micros {
                round.saturating_record((*value as u64).clamp(1, MICROS_MAX));
            }
            let p99 = round.value_at_percentile(99.0) as f64 / 1e3;
            context
                .live
                .figure(&format!("{}: p99", system.name()), p99, "ms");
            let mut systems = all.iter_mut();
            if let Some((_, whole, figure)) = systems.find(|(name, ..)| name == system.name()) {
                // Both have the same bounds.
                let added = whole.add(&round);
                assert!(added.is_ok(), "histograms of different bounds: {added:?}");
                figure.rounds.push(p99);
            }
            Ok(())
        })?;
        for (name, whole, figure) in &all {
            chart.lines.push(Line {
                series: name.clone(),
                points: Percentiles::of(whole).curve,
            });
            tails.bar(&format!("{rate} a second"), name, figure);
        }
        found.charts.push(chart);
    }
    found.charts.push(tails);
    Ok(())
}

fn histogram() -> Histogram<u32> {
    Histogram::new_with_bounds(1, MICROS_MAX, 3)
        .unwrap_or_else(|error| panic!("bounds of a histogram: {error}"))
}
