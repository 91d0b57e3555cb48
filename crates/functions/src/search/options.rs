//! Lists of options: `StartSel=<b>, MaxWords = 5, FragmentDelimiter=' … '`.

use base::{Error, Result, SqlState};
use types::search::token::is_space;

/// Names and values.
///
/// # Errors
/// 42601.
pub(super) fn read(text: &str) -> Result<Vec<(String, String)>> {
    let wrong = || {
        let message = format!("invalid parameter list format: \"{text}\"");
        Error::new(SqlState::SYNTAX_ERROR, message)
    };
    let mut options = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|c| is_space(c) || c == ',');
        if rest.is_empty() {
            return Ok(options);
        }
        let name;
        (name, rest) = match rest.strip_prefix('"') {
            Some(quoted) => take_quoted(quoted, '"').ok_or_else(wrong)?,
            None => {
                let end = rest.find(|c| is_space(c) || c == '=').ok_or_else(wrong)?;
                (rest[..end].to_owned(), &rest[end..])
            }
        };
        rest = rest.trim_start_matches(is_space);
        rest = rest.strip_prefix('=').ok_or_else(wrong)?;
        rest = rest.trim_start_matches(is_space);
        let value;
        (value, rest) = match rest.chars().next() {
            None => return Err(wrong()),
            Some('\'') => take_quoted(&rest[1..], '\'').ok_or_else(wrong)?,
            Some('"') => take_quoted(&rest[1..], '"').ok_or_else(wrong)?,
            Some('E') if rest.starts_with("E'") => {
                take_quoted(&rest[2..], '\'').ok_or_else(wrong)?
            }
            Some(_) => {
                let end = rest.find(|c| is_space(c) || c == ',').unwrap_or(rest.len());
                (rest[..end].to_owned(), &rest[end..])
            }
        };
        options.push((name, value));
    }
}

/// What stands up to the quote, which is written twice inside.
fn take_quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let doubled = c == quote || (c == '\\' && quote == '\'');
        if doubled && chars.peek().is_some_and(|next| next.1 == c) {
            chars.next();
        } else if c == quote {
            return Some((out, &text[at + c.len_utf8()..]));
        }
        out.push(c);
    }
    None
}
