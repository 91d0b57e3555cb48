//! A cluster of whole nodes in a simulated world, as `quorate up` would start it on real hosts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::cluster::Administration;
use base::engine::ClusterStatus;
use base::env::{Instant, Reactor};
use base::ids::FIRST_GROUP;
use base::sync::Mutex;
use base::{Error, GroupId, Lsn, NodeId, SqlState};
use kv::check::CheckReport;
use kv::{Directory, Group, Member};
use lab::client::Addresses;
use node::config::NodeConfig;
use node::server::Node;
use node::wire::ClusterId;

use crate::disk::{DiskCopy, Failing};
use crate::world::{HostId, World};

/// The files of a node are checked within this.
const CHECK_MAX: Duration = Duration::from_secs(60);

/// A node whose disk was too full for its start is started again after this.
const START_AGAIN_AFTER: Duration = Duration::from_millis(200);

/// What a node of the present life has become.
#[derive(Default)]
struct Life {
    node: Option<Arc<Node>>,
    /// Why it did not start, and when.
    error: Option<(Instant, Error)>,
}

impl Life {
    fn lacked_space(&self) -> bool {
        let error = self.error.as_ref();
        error.is_some_and(|(_, error)| error.state() == SqlState::DISK_FULL)
    }
}

/// What a node is told when it starts, as its files would have it.
struct Place {
    host: HostId,
    life: Arc<Mutex<Life>>,
    starts: u64,
    this: Member,
    /// The members when the cluster was founded, or when this node was added.
    members: Vec<Member>,
    incarnation: u64,
    begun_after: Lsn,
    /// The members that it knew of when it was last seen.
    known: Vec<NodeId>,
    /// What it had when it first died.
    old: Option<OldDirectory>,
    /// It has been removed, or left behind: it may stop by itself, and has nothing to say any more.
    is_dismissed: bool,
    /// Its disk has failed since it was started, or does: it may stop by itself.
    has_failed: bool,
    /// A bit of its files has turned: it may stop by itself.
    is_rotten: bool,
}

/// A node's disk, as it was once.
struct OldDirectory {
    disk: DiskCopy,
    /// How often the node had started by then.
    starts: u64,
    /// The members that it knew of.
    known: Vec<NodeId>,
}

/// What becomes of a wish; none while nobody knows.
pub(crate) type Answer = Arc<Mutex<Option<Result<u64, Error>>>>;

/// Nodes, each on a host of its own, and one further host for clients.
///
/// Nodes are counted from 0 in the order in which they came; those that were removed keep their
/// places.
pub struct Cluster {
    /// The world that they live in.
    pub world: World,
    places: Vec<Place>,
    clients: HostId,
    addresses: Addresses,
    settings: BTreeMap<String, String>,
    election_timeouts: Option<&'static [&'static str]>,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cluster({} nodes, {:?})", self.places.len(), self.world)
    }
}

/// Whether all replicas of a group know of one leader and are equally far, and its members are these.
fn are_settled(replicas: &[Arc<Group>], members: &[(NodeId, bool)]) -> bool {
    let statuses: Vec<_> = replicas.iter().map(|group| group.status()).collect();
    let applied = |status: &ClusterStatus| {
        let mut replicas = status.replicas.iter();
        let this = replicas.find(|one| one.node == status.node);
        this.map(|this| this.applied)
    };
    let first = &statuses[0];
    let is_like = |other: &ClusterStatus| {
        applied(other) == applied(first)
            && Some(other.commit) == applied(first)
            && (other.term, other.incarnation) == (first.term, first.incarnation)
    };
    let has_members = |group: &Arc<Group>| {
        let directory = group.directory();
        let found = directory.members.iter().map(|one| (one.node, one.voter));
        found.eq(members.iter().copied())
    };
    let is_led = replicas.iter().any(|group| group.leading().is_some());
    is_led && statuses.iter().all(is_like) && replicas.iter().all(has_members)
}

/// The name and the addresses of the node at that place.
fn member_at(place: usize, node: NodeId) -> Member {
    let number = place + 1;
    Member {
        node,
        name: format!("n{number}").into(),
        peer_address: format!("127.0.0.{number}:6433").into(),
        sql_address: format!("127.0.0.{number}:5433").into(),
        ..Member::default()
    }
}

impl Cluster {
    /// A world with so many nodes, none of which has started.
    pub fn new(seed: u64, nodes: usize, settings: &[(&str, String)]) -> Cluster {
        let mut world = World::new(seed);
        let hosts: Vec<HostId> = (1..=nodes)
            .map(|number| world.add_host(&format!("n{number}")))
            .collect();
        let clients = world.add_host("clients");
        let members: Vec<Member> = (0..nodes)
            .map(|place| Member {
                voter: true,
                ..member_at(place, NodeId(place as u64 + 1))
            })
            .collect();
        let places = hosts.into_iter().zip(&members).map(|(host, this)| Place {
            host,
            life: Arc::default(),
            starts: 0,
            this: this.clone(),
            members: members.clone(),
            incarnation: 1,
            begun_after: Lsn::ZERO,
            known: Vec::new(),
            old: None,
            is_dismissed: false,
            has_failed: false,
            is_rotten: false,
        });
        let addresses = Addresses::default();
        for member in &members {
            addresses.add(&member.sql_address);
        }
        Cluster {
            world,
            places: places.collect(),
            clients,
            addresses,
            settings: settings
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect(),
            election_timeouts: None,
        }
    }

    /// Gives every node one of these in turn whenever it starts, as where operators change a
    /// setting node by node.
    pub fn mix_election_timeouts(&mut self, timeouts: &'static [&'static str]) {
        self.election_timeouts = Some(timeouts);
    }

    /// How many nodes there are and were.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The nodes that have not been dismissed.
    pub fn present(&self) -> Vec<usize> {
        let all = 0..self.len();
        all.filter(|node| !self.places[*node].is_dismissed)
            .collect()
    }

    /// A node's host.
    pub fn host(&self, node: usize) -> HostId {
        self.places[node].host
    }

    /// The clients' host.
    pub fn client_host(&self) -> HostId {
        self.clients
    }

    /// Where clients reach the nodes.
    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// Where clients reach a node.
    pub fn address(&self, node: usize) -> String {
        self.places[node].this.sql_address.to_string()
    }

    /// The name of a node.
    pub fn name(&self, node: usize) -> Arc<str> {
        self.places[node].this.name.clone()
    }

    /// The number of a node.
    pub fn number(&self, node: usize) -> NodeId {
        self.places[node].this.node
    }

    /// The node of that number.
    pub fn place_of(&self, number: NodeId) -> Option<usize> {
        self.places
            .iter()
            .position(|place| place.this.node == number)
    }

    // ---- members that come and go ----

    /// Who the next node is that could be added: its name and its addresses.
    pub(crate) fn next_member(&self) -> Member {
        // The clients' host was made after the first nodes, and has none of these addresses.
        member_at(self.len(), NodeId(0))
    }

    /// Adds a host for a node that is a member of this directory now, and starts it.
    pub(crate) fn add(&mut self, member: &Member, directory: &Directory) -> usize {
        let host = self.world.add_host(&member.name);
        self.places.push(Place {
            host,
            life: Arc::default(),
            starts: 0,
            this: member.clone(),
            members: directory.members.clone(),
            incarnation: directory.incarnation,
            begun_after: directory.begun_after,
            known: directory.members.iter().map(|one| one.node).collect(),
            old: None,
            is_dismissed: false,
            has_failed: false,
            is_rotten: false,
        });
        self.addresses.add(&member.sql_address);
        let node = self.len() - 1;
        self.start(node);
        node
    }

    /// The node has no part in the group any more: from now on it may stop by itself.
    pub(crate) fn dismiss(&mut self, node: usize) {
        self.places[node].is_dismissed = true;
        let address = self.address(node);
        self.addresses.remove(&address);
    }

    /// Whether it has been.
    pub fn is_dismissed(&self, node: usize) -> bool {
        self.places[node].is_dismissed
    }

    /// The directory as the leader has it, if there is one.
    pub fn directory(&self) -> Option<Arc<Directory>> {
        let (leader, _) = self.leader()?;
        Some(self.node(leader)?.group().directory())
    }

    /// The directories of all nodes that run, or have stopped by themselves.
    pub(crate) fn directories(&mut self) -> Vec<Arc<Directory>> {
        let mut directories = Vec::new();
        for node in self.present() {
            let Some(running) = self.node(node) else {
                continue;
            };
            let directory = running.group().directory();
            let members = directory.members.iter().map(|member| member.node);
            self.places[node].known = members.collect();
            directories.push(directory);
        }
        directories
    }

    /// Whether a node that comes back finds somebody whom it knows, and who can tell it what has
    /// become of the group.
    pub(crate) fn finds_somebody(&self, node: usize) -> bool {
        let place = &self.places[node];
        let founders = place.members.iter().map(|member| member.node);
        let mut known = place.known.iter().copied().chain(founders);
        known.any(|number| {
            let other = self.place_of(number);
            other.is_some_and(|other| !self.places[other].is_dismissed && self.is_alive(other))
        })
    }

    /// Asks a node for something, as an operator would on its host.
    pub(crate) fn wish(&mut self, node: usize, wish: Administration) -> Answer {
        let answer = Answer::default();
        let Some(running) = self.node(node) else {
            return answer;
        };
        let slot = answer.clone();
        let env = self.world.env(self.places[node].host);
        let body = async move {
            let outcome = running.administer(wish).await;
            *slot.lock() = Some(outcome);
        };
        env.spawn(Reactor::Group, "operator", Box::new(move || Box::pin(body)));
        answer
    }

    /// Starts a node's program on its host, which is up.
    pub fn start(&mut self, node: usize) {
        let env = self.world.env(self.places[node].host);
        let life = Arc::new(Mutex::new(Life::default()));
        self.places[node].life = life.clone();
        self.places[node].starts += 1;
        let config = self.config(node);
        let start_env = env.clone();
        let body = async move {
            match Node::start(start_env.clone(), config).await {
                Ok(started) => life.lock().node = Some(started),
                Err(error) => {
                    start_env.stop_node(&error.to_string());
                    life.lock().error = Some((start_env.now(), error));
                }
            }
        };
        env.spawn(Reactor::Group, "start", Box::new(move || Box::pin(body)));
    }

    fn config(&self, node: usize) -> NodeConfig {
        let place = &self.places[node];
        let mut settings = self.settings.clone();
        if let Some(timeouts) = self.election_timeouts {
            // Another with every start, and not the same for all at any time.
            let drawn = timeouts[(place.starts as usize + node) % timeouts.len()];
            settings.insert("quorate.election_timeout".to_owned(), drawn.to_owned());
        }
        NodeConfig {
            cluster: ClusterId(7),
            node: place.this.node,
            members: place.members.clone(),
            incarnation: place.incarnation,
            begun_after: place.begun_after,
            user: "postgres".to_owned(),
            settings,
            password: None,
            secure: None,
            places: Default::default(),
        }
    }

    /// Checks the files of a node whose host is up and which does not run, as `quorate check` does.
    ///
    /// # Errors
    /// What is not sound.
    pub fn check(&mut self, node: usize) -> Result<Vec<CheckReport>, String> {
        let env = self.world.env(self.places[node].host);
        let config = self.config(node);
        let result = Arc::new(Mutex::new(None));
        let (task_env, slot) = (env.clone(), result.clone());
        let body = async move {
            let checked = node::server::check(task_env, &config).await;
            *slot.lock() = Some(checked);
        };
        env.spawn(Reactor::Group, "check", Box::new(move || Box::pin(body)));
        let done = result.clone();
        self.world
            .run_until(CHECK_MAX, move |_| done.lock().is_some());
        let checked = result.lock().take();
        match checked {
            Some(Ok(reports)) => Ok(reports),
            Some(Err(error)) => Err(format!("the files of n{}: {error}", node + 1)),
            None => Err(format!("n{} is not checked within {CHECK_MAX:?}", node + 1)),
        }
    }

    /// Kills a node, with its host if that loses power.
    pub fn crash(&mut self, node: usize, loses_power: bool) {
        self.world.crash(self.places[node].host, loses_power);
        self.forget(node);
        let place = &mut self.places[node];
        if place.old.is_none() {
            place.old = Some(OldDirectory {
                disk: self.world.copy_disk(place.host),
                starts: place.starts,
                known: place.known.clone(),
            });
        }
    }

    /// Whether there is an older directory of a node than the one that it runs on, and every other
    /// member knows of its present start.
    pub(crate) fn can_be_set_back(&self, node: usize) -> bool {
        let place = &self.places[node];
        let is_older = place
            .old
            .as_ref()
            .is_some_and(|old| old.starts < place.starts);
        let running = |node: usize| self.node(node).filter(|_| self.is_alive(node));
        let Some(own) = running(node).filter(|_| is_older) else {
            return false;
        };
        let newest = own.group().start_line().newest();
        let mut others = self.present().into_iter().filter(|other| *other != node);
        others.all(|other| {
            let other = running(other);
            other.is_some_and(|other| other.group().seen_start(place.this.node) == newest)
        })
    }

    /// Starts a node that was killed with its oldest directory in the place of its own. It must stop
    /// by itself, and has no say any more.
    pub(crate) fn set_back(&mut self, node: usize) {
        let place = &mut self.places[node];
        if let Some(old) = &place.old {
            self.world.restore_disk(place.host, &old.disk);
            place.known.clone_from(&old.known);
        }
        self.dismiss(node);
        self.restart(node);
    }

    /// From now on what a node asks of its disk fails as this says, or not at all.
    pub(crate) fn set_failing(&mut self, node: usize, failing: Option<Failing>) {
        let place = &mut self.places[node];
        place.has_failed |= failing.is_some();
        self.world.set_disk_failing(place.host, failing);
    }

    /// Turns a bit of a node that was killed, among those that have been on its disk since its first
    /// death. False if there is none.
    pub(crate) fn rot(&mut self, node: usize) -> bool {
        let place = &mut self.places[node];
        let Some(old) = &place.old else {
            return false;
        };
        let turned = self.world.rot_disk(place.host, &old.disk);
        place.is_rotten |= turned;
        turned
    }

    /// Why a node stopped by itself, if that is what its disk gave it reason for.
    pub(crate) fn failed_disk(&self, node: usize) -> Option<String> {
        let place = &self.places[node];
        let reason = self.world.stopped(place.host)?;
        let is_excused = place.has_failed && reason.contains("58030")
            || place.is_rotten && reason.contains("XX001");
        is_excused.then_some(reason)
    }

    /// Brings a node back that was killed.
    pub fn restart(&mut self, node: usize) {
        let place = &mut self.places[node];
        place.has_failed = self.world.is_disk_failing(place.host);
        if self.world.stopped(place.host).is_some() {
            // Its program ended by itself; now its connections do.
            self.world.crash(place.host, false);
        }
        self.world.restart(self.places[node].host);
        self.start(node);
    }

    /// The node's present life, once it has started.
    pub fn node(&self, node: usize) -> Option<Arc<Node>> {
        self.places[node].life.lock().node.clone()
    }

    /// How often a node was started.
    pub(crate) fn starts(&self, node: usize) -> u64 {
        self.places[node].starts
    }

    /// Whether a node runs.
    pub fn is_alive(&self, node: usize) -> bool {
        self.world.is_alive(self.places[node].host)
    }

    /// The node that leads in the newest term, as the living nodes see it.
    pub fn leader(&self) -> Option<(usize, u64)> {
        self.present()
            .into_iter()
            .filter(|node| self.is_alive(*node))
            .filter_map(|number| Some((number, self.node(number)?.status())))
            .filter(|(_, status)| status.role == "leader")
            .map(|(number, status)| (number, status.term))
            .max_by_key(|(_, term)| *term)
    }

    /// Starts the nodes again that could not start because their disks were full, and those that have
    /// stopped because they failed, as whoever supervises them would. What the latter had not synced
    /// is lost where machines lose power.
    pub(crate) fn start_again(&mut self, loses_power: bool) {
        for node in 0..self.len() {
            let now = self.world.env(self.host(node)).now();
            let is_due = {
                let life = self.places[node].life.lock();
                let since = life.error.as_ref().map(|(at, _)| *at);
                life.lacked_space() && since.is_some_and(|at| now >= at.after(START_AGAIN_AFTER))
            };
            let is_mended = self.places[node].has_failed
                && !self.places[node].is_rotten
                && !self.world.is_disk_failing(self.host(node))
                && self.failed_disk(node).is_some();
            if (is_due || is_mended) && !self.is_alive(node) {
                if is_mended {
                    self.world.crash(self.host(node), loses_power);
                }
                self.restart(node);
            }
        }
    }

    /// Whether a node could not start because its disk was full; it will be started again.
    pub(crate) fn lacked_space(&self, node: usize) -> bool {
        self.places[node].life.lock().lacked_space()
    }

    /// The first node that stopped itself, and why. Only those may that are dismissed, whose disks are
    /// too full for a start, or have failed and are named as the reason.
    pub fn stopped(&self) -> Option<String> {
        let running = self.present().into_iter();
        let running =
            running.filter(|node| !self.lacked_space(*node) && self.failed_disk(*node).is_none());
        let mut reasons = running.filter_map(|node| {
            let reason = self.world.stopped(self.host(node))?;
            Some(format!("{} stopped itself: {reason}", self.name(node)))
        });
        reasons.next()
    }

    /// What the nodes have found to differ between replicas.
    pub(crate) fn inconsistency(&self) -> Option<String> {
        let running = self
            .present()
            .into_iter()
            .filter_map(|node| self.node(node));
        let groups = running.flat_map(|node| node.hosting().groups());
        let mut found = groups.filter_map(|group| {
            let inconsistencies = group.consistency().inconsistencies;
            let first = inconsistencies.into_iter().next()?;
            let words = first.words(|node| format!("node {node}"));
            Some(format!("group {}: {words}", group.id()))
        });
        found.next()
    }

    /// Whether every member leads or follows in each group and has applied all that is committed, and
    /// nobody else runs.
    pub fn is_settled(&self, groups: usize) -> bool {
        let Some(directory) = self.directory() else {
            return false;
        };
        let others = (0..self.len()).filter(|node| {
            let number = self.places[*node].this.node;
            directory.member(number).is_none()
        });
        if others.into_iter().any(|node| self.is_alive(node)) {
            return false;
        }
        let mut groups = (1..=groups as u32).map(GroupId);
        groups.all(|group| {
            let has = |member: &&Member| group == FIRST_GROUP || member.leaves.is_none();
            let members = directory.members.iter().filter(has);
            let replica = |member: &Member| {
                let node = self.node(self.place_of(member.node)?)?;
                Some(node.hosting().engine(group)?.group().clone())
            };
            let votes: Vec<_> = members.clone().map(|one| (one.node, one.voter)).collect();
            let replicas = members.map(replica).collect::<Option<Vec<_>>>();
            replicas.is_some_and(|replicas| are_settled(&replicas, &votes))
        })
    }

    fn forget(&mut self, node: usize) {
        let life = std::mem::take(&mut self.places[node].life);
        let gone = life.lock().node.take();
        drop(gone);
    }
}
