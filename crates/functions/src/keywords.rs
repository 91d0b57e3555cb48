//! The words of the grammar: `pg_get_keywords()`, and which of them must be quoted to be names.

use std::sync::OnceLock;

use base::error::Result;

use super::sets::Records;
use super::{Call, Rows};
use types::{Datum, TypeId};

const LISTED: &str = include_str!("keywords.txt");

/// A word of the grammar.
#[derive(Clone, Copy, Debug)]
struct Keyword {
    word: &'static str,
    /// `U`, `C`, `T` or `R`.
    category: u8,
    /// Whether it may name a column without AS.
    is_label: bool,
}

/// All of them, sorted.
fn keywords() -> &'static [Keyword] {
    static READ: OnceLock<Vec<Keyword>> = OnceLock::new();
    READ.get_or_init(|| {
        let lines = LISTED.lines().filter(|line| !line.starts_with('#'));
        let keyword = |line: &'static str| {
            let mut fields = line.split(' ');
            let mut next = || fields.next().expect("a field of keywords.txt");
            Keyword {
                word: next(),
                category: next().as_bytes()[0],
                is_label: next() == "b",
            }
        };
        lines.map(keyword).collect()
    })
}

/// Whether a word must be quoted when it is meant as a name.
pub fn is_reserved(word: &str) -> bool {
    let all = keywords();
    let found = all.binary_search_by(|keyword| keyword.word.cmp(word));
    found.is_ok_and(|place| all[place].category != b'U')
}

pub(crate) static KEYWORDS: Records = Records {
    columns: &[
        ("word", TypeId::TEXT),
        ("catcode", TypeId::CHAR),
        ("barelabel", TypeId::BOOL),
        ("catdesc", TypeId::TEXT),
        ("baredesc", TypeId::TEXT),
    ],
    rows: listed,
};

/// `pg_get_keywords`.
fn listed(_: &Call<'_>, _: &[Datum]) -> Result<Rows> {
    let row = |keyword: &Keyword| {
        let category = match keyword.category {
            b'U' => "unreserved",
            b'C' => "unreserved (cannot be function or type name)",
            b'T' => "reserved (can be function or type name)",
            _ => "reserved",
        };
        let label = match keyword.is_label {
            true => "can be bare label",
            false => "requires AS",
        };
        Ok(KEYWORDS.row(vec![
            Datum::text(keyword.word),
            Datum::Char(keyword.category),
            Datum::Bool(keyword.is_label),
            Datum::text(category),
            Datum::text(label),
        ]))
    };
    Ok(Box::new(keywords().iter().map(row)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_sorted() {
        let all = keywords();
        assert!(all.windows(2).all(|two| two[0].word < two[1].word));
        assert!(is_reserved("select") && is_reserved("between") && is_reserved("left"));
        assert!(!is_reserved("abort") && !is_reserved("selected"));
    }
}
