//! The templates of `to_char`, `to_date` and `to_timestamp` (manual, section 9.8), cut into what they
//! say.
//!
//! ```text
//! FMDD-Month "of" YYYY    Pattern(DD, without fill) Separator(-) Pattern(Month) Space
//!                         Text(o) Text(f) Space Pattern(YYYY)
//! ```
//! A pattern is taken in upper case or in lower case, and where its case says how a word is written,
//! capitalized as well; anything else stands for itself, as does what is quoted. A backslash makes a
//! quote stand for itself, and within quotes any character.

/// Patterns, longer ones before those that they begin with.
const PATTERNS: &[&str] = &[
    "A.D.", "B.C.", "A.M.", "P.M.", "a.d.", "b.c.", "a.m.", "p.m.", "MONTH", "Month", "month",
    "Y,YYY", "SSSSS", "SSSS", "IYYY", "YYYY", "HH24", "HH12", "IDDD", "DAY", "Day", "day", "MON",
    "Mon", "mon", "DDD", "IYY", "YYY", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6", "TZH", "TZM",
    "AD", "BC", "AM", "PM", "ad", "bc", "am", "pm", "CC", "DD", "DY", "Dy", "dy", "FX", "HH", "ID",
    "IW", "IY", "MI", "MM", "MS", "OF", "RM", "rm", "SS", "TZ", "tz", "US", "WW", "YY", "D", "I",
    "J", "Q", "W", "Y",
];

/// A part of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part<'t> {
    Pattern(Pattern<'t>),
    /// A character that stands for itself …
    Text(char),
    /// … that is white space …
    Space(char),
    /// … or neither that nor a letter or digit.
    Separator(char),
}

/// A pattern with what stands around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pattern<'t> {
    /// In upper case, unless its case says how a word is written.
    pub name: &'static str,
    /// As it stands in the template.
    pub written: &'t str,
    /// Not FM.
    pub fill: bool,
    /// TM: words are those of the locale, and never filled.
    pub localized: bool,
    /// TH (true) or th.
    pub ordinal: Option<bool>,
}

/// What may stand between the patterns of a template of jsonpath, unless it is quoted.
const STANDARD_SEPARATORS: [char; 8] = ['-', '.', '/', ',', '\'', ':', ';', ' '];

/// The parts of a template.
pub(super) fn parts(template: &str) -> Vec<Part<'_>> {
    cut(template).0
}

/// The parts of a template as the SQL standard has it, or what may not stand there.
pub(super) fn standard_parts(template: &str) -> Result<Vec<Part<'_>>, char> {
    let (parts, stray) = cut(template);
    stray.map_or(Ok(parts), Err)
}

/// The parts of a template, and the first character outside of quotes that the standard has not.
fn cut(template: &str) -> (Vec<Part<'_>>, Option<char>) {
    let mut found = Vec::new();
    let mut stray = None;
    let mut rest = template;
    while !rest.is_empty() {
        let fill = without(&mut rest, &["FM", "fm"]).is_none();
        let localized = fill && without(&mut rest, &["TM", "tm"]).is_some();
        if let Some((name, written)) = pattern(rest) {
            rest = &rest[written.len()..];
            let suffix = without(&mut rest, &["TH", "th", "SP"]);
            let ordinal = match suffix {
                Some("TH") => Some(true),
                Some("th") => Some(false),
                _ => None,
            };
            found.push(Part::Pattern(Pattern {
                name,
                written,
                fill,
                localized,
                ordinal,
            }));
            continue;
        }
        if let Some(quoted) = rest.strip_prefix('"') {
            rest = quote(quoted, &mut found);
            continue;
        }
        if rest.starts_with("\\\"") {
            rest = &rest[1..];
        }
        let mut characters = rest.chars();
        let next = rest.chars().next();
        stray = stray.or(next.filter(|c| !STANDARD_SEPARATORS.contains(c)));
        found.extend(characters.next().map(|c| match c {
            c if is_separator(c) => Part::Separator(c),
            c if is_space(c) => Part::Space(c),
            c => Part::Text(c),
        }));
        rest = characters.as_str();
    }
    (found, stray)
}

/// Takes what is quoted; returns what comes after it.
fn quote<'t>(quoted: &'t str, found: &mut Vec<Part<'t>>) -> &'t str {
    let mut characters = quoted.chars();
    while let Some(c) = characters.next() {
        match c {
            '"' => break,
            '\\' => found.push(Part::Text(characters.next().unwrap_or('\\'))),
            c => found.push(Part::Text(c)),
        }
    }
    characters.as_str()
}

/// Takes one of these words off the beginning.
fn without<'w>(rest: &mut &str, words: &[&'w str]) -> Option<&'w str> {
    let word = words.iter().find(|word| rest.starts_with(**word))?;
    *rest = &rest[word.len()..];
    Some(word)
}

/// The pattern with which a text begins, and how it is written there.
fn pattern(text: &str) -> Option<(&'static str, &str)> {
    PATTERNS.iter().find_map(|name| {
        let head = text.get(..name.len())?;
        let lower = || {
            head.bytes()
                .eq(name.bytes().map(|b| b.to_ascii_lowercase()))
        };
        (head == *name || has_no_case(name) && lower()).then_some((*name, head))
    })
}

/// Whether upper and lower case mean the same.
fn has_no_case(name: &str) -> bool {
    !matches!(
        name.to_ascii_uppercase().as_str(),
        "MONTH" | "MON" | "DAY" | "DY" | "AD" | "BC" | "AM" | "PM" | "TZ" | "RM"
    ) && !name.contains('.')
}

/// Whether a character of a template or a text only keeps others apart.
pub(super) fn is_separator(c: char) -> bool {
    c.is_ascii_punctuation()
}

/// Whether a character is white space.
pub(super) fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}
