//! Ranges and multiranges: what they are, and their arithmetic. Their order is in
//! [`super::compare`], their text forms are in [`super::array`].
//!
//! A range is what lies between two bounds; a multirange is a list of ranges that neither overlap nor
//! touch, in their order:
//!
//! ```
//! use types::{self, EvalContext, TypeId, NO_TYPMOD};
//! let context = EvalContext::for_tests();
//! let read = |kind, text| types::input(&context, kind, NO_TYPMOD, text).unwrap();
//! let shown = |kind, text| types::output(&context, kind, &read(kind, text)).unwrap();
//! assert_eq!(shown(TypeId::INT4RANGE, "(1,5]"), "[2,6)");
//! assert_eq!(shown(TypeId::NUMRANGE, "[2.5,2.5)"), "empty");
//! assert_eq!(shown(TypeId::INT4MULTIRANGE, "{[5,9), [1,3), [3,5)}"), "{[1,9)}");
//! ```
//!
//! # Invariants
//! - A range is made by [`Range::of`], or of bounds of others by [`Range::new`]: its lower bound is
//!   not above the upper one, one that holds nothing is [`Range::empty`], a bound that is missing is
//!   not inclusive, and the built-in ranges of integers and dates include their lower bound and
//!   exclude the upper one.
//! - A multirange is made by [`Multirange::new`] alone: sorted, without empty ranges, and of two
//!   neighbours neither begins where the other ends.
//!
//! So two of them hold the same values just if they are equal, and one list of ranges serves for
//! both: a range is a list of at most one.
//!
//! Source: PostgreSQL 15 manual, section 8.17.

use std::cmp::Ordering;
use std::sync::Arc;

use base::coro;
use base::error::{Error, Result, SqlState};

use super::compare::{self, compare_lower, compare_ranges, compare_upper};
use super::datetime::date;
use super::{growth, Datum, TypeId};

/// One end of a range.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// Where it lies; none: it does not end there.
    pub value: Option<Datum>,
    /// Whether the value itself belongs to the range.
    pub inclusive: bool,
}

/// What lies between two bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    element: TypeId,
    /// None: nothing is in it.
    bounds: Option<(Bound, Bound)>,
}

/// Ranges that neither overlap nor touch, in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct Multirange {
    element: TypeId,
    ranges: Vec<Range>,
}

/// What comparing two bounds counts for, in the units of [`coro::work`].
const BOUND_WORK: usize = 8;

/// 22000 for bounds in the wrong order.
fn disordered() -> Error {
    Error::new(
        SqlState::of("22000"),
        "range lower bound must be less than or equal to range upper bound",
    )
}

impl Bound {
    /// No end.
    pub const NONE: Bound = Bound {
        value: None,
        inclusive: false,
    };

    /// A bound there, or none.
    pub fn new(value: Option<Datum>, inclusive: bool) -> Bound {
        let inclusive = inclusive && value.is_some();
        Bound { value, inclusive }
    }

    /// The other side of the same place: where what lies beyond ends or begins.
    fn beyond(&self) -> Bound {
        Bound::new(self.value.clone(), !self.inclusive)
    }
}

/// Whether nothing belongs to both what ends and what begins there, and whether nothing lies between.
fn compare_ends(element: TypeId, upper: &Bound, lower: &Bound) -> (bool, bool) {
    let (Some(end), Some(start)) = (&upper.value, &lower.value) else {
        return (false, false);
    };
    match compare::compare(element, end, start) {
        Ordering::Less => (true, false),
        Ordering::Equal => (
            !(upper.inclusive && lower.inclusive),
            upper.inclusive != lower.inclusive,
        ),
        Ordering::Greater => (false, false),
    }
}

/// The next value of a type whose values can be counted; none for the infinities, which have none.
fn successor(value: &Datum) -> Result<Option<Datum>> {
    let out_of_range = |state, what| Error::new(state, format!("{what} out of range"));
    let number = |what| out_of_range(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, what);
    Ok(Some(match value {
        Datum::Int4(v) => Datum::Int4(v.checked_add(1).ok_or_else(|| number("integer"))?),
        Datum::Int8(v) => Datum::Int8(v.checked_add(1).ok_or_else(|| number("bigint"))?),
        Datum::Date(date::INFINITY | date::NEGATIVE_INFINITY) => return Ok(None),
        Datum::Date(v) => Datum::Date(
            date::checked(i64::from(*v) + 1)
                .map_err(|_| out_of_range(SqlState::of("22008"), "date"))?,
        ),
        _ => return Ok(None),
    }))
}

/// Whether ranges of that type have a canonical form, which none of one's own has.
fn is_discrete(kind: TypeId) -> bool {
    matches!(
        kind,
        TypeId::INT4RANGE | TypeId::INT8RANGE | TypeId::DATERANGE
    )
}

fn step(bound: Bound, inclusive: bool) -> Result<Bound> {
    if bound.inclusive == inclusive {
        return Ok(bound);
    }
    match bound.value.as_ref().map(successor).transpose()?.flatten() {
        Some(next) => Ok(Bound::new(Some(next), inclusive)),
        None => Ok(bound),
    }
}

impl Range {
    /// The range that holds nothing.
    pub fn empty(element: TypeId) -> Range {
        Range {
            element,
            bounds: None,
        }
    }

    /// What lies between two bounds, as a range of that type, in its canonical form.
    ///
    /// # Errors
    /// 22000 if the lower one is above the other; 22003 and 22008 where the canonical form has no
    /// bounds.
    pub fn of(kind: TypeId, lower: Bound, upper: Bound) -> Result<Range> {
        let element = kind.range_element().unwrap_or(TypeId::NONE);
        let range = Range::new(element, lower, upper)?;
        match range.bounds {
            Some((lower, upper)) if is_discrete(kind) => {
                let upper = step(upper, false);
                Range::new(element, step(lower, true)?, upper?)
            }
            bounds => Ok(Range { element, bounds }),
        }
    }

    /// What lies between two bounds that are in the canonical form already.
    ///
    /// # Errors
    /// 22000 if the lower one is above the other.
    pub fn new(element: TypeId, lower: Bound, upper: Bound) -> Result<Range> {
        let order = match (&lower.value, &upper.value) {
            (Some(low), Some(high)) => compare::compare(element, low, high),
            _ => Ordering::Less,
        };
        match order {
            Ordering::Greater => Err(disordered()),
            Ordering::Equal if !(lower.inclusive && upper.inclusive) => Ok(Range::empty(element)),
            _ => Ok(Range {
                element,
                bounds: Some((lower, upper)),
            }),
        }
    }

    /// The type of the values.
    pub fn element(&self) -> TypeId {
        self.element
    }

    /// Its bounds; none if it is empty.
    pub fn bounds(&self) -> Option<&(Bound, Bound)> {
        self.bounds.as_ref()
    }

    /// The memory of its bounds, in bytes.
    pub fn bytes(&self) -> usize {
        let of = |bound: &Bound| bound.value.as_ref().map_or(0, growth::bytes_of);
        let ends = self.bounds.as_ref();
        ends.map_or(0, |(lower, upper)| of(lower) + of(upper))
    }
}

impl Multirange {
    /// All that is in any of these ranges.
    ///
    /// # Errors
    /// 54000 for too many; the pending interrupt.
    pub fn new(element: TypeId, mut ranges: Vec<Range>) -> Result<Multirange> {
        coro::work(ranges.len() * BOUND_WORK)?;
        ranges.retain(|range| range.bounds.is_some());
        let is_sorted = |pair: &[Range]| compare_ranges(&pair[0], &pair[1]).is_le();
        if !ranges.windows(2).all(is_sorted) {
            let depth = usize::BITS - ranges.len().leading_zeros();
            coro::work(ranges.len() * depth as usize * BOUND_WORK)?;
            ranges.sort_by(compare_ranges);
        }
        let mut merged: Vec<Range> = Vec::with_capacity(ranges.len());
        for range in ranges {
            let (Some((_, last)), Some((lower, upper))) = (
                merged.last().and_then(|last| last.bounds.as_ref()),
                &range.bounds,
            ) else {
                merged.push(range);
                continue;
            };
            let (apart, touching) = compare_ends(element, last, lower);
            if apart && !touching {
                merged.push(range);
            } else if compare_upper(element, last, upper).is_lt() {
                let upper = upper.clone();
                if let Some((_, last)) = merged.last_mut().and_then(|last| last.bounds.as_mut()) {
                    *last = upper;
                }
            }
        }
        growth::check_elements(merged.len() * RANGE_PLACES)?;
        Ok(Multirange {
            element,
            ranges: merged,
        })
    }

    /// The type of the values.
    pub fn element(&self) -> TypeId {
        self.element
    }

    /// Its ranges.
    pub fn ranges(&self) -> &[Range] {
        &self.ranges
    }

    /// Its memory, in bytes.
    pub fn bytes(&self) -> usize {
        let ranges = self.ranges.iter();
        ranges.map(|range| size_of::<Range>() + range.bytes()).sum()
    }
}

/// How many elements of an array take the memory of a range.
pub(crate) const RANGE_PLACES: usize = size_of::<Range>().div_ceil(growth::ELEMENT_BYTES);

/// The ranges of a value: of a range itself, unless it is empty; of a multirange those in it.
pub fn ranges_of(value: &Datum) -> Option<(TypeId, &[Range])> {
    match value {
        Datum::Range(range) if range.bounds.is_none() => Some((range.element, &[])),
        Datum::Range(range) => Some((range.element, std::slice::from_ref(&**range))),
        Datum::Multirange(multirange) => Some((multirange.element, &multirange.ranges)),
        _ => None,
    }
}

fn ends(range: &Range) -> (&Bound, &Bound) {
    match &range.bounds {
        Some((lower, upper)) => (lower, upper),
        None => (&Bound::NONE, &Bound::NONE),
    }
}

/// The first and the last bound of a list of ranges; none of an empty one.
pub fn outer(ranges: &[Range]) -> Option<(&Bound, &Bound)> {
    let (first, last) = (ranges.first()?, ranges.last()?);
    Some((ends(first).0, ends(last).1))
}

/// Whether what ends there lies wholly before what begins there.
pub fn is_before(element: TypeId, upper: &Bound, lower: &Bound) -> bool {
    compare_ends(element, upper, lower).0
}

/// Whether nothing lies between what ends there and what begins there, and nothing is in both.
pub fn is_adjacent(element: TypeId, upper: &Bound, lower: &Bound) -> bool {
    compare_ends(element, upper, lower).1
}

/// Whether anything is in both lists.
pub fn overlap(element: TypeId, a: &[Range], b: &[Range]) -> bool {
    let (few, many) = if a.len() < b.len() { (a, b) } else { (b, a) };
    few.iter().any(|range| {
        let (lower, upper) = ends(range);
        // The first that does not end before it.
        let at = many.partition_point(|other| is_before(element, ends(other).1, lower));
        let next = many.get(at);
        next.is_some_and(|other| !is_before(element, upper, ends(other).0))
    })
}

/// Whether all of the second list is in the first.
pub fn contains(element: TypeId, a: &[Range], b: &[Range]) -> bool {
    b.iter().all(|range| {
        let (lower, upper) = ends(range);
        let at = a.partition_point(|other| is_before(element, ends(other).1, lower));
        a.get(at).is_some_and(|other| {
            let (low, high) = ends(other);
            compare_lower(element, low, lower).is_le()
                && compare_upper(element, high, upper).is_ge()
        })
    })
}

/// Whether a value is in any of the ranges.
pub fn contains_value(element: TypeId, ranges: &[Range], value: &Datum) -> bool {
    let point = Bound::new(Some(value.clone()), true);
    let at = ranges.partition_point(|range| is_before(element, ends(range).1, &point));
    let next = ranges.get(at);
    next.is_some_and(|range| !is_before(element, &point, ends(range).0))
}

/// What is in both lists.
///
/// # Errors
/// The pending interrupt.
pub fn intersect(element: TypeId, a: &[Range], b: &[Range]) -> Result<Vec<Range>> {
    let (mut at, mut other) = (0, 0);
    let mut found = Vec::new();
    while let (Some(x), Some(y)) = (a.get(at), b.get(other)) {
        coro::work(BOUND_WORK)?;
        let ((low, high), (other_low, other_high)) = (ends(x), ends(y));
        if !is_before(element, high, other_low) && !is_before(element, other_high, low) {
            let lower = match compare_lower(element, low, other_low) {
                Ordering::Less => other_low,
                _ => low,
            };
            let upper = match compare_upper(element, high, other_high) {
                Ordering::Greater => other_high,
                _ => high,
            };
            found.push(Range::new(element, lower.clone(), upper.clone())?);
        }
        match compare_upper(element, high, other_high) {
            Ordering::Less => at += 1,
            _ => other += 1,
        }
    }
    Ok(found)
}

/// What is in the first list and not in the second.
///
/// # Errors
/// The pending interrupt.
pub fn subtract(element: TypeId, a: &[Range], b: &[Range]) -> Result<Vec<Range>> {
    let mut found = Vec::new();
    let mut from = 0;
    for range in a {
        coro::work(BOUND_WORK)?;
        let (lower, upper) = ends(range);
        let mut start = Some(lower.clone());
        while b
            .get(from)
            .is_some_and(|cut| is_before(element, ends(cut).1, lower))
        {
            from += 1;
        }
        for cut in &b[from..] {
            coro::work(BOUND_WORK)?;
            let (low, high) = ends(cut);
            let Some(begin) = start.take() else { break };
            if is_before(element, upper, low) {
                start = Some(begin);
                break;
            }
            if compare_lower(element, &begin, low).is_lt() {
                found.push(Range::new(element, begin, low.beyond())?);
            }
            if compare_upper(element, high, upper).is_lt() {
                start = Some(high.beyond());
            }
        }
        if let Some(begin) = start {
            found.push(Range::new(element, begin, upper.clone())?);
        }
    }
    Ok(found)
}

/// A range as a value.
pub fn datum(range: Range) -> Datum {
    Datum::Range(Arc::new(range))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::{parse_multirange, write_multirange};
    use crate::{text, EvalContext, NO_TYPMOD};

    fn read(text: &str) -> Vec<Range> {
        let context = EvalContext::for_tests();
        let multirange = parse_multirange(&context, TypeId::NUMRANGE, text);
        multirange.unwrap().ranges
    }

    fn shown(ranges: Vec<Range>) -> String {
        let context = EvalContext::for_tests();
        let multirange = Multirange::new(TypeId::NUMERIC, ranges).unwrap();
        let mut out = String::new();
        write_multirange(&context, &multirange, &mut out).unwrap();
        out
    }

    /// All multiranges over a few points, in all ways to include them, against sets of places.
    #[test]
    fn lists_are_sets_of_values() {
        let lists = [
            "{}",
            "{(,)}",
            "{[1,2)}",
            "{(1,2]}",
            "{[1,1],[2,2]}",
            "{(,1),(2,)}",
            "{(,1],[2,3)}",
            "{[0,3]}",
            "{(0,1),(1,2),(2,3)}",
            "{[0,1),(2,3]}",
        ];
        let places: Vec<_> = ["-1", "0", "0.5", "1", "1.5", "2", "2.5", "3", "4"]
            .map(|text| Datum::Numeric(super::super::Numeric::parse(text).unwrap()))
            .to_vec();
        let of = TypeId::NUMERIC;
        let has = |list: &[Range]| -> Vec<bool> {
            let all = places.iter();
            all.map(|place| contains_value(of, list, place)).collect()
        };
        for a in lists.map(read) {
            for b in lists.map(read) {
                let (x, y) = (has(&a), has(&b));
                let both = |test: fn(bool, bool) -> bool| -> Vec<bool> {
                    x.iter().zip(&y).map(|(x, y)| test(*x, *y)).collect()
                };
                let common = intersect(of, &a, &b).unwrap();
                let less = subtract(of, &a, &b).unwrap();
                assert_eq!(has(&common), both(|x, y| x && y), "{a:?} * {b:?}");
                assert_eq!(has(&less), both(|x, y| x && !y), "{a:?} - {b:?}");
                assert_eq!(overlap(of, &a, &b), !common.is_empty(), "{a:?} && {b:?}");
                let rest = subtract(of, &b, &a).unwrap();
                assert_eq!(contains(of, &a, &b), rest.is_empty(), "{a:?} @> {b:?}");
                // What is taken apart is the same when it is put together.
                let again = shown(common.into_iter().chain(less).collect());
                assert_eq!(again, shown(a.clone()));
            }
        }
    }

    #[test]
    fn keys_are_in_the_order_of_ranges() {
        use base::key::{put_key_column, ColumnOrder};
        let context = EvalContext::for_tests();
        let texts = [
            "empty",
            "(,)",
            "(,1)",
            "(,1]",
            "(,2)",
            "[0,1)",
            "[0,1]",
            "[0,)",
            "(0,1)",
            "(0,)",
            "[1,1]",
            "[-1.50,0)",
            "[-1.5,0.0]",
            "[NaN,NaN]",
            "[1,Infinity]",
        ];
        let all: Vec<Datum> = texts
            .iter()
            .map(|text| text::input(&context, TypeId::NUMRANGE, NO_TYPMOD, text).unwrap())
            .collect();
        let kind = super::super::key_kind(TypeId::NUMRANGE).unwrap();
        let key = |value: &Datum| {
            let (mut column, mut key) = (Vec::new(), Vec::new());
            super::super::encode_column(TypeId::NUMRANGE, NO_TYPMOD, value, &mut column).unwrap();
            let read = super::super::decode_column(TypeId::NUMRANGE, NO_TYPMOD, &column);
            assert_eq!(&read.unwrap(), value);
            put_key_column(&mut key, kind, ColumnOrder::ASCENDING, Some(&column)).unwrap();
            key
        };
        for a in &all {
            for b in &all {
                let order = compare::compare(TypeId::NUMRANGE, a, b);
                assert_eq!(order, key(a).cmp(&key(b)), "{a:?} {b:?}");
            }
        }
    }
}
