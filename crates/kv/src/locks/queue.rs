//! One lock: who holds it and who stands in line. No latch, no waiting: only the rules.
//!
//! # Rules
//! - A request is granted when it conflicts with no other holder and with nobody who waits.
//! - Who holds the lock in some mode and wants another (an upgrade) does not look at the line: it
//!   is granted when it conflicts with no other holder, else it goes to the front, behind earlier
//!   upgrades. In line it could never be served: those ahead may wait for what it holds.
//! - When a mode is given up, a waiter leaves or the line's order is changed, the line is served
//!   from the front: each waiter that conflicts with no other holder and with no waiter still ahead
//!   of it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::Arc;

use base::sync::Event;

use super::deadlock::{Blocked, Met};
use super::modes::{Mode, Modes};
use super::owner::{Owner, Party};
use super::Name;

/// Where a waiter learns what became of its request.
#[derive(Debug, Default)]
pub(super) struct Ticket {
    outcome: AtomicU8,
    pub(super) event: Event,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The lock is held.
    Granted,
    /// This node leads no longer; all locks are gone.
    Lost,
}

impl Ticket {
    pub(super) fn outcome(&self) -> Option<Outcome> {
        match self.outcome.load(Ordering::Acquire) {
            0 => None,
            1 => Some(Outcome::Granted),
            _ => Some(Outcome::Lost),
        }
    }

    /// Settles the request; the event is notified later, outside latches.
    pub(super) fn settle(&self, outcome: Outcome) {
        let code = match outcome {
            Outcome::Granted => 1,
            Outcome::Lost => 2,
        };
        let before = self.outcome.swap(code, Ordering::AcqRel);
        assert_eq!(before, 0, "a request is settled once, now {outcome:?}");
    }
}

#[derive(Clone, Copy, Debug)]
struct Holder {
    owner: Owner,
    modes: Modes,
}

#[derive(Debug)]
struct Waiter {
    owner: Owner,
    mode: Mode,
    /// The owner holds the lock already, in other modes.
    upgrade: bool,
    ticket: Arc<Ticket>,
}

/// What became of a request at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The owner holds it, in this mode or one that excludes at least as much.
    Covered,
    /// The owner holds it now; before it held these modes of it.
    Granted(Modes),
    /// Others are in the way.
    Conflict(Modes),
}

/// One lock. The first holder lives in place, so that an uncontended lock allocates nothing here.
#[derive(Debug, Default)]
pub(super) struct Lock {
    first: Option<Holder>,
    others: Vec<Holder>,
    queue: VecDeque<Waiter>,
}

impl Lock {
    /// A lock that was free until now.
    pub(super) fn held(owner: Owner, mode: Mode) -> Lock {
        let modes = Modes::NONE.with(mode);
        Lock {
            first: Some(Holder { owner, modes }),
            ..Lock::default()
        }
    }

    /// Whether nobody holds it or waits for it.
    pub(super) fn is_free(&self) -> bool {
        self.first.is_none() && self.others.is_empty() && self.queue.is_empty()
    }

    fn holders(&self) -> impl Iterator<Item = &Holder> {
        self.first.iter().chain(&self.others)
    }

    /// The modes in which `owner` holds it.
    pub(super) fn held_by(&self, owner: Owner) -> Modes {
        self.holders()
            .find(|holder| holder.owner == owner)
            .map_or(Modes::NONE, |holder| holder.modes)
    }

    /// Whether the owner's party holds it in some mode, perhaps as another owner.
    fn is_held_by(&self, party: Party) -> bool {
        self.holders().any(|holder| holder.owner.party == party)
    }

    /// Whether somebody stands in line.
    pub(super) fn is_waited_for(&self) -> bool {
        !self.queue.is_empty()
    }

    pub(super) fn held_by_others(&self, owner: Owner) -> Modes {
        self.holders()
            .filter(|holder| holder.owner.party != owner.party)
            .fold(Modes::NONE, |all, holder| all.union(holder.modes))
    }

    /// Grants the request if nobody is in the way.
    pub(super) fn request(&mut self, owner: Owner, mode: Mode) -> Answer {
        let held = self.held_by(owner);
        if held.covers(mode) {
            return Answer::Covered;
        }
        let mut in_the_way = self.held_by_others(owner);
        if !self.is_held_by(owner.party) {
            let waiting = self.queue.iter().map(|waiter| waiter.mode);
            in_the_way = waiting.fold(in_the_way, Modes::with);
        }
        if mode.conflicts().intersects(in_the_way) {
            return Answer::Conflict(held);
        }
        self.hold(owner, held.with(mode));
        Answer::Granted(held)
    }

    /// Puts a request in line.
    pub(super) fn enqueue(&mut self, owner: Owner, mode: Mode, ticket: Arc<Ticket>) {
        let upgrade = self.is_held_by(owner.party);
        let place = if upgrade {
            self.queue.iter().take_while(|w| w.upgrade).count()
        } else {
            self.queue.len()
        };
        let waiter = Waiter {
            owner,
            mode,
            upgrade,
            ticket,
        };
        self.queue.insert(place, waiter);
    }

    /// Makes `owner`, if it still holds the lock, hold these modes only. It does not when the lock
    /// table was cleared in between.
    fn reduce(&mut self, owner: Owner, to: Modes) {
        if !self.held_by(owner).is_empty() {
            self.hold(owner, to);
        }
    }

    /// Makes `owner` hold exactly these modes; none is giving it up.
    fn hold(&mut self, owner: Owner, modes: Modes) {
        let place = self.first.iter_mut().chain(&mut self.others);
        if let Some(holder) = place.into_iter().find(|h| h.owner == owner) {
            holder.modes = modes;
        } else if !modes.is_empty() {
            let holder = Holder { owner, modes };
            match &mut self.first {
                first @ None => *first = Some(holder),
                Some(_) => self.others.push(holder),
            }
        }
        if modes.is_empty() {
            self.first.take_if(|holder| holder.owner == owner);
            self.others.retain(|holder| holder.owner != owner);
        }
    }

    /// What `owner` holds is `other`'s from now on, who holds nothing of it.
    pub(super) fn hand_over(&mut self, owner: Owner, other: Owner) {
        let mut holders = self.first.iter_mut().chain(&mut self.others);
        if let Some(holder) = holders.find(|holder| holder.owner == owner) {
            holder.owner = other;
        }
    }

    /// Takes `owner` back to these modes and serves the line; who was served is added to `served`.
    pub(super) fn give_up(&mut self, owner: Owner, to: Modes, served: &mut Vec<Arc<Ticket>>) {
        self.reduce(owner, to);
        self.serve(served);
    }

    /// Takes `owner` out of the line, or back to the modes it had if it was just granted.
    pub(super) fn withdraw(&mut self, owner: Owner, before: Modes, served: &mut Vec<Arc<Ticket>>) {
        match self.queue.iter().position(|w| w.owner == owner) {
            Some(place) => drop(self.queue.remove(place)),
            None => self.reduce(owner, before),
        }
        self.serve(served);
    }

    /// Puts a waiter right ahead of one that it waits for only because that one stands ahead of it;
    /// where it stood, and where it stands now. None if it waits for what the other holds.
    pub(super) fn move_ahead(&mut self, waiter: Party, other: Party) -> Option<(usize, usize)> {
        let place_of = |party| self.queue.iter().position(|w| w.owner.party == party);
        let (from, to) = (place_of(waiter)?, place_of(other)?);
        let excluded = self.queue[from].mode.conflicts();
        let waits_for_holder = self
            .holders()
            .any(|holder| holder.owner.party == other && excluded.intersects(holder.modes));
        if to >= from || waits_for_holder {
            return None;
        }
        self.move_back(to, from);
        Some((from, to))
    }

    /// Takes whoever stands at `to` back to `from`.
    pub(super) fn move_back(&mut self, from: usize, to: usize) {
        if let Some(waiter) = self.queue.remove(to) {
            self.queue.insert(from, waiter);
        }
    }

    /// Serves the line from its front; who was served is added to `served`.
    pub(super) fn serve(&mut self, served: &mut Vec<Arc<Ticket>>) {
        let mut ahead = Modes::NONE;
        let mut place = 0;
        while let Some(waiter) = self.queue.get(place) {
            let (owner, mode) = (waiter.owner, waiter.mode);
            let in_the_way = self.held_by_others(owner).union(ahead);
            if mode.conflicts().intersects(in_the_way) {
                ahead = ahead.with(mode);
                place += 1;
                continue;
            }
            let waiter = self.queue.remove(place).expect("it was just seen");
            self.hold(owner, self.held_by(owner).with(mode));
            waiter.ticket.settle(Outcome::Granted);
            served.push(waiter.ticket);
        }
    }

    /// Tells everyone in line that the lock is gone.
    pub(super) fn lose(&mut self, told: &mut Vec<Arc<Ticket>>) {
        for waiter in self.queue.drain(..) {
            waiter.ticket.settle(Outcome::Lost);
            told.push(waiter.ticket);
        }
    }

    /// Whom `party`, which stands in line, waits for: conflicting holders, and conflicting waiters
    /// ahead of it. None when it does not stand in line, or when all that is known from `met`.
    pub(super) fn blocked(&self, party: Party, name: &Name, met: &[Met]) -> Option<Blocked> {
        let place = self.queue.iter().position(|w| w.owner.party == party)?;
        let mode = self.queue[place].mode;
        if met.iter().any(|met| met.includes(name, place, mode)) {
            return None;
        }
        let excluded = mode.conflicts();
        let holders = self
            .holders()
            .filter(|h| h.owner.party != party && excluded.intersects(h.modes))
            .map(|h| h.owner.party);
        let ahead = self
            .queue
            .iter()
            .take(place)
            .filter(|w| excluded.intersects(Modes::NONE.with(w.mode)))
            .map(|w| w.owner.party);
        Some(Blocked {
            name: name.clone(),
            mode,
            place: (!self.is_held_by(party)).then_some(place),
            by: holders.chain(ahead).collect(),
        })
    }

    /// Everyone who holds it, mode by mode, and everyone who waits: (owner, mode, granted).
    pub(super) fn everyone(&self) -> impl Iterator<Item = (Owner, Mode, bool)> + '_ {
        let held = self
            .holders()
            .flat_map(|h| h.modes.each().map(|mode| (h.owner, mode, true)));
        held.chain(self.queue.iter().map(|w| (w.owner, w.mode, false)))
    }
}

#[cfg(test)]
impl Lock {
    /// Asserts that no two hold what excludes one another.
    pub(super) fn assert_compatible(&self) {
        let holders: Vec<_> = self.holders().collect();
        for (place, one) in holders.iter().enumerate() {
            for other in &holders[place + 1..] {
                assert!(!one.modes.excludes(other.modes), "{one:?} and {other:?}");
            }
        }
    }
}
