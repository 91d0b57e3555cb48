//! Experiment A: one session inserts rows and commits each one, at every level.
//!
//! Three figures for each system and level, in rows per second:
//! - **DO**: inserts with COMMIT in one DO block, by the wall time of the DO as psql's `\timing`
//!   shows it, the wait for the last commit included;
//! - **the article's query**: the same loop, from the timestamps in the rows;
//! - **one statement per row**: the same inserts sent as statements of their own, by pgbench.
//!
//! And one for each system at `on`: a session per node, all at once, as the article runs them.

use std::io::{Error, Result};

use super::{interleave, Collected, Context};
use crate::host::{beside, run as run_command, write_file, Endpoint};
use crate::pgbench;
use crate::results::{Better, Experiment};
use crate::systems::System;

/// Rows and statements of the round that warms up, in shares of the others.
const WARM_UP_SHARE: usize = 5;

/// Sessions of the last figure at least, where there are not so many nodes to have one each.
const SESSIONS_MIN: usize = 3;

pub(super) fn run(context: &Context<'_>, found: &mut Experiment) -> Result<()> {
    let systems = context.start(false, found)?;
    let script = context.dir.join("single.sql");
    write_file(&script, "\\set i :i + 1\ninsert into demo(i) values(:i);\n")?;
    let mut figures = Collected::new(4);
    let levels = &context.definition.levels;
    interleave(&systems, context.extent.rounds, |system, is_warm_up| {
        for level in levels {
            let measured = measure(context, system.endpoint(), level, &script, is_warm_up)?;
            if is_warm_up {
                // One level is enough to warm up.
                return Ok(());
            }
            for (chart, value) in measured.into_iter().enumerate() {
                figures.add(chart, level, system.name(), value);
            }
            let what = format!("{}, {level}: DO", system.name());
            context.live.figure(&what, measured[0], "rows/s");
        }
        let value = together(context, system)?;
        figures.add(3, "on", system.name(), value);
        Ok(())
    })?;
    let titles = [
        "DO block, wall time",
        "DO block, the article's query",
        "One statement per row",
    ];
    for (index, title) in titles.into_iter().enumerate() {
        let chart = figures.chart(index, title, "rows/s", "synchronous_commit", Better::More);
        found.charts.push(chart);
    }
    let title = "Three sessions at once or, where there are so many nodes, one at each";
    let chart = figures.chart(3, title, "rows/s", "synchronous_commit", Better::More);
    found.charts.push(chart);
    Ok(())
}

/// All three figures of a system at a level.
fn measure(
    context: &Context<'_>,
    endpoint: &Endpoint,
    level: &str,
    script: &std::path::Path,
    is_warm_up: bool,
) -> Result<[f64; 3]> {
    let share = if is_warm_up { WARM_UP_SHARE } else { 1 };
    let rows = context.extent.rows / share;
    endpoint.query("drop table if exists demo")?;
    endpoint
        .query("create table demo(i int primary key, t timestamp default clock_timestamp())")?;
    let options = format!("-c synchronous_commit={level}");
    let block = format!(
        "do $$ begin truncate demo; for i in 1..{rows} loop \
         insert into demo(i) values(i); commit; end loop; end; $$;"
    );
    let mut psql = endpoint.psql();
    psql.env("PGOPTIONS", &options)
        .args(["-c", "\\timing on", "-c", &block]);
    let printed = run_command(&mut psql)?;
    let millis = parse_timing(&printed)
        .ok_or_else(|| Error::other(format!("no time in what psql printed: {printed}")))?;
    let query = endpoint.query(&format!(
        "select count(*)/extract(epoch from max(t)-min(t)) from demo having count(*) = {rows}"
    ))?;
    let by_query = query.parse().map_err(|_| Error::other(query))?;
    endpoint.query("truncate demo")?;
    let transactions = (context.extent.transactions / share).to_string();
    let mut command = endpoint.client("pgbench");
    command
        .env("PGOPTIONS", &options)
        .args(["-n", "-c", "1", "-D", "i=0", "-t", &transactions, "-f"])
        .arg(script)
        .arg(endpoint.database());
    let single = pgbench::run_command(&mut command)?;
    Ok([rows as f64 / (millis / 1e3), by_query, single.rate])
}

/// The milliseconds of `Time: 1012.345 ms (00:01.012)`.
fn parse_timing(printed: &str) -> Option<f64> {
    let rest = printed
        .lines()
        .find_map(|line| line.strip_prefix("Time: "))?;
    rest.split(' ').next()?.parse().ok()
}

/// Rows per second of several sessions at once, each at a node of its own where there are so many.
fn together(context: &Context<'_>, system: &System) -> Result<f64> {
    let endpoint = system.endpoint();
    endpoint.query("drop table if exists demo")?;
    endpoint.query(
        "create table demo(j int, i int, t timestamp default clock_timestamp(), \
         primary key(j,i))",
    )?;
    let endpoints = system.endpoints();
    let next = std::sync::atomic::AtomicUsize::new(0);
    let rows = context.extent.rows;
    let one = || {
        let j = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        endpoints[j % endpoints.len()].query(&format!(
            "do $$ begin for i in 1..{rows} loop insert into demo(j,i) values('{j}',i); \
             commit; end loop; end; $$ ;"
        ))
    };
    let sessions = endpoints.len().max(SESSIONS_MIN);
    let (mine, others) = beside(sessions - 1, one, one)?;
    mine?;
    for other in others {
        other?;
    }
    let expected = sessions * rows;
    let rate = endpoint.query(&format!(
        "select count(*)/extract(epoch from max(t)-min(t)) from demo having count(*) = {expected}"
    ))?;
    rate.parse()
        .map_err(|_| Error::other(format!("{}: {rate}", system.name())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn psql_times_are_read() {
        assert_eq!(
            parse_timing("Timing is on.\nTime: 1012.345 ms (00:01.012)\n"),
            Some(1012.345)
        );
        assert_eq!(parse_timing("nothing"), None);
    }
}
