//! How the entries of computed indexes follow from rows ([`catalog::computed`]).
//!
//! ```text
//! create index on t (lower(name), id) where gone is null
//!   keys: the program of lower(name), column 0; condition: the program of gone is null
//! ```

use super::program::Program;
use catalog::KeyOrder;

/// How the entries of one computed index follow from rows.
#[derive(Debug)]
pub struct EntryRule {
    /// The place of the index among the table's.
    pub index: usize,
    /// Its keys, most significant first, as the entries have them.
    pub keys: Vec<(KeyValue, KeyOrder)>,
    /// What a row must meet to have an entry.
    pub condition: Option<Program>,
    /// What rows conflict by, if it is the index of an exclusion constraint.
    pub exclusion: Option<ExclusionRule>,
}

/// What rows conflict by under an exclusion constraint ([`catalog::exclusion`]).
#[derive(Debug)]
pub struct ExclusionRule {
    /// How many keys come first whose operator is `=`.
    pub equal: usize,
    /// Whether the operators of the other keys hold, over the keys of one row and then those of another.
    pub others: Vec<Program>,
    /// How conflicting rows are found among such as do not conflict with one another.
    pub search: Search,
    /// Whether rows may conflict until the statement, or the transaction, ends.
    pub deferrable: bool,
}

/// How a row is found that another conflicts with, among those whose keys with `=` are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// All are looked at.
    All,
    /// By one range that must not overlap: of rows that do not, the neighbours alone may.
    Neighbours,
    /// By one key that must not differ: all others are the same, so any of them tells.
    Any,
}

/// Where the value of a key comes from.
#[derive(Debug)]
pub enum KeyValue {
    /// A column.
    Column(usize),
    /// An expression over the row.
    Program(Program),
}
