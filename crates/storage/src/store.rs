//! All trees of one group.

use std::sync::Arc;

use base::engine::{Direction, RowBatch};
use base::env::Env;
use base::{Error, KeyRange, Lsn, Result, TreeId};

use crate::{CheckpointInfo, Owner};

/// How a store is kept.
#[derive(Clone, Copy, Debug)]
pub struct StoreOptions {
    /// Whose store it is.
    pub owner: Owner,
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
    pub rest: Option<KeyRange>,
    /// For each leaf visited, the highest LSN that ever changed it, bounded by the snapshot; the
    /// highest of these.
    pub owes: Lsn,
}

/// All trees of one group.
#[derive(Debug)]
pub struct Store {
    _env: Arc<dyn Env>,
}

impl Store {
    /// Opens the store in `dir` as of its last published checkpoint; makes an empty one, at LSN 0,
    /// where there is none.
    pub async fn open(env: Arc<dyn Env>, _dir: &str, _options: StoreOptions) -> Result<Arc<Store>> {
        drop(env);
        Err(Error::unsupported("store"))
    }

    /// The last published checkpoint.
    pub fn checkpoint(&self) -> CheckpointInfo {
        CheckpointInfo {
            lsn: Lsn::ZERO,
            meta: Vec::new(),
        }
    }

    /// The LSN up to which every change has been applied.
    pub fn applied(&self) -> Lsn {
        Lsn::ZERO
    }

    /// Reads the newest version at or below `at` into `row`, which is cleared first.
    pub fn get(&self, _tree: TreeId, _key: &[u8], _at: Lsn, _row: &mut Vec<u8>) -> Result<Read> {
        Err(Error::unsupported("store"))
    }

    /// Reads rows of a range as of `at` into `batch`, which is cleared first: at most `limit`, and
    /// fewer when they are large or far between.
    pub fn scan(
        &self,
        _tree: TreeId,
        _range: &KeyRange,
        _direction: Direction,
        _at: Lsn,
        _limit: usize,
        _batch: &mut RowBatch,
    ) -> Result<Scanned> {
        Err(Error::unsupported("store"))
    }

    /// Applies the changes of the record at `lsn`, which completes it.
    pub fn apply(&self, _lsn: Lsn, _changes: &[Change<'_>]) -> Result<()> {
        Err(Error::unsupported("store"))
    }

    /// Makes a tree, as part of the record at `lsn`; `apply` or `advance` completes the record.
    pub fn create_tree(&self, _lsn: Lsn, _tree: TreeId) -> Result<()> {
        Err(Error::unsupported("store"))
    }

    /// Drops a tree, as part of the record at `lsn`; `apply` or `advance` completes the record.
    pub fn drop_tree(&self, _lsn: Lsn, _tree: TreeId) -> Result<()> {
        Err(Error::unsupported("store"))
    }

    /// Notes that the entry at `lsn` changes nothing further.
    pub fn advance(&self, _lsn: Lsn) -> Result<()> {
        Err(Error::unsupported("store"))
    }

    /// Undoes everything above `to`, newest first. A checkpoint above `to` that is being written
    /// is discarded.
    pub fn take_back(&self, _to: Lsn) -> Result<()> {
        Err(Error::unsupported("store"))
    }

    /// Lets go of what no snapshot at or above `horizon` can see; nothing at or below it will be
    /// taken back. At most `limit` changes are looked at; false when there is more to do.
    pub fn release(&self, _horizon: Lsn, _limit: usize) -> Result<bool> {
        Err(Error::unsupported("store"))
    }

    /// Begins a checkpoint of the state at [`Store::applied`], in an instant; returns its LSN.
    /// `meta` is kept with it.
    pub fn start_checkpoint(&self, _meta: Vec<u8>) -> Result<Lsn> {
        Err(Error::unsupported("store"))
    }

    /// Writes the checkpoint's pages, paced, and syncs them. False when it was discarded meanwhile.
    pub async fn write_checkpoint(&self) -> Result<bool> {
        Err(Error::unsupported("store"))
    }

    /// Makes the written checkpoint the one that the store is opened at; to be called once its LSN
    /// is committed. False when it was discarded meanwhile.
    pub async fn publish_checkpoint(&self) -> Result<bool> {
        Err(Error::unsupported("store"))
    }

    /// Gives up the checkpoint that is being written, if there is one.
    pub fn discard_checkpoint(&self) {}

    /// The LSN of the checkpoint that is being written, and whether it only waits to be published.
    pub fn pending_checkpoint(&self) -> Option<(Lsn, bool)> {
        None
    }

    /// Pages changed since the last checkpoint began.
    pub fn dirty_pages(&self) -> usize {
        0
    }
}
