//! The types `timestamp` and `timestamp with time zone`.

use base::error::{Error, Result, SqlState};

use super::calendar::{days_in_month, in_range, Fields};
use super::parse::{parse, refuse, Expect, Parsed, Refusal};
use super::style::{DateOutput, DateStyle};
use super::zone::{write_offset, Zone};
use super::{date, overflow, time, DAY, SECOND, UNIX_TO_EPOCH_SECONDS};
use crate::{Datum, EvalContext, Interval};

/// After all others.
pub const INFINITY: i64 = i64::MAX;
/// Before all others.
pub const NEGATIVE_INFINITY: i64 = i64::MIN;

/// Whether a timestamp is neither infinity.
pub fn is_finite(micros: i64) -> bool {
    micros != INFINITY && micros != NEGATIVE_INFINITY
}

/// 22008 "timestamp out of range".
pub fn out_of_range() -> Error {
    overflow("timestamp out of range")
}

fn checked(micros: Option<i64>) -> Result<i64> {
    micros
        .filter(|micros| in_range(*micros))
        .ok_or_else(out_of_range)
}

/// Rounds to so many digits of a second.
pub fn round(micros: i64, typmod: i32) -> Result<i64> {
    if !is_finite(micros) {
        return Ok(micros);
    }
    Ok(time::round(micros, typmod))
}

/// Reads a timestamp; a zone in the text is ignored.
pub fn input(context: &EvalContext, typmod: i32, text: &str) -> Result<Datum> {
    let micros = match parse(context, Expect::Timestamp, text)? {
        Parsed::Infinity { negative: false } => INFINITY,
        Parsed::Infinity { negative: true } => NEGATIVE_INFINITY,
        Parsed::Epoch => -UNIX_TO_EPOCH_SECONDS * SECOND,
        Parsed::Now => context.time_zone.to_local(context.transaction_start),
        Parsed::Moment {
            fields, has_date, ..
        } => {
            if !has_date {
                return Err(refuse(Refusal::Syntax, "timestamp", text));
            }
            fields
                .timestamp()
                .ok_or_else(|| overflow(format!("timestamp out of range: \"{text}\"")))?
        }
    };
    round(micros, typmod).map(Datum::Timestamp)
}

/// Reads a timestamp with time zone; without a zone it is the session's.
pub fn input_tz(context: &EvalContext, typmod: i32, text: &str) -> Result<Datum> {
    let micros = match parse(context, Expect::TimestampTz, text)? {
        Parsed::Infinity { negative: false } => INFINITY,
        Parsed::Infinity { negative: true } => NEGATIVE_INFINITY,
        Parsed::Epoch => -UNIX_TO_EPOCH_SECONDS * SECOND,
        Parsed::Now => context.transaction_start,
        Parsed::Moment {
            fields,
            offset,
            has_date,
            ..
        } => {
            if !has_date {
                return Err(refuse(Refusal::Syntax, "timestamp with time zone", text));
            }
            let wrong = || overflow(format!("timestamp out of range: \"{text}\""));
            let local = i128::from(fields.days()) * i128::from(DAY) + i128::from(fields.time());
            let local = i64::try_from(local).map_err(|_| wrong())?;
            let offset = offset.unwrap_or_else(|| context.time_zone.offset_of_local(local));
            local
                .checked_sub(i64::from(offset) * SECOND)
                .filter(|micros| in_range(*micros))
                .ok_or_else(wrong)?
        }
    };
    round(micros, typmod).map(Datum::TimestampTz)
}

fn write_special(micros: i64, out: &mut String) -> bool {
    match micros {
        INFINITY => out.push_str("infinity"),
        NEGATIVE_INFINITY => out.push_str("-infinity"),
        _ => return false,
    }
    true
}

/// Appends a timestamp.
///
/// # Errors
/// None so far.
pub fn write(style: DateStyle, micros: i64, out: &mut String) -> Result<()> {
    if write_special(micros, out) {
        return Ok(());
    }
    if style.output != DateOutput::Iso {
        style.write_timestamp(micros, None, out);
        return Ok(());
    }
    let fields = Fields::of(micros);
    date::write_civil(fields.year, fields.month, fields.day, out);
    out.push(' ');
    time::write(fields.time(), out);
    if fields.year <= 0 {
        out.push_str(" BC");
    }
    Ok(())
}

/// Appends an instant as it is on the session's clock, with the offset or the zone's name.
///
/// # Errors
/// None so far.
pub fn write_tz(context: &EvalContext, micros: i64, out: &mut String) -> Result<()> {
    if write_special(micros, out) {
        return Ok(());
    }
    let offset = context.time_zone.offset_at(micros);
    let local = micros.saturating_add(i64::from(offset) * SECOND);
    if context.date_style.output != DateOutput::Iso {
        let zone = Some((&context.time_zone, micros));
        context.date_style.write_timestamp(local, zone, out);
        return Ok(());
    }
    let fields = Fields::of(local);
    date::write_civil(fields.year, fields.month, fields.day, out);
    out.push(' ');
    time::write(fields.time(), out);
    write_offset(offset, out);
    if fields.year <= 0 {
        out.push_str(" BC");
    }
    Ok(())
}

/// The date moved by months, its day bounded by the month's end.
fn add_months(fields: &mut Fields, months: i32) {
    let total = fields.year * 12 + fields.month - 1 + i64::from(months);
    fields.year = total.div_euclid(12);
    fields.month = total.rem_euclid(12) + 1;
    fields.day = fields.day.min(days_in_month(fields.year, fields.month));
}

fn add_calendar(local: i64, interval: &Interval) -> Option<i64> {
    let mut fields = Fields::of(local);
    if interval.months != 0 {
        add_months(&mut fields, interval.months);
    }
    let days = fields.days() + i64::from(interval.days);
    let micros = i128::from(days) * i128::from(DAY) + i128::from(fields.time());
    i64::try_from(micros)
        .ok()
        .filter(|micros| in_range(*micros))
}

/// The timestamp plus an interval: months first, then days, then time.
///
/// # Errors
/// 22008.
pub fn add(micros: i64, interval: &Interval) -> Result<i64> {
    if !is_finite(micros) {
        return Ok(micros);
    }
    let moved = match interval.months == 0 && interval.days == 0 {
        true => Some(micros),
        false => add_calendar(micros, interval),
    };
    checked(moved.and_then(|moved| moved.checked_add(interval.micros)))
}

/// The instant plus an interval: months and days on the session's clock, then time.
///
/// # Errors
/// 22008.
pub fn add_tz(context: &EvalContext, micros: i64, interval: &Interval) -> Result<i64> {
    if !is_finite(micros) {
        return Ok(micros);
    }
    let mut moved = Some(micros);
    if interval.months != 0 {
        let only = Interval {
            months: interval.months,
            ..Interval::default()
        };
        let local = context.time_zone.to_local(micros);
        moved = add_calendar(local, &only).and_then(|local| context.time_zone.to_utc(local));
    }
    if interval.days != 0 {
        let only = Interval {
            days: interval.days,
            ..Interval::default()
        };
        moved = moved
            .and_then(|at| add_calendar(context.time_zone.to_local(at), &only))
            .and_then(|local| context.time_zone.to_utc(local));
    }
    checked(moved.and_then(|moved| moved.checked_add(interval.micros)))
}

/// The time between two timestamps, in days and time.
///
/// # Errors
/// 22008 for infinite ones.
pub fn difference(a: i64, b: i64) -> Result<Interval> {
    if !is_finite(a) || !is_finite(b) {
        return Err(overflow("cannot subtract infinite timestamps"));
    }
    // PostgreSQL lets this wrap, and so do we: two valid timestamps may be too far apart.
    let micros = a.wrapping_sub(b);
    Ok(Interval {
        months: 0,
        days: (micros / DAY) as i32,
        micros: micros % DAY,
    })
}

/// `age`: years, months, days and time between two local timestamps. The infinities count as the
/// integers that they are, as in PostgreSQL 15.
///
/// # Errors
/// 22008 for -infinity, while PostgreSQL takes infinity for the last moment there is.
pub fn age(a: i64, b: i64) -> Result<Interval> {
    if a == NEGATIVE_INFINITY || b == NEGATIVE_INFINITY {
        return Err(out_of_range());
    }
    let negative = a < b;
    let (later, earlier) = if negative { (b, a) } else { (a, b) };
    let (late, early) = (Fields::of(later), Fields::of(earlier));
    let mut micros = late.time() - early.time();
    let mut days = late.day - early.day;
    let mut months = (late.year - early.year) * 12 + late.month - early.month;
    if micros < 0 {
        micros += DAY;
        days -= 1;
    }
    if days < 0 {
        // Days are borrowed from the month of the earlier one, or of the first operand if swapped.
        let lender = if negative { Fields::of(a) } else { early };
        days += days_in_month(lender.year, lender.month);
        months -= 1;
    }
    let sign = if negative { -1 } else { 1 };
    Ok(Interval {
        months: (sign * months) as i32,
        days: (sign * days) as i32,
        micros: sign * micros,
    })
}

/// The local time of an instant.
pub fn to_local(zone: &Zone, micros: i64) -> i64 {
    match is_finite(micros) {
        true => zone.to_local(micros),
        false => micros,
    }
}

/// The instant of a local time.
///
/// # Errors
/// 22008.
pub fn to_utc(zone: &Zone, local: i64) -> Result<i64> {
    match is_finite(local) {
        true => zone.to_utc(local).ok_or_else(out_of_range),
        false => Ok(local),
    }
}

/// The date of a local timestamp.
pub fn to_date(local: i64) -> i32 {
    match local {
        INFINITY => date::INFINITY,
        NEGATIVE_INFINITY => date::NEGATIVE_INFINITY,
        _ => local.div_euclid(DAY) as i32,
    }
}

/// `to_timestamp(double precision)`: seconds since 1970.
///
/// # Errors
/// 22008.
pub fn from_unix(seconds: f64) -> Result<i64> {
    if seconds.is_nan() {
        return Err(overflow("timestamp cannot be NaN"));
    }
    if seconds.is_infinite() {
        return Ok(if seconds > 0.0 {
            INFINITY
        } else {
            NEGATIVE_INFINITY
        });
    }
    let wrong = || {
        let shown = crate::float::general(seconds, 6);
        overflow(format!("timestamp out of range: \"{shown}\""))
    };
    let micros = ((seconds - UNIX_TO_EPOCH_SECONDS as f64) * SECOND as f64).round_ties_even();
    if micros.abs() > 9.3e18 {
        return Err(wrong());
    }
    Some(micros as i64)
        .filter(|m| in_range(*m))
        .ok_or_else(wrong)
}

/// `make_timestamp`.
///
/// # Errors
/// 22008.
pub fn make(year: i32, month: i32, day: i32, hour: i32, minute: i32, second: f64) -> Result<i64> {
    let wrong = |error: Error| match error.message().starts_with("date field") {
        true => overflow(format!(
            "date field value out of range: {year}-{month:02}-{day:02}"
        )),
        false => error,
    };
    let days = date::make(year, month, day).map_err(wrong)?;
    let time = time::make(hour, minute, second)?;
    let shown = || {
        Error::new(
            SqlState::DATETIME_FIELD_OVERFLOW,
            format!(
                "timestamp out of range: {year}-{month:02}-{day:02} {hour}:{minute:02}:{}",
                time::seconds_in_message(second)
            ),
        )
    };
    i64::from(days)
        .checked_mul(DAY)
        .and_then(|midnight| midnight.checked_add(time))
        .filter(|micros| in_range(*micros))
        .ok_or_else(shown)
}
