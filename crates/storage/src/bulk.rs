//! Transactions that come in many records: *bulk* transactions.
//!
//! The record of a small transaction is wholly there when its LSN is visible. A large one comes in
//! chunks, with records of others in between, and is decided by a record of its own:
//!
//! ```text
//! LSN       10    11    12    13    14     15
//!           T     ·     T     ·     T    T is committed
//! row a     v10                            shown from 15 on, and owes 15
//! row b                       v13          shown from 13 on
//! row c                 v12                shown from 15 on, and owes 15
//! ```
//!
//! Versions lie in the leaves under the LSNs of their chunks. [`Bulks::visible_from`] says from
//! which LSN on such a version is shown: that of the decision, or never. All other versions are
//! below [`Bulks::floor`], or pay for a look into a small ordered map.
//!
//! # Aborted transactions
//! Their versions are shown by nobody. Once the decision is committed they are removed, newest
//! first, some at a time ([`Store::clean`]); whoever changes such a row before that removes its
//! version first. So no version of another lies above one of an aborted transaction, which relies on two
//! things that the caller sees to: while a transaction is open its rows are locked, and nobody is
//! given a lock that its abort has freed before nobody can commit it any more.
//!
//! # Invariants
//! - What chunks have changed is noted apart from the history of the store, in few bytes a row, and
//!   in the order of chunks. In the history stands where it belongs.
//! - No checkpoint is begun while a transaction is open, or aborted and not removed.
//! - A committed transaction is forgotten when its decision is released, its old versions are, and
//!   no reply at any level need wait for the decision: from then on the LSNs of its chunks say
//!   enough.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};

use base::codec::{put_varint, Reader};
use base::sync::RwLock;
use base::{Error, Key, Lsn, Result, TreeId, TxnId};

use crate::store::{Change, Event, Store, Writer};
use crate::undo::UndoId;

/// What became of a bulk transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Open,
    Committed(Lsn),
    Aborted(Lsn),
}

/// One change of a row by a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) tree: TreeId,
    pub(crate) key: Key,
    pub(crate) previous: UndoId,
    pub(crate) deleted: bool,
}

const HAS_PREVIOUS: u8 = 1;
const DELETED: u8 = 2;

/// What one chunk has changed, in order.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    txn: TxnId,
    bytes: Vec<u8>,
    count: usize,
    tree: TreeId,
    key: Key,
    /// Nothing is to be done when they are released.
    needless: bool,
}

impl Notes {
    fn new(txn: TxnId) -> Notes {
        Notes {
            txn,
            needless: true,
            ..Notes::default()
        }
    }

    pub(crate) fn add(&mut self, tree: TreeId, key: &[u8], previous: UndoId, deleted: bool) {
        if tree != self.tree {
            self.tree = tree;
            self.key.clear();
        }
        let has_previous = previous != UndoId::NONE;
        let flags = (u8::from(has_previous) * HAS_PREVIOUS) | (u8::from(deleted) * DELETED);
        self.needless &= flags == 0;
        self.count += 1;
        let shared = self.key.iter().zip(key).take_while(|(a, b)| a == b).count();
        self.bytes.push(flags);
        put_varint(&mut self.bytes, tree.0);
        put_varint(&mut self.bytes, shared as u64);
        put_varint(&mut self.bytes, (key.len() - shared) as u64);
        self.bytes.extend_from_slice(&key[shared..]);
        if has_previous {
            self.bytes.extend_from_slice(&previous.0.to_be_bytes());
        }
        self.key.truncate(shared);
        self.key.extend_from_slice(&key[shared..]);
    }

    fn read(&self) -> Result<Vec<Note>> {
        let mut notes: Vec<Note> = Vec::with_capacity(self.count);
        let mut reader = Reader::new(&self.bytes);
        while !reader.is_empty() {
            let flags = reader.u8()?;
            let tree = TreeId(reader.varint()?);
            let shared: usize = reader.varint_as()?;
            let len: usize = reader.varint_as()?;
            let rest = reader.take(len)?;
            let mut key = match notes.last() {
                Some(last) if last.tree == tree => last.key[..shared].to_vec(),
                _ => Key::new(),
            };
            key.extend_from_slice(rest);
            let previous = match flags & HAS_PREVIOUS {
                0 => UndoId::NONE,
                _ => UndoId(reader.u64()?),
            };
            notes.push(Note {
                tree,
                key,
                previous,
                deleted: flags & DELETED != 0,
            });
        }
        Ok(notes)
    }
}

/// What is known of one bulk transaction.
#[derive(Debug)]
struct Bulk {
    first: Lsn,
    fate: Fate,
    /// Of each chunk that has changed rows, what.
    notes: VecDeque<(Lsn, Notes)>,
    /// Trees that it has made.
    made: Vec<(Lsn, TreeId)>,
    /// Its decision was released.
    released: bool,
}

#[derive(Debug, Default)]
struct Known {
    bulks: BTreeMap<TxnId, Bulk>,
    /// LSNs of chunks, those that follow one another as one: the first, with the last and whose.
    runs: BTreeMap<Lsn, (Lsn, TxnId)>,
}

impl Known {
    fn owner(&self, lsn: Lsn) -> Option<&Bulk> {
        self.bulks.get(&self.txn(lsn)?)
    }

    /// Whose chunk has that LSN.
    fn txn(&self, lsn: Lsn) -> Option<TxnId> {
        let (_, (last, txn)) = self.runs.range(..=lsn).next_back()?;
        (*last >= lsn).then_some(*txn)
    }

    fn note_chunk(&mut self, lsn: Lsn, txn: TxnId) {
        let before = self.runs.range_mut(..=lsn).next_back();
        match before {
            Some((_, (last, owner))) if *owner == txn && last.next() >= lsn => {
                *last = lsn.max(*last);
            }
            _ => drop(self.runs.insert(lsn, (lsn, txn))),
        }
    }

    /// Forgets chunks above an LSN.
    fn cut(&mut self, to: Lsn) {
        self.runs.split_off(&to.next());
        if let Some((_, (last, _))) = self.runs.iter_mut().next_back() {
            *last = to.min(*last);
        }
        self.bulks.retain(|_, bulk| bulk.first <= to);
        for bulk in self.bulks.values_mut() {
            bulk.made.retain(|(lsn, _)| *lsn <= to);
            match bulk.fate {
                Fate::Committed(at) | Fate::Aborted(at) if at > to => bulk.fate = Fate::Open,
                _ => {}
            }
        }
    }

    fn forget(&mut self, txn: TxnId) {
        self.bulks.remove(&txn);
        self.runs.retain(|_, (_, owner)| *owner != txn);
    }
}

/// The bulk transactions of one store.
#[derive(Debug)]
pub(crate) struct Bulks {
    /// No version below this is one of theirs.
    floor: AtomicU64,
    known: RwLock<Known>,
}

impl Default for Bulks {
    fn default() -> Bulks {
        Bulks {
            floor: AtomicU64::new(u64::MAX),
            known: RwLock::default(),
        }
    }
}

impl Bulks {
    fn set_floor(&self, known: &Known) {
        let first = known.bulks.values().map(|bulk| bulk.first.0).min();
        self.floor
            .store(first.unwrap_or(u64::MAX), Ordering::Release);
    }

    /// No version below this is one of a bulk transaction.
    pub(crate) fn floor(&self) -> Lsn {
        Lsn(self.floor.load(Ordering::Acquire))
    }

    /// From which LSN on a version is shown; `None` for never, as things are.
    #[inline]
    pub(crate) fn visible_from(&self, lsn: Lsn) -> Option<Lsn> {
        if lsn.0 < self.floor.load(Ordering::Acquire) {
            return Some(lsn);
        }
        self.decided_at(lsn)
    }

    fn decided_at(&self, lsn: Lsn) -> Option<Lsn> {
        match self.known.read().owner(lsn).map(|bulk| bulk.fate) {
            None => Some(lsn),
            Some(Fate::Committed(at)) => Some(at),
            Some(Fate::Open | Fate::Aborted(_)) => None,
        }
    }

    /// What a look at a leaf owes that was changed at `lsn` last: bounded by where it was looked
    /// at, and with the decisions on all who may have changed it.
    pub(crate) fn owes(&self, lsn: Lsn, at: Lsn) -> Lsn {
        let owes = lsn.min(at);
        if lsn.0 < self.floor.load(Ordering::Acquire) {
            return owes;
        }
        let known = self.known.read();
        let decided = known.bulks.values().filter_map(|bulk| match bulk.fate {
            Fate::Committed(decided) if bulk.first <= lsn && decided <= at => Some(decided),
            _ => None,
        });
        decided.fold(owes, Lsn::max)
    }

    /// Whether nobody will come again to let go of a version that the history has passed.
    pub(crate) fn is_released(&self, lsn: Lsn) -> bool {
        if lsn.0 < self.floor.load(Ordering::Acquire) {
            return true;
        }
        self.known.read().owner(lsn).is_none_or(|bulk| {
            let next = bulk.notes.front();
            bulk.released && next.is_none_or(|(next, _)| *next > lsn)
        })
    }

    /// Whether a version is one of another transaction, which was not committed.
    pub(crate) fn is_void_to(&self, lsn: Lsn, notes: Option<&Notes>) -> bool {
        self.is_void(lsn) && {
            let txn = self.known.read().txn(lsn);
            txn != notes.map(|notes| notes.txn)
        }
    }

    /// Whether a version is one of a transaction that was not committed.
    pub(crate) fn is_void(&self, lsn: Lsn) -> bool {
        self.visible_from(lsn).is_none()
    }
}

impl Writer {
    /// Notes a change of a row: in the history, or for the chunk that is being applied.
    pub(crate) fn note(
        &mut self,
        lsn: Lsn,
        tree: TreeId,
        key: &[u8],
        previous: UndoId,
        deleted: bool,
    ) {
        if let Some(notes) = &mut self.notes {
            return notes.add(tree, key, previous, deleted);
        }
        let event = Event::Change {
            tree,
            key: key.into(),
            previous,
            deleted,
        };
        self.history.push_back(lsn, event);
    }
}

impl Store {
    /// Makes some changes of the chunk at `lsn` of a bulk transaction; `apply` or `advance`
    /// completes the chunk. They are shown once the transaction is committed.
    ///
    /// # Errors
    /// As [`Store::apply`].
    pub fn apply_chunk(&self, lsn: Lsn, txn: TxnId, changes: &[Change<'_>]) -> Result<()> {
        let mut writer = self.writer.lock();
        self.check_new(lsn)?;
        self.begin_chunk(lsn, txn)?;
        writer.notes = Some(Notes::new(txn));
        let result = self.change_all(&mut writer, lsn, changes);
        let notes = writer.notes.take();
        let notes = notes.ok_or_else(|| Error::internal("the notes of a chunk are gone"))?;
        if notes.count > 0 {
            let mut known = self.bulks.known.write();
            if let Some(bulk) = known.bulks.get_mut(&txn) {
                bulk.notes.push_back((lsn, notes));
            }
            writer.history.push_back(lsn, Event::Chunk(txn));
        }
        result
    }

    /// Makes a tree, as part of the chunk at `lsn` of a bulk transaction.
    ///
    /// # Errors
    /// As [`Store::create_tree`].
    pub fn create_tree_in_chunk(&self, lsn: Lsn, txn: TxnId, tree: TreeId) -> Result<()> {
        self.begin_chunk(lsn, txn)?;
        self.create_tree(lsn, tree)?;
        if let Some(bulk) = self.bulks.known.write().bulks.get_mut(&txn) {
            bulk.made.push((lsn, tree));
        }
        Ok(())
    }

    /// Known before any version of it can be seen.
    fn begin_chunk(&self, lsn: Lsn, txn: TxnId) -> Result<()> {
        let mut known = self.bulks.known.write();
        let bulk = known.bulks.entry(txn).or_insert_with(|| Bulk {
            first: lsn,
            fate: Fate::Open,
            notes: VecDeque::new(),
            made: Vec::new(),
            released: false,
        });
        if bulk.fate != Fate::Open {
            let message = format!("record {lsn} belongs to transaction {txn}, which has ended");
            return Err(Error::corrupted(message));
        }
        known.note_chunk(lsn, txn);
        self.bulks.set_floor(&known);
        Ok(())
    }

    /// Decides on a bulk transaction, as part of the record at `lsn`.
    ///
    /// # Errors
    /// XX001, fatal for the node, when it is not open.
    pub fn decide(&self, lsn: Lsn, txn: TxnId, committed: bool) -> Result<()> {
        let mut writer = self.writer.lock();
        self.check_new(lsn)?;
        let mut known = self.bulks.known.write();
        let bulk = known.bulks.get_mut(&txn);
        let bulk = bulk.filter(|bulk| bulk.fate == Fate::Open).ok_or_else(|| {
            Error::corrupted(format!(
                "record {lsn} decides on transaction {txn}, not open"
            ))
        })?;
        bulk.fate = match committed {
            true => Fate::Committed(lsn),
            false => Fate::Aborted(lsn),
        };
        // What reads found where there were no trees yet rests on the decision now.
        if !bulk.made.is_empty() {
            self.raise_directory(lsn);
        }
        writer.history.push_back(lsn, Event::Decided(txn));
        Ok(())
    }

    /// The bulk transactions that are open.
    pub fn open_bulks(&self) -> Vec<TxnId> {
        let known = self.bulks.known.read();
        let open = known.bulks.iter().filter(|(_, b)| b.fate == Fate::Open);
        open.map(|(txn, _)| *txn).collect()
    }

    /// Whether a bulk transaction is remembered.
    pub fn knows_bulk(&self, txn: TxnId) -> bool {
        self.bulks.known.read().bulks.contains_key(&txn)
    }

    /// Whether a bulk transaction is open, or aborted and not yet removed: no checkpoint may begin.
    pub fn has_undecided(&self) -> bool {
        if self.bulks.floor.load(Ordering::Acquire) == u64::MAX {
            return false;
        }
        let known = self.bulks.known.read();
        let mut fates = known.bulks.values().map(|bulk| bulk.fate);
        fates.any(|fate| !matches!(fate, Fate::Committed(_)))
    }

    /// How many bulk transactions are remembered.
    pub fn known_bulks(&self) -> usize {
        self.bulks.known.read().bulks.len()
    }

    /// Removes what aborted transactions have written whose abort is at or below `committed`, and
    /// forgets transactions on whose decision nothing rests any more that is above `settled`. At
    /// most about `limit` rows are looked at; false when there is more to do.
    ///
    /// # Errors
    /// As [`Store::release`].
    pub fn clean(&self, committed: Lsn, settled: Lsn, limit: usize) -> Result<bool> {
        if self.bulks.floor.load(Ordering::Acquire) == u64::MAX {
            return Ok(true);
        }
        let mut writer = self.writer.lock();
        let mut done = 0;
        while done < limit {
            let Some((txn, chunk)) = self.next_to_clean(committed, settled) else {
                return Ok(true);
            };
            match chunk {
                Some((lsn, notes)) => {
                    self.undo_chunk(&mut writer, lsn, &notes)?;
                    done += notes.count;
                }
                None => self.forget_bulk(&mut writer, txn),
            }
        }
        Ok(false)
    }

    /// The newest chunk of an aborted transaction, or a transaction that can be forgotten.
    fn next_to_clean(&self, committed: Lsn, settled: Lsn) -> Option<(TxnId, Option<(Lsn, Notes)>)> {
        let mut known = self.bulks.known.write();
        known.bulks.iter_mut().find_map(|(txn, bulk)| {
            let over = match bulk.fate {
                Fate::Aborted(at) => at <= committed,
                Fate::Committed(at) => bulk.released && bulk.notes.is_empty() && at <= settled,
                Fate::Open => false,
            };
            over.then(|| (*txn, bulk.notes.pop_back()))
        })
    }

    /// Whether a tree was made by a transaction that was aborted and is not removed yet, which knows
    /// nothing of it from now on.
    pub(crate) fn forget_made_in_vain(&self, tree: TreeId) -> bool {
        if self.bulks.floor.load(Ordering::Acquire) == u64::MAX {
            return false;
        }
        let mut known = self.bulks.known.write();
        let aborted = |bulk: &&mut Bulk| matches!(bulk.fate, Fate::Aborted(_));
        known.bulks.values_mut().filter(aborted).any(|bulk| {
            let before = bulk.made.len();
            bulk.made.retain(|(_, made)| *made != tree);
            bulk.made.len() < before
        })
    }

    fn forget_bulk(&self, writer: &mut Writer, txn: TxnId) {
        let mut known = self.bulks.known.write();
        let bulk = known.bulks.get(&txn);
        let aborted = bulk.filter(|bulk| matches!(bulk.fate, Fate::Aborted(_)));
        let made = aborted.map_or_else(Vec::new, |bulk| bulk.made.clone());
        known.forget(txn);
        self.bulks.set_floor(&known);
        drop(known);
        for (_, tree) in made {
            self.remove_tree(writer, tree);
        }
    }

    /// Takes back what a chunk has changed, newest first, except what is gone already.
    fn undo_chunk(&self, writer: &mut Writer, lsn: Lsn, notes: &Notes) -> Result<()> {
        for note in notes.read()?.iter().rev() {
            match self.tree(note.tree) {
                Some(tree) => drop(self.undo_if_there(writer, lsn, &tree, &note.key)?),
                None => self.forget(writer, note.previous)?,
            }
        }
        Ok(())
    }

    /// The newest chunk of a transaction is taken back.
    pub(crate) fn take_back_chunk(&self, writer: &mut Writer, lsn: Lsn, txn: TxnId) -> Result<()> {
        let taken = {
            let mut known = self.bulks.known.write();
            let bulk = known.bulks.get_mut(&txn);
            let notes = bulk.map(|bulk| &mut bulk.notes);
            let notes = notes.filter(|notes| notes.back().is_some_and(|(at, _)| *at == lsn));
            notes.and_then(VecDeque::pop_back)
        };
        match taken {
            Some((_, notes)) => self.undo_chunk(writer, lsn, &notes),
            None => Ok(()),
        }
    }

    /// Everything above `to` was taken back.
    pub(crate) fn cut_bulks(&self, to: Lsn) {
        let mut known = self.bulks.known.write();
        known.cut(to);
        self.bulks.set_floor(&known);
    }

    /// The decision on a transaction is released, and so are the versions it has replaced.
    pub(crate) fn release_decision(&self, writer: &mut Writer, txn: TxnId) {
        if let Some(bulk) = self.bulks.known.write().bulks.get_mut(&txn) {
            bulk.released = true;
            if matches!(bulk.fate, Fate::Committed(_)) {
                writer.ripe.push_back(txn);
            }
        }
    }

    /// Lets go of what chunks have replaced whose transaction is released; how many rows were
    /// looked at, 0 when nothing is left.
    pub(crate) fn release_chunk(&self, writer: &mut Writer) -> Result<usize> {
        while let Some(txn) = writer.ripe.front().copied() {
            let next = {
                let mut known = self.bulks.known.write();
                let bulk = known.bulks.get_mut(&txn);
                bulk.and_then(|bulk| bulk.notes.pop_front())
            };
            let Some((lsn, notes)) = next else {
                writer.ripe.pop_front();
                continue;
            };
            if notes.needless {
                return Ok(1);
            }
            for note in notes.read()? {
                self.forget(writer, note.previous)?;
                if let Some(tree) = self.tree(note.tree).filter(|_| note.deleted) {
                    self.release_tombstone(writer, lsn, &tree, &note.key)?;
                }
            }
            return Ok(notes.count);
        }
        Ok(0)
    }
}
