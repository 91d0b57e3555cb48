//! COLLATE: which collation a clause names. All of them order by bytes (`catalog::collation`), so
//! an expression only has to name one that is there; a column keeps the name that it was given.

use base::{Error, Result, SqlState};
use pg_query::protobuf::CollateClause;

use super::{strings, Binder};
use catalog::{collation, Catalog};
use syntax::parser::char_position;
use types::TypeId;

/// The oid of the collation that something of a type is given, or 0 if that is the type's own.
///
/// # Errors
/// 42804 when values of the type have no collation, 3F000 and 42704 when there is none of that name;
/// at the clause in `text`.
pub fn resolve(text: &str, catalog: &Catalog, clause: &CollateClause, ty: TypeId) -> Result<u32> {
    let refused = |state: SqlState, message: String| {
        let error = Error::new(state, message);
        match char_position(text, clause.location) {
            Some(position) => error.at(position),
            None => error,
        }
    };
    // A literal will be a text.
    let ty = if ty == TypeId::UNKNOWN {
        TypeId::TEXT
    } else {
        ty
    };
    let own = collation::of_type(ty);
    if own == 0 {
        return Err(refused(
            SqlState::DATATYPE_MISMATCH,
            format!("collations are not supported by type {ty}"),
        ));
    }
    let names = strings(&clause.collname);
    let named = match names.as_slice() {
        [name] | ["pg_catalog", name] => collation::named(name),
        [schema, _] if catalog.schema(schema).is_none() => {
            let message = format!("schema \"{schema}\" does not exist");
            return Err(refused(SqlState::INVALID_SCHEMA_NAME, message));
        }
        _ => None,
    };
    let known = named.ok_or_else(|| {
        let name = names.join(".");
        let message = format!("collation \"{name}\" for encoding \"UTF8\" does not exist");
        refused(SqlState::UNDEFINED_OBJECT, message)
    })?;
    Ok(if own == known { 0 } else { known })
}

impl Binder<'_> {
    /// Checks a COLLATE clause on an expression of a type.
    ///
    /// # Errors
    /// As [`resolve`].
    pub(super) fn check_collation(&self, clause: &CollateClause, ty: TypeId) -> Result<()> {
        resolve(self.cx.text, self.cx.catalog, clause, ty).map(drop)
    }
}
