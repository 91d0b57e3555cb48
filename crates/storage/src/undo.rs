//! The undo store: versions of rows that are no longer the newest, while somebody may need them.
//!
//! A leaf entry links to its predecessor here, and that one to its own. A version goes when its
//! successor is released; the link to it stays and leads nowhere, because finding who holds it
//! would cost a walk along the chain: ids are never used again, and whoever follows a dead one
//! finds nothing.
//!
//! ```text
//!   leaf: k → 24 "c" ──► 19 "b" ──► 17 "a" ──╳        16 was released: what came before is gone
//! ```
//!
//! Readers follow links under the latch of the leaf, and only from versions above their snapshot:
//! none of those is released.
//!
//! It lives in memory. Its users name versions by opaque ids and never hold a reference, so that
//! old versions may go to disk.

use base::sync::RwLock;
use base::Lsn;

use crate::page::{PageId, Value};

/// The name of a version in the undo store; 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct UndoId(pub(crate) u64);

impl UndoId {
    pub(crate) const NONE: UndoId = UndoId(0);
}

/// A version's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OwnedValue {
    Tombstone,
    Inline(Box<[u8]>),
    /// The version owns the pages.
    Overflow {
        first: PageId,
        len: u32,
    },
}

impl OwnedValue {
    pub(crate) fn of(value: Value<'_>) -> OwnedValue {
        match value {
            Value::Tombstone => OwnedValue::Tombstone,
            Value::Inline(row) => OwnedValue::Inline(row.into()),
            Value::Overflow { first, len } => OwnedValue::Overflow { first, len },
        }
    }

    pub(crate) fn as_value(&self) -> Value<'_> {
        match self {
            OwnedValue::Tombstone => Value::Tombstone,
            OwnedValue::Inline(row) => Value::Inline(row),
            OwnedValue::Overflow { first, len } => Value::Overflow {
                first: *first,
                len: *len,
            },
        }
    }
}

/// A version that is no longer the newest.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    pub(crate) lsn: Lsn,
    pub(crate) value: OwnedValue,
    pub(crate) previous: UndoId,
}

/// A place for a version, used by many one after another.
#[derive(Debug, Default)]
struct Slot {
    /// How many versions it has had.
    generation: u32,
    version: Option<Version>,
}

#[derive(Debug, Default)]
struct Slab {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

impl Slab {
    fn get(&self, id: UndoId) -> Option<&Version> {
        let slot = self.slots.get(id.slot())?;
        let version = slot.version.as_ref()?;
        (slot.generation == id.generation()).then_some(version)
    }
}

impl UndoId {
    // Generations begin at 1, so no id is zero.
    fn new(slot: u32, generation: u32) -> UndoId {
        UndoId(u64::from(generation) << 32 | u64::from(slot))
    }

    fn slot(self) -> usize {
        (self.0 & u64::from(u32::MAX)) as usize
    }

    fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// All versions that are no longer the newest.
#[derive(Debug, Default)]
pub(crate) struct UndoStore {
    slab: RwLock<Slab>,
}

impl UndoStore {
    /// Keeps a version.
    pub(crate) fn put(&self, version: Version) -> UndoId {
        let mut slab = self.slab.write();
        let slot = slab.free.pop().unwrap_or_else(|| {
            slab.slots.push(Slot::default());
            (slab.slots.len() - 1) as u32
        });
        let place = &mut slab.slots[slot as usize];
        assert!(
            place.version.is_none(),
            "undo slot {slot} is free and has a version"
        );
        // A slot would have to be used four billion times while somebody follows a dead link.
        place.generation = place.generation.wrapping_add(1).max(1);
        place.version = Some(version);
        UndoId::new(slot, place.generation)
    }

    /// Looks at a version, if it is still there.
    pub(crate) fn with<R>(&self, id: UndoId, look: impl FnOnce(&Version) -> R) -> Option<R> {
        self.slab.read().get(id).map(look)
    }

    /// Whether a version is still there.
    pub(crate) fn is_there(&self, id: UndoId) -> bool {
        id != UndoId::NONE && self.slab.read().get(id).is_some()
    }

    /// Gives a version back, if it is still there.
    pub(crate) fn take(&self, id: UndoId) -> Option<Version> {
        let mut slab = self.slab.write();
        slab.get(id)?;
        slab.free.push(id.slot() as u32);
        slab.slots[id.slot()].version.take()
    }

    /// How many versions there are.
    pub(crate) fn len(&self) -> usize {
        let slab = self.slab.read();
        slab.slots.len() - slab.free.len()
    }
}
