//! A node from the moment at which it listens to the one at which it serves.
//!
//! ```text
//! listens ──► opens its files, replays its log ──► serves
//!             clients: 57P03 at once                clients: see `clients`
//!             other nodes: wait in the system's queue, or give up
//! ```
//! A client that waited for the end of the replay would not try the next host of its list, so it is
//! sent away with PostgreSQL's words for that. Who asks over HTTP how the node is gets the same.
//!
//! # What it leaves out
//! The rules of access are not asked: they may name databases and roles, and those are in the log that
//! is being replayed. A client learns no more than that there is a server.

use std::sync::{Arc, OnceLock};

use base::env::{Env, Listener, Reactor};
use base::{Error, Result, SqlState};
use kv::Member;
use pg::log::SessionLog;
use pg::startup::FirstPacket;
use sql::session::LogSettings;

use crate::access::{check_exposure, Door, Listening};
use crate::clients;
use crate::config::{NodeConfig, NodeSettings};
use crate::server::{accept, listen, Connection, Node};
use crate::session;
use crate::sessions::fatal;
use crate::wait::{either, Either};

/// What a node says that does not serve yet, as PostgreSQL does.
pub const STARTING_UP: &str = "the database system is starting up";

/// A node for those who come to it, whether it serves already or not.
pub struct Starting {
    env: Arc<dyn Env>,
    config: NodeConfig,
    settings: NodeSettings,
    member: Member,
    log_settings: Arc<LogSettings>,
    node: OnceLock<Arc<Node>>,
}

/// What a node has before it opens its files.
pub(crate) struct Prepared {
    pub(crate) door: Door,
    pub(crate) others: Box<dyn Listener>,
}

/// A node that listens and has opened none of its files.
pub struct Start {
    starting: Arc<Starting>,
    prepared: Prepared,
}

impl Start {
    /// Begins to listen, and to send clients away.
    ///
    /// # Errors
    /// A setting that cannot be read, an address that cannot be listened on.
    pub fn begin(env: Arc<dyn Env>, config: NodeConfig) -> Result<Start> {
        let settings = config.settings()?;
        let member = config.member()?.clone();
        let listening = Listening {
            name: &member.name,
            sql: &member.sql_address,
            peer: &member.peer_address,
        };
        check_exposure(listening, config.secure.as_deref())?;
        let prepared = Prepared {
            door: Door::open(env.clone(), &member.sql_address)?,
            others: listen(&*env, &member.peer_address)?,
        };
        let clients = listen(&*env, &member.sql_address)?;
        let starting = Arc::new(Starting {
            env: env.clone(),
            config,
            log_settings: sql::session::log_settings(None, &settings.session),
            settings,
            member,
            node: OnceLock::new(),
        });
        let host = starting.clone();
        let task = move || -> base::env::LocalBoxFuture<'static, ()> {
            let env = host.env.clone();
            Box::pin(accept(env, host, clients, "clients", welcome))
        };
        env.spawn(Reactor::Handshakes, "accept clients", Box::new(task));
        Ok(Start { starting, prepared })
    }

    /// For those who come to the node.
    pub fn starting(&self) -> Arc<Starting> {
        self.starting.clone()
    }

    /// Opens the group, and serves from then on.
    ///
    /// # Errors
    /// A damaged directory, and whatever the disk refuses.
    pub async fn finish(self) -> Result<Arc<Node>> {
        let Start { starting, prepared } = self;
        let (config, settings) = (starting.config.clone(), starting.settings.clone());
        let member = starting.member.clone();
        let node = Node::open(starting.env.clone(), config, settings, member, prepared).await?;
        let is_first = starting.node.set(node.clone()).is_ok();
        assert!(is_first, "a node starts once");
        Ok(node)
    }
}

impl Starting {
    /// The node, once it serves.
    pub fn node(&self) -> Option<&Arc<Node>> {
        self.node.get()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.member.name
    }
}

/// Takes a client that has connected.
fn welcome(starting: &Arc<Starting>, connection: Connection) {
    match starting.node() {
        Some(node) => clients::welcome(node, connection),
        None => {
            let host = starting.clone();
            let task = move || -> base::env::LocalBoxFuture<'static, ()> {
                Box::pin(async move { host.send_away(connection).await })
            };
            let reactor = Reactor::Handshakes;
            starting.env.spawn(reactor, "startup", Box::new(task));
        }
    }
}

impl Starting {
    /// Tells a client that has said what it wants that it is too early.
    async fn send_away(&self, connection: Connection) {
        let Connection {
            stream,
            from,
            probation,
        } = connection;
        let env = &*self.env;
        let log_of = |startup| {
            let who = clients::who(env, &from, 0, startup);
            SessionLog::new(self.env.clone(), who, self.log_settings.clone())
        };
        let log = log_of(None);
        log.received();
        let secure = self.config.secure.as_deref();
        let within = self.settings.authentication_timeout;
        let startup = session::read_startup(stream, env, secure, within, &log);
        let Either::First(Some((mut stream, info))) = either(startup, probation.turned_out()).await
        else {
            return;
        };
        // There is nothing yet that could be cancelled.
        let FirstPacket::Startup(startup) = info.packet else {
            return;
        };
        session::refuse(&mut *stream, env, &log_of(Some(&startup)), &starting_up()).await;
    }
}

/// 57P03, as PostgreSQL says it while it recovers.
fn starting_up() -> Error {
    fatal(SqlState::CANNOT_CONNECT_NOW, STARTING_UP)
}
