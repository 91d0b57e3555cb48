//! The connections between the nodes of a cluster: the group's [`Transport`].
//!
//! Each node keeps one connection to every other member and sends on it; it receives on the
//! connections that the others have made to it. So each connection carries frames one way, in
//! order.
//!
//! Whoever has frames for a member writes them to its socket at once, on whatever reactor that is:
//! handing them to another thread first would cost every commit two changes of thread. Only what a
//! socket does not take at once waits for the member's task (`peers/queue.rs`).
//!
//! # What may be lost
//! Frames for a member that is not connected are dropped, and so is what was queued when its
//! connection broke or when its queue is full: Raft repeats itself, and old frames would only delay
//! the new ones.
//!
//! # Who is connected
//! The members of the group, as its directory has them: connections come and go with it. A node
//! that the directory does not know *yet* is let in too, because a replica that was away may have
//! missed that it was added: such a guest is sent to at the address that it says it has.
//!
//! # What is refused
//! A node of another cluster or version is told why, and the operator reads the same in the log. A
//! node that was removed, or is of an older incarnation of the group, is told that, and stops.

mod queue;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use base::env::{read, sleep, write_all, Env, Reactor, Severity, Stream, TaskStart};
use base::sync::{self, Mutex, RwLock};
use base::{Error, NodeId};
use kv::{Directory, Member, Transport};

use self::queue::{Limits, Queue};
use crate::secure::Secure;
use crate::wait::{either, timeout, Either};
use crate::wire::{
    put_framed, Answer, ClusterId, Hello, Incoming, Purpose, Removed, FRAME_BYTES_MAX,
    HELLO_BYTES_MAX,
};

/// What waits for one member, and leaves at a time.
const LIMITS: Limits = Limits {
    queued_bytes: 64 << 20,
    write_bytes: 1 << 20,
};

/// Nodes that the directory does not know yet and that are connected all the same.
const GUESTS_MAX: usize = 16;

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
    /// A frame from another member.
    fn receive(&self, from: NodeId, frame: &[u8]);
    /// The connection to a member broke; what was sent lately may be lost.
    fn disconnected(&self, node: NodeId);
    /// A member says that this node has no part in the group any more.
    fn removed(&self, removed: Removed);
}

impl Receiver for kv::Group {
    fn receive(&self, from: NodeId, frame: &[u8]) {
        kv::Group::receive(self, from, frame);
    }

    fn disconnected(&self, node: NodeId) {
        kv::Group::disconnected(self, node);
    }

    fn removed(&self, removed: Removed) {
        self.note_removed(removed.incarnation, removed.begun_after);
    }
}

/// One node's connections to the others.
pub struct Peers {
    identity: Arc<Identity>,
    directory: Mutex<Directory>,
    /// How many directories there have been: whoever has looked need not look again until it grows.
    directories: AtomicU64,
    outgoing: RwLock<Vec<Arc<Outgoing>>>,
    /// Who takes frames; it holds this in turn, so it is not kept alive from here.
    receiver: OnceLock<Weak<dyn Receiver>>,
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
    /// A connection was tried at least once.
    asked: AtomicBool,
    queue: Queue,
}

impl Outgoing {
    fn new(member: Member) -> Outgoing {
        Outgoing {
            member,
            asked: AtomicBool::new(false),
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
        let outgoing = self.outgoing.read();
        outgoing.iter().all(|one| one.asked.load(Ordering::Relaxed))
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
            receiver: OnceLock::new(),
        }
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
        let known = outgoing.iter().any(|one| one.member.node == member.node);
        if known || member.node == self.identity.node {
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
        let start: TaskStart =
            Box::new(move || Box::pin(keep_connected(identity, outgoing, receiver)));
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

    /// Checks a Hello that came in: of this cluster, for this node, from one that may be a member.
    ///
    /// # Errors
    /// What it is answered otherwise.
    pub fn check(&self, hello: &Hello) -> Result<(), Answer> {
        let (cluster, node) = (self.identity.cluster, self.identity.node);
        let refused = |why: String| Err(Answer::Refused(why));
        if hello.cluster != cluster {
            return refused(format!(
                "node {} belongs to cluster {}, this one to cluster {cluster}",
                hello.from, hello.cluster
            ));
        }
        if hello.to != node || hello.from == node {
            return refused(format!("node {} is meant, this is node {node}", hello.to));
        }
        {
            let directory = self.directory.lock();
            let incarnation = directory.incarnation;
            if hello.incarnation < incarnation || directory.was_removed(hello.from) {
                return Err(Answer::Removed(Removed {
                    incarnation,
                    begun_after: directory.begun_after,
                }));
            }
            if hello.incarnation > incarnation {
                return refused(format!(
                    "node {} is of incarnation {}, this one of {incarnation}",
                    hello.from, hello.incarnation
                ));
            }
        }
        if matches!(hello.purpose, Purpose::Group) {
            let guest = Member {
                node: hello.from,
                name: hello.name.clone(),
                peer_address: hello.address.clone(),
                ..Member::default()
            };
            let mut outgoing = self.outgoing.write();
            let members = self.directory.lock().members.len();
            if outgoing.len() > members + GUESTS_MAX {
                return refused("too many nodes that are no members are connected".to_owned());
            }
            self.keep(&mut outgoing, &guest);
        }
        Ok(())
    }

    /// Receives the frames of a connection that a member has made, until it ends. It is ended when
    /// something comes from one that was removed meanwhile: whoever could not be told, because it
    /// could not be reached just then, connects anew and hears so in answer to its Hello.
    ///
    /// # Errors
    /// Why it ended, unless the member closed it.
    pub async fn receive(
        &self,
        from: NodeId,
        stream: &mut dyn Stream,
        incoming: &mut Incoming,
    ) -> io::Result<()> {
        let receiver = self.receiver.get().and_then(Weak::upgrade);
        let receiver = receiver.ok_or(io::ErrorKind::NotConnected)?;
        let mut looked_at = None;
        while let Some(frame) = incoming.frame(stream, FRAME_BYTES_MAX).await? {
            let newest = Some(self.directories.load(Ordering::Acquire));
            if looked_at != newest && self.directory.lock().was_removed(from) {
                break;
            }
            looked_at = newest;
            receiver.receive(from, frame);
        }
        Ok(())
    }
}

/// Connects to a member and says what for; the stream once it has welcomed us, with what it has
/// sent since.
///
/// # Errors
/// `ConnectionRefused` with the member's own words where it refuses, `PermissionDenied` with what
/// it says of the group where this node was [`Removed`], `NotConnected` where a session
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
            (stream, ()) = secure.connect_node(stream, &member.name).await?;
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
            Answer::Refused(why) => Err(io::Error::new(io::ErrorKind::ConnectionRefused, why)),
            Answer::Removed(removed) => {
                Err(io::Error::new(io::ErrorKind::PermissionDenied, removed))
            }
        }
    };
    match timeout(env, CONNECT_TIMEOUT, greeting).await {
        Some(result) => result,
        None => Err(io::ErrorKind::TimedOut.into()),
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

/// Connects to a member over and over, and sends what is queued for it.
async fn keep_connected(
    identity: Arc<Identity>,
    outgoing: Arc<Outgoing>,
    receiver: Weak<dyn Receiver>,
) {
    let env = &identity.env;
    let member = &outgoing.member;
    let mut pause = RETRY_FIRST;
    // Said once, not at every try.
    let mut last_error = String::new();
    while !outgoing.queue.is_leaving() {
        let hello = identity.hello(member.node, Purpose::Group);
        let greeted = greet(&**env, identity.secure.as_deref(), member, &hello).await;
        outgoing.asked.store(true, Ordering::Relaxed);
        match greeted {
            Ok((mut stream, _)) => {
                env.log(Severity::Info, &format!("connected to {}", member.name));
                (pause, last_error) = (RETRY_FIRST, String::new());
                outgoing.queue.connect(stream.outlet().ok());
                let error = send_queued(&**env, &outgoing.queue, stream).await;
                outgoing.queue.disconnect();
                if let Some(receiver) = receiver.upgrade() {
                    receiver.disconnected(member.node);
                }
                let message = format!("lost the connection to {}: {error}", member.name);
                env.log(Severity::Info, &message);
            }
            Err(error) => {
                let removed = error
                    .get_ref()
                    .and_then(|why| why.downcast_ref::<Removed>());
                if let (Some(removed), Some(receiver)) = (removed, receiver.upgrade()) {
                    receiver.removed(*removed);
                }
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
