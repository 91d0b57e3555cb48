//! What clients send: decoded without copying, and encoded for clients of our own.
//!
//! Text stays bytes here: whether it is valid UTF-8 is the session's to say (22021, not a violation
//! of the protocol). Lists are checked when a message is decoded, so that going through them later
//! cannot fail.
//!
//! Source: PostgreSQL 15 manual, section 55.7.

use std::borrow::Cow;

use ::sql::session::Encoding;
use base::error::Result;

use crate::frame::{put_count, put_cstr, put_message, violation, BodyReader};

/// A message from a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frontend<'a> {
    /// A query string of the simple protocol.
    Query(&'a [u8]),
    /// Makes a prepared statement.
    Parse(Parse<'a>),
    /// Makes a portal of a prepared statement and parameters.
    Bind(Bind<'a>),
    /// Asks what a statement or portal takes and returns.
    Describe(Target<'a>),
    /// Runs a portal for at most so many rows; 0 for all.
    Execute {
        /// The portal.
        portal: &'a [u8],
        /// The most rows to return; 0 is no limit.
        rows_max: u32,
    },
    /// Forgets a statement or portal.
    Close(Target<'a>),
    /// Asks for what is buffered.
    Flush,
    /// Ends a batch of the extended protocol.
    Sync,
    /// The client leaves.
    Terminate,
    /// Data of a COPY FROM STDIN.
    CopyData(&'a [u8]),
    /// The end of that data.
    CopyDone,
    /// The client gives its COPY FROM STDIN up, and why.
    CopyFail(&'a [u8]),
    /// Calls a function by its oid.
    FunctionCall(FunctionCall<'a>),
    /// A password or SASL message, which nobody asked for.
    Password,
}

/// The body of a message with its text in UTF-8; values of parameters stay as they are, as their
/// types say what of them is text. A malformed one is left to [`Frontend::decode`].
///
/// # Errors
/// 22021 and 22P05, as [`Encoding::decode`].
pub fn in_utf8(kind: u8, body: &[u8], encoding: Encoding) -> Result<Cow<'_, [u8]>> {
    if encoding.is_kept() || body.is_ascii() {
        return Ok(Cow::Borrowed(body));
    }
    // What stands before the first text, and how many texts there are.
    let (before, texts) = match kind {
        b'Q' | b'E' => (0, 1),
        b'P' | b'B' => (0, 2),
        b'D' | b'C' => (1, 1),
        _ => return Ok(Cow::Borrowed(body)),
    };
    let (mut text, mut rest) = (body[..before.min(body.len())].to_vec(), body);
    rest = rest.get(before..).unwrap_or_default();
    for _ in 0..texts {
        let Some(length) = rest.iter().position(|byte| *byte == 0) else {
            return Ok(Cow::Borrowed(body));
        };
        text.extend_from_slice(encoding.decode(&rest[..length])?.as_bytes());
        text.push(0);
        rest = &rest[length + 1..];
    }
    text.extend_from_slice(rest);
    Ok(Cow::Owned(text))
}

/// A Parse message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parse<'a> {
    /// The statement's name; empty for the unnamed one.
    pub name: &'a [u8],
    /// The query.
    pub text: &'a [u8],
    /// The parameters' types as far as given; 0 leaves one open.
    pub types: Oids<'a>,
}

/// A Bind message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bind<'a> {
    /// The portal to make; empty for the unnamed one.
    pub portal: &'a [u8],
    /// The statement to make it of.
    pub statement: &'a [u8],
    /// The formats of the parameters.
    pub formats: Formats<'a>,
    /// The parameters.
    pub values: Values<'a>,
    /// The formats wanted for the columns of the result.
    pub result_formats: Formats<'a>,
}

/// A FunctionCall message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionCall<'a> {
    /// The function's oid.
    pub function: u32,
    /// The formats of the arguments.
    pub formats: Formats<'a>,
    /// The arguments.
    pub values: Values<'a>,
    /// Whether the result is wanted in binary.
    pub is_binary: bool,
}

/// A statement or a portal, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// A prepared statement.
    Statement(&'a [u8]),
    /// A portal.
    Portal(&'a [u8]),
}

/// A list of type OIDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oids<'a>(&'a [u8]);

impl Oids<'_> {
    /// The OIDs, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.0
            .chunks_exact(4)
            .map(|oid| u32::from_be_bytes([oid[0], oid[1], oid[2], oid[3]]))
    }
}

/// A list of format codes: none (all text), one (for all), or one for each.
///
/// Invariant: every code is 0 (text) or 1 (binary).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Formats<'a>(&'a [u8]);

impl Formats<'_> {
    /// How many codes were given.
    pub fn count(&self) -> usize {
        self.0.len() / 2
    }

    /// Whether item `index` is binary.
    pub fn is_binary(&self, index: usize) -> bool {
        let index = if self.count() == 1 { 0 } else { index };
        self.0.get(2 * index + 1) == Some(&1)
    }

    /// Whether there may be so many codes for so many items.
    pub fn fits(&self, items: usize) -> bool {
        self.count() <= 1 || self.count() == items
    }
}

/// A list of nullable values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Values<'a> {
    count: usize,
    bytes: &'a [u8],
}

impl<'a> Values<'a> {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The values, in order.
    pub fn iter(&self) -> impl Iterator<Item = Option<&'a [u8]>> + 'a {
        let mut reader = BodyReader::new(self.bytes);
        (0..self.count).map(move |_| reader.value().expect("checked when it was decoded"))
    }

    /// Reads and checks a counted list.
    pub(crate) fn read(reader: &mut BodyReader<'a>) -> Result<Values<'a>> {
        let count = reader.count()?;
        let mut ahead = *reader;
        let mut length = 0;
        for _ in 0..count {
            length += 4 + ahead.value()?.map_or(0, <[u8]>::len);
        }
        let bytes = reader.take(length)?;
        Ok(Values { count, bytes })
    }
}

impl<'a> Frontend<'a> {
    /// Reads a whole message.
    ///
    /// # Errors
    /// FATAL 08P01 when it is malformed.
    pub fn decode(kind: u8, body: &'a [u8]) -> Result<Frontend<'a>> {
        let mut reader = BodyReader::new(body);
        let message = match kind {
            b'Q' => Frontend::Query(reader.cstr()?),
            b'P' => Frontend::Parse(Parse {
                name: reader.cstr()?,
                text: reader.cstr()?,
                types: Oids(counted(&mut reader, 4)?),
            }),
            b'B' => Frontend::Bind(Bind {
                portal: reader.cstr()?,
                statement: reader.cstr()?,
                formats: formats(&mut reader)?,
                values: Values::read(&mut reader)?,
                result_formats: formats(&mut reader)?,
            }),
            b'D' => Frontend::Describe(target(&mut reader)?),
            b'C' => Frontend::Close(target(&mut reader)?),
            b'E' => Frontend::Execute {
                portal: reader.cstr()?,
                rows_max: u32::try_from(reader.i32()?).unwrap_or(0),
            },
            b'H' => Frontend::Flush,
            b'S' => Frontend::Sync,
            b'X' => Frontend::Terminate,
            b'd' => Frontend::CopyData(reader.take_rest()),
            b'c' => Frontend::CopyDone,
            b'f' => Frontend::CopyFail(reader.cstr()?),
            b'F' => Frontend::FunctionCall(FunctionCall {
                // As bits: half of all oids are above the largest i32.
                function: reader.i32()? as u32,
                formats: formats(&mut reader)?,
                values: Values::read(&mut reader)?,
                is_binary: is_binary(reader.take(2)?)?,
            }),
            b'p' => return Ok(Frontend::Password),
            _ => return Err(violation(format!("invalid frontend message type {kind}"))),
        };
        reader.finish()?;
        Ok(message)
    }

    /// Appends the message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Frontend::Query(text) => put_message(out, b'Q', |out| put_cstr(out, text)),
            Frontend::Parse(parse) => put_message(out, b'P', |out| {
                put_cstr(out, parse.name);
                put_cstr(out, parse.text);
                put_count(out, parse.types.iter().len());
                out.extend_from_slice(parse.types.0);
            }),
            Frontend::Bind(bind) => put_message(out, b'B', |out| {
                put_cstr(out, bind.portal);
                put_cstr(out, bind.statement);
                put_count(out, bind.formats.count());
                out.extend_from_slice(bind.formats.0);
                put_count(out, bind.values.count);
                out.extend_from_slice(bind.values.bytes);
                put_count(out, bind.result_formats.count());
                out.extend_from_slice(bind.result_formats.0);
            }),
            Frontend::Describe(target) => put_message(out, b'D', |out| put_target(out, *target)),
            Frontend::Close(target) => put_message(out, b'C', |out| put_target(out, *target)),
            Frontend::Execute { portal, rows_max } => put_message(out, b'E', |out| {
                put_cstr(out, portal);
                out.extend_from_slice(&rows_max.to_be_bytes());
            }),
            Frontend::Flush => put_message(out, b'H', |_| {}),
            Frontend::Sync => put_message(out, b'S', |_| {}),
            Frontend::Terminate => put_message(out, b'X', |_| {}),
            Frontend::CopyData(data) => put_message(out, b'd', |out| out.extend_from_slice(data)),
            Frontend::CopyDone => put_message(out, b'c', |_| {}),
            Frontend::CopyFail(reason) => put_message(out, b'f', |out| put_cstr(out, reason)),
            Frontend::FunctionCall(call) => put_message(out, b'F', |out| {
                out.extend_from_slice(&call.function.to_be_bytes());
                put_count(out, call.formats.count());
                out.extend_from_slice(call.formats.0);
                put_count(out, call.values.count());
                call.values.iter().for_each(|value| put_value(out, value));
                out.extend_from_slice(&i16::from(call.is_binary).to_be_bytes());
            }),
            Frontend::Password => put_message(out, b'p', |out| out.push(0)),
        }
    }
}

/// Appends a Parse message.
pub fn put_parse(out: &mut Vec<u8>, name: &str, text: &str, types: &[u32]) {
    put_message(out, b'P', |out| {
        put_cstr(out, name.as_bytes());
        put_cstr(out, text.as_bytes());
        put_count(out, types.len());
        for oid in types {
            out.extend_from_slice(&oid.to_be_bytes());
        }
    });
}

/// Appends a Bind message whose parameters are all text (or all binary) and whose result is too.
pub fn put_bind(
    out: &mut Vec<u8>,
    portal: &str,
    statement: &str,
    values: &[Option<&[u8]>],
    binary: bool,
) {
    let format = i16::from(binary).to_be_bytes();
    put_message(out, b'B', |out| {
        put_cstr(out, portal.as_bytes());
        put_cstr(out, statement.as_bytes());
        put_count(out, 1);
        out.extend_from_slice(&format);
        put_count(out, values.len());
        for value in values {
            put_value(out, *value);
        }
        put_count(out, 1);
        out.extend_from_slice(&format);
    });
}

/// Appends a nullable value with its length.
pub(crate) fn put_value(out: &mut Vec<u8>, value: Option<&[u8]>) {
    match value {
        None => out.extend_from_slice(&(-1i32).to_be_bytes()),
        Some(value) => {
            let length = i32::try_from(value.len()).expect("a value fits a message");
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(value);
        }
    }
}

fn counted<'a>(reader: &mut BodyReader<'a>, item_bytes: usize) -> Result<&'a [u8]> {
    let count = reader.count()?;
    reader.take(count * item_bytes)
}

fn formats<'a>(reader: &mut BodyReader<'a>) -> Result<Formats<'a>> {
    let bytes = counted(reader, 2)?;
    for code in bytes.chunks_exact(2) {
        is_binary(code)?;
    }
    Ok(Formats(bytes))
}

/// What a format code says.
fn is_binary(code: &[u8]) -> Result<bool> {
    match code {
        [0, 0] => Ok(false),
        [0, 1] => Ok(true),
        other => {
            let code = other
                .iter()
                .fold(0, |code, byte| code << 8 | i32::from(*byte));
            let message = format!("unsupported format code: {}", code as i16);
            Err(violation(message))
        }
    }
}

fn target<'a>(reader: &mut BodyReader<'a>) -> Result<Target<'a>> {
    match reader.u8()? {
        b'S' => Ok(Target::Statement(reader.cstr()?)),
        b'P' => Ok(Target::Portal(reader.cstr()?)),
        other => Err(violation(format!("invalid message subtype {other}"))),
    }
}

fn put_target(out: &mut Vec<u8>, target: Target<'_>) {
    let (kind, name) = match target {
        Target::Statement(name) => (b'S', name),
        Target::Portal(name) => (b'P', name),
    };
    out.push(kind);
    put_cstr(out, name);
}
