//! Rows of COPY FROM: lines or tuples into values, and what an error says of where it was.

use std::sync::Arc;

use base::{Error, Result};

use super::bad_format;
use super::binary::{self, More};
use super::lines::{Fields, Lines};
use super::options::{Header, Layout, Options};
use catalog::Table;
use types::encoding::Encoding;
use types::{self, Datum, EvalContext};

/// Bytes of data that the context of an error shows at most.
const SHOWN_BYTES_MAX: usize = 100;

/// Where an error is found.
#[derive(Clone, Debug)]
enum Spot {
    /// In the line, before it is read.
    Unread,
    /// In the line that was read.
    Line,
    /// In a column, whose text is shown where there is one.
    Column(usize, Option<String>),
    /// In the row of an earlier line.
    Earlier(u64),
}

/// Reads rows.
pub(super) struct Rows<'o> {
    options: &'o Options,
    table: Arc<Table>,
    /// The places of the columns that are read, in the order in which they come.
    columns: &'o [usize],
    /// By field: the null text is a value; a quoted null text is NULL.
    force: Vec<(bool, bool)>,
    lines: Lines,
    fields: Fields,
    binary: binary::Fields,
    begun: bool,
    spot: Spot,
}

impl<'o> Rows<'o> {
    /// Nothing read yet. `force` says of each field whether it is FORCE_NOT_NULL and FORCE_NULL.
    pub fn new(
        options: &'o Options,
        table: Arc<Table>,
        columns: &'o [usize],
        force: Vec<(bool, bool)>,
    ) -> Rows<'o> {
        Rows {
            options,
            table,
            columns,
            force,
            lines: Lines::new(),
            fields: Fields::default(),
            binary: binary::Fields::default(),
            begun: false,
            spot: Spot::Unread,
        }
    }

    /// The number of the line that was read last.
    pub fn number(&self) -> u64 {
        self.lines.number
    }

    /// Bytes of the line that was read last.
    pub fn line_bytes(&self) -> usize {
        self.lines.line().len()
    }

    /// What follows concerns the row of an earlier line.
    pub fn look_back(&mut self, number: u64) {
        self.spot = Spot::Earlier(number);
    }

    /// The context of an error that is found now.
    pub fn context(&self) -> String {
        let table = &self.table.name;
        let number = self.lines.number;
        let is_binary = self.options.is_binary();
        match &self.spot {
            Spot::Unread => format!("COPY {table}, line {number}"),
            Spot::Earlier(number) => format!("COPY {table}, line {number}"),
            Spot::Line if is_binary => format!("COPY {table}, line {number}"),
            Spot::Line => {
                let line = String::from_utf8_lossy(self.lines.line());
                format!("COPY {table}, line {number}: \"{}\"", shown(&line))
            }
            Spot::Column(place, text) => {
                let column = &self.table.columns[*place].name;
                match text {
                    _ if is_binary => format!("COPY {table}, line {number}, column {column}"),
                    None => format!("COPY {table}, line {number}, column {column}: null input"),
                    Some(text) => format!(
                        "COPY {table}, line {number}, column {column}: \"{}\"",
                        shown(text)
                    ),
                }
            }
        }
    }

    /// The encoding of the data, for a client of that encoding. What is binary is converted value by
    /// value.
    pub fn encoding(&self, client: Encoding) -> Encoding {
        match self.options.layout {
            Layout::Binary => Encoding::UTF8,
            _ => self.options.encoding.unwrap_or(client),
        }
    }

    /// Reads a row into `values`, one for each column; false when there is none.
    ///
    /// # Errors
    /// What is wrong with it; [`Rows::context`] says where.
    pub fn next(
        &mut self,
        eval: &EvalContext,
        values: &mut Vec<Datum>,
        more: &mut More<'_>,
    ) -> Result<bool> {
        values.clear();
        self.spot = Spot::Unread;
        if self.options.layout == Layout::Binary {
            return self.next_binary(eval, values, more);
        }
        if !std::mem::replace(&mut self.begun, true) && self.options.header != Header::None {
            if !self.next_line(more)? {
                return Ok(false);
            }
            if self.options.header == Header::Match {
                self.check_header()?;
            }
        }
        if !self.next_line(more)? {
            return Ok(false);
        }
        self.read_fields(eval, values)?;
        self.spot = Spot::Line;
        Ok(true)
    }

    fn next_line(&mut self, more: &mut More<'_>) -> Result<bool> {
        self.spot = Spot::Unread;
        if !self.lines.next(self.options, more)? {
            return Ok(false);
        }
        self.lines.check_text()?;
        self.spot = Spot::Line;
        self.fields.split(self.lines.line(), self.options)?;
        Ok(true)
    }

    fn read_fields(&mut self, eval: &EvalContext, values: &mut Vec<Datum>) -> Result<()> {
        let is_blank = self.columns.is_empty() && self.lines.line().is_empty();
        if self.fields.len() > self.columns.len() && !is_blank {
            return Err(bad_format("extra data after last expected column"));
        }
        let null = self.options.null.as_str();
        for (field, place) in self.columns.iter().enumerate() {
            let column = &self.table.columns[*place];
            if field >= self.fields.len() {
                let message = format!("missing data for column \"{}\"", column.name);
                return Err(bad_format(message));
            }
            let (not_null, is_null) = self.force.get(field).copied().unwrap_or_default();
            let text = match self.fields.get(field)? {
                None if not_null => Some(null),
                Some(text) if is_null && text == null => None,
                text => text,
            };
            let Some(text) = text else {
                values.push(Datum::Null);
                continue;
            };
            match types::input(eval, column.type_id, column.typmod, text) {
                Ok(value) => values.push(value),
                Err(error) => {
                    self.spot = Spot::Column(*place, Some(text.to_owned()));
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Checks the names of the first line.
    fn check_header(&mut self) -> Result<()> {
        if self.fields.len() != self.columns.len() {
            return Err(bad_format(format!(
                "wrong number of fields in header line: got {}, expected {}",
                self.fields.len(),
                self.columns.len()
            )));
        }
        for (field, place) in self.columns.iter().enumerate() {
            let name = &self.table.columns[*place].name;
            let number = field + 1;
            let got = match self.fields.get(field)? {
                Some(given) if given == name => continue,
                Some(given) => format!("got \"{given}\""),
                None => format!("got null value (\"{}\")", self.options.null),
            };
            return Err(bad_format(format!(
                "column name mismatch in header line field {number}: {got}, expected \"{name}\""
            )));
        }
        Ok(())
    }

    fn next_binary(
        &mut self,
        eval: &EvalContext,
        values: &mut Vec<Datum>,
        more: &mut More<'_>,
    ) -> Result<bool> {
        if !std::mem::replace(&mut self.begun, true) {
            self.binary.header(more)?;
        }
        self.lines.number += 1;
        if !self.binary.begin_row(self.columns.len(), more)? {
            return Ok(false);
        }
        for place in self.columns {
            let column = &self.table.columns[*place];
            self.spot = Spot::Column(*place, None);
            values.push(match self.binary.field(more)? {
                None => Datum::Null,
                Some(bytes) => types::receive(eval, column.type_id, column.typmod, bytes)?,
            });
        }
        self.spot = Spot::Line;
        Ok(true)
    }

    /// The error with its context.
    pub fn explain(&self, mut error: Error) -> Error {
        if self.lines.number == 0 {
            return error;
        }
        let context = self.context();
        let fields = error.fields_mut();
        fields.context = Some(match fields.context.take() {
            None => context,
            Some(inner) => format!("{inner}\n{context}"),
        });
        error
    }
}

/// Text that is not too long to be shown.
fn shown(text: &str) -> String {
    if text.len() <= SHOWN_BYTES_MAX {
        return text.to_owned();
    }
    let end = (0..=SHOWN_BYTES_MAX)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0);
    format!("{}...", &text[..end])
}
