//! Building trees beside the work ([`crate::build`]): the task that does it on every replica, and
//! what the leader's transaction asks of it.
//!
//! ```text
//! transaction (leader)          builder (each replica)
//!   begin_build ─ record ─────► reads the table, piece by piece, with pauses
//!   wait            ◄────────── done, refused       followers: a frame to the leader, again and
//!     … for enough of them                          again until the switch, as frames get lost
//!   commit ─ record ──────────► switched to
//! ```
//!
//! # Who is enough
//! A replica that is not done when the switch comes does the rest in line, and what it acknowledges
//! meanwhile comes late. So the leader waits for a majority in any case, and for everybody else who
//! can be heard a while longer: [`STRAGGLER_PATIENCE`] times what it took itself.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use base::engine::Built;
use base::env::{sleep, Instant, Severity};
use base::sync::Mutex;
use base::{coro, Durability, Error, NodeId, Position, Result, Term, TreeId, TxnId};

use super::{term_is_over, within, CommitRequest, Group};
use crate::apply::derive;
use crate::build::{OpenBuild, Plan};
use crate::frame::Frame;
use crate::record::{self, Change, RowChange};
use crate::write_set::Changes;

/// Pieces that are built between two pauses.
const PIECES_PER_PAUSE: usize = 32;

/// How long the builder pauses, so that it does not keep a core to itself.
const PAUSE: Duration = Duration::from_millis(1);

/// How often a follower says that it is done.
const SAY_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// How many times as long as the leader has taken others may take, before it goes on with a
/// majority.
const STRAGGLER_PATIENCE: u32 = 2;

/// The least time that others are given.
const STRAGGLER_PATIENCE_MIN: Duration = Duration::from_secs(1);

/// Builds that ended without a switch, whose rows are to be deleted.
#[derive(Debug, Default)]
pub struct Abandoned(Mutex<Vec<(Term, TxnId, TreeId)>>);

/// A build that a transaction has begun. Dropped without [`BuildHandle::switched`], it is given up.
#[derive(Debug)]
pub struct BuildHandle {
    group: Arc<Group>,
    build: Arc<OpenBuild>,
    begun: Position,
    begun_at: Instant,
    txn: TxnId,
    switched: bool,
}

impl BuildHandle {
    /// What is built.
    pub fn plan(&self) -> &Plan {
        &self.build.plan
    }

    /// Where it was begun.
    pub fn begun(&self) -> Position {
        self.begun
    }

    /// Waits, inside a coroutine, until this node and enough others are done.
    ///
    /// # Errors
    /// [`term_is_over`]; an interrupt; why it cannot be done.
    pub fn wait(&self) -> Result<Built> {
        let changed = &self.group.registry.builds().changed;
        let ended = changed.until(|| {
            let outcome = self.build.outcome();
            (outcome.is_some() || self.is_over()).then_some(outcome)
        });
        let outcome = coro::wait(ended)?;
        if self.is_over() {
            return Err(term_is_over());
        }
        let built = outcome.ok_or_else(|| Error::internal("a build without an end"))??;
        if built == Built::Done {
            self.wait_for_others()?;
        }
        Ok(built)
    }

    fn is_over(&self) -> bool {
        self.build.is_over() || self.group.leading() != Some(self.begun.term)
    }

    fn wait_for_others(&self) -> Result<()> {
        let env = &*self.group.env;
        let now = env.now();
        let took = now.since(self.begun_at);
        let patience = (took * STRAGGLER_PATIENCE).max(STRAGGLER_PATIENCE_MIN);
        let until = now.after(patience);
        loop {
            let done = self.build.done_elsewhere();
            let (is_majority, is_all) = self.group.counts(&done);
            if is_all || (is_majority && env.now() >= until) {
                return Ok(());
            }
            let changed = &self.group.registry.builds().changed;
            let news = changed.until(|| {
                let more = self.build.done_elsewhere().len() > done.len();
                (more || self.is_over()).then_some(())
            });
            coro::wait(within(env, SAY_AGAIN_AFTER, news))?;
            if self.is_over() {
                return Err(term_is_over());
            }
        }
    }

    /// The transaction has committed, and the build with it.
    pub fn switched(mut self) {
        self.switched = true;
    }
}

impl Drop for BuildHandle {
    fn drop(&mut self) {
        if !self.switched {
            let abandoned = (self.begun.term, self.txn, self.build.plan.id());
            self.group.abandoned.0.lock().push(abandoned);
            self.group.registry.builds().changed.notify_all();
        }
    }
}

impl Group {
    /// Logs that a build begins, in the middle of a transaction that keeps others from writing the
    /// table. Each replica sets to work.
    ///
    /// # Errors
    /// As [`Group::commit`].
    pub fn begin_build(
        self: &Arc<Self>,
        term: Term,
        txn: TxnId,
        plan: &Plan,
    ) -> Result<BuildHandle> {
        let change = RowChange {
            tree: TreeId::BUILDS,
            key: plan.id().descriptor_key(),
            change: Change::Insert(plan.to_row()),
        };
        let begun_at = self.env.now();
        let begun = self.commit(CommitRequest {
            term,
            txn,
            changes: Changes::All(vec![change]),
            durability: Durability::Off,
            serial: None,
        })?;
        // Followers are not left waiting for the next flush.
        self.wake();
        let build = self.registry.builds().get(plan.id());
        Ok(BuildHandle {
            group: self.clone(),
            build: build.ok_or_else(term_is_over)?,
            begun,
            begun_at,
            txn,
            switched: false,
        })
    }

    /// Whether a majority of the voters has done what these and this node have, and whether
    /// everybody has who can be heard.
    fn counts(&self, done: &BTreeSet<NodeId>) -> (bool, bool) {
        let replicas = self.status().replicas;
        let is_done = |node| node == self.config.node || done.contains(&node);
        let voters = replicas.iter().filter(|replica| replica.voter);
        let done_voters = voters.clone().filter(|voter| is_done(voter.node)).count();
        let is_majority = done_voters > voters.count() / 2;
        let mut heard = replicas.iter().filter(|replica| replica.connected);
        (
            is_majority,
            is_majority && heard.all(|replica| is_done(replica.node)),
        )
    }

    /// Another replica says that it is done.
    pub(super) fn note_built(&self, from: NodeId, id: TreeId) {
        if let Some(build) = self.registry.builds().get(id) {
            build.note_done(from);
            self.registry.builds().changed.notify_all();
        }
    }

    /// The task of the builder.
    pub(super) async fn run_builder(self: Arc<Self>) {
        let mut said_at = self.env.now();
        while !self.is_over() {
            let builds = self.registry.builds();
            if builds.is_empty() && self.abandoned.0.lock().is_empty() {
                builds
                    .changed
                    .until(|| {
                        let work = !builds.is_empty() || !self.abandoned.0.lock().is_empty();
                        (work || self.is_over()).then_some(())
                    })
                    .await;
                continue;
            }
            self.delete_abandoned().await;
            match builds.next() {
                Some(build) => self.build(&build).await,
                None => {
                    let work = builds.changed.until(|| {
                        let work = builds.next().is_some() || !self.abandoned.0.lock().is_empty();
                        (work || self.is_over()).then_some(())
                    });
                    within(&*self.env, SAY_AGAIN_AFTER, work).await;
                }
            }
            if self.env.now().since(said_at) >= SAY_AGAIN_AFTER || builds.next().is_none() {
                said_at = self.env.now();
                self.say_what_is_built();
            }
        }
    }

    /// Some pieces of a build, and a pause.
    async fn build(self: &Arc<Self>, build: &OpenBuild) {
        for _ in 0..PIECES_PER_PAUSE {
            match build.step(|| self.store()) {
                Ok(true) => base::turns::give_way().await,
                Ok(false) => {
                    let (tree, begun) = (build.plan.id(), build.lsn);
                    let message =
                        format!("the build of tree {tree}, begun at {begun}, is done here");
                    self.env.log(Severity::Info, &message);
                    self.registry.builds().changed.notify_all();
                    return;
                }
                Err(error) => return self.fail(&mut self.lock(), &error),
            }
        }
        sleep(&*self.env, PAUSE).await;
    }

    fn say_what_is_built(&self) {
        if self.leading().is_some() {
            return;
        }
        let Some(leader) = self.leader().filter(|leader| *leader != self.config.node) else {
            return;
        };
        for build in self.registry.builds().all() {
            if build.outcome().is_some() {
                let frame = Frame::Built {
                    tree: build.plan.id(),
                };
                let frame = frame.encode(self.config.group);
                self.transport.send(leader, frame);
                self.transport.flush();
            }
        }
    }

    /// Logs the end of builds whose transactions have failed. Those of other terms have ended with
    /// these.
    async fn delete_abandoned(&self) {
        let abandoned = std::mem::take(&mut *self.abandoned.0.lock());
        for (term, txn, tree) in abandoned {
            let is_open = || {
                let build = self.registry.builds().get(tree);
                build.is_some() && self.leading() == Some(term)
            };
            while is_open() && self.delete_build(term, txn, tree).await.is_err() {
                // No space for the record: later.
                sleep(&*self.env, SAY_AGAIN_AFTER).await;
            }
        }
    }

    async fn delete_build(&self, term: Term, txn: TxnId, tree: TreeId) -> Result<()> {
        let changes = [RowChange {
            tree: TreeId::BUILDS,
            key: tree.descriptor_key(),
            change: Change::Delete,
        }];
        let record = record::encode_transaction(txn, &changes);
        if let Some(needed) = self.room_needed(record.len()) {
            self.log.reserve(needed).await?;
        }
        let derived = derive(&self.store(), &self.registry, &changes)?;
        let mut core = loop {
            let core = self.lock();
            if core.takes_records() {
                break core;
            }
            drop(core);
            self.takes_records().await;
        };
        self.append(&mut core, term, record, derived)?;
        Ok(())
    }
}
