//! The types `time` and `time with time zone`.

use base::error::Result;

use super::calendar::Fields;
use super::date::put_two;
use super::parse::{parse, refuse, Expect, Parsed, Refusal};
use super::zone::write_offset;
use super::{overflow, DAY, SECOND};
use crate::{Datum, EvalContext, Interval};

/// Rounds microseconds to so many digits of a second, halves away from zero.
pub fn round(micros: i64, typmod: i32) -> i64 {
    if !(0..6).contains(&typmod) {
        return micros;
    }
    let unit = 10i64.pow(6 - typmod as u32);
    let half = unit / 2;
    if micros >= 0 {
        (micros + half) / unit * unit
    } else {
        -((half - micros) / unit * unit)
    }
}

/// The time of day and the zone that a text says.
fn read(context: &EvalContext, expect: Expect, text: &str) -> Result<(i64, Option<i32>)> {
    let syntax = |kind: &str| refuse(Refusal::Syntax, kind, text);
    let kind = match expect {
        Expect::TimeTz => "time with time zone",
        _ => "time",
    };
    match parse(context, expect, text)? {
        Parsed::Moment {
            fields,
            offset,
            has_time: true,
            ..
        } => Ok((fields.time(), offset)),
        Parsed::Now => {
            let local = context.time_zone.to_local(context.transaction_start);
            let offset = context.time_zone.offset_at(context.transaction_start);
            Ok((local.rem_euclid(DAY), Some(offset)))
        }
        _ => Err(syntax(kind)),
    }
}

/// Reads a time.
pub fn input(context: &EvalContext, typmod: i32, text: &str) -> Result<Datum> {
    let (micros, _) = read(context, Expect::Time, text)?;
    Ok(Datum::Time(round(micros, typmod)))
}

/// Reads a time with time zone.
pub fn input_tz(context: &EvalContext, typmod: i32, text: &str) -> Result<Datum> {
    let (micros, offset) = read(context, Expect::TimeTz, text)?;
    let zone = offset.unwrap_or_else(|| context.time_zone.offset_at(context.transaction_start));
    Ok(Datum::TimeTz(round(micros, typmod), -zone))
}

/// Appends `hh:mm:ss[.ffffff]`.
pub fn write(micros: i64, out: &mut String) {
    let fields = Fields::of_time(micros);
    put_two(fields.hour, out);
    out.push(':');
    put_two(fields.minute, out);
    out.push(':');
    put_two(fields.second, out);
    write_fraction(fields.micros, out);
}

/// Appends a fraction of a second without trailing zeros.
pub fn write_fraction(micros: i64, out: &mut String) {
    if micros != 0 {
        let digits = format!("{micros:06}");
        out.push('.');
        out.push_str(digits.trim_end_matches('0'));
    }
}

/// Appends a time with its zone (in seconds west).
pub fn write_tz(micros: i64, zone: i32, out: &mut String) {
    write(micros, out);
    write_offset(-zone, out);
}

/// `make_time`.
///
/// # Errors
/// 22008.
pub fn make(hour: i32, minute: i32, second: f64) -> Result<i64> {
    let wrong = || {
        overflow(format!(
            "time field value out of range: {hour}:{minute:02}:{}",
            seconds_in_message(second)
        ))
    };
    if !(0..=24).contains(&hour) || !(0..60).contains(&minute) || !(0.0..=60.0).contains(&second) {
        return Err(wrong());
    }
    let micros = (second * SECOND as f64).round_ties_even() as i64;
    let total = (i64::from(hour) * 60 + i64::from(minute)) * 60 * SECOND + micros;
    match total <= DAY {
        true => Ok(total),
        false => Err(wrong()),
    }
}

/// Seconds as C's `%02g` prints them.
pub fn seconds_in_message(second: f64) -> String {
    let text = crate::float::general(second, 6);
    format!("{text:0>2}")
}

/// Time plus an interval's time of day, around midnight.
pub fn add(micros: i64, interval: &Interval) -> i64 {
    (micros + interval.micros % DAY).rem_euclid(DAY)
}
