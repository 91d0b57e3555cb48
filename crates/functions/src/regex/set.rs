//! Sets of characters, and the named classes.
//!
//! A set is a list of ranges, sorted and apart from one another. Classes are those of PostgreSQL in
//! the locale C.UTF-8: letters of all scripts are letters, digits are `0` to `9` alone.

use std::sync::OnceLock;

/// The largest character.
const LAST: u32 = char::MAX as u32;

/// Above this no character has a class that is not computed from its neighbours.
const CLASSED_END: u32 = 0x3_2400;

/// Characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CharSet {
    /// First and last of each range.
    ranges: Vec<(u32, u32)>,
}

impl CharSet {
    /// No character.
    pub fn empty() -> CharSet {
        CharSet::default()
    }

    /// Every character.
    pub fn all() -> CharSet {
        CharSet {
            ranges: vec![(0, LAST)],
        }
    }

    /// One character.
    pub fn one(c: char) -> CharSet {
        CharSet {
            ranges: vec![(c as u32, c as u32)],
        }
    }

    /// Adds the characters from `first` to `last`.
    pub fn add(&mut self, first: u32, last: u32) {
        self.ranges.push((first, last));
        self.tidy();
    }

    /// Adds the characters of another set.
    pub fn join(&mut self, other: &CharSet) {
        self.ranges.extend_from_slice(&other.ranges);
        self.tidy();
    }

    /// Adds both cases of every letter.
    pub fn fold(&mut self) {
        let cases = cases();
        let mut more = Vec::new();
        for (first, last) in &self.ranges {
            let from = cases.partition_point(|pair| pair.0 < *first);
            let pairs = cases[from..].iter().take_while(|pair| pair.0 <= *last);
            more.extend(pairs.map(|pair| (pair.1, pair.1)));
        }
        self.ranges.extend(more);
        self.tidy();
    }

    /// The characters that are not in it.
    pub fn complement(&self) -> CharSet {
        let mut ranges = Vec::new();
        let mut next = 0;
        for (first, last) in &self.ranges {
            if *first > next {
                ranges.push((next, first - 1));
            }
            next = last + 1;
        }
        if next <= LAST {
            ranges.push((next, LAST));
        }
        CharSet { ranges }
    }

    /// The same without one character.
    pub fn without(&self, c: char) -> CharSet {
        let mut outside = self.complement();
        outside.add(c as u32, c as u32);
        outside.complement()
    }

    /// Whether a character is in it.
    pub fn contains(&self, c: u32) -> bool {
        let after = self.ranges.partition_point(|range| range.0 <= c);
        after > 0 && c <= self.ranges[after - 1].1
    }

    /// The ranges.
    pub fn ranges(&self) -> &[(u32, u32)] {
        &self.ranges
    }

    fn tidy(&mut self) {
        self.ranges.sort_unstable();
        let mut tidy: Vec<(u32, u32)> = Vec::with_capacity(self.ranges.len());
        for (first, last) in self.ranges.drain(..) {
            match tidy.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => {
                    before.1 = before.1.max(last);
                }
                _ => tidy.push((first, last)),
            }
        }
        self.ranges = tidy;
    }
}

/// Characters with another case of one character, each with that; sorted.
fn cases() -> &'static [(u32, u32)] {
    static CASES: OnceLock<Vec<(u32, u32)>> = OnceLock::new();
    CASES.get_or_init(|| {
        let mut pairs = Vec::new();
        for c in (0..CLASSED_END).filter_map(char::from_u32) {
            let (lower, upper) = (lower(c), upper(c));
            for other in [lower, upper] {
                if other != c {
                    pairs.push((c as u32, other as u32));
                }
            }
        }
        pairs.sort_unstable();
        pairs
    })
}

fn single(mut cases: impl Iterator<Item = char>, same: char) -> char {
    match (cases.next(), cases.next()) {
        (Some(case), None) => case,
        _ => same,
    }
}

/// The small letter, where it is one character.
pub fn lower(c: char) -> char {
    single(c.to_lowercase(), c)
}

fn upper(c: char) -> char {
    single(c.to_uppercase(), c)
}

/// A named class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Class {
    Alnum,
    Alpha,
    Ascii,
    Blank,
    Cntrl,
    Digit,
    Graph,
    Lower,
    Print,
    Punct,
    Space,
    Upper,
    Xdigit,
    Word,
}

const CLASSES: [(&str, Class); 14] = [
    ("alnum", Class::Alnum),
    ("alpha", Class::Alpha),
    ("ascii", Class::Ascii),
    ("blank", Class::Blank),
    ("cntrl", Class::Cntrl),
    ("digit", Class::Digit),
    ("graph", Class::Graph),
    ("lower", Class::Lower),
    ("print", Class::Print),
    ("punct", Class::Punct),
    ("space", Class::Space),
    ("upper", Class::Upper),
    ("xdigit", Class::Xdigit),
    ("word", Class::Word),
];

impl Class {
    /// The class of a name.
    pub fn named(name: &str) -> Option<Class> {
        let found = CLASSES.iter().find(|known| known.0 == name);
        found.map(|known| known.1)
    }

    /// Its characters.
    pub fn set(self) -> &'static CharSet {
        static SETS: [OnceLock<CharSet>; CLASSES.len()] = [const { OnceLock::new() }; 14];
        let mut numbered = CLASSES.iter().zip(&SETS);
        let found = numbered.find(|(known, _)| known.1 == self);
        let (_, cell) = found.expect("every class has its place in the table");
        cell.get_or_init(|| {
            let mut ranges: Vec<(u32, u32)> = Vec::new();
            for c in 0..CLASSED_END {
                if !char::from_u32(c).is_some_and(|c| self.has(c)) {
                    continue;
                }
                match ranges.last_mut() {
                    Some(range) if range.1 + 1 == c => range.1 = c,
                    _ => ranges.push((c, c)),
                }
            }
            CharSet { ranges }
        })
    }

    fn has(self, c: char) -> bool {
        let alpha = |c: char| c.is_alphabetic() || (!c.is_ascii() && c.is_numeric());
        let space = |c: char| {
            c.is_whitespace() && !matches!(c, '\u{85}' | '\u{a0}' | '\u{2007}' | '\u{202f}')
        };
        let print = |c: char| match c.is_ascii() {
            true => (' '..='~').contains(&c),
            false => !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}'),
        };
        match self {
            Class::Alnum => alpha(c) || c.is_ascii_digit(),
            Class::Alpha => alpha(c),
            Class::Ascii => c.is_ascii(),
            Class::Blank => {
                c == '\t' || (space(c) && c > '\r' && !matches!(c, '\u{2028}' | '\u{2029}'))
            }
            Class::Cntrl => c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'),
            Class::Digit => c.is_ascii_digit(),
            Class::Graph => print(c) && !space(c),
            Class::Lower => c.is_lowercase(),
            Class::Print => print(c),
            Class::Punct => print(c) && !space(c) && !alpha(c) && !c.is_ascii_digit(),
            Class::Space => space(c),
            Class::Upper => c.is_uppercase(),
            Class::Xdigit => c.is_ascii_hexdigit(),
            Class::Word => alpha(c) || c.is_ascii_digit() || c == '_',
        }
    }
}
