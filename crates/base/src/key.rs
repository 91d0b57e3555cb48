//! Keys whose byte order is the order of their values.
//!
//! A key is the concatenation of its columns. Each column begins with a byte that places NULL
//! before or behind all values, then comes the value in a form that [`KeyKind`] names. A descending
//! column has all its bytes inverted, NULL's too; [`ColumnOrder`] says both. No column's form is a prefix of another's, so
//! concatenation keeps the order, and a prefix of columns bounds a range: see [`KeyRange::prefix`].
//!
//! ```
//! use base::key::{put_key_column, ColumnOrder, KeyKind};
//! let key = |column: &[u8]| {
//!     let mut out = Vec::new();
//!     put_key_column(&mut out, KeyKind::Bytes, ColumnOrder::ASCENDING, Some(column)).unwrap();
//!     out
//! };
//! assert!(key(b"a") < key(b"a\0"));
//! assert!(key(b"a\0") < key(b"b"));
//! ```
//!
//! | kind | column bytes (in a row) | in a key |
//! |---|---|---|
//! | `Fixed` | already ordered (bool, uuid) | the same bytes |
//! | `Int` | 2, 4 or 8 bytes, two's complement, big-endian | first bit flipped |
//! | `Float` | 4 or 8 bytes, IEEE 754, big-endian | sign-folded; -0 is 0, NaN is last |
//! | `Bytes` | any | 0x00 escaped as 00 FF, ended by 00 00 |
//! | `Numeric` | see [`put_numeric`] | class, exponent, digits |
//! | `Jsonb` | see [`jsonb`] | rank of each part, and the part |
//! | `Range` | see [`put_range`] | each range's bounds, all as `Bytes` |
//! | `Padded` | text | without the spaces at its end, as `Bytes` |
//! | `Folded` | text | in lower case ([`crate::fold`]), as `Bytes` |
//! | `Interval` | months i32, days i32, microseconds i64, big-endian | 128-bit total of microseconds |
//! | `Array` | see [`put_array`] | each element, then the dimensions, all as `Bytes` |

pub mod jsonb;
mod vectors;

pub use vectors::{put_vector, vector_len};

use crate::codec::Reader;
use crate::error::{Error, Result, SqlState};
use crate::fold;
use crate::limits::KEY_BYTES_MAX;

/// An encoded key.
pub type Key = Vec<u8>;

/// How a column's bytes become ordered ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyKind {
    /// The bytes are ordered as they are and all have one length.
    Fixed,
    /// A signed big-endian integer.
    Int,
    /// An IEEE 754 number, big-endian.
    Float,
    /// Bytes of any length (text in C collation, bytea).
    Bytes,
    /// A decimal number.
    Numeric,
    /// An interval.
    Interval,
    /// Text whose spaces at the end do not count where it is compared (`character(n)`).
    Padded,
    /// A jsonb.
    Jsonb,
    /// A range, or the ranges of a multirange.
    Range,
    /// Text that is compared in lower case (`citext`).
    Folded,
    /// Numbers of 32 bits (`vector`).
    Vector,
    /// Numbers of 16 bits (`halfvec`).
    HalfVector,
    /// Numbers of which most are zero (`sparsevec`).
    SparseVector,
    /// An array, with the kind of its elements, which are no arrays.
    Array(ElementKind),
}

/// The kinds of what is no array; the place of each is its number in descriptors.
const OF_SCALARS: [KeyKind; 13] = [
    KeyKind::Fixed,
    KeyKind::Int,
    KeyKind::Float,
    KeyKind::Bytes,
    KeyKind::Numeric,
    KeyKind::Interval,
    KeyKind::Padded,
    KeyKind::Jsonb,
    KeyKind::Range,
    KeyKind::Folded,
    KeyKind::Vector,
    KeyKind::HalfVector,
    KeyKind::SparseVector,
];

/// What is added to the number of the elements' kind for an array.
const ARRAY_CODE: u8 = 0x80;

/// The kind of an array's elements: a place in [`OF_SCALARS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ElementKind(u8);

impl ElementKind {
    fn kind(self) -> KeyKind {
        OF_SCALARS[usize::from(self.0)]
    }
}

impl KeyKind {
    /// The kind of that number, as stored in descriptors.
    ///
    /// # Errors
    /// XX001 when there is none.
    pub fn from_u8(code: u8) -> Result<KeyKind> {
        let unknown = || Error::corrupted(format!("key kind {code}"));
        let scalar = OF_SCALARS.get(usize::from(code & !ARRAY_CODE));
        let scalar = scalar.copied().ok_or_else(unknown)?;
        match code & ARRAY_CODE {
            0 => Ok(scalar),
            _ => scalar.array().ok_or_else(unknown),
        }
    }

    /// Its number, as stored in descriptors.
    pub fn code(self) -> u8 {
        match self {
            KeyKind::Array(element) => ARRAY_CODE | element.0,
            scalar => {
                let place = OF_SCALARS.iter().position(|kind| *kind == scalar);
                place.expect("every kind but an array's is listed") as u8
            }
        }
    }

    /// The kind of arrays of what is of this kind; none for arrays.
    pub fn array(self) -> Option<KeyKind> {
        let place = OF_SCALARS.iter().position(|kind| *kind == self)?;
        Some(KeyKind::Array(ElementKind(place as u8)))
    }
}

/// How a column of a key is ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnOrder {
    /// Whether large values come first.
    pub descending: bool,
    /// Whether NULLs come before all values.
    pub nulls_first: bool,
}

impl ColumnOrder {
    /// Small values first, NULLs last.
    pub const ASCENDING: ColumnOrder = ColumnOrder {
        descending: false,
        nulls_first: false,
    };
    /// The inverse.
    pub const DESCENDING: ColumnOrder = ColumnOrder {
        descending: true,
        nulls_first: true,
    };

    const INVERTED: u8 = 1;
    const OTHER_NULLS: u8 = 2;

    /// As stored in descriptors.
    pub fn code(self) -> u8 {
        let other_nulls = self.nulls_first != self.descending;
        let flag = |flag, is_set| if is_set { flag } else { 0 };
        flag(ColumnOrder::INVERTED, self.descending) | flag(ColumnOrder::OTHER_NULLS, other_nulls)
    }

    /// The order with that code.
    ///
    /// # Errors
    /// XX001 when there is none.
    pub fn from_code(code: u8) -> Result<ColumnOrder> {
        if code > ColumnOrder::INVERTED | ColumnOrder::OTHER_NULLS {
            return Err(Error::corrupted(format!("order {code} of a key's column")));
        }
        let descending = code & ColumnOrder::INVERTED != 0;
        let other_nulls = code & ColumnOrder::OTHER_NULLS != 0;
        Ok(ColumnOrder {
            descending,
            nulls_first: descending != other_nulls,
        })
    }
}

/// The first byte of a column, before it is inverted. What is not [`VALUE`] is NULL.
pub const VALUE: u8 = 1;
const NULL_BEFORE: u8 = 0;
const NULL_BEHIND: u8 = 2;

/// The text without the spaces at its end.
fn without_padding(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|byte| *byte != b' ');
    &text[..end.map_or(0, |end| end + 1)]
}

/// Appends one column to a key.
///
/// # Errors
/// XX001 when the bytes are not of that kind; 54000 when the key grows too long.
pub fn put_key_column(
    out: &mut Key,
    kind: KeyKind,
    order: ColumnOrder,
    column: Option<&[u8]>,
) -> Result<()> {
    let start = out.len();
    match column {
        None => out.push(match order.nulls_first != order.descending {
            true => NULL_BEFORE,
            false => NULL_BEHIND,
        }),
        Some(bytes) => {
            out.push(VALUE);
            match kind {
                KeyKind::Fixed => out.extend_from_slice(bytes),
                KeyKind::Int => put_int(out, bytes)?,
                KeyKind::Float => put_float(out, bytes)?,
                KeyKind::Bytes => put_escaped(out, bytes),
                KeyKind::Numeric => put_numeric(out, bytes)?,
                KeyKind::Interval => put_interval(out, bytes)?,
                KeyKind::Padded => put_escaped(out, without_padding(bytes)),
                KeyKind::Jsonb => jsonb::put_key(out, bytes)?,
                KeyKind::Range => put_range(out, bytes)?,
                KeyKind::Folded => put_folded(out, bytes)?,
                KeyKind::Vector | KeyKind::HalfVector | KeyKind::SparseVector => {
                    put_vector(out, kind, bytes)?;
                }
                KeyKind::Array(element) => put_array(out, element.kind(), bytes)?,
            }
        }
    }
    if order.descending {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
    if out.len() > KEY_BYTES_MAX {
        return Err(Error::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!(
                "index row size {} exceeds maximum {KEY_BYTES_MAX}",
                out.len()
            ),
        ));
    }
    Ok(())
}

fn put_int(out: &mut Key, bytes: &[u8]) -> Result<()> {
    let (first, rest) = bytes
        .split_first()
        .ok_or_else(|| Error::corrupted("an integer of no bytes"))?;
    out.push(first ^ 0x80);
    out.extend_from_slice(rest);
    Ok(())
}

fn put_float(out: &mut Key, bytes: &[u8]) -> Result<()> {
    let value = match bytes {
        [a, b, c, d] => f64::from(f32::from_be_bytes([*a, *b, *c, *d])),
        _ => f64::from_be_bytes(
            bytes
                .try_into()
                .map_err(|_| Error::corrupted("a float of neither 4 nor 8 bytes"))?,
        ),
    };
    let bits = if value.is_nan() {
        f64::NAN.to_bits() & !(1 << 63)
    } else {
        // Adding zero turns -0 into 0.
        (value + 0.0).to_bits()
    };
    let ordered = if bits >> 63 == 1 {
        !bits
    } else {
        bits | 1 << 63
    };
    out.extend_from_slice(&ordered.to_be_bytes());
    Ok(())
}

fn put_folded(out: &mut Key, bytes: &[u8]) -> Result<()> {
    let text = std::str::from_utf8(bytes);
    let text = text.map_err(|_| Error::corrupted("a text in a key that is not UTF-8"))?;
    put_escaped(out, fold::folded(text).as_bytes());
    Ok(())
}

pub(crate) fn put_escaped(out: &mut Key, bytes: &[u8]) {
    for byte in bytes {
        out.push(*byte);
        if *byte == 0 {
            out.push(0xff);
        }
    }
    out.extend_from_slice(&[0, 0]);
}

/// The class byte that begins a numeric column, in ascending order of value.
#[allow(missing_docs)]
pub mod numeric_class {
    pub const NEGATIVE_INFINITY: u8 = 0;
    pub const NEGATIVE: u8 = 1;
    pub const ZERO: u8 = 2;
    pub const POSITIVE: u8 = 3;
    pub const INFINITY: u8 = 4;
    pub const NAN: u8 = 5;
}

/// Appends a numeric. Its column form is: a class byte ([`numeric_class`]), the display scale as
/// u16, the weight as i16 (the power of 10,000 of the first digit), then the digits in base 10,000
/// as u16, all big-endian, without leading or trailing zero digits. The scale is no part of a key,
/// so 1.0 and 1.00 are the same key.
pub fn put_numeric(out: &mut Key, bytes: &[u8]) -> Result<()> {
    let mut reader = Reader::new(bytes);
    let class = reader.u8()?;
    let _scale = reader.take(2)?;
    let weight = reader.take(2)?;
    out.push(class);
    let negative = match class {
        numeric_class::NEGATIVE => true,
        numeric_class::POSITIVE => false,
        _ => return Ok(()),
    };
    let start = out.len();
    put_int(out, weight)?;
    for digit in reader.rest().chunks(2) {
        // Digits are below 10,000, so the first byte plus one is never 0, which ends them.
        let [high, low] = digit else {
            return Err(Error::corrupted("half a digit of a numeric"));
        };
        out.extend_from_slice(&[high + 1, *low]);
    }
    out.push(0);
    if negative {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
    Ok(())
}

/// What the first byte of a range in a column says, as in PostgreSQL's binary form.
#[allow(missing_docs)]
pub mod range_flags {
    pub const EMPTY: u8 = 1;
    pub const LOWER_INCLUSIVE: u8 = 2;
    pub const UPPER_INCLUSIVE: u8 = 4;
    pub const LOWER_INFINITE: u8 = 8;
    pub const UPPER_INFINITE: u8 = 16;
}

/// Appends ranges. Their column form is: the type of the bounds as a varint, how those become keys
/// as a byte ([`KeyKind`]), then for each range its [`range_flags`] and the bounds that it has, each
/// with its length. In the key a range that is empty comes first; then the lower bound decides, where
/// none is the least, and of two at one place that which includes it; then the upper one.
///
/// # Errors
/// XX001 when the bytes are no ranges; 54000 when the key grows too long.
pub fn put_range(out: &mut Key, bytes: &[u8]) -> Result<()> {
    let mut reader = Reader::new(bytes);
    let _element = reader.varint()?;
    let kind = KeyKind::from_u8(reader.u8()?)?;
    if matches!(kind, KeyKind::Range | KeyKind::Array(_)) {
        // Bounds that are ranges would be read by calling this again, as deep as a type goes.
        return Err(Error::corrupted("a range of ranges in a key"));
    }
    let mut key = Key::new();
    while !reader.is_empty() {
        let flags = reader.u8()?;
        if flags & range_flags::EMPTY != 0 {
            key.push(0);
            continue;
        }
        key.push(1);
        let has = |flag| flags & flag != 0;
        match has(range_flags::LOWER_INFINITE) {
            true => key.push(0),
            false => {
                put_key_column(
                    &mut key,
                    kind,
                    ColumnOrder::ASCENDING,
                    Some(reader.bytes()?),
                )?;
                key.push(u8::from(!has(range_flags::LOWER_INCLUSIVE)));
            }
        }
        match has(range_flags::UPPER_INFINITE) {
            true => key.push(VALUE + 1),
            false => {
                put_key_column(
                    &mut key,
                    kind,
                    ColumnOrder::ASCENDING,
                    Some(reader.bytes()?),
                )?;
                key.push(u8::from(has(range_flags::UPPER_INCLUSIVE)));
            }
        }
    }
    put_escaped(out, &key);
    Ok(())
}

/// Dimensions that an array has at most.
const DIMENSIONS_MAX: u64 = 6;

/// Appends an array. Its column form is: the type of the elements as a varint, the number of its
/// dimensions, the length and the lower bound of each, then each element as 0 for NULL, or as 1 and its
/// bytes with their length. In the key the elements decide, where NULL is the largest, and of two
/// arrays of which one begins with the other the shorter is the smaller; then the number of
/// dimensions, their lengths, and their lower bounds.
///
/// # Errors
/// XX001 when the bytes are no array; 54000 when the key grows too long.
pub fn put_array(out: &mut Key, element: KeyKind, bytes: &[u8]) -> Result<()> {
    let mut reader = Reader::new(bytes);
    let _element = reader.varint()?;
    let count = reader.varint()?;
    if count > DIMENSIONS_MAX {
        return Err(Error::corrupted(format!("an array of {count} dimensions")));
    }
    let (mut lengths, mut lowers) = (Key::new(), Key::new());
    for _ in 0..count {
        put_int(&mut lengths, &(reader.varint()? as i64).to_be_bytes())?;
        put_int(&mut lowers, &reader.signed()?.to_be_bytes())?;
    }
    let mut key = Key::new();
    while !reader.is_empty() {
        let value = match reader.u8()? {
            0 => None,
            _ => Some(reader.bytes()?),
        };
        put_key_column(&mut key, element, ColumnOrder::ASCENDING, value)?;
    }
    // Less than what any element begins with.
    key.push(0);
    key.push(count as u8);
    key.extend_from_slice(&lengths);
    key.extend_from_slice(&lowers);
    put_escaped(out, &key);
    Ok(())
}

fn put_interval(out: &mut Key, bytes: &[u8]) -> Result<()> {
    let mut reader = Reader::new(bytes);
    let months = i128::from(reader.u32()? as i32);
    let days = i128::from(reader.u32()? as i32);
    let micros = i128::from(reader.u64()? as i64);
    // PostgreSQL compares intervals with months of 30 days and days of 24 hours.
    let total = (months * 30 + days) * 86_400_000_000 + micros;
    put_int(out, &total.to_be_bytes())
}

/// A range of keys: from `start` (included) to `end` (excluded); no end means to the last key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyRange {
    /// The first key that may be in the range.
    pub start: Key,
    /// The first key after the range.
    pub end: Option<Key>,
}

impl KeyRange {
    /// Every key.
    pub fn all() -> KeyRange {
        KeyRange {
            start: Vec::new(),
            end: None,
        }
    }

    /// The keys that begin with `prefix`.
    pub fn prefix(prefix: &[u8]) -> KeyRange {
        KeyRange {
            start: prefix.to_vec(),
            end: successor(prefix),
        }
    }

    /// One key alone.
    pub fn point(key: &[u8]) -> KeyRange {
        let mut end = key.to_vec();
        end.push(0);
        KeyRange {
            start: key.to_vec(),
            end: Some(end),
        }
    }

    /// Whether the key lies in the range.
    pub fn contains(&self, key: &[u8]) -> bool {
        key >= self.start.as_slice() && self.end.as_deref().is_none_or(|end| key < end)
    }
}

/// The first key after all that begin with `prefix`; none when the prefix is all 0xff.
pub fn successor(prefix: &[u8]) -> Option<Key> {
    let last = prefix.iter().rposition(|byte| *byte != 0xff)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(kind: KeyKind, order: ColumnOrder, column: Option<&[u8]>) -> Key {
        let mut out = Vec::new();
        put_key_column(&mut out, kind, order, column).unwrap();
        out
    }

    fn assert_ascending(kind: KeyKind, columns: &[&[u8]]) {
        for pair in columns.windows(2) {
            let (low, high) = (Some(pair[0]), Some(pair[1]));
            assert!(key(kind, UP, low) < key(kind, UP, high), "{pair:?}");
            assert!(key(kind, DOWN, low) > key(kind, DOWN, high), "{pair:?}");
        }
        let last = columns.last().copied();
        assert!(key(kind, UP, last) < key(kind, UP, None), "NULL is last");
    }

    const UP: ColumnOrder = ColumnOrder::ASCENDING;
    const DOWN: ColumnOrder = ColumnOrder::DESCENDING;

    #[test]
    fn nulls_stand_before_or_behind_all_values() {
        let least = Some(&[0x80, 0, 0, 0][..]);
        let greatest = Some(&[0x7f, 0xff, 0xff, 0xff][..]);
        for code in 0..4 {
            let order = ColumnOrder::from_code(code).unwrap();
            assert_eq!(order.code(), code);
            for value in [least, greatest] {
                let value = key(KeyKind::Int, order, value);
                let null = key(KeyKind::Int, order, None);
                assert_eq!(null < value, order.nulls_first, "{order:?}");
            }
        }
        assert!(ColumnOrder::from_code(4).is_err());
    }

    #[test]
    fn keys_sort_as_their_values() {
        let ints: Vec<_> = [i64::MIN, -300, -1, 0, 1, 255, 256, i64::MAX]
            .map(i64::to_be_bytes)
            .to_vec();
        assert_ascending(
            KeyKind::Int,
            &ints.iter().map(|b| &b[..]).collect::<Vec<_>>(),
        );
        let floats: Vec<_> = [
            f64::NEG_INFINITY,
            -1.5,
            -1e-300,
            0.0,
            2.0,
            f64::INFINITY,
            f64::NAN,
        ]
        .map(f64::to_be_bytes)
        .to_vec();
        assert_ascending(
            KeyKind::Float,
            &floats.iter().map(|b| &b[..]).collect::<Vec<_>>(),
        );
        assert_ascending(
            KeyKind::Bytes,
            &[b"", b"\0", b"\0\0", b"\0a", b"a", b"ab", b"b"],
        );
        assert_eq!(
            key(KeyKind::Float, UP, Some(&(-0.0f64).to_be_bytes())),
            key(KeyKind::Float, UP, Some(&0.0f64.to_be_bytes()))
        );
    }

    #[test]
    fn folded_texts_are_one_key_in_any_case() {
        let folded = |text: &str| key(KeyKind::Folded, UP, Some(text.as_bytes()));
        assert_eq!(folded("Straße ÉTÉ"), folded("sTRAßE été"));
        assert_ascending(KeyKind::Folded, &[b"", b"A", b"ab", b"AC", b"b"]);
    }

    #[test]
    fn numerics_sort_by_value_and_not_by_scale() {
        use numeric_class::*;
        let numeric = |class: u8, scale: u16, weight: i16, digits: &[u16]| {
            let mut out = vec![class];
            out.extend_from_slice(&scale.to_be_bytes());
            out.extend_from_slice(&weight.to_be_bytes());
            digits
                .iter()
                .for_each(|d| out.extend_from_slice(&d.to_be_bytes()));
            out
        };
        let columns = [
            numeric(NEGATIVE_INFINITY, 0, 0, &[]),
            numeric(NEGATIVE, 0, 1, &[1]),
            numeric(NEGATIVE, 0, 0, &[5, 1]),
            numeric(NEGATIVE, 0, 0, &[5]),
            numeric(ZERO, 0, 0, &[]),
            numeric(POSITIVE, 0, -1, &[9999]),
            numeric(POSITIVE, 0, 0, &[5]),
            numeric(POSITIVE, 0, 0, &[5, 1]),
            numeric(POSITIVE, 0, 1, &[1]),
            numeric(INFINITY, 0, 0, &[]),
            numeric(NAN, 0, 0, &[]),
        ];
        assert_ascending(
            KeyKind::Numeric,
            &columns.iter().map(Vec::as_slice).collect::<Vec<_>>(),
        );
        assert_eq!(
            key(KeyKind::Numeric, UP, Some(&numeric(POSITIVE, 1, 0, &[5]))),
            key(KeyKind::Numeric, UP, Some(&numeric(POSITIVE, 2, 0, &[5])))
        );
    }

    #[test]
    fn kinds_come_back_from_their_codes() {
        let kinds = OF_SCALARS.iter().copied();
        let arrays = kinds.clone().filter_map(KeyKind::array);
        for kind in kinds.chain(arrays) {
            assert_eq!(KeyKind::from_u8(kind.code()).unwrap(), kind);
        }
        let next = OF_SCALARS.len() as u8;
        for code in [next, 0x7f, ARRAY_CODE | next, 0xff] {
            assert!(KeyKind::from_u8(code).is_err(), "{code}");
        }
        assert_eq!(KeyKind::Int.array().unwrap().array(), None);
    }

    #[test]
    fn arrays_sort_by_elements_then_by_shape() {
        // The type of the elements, dimensions with lengths and (doubled) lower bounds, elements.
        let array = |shape: &[u8], elements: &[Option<&[u8]>]| {
            let mut out = vec![25, (shape.len() / 2) as u8];
            out.extend_from_slice(shape);
            for element in elements {
                match element {
                    None => out.push(0),
                    Some(text) => {
                        out.extend_from_slice(&[1, text.len() as u8]);
                        out.extend_from_slice(text);
                    }
                }
            }
            out
        };
        let (a, zero) = (Some(&b"a"[..]), Some(&b"a\0"[..]));
        let ascending = [
            array(&[], &[]),
            array(&[1, 2], &[Some(b"")]),
            array(&[1, 0], &[a]),
            array(&[1, 2], &[a]),
            array(&[2, 2], &[a, a]),
            array(&[1, 2, 2, 2], &[a, a]),
            array(&[2, 2, 1, 2], &[a, a]),
            array(&[2, 2], &[a, None]),
            array(&[1, 2], &[zero]),
            array(&[1, 2], &[None]),
            array(&[2, 2], &[None, a]),
        ];
        let ascending = ascending.each_ref().map(Vec::as_slice);
        assert_ascending(KeyKind::Bytes.array().unwrap(), &ascending);
    }

    #[test]
    fn ranges_hold_what_they_should() {
        let range = KeyRange::prefix(b"ab");
        assert!(range.contains(b"ab") && range.contains(b"ab\xff\xff"));
        assert!(!range.contains(b"ac") && !range.contains(b"aa"));
        assert_eq!(successor(b"a\xff"), Some(b"b".to_vec()));
        assert_eq!(successor(b"\xff\xff"), None);
        let point = KeyRange::point(b"k");
        assert!(point.contains(b"k") && !point.contains(b"k\0"));
    }
}
