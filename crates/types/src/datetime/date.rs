//! The type `date`.

use base::error::{Error, Result, SqlState};

use super::calendar::{civil_from_days, date_in_range, days_from_civil, days_in_month};
use super::overflow;
use super::parse::{parse, Expect, Parsed};
use super::style::{DateOutput, DateStyle};
use super::{timestamp, DAY};
use crate::{Datum, EvalContext};

/// The date after all others.
pub const INFINITY: i32 = i32::MAX;
/// The date before all others.
pub const NEGATIVE_INFINITY: i32 = i32::MIN;

/// Whether a date is neither infinity.
pub fn is_finite(days: i32) -> bool {
    days != INFINITY && days != NEGATIVE_INFINITY
}

/// Days as a date.
///
/// # Errors
/// 22008 "date out of range".
pub fn checked(days: i64) -> Result<i32> {
    match date_in_range(days) {
        true => Ok(days as i32),
        false => Err(overflow("date out of range")),
    }
}

/// Reads a date.
pub fn input(context: &EvalContext, text: &str) -> Result<Datum> {
    let days = match parse(context, Expect::Date, text)? {
        Parsed::Infinity { negative: false } => return Ok(Datum::Date(INFINITY)),
        Parsed::Infinity { negative: true } => return Ok(Datum::Date(NEGATIVE_INFINITY)),
        Parsed::Epoch => days_from_civil(1970, 1, 1),
        Parsed::Now => {
            let local = context.time_zone.to_local(context.transaction_start);
            local.div_euclid(DAY)
        }
        Parsed::Moment {
            fields, has_date, ..
        } => {
            if !has_date {
                return Err(super::parse::refuse(
                    super::parse::Refusal::Syntax,
                    "date",
                    text,
                ));
            }
            fields.days()
        }
    };
    match date_in_range(days) {
        true => Ok(Datum::Date(days as i32)),
        false => Err(overflow(format!("date out of range: \"{text}\""))),
    }
}

/// Appends a date.
pub fn write(style: DateStyle, days: i32, out: &mut String) {
    match days {
        INFINITY => return out.push_str("infinity"),
        NEGATIVE_INFINITY => return out.push_str("-infinity"),
        _ => {}
    }
    let (year, month, day) = civil_from_days(i64::from(days));
    if style.output != DateOutput::Iso {
        return style.write_date(year, month, day, out);
    }
    write_civil(year, month, day, out);
    if year <= 0 {
        out.push_str(" BC");
    }
}

/// Appends `yyyy-mm-dd`, without the era.
pub fn write_civil(year: i64, month: i64, day: i64, out: &mut String) {
    let shown = if year <= 0 { 1 - year } else { year };
    let mut digits = [0u8; 6];
    if shown < 10_000 {
        let two = |value: i64| [b'0' + (value / 10) as u8, b'0' + (value % 10) as u8];
        let (century, of_century) = (two(shown / 100), two(shown % 100));
        digits[..4].copy_from_slice(&[century[0], century[1], of_century[0], of_century[1]]);
        out.push_str(std::str::from_utf8(&digits[..4]).unwrap_or_default());
    } else {
        out.push_str(&shown.to_string());
    }
    for part in [month, day] {
        out.push('-');
        put_two(part, out);
    }
}

/// Appends two digits.
pub fn put_two(value: i64, out: &mut String) {
    out.push(char::from(b'0' + (value / 10 % 10) as u8));
    out.push(char::from(b'0' + (value % 10) as u8));
}

/// `make_date`.
///
/// # Errors
/// 22008.
pub fn make(year: i32, month: i32, day: i32) -> Result<i32> {
    let wrong = || {
        overflow(format!(
            "date field value out of range: {year}-{month:02}-{day:02}"
        ))
    };
    let astronomical = match year {
        0 => return Err(wrong()),
        y if y < 0 => i64::from(y) + 1,
        y => i64::from(y),
    };
    let (month_wide, day_wide) = (i64::from(month), i64::from(day));
    if !(1..=12).contains(&month) || day < 1 || day_wide > days_in_month(astronomical, month_wide) {
        return Err(wrong());
    }
    let days = days_from_civil(astronomical, month_wide, day_wide);
    match date_in_range(days) {
        true => Ok(days as i32),
        false => Err(overflow(format!(
            "date out of range: {year}-{month:02}-{day:02}"
        ))),
    }
}

/// Midnight of a date.
///
/// # Errors
/// 22008 "date out of range for timestamp".
pub fn to_timestamp(days: i32) -> Result<i64> {
    match days {
        INFINITY => Ok(timestamp::INFINITY),
        NEGATIVE_INFINITY => Ok(timestamp::NEGATIVE_INFINITY),
        _ => i64::from(days)
            .checked_mul(DAY)
            .filter(|micros| super::calendar::in_range(*micros))
            .ok_or_else(|| overflow("date out of range for timestamp")),
    }
}

/// Midnight of a date in the session's zone, as an instant.
///
/// # Errors
/// 22008.
pub fn to_timestamptz(context: &EvalContext, days: i32) -> Result<i64> {
    let local = to_timestamp(days)?;
    if !timestamp::is_finite(local) {
        return Ok(local);
    }
    context
        .time_zone
        .to_utc(local)
        .ok_or_else(|| overflow("date out of range for timestamp"))
}

/// The date plus days.
///
/// # Errors
/// 22008.
pub fn add_days(days: i32, more: i64) -> Result<i32> {
    match is_finite(days) {
        true => checked(i64::from(days) + more),
        false => Ok(days),
    }
}

/// Days between two dates.
///
/// # Errors
/// 22008 for infinite ones.
pub fn difference(a: i32, b: i32) -> Result<i32> {
    if !is_finite(a) || !is_finite(b) {
        return Err(overflow("cannot subtract infinite dates"));
    }
    a.checked_sub(b)
        .ok_or_else(|| Error::new(SqlState::DATETIME_FIELD_OVERFLOW, "date out of range"))
}
