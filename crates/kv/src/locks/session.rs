//! The advisory locks that a session holds beyond its transactions.
//!
//! As in PostgreSQL, a lock taken n times must be given up n times, mode by mode; rolling back a
//! transaction gives none of them up. They die with the leader's term like all locks; a session
//! that held one then must end, because its client still believes that it holds it.

use std::sync::Arc;
use std::time::Duration;

use base::engine::{AdvisoryKey, AdvisoryMode, LockWait, SessionLocks};
use base::hash::HashMap;
use base::memory::Reservation;
use base::{coro, Error, ErrorClass, Result, SessionId, SqlState, Term};

use super::modes::{Mode, Modes};
use super::owner::Owner;
use super::{lock_bytes, put_advisory, Ask, LockTable, Taken, GIVE_UP_WORK, LOCKS};

/// The advisory locks of one session.
#[derive(Debug)]
pub struct AdvisoryLocks {
    table: Arc<LockTable>,
    owner: Owner,
    /// The term of all that is held.
    term: Option<Term>,
    timeout: Duration,
    /// How often each is held in each mode.
    counts: HashMap<(AdvisoryKey, AdvisoryMode), u64>,
    /// The memory of what is counted.
    memory: Reservation,
}

impl AdvisoryLocks {
    /// Holds nothing yet.
    pub fn new(table: Arc<LockTable>, session: SessionId) -> AdvisoryLocks {
        AdvisoryLocks {
            table,
            owner: Owner::lasting(session),
            term: None,
            timeout: Duration::ZERO,
            counts: HashMap::default(),
            memory: Reservation::of(LOCKS),
        }
    }

    fn count(&self, key: AdvisoryKey, mode: AdvisoryMode) -> u64 {
        self.counts.get(&(key, mode)).copied().unwrap_or(0)
    }

    fn acquire(&mut self, name: &[u8], mode: AdvisoryMode, wait: LockWait) -> Result<bool> {
        let ask = Ask {
            name,
            kept: None,
            mode: mode.into(),
            wait,
        };
        let taken = self
            .table
            .acquire(self.owner, &mut self.term, ask, self.timeout)?;
        Ok(!matches!(taken, Taken::Skipped))
    }

    /// Gives up everything, in turns: what is counted is what is held.
    fn give_up_all(&mut self) {
        let mut keys: Vec<_> = self.counts.keys().map(|(key, _)| *key).collect();
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            // What is given up half is not to be cancelled.
            coro::work_uninterrupted(GIVE_UP_WORK);
            for mode in [AdvisoryMode::Shared, AdvisoryMode::Exclusive] {
                self.counts.remove(&(key, mode));
            }
            self.reduce(key);
        }
        self.memory = Reservation::of(LOCKS);
        self.term = None;
    }

    /// Makes the table hold what is still counted of a lock.
    fn reduce(&mut self, key: AdvisoryKey) {
        let left = [AdvisoryMode::Shared, AdvisoryMode::Exclusive]
            .into_iter()
            .filter(|mode| self.count(key, *mode) > 0)
            .fold(Modes::NONE, |modes, mode| modes.with(Mode::from(mode)));
        let mut name = Vec::new();
        put_advisory(&mut name, key);
        let owner = self.owner;
        self.table
            .change(&name, |lock, served| lock.give_up(owner, left, served));
        if self.counts.is_empty() {
            self.term = None;
        }
    }
}

impl SessionLocks for AdvisoryLocks {
    fn set_lock_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    fn lock(&mut self, key: AdvisoryKey, mode: AdvisoryMode, wait: LockWait) -> Result<bool> {
        self.check()?;
        let mut name = Vec::new();
        put_advisory(&mut name, key);
        let (bytes, before) = (lock_bytes(&name), self.counts.len());
        self.memory.grow(bytes)?;
        let taken = self.acquire(&name, mode, wait);
        if taken == Ok(true) {
            *self.counts.entry((key, mode)).or_default() += 1;
        }
        if self.counts.len() == before {
            self.memory.shrink(bytes);
        }
        if self.counts.is_empty() {
            self.term = None;
        }
        taken
    }

    fn unlock(&mut self, key: AdvisoryKey, mode: AdvisoryMode) -> bool {
        match self.counts.get_mut(&(key, mode)) {
            None => return false,
            Some(count) if *count > 1 => {
                *count -= 1;
                return true;
            }
            Some(_) => self.counts.remove(&(key, mode)),
        };
        self.reduce(key);
        let mut name = Vec::new();
        put_advisory(&mut name, key);
        self.memory.shrink(lock_bytes(&name));
        true
    }

    fn unlock_all(&mut self) {
        self.give_up_all();
    }

    fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    fn check(&self) -> Result<()> {
        if self.counts.is_empty() || self.table.term() == self.term {
            return Ok(());
        }
        Err(Error::of_class(
            ErrorClass::Session,
            SqlState::ADMIN_SHUTDOWN,
            "terminating connection because a failover took its advisory locks",
        ))
    }
}

impl Drop for AdvisoryLocks {
    fn drop(&mut self) {
        self.give_up_all();
    }
}

#[cfg(test)]
mod tests {
    use base::engine::RowLock;
    use base::TreeId;

    use super::super::tests::{Clock, TestEnv};
    use super::super::{Acquired, Party, TxnLocks};
    use super::*;

    const KEY: AdvisoryKey = AdvisoryKey {
        database: 5,
        class: 0,
        object: 7,
        two: false,
    };
    const SHARED: AdvisoryMode = AdvisoryMode::Shared;
    const EXCLUSIVE: AdvisoryMode = AdvisoryMode::Exclusive;
    const ANN: SessionId = SessionId(1);
    const BOB: SessionId = SessionId(2);

    fn table() -> Arc<LockTable> {
        let table = LockTable::new(Arc::new(TestEnv(Arc::new(Clock::default()))));
        table.begin_term(Term(1));
        Arc::new(table)
    }

    fn tries(locks: &mut AdvisoryLocks, mode: AdvisoryMode) -> bool {
        locks.lock(KEY, mode, LockWait::Skip).unwrap()
    }

    #[test]
    fn a_lock_is_counted_in_each_mode() {
        let table = table();
        let mut ann = AdvisoryLocks::new(table.clone(), ANN);
        let mut bob = AdvisoryLocks::new(table.clone(), BOB);
        assert!(tries(&mut ann, EXCLUSIVE) && tries(&mut ann, EXCLUSIVE));
        assert!(tries(&mut ann, SHARED));
        assert!(ann.unlock(KEY, EXCLUSIVE));
        assert!(!tries(&mut bob, SHARED), "once more than it was given up");
        assert!(ann.unlock(KEY, EXCLUSIVE));
        assert!(!ann.unlock(KEY, EXCLUSIVE));
        assert!(tries(&mut bob, SHARED) && !tries(&mut bob, EXCLUSIVE));
        ann.unlock_all();
        assert!(tries(&mut bob, EXCLUSIVE));
        drop(bob);
        assert!(table.is_empty());
    }

    #[test]
    fn a_transaction_of_the_session_is_not_in_its_way() {
        let table = table();
        let mut lasting = AdvisoryLocks::new(table.clone(), ANN);
        let mut other = AdvisoryLocks::new(table.clone(), BOB);
        let mut txn = TxnLocks::new(table.clone(), Party::Session(ANN));
        let granted = txn.advisory(KEY, EXCLUSIVE, LockWait::Skip);
        assert_eq!(granted, Ok(Acquired::Granted));
        assert!(tries(&mut lasting, EXCLUSIVE));
        drop(txn);
        assert!(!tries(&mut other, SHARED), "the session still has it");
        assert!(lasting.unlock(KEY, EXCLUSIVE));
        let mut txn = TxnLocks::new(table.clone(), Party::Session(ANN));
        assert!(tries(&mut lasting, SHARED));
        txn.advisory(KEY, EXCLUSIVE, LockWait::Skip).unwrap();
        lasting.unlock_all();
        assert!(!tries(&mut other, SHARED), "the transaction still has it");
        drop(txn);
        assert!(tries(&mut other, SHARED));
    }

    #[test]
    fn a_session_ends_when_a_failover_took_its_locks() {
        let table = table();
        let mut ann = AdvisoryLocks::new(table.clone(), ANN);
        assert!(tries(&mut ann, SHARED));
        ann.check().unwrap();
        table.begin_term(Term(2));
        let lost = ann.check().unwrap_err();
        assert_eq!(lost.state(), SqlState::ADMIN_SHUTDOWN);
        assert_eq!(lost.class(), ErrorClass::Session);
        assert!(ann.lock(KEY, SHARED, LockWait::Skip).is_err());
        // Who holds none goes on.
        let mut bob = AdvisoryLocks::new(table.clone(), BOB);
        assert!(tries(&mut bob, EXCLUSIVE));
        drop(ann);
        let mut txn = TxnLocks::new(table, Party::Session(BOB));
        let row = txn.row(TreeId(9), b"k", RowLock::Update, LockWait::NoWait);
        assert_eq!(row, Ok(Acquired::Granted));
    }
}
