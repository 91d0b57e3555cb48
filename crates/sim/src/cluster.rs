//! A cluster of whole nodes in a simulated world, as `quorate up` would start it on real hosts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::env::Reactor;
use base::sync::Mutex;
use base::{Error, NodeId};
use kv::Member;
use node::config::NodeConfig;
use node::server::Node;
use node::wire::ClusterId;

use crate::world::{HostId, World};

/// The files of a node are checked within this.
const CHECK_MAX: Duration = Duration::from_secs(60);

/// What a node of the present life has become.
#[derive(Default)]
struct Life {
    node: Option<Arc<Node>>,
    error: Option<Error>,
}

/// Nodes, each on a host of its own, and one further host for clients.
pub struct Cluster {
    /// The world that they live in.
    pub world: World,
    hosts: Vec<HostId>,
    clients: HostId,
    lives: Vec<Arc<Mutex<Life>>>,
    members: Vec<Member>,
    settings: BTreeMap<String, String>,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cluster({} nodes, {:?})", self.hosts.len(), self.world)
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
        let members = (1..=nodes as u64)
            .map(|number| Member {
                node: NodeId(number),
                name: format!("n{number}").into(),
                peer_address: format!("127.0.0.{number}:6433").into(),
                sql_address: format!("127.0.0.{number}:5433").into(),
                voter: true,
                ..Member::default()
            })
            .collect();
        Cluster {
            world,
            lives: hosts.iter().map(|_| Arc::default()).collect(),
            hosts,
            clients,
            members,
            settings: settings
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect(),
        }
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.hosts.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// A node's host.
    pub fn host(&self, node: usize) -> HostId {
        self.hosts[node]
    }

    /// The clients' host.
    pub fn client_host(&self) -> HostId {
        self.clients
    }

    /// Where clients reach the nodes.
    pub fn addresses(&self) -> Vec<String> {
        self.members
            .iter()
            .map(|member| member.sql_address.to_string())
            .collect()
    }

    /// Starts a node's program on its host, which is up.
    pub fn start(&mut self, node: usize) {
        let env = self.world.env(self.hosts[node]);
        let life = Arc::new(Mutex::new(Life::default()));
        self.lives[node] = life.clone();
        let config = self.config(node);
        let start_env = env.clone();
        let body = async move {
            match Node::start(start_env.clone(), config).await {
                Ok(started) => life.lock().node = Some(started),
                Err(error) => {
                    start_env.stop_node(&error.to_string());
                    life.lock().error = Some(error);
                }
            }
        };
        env.spawn(Reactor::Group, "start", Box::new(move || Box::pin(body)));
    }

    fn config(&self, node: usize) -> NodeConfig {
        NodeConfig {
            cluster: ClusterId(7),
            node: self.members[node].node,
            members: self.members.clone(),
            incarnation: 1,
            begun_after: base::Lsn::ZERO,
            user: "postgres".to_owned(),
            settings: self.settings.clone(),
            password: None,
            secure: None,
        }
    }

    /// Checks the files of a node whose host is up and which does not run, as `quorate check` does.
    ///
    /// # Errors
    /// What is not sound.
    pub fn check(&mut self, node: usize) -> Result<(), String> {
        let env = self.world.env(self.hosts[node]);
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
            Some(Ok(_)) => Ok(()),
            Some(Err(error)) => Err(format!("the files of n{}: {error}", node + 1)),
            None => Err(format!("n{} is not checked within {CHECK_MAX:?}", node + 1)),
        }
    }

    /// Kills a node, with its host if that loses power.
    pub fn crash(&mut self, node: usize, loses_power: bool) {
        self.world.crash(self.hosts[node], loses_power);
        self.forget(node);
    }

    /// Brings a node back that was killed.
    pub fn restart(&mut self, node: usize) {
        self.world.restart(self.hosts[node]);
        self.start(node);
    }

    /// The node's present life, once it has started.
    pub fn node(&self, node: usize) -> Option<Arc<Node>> {
        self.lives[node].lock().node.clone()
    }

    /// Whether a node runs.
    pub fn is_alive(&self, node: usize) -> bool {
        self.world.is_alive(self.hosts[node])
    }

    /// The node that leads in the newest term, as the living nodes see it.
    pub fn leader(&self) -> Option<(usize, u64)> {
        (0..self.len())
            .filter(|node| self.is_alive(*node))
            .filter_map(|number| Some((number, self.node(number)?.status())))
            .filter(|(_, status)| status.role == "leader")
            .map(|(number, status)| (number, status.term))
            .max_by_key(|(_, term)| *term)
    }

    /// The first node that stopped itself, and why. In a world whose disks keep their promises,
    /// none may.
    pub fn stopped(&self) -> Option<String> {
        let reasons = self.hosts.iter().zip(1..).filter_map(|(host, number)| {
            let reason = self.world.stopped(*host)?;
            Some(format!("n{number} stopped itself: {reason}"))
        });
        reasons.into_iter().next()
    }

    /// Runs until every node leads or follows, and all have applied all that is committed.
    pub fn converge(&mut self, limit: Duration) -> bool {
        let lives: Vec<_> = self.lives.clone();
        self.world.run_until(limit, |_| {
            let statuses: Option<Vec<_>> = lives
                .iter()
                .map(|life| Some(life.lock().node.as_ref()?.status()))
                .collect();
            statuses.is_some_and(|statuses| {
                let first = &statuses[0];
                statuses.iter().any(|status| status.role == "leader")
                    && statuses.iter().all(|status| {
                        status.applied == first.applied
                            && status.commit == first.applied
                            && status.term == first.term
                    })
            })
        })
    }

    fn forget(&mut self, node: usize) {
        let life = std::mem::take(&mut self.lives[node]);
        let gone = life.lock().node.take();
        drop(gone);
    }
}
