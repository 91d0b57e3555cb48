//! The standbys that are waited for beside the majority: who they are, and who is given up.
//!
//! Who is named follows from `synchronous_standby_names`, as it is in force and as it may come to
//! be ([`crate::followed`]). With `quorate.standby_timeout`, a standby that keeps a waiter
//! waiting for so long is *given up*: it is not waited for any more, until it has caught up.
//!
//! ```text
//! names FIRST 1 (n3), timeout 2 s
//! 0.0 s  a commit at 17 waits; a majority has it, n3 does not
//! 2.0 s  n3 is given up (logged, `sync_state` is async); the reply leaves
//! 9.0 s  n3 has everything that was committed a moment ago: it is taken back (logged)
//! ```
//!
//! # Invariants
//! - Giving up never goes below the majority: only what is waited for beside it becomes less.
//! - Another leader gives up nobody before it has waited itself.

use std::future::Future;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use base::engine::Configuration;
use base::env::{BoxFuture, Instant, Severity};
use base::{Durability, Lsn, NodeId, Position, Result};
use raft::watermarks::{self, Replica, View};
use raft::{Listed, StandbyNames, Standbys};

use super::core::Core;
use super::{not_leader, Group};
use crate::followed::Followed;
use crate::gate::Satisfied;
use crate::parts::Decisions;
use crate::prepared::Prepared;

/// The name of the setting that says who is waited for.
pub const STANDBY_NAMES: &str = "synchronous_standby_names";

/// The name of the setting that says when a standby is given up.
pub const STANDBY_TIMEOUT: &str = "quorate.standby_timeout";

/// A standby that was given up has caught up when it has all that was committed so long ago.
const CAUGHT_UP_WITHIN: Duration = Duration::from_millis(100);

/// The levels at which standbys are waited for.
const LEVELS: [Durability; 3] = [
    Durability::RemoteWrite,
    Durability::On,
    Durability::RemoteApply,
];

/// Who is waited for beside the majority, as this node sees it.
#[derive(Debug)]
pub struct Named {
    /// Of which settings this is.
    version: u64,
    text: Arc<str>,
    in_force: Standbys,
    /// As the settings may come to be.
    pending: Vec<Standbys>,
    timeout: Option<Duration>,
    given_up: Vec<NodeId>,
    /// Who of `in_force` is left.
    kept: Standbys,
    /// For each of [`LEVELS`], a position that the standbys named hold back, and since when.
    held: [Option<(Lsn, Instant)>; LEVELS.len()],
    /// The commit index a moment ago.
    before: Option<(Lsn, Instant)>,
}

impl Default for Named {
    fn default() -> Named {
        Named {
            version: 0,
            text: Arc::from(""),
            in_force: Standbys::NONE,
            pending: Vec::new(),
            timeout: None,
            given_up: Vec::new(),
            kept: Standbys::NONE,
            held: [None; LEVELS.len()],
            before: None,
        }
    }
}

impl Named {
    /// Whether nobody is waited for beside the majority.
    pub fn is_nobody(&self) -> bool {
        self.kept.count == 0 && self.pending.iter().all(|standbys| standbys.count == 0)
    }

    /// `synchronous_standby_names` as it is in force.
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// Those in force, and who of them is given up.
    pub fn in_force(&self) -> (&Standbys, &[NodeId]) {
        (&self.in_force, &self.given_up)
    }

    /// The members have changed: names may mean others.
    pub fn members_changed(&mut self) {
        self.version = 0;
    }

    /// Another node leads, or nobody.
    pub fn end_term(&mut self) {
        self.keep_all();
    }

    fn keep_all(&mut self) {
        self.given_up.clear();
        self.held = [None; LEVELS.len()];
        self.kept = self.in_force.clone();
    }

    /// Whether fewer of those that are waited for are there than a reply needs. `is_active` says
    /// who was heard of lately.
    pub fn lacks(&self, leader: NodeId, is_active: impl Fn(NodeId) -> bool) -> bool {
        let counts = |listed: &&Listed| match listed.node == leader {
            true => !listed.by_star,
            false => is_active(listed.node),
        };
        self.kept.nodes.iter().filter(counts).count() < self.kept.count
    }

    /// For each level the LSN up to which it is satisfied.
    pub fn satisfied(&self, view: &View<'_>) -> Satisfied {
        Durability::ALL.map(|level| {
            let kept = watermarks::satisfied(level, view, &self.kept);
            self.pending.iter().fold(kept, |lowest, standbys| {
                lowest.min(watermarks::satisfied(level, view, standbys))
            })
        })
    }

    /// Who has held back a waiter for too long, at which level and where.
    fn too_late(
        &mut self,
        view: &View<'_>,
        first_waiter: impl Fn(Durability) -> Option<Lsn>,
        timeout: Duration,
        now: Instant,
    ) -> Option<(Vec<NodeId>, Durability, Lsn)> {
        for (level, held) in LEVELS.into_iter().zip(&mut self.held) {
            let reached = watermarks::satisfied(level, view, &self.kept);
            let majority = watermarks::satisfied(level, view, &Standbys::NONE);
            let waiter =
                first_waiter(level).filter(|lsn| (reached.next()..=majority).contains(lsn));
            let Some(waiter) = waiter else {
                *held = None;
                continue;
            };
            let known = held.filter(|(lsn, _)| *lsn > reached);
            let (lsn, since) = *held.insert(known.unwrap_or((waiter, now)));
            if now < since.after(timeout) {
                continue;
            }
            *held = None;
            let late = |node: &NodeId| {
                let replica = view.replicas.iter().find(|replica| replica.node == *node);
                replica.is_none_or(|known| !known.active || watermarks::figure(level, known) < lsn)
            };
            let listed = self.kept.nodes.iter().map(|listed| listed.node);
            let late: Vec<_> = listed
                .filter(|node| *node != view.leader)
                .filter(late)
                .collect();
            return Some((late, level, lsn));
        }
        None
    }

    /// Those that were given up and have caught up.
    fn caught_up(&mut self, view: &View<'_>, now: Instant) -> Vec<NodeId> {
        let Some((commit, at)) = self.before else {
            self.before = Some((view.commit, now));
            return Vec::new();
        };
        if now < at.after(CAUGHT_UP_WITHIN) {
            return Vec::new();
        }
        self.before = Some((view.commit, now));
        let has_all = |replica: &&Replica| {
            replica.active && replica.flushed >= commit && replica.applied >= commit
        };
        let replicas = view.replicas.iter().filter(has_all);
        let replicas = replicas.map(|replica| replica.node);
        replicas
            .filter(|node| self.given_up.contains(node))
            .collect()
    }
}

/// A time as settings are kept: milliseconds.
fn time(value: &str) -> Option<Duration> {
    let number = value.strip_suffix("ms").unwrap_or(value);
    let millis: u64 = number.parse().ok()?;
    Some(Duration::from_millis(millis))
}

impl Group {
    fn names_in<'a>(&'a self, configuration: &'a Configuration) -> &'a str {
        match configuration.values.get(STANDBY_NAMES) {
            Some(names) => names,
            None => &self.config.settings.synchronous_standby_names,
        }
    }

    fn resolve(&self, configuration: &Configuration) -> Standbys {
        let names = self.names_in(configuration);
        let directory = self.directory();
        let members = directory.members.iter();
        let members: Vec<_> = members.map(|one| (one.node, &*one.name)).collect();
        let names = StandbyNames::parse(names).map(|names| names.resolve(&members));
        names.unwrap_or_else(|error| {
            // It was looked at when it was written; so this is another version's.
            let message = format!("no standby is waited for: {error}");
            self.env.log(Severity::Error, &message);
            Standbys::NONE
        })
    }

    /// Obeys the settings of the cluster as they are now.
    pub(super) fn take_settings(&self, core: &mut Core) {
        let settings = self.registry.configurations();
        let version = settings.version();
        if core.named.version == version {
            return;
        }
        let all = settings.all();
        let Some((in_force, pending)) = all.split_first() else {
            return;
        };
        let timeout = match in_force.values.get(STANDBY_TIMEOUT) {
            Some(value) => time(value),
            None => self.config.settings.standby_timeout,
        };
        let named = &mut core.named;
        named.version = version;
        named.timeout = timeout.filter(|timeout| !timeout.is_zero());
        named.pending = pending.iter().map(|one| self.resolve(one)).collect();
        let text = self.names_in(in_force);
        let standbys = self.resolve(in_force);
        if *named.text != *text || named.in_force != standbys || named.timeout.is_none() {
            if *named.text != *text {
                let message = format!("{STANDBY_NAMES} is \"{text}\"");
                self.env.log(Severity::Info, &message);
            }
            named.text = Arc::from(text);
            named.in_force = standbys;
            named.keep_all();
        }
    }

    /// Gives up standbys that keep others waiting for too long, and takes them back.
    pub(super) fn tend_standbys(&self, core: &mut Core, now: Instant) {
        if core.led.is_none() {
            return;
        }
        let Some(timeout) = core.named.timeout else {
            return;
        };
        let replicas = core.consensus.replicas(now);
        let view = View {
            membership: core.consensus.membership(),
            leader: self.config.node,
            replicas: &replicas,
            commit: core.consensus.committed(),
            term_start: core.consensus.term_start(),
        };
        let named = &mut core.named;
        let back = named.caught_up(&view, now);
        if !back.is_empty() {
            named.given_up.retain(|node| !back.contains(node));
            let names = self.names_of(&back);
            let message = format!("waiting for standby {names} again: it has caught up");
            self.env.log(Severity::Info, &message);
        }
        let first_waiter = |level| self.gate.first_waiter(level);
        if let Some((late, level, lsn)) = named.too_late(&view, first_waiter, timeout, now) {
            let names = self.names_of(&late);
            let message = format!(
                "not waiting for standby {names} any more: after {} ms it has not confirmed {lsn} at {}",
                timeout.as_millis(),
                level.name()
            );
            self.env.log(Severity::Warning, &message);
            named.given_up.extend(late);
        }
        named.kept = named.in_force.without(&named.given_up);
    }

    /// The transactions that are prepared.
    pub fn prepared(&self) -> &Followed<Prepared> {
        self.registry.prepared()
    }

    /// The commits across groups that another group may still ask about.
    pub fn decisions(&self) -> &Followed<Decisions> {
        self.registry.decisions()
    }

    /// The settings of the cluster.
    pub fn configurations(&self) -> &Followed<Configuration> {
        self.registry.configurations()
    }

    /// As [`base::engine::ClusterSettings::configuration`]: those in force, and what this node is told
    /// where they say nothing.
    pub fn configuration(&self) -> Arc<Configuration> {
        let mut configuration = self.registry.configurations().in_force();
        let given = &self.config.settings;
        let names = Some(given.synchronous_standby_names.to_string());
        let timeout = given.standby_timeout.map(|timeout| timeout.as_millis());
        let timeout = timeout.map(|millis| format!("{millis}ms"));
        let given = [
            (STANDBY_NAMES, names.filter(|names| !names.is_empty())),
            (STANDBY_TIMEOUT, timeout),
        ];
        for (name, value) in given {
            let Some(value) = value else { continue };
            if !configuration.values.contains_key(name) {
                let values = &mut Arc::make_mut(&mut configuration).values;
                values.insert(name.to_owned(), value);
            }
        }
        configuration
    }

    /// As [`base::engine::ClusterSettings::configured`], for one position.
    pub fn configured(&self, position: Position) -> BoxFuture<'static, Result<()>> {
        let Some(group) = self.me.upgrade() else {
            return Box::pin(std::future::ready(Err(not_leader())));
        };
        let settled = group.settle(position, Durability::On);
        Box::pin(async move {
            let configurations = group.registry.configurations();
            let in_force = configurations.changed.until(|| {
                let in_force = configurations.in_force().lsn >= position.lsn;
                (in_force || group.is_over()).then_some(())
            });
            let (mut in_force, mut settled) = (std::pin::pin!(in_force), settled);
            // A cut tells through the gate, which goes first.
            std::future::poll_fn(|cx| {
                if let Poll::Ready(outcome) = settled.as_mut().poll(cx) {
                    return Poll::Ready(outcome);
                }
                in_force.as_mut().poll(cx).map(|()| Ok(()))
            })
            .await
        })
    }

    fn names_of(&self, nodes: &[NodeId]) -> String {
        let directory = self.directory();
        let members = directory.members.iter();
        let members = members.filter(|member| nodes.contains(&member.node));
        let names: Vec<_> = members.map(|member| &*member.name).collect();
        names.join(", ")
    }
}
