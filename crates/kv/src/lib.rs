//! A replicated key-value engine: groups made of consensus and storage, and transactions on them.
//!
//! [`group`] is one group on one node: its log, its trees, the sequencer through which every
//! commit goes, and the gate that says when a reply may leave. [`engine`] is what SQL talks to:
//! transactions ([`txn`]), which keep what they write to themselves ([`write_set`]) and lock it
//! ([`locks`]).

pub mod apply;
pub mod build;
pub mod bulk;
pub mod catalog;
pub mod check;
pub mod config;
pub mod contents;
pub mod directory;
pub mod engine;
pub mod followed;
pub mod frame;
pub mod gate;
#[cfg(test)]
mod gate_tests;
pub mod group;
pub mod groups;
pub mod history;
mod listener;
pub mod locks;
#[cfg(test)]
mod model;
pub mod notifications;
mod overlay;
pub mod parts;
pub mod prepared;
pub mod record;
pub mod registry;
pub mod serial;
pub mod standby;
pub mod starts;
mod temp;
#[cfg(test)]
mod testing;
pub mod txn;
pub mod write_set;

pub use config::{
    GroupConfig, GroupSettings, KeyHash, Keys, Leads, Member, Observer, Transport, KEY_HASH_BYTES,
    PRIORITY_USUAL,
};
pub use directory::Directory;
pub use engine::KvEngine;
pub use group::{CommitRequest, Group, Leadership, Snapshot, Unwelcome};
pub use raft::planted;
pub use record::{Change, RowChange};
pub use starts::{Start, StartLine};

use base::sync;
