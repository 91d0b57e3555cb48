//! Figures on the terminal as they come. Where standard error is no terminal, nothing is said.

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};

use crate::report::Figure;
use crate::results::show;

/// A table that is drawn over and over in the same place.
#[derive(Debug)]
pub struct Live {
    is_terminal: bool,
    /// Lines of the table that is shown.
    lines: Cell<usize>,
    rows: RefCell<Vec<(String, Figure)>>,
}

impl Default for Live {
    fn default() -> Live {
        Live {
            is_terminal: std::io::stderr().is_terminal(),
            lines: Cell::new(0),
            rows: RefCell::default(),
        }
    }
}

impl Live {
    /// A new experiment begins.
    pub fn title(&self, title: &str) {
        if self.is_terminal {
            eprintln!("\n{title}");
        }
    }

    /// A measurement of something, in its unit.
    pub fn figure(&self, what: &str, value: f64, unit: &str) {
        self.show(what, value, unit, false);
    }

    /// How far something is that is still measured: the newest value takes the place of the last.
    pub fn progress(&self, what: &str, value: f64, unit: &str) {
        self.show(what, value, unit, true);
    }

    fn show(&self, what: &str, value: f64, unit: &str, replaces: bool) {
        if !self.is_terminal {
            return;
        }
        let name = format!("{what}, {unit}");
        let mut rows = self.rows.borrow_mut();
        match rows.iter_mut().find(|(other, _)| *other == name) {
            Some((_, figure)) if replaces => figure.rounds = vec![value],
            Some((_, figure)) => figure.rounds.push(value),
            None => rows.push((
                name,
                Figure {
                    rounds: vec![value],
                },
            )),
        }
        let mut out = String::new();
        if self.lines.get() > 0 {
            // Up to the first line of the table, and clear from there.
            let _ = write!(out, "\x1b[{}A\x1b[J", self.lines.get());
        }
        // As much as fits a small terminal: the newest.
        let hidden = rows.len().saturating_sub(20);
        for (name, figure) in &rows[hidden..] {
            let _ = writeln!(out, "  {name:60} {}", show(figure));
        }
        self.lines.set(rows.len() - hidden);
        // A terminal that is gone is no reason to stop.
        let _ = std::io::stderr().write_all(out.as_bytes());
    }

    /// The experiment is over; its table stays.
    pub fn done(&self) {
        self.lines.set(0);
        self.rows.borrow_mut().clear();
    }
}
