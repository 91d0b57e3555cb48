//! Text forms of all types: what `'…'::type` reads and what is sent as text.

use base::error::{Error, Result};

use super::{Datum, EvalContext, TypeId};

/// Reads a value of a type; the modifier is enforced as by an implicit cast.
///
/// # Errors
/// 22P02 and its kin when the text is no such value.
pub fn input(context: &EvalContext, kind: TypeId, typmod: i32, text: &str) -> Result<Datum> {
    let _ = (context, typmod, text);
    Err(Error::unsupported(format!("input of {kind}")))
}

/// The text form of a value that is not NULL.
///
/// # Errors
/// For instance 22008 for a timestamp out of range.
pub fn output(context: &EvalContext, kind: TypeId, value: &Datum) -> Result<String> {
    let mut out = String::new();
    write(context, kind, value, &mut out)?;
    Ok(out)
}

/// Appends the text form of a value that is not NULL.
///
/// # Errors
/// As [`output`].
pub fn write(context: &EvalContext, kind: TypeId, value: &Datum, out: &mut String) -> Result<()> {
    let _ = (context, value, out);
    Err(Error::unsupported(format!("output of {kind}")))
}
