//! Text forms of decimal numbers.

use std::fmt;

use base::error::{Error, Result, SqlState};

use super::decimal::{Decimal, DIGITS};
use super::{overflow, Numeric, Repr, INTEGER_DIGITS_MAX, SCALE_MAX};

impl Numeric {
    /// Reads a number: digits with an optional sign, point and exponent, `NaN`, `Infinity`.
    ///
    /// # Errors
    /// 22P02 when it is none; 22003 when it has too many digits.
    pub fn parse(text: &str) -> Result<Numeric> {
        parse(text.trim_matches(is_space)).ok_or_else(|| invalid(text))?
    }
}

fn invalid(text: &str) -> Error {
    Error::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        format!("invalid input syntax for type numeric: \"{text}\""),
    )
}

/// What C's `isspace` takes for white space.
pub fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

/// `None`: not a number.
fn parse(text: &str) -> Option<Result<Numeric>> {
    let (negative, body) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    match body.as_bytes().first()? {
        b'0'..=b'9' | b'.' => parse_digits(negative, body),
        _ => match (negative, body.to_ascii_lowercase().as_str()) {
            _ if text.eq_ignore_ascii_case("nan") => Some(Ok(Numeric::NAN)),
            (false, "infinity" | "inf") => Some(Ok(Numeric::INFINITY)),
            (true, "infinity" | "inf") => Some(Ok(Numeric::NEGATIVE_INFINITY)),
            _ => None,
        },
    }
}

fn parse_digits(negative: bool, body: &str) -> Option<Result<Numeric>> {
    let (mantissa, exponent) = match body.find(['e', 'E']) {
        Some(at) => (&body[..at], Some(&body[at + 1..])),
        None => (body, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all_digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let exponent = match exponent {
        None => 0,
        Some(text) => {
            let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
            if digits.is_empty() || !all_digits(digits) {
                return None;
            }
            // Anything this long overflows or vanishes whatever the mantissa.
            match text.parse::<i32>() {
                Ok(exponent) if exponent.abs() < i32::MAX / 2 => exponent,
                _ => return Some(Err(overflow())),
            }
        }
    };
    Some(assemble(negative, whole, fraction, exponent))
}

fn assemble(negative: bool, whole: &str, fraction: &str, exponent: i32) -> Result<Numeric> {
    let scale = (fraction.len() as i32).saturating_sub(exponent).max(0);
    let digits = whole.len() + fraction.len();
    if exponent == 0 && digits <= 18 {
        let value = whole
            .bytes()
            .chain(fraction.bytes())
            .fold(0i128, |value, digit| value * 10 + i128::from(digit - b'0'));
        return Ok(Numeric::new(
            if negative { -value } else { value },
            fraction.len() as u16,
        ));
    }
    if scale > SCALE_MAX {
        return Err(overflow());
    }
    // The position of the first decimal digit, as a power of ten.
    let top = whole.len() as i32 - 1 + exponent;
    if top > INTEGER_DIGITS_MAX * 2 {
        let zero = whole.bytes().chain(fraction.bytes()).all(|b| b == b'0');
        return if zero {
            Ok(Numeric::ZERO)
        } else {
            Err(overflow())
        };
    }
    let weight = top.div_euclid(DIGITS);
    let mut group = 0u16;
    let mut filled = DIGITS - 1 - top.rem_euclid(DIGITS);
    let mut groups = Vec::with_capacity(digits / 4 + 2);
    for digit in whole.bytes().chain(fraction.bytes()) {
        group = group * 10 + u16::from(digit - b'0');
        filled += 1;
        if filled == DIGITS {
            groups.push(group);
            (group, filled) = (0, 0);
        }
    }
    if filled > 0 {
        groups.push(group * 10u16.pow((DIGITS - filled) as u32));
    }
    Numeric::from_decimal(Decimal {
        negative,
        weight,
        scale,
        digits: groups,
    })
}

impl fmt::Display for Numeric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Nan => f.write_str("NaN"),
            Repr::Infinity => f.write_str("Infinity"),
            Repr::NegativeInfinity => f.write_str("-Infinity"),
            Repr::Small { value, scale: 0 } => write!(f, "{value}"),
            Repr::Small { value, scale } => {
                let sign = if *value < 0 { "-" } else { "" };
                let scale = usize::from(*scale);
                let unit = 10u64.pow(scale as u32);
                let (whole, part) = (value.unsigned_abs() / unit, value.unsigned_abs() % unit);
                write!(f, "{sign}{whole}.{part:0scale$}")
            }
            Repr::Large(decimal) => fmt::Display::fmt(&**decimal, f),
        }
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::new();
        if self.negative {
            out.push('-');
        }
        if self.weight < 0 || self.digits.is_empty() {
            out.push('0');
        } else {
            for weight in (0..=self.weight).rev() {
                let digit = self.digit(weight);
                if weight == self.weight {
                    out.push_str(&digit.to_string());
                } else {
                    out.push_str(&format!("{digit:04}"));
                }
            }
        }
        if self.scale > 0 {
            out.push('.');
            let start = out.len();
            let mut weight = -1;
            while out.len() - start < self.scale as usize {
                out.push_str(&format!("{:04}", self.digit(weight)));
                weight -= 1;
            }
            out.truncate(start + self.scale as usize);
        }
        f.write_str(&out)
    }
}
