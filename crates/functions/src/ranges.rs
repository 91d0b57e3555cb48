//! The functions and operators of ranges and multiranges.
//!
//! Each operator looks at its operands as lists of ranges ([`types::range::ranges_of`]): a range is a
//! list of one, or of none if it is empty. So one function serves for a range and a multirange on
//! either side, and what it is called with says what it gives: `+`, `*` and `-` of two ranges must
//! give one range.
//!
//! Source: PostgreSQL 15 manual, section 9.20.

use std::sync::Arc;

use base::coro;
use base::error::{Error, Result, SqlState};

use super::arguments::Arguments;
use super::{Body, Call, Function, Rows, Volatility};
use types::compare::{compare_lower, compare_upper};
use types::range::{self, outer, ranges_of};
use types::{Bound, Datum, Multirange, Range, TypeId};

/// What looking at a range counts for, in the units of [`coro::work`].
const RANGE_WORK: usize = 8;

fn ranges(args: &[Datum], place: usize) -> Result<(TypeId, &[Range])> {
    let found = ranges_of(args.any(place)?);
    found.ok_or_else(|| Error::internal("a range is wanted"))
}

/// The two operands, with the type of their bounds.
fn both(args: &[Datum]) -> Result<(TypeId, &[Range], &[Range])> {
    let (element, a) = ranges(args, 0)?;
    let (_, b) = ranges(args, 1)?;
    coro::work(a.len().min(b.len()) * RANGE_WORK)?;
    Ok((element, a, b))
}

/// The type of the bounds of what a call gives.
fn element_of(call: &Call<'_>) -> Result<TypeId> {
    let element = call.result.range_element();
    let element = element.or_else(|| call.result.multirange_element());
    element.ok_or_else(|| Error::internal("a range is to be made of what is no range"))
}

fn multirange(element: TypeId, ranges: Vec<Range>) -> Result<Datum> {
    Ok(Datum::Multirange(Arc::new(Multirange::new(
        element, ranges,
    )?)))
}

// ---- Constructors ----

/// `int4range(lower, upper)`.
pub(crate) fn make(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    build(call, args, "[)")
}

/// `int4range(lower, upper, bounds)`.
pub(crate) fn make_with(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    match args.any(2)? {
        Datum::Text(flags) => build(call, args, flags),
        _ => Err(Error::new(
            SqlState::of("22000"),
            "range constructor flags argument must not be null",
        )),
    }
}

fn build(call: &Call<'_>, args: &[Datum], flags: &str) -> Result<Datum> {
    let (lower, upper) = match flags {
        "[]" => (true, true),
        "[)" => (true, false),
        "(]" => (false, true),
        "()" => (false, false),
        _ => {
            let message = "invalid range bound flags";
            return Err(Error::new(SqlState::SYNTAX_ERROR, message)
                .with_hint("Valid values are \"[]\", \"[)\", \"(]\", and \"()\"."));
        }
    };
    let bound = |place: usize, inclusive| {
        let value = args.any(place)?;
        let value = (!value.is_null()).then(|| value.clone());
        Ok::<_, Error>(Bound::new(value, inclusive))
    };
    Range::of(call.result, bound(0, lower)?, bound(1, upper)?).map(range::datum)
}

/// `int4multirange()`.
pub(crate) fn none(call: &Call<'_>, _: &[Datum]) -> Result<Datum> {
    multirange(element_of(call)?, Vec::new())
}

/// `int4multirange(range)`, `multirange(range)`.
pub(crate) fn of_one(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (_, ranges) = ranges(args, 0)?;
    multirange(element_of(call)?, ranges.to_vec())
}

/// `int4multirange(VARIADIC ranges)`.
pub(crate) fn of_many(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let values = match args {
        [Datum::Array(array)] if array.dimensions.len() > 1 => {
            return Err(Error::new(
                SqlState::of("21000"),
                "multiranges cannot be constructed from multidimensional arrays",
            ))
        }
        [Datum::Array(array)] => &array.elements,
        values => values,
    };
    let mut all = Vec::with_capacity(values.len());
    for value in values {
        coro::work(RANGE_WORK)?;
        match value {
            Datum::Range(range) => all.push((**range).clone()),
            _ => {
                return Err(Error::new(
                    SqlState::of("22004"),
                    "multirange values cannot contain null members",
                ))
            }
        }
    }
    multirange(element_of(call)?, all)
}

macro_rules! constructors {
    ($($symbol:literal ($($argument:ident)*) $result:ident $strict:literal $body:ident;)*) => {
        /// What makes ranges and multiranges of one's own: CREATE TYPE has a routine made for each,
        /// whose body is the name here.
        pub(crate) static CONSTRUCTORS: &[Function] = &[$(Function {
            oid: 0,
            name: $symbol,
            arguments: &[$(TypeId::$argument),*],
            variadic: false,
            defaults: 0,
            result: TypeId::$result,
            volatility: Volatility::Immutable,
            strict: $strict,
            body: Body::Native($body),
        }),*];
    };
}

constructors! {
    "range_constructor2" (ANYELEMENT ANYELEMENT) ANYRANGE false make;
    "range_constructor3" (ANYELEMENT ANYELEMENT TEXT) ANYRANGE false make_with;
    "multirange_constructor0" () ANYMULTIRANGE true none;
    "multirange_constructor1" (ANYRANGE) ANYMULTIRANGE true of_one;
    "multirange_constructor2" (ANYARRAY) ANYMULTIRANGE true of_many;
}

/// The constructor of a range or a multirange of one's own, by the body of its routine.
pub fn constructor(symbol: &str) -> Option<&'static Function> {
    CONSTRUCTORS.iter().find(|known| known.name == symbol)
}

/// Whether a function is one of them.
pub fn is_constructor(function: &Function) -> bool {
    function.oid == 0 && constructor(function.name).is_some()
}

/// A range is in its canonical form from the start.
pub(crate) fn canonical(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    args.any(0).cloned()
}

macro_rules! differences {
    ($($name:ident $get:ident $a:ident $b:ident $difference:expr;)*) => {
        $(pub(crate) fn $name(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
            let ($a, $b) = (args.$get(0)?, args.$get(1)?);
            Ok(Datum::Float8($difference))
        })*
    };
}

differences! {
    integers_apart int a b a as f64 - b as f64;
    days_apart date a b f64::from(a) - f64::from(b);
    moments_apart timestamp a b (a as f64 - b as f64) / 1_000_000.0;
    instants_apart timestamptz a b (a as f64 - b as f64) / 1_000_000.0;
    numbers_apart numeric a b a.sub(b)?.to_f64()?;
}

// ---- Bounds ----

fn value_of(bound: Option<&Bound>) -> Datum {
    let value = bound.and_then(|bound| bound.value.clone());
    value.unwrap_or(Datum::Null)
}

pub(crate) fn lower(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (_, ranges) = ranges(args, 0)?;
    Ok(value_of(outer(ranges).map(|ends| ends.0)))
}

pub(crate) fn upper(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (_, ranges) = ranges(args, 0)?;
    Ok(value_of(outer(ranges).map(|ends| ends.1)))
}

macro_rules! asked {
    ($($name:ident $ends:ident $test:expr;)*) => {
        $(pub(crate) fn $name(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
            let (_, ranges) = ranges(args, 0)?;
            let $ends = outer(ranges);
            Ok(Datum::Bool($test))
        })*
    };
}

asked! {
    is_empty ends ends.is_none();
    lower_inc ends ends.is_some_and(|(lower, _)| lower.inclusive);
    upper_inc ends ends.is_some_and(|(_, upper)| upper.inclusive);
    lower_inf ends ends.is_some_and(|(lower, _)| lower.value.is_none());
    upper_inf ends ends.is_some_and(|(_, upper)| upper.value.is_none());
}

// ---- How they lie ----

pub(crate) fn overlaps(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (element, a, b) = both(args)?;
    Ok(Datum::Bool(range::overlap(element, a, b)))
}

pub(crate) fn contains(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (element, a, b) = both(args)?;
    Ok(Datum::Bool(range::contains(element, a, b)))
}

pub(crate) fn contained(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (element, a, b) = both(args)?;
    Ok(Datum::Bool(range::contains(element, b, a)))
}

pub(crate) fn contains_value(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (element, ranges) = ranges(args, 0)?;
    let has = range::contains_value(element, ranges, args.any(1)?);
    Ok(Datum::Bool(has))
}

pub(crate) fn value_contained(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (element, ranges) = ranges(args, 1)?;
    let has = range::contains_value(element, ranges, args.any(0)?);
    Ok(Datum::Bool(has))
}

macro_rules! positions {
    ($($name:ident $element:ident ($low:ident $high:ident) ($other_low:ident $other_high:ident) $test:expr;)*) => {
        $(pub(crate) fn $name(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
            let ($element, a, b) = both(args)?;
            Ok(Datum::Bool(match (outer(a), outer(b)) {
                (Some(($low, $high)), Some(($other_low, $other_high))) => $test,
                // What is empty lies nowhere.
                _ => false,
            }))
        })*
    };
}

positions! {
    before element (_low high) (other_low _other_high)
        range::is_before(element, high, other_low);
    after element (low _high) (_other_low other_high)
        range::is_before(element, other_high, low);
    over_left element (_low high) (_other_low other_high)
        compare_upper(element, high, other_high).is_le();
    over_right element (low _high) (other_low _other_high)
        compare_lower(element, low, other_low).is_ge();
    adjacent element (low high) (other_low other_high)
        range::is_adjacent(element, high, other_low) || range::is_adjacent(element, other_high, low);
}

// ---- Sets of values ----

/// The one range that these are.
fn one(element: TypeId, ranges: Vec<Range>, what: &str) -> Result<Datum> {
    let mut ranges = ranges.into_iter();
    match (ranges.next(), ranges.next()) {
        (None, _) => Ok(range::datum(Range::empty(element))),
        (Some(range), None) => Ok(range::datum(range)),
        _ => Err(Error::new(
            SqlState::of("22000"),
            format!("result of range {what} would not be contiguous"),
        )),
    }
}

pub(crate) fn union(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (element, a, b) = both(args)?;
    let joined = Multirange::new(element, a.iter().chain(b).cloned().collect())?;
    match args.any(0)? {
        Datum::Range(_) => one(element, joined.ranges().to_vec(), "union"),
        _ => Ok(Datum::Multirange(Arc::new(joined))),
    }
}

pub(crate) fn intersection(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (element, a, b) = both(args)?;
    let common = range::intersect(element, a, b)?;
    match args.any(0)? {
        Datum::Range(_) => one(element, common, "intersection"),
        _ => multirange(element, common),
    }
}

pub(crate) fn difference(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (element, a, b) = both(args)?;
    let less = range::subtract(element, a, b)?;
    match args.any(0)? {
        Datum::Range(_) => one(element, less, "difference"),
        _ => multirange(element, less),
    }
}

/// The least range that has all of both, or of one multirange.
pub(crate) fn merge(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (element, a) = ranges(args, 0)?;
    let b = match args.len() {
        1 => &[],
        _ => ranges(args, 1)?.1,
    };
    let merged = match (outer(a), outer(b)) {
        (None, None) => Range::empty(element),
        (Some((lower, upper)), None) | (None, Some((lower, upper))) => {
            Range::new(element, lower.clone(), upper.clone())?
        }
        (Some((low, high)), Some((other_low, other_high))) => {
            let lower = match compare_lower(element, low, other_low).is_le() {
                true => low,
                false => other_low,
            };
            let upper = match compare_upper(element, high, other_high).is_ge() {
                true => high,
                false => other_high,
            };
            Range::new(element, lower.clone(), upper.clone())?
        }
    };
    Ok(range::datum(merged))
}

/// `unnest(multirange)`.
pub(crate) fn unnest(_: &Call<'_>, args: &[Datum]) -> Result<Rows> {
    let Datum::Multirange(multirange) = args.any(0)?.clone() else {
        return Err(Error::internal("a multirange is wanted"));
    };
    let count = multirange.ranges().len();
    let range = move |place: usize| Ok(range::datum(multirange.ranges()[place].clone()));
    Ok(Box::new((0..count).map(range)))
}
