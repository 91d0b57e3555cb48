//! A store's file: blocks of 8 KiB, found through the page map.
//!
//! Pages have ids that never change while they live; the *page map* says in which block each lies.
//! A checkpoint writes changed pages to free blocks, then the changed pieces of the map, then a
//! root record, and at last a superblock: until that is on disk, everything that the last
//! superblock leads to is as it was. Blocks that the new one no longer leads to are free then,
//! unless an exporter still reads them.
//!
//! The map is in memory, 8 bytes a page: a thousandth of the data.

use std::collections::BTreeSet;
use std::io::IoSliceMut;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use base::codec::checksum;
use base::env::{Disk, File, OpenMode};
use base::sync::{Mutex, RwLock};
use base::{Error, Lsn, Result, TreeId};

use crate::owner::{space_error, Owner};
use crate::page::{Page, PageBuffer, PageId, PageKind, PAGE_BYTES, PAGE_CONTENT, PAGE_HEADER};
use crate::superblock::{BlockRef, RootRecord, Superblock, SUPERBLOCKS};
use crate::CheckpointInfo;

/// Entries of the page map in one block.
pub(crate) const MAP_ENTRIES: usize = PAGE_CONTENT / 8;

/// The file grows by so many blocks at a time.
const GROW_BLOCKS: u32 = 128;

/// Pages whose places change, or blocks that are given back, under one latch, which whoever looks
/// for a page or a block waits for.
const CHANGES_PER_TURN: usize = 1_024;

/// The file keeps one block in so many more than the last cycles have needed.
const KEPT_SHARE: u32 = 32;

/// Pages move to the front when the file has one block in so many more than were needed.
const FAR_SHARE: u32 = 4;

/// Blocks that are given back to the file system at one time, so that it is not busy for long.
const TRIMMED_BLOCKS_MAX: u32 = 32_768;

/// Blocks that are read at one time.
pub(crate) const SPAN_BLOCKS_MAX: u32 = 16;

/// Buffers that are kept for pages to be read.
const BUFFERS_MAX: usize = 128;

/// Cycles between two superblocks by which is known how many blocks are needed.
const CYCLES: usize = 3;

/// The file's name in its directory.
pub(crate) fn name(dir: &str) -> String {
    format!("{dir}/store")
}

/// The name under which a file is made before it counts.
pub(crate) fn temporary_name(dir: &str) -> String {
    format!("{dir}/store.new")
}

/// Which blocks are free.
#[derive(Debug, Default)]
struct Blocks {
    free: BTreeSet<u32>,
    /// No block from here on was ever used.
    end: u32,
    /// Blocks that the file has space for.
    reserved: u32,
    /// Exporters that read.
    pins: usize,
    /// Blocks that are free once nobody reads.
    deferred: Vec<u32>,
    /// How many blocks were in use at one time, at most, in this cycle and those before it.
    peaks: [u32; CYCLES],
}

impl Blocks {
    fn note_used(&mut self) {
        let used = self.end - self.free.len() as u32;
        self.peaks[0] = self.peaks[0].max(used);
    }

    /// Takes the lowest free block, or the one behind all.
    fn take_lowest(&mut self) -> u32 {
        self.free.pop_first().unwrap_or_else(|| {
            self.end += 1;
            self.end - 1
        })
    }

    /// Takes the free block that is nearest to one, or the one behind all.
    fn take_near(&mut self, home: u32) -> u32 {
        let behind = self.free.range(home..).next().copied();
        let before = self.free.range(..home).next_back().copied();
        let nearest = match (before, behind) {
            (Some(before), Some(behind)) if home - before < behind - home => Some(before),
            (before, behind) => behind.or(before),
        };
        match nearest {
            Some(block) => {
                self.free.remove(&block);
                block
            }
            None => self.take_lowest(),
        }
    }

    /// How many blocks the last cycles have needed.
    fn needed(&self) -> u32 {
        self.peaks.iter().copied().max().unwrap_or_default()
    }
}

/// The checkpoint that the file is opened at.
#[derive(Clone, Debug)]
pub(crate) struct Published {
    pub(crate) info: CheckpointInfo,
    pub(crate) superblock: Superblock,
    /// The blocks of the root record.
    pub(crate) root_blocks: Vec<u32>,
    pub(crate) record: RootRecord,
}

/// A store's file.
pub(crate) struct StoreFile {
    path: String,
    file: Arc<dyn File>,
    /// Where each page of the published checkpoint lies, by id.
    map: RwLock<Vec<BlockRef>>,
    /// How many of them there are.
    mapped: AtomicUsize,
    blocks: Mutex<Blocks>,
    /// Memory of pages that have left, for those that are read next: to give it back to the
    /// allocator and take it anew costs more than to read a page that the system has at hand.
    buffers: Mutex<Vec<PageBuffer>>,
}

/// What opening a file finds.
pub(crate) struct Opened {
    pub(crate) file: StoreFile,
    pub(crate) published: Published,
    pub(crate) record: RootRecord,
}

/// Makes an empty store where there is none, and forgets what was never finished.
pub(crate) async fn prepare(disk: &dyn Disk, dir: &str, owner: Owner) -> Result<()> {
    let failed = |e| Error::io(format_args!("create the store in \"{dir}\""), e);
    disk.create_dir(dir).map_err(failed)?;
    let names = disk.list(dir).map_err(failed)?;
    let exists = |path: String| names.iter().any(|n| format!("{dir}/{n}") == path);
    // What an import has left is for the next one.
    let unfinished = temporary_name(dir);
    if exists(unfinished.clone()) {
        disk.remove(&unfinished).map_err(failed)?;
    }
    if exists(name(dir)) {
        return Ok(());
    }
    let file = StoreFile::create(disk, temporary_name(dir))?;
    let record = RootRecord {
        next_page: 1,
        ..RootRecord::default()
    };
    let (root, _) = file.write_record(&record)?;
    let superblock = Superblock {
        sequence: 0,
        lsn: Lsn::ZERO,
        root,
    };
    file.sync().await?;
    file.write_superblock(&superblock, owner).await?;
    file.put_in_place(disk, dir)
}

/// Opens the file in `dir`.
pub(crate) fn open(disk: &dyn Disk, dir: &str, owner: Owner) -> Result<Opened> {
    let path = name(dir);
    let failed = |e| Error::io(format_args!("open \"{path}\""), e);
    let file = disk.open(&path, OpenMode::Existing).map_err(failed)?;
    let reserved = (file.len().map_err(failed)? / PAGE_BYTES as u64) as u32;
    let file = StoreFile::without_pages(path, file, reserved);
    let mut newest: Option<Superblock> = None;
    for location in 0..SUPERBLOCKS.min(reserved) {
        let bytes = file.read_one(location)?;
        let found = Superblock::decode(&bytes[..], owner)?;
        newest = match (newest, found) {
            (Some(a), Some(b)) if a.sequence > b.sequence => Some(a),
            (old, None) => old,
            (_, new) => new,
        };
    }
    let superblock = newest
        .ok_or_else(|| Error::corrupted(format!("\"{}\" has no sound superblock", file.path)))?;
    let (record, root_blocks) = file.read_record(superblock.root)?;
    file.read_map(&record)?;
    file.find_free(&record, &root_blocks)?;
    let published = Published {
        info: CheckpointInfo {
            lsn: superblock.lsn,
            meta: record.meta.clone(),
        },
        superblock,
        root_blocks,
        record: record.clone(),
    };
    Ok(Opened {
        file,
        published,
        record,
    })
}

impl std::fmt::Debug for StoreFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StoreFile({})", self.path)
    }
}

/// The bytes of so many blocks.
fn bytes(blocks: u32) -> u64 {
    u64::from(blocks) * PAGE_BYTES as u64
}

/// The first of some blocks, and how many there are from it to the last.
fn span(blocks: impl Iterator<Item = u32> + Clone) -> Option<(u32, u32)> {
    let (first, last) = (blocks.clone().min()?, blocks.max()?);
    Some((first, last - first + 1))
}

/// The checksum of a block, and the one that stands in it.
fn checksums(block: &[u8; PAGE_BYTES]) -> (u32, u32) {
    let stored = u32::from_le_bytes([block[0], block[1], block[2], block[3]]);
    (checksum(&block[4..]), stored)
}

impl StoreFile {
    /// A new file without a superblock.
    pub(crate) fn create(disk: &dyn Disk, path: String) -> Result<StoreFile> {
        let file = disk
            .open(&path, OpenMode::CreateNew)
            .map_err(|e| space_error(&path, e))?;
        Ok(StoreFile::without_pages(path, file, 0))
    }

    /// A file that [`StoreFile::create`] has made, perhaps in an earlier process, and nobody has
    /// finished. What lies in it is known to nobody yet.
    pub(crate) fn take_up(disk: &dyn Disk, path: String) -> Result<StoreFile> {
        let failed = |e| Error::io(format_args!("open \"{path}\""), e);
        let file = disk.open(&path, OpenMode::Existing).map_err(failed)?;
        let len = file.len().map_err(failed)?;
        let reserved = u32::try_from(len / PAGE_BYTES as u64).unwrap_or(u32::MAX);
        Ok(StoreFile::without_pages(path, file, reserved))
    }

    /// A file of so many blocks, of which nobody knows anything yet.
    fn without_pages(path: String, file: Arc<dyn File>, reserved: u32) -> StoreFile {
        StoreFile {
            path,
            file,
            map: RwLock::default(),
            mapped: AtomicUsize::new(0),
            buffers: Mutex::default(),
            blocks: Mutex::new(Blocks {
                end: SUPERBLOCKS,
                reserved,
                ..Blocks::default()
            }),
        }
    }

    /// Takes all blocks below `end`, which must not have been taken otherwise.
    ///
    /// # Errors
    /// 53100 when the file cannot grow.
    pub(crate) fn claim(&self, end: u32) -> Result<()> {
        let mut blocks = self.blocks.lock();
        let first = blocks.end;
        assert!(blocks.free.is_empty() && first <= end, "{first} to {end}");
        self.reserve(&mut blocks, u64::from(end))?;
        blocks.end = end;
        blocks.note_used();
        Ok(())
    }

    /// A page that is in a block by chance: nothing unless it is whole and of that id.
    pub(crate) fn read_left(&self, location: u32, id: u64) -> Option<Page> {
        let bytes = self.read_one(location).ok()?;
        let (crc, stored) = checksums(&bytes);
        (crc == stored).then(|| Page::from_bytes(bytes, id).ok())?
    }

    /// Gives a file that is wholly durable the name under which it counts.
    pub(crate) fn put_in_place(&self, disk: &dyn Disk, dir: &str) -> Result<()> {
        disk.rename(&self.path, &name(dir))
            .and_then(|()| disk.sync_dir(dir))
            .map_err(|e| Error::io(format_args!("rename \"{}\"", self.path), e))
    }

    pub(crate) async fn sync(&self) -> Result<()> {
        let synced = self.file.sync().await;
        synced.map_err(|e| Error::io(format_args!("fsync \"{}\"", self.path), e))
    }

    pub(crate) async fn write_superblock(&self, block: &Superblock, owner: Owner) -> Result<()> {
        self.write(&[(block.location(), &block.encode(owner))])?;
        self.sync().await
    }

    /// Writes the superblock that was found once more: after a failed sync it may be in the
    /// kernel's memory only, and what it leads to counts from now on.
    pub(crate) async fn renew_superblock(&self, found: &Published, owner: Owner) -> Result<()> {
        self.write_superblock(&found.superblock, owner).await
    }

    /// Keeps memory that nobody needs any more for pages to be read.
    pub(crate) fn reuse(&self, buffers: impl Iterator<Item = PageBuffer>) {
        let mut kept = self.buffers.lock();
        let room = BUFFERS_MAX - kept.len();
        kept.extend(buffers.take(room));
    }

    /// Memory for so many pages; what is in it means nothing.
    fn buffers(&self, count: usize) -> Vec<PageBuffer> {
        let mut buffers = {
            let mut kept = self.buffers.lock();
            let left = kept.len().saturating_sub(count);
            kept.split_off(left)
        };
        buffers.resize_with(count, || Box::new([0; PAGE_BYTES]));
        buffers
    }

    /// Reads blocks that lie side by side.
    fn read(&self, first: u32, count: usize) -> Result<Vec<PageBuffer>> {
        let mut buffers = self.buffers(count);
        let slices = buffers
            .iter_mut()
            .map(|buffer| IoSliceMut::new(&mut buffer[..]));
        let mut slices: Vec<_> = slices.collect();
        self.file
            .read_vectored_at(&mut slices, bytes(first))
            .map_err(|e| {
                let blocks = format_args!("read {count} blocks from {first} of \"{}\"", self.path);
                Error::io(blocks, e)
            })?;
        Ok(buffers)
    }

    fn read_one(&self, location: u32) -> Result<PageBuffer> {
        Ok(self.read(location, 1)?.remove(0))
    }

    /// Reads a block and compares its checksum with the one that was noted when it was written.
    pub(crate) fn read_block(&self, block: BlockRef, id: u64) -> Result<Page> {
        self.sound(self.read_one(block.location)?, block, id)
    }

    /// Says that blocks will be read soon as [`StoreFile::read_blocks`] does.
    pub(crate) fn will_read(&self, blocks: &[u32]) {
        if let Some((first, count)) = span(blocks.iter().copied()) {
            if count <= SPAN_BLOCKS_MAX {
                self.file.will_read(bytes(first), bytes(count));
            }
        }
    }

    /// As [`StoreFile::read_block`], of several pages that lie near one another, with one read. What
    /// lies between them is read along and forgotten.
    ///
    /// # Errors
    /// When they cannot be read so, or lie too far apart ([`SPAN_BLOCKS_MAX`]). Each page has errors
    /// of its own.
    pub(crate) fn read_blocks(&self, blocks: &[(BlockRef, u64)]) -> Result<Vec<Result<Page>>> {
        let Some((first, count)) = span(blocks.iter().map(|(block, _)| block.location)) else {
            return Ok(Vec::new());
        };
        if count > SPAN_BLOCKS_MAX {
            return Err(Error::internal(format!("{count} blocks are too many")));
        }
        let buffers = self.read(first, count as usize)?;
        let mut buffers: Vec<_> = buffers.into_iter().map(Some).collect();
        let page = |(block, id): &(BlockRef, u64)| {
            let buffer = buffers[(block.location - first) as usize].take();
            let buffer = buffer.ok_or_else(|| Error::internal("two pages have one block"))?;
            self.sound(buffer, *block, *id)
        };
        let pages = blocks.iter().map(page).collect();
        self.reuse(buffers.into_iter().flatten());
        Ok(pages)
    }

    /// A page whose checksum is the one that was noted when it was written.
    fn sound(&self, bytes: PageBuffer, block: BlockRef, id: u64) -> Result<Page> {
        let (crc, stored) = checksums(&bytes);
        if crc != block.crc || stored != crc {
            return Err(Error::corrupted(format!(
                "block {} of \"{}\" (page {id}) has checksum {crc:08x}, expected was {:08x}",
                block.location, self.path, block.crc
            )));
        }
        Page::from_bytes(bytes, id)
    }

    /// Writes blocks, those next to one another at once.
    pub(crate) fn write(&self, blocks: &[(u32, &[u8])]) -> Result<()> {
        let mut run: Vec<u8> = Vec::new();
        let mut first = 0;
        for (index, (location, bytes)) in blocks.iter().enumerate() {
            if run.is_empty() {
                first = *location;
            }
            run.extend_from_slice(bytes);
            let next = blocks.get(index + 1).map(|(next, _)| *next);
            if next != Some(location + 1) {
                let offset = u64::from(first) * PAGE_BYTES as u64;
                self.file
                    .write_at(&run, offset)
                    .map_err(|e| Error::io(format_args!("write \"{}\"", self.path), e))?;
                run.clear();
            }
        }
        Ok(())
    }

    /// Says that all that was written between the first of these blocks and the last will be synced
    /// soon.
    pub(crate) fn will_sync(&self, blocks: &[u32]) {
        if let Some((first, count)) = span(blocks.iter().copied()) {
            self.file.will_sync(bytes(first), bytes(count));
        }
    }

    /// Free blocks, lowest first, taken out of the free ones.
    ///
    /// # Errors
    /// 53100 when the file cannot grow; nothing was taken then.
    pub(crate) fn allocate(&self, count: usize) -> Result<Vec<u32>> {
        let mut blocks = self.blocks.lock();
        let missing = count.saturating_sub(blocks.free.len()) as u64;
        let needed = u64::from(blocks.end) + missing;
        self.reserve(&mut blocks, needed)?;
        let taken = (0..count).map(|_| blocks.take_lowest()).collect();
        blocks.note_used();
        Ok(taken)
    }

    /// Free blocks for pages, taken out of the free ones: for each the one nearest to
    /// its home, or the lowest if it has none. A page's home is the block of its number, as long as
    /// the file need not be longer for that: so pages that were made one after the other lie side
    /// by side, and go on doing so however often they change.
    ///
    /// # Errors
    /// As [`StoreFile::allocate`].
    pub(crate) fn allocate_for(
        &self,
        pages: impl ExactSizeIterator<Item = PageId>,
    ) -> Result<Vec<u32>> {
        let mut blocks = self.blocks.lock();
        let missing = pages.len().saturating_sub(blocks.free.len()) as u64;
        let needed = u64::from(blocks.end) + missing;
        self.reserve(&mut blocks, needed)?;
        let homes_end = blocks.needed();
        let taken = pages.map(|page| match page.0 < homes_end {
            true => blocks.take_near(page.0),
            false => blocks.take_lowest(),
        });
        let taken = taken.collect();
        blocks.note_used();
        Ok(taken)
    }

    /// Sees to it that the file has space for so many blocks.
    fn reserve(&self, blocks: &mut Blocks, needed: u64) -> Result<()> {
        if needed <= u64::from(blocks.reserved) {
            return Ok(());
        }
        let grown = (needed + u64::from(GROW_BLOCKS)).min(u64::from(u32::MAX));
        if needed > grown {
            return Err(Error::new(
                base::SqlState::DISK_FULL,
                "the store has reached its largest size",
            ));
        }
        self.file
            .set_len(grown * PAGE_BYTES as u64)
            .map_err(|e| space_error(&self.path, e))?;
        blocks.reserved = grown as u32;
        Ok(())
    }

    /// Ends a cycle between two superblocks: gives the end of the file back where it is free and
    /// the last cycles have not needed so much. Only once a superblock is durable that does not
    /// lead there.
    ///
    /// # Errors
    /// 58030, fatal for the node.
    pub(crate) fn trim(&self) -> Result<()> {
        let mut blocks = self.blocks.lock();
        while blocks.end > SUPERBLOCKS && blocks.free.last() == Some(&(blocks.end - 1)) {
            blocks.free.pop_last();
            blocks.end -= 1;
        }
        let needed = blocks.needed();
        blocks.peaks.rotate_right(1);
        blocks.peaks[0] = 0;
        blocks.note_used();
        let kept = blocks.end.max(needed);
        let kept = kept.saturating_add(GROW_BLOCKS.max(kept / KEPT_SHARE));
        if blocks.reserved > kept.saturating_add(GROW_BLOCKS) {
            let reserved = kept.max(blocks.reserved.saturating_sub(TRIMMED_BLOCKS_MAX));
            self.file
                .set_len(u64::from(reserved) * PAGE_BYTES as u64)
                .map_err(|e| Error::io(format_args!("truncate \"{}\"", self.path), e))?;
            blocks.reserved = reserved;
        }
        Ok(())
    }

    /// Pages that lie so far behind that the file would be much shorter without them, the last
    /// ones first.
    pub(crate) fn far_pages(&self, most: usize) -> Vec<(PageId, BlockRef)> {
        let needed = {
            let blocks = self.blocks.lock();
            let needed = blocks.needed();
            let enough = needed.saturating_add(GROW_BLOCKS.max(needed / FAR_SHARE));
            if blocks.pins > 0 || blocks.end <= enough {
                return Vec::new();
            }
            needed
        };
        let map = self.map.read();
        let pages = map.iter().enumerate();
        let far = pages.filter(|(_, block)| block.location >= needed);
        let mut far: Vec<(PageId, BlockRef)> =
            far.map(|(id, block)| (PageId(id as u32), *block)).collect();
        drop(map);
        far.sort_unstable_by_key(|(_, block)| std::cmp::Reverse(block.location));
        far.truncate(most);
        far
    }

    /// Bytes of the file, and how many of them are free.
    pub(crate) fn space(&self) -> (u64, u64) {
        let blocks = self.blocks.lock();
        let unused = u64::from(blocks.reserved - blocks.end.min(blocks.reserved));
        let free = blocks.free.len() as u64 + unused;
        let bytes = |blocks: u64| blocks * PAGE_BYTES as u64;
        (bytes(u64::from(blocks.reserved)), bytes(free))
    }

    /// Blocks that hold something, superblocks included.
    #[cfg(test)]
    pub(crate) fn used_blocks(&self) -> usize {
        let blocks = self.blocks.lock();
        blocks.end as usize - blocks.free.len() - blocks.deferred.len()
    }

    /// Gives blocks back that no superblock ever led to.
    pub(crate) fn free_unpublished(&self, freed: impl IntoIterator<Item = u32>) {
        self.blocks.lock().free.extend(freed);
    }

    /// Gives blocks back that no superblock leads to any more.
    pub(crate) fn free_published(&self, freed: &[u32]) {
        for freed in freed.chunks(CHANGES_PER_TURN) {
            let mut blocks = self.blocks.lock();
            if blocks.pins > 0 {
                blocks.deferred.extend(freed);
            } else {
                blocks.free.extend(freed);
            }
        }
    }

    /// Keeps blocks that a superblock leads to now from being used again.
    pub(crate) fn pin(&self) {
        self.blocks.lock().pins += 1;
    }

    /// Ends a [`StoreFile::pin`].
    pub(crate) fn unpin(&self) {
        let mut blocks = self.blocks.lock();
        blocks.pins -= 1;
        if blocks.pins == 0 {
            let deferred = std::mem::take(&mut blocks.deferred);
            blocks.free.extend(deferred);
        }
    }

    /// Where every page lies, by id.
    pub(crate) fn map(&self) -> Vec<BlockRef> {
        self.map.read().clone()
    }

    /// Where the published checkpoint has a page; location 0 if nowhere.
    pub(crate) fn place(&self, id: PageId) -> BlockRef {
        let map = self.map.read();
        map.get(id.0 as usize).copied().unwrap_or_default()
    }

    /// How many pages the published checkpoint has.
    pub(crate) fn mapped(&self) -> usize {
        self.mapped.load(Ordering::Relaxed)
    }

    /// Reads a page as the published checkpoint has it.
    pub(crate) fn load(&self, id: PageId) -> Result<Page> {
        loop {
            let block = self.place(id);
            if block.location == 0 {
                return Err(Error::corrupted(format!("page {} is not there", id.0)));
            }
            let page = self.read_block(block, u64::from(id.0));
            if page.is_ok() || self.place(id) == block {
                return page;
            }
            // The page moved while it was read.
        }
    }

    /// Page ids below `next_page` that have no block, in descending order.
    pub(crate) fn free_pages(&self, next_page: u32) -> Vec<PageId> {
        let map = self.map.read();
        let is_free = |id: &u32| {
            map.get(*id as usize)
                .is_none_or(|block| block.location == 0)
        };
        (1..next_page).rev().filter(is_free).map(PageId).collect()
    }

    /// The content of one block of the map, with changes that are sorted by id.
    pub(crate) fn map_page(
        &self,
        index: usize,
        changes: &std::collections::BTreeMap<PageId, BlockRef>,
    ) -> Page {
        let mut page = Page::new(PageKind::Map, index as u64, TreeId(0), 0);
        let first = (index * MAP_ENTRIES) as u32;
        let map = self.map.read();
        let mut content = vec![0; PAGE_CONTENT];
        let mut put = |id: u32, block: BlockRef| {
            let at = (id - first) as usize * 8;
            content[at..at + 4].copy_from_slice(&block.location.to_le_bytes());
            content[at + 4..at + 8].copy_from_slice(&block.crc.to_le_bytes());
        };
        for id in first..first + MAP_ENTRIES as u32 {
            if let Some(block) = map.get(id as usize) {
                put(id, *block);
            }
        }
        let range = PageId(first)..PageId(first + MAP_ENTRIES as u32);
        for (id, block) in changes.range(range) {
            put(id.0, *block);
        }
        page.set_content(&content);
        page
    }

    /// Takes over where pages lie now; returns the blocks where they lay before.
    pub(crate) fn update_map(
        &self,
        changes: &std::collections::BTreeMap<PageId, BlockRef>,
        next_page: u32,
    ) -> Vec<u32> {
        let (mut old, mut came) = (Vec::new(), 0);
        self.map
            .write()
            .resize(next_page as usize, BlockRef::default());
        let mut changes = changes.iter().peekable();
        while changes.peek().is_some() {
            let mut map = self.map.write();
            for (id, block) in changes.by_ref().take(CHANGES_PER_TURN) {
                let place = &mut map[id.0 as usize];
                if place.location != 0 {
                    old.push(place.location);
                }
                came += usize::from(block.location != 0);
                *place = *block;
            }
        }
        self.mapped.fetch_add(came, Ordering::Relaxed);
        self.mapped.fetch_sub(old.len(), Ordering::Relaxed);
        old
    }

    fn read_map(&self, record: &RootRecord) -> Result<()> {
        let mut map = Vec::with_capacity(record.next_page as usize);
        for (index, block) in record.map.iter().enumerate() {
            let page = self.read_block(*block, index as u64)?;
            for entry in 0..MAP_ENTRIES {
                let at = PAGE_HEADER + entry * 8;
                map.push(BlockRef {
                    location: page.u32(at),
                    crc: page.u32(at + 4),
                });
            }
        }
        let behind = map.iter().skip(record.next_page as usize);
        if map.len() < record.next_page as usize && record.next_page > 1
            || behind.into_iter().any(|block| block.location != 0)
        {
            return Err(Error::corrupted(format!(
                "the page map has {} entries for {} pages",
                map.len(),
                record.next_page
            )));
        }
        map.truncate(record.next_page as usize);
        let mapped = map.iter().filter(|block| block.location != 0).count();
        self.mapped.store(mapped, Ordering::Relaxed);
        *self.map.write() = map;
        Ok(())
    }

    /// Finds the free blocks; a block that is used twice is corruption.
    fn find_free(&self, record: &RootRecord, root_blocks: &[u32]) -> Result<()> {
        let map = self.map.read();
        let mut blocks = self.blocks.lock();
        let pages = map.iter().filter(|block| block.location != 0);
        let used = pages.map(|block| block.location);
        let used = used.chain(record.map.iter().map(|block| block.location));
        let mut used: Vec<u32> = used.chain(root_blocks.iter().copied()).collect();
        used.sort_unstable();
        if let Some(pair) = used.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::corrupted(format!(
                "block {} of \"{}\" is used twice",
                pair[0], self.path
            )));
        }
        let mut next = SUPERBLOCKS;
        for block in used {
            if block < SUPERBLOCKS {
                return Err(Error::corrupted(format!(
                    "block {block} of \"{}\" is a superblock",
                    self.path
                )));
            }
            blocks.free.extend(next..block);
            next = block + 1;
        }
        blocks.end = next;
        blocks.note_used();
        Ok(())
    }

    /// Writes a root record to free blocks; returns its first block and all of them.
    pub(crate) fn write_record(&self, record: &RootRecord) -> Result<(BlockRef, Vec<u32>)> {
        let bytes = record.encode();
        let chunks: Vec<&[u8]> = bytes.chunks(PAGE_CONTENT).collect();
        let locations = self.allocate(chunks.len())?;
        let mut next = BlockRef::default();
        for (index, chunk) in chunks.iter().enumerate().rev() {
            let mut page = Page::new(PageKind::Root, index as u64, TreeId(0), 0);
            page.set_content(chunk);
            page.set_u32(44, next.location);
            page.set_u32(48, next.crc);
            let (crc, _) = page.seal();
            let location = locations[index];
            self.write(&[(location, page.bytes())])?;
            next = BlockRef { location, crc };
        }
        Ok((next, locations))
    }

    fn read_record(&self, first: BlockRef) -> Result<(RootRecord, Vec<u32>)> {
        let mut bytes = Vec::new();
        let mut locations = Vec::new();
        let mut block = first;
        while block.location != 0 {
            let page = self.read_block(block, locations.len() as u64)?;
            locations.push(block.location);
            bytes.extend_from_slice(page.content());
            block = BlockRef {
                location: page.u32(44),
                crc: page.u32(48),
            };
        }
        Ok((RootRecord::decode(&bytes)?, locations))
    }
}
