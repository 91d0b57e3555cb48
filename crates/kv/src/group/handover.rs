//! Handing leadership over: at an operator's wish, when the leader's process is told to stop, and
//! because another voter is preferred.
//!
//! ```text
//!  asked          transactions that are open now get OPEN_WAIT_MAX; new ones go on
//!  hold           new transactions wait, those that are left get HOLD_MAX
//!  transfer       no lease, no proposals, for the rest of the term; the other is told to stand
//!  led elsewhere  who waited goes on there; what is still open here gets 40001
//! ```
//! From the hold to the end no more than [`HELD_MAX`] passes for anybody who waits here: if the
//! transfer takes longer, it has failed, and the leader steps down.
//!
//! # Invariants
//! * The lease is gone, and everybody can see so, before the other learns that it may stand.
//! * Nothing is proposed after that, so nothing that a client was promised depends on the outcome.
//!
//! # What it leaves out
//! A preference is obeyed by a transfer and never by elections: an election finds any voter that
//! has everything, and leadership moves on afterwards.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;

use base::env::{sleep, Instant, Reactor, Severity};
use base::sync::Event;
use base::{coro, Error, Lsn, NodeId, Result, SqlState};

use super::core::Core;
use super::{not_leader, within, Group};

/// Transactions that are open when a switchover is asked for get so much time.
const OPEN_WAIT_MAX: Duration = Duration::from_secs(2);

/// Short transactions get so much time while new ones wait.
const HOLD_MAX: Duration = Duration::from_millis(40);

/// New transactions wait no longer than this.
const HELD_MAX: Duration = Duration::from_millis(100);

/// A voter that is to lead gets so much time to come near the leader.
const NEAR_WAIT_MAX: Duration = Duration::from_secs(10);

/// How often it is looked whether something has come about.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// How often it is asked whether another voter is preferred …
const PREFERENCE_LOOK: Duration = Duration::from_secs(1);

/// … and how long a leader leads at least before it follows a preference, unless it is to leave.
const PREFERENCE_PAUSE: Duration = Duration::from_secs(5);

const _: () = assert!(HOLD_MAX.as_millis() < HELD_MAX.as_millis());

/// Who is open, and whether new transactions wait.
#[derive(Debug, Default)]
pub struct Handover {
    /// Transactions that are open, those begun before the last mark apart from those after it.
    open: [AtomicUsize; 2],
    mark: AtomicU64,
    /// New transactions wait.
    holds: AtomicBool,
    /// That is over.
    released: Event,
    /// Somebody hands over.
    busy: AtomicBool,
}

/// A transaction that is open; it is no longer when this is dropped.
#[derive(Debug)]
pub struct Open {
    group: Arc<Group>,
    place: usize,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.group.handover.open[self.place].fetch_sub(1, Ordering::SeqCst);
    }
}

/// For who hands over: everybody may again when it is dropped.
pub(super) struct Busy<'a>(&'a Handover);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.holds.store(false, Ordering::SeqCst);
        self.0.released.notify_all();
        self.0.busy.store(false, Ordering::SeqCst);
    }
}

impl Handover {
    fn take(&self) -> Result<Busy<'_>> {
        match self.busy.swap(true, Ordering::SeqCst) {
            false => Ok(Busy(self)),
            true => Err(Error::new(
                SqlState::OBJECT_IN_USE,
                "leadership is being handed over already",
            )),
        }
    }

    fn count(&self) -> usize {
        let open = self.open.iter().map(|open| open.load(Ordering::SeqCst));
        open.sum()
    }
}

/// When this node was last asked for preferences, and since when it leads.
#[derive(Debug, Default)]
pub struct Preference {
    looked: Instant,
    leads_since: Instant,
}

impl Group {
    /// A transaction begins. Waits (inside a coroutine) while leadership is being handed over.
    ///
    /// # Errors
    /// [`not_leader`] when this node leads no longer; the interrupt that ended the wait.
    pub fn open_transaction(self: &Arc<Self>) -> Result<Open> {
        if self.handover.holds.load(Ordering::SeqCst) {
            let holds = || (!self.handover.holds.load(Ordering::SeqCst)).then_some(());
            let released = self.handover.released.until(holds);
            coro::wait(within(&*self.env, HELD_MAX, released))?;
            self.leading().ok_or_else(not_leader)?;
        }
        let place = (self.handover.mark.load(Ordering::SeqCst) % 2) as usize;
        self.handover.open[place].fetch_add(1, Ordering::SeqCst);
        let group = self.clone();
        Ok(Open { group, place })
    }

    /// Whether new transactions wait.
    #[cfg(test)]
    pub fn handover_holds(&self) -> bool {
        self.handover.holds.load(Ordering::SeqCst)
    }

    /// Hands leadership over to the voter of that name, or to the most fitting one; the number of
    /// the one that leads then.
    ///
    /// # Errors
    /// [`not_leader`]; 42704, 55000 for a node that cannot lead; 55000 when the transfer failed.
    pub async fn switchover(self: &Arc<Self>, name: Option<&str>) -> Result<u64> {
        let busy = self.begin_handover()?;
        self.leading().ok_or_else(not_leader)?;
        let to = self.choose_successor(name)?;
        if to == self.config.node {
            return Ok(to.0);
        }
        self.wait_until_near(to).await?;
        // Two marks are never out at once, so one place empties for good.
        let before = (self.handover.mark.fetch_add(1, Ordering::SeqCst) % 2) as usize;
        let open = &self.handover.open[before];
        self.wait_while(OPEN_WAIT_MAX, || open.load(Ordering::SeqCst) > 0)
            .await;
        self.hold_and_transfer(busy, to).await?;
        // It has succeeded when another leads, and failed when this node has stepped down.
        let patience = self.config.settings.election_timeout * 4;
        self.wait_while(patience, || {
            self.leader().is_none_or(|node| node == self.config.node)
        })
        .await;
        match self.leader() {
            Some(leader) if leader == to => Ok(to.0),
            leader => {
                let leader = leader.map_or("nobody".to_owned(), |node| format!("node {node}"));
                let message = format!("the transfer to node {to} failed; {leader} leads");
                Err(Error::new(
                    SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                    message,
                ))
            }
        }
    }

    /// Nobody else may hand over until this is dropped.
    ///
    /// # Errors
    /// 55006 when somebody does.
    pub(super) fn begin_handover(&self) -> Result<Busy<'_>> {
        self.handover.take()
    }

    /// Lets new transactions wait, gives the open ones a moment, and tells the other to stand.
    pub(super) async fn hold_and_transfer(&self, busy: Busy<'_>, to: NodeId) -> Result<()> {
        let term = self.leading().ok_or_else(not_leader)?;
        self.handover.holds.store(true, Ordering::SeqCst);
        let held_at = self.env.now();
        self.wait_while(HOLD_MAX, || self.handover.count() > 0)
            .await;
        self.begin_transfer(to)?;
        let held = HELD_MAX.saturating_sub(self.env.now().since(held_at));
        self.wait_while(held, || self.leading() == Some(term)).await;
        drop(busy);
        Ok(())
    }

    /// Begins to hand leadership over, and returns at once: the number of the one that is to lead.
    ///
    /// # Errors
    /// As [`Group::switchover`], as far as that can be said beforehand.
    pub fn begin_switchover(self: &Arc<Self>, name: Option<&str>) -> Result<u64> {
        let to = self.choose_successor(name)?;
        if let Some(member) = self.directory().member(to).cloned() {
            let group = self.clone();
            let task = move || -> base::env::LocalBoxFuture<'static, ()> {
                Box::pin(async move {
                    if let Err(error) = group.switchover(Some(&member.name)).await {
                        let message = format!("no switchover: {}", error.message());
                        group.env.log(Severity::Warning, &message);
                    }
                })
            };
            self.env.spawn(Reactor::Group, "switchover", Box::new(task));
        }
        Ok(to.0)
    }

    async fn wait_while(&self, longest: Duration, mut waits: impl FnMut() -> bool) {
        let deadline = self.env.now().after(longest);
        while waits() && self.env.now() < deadline && !self.is_over() {
            sleep(&*self.env, LOOK_EVERY).await;
        }
    }

    /// The fence and the transfer.
    fn begin_transfer(&self, to: NodeId) -> Result<()> {
        let mut core = self.lock();
        if core.failed || core.deaf {
            return Err(not_leader());
        }
        // Before anything can leave: who looks at the lease from here on finds none.
        self.shared.lease_until.store(0, Ordering::SeqCst);
        let message = format!("handing leadership over to node {to}");
        self.env.log(Severity::Info, &message);
        let result = core.consensus.transfer_leadership(to);
        self.pump(&mut core);
        result
    }

    /// Who is to lead: the one that is named, or the most preferred that can.
    fn choose_successor(&self, name: Option<&str>) -> Result<NodeId> {
        let core = self.lock();
        core.led.ok_or_else(not_leader)?;
        let wrong = |message: String| {
            Err(Error::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                message,
            ))
        };
        let directory = self.directory();
        let Some(name) = name else {
            return match self.preferred(&core) {
                Some(node) => Ok(node),
                None => wrong("there is no other voter that could lead".to_owned()),
            };
        };
        let Some(member) = directory.named(name) else {
            let message = format!("node \"{name}\" does not exist");
            return Err(Error::new(SqlState::UNDEFINED_OBJECT, message));
        };
        if !member.voter {
            let message = format!("node \"{name}\" is a learner, and learners never lead");
            let hint = format!("Let it vote first: quorate node promote {name}.");
            return wrong(message).map_err(|error: Error| error.with_hint(hint));
        }
        match member.node == self.config.node || self.can_lead(&core, member.node) {
            true => Ok(member.node),
            false => wrong(format!("node \"{name}\" does not answer")),
        }
    }

    fn can_lead(&self, core: &Core, node: NodeId) -> bool {
        let replicas = core.consensus.replicas(self.env.now());
        let is_active = replicas.iter().any(|one| one.node == node && one.active);
        is_active && self.transport.is_connected(node)
    }

    /// The most preferred voter but this one, those whose disks have trouble last, and after them those
    /// that leave; among equals the one that is nearest.
    fn preferred(&self, core: &Core) -> Option<NodeId> {
        let directory = self.directory();
        let replicas = core.consensus.replicas(self.env.now());
        let flushed = |node: NodeId| {
            let replica = replicas.iter().find(|replica| replica.node == node);
            replica.map_or(Lsn::ZERO, |replica| replica.flushed)
        };
        let voters = directory.members.iter().filter(|member| member.voter);
        let others = voters.filter(|member| member.node != self.config.node);
        others
            .filter(|member| self.can_lead(core, member.node))
            .max_by_key(|member| {
                let node = member.node;
                let is_fit = !self.has_trouble(core, node);
                let stays = member.leaves.is_none();
                (stays, is_fit, directory.rank(member), flushed(node), node)
            })
            .map(|member| member.node)
    }

    /// Waits until a voter has what is committed now.
    async fn wait_until_near(&self, node: NodeId) -> Result<()> {
        let target = self.gate.commit();
        let lags = || {
            let core = self.lock();
            let replicas = core.consensus.replicas(self.env.now());
            let found = replicas.into_iter().find(|replica| replica.node == node);
            found.is_none_or(|replica| replica.flushed < target)
        };
        self.wait_while(NEAR_WAIT_MAX, lags).await;
        match lags() {
            false => Ok(()),
            true => Err(Error::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("node {node} is too far behind to lead"),
            )),
        }
    }

    /// Hands over if this node leads and another could, before it stops.
    pub async fn hand_over_before_stop(self: &Arc<Self>) {
        let could = {
            let core = self.lock();
            core.led.is_some() && self.preferred(&core).is_some()
        };
        if !could {
            return;
        }
        if let Err(error) = self.switchover(None).await {
            let message = format!("stopping without a successor: {}", error.message());
            self.env.log(Severity::Warning, &message);
        }
    }

    /// Hands over to a voter that is preferred to this one.
    pub(super) fn tend_preference(&self, core: &mut Core, now: Instant) {
        if core.led.is_none() {
            core.preference.leads_since = now;
            return;
        }
        if now.since(core.preference.looked) < PREFERENCE_LOOK {
            return;
        }
        core.preference.looked = now;
        let directory = self.directory();
        let Some(this) = directory.member(self.config.node) else {
            return;
        };
        let other = self.preferred(core).and_then(|node| directory.member(node));
        let Some(other) = other else {
            return;
        };
        // Other groups may have let this node go already, and then nobody can use them while it leads.
        let must_go = this.leaves.is_some() && other.leaves.is_none();
        let is_early = now.since(core.preference.leads_since) < PREFERENCE_PAUSE;
        let is_preferred = directory.rank(other) > directory.rank(this);
        if !must_go && (is_early || !is_preferred || self.has_trouble(core, other.node)) {
            return;
        }
        // Once more only after a while, if it fails.
        core.preference.leads_since = now;
        let (Some(group), name) = (self.me.upgrade(), other.name.clone()) else {
            return;
        };
        let task = move || -> base::env::LocalBoxFuture<'static, ()> {
            Box::pin(async move {
                if let Err(error) = group.switchover(Some(&name)).await {
                    let message = format!("{name} is preferred, and does not lead: {error}");
                    group.env.log(Severity::Warning, &message);
                }
            })
        };
        self.env.spawn(Reactor::Group, "preference", Box::new(task));
    }
}
