//! How passwords are hashed by `crypt`, and the salts that say how.
//!
//! | salt | what hashes | source |
//! |---|---|---|
//! | `$2a$06$…` | bcrypt, 2^6 rounds | Provos and Mazières, *A Future-Adaptable Password Scheme*, 1999 |
//! | `$1$…` | MD5, a thousand times | FreeBSD's `crypt` |
//!
//! # What it leaves out
//! The two on DES, whose salts `gen_salt` makes: 0A000 when a password is to be hashed with one.

use base::{coro, Error, Result};
use blowfish::Blowfish;
use md5::{Digest, Md5};

use super::pgcrypto::invalid;

/// The digits of `crypt`, and those of bcrypt.
const DIGITS: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const BCRYPT_DIGITS: &[u8; 64] =
    b"./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// So many digits of a number, the least significant first.
fn put_digits(mut number: u32, count: usize, out: &mut String) {
    for _ in 0..count {
        out.push(char::from(DIGITS[(number & 63) as usize]));
        number >>= 6;
    }
}

/// A salt for the method of that name; `rounds` is 0 for what is usual.
///
/// # Errors
/// 22023 for a method that there is not, or rounds that it has not.
pub(super) fn salt(method: &str, rounds: i32, secret: &[u8; 32]) -> Result<String> {
    let wrong = || invalid("gen_salt: Incorrect number of rounds");
    let number = |at: usize| {
        let bytes = &secret[at..at + 4];
        bytes
            .iter()
            .fold(0, |all, byte| all << 8 | u32::from(*byte))
    };
    let mut out = String::new();
    match method.to_ascii_lowercase().as_str() {
        "bf" => {
            let rounds = if rounds == 0 { 6 } else { rounds };
            if !(4..=31).contains(&rounds) {
                return Err(wrong());
            }
            out = format!("$2a${rounds:02}$");
            put_bcrypt(&secret[..16], &mut out);
        }
        "md5" => {
            if ![0, 1_000].contains(&rounds) {
                return Err(wrong());
            }
            out.push_str("$1$");
            put_digits(number(0), 4, &mut out);
            put_digits(number(4), 4, &mut out);
        }
        "des" => {
            if ![0, 25].contains(&rounds) {
                return Err(wrong());
            }
            put_digits(number(0), 2, &mut out);
        }
        "xdes" => {
            let rounds = if rounds == 0 { 29 * 25 } else { rounds };
            if !(1..=0xff_ffff).contains(&rounds) || rounds % 2 == 0 {
                return Err(wrong());
            }
            out.push('_');
            put_digits(rounds as u32, 4, &mut out);
            put_digits(number(0), 4, &mut out);
        }
        _ => return Err(invalid("gen_salt: Unknown salt algorithm")),
    }
    Ok(out)
}

/// The hash of a password as the salt says, which may be an earlier hash.
///
/// # Errors
/// 22023 for what is no salt; 0A000 for one of a method that is not here.
pub(super) fn crypt(password: &[u8], salt: &str) -> Result<String> {
    if let Some(rest) = salt.strip_prefix("$1$") {
        return md5_crypt(password, rest);
    }
    if salt.starts_with("$2a$") {
        return bcrypt(password, salt);
    }
    match salt.bytes().next() {
        Some(b'_') if salt.len() >= 9 => Err(Error::unsupported("crypt() with an xdes salt")),
        Some(b'_') => Err(invalid("invalid salt")),
        Some(_) if salt.len() >= 2 => Err(Error::unsupported("crypt() with a des salt")),
        _ => Err(invalid("invalid salt")),
    }
}

/// Bytes in bcrypt's digits, six bits each, the first the most significant.
fn put_bcrypt(bytes: &[u8], out: &mut String) {
    let (mut bits, mut count) = (0_u32, 0);
    let mut put = |bits: u32| out.push(char::from(BCRYPT_DIGITS[(bits & 63) as usize]));
    for byte in bytes {
        bits = bits << 8 | u32::from(*byte);
        count += 8;
        while count >= 6 {
            count -= 6;
            put(bits >> count);
        }
    }
    if count > 0 {
        put(bits << (6 - count));
    }
}

/// The 16 bytes of 22 digits.
fn salt_of(digits: &[u8]) -> Option<[u8; 16]> {
    let mut out = [0; 16];
    let (mut bits, mut count, mut at) = (0_u32, 0, 0);
    for digit in digits {
        let value = BCRYPT_DIGITS.iter().position(|known| known == digit)?;
        bits = bits << 6 | value as u32;
        count += 6;
        if count >= 8 && at < out.len() {
            count -= 8;
            out[at] = (bits >> count) as u8;
            at += 1;
        }
    }
    Some(out)
}

fn bcrypt(password: &[u8], salt: &str) -> Result<String> {
    let bad = || invalid("invalid salt");
    let bytes = salt.as_bytes();
    if bytes.len() < 29 || bytes[6] != b'$' {
        return Err(bad());
    }
    let cost = salt.get(4..6).and_then(|cost| cost.parse::<u32>().ok());
    let cost = cost
        .filter(|cost| (4..=31).contains(cost))
        .ok_or_else(bad)?;
    let raw = salt_of(&bytes[7..29]).ok_or_else(bad)?;
    let mut key = password.to_vec();
    key.push(0);
    // No more takes part in eighteen words.
    key.truncate(72);
    let mut state = Blowfish::bc_init_state();
    state.salted_expand_key(&raw, &key);
    for _ in 0..1_u64 << cost {
        coro::work(64 << 10)?;
        state.bc_expand_key(&key);
        state.bc_expand_key(&raw);
    }
    let mut words = [0_u32; 6];
    let plain = b"OrpheanBeholderScryDoubt".chunks_exact(4);
    for (word, bytes) in words.iter_mut().zip(plain) {
        *word = bytes
            .iter()
            .fold(0, |all, byte| all << 8 | u32::from(*byte));
    }
    for pair in words.chunks_exact_mut(2) {
        let mut halves = [pair[0], pair[1]];
        for _ in 0..64 {
            halves = state.bc_encrypt(halves);
        }
        pair.copy_from_slice(&halves);
    }
    let hash: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    let mut out = String::from(&salt[..7]);
    put_bcrypt(&raw, &mut out);
    put_bcrypt(&hash[..23], &mut out);
    Ok(out)
}

fn md5_crypt(password: &[u8], rest: &str) -> Result<String> {
    let end = rest.find('$').unwrap_or(rest.len());
    let mut end = end.min(8);
    while !rest.is_char_boundary(end) {
        end -= 1;
    }
    let salt = &rest[..end];
    let of = |parts: &[&[u8]]| -> [u8; 16] {
        let mut hash = Md5::new();
        parts.iter().for_each(|part| hash.update(part));
        hash.finalize().into()
    };
    let inner = of(&[password, salt.as_bytes(), password]);
    let mut first = Md5::new();
    first.update(password);
    first.update(b"$1$");
    first.update(salt.as_bytes());
    for portion in password.chunks(16) {
        first.update(&inner[..portion.len()]);
    }
    let mut bits = password.len();
    while bits > 0 {
        match bits & 1 {
            1 => first.update([0]),
            _ => first.update(&password[..1]),
        }
        bits >>= 1;
    }
    let mut hash: [u8; 16] = first.finalize().into();
    for round in 0..1_000 {
        coro::work(2 * password.len() + 64)?;
        let mut parts: Vec<&[u8]> = Vec::with_capacity(4);
        parts.push(if round & 1 == 1 { password } else { &hash });
        if round % 3 != 0 {
            parts.push(salt.as_bytes());
        }
        if round % 7 != 0 {
            parts.push(password);
        }
        parts.push(if round & 1 == 1 { &hash } else { password });
        hash = of(&parts);
    }
    let mut out = format!("$1${salt}$");
    let places = [[0, 6, 12], [1, 7, 13], [2, 8, 14], [3, 9, 15], [4, 10, 5]];
    for [high, middle, low] in places {
        let byte = |place: usize| u32::from(hash[place]);
        put_digits(
            byte(high) << 16 | byte(middle) << 8 | byte(low),
            4,
            &mut out,
        );
    }
    put_digits(u32::from(hash[11]), 2, &mut out);
    Ok(out)
}
