//! More data than memory: a load, random point reads, random upserts and scans of everything, with
//! small buffers, each system's servers in a control group that limits their memory.
//!
//! Where no such group can be made (it takes root), the buffers are as small and the rest is not
//! limited; the report says so. Peaks are looked for once a second.

use std::io::Result;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{interleave, Collected, Context};
use crate::host::{allocated_bytes, beside, go_on, pause, resident_bytes, write_file};
use crate::pgbench;
use crate::results::{Better, Check, Experiment};
use crate::systems::System;

/// Rows that one statement of the load inserts.
const LOAD_ROWS: usize = 1_000_000;

/// How often memory is looked at.
const LOOK: Duration = Duration::from_secs(1);

const TABLE: &str = "create table test2(id int primary key, info text, crt_time timestamp)";

/// What a scan of everything gives is known: md5 has 32 digits.
const SCAN: &str = "select count(*), sum(length(info)) from test2";

/// Places of the charts.
const BULK: usize = 0;
const SINGLE: usize = 1;
const PEAK: usize = 2;
const FILES: usize = 3;

pub(super) fn run(context: &Context<'_>, found: &mut Experiment) -> Result<()> {
    let systems = context.start(false, found)?;
    note_limit(context, &systems, found);
    let mut figures = Collected::new(4);
    let over = AtomicBool::new(false);
    let processes: Vec<Vec<u32>> = systems.iter().map(System::processes).collect();
    let look = || {
        let mut peaks = vec![0; processes.len()];
        while !over.load(Ordering::Relaxed) {
            for (peak, processes) in peaks.iter_mut().zip(&processes) {
                *peak = resident_bytes(processes).unwrap_or(0).max(*peak);
            }
            pause(LOOK);
        }
        peaks
    };
    let main = || {
        let measured = measure(context, &systems, &mut figures);
        over.store(true, Ordering::Relaxed);
        measured
    };
    let (measured, peaks) = beside(1, look, main)?;
    measured?;
    for (system, peak) in systems.iter().zip(peaks.into_iter().flatten()) {
        if peak > 0 {
            figures.add(PEAK, "whole run", system.name(), peak as f64 / 1e6);
        }
        if let Some(group) = system.group() {
            let kills = group.kills()?;
            found.checks.push(Check {
                what: format!("{}: none of its processes wanted too much", system.name()),
                held: kills == 0,
                expected: true,
            });
        }
    }
    for (index, title, unit, better) in [
        (
            BULK,
            "A load, and scans of everything",
            "rows/s",
            Better::More,
        ),
        (
            SINGLE,
            "Random point reads and upserts",
            "transactions/s",
            Better::More,
        ),
        (
            PEAK,
            "Peak of resident memory, the page cache left out",
            "MB",
            Better::Less,
        ),
        (FILES, "Files of data", "MB", Better::Less),
    ] {
        let chart = figures.chart(index, title, unit, "work", better);
        found.charts.push(chart);
    }
    Ok(())
}

/// Says to what memory is limited, or that it is not.
fn note_limit(context: &Context<'_>, systems: &[System], found: &mut Experiment) {
    let megabytes = context.extent.memory_mb;
    let mut limited = systems.iter().filter(|system| system.is_ours());
    match limited.all(|system| system.group().is_some()) {
        true => found.notes.push(format!(
            "The servers of each system have {megabytes} MB of memory, the page cache of their \
             files included."
        )),
        false => found.warnings.push(format!(
            "Memory could not be limited to {megabytes} MB, which takes root and control groups: \
             only the buffers are small, and the page cache may hold all of the files"
        )),
    }
}

fn measure(context: &Context<'_>, systems: &[System], figures: &mut Collected) -> Result<()> {
    for system in systems {
        let rate = load(context, system)?;
        figures.add(BULK, "load", system.name(), rate);
        note_files(system, "loaded", figures);
    }
    let rows = context.extent.rows;
    let clients = context.extent.clients.first().copied().unwrap_or(16);
    let read = format!("\\set id random(1, {rows})\nselect * from test2 where id = :id;\n");
    let upsert = pgbench::script("b_upsert.sql").unwrap_or_default();
    let upsert = upsert.replace("random(1,1000000000)", &format!("random(1, {rows})"));
    for (work, text) in [("random reads", read), ("random upserts", upsert)] {
        let script = context.dir.join("script.sql");
        write_file(&script, &text)?;
        let path = script.display().to_string();
        interleave(systems, context.extent.rounds, |system, is_warm_up| {
            let seconds = match is_warm_up {
                true => context.extent.seconds.div_ceil(5),
                false => context.extent.seconds,
            };
            let arguments = ["-M", "prepared", "-f", &path];
            let done = pgbench::pgbench(system.endpoint(), clients, seconds, &arguments)?;
            if !is_warm_up {
                figures.add(SINGLE, work, system.name(), done.rate);
                let what = format!("{}: {work}", system.name());
                context.live.figure(&what, done.rate, "transactions/s");
            }
            Ok(())
        })?;
    }
    for system in systems {
        note_files(system, "after the upserts", figures);
    }
    interleave(systems, context.extent.rounds, |system, is_warm_up| {
        if is_warm_up {
            // Nothing of it would stay in memory.
            return Ok(());
        }
        let begin = context.env.now();
        let scanned = system.endpoint().query(SCAN)?;
        let seconds = context.env.now().since(begin).as_secs_f64();
        let expected = format!("{rows}|{}", rows * 32);
        if scanned != expected {
            let wrong = format!("{}: a scan gives {scanned}, not {expected}", system.name());
            return Err(std::io::Error::other(wrong));
        }
        let rate = rows as f64 / seconds;
        figures.add(BULK, "scan", system.name(), rate);
        let what = format!("{}: scan", system.name());
        context.live.figure(&what, rate, "rows/s");
        Ok(())
    })
}

/// Fills the table, and returns rows per second.
fn load(context: &Context<'_>, system: &System) -> Result<f64> {
    let rows = context.extent.rows;
    let begin = context.env.now();
    fill(system, rows, |done| {
        let rate = done as f64 / context.env.now().since(begin).as_secs_f64();
        let what = format!("{}: load", system.name());
        context.live.progress(&what, rate, "rows/s");
    })?;
    let seconds = context.env.now().since(begin).as_secs_f64();
    settle(system)?;
    Ok(rows as f64 / seconds)
}

/// Makes table test2 anew, with rows from 1 on, in statements of [`LOAD_ROWS`] each.
pub(super) fn fill(system: &System, rows: usize, progress: impl Fn(usize)) -> Result<()> {
    let endpoint = system.endpoint();
    endpoint.query("drop table if exists test2")?;
    endpoint.query(TABLE)?;
    for first in (1..=rows).step_by(LOAD_ROWS) {
        go_on()?;
        let last = (first + LOAD_ROWS - 1).min(rows);
        endpoint.query(&format!(
            "insert into test2 select generate_series({first}, {last}), md5(random()::text), now()"
        ))?;
        progress(last);
    }
    Ok(())
}

/// Leaves nothing of a load to be done later.
pub(super) fn settle(system: &System) -> Result<()> {
    if system.is_postgres() {
        system.endpoint().query("vacuum analyze")?;
    }
    let done = system.endpoint().query("checkpoint");
    // A server of somebody else's may not let everybody ask for that.
    match system.is_ours() {
        true => done.map(drop),
        false => Ok(()),
    }
}

fn note_files(system: &System, when: &str, figures: &mut Collected) {
    if let Some([(_, data), _]) = system.places() {
        let megabytes = allocated_bytes(&data) as f64 / 1e6;
        figures.add(FILES, when, system.name(), megabytes);
    }
}
