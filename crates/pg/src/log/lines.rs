//! The forms of the server's log: lines of text, CSV and JSON, as PostgreSQL 15 writes them.
//!
//! Source: PostgreSQL 15 manual, sections 20.8.3 to 20.8.5.

use std::fmt::Write;

use ::sql::session::{LogContext, LogLevel, Verbosity};
use base::error::{Error, SqlState};
use base::Timestamp;

use super::{Kind, Who};

/// Seconds from 1970 to 2000, where timestamps begin.
const UNIX_SECONDS: i64 = 946_684_800;

/// A message, on its way into one of the logs.
#[derive(Debug)]
pub struct Line<'a> {
    /// Whose it is.
    pub who: &'a Who,
    /// What the session is doing, and how it is logged.
    pub context: &'a LogContext,
    /// How serious it is.
    pub level: LogLevel,
    /// What it says.
    pub body: &'a Error,
    /// The statement at work, if it is to be shown.
    pub statement: Option<&'a str>,
    /// When it is said.
    pub now: Timestamp,
    /// The lines of the session in this log so far.
    pub count: &'a mut u64,
}

impl Line<'_> {
    /// Lines of text, each with the prefix of `log_line_prefix`.
    pub fn text(&mut self) -> String {
        let mut out = String::new();
        let fields = self.body.fields();
        let verbosity = self.context.settings.verbosity;
        let mut message = String::new();
        if verbosity == Verbosity::Verbose {
            message.push_str(self.body.state().as_str());
            message.push_str(": ");
        }
        message.push_str(self.body.message());
        if let Some(position) = fields.position.or(fields.internal_position) {
            message.push_str(&format!(" at character {position}"));
        }
        self.put_line(&mut out, self.level.name(), &message);
        if verbosity > Verbosity::Terse {
            for (name, text) in [
                (
                    "DETAIL",
                    fields.log_detail.as_ref().or(fields.detail.as_ref()),
                ),
                ("HINT", fields.hint.as_ref()),
                ("QUERY", fields.internal_query.as_ref()),
                ("CONTEXT", fields.context.as_ref()),
            ] {
                if let Some(text) = text {
                    self.put_line(&mut out, name, text);
                }
            }
        }
        if let Some(statement) = self.statement {
            self.put_line(&mut out, "STATEMENT", statement);
        }
        out
    }

    fn put_line(&mut self, out: &mut String, name: &str, text: &str) {
        *self.count += 1;
        self.put_prefix(out);
        out.push_str(name);
        out.push_str(":  ");
        // What follows a line break is told apart from a line of its own.
        out.push_str(&text.replace('\n', "\n\t"));
        out.push('\n');
    }

    /// `log_line_prefix`, filled in.
    fn put_prefix(&self, out: &mut String) {
        let mut chars = self.context.settings.line_prefix.chars().peekable();
        while let Some(c) = chars.next() {
            if c != '%' {
                out.push(c);
                continue;
            }
            let left = chars.next_if_eq(&'-').is_some();
            let mut width = 0_usize;
            while let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) {
                width = (width * 10 + digit as usize).min(1_000);
                chars.next();
            }
            let Some(escape) = chars.next() else {
                return;
            };
            // Every process that has a prefix here is a session's, so %q stops nobody.
            let value = match escape {
                '%' => "%".to_owned(),
                escape => self.escape(escape),
            };
            let _ = match left {
                true => write!(out, "{value:<width$}"),
                false => write!(out, "{value:>width$}"),
            };
        }
    }

    fn escape(&self, escape: char) -> String {
        let who = self.who;
        let known = |text: &str| match text {
            "" => "[unknown]".to_owned(),
            text => text.to_owned(),
        };
        match escape {
            'a' => known(&self.context.application),
            'b' => who.kind.name().to_owned(),
            'u' => known(&who.user),
            'd' => known(&who.database),
            'c' => self.session_id(),
            'p' => who.pid.to_string(),
            'l' => self.count.to_string(),
            't' => seconds_text(self.now),
            'm' => millis_text(self.now),
            'n' => {
                let millis = self.now.0.div_euclid(1_000) + UNIX_SECONDS * 1_000;
                format!("{}.{:03}", millis / 1_000, millis % 1_000)
            }
            's' => seconds_text(who.started),
            'i' => self.context.command.to_owned(),
            'r' => match &who.client {
                Some((host, port)) => format!("{host}({port})"),
                None => "[local]".to_owned(),
            },
            'h' => match &who.client {
                Some((host, _)) => host.clone(),
                None => "[local]".to_owned(),
            },
            'e' => self.body.state().as_str().to_owned(),
            'Q' => "0".to_owned(),
            'v' => self.virtual_xid(),
            'x' => self.context.xid.to_string(),
            _ => String::new(),
        }
    }

    /// The session's number, and that of its transaction, which is 0 outside of one.
    fn virtual_xid(&self) -> String {
        match self.who.kind {
            Kind::Client => format!("{}/{}", self.who.pid, self.context.virtual_xid),
            Kind::NotInitialized | Kind::Node => String::new(),
        }
    }

    /// What names the session across all logs: when it began, and its number.
    fn session_id(&self) -> String {
        let started = self.who.started.0.div_euclid(1_000_000) + UNIX_SECONDS;
        format!("{started:x}.{:x}", self.who.pid)
    }

    /// Whether anybody is known to have connected.
    fn is_named(&self) -> bool {
        self.who.kind == Kind::Client
    }

    /// One record of comma-separated values.
    pub fn csv(&mut self) -> String {
        *self.count += 1;
        let fields = self.body.fields();
        let who = self.who;
        let quoted = |text: Option<&str>| {
            text.map_or(String::new(), |text| {
                format!("\"{}\"", text.replace('"', "\"\""))
            })
        };
        let from = who
            .client
            .as_ref()
            .map(|(host, port)| format!("{host}:{port}"));
        let named = |name: &'_ str| quoted(Some(name).filter(|_| self.is_named()));
        let number =
            |number: Option<u32>| number.map_or(String::new(), |number| number.to_string());
        // A position means something beside its statement only.
        let position = fields.position.filter(|_| self.statement.is_some());
        let inner = fields
            .internal_position
            .filter(|_| fields.internal_query.is_some());
        let columns = [
            millis_text(self.now),
            named(&who.user),
            named(&who.database),
            who.pid.to_string(),
            quoted(from.as_deref()),
            self.session_id(),
            self.count.to_string(),
            quoted(Some(self.context.command)),
            seconds_text(who.started),
            self.virtual_xid(),
            self.context.xid.to_string(),
            self.level.name().to_owned(),
            self.body.state().as_str().to_owned(),
            quoted(Some(self.body.message())),
            quoted(fields.log_detail.as_deref().or(fields.detail.as_deref())),
            quoted(fields.hint.as_deref()),
            quoted(fields.internal_query.as_deref()),
            number(inner),
            quoted(fields.context.as_deref()),
            quoted(self.statement),
            number(position),
            String::new(),
            quoted(Some(&self.context.application)),
            quoted(Some(who.kind.name())),
            String::new(),
            "0".to_owned(),
        ];
        columns.join(",") + "\n"
    }

    /// One JSON object, in a line.
    pub fn json(&mut self) -> String {
        *self.count += 1;
        let fields = self.body.fields();
        let who = self.who;
        let mut out = Object::default();
        out.text("timestamp", Some(&millis_text(self.now)));
        out.text("user", Some(&who.user).filter(|_| self.is_named()));
        out.text("dbname", Some(&who.database).filter(|_| self.is_named()));
        out.number("pid", Some(i64::from(who.pid)));
        if let Some((host, port)) = &who.client {
            out.text("remote_host", Some(host));
            out.number("remote_port", Some(i64::from(*port)));
        }
        out.text("session_id", Some(&self.session_id()));
        out.number("line_num", i64::try_from(*self.count).ok());
        out.text("ps", Some(self.context.command));
        out.text("session_start", Some(&seconds_text(who.started)));
        let virtual_xid = Some(self.virtual_xid());
        out.text("vxid", virtual_xid.filter(|text| !text.is_empty()));
        let xid = Some(self.context.xid).filter(|xid| *xid != 0);
        out.number("txid", xid.and_then(|xid| i64::try_from(xid).ok()));
        out.text("error_severity", Some(self.level.name()));
        let state = self.body.state();
        let state = (state != SqlState::SUCCESSFUL_COMPLETION).then(|| state.as_str().to_owned());
        out.text("state_code", state.as_ref());
        out.text("message", Some(self.body.message()));
        let detail = fields.log_detail.as_ref().or(fields.detail.as_ref());
        out.text("detail", detail);
        out.text("hint", fields.hint.as_ref());
        out.text("internal_query", fields.internal_query.as_ref());
        let inner = fields
            .internal_position
            .filter(|_| fields.internal_query.is_some());
        out.number("internal_position", inner.map(i64::from));
        out.text("context", fields.context.as_ref());
        out.text("statement", self.statement);
        let position = fields.position.filter(|_| self.statement.is_some());
        out.number("cursor_position", position.map(i64::from));
        let application = Some(&self.context.application);
        out.text(
            "application_name",
            application.filter(|name| !name.is_empty()),
        );
        out.text("backend_type", Some(who.kind.name()));
        out.number("query_id", Some(0));
        out.finish()
    }
}

/// A JSON object in the making.
#[derive(Default)]
struct Object(String);

impl Object {
    fn key(&mut self, key: &str) {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        let _ = write!(self.0, "\"{key}\":");
    }

    fn text(&mut self, key: &str, value: Option<impl AsRef<str>>) {
        let Some(value) = value else {
            return;
        };
        self.key(key);
        self.0.push('"');
        for c in value.as_ref().chars() {
            match c {
                '"' => self.0.push_str("\\\""),
                '\\' => self.0.push_str("\\\\"),
                '\n' => self.0.push_str("\\n"),
                '\r' => self.0.push_str("\\r"),
                '\t' => self.0.push_str("\\t"),
                '\u{8}' => self.0.push_str("\\b"),
                '\u{c}' => self.0.push_str("\\f"),
                c if c < ' ' => {
                    let _ = write!(self.0, "\\u{:04x}", u32::from(c));
                }
                c => self.0.push(c),
            }
        }
        self.0.push('"');
    }

    fn number(&mut self, key: &str, value: Option<i64>) {
        if let Some(value) = value {
            self.key(key);
            let _ = write!(self.0, "{value}");
        }
    }

    fn finish(self) -> String {
        self.0 + "}\n"
    }
}

/// `2026-11-22 09:07:48 UTC`.
fn seconds_text(time: Timestamp) -> String {
    let seconds = time.0.div_euclid(1_000_000);
    let (days, seconds) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = ::sql::types::datetime::calendar::civil_from_days(days);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC",
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60
    )
}

/// `2026-11-22 09:07:48.076 UTC`.
fn millis_text(time: Timestamp) -> String {
    let millis = time.0.div_euclid(1_000).rem_euclid(1_000);
    let seconds = seconds_text(time);
    let seconds = seconds.trim_end_matches(" UTC");
    format!("{seconds}.{millis:03} UTC")
}
