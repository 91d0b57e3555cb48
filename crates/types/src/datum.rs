//! A value in memory.
//!
//! Invariant: a datum has 24 bytes and cloning one never copies text or digits (see the test).

use std::sync::Arc;

use base::TreeId;

use super::{Bits, Interval, Multirange, Network, Numeric, Range, TypeId};

/// A value, without its type: see [`TypeId`] for what it means.
///
/// Two are equal if nothing tells them apart: NaN is itself, and 1.0 is not 1.00. How SQL compares
/// values is [`equal`](super::equal)'s.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Datum {
    Null,
    Bool(bool),
    Int2(i16),
    Int4(i32),
    Int8(i64),
    Float4(f32),
    Float8(f64),
    Numeric(Numeric),
    /// text, varchar, bpchar (padded), name, unknown, cstring, json, jsonpath, citext, ltree
    /// and its patterns.
    Text(Arc<str>),
    Bytea(Arc<[u8]>),
    /// See [`base::jsonb`].
    Jsonb(Arc<[u8]>),
    /// See [`crate::hstore`].
    Hstore(Arc<[u8]>),
    /// vector, halfvec, sparsevec: see [`crate::vectors`].
    Vector(Arc<[u8]>),
    /// See [`crate::search::vector`].
    TsVector(Arc<[u8]>),
    /// See [`crate::search::query`].
    TsQuery(Arc<[u8]>),
    /// `"char"`.
    Char(u8),
    Uuid([u8; 16]),
    /// Days since 2000-01-01; `i32::MAX` and `i32::MIN` are the infinities.
    Date(i32),
    /// Microseconds since midnight, up to 24:00 inclusive.
    Time(i64),
    /// Microseconds since midnight and the zone in seconds **west** of Greenwich.
    TimeTz(i64, i32),
    /// Microseconds since 2000-01-01 00:00; `i64::MAX` and `i64::MIN` are the infinities.
    Timestamp(i64),
    /// The same, since 2000-01-01 00:00 UTC.
    TimestampTz(i64),
    Interval(Interval),
    /// oid, xid, cid, regclass and the other reg types.
    Oid(u32),
    /// point, line, lseg, box, path, polygon, circle: see [`crate::geometry`].
    Geometry(Arc<[f64]>),
    /// Hundredths: see [`crate::money`].
    Money(i64),
    /// inet, cidr.
    Network(Network),
    Bits(Arc<Bits>),
    /// pg_lsn, xid8, macaddr, macaddr8, and the place of an enum's label.
    Unsigned8(u64),
    Array(Arc<Array>),
    Record(Arc<Record>),
    Range(Arc<Range>),
    Multirange(Arc<Multirange>),
    /// The result of a function that returns `void`; its text is empty.
    Void,
    /// A long value that nobody has read yet: in rows as they come from a table, and nowhere
    /// else. Whatever looks at a column reads it first.
    Long(Arc<LongValue>),
}

impl PartialEq for Datum {
    fn eq(&self, other: &Datum) -> bool {
        match (self, other) {
            (Datum::Null, Datum::Null) | (Datum::Void, Datum::Void) => true,
            (Datum::Bool(a), Datum::Bool(b)) => a == b,
            (Datum::Int2(a), Datum::Int2(b)) => a == b,
            (Datum::Int4(a), Datum::Int4(b)) | (Datum::Date(a), Datum::Date(b)) => a == b,
            (Datum::Int8(a), Datum::Int8(b))
            | (Datum::Time(a), Datum::Time(b))
            | (Datum::Timestamp(a), Datum::Timestamp(b))
            | (Datum::TimestampTz(a), Datum::TimestampTz(b))
            | (Datum::Money(a), Datum::Money(b)) => a == b,
            (Datum::Float4(a), Datum::Float4(b)) => a.to_bits() == b.to_bits(),
            (Datum::Float8(a), Datum::Float8(b)) => a.to_bits() == b.to_bits(),
            (Datum::Geometry(a), Datum::Geometry(b)) => {
                let bits = |number: &f64| number.to_bits();
                a.iter().map(bits).eq(b.iter().map(bits))
            }
            (Datum::Numeric(a), Datum::Numeric(b)) => a == b && a.scale() == b.scale(),
            (Datum::Text(a), Datum::Text(b)) => a == b,
            (Datum::Bytea(a), Datum::Bytea(b))
            | (Datum::Jsonb(a), Datum::Jsonb(b))
            | (Datum::Hstore(a), Datum::Hstore(b))
            | (Datum::Vector(a), Datum::Vector(b))
            | (Datum::TsVector(a), Datum::TsVector(b))
            | (Datum::TsQuery(a), Datum::TsQuery(b)) => a == b,
            (Datum::Char(a), Datum::Char(b)) => a == b,
            (Datum::Uuid(a), Datum::Uuid(b)) => a == b,
            (Datum::TimeTz(a, of_a), Datum::TimeTz(b, of_b)) => (a, of_a) == (b, of_b),
            (Datum::Interval(a), Datum::Interval(b)) => a == b,
            (Datum::Oid(a), Datum::Oid(b)) => a == b,
            (Datum::Unsigned8(a), Datum::Unsigned8(b)) => a == b,
            (Datum::Array(a), Datum::Array(b)) => a == b,
            (Datum::Record(a), Datum::Record(b)) => a == b,
            (Datum::Range(a), Datum::Range(b)) => a == b,
            (Datum::Network(a), Datum::Network(b)) => a == b,
            (Datum::Bits(a), Datum::Bits(b)) => a == b,
            (Datum::Multirange(a), Datum::Multirange(b)) => a == b,
            (Datum::Long(a), Datum::Long(b)) => a == b,
            _ => false,
        }
    }
}

/// What stands for a long value: see `sql::exec::long`.
#[derive(Clone, Debug, PartialEq)]
pub struct LongValue {
    /// Its type.
    pub type_id: TypeId,
    /// The type's modifier.
    pub typmod: i32,
    /// The tree of its table's long values.
    pub tree: TreeId,
    /// What its row has in its place.
    pub stored: Box<[u8]>,
}

/// One dimension of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dimension {
    /// How many elements.
    pub len: i32,
    /// The index of the first, usually 1.
    pub lower: i32,
}

/// An array: elements in row-major order. No dimensions: the empty array.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// The type of the elements.
    pub element: TypeId,
    /// Its dimensions; the product of their lengths is the number of elements.
    pub dimensions: Vec<Dimension>,
    /// The elements.
    pub elements: Vec<Datum>,
}

impl Array {
    /// A one-dimensional array that begins at 1; an empty one has no dimension.
    pub fn of(element: TypeId, elements: Vec<Datum>) -> Array {
        let len = elements.len() as i32;
        let dimensions = match len {
            0 => Vec::new(),
            _ => vec![Dimension { len, lower: 1 }],
        };
        Array {
            element,
            dimensions,
            elements,
        }
    }
}

/// A row as a value.
#[derive(Clone, Debug)]
pub struct Record {
    /// The types of the fields.
    pub types: Vec<TypeId>,
    /// The fields.
    pub values: Vec<Datum>,
    /// Their names, if it is the row of a table; rows that differ in these alone are equal.
    pub names: Option<Arc<[String]>>,
}

impl PartialEq for Record {
    fn eq(&self, other: &Record) -> bool {
        self.types == other.types && self.values == other.values
    }
}

impl Datum {
    /// A text.
    pub fn text(text: impl AsRef<str>) -> Datum {
        Datum::Text(Arc::from(text.as_ref()))
    }

    /// Some bytes.
    pub fn bytea(bytes: impl AsRef<[u8]>) -> Datum {
        Datum::Bytea(Arc::from(bytes.as_ref()))
    }

    /// Whether it is a long value that nobody has read yet.
    #[inline]
    pub fn is_long(&self) -> bool {
        matches!(self, Datum::Long(_))
    }

    /// Whether it is NULL.
    #[inline]
    pub fn is_null(&self) -> bool {
        matches!(self, Datum::Null)
    }

    /// Whether it is true; false and NULL are not.
    pub fn is_true(&self) -> bool {
        matches!(self, Datum::Bool(true))
    }

    /// The text of a text-like value; empty for others.
    pub fn as_str(&self) -> &str {
        match self {
            Datum::Text(text) => text,
            _ => "",
        }
    }

    /// The value of an integer of any width, an oid included.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Datum::Int2(v) => Some(i64::from(*v)),
            Datum::Int4(v) => Some(i64::from(*v)),
            Datum::Int8(v) => Some(*v),
            Datum::Oid(v) => Some(i64::from(*v)),
            _ => None,
        }
    }
}

impl From<bool> for Datum {
    fn from(value: bool) -> Datum {
        Datum::Bool(value)
    }
}

impl From<&str> for Datum {
    fn from(value: &str) -> Datum {
        Datum::text(value)
    }
}

#[cfg(test)]
mod tests {
    use super::Datum;

    #[test]
    fn a_datum_is_small() {
        let bytes = std::mem::size_of::<Datum>();
        assert!(bytes <= 24, "a datum has {bytes} bytes");
    }
}
