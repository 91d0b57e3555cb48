//! Checking a store: that every page is there, sound, in order, and used exactly once.

use std::collections::BTreeMap;

use base::env::Disk;
use base::hash::HashSet;
use base::{Error, Key, Result, TreeId};

use crate::file::{self, StoreFile};
use crate::owner::Owner;
use crate::page::{overflow_pages, Page, PageId, PageKind, Value, PAGE_CONTENT};
use crate::store::Store;
use crate::CheckpointInfo;

/// What a check found: that everything is sound, and how much there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreReport {
    /// The checkpoint that was checked.
    pub info: CheckpointInfo,
    /// How many rows each tree has.
    pub trees: BTreeMap<TreeId, u64>,
    /// Pages in use.
    pub pages: usize,
}

/// What is done with each row.
pub type Visitor<'a> = dyn FnMut(TreeId, &[u8], &[u8]) -> Result<()> + 'a;

/// Where pages come from.
type Source<'a> = dyn Fn(PageId) -> Result<Page> + 'a;

/// Reads the published checkpoint of the store in `dir`, which nobody has open, and changes
/// nothing. Every row is shown to `visit`, tree by tree, in order.
///
/// # Errors
/// XX001 when something is not sound; 55000 when the store is another's; what `visit` returns.
pub fn check(
    disk: &dyn Disk,
    dir: &str,
    owner: Owner,
    visit: &mut Visitor<'_>,
) -> Result<StoreReport> {
    let opened = file::open(disk, dir, owner)?;
    let file: &StoreFile = &opened.file;
    let source = |id| file.load(id);
    let mut walk = Walk::new(&source, visit);
    let mut trees = BTreeMap::new();
    for tree in &opened.record.trees {
        walk.silent = tree.dropped;
        let (pages, rows) = walk.tree(tree.id, tree.root)?;
        compare("pages", tree.id, pages, tree.pages)?;
        compare("rows", tree.id, rows, tree.rows)?;
        if !tree.dropped {
            trees.insert(tree.id, rows);
        }
    }
    walk.doomed(&opened.record.doomed)?;
    let pages = walk.seen.len();
    let map = file.map();
    let mapped = map.iter().enumerate().filter(|(_, b)| b.location != 0);
    for (id, _) in mapped {
        if !walk.seen.contains(&PageId(id as u32)) {
            return Err(Error::corrupted(format!("page {id} belongs to no tree")));
        }
    }
    Ok(StoreReport {
        info: opened.published.info,
        trees,
        pages,
    })
}

impl Store {
    /// Checks the trees as they are in memory, the newest versions of rows, while nothing is
    /// applied.
    ///
    /// # Errors
    /// XX001 when something is not sound; what `visit` returns.
    pub fn check_trees(&self, visit: &mut Visitor<'_>) -> Result<StoreReport> {
        let source = |id| self.pager.copy_of(id);
        let writer = self.writer.lock();
        let mut found: Vec<_> = self.trees.read().values().cloned().collect();
        found.sort_unstable_by_key(|tree| tree.id);
        let mut walk = Walk::new(&source, visit);
        walk.store = Some(self);
        let mut trees = BTreeMap::new();
        for tree in found {
            walk.silent = tree.dropped().is_some()
                || tree.is_building()
                || self.bulks.is_void(tree.created());
            let (pages, rows) = walk.tree(tree.id, tree.root)?;
            compare("pages", tree.id, pages, tree.size.pages())?;
            if !self.has_undecided() {
                compare("rows", tree.id, rows, tree.size.rows())?;
            }
            if !walk.silent {
                trees.insert(tree.id, rows);
            }
        }
        walk.doomed(&writer.doomed)?;
        let free: HashSet<PageId> = writer.free_pages.iter().collect();
        let pages = walk.seen.len();
        if free.len() != writer.free_pages.len() {
            return Err(Error::corrupted("a page is free twice"));
        }
        // Chains of versions in the undo store have pages too.
        let known = walk.seen.iter().find(|id| free.contains(id));
        if let Some(id) = known {
            return Err(Error::corrupted(format!(
                "page {} is free and in use",
                id.0
            )));
        }
        if self.pager.undo.len() == 0 && free.len() + pages + 1 != writer.next_page as usize {
            return Err(Error::corrupted(format!(
                "{} pages are used and {} free, of {}",
                pages,
                free.len(),
                writer.next_page - 1
            )));
        }
        Ok(StoreReport {
            info: CheckpointInfo {
                lsn: self.applied(),
                meta: Vec::new(),
            },
            trees,
            pages,
        })
    }
}

/// Whether a tree has as many of something as were counted.
fn compare(what: &str, tree: TreeId, found: u64, counted: u64) -> Result<()> {
    match found == counted {
        true => Ok(()),
        false => Err(Error::corrupted(format!(
            "tree {tree} has {found} {what}, and {counted} were counted"
        ))),
    }
}

struct Walk<'a, 'v> {
    source: &'a Source<'a>,
    visit: &'a mut Visitor<'v>,
    seen: HashSet<PageId>,
    /// Whose trees these are as they are in memory, where versions may be shown to nobody.
    store: Option<&'a Store>,
    rows: u64,
    /// Whether rows are not shown: the tree was dropped.
    silent: bool,
}

impl<'a, 'v> Walk<'a, 'v> {
    fn new(source: &'a Source<'a>, visit: &'a mut Visitor<'v>) -> Walk<'a, 'v> {
        Walk {
            source,
            visit,
            seen: HashSet::default(),
            store: None,
            rows: 0,
            silent: false,
        }
    }

    /// How many pages and rows it has.
    fn tree(&mut self, tree: TreeId, root: PageId) -> Result<(u64, u64)> {
        let before = self.seen.len();
        self.rows = 0;
        self.page(tree, root, None, &[], None)?;
        Ok(((self.seen.len() - before) as u64, self.rows))
    }

    fn load(&mut self, tree: TreeId, id: PageId) -> Result<Page> {
        if !self.seen.insert(id) {
            return Err(Error::corrupted(format!("page {} is used twice", id.0)));
        }
        let page = (self.source)(id)?;
        if page.tree() != tree {
            return Err(Error::corrupted(format!(
                "page {} of tree {} is in tree {tree}",
                id.0,
                page.tree()
            )));
        }
        Ok(page)
    }

    fn page(
        &mut self,
        tree: TreeId,
        id: PageId,
        level: Option<u8>,
        low: &[u8],
        high: Option<&[u8]>,
    ) -> Result<()> {
        let page = self.load(tree, id)?;
        let wrong = |what: String| Error::corrupted(format!("page {}: {what}", id.0));
        if level.is_some_and(|level| level != page.level()) {
            return Err(wrong(format!("level {} under {level:?}", page.level())));
        }
        if !page.is_leaf() && !page.is_kind(PageKind::Inner) {
            return Err(wrong("is no page of a tree".to_owned()));
        }
        let mut last: Option<&[u8]> = None;
        for slot in 0..page.count() {
            let key = page.key(slot);
            let ordered = last.is_none_or(|last| last < key);
            if !ordered || key < low || high.is_some_and(|high| key >= high) {
                return Err(wrong(format!("key {slot} is out of order")));
            }
            last = Some(key);
        }
        if page.is_leaf() {
            return self.leaf(tree, &page);
        }
        for index in 0..=page.count() {
            let low = match index {
                0 => low.to_vec(),
                _ => page.key(index - 1).to_vec(),
            };
            let high: Option<Key> = match index {
                _ if index == page.count() => high.map(<[u8]>::to_vec),
                _ => Some(page.key(index).to_vec()),
            };
            let below = Some(page.level() - 1);
            self.page(tree, page.child(index), below, &low, high.as_deref())?;
        }
        Ok(())
    }

    fn leaf(&mut self, tree: TreeId, page: &Page) -> Result<()> {
        for slot in 0..page.count() {
            let cell = page.leaf_cell(slot);
            if cell.lsn > page.lsn() {
                return Err(Error::corrupted(format!(
                    "page {} has LSN {}, one of its rows {}",
                    page.id(),
                    page.lsn(),
                    cell.lsn
                )));
            }
            let void = self.store.filter(|store| store.bulks.is_void(cell.lsn));
            if let Some(store) = void {
                if let Value::Overflow { first, len } = cell.value {
                    self.chain(tree, first, len)?;
                }
                if let Some(row) = store.read_shown(page, slot)? {
                    self.show(tree, cell.key, &row)?;
                    self.rows += 1;
                }
                continue;
            }
            match cell.value {
                Value::Tombstone => continue,
                Value::Inline(row) => self.show(tree, cell.key, row)?,
                Value::Overflow { first, len } => {
                    let row = self.chain(tree, first, len)?;
                    self.show(tree, cell.key, &row)?;
                }
            }
            self.rows += 1;
        }
        Ok(())
    }

    fn show(&mut self, tree: TreeId, key: &[u8], row: &[u8]) -> Result<()> {
        if self.silent {
            return Ok(());
        }
        (self.visit)(tree, key, row)
    }

    /// What is left of trees that are gone.
    fn doomed(&mut self, doomed: &[(TreeId, PageId)]) -> Result<()> {
        self.silent = true;
        for (tree, page) in doomed {
            self.tree(*tree, *page)?;
        }
        Ok(())
    }

    fn chain(&mut self, tree: TreeId, first: PageId, len: u32) -> Result<Vec<u8>> {
        let mut row = Vec::with_capacity(len as usize);
        for id in overflow_pages(first, len) {
            let page = self.load(tree, id)?;
            if !page.is_kind(PageKind::Overflow) || row.len() % PAGE_CONTENT != 0 {
                return Err(Error::corrupted(format!(
                    "page {} is no part of a row",
                    id.0
                )));
            }
            row.extend_from_slice(page.content());
        }
        if row.len() != len as usize {
            return Err(Error::corrupted(format!(
                "a row has {} bytes and should have {len}",
                row.len()
            )));
        }
        Ok(row)
    }
}
