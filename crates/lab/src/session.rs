//! A lean session for workloads that send thousands of transactions a second: prepared statements,
//! pipelined, with results that are read where they lie.
//!
//! ```text
//! session.queue(STATEMENT_A, &[Arg::Int(1)]);     nothing is sent yet
//! session.queue(STATEMENT_B, &[]);
//! session.run().await?;                           one write, one wait
//! session.text(1, 0, 2)                           result 1, row 0, column 2
//! ```
//!
//! A statement is prepared when a session first queues it. With [`Target::one_by_one`] every queued
//! statement is sent by itself and waited for, as clients without pipelining do; results are the
//! same.
//!
//! # What it leaves out
//! Encryption. Passwords in any form but clear text. Time limits: wrap a whole transaction in
//! [`crate::client::within`], after which the session is of no further use.

use base::env::{read, write_all, Env, Stream};
use base::{Error, ErrorClass, SqlState};
use pg::backend::{Backend, Severity};
use pg::frame::{put_cstr, put_message, Framer, Side};
use pg::frontend::{put_parse, Frontend};
use pg::startup::{put_startup, StartupParameters};

use crate::client::Failure;

/// Where a session goes, and as whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// `ip:port`.
    pub address: String,
    /// The role.
    pub user: String,
    /// Its password, where one is asked for.
    pub password: Option<String>,
    /// The database.
    pub database: String,
    /// Settings of the session.
    pub settings: Vec<(String, String)>,
    /// Every statement is waited for before the next is sent.
    pub one_by_one: bool,
}

impl Target {
    /// `postgres` in database `postgres`.
    pub fn at(address: &str) -> Target {
        Target {
            address: address.to_owned(),
            user: "postgres".to_owned(),
            password: None,
            database: "postgres".to_owned(),
            settings: Vec::new(),
            one_by_one: false,
        }
    }
}

/// A statement that sessions prepare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Its number, small and different from those of all others that a session uses.
    pub number: usize,
    /// Its text, with parameters `$1`, `$2`, ….
    pub text: &'static str,
}

/// A parameter.
#[derive(Clone, Copy, Debug)]
pub enum Arg<'a> {
    /// A whole number.
    Int(i64),
    /// An amount of money, in hundredths.
    Cents(i64),
    /// Text.
    Text(&'a str),
}

/// What one statement gave.
#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    first_row: usize,
    rows: usize,
    /// Rows that it changed, as its tag says.
    affected: u64,
}

/// A connected session.
pub struct Session {
    stream: Box<dyn Stream>,
    framer: Framer,
    outgoing: Vec<u8>,
    /// Where in `outgoing` each queued statement ends.
    ends: Vec<usize>,
    prepared: Vec<bool>,
    /// Statements whose Parse has been sent and not yet answered, in order.
    preparing: std::collections::VecDeque<usize>,
    one_by_one: bool,
    /// Bodies of DataRow messages.
    rows: Vec<u8>,
    row_starts: Vec<usize>,
    outcomes: Vec<Outcome>,
    /// Whether a transaction block is open.
    in_block: bool,
    /// Statements and round trips so far.
    counts: Counts,
}

/// What a session has asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Statements.
    pub statements: u64,
    /// Times that it waited for an answer.
    pub round_trips: u64,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Session")
    }
}

fn broken(cause: impl std::fmt::Display) -> Failure {
    Failure::Broken(Error::of_class(
        ErrorClass::Session,
        SqlState::CONNECTION_FAILURE,
        format!("the connection broke: {cause}"),
    ))
}

impl Session {
    /// Connects and waits until the server is ready.
    ///
    /// # Errors
    /// The connection fails, or the server refuses it.
    pub async fn connect(env: &dyn Env, target: &Target) -> Result<Session, Failure> {
        let mut session = Session {
            stream: env.net().connect(&target.address).await.map_err(broken)?,
            framer: Framer::new(Side::Backend),
            outgoing: Vec::new(),
            ends: Vec::new(),
            prepared: Vec::new(),
            preparing: std::collections::VecDeque::new(),
            one_by_one: target.one_by_one,
            rows: Vec::new(),
            row_starts: Vec::new(),
            outcomes: Vec::new(),
            in_block: false,
            counts: Counts::default(),
        };
        let startup = StartupParameters {
            user: target.user.clone(),
            database: target.database.clone(),
            settings: target.settings.clone(),
            ..StartupParameters::default()
        };
        put_startup(&mut session.outgoing, &startup);
        session.send().await?;
        session.until_ready(target.password.as_deref()).await?;
        Ok(session)
    }

    // ---- Saying ----

    /// Puts a statement in line for the next [`Session::run`].
    pub fn queue(&mut self, statement: Statement, args: &[Arg<'_>]) {
        let Statement { number, text } = statement;
        if self.prepared.len() <= number {
            self.prepared.resize(number + 1, false);
        }
        let mut name = [0; 8];
        let name = statement_name(number, &mut name);
        if !self.prepared[number] && !self.preparing.contains(&number) {
            put_parse(&mut self.outgoing, name, text, &[]);
            self.preparing.push_back(number);
        }
        put_message(&mut self.outgoing, b'B', |out| put_bind(out, name, args));
        Frontend::Execute {
            portal: b"",
            rows_max: 0,
        }
        .encode(&mut self.outgoing);
        self.ends.push(self.outgoing.len());
    }

    /// Sends what was queued and waits for its results.
    ///
    /// # Errors
    /// See [`Failure`]; of several statements, those after the one that failed were not run.
    pub async fn run(&mut self) -> Result<(), Failure> {
        self.clear_results();
        self.counts.statements += self.ends.len() as u64;
        if !self.one_by_one {
            self.ends.clear();
            Frontend::Sync.encode(&mut self.outgoing);
            self.send().await?;
            return self.until_ready(None).await;
        }
        let (all, ends) = (
            std::mem::take(&mut self.outgoing),
            std::mem::take(&mut self.ends),
        );
        let mut start = 0;
        for end in ends {
            self.outgoing.extend_from_slice(&all[start..end]);
            start = end;
            Frontend::Sync.encode(&mut self.outgoing);
            self.send().await?;
            if let Err(failure) = self.until_ready(None).await {
                // What was to follow is not sent, and so not prepared.
                self.preparing.clear();
                return Err(failure);
            }
        }
        Ok(())
    }

    /// Sends a query of the simple protocol and waits for its results.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn query(&mut self, sql: &str) -> Result<(), Failure> {
        self.clear_results();
        self.counts.statements += 1;
        Frontend::Query(sql.as_bytes()).encode(&mut self.outgoing);
        self.send().await?;
        self.until_ready(None).await
    }

    /// Begins a COPY FROM STDIN.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn copy_begin(&mut self, sql: &str) -> Result<(), Failure> {
        self.clear_results();
        Frontend::Query(sql.as_bytes()).encode(&mut self.outgoing);
        self.send().await?;
        loop {
            if let Some(frame) = self.framer.next().map_err(broken)? {
                match Backend::decode(frame.kind, frame.body).map_err(broken)? {
                    Backend::CopyInResponse(..) => return Ok(()),
                    Backend::ErrorResponse(severity, error) => {
                        if severity < Severity::Fatal {
                            self.until_ready(None).await?;
                        }
                        return Err(refused(severity, error));
                    }
                    _ => {}
                }
            } else {
                self.receive().await?;
            }
        }
    }

    /// Sends rows of a COPY, whole lines.
    ///
    /// # Errors
    /// The connection breaks.
    pub async fn copy_rows(&mut self, lines: &[u8]) -> Result<(), Failure> {
        Frontend::CopyData(lines).encode(&mut self.outgoing);
        self.send().await
    }

    /// Ends a COPY and waits until the rows are in.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn copy_end(&mut self) -> Result<(), Failure> {
        Frontend::CopyDone.encode(&mut self.outgoing);
        self.send().await?;
        self.until_ready(None).await
    }

    // ---- Reading results ----

    /// Rows of a result.
    pub fn rows(&self, result: usize) -> usize {
        self.outcomes.get(result).map_or(0, |outcome| outcome.rows)
    }

    /// Rows that a statement changed or returned, as its tag says.
    pub fn affected(&self, result: usize) -> u64 {
        let outcome = self.outcomes.get(result);
        outcome.map_or(0, |outcome| outcome.affected)
    }

    /// How many results there are.
    pub fn results(&self) -> usize {
        self.outcomes.len()
    }

    /// A value as text; none for NULL and for what is not there.
    pub fn text(&self, result: usize, row: usize, column: usize) -> Option<&str> {
        let outcome = self.outcomes.get(result)?;
        if row >= outcome.rows {
            return None;
        }
        let start = *self.row_starts.get(outcome.first_row + row)?;
        let mut rest = self.rows.get(start + 2..)?;
        let mut column = column;
        loop {
            let (length, more) = rest.split_at_checked(4)?;
            let length = i32::from_be_bytes([length[0], length[1], length[2], length[3]]);
            let length = usize::try_from(length).ok();
            if column == 0 {
                return std::str::from_utf8(more.get(..length?)?).ok();
            }
            rest = more.get(length.unwrap_or(0)..)?;
            column -= 1;
        }
    }

    /// A value as a whole number.
    pub fn int(&self, result: usize, row: usize, column: usize) -> Option<i64> {
        self.text(result, row, column)?.parse().ok()
    }

    /// A value as money, in hundredths.
    pub fn cents(&self, result: usize, row: usize, column: usize) -> Option<i64> {
        parse_cents(self.text(result, row, column)?)
    }

    /// Whether a transaction block is open, or has failed and waits for its end.
    pub fn in_block(&self) -> bool {
        self.in_block
    }

    /// What it has asked for so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    // ---- Inside ----

    fn clear_results(&mut self) {
        self.rows.clear();
        self.row_starts.clear();
        self.outcomes.clear();
    }

    async fn send(&mut self) -> Result<(), Failure> {
        let sent = write_all(&mut *self.stream, &self.outgoing).await;
        self.outgoing.clear();
        sent.map_err(broken)
    }

    async fn receive(&mut self) -> Result<(), Failure> {
        let space = self.framer.space();
        let count = read(&mut *self.stream, space).await.map_err(broken)?;
        if count == 0 {
            return Err(broken("the server has closed it"));
        }
        self.framer.filled(count);
        Ok(())
    }

    /// Takes results until the server is ready for more.
    async fn until_ready(&mut self, password: Option<&str>) -> Result<(), Failure> {
        self.counts.round_trips += 1;
        let mut failure = None;
        let mut outcome = Outcome {
            first_row: self.row_starts.len(),
            ..Outcome::default()
        };
        loop {
            let Some(frame) = self.framer.next().map_err(broken)? else {
                self.receive().await?;
                continue;
            };
            match frame.kind {
                b'D' => {
                    self.row_starts.push(self.rows.len());
                    self.rows.extend_from_slice(frame.body);
                    outcome.rows += 1;
                }
                b'C' => {
                    outcome.affected = affected(frame.body);
                    self.outcomes.push(outcome);
                    outcome = Outcome {
                        first_row: self.row_starts.len(),
                        ..Outcome::default()
                    };
                }
                b'1' => {
                    if let Some(number) = self.preparing.pop_front() {
                        self.prepared[number] = true;
                    }
                }
                b'Z' => {
                    self.in_block = frame.body != b"I";
                    // What the server skipped after an error is not prepared.
                    if !self.one_by_one {
                        self.preparing.clear();
                    }
                    return failure.map_or(Ok(()), Err);
                }
                b'E' | b'R' => match Backend::decode(frame.kind, frame.body).map_err(broken)? {
                    Backend::ErrorResponse(severity, error) if severity >= Severity::Fatal => {
                        return Err(refused(severity, error));
                    }
                    Backend::ErrorResponse(severity, error) => {
                        failure = Some(refused(severity, error));
                    }
                    Backend::Authentication(3) => {
                        let password = password.unwrap_or_default();
                        put_message(&mut self.outgoing, b'p', |out| {
                            put_cstr(out, password.as_bytes());
                        });
                        self.send().await?;
                    }
                    Backend::Authentication(kind) => {
                        return Err(broken(format!("authentication {kind} is asked for")));
                    }
                    _ => {}
                },
                // Notices, descriptions and parameters tell a workload nothing.
                _ => {}
            }
        }
    }
}

fn refused(severity: Severity, error: Error) -> Failure {
    match severity >= Severity::Fatal {
        true => Failure::Broken(error),
        false => Failure::Refused(error),
    }
}

/// `s17`.
fn statement_name(number: usize, buffer: &mut [u8; 8]) -> &str {
    use std::io::Write;
    let mut rest = &mut buffer[..];
    let written = write!(rest, "s{number}");
    let left = rest.len();
    assert!(written.is_ok(), "statement {number} has a long number");
    std::str::from_utf8(&buffer[..8 - left]).unwrap_or_default()
}

/// The body of a Bind message, everything as text.
fn put_bind(out: &mut Vec<u8>, name: &str, args: &[Arg<'_>]) {
    use std::io::Write;
    put_cstr(out, b"");
    put_cstr(out, name.as_bytes());
    out.extend_from_slice(&[0, 0]);
    assert!(args.len() < 1 << 15, "{} parameters", args.len());
    out.extend_from_slice(&(args.len() as u16).to_be_bytes());
    for arg in args {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        // Writing to memory does not fail.
        let _ = match arg {
            Arg::Int(value) => write!(out, "{value}"),
            Arg::Cents(value) => {
                let sign = if *value < 0 { "-" } else { "" };
                let value = value.unsigned_abs();
                write!(out, "{sign}{}.{:02}", value / 100, value % 100)
            }
            Arg::Text(text) => out.write_all(text.as_bytes()),
        };
        let length = (out.len() - start - 4) as u32;
        out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    }
    out.extend_from_slice(&[0, 0]);
}

/// The number at the end of a tag: `INSERT 0 1`.
fn affected(tag: &[u8]) -> u64 {
    let tag = std::str::from_utf8(tag).unwrap_or_default();
    let last = tag.trim_end_matches('\0').rsplit(' ').next();
    last.and_then(|last| last.parse().ok()).unwrap_or(0)
}

/// `-12.3` as -1230; digits beyond hundredths are left out.
pub fn parse_cents(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let whole: i64 = whole.parse().ok()?;
    let mut cents = 0;
    for index in 0..2 {
        let digit = part.as_bytes().get(index).copied().unwrap_or(b'0');
        cents = cents * 10 + i64::from(digit.checked_sub(b'0').filter(|digit| *digit < 10)?);
    }
    whole
        .checked_mul(100)?
        .checked_add(cents)?
        .checked_mul(sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_read_and_written() {
        for (text, cents) in [
            ("12.34", 1_234),
            ("-12.3", -1_230),
            ("-0.05", -5),
            ("7", 700),
            ("0.0525", 5),
        ] {
            assert_eq!(parse_cents(text), Some(cents), "{text}");
        }
        assert_eq!(parse_cents("x"), None);
        let mut out = Vec::new();
        put_bind(
            &mut out,
            "s1",
            &[Arg::Cents(-5), Arg::Int(-7), Arg::Text("a")],
        );
        let expected = b"\0s1\0\0\0\0\x03\0\0\0\x05-0.05\0\0\0\x02-7\0\0\0\x01a\0\0";
        assert_eq!(out, expected);
    }

    #[test]
    fn tags_and_names() {
        assert_eq!(affected(b"INSERT 0 12\0"), 12);
        assert_eq!(affected(b"BEGIN\0"), 0);
        assert_eq!(statement_name(17, &mut [0; 8]), "s17");
    }
}
