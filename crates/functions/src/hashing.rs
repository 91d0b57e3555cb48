//! Hashes as functions: MD5, which protects nothing, and the SHA-2 family.
//!
//! Source: PostgreSQL 15 manual, sections 9.4 and 9.5.

use std::sync::Arc;

use base::{coro, Result};
use md5::{Digest, Md5};
use sha2::{Sha224, Sha256, Sha384, Sha512};

use super::arguments::Arguments;
use super::Call;
use types::Datum;

/// Bytes that are hashed at a time.
const PORTION: usize = 16 << 10;

/// The hash of some bytes in hexadecimal, of many bit by bit.
///
/// # Errors
/// The pending interrupt.
pub fn md5_of(bytes: &[u8]) -> Result<String> {
    let mut hash = Md5::new();
    for portion in bytes.chunks(PORTION) {
        coro::work(2 * portion.len())?;
        hash.update(portion);
    }
    Ok(in_hex(&hash.finalize()))
}

/// The hash of a few bytes in hexadecimal.
pub fn md5_hex(bytes: &[u8]) -> String {
    in_hex(&Md5::digest(bytes))
}

fn in_hex(digest: &[u8]) -> String {
    let mut text = String::with_capacity(2 * digest.len());
    let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value)]);
    for byte in digest {
        text.push(digit(byte >> 4));
        text.push(digit(byte & 15));
    }
    text
}

macro_rules! sha {
    ($($name:ident $hash:ident;)*) => {
        $(pub(crate) fn $name(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
            let digest = <$hash as sha2::Digest>::digest(args.bytea(0)?);
            Ok(Datum::Bytea(Arc::from(&digest[..])))
        })*
    };
}

sha! {
    sha224 Sha224;
    sha256 Sha256;
    sha384 Sha384;
    sha512 Sha512;
}

#[cfg(test)]
mod tests {
    use super::md5_hex;

    #[test]
    fn known_hashes() {
        assert_eq!(md5_hex(b""), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(
            md5_hex(b"message digest"),
            "f96b697d7cb7938d525a2f31aaf161d0"
        );
        assert_eq!(md5_hex(&[b'a'; 64]), "014842d480b571495a4a0363793f7367");
    }
}
