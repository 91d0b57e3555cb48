//! The leader is lost while sessions insert rows: how long does each wait, and is anything that was
//! acknowledged gone?
//!
//! Every session inserts one row after another and notes what was acknowledged, and when. One that
//! gets no answer within [`PATIENCE`], or whose connection breaks, goes to the next node, as a driver
//! with several hosts does; what became of that row it does not know, and goes on with the next.
//! The pause of a session is the longest time between two of its acknowledgements.
//!
//! [`victim`] says what is lost and how it is replaced.

mod victim;

use std::collections::BTreeSet;
use std::io::{Error, Result};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use base::env::{sleep, Env, Instant};
use base::SqlState;

use super::{note_system, Collected, Context};
use crate::client::{within, Failure};
use crate::driver::{explain, Driver};
use crate::host::{go_on, pause};
use crate::results::{Better, Chart, Check, Experiment, Form, Line};
use crate::session::{Arg, Session, Statement, Target};
use crate::systems::{Kind, System};
use victim::Victim;

/// How long a session waits for an answer before it goes elsewhere.
const PATIENCE: Duration = Duration::from_millis(500);

/// Between two attempts to connect.
const RECONNECT_PAUSE: Duration = Duration::from_millis(5);

/// How long the last look may take, over all nodes.
const LAST_LOOK: Duration = Duration::from_secs(30);

/// The grain of the time line.
const GRAIN: Duration = Duration::from_millis(100);

const INSERT: Statement = Statement {
    number: 0,
    text: "insert into acknowledged values ($1, $2)",
};

/// What happens to the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Kill,
    Freeze,
    CutOff,
    HandOver,
}

impl Fault {
    const ALL: [Fault; 4] = [Fault::Kill, Fault::Freeze, Fault::CutOff, Fault::HandOver];

    fn name(self) -> &'static str {
        match self {
            Fault::Kill => "killed",
            Fault::Freeze => "frozen",
            Fault::CutOff => "cut off",
            Fault::HandOver => "handed over",
        }
    }
}

/// What a session was told: rows and when each was acknowledged.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// Rows and when, in order.
    pub acknowledged: Vec<(i64, Instant)>,
}

/// What all courses together found.
struct Results {
    pauses: Collected,
    lines: Chart,
    /// By system: rows acknowledged, and how many of them were lost.
    tallies: Vec<(String, usize, usize)>,
}

pub(super) fn run(context: &Context<'_>, found: &mut Experiment) -> Result<()> {
    let title = "Rows acknowledged while the leader is killed";
    let mut results = Results {
        pauses: Collected::new(1),
        lines: Chart::lines(Form::Time, title, "rows/s", "time, s"),
        tallies: Vec::new(),
    };
    for name in &context.definition.systems {
        let is_postgres = Kind::named(name).is_some_and(|kind| kind.is_postgres);
        let faults = (0..context.extent.rounds).flat_map(|_| Fault::ALL);
        let mut restarted = Vec::new();
        let mut kept: Option<System> = None;
        for (number, fault) in faults.enumerate() {
            // A primary that was replaced does not come back: the next fault has servers of its own.
            go_on()?;
            let is_new = kept.is_none() || is_postgres;
            if is_new {
                drop(kept.take());
                kept = context.start_one(name, &format!("{name}-{number}"), true)?;
            }
            let Some(system) = &kept else { break };
            if number == 0 {
                note_system(system, found);
            }
            let Some(victim) = Victim::of(system, &mut restarted)? else {
                break;
            };
            let course = one(context, victim, fault)?;
            results.add(context, system.name(), fault, course);
        }
    }
    for (name, acknowledged, lost) in &results.tallies {
        found.checks.push(Check {
            what: format!(
                "{name}: of {acknowledged} rows acknowledged, {lost} were missing afterwards"
            ),
            held: *lost == 0,
            expected: true,
        });
    }
    let title = "Longest pause of each session";
    let chart = results
        .pauses
        .chart(0, title, "ms", "the leader is", Better::Less);
    found.charts.push(chart);
    found.charts.push(results.lines);
    for (name, _) in &context.site.urls {
        let note = format!("{name} is left out: it is not ours to kill.");
        found.notes.push(note);
    }
    found.notes.push(
        "PostgreSQL's primary is replaced by commands that are given at once: whoever would have to \
         notice the loss first is not part of its pauses."
            .to_owned(),
    );
    Ok(())
}

impl Results {
    fn add(&mut self, context: &Context<'_>, name: &str, fault: Fault, course: Course) {
        for pause in &course.pauses_ms {
            self.pauses.add(0, fault.name(), name, *pause);
            let what = format!("{name}: pause, {}", fault.name());
            context.live.figure(&what, *pause, "ms");
        }
        let is_drawn = |line: &Line| line.series == name;
        if fault == Fault::Kill && !self.lines.lines.iter().any(is_drawn) {
            self.lines.lines.push(Line {
                series: name.to_owned(),
                points: course.rate,
            });
            if self.lines.marks.is_empty() {
                self.lines.marks = course.marks;
            }
        }
        match self.tallies.iter_mut().find(|(other, ..)| other == name) {
            Some((_, acknowledged, lost)) => {
                *acknowledged += course.acknowledged;
                *lost += course.lost;
            }
            None => self
                .tallies
                .push((name.to_owned(), course.acknowledged, course.lost)),
        }
    }
}

/// One fault's course.
struct Course {
    pauses_ms: Vec<f64>,
    acknowledged: usize,
    lost: usize,
    /// Seconds, and rows per second.
    rate: Vec<(f64, f64)>,
    marks: Vec<(f64, String)>,
}

/// Loses the leader once.
fn one(context: &Context<'_>, mut victim: Victim<'_>, fault: Fault) -> Result<Course> {
    let driver = Driver::new(context.env.clone());
    victim.query("drop table if exists acknowledged")?;
    victim.query("create table acknowledged(s int, i int, primary key(s, i))")?;
    let targets = victim.targets();
    let sessions = context.extent.clients.first().copied().unwrap_or(8);
    let over = Arc::new(AtomicBool::new(false));
    let begin = driver.env().now();
    let mut writers = Vec::new();
    for number in 0..sessions {
        let (targets, over) = (targets.clone(), over.clone());
        writers.push(driver.spawn(number, move |env| async move {
            write(&*env, &targets, number as i64, &over).await
        }));
    }
    let third = Duration::from_secs(context.extent.seconds as u64) / 3;
    pause(third);
    let struck = driver.env().now();
    victim.strike(fault)?;
    pause(third);
    let healed = driver.env().now();
    victim.heal(fault)?;
    pause(third);
    over.store(true, Ordering::Relaxed);
    let mut told = Vec::new();
    for writer in writers {
        told.push(
            writer
                .recv()
                .map_err(|_| Error::other("a writer panicked"))?,
        );
    }
    let found = driver.block_on(move |env| async move { read_all(&*env, &targets).await })??;
    let seconds = |at: Instant| at.since(begin).as_secs_f64();
    let marks = vec![
        (seconds(struck), format!("leader {}", fault.name())),
        (seconds(healed), "it comes back".to_owned()),
    ];
    Ok(judge(&told, &found, begin, marks))
}

fn judge(
    told: &[Told],
    found: &BTreeSet<(i64, i64)>,
    begin: Instant,
    marks: Vec<(f64, String)>,
) -> Course {
    let mut course = Course {
        pauses_ms: Vec::new(),
        acknowledged: 0,
        lost: 0,
        rate: Vec::new(),
        marks,
    };
    for (number, told) in told.iter().enumerate() {
        course.acknowledged += told.acknowledged.len();
        let missing = |(row, _): &&(i64, Instant)| !found.contains(&(number as i64, *row));
        course.lost += told.acknowledged.iter().filter(missing).count();
        let gaps = told.acknowledged.windows(2);
        let longest = gaps.map(|pair| pair[1].1.since(pair[0].1)).max();
        let millis = longest.unwrap_or_default().as_secs_f64() * 1e3;
        course.pauses_ms.push(millis);
        for (_, at) in &told.acknowledged {
            let slot = (at.since(begin).as_nanos() / GRAIN.as_nanos()) as usize;
            while course.rate.len() <= slot {
                let at = course.rate.len() as f64 * GRAIN.as_secs_f64();
                course.rate.push((at, 0.0));
            }
            course.rate[slot].1 += 1.0 / GRAIN.as_secs_f64();
        }
    }
    course
}

/// Inserts rows until it is over.
pub(crate) async fn write(
    env: &dyn Env,
    targets: &[Target],
    number: i64,
    over: &AtomicBool,
) -> Told {
    let mut told = Told::default();
    let mut session: Option<Session> = None;
    let (mut row, mut node) = (0, 0);
    while !over.load(Ordering::Relaxed) {
        let Some(open) = &mut session else {
            let target = &targets[node % targets.len()];
            match within(env, PATIENCE, Session::connect(env, target)).await {
                Some(Ok(fresh)) => session = Some(fresh),
                _ => {
                    node += 1;
                    sleep(env, RECONNECT_PAUSE).await;
                }
            }
            continue;
        };
        open.queue(INSERT, &[Arg::Int(number), Arg::Int(row)]);
        match within(env, PATIENCE, open.run()).await {
            Some(Ok(())) => {
                told.acknowledged.push((row, env.now()));
                row += 1;
            }
            // It is a standby: whoever takes its primary's place is another.
            Some(Err(Failure::Refused(error)))
                if error.state() == SqlState::READ_ONLY_SQL_TRANSACTION =>
            {
                session = None;
                node += 1;
                sleep(env, RECONNECT_PAUSE).await;
            }
            // It did not happen; the session lives on.
            Some(Err(Failure::Refused(_))) => sleep(env, RECONNECT_PAUSE).await,
            // Nobody knows whether it did.
            Some(Err(Failure::Broken(_))) | None => {
                session = None;
                node += 1;
                row += 1;
            }
        }
    }
    told
}

/// All rows, from whichever node answers.
pub(crate) async fn read_all(env: &dyn Env, targets: &[Target]) -> Result<BTreeSet<(i64, i64)>> {
    let begin = env.now();
    let mut node = 0;
    loop {
        let read = within(
            env,
            LAST_LOOK,
            read_from(env, &targets[node % targets.len()]),
        )
        .await;
        let failure = match read {
            Some(Ok(rows)) => return Ok(rows),
            Some(Err(failure)) => explain(failure),
            None => Error::other("no answer in time"),
        };
        if env.now().since(begin) > LAST_LOOK {
            return Err(failure);
        }
        node += 1;
        sleep(env, PATIENCE).await;
    }
}

async fn read_from(
    env: &dyn Env,
    target: &Target,
) -> std::result::Result<BTreeSet<(i64, i64)>, Failure> {
    let mut session = Session::connect(env, target).await?;
    // Whoever takes no writes is not the one that clients are left with.
    session
        .query("begin; create table writable(i int); rollback")
        .await?;
    session.query("select s, i from acknowledged").await?;
    let rows = 0..session.rows(0);
    Ok(rows
        .filter_map(|row| Some((session.int(0, row, 0)?, session.int(0, row, 1)?)))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_and_the_longest_pause_are_found() {
        let at = |millis: u64| Instant(millis * 1_000_000);
        let told = [Told {
            acknowledged: vec![(0, at(10)), (1, at(20)), (3, at(520)), (4, at(530))],
        }];
        let found = [(0, 0), (0, 1), (0, 2), (0, 4)].into_iter().collect();
        let course = judge(&told, &found, at(0), Vec::new());
        assert_eq!((course.acknowledged, course.lost), (4, 1));
        assert_eq!(course.pauses_ms, [500.0]);
        assert_eq!(course.rate[0], (0.0, 20.0));
        assert_eq!(course.rate.len(), 6);
    }
}
