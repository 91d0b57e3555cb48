//! Functions that put bytes of one encoding into another (PostgreSQL 15 manual, section 9.5).

use base::error::{Error, Result, SqlState};

use super::arguments::Arguments;
use super::Call;
use types::encoding::Encoding;
use types::Datum;

/// The encoding of a name that is `what`.
fn named(name: &str, what: &str) -> Result<Encoding> {
    Encoding::by_name(name).ok_or_else(|| {
        Error::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("invalid {what}encoding name \"{name}\""),
        )
    })
}

/// No text has a NUL.
fn check_zero(bytes: &[u8], encoding: Encoding) -> Result<()> {
    match bytes.contains(&0) {
        true => Err(encoding.invalid(&[0])),
        false => Ok(()),
    }
}

/// Bytes of one encoding as those of another.
fn converted(bytes: &[u8], from: Encoding, to: Encoding) -> Result<Vec<u8>> {
    check_zero(bytes, from)?;
    let is_known = |encoding: Encoding| encoding.is_convertible();
    if from == to || to == Encoding::SQL_ASCII {
        if is_known(from) {
            from.count(bytes)?;
        }
        return Ok(bytes.to_vec());
    }
    if from == Encoding::SQL_ASCII {
        if is_known(to) {
            to.count(bytes)?;
        }
        return Ok(bytes.to_vec());
    }
    if (from != Encoding::UTF8 && to != Encoding::UTF8) || !is_known(from) || !is_known(to) {
        let (from, to) = (from.name(), to.name());
        let message = format!(
            "default conversion function for encoding \"{from}\" to \"{to}\" does not exist"
        );
        return Err(Error::new(SqlState::UNDEFINED_FUNCTION, message));
    }
    let text = from.decode(bytes)?;
    Ok(to.encode(&text)?.into_owned())
}

pub(crate) fn convert(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (bytes, from, to) = (args.bytea(0)?, args.text(1)?, args.text(2)?);
    let from = named(from, "source ")?;
    let to = named(to, "destination ")?;
    converted(&bytes, from, to).map(Datum::bytea)
}

pub(crate) fn convert_from(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (bytes, from) = (args.bytea(0)?, args.text(1)?);
    let from = named(from, "source ")?;
    let text = converted(&bytes, from, Encoding::UTF8)?;
    types::binary::receive_text(Encoding::UTF8, &text).map(Datum::text)
}

pub(crate) fn convert_to(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (text, to) = (args.text(0)?, args.text(1)?);
    let to = named(to, "destination ")?;
    converted(text.as_bytes(), Encoding::UTF8, to).map(Datum::bytea)
}

pub(crate) fn length(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let (bytes, name) = (args.bytea(0)?, args.text(1)?);
    let encoding = named(name, "")?;
    check_zero(&bytes, encoding)?;
    let count = encoding.count(&bytes)?;
    Ok(Datum::Int4(i32::try_from(count).unwrap_or(i32::MAX)))
}

pub(crate) fn client_encoding(call: &Call<'_>, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::text(call.context.encoding.name()))
}

pub(crate) fn number_of(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let found = Encoding::by_name(args.text(0)?);
    Ok(Datum::Int4(found.map_or(-1, Encoding::number)))
}

pub(crate) fn name_of(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let found = args.any(0)?.as_i64().and_then(Encoding::by_number);
    Ok(Datum::text(found.map_or("", Encoding::name)))
}

pub(crate) fn char_bytes_max(_: &Call<'_>, args: &[Datum]) -> Result<Datum> {
    let found = args.any(0)?.as_i64().and_then(Encoding::by_number);
    Ok(found.map_or(Datum::Null, |found| Datum::Int4(found.char_bytes_max())))
}
