//! RAISE and ASSERT.

use base::{Error, Result, SqlState};

use super::super::{NoticeSeverity, Session};
use super::piece::Piece;
use super::run::Frame;
use syntax::plpgsql::ast::{Condition, Level, Message, Raise};
use syntax::plpgsql::conditions;
use types::{Datum, TypeId};

impl Session {
    /// RAISE: a notice, or the error itself.
    pub(super) fn raise(
        &mut self,
        raise: &Raise,
        line: impl std::fmt::Display,
        (arguments, options): (&[Piece], &[(String, Piece)]),
        frame: &mut Frame<'_>,
    ) -> Result<()> {
        let mut state = None;
        let mut message;
        match &raise.message {
            Message::Again => {
                return Err(frame.errors.last().cloned().unwrap_or_else(|| {
                    Error::new(
                        SqlState::of("0Z002"),
                        "RAISE without parameters cannot be used outside an exception handler",
                    )
                }))
            }
            // USING MESSAGE says it then.
            Message::Format { format, .. } if format.is_empty() && !options.is_empty() => {
                message = None;
            }
            Message::Format { format, .. } => {
                message = Some(self.formatted(format, arguments, frame)?);
            }
            Message::Condition(condition) => {
                state = condition_state(condition);
                message = Some(match condition {
                    Condition::Named(name) | Condition::State(name) => name.clone(),
                    Condition::Others => "others".to_owned(),
                });
            }
        }
        let by_condition = matches!(raise.message, Message::Condition(_));
        let mut error = Error::new(SqlState::RAISE_EXCEPTION, "");
        for (number, (name, piece)) in options.iter().enumerate() {
            let Some(text) = self.text_of(piece, frame)? else {
                return Err(Error::new(
                    SqlState::of("22004"),
                    "RAISE statement option cannot be null",
                ));
            };
            let is_message = name == "MESSAGE" && message.is_some() && !by_condition;
            let is_state = name == "ERRCODE" && state.is_some();
            let is_twice = options
                .iter()
                .take(number)
                .any(|earlier| earlier.0 == *name);
            if is_message || is_state || is_twice {
                return Err(Error::new(
                    SqlState::SYNTAX_ERROR,
                    format!("RAISE option already specified: {name}"),
                ));
            }
            let fields = error.fields_mut();
            match name.as_str() {
                "MESSAGE" => message = Some(text),
                "ERRCODE" => state = Some(code_of(&text)?),
                "DETAIL" => fields.detail = Some(text),
                "HINT" => fields.hint = Some(text),
                "COLUMN" => fields.column = Some(text),
                "CONSTRAINT" => fields.constraint = Some(text),
                "DATATYPE" => fields.datatype = Some(text),
                "TABLE" => fields.table = Some(text),
                "SCHEMA" => fields.schema = Some(text),
                _ => return Err(Error::unsupported(format!("RAISE option {name}"))),
            }
        }
        let is_error = raise.level == Level::Exception;
        let default = match raise.level {
            Level::Exception => SqlState::RAISE_EXCEPTION,
            Level::Warning => SqlState::WARNING,
            _ => SqlState::SUCCESSFUL_COMPLETION,
        };
        let state = state.unwrap_or(default);
        let message = message.unwrap_or_else(|| state.as_str().to_owned());
        let mut body = Error::new(state, message);
        *body.fields_mut() = std::mem::take(error.fields_mut());
        if is_error {
            return Err(body);
        }
        let severity = match raise.level {
            Level::Debug => NoticeSeverity::Debug,
            Level::Log => NoticeSeverity::Log,
            Level::Info => NoticeSeverity::Info,
            Level::Warning => NoticeSeverity::Warning,
            _ => NoticeSeverity::Notice,
        };
        let place = format!("PL/pgSQL function {} line {line} at RAISE", frame.name);
        body.fields_mut().context = Some(place);
        self.notice(severity, body, frame.sink)
    }

    fn formatted(
        &mut self,
        format: &str,
        arguments: &[Piece],
        frame: &mut Frame<'_>,
    ) -> Result<String> {
        let mut out = String::with_capacity(format.len());
        let mut arguments = arguments.iter();
        let mut chars = format.chars().peekable();
        while let Some(c) = chars.next() {
            if c != '%' {
                out.push(c);
                continue;
            }
            if chars.peek() == Some(&'%') {
                chars.next();
                out.push('%');
                continue;
            }
            let piece = arguments.next().ok_or_else(|| {
                Error::new(
                    SqlState::SYNTAX_ERROR,
                    "too few parameters specified for RAISE",
                )
            })?;
            match self.text_of(piece, frame)? {
                Some(text) => out.push_str(&text),
                None => out.push_str("<NULL>"),
            }
        }
        Ok(out)
    }

    fn text_of(&mut self, piece: &Piece, frame: &Frame<'_>) -> Result<Option<String>> {
        let (value, ty) = self.value_of(piece, &frame.slots)?;
        match value {
            Datum::Null => Ok(None),
            value => types::output(&self.eval, ty, &value).map(Some),
        }
    }

    /// ASSERT.
    pub(super) fn assert(
        &mut self,
        condition: &Piece,
        message: Option<&Piece>,
        frame: &mut Frame<'_>,
    ) -> Result<()> {
        if self.shared.settings.parsed().procedural.skips_asserts {
            return Ok(());
        }
        let (value, ty) = self.value_of(condition, &frame.slots)?;
        if self.convert(value, ty, TypeId::BOOL, -1)?.is_true() {
            return Ok(());
        }
        let message = match message {
            Some(message) => self.text_of(message, frame)?,
            None => None,
        };
        let message = message.unwrap_or_else(|| "assertion failed".to_owned());
        Err(Error::new(SqlState::of("P0004"), message))
    }
}

fn condition_state(condition: &Condition) -> Option<SqlState> {
    match condition {
        Condition::Named(name) => conditions::states(name).next(),
        Condition::State(text) => <[u8; 5]>::try_from(text.as_bytes()).ok().map(SqlState),
        Condition::Others => None,
    }
}

/// The state that ERRCODE gives: five characters, or a condition's name.
fn code_of(text: &str) -> Result<SqlState> {
    let is_code = text.len() == 5
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
    if is_code {
        if let Ok(code) = <[u8; 5]>::try_from(text.as_bytes()) {
            return Ok(SqlState(code));
        }
    }
    conditions::states(text).next().ok_or_else(|| {
        Error::new(
            SqlState::UNDEFINED_OBJECT,
            format!("unrecognized exception condition \"{text}\""),
        )
    })
}
