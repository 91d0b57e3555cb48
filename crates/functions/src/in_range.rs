//! How far a value lies from another: the ends of RANGE frames with an offset.
//!
//! `RANGE 3 PRECEDING` begins at the first row whose value is not below the row's own less 3. Which
//! offsets go with which columns is a list ([`offset_types`]); [`in_range`] compares.
//!
//! # Rules
//! - Integers are compared without overflow.
//! - A NaN lies behind everything and equals itself, whatever the offset.
//! - An infinity moved by an infinite offset the other way counts as in range.
//! - Times of day do not wrap around at midnight; of their offsets only the time counts.
//!
//! Source: PostgreSQL 15 manual, section 4.2.8, and its `in_range` functions.

use std::cmp::Ordering;

use base::error::{Error, Result, SqlState};

use types::datetime::{date, timestamp};
use types::{compare, float, Datum, EvalContext, Interval, Numeric, TypeId};

/// The types that an offset may have for a column of that type; none: RANGE takes no offset there.
pub fn offset_types(column: TypeId) -> &'static [TypeId] {
    const INTEGERS: &[TypeId] = &[TypeId::INT8, TypeId::INT4, TypeId::INT2];
    match column {
        TypeId::INT2 | TypeId::INT4 => INTEGERS,
        TypeId::INT8 => &[TypeId::INT8],
        TypeId::FLOAT4 | TypeId::FLOAT8 => &[TypeId::FLOAT8],
        TypeId::NUMERIC => &[TypeId::NUMERIC],
        TypeId::DATE
        | TypeId::TIME
        | TypeId::TIMETZ
        | TypeId::TIMESTAMP
        | TypeId::TIMESTAMPTZ
        | TypeId::INTERVAL => &[TypeId::INTERVAL],
        _ => &[],
    }
}

/// Where a row is looked for: the row at work, and how far from it.
#[derive(Clone, Copy, Debug)]
pub struct Reach<'a> {
    /// The value of the row at work; not NULL.
    pub base: &'a Datum,
    /// How far; not NULL.
    pub offset: &'a Datum,
    /// Whether it is subtracted.
    pub subtract: bool,
    /// Whether the value must be at most there, not at least.
    pub less: bool,
}

/// Whether `value`, of that type and not NULL, is at most (or at least) where `reach` leads.
///
/// # Errors
/// 22013 for a negative offset, 22008 for a date out of range.
pub fn in_range(
    context: &EvalContext,
    ty: TypeId,
    value: &Datum,
    reach: &Reach<'_>,
) -> Result<bool> {
    let order = match ty {
        TypeId::INT2 | TypeId::INT4 | TypeId::INT8 => of_integers(value, reach)?,
        TypeId::FLOAT4 | TypeId::FLOAT8 => of_floats(value, reach)?,
        TypeId::NUMERIC => of_numerics(value, reach)?,
        _ => of_moments(context, value, reach)?,
    };
    Ok(match (order, reach.less) {
        (None, _) => true,
        (Some(order), true) => order.is_le(),
        (Some(order), false) => order.is_ge(),
    })
}

fn negative() -> Error {
    Error::new(
        SqlState::INVALID_PRECEDING_OR_FOLLOWING_SIZE,
        "invalid preceding or following size in window function",
    )
}

fn wrong(value: &Datum) -> Error {
    Error::internal(format!("a frame of rows cannot reach from {value:?}"))
}

fn of_integers(value: &Datum, reach: &Reach<'_>) -> Result<Option<Ordering>> {
    let integer = |value: &Datum| value.as_i64().ok_or_else(|| wrong(value));
    let offset = i128::from(integer(reach.offset)?);
    if offset < 0 {
        return Err(negative());
    }
    let base = i128::from(integer(reach.base)?);
    let end = if reach.subtract {
        base - offset
    } else {
        base + offset
    };
    Ok(Some(i128::from(integer(value)?).cmp(&end)))
}

fn of_floats(value: &Datum, reach: &Reach<'_>) -> Result<Option<Ordering>> {
    let float = |value: &Datum| match value {
        Datum::Float8(value) => Ok(*value),
        Datum::Float4(value) => Ok(f64::from(*value)),
        _ => Err(wrong(value)),
    };
    let (offset, base) = (float(reach.offset)?, float(reach.base)?);
    if offset.is_nan() || offset < 0.0 {
        return Err(negative());
    }
    let value = float(value)?;
    if value.is_nan() || base.is_nan() {
        return Ok(Some(float::compare_floats(value, base)));
    }
    let end = if reach.subtract {
        base - offset
    } else {
        base + offset
    };
    // Only two infinities that cancel each other out give a NaN here.
    Ok((!end.is_nan()).then(|| float::compare_floats(value, end)))
}

fn of_numerics(value: &Datum, reach: &Reach<'_>) -> Result<Option<Ordering>> {
    let (Datum::Numeric(value), Datum::Numeric(base), Datum::Numeric(offset)) =
        (value, reach.base, reach.offset)
    else {
        return Err(wrong(value));
    };
    if offset.is_nan() || offset.is_negative() {
        return Err(negative());
    }
    if value.is_nan() || base.is_nan() {
        return Ok(Some(order_of_numerics(value, base)));
    }
    let end = match reach.subtract {
        true => base.sub(offset)?,
        false => base.add(offset)?,
    };
    Ok((!end.is_nan()).then(|| order_of_numerics(value, &end)))
}

fn order_of_numerics(a: &Numeric, b: &Numeric) -> Ordering {
    let (a, b) = (Datum::Numeric(a.clone()), Datum::Numeric(b.clone()));
    compare::compare(TypeId::NUMERIC, &a, &b)
}

fn of_moments(context: &EvalContext, value: &Datum, reach: &Reach<'_>) -> Result<Option<Ordering>> {
    let Datum::Interval(offset) = reach.offset else {
        return Err(wrong(reach.offset));
    };
    let is_time = matches!(reach.base, Datum::Time(_) | Datum::TimeTz(..));
    let size = match is_time {
        true => i128::from(offset.micros),
        false => offset.total_micros(),
    };
    if size < 0 {
        return Err(negative());
    }
    let moved = |at: i64, step: fn(&EvalContext, i64, &Interval) -> Result<i64>| {
        let offset = match reach.subtract {
            true => offset.neg()?,
            false => *offset,
        };
        step(context, at, &offset)
    };
    let local = |_: &EvalContext, at: i64, by: &Interval| timestamp::add(at, by);
    // A sum that leaves the range lies behind every time of day.
    let of_day = |at: i64| match reach.subtract {
        true => i128::from(at) - i128::from(offset.micros),
        false => i128::from(at) + i128::from(offset.micros),
    };
    Ok(Some(match (value, reach.base) {
        (Datum::Date(value), Datum::Date(base)) => {
            date::to_timestamp(*value)?.cmp(&moved(date::to_timestamp(*base)?, local)?)
        }
        (Datum::Timestamp(value), Datum::Timestamp(base)) => value.cmp(&moved(*base, local)?),
        (Datum::TimestampTz(value), Datum::TimestampTz(base)) => {
            value.cmp(&moved(*base, timestamp::add_tz)?)
        }
        (Datum::Time(value), Datum::Time(base)) => i128::from(*value).cmp(&of_day(*base)),
        // As timetz is ordered: by the instant, then by the zone.
        (Datum::TimeTz(value, zone), Datum::TimeTz(base, own)) => {
            const SECOND: i128 = 1_000_000;
            let instant = |at: i128, zone: i32| at + i128::from(zone) * SECOND;
            let value = instant(i128::from(*value), *zone);
            value.cmp(&instant(of_day(*base), *own)).then(zone.cmp(own))
        }
        (Datum::Interval(value), Datum::Interval(base)) => {
            let end = match reach.subtract {
                true => base.sub(offset)?,
                false => base.add(offset)?,
            };
            value.total_micros().cmp(&end.total_micros())
        }
        _ => return Err(wrong(value)),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(ty: TypeId, value: Datum, base: Datum, offset: Datum, subtract: bool) -> (bool, bool) {
        let context = EvalContext::for_tests();
        let within = |less| {
            let reach = Reach {
                base: &base,
                offset: &offset,
                subtract,
                less,
            };
            in_range(&context, ty, &value, &reach).unwrap()
        };
        (within(true), within(false))
    }

    #[test]
    fn integers_do_not_overflow() {
        let far = || Datum::Int8(i64::MAX);
        let low = Datum::Int8(i64::MIN);
        let out = test(TypeId::INT8, low, Datum::Int8(-2), far(), true);
        assert_eq!(out, (false, true), "the least bigint is above -2 - max - 1");
        let out = test(TypeId::INT8, far(), Datum::Int8(2), far(), false);
        assert_eq!(out, (true, false));
    }

    #[test]
    fn infinities_that_cancel_are_in_range() {
        let infinity = || Datum::Float8(f64::INFINITY);
        let out = test(
            TypeId::FLOAT8,
            Datum::Float8(1.0),
            infinity(),
            infinity(),
            true,
        );
        assert_eq!(out, (true, true));
        let nan = || Datum::Float8(f64::NAN);
        let out = test(TypeId::FLOAT8, nan(), nan(), infinity(), true);
        assert_eq!(out, (true, true));
        let out = test(TypeId::FLOAT8, nan(), Datum::Float8(1.0), infinity(), false);
        assert_eq!(out, (false, true), "a NaN lies behind an infinity");
    }

    #[test]
    fn times_of_day_do_not_wrap() {
        let hours = |count: i64| Datum::Time(count * 3_600_000_000);
        let offset = Datum::Interval(Interval {
            micros: 3 * 3_600_000_000,
            ..Interval::default()
        });
        let out = test(TypeId::TIME, hours(1), hours(23), offset.clone(), false);
        assert_eq!(out, (true, false), "01:00 is before 26:00");
        let out = test(TypeId::TIME, hours(23), hours(1), offset, true);
        assert_eq!(out, (false, true));
    }
}
