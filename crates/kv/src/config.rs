//! What a group is told when it is opened, and whom it talks to outside this crate.

use std::sync::Arc;
use std::time::Duration;

use base::limits::UNCOMMITTED_BYTES_MAX;
use base::{Error, GroupId, Lsn, NodeId, Result, Term};
use storage::Room;

use crate::directory::Directory;
use crate::prepared::Prepared;

/// The newest entries of the log are in memory as far as this part of the pages' room goes.
const LOG_CACHE_SHARE: usize = 16;

/// They are so far at least, in bytes, and at most.
const LOG_CACHE_MIN: usize = 1 << 20;
const LOG_CACHE_MAX: usize = 32 << 20;

/// The usual heartbeat.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(50);

/// The usual election timeout.
pub const ELECTION_TIMEOUT: Duration = Duration::from_millis(300);

/// How often replicas are compared, where nobody says.
pub const CONSISTENCY_CHECK: Duration = Duration::from_secs(3_600);

/// The priority of a member for which nobody asked another.
pub const PRIORITY_USUAL: u32 = 100;

/// What tells a node's key from any other: the SHA-256 of the public key in its certificate
/// (SubjectPublicKeyInfo, RFC 7469 section 2.4). A renewed certificate of the same key has the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash(pub [u8; KEY_HASH_BYTES]);

/// Bytes of a [`KeyHash`].
pub const KEY_HASH_BYTES: usize = 32;

impl std::fmt::Display for KeyHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeyHash({self})")
    }
}

impl std::str::FromStr for KeyHash {
    type Err = Error;

    fn from_str(text: &str) -> Result<KeyHash> {
        let none = || Error::corrupted(format!("\"{text}\" is no hash of a key"));
        let mut hash = [0; KEY_HASH_BYTES];
        if text.len() != 2 * hash.len() || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(none());
        }
        for (index, byte) in hash.iter_mut().enumerate() {
            let digits = &text[2 * index..2 * index + 2];
            *byte = u8::from_str_radix(digits, 16).map_err(|_| none())?;
        }
        Ok(KeyHash(hash))
    }
}

/// The keys with which a member shows that it is this one. While it is given another, both count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keys {
    /// The one that it has shown; none until it has, and where nodes are not asked for certificates.
    pub noted: Option<KeyHash>,
    /// The one that it will show: once it does, it is the one, and the other counts no more.
    pub next: Option<KeyHash>,
}

impl Keys {
    /// Whether a key that was shown is the member's, or may become so.
    pub fn fit(&self, shown: KeyHash) -> bool {
        self.noted.is_none() || self.noted == Some(shown) || self.next == Some(shown)
    }

    /// Whether a key that fits is to be noted.
    pub fn is_news(&self, shown: KeyHash) -> bool {
        self.noted.is_none() || self.next == Some(shown)
    }

    /// The member has shown a key that is to be noted.
    pub fn note(&mut self, shown: KeyHash) {
        *self = Keys {
            noted: Some(shown),
            next: None,
        };
    }

    /// The member is to get another key. That which it has takes back what was said before.
    pub fn expect(&mut self, next: KeyHash) {
        match self.noted {
            None => self.noted = Some(next),
            Some(noted) => self.next = Some(next).filter(|next| *next != noted),
        }
    }
}

/// One member of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// The node.
    pub node: NodeId,
    /// Its name (`n1`, …), as in `synchronous_standby_names`.
    pub name: Arc<str>,
    /// Where it listens for other nodes, `ip:port`.
    pub peer_address: Arc<str>,
    /// Where it listens for clients, `ip:port`.
    pub sql_address: Arc<str>,
    /// Whether it votes; otherwise it is a learner.
    pub voter: bool,
    /// Where it stands: a data centre, a rack; empty if nobody said.
    pub zone: Arc<str>,
    /// Leaders go to the voter with the highest priority that is up to date.
    pub priority: u32,
    /// The keys with which it shows that it is this member.
    pub keys: Keys,
    /// In the first group: it is to be removed, and the others let it go before. This was committed
    /// when it was marked so. Setting anything of it takes that back.
    pub leaves: Option<Lsn>,
}

impl Member {
    /// As another group than the first has it: where a node is and by what it is known stands in the
    /// first alone.
    pub fn of_another_group(&self) -> Member {
        Member {
            node: self.node,
            name: self.name.clone(),
            voter: self.voter,
            zone: self.zone.clone(),
            priority: self.priority,
            ..Member::default()
        }
    }
}

/// One group as one of its nodes opens it.
#[derive(Clone, Debug)]
pub struct GroupConfig {
    /// The cluster, drawn at random when it was made; files of another are refused.
    pub cluster: u64,
    /// The group.
    pub group: GroupId,
    /// This node.
    pub node: NodeId,
    /// Its directory below the node's data directory.
    pub directory: String,
    /// The members when the group was founded, or when this node was added; this node included.
    /// Those that the log knows by now go first, but for their addresses.
    pub founded: Directory,
    /// What an operator may change.
    pub settings: GroupSettings,
    /// Room for `shared_buffers`, which all groups of the node share.
    pub room: Arc<Room>,
}

/// What an operator may change of a group.
#[derive(Clone, Debug)]
pub struct GroupSettings {
    /// `synchronous_standby_names`.
    pub synchronous_standby_names: Arc<str>,
    /// `quorate.standby_timeout`: a standby named that keeps others waiting for longer is given up.
    pub standby_timeout: Option<Duration>,
    /// How often a leader shows that it lives.
    pub heartbeat_interval: Duration,
    /// A follower that hears nothing for this long (and up to twice as long, drawn at random)
    /// stands for election.
    pub election_timeout: Duration,
    /// `quorate.checkpoint_log_size`: what a restart replays has so many bytes at most. A checkpoint
    /// begins when the log has grown by half as many since the last one …
    pub checkpoint_log_bytes: u64,
    /// `quorate.checkpoint_log_records`: … or by half as many records as this …
    pub checkpoint_log_records: u64,
    /// … or when this much time has passed and the log has grown at all …
    pub checkpoint_interval: Duration,
    /// `quorate.checkpoint_space`: … or when so many of a hundred pages of the trees have changed,
    /// which makes the file so much longer than its content.
    pub checkpoint_percent: u32,
    /// Log kept below a checkpoint by every replica, so that another that lags a little need not
    /// be sent a checkpoint.
    pub kept_log_bytes: u64,
    /// Log kept by the leader for replicas that are absent; beyond it they are rebuilt from a checkpoint.
    pub absent_log_bytes_max: u64,
    /// The size of one segment of the log.
    pub segment_bytes: u64,
    /// Trees are made of so many rows in line with other commits; of more, beside them.
    pub rows_built_in_line: usize,
    /// A transaction of more bytes is logged in chunks of so many.
    pub chunk_bytes: usize,
    /// `quorate.txn_mem`: what a transaction has written goes to scratch space when it takes more
    /// memory.
    pub txn_memory: usize,
    /// `quorate.max_inflight`: bytes of the log that are appended and not committed, at which every
    /// commit waits before it appends.
    pub max_inflight: usize,
    /// `shared_buffers`: bytes of pages in memory, of all groups of the node.
    pub cache_bytes: u64,
    /// `quorate.consistency_check`: how often the leader compares what the replicas hold; never if
    /// none.
    pub consistency_check: Option<Duration>,
}

impl GroupSettings {
    /// Bytes of the newest entries of the log that are kept in memory.
    pub fn log_cache_bytes(&self) -> usize {
        let share = self.cache_bytes as usize / LOG_CACHE_SHARE;
        share.clamp(LOG_CACHE_MIN, LOG_CACHE_MAX)
    }

    /// Room for the pages of all groups of a node.
    pub fn room(&self) -> Arc<Room> {
        Room::of(self.cache_bytes)
    }

    /// What all groups of a node together take at most, in bytes: pages and old versions.
    pub fn shared_bytes(&self) -> u64 {
        self.cache_bytes + self.cache_bytes / storage::UNDO_SHARE as u64
    }

    /// What each of them takes beside that, in bytes: the log, and what of it is appended and not
    /// yet committed or applied.
    pub fn own_bytes(&self) -> usize {
        self.log_cache_bytes() + self.max_inflight
    }
}

impl Default for GroupSettings {
    fn default() -> GroupSettings {
        GroupSettings {
            synchronous_standby_names: Arc::from(""),
            standby_timeout: None,
            heartbeat_interval: HEARTBEAT_INTERVAL,
            election_timeout: ELECTION_TIMEOUT,
            checkpoint_log_bytes: 256 << 20,
            checkpoint_log_records: 100_000,
            checkpoint_interval: Duration::from_secs(300),
            checkpoint_percent: 25,
            kept_log_bytes: 64 << 20,
            absent_log_bytes_max: 1 << 30,
            segment_bytes: 16 << 20,
            rows_built_in_line: 1_000,
            chunk_bytes: 64 << 10,
            txn_memory: 64 << 20,
            max_inflight: UNCOMMITTED_BYTES_MAX,
            // In tests, so few pages that something leaves memory all the time.
            cache_bytes: if cfg!(test) { 0 } else { 128 << 20 },
            consistency_check: Some(CONSISTENCY_CHECK),
        }
    }
}

/// Carries frames between the nodes of a cluster. Frames to one node arrive in order or, when a
/// connection breaks, not at all; none arrives twice or damaged.
pub trait Transport: Send + Sync {
    /// Hands a frame over, to leave with the next [`Transport::flush`]; never waits. It may be
    /// dropped.
    fn send(&self, to: NodeId, frame: Vec<u8>);

    /// These are the members from now on. Called with the group's latch held: it must not call the
    /// group.
    fn members(&self, directory: &Directory) {
        let _ = directory;
    }

    /// Whether what is sent to a member now would arrive, as far as the connection shows.
    fn is_connected(&self, node: NodeId) -> bool {
        let _ = node;
        true
    }

    /// Bytes that have been written to the connections to a member, framing included.
    fn sent_bytes(&self, node: NodeId) -> u64 {
        let _ = node;
        0
    }

    /// Whether every other member was asked at least once what it knows, whether it answered or not.
    fn has_asked_all(&self) -> bool {
        true
    }

    /// Lets everything leave that was handed over. Never waits; what a connection does not take at
    /// once leaves as soon as it does.
    fn flush(&self);
}

/// How a node begins to lead.
#[derive(Clone, Copy, Debug)]
pub struct Leads<'a> {
    /// The term.
    pub term: Term,
    /// Where its first entry stands.
    pub first: Lsn,
    /// Up to there the log is known to be committed.
    pub commit: Lsn,
    /// What is prepared, in the log of this leader: it holds the locks of that.
    pub prepared: &'a Prepared,
}

/// Told of what voids locks and snapshots. Called with the group's latch held: it must not call
/// the group.
pub trait Observer: Send + Sync {
    /// From now on this node leads, or does not. Locks and transactions of other terms are void;
    /// their commits will be refused with 40001.
    ///
    /// # Errors
    /// Why it cannot lead; it stops.
    fn leading(&self, leads: Option<Leads<'_>>) -> Result<()>;

    /// Entries above `to` were taken out of the log by the leader of `term`.
    fn cut(&self, term: Term, to: Lsn);

    /// What the leader of another group says of a transaction across groups. No latch is held.
    fn told(&self, from: GroupId, message: spanning::Message) {
        let _ = (from, message);
    }
}

/// An observer that does nothing.
impl Observer for () {
    fn leading(&self, _leads: Option<Leads<'_>>) -> Result<()> {
        Ok(())
    }

    fn cut(&self, _term: Term, _to: Lsn) {}
}
