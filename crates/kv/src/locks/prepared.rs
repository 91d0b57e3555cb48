//! Locks that outlive their session and their leader: those of prepared transactions
//! ([`crate::prepared`]).
//!
//! ```text
//! list()         name of k: ForUpdateLock; tree 16384: RowExclusiveLock   in the transaction's row
//! hand_to(p)     the session's locks are p's, and with whoever leads ([`PreparedLocks`])
//! take_listed    another leader's lock table has them before anybody else asks
//! ```
//! The form of a list: for each lock 0, its name with its length, and its modes as a number; for
//! each range of keys 1, the tree, both ends with their lengths, and the modes.
//!
//! # Invariants
//! - A prepared transaction is resolved by one at a time; whoever does so has its party, so that
//!   its locks are not in the way.
//! - A party is of one term: what ends after its leadership gives up nothing of the next one's.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::codec::{put_bytes, put_varint, Reader};
use base::engine::LockWait;
use base::memory::Reservation;
use base::sync::Mutex;
use base::{Error, Result, SqlState, Term, TreeId, TxnId};

use super::modes::Modes;
use super::owner::{Owner, Party};
use super::ranges::{self, is_range};
use super::{LockTable, TxnLocks, LOCKS};
use crate::prepared::{unknown, Prepared};
use crate::serial::{SerialTxn, Ticket};

const NAMED: u8 = 0;
const RANGE: u8 = 1;

impl TxnLocks {
    /// What it holds.
    ///
    /// # Errors
    /// 0A000 where its session holds one of them beyond its transaction too, as in PostgreSQL.
    pub fn list(&self) -> Result<Vec<u8>> {
        let lasting = self.owner.party.session().map(Owner::lasting);
        let mut out = Vec::new();
        // What was taken in several modes stands there several times.
        for held in self.held.iter().filter(|held| held.before.is_empty()) {
            if is_range(&held.name) {
                if let Some((first, last, mode)) = self.table.ranges.find(&held.name) {
                    out.push(RANGE);
                    put_varint(&mut out, ranges::split(&held.name).0 .0);
                    put_bytes(&mut out, &first);
                    put_bytes(&mut out, &last);
                    put_varint(&mut out, Modes::NONE.with(mode).bits().into());
                }
                continue;
            }
            let shard = self.table.shard(&held.name);
            let Some(lock) = shard.locks.get(&held.name) else {
                continue;
            };
            if lasting.is_some_and(|lasting| !lock.held_by(lasting).is_empty()) {
                let message = "cannot PREPARE while holding both session-level and \
                               transaction-level locks on the same object";
                return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
            out.push(NAMED);
            put_bytes(&mut out, &held.name);
            put_varint(&mut out, lock.held_by(self.owner).bits().into());
        }
        Ok(out)
    }

    /// What it holds is another party's from now on, who holds nothing yet.
    pub fn hand_to(&mut self, party: Party) {
        let other = Owner::transaction(party);
        for held in &self.held {
            if is_range(&held.name) {
                self.table.ranges.hand_over(&held.name, other);
            }
            let mut shard = self.table.shard(&held.name);
            if let Some(lock) = shard.locks.get_mut(&held.name) {
                lock.hand_over(self.owner, other);
            }
        }
        self.owner = other;
        // The session that has taken their memory goes on without them.
        self.memory = Reservation::of(LOCKS);
    }

    /// Takes what was listed, at once.
    ///
    /// # Errors
    /// XX001 when it is no list; 55P03 where somebody else has a lock that is in the way.
    pub fn take_listed(&mut self, listed: &[u8]) -> Result<()> {
        let damaged = || Error::corrupted("locks of a prepared transaction are damaged");
        let mut reader = Reader::new(listed);
        while !reader.is_empty() {
            match reader.u8()? {
                NAMED => {
                    self.name.clear();
                    self.name.extend_from_slice(reader.bytes()?);
                    let modes = Modes::from_bits(reader.varint_as()?).ok_or_else(damaged)?;
                    for mode in modes.each() {
                        self.acquire(mode, LockWait::NoWait)?;
                    }
                }
                RANGE => {
                    let tree = TreeId(reader.varint()?);
                    let ends = (reader.bytes()?.to_vec(), reader.bytes()?.to_vec());
                    let modes = Modes::from_bits(reader.varint_as()?).ok_or_else(damaged)?;
                    for mode in modes.each() {
                        self.take_range(tree, ends.clone(), mode);
                    }
                }
                _ => return Err(damaged()),
            }
        }
        Ok(())
    }
}

/// The locks of what is prepared, in the memory of whoever leads.
#[derive(Debug, Default)]
pub struct PreparedLocks(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    term: Option<Term>,
    held: BTreeMap<String, Held>,
}

#[derive(Debug)]
struct Held {
    txn: TxnId,
    locks: TxnLocks,
    /// What it is among those at SERIALIZABLE.
    serial: Option<SerialTxn>,
    /// Somebody is about to resolve it.
    is_busy: bool,
}

impl PreparedLocks {
    /// This node leads in `term` now: the locks of what is prepared are taken.
    ///
    /// # Errors
    /// What is prepared has locks that exclude one another, which must not be.
    pub fn begin_term(
        &self,
        term: Term,
        table: &Arc<LockTable>,
        prepared: &Prepared,
    ) -> Result<()> {
        let mut state = self.0.lock();
        state.term = Some(term);
        state.held.clear();
        for header in prepared.iter() {
            let mut locks = TxnLocks::new(table.clone(), party(header.txn, term));
            locks.bind(term)?;
            locks.take_listed(&header.locks)?;
            let held = Held {
                txn: header.txn,
                locks,
                serial: None,
                is_busy: false,
            };
            let name = header.prepared.preparation.name.clone();
            state.held.insert(name, held);
        }
        Ok(())
    }

    /// This node leads no longer.
    pub fn clear(&self) {
        *self.0.lock() = State::default();
    }

    /// A transaction was prepared, whose locks these are, and what it is at SERIALIZABLE; in a term
    /// that is over they are given up.
    pub fn keep(&self, name: &str, txn: TxnId, mut locks: TxnLocks, serial: Option<SerialTxn>) {
        let mut state = self.0.lock();
        let Some(term) = state.term.filter(|term| locks.term() == Some(*term)) else {
            return;
        };
        locks.hand_to(party(txn, term));
        let held = Held {
            txn,
            locks,
            serial,
            is_busy: false,
        };
        state.held.insert(name.to_owned(), held);
    }

    /// One is about to be resolved; its locks are in nobody's way who has those of the answer.
    ///
    /// # Errors
    /// 42704 when there is none; 55000 when somebody else is about to resolve it.
    pub fn begin(&self, name: &str, table: &Arc<LockTable>) -> Result<Resolving<'_>> {
        let mut state = self.0.lock();
        let term = state.term.ok_or_else(crate::group::not_leader)?;
        let held = state.held.get_mut(name).ok_or_else(|| unknown(name))?;
        if std::mem::replace(&mut held.is_busy, true) {
            let message = format!("prepared transaction with identifier \"{name}\" is busy");
            let state = SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE;
            return Err(Error::new(state, message));
        }
        let mut locks = TxnLocks::new(table.clone(), party(held.txn, term));
        locks.bind(term)?;
        Ok(Resolving {
            all: self,
            term,
            name: name.to_owned(),
            locks: Some(locks),
            ticket: held.serial.as_ref().map(SerialTxn::to_resolve),
            is_done: false,
        })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.lock().held.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn party(txn: TxnId, term: Term) -> Party {
    Party::Prepared { txn, term }
}

/// A prepared transaction that is about to be resolved. Dropped before that, it stays.
#[derive(Debug)]
pub struct Resolving<'a> {
    all: &'a PreparedLocks,
    term: Term,
    name: String,
    locks: Option<TxnLocks>,
    ticket: Option<Ticket>,
    is_done: bool,
}

impl Resolving<'_> {
    /// For the transaction that resolves it: what is held already is not in its way.
    ///
    /// # Panics
    /// The second time.
    pub fn locks(&mut self) -> TxnLocks {
        self.locks.take().expect("they are taken once")
    }

    /// For the record that commits it, where it is at SERIALIZABLE.
    pub fn ticket(&self) -> Option<Ticket> {
        self.ticket.clone()
    }

    /// It is resolved: its locks are given up, and what it has read is anybody's to change.
    pub fn done(mut self, commits: bool) {
        self.is_done = true;
        let held = {
            let mut state = self.all.0.lock();
            match state.term == Some(self.term) {
                true => state.held.remove(&self.name),
                false => None,
            }
        };
        if let Some(mut held) = held {
            if let Some(serial) = held.serial.filter(|_| commits) {
                serial.resolved();
            }
            held.locks.release_all();
        }
    }
}

impl Drop for Resolving<'_> {
    fn drop(&mut self) {
        let mut state = self.all.0.lock();
        if !self.is_done && state.term == Some(self.term) {
            if let Some(held) = state.held.get_mut(&self.name) {
                held.is_busy = false;
            }
        }
    }
}
