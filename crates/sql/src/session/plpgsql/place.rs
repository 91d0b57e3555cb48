//! Where the routines are that are at work, as `GET DIAGNOSTICS … = PG_CONTEXT` tells.
//!
//! ```text
//! PL/pgSQL function inner() line 4 at GET DIAGNOSTICS      the innermost first
//! SQL statement "SELECT inner()"                           what runs in the next one
//! PL/pgSQL function outer() line 6 at PERFORM
//! ```
//! Errors tell the same as they pass ([`super::run::at_line`]).
//!
//! Source: PostgreSQL 15 manual, section 43.6.9.

use std::rc::Rc;

use base::Result;

use super::super::Session;
use super::code::Step;
use super::run::name_of;

/// A routine that is at work.
#[derive(Debug)]
pub(in crate::session) struct Place {
    /// What it is called.
    name: Rc<str>,
    at: At,
    /// The statement of its that runs.
    running: Option<Rc<str>>,
}

/// How far it has come.
#[derive(Clone, Copy, Debug)]
pub(in crate::session) enum At {
    /// A block of PL/pgSQL, before its first statement.
    Start,
    /// A statement of a block: its line and its kind.
    Line(usize, &'static str),
    /// A statement of a function in SQL, from 1.
    Statement(usize),
}

impl Session {
    /// Does what a routine does, which is at work meanwhile.
    pub(in crate::session) fn placed<T>(
        &mut self,
        name: &Rc<str>,
        at: At,
        work: impl FnOnce(&mut Session) -> Result<T>,
    ) -> Result<T> {
        self.places.push(Place {
            name: name.clone(),
            at,
            running: None,
        });
        let depth = self.places.len();
        let outcome = work(self);
        self.places.truncate(depth - 1);
        outcome
    }

    /// The routine at work comes to a statement; where it was before.
    pub(super) fn come_to(&mut self, step: &Step) -> At {
        let now = At::Line(step.line, name_of(&step.kind));
        self.go_to(now)
    }

    /// The routine at work is there now; where it was before.
    pub(in crate::session) fn go_to(&mut self, at: At) -> At {
        match self.places.last_mut() {
            Some(place) => std::mem::replace(&mut place.at, at),
            None => at,
        }
    }

    /// Runs a statement of the routine at work.
    pub(super) fn running_text<T>(
        &mut self,
        text: &Rc<str>,
        work: impl FnOnce(&mut Session) -> Result<T>,
    ) -> Result<T> {
        let place = self.places.len().checked_sub(1);
        if let Some(place) = place {
            self.places[place].running = Some(text.clone());
        }
        let outcome = work(self);
        if let Some(place) = place.and_then(|place| self.places.get_mut(place)) {
            place.running = None;
        }
        outcome
    }

    /// Where the routines at work are, a line each, the innermost first.
    pub(super) fn context(&self) -> String {
        let mut lines = Vec::new();
        for place in self.places.iter().rev() {
            if let Some(running) = &place.running {
                lines.push(format!("SQL statement \"{running}\""));
            }
            let name = &place.name;
            lines.push(match place.at {
                At::Start => format!("PL/pgSQL function {name}"),
                At::Line(line, what) => format!("PL/pgSQL function {name} line {line} at {what}"),
                At::Statement(number) => format!("SQL function \"{name}\" statement {number}"),
            });
        }
        lines.join("\n")
    }
}
