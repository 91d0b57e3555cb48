//! Window functions: one pass over rows that come sorted by partition and order.
//!
//! A [`Partition`] holds the rows around the row at work and reads on when somebody asks for a row
//! further ahead; a [`FrameAt`] says which rows count for the row at work; a [`State`] computes one
//! function from both.
//!
//! ```text
//! sum(x) OVER (ORDER BY t ROWS 1 PRECEDING)
//!
//! rows      1  2  3  4        row at work: 3, frame: 2 to 3; 1 is forgotten, 4 not read yet
//! ```
//!
//! # Rules
//! - Rows are read no further than a function needs, and forgotten when none needs them any more:
//!   `row_number`, running sums and frames of so many rows take little memory whatever the size of
//!   the partition; `OVER ()` with an aggregate takes all of it. What is kept
//!   goes to scratch space beyond `work_mem`.
//! - Both ends of a frame only ever move forward, so that finding them is linear.
//! - An aggregate goes on from the row before while its frame begins where that one's did; where
//!   frames are equal it is not computed again. Counts and sums of integers also give back rows that
//!   have left the frame. Otherwise a frame is computed anew ([`aggregate`]).
//!
//! # What it leaves out
//! Moving frames of minima, floats and other aggregates cost their length at each row.

mod aggregate;
mod frame;
mod partition;
mod state;

use base::Result;

use super::cursor::Cursor;
use super::measure::Measuring;
use super::Exec;
use planner::plan::{Row, WindowPlan};

use frame::FrameAt;
use partition::Partition;
use state::State;

/// The rows of a [`WindowPlan`].
pub struct WindowCursor<'p> {
    plan: &'p WindowPlan,
    rows: Partition<'p>,
    frame: FrameAt<'p>,
    states: Vec<State<'p>>,
}

impl<'p> WindowCursor<'p> {
    /// A cursor over such a plan.
    pub fn new(plan: &'p WindowPlan, measures: Measuring<'_>) -> WindowCursor<'p> {
        WindowCursor {
            plan,
            rows: Partition::new(plan, measures),
            frame: FrameAt::new(plan),
            states: plan.functions.iter().map(State::new).collect(),
        }
    }

    /// Puts the next row to work; false when there is none.
    fn advance(&mut self, cx: &mut Exec<'_>) -> Result<bool> {
        if self.rows.advance(cx)? {
            return Ok(true);
        }
        self.frame.begin(cx)?;
        if !self.rows.begin(cx)? {
            return Ok(false);
        }
        self.states = self.plan.functions.iter().map(State::new).collect();
        Ok(true)
    }
}

impl Cursor for WindowCursor<'_> {
    fn next(&mut self, cx: &mut Exec<'_>) -> Result<Option<Row>> {
        if !self.advance(cx)? {
            return Ok(None);
        }
        if self.states.iter().any(State::looks_at_frame) {
            self.frame.find(&mut self.rows, cx)?;
        }
        let at = self.rows.at();
        let own = self.rows.row(at)?;
        let mut row = Row::with_capacity(own.len() + self.states.len());
        row.extend_from_slice(own);
        let mut needed = at;
        for state in &mut self.states {
            row.push(state.value(&mut self.rows, &self.frame, cx)?);
            needed = needed.min(state.needs_from(at, &self.frame));
        }
        self.rows.forget(needed);
        Ok(Some(row))
    }
}
