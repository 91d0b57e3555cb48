//! Values of SQL's sequences: taken in memory, logged ahead.
//!
//! A grant is a record that says how far values may be given; until it is used up, taking one is a
//! look into memory under a latch of its own, so that nobody stands in line with commits. After a
//! failover the sequence goes on after the newest grant: whatever was left of it is a gap.
//!
//! ```text
//! record: up to 33          next_values: 1 2 3 …          failover: the next is 34
//! ```
//!
//! # Invariants
//! * A value was logged before it is given, and owes that record: if a failover takes the record
//!   back, nobody has been told of the value.
//! * Grants are of one term. They are changed with the group's latch held, so that they follow one
//!   another as their records do; the latches are taken in that order.

use base::engine::{SequencePosition, SequenceSpec, SequenceValues};
use base::hash::HashMap;
use base::sync::Mutex;
use base::{Debt, Position, Result, SequenceId};

use super::{not_leader, Group};
use crate::apply;
use crate::record;

/// Values of the first grant of a sequence; each further one is twice as large …
const GRANT_MIN: u64 = 32;
/// … up to this.
const GRANT_MAX: u64 = 4_096;

#[derive(Clone, Copy, Debug)]
struct Grant {
    at: SequencePosition,
    /// The step that was counted with.
    increment: i64,
    /// How many further values are logged.
    left: u64,
    /// How many values the next grant has.
    ahead: u64,
    /// What they rest on.
    position: Position,
}

/// What is left of the grants of one term.
#[derive(Debug, Default)]
pub(super) struct Values {
    grants: Mutex<HashMap<SequenceId, Grant>>,
}

impl Values {
    /// Takes values that are logged already.
    fn take(
        &self,
        sequence: SequenceId,
        spec: &SequenceSpec,
        count: u64,
    ) -> Option<(SequenceValues, Position)> {
        let mut grants = self.grants.lock();
        let grant = grants.get_mut(&sequence)?;
        if grant.left == 0 || grant.increment != spec.increment {
            return None;
        }
        let first = spec.next(grant.at)?;
        let count = count.min(spec.room(first));
        // A grant ends where the sequence does: what is left lies before that.
        if count > grant.left || !grant.at.called {
            return None;
        }
        grant.at.last = spec.after(first, count - 1);
        grant.left -= count;
        Some((SequenceValues { first, count }, grant.position))
    }

    fn get(&self, sequence: SequenceId) -> Option<Grant> {
        self.grants.lock().get(&sequence).copied()
    }

    fn put(&self, sequence: SequenceId, grant: Grant) {
        self.grants.lock().insert(sequence, grant);
    }

    /// Leadership has ended: what is left is lost.
    pub(super) fn clear(&self) {
        self.grants.lock().clear();
    }
}

impl Group {
    /// As [`base::engine::Sequences::next_values`].
    ///
    /// # Errors
    /// [`not_leader`].
    pub fn next_values(
        &self,
        sequence: SequenceId,
        spec: &SequenceSpec,
        count: u64,
    ) -> Result<(SequenceValues, Debt)> {
        if let Some((values, position)) = self.values.take(sequence, spec, count) {
            return Ok((values, Debt::of(self.config.group, position)));
        }
        let mut core = self.lock_to_append()?;
        let term = core.led.filter(|_| !core.failed && !core.deaf);
        let term = term.ok_or_else(not_leader)?;
        // Another may have logged more meanwhile.
        if let Some((values, position)) = self.values.take(sequence, spec, count) {
            return Ok((values, Debt::of(self.config.group, position)));
        }
        let (at, known) = self.standing(sequence, spec)?;
        let Some(first) = spec.next(at) else {
            let values = SequenceValues {
                first: at.last,
                count: 0,
            };
            let position = known.map_or(core.applied, |grant| grant.position);
            return Ok((values, Debt::of(self.config.group, position)));
        };
        let ahead = known.map_or(GRANT_MIN, |grant| grant.ahead);
        let room = spec.room(first);
        let count = count.min(room);
        let logged = count.saturating_add(ahead).min(room);
        let end = SequencePosition {
            last: spec.after(first, logged - 1),
            called: true,
        };
        let bytes = record::encode_position(sequence, end);
        let derived = apply::derive_position(sequence, end);
        let position = self.append(&mut core, term, bytes, derived)?;
        let at = SequencePosition {
            last: spec.after(first, count - 1),
            called: true,
        };
        let grant = Grant {
            at,
            increment: spec.increment,
            left: logged - count,
            ahead: (2 * ahead).min(GRANT_MAX),
            position,
        };
        self.values.put(sequence, grant);
        let values = SequenceValues { first, count };
        Ok((values, Debt::of(self.config.group, position)))
    }

    /// As [`base::engine::Sequences::set_sequence`].
    ///
    /// # Errors
    /// [`not_leader`].
    pub fn set_sequence(&self, sequence: SequenceId, to: SequencePosition) -> Result<Debt> {
        let mut core = self.lock_to_append()?;
        let term = core.led.filter(|_| !core.failed && !core.deaf);
        let term = term.ok_or_else(not_leader)?;
        let bytes = record::encode_position(sequence, to);
        let derived = apply::derive_position(sequence, to);
        let position = self.append(&mut core, term, bytes, derived)?;
        let grant = Grant {
            at: to,
            increment: 0,
            left: 0,
            ahead: GRANT_MIN,
            position,
        };
        self.values.put(sequence, grant);
        Ok(Debt::of(self.config.group, position))
    }

    /// As [`base::engine::Sequences::sequence_position`].
    ///
    /// # Errors
    /// [`not_leader`].
    pub fn sequence_position(
        &self,
        sequence: SequenceId,
        spec: &SequenceSpec,
    ) -> Result<(SequencePosition, u64, Debt)> {
        let core = self.lock();
        if core.led.is_none() || core.failed || core.deaf {
            return Err(not_leader());
        }
        let (at, known) = self.standing(sequence, spec)?;
        let left = known.map_or(0, |grant| grant.left);
        let position = known.map_or(core.applied, |grant| grant.position);
        Ok((at, left, Debt::of(self.config.group, position)))
    }

    /// Where a sequence stands, with the group's latch held.
    fn standing(
        &self,
        sequence: SequenceId,
        spec: &SequenceSpec,
    ) -> Result<(SequencePosition, Option<Grant>)> {
        if let Some(grant) = self.values.get(sequence) {
            return Ok((grant.at, Some(grant)));
        }
        let stored = apply::sequence_position(&self.store(), sequence)?;
        let fresh = SequencePosition {
            last: spec.begins_at,
            called: false,
        };
        Ok((stored.unwrap_or(fresh), None))
    }
}
