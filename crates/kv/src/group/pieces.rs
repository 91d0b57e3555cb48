//! Large records: applied piece by piece, the latch given up in between.
//!
//! A record of a million rows takes a second to apply. Held for so long, the latch would keep a
//! leader from its heartbeats, and a follower from answering them, and the group would elect
//! another leader for it. So a record of more than [`LARGE_BYTES`] is applied in pieces of
//! [`PIECE_CHANGES`]: on the leader by its session, on other replicas by a task beside the group's.
//! What it needs of the trees is looked up before, without the latch.
//!
//! ```text
//! session    propose N ─ piece ─ piece ─ piece ─ N visible
//! group             tick ──┘ frame ─┘ tick ─┘
//! others            commit … waits for the line … ─────────► N+1
//! ```
//!
//! # Invariants
//! - While a record is in pieces ([`Applying`]), nothing else is applied, no checkpoint begins, and
//!   no further commit stands in line: its LSN is the next of all.
//! - Its changes are of an LSN above what is visible, so no snapshot shows any of them before all
//!   are there; whoever looks at newest versions meets the locks of its transaction.
//! - When it is cut off the log, or a checkpoint takes the place of the trees, [`Applying`] is gone,
//!   and whoever was applying it finds another or none and stops. The undo store has every piece.

use std::sync::Arc;

use base::coro;
use base::env::{LocalBoxFuture, Reactor};
use base::turns::give_way;
use base::{Position, Result, Timestamp};
use raft::{Entry, EntryKind};

use super::core::Core;
use super::latch::Locked;
use super::Group;
use crate::apply::{derive_record, Derived, Pieces};
use crate::record::Record;

/// A record with more bytes is applied in pieces.
const LARGE_BYTES: usize = if cfg!(test) { 256 } else { 256 << 10 };

/// Changes of one piece.
const PIECE_CHANGES: usize = if cfg!(test) { 2 } else { 1_000 };

/// A record that is in pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applying {
    /// Tells it from the same record, cut off and appended once more.
    number: u64,
    /// Its place.
    pub position: Position,
}

/// Whether a record of so many bytes is applied in pieces.
pub fn is_large(bytes: usize) -> bool {
    bytes > LARGE_BYTES
}

impl Core {
    /// Whether nothing is in pieces that a further record would have to wait for.
    pub(super) fn takes_records(&self) -> bool {
        let free = self.applying.is_none() && self.queue.is_empty();
        free || self.led.is_none() || self.failed
    }

    pub(super) fn begin_pieces(&mut self, position: Position) -> Applying {
        assert_eq!(self.applying, None, "one record is in pieces at a time");
        self.pieces_begun += 1;
        let applying = Applying {
            number: self.pieces_begun,
            position,
        };
        self.applying = Some(applying);
        applying
    }
}

impl Group {
    /// The latch, once nothing is in pieces, for whoever wants to append. Waits inside a coroutine.
    pub(super) fn lock_to_append(&self) -> Result<Locked<'_>> {
        loop {
            let core = self.lock();
            if core.takes_records() {
                return Ok(core);
            }
            drop(core);
            coro::wait(self.takes_records())?;
        }
    }

    /// Ready when nothing is in pieces, for a moment at least.
    pub(super) async fn takes_records(&self) {
        let free = || self.lock().takes_records().then_some(());
        self.room.until(free).await;
    }

    /// Applies a large record that this leader has just proposed.
    pub(super) fn apply_in_pieces<'a>(
        &'a self,
        core: Locked<'a>,
        position: Position,
        mut derived: Derived,
    ) -> Result<()> {
        let mut core = core;
        derived.stamp(core.timestamp);
        let mut pieces = Pieces::new(derived);
        // The followers get it meanwhile.
        core.after.work = true;
        let applying = core.begin_pieces(position);
        drop(core);
        let store = self.store();
        loop {
            let visit = store.visit();
            let loaded = load_piece_here(&store, &pieces);
            let mut core = self.lock();
            if let Err(error) = loaded {
                self.fail(&mut core, &error);
                return Err(error);
            }
            // When it is not there to the end, the gate knows what became of it.
            if core.applying != Some(applying) || core.failed {
                return Ok(());
            }
            if self.apply_piece(&mut core, &mut pieces, position)? {
                return Ok(());
            }
            drop(core);
            drop(visit);
        }
    }

    /// Applies a piece; whether it was the last.
    fn apply_piece(
        &self,
        core: &mut Core,
        pieces: &mut Pieces,
        position: Position,
    ) -> Result<bool> {
        let (store, lsn) = (self.store(), position.lsn);
        match pieces.apply(&store, &self.registry, lsn, PIECE_CHANGES) {
            Ok(false) => Ok(false),
            Ok(true) => {
                core.applying = None;
                self.note_applied(core, position);
                // Others stand in line, or more is to be applied.
                core.after.work = true;
                self.room.notify_all();
                Ok(true)
            }
            Err(error) => {
                self.fail(core, &error);
                Err(error)
            }
        }
    }

    /// Whether an entry is applied in pieces.
    pub(super) fn is_in_pieces(entry: &Entry) -> bool {
        entry.kind == EntryKind::Normal && is_large(entry.data.len())
    }

    /// Has a large entry applied beside the group's task.
    pub(super) fn apply_beside(&self, core: &mut Core, entry: Entry) {
        let applying = core.begin_pieces(entry.position());
        let Some(this) = self.me.upgrade() else {
            return;
        };
        let task = move || -> LocalBoxFuture<'static, ()> {
            Box::pin(async move { this.apply_entry_in_pieces(&entry, applying).await })
        };
        self.env.spawn(Reactor::Background, "apply", Box::new(task));
    }

    async fn apply_entry_in_pieces(self: Arc<Self>, entry: &Entry, applying: Applying) {
        let mut taken_apart = Some(self.take_apart(entry));
        // It goes after the latch: it may be large.
        let mut pieces: Option<Pieces> = None;
        let store = self.store();
        loop {
            let visit = store.visit();
            if let Err(error) = load_piece(&store, pieces.as_ref()).await {
                return self.fail(&mut self.lock(), &error);
            }
            {
                let mut core = self.lock();
                if core.applying != Some(applying) || core.failed {
                    return;
                }
                // What was looked up while the trees were taken back does not count.
                match taken_apart.take() {
                    Some(Ok((timestamp, derived))) => {
                        core.timestamp = core.timestamp.max(timestamp);
                        pieces = Some(Pieces::new(derived));
                    }
                    Some(Err(error)) => return self.fail(&mut core, &error),
                    None => {}
                }
                let Some(pieces) = &mut pieces else { return };
                match self.apply_piece(&mut core, pieces, applying.position) {
                    Ok(false) => {}
                    Ok(true) => return self.pump(&mut core),
                    Err(_) => return,
                }
            }
            drop(visit);
            self.let_others_run().await;
        }
    }

    fn take_apart(&self, entry: &Entry) -> Result<(Timestamp, Derived)> {
        let record = Record::decode(&entry.data)?;
        let derived = derive_record(&self.store(), &self.registry, &record)?;
        Ok((record.timestamp, derived))
    }

    async fn let_others_run(&self) {
        if cfg!(test) {
            // So that something may come in between.
            base::env::sleep(&*self.env, std::time::Duration::from_millis(1)).await;
        }
        give_way().await;
    }
}

/// Gets the leaves of the next piece into memory.
async fn load_piece(store: &storage::Store, pieces: Option<&Pieces>) -> Result<()> {
    let Some(pieces) = pieces else { return Ok(()) };
    while let Some(missing) = store.find_missing(pieces.next_keys(PIECE_CHANGES))? {
        store.fetched(missing).await?;
    }
    Ok(())
}

/// The same on the spot. The record is in the log, so whoever applies it may neither be interrupted
/// nor go away.
fn load_piece_here(store: &storage::Store, pieces: &Pieces) -> Result<()> {
    while let Some(missing) = store.find_missing(pieces.next_keys(PIECE_CHANGES))? {
        store.fetch_here(missing)?;
    }
    Ok(())
}
