//! What a round trip costs a commit: latency over the distance between the servers.
//!
//! Relays stand between Quorate's nodes, and between PostgreSQL's primary and its standbys. One
//! client commits one row after another, at every level of `synchronous_commit`, and reads one, with
//! the servers 0, 5 and 20 ms apart each way. Clients sit beside the leader and the primary, so
//! whatever grows with the distance is what the system asks of its replicas.
//!
//! The figure is the **slope**: how many milliseconds a commit takes longer for each millisecond of
//! round trip, by least squares over the medians. 1 is one round trip, 0 is none. What the machine
//! itself costs is the same at every distance and drops out.

use std::io::Result;
use std::time::Duration;

use base::Durability;

use super::{Collected, Context};
use crate::host::{go_on, write_file};
use crate::pgbench;
use crate::real::relay;
use crate::report::Figure;
use crate::results::{Better, Chart, Experiment, Form, Line};
use crate::systems::System;

/// Milliseconds from one server to another.
const ONE_WAY_MILLIS: [u64; 3] = [0, 5, 20];

const SETUP: &str = "drop table if exists far; \
                     create table far(i int primary key, t timestamp default clock_timestamp()); \
                     insert into far select generate_series(-1000, 0)";
const WRITE: &str = "\\set i :i + 1\ninsert into far(i) values (:i);\n";
const READ: &str = "\\set i random(-1000, 0)\nselect * from far where i = :i;\n";

/// What is measured of a system: the level, or `read`, and milliseconds by distance.
type Course = (String, String, Vec<Figure>);

pub(super) fn run(context: &Context<'_>, found: &mut Experiment) -> Result<()> {
    let mut systems = context.start(true, found)?;
    context.leave_out_running(
        &mut systems,
        "no distance can be put between its servers",
        found,
    );
    for (name, text) in [("write.sql", WRITE), ("read.sql", READ)] {
        write_file(&context.dir.join(name), text)?;
    }
    let mut courses: Vec<Course> = Vec::new();
    for system in &systems {
        for what in whats() {
            let none = || Figure { rounds: Vec::new() };
            let distances = ONE_WAY_MILLIS.iter().map(|_| none()).collect();
            courses.push((system.name().to_owned(), what.to_owned(), distances));
        }
    }
    for _ in 0..context.extent.rounds {
        for (index, millis) in ONE_WAY_MILLIS.iter().enumerate() {
            for system in &systems {
                go_on()?;
                let delay = Duration::from_millis(*millis);
                system.set_lines(relay::Line::delayed(delay));
                system.endpoint().query(SETUP)?;
                for (place, what) in whats().enumerate() {
                    let median = measure(context, system, what, place)?;
                    let name = format!("{}, {millis} ms, {what}", system.name());
                    context.live.figure(&name, median, "ms");
                    let mut courses = courses.iter_mut();
                    let course =
                        courses.find(|(name, other, _)| name == system.name() && other == what);
                    if let Some((.., figures)) = course {
                        figures[index].rounds.push(median);
                    }
                }
            }
        }
    }
    report(&courses, &systems, found);
    Ok(())
}

fn report(courses: &[Course], systems: &[System], found: &mut Experiment) {
    let mut slopes = Collected::new(1);
    for (name, what, figures) in courses {
        slopes.add(0, what, name, slope(figures));
    }
    let title = "Round trips of one transaction";
    let chart = slopes.chart(0, title, "round trips", "synchronous_commit", Better::Less);
    found.charts.push(chart);
    for what in whats() {
        let title = match what {
            "read" => "Median latency of a read".to_owned(),
            level => format!("Median latency of a commit at {level}"),
        };
        let across = "round trip between servers, ms";
        let mut chart = Chart::lines(Form::Lines, &title, "ms", across);
        for system in systems {
            let mut courses = courses.iter();
            let course = courses.find(|(name, other, _)| name == system.name() && other == what);
            if let Some((name, _, figures)) = course {
                chart.lines.push(Line {
                    series: name.clone(),
                    points: points(figures),
                });
            }
        }
        found.charts.push(chart);
    }
}

/// All levels, and a read.
fn whats() -> impl Iterator<Item = &'static str> {
    Durability::ALL
        .iter()
        .map(|level| level.name())
        .chain(["read"])
}

/// The median latency in milliseconds of one client's transactions.
fn measure(context: &Context<'_>, system: &System, what: &str, place: usize) -> Result<f64> {
    let (script, level) = match what {
        "read" => ("read.sql", "on"),
        level => ("write.sql", level),
    };
    let script = context.dir.join(script).display().to_string();
    // Keys that no other run of this set-up uses.
    let start = format!("i={}", place * 10_000_000);
    let micros = pgbench::latencies_at(
        system.endpoint(),
        &context.dir,
        level,
        1,
        context.extent.seconds,
        &["-M", "prepared", "-D", &start, "-f", &script],
    )?;
    Ok(Figure { rounds: micros }.median() / 1e3)
}

/// Milliseconds of round trip, and of latency.
fn points(latency_ms: &[Figure]) -> Vec<(f64, f64)> {
    ONE_WAY_MILLIS
        .iter()
        .zip(latency_ms)
        .map(|(one_way, figure)| (2.0 * *one_way as f64, figure.median()))
        .collect()
}

/// Milliseconds of latency per millisecond of round trip, by least squares.
fn slope(latency_ms: &[Figure]) -> f64 {
    let points = points(latency_ms);
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
