//! Plain strings in which a backslash begins an escape: `standard_conforming_strings` off.
//!
//! ```text
//! select 'a\'b', E'\n', B'1', "c\", $$d\$$ -- e\
//!        └ an escape: of all others none is a plain string
//! ```
//! PostgreSQL's scanner reads such strings if it is told to ([`Strings`]); it has nobody to warn,
//! so of what it would warn is found here.

use base::coro;
use base::error::{Error, Result, SqlState};

use super::shape::{begins_word, comment_bytes, goes_on_word, is_space, line_bytes};

/// How the plain strings of a text are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strings {
    /// A backslash is a character like others.
    #[default]
    Conforming,
    /// A backslash begins an escape.
    Escaped,
}

impl Strings {
    /// How a text is read while `standard_conforming_strings` is on or off. Texts that mean the same
    /// either way are [`Strings::Conforming`].
    pub fn of(text: &str, conforming: bool) -> Strings {
        match conforming || !(text.contains('\\') || text.contains("&'")) {
            true => Strings::Conforming,
            false => Strings::Escaped,
        }
    }
}

/// What `escape_string_warning` has to say of a text that is read as [`Strings::Escaped`]: 22P06 for
/// each plain string with an escape, by the first that it has.
///
/// # Errors
/// The pending interrupt.
pub fn escape_warnings(text: &str) -> Result<Vec<Error>> {
    let mut scanner = Scanner {
        text: text.as_bytes(),
        at: 0,
    };
    let mut warnings = Vec::new();
    // Up to where characters were counted, and how many there were.
    let (mut counted, mut position) = (0, 1);
    while scanner.at < text.len() {
        let start = scanner.at;
        let escaped = scanner.token();
        coro::work(scanner.at - start)?;
        if let Some(escaped) = escaped {
            position += text[counted..start].chars().count() as u32;
            counted = start;
            warnings.push(warning(escaped).at(position));
        }
    }
    Ok(warnings)
}

fn warning(escaped: u8) -> Error {
    let (what, hint) = match escaped {
        b'\'' => (
            "\\'",
            "Use '' to write quotes in strings, or use the escape string syntax (E'...').",
        ),
        b'\\' => (
            "\\\\",
            "Use the escape string syntax for backslashes, e.g., E'\\\\'.",
        ),
        _ => (
            "escape",
            "Use the escape string syntax for escapes, e.g., E'\\r\\n'.",
        ),
    };
    let message = format!("nonstandard use of {what} in a string literal");
    Error::new(SqlState::of("22P06"), message).with_hint(hint)
}

/// Cuts a text only as far as one must to know where plain strings are.
struct Scanner<'t> {
    text: &'t [u8],
    at: usize,
}

impl Scanner<'_> {
    fn rest(&self) -> &[u8] {
        &self.text[self.at..]
    }

    /// Passes over one token, or a part of one; gives what the first backslash of a plain string
    /// escapes.
    fn token(&mut self) -> Option<u8> {
        let rest = self.rest();
        self.at += match rest {
            [b'\'', ..] => return self.string(true),
            [b'"', name @ ..] => 1 + past(name, b"\""),
            [b'-', b'-', ..] => line_bytes(rest),
            [b'/', b'*', ..] => comment_bytes(rest).unwrap_or(rest.len()),
            [b'$', ..] => match dollar_tag(rest) {
                Some(tag) => tag.len() + past(&rest[tag.len()..], tag),
                None => 1,
            },
            [first, ..] if begins_word(*first) => {
                let end = rest.iter().position(|byte| !goes_on_word(*byte));
                let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
                match (word, after) {
                    ([b'e' | b'E'], [b'\'', ..]) => {
                        self.at += 1;
                        self.string(true);
                        return None;
                    }
                    ([b'b' | b'B' | b'x' | b'X'], [b'\'', ..]) => {
                        self.at += 1;
                        self.string(false);
                        return None;
                    }
                    // PostgreSQL refuses it here, and sees nothing of what follows.
                    ([b'u' | b'U'], [b'&', b'\'', ..]) => rest.len(),
                    _ => word.len(),
                }
            }
            _ => 1,
        };
        None
    }

    /// Passes over a string, also one that goes on after a line's end; gives what its first backslash
    /// escapes.
    fn string(&mut self, has_escapes: bool) -> Option<u8> {
        let mut first = None;
        loop {
            self.at += 1;
            loop {
                match self.rest() {
                    [] => return first,
                    [b'\\', escaped, ..] if has_escapes => {
                        first = first.or(Some(*escaped));
                        self.at += 2;
                    }
                    [b'\'', b'\'', ..] => self.at += 2,
                    [b'\'', ..] => break,
                    _ => self.at += 1,
                }
            }
            self.at += 1;
            let space = self.rest().iter().take_while(|byte| is_space(**byte));
            let (length, lines) = space.fold((0, false), |(length, lines), byte| {
                (length + 1, lines || matches!(byte, b'\n' | b'\r'))
            });
            if !lines || self.text.get(self.at + length) != Some(&b'\'') {
                return first;
            }
            self.at += length;
        }
    }
}

/// How long a text is up to the end of what is looked for, or all of it.
fn past(text: &[u8], wanted: &[u8]) -> usize {
    let found = text.windows(wanted.len()).position(|part| part == wanted);
    found.map_or(text.len(), |at| at + wanted.len())
}

/// The `$…$` with which a text begins.
fn dollar_tag(text: &[u8]) -> Option<&[u8]> {
    let length = text[1..].iter().position(|byte| *byte == b'$')?;
    let name = &text[1..=length];
    let is_name = name.iter().all(|byte| goes_on_word(*byte))
        && name.first().is_none_or(|first| begins_word(*first));
    is_name.then(|| &text[..length + 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(text: &str) -> Vec<u32> {
        let warnings = escape_warnings(text).unwrap();
        let positions = warnings.iter().map(|warning| warning.fields().position);
        positions.map(|position| position.unwrap_or(0)).collect()
    }

    #[test]
    fn escapes_of_plain_strings_are_found() {
        assert_eq!(positions(r"select 'a\n', 'b', '\\\'', '\''"), [8, 20, 28]);
        assert_eq!(positions(r"select 'ä', '\a'"), [13]);
        assert_eq!(positions("select 'a'\n '\\b', 'c' '\\d'"), [8, 23]);
        assert_eq!(positions(r"select n'\a', ae'\a', '"), [9, 17]);
    }

    #[test]
    fn what_is_no_plain_string_has_no_escapes() {
        for text in [
            r"select E'\n' '', b'1\', x'\'",
            r#"select "a\'" "b""\'""#,
            r"select $$'\n'$$, $a$'\n' $$ '\n'$a$, $1",
            r"select 1 -- '\n'",
            r"select /* /* '\n' */ '\n' */ 1",
            r"select /* '\n'",
            r"'\",
            r"select U&'\0061', '\n'",
        ] {
            assert_eq!(positions(text), [0; 0], "{text}");
        }
    }

    #[test]
    fn only_texts_with_a_difference_are_read_otherwise() {
        for (text, conforming, strings) in [
            ("select 'a'", false, Strings::Conforming),
            (r"select '\a'", true, Strings::Conforming),
            (r"select '\a'", false, Strings::Escaped),
            ("select U&'a'", false, Strings::Escaped),
        ] {
            assert_eq!(Strings::of(text, conforming), strings, "{text}");
        }
    }
}
