//! Extension `pgcrypto`: hashes, passwords, random bytes, and AES.
//!
//! The algorithms are RustCrypto's; what is here is how PostgreSQL calls them, and the two ways to
//! hash a password that databases have kept: `crypt('secret', gen_salt('bf'))` ([`super::crypt`]).
//!
//! Source: PostgreSQL 15 manual, section F.28.
//!
//! # What it leaves out
//! OpenPGP (`pgp_*`, `armor`): 0A000. Ciphers other than AES, which PostgreSQL has only where its
//! OpenSSL is told to bring what is out of date. Hashes beyond MD5, SHA-1 and SHA-2.

use aes::cipher::{Block, BlockCipherDecrypt, BlockCipherEncrypt, BlockSizeUser, KeyInit};
use aes::{Aes128, Aes192, Aes256};
use base::{coro, Error, Result, SqlState};

use super::super::arguments::Arguments;
use super::super::system::random_uuid;
use super::super::table::functions;
use super::super::Call;
use super::crypt;
use types::Datum;

functions! {
    9350 "digest" (TEXT TEXT) BYTEA "i" pgcrypto::digest;
    9351 "digest" (BYTEA TEXT) BYTEA "i" pgcrypto::digest;
    9352 "hmac" (TEXT TEXT TEXT) BYTEA "i" pgcrypto::hmac;
    9353 "hmac" (BYTEA BYTEA TEXT) BYTEA "i" pgcrypto::hmac;
    9354 "crypt" (TEXT TEXT) TEXT "i" pgcrypto::crypt;
    9355 "gen_salt" (TEXT) TEXT "v" pgcrypto::salt;
    9356 "gen_salt" (TEXT INT4) TEXT "v" pgcrypto::salt;
    9357 "encrypt" (BYTEA BYTEA TEXT) BYTEA "i" pgcrypto::encrypt;
    9358 "decrypt" (BYTEA BYTEA TEXT) BYTEA "i" pgcrypto::decrypt;
    9359 "encrypt_iv" (BYTEA BYTEA BYTEA TEXT) BYTEA "i" pgcrypto::encrypt;
    9360 "decrypt_iv" (BYTEA BYTEA BYTEA TEXT) BYTEA "i" pgcrypto::decrypt;
    9361 "gen_random_bytes" (INT4) BYTEA "v" pgcrypto::random_bytes;
    9362 "gen_random_uuid" () UUID "vn" pgcrypto::uuid;
    9363 "pgp_sym_encrypt" (TEXT TEXT) BYTEA "v" unsupported;
    9364 "pgp_sym_encrypt_bytea" (BYTEA TEXT) BYTEA "v" unsupported;
    9365 "pgp_sym_encrypt" (TEXT TEXT TEXT) BYTEA "v" unsupported;
    9366 "pgp_sym_encrypt_bytea" (BYTEA TEXT TEXT) BYTEA "v" unsupported;
    9367 "pgp_sym_decrypt" (BYTEA TEXT) TEXT "i" unsupported;
    9368 "pgp_sym_decrypt_bytea" (BYTEA TEXT) BYTEA "i" unsupported;
    9369 "pgp_sym_decrypt" (BYTEA TEXT TEXT) TEXT "i" unsupported;
    9370 "pgp_sym_decrypt_bytea" (BYTEA TEXT TEXT) BYTEA "i" unsupported;
    9371 "pgp_pub_encrypt" (TEXT BYTEA) BYTEA "v" unsupported;
    9372 "pgp_pub_encrypt_bytea" (BYTEA BYTEA) BYTEA "v" unsupported;
    9373 "pgp_pub_encrypt" (TEXT BYTEA TEXT) BYTEA "v" unsupported;
    9374 "pgp_pub_encrypt_bytea" (BYTEA BYTEA TEXT) BYTEA "v" unsupported;
    9375 "pgp_pub_decrypt" (BYTEA BYTEA) TEXT "i" unsupported;
    9376 "pgp_pub_decrypt_bytea" (BYTEA BYTEA) BYTEA "i" unsupported;
    9377 "pgp_pub_decrypt" (BYTEA BYTEA TEXT) TEXT "i" unsupported;
    9378 "pgp_pub_decrypt_bytea" (BYTEA BYTEA TEXT) BYTEA "i" unsupported;
    9379 "pgp_pub_decrypt" (BYTEA BYTEA TEXT TEXT) TEXT "i" unsupported;
    9380 "pgp_pub_decrypt_bytea" (BYTEA BYTEA TEXT TEXT) BYTEA "i" unsupported;
    9381 "pgp_key_id" (BYTEA) TEXT "i" unsupported;
    9382 "armor" (BYTEA) TEXT "i" unsupported;
    9383 "armor" (BYTEA TEXT_ARRAY TEXT_ARRAY) TEXT "i" unsupported;
    9384 "dearmor" (TEXT) BYTEA "i" unsupported;
}

/// Bytes that are hashed or encrypted between two looks at whether to go on.
const PORTION: usize = 16 << 10;

pub(super) fn invalid(message: impl Into<String>) -> Error {
    Error::new(SqlState::INVALID_PARAMETER_VALUE, message.into())
}

/// 39000: what PostgreSQL's library would have refused.
fn external(message: impl Into<String>) -> Error {
    Error::new(SqlState::of("39000"), message.into())
}

/// The bytes of a text or a `bytea`.
fn bytes(args: &[Datum], index: usize) -> Result<&[u8]> {
    match args.any(index)? {
        Datum::Text(text) => Ok(text.as_bytes()),
        Datum::Bytea(bytes) => Ok(bytes),
        other => Err(Error::internal(format!("{other:?} has no bytes"))),
    }
}

/// A hash: how many bytes it takes at a time, and what it makes of some.
struct Hash {
    name: &'static str,
    block: usize,
    digest: fn(&[&[u8]]) -> Result<Vec<u8>>,
}

macro_rules! hashes {
    ($($name:literal $block:literal $hash:ty, $trait:path;)*) => {
        &[$(Hash {
            name: $name,
            block: $block,
            digest: |parts| {
                use $trait as Digest;
                let mut hash = <$hash as Digest>::new();
                for portion in parts.iter().flat_map(|part| part.chunks(PORTION)) {
                    coro::work(2 * portion.len())?;
                    Digest::update(&mut hash, portion);
                }
                Ok(Digest::finalize(hash).to_vec())
            },
        }),*]
    };
}

const HASHES: &[Hash] = hashes! {
    "md5" 64 md5::Md5, md5::Digest;
    "sha1" 64 sha1::Sha1, sha1::Digest;
    "sha224" 64 sha2::Sha224, sha2::Digest;
    "sha256" 64 sha2::Sha256, sha2::Digest;
    "sha384" 128 sha2::Sha384, sha2::Digest;
    "sha512" 128 sha2::Sha512, sha2::Digest;
};

/// The hash of that name.
///
/// # Errors
/// 22023 for one that there is not.
fn hash_named(name: &str) -> Result<&'static Hash> {
    let name = name.to_ascii_lowercase();
    let found = HASHES.iter().find(|hash| hash.name == name);
    found.ok_or_else(|| invalid(format!("Cannot use \"{name}\": No such hash algorithm")))
}

pub(crate) fn digest(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let hash = hash_named(args.text(1)?)?;
    Ok(Datum::bytea((hash.digest)(&[bytes(args, 0)?])?))
}

/// RFC 2104.
pub(crate) fn hmac(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let hash = hash_named(args.text(2)?)?;
    let mut key = bytes(args, 1)?.to_vec();
    if key.len() > hash.block {
        key = (hash.digest)(&[&key])?;
    }
    key.resize(hash.block, 0);
    let padded = |with: u8| key.iter().map(|byte| byte ^ with).collect::<Vec<u8>>();
    let inner = (hash.digest)(&[&padded(0x36), bytes(args, 0)?])?;
    Ok(Datum::bytea((hash.digest)(&[&padded(0x5c), &inner])?))
}

pub(crate) fn crypt(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    crypt::crypt(args.text(0)?.as_bytes(), args.text(1)?).map(Datum::text)
}

/// `gen_salt`.
pub(crate) fn salt(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let rounds = match args.len() {
        1 => 0,
        _ => args.int4(1)?,
    };
    let secret = call.context.clock.secret();
    crypt::salt(args.text(0)?, rounds, &secret).map(Datum::text)
}

/// So many random bytes are given at most, as in PostgreSQL.
const RANDOM_BYTES_MAX: i32 = 1_024;

pub(crate) fn random_bytes(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let wanted = args.int4(0)?;
    if !(1..=RANDOM_BYTES_MAX).contains(&wanted) {
        return Err(external("Length not in range"));
    }
    let wanted = wanted as usize;
    let mut out = Vec::with_capacity(wanted + 32);
    while out.len() < wanted {
        out.extend_from_slice(&call.context.clock.secret());
    }
    out.truncate(wanted);
    Ok(Datum::bytea(out))
}

pub(crate) fn uuid(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    random_uuid(call, args)
}

/// `aes-cbc/pad:pkcs` and the like.
struct Way {
    chained: bool,
    padded: bool,
}

/// What a name like `aes-ecb/pad:none` asks for.
///
/// # Errors
/// 22023 for what there is not, 0A000 for another cipher.
fn way_of(name: &str) -> Result<Way> {
    let lower = name.to_ascii_lowercase();
    let unknown = || invalid(format!("Cannot use \"{lower}\": No such cipher algorithm"));
    let mut parts = lower.split('/');
    let cipher = parts.next().unwrap_or_default();
    let (cipher, mode) = cipher.split_once('-').unwrap_or((cipher, "cbc"));
    let chained = match mode {
        "cbc" => true,
        "ecb" => false,
        _ => return Err(unknown()),
    };
    match cipher {
        "aes" | "rijndael" => {}
        "bf" | "blowfish" | "des" | "3des" | "des3" | "cast5" => {
            return Err(Error::unsupported(format!("the cipher {cipher}")));
        }
        _ => return Err(unknown()),
    }
    let mut padded = true;
    for part in parts {
        padded = match part {
            "pad:pkcs" => true,
            "pad:none" => false,
            _ => return Err(unknown()),
        };
    }
    Ok(Way { chained, padded })
}

const BLOCK: usize = 16;

/// Something that turns one block into another, either way.
trait Cipher {
    fn encrypt(&self, block: &mut [u8; BLOCK]);
    fn decrypt(&self, block: &mut [u8; BLOCK]);
}

impl<C> Cipher for C
where
    C: BlockCipherEncrypt + BlockCipherDecrypt + BlockSizeUser,
    Block<C>: From<[u8; BLOCK]> + Into<[u8; BLOCK]>,
{
    fn encrypt(&self, block: &mut [u8; BLOCK]) {
        let mut turned = Block::<C>::from(*block);
        self.encrypt_block(&mut turned);
        *block = turned.into();
    }

    fn decrypt(&self, block: &mut [u8; BLOCK]) {
        let mut turned = Block::<C>::from(*block);
        self.decrypt_block(&mut turned);
        *block = turned.into();
    }
}

/// AES with a key of whatever length: it is filled with zeros up to the next that AES has, or cut.
fn cipher_of(key: &[u8]) -> Box<dyn Cipher> {
    fn padded<const N: usize>(key: &[u8]) -> [u8; N] {
        let mut out = [0; N];
        let kept = key.len().min(N);
        out[..kept].copy_from_slice(&key[..kept]);
        out
    }
    match key.len() {
        0..=16 => Box::new(Aes128::new(&padded::<16>(key).into())),
        17..=24 => Box::new(Aes192::new(&padded::<24>(key).into())),
        _ => Box::new(Aes256::new(&padded::<32>(key).into())),
    }
}

/// The block before the first: of zeros if none is given, which are put behind a shorter one.
fn first_block(args: &[Datum]) -> Result<[u8; BLOCK]> {
    let mut block = [0; BLOCK];
    if args.len() == 4 {
        let given = bytes(args, 2)?;
        let kept = given.len().min(BLOCK);
        block[..kept].copy_from_slice(&given[..kept]);
    }
    Ok(block)
}

fn mix(block: &mut [u8; BLOCK], other: &[u8; BLOCK]) {
    for (byte, other) in block.iter_mut().zip(other) {
        *byte ^= other;
    }
}

pub(crate) fn encrypt(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let way = way_of(args.text(args.len() - 1)?)?;
    let mut data = bytes(args, 0)?.to_vec();
    if way.padded {
        let missing = BLOCK - data.len() % BLOCK;
        data.resize(data.len() + missing, missing as u8);
    }
    if data.len() % BLOCK != 0 {
        return Err(external("encrypt error: Encryption failed"));
    }
    let (cipher, mut before) = (cipher_of(bytes(args, 1)?), first_block(args)?);
    coro::work(2 * data.len())?;
    for bytes in data.chunks_exact_mut(BLOCK) {
        let mut block = [0; BLOCK];
        block.copy_from_slice(bytes);
        if way.chained {
            mix(&mut block, &before);
        }
        cipher.encrypt(&mut block);
        bytes.copy_from_slice(&block);
        before = block;
    }
    Ok(Datum::bytea(data))
}

pub(crate) fn decrypt(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let way = way_of(args.text(args.len() - 1)?)?;
    let failed = || external("decrypt error: Decryption failed");
    let mut data = bytes(args, 0)?.to_vec();
    if data.len() % BLOCK != 0 {
        return Err(failed());
    }
    let (cipher, mut before) = (cipher_of(bytes(args, 1)?), first_block(args)?);
    coro::work(2 * data.len())?;
    for bytes in data.chunks_exact_mut(BLOCK) {
        let mut block = [0; BLOCK];
        block.copy_from_slice(bytes);
        let encrypted = block;
        cipher.decrypt(&mut block);
        if way.chained {
            mix(&mut block, &before);
        }
        bytes.copy_from_slice(&block);
        before = encrypted;
    }
    if way.padded {
        let count = data.last().map_or(0, |last| usize::from(*last));
        let is_padding = (1..=BLOCK).contains(&count)
            && data.len() >= count
            && data[data.len() - count..]
                .iter()
                .all(|byte| usize::from(*byte) == count);
        if !is_padding {
            return Err(failed());
        }
        data.truncate(data.len() - count);
    }
    Ok(Datum::bytea(data))
}
