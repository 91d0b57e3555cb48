//! LATERAL items apart from what they do not look at.
//!
//! ```text
//! from a, b join lateral (select … where a.x … limit 1) l on b.k = l.y
//!
//! as it is written             apart
//! Join lateral on b.k = l.y    Join on b.k = l.y
//! ├─ Join                      ├─ Join lateral
//! │  ├─ Scan a                 │  ├─ Scan a
//! │  └─ Scan b                 │  └─ l
//! └─ l                         └─ Scan b
//! ```
//! What stands beside a LATERAL item when it is written is joined before it ([`crate::logical::joined`]).
//! Those of an inner join that it does not look at can be joined afterwards as well, in whatever order is
//! good: so the item, with those that it looks at, becomes one of a join list.
//!
//! # Invariants
//! - What it looks at stays together in its places, as it finds columns by them.
//!
//! # What it leaves out
//! Sides of outer joins stay as they are written.

use std::ops::Range;

use crate::logical::{Source, SourceKind};
use crate::plan::{Expr, JoinKind};

/// Whether an inner join with a LATERAL item on its right has items on its left which that does not look
/// at.
pub(super) fn stands_apart(left: &Source, right: &Source) -> bool {
    needed(left, right).is_some()
}

/// The LATERAL item joined to those that it looks at, and the others; the conditions of joins that are
/// taken apart go to those of all of them.
pub(super) fn apart(
    left: Source,
    right: Source,
    conditions: &mut Vec<Expr>,
) -> (Source, Vec<Source>) {
    let needed = needed(&left, &right).unwrap_or(left.start..left.end());
    let mut items = Vec::new();
    take_inner(left, &mut items, conditions);
    let (beside, others): (Vec<_>, Vec<_>) =
        (items.into_iter()).partition(|item| item.width > 0 && needed.contains(&item.start));
    let pair = |left: Source, right: Source| join(left, right, false);
    let beside = beside.into_iter().reduce(pair);
    let beside = beside.unwrap_or_else(|| Source::one_row(needed.start));
    (join(beside, right, true), others)
}

fn join(left: Source, right: Source, lateral: bool) -> Source {
    Source {
        start: left.start,
        width: left.width + right.width,
        kind: SourceKind::Join {
            kind: JoinKind::Inner,
            left: Box::new(left),
            right: Box::new(right),
            on: Vec::new(),
            lateral,
        },
    }
}

/// The places of those items on the left that the right one needs; none where it needs all of them, or
/// they do not stand side by side.
fn needed(left: &Source, right: &Source) -> Option<Range<usize>> {
    let mut items = Vec::new();
    inner_ranges(left, &mut items);
    let mut needed = right.looked_at()?;
    let is_touched = |ranges: &[Range<usize>], needed: &Range<usize>| {
        let overlaps = |one: &Range<usize>| one.start < needed.end && needed.start < one.end;
        ranges
            .iter()
            .any(|range| !range.is_empty() && overlaps(range))
    };
    loop {
        let touched = items.iter().filter(|ranges| is_touched(ranges, &needed));
        let all = touched.flatten().fold(needed.clone(), |all, range| {
            all.start.min(range.start)..all.end.max(range.end)
        });
        if all == needed {
            break;
        }
        needed = all;
    }
    let (with, without): (Vec<_>, Vec<_>) = (items.iter())
        .filter(|ranges| ranges.iter().any(|range| !range.is_empty()))
        .partition(|ranges| is_touched(ranges, &needed));
    let width: usize = with.into_iter().flatten().map(Range::len).sum();
    (!without.is_empty() && width == needed.len()).then_some(needed)
}

/// The places of the items of inner joins.
fn inner_ranges(source: &Source, items: &mut Vec<Vec<Range<usize>>>) {
    match &source.kind {
        SourceKind::Join {
            kind: JoinKind::Inner,
            left,
            right,
            lateral: false,
            ..
        } => {
            inner_ranges(left, items);
            inner_ranges(right, items);
        }
        _ => items.push(source.ranges()),
    }
}

/// The items of inner joins, and their conditions.
fn take_inner(source: Source, items: &mut Vec<Source>, conditions: &mut Vec<Expr>) {
    let Source { kind, start, width } = source;
    match kind {
        SourceKind::Join {
            kind: JoinKind::Inner,
            left,
            right,
            on,
            lateral: false,
        } => {
            take_inner(*left, items, conditions);
            take_inner(*right, items, conditions);
            conditions.extend(on);
        }
        kind => items.push(Source { kind, start, width }),
    }
}
