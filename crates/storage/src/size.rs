//! How large trees are: pages and rows, counted as they come and go.
//!
//! ```text
//!   begin_page +1 ─┐                              change, put  +1 row, or −1 for a tombstone
//!   forget, merge −1├─► Size of a tree ◄──────────undo         the reverse
//!   long row retired −n ┘        │
//!                                └─► TreeRecord of a checkpoint ─► Size after a restart
//! ```
//!
//! # Invariants
//! - Only who holds the writer's latch counts; others read at any time.
//! - Pages are those that a checkpoint of this moment would have of the tree, but for leaves that
//!   have nothing but tombstones: those of old versions of long rows do not count.
//! - Rows are the newest versions that are no tombstones, those of open transactions that came in
//!   chunks among them.
//! - What a checkpoint has written of it is compared with the pages by [`crate::check`].
//!
//! # What it leaves out
//! Old versions, which are in the undo store, and pages that are free, which no tree has.

use std::sync::atomic::{AtomicU64, Ordering};

use base::engine::{StorageStatus, TreeSize};
use base::TreeId;

use crate::page::PAGE_CONTENT;
use crate::store::Store;

/// The counters of one tree.
#[derive(Debug, Default)]
pub(crate) struct Size {
    pages: AtomicU64,
    rows: AtomicU64,
}

impl Size {
    pub(crate) fn of(pages: u64, rows: u64) -> Size {
        Size {
            pages: AtomicU64::new(pages),
            rows: AtomicU64::new(rows),
        }
    }

    pub(crate) fn pages(&self) -> u64 {
        self.pages.load(Ordering::Relaxed)
    }

    pub(crate) fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// So many pages more, or fewer.
    pub(crate) fn add_pages(&self, pages: i64) {
        add(&self.pages, pages);
    }

    /// A version was put in the place of another, each of which is a row or not.
    pub(crate) fn replaced(&self, was_row: bool, is_row: bool) {
        if was_row != is_row {
            add(&self.rows, i64::from(is_row) - i64::from(was_row));
        }
    }
}

/// There is one writer: what is read is still so when it is written.
fn add(counter: &AtomicU64, change: i64) {
    let before = counter.load(Ordering::Relaxed);
    let after = before.checked_add_signed(change);
    debug_assert!(after.is_some(), "{before} are counted, and {change} come");
    counter.store(after.unwrap_or(0), Ordering::Relaxed);
}

/// The pages of a long row.
pub(crate) fn long_pages(len: u32) -> i64 {
    (len as usize).div_ceil(PAGE_CONTENT) as i64
}

impl Store {
    /// How large a tree is now; none if there is none of that id.
    pub fn tree_size(&self, tree: TreeId) -> Option<TreeSize> {
        let tree = self.tree(tree)?;
        Some(TreeSize {
            bytes: tree.size.pages() * crate::page::PAGE_BYTES as u64,
            rows: tree.size.rows(),
        })
    }

    /// What is in memory and on disk, as far as the trees' store knows.
    pub fn storage_status(&self) -> StorageStatus {
        let cache = self.cache_stats();
        let undo = self.undo_stats();
        let bytes = |pages: usize| pages as u64 * crate::page::PAGE_BYTES as u64;
        let (file_bytes, free_bytes) = self.pager.file.space();
        StorageStatus {
            group: self.owner.group,
            cached_bytes: bytes(cache.resident),
            cache_bytes_max: bytes(cache.limit),
            dirty_bytes: bytes(self.dirty_pages()),
            away_bytes: bytes(cache.away),
            pages_read: cache.reads,
            pages_written: cache.writes,
            undo_versions: undo.versions as u64,
            undo_bytes: undo.memory as u64,
            undo_spilled_bytes: undo.spilled,
            checkpoint: self.checkpoint_lsn(),
            file_bytes,
            free_bytes,
            ..StorageStatus::default()
        }
    }

    /// A tree has so many pages more, or fewer. One that is gone, or not yet there, does not count.
    pub(crate) fn count_pages(&self, tree: TreeId, pages: i64) {
        if let Some(tree) = self.trees.read().get(&tree) {
            tree.size.add_pages(pages);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use base::{GroupId, Lsn};

    use super::*;
    use crate::testing::{block_on, TestEnv};
    use crate::{Change, Owner, StoreOptions};

    fn open(env: &Arc<TestEnv>) -> Arc<Store> {
        let owner = Owner {
            cluster: 7,
            group: GroupId(1),
        };
        let options = StoreOptions {
            owner,
            room: crate::Room::of(1 << 20),
        };
        block_on(Store::open(env.clone(), "g1", options)).unwrap()
    }

    const T: TreeId = TreeId(20_000);

    fn size(store: &Store) -> (u64, u64) {
        let size = store.tree_size(T).unwrap();
        assert_eq!(size.bytes % 8_192, 0);
        (size.bytes / 8_192, size.rows)
    }

    fn change(store: &Store, lsn: u64, keys: std::ops::Range<u32>, row: Option<&[u8]>) {
        let keys: Vec<_> = keys.map(u32::to_be_bytes).collect();
        let changes = keys.iter().map(|key| Change { tree: T, key, row });
        let changes: Vec<_> = changes.collect();
        store.apply(Lsn(lsn), &changes).unwrap();
    }

    #[test]
    fn sizes_follow_changes_and_outlive_a_restart() {
        let env = TestEnv::new();
        let store = open(&env);
        assert_eq!(store.tree_size(T), None);
        store.create_tree(Lsn(1), T).unwrap();
        change(&store, 1, 0..0, None);
        assert_eq!(size(&store), (1, 0));
        change(&store, 2, 0..100, Some(&[7; 1_000]));
        let (pages, rows) = size(&store);
        assert!((15..=30).contains(&pages) && rows == 100, "{pages} {rows}");
        // A long row has pages of its own, which are not the tree's any more once it is an old one.
        change(&store, 3, 200..201, Some(&[7; 30_000]));
        assert_eq!(size(&store), (pages + 4, 101));
        change(&store, 4, 200..201, Some(b"short"));
        assert_eq!(size(&store), (pages, 101));
        store.take_back(Lsn(3)).unwrap();
        assert_eq!(size(&store), (pages + 4, 101));
        change(&store, 4, 0..50, None);
        assert_eq!(size(&store).1, 51);
        store.release(Lsn(4), usize::MAX).unwrap();
        let after = size(&store);
        assert!(after.0 < pages + 4, "{after:?} of {pages} and 4");
        store.check_trees(&mut |_, _, _| Ok(())).unwrap();
        store.start_checkpoint(Vec::new()).unwrap();
        assert!(block_on(store.write_checkpoint(25)).unwrap());
        assert!(block_on(store.publish_checkpoint()).unwrap());
        drop(store);
        let store = open(&env);
        assert_eq!(size(&store), after);
        change(&store, 5, 200..201, None);
        assert_eq!(size(&store).1, after.1 - 1);
    }
}
