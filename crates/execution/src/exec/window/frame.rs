//! Which rows count for the row at work.

use base::{Error, Result, SqlState};

use super::partition::Partition;
use crate::exec::program::Evaluate;
use crate::exec::Exec;
use functions::in_range::{in_range, Reach};
use planner::plan::Program;
use planner::plan::{Bound, Exclusion, Frame, FrameMode, WindowPlan};
use types::{Datum, TypeId};

/// Rows from a position to before another; none when that is not behind the first.
pub type Stretch = (usize, usize);

/// A frame without what EXCLUDE leaves out is made of at most so many stretches.
const STRETCHES_MAX: usize = 3;

/// The frame of the row at work.
pub struct FrameAt<'p> {
    plan: &'p Frame<Program>,
    /// Of RANGE with offsets: the column, its type, descending, NULLs first.
    column: Option<(usize, TypeId, bool, bool)>,
    /// The offsets of both ends, once they are known.
    offsets: Option<(Datum, Datum)>,
    /// Where it begins, and where it ends.
    pub whole: Stretch,
    stretches: [Stretch; STRETCHES_MAX],
}

impl<'p> FrameAt<'p> {
    /// The frame before there is a row.
    pub fn new(plan: &'p WindowPlan) -> FrameAt<'p> {
        FrameAt {
            plan: &plan.frame,
            column: plan.order.first().copied(),
            offsets: None,
            whole: (0, 0),
            stretches: [(0, 0); STRETCHES_MAX],
        }
    }

    /// A partition begins.
    pub fn begin(&mut self, cx: &mut Exec<'_>) -> Result<()> {
        self.whole = (0, 0);
        if self.offsets.is_none() {
            let start = self.offset(&self.plan.start, "starting", cx)?;
            let end = self.offset(&self.plan.end, "ending", cx)?;
            self.offsets = Some((start, end));
        }
        Ok(())
    }

    fn offset(&self, bound: &Bound<Program>, which: &str, cx: &mut Exec<'_>) -> Result<Datum> {
        let Some(program) = bound.offset() else {
            return Ok(Datum::Null);
        };
        let offset = program.eval(cx, &[])?;
        if offset.is_null() {
            let message = format!("frame {which} offset must not be null");
            return Err(Error::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
        }
        let counted = self.plan.mode != FrameMode::Range;
        if counted && offset.as_i64().is_some_and(|count| count < 0) {
            return Err(Error::new(
                SqlState::INVALID_PRECEDING_OR_FOLLOWING_SIZE,
                format!("frame {which} offset must not be negative"),
            ));
        }
        Ok(offset)
    }

    /// The parts of the frame that count, in order.
    pub fn stretches(&self) -> impl Iterator<Item = Stretch> + '_ {
        let parts = self.stretches.iter().copied();
        parts.filter(|(start, end)| start < end)
    }

    /// Whether the whole frame counts.
    pub fn is_whole(&self) -> bool {
        self.plan.exclude == Exclusion::None
    }

    /// Whether every frame begins with the partition.
    pub fn begins_with_partition(&self) -> bool {
        matches!(self.plan.start, Bound::UnboundedPreceding)
    }

    /// Finds the frame of the row at work.
    pub fn find(&mut self, rows: &mut Partition<'_>, cx: &mut Exec<'_>) -> Result<()> {
        let offsets = self.offsets.take().unwrap_or((Datum::Null, Datum::Null));
        let found = self.ends(&offsets, rows, cx);
        self.offsets = Some(offsets);
        let (start, end) = found?;
        let end = end.max(start);
        self.whole = (start, end);
        let none = (0, 0);
        let at = rows.at();
        self.stretches = match self.plan.exclude {
            Exclusion::None => [(start, end), none, none],
            Exclusion::CurrentRow => [(start, end.min(at)), (start.max(at + 1), end), none],
            Exclusion::Group | Exclusion::Ties => {
                let (from, to) = (rows.peers_from(), rows.peers_to(cx)?);
                let own = self.plan.exclude == Exclusion::Ties && (start..end).contains(&at);
                let own = if own { (at, at + 1) } else { none };
                [(start, end.min(from)), own, (start.max(to), end)]
            }
        };
        Ok(())
    }

    fn ends(
        &self,
        offsets: &(Datum, Datum),
        rows: &mut Partition<'_>,
        cx: &mut Exec<'_>,
    ) -> Result<Stretch> {
        let start = match &self.plan.start {
            Bound::UnboundedPreceding => 0,
            Bound::CurrentRow if self.plan.mode == FrameMode::Rows => rows.at(),
            Bound::CurrentRow => rows.peers_from(),
            bound => {
                let before = matches!(bound, Bound::Preceding(_));
                self.reach(&offsets.0, before, true, rows, cx)?
            }
        };
        let end = match &self.plan.end {
            Bound::UnboundedFollowing => rows.count(cx)?,
            Bound::CurrentRow if self.plan.mode == FrameMode::Rows => rows.at() + 1,
            Bound::CurrentRow => rows.peers_to(cx)?,
            bound => {
                let before = matches!(bound, Bound::Preceding(_));
                self.reach(&offsets.1, before, false, rows, cx)?
            }
        };
        Ok((start, end))
    }

    /// Where an offset leads: to the first row of the frame, or behind the last one.
    fn reach(
        &self,
        offset: &Datum,
        before: bool,
        is_start: bool,
        rows: &mut Partition<'_>,
        cx: &mut Exec<'_>,
    ) -> Result<usize> {
        let mut position = if is_start { self.whole.0 } else { self.whole.1 };
        let count = usize::try_from(offset.as_i64().unwrap_or(0)).unwrap_or(usize::MAX);
        let from = |own: usize| match before {
            true => own.checked_sub(count),
            false => Some(own.saturating_add(count)),
        };
        match self.plan.mode {
            FrameMode::Rows => {
                let behind = usize::from(!is_start);
                let wanted = from(rows.at() + behind).unwrap_or(0);
                Ok(match wanted > rows.at() && !rows.has(wanted - 1, cx)? {
                    true => rows.count(cx)?,
                    false => wanted,
                })
            }
            FrameMode::Groups => {
                let Some(wanted) = from(rows.group(rows.at())?) else {
                    return Ok(0);
                };
                let passed = |group: usize| match is_start {
                    true => group >= wanted,
                    false => group > wanted,
                };
                while rows.has(position, cx)? && !passed(rows.group(position)?) {
                    position += 1;
                }
                Ok(position)
            }
            FrameMode::Range => {
                while rows.has(position, cx)?
                    && !self.is_reached(offset, before, is_start, position, rows, cx)?
                {
                    cx.tick()?;
                    position += 1;
                }
                Ok(position)
            }
        }
    }

    /// Whether a row is the first of the frame (or the first behind it), as RANGE sees it.
    fn is_reached(
        &self,
        offset: &Datum,
        before: bool,
        is_start: bool,
        position: usize,
        rows: &mut Partition<'_>,
        cx: &Exec<'_>,
    ) -> Result<bool> {
        let (place, ty, descending, nulls_first) = self
            .column
            .ok_or_else(|| Error::internal("RANGE with an offset and no order"))?;
        let base = rows.row(rows.at())?[place].clone();
        let value = &rows.row(position)?[place];
        // NULLs are peers of one another, and out of the reach of everything else.
        match (value.is_null(), base.is_null()) {
            (false, false) => {}
            (true, true) => return Ok(is_start),
            (value_is_null, _) => return Ok(value_is_null != nulls_first),
        }
        let reach = Reach {
            base: &base,
            offset,
            subtract: before != descending,
            less: is_start == descending,
        };
        let within = in_range(cx.context, ty, value, &reach)?;
        Ok(within == is_start)
    }
}
