//! Decimal numbers with PostgreSQL's semantics: any scale up to 16,383, exact sums and products,
//! quotients with at least 16 significant digits, NaN and infinities.
//!
//! A number that fits is kept as an `i64` and a scale of at most 18, and computed with in `i128`;
//! the rest are digits in base 10,000 ([`Decimal`]). The two forms never overlap: a finite number
//! is *small* if and only if its unscaled value fits an `i64` and its scale is at most 18.
//!
//! The scale is how many digits are shown after the point. It is no part of the value: 1.0 equals
//! 1.00. Several result scales depend on how the digits fall into groups of four; where that is
//! so, the function says so.
//!
//! ```
//! use types::Numeric;
//! let third = Numeric::from(1i64).div(&Numeric::from(3i64)).unwrap();
//! assert_eq!(third.to_string(), "0.33333333333333333333");
//! ```
//!
//! Source: PostgreSQL 15 manual, sections 8.1.2 and 9.3; scales found by asking the server.

mod arithmetic;
mod convert;
mod decimal;
mod functions;
mod text;
mod transcendental;

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use base::error::{Error, Result, SqlState};

pub(crate) use decimal::Decimal;
pub use text::is_space;

/// Digits after the point that a value can have.
pub const SCALE_MAX: i32 = 16_383;
/// Digits before the point that a value can have.
pub const INTEGER_DIGITS_MAX: i32 = 131_072;
/// The largest scale of a quotient, a root or a declared type.
pub const RESULT_SCALE_MAX: i32 = 1_000;
/// Significant digits that a quotient or a root has at least.
pub const SIGNIFICANT_DIGITS_MIN: i32 = 16;
/// Scale up to which numbers are kept small.
pub const SMALL_SCALE_MAX: u16 = 18;

/// Powers of ten that fit an `i128`.
pub const POW10: [i128; 39] = {
    let mut powers = [1i128; 39];
    let mut i = 1;
    while i < 39 {
        powers[i] = powers[i - 1] * 10;
        i += 1;
    }
    powers
};

/// A decimal number.
#[derive(Clone)]
pub struct Numeric(pub(crate) Repr);

#[derive(Clone)]
pub(crate) enum Repr {
    Small { value: i64, scale: u16 },
    Large(Arc<Decimal>),
    NegativeInfinity,
    Infinity,
    Nan,
}

impl Numeric {
    /// The memory that it takes beside its place, in bytes.
    pub fn bytes_apart(&self) -> usize {
        match &self.0 {
            Repr::Large(decimal) => size_of::<Decimal>() + 2 * decimal.digits.len(),
            _ => 0,
        }
    }

    /// Not a number.
    pub const NAN: Numeric = Numeric(Repr::Nan);
    /// Positive infinity.
    pub const INFINITY: Numeric = Numeric(Repr::Infinity);
    /// Negative infinity.
    pub const NEGATIVE_INFINITY: Numeric = Numeric(Repr::NegativeInfinity);
    /// Zero, without decimals.
    pub const ZERO: Numeric = Numeric(Repr::Small { value: 0, scale: 0 });

    /// `value / 10^scale`.
    ///
    /// # Panics
    /// When the scale is above [`SCALE_MAX`].
    pub fn new(value: i128, scale: u16) -> Numeric {
        assert!(i32::from(scale) <= SCALE_MAX, "scale {scale} > {SCALE_MAX}");
        match i64::try_from(value) {
            Ok(value) if scale <= SMALL_SCALE_MAX => Numeric(Repr::Small { value, scale }),
            _ => Numeric(Repr::Large(Arc::new(Decimal::from_i128(
                value,
                i32::from(scale),
            )))),
        }
    }

    /// Whether it is NaN.
    pub fn is_nan(&self) -> bool {
        matches!(self.0, Repr::Nan)
    }

    /// Whether it is neither NaN nor an infinity.
    pub fn is_finite(&self) -> bool {
        matches!(self.0, Repr::Small { .. } | Repr::Large(_))
    }

    /// Whether it is zero.
    pub fn is_zero(&self) -> bool {
        match &self.0 {
            Repr::Small { value, .. } => *value == 0,
            Repr::Large(decimal) => decimal.is_zero(),
            _ => false,
        }
    }

    /// Whether it is below zero.
    pub fn is_negative(&self) -> bool {
        match &self.0 {
            Repr::Small { value, .. } => *value < 0,
            Repr::Large(decimal) => decimal.negative,
            Repr::NegativeInfinity => true,
            _ => false,
        }
    }

    /// Digits shown after the point; 0 for what is not finite.
    pub fn scale(&self) -> i32 {
        match &self.0 {
            Repr::Small { scale, .. } => i32::from(*scale),
            Repr::Large(decimal) => decimal.scale,
            _ => 0,
        }
    }

    /// The digits of a finite number; `None` for the others.
    pub(crate) fn decimal(&self) -> Option<Decimal> {
        match &self.0 {
            Repr::Small { value, scale } => {
                Some(Decimal::from_i128(i128::from(*value), i32::from(*scale)))
            }
            Repr::Large(decimal) => Some((**decimal).clone()),
            _ => None,
        }
    }

    /// The number with these digits.
    ///
    /// # Errors
    /// 22003 when it has too many digits before the point.
    pub(crate) fn from_decimal(mut decimal: Decimal) -> Result<Numeric> {
        decimal.strip();
        if decimal.scale > SCALE_MAX {
            decimal.round(SCALE_MAX);
        }
        if decimal.weight >= INTEGER_DIGITS_MAX / 4 {
            return Err(overflow());
        }
        if let Some((value, scale)) = decimal.to_small() {
            return Ok(Numeric(Repr::Small { value, scale }));
        }
        Ok(Numeric(Repr::Large(Arc::new(decimal))))
    }

    /// The number with these digits, which may be more than a value has.
    pub(crate) fn unbounded(mut decimal: Decimal) -> Numeric {
        decimal.strip();
        match decimal.to_small() {
            Some((value, scale)) => Numeric(Repr::Small { value, scale }),
            None => Numeric(Repr::Large(Arc::new(decimal))),
        }
    }

    /// A number that was computed without bounds as a value.
    ///
    /// # Errors
    /// 22003 when it has too many digits before the point.
    pub fn bounded(&self) -> Result<Numeric> {
        match &self.0 {
            Repr::Large(decimal) => Numeric::from_decimal((**decimal).clone()),
            _ => Ok(self.clone()),
        }
    }

    /// The rank of a value among the classes that sort by themselves: infinities and NaN.
    fn class(&self) -> i8 {
        match self.0 {
            Repr::NegativeInfinity => -1,
            Repr::Small { .. } | Repr::Large(_) => 0,
            Repr::Infinity => 1,
            Repr::Nan => 2,
        }
    }
}

/// 22003 "value overflows numeric format".
pub fn overflow() -> Error {
    Error::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        "value overflows numeric format",
    )
}

impl From<i64> for Numeric {
    fn from(value: i64) -> Numeric {
        Numeric(Repr::Small { value, scale: 0 })
    }
}

impl Ord for Numeric {
    fn cmp(&self, other: &Numeric) -> Ordering {
        let (left, right) = match (&self.0, &other.0) {
            (Repr::Small { value: a, scale: s }, Repr::Small { value: b, scale: t }) => {
                if s == t {
                    return a.cmp(b);
                }
                let common = (*s).max(*t);
                let align = |v: i64, scale: u16| i128::from(v) * POW10[usize::from(common - scale)];
                return align(*a, *s).cmp(&align(*b, *t));
            }
            _ => (self.decimal(), other.decimal()),
        };
        match (left, right) {
            (Some(left), Some(right)) => left.compare(&right),
            _ => self.class().cmp(&other.class()),
        }
    }
}

impl PartialOrd for Numeric {
    fn partial_cmp(&self, other: &Numeric) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Numeric {
    fn eq(&self, other: &Numeric) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Numeric {}

impl Hash for Numeric {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.class().hash(state);
        match &self.0 {
            Repr::Small { value, scale } => {
                // Without trailing zeros, so that equal numbers of different scales agree.
                let (mut value, mut scale) = (*value, *scale);
                while scale > 0 && value % 10 == 0 {
                    value /= 10;
                    scale -= 1;
                }
                (value, scale).hash(state);
            }
            Repr::Large(_) => {
                let mut least = self.clone();
                if let Repr::Large(decimal) = &self.0 {
                    let mut trimmed = (**decimal).clone();
                    trimmed.scale = trimmed.least_scale();
                    if let Ok(number) = Numeric::from_decimal(trimmed) {
                        least = number;
                    }
                }
                match &least.0 {
                    Repr::Small { value, scale } => (*value, *scale).hash(state),
                    Repr::Large(decimal) => {
                        (decimal.negative, decimal.weight, &decimal.digits).hash(state);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
}

impl std::fmt::Debug for Numeric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}
