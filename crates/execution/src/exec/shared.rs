//! Rows that are computed once for a statement: those of the queries of WITH.
//!
//! A recursion is computed row by row, as its rows are asked for: an endless one under LIMIT ends,
//! even where a single step has no end because another recursion stands in it.

use std::cell::RefCell;
use std::rc::Rc;

use base::{coro, Error, Result};

use super::cursor::{open, Cursor, PlanCursor};
use super::group::Groups;
use super::measure::{Measuring, Removed, Run};
use super::{collect, Exec};
use crate::spool::{RowSpool, Spill, SpoolReader};
use planner::plan::{Plan, Recursive, Row, With};

/// What was computed.
#[derive(Clone)]
pub enum Stored {
    /// All rows.
    Rows(Rc<RowSpool>),
    /// The rows of a recursion until now; away while it goes on.
    Steps(Rc<RefCell<Option<Box<Steps>>>>),
}

/// The rows of a recursion until now.
pub struct Steps {
    rows: RowSpool,
    /// Those of the last step that came to its end.
    last: Rc<RowSpool>,
    /// The step at work, and its rows until now.
    open: Option<PlanCursor>,
    fresh: RowSpool,
    /// All of them, where equal ones count once.
    seen: Option<Groups>,
    begun: bool,
    done: bool,
    run: Option<Run>,
}

impl Steps {
    /// Nothing yet.
    fn new(spill: &Spill, run: Option<Run>) -> Steps {
        let rows = || RowSpool::new(spill.clone(), "A query of WITH");
        Steps {
            rows: rows(),
            last: Rc::new(rows()),
            open: None,
            fresh: rows(),
            seen: None,
            begun: false,
            done: false,
            run,
        }
    }

    /// Fetches another row, or ends the step at work.
    fn advance(&mut self, plan: &Recursive, cx: &mut Exec<'_>) -> Result<()> {
        let asked = self.run.as_ref().map(Run::asked);
        let before = self.rows.len();
        let outcome = self.fetch(plan, cx);
        if let Some((run, asked)) = self.run.as_mut().zip(asked) {
            run.note(asked, self.rows.len() > before, Removed::default());
        }
        outcome
    }

    fn fetch(&mut self, plan: &Recursive, cx: &mut Exec<'_>) -> Result<()> {
        coro::check_depth()?;
        let mut step = self
            .open
            .take()
            .unwrap_or_else(|| self.begin_step(plan, cx));
        // Another run of the same recursion may have been at work meanwhile.
        cx.working.insert(plan.number, self.last.clone());
        let Some(row) = step.next(cx)? else {
            self.done = self.fresh.is_empty();
            let fresh = RowSpool::new(cx.spill(), "A query of WITH");
            self.last = Rc::new(std::mem::replace(&mut self.fresh, fresh));
            return Ok(());
        };
        self.open = Some(step);
        let is_new = match &mut self.seen {
            None => true,
            Some(seen) => {
                let is_new = seen.find_or_add(row.clone())?.1;
                cx.check_held(seen.bytes())?;
                is_new
            }
        };
        if is_new {
            self.rows.push(row.clone())?;
            self.fresh.push(row)?;
        }
        Ok(())
    }

    fn begin_step(&mut self, plan: &Recursive, cx: &mut Exec<'_>) -> PlanCursor {
        if std::mem::replace(&mut self.begun, true) {
            cx.forget(&plan.inside);
            return PlanCursor::open(plan.step.clone(), cx.measures.as_ref());
        }
        if !plan.all {
            self.seen = Some(Groups::new(plan.types.clone()));
        }
        PlanCursor::open(plan.first.clone(), cx.measures.as_ref())
    }
}

/// The rows of a query of WITH.
pub struct SharedCursor<'p> {
    number: usize,
    plan: &'p Plan,
    at: usize,
    reader: Option<Box<SpoolReader>>,
}

impl<'p> SharedCursor<'p> {
    /// The rows of that plan, kept under a number.
    pub fn new(number: usize, plan: &'p Plan) -> SharedCursor<'p> {
        SharedCursor {
            number,
            plan,
            at: 0,
            reader: None,
        }
    }
}

/// The rows of a plan under a number, computed when they are first asked for.
fn stored(number: usize, plan: &Plan, cx: &mut Exec<'_>) -> Result<Stored> {
    if let Some(stored) = cx.shared.get(&number) {
        return Ok(stored.clone());
    }
    coro::check_depth()?;
    let above = cx.leave_inner(number);
    let stored = compute(plan, cx);
    cx.outer.extend(above);
    let stored = stored?;
    cx.shared.insert(number, stored.clone());
    Ok(stored)
}

fn compute(plan: &Plan, cx: &mut Exec<'_>) -> Result<Stored> {
    Ok(match plan {
        Plan::Recursive(_) => {
            let measures = cx.measures.as_ref();
            let run = measures.map(|measures| Run::of(plan, measures));
            let steps = Steps::new(&cx.spill(), run);
            Stored::Steps(Rc::new(RefCell::new(Some(Box::new(steps)))))
        }
        plan => {
            // What it writes is not what the statement around it writes.
            let written = cx.written;
            let rows = collect(plan, "A query of WITH", cx)?;
            cx.written_beside += cx.written - written;
            cx.written = written;
            Stored::Rows(Rc::new(rows))
        }
    })
}

impl Exec<'_> {
    /// Puts the rows of enclosing queries aside that are further in than where a query of WITH is
    /// defined.
    fn leave_inner(&mut self, number: usize) -> Vec<Row> {
        let defined = self.levels.iter().rfind(|level| level.0.contains(&number));
        let depth = defined.map_or(self.outer.len(), |level| level.1);
        self.outer.split_off(depth.min(self.outer.len()))
    }
}

/// The rows of a query whose WITH looks at rows of enclosing queries.
pub struct AnewCursor<'p> {
    inside: &'p std::ops::Range<usize>,
    input: Box<dyn Cursor + 'p>,
    begun: bool,
}

impl<'p> AnewCursor<'p> {
    /// A cursor over such a plan.
    pub fn new(
        inside: &'p std::ops::Range<usize>,
        input: &'p Plan,
        measures: Measuring<'_>,
    ) -> AnewCursor<'p> {
        AnewCursor {
            inside,
            input: open(input, measures),
            begun: false,
        }
    }
}

impl Cursor for AnewCursor<'_> {
    fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        if !self.begun {
            self.begun = true;
            cx.forget(self.inside);
            cx.levels.retain(|level| level.0 != *self.inside);
            cx.levels.push((self.inside.clone(), cx.outer.len()));
        }
        self.input.next(cx)
    }
}

impl Cursor for SharedCursor<'_> {
    fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        let at = self.at;
        self.at += 1;
        let steps = match stored(self.number, self.plan, cx)? {
            Stored::Rows(rows) => return rows.get(at, &mut self.reader),
            Stored::Steps(steps) => steps,
        };
        let Plan::Recursive(plan) = self.plan else {
            return Ok(None);
        };
        loop {
            // No borrow is held meanwhile, because a step, or who reads a row, may wait.
            let away = || Error::internal("a recursion that is asked for its rows by itself");
            let mut taken = steps.take().ok_or_else(away)?;
            if at < taken.rows.len() || taken.done {
                let row = taken.rows.get(at, &mut self.reader);
                steps.replace(Some(taken));
                return row;
            }
            let above = cx.leave_inner(self.number);
            let outcome = taken.advance(plan, cx);
            cx.outer.extend(above);
            steps.replace(Some(taken));
            outcome?;
        }
    }
}

/// The rows that the last step of a recursion gave.
pub struct WorkingCursor {
    number: usize,
    at: usize,
    reader: Option<Box<SpoolReader>>,
}

impl WorkingCursor {
    /// Of the recursion with that number.
    pub fn new(number: usize) -> WorkingCursor {
        WorkingCursor {
            number,
            at: 0,
            reader: None,
        }
    }
}

impl Cursor for WorkingCursor {
    fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        cx.tick()?;
        self.at += 1;
        match cx.working.get(&self.number) {
            Some(rows) => rows.get(self.at - 1, &mut self.reader),
            None => Ok(None),
        }
    }
}

/// The rows of a statement whose WITH writes.
pub struct WithCursor<'p> {
    with: &'p With,
    body: Box<dyn Cursor + 'p>,
}

impl<'p> WithCursor<'p> {
    /// A cursor over such a plan.
    pub fn new(with: &'p With, measures: Measuring<'_>) -> WithCursor<'p> {
        WithCursor {
            with,
            body: open(&with.body, measures),
        }
    }
}

impl Cursor for WithCursor<'_> {
    fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        if let Some(row) = self.body.next(cx)? {
            cx.written += u64::from(self.with.counted);
            return Ok(Some(row));
        }
        // Those whose rows nobody has asked for.
        for (number, plan) in &self.with.parts {
            stored(*number, plan, cx)?;
        }
        Ok(None)
    }
}
