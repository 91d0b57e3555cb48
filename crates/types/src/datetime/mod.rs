//! Dates, times, time zones and intervals, on the proleptic Gregorian calendar.
//!
//! A date is days, a time or timestamp microseconds, both since 2000-01-01. The extreme integers
//! are the infinities. Years are astronomical inside (0 is 1 BC) and are shown with `BC`.
//!
//! | module | what |
//! |---|---|
//! | [`calendar`] | days ↔ year, month, day; ranges |
//! | [`parse`] | text → fields, for dates, times and timestamps |
//! | [`date`], [`time`], [`timestamp`] | the types: text forms, arithmetic |
//! | [`interval`] | intervals: text forms, arithmetic |
//! | [`zone`] | time zones |
//! | [`style`] | `DateStyle`: how dates and timestamps are written |
//! | [`fields`] | `extract`, `date_part`, `date_trunc` |
//!
//! Source: PostgreSQL 15 manual, sections 8.5, 9.9 and appendix B.

pub mod abbreviations;
pub mod calendar;
pub mod date;
pub mod fields;
pub mod interval;
pub mod interval_text;
pub mod parse;
pub mod style;
pub mod time;
pub mod timestamp;
pub mod zone;

use base::error::{Error, SqlState};

pub use interval::Interval;

/// Microseconds of a second.
pub const SECOND: i64 = 1_000_000;
/// Microseconds of a minute.
pub const MINUTE: i64 = 60 * SECOND;
/// Microseconds of an hour.
pub const HOUR: i64 = 60 * MINUTE;
/// Microseconds of a day.
pub const DAY: i64 = 24 * HOUR;
/// Seconds between 1970-01-01 and 2000-01-01.
pub const UNIX_TO_EPOCH_SECONDS: i64 = 946_684_800;

/// 22008 with this message.
pub fn overflow(message: impl Into<String>) -> Error {
    Error::new(SqlState::DATETIME_FIELD_OVERFLOW, message)
}
