//! Room for pages, which the stores of a node share.
//!
//! Each store may have an equal part of it at any time, and beyond that what the others leave:
//!
//! ```text
//!   room for 90 pages, three stores
//!     a has 70, b 10, c none      a may have 80, b and c 30 each
//!     b comes to have 30          a may have 60: ten of its pages leave
//! ```
//! So a store that nobody uses takes nothing from the others, and none keeps another from its part.
//! A store that is alone has all of it. What is told here is bytes.
//!
//! # Invariants
//! - Once each store is within what it may have, all of them have at most as many pages as there is
//!   room for: either each is within its part, or one that has more fits in beside all others.
//!
//! # What it leaves out
//! It does not ask which store's pages are used more: one that has come to have its part keeps it
//! until its own pages push each other out.

use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use base::sync::Mutex;

/// One of so many parts of the room for pages may be taken by old versions of rows.
pub const UNDO_SHARE: usize = 8;

/// A store that shares a room with others.
pub(crate) trait Sharer: Send + Sync {
    /// Lets pages leave, beside, if there are more than it may have now.
    fn make_room_beside(self: Arc<Self>);
}

/// Room for the pages of all stores of a node, and for old versions of their rows.
pub struct Room {
    bytes: usize,
    /// How many stores share it.
    stores: AtomicUsize,
    /// What the pages of all of them take, as they have said.
    taken: AtomicIsize,
    sharers: Mutex<Vec<Weak<dyn Sharer>>>,
}

impl std::fmt::Debug for Room {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Room({} of {} bytes)", self.taken(), self.bytes)
    }
}

impl Room {
    /// Room for so many bytes of pages.
    pub fn of(bytes: u64) -> Arc<Room> {
        Arc::new(Room {
            bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
            stores: AtomicUsize::new(0),
            taken: AtomicIsize::new(0),
            sharers: Mutex::default(),
        })
    }

    /// What every store may have at any time.
    pub(crate) fn part(&self) -> usize {
        self.bytes / self.stores.load(Ordering::Relaxed).max(1)
    }

    fn taken(&self) -> usize {
        usize::try_from(self.taken.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// A store's share, until it is dropped.
    pub(crate) fn share(self: &Arc<Self>) -> Share {
        self.stores.fetch_add(1, Ordering::Relaxed);
        Share {
            room: self.clone(),
            noted: AtomicUsize::new(0),
        }
    }

    /// A store that is asked to let pages leave when another comes to its part.
    pub(crate) fn add(&self, sharer: Weak<dyn Sharer>) {
        let mut sharers = self.sharers.lock();
        sharers.retain(|sharer| sharer.strong_count() > 0);
        sharers.push(sharer);
    }

    /// Has all stores let pages leave where they have more than there is room for.
    pub(crate) fn relieve(&self) {
        if self.taken() <= self.bytes {
            return;
        }
        let sharers: Vec<_> = {
            let sharers = self.sharers.lock();
            sharers.iter().filter_map(Weak::upgrade).collect()
        };
        sharers.into_iter().for_each(Sharer::make_room_beside);
    }
}

/// What one store may have of a [`Room`].
#[derive(Debug)]
pub(crate) struct Share {
    room: Arc<Room>,
    /// What its pages take, as it said last.
    noted: AtomicUsize,
}

impl Share {
    pub(crate) fn room(&self) -> &Arc<Room> {
        &self.room
    }

    /// The store's pages take so much now.
    pub(crate) fn note(&self, bytes: usize) {
        let before = self.noted.swap(bytes, Ordering::Relaxed);
        if bytes != before {
            let more = bytes as isize - before as isize;
            self.room.taken.fetch_add(more, Ordering::Relaxed);
        }
    }

    /// What the store may have now.
    pub(crate) fn bytes(&self) -> usize {
        let noted = self.noted.load(Ordering::Relaxed);
        let others = self.room.taken().saturating_sub(noted);
        let left = self.room.bytes.saturating_sub(others);
        left.max(self.room.part())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.note(0);
        self.room.stores.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_part_and_what_others_leave() {
        let room = Room::of(90);
        let a = room.share();
        assert_eq!((room.part(), a.bytes()), (90, 90), "alone it has all");
        let (b, c) = (room.share(), room.share());
        a.note(70);
        b.note(10);
        assert_eq!([a.bytes(), b.bytes(), c.bytes()], [80, 30, 30]);
        b.note(30);
        assert_eq!([a.bytes(), b.bytes(), c.bytes()], [60, 30, 30]);
        drop(b);
        assert_eq!([a.bytes(), c.bytes()], [90, 45]);
    }

    #[test]
    fn within_what_each_may_have_they_fit() {
        let room = Room::of(100);
        let shares: Vec<Share> = (0..4).map(|_| room.share()).collect();
        let mut chance = 1_usize;
        for _ in 0..10_000 {
            chance = chance
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let share = &shares[(chance >> 33) % shares.len()];
            share.note((chance >> 40) % (share.bytes() + 1));
            let are_within = |share: &Share| share.noted.load(Ordering::Relaxed) <= share.bytes();
            if shares.iter().all(are_within) {
                assert!(room.taken() <= 100, "{room:?}");
            }
        }
    }
}
