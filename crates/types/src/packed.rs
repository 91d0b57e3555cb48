//! Values as bytes that say by themselves what they are: rows in scratch space, which nobody has a
//! list of types for.
//!
//! ```
//! use types::{packed, Datum};
//! let row = vec![Datum::Int4(7), Datum::Null, Datum::text("seven")];
//! let mut bytes = Vec::new();
//! packed::put_row(&row, &mut bytes).unwrap();
//! let mut found = Vec::new();
//! let mut reader = base::codec::Reader::new(&bytes);
//! packed::read_row(&mut reader, &mut found).unwrap();
//! assert_eq!(found, row);
//! ```
//! A row is the number of its values and then each, one byte that says what it is before it.
//!
//! # Invariants
//! - What comes back is the very same value: a numeric with its scale, a `character(n)` with its
//!   blanks, a record with the names of its fields, and a long value that nobody has read as what
//!   stands for it.
//!
//! # What it leaves out
//! It is no format to be kept: a process reads only what it has written itself. Columns of stored rows
//! are [`super::column`]'s.

use std::sync::Arc;

use base::codec::{put_bytes, put_signed, put_varint, Reader};
use base::error::{Error, Result};
use base::{coro, TreeId};

use super::column::{decode_numeric, encode_numeric};
use super::numeric::Repr;
use super::{
    Array, Bits, Bound, Datum, Dimension, Interval, LongValue, Multirange, Network, Numeric, Range,
    Record, TypeId,
};

/// What a value is.
mod tag {
    pub const NULL: u8 = 0;
    pub const FALSE: u8 = 1;
    pub const TRUE: u8 = 2;
    pub const INT2: u8 = 3;
    pub const INT4: u8 = 4;
    pub const INT8: u8 = 5;
    pub const FLOAT4: u8 = 6;
    pub const FLOAT8: u8 = 7;
    pub const NUMERIC: u8 = 8;
    pub const SMALL_NUMERIC: u8 = 9;
    pub const TEXT: u8 = 10;
    pub const BYTEA: u8 = 11;
    pub const JSONB: u8 = 12;
    pub const TSVECTOR: u8 = 13;
    pub const TSQUERY: u8 = 14;
    pub const CHAR: u8 = 15;
    pub const UUID: u8 = 16;
    pub const DATE: u8 = 17;
    pub const TIME: u8 = 18;
    pub const TIMETZ: u8 = 19;
    pub const TIMESTAMP: u8 = 20;
    pub const TIMESTAMPTZ: u8 = 21;
    pub const INTERVAL: u8 = 22;
    pub const OID: u8 = 23;
    pub const NETWORK: u8 = 24;
    pub const BITS: u8 = 25;
    pub const UNSIGNED8: u8 = 26;
    pub const ARRAY: u8 = 27;
    pub const RECORD: u8 = 28;
    pub const RANGE: u8 = 29;
    pub const MULTIRANGE: u8 = 30;
    pub const VOID: u8 = 31;
    pub const LONG: u8 = 32;
    pub const HSTORE: u8 = 33;
    pub const VECTOR: u8 = 34;
    pub const MONEY: u8 = 35;
    pub const GEOMETRY: u8 = 36;
}

/// How a bound of a range begins: without a value, or with one that belongs to it or not.
mod bound {
    pub const NONE: u8 = 0;
    pub const EXCLUSIVE: u8 = 1;
    pub const INCLUSIVE: u8 = 2;
}

/// Appends a row.
///
/// # Errors
/// 54001 for a value that is nested too deep.
pub fn put_row(row: &[Datum], out: &mut Vec<u8>) -> Result<()> {
    put_varint(out, row.len() as u64);
    row.iter().try_for_each(|value| put(value, out))
}

/// Replaces a row by the next one, whose memory is used again.
///
/// # Errors
/// XX001 when there is none; 54001.
pub fn read_row(reader: &mut Reader<'_>, row: &mut Vec<Datum>) -> Result<()> {
    let width: usize = reader.varint_as()?;
    row.clear();
    // A value has at least one byte.
    row.reserve(width.min(reader.rest().len()));
    for _ in 0..width {
        row.push(read(reader)?);
    }
    Ok(())
}

fn fixed<const N: usize>(kind: u8, bytes: [u8; N], out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(&bytes);
}

fn of_length(kind: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(kind);
    put_bytes(out, bytes);
}

/// Appends a value.
///
/// # Errors
/// As [`put_row`].
pub fn put(value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    match value {
        Datum::Null => out.push(tag::NULL),
        Datum::Void => out.push(tag::VOID),
        Datum::Bool(false) => out.push(tag::FALSE),
        Datum::Bool(true) => out.push(tag::TRUE),
        Datum::Int2(v) => fixed(tag::INT2, v.to_le_bytes(), out),
        Datum::Int4(v) => fixed(tag::INT4, v.to_le_bytes(), out),
        Datum::Int8(v) => fixed(tag::INT8, v.to_le_bytes(), out),
        Datum::Float4(v) => fixed(tag::FLOAT4, v.to_bits().to_le_bytes(), out),
        Datum::Float8(v) => fixed(tag::FLOAT8, v.to_bits().to_le_bytes(), out),
        Datum::Numeric(v) => put_numeric(v, out),
        Datum::Text(v) => of_length(tag::TEXT, v.as_bytes(), out),
        Datum::Bytea(v) => of_length(tag::BYTEA, v, out),
        Datum::Jsonb(v) => of_length(tag::JSONB, v, out),
        Datum::Hstore(v) => of_length(tag::HSTORE, v, out),
        Datum::Vector(v) => of_length(tag::VECTOR, v, out),
        Datum::TsVector(v) => of_length(tag::TSVECTOR, v, out),
        Datum::TsQuery(v) => of_length(tag::TSQUERY, v, out),
        Datum::Char(v) => fixed(tag::CHAR, [*v], out),
        Datum::Uuid(v) => fixed(tag::UUID, *v, out),
        Datum::Date(v) => fixed(tag::DATE, v.to_le_bytes(), out),
        Datum::Time(v) => fixed(tag::TIME, v.to_le_bytes(), out),
        Datum::TimeTz(v, zone) => {
            fixed(tag::TIMETZ, v.to_le_bytes(), out);
            out.extend_from_slice(&zone.to_le_bytes());
        }
        Datum::Timestamp(v) => fixed(tag::TIMESTAMP, v.to_le_bytes(), out),
        Datum::TimestampTz(v) => fixed(tag::TIMESTAMPTZ, v.to_le_bytes(), out),
        Datum::Interval(v) => {
            fixed(tag::INTERVAL, v.months.to_le_bytes(), out);
            out.extend_from_slice(&v.days.to_le_bytes());
            out.extend_from_slice(&v.micros.to_le_bytes());
        }
        Datum::Oid(v) => fixed(tag::OID, v.to_le_bytes(), out),
        Datum::Network(v) => {
            fixed(tag::NETWORK, [u8::from(v.is_v6), v.bits], out);
            out.extend_from_slice(&v.address);
        }
        Datum::Bits(v) => {
            out.push(tag::BITS);
            put_varint(out, v.len() as u64);
            put_bytes(out, v.bytes());
        }
        Datum::Unsigned8(v) => fixed(tag::UNSIGNED8, v.to_le_bytes(), out),
        Datum::Money(v) => fixed(tag::MONEY, v.to_le_bytes(), out),
        Datum::Geometry(v) => {
            out.push(tag::GEOMETRY);
            put_varint(out, v.len() as u64);
            for number in v.iter() {
                out.extend_from_slice(&number.to_bits().to_le_bytes());
            }
        }
        Datum::Array(v) => put_array(v, out)?,
        Datum::Record(v) => put_record(v, out)?,
        Datum::Range(v) => {
            out.push(tag::RANGE);
            put_range(v, out)?;
        }
        Datum::Multirange(v) => {
            out.push(tag::MULTIRANGE);
            put_varint(out, u64::from(v.element().0));
            put_varint(out, v.ranges().len() as u64);
            v.ranges()
                .iter()
                .try_for_each(|range| put_range(range, out))?;
        }
        Datum::Long(v) => {
            out.push(tag::LONG);
            put_varint(out, u64::from(v.type_id.0));
            put_signed(out, i64::from(v.typmod));
            put_varint(out, v.tree.0);
            put_bytes(out, &v.stored);
        }
    }
    Ok(())
}

/// Reads a value.
///
/// # Errors
/// As [`read_row`].
pub fn read(reader: &mut Reader<'_>) -> Result<Datum> {
    Ok(match reader.u8()? {
        tag::NULL => Datum::Null,
        tag::VOID => Datum::Void,
        tag::FALSE => Datum::Bool(false),
        tag::TRUE => Datum::Bool(true),
        tag::INT2 => Datum::Int2(i16::from_le_bytes(taken(reader)?)),
        tag::INT4 => Datum::Int4(i32::from_le_bytes(taken(reader)?)),
        tag::INT8 => Datum::Int8(i64::from_le_bytes(taken(reader)?)),
        tag::FLOAT4 => Datum::Float4(f32::from_bits(u32::from_le_bytes(taken(reader)?))),
        tag::FLOAT8 => Datum::Float8(f64::from_bits(u64::from_le_bytes(taken(reader)?))),
        tag::NUMERIC => Datum::Numeric(decode_numeric(reader.bytes()?)?),
        tag::SMALL_NUMERIC => {
            let value = i64::from_le_bytes(taken(reader)?);
            let scale = u16::from_le_bytes(taken(reader)?);
            Datum::Numeric(Numeric(Repr::Small { value, scale }))
        }
        tag::TEXT => Datum::text(reader.str()?),
        tag::BYTEA => Datum::Bytea(Arc::from(reader.bytes()?)),
        tag::JSONB => Datum::Jsonb(Arc::from(reader.bytes()?)),
        tag::HSTORE => Datum::Hstore(Arc::from(reader.bytes()?)),
        tag::VECTOR => Datum::Vector(Arc::from(reader.bytes()?)),
        tag::TSVECTOR => Datum::TsVector(Arc::from(reader.bytes()?)),
        tag::TSQUERY => Datum::TsQuery(Arc::from(reader.bytes()?)),
        tag::CHAR => Datum::Char(reader.u8()?),
        tag::UUID => Datum::Uuid(taken(reader)?),
        tag::DATE => Datum::Date(i32::from_le_bytes(taken(reader)?)),
        tag::TIME => Datum::Time(i64::from_le_bytes(taken(reader)?)),
        tag::TIMETZ => Datum::TimeTz(
            i64::from_le_bytes(taken(reader)?),
            i32::from_le_bytes(taken(reader)?),
        ),
        tag::TIMESTAMP => Datum::Timestamp(i64::from_le_bytes(taken(reader)?)),
        tag::TIMESTAMPTZ => Datum::TimestampTz(i64::from_le_bytes(taken(reader)?)),
        tag::INTERVAL => Datum::Interval(Interval {
            months: i32::from_le_bytes(taken(reader)?),
            days: i32::from_le_bytes(taken(reader)?),
            micros: i64::from_le_bytes(taken(reader)?),
        }),
        tag::OID => Datum::Oid(u32::from_le_bytes(taken(reader)?)),
        tag::NETWORK => Datum::Network(Network {
            is_v6: reader.u8()? != 0,
            bits: reader.u8()?,
            address: taken(reader)?,
        }),
        tag::BITS => {
            let len = reader.varint_as()?;
            let bytes = reader.bytes()?;
            if bytes.len() != usize::div_ceil(len, 8) {
                return Err(Error::corrupted("a string of bits in scratch space"));
            }
            Datum::Bits(Arc::new(Bits::new(len, bytes.to_vec())))
        }
        tag::UNSIGNED8 => Datum::Unsigned8(u64::from_le_bytes(taken(reader)?)),
        tag::MONEY => Datum::Money(i64::from_le_bytes(taken(reader)?)),
        tag::GEOMETRY => {
            let count: usize = reader.varint_as()?;
            let numbers =
                (0..count).map(|_| Ok(f64::from_bits(u64::from_le_bytes(taken(reader)?))));
            Datum::Geometry(numbers.collect::<Result<_>>()?)
        }
        tag::ARRAY => Datum::Array(Arc::new(read_array(reader)?)),
        tag::RECORD => Datum::Record(Arc::new(read_record(reader)?)),
        tag::RANGE => Datum::Range(Arc::new(read_range(reader)?)),
        tag::MULTIRANGE => {
            let element = TypeId(reader.varint_as()?);
            let count: usize = reader.varint_as()?;
            let ranges = (0..count).map(|_| read_range(reader));
            let ranges = ranges.collect::<Result<Vec<_>>>()?;
            Datum::Multirange(Arc::new(Multirange::new(element, ranges)?))
        }
        tag::LONG => Datum::Long(Arc::new(LongValue {
            type_id: TypeId(reader.varint_as()?),
            typmod: reader.signed()? as i32,
            tree: TreeId(reader.varint_as()?),
            stored: Box::from(reader.bytes()?),
        })),
        other => {
            let what = format!("a value of kind {other} in scratch space");
            return Err(Error::corrupted(what));
        }
    })
}

fn taken<const N: usize>(reader: &mut Reader<'_>) -> Result<[u8; N]> {
    let bytes = reader.take(N)?;
    bytes
        .try_into()
        .map_err(|_| Error::corrupted("a value in scratch space is too short"))
}

fn put_numeric(number: &Numeric, out: &mut Vec<u8>) {
    if let Repr::Small { value, scale } = &number.0 {
        fixed(tag::SMALL_NUMERIC, value.to_le_bytes(), out);
        out.extend_from_slice(&scale.to_le_bytes());
        return;
    }
    let mut bytes = Vec::new();
    encode_numeric(number, &mut bytes);
    of_length(tag::NUMERIC, &bytes, out);
}

fn put_array(array: &Array, out: &mut Vec<u8>) -> Result<()> {
    coro::check_depth()?;
    out.push(tag::ARRAY);
    put_varint(out, u64::from(array.element.0));
    put_varint(out, array.dimensions.len() as u64);
    for dimension in &array.dimensions {
        put_signed(out, i64::from(dimension.len));
        put_signed(out, i64::from(dimension.lower));
    }
    put_row(&array.elements, out)
}

fn read_array(reader: &mut Reader<'_>) -> Result<Array> {
    coro::check_depth()?;
    let element = TypeId(reader.varint_as()?);
    let count: usize = reader.varint_as()?;
    let mut dimensions = Vec::new();
    for _ in 0..count {
        dimensions.push(Dimension {
            len: reader.signed()? as i32,
            lower: reader.signed()? as i32,
        });
    }
    let mut elements = Vec::new();
    read_row(reader, &mut elements)?;
    Ok(Array {
        element,
        dimensions,
        elements,
    })
}

fn put_record(record: &Record, out: &mut Vec<u8>) -> Result<()> {
    coro::check_depth()?;
    out.push(tag::RECORD);
    put_varint(out, record.types.len() as u64);
    for kind in &record.types {
        put_varint(out, u64::from(kind.0));
    }
    put_row(&record.values, out)?;
    let names = record.names.as_deref();
    put_varint(out, names.map_or(0, |names| names.len() as u64 + 1));
    for name in names.unwrap_or_default() {
        put_bytes(out, name.as_bytes());
    }
    Ok(())
}

fn read_record(reader: &mut Reader<'_>) -> Result<Record> {
    coro::check_depth()?;
    let count: usize = reader.varint_as()?;
    let types = (0..count).map(|_| Ok(TypeId(reader.varint_as()?)));
    let types = types.collect::<Result<Vec<_>>>()?;
    let mut values = Vec::new();
    read_row(reader, &mut values)?;
    let names = match reader.varint_as::<usize>()? {
        0 => None,
        more => {
            let names = (1..more).map(|_| Ok(reader.str()?.to_owned()));
            Some(names.collect::<Result<Arc<[String]>>>()?)
        }
    };
    Ok(Record {
        types,
        values,
        names,
    })
}

fn put_range(range: &Range, out: &mut Vec<u8>) -> Result<()> {
    put_varint(out, u64::from(range.element().0));
    let Some((lower, upper)) = range.bounds() else {
        out.push(0);
        return Ok(());
    };
    out.push(1);
    for end in [lower, upper] {
        match (&end.value, end.inclusive) {
            (None, _) => out.push(bound::NONE),
            (Some(value), inclusive) => {
                out.push(match inclusive {
                    true => bound::INCLUSIVE,
                    false => bound::EXCLUSIVE,
                });
                put(value, out)?;
            }
        }
    }
    Ok(())
}

fn read_range(reader: &mut Reader<'_>) -> Result<Range> {
    let element = TypeId(reader.varint_as()?);
    if reader.u8()? == 0 {
        return Ok(Range::empty(element));
    }
    let mut end = || -> Result<Bound> {
        Ok(match reader.u8()? {
            bound::NONE => Bound::NONE,
            kind => Bound::new(Some(read(reader)?), kind == bound::INCLUSIVE),
        })
    };
    let (lower, upper) = (end()?, end()?);
    Range::new(element, lower, upper)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{input, EvalContext, NO_TYPMOD};

    #[test]
    fn every_value_comes_back_as_it_was() {
        let context = EvalContext::for_tests();
        let texts = [
            (TypeId::BOOL, "t"),
            (TypeId::BOOL, "f"),
            (TypeId::INT2, "-32768"),
            (TypeId::INT4, "2147483647"),
            (TypeId::INT8, "-9223372036854775808"),
            (TypeId::FLOAT4, "-0"),
            (TypeId::FLOAT8, "NaN"),
            (TypeId::FLOAT8, "-1.5e300"),
            (TypeId::NUMERIC, "1.500"),
            (TypeId::NUMERIC, "-12345678901234567890123456789.00010"),
            (TypeId::NUMERIC, "NaN"),
            (TypeId::NUMERIC, "-Infinity"),
            (TypeId::NUMERIC, "0.000"),
            (TypeId::TEXT, ""),
            (TypeId::TEXT, "größer"),
            (TypeId::BPCHAR, "a  "),
            (TypeId::BYTEA, "\\x00ff"),
            (TypeId::JSONB, "{\"a\": [1, null]}"),
            (TypeId::HSTORE, "a=>1, b=>null"),
            (TypeId::VECTOR, "[1,-0,2.5]"),
            (TypeId::HALFVEC, "[1,-0,2.5]"),
            (TypeId::SPARSEVEC, "{2:-1,7:2.5}/9"),
            (TypeId::TSVECTOR, "'a':1 'b'"),
            (TypeId::TSQUERY, "'a' & !'b'"),
            (TypeId::CHAR, "x"),
            (TypeId::UUID, "00112233-4455-6677-8899-aabbccddeeff"),
            (TypeId::DATE, "infinity"),
            (TypeId::TIME, "24:00"),
            (TypeId::TIMETZ, "12:34:56.789+05:30"),
            (TypeId::TIMESTAMP, "2001-02-03 04:05:06.7"),
            (TypeId::TIMESTAMPTZ, "-infinity"),
            (TypeId::INTERVAL, "1 year -2 days 03:04:05"),
            (TypeId::OID, "4294967295"),
            (TypeId::INET, "192.168.0.1/24"),
            (TypeId::CIDR, "::/0"),
            (TypeId::VARBIT, "10110011101"),
            (TypeId::VARBIT, ""),
            (TypeId::MACADDR, "08:00:2b:01:02:03"),
            (TypeId::MONEY, "-$1,234.50"),
            (TypeId::POINT, "(NaN,-0)"),
            (TypeId::PATH, "[(1,2),(3,Infinity)]"),
            (TypeId::TEXT.array_of().unwrap(), "{}"),
            (
                TypeId::INT4.array_of().unwrap(),
                "[0:1][2:3]={{1,NULL},{3,4}}",
            ),
            (TypeId::INT4RANGE, "empty"),
            (TypeId::NUMRANGE, "(1.50,)"),
            (TypeId::NUMRANGE, "(,)"),
            (TypeId::INT4MULTIRANGE, "{[1,3),[7,9)}"),
        ];
        let mut row = vec![Datum::Null, Datum::Void];
        for (kind, text) in texts {
            row.push(input(&context, kind, NO_TYPMOD, text).unwrap());
        }
        let inner = Record {
            types: vec![TypeId::INT4, TypeId::TEXT],
            values: vec![Datum::Int4(1), Datum::Null],
            names: Some(Arc::from(["a".to_owned(), "b".to_owned()])),
        };
        row.push(Datum::Record(Arc::new(inner)));
        row.push(Datum::Long(Arc::new(LongValue {
            type_id: TypeId::TEXT,
            typmod: -1,
            tree: TreeId(77),
            stored: Box::from([1, 2, 3]),
        })));
        let mut bytes = Vec::new();
        put_row(&row, &mut bytes).unwrap();
        put_row(&[], &mut bytes).unwrap();
        let mut found = vec![Datum::Null; 3];
        let mut reader = Reader::new(&bytes);
        read_row(&mut reader, &mut found).unwrap();
        assert_eq!(found, row);
        let names = found.iter().find_map(|value| match value {
            Datum::Record(record) => record.names.clone(),
            _ => None,
        });
        assert_eq!(names.map_or(0, |names| names.len()), 2);
        read_row(&mut reader, &mut found).unwrap();
        assert!(found.is_empty() && reader.is_empty());
        assert!(read_row(&mut reader, &mut found).is_err());
    }

    #[test]
    fn what_is_cut_off_is_an_error() {
        let mut bytes = Vec::new();
        let row = [Datum::Int8(1), Datum::text("text"), Datum::Uuid([7; 16])];
        put_row(&row, &mut bytes).unwrap();
        for end in 0..bytes.len() {
            let cut = read_row(&mut Reader::new(&bytes[..end]), &mut Vec::new());
            assert!(cut.is_err(), "{end} of {} bytes", bytes.len());
        }
    }
}
