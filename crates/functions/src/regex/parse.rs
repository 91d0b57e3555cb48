//! From the text of an expression to what it says.
//!
//! Advanced expressions, extended ones, and literal strings (PostgreSQL 15 manual, section 9.7.3).
//! A quantifier follows an atom, and never another quantifier or a condition; numbers of parentheses
//! are given in the order in which they open, and none inside a condition on what stands around.

use std::rc::Rc;

use base::coro;

use super::bracket::{bracket, word_bracket};
use super::set::{CharSet, Class};
use super::syntax::{Assert, Atom, Branches, Item, Look, Prefer, Syntax, UNBOUNDED};
use super::Flags;

/// Parentheses may be nested this deep; deeper is too complex.
const DEPTH_MAX: usize = 200;

/// A repetition counts at most so far.
const COUNT_MAX: u32 = 255;

/// Why an expression is refused; the words are PostgreSQL's.
pub type Refusal = &'static str;

pub const BAD_ESCAPE: Refusal = "invalid escape \\ sequence";
pub const BAD_BACK: Refusal = "invalid backreference number";
pub const BAD_BRACKETS: Refusal = "brackets [] not balanced";
pub const BAD_PARENTHESES: Refusal = "parentheses () not balanced";
pub const BAD_BRACES: Refusal = "braces {} not balanced";
pub const BAD_COUNT: Refusal = "invalid repetition count(s)";
pub const BAD_RANGE: Refusal = "invalid character range";
pub const BAD_CLASS: Refusal = "invalid character class";
pub const BAD_ELEMENT: Refusal = "invalid collating element";
pub const BAD_QUANTIFIER: Refusal = "quantifier operand invalid";
pub const BAD_OPTION: Refusal = "invalid embedded option";
pub const BAD_VERSION: Refusal = "invalid regexp (reg version 0.8)";
/// Not PostgreSQL's words: what is not supported.
pub const BASIC: Refusal = "a basic regular expression";
pub const TOO_COMPLEX: Refusal = "regular expression is too complex";

/// The characters that are left, and what is known so far.
pub struct Parser {
    text: Vec<char>,
    at: usize,
    pub flags: Flags,
    sets: Vec<CharSet>,
    looks: Vec<Look>,
    /// What parentheses hold, once they are closed.
    captures: Vec<Option<Branches>>,
    depth: usize,
    /// How many conditions on what stands around are open.
    looking: usize,
}

/// What `\` and what follows it mean.
pub enum Escape {
    /// A character.
    Char(char),
    /// A class, or what is not in it.
    Class(Class, bool),
    /// A condition.
    Assert(Assert),
    /// What parentheses have matched.
    Back(usize),
}

/// Reads an expression.
pub fn parse(text: &str, flags: Flags) -> Result<Syntax, Refusal> {
    let mut parser = Parser {
        text: text.chars().collect(),
        at: 0,
        flags,
        sets: vec![CharSet::all()],
        looks: Vec::new(),
        captures: Vec::new(),
        depth: 0,
        looking: 0,
    };
    parser.prefixes()?;
    if parser.flags.basic && !parser.flags.literal {
        return Err(BASIC);
    }
    let branches = match parser.flags.literal {
        true => parser.literal(),
        false => parser.branches(false)?,
    };
    if parser.flags.fold {
        parser.sets.iter_mut().for_each(CharSet::fold);
    }
    let none: Branches = Rc::from([]);
    let captures = parser.captures.into_iter();
    Ok(Syntax {
        branches,
        sets: parser.sets,
        looks: parser.looks,
        captures: captures.map(|held| held.unwrap_or(none.clone())).collect(),
        fold: parser.flags.fold,
    })
}

impl Parser {
    pub fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    pub fn peek_at(&self, ahead: usize) -> Option<char> {
        self.text.get(self.at + ahead).copied()
    }

    pub fn next(&mut self) -> Option<char> {
        let c = self.peek();
        self.at += usize::from(c.is_some());
        c
    }

    pub fn eat(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    /// Whether these characters come next; they are taken then.
    pub fn eat_all(&mut self, wanted: &str) -> bool {
        let found = wanted
            .chars()
            .enumerate()
            .all(|(ahead, c)| self.peek_at(ahead) == Some(c));
        self.at += if found { wanted.chars().count() } else { 0 };
        found
    }

    /// `***…`, and options in front.
    fn prefixes(&mut self) -> Result<(), Refusal> {
        if self.flags.literal {
            return Ok(());
        }
        if self.text.len() > 3 && self.eat_all("***") {
            match self.next() {
                Some('=') => {
                    self.flags.literal = true;
                    return Ok(());
                }
                Some(':') => self.flags.advanced = true,
                Some('?') => return Err(BAD_VERSION),
                _ => return Err(BAD_QUANTIFIER),
            }
        }
        let is_option = self.peek_at(2).is_some_and(|c| c.is_ascii_alphabetic());
        if !self.flags.advanced || !is_option || !self.eat_all("(?") {
            return Ok(());
        }
        while let Some(letter) = self.peek().filter(char::is_ascii_alphabetic) {
            self.at += 1;
            // To end a statement's matches at all places is no option of an expression.
            if letter == 'g' || !self.flags.set(letter) {
                return Err(BAD_OPTION);
            }
        }
        match self.eat(')') {
            true => Ok(()),
            false => Err(BAD_OPTION),
        }
    }

    fn literal(&mut self) -> Branches {
        let rest = self.text.split_off(self.at);
        let items: Vec<Item> = rest
            .into_iter()
            .map(|c| self.item_of(CharSet::one(c)))
            .collect();
        Rc::from([Rc::from(items)])
    }

    fn item_of(&mut self, set: CharSet) -> Item {
        let atom = Atom::Set(self.number(set));
        Item {
            atom,
            min: 1,
            max: 1,
            prefer: Prefer::Neither,
        }
    }

    fn number(&mut self, set: CharSet) -> usize {
        // The same set often stands many times in a row.
        let known = self
            .sets
            .iter()
            .rev()
            .take(8)
            .position(|known| *known == set);
        match known {
            Some(back) => self.sets.len() - 1 - back,
            None => {
                self.sets.push(set);
                self.sets.len() - 1
            }
        }
    }

    /// Passes over what means nothing: comments, and in expanded syntax white space.
    fn skip(&mut self) {
        loop {
            let before = self.at;
            if self.flags.expanded {
                while self
                    .peek()
                    .is_some_and(|c| Class::Space.set().contains(c as u32))
                {
                    self.at += 1;
                }
                if self.peek() == Some('#') {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.at += 1;
                    }
                }
            }
            if self.flags.advanced && self.eat_all("(?#") {
                while self.peek().is_some_and(|c| c != ')') {
                    self.at += 1;
                }
                self.eat(')');
            }
            if self.at == before {
                return;
            }
        }
    }

    /// Branches up to the end, or to a closing parenthesis.
    fn branches(&mut self, inside: bool) -> Result<Branches, Refusal> {
        if self.depth >= DEPTH_MAX || coro::check_depth().is_err() {
            return Err(TOO_COMPLEX);
        }
        self.depth += 1;
        let mut branches: Vec<Rc<[Item]>> = Vec::new();
        loop {
            let branch = self.branch(inside)?;
            branches.push(Rc::from(branch));
            if !self.eat('|') {
                break;
            }
        }
        self.depth -= 1;
        match (inside, self.peek()) {
            (false, None) => {}
            (true, Some(')')) => self.at += 1,
            _ => return Err(BAD_PARENTHESES),
        }
        Ok(Rc::from(branches))
    }

    fn branch(&mut self, inside: bool) -> Result<Vec<Item>, Refusal> {
        let mut items = Vec::new();
        loop {
            self.skip();
            let Some(c) = self.peek() else {
                return Ok(items);
            };
            if c == '|' || (c == ')' && inside) {
                return Ok(items);
            }
            let atom = self.atom(c)?;
            if matches!(atom, Atom::Assert(_) | Atom::Look(_)) {
                items.push(Item {
                    atom,
                    min: 1,
                    max: 1,
                    prefer: Prefer::Neither,
                });
                continue;
            }
            self.skip();
            let (min, max, prefer) = self.quantifier()?;
            items.push(Item {
                atom,
                min,
                max,
                prefer,
            });
        }
    }

    fn atom(&mut self, c: char) -> Result<Atom, Refusal> {
        let advanced = self.flags.advanced;
        let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
        match c {
            '*' | '+' | '?' => return Err(BAD_QUANTIFIER),
            '{' if is_digit(self.peek_at(1)) => return Err(BAD_QUANTIFIER),
            ')' if advanced => return Err(BAD_PARENTHESES),
            _ => {}
        }
        self.at += 1;
        let assert = match c {
            '(' => return self.parentheses(),
            '.' => {
                let mut set = CharSet::all();
                if self.flags.stop_newline {
                    set = set.without('\n');
                }
                return Ok(Atom::Set(self.number(set)));
            }
            '[' => match word_bracket(self) {
                Some(assert) => assert,
                None => {
                    let set = bracket(self)?;
                    return Ok(Atom::Set(self.number(set)));
                }
            },
            '^' if self.flags.anchor_newline => Assert::LineStart,
            '^' => Assert::TextStart,
            '$' if self.flags.anchor_newline => Assert::LineEnd,
            '$' => Assert::TextEnd,
            '\\' => return self.escaped_atom(),
            c => return Ok(Atom::Set(self.number(CharSet::one(c)))),
        };
        Ok(Atom::Assert(assert))
    }

    fn escaped_atom(&mut self) -> Result<Atom, Refusal> {
        let set = match self.escape()? {
            Escape::Char(c) => CharSet::one(c),
            Escape::Class(class, false) => class.set().clone(),
            Escape::Class(class, true) => {
                let mut set = class.set().clone();
                if self.flags.fold {
                    set.fold();
                }
                set.complement()
            }
            Escape::Assert(assert) => return Ok(Atom::Assert(assert)),
            Escape::Back(number) => {
                let closed = self.captures.get(number.wrapping_sub(1));
                return match closed {
                    Some(Some(_)) if self.looking == 0 => Ok(Atom::Back(number)),
                    _ => Err(BAD_BACK),
                };
            }
        };
        Ok(Atom::Set(self.number(set)))
    }

    /// What stands in parentheses, of which the first is taken.
    fn parentheses(&mut self) -> Result<Atom, Refusal> {
        if self.flags.advanced && self.eat('?') {
            let (behind, negative) = match self.next() {
                Some(':') => return self.branches(true).map(Atom::Group),
                Some('=') => (false, false),
                Some('!') => (false, true),
                Some('<') => match self.next() {
                    Some('=') => (true, false),
                    Some('!') => (true, true),
                    _ => return Err(BAD_QUANTIFIER),
                },
                _ => return Err(BAD_QUANTIFIER),
            };
            self.looking += 1;
            let what = self.branches(true)?;
            self.looking -= 1;
            self.looks.push(Look {
                behind,
                negative,
                what,
            });
            return Ok(Atom::Look(self.looks.len() - 1));
        }
        if self.looking > 0 {
            return self.branches(true).map(Atom::Group);
        }
        self.captures.push(None);
        let number = self.captures.len();
        let held = self.branches(true)?;
        self.captures[number - 1] = Some(held.clone());
        Ok(Atom::Capture(number, held))
    }

    /// How often the atom before comes.
    fn quantifier(&mut self) -> Result<(u16, u16, Prefer), Refusal> {
        let (min, max) = match self.peek() {
            Some('*') => (0, UNBOUNDED),
            Some('+') => (1, UNBOUNDED),
            Some('?') => (0, 1),
            Some('{') if self.peek_at(1).is_some_and(|c| c.is_ascii_digit()) => {
                return self.bound();
            }
            _ => return Ok((1, 1, Prefer::Neither)),
        };
        self.at += 1;
        Ok((min, max, self.preference()))
    }

    fn preference(&mut self) -> Prefer {
        match self.flags.advanced && self.eat('?') {
            true => Prefer::Shorter,
            false => Prefer::Longer,
        }
    }

    /// `{m}`, `{m,}` or `{m,n}`.
    fn bound(&mut self) -> Result<(u16, u16, Prefer), Refusal> {
        self.at += 1;
        let min = self.count()?;
        let comma = self.eat(',');
        let max = match comma {
            false => min,
            true if self.peek().is_some_and(|c| c.is_ascii_digit()) => self.count()?,
            true => UNBOUNDED,
        };
        match self.next() {
            Some('}') => {}
            None => return Err(BAD_BRACES),
            Some(_) => return Err(BAD_COUNT),
        }
        if min > max {
            return Err(BAD_COUNT);
        }
        let preference = self.preference();
        let prefer = if comma { preference } else { Prefer::Neither };
        Ok((min, max, prefer))
    }

    fn count(&mut self) -> Result<u16, Refusal> {
        let mut value = 0;
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
            self.at += 1;
            value = value * 10 + digit;
            if value > COUNT_MAX {
                return Err(BAD_COUNT);
            }
        }
        u16::try_from(value).map_err(|_| BAD_COUNT)
    }

    /// What follows `\`.
    pub fn escape(&mut self) -> Result<Escape, Refusal> {
        let c = self.next().ok_or(BAD_ESCAPE)?;
        if !self.flags.advanced || !c.is_alphanumeric() {
            return Ok(Escape::Char(c));
        }
        Ok(match c {
            'a' => Escape::Char('\u{7}'),
            'A' => Escape::Assert(Assert::TextStart),
            'b' => Escape::Char('\u{8}'),
            'B' => Escape::Char('\\'),
            'c' => {
                let c = self.next().ok_or(BAD_ESCAPE)?;
                Escape::Char(char::from((c as u32 & 0o37) as u8))
            }
            'd' => Escape::Class(Class::Digit, false),
            'D' => Escape::Class(Class::Digit, true),
            'e' => Escape::Char('\u{1b}'),
            'f' => Escape::Char('\u{c}'),
            'm' => Escape::Assert(Assert::WordStart),
            'M' => Escape::Assert(Assert::WordEnd),
            'n' => Escape::Char('\n'),
            'r' => Escape::Char('\r'),
            's' => Escape::Class(Class::Space, false),
            'S' => Escape::Class(Class::Space, true),
            't' => Escape::Char('\t'),
            'u' => Escape::Char(self.digits(16, 4, 4)?),
            'U' => Escape::Char(self.digits(16, 8, 8)?),
            'v' => Escape::Char('\u{b}'),
            'w' => Escape::Class(Class::Word, false),
            'W' => Escape::Class(Class::Word, true),
            'x' => Escape::Char(self.digits(16, 1, 255)?),
            'y' => Escape::Assert(Assert::WordEdge),
            'Y' => Escape::Assert(Assert::NoWordEdge),
            'Z' => Escape::Assert(Assert::TextEnd),
            '0' => self.octal()?,
            '1'..='9' => self.back_or_octal()?,
            _ => return Err(BAD_ESCAPE),
        })
    }

    /// One digit is a back reference; more are if there are so many parentheses.
    fn back_or_octal(&mut self) -> Result<Escape, Refusal> {
        let first = self.at;
        self.at -= 1;
        let mut number = 0usize;
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
            self.at += 1;
            number = number.saturating_mul(10).saturating_add(digit as usize);
        }
        if self.at == first || number <= self.captures.len() {
            return Ok(Escape::Back(number));
        }
        self.at = first;
        self.octal()
    }

    fn octal(&mut self) -> Result<Escape, Refusal> {
        self.at -= 1;
        let (mut value, mut count) = (0, 0);
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(8)) {
            if count == 3 || value * 8 + digit > 0xff {
                break;
            }
            value = value * 8 + digit;
            count += 1;
            self.at += 1;
        }
        match (count, char::from_u32(value)) {
            (1.., Some(c)) => Ok(Escape::Char(c)),
            _ => Err(BAD_ESCAPE),
        }
    }

    fn digits(&mut self, radix: u32, least: usize, most: usize) -> Result<char, Refusal> {
        let (mut value, mut count) = (0u32, 0);
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(radix)) {
            if count == most {
                break;
            }
            value = value.saturating_mul(radix).saturating_add(digit);
            count += 1;
            self.at += 1;
        }
        match char::from_u32(value) {
            Some(c) if count >= least => Ok(c),
            _ => Err(BAD_ESCAPE),
        }
    }
}
