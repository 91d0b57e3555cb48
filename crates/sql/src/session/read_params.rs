//! How the parameters of a Bind are read, and what is said of those that cannot be.
//!
//! ```text
//! ERROR:  22P02: invalid input syntax for type integer: "x"
//! CONTEXT:  unnamed portal parameter $1 = '...'
//! ```
//! The value itself is not said, nor that there is one where it came in binary form or was no text in
//! the client's encoding.

use base::error::{Error, Result};
use types::{Datum, EvalContext, TypeId};

use super::{Format, Param};

/// Why a parameter could not be read.
pub(super) struct Failed {
    error: Error,
    /// Whether there was a text that had no meaning.
    of_text: bool,
}

impl Failed {
    /// What is wrong with the value that a parameter has.
    pub(super) fn of(error: Error, param: &Param<'_>) -> Failed {
        let of_text = param.format == Format::Text;
        Failed { error, of_text }
    }

    /// The error, with the portal whose parameter it is.
    pub(super) fn told_of(self, portal: &str, number: usize) -> Error {
        let Failed { mut error, of_text } = self;
        let portal = match portal {
            "" => "unnamed portal".to_owned(),
            name => format!("portal \"{name}\""),
        };
        let value = if of_text { " = '...'" } else { "" };
        error.fields_mut().context = Some(format!("{portal} parameter ${number}{value}"));
        error
    }
}

/// The value of a parameter.
pub(super) fn value(
    context: &EvalContext,
    param: &Param<'_>,
    ty: TypeId,
) -> std::result::Result<Datum, Failed> {
    let Some(bytes) = param.value else {
        return Ok(Datum::Null);
    };
    let failed = |of_text| move |error| Failed { error, of_text };
    match param.format {
        Format::Binary => {
            types::receive(context, ty, types::NO_TYPMOD, bytes).map_err(failed(false))
        }
        Format::Text => {
            let text = text(context, bytes).map_err(failed(false))?;
            types::input(context, ty, types::NO_TYPMOD, &text).map_err(failed(true))
        }
    }
}

fn text<'t>(context: &EvalContext, bytes: &'t [u8]) -> Result<std::borrow::Cow<'t, str>> {
    types::binary::receive_text(context.encoding, bytes)
}
