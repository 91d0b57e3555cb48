//! Comparison of values of any two types that PostgreSQL compares.

use std::cmp::Ordering;

use base::error::{Error, Result};

use super::arguments::Arguments;
use super::Call;
use crate::types::datetime::{date, timestamp};
use crate::types::{compare, Datum};

fn order(call: &Call<'_>, args: &[Datum]) -> Result<Ordering> {
    match args {
        [a, b] => {
            let kind = call.argument_types.first().copied();
            Ok(compare::compare(
                kind.unwrap_or(crate::types::TypeId::UNKNOWN),
                a,
                b,
            ))
        }
        _ => Err(Error::internal("a comparison of other than two values")),
    }
}

macro_rules! comparisons {
    ($($name:ident $cross:ident $test:ident;)*) => {
        $(
            pub(crate) fn $name(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
                order(call, args).map(|order| Datum::Bool(order.$test()))
            }
            /// The same between date, timestamp and timestamp with time zone.
            pub(crate) fn $cross(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
                moments(call, args).map(|order| Datum::Bool(order.$test()))
            }
        )*
    };
}

comparisons! {
    eq cross_eq is_eq;
    ne cross_ne is_ne;
    lt cross_lt is_lt;
    le cross_le is_le;
    gt cross_gt is_gt;
    ge cross_ge is_ge;
}

/// -1, 0 or 1.
pub(crate) fn cmp(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(order(call, args)? as i32))
}

pub(crate) fn larger(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let index = usize::from(order(call, args)?.is_lt());
    args.any(index).cloned()
}

pub(crate) fn smaller(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let index = usize::from(order(call, args)?.is_gt());
    args.any(index).cloned()
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
