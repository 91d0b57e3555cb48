//! `LIKE`, `ILIKE`, `~` and the functions of regular expressions.
//!
//! LIKE is matched here. Regular expressions go to the `regex` crate, which takes most of what
//! PostgreSQL's advanced syntax has.
//!
//! # What it leaves out
//! Back references and look-around (2201B), collating elements, and `*+?` on a group taking the
//! longest rather than the first alternative.

use std::cell::RefCell;
use std::rc::Rc;

use base::error::{Error, Result, SqlState};
use base::hash::HashMap;
use regex::{Regex, RegexBuilder};

use super::arguments::Arguments;
use super::strings::fold;
use super::{Call, Rows};
use crate::types::{Array, Datum, TypeId};

/// Compiled expressions kept per thread; at this number all are forgotten.
const CACHED_MAX: usize = 100;
/// Bytes that one compiled expression may take; a larger one is 2201B.
const COMPILED_BYTES_MAX: usize = 4 << 20;

/// Whether a text matches a LIKE pattern with the escape character `\`.
///
/// # Errors
/// 22025 when the pattern ends with the escape.
pub fn like(text: &str, pattern: &str) -> Result<bool> {
    let text: Vec<char> = text.chars().collect();
    let pattern: Vec<char> = pattern.chars().collect();
    let (mut t, mut p) = (0, 0);
    // Where to go on when what follows the last `%` does not match: one character later.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        match pattern.get(p) {
            Some('%') => {
                retry = Some((p + 1, t));
                p += 1;
                continue;
            }
            Some('_') if t < text.len() => {
                (t, p) = (t + 1, p + 1);
                continue;
            }
            Some('\\') => {
                let Some(escaped) = pattern.get(p + 1) else {
                    return Err(Error::new(
                        SqlState::of("22025"),
                        "LIKE pattern must not end with escape character",
                    ));
                };
                if text.get(t) == Some(escaped) {
                    (t, p) = (t + 1, p + 2);
                    continue;
                }
            }
            Some(c) if text.get(t) == Some(c) => {
                (t, p) = (t + 1, p + 1);
                continue;
            }
            None if t == text.len() => return Ok(true),
            _ => {}
        }
        match retry {
            Some((after, from)) if from < text.len() => {
                retry = Some((after, from + 1));
                (t, p) = (from + 1, after);
            }
            _ => return Ok(false),
        }
    }
}

/// The fixed beginning of a LIKE pattern, and whether nothing else follows it.
pub fn like_prefix(pattern: &str) -> (String, bool) {
    let mut prefix = String::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '%' | '_' => return (prefix, false),
            '\\' => prefix.extend(chars.next()),
            _ => prefix.push(c),
        }
    }
    (prefix, true)
}

/// A LIKE pattern with another escape character, rewritten for `\`.
pub(crate) fn like_escape(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (pattern, escape) = (args.text(0)?, args.text(1)?);
    let mut chars = escape.chars();
    let escape = chars.next();
    if chars.next().is_some() {
        return Err(Error::new(SqlState::of("22025"), "invalid escape string")
            .with_hint("Escape string must be empty or one character."));
    }
    let mut out = String::new();
    let mut after_escape = false;
    for c in pattern.chars() {
        if Some(c) == escape && !after_escape {
            after_escape = true;
            // The escape `\` stays as it is.
            out.push('\\');
            continue;
        }
        if c == '\\' && escape != Some('\\') && !after_escape {
            out.push('\\');
        }
        out.push(c);
        after_escape = false;
    }
    Ok(Datum::text(out))
}

macro_rules! matchers {
    ($($name:ident $negated:ident($text:ident, $pattern:ident) $body:expr;)*) => {
        $(
            pub(crate) fn $name(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
                let ($text, $pattern) = (args.text(0)?, args.text(1)?);
                Ok(Datum::Bool($body))
            }
            pub(crate) fn $negated(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
                let ($text, $pattern) = (args.text(0)?, args.text(1)?);
                Ok(Datum::Bool(!$body))
            }
        )*
    };
}

matchers! {
    text_like text_not_like(text, pattern) like(text, pattern)?;
    text_ilike text_not_ilike(text, pattern) like(&fold(text), &fold(pattern))?;
    text_regex text_not_regex(text, pattern) compile(pattern, "")?.is_match(text);
    text_iregex text_not_iregex(text, pattern) compile(pattern, "i")?.is_match(text);
}

thread_local! {
    static COMPILED: RefCell<HashMap<(String, String), Rc<Regex>>> = RefCell::new(HashMap::default());
}

fn invalid(message: impl std::fmt::Display) -> Error {
    Error::new(
        SqlState::of("2201B"),
        format!("invalid regular expression: {message}"),
    )
}

/// The compiled expression under PostgreSQL's option letters.
fn compile(pattern: &str, options: &str) -> Result<Rc<Regex>> {
    let key = (pattern.to_owned(), options.to_owned());
    if let Some(found) = COMPILED.with(|cache| cache.borrow().get(&key).cloned()) {
        return Ok(found);
    }
    let mut body = pattern.to_owned();
    let mut letters = options.to_owned();
    // Options in front of the expression, and the word "***=" for a literal string.
    if let Some(literal) = body.strip_prefix("***=") {
        body = regex::escape(literal);
    } else if let Some(rest) = body.strip_prefix("***:") {
        body = rest.to_owned();
    }
    if let Some((embedded, rest)) = body.strip_prefix("(?").and_then(|b| b.split_once(')')) {
        if embedded.bytes().all(|b| b.is_ascii_lowercase()) {
            letters.push_str(embedded);
            body = rest.to_owned();
        }
    }
    let mut builder_options = (false, false, true, false);
    for letter in letters.chars() {
        match letter {
            'i' => builder_options.0 = true,
            'c' => builder_options.0 = false,
            'm' | 'n' => (builder_options.1, builder_options.2) = (true, false),
            's' => (builder_options.1, builder_options.2) = (false, true),
            'p' => builder_options.2 = false,
            'w' => builder_options.1 = true,
            'x' => builder_options.3 = true,
            't' | 'e' | 'b' => {}
            'q' => body = regex::escape(&body),
            'g' => {}
            other => {
                return Err(Error::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    format!("invalid regular expression option: \"{other}\""),
                ))
            }
        }
    }
    let (insensitive, lines, dot_all, extended) = builder_options;
    let regex = RegexBuilder::new(&translate(&body)?)
        .case_insensitive(insensitive)
        .multi_line(lines)
        .dot_matches_new_line(dot_all)
        .ignore_whitespace(extended)
        .size_limit(COMPILED_BYTES_MAX)
        .build()
        .map_err(|error| invalid(reason(&error)))?;
    let regex = Rc::new(regex);
    COMPILED.with(|cache| {
        let mut cache = cache.borrow_mut();
        if cache.len() >= CACHED_MAX {
            cache.clear();
        }
        cache.insert(key, regex.clone());
    });
    Ok(regex)
}

/// PostgreSQL's words for the usual mistakes.
fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    let known = [
        ("unclosed group", "parentheses () not balanced"),
        ("unopened group", "parentheses () not balanced"),
        ("unclosed character class", "brackets [] not balanced"),
        ("repetition operator missing", "quantifier operand invalid"),
        ("repetition quantifier", "invalid repetition count(s)"),
        ("invalid character class range", "invalid character range"),
        ("exceeds size limit", "regular expression is too complex"),
    ];
    known
        .iter()
        .find(|(ours, _)| text.contains(ours))
        .map_or_else(
            || "invalid escape \\ sequence".to_owned(),
            |(_, theirs)| (*theirs).to_owned(),
        )
}

/// Escapes that PostgreSQL writes otherwise.
fn translate(pattern: &str) -> Result<String> {
    let mut out = String::new();
    let mut chars = pattern.chars().peekable();
    let mut in_class = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('m') if !in_class => out.push_str(r"\b{start}"),
                Some('M') if !in_class => out.push_str(r"\b{end}"),
                Some('y') if !in_class => out.push_str(r"\b"),
                Some('Y') if !in_class => out.push_str(r"\B"),
                Some('Z') if !in_class => out.push_str(r"\z"),
                Some(digit @ '1'..='9') if !in_class => {
                    return Err(Error::unsupported(format!(
                        "back reference \\{digit} in a regular expression"
                    )))
                }
                Some(escaped) => {
                    out.push('\\');
                    out.push(escaped);
                }
                None => return Err(invalid("invalid escape \\ sequence")),
            },
            '[' if !in_class => {
                in_class = true;
                out.push('[');
                if chars.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
                // A bracket that comes first is meant literally.
                if chars.next_if_eq(&']').is_some() {
                    out.push_str(r"\]");
                }
            }
            '[' if chars.peek() == Some(&':') => {
                out.push('[');
                for c in chars.by_ref() {
                    out.push(c);
                    if c == ']' {
                        break;
                    }
                }
            }
            '[' => out.push_str(r"\["),
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            // The regex crate gives these a meaning inside brackets, PostgreSQL does not.
            '&' | '~' if in_class => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    Ok(out)
}

fn options_at(args: &[Datum], index: usize) -> Result<&str> {
    match args.len() > index {
        true => args.text(index),
        false => Ok(""),
    }
}

/// The replacement with `\1` and `\&` as the regex crate does not write them.
fn expand(captures: &regex::Captures<'_>, replacement: &str, out: &mut String) {
    let mut chars = replacement.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('&') => out.push_str(captures.get(0).map_or("", |m| m.as_str())),
            Some(digit @ '1'..='9') => {
                let index = digit as usize - '0' as usize;
                out.push_str(captures.get(index).map_or("", |m| m.as_str()));
            }
            Some('\\') | None => out.push('\\'),
            Some(other) => {
                out.push('\\');
                out.push(other);
            }
        }
    }
}

/// `regexp_replace(text, pattern, replacement [, flags])`.
pub(crate) fn regexp_replace(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (text, replacement) = (args.text(0)?, args.text(2)?);
    let options = options_at(args, 3)?;
    let regex = compile(args.text(1)?, options)?;
    let count = if options.contains('g') { usize::MAX } else { 1 };
    let mut out = String::new();
    let mut end = 0;
    for captures in regex.captures_iter(text).take(count) {
        let whole = captures.get(0).map_or(0..0, |m| m.range());
        out.push_str(&text[end..whole.start]);
        expand(&captures, replacement, &mut out);
        end = whole.end;
    }
    out.push_str(&text[end..]);
    Ok(Datum::text(out))
}

/// The groups of a match, or the match itself if there are none.
fn groups(captures: &regex::Captures<'_>) -> Datum {
    let from = usize::from(captures.len() > 1);
    let found = (from..captures.len())
        .map(|index| {
            captures
                .get(index)
                .map_or(Datum::Null, |m| Datum::text(m.as_str()))
        })
        .collect();
    Datum::Array(Array::of(TypeId::TEXT, found).into())
}

/// `regexp_match`.
pub(crate) fn regexp_match(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let options = options_at(args, 2)?;
    if options.contains('g') {
        return Err(Error::new(
            SqlState::INVALID_PARAMETER_VALUE,
            "regexp_match() does not support the \"global\" option",
        )
        .with_hint("Use the regexp_matches function instead."));
    }
    let regex = compile(args.text(1)?, options)?;
    let found = regex.captures(args.text(0)?);
    Ok(found.map_or(Datum::Null, |captures| groups(&captures)))
}

/// `regexp_matches`.
pub(crate) fn regexp_matches(_: &Call<'_>, args: &[Datum]) -> Result<Rows> {
    let options = options_at(args, 2)?;
    let regex = compile(args.text(1)?, options)?;
    let count = if options.contains('g') { usize::MAX } else { 1 };
    let text = args.text(0)?;
    let rows: Vec<Datum> = regex
        .captures_iter(text)
        .take(count)
        .map(|captures| groups(&captures))
        .collect();
    Ok(Box::new(rows.into_iter().map(Ok)))
}

fn split(args: &[Datum]) -> Result<Vec<Datum>> {
    let regex = compile(args.text(1)?, options_at(args, 2)?)?;
    let text = args.text(0)?;
    let mut parts = Vec::new();
    let mut from = 0;
    for found in regex.find_iter(text) {
        // An empty match at either end separates nothing.
        if found.is_empty() && (found.start() == 0 || found.end() == text.len()) {
            continue;
        }
        parts.push(Datum::text(&text[from..found.start()]));
        from = found.end();
    }
    parts.push(Datum::text(&text[from..]));
    Ok(parts)
}

/// `regexp_split_to_array`.
pub(crate) fn regexp_split_to_array(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Array(Array::of(TypeId::TEXT, split(args)?).into()))
}

/// `regexp_split_to_table`.
pub(crate) fn regexp_split_to_table(_: &Call<'_>, args: &[Datum]) -> Result<Rows> {
    Ok(Box::new(split(args)?.into_iter().map(Ok)))
}

/// `substring(text from pattern)`: the first group, or the match.
pub(crate) fn substring(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let regex = compile(args.text(1)?, "")?;
    let Some(captures) = regex.captures(args.text(0)?) else {
        return Ok(Datum::Null);
    };
    let index = usize::from(captures.len() > 1);
    let found = captures.get(index);
    Ok(found.map_or(Datum::Null, |m| Datum::text(m.as_str())))
}

/// `regexp_like(text, pattern [, flags])`.
pub(crate) fn regexp_like(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let regex = compile(args.text(1)?, options_at(args, 2)?)?;
    Ok(Datum::Bool(regex.is_match(args.text(0)?)))
}

/// `regexp_count(text, pattern)`.
pub(crate) fn regexp_count(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let regex = compile(args.text(1)?, "")?;
    Ok(Datum::Int4(regex.find_iter(args.text(0)?).count() as i32))
}

/// A SIMILAR TO pattern as a regular expression.
pub(crate) fn similar_escape(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let escape = match args.len() > 1 {
        true => args.text(1)?.chars().next(),
        false => Some('\\'),
    };
    let mut out = "^(?:".to_owned();
    let mut chars = args.text(0)?.chars();
    let mut in_class = false;
    while let Some(c) = chars.next() {
        if Some(c) == escape {
            if let Some(literal) = chars.next() {
                out.push('\\');
                out.push(literal);
            }
            continue;
        }
        match c {
            ']' if in_class => {
                in_class = false;
                out.push(c);
            }
            _ if in_class => out.push(c),
            '[' => {
                in_class = true;
                out.push(c);
            }
            '%' => out.push_str(".*"),
            '_' => out.push('.'),
            '(' => out.push_str("(?:"),
            '\\' | '.' | '^' | '$' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out.push_str(")$");
    Ok(Datum::text(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_matches() {
        for (text, pattern, expected) in [
            ("abc", "abc", true),
            ("abc", "a%", true),
            ("abc", "%c", true),
            ("abc", "_b_", true),
            ("abc", "%b", false),
            ("a%c", r"a\%c", true),
            ("abc", r"a\%c", false),
            ("", "%", true),
            ("", "_", false),
            ("aaab", "%a%ab", true),
            ("é", "_", true),
        ] {
            assert_eq!(
                like(text, pattern).unwrap(),
                expected,
                "{text} like {pattern}"
            );
        }
        assert!(like("a", r"a\").is_err());
    }

    #[test]
    fn prefixes() {
        assert_eq!(like_prefix(r"ab\%c%"), ("ab%c".to_owned(), false));
        assert_eq!(like_prefix("abc"), ("abc".to_owned(), true));
    }
}
