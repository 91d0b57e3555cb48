//! `normalize` and `IS NORMALIZED`: the normal forms of Unicode.
//!
//! ```text
//! normalize('e\u0301')            'é', one character: NFC is the form where none is named
//! 'ﬁ' is nfkc normalized          false: it would be 'fi'
//! ```
//!
//! Source: PostgreSQL 15 manual, section 9.4; Unicode standard annex 15.

use base::coro;
use base::error::{Error, Result, SqlState};
use unicode_normalization::UnicodeNormalization;

use super::arguments::Arguments;
use super::Call;
use types::growth::Growing;
use types::Datum;

/// What looking at a character costs, in the units of [`coro::work`].
const CHARACTER_WORK: usize = 4;

pub(crate) fn normalize(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let text = args.text(0)?;
    let mut out = Growing::with_capacity(text.len())?;
    for c in characters(text, form(args)?)? {
        out.push(c)?;
    }
    Ok(out.into_datum())
}

pub(crate) fn is_normalized(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let text = args.text(0)?;
    let mut given = text.chars();
    for c in characters(text, form(args)?)? {
        coro::work(CHARACTER_WORK)?;
        if given.next() != Some(c) {
            return Ok(Datum::Bool(false));
        }
    }
    Ok(Datum::Bool(given.next().is_none()))
}

/// The form that is asked for.
fn form(args: &[Datum]) -> Result<&str> {
    match args {
        [_, _] => args.text(1),
        _ => Ok("NFC"),
    }
}

/// The characters of a text in a form.
fn characters<'t>(text: &'t str, form: &str) -> Result<Box<dyn Iterator<Item = char> + 't>> {
    Ok(match form.to_ascii_uppercase().as_str() {
        "NFC" => Box::new(text.nfc()),
        "NFD" => Box::new(text.nfd()),
        "NFKC" => Box::new(text.nfkc()),
        "NFKD" => Box::new(text.nfkd()),
        _ => {
            return Err(Error::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("invalid normalization form: {form}"),
            ))
        }
    })
}
