//! The connections between the nodes of a cluster: the [`Transport`] of all its groups.
//!
//! Each node keeps one connection to every other member and sends on it; it receives on the
//! connections that the others have made to it. So each connection carries frames one way, in
//! order.
//!
//! Whoever has frames for a member writes them to its socket at once, on whatever reactor that is:
//! handing them to another thread first would cost every commit two changes of thread. Only what a
//! socket does not take at once waits for the member's task (`peers/queue.rs`).
//!
//! # Groups
//! A connection carries the frames of all groups that both nodes have. A frame names its group
//! ([`kv::frame`]), and the Hello shows the starts of the node that connects in each of its groups
//! ([`kv::starts`]): in a group in which it has shown none, nothing is taken from it. A node that
//! comes to have a further group connects anew to all others ([`Peers::introduce`]), and one that
//! hears of a group in which it has not been shown anything ends the connection.
//!
//! # What may be lost
//! Frames for a member that is not connected are dropped, and so is what was queued when its
//! connection broke or when its queue is full: Raft repeats itself, and old frames would only delay
//! the new ones.
//!
//! # Who is let in
//! The members of the group, as its directory has them: connections come and go with it. Where nodes
//! ask one another for certificates, a member is who shows one of the authority, in force and not
//! revoked, for the member's name and with the member's key. The first key that a member shows to a
//! leader is noted in the directory ([`Group::note_key`](kv::Group::note_key)); from then on another
//! certificate of the same authority, even one for the same name, is not the member's. Each side
//! looks, at every connection.
//!
//! | who connects | is answered | and may |
//! |---|---|---|
//! | a member | welcome | everything |
//! | a node that was removed, or is of an older incarnation | that it was | nothing; it stops |
//! | a member with an older directory than it was seen with ([`kv::starts`]) | that it is | nothing; it stops |
//! | a node that the directory does not know *yet* | refused, until a member vouches for it | send frames of the group |
//! | a node of a newer incarnation | refused, and connected to, so that it says what became of the group | nothing |
//! | anybody else | refused | nothing |
//!
//! A replica that was away may have missed that a node was added, and that node may lead by now. So
//! it asks the members that it knows who the members are; who is among those, with that key, is let
//! in as a *guest*. Where nobody asks for certificates, on loopback, such a node is taken at its word.
//!
//! # What is told
//! Whoever is refused learns nothing else; address and reason stand in the log. A node that was
//! removed is told so only if it knows the cluster's id, which nobody is told.
//!
//! # What it leaves out
//! Connections that stand go on when a list of revoked certificates comes to name them; a node that
//! must go at once is removed.

mod queue;

use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use base::env::{read, sleep, write_all, Env, Instant, Reactor, Severity, Stream, TaskStart};
use base::framed::{put_framed, Incoming};
use base::sync::{self, Event, Mutex, RwLock};
use base::{Error, GroupId, NodeId};
use kv::{Directory, KeyHash, Keys, Member, Transport};

use self::queue::{Limits, Queue};
use crate::secure::{NodeCertificate, Secure};
use crate::wait::{either, timeout, Either};
use crate::wire::{
    Answer, ClusterId, Hello, Lines, Outdated, Purpose, Removed, FRAME_BYTES_MAX, HELLO_BYTES_MAX,
};

/// What waits for one member, and leaves at a time.
const LIMITS: Limits = Limits {
    queued_bytes: 64 << 20,
    write_bytes: 1 << 20,
};

/// Nodes that the directory does not know yet and that are connected all the same.
const GUESTS_MAX: usize = 16;

/// Members are asked for an unknown node at most once within this.
const INQUIRY_PAUSE: Duration = Duration::from_millis(500);

/// A connection, or its Hello, that takes longer is given up.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// A write that makes no way for so long ends its connection: the other side is gone or stopped.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection to a node that was removed ends after this.
const LEAVE_PAUSE: Duration = Duration::from_millis(200);

/// The pause before a member is tried again: doubled from the first to the last of these.
const RETRY_FIRST: Duration = Duration::from_millis(20);
const RETRY_LAST: Duration = Duration::from_millis(500);

/// Takes the frames that other members send.
pub trait Receiver: Send + Sync {
    /// A frame from another member, which has shown its starts in the groups of `lines` when it
    /// connected. False where it must show those in the frame's group first, and so connect anew.
    fn receive(&self, from: NodeId, met: &[GroupId], frame: &[u8]) -> bool;
    /// The connection to a member broke; what was sent lately may be lost.
    fn disconnected(&self, node: NodeId);
    /// A member says that this node has no part in the cluster any more.
    fn removed(&self, removed: Removed);
    /// The starts of this node.
    fn lines(&self) -> Lines;
    /// A member says that it has seen this node in a start that its directory knows nothing of.
    fn outdated(&self, by: &str, outdated: Outdated);
}

/// One node's connections to the others.
pub struct Peers {
    identity: Arc<Identity>,
    directory: Mutex<Directory>,
    /// How many directories there have been: whoever has looked need not look again until it grows.
    directories: AtomicU64,
    outgoing: RwLock<Vec<Arc<Outgoing>>>,
    acquaintance: Mutex<Acquaintance>,
    /// Something of that, or the directory, has changed.
    changed: Event,
    introductions: Arc<Introductions>,
    /// Who takes frames; it holds this in turn, so it is not kept alive from here.
    receiver: OnceLock<Weak<dyn Receiver>>,
}

/// How often it was said anew in which groups this node shows its starts.
struct Introductions {
    count: AtomicU64,
    changed: Event,
}

impl Introductions {
    fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Ready when there was another than that.
    async fn after(&self, introduction: u64) {
        let is_over = || (self.count() != introduction).then_some(());
        self.changed.until(is_over).await;
    }
}

/// What connections have shown that the directory does not have.
#[derive(Default)]
struct Acquaintance {
    /// Keys that members have shown of whom none was noted.
    keys: Vec<(NodeId, KeyHash)>,
    /// Nodes that a member has vouched for.
    guests: Vec<Member>,
    /// When members were last asked for an unknown node.
    asked: Option<Instant>,
}

/// Why a Hello was refused, and what the other side is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// For the log.
    pub why: String,
    /// For the other side.
    pub answer: Answer,
}

impl Refusal {
    /// The other side is told nothing.
    pub fn of(why: impl Into<String>) -> Refusal {
        Refusal {
            why: why.into(),
            answer: Answer::Refused,
        }
    }
}

/// Who connects.
struct Identity {
    env: Arc<dyn Env>,
    cluster: ClusterId,
    node: NodeId,
    /// Encrypts connections; none where nodes talk in the clear.
    secure: Option<Arc<dyn Secure>>,
    name: Arc<str>,
    address: Arc<str>,
    incarnation: AtomicU64,
}

impl Identity {
    fn hello(&self, to: NodeId, purpose: Purpose) -> Hello {
        Hello {
            cluster: self.cluster,
            from: self.node,
            to,
            incarnation: self.incarnation.load(Ordering::Relaxed),
            name: self.name.clone(),
            address: self.address.clone(),
            purpose,
        }
    }
}

/// Another member, and what waits for it.
struct Outgoing {
    member: Member,
    /// The keys that count by now.
    keys: Mutex<Keys>,
    /// The introduction with which a connection was tried last, 0 for none.
    asked: AtomicU64,
    queue: Queue,
}

impl Outgoing {
    fn new(member: Member) -> Outgoing {
        Outgoing {
            keys: Mutex::new(member.keys),
            member,
            asked: AtomicU64::new(0),
            queue: Queue::new(LIMITS),
        }
    }
}

impl Transport for Peers {
    fn send(&self, to: NodeId, frame: Vec<u8>) {
        assert!(
            frame.len() <= FRAME_BYTES_MAX,
            "a frame of {} bytes, more than {FRAME_BYTES_MAX}",
            frame.len()
        );
        let outgoing = self.outgoing.read();
        if let Some(outgoing) = outgoing.iter().find(|one| one.member.node == to) {
            // What is not taken is lost, as by the network.
            outgoing.queue.push(frame);
        }
    }

    fn flush(&self) {
        let outgoing = self.outgoing.read();
        outgoing.iter().for_each(|one| one.queue.flush());
    }

    fn members(&self, directory: &Directory) {
        self.identity
            .incarnation
            .store(directory.incarnation, Ordering::Relaxed);
        *self.directory.lock() = directory.clone();
        self.directories.fetch_add(1, Ordering::Release);
        {
            let mut acquaintance = self.acquaintance.lock();
            let is_news = |node: NodeId| directory.member(node).is_none();
            acquaintance
                .guests
                .retain(|guest| is_news(guest.node) && !directory.was_removed(guest.node));
            acquaintance.keys.retain(|(node, shown)| {
                let member = directory.member(*node);
                member.is_some_and(|member| member.keys.is_news(*shown))
            });
        }
        self.changed.notify_all();
        let mut outgoing = self.outgoing.write();
        outgoing.retain(|one| {
            let stays = !directory.was_removed(one.member.node);
            if !stays {
                // It should hear so. Nobody else has this at hand: they would read the list.
                one.queue.leave();
            }
            stays
        });
        for member in &directory.members {
            self.keep(&mut outgoing, member);
        }
    }

    fn is_connected(&self, node: NodeId) -> bool {
        let outgoing = self.outgoing.read();
        let mut found = outgoing.iter().filter(|one| one.member.node == node);
        found.any(|one| one.queue.is_connected())
    }

    fn sent_bytes(&self, node: NodeId) -> u64 {
        let outgoing = self.outgoing.read();
        let mut found = outgoing.iter().filter(|one| one.member.node == node);
        let found = found.next();
        found.map_or(0, |one| one.queue.sent_bytes())
    }

    fn has_asked_all(&self) -> bool {
        self.has_asked_all_since(1)
    }
}

/// What groups other than the first send: connections follow the members of the first alone.
pub struct Passengers {
    peers: Arc<Peers>,
    /// Who was asked before had not been shown the group's starts.
    since: u64,
}

impl Transport for Passengers {
    fn send(&self, to: NodeId, frame: Vec<u8>) {
        self.peers.send(to, frame);
    }

    fn flush(&self) {
        self.peers.flush();
    }

    fn is_connected(&self, node: NodeId) -> bool {
        self.peers.is_connected(node)
    }

    fn sent_bytes(&self, node: NodeId) -> u64 {
        self.peers.sent_bytes(node)
    }

    fn has_asked_all(&self) -> bool {
        self.peers.has_asked_all_since(self.since)
    }
}

impl Peers {
    /// The connections of a node to the other members; [`Peers::start`] makes them.
    pub fn new(
        env: Arc<dyn Env>,
        cluster: ClusterId,
        this: &Member,
        directory: Directory,
        secure: Option<Arc<dyn Secure>>,
    ) -> Peers {
        let others = directory.members.iter();
        let others = others.filter(|member| member.node != this.node);
        let outgoing = others.map(|member| Arc::new(Outgoing::new(member.clone())));
        Peers {
            identity: Arc::new(Identity {
                env,
                cluster,
                node: this.node,
                secure: secure.filter(|secure| secure.serves_nodes()),
                name: this.name.clone(),
                address: this.peer_address.clone(),
                incarnation: AtomicU64::new(directory.incarnation),
            }),
            outgoing: RwLock::new(outgoing.collect()),
            directory: Mutex::new(directory),
            directories: AtomicU64::new(0),
            acquaintance: Mutex::default(),
            changed: Event::new(),
            introductions: Arc::new(Introductions {
                count: AtomicU64::new(1),
                changed: Event::new(),
            }),
            receiver: OnceLock::new(),
        }
    }

    /// What a further group, which is about to be opened, sends with.
    pub fn passengers(self: &Arc<Self>) -> Passengers {
        Passengers {
            peers: self.clone(),
            since: self.introductions.count() + 1,
        }
    }

    /// This node has a further group: it connects anew to all others, and shows its starts in that
    /// too.
    pub fn introduce(&self) {
        self.introductions.count.fetch_add(1, Ordering::AcqRel);
        self.introductions.changed.notify_all();
    }

    fn has_asked_all_since(&self, introduction: u64) -> bool {
        let outgoing = self.outgoing.read();
        let mut all = outgoing.iter();
        all.all(|one| one.asked.load(Ordering::Acquire) >= introduction)
    }

    /// Begins to connect, and hands what comes in to `receiver`.
    pub fn start(&self, receiver: Weak<dyn Receiver>) {
        let outgoing = self.outgoing.read();
        let is_first = self.receiver.set(receiver).is_ok();
        assert!(is_first, "peers start once");
        outgoing.iter().for_each(|one| self.connect(one));
    }

    /// Sees to it that a node other than this one is connected to.
    fn keep(&self, outgoing: &mut Vec<Arc<Outgoing>>, member: &Member) {
        let mut known = outgoing.iter_mut();
        let known = known.find(|one| one.member.node == member.node);
        if member.node == self.identity.node {
            return;
        }
        if let Some(known) = known {
            // What is noted of it meanwhile counts from the next connection on.
            *known.keys.lock() = member.keys;
            return;
        }
        let one = Arc::new(Outgoing::new(member.clone()));
        self.connect(&one);
        outgoing.push(one);
    }

    /// Begins to connect to one, if peers have started.
    fn connect(&self, outgoing: &Arc<Outgoing>) {
        let Some(receiver) = self.receiver.get().cloned() else {
            return;
        };
        let (identity, outgoing) = (self.identity.clone(), outgoing.clone());
        let introductions = self.introductions.clone();
        let start: TaskStart =
            Box::new(move || Box::pin(keep_connected(identity, outgoing, introductions, receiver)));
        self.identity.env.spawn(Reactor::Group, "peer", start);
    }

    /// What this node says of itself when it connects to another.
    pub fn hello(&self, to: NodeId, purpose: Purpose) -> Hello {
        self.identity.hello(to, purpose)
    }

    /// Connects to a member for a purpose of its own; see [`greet`].
    ///
    /// # Errors
    /// As [`greet`].
    pub async fn greet(
        &self,
        member: &Member,
        hello: &Hello,
    ) -> io::Result<(Box<dyn Stream>, Vec<u8>)> {
        let secure = self.identity.secure.as_deref();
        greet(&*self.identity.env, secure, member, hello).await
    }

    /// The members that are connected now.
    pub fn connected(&self) -> Vec<NodeId> {
        let outgoing = self.outgoing.read();
        let connected = outgoing.iter().filter(|one| one.queue.is_connected());
        connected.map(|one| one.member.node).collect()
    }

    /// Checks a Hello that came in: of this cluster, for this node, from a member, or for what others
    /// may do. `shown` is what the other side's certificate says, where nodes ask for one.
    ///
    /// # Errors
    /// Why it is refused, and what it is told.
    pub fn check(
        self: &Arc<Self>,
        hello: &Hello,
        shown: Option<&NodeCertificate>,
    ) -> Result<(), Refusal> {
        let (cluster, node) = (self.identity.cluster, self.identity.node);
        if hello.cluster != cluster {
            // Its own id may be said, in the log; this node's is nobody's business.
            let theirs = hello.cluster;
            return Err(Refusal::of(format!(
                "it belongs to another cluster, {theirs}"
            )));
        }
        if hello.to != node || hello.from == node {
            let (from, to) = (hello.from, hello.to);
            return Err(Refusal::of(format!(
                "node {from} means node {to}, and this is node {node}"
            )));
        }
        let directory = self.directory.lock().clone();
        let member = directory.member(hello.from);
        if let Some(shown) = shown {
            let name = member.map_or(&hello.name, |member| &member.name);
            let keys = member.map(|member| member.keys).unwrap_or_default();
            check_certificate(name, &keys, shown).map_err(Refusal::of)?;
        }
        let (incarnation, older) = (directory.incarnation, hello.incarnation);
        if older < incarnation || directory.was_removed(hello.from) {
            return Err(Refusal {
                why: format!("node {} has no part in the group any more", hello.from),
                answer: Answer::Removed(Removed {
                    incarnation,
                    begun_after: directory.begun_after,
                }),
            });
        }
        if older > incarnation {
            // It is this node that is left behind. Whoever it knows may be gone, so it hears what
            // has become of the group from this one, which answers when it is connected to.
            if member.is_none() {
                // What it may do does not matter: it is refused.
                let _ = self.check_guest(&directory, hello, shown);
            }
            return Err(Refusal::of(format!(
                "node {} is of incarnation {older}, this one of {incarnation}",
                hello.from
            )));
        }
        match member {
            Some(member) => self.meet(member, shown),
            None => self.check_guest(&directory, hello, shown)?,
        }
        Ok(())
    }

    /// A member has shown who it is; its key is news if none is noted, or if it is its next.
    fn meet(&self, member: &Member, shown: Option<&NodeCertificate>) {
        let Some(shown) = shown.filter(|shown| member.keys.is_news(shown.key)) else {
            return;
        };
        let mut acquaintance = self.acquaintance.lock();
        let mut keys = acquaintance.keys.iter();
        if !keys.any(|(node, _)| *node == member.node) {
            acquaintance.keys.push((member.node, shown.key));
            drop(acquaintance);
            self.changed.notify_all();
        }
    }

    /// Whether a node that the directory does not know may be a new member.
    fn check_guest(
        self: &Arc<Self>,
        directory: &Directory,
        hello: &Hello,
        shown: Option<&NodeCertificate>,
    ) -> Result<(), Refusal> {
        let unknown = || Refusal::of(format!("node {} is not known as a member", hello.from));
        if !matches!(hello.purpose, Purpose::Groups(_)) {
            return Err(unknown());
        }
        let guest = match shown {
            None => Member {
                node: hello.from,
                name: hello.name.clone(),
                peer_address: hello.address.clone(),
                ..Member::default()
            },
            Some(shown) => {
                let guest = {
                    let acquaintance = self.acquaintance.lock();
                    let mut guests = acquaintance.guests.iter();
                    guests.find(|guest| guest.node == hello.from).cloned()
                };
                let Some(guest) = guest else {
                    self.inquire(directory, hello.from);
                    return Err(unknown());
                };
                check_certificate(&guest.name, &guest.keys, shown).map_err(Refusal::of)?;
                guest
            }
        };
        let mut outgoing = self.outgoing.write();
        if outgoing.len() > directory.members.len() + GUESTS_MAX {
            return Err(Refusal::of(
                "too many nodes that are no members are connected",
            ));
        }
        self.keep(&mut outgoing, &guest);
        Ok(())
    }

    /// Asks the members whether a node that connects is one of them, unless they were asked just
    /// now.
    fn inquire(self: &Arc<Self>, directory: &Directory, unknown: NodeId) {
        let now = self.identity.env.now();
        {
            let mut acquaintance = self.acquaintance.lock();
            let asked = acquaintance.asked;
            if asked.is_some_and(|asked| now < asked.after(INQUIRY_PAUSE)) {
                return;
            }
            acquaintance.asked = Some(now);
        }
        let (peers, directory) = (self.clone(), directory.clone());
        let start: TaskStart = Box::new(move || {
            Box::pin(async move {
                for member in &directory.members {
                    if member.node != peers.identity.node && peers.ask(member, unknown).await {
                        break;
                    }
                }
            })
        });
        self.identity.env.spawn(Reactor::Group, "inquire", start);
    }

    /// Asks a member; whether it vouches for the node.
    async fn ask(&self, member: &Member, unknown: NodeId) -> bool {
        let hello = self.hello(member.node, Purpose::Directory);
        let Ok((mut stream, first)) = self.greet(member, &hello).await else {
            return false;
        };
        let mut incoming = Incoming::after(first);
        let frame = incoming.frame(&mut *stream, HELLO_BYTES_MAX);
        let frame = timeout(&*self.identity.env, CONNECT_TIMEOUT, frame).await;
        let Some(Ok(Some(bytes))) = frame else {
            return false;
        };
        let Ok(theirs) = Directory::decode(bytes) else {
            return false;
        };
        let mine = self.identity.incarnation.load(Ordering::Relaxed);
        let Some(guest) = theirs
            .member(unknown)
            .filter(|_| theirs.incarnation == mine)
        else {
            return false;
        };
        let mut acquaintance = self.acquaintance.lock();
        acquaintance.guests.retain(|known| known.node != unknown);
        if acquaintance.guests.len() < GUESTS_MAX {
            acquaintance.guests.push(guest.clone());
        }
        true
    }

    /// The members as this node knows them, for another that asks.
    pub fn directory(&self) -> Directory {
        self.directory.lock().clone()
    }

    /// The keys that members have shown and that are to be noted of them, this node's own among
    /// them.
    pub fn keys_to_note(&self) -> Vec<(NodeId, KeyHash)> {
        let own = self.identity.secure.as_ref();
        let own = own.and_then(|secure| secure.own_key());
        let this = self.identity.node;
        let directory = self.directory.lock();
        let known = directory.member(this);
        let is_news = |key: &KeyHash| known.is_some_and(|this| this.keys.is_news(*key));
        let own = own.filter(is_news).map(|key| (this, key));
        let mut keys = self.acquaintance.lock().keys.clone();
        keys.extend(own);
        keys
    }

    /// How many directories there have been.
    pub fn directories(&self) -> u64 {
        self.directories.load(Ordering::Acquire)
    }

    /// How many members have shown a key that is not noted of them.
    pub fn keys_shown(&self) -> usize {
        self.acquaintance.lock().keys.len()
    }

    /// Told when the directory has changed, or a member has shown a key that is to be noted.
    pub fn changed(&self) -> &Event {
        &self.changed
    }

    /// Receives the frames of a connection that a member has made, until it ends. The member has
    /// shown its starts in the groups of `met`. It is ended once the member is removed, whether it
    /// says anything or not: if it could not be told, because it could not be reached just then, it
    /// connects anew and hears so in answer to its Hello. And it is ended when something comes for a
    /// group that this node has had only since then, so that the member shows its starts in that.
    ///
    /// # Errors
    /// Why it ended, unless the member closed it.
    pub async fn receive(
        &self,
        from: NodeId,
        met: &[GroupId],
        stream: &mut dyn Stream,
        incoming: &mut Incoming,
    ) -> io::Result<()> {
        let receiver = self.receiver.get().and_then(Weak::upgrade);
        let receiver = receiver.ok_or(io::ErrorKind::NotConnected)?;
        loop {
            let directories = self.directories.load(Ordering::Acquire);
            if self.directory.lock().was_removed(from) {
                return Ok(());
            }
            let is_news = || (self.directories() != directories).then_some(());
            let mut changed = pin!(self.changed.until(is_news));
            while self.directories() == directories {
                let frame = incoming.frame(stream, FRAME_BYTES_MAX);
                match either(frame, changed.as_mut()).await {
                    Either::First(Ok(Some(frame))) if receiver.receive(from, met, frame) => {}
                    Either::First(Err(error)) => return Err(error),
                    Either::First(_) => return Ok(()),
                    Either::Second(()) => break,
                }
            }
        }
    }
}

/// Connects to a member and says what for; the stream once it has welcomed us, with what it has
/// sent since.
///
/// # Errors
/// `ConnectionRefused` where it refuses, `InvalidData` where it shows another key than the one that is
/// noted of it, `PermissionDenied` with what it says of the group where this node was [`Removed`], or of the node where it
/// is [`Outdated`], `NotConnected` where a session
/// needs the leader and it does not lead, `TimedOut`, whatever the network gives.
pub async fn greet(
    env: &dyn Env,
    secure: Option<&dyn Secure>,
    member: &Member,
    hello: &Hello,
) -> io::Result<(Box<dyn Stream>, Vec<u8>)> {
    let greeting = async {
        let mut stream = env.net().connect(&member.peer_address).await?;
        if let Some(secure) = secure {
            let shown;
            (stream, shown) = secure.connect_node(stream, &member.name).await?;
            check_certificate(&member.name, &member.keys, &shown)
                .map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))?;
        }
        let mut out = Vec::new();
        put_framed(&mut out, &hello.encode());
        write_all(&mut *stream, &out).await?;
        let mut incoming = Incoming::default();
        let answer = match incoming.frame(&mut *stream, HELLO_BYTES_MAX).await? {
            Some(answer) => Answer::decode(answer).map_err(invalid)?,
            None => return Err(io::ErrorKind::UnexpectedEof.into()),
        };
        match answer {
            Answer::Welcome => Ok((stream, incoming.into_rest())),
            Answer::NotLeader => Err(io::ErrorKind::NotConnected.into()),
            Answer::Refused => Err(io::Error::new(
                io::ErrorKind::ConnectionRefused,
                "it refuses this node; why stands in its log",
            )),
            Answer::Removed(removed) => {
                Err(io::Error::new(io::ErrorKind::PermissionDenied, removed))
            }
            Answer::Outdated(outdated) => {
                Err(io::Error::new(io::ErrorKind::PermissionDenied, outdated))
            }
        }
    };
    match timeout(env, CONNECT_TIMEOUT, greeting).await {
        Some(result) => result,
        None => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// Whether a certificate is the member's of that name and those keys.
fn check_certificate(name: &str, keys: &Keys, shown: &NodeCertificate) -> Result<(), String> {
    if !shown.names.iter().any(|known| known == name) {
        let names = shown.names.join(", ");
        return Err(format!(
            "the certificate shown is not that of the node {name}, but for: {names}"
        ));
    }
    match keys.fit(shown.key) {
        true => Ok(()),
        false => Err(format!(
            "the certificate shown is for {name}, but with another key than that of the member"
        )),
    }
}

/// Reads the Hello of a connection that came in.
///
/// # Errors
/// `InvalidData` when it is none of ours, `TimedOut`, whatever the stream gives.
pub async fn read_hello(
    env: &dyn Env,
    stream: &mut dyn Stream,
    incoming: &mut Incoming,
) -> io::Result<Hello> {
    let frame = timeout(
        env,
        CONNECT_TIMEOUT,
        incoming.frame(stream, HELLO_BYTES_MAX),
    )
    .await;
    match frame {
        Some(Ok(Some(bytes))) => Hello::decode(bytes).map_err(invalid),
        Some(Ok(None)) => Err(io::ErrorKind::UnexpectedEof.into()),
        Some(Err(error)) => Err(error),
        None => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// Answers a Hello.
///
/// # Errors
/// Whatever the stream gives.
pub async fn answer(stream: &mut dyn Stream, answer: &Answer) -> io::Result<()> {
    let mut out = Vec::new();
    put_framed(&mut out, &answer.encode());
    write_all(stream, &out).await
}

fn invalid(error: Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.message().to_owned())
}

/// Connects to a member as [`greet`], on the reactor that shakes hands, so that Raft's does not.
async fn greet_beside(
    identity: &Arc<Identity>,
    outgoing: &Arc<Outgoing>,
    hello: Hello,
) -> io::Result<(Box<dyn Stream>, Vec<u8>)> {
    type Greeted = io::Result<(Box<dyn Stream>, Vec<u8>)>;
    let place: Arc<(Mutex<Option<Greeted>>, Event)> = Arc::default();
    let (there, done) = (identity.clone(), place.clone());
    let member = Member {
        keys: *outgoing.keys.lock(),
        ..outgoing.member.clone()
    };
    let start: TaskStart = Box::new(move || {
        Box::pin(async move {
            let secure = there.secure.as_deref();
            let mut greeted = greet(&*there.env, secure, &member, &hello).await;
            if let Ok((stream, _)) = &mut greeted {
                if let Err(error) = stream.detach() {
                    greeted = Err(error);
                }
            }
            *done.0.lock() = Some(greeted);
            done.1.notify_all();
        })
    });
    identity.env.spawn(Reactor::Handshakes, "greet", start);
    place.1.until(|| place.0.lock().take()).await
}

/// Connects to a member over and over, and sends what is queued for it.
async fn keep_connected(
    identity: Arc<Identity>,
    outgoing: Arc<Outgoing>,
    introductions: Arc<Introductions>,
    receiver: Weak<dyn Receiver>,
) {
    let env = &identity.env;
    let member = &outgoing.member;
    let mut pause = RETRY_FIRST;
    // Said once, not at every try.
    let mut last_error = String::new();
    while !outgoing.queue.is_leaving() {
        // Read before the groups are: there may be more of them than it says, and never fewer.
        let introduction = introductions.count();
        let lines = receiver.upgrade().map(|receiver| receiver.lines());
        let hello = identity.hello(member.node, Purpose::Groups(lines.unwrap_or_default()));
        let greeted = greet_beside(&identity, &outgoing, hello).await;
        if let (Err(error), Some(receiver)) = (&greeted, receiver.upgrade()) {
            take_dismissal(&*receiver, &member.name, error);
        }
        outgoing.asked.store(introduction, Ordering::Release);
        match greeted {
            Ok((mut stream, _)) => {
                env.log(Severity::Info, &format!("connected to {}", member.name));
                (pause, last_error) = (RETRY_FIRST, String::new());
                outgoing.queue.connect(stream.outlet().ok());
                let sending = send_queued(&**env, &outgoing.queue, stream);
                let error = match either(sending, introductions.after(introduction)).await {
                    Either::First(error) => error,
                    Either::Second(()) => io::Error::other("there is another group to speak of"),
                };
                outgoing.queue.disconnect();
                if let Some(receiver) = receiver.upgrade() {
                    receiver.disconnected(member.node);
                }
                let message = format!("lost the connection to {}: {error}", member.name);
                env.log(Severity::Info, &message);
            }
            Err(error) => {
                let error = error.to_string();
                if error != last_error {
                    let (name, address) = (&member.name, &member.peer_address);
                    let message = format!("could not connect to {name} at {address}: {error}");
                    env.log(Severity::Warning, &message);
                    last_error = error;
                }
            }
        }
        sleep(&**env, pause).await;
        pause = (pause * 2).min(RETRY_LAST);
    }
}

/// Whoever is told that it has no part in the group, or not with this directory, stops.
fn take_dismissal(receiver: &dyn Receiver, by: &str, error: &io::Error) {
    let Some(why) = error.get_ref() else {
        return;
    };
    if let Some(removed) = why.downcast_ref::<Removed>() {
        receiver.removed(*removed);
    }
    if let Some(outdated) = why.downcast_ref::<Outdated>() {
        receiver.outdated(by, *outdated);
    }
}

/// Sends what is left to the task until the connection breaks, and says how it did.
async fn send_queued(env: &dyn Env, queue: &Queue, mut stream: Box<dyn Stream>) -> io::Error {
    let mut out = Vec::new();
    loop {
        // The other side says nothing on this connection; what can be read is its end.
        let mut end = [0];
        let turn = queue.turn(&mut out);
        match either(turn, read(&mut *stream, &mut end)).await {
            Either::First(true) => {}
            Either::First(false) => {
                // What was written must arrive before the end does.
                sleep(env, LEAVE_PAUSE).await;
                return io::Error::other("it is no member any more");
            }
            Either::Second(Ok(_)) => return io::ErrorKind::ConnectionReset.into(),
            Either::Second(Err(error)) => return error,
        }
        match timeout(env, WRITE_TIMEOUT, write_all(&mut *stream, &out)).await {
            Some(Ok(())) => queue.end_turn(&mut out),
            Some(Err(error)) => return error,
            None => return io::ErrorKind::TimedOut.into(),
        }
    }
}

#[cfg(test)]
mod stress;
#[cfg(test)]
mod tests;
