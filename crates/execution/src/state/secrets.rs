//! Passwords in statements: what must never stand in a log or in a view that others read.
//!
//! ```text
//! ALTER ROLE ann PASSWORD 'sesame' VALID UNTIL '2030-01-01'
//! ALTER ROLE ann PASSWORD '********' VALID UNTIL '2030-01-01'
//! ```
//! A text is looked at as text, whether it parses or not: a statement with a slip in it holds its
//! password all the same. Where a text may hold the password of a role, every string in it is
//! masked, dollar-quoted bodies of DO and CREATE FUNCTION whole, but for what follows UNTIL. That
//! masks more than passwords at times, and is simple enough to be trusted.
//!
//! # What it leaves out
//! A password that is an argument of a function, or is put together from pieces, is a value like
//! any other; `select set_my_password('sesame')` says nothing of roles.

use std::borrow::Cow;
use std::ops::Range;

/// What stands in place of a password.
const MASK: &str = "********";

/// A piece of a masked text that is shorter is masked in messages only with its quotes.
const BARE_BYTES_MIN: usize = 4;

/// What precedes the text of a statement in a CONTEXT.
const IN_CONTEXT: &str = "SQL statement \"";

/// The text without passwords.
pub fn mask(text: &str) -> Cow<'_, str> {
    let pieces = pieces(text);
    if pieces.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for piece in pieces {
        out.push_str(&text[from..piece.start]);
        out.push_str("'********'");
        from = piece.end;
    }
    out.push_str(&text[from..]);
    Cow::Owned(out)
}

/// Whether a text may hold a password.
pub fn is_secret(text: &str) -> bool {
    !pieces(text).is_empty() || may_hold(text)
}

/// A message about a statement, without the passwords of the statement.
pub fn mask_message<'m>(statement: &str, message: &'m str) -> Cow<'m, str> {
    let mut masked = Cow::Borrowed(message);
    for piece in pieces(statement) {
        let whole = &statement[piece];
        let bare = bare(whole);
        let unescaped = bare.replace("''", "'");
        for found in [whole, bare, &unescaped] {
            let is_long = found.len() >= BARE_BYTES_MIN || found.len() == whole.len();
            if is_long && !found.is_empty() && masked.contains(found) {
                masked = Cow::Owned(masked.replace(found, MASK));
            }
        }
    }
    masked
}

/// A CONTEXT without the passwords of the statements in it.
pub fn mask_context(context: &str) -> Cow<'_, str> {
    if !context.contains(IN_CONTEXT) {
        return Cow::Borrowed(context);
    }
    let mut out = String::new();
    let mut rest = context;
    while let Some(at) = rest.find(IN_CONTEXT) {
        let (before, after) = rest.split_at(at + IN_CONTEXT.len());
        out.push_str(before);
        let end = after.find("\"\n").or_else(|| after.rfind('"'));
        let (statement, behind) = after.split_at(end.unwrap_or(after.len()));
        out.push_str(&mask(statement));
        rest = behind;
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// A string without its quotes.
fn bare(literal: &str) -> &str {
    let bytes = literal.as_bytes();
    if bytes.first() == Some(&b'$') {
        let tag = literal[1..].find('$').map_or(literal.len(), |at| at + 2);
        let end = literal.len().saturating_sub(tag).max(tag);
        return literal.get(tag..end).unwrap_or("");
    }
    match literal.find('\'') {
        Some(at) => literal[at + 1..]
            .strip_suffix('\'')
            .unwrap_or(&literal[at + 1..]),
        None => literal,
    }
}

/// Whether a text has all the words of a statement that gives a role a password.
fn may_hold(text: &str) -> bool {
    let (mut makes, mut role, mut password, mut sets) = (false, false, false, false);
    let mut follows_verb = false;
    let mut names_role = false;
    for word in words(text) {
        let is = |known: &[&str]| known.iter().any(|known| word.eq_ignore_ascii_case(known));
        let is_verb = is(&["alter", "create"]);
        let is_role = is(&["role", "user", "group"]);
        makes |= is_verb;
        role |= is_role;
        password |= is(&["password"]);
        sets |= is(&["set"]);
        names_role |= follows_verb && is_role;
        follows_verb = is_verb;
    }
    // With a slip in the word, it is still a statement about a role that has a string in it.
    makes && role && password || names_role && !sets
}

/// The words of a text, wherever they stand.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.split(move |c| !is_part(c))
        .filter(|word| !word.is_empty())
}

/// The strings of a text that may hold a password, and a word in place of one.
fn pieces(text: &str) -> Vec<Range<usize>> {
    if !may_hold(text) {
        return Vec::new();
    }
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut last_word = "";
    let mut at = 0;
    while let Some((token, range)) = next_token(text, at) {
        at = range.end;
        let follows = |word: &str| last_word.eq_ignore_ascii_case(word);
        let own = &text[range.clone()];
        match token {
            Token::Space => continue,
            Token::String if !follows("until") => found.push(range),
            Token::Word | Token::Quoted
                if follows("password") && !own.eq_ignore_ascii_case("null") =>
            {
                found.push(range);
            }
            _ => {}
        }
        last_word = if token == Token::Word { own } else { "" };
    }
    // Where a backslash stands before a quote, it depends on a setting where the string ends.
    if text.contains("\\'") {
        found.truncate(1);
        if let Some(first) = found.first_mut() {
            first.end = text.len();
        }
    }
    found
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Token {
    Space,
    Word,
    /// A name in quotes.
    Quoted,
    String,
    Other,
}

/// The token that begins there.
fn next_token(text: &str, at: usize) -> Option<(Token, Range<usize>)> {
    let rest = text.get(at..)?;
    let first = rest.chars().next()?;
    let upto = |length: usize| at..at + length.min(rest.len());
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let comment = match rest {
        _ if rest.starts_with("--") => rest.find('\n').or(Some(rest.len())),
        _ if rest.starts_with("/*") => Some(block_comment(rest)),
        _ => None,
    };
    if let Some(length) = comment {
        return Some((Token::Space, upto(length)));
    }
    if first.is_whitespace() {
        return Some((Token::Space, upto(first.len_utf8())));
    }
    if first == '\'' || first == '"' {
        let token = if first == '"' {
            Token::Quoted
        } else {
            Token::String
        };
        return Some((token, upto(quoted(rest, first))));
    }
    if first == '$' {
        if let Some(length) = dollar_quoted(rest) {
            return Some((Token::String, upto(length)));
        }
    }
    if is_word(first) {
        let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        // The letter of `E'…'` and its kin is part of the string.
        return Some(match length == 1 && rest[1..].starts_with('\'') {
            true => (Token::String, upto(1 + quoted(&rest[1..], '\''))),
            false => (Token::Word, upto(length)),
        });
    }
    Some((Token::Other, upto(first.len_utf8())))
}

/// The length of what begins with a quote: to the next one that is not doubled, or to the end.
fn quoted(text: &str, quote: char) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while at < bytes.len() {
        if bytes[at] == quote as u8 {
            if bytes.get(at + 1) != Some(&(quote as u8)) {
                return at + 1;
            }
            at += 1;
        }
        at += 1;
    }
    bytes.len()
}

/// The length of a dollar-quoted string; none where the dollar begins no such.
fn dollar_quoted(text: &str) -> Option<usize> {
    let end = text[1..].find('$')? + 2;
    let tag = &text[..end];
    let name = &tag[1..end - 1];
    if !name.chars().all(|c| c.is_alphanumeric() || c == '_') {
        return None;
    }
    let close = text[end..].find(tag);
    Some(close.map_or(text.len(), |at| end + at + tag.len()))
}

/// The length of a comment, comments inside it included.
fn block_comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest.starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_masked() {
        for (text, masked) in [
            (
                "alter role ann password 'sesame'",
                "alter role ann password '********'",
            ),
            (
                "ALTER USER ann WITH ENCRYPTED PASSWORD E'ses''ame' VALID UNTIL '2030-01-01'",
                "ALTER USER ann WITH ENCRYPTED PASSWORD '********' VALID UNTIL '2030-01-01'",
            ),
            (
                "create role a password/**/ $x$sesame$x$ login",
                "create role a password/**/ '********' login",
            ),
            (
                "create user a password sesame",
                "create user a password '********'",
            ),
            (
                "alter role ann pasword 'sesame'",
                "alter role ann pasword '********'",
            ),
            (
                "alter role ann password null",
                "alter role ann password null",
            ),
            (
                "alter role ann password 'sesa",
                "alter role ann password '********'",
            ),
            (
                "alter role \"o'hara\" password 'sesame'",
                "alter role \"o'hara\" password '********'",
            ),
            (
                "do $$ begin execute 'alter role a password ''sesame'''; end $$",
                "do '********'",
            ),
            (
                "select 1; create role a password 'x'; select 'y'",
                "select 1; create role a password '********'; select '********'",
            ),
            (
                "select 'a\\'; alter role a password 'sesame'",
                "select '********'",
            ),
            (
                "select format('alter role %I password %L', 'ann', 'sesame')",
                "select format('********', '********', '********')",
            ),
        ] {
            assert_eq!(mask(text), masked);
            assert!(!mask(text).contains("sesame"));
        }
    }

    #[test]
    fn other_texts_stay() {
        for text in [
            "select 'sesame'",
            "alter role ann set search_path = 'a, b'",
            "create user ann valid until '2030-01-01'",
            "insert into password values ('x')",
            "alter role ann login",
            "",
            "'",
            "$",
        ] {
            assert_eq!(mask(text), text);
        }
    }

    #[test]
    fn messages_tell_no_more() {
        let statement = "alter role ann password 'sesame' 'again'";
        let message = "syntax error at or near \"'again'\"";
        let shown = mask_message(statement, message);
        assert_eq!(shown, "syntax error at or near \"********\"");
        let context =
            "SQL statement \"alter role x password 'sesame'\"\nPL/pgSQL function f() line 1";
        let shown = mask_context(context);
        assert!(
            !shown.contains("sesame") && shown.ends_with("line 1"),
            "{shown}"
        );
        let shown = mask_context("SQL statement \"alter role x password 'sesame'\"");
        assert_eq!(shown, "SQL statement \"alter role x password '********'\"");
    }

    #[test]
    fn every_cut_of_a_text_is_masked() {
        let text =
            "alter role äö password e'ses\\'ame' ; do $a$ /* '*/ create user x password 'y' $a$";
        for end in (0..=text.len()).filter(|end| text.is_char_boundary(*end)) {
            assert!(!mask(&text[..end]).contains("ame"), "{end}");
        }
    }
}
