//! What the grammar takes and PostgreSQL 15's refuses: syntax errors, as there.
//!
//! ```text
//! select 1_000, 0x1f                   trailing junk after numeric literal at or near "1_000"
//! select $1a                           trailing junk after parameter at or near "$1a"
//! create statistics on a, b from t     syntax error at or near "on"
//! ```
//! Numbers and parameters are looked for by a walk over the bytes first; only a text with something like
//! one of these is taken apart into tokens, which tell whether it stands in a string, a name or a comment.
//!
//! # What it leaves out
//! Whatever else came with later versions and is refused, or not, where it is carried out.

use std::ffi::CString;

use base::{Error, SqlState};
use pg_query::protobuf::{RawStmt, Token};

use super::ffi::{self, RawToken};
use super::shape::{begins_word, goes_on_word};
use super::{char_position, NodeEnum};

/// The first number or parameter that a word stands right behind, if it comes before that character
/// position; 0 for none.
pub(super) fn junk(text: &str, c_text: &CString, before: u32) -> Option<Error> {
    let mut found = Found::among(text.as_bytes()).peekable();
    found.peek()?;
    let tokens = ffi::scan(c_text).ok()?;
    let is_token = |found: &Found| tokens.iter().any(|token| token.start == found.start);
    let found = found.find(is_token)?;
    let position = char_position(text, i32::try_from(found.start).ok()?)?;
    if before != 0 && before <= position {
        return None;
    }
    let what = match text.as_bytes()[found.start] {
        b'$' => "parameter",
        _ => "numeric literal",
    };
    let near = text.get(found.start..found.end)?;
    let message = format!("trailing junk after {what} at or near \"{near}\"");
    Some(Error::new(SqlState::SYNTAX_ERROR, message).at(position))
}

/// Where a number or a parameter stands with a word right behind it, which belongs to it here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Found {
    start: usize,
    end: usize,
}

impl Found {
    /// All that look like it, in strings and comments too.
    fn among(text: &[u8]) -> impl Iterator<Item = Found> + '_ {
        let mut at = 0;
        std::iter::from_fn(move || {
            while at < text.len() {
                let start = at;
                let after_word = start > 0 && goes_on_word(text[start - 1]);
                let Some(end) = number_end(text, start).filter(|_| !after_word) else {
                    at += 1;
                    continue;
                };
                let is_junk = text.get(end).is_some_and(|byte| begins_word(*byte));
                let word = text[end..].iter().take_while(|byte| goes_on_word(**byte));
                at = end + word.count();
                if is_junk {
                    return Some(Found { start, end: at });
                }
            }
            None
        })
    }
}

/// Where a number of PostgreSQL 15 or a parameter ends that begins at a place; none where none does.
fn number_end(text: &[u8], start: usize) -> Option<usize> {
    let digits = |at: usize| {
        let digits = text.get(at..).unwrap_or_default().iter();
        at + digits.take_while(|byte| byte.is_ascii_digit()).count()
    };
    let is = |at: usize, byte: u8| text.get(at) == Some(&byte);
    if is(start, b'$') {
        return Some(digits(start + 1)).filter(|end| *end > start + 1);
    }
    let mut end = digits(start);
    if is(end, b'.') && !is(end + 1, b'.') && (end > start || digits(end + 1) > end + 1) {
        end = digits(end + 1);
    }
    if end == start {
        return None;
    }
    if is(end, b'e') || is(end, b'E') {
        let sign = usize::from(is(end + 1, b'+') || is(end + 1, b'-'));
        let exponent = digits(end + 1 + sign);
        if exponent > end + 1 + sign {
            end = exponent;
        }
    }
    Some(end)
}

/// The first CREATE STATISTICS without a name.
pub(super) fn unnamed(text: &str, c_text: &CString, statements: &[RawStmt]) -> Option<Error> {
    let is_unnamed = |raw: &&RawStmt| {
        let node = raw.stmt.as_ref().and_then(|node| node.node.as_ref());
        matches!(node, Some(NodeEnum::CreateStatsStmt(it)) if it.defnames.is_empty())
    };
    let raw = statements.iter().find(is_unnamed)?;
    let from = usize::try_from(raw.stmt_location).ok()?;
    let all = ffi::scan(c_text).ok()?;
    let is_comment = |token: &RawToken| {
        token.code == Token::SqlComment as i32 || token.code == Token::CComment as i32
    };
    let mut tokens = all
        .iter()
        .filter(|token| token.start >= from && !is_comment(token))
        .skip_while(|token| token.code != Token::Statistics as i32)
        .skip(1)
        .peekable();
    if tokens.peek()?.code == Token::IfP as i32 {
        tokens.nth(2);
    }
    let next = tokens.next()?;
    let position = char_position(text, i32::try_from(next.start).ok()?)?;
    let near = text.get(next.start..next.end)?;
    let message = format!("syntax error at or near \"{near}\"");
    Some(Error::new(SqlState::SYNTAX_ERROR, message).at(position))
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    fn refused(text: &str) -> (String, u32) {
        let error = parse(text).expect_err(text);
        let position = error.fields().position;
        (error.message().to_owned(), position.unwrap_or(0))
    }

    #[test]
    fn what_stands_behind_numbers_and_parameters_belongs_to_them() {
        let cases = [
            ("select 1_2_3", "numeric literal", "1_2_3", 8),
            ("select 0x1", "numeric literal", "0x1", 8),
            ("select 'é', 1.5_0", "numeric literal", "1.5_0", 13),
            ("select 1_000.5", "numeric literal", "1_000", 8),
            ("select 1e1_0", "numeric literal", "1e1_0", 8),
            ("select .5_5", "numeric literal", ".5_5", 8),
            ("select $1a", "parameter", "$1a", 8),
            (
                "select 1; select 2_000 frm t x",
                "numeric literal",
                "2_000",
                18,
            ),
        ];
        for (text, what, near, position) in cases {
            let message = format!("trailing junk after {what} at or near \"{near}\"");
            assert_eq!(refused(text), (message, position), "{text}");
        }
    }

    #[test]
    fn what_looks_like_that_elsewhere_is_left_alone() {
        let text = "select a1_2, '1_2', \"3_4\", $$5_6$$, t1.c2_3, 1 _7, b1_1 /* 1_1 */ -- 1_1";
        assert!(parse(text).is_ok());
        assert!(parse("select 1.5, 1., .5, 1e5, 1e-5, $1, 1::int4, 1+1").is_ok());
        let (message, _) = refused("select 1 frm t x, 2_000");
        assert_eq!(message, "syntax error at or near \"t\"");
    }

    #[test]
    fn statistics_have_a_name() {
        let cases = [
            ("create statistics on a, b from t", "on", 19),
            (
                "select 1; create statistics /* on */ (ndistinct) on a, b from t",
                "(",
                38,
            ),
            ("create statistics if not exists on a, b from t", "on", 33),
        ];
        for (text, near, position) in cases {
            let message = format!("syntax error at or near \"{near}\"");
            assert_eq!(refused(text), (message, position), "{text}");
        }
        assert!(parse("create statistics if not exists s on a, b from t").is_ok());
    }
}
