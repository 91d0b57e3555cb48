//! JSON text as a sequence of events.
//!
//! The parser is asked for one event after the other and keeps what is open on a stack of its own,
//! so depth costs memory and no calls. It checks everything PostgreSQL's does, and says what is
//! wrong, and where, in the same words.

use base::coro;
use base::error::{Error, Result, SqlState};

/// Values may be nested this deep; deeper is 54001. PostgreSQL's limit is its stack's.
pub const DEPTH_MAX: usize = 6_000;
/// Bytes that are shown of the line of an error.
const SHOWN_BYTES: usize = 50;
/// Bytes that are read before they are counted as work.
const PORTION: usize = 4 << 10;

/// A step of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Event {
    BeginObject,
    EndObject,
    BeginArray,
    EndArray,
    /// [`Parser::text`] is the key.
    Key,
    /// [`Parser::text`] is its value.
    String,
    /// [`Parser::token`] is its text.
    Number,
    True,
    False,
    Null,
}

impl Event {
    /// Whether a value begins with it.
    pub fn begins_value(self) -> bool {
        !matches!(self, Event::EndObject | Event::EndArray | Event::Key)
    }

    /// Whether a value ends with it.
    pub fn ends_value(self) -> bool {
        !matches!(self, Event::BeginObject | Event::BeginArray | Event::Key)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    ObjectStart,
    ObjectEnd,
    ArrayStart,
    ArrayEnd,
    Comma,
    Colon,
    String,
    Number,
    True,
    False,
    Null,
    End,
}

/// What may come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expect {
    Value,
    FirstElement,
    FirstMember,
    Member,
    After,
    Nothing,
}

/// Takes a text apart.
#[derive(Debug)]
pub struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    /// Whether the values of strings are wanted, which not all escapes have.
    unescape: bool,
    token: Token,
    start: usize,
    end: usize,
    line: usize,
    line_start: usize,
    /// The value of the token, if it is a string.
    value: String,
    /// What [`Parser::text`] gives, and where the token of the event is.
    event_text: String,
    event_place: (usize, usize),
    expect: Expect,
    /// Whether each open container is an object.
    open: Vec<bool>,
    began: bool,
    counted: usize,
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

impl<'a> Parser<'a> {
    /// A parser of a text. Without `unescape`, strings are only checked, and have no value.
    pub fn new(text: &'a str, unescape: bool) -> Parser<'a> {
        Parser {
            text,
            bytes: text.as_bytes(),
            unescape,
            token: Token::End,
            start: 0,
            end: 0,
            line: 1,
            line_start: 0,
            value: String::new(),
            event_text: String::new(),
            event_place: (0, 0),
            expect: Expect::Value,
            open: Vec::new(),
            began: false,
            counted: 0,
        }
    }

    /// The value of the string, or the key, of the latest event.
    pub fn text(&self) -> &str {
        &self.event_text
    }

    /// The token of the latest event as it is written.
    pub fn token(&self) -> &'a str {
        &self.text[self.event_place.0..self.event_place.1]
    }

    /// Where the token of the latest event begins and ends.
    pub fn place(&self) -> (usize, usize) {
        self.event_place
    }

    /// How many containers are open after the latest event.
    pub fn depth(&self) -> usize {
        self.open.len()
    }

    /// The next event; `None` at the end.
    ///
    /// # Errors
    /// 22P02, 22P05, 54001; the pending interrupt.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Event>> {
        if !self.began {
            self.began = true;
            self.advance()?;
        }
        loop {
            match self.expect {
                Expect::Nothing => return Ok(None),
                Expect::Value => return self.begin_value().map(Some),
                Expect::FirstElement if self.token == Token::ArrayEnd => {
                    return self.close(Event::EndArray);
                }
                Expect::FirstElement => self.expect = Expect::Value,
                Expect::FirstMember => match self.token {
                    Token::ObjectEnd => return self.close(Event::EndObject),
                    Token::String => return self.key(),
                    _ => return Err(self.unexpected("string or \"}\"")),
                },
                Expect::Member if self.token == Token::String => return self.key(),
                Expect::Member => return Err(self.unexpected("string")),
                Expect::After => match (self.open.last(), self.token) {
                    (None, Token::End) => self.expect = Expect::Nothing,
                    (None, _) => return Err(self.unexpected("end of input")),
                    (Some(false), Token::ArrayEnd) => return self.close(Event::EndArray),
                    (Some(true), Token::ObjectEnd) => return self.close(Event::EndObject),
                    (Some(object), Token::Comma) => {
                        self.expect = match object {
                            true => Expect::Member,
                            false => Expect::Value,
                        };
                        self.advance()?;
                    }
                    (Some(false), _) => return Err(self.unexpected("\",\" or \"]\"")),
                    (Some(true), _) => return Err(self.unexpected("\",\" or \"}\"")),
                },
            }
        }
    }

    /// The event is that of the token at hand; goes on to the next one.
    fn take(&mut self) -> Result<()> {
        self.event_place = (self.start, self.end);
        std::mem::swap(&mut self.value, &mut self.event_text);
        self.advance()
    }

    fn begin_value(&mut self) -> Result<Event> {
        let (event, next) = match self.token {
            Token::ObjectStart => (Event::BeginObject, Expect::FirstMember),
            Token::ArrayStart => (Event::BeginArray, Expect::FirstElement),
            Token::String => (Event::String, Expect::After),
            Token::Number => (Event::Number, Expect::After),
            Token::True => (Event::True, Expect::After),
            Token::False => (Event::False, Expect::After),
            Token::Null => (Event::Null, Expect::After),
            _ => return Err(self.unexpected("JSON value")),
        };
        if next != Expect::After {
            if self.open.len() >= DEPTH_MAX {
                return Err(too_deep());
            }
            self.open.push(event == Event::BeginObject);
        }
        self.expect = next;
        self.take()?;
        Ok(event)
    }

    fn close(&mut self, event: Event) -> Result<Option<Event>> {
        self.open.pop();
        self.expect = Expect::After;
        self.take()?;
        Ok(Some(event))
    }

    fn key(&mut self) -> Result<Option<Event>> {
        self.take()?;
        if self.token != Token::Colon {
            return Err(self.unexpected("\":\""));
        }
        self.advance()?;
        self.expect = Expect::Value;
        Ok(Some(Event::Key))
    }

    fn shown(&self) -> &'a str {
        self.text.get(self.start..self.end).unwrap_or_default()
    }

    fn unexpected(&self, wanted: &str) -> Error {
        if self.token == Token::End {
            return self.invalid("The input string ended unexpectedly.".to_owned());
        }
        let found = self.shown();
        self.invalid(format!("Expected {wanted}, but found \"{found}\"."))
    }

    fn bad_token(&self) -> Error {
        self.invalid(format!("Token \"{}\" is invalid.", self.shown()))
    }

    fn invalid(&self, detail: String) -> Error {
        let error = Error::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            "invalid input syntax for type json",
        );
        self.at_line(error.with_detail(detail))
    }

    /// Where it is, as CONTEXT.
    fn at_line(&self, mut error: Error) -> Error {
        let mut from = self.line_start;
        while self.end - from >= SHOWN_BYTES {
            from += 1;
            while !self.text.is_char_boundary(from) {
                from += 1;
            }
        }
        if from - self.line_start <= 3 {
            from = self.line_start;
        }
        let before = if from > self.line_start { "..." } else { "" };
        let goes_on = self.token != Token::End
            && (self.bytes.get(self.end)).is_some_and(|byte| !matches!(byte, b'\n' | b'\r'));
        let after = if goes_on { "..." } else { "" };
        let line = self.line;
        let shown = self.text.get(from..self.end).unwrap_or_default();
        error.fields_mut().context =
            Some(format!("JSON data, line {line}: {before}{shown}{after}"));
        error
    }

    /// Reads the next token.
    fn advance(&mut self) -> Result<()> {
        self.skip_space();
        self.start = self.end;
        let Some(byte) = self.bytes.get(self.start) else {
            self.token = Token::End;
            return Ok(());
        };
        let single = match byte {
            b'{' => Token::ObjectStart,
            b'}' => Token::ObjectEnd,
            b'[' => Token::ArrayStart,
            b']' => Token::ArrayEnd,
            b',' => Token::Comma,
            b':' => Token::Colon,
            b'"' => {
                // Until it has ended, an error in it is not one of the end of the input.
                self.token = Token::String;
                return self.string();
            }
            b'-' | b'0'..=b'9' => {
                self.token = Token::Number;
                return self.number();
            }
            _ => return self.word(),
        };
        self.token = single;
        self.end = self.start + 1;
        self.count(1)
    }

    fn skip_space(&mut self) {
        while let Some(byte) = self.bytes.get(self.end) {
            match byte {
                b' ' | b'\t' | b'\r' => self.end += 1,
                b'\n' => {
                    self.end += 1;
                    self.line += 1;
                    self.line_start = self.end;
                }
                _ => break,
            }
        }
    }

    fn count(&mut self, bytes: usize) -> Result<()> {
        self.counted += bytes + 8;
        if self.counted < PORTION {
            return Ok(());
        }
        Ok(coro::work(std::mem::take(&mut self.counted))?)
    }

    fn word(&mut self) -> Result<()> {
        let rest = &self.bytes[self.start..];
        let len = rest.iter().take_while(|byte| is_word(**byte)).count();
        // Nothing that may stand there, whatever the token before was.
        self.token = Token::Null;
        self.end = self.start + len.max(1);
        self.token = match &rest[..len] {
            b"true" => Token::True,
            b"false" => Token::False,
            b"null" => Token::Null,
            _ => return Err(self.bad_token()),
        };
        self.count(len)
    }

    fn number(&mut self) -> Result<()> {
        let bytes = self.bytes;
        let mut at = self.start;
        let digits = |at: &mut usize| {
            let from = *at;
            while bytes.get(*at).is_some_and(u8::is_ascii_digit) {
                *at += 1;
            }
            *at > from
        };
        at += usize::from(bytes[at] == b'-');
        let mut right = match bytes.get(at) {
            Some(b'0') => {
                at += 1;
                true
            }
            _ => digits(&mut at),
        };
        if bytes.get(at) == Some(&b'.') {
            at += 1;
            right &= digits(&mut at);
        }
        if matches!(bytes.get(at), Some(b'e' | b'E')) {
            at += 1;
            at += usize::from(matches!(bytes.get(at), Some(b'+' | b'-')));
            right &= digits(&mut at);
        }
        while bytes.get(at).is_some_and(|byte| is_word(*byte)) {
            at += 1;
            right = false;
        }
        self.end = at;
        match right {
            true => self.count(at - self.start),
            false => Err(self.bad_token()),
        }
    }

    /// Where the character at a place ends.
    fn char_end(&self, at: usize) -> usize {
        let rest = self.text.get(at..).and_then(|rest| rest.chars().next());
        at + rest.map_or(0, char::len_utf8)
    }

    fn string(&mut self) -> Result<()> {
        let bytes = self.bytes;
        self.value.clear();
        let mut high = None;
        let mut at = self.start + 1;
        loop {
            let from = at;
            let plain = |byte: &&u8| !matches!(**byte, b'"' | b'\\' | 0..=31);
            at += bytes[at..].iter().take_while(plain).count();
            if at > from {
                self.no_lone_surrogate(high, from)?;
                if self.unescape {
                    self.value.push_str(&self.text[from..at]);
                }
                self.count(at - from)?;
            }
            match bytes.get(at) {
                None => {
                    self.end = at;
                    return Err(self.bad_token());
                }
                Some(b'"') => {
                    self.end = at + 1;
                    if high.is_some() {
                        return Err(self.lone_surrogate());
                    }
                    return self.count(2);
                }
                Some(b'\\') => at = self.escape(at + 1, &mut high)?,
                Some(byte) => {
                    self.end = at;
                    let detail = format!("Character with value 0x{byte:02x} must be escaped.");
                    return Err(self.invalid(detail));
                }
            }
        }
    }

    fn lone_surrogate(&self) -> Error {
        self.invalid("Unicode low surrogate must follow a high surrogate.".to_owned())
    }

    /// What follows a high surrogate is an escape.
    fn no_lone_surrogate(&mut self, high: Option<u32>, at: usize) -> Result<()> {
        if high.is_none() {
            return Ok(());
        }
        self.end = self.char_end(at);
        Err(self.lone_surrogate())
    }

    /// Reads an escape from behind its backslash; gives where it ends.
    fn escape(&mut self, at: usize, high: &mut Option<u32>) -> Result<usize> {
        let Some(byte) = self.bytes.get(at) else {
            self.end = at;
            return Err(self.bad_token());
        };
        let c = match byte {
            b'u' => return self.unicode(at, high),
            b'"' | b'\\' | b'/' => char::from(*byte),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            _ if self.unescape && high.is_some() => {
                self.no_lone_surrogate(*high, at)?;
                return Ok(at);
            }
            _ => {
                self.start = at;
                self.end = self.char_end(at);
                let detail = format!("Escape sequence \"\\{}\" is invalid.", self.shown());
                return Err(self.invalid(detail));
            }
        };
        if self.unescape {
            self.no_lone_surrogate(*high, at)?;
            self.value.push(c);
        }
        Ok(at + 1)
    }

    /// Reads four digits behind the `u` at a place.
    fn unicode(&mut self, at: usize, high: &mut Option<u32>) -> Result<usize> {
        let mut code = 0;
        for place in at + 1..at + 5 {
            let Some(byte) = self.bytes.get(place) else {
                self.end = place;
                return Err(self.bad_token());
            };
            let Some(digit) = char::from(*byte).to_digit(16) else {
                self.end = self.char_end(place);
                let detail = "\"\\u\" must be followed by four hexadecimal digits.";
                return Err(self.invalid(detail.to_owned()));
            };
            code = code * 16 + digit;
        }
        if !self.unescape {
            return Ok(at + 5);
        }
        self.end = at + 5;
        let whole = match (code, *high) {
            (0xd800..=0xdbff, None) => {
                *high = Some(code);
                return Ok(at + 5);
            }
            (0xd800..=0xdbff, Some(_)) => {
                let detail = "Unicode high surrogate must not follow a high surrogate.";
                return Err(self.invalid(detail.to_owned()));
            }
            (0xdc00..=0xdfff, Some(high)) => 0x10000 + ((high - 0xd800) << 10) + (code - 0xdc00),
            (0xdc00..=0xdfff, None) | (_, Some(_)) => return Err(self.lone_surrogate()),
            (0, None) => {
                let error =
                    Error::new(SqlState::of("22P05"), "unsupported Unicode escape sequence");
                let detail = "\\u0000 cannot be converted to text.";
                return Err(self.at_line(error.with_detail(detail)));
            }
            (code, None) => code,
        };
        *high = None;
        self.value.extend(char::from_u32(whole));
        Ok(at + 5)
    }
}

/// 54001: nested too deep.
pub fn too_deep() -> Error {
    Error::new(
        SqlState::STATEMENT_TOO_COMPLEX,
        "stack depth limit exceeded",
    )
    .with_hint(format!(
        "Values of JSON are nested {DEPTH_MAX} deep at most."
    ))
}

/// Whether a text is one number as JSON writes them.
pub fn is_number(text: &str) -> bool {
    let mut parser = Parser::new(text, false);
    let starts = text.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    starts && parser.advance().is_ok() && parser.end == text.len()
}

/// Goes through a text to its end.
///
/// # Errors
/// As [`Parser::next`].
pub fn check(text: &str) -> Result<()> {
    let mut parser = Parser::new(text, false);
    while parser.next()?.is_some() {}
    Ok(())
}
