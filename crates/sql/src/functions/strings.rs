//! Functions of text and bytes.

use base::error::{Error, Result, SqlState};

use super::arguments::Arguments;
use super::hashing::md5_hex;
use super::{Call, Rows};
use crate::types::typmod::CHARACTERS_MAX;
use crate::types::{self, Datum, TypeId};

/// Bytes that a text may have at most.
const TEXT_BYTES_MAX: usize = 1 << 30;

fn too_large() -> Error {
    Error::new(
        SqlState::PROGRAM_LIMIT_EXCEEDED,
        "requested length too large",
    )
}

fn negative_substring() -> Error {
    Error::new(
        SqlState::of("22011"),
        "negative substring length not allowed",
    )
}

fn put(text: impl AsRef<str>) -> Result<Datum> {
    Ok(Datum::text(text))
}

/// Any value as text.
fn as_text(call: &Call<'_>, args: &[Datum], index: usize) -> Result<String> {
    let kind = call
        .argument_types
        .get(index)
        .copied()
        .unwrap_or(TypeId::TEXT);
    types::output(call.context, kind, args.any(index)?)
}

/// Any value cast to text, which differs from its text form where the cast is a function.
fn cast_to_text(call: &Call<'_>, args: &[Datum], index: usize) -> Result<String> {
    match (args.any(index)?, call.argument_types.get(index)) {
        (Datum::Bool(value), _) => Ok(value.to_string()),
        (Datum::Text(text), Some(&TypeId::BPCHAR)) => Ok(text.trim_end_matches(' ').to_owned()),
        _ => as_text(call, args, index),
    }
}

pub(crate) fn concatenate(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (a, b) = (cast_to_text(call, args, 0)?, cast_to_text(call, args, 1)?);
    put(a + &b)
}

pub(crate) fn bytes_concatenate(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::bytea(
        [&args.bytea(0)?[..], &args.bytea(1)?[..]].concat(),
    ))
}

/// `concat`: NULLs count as nothing.
pub(crate) fn concat(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let mut out = String::new();
    for (index, value) in args.iter().enumerate() {
        if !value.is_null() {
            out.push_str(&as_text(call, args, index)?);
        }
    }
    put(out)
}

pub(crate) fn concat_ws(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    if args.first().is_none_or(Datum::is_null) {
        return Ok(Datum::Null);
    }
    let mut parts = Vec::new();
    for (index, value) in args.iter().enumerate().skip(1) {
        if !value.is_null() {
            parts.push(as_text(call, args, index)?);
        }
    }
    put(parts.join(args.text(0)?))
}

fn count(value: usize) -> Result<Datum> {
    Ok(Datum::Int4(value as i32))
}

pub(crate) fn length(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let text = args.text(0)?;
    count(match text.is_ascii() {
        true => text.len(),
        false => text.chars().count(),
    })
}

pub(crate) fn bpchar_length(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    count(args.text(0)?.trim_end_matches(' ').chars().count())
}

pub(crate) fn octet_length(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    match args.any(0)? {
        Datum::Bytea(bytes) => count(bytes.len()),
        _ => count(args.text(0)?.len()),
    }
}

pub(crate) fn bit_length(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    match octet_length(call, args)? {
        Datum::Int4(bytes) => Ok(Datum::Int4(bytes * 8)),
        other => Ok(other),
    }
}

pub(crate) fn upper(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    put(map_chars(args.text(0)?, |c| single(c.to_uppercase(), c)))
}

pub(crate) fn lower(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    put(map_chars(args.text(0)?, |c| single(c.to_lowercase(), c)))
}

/// The mapped character, if it is one; C's `towupper` knows no other.
fn single(mut mapped: impl Iterator<Item = char>, c: char) -> char {
    match (mapped.next(), mapped.next()) {
        (Some(one), None) => one,
        _ => c,
    }
}

fn map_chars(text: &str, map: impl Fn(char) -> char) -> String {
    text.chars().map(map).collect()
}

/// The text in lower case, character by character.
pub(crate) fn fold(text: &str) -> String {
    map_chars(text, |c| single(c.to_lowercase(), c))
}

pub(crate) fn initcap(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let mut inside = false;
    let text: String = args
        .text(0)?
        .chars()
        .map(|c| {
            let mapped = match inside {
                true => single(c.to_lowercase(), c),
                false => single(c.to_uppercase(), c),
            };
            inside = c.is_alphanumeric();
            mapped
        })
        .collect();
    put(text)
}

/// The characters from `start` (counted from 1, perhaps from before it), at most `length` of them.
fn slice_chars(text: &str, start: i64, length: Option<i64>) -> Result<&str> {
    let end = match length {
        None => i64::MAX,
        Some(length) if length < 0 => return Err(negative_substring()),
        Some(length) => start.saturating_add(length),
    };
    let skip = usize::try_from(start - 1).unwrap_or(0);
    let take = usize::try_from(end.saturating_sub(start.max(1))).unwrap_or(0);
    let from = text
        .char_indices()
        .nth(skip)
        .map_or(text.len(), |(at, _)| at);
    let rest = &text[from..];
    let to = rest
        .char_indices()
        .nth(take)
        .map_or(rest.len(), |(at, _)| at);
    Ok(&rest[..to])
}

pub(crate) fn substring(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let length = if args.len() > 2 {
        Some(args.int(2)?)
    } else {
        None
    };
    put(slice_chars(args.text(0)?, args.int(1)?, length)?)
}

pub(crate) fn bytes_substring(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (bytes, start) = (args.bytea(0)?, args.int(1)?);
    let end = match args.len() > 2 {
        true if args.int(2)? < 0 => return Err(negative_substring()),
        true => start + args.int(2)?,
        false => i64::MAX,
    };
    let bound = |at: i64| usize::try_from(at - 1).unwrap_or(0).min(bytes.len());
    let (from, to) = (bound(start), bound(end));
    Ok(Datum::bytea(&bytes[from..to.max(from)]))
}

pub(crate) fn overlay(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (text, with, start) = (args.text(0)?, args.text(1)?, args.int(2)?);
    let length = match args.len() > 3 {
        true => args.int(3)?,
        false => with.chars().count() as i64,
    };
    if start <= 0 {
        return Err(negative_substring());
    }
    let after = start.saturating_add(length);
    let head = slice_chars(text, 1, Some(start - 1))?;
    let tail = slice_chars(text, after, None)?;
    put(format!("{head}{with}{tail}"))
}

pub(crate) fn left(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (text, n) = (args.text(0)?, args.int(1)?);
    let keep = match n < 0 {
        true => (text.chars().count() as i64 + n).max(0),
        false => n,
    };
    put(slice_chars(text, 1, Some(keep))?)
}

pub(crate) fn right(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (text, n) = (args.text(0)?, args.int(1)?);
    let total = text.chars().count() as i64;
    let skip = match n < 0 {
        true => -n,
        false => (total - n).max(0),
    };
    put(slice_chars(text, skip + 1, None)?)
}

pub(crate) fn reverse(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    put(args.text(0)?.chars().rev().collect::<String>())
}

fn trim_set(args: &[Datum]) -> Result<Vec<char>> {
    match args.len() > 1 {
        true => Ok(args.text(1)?.chars().collect()),
        false => Ok(vec![' ']),
    }
}

pub(crate) fn trim(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let set = trim_set(args)?;
    put(args.text(0)?.trim_matches(&set[..]))
}

pub(crate) fn trim_start(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let set = trim_set(args)?;
    put(args.text(0)?.trim_start_matches(&set[..]))
}

pub(crate) fn trim_end(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let set = trim_set(args)?;
    put(args.text(0)?.trim_end_matches(&set[..]))
}

pub(crate) fn bytes_trim(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (bytes, set) = (args.bytea(0)?, args.bytea(1)?);
    let kept = |byte: &u8| !set.contains(byte);
    let from = bytes.iter().position(kept).unwrap_or(bytes.len());
    let to = bytes.iter().rposition(kept).map_or(from, |at| at + 1);
    Ok(Datum::bytea(&bytes[from..to]))
}

pub(crate) fn position(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (text, wanted) = (args.text(0)?, args.text(1)?);
    match text.find(wanted) {
        Some(at) => count(text[..at].chars().count() + 1),
        None => count(0),
    }
}

pub(crate) fn bytes_position(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (bytes, wanted) = (args.bytea(0)?, args.bytea(1)?);
    if wanted.is_empty() {
        return count(1);
    }
    let found = bytes
        .windows(wanted.len())
        .position(|part| *part == *wanted);
    count(found.map_or(0, |at| at + 1))
}

pub(crate) fn replace(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (text, from) = (args.text(0)?, args.text(1)?);
    if from.is_empty() {
        return args.any(0).cloned();
    }
    put(text.replace(from, args.text(2)?))
}

pub(crate) fn translate(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let from: Vec<char> = args.text(1)?.chars().collect();
    let to: Vec<char> = args.text(2)?.chars().collect();
    let text: String = args
        .text(0)?
        .chars()
        .filter_map(|c| match from.iter().position(|f| *f == c) {
            None => Some(c),
            Some(index) => to.get(index).copied(),
        })
        .collect();
    put(text)
}

pub(crate) fn repeat(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let text = args.text(0)?;
    let times = usize::try_from(args.int(1)?).unwrap_or(0);
    if text.len().saturating_mul(times) >= TEXT_BYTES_MAX {
        return Err(too_large());
    }
    put(text.repeat(times))
}

fn padding(args: &[Datum]) -> Result<(String, bool)> {
    let text = args.text(0)?;
    let fill: Vec<char> = match args.len() > 2 {
        true => args.text(2)?.chars().collect(),
        false => vec![' '],
    };
    let wanted = usize::try_from(args.int(1)?).unwrap_or(0);
    if wanted >= TEXT_BYTES_MAX / 4 {
        return Err(too_large());
    }
    let missing = wanted.saturating_sub(text.chars().count());
    match fill.is_empty() {
        true => Ok((String::new(), wanted < text.chars().count())),
        false => Ok((fill.iter().cycle().take(missing).collect(), missing == 0)),
    }
}

pub(crate) fn pad_left(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (pad, cut) = padding(args)?;
    match cut {
        true => put(slice_chars(args.text(0)?, 1, Some(args.int(1)?.max(0)))?),
        false => put(pad + args.text(0)?),
    }
}

pub(crate) fn pad_right(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (pad, cut) = padding(args)?;
    match cut {
        true => put(slice_chars(args.text(0)?, 1, Some(args.int(1)?.max(0)))?),
        false => put(args.text(0)?.to_owned() + &pad),
    }
}

pub(crate) fn split_part(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (text, separator, field) = (args.text(0)?, args.text(1)?, args.int(2)?);
    if field == 0 {
        return Err(Error::new(
            SqlState::INVALID_PARAMETER_VALUE,
            "field position must not be zero",
        ));
    }
    if text.is_empty() || separator.is_empty() {
        return put(if field == 1 || field == -1 { text } else { "" });
    }
    let index = (field.unsigned_abs() - 1) as usize;
    let found = match field > 0 {
        true => text.split(separator).nth(index),
        false => {
            let parts: Vec<&str> = text.split(separator).collect();
            parts.iter().rev().nth(index).copied()
        }
    };
    put(found.unwrap_or(""))
}

pub(crate) fn ascii(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(
        args.text(0)?.chars().next().map_or(0, |c| c as i32),
    ))
}

pub(crate) fn chr(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let code = args.int4(0)?;
    let limit = |message: String| Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message);
    if code < 0 {
        return Err(Error::new(
            SqlState::INVALID_PARAMETER_VALUE,
            "character number must be positive",
        ));
    }
    if code == 0 {
        return Err(limit("null character not permitted".to_owned()));
    }
    match char::from_u32(code as u32) {
        Some(c) => put(c.to_string()),
        None if code > 0x10_ffff => Err(limit(format!(
            "requested character too large for encoding: {code}"
        ))),
        None => Err(limit(format!(
            "requested character not valid for encoding: {code}"
        ))),
    }
}

pub(crate) fn starts_with(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(args.text(0)?.starts_with(args.text(1)?)))
}

pub(crate) fn md5(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    match args.any(0)? {
        Datum::Bytea(bytes) => put(md5_hex(bytes)),
        _ => put(md5_hex(args.text(0)?.as_bytes())),
    }
}

// ---- quoting

/// An identifier as it must be written: in double quotes unless it is a plain lower-case word that
/// is no keyword.
pub fn quote_identifier(name: &str) -> String {
    let mut bytes = name.bytes();
    let plain = bytes
        .next()
        .is_some_and(|b| b.is_ascii_lowercase() || b == b'_')
        && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        && !super::keywords::is_reserved(name);
    match plain {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

/// A string as a literal, with `E''` where it has backslashes.
pub fn quote_string(text: &str) -> String {
    let doubled = text.replace('\'', "''");
    match doubled.contains('\\') {
        true => format!("E'{}'", doubled.replace('\\', "\\\\")),
        false => format!("'{doubled}'"),
    }
}

pub(crate) fn quote_ident(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    put(quote_identifier(args.text(0)?))
}

pub(crate) fn quote_literal(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    put(quote_string(&cast_to_text(call, args, 0)?))
}

pub(crate) fn quote_nullable(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    match args.any(0)? {
        Datum::Null => put("NULL"),
        _ => quote_literal(call, args),
    }
}

type Characters<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn digits(rest: &mut Characters<'_>) -> String {
    let mut found = String::new();
    while let Some(digit) = rest.next_if(char::is_ascii_digit) {
        found.push(digit);
    }
    found
}

fn bad_format(message: impl Into<String>) -> Error {
    Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// `format`: `%s`, `%I`, `%L`, `%%`, positions, widths.
pub(crate) fn format(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let Datum::Text(template) = args.any(0)? else {
        return Ok(Datum::Null);
    };
    let mut out = String::new();
    let mut rest = template.chars().peekable();
    let mut next = 1;
    while let Some(c) = rest.next() {
        if c != '%' {
            out.push(c);
        } else if rest.next_if_eq(&'%').is_some() {
            out.push('%');
        } else {
            next = format_one(call, args, &mut rest, next, &mut out)?;
        }
    }
    put(out)
}

/// What follows one `%`; gives the number of the next argument.
fn format_one(
    call: &Call<'_>,
    args: &[Datum],
    rest: &mut Characters<'_>,
    next: usize,
    out: &mut String,
) -> Result<usize> {
    let mut width = digits(rest);
    let mut index = next;
    if !width.is_empty() && rest.next_if_eq(&'$').is_some() {
        index = width.parse().unwrap_or(usize::MAX);
        if index == 0 {
            return Err(bad_format(
                "format specifies argument 0, but arguments are numbered from 1",
            ));
        }
        width = String::new();
    }
    let left = rest.next_if_eq(&'-').is_some();
    if width.is_empty() {
        width = digits(rest);
    }
    let shown = match rest.next() {
        None => {
            return Err(bad_format("unterminated format() type specifier")
                .with_hint("For a single \"%\" use \"%%\"."))
        }
        Some(conversion) => format_value(call, args, index, conversion)?,
    };
    let pad: usize = width.parse().unwrap_or(0);
    if pad > CHARACTERS_MAX as usize {
        return Err(bad_format("number is out of range"));
    }
    let missing = " ".repeat(pad.saturating_sub(shown.chars().count()));
    match left {
        true => out.extend([shown, missing]),
        false => out.extend([missing, shown]),
    }
    Ok(index + 1)
}

fn format_value(call: &Call<'_>, args: &[Datum], index: usize, conversion: char) -> Result<String> {
    if !matches!(conversion, 's' | 'I' | 'L') {
        return Err(bad_format(std::format!(
            "unrecognized format() type specifier \"{conversion}\""
        ))
        .with_hint("For a single \"%\" use \"%%\"."));
    }
    let value = args
        .get(index)
        .ok_or_else(|| bad_format("too few arguments for format()"))?;
    match (conversion, value.is_null()) {
        ('s', true) => Ok(String::new()),
        ('L', true) => Ok("NULL".to_owned()),
        ('I', true) => Err(Error::new(
            SqlState::of("22004"),
            "null values cannot be formatted as an SQL identifier",
        )),
        ('s', false) => as_text(call, args, index),
        ('I', false) => as_text(call, args, index).map(|text| quote_identifier(&text)),
        _ => as_text(call, args, index).map(|text| quote_string(&text)),
    }
}

// ---- bytes as text

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// Characters of a line of base64.
const BASE64_LINE: usize = 76;

fn unknown_encoding(name: &str) -> Error {
    Error::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!("unrecognized encoding: \"{name}\""),
    )
}

fn base64(bytes: &[u8]) -> String {
    let mut out = String::new();
    let mut line = 0;
    for chunk in bytes.chunks(3) {
        if line == BASE64_LINE {
            out.push('\n');
            line = 0;
        }
        let word = u32::from(chunk[0]) << 16
            | u32::from(*chunk.get(1).unwrap_or(&0)) << 8
            | u32::from(*chunk.get(2).unwrap_or(&0));
        for index in 0..4 {
            if index > chunk.len() {
                out.push('=');
            } else {
                let digit = word >> (18 - 6 * index) & 63;
                out.push(char::from(BASE64[digit as usize]));
            }
        }
        line += 4;
    }
    out
}

fn unbase64(text: &str) -> Result<Vec<u8>> {
    let wrong = |message: String| Error::new(SqlState::INVALID_PARAMETER_VALUE, message);
    let mut out = Vec::new();
    let (mut word, mut digits, mut padding) = (0u32, 0, 0);
    for c in text.chars().filter(|c| !c.is_ascii_whitespace()) {
        let value = match c {
            '=' => {
                padding += 1;
                if digits < 2 || padding > 2 {
                    return Err(wrong(
                        "unexpected \"=\" while decoding base64 sequence".to_owned(),
                    ));
                }
                0
            }
            _ => BASE64
                .iter()
                .position(|b| char::from(*b) == c)
                .ok_or_else(|| {
                    wrong(format!(
                        "invalid symbol \"{c}\" found while decoding base64 sequence"
                    ))
                })? as u32,
        };
        word = word << 6 | value;
        digits += 1;
        if digits == 4 {
            out.extend_from_slice(&word.to_be_bytes()[1..4 - padding]);
            (word, digits) = (0, 0);
        }
    }
    if digits != 0 {
        return Err(wrong("invalid base64 end sequence".to_owned())
            .with_hint("Input data is missing padding, is truncated, or is otherwise corrupted."));
    }
    Ok(out)
}

pub(crate) fn encode(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (bytes, name) = (args.bytea(0)?, args.text(1)?);
    match name.to_ascii_lowercase().as_str() {
        "hex" => put(bytes.iter().map(|b| format!("{b:02x}")).collect::<String>()),
        "base64" => put(base64(&bytes)),
        "escape" => {
            let mut out = String::new();
            for byte in bytes.iter() {
                match byte {
                    0 | 0x80.. => out.push_str(&format!("\\{byte:03o}")),
                    b'\\' => out.push_str("\\\\"),
                    _ => out.push(char::from(*byte)),
                }
            }
            put(out)
        }
        _ => Err(unknown_encoding(name)),
    }
}

pub(crate) fn decode(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (text, name) = (args.text(0)?, args.text(1)?);
    match name.to_ascii_lowercase().as_str() {
        "hex" => types::text::parse_hex(text).map(Datum::bytea),
        "base64" => unbase64(text).map(Datum::bytea),
        "escape" => types::input(call.context, TypeId::BYTEA, -1, text),
        _ => Err(unknown_encoding(name)),
    }
}

// ---- casts

/// Between the types that are kept as text, where nothing changes.
pub(crate) fn same(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    args.any(0).cloned()
}

pub(crate) fn to_name(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    put(types::text::truncate_name(args.text(0)?))
}

/// `char(n)` to name.
pub(crate) fn bpchar_to_name(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    put(types::text::truncate_name(args.text(0)?).trim_end_matches(' '))
}

pub(crate) fn char_to_text(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    put(types::output(call.context, TypeId::CHAR, args.any(0)?)?)
}

pub(crate) fn text_to_char(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Char(args.text(0)?.bytes().next().unwrap_or(0)))
}

pub(crate) fn bool_to_text(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    put(if args.bool(0)? { "true" } else { "false" })
}

/// `regclass` of a text.
pub(crate) fn to_regclass(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    types::input(call.context, TypeId::REGCLASS, -1, args.text(0)?)
}

/// The length coercion of `varchar` and `char`: value, modifier, explicitness.
pub(crate) fn fit(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let kind = call.argument_types.first().copied().unwrap_or(call.result);
    types::apply_typmod(kind, args.int4(1)?, args.any(0)?.clone(), args.bool(2)?)
}

/// The length coercion of the types that have no explicitness: value, modifier.
pub(crate) fn fit_scale(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let kind = call.argument_types.first().copied().unwrap_or(call.result);
    types::apply_typmod(kind, args.int4(1)?, args.any(0)?.clone(), false)
}

/// `string_to_table`.
pub(crate) fn to_table(_: &Call<'_>, args: &[Datum]) -> Result<Rows> {
    let parts = super::arrays::split(args)?.unwrap_or_default();
    Ok(Box::new(parts.into_iter().map(Ok)))
}
