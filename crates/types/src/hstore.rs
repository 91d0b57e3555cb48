//! `hstore`: keys with values, all of them texts; a value may be NULL.
//!
//! ```text
//! "b"=>"2", "aa"=>NULL      the texts "b2aa", a zero, then how many pairs, and of each text where
//!                           it ends and whether it is NULL
//! ```
//! Pairs are in the order of their keys, shorter ones first, each key once. The bytes of a value, in
//! memory as in rows, are in the order that PostgreSQL's `hstore_cmp` has: the texts decide, then the
//! number of pairs, then where texts end; so they are compared, hashed and put into keys as they are.
//! No pairs are no bytes.
//!
//! Source: PostgreSQL 15 manual, section F.18.

use std::borrow::Cow;

use base::codec::Reader;
use base::coro;
use base::error::{Error, Result, SqlState};

use super::encoding::Encoding;
use super::growth::{Growing, GrowingBytes};
use super::Datum;

/// A key and its value.
pub type Pair<'a> = (&'a str, Option<&'a str>);

/// What a pair counts for as work, beside its bytes.
const PAIR_WORK: usize = 16;

/// The pairs of a value, in their order.
///
/// # Errors
/// XX001 for bytes that are none; the pending interrupt.
pub fn pairs(bytes: &[u8]) -> Result<Vec<Pair<'_>>> {
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    coro::work(bytes.len())?;
    let corrupted = || Error::corrupted("an hstore");
    let end = bytes.iter().position(|byte| *byte == 0);
    let (texts, rest) = bytes.split_at(end.ok_or_else(corrupted)?);
    let texts = std::str::from_utf8(texts).map_err(|_| corrupted())?;
    let mut reader = Reader::new(&rest[1..]);
    let count = reader.u32()? as usize;
    let mut start = 0;
    let mut text = || -> Result<Option<&str>> {
        let end = reader.u32()? as usize;
        let text = texts.get(start..end).ok_or_else(corrupted)?;
        start = end;
        Ok((reader.u8()? == 0).then_some(text))
    };
    let mut pairs = Vec::with_capacity(count.min(bytes.len()));
    for _ in 0..count {
        let key = text()?.ok_or_else(corrupted)?;
        pairs.push((key, text()?));
    }
    Ok(pairs)
}

/// The value of these pairs, in any order. Of those with the same key the first counts.
///
/// # Errors
/// 54000 if it is too large; the pending interrupt.
pub fn datum(mut pairs: Vec<Pair<'_>>) -> Result<Datum> {
    coro::work(PAIR_WORK * pairs.len())?;
    pairs.sort_by(|(a, _), (b, _)| (a.len(), a).cmp(&(b.len(), b)));
    pairs.dedup_by(|later, kept| later.0 == kept.0);
    if pairs.is_empty() {
        return Ok(Datum::Hstore(Vec::new().into()));
    }
    let mut out = GrowingBytes::default();
    for (key, value) in &pairs {
        out.extend(key.as_bytes())?;
        out.extend(value.unwrap_or_default().as_bytes())?;
    }
    out.extend(&[0])?;
    out.extend(&(pairs.len() as u32).to_be_bytes())?;
    let mut end = 0_u32;
    for (key, value) in &pairs {
        for text in [Some(*key), *value] {
            // Below a gigabyte, as the texts are.
            end += text.map_or(0, str::len) as u32;
            out.extend(&end.to_be_bytes())?;
            out.extend(&[u8::from(text.is_none())])?;
        }
    }
    Ok(Datum::Hstore(out.into_bytes().into()))
}

/// The place of a key among pairs.
pub fn find(pairs: &[Pair<'_>], key: &str) -> Option<usize> {
    let found = pairs.binary_search_by(|(own, _)| (own.len(), *own).cmp(&(key.len(), key)));
    found.ok()
}

/// The bytes that PostgreSQL's form of a value has, its length included.
pub fn size_of(bytes: &[u8]) -> usize {
    let texts = bytes.iter().position(|byte| *byte == 0).unwrap_or(0);
    let count = pairs(bytes).map_or(0, |pairs| pairs.len());
    8 + 8 * count + texts
}

// ---- Text ----

/// What is read of a text, and where.
struct Scanner<'t> {
    text: &'t str,
    at: usize,
}

fn ended() -> Error {
    Error::internal("Unexpected end of string")
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'\x0c')
}

impl Scanner<'_> {
    /// The next byte; none at the end.
    fn next(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn wrong(&self) -> Error {
        let near: String = self.text[self.at..].chars().take(1).collect();
        let message = format!("Syntax error near \"{near}\" at position {}", self.at);
        Error::internal(message)
    }

    fn skip_spaces(&mut self) {
        while self.next().is_some_and(is_space) {
            self.at += 1;
        }
    }

    /// A key or a value and whether any of it was in quotes; none if nothing is left.
    fn word(&mut self, is_value: bool) -> Result<Option<(String, bool)>> {
        self.skip_spaces();
        let quoted = match self.next() {
            None => return Ok(None),
            Some(b'=') if !is_value => return Err(self.wrong()),
            Some(first) => first == b'"',
        };
        self.at += usize::from(quoted);
        let mut word = Growing::default();
        // A first character that would end a word belongs to it.
        let mut first = true;
        loop {
            let Some(next) = self.text[self.at..].chars().next() else {
                return if quoted {
                    Err(ended())
                } else {
                    Ok(Some((word.into_string(), false)))
                };
            };
            let ends = match next {
                '"' if quoted => true,
                _ if quoted || first => false,
                '=' => !is_value,
                ',' => is_value,
                next => u8::try_from(next).is_ok_and(is_space),
            };
            if ends {
                self.at += usize::from(quoted);
                return Ok(Some((word.into_string(), quoted)));
            }
            first = false;
            self.at += next.len_utf8();
            if next != '\\' {
                word.push(next)?;
                continue;
            }
            let escaped = self.text[self.at..].chars().next().ok_or_else(ended)?;
            word.push(escaped)?;
            self.at += escaped.len_utf8();
        }
    }

    fn arrow(&mut self) -> Result<()> {
        self.skip_spaces();
        for wanted in *b"=>" {
            match self.next() {
                None => return Err(ended()),
                Some(byte) if byte == wanted => self.at += 1,
                Some(_) => return Err(self.wrong()),
            }
        }
        Ok(())
    }
}

/// Reads the text form.
///
/// # Errors
/// XX000 as PostgreSQL's for what is no such text; 54000.
pub fn input(text: &str) -> Result<Datum> {
    let mut scanner = Scanner { text, at: 0 };
    let mut read: Vec<(String, Option<String>)> = Vec::new();
    while let Some((key, _)) = scanner.word(false)? {
        coro::work(PAIR_WORK)?;
        scanner.arrow()?;
        let (value, quoted) = scanner.word(true)?.ok_or_else(ended)?;
        let is_null = !quoted && value.eq_ignore_ascii_case("null");
        read.push((key, (!is_null).then_some(value)));
        scanner.skip_spaces();
        match scanner.next() {
            None => break,
            Some(b',') => scanner.at += 1,
            Some(_) => return Err(scanner.wrong()),
        }
    }
    datum(
        read.iter()
            .map(|(key, value)| (&**key, value.as_deref()))
            .collect(),
    )
}

/// Appends the text form.
///
/// # Errors
/// XX001; the pending interrupt.
pub fn write(bytes: &[u8], out: &mut String) -> Result<()> {
    fn quoted(text: &str, out: &mut String) {
        out.push('"');
        for c in text.chars() {
            if matches!(c, '"' | '\\') {
                out.push('\\');
            }
            out.push(c);
        }
        out.push('"');
    }
    for (place, (key, value)) in pairs(bytes)?.into_iter().enumerate() {
        if place > 0 {
            out.push_str(", ");
        }
        quoted(key, out);
        out.push_str("=>");
        match value {
            Some(value) => quoted(value, out),
            None => out.push_str("NULL"),
        }
    }
    Ok(())
}

// ---- Binary ----

/// Appends the binary form.
///
/// # Errors
/// XX001; the pending interrupt.
pub fn send(encoding: Encoding, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let pairs = pairs(bytes)?;
    let length = |length: usize| (length as i32).to_be_bytes();
    out.extend_from_slice(&length(pairs.len()));
    let mut text = Vec::new();
    let mut put = |given: &str, out: &mut Vec<u8>| -> Result<()> {
        text.clear();
        encoding.encode_onto(given, &mut text)?;
        out.extend_from_slice(&length(text.len()));
        out.extend_from_slice(&text);
        Ok(())
    };
    for (key, value) in pairs {
        put(key, out)?;
        match value {
            Some(value) => put(value, out)?,
            None => out.extend_from_slice(&(-1_i32).to_be_bytes()),
        }
    }
    Ok(())
}

/// The most pairs that PostgreSQL takes.
const PAIRS_MAX: i32 = 26_843_545;

/// Reads the binary form, whose texts somebody else checks.
///
/// # Errors
/// 54000, 22004, 22021, 08P01.
pub fn receive<'b>(
    bytes: &'b [u8],
    checked: impl Fn(&'b [u8]) -> Result<Cow<'b, str>>,
) -> Result<Datum> {
    use super::search::vector::{short, take};
    let mut rest = bytes;
    let count = i32::from_be_bytes(take(&mut rest)?);
    if !(0..=PAIRS_MAX).contains(&count) {
        return Err(Error::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!("number of pairs ({count}) exceeds the maximum allowed ({PAIRS_MAX})"),
        ));
    }
    let mut text = || -> Result<Option<Cow<'b, str>>> {
        let Ok(length) = usize::try_from(i32::from_be_bytes(take(&mut rest)?)) else {
            return Ok(None);
        };
        if length > rest.len() {
            return Err(short());
        }
        let (text, tail) = rest.split_at(length);
        rest = tail;
        checked(text).map(Some)
    };
    let mut read: Vec<(Cow<'b, str>, Option<Cow<'b, str>>)> = Vec::new();
    for _ in 0..count {
        let key = text()?.ok_or_else(|| {
            let message = "null value not allowed for hstore key";
            Error::new(SqlState::of("22004"), message)
        })?;
        read.push((key, text()?));
    }
    if !rest.is_empty() {
        let message = "incorrect binary data format";
        return Err(Error::new(SqlState::INVALID_BINARY_REPRESENTATION, message));
    }
    let pairs = read.iter().map(|(key, value)| (&**key, value.as_deref()));
    datum(pairs.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(text: &str) -> std::sync::Arc<[u8]> {
        match input(text).unwrap() {
            Datum::Hstore(bytes) => bytes,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn texts_come_back() {
        for (text, wanted) in [
            ("", ""),
            ("b=>1, a=>2, b=>3", r#""a"=>"2", "b"=>"1""#),
            ("bb=>1,c=>NULL", r#""c"=>NULL, "bb"=>"1""#),
            (
                r#""a b" => "NULL", x\=y=>"q\"\\""#,
                r#""a b"=>"NULL", "x=y"=>"q\"\\""#,
            ),
            ("a=>,b=>1", r#""a"=>",b=>1""#),
            (" é=>nUlL ,", r#""é"=>NULL"#),
        ] {
            let mut shown = String::new();
            write(&bytes_of(text), &mut shown).unwrap();
            assert_eq!(shown, wanted, "{text}");
        }
        for wrong in [
            "a", "a=", "a=>", "=>b", "a=b", "\"a", "a=>b c", "a\\", "a=>\"b",
        ] {
            assert!(input(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn bytes_are_in_order() {
        let ascending = [
            "",
            "\"\"=>\"\"",
            "a=>b",
            "ab=>\"\"",
            "ab=>NULL",
            "b=>a",
            "b=>b,c=>d",
        ];
        let all: Vec<_> = ascending.iter().map(|text| bytes_of(text)).collect();
        for (pair, text) in all.windows(2).zip(&ascending[1..]) {
            assert!(pair[0] < pair[1], "{text}");
        }
    }

    #[test]
    fn the_binary_form_comes_back() {
        for text in ["", "a=>1", "a=>NULL, bc=>\"x y\""] {
            let bytes = bytes_of(text);
            let mut sent = Vec::new();
            send(Encoding::UTF8, &bytes, &mut sent).unwrap();
            let checked = |bytes| crate::binary::receive_text(Encoding::UTF8, bytes);
            let read = receive(&sent, checked).unwrap();
            assert_eq!(read, Datum::Hstore(bytes));
        }
    }
}
