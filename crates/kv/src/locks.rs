//! Who may change which row or table: the lock table of a group's leader.
//!
//! Locks live in the leader's memory and die with its leadership. A lock's name is a tree, or a
//! key of a tree; rows are locked in PostgreSQL's four strengths, tables in its eight modes. Keys
//! of unique indexes are locked like rows: by the index's columns, without the row's key.
//!
//! ```
//! # use base::engine::{LockWait, RowLock}; use base::*; use kv::locks::*; use std::sync::Arc;
//! # fn example(table: Arc<LockTable>) -> Result<()> {
//! let mut locks = TxnLocks::new(table, Party::Transaction(TxnId(7)));
//! let before = locks.mark();
//! let acquired = locks.row(TreeId(16_384), b"key", RowLock::Update, LockWait::Block)?;
//! assert_eq!(acquired, Acquired::Granted);
//! locks.rollback_to(before); // as ROLLBACK TO SAVEPOINT does
//! # Ok(()) }
//! ```
//! Dropping a [`TxnLocks`] gives up everything that it holds.
//!
//! # How
//! The table is cut into shards by a hash of the name, each behind a latch that is held for a few
//! hundred nanoseconds. A request that must wait stands in the lock's line ([`queue`]), the latch
//! is given up, and the coroutine waits for its ticket, the lock timeout, or an interrupt. However
//! the wait ends, also by unwinding, nothing of it stays in the line. When a wait begins, and once
//! more after [`DEADLOCK_TIMEOUT`], it looks whether it closes a circle ([`deadlock`]); if so it
//! fails with 40P01. So it does where the circle leads through tables of other groups ([`beside`]).
//!
//! # Invariants
//! - No two owners hold one lock in conflicting modes.
//! - A request overtakes nobody it conflicts with, except that a holder's upgrade goes first, and
//!   where a circle is opened.
//! - Latches are taken in the order: shards by number, then `waits` or what is announced. No latch is held while an
//!   event is notified.
//! - Locks belong to one term. [`LockTable::clear`] ends it: all locks are gone, waiters get
//!   40001, and so does every later request of a transaction that locked or read under that term.
//!
//! # Many locks
//! More than [`ROW_LOCKS_MAX`] row locks of one transaction become locks of ranges ([`ranges`]). What
//! locks of all kinds take of the node's memory, their session takes of its budget ([`lock_bytes`]).
//!
//! # What is not to be seen yet
//! Entries of exclusion constraints are announced by locks that are kept in their order as well
//! ([`announced`]).
//!
//! # Messages
//! The table knows no names, only trees. Where PostgreSQL names a relation, the messages of 55P03
//! and 40P01 say `"tree N"`, quotation marks included; SQL, which knows what it locked, puts the
//! name there. A party without a session is named by its transaction, others by their process as in
//! PostgreSQL.
//!
//! # Parties
//! A session and its transaction are one [`Party`]: their locks are never in each other's way, and
//! of the two only one waits at a time. What a session locks beyond its transactions
//! ([`AdvisoryLocks`]) is held apart, so that the end of a transaction does not take it.
//!
//! # Circles of the line's making
//! Who waits for somebody only because that one stands ahead in line may be put ahead of it. Where
//! that opens the circle, and closes no other, nobody fails ([`LockTable::check_deadlock`]; as
//! PostgreSQL, `src/backend/storage/lmgr/README`, "Miscellaneous Notes" and "Deadlock
//! Detection").

mod announced;
mod beside;
mod deadlock;
mod modes;
mod moves;
mod owner;
mod prepared;
mod queue;
mod ranges;
mod session;
#[cfg(test)]
mod stress;
#[cfg(test)]
pub(crate) mod tests;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use base::coro::{self, Interrupt};
use base::engine::{AdvisoryKey, AdvisoryMode, LockInfo, LockTarget, LockWait, RowLock, TableLock};
use base::env::{self, Env};
use base::hash::HashMap;
use base::memory::Reservation;
use base::sync::{Mutex, MutexGuard};
use base::{Error, ErrorClass, Key, Lsn, Result, SessionId, SqlState, Term, Timestamp, TreeId};

use announced::{is_announced, Announcements};
use deadlock::Step;
pub(crate) use modes::mode_named;
use modes::{Mode, Modes};
use owner::Owner;
use queue::{Answer, Lock, Outcome, Ticket};
use ranges::RowCounts;

pub use announced::ANNOUNCED_MAX;
pub use beside::Elsewhere;
pub use owner::Party;
pub use prepared::{PreparedLocks, Resolving};
pub use ranges::ROW_LOCKS_MAX;
pub use session::AdvisoryLocks;

/// Latches of the lock table.
const SHARDS: usize = 64;

/// A waiter looks again for a deadlock after this (PostgreSQL's `deadlock_timeout`).
pub const DEADLOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// Waiters that are moved in their lines to open one circle; a circle that takes more fails.
const MOVES_MAX: usize = 4;

const _: () = assert!(
    SHARDS.is_power_of_two(),
    "a shard is chosen by bits of a hash"
);

/// A lock's name: the tree, big-endian, then nothing for the tree itself, 1 and a key, 2 and an
/// advisory lock (whose tree is none), 3 and the number of a range, or 4 and what is announced.
type Name = Arc<[u8]>;

/// What giving up a lock counts for, in the units of [`coro::work`].
const GIVE_UP_WORK: usize = 512;

/// What the memory of locks is called in an error.
const LOCKS: &str = "The lock table";

/// What one lock takes: its name, the entry of the table, a quarter of which is empty, and what its
/// owner notes.
fn lock_bytes(name: &[u8]) -> usize {
    let entry = size_of::<Name>() + size_of::<Lock>();
    let counts = 2 * size_of::<usize>();
    let number = match is_announced(name) {
        true => size_of::<(Name, u64)>() * 4 / 3,
        false => 0,
    };
    name.len() + counts + entry * 4 / 3 + size_of::<Held>() + number
}

const TREE_BYTES: usize = 8;
const KEY: u8 = 1;
const ADVISORY: u8 = 2;

fn put_name(out: &mut Vec<u8>, tree: TreeId, key: Option<&[u8]>) {
    out.clear();
    out.extend_from_slice(&tree.0.to_be_bytes());
    if let Some(key) = key {
        out.push(KEY);
        out.extend_from_slice(key);
    }
}

fn put_advisory(out: &mut Vec<u8>, key: AdvisoryKey) {
    put_name(out, TreeId(0), None);
    out.push(ADVISORY);
    for number in [key.database, key.class, key.object] {
        out.extend_from_slice(&number.to_be_bytes());
    }
    out.push(u8::from(key.two));
}

/// What the lock of that name is on.
fn target(name: &[u8]) -> LockTarget {
    let (tree, rest) = name.split_at(TREE_BYTES);
    let tree = TreeId(tree.iter().fold(0, |id, byte| id << 8 | u64::from(*byte)));
    match rest {
        [] => LockTarget::Tree(tree),
        [ADVISORY, numbers @ .., two] => {
            let number = |place: usize| {
                let bytes = &numbers[4 * place..4 * place + 4];
                bytes.iter().fold(0, |n, byte| n << 8 | u32::from(*byte))
            };
            LockTarget::Advisory(AdvisoryKey {
                database: number(0),
                class: number(1),
                object: number(2),
                two: *two != 0,
            })
        }
        [ranges::RANGE, ..] => LockTarget::Tree(tree),
        [_, key @ ..] => LockTarget::Row(tree, key.to_vec()),
    }
}

/// What a message calls the lock of that name.
fn describe(name: &[u8]) -> String {
    match target(name) {
        LockTarget::Tree(tree) if ranges::is_range(name) => {
            format!("row in relation \"tree {tree}\"")
        }
        LockTarget::Tree(tree) => format!("relation \"tree {tree}\""),
        LockTarget::Row(tree, _) => format!("row in relation \"tree {tree}\""),
        LockTarget::Advisory(key) => format!(
            "advisory lock [{},{},{},{}]",
            key.database,
            key.class,
            key.object,
            if key.two { 2 } else { 1 }
        ),
    }
}

/// Locks for which a shard keeps room when it has none.
const SHARD_LOCKS_KEPT: usize = 64;

#[derive(Debug, Default)]
struct Shard {
    /// The term whose locks these are; none while this node does not lead.
    term: Option<Term>,
    locks: HashMap<Name, Lock>,
}

impl Shard {
    fn forget_if_free(&mut self, name: &[u8], table: &LockTable) {
        if self.locks.get(name).is_some_and(Lock::is_free) {
            self.locks.remove(name);
            table.removed(name);
            // What a transaction with very many locks has taken is given back after it.
            if self.locks.is_empty() && self.locks.capacity() > SHARD_LOCKS_KEPT {
                self.locks.shrink_to(SHARD_LOCKS_KEPT);
            }
        }
    }
}

/// What a party waits for, and since when.
#[derive(Clone, Debug)]
struct Wait {
    name: Name,
    since: Timestamp,
}

/// The locks of a group, in its leader's memory.
#[derive(Debug)]
pub struct LockTable {
    env: Arc<dyn Env>,
    shards: Box<[Mutex<Shard>]>,
    /// What each waiting party waits for.
    waits: Mutex<HashMap<Party, Wait>>,
    ranges: ranges::Ranges,
    moves: moves::Moves,
    rows: RowCounts,
    announced: Announcements,
    beside: beside::Beside,
}

impl LockTable {
    /// A table that refuses every lock until a term begins.
    pub fn new(env: Arc<dyn Env>) -> LockTable {
        LockTable {
            env,
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            waits: Mutex::default(),
            ranges: Default::default(),
            moves: Default::default(),
            rows: RowCounts::default(),
            announced: Announcements::default(),
            beside: Default::default(),
        }
    }

    /// This node leads in `term` now.
    pub fn begin_term(&self, term: Term) {
        self.clear();
        for shard in &self.shards {
            shard.lock().term = Some(term);
        }
    }

    /// This node leads no longer: all locks are gone, and whoever waits for one gets 40001.
    pub fn clear(&self) {
        self.ranges.clear();
        self.moves.clear();
        for shard in &self.shards {
            let mut told = Vec::new();
            let mut shard = shard.lock();
            shard.term = None;
            for lock in shard.locks.values_mut() {
                lock.lose(&mut told);
            }
            for (name, _) in shard.locks.drain() {
                self.removed(&name);
            }
            drop(shard);
            notify(told);
        }
    }

    /// The lock of this name is no more.
    fn removed(&self, name: &[u8]) {
        self.rows.removed(name);
        self.announced.removed(name);
    }

    /// The term whose locks these are.
    pub fn term(&self) -> Option<Term> {
        self.shards[0].lock().term
    }

    /// How many locks are held or waited for now.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|s| s.lock().locks.len()).sum()
    }

    /// Whether no lock is held or waited for.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn shard_of(&self, name: &[u8]) -> usize {
        use std::hash::BuildHasher;
        let hash = base::hash::HashMap::<(), ()>::default()
            .hasher()
            .hash_one(name);
        (hash >> 32) as usize & (SHARDS - 1)
    }

    fn shard(&self, name: &[u8]) -> MutexGuard<'_, Shard> {
        self.shards[self.shard_of(name)].lock()
    }

    /// Changes a lock under its latch, then wakes whoever that served.
    fn change(&self, name: &[u8], change: impl FnOnce(&mut Lock, &mut Vec<Arc<Ticket>>)) {
        let mut served = Vec::new();
        let mut shard = self.shard(name);
        if let Some(lock) = shard.locks.get_mut(name) {
            change(lock, &mut served);
            shard.forget_if_free(name, self);
        }
        drop(shard);
        notify(served);
    }

    /// Asks for a lock. Only when it has to be waited for, the request is then in line.
    fn request(&self, owner: Owner, term: &mut Option<Term>, ask: Ask<'_>) -> Result<Requested> {
        let mut shard = self.shard(ask.name);
        let now = shard.term.ok_or_else(crate::group::term_is_over)?;
        if *term.get_or_insert(now) != now {
            return Err(crate::group::term_is_over());
        }
        let Some((name, _)) = shard.locks.get_key_value(ask.name) else {
            let kept = ask.kept.filter(|kept| ***kept == *ask.name);
            let name = kept.cloned().unwrap_or_else(|| Name::from(ask.name));
            let before = Modes::NONE;
            let lock = Lock::held(owner, ask.mode);
            shard.locks.insert(name.clone(), lock);
            self.rows.added(&name);
            return Ok(Requested::Granted { name, before });
        };
        let name = name.clone();
        let lock = shard.locks.get_mut(&name).expect("it was just found");
        let before = match lock.request(owner, ask.mode) {
            Answer::Covered => return Ok(Requested::Covered),
            Answer::Granted(before) => return Ok(Requested::Granted { name, before }),
            Answer::Conflict(before) => before,
        };
        match ask.wait {
            LockWait::NoWait => return Err(not_available(&name)),
            LockWait::Skip => return Ok(Requested::Skipped),
            LockWait::Block => {}
        }
        let ticket = Arc::new(Ticket::default());
        lock.enqueue(owner, ask.mode, ticket.clone());
        let wait = Wait {
            name: name.clone(),
            since: self.env.wall_clock(),
        };
        self.waits.lock().insert(owner.party, wait);
        Ok(Requested::InLine {
            name,
            before,
            ticket,
        })
    }

    /// Asks for a lock and waits for it, if need be, at most for `timeout` (zero is no bound).
    fn acquire(
        &self,
        owner: Owner,
        term: &mut Option<Term>,
        ask: Ask<'_>,
        timeout: Duration,
    ) -> Result<Taken> {
        let (name, before) = match self.request(owner, term, ask)? {
            Requested::Covered => return Ok(Taken::Covered),
            Requested::Skipped => return Ok(Taken::Skipped),
            Requested::Granted { name, before } => (name, before),
            Requested::InLine {
                name,
                before,
                ticket,
            } => {
                InLine {
                    table: self,
                    owner,
                    name: &name,
                    before,
                    ticket,
                    granted: false,
                }
                .wait(timeout)?;
                (name, before)
            }
        };
        Ok(Taken::Granted(name, before))
    }

    /// The sessions that a session waits for, each once.
    pub fn blockers(&self, session: SessionId) -> Vec<SessionId> {
        let party = Party::Session(session);
        let Some(Wait { name, .. }) = self.waits.lock().get(&party).cloned() else {
            return Vec::new();
        };
        let shard = self.shard(&name);
        let lock = shard.locks.get(&name);
        let blocked = lock.and_then(|lock| lock.blocked(party, &name, &[]));
        let mut sessions: Vec<_> = blocked
            .map_or_else(Vec::new, |blocked| blocked.by)
            .into_iter()
            .filter_map(Party::session)
            .collect();
        sessions.sort_unstable();
        sessions.dedup();
        sessions
    }

    /// Since when a party waits for a lock. To be asked under its shard's latch, if at all.
    fn waits_since(&self, party: Party, name: &[u8]) -> Option<Timestamp> {
        let waits = self.waits.lock();
        let wait = waits.get(&party).filter(|wait| wait.name[..] == *name);
        wait.map(|wait| wait.since)
    }

    /// All locks that are held or waited for, shard by shard.
    pub fn infos(&self) -> Vec<LockInfo> {
        let mut all = Vec::new();
        for shard in &self.shards {
            for (name, lock) in &shard.lock().locks {
                all.extend(lock.everyone().map(|(owner, mode, granted)| LockInfo {
                    target: target(name),
                    session: owner.party.session(),
                    mode: mode.name(),
                    granted,
                    waits_since: match granted {
                        true => None,
                        false => self.waits_since(owner.party, name),
                    },
                }));
            }
        }
        all
    }

    /// Whether `owner`, who waits, is part of a circle that no other order of lines opens. If it is,
    /// it has left the line.
    fn check_deadlock(&self, owner: Owner, before: Modes) -> Result<()> {
        let suspected = deadlock::find(owner.party, |waiter, met| {
            let Wait { name, .. } = self.waits.lock().get(&waiter).cloned()?;
            let shard = self.shard(&name);
            shard.locks.get(&name)?.blocked(waiter, &name, met)
        });
        if suspected.is_none() {
            return self.check_across(owner, before);
        }
        let mut shards: Vec<_> = self.shards.iter().map(Mutex::lock).collect();
        let Some(circle) = self.circle_of(owner.party, &shards) else {
            return Ok(());
        };
        let mut served = Vec::new();
        let mut moved = Vec::new();
        if self.reorder(owner.party, &mut shards, &mut moved) {
            for name in moved {
                let shard = &mut shards[self.shard_of(&name)];
                if let Some(lock) = shard.locks.get_mut(&name) {
                    lock.serve(&mut served);
                }
            }
            drop(shards);
            notify(served);
            return Ok(());
        }
        let name = &circle[0].name;
        let shard = &mut shards[self.shard_of(name)];
        let lock = shard.locks.get_mut(name).expect("it is waited for");
        lock.withdraw(owner, before, &mut served);
        shard.forget_if_free(name, self);
        drop(shards);
        notify(served);
        Err(deadlock_detected(&circle))
    }

    /// A circle of whoever waits, under all latches.
    fn circle_of(&self, party: Party, shards: &[MutexGuard<'_, Shard>]) -> Option<Vec<Step>> {
        deadlock::find(party, |waiter, met| {
            let Wait { name, .. } = self.waits.lock().get(&waiter).cloned()?;
            let shard = &shards[self.shard_of(&name)];
            shard.locks.get(&name)?.blocked(waiter, &name, met)
        })
    }

    /// Changes the order of lines until `origin` is in no circle; if that cannot be, all is as it
    /// was. The step that is farthest from `origin` is tried first. `moved` gets the locks whose
    /// lines are others then.
    ///
    /// A circle that a move closes goes through whoever was moved, since all new steps lead to it.
    fn reorder(
        &self,
        origin: Party,
        shards: &mut [MutexGuard<'_, Shard>],
        moved: &mut Vec<Name>,
    ) -> bool {
        let Some(circle) = self.circle_of(origin, shards) else {
            return true;
        };
        if moved.len() == MOVES_MAX {
            return false;
        }
        for step in circle.iter().rev() {
            let at = self.shard_of(&step.name);
            let lock = shards[at].locks.get_mut(&step.name);
            let order = lock.and_then(|lock| lock.move_ahead(step.waiter, step.blocker));
            let Some((from, to)) = order else {
                continue;
            };
            moved.push(step.name.clone());
            if self.circle_of(step.waiter, shards).is_none() && self.reorder(origin, shards, moved)
            {
                return true;
            }
            moved.pop();
            if let Some(lock) = shards[at].locks.get_mut(&step.name) {
                lock.move_back(from, to);
            }
        }
        false
    }
}

fn notify(tickets: Vec<Arc<Ticket>>) {
    for ticket in tickets {
        ticket.event.notify_all();
    }
}

/// One request.
#[derive(Clone, Copy)]
struct Ask<'a> {
    name: &'a [u8],
    /// Perhaps the same name, in memory that can be shared.
    kept: Option<&'a Name>,
    mode: Mode,
    wait: LockWait,
}

enum Requested {
    Covered,
    Granted {
        name: Name,
        before: Modes,
    },
    Skipped,
    InLine {
        name: Name,
        before: Modes,
        ticket: Arc<Ticket>,
    },
}

/// What became of a request and the wait for it.
enum Taken {
    Covered,
    Skipped,
    Granted(Name, Modes),
}

/// What became of a request for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acquired {
    /// It was held already, in this mode or a stronger one.
    Held,
    /// It was granted.
    Granted,
    /// Another holds it, and [`LockWait::Skip`] was asked for.
    Skipped,
}

#[derive(Debug)]
struct Held {
    name: Name,
    before: Modes,
    /// In the order in which they were granted.
    number: usize,
}

/// The locks of one transaction, in the order in which it got them.
#[derive(Debug)]
pub struct TxnLocks {
    table: Arc<LockTable>,
    owner: Owner,
    term: Option<Term>,
    timeout: Duration,
    held: Vec<Held>,
    /// The memory of what is held.
    memory: Reservation,
    /// How many were granted, those that were given up again left out.
    granted: usize,
    /// So many locks are held that they should become fewer.
    coarsen_at: usize,
    /// Some of it became ranges.
    has_ranges: bool,
    /// How many of it are announcements, or were waited for.
    announced: usize,
    /// The modes held of trees, so that the statements of a transaction need not ask again.
    trees: Vec<(TreeId, Modes)>,
    name: Vec<u8>,
    /// The name of a tree's lock that was given up: the next transaction may well want it.
    kept: Option<Name>,
}

impl TxnLocks {
    /// Holds nothing yet.
    pub fn new(table: Arc<LockTable>, party: Party) -> TxnLocks {
        TxnLocks {
            table,
            owner: Owner::transaction(party),
            term: None,
            timeout: Duration::ZERO,
            held: Vec::new(),
            memory: Reservation::of(LOCKS),
            granted: 0,
            coarsen_at: ROW_LOCKS_MAX,
            has_ranges: false,
            announced: 0,
            trees: Vec::new(),
            name: Vec::new(),
            kept: None,
        }
    }

    /// Bounds each wait; zero is no bound.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// The term of the first snapshot or lock.
    pub fn term(&self) -> Option<Term> {
        self.term
    }

    /// The transaction has read under this term: from now on it locks under this term only.
    ///
    /// # Errors
    /// 40001 when it has read or locked under another.
    pub fn bind(&mut self, term: Term) -> Result<()> {
        if *self.term.get_or_insert(term) == term {
            return Ok(());
        }
        Err(crate::group::term_is_over())
    }

    /// Its commit has taken these rows to other trees. To be called before the locks are given up.
    pub fn note_moved(&self, lsn: Lsn, moved: Vec<(TreeId, Key)>) {
        self.table.moves.note(lsn, moved);
    }

    /// Whether a row that was there at a snapshot, and is gone, may have gone to another tree.
    pub fn was_moved(&self, tree: TreeId, key: &[u8], since: Lsn) -> bool {
        self.table.moves.has(tree, key, since)
    }

    /// Locks a row, or the columns of a unique index's key.
    ///
    /// # Errors
    /// 55P03 (not to be had, or the lock timeout), 40P01, 40001 when the term is over, 53200 when the
    /// node's memory is used up, and the interrupt that ended the wait. Nothing was locked then.
    pub fn row(
        &mut self,
        tree: TreeId,
        key: &[u8],
        strength: RowLock,
        wait: LockWait,
    ) -> Result<Acquired> {
        self.row_or_range(tree, key, strength, wait)
    }

    /// Locks a table.
    ///
    /// # Errors
    /// As [`TxnLocks::row`].
    pub fn table(&mut self, tree: TreeId, mode: TableLock, wait: LockWait) -> Result<Acquired> {
        let mode = Mode::from(mode);
        let known = self.trees.iter().position(|(known, _)| *known == tree);
        if known.is_some_and(|place| self.trees[place].1.covers(mode)) {
            return Ok(Acquired::Held);
        }
        put_name(&mut self.name, tree, None);
        let acquired = self.acquire(mode, wait)?;
        if acquired == Acquired::Granted {
            match known {
                Some(place) => self.trees[place].1 = self.trees[place].1.with(mode),
                None => self.trees.push((tree, Modes::NONE.with(mode))),
            }
        }
        Ok(acquired)
    }

    /// Takes an advisory lock until the end of the transaction.
    ///
    /// # Errors
    /// As [`TxnLocks::row`].
    pub fn advisory(
        &mut self,
        key: AdvisoryKey,
        mode: AdvisoryMode,
        wait: LockWait,
    ) -> Result<Acquired> {
        put_advisory(&mut self.name, key);
        self.acquire(mode.into(), wait)
    }

    /// Whether any row is locked, or any key.
    pub fn holds_rows(&self) -> bool {
        let is_row = |held: &Held| matches!(held.name.get(TREE_BYTES), Some(&KEY | &ranges::RANGE));
        self.held.iter().any(is_row)
    }

    /// How many locks were granted until now, to go back to later.
    pub fn mark(&self) -> usize {
        self.granted
    }

    /// Gives up what was granted since the mark, newest first; where that is much, others of this
    /// thread have their turns in between.
    pub fn rollback_to(&mut self, mark: usize) {
        if mark < self.granted {
            // Which trees are affected is not worth finding out: they are asked for again.
            self.trees.clear();
        }
        self.granted = mark.min(self.granted);
        while self.held.last().is_some_and(|held| held.number >= mark) {
            self.give_up_last();
            // What is committed, or rolled back half, is not to be cancelled.
            coro::work_uninterrupted(GIVE_UP_WORK);
        }
    }

    fn give_up_last(&mut self) {
        let Some(Held { name, before, .. }) = self.held.pop() else {
            return;
        };
        self.memory.shrink(lock_bytes(&name));
        if ranges::is_range(&name) {
            self.table.forget_range(&name);
        }
        self.announced -= usize::from(is_announced(&name));
        let owner = self.owner;
        self.table
            .change(&name, |lock, served| lock.give_up(owner, before, served));
        if name.len() == TREE_BYTES {
            self.kept = Some(name);
        }
    }

    /// Gives up everything, as [`TxnLocks::rollback_to`] does.
    pub fn release_all(&mut self) {
        self.rollback_to(0);
        self.coarsen_at = ROW_LOCKS_MAX;
        self.has_ranges = false;
    }

    /// Notes what was granted, whose memory was taken.
    fn note(&mut self, name: Name, before: Modes) {
        let number = self.granted;
        self.held.push(Held {
            name,
            before,
            number,
        });
        self.granted += 1;
    }

    /// Counts the memory of what is held anew, after it has become less.
    fn recount_memory(&mut self) {
        let bytes: usize = self.held.iter().map(|held| lock_bytes(&held.name)).sum();
        let less = self.memory.bytes().saturating_sub(bytes);
        self.memory.shrink(less);
    }

    fn acquire(&mut self, mode: Mode, wait: LockWait) -> Result<Acquired> {
        let bytes = lock_bytes(&self.name);
        self.memory.grow(bytes)?;
        let acquired = self.acquire_counted(mode, wait);
        if acquired != Ok(Acquired::Granted) {
            self.memory.shrink(bytes);
        }
        acquired
    }

    fn acquire_counted(&mut self, mode: Mode, wait: LockWait) -> Result<Acquired> {
        let name = &self.name;
        let ask = Ask {
            name,
            kept: self.kept.as_ref(),
            mode,
            wait,
        };
        let table = &self.table;
        match table.acquire(self.owner, &mut self.term, ask, self.timeout)? {
            Taken::Granted(name, before) => {
                self.note_announced(&name, mode);
                self.note(name, before);
                Ok(Acquired::Granted)
            }
            Taken::Covered => Ok(Acquired::Held),
            Taken::Skipped => Ok(Acquired::Skipped),
        }
    }
}

impl Drop for TxnLocks {
    fn drop(&mut self) {
        self.release_all();
    }
}

/// A request that stands in line. Dropped without having been granted, it leaves the line.
struct InLine<'a> {
    table: &'a LockTable,
    owner: Owner,
    name: &'a [u8],
    before: Modes,
    ticket: Arc<Ticket>,
    granted: bool,
}

/// Why a waiter wakes.
enum Wake {
    Settled(Outcome),
    LockTimeout,
    DeadlockCheck,
}

impl InLine<'_> {
    fn wait(mut self, timeout: Duration) -> Result<()> {
        let env = &*self.table.env;
        let mut deadline = (!timeout.is_zero()).then(|| env::sleep(env, timeout));
        let mut check = Some(env::sleep(env, DEADLOCK_TIMEOUT));
        self.table.check_deadlock(self.owner, self.before)?;
        loop {
            let ticket = &self.ticket;
            let mut settled = pin!(ticket.event.until(|| ticket.outcome()));
            let wake = coro::wait(std::future::poll_fn(|cx| {
                if let Poll::Ready(outcome) = settled.as_mut().poll(cx) {
                    return Poll::Ready(Wake::Settled(outcome));
                }
                if is_due(&mut deadline, cx) {
                    return Poll::Ready(Wake::LockTimeout);
                }
                if is_due(&mut check, cx) {
                    return Poll::Ready(Wake::DeadlockCheck);
                }
                Poll::Pending
            }));
            match wake {
                Ok(Wake::Settled(Outcome::Granted)) => {
                    self.granted = true;
                    // What is fought for once has others in line, for as long as its holder's
                    // client needs for its next statements.
                    env.hurry();
                    return Ok(());
                }
                Ok(Wake::Settled(Outcome::Lost)) => return Err(crate::group::term_is_over()),
                Ok(Wake::LockTimeout) => return Err(lock_timeout()),
                Ok(Wake::DeadlockCheck) => {
                    self.table.check_deadlock(self.owner, self.before)?;
                    check = self.look_elsewhere()?;
                }
                Err(interrupt) => return Err(Interrupt::into(interrupt)),
            }
        }
    }

    /// Looks for a circle over several nodes; when to look again, as whoever closes one may be another.
    fn look_elsewhere(&self) -> Result<Option<env::BoxFuture<'static, ()>>> {
        let elsewhere = self.table.beside.elsewhere();
        let (Some(session), Some(elsewhere)) = (self.owner.party.session(), elsewhere) else {
            return Ok(None);
        };
        match elsewhere.is_victim(session)? {
            true => Err(deadlock_detected_elsewhere()),
            false => Ok(Some(env::sleep(&*self.table.env, DEADLOCK_TIMEOUT))),
        }
    }
}

fn is_due(
    sleep: &mut Option<env::BoxFuture<'static, ()>>,
    cx: &mut std::task::Context<'_>,
) -> bool {
    let Some(future) = sleep else {
        return false;
    };
    future.as_mut().poll(cx).is_ready()
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        self.table.waits.lock().remove(&self.owner.party);
        if self.granted {
            return;
        }
        let (owner, before) = (self.owner, self.before);
        self.table.change(self.name, |lock, served| {
            lock.withdraw(owner, before, served)
        });
    }
}

fn of_engine(state: SqlState, message: impl Into<String>) -> Error {
    Error::of_class(ErrorClass::Engine, state, message)
}

fn not_available(name: &[u8]) -> Error {
    of_engine(
        SqlState::LOCK_NOT_AVAILABLE,
        format!("could not obtain lock on {}", describe(name)),
    )
}

fn lock_timeout() -> Error {
    of_engine(
        SqlState::LOCK_NOT_AVAILABLE,
        "canceling statement due to lock timeout",
    )
}

/// The error for a circle of which a part is at other nodes.
fn deadlock_detected_elsewhere() -> Error {
    let detail = "The sessions wait for one another in groups that several nodes lead.";
    of_engine(SqlState::DEADLOCK_DETECTED, "deadlock detected")
        .with_detail(detail)
        .with_hint("See server log for query details.")
}

fn deadlock_detected(circle: &[Step]) -> Error {
    let lines: Vec<_> = circle
        .iter()
        .map(|step| {
            let line = format!(
                "{} waits for {} on {}; blocked by {}.",
                step.waiter,
                step.mode.name(),
                describe(&step.name),
                step.blocker
            );
            line[..1].to_ascii_uppercase() + &line[1..]
        })
        .collect();
    of_engine(SqlState::DEADLOCK_DETECTED, "deadlock detected")
        .with_detail(lines.join("\n"))
        .with_hint("See server log for query details.")
}
