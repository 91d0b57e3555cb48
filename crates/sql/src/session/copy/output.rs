//! COPY TO STDOUT: a sink that writes rows as lines or tuples, and hands them on.

use base::{Debt, Durability, Result};

use super::binary;
use super::options::{Chosen, Header, Layout, Options};
use crate::session::LogContext;
use execution::state::{Column, CommandTag, Format, Notice, RowView, Sink};
use types::encoding::Encoding;

/// Writes rows for a client.
pub(super) struct CopyOut<'a> {
    to: &'a mut dyn Sink,
    options: &'a Options,
    /// That of the lines.
    encoding: Encoding,
    /// By column, whether its values are always in quotes.
    quoted: Vec<bool>,
    line: Vec<u8>,
    text: String,
}

impl<'a> CopyOut<'a> {
    /// Nothing written yet, for a client of that encoding. `names` are those of the columns.
    pub fn new(
        to: &'a mut dyn Sink,
        options: &'a Options,
        encoding: Encoding,
        names: &[&str],
    ) -> CopyOut<'a> {
        let quoted = |name: &&str| match &options.force_quote {
            Chosen::All => true,
            Chosen::Named(chosen) => chosen.iter().any(|known| known == name),
        };
        CopyOut {
            to,
            options,
            encoding: options.encoding.unwrap_or(encoding),
            quoted: names.iter().map(quoted).collect(),
            line: Vec::new(),
            text: String::new(),
        }
    }

    /// Tells the client that rows follow, and what their columns are called if it wants to know.
    pub fn begin(&mut self, names: &[&str]) -> Result<()> {
        let format = match self.options.is_binary() {
            true => Format::Binary,
            false => Format::Text,
        };
        self.to.copy_out(names.len(), format)?;
        if self.options.is_binary() {
            // Clients expect it in one message with what follows.
            binary::put_header(&mut self.line);
            return Ok(());
        }
        if self.options.header == Header::None {
            return Ok(());
        }
        for (place, name) in names.iter().enumerate() {
            if place > 0 {
                self.line.push(self.options.delimiter);
            }
            match self.options.layout {
                Layout::Csv => put_csv(&mut self.line, name, false, names.len(), self.options),
                _ => put_text(&mut self.line, name, self.options.delimiter),
            }
        }
        self.line.push(b'\n');
        self.send()
    }

    /// Sends what has been written.
    fn send(&mut self) -> Result<()> {
        // What is binary in it was converted value by value.
        if !self.options.is_binary() {
            self.encoding.encode_from(0, &mut self.line)?;
        }
        let sent = self.to.copy_row(&self.line);
        self.line.clear();
        sent
    }

    /// The last row was given.
    pub fn end(&mut self) -> Result<()> {
        if self.options.is_binary() {
            binary::put_trailer(&mut self.line);
            self.send()?;
        }
        self.to.copy_done()
    }

    fn put_row(&mut self, row: &RowView<'_>) -> Result<()> {
        for (place, value) in row.values.iter().enumerate() {
            if place > 0 {
                self.line.push(self.options.delimiter);
            }
            if value.is_null() {
                self.line.extend_from_slice(self.options.null.as_bytes());
                continue;
            }
            self.text.clear();
            types::text::write(row.context, row.types[place], value, &mut self.text)?;
            match self.options.layout {
                Layout::Csv => {
                    let quoted = self.quoted.get(place).copied().unwrap_or(false);
                    let columns = row.values.len();
                    put_csv(&mut self.line, &self.text, quoted, columns, self.options);
                }
                _ => put_text(&mut self.line, &self.text, self.options.delimiter),
            }
        }
        self.line.push(b'\n');
        Ok(())
    }

    fn put_binary_row(&mut self, row: &RowView<'_>) -> Result<()> {
        let columns = row.values.len() as i16;
        self.line.extend_from_slice(&columns.to_be_bytes());
        for (place, value) in row.values.iter().enumerate() {
            if value.is_null() {
                self.line.extend_from_slice(&(-1i32).to_be_bytes());
                continue;
            }
            let start = self.line.len();
            self.line.extend_from_slice(&[0; 4]);
            types::send(row.context, row.types[place], value, &mut self.line)?;
            let length = (self.line.len() - start - 4) as i32;
            self.line[start..start + 4].copy_from_slice(&length.to_be_bytes());
        }
        Ok(())
    }
}

impl Sink for CopyOut<'_> {
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
        match self.options.layout {
            Layout::Binary => self.put_binary_row(row)?,
            _ => self.put_row(row)?,
        }
        self.send()
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

/// Appends a value of the text format.
fn put_text(out: &mut Vec<u8>, text: &str, delimiter: u8) {
    let bytes = text.as_bytes();
    let mut done = 0;
    for (at, byte) in bytes.iter().enumerate() {
        let escaped = match byte {
            8 => b'b',
            12 => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            11 => b'v',
            b'\\' => b'\\',
            other if *other == delimiter => *other,
            _ => continue,
        };
        out.extend_from_slice(&bytes[done..at]);
        out.extend_from_slice(&[b'\\', escaped]);
        done = at + 1;
    }
    out.extend_from_slice(&bytes[done..]);
}

/// Appends a value of CSV.
fn put_csv(out: &mut Vec<u8>, text: &str, quoted: bool, columns: usize, options: &Options) {
    let special = |byte: &u8| {
        *byte == options.delimiter || *byte == options.quote || matches!(byte, b'\n' | b'\r')
    };
    // Alone on a line, `\.` would end the data.
    let is_marker = columns == 1 && text == "\\.";
    let quoted = quoted || is_marker || text == options.null || text.as_bytes().iter().any(special);
    if !quoted {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    out.push(options.quote);
    for byte in text.bytes() {
        if byte == options.quote || byte == options.escape {
            out.push(options.escape);
        }
        out.push(byte);
    }
    out.push(options.quote);
}
