//! The type `interval`: months, days and microseconds, and arithmetic on them.
//!
//! The three parts are kept apart, because a month has no fixed number of days nor a day of
//! hours. Fractions move down (a tenth of a month is 3 days), never up; only the `justify_`
//! functions carry up.

use base::error::{Error, Result, SqlState};

use super::{overflow, time, DAY, HOUR, MINUTE, SECOND};
use crate::numeric::POW10;
use crate::{Datum, EvalContext, IntervalStyle};

/// Days of a month, where one must be assumed.
pub const DAYS_PER_MONTH: i64 = 30;
const SECONDS_PER_DAY: f64 = 86_400.0;

/// Months, days and microseconds, each with a sign of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// Months, years included.
    pub months: i32,
    /// Days, weeks included.
    pub days: i32,
    /// Everything smaller.
    pub micros: i64,
}

/// 22008 "interval out of range".
pub fn out_of_range() -> Error {
    overflow("interval out of range")
}

fn to_i32(value: f64) -> Result<i32> {
    if !(-2_147_483_648.0..2_147_483_648.0).contains(&value) {
        return Err(out_of_range());
    }
    Ok(value as i32)
}

fn to_i64(value: f64) -> Result<i64> {
    if value.is_nan()
        || !(-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&value)
    {
        return Err(out_of_range());
    }
    Ok(value as i64)
}

/// Rounds to a microsecond, so that the dust of binary fractions does not become one.
fn to_micro(value: f64) -> f64 {
    (value * 1e6).round_ties_even() / 1e6
}

impl Interval {
    /// Its length with months of 30 days, by which intervals are compared.
    pub fn total_micros(&self) -> i128 {
        let days = i128::from(self.months) * i128::from(DAYS_PER_MONTH) + i128::from(self.days);
        days * i128::from(DAY) + i128::from(self.micros)
    }

    /// The sum, part by part.
    ///
    /// # Errors
    /// 22008 when a part overflows.
    pub fn add(&self, other: &Interval) -> Result<Interval> {
        let sum = || {
            Some(Interval {
                months: self.months.checked_add(other.months)?,
                days: self.days.checked_add(other.days)?,
                micros: self.micros.checked_add(other.micros)?,
            })
        };
        sum().ok_or_else(out_of_range)
    }

    /// The difference, part by part.
    ///
    /// # Errors
    /// 22008 when a part overflows.
    pub fn sub(&self, other: &Interval) -> Result<Interval> {
        let difference = || {
            Some(Interval {
                months: self.months.checked_sub(other.months)?,
                days: self.days.checked_sub(other.days)?,
                micros: self.micros.checked_sub(other.micros)?,
            })
        };
        difference().ok_or_else(out_of_range)
    }

    /// Every part negated.
    ///
    /// # Errors
    /// 22008 when a part overflows.
    pub fn neg(&self) -> Result<Interval> {
        Interval::default().sub(self)
    }

    /// Every part times a number; fractions of months become days, of days time.
    ///
    /// # Errors
    /// 22008.
    pub fn mul(&self, factor: f64) -> Result<Interval> {
        self.scale(|part| part * factor)
    }

    /// Every part divided by a number.
    ///
    /// # Errors
    /// 22012, 22008.
    pub fn div(&self, divisor: f64) -> Result<Interval> {
        if divisor == 0.0 {
            return Err(Error::new(SqlState::DIVISION_BY_ZERO, "division by zero"));
        }
        self.scale(|part| part / divisor)
    }

    fn scale(&self, by: impl Fn(f64) -> f64) -> Result<Interval> {
        let (months, days) = (by(f64::from(self.months)), by(f64::from(self.days)));
        let mut result = Interval {
            months: to_i32(months)?,
            days: to_i32(days)?,
            micros: 0,
        };
        let month_rest = (months - f64::from(result.months)) * DAYS_PER_MONTH as f64;
        let month_days = to_micro(month_rest);
        let day_rest = days - f64::from(result.days) + (month_days - month_days.trunc());
        let mut seconds = to_micro(day_rest * SECONDS_PER_DAY);
        if seconds.abs() >= SECONDS_PER_DAY {
            let whole = (seconds / SECONDS_PER_DAY).trunc();
            result.days = to_i32(f64::from(result.days) + whole)?;
            seconds -= whole * SECONDS_PER_DAY;
        }
        result.days = to_i32(f64::from(result.days) + month_days.trunc())?;
        let micros = by(self.micros as f64) + seconds * SECOND as f64;
        result.micros = to_i64(micros.round_ties_even())?;
        Ok(result)
    }

    /// Days of 24 hours taken out of the time, signs made equal.
    ///
    /// # Errors
    /// 22008.
    pub fn justify_hours(&self) -> Result<Interval> {
        let mut result = *self;
        let whole = result.micros / DAY;
        result.micros -= whole * DAY;
        result.days = i32::try_from(i64::from(result.days) + whole).map_err(|_| out_of_range())?;
        if result.days > 0 && result.micros < 0 {
            result.micros += DAY;
            result.days -= 1;
        } else if result.days < 0 && result.micros > 0 {
            result.micros -= DAY;
            result.days += 1;
        }
        Ok(result)
    }

    /// Months of 30 days taken out of the days, signs made equal.
    ///
    /// # Errors
    /// 22008.
    pub fn justify_days(&self) -> Result<Interval> {
        let month = DAYS_PER_MONTH as i32;
        let mut result = *self;
        let whole = result.days / month;
        result.days -= whole * month;
        result.months = result.months.checked_add(whole).ok_or_else(out_of_range)?;
        if result.months > 0 && result.days < 0 {
            result.days += month;
            result.months -= 1;
        } else if result.months < 0 && result.days > 0 {
            result.days -= month;
            result.months += 1;
        }
        Ok(result)
    }

    /// Both, with all signs equal.
    ///
    /// # Errors
    /// 22008.
    pub fn justify(&self) -> Result<Interval> {
        let month = DAYS_PER_MONTH as i32;
        let mut result = *self;
        let early =
            (result.days > 0 && result.micros > 0) || (result.days < 0 && result.micros < 0);
        if early {
            result = result.carry_days()?;
        }
        let whole = result.micros / DAY;
        result.micros -= whole * DAY;
        result.days = i32::try_from(i64::from(result.days) + whole).map_err(|_| out_of_range())?;
        result = result.carry_days()?;
        let positive = result.months > 0;
        if positive && (result.days < 0 || (result.days == 0 && result.micros < 0)) {
            result.days += month;
            result.months -= 1;
        } else if result.months < 0 && (result.days > 0 || (result.days == 0 && result.micros > 0))
        {
            result.days -= month;
            result.months += 1;
        }
        if result.days > 0 && result.micros < 0 {
            result.micros += DAY;
            result.days -= 1;
        } else if result.days < 0 && result.micros > 0 {
            result.micros -= DAY;
            result.days += 1;
        }
        Ok(result)
    }

    fn carry_days(&self) -> Result<Interval> {
        let whole = self.days / DAYS_PER_MONTH as i32;
        Ok(Interval {
            months: self.months.checked_add(whole).ok_or_else(out_of_range)?,
            days: self.days - whole * DAYS_PER_MONTH as i32,
            micros: self.micros,
        })
    }
}

/// `make_interval`.
///
/// # Errors
/// 22008.
pub fn make(parts: [i32; 6], seconds: f64) -> Result<Interval> {
    let [years, months, weeks, days, hours, minutes] = parts;
    if !seconds.is_finite() {
        return Err(out_of_range());
    }
    // PostgreSQL 15 lets years and weeks wrap.
    let time = i64::from(hours) * HOUR + i64::from(minutes) * MINUTE;
    let micros = to_i64((seconds * SECOND as f64).round_ties_even())?;
    Ok(Interval {
        months: years.wrapping_mul(12).wrapping_add(months),
        days: weeks.wrapping_mul(7).wrapping_add(days),
        micros: time.wrapping_add(micros),
    })
}

/// Bits of the fields that an interval's modifier names.
mod field {
    pub const MONTH: i32 = 1 << 1;
    pub const YEAR: i32 = 1 << 2;
    pub const DAY: i32 = 1 << 3;
    pub const HOUR: i32 = 1 << 10;
    pub const MINUTE: i32 = 1 << 11;
    pub const SECOND: i32 = 1 << 12;
    /// All fields: nothing was said.
    pub const ALL: i32 = 0x7fff;
}
/// No precision was said.
const FULL_PRECISION: i32 = 0xffff;

/// The smallest unit that a modifier's fields keep, and what a bare number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Unit {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
}

fn fields(typmod: i32) -> i32 {
    match typmod {
        t if t < 0 => field::ALL,
        t => t >> 16 & 0x7fff,
    }
}

pub(crate) fn least_unit(typmod: i32) -> Unit {
    match fields(typmod) {
        field::ALL => Unit::Second,
        mask if mask & field::SECOND != 0 => Unit::Second,
        mask if mask & field::MINUTE != 0 => Unit::Minute,
        mask if mask & field::HOUR != 0 => Unit::Hour,
        mask if mask & field::DAY != 0 => Unit::Day,
        mask if mask & field::MONTH != 0 => Unit::Month,
        _ => Unit::Year,
    }
}

/// Whether `hh:mm` means minutes and seconds here.
pub fn is_minute_to_second(typmod: i32) -> bool {
    fields(typmod) == field::MINUTE | field::SECOND
}

pub(crate) fn typmod_in(arguments: &[i32]) -> Result<i32> {
    let wrong = || {
        Error::new(
            SqlState::INVALID_PARAMETER_VALUE,
            "invalid INTERVAL type modifier",
        )
    };
    let (mask, precision) = match arguments {
        [mask] if *mask == field::ALL => return Ok(-1),
        [mask] => (*mask, FULL_PRECISION),
        [mask, precision] => (*mask, *precision),
        _ => return Err(wrong()),
    };
    if precision < 0 {
        return Err(Error::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("INTERVAL({precision}) precision must not be negative"),
        ));
    }
    let precision = match precision {
        FULL_PRECISION => FULL_PRECISION,
        p => p.min(crate::typmod::SECOND_DIGITS_MAX),
    };
    Ok(mask << 16 | precision)
}

pub(crate) fn format_typmod(typmod: i32) -> String {
    let names = [
        (field::YEAR, "year"),
        (field::MONTH, "month"),
        (field::DAY, "day"),
        (field::HOUR, "hour"),
        (field::MINUTE, "minute"),
        (field::SECOND, "second"),
    ];
    let mask = fields(typmod);
    let mut out = "interval".to_owned();
    if mask != field::ALL {
        let named: Vec<_> = names
            .iter()
            .filter(|(bit, _)| mask & bit != 0)
            .map(|(_, name)| *name)
            .collect();
        match named[..] {
            [] => {}
            [only] => out = format!("interval {only}"),
            [first, .., last] => out = format!("interval {first} to {last}"),
        }
    }
    match typmod & 0xffff {
        FULL_PRECISION => out,
        precision => format!("{out}({precision})"),
    }
}

/// Drops the fields below the modifier's and rounds seconds to its precision.
pub fn apply_typmod(value: Interval, typmod: i32) -> Result<Interval> {
    let mut result = value;
    let unit = least_unit(typmod);
    match unit {
        Unit::Year | Unit::Month => {
            (result.days, result.micros) = (0, 0);
            if unit == Unit::Year {
                result.months = result.months / 12 * 12;
            }
        }
        Unit::Day => result.micros = 0,
        Unit::Hour => result.micros = result.micros / HOUR * HOUR,
        Unit::Minute => result.micros = result.micros / MINUTE * MINUTE,
        Unit::Second => {
            let precision = typmod & 0xffff;
            if typmod >= 0 && precision != FULL_PRECISION {
                if POW10.len() as i32 <= precision {
                    return Err(out_of_range());
                }
                result.micros = time::round(result.micros, precision);
            }
        }
    }
    Ok(result)
}

/// Reads an interval.
pub fn input(context: &EvalContext, typmod: i32, text: &str) -> Result<Datum> {
    let standard = context.interval_style == IntervalStyle::SqlStandard;
    let value = super::interval_text::parse(text, typmod, standard)?;
    apply_typmod(value, typmod).map(Datum::Interval)
}

/// Appends an interval.
pub fn write(style: IntervalStyle, value: &Interval, out: &mut String) {
    super::interval_text::write(style, value, out);
}
