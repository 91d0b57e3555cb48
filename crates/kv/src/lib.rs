//! A replicated key-value engine: groups made of consensus and storage, and transactions on them.
//!
//! [`group`] is one group on one node: its log, its trees, the sequencer through which every
//! commit goes, and the gate that says when a reply may leave.

pub mod apply;
pub mod config;
pub mod frame;
pub mod gate;
pub mod group;
pub mod locks;
pub mod record;
pub mod registry;
#[cfg(test)]
mod testing;
pub mod write_set;

pub use config::{GroupConfig, GroupSettings, Member, Observer, Transport};
pub use group::{CommitRequest, Group, Snapshot};
pub use record::{Change, RowChange};
