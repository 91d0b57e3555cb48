//! Going on alone: what an operator orders when the majority, or the only voter, is lost for good.
//!
//! ```text
//! incarnation 1     n1 (voter) ── 1 … 900       n2 (learner) ── 1 … 880
//! n1 is lost; quorate promote n2 --accept-data-loss
//! incarnation 2     n2 (voter) ── 1 … 880, 881 …          881 to 900 of n1 are lost
//! n1 comes back: it is told of incarnation 2, and stops
//! ```
//! Everything that the node has becomes committed by decree, and the membership becomes the node
//! alone, in an incarnation of its own. Both are one durable write beside the log, which overrules
//! what the log says of memberships up to there; the next checkpoint makes it superfluous.
//!
//! # Invariants
//! * No two incarnations exchange anything but the news of the newer one.
//! * Whoever is added later begins with a checkpoint of the new incarnation, never with the log of an
//!   older one: that has members who are none any more, and nothing in it says so.
//! * Terms of a new incarnation are beyond those that the old one can have reached meanwhile, so a
//!   position names one history.
//!
//! # What it leaves out
//! Nobody but the node itself goes on: others may have what it lacks, so they come back under new
//! numbers, from its checkpoint.

use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

use base::env::{sleep, Severity};
use base::{Error, Lsn, Result, SqlState, Term};
use raft::planted::{is_planted, Bug};
use raft::{Consensus, HardState, Membership, Recovered};

use super::core::{Core, LogReader};
use super::meta::{Beginning, Kept};
use super::sequencer::LOG_BYTES_SPARE;
use super::{not_leader, Group};
use crate::directory::Directory;

/// Terms between two incarnations: more elections than a lost group can hold until it hears of it.
const TERMS_BETWEEN: u64 = 1_000_000;

/// How often it is looked whether the log is at rest.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The node leads itself after this at the latest.
const LEAD_WAIT_MAX: Duration = Duration::from_secs(5);

/// So long a sole voter that starts asks the other members whether the group goes on without it.
const ASK_WAIT_MAX: Duration = Duration::from_secs(2);

/// So long any other that starts asks whether they know more of its past than it does. A member
/// that is not reached by then has nothing to say to anybody for a while, and one whose process is
/// down refuses at once.
const ASK_PAST_WAIT_MAX: Duration = Duration::from_millis(500);

fn wrong_state(message: impl Into<String>) -> Error {
    Error::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
}

impl Group {
    /// This node goes on alone with what it has: the last position of that.
    ///
    /// # Errors
    /// 55000 while a leader is there, or this node has not all of a checkpoint; 53100 when its disk
    /// is full, and nothing has changed then; 58030 when the log cannot be written.
    pub async fn promote_alone(self: &Arc<Self>) -> Result<u64> {
        self.check_forsaken(&self.lock())?;
        self.log.reserve(LOG_BYTES_SPARE).await?;
        self.stop_hearing().await?;
        let last = self.log.last();
        let (kept, membership) = {
            let core = self.lock();
            self.beginning(&core, last.lsn)
        };
        self.log.append(Vec::new(), Some(&kept.encode()))?;
        let written = match self.log.write() {
            Ok(_) => self.log.sync().await.map(drop),
            Err(error) => Err(error),
        };
        self.end_promotion(written, kept, &membership)?;
        let deadline = self.env.now().after(LEAD_WAIT_MAX);
        while self.leading().is_none() && self.env.now() < deadline {
            sleep(&*self.env, LOOK_EVERY).await;
        }
        Ok(last.lsn.0)
    }

    /// Fails while the group can do without a promotion.
    fn check_forsaken(&self, core: &Core) -> Result<()> {
        if core.failed || core.deaf {
            return Err(not_leader());
        }
        let directory = self.directory();
        if core.led.is_some() || core.consensus.is_leader() {
            return Err(wrong_state("this node leads the group"));
        }
        if let Some(leader) = core.consensus.leader_heard(self.env.now()) {
            let name = directory.member(leader).map_or("", |member| &member.name);
            let message = format!("node \"{name}\" leads the group, and answers");
            let hint = "Stop it first, or hand over with quorate switchover.";
            return Err(wrong_state(message).with_hint(hint));
        }
        if directory.member(self.config.node).is_none() {
            return Err(wrong_state("this node is no member of the group"));
        }
        if self.is_fetching() || self.log.last().lsn == Lsn::ZERO {
            return Err(wrong_state("this node has not fetched the group's data"));
        }
        Ok(())
    }

    /// Nothing is heard from here on, and nothing written.
    async fn stop_hearing(&self) -> Result<()> {
        loop {
            {
                let mut core = self.lock();
                self.check_forsaken(&core)?;
                if !core.checkpointing && !core.writing {
                    core.deaf = true;
                    return Ok(());
                }
                self.store().discard_checkpoint();
            }
            sleep(&*self.env, LOOK_EVERY).await;
        }
    }

    /// What the new incarnation begins with.
    fn beginning(&self, core: &Core, last: Lsn) -> (Kept, Membership) {
        let node = self.config.node;
        let before = self.directory();
        let members = before.members.iter();
        let kept = is_planted(Bug::IncarnationKept);
        let members: Vec<_> = members
            .filter(|member| member.node == node || kept)
            .cloned()
            .collect();
        let others = members.iter().map(|member| member.node);
        let others: Vec<_> = others.filter(|other| *other != node).collect();
        let directory = Directory {
            incarnation: before.incarnation + u64::from(!kept),
            begun_after: last,
            members,
            ..(*before).clone()
        };
        let membership = Membership {
            context: directory.encode(),
            ..Membership::new(&[node], &others)
        };
        let kept = Kept {
            state: HardState {
                term: Term(core.consensus.term().0 + TERMS_BETWEEN),
                vote: None,
                commit: last,
                // A sole voter is asked for no promise.
                promise: Duration::ZERO,
            },
            beginning: Some(Beginning {
                after: last,
                membership: membership.clone(),
            }),
        };
        (kept, membership)
    }

    fn end_promotion(
        &self,
        written: Result<()>,
        kept: Kept,
        membership: &Membership,
    ) -> Result<()> {
        let mut core = self.lock();
        let result = written.and_then(|()| self.begin_anew(&mut core, kept, membership));
        if let Err(error) = &result {
            self.fail(&mut core, error);
        }
        result
    }

    /// The consensus starts over, from what is on disk now.
    fn begin_anew(&self, core: &mut Core, kept: Kept, membership: &Membership) -> Result<()> {
        let reader = LogReader {
            log: self.log.clone(),
            floor: self.floor.clone(),
            checkpoint: self.checkpoint.clone(),
        };
        let recovered = Recovered {
            hard_state: kept.state,
            checkpoint: self.store().checkpoint().lsn,
            membership: membership.clone(),
            settled: kept.state.commit,
        };
        let config = self.config.consensus(self.env.random());
        core.consensus = Consensus::new(config, reader, recovered, self.env.now())?;
        core.consensus.applied(core.applied);
        core.begin_anew();
        self.shared.leader.store(0, Ordering::SeqCst);
        core.beginning = kept.beginning;
        self.shared.owed.store(0, Ordering::SeqCst);
        self.shared.written.store(0, Ordering::SeqCst);
        core.deaf = false;
        let (incarnation, after) = (self.directory().incarnation, kept.state.commit);
        let message =
            format!("going on alone after {after}, no longer in incarnation {incarnation}");
        self.env.log(Severity::Warning, &message);
        self.note_membership(core, membership)?;
        self.pump(core);
        Ok(())
    }

    /// Whether this node has to ask others before it takes part. As the only voter it would be
    /// elected at once, even if the group has long gone on without it; and any other may have come
    /// back with an older directory, and vote or acknowledge anew ([`crate::starts`]).
    pub(super) fn must_ask_first(&self, core: &mut Core) -> bool {
        if core.has_asked || is_planted(Bug::VoteAfterRestart) {
            return false;
        }
        let patience = match core.consensus.membership().is_sole_voter(self.config.node) {
            true => ASK_WAIT_MAX,
            false => ASK_PAST_WAIT_MAX,
        };
        let late = self.env.now().since(self.opened_at) >= patience;
        core.has_asked = late || self.transport.has_asked_all();
        !core.has_asked
    }
}
