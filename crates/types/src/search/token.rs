//! The lexemes of the text of a `tsvector` or a `tsquery`: bare words, words in quotes, and what
//! stands behind a colon.
//!
//! ```text
//! fat 'o''clock':1A,3 back\:slash        fat    o'clock at 1A and 3    back:slash
//! ```
//! In a query `!`, `&`, `|`, `(`, `)` and `<` end a word, and what is behind its colon is read by the
//! query's reader. As search engines have it, quotes and backslashes mean nothing, and `"` ends a
//! word.

use base::error::{Error, Result, SqlState};

use super::position::Position;
use super::POSITION_END;

/// What the words are part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A `tsvector`.
    Vector,
    /// A `tsquery`.
    Query,
    /// What `websearch_to_tsquery` reads.
    Web,
}

/// Whether a character is an operator of queries.
pub fn is_operator(c: char) -> bool {
    matches!(c, '!' | '&' | '|' | '(' | ')' | '<')
}

/// White space as the locale C.UTF-8 has it.
pub fn is_space(c: char) -> bool {
    match c {
        '\t'..='\r' | ' ' => true,
        '\u{a0}' | '\u{2007}' | '\u{202f}' | '\u{85}' => false,
        c if c.is_ascii() => false,
        c => c.is_whitespace(),
    }
}

/// A text and how far it was read.
#[derive(Debug)]
pub struct Tokens<'a> {
    /// The whole text, for errors.
    pub whole: &'a str,
    /// The rest, in bytes from the beginning.
    pub at: usize,
    kind: Kind,
}

/// A word with its positions.
#[derive(Debug, Default)]
pub struct Token {
    /// The word, without quotes and backslashes.
    pub word: String,
    /// What stands behind the colon.
    pub positions: Vec<Position>,
}

#[derive(Clone, Copy)]
enum State {
    Word,
    EndOfWord,
    Quoted,
    Quote,
    BeforePositions,
    Position,
    EndOfPosition,
}

impl<'a> Tokens<'a> {
    /// The words of a text.
    pub fn new(whole: &'a str, kind: Kind) -> Tokens<'a> {
        Tokens { whole, at: 0, kind }
    }

    /// What was not read yet.
    pub fn rest(&self) -> &'a str {
        self.whole.get(self.at..).unwrap_or_default()
    }

    /// 42601 for the text.
    pub fn syntax_error(&self) -> Error {
        let kind = match self.kind {
            Kind::Vector => "tsvector",
            Kind::Query | Kind::Web => "tsquery",
        };
        let whole = self.whole;
        let message = format!("syntax error in {kind}: \"{whole}\"");
        Error::new(SqlState::SYNTAX_ERROR, message)
    }

    fn escaped(&mut self, word: &mut String) -> Result<()> {
        self.at += 1;
        let Some(c) = self.rest().chars().next() else {
            let message = format!("there is no escaped character: \"{}\"", self.whole);
            return Err(Error::new(SqlState::SYNTAX_ERROR, message));
        };
        word.push(c);
        self.at += c.len_utf8();
        Ok(())
    }

    fn position(&mut self) -> Result<Position> {
        let rest = self.rest();
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return Err(self.syntax_error());
        }
        // As C's `atoi` has it: of 64 bits the lower ones.
        let number = rest[..digits].parse().unwrap_or(i64::MAX) as i32;
        let place = number.min(i32::from(POSITION_END) - 1) as u16 & (POSITION_END - 1);
        if place == 0 {
            let message = format!("wrong position info in tsvector: \"{}\"", self.whole);
            return Err(Error::new(SqlState::SYNTAX_ERROR, message));
        }
        self.at += digits;
        Ok(Position::new(place, 0))
    }

    fn weight(&mut self, letter: char, positions: &mut [Position]) -> Result<()> {
        let weight = match letter {
            'a' | 'A' | '*' => 3,
            'b' | 'B' => 2,
            'c' | 'C' => 1,
            'd' | 'D' => 0,
            _ => return Err(self.syntax_error()),
        };
        let error = self.syntax_error();
        let last = positions.last_mut().filter(|last| last.weight() == 0);
        let last = last.ok_or(error)?;
        *last = Position::new(last.place(), weight);
        self.at += 1;
        Ok(())
    }

    /// The next word; none at the end.
    ///
    /// # Errors
    /// 42601.
    pub fn next_token(&mut self) -> Result<Option<Token>> {
        let is_query = self.kind != Kind::Vector;
        let is_web = self.kind == Kind::Web;
        let mut token = Token::default();
        let mut state = State::Word;
        loop {
            let next = self.rest().chars().next();
            let ends = |c: char| (is_query && is_operator(c)) || (is_web && c == '"');
            match (state, next) {
                (State::Word, None) => return Ok(None),
                (State::Word, Some('\'')) if !is_web => {
                    self.at += 1;
                    state = State::Quoted;
                }
                (State::Word | State::EndOfWord, Some('\\')) if !is_web => {
                    self.escaped(&mut token.word)?;
                    state = State::EndOfWord;
                }
                (State::Word, Some(c)) if ends(c) => return Err(self.syntax_error()),
                (State::Word, Some(c)) => {
                    self.at += c.len_utf8();
                    if !is_space(c) {
                        token.word.push(c);
                        state = State::EndOfWord;
                    }
                }
                (State::EndOfWord, None) => return Ok(Some(token)),
                (State::EndOfWord, Some(c)) if is_space(c) || ends(c) => return Ok(Some(token)),
                (State::EndOfWord, Some(':')) if is_query => return Ok(Some(token)),
                (State::EndOfWord, Some(':')) => {
                    self.at += 1;
                    state = State::Position;
                }
                (State::EndOfWord, Some(c)) => {
                    token.word.push(c);
                    self.at += c.len_utf8();
                }
                (State::Quoted, None) => return Err(self.syntax_error()),
                (State::Quoted, Some('\'')) => {
                    self.at += 1;
                    state = State::Quote;
                }
                (State::Quoted, Some('\\')) => self.escaped(&mut token.word)?,
                (State::Quoted, Some(c)) => {
                    token.word.push(c);
                    self.at += c.len_utf8();
                }
                (State::Quote, Some('\'')) => {
                    token.word.push('\'');
                    self.at += 1;
                    state = State::Quoted;
                }
                (State::Quote, _) => {
                    if token.word.is_empty() {
                        return Err(self.syntax_error());
                    }
                    if is_query {
                        return Ok(Some(token));
                    }
                    state = State::BeforePositions;
                }
                (State::BeforePositions, Some(':')) => {
                    self.at += 1;
                    state = State::Position;
                }
                (State::BeforePositions, _) => return Ok(Some(token)),
                (State::Position, _) => {
                    let position = self.position()?;
                    token.positions.push(position);
                    state = State::EndOfPosition;
                }
                (State::EndOfPosition, None) => return Ok(Some(token)),
                (State::EndOfPosition, Some(',')) => {
                    self.at += 1;
                    state = State::Position;
                }
                (State::EndOfPosition, Some(c)) if c.is_ascii_digit() => self.at += 1,
                (State::EndOfPosition, Some(c)) if is_space(c) => return Ok(Some(token)),
                (State::EndOfPosition, Some(c)) => self.weight(c, &mut token.positions)?,
            }
        }
    }
}
