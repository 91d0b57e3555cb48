//! `parse_ident`, and escapes of characters: `unistr`.
//!
//! Source: PostgreSQL 15 manual, table 9.10.

use std::iter::Peekable;
use std::str::Chars;
use std::sync::Arc;

use base::coro;
use base::error::{Error, Result, SqlState};

use super::arguments::Arguments;
use super::Call;
use types::{Array, Datum, TypeId};

/// The parts of a qualified name, folded as the grammar does it.
///
/// # Errors
/// 22023 for what is no name.
pub(crate) fn parse_ident(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let text = args.text(0)?;
    let strict = args.slice().get(1).is_none_or(Datum::is_true);
    coro::work(text.len())?;
    let wrong = |detail: Option<&str>| {
        let message = format!("string is not a valid identifier: \"{text}\"");
        let error = Error::new(SqlState::INVALID_PARAMETER_VALUE, message);
        match detail {
            Some(detail) => error.with_detail(detail),
            None => error,
        }
    };
    let mut rest = text.chars().peekable();
    let mut parts = Vec::new();
    let mut after_dot = false;
    skip_spaces(&mut rest);
    loop {
        parts.push(match rest.peek() {
            Some('"') => match quoted(&mut rest) {
                None => return Err(wrong(Some("String has unclosed double quotes."))),
                Some(name) if name.is_empty() => {
                    return Err(wrong(Some("Quoted identifier must not be empty.")))
                }
                Some(name) => name,
            },
            Some(first) if *first == '_' || first.is_ascii_alphabetic() || !first.is_ascii() => {
                plain(&mut rest)
            }
            Some('.') => return Err(wrong(Some("No valid identifier before \".\"."))),
            _ if after_dot => return Err(wrong(Some("No valid identifier after \".\"."))),
            _ => return Err(wrong(None)),
        });
        skip_spaces(&mut rest);
        match rest.peek() {
            Some('.') => {
                rest.next();
                after_dot = true;
                skip_spaces(&mut rest);
            }
            Some(_) if strict => return Err(wrong(None)),
            _ => break,
        }
    }
    let parts = parts.iter().map(Datum::text).collect();
    Ok(Datum::Array(Arc::new(Array::of(TypeId::TEXT, parts))))
}

fn skip_spaces(rest: &mut Peekable<Chars<'_>>) {
    let is_space = |c: &char| matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0c');
    while rest.next_if(is_space).is_some() {}
}

/// A name in quotes; none if they are not closed.
fn quoted(rest: &mut Peekable<Chars<'_>>) -> Option<String> {
    rest.next();
    let mut name = String::new();
    loop {
        match rest.next()? {
            '"' if rest.next_if_eq(&'"').is_some() => name.push('"'),
            '"' => return Some(name),
            other => name.push(other),
        }
    }
}

fn plain(rest: &mut Peekable<Chars<'_>>) -> String {
    let goes_on = |c: &char| matches!(c, '_' | '$') || c.is_ascii_alphanumeric() || !c.is_ascii();
    let mut name = String::new();
    while let Some(next) = rest.next_if(goes_on) {
        name.push(next.to_ascii_lowercase());
    }
    name
}

/// `\XXXX`, `\+XXXXXX`, `\uXXXX` and `\UXXXXXXXX` become characters; `\\` is a backslash.
///
/// # Errors
/// 42601 for other escapes and for half a surrogate pair, 22023 for what is no character.
pub(crate) fn unistr(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let text = args.text(0)?;
    coro::work(text.len())?;
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut high = None;
    while let Some(first) = rest.chars().next() {
        if first != '\\' || rest[1..].starts_with('\\') {
            if high.is_some() {
                return Err(bad_pair());
            }
            out.push(first);
            rest = &rest[first.len_utf8() * if first == '\\' { 2 } else { 1 }..];
            continue;
        }
        let (skipped, digits) = match rest.as_bytes().get(1) {
            Some(b'+') => (2, 6),
            Some(b'u') => (2, 4),
            Some(b'U') => (2, 8),
            _ => (1, 4),
        };
        let code = rest.get(skipped..skipped + digits);
        let is_hex = |code: &&str| code.bytes().all(|byte| byte.is_ascii_hexdigit());
        let code = code
            .filter(is_hex)
            .and_then(|code| u32::from_str_radix(code, 16).ok());
        let code = code.ok_or_else(bad_escape)?;
        rest = &rest[skipped + digits..];
        if code == 0 || code > 0x10_ffff {
            let message = format!("invalid Unicode code point: {code:04X}");
            return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
        let whole = match (high.take(), code) {
            (None, 0xd800..=0xdbff) => {
                high = Some(code);
                continue;
            }
            (Some(high), 0xdc00..=0xdfff) => 0x1_0000 + ((high & 0x3ff) << 10) + (code & 0x3ff),
            (None, code) => code,
            (Some(_), _) => return Err(bad_pair()),
        };
        out.push(char::from_u32(whole).ok_or_else(bad_pair)?);
    }
    match high {
        Some(_) => Err(bad_pair()),
        None => Ok(Datum::text(&out)),
    }
}

fn bad_escape() -> Error {
    Error::new(SqlState::SYNTAX_ERROR, "invalid Unicode escape")
        .with_hint("Unicode escapes must be \\XXXX, \\+XXXXXX, \\uXXXX, or \\UXXXXXXXX.")
}

fn bad_pair() -> Error {
    Error::new(SqlState::SYNTAX_ERROR, "invalid Unicode surrogate pair")
}

/// The bits that are set.
pub(crate) fn bit_count(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let bytes = args.bytea(0)?;
    coro::work(bytes.len())?;
    let count: u64 = bytes.iter().map(|byte| u64::from(byte.count_ones())).sum();
    Ok(Datum::Int8(i64::try_from(count).unwrap_or(i64::MAX)))
}

/// Without the bytes of a set at its beginning.
pub(crate) fn bytes_ltrim(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (bytes, set) = (args.bytea(0)?, args.bytea(1)?);
    let from = bytes.iter().position(|byte| !set.contains(byte));
    Ok(Datum::bytea(&bytes[from.unwrap_or(bytes.len())..]))
}

/// Without the bytes of a set at its end.
pub(crate) fn bytes_rtrim(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (bytes, set) = (args.bytea(0)?, args.bytea(1)?);
    let last = bytes.iter().rposition(|byte| !set.contains(byte));
    Ok(Datum::bytea(&bytes[..last.map_or(0, |at| at + 1)]))
}
