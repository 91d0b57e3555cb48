//! Roots, powers, exponentials and logarithms.
//!
//! Each has a result scale that gives at least 16 significant digits, found from an estimate of
//! the result's size, and is computed with digits to spare and rounded once.

use base::error::{Error, Result, SqlState};

use super::arithmetic::division_by_zero;
use super::decimal::{Decimal, DIGITS};
use super::{overflow, Numeric, RESULT_SCALE_MAX, SIGNIFICANT_DIGITS_MIN};

/// Digits computed beyond those shown.
const GUARD: i32 = 12;
/// `exp` of more than this overflows, of less vanishes.
const EXP_MAX: f64 = 6_000.0;
/// ln 10 and its inverse, for estimates.
const LN_10: f64 = std::f64::consts::LN_10;
const LOG10_E: f64 = std::f64::consts::LOG10_E;

fn result_scale(digits_before: i32, at_least: i32) -> i32 {
    (SIGNIFICANT_DIGITS_MIN - digits_before)
        .max(at_least)
        .clamp(0, RESULT_SCALE_MAX)
}

fn one() -> Decimal {
    Decimal::from_i128(1, 0)
}

fn small(value: i64) -> Decimal {
    Decimal::from_i128(i128::from(value), 0)
}

fn logarithm_of_negative() -> Error {
    Error::new(
        SqlState::of("2201E"),
        "cannot take logarithm of a negative number",
    )
}

fn logarithm_of_zero() -> Error {
    Error::new(SqlState::of("2201E"), "cannot take logarithm of zero")
}

/// Roughly how many decimal digits |ln x| has before the point (0 or less below 10).
fn ln_weight(number: &Decimal) -> i32 {
    let near_one = {
        let low = Decimal::from_i128(9, 1);
        let high = Decimal::from_i128(11, 1);
        number.compare(&low).is_ge() && number.compare(&high).is_le()
    };
    if near_one {
        let distance = number.sub(&one());
        return match distance.digits.first() {
            Some(first) => distance.weight * DIGITS + f64::from(*first).log10() as i32,
            None => 0,
        };
    }
    let Some(first) = number.digits.first() else {
        return 0;
    };
    let mut leading = f64::from(*first);
    let mut power = number.weight * DIGITS;
    if let Some(second) = number.digits.get(1) {
        leading = leading * 10_000.0 + f64::from(*second);
        power -= DIGITS;
    }
    let ln = leading.ln() + f64::from(power) * LN_10;
    ln.abs().log10() as i32
}

/// √x to `scale` digits, rounded; the last is one off where what follows it is too near to a half.
fn sqrt(number: &Decimal, scale: i32) -> Decimal {
    if number.is_zero() {
        return Decimal::zero(scale);
    }
    // Newton's iteration from a guess good to about 15 digits; each step doubles them.
    let weight = number.weight.div_euclid(2) * 2;
    let mut mantissa = number.clone();
    mantissa.weight -= weight;
    let mut root = Numeric::parse(&format!("{:.15}", Numeric::estimate(&mantissa).sqrt()))
        .ok()
        .and_then(|guess| guess.decimal())
        .unwrap_or_else(one);
    root.weight += weight / 2;
    let work = scale + GUARD;
    let half = Decimal::from_i128(5, 1);
    let digits = work + (root.weight + 1) * DIGITS;
    let mut good = 14;
    loop {
        // No more digits than this step can make right.
        let right = good * 2 + GUARD - (root.weight + 1) * DIGITS;
        let step = work.min(right);
        let quotient = number.div(&root, step, true);
        root = root.add(&quotient).mul_rounded(&half, step);
        if good >= digits {
            break;
        }
        good *= 2;
    }
    // Where one digit more is exact, rounding must start from it.
    let mut near = root.clone();
    near.round(scale + 1);
    let exact = near.mul(&near).compare(number).is_eq();
    let mut result = if exact { near } else { root };
    result.round(scale);
    result
}

/// √x to `scale` digits, of which the last is right: what lies between two numbers of that scale is
/// told from the middle of them by its square, however near it comes to it.
fn sqrt_exact(number: &Decimal, scale: i32) -> Decimal {
    let root = sqrt(number, scale);
    let half = Decimal::from_i128(5, scale + 1);
    let unit = Decimal::from_i128(1, scale);
    let (below, above) = (root.sub(&half), root.add(&half));
    if !below.negative && below.mul(&below).compare(number).is_gt() {
        return root.sub(&unit);
    }
    match above.mul(&above).compare(number).is_le() {
        true => root.add(&unit),
        false => root,
    }
}

/// e^x to `scale` digits, rounded.
fn exp(number: &Decimal, scale: i32) -> Result<Decimal> {
    let value = Numeric::estimate(number);
    let digits_before = (value * LOG10_E) as i32;
    if digits_before < -(scale + GUARD) {
        return Ok(Decimal::zero(scale));
    }
    // e^x = (e^(x / 2^n))^(2^n), with n such that the series converges fast.
    let halvings = (value.abs().max(0.001) / 0.01).log2().ceil().max(0.0) as i32;
    let relative = scale + digits_before.max(0) + halvings / 3 + GUARD;
    let significant = (scale + digits_before).max(1) + halvings / 3 + GUARD;
    let power = small(1 << halvings);
    let x = number.div(&power, relative.max(significant) + halvings / 3, true);
    let work = relative.max(significant) + halvings / 3;
    let mut sum = one().add(&x);
    let mut term = x.clone();
    let mut n = 2;
    loop {
        term = term.mul_rounded(&x, work).div(&small(n), work, true);
        if term.is_zero() {
            break;
        }
        sum = sum.add(&term);
        n += 1;
    }
    for _ in 0..halvings {
        sum = sum.mul(&sum);
        round_significant(&mut sum, significant + GUARD);
    }
    sum.round(scale);
    Ok(sum)
}

/// Keeps so many significant digits.
fn round_significant(number: &mut Decimal, digits: i32) {
    if !number.is_zero() {
        let scale = digits - (number.weight + 1) * DIGITS;
        if scale < number.least_scale() {
            number.round(scale);
        }
        number.scale = number.least_scale();
    }
}

/// ln x to `scale` digits, rounded; `x` is above 0.
fn ln(number: &Decimal, scale: i32) -> Decimal {
    // ln x = 2^n · ln(x^(1/2^n)): roots until x is near 1.
    let mut x = number.clone();
    let mut doublings = 0;
    let low = Decimal::from_i128(9, 1);
    let high = Decimal::from_i128(11, 1);
    let work = scale + GUARD + 8;
    while x.compare(&low).is_le() || x.compare(&high).is_ge() {
        // Keep relative precision of very small and very large numbers.
        let at = work - (x.weight.div_euclid(2) + 1) * DIGITS;
        x = sqrt(&x, at.max(work));
        doublings += 1;
    }
    // ln x = 2 · (z + z³/3 + z⁵/5 + …), z = (x - 1) / (x + 1).
    let z = x.sub(&one()).div(&x.add(&one()), work, true);
    let square = z.mul_rounded(&z, work);
    let mut power = z.clone();
    let mut sum = z;
    let mut n = 3;
    loop {
        power = power.mul_rounded(&square, work);
        let term = power.div(&small(n), work, true);
        if term.is_zero() {
            break;
        }
        sum = sum.add(&term);
        n += 2;
    }
    let mut result = sum.mul(&small(2 << doublings));
    result.round(scale);
    result
}

/// `base^exponent` for an integer exponent, rounded to `scale`.
fn power_integer(base: &Decimal, exponent: i64, scale: i32) -> Result<Decimal> {
    let count = exponent.unsigned_abs();
    let leading = Numeric::estimate(&Decimal {
        weight: 0,
        negative: false,
        ..base.clone()
    });
    let digits = (leading.log10() + f64::from(base.weight * DIGITS)) * exponent as f64;
    if digits > f64::from(super::INTEGER_DIGITS_MAX) + 1.0 {
        return Err(overflow());
    }
    if digits + 1.0 < f64::from(-scale) {
        return Ok(Decimal::zero(scale));
    }
    let significant = (digits as i32 + scale).max(1) + (count as f64).log10() as i32 + GUARD;
    let mut result = one();
    let mut square = base.clone();
    let mut rest = count;
    while rest > 0 {
        if rest & 1 == 1 {
            result = result.mul(&square);
            round_significant(&mut result, significant);
        }
        rest >>= 1;
        if rest > 0 {
            square = square.mul(&square);
            round_significant(&mut square, significant);
        }
    }
    if exponent < 0 {
        return Ok(one().div(&result, scale, true));
    }
    result.round(scale);
    Ok(result)
}

impl Numeric {
    /// The square root.
    ///
    /// # Errors
    /// 2201F for a negative number.
    pub fn sqrt(&self) -> Result<Numeric> {
        let negative = || {
            Error::new(
                SqlState::of("2201F"),
                "cannot take square root of a negative number",
            )
        };
        let Some(number) = self.decimal() else {
            return match self.is_negative() {
                true => Err(negative()),
                false => Ok(self.clone()),
            };
        };
        if number.negative {
            return Err(negative());
        }
        let weight = if number.weight >= 0 {
            number.weight * DIGITS / 2 + 1
        } else {
            1 - (1 - number.weight * DIGITS) / 2
        };
        let scale = result_scale(weight, number.scale);
        Numeric::from_decimal(sqrt_exact(&number, scale))
    }

    /// The square root to a scale; the number is finite and not negative.
    pub fn sqrt_to(&self, scale: i32) -> Result<Numeric> {
        match self.decimal() {
            Some(number) => Numeric::from_decimal(sqrt_exact(&number, scale)),
            None => Ok(self.clone()),
        }
    }

    /// e to this power.
    ///
    /// # Errors
    /// 22003 on overflow.
    pub fn exp(&self) -> Result<Numeric> {
        let Some(number) = self.decimal() else {
            return Ok(match self.is_negative() {
                true => Numeric::ZERO,
                false => self.clone(),
            });
        };
        let weight = (Numeric::estimate(&number) * LOG10_E).clamp(-2_000.0, 2_000.0) as i32;
        let scale = result_scale(weight, number.scale);
        if Numeric::estimate(&number) < -EXP_MAX {
            return Numeric::from_decimal(Decimal::zero(scale));
        }
        if Numeric::estimate(&number) > EXP_MAX {
            return Err(overflow());
        }
        Numeric::from_decimal(exp(&number, scale)?)
    }

    /// The natural logarithm.
    ///
    /// # Errors
    /// 2201E for zero and below.
    pub fn ln(&self) -> Result<Numeric> {
        if self.is_nan() {
            return Ok(Numeric::NAN);
        }
        if self.is_negative() {
            return Err(logarithm_of_negative());
        }
        if self.is_zero() {
            return Err(logarithm_of_zero());
        }
        let Some(number) = self.decimal() else {
            return Ok(self.clone());
        };
        let scale = result_scale(ln_weight(&number), number.scale);
        Numeric::from_decimal(ln(&number, scale))
    }

    /// The logarithm to a base.
    ///
    /// # Errors
    /// 2201E for zero and below, 22012 for base 1.
    pub fn log(base: &Numeric, number: &Numeric) -> Result<Numeric> {
        if base.is_nan() || number.is_nan() {
            return Ok(Numeric::NAN);
        }
        let special = !base.is_finite() || !number.is_finite();
        if special && (base.is_negative() || number.is_negative()) {
            return Err(logarithm_of_negative());
        }
        for operand in [base, number] {
            if operand.is_negative() {
                return Err(logarithm_of_negative());
            }
            if operand.is_zero() {
                return Err(logarithm_of_zero());
            }
        }
        let (Some(base_digits), Some(digits)) = (base.decimal(), number.decimal()) else {
            return Ok(match (base.is_finite(), number.is_finite()) {
                (false, false) => Numeric::NAN,
                (false, true) => Numeric::ZERO,
                _ => Numeric::INFINITY,
            });
        };
        let (base_weight, weight) = (ln_weight(&base_digits), ln_weight(&digits));
        let result_weight = weight - base_weight;
        let scale = result_scale(result_weight, base_digits.scale.max(digits.scale));
        let ln_base = ln(&base_digits, scale + result_weight - base_weight + GUARD);
        if ln_base.is_zero() {
            return Err(division_by_zero());
        }
        let ln_number = ln(&digits, (scale + GUARD - base_weight).max(scale + GUARD));
        Numeric::from_decimal(ln_number.div(&ln_base, scale, true))
    }

    /// This number to a power.
    ///
    /// # Errors
    /// 2201F for zero to a negative power and negative numbers to fractions, 22003 on overflow.
    pub fn power(&self, exponent: &Numeric) -> Result<Numeric> {
        let (Some(base), Some(power)) = (self.decimal(), exponent.decimal()) else {
            return self.power_special(exponent);
        };
        if base.is_zero() && power.negative {
            return Err(Error::new(
                SqlState::of("2201F"),
                "zero raised to a negative power is undefined",
            ));
        }
        let integer = power.least_scale() == 0;
        if base.negative && !integer {
            return Err(Error::new(
                SqlState::of("2201F"),
                "a negative number raised to a non-integer power yields a complex result",
            ));
        }
        let whole = power.unscaled_integer();
        if let (true, Some(count)) = (integer, whole) {
            let scale = SIGNIFICANT_DIGITS_MIN.max(base.scale).min(RESULT_SCALE_MAX);
            if base.is_zero() {
                let result = if count == 0 { one() } else { Decimal::zero(0) };
                return Numeric::from_decimal(result)?.with_scale(scale);
            }
            return Numeric::from_decimal(power_integer(&base, count, scale)?)?.with_scale(scale);
        }
        if base.is_zero() {
            return Numeric::ZERO.with_scale(SIGNIFICANT_DIGITS_MIN);
        }
        let odd = integer && power.digit(0) % 2 == 1;
        power_fraction(&base, &power, odd)
    }

    fn power_special(&self, exponent: &Numeric) -> Result<Numeric> {
        let one = Numeric::from(1i64);
        if exponent.is_zero() || *self == one {
            return Ok(one);
        }
        if self.is_nan() || exponent.is_nan() {
            return Ok(Numeric::NAN);
        }
        if self.is_zero() {
            if exponent.is_negative() {
                return Err(Error::new(
                    SqlState::of("2201F"),
                    "zero raised to a negative power is undefined",
                ));
            }
            return Ok(Numeric::ZERO);
        }
        if !exponent.is_finite() {
            // Only whether |base| lies above or below 1 matters.
            let above = self.abs() > one;
            return Ok(match (self.abs() == one, above != exponent.is_negative()) {
                (true, _) => one,
                (false, true) => Numeric::INFINITY,
                (false, false) => Numeric::ZERO,
            });
        }
        let integer = exponent.min_scale() == 0;
        if self.is_negative() && !integer {
            return Err(Error::new(
                SqlState::of("2201F"),
                "a negative number raised to a non-integer power yields a complex result",
            ));
        }
        if exponent.is_negative() {
            return Ok(Numeric::ZERO);
        }
        let odd = exponent
            .decimal()
            .is_some_and(|digits| digits.digit(0) % 2 == 1);
        Ok(match self.is_negative() && odd {
            true => Numeric::NEGATIVE_INFINITY,
            false => Numeric::INFINITY,
        })
    }
}

impl Decimal {
    /// The value, when it is an integer of 32 bits.
    fn unscaled_integer(&self) -> Option<i64> {
        let mut whole = self.clone();
        whole.scale = 0;
        let value = i64::try_from(whole.unscaled()?).ok()?;
        i32::try_from(value).ok().map(i64::from)
    }
}

fn power_fraction(base: &Decimal, power: &Decimal, odd: bool) -> Result<Numeric> {
    let magnitude = base.magnitude();
    let weight = ln_weight(&magnitude);
    let rough = ln(&magnitude, (8 - weight).max(0)).mul(power);
    let value = Numeric::estimate(&rough);
    if value.abs() > EXP_MAX * 1.003_333 {
        if value > 0.0 {
            return Err(overflow());
        }
        return Numeric::ZERO.with_scale(RESULT_SCALE_MAX);
    }
    let digits = (value * LOG10_E) as i32;
    let scale = result_scale(digits, base.scale.max(power.scale));
    // The error of the logarithm is multiplied by the exponent and, relatively, by the result.
    let spare = (power.weight + 1).max(0) * DIGITS + GUARD;
    let ln_scale = (scale + digits).max(0) + spare - weight.min(0);
    let exponent = ln(&magnitude, ln_scale).mul(power);
    let mut result = exp(&exponent, scale)?;
    result.negative = odd && base.negative && !result.is_zero();
    Numeric::from_decimal(result)
}
