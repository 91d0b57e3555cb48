//! Values as the bytes of a row's column (see [`base::row`]), and how those are ordered in keys.

use base::error::{Error, Result};
use base::key::KeyKind;

use super::{Datum, TypeId};

/// How columns of this type become ordered keys; `None` when the type has no order.
pub fn key_kind(kind: TypeId) -> Option<KeyKind> {
    let _ = kind;
    None
}

/// Appends the column bytes of a value that is not NULL and is of this very type.
pub fn encode_column(kind: TypeId, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    let _ = (value, out);
    Err(Error::unsupported(format!("storing {kind}")))
}

/// The value of column bytes. The modifier pads `character(n)`, which is stored without padding.
///
/// # Errors
/// XX001 when they are no such value.
pub fn decode_column(kind: TypeId, typmod: i32, bytes: &[u8]) -> Result<Datum> {
    let _ = (typmod, bytes);
    Err(Error::unsupported(format!("reading {kind}")))
}
