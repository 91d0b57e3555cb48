//! What TPC-C's client takes, measured on a process of its own against [`crate::tpcc::stub`] in
//! another: neither a server nor this process's own memory is in the figures.

use std::io::{Error, Result};
use std::process::Command;

use super::{Collected, Context};
use crate::host::{free_port, read_file, run as run_command, wait_for, Process, PATIENCE};
use crate::results::{Better, Chart, Check, Experiment, Form, Line};
use crate::tpcc::report::Figures;

/// What the client may take for 150,000 terminals.
const MEMORY_MAX: u64 = 150 << 20;

const CLIENT: &str = "the client";

pub(super) fn run(context: &Context<'_>, found: &mut Experiment) -> Result<()> {
    let address = format!("127.0.0.1:{}", free_port(&["127.0.0.1"])?);
    let log = context.dir.join("stub.log");
    let mut stub = Command::new(&context.site.program);
    stub.args(["lab", "tpcc", "stub", "--listen", &address]);
    let _stub = Process::start(&mut stub, &log)?;
    wait_for("the stub", PATIENCE, || {
        read_file(&log).is_ok_and(|text| text.contains("answers at"))
    })?;
    let mut figures = Collected::new(4);
    let mut group = String::new();
    for round in 0..context.extent.rounds {
        let measured = one(context, &address)?;
        group = format!("{} terminals", measured.terminals);
        let memory = measured.client.memory_bytes;
        for (chart, value) in [
            memory as f64 / 1e6,
            measured.client.processor_micros,
            measured.tpmc,
            measured.efficiency_percent,
        ]
        .into_iter()
        .enumerate()
        {
            figures.add(chart, &group, CLIENT, value);
        }
        context
            .live
            .figure("peak of memory", memory as f64 / 1e6, "MB");
        found.checks.push(Check {
            what: format!(
                "{group} within {} MB: {:.0} MB at most",
                MEMORY_MAX >> 20,
                memory as f64 / f64::from(1 << 20)
            ),
            held: memory <= MEMORY_MAX,
            expected: true,
        });
        if round == 0 {
            let title = "Response time of New-Order against the stub";
            let mut chart = Chart::lines(Form::Percentiles, title, "ms", "percentile, %");
            chart.lines.push(Line {
                series: CLIENT.to_owned(),
                points: measured.kinds[0].response.curve.clone(),
            });
            found.charts.push(chart);
            found.notes.push(format!(
                "{:.1} statements and {:.1} round trips per transaction, {} connections; busy for \
                 {:.0}% of the time of its threads.",
                measured.statements_per_transaction,
                measured.round_trips_per_transaction,
                measured.connections,
                measured.client.busy_percent
            ));
        }
    }
    for (index, title, unit, better) in [
        (0, "Peak of resident memory", "MB", Better::Less),
        (
            1,
            "Processor time of the client",
            "µs per transaction",
            Better::Less,
        ),
        (
            2,
            "New orders per minute (tpmC)",
            "new orders/min",
            Better::Neither,
        ),
        (3, "Efficiency", "% of 12.86 per warehouse", Better::More),
    ] {
        let chart = figures.chart(index, title, unit, "size", better);
        found.charts.push(chart);
    }
    match group.is_empty() {
        true => Err(Error::other("no round was run")),
        false => Ok(()),
    }
}

/// One run of a client process.
fn one(context: &Context<'_>, address: &str) -> Result<Figures> {
    let json = context.dir.join("figures.json");
    let connections = context.extent.clients.first().copied().unwrap_or(64);
    let mut client = Command::new(&context.site.program);
    client
        .args(["lab", "tpcc", "run", "--no-check", "--warm-up", "5"])
        .args(["--url", &format!("postgres://{address}")])
        .args(["--warehouses", &context.extent.warehouses.to_string()])
        .args(["--connections", &connections.to_string()])
        .args(["--seconds", &context.extent.seconds.to_string()])
        .arg("--json")
        .arg(&json);
    run_command(&mut client)?;
    serde_json::from_str(&read_file(&json)?).map_err(Error::other)
}
