//! The connections between the nodes of a cluster: the group's [`Transport`].
//!
//! Each node keeps one connection to every other member and sends on it; it receives on the
//! connections that the others have made to it. So each connection carries frames one way, in
//! order.
//!
//! Whoever has frames for a member writes them to its socket at once, on whatever reactor that is:
//! handing them to another thread first would cost every commit two changes of thread. Only what a
//! socket does not take at once waits for the member's task.
//!
//! # What may be lost
//! Frames for a member that is not connected are dropped, and so is what was queued when its
//! connection broke or when its queue is full: Raft repeats itself, and old frames would only delay
//! the new ones.
//!
//! # What is refused
//! A node of another cluster or version, or one that is no member, is told why, and the operator
//! reads the same in the log.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base::env::{read, sleep, write_all, Env, Outlet, Reactor, Severity, Stream, TaskStart};
use base::sync::{Event, Mutex};
use base::{Error, NodeId};
use kv::{Member, Transport};

use crate::secure::Secure;
use crate::wait::{either, timeout, Either};
use crate::wire::{
    put_framed, Answer, ClusterId, Hello, Incoming, Purpose, FRAME_BYTES_MAX, HELLO_BYTES_MAX,
};

/// Bytes that wait for one member; at it further frames are dropped.
pub const QUEUE_BYTES_MAX: usize = 64 << 20;

/// Bytes that leave in one write at most, as long as single frames are smaller.
const WRITE_BYTES: usize = 1 << 20;

/// A connection, or its Hello, that takes longer is given up.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// A write that makes no way for so long ends its connection: the other side is gone or stopped.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// The pause before a member is tried again: doubled from the first to the last of these.
const RETRY_FIRST: Duration = Duration::from_millis(20);
const RETRY_LAST: Duration = Duration::from_millis(500);

/// Takes the frames that other members send.
pub trait Receiver: Send + Sync {
    /// A frame from another member.
    fn receive(&self, from: NodeId, frame: &[u8]);
    /// The connection to a member broke; what was sent lately may be lost.
    fn disconnected(&self, node: NodeId);
}

impl Receiver for kv::Group {
    fn receive(&self, from: NodeId, frame: &[u8]) {
        kv::Group::receive(self, from, frame);
    }

    fn disconnected(&self, node: NodeId) {
        kv::Group::disconnected(self, node);
    }
}

/// One node's connections to the others.
pub struct Peers {
    env: Arc<dyn Env>,
    cluster: ClusterId,
    node: NodeId,
    /// Encrypts connections; none where nodes talk in the clear.
    secure: Option<Arc<dyn Secure>>,
    outgoing: Vec<Arc<Outgoing>>,
    receiver: OnceLock<Arc<dyn Receiver>>,
}

/// What waits for one member.
struct Outgoing {
    member: Member,
    queue: Mutex<Queue>,
    /// The member's task has something to write.
    filled: Event,
    /// For the bytes of one write; whoever has the turn to write uses it.
    buffer: Mutex<Vec<u8>>,
}

#[derive(Default)]
struct Queue {
    /// Numbers the connections; what is left of an older one is dropped.
    connection: u64,
    connected: bool,
    outlet: Option<Arc<dyn Outlet>>,
    bytes: usize,
    frames: VecDeque<Vec<u8>>,
    /// Somebody has the turn to write.
    writing: bool,
    /// What the socket did not take; the turn is then the task's.
    rest: Vec<u8>,
    dropped: u64,
}

impl Queue {
    /// Moves frames into `out`, about [`WRITE_BYTES`] of them.
    fn take(&mut self, out: &mut Vec<u8>) {
        while out.len() < WRITE_BYTES {
            let Some(frame) = self.frames.pop_front() else {
                break;
            };
            self.bytes -= frame.len();
            put_framed(out, &frame);
        }
    }
}

impl Outgoing {
    fn push(&self, frame: Vec<u8>) {
        let mut queue = self.queue.lock();
        if !queue.connected || queue.bytes + frame.len() > QUEUE_BYTES_MAX {
            queue.dropped += 1;
            return;
        }
        queue.bytes += frame.len();
        queue.frames.push_back(frame);
    }

    /// Writes what is queued, unless another has the turn, who will then write this too. What the
    /// socket does not take is left to the task.
    fn flush(&self) {
        loop {
            let mut queue = self.queue.lock();
            if queue.writing || queue.frames.is_empty() {
                return;
            }
            queue.writing = true;
            let connection = queue.connection;
            let Some(outlet) = queue.outlet.clone() else {
                drop(queue);
                return self.filled.notify_all();
            };
            let mut out = std::mem::take(&mut *self.buffer.lock());
            queue.take(&mut out);
            drop(queue);
            // An error shows again when the task writes the rest.
            let written = outlet.try_write(&out).unwrap_or(0);
            let mut queue = self.queue.lock();
            if queue.connection != connection {
                return;
            }
            if written < out.len() {
                queue.rest = out.split_off(written);
                drop(queue);
                return self.filled.notify_all();
            }
            queue.writing = false;
            out.clear();
            out.shrink_to(2 * WRITE_BYTES);
            *self.buffer.lock() = out;
        }
    }

    /// For the task, when the turn is its: moves what is to be written into `out`. The turn is
    /// given up when there is nothing.
    fn take_turn(&self, out: &mut Vec<u8>) -> bool {
        let mut queue = self.queue.lock();
        // Whoever writes without an outlet being at hand has only taken the turn for the task.
        let is_ours = queue.writing && (!queue.rest.is_empty() || queue.outlet.is_none());
        if !is_ours {
            return false;
        }
        out.append(&mut queue.rest);
        queue.take(out);
        if out.is_empty() {
            queue.writing = false;
        }
        !out.is_empty()
    }

    /// The task has written what it took.
    fn end_turn(&self) {
        self.queue.lock().writing = false;
    }

    fn set_connected(&self, outlet: Option<Arc<dyn Outlet>>, connected: bool) {
        let mut queue = self.queue.lock();
        *queue = Queue {
            connection: queue.connection + 1,
            connected,
            outlet,
            dropped: queue.dropped,
            ..Queue::default()
        };
    }
}

impl Transport for Peers {
    fn send(&self, to: NodeId, frame: Vec<u8>) {
        assert!(
            frame.len() <= FRAME_BYTES_MAX,
            "a frame of {} bytes, more than {FRAME_BYTES_MAX}",
            frame.len()
        );
        if let Some(outgoing) = self.outgoing.iter().find(|one| one.member.node == to) {
            outgoing.push(frame);
        }
    }

    fn flush(&self) {
        self.outgoing.iter().for_each(|one| one.flush());
    }
}

impl Peers {
    /// The connections of `node` to the other members; [`Peers::start`] makes them.
    pub fn new(
        env: Arc<dyn Env>,
        cluster: ClusterId,
        node: NodeId,
        members: &[Member],
        secure: Option<Arc<dyn Secure>>,
    ) -> Peers {
        let others = members.iter().filter(|member| member.node != node);
        Peers {
            env,
            cluster,
            node,
            secure: secure.filter(|secure| secure.serves_nodes()),
            outgoing: others
                .map(|member| {
                    Arc::new(Outgoing {
                        member: member.clone(),
                        queue: Mutex::default(),
                        filled: Event::new(),
                        buffer: Mutex::default(),
                    })
                })
                .collect(),
            receiver: OnceLock::new(),
        }
    }

    /// Begins to connect, and hands what comes in to `receiver`.
    pub fn start(&self, receiver: Arc<dyn Receiver>) {
        let is_first = self.receiver.set(receiver.clone()).is_ok();
        assert!(is_first, "peers start once");
        for outgoing in &self.outgoing {
            let env = self.env.clone();
            let outgoing = outgoing.clone();
            let hello = Hello {
                cluster: self.cluster,
                from: self.node,
                to: outgoing.member.node,
                purpose: Purpose::Group,
            };
            let receiver = receiver.clone();
            let secure = self.secure.clone();
            let start: TaskStart =
                Box::new(move || Box::pin(keep_connected(env, secure, outgoing, hello, receiver)));
            self.env.spawn(Reactor::Group, "peer", start);
        }
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
        greet(&*self.env, self.secure.as_deref(), member, hello).await
    }

    /// The members that are connected now.
    pub fn connected(&self) -> Vec<NodeId> {
        let connected = self
            .outgoing
            .iter()
            .filter(|one| one.queue.lock().connected);
        connected.map(|one| one.member.node).collect()
    }

    /// Checks a Hello that came in: of this cluster, for this node, from a member.
    pub fn check(&self, hello: &Hello) -> Result<(), String> {
        if hello.cluster != self.cluster {
            return Err(format!(
                "node {} belongs to cluster {}, this one to cluster {}",
                hello.from, hello.cluster, self.cluster
            ));
        }
        if hello.to != self.node {
            return Err(format!(
                "node {} is meant, this is node {}",
                hello.to, self.node
            ));
        }
        let is_member = self
            .outgoing
            .iter()
            .any(|one| one.member.node == hello.from);
        if !is_member {
            return Err(format!(
                "node {} is no other member of the cluster",
                hello.from
            ));
        }
        Ok(())
    }

    /// Receives the frames of a connection that a member has made, until it ends.
    ///
    /// # Errors
    /// Why it ended, unless the member closed it.
    pub async fn receive(
        &self,
        from: NodeId,
        stream: &mut dyn Stream,
        incoming: &mut Incoming,
    ) -> io::Result<()> {
        let receiver = self.receiver.get().ok_or(io::ErrorKind::NotConnected)?;
        while let Some(frame) = incoming.frame(stream, FRAME_BYTES_MAX).await? {
            receiver.receive(from, frame);
        }
        Ok(())
    }
}

/// Connects to a member and says what for; the stream once it has welcomed us, with what it has
/// sent since.
///
/// # Errors
/// `ConnectionRefused` with the member's own words where it refuses, `NotConnected` where a session
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
    env: Arc<dyn Env>,
    secure: Option<Arc<dyn Secure>>,
    outgoing: Arc<Outgoing>,
    hello: Hello,
    receiver: Arc<dyn Receiver>,
) {
    let member = &outgoing.member;
    let mut pause = RETRY_FIRST;
    // Said once, not at every try.
    let mut last_error = String::new();
    loop {
        match greet(&*env, secure.as_deref(), member, &hello).await {
            Ok((mut stream, _)) => {
                env.log(Severity::Info, &format!("connected to {}", member.name));
                (pause, last_error) = (RETRY_FIRST, String::new());
                outgoing.set_connected(stream.outlet().ok(), true);
                let error = send_queued(&*env, &outgoing, stream).await;
                outgoing.set_connected(None, false);
                receiver.disconnected(member.node);
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
        sleep(&*env, pause).await;
        pause = (pause * 2).min(RETRY_LAST);
    }
}

/// Sends what is left to the task until the connection breaks, and says how it did.
async fn send_queued(env: &dyn Env, outgoing: &Outgoing, mut stream: Box<dyn Stream>) -> io::Error {
    let mut out = Vec::new();
    loop {
        let filled = outgoing
            .filled
            .until(|| outgoing.take_turn(&mut out).then_some(()));
        // The other side says nothing on this connection; what can be read is its end.
        let mut end = [0];
        match either(filled, read(&mut *stream, &mut end)).await {
            Either::First(()) => {}
            Either::Second(Ok(_)) => return io::ErrorKind::ConnectionReset.into(),
            Either::Second(Err(error)) => return error,
        }
        match timeout(env, WRITE_TIMEOUT, write_all(&mut *stream, &out)).await {
            Some(Ok(())) => {}
            Some(Err(error)) => return error,
            None => return io::ErrorKind::TimedOut.into(),
        }
        out.clear();
        out.shrink_to(2 * WRITE_BYTES);
        outgoing.end_turn();
        // What came meanwhile found the turn taken.
        outgoing.flush();
    }
}

#[cfg(test)]
mod tests;
