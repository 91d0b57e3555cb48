//! A client without IO, for workloads and simulations: queries in, bytes out; bytes in, replies out.
//!
//! Every query, and everything up to one Sync, is answered with one [`Reply`], in order; any number
//! may be under way. The first reply answers the startup message.
//!
//! ```
//! use pg::client::Client;
//! let mut client = Client::new("ann", "bank", &[]);
//! client.query("select 1");
//! let bytes_for_the_server = client.outgoing();
//! # assert!(bytes_for_the_server.ends_with(b"select 1\0"));
//! client.feed(b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I");
//! assert!(client.poll().unwrap().is_some());
//! ```
//!
//! # What it leaves out
//! Authentication, COPY, and rows one at a time: a reply is collected whole.

use base::error::{Error, Result, SqlState};

use crate::backend::{Backend, Severity, TransactionStatus};
use crate::frame::{violation, Framer, Side};
use crate::frontend::{put_bind, put_parse, Frontend, Target};
use crate::startup::{put_startup, CancelKey, StartupParameters};

/// A nullable value as it was sent.
pub type Value = Option<Vec<u8>>;

/// One column of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultColumn {
    /// Its name.
    pub name: String,
    /// The OID of its type.
    pub type_oid: u32,
}

/// What one statement gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatementResult {
    /// Its columns, where it described them.
    pub columns: Vec<ResultColumn>,
    /// Its rows.
    pub rows: Vec<Vec<Value>>,
    /// What it was: `INSERT 0 1`; empty for an empty query and for a portal that was suspended.
    pub tag: String,
}

impl StatementResult {
    /// A value as text; none for NULL and for what is not there.
    pub fn text(&self, row: usize, column: usize) -> Option<&str> {
        let value = self.rows.get(row)?.get(column)?.as_deref()?;
        std::str::from_utf8(value).ok()
    }
}

/// The answer to one query, or to everything up to one Sync.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// What the statements gave that ended.
    pub results: Vec<StatementResult>,
    /// The error that ended it.
    pub error: Option<Error>,
    /// Notices, with their severities.
    pub notices: Vec<(Severity, Error)>,
    /// Whether the session is in a transaction block.
    pub status: TransactionStatus,
    /// Whether the connection has ended with the error.
    pub is_fatal: bool,
}

impl Reply {
    /// The reply, or its error.
    ///
    /// # Errors
    /// That of the reply.
    pub fn into_result(self) -> Result<Reply> {
        match self.error {
            Some(error) => Err(error),
            None => Ok(self),
        }
    }

    /// A value of the last statement as text.
    pub fn text(&self, row: usize, column: usize) -> Option<&str> {
        self.results.last()?.text(row, column)
    }

    /// The rows of the last statement.
    pub fn rows(&self) -> &[Vec<Value>] {
        self.results.last().map_or(&[], |result| &result.rows)
    }

    /// The SQLSTATE of the error, if there is one.
    pub fn state(&self) -> Option<SqlState> {
        self.error.as_ref().map(Error::state)
    }
}

/// One connection, seen from the client.
#[derive(Debug)]
pub struct Client {
    framer: Framer,
    outgoing: Vec<u8>,
    reply: Reply,
    /// The statement whose rows are coming.
    current: StatementResult,
    parameters: Vec<(String, String)>,
    key: Option<CancelKey>,
    /// Replies that are still to come.
    expected: usize,
    is_over: bool,
}

impl Client {
    /// A client that introduces itself.
    pub fn new(user: &str, database: &str, settings: &[(&str, &str)]) -> Client {
        let startup = StartupParameters {
            user: user.to_owned(),
            database: database.to_owned(),
            settings: settings
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            ..StartupParameters::default()
        };
        let mut outgoing = Vec::new();
        put_startup(&mut outgoing, &startup);
        Client {
            framer: Framer::new(Side::Backend),
            outgoing,
            reply: Reply::default(),
            current: StatementResult::default(),
            parameters: Vec::new(),
            key: None,
            expected: 1,
            is_over: false,
        }
    }

    // ---- What the client says ----

    /// A query of the simple protocol.
    pub fn query(&mut self, text: &str) {
        Frontend::Query(text.as_bytes()).encode(&mut self.outgoing);
        self.expected += 1;
    }

    /// Makes a prepared statement; answered with the next [`Client::sync`].
    pub fn parse(&mut self, name: &str, text: &str, types: &[u32]) {
        put_parse(&mut self.outgoing, name, text, types);
    }

    /// Asks for the columns of a prepared statement.
    pub fn describe(&mut self, name: &str) {
        Frontend::Describe(Target::Statement(name.as_bytes())).encode(&mut self.outgoing);
    }

    /// Executes a prepared statement with parameters in text.
    pub fn execute(&mut self, name: &str, values: &[Option<&[u8]>]) {
        self.bind("", name, values);
        self.execute_portal("", 0);
    }

    /// Makes a portal with parameters and results in text.
    pub fn bind(&mut self, portal: &str, name: &str, values: &[Option<&[u8]>]) {
        put_bind(&mut self.outgoing, portal, name, values, false);
    }

    /// Executes a portal for at most so many rows; 0 for all.
    pub fn execute_portal(&mut self, portal: &str, rows_max: u32) {
        let portal = portal.as_bytes();
        Frontend::Execute { portal, rows_max }.encode(&mut self.outgoing);
    }

    /// Ends what has been said since the last Sync; one reply answers it.
    pub fn sync(&mut self) {
        Frontend::Sync.encode(&mut self.outgoing);
        self.expected += 1;
    }

    /// Asks for what has been answered so far.
    pub fn flush(&mut self) {
        Frontend::Flush.encode(&mut self.outgoing);
    }

    /// Says goodbye.
    pub fn terminate(&mut self) {
        Frontend::Terminate.encode(&mut self.outgoing);
    }

    /// What is to be sent to the server.
    pub fn outgoing(&self) -> &[u8] {
        &self.outgoing
    }

    /// The first `count` bytes of [`Client::outgoing`] have been sent.
    pub fn sent(&mut self, count: usize) {
        self.outgoing.drain(..count);
    }

    // ---- What the server says ----

    /// Takes bytes from the server.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.framer.feed(bytes);
    }

    /// The next whole reply.
    ///
    /// # Errors
    /// 08P01 when the server sends nonsense.
    pub fn poll(&mut self) -> Result<Option<Reply>> {
        while let Some(frame) = self.framer.next()? {
            let message = Backend::decode(frame.kind, frame.body)?;
            match message {
                Backend::ReadyForQuery(status) => {
                    self.reply.status = status;
                    return Ok(Some(self.complete()));
                }
                Backend::ErrorResponse(severity, error) => {
                    self.current = StatementResult::default();
                    self.reply.error = Some(error);
                    if severity >= Severity::Fatal {
                        self.is_over = true;
                        self.reply.is_fatal = true;
                        return Ok(Some(self.complete()));
                    }
                }
                Backend::NoticeResponse(severity, notice) => {
                    self.reply.notices.push((severity, notice));
                }
                Backend::RowDescription(columns) => {
                    self.current.columns = columns
                        .iter()
                        .map(|column| ResultColumn {
                            name: String::from_utf8_lossy(column.name).into_owned(),
                            type_oid: column.type_oid,
                        })
                        .collect();
                }
                Backend::DataRow(values) => {
                    let row = values.iter().map(|value| value.map(<[u8]>::to_vec));
                    self.current.rows.push(row.collect());
                }
                Backend::CommandComplete(tag) => {
                    let mut result = std::mem::take(&mut self.current);
                    result.tag = String::from_utf8_lossy(tag).into_owned();
                    self.reply.results.push(result);
                }
                Backend::EmptyQueryResponse | Backend::PortalSuspended => {
                    let result = std::mem::take(&mut self.current);
                    self.reply.results.push(result);
                }
                Backend::ParameterStatus(name, value) => {
                    let name = String::from_utf8_lossy(name).into_owned();
                    let value = String::from_utf8_lossy(value).into_owned();
                    self.parameters.retain(|(known, _)| *known != name);
                    self.parameters.push((name, value));
                }
                Backend::BackendKeyData(key) => self.key = Some(key),
                Backend::Authentication(kind) => {
                    return Err(violation(format!("authentication {kind} is asked for")));
                }
                Backend::AuthenticationOk
                | Backend::NegotiateProtocolVersion(..)
                | Backend::NotificationResponse(..)
                | Backend::ParseComplete
                | Backend::BindComplete
                | Backend::CloseComplete
                | Backend::NoData
                | Backend::ParameterDescription(_)
                | Backend::CopyOutResponse(..)
                | Backend::CopyData(_)
                | Backend::CopyDone
                | Backend::FunctionCallResponse(_) => {}
                Backend::CopyInResponse(..) => {
                    return Err(Error::unsupported("COPY FROM STDIN of this client"));
                }
            }
        }
        Ok(None)
    }

    fn complete(&mut self) -> Reply {
        self.expected = self.expected.saturating_sub(1);
        std::mem::take(&mut self.reply)
    }

    /// Replies that are still to come; when the stream ends with some of them, their outcomes are
    /// unknown.
    pub fn expected(&self) -> usize {
        self.expected
    }

    /// Whether the server has ended the session.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// The settings that the server has reported.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let mut parameters = self.parameters.iter();
        let found = parameters.find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Names the session for a cancel request, once it has begun.
    pub fn cancel_key(&self) -> Option<CancelKey> {
        self.key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_collected_whole() {
        let mut client = Client::new("ann", "bank", &[("application_name", "test")]);
        let mut bytes = Vec::new();
        for message in [
            Backend::AuthenticationOk,
            Backend::ParameterStatus(b"server_version", b"15.0"),
            Backend::BackendKeyData(CancelKey { pid: 3, secret: 4 }),
            Backend::ReadyForQuery(TransactionStatus::Idle),
        ] {
            message.encode(&mut bytes);
        }
        client.feed(&bytes);
        assert_eq!(client.poll().unwrap(), Some(Reply::default()));
        assert_eq!(client.parameter("server_version"), Some("15.0"));
        assert_eq!(client.cancel_key(), Some(CancelKey { pid: 3, secret: 4 }));

        client.query("select 7; commit");
        let mut bytes = Vec::new();
        let mut row = crate::backend::DataRow::begin(&mut bytes, 1);
        row.value(Some(b"7"));
        row.finish();
        Backend::CommandComplete(b"SELECT 1").encode(&mut bytes);
        let error = Error::serialization("no");
        Backend::ErrorResponse(Severity::Error, error).encode(&mut bytes);
        Backend::ReadyForQuery(TransactionStatus::Failed).encode(&mut bytes);
        let (first, rest) = bytes.split_at(9);
        client.feed(first);
        assert_eq!(client.poll().unwrap(), None);
        assert_eq!(client.expected(), 1);
        client.feed(rest);
        let reply = client.poll().unwrap().unwrap();
        assert_eq!(reply.text(0, 0), Some("7"));
        assert_eq!(reply.state(), Some(SqlState::SERIALIZATION_FAILURE));
        assert_eq!(reply.status, TransactionStatus::Failed);
        assert_eq!((client.expected(), client.is_over()), (0, false));
    }
}
