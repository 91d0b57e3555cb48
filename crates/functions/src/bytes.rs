//! Bytes and bits of `bytea`: `get_byte`, `set_byte`, `get_bit`, `set_bit`.
//!
//! Source: PostgreSQL 15 manual, section 9.5. Bits are counted from the lowest of each byte.

use std::sync::Arc;

use base::error::{Error, Result, SqlState};

use super::arguments::Arguments;
use super::Call;
use types::Datum;

/// The place that an index means among so many.
fn place(index: i64, count: usize) -> Result<usize> {
    match usize::try_from(index) {
        Ok(place) if place < count => Ok(place),
        _ => Err(Error::new(
            SqlState::of("2202E"),
            format!("index {index} out of valid range, 0..{}", count as i64 - 1),
        )),
    }
}

fn changed(bytes: &[u8], at: usize, byte: u8) -> Datum {
    let mut bytes = bytes.to_vec();
    bytes[at] = byte;
    Datum::Bytea(Arc::from(bytes))
}

pub(crate) fn get_byte(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let bytes = args.bytea(0)?;
    let at = place(args.int(1)?, bytes.len())?;
    Ok(Datum::Int4(i32::from(bytes[at])))
}

pub(crate) fn set_byte(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let bytes = args.bytea(0)?;
    let at = place(args.int(1)?, bytes.len())?;
    // Only the lowest eight bits count.
    Ok(changed(&bytes, at, args.int4(2)? as u8))
}

pub(crate) fn get_bit(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let bytes = args.bytea(0)?;
    let at = place(args.int(1)?, bytes.len() * 8)?;
    Ok(Datum::Int4(i32::from(bytes[at / 8] >> (at % 8) & 1)))
}

pub(crate) fn set_bit(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let bytes = args.bytea(0)?;
    let at = place(args.int(1)?, bytes.len() * 8)?;
    let mask = 1 << (at % 8);
    let byte = match args.int4(2)? {
        0 => bytes[at / 8] & !mask,
        1 => bytes[at / 8] | mask,
        _ => {
            return Err(Error::new(
                SqlState::INVALID_PARAMETER_VALUE,
                "new bit must be 0 or 1",
            ))
        }
    };
    Ok(changed(&bytes, at / 8, byte))
}
