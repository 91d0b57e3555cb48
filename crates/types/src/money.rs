//! Amounts of money: whole hundredths, written as `lc_monetary` C says.
//!
//! ```
//! # use types::{EvalContext, TypeId};
//! let context = EvalContext::for_tests();
//! let value = types::input(&context, TypeId::MONEY, -1, "(1234.567)").unwrap();
//! assert_eq!(types::output(&context, TypeId::MONEY, &value).unwrap(), "-$1,234.57");
//! ```
//! What is read need not be written so: signs, dollars and blanks may stand before the digits or
//! behind them, commas anywhere among them. Digits behind the second of the fraction round it.
//!
//! Source: PostgreSQL 15 manual, section 8.2.

use std::fmt::Write;

use base::error::{Error, Result, SqlState};

use super::invalid::invalid;
use super::numeric::is_space;
use super::TypeId;

/// Digits behind the point.
pub const FRACTION_DIGITS: u32 = 2;

/// How many of its units a dollar has.
pub const UNITS_PER_DOLLAR: i64 = 100;

/// Reads an amount.
///
/// # Errors
/// 22P02, 22003.
pub fn parse(text: &str) -> Result<i64> {
    let out_of_range = || {
        Error::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            format!("value \"{text}\" is out of range for type money"),
        )
    };
    let (mut negative, body) = beginning(text);
    let (below_zero, rest) = digits(body).ok_or_else(out_of_range)?;
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    for c in rest.chars() {
        match c {
            '-' => negative = true,
            '+' | '$' | ')' => {}
            c if is_space(c) => {}
            _ => return Err(invalid(TypeId::MONEY, text)),
        }
    }
    match negative {
        true => Ok(below_zero),
        false => below_zero.checked_neg().ok_or_else(out_of_range),
    }
}

/// Whether a minus or a parenthesis stands in front, and what comes after that.
fn beginning(text: &str) -> (bool, &str) {
    let without_dollar = |text: &str| -> usize {
        let rest = text.trim_start_matches(is_space);
        let rest = rest.strip_prefix('$').unwrap_or(rest);
        text.len() - rest.trim_start_matches(is_space).len()
    };
    let rest = &text[without_dollar(text)..];
    let (negative, rest) = match rest.strip_prefix(['-', '(']) {
        Some(rest) => (true, rest),
        None => (false, rest.strip_prefix('+').unwrap_or(rest)),
    };
    (negative, &rest[without_dollar(rest)..])
}

/// The amount below zero that digits say, and what comes after them; none if there is none such.
fn digits(text: &str) -> Option<(i64, &str)> {
    let (mut value, mut decimals, mut seen_point) = (0i64, 0, false);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        match (c, c.to_digit(10)) {
            (_, Some(digit)) if !seen_point || decimals < FRACTION_DIGITS => {
                value = value.checked_mul(10)?.checked_sub(i64::from(digit))?;
                decimals += u32::from(seen_point);
            }
            ('.', _) if !seen_point => seen_point = true,
            (',', _) => {}
            _ => break,
        }
        rest = &rest[1..];
    }
    if rest.starts_with(|c: char| matches!(c, '5'..='9')) {
        value = value.checked_sub(1)?;
    }
    for _ in decimals..FRACTION_DIGITS {
        value = value.checked_mul(10)?;
    }
    Some((value, rest))
}

/// Appends an amount.
pub fn write(value: i64, out: &mut String) {
    let units = UNITS_PER_DOLLAR.unsigned_abs();
    let (dollars, cents) = (value.unsigned_abs() / units, value.unsigned_abs() % units);
    out.push_str(if value < 0 { "-$" } else { "$" });
    let digits = dollars.to_string();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    // Writing into a String cannot fail.
    let _ = write!(out, ".{cents:02}");
}
