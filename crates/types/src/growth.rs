//! Values as they grow: how long one may become is counted here, before memory is asked for.
//!
//! A value has at most [`VALUE_BYTES_MAX`] bytes, as in PostgreSQL. Whatever makes a value that may
//! be much longer than its arguments appends to a [`Growing`] text or to [`GrowingBytes`], or asks
//! [`check_room`] first; and [`check`] looks at the result of every function at the end
//! (`Function::call`), so that what merely adds its arguments up needs nothing of its own.
//!
//! ```
//! use types::growth::{check_room, Growing};
//! let mut text = Growing::default();
//! text.push_str("ab").unwrap();
//! assert_eq!(text.into_datum().as_str(), "ab");
//! assert_eq!(check_room(1 << 29, 1 << 29).unwrap_err().state(), base::SqlState::PROGRAM_LIMIT_EXCEEDED);
//! ```
//!
//! What is appended is also counted as work ([`coro::work`]): so whoever makes long values gives way.
//!
//! As long as a value grows it takes its bytes from the node's memory ([`base::memory`]), always before
//! it asks the system for them; once it is complete, whoever keeps it does.

use base::coro;
use base::limits::VALUE_BYTES_MAX;
use base::memory::Reservation;
use base::{Error, Result, SqlState};

use super::Datum;

/// Bytes that are appended one by one are counted as work in portions of so many.
const PORTION: usize = 4 << 10;

/// What an error says of a value as it grows.
const WHAT: &str = "A value";

/// A value that has grown is copied once, to its place; and while it moves to a larger place, it has
/// both.
const COPIES: usize = 2;

/// What grows has room for so many bytes at least.
const CAPACITY_MIN: usize = 32;

/// How many bytes what has such a capacity asks for, to have room for so many: it doubles.
fn enlarged(capacity: usize, needed: usize) -> usize {
    let doubled = capacity.saturating_mul(2).min(VALUE_BYTES_MAX);
    needed.max(doubled).max(CAPACITY_MIN)
}

/// What an element of an array takes beside its own bytes.
pub const ELEMENT_BYTES: usize = size_of::<Datum>();

/// An array that grows has so many places at least.
const ELEMENTS_MIN: usize = 4;

/// 54000: a value of `bytes` bytes would grow by `more`.
#[cold]
fn too_long(bytes: usize, more: usize) -> Error {
    let detail =
        format!("Cannot enlarge string buffer containing {bytes} bytes by {more} more bytes.");
    Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "out of memory").with_detail(detail)
}

/// Whether a value of so many bytes may grow by so many.
///
/// # Errors
/// 54000.
#[inline]
pub fn check_room(bytes: usize, more: usize) -> Result<()> {
    match bytes.saturating_add(more) <= VALUE_BYTES_MAX {
        true => Ok(()),
        false => Err(too_long(bytes, more)),
    }
}

/// The memory of a value, in bytes, beside its place.
pub fn bytes_of(value: &Datum) -> usize {
    let each = |values: &[Datum]| {
        let parts = values.iter().map(|part| ELEMENT_BYTES + bytes_of(part));
        parts.sum::<usize>()
    };
    match value {
        Datum::Text(text) => text.len(),
        Datum::Bytea(bytes)
        | Datum::Jsonb(bytes)
        | Datum::Hstore(bytes)
        | Datum::Vector(bytes)
        | Datum::TsVector(bytes)
        | Datum::TsQuery(bytes) => bytes.len(),
        Datum::Geometry(numbers) => size_of_val(&numbers[..]),
        Datum::Array(array) => each(&array.elements),
        Datum::Record(record) => each(&record.values),
        Datum::Bits(bits) => bits.bytes().len(),
        Datum::Range(range) => size_of::<super::Range>() + range.bytes(),
        Datum::Multirange(multirange) => multirange.bytes(),
        _ => 0,
    }
}

/// Whether a text or bytes that a function has made are a value. Arrays are looked at where they
/// grow: to add up their elements at each call would make every loop over one quadratic.
///
/// # Errors
/// 54000.
#[inline]
pub fn check(value: &Datum) -> Result<()> {
    match value {
        Datum::Text(text) => check_room(0, text.len()),
        Datum::Bytea(bytes) | Datum::Jsonb(bytes) | Datum::Hstore(bytes) => {
            check_room(0, bytes.len())
        }
        Datum::Geometry(numbers) => check_room(0, size_of_val(&numbers[..])),
        _ => Ok(()),
    }
}

/// Whether an array may have so many elements.
///
/// # Errors
/// 54000.
pub fn check_elements(count: usize) -> Result<()> {
    match count.saturating_mul(ELEMENT_BYTES) <= VALUE_BYTES_MAX {
        true => Ok(()),
        false => Err(Error::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!(
                "array size exceeds the maximum allowed ({})",
                VALUE_BYTES_MAX / ELEMENT_BYTES
            ),
        )),
    }
}

/// Whether there is memory for so many bytes at once.
///
/// # Errors
/// 53200; the pending interrupt.
pub fn check_memory(bytes: usize) -> Result<()> {
    Reservation::of(WHAT).probe(bytes)
}

/// A text that grows as far as a value may.
#[derive(Debug)]
pub struct Growing {
    text: String,
    /// Bytes that were not counted as work yet.
    uncounted: usize,
    held: Reservation,
}

impl Default for Growing {
    fn default() -> Growing {
        Growing {
            text: String::new(),
            uncounted: 0,
            held: Reservation::of(WHAT),
        }
    }
}

impl Growing {
    /// An empty text, for about so many bytes.
    ///
    /// # Errors
    /// As [`Growing::push_str`].
    pub fn with_capacity(bytes: usize) -> Result<Growing> {
        let mut growing = Growing::default();
        growing.make_room(bytes.min(VALUE_BYTES_MAX))?;
        Ok(growing)
    }

    /// Makes room for so many bytes more.
    #[inline]
    fn make_room(&mut self, more: usize) -> Result<()> {
        check_room(self.text.len(), more)?;
        match more <= self.text.capacity() - self.text.len() {
            true => Ok(()),
            false => self.enlarge(self.text.len() + more),
        }
    }

    #[cold]
    fn enlarge(&mut self, needed: usize) -> Result<()> {
        let wanted = enlarged(self.text.capacity(), needed);
        self.held.set(COPIES * wanted)?;
        self.text.reserve_exact(wanted - self.text.len());
        Ok(())
    }

    /// Appends a text.
    ///
    /// # Errors
    /// 54000; 53200; the pending interrupt.
    pub fn push_str(&mut self, text: &str) -> Result<()> {
        self.make_room(text.len())?;
        self.text.push_str(text);
        self.count(text.len())
    }

    /// Appends a character.
    ///
    /// # Errors
    /// As [`Growing::push_str`].
    #[inline]
    pub fn push(&mut self, c: char) -> Result<()> {
        self.make_room(c.len_utf8())?;
        self.text.push(c);
        self.count(c.len_utf8())
    }

    /// Appends a text so many times.
    ///
    /// # Errors
    /// As [`Growing::push_str`].
    pub fn push_times(&mut self, text: &str, times: usize) -> Result<()> {
        self.make_room(text.len().saturating_mul(times))?;
        if text.is_empty() {
            return Ok(());
        }
        // A portion at a time, so that a long run of a short text is no loop over its characters.
        let most = (PORTION / text.len()).max(1);
        let portion = text.repeat(most.min(times));
        for _ in 0..times / most {
            self.push_str(&portion)?;
        }
        self.push_str(&portion[..text.len() * (times % most)])
    }

    #[inline]
    fn count(&mut self, bytes: usize) -> Result<()> {
        self.uncounted += bytes;
        if self.uncounted < PORTION {
            return Ok(());
        }
        Ok(coro::work(std::mem::take(&mut self.uncounted))?)
    }

    /// What has been appended.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The text.
    pub fn into_string(self) -> String {
        self.text
    }

    /// The text as a value.
    pub fn into_datum(self) -> Datum {
        Datum::text(self.text)
    }
}

/// Bytes that grow as far as a value may.
#[derive(Debug, Default)]
pub struct GrowingBytes {
    bytes: Vec<u8>,
    held: Reservation,
}

impl GrowingBytes {
    /// Appends bytes.
    ///
    /// # Errors
    /// 54000; 53200; the pending interrupt.
    pub fn extend(&mut self, bytes: &[u8]) -> Result<()> {
        check_room(self.bytes.len(), bytes.len())?;
        let needed = self.bytes.len() + bytes.len();
        if needed > self.bytes.capacity() {
            let wanted = enlarged(self.bytes.capacity(), needed);
            self.held.set(COPIES * wanted)?;
            self.bytes.reserve_exact(wanted - self.bytes.len());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(coro::work(bytes.len())?)
    }

    /// The bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// A text in pieces of some kilobytes, each counted as work when it is asked for: for whoever goes
/// through a long text.
pub fn pieces(text: &str) -> impl Iterator<Item = Result<&str>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let ends = PORTION.min(rest.len())..=rest.len();
        let end = ends.into_iter().find(|end| rest.is_char_boundary(*end));
        let (piece, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        Some(match coro::work(piece.len()) {
            Ok(()) => Ok(piece),
            Err(interrupt) => Err(interrupt.into()),
        })
    })
}

/// Elements of an array as they are read, one by one.
#[derive(Debug, Default)]
pub struct GrowingElements {
    elements: Vec<Datum>,
    /// What the elements take beside their places.
    bytes: usize,
    held: Reservation,
}

impl GrowingElements {
    /// Appends an element.
    ///
    /// # Errors
    /// 54000; 53200; the pending interrupt.
    #[inline]
    pub fn push(&mut self, element: Datum) -> Result<()> {
        let more = bytes_of(&element);
        if self.elements.len() == self.elements.capacity() {
            self.enlarge()?;
        }
        if more > 0 {
            self.bytes += more;
            self.held.grow(more)?;
        }
        self.elements.push(element);
        Ok(())
    }

    /// Twice the places; while the elements move there, they have both.
    #[cold]
    fn enlarge(&mut self) -> Result<()> {
        let now = self.elements.capacity();
        let wanted = (2 * now).max(ELEMENTS_MIN);
        check_elements(now + 1)?;
        self.held.set((now + wanted) * ELEMENT_BYTES + self.bytes)?;
        self.elements.reserve_exact(wanted - now);
        self.held.set(wanted * ELEMENT_BYTES + self.bytes)
    }

    /// Whether there is none yet.
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// The elements.
    pub fn into_elements(self) -> Vec<Datum> {
        self.elements
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_grows_as_far_as_a_value_may() {
        let mut text = Growing::default();
        text.push_times("añb", 5_000).unwrap();
        text.push('c').unwrap();
        assert_eq!(text.as_str(), "añb".repeat(5_000) + "c");
        let error = text.push_times("ab", VALUE_BYTES_MAX / 2).unwrap_err();
        assert_eq!(error.state(), SqlState::PROGRAM_LIMIT_EXCEEDED);
        assert!(check_room(VALUE_BYTES_MAX, 0).is_ok());
        assert!(check_room(VALUE_BYTES_MAX, 1).is_err());
        assert!(check_room(usize::MAX, usize::MAX).is_err());
        assert!(check_elements(VALUE_BYTES_MAX / ELEMENT_BYTES + 1).is_err());
    }

    #[test]
    fn pieces_are_the_text() {
        for text in ["", "ab", &"xñ€".repeat(5_000)] {
            let joined: Result<String> = pieces(text).collect();
            assert_eq!(joined.unwrap(), text);
        }
    }
}
