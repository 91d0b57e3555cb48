//! The group's latch, and what its holder leaves to be done once it is free.
//!
//! Whoever is woken while the latch is held only finds it taken. So what follows from a turn under
//! the latch (frames that leave, the log writer's work, replies that may leave) is noted in
//! [`After`] and done when the guard is dropped, in this order.

use std::ops::{Deref, DerefMut};
use std::task::Waker;

use base::sync::MutexGuard;

use super::core::Core;
use super::flush::Writer;
use super::Group;

/// What is done once the latch is free.
#[derive(Debug, Default)]
pub struct After {
    /// Frames were handed to the transport.
    pub send: bool,
    /// That writer of the log has got the claim.
    pub write: Option<Writer>,
    /// The group task has something to do.
    pub work: bool,
    /// Those whom the gate released.
    pub released: Vec<Waker>,
}

/// The latch, held.
pub struct Locked<'a> {
    group: &'a Group,
    /// There until the drop.
    core: Option<MutexGuard<'a, Core>>,
}

impl Group {
    /// Takes the latch.
    pub(super) fn lock(&self) -> Locked<'_> {
        Locked {
            group: self,
            core: Some(self.core.lock()),
        }
    }
}

impl Deref for Locked<'_> {
    type Target = Core;
    fn deref(&self) -> &Core {
        self.core
            .as_deref()
            .expect("the latch is held until the drop")
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut Core {
        self.core
            .as_deref_mut()
            .expect("the latch is held until the drop")
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let after = std::mem::take(&mut self.after);
        self.core = None;
        let group = self.group;
        if after.send {
            group.transport.flush();
        }
        if let Some(writer) = after.write {
            group.hand_claim(writer);
        }
        if after.work {
            group.wake();
        }
        after.released.into_iter().for_each(Waker::wake);
    }
}
