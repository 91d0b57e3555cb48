//! Where a scan looks for rows of a table.
//!
//! ```text
//! index (a, b, c)     a = 5 AND b IN (1, 3) AND c < 9      equal [5, {1,3}], among 1, high 9
//! ```
//! # Invariants
//! - At most one of the values that leading columns equal is a list.
//!
//! # What it leaves out
//! How good a way is: [`crate::paths`] chooses.

use super::Program;

/// Where rows of a table are looked for.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// The leading key columns that must equal these values.
    pub equal: Vec<Program>,
    /// Which of these is an array, of whose elements the column must equal one; if one is.
    pub among: Option<usize>,
    /// The next key column must be above: the value, and whether it may be equal.
    pub low: Option<Box<(Program, bool)>>,
    /// The next key column must be below.
    pub high: Option<Box<(Program, bool)>>,
}

impl Access {
    /// Whether it bounds nothing.
    pub fn is_everything(&self) -> bool {
        self.equal.is_empty() && self.low.is_none() && self.high.is_none()
    }

    /// The values that are looked for.
    pub fn programs(&self) -> impl Iterator<Item = &Program> {
        let bounds = self.low.iter().chain(&self.high);
        self.equal.iter().chain(bounds.map(|bound| &bound.0))
    }

    /// The same, to be changed.
    pub fn programs_mut(&mut self) -> impl Iterator<Item = &mut Program> {
        let bounds = self.low.iter_mut().chain(&mut self.high);
        self.equal
            .iter_mut()
            .chain(bounds.map(|bound| &mut bound.0))
    }

    /// Whether a key column has one value in all rows that it leads to.
    pub fn is_fixed(&self, place: usize) -> bool {
        place < self.equal.len() && self.among != Some(place)
    }

    /// Whether all columns of a key of so many have one value each.
    pub fn is_one_key(&self, columns: usize) -> bool {
        self.equal.len() == columns && self.among.is_none()
    }
}

/// A way to rows of a table.
#[derive(Clone, Debug)]
pub struct Way {
    /// As [`super::Scan::index`].
    pub index: Option<usize>,
    /// Where to look.
    pub access: Access,
}

/// A way to rows of a table that costs more than reading it whole.
#[derive(Clone, Debug)]
pub struct SlowerWay {
    /// The way.
    pub way: Way,
    /// What a row must meet besides.
    pub filter: Option<Program>,
}
