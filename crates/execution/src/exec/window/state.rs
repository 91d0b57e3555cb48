//! What each window function computes.

use base::{Error, Result, SqlState};

use super::aggregate::Aggregated;
use super::frame::FrameAt;
use super::partition::Partition;
use crate::exec::program::Evaluate;
use crate::exec::Exec;
use functions::window::WindowKind;
use planner::plan::{WindowFunctionPlan, Windowed};
use types::Datum;

/// One function within one partition.
pub enum State<'p> {
    /// An aggregate.
    Aggregated(Aggregated<'p>),
    /// Tiles, once their number is known.
    Tiles(&'p WindowFunctionPlan, Option<Tiles>),
    /// Whatever needs no memory of the rows before.
    Plain(WindowKind, &'p WindowFunctionPlan),
}

/// Buckets of `ntile`: the first `larger` of them have one row more.
pub struct Tiles {
    size: usize,
    larger: usize,
    /// The row at which counting has begun; those before gave no number of tiles.
    from: usize,
}

impl<'p> State<'p> {
    /// The function before the first row of a partition.
    pub fn new(plan: &'p WindowFunctionPlan) -> State<'p> {
        match &plan.function {
            Windowed::Aggregate(aggregate) => State::Aggregated(Aggregated::new(plan, aggregate)),
            Windowed::Own(function) if function.kind == WindowKind::Ntile => {
                State::Tiles(plan, None)
            }
            Windowed::Own(function) => State::Plain(function.kind, plan),
        }
    }

    /// Whether it looks at frames, not at the whole partition.
    pub fn looks_at_frame(&self) -> bool {
        match self {
            State::Aggregated(_) => true,
            State::Tiles(..) => false,
            State::Plain(kind, _) => matches!(
                kind,
                WindowKind::FirstValue | WindowKind::LastValue | WindowKind::NthValue
            ),
        }
    }

    /// The first position that the next row may ask for.
    pub fn needs_from(&self, at: usize, frame: &FrameAt<'_>) -> usize {
        match self {
            State::Aggregated(state) => state.needs_from(frame),
            State::Tiles(..) => at,
            State::Plain(kind, plan) => match kind {
                WindowKind::FirstValue | WindowKind::LastValue | WindowKind::NthValue => {
                    frame.whole.0
                }
                WindowKind::Lag | WindowKind::Lead if plan.args.len() > 1 => 0,
                _ => at,
            },
        }
    }

    /// The value for the row at work.
    pub fn value(
        &mut self,
        rows: &mut Partition<'_>,
        frame: &FrameAt<'_>,
        cx: &mut Exec<'_>,
    ) -> Result<Datum> {
        match self {
            State::Aggregated(state) => state.value(rows, frame, cx),
            State::Tiles(plan, tiles) => tile(plan, tiles, rows, cx),
            State::Plain(kind, plan) => plain(*kind, plan, rows, frame, cx),
        }
    }
}

/// A position or a number of rows as a value.
fn number(value: usize) -> Result<Datum> {
    let value = i64::try_from(value);
    let value = value.map_err(|_| Error::internal("a partition of too many rows"))?;
    Ok(Datum::Int8(value))
}

fn plain(
    kind: WindowKind,
    plan: &WindowFunctionPlan,
    rows: &mut Partition<'_>,
    frame: &FrameAt<'_>,
    cx: &mut Exec<'_>,
) -> Result<Datum> {
    match kind {
        WindowKind::RowNumber => number(rows.at() + 1),
        WindowKind::Rank => number(rows.peers_from() + 1),
        WindowKind::DenseRank => number(rows.group(rows.at())? + 1),
        WindowKind::PercentRank => {
            let others = rows.count(cx)? - 1;
            Ok(Datum::Float8(match others {
                0 => 0.0,
                others => rows.peers_from() as f64 / others as f64,
            }))
        }
        WindowKind::CumeDist => {
            let count = rows.count(cx)?;
            Ok(Datum::Float8(rows.peers_to(cx)? as f64 / count as f64))
        }
        WindowKind::Lag => beside(plan, true, rows, cx),
        WindowKind::Lead => beside(plan, false, rows, cx),
        WindowKind::FirstValue => nth(plan, 0, rows, frame, cx),
        WindowKind::LastValue => match frame.stretches().last() {
            Some((_, end)) => plan.args[0].eval(cx, rows.row(end - 1)?),
            None => Ok(Datum::Null),
        },
        WindowKind::NthValue => {
            let which = plan.args[1].eval(cx, rows.row(rows.at())?)?;
            let Some(which) = which.as_i64() else {
                return Ok(Datum::Null);
            };
            match usize::try_from(which).ok().and_then(|n| n.checked_sub(1)) {
                Some(before) => nth(plan, before, rows, frame, cx),
                None => Err(Error::new(
                    SqlState::INVALID_ARGUMENT_FOR_NTH_VALUE,
                    "argument of nth_value must be greater than zero",
                )),
            }
        }
        WindowKind::Ntile => Err(Error::internal("ntile without its tiles")),
    }
}

/// The value at the frame's row behind so many others.
fn nth(
    plan: &WindowFunctionPlan,
    mut before: usize,
    rows: &mut Partition<'_>,
    frame: &FrameAt<'_>,
    cx: &mut Exec<'_>,
) -> Result<Datum> {
    for (start, end) in frame.stretches() {
        if before < end - start {
            return plan.args[0].eval(cx, rows.row(start + before)?);
        }
        before -= end - start;
    }
    Ok(Datum::Null)
}

/// The value so many rows before (or behind) the row at work.
fn beside(
    plan: &WindowFunctionPlan,
    is_before: bool,
    rows: &mut Partition<'_>,
    cx: &mut Exec<'_>,
) -> Result<Datum> {
    let at = rows.at();
    let offset = match plan.args.get(1) {
        None => 1,
        Some(offset) => match offset.eval(cx, rows.row(at)?)?.as_i64() {
            Some(offset) => offset,
            None => return Ok(Datum::Null),
        },
    };
    let offset = if is_before { -offset } else { offset };
    let position = i64::try_from(at).ok().and_then(|at| at.checked_add(offset));
    let position = position.and_then(|position| usize::try_from(position).ok());
    if let Some(position) = position {
        if rows.has(position, cx)? {
            return plan.args[0].eval(cx, rows.row(position)?);
        }
    }
    match plan.args.get(2) {
        Some(otherwise) => otherwise.eval(cx, rows.row(at)?),
        None => Ok(Datum::Null),
    }
}

/// The tile of the row at work.
fn tile(
    plan: &WindowFunctionPlan,
    tiles: &mut Option<Tiles>,
    rows: &mut Partition<'_>,
    cx: &mut Exec<'_>,
) -> Result<Datum> {
    let at = rows.at();
    let tiles = match tiles {
        Some(tiles) => tiles,
        None => {
            // The first row that gives a number decides for all that follow.
            let Some(wanted) = plan.args[0].eval(cx, rows.row(at)?)?.as_i64() else {
                return Ok(Datum::Null);
            };
            let wanted = usize::try_from(wanted).unwrap_or(0);
            if wanted == 0 {
                return Err(Error::new(
                    SqlState::INVALID_ARGUMENT_FOR_NTILE,
                    "argument of ntile must be greater than zero",
                ));
            }
            let count = rows.count(cx)?;
            tiles.insert(Tiles {
                size: count / wanted,
                larger: count % wanted,
                from: at,
            })
        }
    };
    let place = at - tiles.from;
    let rows_in_larger = tiles.larger * (tiles.size + 1);
    let tile = match place < rows_in_larger {
        true => place / (tiles.size + 1),
        // Without any larger one, tiles of no row would be counted.
        false => tiles.larger + (place - rows_in_larger) / tiles.size.max(1),
    };
    let tile = i32::try_from(tile + 1).map_err(|_| Error::internal("too many tiles"))?;
    Ok(Datum::Int4(tile))
}
