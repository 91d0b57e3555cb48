//! The timestamps of a group: they grow with the LSN, whatever clocks of machines do.
//!
//! ```
//! use base::Timestamp;
//! use spanning::{trusted, Clock};
//! let mut clock = Clock::new(Timestamp(100));
//! assert_eq!(clock.next(None, Timestamp(0)), Timestamp(101));
//! // A machine's clock counts if most others agree with it.
//! let hour = 3_600_000_000;
//! let wild = trusted(Timestamp(hour), &[Timestamp(150), Timestamp(160)], 1_000_000);
//! assert_eq!(clock.next(wild, Timestamp(0)), Timestamp(102));
//! let sane = trusted(Timestamp(155), &[Timestamp(150), Timestamp(hour)], 1_000_000);
//! assert_eq!(clock.next(sane, Timestamp(0)), Timestamp(155));
//! // What a transaction has heard of elsewhere is before it.
//! assert_eq!(clock.next(sane, Timestamp(170)), Timestamp(171));
//! ```

use base::Timestamp;

use crate::planted::{is_planted, Bug};

/// The clock of a group's leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    last: Timestamp,
}

impl Clock {
    /// A clock that goes on after a timestamp: of a new leader, the greatest in its log, the ceiling
    /// included ([`Ledger::begins_after`](crate::Ledger::begins_after)).
    pub fn new(last: Timestamp) -> Clock {
        Clock { last }
    }

    /// The last timestamp given, or promised to a reader.
    pub fn last(&self) -> Timestamp {
        self.last
    }

    /// The timestamp of the next entry: above all before, above what was heard, and `own` if that
    /// is more.
    pub fn next(&mut self, own: Option<Timestamp>, heard: Timestamp) -> Timestamp {
        let above = Timestamp(self.last.0.max(heard.0).saturating_add(1));
        self.last = own.map_or(above, |own| own.max(above));
        self.last
    }

    /// What comes next is above `read`, at which somebody is about to read.
    pub fn pass(&mut self, read: Timestamp) {
        if !is_planted(Bug::ClockNotPassed) {
            self.last = self.last.max(read);
        }
    }
}

/// A machine's own clock, if it is within `bound` microseconds of a majority's, itself included.
/// So one wild clock cannot drive the timestamps of a cluster; where this is `None` a leader counts
/// on from its last timestamp.
pub fn trusted(own: Timestamp, others: &[Timestamp], bound: i64) -> Option<Timestamp> {
    let near = |other: &&Timestamp| own.0.abs_diff(other.0) <= bound.unsigned_abs();
    let agreeing = 1 + others.iter().filter(near).count();
    (2 * agreeing > 1 + others.len()).then_some(own)
}
