//! `LIKE` and `ILIKE`.

use base::coro;
use base::error::{Error, Result, SqlState};

use super::arguments::Arguments;
use super::strings::{fold_letters, Letters};
use super::Call;
use types::Datum;

/// Steps of [`like`] that are counted as work at a time, and what each counts for.
const STEPS_COUNTED: usize = 1 << 10;
const STEP_WORK: usize = 3;

/// Whether a text matches a LIKE pattern with the escape character `\`.
///
/// # Errors
/// 22025 when matching comes to the escape at a pattern's end; the pending interrupt.
pub fn like(text: &str, pattern: &str) -> Result<bool> {
    let bytes = text.as_bytes();
    // Bytes are compared; only `_` has to know where a character ends.
    let after = |at: usize| {
        let following = bytes[at + 1..].iter();
        at + 1 + following.take_while(|byte| **byte & 0xc0 == 0x80).count()
    };
    matches(bytes, pattern.as_bytes(), after)
}

/// The same of bytes, whose characters end behind a place as `after` says.
fn matches(text: &[u8], pattern: &[u8], after: impl Fn(usize) -> usize) -> Result<bool> {
    let (mut t, mut p, mut steps) = (0, 0, 0);
    // Where to go on when what follows the last `%` does not match: one character later.
    let mut retry: Option<(usize, usize)> = None;
    // Whether there was text left where the run of `%` and `_` began that the last `%` is in.
    let mut had_text = false;
    // Whether the run goes on up to a place.
    let runs_to = |retry: Option<(usize, usize)>, p: usize| {
        retry.is_some_and(|(rest, _)| pattern[rest..p].iter().all(|c| *c == b'_'))
    };
    loop {
        steps += 1;
        if steps % STEPS_COUNTED == 0 {
            coro::work(STEPS_COUNTED * STEP_WORK)?;
        }
        match pattern.get(p) {
            Some(b'%') => {
                if !runs_to(retry, p) {
                    had_text = t < text.len();
                }
                retry = Some((p + 1, t));
                p += 1;
                continue;
            }
            Some(b'_') if t < text.len() => {
                (t, p) = (after(t), p + 1);
                continue;
            }
            Some(b'\\') => {
                let escaped = pattern.get(p + 1);
                // PostgreSQL looks at what is escaped while there is text left, and right behind such a run.
                let is_looked_at = t < text.len() || had_text && runs_to(retry, p);
                if escaped.is_none() && is_looked_at {
                    return Err(Error::new(
                        SqlState::of("22025"),
                        "LIKE pattern must not end with escape character",
                    ));
                }
                if escaped.is_some() && text.get(t) == escaped {
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
            Some((rest, from)) if from < text.len() => {
                let next = after(from);
                retry = Some((rest, next));
                (t, p) = (next, rest);
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

fn bytes_like(args: &[Datum]) -> Result<bool> {
    matches(&args.bytea(0)?, &args.bytea(1)?, |at| at + 1)
}

/// `bytea LIKE bytea`: a byte is a character.
pub(crate) fn bytea_like(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    bytes_like(args).map(Datum::Bool)
}

/// Its negation.
pub(crate) fn bytea_not_like(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    bytes_like(args).map(|is| Datum::Bool(!is))
}

/// [`like_escape`] of bytes.
pub(crate) fn bytea_like_escape(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (pattern, escape) = (args.bytea(0)?, args.bytea(1)?);
    let escape = match *escape {
        [] => None,
        [escape] => Some(escape),
        _ => {
            return Err(Error::new(SqlState::of("22025"), "invalid escape string")
                .with_hint("Escape string must be empty or one character."))
        }
    };
    let mut out = Vec::with_capacity(pattern.len());
    let mut after_escape = false;
    for byte in pattern.iter() {
        if Some(*byte) == escape && !after_escape {
            after_escape = true;
            out.push(b'\\');
            continue;
        }
        if *byte == b'\\' && escape != Some(b'\\') && !after_escape {
            out.push(b'\\');
        }
        out.push(*byte);
        after_escape = false;
    }
    Ok(Datum::Bytea(std::sync::Arc::from(out)))
}

/// A function and its negation.
macro_rules! matchers {
    ($($name:ident $negated:ident($text:ident, $pattern:ident) $body:expr;)*) => {
        $(
            pub(crate) fn $name(
                _: &$crate::Call<'_>,
                args: &[::types::Datum],
            ) -> base::error::Result<::types::Datum> {
                let ($text, $pattern) = (args.text(0)?, args.text(1)?);
                Ok(::types::Datum::Bool($body))
            }
            pub(crate) fn $negated(
                _: &$crate::Call<'_>,
                args: &[::types::Datum],
            ) -> base::error::Result<::types::Datum> {
                let ($text, $pattern) = (args.text(0)?, args.text(1)?);
                Ok(::types::Datum::Bool(!$body))
            }
        )*
    };
}
pub(super) use matchers;

matchers! {
    text_like text_not_like(text, pattern) like(text, pattern)?;
}

/// ILIKE.
fn ilike(call: &Call<'_>, args: &[Datum]) -> Result<bool> {
    let letters = Letters::of(call);
    let text = fold_letters(letters, args.text(0)?)?;
    like(&text, &fold_letters(letters, args.text(1)?)?)
}

pub(crate) fn text_ilike(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    ilike(call, args).map(Datum::Bool)
}

pub(crate) fn text_not_ilike(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    ilike(call, args).map(|is| Datum::Bool(!is))
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
        for (text, pattern) in [
            ("ab", r"a\"),
            ("a", r"\"),
            ("a", r"%_\"),
            ("a", r"%_%\"),
            ("%", r"%\"),
        ] {
            assert!(like(text, pattern).is_err(), "{text} like {pattern}");
        }
        for (text, pattern) in [
            ("a", r"a\"),
            ("", r"\"),
            ("", r"%\"),
            ("", r"%_\"),
            ("a", "a%\\"),
            ("%", r"\%\"),
            ("b", r"a\"),
        ] {
            assert!(!like(text, pattern).unwrap(), "{text} like {pattern}");
        }
    }

    #[test]
    fn prefixes() {
        assert_eq!(like_prefix(r"ab\%c%"), ("ab%c".to_owned(), false));
        assert_eq!(like_prefix("abc"), ("abc".to_owned(), true));
    }
}
