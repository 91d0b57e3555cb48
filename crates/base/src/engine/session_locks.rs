//! Locks that have to do with sessions rather than with rows: advisory locks, and who waits for
//! whom.
//!
//! A session is known to the engine by the number that its client sees as `pg_backend_pid()`. All
//! locks of one session, its transaction's and its own, are never in each other's way.

use std::time::Duration;

use super::LockWait;
use crate::error::Result;
use crate::ids::{SessionId, Timestamp, TreeId};

/// The name of an advisory lock (PostgreSQL 15 manual, section 9.27.10). One number of 64 bits and
/// two numbers of 32 bits are different spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AdvisoryKey {
    /// The OID of the database; the same numbers name other locks in another one.
    pub database: u32,
    /// The first number, or the upper half of the only one.
    pub class: u32,
    /// The second number, or the lower half of the only one.
    pub object: u32,
    /// Whether it is two numbers.
    pub two: bool,
}

/// How an advisory lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AdvisoryMode {
    /// Together with other sessions that want the same.
    Shared,
    /// Alone.
    Exclusive,
}

/// What a lock is on, for `pg_locks`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockTarget {
    /// A table, or whatever has a tree.
    Tree(TreeId),
    /// A row, or a key of a unique index.
    Row(TreeId, Vec<u8>),
    /// An advisory lock.
    Advisory(AdvisoryKey),
}

/// A lock that is held or waited for, for `pg_locks`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockInfo {
    /// What is locked.
    pub target: LockTarget,
    /// The session, where it is one's.
    pub session: Option<SessionId>,
    /// The mode, as PostgreSQL names it.
    pub mode: &'static str,
    /// Whether it is held; if not, it is waited for.
    pub granted: bool,
    /// Since when it is waited for (wall clock), where that is known.
    pub waits_since: Option<Timestamp>,
}

/// The advisory locks that a session holds beyond its transactions. Dropping it gives them up.
pub trait SessionLocks {
    /// Bounds each wait; zero is no bound.
    fn set_lock_timeout(&mut self, timeout: Duration);

    /// Locks once more; false when another has it and [`LockWait::Skip`] was asked for.
    ///
    /// # Errors
    /// 55P03, 40P01, an interrupt; 57P01 when a failover has taken the locks held until now.
    fn lock(&mut self, key: AdvisoryKey, mode: AdvisoryMode, wait: LockWait) -> Result<bool>;

    /// Unlocks once; false when it is not held in that mode.
    fn unlock(&mut self, key: AdvisoryKey, mode: AdvisoryMode) -> bool;

    /// Gives up everything.
    fn unlock_all(&mut self);

    /// Whether nothing is held.
    fn is_empty(&self) -> bool;

    /// Fails when a failover has taken what is held: the session must not go on as if it held it.
    ///
    /// # Errors
    /// 57P01.
    fn check(&self) -> Result<()>;
}

/// Takes advisory locks for a transaction.
pub trait AdvisoryLocking {
    /// Locks until the end of the transaction; false when another has it and [`LockWait::Skip`] was
    /// asked for.
    ///
    /// # Errors
    /// 55P03, 40P01, an interrupt.
    fn lock_advisory(
        &mut self,
        key: AdvisoryKey,
        mode: AdvisoryMode,
        wait: LockWait,
    ) -> Result<bool>;
}

/// Gives sessions locks of their own, and says who holds what and who waits for whom.
pub trait LockManager: Send + Sync {
    /// The advisory locks of a session that holds none yet.
    ///
    /// # Errors
    /// 0A000 on a standby.
    fn session_locks(&self, session: SessionId) -> Result<Box<dyn SessionLocks>>;

    /// The sessions that a session waits for in what this node leads, each once; none when it waits for
    /// no lock there.
    fn blockers(&self, session: SessionId) -> Vec<SessionId>;

    /// The same, wherever it waits.
    ///
    /// # Errors
    /// The interrupt that ended the wait for an answer of other nodes.
    fn blockers_everywhere(&self, session: SessionId) -> Result<Vec<SessionId>> {
        Ok(self.blockers(session))
    }

    /// The sessions whose transactions a DEFERRABLE transaction of this session waits for.
    fn snapshot_blockers(&self, session: SessionId) -> Vec<SessionId>;

    /// All locks that are held or waited for, wherever that is; those of groups without a leader are left
    /// out.
    ///
    /// # Errors
    /// As [`LockManager::blockers_everywhere`].
    fn lock_infos(&self) -> Result<Vec<LockInfo>>;
}
