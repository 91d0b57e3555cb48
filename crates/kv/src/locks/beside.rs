//! Circles through the lock tables of several groups of a node, and those of other nodes.
//!
//! ```text
//! ann holds a row of group 1, waits in group 2 for bob
//! bob holds that row of group 2, is about to wait in group 1 for ann      → 40P01
//! ```
//! Each table finds the circles that are its own; whoever begins to wait and closes none of these looks
//! at all tables of the node. Only sessions are in several of them: other parties have the numbers of
//! their group's transactions. What leads over other nodes, somebody else finds ([`Elsewhere`]), who is
//! asked again and again by all who wait for longer.
//!
//! # Invariants
//! - All latches of several tables are taken in one order, that of the tables in memory.
//!
//! # What it leaves out
//! Lines are not reordered for such a circle: whoever closes it fails.

use std::sync::{Arc, Weak};

use base::sync::{Mutex, MutexGuard, RwLock};
use base::{Result, SessionId};

use super::modes::Modes;
use super::owner::{Owner, Party};
use super::{deadlock, deadlock_detected, notify, LockTable, Shard, Wait};

/// Finds circles of sessions that wait for one another at several nodes.
pub trait Elsewhere: Send + Sync {
    /// Whether a session that waits here waits, in the end, for itself, and is the one of the circle to
    /// give up. Called inside a coroutine.
    ///
    /// # Errors
    /// The interrupt that ended the search.
    fn is_victim(&self, session: SessionId) -> Result<bool>;
}

/// The lock tables of the other groups of a node, and who knows those of other nodes.
#[derive(Default)]
pub(super) struct Beside(RwLock<Known>);

#[derive(Default)]
struct Known {
    tables: Vec<Weak<LockTable>>,
    elsewhere: Option<Weak<dyn Elsewhere>>,
}

impl std::fmt::Debug for Beside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Beside")
            .field(&self.0.read().tables)
            .finish()
    }
}

impl Beside {
    fn tables(&self) -> Vec<Arc<LockTable>> {
        let known = self.0.read();
        known.tables.iter().filter_map(Weak::upgrade).collect()
    }

    /// Who knows the tables of other nodes.
    pub fn elsewhere(&self) -> Option<Arc<dyn Elsewhere>> {
        self.0.read().elsewhere.as_ref().and_then(Weak::upgrade)
    }
}

/// A table with all its latches.
struct Latched<'a> {
    table: &'a LockTable,
    shards: Vec<MutexGuard<'a, Shard>>,
}

impl LockTable {
    /// These are the tables of all groups of its node, this one included; `elsewhere` knows those of
    /// other nodes.
    pub fn set_beside(&self, all: &[Arc<LockTable>], elsewhere: Weak<dyn Elsewhere>) {
        let others = all.iter().filter(|other| !std::ptr::eq(&***other, self));
        *self.beside.0.write() = Known {
            tables: others.map(Arc::downgrade).collect(),
            elsewhere: Some(elsewhere),
        };
    }

    /// As [`LockTable::check_deadlock`], for circles that leave this table.
    pub(super) fn check_across(&self, owner: Owner, before: Modes) -> Result<()> {
        let others = match owner.party {
            Party::Session(_) => self.beside.tables(),
            Party::Transaction(_) | Party::Prepared { .. } => return Ok(()),
        };
        let mut tables: Vec<&LockTable> = others.iter().map(|other| &**other).collect();
        if tables.is_empty() {
            return Ok(());
        }
        tables.push(self);
        let suspected = deadlock::find(owner.party, |waiter, met| {
            tables.iter().find_map(|table| {
                let Wait { name, .. } = table.waits.lock().get(&waiter).cloned()?;
                let shard = table.shard(&name);
                shard.locks.get(&name)?.blocked(waiter, &name, met)
            })
        });
        if suspected.is_none() {
            return Ok(());
        }
        tables.sort_by_key(|table| std::ptr::from_ref(*table));
        let mut latched: Vec<Latched<'_>> = Vec::with_capacity(tables.len());
        for table in &tables {
            let shards = table.shards.iter().map(Mutex::lock).collect();
            latched.push(Latched { table, shards });
        }
        let circle = deadlock::find(owner.party, |waiter, met| {
            latched.iter().find_map(|one| {
                let Wait { name, .. } = one.table.waits.lock().get(&waiter).cloned()?;
                let shard = &one.shards[one.table.shard_of(&name)];
                shard.locks.get(&name)?.blocked(waiter, &name, met)
            })
        });
        let Some(circle) = circle else {
            return Ok(());
        };
        let mut served = Vec::new();
        let name = &circle[0].name;
        let own = latched.iter_mut().find(|one| std::ptr::eq(one.table, self));
        if let Some(own) = own {
            let shard = &mut own.shards[self.shard_of(name)];
            if let Some(lock) = shard.locks.get_mut(name) {
                lock.withdraw(owner, before, &mut served);
            }
            shard.forget_if_free(name, self);
        }
        drop(latched);
        notify(served);
        Err(deadlock_detected(&circle))
    }
}
