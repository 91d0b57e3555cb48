//! Comparison of rows by their images: what they are made of, bit for bit, as PostgreSQL keeps it.
//!
//! ```text
//! row(1.0) =  row(1.00)      true
//! row(1.0) *= row(1.00)      false: the scales differ
//! row(-1)  *< row(1)         false: all bits of -1 are set
//! ```
//! NULLs are equal to one another and last.
//!
//! # What it leaves out
//! The order of images of arrays, ranges, rows, enums, `jsonb` and other types whose form there is another
//! (0A000); whether they are equal is known. The operator class `record_image_ops`.

use std::cmp::Ordering;
use std::ops::RangeInclusive;

use base::coro;
use base::error::{Error, Result};

use super::row_compare::by_field;
use super::Call;
use types::{Datum, EvalContext, TypeId};

/// The greatest scale, and the least and the greatest weight, of a number whose header is short.
const SHORT_SCALE_MAX: u16 = 63;
const SHORT_WEIGHTS: RangeInclusive<i16> = -64..=63;
/// The least sign of what is no finite number.
const SPECIAL: u16 = 0xc000;

/// The image of a value of that type, of which no other value has the same; whether images of the type are
/// in the order of their bytes.
fn image(context: &EvalContext, kind: TypeId, value: &Datum) -> Result<(Vec<u8>, bool)> {
    let whole = |number: i64| (number.to_be_bytes().to_vec(), true);
    Ok(match value {
        Datum::Bool(value) => whole(i64::from(*value)),
        Datum::Char(value) => whole(i64::from(*value)),
        Datum::Int2(value) => whole(i64::from(*value)),
        Datum::Int4(value) | Datum::Date(value) => whole(i64::from(*value)),
        Datum::Int8(value)
        | Datum::Time(value)
        | Datum::Timestamp(value)
        | Datum::TimestampTz(value)
        | Datum::Money(value) => whole(*value),
        Datum::Oid(value) => whole(i64::from(*value)),
        Datum::Float4(value) => whole(i64::from(value.to_bits() as i32)),
        Datum::Float8(value) => whole(value.to_bits() as i64),
        Datum::Unsigned8(value) if kind == TypeId::TID => {
            let parts = [(value >> 32) as u16, (value >> 16) as u16, *value as u16];
            (
                parts.iter().flat_map(|part| part.to_le_bytes()).collect(),
                true,
            )
        }
        Datum::Unsigned8(value) if !kind.is_enum() => (value.to_be_bytes().to_vec(), true),
        Datum::Text(value) => (value.as_bytes().to_vec(), true),
        Datum::Bytea(value) => (value.to_vec(), true),
        Datum::Uuid(value) => (value.to_vec(), true),
        Datum::Numeric(_) => (image_of_number(context, value)?, true),
        Datum::Interval(value) => {
            let mut image = value.micros.to_le_bytes().to_vec();
            image.extend(value.days.to_le_bytes());
            image.extend(value.months.to_le_bytes());
            (image, true)
        }
        Datum::TimeTz(micros, zone) => {
            let mut image = micros.to_le_bytes().to_vec();
            image.extend(zone.to_le_bytes());
            (image, true)
        }
        Datum::Bits(bits) => {
            let mut image = (bits.len() as i32).to_le_bytes().to_vec();
            image.extend(bits.bytes());
            (image, true)
        }
        Datum::Geometry(numbers) if !matches!(kind, TypeId::PATH | TypeId::POLYGON) => {
            let bytes = numbers.iter().flat_map(|number| number.to_le_bytes());
            (bytes.collect(), true)
        }
        Datum::Null
        | Datum::Void
        | Datum::Unsigned8(_)
        | Datum::Geometry(_)
        | Datum::Network(_)
        | Datum::Jsonb(_)
        | Datum::Hstore(_)
        | Datum::Vector(_)
        | Datum::TsVector(_)
        | Datum::TsQuery(_)
        | Datum::Array(_)
        | Datum::Record(_)
        | Datum::Range(_)
        | Datum::Multirange(_)
        | Datum::Long(_) => {
            let mut image = Vec::new();
            types::send(context, kind, value, &mut image)?;
            (image, false)
        }
    })
}

/// The image of a number, of what clients are sent for it.
fn image_of_number(context: &EvalContext, number: &Datum) -> Result<Vec<u8>> {
    let mut sent = Vec::new();
    types::send(context, TypeId::NUMERIC, number, &mut sent)?;
    let words = sent.chunks_exact(2);
    let words: Vec<u16> = words
        .map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
        .collect();
    let [_, weight, sign, scale, digits @ ..] = words.as_slice() else {
        return Err(Error::internal("a number without a header"));
    };
    let is_short = *scale <= SHORT_SCALE_MAX && SHORT_WEIGHTS.contains(&(*weight as i16));
    let header = match (*sign, is_short) {
        (SPECIAL.., _) => vec![*sign],
        (_, true) => vec![0x8000 | sign >> 1 | scale << 7 | weight & 0x7f],
        (_, false) => vec![sign | scale, *weight],
    };
    let all = header.iter().chain(digits);
    Ok(all.flat_map(|word| word.to_le_bytes()).collect())
}

/// # Errors
/// As [`by_field`]; 0A000 for an order that is asked for and not known.
fn order(call: &Call<'_>, args: &[Datum], is_asked: bool) -> Result<Ordering> {
    by_field(args, |kind, a, b| {
        if a.is_null() || b.is_null() {
            return Ok(a.is_null().cmp(&b.is_null()));
        }
        let (a, is_ordered) = image(call.context, kind, a)?;
        let (b, _) = image(call.context, kind, b)?;
        coro::work(a.len().min(b.len()))?;
        let order = a.cmp(&b);
        if is_asked && !is_ordered && order.is_ne() {
            let what = format!("the order of images of type {kind}");
            return Err(Error::unsupported(&what));
        }
        Ok(order)
    })
}

macro_rules! comparisons {
    ($($name:ident $is_asked:literal $test:expr;)*) => {
        $(pub(crate) fn $name(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
            order(call, args, $is_asked).map($test)
        })*
    };
}

comparisons! {
    eq false |order| Datum::Bool(order.is_eq());
    ne false |order| Datum::Bool(order.is_ne());
    lt true |order| Datum::Bool(order.is_lt());
    gt true |order| Datum::Bool(order.is_gt());
    le true |order| Datum::Bool(order.is_le());
    ge true |order| Datum::Bool(order.is_ge());
    cmp true |order| Datum::Int4(order as i32);
}
