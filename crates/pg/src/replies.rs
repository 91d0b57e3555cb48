//! What a statement shows, as messages: the [`Sink`](sql::Sink) of a session.

use ::sql::session as sql;
use ::sql::session::Format;
use base::coro;
use base::error::{Error, Result, SqlState};
use base::memory::Reservation;
use base::{Debt, Durability};

use crate::backend::{self, Backend, DataRow, Severity};
use crate::channel::{Channel, CopyInput, RowFormats};
use crate::log::Entry;
use crate::output::Content;

/// Puts what a statement shows into the output.
pub(crate) struct Replies<'a> {
    channel: &'a Channel,
    formats: RowFormats,
    /// The last tag, until it is known whether anything follows: at the end of a message inside a
    /// block it owes nothing.
    tag: Option<(sql::CommandTag, bool)>,
    /// Whether the statement has described or returned rows.
    pub shown: bool,
    /// The text of the statement, for the log.
    statement: Option<&'a str>,
    /// Whether it was logged.
    pub was_logged: bool,
    /// The memory of the last long row.
    leaving: Reservation,
    /// Whether a function was called by itself, so that its value is a message and no row.
    of_call: bool,
}

impl<'a> Replies<'a> {
    /// Replies to a message about a statement, rows in these formats.
    pub fn new(
        channel: &'a Channel,
        formats: RowFormats,
        statement: Option<&'a str>,
    ) -> Replies<'a> {
        Replies {
            channel,
            formats,
            tag: None,
            shown: false,
            statement,
            was_logged: false,
            leaving: Reservation::of("A row"),
            of_call: false,
        }
    }

    /// Replies to the call of a function, whose value is wanted in this format.
    pub fn to_call(channel: &'a Channel, format: Format) -> Replies<'a> {
        Replies {
            of_call: true,
            ..Replies::new(channel, RowFormats::All(format), None)
        }
    }

    fn push(&mut self, content: Content, write: impl FnOnce(&mut Vec<u8>)) {
        self.flush_tag(false);
        self.channel.output.borrow_mut().push(content, write);
    }

    /// Appends a message that is nothing but text.
    fn push_text(&mut self, content: Content, write: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        self.flush_tag(false);
        let encoding = self.channel.encoding.get();
        let mut output = self.channel.output.borrow_mut();
        output.try_push(content, |out| {
            let mark = out.len();
            write(out);
            backend::convert_text(out, mark, encoding)
        })
    }

    fn flush_tag(&mut self, in_block: bool) {
        let Some((tag, shown)) = self.tag.take() else {
            return;
        };
        let content = match in_block && !shown {
            true => Content::Free,
            false => Content::Tag,
        };
        let mut output = self.channel.output.borrow_mut();
        output.push(content, |out| put_tag(out, &tag));
    }

    /// The message has been handled; `in_block` says whether a block was and is open.
    pub fn finish(mut self, in_block: bool) {
        self.flush_tag(in_block);
    }
}

impl Replies<'_> {
    /// A row that is written apart, where that can give way.
    fn long_row(&mut self, row: &sql::RowView<'_>) -> Result<()> {
        let mut bytes = Vec::new();
        let mut message = DataRow::begin(&mut bytes, row.len());
        for column in 0..row.len() {
            match row.is_null(column) {
                true => message.value(None),
                false => message.write(|out| row.put(column, self.formats.get(column), out))?,
            }
            message.check()?;
            // It is copied to the output, where it stays until it has left.
            self.leaving.set(2 * message.bytes())?;
        }
        message.finish();
        coro::work(bytes.len())?;
        let mut output = self.channel.output.borrow_mut();
        output.try_push(Content::Shown, |out| {
            out.extend_from_slice(&bytes);
            Ok(())
        })
    }
}

impl Replies<'_> {
    /// The one value of a function.
    fn value(&mut self, row: &sql::RowView<'_>) -> Result<()> {
        let mut value = Vec::new();
        let is_null = row.is_null(0);
        if !is_null {
            row.put(0, self.formats.get(0), &mut value)?;
        }
        backend::check_value(value.len())?;
        // It is copied to the output, where it stays until it has left.
        self.leaving.set(2 * value.len())?;
        coro::work(value.len())?;
        self.push(Content::Shown, |out| {
            let value = (!is_null).then_some(&value[..]);
            Backend::FunctionCallResponse(value).encode(out);
        });
        Ok(())
    }
}

impl sql::Sink for Replies<'_> {
    fn owe(&mut self, debt: &Debt, durability: Durability) {
        self.flush_tag(false);
        self.channel.output.borrow_mut().owe(debt, durability);
    }

    fn committed(&mut self, commit: &Debt) {
        self.flush_tag(false);
        self.channel.output.borrow_mut().committed(commit);
    }

    fn row_description(&mut self, columns: &[sql::Column]) -> Result<()> {
        self.flush_tag(false);
        self.shown = true;
        let encoding = self.channel.encoding.get();
        let mut output = self.channel.output.borrow_mut();
        output.try_push(Content::Shown, |out| {
            put_description(out, Some(columns), &RowFormats::All(Format::Text), encoding)
        })
    }

    fn row(&mut self, row: &sql::RowView<'_>) -> Result<()> {
        self.channel.wait_for_room()?;
        self.shown = true;
        if self.of_call {
            return self.value(row);
        }
        let formats = &self.formats;
        if row.is_long() {
            return self.long_row(row);
        }
        let mut output = self.channel.output.borrow_mut();
        output.try_push(Content::Shown, |out| {
            let mut message = DataRow::begin(out, row.len());
            for column in 0..row.len() {
                if row.is_null(column) {
                    message.value(None);
                } else {
                    message.write(|out| row.put(column, formats.get(column), out))?;
                }
            }
            message.check()?;
            message.finish();
            Ok(())
        })
    }

    fn command_complete(&mut self, tag: &sql::CommandTag) -> Result<()> {
        self.flush_tag(false);
        self.tag = Some((*tag, std::mem::take(&mut self.shown)));
        Ok(())
    }

    fn empty_query(&mut self) -> Result<()> {
        self.push(Content::Free, |out| Backend::EmptyQueryResponse.encode(out));
        Ok(())
    }

    fn notice(&mut self, notice: &sql::Notice) -> Result<()> {
        self.channel.wait_for_room()?;
        self.push_text(Content::Shown, |out| {
            backend::put_notice(out, severity_of(notice), &notice.body);
        })?;
        self.channel.output.borrow_mut().flush();
        Ok(())
    }

    fn log_notice(&mut self, notice: &sql::Notice, context: &sql::LogContext) {
        let entry = Entry {
            level: notice.severity.level(),
            body: &notice.body,
            statement: self.statement,
        };
        self.channel.log.write(&entry, context);
    }

    fn log_statement(&mut self, text: &str, detail: Option<String>, context: &sql::LogContext) {
        self.was_logged = true;
        let message = format!("statement: {}", sql::secrets::mask(text));
        let mut body = Error::new(SqlState::SUCCESSFUL_COMPLETION, message);
        body.fields_mut().detail = detail.map(|detail| sql::secrets::mask(&detail).into_owned());
        let entry = Entry {
            level: sql::LogLevel::Log,
            body: &body,
            statement: None,
        };
        self.channel.log.write(&entry, context);
    }

    fn parameter_status(&mut self, name: &str, value: &str) -> Result<()> {
        if name == "client_encoding" {
            let encoding = sql::Encoding::by_name(value);
            self.channel.encoding.set(encoding.unwrap_or_default());
        }
        self.push_text(Content::Tag, |out| {
            Backend::ParameterStatus(name.as_bytes(), value.as_bytes()).encode(out);
        })
    }

    fn copy_in(&mut self, columns: usize, format: Format) -> Result<()> {
        self.shown = true;
        self.push(Content::Shown, |out| {
            Backend::CopyInResponse(columns, format == Format::Binary).encode(out);
        });
        self.channel.output.borrow_mut().flush();
        Ok(())
    }

    fn copy_data(&mut self, data: &mut Vec<u8>) -> Result<bool> {
        loop {
            match self.channel.take_copy_data(data)? {
                CopyInput::Data => return Ok(true),
                CopyInput::Done => return Ok(false),
                CopyInput::NotYet => {}
            }
            let arrived = || self.channel.input.borrow().has_message().then_some(());
            coro::wait(self.channel.arrived.until(arrived))?;
        }
    }

    fn copy_out(&mut self, columns: usize, format: Format) -> Result<()> {
        self.shown = true;
        self.push(Content::Shown, |out| {
            Backend::CopyOutResponse(columns, format == Format::Binary).encode(out);
        });
        Ok(())
    }

    fn copy_row(&mut self, bytes: &[u8]) -> Result<()> {
        self.channel.wait_for_room()?;
        let mut output = self.channel.output.borrow_mut();
        output.push(Content::Shown, |out| Backend::CopyData(bytes).encode(out));
        Ok(())
    }

    fn copy_done(&mut self) -> Result<()> {
        self.push(Content::Free, |out| Backend::CopyDone.encode(out));
        Ok(())
    }
}

/// Appends CommandComplete.
pub(crate) fn put_tag(out: &mut Vec<u8>, tag: &sql::CommandTag) {
    use std::io::Write;
    crate::frame::put_message(out, b'C', |out| {
        // Writing to memory does not fail.
        let _ = write!(out, "{tag}\0");
    });
}

/// Appends RowDescription, or NoData, for a client of an encoding.
///
/// # Errors
/// 22P05 for a name that it has not; nothing is appended then.
pub(crate) fn put_description(
    out: &mut Vec<u8>,
    columns: Option<&[sql::Column]>,
    formats: &RowFormats,
    encoding: sql::Encoding,
) -> Result<()> {
    let Some(columns) = columns else {
        Backend::NoData.encode(out);
        return Ok(());
    };
    let names = columns.iter().map(|column| encoding.encode(&column.name));
    let names = match encoding.is_kept() {
        true => None,
        false => Some(names.collect::<Result<Vec<_>>>()?),
    };
    let columns = columns.iter().enumerate();
    backend::put_columns(
        out,
        columns.map(|(index, column)| backend::Column {
            name: match &names {
                None => column.name.as_bytes(),
                Some(names) => &names[index],
            },
            table: column.table.0,
            attribute: column.number,
            type_oid: column.type_oid.0,
            type_length: column.type_len,
            modifier: column.type_mod,
            binary: formats.get(index) == Format::Binary,
        }),
    );
    Ok(())
}

/// How severe a notice is in the protocol's words.
pub fn severity_of(notice: &sql::Notice) -> Severity {
    match notice.severity {
        sql::NoticeSeverity::Debug => Severity::Debug,
        sql::NoticeSeverity::Log => Severity::Log,
        sql::NoticeSeverity::Info => Severity::Info,
        sql::NoticeSeverity::Notice => Severity::Notice,
        sql::NoticeSeverity::Warning => Severity::Warning,
    }
}
