//! Values as the bytes of a row's column (see [`base::row`]), and how those are ordered in keys.
//!
//! | types | bytes | key kind |
//! |---|---|---|
//! | smallint, integer, bigint, money, date, time, timestamps | big-endian two's complement | `Int` |
//! | bool, `"char"`, uuid, oid and its kin, pg_lsn, xid8, macaddr, macaddr8, enums | big-endian, unsigned | `Fixed` |
//! | timetz | microseconds in UTC, then the zone, both with the sign bit flipped | `Fixed` |
//! | real, double precision | IEEE 754 | `Float` |
//! | numeric | [`base::key::put_numeric`] | `Numeric` |
//! | interval | months, days, microseconds | `Interval` |
//! | text, varchar, name, bytea | as they are | `Bytes` |
//! | inet, cidr | see [`super::Network::bytes`] | `Bytes` |
//! | bit, bit varying | see [`super::bits`] | `Bytes` |
//! | point, line, lseg, box, path, polygon, circle | see [`super::geometry`] | none |
//! | json, jsonpath | as they are | none |
//! | tsvector | in its order, see [`super::search::vector`] | `Bytes` |
//! | tsquery | its binary form | none |
//! | citext | as it is | `Folded` |
//! | vector, halfvec, sparsevec | see [`super::vectors`] | `Vector`, `HalfVector`, `SparseVector` |
//! | hstore | in its order, see [`super::hstore`] | `Bytes` |
//! | jsonb | as it is, see [`base::jsonb`] | `Jsonb` |
//! | char(n) | without trailing blanks; reading pads again | `Bytes` |
//! | ranges, multiranges | the type of the bounds, its key kind, then each range: see [`base::key`] | `Range` |
//! | arrays | the type of the elements, dimensions, elements with lengths: see [`base::key`] | `Array` |
//! | records | fields with their types and lengths | none |

use std::sync::atomic::{fence, Ordering};
use std::sync::Arc;

use base::codec::{put_bytes, put_signed, put_varint, Reader};
use base::error::{Error, Result};
use base::key::{numeric_class, range_flags, KeyKind};

use super::datetime::{date, timestamp};
use super::numeric::{Repr, POW10, SMALL_SCALE_MAX};
use super::typmod::{apply_typmod, character_length};
use super::{
    bits, geometry, Array, Bits, Bound, Datum, Dimension, Interval, Multirange, Network, Numeric,
    Range, Record, TypeId, NO_TYPMOD,
};

/// How columns of this type become ordered keys; `None` when the type has no order.
pub fn key_kind(kind: TypeId) -> Option<KeyKind> {
    Some(match kind {
        // They are equal or not, and wrap around.
        TypeId::XID | TypeId::CID => return None,
        TypeId::INT2
        | TypeId::INT4
        | TypeId::INT8
        | TypeId::MONEY
        | TypeId::DATE
        | TypeId::TIME
        | TypeId::TIMESTAMP
        | TypeId::TIMESTAMPTZ => KeyKind::Int,
        TypeId::BOOL
        | TypeId::CHAR
        | TypeId::UUID
        | TypeId::PG_LSN
        | TypeId::XID8
        | TypeId::TID
        | TypeId::MACADDR
        | TypeId::MACADDR8
        | TypeId::TIMETZ => KeyKind::Fixed,
        TypeId::FLOAT4 | TypeId::FLOAT8 => KeyKind::Float,
        TypeId::NUMERIC => KeyKind::Numeric,
        TypeId::INTERVAL => KeyKind::Interval,
        TypeId::BYTEA
        | TypeId::INET
        | TypeId::CIDR
        | TypeId::BIT
        | TypeId::VARBIT
        | TypeId::TSVECTOR
        | TypeId::HSTORE => KeyKind::Bytes,
        TypeId::BPCHAR => KeyKind::Padded,
        TypeId::CITEXT => KeyKind::Folded,
        TypeId::VECTOR => KeyKind::Vector,
        TypeId::HALFVEC => KeyKind::HalfVector,
        TypeId::SPARSEVEC => KeyKind::SparseVector,
        TypeId::JSONB => KeyKind::Jsonb,
        TypeId::JSON | TypeId::JSONPATH | TypeId::REFCURSOR | TypeId::TSQUERY => return None,
        TypeId::LQUERY | TypeId::LTXTQUERY => return None,
        _ if kind.is_geometric() => return None,
        _ if kind.is_oid_like() => KeyKind::Fixed,
        _ if kind.is_text_like() => KeyKind::Bytes,
        _ if kind.is_enum() => KeyKind::Fixed,
        _ if kind.is_range() || kind.is_multirange() => {
            let element = kind.range_element().or(kind.multirange_element());
            match key_kind(element?)? {
                KeyKind::Array(_) => return None,
                _ => KeyKind::Range,
            }
        }
        _ => return key_kind(kind.array_element()?)?.array(),
    })
}

/// How many bytes the values of a type have in a column, if that is the same for all; `typlen` is what
/// PostgreSQL's have.
pub fn fixed_len(kind: TypeId) -> Option<usize> {
    match kind {
        TypeId::TID | TypeId::MACADDR => Some(8),
        _ if kind.is_enum() => Some(8),
        _ => usize::try_from(kind.len()).ok(),
    }
}

/// Appends the column bytes of a value that is not NULL and is of this very type. The padding of
/// `character(n)` is not stored; without a modifier spaces at the end are the value's own.
///
/// # Errors
/// XX000 for a value of another type.
pub fn encode_column(kind: TypeId, typmod: i32, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    match value {
        Datum::Bool(v) => out.push(u8::from(*v)),
        Datum::Int2(v) => out.extend_from_slice(&v.to_be_bytes()),
        Datum::Int4(v) | Datum::Date(v) => out.extend_from_slice(&v.to_be_bytes()),
        Datum::Int8(v)
        | Datum::Money(v)
        | Datum::Time(v)
        | Datum::Timestamp(v)
        | Datum::TimestampTz(v) => out.extend_from_slice(&v.to_be_bytes()),
        Datum::Float4(v) => out.extend_from_slice(&v.to_be_bytes()),
        Datum::Float8(v) => out.extend_from_slice(&v.to_be_bytes()),
        Datum::Numeric(v) => encode_numeric(v, out),
        Datum::Text(v) if kind == TypeId::BPCHAR && typmod != NO_TYPMOD => {
            out.extend_from_slice(v.trim_end_matches(' ').as_bytes());
        }
        Datum::Text(v) => out.extend_from_slice(v.as_bytes()),
        Datum::Bytea(v)
        | Datum::Jsonb(v)
        | Datum::Hstore(v)
        | Datum::Vector(v)
        | Datum::TsVector(v)
        | Datum::TsQuery(v) => out.extend_from_slice(v),
        Datum::Char(v) => out.push(*v),
        Datum::Uuid(v) => out.extend_from_slice(v),
        Datum::TimeTz(v, zone) => {
            let utc = v + i64::from(*zone) * 1_000_000;
            out.extend_from_slice(&(utc as u64 ^ 1 << 63).to_be_bytes());
            out.extend_from_slice(&(*zone as u32 ^ 1 << 31).to_be_bytes());
        }
        Datum::Interval(v) => {
            out.extend_from_slice(&v.months.to_be_bytes());
            out.extend_from_slice(&v.days.to_be_bytes());
            out.extend_from_slice(&v.micros.to_be_bytes());
        }
        Datum::Oid(v) => out.extend_from_slice(&v.to_be_bytes()),
        Datum::Unsigned8(v) => out.extend_from_slice(&v.to_be_bytes()),
        Datum::Array(v) => encode_array(v, out)?,
        Datum::Record(v) => encode_record(v, out)?,
        Datum::Geometry(v) => geometry::encode(kind, v, out),
        Datum::Network(v) => out.extend_from_slice(&v.bytes()),
        Datum::Bits(v) => v.column(out),
        Datum::Range(v) => encode_ranges(v.element(), std::slice::from_ref(&**v), out)?,
        Datum::Multirange(v) => encode_ranges(v.element(), v.ranges(), out)?,
        Datum::Null | Datum::Void | Datum::Long(_) => {
            return Err(Error::internal(format!("{value:?} cannot be stored")))
        }
    }
    Ok(())
}

pub(crate) fn encode_numeric(number: &Numeric, out: &mut Vec<u8>) {
    let class = match number.decimal() {
        None if number.is_nan() => numeric_class::NAN,
        None if number.is_negative() => numeric_class::NEGATIVE_INFINITY,
        None => numeric_class::INFINITY,
        Some(digits) if digits.is_zero() => numeric_class::ZERO,
        Some(digits) if digits.negative => numeric_class::NEGATIVE,
        Some(_) => numeric_class::POSITIVE,
    };
    out.push(class);
    out.extend_from_slice(&(number.scale() as u16).to_be_bytes());
    let digits = number.decimal().unwrap_or_default();
    out.extend_from_slice(&(digits.weight as i16).to_be_bytes());
    for digit in &digits.digits {
        out.extend_from_slice(&digit.to_be_bytes());
    }
}

#[inline]
pub(crate) fn decode_numeric(bytes: &[u8]) -> Result<Numeric> {
    let mut reader = Reader::new(bytes);
    let class = reader.u8()?;
    let pair = |bytes: &[u8]| u16::from_be_bytes([bytes[0], bytes[1]]);
    let scale = pair(reader.take(2)?);
    let weight = pair(reader.take(2)?) as i16;
    let negative = match class {
        numeric_class::NEGATIVE_INFINITY => return Ok(Numeric::NEGATIVE_INFINITY),
        numeric_class::INFINITY => return Ok(Numeric::INFINITY),
        numeric_class::NAN => return Ok(Numeric::NAN),
        numeric_class::NEGATIVE => true,
        numeric_class::ZERO | numeric_class::POSITIVE => false,
        _ => return Err(Error::corrupted(format!("a numeric of class {class}"))),
    };
    let rest = reader.rest();
    if let Some(number) = decode_small(negative, scale, weight, rest) {
        return Ok(number);
    }
    let digits: Vec<u16> = rest.chunks_exact(2).map(pair).collect();
    if rest.len() % 2 != 0 || digits.iter().any(|digit| *digit >= 10_000) {
        return Err(Error::corrupted("the digits of a numeric"));
    }
    Numeric::from_decimal(super::numeric::Decimal {
        negative,
        weight: i32::from(weight),
        scale: i32::from(scale),
        digits,
    })
    .map_err(|_| Error::corrupted("a numeric out of range"))
}

/// The digits of most numbers there are: few enough for a machine word, so that they need no memory.
/// None where they are not, or are not as [`encode_numeric`] writes them.
#[inline]
fn decode_small(negative: bool, scale: u16, weight: i16, digits: &[u8]) -> Option<Numeric> {
    const DIGITS_MAX: usize = 4;
    let count = digits.len() / 2;
    if count > DIGITS_MAX || digits.len() % 2 != 0 || scale > SMALL_SCALE_MAX {
        return None;
    }
    let mut value = 0i64;
    for pair in digits.chunks_exact(2) {
        let digit = i64::from(u16::from_be_bytes([pair[0], pair[1]]));
        if digit >= 10_000 {
            return None;
        }
        // Below 10^16 after the last.
        value = value * 10_000 + digit;
    }
    // By how many places the point of the last digit stands off that of the scale.
    let shift = 4 * (i32::from(weight) + 1 - count as i32) + i32::from(scale);
    let value = match shift {
        _ if value == 0 => 0,
        0..=18 => value.checked_mul(POW10[shift as usize] as i64)?,
        // Of the last digit no more is shown.
        -3..=-1 => value / POW10[-shift as usize] as i64,
        _ => return None,
    };
    let value = if negative { -value } else { value };
    Some(Numeric(Repr::Small { value, scale }))
}

fn encode_element(kind: TypeId, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    if value.is_null() {
        put_varint(out, 0);
        return Ok(());
    }
    let mut bytes = Vec::new();
    encode_column(kind, NO_TYPMOD, value, &mut bytes)?;
    put_varint(out, 1);
    put_bytes(out, &bytes);
    Ok(())
}

fn decode_element(kind: TypeId, reader: &mut Reader<'_>) -> Result<Datum> {
    match reader.u8()? {
        0 => Ok(Datum::Null),
        _ => decode_column(kind, NO_TYPMOD, reader.bytes()?),
    }
}

fn encode_array(array: &Array, out: &mut Vec<u8>) -> Result<()> {
    put_varint(out, u64::from(array.element.0));
    put_varint(out, array.dimensions.len() as u64);
    for dimension in &array.dimensions {
        put_varint(out, dimension.len as u64);
        put_signed(out, i64::from(dimension.lower));
    }
    array
        .elements
        .iter()
        .try_for_each(|element| encode_element(array.element, element, out))
}

fn decode_array(bytes: &[u8]) -> Result<Array> {
    let mut reader = Reader::new(bytes);
    let element = TypeId(reader.varint_as()?);
    let count: usize = reader.varint_as()?;
    let mut dimensions = Vec::new();
    for _ in 0..count {
        dimensions.push(Dimension {
            len: reader.varint_as()?,
            lower: reader.signed()? as i32,
        });
    }
    let mut elements = Vec::new();
    while !reader.is_empty() {
        elements.push(decode_element(element, &mut reader)?);
    }
    Ok(Array {
        element,
        dimensions,
        elements,
    })
}

fn encode_ranges(element: TypeId, ranges: &[Range], out: &mut Vec<u8>) -> Result<()> {
    put_varint(out, u64::from(element.0));
    // Where values are no keys, no range of them is one, and nobody looks at it.
    out.push(key_kind(element).map_or(0, KeyKind::code));
    for range in ranges {
        let Some((lower, upper)) = range.bounds() else {
            out.push(range_flags::EMPTY);
            continue;
        };
        let flag = |is_set: bool, flag| if is_set { flag } else { 0 };
        out.push(
            flag(lower.inclusive, range_flags::LOWER_INCLUSIVE)
                | flag(upper.inclusive, range_flags::UPPER_INCLUSIVE)
                | flag(lower.value.is_none(), range_flags::LOWER_INFINITE)
                | flag(upper.value.is_none(), range_flags::UPPER_INFINITE),
        );
        for value in [&lower.value, &upper.value].into_iter().flatten() {
            let mut bytes = Vec::new();
            encode_column(element, NO_TYPMOD, value, &mut bytes)?;
            put_bytes(out, &bytes);
        }
    }
    Ok(())
}

fn decode_ranges(bytes: &[u8]) -> Result<(TypeId, Vec<Range>)> {
    let mut reader = Reader::new(bytes);
    let element = TypeId(reader.varint_as()?);
    let _key_kind = reader.u8()?;
    let mut ranges = Vec::new();
    while !reader.is_empty() {
        let flags = reader.u8()?;
        if flags & range_flags::EMPTY != 0 {
            ranges.push(Range::empty(element));
            continue;
        }
        let mut bound = |infinite: u8, inclusive: u8| -> Result<Bound> {
            Ok(match flags & infinite {
                0 => {
                    let value = decode_column(element, NO_TYPMOD, reader.bytes()?)?;
                    Bound::new(Some(value), flags & inclusive != 0)
                }
                _ => Bound::NONE,
            })
        };
        let lower = bound(range_flags::LOWER_INFINITE, range_flags::LOWER_INCLUSIVE)?;
        let upper = bound(range_flags::UPPER_INFINITE, range_flags::UPPER_INCLUSIVE)?;
        let range = Range::new(element, lower, upper);
        ranges.push(range.map_err(|_| Error::corrupted("the bounds of a range"))?);
    }
    Ok((element, ranges))
}

fn encode_record(record: &Record, out: &mut Vec<u8>) -> Result<()> {
    for (kind, value) in record.types.iter().zip(&record.values) {
        put_varint(out, u64::from(kind.0));
        encode_element(*kind, value, out)?;
    }
    Ok(())
}

fn decode_record(bytes: &[u8]) -> Result<Record> {
    let mut reader = Reader::new(bytes);
    let (mut types, mut values) = (Vec::new(), Vec::new());
    while !reader.is_empty() {
        let kind = TypeId(reader.varint_as()?);
        types.push(kind);
        values.push(decode_element(kind, &mut reader)?);
    }
    Ok(Record {
        types,
        values,
        names: None,
    })
}

/// Exactly `N` bytes.
#[inline]
fn fixed<const N: usize>(bytes: &[u8]) -> Result<[u8; N]> {
    bytes.try_into().map_err(|_| {
        Error::corrupted(format!(
            "a column of {} bytes where {N} are wanted",
            bytes.len()
        ))
    })
}

/// As [`decode_column`], in the place of another value, whose memory is used again if it fits and
/// nobody else has it.
///
/// # Errors
/// As [`decode_column`].
#[inline]
pub fn decode_column_into(
    kind: TypeId,
    typmod: i32,
    bytes: &[u8],
    place: &mut Datum,
) -> Result<()> {
    match kind {
        // What analytical queries read most.
        TypeId::NUMERIC => {
            *place = Datum::Numeric(decode_numeric(bytes)?);
            return Ok(());
        }
        TypeId::INT4 => {
            *place = Datum::Int4(i32::from_be_bytes(fixed(bytes)?));
            return Ok(());
        }
        TypeId::DATE => {
            *place = Datum::Date(i32::from_be_bytes(fixed(bytes)?));
            return Ok(());
        }
        _ => {}
    }
    if let Datum::Text(old) = &mut *place {
        let padding = match kind {
            TypeId::BPCHAR => padding(typmod, bytes),
            _ if kind.is_text_like() => Some(0),
            _ => None,
        };
        let is_as_long = padding.is_some_and(|padding| old.len() == bytes.len() + padding);
        // As `Arc::get_mut`, without the locked instruction that looks for weak references: there
        // are none to texts.
        if is_as_long && Arc::strong_count(old) == 1 {
            let text = checked_text(bytes)?;
            fence(Ordering::Acquire);
            let padding = old.len() - text.len();
            let old = Arc::as_ptr(old).cast::<u8>().cast_mut();
            // SAFETY: nobody else has it, and whoever had it is done with it. All of it is
            // replaced, by text that is as long, blanks included.
            unsafe {
                std::ptr::copy_nonoverlapping(text.as_ptr(), old, text.len());
                std::ptr::write_bytes(old.add(text.len()), b' ', padding);
            }
            return Ok(());
        }
    }
    *place = decode_column(kind, typmod, bytes)?;
    Ok(())
}

/// How many blanks pad a `character(n)`, if that needs no look at its characters.
#[inline]
fn padding(typmod: i32, bytes: &[u8]) -> Option<usize> {
    match character_length(typmod) {
        None => Some(0),
        Some(length) if bytes.is_ascii() => length.checked_sub(bytes.len()),
        Some(_) => None,
    }
}

/// A `character(n)`, with the blanks that are not stored.
fn padded(typmod: i32, bytes: &[u8]) -> Result<Datum> {
    /// Longer ones are made of two pieces of memory.
    const SHORT_MAX: usize = 64;
    match padding(typmod, bytes) {
        Some(0) => Ok(Datum::text(checked_text(bytes)?)),
        Some(more) if bytes.len() + more <= SHORT_MAX => {
            let mut short = [b' '; SHORT_MAX];
            short[..bytes.len()].copy_from_slice(bytes);
            Ok(Datum::text(checked_text(&short[..bytes.len() + more])?))
        }
        _ => {
            let value = Datum::text(checked_text(bytes)?);
            apply_typmod(TypeId::BPCHAR, typmod, value, true)
        }
    }
}

#[inline]
fn checked_text(bytes: &[u8]) -> Result<&str> {
    if bytes.is_ascii() {
        // SAFETY: ASCII is UTF-8.
        return Ok(unsafe { std::str::from_utf8_unchecked(bytes) });
    }
    std::str::from_utf8(bytes).map_err(|_| Error::corrupted("a column of text is not UTF-8"))
}

/// The value of column bytes. The modifier pads `character(n)`, which is stored without padding.
///
/// # Errors
/// XX001 when they are no such value.
pub fn decode_column(kind: TypeId, typmod: i32, bytes: &[u8]) -> Result<Datum> {
    Ok(match kind {
        TypeId::BOOL => Datum::Bool(fixed::<1>(bytes)?[0] != 0),
        TypeId::INT2 => Datum::Int2(i16::from_be_bytes(fixed(bytes)?)),
        TypeId::INT4 => Datum::Int4(i32::from_be_bytes(fixed(bytes)?)),
        TypeId::INT8 => Datum::Int8(i64::from_be_bytes(fixed(bytes)?)),
        TypeId::MONEY => Datum::Money(i64::from_be_bytes(fixed(bytes)?)),
        TypeId::DATE => Datum::Date(i32::from_be_bytes(fixed(bytes)?)),
        TypeId::TIME => Datum::Time(i64::from_be_bytes(fixed(bytes)?)),
        TypeId::TIMESTAMP => Datum::Timestamp(i64::from_be_bytes(fixed(bytes)?)),
        TypeId::TIMESTAMPTZ => Datum::TimestampTz(i64::from_be_bytes(fixed(bytes)?)),
        TypeId::FLOAT4 => Datum::Float4(f32::from_be_bytes(fixed(bytes)?)),
        TypeId::FLOAT8 => Datum::Float8(f64::from_be_bytes(fixed(bytes)?)),
        TypeId::NUMERIC => Datum::Numeric(decode_numeric(bytes)?),
        TypeId::BYTEA | TypeId::PG_MCV_LIST => Datum::bytea(bytes),
        TypeId::JSONB => Datum::Jsonb(Arc::from(bytes)),
        TypeId::HSTORE => Datum::Hstore(Arc::from(bytes)),
        _ if kind.is_vector() => super::vectors::of_column(kind, bytes)?,
        TypeId::TSVECTOR => Datum::TsVector(Arc::from(bytes)),
        TypeId::TSQUERY => Datum::TsQuery(Arc::from(bytes)),
        TypeId::CHAR => Datum::Char(fixed::<1>(bytes)?[0]),
        TypeId::UUID => Datum::Uuid(fixed(bytes)?),
        TypeId::TIMETZ => {
            let bytes: [u8; 12] = fixed(bytes)?;
            let utc = (u64::from_be_bytes(fixed(&bytes[..8])?) ^ 1 << 63) as i64;
            let zone = (u32::from_be_bytes(fixed(&bytes[8..])?) ^ 1 << 31) as i32;
            Datum::TimeTz(utc - i64::from(zone) * 1_000_000, zone)
        }
        TypeId::INTERVAL => {
            let bytes: [u8; 16] = fixed(bytes)?;
            Datum::Interval(Interval {
                months: i32::from_be_bytes(fixed(&bytes[..4])?),
                days: i32::from_be_bytes(fixed(&bytes[4..8])?),
                micros: i64::from_be_bytes(fixed(&bytes[8..])?),
            })
        }
        TypeId::INET | TypeId::CIDR => Datum::Network(Network::from_bytes(bytes)?),
        TypeId::BIT | TypeId::VARBIT => bits::datum(Bits::from_column(bytes)?),
        _ if kind.is_geometric() => geometry::decode(kind, bytes)?,
        TypeId::PG_LSN | TypeId::XID8 | TypeId::TID | TypeId::MACADDR | TypeId::MACADDR8 => {
            Datum::Unsigned8(u64::from_be_bytes(fixed(bytes)?))
        }
        _ if kind.is_oid_like() => Datum::Oid(u32::from_be_bytes(fixed(bytes)?)),
        _ if kind.is_enum() => Datum::Unsigned8(u64::from_be_bytes(fixed(bytes)?)),
        TypeId::BPCHAR => padded(typmod, bytes)?,
        _ if kind.is_text_like() => Datum::text(checked_text(bytes)?),
        _ if kind == TypeId::RECORD || kind.is_composite() => {
            Datum::Record(Arc::new(decode_record(bytes)?))
        }
        _ if kind.is_range() => {
            let (_, mut ranges) = decode_ranges(bytes)?;
            match (ranges.pop(), ranges.is_empty()) {
                (Some(range), true) => Datum::Range(Arc::new(range)),
                _ => return Err(Error::corrupted("a range that is not one")),
            }
        }
        _ if kind.is_multirange() => {
            let (element, ranges) = decode_ranges(bytes)?;
            Datum::Multirange(Arc::new(Multirange::new(element, ranges)?))
        }
        _ => Datum::Array(Arc::new(decode_array(bytes)?)),
    })
}

/// How the value of column bytes, which is not NULL, is ordered beside another one, of the same type
/// or, of integers, of another width: as [`super::compare`] says of both, without making it. None if
/// that does not tell.
#[inline]
pub fn compare_column(kind: TypeId, bytes: &[u8], value: &Datum) -> Option<std::cmp::Ordering> {
    Some(match (kind, value) {
        (TypeId::DATE, Datum::Date(value)) => i32::from_be_bytes(fixed(bytes).ok()?).cmp(value),
        (TypeId::NUMERIC, Datum::Numeric(value)) => decode_numeric(bytes).ok()?.cmp(value),
        (TypeId::INT4, value) => {
            i64::from(i32::from_be_bytes(fixed(bytes).ok()?)).cmp(&value.as_i64()?)
        }
        (TypeId::INT8, value) => i64::from_be_bytes(fixed(bytes).ok()?).cmp(&value.as_i64()?),
        (TypeId::INT2, value) => {
            i64::from(i16::from_be_bytes(fixed(bytes).ok()?)).cmp(&value.as_i64()?)
        }
        (TypeId::TIMESTAMP, Datum::Timestamp(value))
        | (TypeId::TIMESTAMPTZ, Datum::TimestampTz(value)) => {
            i64::from_be_bytes(fixed(bytes).ok()?).cmp(value)
        }
        (TypeId::DATE, Datum::Timestamp(value)) => {
            let days = i32::from_be_bytes(fixed(bytes).ok()?);
            // Infinities lie beyond all others, and there are moments beyond which no day begins.
            let midnight = match days {
                date::INFINITY => i128::from(timestamp::INFINITY),
                date::NEGATIVE_INFINITY => i128::from(timestamp::NEGATIVE_INFINITY),
                _ if matches!(*value, timestamp::INFINITY | timestamp::NEGATIVE_INFINITY) => 0,
                days => i128::from(days) * 86_400_000_000,
            };
            midnight.cmp(&i128::from(*value))
        }
        (TypeId::BPCHAR, Datum::Text(value)) => {
            let bare = |bytes: &'_ [u8]| {
                bytes
                    .iter()
                    .rposition(|byte| *byte != b' ')
                    .map_or(0, |last| last + 1)
            };
            let value = value.as_bytes();
            bytes[..bare(bytes)].cmp(&value[..bare(value)])
        }
        (TypeId::TEXT | TypeId::VARCHAR, Datum::Text(value)) => bytes.cmp(value.as_bytes()),
        _ => return None,
    })
}

/// As [`compare_column`], of two columns of one type.
#[inline]
pub fn compare_columns(kind: TypeId, a: &[u8], b: &[u8]) -> Option<std::cmp::Ordering> {
    Some(match kind {
        TypeId::DATE | TypeId::INT4 => {
            i32::from_be_bytes(fixed(a).ok()?).cmp(&i32::from_be_bytes(fixed(b).ok()?))
        }
        TypeId::INT8 | TypeId::TIMESTAMP | TypeId::TIMESTAMPTZ => {
            i64::from_be_bytes(fixed(a).ok()?).cmp(&i64::from_be_bytes(fixed(b).ok()?))
        }
        TypeId::NUMERIC => decode_numeric(a).ok()?.cmp(&decode_numeric(b).ok()?),
        TypeId::TEXT | TypeId::VARCHAR => a.cmp(b),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values that take one another's place: none is changed that somebody else has.
    #[test]
    fn the_memory_of_a_text_is_used_again_only_if_nobody_else_has_it() {
        let mut place = Datum::Null;
        let mut kept = Vec::new();
        let texts = ["abc", "xyz", "grün", "", "späte", "abc"];
        for (number, text) in texts.iter().enumerate() {
            for bytes in [*text, "xyz", text] {
                let (kind, bytes) = (TypeId::TEXT, bytes.as_bytes());
                decode_column_into(kind, NO_TYPMOD, bytes, &mut place).unwrap();
            }
            assert_eq!(place, Datum::text(text));
            if number % 2 == 0 {
                kept.push((*text, place.clone()));
            }
        }
        for (text, value) in kept {
            assert_eq!(value, Datum::text(text));
        }
        let bad = decode_column_into(TypeId::TEXT, NO_TYPMOD, b"a\xff\xff", &mut place);
        assert!(bad.is_err());
        assert_eq!(place, Datum::text("abc"));
        decode_column_into(TypeId::BPCHAR, 4 + 5, b"abc", &mut place).unwrap();
        assert_eq!(place, Datum::text("abc  "));
        decode_column_into(TypeId::INT4, NO_TYPMOD, &7i32.to_be_bytes(), &mut place).unwrap();
        assert_eq!(place, Datum::Int4(7));
    }

    const NUMBERS: [&str; 20] = [
        "0",
        "0.00",
        "1",
        "-1",
        "0.05",
        "-0.0500",
        "100",
        "100.00",
        "10000",
        "12345.67",
        "10000.5",
        "99999999999999.99",
        "-0.000000000000000001",
        "0.00010000",
        "9223372036854775807",
        "9223372036854775808",
        "1e20",
        "1234567890123456789.123456789",
        "NaN",
        "-Infinity",
    ];

    #[test]
    fn numbers_are_the_same_by_few_digits_and_by_all() {
        for text in NUMBERS {
            let number = Numeric::parse(text).unwrap();
            let mut bytes = Vec::new();
            encode_numeric(&number, &mut bytes);
            let read = decode_numeric(&bytes).unwrap();
            assert_eq!(Datum::Numeric(read.clone()), Datum::Numeric(number.clone()));
            assert_eq!(read.to_string(), number.to_string());
        }
    }

    #[test]
    fn stored_bytes_compare_as_their_values_do() {
        let numbers = NUMBERS.map(|text| Datum::Numeric(Numeric::parse(text).unwrap()));
        let texts = ["", "a", "a  ", "ab", "a b", "ä", "b", "z"].map(Datum::text);
        let days = [i32::MIN, -1, 0, 7, i32::MAX].map(Datum::Date);
        let integers = [i32::MIN, -1, 0, 7, i32::MAX].map(Datum::Int4);
        let moments = [i64::MIN, -1, 0, 7, i64::MAX].map(Datum::Timestamp);
        let kinds: [(TypeId, i32, &[Datum]); 7] = [
            (TypeId::NUMERIC, NO_TYPMOD, &numbers),
            (TypeId::TEXT, NO_TYPMOD, &texts),
            (TypeId::BPCHAR, 4 + 8, &texts),
            (TypeId::BPCHAR, NO_TYPMOD, &texts),
            (TypeId::DATE, NO_TYPMOD, &days),
            (TypeId::INT4, NO_TYPMOD, &integers),
            (TypeId::TIMESTAMP, NO_TYPMOD, &moments),
        ];
        for (kind, typmod, values) in kinds {
            for a in values {
                let mut bytes = Vec::new();
                encode_column(kind, typmod, a, &mut bytes).unwrap();
                let read = decode_column(kind, typmod, &bytes).unwrap();
                for b in values {
                    let order = compare_column(kind, &bytes, b);
                    assert_eq!(
                        order,
                        Some(super::super::compare(kind, &read, b)),
                        "{a:?} {b:?}"
                    );
                }
            }
        }
        let short = Datum::Int2(7);
        let order = compare_column(TypeId::INT4, &7i32.to_be_bytes(), &short);
        assert_eq!(order, Some(std::cmp::Ordering::Equal));
        assert_eq!(
            compare_column(TypeId::UUID, &[0; 16], &Datum::Uuid([0; 16])),
            None
        );
    }

    #[test]
    fn padding_comes_back_whatever_stood_in_the_place() {
        for text in ["", "a", "abc", "abcdefgh", "ä", "x"] {
            for before in [
                Datum::Null,
                Datum::text("12345678"),
                Datum::text("1234"),
                Datum::Bool(true),
            ] {
                let mut place = before;
                decode_column_into(TypeId::BPCHAR, 4 + 8, text.as_bytes(), &mut place).unwrap();
                assert_eq!(place, Datum::text(format!("{text:<8}")));
            }
        }
        let long = decode_column(TypeId::BPCHAR, 4 + 200, b"a").unwrap();
        assert_eq!(long, Datum::text(format!("{:<200}", "a")));
        assert_eq!(
            decode_column(TypeId::BPCHAR, NO_TYPMOD, b"a ").unwrap(),
            Datum::text("a ")
        );
    }
}
