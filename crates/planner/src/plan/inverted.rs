//! How an inverted index ([`catalog::inverted`]) is asked for rows.
//!
//! ```text
//! tags @> '{red,big}' and name like '%ann%'
//! terms: key 0 contains {red,big}; key 1 is like %ann%      rows that have all items of both
//! ```
//! What is asked leads to all rows that meet the conditions and to others, so the conditions are
//! tested as well.

use super::Program;

/// What a condition asks of the items of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// All items of the value are there: it is contained, or equal.
    Contains,
    /// One item of the value is there.
    Overlaps,
    /// The text is a key or an element.
    Exists,
    /// One of the texts is.
    ExistsAny,
    /// All of the texts are.
    ExistsAll,
    /// The vector is what the query asks for.
    Meets,
    /// The text matches the pattern of LIKE or ILIKE.
    Like,
    /// The text is as similar as `pg_trgm.similarity_threshold` asks.
    Similar,
    /// It has a part as similar as `pg_trgm.word_similarity_threshold` asks.
    SimilarWord,
    /// It has words as similar as `pg_trgm.strict_word_similarity_threshold` asks.
    SimilarWords,
}

/// One condition.
#[derive(Clone, Debug)]
pub struct Term {
    /// The place of the key.
    pub key: usize,
    /// What is asked of it.
    pub asked: Asked,
    /// The value that it is asked with.
    pub value: Program,
}

/// The rows of a table by way of an inverted index.
#[derive(Clone, Debug)]
pub struct InvertedAccess {
    /// The place of the index.
    pub index: usize,
    /// What is asked, all of it.
    pub terms: Vec<Term>,
}
