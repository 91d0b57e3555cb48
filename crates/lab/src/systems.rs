//! The systems that experiments measure, by the names that experiments' files and the command line
//! use.
//!
//! Within a pair of [`Kind`]s what protects a commit is the same: one disk beside one disk, two of
//! three beside a majority of three. Another build of Quorate may stand in PostgreSQL's place, to
//! see what a change is worth, and any running server may stand beside.

use std::io::{Error, Result};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use crate::host::{create_dir, processor_micros, resolve, Endpoint};
use crate::postgres::{self, Postgres};
use crate::quorate::{Cluster, Topology};
use crate::real::cgroup::MemoryGroup;
use crate::real::relay::{Direction, Line, Relay};
use crate::session::Target;
use crate::url::Url;

/// Lines of postgresql.conf: memory and log enough that no checkpoint falls into every run.
const POSTGRES_SETTINGS: [&str; 2] = ["shared_buffers = '512MB'", "max_wal_size = '4GB'"];

/// Settings of Quorate's nodes: as much memory for pages as PostgreSQL has.
const QUORATE_SETTINGS: [&str; 1] = ["shared_buffers=512MB"];

/// What reports say of a server's settings, where it knows them: the memory that it may use, and how
/// much log it lets grow.
const SHOWN_SETTINGS: [&str; 6] = [
    "shared_buffers",
    "work_mem",
    "max_wal_size",
    "checkpoint_timeout",
    "quorate.memory_budget",
    "quorate.checkpoint_log_size",
];

/// A kind of system that the lab starts by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// What files and the command line call it.
    pub name: &'static str,
    /// What reports call it.
    pub title: &'static str,
    /// Whether it is PostgreSQL.
    pub is_postgres: bool,
    /// Nodes that vote, or the primary.
    voters: usize,
    /// Nodes that do not, or standbys.
    others: usize,
    /// `synchronous_standby_names`.
    names: &'static str,
}

const fn postgres(
    name: &'static str,
    title: &'static str,
    others: usize,
    names: &'static str,
) -> Kind {
    Kind {
        name,
        title,
        is_postgres: true,
        voters: 1,
        others,
        names,
    }
}

const fn quorate(
    name: &'static str,
    title: &'static str,
    voters: usize,
    others: usize,
    names: &'static str,
) -> Kind {
    Kind {
        name,
        title,
        is_postgres: false,
        voters,
        others,
        names,
    }
}

/// All kinds.
pub const KINDS: [Kind; 14] = [
    postgres("postgres-alone", "PostgreSQL alone", 0, ""),
    postgres("postgres-async", "PostgreSQL, two asynchronous", 2, ""),
    postgres("postgres-two", "PostgreSQL, one synchronous", 1, "*"),
    postgres(
        "postgres-sync",
        "PostgreSQL, FIRST 1 of 2",
        2,
        "FIRST 1 (n2, n3)",
    ),
    postgres(
        "postgres-any",
        "PostgreSQL, ANY 1 of 2",
        2,
        "ANY 1 (n2, n3)",
    ),
    postgres(
        "postgres-any-two",
        "PostgreSQL, ANY 2 of 2",
        2,
        "ANY 2 (n2, n3)",
    ),
    quorate("quorate-one", "Quorate, one node", 1, 0, ""),
    quorate("quorate-async", "Quorate, two learners", 1, 2, ""),
    quorate("quorate-two", "Quorate, one synchronous learner", 1, 1, "*"),
    quorate(
        "quorate-sync",
        "Quorate, FIRST 1 of 2 learners",
        1,
        2,
        "FIRST 1 (n2, n3)",
    ),
    quorate(
        "quorate-any",
        "Quorate, ANY 1 of 2 learners",
        1,
        2,
        "ANY 1 (n2, n3)",
    ),
    quorate(
        "quorate-any-two",
        "Quorate, ANY 2 of 2 learners",
        1,
        2,
        "ANY 2 (n2, n3)",
    ),
    quorate("quorate-three", "Quorate, three nodes", 3, 0, ""),
    quorate("quorate-five", "Quorate, five nodes", 5, 0, ""),
];

impl Kind {
    /// The kind of a name.
    pub fn named(name: &str) -> Option<Kind> {
        KINDS.iter().find(|kind| kind.name == name).copied()
    }
}

/// What an experiment asks of the systems that are started for it.
#[derive(Clone, Debug, Default)]
pub struct Demands {
    /// Relays between their servers.
    pub relayed: bool,
    /// Lines of postgresql.conf, after the usual ones.
    pub postgres: Vec<String>,
    /// Settings of Quorate's nodes, `NAME=VALUE`.
    pub quorate: Vec<String>,
    /// Bytes of memory that the servers of each system have together, if that is to be limited, and
    /// can be.
    pub memory_bytes: Option<u64>,
}

impl Demands {
    /// Relays between servers, and nothing else.
    pub fn relayed(relayed: bool) -> Demands {
        Demands {
            relayed,
            ..Demands::default()
        }
    }

    /// A group for one system's servers; none where none is asked for, or none can be made.
    fn group(&self) -> Option<MemoryGroup> {
        MemoryGroup::limited_to(self.memory_bytes?).ok()
    }
}

/// Where systems are started, and of what.
#[derive(Clone, Debug)]
pub struct Site {
    /// Quorate's binary.
    pub program: PathBuf,
    /// Another build of Quorate, in PostgreSQL's place.
    pub beside: Option<PathBuf>,
    /// PostgreSQL's programs.
    pub postgres_bin: PathBuf,
    /// The directory for everything.
    pub dir: PathBuf,
    /// Systems to measure: these families alone, `quorate` and `postgres`.
    pub against: Vec<String>,
    /// Running servers to measure too, by name.
    pub urls: Vec<(String, Url)>,
}

impl Site {
    /// The usual place: PostgreSQL as [`postgres::programs`] finds it.
    pub fn new(program: &Path, dir: &Path) -> Site {
        Site {
            program: program.to_owned(),
            beside: None,
            postgres_bin: postgres::programs(),
            dir: dir.to_owned(),
            against: vec!["quorate".to_owned(), "postgres".to_owned()],
            urls: Vec::new(),
        }
    }

    /// Whether PostgreSQL's programs are there.
    pub fn has_postgres(&self) -> bool {
        self.postgres_bin.join("postgres").exists()
    }

    /// Whether a kind is to be measured, and can be.
    pub fn takes(&self, kind: Kind) -> bool {
        let family = if kind.is_postgres {
            "postgres"
        } else {
            "quorate"
        };
        let can = !kind.is_postgres || self.beside.is_some() || self.has_postgres();
        can && self.against.iter().any(|name| name == family)
    }

    /// Starts the systems of these names below a directory of their own, and adds the servers that
    /// are running already.
    ///
    /// # Errors
    /// There is no such kind, or a system does not start.
    pub fn start(&self, names: &[String], place: &str, demands: &Demands) -> Result<Vec<System>> {
        let mut systems = Vec::new();
        for name in names {
            let unknown = || Error::other(format!("no system {name}"));
            let kind = Kind::named(name).ok_or_else(unknown)?;
            if self.takes(kind) {
                let dir = self.dir.join(place).join(name);
                systems.push(System::start(self, kind, &dir, demands)?);
            }
        }
        for (name, url) in &self.urls {
            systems.push(System::running(name, url)?);
        }
        // Quorate's clusters are stopped first: they are dropped first.
        Ok(systems)
    }
}

/// One system under measurement.
#[derive(Debug)]
pub struct System {
    name: String,
    is_postgres: bool,
    parts: Parts,
    endpoint: Endpoint,
    processes: Vec<u32>,
    /// After the servers in it.
    group: Option<MemoryGroup>,
}

#[derive(Debug)]
enum Parts {
    /// Standbys are dropped first: a primary that stops waits for them.
    Postgres {
        standbys: Vec<Postgres>,
        primary: Box<Postgres>,
        relays: Vec<Relay>,
    },
    Quorate(Box<Cluster>),
    Running,
}

impl System {
    fn start(site: &Site, kind: Kind, dir: &Path, demands: &Demands) -> Result<System> {
        create_dir(dir)?;
        match (&site.beside, kind.is_postgres) {
            (None, true) => System::start_postgres(site, kind, dir, demands),
            (Some(other), true) => {
                let title = kind.title.replace("PostgreSQL", "other build");
                let voters = 1 + kind.others;
                let twin = Kind {
                    voters,
                    others: 0,
                    names: "",
                    ..kind
                };
                System::quorate(&title, other, twin, dir, demands)
            }
            (_, false) => System::quorate(kind.title, &site.program, kind, dir, demands),
        }
    }

    fn start_postgres(site: &Site, kind: Kind, dir: &Path, demands: &Demands) -> Result<System> {
        let bin = &site.postgres_bin;
        let group = demands.group();
        let mut settings = POSTGRES_SETTINGS.to_vec();
        settings.extend(demands.postgres.iter().map(String::as_str));
        let primary = Postgres::primary_in(bin, &dir.join("n1"), &settings, group.as_ref())?;
        let endpoint = primary.endpoint().clone();
        let (mut standbys, mut relays) = (Vec::new(), Vec::new());
        for number in 2..kind.others + 2 {
            let name = format!("n{number}");
            let mut port = endpoint.port;
            if demands.relayed {
                let relay = Relay::to((Ipv4Addr::LOCALHOST, port).into())?;
                port = relay.address().port();
                relays.push(relay);
            }
            standbys.push(primary.standby_through(&dir.join(&name), &name, port)?);
        }
        let names = kind.names;
        endpoint.query(&format!(
            "alter system set synchronous_standby_names = '{names}'"
        ))?;
        endpoint.query("select pg_reload_conf()")?;
        primary.wait_for_standbys(kind.others, "true")?;
        let mut processes = vec![primary.pid()?];
        for standby in &standbys {
            processes.push(standby.pid()?);
        }
        Ok(System {
            name: kind.title.to_owned(),
            is_postgres: true,
            endpoint,
            processes,
            parts: Parts::Postgres {
                standbys,
                primary: Box::new(primary),
                relays,
            },
            group,
        })
    }

    /// A cluster of Quorate, reached at the node that leads, so that no session is passed on while
    /// it is measured.
    fn quorate(
        title: &str,
        program: &Path,
        kind: Kind,
        dir: &Path,
        demands: &Demands,
    ) -> Result<System> {
        let topology = Topology {
            voters: kind.voters,
            learners: kind.others,
        };
        let names = format!("synchronous_standby_names={}", kind.names);
        let mut settings: Vec<&str> = QUORATE_SETTINGS.to_vec();
        settings.extend(demands.quorate.iter().map(String::as_str));
        if !kind.names.is_empty() {
            settings.push(names.as_str());
        }
        let group = demands.group();
        let relayed = demands.relayed;
        let cluster = Cluster::launch(program, dir, topology, &settings, relayed, group.as_ref())?;
        let nodes = cluster.status()?.into_iter();
        Ok(System {
            name: title.to_owned(),
            is_postgres: false,
            endpoint: cluster.nodes()[cluster.leader()?].clone(),
            processes: nodes.filter_map(|node| node.pid).collect(),
            parts: Parts::Quorate(Box::new(cluster)),
            group,
        })
    }

    fn running(name: &str, url: &Url) -> Result<System> {
        let host = resolve(&url.host, url.port)?.ip().to_string();
        Ok(System {
            name: name.to_owned(),
            is_postgres: false,
            endpoint: Endpoint {
                login: url.login(),
                ..Endpoint::at(&host, url.port)
            },
            processes: Vec::new(),
            parts: Parts::Running,
            group: None,
        })
    }

    /// What tables call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where its clients go.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Where all of its nodes take clients; of PostgreSQL, the primary alone.
    pub fn endpoints(&self) -> Vec<Endpoint> {
        match &self.parts {
            Parts::Quorate(cluster) => cluster.nodes().to_vec(),
            _ => vec![self.endpoint.clone()],
        }
    }

    /// A session's target.
    pub fn target(&self) -> Target {
        self.endpoint.target()
    }

    /// Whether it was started here, and so can be looked into and killed.
    pub fn is_ours(&self) -> bool {
        !matches!(self.parts, Parts::Running)
    }

    /// The group that limits its servers' memory, where there is one.
    pub fn group(&self) -> Option<&MemoryGroup> {
        self.group.as_ref()
    }

    /// Where its first server keeps data and, apart, its log, with what these are called.
    pub fn places(&self) -> Option<[(&'static str, PathBuf); 2]> {
        match &self.parts {
            Parts::Postgres { primary, .. } => Some([
                ("base", primary.data().join("base")),
                ("pg_wal", primary.data().join("pg_wal")),
            ]),
            Parts::Quorate(cluster) => {
                let group = cluster.node_dir(0).join("group1");
                Some([("store", group.join("store")), ("log", group.join("log"))])
            }
            Parts::Running => None,
        }
    }

    /// Its server processes; of PostgreSQL, those that start all others.
    pub fn processes(&self) -> Vec<u32> {
        self.processes.clone()
    }

    /// Whether it is PostgreSQL.
    pub fn is_postgres(&self) -> bool {
        self.is_postgres
    }

    /// Its cluster, where it is Quorate's.
    pub fn cluster(&self) -> Option<&Cluster> {
        match &self.parts {
            Parts::Quorate(cluster) => Some(cluster),
            _ => None,
        }
    }

    /// Its primary, its standbys, and the relays before the primary for each of these, where it is
    /// PostgreSQL's.
    pub fn postgres(&self) -> Option<(&Postgres, &[Postgres], &[Relay])> {
        match &self.parts {
            Parts::Postgres {
                standbys,
                primary,
                relays,
            } => Some((primary, standbys, relays)),
            _ => None,
        }
    }

    /// Cuts all lines between its servers, or mends them.
    pub fn cut(&self, cut: bool) {
        for relay in self.relays() {
            relay.cut(cut);
        }
    }

    /// Puts a line between its servers, both ways.
    pub fn set_lines(&self, line: Line) {
        for relay in self.relays() {
            relay.set_both(line);
        }
    }

    fn relays(&self) -> Vec<&Relay> {
        match &self.parts {
            Parts::Postgres { relays, .. } => relays.iter().collect(),
            Parts::Quorate(cluster) => cluster.relays().iter().map(|named| &named.relay).collect(),
            Parts::Running => Vec::new(),
        }
    }

    /// Bytes that have left the primary, or the leader, for each of its standbys on average; none
    /// without relays.
    pub fn sent_bytes(&self) -> Option<f64> {
        let sent: Vec<u64> = match &self.parts {
            // A standby connects, so what the primary sends goes back.
            Parts::Postgres { relays, .. } => {
                let back = relays.iter().map(|relay| relay.bytes(Direction::Back));
                back.collect()
            }
            Parts::Quorate(cluster) => {
                let leader = cluster.leader().ok()?;
                let others = 0..cluster.nodes().len();
                let relays = others.filter_map(|other| cluster.relay(leader, other));
                relays
                    .map(|relay| relay.bytes(Direction::Forward))
                    .collect()
            }
            Parts::Running => Vec::new(),
        };
        match sent.is_empty() {
            true => None,
            false => Some(sent.iter().sum::<u64>() as f64 / sent.len() as f64),
        }
    }

    /// One of the leader's followers behind a relay: its name, the relay's port, and the bytes that
    /// the leader has sent through it.
    pub fn one_follower(&self) -> Option<(String, u16, f64)> {
        let cluster = self.cluster()?;
        let leader = cluster.leader().ok()?;
        let other = (0..cluster.nodes().len()).find(|other| *other != leader)?;
        let relay = cluster.relay(leader, other)?;
        let sent = relay.bytes(Direction::Forward) as f64;
        Some((format!("n{}", other + 1), relay.address().port(), sent))
    }

    /// Microseconds of processor time that all its server processes have used so far; none of a
    /// system that was not started here.
    ///
    /// # Errors
    /// One of them is gone.
    pub fn processor_micros(&self) -> Result<Option<f64>> {
        match self.processes.is_empty() {
            true => Ok(None),
            false => processor_micros(&self.processes).map(Some),
        }
    }

    /// The settings that durability and speed rest on, as the server says they are, and what is wrong
    /// with them.
    pub fn settings(&self) -> (String, Vec<String>) {
        let mut said = Vec::new();
        let mut wrong = Vec::new();
        let durability = [
            ("fsync", Some("on")),
            ("full_page_writes", Some("on")),
            ("synchronous_commit", Some("on")),
            ("synchronous_standby_names", None),
        ];
        let shown = SHOWN_SETTINGS.map(|name| (name, None));
        for (name, expected) in durability.into_iter().chain(shown) {
            // Quorate has no way to run without fsync, and no pages in its log.
            let Ok(value) = self.endpoint.query(&format!("show {name}")) else {
                continue;
            };
            if expected.is_some_and(|expected| expected != value) {
                wrong.push(format!("{}: {name} is {value}", self.name));
            }
            said.push(format!("{name}={value}"));
        }
        (said.join(", "), wrong)
    }
}
