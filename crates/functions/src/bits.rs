//! The functions and operators of `bit` and `bit varying`.
//!
//! Source: PostgreSQL 15 manual, section 9.6.

use base::coro;
use base::error::{Error, Result, SqlState};

use super::arguments::Arguments;
use super::Call;
use types::bits::{datum, Bits};
use types::{growth, Datum};

fn both(args: &[Datum], what: &str, with: impl Fn(u8, u8) -> u8) -> Result<Datum> {
    let (a, b) = (args.bits(0)?, args.bits(1)?);
    if a.len() != b.len() {
        return Err(Error::new(
            SqlState::of("22026"),
            format!("cannot {what} bit strings of different sizes"),
        ));
    }
    coro::work(a.bytes().len())?;
    let pairs = a.bytes().iter().zip(b.bytes());
    let bytes = pairs.map(|(a, b)| with(*a, *b)).collect();
    Ok(datum(Bits::new(a.len(), bytes)))
}

pub(crate) fn and(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    both(args, "AND", |a, b| a & b)
}

pub(crate) fn or(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    both(args, "OR", |a, b| a | b)
}

pub(crate) fn xor(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    both(args, "XOR", |a, b| a ^ b)
}

pub(crate) fn not(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let bits = args.bits(0)?;
    let bytes = bits.bytes().iter().map(|byte| !byte).collect();
    Ok(datum(Bits::new(bits.len(), bytes)))
}

fn shifted(bits: &Bits, by: i64) -> Datum {
    let far = usize::try_from(by.unsigned_abs())
        .unwrap_or(usize::MAX)
        .min(bits.len());
    datum(match by < 0 {
        true => bits.shifted_right(far),
        false => bits.shifted_left(far),
    })
}

pub(crate) fn shift_left(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(shifted(&*args.bits(0)?, args.int(1)?))
}

pub(crate) fn shift_right(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(shifted(&*args.bits(0)?, -args.int(1)?))
}

pub(crate) fn cat(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (a, b) = (args.bits(0)?, args.bits(1)?);
    a.followed_by(&b).map(datum)
}

pub(crate) fn length(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(args.bits(0)?.len() as i32))
}

pub(crate) fn octet_length(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(args.bits(0)?.bytes().len() as i32))
}

pub(crate) fn count(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let bits = args.bits(0)?;
    coro::work(bits.bytes().len())?;
    let ones = bits.bytes().iter().map(|byte| i64::from(byte.count_ones()));
    Ok(Datum::Int8(ones.sum()))
}

/// The bits from a place on, counted from 1; a length counts from there too, even before the first.
fn part(bits: &Bits, from: i64, len: Option<i64>) -> Result<Bits> {
    let end = match len {
        Some(len) if len < 0 => {
            let message = "negative substring length not allowed";
            return Err(Error::new(SqlState::of("22011"), message));
        }
        Some(len) => from.saturating_add(len),
        None => i64::MAX,
    };
    let place = |at: i64| usize::try_from((at - 1).max(0)).unwrap_or(usize::MAX);
    let start = place(from);
    Ok(bits.part(start, place(end).saturating_sub(start)))
}

pub(crate) fn substring(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let len = args.get(2).and_then(Datum::as_i64);
    part(&*args.bits(0)?, args.int(1)?, len).map(datum)
}

pub(crate) fn overlay(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (bits, new, from) = (args.bits(0)?, args.bits(1)?, args.int(2)?);
    let len = args.get(3).and_then(Datum::as_i64);
    let len = len.unwrap_or(new.len() as i64);
    if from <= 0 {
        let message = "negative substring length not allowed";
        return Err(Error::new(SqlState::of("22011"), message));
    }
    let behind = from + len;
    if i32::try_from(behind).is_err() {
        let message = "integer out of range";
        return Err(Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
    }
    let head = part(&bits, 1, Some(from - 1))?;
    let tail = part(&bits, behind, None)?;
    head.followed_by(&new)?.followed_by(&tail).map(datum)
}

pub(crate) fn position(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (wanted, bits) = (args.bits(1)?, args.bits(0)?);
    if wanted.is_empty() {
        return Ok(Datum::Int4(i32::from(!bits.is_empty())));
    }
    let last = bits.len().checked_sub(wanted.len());
    for at in 0..last.map_or(0, |last| last + 1) {
        let places = 0..wanted.len();
        let same = places.take_while(|place| bits.get(at + place) == wanted.get(*place));
        let same = same.count();
        coro::work(8 + same)?;
        if same == wanted.len() {
            return Ok(Datum::Int4(at as i32 + 1));
        }
    }
    Ok(Datum::Int4(0))
}

fn place(bits: &Bits, place: i64) -> Result<usize> {
    let found = usize::try_from(place).ok();
    found.filter(|at| *at < bits.len()).ok_or_else(|| {
        Error::new(
            SqlState::of("2202E"),
            format!(
                "bit index {place} out of valid range (0..{})",
                bits.len() as i64 - 1
            ),
        )
    })
}

pub(crate) fn get_bit(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let bits = args.bits(0)?;
    let at = place(&bits, args.int(1)?)?;
    Ok(Datum::Int4(i32::from(bits.get(at))))
}

pub(crate) fn set_bit(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (bits, new) = (args.bits(0)?, args.int(2)?);
    let at = place(&bits, args.int(1)?)?;
    let mut bytes = bits.bytes().to_vec();
    let mask = 0x80 >> (at % 8);
    match new {
        0 => bytes[at / 8] &= !mask,
        1 => bytes[at / 8] |= mask,
        _ => {
            let message = "new bit must be 0 or 1";
            return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
    }
    Ok(datum(Bits::new(bits.len(), bytes)))
}

/// A number in two's complement, in so many bits: of more than it has the first repeat its sign.
fn of_number(value: i64, len: i64) -> Result<Datum> {
    let len = usize::try_from(len)
        .ok()
        .filter(|len| *len > 0)
        .unwrap_or(1);
    growth::check_room(0, len / 8)?;
    coro::work(len / 8)?;
    let mut bytes = vec![if value < 0 { 0xff } else { 0 }; len.div_ceil(8)];
    // The number's last bit is the string's.
    let unused = bytes.len() * 8 - len;
    let wide = i128::from(value) << unused;
    let count = bytes.len().min(16);
    let start = bytes.len() - count;
    bytes[start..].copy_from_slice(&wide.to_be_bytes()[16 - count..]);
    Ok(datum(Bits::new(len, bytes)))
}

pub(crate) fn from_integer(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    of_number(args.int(0)?, args.int(1)?)
}

/// The number that bits are, of which at most `max` count.
fn to_number(bits: &Bits, max: usize, name: &str) -> Result<i64> {
    if bits.len() > max {
        return Err(Error::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            format!("{name} out of range"),
        ));
    }
    let all = (0..bits.len()).map(|place| bits.get(place));
    Ok(all.fold(0u64, |number, bit| number << 1 | u64::from(bit)) as i64)
}

pub(crate) fn to_int4(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    to_number(&*args.bits(0)?, 32, "integer").map(|number| Datum::Int4(number as u32 as i32))
}

pub(crate) fn to_int8(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    to_number(&*args.bits(0)?, 64, "bigint").map(Datum::Int8)
}

/// `bit(value, length, explicit)`: the modifier is applied where a value is cast.
pub(crate) fn fit(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (length, explicit) = (args.int4(1)?, args.bool(2)?);
    types::apply_typmod(call.result, length, args.any(0)?.clone(), explicit)
}

/// What `bit_and`, `bit_or` and `bit_xor` make of two values.
pub(crate) fn combined(a: &Datum, b: &Datum, what: &str) -> Result<Datum> {
    let args = [a.clone(), b.clone()];
    match what {
        "AND" => both(&args, what, |a, b| a & b),
        "OR" => both(&args, what, |a, b| a | b),
        _ => both(&args, what, |a, b| a ^ b),
    }
}
