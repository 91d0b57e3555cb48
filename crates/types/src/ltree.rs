//! The types of extension `ltree`: paths of labels, and the two forms of patterns for them.
//!
//! | type | example | what is kept |
//! |---|---|---|
//! | `ltree` | `Top.Science.Astronomy` | the text; a point is less than all that labels are made of, so its order is that of the bytes |
//! | `lquery` | `Top.*{1,2}.!astro*@\|b` | the text as it is shown |
//! | `ltxtquery` | `Europe & !(Asia% \| x*)` | the text as it is shown |
//!
//! Patterns are parsed again by whoever uses them: they are short.
//!
//! Source: PostgreSQL 15 manual, section F.23.
//!
//! # What it leaves out
//! Patterns of more than [`PATTERN_BYTES_MAX`], and more than [`PARENTHESES_MAX`] in one another, where
//! PostgreSQL is bounded by its memory and its stack.

use base::coro;
use base::error::{Error, Result, SqlState};

use super::Datum;

/// The most levels of a path, and the most repetitions in a pattern.
pub const LEVELS_MAX: usize = 65_535;
/// The most characters of a label.
const LABEL_MAX: usize = 255;
/// The longest pattern: what it is parsed to is a multiple of it, and is not counted.
pub const PATTERN_BYTES_MAX: usize = 1 << 20;
/// So many parentheses may be open at once.
pub const PARENTHESES_MAX: usize = 10_000;
/// The most labels that a level of an `lquery` may be.
const WORDS_MAX: usize = 65_535;
/// The most bytes of a level, as PostgreSQL keeps it: a head, and for each label another, up to a
/// multiple of eight.
const LEVEL_BYTES_MAX: usize = 65_535;
const LEVEL_HEAD: usize = 16;
const WORD_HEAD: usize = 7;
/// The most bytes of the words of an `ltxtquery` before its last, with an end for each.
const WORDS_BYTES_MAX: usize = 65_535;
/// Characters that are looked at before giving way.
const CHARACTERS_AT_ONCE: usize = 16_384;
/// The most bytes of a word of an `ltxtquery`.
const WORD_MAX: usize = 255;
/// The most operators of an `ltxtquery` that wait for what follows, between two parentheses.
const WAITING_MAX: usize = 32;
/// What a character counts for, in the units of [`coro::work`].
const CHARACTER_WORK: usize = 4;

fn is_of_label(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

fn syntax(message: impl Into<String>) -> Error {
    Error::new(SqlState::SYNTAX_ERROR, message)
}

fn syntax_at(what: &str, position: usize) -> Error {
    syntax(format!("{what} syntax error at character {position}"))
}

fn unexpected_end(what: &str) -> Error {
    let detail = "Unexpected end of input.".to_owned();
    syntax(format!("{what} syntax error")).with_detail(detail)
}

fn check_label(length: usize, position: usize) -> Result<()> {
    match length <= LABEL_MAX {
        true => Ok(()),
        false => Err(
            Error::new(SqlState::of("42622"), "label string is too long").with_detail(format!(
                "Label length is {length}, must be at most {LABEL_MAX}, at character {position}."
            )),
        ),
    }
}

fn check_levels(what: &str, count: usize) -> Result<()> {
    match count <= LEVELS_MAX {
        true => Ok(()),
        false => Err(Error::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!("number of {what} ({count}) exceeds the maximum allowed ({LEVELS_MAX})"),
        )),
    }
}

fn too_large(message: impl Into<String>) -> Error {
    Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
}

fn check_pattern(what: &str, text: &str) -> Result<()> {
    coro::work(text.len().min(PATTERN_BYTES_MAX) * CHARACTER_WORK)?;
    match text.len() <= PATTERN_BYTES_MAX {
        true => Ok(()),
        false => Err(
            too_large(format!("{what} is too large")).with_detail(format!(
                "It has {} bytes, where {PATTERN_BYTES_MAX} are the most.",
                text.len()
            )),
        ),
    }
}

// ---- Paths ----

/// The labels of a path; an empty one has none.
pub fn labels(path: &str) -> impl Iterator<Item = &str> + Clone {
    path.split('.').filter(|label| !label.is_empty())
}

/// Reads a path.
///
/// # Errors
/// 42601, 42622, 54000.
pub fn input(text: &str) -> Result<Datum> {
    let mut points = 0;
    for some in text.as_bytes().chunks(CHARACTERS_AT_ONCE) {
        coro::work(some.len())?;
        points += some.iter().filter(|byte| **byte == b'.').count();
    }
    check_levels("ltree labels", points + 1)?;
    let (mut length, mut position) = (0, 0);
    for c in text.chars() {
        position += 1;
        if position % CHARACTERS_AT_ONCE == 0 {
            coro::work(CHARACTERS_AT_ONCE * CHARACTER_WORK)?;
        }
        match c {
            '.' if length > 0 => {
                check_label(length, position)?;
                length = 0;
            }
            c if is_of_label(c) => length += 1,
            _ => return Err(syntax_at("ltree", position)),
        }
    }
    check_label(length, position + 1)?;
    match length == 0 && position > 0 {
        true => Err(unexpected_end("ltree")),
        false => Ok(Datum::text(text)),
    }
}

// ---- Words of patterns ----

/// A label or a word of a pattern, and how labels are compared with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word {
    /// The text.
    pub text: String,
    /// `*`: the label may go on.
    pub prefix: bool,
    /// `@`: whatever the case.
    pub any_case: bool,
    /// `%`: its parts between underscores are each some part of the label.
    pub parts: bool,
}

impl Word {
    /// Notes a character behind the text; false for one that says nothing.
    fn flag(&mut self, c: char) -> bool {
        match c {
            '*' => self.prefix = true,
            '@' => self.any_case = true,
            '%' => self.parts = true,
            _ => return false,
        }
        true
    }

    fn has_flags(&self) -> bool {
        self.prefix || self.any_case || self.parts
    }

    fn write(&self, out: &mut String) {
        out.push_str(&self.text);
        let flags = [(self.parts, '%'), (self.any_case, '@'), (self.prefix, '*')];
        out.extend(flags.iter().filter(|flag| flag.0).map(|flag| flag.1));
    }

    /// Whether a label is as the word says.
    pub fn matches(&self, label: &str) -> bool {
        if !self.parts {
            return self.fits(&self.text, label);
        }
        fn parts(text: &str) -> impl Iterator<Item = &str> {
            text.split('_').filter(|part| !part.is_empty())
        }
        parts(&self.text).all(|own| parts(label).any(|part| self.fits(own, part)))
    }

    fn fits(&self, own: &str, label: &str) -> bool {
        let Some(start) = label.get(..own.len()) else {
            return false;
        };
        (label.len() == own.len() || self.prefix)
            && match self.any_case {
                true => start == own || start.to_lowercase() == own.to_lowercase(),
                false => start == own,
            }
    }
}

// ---- lquery ----

/// A level of an `lquery`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// The labels that it may be; none for `*`, which is any.
    pub words: Vec<Word>,
    /// Whether it must be none of them.
    pub not: bool,
    /// How often it comes at least.
    pub low: usize,
    /// How often at most.
    pub high: usize,
    counted: bool,
}

impl Level {
    /// Whether a label is as the level says.
    pub fn matches(&self, label: &str) -> bool {
        self.words.is_empty() || self.words.iter().any(|word| word.matches(label)) != self.not
    }

    fn write(&self, out: &mut String) {
        if self.not {
            out.push('!');
        }
        for (place, word) in self.words.iter().enumerate() {
            if place > 0 {
                out.push('|');
            }
            word.write(out);
        }
        let is_star = self.words.is_empty();
        if is_star {
            out.push('*');
        }
        let (low, high) = (self.low, self.high);
        let counts = match (low, high) {
            _ if !is_star && !self.counted => return,
            _ if low == high => format!("{{{low}}}"),
            (0, LEVELS_MAX) if is_star => return,
            (0, LEVELS_MAX) => "{,}".to_owned(),
            (0, _) => format!("{{,{high}}}"),
            (_, LEVELS_MAX) => format!("{{{low},}}"),
            _ => format!("{{{low},{high}}}"),
        };
        out.push_str(&counts);
    }
}

fn check_words(words: &[Word]) -> Result<()> {
    if words.len() > WORDS_MAX {
        let detail = format!("Number of variants exceeds the maximum allowed ({WORDS_MAX}).");
        return Err(too_large("lquery level has too many variants").with_detail(detail));
    }
    let sizes = words.iter();
    let sizes = sizes.map(|word| (WORD_HEAD + word.text.len()).next_multiple_of(8));
    match LEVEL_HEAD + sizes.sum::<usize>() <= LEVEL_BYTES_MAX {
        true => Ok(()),
        false => Err(too_large("lquery level is too large").with_detail(format!(
            "Total size of level exceeds the maximum allowed ({LEVEL_BYTES_MAX} bytes)."
        ))),
    }
}

struct Pattern<'t> {
    /// What is left, and the number of its first character, from one on.
    rest: &'t str,
    position: usize,
}

impl<'t> Pattern<'t> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn step(&mut self) {
        let mut rest = self.rest.chars();
        if rest.next().is_some() {
            (self.rest, self.position) = (rest.as_str(), self.position + 1);
        }
    }

    fn takes(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.step();
        }
        found
    }

    /// What an `lquery` must not have here: the character, or the end.
    fn wrong(&self) -> Error {
        match self.peek() {
            Some(_) => syntax_at("lquery", self.position),
            None => unexpected_end("lquery"),
        }
    }

    fn label(&mut self) -> &'t str {
        let end = self.rest.find(|c| !is_of_label(c));
        let (label, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.position += label.chars().count();
        self.rest = rest;
        label
    }

    /// A label with what stands behind it.
    fn word(&mut self) -> Result<Word> {
        let text = self.label();
        let end = self.position;
        let mut word = Word {
            text: text.to_owned(),
            ..Word::default()
        };
        while self.peek().is_some_and(|c| word.flag(c)) {
            self.step();
        }
        // After its flags a label does not go on, and nothing else follows.
        if !matches!(self.peek(), None | Some('.' | '|' | '{')) {
            return Err(syntax_at("lquery", self.position));
        }
        if text.is_empty() {
            let detail = "Empty labels are not allowed.".to_owned();
            return Err(syntax_at("lquery", end).with_detail(detail));
        }
        check_label(text.chars().count(), end)?;
        Ok(word)
    }

    /// A number of repetitions, and the place of its first digit.
    fn number(&mut self) -> Result<(usize, usize)> {
        let position = self.position;
        let mut number = 0_u64;
        if !self.peek().is_some_and(|c| c.is_ascii_digit()) {
            return Err(self.wrong());
        }
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
            number = (number * 10 + u64::from(digit)).min(i32::MAX as u64);
            self.step();
        }
        Ok((number as usize, position))
    }

    /// `{low,high}`, of which the brace has been taken.
    fn counts(&mut self, level: &mut Level) -> Result<()> {
        level.counted = true;
        (level.low, level.high) = (0, LEVELS_MAX);
        let refused = |state: SqlState, detail: String| {
            Err(Error::new(state, "lquery syntax error").with_detail(detail))
        };
        let too_many = |what: &str, (number, at): (usize, usize)| {
            let detail = format!(
                "{what} limit ({number}) exceeds the maximum allowed ({LEVELS_MAX}), at character {at}."
            );
            refused(SqlState::PROGRAM_LIMIT_EXCEEDED, detail)
        };
        if !self.takes(',') {
            let low = self.number()?;
            if low.0 > LEVELS_MAX {
                return too_many("Low", low);
            }
            level.low = low.0;
            if self.takes('}') {
                level.high = level.low;
                return Ok(());
            }
            if !self.takes(',') {
                return Err(self.wrong());
            }
        }
        if self.takes('}') {
            return Ok(());
        }
        let high = self.number()?;
        if high.0 > LEVELS_MAX {
            return too_many("High", high);
        }
        if level.low > high.0 {
            let detail = format!(
                "Low limit ({}) is greater than high limit ({}), at character {}.",
                level.low, high.0, high.1
            );
            return refused(SqlState::SYNTAX_ERROR, detail);
        }
        level.high = high.0;
        match self.takes('}') {
            true => Ok(()),
            false => Err(self.wrong()),
        }
    }

    fn level(&mut self) -> Result<Level> {
        let mut level = Level {
            low: 1,
            high: 1,
            ..Level::default()
        };
        if self.takes('*') {
            (level.low, level.high) = (0, LEVELS_MAX);
        } else {
            level.not = self.takes('!');
            if !level.not && !self.peek().is_some_and(is_of_label) {
                return Err(self.wrong());
            }
            level.words.push(self.word()?);
            while self.takes('|') {
                if !self.peek().is_some_and(is_of_label) {
                    return Err(self.wrong());
                }
                level.words.push(self.word()?);
            }
            check_words(&level.words)?;
        }
        if self.takes('{') {
            self.counts(&mut level)?;
        }
        Ok(level)
    }
}

/// The levels of an `lquery`.
///
/// # Errors
/// 42601, 42622, 54000.
pub fn levels(text: &str) -> Result<Vec<Level>> {
    check_pattern("lquery", text)?;
    check_levels("lquery levels", text.matches('.').count() + 1)?;
    let mut pattern = Pattern {
        rest: text,
        position: 1,
    };
    let mut levels = Vec::new();
    loop {
        levels.push(pattern.level()?);
        if pattern.rest.is_empty() {
            return Ok(levels);
        }
        if !pattern.takes('.') {
            return Err(pattern.wrong());
        }
    }
}

/// Reads an `lquery`.
///
/// # Errors
/// As [`levels`].
pub fn input_lquery(text: &str) -> Result<Datum> {
    let mut out = String::with_capacity(text.len());
    for (place, level) in levels(text)?.iter().enumerate() {
        if place > 0 {
            out.push('.');
        }
        level.write(&mut out);
    }
    Ok(Datum::text(out))
}

// ---- ltxtquery ----

/// A part of an `ltxtquery`, in the order in which it is computed: operators stand behind what they
/// are of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Term {
    /// Some label is as the word says.
    Word(Word),
    /// `!`.
    Not,
    /// `&`.
    And,
    /// `|`.
    Or,
}

/// What waits for the terms behind it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waiting {
    Not,
    And,
    Or,
    Parenthesis,
}

#[derive(Default)]
struct Terms {
    terms: Vec<Term>,
    waiting: Vec<Waiting>,
    /// How many wait since the last parenthesis.
    since: usize,
    /// The bytes of the words, with an end for each.
    bytes: usize,
}

impl Terms {
    fn wait(&mut self, operator: Waiting) -> Result<()> {
        if self.since == WAITING_MAX {
            return Err(Error::internal("stack too short"));
        }
        self.since += 1;
        self.waiting.push(operator);
        Ok(())
    }

    /// Gives those their turn that bind as tight as these.
    fn settle(&mut self, which: &[Waiting]) {
        while let Some(last) = self.waiting.last().filter(|last| which.contains(last)) {
            self.terms.push(match last {
                Waiting::Not => Term::Not,
                Waiting::And => Term::And,
                _ => Term::Or,
            });
            self.waiting.pop();
            self.since = self.since.saturating_sub(1);
        }
    }

    fn word(&mut self, pattern: &mut Pattern<'_>) -> Result<()> {
        let text = pattern.label();
        let mut word = Word {
            text: text.to_owned(),
            ..Word::default()
        };
        while pattern.peek().is_some_and(|c| word.flag(c)) {
            pattern.step();
        }
        if word.has_flags() && pattern.peek().is_some_and(is_of_label) {
            return Err(syntax("modifiers syntax error"));
        }
        let too_long = |what| Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, what));
        match text.len() {
            length if length > LEVELS_MAX => return too_long("word is too long"),
            length if length > WORD_MAX => return too_long("operand is too long"),
            _ if self.bytes > WORDS_BYTES_MAX => return too_long("value is too big"),
            length => self.bytes += length + 1,
        }
        self.terms.push(Term::Word(word));
        self.settle(&[Waiting::Not, Waiting::And]);
        Ok(())
    }
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

/// The terms of an `ltxtquery`.
///
/// # Errors
/// 42601, 22023; XX000 as PostgreSQL's for more operators in a row than it takes.
pub fn terms(text: &str) -> Result<Vec<Term>> {
    check_pattern("ltxtquery", text)?;
    let mut pattern = Pattern {
        rest: text,
        position: 1,
    };
    let mut all = Terms::default();
    let mut open: Vec<usize> = Vec::new();
    let mut wants_word = true;
    let wrong = || Err(syntax("syntax error"));
    loop {
        let next = pattern.peek();
        match (next, wants_word) {
            (Some(c), true) if is_of_label(c) => {
                all.word(&mut pattern)?;
                wants_word = false;
                continue;
            }
            (Some('!'), true) => all.wait(Waiting::Not)?,
            (Some('('), true) if open.len() == PARENTHESES_MAX => {
                return Err(Error::new(
                    SqlState::of("54001"),
                    "stack depth limit exceeded",
                ));
            }
            (Some('('), true) => {
                open.push(std::mem::take(&mut all.since));
                all.waiting.push(Waiting::Parenthesis);
            }
            (Some(c), _) if is_space(c) => {}
            (_, true) => return Err(syntax("operand syntax error")),
            (Some('&'), false) => {
                all.wait(Waiting::And)?;
                wants_word = true;
            }
            (Some('|'), false) => {
                all.settle(&[Waiting::Or]);
                all.wait(Waiting::Or)?;
                wants_word = true;
            }
            (Some(')'), false) => {
                all.settle(&[Waiting::Not, Waiting::And, Waiting::Or]);
                let Some(since) = open.pop() else {
                    return wrong();
                };
                all.waiting.pop();
                all.since = since;
                all.settle(&[Waiting::Not, Waiting::And]);
            }
            (None, false) if open.is_empty() => {
                all.settle(&[Waiting::Not, Waiting::And, Waiting::Or]);
                return Ok(all.terms);
            }
            _ => return wrong(),
        }
        pattern.step();
    }
}

/// Reads an `ltxtquery`.
///
/// # Errors
/// As [`terms`].
pub fn input_ltxtquery(text: &str) -> Result<Datum> {
    let terms = terms(text)?;
    // Where the first of the two operands of each `&` and `|` ends.
    let (mut starts, mut firsts) = (Vec::new(), vec![0; terms.len()]);
    for (place, term) in terms.iter().enumerate() {
        match term {
            Term::Word(_) => starts.push(place),
            Term::Not => {}
            Term::And | Term::Or => {
                firsts[place] = starts.pop().unwrap_or(0).saturating_sub(1);
            }
        }
    }
    enum Todo {
        Text(&'static str),
        /// A term, and whether it stands where `|` needs no parentheses.
        Term(usize, bool),
    }
    let mut out = String::with_capacity(text.len());
    let mut todo = vec![Todo::Term(terms.len().saturating_sub(1), true)];
    while let Some(next) = todo.pop() {
        coro::work(CHARACTER_WORK)?;
        let (place, first) = match next {
            Todo::Text(text) => {
                super::growth::check_room(out.len(), text.len())?;
                out.push_str(text);
                continue;
            }
            Todo::Term(place, first) => (place, first),
        };
        let below = place.saturating_sub(1);
        match &terms[place] {
            Term::Word(word) => word.write(&mut out),
            Term::Not if matches!(terms[below], Term::Word(_)) => {
                todo.extend([Todo::Term(below, false), Todo::Text("!")]);
            }
            Term::Not => {
                todo.extend([Todo::Text(" )"), Todo::Term(below, true), Todo::Text("!( ")])
            }
            operator => {
                let encloses = *operator == Term::Or && !first;
                let sign = if *operator == Term::Or { " | " } else { " & " };
                if encloses {
                    todo.push(Todo::Text(" )"));
                }
                todo.extend([
                    Todo::Term(below, false),
                    Todo::Text(sign),
                    Todo::Term(firsts[place], false),
                ]);
                if encloses {
                    todo.push(Todo::Text("( "));
                }
            }
        }
    }
    Ok(Datum::text(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_come_back() {
        for (text, wanted) in [
            ("a.*{0,}.b", "a.*.b"),
            ("!a|b@*%.c{1,1}", "!a|b%@*.c{1}"),
            ("*{0}.a{,}", "*{0}.a{,}"),
        ] {
            let read = input_lquery(text).unwrap();
            assert_eq!(read.as_str(), wanted);
            assert_eq!(input_lquery(wanted).unwrap(), read);
        }
        for (text, wanted) in [
            ("a|b&c|d", "( a | b & c ) | d"),
            ("!!a&(b|c)", "!( !a ) & ( b | c )"),
            ("!(!(a|b)) & c*@", "!( !( a | b ) ) & c@*"),
            ("a | (b | c)", "a | ( b | c )"),
        ] {
            let read = input_ltxtquery(text).unwrap();
            assert_eq!(read.as_str(), wanted);
            assert_eq!(input_ltxtquery(wanted).unwrap(), read);
        }
        let deep = format!("{}a{}", "(".repeat(10_000), ")".repeat(10_000));
        assert_eq!(input_ltxtquery(&deep).unwrap().as_str(), "a");
        let deep = format!("{}a{}", "!(".repeat(10_000), ")".repeat(10_000));
        assert!(input_ltxtquery(&deep).is_ok());
    }
}
