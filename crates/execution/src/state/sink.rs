//! What a session shows, and to whom.

use base::{Debt, Durability, Error, Result};

use super::LogContext;
use crate::kept::RowStore;
use crate::settings::NoticeSeverity;
use types::{self, growth, Datum, EvalContext, TypeId};

/// The number of a catalog row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Oid(pub u32);

impl std::fmt::Debug for Oid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Oid({})", self.0)
    }
}

/// How a value is written on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Format {
    /// As text.
    #[default]
    Text,
    /// In the type's binary form.
    Binary,
}

/// A parameter as a client sent it.
#[derive(Clone, Copy, Debug)]
pub struct Param<'a> {
    /// How it is written.
    pub format: Format,
    /// Its bytes; none is NULL.
    pub value: Option<&'a [u8]>,
}

/// One column of a row description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The name.
    pub name: String,
    /// The table it comes from, or 0.
    pub table: Oid,
    /// Its number in that table, from 1, or 0.
    pub number: i16,
    /// The type.
    pub type_oid: Oid,
    /// The type's length in bytes, -1 when it varies.
    pub type_len: i16,
    /// The type's modifier, or -1.
    pub type_mod: i32,
}

/// What ReadyForQuery says of the transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionStatus {
    /// Not in a block.
    Idle,
    /// In a block.
    InBlock,
    /// In a block that has failed.
    Failed,
}

impl TransactionStatus {
    /// The byte of ReadyForQuery.
    pub fn as_byte(self) -> u8 {
        match self {
            TransactionStatus::Idle => b'I',
            TransactionStatus::InBlock => b'T',
            TransactionStatus::Failed => b'E',
        }
    }
}

/// What CommandComplete says: `SELECT 1`, `INSERT 0 5`, `CREATE TABLE`, ….
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandTag {
    /// The command's name.
    pub name: &'static str,
    /// The rows that it returned or changed, where the tag shows them.
    pub rows: Option<u64>,
}

impl std::fmt::Display for CommandTag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)?;
        match self.rows {
            // The zero was once the row's OID.
            Some(rows) if self.name == "INSERT" => write!(f, " 0 {rows}"),
            Some(rows) => write!(f, " {rows}"),
            None => Ok(()),
        }
    }
}

/// A message that is no error.
#[derive(Clone, Debug)]
pub struct Notice {
    /// How serious it is.
    pub severity: NoticeSeverity,
    /// Its state, message and fields.
    pub body: Error,
}

/// One row, to be written in the formats that the client asked for.
pub struct RowView<'a> {
    /// The values.
    pub values: &'a [Datum],
    /// Their types.
    pub types: &'a [TypeId],
    /// How they are written.
    pub context: &'a EvalContext,
}

impl std::fmt::Debug for RowView<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RowView({} columns)", self.len())
    }
}

impl RowView<'_> {
    /// How many columns it has.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether to write it takes long, or gives way on the way: to be written apart from what
    /// others use.
    pub fn is_long(&self) -> bool {
        const SHORT_BYTES_MAX: usize = 64 << 10;
        let nested = |value: &Datum| matches!(value, Datum::Array(_) | Datum::Record(_));
        let bytes: usize = self.values.iter().map(growth::bytes_of).sum();
        bytes > SHORT_BYTES_MAX || self.values.iter().any(nested)
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Whether a column is NULL.
    pub fn is_null(&self, column: usize) -> bool {
        self.values[column].is_null()
    }

    /// Appends a column, which is not NULL, in a format.
    ///
    /// # Errors
    /// 42883 when the type has no such format.
    pub fn put(&self, column: usize, format: Format, out: &mut Vec<u8>) -> Result<()> {
        let (value, ty) = (&self.values[column], self.types[column]);
        match (format, value) {
            (Format::Binary, _) => types::send(self.context, ty, value, out),
            // Most values are of these types, and need no memory on the way.
            (Format::Text, Datum::Int4(value)) => put_shown(value, out),
            (Format::Text, Datum::Int8(value)) => put_shown(value, out),
            (Format::Text, Datum::Int2(value)) => put_shown(value, out),
            (Format::Text, Datum::Text(value)) if ty.is_text_like() => {
                self.context.encoding.encode_onto(value, out)
            }
            (Format::Text, _) => {
                let mut text = String::new();
                types::text::write(self.context, ty, value, &mut text)?;
                self.context.encoding.encode_onto(&text, out)
            }
        }
    }
}

fn put_shown(value: impl std::fmt::Display, out: &mut Vec<u8>) -> Result<()> {
    use std::io::Write;
    // Writing to memory does not fail.
    let _ = write!(out, "{value}");
    Ok(())
}

/// Keeps rows, and hands everything else on.
pub struct KeptRows<'a> {
    to: &'a mut dyn Sink,
    rows: RowStore,
}

impl<'a> KeptRows<'a> {
    /// Keeps nothing yet.
    pub fn new(to: &'a mut dyn Sink) -> KeptRows<'a> {
        let rows = RowStore::of("The rows of a statement");
        KeptRows { to, rows }
    }

    /// The rows that were kept.
    pub fn into_rows(self) -> RowStore {
        self.rows
    }
}

impl Sink for KeptRows<'_> {
    fn owe(&mut self, debt: &Debt, durability: Durability) {
        self.to.owe(debt, durability);
    }

    fn committed(&mut self, commit: &Debt) {
        self.to.committed(commit);
    }

    fn row_description(&mut self, columns: &[Column]) -> Result<()> {
        self.to.row_description(columns)
    }

    fn row(&mut self, row: &RowView<'_>) -> Result<()> {
        self.rows.push(row.values.to_vec())
    }

    fn command_complete(&mut self, tag: &CommandTag) -> Result<()> {
        self.to.command_complete(tag)
    }

    fn empty_query(&mut self) -> Result<()> {
        self.to.empty_query()
    }

    fn notice(&mut self, notice: &Notice) -> Result<()> {
        self.to.notice(notice)
    }

    fn log_notice(&mut self, notice: &Notice, context: &LogContext) {
        self.to.log_notice(notice, context);
    }

    fn parameter_status(&mut self, name: &str, value: &str) -> Result<()> {
        self.to.parameter_status(name, value)
    }
}

/// Takes what a session shows, in order. Its methods run inside the statement's coroutine and may
/// wait, for instance when too much output is held.
pub trait Sink {
    /// Everything given from here on, until the end of the message, rests on this too and must not
    /// leave before it has settled at that level. Called again whenever the debt has grown.
    fn owe(&mut self, debt: &Debt, durability: Durability);

    /// The session has just appended a commit record, and the debt given with the next call of
    /// [`Sink::owe`] rests on it. Whoever gives up waiting for what follows can no longer be told
    /// that nothing happened (DESIGN, P5).
    fn committed(&mut self, commit: &Debt) {
        let _ = commit;
    }

    /// The columns of the rows that follow (simple protocol only).
    fn row_description(&mut self, columns: &[Column]) -> Result<()>;

    /// A row.
    fn row(&mut self, row: &RowView<'_>) -> Result<()>;

    /// The end of a statement (simple protocol only).
    fn command_complete(&mut self, tag: &CommandTag) -> Result<()>;

    /// The text held no statement (simple protocol only).
    fn empty_query(&mut self) -> Result<()>;

    /// A message that is no error, already filtered by `client_min_messages`.
    fn notice(&mut self, notice: &Notice) -> Result<()>;

    /// The same message for the server's log, not filtered.
    fn log_notice(&mut self, notice: &Notice, context: &LogContext) {
        let _ = (notice, context);
    }

    /// The message at hand has statements that `log_statement` wants in the server's log.
    fn log_statement(&mut self, text: &str, detail: Option<String>, context: &LogContext) {
        let _ = (text, detail, context);
    }

    /// A reported setting has changed.
    fn parameter_status(&mut self, name: &str, value: &str) -> Result<()>;

    /// COPY FROM STDIN begins: the client is asked for rows of so many columns.
    ///
    /// # Errors
    /// 0A000 where there is no client to ask.
    fn copy_in(&mut self, columns: usize, format: Format) -> Result<()> {
        let _ = (columns, format);
        Err(Error::unsupported("COPY FROM STDIN here"))
    }

    /// Appends what the client sends next; false when it has sent everything.
    ///
    /// # Errors
    /// 57014 when the client gives up.
    fn copy_data(&mut self, data: &mut Vec<u8>) -> Result<bool> {
        let _ = data;
        Ok(false)
    }

    /// COPY TO STDOUT begins: rows of so many columns follow, each with [`Sink::copy_row`].
    ///
    /// # Errors
    /// 0A000 where there is no client to send to.
    fn copy_out(&mut self, columns: usize, format: Format) -> Result<()> {
        let _ = (columns, format);
        Err(Error::unsupported("COPY TO STDOUT here"))
    }

    /// The bytes of one row, or of what stands before and behind the rows.
    fn copy_row(&mut self, bytes: &[u8]) -> Result<()> {
        let _ = bytes;
        Ok(())
    }

    /// The last row has been given.
    fn copy_done(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Shows nobody anything: for statements that no client has sent. Notices wait in the session.
pub struct Nowhere;

impl Sink for Nowhere {
    fn owe(&mut self, _: &Debt, _: Durability) {}
    fn row_description(&mut self, _: &[Column]) -> Result<()> {
        Ok(())
    }
    fn row(&mut self, _: &RowView<'_>) -> Result<()> {
        Ok(())
    }
    fn command_complete(&mut self, _: &CommandTag) -> Result<()> {
        Ok(())
    }
    fn empty_query(&mut self) -> Result<()> {
        Ok(())
    }
    fn notice(&mut self, _: &Notice) -> Result<()> {
        Ok(())
    }
    fn parameter_status(&mut self, _: &str, _: &str) -> Result<()> {
        Ok(())
    }
}
