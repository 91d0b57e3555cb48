//! What the rows of a statement have set off, and what waits for its end.
//!
//! ```text
//! insert into c select …     row 1: Refers c → p    row 2: Refers c → p    …
//! end of the statement       looks at each, in this order
//! ```
//!
//! # Invariants
//! - What waits counts as held memory, until it is taken out.

use std::collections::VecDeque;

use base::large::Large;
use base::memory::Reservation;
use base::Result;

use super::Exec;
use crate::state::constraints::Event;

/// When so many wait, those that can be settled before the end of the statement are looked for.
const SETTLED_FROM: usize = if cfg!(test) { 4 } else { 8_192 };

/// The events of a statement, in the order in which they are carried out.
#[derive(Debug)]
pub struct Events {
    waiting: Large<VecDeque<Event>>,
    memory: Reservation,
    settle_at: usize,
}

impl Default for Events {
    fn default() -> Events {
        Events {
            waiting: Large::default(),
            memory: Reservation::of("Events"),
            settle_at: SETTLED_FROM,
        }
    }
}

impl Events {
    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether one of the newest so many is like another.
    pub(super) fn has_like(&self, event: &Event, newest: usize) -> bool {
        let mut newest = self.waiting.iter().rev().take(newest);
        newest.any(|known| known.is_like(event))
    }

    /// Adds one behind the others.
    ///
    /// # Errors
    /// As [`Reservation::grow`].
    pub(super) fn push(&mut self, event: Event) -> Result<()> {
        self.memory.grow(event.bytes())?;
        self.waiting.push_back(event);
        Ok(())
    }

    /// The first ones.
    pub(super) fn first(&self, most: usize) -> impl Iterator<Item = &Event> {
        self.waiting.iter().take(most)
    }

    /// Takes the first out.
    pub(super) fn pop(&mut self) -> Option<Event> {
        let event = self.waiting.pop_front()?;
        self.memory.shrink(event.bytes());
        Some(event)
    }

    /// All of them, where there are so many that it is time to look which can be settled.
    pub(super) fn take_if_many(&mut self) -> Option<Events> {
        (self.waiting.len() >= self.settle_at).then(|| std::mem::take(self))
    }

    /// The others are back: they are looked at again when there are twice as many.
    pub(super) fn settled(&mut self) {
        self.settle_at = SETTLED_FROM.max(2 * self.waiting.len());
    }
}

/// Leaves an event to the end of the statement.
///
/// # Errors
/// 53200.
pub(super) fn wait(event: Event, cx: &mut Exec<'_>) -> Result<()> {
    cx.events.push(event)?;
    cx.check_held(cx.events.memory.bytes())
}
