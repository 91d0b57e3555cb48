//! The tables that workloads run on.

use std::io::Result;

use crate::host::{run, Endpoint};
use crate::systems::System;

/// Rows of the tables that experiment B reads.
pub const EXPERIMENT_ROWS: usize = 10_000;

/// Tables that a workload runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tables {
    /// Experiment B's four, of which it reads two.
    Experiment {
        /// Rows of each of the two.
        rows: usize,
    },
    /// pgbench's own, at a scale.
    Pgbench {
        /// Branches; a hundred thousand accounts each.
        scale: usize,
    },
}

/// Accounts that one transaction loads.
const ACCOUNTS_PER_INSERT: usize = 10_000;

impl Tables {
    /// Makes them, in the place of what was there.
    pub fn make(self, system: &System) -> Result<()> {
        let endpoint = system.endpoint();
        match self {
            Tables::Experiment { rows } => {
                for table in ["test1", "test2", "test3", "test4"] {
                    make_experiment_table(endpoint, table, rows)?;
                }
            }
            Tables::Pgbench { scale } => make_pgbench_tables(endpoint, scale)?,
        }
        if system.is_postgres() {
            endpoint.query("vacuum analyze").map(drop)?;
            endpoint.query("checkpoint").map(drop)?;
        }
        Ok(())
    }
}

/// One of experiment B's tables; `test1` and `test3` have rows.
fn make_experiment_table(endpoint: &Endpoint, table: &str, rows: usize) -> Result<()> {
    endpoint.query(&format!("drop table if exists {table}"))?;
    endpoint.query(&format!(
        "create table {table}(id int primary key, info text, crt_time timestamp)"
    ))?;
    if matches!(table, "test1" | "test3") {
        endpoint.query(&format!(
            "insert into {table} select generate_series(1, {rows}), md5(random()::text), now()"
        ))?;
    }
    Ok(())
}

/// pgbench's tables, as `pgbench -i` fills them.
///
/// # Errors
/// The server refuses.
pub fn make_pgbench_tables(endpoint: &Endpoint, scale: usize) -> Result<()> {
    let (tellers, accounts) = (scale * 10, scale * 100_000);
    for sql in [
        "drop table if exists pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers",
        "create table pgbench_history(tid int, bid int, aid int, delta int, mtime timestamp, filler char(22))",
        "create table pgbench_tellers(tid int not null primary key, bid int, tbalance int, filler char(84))",
        "create table pgbench_accounts(aid int not null primary key, bid int, abalance int, filler char(84))",
        "create table pgbench_branches(bid int not null primary key, bbalance int, filler char(88))",
        &format!("insert into pgbench_branches(bid, bbalance) select g, 0 from generate_series(1, {scale}) g"),
        &format!("insert into pgbench_tellers(tid, bid, tbalance) select g, (g - 1) / 10 + 1, 0 from generate_series(1, {tellers}) g"),
    ] {
        endpoint.query(sql)?;
    }
    let mut psql = endpoint.psql();
    for first in (1..=accounts).step_by(ACCOUNTS_PER_INSERT) {
        let last = first + ACCOUNTS_PER_INSERT - 1;
        psql.arg("-c").arg(format!(
            "insert into pgbench_accounts(aid, bid, abalance, filler) \
             select g, (g - 1) / 100000 + 1, 0, '' from generate_series({first}, {last}) g"
        ));
    }
    run(&mut psql).map(drop)
}
