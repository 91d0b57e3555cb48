//! What each node of a plan has done, for EXPLAIN ANALYZE.
//!
//! A statement that is measured has [`Measures`], and [`super::cursor::open`] puts a
//! [`MeasuredCursor`] before the cursor of every node; all others have none, and pay nothing:
//!
//! ```text
//! Limit    Measured ─► LimitCursor ─► Measured ─► ScanCursor     rows 3, loops 1, 0.012 .. 0.040 ms
//!  └ Scan                                                        rows 3, loops 1, 0.008 .. 0.021 ms
//! ```
//! A node's figures hold what its inputs took and used. What a routine or a trigger runs is a statement of
//! its own, whose nodes are not measured; what it used was used by the node that called it, and how often
//! and how long each trigger was at work is noted beside the nodes ([`Measures::triggers`]).
//!
//! # Invariants
//! - Nodes are told apart by where they are in memory, so the plan must outlive its measures.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base::env::{Env, Instant};
use base::hash::HashMap;
use base::usage::{Counting, Used};
use base::Result;

use super::join_filter::JoinFilter;
use super::{Cursor, Exec};
use crate::spool::TempFiles;
use planner::plan::{Insert, Plan, Row};

/// Whether a plan is measured, and where that is noted.
pub type Measuring<'m> = Option<&'m Rc<Measures>>;

/// What the nodes of a plan have done.
pub struct Measures {
    /// Tells the time, if that is asked for.
    clock: Option<Arc<dyn Env>>,
    /// Tells what is used, if that is asked for.
    meter: Option<Meter>,
    nodes: RefCell<HashMap<usize, Rc<Cell<Figures>>>>,
    triggers: RefCell<Vec<Calls>>,
    conflicts: RefCell<HashMap<usize, Conflicts>>,
}

/// What ON CONFLICT was about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conflicts {
    /// The rows whose keys were there.
    pub rows: u64,
    /// Of these, those for which nothing was changed as they did not meet its WHERE.
    pub removed: u64,
}

/// Tells what the session at work has used.
#[derive(Debug)]
pub struct Meter {
    counting: Counting,
    temp: Option<Rc<TempFiles>>,
}

impl Meter {
    /// Begins to count; what is in scratch space is known to who has it.
    pub fn begin(temp: Option<Rc<TempFiles>>) -> Meter {
        Meter {
            counting: Counting::begin(),
            temp,
        }
    }

    /// What was used until now.
    pub fn usage(&self) -> Usage {
        let temp = self.temp.as_deref();
        Usage {
            used: self.counting.used(),
            temp_read: temp.map_or(0, TempFiles::bytes_read),
            temp_written: temp.map_or(0, |temp| temp.written().1),
        }
    }
}

/// What was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Of pages, and of the log.
    pub used: Used,
    /// Bytes read from scratch space.
    pub temp_read: u64,
    /// Bytes written there.
    pub temp_written: u64,
}

impl Usage {
    /// What was used since.
    pub fn since(self, before: Usage) -> Usage {
        Usage {
            used: self.used.since(before.used),
            temp_read: self.temp_read.saturating_sub(before.temp_read),
            temp_written: self.temp_written.saturating_sub(before.temp_written),
        }
    }
}

/// The calls of a trigger, or of the checks of a foreign key.
#[derive(Clone, Debug)]
pub struct Calls {
    /// Whose.
    pub of: Called,
    /// The table, by its oid and by its name.
    pub table: (u32, String),
    /// How many.
    pub calls: u64,
    /// How long all of them took.
    pub time: Duration,
}

/// What is called for rows and statements.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Called {
    /// What a foreign key of this name asks for; the table is the one that was changed.
    ForeignKey(String),
    /// A trigger, and whether it is a constraint.
    Trigger(String, bool),
}

/// The memory that a node took for its rows, and what it put elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// How many times it was filled.
    pub batches: u64,
    /// Bytes at most in memory.
    pub memory: u64,
    /// Bytes in scratch space.
    pub disk: u64,
}

/// Rows that a node has left out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Removed {
    /// Because they met no condition of its own.
    pub by_condition: u64,
    /// Because a join above would find no pair for them.
    pub by_join: u64,
}

/// What a node has done, all of its runs together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// How often it was run.
    pub loops: u64,
    /// The rows that it gave.
    pub rows: u64,
    /// The rows that it left out.
    pub removed: Removed,
    /// Until the first row of a run.
    pub first: Duration,
    /// Until the last.
    pub all: Duration,
    /// What it used.
    pub usage: Usage,
    /// What it kept of rows, where it notes that.
    pub space: Space,
}

impl std::fmt::Debug for Measures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Measures({:?})", self.nodes)
    }
}

impl Measures {
    /// Nothing was run yet. Without a clock, rows are counted and nothing is timed; without a meter nobody
    /// knows what is used.
    pub fn new(clock: Option<Arc<dyn Env>>, meter: Option<Meter>) -> Rc<Measures> {
        Rc::new(Measures {
            clock,
            meter,
            nodes: RefCell::default(),
            triggers: RefCell::default(),
            conflicts: RefCell::default(),
        })
    }

    /// What was called of triggers and foreign keys, in the order of tables as they were first met, and of
    /// names.
    pub fn triggers(&self) -> Vec<Calls> {
        let mut calls = self.triggers.borrow().clone();
        let tables: Vec<u32> = calls.iter().map(|known| known.table.0).collect();
        let first = |oid: u32| tables.iter().position(|known| *known == oid);
        calls.sort_by(|a, b| {
            let table = |calls: &Calls| first(calls.table.0);
            table(a).cmp(&table(b)).then_with(|| a.of.cmp(&b.of))
        });
        calls
    }

    /// What ON CONFLICT of a statement was about.
    pub fn conflicts(&self, insert: &Insert) -> Conflicts {
        let conflicts = self.conflicts.borrow();
        let place = std::ptr::from_ref(insert) as usize;
        conflicts.get(&place).copied().unwrap_or_default()
    }

    /// Notes that something is called, and how long that takes.
    pub(super) fn calls<T>(
        &self,
        of: Called,
        (oid, table): (u32, &str),
        call: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let begun = self.now();
        let done = call();
        let took = self.since(begun);
        let mut all = self.triggers.borrow_mut();
        let known = all
            .iter_mut()
            .find(|known| known.table.0 == oid && known.of == of);
        match known {
            Some(known) => {
                known.calls += 1;
                known.time += took;
            }
            None => all.push(Calls {
                of,
                table: (oid, table.to_owned()),
                calls: 1,
                time: took,
            }),
        }
        done
    }

    /// Notes what a node keeps of rows: one batch more.
    pub(super) fn keeps(&self, plan: &Plan, memory: usize, disk: u64) {
        let node = self.node(plan);
        let mut figures = node.get();
        figures.space.batches += 1;
        figures.space.memory = figures.space.memory.max(memory as u64);
        figures.space.disk += disk;
        node.set(figures);
    }

    fn usage(&self) -> Option<Usage> {
        self.meter.as_ref().map(Meter::usage)
    }

    /// What a node has done; nothing if it was never run.
    pub fn of(&self, plan: &Plan) -> Figures {
        let nodes = self.nodes.borrow();
        let found = nodes.get(&place(plan));
        found.map(|figures| figures.get()).unwrap_or_default()
    }

    fn node(&self, plan: &Plan) -> Rc<Cell<Figures>> {
        let mut nodes = self.nodes.borrow_mut();
        nodes.entry(place(plan)).or_default().clone()
    }

    fn now(&self) -> Option<Instant> {
        self.clock.as_ref().map(|clock| clock.now())
    }

    fn since(&self, begun: Option<Instant>) -> Duration {
        let passed = self.now().zip(begun).map(|(now, then)| now.since(then));
        passed.unwrap_or_default()
    }
}

/// Notes, if the statement is measured, that a row met ON CONFLICT, or that it did not meet its WHERE.
pub(super) fn note_conflict(insert: &Insert, removed: bool, cx: &Exec<'_>) {
    let Some(measures) = &cx.measures else {
        return;
    };
    let mut conflicts = measures.conflicts.borrow_mut();
    let known = conflicts
        .entry(std::ptr::from_ref(insert) as usize)
        .or_default();
    match removed {
        true => known.removed += 1,
        false => known.rows += 1,
    }
}

/// Where a node is, for as long as its plan lives.
fn place(plan: &Plan) -> usize {
    std::ptr::from_ref(plan) as usize
}

/// How far things were when a row was asked for.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    at: Option<Instant>,
    usage: Option<Usage>,
}

/// One run of a node.
pub(super) struct Run {
    measures: Rc<Measures>,
    figures: Rc<Cell<Figures>>,
    has_begun: bool,
    has_given: bool,
    removed: Removed,
}

impl Run {
    /// A run that has not begun.
    pub(super) fn of(plan: &Plan, measures: &Rc<Measures>) -> Run {
        Run {
            measures: measures.clone(),
            figures: measures.node(plan),
            has_begun: false,
            has_given: false,
            removed: Removed::default(),
        }
    }

    /// How far things are when a row is asked for.
    pub(super) fn asked(&self) -> Asked {
        Asked {
            usage: self.measures.usage(),
            at: self.measures.now(),
        }
    }

    /// A row was asked for then, and given or not; so many were left out in this run.
    pub(super) fn note(&mut self, asked: Asked, given: bool, removed: Removed) {
        let took = self.measures.since(asked.at);
        let usage = self.measures.usage().zip(asked.usage);
        let usage = usage.map(|(now, then)| now.since(then));
        let mut figures = self.figures.get();
        figures.loops += u64::from(!std::mem::replace(&mut self.has_begun, true));
        figures.rows += u64::from(given);
        let before = std::mem::replace(&mut self.removed, removed);
        figures.removed.by_condition += removed.by_condition - before.by_condition;
        figures.removed.by_join += removed.by_join - before.by_join;
        figures.all += took;
        if let Some(usage) = usage {
            figures.usage.used += usage.used;
            figures.usage.temp_read += usage.temp_read;
            figures.usage.temp_written += usage.temp_written;
        }
        if !self.has_given {
            figures.first += took;
        }
        self.has_given |= given;
        self.figures.set(figures);
    }
}

/// The rows of a node, measured.
pub struct MeasuredCursor<'p> {
    input: Box<dyn Cursor + 'p>,
    run: Run,
}

impl<'p> MeasuredCursor<'p> {
    /// A run of that node, which gives these rows.
    pub fn new(
        plan: &Plan,
        measures: &Rc<Measures>,
        input: Box<dyn Cursor + 'p>,
    ) -> MeasuredCursor<'p> {
        MeasuredCursor {
            input,
            run: Run::of(plan, measures),
        }
    }
}

impl Cursor for MeasuredCursor<'_> {
    fn begin_ahead(&mut self, cx: &mut Exec<'_>) -> Result<()> {
        self.input.begin_ahead(cx)
    }

    fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        let asked = self.run.asked();
        let row = self.input.next(cx)?;
        self.run.note(asked, row.is_some(), self.input.removed());
        Ok(row)
    }

    fn next_into(&mut self, cx: &mut Exec<'_>, row: &mut Row) -> Result<bool> {
        let asked = self.run.asked();
        let given = self.input.next_into(cx, row)?;
        self.run.note(asked, given, self.input.removed());
        Ok(given)
    }

    fn rewind(&mut self) -> bool {
        let again = self.input.rewind();
        if again {
            (self.run.has_begun, self.run.has_given) = (false, false);
        }
        again
    }

    fn restrict(&mut self, filter: &JoinFilter) {
        self.input.restrict(filter);
    }

    fn at_most(&mut self, rows: u64) {
        self.input.at_most(rows);
    }
}
