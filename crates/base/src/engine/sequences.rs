//! Numbers that are never taken back: of sequences, of OIDs, of rows without a primary key.
//!
//! ```text
//! next_values(s, 1, 2, …; 3 of them)   1, 3, 5
//! …the transaction rolls back
//! next_values(s, 1, 2, …; 3 of them)   7, 9, 11
//! ```
//! # Invariants
//! - No number is given twice, unless its sequence cycles or was set back: numbers are logged ahead,
//!   so that after a failover there may be a gap.
//! - A number is owed: whoever shows it waits for the debt that came with it.
//!
//! Source: PostgreSQL 15 manual, section 9.17 (sequence manipulation functions).

use crate::durability::Debt;
use crate::error::Result;
use crate::ids::SequenceId;

/// How the values of a sequence follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceSpec {
    /// The first value of a sequence that was never used.
    pub begins_at: i64,
    /// From one value to the next; negative in a descending sequence, never 0.
    pub increment: i64,
    /// The least value.
    pub min: i64,
    /// The greatest value.
    pub max: i64,
    /// Whether it goes on at its other end.
    pub cycle: bool,
}

/// Where a sequence stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequencePosition {
    /// The last value.
    pub last: i64,
    /// Whether it was given; if not, it is the next to be given.
    pub called: bool,
}

/// Values of a sequence: `first`, `first + increment`, ….
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceValues {
    /// The first.
    pub first: i64,
    /// How many; 0 at the end of the sequence.
    pub count: u64,
}

impl SequenceSpec {
    /// The value after a position; none at the end.
    pub fn next(&self, at: SequencePosition) -> Option<i64> {
        if !at.called {
            return Some(at.last);
        }
        let next = at.last.checked_add(self.increment);
        match next.filter(|next| (self.min..=self.max).contains(next)) {
            Some(next) => Some(next),
            None if self.cycle && self.increment > 0 => Some(self.min),
            None if self.cycle => Some(self.max),
            None => None,
        }
    }

    /// How many values there are from this one on, itself included, until an end is reached.
    pub fn room(&self, from: i64) -> u64 {
        let end = if self.increment > 0 {
            self.max
        } else {
            self.min
        };
        let (from, end) = (i128::from(from), i128::from(end));
        let steps = (end - from) / i128::from(self.increment);
        u64::try_from(steps.max(0)).unwrap_or(u64::MAX - 1) + 1
    }

    /// The value so many steps after this one, which must be within [`SequenceSpec::room`].
    pub fn after(&self, from: i64, steps: u64) -> i64 {
        let at = i128::from(from) + i128::from(self.increment) * i128::from(steps);
        let at = i64::try_from(at);
        at.unwrap_or(if self.increment > 0 {
            self.max
        } else {
            self.min
        })
    }
}

/// Gives the numbers.
pub trait Sequences: Send + Sync {
    /// Takes the next `count` numbers of a counter and returns the first: of OIDs, of hidden row
    /// numbers. A counter that was never used starts at 1. The debt is that of the numbers.
    ///
    /// # Errors
    /// 57P01 when this node does not lead.
    fn advance(&self, sequence: SequenceId, count: u64) -> Result<(u64, Debt)>;

    /// Takes the next values of a sequence, at most `count`; fewer near its end, none at its end.
    /// The debt is theirs.
    ///
    /// # Errors
    /// 57P01 when this node does not lead.
    fn next_values(
        &self,
        sequence: SequenceId,
        spec: &SequenceSpec,
        count: u64,
    ) -> Result<(SequenceValues, Debt)>;

    /// Sets where a sequence stands, for everyone and at once. The debt is that of the change.
    ///
    /// # Errors
    /// 57P01 when this node does not lead.
    fn set_sequence(&self, sequence: SequenceId, to: SequencePosition) -> Result<Debt>;

    /// Where a sequence stands, and how many further values are logged.
    ///
    /// # Errors
    /// 57P01 when this node does not lead.
    fn sequence_position(
        &self,
        sequence: SequenceId,
        spec: &SequenceSpec,
    ) -> Result<(SequencePosition, u64, Debt)>;
}
