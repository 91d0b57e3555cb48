//! How the cluster is, as one node sees it: what status pages and `pg_stat_replication` show.

use std::sync::Arc;
use std::time::Duration;

use crate::ids::{GroupId, Lsn, NodeId, Term, Timestamp, TreeId};
use crate::key::Key;

/// Sees the cluster from one node.
pub trait ClusterMonitor: Send + Sync {
    /// The cluster as this node sees it.
    fn status(&self) -> ClusterStatus;

    /// The same of each group that this node has, that of [`ClusterMonitor::status`] first.
    fn groups(&self) -> Vec<ClusterStatus> {
        vec![self.status()]
    }

    /// Whether this node does not lead, and what sessions of this engine read is a standby's.
    fn is_standby(&self) -> bool;

    /// The time of the newest record that this node has applied; none where sessions read what they
    /// have written themselves.
    fn replayed_until(&self) -> Option<Timestamp>;
}

/// The cluster as one node sees it.
#[derive(Clone, Debug, Default)]
pub struct ClusterStatus {
    /// The group.
    pub group: GroupId,
    /// This node.
    pub node: NodeId,
    /// The leader, if known.
    pub leader: Option<NodeId>,
    /// The current term.
    pub term: Term,
    /// The commit index.
    pub commit: Lsn,
    /// How many times an operator began the group anew, and one.
    pub incarnation: u64,
    /// The position after which that began.
    pub begun_after: Lsn,
    /// Where leaders are preferred; empty for nowhere.
    pub leader_zone: Arc<str>,
    /// A change of the members is under way.
    pub changing: bool,
    /// The `synchronous_standby_names` in force.
    pub synchronous_standby_names: Arc<str>,
    /// Replies wait, for as long as too few of those that are named are connected. Known on the
    /// leader only.
    pub lacks_standbys: bool,
    /// Every member, by id. Figures of others are known on the leader only.
    pub replicas: Vec<ReplicaStatus>,
    /// What comparing the replicas has shown.
    pub consistency: Consistency,
}

/// What comparing the replicas of a group has shown, as the leader has told it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Consistency {
    /// A comparison is under way.
    pub is_running: bool,
    /// When the last one ended.
    pub checked_at: Option<Timestamp>,
    /// Rows and entries that it has compared, or the one under way so far.
    pub rows: u64,
    /// Where replicas differ.
    pub inconsistencies: Vec<Inconsistency>,
}

/// A range of keys in which replicas differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inconsistency {
    /// The tree; 0 stands for the list of trees.
    pub tree: TreeId,
    /// From this key on; empty for the first of the tree.
    pub from: Key,
    /// Up to this one, which is not among them; none for the end of the tree.
    pub to: Option<Key>,
    /// The position of which that was said.
    pub lsn: Lsn,
    /// Who differs: from the majority of those compared, or from one another if none agrees.
    pub deviating: Vec<NodeId>,
    /// The majority that agrees; nobody if none does.
    pub agreeing: Vec<NodeId>,
}

impl Inconsistency {
    /// Whether it says of the same place and nodes what another says.
    pub fn is_like(&self, other: &Inconsistency) -> bool {
        let place = |one: &Inconsistency| (one.tree, one.from.clone(), one.deviating.clone());
        place(self) == place(other)
    }

    /// The same without the keys, which are data: for who may not see those.
    pub fn without_keys(&self) -> Inconsistency {
        Inconsistency {
            from: Key::new(),
            to: None,
            ..self.clone()
        }
    }

    /// It in words.
    pub fn words(&self, name: impl Fn(NodeId) -> String) -> String {
        let names = |nodes: &[NodeId]| {
            let names: Vec<String> = nodes.iter().map(|node| name(*node)).collect();
            match names.split_last() {
                Some((last, [])) => last.clone(),
                Some((last, others)) => format!("{} and {last}", others.join(", ")),
                None => String::new(),
            }
        };
        let who = names(&self.deviating);
        let verb = if self.deviating.len() == 1 {
            "differs"
        } else {
            "differ"
        };
        let from = match self.agreeing.is_empty() {
            true => String::new(),
            false => format!(" from {}", names(&self.agreeing)),
        };
        let range = range_words(self.tree, &self.from, self.to.as_deref());
        format!("{who} {verb}{from} at LSN {}: {range}", self.lsn)
    }
}

/// A range of a tree's keys in words.
pub fn range_words(tree: TreeId, from: &[u8], to: Option<&[u8]>) -> String {
    let hex = |key: &[u8]| -> String { key.iter().map(|byte| format!("{byte:02x}")).collect() };
    match (from.is_empty(), to) {
        _ if tree == TreeId(0) => "the list of trees".to_owned(),
        (true, None) => format!("tree {tree}"),
        (true, Some(to)) => format!("tree {tree}, keys before {}", hex(to)),
        (false, None) => format!("tree {tree}, keys from {} on", hex(from)),
        (false, Some(to)) => format!("tree {tree}, keys from {} to before {}", hex(from), hex(to)),
    }
}

/// One member of a group.
#[derive(Clone, Debug, Default)]
pub struct ReplicaStatus {
    /// The node.
    pub node: NodeId,
    /// Its name (`n1`, …).
    pub name: Arc<str>,
    /// Where it listens for other nodes, `ip:port`.
    pub peer_address: Arc<str>,
    /// Where it listens for clients, `ip:port`.
    pub sql_address: Arc<str>,
    /// Whether it votes.
    pub voter: bool,
    /// It is to be removed, once all groups have let it go.
    pub leaves: bool,
    /// Where it stands; empty if nobody said.
    pub zone: Arc<str>,
    /// Leaders go to the voter with the highest priority.
    pub priority: u32,
    /// Whether it has been heard of lately.
    pub connected: bool,
    /// Since when it has been connected (wall clock), where known.
    pub connected_since: Option<Timestamp>,
    /// The newest report's wall-clock time, where there is one.
    pub reported_at: Option<Timestamp>,
    /// The newest position sent to it.
    pub sent: Lsn,
    /// Bytes that this node has written to its connections to that one since it started, before
    /// encryption.
    pub sent_bytes: u64,
    /// The newest position in its operating system.
    pub received: Lsn,
    /// The newest position on its disk.
    pub flushed: Lsn,
    /// The newest position that it has applied.
    pub applied: Lsn,
    /// Time between a local flush here and its report that it had written, flushed, applied it;
    /// none while it has nothing to catch up on.
    pub write_lag: Option<Duration>,
    /// See `write_lag`.
    pub flush_lag: Option<Duration>,
    /// See `write_lag`.
    pub replay_lag: Option<Duration>,
    /// Bytes that the log may still grow by before it no longer keeps what this replica lacks; none
    /// when that is so already, and it will be sent a checkpoint.
    pub log_left: Option<u64>,
    /// Its place in `synchronous_standby_names`, 0 for none.
    pub sync_priority: u32,
    /// Who waits for it.
    pub sync_state: SyncState,
}

/// Whether commits wait for a standby, as `pg_stat_replication` says it; *given up* is not one of
/// PostgreSQL's words, because it has no such state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SyncState {
    /// None does.
    #[default]
    Async,
    /// None does, but would if another were away.
    Potential,
    /// All do.
    Sync,
    /// It is one of several of which enough are waited for.
    Quorum,
    /// None does beside the majority, although it is named: it kept others waiting for longer than
    /// `quorate.standby_timeout`.
    GivenUp,
}

impl SyncState {
    /// All of them.
    pub const ALL: [SyncState; 5] = [
        SyncState::Async,
        SyncState::Potential,
        SyncState::Sync,
        SyncState::Quorum,
        SyncState::GivenUp,
    ];

    /// As the view shows it.
    pub fn name(self) -> &'static str {
        match self {
            SyncState::Async => "async",
            SyncState::Potential => "potential",
            SyncState::Sync => "sync",
            SyncState::Quorum => "quorum",
            SyncState::GivenUp => "given up",
        }
    }
}
