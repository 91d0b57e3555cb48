//! `date_bin`: the beginning of the interval, of those that follow one another from an origin, in which
//! a moment lies.
//!
//! Source: PostgreSQL 15 manual, section 9.9.3.

use base::error::{Error, Result, SqlState};

use super::arguments::Arguments;
use super::Call;
use types::datetime::{interval, timestamp, DAY};
use types::{Datum, Interval};

/// The beginning, in microseconds.
fn bin(stride: Interval, at: i64, origin: i64) -> Result<i64> {
    if !timestamp::is_finite(at) {
        return Ok(at);
    }
    let wrong = |message: &str| Error::new(SqlState::of("22008"), message);
    if !timestamp::is_finite(origin) {
        return Err(wrong("origin out of range"));
    }
    if stride.months != 0 {
        return Err(Error::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "timestamps cannot be binned into intervals containing months or years",
        ));
    }
    let days = i64::from(stride.days).checked_mul(DAY);
    let length = days.and_then(|days| days.checked_add(stride.micros));
    let length = length.ok_or_else(interval::out_of_range)?;
    if length <= 0 {
        return Err(wrong("stride must be greater than zero"));
    }
    let distance = at.checked_sub(origin).ok_or_else(interval::out_of_range)?;
    let begin = at.checked_sub(distance.rem_euclid(length));
    let begin = begin.filter(|begin| timestamp::is_finite(*begin));
    begin
        .filter(|begin| types::datetime::calendar::in_range(*begin))
        .ok_or_else(timestamp::out_of_range)
}

pub(crate) fn of_timestamp(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (at, origin) = (args.timestamp(1)?, args.timestamp(2)?);
    bin(args.interval(0)?, at, origin).map(Datum::Timestamp)
}

pub(crate) fn of_timestamptz(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (at, origin) = (args.timestamptz(1)?, args.timestamptz(2)?);
    bin(args.interval(0)?, at, origin).map(Datum::TimestampTz)
}
