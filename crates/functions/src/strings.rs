//! Functions of text and bytes.

use std::borrow::Cow;
use std::sync::Arc;

use base::coro;
use base::error::{Error, Result, SqlState};
use base::hash::HashMap;

use super::arguments::Arguments;
use super::hashing::md5_of;
use super::{Call, Rows};
use types::growth::{self, Growing, GrowingBytes};
use types::typmod::CHARACTERS_MAX;
use types::{self, Datum, TypeId};

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
fn as_text<'a>(call: &Call<'_>, args: &'a [Datum], index: usize) -> Result<Cow<'a, str>> {
    let kind = call
        .argument_types
        .get(index)
        .copied()
        .unwrap_or(TypeId::TEXT);
    match args.any(index)? {
        Datum::Text(text) => Ok(Cow::Borrowed(text)),
        value => types::output(call.context, kind, value).map(Cow::Owned),
    }
}

/// Any value cast to text, which differs from its text form where the cast is a function.
fn cast_to_text<'a>(call: &Call<'_>, args: &'a [Datum], index: usize) -> Result<Cow<'a, str>> {
    match (args.any(index)?, call.argument_types.get(index)) {
        (Datum::Bool(value), _) => Ok(Cow::Owned(value.to_string())),
        (Datum::Text(text), Some(&TypeId::BPCHAR)) => Ok(Cow::Borrowed(text.trim_end_matches(' '))),
        _ => as_text(call, args, index),
    }
}

pub(crate) fn concatenate(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (a, b) = (cast_to_text(call, args, 0)?, cast_to_text(call, args, 1)?);
    let mut out = Growing::with_capacity(a.len() + b.len())?;
    out.push_str(&a)?;
    out.push_str(&b)?;
    Ok(out.into_datum())
}

pub(crate) fn bytes_concatenate(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let mut out = GrowingBytes::default();
    out.extend(&args.bytea(0)?)?;
    out.extend(&args.bytea(1)?)?;
    Ok(Datum::bytea(out.into_bytes()))
}

/// `concat`: NULLs count as nothing.
pub(crate) fn concat(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let mut out = Growing::default();
    for (index, value) in args.iter().enumerate() {
        if !value.is_null() {
            out.push_str(&as_text(call, args, index)?)?;
        }
    }
    Ok(out.into_datum())
}

pub(crate) fn concat_ws(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    if args.first().is_none_or(Datum::is_null) {
        return Ok(Datum::Null);
    }
    let (mut out, mut any) = (Growing::default(), false);
    for (index, value) in args.iter().enumerate().skip(1) {
        if !value.is_null() {
            if std::mem::replace(&mut any, true) {
                out.push_str(args.text(0)?)?;
            }
            out.push_str(&as_text(call, args, index)?)?;
        }
    }
    Ok(out.into_datum())
}

fn count(value: usize) -> Result<Datum> {
    Ok(Datum::Int4(value as i32))
}

pub(crate) fn length(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    count(characters(args.text(0)?)?)
}

/// How many characters a text has.
fn characters(text: &str) -> Result<usize> {
    let mut count = 0;
    for piece in growth::pieces(text) {
        count += piece?.chars().count();
    }
    Ok(count)
}

pub(crate) fn bpchar_length(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    count(characters(args.text(0)?.trim_end_matches(' '))?)
}

pub(crate) fn octet_length(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    match args.any(0)? {
        Datum::Bytea(bytes) => count(bytes.len()),
        _ => count(args.text(0)?.len()),
    }
}

pub(crate) fn bit_length(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    match octet_length(call, args)? {
        Datum::Int4(bytes) => Ok(Datum::Int4(bytes.wrapping_mul(8))),
        other => Ok(other),
    }
}

pub(crate) fn upper(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let letters = Letters::of(call);
    map_chars(args.text(0)?, |c| letters.upper(c)).map(Growing::into_datum)
}

pub(crate) fn lower(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let letters = Letters::of(call);
    map_chars(args.text(0)?, |c| letters.lower(c)).map(Growing::into_datum)
}

/// Which characters have two cases.
#[derive(Clone, Copy)]
pub(crate) enum Letters {
    All,
    /// Those of a database whose `LC_CTYPE` is C.
    Ascii,
}

impl Letters {
    pub(crate) fn of(call: &Call<'_>) -> Letters {
        match call.context.ascii_letters {
            true => Letters::Ascii,
            false => Letters::All,
        }
    }

    fn upper(self, c: char) -> char {
        match self {
            Letters::All => single(c.to_uppercase(), c),
            Letters::Ascii => c.to_ascii_uppercase(),
        }
    }

    fn lower(self, c: char) -> char {
        match self {
            Letters::All => base::fold::lower(c),
            Letters::Ascii => c.to_ascii_lowercase(),
        }
    }

    fn has(self, c: char) -> bool {
        match self {
            Letters::All => c.is_alphanumeric(),
            Letters::Ascii => c.is_ascii_alphanumeric(),
        }
    }
}

/// The mapped character, if it is one; C's `towupper` knows no other.
fn single(mut mapped: impl Iterator<Item = char>, c: char) -> char {
    match (mapped.next(), mapped.next()) {
        (Some(one), None) => one,
        _ => c,
    }
}

fn map_chars(text: &str, mut map: impl FnMut(char) -> char) -> Result<Growing> {
    let mut out = Growing::with_capacity(text.len())?;
    for c in text.chars() {
        out.push(map(c))?;
    }
    Ok(out)
}

/// The text in lower case, character by character.
pub(crate) fn fold(text: &str) -> Result<String> {
    fold_letters(Letters::All, text)
}

/// The same where only some letters have cases.
pub(crate) fn fold_letters(letters: Letters, text: &str) -> Result<String> {
    let folded = map_chars(text, |c| letters.lower(c))?;
    Ok(folded.into_string())
}

pub(crate) fn initcap(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let letters = Letters::of(call);
    let mut inside = false;
    let text = map_chars(args.text(0)?, |c| {
        let mapped = match inside {
            true => letters.lower(c),
            false => letters.upper(c),
        };
        inside = letters.has(c);
        mapped
    })?;
    Ok(text.into_datum())
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
    let from = place_of(text, skip)?;
    let rest = &text[from..];
    Ok(&rest[..place_of(rest, take)?])
}

/// Where so many characters of a text end.
fn place_of(text: &str, characters: usize) -> Result<usize> {
    let (mut at, mut left) = (0, characters);
    for piece in growth::pieces(text) {
        let piece = piece?;
        let in_piece = match piece.is_ascii() {
            true => piece.len(),
            false => piece.chars().count(),
        };
        if in_piece > left {
            let inside = piece.char_indices().nth(left);
            return Ok(at + inside.map_or(piece.len(), |(inside, _)| inside));
        }
        left -= in_piece;
        at += piece.len();
        if left == 0 {
            break;
        }
    }
    Ok(at)
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
        false => characters(with)? as i64,
    };
    let after = after_overlay(start, length)?;
    let head = slice_chars(text, 1, Some(start - 1))?;
    let tail = slice_chars(text, after, None)?;
    let mut out = Growing::default();
    for part in [head, with, tail] {
        out.push_str(part)?;
    }
    Ok(out.into_datum())
}

/// Where the text goes on after what was put over it.
fn after_overlay(start: i64, length: i64) -> Result<i64> {
    match i32::try_from(start + length) {
        _ if start <= 0 => Err(negative_substring()),
        Ok(after) => Ok(i64::from(after)),
        Err(_) => Err(super::integer::out_of_range(TypeId::INT4)),
    }
}

/// The same over the bytes of `bytea`.
pub(crate) fn bytes_overlay(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (bytes, with, start) = (args.bytea(0)?, args.bytea(1)?, args.int(2)?);
    let length = match args.len() > 3 {
        true => args.int(3)?,
        false => with.len() as i64,
    };
    let after = after_overlay(start, length)?;
    let bound = |at: i64| usize::try_from(at - 1).unwrap_or(0).min(bytes.len());
    let parts = [&bytes[..bound(start)], &with, &bytes[bound(after)..]];
    growth::check_room(bytes.len(), with.len())?;
    Ok(Datum::Bytea(Arc::from(parts.concat())))
}

pub(crate) fn left(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (text, n) = (args.text(0)?, args.int(1)?);
    let keep = match n < 0 {
        true => (characters(text)? as i64 + n).max(0),
        false => n,
    };
    put(slice_chars(text, 1, Some(keep))?)
}

pub(crate) fn right(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (text, n) = (args.text(0)?, args.int(1)?);
    let total = characters(text)? as i64;
    let skip = match n < 0 {
        true => -n,
        false => (total - n).max(0),
    };
    put(slice_chars(text, skip + 1, None)?)
}

pub(crate) fn reverse(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let text = args.text(0)?;
    let mut out = Growing::with_capacity(text.len())?;
    for c in text.chars().rev() {
        out.push(c)?;
    }
    Ok(out.into_datum())
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
    match find(text, wanted)? {
        Some(at) => count(characters(&text[..at])? + 1),
        None => count(0),
    }
}

/// Where a text first stands in another one.
pub(crate) fn find(text: &str, wanted: &str) -> Result<Option<usize>> {
    // A piece with as much behind it as a place that begins in it can need.
    let step = wanted.len().max(FIND_STEP);
    let boundary = |at: usize| {
        let mut ends = at.min(text.len())..=text.len();
        ends.find(|at| text.is_char_boundary(*at))
            .unwrap_or(text.len())
    };
    let mut from = 0;
    loop {
        let end = boundary(from + step + wanted.len());
        let found = text[from..end].find(wanted);
        coro::work(wanted.len() + found.unwrap_or(end - from))?;
        if let Some(at) = found {
            return Ok(Some(from + at));
        }
        if end == text.len() {
            return Ok(None);
        }
        from = boundary(from + step);
    }
}

/// How much of a text is searched at a time.
const FIND_STEP: usize = 16 << 10;

pub(crate) fn bytes_position(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (bytes, wanted) = (args.bytea(0)?, args.bytea(1)?);
    if wanted.is_empty() {
        return count(1);
    }
    for (at, part) in bytes.windows(wanted.len()).enumerate() {
        if at % 64 == 0 {
            coro::work(64 * 8)?;
        }
        if *part == *wanted {
            return count(at + 1);
        }
    }
    count(0)
}

pub(crate) fn replace(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (text, from) = (args.text(0)?, args.text(1)?);
    if from.is_empty() {
        return args.any(0).cloned();
    }
    let (to, mut out, mut rest) = (args.text(2)?, Growing::default(), text);
    while let Some(at) = find(rest, from)? {
        out.push_str(&rest[..at])?;
        out.push_str(to)?;
        rest = &rest[at + from.len()..];
    }
    out.push_str(rest)?;
    Ok(out.into_datum())
}

pub(crate) fn translate(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let from: Vec<char> = args.text(1)?.chars().collect();
    let to: Vec<char> = args.text(2)?.chars().collect();
    let mut map: HashMap<char, Option<char>> = HashMap::default();
    for (index, c) in from.into_iter().enumerate() {
        map.entry(c).or_insert_with(|| to.get(index).copied());
    }
    let text = args.text(0)?;
    let mut out = Growing::with_capacity(text.len())?;
    for piece in growth::pieces(text) {
        for c in piece?.chars() {
            match map.get(&c) {
                None => out.push(c)?,
                Some(Some(other)) => out.push(*other)?,
                Some(None) => {}
            }
        }
    }
    Ok(out.into_datum())
}

pub(crate) fn repeat(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let text = args.text(0)?;
    let times = usize::try_from(args.int(1)?).unwrap_or(0);
    if growth::check_room(0, text.len().saturating_mul(times)).is_err() {
        return Err(too_large());
    }
    let mut out = Growing::default();
    out.push_times(text, times)?;
    Ok(out.into_datum())
}

fn padding(args: &[Datum]) -> Result<(String, bool)> {
    let text = args.text(0)?;
    let fill: Vec<char> = match args.len() > 2 {
        true => args.text(2)?.chars().collect(),
        false => vec![' '],
    };
    let wanted = usize::try_from(args.int(1)?).unwrap_or(0);
    if growth::check_room(0, wanted.saturating_mul(4)).is_err() {
        return Err(too_large());
    }
    let has = characters(text)?;
    let missing = wanted.saturating_sub(has);
    let mut pad = Growing::default();
    let filling = fill.iter().cycle().take(missing);
    for c in filling {
        pad.push(*c)?;
    }
    match fill.is_empty() {
        true => Ok((String::new(), wanted < has)),
        false => Ok((pad.into_string(), missing == 0)),
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
    if field < 0 {
        let mut parts = text.rsplit(separator);
        for _ in 0..index {
            coro::work(separator.len() * 8)?;
            if parts.next().is_none() {
                return put("");
            }
        }
        return put(parts.next().unwrap_or(""));
    }
    let mut rest = text;
    for _ in 0..index {
        match find(rest, separator)? {
            Some(at) => rest = &rest[at + separator.len()..],
            None => return put(""),
        }
    }
    put(&rest[..find(rest, separator)?.unwrap_or(rest.len())])
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
        Datum::Bytea(bytes) => put(md5_of(bytes)?),
        _ => put(md5_of(args.text(0)?.as_bytes())?),
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
    let text = cast_to_text(call, args, 0)?;
    if text.len() <= FIND_STEP {
        return put(quote_string(&text));
    }
    let mut out = Growing::with_capacity(text.len())?;
    out.push_str(if text.contains('\\') { "E'" } else { "'" })?;
    for c in text.chars() {
        if matches!(c, '\'' | '\\') {
            out.push(c)?;
        }
        out.push(c)?;
    }
    out.push('\'')?;
    Ok(out.into_datum())
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
    let mut out = Growing::default();
    let mut rest = template.chars().peekable();
    let mut next = 1;
    while let Some(c) = rest.next() {
        if c != '%' {
            out.push(c)?;
        } else if rest.next_if_eq(&'%').is_some() {
            out.push('%')?;
        } else {
            next = format_one(call, args, &mut rest, next, &mut out)?;
        }
    }
    Ok(out.into_datum())
}

/// What follows one `%`; gives the number of the next argument.
fn format_one(
    call: &Call<'_>,
    args: &[Datum],
    rest: &mut Characters<'_>,
    next: usize,
    out: &mut Growing,
) -> Result<usize> {
    let mut width = digits(rest);
    let mut index = next;
    let is_numbered = !width.is_empty() && rest.next_if_eq(&'$').is_some();
    if is_numbered {
        index = argument_number(&width)?;
        width = String::new();
    }
    let mut left = rest.next_if_eq(&'-').is_some();
    if width.is_empty() && rest.next_if_eq(&'*').is_some() {
        let number = digits(rest);
        let of_width = match number.is_empty() {
            true => next,
            false if rest.next_if_eq(&'$').is_some() => argument_number(&number)?,
            false => {
                let message = "width argument position must be ended by \"$\"";
                return Err(bad_format(message));
            }
        };
        let wide = format_width(call, args, of_width)?;
        left |= wide < 0;
        width = wide.unsigned_abs().to_string();
        if !is_numbered {
            index = of_width + 1;
        }
    }
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
    let missing = pad.saturating_sub(characters(&shown)?);
    if !left {
        out.push_times(" ", missing)?;
    }
    out.push_str(&shown)?;
    if left {
        out.push_times(" ", missing)?;
    }
    Ok(index + 1)
}

/// The number of an argument that a template names.
fn argument_number(digits: &str) -> Result<usize> {
    match digits.parse().unwrap_or(usize::MAX) {
        0 => Err(bad_format(
            "format specifies argument 0, but arguments are numbered from 1",
        )),
        number => Ok(number),
    }
}

/// A width that an argument gives; NULL is none.
fn format_width(call: &Call<'_>, args: &[Datum], index: usize) -> Result<i64> {
    match args.get(index) {
        None => Err(bad_format("too few arguments for format()")),
        Some(Datum::Null) => Ok(0),
        Some(Datum::Int4(width)) => Ok(i64::from(*width)),
        Some(Datum::Int2(width)) => Ok(i64::from(*width)),
        Some(_) => {
            let text = as_text(call, args, index)?;
            let width = types::input(call.context, TypeId::INT4, types::NO_TYPMOD, &text)?;
            Ok(width.as_i64().unwrap_or(0))
        }
    }
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
        ('s', false) => as_text(call, args, index).map(Cow::into_owned),
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

fn base64(bytes: &[u8]) -> Result<Growing> {
    let mut out = Growing::default();
    let mut line = 0;
    for chunk in bytes.chunks(3) {
        if line == BASE64_LINE {
            out.push('\n')?;
            line = 0;
        }
        let word = u32::from(chunk[0]) << 16
            | u32::from(*chunk.get(1).unwrap_or(&0)) << 8
            | u32::from(*chunk.get(2).unwrap_or(&0));
        for index in 0..4 {
            if index > chunk.len() {
                out.push('=')?;
            } else {
                let digit = word >> (18 - 6 * index) & 63;
                out.push(char::from(BASE64[digit as usize]))?;
            }
        }
        line += 4;
    }
    Ok(out)
}

fn unbase64(text: &str) -> Result<Vec<u8>> {
    let wrong = |message: String| Error::new(SqlState::INVALID_PARAMETER_VALUE, message);
    let mut out = Vec::new();
    let (mut word, mut digits, mut padding) = (0u32, 0, 0);
    for c in text.chars().filter(|c| !c.is_ascii_whitespace()) {
        if digits == 0 {
            coro::work(64)?;
        }
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
        "hex" => {
            let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value)]);
            let mut out = Growing::default();
            for byte in bytes.iter() {
                out.push(digit(byte >> 4))?;
                out.push(digit(byte & 15))?;
            }
            Ok(out.into_datum())
        }
        "base64" => base64(&bytes).map(Growing::into_datum),
        "escape" => {
            let mut out = Growing::default();
            for byte in bytes.iter() {
                match byte {
                    0 | 0x80.. => out.push_str(&format!("\\{byte:03o}"))?,
                    b'\\' => out.push_str("\\\\")?,
                    _ => out.push(char::from(*byte))?,
                }
            }
            Ok(out.into_datum())
        }
        _ => Err(unknown_encoding(name)),
    }
}

pub(crate) fn decode(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (text, name) = (args.text(0)?, args.text(1)?);
    match name.to_ascii_lowercase().as_str() {
        "hex" => {
            let mut hex = types::text::Hex::default();
            for piece in growth::pieces(text) {
                hex.read(piece?)?;
            }
            hex.finish().map(Datum::bytea)
        }
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
    Ok(Datum::Char(types::text::parse_char(args.text(0)?)))
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
