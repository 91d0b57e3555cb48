//! Numbers of any length: sign, digits in base 10,000, and where they stand.
//!
//! `value = ± Σ digits[i] · 10000^(weight - i)`. Invariants of a stripped decimal: no leading and no
//! trailing zero digit; zero has no digits, weight 0 and no sign. `scale` is how many decimal
//! digits are shown after the point; no digit stands behind them.

use base::coro;
use std::cmp::Ordering;

use super::SMALL_SCALE_MAX;

/// The base of a digit.
pub const BASE: u32 = 10_000;
/// Decimal digits of a digit.
pub const DIGITS: i32 = 4;

/// A finite number of any length.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decimal {
    pub negative: bool,
    pub weight: i32,
    pub scale: i32,
    pub digits: Vec<u16>,
}

impl Decimal {
    /// `value / 10^scale`.
    pub fn from_i128(value: i128, scale: i32) -> Decimal {
        let mut rest = value.unsigned_abs();
        // Shift so that the point falls between two digits.
        let groups = (scale + DIGITS - 1) / DIGITS;
        let shift = 10u128.pow((groups * DIGITS - scale) as u32);
        let mut digits = Vec::with_capacity(11);
        // The lowest digit may be partial: take it apart first so that the shift cannot overflow.
        if shift > 1 {
            let part = u128::from(BASE) / shift;
            digits.push(((rest % part) * shift) as u16);
            rest /= part;
        }
        while rest > 0 {
            digits.push((rest % u128::from(BASE)) as u16);
            rest /= u128::from(BASE);
        }
        let weight = digits.len() as i32 - 1 - groups;
        digits.reverse();
        let mut decimal = Decimal {
            negative: value < 0,
            weight,
            scale,
            digits,
        };
        decimal.strip();
        decimal
    }

    /// Zero, showing so many digits after the point.
    pub fn zero(scale: i32) -> Decimal {
        Decimal {
            scale,
            ..Decimal::default()
        }
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.digits.iter().all(|digit| *digit == 0)
    }

    /// Removes zero digits at both ends.
    pub fn strip(&mut self) {
        let leading = self.digits.iter().take_while(|d| **d == 0).count();
        if leading > 0 {
            self.digits.drain(..leading);
            self.weight -= leading as i32;
        }
        while self.digits.last() == Some(&0) {
            self.digits.pop();
        }
        if self.digits.is_empty() {
            self.weight = 0;
            self.negative = false;
        }
    }

    /// The digit that stands for `10000^weight`.
    pub fn digit(&self, weight: i32) -> u16 {
        let index = self.weight - weight;
        match usize::try_from(index) {
            Ok(index) => self.digits.get(index).copied().unwrap_or(0),
            Err(_) => 0,
        }
    }

    /// The unscaled value and scale, if they are small.
    pub fn to_small(&self) -> Option<(i64, u16)> {
        let scale = u16::try_from(self.scale).ok()?;
        if scale > SMALL_SCALE_MAX || self.weight > 5 {
            return None;
        }
        Some((i64::try_from(self.unscaled()?).ok()?, scale))
    }

    /// `value · 10^scale` if it fits.
    pub fn unscaled(&self) -> Option<i128> {
        let groups = (self.scale + DIGITS - 1) / DIGITS;
        let mut value = 0i128;
        let mut weight = self.weight.max(0);
        // All whole digits; the last one after the point may be partial.
        let whole = 1 - groups.max(1);
        while weight >= whole {
            value = value
                .checked_mul(i128::from(BASE))?
                .checked_add(i128::from(self.digit(weight)))?;
            weight -= 1;
        }
        if groups > 0 {
            let partial = (DIGITS - (groups * DIGITS - self.scale)) as u32;
            let shift = 10i128.pow(DIGITS as u32 - partial);
            value = value
                .checked_mul(10i128.pow(partial))?
                .checked_add(i128::from(self.digit(-groups)) / shift)?;
        }
        Some(if self.negative { -value } else { value })
    }

    /// The smallest scale that still shows every digit.
    pub fn least_scale(&self) -> i32 {
        let Some(last) = self.digits.last() else {
            return 0;
        };
        let lowest = self.weight - self.digits.len() as i32 + 1;
        let mut scale = -lowest * DIGITS;
        let mut digit = *last;
        while digit != 0 && digit % 10 == 0 {
            digit /= 10;
            scale -= 1;
        }
        scale.max(0)
    }

    /// Compares the values; scales do not matter. Both must be stripped.
    pub fn compare(&self, other: &Decimal) -> Ordering {
        match (self.is_zero(), other.is_zero()) {
            (true, true) => return Ordering::Equal,
            (true, false) => {
                return if other.negative {
                    Ordering::Greater
                } else {
                    Ordering::Less
                }
            }
            (false, true) => {
                return if self.negative {
                    Ordering::Less
                } else {
                    Ordering::Greater
                }
            }
            _ => {}
        }
        match (self.negative, other.negative) {
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => self.compare_magnitude(other),
            (true, true) => other.compare_magnitude(self),
        }
    }

    /// Compares without signs.
    pub fn compare_magnitude(&self, other: &Decimal) -> Ordering {
        if self.is_zero() || other.is_zero() {
            return other.is_zero().cmp(&self.is_zero());
        }
        self.weight
            .cmp(&other.weight)
            .then_with(|| self.digits.cmp(&other.digits))
    }

    /// Keeps `scale` digits after the point (before it, if negative), rounding half away from
    /// zero.
    pub fn round(&mut self, scale: i32) {
        self.cut(scale, true);
    }

    /// Keeps `scale` digits after the point (before it, if negative), dropping the rest.
    pub fn truncate(&mut self, scale: i32) {
        self.cut(scale, false);
    }

    fn cut(&mut self, scale: i32, round: bool) {
        self.scale = scale.max(0);
        // How many decimal digits are kept, counted from the first base-10,000 digit.
        let kept = (self.weight + 1) * DIGITS + scale;
        if kept >= self.digits.len() as i32 * DIGITS {
            return;
        }
        if kept < 0 {
            *self = Decimal::zero(self.scale);
            return;
        }
        let whole = (kept / DIGITS) as usize;
        let partial = kept % DIGITS;
        let next = self.digits[whole];
        let unit = 10u16.pow((DIGITS - partial) as u32);
        // With no partial digit, `unit` is the base itself and nothing of `next` is kept.
        let rest = if partial == 0 { next } else { next % unit };
        let mut up = round && u32::from(rest) * 2 >= u32::from(unit);
        self.digits.truncate(whole);
        if partial > 0 {
            let mut last = next - rest;
            if up {
                last += unit;
                up = u32::from(last) >= BASE;
                if up {
                    last = 0;
                }
            }
            self.digits.push(last);
        }
        let mut index = if partial > 0 {
            whole
        } else {
            self.digits.len()
        };
        while up {
            if index == 0 {
                self.digits.insert(0, 1);
                self.weight += 1;
                break;
            }
            index -= 1;
            if u32::from(self.digits[index]) + 1 < BASE {
                self.digits[index] += 1;
                up = false;
            } else {
                self.digits[index] = 0;
            }
        }
        self.strip();
    }

    /// The sum, exactly; the scale is the larger one.
    pub fn add(&self, other: &Decimal) -> Decimal {
        let mut sum = if self.negative == other.negative {
            let mut sum = self.add_magnitude(other);
            sum.negative = self.negative;
            sum
        } else {
            match self.compare_magnitude(other) {
                Ordering::Equal => Decimal::zero(0),
                Ordering::Greater => {
                    let mut difference = self.subtract_magnitude(other);
                    difference.negative = self.negative;
                    difference
                }
                Ordering::Less => {
                    let mut difference = other.subtract_magnitude(self);
                    difference.negative = other.negative;
                    difference
                }
            }
        };
        sum.scale = self.scale.max(other.scale);
        sum.strip();
        sum
    }

    /// The difference, exactly.
    pub fn sub(&self, other: &Decimal) -> Decimal {
        self.add(&other.negated())
    }

    /// With the other sign.
    pub fn negated(&self) -> Decimal {
        let mut result = self.clone();
        result.negative = !self.negative && !self.is_zero();
        result
    }

    /// Without its sign.
    pub fn magnitude(&self) -> Decimal {
        let mut result = self.clone();
        result.negative = false;
        result
    }

    fn lowest(&self) -> i32 {
        self.weight - self.digits.len() as i32 + 1
    }

    fn add_magnitude(&self, other: &Decimal) -> Decimal {
        let top = self.weight.max(other.weight) + 1;
        let low = self.lowest().min(other.lowest());
        let mut digits = vec![0u16; (top - low + 1) as usize];
        let mut carry = 0;
        for (slot, weight) in digits.iter_mut().rev().zip(low..=top) {
            let sum = u32::from(self.digit(weight)) + u32::from(other.digit(weight)) + carry;
            *slot = (sum % BASE) as u16;
            carry = sum / BASE;
        }
        Decimal {
            weight: top,
            digits,
            ..Decimal::default()
        }
    }

    fn subtract_magnitude(&self, smaller: &Decimal) -> Decimal {
        let top = self.weight.max(smaller.weight);
        let low = self.lowest().min(smaller.lowest());
        let mut digits = vec![0u16; (top - low + 1) as usize];
        let mut borrow = 0;
        for (slot, weight) in digits.iter_mut().rev().zip(low..=top) {
            let mut digit =
                i32::from(self.digit(weight)) - i32::from(smaller.digit(weight)) - borrow;
            borrow = i32::from(digit < 0);
            digit += borrow * BASE as i32;
            *slot = digit as u16;
        }
        assert_eq!(borrow, 0, "subtracted {smaller:?} from {self:?}");
        Decimal {
            weight: top,
            digits,
            ..Decimal::default()
        }
    }

    /// The product, exactly; the scale is the sum of the scales. Like a quotient, it takes as many
    /// steps as the product of both lengths, and gives way ([`coro::work_or_unwind`]).
    pub fn mul(&self, other: &Decimal) -> Decimal {
        let mut product = vec![0u64; self.digits.len() + other.digits.len()];
        for (i, a) in self.digits.iter().enumerate().rev() {
            coro::work_or_unwind(other.digits.len());
            for (j, b) in other.digits.iter().enumerate() {
                // At most 10^8 each, and fewer than 2^17 of them: far below 2^64.
                product[i + j + 1] += u64::from(*a) * u64::from(*b);
            }
        }
        let mut carry = 0;
        for slot in product.iter_mut().rev() {
            let sum = *slot + carry;
            *slot = sum % u64::from(BASE);
            carry = sum / u64::from(BASE);
        }
        let mut result = Decimal {
            negative: self.negative != other.negative,
            weight: self.weight + other.weight + 1,
            scale: self.scale + other.scale,
            digits: product.into_iter().map(|digit| digit as u16).collect(),
        };
        result.strip();
        result
    }

    /// The product rounded to `scale`.
    pub fn mul_rounded(&self, other: &Decimal, scale: i32) -> Decimal {
        let mut product = self.mul(other);
        product.round(scale);
        product
    }

    /// The quotient to `scale` digits after the point, rounded or truncated. `divisor` is not 0.
    pub fn div(&self, divisor: &Decimal, scale: i32, round: bool) -> Decimal {
        assert!(!divisor.is_zero(), "division of {self:?} by zero");
        if self.is_zero() {
            return Decimal::zero(scale.max(0));
        }
        // One digit more than is kept decides the rounding: what follows it cannot change half up.
        let groups = (scale + DIGITS - 1).div_euclid(DIGITS) + 1;
        let weight = self.weight - divisor.weight;
        let count = weight + groups + 1;
        if count <= 0 {
            return Decimal::zero(scale.max(0));
        }
        let digits = long_division(&self.digits, &divisor.digits, count as usize);
        let mut quotient = Decimal {
            negative: self.negative != divisor.negative,
            weight,
            scale: groups * DIGITS,
            digits,
        };
        quotient.cut(scale, round);
        quotient.strip();
        quotient
    }
}

/// The first `count` digits of a quotient of two digit strings, the first of which stands for the
/// difference of their weights (and may be 0).
fn long_division(dividend: &[u16], divisor: &[u16], count: usize) -> Vec<u16> {
    let len = divisor.len();
    // Knuth's algorithm D: scale both so that the divisor's first digit is at least half the base.
    let factor = BASE / (u32::from(divisor[0]) + 1);
    let divisor = scaled(divisor, factor, 0);
    let mut rest = scaled(dividend, factor, 1);
    rest.resize(rest.len().max(count + len + 1), 0);
    let first = i64::from(divisor[0]);
    let second = i64::from(divisor.get(1).copied().unwrap_or(0));
    let base = i64::from(BASE);
    let mut quotient = Vec::with_capacity(count);
    for at in 0..count {
        coro::work_or_unwind(8 * len);
        let high = i64::from(rest[at]) * base + i64::from(rest[at + 1]);
        let next = i64::from(rest.get(at + 2).copied().unwrap_or(0));
        let mut guess = (high / first).min(base - 1);
        while guess * second > (high - guess * first) * base + next {
            guess -= 1;
        }
        let mut borrow = 0i64;
        for i in (0..len).rev() {
            let value = i64::from(rest[at + 1 + i]) - guess * i64::from(divisor[i]) + borrow;
            rest[at + 1 + i] = value.rem_euclid(base) as u32;
            borrow = value.div_euclid(base);
        }
        let top = i64::from(rest[at]) + borrow;
        if top < 0 {
            // The guess was one too large: add the divisor back.
            guess -= 1;
            let mut carry = 0;
            for i in (0..len).rev() {
                let value = rest[at + 1 + i] + divisor[i] + carry;
                rest[at + 1 + i] = value % BASE;
                carry = value / BASE;
            }
        }
        rest[at] = 0;
        quotient.push(guess as u16);
    }
    quotient
}

/// Digits times a factor below the base, with `lead` more digits in front (for the carry).
fn scaled(digits: &[u16], factor: u32, lead: usize) -> Vec<u32> {
    let mut result = vec![0u32; digits.len() + lead];
    let mut carry = 0;
    for (slot, digit) in result.iter_mut().rev().zip(digits.iter().rev()) {
        let value = u32::from(*digit) * factor + carry;
        *slot = value % BASE;
        carry = value / BASE;
    }
    if lead > 0 {
        result[0] = carry;
    } else {
        assert_eq!(carry, 0, "a scaled divisor keeps its length");
    }
    result
}
