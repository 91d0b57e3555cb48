//! A transaction's branch in one group, wherever that is led.
//!
//! ```text
//! DatabaseTxn ──► Branch         of a group that this node leads: its own transaction, and no message
//!            └──► RemoteBranch   of one that another node leads: a call for each step  ([`remote`])
//!                     │
//!                     └── connection ──► a Branch on that node                         ([`serve`])
//! ```
//! What belongs to a group's rows and locks is behind [`Access`], the same for both. What a branch is
//! asked besides, because it is one of several, is [`Branching`]: what stands in its group, one state
//! of all groups, and its part of the commit.
//!
//! # One state of several groups
//! Each branch *looks*: what is visible and what stands there, whose outcome it waits for. The greatest
//! timestamp that any look brings is that of the state; each branch then finds what its group shows at
//! that timestamp, and only when all have found it does the statement begin with it ([`agree`]). The
//! branches of this node look first, and those of other nodes, which are asked at once, are told the
//! greatest timestamp so far and find what they show there. So a state of one other node's group is one
//! message, and one of several at most two in a row.
//!
//! # What it leaves out
//! A branch does not move: it ends with the term in which its group's leader began it.

mod ahead;
mod calls;
pub(super) mod link;
pub(super) mod place;
pub(super) mod prepare;
pub(super) mod remote;
pub(super) mod serve;

use std::sync::Arc;

use base::engine::{
    Building, Locking, Post, Reading, Savepoints, TableLock, Transaction, TxnOptions, Views, Write,
    Writing,
};
use base::{Debt, Durability, Error, GroupId, Result, Timestamp, TreeId};
use spanning::Participant;

use super::{GroupView, KvEngine};
use crate::group::{Group, Look};
use crate::txn::Txn;
use prepare::{Handed, Preparing};

/// A reader for whom more was forgotten than it needs begins anew, so often.
const LOOKS_MAX: usize = 8;

/// The rows and locks of a group, as a transaction has them.
pub trait Access: Reading + Locking + Writing + Building + Savepoints + Views {}

impl<T: Reading + Locking + Writing + Building + Savepoints + Views> Access for T {}

/// What a branch has to say in its transaction's commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stake {
    /// It has written.
    pub has_written: bool,
    /// Something has to stay as it is until the transaction is decided: rows that it has locked or
    /// what it has read at SERIALIZABLE; or somebody may ask later what became of it.
    pub is_held: bool,
}

impl Stake {
    /// Whether it takes part in a commit of what was written anywhere.
    pub fn is_part(self) -> bool {
        self.has_written || self.is_held
    }
}

/// What a branch is asked because it is one of several.
pub trait Branching {
    /// Its group.
    fn group(&self) -> GroupId;

    /// Whether this node leads that.
    fn is_here(&self) -> bool;

    /// Whether it is sure that it has begun.
    fn has_begun(&self) -> bool;

    /// Waits until that is sure.
    ///
    /// # Errors
    /// 40001 where its leader cannot be reached or leads no longer.
    fn confirm(&mut self) -> Result<()>;

    /// Its rows and locks.
    fn access(&mut self) -> &mut dyn Access;

    /// The same, to ask what it has done.
    fn access_ref(&self) -> &dyn Access;

    /// As [`Transaction::debt`].
    fn debt(&self) -> &Debt;

    /// As [`Transaction::set_options`].
    fn set_options(&mut self, options: TxnOptions);

    /// As [`Transaction::begin_statement`], of this group by itself.
    ///
    /// # Errors
    /// As there; of another node's branch, whatever is asked next has them.
    fn begin_statement(&mut self) -> Result<()>;

    /// As [`Transaction::next_command`].
    fn next_command(&mut self);

    /// Whether it has seen anything yet.
    fn has_snapshot(&self) -> bool;

    /// It is about to be given its first snapshot of several groups ([`Txn::expect_snapshot`]).
    fn expect_snapshot(&mut self);

    /// [`Branching::look`] is called next: what takes a message is asked now.
    ///
    /// # Errors
    /// As there.
    fn begin_to_look(&mut self, _heard: Timestamp) -> Result<()> {
        Ok(())
    }

    /// Looks at what is there, and waits for what stands; the timestamp below which the state of all
    /// groups must not be, at least `heard`, or none where that is forgotten already.
    ///
    /// # Errors
    /// As [`Group::snapshot`]; the interrupt that ended the wait.
    fn look(&mut self, heard: Timestamp) -> Result<Option<Timestamp>>;

    /// [`Branching::find_view`] is called next: what takes a message is asked now.
    ///
    /// # Errors
    /// As there.
    fn begin_to_find(&mut self, _at: Timestamp) -> Result<()> {
        Ok(())
    }

    /// Finds what the group shows at a timestamp that is not below what [`Branching::look`] said;
    /// false where that is forgotten.
    ///
    /// # Errors
    /// As [`Branching::look`].
    fn find_view(&mut self, at: Timestamp) -> Result<bool>;

    /// Begins a statement with what [`Branching::find_view`] found.
    ///
    /// # Errors
    /// As [`Txn::begin_statement_with`]; of another node's branch, whatever is asked next has them.
    fn take_view(&mut self) -> Result<()>;

    /// Whether what [`Branching::find_view`] found is what the statement at work sees.
    ///
    /// # Errors
    /// XX000 before the first statement.
    fn has_same_view(&mut self) -> Result<bool>;

    /// Another first snapshot is about to be taken.
    fn give_up_snapshot(&mut self);

    /// As [`Txn::is_safe`].
    ///
    /// # Errors
    /// As there.
    fn is_safe(&mut self) -> Result<bool>;

    /// [`Branching::lock_tables`] is called next: what takes a message is asked now.
    ///
    /// # Errors
    /// As there.
    fn begin_to_lock(&mut self, _tables: &[(TreeId, TableLock)]) -> Result<()> {
        Ok(())
    }

    /// As [`Locking::lock_tables_ahead`].
    ///
    /// # Errors
    /// As there.
    fn lock_tables(&mut self, _tables: &[(TreeId, TableLock)]) -> Result<()> {
        Ok(())
    }

    /// As [`Writing::post`], under a number of the transaction; whether it was.
    ///
    /// # Errors
    /// As there.
    fn post_write(
        &mut self,
        post: Post,
        tree: TreeId,
        key: &[u8],
        write: Write<'_>,
    ) -> Result<bool> {
        let _ = (post, tree, key, write);
        Ok(false)
    }

    /// [`Branching::hear_posted`] is called next: what takes a message is asked now.
    ///
    /// # Errors
    /// As there.
    fn begin_to_hear(&mut self, _since: Post) -> Result<()> {
        Ok(())
    }

    /// As [`Writing::posted`].
    ///
    /// # Errors
    /// As there.
    fn hear_posted(&mut self, since: Post) -> Result<Option<(Post, TreeId)>> {
        let _ = since;
        Ok(None)
    }

    /// What it has to say in the commit, as far as is known without asking: it may have less.
    fn stake(&self) -> Stake;

    /// Its group, and the term in which it may prepare.
    ///
    /// # Errors
    /// XX000 where it is bound to none.
    fn participant(&self) -> Result<Participant>;

    /// Prepares what it has written as a part of a commit across groups, of which another group is the
    /// coordinator: on return it is in the group's log, or its leader is asked for that.
    ///
    /// # Errors
    /// 40001 where its group has another leader; as [`Transaction::prepare`]. Where its leader was lost
    /// meanwhile it may be in the log all the same; then the coordinator knows more.
    fn prepare_part(self: Box<Self>, preparing: &Preparing) -> Result<Handed>;

    /// Commits by itself.
    ///
    /// # Errors
    /// As [`Transaction::commit`].
    fn commit(self: Box<Self>, durability: Durability) -> Result<Debt>;

    /// The branch itself, of a group that this node leads.
    ///
    /// # Errors
    /// XX000 where another leads it.
    fn into_local(self: Box<Self>) -> Result<Box<Branch>>;
}

/// Has branches find one state of their groups, with all that was committed before: its timestamp.
/// `heard` is the greatest that the session has heard of.
///
/// # Errors
/// As [`Branching::look`], of any of them; 40001 when too much happens meanwhile.
pub fn agree(branches: &mut [&mut dyn Branching], heard: Timestamp) -> Result<Timestamp> {
    'anew: for _ in 0..LOOKS_MAX {
        let mut timestamp = heard;
        for is_here in [true, false] {
            let told = timestamp;
            let mut asked: Vec<_> = (branches.iter_mut())
                .filter(|one| one.is_here() == is_here)
                .collect();
            for branch in &mut asked {
                branch.begin_to_look(told)?;
            }
            for branch in &mut asked {
                match branch.look(told)? {
                    Some(settled) => timestamp = timestamp.max(settled),
                    None => continue 'anew,
                }
            }
        }
        for branch in &mut *branches {
            branch.begin_to_find(timestamp)?;
        }
        for branch in &mut *branches {
            if !branch.find_view(timestamp)? {
                continue 'anew;
            }
        }
        return Ok(timestamp);
    }
    let message = "could not take a snapshot of several groups: too much is committed meanwhile";
    Err(Error::serialization(message))
}

/// A branch in a group that this node leads.
#[derive(Debug)]
pub struct Branch {
    /// The group's engine.
    pub engine: Arc<KvEngine>,
    /// What is done there.
    pub txn: Box<Txn<Arc<Group>>>,
    /// The last look.
    look: Option<Look>,
    /// What was found at the timestamp of all groups.
    found: Option<GroupView>,
}

impl Branch {
    /// A branch that has done nothing yet.
    pub fn new(engine: Arc<KvEngine>, txn: Txn<Arc<Group>>) -> Branch {
        Branch {
            engine,
            txn: Box::new(txn),
            look: None,
            found: None,
        }
    }
}

impl Branching for Branch {
    fn group(&self) -> GroupId {
        self.engine.group.id()
    }

    fn is_here(&self) -> bool {
        true
    }

    fn has_begun(&self) -> bool {
        true
    }

    fn confirm(&mut self) -> Result<()> {
        Ok(())
    }

    fn access(&mut self) -> &mut dyn Access {
        &mut *self.txn
    }

    fn access_ref(&self) -> &dyn Access {
        &*self.txn
    }

    fn debt(&self) -> &Debt {
        self.txn.debt()
    }

    fn set_options(&mut self, options: TxnOptions) {
        self.txn.set_options(options);
    }

    fn begin_statement(&mut self) -> Result<()> {
        self.txn.begin_statement()
    }

    fn next_command(&mut self) {
        self.txn.next_command();
    }

    fn has_snapshot(&self) -> bool {
        self.txn.has_snapshot()
    }

    fn expect_snapshot(&mut self) {
        self.txn.expect_snapshot();
    }

    fn look(&mut self, heard: Timestamp) -> Result<Option<Timestamp>> {
        self.found = None;
        let look = self.look.insert(self.engine.group.look()?);
        let settled = look.settled()?;
        Ok(settled.map(|settled| settled.max(heard)))
    }

    fn find_view(&mut self, at: Timestamp) -> Result<bool> {
        let missing = || Error::internal("a branch that has not looked");
        let shown = self.look.as_ref().ok_or_else(missing)?.at(at)?;
        self.found = shown.map(|shown| GroupView::of(&self.engine.group, shown));
        Ok(self.found.is_some())
    }

    fn take_view(&mut self) -> Result<()> {
        self.look = None;
        let missing = || Error::internal("a branch that has found nothing");
        let view = self.found.take().ok_or_else(missing)?;
        self.txn.begin_statement_with(view)
    }

    fn has_same_view(&mut self) -> Result<bool> {
        self.look = None;
        let missing = || Error::internal("a branch that has found nothing");
        let view = self.found.take().ok_or_else(missing)?;
        Ok(self.txn.shown()?.is_same(&view))
    }

    fn give_up_snapshot(&mut self) {
        self.txn.give_up_snapshot();
    }

    fn is_safe(&mut self) -> Result<bool> {
        self.txn.is_safe()
    }

    fn stake(&self) -> Stake {
        let txn = &self.txn;
        Stake {
            has_written: txn.has_written(),
            is_held: txn.holds_rows() || txn.has_marks() || txn.is_asked_about(),
        }
    }

    fn participant(&self) -> Result<Participant> {
        Ok(Participant {
            group: self.engine.group.id(),
            term: self.txn.term_of_writes()?,
        })
    }

    fn prepare_part(self: Box<Self>, preparing: &Preparing) -> Result<Handed> {
        let engine = &self.engine;
        let ledger = engine.ledger();
        let term = self.txn.term_of_writes()?;
        let (id, participants) = (preparing.id, &preparing.participants[..]);
        let asked = (id, preparing.unfinished);
        engine.across.admit(&ledger, term, asked, participants)?;
        let mut appending = super::across::Appending::of(engine, id);
        engine.group.pass(preparing.heard);
        let debt = self
            .txn
            .prepare_part(id, participants, preparing.durability)?;
        appending.done();
        Ok(Handed::Appended(debt))
    }

    fn commit(self: Box<Self>, durability: Durability) -> Result<Debt> {
        self.txn.commit(durability)
    }

    fn into_local(self: Box<Self>) -> Result<Box<Branch>> {
        Ok(self)
    }
}
