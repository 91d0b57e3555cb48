//! Strings of bits: `bit(n)` and `bit varying(n)`.
//!
//! ```
//! use types::{self, EvalContext, TypeId};
//! let context = EvalContext::for_tests();
//! let value = types::input(&context, TypeId::VARBIT, -1, "x1f").unwrap();
//! assert_eq!(types::output(&context, TypeId::VARBIT, &value).unwrap(), "00011111");
//! ```
//!
//! # Invariants
//! - The bits behind the last one, in the last byte, are 0.
//! - In a column each byte follows a 1, and the number of bits in the last byte follows a 0: so shorter
//!   strings come before longer ones that begin like them, in the order of bytes.
//!
//! Source: PostgreSQL 15 manual, section 8.10.

use std::cmp::Ordering;
use std::sync::Arc;

use base::coro;
use base::error::{Error, Result, SqlState};

use super::{growth, Datum, TypeId};

/// A string of bits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bits {
    len: usize,
    bytes: Vec<u8>,
}

impl Bits {
    /// So many bits of these bytes, of which there are enough.
    pub fn new(len: usize, mut bytes: Vec<u8>) -> Bits {
        bytes.resize(len.div_ceil(8), 0);
        if let (Some(last), rest @ 1..) = (bytes.last_mut(), len % 8) {
            *last &= 0xffu8 << (8 - rest);
        }
        Bits { len, bytes }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bit at a place, from 0.
    pub fn get(&self, place: usize) -> bool {
        let byte = self.bytes.get(place / 8).copied().unwrap_or(0);
        byte >> (7 - place % 8) & 1 == 1
    }

    /// As many of the bits from a place on as there are, and no more than `len`.
    pub fn part(&self, start: usize, len: usize) -> Bits {
        let start = start.min(self.len);
        let len = len.min(self.len - start);
        let shifted = self.shifted_left(start);
        Bits::new(len, shifted.bytes)
    }

    /// The same number of bits, moved to the front.
    pub fn shifted_left(&self, by: usize) -> Bits {
        let (bytes, bits) = (by / 8, by % 8);
        let at = |place: usize| u16::from(self.bytes.get(place).copied().unwrap_or(0));
        let moved = (0..self.bytes.len()).map(|place| {
            let pair = at(place + bytes) << 8 | at(place + bytes + 1);
            (pair << bits >> 8) as u8
        });
        Bits::new(self.len, moved.collect())
    }

    /// The same number of bits, moved to the end.
    pub fn shifted_right(&self, by: usize) -> Bits {
        let (bytes, bits) = (by / 8, by % 8);
        let at = |place: Option<usize>| {
            let byte = place.and_then(|place| self.bytes.get(place));
            u16::from(byte.copied().unwrap_or(0))
        };
        let moved = (0..self.bytes.len()).map(|place| {
            let pair = at(place.checked_sub(bytes + 1)) << 8 | at(place.checked_sub(bytes));
            (pair >> bits) as u8
        });
        Bits::new(self.len, moved.collect())
    }

    /// These and then those.
    ///
    /// # Errors
    /// 54000.
    pub fn followed_by(&self, other: &Bits) -> Result<Bits> {
        let len = self.len + other.len;
        growth::check_room(0, len.div_ceil(8))?;
        coro::work(len / 8)?;
        let mut bytes = self.bytes.clone();
        bytes.resize(len.div_ceil(8), 0);
        let (from, by) = (self.len / 8, self.len % 8);
        for (place, byte) in other.bytes.iter().enumerate() {
            let pair = u16::from(*byte) << 8 >> by;
            bytes[from + place] |= (pair >> 8) as u8;
            if let Some(next) = bytes.get_mut(from + place + 1) {
                *next |= pair as u8;
            }
        }
        Ok(Bits::new(len, bytes))
    }

    /// As a column has it.
    pub fn column(&self, out: &mut Vec<u8>) {
        for byte in &self.bytes {
            out.extend_from_slice(&[1, *byte]);
        }
        let last = match self.len % 8 {
            0 if self.len > 0 => 8,
            rest => rest as u8,
        };
        out.extend_from_slice(&[0, last]);
    }

    /// Reads what [`Bits::column`] made.
    ///
    /// # Errors
    /// XX001 when it is something else.
    pub fn from_column(column: &[u8]) -> Result<Bits> {
        let wrong = || Error::corrupted("a string of bits in a column");
        let (pairs, end) = column.split_at(column.len().checked_sub(2).ok_or_else(wrong)?);
        let bytes: Vec<u8> = pairs.chunks(2).map(|pair| pair[pair.len() - 1]).collect();
        let last = usize::from(end[1]);
        if last > 8 || (last == 0) != bytes.is_empty() {
            return Err(wrong());
        }
        Ok(Bits::new((bytes.len() * 8 + last).saturating_sub(8), bytes))
    }
}

impl PartialOrd for Bits {
    fn partial_cmp(&self, other: &Bits) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Bits {
    fn cmp(&self, other: &Bits) -> Ordering {
        self.bytes.cmp(&other.bytes).then(self.len.cmp(&other.len))
    }
}

/// A string of bits as a value.
pub fn datum(bits: Bits) -> Datum {
    Datum::Bits(Arc::new(bits))
}

/// Reads binary digits, perhaps after a `b`, or hexadecimal ones after an `x`.
///
/// # Errors
/// 22P02.
pub fn parse(text: &str) -> Result<Bits> {
    coro::work(text.len())?;
    let wrong = |c: char, what: &str| {
        Error::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            format!("\"{c}\" is not a valid {what} digit"),
        )
    };
    let digits = match text.strip_prefix(['x', 'X']) {
        Some(digits) => {
            let mut bytes = vec![0u8; digits.len().div_ceil(2)];
            for (place, c) in digits.chars().enumerate() {
                let digit = c.to_digit(16).ok_or_else(|| wrong(c, "hexadecimal"))? as u8;
                bytes[place / 2] |= digit << (4 * (1 - place % 2));
            }
            return Ok(Bits::new(digits.len() * 4, bytes));
        }
        None => text.strip_prefix(['b', 'B']).unwrap_or(text),
    };
    let mut bytes = vec![0u8; digits.len().div_ceil(8)];
    for (place, c) in digits.chars().enumerate() {
        match c {
            '0' => {}
            '1' => bytes[place / 8] |= 0x80 >> (place % 8),
            _ => return Err(wrong(c, "binary")),
        }
    }
    Ok(Bits::new(digits.len(), bytes))
}

/// Appends the text form.
///
/// # Errors
/// 54000.
pub(crate) fn write(bits: &Bits, out: &mut String) -> Result<()> {
    growth::check_room(out.len(), bits.len)?;
    coro::work(bits.len)?;
    out.extend((0..bits.len).map(|place| if bits.get(place) { '1' } else { '0' }));
    Ok(())
}

/// Makes a value fit `bit(n)` or `bit varying(n)`: cuts and pads if that is asked for.
///
/// # Errors
/// 22026, 22001.
pub(crate) fn fit(kind: TypeId, typmod: i32, bits: Arc<Bits>, explicit: bool) -> Result<Datum> {
    let wanted = usize::try_from(typmod).unwrap_or(0);
    let len = bits.len;
    if len == wanted || kind == TypeId::VARBIT && len < wanted {
        return Ok(Datum::Bits(bits));
    }
    if explicit {
        growth::check_room(0, wanted / 8)?;
        return Ok(datum(Bits::new(wanted, bits.bytes.clone())));
    }
    Err(match kind {
        TypeId::BIT => Error::new(
            SqlState::of("22026"),
            format!("bit string length {len} does not match type bit({wanted})"),
        ),
        _ => Error::new(
            SqlState::STRING_DATA_RIGHT_TRUNCATION,
            format!("bit string too long for type bit varying({wanted})"),
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_in_the_order_of_values() {
        let texts = [
            "",
            "0",
            "00",
            "0000000000",
            "01",
            "1",
            "10",
            "100000000",
            "11",
        ];
        let all: Vec<Bits> = texts.iter().map(|text| parse(text).unwrap()).collect();
        let column = |bits: &Bits| {
            let mut out = Vec::new();
            bits.column(&mut out);
            assert_eq!(&Bits::from_column(&out).unwrap(), bits);
            out
        };
        for a in &all {
            for b in &all {
                assert_eq!(a.cmp(b), column(a).cmp(&column(b)), "{a:?} {b:?}");
            }
        }
        let long = parse("1011001110001111").unwrap();
        for by in 0..20 {
            let back = long.shifted_left(by).shifted_right(by);
            let kept = Bits::new(16usize.saturating_sub(by), back.shifted_left(by).bytes);
            assert_eq!(kept, long.part(by, 16));
            let (head, tail) = (long.part(0, by), long.part(by, 16));
            assert_eq!(head.followed_by(&tail).unwrap(), long);
        }
    }
}
