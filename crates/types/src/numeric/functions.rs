//! Rounding, signs, scales, divisors.

use base::error::{Error, Result, SqlState};

use super::decimal::{Decimal, DIGITS};
use super::{overflow, Numeric, Repr, POW10};

/// The largest scale that `round` and `trunc` take literally: no number has more digits after the
/// point.
const ROUND_SCALE_MAX: i32 = 16_383;
/// The smallest: one digit more than there may be before the point, since the first may round up.
const ROUND_SCALE_MIN: i32 = -131_073;
/// The largest argument of `factorial`; beyond it the result overflows.
const FACTORIAL_MAX: i64 = 32_177;

#[derive(Clone, Copy, PartialEq)]
enum Toward {
    Nearest,
    Zero,
}

impl Numeric {
    /// Rounded to `scale` digits after the point (before it, if negative), halves away from zero.
    pub fn round(&self, scale: i32) -> Result<Numeric> {
        self.cut(scale, Toward::Nearest)
    }

    /// Cut to `scale` digits after the point.
    pub fn trunc(&self, scale: i32) -> Result<Numeric> {
        self.cut(scale, Toward::Zero)
    }

    fn cut(&self, scale: i32, toward: Toward) -> Result<Numeric> {
        let scale = scale.clamp(ROUND_SCALE_MIN, ROUND_SCALE_MAX);
        if let (Repr::Small { value, scale: has }, 0..=18) = (&self.0, scale) {
            let (has, value) = (i32::from(*has), i128::from(*value));
            if scale >= has {
                return Ok(Numeric::new(
                    value * POW10[(scale - has) as usize],
                    scale as u16,
                ));
            }
            let unit = POW10[(has - scale) as usize];
            let (mut quotient, rest) = (value / unit, value % unit);
            if toward == Toward::Nearest && rest.abs() * 2 >= unit {
                quotient += value.signum();
            }
            return Ok(Numeric::new(quotient, scale as u16));
        }
        match self.decimal() {
            None => Ok(self.clone()),
            Some(mut decimal) => {
                match toward {
                    Toward::Nearest => decimal.round(scale),
                    Toward::Zero => decimal.truncate(scale),
                }
                Numeric::from_decimal(decimal)
            }
        }
    }

    /// The largest integer that is not above.
    pub fn floor(&self) -> Result<Numeric> {
        let cut = self.trunc(0)?;
        if cut > *self {
            return cut.sub(&Numeric::from(1i64));
        }
        Ok(cut)
    }

    /// The smallest integer that is not below.
    pub fn ceil(&self) -> Result<Numeric> {
        let cut = self.trunc(0)?;
        if cut < *self {
            return cut.add(&Numeric::from(1i64));
        }
        Ok(cut)
    }

    /// -1, 0, 1 or NaN.
    pub fn sign(&self) -> Numeric {
        if self.is_nan() {
            return Numeric::NAN;
        }
        match self.is_negative() {
            true => Numeric::from(-1i64),
            false => Numeric::from(i64::from(!self.is_zero())),
        }
    }

    /// Digits before the point; 0 or less when the value is below 1; the least possible for zero.
    pub fn integer_digits(&self) -> i32 {
        let Some(decimal) = self.decimal() else {
            return 0;
        };
        match decimal.digits.first() {
            None => i32::MIN,
            Some(first) => {
                let digits = match first {
                    1000.. => 4,
                    100.. => 3,
                    10.. => 2,
                    _ => 1,
                };
                decimal.weight * DIGITS + digits
            }
        }
    }

    /// The smallest scale that shows the value exactly.
    pub fn min_scale(&self) -> i32 {
        self.decimal().map_or(0, |decimal| decimal.least_scale())
    }

    /// The value with its smallest scale.
    pub fn trim_scale(&self) -> Result<Numeric> {
        match self.decimal() {
            None => Ok(self.clone()),
            Some(mut decimal) => {
                decimal.scale = decimal.least_scale();
                Numeric::from_decimal(decimal)
            }
        }
    }

    /// The same value showing at least `scale` digits after the point.
    pub fn with_scale(&self, scale: i32) -> Result<Numeric> {
        match self.scale() < scale {
            true => self.round(scale),
            false => Ok(self.clone()),
        }
    }

    /// The greatest common divisor, never negative.
    pub fn gcd(&self, other: &Numeric) -> Result<Numeric> {
        if !self.is_finite() || !other.is_finite() {
            return Ok(Numeric::NAN);
        }
        let scale = self.scale().max(other.scale());
        let (mut a, mut b) = (self.abs(), other.abs());
        while !b.is_zero() {
            let rest = a.rem(&b)?;
            (a, b) = (b, rest);
        }
        a.with_scale(scale)
    }

    /// The least common multiple, never negative.
    pub fn lcm(&self, other: &Numeric) -> Result<Numeric> {
        if !self.is_finite() || !other.is_finite() {
            return Ok(Numeric::NAN);
        }
        let scale = self.scale().max(other.scale());
        if self.is_zero() || other.is_zero() {
            return Numeric::ZERO.with_scale(scale);
        }
        let part = self.div_truncated(&self.gcd(other)?)?;
        let multiple = part.mul(other)?.abs();
        multiple.round(scale)
    }

    /// `n!`.
    ///
    /// # Errors
    /// 22003 when `n` is negative or the result overflows.
    pub fn factorial(n: i64) -> Result<Numeric> {
        if n < 0 {
            return Err(Error::new(
                SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                "factorial of a negative number is undefined",
            ));
        }
        if n > FACTORIAL_MAX {
            return Err(overflow());
        }
        let mut product = Decimal::from_i128(1, 0);
        for factor in 2..=n {
            product = product.mul(&Decimal::from_i128(i128::from(factor), 0));
        }
        Numeric::from_decimal(product)
    }
}
