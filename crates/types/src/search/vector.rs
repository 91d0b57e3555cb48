//! `tsvector`: lexemes in byte order, each once, with the places where it stands.
//!
//! ```text
//! 'cat':3A 'rat'
//! size 4 │ count 4 │ 0 cat 0 !1 !(3A) │ 1 rat 0
//! ```
//! The bytes: the size that PostgreSQL's form has and the number of lexemes, 4 bytes each; then each
//! lexeme: whether it has no positions, its bytes, a zero; and its positions, number and all, with
//! their bits flipped. Compared as bytes they are in PostgreSQL's order: by size, by number, and
//! then by lexemes, those with positions and with more and later ones first.

use std::fmt::Write;
use std::sync::Arc;

use base::coro;
use base::error::{Error, Result, SqlState};

use super::position::Position;
use super::token::{Kind, Tokens};
use super::{too_big, vector_too_long};
use super::{LEXEME_BYTES_MAX, POSITIONS_END, POSITION_END, VECTOR_BYTES_MAX};
use crate::Datum;

/// The bytes before the first lexeme.
const HEADER: usize = 8;

/// A lexeme with its positions, which ascend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lexeme {
    /// The lexeme.
    pub text: String,
    /// Where it stands; empty if that is not known.
    pub positions: Vec<Position>,
}

/// A lexeme of a vector's bytes.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The lexeme.
    pub text: &'a str,
    positions: &'a [u8],
}

impl<'a> Entry<'a> {
    /// Where it stands; nothing if that is not known.
    pub fn positions(&self) -> impl DoubleEndedIterator<Item = Position> + Clone + 'a {
        let pairs = self.positions.chunks_exact(2);
        pairs.map(|pair| {
            let bits = !u16::from_be_bytes([pair[0], pair[1]]);
            Position::new(bits >> 2, bits & 3)
        })
    }

    /// How many places are known.
    pub fn count(&self) -> usize {
        self.positions.len() / 2
    }

    /// It with memory of its own.
    pub fn to_lexeme(&self) -> Lexeme {
        Lexeme {
            text: self.text.to_owned(),
            positions: self.positions().collect(),
        }
    }
}

/// The lexemes of a vector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vector {
    /// In byte order, each once.
    pub lexemes: Vec<Lexeme>,
}

/// Sorts places, each once with the greatest of its weights, and leaves out what are too many.
fn settle(positions: &mut Vec<Position>) {
    if positions.len() < 2 {
        return;
    }
    positions.sort_by_key(|position| position.place());
    let mut kept: Vec<Position> = Vec::with_capacity(positions.len());
    for position in positions.iter() {
        match kept.last_mut() {
            Some(last) if last.place() == position.place() => {
                if position.weight() > last.weight() {
                    *last = *position;
                }
            }
            _ => {
                kept.push(*position);
                if kept.len() >= POSITIONS_END || position.place() == POSITION_END - 1 {
                    break;
                }
            }
        }
    }
    *positions = kept;
}

impl Vector {
    /// Lexemes in any order, of which some may be there several times.
    ///
    /// # Errors
    /// The pending interrupt.
    pub fn of(mut lexemes: Vec<Lexeme>) -> Result<Vector> {
        coro::work(16 * lexemes.len())?;
        lexemes.sort_by(|a, b| a.text.cmp(&b.text));
        let mut kept: Vec<Lexeme> = Vec::with_capacity(lexemes.len());
        for lexeme in lexemes {
            coro::work(8 + 8 * lexeme.positions.len())?;
            match kept.last_mut().filter(|last| last.text == lexeme.text) {
                Some(last) => last.positions.extend(lexeme.positions),
                None => kept.push(lexeme),
            }
        }
        for lexeme in &mut kept {
            settle(&mut lexeme.positions);
        }
        Ok(Vector { lexemes: kept })
    }

    /// The bytes that lexemes and positions have in PostgreSQL's form.
    fn data_bytes(&self) -> usize {
        self.lexemes.iter().fold(0, |sum, lexeme| {
            let sum = sum + lexeme.text.len();
            match lexeme.positions.len() {
                0 => sum,
                count => sum.next_multiple_of(2) + 2 + 2 * count,
            }
        })
    }

    /// The value.
    ///
    /// # Errors
    /// 54000 for one that is too long.
    pub fn into_datum(self) -> Result<Datum> {
        let data = self.data_bytes();
        if data > VECTOR_BYTES_MAX {
            return Err(vector_too_long(data));
        }
        let size = HEADER + 4 * self.lexemes.len() + data;
        let mut out = Vec::with_capacity(size + 2 * self.lexemes.len());
        out.extend_from_slice(&(size as u32).to_be_bytes());
        out.extend_from_slice(&(self.lexemes.len() as u32).to_be_bytes());
        for lexeme in &self.lexemes {
            coro::work(8 + lexeme.text.len())?;
            out.push(u8::from(lexeme.positions.is_empty()));
            out.extend_from_slice(lexeme.text.as_bytes());
            out.push(0);
            if lexeme.positions.is_empty() {
                continue;
            }
            let count = lexeme.positions.len() as u16;
            out.extend_from_slice(&(!count).to_be_bytes());
            for position in &lexeme.positions {
                let bits = !(position.place() << 2 | position.weight());
                out.extend_from_slice(&bits.to_be_bytes());
            }
        }
        Ok(Datum::TsVector(Arc::from(out)))
    }
}

fn corrupted() -> Error {
    Error::corrupted("a tsvector")
}

/// The size that PostgreSQL's form of a vector has.
pub fn size_of(bytes: &[u8]) -> usize {
    let size = bytes.first_chunk::<4>().copied().unwrap_or_default();
    u32::from_be_bytes(size) as usize
}

/// How many lexemes a vector has.
pub fn count_of(bytes: &[u8]) -> usize {
    let count = bytes.get(4..8).and_then(|bytes| bytes.try_into().ok());
    u32::from_be_bytes(count.unwrap_or_default()) as usize
}

/// The lexemes of a vector, in byte order.
///
/// # Errors
/// XX001; the pending interrupt.
pub fn entries(bytes: &[u8]) -> Result<Vec<Entry<'_>>> {
    let mut rest = bytes.get(HEADER..).ok_or_else(corrupted)?;
    coro::work(bytes.len())?;
    let mut entries = Vec::with_capacity(count_of(bytes).min(bytes.len()));
    while let Some((flag, tail)) = rest.split_first() {
        let end = tail.iter().position(|byte| *byte == 0);
        let (text, tail) = tail.split_at(end.ok_or_else(corrupted)?);
        let tail = &tail[1..];
        let text = std::str::from_utf8(text).map_err(|_| corrupted())?;
        let (positions, tail) = match flag {
            1 => tail.split_at(0),
            _ => {
                let (count, tail) = tail.split_first_chunk().ok_or_else(corrupted)?;
                let len = 2 * usize::from(!u16::from_be_bytes(*count));
                tail.split_at_checked(len).ok_or_else(corrupted)?
            }
        };
        entries.push(Entry { text, positions });
        rest = tail;
    }
    Ok(entries)
}

/// The lexemes of a vector, with memory of their own.
///
/// # Errors
/// As [`entries`].
pub fn decode(bytes: &[u8]) -> Result<Vector> {
    let entries = entries(bytes)?;
    let lexemes = entries.iter().map(Entry::to_lexeme).collect();
    Ok(Vector { lexemes })
}

/// Refuses a lexeme of too many bytes.
///
/// # Errors
/// 54000.
pub fn check_length(bytes: usize) -> Result<()> {
    match bytes > LEXEME_BYTES_MAX {
        true => Err(too_big(format!(
            "word is too long ({bytes} bytes, max {LEXEME_BYTES_MAX} bytes)"
        ))),
        false => Ok(()),
    }
}

/// Reads the text form.
///
/// # Errors
/// 42601; 54000.
pub fn input(text: &str) -> Result<Datum> {
    let mut tokens = Tokens::new(text, Kind::Vector);
    let mut lexemes = Vec::new();
    let mut bytes = 0;
    while let Some(token) = tokens.next_token()? {
        let len = token.word.len();
        coro::work(16 + len)?;
        check_length(len)?;
        if bytes > VECTOR_BYTES_MAX {
            return Err(vector_too_long(bytes));
        }
        bytes += len;
        lexemes.push(Lexeme {
            text: token.word,
            positions: token.positions,
        });
    }
    Vector::of(lexemes)?.into_datum()
}

/// Appends a lexeme in quotes.
pub(super) fn write_quoted(text: &str, out: &mut String) {
    out.push('\'');
    for c in text.chars() {
        if matches!(c, '\'' | '\\') {
            out.push(c);
        }
        out.push(c);
    }
    out.push('\'');
}

/// Appends the text form.
///
/// # Errors
/// XX001; the pending interrupt.
pub fn write(bytes: &[u8], out: &mut String) -> Result<()> {
    for (number, entry) in entries(bytes)?.iter().enumerate() {
        if number > 0 {
            out.push(' ');
        }
        write_quoted(entry.text, out);
        for (number, position) in entry.positions().enumerate() {
            out.push(if number == 0 { ':' } else { ',' });
            let _ = write!(out, "{}{}", position.place(), position.letter());
        }
    }
    Ok(())
}

/// Appends the binary form.
///
/// # Errors
/// XX001; the pending interrupt.
pub fn send(bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let entries = entries(bytes)?;
    out.extend_from_slice(&(entries.len() as u32).to_be_bytes());
    for entry in entries {
        out.extend_from_slice(entry.text.as_bytes());
        out.push(0);
        out.extend_from_slice(&(entry.count() as u16).to_be_bytes());
        for position in entry.positions() {
            out.extend_from_slice(&position.0.to_be_bytes());
        }
    }
    Ok(())
}

/// 08P01 for a message that ends too soon.
pub(crate) fn short() -> Error {
    let message = "insufficient data left in message";
    Error::new(SqlState::PROTOCOL_VIOLATION, message)
}

/// Takes a text that a zero ends from a message.
pub(super) fn take_text<'a>(rest: &mut &'a [u8]) -> Result<&'a str> {
    let end = rest.iter().position(|byte| *byte == 0).ok_or_else(|| {
        let message = "invalid string in message";
        Error::new(SqlState::PROTOCOL_VIOLATION, message)
    })?;
    let text = std::str::from_utf8(&rest[..end]).map_err(|_| {
        let message = "invalid byte sequence for encoding \"UTF8\"";
        Error::new(SqlState::CHARACTER_NOT_IN_REPERTOIRE, message)
    })?;
    *rest = &rest[end + 1..];
    Ok(text)
}

/// Takes a number of so many bytes from a message.
pub(crate) fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N]> {
    let (number, tail) = rest.split_first_chunk().ok_or_else(short)?;
    *rest = tail;
    Ok(*number)
}

/// Reads the binary form.
///
/// # Errors
/// XX000, 08P01.
pub fn receive(bytes: &[u8]) -> Result<Datum> {
    let mut rest = bytes;
    let count = i32::from_be_bytes(take(&mut rest)?);
    let count = usize::try_from(count).map_err(|_| Error::internal("invalid size of tsvector"))?;
    let mut lexemes = Vec::new();
    for _ in 0..count {
        let text = take_text(&mut rest)?.to_owned();
        if text.len() > LEXEME_BYTES_MAX {
            return Err(Error::internal("invalid tsvector: lexeme too long"));
        }
        coro::work(16 + text.len())?;
        let places = usize::from(u16::from_be_bytes(take(&mut rest)?));
        if places > POSITIONS_END {
            let message = "unexpected number of tsvector positions";
            return Err(Error::internal(message));
        }
        let mut positions: Vec<Position> = Vec::new();
        for _ in 0..places {
            let position = Position(u16::from_be_bytes(take(&mut rest)?));
            let before = positions.last().map_or(0, |last| last.place());
            if !positions.is_empty() && position.place() <= before {
                return Err(Error::internal("position information is misordered"));
            }
            positions.push(position);
        }
        lexemes.push(Lexeme { text, positions });
    }
    if !rest.is_empty() {
        let message = "incorrect binary data format";
        return Err(Error::new(SqlState::INVALID_BINARY_REPRESENTATION, message));
    }
    Vector::of(lexemes)?.into_datum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(text: &str) -> Arc<[u8]> {
        match input(text).unwrap() {
            Datum::TsVector(bytes) => bytes,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn texts_come_back() {
        for (text, wanted) in [
            ("", ""),
            ("b a b", "'a' 'b'"),
            ("a:2,1B,2A b", "'a':1B,2A 'b'"),
            ("'it''s' w\\:x:99999", "'it''s' 'w:x':16383"),
            // Nothing stands before a mark of positions.
            (":1", "':1'"),
        ] {
            let mut shown = String::new();
            write(&bytes_of(text), &mut shown).unwrap();
            assert_eq!(shown, wanted);
        }
        for wrong in ["'a", "a:", "a:b", "a:0", "a:1AB", "\\"] {
            assert!(input(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn bytes_are_in_order() {
        let ascending = [
            "", "b", "aa", "a:2", "a:1", "a b", "a:1,2", "a b:1", "a:1 b",
        ];
        let mut before: Option<Arc<[u8]>> = None;
        for text in ascending {
            let bytes = bytes_of(text);
            if let Some(before) = before {
                assert!(before < bytes, "{text}");
            }
            before = Some(bytes);
        }
    }

    #[test]
    fn the_binary_form_comes_back() {
        for text in ["", "a", "a:1A,7 bc d:3"] {
            let bytes = bytes_of(text);
            let mut sent = Vec::new();
            send(&bytes, &mut sent).unwrap();
            assert_eq!(receive(&sent).unwrap(), Datum::TsVector(bytes));
        }
    }
}
