//! Keys of vectors: ordered number by number, of two that begin alike the shorter first.
//!
//! ```text
//! [1, -2]      1 bf800000  1 3fffffff  0          a mark and the number's ordered bits, then the end
//! {2:5}/9      3 fffffffe 405..  2 00000009       a number above zero is the larger the sooner it comes
//! {2:-5}/9     1 00000001 3f5..  2 00000009       one below zero the smaller
//! ```
//! Minus zero is zero.
//!
//! # Invariants
//! - Column forms are those of `types::vectors`.

use super::{Key, KeyKind};
use crate::error::{Error, Result};

const END: u8 = 0;
const MORE: u8 = 1;

const BELOW_ZERO: u8 = 1;
const NO_MORE: u8 = 2;
const ABOVE_ZERO: u8 = 3;

fn ordered_single(bits: u32) -> u32 {
    match bits {
        0x8000_0000 => 0x8000_0000,
        _ if bits >> 31 == 1 => !bits,
        _ => bits | 0x8000_0000,
    }
}

fn ordered_half(bits: u16) -> u16 {
    match bits {
        0x8000 => 0x8000,
        _ if bits >> 15 == 1 => !bits,
        _ => bits | 0x8000,
    }
}

fn corrupted() -> Error {
    Error::corrupted("a vector that ends in the midst of a number")
}

fn put_sparse(out: &mut Key, bytes: &[u8]) -> Result<()> {
    let (numbers, []) = bytes.as_chunks::<4>() else {
        return Err(corrupted());
    };
    let Some((dimensions, rest)) = numbers.split_first() else {
        return Err(corrupted());
    };
    let (places, values) = rest.split_at(rest.len() / 2);
    for (place, value) in places.iter().zip(values) {
        let (place, bits) = (u32::from_le_bytes(*place), u32::from_le_bytes(*value));
        let below = bits >> 31 == 1;
        out.push(if below { BELOW_ZERO } else { ABOVE_ZERO });
        let place = if below { place } else { !place };
        out.extend_from_slice(&place.to_be_bytes());
        out.extend_from_slice(&ordered_single(bits).to_be_bytes());
    }
    out.push(NO_MORE);
    out.extend_from_slice(&u32::from_le_bytes(*dimensions).to_be_bytes());
    Ok(())
}

/// Appends a vector of one of the three kinds.
///
/// # Errors
/// XX001 when the bytes are none.
pub fn put_vector(out: &mut Key, kind: KeyKind, bytes: &[u8]) -> Result<()> {
    match kind {
        KeyKind::SparseVector => return put_sparse(out, bytes),
        KeyKind::HalfVector => {
            let (numbers, []) = bytes.as_chunks::<2>() else {
                return Err(corrupted());
            };
            for number in numbers {
                out.push(MORE);
                let ordered = ordered_half(u16::from_le_bytes(*number));
                out.extend_from_slice(&ordered.to_be_bytes());
            }
        }
        _ => {
            let (numbers, []) = bytes.as_chunks::<4>() else {
                return Err(corrupted());
            };
            for number in numbers {
                out.push(MORE);
                let ordered = ordered_single(u32::from_le_bytes(*number));
                out.extend_from_slice(&ordered.to_be_bytes());
            }
        }
    }
    out.push(END);
    Ok(())
}

/// How many bytes of a key a vector has, which `at` gives by their places.
///
/// # Errors
/// Those of `at`; XX001 when the bytes are no such key.
pub fn vector_len(kind: KeyKind, at: impl Fn(usize) -> Result<u8>) -> Result<usize> {
    let (end, tail, step) = match kind {
        KeyKind::SparseVector => (NO_MORE, 4, 9),
        KeyKind::HalfVector => (END, 0, 3),
        _ => (END, 0, 5),
    };
    let mut place = 0;
    while at(place)? != end {
        place += step;
    }
    Ok(place + 1 + tail)
}
