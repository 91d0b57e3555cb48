//! The clients of a node, wherever their sessions are served.
//!
//! ```text
//!            ┌─► this node leads: served here ([`crate::session`]) ───┐
//!  a client ─┤                                                         ├─ the leader is lost
//!            └─► another leads: passed on to it ([`crate::passage`]) ──┘        │
//!            ▲                                                                   │
//!            └───────────── the session as it was, the input in flight ◄─────────┘
//! ```
//! A session ends with its client, with its node, or with what it holds; not with a leader.

use std::future::{poll_fn, Future};
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use base::coro::{self, Interrupt};
use base::env::{sleep, Env, Instant, LocalBoxFuture, Reactor, Stream};
use base::{Error, NodeId};
use kv::Leadership;
use pg::auth::Access;
use pg::handover::{answer_lost, lost_with_leader, InFlight, Resume};
use pg::log::{Kind, SessionLog, Who};
use pg::startup::{CancelKey, FirstPacket, StartupParameters};

use crate::passage::{Known, Over, Passage, Ties};
use crate::peers::answer;
use crate::server::{no_leader, Connection, Node, LEADER_LOOK, LEADER_WAIT_MAX, MAJORITY_WAIT_MAX};
use crate::session::{self, SessionContext};
use crate::sessions::{lives_on, Place};
use crate::unproved::Proving;
use crate::wait::{either, timeout, Either};
use crate::wire::{Answer, Purpose};

/// When another node leads, the one that led gets so long to answer what it has in flight.
const LAST_WORD_MAX: Duration = Duration::from_millis(300);

/// Input of a client that waits for a leader is read up to this.
const WAITING_BYTES_MAX: usize = 64 << 10;

/// A session that another node has passed on.
pub(crate) struct Foreign {
    pub stream: Box<dyn Stream>,
    /// Where its client comes from, `ip:port`.
    pub from: String,
    /// Where it was accepted, `ip:port`.
    pub server: String,
    /// Its startup packet.
    pub packet: Vec<u8>,
    /// What it has to show.
    pub access: Access,
    /// What came after it.
    pub following: Vec<u8>,
    /// What names it in cancel requests.
    pub key: CancelKey,
    /// Its number.
    pub number: u64,
    /// What it was, if it was served elsewhere before.
    pub resume: Option<Resume>,
}

/// A client of this node that has said who it is.
struct Client {
    stream: Box<dyn Stream>,
    from: String,
    server: String,
    packet: Vec<u8>,
    startup: StartupParameters,
    access: Access,
    number: u64,
    place: Place,
    proving: Proving,
    known: Known,
}

impl Client {
    /// Ends its connection with an error.
    async fn refuse(&mut self, node: &Node, error: &Error) {
        let pid = self.place.key().pid;
        let log = session_log(node, &self.from, pid, Some(&self.startup));
        session::refuse(&mut *self.stream, &*node.env, &log, error).await;
    }
}

/// The way to the log of a connection that has no session, or none here.
fn session_log(
    node: &Node,
    from: &str,
    pid: i32,
    startup: Option<&StartupParameters>,
) -> SessionLog {
    let who = who(&*node.env, from, pid, startup);
    SessionLog::new(node.env.clone(), who, node.log_settings())
}

/// Whose a connection is, as far as its startup packet says so.
pub(crate) fn who(env: &dyn Env, from: &str, pid: i32, startup: Option<&StartupParameters>) -> Who {
    Who {
        pid,
        user: startup.map_or_else(String::new, |startup| startup.user.clone()),
        database: startup.map_or_else(String::new, |startup| startup.database.clone()),
        client: session::split_address(from),
        started: env.wall_clock(),
        kind: match startup {
            Some(_) => Kind::Client,
            None => Kind::NotInitialized,
        },
    }
}

/// Serves a session that another node has passed on.
pub(crate) async fn serve_foreign(node: Arc<Node>, mut foreign: Foreign) {
    let decoded = pg::startup::decode(&foreign.packet);
    let Ok(Some((FirstPacket::Startup(startup), _))) = decoded else {
        let _ = answer(&mut *foreign.stream, &Answer::Refused).await;
        return;
    };
    if answer(&mut *foreign.stream, &Answer::Welcome)
        .await
        .is_err()
    {
        return;
    }
    // Whoever had the session before must have ended: it must not commit any more what comes again.
    let ended = node.sessions.end_foreign(foreign.key.pid);
    if timeout(&*node.env, LEADER_WAIT_MAX, ended).await.is_none() {
        return;
    }
    let place = match wait_until_ready(&node).await {
        Ok(()) => node.sessions.enter_foreign(foreign.key),
        Err(error) => Err(error),
    };
    let place = match place {
        Ok(place) => place,
        Err(error) => {
            let log = session_log(&node, &foreign.from, foreign.key.pid, Some(&startup));
            return session::refuse(&mut *foreign.stream, &*node.env, &log, &error).await;
        }
    };
    let context = context(&node, &place, startup, foreign.access);
    let context = SessionContext {
        following: foreign.following,
        client_address: foreign.from,
        server_address: foreign.server,
        number: foreign.number,
        passed_on: true,
        resume: foreign.resume,
        ..context
    };
    session::serve(foreign.stream, context).await;
}

/// A session's number: nobody may foretell whose row of outcomes it names.
fn session_number(env: &dyn Env) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = env.secret();
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

/// Takes a client that has connected.
pub(crate) fn welcome(node: &Arc<Node>, connection: Connection) {
    node.task(Reactor::Handshakes, "startup", |node| {
        Box::pin(async move {
            let Connection {
                stream,
                from,
                probation,
            } = connection;
            let env = node.env.clone();
            let secure = node.config.secure.as_deref();
            let within = node.settings.authentication_timeout;
            let log = session_log(&node, &from, 0, None);
            log.received();
            let startup = session::read_startup(stream, &*env, secure, within, &log);
            let read = match either(startup, probation.turned_out()).await {
                Either::First(read) => read,
                Either::Second(()) => return,
            };
            let Some((mut stream, info)) = read else {
                return;
            };
            match info.packet {
                FirstPacket::Cancel(key) => cancel(&node, key).await,
                FirstPacket::Startup(startup) => {
                    let place = match node.sessions.enter() {
                        Ok(place) => place,
                        Err(error) => {
                            let log = session_log(&node, &from, 0, Some(&startup));
                            return session::refuse(&mut *stream, &*env, &log, &error).await;
                        }
                    };
                    if stream.detach().is_err() {
                        return;
                    }
                    let server = node.member.sql_address.to_string();
                    let client = Client {
                        stream,
                        access: node.door.access(&from, &server, info.tls),
                        from,
                        server,
                        packet: info.bytes,
                        startup,
                        number: session_number(&*env),
                        proving: Proving::new(probation, place.interrupts()),
                        place,
                        known: Known {
                            input: info.following,
                            ..Known::default()
                        },
                    };
                    node.task(node.next_reactor(), "session", |node| {
                        Box::pin(serve_anywhere(node, client))
                    });
                }
                FirstPacket::Encryption(_) => {}
            }
        })
    });
}

/// Cancels the statement of a session wherever its client is.
async fn cancel(node: &Arc<Node>, key: CancelKey) {
    if lives_on(key.pid, node.config.node) {
        node.sessions.cancel(key);
        return;
    }
    let directory = node.group.directory();
    let mut members = directory.members.iter();
    if let Some(member) = members.find(|member| lives_on(key.pid, member.node)) {
        send_cancel(node, member.node, key).await;
    }
}

/// Asks another node to cancel a session's statement. A cancel is a wish: PostgreSQL does not say
/// either whether it came true.
async fn send_cancel(node: &Node, to: NodeId, key: CancelKey) {
    let purpose = Purpose::Cancel {
        pid: key.pid,
        secret: key.secret,
    };
    if let Some(member) = node.member_of(to) {
        let hello = node.peers.hello(to, purpose);
        let _ = node.peers.greet(&member, &hello).await;
    }
}

/// Serves a client here while this node leads, passes it on while another does, and waits while
/// nobody does.
async fn serve_anywhere(node: Arc<Node>, mut client: Client) {
    let connected = node.env.now();
    let mut deadline = connected.after(LEADER_WAIT_MAX);
    let mut is_waited_for = true;
    loop {
        let leadership = node.group.leadership();
        if leadership.leading.is_some() {
            match serve_here(&node, client).await {
                Some(left) => client = left,
                None => return,
            }
            is_waited_for = false;
        } else if client.known.resume.is_none() && reads_here(&node, &client.startup).await {
            return read_here(&node, client).await;
        } else if let Some((leader, there, first)) = reach_leader(&node, &client).await {
            if pass_on(&node, &mut client, leader, there, first)
                .await
                .is_none()
            {
                return;
            }
            is_waited_for = false;
        }
        // A client that wants nothing waits as long as it takes.
        let is_wanting = client.known.resume.is_none() || !client.known.input.is_empty();
        let is_wanting = is_wanting || client.known.is_in_flight;
        if is_wanting && !std::mem::replace(&mut is_waited_for, is_wanting) {
            deadline = node.env.now().after(LEADER_WAIT_MAX);
        }
        if is_wanting && node.env.now() >= deadline {
            let error = match client.known.is_in_flight {
                true => answer_lost(None),
                false => no_leader(&node),
            };
            return client.refuse(&node, &error).await;
        }
        let is_new = client.known.resume.is_none() && !client.known.is_in_flight;
        if is_new && is_hopeless(&node, connected) {
            let error = no_leader(&node);
            return client.refuse(&node, &error).await;
        }
        if !wait_a_little(&node, &mut client, leadership).await {
            return;
        }
    }
}

/// Whether who has connected then has waited long enough to be told that nobody will lead soon.
fn is_hopeless(node: &Node, connected: Instant) -> bool {
    let has_waited = node.env.now() >= connected.after(MAJORITY_WAIT_MAX);
    has_waited && (node.group.missing()).is_some_and(|missing| !missing.is_majority_there)
}

/// Whether a client of this node, which follows, wants to read on it (`quorate.follower_reads`).
async fn reads_here(node: &Arc<Node>, startup: &StartupParameters) -> bool {
    let (engine, defaults) = (node.standby.clone(), node.settings.session.clone());
    let catalogs = node.catalogs.clone();
    let (user, database) = (startup.user.clone(), startup.database.clone());
    let given = startup.settings.clone();
    let asked = coro::run(Arc::default(), move || {
        let engine = &*engine;
        let there =
            engine.cluster.is_standby() && sql::session::has_catalog(&*engine.transactions)?;
        let asks = || {
            let catalogs = &*catalogs;
            let asked = (&given[..], &user[..], &database[..]);
            sql::session::wants_follower_reads((engine, catalogs), &defaults, asked)
        };
        Ok::<_, Error>(there && asks()?)
    });
    // What is wrong with its settings, the leader tells it.
    asked.await.unwrap_or(false)
}

/// Serves a client that reads here, whoever leads.
async fn read_here(node: &Arc<Node>, client: Client) {
    client.place.set_stays();
    let context = context(node, &client.place, client.startup, client.access);
    let context = SessionContext {
        engine: node.standby.clone(),
        proving: client.proving,
        following: client.known.input,
        client_address: client.from,
        server_address: client.server,
        departed: Box::new(|| false),
        ..context
    };
    session::serve(client.stream, context).await;
}

/// Waits until leadership has changed, or for a while, reading meanwhile what the client sends;
/// false when it is gone, or has to go.
async fn wait_a_little(node: &Node, client: &mut Client, leadership: Leadership) -> bool {
    let changed = node.group.until_leadership(|now| now != leadership);
    let mut waiting = pin!(timeout(&*node.env, LEADER_LOOK, changed));
    let mut buffer = [0; 1_024];
    let is_there = poll_fn(|cx| {
        while client.known.resume.is_some() && client.known.input.len() < WAITING_BYTES_MAX {
            match client.stream.poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(count)) if count > 0 => {
                    client.known.input.extend_from_slice(&buffer[..count]);
                }
                Poll::Ready(_) => return Poll::Ready(false),
                Poll::Pending => break,
            }
        }
        let interrupt = client.place.interrupts().poll_take(cx);
        if interrupt == Poll::Ready(Interrupt::Terminate) {
            return Poll::Ready(false);
        }
        waiting.as_mut().poll(cx).map(|_| true)
    })
    .await;
    is_there && !client.known.has_said_goodbye()
}

/// Serves a client on this node; gives it back when it has to go on elsewhere.
async fn serve_here(node: &Arc<Node>, mut client: Client) -> Option<Client> {
    if let Err(error) = wait_until_ready(node).await {
        client.refuse(node, &error).await;
        return None;
    }
    if !say_what_is_lost(node, &mut client).await {
        return None;
    }
    // What made it leave elsewhere, or here before, is over.
    if client.place.interrupts().take() == Some(Interrupt::Terminate) {
        let error = Error::from(Interrupt::Terminate);
        client.refuse(node, &error).await;
        return None;
    }
    client.place.set_served(true);
    let context = context(
        node,
        &client.place,
        client.startup.clone(),
        client.access.clone(),
    );
    let context = SessionContext {
        following: std::mem::take(&mut client.known.input),
        client_address: client.from.clone(),
        server_address: client.server.clone(),
        number: client.number,
        proving: client.proving.clone(),
        resume: client.known.resume(),
        ..context
    };
    let was = context.resume.clone();
    let left = session::serve(client.stream, context).await?;
    // One that has not begun here still has in flight what it had.
    let is_in_flight = was.is_some() && was == left.resume && client.known.is_in_flight;
    let is_repeated = is_in_flight && client.known.is_repeated;
    let (in_flight, since) = was.map_or_else(Default::default, |was| (was.in_flight, was.since));
    client.stream = left.stream;
    client.known = Known {
        resume: left.resume,
        input: left.following,
        is_in_flight,
        is_repeated,
        is_input_lost: is_in_flight && in_flight == InFlight::Lost,
        since,
        ..Known::default()
    };
    Some(client)
}

/// A session that cannot go on is told why, and ends.
async fn say_what_is_lost(node: &Arc<Node>, client: &mut Client) -> bool {
    let known = &client.known;
    // Of one that had not begun nothing is known but its first packet.
    let has_begun = known.resume.is_some();
    if known.is_torn || !has_begun && (known.is_shown || known.is_in_flight) {
        return false;
    }
    // Whether anything in flight was committed matters more than what is held.
    if known.pinned.is_empty() || known.is_in_flight {
        return true;
    }
    let error = lost_with_leader(&known.pinned);
    client.refuse(node, &error).await;
    false
}

async fn wait_until_ready(node: &Node) -> Result<(), Error> {
    let is_ready = || node.is_ready.load(Ordering::Acquire).then_some(());
    let ready = node.ready.until(is_ready);
    let waited = timeout(&*node.env, LEADER_WAIT_MAX, ready).await;
    waited.ok_or_else(|| no_leader(node))
}

fn context(
    node: &Arc<Node>,
    place: &Place,
    startup: StartupParameters,
    access: Access,
) -> SessionContext {
    let sessions = place.sessions().clone();
    let before = sessions.departures();
    let group = node.group.clone();
    SessionContext {
        engine: node.engine.clone(),
        env: node.env.clone(),
        startup,
        defaults: node.settings.session.clone(),
        following: Vec::new(),
        key: place.key(),
        interrupts: place.interrupts().clone(),
        activity: place.activity().clone(),
        registry: sessions.clone(),
        catalogs: node.catalogs.clone(),
        access,
        mock_key: node.config.cluster.0.to_be_bytes().to_vec(),
        authentication_timeout: node.settings.authentication_timeout,
        proving: Proving::default(),
        stretches: node.stretches.clone(),
        client_address: String::new(),
        server_address: String::new(),
        log_settings: node.log_settings(),
        number: 0,
        passed_on: false,
        resume: None,
        // Leadership may have gone before the count was taken.
        departed: Box::new(move || sessions.departures() != before || group.leading().is_none()),
    }
}

/// Tries to have the leader take a client, for as long as it is the leader.
///
/// Only what is in the Hello goes there: a try that is given up has executed nothing.
async fn reach_leader(node: &Node, client: &Client) -> Option<(NodeId, Box<dyn Stream>, Vec<u8>)> {
    let leader = node.group.leader()?;
    if leader == node.config.node {
        return None;
    }
    let purpose = Purpose::Session {
        client: client.from.clone(),
        server: client.server.clone(),
        packet: client.packet.clone(),
        access: Box::new(client.access.clone()),
        key: client.place.key(),
        number: client.number,
        resume: client.known.resume().map(Box::new),
    };
    let hello = node.peers.hello(leader, purpose);
    let member = &node.member_of(leader)?;
    let replaced = node
        .group
        .until_leadership(|now| now.leader != Some(leader));
    let given_up = either(replaced, until_missed(node));
    match either(node.peers.greet(member, &hello), given_up).await {
        Either::First(greeted) => greeted.ok().map(|(there, first)| (leader, there, first)),
        Either::Second(_) => None,
    }
}

/// Ready when nothing is heard any more of the leader that this node knows, as a learner does for
/// ever.
async fn until_missed(node: &Node) {
    while node.group.missing().is_none() {
        sleep(&*node.env, LEADER_LOOK).await;
    }
}

/// Passes a client on until the leader is lost; none when the session has ended.
async fn pass_on(
    node: &Arc<Node>,
    client: &mut Client,
    leader: NodeId,
    there: Box<dyn Stream>,
    first: Vec<u8>,
) -> Option<()> {
    if !say_what_is_lost(node, client).await {
        return None;
    }
    client.place.set_served(false);
    let key = client.place.key();
    let ties = Ties {
        interrupts: client.place.interrupts(),
        begun: Box::new(|| {
            client.place.set_admitted();
            client.proving.done();
        }),
        commit: Box::new(|| node.group.committed()),
        cancel: Box::new(|| {
            node.task(Reactor::Group, "cancel", move |node| {
                let cancelling: LocalBoxFuture<'static, ()> =
                    Box::pin(async move { send_cancel(&node, leader, key).await });
                cancelling
            });
        }),
        replaced: {
            let group = node.group.clone();
            let is_another = move |now: Leadership| now.leader.is_some_and(|other| other != leader);
            Box::pin(async move { group.until_leadership(is_another).await })
        },
        pause: Box::new(|| sleep(&*node.env, LAST_WORD_MAX)),
    };
    let mut passage = Passage::new(&mut *client.stream, there, first, &mut client.known, ties);
    match poll_fn(|cx| passage.poll(cx)).await {
        Over::Ended => {
            drop(passage);
            session::part(&mut *client.stream, &*node.env).await;
            None
        }
        Over::Lost => Some(()),
        Over::Terminated => {
            drop(passage);
            if !client.known.is_torn {
                let error = Error::from(Interrupt::Terminate);
                client.refuse(node, &error).await;
            }
            None
        }
    }
}
