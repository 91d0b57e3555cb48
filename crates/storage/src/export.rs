//! A published checkpoint as a stream of chunks, for a new replica.
//!
//! Chunk 0 tells what follows: the checkpoint's LSN and meta, its trees, how many pages. Each
//! further chunk has some pages with their ids. The pages are read from the file, where the
//! exporter keeps their blocks from being used again; the importer puts them into a file of its
//! own, which gets its name when all of it is durable.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::codec::{checksum, put_bytes, put_varint, Reader};
use base::env::Env;
use base::{Error, Lsn, Result, SqlState};

use crate::file::{StoreFile, MAP_ENTRIES};
use crate::owner::Owner;
use crate::page::{Page, PageId, PAGE_BYTES};
use crate::store::Store;
use crate::superblock::{BlockRef, RootRecord, Superblock};
use crate::CheckpointInfo;

/// Pages in one chunk.
const CHUNK_PAGES: usize = 32;

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
        1 + self.pages.len().div_ceil(CHUNK_PAGES) as u64
    }

    /// The chunk of that number, from 0.
    ///
    /// # Errors
    /// XX001 or 58030, fatal for the node, when a page cannot be read; XX000 for a number too high.
    pub fn chunk(&self, index: u64) -> Result<Vec<u8>> {
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
            let first = (index as usize - 1) * CHUNK_PAGES;
            let end = (first + CHUNK_PAGES).min(self.pages.len());
            for (id, block) in &self.pages[first..end] {
                let page = self.store.pager.file.read_block(*block, u64::from(id.0))?;
                put_varint(&mut out, u64::from(id.0));
                out.extend_from_slice(page.bytes());
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
}

impl std::fmt::Debug for Importer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Importer({}, {:?})", self.received, self.chunks)
    }
}

impl Importer {
    /// Begins an import; one begun earlier in the same directory is forgotten.
    ///
    /// # Errors
    /// 58030, 53100.
    pub fn start(env: Arc<dyn Env>, dir: &str, owner: Owner) -> Result<Importer> {
        let disk = env.disk();
        disk.create_dir(dir)
            .map_err(|e| Error::io(format_args!("create \"{dir}\""), e))?;
        let path = temporary_name(dir);
        let _ = disk.remove(&path);
        let file = StoreFile::create(&*disk, path)?;
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
        })
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
        } else {
            let mut pages = Vec::with_capacity(CHUNK_PAGES);
            while !reader.is_empty() {
                let id: u32 = reader.varint_as()?;
                let mut bytes = Box::new([0; PAGE_BYTES]);
                bytes.copy_from_slice(reader.take(PAGE_BYTES)?);
                if id == 0 || id >= self.record.next_page {
                    return Err(bad("full of unknown pages"));
                }
                pages.push((PageId(id), Page::from_bytes(bytes, u64::from(id))?));
            }
            self.put(pages)?;
        }
        self.received += 1;
        Ok(())
    }

    fn put(&mut self, mut pages: Vec<(PageId, Page)>) -> Result<()> {
        let locations = self.file.allocate(pages.len())?;
        for ((id, page), location) in pages.iter_mut().zip(&locations) {
            let (crc, _) = page.seal();
            let location = *location;
            self.moved.insert(*id, BlockRef { location, crc });
        }
        let blocks: Vec<(u32, &[u8])> = pages
            .iter()
            .zip(&locations)
            .map(|((_, page), location)| (*location, &page.bytes()[..]))
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

    /// Puts the imported checkpoint in the place of the store in the directory, durably; the next
    /// [`Store::open`] finds it. The old store, if open, must not be used any more.
    ///
    /// # Errors
    /// XX000 when chunks are missing. Others are fatal for the node.
    pub async fn finish(mut self) -> Result<CheckpointInfo> {
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
