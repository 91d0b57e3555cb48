//! What a reader sees of transactions across groups that are prepared and not resolved yet.
//!
//! A part that stands when a reader comes may be of a transaction whose client knows already that it
//! is committed. So the reader waits for its outcome, which takes a round trip at most; then it reads
//! at a timestamp T that is not below any of those commits, and sees what is committed at T or before:
//!
//! ```text
//! log of a group   … 40       41          42             43       44          45
//!                    ts 90    part, 98    local, 99      part     local, 104  resolves 41: C = 103
//! reader           comes at 42: 41 stands ─────── waits ─────────────────────► T = 103
//!                  reads everything up to 43, the last record whose timestamp is at most T,
//!                  and 45 as well, since its C is at most T; it waits for the part at 43
//! ```
//! Where nothing stands, which is nearly always so, a reader takes what is visible and asks nobody.
//!
//! # Invariants
//! - Timestamps grow with the LSN, and what is appended after a reader has T is later than T.
//! - A reader waits only for what stood at its LSN; what is prepared later has a later commit.
//! - From its first look on, what becomes visible later is kept for the reader, and taken back from
//!   it only with its term.

use std::collections::VecDeque;
use std::sync::Arc;

use base::coro;
use base::{Error, Lsn, Position, Result, Term, Timestamp};
use spanning::SpanningId;

use super::core::Core;
use super::{not_leader, term_is_over, Group, Snapshot};

/// How many records' timestamps a leader remembers: those of the time for which a reader waits.
const REMEMBERED: usize = 4_096;

/// A reader for whom more was forgotten begins anew, so often.
const LOOKS_MAX: usize = 8;

/// When the newest records of a leader were proposed.
#[derive(Debug, Default)]
pub struct Proposals(VecDeque<(Timestamp, Lsn)>);

impl Proposals {
    /// A record was proposed.
    pub fn note(&mut self, timestamp: Timestamp, lsn: Lsn) {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back((timestamp, lsn));
    }

    /// Nothing of another term counts.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Of what stands above `from`, the last record that is not later than a timestamp, `from` if
    /// all are later; none when that is forgotten.
    fn last_until(&self, timestamp: Timestamp, from: Lsn) -> Option<Lsn> {
        let earlier = self.0.partition_point(|(at, _)| *at <= timestamp);
        match earlier.checked_sub(1) {
            Some(last) => Some(self.0[last].1.max(from)),
            None => match self.0.front() {
                Some((_, first)) if first.prev() > from => None,
                _ => Some(from),
            },
        }
    }
}

/// A reader's first look at a group.
#[derive(Debug)]
pub(crate) struct Look {
    group: Arc<Group>,
    snapshot: Snapshot,
    /// The last timestamp of the group.
    timestamp: Timestamp,
    standing: Vec<SpanningId>,
    _awaiting: Awaiting,
}

/// Keeps what becomes visible above an LSN.
#[derive(Debug)]
struct Awaiting {
    group: Arc<Group>,
    lsn: Lsn,
}

impl Drop for Awaiting {
    fn drop(&mut self) {
        self.group.snapshots.end_awaiting(self.lsn);
    }
}

/// Records above a snapshot's position that belong to it.
#[derive(Debug)]
pub struct Also {
    /// Where they stand.
    pub lsns: Vec<Lsn>,
    /// They keep the versions.
    _pins: Vec<Snapshot>,
}

/// A snapshot, and what belongs to it although it stands above.
pub type Shown = (Snapshot, Option<Arc<Also>>);

impl Group {
    /// Whether parts of transactions across groups stand in the log.
    fn has_parts(&self) -> bool {
        let prepared = self.prepared();
        let stand = || prepared.newest().parts().next().is_some();
        let resolutions = self.registry.resolutions();
        resolutions.stand(|| prepared.version(), stand)
    }

    /// What is prepared here and not resolved yet.
    pub(super) fn standing_parts(&self) -> Vec<SpanningId> {
        match self.has_parts() {
            true => (self.prepared().newest().parts().map(|part| part.id)).collect(),
            false => Vec::new(),
        }
    }

    /// Waits (inside a coroutine) until whatever is prepared here now is resolved.
    ///
    /// # Errors
    /// 40001 when this node leads no longer; the interrupt that ended the wait.
    pub fn wait_for_standing(&self) -> Result<()> {
        let standing = self.standing_parts();
        match standing.is_empty() {
            true => Ok(()),
            false => self.until_resolved(self.leading().ok_or_else(not_leader)?, &standing),
        }
    }

    /// Ready when none of these parts stands in the log any more, or another leads.
    pub(super) async fn resolved(&self, standing: &[SpanningId]) {
        let term = self.leading();
        let resolved = || {
            let prepared = self.prepared().newest();
            let stand = prepared.parts().any(|part| standing.contains(&part.id));
            (!stand || term.is_none() || self.leading() != term).then_some(())
        };
        self.standing_changed().until(resolved).await;
    }

    /// What a statement sees that reads this group alone: [`Group::snapshot`], and what was committed
    /// across groups before.
    ///
    /// # Errors
    /// As [`Group::snapshot`].
    pub fn shown(self: &Arc<Self>) -> Result<Shown> {
        loop {
            let version = self.prepared().version();
            if self.has_parts() {
                return self.shown_beside_parts();
            }
            let snapshot = self.snapshot()?;
            // Whatever stands in it now was prepared after the statement began.
            if self.prepared().version() == version {
                return Ok((snapshot, None));
            }
        }
    }

    /// The same where parts stand.
    fn shown_beside_parts(self: &Arc<Self>) -> Result<Shown> {
        for _ in 0..LOOKS_MAX {
            let look = self.look()?;
            let Some(settled) = look.settled()? else {
                continue;
            };
            if let Some(shown) = look.at(settled)? {
                return Ok(shown);
            }
        }
        let message = "could not take a snapshot: too much is committed meanwhile";
        Err(Error::serialization(message))
    }

    /// Looks at what is visible and what stands there.
    ///
    /// # Errors
    /// As [`Group::snapshot`].
    pub(crate) fn look(self: &Arc<Self>) -> Result<Look> {
        loop {
            let look = self.look_now(&*self.lock_to_append()?)?;
            if self.has_lease(look.snapshot.term()) {
                return Ok(look);
            }
            drop(look);
            self.wait_for_lease()?;
        }
    }

    fn look_now(self: &Arc<Self>, core: &Core) -> Result<Look> {
        core.led.ok_or_else(not_leader)?;
        let snapshot = self.take_snapshot()?;
        let lsn = snapshot.position().lsn;
        self.snapshots.begin_awaiting(lsn);
        let awaiting = Awaiting {
            group: self.clone(),
            lsn,
        };
        Ok(Look {
            group: self.clone(),
            snapshot,
            timestamp: core.timestamp,
            standing: (self.prepared().newest().parts().map(|part| part.id)).collect(),
            _awaiting: awaiting,
        })
    }

    /// Waits until none of these parts stands in the log any more.
    fn until_resolved(&self, term: Term, standing: &[SpanningId]) -> Result<()> {
        if !standing.is_empty() {
            coro::wait(self.resolved(standing))?;
        }
        self.check_term(term)
    }
}

impl Look {
    fn term(&self) -> Term {
        self.snapshot.term()
    }

    /// Waits for what stands in it; the greatest timestamp of the commits among that and of the group,
    /// if it is known.
    ///
    /// # Errors
    /// As [`Group::wait_for_standing`].
    pub(crate) fn settled(&self) -> Result<Option<Timestamp>> {
        self.group.until_resolved(self.term(), &self.standing)?;
        let resolved = self.group.registry.resolutions();
        let resolved = resolved.above(self.snapshot.position().lsn);
        Ok(resolved.map(|resolved| {
            let seen = resolved
                .iter()
                .filter(|one| self.standing.contains(&one.id));
            let last = seen.map(|one| one.at).max();
            last.map_or(self.timestamp, |last| last.max(self.timestamp))
        }))
    }

    /// What is there at a timestamp that is not below what [`Look::settled`] says; none when too much
    /// has happened since.
    ///
    /// # Errors
    /// As [`Group::wait_for_standing`].
    pub(crate) fn at(&self, timestamp: Timestamp) -> Result<Option<Shown>> {
        let group = &self.group;
        let from = self.snapshot.position().lsn;
        let (snapshot, standing) = {
            let mut core = group.lock_to_append()?;
            if core.led != Some(self.term()) {
                return Err(term_is_over());
            }
            let last = match core.timestamp <= timestamp {
                true => Some(core.applied.lsn),
                false => core.proposals.last_until(timestamp, from),
            };
            core.timestamp = core.timestamp.max(timestamp);
            let Some(last) = last else {
                return Ok(None);
            };
            let prepared = group.prepared().newest();
            let standing = prepared.parts().filter(|part| part.lsn <= last);
            let standing: Vec<_> = standing.map(|part| part.id).collect();
            (group.pinned(self.term(), last), standing)
        };
        group.until_resolved(self.term(), &standing)?;
        let last = snapshot.position().lsn;
        let Some(resolved) = group.registry.resolutions().above(last) else {
            return Ok(None);
        };
        let seen = (resolved.iter()).filter(|one| one.prepared <= last && one.at <= timestamp);
        let lsns: Vec<Lsn> = seen.map(|one| one.lsn).collect();
        if lsns.is_empty() {
            return Ok(Some((snapshot, None)));
        }
        let pin = |lsn: &Lsn| group.pinned(self.term(), *lsn);
        let pins = lsns.iter().map(pin).collect();
        Ok(Some((snapshot, Some(Arc::new(Also { lsns, _pins: pins })))))
    }
}

impl Group {
    /// A snapshot at an LSN from which on everything is kept.
    fn pinned(self: &Arc<Self>, term: Term, lsn: Lsn) -> Snapshot {
        self.snapshots.take(|| (lsn, ()));
        Snapshot {
            group: self.clone(),
            position: Position { term, lsn },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_record_until_a_timestamp_is_found_while_it_is_remembered() {
        let mut proposals = Proposals::default();
        let until =
            |proposals: &Proposals, at, from| proposals.last_until(Timestamp(at), Lsn(from));
        assert_eq!(until(&proposals, 5, 70), Some(Lsn(70)));
        for lsn in 71..=80 {
            proposals.note(Timestamp(10 * lsn), Lsn(lsn as u64));
        }
        assert_eq!(until(&proposals, 765, 70), Some(Lsn(76)));
        assert_eq!(until(&proposals, 765, 78), Some(Lsn(78)));
        assert_eq!(until(&proposals, 700, 70), Some(Lsn(70)));
        assert_eq!(until(&proposals, 900, 70), Some(Lsn(80)));
        for lsn in 81..=80 + REMEMBERED as i64 {
            proposals.note(Timestamp(10 * lsn), Lsn(lsn as u64));
        }
        assert_eq!(until(&proposals, 765, 70), None);
    }
}
