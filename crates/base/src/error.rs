//! The one error type of Quorate: a SQLSTATE, PostgreSQL's wording, and what may be done about it.
//!
//! ```
//! use base::error::{Error, SqlState};
//! let error = Error::new(SqlState::DIVISION_BY_ZERO, "division by zero");
//! assert_eq!(error.to_string(), "ERROR 22012: division by zero");
//! ```
//!
//! Source: PostgreSQL 15 manual, appendix A (error codes) and section 55.8 (error fields).

use std::fmt;

/// What every fallible function of Quorate returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A five-character SQLSTATE.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SqlState(pub [u8; 5]);

macro_rules! states {
    ($($name:ident = $code:literal;)*) => {
        #[allow(missing_docs)]
        impl SqlState { $(pub const $name: SqlState = SqlState::of($code);)* }
    };
}

impl SqlState {
    /// The state of five ASCII characters; anything else is a compile-time error in a constant.
    pub const fn of(code: &str) -> SqlState {
        let bytes = code.as_bytes();
        assert!(bytes.len() == 5, "a SQLSTATE has five characters");
        SqlState([bytes[0], bytes[1], bytes[2], bytes[3], bytes[4]])
    }

    /// The state of that code, if it is one.
    pub fn parse(code: &str) -> Option<SqlState> {
        let bytes: [u8; 5] = code.as_bytes().try_into().ok()?;
        bytes
            .iter()
            .all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
            .then_some(SqlState(bytes))
    }

    /// The five characters.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("XX000")
    }
}

states! {
    SUCCESSFUL_COMPLETION = "00000";
    WARNING = "01000";
    CONNECTION_FAILURE = "08006";
    TRANSACTION_RESOLUTION_UNKNOWN = "08007";
    PROTOCOL_VIOLATION = "08P01";
    FEATURE_NOT_SUPPORTED = "0A000";
    CARDINALITY_VIOLATION = "21000";
    STRING_DATA_RIGHT_TRUNCATION = "22001";
    NUMERIC_VALUE_OUT_OF_RANGE = "22003";
    NULL_VALUE_NOT_ALLOWED = "22004";
    INVALID_DATETIME_FORMAT = "22007";
    DATETIME_FIELD_OVERFLOW = "22008";
    ZERO_LENGTH_CHARACTER_STRING = "2200F";
    DIVISION_BY_ZERO = "22012";
    INVALID_PRECEDING_OR_FOLLOWING_SIZE = "22013";
    INVALID_ARGUMENT_FOR_NTILE = "22014";
    INTERVAL_FIELD_OVERFLOW = "22015";
    INVALID_ARGUMENT_FOR_NTH_VALUE = "22016";
    CHARACTER_NOT_IN_REPERTOIRE = "22021";
    INVALID_PARAMETER_VALUE = "22023";
    ARRAY_SUBSCRIPT_ERROR = "2202E";
    INVALID_TEXT_REPRESENTATION = "22P02";
    INVALID_BINARY_REPRESENTATION = "22P03";
    BAD_COPY_FILE_FORMAT = "22P04";
    NOT_NULL_VIOLATION = "23502";
    FOREIGN_KEY_VIOLATION = "23503";
    UNIQUE_VIOLATION = "23505";
    EXCLUSION_VIOLATION = "23P01";
    CHECK_VIOLATION = "23514";
    INVALID_CURSOR_STATE = "24000";
    ACTIVE_SQL_TRANSACTION = "25001";
    READ_ONLY_SQL_TRANSACTION = "25006";
    NO_ACTIVE_SQL_TRANSACTION = "25P01";
    IN_FAILED_SQL_TRANSACTION = "25P02";
    INVALID_SQL_STATEMENT_NAME = "26000";
    INVALID_TRANSACTION_TERMINATION = "2D000";
    INVALID_AUTHORIZATION = "28000";
    INVALID_SAVEPOINT = "3B001";
    INVALID_CURSOR_NAME = "34000";
    INVALID_CATALOG_NAME = "3D000";
    INVALID_SCHEMA_NAME = "3F000";
    SERIALIZATION_FAILURE = "40001";
    DEADLOCK_DETECTED = "40P01";
    INSUFFICIENT_PRIVILEGE = "42501";
    SYNTAX_ERROR = "42601";
    INVALID_NAME = "42602";
    DUPLICATE_COLUMN = "42701";
    AMBIGUOUS_COLUMN = "42702";
    UNDEFINED_COLUMN = "42703";
    UNDEFINED_OBJECT = "42704";
    DUPLICATE_OBJECT = "42710";
    DUPLICATE_ALIAS = "42712";
    DUPLICATE_FUNCTION = "42723";
    AMBIGUOUS_FUNCTION = "42725";
    GROUPING_ERROR = "42803";
    DATATYPE_MISMATCH = "42804";
    WRONG_OBJECT_TYPE = "42809";
    CANNOT_COERCE = "42846";
    UNDEFINED_FUNCTION = "42883";
    UNDEFINED_TABLE = "42P01";
    UNDEFINED_PARAMETER = "42P02";
    DUPLICATE_CURSOR = "42P03";
    DUPLICATE_DATABASE = "42P04";
    DUPLICATE_PREPARED_STATEMENT = "42P05";
    DUPLICATE_SCHEMA = "42P06";
    DUPLICATE_TABLE = "42P07";
    INVALID_COLUMN_REFERENCE = "42P10";
    INVALID_CURSOR_DEFINITION = "42P11";
    INVALID_TABLE_DEFINITION = "42P16";
    INDETERMINATE_DATATYPE = "42P18";
    WINDOWING_ERROR = "42P20";
    INSUFFICIENT_RESOURCES = "53000";
    DISK_FULL = "53100";
    OUT_OF_MEMORY = "53200";
    TOO_MANY_CONNECTIONS = "53300";
    CONFIGURATION_LIMIT_EXCEEDED = "53400";
    PROGRAM_LIMIT_EXCEEDED = "54000";
    STATEMENT_TOO_COMPLEX = "54001";
    TOO_MANY_COLUMNS = "54011";
    TOO_MANY_ARGUMENTS = "54023";
    OBJECT_NOT_IN_PREREQUISITE_STATE = "55000";
    OBJECT_IN_USE = "55006";
    CANT_CHANGE_RUNTIME_PARAM = "55P02";
    LOCK_NOT_AVAILABLE = "55P03";
    QUERY_CANCELED = "57014";
    ADMIN_SHUTDOWN = "57P01";
    CRASH_SHUTDOWN = "57P02";
    CANNOT_CONNECT_NOW = "57P03";
    IDLE_SESSION_TIMEOUT = "57P05";
    IO_ERROR = "58030";
    UNDEFINED_FILE = "58P01";
    RAISE_EXCEPTION = "P0001";
    INTERNAL_ERROR = "XX000";
    DATA_CORRUPTED = "XX001";
}

impl fmt::Debug for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What may be done about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// The statement or its data are at fault, or a limit was met; the session goes on.
    User,
    /// The engine itself raised it for locks, serialization or cancellation. It may be shown
    /// before the debt of its session is paid (DESIGN, P2), and a client may try again.
    Engine,
    /// The connection cannot go on (an outcome is unknown, a peer is gone).
    Session,
    /// The node cannot go on: a failed fsync, a bad checksum (DESIGN, P6).
    Node,
}

/// Everything that PostgreSQL's protocol can say of an error besides its state and message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorFields {
    /// DETAIL.
    pub detail: Option<String>,
    /// DETAIL for the server's log alone, in place of `detail`: what its client must not know.
    pub log_detail: Option<String>,
    /// HINT.
    pub hint: Option<String>,
    /// Character (not byte) position in the statement, from 1.
    pub position: Option<u32>,
    /// CONTEXT: where in a function or DO block.
    pub context: Option<String>,
    /// QUERY: the statement that a function or DO block made, if that is what failed.
    pub internal_query: Option<String>,
    /// Character position in it, from 1.
    pub internal_position: Option<u32>,
    /// The schema, table, column, data type and constraint that the error is about.
    pub schema: Option<String>,
    /// See `schema`.
    pub table: Option<String>,
    /// See `schema`.
    pub column: Option<String>,
    /// See `schema`.
    pub datatype: Option<String>,
    /// See `schema`.
    pub constraint: Option<String>,
    /// The function of PostgreSQL's source that raises it, of those that drivers go by.
    pub routine: Option<&'static str>,
}

/// An error with its SQLSTATE and PostgreSQL's wording.
#[derive(Clone, PartialEq, Eq)]
pub struct Error {
    inner: Box<Inner>,
}

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    state: SqlState,
    class: ErrorClass,
    message: String,
    fields: ErrorFields,
}

/// What is said of work that was lost with a leader.
const FAILOVER: &str = "could not serialize access due to a failover";

impl Error {
    /// An error of class [`ErrorClass::User`].
    pub fn new(state: SqlState, message: impl Into<String>) -> Error {
        Error::of_class(ErrorClass::User, state, message)
    }

    /// An error of the given class.
    pub fn of_class(class: ErrorClass, state: SqlState, message: impl Into<String>) -> Error {
        Error {
            inner: Box::new(Inner {
                state,
                class,
                message: message.into(),
                fields: ErrorFields::default(),
            }),
        }
    }

    /// 0A000: parsed and understood, but not there yet. `feature` completes "… is not supported".
    pub fn unsupported(feature: impl fmt::Display) -> Error {
        Error::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("{feature} is not supported"),
        )
    }

    /// XX000: an invariant of Quorate's own does not hold for this statement.
    pub fn internal(message: impl Into<String>) -> Error {
        Error::new(SqlState::INTERNAL_ERROR, message)
    }

    /// XX001, fatal for the node: what was read is not what was written.
    pub fn corrupted(message: impl Into<String>) -> Error {
        Error::of_class(ErrorClass::Node, SqlState::DATA_CORRUPTED, message)
    }

    /// 58030, fatal for the node: the operating system refused to read, write or sync.
    pub fn io(what: impl fmt::Display, cause: std::io::Error) -> Error {
        Error::of_class(
            ErrorClass::Node,
            SqlState::IO_ERROR,
            format!("could not {what}: {cause}"),
        )
    }

    /// 40001, raised by the engine itself.
    pub fn serialization(message: impl Into<String>) -> Error {
        Error::of_class(ErrorClass::Engine, SqlState::SERIALIZATION_FAILURE, message)
    }

    /// 40001: the leader was lost, or leads no longer, before anything was appended to the log.
    pub fn failover() -> Error {
        Error::serialization(FAILOVER)
    }

    /// Whether it is that.
    pub fn is_failover(&self) -> bool {
        self.class() == ErrorClass::Engine && self.message() == FAILOVER
    }

    /// The SQLSTATE.
    pub fn state(&self) -> SqlState {
        self.inner.state
    }

    /// What may be done about it.
    pub fn class(&self) -> ErrorClass {
        self.inner.class
    }

    /// The primary message.
    pub fn message(&self) -> &str {
        &self.inner.message
    }

    /// The optional fields.
    pub fn fields(&self) -> &ErrorFields {
        &self.inner.fields
    }

    /// The optional fields, to fill in.
    pub fn fields_mut(&mut self) -> &mut ErrorFields {
        &mut self.inner.fields
    }

    /// Puts others in the places of its texts: the message, and whatever of DETAIL, HINT and CONTEXT
    /// it has.
    pub fn change_texts(&mut self, change: impl Fn(String) -> String) {
        let inner = &mut *self.inner;
        inner.message = change(std::mem::take(&mut inner.message));
        let fields = &mut inner.fields;
        let texts = [
            &mut fields.detail,
            &mut fields.log_detail,
            &mut fields.hint,
            &mut fields.context,
        ];
        for text in texts.into_iter().flatten() {
            *text = change(std::mem::take(text));
        }
    }

    /// The same with DETAIL.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Error {
        self.inner.fields.detail = Some(detail.into());
        self
    }

    /// The same with another DETAIL for the server's log, which no client is shown.
    #[must_use]
    pub fn with_log_detail(mut self, detail: impl Into<String>) -> Error {
        self.inner.fields.log_detail = Some(detail.into());
        self
    }

    /// The same with HINT.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Error {
        self.inner.fields.hint = Some(hint.into());
        self
    }

    /// The same with a character position in the statement, from 1.
    #[must_use]
    pub fn at(mut self, position: u32) -> Error {
        self.inner.fields.position = Some(position);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ERROR {}: {}", self.inner.state, self.inner.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        if let Some(detail) = &self.inner.fields.detail {
            write!(f, " ({detail})")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
