//! The figures of a group at one replica, for status pages and `pg_stat_replication`.

use std::time::Duration;

use base::env::Instant;
use base::{Lsn, NodeId, Term};

use crate::types::{Membership, Role};

/// What one replica knows of its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// This replica's node.
    pub node: NodeId,
    /// Its role.
    pub role: Role,
    /// Its term.
    pub term: Term,
    /// The leader that it knows.
    pub leader: Option<NodeId>,
    /// Its commit index.
    pub commit: Lsn,
    /// The last entry of its log.
    pub last: Lsn,
    /// Its operating system has the log up to here.
    pub received: Lsn,
    /// Its disk has the log up to here.
    pub flushed: Lsn,
    /// Its trees show the log up to here.
    pub applied: Lsn,
    /// Who takes part.
    pub membership: Membership,
    /// The other replicas, ascending; none unless this one leads.
    pub peers: Vec<PeerStatus>,
}

/// What a leader knows of another replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerStatus {
    /// The node.
    pub node: NodeId,
    /// Whether it votes.
    pub voter: bool,
    /// Whether it was heard of within an election timeout.
    pub active: bool,
    /// How it is being brought up to date.
    pub state: PeerState,
    /// Sent up to here.
    pub sent: Lsn,
    /// Received up to here.
    pub received: Lsn,
    /// Flushed up to here.
    pub flushed: Lsn,
    /// Applied up to here.
    pub applied: Lsn,
    /// When it was last heard of in this term.
    pub heard: Option<Instant>,
    /// What it last said of itself.
    pub condition: Condition,
}

/// How fit a replica is to lead, as it says with each answer to a leader. Times are in whole
/// microseconds, as they travel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// The longest of the recent syncs of its log, the one that is under way as far as it has come.
    pub slowest_sync: Duration,
    /// There is no space for more of the log.
    pub is_full: bool,
    /// For so long of late it should have run, and did not.
    pub starved: Duration,
}

/// How a leader brings a replica up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerState {
    /// It finds out where the logs part.
    Probe,
    /// It streams.
    Replicate,
    /// It waits for a checkpoint to be fetched.
    Snapshot,
}
