//! Trigonometry in degrees, exact where the result is: `sind(30)` is 0.5, `tand(45)` is 1.
//!
//! Angles are brought into the first quarter, where each function is computed from the one of radians
//! and scaled so that it is exact at 30, 45 and 60 degrees.
//!
//! Source: PostgreSQL 15 manual, table 9.7.

use base::error::{Error, Result, SqlState};

use super::arguments::Arguments;
use super::Call;
use types::Datum;

fn out_of_range<T>() -> Result<T> {
    Err(Error::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        "input is out of range",
    ))
}

/// The sine of 0 to 30 degrees.
fn sine_of_third(degrees: f64) -> f64 {
    degrees.to_radians_exactly().sin() / 30_f64.to_radians_exactly().sin() / 2.0
}

/// The cosine of 0 to 60 degrees.
fn cosine_of_most(degrees: f64) -> f64 {
    let below_one = |degrees: f64| 1.0 - degrees.to_radians_exactly().cos();
    1.0 - below_one(degrees) / below_one(60.0) / 2.0
}

/// The sine of 0 to 90 degrees.
fn sine(degrees: f64) -> f64 {
    match degrees <= 30.0 {
        true => sine_of_third(degrees),
        false => cosine_of_most(90.0 - degrees),
    }
}

/// The cosine of 0 to 90 degrees.
fn cosine(degrees: f64) -> f64 {
    match degrees <= 60.0 {
        true => cosine_of_most(degrees),
        false => sine_of_third(90.0 - degrees),
    }
}

/// The arc sine of 0 to 1.
fn arc_sine(value: f64) -> f64 {
    match value <= 0.5 {
        true => value.asin() / 0.5_f64.asin() * 30.0,
        false => 90.0 - value.acos() / 0.5_f64.acos() * 60.0,
    }
}

/// The arc cosine of 0 to 1.
fn arc_cosine(value: f64) -> f64 {
    match value <= 0.5 {
        true => 90.0 - value.asin() / 0.5_f64.asin() * 30.0,
        false => value.acos() / 0.5_f64.acos() * 60.0,
    }
}

trait ToRadians {
    fn to_radians_exactly(self) -> f64;
}

impl ToRadians for f64 {
    /// By one multiplication, as PostgreSQL rounds it.
    fn to_radians_exactly(self) -> f64 {
        self * (std::f64::consts::PI / 180.0)
    }
}

/// An angle of the first quarter, and the sign of what is computed of it.
struct Quarter {
    degrees: f64,
    sign: f64,
}

/// Brings an angle into the first quarter: whether the sign turns below 0 and above 180, and whether it
/// does above 90. None for what is no number.
///
/// # Errors
/// 22003 for an infinite one.
fn quarter(angle: f64, odd: bool, turns: bool) -> Result<Option<Quarter>> {
    if angle.is_nan() {
        return Ok(None);
    }
    if angle.is_infinite() {
        return out_of_range();
    }
    let (mut degrees, mut sign) = (angle % 360.0, 1.0);
    if degrees < 0.0 {
        degrees = -degrees;
        sign = if odd { -sign } else { sign };
    }
    if degrees > 180.0 {
        degrees = 360.0 - degrees;
        sign = if odd { -sign } else { sign };
    }
    if degrees > 90.0 {
        degrees = 180.0 - degrees;
        sign = if turns { -sign } else { sign };
    }
    Ok(Some(Quarter { degrees, sign }))
}

fn computed(found: Option<Quarter>, of: impl Fn(f64) -> f64) -> Datum {
    Datum::Float8(match found {
        None => f64::NAN,
        // Without the sign of a zero.
        Some(Quarter { degrees, sign }) => sign * of(degrees) + 0.0,
    })
}

pub(crate) fn sind(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let found = quarter(args.float(0)?, true, false)?;
    Ok(Datum::Float8(found.map_or(f64::NAN, |found| {
        found.sign * sine(found.degrees)
    })))
}

pub(crate) fn cosd(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let found = quarter(args.float(0)?, false, true)?;
    Ok(Datum::Float8(found.map_or(f64::NAN, |found| {
        found.sign * cosine(found.degrees)
    })))
}

pub(crate) fn tand(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let tangent = |degrees: f64| sine(degrees) / cosine(degrees);
    let found = quarter(args.float(0)?, true, true)?;
    Ok(computed(found, |degrees| tangent(degrees) / tangent(45.0)))
}

pub(crate) fn cotd(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let cotangent = |degrees: f64| cosine(degrees) / sine(degrees);
    let found = quarter(args.float(0)?, true, true)?;
    Ok(computed(found, |degrees| {
        cotangent(degrees) / cotangent(45.0)
    }))
}

fn within_one(value: f64) -> Result<f64> {
    match (-1.0..=1.0).contains(&value) || value.is_nan() {
        true => Ok(value),
        false => out_of_range(),
    }
}

pub(crate) fn asind(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let value = within_one(args.float(0)?)?;
    Ok(Datum::Float8(match value {
        value if value.is_nan() => f64::NAN,
        value if value >= 0.0 => arc_sine(value),
        value => -arc_sine(-value),
    }))
}

pub(crate) fn acosd(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let value = within_one(args.float(0)?)?;
    Ok(Datum::Float8(match value {
        value if value.is_nan() => f64::NAN,
        value if value >= 0.0 => arc_cosine(value),
        value => 90.0 + arc_sine(-value),
    }))
}

pub(crate) fn atand(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let angle = args.float(0)?.atan();
    Ok(Datum::Float8(angle / 1_f64.atan() * 45.0))
}

pub(crate) fn atan2d(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let angle = args.float(0)?.atan2(args.float(1)?);
    Ok(Datum::Float8(angle / 1_f64.atan() * 45.0))
}
