//! Having pages in memory before they are needed: for whoever must not wait when he needs them.
//!
//! A record is applied under latches, where nobody waits for a disk. So the leaves that it changes
//! are brought into memory before, and kept there by a visit:
//!
//! ```
//! # use base::{Lsn, Result, TreeId};
//! # use storage::{Change, Store};
//! # async fn example(store: &Store, tree: TreeId) -> Result<()> {
//! let visit = store.visit();
//! let keys = || [(tree, &b"k"[..])].into_iter();
//! while let Some(missing) = store.find_missing(keys())? {
//!     store.fetched(missing).await?;
//! }
//! // Under latches, and without a miss:
//! store.apply(Lsn(7), &[Change { tree, key: b"k", row: Some(b"new") }])?;
//! drop(visit);
//! # Ok(()) }
//! ```
//!
//! A visit is short: while it lasts, nothing leaves memory that anybody touches.

use base::{Lsn, Result, TreeId};

use crate::cache::Visit;
use crate::pager::{Miss, Stop};
use crate::store::{Read, Store};

/// Pages that must come into memory.
#[derive(Debug)]
pub struct Missing(Miss);

/// While it lives, pages that were touched since it began stay in memory.
#[derive(Debug)]
pub struct Visiting<'a> {
    _visit: Visit<'a>,
}

impl Store {
    /// Begins a visit.
    pub fn visit(&self) -> Visiting<'_> {
        Visiting {
            _visit: self.pager.visit(),
        }
    }

    /// Whether there is no page that is not in memory now.
    pub fn is_all_in_memory(&self) -> bool {
        self.pager.is_all_in_memory()
    }

    /// Touches the leaves of keys; what of them is not in memory. Never waits.
    ///
    /// # Errors
    /// XX001, fatal for the node.
    pub fn find_missing<'a>(
        &self,
        keys: impl Iterator<Item = (TreeId, &'a [u8])>,
    ) -> Result<Option<Missing>> {
        let mut missing: Option<Miss> = None;
        let mut last = None;
        for (id, key) in keys {
            let tree = match last.take() {
                Some((known, tree)) if known == id => tree,
                _ => self.tree(id),
            };
            if let Some(tree) = &tree {
                match self.find_leaf(tree, key) {
                    Ok(_) | Err(Stop::Gone) => {}
                    Err(Stop::Error(error)) => return Err(error),
                    Err(Stop::Miss(miss)) => match &mut missing {
                        None => missing = Some(miss),
                        Some(all) if miss.needed.iter().all(|n| all.needed.contains(n)) => {}
                        Some(all) => all.needed.extend(miss.needed),
                    },
                }
            }
            last = Some((id, tree));
        }
        Ok(missing.map(Missing))
    }

    /// As [`Store::get`], but where that would wait, tells for what. Never waits.
    ///
    /// # Errors
    /// XX001, fatal for the node.
    pub fn get_in_memory(
        &self,
        tree: TreeId,
        key: &[u8],
        at: Lsn,
        row: &mut Vec<u8>,
    ) -> Result<std::result::Result<Read, Missing>> {
        loop {
            row.clear();
            match self.try_get(tree, key, at.into(), row) {
                Ok(read) => return Ok(Ok(read)),
                Err(Stop::Miss(miss)) => return Ok(Err(Missing(miss))),
                Err(Stop::Gone) => {}
                Err(Stop::Error(error)) => return Err(error),
            }
        }
    }

    /// Gets pages into memory: waits inside a coroutine that holds no latch, blocks elsewhere.
    ///
    /// # Errors
    /// As [`Store::get`].
    pub fn fetch(&self, missing: Missing) -> Result<()> {
        self.pager.fetch(missing.0)
    }

    /// Gets pages into memory and blocks meanwhile, wherever it is called.
    ///
    /// # Errors
    /// XX001 or 58030, fatal for the node.
    pub fn fetch_here(&self, missing: Missing) -> Result<()> {
        self.pager.fetch_here(missing.0)
    }

    /// As [`Store::fetch`], for a task.
    ///
    /// # Errors
    /// XX001 or 58030, fatal for the node.
    pub async fn fetched(&self, missing: Missing) -> Result<()> {
        self.pager.fetched(missing.0).await
    }

    /// Has pages read, and waits for none of them.
    pub fn prefetch(&self, missing: Missing) {
        self.pager.prefetch(&missing.0.needed, missing.0.touch);
    }
}
