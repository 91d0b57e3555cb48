//! Comparison of values of any two types that PostgreSQL compares.

use std::cmp::Ordering;

use base::error::{Error, Result, SqlState};

use super::arguments::Arguments;
use super::Call;
use types::datetime::{date, timestamp};
use types::{compare, Datum, TypeId};

fn order(call: &Call<'_>, args: &[Datum]) -> Result<Ordering> {
    match args {
        [a, b] => {
            let kind = call.argument_types.first().copied();
            Ok(compare::compare(
                kind.unwrap_or(types::TypeId::UNKNOWN),
                a,
                b,
            ))
        }
        _ => Err(Error::internal("a comparison of other than two values")),
    }
}

/// The same where equality is not enough: arrays are compared element by element, and not all
/// elements have an order.
fn sorted(call: &Call<'_>, args: &[Datum]) -> Result<Ordering> {
    for value in args {
        if let Datum::Array(array) = value {
            check_sortable(array.element)?;
        }
    }
    order(call, args)
}

/// Whether arrays are equal, which those of other bounds are not, whatever their elements.
fn same_array(call: &Call<'_>, args: &[Datum]) -> Result<bool> {
    match args {
        [Datum::Array(a), Datum::Array(b)] if a.dimensions == b.dimensions => {
            check_equality(a.element)?;
            order(call, args).map(Ordering::is_eq)
        }
        [Datum::Array(_), Datum::Array(_)] => Ok(false),
        _ => order(call, args).map(Ordering::is_eq),
    }
}

pub(crate) fn array_eq(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    same_array(call, args).map(Datum::Bool)
}

pub(crate) fn array_ne(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    same_array(call, args).map(|same| Datum::Bool(!same))
}

/// 42883 for a type of whose values nobody knows whether they are equal.
pub fn check_equality(kind: TypeId) -> Result<()> {
    match kind.has_equality() {
        true => Ok(()),
        false => Err(Error::new(
            SqlState::UNDEFINED_FUNCTION,
            format!("could not identify an equality operator for type {kind}"),
        )),
    }
}

/// 42883 for a type without an order.
pub fn check_sortable(kind: TypeId) -> Result<()> {
    match kind.is_sortable() {
        true => Ok(()),
        false => Err(Error::new(
            SqlState::UNDEFINED_FUNCTION,
            format!("could not identify a comparison function for type {kind}"),
        )),
    }
}

macro_rules! comparisons {
    ($($name:ident $cross:ident $order:ident $test:ident;)*) => {
        $(
            pub(crate) fn $name(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
                $order(call, args).map(|order| Datum::Bool(order.$test()))
            }
            /// The same between date, timestamp and timestamp with time zone.
            pub(crate) fn $cross(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
                moments(call, args).map(|order| Datum::Bool(order.$test()))
            }
        )*
    };
}

comparisons! {
    eq cross_eq order is_eq;
    ne cross_ne order is_ne;
    lt cross_lt sorted is_lt;
    le cross_le sorted is_le;
    gt cross_gt sorted is_gt;
    ge cross_ge sorted is_ge;
}

/// A shorter list of oids is below a longer one; of the same length, the first that differs tells.
fn vectors(args: &[Datum]) -> Result<Ordering> {
    let (a, b) = (&args.array(0)?.elements, &args.array(1)?.elements);
    let lengths = a.len().cmp(&b.len());
    let pairs = a.iter().zip(b.iter());
    let mut orders = pairs.map(|(a, b)| types::compare(TypeId::OID, a, b));
    Ok(lengths.then_with(|| {
        orders
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    }))
}

macro_rules! of_vectors {
    ($($name:ident $test:ident;)*) => {
        $(
            pub(crate) fn $name(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
                vectors(args).map(|order| Datum::Bool(order.$test()))
            }
        )*
    };
}

of_vectors! {
    vector_eq is_eq;
    vector_ne is_ne;
    vector_lt is_lt;
    vector_le is_le;
    vector_gt is_gt;
    vector_ge is_ge;
}

/// The first bytes that differ; zero stands for the end.
fn differing(a: &[u8], b: &[u8]) -> i32 {
    let at = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let byte = |bytes: &[u8]| bytes.get(at).map_or(0, |byte| i32::from(*byte));
    byte(a) - byte(b)
}

/// Below, at or above zero. What PostgreSQL's give besides -1 and 1 is kept, since some store it:
/// the difference of small numbers and of the first bytes that differ.
pub(crate) fn cmp(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let order = sorted(call, args)?;
    let difference = match (args.any(0)?, args.any(1)?) {
        (Datum::Char(a), Datum::Char(b)) => i32::from(*a) - i32::from(*b),
        (Datum::Int2(a), Datum::Int2(b)) => i32::from(*a) - i32::from(*b),
        (Datum::Text(a), Datum::Text(b)) if order.is_ne() => differing(a.as_bytes(), b.as_bytes()),
        (Datum::Uuid(a), Datum::Uuid(b)) => differing(&a[..], &b[..]),
        (Datum::Bytea(a), Datum::Bytea(b)) => {
            let shared = a.len().min(b.len());
            match differing(&a[..shared], &b[..shared]) {
                0 => order as i32,
                difference => difference,
            }
        }
        _ => order as i32,
    };
    Ok(Datum::Int4(difference))
}

/// Whether the first of equal values stands for both, as in PostgreSQL that of `bpchar` alone does.
pub(crate) fn keeps_first(kind: TypeId) -> bool {
    kind == TypeId::BPCHAR
}

/// The first value or the second, by how the first compares.
fn extreme(args: &[Datum], order: Ordering, kind: TypeId) -> Result<Datum> {
    let first = order.is_gt() || order.is_eq() && keeps_first(kind);
    args.any(usize::from(!first)).cloned()
}

pub(crate) fn larger(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    extreme(args, sorted(call, args)?, call.result)
}

pub(crate) fn smaller(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    extreme(args, sorted(call, args)?.reverse(), call.result)
}

/// A moment as microseconds, wide enough for any date; the flag says that it is on the session's
/// clock rather than UTC.
fn moment(value: &Datum) -> Result<(i128, bool)> {
    let wide = |micros: i64| match micros {
        timestamp::INFINITY => i128::MAX,
        timestamp::NEGATIVE_INFINITY => i128::MIN,
        _ => i128::from(micros),
    };
    match value {
        Datum::Timestamp(micros) => Ok((wide(*micros), true)),
        Datum::TimestampTz(micros) => Ok((wide(*micros), false)),
        Datum::Date(date::INFINITY) => Ok((i128::MAX, true)),
        Datum::Date(date::NEGATIVE_INFINITY) => Ok((i128::MIN, true)),
        Datum::Date(days) => Ok((i128::from(*days) * 86_400_000_000, true)),
        _ => Err(Error::internal(
            "a comparison of values that are no moments",
        )),
    }
}

fn moments(call: &Call<'_>, args: &[Datum]) -> Result<Ordering> {
    let (mut a, a_local) = moment(args.any(0)?)?;
    let (mut b, b_local) = moment(args.any(1)?)?;
    if a_local != b_local {
        // One is an instant: take the other from the session's clock to UTC.
        let side = if a_local { &mut a } else { &mut b };
        if let Ok(local) = i64::try_from(*side) {
            let offset = call.context.time_zone.offset_of_local(local);
            *side -= i128::from(offset) * 1_000_000;
        }
    }
    Ok(a.cmp(&b))
}
