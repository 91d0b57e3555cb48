//! Binary forms of the extended protocol.
//!
//! Source: PostgreSQL 15 manual, section 55.7, and the send functions' answers to COPY BINARY.

use std::borrow::Cow;
use std::sync::Arc;

use base::coro;
use base::error::{Error, Result, SqlState};
use base::key::range_flags;

use super::datetime::{calendar, date, timestamp, zone, DAY};
use super::encoding::Encoding;
use super::typmod::apply_typmod;
use super::{
    bits, geometry, hstore, json, ltree, network, row_of, search, vectors, Array, Bound, Datum,
    Dimension, EvalContext, Interval, Multirange, Numeric, Range, TypeId, NO_TYPMOD,
};

/// The number of dimensions that is taken for nonsense.
const DIMENSIONS_MAX: i32 = 6;

fn bad(what: &str) -> Error {
    Error::new(SqlState::INVALID_BINARY_REPRESENTATION, what)
}

/// Appends the binary form of a value that is not NULL.
///
/// # Errors
/// 0A000 for records.
pub fn send(context: &EvalContext, kind: TypeId, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    match value {
        Datum::Numeric(number) => send_numeric(number, out),
        Datum::Text(text) => {
            let versioned = [
                TypeId::JSONPATH,
                TypeId::LTREE,
                TypeId::LQUERY,
                TypeId::LTXTQUERY,
            ];
            if versioned.contains(&kind) {
                out.push(json::WIRE_VERSION);
            }
            context.encoding.encode_onto(text, out)?;
        }
        Datum::Jsonb(value) => {
            let mut text = String::new();
            json::write(base::jsonb::Value(value), &mut text)?;
            out.push(json::WIRE_VERSION);
            context.encoding.encode_onto(&text, out)?;
        }
        Datum::Hstore(value) => hstore::send(context.encoding, value, out)?,
        Datum::Vector(value) => vectors::send(kind, value, out)?,
        Datum::TsVector(value) => search::vector::send(value, out)?,
        Datum::TimeTz(micros, zone) => {
            out.extend_from_slice(&micros.to_be_bytes());
            out.extend_from_slice(&zone.to_be_bytes());
        }
        Datum::Interval(v) => {
            out.extend_from_slice(&v.micros.to_be_bytes());
            out.extend_from_slice(&v.days.to_be_bytes());
            out.extend_from_slice(&v.months.to_be_bytes());
        }
        Datum::Unsigned8(place) if kind.is_enum() => {
            let label = context.enum_label(kind, *place)?;
            context.encoding.encode_onto(label, out)?;
        }
        Datum::Unsigned8(mac) if kind == TypeId::MACADDR => {
            out.extend_from_slice(&mac.to_be_bytes()[2..]);
        }
        Datum::Network(value) => network::send(kind, value, out),
        Datum::Bits(bits) => {
            out.extend_from_slice(&(bits.len() as i32).to_be_bytes());
            out.extend_from_slice(bits.bytes());
        }
        Datum::Unsigned8(tid) if kind == TypeId::TID => {
            out.extend_from_slice(&((tid >> 16) as u32).to_be_bytes());
            out.extend_from_slice(&(*tid as u16).to_be_bytes());
        }
        Datum::Array(array) => send_array(context, array, out)?,
        Datum::Range(range) => send_range(context, range, out)?,
        Datum::Multirange(multirange) => {
            out.extend_from_slice(&(multirange.ranges().len() as u32).to_be_bytes());
            for range in multirange.ranges() {
                coro::work(RANGE_WORK)?;
                let mark = out.len();
                out.extend_from_slice(&[0; 4]);
                send_range(context, range, out)?;
                put_len(out, mark);
            }
        }
        Datum::Record(record) => {
            out.extend_from_slice(&(record.values.len() as i32).to_be_bytes());
            for (kind, value) in record.types.iter().zip(&record.values) {
                out.extend_from_slice(&kind.0.to_be_bytes());
                send_element(context, *kind, value, out)?;
            }
        }
        Datum::Null | Datum::Void => {}
        // All others are sent as they are stored.
        _ => super::encode_column(kind, NO_TYPMOD, value, out)?,
    }
    Ok(())
}

fn send_element(
    context: &EvalContext,
    kind: TypeId,
    value: &Datum,
    out: &mut Vec<u8>,
) -> Result<()> {
    if value.is_null() {
        out.extend_from_slice(&(-1i32).to_be_bytes());
        return Ok(());
    }
    let mark = out.len();
    out.extend_from_slice(&[0; 4]);
    send(context, kind, value, out)?;
    put_len(out, mark);
    Ok(())
}

/// Puts the length of what was appended since `mark` into the four bytes that stand there.
fn put_len(out: &mut [u8], mark: usize) {
    let len = (out.len() - mark - 4) as i32;
    out[mark..mark + 4].copy_from_slice(&len.to_be_bytes());
}

/// What a range counts for, in the units of [`coro::work`].
const RANGE_WORK: usize = 64;

fn send_range(context: &EvalContext, range: &Range, out: &mut Vec<u8>) -> Result<()> {
    let Some((lower, upper)) = range.bounds() else {
        out.push(range_flags::EMPTY);
        return Ok(());
    };
    let flag = |is_set: bool, flag| if is_set { flag } else { 0 };
    out.push(
        flag(lower.inclusive, range_flags::LOWER_INCLUSIVE)
            | flag(upper.inclusive, range_flags::UPPER_INCLUSIVE)
            | flag(lower.value.is_none(), range_flags::LOWER_INFINITE)
            | flag(upper.value.is_none(), range_flags::UPPER_INFINITE),
    );
    [&lower.value, &upper.value]
        .into_iter()
        .flatten()
        .try_for_each(|value| send_element(context, range.element(), value, out))
}

fn receive_range(context: &EvalContext, kind: TypeId, bytes: &[u8]) -> Result<Range> {
    let element = kind.range_element().unwrap_or(TypeId::NONE);
    let mut message = Message(bytes);
    let flags = message.take(1)?[0];
    let mut bound = |infinite: u8, inclusive: u8| -> Result<Bound> {
        if flags & (range_flags::EMPTY | infinite) != 0 {
            return Ok(Bound::NONE);
        }
        let len = usize::try_from(message.int4()?);
        let bytes = message.take(len.map_err(|_| bad("incorrect binary data format"))?)?;
        let value = receive(context, element, NO_TYPMOD, bytes)?;
        Ok(Bound::new(Some(value), flags & inclusive != 0))
    };
    let lower = bound(range_flags::LOWER_INFINITE, range_flags::LOWER_INCLUSIVE)?;
    let upper = bound(range_flags::UPPER_INFINITE, range_flags::UPPER_INCLUSIVE)?;
    if !message.0.is_empty() {
        return Err(bad("incorrect binary data format"));
    }
    match flags & range_flags::EMPTY {
        0 => Range::of(kind, lower, upper),
        _ => Ok(Range::empty(element)),
    }
}

fn receive_bits(bytes: &[u8]) -> Result<Datum> {
    let mut message = Message(bytes);
    let len = message.int4()?;
    let len = usize::try_from(len).map_err(|_| bad("invalid length in external bit string"))?;
    let bytes = message.take(len.div_ceil(8))?;
    match message.0.is_empty() {
        true => Ok(bits::datum(bits::Bits::new(len, bytes.to_vec()))),
        false => Err(bad("incorrect binary data format")),
    }
}

fn receive_multirange(context: &EvalContext, range: TypeId, bytes: &[u8]) -> Result<Datum> {
    let mut message = Message(bytes);
    let count = message.int4()? as u32;
    let mut ranges = Vec::new();
    for _ in 0..count {
        coro::work(RANGE_WORK)?;
        let len = usize::try_from(message.int4()?);
        let bytes = message.take(len.map_err(|_| bad("incorrect binary data format"))?)?;
        ranges.push(receive_range(context, range, bytes)?);
    }
    match message.0.is_empty() {
        true => {
            let element = range.range_element().unwrap_or(TypeId::NONE);
            let made = Multirange::new(element, ranges)?;
            Ok(Datum::Multirange(Arc::new(made)))
        }
        false => Err(bad("incorrect binary data format")),
    }
}

fn send_array(context: &EvalContext, array: &Array, out: &mut Vec<u8>) -> Result<()> {
    let nulls = array.elements.iter().any(Datum::is_null);
    out.extend_from_slice(&(array.dimensions.len() as i32).to_be_bytes());
    out.extend_from_slice(&i32::from(nulls).to_be_bytes());
    out.extend_from_slice(&array.element.0.to_be_bytes());
    for dimension in &array.dimensions {
        out.extend_from_slice(&dimension.len.to_be_bytes());
        out.extend_from_slice(&dimension.lower.to_be_bytes());
    }
    array
        .elements
        .iter()
        .try_for_each(|element| send_element(context, array.element, element, out))
}

fn send_numeric(number: &Numeric, out: &mut Vec<u8>) {
    let digits = number.decimal().unwrap_or_default();
    let sign: u16 = match number.decimal() {
        None if number.is_nan() => 0xc000,
        None if number.is_negative() => 0xf000,
        None => 0xd000,
        Some(digits) if digits.negative => 0x4000,
        Some(_) => 0,
    };
    out.extend_from_slice(&(digits.digits.len() as u16).to_be_bytes());
    out.extend_from_slice(&(digits.weight as i16).to_be_bytes());
    out.extend_from_slice(&sign.to_be_bytes());
    out.extend_from_slice(&(number.scale() as u16).to_be_bytes());
    for digit in &digits.digits {
        out.extend_from_slice(&digit.to_be_bytes());
    }
}

fn receive_numeric(bytes: &[u8]) -> Result<Numeric> {
    let pairs: Vec<u16> = bytes
        .chunks_exact(2)
        .map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
        .collect();
    let [count, weight, sign, scale, digits @ ..] = &pairs[..] else {
        return Err(Error::new(
            SqlState::PROTOCOL_VIOLATION,
            "insufficient data left in message",
        ));
    };
    if bytes.len() % 2 != 0 || digits.len() != usize::from(*count) {
        return Err(bad("incorrect binary data format"));
    }
    match *sign {
        0 | 0x4000 => {}
        0xc000 => return Ok(Numeric::NAN),
        0xd000 => return Ok(Numeric::INFINITY),
        0xf000 => return Ok(Numeric::NEGATIVE_INFINITY),
        _ => return Err(bad("invalid sign in external \"numeric\" value")),
    }
    if i32::from(*scale) > super::numeric::SCALE_MAX {
        return Err(bad("invalid scale in external \"numeric\" value"));
    }
    if digits.iter().any(|digit| *digit >= 10_000) {
        return Err(bad("invalid digit in external \"numeric\" value"));
    }
    let mut decimal = super::numeric::Decimal {
        negative: *sign == 0x4000,
        weight: i32::from(*weight as i16),
        scale: i32::from(*scale),
        digits: digits.to_vec(),
    };
    decimal.strip();
    decimal.truncate(i32::from(*scale));
    Numeric::from_decimal(decimal)
}

/// Takes values off the front of a message.
struct Message<'a>(&'a [u8]);

impl<'a> Message<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        if len > self.0.len() {
            return Err(Error::new(
                SqlState::PROTOCOL_VIOLATION,
                "insufficient data left in message",
            ));
        }
        let (head, tail) = self.0.split_at(len);
        self.0 = tail;
        Ok(head)
    }

    fn int4(&mut self) -> Result<i32> {
        let bytes = self.take(4)?;
        Ok(i32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    fn int8(&mut self) -> Result<i64> {
        let (high, low) = (self.int4()?, self.int4()?);
        Ok(i64::from(high) << 32 | i64::from(low as u32))
    }
}

fn receive_array(
    context: &EvalContext,
    element: TypeId,
    typmod: i32,
    message: &mut Message<'_>,
) -> Result<Datum> {
    let count = message.int4()?;
    let _nulls = message.int4()?;
    let sent = TypeId(message.int4()? as u32);
    if !(0..=DIMENSIONS_MAX).contains(&count) {
        return Err(bad(&format!("invalid number of dimensions: {count}")));
    }
    if sent != element {
        return Err(Error::new(
            SqlState::DATATYPE_MISMATCH,
            format!(
                "binary data has array element type {} ({sent}) instead of expected {} ({element})",
                sent.0, element.0
            ),
        ));
    }
    let mut dimensions = Vec::new();
    let mut total = if count == 0 { 0usize } else { 1 };
    for _ in 0..count {
        let (len, lower) = (message.int4()?, message.int4()?);
        total = usize::try_from(len)
            .ok()
            .and_then(|len| total.checked_mul(len))
            .ok_or_else(|| bad("invalid array dimensions"))?;
        dimensions.push(Dimension { len, lower });
    }
    let mut elements = Vec::new();
    for _ in 0..total {
        let len = message.int4()?;
        elements.push(match usize::try_from(len) {
            Err(_) => Datum::Null,
            Ok(len) => receive(context, element, typmod, message.take(len)?)?,
        });
    }
    if total == 0 {
        dimensions.clear();
    }
    Ok(Datum::Array(Arc::new(Array {
        element,
        dimensions,
        elements,
    })))
}

/// Reads the binary form of a value; the modifier is enforced as by an assignment.
///
/// # Errors
/// 22P03, 22021, 08P01.
pub fn receive(context: &EvalContext, kind: TypeId, typmod: i32, bytes: &[u8]) -> Result<Datum> {
    let text = |bytes| receive_text(context.encoding, bytes);
    let value = match kind {
        TypeId::NUMERIC => Datum::Numeric(receive_numeric(bytes)?),
        TypeId::JSON => json::input_json(&text(bytes)?)?,
        TypeId::JSONB => json::input_jsonb(&text(json::versioned("jsonb", bytes)?)?)?,
        TypeId::JSONPATH => json::path::input(&text(json::versioned("jsonpath", bytes)?)?)?,
        TypeId::HSTORE => hstore::receive(bytes, text)?,
        TypeId::LTREE => ltree::input(&text(json::versioned("ltree", bytes)?)?)?,
        TypeId::LQUERY => ltree::input_lquery(&text(json::versioned("lquery", bytes)?)?)?,
        TypeId::LTXTQUERY => ltree::input_ltxtquery(&text(json::versioned("ltxtquery", bytes)?)?)?,
        _ if kind.is_vector() => vectors::receive(kind, bytes)?,
        TypeId::TSVECTOR => search::vector::receive(bytes)?,
        TypeId::TSQUERY => search::query::receive(bytes)?,
        _ if kind.is_text_like() => Datum::text(&text(bytes)?),
        _ if kind.is_enum() => Datum::Unsigned8(context.enum_place(kind, &text(bytes)?)?),
        _ if kind.is_of_domain() => {
            let (base, typmod) = context.base_type(kind)?;
            return receive(context, base, typmod, bytes);
        }
        TypeId::BYTEA => Datum::bytea(bytes),
        TypeId::TIMETZ | TypeId::INTERVAL | TypeId::TID => receive_parts(kind, bytes)?,
        TypeId::RECORD => {
            let message = "input of anonymous composite types is not implemented";
            return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        _ if kind.is_composite() => return receive_row(context, kind, bytes),
        TypeId::INET | TypeId::CIDR => {
            return network::receive(kind, bytes).map(Datum::Network);
        }
        TypeId::MACADDR if bytes.len() == 6 => {
            let mac = bytes
                .iter()
                .fold(0, |all, byte| all << 8 | u64::from(*byte));
            return Ok(Datum::Unsigned8(mac));
        }
        TypeId::BIT | TypeId::VARBIT => receive_bits(bytes)?,
        _ if kind.is_geometric() => return geometry::receive(kind, bytes),
        _ if kind.is_range() => {
            return receive_range(context, kind, bytes).map(super::range::datum);
        }
        _ if kind.is_multirange() => {
            let range = kind.multirange_range().unwrap_or(TypeId::NONE);
            return receive_multirange(context, range, bytes);
        }
        _ if kind.array_element().is_some() => {
            let mut message = Message(bytes);
            let element = kind.array_element().unwrap_or(TypeId::NONE);
            let array = receive_array(context, element, typmod, &mut message)?;
            return match message.0.is_empty() {
                true => Ok(array),
                false => Err(bad("incorrect binary data format")),
            };
        }
        // All others are sent as they are stored.
        _ => {
            let want = usize::try_from(kind.len()).unwrap_or(0);
            if bytes.len() != want {
                return Err(match bytes.len() < want {
                    true => Error::new(
                        SqlState::PROTOCOL_VIOLATION,
                        "insufficient data left in message",
                    ),
                    false => bad("incorrect binary data format"),
                });
            }
            super::decode_column(kind, typmod, bytes)?
        }
    };
    check_moment(&value)?;
    apply_typmod(kind, typmod, value, false)
}

/// Whether a date or time from a client is one.
fn check_moment(value: &Datum) -> Result<()> {
    let (valid, what) = match value {
        Datum::Date(days) => {
            let valid = !date::is_finite(*days) || calendar::date_in_range(i64::from(*days));
            (valid, "date")
        }
        Datum::Timestamp(micros) | Datum::TimestampTz(micros) => {
            let valid = !timestamp::is_finite(*micros) || calendar::in_range(*micros);
            (valid, "timestamp")
        }
        Datum::Time(micros) => ((0..=DAY).contains(micros), "time"),
        Datum::TimeTz(micros, zone) => {
            let valid = (0..=DAY).contains(micros)
                && zone.unsigned_abs() <= zone::OFFSET_MAX.unsigned_abs();
            (valid, "time")
        }
        _ => (true, ""),
    };
    match valid {
        true => Ok(()),
        false => Err(Error::new(
            SqlState::DATETIME_FIELD_OVERFLOW,
            format!("{what} out of range"),
        )),
    }
}

/// Text of a message, without NUL, in the client's encoding.
///
/// # Errors
/// 22021; 22P05 for a character that UTF-8 has not.
pub fn receive_text(encoding: Encoding, bytes: &[u8]) -> Result<Cow<'_, str>> {
    match bytes.contains(&0) {
        true => Err(encoding.invalid(&[0])),
        false => encoding.decode(bytes),
    }
}

fn receive_parts(kind: TypeId, bytes: &[u8]) -> Result<Datum> {
    let mut message = Message(bytes);
    let value = match kind {
        TypeId::TIMETZ => Datum::TimeTz(message.int8()?, message.int4()?),
        TypeId::INTERVAL => {
            let micros = message.int8()?;
            let days = message.int4()?;
            let months = message.int4()?;
            Datum::Interval(Interval {
                months,
                days,
                micros,
            })
        }
        _ => {
            let block = message.int4()? as u32;
            let offset = message.take(2)?;
            let offset = u16::from_be_bytes([offset[0], offset[1]]);
            Datum::Unsigned8(u64::from(block) << 16 | u64::from(offset))
        }
    };
    match message.0.is_empty() {
        true => Ok(value),
        false => Err(bad("incorrect binary data format")),
    }
}

/// Reads the binary form of a row.
///
/// # Errors
/// 42804 where it has other columns than the type, 22P03 where a field is none.
fn receive_row(context: &EvalContext, kind: TypeId, bytes: &[u8]) -> Result<Datum> {
    coro::check_depth()?;
    let fields = context.fields_of_row(kind)?;
    let mismatch = |message: String| Error::new(SqlState::DATATYPE_MISMATCH, message);
    let mut rest = bytes;
    let mut number = || -> Result<i32> {
        let (head, tail) = rest.split_first_chunk::<4>().ok_or_else(|| {
            let message = "insufficient data left in message";
            Error::new(SqlState::PROTOCOL_VIOLATION, message)
        })?;
        rest = tail;
        Ok(i32::from_be_bytes(*head))
    };
    let count = number()?;
    if usize::try_from(count).ok() != Some(fields.len()) {
        let wanted = fields.len();
        return Err(mismatch(format!(
            "wrong number of columns: {count}, expected {wanted}"
        )));
    }
    let mut values = Vec::with_capacity(fields.len());
    let mut rest = &bytes[4..];
    for (field, place) in fields.iter().zip(1..) {
        let short = || {
            let message = "insufficient data left in message";
            Error::new(SqlState::PROTOCOL_VIOLATION, message)
        };
        let (head, tail) = rest.split_first_chunk::<8>().ok_or_else(short)?;
        let [a, b, c, d, lens @ ..] = *head;
        let (oid, len) = (u32::from_be_bytes([a, b, c, d]), i32::from_be_bytes(lens));
        if oid != field.kind.0 {
            return Err(mismatch(format!(
                "binary data has type {oid} ({}) instead of expected {} ({}) in record column {place}",
                TypeId(oid),
                field.kind.0,
                field.kind
            )));
        }
        rest = tail;
        let Ok(len) = usize::try_from(len) else {
            values.push(Datum::Null);
            continue;
        };
        let value = rest.get(..len).ok_or_else(short)?;
        rest = &rest[len..];
        values.push(receive(context, field.kind, field.typmod, value)?);
    }
    match rest.is_empty() {
        true => Ok(row_of(fields, values)),
        false => Err(Error::new(
            SqlState::INVALID_BINARY_REPRESENTATION,
            "incorrect binary data format",
        )),
    }
}
