//! Errors for texts that are no value of their type, where several modules raise them.
//!
//! ```
//! let error = types::invalid::invalid("money", "x");
//! assert_eq!(error.message(), "invalid input syntax for type money: \"x\"");
//! ```
//!
//! # What it leaves out
//! Texts that are out of range, and those of one module alone: they are raised there.

use base::error::{Error, SqlState};

use super::TypeId;

/// 22P02 "invalid input syntax for type …".
pub fn invalid(kind: impl std::fmt::Display, text: &str) -> Error {
    Error::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        format!("invalid input syntax for type {kind}: \"{text}\""),
    )
}

/// 22P02 for a label that an enum does not have.
pub fn invalid_label(kind: TypeId, label: &str) -> Error {
    Error::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        format!("invalid input value for enum {kind}: \"{label}\""),
    )
}
