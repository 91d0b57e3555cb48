//! Functions of dates, times and intervals; the arithmetic itself is in
//! [`types::datetime`].

use base::error::{Error, Result, SqlState};

use super::arguments::Arguments;
use super::{Call, Rows};
use types::datetime::{date, fields, interval, parse, time, timestamp, zone::Zone, DAY, SECOND};
use types::{Datum, Interval, TypeId};

// ---- the clock

pub(crate) fn now(call: &Call<'_>, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::TimestampTz(call.context.transaction_start))
}

pub(crate) fn statement_timestamp(call: &Call<'_>, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::TimestampTz(call.context.statement_start))
}

pub(crate) fn clock_timestamp(call: &Call<'_>, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::TimestampTz(call.context.clock.wall_micros()))
}

pub(crate) fn timeofday(call: &Call<'_>, _: &[Datum]) -> Result<Datum> {
    use types::datetime::calendar::{weekday, Fields};
    let at = call.context.clock.wall_micros();
    let local = call.context.time_zone.to_local(at);
    let f = Fields::of(local);
    let day = &["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"][weekday(f.days()) as usize];
    let month = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ][(f.month - 1) as usize];
    Ok(Datum::text(format!(
        "{day} {month} {:02} {:02}:{:02}:{:02}.{:06} {} {}",
        f.day,
        f.hour,
        f.minute,
        f.second,
        f.micros,
        f.year,
        call.context.time_zone.abbreviation_at(at)
    )))
}

// ---- fields

pub(crate) fn extract(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    fields::extract(call.context, args.text(0)?, args.any(1)?)
}

pub(crate) fn date_part(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    // A date has the fields of its midnight here.
    let midnight;
    let value = match args.any(1)? {
        Datum::Date(days) => {
            midnight = Datum::Timestamp(date::to_timestamp(*days)?);
            &midnight
        }
        value => value,
    };
    match fields::extract(call.context, args.text(0)?, value)? {
        Datum::Numeric(number) => number.quotient_f64().map(Datum::Float8),
        other => Ok(other),
    }
}

pub(crate) fn trunc_timestamp(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    fields::truncate_timestamp(args.text(0)?, args.timestamp(1)?).map(Datum::Timestamp)
}

pub(crate) fn trunc_timestamptz(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let zone = &call.context.time_zone;
    fields::truncate_timestamptz(zone, args.text(0)?, args.timestamptz(1)?).map(Datum::TimestampTz)
}

pub(crate) fn trunc_timestamptz_zone(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let at = args.timestamptz(1)?;
    if !timestamp::is_finite(at) {
        return Ok(Datum::TimestampTz(at));
    }
    let zone = Zone::parse(args.text(2)?)?;
    fields::truncate_timestamptz(&zone, args.text(0)?, at).map(Datum::TimestampTz)
}

pub(crate) fn trunc_interval(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    fields::truncate_interval(args.text(0)?, &args.interval(1)?).map(Datum::Interval)
}

// ---- timestamps

pub(crate) fn timestamp_plus(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    timestamp::add(args.timestamp(0)?, &args.interval(1)?).map(Datum::Timestamp)
}

pub(crate) fn timestamp_minus(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    timestamp::add(args.timestamp(0)?, &args.interval(1)?.neg()?).map(Datum::Timestamp)
}

pub(crate) fn timestamptz_plus(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    timestamp::add_tz(call.context, args.timestamptz(0)?, &args.interval(1)?)
        .map(Datum::TimestampTz)
}

pub(crate) fn timestamptz_minus(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    timestamp::add_tz(
        call.context,
        args.timestamptz(0)?,
        &args.interval(1)?.neg()?,
    )
    .map(Datum::TimestampTz)
}

pub(crate) fn interval_plus_timestamp(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    timestamp::add(args.timestamp(1)?, &args.interval(0)?).map(Datum::Timestamp)
}

pub(crate) fn interval_plus_timestamptz(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    timestamp::add_tz(call.context, args.timestamptz(1)?, &args.interval(0)?)
        .map(Datum::TimestampTz)
}

/// Microseconds of either kind of timestamp.
fn micros(value: &Datum) -> Result<i64> {
    match value {
        Datum::Timestamp(micros) | Datum::TimestampTz(micros) => Ok(*micros),
        _ => Err(Error::internal("a timestamp is wanted")),
    }
}

pub(crate) fn timestamp_difference(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    timestamp::difference(micros(args.any(0)?)?, micros(args.any(1)?)?).map(Datum::Interval)
}

pub(crate) fn age_timestamp(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    timestamp::age(args.timestamp(0)?, args.timestamp(1)?).map(Datum::Interval)
}

pub(crate) fn age_timestamptz(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let zone = &call.context.time_zone;
    let a = timestamp::to_local(zone, args.timestamptz(0)?);
    let b = timestamp::to_local(zone, args.timestamptz(1)?);
    timestamp::age(a, b).map(Datum::Interval)
}

/// Midnight of today on the session's clock.
fn today(call: &Call<'_>) -> i64 {
    let local = call
        .context
        .time_zone
        .to_local(call.context.transaction_start);
    local - local.rem_euclid(DAY)
}

pub(crate) fn age_of_timestamp(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    timestamp::age(today(call), args.timestamp(0)?).map(Datum::Interval)
}

pub(crate) fn age_of_timestamptz(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let local = timestamp::to_local(&call.context.time_zone, args.timestamptz(0)?);
    timestamp::age(today(call), local).map(Datum::Interval)
}

pub(crate) fn is_finite(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(match args.any(0)? {
        Datum::Date(days) => date::is_finite(*days),
        Datum::Interval(_) => true,
        other => timestamp::is_finite(micros(other)?),
    }))
}

pub(crate) fn make_timestamp(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let part = |index| args.int4(index);
    timestamp::make(
        part(0)?,
        part(1)?,
        part(2)?,
        part(3)?,
        part(4)?,
        args.float(5)?,
    )
    .map(Datum::Timestamp)
}

pub(crate) fn make_timestamptz(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let part = |index| args.int4(index);
    let local = timestamp::make(
        part(0)?,
        part(1)?,
        part(2)?,
        part(3)?,
        part(4)?,
        args.float(5)?,
    )?;
    let named;
    let zone = match args.len() > 6 {
        true => {
            named = sane_zone(args.text(6)?)?;
            &named
        }
        false => &call.context.time_zone,
    };
    timestamp::to_utc(zone, local).map(Datum::TimestampTz)
}

/// The zone that `make_timestamptz` takes: signs count eastwards, as in ISO 8601, and not westwards
/// as in POSIX.
fn sane_zone(text: &str) -> Result<Zone> {
    let wrong = |message: String| Error::new(SqlState::INVALID_PARAMETER_VALUE, message);
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        let message = format!("invalid input syntax for type numeric time zone: \"{text}\"");
        let hint = "Numeric time zones must have \"-\" or \"+\" as first character.";
        return Err(wrong(message).with_hint(hint));
    }
    if !text.starts_with(['+', '-']) {
        return Zone::parse(text);
    }
    match parse::displacement(text) {
        Ok(seconds) => Ok(Zone::fixed(seconds)),
        Err(parse::Refusal::Syntax) => Zone::parse(text),
        Err(_) => Err(wrong(format!("numeric time zone \"{text}\" out of range"))),
    }
}

pub(crate) fn from_unix(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    timestamp::from_unix(args.float(0)?).map(Datum::TimestampTz)
}

// ---- zones

pub(crate) fn at_zone_timestamp(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let at = args.timestamp(1)?;
    if !timestamp::is_finite(at) {
        return Ok(Datum::TimestampTz(at));
    }
    let zone = Zone::parse(args.text(0)?)?;
    timestamp::to_utc(&zone, at).map(Datum::TimestampTz)
}

pub(crate) fn at_zone_timestamptz(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let at = args.timestamptz(1)?;
    if !timestamp::is_finite(at) {
        return Ok(Datum::Timestamp(at));
    }
    let zone = Zone::parse(args.text(0)?)?;
    Ok(Datum::Timestamp(timestamp::to_local(&zone, at)))
}

/// A time of day on the clocks of a zone, as they are set now.
fn timetz_in(call: &Call<'_>, zone: &Zone, (micros, west): (i64, i32)) -> Datum {
    let there = -zone.offset_at(call.context.transaction_start);
    let moved = micros + i64::from(west - there) * SECOND;
    Datum::TimeTz(moved.rem_euclid(DAY), there)
}

pub(crate) fn at_zone_timetz(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let zone = Zone::parse(args.text(0)?)?;
    match args.any(1)? {
        Datum::TimeTz(micros, west) => Ok(timetz_in(call, &zone, (*micros, *west))),
        _ => Err(Error::internal("no time of day")),
    }
}

pub(crate) fn at_interval_timetz(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let zone = interval_zone(&args.interval(0)?)?;
    match args.any(1)? {
        Datum::TimeTz(micros, west) => Ok(timetz_in(call, &zone, (*micros, *west))),
        _ => Err(Error::internal("no time of day")),
    }
}

/// A zone given as an interval from UTC.
fn interval_zone(interval: &Interval) -> Result<Zone> {
    if interval.months != 0 || interval.days != 0 {
        let mut shown = String::new();
        interval::write(types::IntervalStyle::Postgres, interval, &mut shown);
        return Err(Error::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("interval time zone \"{shown}\" must not include months or days"),
        ));
    }
    Ok(Zone::fixed((interval.micros / SECOND) as i32))
}

pub(crate) fn at_interval_timestamp(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let at = args.timestamp(1)?;
    if !timestamp::is_finite(at) {
        return Ok(Datum::TimestampTz(at));
    }
    let zone = interval_zone(&args.interval(0)?)?;
    timestamp::to_utc(&zone, at).map(Datum::TimestampTz)
}

pub(crate) fn at_interval_timestamptz(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let at = args.timestamptz(1)?;
    if !timestamp::is_finite(at) {
        return Ok(Datum::Timestamp(at));
    }
    let zone = interval_zone(&args.interval(0)?)?;
    Ok(Datum::Timestamp(timestamp::to_local(&zone, at)))
}

// ---- casts

pub(crate) fn timestamp_to_timestamptz(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    timestamp::to_utc(&call.context.time_zone, args.timestamp(0)?).map(Datum::TimestampTz)
}

pub(crate) fn timestamptz_to_timestamp(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let zone = &call.context.time_zone;
    Ok(Datum::Timestamp(timestamp::to_local(
        zone,
        args.timestamptz(0)?,
    )))
}

pub(crate) fn timestamp_to_date(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Date(timestamp::to_date(args.timestamp(0)?)))
}

pub(crate) fn timestamptz_to_date(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let local = timestamp::to_local(&call.context.time_zone, args.timestamptz(0)?);
    Ok(Datum::Date(timestamp::to_date(local)))
}

pub(crate) fn timestamp_to_time(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let at = args.timestamp(0)?;
    Ok(match timestamp::is_finite(at) {
        true => Datum::Time(at.rem_euclid(DAY)),
        false => Datum::Null,
    })
}

pub(crate) fn timestamptz_to_time(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let at = args.timestamptz(0)?;
    Ok(match timestamp::is_finite(at) {
        true => Datum::Time(call.context.time_zone.to_local(at).rem_euclid(DAY)),
        false => Datum::Null,
    })
}

pub(crate) fn timestamptz_to_timetz(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let at = args.timestamptz(0)?;
    let zone = &call.context.time_zone;
    Ok(match timestamp::is_finite(at) {
        true => Datum::TimeTz(zone.to_local(at).rem_euclid(DAY), -zone.offset_at(at)),
        false => Datum::Null,
    })
}

pub(crate) fn date_to_timestamp(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    date::to_timestamp(args.date(0)?).map(Datum::Timestamp)
}

pub(crate) fn date_to_timestamptz(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    date::to_timestamptz(call.context, args.date(0)?).map(Datum::TimestampTz)
}

pub(crate) fn time_to_interval(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Interval(Interval {
        micros: args.time(0)?,
        ..Interval::default()
    }))
}

pub(crate) fn interval_to_time(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Time(args.interval(0)?.micros.rem_euclid(DAY)))
}

pub(crate) fn time_to_timetz(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let micros = args.time(0)?;
    let offset = call.context.time_zone.offset_of_local(today(call) + micros);
    Ok(Datum::TimeTz(micros, -offset))
}

pub(crate) fn timetz_to_time(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Time(args.timetz(0)?.0))
}

// ---- dates

pub(crate) fn date_plus_days(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    date::add_days(args.date(0)?, args.int(1)?).map(Datum::Date)
}

pub(crate) fn days_plus_date(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    date::add_days(args.date(1)?, args.int(0)?).map(Datum::Date)
}

pub(crate) fn date_minus_days(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    date::add_days(args.date(0)?, -args.int(1)?).map(Datum::Date)
}

pub(crate) fn date_difference(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    date::difference(args.date(0)?, args.date(1)?).map(Datum::Int4)
}

pub(crate) fn date_plus_interval(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    timestamp::add(date::to_timestamp(args.date(0)?)?, &args.interval(1)?).map(Datum::Timestamp)
}

pub(crate) fn date_minus_interval(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    timestamp::add(
        date::to_timestamp(args.date(0)?)?,
        &args.interval(1)?.neg()?,
    )
    .map(Datum::Timestamp)
}

pub(crate) fn interval_plus_date(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    timestamp::add(date::to_timestamp(args.date(1)?)?, &args.interval(0)?).map(Datum::Timestamp)
}

pub(crate) fn date_plus_time(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let interval = Interval {
        micros: args.time(1)?,
        ..Interval::default()
    };
    timestamp::add(date::to_timestamp(args.date(0)?)?, &interval).map(Datum::Timestamp)
}

pub(crate) fn time_plus_date(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    date_plus_time(call, &[args.any(1)?.clone(), args.any(0)?.clone()])
}

pub(crate) fn date_time_to_timestamptz(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    match date_plus_time(call, args)? {
        Datum::Timestamp(local) => {
            timestamp::to_utc(&call.context.time_zone, local).map(Datum::TimestampTz)
        }
        other => Ok(other),
    }
}

pub(crate) fn date_plus_timetz(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (micros, zone) = args.timetz(1)?;
    let midnight = date::to_timestamp(args.date(0)?)?;
    if !timestamp::is_finite(midnight) {
        return Ok(Datum::TimestampTz(midnight));
    }
    Ok(Datum::TimestampTz(
        midnight + micros + i64::from(zone) * SECOND,
    ))
}

pub(crate) fn interval_plus_timetz(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    timetz_plus(call, &[args.any(1)?.clone(), args.any(0)?.clone()])
}

pub(crate) fn timetz_plus_date(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    date_plus_timetz(call, &[args.any(1)?.clone(), args.any(0)?.clone()])
}

pub(crate) fn make_date(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    date::make(args.int4(0)?, args.int4(1)?, args.int4(2)?).map(Datum::Date)
}

// ---- times

pub(crate) fn time_plus(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Time(time::add(args.time(0)?, &args.interval(1)?)))
}

pub(crate) fn interval_plus_time(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Time(time::add(args.time(1)?, &args.interval(0)?)))
}

pub(crate) fn time_minus(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Time(time::add(
        args.time(0)?,
        &args.interval(1)?.neg()?,
    )))
}

pub(crate) fn time_difference(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Interval(Interval {
        micros: args.time(0)? - args.time(1)?,
        ..Interval::default()
    }))
}

pub(crate) fn timetz_plus(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (micros, zone) = args.timetz(0)?;
    Ok(Datum::TimeTz(time::add(micros, &args.interval(1)?), zone))
}

pub(crate) fn timetz_minus(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (micros, zone) = args.timetz(0)?;
    Ok(Datum::TimeTz(
        time::add(micros, &args.interval(1)?.neg()?),
        zone,
    ))
}

pub(crate) fn make_time(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    time::make(args.int4(0)?, args.int4(1)?, args.float(2)?).map(Datum::Time)
}

// ---- intervals

pub(crate) fn interval_add(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    args.interval(0)?
        .add(&args.interval(1)?)
        .map(Datum::Interval)
}

pub(crate) fn interval_sub(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    args.interval(0)?
        .sub(&args.interval(1)?)
        .map(Datum::Interval)
}

pub(crate) fn interval_neg(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    args.interval(0)?.neg().map(Datum::Interval)
}

pub(crate) fn interval_mul(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    args.interval(0)?.mul(args.float(1)?).map(Datum::Interval)
}

pub(crate) fn mul_interval(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    args.interval(1)?.mul(args.float(0)?).map(Datum::Interval)
}

pub(crate) fn interval_div(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    args.interval(0)?.div(args.float(1)?).map(Datum::Interval)
}

pub(crate) fn justify_hours(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    args.interval(0)?.justify_hours().map(Datum::Interval)
}

pub(crate) fn justify_days(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    args.interval(0)?.justify_days().map(Datum::Interval)
}

pub(crate) fn justify_interval(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    args.interval(0)?.justify().map(Datum::Interval)
}

/// Trailing arguments may be left out.
pub(crate) fn make_interval(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let mut parts = [0; 6];
    for (index, part) in parts.iter_mut().enumerate() {
        if index < args.len() {
            *part = args.int4(index)?;
        }
    }
    let seconds = if args.len() > 6 { args.float(6)? } else { 0.0 };
    interval::make(parts, seconds).map(Datum::Interval)
}

/// `(a, b) OVERLAPS (c, d)` where each end may be an interval from its start; any may be NULL.
pub(crate) fn overlaps(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let end = |start: &Datum, end: &Datum| -> Result<Datum> {
        Ok(match (start, end) {
            (Datum::Null, Datum::Interval(_)) => Datum::Null,
            (Datum::Timestamp(at), Datum::Interval(i)) => Datum::Timestamp(timestamp::add(*at, i)?),
            (Datum::TimestampTz(at), Datum::Interval(i)) => {
                Datum::TimestampTz(timestamp::add_tz(call.context, *at, i)?)
            }
            (Datum::Time(at), Datum::Interval(i)) => Datum::Time(time::add(*at, i)),
            _ => end.clone(),
        })
    };
    let kind = call.argument_types.first().copied();
    let kind = kind
        .filter(|kind| *kind == TypeId::TIMETZ)
        .unwrap_or(TypeId::TIMESTAMP);
    let order = |a: &Datum, b: &Datum| types::compare(kind, a, b);
    let period = |start: &Datum, stop: Datum| -> Option<(Datum, Datum)> {
        // The lower end first; an unknown end is the second.
        match (start.is_null(), stop.is_null()) {
            (true, true) => None,
            (true, false) => Some((stop, Datum::Null)),
            (false, false) if order(start, &stop).is_gt() => Some((stop, start.clone())),
            _ => Some((start.clone(), stop)),
        }
    };
    let first = period(args.any(0)?, end(args.any(0)?, args.any(1)?)?);
    let second = period(args.any(2)?, end(args.any(2)?, args.any(3)?)?);
    let (Some((s1, e1)), Some((s2, e2))) = (first, second) else {
        return Ok(Datum::Null);
    };
    let (early_end, late_start, late_end) = match order(&s1, &s2) {
        std::cmp::Ordering::Equal => {
            return Ok(match e1.is_null() || e2.is_null() {
                true => Datum::Null,
                false => Datum::Bool(true),
            })
        }
        std::cmp::Ordering::Greater => (e2, s1, e1),
        std::cmp::Ordering::Less => (e1, s2, e2),
    };
    if early_end.is_null() {
        return Ok(Datum::Null);
    }
    match order(&late_start, &early_end).is_lt() {
        true => Ok(Datum::Bool(true)),
        // The later one may have begun earlier, where its other end is not known.
        false if late_end.is_null() => Ok(Datum::Null),
        false => Ok(Datum::Bool(false)),
    }
}

/// `generate_series` of timestamps.
pub(crate) fn series(call: &Call<'_>, args: &[Datum]) -> Result<Rows> {
    let zoned = matches!(args.any(0)?, Datum::TimestampTz(_));
    let (start, stop) = (micros(args.any(0)?)?, micros(args.any(1)?)?);
    let step = args.interval(2)?;
    let direction = step.total_micros().signum();
    if direction == 0 {
        return Err(Error::new(
            SqlState::INVALID_PARAMETER_VALUE,
            "step size cannot equal zero",
        ));
    }
    let context = call.context.clone();
    let mut next = Some(start);
    Ok(Box::new(std::iter::from_fn(move || {
        let at = next.take()?;
        let over = if direction > 0 { at > stop } else { at < stop };
        if over {
            return None;
        }
        let moved = match zoned {
            true => timestamp::add_tz(&context, at, &step),
            false => timestamp::add(at, &step),
        };
        next = moved.ok();
        Some(Ok(match zoned {
            true => Datum::TimestampTz(at),
            false => Datum::Timestamp(at),
        }))
    })))
}
