//! Lines and fields of COPY FROM in text and CSV: bytes in, in whatever pieces, lines out.
//!
//! ```text
//!            ┌ line ┐ next
//!  buffer  …│a\tb\\n│c\td\n│e\t│        more() appends here
//!           start        scanned
//! ```
//! A line ends where the first one did: at `\n`, `\r` or `\r\n`; another ending is an error, which
//! catches files that were put together wrongly. `\.` alone ends the data. Inside the quotes of CSV
//! line ends are data.
//!
//! # Invariants
//! - `start <= scanned <= buffer.len()`; bytes before `scanned` have been looked at, and what they
//!   mean for quotes is in `in_quote` and `escaped`.
//! - A byte whose meaning depends on the next one is not passed before that one is there, or the
//!   data has ended.

use std::ops::Range;

use base::{Error, Result, SqlState};

use super::bad_format;
use super::options::{Layout, Options};

/// The longest line; a longer one is 54000.
pub(super) const LINE_BYTES_MAX: usize = (1 << 30) - 1;

/// How lines end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineEnd {
    Unknown,
    Newline,
    Return,
    ReturnNewline,
}

/// What looking through the buffer has found.
enum Found {
    /// A line ends here, and the next begins there.
    Line(usize, usize),
    /// `\.` stands here.
    Marker(usize),
    /// More bytes must be seen.
    NotYet,
}

/// Cuts data into lines.
pub(super) struct Lines {
    buffer: Vec<u8>,
    start: usize,
    scanned: usize,
    /// No more data will come.
    ended: bool,
    line_end: LineEnd,
    in_quote: bool,
    escaped: bool,
    /// The line that was returned last.
    line: Range<usize>,
    /// The number of the line that is read or was read last, from 1.
    pub number: u64,
}

impl Lines {
    pub fn new() -> Lines {
        Lines {
            buffer: Vec::new(),
            start: 0,
            scanned: 0,
            ended: false,
            line_end: LineEnd::Unknown,
            in_quote: false,
            escaped: false,
            line: 0..0,
            number: 0,
        }
    }

    /// The line that was read last.
    pub fn line(&self) -> &[u8] {
        &self.buffer[self.line.clone()]
    }

    /// Checks that the line that was read last is UTF-8.
    ///
    /// # Errors
    /// 22021, which shows as many bytes as the broken character should have, also behind the line.
    pub fn check_text(&self) -> Result<()> {
        let line = self.line();
        match std::str::from_utf8(line) {
            Ok(_) if !line.contains(&0) => Ok(()),
            Ok(_) => Err(invalid(&[0])),
            Err(error) => {
                let start = self.line.start + error.valid_up_to();
                Err(invalid(broken_character(&self.buffer[start..])))
            }
        }
    }

    /// Reads the next line; false when there is none. `more` appends data, and says whether it did
    /// or the data has ended.
    ///
    /// # Errors
    /// 22P04, and those of `more`.
    pub fn next(
        &mut self,
        options: &Options,
        more: &mut dyn FnMut(&mut Vec<u8>) -> Result<bool>,
    ) -> Result<bool> {
        self.number += 1;
        self.line = self.start..self.start;
        (self.in_quote, self.escaped) = (false, false);
        loop {
            let found = match options.layout {
                Layout::Csv => self.scan_csv(options)?,
                _ => self.scan_text()?,
            };
            match found {
                Found::Line(end, next) => {
                    self.line = self.start..end;
                    (self.start, self.scanned) = (next, next);
                    return Ok(true);
                }
                Found::Marker(at) => {
                    // What follows the mark is read and means nothing.
                    let mut rest = Vec::new();
                    while more(&mut rest)? {
                        rest.clear();
                    }
                    self.buffer.truncate(at);
                    self.scanned = at;
                    self.ended = true;
                    return Ok(self.last());
                }
                Found::NotYet if self.ended => return Ok(self.last()),
                Found::NotYet => self.fill(more)?,
            }
        }
    }

    /// The line that no line end follows, if there is one.
    fn last(&mut self) -> bool {
        self.line = self.start..self.buffer.len();
        self.start = self.buffer.len();
        self.scanned = self.start;
        !self.line.is_empty()
    }

    fn fill(&mut self, more: &mut dyn FnMut(&mut Vec<u8>) -> Result<bool>) -> Result<()> {
        self.buffer.drain(..self.start);
        self.scanned -= self.start;
        self.start = 0;
        self.line = 0..0;
        self.ended = !more(&mut self.buffer)?;
        if self.buffer.len() > LINE_BYTES_MAX && self.scanned == self.buffer.len() {
            let detail = format!("A line of COPY may have at most {LINE_BYTES_MAX} bytes.");
            return Err(
                Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "out of memory").with_detail(detail),
            );
        }
        Ok(())
    }

    fn scan_text(&mut self) -> Result<Found> {
        loop {
            let rest = &self.buffer[self.scanned..];
            let special = |byte: &u8| matches!(byte, b'\n' | b'\r' | b'\\');
            let Some(offset) = rest.iter().position(special) else {
                self.scanned = self.buffer.len();
                return Ok(Found::NotYet);
            };
            self.scanned += offset;
            let at = self.scanned;
            match self.buffer[at] {
                b'\n' => return self.newline(at, false),
                b'\r' => return self.carriage_return(at, false),
                _ => match self.buffer.get(at + 1) {
                    Some(b'.') => return self.marker(at),
                    Some(_) => self.scanned = at + 2,
                    None => return Ok(Found::NotYet),
                },
            }
        }
    }

    fn scan_csv(&mut self, options: &Options) -> Result<Found> {
        // A quote that escapes itself just closes and opens the quotes again.
        let escape = (options.escape != options.quote).then_some(options.escape);
        while let Some(byte) = self.buffer.get(self.scanned).copied() {
            let at = self.scanned;
            let waits = matches!(byte, b'\\' | b'\r') && at + 1 == self.buffer.len();
            if waits && !self.ended {
                return Ok(Found::NotYet);
            }
            if self.in_quote && Some(byte) == escape {
                self.escaped = !self.escaped;
            }
            if byte == options.quote && !self.escaped {
                self.in_quote = !self.in_quote;
            }
            if Some(byte) != escape {
                self.escaped = false;
            }
            let counts = match self.line_end {
                LineEnd::Newline => b'\n',
                _ => b'\r',
            };
            if self.in_quote && byte == counts {
                self.number += 1;
            }
            match byte {
                b'\r' if !self.in_quote => return self.carriage_return(at, true),
                b'\n' if !self.in_quote => return self.newline(at, true),
                b'\\' if at == self.start && self.buffer.get(at + 1) == Some(&b'.') => {
                    match self.csv_marker(at)? {
                        Some(found) => return Ok(found),
                        None => self.scanned += 1,
                    }
                }
                _ => self.scanned += 1,
            }
        }
        Ok(Found::NotYet)
    }

    fn newline(&mut self, at: usize, csv: bool) -> Result<Found> {
        if matches!(self.line_end, LineEnd::Return | LineEnd::ReturnNewline) {
            return Err(match csv {
                true => bad_format("unquoted newline found in data")
                    .with_hint("Use quoted CSV field to represent newline."),
                false => bad_format("literal newline found in data")
                    .with_hint("Use \"\\n\" to represent newline."),
            });
        }
        self.line_end = LineEnd::Newline;
        Ok(Found::Line(at, at + 1))
    }

    fn carriage_return(&mut self, at: usize, csv: bool) -> Result<Found> {
        let stray = || match csv {
            true => bad_format("unquoted carriage return found in data")
                .with_hint("Use quoted CSV field to represent carriage return."),
            false => bad_format("literal carriage return found in data")
                .with_hint("Use \"\\r\" to represent carriage return."),
        };
        match self.line_end {
            LineEnd::Newline => return Err(stray()),
            LineEnd::Return => return Ok(Found::Line(at, at + 1)),
            LineEnd::Unknown | LineEnd::ReturnNewline => {}
        }
        match self.buffer.get(at + 1) {
            None if !self.ended => Ok(Found::NotYet),
            Some(b'\n') => {
                self.line_end = LineEnd::ReturnNewline;
                Ok(Found::Line(at, at + 2))
            }
            _ if self.line_end == LineEnd::ReturnNewline => Err(stray()),
            _ => {
                self.line_end = LineEnd::Return;
                Ok(Found::Line(at, at + 1))
            }
        }
    }

    /// The bytes behind `\.`, or that more must be seen of them.
    fn behind_marker(&self, at: usize) -> Option<&[u8]> {
        let wanted = match self.line_end {
            LineEnd::ReturnNewline => 2,
            _ => 1,
        };
        let behind = &self.buffer[at + 2..];
        match behind.len() < wanted && !self.ended {
            true => None,
            false => Some(behind),
        }
    }

    fn marker(&mut self, at: usize) -> Result<Found> {
        let Some(behind) = self.behind_marker(at) else {
            return Ok(Found::NotYet);
        };
        let corrupt = || bad_format("end-of-copy marker corrupt");
        let other = || bad_format("end-of-copy marker does not match previous newline style");
        match (self.line_end, behind) {
            (LineEnd::ReturnNewline, [b'\r', b'\n', ..])
            | (LineEnd::Newline | LineEnd::Unknown, [b'\n', ..])
            | (LineEnd::Return | LineEnd::Unknown, [b'\r', ..]) => Ok(Found::Marker(at)),
            (LineEnd::ReturnNewline, [b'\n', ..])
            | (LineEnd::Newline, [b'\r', ..])
            | (LineEnd::Return, [b'\n', ..]) => Err(other()),
            _ => Err(corrupt()),
        }
    }

    /// In CSV `\.` is data unless it stands alone on a line.
    fn csv_marker(&mut self, at: usize) -> Result<Option<Found>> {
        let Some(behind) = self.behind_marker(at) else {
            return Ok(Some(Found::NotYet));
        };
        let other = || bad_format("end-of-copy marker does not match previous newline style");
        match (self.line_end, behind) {
            (LineEnd::ReturnNewline, [b'\r', b'\n', ..])
            | (LineEnd::Newline | LineEnd::Unknown, [b'\n', ..])
            | (LineEnd::Return | LineEnd::Unknown, [b'\r', ..]) => Ok(Some(Found::Marker(at))),
            (LineEnd::Newline, [b'\r', ..]) | (LineEnd::Return, [b'\n', ..]) => Err(other()),
            _ => Ok(None),
        }
    }
}

/// The fields of one line.
#[derive(Default)]
pub(super) struct Fields {
    bytes: Vec<u8>,
    /// Where each field stands in `bytes`; none is NULL.
    places: Vec<Option<Range<usize>>>,
}

impl Fields {
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// A field; none is NULL.
    ///
    /// # Errors
    /// 22021 when an escape has made something of it that is no UTF-8.
    pub fn get(&self, field: usize) -> Result<Option<&str>> {
        let Some(place) = &self.places[field] else {
            return Ok(None);
        };
        let bytes = &self.bytes[place.clone()];
        text_of(bytes).map(Some)
    }

    /// Takes a line apart.
    ///
    /// # Errors
    /// 22P04.
    pub fn split(&mut self, line: &[u8], options: &Options) -> Result<()> {
        self.bytes.clear();
        self.places.clear();
        match options.layout {
            Layout::Csv => self.split_csv(line, options),
            _ => {
                self.split_text(line, options);
                Ok(())
            }
        }
    }

    fn end_field(&mut self, begun: usize, raw: &[u8], quoted: bool, options: &Options) {
        let is_null = !quoted && raw == options.null.as_bytes();
        self.places
            .push((!is_null).then_some(begun..self.bytes.len()));
    }

    fn split_text(&mut self, line: &[u8], options: &Options) {
        let mut at = 0;
        loop {
            let (start, begun) = (at, self.bytes.len());
            let found_delimiter = loop {
                let rest = &line[at..];
                let special = |byte: &u8| *byte == b'\\' || *byte == options.delimiter;
                let plain = rest.iter().position(special).unwrap_or(rest.len());
                self.bytes.extend_from_slice(&rest[..plain]);
                at += plain;
                match line.get(at) {
                    None => break false,
                    Some(byte) if *byte == options.delimiter => break true,
                    Some(_) => {
                        let (byte, length) = unescape(&line[at + 1..]);
                        self.bytes.extend(byte);
                        at += 1 + length;
                    }
                }
            };
            self.end_field(begun, &line[start..at], false, options);
            if !found_delimiter {
                return;
            }
            at += 1;
        }
    }

    fn split_csv(&mut self, line: &[u8], options: &Options) -> Result<()> {
        let mut at = 0;
        loop {
            let (start, begun) = (at, self.bytes.len());
            let mut quoted = false;
            let found_delimiter = loop {
                let rest = &line[at..];
                let special = |byte: &u8| *byte == options.quote || *byte == options.delimiter;
                let plain = rest.iter().position(special).unwrap_or(rest.len());
                self.bytes.extend_from_slice(&rest[..plain]);
                at += plain;
                match line.get(at) {
                    None => break false,
                    Some(byte) if *byte == options.delimiter => break true,
                    Some(_) => {
                        quoted = true;
                        at = self.quoted(line, at + 1, options)?;
                    }
                }
            };
            self.end_field(begun, &line[start..at], quoted, options);
            if !found_delimiter {
                return Ok(());
            }
            at += 1;
        }
    }

    /// Takes what stands in quotes; returns where it goes on behind them.
    fn quoted(&mut self, line: &[u8], mut at: usize, options: &Options) -> Result<usize> {
        loop {
            let Some(byte) = line.get(at).copied() else {
                return Err(bad_format("unterminated CSV quoted field"));
            };
            at += 1;
            if byte == options.escape {
                match line.get(at).copied() {
                    Some(next) if next == options.escape || next == options.quote => {
                        self.bytes.push(next);
                        at += 1;
                        continue;
                    }
                    _ => {}
                }
            }
            if byte == options.quote {
                return Ok(at);
            }
            self.bytes.push(byte);
        }
    }
}

/// Bytes as text.
///
/// # Errors
/// 22021 when they are none.
fn text_of(bytes: &[u8]) -> Result<&str> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| invalid(broken_character(&bytes[error.valid_up_to()..])))?;
    match bytes.contains(&0) {
        true => Err(invalid(&[0])),
        false => Ok(text),
    }
}

/// 22021 for these bytes.
fn invalid(wrong: &[u8]) -> Error {
    let shown: Vec<_> = wrong.iter().map(|byte| format!("0x{byte:02x}")).collect();
    let shown = shown.join(" ");
    Error::new(
        SqlState::CHARACTER_NOT_IN_REPERTOIRE,
        format!("invalid byte sequence for encoding \"UTF8\": {shown}"),
    )
}

/// As many bytes as the first one announces.
fn broken_character(bytes: &[u8]) -> &[u8] {
    let announced = match bytes.first() {
        Some(0xc0..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf7) => 4,
        _ => 1,
    };
    &bytes[..announced.min(bytes.len())]
}

/// The byte that a backslash and what follows it stand for, and how many bytes follow it.
fn unescape(rest: &[u8]) -> (Option<u8>, usize) {
    let Some(first) = rest.first().copied() else {
        return (None, 0);
    };
    let simple = match first {
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 11,
        b'0'..=b'7' => {
            let digits = rest.iter().take(3);
            let digits = digits.take_while(|byte| matches!(byte, b'0'..=b'7'));
            let (value, count) = digits.fold((0u32, 0), |(value, count), digit| {
                (value * 8 + u32::from(digit - b'0'), count + 1)
            });
            return (Some((value & 0xff) as u8), count);
        }
        b'x' => {
            let digits = rest[1..].iter().take(2);
            let digits = digits.map_while(|byte| char::from(*byte).to_digit(16));
            let (value, count) = digits.fold((0, 0), |(value, count), digit| {
                (value * 16 + digit, count + 1)
            });
            return match count {
                0 => (Some(b'x'), 1),
                _ => (Some((value & 0xff) as u8), 1 + count),
            };
        }
        other => other,
    };
    (Some(simple), 1)
}

#[cfg(test)]
mod tests;
