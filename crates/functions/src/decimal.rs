//! Functions of `numeric`; the arithmetic itself is in [`types::numeric`].

use base::error::{Error, Result, SqlState};

use super::arguments::Arguments;
use super::integer::narrow;
use super::{Call, Rows};
use types::{Datum, Numeric, TypeId};

macro_rules! wrap {
    ($($name:ident($($a:ident),*) $body:expr;)*) => {
        $(pub(crate) fn $name(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
            let [$($a),*] = numbers(args)?;
            Ok(Datum::Numeric($body))
        })*
    };
}

fn numbers<const N: usize>(args: &[Datum]) -> Result<[&Numeric; N]> {
    let mut found = [&Numeric::ZERO; N];
    for (index, slot) in found.iter_mut().enumerate() {
        *slot = args.numeric(index)?;
    }
    Ok(found)
}

wrap! {
    add(a, b) a.add(b)?;
    sub(a, b) a.sub(b)?;
    mul(a, b) a.mul(b)?;
    div(a, b) a.div(b)?;
    div_trunc(a, b) a.div_truncated(b)?;
    rem(a, b) a.rem(b)?;
    power(a, b) a.power(b)?;
    log_base(a, b) Numeric::log(a, b)?;
    log10(a) Numeric::log(&Numeric::from(10i64), a)?;
    gcd(a, b) a.gcd(b)?;
    lcm(a, b) a.lcm(b)?;
    neg(a) a.neg();
    plus(a) a.clone();
    abs(a) a.abs();
    sign(a) a.sign();
    ceil(a) a.ceil()?;
    floor(a) a.floor()?;
    sqrt(a) a.sqrt()?;
    exp(a) a.exp()?;
    ln(a) a.ln()?;
    increment(a) a.add(&Numeric::from(1i64))?;
    trim_scale(a) a.trim_scale()?;
}

/// `int8_sum`: a sum of whole numbers so far, which NULLs do not change, and the next one.
pub(crate) fn int8_sum(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let next = match args.any(1)? {
        Datum::Int8(next) => Numeric::from(*next),
        _ => return args.any(0).cloned(),
    };
    match args.any(0)? {
        Datum::Numeric(sum) => sum.add(&next).map(Datum::Numeric),
        _ => Ok(Datum::Numeric(next)),
    }
}

pub(crate) fn round(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let scale = if args.len() > 1 { args.int4(1)? } else { 0 };
    args.numeric(0)?.round(scale).map(Datum::Numeric)
}

pub(crate) fn trunc(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let scale = if args.len() > 1 { args.int4(1)? } else { 0 };
    args.numeric(0)?.trunc(scale).map(Datum::Numeric)
}

pub(crate) fn scale(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let number = args.numeric(0)?;
    Ok(match number.is_finite() {
        true => Datum::Int4(number.scale()),
        false => Datum::Null,
    })
}

pub(crate) fn min_scale(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let number = args.numeric(0)?;
    Ok(match number.is_finite() {
        true => Datum::Int4(number.min_scale()),
        false => Datum::Null,
    })
}

pub(crate) fn factorial(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Numeric::factorial(args.int(0)?).map(Datum::Numeric)
}

/// To smallint, integer or bigint: rounded, halves away from zero.
pub(crate) fn to_integer(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let value = args.numeric(0)?.to_integer(&call.result.to_string())?;
    narrow(call.result, Some(value))
}

pub(crate) fn to_float8(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    args.numeric(0)?.to_f64().map(Datum::Float8)
}

pub(crate) fn to_float4(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    args.numeric(0)?.to_f32().map(Datum::Float4)
}

pub(crate) fn width_bucket(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let [value, low, high] = numbers(args)?;
    let count = args.int4(3)?;
    let wrong = |message| Error::new(SqlState::of("2201G"), message);
    if count <= 0 {
        return Err(wrong("count must be greater than zero"));
    }
    if value.is_nan() || low.is_nan() || high.is_nan() {
        return Err(wrong("operand, lower bound, and upper bound cannot be NaN"));
    }
    if !low.is_finite() || !high.is_finite() {
        return Err(wrong("lower and upper bounds must be finite"));
    }
    if low == high {
        return Err(wrong("lower bound cannot equal upper bound"));
    }
    let (before, past) = match low < high {
        true => (value < low, value >= high),
        false => (value > low, value <= high),
    };
    if before {
        return Ok(Datum::Int4(0));
    }
    if past {
        return narrow(TypeId::INT4, Some(i64::from(count) + 1));
    }
    let part = value
        .sub(low)?
        .abs()
        .mul(&Numeric::from(i64::from(count)))?;
    // The quotient is rounded before it is cut, so the last bucket may be the one past it.
    let bucket = part.div(&high.sub(low)?.abs())?.floor()?;
    narrow(TypeId::INT4, Some(bucket.to_integer("integer")? + 1))
}

/// `generate_series` of numerics.
pub(crate) fn series(_: &Call<'_>, args: &[Datum]) -> Result<Rows> {
    let (start, stop) = (args.numeric(0)?.clone(), args.numeric(1)?.clone());
    let step = match args.len() > 2 {
        true => args.numeric(2)?.clone(),
        false => Numeric::from(1i64),
    };
    for (number, name) in [(&start, "start"), (&stop, "stop"), (&step, "step size")] {
        let what = match number.is_nan() {
            true => "NaN",
            false if !number.is_finite() => "infinity",
            false => continue,
        };
        let value = if name == "step size" { "" } else { " value" };
        return Err(Error::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("{name}{value} cannot be {what}"),
        ));
    }
    if step.is_zero() {
        return Err(Error::new(
            SqlState::INVALID_PARAMETER_VALUE,
            "step size cannot equal zero",
        ));
    }
    let down = step.is_negative();
    let mut next = Some(start);
    Ok(Box::new(std::iter::from_fn(move || {
        let value = next.take()?;
        let over = if down { value < stop } else { value > stop };
        if over {
            return None;
        }
        next = value.add(&step).ok();
        Some(Ok(Datum::Numeric(value)))
    })))
}
