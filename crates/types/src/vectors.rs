//! The types of extension `vector`: what they look like in memory, as text and on the wire.
//!
//! | type | as text | bytes in memory and in columns |
//! |---|---|---|
//! | `vector` | `[1,2.5,-3]` | each number as `f32`, little-endian |
//! | `halfvec` | `[1,2.5,-3]` | each number in 16 bits (IEEE 754 binary16), little-endian |
//! | `sparsevec` | `{1:2.5,7:-3}/9` | the dimensions, the places from 0 on as `u32`, the numbers as `f32` |
//!
//! The bytes are read where they lie: whoever computes with them looks at a few numbers at a time
//! and makes no list of them.
//!
//! # Invariants
//! - A vector has one number at least, and none is NaN or infinite.
//! - The places of a sparse vector ascend, lie within its dimensions, and none of its numbers is zero.
//!
//! Source: the README of pgvector 0.8, and what its tests say of errors.
//!
//! # What it leaves out
//! Numbers in hexadecimal, which C's `strtof` would read.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use base::coro;
use base::error::{Error, Result, SqlState};
use base::key::{put_vector, KeyKind};

use super::search::vector::take;
use super::{float, Datum, TypeId};

/// The most numbers of a `vector` or a `halfvec`, and the most that are not zero of a `sparsevec`.
pub const NUMBERS_MAX: usize = 16_000;
/// The most dimensions of a `sparsevec`.
pub const SPARSE_DIMENSIONS_MAX: usize = 1_000_000_000;
/// A number that is written with more characters is none.
const NUMBER_CHARACTERS_MAX: usize = 4_096;
/// What reading or writing a number counts for, in the units of [`coro::work`].
const NUMBER_WORK: usize = 32;

fn name(kind: TypeId) -> String {
    kind.fixed_name()
}

/// 22000: what a vector cannot be.
pub fn wrong(message: impl Into<String>) -> Error {
    Error::new(SqlState::of("22000"), message)
}

fn dimensions_max(kind: TypeId) -> usize {
    match kind {
        TypeId::SPARSEVEC => SPARSE_DIMENSIONS_MAX,
        _ => NUMBERS_MAX,
    }
}

/// Whether a type's values may have so many dimensions.
///
/// # Errors
/// 22000 for none, 54000 for too many.
pub fn check_dimensions(kind: TypeId, count: i64) -> Result<()> {
    let (name, max) = (name(kind), dimensions_max(kind));
    match usize::try_from(count) {
        Ok(count) if (1..=max).contains(&count) => Ok(()),
        Ok(count) if count > max => Err(Error::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!("{name} cannot have more than {max} dimensions"),
        )),
        _ => Err(wrong(format!("{name} must have at least 1 dimension"))),
    }
}

/// Whether a number may be one of a vector's.
///
/// # Errors
/// 22000.
pub fn check_number(kind: TypeId, number: f32) -> Result<()> {
    match number {
        _ if number.is_nan() => Err(wrong(format!("NaN not allowed in {}", name(kind)))),
        _ if number.is_infinite() => {
            let message = format!("infinite value not allowed in {}", name(kind));
            Err(wrong(message))
        }
        _ => Ok(()),
    }
}

/// How many dimensions a value has.
pub fn dimensions(kind: TypeId, bytes: &[u8]) -> usize {
    match kind {
        TypeId::VECTOR => bytes.len() / 4,
        TypeId::HALFVEC => bytes.len() / 2,
        _ => Sparse::of(bytes).dimensions,
    }
}

/// Whether two vectors have as many dimensions; how many.
///
/// # Errors
/// 22000.
pub fn same_dimensions(kind: TypeId, a: &[u8], b: &[u8]) -> Result<usize> {
    let (of_a, of_b) = (dimensions(kind, a), dimensions(kind, b));
    match of_a == of_b {
        true => Ok(of_a),
        false => Err(wrong(format!(
            "different {} dimensions {of_a} and {of_b}",
            name(kind)
        ))),
    }
}

/// Whether a value has the dimensions of its type's modifier.
///
/// # Errors
/// 22000.
pub fn check_expected(kind: TypeId, typmod: i32, bytes: &[u8]) -> Result<()> {
    let found = dimensions(kind, bytes);
    match usize::try_from(typmod) {
        Ok(wanted) if wanted != found => {
            Err(wrong(format!("expected {wanted} dimensions, not {found}")))
        }
        _ => Ok(()),
    }
}

pub(crate) fn typmod_in(kind: TypeId, arguments: &[i32]) -> Result<i32> {
    let bad = |message: String| Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
    let (name, max) = (name(kind), dimensions_max(kind));
    match arguments {
        [n] if *n < 1 => bad(format!("dimensions for type {name} must be at least 1")),
        [n] if usize::try_from(*n).is_ok_and(|n| n > max) => {
            bad(format!("dimensions for type {name} cannot exceed {max}"))
        }
        [n] => Ok(*n),
        _ => bad("invalid type modifier".to_owned()),
    }
}

// ---- Numbers of 16 bits ----

/// What brings the exponent of 16 bits to where that of 32 has it: 2 to the power of 112.
const HALF_SCALE: u32 = 0x7780_0000;

/// The number that 16 bits are. None of a vector is infinite.
#[inline]
pub fn of_half(bits: u16) -> f32 {
    let magnitude = f32::from_bits(u32::from(bits & 0x7fff) << 13) * f32::from_bits(HALF_SCALE);
    f32::from_bits(magnitude.to_bits() | u32::from(bits & 0x8000) << 16)
}

/// The nearest number of 16 bits, the even one of two; none if the number is too large, or is none.
pub fn to_half(number: f32) -> Option<u16> {
    /// From here on a number is nearer to infinity than to the largest of 16 bits, 65504.
    const TOO_LARGE: u32 = 0x477f_f000;
    /// The least that has all bits: 2 to the power of -14.
    const NORMAL_MIN: u32 = 0x3880_0000;
    let bits = number.to_bits();
    let (sign, magnitude) = ((bits >> 16 & 0x8000) as u16, bits & 0x7fff_ffff);
    if magnitude >= TOO_LARGE {
        return None;
    }
    if magnitude < NORMAL_MIN {
        let steps = f32::from_bits(magnitude) * 16_777_216.0;
        return Some(sign | steps.round_ties_even() as u16);
    }
    let rounded = magnitude + 0x0fff + (magnitude >> 13 & 1);
    Some(sign | ((rounded - 0x3800_0000) >> 13) as u16)
}

fn shown(number: f32) -> String {
    let mut out = String::new();
    float::write_f32(number, 1, &mut out);
    out
}

/// 22003: a number in the text that the type cannot have.
fn out_of_range(kind: TypeId, text: &str) -> Error {
    let message = format!("\"{text}\" is out of range for type {}", name(kind));
    Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message)
}

// ---- Values ----

/// A sparse vector's parts.
#[derive(Clone, Copy, Debug)]
pub struct Sparse<'b> {
    /// How many numbers it has, with those that are zero.
    pub dimensions: usize,
    places: &'b [[u8; 4]],
    numbers: &'b [[u8; 4]],
}

impl<'b> Sparse<'b> {
    /// The parts of such bytes.
    pub fn of(bytes: &'b [u8]) -> Sparse<'b> {
        let (first, rest) = match bytes.as_chunks::<4>().0.split_first() {
            Some((first, rest)) => (u32::from_le_bytes(*first), rest),
            None => (0, &[][..]),
        };
        let (places, numbers) = rest.split_at(rest.len() / 2);
        Sparse {
            dimensions: first as usize,
            places,
            numbers,
        }
    }

    /// How many are not zero.
    pub fn count(&self) -> usize {
        self.places.len()
    }

    /// The places that are not zero, from 0 on, with their numbers.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (u32, f32)> + Clone + 'b {
        let places = self.places.iter().map(|bytes| u32::from_le_bytes(*bytes));
        let numbers = self.numbers.iter().map(|bytes| f32::from_le_bytes(*bytes));
        places.zip(numbers)
    }
}

/// The numbers of a `vector` or a `halfvec`.
pub fn numbers(kind: TypeId, bytes: &[u8]) -> Vec<f32> {
    match kind {
        TypeId::HALFVEC => {
            let halves = bytes.as_chunks::<2>().0.iter();
            halves.map(|b| of_half(u16::from_le_bytes(*b))).collect()
        }
        _ => {
            let singles = bytes.as_chunks::<4>().0.iter();
            singles.map(|b| f32::from_le_bytes(*b)).collect()
        }
    }
}

/// A value of any of the types with these numbers.
///
/// # Errors
/// 22000, 54000; 22003 for what is too large for 16 bits.
pub fn make(kind: TypeId, numbers: &[f32]) -> Result<Datum> {
    check_dimensions(kind, i64::try_from(numbers.len()).unwrap_or(i64::MAX))?;
    coro::work(numbers.len() * 4)?;
    let mut out = Vec::with_capacity(numbers.len() * 4);
    if kind == TypeId::SPARSEVEC {
        let entries = (0..).zip(numbers.iter().copied());
        let entries = entries.filter(|(_, number)| *number != 0.0).collect();
        return make_sparse(numbers.len(), entries);
    }
    for number in numbers {
        check_number(kind, *number)?;
        match kind {
            TypeId::HALFVEC => {
                let half = to_half(*number).ok_or_else(|| out_of_range(kind, &shown(*number)))?;
                out.extend_from_slice(&half.to_le_bytes());
            }
            _ => out.extend_from_slice(&number.to_le_bytes()),
        }
    }
    Ok(Datum::Vector(Arc::from(out)))
}

/// A sparse vector of places from 0 on, in ascending order, with numbers of which none is zero.
///
/// # Errors
/// 22000, 54000.
pub fn make_sparse(dimensions: usize, entries: Vec<(u32, f32)>) -> Result<Datum> {
    let kind = TypeId::SPARSEVEC;
    check_dimensions(kind, i64::try_from(dimensions).unwrap_or(i64::MAX))?;
    check_count(entries.len())?;
    let mut out = Vec::with_capacity(4 + entries.len() * 8);
    out.extend_from_slice(&(dimensions as u32).to_le_bytes());
    let mut before = None;
    for (place, number) in &entries {
        check_number(kind, *number)?;
        if *place as usize >= dimensions {
            return Err(wrong("sparsevec index out of bounds"));
        }
        match before {
            Some(before) if before == *place => {
                return Err(wrong("sparsevec indices must not contain duplicates"))
            }
            Some(before) if before > *place => {
                return Err(wrong("sparsevec indices must be in ascending order"))
            }
            _ => before = Some(*place),
        }
        out.extend_from_slice(&place.to_le_bytes());
    }
    for (_, number) in &entries {
        out.extend_from_slice(&number.to_le_bytes());
    }
    Ok(Datum::Vector(Arc::from(out)))
}

fn check_count(count: usize) -> Result<()> {
    match count > NUMBERS_MAX {
        false => Ok(()),
        true => Err(Error::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!("sparsevec cannot have more than {NUMBERS_MAX} non-zero elements"),
        )),
    }
}

/// The value of column bytes.
///
/// # Errors
/// XX001.
pub(crate) fn of_column(kind: TypeId, bytes: &[u8]) -> Result<Datum> {
    let whole = match kind {
        TypeId::VECTOR => bytes.len() % 4 == 0,
        TypeId::HALFVEC => bytes.len() % 2 == 0,
        _ => bytes.len() % 8 == 4,
    };
    match whole {
        true => Ok(Datum::Vector(Arc::from(bytes))),
        false => Err(Error::corrupted("a column is no vector")),
    }
}

// ---- Order ----

fn key(kind: TypeId, bytes: &[u8]) -> Vec<u8> {
    let kind = match kind {
        TypeId::VECTOR => KeyKind::Vector,
        TypeId::HALFVEC => KeyKind::HalfVector,
        _ => KeyKind::SparseVector,
    };
    let mut out = Vec::with_capacity(bytes.len() * 2);
    // Bytes that are no vector have an order too.
    if put_vector(&mut out, kind, bytes).is_err() {
        out.extend_from_slice(bytes);
    }
    out
}

/// Orders two vectors of one type as their keys are ordered.
pub(crate) fn compare(kind: TypeId, a: &[u8], b: &[u8]) -> Ordering {
    if kind != TypeId::VECTOR {
        return key(kind, a).cmp(&key(kind, b));
    }
    let pairs = a.as_chunks::<4>().0.iter().zip(b.as_chunks::<4>().0);
    let number = |bytes: &[u8; 4]| f32::from_le_bytes(*bytes);
    let orders = pairs.map(|(a, b)| number(a).partial_cmp(&number(b)));
    let mut differing = orders.flatten().filter(|order| order.is_ne());
    differing.next().unwrap_or_else(|| a.len().cmp(&b.len()))
}

pub(crate) fn hash_into(kind: TypeId, bytes: &[u8], state: &mut impl Hasher) {
    key(kind, bytes).hash(state);
}

// ---- Text ----

struct Scanner<'t> {
    kind: TypeId,
    text: &'t str,
    rest: &'t str,
}

impl<'t> Scanner<'t> {
    fn invalid(&self) -> Error {
        let message = format!(
            "invalid input syntax for type {}: \"{}\"",
            name(self.kind),
            self.text
        );
        Error::new(SqlState::INVALID_TEXT_REPRESENTATION, message)
    }

    fn skip_spaces(&mut self) {
        let is_space = |c| matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c');
        self.rest = self.rest.trim_start_matches(is_space);
    }

    /// Takes that character behind spaces, if it comes next.
    fn takes(&mut self, wanted: char) -> bool {
        self.skip_spaces();
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// The letters, digits, signs and points that come next.
    fn word(&mut self) -> &'t str {
        self.skip_spaces();
        let belongs = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let longest = self.rest.char_indices().take(NUMBER_CHARACTERS_MAX);
        let mut characters = longest.skip_while(|(_, c)| belongs(*c));
        let end = match characters.next() {
            Some((end, _)) => end,
            None => self.rest.len().min(NUMBER_CHARACTERS_MAX),
        };
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn number(&mut self) -> Result<f32> {
        coro::work(NUMBER_WORK)?;
        let word = self.word();
        let number: f32 = word.parse().map_err(|_| self.invalid())?;
        let is_written = |c: char| c.is_ascii_digit();
        if number.is_infinite() && word.contains(is_written) {
            return Err(out_of_range(self.kind, word));
        }
        check_number(self.kind, number)?;
        if self.kind == TypeId::HALFVEC && to_half(number).is_none() {
            return Err(out_of_range(self.kind, word));
        }
        Ok(number)
    }

    /// An integer, of which what is too large is cut to what is out of all bounds.
    fn integer(&mut self) -> Result<i64> {
        let word = self.word();
        let digits = word.strip_prefix(['+', '-']).unwrap_or(word);
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(self.invalid());
        }
        let edge = match word.starts_with('-') {
            true => i64::MIN / 2,
            false => i64::MAX,
        };
        Ok(word.parse().unwrap_or(edge))
    }

    fn ends(&mut self, junk: &str) -> Result<()> {
        self.skip_spaces();
        match self.rest.is_empty() {
            true => Ok(()),
            false => Err(self.invalid().with_detail(junk.to_owned())),
        }
    }

    fn dense(mut self) -> Result<Datum> {
        if !self.takes('[') {
            let detail = "Vector contents must start with \"[\".";
            return Err(self.invalid().with_detail(detail.to_owned()));
        }
        let mut numbers = Vec::new();
        if self.takes(']') {
            check_dimensions(self.kind, 0)?;
        }
        loop {
            if numbers.len() == NUMBERS_MAX {
                check_dimensions(self.kind, i64::MAX)?;
            }
            numbers.push(self.number()?);
            if self.takes(']') {
                break;
            }
            if !self.takes(',') {
                return Err(self.invalid());
            }
        }
        self.ends("Junk after closing right brace.")?;
        make(self.kind, &numbers)
    }

    fn sparse(mut self) -> Result<Datum> {
        if !self.takes('{') {
            let detail = "Vector contents must start with \"{\".";
            return Err(self.invalid().with_detail(detail.to_owned()));
        }
        let mut entries: Vec<(i64, f32)> = Vec::new();
        let mut more = !self.takes('}');
        while more {
            check_count(entries.len() + 1)?;
            let place = self.integer()?;
            if !self.takes(':') {
                return Err(self.invalid());
            }
            let number = self.number()?;
            if number != 0.0 {
                entries.push((place - 1, number));
            }
            more = !self.takes('}');
            if more && !self.takes(',') {
                return Err(self.invalid());
            }
        }
        if !self.takes('/') {
            let detail = "Unexpected end of input.".to_owned();
            return Err(self.invalid().with_detail(detail));
        }
        let dimensions = self.integer()?;
        self.ends("Junk after closing.")?;
        check_dimensions(self.kind, dimensions)?;
        entries.sort_by_key(|entry| entry.0);
        // What lies outside of all dimensions stays so.
        let place = |place: i64| u32::try_from(place).unwrap_or(u32::MAX);
        let entries = entries.into_iter().map(|(at, number)| (place(at), number));
        make_sparse(dimensions as usize, entries.collect())
    }
}

/// Reads the text form.
///
/// # Errors
/// 22P02, 22003, 22000, 54000.
pub fn input(kind: TypeId, text: &str) -> Result<Datum> {
    let scanner = Scanner {
        kind,
        text,
        rest: text,
    };
    match kind {
        TypeId::SPARSEVEC => scanner.sparse(),
        _ => scanner.dense(),
    }
}

/// Appends the text form.
///
/// # Errors
/// The pending interrupt.
pub fn write(kind: TypeId, bytes: &[u8], out: &mut String) -> Result<()> {
    use std::fmt::Write as _;
    if kind == TypeId::SPARSEVEC {
        let sparse = Sparse::of(bytes);
        out.push('{');
        for (at, (place, number)) in sparse.entries().enumerate() {
            coro::work(NUMBER_WORK)?;
            let comma = if at > 0 { "," } else { "" };
            // Writing to a string does not fail.
            let _ = write!(out, "{comma}{}:", place.saturating_add(1));
            float::write_f32(number, 1, out);
        }
        let _ = write!(out, "}}/{}", sparse.dimensions);
        return Ok(());
    }
    out.push('[');
    for (at, number) in numbers(kind, bytes).into_iter().enumerate() {
        coro::work(NUMBER_WORK)?;
        if at > 0 {
            out.push(',');
        }
        float::write_f32(number, 1, out);
    }
    out.push(']');
    Ok(())
}

// ---- Binary ----

/// Appends the binary form.
///
/// # Errors
/// The pending interrupt.
pub fn send(kind: TypeId, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
    coro::work(bytes.len())?;
    match kind {
        TypeId::SPARSEVEC => {
            let sparse = Sparse::of(bytes);
            for number in [sparse.dimensions as u32, sparse.count() as u32, 0] {
                out.extend_from_slice(&number.to_be_bytes());
            }
            for (place, _) in sparse.entries() {
                out.extend_from_slice(&place.to_be_bytes());
            }
            for (_, number) in sparse.entries() {
                out.extend_from_slice(&number.to_be_bytes());
            }
        }
        _ => {
            let dimensions = dimensions(kind, bytes) as u16;
            out.extend_from_slice(&dimensions.to_be_bytes());
            out.extend_from_slice(&[0, 0]);
            let width = if kind == TypeId::HALFVEC { 2 } else { 4 };
            for number in bytes.chunks_exact(width) {
                out.extend(number.iter().rev());
            }
        }
    }
    Ok(())
}

fn check_unused(unused: i32) -> Result<()> {
    match unused {
        0 => Ok(()),
        _ => Err(wrong(format!("expected unused to be 0, not {unused}"))),
    }
}

fn read_sparse(rest: &mut &[u8]) -> Result<Datum> {
    let kind = TypeId::SPARSEVEC;
    let dimensions = i32::from_be_bytes(take(rest)?);
    let count = i32::from_be_bytes(take(rest)?);
    let unused = i32::from_be_bytes(take(rest)?);
    check_dimensions(kind, i64::from(dimensions))?;
    let count = usize::try_from(count)
        .map_err(|_| wrong("sparsevec cannot have negative number of elements"))?;
    check_count(count)?;
    if count > dimensions as usize {
        let message = "sparsevec cannot have more elements than dimensions";
        return Err(wrong(message));
    }
    check_unused(unused)?;
    let mut places = Vec::with_capacity(count);
    for _ in 0..count {
        let place = i32::from_be_bytes(take(rest)?);
        places.push(u32::try_from(place).unwrap_or(u32::MAX));
    }
    let mut entries = Vec::with_capacity(count);
    for place in places {
        let number = f32::from_be_bytes(take(rest)?);
        if number == 0.0 {
            let message = "binary representation of sparsevec cannot contain zero values";
            return Err(wrong(message));
        }
        entries.push((place, number));
    }
    make_sparse(dimensions as usize, entries)
}

/// Reads the binary form.
///
/// # Errors
/// 22000, 54000, 08P01, 22P03.
pub fn receive(kind: TypeId, bytes: &[u8]) -> Result<Datum> {
    coro::work(bytes.len())?;
    let mut rest = bytes;
    let value = match kind {
        TypeId::SPARSEVEC => read_sparse(&mut rest)?,
        _ => {
            let dimensions = i16::from_be_bytes(take(&mut rest)?);
            let unused = i16::from_be_bytes(take(&mut rest)?);
            check_dimensions(kind, i64::from(dimensions))?;
            check_unused(i32::from(unused))?;
            let mut numbers = Vec::with_capacity(dimensions as usize);
            for _ in 0..dimensions {
                numbers.push(match kind {
                    TypeId::HALFVEC => received_half(u16::from_be_bytes(take(&mut rest)?)),
                    _ => f32::from_be_bytes(take(&mut rest)?),
                });
            }
            make(kind, &numbers)?
        }
    };
    match rest.is_empty() {
        true => Ok(value),
        false => Err(Error::new(
            SqlState::INVALID_BINARY_REPRESENTATION,
            "incorrect binary data format",
        )),
    }
}

/// What a client has sent may be no number.
fn received_half(bits: u16) -> f32 {
    match (bits >> 10 & 0x1f, bits & 0x3ff) {
        (0x1f, 0) => f32::INFINITY,
        (0x1f, _) => f32::NAN,
        _ => of_half(bits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(kind: TypeId, text: &str) -> Arc<[u8]> {
        match input(kind, text).unwrap() {
            Datum::Vector(bytes) => bytes,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn halves_come_back() {
        for bits in 0..=u16::MAX {
            if bits >> 10 & 0x1f != 0x1f {
                assert_eq!(to_half(of_half(bits)), Some(bits));
            }
        }
        assert_eq!(to_half(65_519.0), Some(0x7bff));
        assert_eq!(to_half(65_520.0), None);
        assert_eq!(to_half(f32::NAN), None);
        // Halfway between two: the even one.
        assert_eq!(to_half(1.0 + 0.000_488_281_25), Some(0x3c00));
        assert_eq!(to_half(1.0 + 3.0 * 0.000_488_281_25), Some(0x3c02));
        assert_eq!(to_half(2_f32.powi(-25)), Some(0));
        assert_eq!(to_half(3.0 * 2_f32.powi(-25)), Some(2));
    }

    #[test]
    fn texts_and_binary_forms_come_back() {
        for (kind, text, wanted) in [
            (
                TypeId::VECTOR,
                " [ 1 , -2.5e0,1e-46 , +3 ] ",
                "[1,-2.5,0,3]",
            ),
            (TypeId::VECTOR, "[-0,1e20]", "[-0,1e+20]"),
            (TypeId::HALFVEC, "[0.1,65504]", "[0.099975586,65504]"),
            (
                TypeId::SPARSEVEC,
                "{ 3:2, 1:1.5 ,2:0} / 5 ",
                "{1:1.5,3:2}/5",
            ),
            (TypeId::SPARSEVEC, "{}/1000000000", "{}/1000000000"),
        ] {
            let bytes = bytes_of(kind, text);
            let (mut shown, mut sent) = (String::new(), Vec::new());
            write(kind, &bytes, &mut shown).unwrap();
            assert_eq!(shown, wanted);
            send(kind, &bytes, &mut sent).unwrap();
            assert_eq!(receive(kind, &sent).unwrap(), Datum::Vector(bytes));
            for end in 0..sent.len() {
                assert!(receive(kind, &sent[..end]).is_err());
            }
        }
    }

    #[test]
    fn order_is_that_of_keys() {
        let of = |kind, texts: &[&str]| {
            let all: Vec<_> = texts.iter().map(|text| bytes_of(kind, text)).collect();
            for (at, a) in all.iter().enumerate() {
                for (other, b) in all.iter().enumerate() {
                    assert_eq!(compare(kind, a, b), at.cmp(&other), "{at} {other}");
                    assert_eq!(key(kind, a).cmp(&key(kind, b)), at.cmp(&other));
                }
            }
        };
        let dense = ["[-2]", "[-1,5]", "[0]", "[0,-1]", "[0,0]", "[1e-7]", "[1]"];
        of(TypeId::VECTOR, &dense);
        of(TypeId::HALFVEC, &dense);
        let sparse = [
            "{1:-2}/3",
            "{1:-1}/3",
            "{2:-1}/3",
            "{}/3",
            "{}/4",
            "{2:1}/3",
            "{1:1}/3",
            "{1:1,3:1}/3",
        ];
        of(TypeId::SPARSEVEC, &sparse);
        let zeros = [
            bytes_of(TypeId::VECTOR, "[-0]"),
            bytes_of(TypeId::VECTOR, "[0]"),
        ];
        assert!(compare(TypeId::VECTOR, &zeros[0], &zeros[1]).is_eq());
        assert_eq!(
            key(TypeId::VECTOR, &zeros[0]),
            key(TypeId::VECTOR, &zeros[1])
        );
    }
}
