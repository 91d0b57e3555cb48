//! `extract`, `date_part` and `date_trunc`.

use base::error::{Error, Result, SqlState};

use super::calendar::{iso_week, iso_week_start, Fields, JULIAN_EPOCH};
use super::timestamp::{self, is_finite};
use super::{date, Interval, DAY, HOUR, MINUTE, SECOND, UNIX_TO_EPOCH_SECONDS};
use crate::{Datum, EvalContext, Numeric, TypeId};

/// A field of a date, time or interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Microseconds,
    Milliseconds,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    Decade,
    Century,
    Millennium,
    IsoYear,
    Dow,
    IsoDow,
    Doy,
    Julian,
    Epoch,
    Timezone,
    TimezoneHour,
    TimezoneMinute,
}

fn field_named(name: &str) -> Option<Field> {
    let name = name.to_ascii_lowercase();
    Some(match name.as_str() {
        "us" | "usec" | "usecs" | "usecond" | "useconds" => Field::Microseconds,
        word if word.starts_with("microsecon") => Field::Microseconds,
        "ms" | "msec" | "msecs" | "msecond" | "mseconds" => Field::Milliseconds,
        word if word.starts_with("millisecon") => Field::Milliseconds,
        "s" | "sec" | "secs" | "second" | "seconds" => Field::Second,
        "m" | "min" | "mins" | "minute" | "minutes" => Field::Minute,
        "h" | "hr" | "hrs" | "hour" | "hours" => Field::Hour,
        "d" | "day" | "days" => Field::Day,
        "w" | "week" | "weeks" => Field::Week,
        "mon" | "mons" | "month" | "months" => Field::Month,
        "qtr" | "quarter" => Field::Quarter,
        "y" | "yr" | "yrs" | "year" | "years" => Field::Year,
        "dec" | "decs" | "decade" | "decades" => Field::Decade,
        "c" | "cent" | "century" | "centuries" => Field::Century,
        "mil" | "mils" | "millennia" | "millennium" => Field::Millennium,
        "isoyear" => Field::IsoYear,
        "dow" => Field::Dow,
        "isodow" => Field::IsoDow,
        "doy" => Field::Doy,
        "j" | "jd" | "julian" => Field::Julian,
        "epoch" => Field::Epoch,
        "timezone" => Field::Timezone,
        "timezone_h" | "timezone_hour" => Field::TimezoneHour,
        "timezone_m" | "timezone_minute" => Field::TimezoneMinute,
        _ => return None,
    })
}

fn unknown(name: &str, kind: TypeId) -> Error {
    Error::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!(
            "unit \"{}\" not recognized for type {kind}",
            name.to_ascii_lowercase()
        ),
    )
}

fn known(name: &str, kind: TypeId) -> Result<Field> {
    field_named(name).ok_or_else(|| unknown(name, kind))
}

fn unsupported(name: &str, kind: TypeId) -> Error {
    Error::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        format!(
            "unit \"{}\" not supported for type {kind}",
            name.to_ascii_lowercase()
        ),
    )
}

/// As [`known`], of dates and timestamps: these are read with words that are no parts of them.
fn known_of_moment(name: &str, kind: TypeId) -> Result<Field> {
    const WORDS: [&str; 7] = [
        "infinity",
        "-infinity",
        "now",
        "today",
        "tomorrow",
        "yesterday",
        "allballs",
    ];
    let is_word = |word: &&str| word.eq_ignore_ascii_case(name);
    match WORDS.iter().any(is_word) {
        true => Err(unsupported(name, kind)),
        false => known(name, kind),
    }
}

fn integer(value: i64) -> Numeric {
    Numeric::from(value)
}

/// Fields of the time of day; `None` for all others. `micros` is below a minute.
fn time_field(field: Field, time: i64) -> Option<Numeric> {
    let below_minute = time % MINUTE;
    Some(match field {
        Field::Microseconds => integer(below_minute),
        Field::Milliseconds => Numeric::new(i128::from(below_minute), 3),
        Field::Second => Numeric::new(i128::from(below_minute), 6),
        Field::Minute => integer(time / MINUTE % 60),
        Field::Hour => integer(time / HOUR),
        _ => return None,
    })
}

fn century(year: i64, years: i64) -> i64 {
    match year > 0 {
        true => (year + years - 1) / years,
        false => -((years - 1 - (year - 1)) / years),
    }
}

fn decade(year: i64) -> i64 {
    match year >= 0 {
        true => year / 10,
        false => -((8 - (year - 1)) / 10),
    }
}

/// The year as people count: no year 0.
fn shown_year(year: i64) -> i64 {
    if year > 0 {
        year
    } else {
        year - 1
    }
}

/// Fields of the calendar date.
fn date_field(field: Field, fields: &Fields) -> Option<Numeric> {
    let days = fields.days();
    let weekday = super::calendar::weekday(days);
    Some(integer(match field {
        Field::Day => fields.day,
        Field::Month => fields.month,
        Field::Quarter => (fields.month - 1) / 3 + 1,
        Field::Week => iso_week(days).1,
        Field::Year => shown_year(fields.year),
        Field::Decade => decade(fields.year),
        Field::Century => century(fields.year, 100),
        Field::Millennium => century(fields.year, 1_000),
        Field::IsoYear => shown_year(iso_week(days).0),
        Field::Dow => weekday,
        Field::IsoDow => (weekday + 6) % 7 + 1,
        Field::Doy => days - super::calendar::days_from_civil(fields.year, 1, 1) + 1,
        _ => return None,
    }))
}

/// What infinity has: infinite years and their like, and no other fields.
fn infinite_field(field: Field, negative: bool) -> Option<Datum> {
    match field {
        Field::Year
        | Field::Decade
        | Field::Century
        | Field::Millennium
        | Field::Julian
        | Field::IsoYear
        | Field::Epoch => Some(Datum::Numeric(match negative {
            true => Numeric::NEGATIVE_INFINITY,
            false => Numeric::INFINITY,
        })),
        Field::Timezone | Field::TimezoneHour | Field::TimezoneMinute => None,
        _ => Some(Datum::Null),
    }
}

fn zone_field(field: Field, seconds: i64) -> Option<Numeric> {
    Some(integer(match field {
        Field::Timezone => seconds,
        Field::TimezoneHour => seconds / 3_600,
        Field::TimezoneMinute => seconds / 60 % 60,
        _ => return None,
    }))
}

/// `extract(name from value)`: a numeric, or NULL for most fields of infinity.
///
/// # Errors
/// 22023 for unknown fields, 0A000 for those that the type does not have.
pub fn extract(context: &EvalContext, name: &str, value: &Datum) -> Result<Datum> {
    let found = match value {
        Datum::Timestamp(micros) => extract_timestamp(context, name, *micros, false)?,
        Datum::TimestampTz(micros) => extract_timestamp(context, name, *micros, true)?,
        Datum::Date(days) => extract_date(name, *days)?,
        Datum::Time(micros) => {
            let field = known(name, TypeId::TIME)?;
            let epoch = (field == Field::Epoch).then(|| Numeric::new(i128::from(*micros), 6));
            let found = epoch.or_else(|| time_field(field, *micros));
            found
                .ok_or_else(|| unsupported(name, TypeId::TIME))
                .map(Datum::Numeric)?
        }
        Datum::TimeTz(micros, zone) => {
            let field = known(name, TypeId::TIMETZ)?;
            let utc = i128::from(*micros) + i128::from(*zone) * i128::from(SECOND);
            let found = (field == Field::Epoch)
                .then(|| Numeric::new(utc, 6))
                .or_else(|| zone_field(field, -i64::from(*zone)))
                .or_else(|| time_field(field, *micros));
            found
                .ok_or_else(|| unsupported(name, TypeId::TIMETZ))
                .map(Datum::Numeric)?
        }
        Datum::Interval(interval) => {
            let field = known(name, TypeId::INTERVAL)?;
            interval_field(field, interval)
                .ok_or_else(|| unsupported(name, TypeId::INTERVAL))
                .map(Datum::Numeric)?
        }
        _ => return Err(Error::internal("extract from a value without fields")),
    };
    Ok(found)
}

fn extract_timestamp(context: &EvalContext, name: &str, micros: i64, zoned: bool) -> Result<Datum> {
    let kind = match zoned {
        true => TypeId::TIMESTAMPTZ,
        false => TypeId::TIMESTAMP,
    };
    let field = known_of_moment(name, kind)?;
    let zone_wanted = matches!(
        field,
        Field::Timezone | Field::TimezoneHour | Field::TimezoneMinute
    );
    if zone_wanted && !zoned {
        return Err(unsupported(name, kind));
    }
    if !is_finite(micros) {
        return Ok(infinite_field(field, micros < 0).unwrap_or(Datum::Null));
    }
    if field == Field::Epoch {
        let unix = i128::from(micros) + i128::from(UNIX_TO_EPOCH_SECONDS) * i128::from(SECOND);
        return Ok(Datum::Numeric(Numeric::new(unix, 6)));
    }
    let offset = match zoned {
        true => i64::from(context.time_zone.offset_at(micros)),
        false => 0,
    };
    if let Some(found) = zone_field(field, offset) {
        return Ok(Datum::Numeric(found));
    }
    let local = micros + offset * SECOND;
    let fields = Fields::of(local);
    if field == Field::Julian {
        let day = integer(fields.days() + JULIAN_EPOCH);
        let part = integer(fields.time()).div(&integer(DAY))?;
        return Ok(Datum::Numeric(day.add(&part)?));
    }
    time_field(field, fields.time())
        .or_else(|| date_field(field, &fields))
        .map(Datum::Numeric)
        .ok_or_else(|| unsupported(name, kind))
}

fn extract_date(name: &str, days: i32) -> Result<Datum> {
    let kind = TypeId::DATE;
    let field = known_of_moment(name, kind)?;
    let of_time = matches!(
        field,
        Field::Microseconds
            | Field::Milliseconds
            | Field::Second
            | Field::Minute
            | Field::Hour
            | Field::Timezone
            | Field::TimezoneHour
            | Field::TimezoneMinute
    );
    if of_time {
        return Err(unsupported(name, kind));
    }
    if !date::is_finite(days) {
        return Ok(infinite_field(field, days < 0).unwrap_or(Datum::Null));
    }
    let days = i64::from(days);
    let (year, month, day) = super::calendar::civil_from_days(days);
    let fields = Fields {
        year,
        month,
        day,
        ..Fields::default()
    };
    let found = match field {
        Field::Julian => Some(integer(days + JULIAN_EPOCH)),
        Field::Epoch => Some(integer(days * 86_400 + UNIX_TO_EPOCH_SECONDS)),
        _ => date_field(field, &fields),
    };
    found
        .map(Datum::Numeric)
        .ok_or_else(|| unsupported(name, kind))
}

fn interval_field(field: Field, interval: &Interval) -> Option<Numeric> {
    let (year, month) = (
        i64::from(interval.months / 12),
        i64::from(interval.months % 12),
    );
    if let Some(found) = time_field(field, interval.micros) {
        return Some(found);
    }
    if field == Field::Epoch {
        // A year has 365.25 days here, a month 30.
        let quarter_days = year * 1_461 + month * 120 + i64::from(interval.days) * 4;
        let seconds = i128::from(quarter_days) * 21_600;
        let micros = seconds * i128::from(SECOND) + i128::from(interval.micros);
        return Some(Numeric::new(micros, 6));
    }
    Some(integer(match field {
        Field::Day => i64::from(interval.days),
        Field::Month => month,
        Field::Quarter => month / 3 + 1,
        Field::Year => year,
        Field::Decade => year / 10,
        Field::Century => year / 100,
        Field::Millennium => year / 1_000,
        _ => return None,
    }))
}

/// `date_trunc` of a local timestamp.
fn truncate(field: Field, local: i64) -> Option<i64> {
    let mut fields = Fields::of(local);
    let cut = |unit: i64| Some(local - local.rem_euclid(unit));
    match field {
        Field::Microseconds => return Some(local),
        Field::Milliseconds => return cut(1_000),
        Field::Second => return cut(SECOND),
        Field::Minute => return cut(MINUTE),
        Field::Hour => return cut(HOUR),
        Field::Day => return cut(DAY),
        Field::Week => {
            let (year, week) = iso_week(fields.days());
            return iso_week_start(year, week).checked_mul(DAY);
        }
        Field::Month => {}
        Field::Quarter => fields.month = (fields.month - 1) / 3 * 3 + 1,
        _ => fields.month = 1,
    }
    fields.day = 1;
    let year = fields.year;
    match field {
        Field::Millennium => fields.year = truncated_century(year, 1_000),
        Field::Century => fields.year = truncated_century(year, 100),
        Field::Decade => fields.year = decade(year) * 10,
        Field::Year | Field::Quarter | Field::Month => {}
        _ => return None,
    }
    fields.days().checked_mul(DAY)
}

fn truncated_century(year: i64, years: i64) -> i64 {
    match year > 0 {
        true => century(year, years) * years - (years - 1),
        false => century(year, years) * years + 1,
    }
}

fn truncatable(name: &str, kind: TypeId) -> Result<Field> {
    let field = known(name, kind)?;
    match field {
        Field::IsoYear | Field::Dow | Field::IsoDow | Field::Doy | Field::Julian | Field::Epoch => {
            Err(unknown(name, kind))
        }
        Field::Timezone | Field::TimezoneHour | Field::TimezoneMinute => {
            Err(unsupported(name, kind))
        }
        _ => Ok(field),
    }
}

/// `date_trunc` of a timestamp.
///
/// # Errors
/// 22023, 0A000, 22008.
pub fn truncate_timestamp(name: &str, micros: i64) -> Result<i64> {
    // Of infinity PostgreSQL looks at no unit.
    if !is_finite(micros) {
        return Ok(micros);
    }
    let field = truncatable(name, TypeId::TIMESTAMP)?;
    truncate(field, micros)
        .filter(|micros| super::calendar::in_range(*micros))
        .ok_or_else(timestamp::out_of_range)
}

/// `date_trunc` of an instant, on the clock of a zone.
///
/// # Errors
/// 22023, 0A000, 22008.
pub fn truncate_timestamptz(zone: &super::zone::Zone, name: &str, micros: i64) -> Result<i64> {
    if !is_finite(micros) {
        return Ok(micros);
    }
    let field = truncatable(name, TypeId::TIMESTAMPTZ)?;
    let offset = i64::from(zone.offset_at(micros)) * SECOND;
    let local = truncate(field, micros + offset).ok_or_else(timestamp::out_of_range)?;
    let keeps_offset = matches!(
        field,
        Field::Microseconds | Field::Milliseconds | Field::Second | Field::Minute | Field::Hour
    );
    match keeps_offset {
        true => Ok(local - offset),
        false => zone.to_utc(local).ok_or_else(timestamp::out_of_range),
    }
}

/// `date_trunc` of an interval.
///
/// # Errors
/// 22023, 0A000.
pub fn truncate_interval(name: &str, interval: &Interval) -> Result<Interval> {
    let field = truncatable(name, TypeId::INTERVAL)?;
    let mut result = *interval;
    let time = |unit: i64| interval.micros / unit * unit;
    match field {
        Field::Microseconds => {}
        Field::Milliseconds => result.micros = time(1_000),
        Field::Second => result.micros = time(SECOND),
        Field::Minute => result.micros = time(MINUTE),
        Field::Hour => result.micros = time(HOUR),
        Field::Day => result.micros = 0,
        Field::Week => {
            return Err(unsupported(name, TypeId::INTERVAL)
                .with_detail("Months usually have fractional weeks."))
        }
        _ => {
            let unit = match field {
                Field::Month => 1,
                Field::Quarter => 3,
                Field::Year => 12,
                Field::Decade => 120,
                Field::Century => 1_200,
                _ => 12_000,
            };
            result = Interval {
                months: interval.months / unit * unit,
                days: 0,
                micros: 0,
            };
        }
    }
    Ok(result)
}
