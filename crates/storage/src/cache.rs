//! The page cache: pages in memory, by id.
//!
//! Whoever needs a page asks for its [`Frame`] and takes the frame's latch; a page that is not in
//! memory is read first. Nothing but the holder of an `Arc` keeps a page in memory, as far as
//! callers can tell: they never assume that a page which they have seen is still there.
//!
//! # Latches
//! Readers go from parent to child and take the child's latch before they give up the parent's.
//! The only writer ([`crate::apply`]) latches top-down too. So nobody who holds a latch on a page
//! waits for one above it.
//!
//! # What it leaves out
//! Eviction. A clean page without history may go at any time: its content is where the page map
//! says. One with tombstones or links to the undo store is more than what is on disk, and the pages
//! of an old version's long row are not on disk at all: these must go to scratch space instead.

use std::sync::Arc;

use base::hash::HashMap;
use base::sync::RwLock;
use base::Result;

use crate::page::{Page, PageId};

const SHARDS: usize = 64;

/// A page in memory and its latch.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) id: PageId,
    pub(crate) latch: RwLock<Page>,
}

/// Pages in memory.
#[derive(Debug)]
pub(crate) struct PageCache {
    shards: Vec<RwLock<HashMap<PageId, Arc<Frame>>>>,
}

impl PageCache {
    pub(crate) fn new() -> PageCache {
        PageCache {
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
        }
    }

    fn shard(&self, id: PageId) -> &RwLock<HashMap<PageId, Arc<Frame>>> {
        &self.shards[id.0 as usize % SHARDS]
    }

    /// The page, read with `load` if it is not in memory.
    pub(crate) fn get(
        &self,
        id: PageId,
        load: impl FnOnce(PageId) -> Result<Page>,
    ) -> Result<Arc<Frame>> {
        if let Some(frame) = self.peek(id) {
            return Ok(frame);
        }
        let loaded = load(id);
        let mut shard = self.shard(id).write();
        // Another may have been faster, and the page may have been changed and moved since: then
        // what was read here means nothing, sound or not.
        if let Some(frame) = shard.get(&id) {
            return Ok(frame.clone());
        }
        let frame = Arc::new(Frame {
            id,
            latch: RwLock::new(loaded?),
        });
        shard.insert(id, frame.clone());
        Ok(frame)
    }

    /// The page if it is in memory.
    pub(crate) fn peek(&self, id: PageId) -> Option<Arc<Frame>> {
        self.shard(id).read().get(&id).cloned()
    }

    /// Adds a new page.
    pub(crate) fn insert(&self, id: PageId, page: Page) -> Arc<Frame> {
        let frame = Arc::new(Frame {
            id,
            latch: RwLock::new(page),
        });
        let old = self.shard(id).write().insert(id, frame.clone());
        assert!(old.is_none(), "page {} is new and was there", id.0);
        frame
    }

    /// Forgets a page that no longer exists.
    pub(crate) fn remove(&self, id: PageId) {
        self.shard(id).write().remove(&id);
    }
}
