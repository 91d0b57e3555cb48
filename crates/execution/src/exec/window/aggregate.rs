//! Aggregates over frames.
//!
//! | the frame, compared with that of the row before | what is done |
//! |---|---|
//! | the same | the result is given again |
//! | begins at the same row, ends later | the rows that are new are taken in |
//! | begins later, where rows can be given back | those that left are given back, the new ones taken in |
//! | anything else, or something is excluded | it is computed anew |

use base::Result;

use super::frame::{FrameAt, Stretch};
use super::partition::Partition;
use crate::exec::accumulate::Accumulating;
use crate::exec::program::Evaluate;
use crate::exec::Exec;
use planner::plan::{Agg, Program, WindowFunctionPlan};
use types::Datum;

/// An aggregate over the frames of a partition.
pub struct Aggregated<'p> {
    plan: &'p WindowFunctionPlan,
    aggregate: &'p Agg,
    accumulator: Accumulating,
    /// The rows that are taken in; none when that is not one stretch.
    taken: Option<Stretch>,
    result: Option<Datum>,
    /// Whether a row may be given back.
    returns: bool,
}

impl<'p> Aggregated<'p> {
    /// The aggregate before the first row of a partition.
    pub fn new(plan: &'p WindowFunctionPlan, aggregate: &'p Agg) -> Aggregated<'p> {
        let mut accumulator = Accumulating::start(aggregate, &plan.types);
        // What is given back must be what was taken in.
        let is_fixed = |arg: &Program| arg.as_column().is_some() || arg.is_given();
        let built_in = accumulator.built_in();
        let returns = built_in.is_some_and(|built_in| built_in.can_return())
            && plan.filter.is_none()
            && plan.args.iter().all(is_fixed);
        Aggregated {
            plan,
            aggregate,
            accumulator,
            taken: None,
            result: None,
            returns,
        }
    }

    /// Its value over a frame.
    pub fn value(
        &mut self,
        rows: &mut Partition<'_>,
        frame: &FrameAt<'_>,
        cx: &mut Exec<'_>,
    ) -> Result<Datum> {
        if !frame.is_whole() {
            self.begin();
            for stretch in frame.stretches() {
                self.take(stretch, rows, cx)?;
            }
            return self.accumulator.finish(cx);
        }
        let (start, end) = frame.whole;
        match self.taken {
            Some(taken) if taken == (start, end) => {
                if let Some(result) = &self.result {
                    return Ok(result.clone());
                }
            }
            Some((from, to)) if from == start && to <= end => self.take((to, end), rows, cx)?,
            Some((from, to)) if self.can_move((from, to), (start, end)) => {
                self.give_back((from, start), rows, cx)?;
                self.take((to, end), rows, cx)?;
            }
            _ => {
                self.begin();
                self.take((start, end), rows, cx)?;
            }
        }
        let result = self.accumulator.finish(cx)?;
        self.taken = Some((start, end));
        self.result = Some(result.clone());
        Ok(result)
    }

    /// Whether it is less work to give back rows than to begin anew.
    fn can_move(&self, (from, to): Stretch, (start, end): Stretch) -> bool {
        self.returns && from <= start && start < to && to <= end && start - from < end - start
    }

    fn begin(&mut self) {
        self.accumulator = Accumulating::start(self.aggregate, &self.plan.types);
        self.taken = None;
    }

    fn take(
        &mut self,
        stretch: Stretch,
        rows: &mut Partition<'_>,
        cx: &mut Exec<'_>,
    ) -> Result<()> {
        for position in stretch.0..stretch.1 {
            cx.tick()?;
            let row = rows.row(position)?;
            if let Some(filter) = &self.plan.filter {
                if !filter.test(cx, row)? {
                    continue;
                }
            }
            if let [arg] = self.plan.args.as_slice() {
                let value = arg.eval(cx, row)?;
                self.accumulator.step(cx, std::slice::from_ref(&value))?;
                continue;
            }
            let mut args = Vec::with_capacity(self.plan.args.len());
            for arg in &self.plan.args {
                args.push(arg.eval(cx, row)?);
            }
            self.accumulator.step(cx, &args)?;
        }
        Ok(())
    }

    fn give_back(
        &mut self,
        stretch: Stretch,
        rows: &mut Partition<'_>,
        cx: &mut Exec<'_>,
    ) -> Result<()> {
        for position in stretch.0..stretch.1 {
            let value = match self.plan.args.first() {
                Some(arg) => arg.eval(cx, rows.row(position)?)?,
                None => Datum::Null,
            };
            if let Some(built_in) = self.accumulator.built_in() {
                built_in.give_back(&value)?;
            }
        }
        Ok(())
    }

    /// The first position that the next row may ask for, the row at work and its frame being these.
    pub fn needs_from(&self, frame: &FrameAt<'_>) -> usize {
        let (start, end) = frame.whole;
        match frame.begins_with_partition() && frame.is_whole() {
            // It only goes on.
            true => end,
            false => start,
        }
    }
}
