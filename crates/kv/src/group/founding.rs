//! How groups are founded, and how their members follow those of the first.
//!
//! The leader of the first group writes the row that founds another ([`crate::groups`]). From then
//! on the leader of the other one has an eye on the members of the first, and makes its own the
//! same, a change at a time:
//!
//! ```text
//! first group               another, which has n1 n2 n3
//! 80: n4 is a learner       adds n4 as a learner              aligned 80
//! 95: n4 votes              lets n4 vote once it caught up    aligned 95
//! 99: n1 is to leave        removes n1                        aligned 99
//! 104: n1 is gone           (nothing: it has let it go)
//! ```
//! # Invariants
//! - A node is removed from the first group once all others have let it go: they would lose a voter
//!   otherwise, and perhaps their majority with it. So whoever removes it marks it first.
//! - A leader of another group that lags in the first undoes nothing: what it knows is of an older
//!   position than its group's directory is.
//!
//! # What it leaves out
//! All groups have all nodes; which nodes have which group cannot be chosen.

use std::sync::Arc;
use std::time::Duration;

use base::{Durability, Error, GroupId, Lsn, NodeId, Position, Result, SqlState, TxnId};
use raft::ConfChange;

use super::core::Core;
use super::members::{find, unchanged, wrong_state, Change};
use super::{not_leader, Group, TXN_SEQUENCE};
use crate::apply::derive;
use crate::config::Member;
use crate::directory::Directory;
use crate::groups::{founding, Groups, GROUPS_MAX};
use crate::record;

/// A learner that is to vote is waited for so long at a time: it may be none any more meanwhile.
const CATCH_UP_LOOK: Duration = Duration::from_secs(2);

/// What stands between a group's members and those of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// A change that can be made at once.
    Change,
    /// A learner is to vote, which has to catch up before.
    Promote(NodeId),
    /// This leader is to vote no more: another must lead, which stays.
    HandOver(NodeId),
}

impl Group {
    /// The groups of the cluster but the first, as far as this replica of the first knows them to be
    /// committed.
    pub fn groups(&self) -> Arc<Groups> {
        self.registry.groups().in_force()
    }

    /// Those that this replica knows of, committed or not.
    pub fn newest_groups(&self) -> Arc<Groups> {
        self.registry.groups().newest()
    }

    /// Ready when those are others than `known`, or this replica has ended.
    pub async fn until_groups(&self, known: &Arc<Groups>) {
        let is_news = || {
            let now = self.registry.groups().in_force();
            (!Arc::ptr_eq(&now, known) || self.is_over()).then_some(())
        };
        self.registry.groups().changed.until(is_news).await;
    }

    /// Founds a further group with the voters of this one, the first; its number.
    pub(super) async fn add_group(self: &Arc<Self>) -> Result<u64> {
        let (number, position) = loop {
            if let Some(needed) = self.room_needed(raft::CONTEXT_BYTES_MAX) {
                self.log.reserve(needed).await?;
            }
            self.takes_records().await;
            if let Some(found) = self.found()? {
                break found;
            }
        };
        self.settle(position, Durability::On).await?;
        Ok(u64::from(number.0))
    }

    /// Nothing where a record in pieces stands in line.
    fn found(&self) -> Result<Option<(GroupId, Position)>> {
        let mut core = self.lock();
        if !core.takes_records() {
            return Ok(None);
        }
        let term = core.led.filter(|_| !core.failed && !core.deaf);
        let term = term.ok_or_else(not_leader)?;
        let (txn, _) = self.take_numbers_in_line(&mut core, TXN_SEQUENCE, 1)?;
        let known = self.registry.groups().newest();
        if known.count() >= GROUPS_MAX {
            let message = format!("a cluster has at most {GROUPS_MAX} groups");
            return Err(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        let at = self.committed();
        let directory = self.directory();
        // The directory was read after the position, so it is of that or later.
        let mut founded = Directory::founded(&[], 1).aligned_with(&directory, at);
        founded.members.retain(|member| member.voter);
        let number = known.next();
        let changes = [founding(number, &founded)];
        let derived = derive(&self.store(), &self.registry, &changes)?;
        let record = record::encode_transaction(TxnId(txn), &changes);
        let position = self.append(&mut core, term, record, derived)?;
        Ok(Some((number, position)))
    }

    /// Marks a member of the first group, which this is, as one that leaves, unless it is; its number,
    /// and what was committed when it was marked.
    ///
    /// # Errors
    /// As [`Group::administer`].
    pub async fn mark_leaving(self: &Arc<Self>, name: &str) -> Result<(NodeId, Lsn)> {
        let marked = |directory: &Directory| {
            let member = find(directory, name)?;
            Ok::<_, Error>(member.leaves.map(|since| (member.node, since)))
        };
        if let Some(marked) = marked(&self.directory())? {
            return Ok(marked);
        }
        self.change(|directory, core| {
            let (node, voter) = {
                let member = find(directory, name)?;
                (member.node, member.voter)
            };
            self.check_dispensable(core, name, node)?;
            let mut directory = directory.clone();
            for member in &mut directory.members {
                if member.node == node {
                    member.leaves = member.leaves.or(Some(self.committed()));
                }
            }
            let steps = vec![unchanged(node, voter)];
            Ok(Change { steps, directory })
        })
        .await?;
        let gone = || wrong_state(format!("node \"{name}\" does not leave any more"));
        marked(&self.directory())?.ok_or_else(gone)
    }

    /// Whether this group, another than the first, has let a node go that is marked in the first since
    /// that was committed there, as far as this replica knows.
    pub fn has_let_go(&self, node: NodeId, since: Lsn) -> bool {
        let directory = self.directory();
        // The first's directory has the node at that position, and so had this one if it was aligned
        // with that. Who aligns reads a position and then a directory, which may be newer: so the mark
        // may have been followed at the very position that was committed when it was made.
        directory.aligned >= since && directory.member(node).is_none()
    }

    /// Whether this replica leads its group, and there is something for [`Group::align`] to do.
    pub fn is_misaligned(&self, first: &Directory, at: Lsn) -> bool {
        let directory = self.directory();
        self.leading().is_some() && self.next_change(&directory, first, at).is_some()
    }

    /// Whether this replica leads its group, and that follows more of the first group than is known here
    /// to be committed there, as when this node has just started.
    pub fn is_ahead_of(&self, at: Lsn) -> bool {
        self.leading().is_some() && at < self.directory().aligned
    }

    /// Takes a step towards having the members that the first group has, `at` that position of it or
    /// later.
    ///
    /// # Errors
    /// [`not_leader`]; 55000 when a member cannot go or has not caught up; as [`Group::administer`].
    pub async fn align(self: &Arc<Self>, first: &Directory, at: Lsn) -> Result<()> {
        let directory = self.directory();
        match self.next_change(&directory, first, at) {
            None => Ok(()),
            Some(Next::HandOver(node)) => {
                let name = directory.member(node).map(|member| &*member.name);
                self.switchover(name).await.map(drop)
            }
            Some(Next::Promote(node)) => {
                let name = directory.member(node).map_or("", |member| &*member.name);
                let target = self.lock().consensus.last();
                self.wait_for_catch_up(name, node, target, CATCH_UP_LOOK)
                    .await?;
                let steps = |_: &Directory| vec![ConfChange::AddVoter(node)];
                self.change_aligned(first, at, steps).await
            }
            Some(Next::Change) => {
                let steps = |directory: &Directory| self.steps_towards(directory, first);
                self.change_aligned(first, at, steps).await
            }
        }
    }

    async fn change_aligned(
        self: &Arc<Self>,
        first: &Directory,
        at: Lsn,
        steps: impl Fn(&Directory) -> Vec<ConfChange>,
    ) -> Result<()> {
        let changed = self.change(|directory, core| {
            if at < directory.aligned {
                return Err(wrong_state(format!(
                    "what the first group was at {at} is older than what this one follows"
                )));
            }
            let steps = steps(directory);
            self.check_aligned(core, directory, &steps)?;
            let mut aligned = directory.aligned_with(first, at);
            // Who is not removed yet is a member, and must be found as one.
            let still = |member: &&Member| {
                let goes = steps.contains(&ConfChange::Remove(member.node));
                !goes && aligned.member(member.node).is_none()
            };
            let still: Vec<_> = directory.members.iter().filter(still).cloned().collect();
            aligned.members.extend(still);
            aligned.members.sort_by_key(|member| member.node);
            let directory = aligned;
            Ok(Change { steps, directory })
        });
        changed.await.map(drop)
    }

    /// Fails where a voter would go without whom there is no majority.
    fn check_aligned(
        &self,
        core: &Core,
        directory: &Directory,
        steps: &[ConfChange],
    ) -> Result<()> {
        for step in steps {
            let (ConfChange::AddLearner(node) | ConfChange::Remove(node)) = step else {
                continue;
            };
            if let Some(member) = directory.member(*node).filter(|member| member.voter) {
                self.check_dispensable(core, &member.name, *node)?;
            }
        }
        Ok(())
    }

    /// What is to be done first; nothing where all is as it should be, or what is known of the first
    /// group is older than what this one follows.
    fn next_change(&self, directory: &Directory, first: &Directory, at: Lsn) -> Option<Next> {
        if at < directory.aligned {
            return None;
        }
        let wanted = directory.aligned_with(first, directory.aligned);
        let votes = |of: &Directory, node| of.member(node).is_some_and(|member| member.voter);
        // Nobody votes less before those vote who are to vote instead.
        let mut learners = directory.members.iter().filter(|member| !member.voter);
        let late = learners.find(|member| votes(&wanted, member.node));
        let is_known = wanted
            .members
            .iter()
            .all(|one| directory.member(one.node).is_some());
        if let Some(late) = late.filter(|_| is_known) {
            return Some(Next::Promote(late.node));
        }
        if is_known && !votes(&wanted, self.config.node) {
            let mut stay = wanted.members.iter();
            let stays = stay.find(|member| votes(&wanted, member.node));
            return Some(Next::HandOver(stays?.node));
        }
        (wanted != *directory).then_some(Next::Change)
    }

    /// The steps of a change that needs nobody to catch up: members are added as learners, and once
    /// all are there, voters become learners or go.
    fn steps_towards(&self, directory: &Directory, first: &Directory) -> Vec<ConfChange> {
        let wanted = directory.aligned_with(first, directory.aligned);
        let is_new = |member: &&Member| directory.member(member.node).is_none();
        let mut steps: Vec<_> = (wanted.members.iter().filter(is_new))
            .map(|member| ConfChange::AddLearner(member.node))
            .collect();
        if steps.is_empty() {
            steps.extend(directory.members.iter().filter_map(|member| {
                match wanted.member(member.node) {
                    None => Some(ConfChange::Remove(member.node)),
                    Some(wanted) if member.voter && !wanted.voter => {
                        Some(ConfChange::AddLearner(member.node))
                    }
                    Some(_) => None,
                }
            }));
        }
        if steps.is_empty() {
            steps.push(unchanged(self.config.node, true));
        }
        steps
    }
}
