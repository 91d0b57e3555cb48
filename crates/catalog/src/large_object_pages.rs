//! The bytes of large objects, in pages of [`PAGE_BYTES`].
//!
//! ```text
//! write "abc" at 10,000    page 4: 1,808 zeros, abc       there are no pages 0 to 3
//! read 5 at 9,999          0 0 0 0, up to the page; then what it has
//! truncate to 3,000        pages from 1 on go; page 1: 952 zeros
//! ```
//! Which pages there are and how long each is follows from what was written as in PostgreSQL, as
//! `pg_largeobject` shows it: what no page has is zeros as long as anything stands behind it.
//!
//! # Invariants
//! - Who writes holds the object ([`super::large_object::hold`]).
//! - No page has more than [`PAGE_BYTES`], and none lies behind [`SIZE_MAX`].
//!
//! # What it leaves out
//! Compression.

use std::collections::BTreeMap;

use base::engine::{Direction, Reading, RowBatch, Transaction};
use base::key::{successor, KeyRange};
use base::row::{Row, RowBuilder};
use base::{coro, Error, Result, TreeId};

use super::large_object::{oid_of, page_key, tree_of, Sight, ROW_WORK};
use super::store::oid_key;

/// Bytes of a page.
pub const PAGE_BYTES: u64 = 2_048;
/// Bytes of a large object, at most.
pub const SIZE_MAX: i64 = i32::MAX as i64 * PAGE_BYTES as i64;

/// Pages that are read before they are written, at a time.
const PAGES_AT_ONCE: u64 = 128;
/// What writing a page counts for, in the units of [`coro::work`].
const PAGE_WORK: usize = 4 * ROW_WORK;

/// Is given pages: the object, the number, the bytes.
pub type TakePage<'t> = dyn FnMut(u32, u32, &[u8]) -> Result<()> + 't;

/// A large object of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The database.
    pub database: u32,
    /// The object.
    pub oid: u32,
}

/// One page.
struct Page {
    number: u32,
    data: Vec<u8>,
}

impl Page {
    /// The place of its first byte.
    fn start(&self) -> u64 {
        u64::from(self.number) * PAGE_BYTES
    }
}

fn parse(key: &[u8], row: &[u8]) -> Result<Option<Page>> {
    let Some(number) = key.get(size_of::<u32>()..).and_then(<[u8]>::first_chunk) else {
        return Ok(None);
    };
    let row = Row::parse(row)?;
    let data = row
        .column(0)
        .filter(|data| data.len() as u64 <= PAGE_BYTES)
        .ok_or_else(|| Error::corrupted("a page of a large object"))?;
    Ok(Some(Page {
        number: u32::from_be_bytes(*number),
        data: data.to_vec(),
    }))
}

fn number_of(offset: u64) -> Result<u32> {
    let number = offset / PAGE_BYTES;
    u32::try_from(number).map_err(|_| Error::internal("a page behind the end of large objects"))
}

impl Place {
    fn tree(self) -> TreeId {
        tree_of(self.database)
    }

    /// The keys of the pages from one on.
    fn from(self, page: u32) -> KeyRange {
        KeyRange {
            start: page_key(self.oid, page),
            end: successor(&oid_key(&[self.oid])),
        }
    }

    /// The first page from one on, if there is any.
    fn first_from(self, txn: &mut dyn Reading, page: u32) -> Result<Option<Page>> {
        let mut batch = RowBatch::default();
        let range = self.from(page);
        Sight::Newest.scan(txn, self.tree(), &range, 1, &mut batch)?;
        match batch.is_empty() {
            true => Ok(None),
            false => {
                let (key, row) = batch.get(0);
                parse(key, row)
            }
        }
    }

    fn put(self, txn: &mut dyn Transaction, page: u32, data: &[u8], is_there: bool) -> Result<()> {
        coro::work(PAGE_WORK)?;
        let (tree, key) = (self.tree(), page_key(self.oid, page));
        let row = RowBuilder::new(1).value(data).finish();
        match is_there {
            true => txn.update(tree, &key, &row)?,
            false => txn.insert_new(tree, &key, &row)?,
        };
        Ok(())
    }

    /// How many bytes the object has, up to the end of its last page.
    pub fn size(self, txn: &mut dyn Reading, sight: Sight) -> Result<u64> {
        let mut batch = RowBatch::default();
        let (range, backward) = (self.from(0), Direction::Backward);
        match sight {
            Sight::Statement => txn.scan(self.tree(), &range, backward, 1, &mut batch)?,
            Sight::Newest => txn.scan_newest_in(self.tree(), &range, backward, 1, &mut batch)?,
        };
        if batch.is_empty() {
            return Ok(0);
        }
        let (key, row) = batch.get(0);
        let page = parse(key, row)?;
        Ok(page.map_or(0, |page| page.start() + page.data.len() as u64))
    }

    /// Gives the bytes from `offset` on, at most `length`, piece by piece; how many there were.
    ///
    /// # Errors
    /// What `take` gives.
    pub fn read(
        self,
        txn: &mut dyn Reading,
        sight: Sight,
        (offset, length): (u64, u64),
        take: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<u64> {
        let mut left = length;
        let mut batch = RowBatch::default();
        let mut rest = Some(self.from(number_of(offset)?));
        while let Some(range) = rest.filter(|_| left > 0) {
            let limit = usize::try_from(left / PAGE_BYTES + 2).unwrap_or(usize::MAX);
            rest = sight.scan(txn, self.tree(), &range, limit, &mut batch)?;
            for (key, row) in batch.iter() {
                coro::work(ROW_WORK)?;
                let Some(page) = parse(key, row)? else {
                    continue;
                };
                let hole = page
                    .start()
                    .saturating_sub(offset + length - left)
                    .min(left);
                put_zeros(hole, take)?;
                left -= hole;
                let within = (offset + length - left).saturating_sub(page.start());
                let within = usize::try_from(within).unwrap_or(usize::MAX);
                let data = page.data.get(within..).unwrap_or_default();
                let data = &data[..data.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
                take(data)?;
                left -= data.len() as u64;
            }
        }
        Ok(length - left)
    }

    /// Writes bytes at `offset`.
    pub fn write(self, txn: &mut dyn Transaction, offset: u64, data: &[u8]) -> Result<()> {
        let mut data = data;
        let mut offset = offset;
        while !data.is_empty() {
            let within = offset % PAGE_BYTES;
            let most = PAGES_AT_ONCE * PAGE_BYTES - within;
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            let (now, later) = data.split_at(data.len().min(most));
            self.write_some(txn, offset, now)?;
            offset += now.len() as u64;
            data = later;
        }
        Ok(())
    }

    fn write_some(self, txn: &mut dyn Transaction, offset: u64, data: &[u8]) -> Result<()> {
        let (mut data, mut offset) = (data, offset);
        let last = number_of(offset + data.len() as u64)?;
        let mut there = self.pages(txn, number_of(offset)?, last)?;
        while !data.is_empty() {
            let page = number_of(offset)?;
            let within = (offset % PAGE_BYTES) as usize;
            let (now, later) = data.split_at(data.len().min(PAGE_BYTES as usize - within));
            let old = there.remove(&page);
            let is_there = old.is_some();
            let mut bytes = old.unwrap_or_default();
            let end = within + now.len();
            bytes.resize(bytes.len().max(end), 0);
            bytes[within..end].copy_from_slice(now);
            self.put(txn, page, &bytes, is_there)?;
            offset += now.len() as u64;
            data = later;
        }
        Ok(())
    }

    /// The pages from one to another.
    fn pages(self, txn: &mut dyn Reading, first: u32, last: u32) -> Result<BTreeMap<u32, Vec<u8>>> {
        let mut found = BTreeMap::new();
        let mut batch = RowBatch::default();
        let end = last.checked_add(1).map(|next| page_key(self.oid, next));
        let mut rest = Some(KeyRange {
            start: page_key(self.oid, first),
            end,
        });
        while let Some(range) = rest {
            rest = Sight::Newest.scan(txn, self.tree(), &range, usize::MAX, &mut batch)?;
            for (key, row) in batch.iter() {
                if let Some(page) = parse(key, row)? {
                    found.insert(page.number, page.data);
                }
            }
        }
        Ok(found)
    }

    /// Makes the object end at `size`, or go on up to there with zeros.
    pub fn truncate(self, txn: &mut dyn Transaction, size: u64) -> Result<()> {
        let (number, within) = (number_of(size)?, (size % PAGE_BYTES) as usize);
        let first = self.first_from(txn, number)?;
        let found = first.is_some();
        match first {
            Some(mut page) if page.number == number => {
                page.data.resize(within, 0);
                self.put(txn, number, &page.data, true)?;
            }
            _ => self.put(txn, number, &vec![0; within], false)?,
        }
        match number.checked_add(1).filter(|_| found) {
            Some(next) => self.remove_from(txn, next),
            None => Ok(()),
        }
    }

    fn remove_from(self, txn: &mut dyn Transaction, page: u32) -> Result<()> {
        let mut batch = RowBatch::default();
        let mut rest = Some(self.from(page));
        while let Some(range) = rest {
            rest = Sight::Newest.scan(txn, self.tree(), &range, usize::MAX, &mut batch)?;
            for (key, _) in batch.iter() {
                coro::work(PAGE_WORK)?;
                txn.delete(self.tree(), key)?;
            }
        }
        Ok(())
    }
}

fn put_zeros(count: u64, take: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
    const ZEROS: [u8; PAGE_BYTES as usize] = [0; PAGE_BYTES as usize];
    let mut left = count;
    while left > 0 {
        let now = left.min(PAGE_BYTES);
        take(&ZEROS[..now as usize])?;
        left -= now;
    }
    Ok(())
}

/// Goes over the pages of a database, of one object or of all: the object, the page's number, its data.
/// The database has its tree.
///
/// # Errors
/// What `take` gives.
pub fn for_each(
    txn: &mut dyn Reading,
    database: u32,
    object: Option<u32>,
    take: &mut TakePage<'_>,
) -> Result<()> {
    let mut batch = RowBatch::default();
    let mut rest = Some(match object {
        Some(oid) => KeyRange::prefix(&oid_key(&[oid])),
        None => KeyRange::all(),
    });
    while let Some(range) = rest {
        let forward = Direction::Forward;
        rest = txn.scan(tree_of(database), &range, forward, usize::MAX, &mut batch)?;
        for (key, row) in batch.iter() {
            coro::work(ROW_WORK)?;
            if let Some(page) = parse(key, row)? {
                take(oid_of(key)?, page.number, &page.data)?;
            }
        }
    }
    Ok(())
}
