//! Figures with their spread, and the documents that show them.

use std::fmt::Write as _;
use std::io::{Error, Result};
use std::path::Path;

use serde::Serialize;

use crate::host::{read_file, write_file};

/// The median and the spread of repeated measurements.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Figure {
    /// Every measurement, in the order taken.
    pub rounds: Vec<f64>,
}

impl Figure {
    /// The middle of the measurements; of an even number, the mean of the middle two.
    pub fn median(&self) -> f64 {
        let mut sorted = self.rounds.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        match sorted.len() {
            0 => f64::NAN,
            len if len % 2 == 1 => sorted[middle],
            _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
        }
    }

    /// The lowest measurement.
    pub fn low(&self) -> f64 {
        self.rounds.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The highest measurement.
    pub fn high(&self) -> f64 {
        self.rounds.iter().copied().fold(0.0, f64::max)
    }

    /// `median (low–high)`, in whole numbers with thousands apart.
    pub fn show(&self) -> String {
        format!(
            "{} ({}–{})",
            thousands(self.median()),
            thousands(self.low()),
            thousands(self.high())
        )
    }
}

/// A whole number, its thousands apart: `1,234`.
pub fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A table in Markdown.
pub fn table(head: &[String], rows: &[Vec<String>]) -> String {
    let mut out = String::new();
    let mut line = |cells: &[String]| {
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    };
    line(head);
    line(&vec!["---".to_owned(); head.len()]);
    rows.iter().for_each(|row| line(row));
    out
}

/// Puts `text` between `<!-- NAME -->` and `<!-- /NAME -->` of a document.
///
/// # Errors
/// The document cannot be read or written, or lacks the marks.
pub fn replace_section(document: &Path, name: &str, text: &str) -> Result<()> {
    let (open, close) = (format!("<!-- {name} -->"), format!("<!-- /{name} -->"));
    let old = read_file(document)?;
    let missing = || Error::other(format!("{} lacks {open}", document.display()));
    let start = old.find(&open).ok_or_else(missing)? + open.len();
    let end = old.find(&close).ok_or_else(missing)?;
    let new = format!("{}\n{}\n{}", &old[..start], text.trim_end(), &old[end..]);
    write_file(document, &new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_show_their_spread() {
        let figure = Figure {
            rounds: vec![1_200.0, 900.0, 12_345.6],
        };
        assert_eq!(figure.show(), "1,200 (900–12,346)");
        let even = Figure {
            rounds: vec![1.0, 3.0],
        };
        assert_eq!(even.show(), "2 (1–3)");
    }

    #[test]
    fn tables_are_markdown() {
        let text = |cell: &str| cell.to_owned();
        let made = table(&[text("a"), text("b")], &[vec![text("1"), text("2")]]);
        assert_eq!(made, "| a | b |\n| --- | --- |\n| 1 | 2 |\n");
    }
}
