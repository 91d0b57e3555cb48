//! Runs one interleaving on one server and keeps what happened.
//!
//! A step is sent and either answers or waits for another session; the server itself says which
//! (`pg_isolation_test_session_is_blocked`), so nothing depends on how long things take. After each
//! step, whoever it released answers before the next step is sent. Where sessions wait in a circle,
//! or one has been chosen as the victim of such a circle, the interleaving ends: servers may choose
//! differently.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::spec::Spec;
use crate::stage::{Outcome, Session, Stage};

/// A step that has not answered after this is asked about.
const PATIENCE: Duration = Duration::from_millis(4);

/// A step that neither answers nor waits for this long is lost.
const ANSWER_MAX: Duration = Duration::from_secs(30);

const DEADLOCK: &str = "40P01";

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A step (session and place) answered.
    Answer(usize, usize, Outcome),
    /// A step waits.
    Waits(usize, usize),
    /// A circle of waiting sessions.
    Deadlock,
}

/// What became of an interleaving.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Course {
    pub events: Vec<Event>,
    /// What the final query shows; nothing after a deadlock.
    pub end: Option<Outcome>,
}

/// Why an interleaving has no course: after so many steps, the next belongs to one who waits; or
/// after so many steps there was a deadlock.
#[derive(Debug)]
pub struct Ended {
    pub steps: usize,
}

/// A server with the specification's sessions on it.
pub struct Theatre<'s> {
    spec: &'s Spec,
    control: Session,
    sessions: Vec<Session>,
    pids: Vec<String>,
    uses_advisory: bool,
}

/// The sessions while an interleaving runs.
struct Play<'t> {
    theatre: &'t Theatre<'t>,
    /// How many steps of each session were sent.
    sent: Vec<usize>,
    waiting: BTreeSet<usize>,
    events: Vec<Event>,
}

impl<'s> Theatre<'s> {
    pub fn open(spec: &'s Spec, stage: &Stage) -> Theatre<'s> {
        let control = stage.session();
        // Another level may have left them. Later ones may refer to earlier ones.
        let made: Vec<_> = tables(&spec.once).collect();
        for table in made.into_iter().rev() {
            control.ok(&format!("drop table if exists {table}"));
        }
        if !spec.once.is_empty() {
            control.ok(&spec.once);
        }
        let sessions: Vec<_> = spec.actors.iter().map(|_| stage.session()).collect();
        let pids = sessions.iter().map(|s| s.ok("select pg_backend_pid()"));
        let mut steps = spec.actors.iter().flat_map(|actor| &actor.steps);
        Theatre {
            pids: pids.collect(),
            uses_advisory: steps.any(|(_, sql)| sql.contains("advisory")),
            spec,
            control,
            sessions,
        }
    }

    /// Runs the sessions' steps in this order. The course, and how many steps were sent when it
    /// ended early.
    pub fn run(&self, order: &[usize]) -> Result<Course, Ended> {
        if !self.spec.before.is_empty() {
            self.control.ok(&self.spec.before);
        }
        let mut play = Play {
            theatre: self,
            sent: vec![0; self.sessions.len()],
            waiting: BTreeSet::new(),
            events: Vec::new(),
        };
        let mut steps = 0;
        let mut is_possible = true;
        for actor in order {
            if play.waiting.contains(actor) {
                is_possible = false;
                break;
            }
            play.step(*actor);
            steps += 1;
            if play.events.last() == Some(&Event::Deadlock) {
                break;
            }
        }
        let events = play.events.clone();
        play.clear();
        if !is_possible {
            return Err(Ended { steps });
        }
        let is_whole = events.last() != Some(&Event::Deadlock);
        let end = is_whole.then(|| self.control.answer(&self.spec.last));
        Ok(Course { events, end })
    }

    fn is_blocked(&self, actor: usize) -> bool {
        let question = format!(
            "select pg_isolation_test_session_is_blocked({}, '{{{}}}')",
            self.pids[actor],
            self.pids.join(",")
        );
        self.control.ok(&question) == "t"
    }

    fn blockers(&self, actor: usize) -> Vec<usize> {
        let question = format!("select pg_blocking_pids({})", self.pids[actor]);
        let pids = self.control.ok(&question);
        let pids = pids.trim_matches(['{', '}']).split(',');
        pids.filter_map(|pid| self.pids.iter().position(|known| known == pid))
            .collect()
    }

    /// Whether one of those who wait waits for itself in the end.
    fn has_circle(&self, waiting: &BTreeSet<usize>) -> bool {
        let edges: Vec<Vec<usize>> = (0..self.sessions.len())
            .map(|actor| match waiting.contains(&actor) {
                true => self.blockers(actor),
                false => Vec::new(),
            })
            .collect();
        waiting.iter().any(|start| {
            let mut reached = BTreeSet::new();
            let mut next = edges[*start].clone();
            while let Some(actor) = next.pop() {
                if reached.insert(actor) {
                    next.extend(&edges[actor]);
                }
            }
            reached.contains(start)
        })
    }
}

impl Play<'_> {
    fn step(&mut self, actor: usize) {
        let place = self.sent[actor];
        self.sent[actor] += 1;
        let sql = &self.theatre.spec.actors[actor].steps[place].1;
        self.theatre.sessions[actor].start(sql);
        let before = self.events.len();
        match self.wait_for(actor) {
            Some(outcome) => self.answered(actor, outcome),
            None => {
                self.waiting.insert(actor);
                self.events.push(Event::Waits(actor, place));
                if self.theatre.has_circle(&self.waiting) {
                    // A circle ends with the wait that closed it, whoever fails.
                    self.events.pop();
                    self.await_victim();
                }
            }
        }
        self.settle();
        let ends = ["commit", "rollback"]
            .iter()
            .any(|end| sql.starts_with(end));
        if !ends && self.events.last() == Some(&Event::Deadlock) {
            // It closed the circle, and may have been answered before anybody saw that it waits.
            self.events.truncate(before);
            self.events.push(Event::Deadlock);
        }
    }

    /// The answer of a session, or none once it waits for another.
    fn wait_for(&self, actor: usize) -> Option<Outcome> {
        let start = Instant::now();
        let theatre = self.theatre;
        loop {
            if let Some(outcome) = theatre.sessions[actor].answered(PATIENCE) {
                return Some(outcome);
            }
            if theatre.is_blocked(actor) {
                return None;
            }
            let name = &theatre.spec.name;
            assert!(
                start.elapsed() < ANSWER_MAX,
                "{name}: step {} of session {actor} neither answers nor waits",
                self.sent[actor] - 1
            );
        }
    }

    fn answered(&mut self, actor: usize, outcome: Outcome) {
        let is_victim = matches!(&outcome, Err(refusal) if refusal.state == DEADLOCK);
        self.waiting.remove(&actor);
        self.events.push(match is_victim {
            true => Event::Deadlock,
            false => Event::Answer(actor, self.sent[actor] - 1, outcome),
        });
    }

    /// A circle was seen: somebody in it fails.
    fn await_victim(&mut self) {
        let start = Instant::now();
        while start.elapsed() < ANSWER_MAX {
            for actor in self.waiting.clone() {
                if let Some(outcome) = self.theatre.sessions[actor].answered(PATIENCE) {
                    let is_victim = matches!(&outcome, Err(r) if r.state == DEADLOCK);
                    self.waiting.remove(&actor);
                    if is_victim {
                        self.events.push(Event::Deadlock);
                        return;
                    }
                }
            }
        }
        panic!("{}: a deadlock is not resolved", self.theatre.spec.name);
    }

    /// Lets everyone answer who no longer waits; several at once are noted in the order of the
    /// sessions.
    fn settle(&mut self) {
        let mut answers = Vec::new();
        loop {
            let before = answers.len();
            for actor in self.waiting.clone() {
                if self.events.last() == Some(&Event::Deadlock) {
                    return;
                }
                if let Some(outcome) = self.wait_for(actor) {
                    self.waiting.remove(&actor);
                    answers.push((actor, outcome));
                }
            }
            if answers.len() == before {
                break;
            }
        }
        // A victim ends the course, so it comes last.
        let is_victim = |outcome: &Outcome| matches!(outcome, Err(r) if r.state == DEADLOCK);
        answers.sort_by_key(|(actor, outcome)| (is_victim(outcome), *actor));
        let resolved = answers.iter().any(|(_, outcome)| is_victim(outcome));
        if resolved && matches!(self.events.last(), Some(Event::Waits(..))) {
            // The circle was gone before it could be seen; it is noted as if it had been.
            self.events.pop();
            answers.retain(|(_, outcome)| is_victim(outcome));
        }
        for (actor, outcome) in answers {
            self.answered(actor, outcome);
        }
        let deadlock = self.events.iter().position(|e| *e == Event::Deadlock);
        if let Some(place) = deadlock {
            self.events.truncate(place + 1);
        } else if self.waiting.len() > 1 && self.theatre.has_circle(&self.waiting) {
            self.await_victim();
        }
    }

    /// Ends all transactions, those first that wait for nobody.
    fn clear(mut self) {
        let mut end = "rollback".to_owned();
        if self.theatre.uses_advisory {
            end += "; select pg_advisory_unlock_all()";
        }
        let mut left: BTreeSet<usize> = (0..self.sent.len()).collect();
        while !left.is_empty() {
            let free: Vec<_> = left.difference(&self.waiting).copied().collect();
            for actor in free {
                let _ = self.theatre.sessions[actor].answer(&end);
                left.remove(&actor);
            }
            for actor in self.waiting.clone() {
                if self.theatre.sessions[actor].answered(PATIENCE).is_some() {
                    self.waiting.remove(&actor);
                }
            }
        }
    }
}

/// The tables that a script makes.
pub fn tables(script: &str) -> impl Iterator<Item = &str> {
    let made = script.split("create table ").skip(1);
    made.map(|rest| rest.split([' ', '(']).next().expect("a name"))
}

/// A course, one event a line.
pub fn shown(spec: &Spec, course: &Course) -> String {
    let name = |actor: usize, step: usize| {
        let actor = &spec.actors[actor];
        format!("{}.{}", actor.name, actor.steps[step].0)
    };
    let outcome = |outcome: &Outcome| match outcome {
        Ok(rows) => rows.replace('\n', " / "),
        Err(refusal) => format!("{} {}", refusal.state, refusal.message),
    };
    let line = |event: &Event| match event {
        Event::Answer(actor, step, answer) => {
            format!("  {}: {}\n", name(*actor, *step), outcome(answer))
        }
        Event::Waits(actor, step) => format!("  {} waits\n", name(*actor, *step)),
        Event::Deadlock => "  deadlock\n".to_owned(),
    };
    let mut text: String = course.events.iter().map(line).collect();
    if let Some(end) = &course.end {
        text += &format!("  at the end: {}\n", outcome(end));
    }
    text
}
