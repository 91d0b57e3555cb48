//! The words of a jsonpath.

use base::error::{Error, Result, SqlState};

/// A word.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A character or two that mean something.
    Sign(&'static str),
    /// A name without quotes, escapes taken away.
    Word(String),
    /// A text in quotes.
    String(String),
    /// A name after `$`.
    Variable(String),
    /// Digits alone.
    Integer(String),
    Number(String),
    End,
}

const SIGNS: &[&str] = &[
    "&&", "||", "**", "==", "!=", "<>", "<=", ">=", "?", "%", "$", ".", "[", "]", "{", "}", "(",
    ")", "|", "&", "!", "=", "<", ">", "@", "#", ",", "*", ":", "-", "+", "/",
];

/// Takes a text apart; knows where the latest word stands.
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    start: usize,
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0c')
}

/// Whether a character stands in names.
fn is_other(c: char) -> bool {
    !is_blank(c) && !"?%$.[]{}()|&!=<>@#,*:-+/\\\"".contains(c)
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Lexer<'a> {
        Lexer {
            text,
            at: 0,
            start: 0,
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// 42601 at the latest word.
    pub(super) fn error(&self, message: &str) -> Error {
        let shown = &self.text[self.start..self.at];
        let message = match shown {
            "" => format!("{message} at end of jsonpath input"),
            shown => format!("{message} at or near \"{shown}\" of jsonpath input"),
        };
        Error::new(SqlState::SYNTAX_ERROR, message)
    }

    fn error_at_end(&mut self, message: &str) -> Error {
        self.at = self.text.len();
        self.start = self.at;
        self.error(message)
    }

    /// The next word.
    pub(super) fn next(&mut self) -> Result<Token> {
        loop {
            self.at += self.rest().len() - self.rest().trim_start_matches(is_blank).len();
            self.start = self.at;
            if !self.rest().starts_with("/*") {
                break;
            }
            match self.rest().find("*/") {
                Some(end) => self.at += end + 2,
                None => return Err(self.error_at_end("unexpected end of comment")),
            }
        }
        let Some(c) = self.peek() else {
            return Ok(Token::End);
        };
        let follows = |at: usize| self.rest()[at..].chars().next();
        match c {
            '"' => return self.quoted().map(Token::String),
            '$' if follows(1) == Some('"') => {
                self.at += 1;
                return self.quoted().map(Token::Variable);
            }
            '$' if follows(1).is_some_and(|c| is_other(c) || c == '\\') => {
                self.at += 1;
                return self.word().map(Token::Variable);
            }
            '.' if follows(1).is_some_and(|c| c.is_ascii_digit()) => return self.number(),
            '0'..='9' => return self.number(),
            _ => {}
        }
        if let Some(sign) = SIGNS.iter().find(|sign| self.rest().starts_with(**sign)) {
            self.at += sign.len();
            let sign = if *sign == "<>" { "!=" } else { *sign };
            let sign = if sign == "=" { "==" } else { sign };
            return Ok(Token::Sign(sign));
        }
        self.word().map(Token::Word)
    }

    fn digits(&mut self) -> usize {
        let rest = self.rest().bytes();
        let count = rest.take_while(u8::is_ascii_digit).count();
        self.at += count;
        count
    }

    fn number(&mut self) -> Result<Token> {
        let from = self.at;
        let mut whole = true;
        if self.peek() == Some('0') {
            self.at += 1;
        } else {
            self.digits();
        }
        if self.peek() == Some('.') {
            self.at += 1;
            self.digits();
            whole = false;
        }
        if matches!(self.peek(), Some('e' | 'E')) {
            whole = false;
            self.at += 1;
            if matches!(self.peek(), Some('+' | '-')) {
                self.at += 1;
                if self.digits() == 0 {
                    return Err(self.error("invalid numeric literal"));
                }
            } else if self.digits() == 0 {
                return Err(self.error("trailing junk after numeric literal"));
            }
        }
        if let Some(c) = self.peek().filter(|c| is_other(*c)) {
            self.at += c.len_utf8();
            return Err(self.error("trailing junk after numeric literal"));
        }
        let text = self.text[from..self.at].to_owned();
        Ok(match whole {
            true => Token::Integer(text),
            false => Token::Number(text),
        })
    }

    fn word(&mut self) -> Result<String> {
        let mut out = String::new();
        while let Some(c) = self.peek() {
            if c == '\\' {
                self.escape(&mut out)?;
            } else if is_other(c) {
                out.push(c);
                self.at += c.len_utf8();
            } else {
                return Ok(out);
            }
        }
        // PostgreSQL notices the end of the text first.
        self.start = self.at;
        Ok(out)
    }

    fn quoted(&mut self) -> Result<String> {
        let mut out = String::new();
        self.at += 1;
        loop {
            match self.peek() {
                None => return Err(self.error_at_end("unexpected end of quoted string")),
                Some('"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some('\\') => self.escape(&mut out)?,
                Some(c) => {
                    out.push(c);
                    self.at += c.len_utf8();
                }
            }
        }
    }

    fn hex(&mut self, most: usize) -> Option<u32> {
        let rest = self.rest();
        let len = rest
            .bytes()
            .take(most)
            .take_while(u8::is_ascii_hexdigit)
            .count();
        let value = u32::from_str_radix(&rest[..len], 16).ok()?;
        self.at += len;
        Some(value)
    }

    fn escape(&mut self, out: &mut String) -> Result<()> {
        // What is wrong with an escape is said of it alone.
        let token = std::mem::replace(&mut self.start, self.at);
        self.escaped(out)?;
        self.start = token;
        Ok(())
    }

    fn escaped(&mut self, out: &mut String) -> Result<()> {
        self.at += 1;
        let Some(c) = self.peek() else {
            return Err(self.error("unexpected end after backslash"));
        };
        self.at += c.len_utf8();
        out.push(match c {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            'x' => {
                let before = self.at;
                let code = self.hex(2).filter(|_| self.at - before == 2);
                let Some(code) = code else {
                    return Err(self.error("invalid hex character sequence"));
                };
                return self.push_code(code, out);
            }
            'u' => return self.unicode(out),
            c => c,
        });
        Ok(())
    }

    fn push_code(&self, code: u32, out: &mut String) -> Result<()> {
        if code == 0 {
            let error = Error::new(SqlState::of("22P05"), "unsupported Unicode escape sequence");
            return Err(error.with_detail("\\u0000 cannot be converted to text."));
        }
        out.extend(char::from_u32(code));
        Ok(())
    }

    fn code(&mut self) -> Result<u32> {
        let bad = "invalid unicode sequence";
        if self.peek() == Some('{') {
            self.at += 1;
            let code = self.hex(6);
            let closed = self.peek() == Some('}');
            return match code {
                Some(code) if closed => {
                    self.at += 1;
                    Ok(code)
                }
                _ => Err(self.error(bad)),
            };
        }
        let before = self.at;
        match self.hex(4) {
            Some(code) if self.at - before == 4 => Ok(code),
            _ => Err(self.error(bad)),
        }
    }

    fn unicode(&mut self, out: &mut String) -> Result<()> {
        let surrogate = |detail: &str| {
            let message = "invalid input syntax for type jsonpath";
            Error::new(SqlState::INVALID_TEXT_REPRESENTATION, message).with_detail(detail)
        };
        const LOW: &str = "Unicode low surrogate must follow a high surrogate.";
        let code = self.code()?;
        match code {
            0xd800..=0xdbff => {
                if !self.rest().starts_with("\\u") {
                    return Err(surrogate(LOW));
                }
                self.at += 2;
                match self.code()? {
                    low @ 0xdc00..=0xdfff => {
                        let code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                        self.push_code(code, out)
                    }
                    0xd800..=0xdbff => Err(surrogate(
                        "Unicode high surrogate must not follow a high surrogate.",
                    )),
                    _ => Err(surrogate(LOW)),
                }
            }
            0xdc00..=0xdfff => Err(surrogate(LOW)),
            code => self.push_code(code, out),
        }
    }
}
