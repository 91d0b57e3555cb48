//! The undo store: versions of rows that are no longer the newest, while somebody may need them.
//!
//! A leaf entry links to its predecessor here, and that one to its own. Only the writer changes a
//! chain, and only under the latch of the leaf whose entry it hangs from, so a reader that holds
//! that latch can follow it.
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
    /// The version owns the chain of pages.
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

#[derive(Debug, Default)]
struct Slab {
    versions: Vec<Option<Version>>,
    free: Vec<usize>,
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
        let slot = match slab.free.pop() {
            Some(slot) => {
                slab.versions[slot] = Some(version);
                slot
            }
            None => {
                slab.versions.push(Some(version));
                slab.versions.len() - 1
            }
        };
        UndoId(slot as u64 + 1)
    }

    /// Looks at a version.
    pub(crate) fn with<R>(&self, id: UndoId, look: impl FnOnce(&Version) -> R) -> R {
        let slab = self.slab.read();
        look(
            slab.versions[id.0 as usize - 1]
                .as_ref()
                .expect("a version that is linked to"),
        )
    }

    /// Changes which version comes before.
    pub(crate) fn set_previous(&self, id: UndoId, previous: UndoId) {
        let mut slab = self.slab.write();
        let version = slab.versions[id.0 as usize - 1].as_mut();
        version.expect("a version that is linked to").previous = previous;
    }

    /// Gives a version back.
    pub(crate) fn take(&self, id: UndoId) -> Version {
        let mut slab = self.slab.write();
        let slot = id.0 as usize - 1;
        let version = slab.versions[slot].take();
        slab.free.push(slot);
        version.expect("a version that is linked to")
    }

    /// How many versions there are.
    pub(crate) fn len(&self) -> usize {
        let slab = self.slab.read();
        slab.versions.len() - slab.free.len()
    }
}
