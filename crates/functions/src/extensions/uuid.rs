//! Extension `uuid-ossp`: UUIDs of the versions 1, 3, 4 and 5.
//!
//! Source: PostgreSQL 15 manual, section F.48; RFC 9562.

use base::Result;
use md5::Digest;

use super::super::arguments::Arguments;
use super::super::system::random_uuid;
use super::super::table::functions;
use super::super::Call;
use types::Datum;

functions! {
    9300 "uuid_nil" () UUID "i" uuid_ossp::nil;
    9301 "uuid_ns_dns" () UUID "i" uuid_ossp::dns;
    9302 "uuid_ns_url" () UUID "i" uuid_ossp::url;
    9303 "uuid_ns_oid" () UUID "i" uuid_ossp::oid;
    9304 "uuid_ns_x500" () UUID "i" uuid_ossp::x500;
    9305 "uuid_generate_v1" () UUID "v" uuid_ossp::of_time;
    9306 "uuid_generate_v1mc" () UUID "v" uuid_ossp::of_time;
    9307 "uuid_generate_v3" (UUID TEXT) UUID "i" uuid_ossp::of_name_by_md5;
    9308 "uuid_generate_v4" () UUID "v" uuid_ossp::random;
    9309 "uuid_generate_v5" (UUID TEXT) UUID "i" uuid_ossp::of_name_by_sha1;
}

/// The namespaces of RFC 9562, section 6.6, which differ in one byte.
const fn namespace(number: u8) -> Datum {
    Datum::Uuid([
        0x6b, 0xa7, 0xb8, number, 0x9d, 0xad, 0x11, 0xd1, 0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30,
        0xc8,
    ])
}

pub(crate) fn nil(_: &Call<'_>, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::Uuid([0; 16]))
}

pub(crate) fn dns(_: &Call<'_>, _: &[Datum]) -> Result<Datum> {
    Ok(namespace(0x10))
}

pub(crate) fn url(_: &Call<'_>, _: &[Datum]) -> Result<Datum> {
    Ok(namespace(0x11))
}

pub(crate) fn oid(_: &Call<'_>, _: &[Datum]) -> Result<Datum> {
    Ok(namespace(0x12))
}

pub(crate) fn x500(_: &Call<'_>, _: &[Datum]) -> Result<Datum> {
    Ok(namespace(0x14))
}

pub(crate) fn random(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    random_uuid(call, args)
}

/// Version 1: the time in units of 100 ns since 1582-10-15, and a random node, as a multicast address
/// (section 6.10), since nothing of the machine is to be told; the clock's sequence is random, so
/// that two of one microsecond differ.
pub(crate) fn of_time(call: &Call<'_>, _: &[Datum]) -> Result<Datum> {
    /// From 1582-10-15 to 2000-01-01, in microseconds.
    const EPOCH: i64 = 13_165_977_600_000_000;
    let secret = call.context.clock.secret();
    let now = call.context.clock.wall_micros().saturating_add(EPOCH);
    let ticks = (now as u64)
        .wrapping_mul(10)
        .wrapping_add(u64::from(secret[8] % 10));
    let mut uuid = [0; 16];
    uuid[..4].copy_from_slice(&(ticks as u32).to_be_bytes());
    uuid[4..6].copy_from_slice(&((ticks >> 32) as u16).to_be_bytes());
    uuid[6..8].copy_from_slice(&((ticks >> 48) as u16).to_be_bytes());
    uuid[8..].copy_from_slice(&secret[..8]);
    uuid[10] |= 1;
    Ok(Datum::Uuid(versioned(uuid, 1)))
}

/// Puts version and variant in their places.
fn versioned(mut uuid: [u8; 16], version: u8) -> [u8; 16] {
    uuid[6] = uuid[6] & 0x0f | version << 4;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    uuid
}

fn namespace_of(args: &[Datum]) -> Result<[u8; 16]> {
    match args.any(0)? {
        Datum::Uuid(uuid) => Ok(*uuid),
        other => Err(base::Error::internal(format!("{other:?} is no namespace"))),
    }
}

pub(crate) fn of_name_by_md5(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let mut hash = md5::Md5::new();
    hash.update(namespace_of(args)?);
    hash.update(args.text(1)?.as_bytes());
    Ok(Datum::Uuid(versioned(hash.finalize().into(), 3)))
}

pub(crate) fn of_name_by_sha1(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    use sha1::Digest;
    let mut hash = sha1::Sha1::new();
    hash.update(namespace_of(args)?);
    hash.update(args.text(1)?.as_bytes());
    let digest = hash.finalize();
    let mut uuid = [0; 16];
    uuid.copy_from_slice(&digest[..16]);
    Ok(Datum::Uuid(versioned(uuid, 5)))
}
