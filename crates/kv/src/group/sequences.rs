//! Numbers of sequences that were granted to this leader ahead of their use.
//!
//! A grant is a record; until it is used up, taking a number is a look into memory. Whatever is
//! left of a grant when leadership ends is lost, as with PostgreSQL's `CACHE`.

use base::hash::HashMap;
use base::{Error, Position, Result, SequenceId, SqlState};

/// Numbers of the first grant of a sequence; each further one is twice as large …
const GRANT_MIN: u64 = 32;
/// … up to this.
const GRANT_MAX: u64 = 4_096;

#[derive(Clone, Copy, Debug)]
struct Grant {
    next: u64,
    end: u64,
    ahead: u64,
    position: Position,
}

/// What is left of the grants of one term.
#[derive(Debug, Default)]
pub struct Sequences {
    grants: HashMap<SequenceId, Grant>,
}

/// A grant that must be logged before numbers can be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    first: u64,
    after: u64,
    ahead: u64,
    /// The first number that is not granted.
    pub end: u64,
}

impl Sequences {
    /// Takes `count` numbers that are granted already: the first, and what they rest on.
    pub fn take(&mut self, sequence: SequenceId, count: u64) -> Option<(u64, Position)> {
        let grant = self.grants.get_mut(&sequence)?;
        let after = grant.next.checked_add(count)?;
        if after > grant.end {
            return None;
        }
        let first = std::mem::replace(&mut grant.next, after);
        Some((first, grant.position))
    }

    /// The grant that must be logged so that `count` numbers can be taken; `stored` is the first
    /// number that was never granted.
    ///
    /// # Errors
    /// 22003 at the end of all numbers.
    pub fn wanted(&self, sequence: SequenceId, count: u64, stored: u64) -> Result<Wanted> {
        let grant = self.grants.get(&sequence);
        let first = grant.map_or(stored, |grant| grant.next);
        let ahead = grant.map_or(GRANT_MIN, |grant| (2 * grant.ahead).min(GRANT_MAX));
        let after = first.checked_add(count);
        let after = after.filter(|after| *after < i64::MAX as u64);
        let after = after.ok_or_else(|| {
            let message = format!("sequence {sequence} has no more numbers");
            Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message)
        })?;
        Ok(Wanted {
            first,
            after,
            ahead,
            end: stored.max(after + ahead),
        })
    }

    /// The grant was logged at `position`: the numbers are taken, the first is returned.
    pub fn granted(&mut self, sequence: SequenceId, wanted: Wanted, position: Position) -> u64 {
        let grant = Grant {
            next: wanted.after,
            end: wanted.end,
            ahead: wanted.ahead,
            position,
        };
        self.grants.insert(sequence, grant);
        wanted.first
    }

    /// Leadership has ended: what is left is lost.
    pub fn clear(&mut self) {
        self.grants.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_contiguous_and_granted_ahead() {
        let mut sequences = Sequences::default();
        let id = SequenceId(5);
        assert_eq!(sequences.take(id, 1), None);
        let position = Position::default();
        let wanted = sequences.wanted(id, 1, 1).unwrap();
        assert_eq!(wanted.end, 2 + GRANT_MIN);
        assert_eq!(sequences.granted(id, wanted, position), 1);
        assert_eq!(sequences.take(id, GRANT_MIN - 1), Some((2, position)));
        assert_eq!(sequences.take(id, 2), None);
        let wanted = sequences.wanted(id, 2, 34).unwrap();
        assert_eq!(sequences.granted(id, wanted, position), 33);
        sequences.clear();
        let wanted = sequences.wanted(id, 1, wanted.end).unwrap();
        assert_eq!(sequences.granted(id, wanted, position), 35 + 2 * GRANT_MIN);
        assert!(sequences.wanted(id, u64::MAX, 5).is_err());
    }
}
