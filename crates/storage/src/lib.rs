//! What a group keeps on disk: its log, and its trees as of a checkpoint.
//!
//! Two parts that know nothing of each other, and nothing of SQL or Raft:
//!
//! - [`log::Log`]: segments of frames, appended only, made durable by one fsync at a time. The log
//!   is the only thing that a commit waits for.
//! - [`Store`]: B+trees with the newest version of a row in place and older ones in an undo store.
//!   It has no log of its own: what it lost in a crash is applied again from the group's log,
//!   from the checkpoint's LSN on.
//!
//! ```text
//!   append, write, sync                     apply, take_back, release       get, scan
//!          │                                        │                          │
//!      ┌───▼───┐  segments                    ┌─────▼──────────────────────────▼──┐
//!      │  Log  │  00000001.seg …              │ trees ─ pages ─ undo store        │
//!      └───────┘                              └──────────────┬────────────────────┘
//!                                       checkpoint at one LSN │ copy-on-write
//!                                             "store": superblocks, pages, page map
//! ```
//!
//! Both belong to one group of one cluster ([`Owner`]); files of another are refused.
//!
//! # What it leaves out
//! Every page of a store stays in memory once it was read, and the undo store does not spill. The
//! interfaces of the page cache and the undo store do not assume either.

mod export;
pub mod log;
mod store;
#[cfg(test)]
mod testing;

pub use export::{Exporter, Importer};
pub use store::{Change, Read, Scanned, Store, StoreOptions};

use base::{GroupId, Lsn};

/// Whose files these are. Files of another cluster or group are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    /// The cluster, drawn at random when it was made.
    pub cluster: u64,
    /// The group.
    pub group: GroupId,
}

/// What a checkpoint is the state of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointInfo {
    /// The state is that of exactly this LSN.
    pub lsn: Lsn,
    /// What the caller gave to [`Store::start_checkpoint`].
    pub meta: Vec<u8>,
}
