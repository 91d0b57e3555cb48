//! The groups that a node has: the first, which says of the others that there are, and those.
//!
//! ```text
//! peers ──frame of group 2──► Hosting ──► group 2: its log and its trees, in group2/
//!                                │
//!          group 1: "group 3 was founded by n1 n2 n3" ──► opens group 3, shows its starts to all
//! ```
//! A node has all groups of its cluster, and its sessions use them as one database
//! ([`kv::engine::Database`]). It opens those of which it knows when it starts, and each
//! further one when the row that founds it is committed ([`kv::groups`]). The leader of each gives
//! it the members that the first group has ([`kv::group`], *founding*), and hands leadership over to
//! the node that should have it: the one that leads the first, where sessions are, or, where leaders
//! are [spread](Leaders::Spread), one that leads fewer groups. What transactions do in a group that
//! another node leads then goes to that node on connections of its own ([`kv::engine::Links`]).
//!
//! # Invariants
//! - Nothing is taken from a node in a group before it has shown its starts there: a directory of one
//!   group that is older than what others know of it is found out as that of a whole node is.
//! - A group whose directory is there is opened at once; another only when its row is committed, so
//!   that no row which is taken back leaves a group behind.
//!
//! # What it leaves out
//! Leaders are spread by the number of groups, not by what these have to do.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use base::budget::Budget;
use base::cluster::Administration;
use base::engine::{Administrator, ClusterMonitor, ClusterStatus, Engine};
use base::env::{sleep, BoxFuture, Env, LocalBoxFuture, Reactor, Severity, Stream};
use base::ids::FIRST_GROUP;
use base::sync::{Event, RwLock};
use base::{Error, GroupId, Lsn, NodeId, Result, SqlState, Term, Timestamp};
use kv::engine::{Database, KvEngine, Links, Neighbours};
use kv::{Directory, Group, GroupConfig, Leads, Observer, Transport};

use crate::config::Leaders;
use crate::memory;
use crate::peers::{Peers, Receiver};
use crate::wait::{either, timeout};
use crate::wire::{Lines, Outdated, Purpose, Removed};

/// What could not be aligned is tried again after this.
const ALIGN_PAUSE: Duration = Duration::from_millis(500);

/// How often it is looked whether a group is led elsewhere than it should be …
const GATHER_PAUSE: Duration = Duration::from_millis(100);

/// … and after which time it is tried again where that could not be changed.
const GATHER_AGAIN: Duration = Duration::from_secs(1);

/// A group for which there is no space on the disk is opened again after this.
const ROOM_PAUSE: Duration = Duration::from_secs(1);

/// A group that was founded is usually led where it should be within this.
const LED_MAX: Duration = Duration::from_secs(5);

/// The groups must let a node go within this before it is removed.
const LET_GO_MAX: Duration = Duration::from_secs(60);

/// How often it is looked whether they have.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The directory of a group below a node's data directory.
pub fn directory_of(group: GroupId) -> String {
    format!("group{group}")
}

/// The groups of one node.
pub struct Hosting {
    me: Weak<Hosting>,
    env: Arc<dyn Env>,
    peers: Arc<Peers>,
    /// By number; the first group's first.
    engines: RwLock<Vec<Arc<KvEngine>>>,
    has_further: Arc<AtomicBool>,
    /// From which each further group takes something.
    memory: Option<Arc<Budget>>,
    leaders: Leaders,
    /// Leaders of further groups have come or gone so often.
    leaderships: Arc<Leaderships>,
    /// All groups as one.
    database: Arc<Database>,
}

/// A group as the status page of one of its nodes shows it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct GroupStatus {
    /// The group.
    pub group: u32,
    /// `leader`, `follower` or `learner`.
    pub role: &'static str,
    /// The leader's name, if one is known.
    pub leader: Option<String>,
    /// The term.
    pub term: u64,
    /// The newest position on this node's disk.
    pub flushed: u64,
    /// The newest position that it has applied.
    pub applied: u64,
    /// The commit index as it knows it.
    pub commit: u64,
    /// Its voters, by name.
    pub voters: Vec<String>,
    /// Its learners, by name.
    pub learners: Vec<String>,
}

impl GroupStatus {
    fn of(group: &Group) -> GroupStatus {
        let status = group.status();
        let this = status.replicas.iter().find(|one| one.node == status.node);
        let names = |voters: bool| {
            let members = status.replicas.iter().filter(|one| one.voter == voters);
            members.map(|one| one.name.to_string()).collect()
        };
        let leader = status.leader;
        let leader = status.replicas.iter().find(|one| Some(one.node) == leader);
        GroupStatus {
            group: status.group.0,
            role: match this {
                _ if status.leader == Some(status.node) => "leader",
                Some(this) if this.voter => "follower",
                _ => "learner",
            },
            leader: leader.map(|leader| leader.name.to_string()),
            term: status.term.0,
            flushed: this.map_or(0, |this| this.flushed.0),
            applied: this.map_or(0, |this| this.applied.0),
            commit: status.commit.0,
            voters: names(true),
            learners: names(false),
        }
    }
}

#[derive(Default)]
struct Leaderships {
    count: AtomicU64,
    changed: Event,
}

impl Leaderships {
    fn note(&self) {
        self.count.fetch_add(1, Ordering::AcqRel);
        self.changed.notify_all();
    }
}

impl Observer for Leaderships {
    fn leading(&self, _: Option<Leads<'_>>) -> Result<()> {
        self.note();
        Ok(())
    }

    fn cut(&self, _: Term, _: Lsn) {}
}

impl Hosting {
    /// A node that has the first group, and those others whose directories are there.
    ///
    /// # Errors
    /// As [`KvEngine::open`].
    pub async fn begin(
        env: Arc<dyn Env>,
        (peers, first, memory): (Arc<Peers>, Arc<KvEngine>, Option<Arc<Budget>>),
        leaders: Leaders,
    ) -> Result<Arc<Hosting>> {
        let hosting = Arc::new_cyclic(|me: &Weak<Hosting>| {
            let links = || -> Box<dyn Links> {
                Box::new(ToLeaders {
                    peers: peers.clone(),
                    first: first.group().clone(),
                })
            };
            // Where leaders are to be together nobody begins anything in one that is about to move.
            let links = (leaders == Leaders::Spread).then(links);
            let has_further: Arc<AtomicBool> = Arc::default();
            let (groups, further) = (me.clone(), has_further.clone());
            Hosting {
                me: me.clone(),
                env,
                peers,
                engines: RwLock::new(vec![first.clone()]),
                has_further,
                memory,
                leaders,
                leaderships: Arc::default(),
                database: Database::new(first.clone(), groups, further, links),
            }
        });
        first.set_neighbours(hosting.me.clone());
        for (group, founded) in hosting.first().newest_groups().iter() {
            let listed = hosting.env.disk().list(&directory_of(group));
            if listed.is_ok_and(|names| !names.is_empty()) {
                hosting.open(group, founded).await?;
            }
        }
        Ok(hosting)
    }

    /// The first group.
    pub fn first(&self) -> Arc<Group> {
        self.engines.read()[0].group().clone()
    }

    /// All groups that the node has, by number.
    pub fn groups(&self) -> Vec<Arc<Group>> {
        let engines = self.engines.read();
        engines
            .iter()
            .map(|engine| engine.group().clone())
            .collect()
    }

    /// The transactions of a group.
    pub fn engine(&self, group: GroupId) -> Option<Arc<KvEngine>> {
        let engines = self.engines.read();
        let at = engines.binary_search_by_key(&group, |engine| engine.group().id());
        at.ok().map(|at| engines[at].clone())
    }

    /// The groups but the first, as a status page shows them.
    pub(crate) fn further_statuses(&self) -> Vec<GroupStatus> {
        let groups = self.further();
        groups.iter().map(|group| GroupStatus::of(group)).collect()
    }

    fn further(&self) -> Vec<Arc<Group>> {
        self.groups().split_off(1)
    }

    async fn open(&self, group: GroupId, founded: &Directory) -> Result<()> {
        let first = self.first();
        let mut founded = founded.clone();
        let node = first.node();
        if founded.member(node).is_none() {
            // Founded before this node was there, which is to learn of it from the log.
            let this = first.directory().member(node).cloned().unwrap_or_default();
            let this = kv::Member {
                node,
                voter: false,
                ..this.of_another_group()
            };
            // Nothing is said of nodes in between: one of them may lead.
            founded.members.push(this);
        }
        let config = GroupConfig {
            group,
            directory: directory_of(group),
            founded,
            ..first.config().clone()
        };
        let passengers = Arc::new(self.peers.passengers());
        let observer = self.leaderships.clone();
        let engine = KvEngine::open(self.env.clone(), config, passengers, observer).await?;
        engine.set_neighbours(self.me.clone());
        if let Some(budget) = &self.memory {
            memory::open_group(&*self.env, budget, &engine.group().config().settings);
        }
        {
            let mut engines = self.engines.write();
            engines.push(engine);
            engines.sort_by_key(|engine| engine.group().id());
            for engine in &*engines {
                let database = Arc::downgrade(&self.database);
                engine.set_beside(&engines, database);
            }
        }
        if !self.has_further.swap(true, Ordering::Relaxed) {
            if let Some(this) = self.me.upgrade() {
                let place =
                    move || -> LocalBoxFuture<'static, ()> { Box::pin(this.place_leaders()) };
                let env = &self.env;
                env.spawn(Reactor::Group, "place leaders", Box::new(place));
            }
        }
        self.peers.introduce();
        // Whoever aligns has another group to look at.
        self.leaderships.note();
        Ok(())
    }

    /// Opens the groups that are founded, as long as the node runs.
    pub(crate) async fn follow(self: Arc<Self>) {
        let first = self.first();
        while !first.is_over() {
            let groups = first.groups();
            for (group, founded) in groups.iter() {
                if self.engine(group).is_some() {
                    continue;
                }
                while let Err(error) = self.open(group, founded).await {
                    let message = format!("could not open group {group}: {error}");
                    if error.state() != SqlState::DISK_FULL {
                        return self.env.stop_node(&message);
                    }
                    self.env.log(Severity::Warning, &message);
                    sleep(&*self.env, ROOM_PAUSE).await;
                }
            }
            first.until_groups(&groups).await;
        }
    }

    /// Gives the groups that this node leads the members of the first, as long as it runs.
    pub(crate) async fn align(self: Arc<Self>) {
        let first = self.first();
        let mut last_error = String::new();
        while !first.is_over() {
            let leaderships = self.leaderships.count.load(Ordering::Acquire);
            let directories = self.peers.directories();
            // In this order: the directory is of the position, or later.
            let at = first.committed();
            let directory = first.directory();
            let groups = self.further();
            let misaligned = groups
                .iter()
                .find(|group| group.is_misaligned(&directory, at));
            let Some(group) = misaligned else {
                let changed = &self.leaderships.changed;
                let count = &self.leaderships.count;
                let led =
                    changed.until(|| (count.load(Ordering::Acquire) != leaderships).then_some(()));
                let is_news = || (self.peers.directories() != directories).then_some(());
                let news = either(led, self.peers.changed().until(is_news));
                // Nobody tells when the first group is known to be committed further.
                if groups.iter().any(|group| group.is_ahead_of(at)) {
                    let _ = timeout(&*self.env, ALIGN_PAUSE, news).await;
                } else {
                    news.await;
                }
                continue;
            };
            if let Err(error) = group.align(&directory, at).await {
                let group = group.id();
                let message = format!("group {group} does not have its members yet: {error}");
                if message != last_error {
                    self.env.log(Severity::Warning, &message);
                    last_error = message;
                }
                sleep(&*self.env, ALIGN_PAUSE).await;
            }
        }
    }

    /// The node that should lead a group, as far as there is one.
    fn wanted_leader(&self, group: GroupId, directory: &Directory) -> Option<NodeId> {
        match self.leaders {
            Leaders::Together => self.first().leader(),
            Leaders::Spread => self.less_burdened(group, directory),
        }
    }

    /// The voter that leads the fewest groups, if this node leads two more and this group is the last
    /// of them.
    fn less_burdened(&self, group: GroupId, directory: &Directory) -> Option<NodeId> {
        let groups = self.groups();
        let me = self.first().node();
        let led_by = |node: NodeId| {
            let led = groups.iter().filter(|one| one.leader() == Some(node));
            led.count()
        };
        let voters = directory.members.iter().filter(|member| member.voter);
        let others = voters.map(|member| member.node).filter(|node| *node != me);
        let reached = others.filter(|node| self.peers.is_connected(*node));
        let least = reached.min_by_key(|node| (led_by(*node), *node))?;
        let mut mine = groups.iter().filter(|one| one.leading().is_some());
        let is_last = mine.next_back().is_some_and(|last| last.id() == group);
        (is_last && led_by(me) >= led_by(least) + 2).then_some(least)
    }

    /// Hands the groups that this node leads over to whoever should lead them, as long as it runs.
    async fn place_leaders(self: Arc<Self>) {
        let first = self.first();
        while !first.is_over() {
            sleep(&*self.env, GATHER_PAUSE).await;
            for group in self.further() {
                let directory = group.directory();
                let wanted = self.wanted_leader(group.id(), &directory);
                let wanted = wanted.filter(|leader| *leader != first.node());
                let to = wanted.and_then(|leader| directory.member(leader));
                let to = to.filter(|member| member.voter);
                let (Some(to), true) = (to, group.leading().is_some()) else {
                    continue;
                };
                // It says by itself why it does not succeed, and is tried again.
                if group.switchover(Some(&to.name)).await.is_err() {
                    sleep(&*self.env, GATHER_AGAIN).await;
                }
            }
        }
    }

    /// Does what is wished of a cluster whose first group this node leads: `in_first` in the first
    /// group, and what belongs to it in the others.
    ///
    /// # Errors
    /// As [`Group::administer`], and [`Hosting::let_go`].
    pub(crate) async fn administer(
        &self,
        wish: Administration,
        in_first: impl AsyncFnOnce(Administration) -> Result<u64>,
    ) -> Result<u64> {
        match &wish {
            Administration::PromoteAlone => return self.promote_alone().await,
            Administration::RemoveNode(name) => self.let_go(name).await?,
            _ => {}
        }
        let founds = matches!(wish, Administration::AddGroup);
        let number = in_first(wish).await?;
        if founds {
            self.until_led(number).await;
        }
        Ok(number)
    }

    /// Has all further groups let a node go that is to be removed, before the first does. It is
    /// marked so, and stays marked if they have not done so in time.
    ///
    /// # Errors
    /// 55000 when they have not; as [`Group::mark_leaving`].
    async fn let_go(&self, name: &str) -> Result<()> {
        let first = self.first();
        if first.newest_groups().count() == 1 {
            return Ok(());
        }
        let (node, since) = first.mark_leaving(name).await?;
        let deadline = self.env.now().after(LET_GO_MAX);
        loop {
            let has_let_go = |group| {
                let engine = self.engine(group);
                engine.is_some_and(|engine| engine.group().has_let_go(node, since))
            };
            let groups = first.groups();
            let Some((group, _)) = groups.iter().find(|(group, _)| !has_let_go(*group)) else {
                return Ok(());
            };
            if first.leading().is_none() {
                return Err(kv::group::not_leader());
            }
            if self.env.now() >= deadline {
                let message = format!("group {group} has not let node \"{name}\" go");
                let state = SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE;
                return Err(
                    Error::new(state, message).with_hint("Ask again once that group has a leader.")
                );
            }
            sleep(&*self.env, LOOK_EVERY).await;
        }
    }

    /// Waits until a group that was just founded is led where it should be, so that whoever asked for it
    /// can use it at once. The group is there even where that takes too long.
    async fn until_led(&self, number: u64) {
        let deadline = self.env.now().after(LED_MAX);
        let Ok(group) = u32::try_from(number).map(GroupId) else {
            return;
        };
        let is_led = || {
            let Some(engine) = self.engine(group) else {
                return false;
            };
            match self.leaders {
                Leaders::Together => engine.group().leading().is_some(),
                Leaders::Spread => engine.group().leader().is_some(),
            }
        };
        while !is_led() && self.env.now() < deadline {
            sleep(&*self.env, LOOK_EVERY).await;
        }
    }

    /// This node goes on alone in all its groups; the answer is the last position of the first.
    ///
    /// # Errors
    /// As [`Group::administer`].
    pub(crate) async fn promote_alone(&self) -> Result<u64> {
        for group in self.further() {
            // As it is aligned with what the first still is, there may be learners again.
            let directory = group.directory();
            let mut voters = directory.members.iter().filter(|member| member.voter);
            let votes_alone = voters.all(|voter| voter.node == group.node());
            if !(votes_alone && group.leading().is_some()) {
                group.administer(Administration::PromoteAlone).await?;
            }
        }
        // It goes last: until it has, all may be asked for again.
        let first = self.first();
        first.administer(Administration::PromoteAlone).await
    }

    /// All groups as one, for sessions.
    pub(crate) fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// The engine of sessions: what concerns the cluster concerns all groups.
    pub(crate) fn over_all(self: &Arc<Hosting>, engine: Engine) -> Engine {
        let overseer = Arc::new(Overseer {
            hosting: self.clone(),
            cluster: engine.cluster.clone(),
            administrator: engine.administrator.clone(),
        });
        Engine {
            cluster: overseer.clone(),
            administrator: Some(overseer),
            ..engine
        }
    }

    /// Ends all groups in order. A leader hands over first, so that nobody waits for an election.
    pub(crate) async fn close(&self) {
        for group in self.groups().iter().rev() {
            if let Err(error) = group.close().await {
                let message = format!("could not close group {} in order: {error}", group.id());
                self.env.log(Severity::Warning, &message);
            }
        }
    }
}

/// The way to the nodes that lead other groups.
struct ToLeaders {
    peers: Arc<Peers>,
    first: Arc<Group>,
}

impl Links for ToLeaders {
    fn connect(&self, node: NodeId) -> BoxFuture<'static, io::Result<Box<dyn Stream>>> {
        let member = self.first.directory().member(node).cloned();
        let peers = self.peers.clone();
        Box::pin(async move {
            let member = member.ok_or(io::ErrorKind::NotFound)?;
            let hello = peers.hello(node, Purpose::Branches);
            // It says nothing before it is asked.
            let (stream, _) = peers.greet(&member, &hello).await?;
            Ok(stream)
        })
    }
}

/// What sessions ask of the cluster.
struct Overseer {
    hosting: Arc<Hosting>,
    cluster: Arc<dyn ClusterMonitor>,
    administrator: Option<Arc<dyn Administrator>>,
}

impl ClusterMonitor for Overseer {
    fn status(&self) -> ClusterStatus {
        self.cluster.status()
    }

    fn groups(&self) -> Vec<ClusterStatus> {
        let further = self.hosting.further();
        let further = further.iter().map(|group| group.status());
        std::iter::once(self.status()).chain(further).collect()
    }

    fn is_standby(&self) -> bool {
        self.cluster.is_standby()
    }

    fn replayed_until(&self) -> Option<Timestamp> {
        self.cluster.replayed_until()
    }
}

impl Overseer {
    fn administrator(&self) -> Result<&Arc<dyn Administrator>> {
        let absent = || Error::unsupported("administering a cluster here");
        self.administrator.as_ref().ok_or_else(absent)
    }
}

impl Administrator for Overseer {
    fn administer(&self, wish: Administration) -> BoxFuture<'static, Result<u64>> {
        let administrator = match self.administrator() {
            Ok(administrator) => administrator.clone(),
            Err(error) => return Box::pin(std::future::ready(Err(error))),
        };
        let hosting = self.hosting.clone();
        Box::pin(async move {
            let in_first = async |wish| administrator.administer(wish).await;
            hosting.administer(wish, in_first).await
        })
    }

    fn checkpoint(&self) -> BoxFuture<'static, Result<()>> {
        match self.administrator() {
            Ok(administrator) => administrator.checkpoint(),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}

impl Neighbours for Hosting {
    fn engine(&self, group: GroupId) -> Option<Arc<KvEngine>> {
        Hosting::engine(self, group)
    }

    fn engines(&self) -> Vec<Arc<KvEngine>> {
        self.engines.read().clone()
    }
}

impl Receiver for Hosting {
    fn receive(&self, from: NodeId, met: &[GroupId], frame: &[u8]) -> bool {
        let group = match kv::frame::group_of(frame) {
            Ok(group) => group,
            // A damaged one is dropped.
            Err(_) => return true,
        };
        let engines = self.engines.read();
        let at = engines.binary_search_by_key(&group, |engine| engine.group().id());
        let Ok(at) = at else {
            // Of a group that this node is yet to open.
            return true;
        };
        if !met.contains(&group) {
            return false;
        }
        let group = engines[at].group().clone();
        drop(engines);
        group.receive(from, frame);
        true
    }

    fn disconnected(&self, node: NodeId) {
        self.groups()
            .iter()
            .for_each(|group| group.disconnected(node));
    }

    fn removed(&self, removed: Removed) {
        self.first()
            .note_removed(removed.incarnation, removed.begun_after);
    }

    fn lines(&self) -> Lines {
        let groups = self.groups();
        let lines = groups.iter().map(|group| (group.id(), group.start_line()));
        lines.collect()
    }

    fn outdated(&self, by: &str, outdated: Outdated) {
        let group = self.engine(outdated.group);
        if let Some(engine) = group {
            engine.group().note_outdated(by, outdated.seen);
        }
    }
}

/// The directories of groups among the names in a node's data directory, by number.
pub fn directories_among(names: Vec<String>) -> Vec<String> {
    let mut found: Vec<GroupId> = names.iter().filter_map(|name| group_of(name)).collect();
    found.sort();
    found.into_iter().map(directory_of).collect()
}

fn group_of(name: &str) -> Option<GroupId> {
    let group = name.strip_prefix("group")?.parse().ok().map(GroupId)?;
    (directory_of(group) == name).then_some(group)
}

/// The groups of a node that does not run.
///
/// # Errors
/// XX001 where the first is not among them; 58030.
pub(crate) fn found_on(env: &dyn Env) -> Result<Vec<GroupId>> {
    let names = env.disk().list("");
    let names = names.map_err(|error| Error::io("list the data directory", error))?;
    let mut groups: Vec<_> = names.iter().filter_map(|name| group_of(name)).collect();
    groups.sort();
    match groups.first() {
        Some(&FIRST_GROUP) => Ok(groups),
        _ => Err(Error::corrupted("there is no directory of the first group")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_groups_are_told_from_others() {
        let names = [
            "group10", "group2", "group1", "group02", "groups", "log", "group",
        ];
        let names = names.map(str::to_owned).to_vec();
        assert_eq!(directories_among(names), ["group1", "group2", "group10"]);
    }
}
