//! The default parser: a text as tokens of 23 types.
//!
//! ```text
//! up-to-date 1.5 a@b.com     asciihword up-to-date, hword_asciipart up, blank -, … , float 1.5, email a@b.com
//! ```
//! `states.txt` is a machine with a memory of places: where it does not know yet what a character
//! begins, it goes on with one guess, and comes back to take the next. It was made so that tokens are
//! the ones of PostgreSQL's parser, whose states it has.
//!
//! Source: PostgreSQL 15 manual, section 12.5, and the server's answers.
//!
//! # What it leaves out
//! Parsers of one's own.

use std::sync::OnceLock;

use base::memory::Reservation;
use base::{coro, Result};

use super::marks::is_mark;
use crate::regex::Class;
use types::search::token::is_space;

const STATES: &str = include_str!("states.txt");

/// The types of tokens: alias and description. The first has number 1.
pub const TOKEN_TYPES: [(&str, &str); 23] = [
    ("asciiword", "Word, all ASCII"),
    ("word", "Word, all letters"),
    ("numword", "Word, letters and digits"),
    ("email", "Email address"),
    ("url", "URL"),
    ("host", "Host"),
    ("sfloat", "Scientific notation"),
    ("version", "Version number"),
    ("hword_numpart", "Hyphenated word part, letters and digits"),
    ("hword_part", "Hyphenated word part, all letters"),
    ("hword_asciipart", "Hyphenated word part, all ASCII"),
    ("blank", "Space symbols"),
    ("tag", "XML tag"),
    ("protocol", "Protocol head"),
    ("numhword", "Hyphenated word, letters and digits"),
    ("asciihword", "Hyphenated word, all ASCII"),
    ("hword", "Hyphenated word, all letters"),
    ("url_path", "URL path"),
    ("file", "File or path name"),
    ("float", "Decimal notation"),
    ("int", "Signed integer"),
    ("uint", "Unsigned integer"),
    ("entity", "XML entity"),
];

/// The number of a type of tokens by its alias.
pub(super) fn token_type(alias: &str) -> Option<u8> {
    let at = TOKEN_TYPES.iter().position(|known| known.0 == alias)?;
    u8::try_from(at + 1).ok()
}

/// What begins a URL's path, and host tokens by their numbers.
const HOST: u8 = 6;
const URL_PATH: u8 = 18;

/// Places that may be remembered before their memory is counted.
const PLACES_UNCOUNTED: usize = 1_024;
/// Characters that are counted as work at once.
const WORK: usize = 1_024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Test {
    End,
    Any,
    Char(u8),
    Letter,
    Alpha,
    Alnum,
    NonWord,
    Digit,
    HexDigit,
    Space,
    Mark,
    UrlChar,
    /// Within `<script>` and `<style>`.
    Ignore,
    /// Only a host was wanted.
    Wanted,
    /// A host follows.
    Host,
    /// A URL's path follows.
    Path,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Go,
    Push,
    Pop,
    Drop,
    Join,
    Again,
    Token,
    TokenDrop,
    TokenAll,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Special {
    None,
    Tags,
    Url,
    Hyphen,
    Version,
}

/// A line of the machine.
#[derive(Clone, Copy, Debug)]
struct Row {
    test: Test,
    action: Action,
    /// The state that follows; none for the same.
    next: Option<u8>,
    /// The type of the token.
    kind: u8,
    special: Special,
}

struct Machine {
    rows: Vec<Row>,
    /// Where the rows of each state begin.
    states: Vec<usize>,
    url_path_first: u8,
}

fn test_of(word: &str) -> Option<Test> {
    if let Some(c) = word.strip_prefix('\'') {
        return c.bytes().next().map(Test::Char);
    }
    Some(match word {
        "$" => Test::End,
        "*" => Test::Any,
        "letter" => Test::Letter,
        "alpha" => Test::Alpha,
        "alnum" => Test::Alnum,
        "nonword" => Test::NonWord,
        "digit" => Test::Digit,
        "xdigit" => Test::HexDigit,
        "space" => Test::Space,
        "mark" => Test::Mark,
        "urlchar" => Test::UrlChar,
        "ignore" => Test::Ignore,
        "wanted" => Test::Wanted,
        "host" => Test::Host,
        "path" => Test::Path,
        _ => return None,
    })
}

fn action_of(word: &str) -> Option<Action> {
    Some(match word {
        "go" => Action::Go,
        "push" => Action::Push,
        "pop" => Action::Pop,
        "drop" => Action::Drop,
        "join" => Action::Join,
        "again" => Action::Again,
        "token" => Action::Token,
        "token-drop" => Action::TokenDrop,
        "token-all" => Action::TokenAll,
        _ => return None,
    })
}

fn special_of(word: &str) -> Option<Special> {
    Some(match word {
        "tags" => Special::Tags,
        "url" => Special::Url,
        "hyphen" => Special::Hyphen,
        "version" => Special::Version,
        _ => return None,
    })
}

fn row_of(line: &str, names: &[&str]) -> Option<Row> {
    let mut words = line.split_whitespace();
    let test = test_of(words.next()?)?;
    let action = action_of(words.next()?)?;
    let next = words.next()?;
    let next = names.iter().position(|name| *name == next);
    let mut row = Row {
        test,
        action,
        next: next.and_then(|at| u8::try_from(at).ok()),
        kind: 0,
        special: Special::None,
    };
    if matches!(action, Action::Token | Action::TokenDrop | Action::TokenAll) {
        row.kind = token_type(words.next()?)?;
    }
    if let Some(word) = words.next() {
        row.special = special_of(word)?;
    }
    Some(row)
}

/// Built at the first use, from a file of the source.
fn machine() -> &'static Machine {
    static MACHINE: OnceLock<Machine> = OnceLock::new();
    MACHINE.get_or_init(|| {
        let lines = || STATES.lines().filter(|line| !line.starts_with('#'));
        let names: Vec<&str> = lines().filter_map(|line| line.strip_prefix("= ")).collect();
        let (mut rows, mut states) = (Vec::new(), Vec::new());
        for line in lines() {
            match line.starts_with("= ") {
                true => states.push(rows.len()),
                false => rows.push(
                    row_of(line, &names).unwrap_or_else(|| panic!("states.txt has `{line}`")),
                ),
            }
        }
        let first = names.iter().position(|name| *name == "UrlPathFirst");
        Machine {
            rows,
            states,
            url_path_first: first
                .and_then(|at| u8::try_from(at).ok())
                .unwrap_or_default(),
        }
    })
}

/// Where the machine stands.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    state: u8,
    /// Bytes from the beginning of the text.
    at: usize,
    /// The bytes of the character there.
    len: usize,
    /// Bytes and characters of the token so far.
    bytes: usize,
    chars: usize,
    /// The row that pushed.
    pushed: Option<usize>,
}

/// A token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// Its type, from 1 on.
    pub kind: u8,
    /// Its text.
    pub text: &'a str,
}

/// A text on its way through the machine.
#[derive(Debug)]
pub struct Parser<'a> {
    text: &'a str,
    places: Vec<Place>,
    /// Where the token begins.
    start: usize,
    ignore: bool,
    wanted: bool,
    /// Length and type of the last token.
    found: (usize, usize, u8),
    held: Reservation,
    steps: usize,
}

impl<'a> Parser<'a> {
    /// The tokens of a text.
    pub fn new(text: &'a str) -> Parser<'a> {
        Parser {
            text,
            places: vec![Place::default()],
            start: 0,
            ignore: false,
            wanted: false,
            found: (0, 0, 0),
            held: Reservation::of("A text search parser"),
            steps: 0,
        }
    }

    fn place(&mut self) -> &mut Place {
        // There is always one: what pops was pushed.
        if self.places.is_empty() {
            self.places.push(Place::default());
        }
        let last = self.places.len() - 1;
        &mut self.places[last]
    }

    fn char_at(&self, at: usize) -> Option<char> {
        self.text[at..].chars().next()
    }

    /// The length and type of the token that another machine finds from here.
    fn look(
        &mut self,
        prepare: impl FnOnce(&mut Parser<'a>),
    ) -> Result<Option<(Place, usize, usize, u8)>> {
        let at = self.place().at;
        let mut other = Parser::new(self.text);
        other.place().at = at;
        prepare(&mut other);
        let found = other.run()?;
        self.steps += other.steps;
        let place = *other.place();
        Ok(found.then_some((place, other.found.0, other.found.1, other.found.2)))
    }

    fn extend(&mut self, by: (Place, usize, usize, u8)) {
        let (other, bytes, chars, _) = by;
        let place = self.place();
        place.at += bytes;
        place.bytes += bytes;
        place.chars += chars;
        place.len = other.len;
    }

    fn holds(&mut self, test: Test) -> Result<bool> {
        let place = *self.place();
        let c = match place.len {
            0 => None,
            _ => self.char_at(place.at),
        };
        let in_class = |class: Class| c.is_some_and(|c| class.set().contains(c as u32));
        Ok(match test {
            Test::Any => true,
            Test::End => c.is_none(),
            Test::Char(wanted) => c == Some(char::from(wanted)),
            Test::Letter => c.is_some_and(|c| c.is_ascii_alphabetic()),
            Test::Digit => c.is_some_and(|c| c.is_ascii_digit()),
            Test::HexDigit => c.is_some_and(|c| c.is_ascii_hexdigit()),
            Test::Alpha => match c {
                Some(c) if c.is_ascii() => c.is_ascii_alphabetic(),
                _ => in_class(Class::Alpha),
            },
            Test::Alnum | Test::NonWord => {
                let is_word = match c {
                    Some(c) if c.is_ascii() => c.is_ascii_alphanumeric(),
                    _ => in_class(Class::Alnum),
                };
                is_word == (test == Test::Alnum)
            }
            Test::Space => c.is_some_and(is_space),
            Test::Mark => c.is_some_and(|c| !c.is_ascii() && is_mark(c)),
            Test::UrlChar => c.is_some_and(|c| {
                c.is_ascii_graphic()
                    && !matches!(c, '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}')
            }),
            Test::Ignore => self.ignore,
            Test::Wanted => std::mem::take(&mut self.wanted),
            Test::Host => {
                let found = self.look(|other| other.wanted = true)?;
                let found = found.filter(|found| found.3 == HOST);
                if let Some(found) = found {
                    self.extend(found);
                }
                found.is_some()
            }
            Test::Path => {
                let state = machine().url_path_first;
                let found = self.look(|other| {
                    let place = *other.place();
                    other.places.push(Place { state, ..place });
                })?;
                let found = found.filter(|found| found.3 == URL_PATH);
                if let Some(found) = found {
                    self.extend(found);
                }
                found.is_some()
            }
        })
    }

    fn call(&mut self, special: Special) {
        let start = self.start;
        let text = self.text;
        let place = self.place();
        match special {
            Special::None => {}
            Special::Hyphen => place.at -= place.bytes,
            Special::Version => {
                place.at -= place.bytes;
                (place.bytes, place.chars) = (0, 0);
            }
            Special::Url => {
                place.at -= place.bytes;
                self.wanted = true;
            }
            Special::Tags => {
                let chars = place.chars;
                let begins = |tag: &str| {
                    let own = text.as_bytes().get(start..start + tag.len());
                    chars == tag.len()
                        && own.is_some_and(|own| own.eq_ignore_ascii_case(tag.as_bytes()))
                };
                if begins("</script") || begins("</style") {
                    self.ignore = false;
                } else if begins("<script") || begins("<style") {
                    self.ignore = true;
                }
            }
        }
    }

    /// Goes on to the end of a token; whether there is one.
    fn run(&mut self) -> Result<bool> {
        let machine = machine();
        self.start = self.place().at;
        if self.start >= self.text.len() {
            return Ok(false);
        }
        self.place().pushed = None;
        loop {
            self.steps += 1;
            if self.steps >= WORK {
                coro::work(4 * std::mem::take(&mut self.steps))?;
            }
            let at = self.place().at;
            self.place().len = self.char_at(at).map_or(0, char::len_utf8);
            let place = self.place();
            let mut number = match place.pushed.take() {
                Some(pushed) => pushed + 1,
                None => machine.states[usize::from(place.state)],
            };
            while !self.holds(machine.rows[number].test)? {
                number += 1;
            }
            let row = machine.rows[number];
            self.call(row.special);
            let ends = matches!(
                row.action,
                Action::Token | Action::TokenDrop | Action::TokenAll
            );
            if ends {
                let place = self.place();
                let (bytes, chars) = (place.bytes, place.chars);
                (place.bytes, place.chars) = (0, 0);
                self.found = (bytes, chars, row.kind);
            }
            match row.action {
                Action::Pop => {
                    self.places.pop();
                }
                Action::Push => {
                    let place = self.place();
                    place.pushed = Some(number);
                    let place = Place {
                        pushed: None,
                        ..*place
                    };
                    if self.places.len() >= PLACES_UNCOUNTED {
                        self.held.grow(size_of::<Place>())?;
                    }
                    self.places.push(place);
                }
                Action::Drop | Action::TokenDrop => {
                    if let Some(before) = self.places.len().checked_sub(2) {
                        self.places.swap_remove(before);
                    }
                }
                Action::Join => {
                    if let Some(inner) = self.places.pop() {
                        let place = self.place();
                        (place.at, place.len) = (inner.at, inner.len);
                        (place.bytes, place.chars) = (inner.bytes, inner.chars);
                    }
                }
                Action::Go | Action::Again | Action::Token | Action::TokenAll => {}
            }
            if let Some(next) = row.next {
                self.place().state = next;
            }
            if ends {
                // What was remembered for this token nobody goes back to.
                let last = *self.place();
                self.places.clear();
                self.places.push(last);
                return Ok(true);
            }
            let len = self.text.len();
            let place = self.place();
            if place.at >= len && row.action != Action::Again {
                // A pop at the end goes on with other guesses about what was taken.
                return Ok(false);
            }
            if matches!(row.action, Action::Again | Action::Pop) {
                continue;
            }
            if place.len > 0 {
                place.at += place.len;
                place.bytes += place.len;
                place.chars += 1;
            }
        }
    }

    /// The next token; none at the end.
    ///
    /// # Errors
    /// The pending interrupt; 53200.
    pub fn next_token(&mut self) -> Result<Option<Token<'a>>> {
        if !self.run()? {
            return Ok(None);
        }
        let (bytes, _, kind) = self.found;
        let text = &self.text[self.start..self.start + bytes];
        Ok(Some(Token { kind, text }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let mut parser = Parser::new(text);
        let mut out = Vec::new();
        while let Some(token) = parser.next_token().unwrap() {
            let alias = TOKEN_TYPES[usize::from(token.kind) - 1].0;
            out.push(format!("{alias} {}", token.text));
        }
        out.join("; ")
    }

    #[test]
    fn tokens_are_postgresqls() {
        for (text, wanted) in [
            ("", ""),
            ("the fat", "asciiword the; blank  ; asciiword fat"),
            (
                "up-to-date",
                "asciihword up-to-date; hword_asciipart up; blank -; hword_asciipart to; blank -; \
                 hword_asciipart date",
            ),
            ("a@b.com", "email a@b.com"),
            (
                "http://ex.com/a?b=1 x",
                "protocol http://; url ex.com/a?b=1; host ex.com; url_path /a?b=1; blank  ; asciiword x",
            ),
            ("-1.5e7 +3 1.2.3", "sfloat -1.5e7; blank  ; int +3; blank  ; version 1.2.3"),
            ("<b>x</b>", "tag <b>; asciiword x; tag </b>"),
            ("/usr/lib a1 grün &amp;", "file /usr/lib; blank  ; numword a1; blank  ; word grün; blank  ; entity &amp;"),
        ] {
            assert_eq!(shown(text), wanted, "{text}");
        }
    }
}
