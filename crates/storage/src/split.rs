//! Splitting pages that are full and merging those that are nearly empty.
//!
//! Both hold the latch of the parent and then those of the children, so that no reader is between
//! them. A root keeps its page id: it is split by moving its content down, and it takes over the
//! content of an only child.

use base::{Lsn, Result};

use crate::page::{separator, Page, PageId, PageKind, INNER_CELL_HEADER, PAGE_CONTENT};
use crate::store::{Store, Writer};
use crate::tree::Tree;

/// One page on the way from a root to a leaf, and which of its children comes next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) id: PageId,
    pub(crate) index: usize,
}

/// A leaf with less than this may be merged with a sibling …
const MERGE_BELOW: usize = PAGE_CONTENT / 4;

/// … if both together stay below this.
const MERGED_MAX: usize = PAGE_CONTENT * 3 / 4;

/// Where a page is cut in two, and what separates the halves.
struct Cut {
    slot: usize,
    separator: Vec<u8>,
}

/// Where to cut so that `key` gets room.
fn cut(page: &Page, key: &[u8]) -> Cut {
    let count = page.count();
    assert!(count > 0, "an empty page is split");
    if !page.is_leaf() {
        // Keys that only grow leave full pages behind.
        let slot = match page.child_index(key) {
            index if index == count => count - 1,
            _ => middle(page),
        };
        return Cut {
            slot,
            separator: page.key(slot).to_vec(),
        };
    }
    let (slot, separator) = match page.search(key) {
        Err(slot) if slot == count => (count, separator(page.key(count - 1), key)),
        Err(0) => (0, separator(key, page.key(0))),
        _ => {
            let slot = middle(page).max(1);
            (slot, separator(page.key(slot - 1), page.key(slot)))
        }
    };
    Cut {
        slot,
        separator: separator.to_vec(),
    }
}

/// The slot before which about half of the bytes are.
fn middle(page: &Page) -> usize {
    let total: usize = (0..page.count()).map(|slot| page.cell_len(slot)).sum();
    let mut before = 0;
    for slot in 0..page.count() {
        if before >= total / 2 {
            return slot;
        }
        before += page.cell_len(slot);
    }
    page.count() - 1
}

/// Moves what lies behind a cut into an empty page.
fn move_right(page: &mut Page, cut: &Cut, right: &mut Page) {
    let mut from = cut.slot;
    if !page.is_leaf() {
        right.set_link(page.child(cut.slot + 1));
        from += 1;
    }
    for slot in from..page.count() {
        right.insert_cell(slot - from, page.cell(slot));
    }
    right.raise_lsn(page.lsn());
    page.truncate(cut.slot);
}

impl Store {
    /// Splits one page on the way to a leaf: the leaf, or the lowest page above it that must have
    /// room first. The way must be walked again.
    pub(crate) fn split(&self, writer: &mut Writer, path: &[Step], key: &[u8]) -> Result<()> {
        let mut at = path.len() - 1;
        loop {
            let cut = cut(&*self.pager.read_here(path[at].id)?, key);
            if at == 0 {
                return self.split_root(writer, path[0].id, &cut);
            }
            let parent = &path[at - 1];
            let needed = INNER_CELL_HEADER + cut.separator.len();
            if self.pager.read_here(parent.id)?.fits(needed, None) {
                return self.split_child(writer, *parent, path[at].id, &cut);
            }
            at -= 1;
        }
    }

    fn split_child(
        &self,
        writer: &mut Writer,
        parent: Step,
        child: PageId,
        cut: &Cut,
    ) -> Result<()> {
        let mut above = self.pager.write(parent.id)?;
        let mut page = self.pager.write(child)?;
        let (id, mut right) = self.new_sibling(writer, &page)?;
        self.touch(writer, &mut above);
        self.touch(writer, &mut page);
        move_right(&mut page, cut, &mut right);
        self.pager.insert(id, right)?;
        above.insert_inner(parent.index, &cut.separator, id);
        Ok(())
    }

    fn split_root(&self, writer: &mut Writer, root: PageId, cut: &Cut) -> Result<()> {
        let mut page = self.pager.write(root)?;
        let (left_id, mut left) = self.new_sibling(writer, &page)?;
        let (right_id, mut right) = self.new_sibling(writer, &page)?;
        self.touch(writer, &mut page);
        left.take_content(&page);
        move_right(&mut left, cut, &mut right);
        self.pager.insert(left_id, left)?;
        self.pager.insert(right_id, right)?;
        let level = page.level() + 1;
        page.reset(PageKind::Inner, level);
        page.set_link(left_id);
        page.insert_inner(0, &cut.separator, right_id);
        Ok(())
    }

    fn new_sibling(&self, writer: &mut Writer, page: &Page) -> Result<(PageId, Page)> {
        let kind = if page.is_leaf() {
            PageKind::Leaf
        } else {
            PageKind::Inner
        };
        self.new_page(writer, kind, page.tree(), page.level())
    }

    /// Gives the leaf at the end of a way back if it is empty, or merges it with a sibling if it is
    /// nearly so.
    pub(crate) fn shrink(&self, writer: &mut Writer, tree: &Tree, path: &[Step]) -> Result<()> {
        let used = {
            let leaf = self.pager.read_here(path[path.len() - 1].id)?;
            if leaf.count() > 0 {
                Some(leaf.used())
            } else {
                None
            }
        };
        if path.len() == 1 {
            return Ok(());
        }
        match used {
            None => self.unlink(writer, path)?,
            Some(used) if used < MERGE_BELOW => self.merge(writer, path)?,
            Some(_) => return Ok(()),
        }
        self.lower_root(writer, tree)
    }

    /// Takes an empty leaf out of the tree, with the pages above that have no other child.
    fn unlink(&self, writer: &mut Writer, path: &[Step]) -> Result<()> {
        let mut top = path.len() - 1;
        while top > 0 && self.pager.read_here(path[top - 1].id)?.count() == 0 {
            top -= 1;
        }
        if top == 0 {
            let mut root = self.pager.write(path[0].id)?;
            self.touch(writer, &mut root);
            let lsn = self.remove_way(writer, &path[1..])?;
            root.reset(PageKind::Leaf, 0);
            root.raise_lsn(lsn);
            return Ok(());
        }
        let Step { id, index } = path[top - 1];
        let mut parent = self.pager.write(id)?;
        self.touch(writer, &mut parent);
        let lsn = self.remove_way(writer, &path[top..])?;
        // A neighbour now answers for the keys of the leaf that goes, and need not be in memory.
        parent.raise_lsn(lsn);
        parent.remove_child(index);
        Ok(())
    }

    /// Gives pages back that hang in one line, and returns the LSN of the leaf at its end.
    fn remove_way(&self, writer: &mut Writer, way: &[Step]) -> Result<Lsn> {
        let mut lsn = Lsn::ZERO;
        for step in way {
            let mut page = self.pager.write(step.id)?;
            self.touch(writer, &mut page);
            lsn = lsn.max(page.lsn());
            self.count_pages(page.tree(), -1);
            drop(page);
            self.forget_page(writer, step.id);
        }
        Ok(lsn)
    }

    fn merge(&self, writer: &mut Writer, path: &[Step]) -> Result<()> {
        let step = &path[path.len() - 2];
        let mut parent = self.pager.write(step.id)?;
        let right_index = if step.index > 0 { step.index } else { 1 };
        if right_index > parent.count() {
            return Ok(());
        }
        let left = parent.child(right_index - 1);
        let right = parent.child(right_index);
        // Not worth a read: the next who makes one of them smaller tries again.
        let Some(mut left_page) = self.pager.cache.write(left) else {
            return Ok(());
        };
        let Some(mut right_page) = self.pager.cache.write(right) else {
            return Ok(());
        };
        if left_page.used() + right_page.used() > MERGED_MAX {
            return Ok(());
        }
        for page in [&mut *parent, &mut *left_page, &mut *right_page] {
            self.touch(writer, page);
        }
        for slot in 0..right_page.count() {
            let end = left_page.count();
            left_page.insert_cell(end, right_page.cell(slot));
        }
        left_page.raise_lsn(right_page.lsn());
        parent.remove_child(right_index);
        self.count_pages(right_page.tree(), -1);
        drop(right_page);
        self.forget_page(writer, right);
        Ok(())
    }

    /// Lets the root take over the content of an only child.
    fn lower_root(&self, writer: &mut Writer, tree: &Tree) -> Result<()> {
        loop {
            let mut root = self.pager.write(tree.root)?;
            if root.is_leaf() || root.count() > 0 {
                return Ok(());
            }
            let child = root.child(0);
            let mut page = self.pager.write(child)?;
            self.touch(writer, &mut root);
            self.touch(writer, &mut page);
            root.take_content(&page);
            drop(page);
            tree.size.add_pages(-1);
            self.forget_page(writer, child);
        }
    }
}
