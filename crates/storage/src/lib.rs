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

mod apply;
mod build;
mod bulk;
mod cache;
mod check;
mod checkpoint;
mod export;
mod file;
pub mod log;
#[cfg(test)]
mod model;
mod owner;
mod page;
mod pager;
mod pages;
mod reading;
mod room;
mod scratch;
mod size;
mod split;
mod store;
mod superblock;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod tree;
mod undo;

pub use check::{check, StoreReport};
pub use checkpoint::SPENT_ALL;
pub use export::{Exporter, Importer};
pub use owner::Owner;
pub use pager::{CacheStats, CACHE_PAGES_MIN};
pub use reading::{Missing, Visiting};
pub use room::{Room, UNDO_SHARE};
pub use scratch::{Run, Scratch};
pub use store::{Change, Read, Scanned, Store, StoreOptions};
pub use tree::{AsOf, Gap, SCAN_BYTES_MAX, SCAN_LEAVES_MAX};
pub use undo::UndoStats;

use base::{sync, Lsn};

/// What a checkpoint is the state of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointInfo {
    /// The state is that of exactly this LSN.
    pub lsn: Lsn,
    /// What the caller gave to [`Store::start_checkpoint`].
    pub meta: Vec<u8>,
}
