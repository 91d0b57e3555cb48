//! The time from the start of a killed server to its first answer, with so much log to replay.
//!
//! The log is made by updates of a hundred neighbouring rows each, with checkpoints put off, until
//! the server itself says that there is enough of it. The answer is a row of the table.

use std::io::{Error, Result};
use std::time::Duration;

use super::memory::{fill, settle};
use super::{interleave, Collected, Context};
use crate::driver::{explain, Driver};
use crate::host::{
    children, go_on, has_ended, pause, signal, wait_for, write_file, Process, PATIENCE,
};
use crate::pgbench;
use crate::results::{Better, Check, Experiment};
use crate::session::{Session, Target};
use crate::systems::System;

/// Rows that one update changes.
const ROWS_PER_UPDATE: usize = 100;

/// Seconds of updates before the log is looked at.
const SLICE_SECONDS: usize = 1;

/// Between two attempts to be answered, and how long it may take at most.
const RETRY_PAUSE: Duration = Duration::from_millis(5);
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(600);

const POSTGRES_LOG: &str =
    "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), redo_lsn) from pg_control_checkpoint()";
const QUORATE_LOG: &str = "select log_bytes_since_checkpoint from quorate.storage";

pub(super) fn run(context: &Context<'_>, found: &mut Experiment) -> Result<()> {
    let mut systems = context.start(false, found)?;
    context.leave_out_running(&mut systems, "it is not ours to kill", found);
    let rows = context.extent.rows;
    for system in &systems {
        fill(system, rows, |_| {})?;
    }
    let driver = Driver::new(context.env.clone());
    let mut figures = Collected::new(3);
    let group = format!("{} MB of log", context.extent.log_mb);
    let mut restarted = Vec::new();
    interleave(&systems, context.extent.rounds, |system, is_warm_up| {
        if is_warm_up {
            return Ok(());
        }
        settle(system)?;
        let log_bytes = make_log(context, system)?;
        kill(system)?;
        let begin = context.env.now();
        let mut server = start(system)?;
        wait_for_answer(&driver, &system.target(), server.as_mut())?;
        restarted.extend(server);
        let seconds = context.env.now().since(begin).as_secs_f64();
        let values = [seconds, log_bytes / 1e6, log_bytes / 1e6 / seconds];
        for (chart, value) in values.into_iter().enumerate() {
            figures.add(chart, &group, system.name(), value);
        }
        context.live.figure(system.name(), seconds, "s");
        let count = system.endpoint().query("select count(*) from test2")?;
        found.checks.push(Check {
            what: format!("{}: {count} of {rows} rows are there again", system.name()),
            held: count == rows.to_string(),
            expected: true,
        });
        Ok(())
    })?;
    for (index, title, unit, better) in [
        (0, "From the start to the first answer", "s", Better::Less),
        (1, "Log since the checkpoint", "MB", Better::Neither),
        (2, "Log per second of the restart", "MB/s", Better::More),
    ] {
        let chart = figures.chart(index, title, unit, "killed with", better);
        found.charts.push(chart);
    }
    Ok(())
}

/// Updates rows until there is enough log, and returns how much there is, in bytes.
fn make_log(context: &Context<'_>, system: &System) -> Result<f64> {
    let blocks = context.extent.rows / ROWS_PER_UPDATE;
    let script = context.dir.join("update.sql");
    write_file(
        &script,
        &format!(
            "\\set first 1 + {ROWS_PER_UPDATE} * random(0, {})\n\
             update test2 set info = md5(random()::text), crt_time = now() \
             where id between :first and :first + {};\n",
            blocks.saturating_sub(1),
            ROWS_PER_UPDATE - 1
        ),
    )?;
    let query = match system.is_postgres() {
        true => POSTGRES_LOG,
        false => QUORATE_LOG,
    };
    let clients = context.extent.clients.first().copied().unwrap_or(4);
    let path = script.display().to_string();
    let wanted = context.extent.log_mb as f64 * 1e6;
    let mut last = -1.0;
    loop {
        go_on()?;
        let text = system.endpoint().query(query)?;
        let bytes: f64 = text.parse().map_err(|_| Error::other(text))?;
        if bytes >= wanted {
            return Ok(bytes);
        }
        if bytes <= last {
            let name = system.name();
            let wrong = format!("{name}: the log does not grow: {last} and {bytes} bytes");
            return Err(Error::other(wrong));
        }
        last = bytes;
        let arguments = ["-M", "prepared", "-f", &path];
        pgbench::pgbench(system.endpoint(), clients, SLICE_SECONDS, &arguments)?;
    }
}

/// Kills the first server of a system, and waits until nothing of it is left.
fn kill(system: &System) -> Result<()> {
    let mut killed = Vec::new();
    if let Some(cluster) = system.cluster() {
        killed.push(cluster.pid(0)?);
    } else if let Some((primary, ..)) = system.postgres() {
        killed.push(primary.pid()?);
        killed.extend(children(killed[0])?);
    }
    for (place, pid) in killed.iter().enumerate() {
        let sent = signal(*pid, "KILL");
        // The sessions of a server that is gone may have ended themselves.
        if place == 0 {
            sent?;
        }
    }
    wait_for("the end of a killed server", PATIENCE, || {
        killed.iter().all(|pid| has_ended(*pid))
    })
}

/// Starts the first server again, which has a process of ours if it is Quorate's.
fn start(system: &System) -> Result<Option<Process>> {
    if let Some(cluster) = system.cluster() {
        return cluster.start_again(0).map(Some);
    }
    if let Some((primary, ..)) = system.postgres() {
        primary.start_again()?;
    }
    Ok(None)
}

/// Asks until there is an answer, or the process that should give it has ended.
fn wait_for_answer(
    driver: &Driver,
    target: &Target,
    mut process: Option<&mut Process>,
) -> Result<()> {
    let begin = driver.env().now();
    loop {
        go_on()?;
        if process.as_mut().is_some_and(|process| process.has_ended()) {
            return Err(Error::other("the server ended when it was started again"));
        }
        let target = target.clone();
        let answer = driver.block_on(move |env| async move {
            let mut session = Session::connect(&*env, &target).await?;
            session.query("select info from test2 where id = 1").await?;
            Ok(session.rows(0))
        })?;
        match answer {
            Ok(1) => return Ok(()),
            Ok(rows) => return Err(Error::other(format!("{rows} rows of one key"))),
            Err(failure) if driver.env().now().since(begin) > ANSWER_WAIT_MAX => {
                return Err(explain(failure));
            }
            Err(_) => pause(RETRY_PAUSE),
        }
    }
}
