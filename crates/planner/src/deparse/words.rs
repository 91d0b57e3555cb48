//! Calls of functions that SQL writes in words, where they were written so.
//!
//! ```text
//! trim(both 'x' from a)      TRIM(BOTH 'x'::text FROM a)
//! btrim(a, 'x')              btrim(a, 'x'::text)
//! ```
//! The binder gives such a call a function whose name is the words.

use base::{Error, Result};

use super::expression::{Shape, Writer};
use crate::plan::{Expr, ExprKind};
use types::Datum;

/// Whether the name of a function is that of words, with which no function is called.
pub(super) fn are_words(name: &str) -> bool {
    const WORDS: [&str; 12] = [
        "AT TIME ZONE",
        "COLLATION FOR",
        "EXTRACT",
        "IS NORMALIZED",
        "NORMALIZE",
        "OVERLAPS",
        "OVERLAY",
        "POSITION",
        "SUBSTRING",
        "TRIM BOTH",
        "TRIM LEADING",
        "TRIM TRAILING",
    ];
    WORDS.contains(&name)
}

/// A word that is given as a text: the field of EXTRACT, the form of NORMALIZE.
fn word(arg: &Expr) -> Result<String> {
    match &arg.kind {
        ExprKind::Const(Datum::Text(word), _) => Ok(word.to_string()),
        _ => Err(Error::internal("a word that is an expression")),
    }
}

impl Writer<'_> {
    /// A call in words.
    pub(super) fn words(&mut self, words: &str, args: &[Expr]) -> Result<()> {
        match (words, args) {
            ("AT TIME ZONE", [zone, value]) => {
                self.text("(");
                self.operand(value, true, Shape::Test, true)?;
                self.text(" AT TIME ZONE ");
                self.operand(zone, true, Shape::Test, false)?;
                self.text(")");
                Ok(())
            }
            ("EXTRACT", [field, value]) => {
                let field = word(field)?;
                self.between(&[&format!("EXTRACT({field} FROM "), ")"], &[value])
            }
            ("IS NORMALIZED", [value]) => self.between(&["(", " IS NORMALIZED)"], &[value]),
            ("IS NORMALIZED", [value, form]) => {
                let form = word(form)?;
                self.between(&["(", &format!(" IS {form} NORMALIZED)")], &[value])
            }
            ("NORMALIZE", [value]) => self.between(&["NORMALIZE(", ")"], &[value]),
            ("NORMALIZE", [value, form]) => {
                let form = word(form)?;
                self.between(&["NORMALIZE(", &format!(", {form})")], &[value])
            }
            ("OVERLAPS", [a, b, c, d]) => {
                self.between(&["((", ", ", ") OVERLAPS (", ", ", "))"], &[a, b, c, d])
            }
            ("OVERLAY", [a, b, from]) => {
                self.between(&["OVERLAY(", " PLACING ", " FROM ", ")"], &[a, b, from])
            }
            ("OVERLAY", [a, b, from, count]) => {
                let words = ["OVERLAY(", " PLACING ", " FROM ", " FOR ", ")"];
                self.between(&words, &[a, b, from, count])
            }
            ("POSITION", [text, part]) => {
                self.between(&["POSITION((", ") IN (", "))"], &[part, text])
            }
            ("SUBSTRING", [text, from]) => {
                self.between(&["SUBSTRING(", " FROM ", ")"], &[text, from])
            }
            ("SUBSTRING", [text, pattern, escape]) if pattern.ty == text.ty => {
                let words = ["SUBSTRING(", " SIMILAR ", " ESCAPE ", ")"];
                self.between(&words, &[text, pattern, escape])
            }
            ("SUBSTRING", [text, from, count]) => {
                let words = ["SUBSTRING(", " FROM ", " FOR ", ")"];
                self.between(&words, &[text, from, count])
            }
            (words, [text]) if words.starts_with("TRIM ") => {
                let side = words.trim_start_matches("TRIM ");
                self.between(&[&format!("TRIM({side} FROM "), ")"], &[text])
            }
            (words, [text, what]) if words.starts_with("TRIM ") => {
                let side = words.trim_start_matches("TRIM ");
                self.between(&[&format!("TRIM({side} "), " FROM ", ")"], &[what, text])
            }
            (words, [value]) => self.between(&[&format!("{words} ("), ")"], &[value]),
            _ => Err(Error::internal("words with too many arguments")),
        }
    }

    /// Arguments between words.
    fn between(&mut self, words: &[&str], args: &[&Expr]) -> Result<()> {
        for (word, arg) in words.iter().zip(args) {
            self.text(word);
            self.put(arg, false)?;
        }
        self.text(words.last().copied().unwrap_or_default());
        Ok(())
    }
}
