//! COLLATE: there is one collation, the order of bytes, under its usual names.

use base::{Error, Result, SqlState};
use pg_query::protobuf::CollateClause;

use super::{strings, Binder};
use crate::parser::char_position;
use crate::types::{Category, TypeId};

/// The names of the order of bytes.
const NAMES: [&str; 4] = ["C", "POSIX", "default", "ucs_basic"];

/// Whether values of a type, or their elements, are compared under a collation.
fn is_collatable(ty: TypeId) -> bool {
    let ty = ty.array_element().unwrap_or(ty);
    ty.category() == Category::String || ty == TypeId::UNKNOWN
}

/// Checks a COLLATE clause on something of a type.
///
/// # Errors
/// 42804 for a type without collations, 0A000 for any other collation; at the clause in `text`.
pub fn check(text: &str, clause: &CollateClause, ty: TypeId) -> Result<()> {
    let place = |error: Error| match char_position(text, clause.location) {
        Some(position) => error.at(position),
        None => error,
    };
    if !is_collatable(ty) {
        return Err(place(Error::new(
            SqlState::DATATYPE_MISMATCH,
            format!("collations are not supported by type {ty}"),
        )));
    }
    let names = strings(&clause.collname);
    let known = match names.as_slice() {
        [name] | ["pg_catalog", name] => NAMES.contains(name),
        _ => false,
    };
    match known {
        true => Ok(()),
        false => Err(place(Error::unsupported("a collation other than \"C\""))),
    }
}

impl Binder<'_> {
    /// Checks a COLLATE clause on an expression of a type.
    ///
    /// # Errors
    /// As [`check`].
    pub(super) fn check_collation(&self, clause: &CollateClause, ty: TypeId) -> Result<()> {
        check(self.cx.text, clause, ty)
    }
}
