//! Upserts of random keys for a long while, one system after the other: throughput and latency by
//! the second, the files' sizes, and when checkpoints were under way. Then upserts of one row alone.
//!
//! A checkpoint is seen when it ends and says itself when it began: `pg_control_checkpoint()` in
//! PostgreSQL, the age of the newest record in it in `quorate.storage`. One that is still under way
//! when the upserts end is asked to end, and counts as far as they went.
//!
//! Of a run of twenty minutes the *early* part is minutes 2 to 6, the *late* part the last five; of
//! a shorter one the same shares.

use std::io::Result;
use std::time::Duration;

use super::clients::CLIENT_SHARE_MAX;
use super::memory::{fill, settle};
use super::{Collected, Context};
use crate::driver::Driver;
use crate::host::{allocated_bytes, cores, go_on, pause, processor_micros};
use crate::report::Figure;
use crate::results::{Better, Chart, Experiment, Form, Line, Span};
use crate::systems::System;
use crate::upserts::{Course, Upserts, Watch};

/// What is looked at once a second.
const LOOK: Duration = Duration::from_secs(1);

/// One that ends while the system is asked is seen a little later.
const LAST_LOOK: Duration = Duration::from_millis(300);

const POSTGRES_CHECKPOINT: &str = "select checkpoint_lsn - '0/0'::pg_lsn, \
    extract(epoch from clock_timestamp() - checkpoint_time) from pg_control_checkpoint()";
const QUORATE_CHECKPOINT: &str = "select checkpoint_lsn - '0/0'::pg_lsn, \
    extract(epoch from checkpoint_age) from quorate.storage";

/// Places of the charts of bars.
const RATE: usize = 0;
const LATE_OVER_EARLY: usize = 1;
const TAIL: usize = 2;
const DEVIATION: usize = 3;
const GROWTH: usize = 4;
const HOT: usize = 5;

/// Charts over time.
struct Courses {
    rate: Chart,
    p99: Chart,
    files: Chart,
}

/// What was measured of a system.
struct Measured {
    course: Course,
    /// Checkpoints, in seconds.
    checkpoints: Vec<(f64, f64)>,
    /// By the second: when, and megabytes of data and of log.
    sizes: Vec<(f64, [f64; 2])>,
    /// Of the machine's processors, what this process took.
    client_share: f64,
}

pub(super) fn run(context: &Context<'_>, found: &mut Experiment) -> Result<()> {
    let systems = context.start(false, found)?;
    let across = "time, s";
    let mut courses = Courses {
        rate: Chart::lines(Form::Time, "Upserts", "upserts/s", across),
        p99: Chart::lines(Form::Time, "99th percentile of each second", "ms", across),
        files: Chart::lines(Form::Time, "Files", "MB", across),
    };
    let mut figures = Collected::new(6);
    for system in &systems {
        fill(system, context.extent.rows, |_| {})?;
        settle(system)?;
        let measured = measure(context, system, context.extent.rows, context.extent.seconds)?;
        judge(context, system, &measured, &mut figures, found);
        draw(system, measured, &mut courses);
        if context.extent.hot_seconds > 0 {
            settle(system)?;
            let hot = measure(context, system, 1, context.extent.hot_seconds)?;
            if let (Some((_, first)), Some((_, last))) = (hot.sizes.first(), hot.sizes.last()) {
                let seconds = context.extent.hot_seconds;
                let group = format!("{:.0} updates in {seconds} s", hot.course.count);
                context.live.figure(system.name(), last[0] - first[0], "MB");
                figures.add(HOT, "before", system.name(), first[0]);
                figures.add(HOT, "after", system.name(), last[0]);
                let name = system.name();
                found.notes.push(format!("{name}, one row alone: {group}."));
            }
        }
    }
    for (index, title, unit, across, better) in [
        (
            RATE,
            "Upserts per second, median of the seconds",
            "upserts/s",
            "part",
            Better::More,
        ),
        (
            LATE_OVER_EARLY,
            "Late over early",
            "× early",
            "upserts",
            Better::More,
        ),
        (
            TAIL,
            "99.9th percentile of an upsert",
            "ms",
            "moment",
            Better::Less,
        ),
        (
            DEVIATION,
            "Standard deviation of an upsert's latency",
            "× its mean",
            "part",
            Better::Less,
        ),
        (
            GROWTH,
            "Files of data at most",
            "× freshly loaded",
            "part",
            Better::Less,
        ),
        (
            HOT,
            "Files of data, updates of one row alone",
            "MB",
            "updates",
            Better::Less,
        ),
    ] {
        let chart = figures.chart(index, title, unit, across, better);
        found.charts.push(chart);
    }
    found
        .charts
        .extend([courses.rate, courses.p99, courses.files]);
    Ok(())
}

fn measure(
    context: &Context<'_>,
    system: &System,
    keys: usize,
    seconds: usize,
) -> Result<Measured> {
    let driver = Driver::new(context.env.clone());
    let clients = context.extent.clients.first().copied().unwrap_or(16);
    let target = system.target();
    let upserts = Upserts::start(&driver, &target, keys as u64, clients);
    let query = match system.is_postgres() {
        true => POSTGRES_CHECKPOINT,
        false => QUORATE_CHECKPOINT,
    };
    // A server of somebody else's need not say.
    let watch = system
        .is_ours()
        .then(|| Watch::start(&driver, &target, query, upserts.begin()));
    let mut sizes = Vec::new();
    let this = [std::process::id()];
    let busy_before = processor_micros(&this)?;
    let passed = || context.env.now().since(upserts.begin()).as_secs_f64();
    while passed() < seconds as f64 {
        go_on()?;
        if let Some(places) = system.places() {
            let megabytes = places.map(|(_, place)| allocated_bytes(&place) as f64 / 1e6);
            sizes.push((passed(), megabytes));
        }
        let rate = upserts.count() / passed();
        context.live.progress(system.name(), rate, "upserts/s");
        let left = (seconds as f64 - passed()).max(0.0);
        pause(LOOK.min(Duration::from_secs_f64(left)));
    }
    let end = passed();
    let client_share = (processor_micros(&this)? - busy_before) / 1e6 / end / cores() as f64;
    let mut course = upserts.stop()?;
    // The last second is not whole.
    course.seconds.truncate(seconds);
    let mut checkpoints = Vec::new();
    if let Some(watch) = watch {
        system.endpoint().query("checkpoint")?;
        pause(LAST_LOOK);
        let seen = watch.stop()?.into_iter();
        let within = seen.filter(|(from, to)| *from < end && *to > 0.0);
        checkpoints.extend(within.map(|(from, to)| (from.max(0.0), to.min(end))));
    }
    Ok(Measured {
        course,
        checkpoints,
        sizes,
        client_share,
    })
}

/// The seconds of the early and of the late part of a run.
fn parts(seconds: usize) -> [std::ops::Range<usize>; 2] {
    [
        seconds / 20..seconds * 3 / 10,
        seconds - seconds / 4..seconds,
    ]
}

fn judge(
    context: &Context<'_>,
    system: &System,
    measured: &Measured,
    figures: &mut Collected,
    found: &mut Experiment,
) {
    let (name, course) = (system.name(), &measured.course);
    let seconds = course.seconds.len();
    let medians = parts(seconds).map(|part| {
        let counts = course.seconds[part]
            .iter()
            .map(|second| second.len() as f64);
        let rounds = counts.collect();
        Figure { rounds }.median()
    });
    for (part, median) in parts(context.extent.seconds).iter().zip(medians) {
        let group = format!("seconds {} to {}", part.start, part.end);
        figures.add(RATE, &group, name, median);
    }
    figures.add(
        LATE_OVER_EARLY,
        "random keys",
        name,
        medians[1] / medians[0],
    );
    let is_during = |second: usize| {
        let (from, to) = (second as f64, second as f64 + 1.0);
        let mut all = measured.checkpoints.iter();
        all.any(|checkpoint| checkpoint.0 < to && checkpoint.1 > from)
    };
    for (group, during) in [("during checkpoints", true), ("between them", false)] {
        let all = course.where_second(|second| is_during(second) == during);
        if !all.is_empty() {
            let p999 = all.value_at_percentile(99.9) as f64 / 1e3;
            figures.add(TAIL, group, name, p999);
        }
    }
    figures.add(DEVIATION, "whole run", name, course.deviation_over_mean());
    if let Some((_, [loaded, _])) = measured.sizes.first() {
        let sizes = measured.sizes.iter().map(|(_, [data, _])| *data);
        let most = sizes.fold(0.0, f64::max);
        figures.add(GROWTH, "whole run", name, most / loaded.max(1e-3));
    }
    if measured.client_share > CLIENT_SHARE_MAX {
        found.warnings.push(format!(
            "{name}: the client took {:.0}% of the machine's processors: it is what was measured",
            measured.client_share * 100.0
        ));
    }
    found.notes.push(format!(
        "{name}: {} checkpoints, {:.0} upserts.",
        measured.checkpoints.len(),
        course.count
    ));
}

fn draw(system: &System, measured: Measured, courses: &mut Courses) {
    let series = system.name().to_owned();
    let seconds = || (0_u32..).zip(&measured.course.seconds);
    courses.rate.lines.push(Line {
        series: series.clone(),
        points: seconds()
            .map(|(at, second)| (f64::from(at), second.len() as f64))
            .collect(),
    });
    courses.p99.lines.push(Line {
        series: series.clone(),
        points: seconds()
            .filter(|(_, second)| !second.is_empty())
            .map(|(at, second)| (f64::from(at), second.value_at_percentile(99.0) as f64 / 1e3))
            .collect(),
    });
    for (place, (what, _)) in system.places().iter().flatten().enumerate() {
        let sizes = measured.sizes.iter();
        courses.files.lines.push(Line {
            series: format!("{series}: {what}"),
            points: sizes.map(|(at, sizes)| (*at, sizes[place])).collect(),
        });
    }
    for chart in [&mut courses.rate, &mut courses.p99] {
        let spans = measured.checkpoints.iter().map(|(from, to)| Span {
            what: "checkpoints".to_owned(),
            series: series.clone(),
            from: *from,
            to: *to,
        });
        chart.spans.extend(spans);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_minutes_have_the_parts_that_are_asked_for() {
        assert_eq!(parts(1_200), [60..360, 900..1_200]);
        assert_eq!(parts(10), [0..3, 8..10]);
    }
}
