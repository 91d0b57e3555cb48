//! Sums, products, quotients and remainders.
//!
//! | operation | scale of the result |
//! |---|---|
//! | `a + b`, `a - b`, `a % b` | the larger scale |
//! | `a * b` | the sum of the scales, at most 16,383 |
//! | `a / b` | at least 16 significant digits, counted in groups of four; see [`quotient_scale`] |

use base::error::{Error, Result, SqlState};

use super::decimal::{Decimal, DIGITS};
use super::{
    Numeric, Repr, POW10, RESULT_SCALE_MAX, SCALE_MAX, SIGNIFICANT_DIGITS_MIN, SMALL_SCALE_MAX,
};

/// 22012.
pub fn division_by_zero() -> Error {
    Error::new(SqlState::DIVISION_BY_ZERO, "division by zero")
}

/// The first non-zero base-10,000 digit and its weight; (0, 0) for zero.
fn leading_digit(number: &Numeric) -> (i32, u16) {
    match &number.0 {
        Repr::Small { value, scale } => {
            let groups = (i32::from(*scale) + DIGITS - 1) / DIGITS;
            let shift = POW10[(groups * DIGITS - i32::from(*scale)) as usize];
            let mut rest = i128::from(value.unsigned_abs()) * shift;
            if rest == 0 {
                return (0, 0);
            }
            let mut weight = -groups;
            while rest >= 10_000 {
                rest /= 10_000;
                weight += 1;
            }
            (weight, rest as u16)
        }
        Repr::Large(decimal) => match decimal.digits.first() {
            Some(first) => (decimal.weight, *first),
            None => (0, 0),
        },
        _ => (0, 0),
    }
}

/// The scale of a quotient: at least 16 significant digits, no fewer digits after the point than
/// either operand, at most 1,000. The weight of the quotient is estimated from the operands'
/// first groups of four digits.
pub fn quotient_scale(dividend: &Numeric, divisor: &Numeric) -> i32 {
    let (weight1, first1) = leading_digit(dividend);
    let (weight2, first2) = leading_digit(divisor);
    let weight = weight1 - weight2 - i32::from(first1 <= first2);
    (SIGNIFICANT_DIGITS_MIN - weight * DIGITS)
        .max(dividend.scale())
        .max(divisor.scale())
        .clamp(0, RESULT_SCALE_MAX)
}

/// Both operands aligned to their larger scale, if both are small.
fn aligned(a: &Numeric, b: &Numeric) -> Option<(i128, i128, u16)> {
    match (&a.0, &b.0) {
        (Repr::Small { value: a, scale: s }, Repr::Small { value: b, scale: t }) => {
            let scale = (*s).max(*t);
            let left = i128::from(*a) * POW10[usize::from(scale - s)];
            let right = i128::from(*b) * POW10[usize::from(scale - t)];
            Some((left, right, scale))
        }
        _ => None,
    }
}

fn both(a: &Numeric, b: &Numeric) -> Option<(Decimal, Decimal)> {
    Some((a.decimal()?, b.decimal()?))
}

/// The sign of a number: -1, 0 or 1, infinities included.
fn signum(number: &Numeric) -> i32 {
    if number.is_negative() {
        -1
    } else {
        i32::from(!number.is_zero())
    }
}

fn infinity(sign: i32) -> Numeric {
    match sign {
        0 => Numeric::NAN,
        s if s < 0 => Numeric::NEGATIVE_INFINITY,
        _ => Numeric::INFINITY,
    }
}

/// A small number, if it is one.
#[inline]
fn small(value: Option<i64>, scale: u16) -> Option<Numeric> {
    match value {
        Some(value) if scale <= SMALL_SCALE_MAX => Some(Numeric(Repr::Small { value, scale })),
        _ => None,
    }
}

/// Both operands as they are if they are small and of one scale, or aligned without leaving a machine
/// word.
#[inline]
fn words(a: &Numeric, b: &Numeric) -> Option<(i64, i64, u16)> {
    let (Repr::Small { value: a, scale: s }, Repr::Small { value: b, scale: t }) = (&a.0, &b.0)
    else {
        return None;
    };
    let align = |value: i64, by: u16| value.checked_mul(POW10[usize::from(by)] as i64);
    match s.cmp(t) {
        std::cmp::Ordering::Equal => Some((*a, *b, *s)),
        std::cmp::Ordering::Less => Some((align(*a, t - s)?, *b, *t)),
        std::cmp::Ordering::Greater => Some((*a, align(*b, s - t)?, *s)),
    }
}

/// What takes no more than a machine word: the same as by the ways for all numbers, which those take
/// for whom there is none.
impl Numeric {
    /// The sum.
    #[inline]
    pub fn add_small(&self, other: &Numeric) -> Option<Numeric> {
        let (a, b, scale) = words(self, other)?;
        small(a.checked_add(b), scale)
    }

    /// The difference.
    #[inline]
    pub fn sub_small(&self, other: &Numeric) -> Option<Numeric> {
        let (a, b, scale) = words(self, other)?;
        small(a.checked_sub(b), scale)
    }

    /// The product.
    #[inline]
    pub fn mul_small(&self, other: &Numeric) -> Option<Numeric> {
        match (&self.0, &other.0) {
            (Repr::Small { value: a, scale: s }, Repr::Small { value: b, scale: t }) => {
                small(a.checked_mul(*b), s + t)
            }
            _ => None,
        }
    }

    /// The order.
    #[inline]
    pub fn cmp_small(&self, other: &Numeric) -> Option<std::cmp::Ordering> {
        let (a, b, _) = words(self, other)?;
        Some(a.cmp(&b))
    }
}

impl Numeric {
    /// The sum.
    pub fn add(&self, other: &Numeric) -> Result<Numeric> {
        if let Some((a, b, scale)) = aligned(self, other) {
            return Ok(Numeric::new(a + b, scale));
        }
        if let Some((a, b)) = both(self, other) {
            return Numeric::from_decimal(a.add(&b));
        }
        Ok(match (&self.0, &other.0) {
            (Repr::Nan, _) | (_, Repr::Nan) => Numeric::NAN,
            (Repr::Infinity, Repr::NegativeInfinity) | (Repr::NegativeInfinity, Repr::Infinity) => {
                Numeric::NAN
            }
            (Repr::Infinity | Repr::NegativeInfinity, _) => self.clone(),
            _ => other.clone(),
        })
    }

    /// The difference.
    pub fn sub(&self, other: &Numeric) -> Result<Numeric> {
        if let Some((a, b, scale)) = aligned(self, other) {
            return Ok(Numeric::new(a - b, scale));
        }
        self.add(&other.neg())
    }

    /// The number with the other sign.
    pub fn neg(&self) -> Numeric {
        match &self.0 {
            Repr::Small { value, scale } => Numeric::new(-i128::from(*value), *scale),
            Repr::Large(decimal) => Numeric::unbounded(decimal.negated()),
            Repr::Infinity => Numeric::NEGATIVE_INFINITY,
            Repr::NegativeInfinity => Numeric::INFINITY,
            Repr::Nan => Numeric::NAN,
        }
    }

    /// The number without its sign.
    pub fn abs(&self) -> Numeric {
        if self.is_negative() {
            self.neg()
        } else {
            self.clone()
        }
    }

    /// The sum, without the bounds of a value: what [`Numeric::bounded`] has not passed may only be
    /// computed with.
    pub fn add_unbounded(&self, other: &Numeric) -> Result<Numeric> {
        match aligned(self, other) {
            Some(_) => self.add(other),
            None => match both(self, other) {
                Some((a, b)) => Ok(Numeric::unbounded(a.add(&b))),
                None => self.add(other),
            },
        }
    }

    /// The product, as exact and without bounds.
    pub fn mul_unbounded(&self, other: &Numeric) -> Result<Numeric> {
        match aligned(self, other) {
            Some(_) => self.mul(other),
            None => match both(self, other) {
                Some((a, b)) => Ok(Numeric::unbounded(a.mul(&b))),
                None => self.mul(other),
            },
        }
    }

    /// The product.
    pub fn mul(&self, other: &Numeric) -> Result<Numeric> {
        if let (Repr::Small { value: a, scale: s }, Repr::Small { value: b, scale: t }) =
            (&self.0, &other.0)
        {
            return Ok(Numeric::new(i128::from(*a) * i128::from(*b), s + t));
        }
        if let Some((a, b)) = both(self, other) {
            let mut product = a.mul(&b);
            if product.scale > SCALE_MAX {
                product.round(SCALE_MAX);
            }
            return Numeric::from_decimal(product);
        }
        if self.is_nan() || other.is_nan() {
            return Ok(Numeric::NAN);
        }
        Ok(infinity(signum(self) * signum(other)))
    }

    /// The quotient.
    ///
    /// # Errors
    /// 22012 when the divisor is zero.
    pub fn div(&self, divisor: &Numeric) -> Result<Numeric> {
        if let Some(result) = self.div_special(divisor)? {
            return Ok(result);
        }
        let scale = quotient_scale(self, divisor);
        if let Some(result) = div_small(self, divisor, scale) {
            return Ok(result);
        }
        match both(self, divisor) {
            Some((a, b)) => Numeric::from_decimal(a.div(&b, scale, true)),
            None => Ok(Numeric::NAN),
        }
    }

    /// Quotients with NaN, infinities and zero divisors; `None` for all others.
    fn div_special(&self, divisor: &Numeric) -> Result<Option<Numeric>> {
        if self.is_finite() && divisor.is_finite() {
            return if divisor.is_zero() {
                Err(division_by_zero())
            } else {
                Ok(None)
            };
        }
        if self.is_nan() || divisor.is_nan() {
            return Ok(Some(Numeric::NAN));
        }
        if divisor.is_finite() {
            return match signum(divisor) {
                0 => Err(division_by_zero()),
                sign => Ok(Some(infinity(sign * signum(self)))),
            };
        }
        // Something finite divided by an infinity is 0; two infinities are NaN.
        Ok(Some(if self.is_finite() {
            Numeric::ZERO
        } else {
            Numeric::NAN
        }))
    }

    /// The quotient truncated to an integer (`div(a, b)`).
    ///
    /// # Errors
    /// 22012 when the divisor is zero.
    pub fn div_truncated(&self, divisor: &Numeric) -> Result<Numeric> {
        if let Some(result) = self.div_special(divisor)? {
            return Ok(result);
        }
        if let Some((a, b, _)) = aligned(self, divisor) {
            return Ok(Numeric::new(a / b, 0));
        }
        match both(self, divisor) {
            Some((a, b)) => Numeric::from_decimal(a.div(&b, 0, false)),
            None => Ok(Numeric::NAN),
        }
    }

    /// The remainder, with the dividend's sign.
    ///
    /// # Errors
    /// 22012 when the divisor is zero.
    pub fn rem(&self, divisor: &Numeric) -> Result<Numeric> {
        if let Some((a, b, scale)) = aligned(self, divisor) {
            return if b == 0 {
                Err(division_by_zero())
            } else {
                Ok(Numeric::new(a % b, scale))
            };
        }
        if self.is_nan() || divisor.is_nan() {
            return Ok(Numeric::NAN);
        }
        if divisor.is_zero() {
            return Err(division_by_zero());
        }
        match both(self, divisor) {
            Some((a, b)) => {
                let mut rest = a.sub(&a.div(&b, 0, false).mul(&b));
                rest.scale = a.scale.max(b.scale);
                Numeric::from_decimal(rest)
            }
            // x % infinity is x; infinity % x is NaN.
            None if self.is_finite() => Ok(self.clone()),
            None => Ok(Numeric::NAN),
        }
    }
}

/// The quotient by way of `i128`, if nothing overflows.
fn div_small(dividend: &Numeric, divisor: &Numeric, scale: i32) -> Option<Numeric> {
    let (Repr::Small { value: a, scale: s }, Repr::Small { value: b, scale: t }) =
        (&dividend.0, &divisor.0)
    else {
        return None;
    };
    let shift = scale + i32::from(*t) - i32::from(*s);
    let (mut top, mut bottom) = (i128::from(*a), i128::from(*b));
    let power = *POW10.get(shift.unsigned_abs() as usize)?;
    if shift >= 0 {
        top = top.checked_mul(power)?;
    } else {
        bottom = bottom.checked_mul(power)?;
    }
    let (quotient, rest) = (top / bottom, top % bottom);
    let up = rest.unsigned_abs() * 2 >= bottom.unsigned_abs();
    let away = if (top < 0) == (bottom < 0) { 1 } else { -1 };
    let quotient = if up { quotient + away } else { quotient };
    Some(Numeric::new(quotient, scale as u16))
}
