//! The leader is lost while sessions insert rows: how long does each wait, and is anything that was
//! acknowledged gone?
//!
//! Every session inserts one row after another and notes what was acknowledged, and when. One that
//! gets no answer within [`PATIENCE`], or whose connection breaks, goes to the next node, as a driver
//! with several hosts does; what became of that row it does not know, and goes on with the next.
//! The pause of a session is the longest time between two of its acknowledgements.

use std::collections::BTreeSet;
use std::io::{Error, Result};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use base::env::{sleep, Env, Instant};

use super::{Collected, Context};
use crate::client::{within, Failure};
use crate::driver::{explain, Driver};
use crate::host::{output, pause, signal, Process};
use crate::quorate::Cluster;
use crate::results::{Better, Chart, Check, Experiment, Form, Line};
use crate::session::{Arg, Session, Statement, Target};
use crate::systems::System;

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

pub(super) fn run(context: &Context<'_>, found: &mut Experiment) -> Result<()> {
    let systems = context.start(true, found)?;
    let driver = Driver::new(context.env.clone());
    let mut pauses = Collected::new(1);
    let mut lines = Chart::lines(
        Form::Time,
        "Rows acknowledged while the leader is killed",
        "rows/s",
        "time, s",
    );
    for system in &systems {
        let Some(cluster) = system.cluster() else {
            continue;
        };
        let (mut acknowledged, mut lost) = (0, 0);
        let mut ours = Vec::new();
        for _ in 0..context.extent.rounds {
            for fault in Fault::ALL {
                let Some(course) = one(context, &driver, system, cluster, fault, &mut ours)? else {
                    found
                        .notes
                        .push("This build hands no leadership over on request.".to_owned());
                    continue;
                };
                acknowledged += course.acknowledged;
                lost += course.lost;
                for pause in &course.pauses_ms {
                    pauses.add(0, fault.name(), system.name(), *pause);
                    let what = format!("{}: pause, {}", system.name(), fault.name());
                    context.live.figure(&what, *pause, "ms");
                }
                if fault == Fault::Kill && lines.lines.is_empty() {
                    lines.lines.push(Line {
                        series: system.name().to_owned(),
                        points: course.rate,
                    });
                    lines.marks = course.marks;
                }
            }
        }
        found.checks.push(Check {
            what: format!(
                "{}: of {acknowledged} rows acknowledged, {lost} were missing afterwards",
                system.name()
            ),
            held: lost == 0,
            expected: true,
        });
    }
    let title = "Longest pause of each session";
    let chart = pauses.chart(0, title, "ms", "the leader is", Better::Less);
    found.charts.push(chart);
    found.charts.push(lines);
    Ok(())
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

/// Loses the leader once; none where this build cannot do that.
fn one(
    context: &Context<'_>,
    driver: &Driver,
    system: &System,
    cluster: &Cluster,
    fault: Fault,
    ours: &mut Vec<Process>,
) -> Result<Option<Course>> {
    let leader = cluster.leader()?;
    let endpoint = &cluster.nodes()[leader];
    endpoint.query("drop table if exists acknowledged")?;
    endpoint.query("create table acknowledged(s int, i int, primary key(s, i))")?;
    let targets: Vec<Target> = system
        .endpoints()
        .iter()
        .map(|node| Target::at(&format!("{}:{}", node.host, node.port)))
        .collect();
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
    let healing = strike(cluster, leader, fault)?;
    pause(third);
    let healed = driver.env().now();
    let restarted = heal(cluster, leader, fault)?;
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
    let found = driver.block_on({
        let targets = targets.clone();
        move |env| async move { read_all(&*env, &targets).await }
    })??;
    // `quorate up` looks after the nodes that it started itself; these are ours.
    ours.extend(restarted);
    if !healing {
        return Ok(None);
    }
    let seconds = |at: Instant| at.since(begin).as_secs_f64();
    let marks = vec![
        (seconds(struck), format!("leader {}", fault.name())),
        (seconds(healed), "it comes back".to_owned()),
    ];
    Ok(Some(judge(&told, &found, begin, marks)))
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

/// Does it to the leader; false where this build cannot.
fn strike(cluster: &Cluster, leader: usize, fault: Fault) -> Result<bool> {
    match fault {
        Fault::Kill => signal(pid(cluster, leader)?, "KILL")?,
        Fault::Freeze => signal(pid(cluster, leader)?, "STOP")?,
        Fault::CutOff => cluster.cut_off(leader, true),
        Fault::HandOver => {
            let mut command = Command::new(cluster.program());
            command.args(["switchover", "--data"]).arg(cluster.data());
            return Ok(output(&mut command)?.status.success());
        }
    }
    Ok(true)
}

fn heal(cluster: &Cluster, leader: usize, fault: Fault) -> Result<Option<Process>> {
    match fault {
        Fault::Kill => return start(cluster, leader).map(Some),
        Fault::Freeze => signal(pid(cluster, leader)?, "CONT")?,
        Fault::CutOff => cluster.cut_off(leader, false),
        Fault::HandOver => {}
    }
    Ok(None)
}

fn pid(cluster: &Cluster, node: usize) -> Result<u32> {
    let pid = cluster.status()?.get(node).and_then(|node| node.pid);
    pid.ok_or_else(|| Error::other("the leader does not run"))
}

fn start(cluster: &Cluster, node: usize) -> Result<Process> {
    let dir = cluster.data().join(format!("n{}", node + 1));
    let mut command = Command::new(cluster.program());
    command.args(["start", "--data"]).arg(&dir);
    Process::start(&mut command, &dir.join("restarted.log"))
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
