//! How serious what is said to a client is.

use super::LogLevel;

/// How serious a notice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum NoticeSeverity {
    Debug,
    Log,
    Info,
    Notice,
    Warning,
}

impl NoticeSeverity {
    /// As NoticeResponse writes it.
    pub fn name(self) -> &'static str {
        match self {
            NoticeSeverity::Debug => "DEBUG",
            NoticeSeverity::Log => "LOG",
            NoticeSeverity::Info => "INFO",
            NoticeSeverity::Notice => "NOTICE",
            NoticeSeverity::Warning => "WARNING",
        }
    }
}

impl NoticeSeverity {
    /// The same to the server's log.
    pub fn level(self) -> LogLevel {
        match self {
            NoticeSeverity::Debug => LogLevel::Debug1,
            NoticeSeverity::Log => LogLevel::Log,
            NoticeSeverity::Info => LogLevel::Info,
            NoticeSeverity::Notice => LogLevel::Notice,
            NoticeSeverity::Warning => LogLevel::Warning,
        }
    }
}
