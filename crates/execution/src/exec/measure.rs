//! What each node of a plan has done, for EXPLAIN ANALYZE.
//!
//! A statement that is measured has [`Measures`], and [`super::cursor::open`] puts a
//! [`MeasuredCursor`] before the cursor of every node; all others have none, and pay nothing:
//!
//! ```text
//! Limit    Measured ─► LimitCursor ─► Measured ─► ScanCursor     rows 3, loops 1, 0.012 .. 0.040 ms
//!  └ Scan                                                        rows 3, loops 1, 0.008 .. 0.021 ms
//! ```
//! A node's figures hold what its inputs took. What a routine or a trigger runs is a statement of its
//! own, and is not measured.
//!
//! # Invariants
//! - Nodes are told apart by where they are in memory, so the plan must outlive its measures.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base::env::{Env, Instant};
use base::hash::HashMap;
use base::Result;

use super::join_filter::JoinFilter;
use super::{Cursor, Exec};
use planner::plan::{Plan, Row};

/// Whether a plan is measured, and where that is noted.
pub type Measuring<'m> = Option<&'m Rc<Measures>>;

/// What the nodes of a plan have done.
pub struct Measures {
    /// Tells the time, if that is asked for.
    clock: Option<Arc<dyn Env>>,
    nodes: RefCell<HashMap<usize, Rc<Cell<Figures>>>>,
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
}

impl std::fmt::Debug for Measures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Measures({:?})", self.nodes)
    }
}

impl Measures {
    /// Nothing was run yet. Without a clock, rows are counted and nothing is timed.
    pub fn new(clock: Option<Arc<dyn Env>>) -> Rc<Measures> {
        Rc::new(Measures {
            clock,
            nodes: RefCell::default(),
        })
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

/// Where a node is, for as long as its plan lives.
fn place(plan: &Plan) -> usize {
    std::ptr::from_ref(plan) as usize
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

    /// The time, when a row is asked for.
    pub(super) fn asked(&self) -> Option<Instant> {
        self.measures.now()
    }

    /// A row was asked for at that time, and given or not; so many were left out in this run.
    pub(super) fn note(&mut self, asked: Option<Instant>, given: bool, removed: Removed) {
        let took = self.measures.since(asked);
        let mut figures = self.figures.get();
        figures.loops += u64::from(!std::mem::replace(&mut self.has_begun, true));
        figures.rows += u64::from(given);
        let before = std::mem::replace(&mut self.removed, removed);
        figures.removed.by_condition += removed.by_condition - before.by_condition;
        figures.removed.by_join += removed.by_join - before.by_join;
        figures.all += took;
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
}
