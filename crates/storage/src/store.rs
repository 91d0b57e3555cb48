//! All trees of one group: what they share, and opening them.
//!
//! ```
//! # use std::sync::{Arc, Weak};
//! # use base::{env::Env, GroupId, Lsn, Result, TreeId};
//! # use storage::{Change, Owner, Room, Store, StoreOptions};
//! # async fn example(env: Arc<dyn Env>) -> Result<()> {
//! let owner = Owner { cluster: 7, group: GroupId(1) };
//! let room = Room::of(64 << 20);
//! let store = Store::open(env, "g1", StoreOptions { owner, room }).await?;
//! let tree = TreeId(20_000);
//! store.create_tree(Lsn(1), tree)?;
//! store.apply(Lsn(1), &[Change { tree, key: b"k", row: Some(b"old") }])?;
//! store.apply(Lsn(2), &[Change { tree, key: b"k", row: Some(b"new") }])?;
//! let mut row = Vec::new();
//! assert!(store.get(tree, b"k", Lsn(1), &mut row)?.exists);
//! assert_eq!(row, b"old");
//! store.take_back(Lsn(1))?; // another leader's log has no entry 2
//! store.release(Lsn(1), usize::MAX)?; // no snapshot below 1 is left
//! store.start_checkpoint(b"whatever the caller needs at its next start".to_vec())?;
//! store.write_checkpoint(25).await?;
//! store.publish_checkpoint().await?; // once LSN 1 is committed
//! # Ok(()) }
//! ```
//!
//! | in | what |
//! |---|---|
//! | [`crate::tree`] | reads |
//! | [`crate::apply`], [`crate::split`] | the one writer |
//! | [`crate::checkpoint`] | writing the state at one LSN while both go on |
//! | [`crate::cache`], [`crate::pager`] | pages in memory, and what comes and leaves |
//! | [`crate::file`] | the file: superblocks, root record, page map |

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use base::env::Env;
use base::hash::{HashMap, HashSet};
use base::sync::{Mutex, RwLock};
use base::{Lsn, Result, TreeId, TxnId};

use crate::apply::Way;
use crate::bulk::{Bulks, Notes};
use crate::checkpoint::Checkpoint;
use crate::file::Published;
use crate::page::PageId;
use crate::pager::{CacheStats, Pager};
use crate::pages::FreePages;
use crate::room::Sharer;
use crate::scratch::Scratch;
use crate::size::Size;
use crate::tree::Tree;
use crate::undo::history::History;
use crate::undo::{UndoId, UndoStats, UndoStore};
use crate::{CheckpointInfo, Owner, Room};

/// How a store is kept.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Whose store it is.
    pub owner: Owner,
    /// For pages and old versions of rows in memory; these take an eighth of it at most, and the
    /// rest of them goes to a spill file.
    pub room: Arc<Room>,
}

/// One change of one row, at the LSN of the record it came with.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// The tree.
    pub tree: TreeId,
    /// The key.
    pub key: &'a [u8],
    /// The whole new row, or `None` to delete one that is there.
    pub row: Option<&'a [u8]>,
}

/// What a point read found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// Whether there is a row.
    pub exists: bool,
    /// The LSN of the version that was found, a tombstone's included; zero when there is none.
    pub version: Lsn,
    /// What showing the result rests on: the version's LSN for a row, else the highest LSN that
    /// ever changed the leaf, bounded by the snapshot.
    pub owes: Lsn,
}

/// What a scan found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scanned {
    /// What is left of the range; none at its end.
    pub rest: Option<base::KeyRange>,
    /// For each leaf visited, the highest LSN that ever changed it, bounded by the snapshot; the
    /// highest of these.
    pub owes: Lsn,
}

/// What happened at an LSN, as far as it may have to be released or taken back.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// A row got a new version.
    Change {
        tree: TreeId,
        key: Box<[u8]>,
        /// The version before, where there is one.
        previous: UndoId,
        /// The new version is a tombstone.
        deleted: bool,
    },
    /// A tree was made.
    Created(TreeId),
    /// A tree was dropped.
    Dropped(TreeId),
    /// A chunk of a bulk transaction has changed rows, which are noted there.
    Chunk(TxnId),
    /// A bulk transaction was decided on.
    Decided(TxnId),
    /// A leaf had nothing but tombstones when it was written; it is empty since the restart.
    Vacant(TreeId, Box<[u8]>),
}

/// What only the writer uses. Its latch comes before those of pages.
#[derive(Debug)]
pub(crate) struct Writer {
    /// Events in the order in which they happened.
    pub(crate) history: History,
    /// Nothing at or below this is taken back.
    pub(crate) released: Lsn,
    /// Changes up to here leave no old versions ([`Store::settle`]).
    pub(crate) settled: Lsn,
    /// Pages changed since the last checkpoint began.
    pub(crate) dirty: HashSet<PageId>,
    /// Pages that the next checkpoint must not have: given back since the last one began and not
    /// made again, or part of a long row that is no longer the newest version.
    pub(crate) freed: HashSet<PageId>,
    /// Pages of trees that are gone, each the top of what is to be given back bit by bit.
    pub(crate) doomed: Vec<(TreeId, PageId)>,
    /// Page ids that are free now.
    pub(crate) free_pages: FreePages,
    /// No page has this id or a higher one.
    pub(crate) next_page: u32,
    /// Grows with each checkpoint begun.
    pub(crate) epoch: u64,
    /// How often the next release was put off, because a page was not in memory.
    pub(crate) releases_put_off: u32,
    /// Memory that is used again.
    pub(crate) way: Way,
    /// Where the chunk that is being applied notes what it changes.
    pub(crate) notes: Option<Notes>,
    /// Bulk transactions whose old versions are to be let go of.
    pub(crate) ripe: VecDeque<TxnId>,
}

impl Writer {
    /// Whether nobody needs what a change at `lsn` replaces. What a chunk of a large transaction
    /// replaces is needed until that is decided on.
    pub(crate) fn is_settled(&self, lsn: Lsn) -> bool {
        lsn <= self.settled && self.notes.is_none()
    }
}

/// All trees of one group; see the module's text.
pub struct Store {
    pub(crate) env: Arc<dyn Env>,
    pub(crate) dir: String,
    pub(crate) owner: Owner,
    pub(crate) pager: Arc<Pager>,
    pub(crate) trees: RwLock<HashMap<TreeId, Arc<Tree>>>,
    /// The highest LSN at which a tree was made or dropped.
    directory: AtomicU64,
    applied: AtomicU64,
    /// The LSN of the published checkpoint.
    pub(crate) published_lsn: AtomicU64,
    pub(crate) writer: Mutex<Writer>,
    pub(crate) bulks: Arc<Bulks>,
    /// The checkpoint that is being written. Its latch comes after those of pages.
    pub(crate) checkpoint: Mutex<Option<Checkpoint>>,
    pub(crate) published: Mutex<Published>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Store({} at {})", self.dir, self.applied())
    }
}

impl Store {
    /// Opens the store in `dir` as of its last published checkpoint; makes an empty one, at LSN 0,
    /// where there is none.
    ///
    /// # Errors
    /// XX001 when the file is damaged; 55000 when it is another's or of another version.
    pub async fn open(env: Arc<dyn Env>, dir: &str, options: StoreOptions) -> Result<Arc<Store>> {
        let owner = options.owner;
        let disk = env.disk();
        crate::file::prepare(&*disk, dir, owner).await?;
        let opened = crate::file::open(&*disk, dir, owner)?;
        opened
            .file
            .renew_superblock(&opened.published, owner)
            .await?;
        let record = opened.record;
        let lsn = opened.published.info.lsn;
        let free_pages = FreePages::of(opened.file.free_pages(record.next_page));
        let share = options.room.share();
        let bulks: Arc<Bulks> = Arc::default();
        let undo = UndoStore::new(
            env.clone(),
            Scratch::open(&disk, &format!("{dir}/undo.scratch"))?,
            bulks.clone(),
            options.room.clone(),
        );
        let history = History::new(undo.clone());
        let pager = Arc::new(Pager::new(env.clone(), opened.file, undo, share));
        let sharer: Weak<dyn Sharer> = Arc::downgrade(&(pager.clone() as Arc<dyn Sharer>));
        options.room.add(sharer);
        let store = Store {
            pager,
            trees: RwLock::default(),
            directory: AtomicU64::new(lsn.0),
            applied: AtomicU64::new(lsn.0),
            published_lsn: AtomicU64::new(lsn.0),
            writer: Mutex::new(Writer {
                history,
                released: lsn,
                settled: Lsn::ZERO,
                dirty: HashSet::default(),
                freed: HashSet::default(),
                doomed: record.doomed.clone(),
                free_pages,
                next_page: record.next_page,
                epoch: 1,
                releases_put_off: 0,
                way: Way::default(),
                notes: None,
                ripe: VecDeque::new(),
            }),
            checkpoint: Mutex::new(None),
            bulks,
            published: Mutex::new(opened.published),
            dir: dir.to_owned(),
            owner,
            env,
        };
        {
            let mut writer = store.writer.lock();
            for tree in &record.trees {
                let dropped = tree.dropped.then_some(lsn);
                if tree.dropped {
                    writer.history.push_back(lsn, Event::Dropped(tree.id));
                }
                let size = Size::of(tree.pages, tree.rows);
                let tree = Tree::new(tree.id, tree.root, tree.created, dropped).with_size(size);
                store.trees.write().insert(tree.id, Arc::new(tree));
            }
            for (tree, key) in record.vacant {
                let event = Event::Vacant(tree, key.into());
                writer.history.push_back(lsn, event);
            }
        }
        Ok(Arc::new(store))
    }

    /// The last published checkpoint.
    pub fn checkpoint(&self) -> CheckpointInfo {
        self.published.lock().info.clone()
    }

    /// The LSN of the last published checkpoint.
    pub fn checkpoint_lsn(&self) -> Lsn {
        Lsn(self.published_lsn.load(Ordering::Acquire))
    }

    /// The LSN up to which every change has been applied.
    pub fn applied(&self) -> Lsn {
        Lsn(self.applied.load(Ordering::Acquire))
    }

    /// Pages changed since the last checkpoint began.
    pub fn dirty_pages(&self) -> usize {
        self.writer.lock().dirty.len()
    }

    /// Changes that were neither released nor taken back.
    pub fn unreleased(&self) -> usize {
        self.writer.lock().history.len()
    }

    /// Versions that are not the newest of their row.
    pub fn old_versions(&self) -> usize {
        self.pager.undo.len()
    }

    /// How much the undo store holds.
    pub fn undo_stats(&self) -> UndoStats {
        self.pager.undo.stats()
    }

    /// Bytes of the store's file, and how many of them are free.
    pub fn file_space(&self) -> (u64, u64) {
        self.pager.file.space()
    }

    /// Tells which snapshots there are, in order: what lies between two of them need not be kept.
    /// None that is taken from now on is below `committed`, and nothing at or below that will be
    /// taken back.
    pub fn set_needed(&self, snapshots: impl Iterator<Item = Lsn>, committed: Lsn) {
        self.pager.undo.set_needed(snapshots, committed);
    }

    /// Whether there is a tree of that id, dropped or not.
    pub fn has_tree(&self, tree: TreeId) -> bool {
        self.trees.read().contains_key(&tree)
    }

    pub(crate) fn set_applied(&self, lsn: Lsn) {
        self.applied.store(lsn.0, Ordering::Release);
    }

    pub(crate) fn directory_lsn(&self) -> Lsn {
        Lsn(self.directory.load(Ordering::Acquire))
    }

    pub(crate) fn raise_directory(&self, lsn: Lsn) {
        self.directory.fetch_max(lsn.0, Ordering::AcqRel);
    }

    pub(crate) fn tree(&self, id: TreeId) -> Option<Arc<Tree>> {
        self.trees.read().get(&id).cloned()
    }

    /// What the page cache holds and has done.
    pub fn cache_stats(&self) -> CacheStats {
        self.pager.stats()
    }
}
