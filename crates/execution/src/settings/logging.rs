//! What goes to the server's log, as the settings say.
//!
//! Source: PostgreSQL 15 manual, section 20.8.

use std::time::Duration;

use base::env::LogDestination;
use base::{Error, Result, SqlState};

use super::invalid;
use super::values::milliseconds;

/// How serious a message is to the server's log. Here LOG stands above ERROR: an operator wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum LogLevel {
    Debug5,
    Debug4,
    Debug3,
    Debug2,
    Debug1,
    Info,
    Notice,
    Warning,
    Error,
    Log,
    Fatal,
    Panic,
}

/// The values of `log_min_messages` and `log_min_error_statement`.
pub(super) const LEVELS: &[&str] = &[
    "debug5", "debug4", "debug3", "debug2", "debug1", "info", "notice", "warning", "error", "log",
    "fatal", "panic",
];

impl LogLevel {
    const ALL: [LogLevel; 12] = [
        LogLevel::Debug5,
        LogLevel::Debug4,
        LogLevel::Debug3,
        LogLevel::Debug2,
        LogLevel::Debug1,
        LogLevel::Info,
        LogLevel::Notice,
        LogLevel::Warning,
        LogLevel::Error,
        LogLevel::Log,
        LogLevel::Fatal,
        LogLevel::Panic,
    ];

    fn named(name: &str, default: LogLevel) -> LogLevel {
        let mut known = LEVELS.iter().zip(LogLevel::ALL);
        known
            .find(|(known, _)| **known == name)
            .map_or(default, |(_, level)| level)
    }

    /// As the log writes it.
    pub fn name(self) -> &'static str {
        match self {
            LogLevel::Info => "INFO",
            LogLevel::Notice => "NOTICE",
            LogLevel::Warning => "WARNING",
            LogLevel::Error => "ERROR",
            LogLevel::Log => "LOG",
            LogLevel::Fatal => "FATAL",
            LogLevel::Panic => "PANIC",
            _ => "DEBUG",
        }
    }
}

/// `log_statement`, and what a statement is to it: one is logged by all values from its own on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum LoggedStatements {
    None,
    Ddl,
    Mod,
    All,
}

/// `log_error_verbosity`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Verbosity {
    Terse,
    Default,
    Verbose,
}

/// The settings of the server's log, parsed.
#[derive(Clone, Debug)]
pub struct LogSettings {
    /// `log_connections`.
    pub connections: bool,
    /// `log_disconnections`.
    pub disconnections: bool,
    /// `log_destination`.
    pub destinations: Vec<LogDestination>,
    /// `log_line_prefix`.
    pub line_prefix: String,
    /// `log_error_verbosity`.
    pub verbosity: Verbosity,
    /// `log_min_messages`.
    pub min_messages: LogLevel,
    /// `log_min_error_statement`.
    pub min_error_statement: LogLevel,
    /// `log_statement`.
    pub statements: LoggedStatements,
    /// `log_min_duration_statement`; none at -1.
    pub min_duration: Option<Duration>,
    /// `log_duration`.
    pub duration: bool,
    /// `log_parameter_max_length`, in bytes; none at -1.
    pub parameter_bytes_max: Option<usize>,
}

impl LogSettings {
    /// Those of whoever has set nothing.
    pub fn usual() -> LogSettings {
        LogSettings::read(|_| String::new())
    }

    /// Reads them from the texts of the settings.
    pub(super) fn read(text: impl Fn(&'static str) -> String) -> LogSettings {
        let is_on = |name| text(name) == "on";
        LogSettings {
            connections: is_on("log_connections"),
            disconnections: is_on("log_disconnections"),
            destinations: destinations(&text("log_destination")).unwrap_or_default(),
            line_prefix: text("log_line_prefix"),
            verbosity: match text("log_error_verbosity").as_str() {
                "terse" => Verbosity::Terse,
                "verbose" => Verbosity::Verbose,
                _ => Verbosity::Default,
            },
            min_messages: LogLevel::named(&text("log_min_messages"), LogLevel::Warning),
            min_error_statement: LogLevel::named(&text("log_min_error_statement"), LogLevel::Error),
            statements: match text("log_statement").as_str() {
                "ddl" => LoggedStatements::Ddl,
                "mod" => LoggedStatements::Mod,
                "all" => LoggedStatements::All,
                _ => LoggedStatements::None,
            },
            min_duration: milliseconds(&text("log_min_duration_statement"))
                .and_then(|millis| u64::try_from(millis).ok())
                .map(Duration::from_millis),
            duration: is_on("log_duration"),
            parameter_bytes_max: text("log_parameter_max_length").parse().ok(),
        }
    }

    /// Whether the time that statements take is looked at.
    pub fn times(&self) -> bool {
        self.duration || self.min_duration.is_some()
    }
}

/// The destinations of a list; the error is the word that is none.
fn destinations(list: &str) -> Result<Vec<LogDestination>, String> {
    let mut found = Vec::new();
    for word in list
        .split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty())
    {
        let one = match word.trim_matches('"').to_ascii_lowercase().as_str() {
            "stderr" => LogDestination::Stderr,
            "csvlog" => LogDestination::Csv,
            "jsonlog" => LogDestination::Json,
            _ => return Err(word.trim_matches('"').to_owned()),
        };
        if !found.contains(&one) {
            found.push(one);
        }
    }
    Ok(found)
}

/// Checks a value of `log_destination`.
///
/// # Errors
/// 22023; 0A000 for destinations of PostgreSQL that are not here.
pub(super) fn check_destinations(name: &str, value: &str) -> Result<String> {
    match destinations(value) {
        Ok(_) => Ok(value.to_owned()),
        Err(word) if matches!(word.as_str(), "syslog" | "eventlog") => {
            Err(Error::unsupported(format!("log_destination \"{word}\"")))
        }
        Err(word) => {
            Err(invalid(name, value).with_detail(format!("Unrecognized key word: \"{word}\".")))
        }
    }
}

/// Checks a time that may be turned off by -1.
///
/// # Errors
/// 22023.
pub(super) fn check_time_or_off(name: &str, value: &str) -> Result<String> {
    match milliseconds(value) {
        None => Err(invalid(name, value).with_hint(
            "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\".",
        )),
        Some(millis) if millis < -1 => Err(Error::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!(
                "{millis} ms is outside the valid range for parameter \"{name}\" (-1 .. 2147483647)"
            ),
        )),
        Some(-1) => Ok("-1".to_owned()),
        Some(millis) => Ok(format!("{millis}ms")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Asker, Settings};
    use super::*;

    fn with(name: &str, value: &str) -> Result<Settings> {
        let mut settings = Settings::of_nobody();
        settings.begin_with(Asker::Configuration, name, value)?;
        Ok(settings)
    }

    #[test]
    fn destinations_are_a_list() {
        let settings = with("log_destination", "stderr, CSVLOG,jsonlog,stderr").unwrap();
        let all = [
            LogDestination::Stderr,
            LogDestination::Csv,
            LogDestination::Json,
        ];
        assert_eq!(settings.log().destinations, all);
        assert!(with("log_destination", "")
            .unwrap()
            .log()
            .destinations
            .is_empty());
        let error = with("log_destination", "stderr,paper").unwrap_err();
        let detail = error.fields().detail.as_deref();
        assert_eq!(detail, Some("Unrecognized key word: \"paper\"."));
        let error = with("log_destination", "syslog").unwrap_err();
        assert_eq!(error.state(), SqlState::FEATURE_NOT_SUPPORTED);
    }

    #[test]
    fn minus_one_turns_a_time_off() {
        for (value, expected, shown) in [
            ("-1", None, "-1"),
            ("0", Some(0), "0"),
            ("2s", Some(2_000), "2s"),
        ] {
            let settings = with("log_min_duration_statement", value).unwrap();
            let expected = expected.map(Duration::from_millis);
            assert_eq!(settings.log().min_duration, expected);
            let name = "log_min_duration_statement";
            assert_eq!(settings.show(name).unwrap().1, shown);
        }
        assert!(with("log_min_duration_statement", "-2").is_err());
        let settings = with("log_min_messages", "LOG").unwrap();
        assert_eq!(settings.log().min_messages, LogLevel::Log);
    }
}
