//! TPC-H's queries, one after the other, each in turn on every system.
//!
//! A query's time is what psql sees from its text to its last row, so that planning counts. The
//! first round of each warms up, and its answers are compared, text by text.

use std::io::{Error, Result};

use super::{interleave, Collected, Context};
use crate::host::output;
use crate::report::Figure;
use crate::results::{Better, Check, Experiment};
use crate::systems::System;
use crate::tpch;

/// Places of the charts.
const TIMES: usize = 0;
const RATIOS: usize = 1;

/// A query that takes longer is ended, and fails.
const TIME_LIMIT: &str = "set statement_timeout = '10min'";

/// What a query gave.
struct Asked {
    answer: String,
    milliseconds: f64,
}

/// What is known of a query on one system.
#[derive(Default)]
struct Course {
    answer: Option<String>,
    error: Option<String>,
    times: Figure,
}

pub(super) fn run(context: &Context<'_>, found: &mut Experiment) -> Result<()> {
    let systems = context.start(false, found)?;
    let scale = context.extent.scale;
    found.notes.push(format!("Scale {scale}."));
    for system in &systems {
        let begin = context.env.now();
        tpch::load(system.endpoint(), scale, &context.dir)?;
        let seconds = context.env.now().since(begin).as_secs_f64();
        let what = format!("{}: load", system.name());
        context.live.figure(&what, seconds, "s");
    }
    let mut figures = Collected::new(2);
    let mut totals = vec![0.0; systems.len()];
    for (place, query) in tpch::queries(scale).iter().enumerate() {
        let name = format!("Q{}", place + 1);
        let courses = measure(context, &systems, &name, query)?;
        for ((course, system), total) in courses.iter().zip(&systems).zip(&mut totals) {
            for time in &course.times.rounds {
                figures.add(TIMES, &name, system.name(), *time);
            }
            *total += course.times.median();
        }
        compare(&name, &systems, &courses, found);
        add_ratios(&mut figures, &name, &systems, &medians(&courses));
    }
    for (system, total) in systems.iter().zip(&totals) {
        figures.add(TIMES, "all", system.name(), *total);
    }
    add_ratios(&mut figures, "all", &systems, &totals);
    let times = "Time of a query";
    let chart = figures.chart(TIMES, times, "ms", "query", Better::Less);
    found.charts.push(chart);
    let ratios = "Time beside the first system's";
    let chart = figures.chart(RATIOS, ratios, "×", "query", Better::Less);
    found.charts.push(chart);
    Ok(())
}

fn medians(courses: &[Course]) -> Vec<f64> {
    let medians = courses.iter().map(|course| course.times.median());
    medians.collect()
}

/// Asks a query of all systems in turn.
fn measure(
    context: &Context<'_>,
    systems: &[System],
    name: &str,
    query: &str,
) -> Result<Vec<Course>> {
    let mut courses: Vec<Course> = systems.iter().map(|_| Course::default()).collect();
    interleave(systems, context.extent.rounds, |system, is_warm_up| {
        let mut pairs = systems.iter().zip(&mut courses);
        let Some((_, course)) = pairs.find(|(other, _)| other.name() == system.name()) else {
            return Ok(());
        };
        // What has failed once is not waited for again.
        if course.error.is_some() {
            return Ok(());
        }
        match ask(system, query) {
            Ok(asked) if is_warm_up => course.answer = Some(asked.answer),
            Ok(asked) => {
                let what = format!("{}: {name}", system.name());
                context.live.figure(&what, asked.milliseconds, "ms");
                course.times.rounds.push(asked.milliseconds);
            }
            Err(error) => course.error = Some(error.to_string()),
        }
        Ok(())
    })?;
    Ok(courses)
}

/// The answer to a query, and how long it took.
fn ask(system: &System, query: &str) -> Result<Asked> {
    let mut psql = system.endpoint().psql();
    psql.args(["-c", TIME_LIMIT, "-c", "\\timing on", "-c", query]);
    let done = output(&mut psql)?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        return Err(Error::other(said.trim().to_owned()));
    }
    let said = String::from_utf8_lossy(&done.stdout);
    let timed = said.trim_end().rsplit_once("Time: ");
    let (answer, time) = timed.ok_or_else(|| Error::other("psql does not say the time"))?;
    let milliseconds = time.split(' ').next().and_then(|time| time.parse().ok());
    let milliseconds = milliseconds.ok_or_else(|| Error::other("psql says no time"))?;
    Ok(Asked {
        answer: answer.to_owned(),
        milliseconds,
    })
}

/// Notes whether the query was answered, and as by the first system.
fn compare(name: &str, systems: &[System], courses: &[Course], found: &mut Experiment) {
    let first = courses.first().and_then(|course| course.answer.as_ref());
    for (system, course) in systems.iter().zip(courses) {
        let (what, held) = match (&course.error, &course.answer) {
            (Some(error), _) => (format!("{name}, {}: {error}", system.name()), false),
            (None, answer) => {
                let same = answer.as_ref() == first || first.is_none();
                (format!("{name}, {}: the same answer", system.name()), same)
            }
        };
        // What holds is said once, for all of them.
        if !held {
            let expected = true;
            found.checks.push(Check {
                what,
                held,
                expected,
            });
        }
    }
    let held = courses.iter().all(|course| course.answer.as_ref() == first);
    if held && first.is_some() {
        found.checks.push(Check {
            what: format!("{name}: every system gives the same answer"),
            held,
            expected: true,
        });
    }
}

/// Every other system's time, divided by the first one's.
fn add_ratios(figures: &mut Collected, group: &str, systems: &[System], times: &[f64]) {
    let Some(first) = times.first().filter(|first| **first > 0.0) else {
        return;
    };
    for (system, time) in systems.iter().zip(times).skip(1) {
        if *time > 0.0 {
            figures.add(RATIOS, group, system.name(), time / first);
        }
    }
}
