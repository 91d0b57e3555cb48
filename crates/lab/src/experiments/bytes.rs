//! Experiment C: bytes that leave the primary for each standby per transaction, counted by the
//! relays between them, and what the log takes; and what a bulk load at `off` does to a small commit
//! at `on`, with 20 MB/s between the servers.
//!
//! Quorate counts what it writes to each follower itself (`quorate.nodes`). That is held against
//! what the kernel counts for the very same connection (`ss -ti`).

use std::io::Result;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::memory::settle;
use super::tpcc::plan;
use super::{interleave, Collected, Context};
use crate::driver::Driver;
use crate::host::{beside, output, pause, write_file};
use crate::pgbench::{self, Tables};
use crate::real::relay::Line;
use crate::results::{Better, Check, Experiment};
use crate::systems::System;

/// pgbench's scale and clients, as in the article.
const SCALE: usize = 10;
const CLIENTS: usize = 10;

/// Between the servers, while the bulk load runs.
const BANDWIDTH: u64 = 20_000_000;

/// Rows that one statement of the bulk load inserts.
const BULK_ROWS: usize = 20_000;

/// What is under way arrives meanwhile.
const ARRIVAL: Duration = Duration::from_millis(300);

/// How far the server's counter and the kernel's may be apart.
const APART_MAX: f64 = 0.02;

/// TPC-C's sessions, those that load, and the seed for all that is drawn.
const CONNECTIONS: usize = 16;
const LOADERS: usize = 4;
const SEED: u64 = 7;

/// Places of the charts.
const SENT: usize = 0;
const LOGGED: usize = 1;
const TPCC_SENT: usize = 2;
const TPCC_LOGGED: usize = 3;
const ONE_FOLLOWER: usize = 4;
const BULK: usize = 5;

pub(super) fn run(context: &Context<'_>, found: &mut Experiment) -> Result<()> {
    let systems = context.start(true, found)?;
    let mut figures = Collected::new(6);
    tpcb(context, &systems, &mut figures, found)?;
    tpcc(context, &systems, &mut figures, found)?;
    beside_bulk(context, &systems, &mut figures)?;
    let (bytes, less) = ("bytes per transaction", Better::Less);
    let commit = "99th percentile of a small commit at `on`, 20 MB/s between the servers";
    for (index, title, unit, across, better) in [
        (
            SENT,
            "Bytes to each standby, TPC-B",
            bytes,
            "clients × transactions",
            less,
        ),
        (LOGGED, "Log, TPC-B", bytes, "clients × transactions", less),
        (
            TPCC_SENT,
            "Bytes to each standby, TPC-C",
            bytes,
            "size",
            less,
        ),
        (TPCC_LOGGED, "Log, TPC-C", bytes, "size", less),
        (
            ONE_FOLLOWER,
            "One follower's connection, as three count it",
            bytes,
            "work",
            Better::Neither,
        ),
        (BULK, commit, "ms", "beside", less),
    ] {
        let chart = figures.chart(index, title, unit, across, better);
        found.charts.push(chart);
    }
    Ok(())
}

/// What has been sent and logged so far, in bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// To each standby, by the relays.
    sent: Option<f64>,
    logged: Option<f64>,
    /// To one follower: by the relay, by the server's own counter, by the kernel.
    one: [Option<f64>; 3],
}

const COUNTERS: [&str; 3] = ["relay", "server's own counter", "ss, bytes_sent"];

impl Counts {
    fn of(system: &System) -> Counts {
        let number = |sql: &str| system.endpoint().query(sql).ok()?.parse::<f64>().ok();
        let logged = match system.is_postgres() {
            true => "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')",
            false => "select log_appended_bytes from quorate.storage",
        };
        let mut counts = Counts {
            sent: system.sent_bytes(),
            logged: number(logged),
            ..Counts::default()
        };
        if let Some((follower, port, relayed)) = system.one_follower() {
            let sql = format!("select sent_bytes from quorate.nodes where name = '{follower}'");
            counts.one = [Some(relayed), number(&sql), socket_bytes(port)];
        }
        counts
    }

    /// What came since, per transaction.
    fn since(&self, before: &Counts, transactions: f64) -> Counts {
        let each = |after: Option<f64>, before: Option<f64>| {
            Some((after? - before?) / transactions.max(1.0))
        };
        let mut one = self.one;
        for (after, before) in one.iter_mut().zip(before.one) {
            *after = each(*after, before);
        }
        Counts {
            sent: each(self.sent, before.sent),
            logged: each(self.logged, before.logged),
            one,
        }
    }

    /// Puts figures into two charts and that of one follower, and holds the counters against one
    /// another.
    fn note(
        &self,
        system: &System,
        group: &str,
        charts: [usize; 2],
        figures: &mut Collected,
        found: &mut Experiment,
    ) {
        for (chart, value) in charts.into_iter().zip([self.sent, self.logged]) {
            if let Some(value) = value {
                figures.add(chart, group, system.name(), value);
            }
        }
        for (name, value) in COUNTERS.iter().zip(self.one) {
            if let Some(value) = value {
                figures.add(ONE_FOLLOWER, group, name, value);
            }
        }
        let [_, Some(server), Some(kernel)] = self.one else {
            return;
        };
        let apart = (server / kernel - 1.0).abs();
        found.checks.push(Check {
            what: format!(
                "{}, {group}: {server:.1} bytes per transaction by the server's own counter, \
                 {kernel:.1} by ss, {:.2}% apart",
                system.name(),
                apart * 100.0
            ),
            held: apart <= APART_MAX,
            expected: true,
        });
    }
}

/// Bytes that the connection to a port of this machine has sent, as the kernel counts them; of
/// several the one with most. None without `ss`.
fn socket_bytes(port: u16) -> Option<f64> {
    let mut ss = Command::new("ss");
    ss.args([
        "-tinH",
        "state",
        "established",
        "dport",
        "=",
        &format!(":{port}"),
    ]);
    let said = output(&mut ss).ok().filter(|done| done.status.success())?;
    parse_ss(&String::from_utf8_lossy(&said.stdout))
}

fn parse_ss(text: &str) -> Option<f64> {
    let words = text.split_whitespace();
    let sent = words.filter_map(|word| word.strip_prefix("bytes_sent:")?.parse::<f64>().ok());
    sent.max_by(f64::total_cmp)
}

fn tpcb(
    context: &Context<'_>,
    systems: &[System],
    figures: &mut Collected,
    found: &mut Experiment,
) -> Result<()> {
    for system in systems {
        Tables::Pgbench { scale: SCALE }.make(system)?;
    }
    for transactions in &context.extent.sizes {
        let group = format!("{CLIENTS} × {transactions}");
        let (clients, transactions) = (CLIENTS.to_string(), transactions.to_string());
        interleave(systems, context.extent.rounds, |system, is_warm_up| {
            let before = Counts::of(system);
            let mut command = system.endpoint().client("pgbench");
            command.args(["-n", "-c", &clients, "-t", &transactions]);
            command.arg(system.endpoint().database());
            let done = pgbench::run_command(&mut command)?;
            pause(ARRIVAL);
            if !is_warm_up {
                let counts = Counts::of(system).since(&before, done.transactions);
                counts.note(system, &group, [SENT, LOGGED], figures, found);
                let sent = counts.sent.unwrap_or(f64::NAN);
                let what = format!("{}, TPC-B", system.name());
                context.live.figure(&what, sent, "bytes per transaction");
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn tpcc(
    context: &Context<'_>,
    systems: &[System],
    figures: &mut Collected,
    found: &mut Experiment,
) -> Result<()> {
    let driver = Driver::new(context.env.clone());
    let warehouses = context.extent.warehouses;
    for system in systems {
        driver.load_tpcc(&system.target(), warehouses, LOADERS, SEED)?;
        settle(system)?;
    }
    let group = format!("TPC-C, {warehouses} × 100 MB");
    let mut seed = SEED;
    interleave(systems, context.extent.rounds, |system, is_warm_up| {
        if is_warm_up {
            return Ok(());
        }
        seed += 1;
        let plan = plan(context, system, CONNECTIONS, seed);
        let before = Counts::of(system);
        let length = Duration::from_secs(context.extent.seconds as u64);
        let done = driver.run_tpcc(&plan, Duration::ZERO, length)?;
        pause(ARRIVAL);
        let transactions: u64 = done.kinds.iter().map(|kind| kind.completed).sum();
        let counts = Counts::of(system).since(&before, transactions as f64);
        counts.note(system, &group, [TPCC_SENT, TPCC_LOGGED], figures, found);
        let what = format!("{}, TPC-C", system.name());
        let sent = counts.sent.unwrap_or(f64::NAN);
        context.live.figure(&what, sent, "bytes per transaction");
        Ok(())
    })
}

/// Small commits alone, and beside a load.
fn beside_bulk(context: &Context<'_>, systems: &[System], figures: &mut Collected) -> Result<()> {
    let script = context.dir.join("small.sql");
    write_file(&script, "insert into small default values;\n")?;
    let path = script.display().to_string();
    interleave(systems, context.extent.rounds, |system, is_warm_up| {
        let endpoint = system.endpoint();
        endpoint.query("drop table if exists small, bulk")?;
        endpoint.query(
            "create table small(i bigint generated by default as identity primary key, \
             t timestamp default clock_timestamp())",
        )?;
        endpoint.query(
            "create table bulk(i bigint generated by default as identity primary key, info text)",
        )?;
        let line = Line {
            bandwidth: Some(BANDWIDTH),
            ..Line::default()
        };
        system.set_lines(line);
        let seconds = if is_warm_up {
            1
        } else {
            context.extent.seconds
        };
        let arguments = ["-M", "prepared", "-f", &path];
        let small = || pgbench::latencies(endpoint, &context.dir, 1, seconds, &arguments);
        let alone = small()?;
        let over = AtomicBool::new(false);
        let bulk = || {
            while !over.load(Ordering::Relaxed) {
                endpoint.query(&format!(
                    "set synchronous_commit = off; insert into bulk(info) \
                     select repeat(md5(g::text), 4) from generate_series(1, {BULK_ROWS}) g"
                ))?;
            }
            Ok::<_, std::io::Error>(())
        };
        let main = || {
            let measured = small();
            over.store(true, Ordering::Relaxed);
            measured
        };
        let (loaded, others) = beside(1, bulk, main)?;
        others.into_iter().collect::<Result<Vec<()>>>()?;
        system.set_lines(Line::default());
        if !is_warm_up {
            for (group, micros) in [("alone", alone), ("beside a bulk load", loaded?)] {
                let p99 = percentile(micros, 0.99) / 1e3;
                figures.add(BULK, group, system.name(), p99);
                let what = format!("{}: p99 of a commit {group}", system.name());
                context.live.figure(&what, p99, "ms");
            }
        }
        Ok(())
    })
}

/// The value below which such a share lies.
fn percentile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let index = (values.len() as f64 * share) as usize;
    let last = values.len().saturating_sub(1);
    values.get(index.min(last)).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_sorted_values() {
        let values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(percentile(values.clone(), 0.99), 100.0);
        assert_eq!(percentile(values, 0.5), 51.0);
        assert!(percentile(Vec::new(), 0.5).is_nan());
    }

    #[test]
    fn what_ss_prints_is_read() {
        let text = "0      0      127.0.0.1:40678    127.0.0.1:22452\n\
                    \t bbr wscale:10,10 rto:204 cwnd:18 bytes_sent:211247170 bytes_retrans:159494 \
                    bytes_acked:211087677 bytes_received:5 segs_out:5401\n\
                    0      0      127.0.0.1:40690    127.0.0.1:22452\n\
                    \t cubic rto:201 bytes_sent:120 bytes_acked:121\n";
        assert_eq!(parse_ss(text), Some(211_247_170.0));
        assert_eq!(parse_ss("State Recv-Q\n"), None);
    }
}
