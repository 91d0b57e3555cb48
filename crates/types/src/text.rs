//! Text forms of all types: what `'…'::type` reads and what is sent as text.

use std::fmt::Write;
use std::sync::Arc;

use base::error::{Error, Result, SqlState};

use super::datetime::{date, interval, time, timestamp};
use super::invalid::invalid;
use super::numeric::is_space;
use super::typmod::apply_typmod;
use super::{
    array, bits, float, geometry, hstore, json, ltree, money, network, range, search, vectors,
    Datum, EvalContext, Numeric, TypeId,
};

/// Bytes that a `name` has at most; longer ones are cut.
pub const NAME_BYTES_MAX: usize = 63;

/// A `"char"`: the first byte, or the one that a backslash and three octal digits write.
pub fn parse_char(text: &str) -> u8 {
    let octal = match text.as_bytes() {
        [b'\\', digits @ ..] if digits.len() == 3 => digits,
        _ => &[],
    };
    let is_octal = !octal.is_empty() && octal.iter().all(|c| (b'0'..=b'7').contains(c));
    match is_octal {
        true => octal
            .iter()
            .fold(0u8, |value, c| value.wrapping_mul(8).wrapping_add(c - b'0')),
        false => text.bytes().next().unwrap_or(0),
    }
}

/// Reads a value of a type; the modifier is enforced as by an assignment.
///
/// # Errors
/// 22P02 and its kin when the text is no such value.
pub fn input(context: &EvalContext, kind: TypeId, typmod: i32, text: &str) -> Result<Datum> {
    let value = match kind {
        TypeId::BOOL => Datum::Bool(parse_bool(text).ok_or_else(|| invalid(kind, text))?),
        TypeId::INT2 => Datum::Int2(parse_integer(kind, text)? as i16),
        TypeId::INT4 => Datum::Int4(parse_integer(kind, text)? as i32),
        TypeId::INT8 => Datum::Int8(parse_integer(kind, text)?),
        TypeId::FLOAT4 => Datum::Float4(float::parse_f32(text)?),
        TypeId::FLOAT8 => Datum::Float8(float::parse_f64(text)?),
        TypeId::NUMERIC => Datum::Numeric(Numeric::parse(text)?),
        TypeId::TEXT | TypeId::VARCHAR | TypeId::BPCHAR | TypeId::UNKNOWN | TypeId::CSTRING => {
            Datum::text(text)
        }
        TypeId::REFCURSOR => Datum::text(text),
        TypeId::NAME => Datum::text(truncate_name(text)),
        TypeId::CHAR => Datum::Char(parse_char(text)),
        TypeId::BYTEA => Datum::bytea(parse_bytea(text)?),
        TypeId::JSON => json::input_json(text)?,
        TypeId::JSONB => json::input_jsonb(text)?,
        TypeId::JSONPATH => json::path::input(text)?,
        TypeId::CITEXT => Datum::text(text),
        TypeId::HSTORE => hstore::input(text)?,
        TypeId::LTREE => ltree::input(text)?,
        TypeId::LQUERY => ltree::input_lquery(text)?,
        TypeId::LTXTQUERY => ltree::input_ltxtquery(text)?,
        _ if kind.is_vector() => vectors::input(kind, text)?,
        TypeId::TSVECTOR => search::vector::input(text)?,
        TypeId::TSQUERY => context.query_of(text, search::read::input(text)?),
        TypeId::UUID => Datum::Uuid(parse_uuid(text).ok_or_else(|| invalid(kind, text))?),
        TypeId::DATE => date::input(context, text)?,
        TypeId::TIME => time::input(context, typmod, text)?,
        TypeId::TIMETZ => time::input_tz(context, typmod, text)?,
        TypeId::TIMESTAMP => timestamp::input(context, typmod, text)?,
        TypeId::TIMESTAMPTZ => timestamp::input_tz(context, typmod, text)?,
        TypeId::INTERVAL => interval::input(context, typmod, text)?,
        TypeId::PG_LSN => Datum::Unsigned8(parse_lsn(text).ok_or_else(|| invalid(kind, text))?),
        TypeId::XID8 => Datum::Unsigned8(parse_unsigned(text)),
        TypeId::TID => Datum::Unsigned8(parse_tid(text).ok_or_else(|| invalid(kind, text))?),
        TypeId::ACLITEM => Datum::text(super::acl::AclItem::parse(context, text)?.text(context)),
        TypeId::INET | TypeId::CIDR => Datum::Network(network::parse(kind, text)?),
        TypeId::MACADDR | TypeId::MACADDR8 => network::parse_mac(kind, text)?,
        TypeId::BIT | TypeId::VARBIT => bits::datum(bits::parse(text)?),
        TypeId::MONEY => Datum::Money(money::parse(text)?),
        _ if kind.is_geometric() => geometry::input(kind, text)?,
        TypeId::XID | TypeId::CID => Datum::Oid(parse_unsigned(text) as u32),
        _ if kind.is_oid_like() => Datum::Oid(parse_oid(context, kind, text)?),
        _ if kind.is_enum() => Datum::Unsigned8(context.enum_place(kind, text)?),
        // Whether a value fits is asked where it is used.
        _ if kind.is_of_domain() => {
            let (base, typmod) = context.base_type(kind)?;
            return input(context, base, typmod, text);
        }
        TypeId::VOID => Datum::Void,
        TypeId::INT2VECTOR | TypeId::OIDVECTOR => array::parse_vector(context, kind, text)?,
        TypeId::RECORD => {
            let message = "input of anonymous composite types is not implemented";
            return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        _ if kind.is_composite() => return array::parse_row(context, kind, text),
        _ if kind.is_range() => {
            return array::parse_range(context, kind, text).map(range::datum);
        }
        _ if kind.is_multirange() => {
            let range = kind.multirange_range().unwrap_or(TypeId::NONE);
            let read = array::parse_multirange(context, range, text)?;
            return Ok(Datum::Multirange(Arc::new(read)));
        }
        _ => match kind.array_element() {
            Some(element) => return array::parse(context, element, typmod, text),
            None => {
                return Err(Error::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    format!("cannot accept a value of type {kind}"),
                ))
            }
        },
    };
    apply_typmod(kind, typmod, value, false)
}

/// The text form of a value that is not NULL.
///
/// # Errors
/// For instance 22008 for a timestamp out of range.
pub fn output(context: &EvalContext, kind: TypeId, value: &Datum) -> Result<String> {
    let mut out = String::new();
    write(context, kind, value, &mut out)?;
    Ok(out)
}

/// Appends the text form of a value; nothing for NULL.
///
/// # Errors
/// As [`output`].
pub fn write(context: &EvalContext, kind: TypeId, value: &Datum, out: &mut String) -> Result<()> {
    // Writing into a String cannot fail, so the results of `write!` say nothing.
    match value {
        Datum::Null | Datum::Void => {}
        Datum::Long(_) => return Err(Error::internal("a long value was not read")),
        Datum::Bool(v) => out.push(if *v { 't' } else { 'f' }),
        Datum::Int2(v) => put_integer(out, i64::from(*v)),
        Datum::Int4(v) => put_integer(out, i64::from(*v)),
        Datum::Int8(v) => put_integer(out, *v),
        Datum::Float4(v) => float::write_f32(*v, context.extra_float_digits, out),
        Datum::Float8(v) => float::write_f64(*v, context.extra_float_digits, out),
        Datum::Numeric(v) => {
            let _ = write!(out, "{v}");
        }
        Datum::Text(v) => out.push_str(v),
        Datum::Jsonb(v) => json::write(base::jsonb::Value(v), out)?,
        Datum::Hstore(v) => hstore::write(v, out)?,
        Datum::Vector(v) => vectors::write(kind, v, out)?,
        Datum::TsVector(v) => search::vector::write(v, out)?,
        Datum::TsQuery(v) => search::Query::decode(v)?.write(out),
        Datum::Bytea(v) => write_bytea(v, context.bytea_escape, out),
        Datum::Char(0) => {}
        Datum::Char(v) if v.is_ascii() => out.push(char::from(*v)),
        // Such a byte alone is no character.
        Datum::Char(v) => {
            let _ = write!(out, "\\{v:03o}");
        }
        Datum::Uuid(v) => write_uuid(v, out),
        Datum::Date(v) => date::write(context.date_style, *v, out),
        Datum::Time(v) => time::write(*v, out),
        Datum::TimeTz(v, zone) => time::write_tz(*v, *zone, out),
        Datum::Timestamp(v) => timestamp::write(context.date_style, *v, out)?,
        Datum::TimestampTz(v) => timestamp::write_tz(context, *v, out)?,
        Datum::Interval(v) => interval::write(context.interval_style, v, out),
        Datum::Oid(_) | Datum::Unsigned8(_) | Datum::Geometry(_) if kind.is_of_domain() => {
            return write(context, context.base_type(kind)?.0, value, out);
        }
        Datum::Oid(v) => write_oid(context, kind, *v, out),
        Datum::Unsigned8(v) if kind.is_enum() => out.push_str(context.enum_label(kind, *v)?),
        Datum::Unsigned8(v) => {
            let _ = match kind {
                TypeId::PG_LSN => write!(out, "{:X}/{:X}", v >> 32, v & 0xffff_ffff),
                TypeId::TID => write!(out, "({},{})", v >> 16, v & 0xffff),
                TypeId::MACADDR | TypeId::MACADDR8 => {
                    network::write_mac(kind, *v, out);
                    Ok(())
                }
                _ => write!(out, "{v}"),
            };
        }
        Datum::Array(v) if matches!(kind, TypeId::INT2VECTOR | TypeId::OIDVECTOR) => {
            for (index, element) in v.elements.iter().enumerate() {
                if index > 0 {
                    out.push(' ');
                }
                write(context, v.element, element, out)?;
            }
        }
        Datum::Array(v) => array::write(context, v, out)?,
        Datum::Record(v) => array::write_record(context, v, out)?,
        Datum::Geometry(v) => geometry::write(context, kind, v, out)?,
        Datum::Money(v) => money::write(*v, out),
        Datum::Network(v) => network::write(kind, v, out),
        Datum::Bits(v) => bits::write(v, out)?,
        Datum::Range(v) => array::write_range(context, v, out)?,
        Datum::Multirange(v) => array::write_multirange(context, v, out)?,
    }
    Ok(())
}

/// Appends an integer without going through the formatting machinery.
fn put_integer(out: &mut String, value: i64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.push('-');
    }
    out.push_str(std::str::from_utf8(&digits[at..]).unwrap_or_default());
}

/// An unambiguous beginning of true, false, yes, no, on, off, or 1 or 0.
pub fn parse_bool(text: &str) -> Option<bool> {
    let word = text.trim_matches(is_space).to_ascii_lowercase();
    match word.as_str() {
        "" | "o" => None,
        "1" => Some(true),
        "0" => Some(false),
        word if "true".starts_with(word) || "yes".starts_with(word) || word == "on" => Some(true),
        word if "false".starts_with(word) || "no".starts_with(word) => Some(false),
        word if "off".starts_with(word) => Some(false),
        _ => None,
    }
}

/// Reads a smallint, integer or bigint.
pub fn parse_integer(kind: TypeId, text: &str) -> Result<i64> {
    let body = text.trim_matches(is_space);
    let (negative, digits) = match body.as_bytes().first() {
        Some(b'-') => (true, &body[1..]),
        Some(b'+') => (false, &body[1..]),
        _ => (false, body),
    };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(invalid(kind, text));
    }
    let limit = match kind {
        TypeId::INT2 => i128::from(i16::MAX),
        TypeId::INT4 => i128::from(i32::MAX),
        _ => i128::from(i64::MAX),
    };
    let digits = digits.trim_start_matches('0');
    // More than 20 digits are out of every range.
    let magnitude = match digits.len() {
        0 => 0,
        1..=20 => digits.parse::<i128>().unwrap_or(i128::MAX),
        _ => i128::MAX,
    };
    if magnitude > limit + i128::from(negative) {
        return Err(Error::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            format!("value \"{text}\" is out of range for type {kind}"),
        ));
    }
    Ok(if negative { -magnitude } else { magnitude } as i64)
}

/// As C's `strtoul` reads it: signs, hexadecimal after `0x`, octal after `0`; nonsense is 0.
fn parse_unsigned(text: &str) -> u64 {
    let body = text.trim_start_matches(is_space);
    let (negative, body) = match body.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, body.strip_prefix('+').unwrap_or(body)),
    };
    let (radix, body) = match body.strip_prefix("0x").or_else(|| body.strip_prefix("0X")) {
        Some(rest) => (16, rest),
        None if body.starts_with('0') => (8, body),
        None => (10, body),
    };
    let value = body
        .chars()
        .map_while(|c| c.to_digit(radix))
        .try_fold(0u64, |value, digit| {
            value
                .checked_mul(u64::from(radix))?
                .checked_add(u64::from(digit))
        });
    match value {
        None => u64::MAX,
        Some(value) if negative => value.wrapping_neg(),
        Some(value) => value,
    }
}

fn parse_oid(context: &EvalContext, kind: TypeId, text: &str) -> Result<u32> {
    let body = text.trim_matches(is_space);
    let digits = body.strip_prefix(['+', '-']).unwrap_or(body);
    let number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if kind != TypeId::OID && !number {
        return match body {
            "-" if !is_operator(kind) => Ok(0),
            _ if kind == TypeId::REGTYPE && context.names.is_none() => TypeId::by_sql_name(body)
                .map(|found| found.0)
                .ok_or_else(|| invalid(kind, text)),
            _ => context.oid_of(kind, text),
        };
    }
    if !number {
        return Err(invalid(kind, text));
    }
    let out_of_range = || {
        Error::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            format!("value \"{text}\" is out of range for type oid"),
        )
    };
    let magnitude: i64 = digits.parse().map_err(|_| out_of_range())?;
    match body.starts_with('-') {
        true if magnitude <= 1 << 31 => Ok((-magnitude) as u32),
        false => u32::try_from(magnitude).map_err(|_| out_of_range()),
        _ => Err(out_of_range()),
    }
}

/// Whether values name operators, of which one is called `-`.
fn is_operator(kind: TypeId) -> bool {
    matches!(kind, TypeId::REGOPER | TypeId::REGOPERATOR)
}

fn write_oid(context: &EvalContext, kind: TypeId, oid: u32, out: &mut String) {
    let plain = matches!(kind, TypeId::OID | TypeId::XID | TypeId::CID);
    if !plain && oid == 0 {
        return out.push(if is_operator(kind) { '0' } else { '-' });
    }
    if !plain {
        if let Some(name) = context.name_of(kind, oid) {
            return out.push_str(&name);
        }
        if kind == TypeId::REGTYPE && !TypeId(oid).is_own() && TypeId(oid).info().is_some() {
            let _ = write!(out, "{}", TypeId(oid));
            return;
        }
    }
    let _ = write!(out, "{oid}");
}

/// The longest beginning of whole characters that fits a `name`.
pub fn truncate_name(text: &str) -> &str {
    let mut end = text.len().min(NAME_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn parse_lsn(text: &str) -> Option<u64> {
    let (high, low) = text.split_once('/')?;
    let part = |digits: &str| match digits.len() {
        1..=8 if digits.bytes().all(|b| b.is_ascii_hexdigit()) => {
            u64::from_str_radix(digits, 16).ok()
        }
        _ => None,
    };
    Some(part(high)? << 32 | part(low)?)
}

fn parse_tid(text: &str) -> Option<u64> {
    let body = text
        .trim_matches(is_space)
        .strip_prefix('(')?
        .strip_suffix(')')?;
    let (block, offset) = body.split_once(',')?;
    let block: u32 = block.parse().ok()?;
    let offset: u16 = offset.parse().ok()?;
    Some(u64::from(block) << 16 | u64::from(offset))
}

/// 32 hexadecimal digits, perhaps in braces, with hyphens after any group of four.
fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let body = match text.strip_prefix('{') {
        Some(rest) => rest.strip_suffix('}')?,
        None => text,
    };
    let mut uuid = [0u8; 16];
    let mut digits = 0;
    let mut hyphen_allowed = false;
    for c in body.chars() {
        if c == '-' && hyphen_allowed {
            hyphen_allowed = false;
            continue;
        }
        let digit = c.to_digit(16)? as u8;
        let slot = uuid.get_mut(digits / 2)?;
        *slot = *slot << 4 | digit;
        digits += 1;
        hyphen_allowed = digits % 4 == 0 && digits < 32;
    }
    (digits == 32).then_some(uuid)
}

fn write_uuid(uuid: &[u8; 16], out: &mut String) {
    for (index, byte) in uuid.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        let _ = write!(out, "{byte:02x}");
    }
}

/// Hexadecimal after `\x`, or characters with `\\` and `\ooo` for others.
fn parse_bytea(text: &str) -> Result<Vec<u8>> {
    if let Some(digits) = text.strip_prefix("\\x") {
        return parse_hex(digits);
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            out.push(bytes[at]);
            at += 1;
        } else if bytes.get(at + 1) == Some(&b'\\') {
            out.push(b'\\');
            at += 2;
        } else {
            let octal = bytes.get(at + 1..at + 4).filter(|d| {
                (b'0'..=b'3').contains(&d[0]) && d.iter().all(|b| (b'0'..=b'7').contains(b))
            });
            let digits = octal.ok_or_else(|| {
                Error::new(
                    SqlState::INVALID_TEXT_REPRESENTATION,
                    "invalid input syntax for type bytea",
                )
            })?;
            out.push(
                digits
                    .iter()
                    .fold(0, |value, digit| value << 3 | (digit - b'0')),
            );
            at += 4;
        }
    }
    Ok(out)
}

/// Pairs of hexadecimal digits, with white space between pairs.
fn parse_hex(digits: &str) -> Result<Vec<u8>> {
    let mut hex = Hex::default();
    hex.read(digits)?;
    hex.finish()
}

/// Bytes that are read from hexadecimal digits part by part.
#[derive(Default)]
pub struct Hex {
    bytes: Vec<u8>,
    half: Option<u8>,
}

impl Hex {
    /// The next part.
    pub fn read(&mut self, digits: &str) -> Result<()> {
        self.bytes.reserve(digits.len() / 2);
        for c in digits.chars() {
            if self.half.is_none() && is_space(c) {
                continue;
            }
            let digit = c.to_digit(16).ok_or_else(|| {
                Error::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    format!("invalid hexadecimal digit: \"{c}\""),
                )
            })? as u8;
            match self.half.take() {
                None => self.half = Some(digit),
                Some(high) => self.bytes.push(high << 4 | digit),
            }
        }
        Ok(())
    }

    /// The bytes.
    pub fn finish(self) -> Result<Vec<u8>> {
        match self.half {
            None => Ok(self.bytes),
            Some(_) => Err(Error::new(
                SqlState::INVALID_PARAMETER_VALUE,
                "invalid hexadecimal data: odd number of digits",
            )),
        }
    }
}

fn write_bytea(bytes: &Arc<[u8]>, escape: bool, out: &mut String) {
    if escape {
        for byte in bytes.iter() {
            match byte {
                b'\\' => out.push_str("\\\\"),
                0x20..=0x7e => out.push(char::from(*byte)),
                _ => {
                    let _ = write!(out, "\\{byte:03o}");
                }
            }
        }
        return;
    }
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.reserve(2 + bytes.len() * 2);
    out.push_str("\\x");
    for byte in bytes.iter() {
        out.push(char::from(HEX[usize::from(byte >> 4)]));
        out.push(char::from(HEX[usize::from(byte & 15)]));
    }
}
