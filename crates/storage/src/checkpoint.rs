//! Checkpoints: the state at exactly one LSN, written while reads and writes go on.
//!
//! 1. `start_checkpoint`, between two records: the set of changed pages is put aside, and a new
//!    epoch begins. An instant.
//! 2. `write_checkpoint` takes page after page out of that set and writes it to a free block.
//!    Whoever changes a page that is still in the set first leaves a copy of it; copies are written
//!    before other pages. Then come the changed pieces of the page map and the root record, and a
//!    sync.
//! 3. `publish_checkpoint`, once the LSN is committed: the superblock.
//!
//! ```text
//!   epoch      1            │ 2
//!   changed    a  b  c      │ b' ── the copy of b is taken here
//!   written                 │    a   b (copy)   c │ map, root record │ superblock
//!                 start at C┘                                    publish, C committed
//! ```
//!
//! # Invariants
//! - A page is in the set, or copied, or written, and its content in all three is that at C.
//! - A page in the set that is not in memory is as it was when it left; the checkpoint takes over
//!   its block ([`crate::pager`]).
//! - Blocks that the published superblock leads to are not written.
//! - A discarded checkpoint leaves its pages among those that the next one writes.
//!
//! What goes to disk has no tombstones and no links to the undo store: C is committed when the
//! superblock names it, and no snapshot outlives the process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

use base::env;
use base::hash::HashSet;
use base::turns::give_way;
use base::{Error, Key, Lsn, Result, SqlState, TreeId};

use crate::cache::Touch;
use crate::file::MAP_ENTRIES;
use crate::page::{Page, PageId, PAGE_BYTES};
use crate::pager::Adoption;
use crate::store::{Store, Writer};
use crate::superblock::{BlockRef, RootRecord, Superblock, TreeRecord};
use crate::CheckpointInfo;

/// Pages that are written between two pauses.
const BATCH_PAGES: usize = 32;

/// Batches between two syncs: a checkpoint that leaves everything to one sync at its end would hold
/// up those of the log meanwhile. For the same reason each batch begins to go to the disk at once.
const SYNC_BATCHES: usize = 8;

/// Pages that one checkpoint moves to the front of the file.
const MOVED_PAGES_MAX: usize = 4_096;

/// A store of fewer pages may have as many old blocks as one of so many.
const PAGES_MIN: usize = if cfg!(test) { 64 } else { 96 << 10 };

/// How long a checkpoint pauses between batches, so that it delays nobody's fsync for long.
const BATCH_PAUSE: Duration = Duration::from_micros(500);

/// How long it pauses at most.
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// A page's content at the checkpoint's LSN.
type Copied = (PageId, Page);

/// A checkpoint that is being written.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    /// Tells it from one that was discarded.
    epoch: u64,
    lsn: Lsn,
    /// Pages to write that have not changed since.
    remaining: HashSet<PageId>,
    /// The order in which they are written, last one first, once that has begun.
    order: Option<Vec<PageId>>,
    /// Pages to write that have changed since.
    copied: Vec<Copied>,
    /// Pages that are being written now.
    in_flight: Vec<PageId>,
    /// Pages that it must not have.
    freed: Arc<HashSet<PageId>>,
    /// Where pages were written.
    moved: Arc<BTreeMap<PageId, BlockRef>>,
    record: RootRecord,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Pages,
    /// All is durable but the superblock.
    Written(Written),
    /// The superblock is being written: too late to discard.
    Publishing,
}

#[derive(Debug)]
struct Written {
    root: BlockRef,
    root_blocks: Vec<u32>,
    map_blocks: Vec<u32>,
}

impl Store {
    /// Begins a checkpoint of the state at [`Store::applied`], in an instant; returns its LSN.
    /// `meta` is kept with it.
    ///
    /// # Errors
    /// XX000 when one is being written already, in the middle of a record, or while a bulk
    /// transaction [is undecided](Store::has_undecided).
    pub fn start_checkpoint(&self, meta: Vec<u8>) -> Result<Lsn> {
        let mut writer = self.writer.lock();
        let lsn = self.applied();
        if writer
            .history
            .back()
            .is_some_and(|(newest, _)| *newest > lsn)
        {
            return Err(Error::internal(format!(
                "a checkpoint is begun while the record after {lsn} is half applied"
            )));
        }
        if self.has_undecided() {
            return Err(Error::internal(format!(
                "a checkpoint at {lsn} is begun in the middle of a transaction"
            )));
        }
        let mut trees: Vec<TreeRecord> = self
            .trees
            .read()
            .values()
            .filter(|tree| !tree.is_building())
            .map(|tree| TreeRecord {
                id: tree.id,
                root: tree.root,
                created: tree.created(),
                dropped: tree.dropped().is_some(),
                pages: tree.size.pages(),
                rows: tree.size.rows(),
            })
            .collect();
        trees.sort_unstable_by_key(|tree| tree.id);
        // Whoever opens the store at this checkpoint builds anew.
        let mut doomed = writer.doomed.clone();
        let building = self.trees.read();
        let building = building.values().filter(|tree| tree.is_building());
        doomed.extend(building.map(|tree| (tree.id, tree.root)));
        doomed[writer.doomed.len()..].sort_unstable();
        let mut checkpoint = self.checkpoint.lock();
        if let Some(other) = &*checkpoint {
            return Err(Error::internal(format!(
                "a checkpoint at {} is being written",
                other.lsn
            )));
        }
        *checkpoint = Some(Checkpoint {
            epoch: writer.epoch,
            lsn,
            remaining: std::mem::take(&mut writer.dirty),
            order: None,
            copied: Vec::new(),
            in_flight: Vec::new(),
            freed: Arc::new(std::mem::take(&mut writer.freed)),
            moved: Arc::default(),
            record: RootRecord {
                meta,
                next_page: writer.next_page,
                map: Vec::new(),
                trees,
                doomed,
                vacant: Vec::new(),
            },
            stage: Stage::Pages,
        });
        writer.epoch += 1;
        Ok(lsn)
    }

    /// Whether a checkpoint should begin lest the file grow: this share of the pages, in percent,
    /// has changed since the last one began and has other blocks there.
    pub fn outgrows(&self, percent: u32) -> bool {
        self.rewritten_pages() > self.share(percent)
    }

    /// So many pages are this share, in percent.
    fn share(&self, percent: u32) -> usize {
        self.pager.pages().max(PAGES_MIN) * percent as usize / 100
    }

    /// Pages that have a block in the last checkpoint and will have another in the next, or none.
    fn rewritten_pages(&self) -> usize {
        let changed = {
            let writer = self.writer.lock();
            writer.dirty.len() + writer.freed.len()
        };
        let new = self.pager.pages().saturating_sub(self.pager.file.mapped());
        changed.saturating_sub(new)
    }

    /// Writes the checkpoint's pages and syncs them: slowly, for the sake of others, but so fast
    /// that no more pages change meanwhile than half as many again as the share, in percent, at
    /// which [it should begin](Store::outgrows). So the next one is no larger than that, and with it
    /// the room for pages that lie twice in the file. False when it was discarded meanwhile, or none
    /// was begun.
    ///
    /// # Errors
    /// 53100 when there is no space: the checkpoint is discarded and can be tried again later. Any
    /// other is fatal for the node.
    pub async fn write_checkpoint(&self, percent: u32) -> Result<bool> {
        self.write_checkpoint_before(percent, &|| 0).await
    }

    /// As [`Store::write_checkpoint`], and so fast that it is done before `spent` has risen to
    /// [`SPENT_ALL`], as far as the disk can.
    ///
    /// # Errors
    /// As [`Store::write_checkpoint`].
    pub async fn write_checkpoint_before(
        &self,
        percent: u32,
        spent: &dyn Fn() -> u64,
    ) -> Result<bool> {
        let Some((epoch, pages)) = self.writing() else {
            return Ok(false);
        };
        let share = self.share(percent);
        let pace = Pace {
            pages,
            most: share + share / 2,
            spent,
        };
        let result = self.write_pages(epoch, pace).await;
        let still_there = self.writing().is_some_and(|(writing, _)| writing == epoch);
        if result.is_err() && still_there {
            self.discard_checkpoint();
        }
        result
    }

    /// Makes the written checkpoint the one that the store is opened at; to be called once its LSN
    /// is committed. False when it was discarded meanwhile, or is not written.
    ///
    /// # Errors
    /// Any is fatal for the node.
    pub async fn publish_checkpoint(&self) -> Result<bool> {
        let (written, superblock) = {
            let mut checkpoint = self.checkpoint.lock();
            let Some(checkpoint) = &mut *checkpoint else {
                return Ok(false);
            };
            match std::mem::replace(&mut checkpoint.stage, Stage::Publishing) {
                Stage::Written(written) => {
                    let superblock = Superblock {
                        sequence: self.published.lock().superblock.sequence + 1,
                        lsn: checkpoint.lsn,
                        root: written.root,
                    };
                    (written, superblock)
                }
                other => {
                    checkpoint.stage = other;
                    return Ok(false);
                }
            }
        };
        self.pager
            .file
            .write_superblock(&superblock, self.owner)
            .await?;
        let released = self.released();
        let checkpoint = self.checkpoint.lock().take();
        let checkpoint = checkpoint.expect("nobody discards what is being published");
        let mut published = self.published.lock();
        let next_page = checkpoint.record.next_page;
        let as_of = (checkpoint.epoch, released);
        let changes = changes(&checkpoint.moved, &checkpoint.freed);
        let mut free = self.pager.publish(&changes, next_page, as_of);
        free.append(&mut published.root_blocks);
        let kept = &checkpoint.record.map;
        let replaced = published.record.map.iter().enumerate();
        free.extend(
            replaced
                .filter(|(index, block)| kept.get(*index) != Some(block))
                .map(|(_, block)| block.location),
        );
        published.info = CheckpointInfo {
            lsn: checkpoint.lsn,
            meta: checkpoint.record.meta.clone(),
        };
        published.superblock = superblock;
        published.root_blocks = written.root_blocks;
        published.record = checkpoint.record;
        self.published_lsn
            .store(superblock.lsn.0, Ordering::Release);
        drop(published);
        self.pager.file.free_published(&free);
        self.pager.file.trim()?;
        Ok(true)
    }

    /// Gives up the checkpoint that is being written, if there is one and its superblock is not
    /// being written.
    pub fn discard_checkpoint(&self) {
        let mut writer = self.writer.lock();
        let _ = self.discard(&mut writer, |_| true);
    }

    /// The LSN of the checkpoint that is being written, and whether it only waits to be published.
    pub fn pending_checkpoint(&self) -> Option<(Lsn, bool)> {
        let checkpoint = self.checkpoint.lock();
        let checkpoint = checkpoint.as_ref()?;
        let written = !matches!(checkpoint.stage, Stage::Pages);
        Some((checkpoint.lsn, written))
    }

    /// Gives up a checkpoint of what is taken back.
    pub(crate) fn discard_above(&self, writer: &mut Writer, to: Lsn) -> Result<()> {
        self.discard(writer, |lsn| lsn > to)
    }

    fn discard(&self, writer: &mut Writer, wanted: impl Fn(Lsn) -> bool) -> Result<()> {
        let mut slot = self.checkpoint.lock();
        let Some(checkpoint) = slot.take() else {
            return Ok(());
        };
        if !wanted(checkpoint.lsn) {
            *slot = Some(checkpoint);
            return Ok(());
        }
        if matches!(checkpoint.stage, Stage::Publishing) {
            let lsn = checkpoint.lsn;
            *slot = Some(checkpoint);
            return Err(Error::internal(format!(
                "checkpoint {lsn} is being published and cannot be taken back"
            )));
        }
        drop(slot);
        // What it would have written or freed is for the next one to write or free.
        for id in checkpoint.pages() {
            if !writer.freed.contains(&id) {
                writer.dirty.insert(id);
            }
        }
        for id in &*checkpoint.freed {
            if !writer.dirty.contains(id) {
                writer.freed.insert(*id);
            }
        }
        let mut blocks = self.pager.give_up(checkpoint.moved.iter());
        if let Stage::Written(written) = checkpoint.stage {
            blocks.extend(written.root_blocks);
            blocks.extend(written.map_blocks);
        }
        self.pager.file.free_unpublished(blocks);
        Ok(())
    }

    /// Leaves a copy of a page that is about to change with the checkpoint that has yet to write
    /// it. When there are many copies already, the page is written at once.
    pub(crate) fn copy_for_checkpoint(&self, id: PageId, page: &Page) {
        let mut slot = self.checkpoint.lock();
        let Some(checkpoint) = &mut *slot else {
            return;
        };
        if !checkpoint.remaining.remove(&id) {
            return;
        }
        let mut page = page.clone();
        if checkpoint.copied.len() >= self.pager.copies_max() {
            match self.write_copy(checkpoint, id, &mut page) {
                Ok(()) => return,
                Err(error) if error.state() == SqlState::DISK_FULL => {}
                Err(error) => self.env.stop_node(&error.to_string()),
            }
        }
        checkpoint.copied.push((id, page));
    }

    fn write_copy(&self, checkpoint: &mut Checkpoint, id: PageId, page: &mut Page) -> Result<()> {
        let locations = self.pager.file.allocate_for([id].into_iter())?;
        let (crc, key) = page.seal();
        for location in locations {
            self.pager.file.write(&[(location, page.bytes())])?;
            checkpoint.note_moved([(id, BlockRef { location, crc })]);
        }
        let vacant = key.map(|key| (page.tree(), key));
        checkpoint.record.vacant.extend(vacant);
        Ok(())
    }

    /// Leaves a page that ceases to exist with the checkpoint that has yet to write it, wherever
    /// the page is. Only pages without versions in flight may cease so.
    pub(crate) fn leave_to_checkpoint(&self, id: PageId) {
        let page = self.pager.cache.read(id, Touch::Scan);
        let mut checkpoint = self.checkpoint.lock();
        let Some(checkpoint) = &mut *checkpoint else {
            return;
        };
        if !checkpoint.remaining.remove(&id) {
            return;
        }
        match page {
            Some(page) => checkpoint.copied.push((id, page.clone())),
            None => match self.pager.adopt(id) {
                Adoption::Taken(block) => checkpoint.note_moved([(id, block)]),
                Adoption::Published => {}
                Adoption::Raw => panic!("page {} of a long row has versions", id.0),
            },
        }
    }

    /// Nothing in flight is left of any version up to here.
    fn released(&self) -> Lsn {
        let released = self.writer.lock().released;
        released.min(self.bulks.floor().prev())
    }

    /// The epoch of the checkpoint that is being written, and how many pages are left of it.
    fn writing(&self) -> Option<(u64, usize)> {
        let checkpoint = self.checkpoint.lock();
        checkpoint
            .as_ref()
            .filter(|checkpoint| matches!(checkpoint.stage, Stage::Pages))
            .map(|checkpoint| (checkpoint.epoch, checkpoint.left()))
    }

    /// Runs `f` on the checkpoint, unless it was discarded.
    fn with_checkpoint<R>(&self, epoch: u64, f: impl FnOnce(&mut Checkpoint) -> R) -> Option<R> {
        let mut checkpoint = self.checkpoint.lock();
        let checkpoint = checkpoint.as_mut()?;
        (checkpoint.epoch == epoch).then(|| f(checkpoint))
    }

    async fn write_pages(&self, epoch: u64, pace: Pace<'_>) -> Result<bool> {
        for batches in 1.. {
            let Some(batch) = self.collect(epoch)? else {
                return Ok(false);
            };
            if batch.is_empty() {
                break;
            }
            if !self.write_batch(epoch, batch)? {
                return Ok(false);
            }
            let mut pause = BATCH_PAUSE;
            if batches % SYNC_BATCHES == 0 {
                let begun = self.env.now();
                self.pager.file.sync().await?;
                // A disk that is slow is left to others for as long as this took.
                let took = self.env.now().since(begun).min(PAUSE_MAX);
                pause = pause.max(took);
            }
            let left = self.writing().map_or(0, |(_, left)| left);
            match pace.is_late(left, self.rewritten_pages()) {
                true => give_way().await,
                false => env::sleep(&*self.env, pause).await,
            }
        }
        if !self.move_far_pages(epoch).await? {
            return Ok(false);
        }
        let Some(written) = self.write_record(epoch)? else {
            return Ok(false);
        };
        self.pager.file.sync().await?;
        let blocks: Vec<u32> = written
            .root_blocks
            .iter()
            .chain(&written.map_blocks)
            .copied()
            .collect();
        let done = self.with_checkpoint(epoch, |c| c.stage = Stage::Written(written));
        if done.is_none() {
            self.pager.file.free_unpublished(blocks);
        }
        Ok(done.is_some())
    }

    /// Has some pages that have not changed moved from the end of the file to its front, if much of
    /// it is free, so that its end can be given back.
    async fn move_far_pages(&self, epoch: u64) -> Result<bool> {
        let far = self.pager.file.far_pages(MOVED_PAGES_MAX);
        for batch in far.chunks(BATCH_PAGES) {
            let wanted = self.with_checkpoint(epoch, |checkpoint| {
                let mut batch = batch.to_vec();
                batch.retain(|(id, _)| !checkpoint.has(*id));
                batch
            });
            let Some(wanted) = wanted else {
                return Ok(false);
            };
            let locations = self.pager.file.allocate(wanted.len())?;
            let mut moved = Vec::with_capacity(wanted.len());
            for ((id, block), location) in wanted.iter().zip(&locations) {
                let page = self.pager.file.read_block(*block, u64::from(id.0))?;
                self.pager.file.write(&[(*location, page.bytes())])?;
                let (location, crc) = (*location, block.crc);
                moved.push((*id, BlockRef { location, crc }));
            }
            let noted = self.with_checkpoint(epoch, |checkpoint| checkpoint.note_moved(moved));
            if noted.is_none() {
                self.pager.file.free_unpublished(locations);
                return Ok(false);
            }
            env::sleep(&*self.env, BATCH_PAUSE).await;
        }
        Ok(true)
    }

    /// The next pages to write, as of the checkpoint's LSN.
    fn collect(&self, epoch: u64) -> Result<Option<Vec<Copied>>> {
        let mut batch = Vec::with_capacity(BATCH_PAGES);
        while batch.len() < BATCH_PAGES {
            let next = self.with_checkpoint(epoch, |checkpoint| {
                let next = checkpoint.next();
                if let Next::Copied((id, _)) = &next {
                    checkpoint.in_flight.push(*id);
                }
                next
            });
            let id = match next {
                None => return Ok(None),
                Some(Next::Nothing) => break,
                Some(Next::Copied(copied)) => {
                    batch.push(copied);
                    continue;
                }
                Some(Next::Page(id)) => id,
            };
            batch.extend(self.take_page(epoch, id)?);
        }
        batch.sort_unstable_by_key(|(id, _)| *id);
        Ok(Some(batch))
    }

    /// Takes the content of a page that has not changed since; none if it has, or if the checkpoint
    /// has it already.
    fn take_page(&self, epoch: u64, id: PageId) -> Result<Option<Copied>> {
        loop {
            // The page's latch comes first. If it changed meanwhile, its copy is there.
            if let Some(page) = self.pager.cache.read(id, Touch::Scan) {
                let taken = self.with_checkpoint(epoch, |checkpoint| checkpoint.take(id));
                return Ok((taken == Some(true)).then(|| (id, page.clone())));
            }
            let adopted = self.with_checkpoint(epoch, |checkpoint| {
                if !checkpoint.remaining.contains(&id) {
                    return true;
                }
                match self.pager.adopt(id) {
                    Adoption::Raw => return false,
                    Adoption::Taken(block) => checkpoint.note_moved([(id, block)]),
                    Adoption::Published => {}
                }
                checkpoint.remaining.remove(&id)
            });
            if adopted.unwrap_or(true) {
                return Ok(None);
            }
            let _visit = self.pager.visit();
            drop(self.pager.read_here(id)?);
        }
    }

    fn write_batch(&self, epoch: u64, mut batch: Vec<Copied>) -> Result<bool> {
        let ids = batch.iter().map(|(id, _)| *id);
        let locations = self.pager.file.allocate_for(ids)?;
        let mut moved = Vec::with_capacity(batch.len());
        let mut vacant: Vec<(TreeId, Key)> = Vec::new();
        for ((id, page), location) in batch.iter_mut().zip(&locations) {
            let (crc, key) = page.seal();
            let location = *location;
            moved.push((*id, BlockRef { location, crc }));
            vacant.extend(key.map(|key| (page.tree(), key)));
        }
        let blocks: Vec<(u32, &[u8])> = batch
            .iter()
            .zip(&locations)
            .map(|((_, page), location)| (*location, &page.bytes()[..]))
            .collect();
        self.pager.file.write(&blocks)?;
        self.pager.file.will_sync(&locations);
        let released = self.released();
        let noted = self.with_checkpoint(epoch, |checkpoint| {
            let written = moved.iter().map(|(id, block)| (id, block));
            self.pager.share(written, (epoch, released));
            checkpoint.note_moved(moved);
            checkpoint.in_flight.clear();
            checkpoint.record.vacant.extend(vacant);
        });
        if noted.is_none() {
            self.pager.file.free_unpublished(locations);
        }
        Ok(noted.is_some())
    }

    /// Writes what leads to the pages.
    fn write_record(&self, epoch: u64) -> Result<Option<Written>> {
        let taken = self.with_checkpoint(epoch, |checkpoint| {
            checkpoint.record.vacant.sort_unstable();
            // What takes long is done without the latch, which whoever changes a page waits for.
            let (moved, freed) = (checkpoint.moved.clone(), checkpoint.freed.clone());
            (moved, freed, checkpoint.record.clone())
        });
        let Some((moved, freed, mut record)) = taken else {
            return Ok(None);
        };
        let changes = changes(&moved, &freed);
        record.map.clone_from(&self.published.lock().record.map);
        let pieces = (record.next_page as usize).div_ceil(MAP_ENTRIES);
        let known = record.map.len();
        record.map.resize(pieces.max(known), BlockRef::default());
        let mut changed: BTreeSet<usize> = (known..pieces).collect();
        changed.extend(changes.keys().map(|id| id.0 as usize / MAP_ENTRIES));
        let map_blocks = self.pager.file.allocate(changed.len())?;
        for (index, location) in changed.into_iter().zip(&map_blocks) {
            let mut page = self.pager.file.map_page(index, &changes);
            let (crc, _) = page.seal();
            let location = *location;
            self.pager.file.write(&[(location, page.bytes())])?;
            record.map[index] = BlockRef { location, crc };
        }
        let (root, root_blocks) = match self.pager.file.write_record(&record) {
            Ok(written) => written,
            Err(error) => {
                self.pager.file.free_unpublished(map_blocks);
                return Err(error);
            }
        };
        let noted = self.with_checkpoint(epoch, |checkpoint| checkpoint.record = record);
        if noted.is_none() {
            self.pager
                .file
                .free_unpublished(root_blocks.into_iter().chain(map_blocks));
            return Ok(None);
        }
        Ok(Some(Written {
            root,
            root_blocks,
            map_blocks,
        }))
    }
}

/// All of what may be spent until a checkpoint is written, of whatever it is.
pub const SPENT_ALL: u64 = 1_000;

/// How fast a checkpoint is written.
#[derive(Clone, Copy)]
struct Pace<'a> {
    /// Pages that it had to write when it began.
    pages: usize,
    /// Pages that may have changed when it ends.
    most: usize,
    /// How much is spent, of [`SPENT_ALL`].
    spent: &'a dyn Fn() -> u64,
}

impl Pace<'_> {
    /// Whether more has changed, of what may change, or is spent, of what may be, than is written,
    /// of what must be written.
    fn is_late(self, left: usize, changed: usize) -> bool {
        let written = self.pages.saturating_sub(left);
        changed * self.pages > written * self.most
            || (self.spent)() * self.pages as u64 > written as u64 * SPENT_ALL
    }
}

/// What is to be written next.
enum Next {
    Nothing,
    Copied(Copied),
    /// A page that has not changed since, or did just now and is copied.
    Page(PageId),
}

impl Checkpoint {
    fn next(&mut self) -> Next {
        if let Some(copied) = self.copied.pop() {
            return Next::Copied(copied);
        }
        let order = self.order.get_or_insert_with(|| {
            let mut order: Vec<PageId> = self.remaining.iter().copied().collect();
            order.sort_unstable_by(|a, b| b.cmp(a));
            order
        });
        while let Some(id) = order.pop() {
            if self.remaining.contains(&id) {
                return Next::Page(id);
            }
        }
        Next::Nothing
    }

    /// Takes a page that has not changed since; false if it has.
    fn take(&mut self, id: PageId) -> bool {
        let taken = self.remaining.remove(&id);
        if taken {
            self.in_flight.push(id);
        }
        taken
    }

    /// Pages that it has yet to write.
    fn left(&self) -> usize {
        self.remaining.len() + self.copied.len()
    }

    /// Whether it has written a page, or must not have it.
    fn has(&self, id: PageId) -> bool {
        self.moved.contains_key(&id) || self.freed.contains(&id)
    }

    /// All pages that it has written or would have.
    fn pages(&self) -> impl Iterator<Item = PageId> + '_ {
        let copied = self.copied.iter().map(|(id, _)| id);
        let waiting = self.remaining.iter().chain(copied);
        let begun = self.in_flight.iter().chain(self.moved.keys());
        waiting.chain(begun).copied()
    }

    fn note_moved(&mut self, moved: impl IntoIterator<Item = (PageId, BlockRef)>) {
        Arc::make_mut(&mut self.moved).extend(moved);
    }
}

/// What becomes of the page map.
fn changes(
    moved: &BTreeMap<PageId, BlockRef>,
    freed: &HashSet<PageId>,
) -> BTreeMap<PageId, BlockRef> {
    let mut changes = moved.clone();
    changes.extend(freed.iter().map(|id| (*id, BlockRef::default())));
    changes
}

const _: () = assert!(
    BATCH_PAGES * PAGE_BYTES <= 1 << 20,
    "a batch is one short write"
);

#[cfg(test)]
mod tests {
    use super::*;

    /// What is written keeps step with what changes, so that both end together.
    #[test]
    fn a_checkpoint_is_late_when_others_come_further_than_it() {
        let pace = Pace {
            pages: 100,
            most: 50,
            spent: &|| 0,
        };
        for (left, changed, late) in [
            (100, 0, false),
            (100, 1, true),
            (50, 25, false),
            (50, 26, true),
            (0, 50, false),
            (0, 51, true),
        ] {
            assert_eq!(pace.is_late(left, changed), late, "{left} {changed}");
        }
        let hurried = Pace {
            spent: &|| SPENT_ALL / 2,
            ..pace
        };
        assert!(hurried.is_late(51, 0) && !hurried.is_late(50, 0));
    }
}
