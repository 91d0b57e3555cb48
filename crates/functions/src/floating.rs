//! Arithmetic and mathematics on binary floating point numbers.

use base::error::{Error, Result, SqlState};

use super::arguments::Arguments;
use super::integer::{division_by_zero, narrow};
use super::Call;
use types::{Datum, Numeric, TypeId};

const RADIANS_PER_DEGREE: f64 = 0.017_453_292_519_943_295;

fn overflow() -> Error {
    Error::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        "value out of range: overflow",
    )
}

pub(crate) fn underflow() -> Error {
    Error::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        "value out of range: underflow",
    )
}

fn out_of_range() -> Error {
    Error::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        "input is out of range",
    )
}

fn domain(code: &str, message: &str) -> Error {
    Error::new(SqlState::of(code), message)
}

/// An infinite result of finite operands is an overflow.
fn finite(result: f64, operands: &[f64]) -> Result<f64> {
    if result.is_infinite() && operands.iter().all(|v| v.is_finite() || v.is_nan()) {
        return Err(overflow());
    }
    Ok(result)
}

/// The result in the width that the function has.
fn put(call: &Call<'_>, value: f64) -> Result<Datum> {
    Ok(match call.result {
        TypeId::FLOAT4 => {
            let narrowed = value as f32;
            if narrowed.is_infinite() && value.is_finite() {
                return Err(overflow());
            }
            if narrowed == 0.0 && value != 0.0 {
                return Err(underflow());
            }
            Datum::Float4(narrowed)
        }
        _ => Datum::Float8(value),
    })
}

pub(crate) fn add(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (a, b) = (args.float(0)?, args.float(1)?);
    put(call, finite(a + b, &[a, b])?)
}

pub(crate) fn sub(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (a, b) = (args.float(0)?, args.float(1)?);
    put(call, finite(a - b, &[a, b])?)
}

pub(crate) fn mul(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (a, b) = (args.float(0)?, args.float(1)?);
    let product = finite(a * b, &[a, b])?;
    if product == 0.0 && a != 0.0 && b != 0.0 {
        return Err(underflow());
    }
    put(call, product)
}

pub(crate) fn div(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (a, b) = (args.float(0)?, args.float(1)?);
    if b == 0.0 && !a.is_nan() {
        return Err(division_by_zero());
    }
    let quotient = finite(a / b, &[a, b])?;
    if quotient == 0.0 && a != 0.0 && b.is_finite() {
        return Err(underflow());
    }
    put(call, quotient)
}

/// Above it `a * a` says nothing of the one that is added to it.
const AREA_LARGE: f64 = (1u64 << 28) as f64;

/// The inverse of `cosh`, by formulas of which each is exact in its range; the library's own loses
/// the last digit.
fn area_cosine(a: f64) -> f64 {
    if a > AREA_LARGE {
        a.ln() + std::f64::consts::LN_2
    } else if a > 2.0 {
        (2.0 * a - 1.0 / (a + (a * a - 1.0).sqrt())).ln()
    } else {
        let above = a - 1.0;
        (above + (2.0 * above + above * above).sqrt()).ln_1p()
    }
}

/// The inverse of `sinh`, likewise.
fn area_sine(a: f64) -> f64 {
    let size = a.abs();
    if !a.is_finite() || size < 1.0 / AREA_LARGE {
        return a;
    }
    let square = a * a;
    let found = if size > AREA_LARGE {
        size.ln() + std::f64::consts::LN_2
    } else if size > 2.0 {
        (2.0 * size + 1.0 / ((square + 1.0).sqrt() + size)).ln()
    } else {
        (size + square / (1.0 + (1.0 + square).sqrt())).ln_1p()
    };
    found.copysign(a)
}

/// The inverse of `tanh`, likewise.
fn area_tangent(a: f64) -> f64 {
    let size = a.abs();
    let found = if size < 1.0 / AREA_LARGE {
        size
    } else if size < 0.5 {
        let twice = 2.0 * size;
        0.5 * (twice + twice * size / (1.0 - size)).ln_1p()
    } else {
        0.5 * (2.0 * size / (1.0 - size)).ln_1p()
    };
    found.copysign(a)
}

macro_rules! unary {
    ($($name:ident($a:ident) $body:expr;)*) => {
        $(pub(crate) fn $name(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
            let $a = args.float(0)?;
            put(call, $body)
        })*
    };
}

unary! {
    neg(a) -a;
    plus(a) a;
    abs(a) a.abs();
    ceil(a) a.ceil();
    floor(a) a.floor();
    round(a) a.round_ties_even();
    trunc(a) a.trunc();
    sign(a) if a > 0.0 { 1.0 } else if a < 0.0 { -1.0 } else { 0.0 };
    cbrt(a) a.cbrt();
    degrees(a) finite(a / RADIANS_PER_DEGREE, &[a])?;
    radians(a) a * RADIANS_PER_DEGREE;
    sqrt(a) match a < 0.0 {
        true => return Err(domain("2201F", "cannot take square root of a negative number")),
        false => a.sqrt(),
    };
    ln(a) logarithm(a, f64::ln)?;
    log10(a) logarithm(a, f64::log10)?;
    exp(a) exponential(a)?;
    sin(a) periodic(a, f64::sin)?;
    cos(a) periodic(a, f64::cos)?;
    tan(a) periodic(a, f64::tan)?;
    cot(a) periodic(a, |v| 1.0 / v.tan())?;
    asin(a) arc(a, f64::asin)?;
    acos(a) arc(a, f64::acos)?;
    atan(a) a.atan();
    sinh(a) a.sinh();
    cosh(a) a.cosh();
    tanh(a) a.tanh();
    asinh(a) area_sine(a);
    acosh(a) match a < 1.0 {
        true => return Err(out_of_range()),
        false => area_cosine(a),
    };
    atanh(a) match a.abs() > 1.0 {
        true => return Err(out_of_range()),
        false => area_tangent(a),
    };
}

fn logarithm(value: f64, function: fn(f64) -> f64) -> Result<f64> {
    if value == 0.0 {
        return Err(domain("2201E", "cannot take logarithm of zero"));
    }
    if value < 0.0 {
        return Err(domain(
            "2201E",
            "cannot take logarithm of a negative number",
        ));
    }
    Ok(function(value))
}

fn exponential(value: f64) -> Result<f64> {
    let result = finite(value.exp(), &[value])?;
    if result == 0.0 && value.is_finite() {
        return Err(underflow());
    }
    Ok(result)
}

fn periodic(value: f64, function: fn(f64) -> f64) -> Result<f64> {
    if value.is_infinite() {
        return Err(out_of_range());
    }
    Ok(function(value))
}

fn arc(value: f64, function: fn(f64) -> f64) -> Result<f64> {
    if value.abs() > 1.0 {
        return Err(out_of_range());
    }
    Ok(function(value))
}

pub(crate) fn atan2(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Float8(args.float(0)?.atan2(args.float(1)?)))
}

pub(crate) fn pi(_: &Call<'_>, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::Float8(std::f64::consts::PI))
}

pub(crate) fn power(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (base, exponent) = (args.float(0)?, args.float(1)?);
    if base == 0.0 && exponent < 0.0 {
        return Err(domain(
            "2201F",
            "zero raised to a negative power is undefined",
        ));
    }
    if base < 0.0 && exponent.is_finite() && exponent.fract() != 0.0 {
        return Err(domain(
            "2201F",
            "a negative number raised to a non-integer power yields a complex result",
        ));
    }
    let result = finite(base.powf(exponent), &[base, exponent])?;
    if result == 0.0 && base != 0.0 && base.is_finite() && exponent.is_finite() {
        return Err(underflow());
    }
    Ok(Datum::Float8(result))
}

/// To smallint, integer or bigint: rounded, ties to even.
pub(crate) fn to_integer(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let value = args.float(0)?.round_ties_even();
    let fits = value >= i64::MIN as f64 && value < i64::MAX as f64;
    narrow(call.result, fits.then_some(value as i64))
}

/// Between the two widths.
pub(crate) fn cast(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    put(call, args.float(0)?)
}

pub(crate) fn to_numeric(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let number = match args.any(0)? {
        Datum::Float4(value) => Numeric::from_f32(*value)?,
        _ => Numeric::from_f64(args.float(0)?)?,
    };
    Ok(Datum::Numeric(number))
}

pub(crate) fn random(call: &Call<'_>, _: &[Datum]) -> Result<Datum> {
    let bits = call.context.clock.random() >> 11;
    Ok(Datum::Float8(bits as f64 / (1u64 << 53) as f64))
}

pub(crate) fn width_bucket(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (value, low, high) = (args.float(0)?, args.float(1)?, args.float(2)?);
    let count = args.int4(3)?;
    let wrong = |message| domain("2201G", message);
    if count <= 0 {
        return Err(wrong("count must be greater than zero"));
    }
    if value.is_nan() || low.is_nan() || high.is_nan() {
        return Err(wrong("operand, lower bound, and upper bound cannot be NaN"));
    }
    if low.is_infinite() || high.is_infinite() {
        return Err(wrong("lower and upper bounds must be finite"));
    }
    let past = || {
        let next = count.checked_add(1).map(i64::from);
        narrow(TypeId::INT4, next)
    };
    let share = |part: f64, whole: f64| (f64::from(count) * (part / whole)) as i32;
    if low < high {
        return match value {
            v if v < low => Ok(Datum::Int4(0)),
            v if v >= high => past(),
            v => Ok(Datum::Int4(share(v - low, high - low).min(count - 1) + 1)),
        };
    }
    if low > high {
        return match value {
            v if v > low => Ok(Datum::Int4(0)),
            v if v <= high => past(),
            v => Ok(Datum::Int4(share(low - v, low - high).min(count - 1) + 1)),
        };
    }
    Err(wrong("lower bound cannot equal upper bound"))
}
