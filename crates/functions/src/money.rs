//! Arithmetic on amounts of money, and their words.
//!
//! Source: PostgreSQL 15 manual, section 8.2.

use base::error::{Error, Result, SqlState};

use super::arguments::Arguments;
use super::integer::{division_by_zero, out_of_range};
use super::Call;
use types::geometry::plane;
use types::money::{FRACTION_DIGITS, UNITS_PER_DOLLAR};
use types::{Datum, Numeric, TypeId};

/// Amounts are whole: a power of two that they stay below, whatever their sign.
const LIMIT: f64 = (1u64 << 63) as f64;

fn too_large() -> Error {
    Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "money out of range")
}

/// # Errors
/// 22003 for none.
pub(crate) fn sum(value: Option<i64>) -> Result<Datum> {
    value.map(Datum::Money).ok_or_else(too_large)
}

/// The nearest amount, the even one of two.
fn rounded(value: f64) -> Result<Datum> {
    let whole = value.round_ties_even();
    let fits = (-LIMIT..LIMIT).contains(&whole);
    sum(fits.then_some(whole as i64))
}

pub(crate) fn add(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    sum(args.money(0)?.checked_add(args.money(1)?))
}

pub(crate) fn sub(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    sum(args.money(0)?.checked_sub(args.money(1)?))
}

pub(crate) fn times_integer(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    sum(args.money(0)?.checked_mul(args.int(1)?))
}

pub(crate) fn integer_times(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    sum(args.int(0)?.checked_mul(args.money(1)?))
}

pub(crate) fn over_integer(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    match args.int(1)? {
        0 => Err(division_by_zero()),
        divisor => sum(args.money(0)?.checked_div(divisor)),
    }
}

pub(crate) fn times_float(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    rounded(plane::mul(args.money(0)? as f64, args.float(1)?)?)
}

pub(crate) fn float_times(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    rounded(plane::mul(args.float(0)?, args.money(1)? as f64)?)
}

pub(crate) fn over_float(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    rounded(plane::div(args.money(0)? as f64, args.float(1)?)?)
}

pub(crate) fn ratio(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    match args.money(1)? {
        0 => Err(division_by_zero()),
        divisor => Ok(Datum::Float8(args.money(0)? as f64 / divisor as f64)),
    }
}

pub(crate) fn larger(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Money(args.money(0)?.max(args.money(1)?)))
}

pub(crate) fn smaller(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Money(args.money(0)?.min(args.money(1)?)))
}

pub(crate) fn from_integer(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let amount = args.int(0)?.checked_mul(UNITS_PER_DOLLAR);
    let amount = amount.ok_or_else(|| out_of_range(TypeId::INT8))?;
    Ok(Datum::Money(amount))
}

pub(crate) fn from_numeric(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let units = args.numeric(0)?.mul(&Numeric::from(UNITS_PER_DOLLAR))?;
    units.to_integer("bigint").map(Datum::Money)
}

pub(crate) fn to_numeric(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let units = i128::from(args.money(0)?);
    let number = Numeric::new(units, FRACTION_DIGITS as u16);
    Ok(Datum::Numeric(number))
}

/// The words of an amount: dollars in groups of three digits, then cents.
pub(crate) fn words(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    const GROUPS: [(u64, &str); 6] = [
        (1_000_000_000_000_000, " quadrillion "),
        (1_000_000_000_000, " trillion "),
        (1_000_000_000, " billion "),
        (1_000_000, " million "),
        (1_000, " thousand "),
        (1, ""),
    ];
    let amount = args.money(0)?;
    let units = UNITS_PER_DOLLAR.unsigned_abs();
    let (dollars, cents) = (amount.unsigned_abs() / units, amount.unsigned_abs() % units);
    let mut text = String::from(if amount < 0 { "minus " } else { "" });
    for (size, name) in GROUPS {
        let group = dollars / size % 1_000;
        if group > 0 {
            text.push_str(&words_of(group));
            text.push_str(name);
        }
    }
    if dollars == 0 {
        text.push_str("zero");
    }
    text.push_str(if dollars == 1 {
        " dollar and "
    } else {
        " dollars and "
    });
    text.push_str(&words_of(cents));
    text.push_str(if cents == 1 { " cent" } else { " cents" });
    // All of it is ASCII.
    text[..1].make_ascii_uppercase();
    Ok(Datum::text(text))
}

/// The words of a number below a thousand.
fn words_of(number: u64) -> String {
    const SMALL: [&str; 20] = [
        "zero",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
    ];
    const TENS: [&str; 10] = [
        "", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety",
    ];
    let small = |number: u64| SMALL[number as usize % SMALL.len()];
    let (hundreds, rest) = (number / 100 % 10, number % 100);
    let tens = TENS[rest as usize / 10];
    let below = match (rest, rest % 10) {
        (0..20, _) => small(rest).to_owned(),
        (_, 0) => tens.to_owned(),
        (_, ones) => format!("{tens} {}", small(ones)),
    };
    match (hundreds, rest) {
        (0, _) => below,
        (_, 0) => format!("{} hundred", small(hundreds)),
        (_, 1..20) => format!("{} hundred and {below}", small(hundreds)),
        _ => format!("{} hundred {below}", small(hundreds)),
    }
}
