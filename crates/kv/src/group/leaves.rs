//! The leaves that a record changes: in memory before it stands in line, or is applied.
//!
//! Nobody waits for a disk under the group's latch. So whoever is about to apply a record looks
//! whether its leaves are in memory, and keeps those that are there by a visit
//! ([`storage::Store::visit`]):
//!
//! ```text
//! leader     derive ─ load what is missing ─┤ line: propose, apply ├
//! follower   append ─┤ look: all there? apply ├
//!                    ┤ look: something is missing ├─ load ─┤ apply, and what came after ├
//! ```
//!
//! On a follower the record waits in the place of one that is applied in pieces
//! ([`super::pieces`]), and the leaves of the records behind it are read meanwhile.
//!
//! # What it leaves out
//! Records that begin or end builds, sequences, and what is taken back: there a leaf that is not in
//! memory is read on the spot.

use std::sync::Arc;

use base::coro;
use base::env::{LocalBoxFuture, Reactor};
use base::{Durability, Result, TreeId};
use raft::{Entry, EntryKind};
use storage::{Missing, Store, Visiting};

use super::core::Core;
use super::latch::Locked;
use super::pieces::Applying;
use super::Group;
use crate::apply::{apply, derive_record, Derived};
use crate::record::{Body, Record, RowChange};

/// Entries whose leaves are read ahead.
const ENTRIES_AHEAD: usize = 64;

/// The leaves of a transaction with more changes are not kept from the first to the last.
pub(super) const VISITED_CHANGES_MAX: usize = 1_000;

fn keys(changes: &[RowChange]) -> impl Iterator<Item = (TreeId, &[u8])> {
    changes.iter().map(|change| (change.tree, &change.key[..]))
}

fn rows(record: &Record) -> &[RowChange] {
    match &record.body {
        Body::Transaction { changes, .. }
        | Body::Chunk { changes, .. }
        | Body::Decision { changes, .. } => changes,
        Body::Sequence { .. } | Body::Position { .. } => &[],
    }
}

/// The keys that a record changes itself.
pub(super) fn keys_of(record: &Record) -> impl Iterator<Item = (TreeId, &[u8])> {
    keys(rows(record))
}

impl Group {
    /// Whether a commit must wait before it may append so many bytes.
    pub(super) fn must_wait(&self, durability: Durability, bytes: usize) -> bool {
        !self.has_room(durability) || self.room_needed(bytes).is_some()
    }

    /// The latch, for whoever wants to append, once the leaves of what he changes are in memory:
    /// of what is large none, for that is loaded piece by piece. `visit` is one during which the
    /// rows were read. Waits inside a coroutine.
    pub(super) fn lock_with_leaves<'a>(
        &'a self,
        store: &'a Store,
        (derived, large): (&Derived, bool),
        visit: Option<Visiting<'a>>,
    ) -> Result<(Option<Visiting<'a>>, Locked<'a>)> {
        if large {
            return Ok((None, self.lock_to_append()?));
        }
        let mut are_rows_there = visit.is_some();
        let mut visit = visit.unwrap_or_else(|| store.visit());
        loop {
            while !store.is_all_in_memory() {
                let missing = match are_rows_there {
                    true => store.find_missing(derived.keys_not_read())?,
                    false => store.find_missing(derived.keys())?,
                };
                let Some(missing) = missing else { break };
                store.fetch(missing)?;
            }
            let core = self.lock();
            if core.takes_records() {
                return Ok((Some(visit), core));
            }
            // A visit is short.
            drop(core);
            drop(visit);
            coro::wait(self.takes_records())?;
            visit = store.visit();
            are_rows_there = false;
        }
    }

    /// Applies an entry if its leaves are in memory. False when they are being loaded: it will be
    /// applied by a task.
    pub(super) fn apply_or_load(&self, core: &mut Core, entry: Entry) -> Result<bool> {
        let store = self.store();
        if entry.kind != EntryKind::Normal || store.is_all_in_memory() {
            self.apply_entry(core, &entry)?;
            return Ok(true);
        }
        let missing = {
            let _visit = store.visit();
            self.apply_if_loaded(core, &store, &entry)?
        };
        let Some(missing) = missing else {
            return Ok(true);
        };
        let applying = core.begin_pieces(entry.position());
        self.prefetch_queued(core, &store);
        if let Some(this) = self.me.upgrade() {
            let task = move || -> LocalBoxFuture<'static, ()> {
                Box::pin(async move {
                    let result = this.load_and_apply(&store, entry, applying, missing).await;
                    if let Err(error) = result {
                        this.fail(&mut this.lock(), &error);
                    }
                })
            };
            self.env
                .spawn(Reactor::Group, "load and apply", Box::new(task));
        }
        Ok(false)
    }

    /// Applies an entry, or tells what is not in memory. The caller has begun a visit.
    fn apply_if_loaded(
        &self,
        core: &mut Core,
        store: &Store,
        entry: &Entry,
    ) -> Result<Option<Missing>> {
        let record = Record::decode(&entry.data)?;
        let changes = rows(&record);
        if changes.is_empty() {
            self.apply_entry(core, entry)?;
            return Ok(None);
        }
        if let Some(missing) = store.find_missing(keys(changes))? {
            return Ok(Some(missing));
        }
        let derived = derive_record(store, &self.registry, &record)?;
        if let Some(missing) = store.find_missing(derived.keys_not_read())? {
            return Ok(Some(missing));
        }
        apply(store, &self.registry, entry.lsn, derived)?;
        self.note_entry(core, entry.position(), Some(record.timestamp))?;
        Ok(None)
    }

    async fn load_and_apply(
        self: &Arc<Self>,
        store: &Store,
        entry: Entry,
        applying: Applying,
        mut missing: Missing,
    ) -> Result<()> {
        let _visit = store.visit();
        loop {
            store.fetched(missing).await?;
            let mut core = self.lock();
            // It was cut off, or another store has come.
            if core.applying != Some(applying) || core.failed {
                return Ok(());
            }
            match self.apply_if_loaded(&mut core, store, &entry)? {
                Some(more) => missing = more,
                None => {
                    core.applying = None;
                    // Others stand in line, or more is to be applied.
                    core.after.work = true;
                    self.room.notify_all();
                    self.pump(&mut core);
                    return Ok(());
                }
            }
        }
    }

    /// Has the leaves read of what is applied next.
    fn prefetch_queued(&self, core: &Core, store: &Store) {
        let next = core.queue.iter().take(ENTRIES_AHEAD);
        for entry in next.filter(|entry| entry.kind == EntryKind::Normal) {
            // What is wrong with it shows when it is applied.
            let Ok(record) = Record::decode(&entry.data) else {
                continue;
            };
            if let Ok(Some(missing)) = store.find_missing(keys(rows(&record))) {
                store.prefetch(missing);
            }
        }
    }
}
