//! Upserts of random keys, or of one, by sessions of our own, with a course by the second.
//!
//! pgbench logs either every transaction, which is gigabytes in twenty minutes, or sums without
//! percentiles. Here every second has a histogram. Sessions are as many as are asked for, each with
//! one statement under way, on the reactors of this process.

use std::io::{Error, Result};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::Arc;
use std::time::Duration;

use base::env::{sleep, Env, Instant};
use base::sync::Mutex;
use hdrhistogram::Histogram;

use crate::client::Failure;
use crate::driver::{explain, Driver};
use crate::session::{Arg, Session, Statement, Target};

const UPSERT: Statement = Statement {
    number: 0,
    text: "insert into test2 values ($1, md5(random()::text), now()) \
           on conflict (id) do update set info = excluded.info, crt_time = excluded.crt_time",
};

/// Latencies above this count as this.
const MICROS_MAX: u64 = 600_000_000;

/// Digits of a latency that are kept: with two, a second takes some kilobytes.
const DIGITS: u8 = 2;

/// How often checkpoints are looked for.
const WATCH: Duration = Duration::from_millis(100);

/// An empty histogram of microseconds.
pub fn histogram() -> Histogram<u32> {
    Histogram::new_with_bounds(1, MICROS_MAX, DIGITS)
        .unwrap_or_else(|error| panic!("bounds of a histogram: {error}"))
}

/// What happened, by the second.
#[derive(Debug)]
pub struct Course {
    /// Latencies of what ended in each second, in microseconds.
    pub seconds: Vec<Histogram<u32>>,
    /// How many, the sum of their microseconds, and that of the squares.
    pub count: f64,
    /// See `count`.
    pub sum: f64,
    /// See `count`.
    pub squares: f64,
}

impl Course {
    fn new() -> Course {
        Course {
            seconds: Vec::new(),
            count: 0.0,
            sum: 0.0,
            squares: 0.0,
        }
    }

    fn note(&mut self, at: Duration, micros: u64) {
        let second = at.as_secs() as usize;
        while self.seconds.len() <= second {
            self.seconds.push(histogram());
        }
        self.seconds[second].saturating_record(micros.clamp(1, MICROS_MAX));
        let micros = micros as f64;
        self.count += 1.0;
        self.sum += micros;
        self.squares += micros * micros;
    }

    /// The latency's standard deviation over its mean.
    pub fn deviation_over_mean(&self) -> f64 {
        let mean = self.sum / self.count;
        (self.squares / self.count - mean * mean).max(0.0).sqrt() / mean
    }

    /// All latencies of the seconds for which something holds.
    pub fn where_second(&self, holds: impl Fn(usize) -> bool) -> Histogram<u32> {
        let mut all = histogram();
        for (index, second) in self.seconds.iter().enumerate() {
            if holds(index) {
                let added = all.add(second);
                assert!(added.is_ok(), "histograms of different bounds: {added:?}");
            }
        }
        all
    }
}

/// Sessions at work.
#[derive(Debug)]
pub struct Upserts {
    begin: Instant,
    over: Arc<AtomicBool>,
    course: Arc<Mutex<Course>>,
    sessions: Vec<Receiver<std::result::Result<(), Failure>>>,
}

impl Upserts {
    /// So many sessions upsert keys from 1 to `keys`.
    pub fn start(driver: &Driver, target: &Target, keys: u64, sessions: usize) -> Upserts {
        let over = Arc::new(AtomicBool::new(false));
        let course = Arc::new(Mutex::new(Course::new()));
        let begin = driver.env().now();
        let sessions = (0..sessions).map(|index| {
            let (target, over, course) = (target.clone(), over.clone(), course.clone());
            driver.spawn(index, move |env| async move {
                upsert(&*env, &target, keys, begin, &over, &course).await
            })
        });
        Upserts {
            begin,
            sessions: sessions.collect(),
            over,
            course,
        }
    }

    /// When they began.
    pub fn begin(&self) -> Instant {
        self.begin
    }

    /// How many have ended so far.
    pub fn count(&self) -> f64 {
        self.course.lock().count
    }

    /// Ends them, and says what happened.
    ///
    /// # Errors
    /// What a session was told, or that nothing happened.
    pub fn stop(self) -> Result<Course> {
        self.over.store(true, Ordering::Relaxed);
        for session in self.sessions {
            let ended = session
                .recv()
                .map_err(|_| Error::other("a session panicked"))?;
            ended.map_err(explain)?;
        }
        let course = std::mem::replace(&mut *self.course.lock(), Course::new());
        match course.count > 0.0 {
            true => Ok(course),
            false => Err(Error::other("no upsert has ended")),
        }
    }
}

async fn upsert(
    env: &dyn Env,
    target: &Target,
    keys: u64,
    begin: Instant,
    over: &AtomicBool,
    course: &Mutex<Course>,
) -> std::result::Result<(), Failure> {
    let mut session = Session::connect(env, target).await?;
    while !over.load(Ordering::Relaxed) {
        let key = 1 + env.random() % keys;
        let sent = env.now();
        session.queue(UPSERT, &[Arg::Int(key as i64)]);
        session.run().await?;
        let now = env.now();
        let micros = now.since(sent).as_micros() as u64;
        course.lock().note(now.since(begin), micros);
    }
    Ok(())
}

/// Looks for checkpoints until it is told to stop.
#[derive(Debug)]
pub struct Watch {
    over: Arc<AtomicBool>,
    seen: Receiver<std::result::Result<Vec<(f64, f64)>, Failure>>,
}

impl Watch {
    /// Looks with a query that gives one row: a number that grows with each checkpoint, and how many
    /// seconds ago the newest began.
    pub fn start(driver: &Driver, target: &Target, sql: &str, begin: Instant) -> Watch {
        let over = Arc::new(AtomicBool::new(false));
        let (target, sql, until) = (target.clone(), sql.to_owned(), over.clone());
        let seen = driver.spawn(0, move |env| async move {
            watch(&*env, &target, &sql, begin, &until).await
        });
        Watch { over, seen }
    }

    /// The checkpoints that ended meanwhile: from when to when, in seconds.
    ///
    /// # Errors
    /// What the session was told.
    pub fn stop(self) -> Result<Vec<(f64, f64)>> {
        self.over.store(true, Ordering::Relaxed);
        let seen = self
            .seen
            .recv()
            .map_err(|_| Error::other("the watch panicked"))?;
        seen.map_err(explain)
    }
}

async fn watch(
    env: &dyn Env,
    target: &Target,
    sql: &str,
    begin: Instant,
    over: &AtomicBool,
) -> std::result::Result<Vec<(f64, f64)>, Failure> {
    let mut session = Session::connect(env, target).await?;
    let (mut seen, mut last) = (Vec::new(), None);
    while !over.load(Ordering::Relaxed) {
        session.query(sql).await?;
        let number = |column| session.text(0, 0, column)?.parse::<f64>().ok();
        if let (Some(newest), age) = (number(0), number(1)) {
            let is_new = last.is_some_and(|last| newest > last);
            if let (true, Some(age)) = (is_new, age) {
                let now = env.now().since(begin).as_secs_f64();
                seen.push((now - age, now));
            }
            last = Some(newest);
        }
        sleep(env, WATCH).await;
    }
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_course_adds_up() {
        let mut course = Course::new();
        for (millis, micros) in [(100, 100), (900, 300), (2_100, 200)] {
            course.note(Duration::from_millis(millis), micros);
        }
        assert_eq!(course.seconds.len(), 3);
        let counts: Vec<u64> = course.seconds.iter().map(Histogram::len).collect();
        assert_eq!(counts, [2, 0, 1]);
        // 100, 300 and 200 deviate from 200 by 100, 100 and 0.
        let expected = (20_000.0_f64 / 3.0).sqrt() / 200.0;
        assert!((course.deviation_over_mean() - expected).abs() < 1e-9);
        assert_eq!(course.where_second(|second| second > 0).len(), 1);
        assert_eq!(course.where_second(|_| true).len(), 3);
    }
}
