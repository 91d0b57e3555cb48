//! How many bytes PostgreSQL would keep for a value: what `avg_width`, `pg_column_size` and the widths in EXPLAIN are
//! of.
//!
//! ```text
//! width(TypeId::TEXT, 'abc')     stored 4: a short length and three bytes; raw 7, with a long one
//! ```
//!
//! # What it leaves out
//! What compression would save of texts that it tries to compress, and the exact form of `jsonb`.

use crate::{encode_column, Datum, Record, TypeId, NO_TYPMOD};

/// A value of variable length with its length, when that is long.
const LONG_HEADER: usize = 4;
/// When it is short.
const SHORT_HEADER: usize = 1;
/// A value with a short length has so many bytes at most, its length included.
const SHORT_MAX: usize = 127;
/// What a row has before its values.
const ROW_HEADER: usize = 23;
/// What an array has before its dimensions.
const ARRAY_HEADER: usize = 16;

/// The bytes of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Width {
    /// In a row.
    pub stored: usize,
    /// As it is in memory, with a long header.
    pub raw: usize,
}

/// That of a value that is not NULL.
pub fn width(type_id: TypeId, value: &Datum) -> Width {
    if let Ok(fixed) = usize::try_from(type_id.len()) {
        return Width {
            stored: fixed,
            raw: fixed,
        };
    }
    if let Datum::Long(long) = value {
        return Width {
            stored: long.stored.len(),
            raw: usize::MAX,
        };
    }
    let payload = payload(value);
    let short = SHORT_HEADER + payload;
    Width {
        stored: match short <= SHORT_MAX {
            true => short,
            false => LONG_HEADER + payload,
        },
        raw: LONG_HEADER + payload,
    }
}

fn payload(value: &Datum) -> usize {
    match value {
        Datum::Network(network) => 2 + network.octets().len(),
        Datum::Bits(bits) => 4 + bits.bytes().len(),
        // A length, and the flag of a path or the box around a polygon.
        Datum::Geometry(numbers) => match numbers.len() % 2 {
            0 => 36 + size_of_val(&numbers[..]),
            _ => 12 + size_of_val(&numbers[1..]),
        },
        Datum::Text(text) => text.len(),
        Datum::Bytea(bytes) | Datum::Jsonb(bytes) => bytes.len(),
        // A header of dimensions before the numbers.
        Datum::Vector(bytes) => 4 + bytes.len(),
        Datum::Hstore(bytes) => crate::hstore::size_of(bytes).saturating_sub(4),
        Datum::TsVector(bytes) => crate::search::vector::size_of(bytes).saturating_sub(4),
        Datum::TsQuery(bytes) => match crate::search::Query::decode(bytes) {
            Ok(query) => query.size().saturating_sub(4),
            Err(_) => bytes.len(),
        },
        Datum::Numeric(_) => numeric(value),
        Datum::Array(array) => {
            let elements = array.elements.iter().filter(|element| !element.is_null());
            let of = |element: &Datum| match usize::try_from(array.element.len()) {
                Ok(fixed) => fixed,
                Err(_) => aligned(width(array.element, element).raw, 4),
            };
            let nulls = match array.elements.iter().any(Datum::is_null) {
                true => array.elements.len().div_ceil(8),
                false => 0,
            };
            let head = aligned(ARRAY_HEADER + 8 * array.dimensions.len() + nulls, 8);
            head - LONG_HEADER + elements.map(of).sum::<usize>()
        }
        Datum::Record(record) => record_payload(record),
        _ => 0,
    }
}

/// A row has a header, a bit for each column where one is NULL, and its values one after the other.
fn record_payload(record: &Record) -> usize {
    let nulls = match record.values.iter().any(Datum::is_null) {
        true => record.values.len().div_ceil(8),
        false => 0,
    };
    let columns = record.types.iter().zip(&record.values);
    let end = columns.fold(0, |end, (type_id, value)| match value.is_null() {
        true => end,
        false => {
            let stored = width(*type_id, value).stored;
            let is_short = type_id.len() < 0 && stored <= SHORT_MAX;
            let to = if is_short { 1 } else { stored.clamp(1, 4) };
            let to = if type_id.len() == 8 { 8 } else { to };
            aligned(end, to.next_power_of_two()) + stored
        }
    });
    aligned(ROW_HEADER + nulls, 8) + end - LONG_HEADER
}

/// A number has a word, or two if it has many digits before or behind its point, and one for each four
/// digits.
fn numeric(value: &Datum) -> usize {
    let mut bytes = Vec::new();
    if encode_column(TypeId::NUMERIC, NO_TYPMOD, value, &mut bytes).is_err() {
        return 0;
    }
    let word = |at: usize| match bytes.get(at..at + 2) {
        Some(word) => i32::from(i16::from_be_bytes([word[0], word[1]])),
        None => 0,
    };
    let (scale, weight) = (word(1), word(3));
    let is_short = scale <= 63 && (-64..=63).contains(&weight);
    let header = if is_short { 2 } else { 4 };
    header + bytes.len().saturating_sub(5)
}

fn aligned(bytes: usize, to: usize) -> usize {
    bytes.div_ceil(to) * to
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Array, Numeric};

    /// `pg_column_size` of the same values in a table of PostgreSQL 15.
    #[test]
    fn as_many_bytes_as_in_postgresql() {
        let stored = |type_id, value: Datum| width(type_id, &value).stored;
        assert_eq!(stored(TypeId::INT4, Datum::Int4(5)), 4);
        assert_eq!(stored(TypeId::NAME, Datum::text("abc")), 64);
        assert_eq!(stored(TypeId::TEXT, Datum::text("abc")), 4);
        assert_eq!(stored(TypeId::TEXT, Datum::text("x".repeat(126))), 127);
        assert_eq!(stored(TypeId::TEXT, Datum::text("x".repeat(127))), 131);
        let address = crate::network::host_address(Some("10.0.0.1"));
        assert_eq!(stored(TypeId::INET, address), 7);
        let number = |value: i64| Datum::Numeric(Numeric::from(value));
        assert_eq!(stored(TypeId::NUMERIC, number(0)), 3);
        assert_eq!(stored(TypeId::NUMERIC, number(9_999)), 5);
        assert_eq!(stored(TypeId::NUMERIC, number(12_345)), 7);
        let array = Array::of(TypeId::INT4, vec![Datum::Int4(1), Datum::Int4(2)]);
        let array = Datum::Array(Arc::new(array));
        assert_eq!(
            stored(TypeId::array_of(TypeId::INT4).expect("it"), array),
            29
        );
    }

    #[test]
    fn what_is_out_of_the_row_is_wide() {
        let long = crate::LongValue {
            type_id: TypeId::TEXT,
            typmod: -1,
            tree: base::TreeId(1),
            stored: vec![0; 18].into(),
        };
        let width = width(TypeId::TEXT, &Datum::Long(Arc::new(long)));
        assert_eq!(width.stored, 18);
        assert!(width.raw > 1_024);
    }
}
