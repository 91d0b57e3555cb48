//! `int4in`, `int4out`, `int4send` and their kin: values by the text and the bytes of their types.
//!
//! ```text
//! int4in('7') = 7        int4out(7) = '7'        int4send(7) = '\x00000007'
//! ```
//! One function serves all types: which it is says the result of the call, or its argument.

use std::sync::Arc;

use base::{Error, Result};

use super::arguments::Arguments;
use super::Call;
use types::{Datum, TypeId, NO_TYPMOD};

/// The value that a text means. Where there are three arguments the last is the type's modifier.
pub(crate) fn input(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let typmod = match args {
        [_, _, typmod] => typmod.as_i64().and_then(|own| i32::try_from(own).ok()),
        _ => None,
    };
    let typmod = typmod.unwrap_or(NO_TYPMOD);
    types::input(call.context, call.result, typmod, args.text(0)?)
}

/// The text of a value.
pub(crate) fn output(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    types::output(call.context, own_type(call)?, args.any(0)?).map(Datum::text)
}

/// The bytes of a value, as clients are sent them.
pub(crate) fn send(call: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let mut out = Vec::new();
    types::send(call.context, own_type(call)?, args.any(0)?, &mut out)?;
    Ok(Datum::Bytea(Arc::from(out)))
}

fn own_type(call: &Call<'_>) -> Result<TypeId> {
    let own = call.argument_types.first().copied();
    own.ok_or_else(|| Error::internal("a value without a type"))
}
