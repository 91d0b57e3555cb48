//! Trees that are made beside the work: filled bit by bit, seen by nobody, then switched to.
//!
//! ```text
//!   begin_build      build, build, build …        adopt_tree at LSN 31
//!   ──┬──────────────────────────────────────────────┬────────────────►
//!     no reader finds it, no checkpoint has it       a tree like any other, made at 31
//!                                                    (or drop_build: it never was)
//! ```
//!
//! What is put into such a tree is no part of any record, so nothing of it is noted for release or
//! take-back, and a checkpoint that is begun meanwhile lists its pages among those that are to be
//! given back: whoever opens the store there builds anew. From the LSN at which it is adopted it is
//! kept like any tree; when that LSN is taken back, it is gone.
//!
//! # Invariants
//! - Pages of such a tree go through the same latches and copies as others, so that a checkpoint
//!   finds them sound.
//! - Its versions carry the LSN that the builder gives, which is below that of its adoption; what
//!   is read from it owes at least the latter.
//! - It may be read, at [`Lsn::MAX`] only: by its builder, and by the transaction that will adopt it.

use std::sync::Arc;

use base::{Error, Lsn, Result, TreeId};

use crate::page::LeafCell;
use crate::store::{Event, Store, Writer};
use crate::tree::Tree;
use crate::undo::UndoId;

/// Entries that are put into a tree before others who write may have their turn.
const ENTRIES_PER_TURN: usize = 64;

impl Store {
    /// Begins a tree that nobody sees.
    ///
    /// # Errors
    /// XX001, fatal for the node, when there is one of that id.
    pub fn begin_build(&self, tree: TreeId, at: Lsn) -> Result<()> {
        let mut writer = self.writer.lock();
        if self.has_tree(tree) {
            return Err(Error::corrupted(format!("tree {tree} is built twice")));
        }
        self.plant_tree(&mut writer, tree, at, Lsn::MAX)?;
        Ok(())
    }

    /// Puts entries into a tree that is being built, as versions of `at`. Returns the first whose
    /// key is there already, which is left out, with all that follow.
    ///
    /// # Errors
    /// XX000 when no such tree is being built; else as for reads.
    pub fn build<'a>(
        &self,
        tree: TreeId,
        at: Lsn,
        entries: &[(&'a [u8], &'a [u8])],
    ) -> Result<Option<&'a [u8]>> {
        let tree = self.tree(tree).filter(|tree| tree.is_building());
        let tree = tree.ok_or_else(|| Error::internal("a tree is filled that is not built"))?;
        for turn in entries.chunks(ENTRIES_PER_TURN) {
            let mut writer = self.writer.lock();
            for (key, row) in turn {
                if !self.put(&mut writer, at, &tree, key, row)? {
                    return Ok(Some(key));
                }
            }
        }
        Ok(None)
    }

    /// Gives up a tree that is being built.
    pub fn drop_build(&self, tree: TreeId) {
        let mut writer = self.writer.lock();
        if self.tree(tree).is_some_and(|tree| tree.is_building()) {
            self.remove_tree(&mut writer, tree);
        }
    }

    /// Makes a tree that was built a tree like any other, as part of the record at `lsn`; `apply`
    /// or `advance` completes the record.
    ///
    /// # Errors
    /// XX001, fatal for the node, when no such tree is being built.
    pub fn adopt_tree(&self, lsn: Lsn, tree: TreeId) -> Result<()> {
        let mut writer = self.writer.lock();
        self.check_new(lsn)?;
        let built = self.tree(tree).filter(|tree| tree.is_building());
        let built = built.ok_or_else(|| Error::corrupted(format!("tree {tree} is not built")))?;
        built.adopt(lsn);
        self.raise_directory(lsn);
        writer.history.push_back(lsn, Event::Created(tree));
        Ok(())
    }

    /// False when the key is there already.
    fn put(
        &self,
        writer: &mut Writer,
        at: Lsn,
        tree: &Arc<Tree>,
        key: &[u8],
        row: &[u8],
    ) -> Result<bool> {
        let mut path = std::mem::take(&mut writer.way.path);
        self.descend(tree, key, &mut path)?;
        let is_there = self
            .pager
            .read_here(path[path.len() - 1].id)?
            .search(key)
            .is_ok();
        if !is_there {
            let value = self.store_row(writer, tree.id, key, Some(row))?;
            let cell = LeafCell {
                key,
                lsn: at,
                undo: UndoId::NONE,
                value,
            };
            loop {
                let mut page = self.pager.write(path[path.len() - 1].id)?;
                if page.fits(cell.len(), None) {
                    let (Ok(slot) | Err(slot)) = page.search(key);
                    self.touch(writer, &mut page);
                    page.insert_leaf(slot, cell);
                    page.raise_lsn(at);
                    tree.size.replaced(false, true);
                    break;
                }
                drop(page);
                self.split(writer, &path, key)?;
                self.descend(tree, key, &mut path)?;
            }
        }
        path.clear();
        writer.way.path = path;
        Ok(!is_there)
    }
}
