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
    /// Its keys, most significant first.
    pub keys: Vec<(KeyValue, KeyOrder)>,
    /// What a row must meet to have an entry.
    pub condition: Option<Program>,
}

/// Where the value of a key comes from.
#[derive(Debug)]
pub enum KeyValue {
    /// A column.
    Column(usize),
    /// An expression over the row.
    Program(Program),
}
