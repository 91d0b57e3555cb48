//! Who belongs to the group, and how that changes.
//!
//! A change is an entry of the log like any other, made by the leader, one at a time, and takes
//! effect when it is committed. What concerns voters goes through a joint configuration, which the
//! leader leaves by itself:
//!
//! ```text
//! promote n4        voters 1 2 3      learners 4
//!   entry 90        voters 1 2 3 4 and 1 2 3: both majorities decide
//!   entry 91        voters 1 2 3 4
//! ```
//! A crash in between leaves nothing to clean up: whoever leads next finds the joint configuration
//! in its log and leaves it.
//!
//! # Who was removed
//! learns of it from whoever still is a member: by a frame, or, if it was away, by the answer when
//! it connects again. Then it stops by itself. A node of an older incarnation does the same. Where
//! there are several groups, the first removes a member last ([`super::founding`]).
//!
//! # What it leaves out
//! A learner that is promoted must have caught up with where the leader was when it was asked; it
//! is not watched further.

use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

use base::cluster::{Administration, NewNode};
use base::env::{sleep, Severity};
use base::ids::FIRST_GROUP;
use base::{Durability, Error, Lsn, NodeId, Position, Result, SqlState};
use raft::{ConfChange, Membership, MEMBERS_MAX};

use super::core::Core;
use super::{not_leader, Group};
use crate::config::{KeyHash, Keys, Member};
use crate::directory::{Directory, NAME_BYTES_MAX};
use crate::frame::Frame;

/// A change waits so long for the one before it.
const CHANGE_WAIT_MAX: Duration = Duration::from_secs(10);

/// A learner that is to vote gets so much time to catch up.
const CATCH_UP_MAX: Duration = Duration::from_secs(60);

/// How often it is looked whether something has come about.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// What a change of membership does.
pub(super) struct Change {
    pub(super) steps: Vec<ConfChange>,
    pub(super) directory: Directory,
}

pub(super) fn wrong_state(message: String) -> Error {
    Error::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
}

pub(super) fn find<'a>(directory: &'a Directory, name: &str) -> Result<&'a Member> {
    directory.named(name).ok_or_else(|| {
        Error::new(
            SqlState::UNDEFINED_OBJECT,
            format!("node \"{name}\" does not exist"),
        )
    })
}

impl Group {
    /// Who belongs to the group now.
    pub fn directory(&self) -> Arc<Directory> {
        self.directory.read().clone()
    }

    /// Does what an operator asks for. What is the leader's to do fails elsewhere.
    ///
    /// # Errors
    /// [`not_leader`]; 42704, 42710, 22023 and 55000 for wishes that cannot be fulfilled; 55006
    /// while another change is under way; as [`Group::settle`].
    pub async fn administer(self: &Arc<Self>, wish: Administration) -> Result<u64> {
        match wish {
            Administration::AddNode(node) => self.add_node(node).await,
            Administration::RemoveNode(name) => self.remove_node(&name).await,
            Administration::PromoteNode(name) => self.promote_node(&name).await,
            Administration::DemoteNode(name) => self.demote_node(&name).await,
            Administration::SetNode {
                name,
                zone,
                priority,
                key,
            } => {
                let key = key.map(KeyHash);
                self.set_node(&name, zone, priority, key).await
            }
            Administration::SetLeaderZone(zone) => self.set_leader_zone(&zone).await,
            Administration::Switchover(name) => self.switchover(name.as_deref()).await,
            Administration::PromoteAlone => self.promote_alone().await,
            Administration::CheckConsistency => self.check_consistency().await,
            Administration::AddGroup => self.add_group().await,
        }
    }

    async fn add_node(self: &Arc<Self>, new: NewNode) -> Result<u64> {
        check_new(&new)?;
        let mut number = 0;
        self.change(|directory, _| {
            let taken = |what: &str, text: &str| {
                let message = format!("another node has the {what} \"{text}\"");
                Error::new(SqlState::DUPLICATE_OBJECT, message)
            };
            if directory.members.len() >= MEMBERS_MAX {
                let message = format!("a cluster has at most {MEMBERS_MAX} nodes");
                return Err(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
            }
            for member in &directory.members {
                if member.name == new.name {
                    return Err(taken("name", &new.name));
                }
                for address in [&new.peer_address, &new.sql_address] {
                    if [&member.peer_address, &member.sql_address].contains(&address) {
                        return Err(taken("address", address));
                    }
                }
            }
            number = directory.next_node;
            let mut directory = directory.clone();
            directory.next_node += 1;
            directory.members.push(Member {
                node: NodeId(number),
                name: new.name.clone(),
                peer_address: new.peer_address.clone(),
                sql_address: new.sql_address.clone(),
                voter: false,
                zone: new.zone.clone(),
                priority: new.priority,
                keys: Keys::default(),
                leaves: None,
            });
            let steps = vec![ConfChange::AddLearner(NodeId(number))];
            Ok(Change { steps, directory })
        })
        .await?;
        Ok(number)
    }

    async fn remove_node(self: &Arc<Self>, name: &str) -> Result<u64> {
        self.change(|directory, core| {
            let node = find(directory, name)?.node;
            self.check_dispensable(core, name, node)?;
            let steps = vec![ConfChange::Remove(node)];
            let directory = directory.clone();
            Ok(Change { steps, directory })
        })
        .await
    }

    async fn demote_node(self: &Arc<Self>, name: &str) -> Result<u64> {
        self.change(|directory, core| {
            let member = find(directory, name)?;
            if !member.voter {
                return Err(wrong_state(format!("node \"{name}\" is a learner already")));
            }
            self.check_dispensable(core, name, member.node)?;
            let steps = vec![ConfChange::AddLearner(member.node)];
            let directory = directory.clone();
            Ok(Change { steps, directory })
        })
        .await
    }

    async fn promote_node(self: &Arc<Self>, name: &str) -> Result<u64> {
        let (node, target) = {
            let core = self.lock();
            let directory = self.directory();
            let member = find(&directory, name)?;
            if member.voter {
                return Err(wrong_state(format!("node \"{name}\" is a voter already")));
            }
            (member.node, core.consensus.last())
        };
        self.wait_for_catch_up(name, node, target, CATCH_UP_MAX)
            .await?;
        self.change(|directory, _| {
            let node = find(directory, name)?.node;
            let steps = vec![ConfChange::AddVoter(node)];
            let directory = directory.clone();
            Ok(Change { steps, directory })
        })
        .await
    }

    async fn set_node(
        self: &Arc<Self>,
        name: &str,
        zone: Option<Arc<str>>,
        priority: Option<u32>,
        key: Option<KeyHash>,
    ) -> Result<u64> {
        if let Some(zone) = &zone {
            check_text("zone", zone)?;
        }
        self.change(|directory, _| {
            let (node, voter) = {
                let member = find(directory, name)?;
                (member.node, member.voter)
            };
            let mut directory = directory.clone();
            for member in &mut directory.members {
                if member.node == node {
                    member.leaves = None;
                    member.zone = zone.clone().unwrap_or_else(|| member.zone.clone());
                    member.priority = priority.unwrap_or(member.priority);
                    if let Some(key) = key {
                        member.keys.expect(key);
                    }
                }
            }
            let steps = vec![unchanged(node, voter)];
            Ok(Change { steps, directory })
        })
        .await
    }

    /// Notes with which key a member has shown who it is, if none is noted yet or it is its next. The
    /// leader does so once the member has connected to it, with a certificate for its name.
    ///
    /// # Errors
    /// 55000 when a key is noted already; as [`Group::administer`].
    pub async fn note_key(self: &Arc<Self>, node: NodeId, key: KeyHash) -> Result<u64> {
        self.change(|directory, _| {
            let mut directory = directory.clone();
            let mut members = directory.members.iter_mut();
            let member = members.find(|member| member.node == node && member.keys.is_news(key));
            let Some(member) = member else {
                return Err(wrong_state(format!(
                    "node {node} is no member, or its key is known"
                )));
            };
            member.keys.note(key);
            let steps = vec![unchanged(node, member.voter)];
            Ok(Change { steps, directory })
        })
        .await
    }

    async fn set_leader_zone(self: &Arc<Self>, zone: &Arc<str>) -> Result<u64> {
        check_text("zone", zone)?;
        self.change(|directory, _| {
            let mut directory = directory.clone();
            directory.leader_zone = zone.clone();
            let steps = vec![unchanged(self.config.node, true)];
            Ok(Change { steps, directory })
        })
        .await
    }

    /// Logs a change once none is under way, and waits until it is in effect. `make` is asked
    /// under the latch, so what it looks at is what the change applies to.
    pub(super) async fn change(
        self: &Arc<Self>,
        mut make: impl FnMut(&Directory, &Core) -> Result<Change>,
    ) -> Result<u64> {
        let deadline = self.env.now().after(CHANGE_WAIT_MAX);
        let position = loop {
            if let Some(needed) = self.room_needed(raft::CONTEXT_BYTES_MAX) {
                self.log.reserve(needed).await?;
            }
            match self.try_change(&mut make) {
                Err(error) if error.state() == SqlState::OBJECT_IN_USE => {
                    if self.env.now() >= deadline {
                        return Err(error);
                    }
                }
                result => break result?,
            }
            sleep(&*self.env, LOOK_EVERY).await;
        };
        self.settle(position, Durability::On).await?;
        // A joint configuration is left by itself; whoever asked sees the new one alone.
        while self.env.now() < deadline && self.is_changing(position) {
            sleep(&*self.env, LOOK_EVERY).await;
        }
        Ok(position.lsn.0)
    }

    fn try_change(
        &self,
        make: &mut impl FnMut(&Directory, &Core) -> Result<Change>,
    ) -> Result<Position> {
        let mut core = self.lock();
        let term = core.led.filter(|_| !core.failed && !core.deaf);
        let term = term.ok_or_else(not_leader)?;
        if !core.takes_records() || core.consensus.is_changing_membership() {
            return Err(Error::new(
                SqlState::OBJECT_IN_USE,
                "another change of the group's membership is under way",
            ));
        }
        let change = make(&self.directory(), &core)?;
        let context = change.directory.encode();
        if context.len() > raft::CONTEXT_BYTES_MAX {
            let message = "names and addresses of the members are too long";
            return Err(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        let consensus = &mut core.consensus;
        let position = consensus.propose_conf_change(term, &change.steps, context)?;
        self.pump(&mut core);
        Ok(position)
    }

    fn is_changing(&self, position: Position) -> bool {
        let core = self.lock();
        core.led == Some(position.term) && core.consensus.is_changing_membership()
    }

    /// Fails unless the group does well without a member.
    pub(super) fn check_dispensable(&self, core: &Core, name: &str, node: NodeId) -> Result<()> {
        let membership = core.consensus.membership();
        if !membership.voters.contains(&node) {
            return Ok(());
        }
        if node == self.config.node {
            let message = format!("node \"{name}\" leads the group");
            let hint = "Hand leadership over first: quorate switchover.";
            return Err(wrong_state(message).with_hint(hint));
        }
        let replicas = core.consensus.replicas(self.env.now());
        let others = membership.voters.iter().filter(|voter| **voter != node);
        let active = others
            .filter(|voter| replicas.iter().any(|one| one.node == **voter && one.active))
            .count();
        let left = membership.voters.len() - 1;
        match active > left / 2 {
            true => Ok(()),
            false => Err(wrong_state(format!(
                "without node \"{name}\" there is no majority: {active} of {left} voters answer"
            ))),
        }
    }

    /// Waits until a learner has on its disk what the leader had when it was asked, for so long at most.
    pub(super) async fn wait_for_catch_up(
        &self,
        name: &str,
        node: NodeId,
        target: Lsn,
        longest: Duration,
    ) -> Result<()> {
        let deadline = self.env.now().after(longest);
        loop {
            let now = self.env.now();
            let found = {
                let core = self.lock();
                core.led.ok_or_else(not_leader)?;
                let status = core.consensus.status(now);
                status.peers.into_iter().find(|peer| peer.node == node)
            };
            let caught_up = found.is_some_and(|peer| peer.active && peer.flushed >= target);
            if caught_up {
                return Ok(());
            }
            let silent = !found.is_some_and(|peer| peer.active);
            if now >= deadline || silent && now.after(CHANGE_WAIT_MAX) >= deadline {
                let flushed = found.map_or(Lsn::ZERO, |peer| peer.flushed);
                let detail = format!("It has LSN {flushed}, and the leader had {target}.");
                let message = format!("node \"{name}\" has not caught up");
                return Err(wrong_state(message).with_detail(detail));
            }
            sleep(&*self.env, LOOK_EVERY).await;
        }
    }

    // ---- what has changed ----

    /// A membership has taken effect.
    pub(super) fn note_membership(&self, core: &mut Core, membership: &Membership) -> Result<()> {
        let directory = Arc::new(Directory::of(membership, &self.config.founded.members)?);
        let before = std::mem::replace(&mut *self.directory.write(), directory.clone());
        for member in &before.members {
            if directory.was_removed(member.node) && member.node != self.config.node {
                let name = &member.name;
                self.env.log(
                    Severity::Info,
                    &format!("{name} is no member of the group any more"),
                );
                let frame = removed_frame(&directory).encode(self.config.group);
                self.transport.send(member.node, frame);
                core.after.send = true;
            }
        }
        core.named.members_changed();
        self.announce_members();
        if directory.was_removed(self.config.node) {
            self.retire(core, &directory);
        }
        Ok(())
    }

    /// The members as the directory has them.
    pub(super) fn announce_members(&self) {
        let directory = self.directory();
        let alone = directory.members.len() == 1;
        self.shared.alone.store(alone, Ordering::Relaxed);
        self.transport.members(&directory);
    }

    /// This node was told that it has no part in the group any more.
    pub fn note_removed(&self, incarnation: u64, begun_after: Lsn) {
        let mut directory = (*self.directory()).clone();
        if incarnation < directory.incarnation {
            return;
        }
        let is_older = incarnation > directory.incarnation;
        directory.incarnation = incarnation;
        directory.begun_after = if is_older { begun_after } else { Lsn::ZERO };
        let mut core = self.lock();
        if !core.failed {
            self.retire(&mut core, &directory);
        }
    }

    /// This node stops, because the group goes on without it. Where that is not the first group, which
    /// says who has a part in the cluster, the replica only rests: it may be wanted again.
    fn retire(&self, core: &mut Core, directory: &Directory) {
        if self.config.group != FIRST_GROUP {
            let message = format!("group {} goes on without this node", self.config.group);
            return self.env.log(Severity::Info, &message);
        }
        let mine = self.directory().incarnation;
        let last = self.log.last().lsn;
        let message = match directory.incarnation > mine {
            true => format!(
                "the group goes on in incarnation {} from LSN {}, without this node, which is of \
                 incarnation {mine} and has the log up to LSN {last}; what it has beyond is lost. \
                 To take part again it needs an empty directory and a new number: quorate node add",
                directory.incarnation, directory.begun_after
            ),
            false => "this node was removed from the cluster. To take part again it needs an \
                      empty directory and a new number: quorate node add"
                .to_owned(),
        };
        self.fail(core, &wrong_state(message));
    }
}

/// What a node is told that was removed.
fn removed_frame(directory: &Directory) -> Frame {
    Frame::Removed {
        incarnation: directory.incarnation,
        begun_after: directory.begun_after,
    }
}

/// A step that changes nothing, for a change of the directory alone.
pub(super) fn unchanged(node: NodeId, voter: bool) -> ConfChange {
    match voter {
        true => ConfChange::AddVoter(node),
        false => ConfChange::AddLearner(node),
    }
}

fn check_text(what: &str, text: &str) -> Result<()> {
    let sound = text.len() <= NAME_BYTES_MAX && !text.chars().any(|c| c.is_control() || c == ',');
    match sound {
        true => Ok(()),
        false => Err(Error::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("\"{text}\" cannot be a {what}"),
        )),
    }
}

fn check_new(new: &NewNode) -> Result<()> {
    check_text("name", &new.name)?;
    check_text("zone", &new.zone)?;
    let is_word = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if new.name.is_empty() || !new.name.chars().all(is_word) {
        return Err(Error::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("\"{}\" cannot be the name of a node", new.name),
        )
        .with_detail("Names are of letters, digits, dots, hyphens and underscores."));
    }
    for address in [&new.peer_address, &new.sql_address] {
        let port = address.rsplit_once(':').map(|(_, port)| port);
        if !port.is_some_and(|port| port.parse::<u16>().is_ok_and(|port| port > 0)) {
            return Err(Error::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("\"{address}\" is no address of the form host:port"),
            ));
        }
    }
    Ok(())
}
