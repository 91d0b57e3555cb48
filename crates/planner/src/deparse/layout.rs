//! PostgreSQL's layout of a query: where its clauses begin lines, and how far these are indented.
//!
//! ```text
//!  SELECT t.a,                          the level of a query is 8 more than that around it;
//!     ( SELECT max(u.b) AS max          keywords stand 8 before it, so that what follows them is
//!            FROM u) AS m               at the level
//!    FROM t;
//! ```
//! A query inside an expression does not know how far that is indented when it is written. So lines
//! begin with a mark that says their level and how many spaces are added; [`shifted`] moves a text to
//! where it stands, and [`spaced`] makes spaces of all marks in the end.

use std::fmt::Write;

/// How far a query stands from that around it, and its keywords from its level.
pub(crate) const STEP: i32 = 8;
/// Columns and items of FROM behind the first one.
pub(crate) const ITEM: i32 = 4;
/// JOIN.
pub(crate) const JOIN: i32 = 4;
/// Levels above this are halved and begin again at the margin.
const LEVEL_MAX: i32 = 40;

// Not the marks that stand for types without a name.
const BEGIN: char = '\u{1c}';
const END: char = '\u{1d}';

/// A text that is being laid out.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    pub(crate) out: String,
    pub(crate) level: i32,
}

impl Layout {
    /// A keyword that begins a line.
    pub(crate) fn keyword(&mut self, words: &str, before: i32, after: i32, plus: i32) {
        self.level += before;
        self.trim();
        let level = self.level.max(0);
        let _ = write!(self.out, "\n{}{words}", mark(level, plus));
        self.level = (self.level + after).max(0);
    }

    /// A clause of a query.
    pub(crate) fn clause(&mut self, words: &str, plus: i32) {
        self.keyword(words, -STEP, STEP, plus);
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// An item of a list: on a line of its own, unless it begins one.
    pub(crate) fn item(&mut self, text: &str, is_first: bool) {
        if text.starts_with('\n') {
            self.trim();
        } else if !is_first {
            self.clause("", ITEM);
        }
        self.out.push_str(text);
    }

    fn trim(&mut self) {
        let kept = self.out.trim_end_matches(' ').len();
        self.out.truncate(kept);
    }
}

/// What stands for the indentation of a line.
pub(crate) fn mark(level: i32, plus: i32) -> String {
    format!("{BEGIN}{level},{plus}{END}")
}

/// A text some levels further in.
pub(crate) fn shifted(text: &str, by: i32) -> String {
    replaced(text, |level, plus| mark(level + by, plus))
}

/// A text with spaces in the places of marks.
pub(crate) fn spaced(text: &str) -> String {
    replaced(text, |level, plus| {
        let level = match level < LEVEL_MAX {
            true => level.max(0),
            false => (LEVEL_MAX + (level - LEVEL_MAX) / (STEP / 2)) % LEVEL_MAX,
        };
        " ".repeat(usize::try_from(level + plus).unwrap_or(0))
    })
}

/// A text on one line: where a line would begin stands a space, unless one is there.
pub(crate) fn flattened(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut parts = text.split('\n');
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let marked = part
            .strip_prefix(BEGIN)
            .and_then(|rest| rest.split_once(END));
        let Some((_, words)) = marked else {
            // A line that begins inside of a literal.
            out.push('\n');
            out.push_str(part);
            continue;
        };
        let is_apart = out.is_empty() || out.ends_with([' ', '(']) || words.starts_with([' ', ')']);
        if !is_apart {
            out.push(' ');
        }
        out.push_str(words);
    }
    out
}

fn replaced(text: &str, with: impl Fn(i32, i32) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, marked)) = rest.split_once(BEGIN) {
        out.push_str(before);
        let Some((numbers, after)) = marked.split_once(END) else {
            rest = marked;
            continue;
        };
        let mut numbers = numbers.split(',').map(|number| number.parse().unwrap_or(0));
        let (level, plus) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        out.push_str(&with(level, plus));
        rest = after;
    }
    out.push_str(rest);
    out
}
