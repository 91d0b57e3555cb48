//! Regular expressions with PostgreSQL's meaning.
//!
//! PostgreSQL's are Henry Spencer's *advanced* regular expressions (PostgreSQL 15 manual, section
//! 9.7.3). What sets them apart from those of most languages is which match is taken: not the one
//! that a search with steps back meets first, but the leftmost, and of these the longest or the
//! shortest, as the expression as a whole prefers; and so on inside, part by part.
//!
//! ```
//! use functions::regex::{Flags, Regex};
//! let found = |pattern: &str, text: &str| {
//!     let regex = Regex::new(pattern, Flags::default()).unwrap();
//!     let found = regex.find(text, 0).unwrap();
//!     found.map(|found| text[found.whole.0..found.whole.1].to_owned())
//! };
//! // Not `fo`, although that is the first branch.
//! assert_eq!(found("fo|foo", "foobar").as_deref(), Some("foo"));
//! // The first quantifier decides for all that follow it in its branch.
//! assert_eq!(found("Y*?[0-9]{1,3}", "XY1234Z").as_deref(), Some("Y1"));
//! ```
//!
//! # From text to match
//! 1. `parse` reads the expression: what is written, without meaning lost.
//! 2. `alphabet` sorts characters by what the expression can tell apart.
//! 3. `tree` finds the parts whose shares of a match must be decided one by one.
//! 4. `program` makes states of a part, and `automaton` runs them over a text, all at once.
//! 5. `matcher` finds the whole match, and then what each pair of parentheses matched.
//!
//! # What it costs
//! An expression without back references takes time in the order of its length times the text's to
//! be found or not, and that times the text's length again to be taken apart at worst. One with back
//! references may take any time: whether it matches is a hard problem. All of it gives way to other
//! sessions and can be cancelled. Memory is bounded: states by `program::STATES_MAX`, tables by
//! `automaton::BYTES_MAX` for each part and `matcher::BYTES_MAX` for all; a condition on what stands
//! before a place takes a bit for each byte of the text.
//!
//! # What it leaves out
//! Basic expressions (option `b`): 0A000. Collating elements of several characters, which no locale
//! of PostgreSQL's has either.

mod alphabet;
mod automaton;
mod bracket;
mod matcher;
mod parse;
mod program;
mod set;
mod syntax;
mod tree;

use std::cell::RefCell;

use base::error::{Error, Result, SqlState};

pub use matcher::Span;
pub(crate) use set::{lower, Class};

use alphabet::Alphabet;
use matcher::{Matcher, Workshop};
use parse::Refusal;
use syntax::Syntax;
use tree::Tree;

/// How an expression is read, and what newlines mean to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flags {
    /// Advanced syntax, rather than extended.
    pub advanced: bool,
    /// Basic syntax.
    pub basic: bool,
    /// The text is meant literally.
    pub literal: bool,
    /// Small letters and capitals are the same.
    pub fold: bool,
    /// White space and comments mean nothing.
    pub expanded: bool,
    /// `.` and sets of what is not in brackets stop at a newline.
    pub stop_newline: bool,
    /// `^` and `$` stand for lines.
    pub anchor_newline: bool,
}

impl Default for Flags {
    fn default() -> Flags {
        Flags {
            advanced: true,
            basic: false,
            literal: false,
            fold: false,
            expanded: false,
            stop_newline: false,
            anchor_newline: false,
        }
    }
}

impl Flags {
    /// Sets what an option's letter says; whether there is such an option.
    pub fn set(&mut self, letter: char) -> bool {
        match letter {
            'b' => (self.advanced, self.basic, self.literal) = (false, true, false),
            'c' => self.fold = false,
            'e' => (self.advanced, self.basic, self.literal) = (false, false, false),
            'i' => self.fold = true,
            'm' | 'n' => (self.stop_newline, self.anchor_newline) = (true, true),
            'p' => (self.stop_newline, self.anchor_newline) = (true, false),
            'q' => self.literal = true,
            's' => (self.stop_newline, self.anchor_newline) = (false, false),
            't' => self.expanded = false,
            'w' => (self.stop_newline, self.anchor_newline) = (false, true),
            'x' => self.expanded = true,
            _ => return false,
        }
        true
    }
}

/// A match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The whole of it.
    pub whole: Span,
    /// What each pair of parentheses matched.
    pub groups: Vec<Option<Span>>,
}

/// An expression that is ready to match.
#[derive(Debug)]
pub struct Regex {
    syntax: Syntax,
    alphabet: Alphabet,
    tree: Tree,
    /// What was found out about it; not there while it is at work.
    shop: RefCell<Option<Workshop>>,
}

/// 2201B, or 0A000.
fn refused(why: Refusal) -> Error {
    if why == parse::BASIC {
        return Error::unsupported(why);
    }
    Error::new(
        SqlState::of("2201B"),
        format!("invalid regular expression: {why}"),
    )
}

impl Regex {
    /// Reads an expression.
    ///
    /// # Errors
    /// 2201B with PostgreSQL's words; 0A000 for a basic expression.
    pub fn new(pattern: &str, flags: Flags) -> Result<Regex> {
        let syntax = parse::parse(pattern, flags).map_err(refused)?;
        let alphabet = Alphabet::of(&syntax.sets).map_err(refused)?;
        let tree = Tree::of(&syntax).map_err(refused)?;
        let whole = tree::Piece::Branches(syntax.branches.clone());
        // Half of the states are left for its parts.
        program::compile(&syntax, &whole, true, program::STATES_MAX / 4).map_err(refused)?;
        Ok(Regex {
            syntax,
            alphabet,
            tree,
            shop: RefCell::default(),
        })
    }

    /// How many pairs of parentheses capture.
    pub fn group_count(&self) -> usize {
        self.syntax.captures.len()
    }

    /// Whether a text has a match.
    ///
    /// # Errors
    /// As [`Regex::find`].
    pub fn is_match(&self, text: &str) -> Result<bool> {
        self.at_work(text, |matcher| matcher.is_match())
    }

    /// The first match that begins at a place or behind it.
    ///
    /// # Errors
    /// 2201B if the expression is too complex; the pending interrupt.
    pub fn find(&self, text: &str, from: usize) -> Result<Option<Found>> {
        self.at_work(text, |matcher| next(matcher, from))
    }

    /// Shows `f` the matches that do not overlap, from a place on, until it is told to stop. After an
    /// empty match the next begins one character further on.
    ///
    /// # Errors
    /// As [`Regex::find`], and those of `f`.
    pub fn each(
        &self,
        text: &str,
        from: usize,
        f: &mut dyn FnMut(Found) -> Result<bool>,
    ) -> Result<()> {
        self.at_work(text, |matcher| {
            let mut from = from;
            while from <= text.len() {
                let Some(found) = next(matcher, from)? else {
                    return Ok(());
                };
                let (begin, end) = found.whole;
                if !f(found)? {
                    return Ok(());
                }
                let one = text[end..].chars().next().map_or(1, char::len_utf8);
                from = if begin == end { end + one } else { end };
            }
            Ok(())
        })
    }

    fn at_work<T>(&self, text: &str, f: impl FnOnce(&mut Matcher<'_>) -> Result<T>) -> Result<T> {
        let shop = self.shop.borrow_mut().take().unwrap_or_default();
        let mut matcher = Matcher::new(self, text, shop);
        let done = f(&mut matcher);
        let mut shop = matcher.into_workshop();
        shop.tidy();
        *self.shop.borrow_mut() = Some(shop);
        done
    }
}

fn next(matcher: &mut Matcher<'_>, from: usize) -> Result<Option<Found>> {
    let found = matcher.find(from)?;
    Ok(found.map(|whole| Found {
        whole,
        groups: matcher.captures().to_vec(),
    }))
}
