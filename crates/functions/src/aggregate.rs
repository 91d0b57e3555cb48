//! Aggregates as state machines: start, step, merge, finish.
//!
//! | aggregate | state |
//! |---|---|
//! | count | a number |
//! | sum, avg of integers | a count and a 128-bit sum, so that only the result can overflow |
//! | sum, avg of vectors | see [`super::vector_sums`] |
//! | sum, avg of numerics | a count and a numeric sum |
//! | variance family of integers and numerics | count, sum and sum of squares, exact |
//! | the same of floats | count, sum and squared deviations by Youngs and Cramer's recurrence |
//! | min, max, bool_and, bool_or, bit_and, … | the value so far |
//! | string_agg, array_agg, range_agg | what was collected |
//! | percentiles, mode, rank of a row that might be there | see [`super::ordered_set`] |
//! | json_agg, jsonb_object_agg and kin | the text, or the parts, so far |
//! | regression and correlation of pairs of floats | see [`super::regression`] |

use std::cmp::Ordering;
use std::sync::{Arc, OnceLock};

use base::coro;
use base::error::{Error, Result, SqlState};
use base::hash::HashMap;

use super::float_sums::{add_floats, float, float_overflow};
use super::json::make::{Gathered, Gathering};
use super::ordered_set::{Direction, OrderedSet, Sorted};
use super::regression::{Fit, Pairs};
use super::table_aggregates::AGGREGATES;
use super::vector_sums::VectorSums;
use super::{array_shapes, bits, comparison, money};
use types::{
    compare, growth, range, Array, Datum, EvalContext, Interval, Multirange, Numeric, Range, TypeId,
};

/// Elements that are copied at once, and what each counts for in the units of [`coro::work`].
const COPIED_AT_ONCE: usize = 1_000;
const ELEMENT_WORK: usize = 16;

/// What a value that lies apart takes beside its bytes: counts of its users, and the allocator's.
const SHARED_BYTES: usize = 32;

/// What an aggregate computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    CountRows,
    Count,
    Sum,
    Avg,
    Min,
    Max,
    And,
    Or,
    BitAnd,
    BitOr,
    BitXor,
    Join,
    Collect,
    CollectArrays,
    Ranges,
    Intersect,
    Sorted(OrderedSet),
    Deviation(Spread),
    Variance(Spread),
    Json(Gathering),
    Regression(Fit),
}

/// Whether the values are a sample or everything there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spread {
    Sample,
    Population,
}

/// An aggregate function.
#[derive(Clone, Copy, Debug)]
pub struct Aggregate {
    /// Its OID.
    pub oid: u32,
    /// Its name.
    pub name: &'static str,
    /// The declared types of its arguments; none for `count(*)`.
    pub arguments: &'static [TypeId],
    /// The declared type of its result.
    pub result: TypeId,
    pub(crate) kind: Kind,
}

/// The aggregates of that name.
pub fn aggregates_named(name: &str) -> &'static [&'static Aggregate] {
    static NAMED: OnceLock<HashMap<&'static str, Vec<&'static Aggregate>>> = OnceLock::new();
    let named = NAMED.get_or_init(|| {
        let mut named: HashMap<_, Vec<_>> = HashMap::default();
        for aggregate in AGGREGATES {
            named.entry(aggregate.name).or_default().push(aggregate);
        }
        named
    });
    named.get(name).map_or(&[], Vec::as_slice)
}

/// The aggregates that an extension brings for a type of its own.
pub fn aggregates_of_type(kind: TypeId) -> impl Iterator<Item = &'static Aggregate> {
    AGGREGATES.iter().filter(move |own| own.result == kind)
}

/// Every aggregate that is there without an extension.
pub fn all_aggregates() -> impl Iterator<Item = &'static Aggregate> {
    AGGREGATES
        .iter()
        .filter(|own| !own.result.is_of_extension())
}

/// The aggregate of that OID.
pub fn aggregate_by_oid(oid: u32) -> Option<&'static Aggregate> {
    AGGREGATES.iter().find(|aggregate| aggregate.oid == oid)
}

/// The state of one group of one aggregate.
#[derive(Clone, Debug)]
pub struct Accumulator {
    aggregate: &'static Aggregate,
    argument: TypeId,
    /// The type of the second one.
    second: TypeId,
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    Count(i64),
    Integers {
        count: i64,
        sum: i128,
    },
    Numbers {
        count: i64,
        sum: Numeric,
    },
    Floats {
        count: f64,
        sum: f64,
    },
    Intervals {
        count: i64,
        sum: Interval,
    },
    Squares {
        count: i64,
        sum: Numeric,
        squares: Numeric,
    },
    Deviations {
        count: f64,
        sum: f64,
        squares: f64,
    },
    Value(Datum),
    Text(Option<String>),
    Bytes(Option<Vec<u8>>),
    Json(Box<Gathered>),
    Sorted(Box<Sorted>),
    Pairs(Box<Pairs>),
    Vectors(Box<VectorSums>),
    /// With the memory that they take.
    Elements(Option<Vec<Datum>>, usize),
}

impl Aggregate {
    /// Whether it gives one of its arguments, the least or the greatest.
    pub fn is_extreme(&self) -> bool {
        matches!(self.kind, Kind::Min | Kind::Max)
    }

    /// Whether settings of the session, which say how values look as text, change its result.
    pub fn is_stable(&self) -> bool {
        // PostgreSQL calls jsonb_object_agg immutable, though its values are made as the others'.
        matches!(self.kind, Kind::Json(gathering) if !(gathering.object && gathering.binary))
    }

    /// What it computes, if it is one over sorted rows (WITHIN GROUP).
    pub fn ordered_set(&self) -> Option<OrderedSet> {
        match self.kind {
            Kind::Sorted(what) => Some(what),
            _ => None,
        }
    }

    /// `aggkind` and `aggnumdirectargs`.
    pub fn kind_code(&self) -> (u8, i16) {
        match self.ordered_set() {
            None => (b'n', 0),
            Some(OrderedSet::Mode) => (b'o', 0),
            Some(what) if what.is_hypothetical() => (b'h', 1),
            Some(_) => (b'o', 1),
        }
    }

    /// The state before the first row. `argument_types` are the concrete ones.
    pub fn start(&'static self, argument_types: &[TypeId]) -> Accumulator {
        let argument = argument_types.first().copied().unwrap_or(TypeId::NONE);
        let integer = matches!(argument, TypeId::INT2 | TypeId::INT4 | TypeId::INT8);
        let float = matches!(argument, TypeId::FLOAT4 | TypeId::FLOAT8);
        let state = match self.kind {
            Kind::CountRows | Kind::Count => State::Count(0),
            Kind::Sum | Kind::Avg if integer => State::Integers { count: 0, sum: 0 },
            Kind::Sum | Kind::Avg if float => State::Floats {
                count: 0.0,
                // What changes no sum; that of negative zeros alone is one too.
                sum: if self.kind == Kind::Sum { -0.0 } else { 0.0 },
            },
            Kind::Sum if argument == TypeId::MONEY => State::Value(Datum::Null),
            Kind::Sum | Kind::Avg if argument == TypeId::INTERVAL => State::Intervals {
                count: 0,
                sum: Interval::default(),
            },
            Kind::Sum | Kind::Avg if argument.is_vector() => {
                let is_average = self.kind == Kind::Avg;
                State::Vectors(Box::new(VectorSums::new(argument, is_average)))
            }
            Kind::Sum | Kind::Avg => State::Numbers {
                count: 0,
                sum: Numeric::ZERO,
            },
            Kind::Variance(_) | Kind::Deviation(_) if float => State::Deviations {
                count: 0.0,
                sum: 0.0,
                squares: 0.0,
            },
            Kind::Variance(_) | Kind::Deviation(_) => State::Squares {
                count: 0,
                sum: Numeric::ZERO,
                squares: Numeric::ZERO,
            },
            Kind::Join if argument == TypeId::BYTEA => State::Bytes(None),
            Kind::Join => State::Text(None),
            Kind::Json(gathering) => State::Json(Box::new(gathering.start())),
            Kind::Sorted(what) => State::Sorted(Box::new(Sorted::new(what, argument_types))),
            Kind::Regression(_) => State::Pairs(Box::default()),
            Kind::Collect | Kind::CollectArrays | Kind::Ranges => State::Elements(None, 0),
            _ => State::Value(Datum::Null),
        };
        Accumulator {
            aggregate: self,
            argument,
            second: argument_types.get(1).copied().unwrap_or(TypeId::NONE),
            state,
        }
    }
}

fn integer_overflow() -> Error {
    Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "bigint out of range")
}

fn wrong(value: &Datum) -> Error {
    Error::internal(format!("an aggregate cannot take {value:?}"))
}

fn integer(value: &Datum) -> Result<i64> {
    value.as_i64().ok_or_else(|| wrong(value))
}

fn number(value: &Datum) -> Result<Numeric> {
    match value {
        Datum::Numeric(v) => Ok(v.clone()),
        _ => integer(value).map(Numeric::from),
    }
}

/// A sum of floats, in 32 bits for `sum(real)`.
fn sum_floats(sum: f64, value: f64, narrow: bool) -> Result<f64> {
    if !narrow {
        return add_floats(sum, value);
    }
    let total = sum as f32 + value as f32;
    match total.is_infinite() && sum.is_finite() && value.is_finite() {
        true => Err(float_overflow()),
        false => Ok(f64::from(total)),
    }
}

impl Accumulator {
    /// Says what the direct argument of an aggregate over sorted rows is, where there may be no rows.
    pub fn set_direct(&mut self, direct: Datum) {
        if let State::Sorted(sorted) = &mut self.state {
            sorted.set_direct(direct);
        }
    }

    /// Says in which order the rows come, to an aggregate over sorted ones.
    pub fn sort_by(&mut self, order: Vec<Direction>) {
        if let State::Sorted(sorted) = &mut self.state {
            sorted.sort_by(order);
        }
    }

    /// Takes one row's arguments, coerced. Rows with NULLs are passed too; the aggregate knows
    /// what to do with them.
    ///
    /// # Errors
    /// 22003 on overflow.
    #[inline]
    pub fn step(&mut self, context: &EvalContext, arguments: &[Datum]) -> Result<()> {
        match (&mut self.state, arguments) {
            (State::Count(count), []) => {
                *count += 1;
                return Ok(());
            }
            (State::Numbers { count, sum }, [Datum::Numeric(value)]) => {
                if let Some(more) = sum.add_small(value) {
                    (*count, *sum) = (*count + 1, more);
                    return Ok(());
                }
            }
            _ => {}
        }
        coro::interruptible(|| self.step_inner(context, arguments))?
    }

    fn step_inner(&mut self, context: &EvalContext, arguments: &[Datum]) -> Result<()> {
        if let (Kind::Json(gathering), State::Json(state)) = (self.aggregate.kind, &mut self.state)
        {
            let kinds = [self.argument, self.second];
            return gathering.step(context, state, &kinds, arguments);
        }
        if let State::Sorted(sorted) = &mut self.state {
            return sorted.step(arguments);
        }
        if let State::Pairs(pairs) = &mut self.state {
            return pairs.step(arguments);
        }
        let null = Datum::Null;
        let value = arguments.first().unwrap_or(&null);
        if let (Kind::CountRows, State::Count(count)) = (self.aggregate.kind, &mut self.state) {
            *count += 1;
            return Ok(());
        }
        if let State::Elements(elements, bytes) = &mut self.state {
            if self.aggregate.kind == Kind::Ranges && value.is_null() {
                return Ok(());
            }
            if self.aggregate.kind == Kind::CollectArrays {
                let first = elements.as_ref().and_then(|elements| elements.first());
                array_shapes::check_stackable(first, value)?;
            }
            let more = growth::ELEMENT_BYTES + growth::bytes_of(value);
            growth::check_room(*bytes, more)?;
            *bytes += more;
            elements.get_or_insert_default().push(value.clone());
            return Ok(());
        }
        if value.is_null() {
            return Ok(());
        }
        match &mut self.state {
            State::Count(count) => *count += 1,
            State::Integers { count, sum } => {
                *count += 1;
                *sum += i128::from(integer(value)?);
            }
            State::Numbers { count, sum } => {
                *count += 1;
                *sum = sum.add_unbounded(&number(value)?)?;
            }
            State::Floats { count, sum } => {
                *count += 1.0;
                let narrow = self.argument == TypeId::FLOAT4 && self.aggregate.kind == Kind::Sum;
                *sum = sum_floats(*sum, float(value)?, narrow)?;
            }
            State::Intervals { count, sum } => {
                let Datum::Interval(more) = value else {
                    return Err(wrong(value));
                };
                *count += 1;
                *sum = sum.add(more)?;
            }
            State::Squares {
                count,
                sum,
                squares,
            } => {
                let value = number(value)?;
                *count += 1;
                *sum = sum.add_unbounded(&value)?;
                *squares = squares.add_unbounded(&value.mul_unbounded(&value)?)?;
            }
            State::Deviations {
                count,
                sum,
                squares,
            } => deviate(count, sum, squares, float(value)?)?,
            State::Value(kept) => {
                let kept_now = std::mem::replace(kept, Datum::Null);
                *kept = combine(self.aggregate.kind, self.argument, kept_now, value)?;
            }
            State::Text(text) => {
                let separator = arguments.get(1).unwrap_or(&null).as_str();
                let more = separator.len() + value.as_str().len();
                growth::check_room(text.as_ref().map_or(0, String::len), more)?;
                coro::work(more)?;
                if let Some(text) = &mut *text {
                    text.push_str(separator);
                }
                text.get_or_insert_default().push_str(value.as_str());
            }
            State::Bytes(bytes) => {
                let Datum::Bytea(more) = value else {
                    return Err(wrong(value));
                };
                let added = arguments.get(1).map_or(0, growth::bytes_of) + more.len();
                growth::check_room(bytes.as_ref().map_or(0, Vec::len), added)?;
                coro::work(added)?;
                if let (Some(bytes), Some(Datum::Bytea(separator))) =
                    (&mut *bytes, arguments.get(1))
                {
                    bytes.extend_from_slice(separator);
                }
                bytes.get_or_insert_default().extend_from_slice(more);
            }
            State::Vectors(sums) => sums.step(value)?,
            State::Elements(..) | State::Json(_) | State::Sorted(_) | State::Pairs(_) => {}
        }
        Ok(())
    }

    /// The memory that grows with the rows, in bytes: with what making the result takes, where that
    /// is a copy.
    pub fn bytes(&self) -> usize {
        match &self.state {
            State::Value(Datum::Text(text)) => text.len(),
            State::Value(Datum::Bytea(bytes)) => bytes.len(),
            State::Value(Datum::Multirange(multirange)) => multirange.bytes(),
            State::Text(text) => text.as_ref().map_or(0, |text| 2 * text.capacity()),
            State::Bytes(bytes) => bytes.as_ref().map_or(0, |bytes| 2 * bytes.capacity()),
            State::Json(gathered) => gathered.bytes(),
            State::Sorted(sorted) => sorted.bytes(),
            State::Vectors(sums) => sums.bytes(),
            State::Elements(elements, bytes) => {
                let (count, places) = match elements {
                    Some(elements) => (elements.len(), elements.capacity()),
                    None => (0, 0),
                };
                let apart = *bytes - count * growth::ELEMENT_BYTES;
                let shared = if apart > 0 { count * SHARED_BYTES } else { 0 };
                places * growth::ELEMENT_BYTES + apart + shared
            }
            _ => 0,
        }
    }

    /// Whether [`Accumulator::give_back`] undoes a step: it leaves just what would be there without.
    pub fn can_return(&self) -> bool {
        matches!(self.state, State::Count(_) | State::Integers { .. })
    }

    /// Gives back one row that was taken in.
    ///
    /// # Errors
    /// XX000 where rows cannot be given back.
    pub fn give_back(&mut self, value: &Datum) -> Result<()> {
        let counts_all = self.aggregate.kind == Kind::CountRows;
        if value.is_null() && !counts_all {
            return Ok(());
        }
        match &mut self.state {
            State::Count(count) => *count -= 1,
            State::Integers { count, sum } => {
                *count -= 1;
                *sum -= i128::from(integer(value)?);
            }
            _ => return Err(wrong(value)),
        }
        Ok(())
    }

    /// Takes in the state of the same aggregate over other rows, which come after this one's.
    /// Joined text has no separator where the two meet: ordered aggregates are not merged.
    ///
    /// # Errors
    /// As [`Accumulator::step`].
    pub fn merge(&mut self, other: &Accumulator) -> Result<()> {
        let kind = self.aggregate.kind;
        match (&mut self.state, &other.state) {
            (State::Count(a), State::Count(b)) => *a += b,
            (State::Integers { count, sum }, State::Integers { count: c, sum: s }) => {
                *count += c;
                *sum += s;
            }
            (State::Numbers { count, sum }, State::Numbers { count: c, sum: s }) => {
                *count += c;
                *sum = sum.add_unbounded(s)?;
            }
            (State::Floats { count, sum }, State::Floats { count: c, sum: s }) => {
                *count += c;
                *sum = add_floats(*sum, *s)?;
            }
            (State::Intervals { count, sum }, State::Intervals { count: c, sum: s }) => {
                *count += c;
                *sum = sum.add(s)?;
            }
            (
                State::Squares {
                    count,
                    sum,
                    squares,
                },
                State::Squares {
                    count: c,
                    sum: s,
                    squares: q,
                },
            ) => {
                *count += c;
                *sum = sum.add_unbounded(s)?;
                *squares = squares.add_unbounded(q)?;
            }
            (
                State::Deviations {
                    count,
                    sum,
                    squares,
                },
                State::Deviations {
                    count: c,
                    sum: s,
                    squares: q,
                },
            ) => merge_deviations((count, sum, squares), (*c, *s, *q))?,
            (State::Pairs(a), State::Pairs(b)) => a.merge(b)?,
            (State::Vectors(a), State::Vectors(b)) => a.merge(b)?,
            (State::Value(a), State::Value(b)) if !b.is_null() => {
                let kept = std::mem::replace(a, Datum::Null);
                *a = combine(kind, self.argument, kept, b)?;
            }
            (State::Text(a), State::Text(Some(b))) => {
                growth::check_room(a.as_ref().map_or(0, String::len), b.len())?;
                a.get_or_insert_default().push_str(b);
            }
            (State::Bytes(a), State::Bytes(Some(b))) => {
                growth::check_room(a.as_ref().map_or(0, Vec::len), b.len())?;
                a.get_or_insert_default().extend_from_slice(b);
            }
            (State::Elements(a, bytes), State::Elements(Some(b), more)) => {
                growth::check_room(*bytes, *more)?;
                *bytes += more;
                a.get_or_insert_default().extend_from_slice(b);
            }
            _ => {}
        }
        Ok(())
    }

    /// The result over the rows taken so far.
    ///
    /// # Errors
    /// As [`Accumulator::step`].
    pub fn finish(&self, _context: &EvalContext) -> Result<Datum> {
        coro::interruptible(|| self.finish_inner())?
    }

    /// All that is in any of these ranges and multiranges.
    fn joined(&self, values: &[Datum]) -> Result<Datum> {
        let argument = self.argument;
        let element = argument.range_element().or(argument.multirange_element());
        let element = element.ok_or_else(|| Error::internal("range_agg of no ranges"))?;
        let mut all = Vec::new();
        for value in values {
            let ranges = range::ranges_of(value).map_or(&[][..], |found| found.1);
            coro::work(ranges.len() * ELEMENT_WORK)?;
            all.extend_from_slice(ranges);
        }
        Ok(Datum::Multirange(Arc::new(Multirange::new(element, all)?)))
    }

    fn finish_inner(&self) -> Result<Datum> {
        let kind = self.aggregate.kind;
        Ok(match &self.state {
            State::Count(count) => Datum::Int8(*count),
            State::Integers { count: 0, .. }
            | State::Numbers { count: 0, .. }
            | State::Intervals { count: 0, .. } => Datum::Null,
            State::Integers { count, sum } => match (kind, self.argument) {
                (Kind::Avg, _) => {
                    let count = Numeric::from(*count);
                    Datum::Numeric(Numeric::new(*sum, 0).div(&count)?)
                }
                (_, TypeId::INT8) => Datum::Numeric(Numeric::new(*sum, 0)),
                _ => Datum::Int8(i64::try_from(*sum).map_err(|_| integer_overflow())?),
            },
            State::Numbers { count, sum } => match kind {
                Kind::Avg => Datum::Numeric(sum.bounded()?.div(&Numeric::from(*count))?),
                _ => Datum::Numeric(sum.bounded()?),
            },
            State::Floats { count, sum } => match (kind, self.argument) {
                _ if *count == 0.0 => Datum::Null,
                (Kind::Avg, _) => Datum::Float8(sum / count),
                (_, TypeId::FLOAT4) => Datum::Float4(*sum as f32),
                _ => Datum::Float8(*sum),
            },
            State::Intervals { count, sum } => match kind {
                Kind::Avg => Datum::Interval(sum.div(*count as f64)?),
                _ => Datum::Interval(*sum),
            },
            State::Squares {
                count,
                sum,
                squares,
            } => spread_of_numbers(kind, *count, sum, squares)?,
            State::Deviations { count, squares, .. } => spread_of_floats(kind, *count, *squares),
            State::Value(value) => value.clone(),
            State::Text(text) => text.as_ref().map_or(Datum::Null, Datum::text),
            State::Bytes(bytes) => bytes.as_ref().map_or(Datum::Null, Datum::bytea),
            State::Sorted(sorted) => sorted.finish()?,
            State::Vectors(sums) => sums.finish()?,
            State::Pairs(pairs) => match kind {
                Kind::Regression(fit) => pairs.finish(fit),
                _ => Datum::Null,
            },
            State::Json(state) => match kind {
                Kind::Json(gathering) => gathering.finish(state)?,
                _ => Datum::Null,
            },
            State::Elements(elements, _) => match elements {
                None => Datum::Null,
                Some(values) if kind == Kind::Ranges => self.joined(values)?,
                Some(values) if kind == Kind::CollectArrays => array_shapes::stacked(values)?,
                Some(elements) => {
                    let mut all = Vec::with_capacity(elements.len());
                    for some in elements.chunks(COPIED_AT_ONCE) {
                        coro::work(some.len() * ELEMENT_WORK)?;
                        all.extend_from_slice(some);
                    }
                    Datum::Array(Arc::new(Array::of(self.argument, all)))
                }
            },
        })
    }
}

/// What is in both of two ranges, or of two multiranges.
fn intersection(a: &Datum, b: &Datum) -> Result<Datum> {
    let (Some((element, x)), Some((_, y))) = (range::ranges_of(a), range::ranges_of(b)) else {
        return Err(wrong(b));
    };
    let mut common = range::intersect(element, x, y)?;
    Ok(match a {
        Datum::Range(_) => range::datum(common.pop().unwrap_or_else(|| Range::empty(element))),
        _ => Datum::Multirange(Arc::new(Multirange::new(element, common)?)),
    })
}

/// The value kept after another one.
fn combine(kind: Kind, argument: TypeId, kept: Datum, value: &Datum) -> Result<Datum> {
    if kept.is_null() {
        return Ok(value.clone());
    }
    if let (Kind::Min | Kind::Max, Datum::Array(array)) = (kind, &kept) {
        comparison::check_sortable(array.element)?;
    }
    let replaces = |order: Ordering| match comparison::keeps_first(argument) {
        true => order.is_gt(),
        false => order.is_ge(),
    };
    let order = || compare::compare(argument, value, &kept);
    let is_bits = matches!(kept, Datum::Bits(_));
    Ok(match kind {
        Kind::Min if replaces(order().reverse()) => value.clone(),
        Kind::Max if replaces(order()) => value.clone(),
        Kind::Min | Kind::Max => kept,
        Kind::Sum => match (&kept, value) {
            (Datum::Money(a), Datum::Money(b)) => money::sum(a.checked_add(*b))?,
            _ => return Err(wrong(value)),
        },
        Kind::And => Datum::Bool(kept.is_true() && value.is_true()),
        Kind::Or => Datum::Bool(kept.is_true() || value.is_true()),
        Kind::Intersect => intersection(&kept, value)?,
        Kind::BitAnd if is_bits => bits::combined(&kept, value, "AND")?,
        Kind::BitOr if is_bits => bits::combined(&kept, value, "OR")?,
        Kind::BitXor if is_bits => bits::combined(&kept, value, "XOR")?,
        _ => {
            let (a, b) = (integer(&kept)?, integer(value)?);
            let bits = match kind {
                Kind::BitAnd => a & b,
                Kind::BitOr => a | b,
                _ => a ^ b,
            };
            match kept {
                Datum::Int2(_) => Datum::Int2(bits as i16),
                Datum::Int4(_) => Datum::Int4(bits as i32),
                _ => Datum::Int8(bits),
            }
        }
    })
}

/// One more value by Youngs and Cramer's recurrence.
fn deviate(count: &mut f64, sum: &mut f64, squares: &mut f64, value: f64) -> Result<()> {
    let before = *sum;
    *count += 1.0;
    *sum += value;
    if *count > 1.0 {
        let distance = value * *count - *sum;
        *squares += distance * distance / (*count * (*count - 1.0));
        if sum.is_infinite() || squares.is_infinite() {
            if before.is_finite() && value.is_finite() {
                return Err(float_overflow());
            }
            *squares = f64::NAN;
        }
    } else if !value.is_finite() {
        *squares = f64::NAN;
    }
    Ok(())
}

fn merge_deviations(a: (&mut f64, &mut f64, &mut f64), b: (f64, f64, f64)) -> Result<()> {
    let (count, sum, squares) = a;
    if b.0 == 0.0 {
        return Ok(());
    }
    if *count == 0.0 {
        (*count, *sum, *squares) = b;
        return Ok(());
    }
    let distance = *sum / *count - b.1 / b.0;
    let total = *count + b.0;
    *squares += b.2 + *count * b.0 * distance * distance / total;
    *sum = add_floats(*sum, b.1)?;
    *count = total;
    Ok(())
}

/// How many values there must be, and whether the root is taken.
fn spread_kind(kind: Kind) -> (Spread, bool) {
    match kind {
        Kind::Deviation(spread) => (spread, true),
        Kind::Variance(spread) => (spread, false),
        _ => (Spread::Population, false),
    }
}

fn spread_of_floats(kind: Kind, count: f64, squares: f64) -> Datum {
    let (spread, root) = spread_kind(kind);
    let variance = match spread {
        Spread::Sample if count <= 1.0 => return Datum::Null,
        Spread::Population if count == 0.0 => return Datum::Null,
        Spread::Sample => squares / (count - 1.0),
        Spread::Population => squares / count,
    };
    Datum::Float8(if root { variance.sqrt() } else { variance })
}

fn spread_of_numbers(kind: Kind, count: i64, sum: &Numeric, squares: &Numeric) -> Result<Datum> {
    let (spread, root) = spread_kind(kind);
    let least = match spread {
        Spread::Sample => 2,
        Spread::Population => 1,
    };
    if count < least {
        return Ok(Datum::Null);
    }
    if !sum.is_finite() {
        return Ok(Datum::Numeric(Numeric::NAN));
    }
    let n = Numeric::from(count);
    let squared = sum.mul_unbounded(sum)?;
    let top = n.mul_unbounded(squares)?.add_unbounded(&squared.neg())?;
    if top.is_negative() || top.is_zero() {
        return Ok(Datum::Numeric(Numeric::ZERO));
    }
    let bottom = match spread {
        Spread::Sample => n.mul(&Numeric::from(count - 1))?,
        Spread::Population => n.mul(&n)?,
    };
    let variance = top.div(&bottom)?;
    Ok(Datum::Numeric(match root {
        true => variance.sqrt_to(variance.scale())?,
        false => variance,
    }))
}
