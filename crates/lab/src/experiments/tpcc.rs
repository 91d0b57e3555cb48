//! TPC-C on every system, without waits, at SERIALIZABLE; consistency is checked after each run.

use std::io::Result;
use std::time::Duration;

use super::{interleave, Collected, Context};
use crate::driver::{Driver, BUSY_PERCENT};
use crate::results::{Better, Chart, Check, Experiment, Form, Line};
use crate::systems::System;
use crate::tpcc::consistency;
use crate::tpcc::run::Plan;
use crate::tpcc::DISTRICTS_PER_WAREHOUSE;

/// Sessions that load at once.
const LOADERS: usize = 4;

/// For everything that is drawn.
const SEED: u64 = 7;

/// A run as every experiment has it: SERIALIZABLE, all terminals, no waits.
pub(super) fn plan(context: &Context<'_>, system: &System, connections: usize, seed: u64) -> Plan {
    let mut target = system.target();
    let (name, level) = ("default_transaction_isolation", "serializable");
    target.settings.push((name.to_owned(), level.to_owned()));
    Plan {
        target,
        warehouses: context.extent.warehouses,
        terminals_per_warehouse: DISTRICTS_PER_WAREHOUSE,
        connections,
        wait: false,
        reactors: context.env.session_reactors(),
        seed,
    }
}

pub(super) fn run(context: &Context<'_>, found: &mut Experiment) -> Result<()> {
    let systems = context.start(false, found)?;
    let driver = Driver::new(context.env.clone());
    let warehouses = context.extent.warehouses;
    for system in &systems {
        driver.load_tpcc(&system.target(), warehouses, LOADERS, SEED)?;
        if system.is_postgres() {
            system.endpoint().query("vacuum analyze")?;
            system.endpoint().query("checkpoint")?;
        }
    }
    let mut figures = Collected::new(5);
    let mut curves = Chart::lines(
        Form::Percentiles,
        "Response time of New-Order",
        "ms",
        "percentile, %",
    );
    let mut course = Chart::lines(Form::Time, "New orders", "new orders/s", "time, s");
    let mut seed = SEED;
    interleave(&systems, context.extent.rounds, |system, is_warm_up| {
        if is_warm_up {
            return Ok(());
        }
        seed += 1;
        let connections = context.extent.clients.first().copied().unwrap_or(16);
        let plan = plan(context, system, connections, seed);
        let cost = system.processor_micros()?;
        let length = Duration::from_secs(context.extent.seconds as u64);
        let warm_up = length.min(Duration::from_secs(10)) / 2;
        let run = driver.run_tpcc(&plan, warm_up, length)?;
        let transactions = run.transactions_per_second * (length + warm_up).as_secs_f64();
        let group = match warehouses {
            1 => "1 warehouse".to_owned(),
            _ => format!("{warehouses} warehouses"),
        };
        let name = system.name();
        figures.add(0, &group, name, run.tpmc);
        figures.add(1, &group, name, run.kinds[0].response.p90_ms);
        let retries = run.serialization_retries + run.deadlock_retries;
        let completed = run.transactions_per_second * run.seconds;
        figures.add(2, &group, name, retries as f64 * 100.0 / completed.max(1.0));
        if let (Some(before), Some(after)) = (cost, system.processor_micros()?) {
            figures.add(3, &group, name, (after - before) / transactions.max(1.0));
        }
        figures.add(4, &group, name, run.client.processor_micros);
        context.live.figure(name, run.tpmc, "tpmC");
        if run.client.busy_percent > BUSY_PERCENT {
            found
                .warnings
                .push(format!("{name}: the client was busy all the time"));
        }
        if let Some(failure) = &run.first_failure {
            found
                .warnings
                .push(format!("{name}: {} given up: {failure}", run.failed()));
        }
        if !curves.lines.iter().any(|line| line.series == name) {
            let points = run.kinds[0].response.curve.clone();
            let series = name.to_owned();
            curves.lines.push(Line { series, points });
            let seconds = run.new_orders_by_second.iter().zip(0u32..);
            // The last second is not whole.
            let whole = seconds.take(context.extent.seconds);
            let points = whole.map(|(count, at)| (f64::from(at), f64::from(*count)));
            course.lines.push(Line {
                series: name.to_owned(),
                points: points.collect(),
            });
        }
        let checked = driver.check_tpcc(&plan.target)?;
        found.checks.push(Check {
            what: format!("{name}: {}", consistency::verdict(&checked)),
            held: checked.iter().all(|one| one.broken == 0),
            expected: true,
        });
        Ok(())
    })?;
    for (index, title, unit, better) in [
        (
            0,
            "New orders per minute (tpmC)",
            "new orders/min",
            Better::More,
        ),
        (
            1,
            "90th percentile of New-Order's response",
            "ms",
            Better::Less,
        ),
        (
            2,
            "Tries that failed for serialization",
            "% of transactions",
            Better::Less,
        ),
        (
            3,
            "Processor time of all server processes",
            "µs per transaction",
            Better::Less,
        ),
        (
            4,
            "Processor time of the client",
            "µs per transaction",
            Better::Less,
        ),
    ] {
        found
            .charts
            .push(figures.chart(index, title, unit, "size", better));
    }
    found.charts.push(curves);
    found.charts.push(course);
    Ok(())
}
