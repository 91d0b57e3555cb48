//! Experiment A: one session inserts rows and commits each one.
//!
//! Three figures for each system and level of `synchronous_commit`, in rows per second:
//! - **DO**: ten thousand inserts with COMMIT in one DO block, divided by the wall time of the DO
//!   as psql's `\timing` shows it, the wait for the last commit included;
//! - **query**: the article's own figure for the same loop, from the timestamps in the rows;
//! - **one by one**: the same inserts sent as statements of their own, as pgbench counts them.
//!
//! Systems are interleaved within a round. What protects a row must be the same on both sides of a
//! comparison: one node beside PostgreSQL alone, three nodes beside `ANY 1` of two standbys.

use std::io::{Error, Result};
use std::path::Path;

use base::Durability;
use serde::Serialize;

use crate::host::{run, write_file, Endpoint};
use crate::postgres::{Postgres, QuorumOfPostgres};
use crate::quorate::Cluster;
use crate::report::{table, Figure};

const LOOP: &str = "do $$ begin truncate demo; for i in 1..1e4 loop \
                    insert into demo(i) values(i); commit; end loop; end; $$;";
const ROWS: f64 = 1e4;
const QUERY: &str =
    "select count(*)/extract(epoch from max(t)-min(t)) from demo having count(*) = 10000;";

/// How much to measure.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Rounds over all systems and levels.
    pub rounds: usize,
    /// Inserts of the one-by-one form.
    pub single_inserts: usize,
}

/// The figures of one system at one level, in rows per second.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// The system.
    pub system: String,
    /// `synchronous_commit`.
    pub level: &'static str,
    /// The DO block by wall time.
    pub whole: Figure,
    /// The article's query.
    pub query: Figure,
    /// One statement per row.
    pub single: Figure,
}

/// Starts four systems below `dir` and measures them in turn.
///
/// # Errors
/// A system does not start or gives an error.
pub fn run_all(program: &Path, dir: &Path, extent: Extent) -> Result<Vec<Cell>> {
    let alone = Postgres::primary(&dir.join("alone"), &[])?;
    let quorum = QuorumOfPostgres::start(dir, &[])?;
    let one = Cluster::start(program, &dir.join("q1"), 1, &[])?;
    let three = Cluster::start(program, &dir.join("q3"), 3, &[])?;
    let systems = [
        ("PostgreSQL alone", alone.endpoint()),
        ("Quorate, one node", &one.nodes()[0]),
        ("PostgreSQL, ANY 1 of 2", quorum.primary.endpoint()),
        // The node that leads, so that no session is passed on while it is measured.
        ("Quorate, three nodes", &three.nodes()[three.leader()?]),
    ];
    let script = dir.join("single.sql");
    write_file(&script, "\\set i :i + 1\ninsert into demo(i) values(:i);\n")?;
    let mut cells: Vec<Cell> = systems
        .iter()
        .flat_map(|(name, _)| Durability::ALL.map(|level| empty_cell(name, level)))
        .collect();
    for round in 0..extent.rounds {
        for level in Durability::ALL {
            for (name, endpoint) in &systems {
                let cell = cells
                    .iter_mut()
                    .find(|cell| cell.system == *name && cell.level == level.name())
                    .ok_or_else(|| Error::other("a cell per system and level"))?;
                measure(endpoint, level, &script, extent, cell)?;
                eprintln!(
                    "round {} {name} {}: {:.0} rows/s in DO, {:.0} one by one",
                    round + 1,
                    level.name(),
                    cell.whole.rounds[round],
                    cell.single.rounds[round]
                );
            }
        }
    }
    Ok(cells)
}

fn empty_cell(system: &str, level: Durability) -> Cell {
    let none = || Figure { rounds: Vec::new() };
    Cell {
        system: system.to_owned(),
        level: level.name(),
        whole: none(),
        query: none(),
        single: none(),
    }
}

fn measure(
    endpoint: &Endpoint,
    level: Durability,
    script: &Path,
    extent: Extent,
    cell: &mut Cell,
) -> Result<()> {
    endpoint.query("drop table if exists demo")?;
    endpoint
        .query("create table demo(i int primary key, t timestamp default clock_timestamp())")?;
    let options = format!("-c synchronous_commit={}", level.name());
    let printed =
        run(endpoint
            .psql()
            .env("PGOPTIONS", &options)
            .args(["-c", "\\timing on", "-c", LOOP]))?;
    let millis = parse_timing(&printed)
        .ok_or_else(|| Error::other(format!("no time in what psql printed: {printed}")))?;
    cell.whole.rounds.push(ROWS / (millis / 1e3));
    let query = endpoint.query(QUERY)?;
    cell.query
        .rounds
        .push(query.parse().map_err(|_| Error::other(query))?);
    endpoint.query("truncate demo")?;
    let printed = run(endpoint
        .client("pgbench")
        .env("PGOPTIONS", &options)
        .args(["-n", "-c", "1", "-D", "i=0", "-f"])
        .arg(script)
        .args(["-t", &extent.single_inserts.to_string(), "postgres"]))?;
    let rate = printed
        .lines()
        .find_map(|line| line.strip_prefix("tps = "))
        .and_then(|rest| rest.split(' ').next()?.parse().ok())
        .ok_or_else(|| Error::other(format!("no tps in what pgbench printed: {printed}")))?;
    cell.single.rounds.push(rate);
    Ok(())
}

/// The milliseconds of `Time: 1012.345 ms (00:01.012)`.
fn parse_timing(printed: &str) -> Option<f64> {
    let rest = printed
        .lines()
        .find_map(|line| line.strip_prefix("Time: "))?;
    rest.split(' ').next()?.parse().ok()
}

/// The tables of the report: one per form, systems across, levels down.
pub fn report(cells: &[Cell]) -> String {
    let mut systems: Vec<&str> = Vec::new();
    for cell in cells {
        if !systems.contains(&cell.system.as_str()) {
            systems.push(&cell.system);
        }
    }
    type Form = fn(&Cell) -> &Figure;
    let forms: [(&str, Form); 3] = [
        ("DO block, wall time", |cell| &cell.whole),
        ("DO block, the article's query", |cell| &cell.query),
        ("One statement per row", |cell| &cell.single),
    ];
    let mut out = String::new();
    for (title, form) in forms {
        let mut head = vec!["synchronous_commit".to_owned()];
        head.extend(systems.iter().map(|name| (*name).to_owned()));
        head.push("one node / alone".to_owned());
        head.push("three nodes / ANY 1".to_owned());
        let rows: Vec<Vec<String>> = Durability::ALL
            .iter()
            .map(|level| row(cells, &systems, *level, form))
            .collect();
        out.push_str(&format!("**{title}**, rows/s\n\n{}\n", table(&head, &rows)));
    }
    out
}

fn row(
    cells: &[Cell],
    systems: &[&str],
    level: Durability,
    form: fn(&Cell) -> &Figure,
) -> Vec<String> {
    let figures: Vec<&Figure> = systems
        .iter()
        .filter_map(|name| {
            cells
                .iter()
                .find(|cell| cell.system == *name && cell.level == level.name())
        })
        .map(form)
        .collect();
    let mut row = vec![level.name().to_owned()];
    row.extend(figures.iter().map(|figure| figure.show()));
    for pair in figures.chunks(2) {
        if let [theirs, ours] = pair {
            row.push(format!("{:.1}×", ours.median() / theirs.median()));
        }
    }
    row
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
