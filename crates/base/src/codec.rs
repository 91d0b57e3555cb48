//! Bytes on disk and on the wire: variable-length integers, checksums, and a reader that never
//! panics on what it is given.
//!
//! ```
//! use base::codec::{put_bytes, put_varint, Reader};
//! let mut out = Vec::new();
//! put_varint(&mut out, 300);
//! put_bytes(&mut out, b"abc");
//! let mut reader = Reader::new(&out);
//! assert_eq!(reader.varint().unwrap(), 300);
//! assert_eq!(reader.bytes().unwrap(), b"abc");
//! reader.finish().unwrap();
//! ```

use crate::error::{Error, Result};

/// CRC-32C of some bytes, as on every page and log entry.
pub fn checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

/// CRC-32C continued over further bytes.
pub fn checksum_append(crc: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc, bytes)
}

/// Appends an unsigned integer in LEB128: 7 bits a byte, lowest first.
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a signed integer so that small magnitudes are short (zigzag, then LEB128).
pub fn put_signed(out: &mut Vec<u8>, value: i64) {
    put_varint(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// Appends the eight bytes of a number, the greatest first.
pub fn put_f64(out: &mut Vec<u8>, value: f64) {
    out.extend_from_slice(&value.to_bits().to_be_bytes());
}

/// Appends a length and the bytes.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads what the `put_` functions wrote; every malformed input is XX001.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads from the start of `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    /// What has not been read.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether everything has been read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// An unsigned LEB128 integer.
    #[inline]
    pub fn varint(&mut self) -> Result<u64> {
        match self.rest {
            // Most are lengths of a few bytes.
            [byte @ ..0x80, rest @ ..] => {
                self.rest = rest;
                Ok(u64::from(*byte))
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(Error::corrupted("an integer is longer than 64 bits"));
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Error::corrupted("an integer is longer than 64 bits"))
    }

    /// A varint that must fit `T`.
    #[inline]
    pub fn varint_as<T: TryFrom<u64>>(&mut self) -> Result<T> {
        T::try_from(self.varint()?).map_err(|_| Error::corrupted("an integer is out of range"))
    }

    /// A zigzag integer.
    pub fn signed(&mut self) -> Result<i64> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// One byte.
    pub fn u8(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    /// A fixed-width big-endian integer.
    pub fn u32(&mut self) -> Result<u32> {
        let bytes = self.take(4)?;
        Ok(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// A fixed-width big-endian integer.
    pub fn u64(&mut self) -> Result<u64> {
        Ok(u64::from(self.u32()?) << 32 | u64::from(self.u32()?))
    }

    /// Bytes with their length in front.
    pub fn bytes(&mut self) -> Result<&'a [u8]> {
        let len = self.varint_as()?;
        self.take(len)
    }

    /// UTF-8 text with its length in front.
    pub fn str(&mut self) -> Result<&'a str> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Error::corrupted("text is not UTF-8"))
    }

    /// The next `len` bytes.
    #[inline]
    pub fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let Some((head, tail)) = self.rest.split_at_checked(len) else {
            return Err(too_short(len, self.rest.len()));
        };
        self.rest = tail;
        Ok(head)
    }

    /// What [`put_f64`] appended.
    pub fn f64(&mut self) -> Result<f64> {
        let bytes = self.take(8)?.iter();
        let bits = bytes.fold(0, |bits, byte| bits << 8 | u64::from(*byte));
        Ok(f64::from_bits(bits))
    }

    /// Asserts that everything has been read.
    pub fn finish(self) -> Result<()> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(Error::corrupted(format!(
            "{} bytes too many",
            self.rest.len()
        )))
    }
}

#[cold]
fn too_short(wanted: usize, left: usize) -> Error {
    Error::corrupted(format!("{wanted} bytes are wanted and {left} are left"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_come_back() {
        let mut out = Vec::new();
        let unsigned = [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX];
        let signed = [0, -1, 1, 63, -64, 64, i64::MIN, i64::MAX];
        unsigned.iter().for_each(|v| put_varint(&mut out, *v));
        signed.iter().for_each(|v| put_signed(&mut out, *v));
        let mut reader = Reader::new(&out);
        for value in unsigned {
            assert_eq!(reader.varint().unwrap(), value);
        }
        for value in signed {
            assert_eq!(reader.signed().unwrap(), value);
        }
        reader.finish().unwrap();
    }

    #[test]
    fn malformed_input_is_an_error() {
        assert!(Reader::new(&[0xff; 11]).varint().is_err());
        assert!(Reader::new(&[5, 1, 2]).bytes().is_err());
        assert!(Reader::new(&[1]).finish().is_err());
        assert!(Reader::new(&[2, 0xc0, 0xaf]).str().is_err());
    }
}
