//! What a round trip costs a commit: latency over the distance between the servers.
//!
//! Relays stand between Quorate's three nodes, and between PostgreSQL's primary and its two
//! standbys (`ANY 1`). One client commits one row after another, at every level of
//! `synchronous_commit`, and reads one, with the servers 0, 5 and 20 ms apart each way. Clients sit
//! beside the leader and the primary, so whatever grows with the distance is what the system asks
//! of its replicas.
//!
//! The figure is the **slope**: how many milliseconds a commit takes longer for each millisecond of
//! round trip, by least squares over the medians. 1 is one round trip, 0 is none. What the machine
//! itself costs is the same at every distance and drops out.

use std::io::{Error, Result};
use std::path::Path;
use std::time::Duration;

use base::Durability;
use serde::Serialize;

use crate::host::{create_dir, read_file, read_names, remove_file, run, write_file, Endpoint};
use crate::postgres::QuorumOfPostgres;
use crate::quorate::{Cluster, Topology};
use crate::real::relay::{Line, Relay};
use crate::report::{table, Figure};

/// Milliseconds from one server to another.
pub const ONE_WAY_MILLIS: [u64; 3] = [0, 5, 20];

const SETUP: &str = "drop table if exists far; \
                     create table far(i int primary key, t timestamp default clock_timestamp()); \
                     insert into far select generate_series(-1000, 0)";
const WRITE: &str = "\\set i :i + 1\ninsert into far(i) values (:i);\n";
const READ: &str = "\\set i random(-1000, 0)\nselect * from far where i = :i;\n";

/// How much to measure.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Rounds over all distances, levels and systems.
    pub rounds: usize,
    /// Seconds of one run.
    pub seconds: usize,
}

/// Latencies of one system at one level.
#[derive(Clone, Debug, Serialize)]
pub struct Course {
    /// The system.
    pub system: String,
    /// `synchronous_commit`, or `read`.
    pub what: String,
    /// Median milliseconds by distance, as [`ONE_WAY_MILLIS`].
    pub latency_ms: Vec<Figure>,
    /// Round trips that one transaction takes.
    pub slope: f64,
}

struct Far<'a> {
    name: &'static str,
    endpoint: &'a Endpoint,
    relays: Vec<&'a Relay>,
}

/// Starts both systems below `dir` and measures them in turn.
///
/// # Errors
/// A system does not start or gives an error.
pub fn run_all(program: &Path, dir: &Path, extent: Extent) -> Result<Vec<Course>> {
    create_dir(dir)?;
    let quorum = QuorumOfPostgres::start_relayed(dir, &[])?;
    let three = Cluster::start_relayed(program, &dir.join("q3"), Topology::voters(3), &[])?;
    let systems = [
        Far {
            name: "PostgreSQL, ANY 1 of 2",
            endpoint: quorum.primary.endpoint(),
            relays: quorum.relays.iter().collect(),
        },
        Far {
            name: "Quorate, three nodes",
            endpoint: &three.nodes()[three.leader()?],
            relays: three.relays().iter().map(|named| &named.relay).collect(),
        },
    ];
    let scripts = [("write.sql", WRITE), ("read.sql", READ)];
    for (name, text) in scripts {
        write_file(&dir.join(name), text)?;
    }
    let mut courses: Vec<Course> = systems
        .iter()
        .flat_map(|system| whats().map(|what| empty(system.name, what)))
        .collect();
    for _ in 0..extent.rounds {
        for (index, millis) in ONE_WAY_MILLIS.iter().enumerate() {
            for system in &systems {
                let line = Line::delayed(Duration::from_millis(*millis));
                system.relays.iter().for_each(|relay| relay.set_both(line));
                system.endpoint.query(SETUP)?;
                for (place, what) in whats().enumerate() {
                    let median = measure(system.endpoint, dir, what, place, extent.seconds)?;
                    eprintln!("{}, {millis} ms, {what}: {median:.3} ms", system.name);
                    let found = courses
                        .iter_mut()
                        .find(|course| course.system == system.name && course.what == what);
                    if let Some(course) = found {
                        course.latency_ms[index].rounds.push(median);
                    }
                }
            }
        }
    }
    for course in &mut courses {
        course.slope = slope(&course.latency_ms);
    }
    Ok(courses)
}

/// All levels, and a read.
fn whats() -> impl Iterator<Item = &'static str> {
    Durability::ALL
        .iter()
        .map(|level| level.name())
        .chain(["read"])
}

fn empty(system: &str, what: &str) -> Course {
    let none = || Figure { rounds: Vec::new() };
    Course {
        system: system.to_owned(),
        what: what.to_owned(),
        latency_ms: ONE_WAY_MILLIS.iter().map(|_| none()).collect(),
        slope: f64::NAN,
    }
}

/// The median latency in milliseconds of one client's transactions.
fn measure(
    endpoint: &Endpoint,
    dir: &Path,
    what: &str,
    place: usize,
    seconds: usize,
) -> Result<f64> {
    let (script, level) = match what {
        "read" => ("read.sql", "on"),
        level => ("write.sql", level),
    };
    // Keys that no other run of this set-up uses.
    let start = format!("i={}", place * 10_000_000);
    let prefix = dir.join(format!("log-{what}"));
    run(endpoint
        .client("pgbench")
        .env("PGOPTIONS", format!("-c synchronous_commit={level}"))
        .args(["-n", "-c", "1", "-M", "prepared", "-D", &start, "-f"])
        .arg(dir.join(script))
        .args(["-T", &seconds.to_string(), "-l", "--log-prefix"])
        .arg(&prefix)
        .arg("postgres"))?;
    let mut micros = Vec::new();
    for name in read_names(dir)? {
        if name.starts_with(&format!("log-{what}.")) {
            let path = dir.join(name);
            let text = read_file(&path)?;
            let latency = |line: &str| line.split(' ').nth(2)?.parse::<f64>().ok();
            micros.extend(text.lines().filter_map(latency));
            remove_file(&path)?;
        }
    }
    match micros.is_empty() {
        true => Err(Error::other(format!("pgbench logged nothing for {what}"))),
        false => Ok(Figure { rounds: micros }.median() / 1e3),
    }
}

/// Milliseconds of latency per millisecond of round trip, by least squares.
fn slope(latency_ms: &[Figure]) -> f64 {
    let points: Vec<(f64, f64)> = ONE_WAY_MILLIS
        .iter()
        .zip(latency_ms)
        .map(|(one_way, figure)| (2.0 * *one_way as f64, figure.median()))
        .collect();
    let count = points.len() as f64;
    let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / count;
    let above: f64 = points
        .iter()
        .map(|(x, y)| (x - mean_x) * (y - mean_y))
        .sum();
    let below: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    above / below
}

/// The report: one row per system and level.
pub fn report(courses: &[Course]) -> String {
    let mut head = vec!["".to_owned(), "synchronous_commit".to_owned()];
    head.extend(ONE_WAY_MILLIS.iter().map(|ms| format!("{} ms apart", ms)));
    head.push("round trips".to_owned());
    let rows: Vec<Vec<String>> = courses
        .iter()
        .map(|course| {
            let mut row = vec![course.system.clone(), course.what.clone()];
            row.extend(
                course
                    .latency_ms
                    .iter()
                    .map(|ms| format!("{:.2}", ms.median())),
            );
            row.push(format!("{:.2}", course.slope));
            row
        })
        .collect();
    format!(
        "**Median latency of one client's transaction by one-way delay, ms**\n\n{}",
        table(&head, &rows)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_count_round_trips() {
        let figure = |ms: f64| Figure { rounds: vec![ms] };
        let once = [figure(0.3), figure(10.3), figure(40.3)];
        assert!((slope(&once) - 1.0).abs() < 1e-9);
        let never = [figure(0.3), figure(0.3), figure(0.3)];
        assert!(slope(&never).abs() < 1e-9);
    }
}
