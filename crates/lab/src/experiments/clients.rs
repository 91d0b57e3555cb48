//! Experiment B and pgbench's own scripts: many clients of the real pgbench over TCP.
//!
//! Three figures for each system, workload and number of clients: transactions per second as pgbench
//! counts them, and what all server processes spend on one: microseconds of processor time, and
//! kilobytes that the disk was given meanwhile. On a machine where clients and servers share the
//! cores, the second says why the first is what it is.
//!
//! Of pgbench's tables, what the runs leave behind is checked at the end.

use std::io::{Error, Result};
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

use super::{interleave, Collected, Context};
use crate::host::{pause, processor_micros_of_children, write_file, written_bytes};
use crate::pgbench::{self, checks, Tables};
use crate::results::{Better, Check, Experiment};
use crate::systems::System;

/// How long the processes of PostgreSQL's sessions may take to end after their clients.
const SESSIONS_END: Duration = Duration::from_millis(300);

/// Seconds of the round that warms up.
const WARM_UP_SECONDS: usize = 1;

/// A client that takes more of the machine's processors than this is what was measured.
pub(super) const CLIENT_SHARE_MAX: f64 = 0.6;

/// One workload of a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Workload {
    name: String,
    title: String,
    tables: Which,
    /// A script of `tests/scripts`.
    script: Option<String>,
    /// A script of pgbench's.
    builtin: Option<String>,
    #[serde(default)]
    scale: usize,
    /// Numbers of clients, if not those of the experiment.
    #[serde(default)]
    clients: Vec<usize>,
    #[serde(default = "prepared")]
    protocol: String,
}

fn prepared() -> String {
    "prepared".to_owned()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Which {
    Experiment,
    Pgbench,
}

impl Workload {
    fn tables(&self, context: &Context<'_>) -> Tables {
        match self.tables {
            Which::Experiment => Tables::Experiment {
                rows: context.extent.rows,
            },
            Which::Pgbench => Tables::Pgbench { scale: self.scale },
        }
    }

    /// pgbench's arguments.
    fn arguments(&self, context: &Context<'_>) -> Result<Vec<String>> {
        let mut arguments = vec!["-M".to_owned(), self.protocol.clone()];
        if let Some(builtin) = &self.builtin {
            arguments.extend(["-b".to_owned(), builtin.clone()]);
        }
        if let Some(script) = &self.script {
            let text = pgbench::script(script)
                .ok_or_else(|| Error::other(format!("{}: no script {script}", self.name)))?;
            // The article's tables have ten million rows, these as many as there are.
            let rows = format!("random(1,{})", context.extent.rows);
            let path = context.dir.join(script);
            write_file(&path, &text.replace("random(1,10000000)", &rows))?;
            arguments.extend(["-f".to_owned(), path.display().to_string()]);
        }
        Ok(arguments)
    }
}

pub(super) fn run(context: &Context<'_>, found: &mut Experiment) -> Result<()> {
    let systems = context.start(false, found)?;
    let mut figures = Collected::new(3);
    let mut made = None;
    let mut client_share: f64 = 0.0;
    for workload in &context.definition.workloads {
        let tables = workload.tables(context);
        if made.replace(tables) != Some(tables) {
            for system in &systems {
                tables.make(system)?;
            }
        }
        let arguments = workload.arguments(context)?;
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let clients = match workload.clients.is_empty() {
            true => &context.extent.clients,
            false => &workload.clients,
        };
        for clients in clients {
            let group = match clients {
                1 => format!("{}, 1 client", workload.title),
                _ => format!("{}, {clients} clients", workload.title),
            };
            interleave(&systems, context.extent.rounds, |system, is_warm_up| {
                let seconds = if is_warm_up {
                    WARM_UP_SECONDS
                } else {
                    context.extent.seconds
                };
                let (done, share) = one(system, *clients, seconds, &arguments, &context.dir)?;
                if is_warm_up {
                    return Ok(());
                }
                client_share = client_share.max(share);
                let values = [
                    Some(done.rate),
                    done.processor_micros,
                    done.written_kilobytes,
                ];
                for (chart, value) in values.into_iter().enumerate() {
                    if let Some(value) = value {
                        figures.add(chart, &group, system.name(), value);
                    }
                }
                let what = format!("{}: {group}", system.name());
                context.live.figure(&what, done.rate, "transactions/s");
                Ok(())
            })?;
        }
        if let Tables::Pgbench { .. } = tables {
            for system in &systems {
                let held = checks::tpcb_adds_up(system.endpoint()).is_ok();
                let (name, workload) = (system.name(), &workload.title);
                found.checks.push(Check {
                    what: format!("{name}: balances and history agree after {workload}"),
                    held,
                    expected: true,
                });
            }
        }
    }
    for (index, title, unit, better) in [
        (0, "Transactions per second", "transactions/s", Better::More),
        (
            1,
            "Processor time of all server processes",
            "µs per transaction",
            Better::Less,
        ),
        (
            2,
            "Written to the disk meanwhile",
            "kB per transaction",
            Better::Less,
        ),
    ] {
        found
            .charts
            .push(figures.chart(index, title, unit, "workload", better));
    }
    if client_share > CLIENT_SHARE_MAX {
        found.warnings.push(format!(
            "pgbench took up to {:.0}% of the machine's processors: where it did, it is what was measured",
            client_share * 100.0
        ));
    }
    Ok(())
}

struct Done {
    rate: f64,
    processor_micros: Option<f64>,
    written_kilobytes: Option<f64>,
}

/// One run, and the share of the machine's processors that pgbench took.
fn one(
    system: &System,
    clients: usize,
    seconds: usize,
    arguments: &[&str],
    dir: &Path,
) -> Result<(Done, f64)> {
    let processor = system.processor_micros()?;
    // What runs elsewhere may write elsewhere.
    let written = || processor.and_then(|_| written_bytes(dir));
    let before = (written(), processor_micros_of_children()?);
    let run = pgbench::pgbench(system.endpoint(), clients, seconds, arguments)?;
    let client = processor_micros_of_children()? - before.1;
    pause(SESSIONS_END);
    let each = |after: Option<f64>, before: Option<f64>| {
        Some((after? - before?) / run.transactions.max(1.0))
    };
    let cores = crate::host::cores() as f64;
    let done = Done {
        rate: run.rate,
        processor_micros: each(system.processor_micros()?, processor),
        written_kilobytes: each(written(), before.0).map(|bytes| bytes / 1e3),
    };
    Ok((done, client / 1e6 / seconds as f64 / cores))
}
