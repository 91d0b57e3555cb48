//! Text forms of `real` and `double precision`: the shortest digits that read back as the same
//! number, laid out as C's `%g` would.

use std::cmp::Ordering;

use base::error::{Error, Result, SqlState};

use super::numeric::is_space;

/// Digits after the point that a `double precision` shows before it turns to an exponent.
const FIXED_DIGITS_F64: i32 = 15;
/// The same of a `real`.
const FIXED_DIGITS_F32: i32 = 6;

/// Orders binary floating point numbers: NaN last and equal to itself, -0 equal to 0.
pub fn compare_floats(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b)
        .unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

fn syntax(kind: &str, text: &str) -> Error {
    Error::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        format!("invalid input syntax for type {kind}: \"{text}\""),
    )
}

fn range(kind: &str, text: &str) -> Error {
    Error::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        format!("\"{text}\" is out of range for type {kind}"),
    )
}

/// Whether the digits before an exponent hold something other than zero.
fn has_digit_above_zero(body: &str) -> bool {
    let mantissa = body.split(['e', 'E']).next().unwrap_or("");
    mantissa.bytes().any(|b| (b'1'..=b'9').contains(&b))
}

macro_rules! parser {
    ($name:ident, $float:ty, $kind:literal) => {
        /// Reads the text form.
        ///
        /// # Errors
        /// 22P02; 22003 when it is too large or too small.
        pub fn $name(text: &str) -> Result<$float> {
            let body = text.trim_matches(is_space);
            let value: $float = body.parse().map_err(|_| syntax($kind, text))?;
            let spelled = body.bytes().any(|b| b.is_ascii_digit());
            if spelled && (value.is_infinite() || value == 0.0 && has_digit_above_zero(body)) {
                return Err(range($kind, body));
            }
            Ok(value)
        }
    };
}

parser!(parse_f64, f64, "double precision");
parser!(parse_f32, f32, "real");

/// Appends a `double precision` as PostgreSQL prints it under `extra_float_digits`.
pub fn write_f64(value: f64, extra_float_digits: i32, out: &mut String) {
    if special(value, out) {
        return;
    }
    if extra_float_digits > 0 {
        let digits = shortest(
            value,
            format!("{value:e}"),
            |text| text.parse() == Ok(value),
            52,
        );
        lay_out(&digits, FIXED_DIGITS_F64, out);
    } else {
        let digits = (15 + extra_float_digits).max(1);
        rounded(value, digits, out);
    }
}

/// Appends a `real`.
pub fn write_f32(value: f32, extra_float_digits: i32, out: &mut String) {
    if special(f64::from(value), out) {
        return;
    }
    if extra_float_digits > 0 {
        let wide = f64::from(value);
        let digits = shortest(
            wide,
            format!("{value:e}"),
            |text| text.parse() == Ok(value),
            23,
        );
        lay_out(&digits, FIXED_DIGITS_F32, out);
    } else {
        let digits = (6 + extra_float_digits).max(1);
        rounded(f64::from(value), digits, out);
    }
}

/// The number with so many significant digits, as C's `%.*g` prints it.
pub fn general(value: f64, digits: i32) -> String {
    let mut out = String::new();
    if !special(value, &mut out) {
        rounded(value, digits, &mut out);
    }
    out
}

/// The fewest digits that lie strictly between the midpoints to the neighbouring numbers (so that
/// a reader need not break ties to even); of those the nearest, ties to even.
///
/// `shown` is the text of the fewest digits that reads as the number, which is it where neither
/// ties nor midpoints are near. `same` says whether a text reads as the number; `bits` is the width
/// of its mantissa.
fn shortest(value: f64, shown: String, same: impl Fn(&str) -> bool, bits: u32) -> String {
    // Half-way between two texts of at most 17 digits lie only numbers of at most 18. One with n
    // binary places has at least as many digits as 5^n, so 25 places at most; midpoints are integers.
    const TIE_PLACES: i32 = 25;
    if (value * 2f64.powi(TIE_PLACES)).fract() != 0.0 {
        return shown;
    }
    let mut digits = 0;
    loop {
        let text = format!("{value:.digits$e}");
        if digits >= 17 || (same(&text) && !is_midpoint(&text, value, bits)) {
            return trimmed(&text);
        }
        digits += 1;
    }
}

fn trimmed(text: &str) -> String {
    match text.split_once('e') {
        Some((mantissa, exponent)) if mantissa.contains('.') => {
            let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
            format!("{mantissa}e{exponent}")
        }
        _ => text.to_owned(),
    }
}

/// Whether a text lies exactly between the number and a neighbour. With so few digits only large
/// integers can.
fn is_midpoint(text: &str, value: f64, bits: u32) -> bool {
    let magnitude = value.abs();
    if magnitude < 2f64.powi(bits as i32 + 1) || magnitude >= 2f64.powi(126) {
        return false;
    }
    let Some((mantissa, exponent)) = text.trim_start_matches('-').split_once('e') else {
        return false;
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: u128 = format!("{whole}{fraction}").parse().unwrap_or(0);
    let exponent = exponent.parse::<i32>().unwrap_or(0) - fraction.len() as i32;
    let Some(shown) = u32::try_from(exponent)
        .ok()
        .and_then(|exponent| digits.checked_mul(10u128.checked_pow(exponent)?))
    else {
        return false;
    };
    let exact = magnitude as u128;
    let step = 1u128 << (127 - exact.leading_zeros() - bits);
    let distance = shown.abs_diff(exact);
    // Below a power of two numbers lie twice as close.
    let closer = exact.is_power_of_two() && shown < exact;
    distance * 2 == if closer { step / 2 } else { step }
}

fn special(value: f64, out: &mut String) -> bool {
    if value.is_nan() {
        out.push_str("NaN");
    } else if value.is_infinite() {
        out.push_str(if value < 0.0 { "-Infinity" } else { "Infinity" });
    } else if value == 0.0 {
        out.push_str(if value.is_sign_negative() { "-0" } else { "0" });
    } else {
        return false;
    }
    true
}

fn rounded(value: f64, digits: i32, out: &mut String) {
    let precision = (digits - 1) as usize;
    let text = format!("{value:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mantissa = match mantissa.contains('.') {
        true => mantissa.trim_end_matches('0').trim_end_matches('.'),
        false => mantissa,
    };
    lay_out(&format!("{mantissa}e{exponent}"), digits, out);
}

/// Lays out `d.ddde±x`: fixed from 10^-4 up to 10^`fixed`, else with an exponent of at least two
/// digits.
fn lay_out(scientific: &str, fixed: i32, out: &mut String) {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    out.push_str(sign);
    if exponent < -4 || exponent >= fixed {
        let mark = if exponent < 0 { '-' } else { '+' };
        out.push_str(&format!("{mantissa}e{mark}{:02}", exponent.abs()));
        return;
    }
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    if exponent < 0 {
        out.push_str("0.");
        out.extend(std::iter::repeat_n('0', (-exponent - 1) as usize));
        out.push_str(&digits);
        return;
    }
    let whole = exponent as usize + 1;
    if digits.len() <= whole {
        out.push_str(&digits);
        out.extend(std::iter::repeat_n('0', whole - digits.len()));
    } else {
        out.push_str(&digits[..whole]);
        out.push('.');
        out.push_str(&digits[whole..]);
    }
}
