//! Locks that outlive their session and their leader: those of prepared transactions.
//!
//! ```text
//! list()         name of k: ForUpdateLock; tree 16384: RowExclusiveLock   in the transaction's row
//! hand_to(p)     the session's locks are p's
//! take_listed    another leader's lock table has them before anybody else asks
//! ```
//! The form of a list: for each lock 0, its name with its length, and its modes as a number; for
//! each range of keys 1, the tree, both ends with their lengths, and the modes.

use base::codec::{put_bytes, put_varint, Reader};
use base::engine::LockWait;
use base::{Error, Result, SqlState, TreeId};

use super::modes::Modes;
use super::owner::{Owner, Party};
use super::ranges::{self, is_range};
use super::TxnLocks;

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
