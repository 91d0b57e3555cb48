//! Changing trees: the one writer.
//!
//! The newest version of a row is in its leaf; what it replaces goes to the undo store and is
//! linked to. Everything done is noted in one queue, in order, which serves from both ends:
//!
//! ```text
//!   release(horizon) ──►  │ 17 a │ 17 b │ 18 a │ … │ 24 c │  ◄── take_back(to)
//!   oldest first: forget  │      │      │      │   │      │  newest first: put the
//!   the predecessor                                          predecessor back
//! ```
//!
//! # Invariants
//! - All changes of one LSN are applied in one call, or with the trees made and dropped just
//!   before it; readers at lower snapshots go by the versions' LSNs and see none of them.
//! - One note per key and LSN. Each tells the version before, which goes when the note is released:
//!   without a look at the leaf, unless a tombstone has to go too.
//! - A page is copied for the checkpoint that is being written before its first change
//!   ([`crate::checkpoint`]). Links to the undo store, and tombstones that are let go, are no
//!   change: a page on disk has neither.
//! - The latch of the writer comes before those of pages, and these are taken top-down.

use std::sync::Arc;

use base::{Error, Key, Lsn, Result, TreeId};

use crate::cache::Touch;
use crate::page::{
    overflow_pages, LeafCell, Page, PageId, PageKind, Value, INLINE_CELL_MAX, PAGE_CONTENT,
};
use crate::reading::Missing;
use crate::size::{long_pages, Size};
use crate::split::Step;
use crate::store::{Change, Event, Store, Writer};
use crate::tree::Tree;
use crate::undo::{OwnedValue, UndoId, Version};

/// Releases for which pages are read ahead.
const RELEASES_AHEAD: usize = 64;

/// A release that was put off so often does not wait any longer for its page, which comes and goes.
const RELEASES_PUT_OFF_MAX: u32 = 1_000;

/// How often a release is put off between two looks at what must be read.
const RELEASES_PER_LOOK: u32 = 16;

/// How far a call of [`Store::release`] has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Released {
    All,
    Some,
    /// A page is being read.
    PutOff,
}

impl Store {
    /// Applies the changes of the record at `lsn`, which completes it.
    ///
    /// # Errors
    /// XX001, fatal for the node, when a change makes no sense: a tree or a row that is not there.
    pub fn apply(&self, lsn: Lsn, changes: &[Change<'_>]) -> Result<()> {
        self.apply_part(lsn, changes)?;
        self.set_applied(lsn);
        Ok(())
    }

    /// Makes some changes of the record at `lsn`; `apply` or `advance` completes the record. Until
    /// then no checkpoint may begin.
    ///
    /// # Errors
    /// As [`Store::apply`].
    pub fn apply_part(&self, lsn: Lsn, changes: &[Change<'_>]) -> Result<()> {
        let mut writer = self.writer.lock();
        self.check_new(lsn)?;
        self.change_all(&mut writer, lsn, changes)
    }

    pub(crate) fn change_all(
        &self,
        writer: &mut Writer,
        lsn: Lsn,
        changes: &[Change<'_>],
    ) -> Result<()> {
        let mut tree: Option<Arc<Tree>> = None;
        // What another call has left is of no use: anybody may have changed the tree since.
        writer.way.forget();
        for change in changes {
            let tree = match &mut tree {
                Some(tree) if tree.id == change.tree => tree,
                other => other.insert(self.tree_to_change(writer, lsn, change.tree)?),
            };
            self.change(writer, lsn, tree, change.key, change.row)?;
        }
        Ok(())
    }

    /// Notes that the entry at `lsn` changes nothing further.
    ///
    /// # Errors
    /// XX000 when that LSN has been passed.
    pub fn advance(&self, lsn: Lsn) -> Result<()> {
        self.apply(lsn, &[])
    }

    /// From now on changes up to `lsn` leave no old versions: nobody reads yet, and nothing up to
    /// there will be taken back. For whoever applies a log again, before anything else happens.
    pub fn settle(&self, lsn: Lsn) {
        self.writer.lock().settled = lsn;
    }

    /// Makes a tree, as part of the record at `lsn`; `apply` or `advance` completes the record.
    ///
    /// # Errors
    /// XX001, fatal for the node, when there is one of that id, but for one that an aborted
    /// transaction has made: what was prepared is made anew when it is resolved for a second time.
    pub fn create_tree(&self, lsn: Lsn, tree: TreeId) -> Result<()> {
        let mut writer = self.writer.lock();
        self.check_new(lsn)?;
        if self.forget_made_in_vain(tree) {
            self.remove_tree(&mut writer, tree);
        }
        if self.trees.read().contains_key(&tree) {
            return Err(Error::corrupted(format!("tree {tree} is made twice")));
        }
        self.make_tree(&mut writer, lsn, tree)?;
        Ok(())
    }

    /// Drops a tree, as part of the record at `lsn`; `apply` or `advance` completes the record.
    /// Its pages stay until the drop is released.
    ///
    /// # Errors
    /// XX001, fatal for the node, when there is none of that id.
    pub fn drop_tree(&self, lsn: Lsn, tree: TreeId) -> Result<()> {
        let mut writer = self.writer.lock();
        self.check_new(lsn)?;
        let found = self.tree(tree);
        let found = found.filter(|tree| tree.dropped().is_none() && !tree.is_building());
        let found = found.ok_or_else(|| Error::corrupted(format!("tree {tree} is not there")))?;
        found.set_dropped(Some(lsn));
        self.raise_directory(lsn);
        writer.history.push_back(lsn, Event::Dropped(tree));
        Ok(())
    }

    /// Undoes everything above `to`, newest first. A checkpoint above `to` that is being written
    /// is discarded.
    ///
    /// # Errors
    /// XX000 when what lies above `to` was released or is in a published checkpoint.
    pub fn take_back(&self, to: Lsn) -> Result<()> {
        let mut writer = self.writer.lock();
        let kept_from = writer.released.max(writer.settled.min(self.applied()));
        if to < kept_from || to < self.checkpoint_lsn() {
            return Err(Error::internal(format!(
                "cannot take back to {to}: released up to {kept_from}, checkpoint at {}",
                self.checkpoint_lsn()
            )));
        }
        self.discard_above(&mut writer, to)?;
        while writer.history.back().is_some_and(|(lsn, _)| *lsn > to) {
            let Some((lsn, event)) = writer.history.pop_back()? else {
                break;
            };
            match event {
                Event::Change { tree, key, .. } => {
                    let tree = self
                        .tree(tree)
                        .ok_or_else(|| Error::internal(format!("tree {tree} is gone")))?;
                    if !self.undo_if_there(&mut writer, lsn, &tree, &key)? {
                        return Err(Error::internal(format!(
                            "version {lsn} of a row of tree {} is gone",
                            tree.id
                        )));
                    }
                }
                Event::Chunk(txn) => self.take_back_chunk(&mut writer, lsn, txn)?,
                Event::Decided(_) => {}
                Event::Created(tree) => self.remove_tree(&mut writer, tree),
                Event::Dropped(tree) => {
                    if let Some(tree) = self.tree(tree) {
                        tree.set_dropped(None);
                    }
                }
                Event::Vacant(..) => {}
            }
        }
        self.cut_bulks(to);
        if self.applied() > to {
            self.set_applied(to);
        }
        Ok(())
    }

    /// Lets go of what no snapshot at or above `horizon` can see: versions that were superseded at
    /// or below it, tombstones, dropped trees. Nothing at or below it will be taken back. At most
    /// `limit` changes, or pages of dropped trees, are looked at; false when there is more to do.
    ///
    /// # Errors
    /// XX001 or 58030, fatal for the node.
    pub fn release(&self, horizon: Lsn, limit: usize) -> Result<bool> {
        let released = self.release_some(horizon, limit, true)?;
        Ok(released == Released::All)
    }

    /// As [`Store::release`], but where that needs pages that are not in memory, has them read and
    /// stops: true, because there is nothing to do at once.
    ///
    /// # Errors
    /// As [`Store::release`].
    pub fn release_in_memory(&self, horizon: Lsn, limit: usize) -> Result<bool> {
        let released = self.release_some(horizon, limit, false)?;
        Ok(released != Released::Some)
    }

    fn release_some(&self, horizon: Lsn, limit: usize, may_block: bool) -> Result<Released> {
        let mut writer = self.writer.lock();
        let mut spent = 0;
        for done in 0.. {
            while spent + done < limit {
                match self.release_chunk(&mut writer)? {
                    0 => break,
                    rows => spent += rows,
                }
            }
            let done = done + spent;
            let may_block = may_block || writer.releases_put_off > RELEASES_PUT_OFF_MAX;
            if let Some((tree, page)) = writer.doomed.last().copied() {
                if done >= limit {
                    return Ok(Released::Some);
                }
                if !may_block && !self.pager.cache.word(page).is_resident() {
                    self.prefetch_doomed(&mut writer);
                    return Ok(Released::PutOff);
                }
                writer.doomed.pop();
                writer.releases_put_off = 0;
                self.remove_page(&mut writer, tree, page)?;
                continue;
            }
            if !writer.history.see_to_front(may_block)? {
                writer.releases_put_off += 1;
                return Ok(Released::PutOff);
            }
            let next = writer.history.front();
            let next = next.filter(|(lsn, _)| *lsn <= horizon);
            if next.is_none() && !writer.ripe.is_empty() {
                return Ok(Released::Some);
            }
            let Some((lsn, event)) = next else {
                writer.released = writer.released.max(horizon.min(self.applied()));
                return Ok(Released::All);
            };
            if done >= limit {
                return Ok(Released::Some);
            }
            let lsn = *lsn;
            if !may_block && self.misses_leaf(event)? {
                self.prefetch_releases(&mut writer)?;
                return Ok(Released::PutOff);
            }
            let Some((_, event)) = writer.history.pop_front() else {
                break;
            };
            writer.releases_put_off = 0;
            writer.released = writer.released.max(lsn);
            self.release_event(&mut writer, lsn, event)?;
        }
        Ok(Released::Some)
    }

    fn release_event(&self, writer: &mut Writer, lsn: Lsn, event: Event) -> Result<()> {
        match event {
            Event::Change {
                tree,
                key,
                previous,
                deleted,
            } => {
                self.forget(writer, previous)?;
                if let Some(tree) = self.tree(tree).filter(|_| deleted) {
                    self.release_tombstone(writer, lsn, &tree, &key)?;
                }
            }
            Event::Created(_) | Event::Chunk(_) => {}
            Event::Decided(txn) => self.release_decision(writer, txn),
            Event::Dropped(tree) => self.remove_tree(writer, tree),
            Event::Vacant(tree, key) => {
                if let Some(tree) = self.tree(tree) {
                    self.tidy(writer, &tree, &key)?;
                }
            }
        }
        Ok(())
    }

    /// The leaf that the release of an event needs and that is not in memory.
    fn missing_leaf(&self, event: &Event) -> Result<Option<Missing>> {
        match event {
            Event::Change {
                tree,
                key,
                deleted: true,
                ..
            }
            | Event::Vacant(tree, key) => self.find_missing([(*tree, &key[..])].into_iter()),
            _ => Ok(None),
        }
    }

    fn misses_leaf(&self, event: &Event) -> Result<bool> {
        Ok(self.missing_leaf(event)?.is_some())
    }

    /// Has the leaves read that the next releases need.
    fn prefetch_releases(&self, writer: &mut Writer) -> Result<()> {
        writer.releases_put_off += 1;
        if writer.releases_put_off % RELEASES_PER_LOOK != 1 {
            return Ok(());
        }
        for (_, event) in writer.history.oldest().take(RELEASES_AHEAD) {
            if let Some(missing) = self.missing_leaf(event)? {
                self.prefetch(missing);
            }
        }
        Ok(())
    }

    fn prefetch_doomed(&self, writer: &mut Writer) {
        writer.releases_put_off += 1;
        if writer.releases_put_off % RELEASES_PER_LOOK != 1 {
            return;
        }
        let next = writer.doomed.iter().rev().take(RELEASES_AHEAD);
        let next: Vec<_> = next
            .map(|(_, id)| (*id, self.pager.cache.word(*id)))
            .filter(|(_, word)| !word.is_resident())
            .collect();
        self.pager.prefetch(&next, Touch::Scan);
    }

    pub(crate) fn check_new(&self, lsn: Lsn) -> Result<()> {
        if lsn > self.applied() {
            return Ok(());
        }
        Err(Error::internal(format!(
            "record {lsn} comes after {} was applied",
            self.applied()
        )))
    }

    fn tree_to_change(&self, writer: &mut Writer, lsn: Lsn, id: TreeId) -> Result<Arc<Tree>> {
        match self.tree(id) {
            Some(tree) if tree.dropped().is_none() && !tree.is_building() => Ok(tree),
            None if id < TreeId::FIRST_USER => self.make_tree(writer, lsn, id),
            _ => Err(Error::corrupted(format!(
                "record {lsn} changes tree {id}, which is not there"
            ))),
        }
    }

    fn make_tree(&self, writer: &mut Writer, lsn: Lsn, id: TreeId) -> Result<Arc<Tree>> {
        let tree = self.plant_tree(writer, id, lsn, lsn)?;
        self.raise_directory(lsn);
        writer.history.push_back(lsn, Event::Created(id));
        Ok(tree)
    }

    /// An empty tree.
    pub(crate) fn plant_tree(
        &self,
        writer: &mut Writer,
        id: TreeId,
        lsn: Lsn,
        created: Lsn,
    ) -> Result<Arc<Tree>> {
        let (root, mut page) = self.new_page(writer, PageKind::Leaf, id, 0)?;
        page.raise_lsn(lsn);
        self.pager.insert(root, page)?;
        let tree = Tree::new(id, root, created, None).with_size(Size::of(1, 0));
        let tree = Arc::new(tree);
        self.trees.write().insert(id, tree.clone());
        Ok(tree)
    }

    fn change(
        &self,
        writer: &mut Writer,
        lsn: Lsn,
        tree: &Tree,
        key: &[u8],
        row: Option<&[u8]>,
    ) -> Result<()> {
        let value = self.store_row(writer, tree.id, key, row)?;
        let mut way = std::mem::take(&mut writer.way);
        loop {
            let is_next = way.leads_on(tree.id, key);
            if !is_next {
                self.find_way(tree, key, &mut way)?;
            }
            let mut page = self.pager.write(way.path[way.path.len() - 1].id)?;
            let found = match is_next {
                true => page.search_end(key),
                false => page.search(key),
            };
            let newest = found.ok().map(|slot| page.leaf_cell(slot).lsn);
            if let Some(void) =
                newest.filter(|old| self.bulks.is_void_to(*old, writer.notes.as_ref()))
            {
                // What was never committed goes before anything is put in its place.
                drop(page);
                self.undo_if_there(writer, void, tree, key)?;
                way.forget();
                continue;
            }
            let mut cell = LeafCell {
                key,
                lsn,
                undo: UndoId::NONE,
                value,
            };
            if !page.fits(cell.len(), found.ok()) {
                drop(page);
                self.split(writer, &way.path, key)?;
                way.forget();
                continue;
            }
            self.touch(writer, &mut page);
            let is_settled = writer.is_settled(lsn);
            match found {
                Err(slot) => {
                    if row.is_none() {
                        return Err(absent(lsn, tree.id, key));
                    }
                    page.insert_leaf(slot, cell);
                    tree.size.replaced(false, true);
                    if !is_settled {
                        writer.note(lsn, tree.id, key, UndoId::NONE, false);
                    }
                }
                Ok(slot) if is_settled => {
                    self.replace_settled(writer, &page, slot, &cell, tree)?;
                    if row.is_some() {
                        page.replace_leaf(slot, cell);
                    } else {
                        page.remove(slot);
                    }
                }
                Ok(slot) => {
                    cell.undo = self.supersede(writer, &page, slot, &cell, tree)?;
                    page.replace_leaf(slot, cell);
                }
            }
            page.raise_lsn(lsn);
            drop(page);
            way.passed(key);
            if is_settled && row.is_none() {
                self.shrink(writer, tree, &way.path)?;
                way.forget();
            }
            break;
        }
        writer.way = way;
        Ok(())
    }

    /// Lets go of the version that a new one replaces for good.
    fn replace_settled(
        &self,
        writer: &mut Writer,
        page: &Page,
        slot: usize,
        new: &LeafCell<'_>,
        tree: &Tree,
    ) -> Result<()> {
        let old = page.leaf_cell(slot);
        check_order(&old, new, tree.id)?;
        let (was_row, is_row) = (old.value != Value::Tombstone, new.value != Value::Tombstone);
        tree.size.replaced(was_row, is_row);
        if let Value::Overflow { first, len } = old.value {
            tree.size.add_pages(-long_pages(len));
            self.free_long(writer, first, len);
        }
        Ok(())
    }

    /// Keeps the version that a new one replaces, and returns the link to it.
    fn supersede(
        &self,
        writer: &mut Writer,
        page: &Page,
        slot: usize,
        new: &LeafCell<'_>,
        in_tree: &Tree,
    ) -> Result<UndoId> {
        let old = page.leaf_cell(slot);
        let tree = in_tree.id;
        check_order(&old, new, tree)?;
        let deleted = new.value == Value::Tombstone;
        let was_row = old.value != Value::Tombstone;
        in_tree.size.replaced(was_row, !deleted);
        if let Value::Overflow { len, .. } = old.value {
            in_tree.size.add_pages(-long_pages(len));
        }
        if old.lsn == new.lsn {
            // The same record once more: nobody may have seen the version between.
            if let Value::Overflow { first, len } = old.value {
                self.free_long(writer, first, len);
            }
            if deleted {
                note_deleted(writer, new.lsn, tree, new.key);
            }
            return Ok(old.undo);
        }
        if let Value::Overflow { first, len } = old.value {
            self.retire_long(writer, first, len);
        }
        let previous = self.pager.undo.put(old.lsn, old.value, old.undo);
        writer.note(new.lsn, tree, new.key, previous, deleted);
        Ok(previous)
    }

    /// Puts a row that is too long for a leaf into overflow pages.
    pub(crate) fn store_row<'a>(
        &self,
        writer: &mut Writer,
        tree: TreeId,
        key: &[u8],
        row: Option<&'a [u8]>,
    ) -> Result<Value<'a>> {
        if key.len() > base::limits::KEY_BYTES_MAX {
            return Err(Error::corrupted(format!(
                "a key of {} bytes, at most {}",
                key.len(),
                base::limits::KEY_BYTES_MAX
            )));
        }
        let Some(row) = row else {
            return Ok(Value::Tombstone);
        };
        let cell = LeafCell {
            key,
            lsn: Lsn::ZERO,
            undo: UndoId::NONE,
            value: Value::Inline(row),
        };
        if cell.len() <= INLINE_CELL_MAX {
            return Ok(Value::Inline(row));
        }
        let len = u32::try_from(row.len())
            .map_err(|_| Error::corrupted(format!("a row of {} bytes", row.len())))?;
        let count = row.len().div_ceil(PAGE_CONTENT) as u32;
        let first = self.take_ids(writer, count)?;
        for (id, chunk) in overflow_pages(first, len).zip(row.chunks(PAGE_CONTENT)) {
            let mut page = self.begin_page(writer, id, PageKind::Overflow, tree, 0);
            page.set_content(chunk);
            self.pager.insert(id, page)?;
        }
        Ok(Value::Overflow { first, len })
    }

    /// Puts the version before `lsn` back; false when that of `lsn` is not the newest.
    pub(crate) fn undo_if_there(
        &self,
        writer: &mut Writer,
        lsn: Lsn,
        tree: &Tree,
        key: &[u8],
    ) -> Result<bool> {
        let mut path = Vec::new();
        loop {
            self.descend(tree, key, &mut path)?;
            let mut page = self.pager.write(path[path.len() - 1].id)?;
            let slot = page.search(key).ok();
            let Some(slot) = slot.filter(|slot| page.leaf_cell(*slot).lsn == lsn) else {
                return Ok(false);
            };
            let cell = page.leaf_cell(slot);
            let (old_value, undo) = (OwnedValue::of(cell.value), cell.undo);
            let was_row = old_value != OwnedValue::Tombstone;
            match self.pager.undo.read(undo)? {
                None => {
                    tree.size.replaced(was_row, false);
                    self.touch(writer, &mut page);
                    page.remove(slot);
                }
                Some(Version {
                    lsn,
                    value: OwnedValue::Tombstone,
                    ..
                }) if lsn <= writer.released && self.bulks.is_released(lsn) => {
                    // Nobody would come again to let go of the tombstone.
                    tree.size.replaced(was_row, false);
                    self.touch(writer, &mut page);
                    page.remove(slot);
                    self.pager.undo.remove(undo);
                }
                Some(version) => {
                    let restored = LeafCell {
                        key,
                        lsn: version.lsn,
                        undo: version.previous,
                        value: version.value.as_value(),
                    };
                    if !page.fits(restored.len(), Some(slot)) {
                        drop(page);
                        self.split(writer, &path, key)?;
                        continue;
                    }
                    tree.size
                        .replaced(was_row, restored.value != Value::Tombstone);
                    self.touch(writer, &mut page);
                    page.replace_leaf(slot, restored);
                    self.pager.undo.remove(undo);
                    if let OwnedValue::Overflow { first, len } = version.value {
                        tree.size.add_pages(long_pages(len));
                        self.restore_long(writer, first, len);
                    }
                }
            }
            if let OwnedValue::Overflow { first, len } = old_value {
                tree.size.add_pages(-long_pages(len));
                self.free_long(writer, first, len);
            }
            drop(page);
            break;
        }
        self.shrink(writer, tree, &path)?;
        Ok(true)
    }

    /// Lets go of a tombstone, if it is still the newest version.
    pub(crate) fn release_tombstone(
        &self,
        writer: &mut Writer,
        lsn: Lsn,
        tree: &Tree,
        key: &[u8],
    ) -> Result<()> {
        let mut path = std::mem::take(&mut writer.way.path);
        writer.way.forget();
        self.descend(tree, key, &mut path)?;
        let mut page = self.pager.write(path[path.len() - 1].id)?;
        let found = page.search(key).ok();
        let found = found.filter(|slot| {
            let cell = page.leaf_cell(*slot);
            cell.lsn == lsn && cell.value == Value::Tombstone
        });
        if let Some(slot) = found {
            page.remove(slot);
        }
        drop(page);
        if found.is_some() {
            self.shrink(writer, tree, &path)?;
        }
        writer.way.path = path;
        Ok(())
    }

    /// Gives a version and all before it back.
    pub(crate) fn forget(&self, writer: &mut Writer, mut at: UndoId) -> Result<()> {
        while let Some((value, previous)) = self.pager.undo.release(at)? {
            if let OwnedValue::Overflow { first, len } = value {
                self.free_long(writer, first, len);
            }
            at = previous;
        }
        Ok(())
    }

    /// Gives the leaf of a key back if it is empty.
    fn tidy(&self, writer: &mut Writer, tree: &Tree, key: &[u8]) -> Result<()> {
        let mut path = Vec::new();
        self.descend(tree, key, &mut path)?;
        self.shrink(writer, tree, &path)
    }

    /// The way from the root to the leaf of a key. Only the writer may rely on it once the latches
    /// are gone.
    pub(crate) fn descend(&self, tree: &Tree, key: &[u8], path: &mut Vec<Step>) -> Result<()> {
        self.descend_between(tree, key, path, |_| ())
    }

    /// As [`Store::descend`]; `ends` is told of each key, smaller and smaller ones, before which what
    /// lies below the way ends.
    fn descend_between(
        &self,
        tree: &Tree,
        key: &[u8],
        path: &mut Vec<Step>,
        mut ends: impl FnMut(&[u8]),
    ) -> Result<()> {
        path.clear();
        let mut id = tree.root;
        loop {
            let page = self.pager.read_here(id)?;
            if page.is_leaf() {
                path.push(Step { id, index: 0 });
                return Ok(());
            }
            let index = page.child_index(key);
            path.push(Step { id, index });
            if index < page.count() {
                ends(page.key(index));
            }
            id = page.child(index);
        }
    }

    /// As [`Store::descend`], and notes up to where the leaf answers for keys.
    fn find_way(&self, tree: &Tree, key: &[u8], way: &mut Way) -> Result<()> {
        way.forget();
        way.is_last = true;
        self.descend_between(tree, key, &mut way.path, |end| {
            way.is_last = false;
            way.high.clear();
            way.high.extend_from_slice(end);
        })?;
        way.tree = Some(tree.id);
        Ok(())
    }

    /// Forgets a tree. Its pages are given back bit by bit, as others are released.
    pub(crate) fn remove_tree(&self, writer: &mut Writer, id: TreeId) {
        if let Some(tree) = self.trees.write().remove(&id) {
            tree.set_gone();
            writer.doomed.push((id, tree.root));
        }
    }

    /// Gives back a page of a tree that is gone, with all versions of its rows; its children are
    /// next.
    fn remove_page(&self, writer: &mut Writer, tree: TreeId, id: PageId) -> Result<()> {
        // Emptied from the top: whoever still reads below has passed, and nobody follows.
        let mut page = self.pager.write(id)?;
        self.touch(writer, &mut page);
        if page.is_leaf() {
            for slot in 0..page.count() {
                let cell = page.leaf_cell(slot);
                let (undo, value) = (cell.undo, cell.value);
                if let Value::Overflow { first, len } = value {
                    self.free_long(writer, first, len);
                }
                self.forget(writer, undo)?;
            }
        } else {
            let children = (0..=page.count()).map(|index| (tree, page.child(index)));
            writer.doomed.extend(children);
        }
        page.reset(PageKind::Leaf, 0);
        drop(page);
        self.forget_page(writer, id);
        Ok(())
    }

    /// To be called before each change of a page: copies it for the checkpoint that is being
    /// written, and notes that the next one must write it.
    pub(crate) fn touch(&self, writer: &mut Writer, page: &mut Page) {
        if page.epoch == writer.epoch {
            return;
        }
        let id = PageId(page.id() as u32);
        self.copy_for_checkpoint(id, page);
        page.epoch = writer.epoch;
        writer.dirty.insert(id);
    }

    /// A new page, which nobody sees until it is in the cache.
    pub(crate) fn new_page(
        &self,
        writer: &mut Writer,
        kind: PageKind,
        tree: TreeId,
        level: u8,
    ) -> Result<(PageId, Page)> {
        let id = self.take_ids(writer, 1)?;
        Ok((id, self.begin_page(writer, id, kind, tree, level)))
    }

    /// The first of so many page ids that follow one another.
    fn take_ids(&self, writer: &mut Writer, count: u32) -> Result<PageId> {
        if let Some(first) = writer.free_pages.take(count) {
            return Ok(first);
        }
        let first = PageId(writer.next_page);
        writer.next_page = writer
            .next_page
            .checked_add(count)
            .ok_or_else(|| Error::new(base::SqlState::DISK_FULL, "the store has no page left"))?;
        Ok(first)
    }

    fn begin_page(
        &self,
        writer: &mut Writer,
        id: PageId,
        kind: PageKind,
        tree: TreeId,
        level: u8,
    ) -> Page {
        writer.freed.remove(&id);
        writer.dirty.insert(id);
        self.count_pages(tree, 1);
        let mut page = Page::new(kind, u64::from(id.0), tree, level);
        page.epoch = writer.epoch;
        page
    }

    /// Gives back a page that was touched and that nobody can reach any more.
    pub(crate) fn forget_page(&self, writer: &mut Writer, id: PageId) {
        writer.dirty.remove(&id);
        writer.freed.insert(id);
        writer.free_pages.give_back(id);
        self.pager.forget(id);
    }

    /// A row's pages are those of an old version now: no later checkpoint has them.
    fn retire_long(&self, writer: &mut Writer, first: PageId, len: u32) {
        for id in overflow_pages(first, len) {
            writer.dirty.remove(&id);
            writer.freed.insert(id);
            self.pager.retire(id);
        }
    }

    /// A row's pages are those of the newest version again.
    fn restore_long(&self, writer: &mut Writer, first: PageId, len: u32) {
        for id in overflow_pages(first, len) {
            writer.freed.remove(&id);
            writer.dirty.insert(id);
            self.pager.restore(id);
        }
    }

    /// Gives the pages of a row back. They need not be in memory.
    fn free_long(&self, writer: &mut Writer, first: PageId, len: u32) {
        for id in overflow_pages(first, len) {
            self.leave_to_checkpoint(id);
            self.forget_page(writer, id);
        }
    }
}

/// The way to the leaf that was changed last: of rows that come in order most go to the same one.
/// Nobody but the writer may rely on it, and only until pages are split, merged or given back.
#[derive(Debug, Default)]
pub(crate) struct Way {
    /// Of which tree, while it holds.
    tree: Option<TreeId>,
    pub(crate) path: Vec<Step>,
    /// The key that it was gone for last.
    passed: Key,
    /// The first key of the next leaf, if there is one.
    high: Key,
    is_last: bool,
}

impl Way {
    pub(crate) fn forget(&mut self) {
        self.tree = None;
        self.passed.clear();
    }

    fn passed(&mut self, key: &[u8]) {
        self.passed.clear();
        self.passed.extend_from_slice(key);
    }

    /// Whether it leads to the leaf of a key, too.
    fn leads_on(&self, tree: TreeId, key: &[u8]) -> bool {
        self.tree == Some(tree)
            && self.passed.as_slice() < key
            && (self.is_last || key < self.high.as_slice())
    }
}

/// Notes that a row changed before by the same record is deleted after all.
fn note_deleted(writer: &mut Writer, at: Lsn, in_tree: TreeId, of_key: &[u8]) {
    if let Some(notes) = &mut writer.notes {
        return notes.add(in_tree, of_key, UndoId::NONE, true);
    }
    let events = writer.history.newest_mut();
    for (_, event) in events.take_while(|(lsn, _)| *lsn == at) {
        match event {
            Event::Change {
                tree, key, deleted, ..
            } if *tree == in_tree && **key == *of_key => *deleted = true,
            _ => {}
        }
    }
}

/// Looks whether a version may come after another.
fn check_order(old: &LeafCell<'_>, new: &LeafCell<'_>, tree: TreeId) -> Result<()> {
    if old.lsn > new.lsn {
        return Err(Error::corrupted(format!(
            "record {} changes a row of tree {tree} that was changed at {}",
            new.lsn, old.lsn
        )));
    }
    if new.value == Value::Tombstone && old.value == Value::Tombstone {
        return Err(absent(new.lsn, tree, new.key));
    }
    Ok(())
}

fn absent(lsn: Lsn, tree: TreeId, key: &[u8]) -> Error {
    let key: Key = key.iter().copied().take(32).collect();
    Error::corrupted(format!(
        "record {lsn} deletes a row of tree {tree} that is not there"
    ))
    .with_detail(format!("Key {key:02x?}."))
}
