//! Intervals.

/// Months, days and microseconds, each with a sign of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// Months, years included.
    pub months: i32,
    /// Days, weeks included.
    pub days: i32,
    /// Everything smaller.
    pub micros: i64,
}
