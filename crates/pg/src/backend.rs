//! What servers send: encoded for sessions, decoded for clients of our own.
//!
//! Rows are the hot path: [`DataRow`] writes values straight into the output. Everything else is a
//! [`Backend`] message.
//!
//! Source: PostgreSQL 15 manual, sections 55.7 and 55.8.

use ::sql::session::Encoding;
use base::error::{Error, ErrorClass, Result, SqlState};
use base::limits::MESSAGE_BYTES_MAX;

use crate::frame::{put_count, put_cstr, put_message, violation, BodyReader};
use crate::frontend::{put_value, Values};
use crate::startup::CancelKey;

/// What stands before a value that is a message by itself.
const VALUE_HEAD_BYTES: usize = 8;

/// Whether a session is in a transaction block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TransactionStatus {
    /// Not in a block.
    #[default]
    Idle,
    /// In a block.
    Block,
    /// In a block that has failed and takes only its end.
    Failed,
}

impl TransactionStatus {
    /// As ReadyForQuery says it.
    pub fn code(self) -> u8 {
        match self {
            TransactionStatus::Idle => b'I',
            TransactionStatus::Block => b'T',
            TransactionStatus::Failed => b'E',
        }
    }

    /// Reads what ReadyForQuery says.
    ///
    /// # Errors
    /// FATAL 08P01 when it is no status.
    pub fn of(code: u8) -> Result<TransactionStatus> {
        match code {
            b'I' => Ok(TransactionStatus::Idle),
            b'T' => Ok(TransactionStatus::Block),
            b'E' => Ok(TransactionStatus::Failed),
            _ => Err(violation(format!("invalid transaction status {code}"))),
        }
    }
}

/// How severe an error or notice is, mildest first as `client_min_messages` orders them, apart
/// from `Info`, which is always sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Severity {
    Debug,
    Log,
    Notice,
    Warning,
    Error,
    Fatal,
    Panic,
    Info,
}

impl Severity {
    const ALL: [Severity; 8] = [
        Severity::Debug,
        Severity::Log,
        Severity::Notice,
        Severity::Warning,
        Severity::Error,
        Severity::Fatal,
        Severity::Panic,
        Severity::Info,
    ];

    /// As messages say it.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Debug => "DEBUG",
            Severity::Log => "LOG",
            Severity::Notice => "NOTICE",
            Severity::Warning => "WARNING",
            Severity::Error => "ERROR",
            Severity::Fatal => "FATAL",
            Severity::Panic => "PANIC",
            Severity::Info => "INFO",
        }
    }

    /// What an error of this class is to the client that receives it.
    pub fn of(class: ErrorClass) -> Severity {
        match class {
            ErrorClass::User | ErrorClass::Engine => Severity::Error,
            ErrorClass::Session => Severity::Fatal,
            ErrorClass::Node => Severity::Panic,
        }
    }
}

/// One column of a RowDescription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// The OID of the table it comes from, or 0.
    pub table: u32,
    /// Its number in that table, or 0.
    pub attribute: i16,
    /// The OID of its type.
    pub type_oid: u32,
    /// The length of its type; negative for a variable one.
    pub type_length: i16,
    /// Its type's modifier, or -1.
    pub modifier: i32,
    /// Whether its values come in binary.
    pub binary: bool,
}

/// A message from a server, as a client reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backend<'a> {
    /// The client is who it says.
    AuthenticationOk,
    /// Some other request for authentication, by its number.
    Authentication(i32),
    /// A setting that clients want to know.
    ParameterStatus(&'a [u8], &'a [u8]),
    /// Names the session for a CancelRequest.
    BackendKeyData(CancelKey),
    /// The newest minor version and the options that are not known.
    NegotiateProtocolVersion(i32, Vec<&'a [u8]>),
    /// The server waits for the next query.
    ReadyForQuery(TransactionStatus),
    /// The columns of rows to come.
    RowDescription(Vec<Column<'a>>),
    /// A row.
    DataRow(Values<'a>),
    /// A statement has ended.
    CommandComplete(&'a [u8]),
    /// A query string was empty.
    EmptyQueryResponse,
    /// An error.
    ErrorResponse(Severity, Error),
    /// A notice.
    NoticeResponse(Severity, Error),
    /// Another session's NOTIFY: its pid, channel and payload.
    NotificationResponse(i32, &'a [u8], &'a [u8]),
    /// A statement has been made.
    ParseComplete,
    /// A portal has been made.
    BindComplete,
    /// A statement or portal has been forgotten.
    CloseComplete,
    /// A statement returns no rows.
    NoData,
    /// The row limit was reached.
    PortalSuspended,
    /// The types of a statement's parameters.
    ParameterDescription(Vec<u32>),
    /// COPY FROM STDIN wants rows of so many columns; whether in binary.
    CopyInResponse(usize, bool),
    /// COPY TO STDOUT has rows of so many columns; whether in binary.
    CopyOutResponse(usize, bool),
    /// Data of a COPY TO STDOUT.
    CopyData(&'a [u8]),
    /// The end of that data.
    CopyDone,
    /// What a function has given that was called by itself.
    FunctionCallResponse(Option<&'a [u8]>),
}

impl<'a> Backend<'a> {
    /// Reads a whole message.
    ///
    /// # Errors
    /// 08P01 when it is malformed or of a type that is never sent here.
    pub fn decode(kind: u8, body: &'a [u8]) -> Result<Backend<'a>> {
        let mut reader = BodyReader::new(body);
        let message = match kind {
            b'R' => match reader.i32()? {
                0 => Backend::AuthenticationOk,
                other => return Ok(Backend::Authentication(other)),
            },
            b'S' => Backend::ParameterStatus(reader.cstr()?, reader.cstr()?),
            b'K' => Backend::BackendKeyData(CancelKey {
                pid: reader.i32()?,
                secret: reader.i32()?,
            }),
            b'v' => {
                let minor = reader.i32()?;
                let count = reader.i32()?;
                let names = (0..count).map(|_| reader.cstr()).collect::<Result<_>>()?;
                Backend::NegotiateProtocolVersion(minor, names)
            }
            b'Z' => Backend::ReadyForQuery(TransactionStatus::of(reader.u8()?)?),
            b'T' => Backend::RowDescription(read_columns(&mut reader)?),
            b'D' => Backend::DataRow(Values::read(&mut reader)?),
            b'C' => Backend::CommandComplete(reader.cstr()?),
            b'I' => Backend::EmptyQueryResponse,
            b'E' => {
                let (severity, error) = read_error(&mut reader)?;
                Backend::ErrorResponse(severity, error)
            }
            b'N' => {
                let (severity, error) = read_error(&mut reader)?;
                Backend::NoticeResponse(severity, error)
            }
            b'A' => Backend::NotificationResponse(reader.i32()?, reader.cstr()?, reader.cstr()?),
            b'1' => Backend::ParseComplete,
            b'2' => Backend::BindComplete,
            b'3' => Backend::CloseComplete,
            b'n' => Backend::NoData,
            b's' => Backend::PortalSuspended,
            b't' => {
                let count = reader.count()?;
                let types = (0..count).map(|_| Ok(reader.i32()? as u32));
                Backend::ParameterDescription(types.collect::<Result<_>>()?)
            }
            b'G' | b'H' => {
                let binary = reader.u8()? != 0;
                let columns = reader.count()?;
                reader.take(2 * columns)?;
                match kind {
                    b'G' => Backend::CopyInResponse(columns, binary),
                    _ => Backend::CopyOutResponse(columns, binary),
                }
            }
            b'd' => Backend::CopyData(reader.take_rest()),
            b'c' => Backend::CopyDone,
            b'V' => Backend::FunctionCallResponse(reader.value()?),
            _ => return Err(violation(format!("invalid backend message type {kind}"))),
        };
        reader.finish()?;
        Ok(message)
    }

    /// Appends the message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Backend::AuthenticationOk => put_authentication(out, 0),
            Backend::Authentication(kind) => put_authentication(out, *kind),
            Backend::ParameterStatus(name, value) => put_message(out, b'S', |out| {
                put_cstr(out, name);
                put_cstr(out, value);
            }),
            Backend::BackendKeyData(key) => put_message(out, b'K', |out| {
                out.extend_from_slice(&key.pid.to_be_bytes());
                out.extend_from_slice(&key.secret.to_be_bytes());
            }),
            Backend::NegotiateProtocolVersion(minor, names) => put_message(out, b'v', |out| {
                out.extend_from_slice(&minor.to_be_bytes());
                out.extend_from_slice(&(names.len() as u32).to_be_bytes());
                names.iter().for_each(|name| put_cstr(out, name));
            }),
            Backend::ReadyForQuery(status) => put_message(out, b'Z', |out| out.push(status.code())),
            Backend::RowDescription(columns) => put_columns(out, columns.iter().copied()),
            Backend::DataRow(values) => {
                let mut row = DataRow::begin(out, values.count());
                values.iter().for_each(|value| row.value(value));
                row.finish();
            }
            Backend::CommandComplete(tag) => put_message(out, b'C', |out| put_cstr(out, tag)),
            Backend::EmptyQueryResponse => put_message(out, b'I', |_| {}),
            Backend::ErrorResponse(severity, error) => put_error(out, *severity, error),
            Backend::NoticeResponse(severity, notice) => put_notice(out, *severity, notice),
            Backend::NotificationResponse(pid, channel, payload) => put_message(out, b'A', |out| {
                out.extend_from_slice(&pid.to_be_bytes());
                put_cstr(out, channel);
                put_cstr(out, payload);
            }),
            Backend::ParseComplete => put_message(out, b'1', |_| {}),
            Backend::BindComplete => put_message(out, b'2', |_| {}),
            Backend::CloseComplete => put_message(out, b'3', |_| {}),
            Backend::NoData => put_message(out, b'n', |_| {}),
            Backend::PortalSuspended => put_message(out, b's', |_| {}),
            Backend::ParameterDescription(types) => {
                put_parameter_description(out, types.iter().copied());
            }
            Backend::CopyInResponse(columns, binary) => {
                put_copy_response(out, b'G', *columns, *binary);
            }
            Backend::CopyOutResponse(columns, binary) => {
                put_copy_response(out, b'H', *columns, *binary);
            }
            Backend::CopyData(data) => put_message(out, b'd', |out| out.extend_from_slice(data)),
            Backend::CopyDone => put_message(out, b'c', |_| {}),
            Backend::FunctionCallResponse(value) => {
                put_message(out, b'V', |out| put_value(out, *value));
            }
        }
    }
}

/// Appends a CopyInResponse or CopyOutResponse, in which all columns have the same format.
fn put_copy_response(out: &mut Vec<u8>, kind: u8, columns: usize, binary: bool) {
    put_message(out, kind, |out| {
        out.push(u8::from(binary));
        put_count(out, columns);
        for _ in 0..columns {
            out.extend_from_slice(&i16::from(binary).to_be_bytes());
        }
    });
}

fn put_authentication(out: &mut Vec<u8>, kind: i32) {
    put_message(out, b'R', |out| out.extend_from_slice(&kind.to_be_bytes()));
}

/// AuthenticationSASLContinue.
pub const SASL_CONTINUE: i32 = 11;

/// AuthenticationSASLFinal.
pub const SASL_FINAL: i32 = 12;

/// AuthenticationSASL.
const SASL: i32 = 10;

/// Appends an AuthenticationSASL that offers mechanisms.
pub fn put_sasl_mechanisms(out: &mut Vec<u8>, mechanisms: &[&str]) {
    put_message(out, b'R', |out| {
        out.extend_from_slice(&SASL.to_be_bytes());
        mechanisms
            .iter()
            .for_each(|name| put_cstr(out, name.as_bytes()));
        out.push(0);
    });
}

/// Appends what a mechanism says: [`SASL_CONTINUE`] or [`SASL_FINAL`].
pub fn put_sasl_data(out: &mut Vec<u8>, kind: i32, data: &[u8]) {
    put_message(out, b'R', |out| {
        out.extend_from_slice(&kind.to_be_bytes());
        out.extend_from_slice(data);
    });
}

/// Appends a ParameterDescription.
pub fn put_parameter_description(out: &mut Vec<u8>, types: impl ExactSizeIterator<Item = u32>) {
    put_message(out, b't', |out| {
        put_count(out, types.len());
        types.for_each(|oid| out.extend_from_slice(&oid.to_be_bytes()));
    });
}

/// Appends a RowDescription.
pub fn put_columns<'a>(out: &mut Vec<u8>, columns: impl ExactSizeIterator<Item = Column<'a>>) {
    put_message(out, b'T', |out| {
        put_count(out, columns.len());
        for column in columns {
            put_cstr(out, column.name);
            out.extend_from_slice(&column.table.to_be_bytes());
            out.extend_from_slice(&column.attribute.to_be_bytes());
            out.extend_from_slice(&column.type_oid.to_be_bytes());
            out.extend_from_slice(&column.type_length.to_be_bytes());
            out.extend_from_slice(&column.modifier.to_be_bytes());
            out.extend_from_slice(&i16::from(column.binary).to_be_bytes());
        }
    });
}

fn read_columns<'a>(reader: &mut BodyReader<'a>) -> Result<Vec<Column<'a>>> {
    let count = reader.count()?;
    (0..count)
        .map(|_| {
            Ok(Column {
                name: reader.cstr()?,
                table: reader.i32()? as u32,
                attribute: reader.i16()?,
                type_oid: reader.i32()? as u32,
                type_length: reader.i16()?,
                modifier: reader.i32()?,
                binary: reader.i16()? != 0,
            })
        })
        .collect()
}

/// Writes one DataRow straight into the output.
///
/// ```
/// use pg::backend::DataRow;
/// let mut out = Vec::new();
/// let mut row = DataRow::begin(&mut out, 2);
/// row.value(Some(b"1"));
/// row.value(None);
/// row.finish();
/// assert_eq!(out, b"D\0\0\0\x0f\0\x02\0\0\0\x011\xff\xff\xff\xff");
/// ```
#[derive(Debug)]
pub struct DataRow<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    missing: usize,
}

impl<'a> DataRow<'a> {
    /// Begins a row of so many columns.
    pub fn begin(out: &'a mut Vec<u8>, columns: usize) -> DataRow<'a> {
        out.push(b'D');
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        put_count(out, columns);
        DataRow {
            out,
            start,
            missing: columns,
        }
    }

    /// The next column's value.
    pub fn value(&mut self, value: Option<&[u8]>) {
        self.missing -= 1;
        put_value(self.out, value);
    }

    /// The next column's value, which `write` appends.
    ///
    /// # Errors
    /// That of `write`; what was written of the row must then be given up.
    pub fn write(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<()> {
        self.missing -= 1;
        let start = self.out.len();
        self.out.extend_from_slice(&[0; 4]);
        write(self.out)?;
        let length = self.out.len() - start - 4;
        let length = i32::try_from(length).map_err(|_| too_long())?;
        self.out[start..start + 4].copy_from_slice(&length.to_be_bytes());
        Ok(())
    }

    /// The memory of what there is of the row and before it, in bytes.
    pub fn bytes(&self) -> usize {
        self.out.capacity()
    }

    /// Whether what there is of the row fits a message.
    ///
    /// # Errors
    /// 54000.
    pub fn check(&self) -> Result<()> {
        match self.out.len() - self.start <= MESSAGE_BYTES_MAX {
            true => Ok(()),
            false => Err(too_long()),
        }
    }

    /// Completes the row.
    pub fn finish(self) {
        assert_eq!(self.missing, 0, "a row lacks {} columns", self.missing);
        let length = self.out.len() - self.start;
        let length = u32::try_from(length).expect("rows are limited before they get here");
        self.out[self.start..self.start + 4].copy_from_slice(&length.to_be_bytes());
    }
}

/// Whether a value that has so many bytes fits a message.
///
/// # Errors
/// 54000.
pub fn check_value(bytes: usize) -> Result<()> {
    match bytes <= MESSAGE_BYTES_MAX - VALUE_HEAD_BYTES {
        true => Ok(()),
        false => Err(too_long()),
    }
}

fn too_long() -> Error {
    Error::new(
        SqlState::PROGRAM_LIMIT_EXCEEDED,
        "a value is too long for the protocol",
    )
}

/// Puts the message that begins at a mark, in which all but its length is text, into a client's
/// encoding.
///
/// # Errors
/// 22P05; what stands behind the mark is of no use then.
pub fn convert_text(out: &mut Vec<u8>, mark: usize, encoding: Encoding) -> Result<()> {
    const HEAD_BYTES: usize = 5;
    if encoding.is_kept() {
        return Ok(());
    }
    encoding.encode_from(mark + HEAD_BYTES, out)?;
    let length = u32::try_from(out.len() - mark - 1).map_err(|_| too_long())?;
    out[mark + 1..mark + HEAD_BYTES].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

/// Appends an ErrorResponse.
pub fn put_error(out: &mut Vec<u8>, severity: Severity, error: &Error) {
    put_message(out, b'E', |out| put_error_fields(out, severity, error));
}

/// Appends a NoticeResponse.
pub fn put_notice(out: &mut Vec<u8>, severity: Severity, notice: &Error) {
    put_message(out, b'N', |out| put_error_fields(out, severity, notice));
}

fn put_error_fields(out: &mut Vec<u8>, severity: Severity, error: &Error) {
    let mut put = |code: u8, text: &str| {
        out.push(code);
        put_cstr(out, text.as_bytes());
    };
    put(b'S', severity.name());
    put(b'V', severity.name());
    put(b'C', error.state().as_str());
    put(b'M', error.message());
    let fields = error.fields();
    let position = fields.position.map(|position| position.to_string());
    let internal_position = fields
        .internal_position
        .map(|position| position.to_string());
    let optional = [
        (b'D', &fields.detail),
        (b'H', &fields.hint),
        (b'P', &position),
        (b'p', &internal_position),
        (b'q', &fields.internal_query),
        (b'W', &fields.context),
        (b's', &fields.schema),
        (b't', &fields.table),
        (b'c', &fields.column),
        (b'd', &fields.datatype),
        (b'n', &fields.constraint),
    ];
    for (code, text) in optional {
        if let Some(text) = text {
            put(code, text);
        }
    }
    if let Some(routine) = fields.routine {
        put(b'R', routine);
    }
    out.push(0);
}

/// Reads the fields of an error or notice. Its class follows from what was sent: FATAL and PANIC
/// end the session, and 40001, 40P01, 55P03 and 57014 are taken for the engine's own.
fn read_error(reader: &mut BodyReader<'_>) -> Result<(Severity, Error)> {
    let mut severity = Severity::Error;
    let mut state = SqlState::INTERNAL_ERROR;
    let mut message = String::new();
    let mut fields = base::error::ErrorFields::default();
    loop {
        let code = reader.u8()?;
        if code == 0 {
            break;
        }
        let text = String::from_utf8_lossy(reader.cstr()?).into_owned();
        match code {
            b'V' => {
                let known = Severity::ALL.into_iter().find(|known| known.name() == text);
                severity = known.unwrap_or(Severity::Error);
            }
            b'C' => match <[u8; 5]>::try_from(text.as_bytes()) {
                Ok(code) => state = SqlState(code),
                Err(_) => return Err(violation(format!("invalid SQLSTATE {text}"))),
            },
            b'M' => message = text,
            b'D' => fields.detail = Some(text),
            b'H' => fields.hint = Some(text),
            b'P' => fields.position = text.parse().ok(),
            b'p' => fields.internal_position = text.parse().ok(),
            b'q' => fields.internal_query = Some(text),
            b'W' => fields.context = Some(text),
            b's' => fields.schema = Some(text),
            b't' => fields.table = Some(text),
            b'c' => fields.column = Some(text),
            b'd' => fields.datatype = Some(text),
            b'n' => fields.constraint = Some(text),
            _ => {}
        }
    }
    let class = match severity {
        Severity::Fatal => ErrorClass::Session,
        Severity::Panic => ErrorClass::Node,
        _ if matches!(state.as_str(), "40001" | "40P01" | "55P03" | "57014") => ErrorClass::Engine,
        _ => ErrorClass::User,
    };
    let mut error = Error::of_class(class, state, message);
    *error.fields_mut() = fields;
    Ok((severity, error))
}
