//! Whether what pgbench's clients did to a database adds up.
//!
//! | check | while | what must hold |
//! |---|---|---|
//! | [`mixed`] | experiment B's two mixed scripts, 64 clients | nobody fails, no key is there twice |
//! | [`transfers`] | transfers by 16 clients (D), at REPEATABLE READ | four readers see the same sum, always |
//! | [`tpcb`] | pgbench's TPC-B | balances of accounts, tellers and branches, and the history's deltas: one sum |
//!
//! A transaction may fail for serialization or a deadlock; what it did must then not be there.

use std::io::{Error, Result};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::setup::{make_pgbench_tables, EXPERIMENT_ROWS};
use super::{pgbench, place, Run};
use crate::host::{beside, run, write_file, Endpoint};

const SETUP_B: &str = include_str!("../../../../tests/scripts/b_setup.sql");
const SETUP_D: &str = include_str!("../../../../tests/scripts/d_setup.sql");

/// What all accounts of experiment D hold together.
const TOTAL: &str = "10002000";

/// Clients that read sums.
const READERS: usize = 4;

/// Clients that transfer.
const TRANSFERRERS: usize = 16;

/// Clients of the mixed scripts.
const MIXED_CLIENTS: usize = 64;

fn psql_file(endpoint: &Endpoint, dir: &Path, name: &str, text: &str) -> Result<String> {
    let path = dir.join(name);
    write_file(&path, text)?;
    let rows = format!("rows={EXPERIMENT_ROWS}");
    run(endpoint.psql().args(["-v", &rows, "-f"]).arg(path))
}

fn holds(endpoint: &Endpoint, what: &str, query: &str, expected: &str) -> Result<()> {
    let found = endpoint.query(query)?;
    match found == expected {
        true => Ok(()),
        false => Err(Error::other(format!("{what}: {found} and not {expected}"))),
    }
}

fn nobody_fails(what: &str, done: Run) -> Result<Run> {
    match done.failed > 0.0 {
        true => Err(Error::other(format!("{what}: {} failed", done.failed))),
        false => Ok(done),
    }
}

/// Runs both mixed scripts of experiment B.
///
/// # Errors
/// What does not hold.
pub fn mixed(endpoint: &Endpoint, dir: &Path, seconds: usize) -> Result<Run> {
    psql_file(endpoint, dir, "b_setup.sql", SETUP_B)?;
    let (read, write) = (
        place("b_mixed_read.sql", dir)?,
        place("b_mixed_write.sql", dir)?,
    );
    let (read, write) = (read.display().to_string(), write.display().to_string());
    let arguments = ["-M", "prepared", "-f", &read, "-f", &write];
    let done = pgbench(endpoint, MIXED_CLIENTS, seconds, &arguments)?;
    let twice = "select count(*) - count(distinct id) from test4";
    holds(endpoint, "keys that are there twice", twice, "0")?;
    // A read script leaves one row, a write script ten, and ids of a thousand million hardly meet.
    let rows = endpoint.query("select count(*) from test4")?;
    let rows: f64 = rows.parse().map_err(Error::other)?;
    if rows < done.transactions {
        return Err(Error::other(format!(
            "{rows} rows of {} transactions",
            done.transactions
        )));
    }
    Ok(done)
}

/// Lets clients transfer, and others look at the sum all the time, at all of `readers` in turn.
///
/// # Errors
/// What does not hold.
pub fn transfers(
    endpoint: &Endpoint,
    readers: &[Endpoint],
    dir: &Path,
    seconds: usize,
) -> Result<Run> {
    psql_file(endpoint, dir, "d_setup.sql", SETUP_D)?;
    let (transfer, sum) = (place("d_transfer.sql", dir)?, place("d_sum.sql", dir)?);
    let over = AtomicBool::new(false);
    let transfer = transfer.display().to_string();
    let main = || {
        let arguments = ["-M", "prepared", "-f", &transfer];
        let done = pgbench(endpoint, TRANSFERRERS, seconds, &arguments);
        over.store(true, Ordering::Relaxed);
        done
    };
    let next = AtomicUsize::new(0);
    let read = || {
        let reader = next.fetch_add(1, Ordering::Relaxed) % readers.len();
        read_sums(&readers[reader], &sum, &over)
    };
    let (done, sums) = beside(READERS, read, main)?;
    let done = done?;
    for count in sums {
        if count? == 0 {
            return Err(Error::other("a reader saw no sum"));
        }
    }
    let query = "select sum(balance) from accounts";
    holds(endpoint, "the sum after all transfers", query, TOTAL)?;
    match done.transactions > 0.0 {
        true => Ok(done),
        false => Err(Error::other("no transfer went through")),
    }
}

/// Reads sums until it is over; returns how many.
fn read_sums(endpoint: &Endpoint, script: &Path, over: &AtomicBool) -> Result<usize> {
    let mut count = 0;
    while !over.load(Ordering::Relaxed) {
        let mut psql = endpoint.psql();
        // Ten in a session.
        for _ in 0..10 {
            psql.arg("-f").arg(script);
        }
        for line in run(&mut psql)?.lines() {
            if line != TOTAL {
                return Err(Error::other(format!("a sum is {line} and not {TOTAL}")));
            }
            count += 1;
        }
    }
    Ok(count)
}

/// Runs pgbench's TPC-B on tables made for it.
///
/// # Errors
/// What does not hold.
pub fn tpcb(endpoint: &Endpoint, clients: usize, seconds: usize) -> Result<Run> {
    make_pgbench_tables(endpoint, 1)?;
    let arguments = ["-M", "prepared", "-b", "tpcb-like"];
    let done = nobody_fails("TPC-B", pgbench(endpoint, clients, seconds, &arguments)?)?;
    let count = format!("{}", done.transactions);
    let query = "select count(*) from pgbench_history";
    holds(endpoint, "rows of history", query, &count)?;
    tpcb_adds_up(endpoint)?;
    Ok(done)
}

/// Whether the four tables of TPC-B agree.
///
/// # Errors
/// They do not.
pub fn tpcb_adds_up(endpoint: &Endpoint) -> Result<()> {
    let deltas = endpoint.query("select coalesce(sum(delta), 0) from pgbench_history")?;
    for query in [
        "select sum(abalance) from pgbench_accounts",
        "select sum(tbalance) from pgbench_tellers",
        "select sum(bbalance) from pgbench_branches",
    ] {
        holds(endpoint, query, query, &deltas)?;
    }
    Ok(())
}
