//! Sizes in bytes as people write them, and back.
//!
//! ```text
//! pg_size_pretty(10_000)    10000 bytes       a unit is used up to 20 of the next, bytes up to 10
//! pg_size_pretty(20_000)    20 kB
//! pg_size_bytes('1.5 kB')   1536
//! ```
//! Source: PostgreSQL 15 manual, section 9.27.7.

use base::{Error, Result, SqlState};

use super::arguments::Arguments;
use super::Call;
use types::{Datum, Numeric};

/// A unit: its name, below how much it is used, how many bits it has more than the one before when
/// sizes are halved once more than needed, to be rounded, and how many it has in all.
struct Unit {
    name: &'static str,
    limit: i64,
    shift: u32,
    bits: u32,
}

const fn unit(name: &'static str, limit: i64, shift: u32, bits: u32) -> Unit {
    Unit {
        name,
        limit,
        shift,
        bits,
    }
}

const UNITS: [Unit; 6] = [
    unit("bytes", 10 * 1_024, 0, 0),
    unit("kB", 20 * 1_024 - 1, 9, 10),
    unit("MB", 20 * 1_024 - 1, 10, 20),
    unit("GB", 20 * 1_024 - 1, 10, 30),
    unit("TB", 20 * 1_024 - 1, 10, 40),
    unit("PB", i64::MAX, 10, 50),
];

/// A size in bytes with the unit that keeps it short.
pub(crate) fn pretty(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let mut size = args.int(0)?;
    for (index, unit) in UNITS.iter().enumerate() {
        size /= 1 << unit.shift;
        if size.unsigned_abs() < unit.limit as u64 || index == UNITS.len() - 1 {
            let shown = match index {
                0 => size,
                _ => (size + size.signum()) / 2,
            };
            return Ok(Datum::text(format!("{shown} {}", unit.name)));
        }
    }
    Err(Error::internal("a size has no unit"))
}

/// The same for a number that need not be whole.
pub(crate) fn pretty_numeric(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let number = |value: i64| Numeric::new(i128::from(value), 0);
    let mut size = args.numeric(0)?.clone();
    for (index, unit) in UNITS.iter().enumerate() {
        if index > 0 {
            size = size.div_truncated(&number(1 << unit.shift))?;
        }
        if size.abs() < number(unit.limit) || index == UNITS.len() - 1 {
            if index > 0 {
                let one = number(if size.is_negative() { -1 } else { 1 });
                size = size.add(&one)?.div_truncated(&number(2))?;
            }
            return Ok(Datum::text(format!("{size} {}", unit.name)));
        }
    }
    Err(Error::internal("a size has no unit"))
}

/// The bytes of a size that somebody wrote.
pub(crate) fn bytes(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let text = args.text(0)?;
    let invalid = || {
        let message = format!("invalid size: \"{text}\"");
        Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
    };
    let trimmed = text.trim_matches(|c: char| c.is_ascii_whitespace());
    let end = number_end(trimmed).ok_or_else(invalid)?;
    let size = Numeric::parse(&trimmed[..end])?;
    let name = trimmed[end..].trim_start_matches(|c: char| c.is_ascii_whitespace());
    let mut units = UNITS.iter();
    let bits = match units.find(|unit| unit.name.eq_ignore_ascii_case(name)) {
        Some(unit) => unit.bits,
        None if name.is_empty() => 0,
        None => {
            return Err(invalid()
                .with_detail(format!("Invalid size unit: \"{name}\"."))
                .with_hint(
                    "Valid units are \"bytes\", \"kB\", \"MB\", \"GB\", \"TB\", and \"PB\".",
                ))
        }
    };
    let size = size.mul(&Numeric::new(1 << bits, 0))?;
    size.to_integer("bigint").map(Datum::Int8)
}

/// Where the number at the beginning ends: sign, digits, a point and more, an exponent.
fn number_end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let digits = |from: usize| {
        let rest = bytes.get(from..).unwrap_or_default();
        rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let sign = |at: usize| usize::from(matches!(bytes.get(at), Some(b'+' | b'-')));
    let mut end = sign(0);
    let whole = digits(end);
    end += whole;
    let mut fraction = 0;
    if bytes.get(end) == Some(&b'.') {
        fraction = digits(end + 1);
        end += 1 + fraction;
    }
    if whole + fraction == 0 {
        return None;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let power = end + 1 + sign(end + 1);
        if digits(power) > 0 {
            end = power + digits(power);
        }
    }
    Some(end)
}
