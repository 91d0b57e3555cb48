//! `tsvector` and `tsquery`: the words of a document, and what is asked of them.
//!
//! ```text
//! 'fat cats ate rats':2A,5 'rat':7      a tsvector: lexemes in byte order, each with its places
//! 'cat' & !'dog':A | 'ra':*             a tsquery: an expression over lexemes
//! ```
//! | module | what |
//! |---|---|
//! | [`vector`] | `tsvector`: its bytes, text and binary form |
//! | [`position`] | places and weights |
//! | [`query`] | `tsquery`: its nodes, bytes, order and binary form |
//! | [`read`] | the text form of a `tsquery`, as itself and as search engines take it |
//! | [`token`] | the lexemes that both texts are made of |
//!
//! What text becomes which lexemes is another layer's (`functions::search`).
//!
//! # Invariants
//! The bytes of a `tsvector` are in the order of its values, so that two are compared without being
//! taken apart, and a key is the bytes themselves. Those of a `tsquery` are its binary form.
//!
//! Source: PostgreSQL 15 manual, section 8.11.

pub mod position;
pub mod query;
pub mod read;
pub mod token;
pub mod vector;

pub use position::Position;
pub use query::{Builder, Node, Operand, Query};
pub use vector::{Entry, Lexeme, Vector};

use base::error::{Error, SqlState};

/// A lexeme has at most so many bytes.
pub const LEXEME_BYTES_MAX: usize = (1 << 11) - 1;
/// All lexemes and positions of a `tsvector` have at most so many bytes.
pub const VECTOR_BYTES_MAX: usize = (1 << 20) - 1;
/// Positions are below this; farther ones are the last one.
pub const POSITION_END: u16 = 1 << 14;
/// A lexeme has fewer positions.
pub const POSITIONS_END: usize = 256;

fn too_big(message: String) -> Error {
    Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
}

/// 54000 for a vector that would have so many bytes.
pub fn vector_too_long(bytes: usize) -> Error {
    too_big(format!(
        "string is too long for tsvector ({bytes} bytes, max {VECTOR_BYTES_MAX} bytes)"
    ))
}
