//! One node: its group, the connections of other nodes, its clients.
//!
//! # Where a client is served
//! Any node takes clients. The one that leads serves them; every other passes a client's bytes on
//! to the leader's peer port, and the answers back:
//!
//! ```text
//! psql ──► n2, port 5433 ──► Hello(session) ──► n1, peer port: leads? ──► its session
//!               │                    NotLeader ◄──┘ no
//!               └── looks again, for at most 10 s, then 57P03;
//!                   for at most 0.7 s where there is no majority that could elect a leader
//! ```
//!
//! Encryption ends at the node that the client has reached, and the rules of that node say what the
//! client has to show; whether it does is found out where it is served ([`pg::auth`]). What the
//! first knows goes with the Hello. Between nodes everything is encrypted where other machines
//! could listen ([`crate::access`]).
//!
//! A CancelRequest goes to the node whose number stands in the session's (see [`crate::sessions`]).
//!
//! # First start
//! Whoever leads an empty cluster writes the catalog's first rows. No session begins on a node
//! before it has seen that they are there and settled.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use base::budget::Budget;
use base::coro;
use base::engine::{ClusterStatus, Engine, ReplicaStatus};
use base::env::{
    sleep, write_all, Env, Listener, LocalBoxFuture, Reactor, Severity, Stream, TaskStart,
};
use base::framed::{put_framed, Incoming};
use base::ids::FIRST_GROUP;
use base::sync::{Event, Mutex};
use base::{Durability, Error, GroupId, NodeId, Result, SqlState, Timestamp};
use kv::check::CheckReport;
use kv::engine::{serve_branches, KvEngine, Served};
use kv::standby::StandbyEngine;
use kv::{Group, GroupConfig, Member, Unwelcome};
use pg::startup::CancelKey;

use sql::catalog::shared::Catalogs;
use sql::session::activity::HbaRule;
use sql::session::LogSettings;

use crate::access::Door;
use crate::administration;
use crate::analyzer::{analyze, Analyzer};
use crate::clients;
use crate::config::{buffers_text, seconds_text, size_text, NodeConfig, NodeSettings};
use crate::hosting::{self, GroupStatus, Hosting};
use crate::memory::{self, MemoryStatus};
use crate::peers::{answer, read_hello, Peers, Receiver, Refusal, CONNECT_TIMEOUT};
use crate::secure::NodeCertificate;
use crate::sessions::{fatal, lives_on, Files, Limits, Sessions};
use crate::starting::{Prepared, Start};
use crate::stretches::{Stretch, Stretches};
use crate::unproved::{Probation, Unproved};
use crate::wait::{either, timeout, Either};
use crate::wire::{Answer, Hello, Outdated, Purpose};

/// A client waits so long for a leader; then it gets 57P03.
pub const LEADER_WAIT_MAX: Duration = Duration::from_secs(10);

/// One that has just connected waits only so long where there is no majority that could elect one.
pub(crate) const MAJORITY_WAIT_MAX: Duration = Duration::from_millis(700);

/// How often it looks for one, or asks the one it knows again.
pub(crate) const LEADER_LOOK: Duration = Duration::from_millis(20);

/// A pause after the system refused to accept a connection (too many files, usually).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The pause before a key is noted that could not be just now.
const KEYS_PAUSE: Duration = Duration::from_millis(500);

/// A node that stops waits so long for its sessions to end.
const STOP_WAIT_MAX: Duration = Duration::from_secs(5);

/// One node.
pub struct Node {
    pub(crate) env: Arc<dyn Env>,
    pub(crate) config: NodeConfig,
    pub(crate) settings: NodeSettings,
    pub(crate) member: Member,
    /// The first group, which is the one that clients are served from.
    pub(crate) group: Arc<Group>,
    pub(crate) hosting: Arc<Hosting>,
    pub(crate) engine: Arc<Engine>,
    /// What its sessions share.
    pub(crate) catalogs: Arc<Catalogs>,
    pub(crate) peers: Arc<Peers>,
    /// For sessions that read here whether this node leads or not.
    pub(crate) standby: Arc<Engine>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) door: Door,
    /// The catalog's first rows are there and settled.
    pub(crate) is_ready: AtomicBool,
    pub(crate) ready: Event,
    next_reactor: AtomicUsize,
    /// What [`Node::log_settings`] gave last, and of which generation of the cluster's settings.
    log_settings: Mutex<Option<(u64, Arc<LogSettings>)>>,
    pub(crate) stretches: Arc<Stretches>,
    /// The memory of its sessions, where there is a limit.
    memory: Option<Arc<Budget>>,
}

/// One node as a status page shows it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct NodeStatus {
    /// Its name.
    pub name: String,
    /// Where it takes clients.
    pub sql_address: String,
    /// `leader`, `follower` or `learner`.
    pub role: &'static str,
    /// The group.
    pub group: u32,
    /// The term.
    pub term: u64,
    /// The newest position in its operating system.
    pub received: u64,
    /// The newest position on its disk.
    pub flushed: u64,
    /// The newest position that it has applied.
    pub applied: u64,
    /// The commit index as it knows it.
    pub commit: u64,
    /// The leader's name, if it knows one.
    pub leader: Option<String>,
    /// The names of the voters that it has not heard of lately, if it hears of no leader …
    pub missing: Vec<String>,
    /// … and whether the others are a majority.
    pub hears_majority: bool,
    /// `synchronous_standby_names`, if replies wait because too few of those are connected. Known
    /// on the leader only.
    pub lacks_standbys: Option<String>,
    /// Whether it lets sessions begin, or passes them on.
    pub ready: bool,
    /// The group's incarnation.
    pub incarnation: u64,
    /// The position after which that began.
    pub begun_after: u64,
    /// Where leaders are preferred; empty for nowhere.
    pub leader_zone: String,
    /// The members as this node knows them.
    pub members: Vec<MemberStatus>,
    /// What is amiss with it, in one word, `slow`, `full` or `starved` …
    pub trouble: Option<&'static str>,
    /// … and in more.
    pub trouble_detail: Option<String>,
    /// Sessions that it serves.
    pub sessions: usize,
    /// The longest time for which one of their statements did not give way.
    pub longest_stretch: Option<Stretch>,
    /// The memory of its sessions, where there is a limit.
    pub memory: Option<MemoryStatus>,
    /// What comparing the replicas has shown.
    pub consistency: ConsistencyStatus,
    /// Its other groups.
    pub groups: Vec<GroupStatus>,
}

/// What comparing the replicas has shown, as a status page shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct ConsistencyStatus {
    /// A comparison is under way.
    pub running: bool,
    /// When the last one ended, in seconds since 1970.
    pub checked_at: Option<i64>,
    /// Rows and entries that it has compared.
    pub rows: u64,
    /// Where replicas differ, in words.
    pub inconsistencies: Vec<String>,
}

/// A member as a status page shows it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct MemberStatus {
    /// Its number.
    pub node: u64,
    /// Its name.
    pub name: String,
    /// Where it takes other nodes.
    pub peer_address: String,
    /// Where it takes clients.
    pub sql_address: String,
    /// Whether it votes.
    pub voter: bool,
    /// Where it stands.
    pub zone: String,
    /// Leaders go to the voter with the highest.
    pub priority: u32,
    /// It is to be removed, once all groups have let it go.
    pub leaves: bool,
    /// Whether the leader has heard of it lately. Known on the leader only.
    pub connected: Option<bool>,
    /// Whether commits wait for it, in the words of `pg_stat_replication`. Known on the leader
    /// only, and of others.
    pub sync_state: Option<&'static str>,
    /// This node does not hear it, because its directory is older than what is known of it.
    pub outdated: bool,
}

impl MemberStatus {
    fn of(replica: &ReplicaStatus, status: &ClusterStatus, outdated: &[NodeId]) -> MemberStatus {
        let leads = status.leader == Some(status.node);
        let is_other = replica.node != status.node;
        MemberStatus {
            node: replica.node.0,
            name: replica.name.to_string(),
            peer_address: replica.peer_address.to_string(),
            sql_address: replica.sql_address.to_string(),
            voter: replica.voter,
            zone: replica.zone.to_string(),
            priority: replica.priority,
            leaves: replica.leaves,
            connected: leads.then_some(replica.connected),
            sync_state: (leads && is_other).then(|| replica.sync_state.name()),
            outdated: outdated.contains(&replica.node),
        }
    }
}

impl Node {
    /// Starts to listen, opens the group, and serves from then on.
    ///
    /// # Errors
    /// A setting that cannot be read, an address that cannot be listened on, a damaged directory.
    pub async fn start(env: Arc<dyn Env>, config: NodeConfig) -> Result<Arc<Node>> {
        Start::begin(env, config)?.finish().await
    }

    /// Opens the group, and serves from then on.
    pub(crate) async fn open(
        env: Arc<dyn Env>,
        config: NodeConfig,
        settings: NodeSettings,
        member: Member,
        prepared: Prepared,
    ) -> Result<Arc<Node>> {
        let peers = Arc::new(Peers::new(
            env.clone(),
            config.cluster,
            &member,
            config.directory(),
            config.secure.clone(),
        ));
        let group_config = GroupConfig {
            cluster: config.cluster.short(),
            group: FIRST_GROUP,
            node: config.node,
            directory: hosting::directory_of(FIRST_GROUP),
            founded: config.directory(),
            settings: settings.group.clone(),
            room: settings.group.room(),
        };
        let limits = Limits {
            all: settings.max_connections,
            reserved: settings.reserved_connections(),
        };
        let memory = memory::budget(&env, &settings);
        let sessions = Sessions::new(env.clone(), config.node, limits, memory.clone());
        let sessions = Arc::new(sessions);
        let observer = sessions.clone();
        let engine = KvEngine::open(env.clone(), group_config, peers.clone(), observer).await?;
        let parts = (peers.clone(), engine.clone(), memory.clone());
        let hosting = Hosting::begin(env.clone(), parts, settings.leaders).await?;
        let group = engine.group().clone();
        let leader = hosting.database().to_engine();
        let standby = StandbyEngine::new(env.clone(), group.clone(), leader.clone());
        let standby = Arc::new(standby);
        let node = Arc::new(Node {
            env: env.clone(),
            config,
            settings,
            member,
            group,
            hosting: hosting.clone(),
            standby: Arc::new(hosting.over_all(standby.to_engine())),
            engine: Arc::new(hosting.over_all(leader)),
            catalogs: Arc::default(),
            peers: peers.clone(),
            sessions,
            memory,
            door: prepared.door,
            log_settings: Mutex::default(),
            is_ready: AtomicBool::new(false),
            ready: Event::new(),
            next_reactor: AtomicUsize::new(0),
            stretches: Arc::default(),
        });
        // The node's own lines go where the settings say from now on.
        node.log_settings();
        let files: Weak<dyn Files> = Arc::downgrade(&(node.clone() as Arc<dyn Files>));
        node.sessions.serve_files(files);
        let receiver: Arc<dyn Receiver> = hosting.clone();
        peers.start(Arc::downgrade(&receiver));
        node.task(Reactor::Background, "groups", |node| {
            Box::pin(node.hosting.clone().follow())
        });
        node.task(Reactor::Group, "align groups", |node| {
            Box::pin(node.hosting.clone().align())
        });
        node.task(Reactor::Handshakes, "accept peers", |node| {
            let env = node.env.clone();
            Box::pin(accept(env, node, prepared.others, "nodes", welcome_node))
        });
        node.task(Reactor::Group, "members", |node| {
            Box::pin(follow_members(node))
        });
        node.task(Reactor::Session(0), "catalog", |node| {
            Box::pin(prepare_catalog(node))
        });
        node.task(Reactor::Background, "analyze", |node| {
            Box::pin(analyze(Arc::new(Analyzer {
                env: node.env.clone(),
                group: node.group.clone(),
                engine: node.engine.clone(),
                sessions: node.sessions.clone(),
                catalogs: node.catalogs.clone(),
                defaults: node.settings.session.clone(),
            })))
        });
        Ok(node)
    }

    /// Lets nobody in any more, ends the sessions, and waits a while for them to go.
    /// A leader hands over first, so that nobody has to wait for an election.
    pub async fn stop(&self) {
        for group in self.hosting.groups() {
            group.hand_over_before_stop().await;
        }
        self.sessions.close();
        if timeout(&*self.env, STOP_WAIT_MAX, self.sessions.ended())
            .await
            .is_none()
        {
            let message = format!("{} sessions did not end in time", self.sessions.count());
            self.env.log(Severity::Warning, &message);
        }
        self.hosting.close().await;
    }

    /// Reads the rules of access and the certificates anew. What cannot be read is logged, and what
    /// was there before goes on; false then.
    pub fn reload(&self) -> bool {
        self.log_settings();
        let secure = self.config.secure.as_deref();
        let results = [
            self.door.reload(),
            secure.map_or(Ok(()), |secure| secure.reload()),
        ];
        let mut all_read = true;
        for error in results.into_iter().filter_map(Result::err) {
            all_read = false;
            let message = format!("the configuration was not reloaded: {}", error.message());
            self.env.log(Severity::Warning, &message);
        }
        if all_read {
            let message = "read the rules of access and the certificates anew";
            self.env.log(Severity::Info, message);
        }
        all_read
    }

    /// Whether there is anything of a group in a node's data directory.
    pub fn has_data(directory: &std::path::Path) -> bool {
        let group = directory.join(hosting::directory_of(FIRST_GROUP));
        crate::real::host::list(&group).is_ok_and(|names| !names.is_empty())
    }

    /// The transactions of this node.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// How what happens outside of sessions is logged.
    pub(crate) fn log_settings(&self) -> Arc<LogSettings> {
        let generation = self.engine.settings.generation();
        let mut known = self.log_settings.lock();
        match &*known {
            Some((of, settings)) if *of == generation => settings.clone(),
            _ => {
                let engine = Some(&*self.engine.settings);
                let settings = sql::session::log_settings(engine, &self.settings.session);
                self.env.log_also(&settings.destinations);
                *known = Some((generation, settings.clone()));
                settings
            }
        }
    }

    /// Its groups.
    pub fn hosting(&self) -> &Arc<Hosting> {
        &self.hosting
    }

    /// The first group.
    pub fn group(&self) -> &Arc<Group> {
        &self.group
    }

    /// The node as a status page shows it.
    pub fn status(&self) -> NodeStatus {
        let status = self.engine.cluster.status();
        let this = status
            .replicas
            .iter()
            .find(|one| one.node == self.config.node);
        let this = this.cloned().unwrap_or_default();
        let is_leader = status.leader == Some(self.config.node);
        let leader = status.leader.and_then(|leader| self.member_of(leader));
        let directory = self.group.directory();
        let outdated = self.group.outdated();
        let this_member = directory.member(self.config.node);
        let votes = this_member.is_some_and(|member| member.voter);
        let role = match (is_leader, votes) {
            (true, _) => "leader",
            (false, true) => "follower",
            (false, false) => "learner",
        };
        let missing = self.group.missing();
        // A learner goes on believing in a leader that it does not hear of any more.
        let leader = leader.filter(|_| missing.is_none());
        let absent = missing.as_ref().map_or(&[][..], |missing| &missing.voters);
        let names = &status.synchronous_standby_names;
        let (trouble, trouble_detail) = self.group.trouble().unzip();
        NodeStatus {
            name: self.member.name.to_string(),
            sql_address: self.member.sql_address.to_string(),
            role,
            group: status.group.0,
            term: status.term.0,
            received: this.received.0,
            flushed: this.flushed.0,
            applied: this.applied.0,
            commit: status.commit.0,
            ready: leader.is_some() && (!is_leader || self.is_ready.load(Ordering::Acquire)),
            leader: leader.map(|leader| leader.name.to_string()),
            missing: absent.iter().map(|one| one.name.to_string()).collect(),
            hears_majority: missing.is_none_or(|missing| missing.is_majority_there),
            lacks_standbys: status.lacks_standbys.then(|| names.to_string()),
            incarnation: directory.incarnation,
            begun_after: directory.begun_after.0,
            leader_zone: directory.leader_zone.to_string(),
            members: (status.replicas.iter())
                .map(|replica| MemberStatus::of(replica, &status, &outdated))
                .collect(),
            trouble,
            trouble_detail,
            sessions: self.sessions.count(),
            longest_stretch: self.stretches.longest(),
            memory: self.memory.as_deref().map(MemoryStatus::of),
            consistency: self.consistency(&status),
            groups: self.hosting.further_statuses(),
        }
    }

    fn consistency(&self, status: &ClusterStatus) -> ConsistencyStatus {
        let known = &status.consistency;
        let name = |node: NodeId| match self.member_of(node) {
            Some(member) => member.name.to_string(),
            None => format!("node {node}"),
        };
        let inconsistencies = known.inconsistencies.iter();
        ConsistencyStatus {
            running: known.is_running,
            checked_at: known.checked_at.map(unix_seconds),
            rows: known.rows,
            inconsistencies: inconsistencies
                .map(|one| one.without_keys().words(name))
                .collect(),
        }
    }

    pub(crate) fn member_of(&self, node: NodeId) -> Option<Member> {
        self.group.directory().member(node).cloned()
    }

    /// The reactor of the next session, in turn.
    pub(crate) fn next_reactor(&self) -> Reactor {
        let turn = self.next_reactor.fetch_add(1, Ordering::Relaxed);
        Reactor::Session(turn % self.env.session_reactors())
    }

    pub(crate) fn task(
        self: &Arc<Self>,
        reactor: Reactor,
        name: &'static str,
        body: impl FnOnce(Arc<Node>) -> LocalBoxFuture<'static, ()> + Send + 'static,
    ) {
        let node = self.clone();
        self.env.spawn(reactor, name, Box::new(move || body(node)));
    }
}

impl Files for Node {
    fn hba_rules(&self) -> Vec<HbaRule> {
        self.door.shown()
    }

    fn reload(&self) -> bool {
        for member in &self.group.directory().members {
            if member.node == self.config.node {
                continue;
            }
            let (peers, member) = (self.peers.clone(), member.clone());
            let hello = self.peers.hello(member.node, Purpose::Reload);
            let start: TaskStart = Box::new(move || {
                Box::pin(async move {
                    // A node that cannot be reached now reads its files when it starts.
                    let _ = peers.greet(&member, &hello).await;
                })
            });
            self.env.spawn(Reactor::Group, "reload", start);
        }
        Node::reload(self);
        true
    }

    fn file_settings(&self) -> Vec<(String, String)> {
        self.config.places.given.clone()
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        let tls = &self.settings.tls;
        let mut all = self.config.places.shown();
        if let Some((address, port)) = self.member.sql_address.rsplit_once(':') {
            let address = address.trim_start_matches('[').trim_end_matches(']');
            all.push(("listen_addresses", address.to_owned()));
            all.push(("port", port.to_owned()));
        }
        all.extend([
            ("max_connections", self.settings.max_connections.to_string()),
            (
                "superuser_reserved_connections",
                self.settings.reserved_connections().to_string(),
            ),
            (
                "authentication_timeout",
                seconds_text(self.settings.authentication_timeout),
            ),
            (
                "log_rotation_size",
                match self.settings.log_files.bytes_max {
                    Some(bytes) => size_text(bytes),
                    None => "0".to_owned(),
                },
            ),
            (
                "shared_buffers",
                buffers_text(self.settings.group.cache_bytes),
            ),
            (
                "quorate.memory_budget",
                size_text(self.settings.memory_budget.unwrap_or(0) as u64),
            ),
            (
                "quorate.txn_mem",
                size_text(self.settings.group.txn_memory as u64),
            ),
            ("quorate.leaders", self.settings.leaders.name().to_owned()),
            ("ssl", if tls.ssl { "on" } else { "off" }.to_owned()),
            ("ssl_ca_file", tls.ca_file.clone()),
            ("ssl_crl_file", tls.crl_file.clone()),
            ("ssl_cert_file", tls.cert_file.clone()),
            ("ssl_key_file", tls.key_file.clone()),
            (
                "wal_segment_size",
                size_text(self.settings.group.segment_bytes),
            ),
        ]);
        all
    }
}

/// Checks the files of a node that does not run, group by group. Nothing is changed.
///
/// # Errors
/// What is not sound, in words.
pub async fn check(env: Arc<dyn Env>, config: &NodeConfig) -> Result<Vec<CheckReport>> {
    let cluster = config.cluster.short();
    let mut reports = Vec::new();
    for group in hosting::found_on(&*env)? {
        let directory = hosting::directory_of(group);
        let report = kv::check::check(env.clone(), cluster, group, &directory).await;
        reports.push(report.map_err(|error| match group {
            FIRST_GROUP => error,
            _ => Error::new(error.state(), format!("group {group}: {}", error.message())),
        })?);
    }
    Ok(reports)
}

/// What the files of a node that does not run hold of a group at an LSN; none if they cannot be
/// brought there. Nothing is changed.
///
/// # Errors
/// What is not sound, in words.
pub async fn contents_at(
    env: Arc<dyn Env>,
    config: &NodeConfig,
    group: GroupId,
    lsn: base::Lsn,
) -> Result<Option<kv::contents::Contents>> {
    let cluster = config.cluster.short();
    kv::check::contents_at(env, cluster, group, &hosting::directory_of(group), lsn).await
}

/// Seconds since 1970 at a time that is counted from 2000 on.
fn unix_seconds(at: Timestamp) -> i64 {
    const POSTGRES_EPOCH_S: i64 = 946_684_800;
    at.0.div_euclid(1_000_000) + POSTGRES_EPOCH_S
}

pub(crate) fn listen(env: &dyn Env, address: &str) -> Result<Box<dyn Listener>> {
    env.net().listen(address).map_err(|error| {
        let message = format!("could not listen on {address}: {error}");
        Error::new(SqlState::IO_ERROR, message)
    })
}

/// A connection that came in.
pub(crate) struct Connection {
    pub(crate) stream: Box<dyn Stream>,
    pub(crate) from: String,
    /// Its place among those who have not shown who they are.
    pub(crate) probation: Probation,
}

/// Takes connections for as long as the node runs, and hands each over.
pub(crate) async fn accept<T>(
    env: Arc<dyn Env>,
    host: Arc<T>,
    mut listener: Box<dyn Listener>,
    whose: &'static str,
    welcome: fn(&Arc<T>, Connection),
) {
    let unproved = Arc::new(Unproved::new(env.clone(), whose));
    loop {
        match std::future::poll_fn(|cx| listener.poll_accept(cx)).await {
            Ok((stream, from)) => {
                let connection = Connection {
                    stream,
                    from,
                    probation: unproved.enter().await,
                };
                welcome(&host, connection);
            }
            Err(error) => {
                unproved.log(format!("could not accept a connection: {error}"));
                sleep(&*env, ACCEPT_PAUSE).await;
            }
        }
    }
}

// ---- Other nodes ----

fn welcome_node(node: &Arc<Node>, connection: Connection) {
    node.task(Reactor::Handshakes, "hello", |node| {
        Box::pin(async move {
            let Connection {
                stream,
                from,
                probation,
            } = connection;
            let unproved = probation.unproved().clone();
            let greeted = match either(hear(&node, stream), probation.turned_out()).await {
                Either::First(greeted) => greeted,
                Either::Second(()) => return,
            };
            drop(probation);
            let served = match greeted {
                Ok(guest) => serve_node(&node, guest, &from, &unproved).await,
                Err(error) => Err(error),
            };
            if let Err(error) = served {
                unproved.log(refused_line(&from, &error));
            }
        })
    });
}

fn refused_line(from: &str, error: &io::Error) -> String {
    format!("closed the connection of a node at {from}: {error}")
}

/// A node that has shown that it is a member, and said what it wants.
struct Guest {
    stream: Box<dyn Stream>,
    incoming: Incoming,
    /// The groups in which it has shown its starts.
    met: Vec<GroupId>,
    from: NodeId,
    purpose: Purpose,
}

/// Lets a connection of another node show who it is, and reads what it is for. Nobody who fails is
/// told why.
async fn hear(node: &Arc<Node>, stream: Box<dyn Stream>) -> io::Result<Guest> {
    let (mut stream, shown) = encrypt(node, stream).await?;
    let mut incoming = Incoming::default();
    let read = read_hello(&*node.env, &mut *stream, &mut incoming).await;
    let (refusal, error) = match read {
        Ok(hello) => match node.peers.check(&hello, shown.as_ref()) {
            Ok(()) => match meet(node, &hello).await {
                Ok(met) => {
                    return Ok(Guest {
                        stream,
                        incoming,
                        met,
                        from: hello.from,
                        purpose: hello.purpose,
                    })
                }
                Err(Refusal { why, answer }) => {
                    let error = io::Error::new(io::ErrorKind::PermissionDenied, why);
                    (answer, error)
                }
            },
            Err(Refusal { why, answer }) => {
                let error = io::Error::new(io::ErrorKind::PermissionDenied, why);
                (answer, error)
            }
        },
        Err(error) => (Answer::Refused, error),
    };
    let _ = timeout(&*node.env, ACCEPT_PAUSE, answer(&mut *stream, &refusal)).await;
    Err(error)
}

/// Looks whether a member that wants to send frames of groups is the one that was known before, in
/// each of them that this node has now: those.
async fn meet(node: &Node, hello: &Hello) -> Result<Vec<GroupId>, Refusal> {
    let Purpose::Groups(lines) = &hello.purpose else {
        return Ok(Vec::new());
    };
    let mut groups = Vec::new();
    for (group, line) in lines {
        let Some(engine) = node.hosting.engine(*group) else {
            continue;
        };
        let met = engine.group().meet(hello.from, line).await;
        met.map_err(|unwelcome| Refusal {
            why: format!("node {} is not heard: {unwelcome}", hello.from),
            answer: match unwelcome {
                Unwelcome::Outdated(seen) => {
                    let group = *group;
                    Answer::Outdated(Outdated { group, seen })
                }
                Unwelcome::NotNoted(_) => Answer::Refused,
            },
        })?;
        groups.push(*group);
    }
    Ok(groups)
}

/// Serves another node, on the reactor where what it wants belongs.
async fn serve_node(
    node: &Arc<Node>,
    guest: Guest,
    address: &str,
    unproved: &Arc<Unproved>,
) -> io::Result<()> {
    let Guest {
        mut stream,
        mut incoming,
        met,
        from,
        purpose,
    } = guest;
    match purpose {
        Purpose::Groups(_) => {
            answer(&mut *stream, &Answer::Welcome).await?;
            stream.detach()?;
            let (address, unproved) = (address.to_owned(), unproved.clone());
            node.task(Reactor::Group, "receive", move |node| {
                Box::pin(async move {
                    let received = node.peers.receive(from, &met, &mut *stream, &mut incoming);
                    // The other end logs its loss; a break is nothing that an operator must mend.
                    if let Err(error) = received.await {
                        if error.kind() == io::ErrorKind::InvalidData {
                            unproved.log(refused_line(&address, &error));
                        }
                    }
                })
            });
            Ok(())
        }
        Purpose::Directory => {
            answer(&mut *stream, &Answer::Welcome).await?;
            let mut out = Vec::new();
            put_framed(&mut out, &node.peers.directory().encode());
            write_all(&mut *stream, &out).await
        }
        Purpose::Branches => {
            answer(&mut *stream, &Answer::Welcome).await?;
            stream.detach()?;
            let read = incoming.into_rest();
            node.task(node.next_reactor(), "branches", move |node| {
                Box::pin(async move {
                    let served = Served {
                        groups: node.hosting.clone(),
                        memory: node.memory.clone(),
                    };
                    // Whoever has begun them notices that they are gone.
                    let _ = serve_branches(served, from, stream, read).await;
                })
            });
            Ok(())
        }
        Purpose::Reload => {
            node.reload();
            answer(&mut *stream, &Answer::Welcome).await
        }
        Purpose::Administer(wish) => {
            stream.detach()?;
            node.task(Reactor::Group, "administer", move |node| {
                Box::pin(async move {
                    // Whoever asked notices that it got no answer.
                    let _ = administration::serve(&node, wish, &mut *stream).await;
                })
            });
            Ok(())
        }
        Purpose::Cancel { pid, secret } => {
            node.sessions.cancel(CancelKey { pid, secret });
            answer(&mut *stream, &Answer::Welcome).await
        }
        Purpose::Session {
            client,
            server,
            packet,
            access,
            key,
            number,
            resume,
        } => {
            if node.group.leading().is_none() {
                return answer(&mut *stream, &Answer::NotLeader).await;
            }
            stream.detach()?;
            let client = clients::Foreign {
                stream,
                from: client,
                server,
                packet,
                access: *access,
                following: incoming.into_rest(),
                key,
                number,
                resume: resume.map(|resume| *resume),
            };
            node.task(node.next_reactor(), "session", |node| {
                Box::pin(clients::serve_foreign(node, client))
            });
            Ok(())
        }
    }
}

/// Encrypts a connection of another node, where nodes talk encrypted: its certificate.
async fn encrypt(
    node: &Node,
    stream: Box<dyn Stream>,
) -> io::Result<(Box<dyn Stream>, Option<NodeCertificate>)> {
    let secure = node.config.secure.as_ref();
    let Some(secure) = secure.filter(|secure| secure.serves_nodes()) else {
        return Ok((stream, None));
    };
    match timeout(&*node.env, CONNECT_TIMEOUT, secure.accept_node(stream)).await {
        Some(accepted) => accepted.map(|(stream, shown)| (stream, Some(shown))),
        None => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// Ends the sessions that a node has passed on which is no member any more, and notes, as the leader,
/// the keys that members have shown.
async fn follow_members(node: Arc<Node>) {
    let mut seen = None;
    loop {
        let keys = match node.group.leading() {
            Some(_) => node.peers.keys_to_note(),
            None => Vec::new(),
        };
        let mut failed = false;
        for (member, key) in keys {
            match node.group.note_key(member, key).await {
                Ok(_) => {
                    let message = format!("node {member} is known by the key {key} from now on");
                    node.env.log(Severity::Info, &message);
                }
                // Another change is under way, or another node leads.
                Err(_) => failed = true,
            }
        }
        let directory = node.peers.directory();
        node.sessions.end_those_of(|pid| {
            let lives = |member: &Member| lives_on(pid, member.node);
            !directory.members.iter().any(lives)
        });
        if failed {
            sleep(&*node.env, KEYS_PAUSE).await;
            continue;
        }
        let leading = node.group.leading().is_some();
        let is_news = || {
            let now = (node.peers.directories(), node.peers.keys_shown());
            (seen != Some(now)).then_some(now)
        };
        let changed = node.peers.changed().until(is_news);
        let changes = node
            .group
            .until_leadership(move |now| now.leading.is_some() != leading);
        if let Either::First(now) = either(changed, changes).await {
            seen = Some(now);
        }
    }
}

/// 57P03, with the voters that are missed.
pub(crate) fn no_leader(node: &Node) -> Error {
    let error = fatal(
        SqlState::CANNOT_CONNECT_NOW,
        "the database system is not accepting connections",
    );
    let Some(missing) = node.group.missing() else {
        return error.with_detail("The leader cannot be reached, or is not ready yet.");
    };
    let error = error.with_detail(match missing.is_majority_there {
        true => "No leader is known.",
        false => "No leader is known: fewer than a majority of the voters can be reached.",
    });
    let at = |member: &Member| format!("{} ({})", member.name, member.peer_address);
    let absent: Vec<_> = missing.voters.iter().map(at).collect();
    match absent.is_empty() {
        true => error,
        false => error.with_hint(format!(
            "{} hears nothing of {}.",
            node.member.name,
            absent.join(", ")
        )),
    }
}

// ---- First start ----

/// Makes sure, as soon as this node leads, that the catalog's first rows are there and settled.
async fn prepare_catalog(node: Arc<Node>) {
    let mut last_error = String::new();
    loop {
        if node.group.leading().is_some() {
            match bootstrap(&node).await {
                Ok(()) => break,
                Err(error) if error.to_string() == last_error => {}
                Err(error) => {
                    last_error = error.to_string();
                    let message = format!("could not prepare the catalog yet: {error:?}");
                    node.env.log(Severity::Warning, &message);
                }
            }
        }
        let leads = |now: kv::Leadership| now.leading.is_some();
        match node.group.leading() {
            Some(_) => sleep(&*node.env, LEADER_LOOK).await,
            None => node.group.until_leadership(leads).await,
        }
    }
    node.is_ready.store(true, Ordering::Release);
    node.ready.notify_all();
}

async fn bootstrap(node: &Node) -> Result<()> {
    let (engine, env) = (node.engine.clone(), node.env.clone());
    let (user, password) = (node.config.user.clone(), node.config.password.clone());
    let written = coro::run(Arc::default(), move || {
        sql::session::bootstrap(&engine, &*env, &user, password.as_deref())
    });
    let debt = written.await?;
    // Sessions owe what they read of it, at the level of each; a standby that is named and away must
    // not keep out who would name another.
    node.engine.gate.settle(debt, Durability::Local).await
}
