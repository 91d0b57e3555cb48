//! Scripts with several sessions: all interleavings of their steps, on PostgreSQL 15, on one node
//! and on three nodes of Quorate.
//!
//! `tests/isolation/*.spec` are written as [`spec`] says. For every interleaving that is possible
//! on PostgreSQL (a session that waits can take no further step), Quorate must do the same: the
//! same steps wait, go on after the same steps, and give the same rows, counts and SQLSTATEs with
//! the same messages; the same interleavings end in a deadlock; and the final query shows the same.
//!
//! # SERIALIZABLE
//! There Quorate may fail fewer transactions than PostgreSQL, but not more; and in each course,
//! whatever PostgreSQL does, the transactions that committed must have seen what they would have
//! seen one after the other in some order, and left what they would have left ([`serial`]).
//!
//! `QUORATE_ISOLATION=name` tries only the specifications whose names contain that.

mod run;
mod serial;
mod spec;

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

use crate::source;
use crate::stage::Stage;
use run::{shown, Course, Ended, Event, Theatre};
use serial::Serial;
use spec::Spec;

/// So many files are tried at a time.
const AT_A_TIME: usize = 4;

/// There are at least so many possible interleavings, on both servers together.
const INTERLEAVINGS_MIN: usize = 10_000;

/// Differences that a failure shows, at most.
const SHOWN_MAX: usize = 5;

/// An interleaving and what became of it.
type Played = (Vec<usize>, Course);

/// The specifications, file by file.
fn specs() -> Vec<Vec<Spec>> {
    let wanted = std::env::var("QUORATE_ISOLATION").unwrap_or_default();
    let files = source::files("tests/isolation", ".spec");
    let mut all = Vec::new();
    for path in &files {
        let name = Path::new(path).file_stem().expect("a name");
        let mut specs = spec::parse(&name.to_string_lossy(), &source::text(path));
        specs.retain(|spec| spec.name.contains(&wanted));
        all.push(specs);
    }
    all.retain(|specs| !specs.is_empty());
    assert!(!all.is_empty(), "no specification is called {wanted}");
    all
}

/// What PostgreSQL makes of every interleaving that is possible there.
fn oracle(spec: &Spec) -> Vec<Played> {
    let theatre = Theatre::open(spec, &Stage::postgresql());
    let mut played: Vec<Played> = Vec::new();
    let mut impossible: Vec<Vec<usize>> = Vec::new();
    for order in &spec.interleavings {
        if impossible.iter().any(|prefix| order.starts_with(prefix)) {
            continue;
        }
        match theatre.run(order) {
            Err(Ended { steps }) => impossible.push(order[..=steps].to_vec()),
            Ok(course) => {
                if let Some(steps) = steps_to_deadlock(&course) {
                    impossible.push(order[..steps.min(order.len())].to_vec());
                }
                played.push((order.clone(), course));
            }
        }
    }
    assert!(!played.is_empty(), "{}: nothing is possible", spec.name);
    played
}

/// How many steps were sent until a deadlock ended the course.
fn steps_to_deadlock(course: &Course) -> Option<usize> {
    if course.events.last() != Some(&Event::Deadlock) {
        return None;
    }
    let mut steps = std::collections::BTreeSet::new();
    for event in &course.events {
        match event {
            Event::Answer(actor, step, _) | Event::Waits(actor, step) => {
                steps.insert((*actor, *step));
            }
            Event::Deadlock => {}
        }
    }
    // The step that closed the circle is not among them.
    Some(steps.len() + 1)
}

/// How many transactions failed to be serialized.
fn failures(course: &Course) -> usize {
    let failed = |event: &&Event| matches!(event, Event::Answer(_, _, Err(refusal)) if refusal.state == "40001");
    course.events.iter().filter(failed).count()
}

/// What was counted.
#[derive(Debug, Default)]
struct Tally {
    interleavings: AtomicUsize,
    steps: AtomicUsize,
    waits: AtomicUsize,
    deadlocks: AtomicUsize,
    failures: AtomicUsize,
    fewer: AtomicUsize,
}

impl Tally {
    fn count(&self, expected: &Course, found: &Course) {
        let add = |counter: &AtomicUsize, count: usize| counter.fetch_add(count, Ordering::Relaxed);
        add(&self.interleavings, 1);
        for event in &found.events {
            match event {
                Event::Answer(..) => add(&self.steps, 1),
                Event::Waits(..) => add(&self.waits, 1),
                Event::Deadlock => add(&self.deadlocks, 1),
            };
        }
        add(&self.failures, failures(found));
        add(
            &self.fewer,
            failures(expected).saturating_sub(failures(found)),
        );
    }
}

/// What is wrong on this server, one text for each interleaving.
fn differences(spec: &Spec, stage: &Stage, expected: &[Played], tally: &Tally) -> Vec<String> {
    let theatre = Theatre::open(spec, stage);
    let mut serial = Serial::new(spec, &theatre);
    let mut wrong = Vec::new();
    for (order, expected) in expected {
        let found = match theatre.run(order) {
            Ok(found) => found,
            Err(Ended { steps }) => {
                wrong.push(format!(
                    "after {steps} of the steps {order:?}, the next is of one who waits; PostgreSQL:\n{}",
                    shown(spec, expected)
                ));
                continue;
            }
        };
        tally.count(expected, &found);
        let mut complaint = None;
        if found != *expected {
            let may_differ = spec.is_serializable
                && failures(expected) > 0
                && failures(&found) <= failures(expected);
            if !may_differ {
                complaint = Some("it differs".to_owned());
            }
        }
        if spec.is_serializable && found.end.is_some() {
            if let Err(why) = serial.check(&found) {
                complaint = Some(why);
            }
        }
        if let Some(complaint) = complaint {
            wrong.push(format!(
                "{complaint}; PostgreSQL:\n{}Quorate:\n{}",
                shown(spec, expected),
                shown(spec, &found)
            ));
        }
    }
    wrong
}

#[test]
fn every_interleaving_ends_as_on_postgresql() {
    let specs = specs();
    let next = AtomicUsize::new(0);
    let tally = Tally::default();
    let wrong = Mutex::new(Vec::new());
    let (one_node, three_nodes) = (Stage::one_node(), Stage::quorate());
    let stages = [("one node", &one_node), ("three nodes", &three_nodes)];
    let try_one = |spec: &Spec| {
        let expected = oracle(spec);
        for (server, stage) in stages {
            let found = differences(spec, &stage.another(), &expected, &tally);
            if !found.is_empty() {
                let shown = found[..found.len().min(SHOWN_MAX)].join("\n");
                let text = format!(
                    "== {} on {server}: {} of {} interleavings\n{shown}",
                    spec.name,
                    found.len(),
                    expected.len()
                );
                wrong.lock().expect("no panic").push(text);
            }
        }
    };
    // What one specification runs into must not hide what others show.
    let try_one = |spec: &Spec| {
        let tried = catch_unwind(AssertUnwindSafe(|| try_one(spec)));
        if tried.is_err() {
            let text = format!("== {}: it panicked", spec.name);
            wrong.lock().expect("no panic").push(text);
        }
    };
    let (alone, together): (Vec<_>, Vec<_>) = specs.iter().partition(|specs| specs[0].alone);
    let work = || {
        while let Some(specs) = together.get(next.fetch_add(1, Ordering::Relaxed)) {
            specs.iter().for_each(try_one);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(work);
        }
    });
    alone.into_iter().flatten().for_each(try_one);
    let count = specs.iter().flatten().count();
    println!("{count} specifications: {tally:?}");
    let tried = tally.interleavings.load(Ordering::Relaxed);
    let is_all = std::env::var_os("QUORATE_ISOLATION").is_none();
    assert!(
        !is_all || tried >= INTERLEAVINGS_MIN,
        "{tried} interleavings"
    );
    let wrong = wrong.into_inner().expect("no panic");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_two_specifications_share_a_table() {
    let mut seen = std::collections::BTreeMap::new();
    for path in source::files("tests/isolation", ".spec") {
        let text = source::text(&path);
        for name in run::tables(&text) {
            if let Some(other) = seen.insert(name.to_owned(), path.clone()) {
                assert_eq!(other, path, "both make {name}");
            }
        }
    }
}
