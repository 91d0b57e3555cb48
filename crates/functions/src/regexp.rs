//! `~` and the functions of regular expressions, and SIMILAR TO, which becomes one.
//!
//! What an expression means is [`crate::regex`]'s. Places are counted in characters, from 1.

use std::cell::RefCell;
use std::rc::Rc;

use base::error::{Error, Result, SqlState};
use base::hash::HashMap;
use base::memory::Reservation;

use super::arguments::Arguments;
use super::pattern::matchers;
use super::{Call, Rows};
use crate::regex::{Flags, Found, Regex, Span};
use types::growth::{self, Growing};
use types::{Array, Datum, TypeId};

/// Expressions kept per thread; at this number all are forgotten.
const CACHED_MAX: usize = 100;

/// Longer expressions are not kept.
const CACHED_LENGTH_MAX: usize = 1_000;

thread_local! {
    static COMPILED: RefCell<HashMap<(String, Flags), Rc<Regex>>> = RefCell::new(HashMap::default());
}

matchers! {
    text_regex text_not_regex(text, pattern) Options::default().compile(pattern)?.is_match(text)?;
    text_iregex text_not_iregex(text, pattern) Options::folded().compile(pattern)?.is_match(text)?;
}

/// What the letters of the last argument say.
#[derive(Clone, Copy, Default)]
struct Options {
    flags: Flags,
    /// All matches.
    global: bool,
}

impl Options {
    fn folded() -> Options {
        let mut options = Options::default();
        options.flags.fold = true;
        options
    }

    fn of(letters: &str) -> Result<Options> {
        let mut options = Options::default();
        for letter in letters.chars() {
            if letter == 'g' {
                options.global = true;
            } else if !options.flags.set(letter) {
                return Err(Error::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    format!("invalid regular expression option: \"{letter}\""),
                ));
            }
        }
        Ok(options)
    }

    /// Those of an argument that may not be given; without `g`.
    fn of_one(function: &str, args: &[Datum], index: usize) -> Result<Options> {
        let options = match args.len() > index {
            true => Options::of(args.text(index)?)?,
            false => Options::default(),
        };
        match options.global {
            false => Ok(options),
            true => Err(Error::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("{function}() does not support the \"global\" option"),
            )),
        }
    }

    fn compile(self, pattern: &str) -> Result<Rc<Regex>> {
        let key = (pattern.to_owned(), self.flags);
        if let Some(found) = COMPILED.with(|cache| cache.borrow().get(&key).cloned()) {
            return Ok(found);
        }
        let regex = Rc::new(Regex::new(pattern, self.flags)?);
        if pattern.len() <= CACHED_LENGTH_MAX {
            COMPILED.with(|cache| {
                let mut cache = cache.borrow_mut();
                if cache.len() >= CACHED_MAX {
                    cache.clear();
                }
                cache.insert(key, regex.clone());
            });
        }
        Ok(regex)
    }
}

/// A number among the last arguments, which is at least so large.
fn number(args: &[Datum], index: usize, name: &str, least: i32, otherwise: i32) -> Result<usize> {
    let value = match args.len() > index {
        true => args.int4(index)?,
        false => otherwise,
    };
    let fits = value >= least && (name != "endoption" || value <= 1);
    match usize::try_from(value) {
        Ok(value) if fits => Ok(value),
        _ => Err(Error::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("invalid value for parameter \"{name}\": {value}"),
        )),
    }
}

/// Where the character with a number from 1 begins; behind the end for what is further than that.
fn start_of(text: &str, number: usize) -> usize {
    let mut places = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    places.nth(number - 1).unwrap_or(text.len() + 1)
}

/// The replacement, with what `\1` and `\&` stand for.
fn expand(text: &str, found: &Found, replacement: &str, out: &mut Growing) -> Result<()> {
    let mut rest = replacement;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at])?;
        rest = &rest[at + 1..];
        let span = match rest.bytes().next() {
            Some(b'&') => Some(found.whole),
            Some(digit @ b'1'..=b'9') => {
                let group = found.groups.get(usize::from(digit - b'1'));
                group.copied().flatten()
            }
            Some(b'\\') => {
                out.push('\\')?;
                None
            }
            _ => {
                out.push('\\')?;
                continue;
            }
        };
        if let Some((begin, end)) = span {
            out.push_str(&text[begin..end])?;
        }
        rest = &rest[1..];
    }
    out.push_str(rest)
}

/// `regexp_replace(text, pattern, replacement [, start [, n]] [, flags])`.
pub(crate) fn regexp_replace(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (text, replacement) = (args.text(0)?, args.text(2)?);
    let by_number = matches!(args.get(3), Some(Datum::Int4(_)));
    let start = number(args, if by_number { 3 } else { args.len() }, "start", 1, 1)?;
    let wanted = number(args, if by_number { 4 } else { args.len() }, "n", 0, 1)?;
    let letters = match args.get(if by_number { 5 } else { 3 }) {
        Some(Datum::Text(letters)) => letters,
        _ => "",
    };
    if !by_number && letters.starts_with(|c: char| c.is_ascii_digit()) {
        let letter = &letters[..1];
        let message = format!("invalid regular expression option: \"{letter}\"");
        let hint = "If you meant to use regexp_replace() with a start parameter, cast the fourth \
                    argument to integer explicitly.";
        return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message).with_hint(hint));
    }
    let options = Options::of(letters)?;
    let all = match args.len() > 4 {
        true => wanted == 0,
        false => options.global,
    };
    let regex = options.compile(args.text(1)?)?;
    let (mut out, mut end, mut met) = (Growing::default(), 0, 0);
    regex.each(text, start_of(text, start), &mut |found| {
        met += 1;
        if !all && met != wanted {
            return Ok(true);
        }
        out.push_str(&text[end..found.whole.0])?;
        expand(text, &found, replacement, &mut out)?;
        end = found.whole.1;
        Ok(all)
    })?;
    out.push_str(&text[end..])?;
    Ok(out.into_datum())
}

fn part(text: &str, span: Option<Span>) -> Datum {
    span.map_or(Datum::Null, |(begin, end)| Datum::text(&text[begin..end]))
}

/// What the parentheses of a match hold, or the match itself if there are none.
fn groups(text: &str, found: &Found) -> Datum {
    let parts: Vec<_> = match found.groups.is_empty() {
        true => vec![part(text, Some(found.whole))],
        false => found.groups.iter().map(|span| part(text, *span)).collect(),
    };
    Datum::Array(Array::of(TypeId::TEXT, parts).into())
}

/// `regexp_match`.
pub(crate) fn regexp_match(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let options = Options::of_one("regexp_match", args, 2).map_err(|error| {
        match error.message().ends_with("option") {
            true => error.with_hint("Use the regexp_matches function instead."),
            false => error,
        }
    })?;
    let text = args.text(0)?;
    let found = options.compile(args.text(1)?)?.find(text, 0)?;
    Ok(found.map_or(Datum::Null, |found| groups(text, &found)))
}

/// `regexp_matches`.
pub(crate) fn regexp_matches(_: &Call<'_>, args: &[Datum]) -> Result<Rows> {
    let options = match args.len() > 2 {
        true => Options::of(args.text(2)?)?,
        false => Options::default(),
    };
    let text = args.text(0)?;
    let mut rows = Vec::new();
    options
        .compile(args.text(1)?)?
        .each(text, 0, &mut |found| {
            rows.push(groups(text, &found));
            Ok(options.global)
        })?;
    Ok(Box::new(rows.into_iter().map(Ok)))
}

/// What a part takes beside its place and its bytes.
const PART_BYTES: usize = 32;

/// The parts between matches; an empty match at either end, or right behind another, parts nothing.
fn split(function: &str, args: &[Datum]) -> Result<Vec<Datum>> {
    let options = Options::of_one(function, args, 2)?;
    let text = args.text(0)?;
    let (mut parts, mut from, mut before) = (Vec::new(), 0, 0);
    let mut held = Reservation::of("An array");
    options
        .compile(args.text(1)?)?
        .each(text, 0, &mut |found| {
            let (begin, end) = found.whole;
            if begin < text.len() && end > before {
                held.grow(2 * growth::ELEMENT_BYTES + PART_BYTES + begin - from)?;
                parts.push(Datum::text(&text[from..begin]));
                from = end;
            }
            before = end;
            Ok(true)
        })?;
    parts.push(Datum::text(&text[from..]));
    Ok(parts)
}

/// `regexp_split_to_array`.
pub(crate) fn regexp_split_to_array(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let parts = split("regexp_split_to_array", args)?;
    Ok(Datum::Array(Array::of(TypeId::TEXT, parts).into()))
}

/// `regexp_split_to_table`.
pub(crate) fn regexp_split_to_table(_: &Call<'_>, args: &[Datum]) -> Result<Rows> {
    let parts = split("regexp_split_to_table", args)?;
    Ok(Box::new(parts.into_iter().map(Ok)))
}

/// `substring(text from pattern)`: the first group, or the match.
pub(crate) fn substring(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    first_part(args.text(0)?, args.text(1)?)
}

fn first_part(text: &str, pattern: &str) -> Result<Datum> {
    let found = Options::default().compile(pattern)?.find(text, 0)?;
    Ok(found.map_or(Datum::Null, |found| {
        let first = found.groups.first().copied();
        part(text, first.unwrap_or(Some(found.whole)))
    }))
}

/// `substring(text similar pattern escape character)`.
pub(crate) fn substring_similar(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let pattern = similar(args.text(1)?, args.text(2)?)?;
    first_part(args.text(0)?, &pattern)
}

/// `regexp_like(text, pattern [, flags])`.
pub(crate) fn regexp_like(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let options = Options::of_one("regexp_like", args, 2)?;
    let regex = options.compile(args.text(1)?)?;
    Ok(Datum::Bool(regex.is_match(args.text(0)?)?))
}

/// `regexp_count(text, pattern [, start [, flags]])`.
pub(crate) fn regexp_count(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let text = args.text(0)?;
    let start = number(args, 2, "start", 1, 1)?;
    let options = Options::of_one("regexp_count", args, 3)?;
    let mut count = 0;
    let regex = options.compile(args.text(1)?)?;
    regex.each(text, start_of(text, start), &mut |_| {
        count += 1;
        Ok(true)
    })?;
    Ok(Datum::Int4(count))
}

/// The match with a number from 1, or a group of it.
fn numbered(
    text: &str,
    regex: &Regex,
    start: usize,
    wanted: usize,
    group: usize,
) -> Result<Option<Span>> {
    let (mut met, mut span) = (0, None);
    regex.each(text, start_of(text, start), &mut |found| {
        met += 1;
        if met == wanted {
            span = match group {
                0 => Some(found.whole),
                1 if found.groups.is_empty() => Some(found.whole),
                group => found.groups.get(group - 1).copied().flatten(),
            };
        }
        Ok(met < wanted)
    })?;
    Ok(span)
}

/// `regexp_instr(text, pattern [, start [, n [, endoption [, flags [, subexpr]]]]])`.
pub(crate) fn regexp_instr(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let text = args.text(0)?;
    let start = number(args, 2, "start", 1, 1)?;
    let wanted = number(args, 3, "n", 1, 1)?;
    let end = number(args, 4, "endoption", 0, 0)?;
    let group = number(args, 6, "subexpr", 0, 0)?;
    let options = Options::of_one("regexp_instr", args, 5)?;
    let regex = options.compile(args.text(1)?)?;
    let span = numbered(text, &regex, start, wanted, group)?;
    let place = span.map_or(0, |span| {
        let at = if end == 1 { span.1 } else { span.0 };
        text[..at].chars().count() + 1
    });
    Ok(Datum::Int4(i32::try_from(place).unwrap_or(i32::MAX)))
}

/// `regexp_substr(text, pattern [, start [, n [, flags [, subexpr]]]])`.
pub(crate) fn regexp_substr(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let text = args.text(0)?;
    let start = number(args, 2, "start", 1, 1)?;
    let wanted = number(args, 3, "n", 1, 1)?;
    let group = number(args, 5, "subexpr", 0, 0)?;
    let options = Options::of_one("regexp_substr", args, 4)?;
    let regex = options.compile(args.text(1)?)?;
    Ok(part(text, numbered(text, &regex, start, wanted, group)?))
}

/// A SIMILAR TO pattern as a regular expression.
pub(crate) fn similar_escape(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    if args[0].is_null() {
        return Ok(Datum::Null);
    }
    let escape = match args.get(1) {
        None | Some(Datum::Null) => "\\",
        Some(_) => args.text(1)?,
    };
    similar(args.text(0)?, escape).map(Datum::text)
}

/// What stands between the parts of a pattern that the escape character and `"` part: the first
/// takes as little as it can, the second, which is captured, as much.
const SEPARATORS: [&str; 2] = ["){1,1}?(", "){1,1}(?:"];

fn similar(pattern: &str, escape: &str) -> Result<String> {
    let mut chars = escape.chars();
    let escape = chars.next();
    if chars.next().is_some() {
        return Err(Error::new(SqlState::of("22025"), "invalid escape string")
            .with_hint("Escape string must be empty or one character."));
    }
    let mut out = "^(?:".to_owned();
    let mut parts = SEPARATORS.iter();
    let (mut escaped, mut in_brackets) = (false, false);
    for c in pattern.chars() {
        if std::mem::take(&mut escaped) {
            if c == '"' && !in_brackets {
                out.push_str(parts.next().ok_or_else(|| {
                    Error::new(
                        SqlState::of("2200C"),
                        "SQL regular expression may not contain more than two \
                         escape-double-quote separators",
                    )
                })?);
                continue;
            }
            out.push('\\');
            out.push(c);
            continue;
        }
        match c {
            _ if Some(c) == escape => escaped = true,
            '\\' => out.push_str("\\\\"),
            _ if in_brackets => {
                out.push(c);
                in_brackets = c != ']';
            }
            '[' => {
                out.push(c);
                in_brackets = true;
            }
            '%' => out.push_str(".*"),
            '_' => out.push('.'),
            '(' => out.push_str("(?:"),
            '.' | '^' | '$' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out.push_str(")$");
    Ok(out)
}
