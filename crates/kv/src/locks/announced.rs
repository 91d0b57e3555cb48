//! Entries of exclusion constraints that transactions are about to commit, in order: what others
//! cannot see yet and must not pass by.
//!
//! ```text
//! A: announce 5│[1,4)   number 1     B: announce 5│[3,6)   number 2
//!                                    B looks: 1 is before 2, and overlaps: B waits for A's lock
//! A looks: nothing is before 1
//! A commits: its entry is in the tree, then its lock is gone; B looks again
//! ```
//! An announcement is a lock whose name says what is announced: the tree, then the entry's key, a
//! note of whoever announces, and the note's length. So whatever holds of locks holds of it: it goes
//! with a savepoint, is counted, ends with the term, and outlives its session and its leader in a
//! prepared transaction. Here those names are kept in their order besides, each with a number.
//!
//! # Why no two announcements pass each other
//! Each is numbered after its lock is held, and its owner looks after that. Of two, the one with the
//! higher number finds the other in here, unless that one's transaction has ended, when its rows are
//! in the trees or gone: so it is the trees that are looked at last. The one with the lower number
//! need not look for the other, so that two who come together do not wait for each other.
//!
//! # Many
//! A transaction that has announced [`ANNOUNCED_MAX`] entries announces a whole tree instead of each
//! further one: who comes later waits until it ends, whatever it brings.
//!
//! # Invariants
//! - A name is in here only while its lock is held or waited for. Who waits for an announcement holds
//!   its lock for a moment in a weaker mode, and has announced nothing.

use std::collections::BTreeMap;
use std::ops::Bound;

use base::engine::{Announced, LockWait, RowLock, Ticket};
use base::sync::Mutex;
use base::{Result, TreeId};

use super::modes::{Mode, Modes};
use super::{put_name, LockTable, Name, TxnLocks, TREE_BYTES};

/// Entries that one transaction announces one by one.
pub const ANNOUNCED_MAX: usize = if cfg!(test) { 8 } else { 1_000 };

/// What comes after the tree in the name of an announcement.
pub(super) const ANNOUNCED: u8 = 4;

const LENGTH_BYTES: usize = 4;

/// The announcements of a group's leader.
#[derive(Debug, Default)]
pub(super) struct Announcements(Mutex<Numbered>);

#[derive(Debug, Default)]
struct Numbered {
    next: u64,
    numbers: BTreeMap<Name, u64>,
}

impl Announcements {
    /// There is one of this name now, the last of all.
    fn add(&self, name: Name) {
        let mut numbered = self.0.lock();
        let number = numbered.next;
        numbered.next += 1;
        numbered.numbers.insert(name, number);
    }

    /// The lock of this name is no more.
    pub(super) fn removed(&self, name: &[u8]) {
        if is_announced(name) {
            self.0.lock().numbers.remove(name);
        }
    }

    fn number(&self, name: &[u8]) -> Option<u64> {
        self.0.lock().numbers.get(name).copied()
    }

    /// Those that begin so, and have lower numbers than this one.
    fn before(&self, beginning: &[u8], number: u64) -> Vec<Name> {
        let numbered = self.0.lock();
        let from = (Bound::Included(beginning), Bound::Unbounded);
        let names = numbered.numbers.range::<[u8], _>(from);
        let names = names.take_while(|(name, _)| name.starts_with(beginning));
        let names = names.filter(|(_, own)| **own < number);
        names.map(|(name, _)| name.clone()).collect()
    }
}

/// Whether a name is that of an announcement.
pub(super) fn is_announced(name: &[u8]) -> bool {
    name.get(TREE_BYTES) == Some(&ANNOUNCED)
}

/// The key and the note of an announcement; none if it is of a whole tree.
pub(super) fn parts(name: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = name.get(TREE_BYTES + 1..)?;
    let (rest, length) = rest.split_last_chunk::<LENGTH_BYTES>()?;
    let length = u32::from_be_bytes(*length) as usize;
    rest.split_at_checked(rest.len().checked_sub(length)?)
}

fn put_whole(name: &mut Vec<u8>, tree: TreeId) {
    put_name(name, tree, None);
    name.push(ANNOUNCED);
}

impl LockTable {
    /// Whether somebody else than this party's transaction has announced what that name says.
    fn is_announced_by_other(&self, name: &[u8], own: super::Owner) -> bool {
        let shard = self.shard(name);
        let lock = shard.locks.get(name);
        let others = lock.map_or(Modes::NONE, |lock| lock.held_by_others(own));
        others.covers(Mode::from(RowLock::Update))
    }
}

impl TxnLocks {
    /// Announces an entry of a tree, or, after many, the tree.
    ///
    /// # Errors
    /// As [`TxnLocks::row`].
    pub fn announce(&mut self, tree: TreeId, key: &[u8], note: &[u8]) -> Result<Ticket> {
        put_whole(&mut self.name, tree);
        if self.announced < ANNOUNCED_MAX {
            self.name.extend_from_slice(key);
            self.name.extend_from_slice(note);
            let length = (note.len() as u32).to_be_bytes();
            self.name.extend_from_slice(&length);
        }
        let mark = self.mark();
        self.acquire(Mode::from(RowLock::Update), LockWait::Block)?;
        let number = self.table.announced.number(&self.name);
        // Without one the term is over, and so is the transaction.
        let number = number.ok_or_else(crate::group::term_is_over)?;
        Ok(Ticket { number, mark })
    }

    /// What others have announced of a tree before a ticket, under keys that begin so.
    pub fn announced_before(&self, tree: TreeId, prefix: &[u8], ticket: Ticket) -> Vec<Announced> {
        let mut beginning = Vec::new();
        put_whole(&mut beginning, tree);
        let whole = beginning.clone();
        beginning.extend_from_slice(prefix);
        let all = &self.table.announced;
        let mut names = all.before(&beginning, ticket.number);
        let is_before = all.number(&whole).is_some_and(|own| own < ticket.number);
        if is_before && !prefix.is_empty() {
            names.push(whole.into());
        }
        names.retain(|name| self.table.is_announced_by_other(name, self.owner));
        let announced = names.iter().map(|name| Announced {
            name: name.to_vec(),
            note: parts(name).map(|parts| parts.1.to_vec()),
        });
        announced.collect()
    }

    /// Waits until whoever has announced something has ended, or has gone back.
    ///
    /// # Errors
    /// As [`TxnLocks::row`].
    pub fn wait_for_announced(&mut self, announced: &Announced) -> Result<()> {
        let mark = self.mark();
        self.name.clear();
        self.name.extend_from_slice(&announced.name);
        self.acquire(Mode::from(RowLock::KeyShare), LockWait::Block)?;
        self.rollback_to(mark);
        Ok(())
    }

    /// Gives up an announcement that was made last, unless it was there before.
    pub fn withdraw(&mut self, ticket: Ticket) {
        self.rollback_to(ticket.mark);
    }

    /// Notes what was granted, if it is an announcement.
    pub(super) fn note_announced(&mut self, name: &Name, mode: Mode) {
        if !is_announced(name) {
            return;
        }
        self.announced += 1;
        if mode == Mode::from(RowLock::Update) {
            self.table.announced.add(name.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use base::{Term, TxnId};

    use super::super::tests::{Clock, TestEnv};
    use super::super::Party;
    use super::*;

    const TREE: TreeId = TreeId(16_384);

    fn world() -> Arc<LockTable> {
        let table = Arc::new(LockTable::new(Arc::new(TestEnv(Arc::<Clock>::default()))));
        table.begin_term(Term(1));
        table
    }

    fn transaction(table: &Arc<LockTable>, id: u64) -> TxnLocks {
        TxnLocks::new(table.clone(), Party::Transaction(TxnId(id)))
    }

    fn notes(locks: &TxnLocks, prefix: &[u8], ticket: Ticket) -> Vec<Option<Vec<u8>>> {
        let announced = locks.announced_before(TREE, prefix, ticket);
        announced.into_iter().map(|other| other.note).collect()
    }

    #[test]
    fn the_later_one_finds_the_earlier() -> Result<()> {
        let table = world();
        let (mut a, mut b) = (transaction(&table, 1), transaction(&table, 2));
        let first = a.announce(TREE, b"5/a", b"note")?;
        let second = b.announce(TREE, b"5/b", b"other")?;
        assert_eq!(notes(&a, b"5", first), []);
        assert_eq!(notes(&b, b"5", second), [Some(b"note".to_vec())]);
        assert_eq!(notes(&b, b"6", second), []);
        // Of its own it finds none, and what is announced again stays where it was.
        let again = a.announce(TREE, b"5/a", b"note")?;
        assert_eq!(again.number, first.number);
        let further = a.announce(TREE, b"5/c", b"")?;
        assert_eq!(notes(&a, b"5", further), [Some(b"other".to_vec())]);
        a.withdraw(further);
        assert_eq!(table.announced.0.lock().numbers.len(), 2);
        a.withdraw(again);
        assert_eq!(table.announced.0.lock().numbers.len(), 2);
        a.release_all();
        assert_eq!(notes(&b, b"5", second), []);
        b.release_all();
        assert_eq!(table.announced.0.lock().numbers.len(), 0);
        assert!(table.is_empty());
        Ok(())
    }

    #[test]
    fn what_is_announced_again_after_a_savepoint_is_later() -> Result<()> {
        let table = world();
        let (mut a, mut b) = (transaction(&table, 1), transaction(&table, 2));
        let mark = a.mark();
        a.announce(TREE, b"5/a", b"a")?;
        a.rollback_to(mark);
        let second = b.announce(TREE, b"5/b", b"b")?;
        assert_eq!(notes(&b, b"5", second), []);
        let again = a.announce(TREE, b"5/a", b"a")?;
        assert_eq!(notes(&a, b"5", again), [Some(b"b".to_vec())]);
        Ok(())
    }

    #[test]
    fn many_are_a_whole_tree() -> Result<()> {
        let table = world();
        let (mut a, mut b) = (transaction(&table, 1), transaction(&table, 2));
        let early = b.announce(TREE, b"7/b", b"b")?;
        for key in 0..2 * ANNOUNCED_MAX as u8 {
            a.announce(TREE, &[b'5', key], b"a")?;
        }
        assert_eq!(a.held.len(), ANNOUNCED_MAX + 1);
        let whole = a.announce(TREE, b"7/a", b"a")?;
        assert_eq!(notes(&a, b"7", whole), [Some(b"b".to_vec())]);
        assert_eq!(notes(&b, b"7", early), []);
        let late = b.announce(TREE, b"7/c", b"b")?;
        assert_eq!(notes(&b, b"7", late), [None]);
        assert_eq!(notes(&b, b"", late).len(), ANNOUNCED_MAX + 1);
        a.release_all();
        assert_eq!(notes(&b, b"7", late), []);
        Ok(())
    }

    #[test]
    fn a_prepared_transaction_has_announced_under_the_next_leader_too() -> Result<()> {
        let table = world();
        let mut a = transaction(&table, 1);
        a.announce(TREE, b"5/a", b"note")?;
        let listed = a.list()?;
        table.clear();
        assert_eq!(table.announced.0.lock().numbers.len(), 0);
        table.begin_term(Term(2));
        let mut prepared = transaction(&table, 3);
        prepared.take_listed(&listed)?;
        let mut b = transaction(&table, 2);
        let ticket = b.announce(TREE, b"5/b", b"")?;
        assert_eq!(notes(&b, b"5", ticket), [Some(b"note".to_vec())]);
        Ok(())
    }
}
