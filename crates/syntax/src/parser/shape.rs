//! The shape of a statement: its text with the literals taken out.
//!
//! ```text
//! select  v from t -- why
//!  where k = 17 and s = 'it''s'
//! key:      select v from t where k = ⟨number⟩ and s = ⟨string⟩
//! literals: 17, 'it''s'
//! ```
//! Two texts with one key are parsed to the same tree, but for the values of their literals:
//! everything else of the text is in the key, only runs of white space and comments are one space
//! each. So a plan that was made for one serves the other as far as it does not rest on the values.
//!
//! # Invariants
//! - What is cut into tokens here is cut so by PostgreSQL's scanner, with
//!   `standard_conforming_strings` on; whatever is not quite sure has no shape.
//!
//! # What it leaves out
//! Texts of several statements, and all but SELECT, VALUES, WITH, INSERT, UPDATE and DELETE;
//! strings with a prefix (`E''`, `U&''`, `B''`, …), continued strings, dollar quotes, numbers other
//! than `12`, `1.5`, `.5` and `1e5`. They are parsed each time.

/// Longer texts have no shape: they are rarely seen twice, and parsing is not what they cost.
pub const SHAPE_BYTES_MAX: usize = 8 << 10;

/// Statements with more literals have no shape.
pub const SHAPE_LITERALS_MAX: usize = 256;

/// What a literal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiteralKind {
    /// Digits, perhaps with a point and an exponent.
    Number,
    /// Between plain quotes.
    String,
}

/// A literal of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Literal {
    /// What it is.
    pub kind: LiteralKind,
    /// Where it begins, in bytes.
    pub start: usize,
    /// Where it ends; quotes are within.
    pub end: usize,
}

impl Literal {
    /// As it is written, without quotes.
    pub fn text(self, of: &str) -> &str {
        match self.kind {
            LiteralKind::Number => &of[self.start..self.end],
            LiteralKind::String => &of[self.start + 1..self.end - 1],
        }
    }
}

/// The shape of a text; its memory is used again.
#[derive(Debug, Default)]
pub struct Shape {
    /// The text with its literals taken out.
    pub key: Vec<u8>,
    /// The literals, in order.
    pub literals: Vec<Literal>,
}

/// Stand for literals in a key. A text that holds such bytes has no shape.
const NUMBER: u8 = 1;
const STRING: u8 = 2;

/// The words that statements with a shape begin with.
const FIRST_WORDS: [&[u8]; 6] = [
    b"select", b"insert", b"update", b"delete", b"with", b"values",
];

impl Shape {
    /// Takes the literals out of a text; false when it has no shape.
    pub fn read(&mut self, text: &str) -> bool {
        self.key.clear();
        self.literals.clear();
        if text.len() > SHAPE_BYTES_MAX {
            return false;
        }
        let mut reader = Reader {
            text: text.as_bytes(),
            at: 0,
            shape: self,
        };
        reader.read().is_some()
    }
}

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
    shape: &'t mut Shape,
}

pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

pub(super) fn begins_word(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

pub(super) fn goes_on_word(byte: u8) -> bool {
    begins_word(byte) || byte.is_ascii_digit() || byte == b'$'
}

/// How long the rest of a line is, without its end.
pub(super) fn line_bytes(text: &[u8]) -> usize {
    let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
    text.iter().position(is_end).unwrap_or(text.len())
}

/// How long the comment between `/*` and `*/` is with which a text begins, and which may hold
/// others; none if it has no end.
pub(super) fn comment_bytes(text: &[u8]) -> Option<usize> {
    let (mut at, mut depth) = (0, 0);
    loop {
        match &text[at..] {
            [b'/', b'*', ..] => {
                depth += 1;
                at += 2;
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                at += 2;
            }
            [] => return None,
            _ => at += 1,
        }
        if depth == 0 {
            return Some(at);
        }
    }
}

impl Reader<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    /// Copies what lies between a place and here into the key.
    fn copy_from(&mut self, start: usize) {
        self.shape.key.extend_from_slice(&self.text[start..self.at]);
    }

    fn read(&mut self) -> Option<()> {
        self.space()?;
        self.shape.key.clear();
        let start = self.at;
        self.word();
        let first = &self.text[start..self.at];
        if !FIRST_WORDS
            .iter()
            .any(|word| word.eq_ignore_ascii_case(first))
        {
            return None;
        }
        self.copy_from(start);
        while self.at < self.text.len() {
            self.token()?;
        }
        if self.shape.key.last() == Some(&b' ') {
            self.shape.key.pop();
        }
        Some(())
    }

    /// Passes over white space and comments; one space of the key stands for all of it.
    fn space(&mut self) -> Option<()> {
        let start = self.at;
        loop {
            match (self.peek(0), self.peek(1)) {
                (byte, _) if is_space(byte) => self.at += 1,
                (b'-', b'-') => self.at += line_bytes(&self.text[self.at..]),
                (b'/', b'*') => self.comment()?,
                _ => break,
            }
        }
        if self.at > start {
            self.shape.key.push(b' ');
        }
        Some(())
    }

    fn comment(&mut self) -> Option<()> {
        self.at += comment_bytes(&self.text[self.at..])?;
        Some(())
    }

    fn word(&mut self) {
        while goes_on_word(self.peek(0)) {
            self.at += 1;
        }
    }

    fn token(&mut self) -> Option<()> {
        let start = self.at;
        let byte = self.peek(0);
        match byte {
            _ if is_space(byte) => return self.space(),
            b'-' if self.peek(1) == b'-' => return self.space(),
            b'/' if self.peek(1) == b'*' => return self.space(),
            b'\'' => return self.string(),
            b'"' => self.quoted_name()?,
            b'.' if self.peek(1).is_ascii_digit() => return self.number(),
            // `1..2` of PL/pgSQL, and whatever else has two points.
            b'.' if self.peek(1) == b'.' => return None,
            b'$' => {
                self.at += 1;
                while self.peek(0).is_ascii_digit() {
                    self.at += 1;
                }
                // A dollar quote, or something no scanner takes.
                if self.at == start + 1 || goes_on_word(self.peek(0)) {
                    return None;
                }
            }
            b';' => {
                self.at += 1;
                self.space()?;
                return (self.at == self.text.len()).then_some(());
            }
            _ if byte.is_ascii_digit() => return self.number(),
            _ if begins_word(byte) => {
                self.word();
                // A string with a prefix, or a word so close to a string that it may be one.
                let next = (self.peek(0), self.peek(1));
                if next.0 == b'\'' || matches!(next, (b'&', b'\'' | b'"')) {
                    return None;
                }
            }
            b' '..=b'~' => self.at += 1,
            _ => return None,
        }
        self.copy_from(start);
        Some(())
    }

    fn quoted_name(&mut self) -> Option<()> {
        self.at += 1;
        while self.at < self.text.len() {
            let byte = self.peek(0);
            self.at += 1;
            match byte {
                b'"' if self.peek(0) == b'"' => self.at += 1,
                b'"' => return Some(()),
                0..b' ' => return None,
                _ => {}
            }
        }
        None
    }

    fn string(&mut self) -> Option<()> {
        let start = self.at;
        self.at += 1;
        loop {
            if self.at >= self.text.len() {
                return None;
            }
            let byte = self.peek(0);
            self.at += 1;
            if byte == b'\'' {
                if self.peek(0) != b'\'' {
                    break;
                }
                self.at += 1;
            }
        }
        self.literal(LiteralKind::String, start)?;
        self.space()?;
        // The string may go on after a line's end.
        (self.peek(0) != b'\'').then_some(())
    }

    fn number(&mut self) -> Option<()> {
        let start = self.at;
        let digits = |reader: &mut Self| {
            let start = reader.at;
            while reader.peek(0).is_ascii_digit() {
                reader.at += 1;
            }
            reader.at > start
        };
        digits(self);
        if self.peek(0) == b'.' {
            if self.peek(1) == b'.' {
                return None;
            }
            self.at += 1;
            digits(self);
        }
        if self.peek(0) | 0x20 == b'e' {
            self.at += 1;
            if matches!(self.peek(0), b'+' | b'-') {
                self.at += 1;
            }
            if !digits(self) {
                return None;
            }
        }
        // `1x`, `1_000`, `0x10`, `1.5.5`: not for us to say what they are.
        if goes_on_word(self.peek(0)) || self.peek(0) == b'.' {
            return None;
        }
        self.literal(LiteralKind::Number, start)
    }

    fn literal(&mut self, kind: LiteralKind, start: usize) -> Option<()> {
        let end = self.at;
        if self.shape.literals.len() >= SHAPE_LITERALS_MAX {
            return None;
        }
        self.shape.literals.push(Literal { kind, start, end });
        self.shape.key.push(match kind {
            LiteralKind::Number => NUMBER,
            LiteralKind::String => STRING,
        });
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> Option<(String, Vec<String>)> {
        let mut shape = Shape::default();
        shape.read(text).then(|| {
            let key = String::from_utf8(shape.key.clone()).unwrap();
            let key = key.replace('\u{1}', "<n>").replace('\u{2}', "<s>");
            let literals = shape.literals.iter();
            (key, literals.map(|l| l.text(text).to_owned()).collect())
        })
    }

    fn check(text: &str, key: &str, literals: &[&str]) {
        let found = shape(text).unwrap_or_else(|| panic!("{text} has no shape"));
        assert_eq!(found.0, key);
        assert_eq!(found.1, literals);
    }

    #[test]
    fn literals_are_taken_out() {
        check(
            "select v from t where k = 17 and s='it''s'",
            "select v from t where k = <n> and s=<s>",
            &["17", "it''s"],
        );
        check(
            "SELECT -1, a1, 1.5e-3*.5, $1+2 ;",
            "SELECT -<n>, a1, <n>*<n>, $1+<n>",
            &["1", "1.5e-3", ".5", "2"],
        );
        check(
            "values ('a', \"x 'y' 1\", 5::text)",
            "values (<s>, \"x 'y' 1\", <n>::text)",
            &["a", "5"],
        );
    }

    #[test]
    fn comments_and_white_space_are_one_space() {
        check(
            "  -- why 1\n select\t 1 /* 'a /* 2 */ */ +\n\n3",
            "select <n> + <n>",
            &["1", "3"],
        );
        check("select 5--2\n", "select <n>", &["5"]);
    }

    #[test]
    fn what_is_not_sure_has_no_shape() {
        for text in [
            "create table t()",
            "begin",
            "",
            "select 1; select 2",
            "select E'a'",
            "select e'\\''",
            "select U&'a'",
            "select U&\"a\"",
            "select date'2020-01-01'",
            "select $$a$$",
            "select $a$1$a$",
            "select 'a'\n'b'",
            "select 'a",
            "select \"a",
            "select 1 /* 2",
            "select 0x10",
            "select 1_000",
            "select 1e",
            "select 1..2",
            "select 12abc",
            "explain select 1",
            "select '\u{1}', 1 \u{2}",
        ] {
            assert_eq!(shape(text), None, "{text}");
        }
    }

    #[test]
    fn long_texts_have_no_shape() {
        let text = format!("select {}", "1+".repeat(SHAPE_BYTES_MAX));
        assert_eq!(shape(&text), None);
        let many = format!("select {}1", "1+".repeat(SHAPE_LITERALS_MAX));
        assert_eq!(shape(&many), None);
    }
}
