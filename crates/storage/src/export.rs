//! A published checkpoint as a stream of chunks, for a new replica.
//!
//! Chunk 0 tells what follows: the checkpoint's LSN and meta, its trees, how many pages. Each
//! further chunk has the pages of some ids. The pages are read from the file, where the exporter
//! keeps their blocks from being used again; the importer puts them into a file of its own, which
//! gets its name when all of it is durable.
//!
//! # Going on with what an interrupted import has left
//! In the importer's file each page lies where its id says. So whoever begins an import finds what
//! came before, in this process or an earlier one, and tells digests of that with each request; of
//! pages that are the same the exporter sends the ids alone. That needs no agreement on which
//! checkpoint was begun: a newer one of the same node differs in what has changed since.
//!
//! ```text
//! ask chunk 7, having      page 193: 5ab1…  194: 09c3…  195: nothing
//! chunk 7                  page 193: as it is  194: bytes (it has changed)  195: bytes
//! ```
//! A page that is there counts if its checksum fits and it says its own id, and it is written once
//! more: what an earlier process wrote may be in the kernel's memory only.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use base::codec::{checksum, put_bytes, put_varint, Reader};
use base::env::{Disk, Env};
use base::{Error, Lsn, Result, SqlState};

use crate::file::{StoreFile, MAP_ENTRIES};
use crate::owner::Owner;
use crate::page::{Page, PageId, PAGE_BYTES};
use crate::store::Store;
use crate::superblock::{BlockRef, RootRecord, Superblock, SUPERBLOCKS};
use crate::CheckpointInfo;

/// Ids of pages in one chunk.
const CHUNK_PAGES: u32 = 32;

/// A page's content in a chunk: as the receiver has it, or bytes.
const AS_IT_IS: u8 = 0;
const BYTES: u8 = 1;

/// Stands for a page that is not there.
const ABSENT: u64 = 0;

/// The ids of a chunk's pages, below `next_page`.
fn ids(chunk: u64, next_page: u32) -> Range<u32> {
    let first = (chunk - 1).saturating_mul(u64::from(CHUNK_PAGES)) + 1;
    let end = first.saturating_add(u64::from(CHUNK_PAGES));
    let capped = |id: u64| id.min(u64::from(next_page)) as u32;
    capped(first)..capped(end)
}

/// By which two nodes compare pages that are sealed: the checksum, and as many bits of another.
fn digest(page: &Page) -> u64 {
    let other = base::hash::digest(page.bytes()) as u32;
    (u64::from(page.u32(0)) << 32 | u64::from(other)).max(1)
}

/// The name of a file that is being imported.
pub(crate) fn temporary_name(dir: &str) -> String {
    format!("{dir}/store.import")
}

/// Reads a published checkpoint; while it lives, the checkpoint's pages stay where they are.
#[derive(Debug)]
pub struct Exporter {
    store: Arc<Store>,
    info: CheckpointInfo,
    record: RootRecord,
    pages: Vec<(PageId, BlockRef)>,
}

impl Store {
    /// Pins the last published checkpoint and reads it.
    pub fn exporter(self: &Arc<Self>) -> Exporter {
        let published = self.published.lock();
        self.pager.file.pin();
        let map = self.pager.file.map();
        let pages = map.into_iter().enumerate();
        Exporter {
            store: self.clone(),
            info: published.info.clone(),
            record: RootRecord {
                map: Vec::new(),
                ..published.record.clone()
            },
            pages: pages
                .filter(|(_, block)| block.location != 0)
                .map(|(id, block)| (PageId(id as u32), block))
                .collect(),
        }
    }
}

impl Exporter {
    /// Which checkpoint this is.
    pub fn info(&self) -> &CheckpointInfo {
        &self.info
    }

    /// How many chunks there are.
    pub fn chunks(&self) -> u64 {
        1 + u64::from((self.record.next_page.max(1) - 1).div_ceil(CHUNK_PAGES))
    }

    /// The chunk of that number, from 0, for whoever has pages as [`Importer::having`] says.
    ///
    /// # Errors
    /// XX001 or 58030, fatal for the node, when a page cannot be read; XX000 for a number too high.
    pub fn chunk(&self, index: u64, having: &[u64]) -> Result<Vec<u8>> {
        if index >= self.chunks() {
            return Err(Error::internal(format!(
                "chunk {index} of {} is asked for",
                self.chunks()
            )));
        }
        let mut out = vec![0; 4];
        put_varint(&mut out, index);
        if index == 0 {
            let owner = self.store.owner;
            put_varint(&mut out, owner.cluster);
            put_varint(&mut out, u64::from(owner.group.0));
            put_varint(&mut out, self.info.lsn.0);
            put_varint(&mut out, self.chunks());
            put_bytes(&mut out, &self.record.encode());
        } else {
            let ids = ids(index, self.record.next_page);
            let place = |id: u32| self.pages.partition_point(|(page, _)| page.0 < id);
            for (id, block) in &self.pages[place(ids.start)..place(ids.end)] {
                let page = self.store.pager.file.read_block(*block, u64::from(id.0))?;
                put_varint(&mut out, u64::from(id.0));
                if having.get((id.0 - ids.start) as usize) == Some(&digest(&page)) {
                    out.push(AS_IT_IS);
                } else {
                    out.push(BYTES);
                    out.extend_from_slice(page.bytes());
                }
            }
        }
        let crc = checksum(&out[4..]);
        out[..4].copy_from_slice(&crc.to_le_bytes());
        Ok(out)
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.store.pager.file.unpin();
    }
}

/// Where a page lies in a file that is imported.
fn location(id: u32) -> u32 {
    SUPERBLOCKS.saturating_add(id - 1)
}

/// Whether an import has left its file in the directory.
fn is_left(disk: &dyn Disk, dir: &str) -> Result<bool> {
    let names = disk
        .list(dir)
        .map_err(|e| Error::io(format_args!("list \"{dir}\""), e))?;
    let path = temporary_name(dir);
    Ok(names.iter().any(|name| format!("{dir}/{name}") == path))
}

/// Writes an exported checkpoint into a directory, beside the store that may be there.
///
/// Nothing of an import that was not finished is ever seen.
pub struct Importer {
    env: Arc<dyn Env>,
    dir: String,
    owner: Owner,
    file: StoreFile,
    lsn: Lsn,
    record: RootRecord,
    moved: BTreeMap<PageId, BlockRef>,
    received: u64,
    chunks: Option<u64>,
    /// An earlier import has left something.
    resumes: bool,
    /// Pages that were there already.
    kept: u64,
    /// The root record, once everything is durable.
    root: Option<BlockRef>,
}

impl std::fmt::Debug for Importer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Importer({}, {:?})", self.received, self.chunks)
    }
}

impl Importer {
    /// Begins an import; what one begun earlier in the same directory has left is used.
    ///
    /// # Errors
    /// 58030, 53100.
    pub fn start(env: Arc<dyn Env>, dir: &str, owner: Owner) -> Result<Importer> {
        let disk = env.disk();
        disk.create_dir(dir)
            .map_err(|e| Error::io(format_args!("create \"{dir}\""), e))?;
        let path = temporary_name(dir);
        let resumes = is_left(&*disk, dir)?;
        let file = match resumes {
            true => StoreFile::take_up(&*disk, path)?,
            false => StoreFile::create(&*disk, path)?,
        };
        Ok(Importer {
            env,
            dir: dir.to_owned(),
            owner,
            file,
            lsn: Lsn::ZERO,
            record: RootRecord::default(),
            moved: BTreeMap::new(),
            received: 0,
            chunks: None,
            resumes,
            kept: 0,
            root: None,
        })
    }

    /// Removes what an import has left that will not be finished.
    ///
    /// # Errors
    /// 58030.
    pub fn forget(env: &dyn Env, dir: &str) -> Result<()> {
        let disk = env.disk();
        if !is_left(&*disk, dir)? {
            return Ok(());
        }
        let path = temporary_name(dir);
        disk.remove(&path)
            .map_err(|e| Error::io(format_args!("remove \"{path}\""), e))
    }

    /// What is there of the next chunk's pages, from an earlier import: a digest for each id. Empty
    /// for nothing.
    pub fn having(&self) -> Vec<u64> {
        if !self.resumes || self.received == 0 {
            return Vec::new();
        }
        let one = |id| self.kept_page(id).map_or(ABSENT, |page| digest(&page));
        let having: Vec<u64> = ids(self.received, self.record.next_page).map(one).collect();
        match having.iter().all(|digest| *digest == ABSENT) {
            true => Vec::new(),
            false => having,
        }
    }

    /// A page that an earlier import has left, if it is whole.
    fn kept_page(&self, id: u32) -> Option<Page> {
        let page = self.file.read_left(location(id), u64::from(id))?;
        page.is_of_tree().then_some(page)
    }

    /// Pages taken so far that an earlier import had left, and all.
    pub fn pages(&self) -> (u64, u64) {
        (self.kept, self.moved.len() as u64)
    }

    /// Takes the next chunk; they come in order.
    ///
    /// # Errors
    /// XX000 when the chunk is damaged, out of order, or of another cluster; 53100 when there is
    /// no space. The import must begin anew.
    pub fn write(&mut self, chunk: &[u8]) -> Result<()> {
        self.take(chunk).map_err(|error| match error.state() {
            // What a peer sends is no fault of this node's disk.
            SqlState::DATA_CORRUPTED => Error::internal(error.message()),
            _ => error,
        })
    }

    fn take(&mut self, chunk: &[u8]) -> Result<()> {
        let bad = |what: &str| Error::internal(format!("a chunk of a checkpoint is {what}"));
        let crc = chunk.get(..4).ok_or_else(|| bad("too short"))?;
        if checksum(&chunk[4..]).to_le_bytes() != crc {
            return Err(bad("damaged"));
        }
        let mut reader = Reader::new(&chunk[4..]);
        if reader.varint()? != self.received {
            return Err(bad("out of order"));
        }
        if self.received == 0 {
            let (cluster, group) = (reader.varint()?, reader.varint()?);
            if cluster != self.owner.cluster || group != u64::from(self.owner.group.0) {
                return Err(bad("of another cluster or group"));
            }
            self.lsn = Lsn(reader.varint()?);
            self.chunks = Some(reader.varint()?);
            self.record = RootRecord::decode(reader.bytes()?)?;
            reader.finish()?;
            self.file.claim(location(self.record.next_page.max(1)))?;
        } else {
            let ids = ids(self.received, self.record.next_page);
            let mut pages = Vec::with_capacity(CHUNK_PAGES as usize);
            while !reader.is_empty() {
                let id: u32 = reader.varint_as()?;
                if !ids.contains(&id) {
                    return Err(bad("full of unknown pages"));
                }
                let page = match reader.u8()? {
                    AS_IT_IS => {
                        self.kept += 1;
                        self.kept_page(id).ok_or_else(|| bad("without a page"))?
                    }
                    _ => {
                        let mut bytes = Box::new([0; PAGE_BYTES]);
                        bytes.copy_from_slice(reader.take(PAGE_BYTES)?);
                        Page::from_bytes(bytes, u64::from(id))?
                    }
                };
                pages.push((PageId(id), page));
            }
            self.put(pages)?;
        }
        self.received += 1;
        Ok(())
    }

    fn put(&mut self, mut pages: Vec<(PageId, Page)>) -> Result<()> {
        for (id, page) in &mut pages {
            let (crc, _) = page.seal();
            let location = location(id.0);
            self.moved.insert(*id, BlockRef { location, crc });
        }
        let blocks: Vec<(u32, &[u8])> = pages
            .iter()
            .map(|(id, page)| (location(id.0), &page.bytes()[..]))
            .collect();
        self.file.write(&blocks)
    }

    /// Chunks taken so far.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Whether every chunk has been taken.
    pub fn is_complete(&self) -> bool {
        self.chunks == Some(self.received)
    }

    /// Makes everything durable that [`Importer::finish`] will point to.
    ///
    /// # Errors
    /// XX000 when chunks are missing; 53100 when there is no space, and then the import must begin
    /// anew. Others are fatal for the node.
    pub async fn complete(&mut self) -> Result<()> {
        if !self.is_complete() {
            return Err(Error::internal(format!(
                "{} chunks of a checkpoint have come, not {:?}",
                self.received, self.chunks
            )));
        }
        let pieces = (self.record.next_page as usize).div_ceil(MAP_ENTRIES);
        for index in 0..pieces {
            let mut page = self.file.map_page(index, &self.moved);
            let (crc, _) = page.seal();
            let location = self.file.allocate(1)?[0];
            self.file.write(&[(location, page.bytes())])?;
            self.record.map.push(BlockRef { location, crc });
        }
        let (root, _) = self.file.write_record(&self.record)?;
        self.file.sync().await?;
        self.root = Some(root);
        Ok(())
    }

    /// Puts the imported checkpoint in the place of the store in the directory, durably; the next
    /// [`Store::open`] finds it. The old store, if open, must not be used any more.
    ///
    /// # Errors
    /// XX000 when the import is not [complete](Importer::complete). Others are fatal for the node.
    pub async fn finish(self) -> Result<CheckpointInfo> {
        let root = self
            .root
            .ok_or_else(|| Error::internal("an import is not complete"))?;
        let superblock = Superblock {
            sequence: 0,
            lsn: self.lsn,
            root,
        };
        self.file.write_superblock(&superblock, self.owner).await?;
        self.file.put_in_place(&*self.env.disk(), &self.dir)?;
        Ok(CheckpointInfo {
            lsn: self.lsn,
            meta: self.record.meta,
        })
    }
}
