//! What storage tells of itself: sizes of trees, and what a replica has in memory and on disk.

use std::time::Duration;

use crate::ids::{GroupId, Lsn, TreeId};

/// How large a tree is on one replica.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeSize {
    /// Bytes of its pages. Old versions of rows, and what is free, belong to no tree.
    pub bytes: u64,
    /// How many rows, or entries, it has.
    pub rows: u64,
}

/// One replica's storage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StorageStatus {
    /// The group.
    pub group: GroupId,
    /// Bytes of pages in memory.
    pub cached_bytes: u64,
    /// As many as there should be at most (`shared_buffers`).
    pub cache_bytes_max: u64,
    /// Bytes of pages that the next checkpoint has to write.
    pub dirty_bytes: u64,
    /// Bytes of pages that left memory with changes, and that no checkpoint has yet.
    pub away_bytes: u64,
    /// Pages that were read from the disk since the node started.
    pub pages_read: u64,
    /// Pages that were written to leave memory since the node started.
    pub pages_written: u64,
    /// Versions of rows that are not the newest, kept for snapshots and for what may be taken back.
    pub undo_versions: u64,
    /// Bytes of them in memory.
    pub undo_bytes: u64,
    /// Bytes of them in scratch space on disk.
    pub undo_spilled_bytes: u64,
    /// The LSN of the published checkpoint.
    pub checkpoint: Lsn,
    /// How old the newest record in it is; none before the first.
    pub checkpoint_age: Option<Duration>,
    /// Bytes of the log after it, which a restart replays.
    pub log_bytes_since_checkpoint: u64,
    /// Bytes of the log that are kept.
    pub log_bytes: u64,
    /// Bytes that the log was given since the node started, with what frames its entries.
    pub log_appended_bytes: u64,
    /// How many entries, hard states and marks these are.
    pub log_appended_frames: u64,
    /// How often the log was synced since the node started.
    pub log_syncs: u64,
    /// Checkpoints since the node started that began because it was time.
    pub checkpoints_timed: u64,
    /// Those that began because somebody asked for one, or for the room that one makes.
    pub checkpoints_requested: u64,
    /// How long it took to write them.
    pub checkpoint_write_time: Duration,
    /// Bytes of the trees' file.
    pub file_bytes: u64,
    /// Bytes in it that are free.
    pub free_bytes: u64,
}

/// Says how large things are.
pub trait StorageMonitor: Send + Sync {
    /// How large a tree is on this node now, whatever a snapshot shows of it; none if there is none.
    fn tree_size(&self, tree: TreeId) -> Option<TreeSize>;

    /// What this node's replicas of groups have in memory and on disk.
    fn storage(&self) -> Vec<StorageStatus>;
}
