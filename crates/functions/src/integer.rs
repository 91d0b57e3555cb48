//! Arithmetic on integers of all widths: computed in 64 bits, checked against the result's type.

use base::error::{Error, Result, SqlState};

use super::arguments::Arguments;
use super::{Call, Rows};
use types::{Datum, Numeric, TypeId};

pub(crate) fn out_of_range(kind: TypeId) -> Error {
    Error::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        format!("{kind} out of range"),
    )
}

pub(crate) fn division_by_zero() -> Error {
    Error::new(SqlState::DIVISION_BY_ZERO, "division by zero")
}

/// The integer as a value of that type.
///
/// # Errors
/// 22003 "integer out of range".
pub(crate) fn narrow(kind: TypeId, value: Option<i64>) -> Result<Datum> {
    let value = value.ok_or_else(|| out_of_range(kind))?;
    match kind {
        TypeId::INT4 => i32::try_from(value)
            .map(Datum::Int4)
            .map_err(|_| out_of_range(kind)),
        TypeId::INT2 => i16::try_from(value)
            .map(Datum::Int2)
            .map_err(|_| out_of_range(kind)),
        TypeId::INT8 => Ok(Datum::Int8(value)),
        _ if kind.is_oid_like() => u32::try_from(value)
            .map(Datum::Oid)
            .map_err(|_| out_of_range(TypeId::OID)),
        _ => Err(Error::internal(format!("an integer as {kind}"))),
    }
}

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident($a:ident, $b:ident) $body:expr;)*) => {
        $($(#[$doc])*
        pub(crate) fn $name(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
            let ($a, $b) = (args.int(0)?, args.int(1)?);
            narrow(call.result, $body)
        })*
    };
}

binary! {
    add(a, b) a.checked_add(b);
    sub(a, b) a.checked_sub(b);
    mul(a, b) a.checked_mul(b);
    div(a, b) match b {
        0 => return Err(division_by_zero()),
        _ => a.checked_div(b),
    };
    rem(a, b) match b {
        0 => return Err(division_by_zero()),
        _ => Some(a.wrapping_rem(b)),
    };
    and(a, b) Some(a & b);
    or(a, b) Some(a | b);
    xor(a, b) Some(a ^ b);
}

macro_rules! unary {
    ($($name:ident($a:ident) $body:expr;)*) => {
        $(pub(crate) fn $name(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
            let $a = args.int(0)?;
            narrow(call.result, $body)
        })*
    };
}

unary! {
    neg(a) a.checked_neg();
    plus(a) Some(a);
    abs(a) a.checked_abs();
    not(a) Some(!a);
    cast(a) Some(a);
    increment(a) a.checked_add(1);
}

/// An oid from an integer: the bits, as PostgreSQL takes them.
pub(crate) fn to_oid(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let value = args.int(0)?;
    match u32::try_from(value) {
        Ok(oid) => Ok(Datum::Oid(oid)),
        Err(_) => Err(Error::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            "OID out of range",
        )),
    }
}

/// The OID with the bits of an integer.
pub(crate) fn bits_to_oid(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Oid(args.int(0)? as u32))
}

/// The integer with the bits of an OID.
pub(crate) fn oid_to_bits(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(args.int(0)? as i32))
}

fn bits(kind: TypeId) -> u32 {
    match kind {
        TypeId::INT2 => 16,
        TypeId::INT8 => 64,
        _ => 32,
    }
}

/// The low bits of a value as that type.
fn wrap(kind: TypeId, value: i64) -> Datum {
    match kind {
        TypeId::INT2 => Datum::Int2(value as i16),
        TypeId::INT8 => Datum::Int8(value),
        _ => Datum::Int4(value as i32),
    }
}

/// The distance of a shift as the processor takes it.
fn distance(kind: TypeId, by: i64) -> u32 {
    match bits(kind) {
        64 => by as u32 & 63,
        _ => by as u32 & 31,
    }
}

pub(crate) fn shift_left(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let by = distance(call.result, args.int(1)?);
    Ok(wrap(call.result, args.int(0)?.wrapping_shl(by)))
}

pub(crate) fn shift_right(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let by = distance(call.result, args.int(1)?);
    Ok(wrap(call.result, args.int(0)?.wrapping_shr(by)))
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

pub(crate) fn gcd(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (a, b) = (args.int(0)?, args.int(1)?);
    let divisor = greatest_common_divisor(a.unsigned_abs(), b.unsigned_abs());
    narrow(call.result, i64::try_from(divisor).ok())
}

pub(crate) fn lcm(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (a, b) = (args.int(0)?, args.int(1)?);
    if a == 0 || b == 0 {
        return narrow(call.result, Some(0));
    }
    let divisor = greatest_common_divisor(a.unsigned_abs(), b.unsigned_abs());
    let multiple = (a.unsigned_abs() / divisor).checked_mul(b.unsigned_abs());
    narrow(call.result, multiple.and_then(|m| i64::try_from(m).ok()))
}

pub(crate) fn to_numeric(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Numeric(Numeric::from(args.int(0)?)))
}

pub(crate) fn to_float8(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Float8(args.int(0)? as f64))
}

pub(crate) fn to_float4(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Float4(args.int(0)? as f32))
}

pub(crate) fn to_bool(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(args.int(0)? != 0))
}

pub(crate) fn from_bool(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(i32::from(args.bool(0)?)))
}

/// The integer to which a char of one byte stands for, and back.
pub(crate) fn from_char(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(i32::from(args.character(0)? as i8)))
}

pub(crate) fn to_char(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    match i8::try_from(args.int(0)?) {
        Ok(value) => Ok(Datum::Char(value as u8)),
        Err(_) => Err(Error::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            "\"char\" out of range",
        )),
    }
}

/// Digits in base 16, of the value's two's complement.
pub(crate) fn to_hex(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::text(match args.any(0)? {
        Datum::Int4(value) => format!("{value:x}"),
        _ => format!("{:x}", args.int(0)?),
    }))
}

/// `generate_series` of integers and bigints.
pub(crate) fn series(call: &Call<'_>, args: &[Datum]) -> Result<Rows> {
    let (start, stop) = (args.int(0)?, args.int(1)?);
    let step = if args.len() > 2 { args.int(2)? } else { 1 };
    if step == 0 {
        return Err(Error::new(
            SqlState::INVALID_PARAMETER_VALUE,
            "step size cannot equal zero",
        ));
    }
    let kind = call.result;
    let mut next = Some(start);
    Ok(Box::new(std::iter::from_fn(move || {
        let value = next?;
        let over = if step > 0 { value > stop } else { value < stop };
        if over {
            return None;
        }
        next = value.checked_add(step);
        Some(narrow(kind, Some(value)))
    })))
}
