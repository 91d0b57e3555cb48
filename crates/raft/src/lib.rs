//! The consensus of one group, as `step(input) → outputs`: no clock, disk, socket or random source.
//!
//! [`Consensus`] wraps the consensus library's state machine and adds what the library lacks: a
//! lease that checks time, votes withheld after a restart, watermarks of what is received and
//! applied, timeouts drawn from a seed, and messages in an encoding of our own.
//!
//! # One commit at a leader
//! ```text
//! propose(term, data) ─► Position           the LSN is final within this term
//! ready() ─► Ready { messages, entries, … } the messages leave before the local fsync
//!   log.append(entries)                     into memory; replaces the tail if it overlaps
//! advance(number)                           Raft may now read the entries from the log
//!   … write … written(number)               counts for `remote_write`
//!   … fsync … persisted(number)             counts for the commit index
//! step(from, message, now)                  followers' answers; commit_index() moves
//! satisfied(level, standbys) ─► Lsn         what the gate may let out
//! ```
//!
//! # Invariants
//! * An LSN is the index that Raft gave the entry.
//! * Nothing leaves that carries a term or vote which is not durable; no answer that claims a
//!   flush leaves before it; the answer to a heartbeat waits for no flush of entries.
//! * At most one leader of a group holds a lease at any time (the argument is in [`lease`]).
//! * Logs match only where the [chain](base::chain) of all entries before does, not by term and LSN
//!   alone; a replica whose history contradicts that of a leader stops.
//! * A group's configuration takes effect at commit only.
//!
//! # What it leaves out
//! Entries are opaque. Applying them, which happens on append, is the group driver's business, and
//! the library's own applied index only follows what is committed. A snapshot message carries no
//! data: the driver fetches the checkpoint before the message reaches the library.

mod adapter;
mod consensus;
pub mod lease;
mod message;
pub mod planted;
pub mod standby_names;
mod status;
mod types;
pub mod watermarks;

pub use consensus::{
    Config, Consensus, Laziness, Ready, State, ELECTION_TIMEOUT, HEARTBEAT_INTERVAL,
};
pub use lease::Lease;
pub use message::{Envelope, Message, RaftMessage};
pub use standby_names::{Listed, StandbyNames, Standbys};
pub use status::{Condition, PeerState, PeerStatus, Status};
pub use types::{
    ConfChange, Entry, EntryKind, HardState, LogView, Membership, Reconfiguration, Recovered, Role,
    SnapshotMeta, SnapshotOffer, CONTEXT_BYTES_MAX, MEMBERS_MAX,
};
