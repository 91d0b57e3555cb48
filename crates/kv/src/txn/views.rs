//! What statements saw whose rows are still read: snapshots and commands, by name.

use base::engine::ViewId;
use base::{CommandId, Error, Result};

/// What one statement sees.
#[derive(Debug)]
pub(super) struct Kept<S> {
    id: ViewId,
    pub snapshot: S,
    pub command: CommandId,
    /// What keeps the versions that it sees in the write set.
    pin: u64,
}

/// What is kept; a few at a time.
#[derive(Debug)]
pub(super) struct Views<S> {
    next: u32,
    kept: Vec<Kept<S>>,
}

impl<S> Default for Views<S> {
    fn default() -> Views<S> {
        Views {
            next: 0,
            kept: Vec::new(),
        }
    }
}

impl<S> Views<S> {
    pub fn keep(&mut self, snapshot: S, command: CommandId, pin: u64) -> ViewId {
        self.next += 1;
        let id = ViewId(self.next);
        self.kept.push(Kept {
            id,
            snapshot,
            command,
            pin,
        });
        id
    }

    /// Whether nothing was ever kept.
    pub fn is_unused(&self) -> bool {
        self.next == 0
    }

    /// Whether nothing is kept now.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    pub fn get(&mut self, id: ViewId) -> Result<&mut Kept<S>> {
        let found = self.kept.iter_mut().find(|kept| kept.id == id);
        found.ok_or_else(|| Error::internal(format!("{id:?} is not kept")))
    }

    /// Forgets one and returns its pin.
    pub fn remove(&mut self, id: ViewId) -> Option<u64> {
        let place = self.kept.iter().position(|kept| kept.id == id)?;
        Some(self.kept.swap_remove(place).pin)
    }
}
