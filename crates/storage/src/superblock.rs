//! The fixed points of a store's file: superblocks and the root record.
//!
//! The first two blocks of the file are superblocks, written in turn; the sound one with the higher
//! sequence counts. A superblock names the root record, which names everything else, each by
//! location and checksum, so that an old block in a new block's place is seen too:
//!
//! ```text
//! superblock ─► root record ─► pages of the page map ─► pages of trees
//!                 trees' roots, the caller's meta
//! ```
//!
//! A superblock's content fits one sector of 512 bytes, which a disk writes whole or not at all.
//!
//! | bytes | what |
//! |---|---|
//! | 0–3 | CRC-32C of bytes 4–511 |
//! | 4–15 | magic |
//! | 16–19 | format version |
//! | 20–23 | group |
//! | 24–31 | cluster |
//! | 32–39 | sequence |
//! | 40–47 | the LSN whose state this is, committed |
//! | 48–55 | location and checksum of the root record's first block |

use base::codec::{checksum, put_bytes, put_varint, Reader};
use base::{Error, GroupId, Key, Lsn, Result, TreeId};

use crate::page::{PageId, PAGE_BYTES};
use crate::Owner;

/// Blocks at the beginning of the file that hold superblocks.
pub(crate) const SUPERBLOCKS: u32 = 2;

const MAGIC: &[u8; 12] = b"quorate tree";
const VERSION: u32 = 3;
const SECTOR: usize = 512;

/// Where a block is, and its checksum. Location 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct BlockRef {
    /// In blocks of [`PAGE_BYTES`] from the beginning of the file: at most 32 TiB.
    pub(crate) location: u32,
    pub(crate) crc: u32,
}

/// What a superblock says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Superblock {
    pub(crate) sequence: u64,
    pub(crate) lsn: Lsn,
    pub(crate) root: BlockRef,
}

impl Superblock {
    /// The block it is written to.
    pub(crate) fn location(&self) -> u32 {
        (self.sequence % u64::from(SUPERBLOCKS)) as u32
    }

    pub(crate) fn encode(&self, owner: Owner) -> Vec<u8> {
        let mut bytes = vec![0; PAGE_BYTES];
        bytes[4..16].copy_from_slice(MAGIC);
        bytes[16..20].copy_from_slice(&VERSION.to_le_bytes());
        bytes[20..24].copy_from_slice(&owner.group.0.to_le_bytes());
        bytes[24..32].copy_from_slice(&owner.cluster.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.lsn.0.to_le_bytes());
        bytes[48..52].copy_from_slice(&self.root.location.to_le_bytes());
        bytes[52..56].copy_from_slice(&self.root.crc.to_le_bytes());
        let crc = checksum(&bytes[4..SECTOR]);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The superblock in a block; none if the block is not sound.
    ///
    /// # Errors
    /// 55000 when it is sound and of another version, cluster or group.
    pub(crate) fn decode(bytes: &[u8], owner: Owner) -> Result<Option<Superblock>> {
        let u32_at = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        if bytes.len() < SECTOR
            || checksum(&bytes[4..SECTOR]) != u32_at(0)
            || &bytes[4..16] != MAGIC
        {
            return Ok(None);
        }
        let found = Owner {
            cluster: u64_at(24),
            group: GroupId(u32_at(20)),
        };
        crate::owner::check("store", u32_at(16), VERSION, found, owner)?;
        Ok(Some(Superblock {
            sequence: u64_at(32),
            lsn: Lsn(u64_at(40)),
            root: BlockRef {
                location: u32_at(48),
                crc: u32_at(52),
            },
        }))
    }
}

/// A tree as of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TreeRecord {
    pub(crate) id: TreeId,
    pub(crate) root: PageId,
    pub(crate) created: Lsn,
    /// Dropped, and not yet released: to be given back after a restart.
    pub(crate) dropped: bool,
    /// How many pages and rows it has ([`crate::size`]).
    pub(crate) pages: u64,
    pub(crate) rows: u64,
}

/// Everything of a checkpoint but its pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RootRecord {
    pub(crate) meta: Vec<u8>,
    pub(crate) next_page: u32,
    /// The blocks of the page map.
    pub(crate) map: Vec<BlockRef>,
    pub(crate) trees: Vec<TreeRecord>,
    /// Pages of trees that are gone, as in [`crate::store::Writer::doomed`].
    pub(crate) doomed: Vec<(TreeId, PageId)>,
    /// Leaves that are empty but for what nobody needs any more, by a key that belongs there.
    pub(crate) vacant: Vec<(TreeId, Key)>,
}

impl RootRecord {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_bytes(&mut out, &self.meta);
        put_varint(&mut out, u64::from(self.next_page));
        put_varint(&mut out, self.map.len() as u64);
        for block in &self.map {
            put_varint(&mut out, u64::from(block.location));
            put_varint(&mut out, u64::from(block.crc));
        }
        put_varint(&mut out, self.trees.len() as u64);
        for tree in &self.trees {
            put_varint(&mut out, tree.id.0);
            put_varint(&mut out, u64::from(tree.root.0));
            put_varint(&mut out, tree.created.0);
            out.push(u8::from(tree.dropped));
            put_varint(&mut out, tree.pages);
            put_varint(&mut out, tree.rows);
        }
        put_varint(&mut out, self.doomed.len() as u64);
        for (tree, page) in &self.doomed {
            put_varint(&mut out, tree.0);
            put_varint(&mut out, u64::from(page.0));
        }
        put_varint(&mut out, self.vacant.len() as u64);
        for (tree, key) in &self.vacant {
            put_varint(&mut out, tree.0);
            put_bytes(&mut out, key);
        }
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<RootRecord> {
        let mut reader = Reader::new(bytes);
        let mut record = RootRecord {
            meta: reader.bytes()?.to_vec(),
            next_page: reader.varint_as()?,
            ..RootRecord::default()
        };
        for _ in 0..reader.varint()? {
            record.map.push(BlockRef {
                location: reader.varint_as()?,
                crc: reader.varint_as()?,
            });
        }
        for _ in 0..reader.varint()? {
            record.trees.push(TreeRecord {
                id: TreeId(reader.varint()?),
                root: PageId(reader.varint_as()?),
                created: Lsn(reader.varint()?),
                dropped: reader.u8()? != 0,
                pages: reader.varint()?,
                rows: reader.varint()?,
            });
        }
        for _ in 0..reader.varint()? {
            let tree = TreeId(reader.varint()?);
            record.doomed.push((tree, PageId(reader.varint_as()?)));
        }
        for _ in 0..reader.varint()? {
            let tree = TreeId(reader.varint()?);
            record.vacant.push((tree, reader.bytes()?.to_vec()));
        }
        if record.next_page == 0 {
            return Err(Error::corrupted("a root record without a first page"));
        }
        reader.finish()?;
        Ok(record)
    }
}
