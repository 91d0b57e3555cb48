//! Whether what transactions saw and left is what they would have seen and left in some order, one
//! after the other.
//!
//! Each session is one transaction. Those that failed, or rolled back, left nothing and may have
//! seen anything. Every order of the others is run on the same server, once.

use std::collections::BTreeMap;

use super::run::{Course, Event, Theatre};
use super::spec::Spec;
use crate::stage::Outcome;

/// The answers of one session's steps.
type Answers = Vec<Outcome>;

/// The orders that were run already, with their courses.
pub struct Serial<'s> {
    spec: &'s Spec,
    theatre: &'s Theatre<'s>,
    run: BTreeMap<Vec<usize>, Course>,
}

impl<'s> Serial<'s> {
    pub fn new(spec: &'s Spec, theatre: &'s Theatre<'s>) -> Serial<'s> {
        Serial {
            spec,
            theatre,
            run: BTreeMap::new(),
        }
    }

    /// Finds an order of the committed transactions that explains the course.
    pub fn check(&mut self, course: &Course) -> Result<(), String> {
        let answers = self.answers(course);
        let committed: Vec<usize> = (0..answers.len())
            .filter(|actor| self.has_committed(*actor, &answers[*actor]))
            .collect();
        for order in orders(&committed) {
            let serial = self.serial(&order).clone();
            let alone = self.answers(&serial);
            let same = committed
                .iter()
                .all(|actor| alone[*actor] == answers[*actor]);
            if same && serial.end == course.end {
                return Ok(());
            }
        }
        Err(format!("no order of {committed:?} explains it"))
    }

    fn answers(&self, course: &Course) -> Vec<Answers> {
        let mut all = vec![Answers::new(); self.spec.actors.len()];
        for event in &course.events {
            if let Event::Answer(actor, _, outcome) = event {
                all[*actor].push(outcome.clone());
            }
        }
        all
    }

    fn has_committed(&self, actor: usize, answers: &Answers) -> bool {
        let steps = &self.spec.actors[actor].steps;
        let last = &steps.last().expect("a step").1;
        answers.len() == steps.len()
            && answers.iter().all(Result::is_ok)
            && last.ends_with("commit")
    }

    fn serial(&mut self, order: &[usize]) -> &Course {
        let (spec, theatre) = (self.spec, self.theatre);
        self.run.entry(order.to_vec()).or_insert_with(|| {
            let steps = |actor: &usize| vec![*actor; spec.actors[*actor].steps.len()];
            let order: Vec<usize> = order.iter().flat_map(steps).collect();
            theatre.run(&order).expect("nobody waits")
        })
    }
}

/// All orders of some sessions.
fn orders(of: &[usize]) -> Vec<Vec<usize>> {
    if of.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (place, first) in of.iter().enumerate() {
        let mut others = of.to_vec();
        others.remove(place);
        for mut rest in orders(&others) {
            rest.insert(0, *first);
            all.push(rest);
        }
    }
    all
}
