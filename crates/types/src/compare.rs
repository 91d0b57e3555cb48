//! Order, equality and hashing of values.
//!
//! Numbers of different widths compare with one another, and so do texts of different types; all
//! other values compare only with their like, `citext` by its lower case. NaN equals NaN and is above every other number; -0
//! equals 0; `char(n)` ignores trailing blanks; intervals compare by the length they have with
//! months of 30 days.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use base::fold;

use super::float::compare_floats;
use super::{json, search, vectors, Array, Bound, Datum, Multirange, Range, TypeId};

/// Orders two values of one type as its default btree operator class does; NULL is last and equal
/// to NULL.
pub fn compare(kind: TypeId, a: &Datum, b: &Datum) -> Ordering {
    if let (Datum::Text(a), Datum::Text(b)) = (a, b) {
        return match kind {
            TypeId::BPCHAR => a.trim_end_matches(' ').cmp(b.trim_end_matches(' ')),
            TypeId::CITEXT => fold::compare(a, b),
            _ => a.cmp(b),
        };
    }
    if let (Datum::Vector(a), Datum::Vector(b)) = (a, b) {
        return vectors::compare(kind, a, b);
    }
    compare_values(a, b)
}

fn compare_values(a: &Datum, b: &Datum) -> Ordering {
    match (a, b) {
        (Datum::Int4(a), Datum::Int4(b)) | (Datum::Date(a), Datum::Date(b)) => a.cmp(b),
        (Datum::Int8(a), Datum::Int8(b))
        | (Datum::Time(a), Datum::Time(b))
        | (Datum::Timestamp(a), Datum::Timestamp(b))
        | (Datum::TimestampTz(a), Datum::TimestampTz(b))
        | (Datum::Money(a), Datum::Money(b)) => a.cmp(b),
        (Datum::Bool(a), Datum::Bool(b)) => a.cmp(b),
        (Datum::Oid(a), Datum::Oid(b)) => a.cmp(b),
        (Datum::Unsigned8(a), Datum::Unsigned8(b)) => a.cmp(b),
        (Datum::Float8(a), Datum::Float8(b)) => compare_floats(*a, *b),
        (Datum::Float4(a), Datum::Float4(b)) => compare_floats(f64::from(*a), f64::from(*b)),
        (Datum::Float4(a), Datum::Float8(b)) => compare_floats(f64::from(*a), *b),
        (Datum::Float8(a), Datum::Float4(b)) => compare_floats(*a, f64::from(*b)),
        (Datum::Numeric(a), Datum::Numeric(b)) => a.cmp(b),
        (Datum::Bytea(a), Datum::Bytea(b)) => a.cmp(b),
        (Datum::Jsonb(a), Datum::Jsonb(b)) => json::compare(a, b),
        (Datum::TsVector(a), Datum::TsVector(b)) | (Datum::Hstore(a), Datum::Hstore(b)) => a.cmp(b),
        (Datum::TsQuery(a), Datum::TsQuery(b)) => search::query::compare(a, b),
        (Datum::Char(a), Datum::Char(b)) => a.cmp(b),
        (Datum::Uuid(a), Datum::Uuid(b)) => a.cmp(b),
        (Datum::Interval(a), Datum::Interval(b)) => a.total_micros().cmp(&b.total_micros()),
        (Datum::TimeTz(a, zone), Datum::TimeTz(b, other)) => {
            let utc = |micros: i64, zone: i32| micros + i64::from(zone) * 1_000_000;
            utc(*a, *zone).cmp(&utc(*b, *other)).then(zone.cmp(other))
        }
        (Datum::Text(a), Datum::Text(b)) => a.cmp(b),
        (Datum::Array(a), Datum::Array(b)) => compare_arrays(a, b),
        // They have no order; whether they are the very same may be asked.
        (Datum::Geometry(a), Datum::Geometry(b)) => {
            let bits = |number: &f64| number.to_bits();
            a.iter().map(bits).cmp(b.iter().map(bits))
        }
        (Datum::Network(a), Datum::Network(b)) => a.cmp(b),
        (Datum::Bits(a), Datum::Bits(b)) => a.cmp(b),
        (Datum::Range(a), Datum::Range(b)) => compare_ranges(a, b),
        (Datum::Multirange(a), Datum::Multirange(b)) => compare_multiranges(a, b),
        (Datum::Record(a), Datum::Record(b)) => {
            let fields = a.types.iter().zip(a.values.iter().zip(&b.values));
            fields
                .map(|(kind, (a, b))| compare(*kind, a, b))
                .find(|order| order.is_ne())
                .unwrap_or_else(|| a.values.len().cmp(&b.values.len()))
        }
        _ => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => a.is_null().cmp(&b.is_null()),
        },
    }
}

fn compare_arrays(a: &Array, b: &Array) -> Ordering {
    let pairs = a.elements.iter().zip(&b.elements);
    pairs
        .map(|(x, y)| compare(a.element, x, y))
        .find(|order| order.is_ne())
        .unwrap_or_else(|| a.elements.len().cmp(&b.elements.len()))
        .then_with(|| a.dimensions.len().cmp(&b.dimensions.len()))
        .then_with(|| {
            let sizes = |array: &Array| -> Vec<_> {
                let lengths = array.dimensions.iter().map(|d| d.len);
                lengths
                    .chain(array.dimensions.iter().map(|d| d.lower))
                    .collect()
            };
            sizes(a).cmp(&sizes(b))
        })
}

/// How two lower bounds lie to one another.
pub fn compare_lower(element: TypeId, a: &Bound, b: &Bound) -> Ordering {
    match (&a.value, &b.value) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Less,
        (Some(_), None) => Ordering::Greater,
        (Some(x), Some(y)) => compare(element, x, y).then_with(|| b.inclusive.cmp(&a.inclusive)),
    }
}

/// How two upper bounds lie to one another.
pub fn compare_upper(element: TypeId, a: &Bound, b: &Bound) -> Ordering {
    match (&a.value, &b.value) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
        (Some(x), Some(y)) => compare(element, x, y).then_with(|| a.inclusive.cmp(&b.inclusive)),
    }
}

/// The order of ranges: an empty one is first, then lower bounds decide, then upper ones.
pub fn compare_ranges(a: &Range, b: &Range) -> Ordering {
    match (a.bounds(), b.bounds()) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Less,
        (Some(_), None) => Ordering::Greater,
        (Some((low, high)), Some((other_low, other_high))) => {
            compare_lower(a.element(), low, other_low)
                .then_with(|| compare_upper(a.element(), high, other_high))
        }
    }
}

/// The order of multiranges: range by range; of two that begin alike the shorter is first.
pub fn compare_multiranges(a: &Multirange, b: &Multirange) -> Ordering {
    let pairs = a.ranges().iter().zip(b.ranges());
    pairs
        .map(|(a, b)| compare_ranges(a, b))
        .find(|order| order.is_ne())
        .unwrap_or_else(|| a.ranges().len().cmp(&b.ranges().len()))
}

/// Whether two values of one type are not distinct (NULL is not distinct from NULL).
pub fn equal(kind: TypeId, a: &Datum, b: &Datum) -> bool {
    compare(kind, a, b) == Ordering::Equal
}

/// A hash that agrees with [`equal`].
pub fn hash(kind: TypeId, value: &Datum) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    hash_into(kind, value, &mut hasher);
    hasher.finish()
}

/// Feeds a value to a hasher, in agreement with [`equal`].
pub fn hash_into(kind: TypeId, value: &Datum, state: &mut impl Hasher) {
    match value {
        Datum::Null | Datum::Void | Datum::Long(_) => 0u8.hash(state),
        Datum::Bool(v) => v.hash(state),
        Datum::Int2(_) | Datum::Int4(_) | Datum::Int8(_) | Datum::Oid(_) => {
            value.as_i64().hash(state);
        }
        Datum::Float4(v) => hash_float(f64::from(*v), state),
        Datum::Float8(v) => hash_float(*v, state),
        Datum::Numeric(v) => v.hash(state),
        Datum::Text(v) if kind == TypeId::BPCHAR => v.trim_end_matches(' ').hash(state),
        Datum::Text(v) if kind == TypeId::CITEXT => fold::folded(v).hash(state),
        Datum::Text(v) => v.hash(state),
        Datum::Bytea(v) | Datum::TsVector(v) | Datum::Hstore(v) => v.hash(state),
        Datum::Vector(v) => vectors::hash_into(kind, v, state),
        Datum::TsQuery(v) => search::query::hash_into(v, state),
        Datum::Jsonb(v) => json::hash_into(v, state),
        Datum::Char(v) => v.hash(state),
        Datum::Uuid(v) => v.hash(state),
        Datum::Date(v) => v.hash(state),
        Datum::Time(v) | Datum::Timestamp(v) | Datum::TimestampTz(v) | Datum::Money(v) => {
            v.hash(state);
        }
        Datum::Geometry(v) => v.iter().for_each(|number| number.to_bits().hash(state)),
        Datum::TimeTz(v, zone) => (v, zone).hash(state),
        Datum::Interval(v) => v.total_micros().hash(state),
        Datum::Unsigned8(v) => v.hash(state),
        Datum::Array(v) => {
            for element in &v.elements {
                hash_into(v.element, element, state);
            }
        }
        Datum::Network(v) => v.hash(state),
        Datum::Bits(v) => v.hash(state),
        Datum::Range(v) => hash_range(v, state),
        Datum::Multirange(v) => v.ranges().iter().for_each(|range| hash_range(range, state)),
        Datum::Record(v) => {
            for (kind, value) in v.types.iter().zip(&v.values) {
                hash_into(*kind, value, state);
            }
        }
    }
}

fn hash_range(range: &Range, state: &mut impl Hasher) {
    let Some((lower, upper)) = range.bounds() else {
        return 0u8.hash(state);
    };
    for bound in [lower, upper] {
        (bound.value.is_some(), bound.inclusive).hash(state);
        if let Some(value) = &bound.value {
            hash_into(range.element(), value, state);
        }
    }
}

fn hash_float(value: f64, state: &mut impl Hasher) {
    if value.is_nan() {
        f64::NAN.to_bits().hash(state);
    } else {
        // Adding zero turns -0 into 0.
        (value + 0.0).to_bits().hash(state);
    }
}

/// A hash of a row that agrees with the equality of its columns.
pub fn hash_row(types: &[TypeId], row: &[Datum]) -> u64 {
    hash_values(types, row.iter())
}

/// As [`hash_row`], of values that stand apart.
#[inline]
pub fn hash_values<'d>(types: &[TypeId], values: impl Iterator<Item = &'d Datum>) -> u64 {
    types.iter().zip(values).fold(0, |all: u64, (ty, value)| {
        all.rotate_left(5).wrapping_mul(0x517c_c1b7_2722_0a95) ^ hash(*ty, value)
    })
}
