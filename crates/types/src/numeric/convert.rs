//! Conversions between decimal numbers and binary ones.

use base::error::{Error, Result, SqlState};

use super::decimal::Decimal;
use super::{Numeric, Repr, POW10};
use crate::float;

/// Significant digits that a `double precision` brings into a numeric.
const DIGITS_F64: i32 = 15;
/// Significant digits that a `real` brings into a numeric.
const DIGITS_F32: i32 = 6;

fn from_float(value: f64, digits: i32) -> Result<Numeric> {
    if value.is_nan() {
        return Ok(Numeric::NAN);
    }
    if value.is_infinite() {
        return Ok(match value > 0.0 {
            true => Numeric::INFINITY,
            false => Numeric::NEGATIVE_INFINITY,
        });
    }
    Numeric::parse(&float::general(value, digits))
}

/// Half away from zero.
fn divide_rounding(value: i128, by: i128) -> i128 {
    let (quotient, rest) = (value / by, value % by);
    if rest.abs() * 2 >= by {
        quotient + value.signum()
    } else {
        quotient
    }
}

impl Numeric {
    /// A `double precision`, to 15 significant digits.
    pub fn from_f64(value: f64) -> Result<Numeric> {
        from_float(value, DIGITS_F64)
    }

    /// A `real`, to 6 significant digits.
    pub fn from_f32(value: f32) -> Result<Numeric> {
        from_float(f64::from(value), DIGITS_F32)
    }

    /// The nearest `double precision`.
    ///
    /// # Errors
    /// 22003 when it is out of range.
    pub fn to_f64(&self) -> Result<f64> {
        match &self.0 {
            Repr::Nan => Ok(f64::NAN),
            Repr::Infinity => Ok(f64::INFINITY),
            Repr::NegativeInfinity => Ok(f64::NEG_INFINITY),
            Repr::Small { value, scale: 0 } if value.unsigned_abs() < 1 << 53 => Ok(*value as f64),
            _ => float::parse_f64(&self.to_string()),
        }
    }

    /// The unscaled value and the power of ten divided as binary numbers, which is how
    /// `date_part` computes; beyond 2^53 it may differ from the nearest number.
    pub fn quotient_f64(&self) -> Result<f64> {
        match &self.0 {
            Repr::Small { value, scale } => Ok(*value as f64 / 10f64.powi(i32::from(*scale))),
            _ => self.to_f64(),
        }
    }

    /// The nearest `real`.
    ///
    /// # Errors
    /// 22003 when it is out of range.
    pub fn to_f32(&self) -> Result<f32> {
        match &self.0 {
            Repr::Nan => Ok(f32::NAN),
            Repr::Infinity => Ok(f32::INFINITY),
            Repr::NegativeInfinity => Ok(f32::NEG_INFINITY),
            _ => float::parse_f32(&self.to_string()),
        }
    }

    /// The nearest integer, halves away from zero.
    ///
    /// # Errors
    /// 22003 "`type_name` out of range", 0A000 for NaN and infinities.
    pub fn to_integer(&self, type_name: &str) -> Result<i64> {
        let impossible = |what: &str| {
            Error::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("cannot convert {what} to {type_name}"),
            )
        };
        let out_of_range = || {
            Error::new(
                SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                format!("{type_name} out of range"),
            )
        };
        match &self.0 {
            Repr::Nan => Err(impossible("NaN")),
            Repr::Infinity | Repr::NegativeInfinity => Err(impossible("infinity")),
            Repr::Small { value, scale: 0 } => Ok(*value),
            Repr::Small { value, scale } => {
                Ok(divide_rounding(i128::from(*value), POW10[usize::from(*scale)]) as i64)
            }
            Repr::Large(decimal) => {
                let mut rounded = (**decimal).clone();
                rounded.round(0);
                rounded
                    .unscaled()
                    .and_then(|value| i64::try_from(value).ok())
                    .ok_or_else(out_of_range)
            }
        }
    }

    /// The nearest `f64` of a decimal for estimates; infinite when out of range.
    pub(crate) fn estimate(decimal: &Decimal) -> f64 {
        let mut value = 0f64;
        for digit in decimal.digits.iter().take(5) {
            value = value * 10_000.0 + f64::from(*digit);
        }
        let shown = decimal.digits.len().min(5) as i32;
        let power = (decimal.weight - shown + 1) * 4;
        let magnitude = value * 10f64.powi(power);
        if decimal.negative {
            -magnitude
        } else {
            magnitude
        }
    }
}

impl From<i32> for Numeric {
    fn from(value: i32) -> Numeric {
        Numeric::from(i64::from(value))
    }
}

impl From<u64> for Numeric {
    fn from(value: u64) -> Numeric {
        Numeric::new(i128::from(value), 0)
    }
}
