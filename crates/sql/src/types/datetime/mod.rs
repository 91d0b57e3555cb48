//! Dates, times, time zones and intervals.

pub mod interval;
pub mod zone;
