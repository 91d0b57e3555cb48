//! Preparing a transaction, and resolving one that is prepared ([`crate::prepared`]).
//!
//! ```text
//! prepare    write set → rows of PREPARED_CHANGES, locks → the row of PREPARED; one commit of those
//! resolve    those rows → the write set of another transaction, which deletes them too; its commit
//! ```

use std::sync::Arc;

use base::engine::{
    Isolation, LockWait, Preparation, PreparedTransaction, Reading, RowLock, Transaction,
};
use base::{
    coro, Debt, Durability, Error, Key, Lsn, Result, SqlState, Term, Timestamp, TreeId, Xid,
};
use spanning::{Outcome, Participant, SpanningId};

use super::{Leader, Txn};
use crate::group::outcomes::outcome_row;
use crate::group::{BuildHandle, CommitRequest};
use crate::locks::{Acquired, PreparedLocks};
use crate::parts::decisions::{key_of, row_of};
use crate::parts::{name_of, Part};
use crate::prepared::{changes_in, parts_of, unknown, Header};
use crate::record::{Change, RowChange};
use crate::serial::Ticket;
use crate::write_set::{Changes, Own, WriteSet};

/// What looking up a row counts for, in the units of [`coro::work`].
const LOOK_WORK: usize = 512;

/// The id of a transaction whose client has not asked for it.
const NO_XID: Xid = Xid(0);

/// What becomes of what is prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// COMMIT PREPARED.
    Committed,
    /// ROLLBACK PREPARED.
    RolledBack,
    /// It was decided across groups.
    Decided(Outcome),
}

impl Resolution {
    fn commits(self) -> bool {
        matches!(
            self,
            Resolution::Committed | Resolution::Decided(Outcome::Committed(_))
        )
    }
}

/// The error for a name that another prepared transaction has.
fn is_taken(name: &str) -> Error {
    let message = format!("transaction identifier \"{name}\" is already in use");
    Error::new(SqlState::DUPLICATE_OBJECT, message)
}

impl<L: Leader> Txn<L> {
    /// Lets it be prepared: its locks go there.
    pub fn set_prepared(&mut self, prepared: Arc<PreparedLocks>) {
        self.prepared = Some(prepared);
    }

    /// As [`Transaction::prepare`].
    pub(super) fn prepare_as(
        mut self,
        preparation: Preparation,
        durability: Durability,
    ) -> Result<Debt> {
        if self.isolation == Isolation::Serializable {
            return Err(Error::unsupported("preparing a SERIALIZABLE transaction"));
        }
        self.check_may_prepare()?;
        if self.snapshot.is_none() {
            self.begin_statement()?;
        }
        let xid = self.give_xid(true)?;
        let prepared = PreparedTransaction {
            preparation,
            xid: xid.ok_or_else(|| Error::internal("an id was asked for"))?,
            prepared_at: Timestamp(self.leader.now_micros()),
        };
        self.log_prepared(prepared, None, durability)
    }

    /// Prepares what it has written here as a part of a transaction across groups
    /// ([`crate::parts`]).
    ///
    /// # Errors
    /// As [`Transaction::prepare`].
    pub fn prepare_part(
        mut self,
        id: SpanningId,
        participants: &[Participant],
        durability: Durability,
    ) -> Result<Debt> {
        self.check_may_prepare()?;
        // It is there if the commit is.
        self.note_flight_anyhow()?;
        let prepared = PreparedTransaction {
            preparation: Preparation {
                name: name_of(id),
                owner: 0,
                database: 0,
            },
            xid: self.asked.as_ref().map_or(NO_XID, |asked| asked.xid()),
            prepared_at: Timestamp(self.leader.now_micros()),
        };
        let part = Part {
            id,
            participants: participants.to_vec(),
            proposed: Timestamp(0),
            lsn: Lsn::ZERO,
        };
        self.log_prepared(prepared, Some(part), durability)
    }

    fn log_prepared(
        mut self,
        prepared: PreparedTransaction,
        part: Option<Part>,
        durability: Durability,
    ) -> Result<Debt> {
        let kept = self.prepared.clone();
        let kept = kept.ok_or_else(|| Error::unsupported("preparing a transaction here"))?;
        let name = prepared.preparation.name.clone();
        let notes_flight = part.is_none();
        let moved = self.moved_rows();
        let (parts, ticket) = self.take_parts()?;
        let header = Header {
            prepared,
            txn: self.id,
            parts: parts.len() as u32,
            locks: self.locks.list()?,
            moved,
            builds: self.builds.iter().map(|build| build.plan().id()).collect(),
            part,
        };
        // What is locked from here on is given up again.
        let mark = self.locks.mark();
        let (tree, key) = (TreeId::PREPARED, header.key());
        let locked = self
            .locks
            .row(tree, &key, RowLock::Update, LockWait::Skip)?;
        if locked == Acquired::Skipped || self.exists_now(tree, &key)? {
            return Err(is_taken(&name));
        }
        self.put(tree, &key, None, Some(&header.to_row()))?;
        for (number, part) in parts.iter().enumerate() {
            let key = header.part_key(number as u32);
            self.put(TreeId::PREPARED_CHANGES, &key, None, Some(part))?;
        }
        if notes_flight {
            self.note_flight()?;
        }
        let changes = std::mem::take(&mut self.writes).collapse(|_| false)?;
        let position = {
            let _unmarked = self.serial.unmarked();
            self.leader.commit(CommitRequest {
                term: self.term_of_writes()?,
                txn: self.id,
                changes,
                durability,
                serial: ticket,
            })?
        };
        self.locks.rollback_to(mark);
        // They wait for what becomes of it.
        self.builds.drain(..).for_each(BuildHandle::switched);
        self.debt.add(self.leader.group(), position);
        kept.keep(&name, self.id, self.locks, self.serial_txn);
        Ok(self.debt)
    }

    fn check_may_prepare(&self) -> Result<()> {
        if !self.exported.is_empty() {
            let message = "cannot PREPARE a transaction that has exported snapshots";
            return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        Ok(())
    }

    /// Takes what was written, as rows, and publishes it.
    fn take_parts(&mut self) -> Result<(Vec<Vec<u8>>, Option<Ticket>)> {
        let dropped = self.dropped_trees();
        let empty = WriteSet::with_scratch(self.leader.scratch());
        let mut writes = std::mem::replace(&mut self.writes, empty);
        self.savepoints.clear();
        let ticket = self.publish(&mut writes, &dropped)?;
        let parts = match writes.collapse(move |tree| dropped.contains(&tree.descriptor_key()))? {
            Changes::All(changes) => parts_of(self.id, changes.into_iter().map(Ok)),
            Changes::Stream(changes) => parts_of(self.id, changes),
        }?;
        Ok((parts, ticket.map(Ticket::to_prepare)))
    }

    /// Takes the list of rows that it has taken to other trees.
    pub(super) fn moved_rows(&mut self) -> Vec<(TreeId, Key)> {
        let mut moved = self.moved.take();
        // What a savepoint has taken back is there.
        moved.retain(|(tree, key)| {
            coro::work_uninterrupted(LOOK_WORK);
            let own = self.writes.newest(*tree, key);
            matches!(own, Ok(Some(Own { row: None, .. })))
        });
        moved
    }

    /// The term under which it has locked what it writes.
    pub(crate) fn term_of_writes(&self) -> Result<Term> {
        let missing = || Error::internal("a write without a lock");
        self.locks.term().ok_or_else(missing)
    }

    /// What it is about to resolve has read and written this at SERIALIZABLE, and is committed.
    pub fn set_resolves(&mut self, ticket: Ticket) {
        self.resolves = Some(ticket);
    }

    /// Resolves what is prepared under this header: this transaction, which has
    /// done nothing yet, and in whose way its locks are not.
    ///
    /// # Errors
    /// 42704 when it is not there any more; as [`Transaction::commit`].
    pub fn resolve(
        mut self,
        header: &Header,
        how: Resolution,
        durability: Durability,
    ) -> Result<Debt> {
        let commits = how.commits();
        self.begin_statement_with(self.leader.snapshot_beside()?)?;
        let (tree, key) = (TreeId::PREPARED, header.key());
        let mut row = Vec::new();
        if !self.get(tree, &key, &mut row)? {
            return Err(unknown(&header.prepared.preparation.name));
        }
        self.put(tree, &key, Some(&row), None)?;
        for part in 0..header.parts {
            let (tree, key) = (TreeId::PREPARED_CHANGES, header.part_key(part));
            if !self.get(tree, &key, &mut row)? {
                let message = "a part of a prepared transaction is not there";
                return Err(Error::corrupted(message));
            }
            self.put(tree, &key, Some(&row), None)?;
            if commits {
                for change in changes_in(&row)? {
                    self.write_prepared(change)?;
                }
            }
        }
        if commits {
            self.moved = header.moved.clone().into();
        } else {
            for build in &header.builds {
                let (tree, key) = (TreeId::BUILDS, build.descriptor_key());
                if self.get(tree, &key, &mut row)? {
                    self.put(tree, &key, Some(&row), None)?;
                }
            }
        }
        if let (Resolution::Decided(Outcome::Committed(at)), Some(part)) = (how, &header.part) {
            let row = row_of(at, &part.participants);
            self.put(TreeId::DECISIONS, &key_of(part.id), None, Some(&row))?;
        }
        if commits && header.prepared.xid != NO_XID {
            let now = self.leader.now_seconds();
            let key = header.prepared.xid.0.to_be_bytes();
            self.put_own(TreeId::OUTCOMES, &key, &outcome_row(now))?;
        }
        Box::new(self).commit(durability)
    }

    /// Deletes the row of a commit across groups; nothing when it is not there.
    ///
    /// # Errors
    /// As [`Transaction::commit`].
    pub fn forget_decision(mut self, id: SpanningId) -> Result<()> {
        self.begin_statement_with(self.leader.snapshot_beside()?)?;
        let (tree, key) = (TreeId::DECISIONS, key_of(id));
        let mut row = Vec::new();
        if self.get(tree, &key, &mut row)? {
            self.put(tree, &key, Some(&row), None)?;
            Box::new(self).commit(Durability::On)?;
        }
        Ok(())
    }

    /// Makes a change that was prepared, to a row that has been locked ever since.
    fn write_prepared(&mut self, change: RowChange) -> Result<()> {
        let (tree, key) = (change.tree, &change.key);
        if let Change::Insert(row) = &change.change {
            return self.put(tree, key, None, Some(row));
        }
        let mut old = Vec::new();
        if !self.get_newest(tree, key, &mut old)?.exists {
            return Err(Error::corrupted("a row that was prepared is not there"));
        }
        match &change.change {
            Change::Update(delta) => self.put(tree, key, Some(&old), Some(&delta.apply(&old)?)),
            _ => self.put(tree, key, Some(&old), None),
        }
    }
}
