//! Two nodes' connections over real sockets.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use base::env::{Listener, Outlet, Reactor};
use base::sync::Event;

use super::*;
use crate::real::{RealEnv, RealOptions};

/// What one node has been handed.
#[derive(Default)]
pub(super) struct Received {
    pub(super) frames: Mutex<Vec<(NodeId, Vec<u8>)>>,
    was_removed: AtomicBool,
    changed: Event,
    /// How many groups it has.
    groups: AtomicU64,
    /// Frames are taken only from who has shown its starts in this group.
    wants: Mutex<Option<GroupId>>,
}

impl Receiver for Received {
    fn receive(&self, from: NodeId, met: &[GroupId], frame: &[u8]) -> bool {
        let lacks = self.wants.lock().is_some_and(|group| !met.contains(&group));
        if !lacks {
            self.frames.lock().push((from, frame.to_vec()));
            self.changed.notify_all();
        }
        !lacks
    }

    fn disconnected(&self, _node: NodeId) {
        self.changed.notify_all();
    }

    fn removed(&self, _removed: Removed) {
        self.was_removed.store(true, Ordering::Relaxed);
    }

    fn lines(&self) -> Lines {
        let groups = 1..=self.groups.load(Ordering::Relaxed).max(1);
        groups
            .map(|group| (GroupId(group as u32), Default::default()))
            .collect()
    }

    fn outdated(&self, _by: &str, _outdated: Outdated) {}
}

pub(super) struct TestNode {
    pub(super) env: Arc<RealEnv>,
    pub(super) peers: Arc<Peers>,
    pub(super) received: Arc<Received>,
    _dir: tempfile::TempDir,
}

pub(super) fn members() -> Vec<Member> {
    (1..=2)
        .map(|id| Member {
            node: NodeId(id),
            name: format!("n{id}").into(),
            peer_address: free_address().to_string().into(),
            sql_address: "".into(),
            voter: true,
            ..Member::default()
        })
        .collect()
}

pub(super) fn free_address() -> SocketAddr {
    let listener = crate::real::host::listen_anywhere().unwrap();
    listener.local_addr().unwrap()
}

/// Answers Hellos as a node does, and receives frames.
async fn accept(peers: Arc<Peers>, mut listener: Box<dyn Listener>) {
    loop {
        let accepted = std::future::poll_fn(|cx| listener.poll_accept(cx)).await;
        let (mut stream, _) = accepted.unwrap();
        let mut incoming = Incoming::default();
        let env = peers.identity.env.clone();
        let hello = read_hello(&*env, &mut *stream, &mut incoming)
            .await
            .unwrap();
        let checked = peers.check(&hello, None);
        let said = checked.clone().map_err(|refusal| refusal.answer);
        let said = said.err().unwrap_or(Answer::Welcome);
        answer(&mut *stream, &said).await.unwrap();
        if let (Ok(()), Purpose::Directory) = (&checked, &hello.purpose) {
            let mut out = Vec::new();
            put_framed(&mut out, &peers.directory().encode());
            write_all(&mut *stream, &out).await.unwrap();
        } else if checked.is_ok() {
            let peers = peers.clone();
            let start: TaskStart = Box::new(move || {
                Box::pin(async move {
                    let met = match hello.purpose {
                        Purpose::Groups(lines) => lines.into_iter().map(|line| line.0).collect(),
                        _ => Vec::new(),
                    };
                    let received = peers.receive(hello.from, &met, &mut *stream, &mut incoming);
                    let _ = received.await;
                })
            });
            env.spawn(Reactor::Group, "receive", start);
        }
    }
}

pub(super) fn node(id: u64, cluster: u128, members: &[Member]) -> TestNode {
    let directory = Directory::founded(members, 1);
    node_with(&members[id as usize - 1], cluster, directory)
}

/// A node that knows this directory.
fn node_with(this: &Member, cluster: u128, directory: Directory) -> TestNode {
    let dir = tempfile::tempdir().unwrap();
    let env = RealEnv::start(&RealOptions {
        name: this.name.to_string(),
        data_dir: dir.path().to_owned(),
        session_reactors: 1,
        spin: Duration::ZERO,
        routes: Vec::new(),
        reaches_beyond: false,
    })
    .unwrap();
    let listener = env.net().listen(&this.peer_address).unwrap();
    let peers = Peers::new(env.clone(), ClusterId(cluster), this, directory, None);
    let (peers, received) = (Arc::new(peers), Arc::new(Received::default()));
    let accepting = peers.clone();
    let start: TaskStart = Box::new(move || Box::pin(accept(accepting, listener)));
    env.spawn(Reactor::Group, "accept", start);
    let receiver: Arc<dyn Receiver> = received.clone();
    peers.start(Arc::downgrade(&receiver));
    TestNode {
        env,
        peers,
        received,
        _dir: dir,
    }
}

/// Blocks until a condition holds, for ten seconds at most.
pub(super) fn wait_until(node: &TestNode, what: &str, mut done: impl FnMut() -> bool) {
    let deadline = node.env.now().after(Duration::from_secs(10));
    while !done() {
        assert!(node.env.now() < deadline, "waited too long for {what}");
        crate::real::host::sleep(Duration::from_millis(2));
    }
}

#[test]
fn frames_arrive_in_order() {
    let members = members();
    let (first, second) = (node(1, 7, &members), node(2, 7, &members));
    wait_until(&first, "a connection", || {
        first.peers.connected() == [NodeId(2)] && second.peers.connected() == [NodeId(1)]
    });
    let frames: Vec<Vec<u8>> = (0..100_usize).map(|i| vec![i as u8; i * 1_000]).collect();
    for frame in &frames {
        first.peers.send(NodeId(2), frame.clone());
        // To nobody: dropped.
        first.peers.send(NodeId(9), frame.clone());
        // More than the socket takes at once: the rest is the task's.
        first.peers.flush();
    }
    wait_until(&first, "all frames", || {
        second.received.frames.lock().len() == frames.len()
    });
    let received = second.received.frames.lock();
    let payload: u64 = frames.iter().map(|frame| frame.len() as u64).sum();
    let expected: Vec<_> = frames.into_iter().map(|frame| (NodeId(1), frame)).collect();
    assert!(*received == expected);
    // The frames, a few bytes around each, and nothing for those that went nowhere.
    wait_until(&first, "the last write to be counted", || {
        first.peers.sent_bytes(NodeId(2)) >= payload
    });
    let around = first.peers.sent_bytes(NodeId(2)) - payload;
    assert!(
        (100..=1_000).contains(&around),
        "{around} bytes around 100 frames"
    );
    assert_eq!(first.peers.sent_bytes(NodeId(9)), 0);
}

#[test]
fn a_further_group_is_introduced_to_all() {
    let members = members();
    let (first, second) = (node(1, 7, &members), node(2, 7, &members));
    wait_until(&first, "a connection", || {
        first.peers.connected() == [NodeId(2)]
    });
    *second.received.wants.lock() = Some(GroupId(2));
    let send = |byte| {
        first.peers.send(NodeId(2), vec![byte]);
        first.peers.flush();
    };
    send(1);
    let passengers = first.peers.passengers();
    assert!(first.peers.has_asked_all() && !passengers.has_asked_all());
    first.received.groups.store(2, Ordering::Relaxed);
    first.peers.introduce();
    wait_until(&first, "an introduction", || {
        passengers.has_asked_all() && passengers.is_connected(NodeId(2))
    });
    wait_until(&first, "a frame of one that has shown its starts", || {
        send(2);
        !second.received.frames.lock().is_empty()
    });
    let frames = second.received.frames.lock();
    assert!(frames.iter().all(|(_, frame)| *frame == [2]));
}

#[test]
fn another_cluster_is_refused() {
    let members = members();
    let (first, second) = (node(1, 7, &members), node(2, 8, &members));
    let hello = Hello {
        cluster: ClusterId(7),
        from: NodeId(1),
        to: NodeId(2),
        incarnation: 1,
        name: "n1".into(),
        address: members[0].peer_address.clone(),
        purpose: Purpose::Groups(Lines::default()),
    };
    let (env, member) = (first.env.clone(), members[1].clone());
    let greeted = first
        .env
        .block_on("greet", || async move {
            greet(&*env, None, &member, &hello).await.map(drop)
        })
        .unwrap();
    let error = greeted.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    let cluster = |id| ClusterId(id).to_string();
    let said = error.to_string();
    assert!(
        ![cluster(7), cluster(8)].iter().any(|id| said.contains(id)),
        "it is told of which cluster the other is: {said}"
    );
    assert!(first.peers.connected().is_empty());
    assert!(second.peers.connected().is_empty());
}

#[test]
fn only_the_right_nodes_are_welcome() {
    let members = members();
    let dir = tempfile::tempdir().unwrap();
    let env = RealEnv::start(&RealOptions {
        name: "n1".to_owned(),
        data_dir: dir.path().to_owned(),
        session_reactors: 1,
        spin: Duration::ZERO,
        routes: Vec::new(),
        reaches_beyond: false,
    })
    .unwrap();
    let mut directory = Directory::founded(&members, 2);
    let peers = Peers::new(env, ClusterId(7), &members[0], directory.clone(), None);
    let peers = Arc::new(peers);
    let check = |hello: &Hello| peers.check(hello, None).map_err(|refusal| refusal.answer);
    let hello = |from, to, incarnation| Hello {
        cluster: ClusterId(7),
        from: NodeId(from),
        to: NodeId(to),
        incarnation,
        name: "n".into(),
        address: members[1].peer_address.clone(),
        purpose: Purpose::Groups(Lines::default()),
    };
    assert_eq!(check(&hello(2, 1, 2)), Ok(()));
    assert_eq!(check(&hello(3, 1, 2)), Ok(()), "it may be a new one");
    for wrong in [hello(1, 1, 2), hello(2, 2, 2), hello(2, 1, 3)] {
        let answer = check(&wrong).unwrap_err();
        assert!(matches!(answer, Answer::Refused), "{wrong:?}");
    }
    let removed = Removed {
        incarnation: 2,
        begun_after: base::Lsn::ZERO,
    };
    // Whoever is not known may do no more than ask to join.
    for purpose in [
        Purpose::Reload,
        Purpose::Branches,
        Purpose::Directory,
        Purpose::Cancel { pid: 1, secret: 1 },
        Purpose::Administer(base::cluster::Administration::PromoteAlone),
    ] {
        let wish = Hello {
            purpose,
            ..hello(3, 1, 2)
        };
        assert_eq!(check(&wish), Err(Answer::Refused), "{wish:?}");
        assert_eq!(
            check(&Hello {
                from: NodeId(2),
                ..wish
            }),
            Ok(())
        );
    }
    let older = check(&hello(2, 1, 1));
    assert_eq!(older, Err(Answer::Removed(removed)));

    directory.members.truncate(1);
    peers.members(&directory);
    let gone = check(&hello(2, 1, 2));
    assert_eq!(gone, Err(Answer::Removed(removed)));
    assert_eq!(check(&hello(3, 1, 2)), Ok(()));
}

#[test]
fn a_node_that_is_left_behind_hears_it_from_one_that_it_does_not_know() {
    let members = members();
    // Without the second it goes nowhere by itself.
    let first = node(1, 7, &members[..1]);
    let newer = Directory::founded(&members, 2);
    let second = node_with(&members[1], 7, newer);
    wait_until(&first, "the answer that it has no part any more", || {
        first.received.was_removed.load(Ordering::Relaxed)
    });
    assert!(!second.received.was_removed.load(Ordering::Relaxed));
}

#[test]
fn connections_come_and_go_with_the_members() {
    let members = members();
    let first = node(1, 7, &members[..1]);
    let second = node(2, 7, &members);
    // The first does not know the second yet, and answers it all the same.
    wait_until(&first, "a guest", || {
        first.peers.connected() == [NodeId(2)] && second.peers.connected() == [NodeId(1)]
    });
    let mut directory = Directory::founded(&members, 1);
    first.peers.members(&directory);
    second.peers.send(NodeId(1), vec![0]);
    second.peers.flush();
    wait_until(&first, "a frame of a member", || {
        !first.received.frames.lock().is_empty()
    });
    directory.members.truncate(1);
    first.peers.members(&directory);
    assert!(first.peers.connected().is_empty());
    // Its own connection ends, though it says nothing, and is made anew; then it is told.
    wait_until(&second, "the word that it was removed", || {
        second.received.was_removed.load(Ordering::Relaxed)
    });
    assert_eq!(first.received.frames.lock().len(), 1);
    // So is one that connects for the first time.
    let asks = node(2, 7, &[members[0].clone(), moved(&members[1])]);
    wait_until(&asks, "the answer that it was removed", || {
        asks.received.was_removed.load(Ordering::Relaxed)
    });
}

#[test]
fn a_certificate_is_of_a_member_by_name_and_key() {
    let mut members = members();
    let key = |byte| KeyHash([byte; kv::KEY_HASH_BYTES]);
    members[1].keys.note(key(2));
    let first = node(1, 7, &members);
    let hello = |from: u64, name: &str| Hello {
        cluster: ClusterId(7),
        from: NodeId(from),
        to: NodeId(1),
        incarnation: 1,
        name: name.into(),
        address: members[1].peer_address.clone(),
        purpose: Purpose::Groups(Lines::default()),
    };
    let shown = |name: &str, byte| NodeCertificate {
        names: vec![name.to_owned()],
        key: key(byte),
    };
    let check = |hello: &Hello, shown: NodeCertificate| {
        let checked = first.peers.check(hello, Some(&shown));
        checked.map_err(|refusal| (refusal.answer, refusal.why))
    };
    assert_eq!(check(&hello(2, "n2"), shown("n2", 2)), Ok(()));
    for (hello, shown, why) in [
        (hello(2, "n2"), shown("n2", 3), "another key"),
        (hello(2, "n3"), shown("n3", 2), "not that of the node n2"),
        (hello(3, "n3"), shown("n3", 3), "not known as a member"),
    ] {
        let (answer, said) = check(&hello, shown).unwrap_err();
        assert_eq!(answer, Answer::Refused);
        assert!(said.contains(why), "{said}");
    }
    assert_eq!(first.peers.keys_to_note(), []);
    // Of whom none is noted, the first key is to be.
    let mut directory = Directory::founded(&members, 1);
    directory.members[1].keys = Keys::default();
    first.peers.members(&directory);
    assert_eq!(check(&hello(2, "n2"), shown("n2", 9)), Ok(()));
    assert_eq!(first.peers.keys_to_note(), [(NodeId(2), key(9))]);
    // While it is given another key both count, and what it shows of the next is news.
    directory.members[1].keys.note(key(9));
    directory.members[1].keys.expect(key(8));
    first.peers.members(&directory);
    assert_eq!(check(&hello(2, "n2"), shown("n2", 9)), Ok(()));
    assert_eq!(first.peers.keys_to_note(), []);
    assert_eq!(check(&hello(2, "n2"), shown("n2", 8)), Ok(()));
    assert_eq!(first.peers.keys_to_note(), [(NodeId(2), key(8))]);
    directory.members[1].keys.note(key(8));
    first.peers.members(&directory);
    assert!(check(&hello(2, "n2"), shown("n2", 9)).is_err());
    // One that was removed is told so only with a certificate for the name that it gives.
    directory.members.truncate(1);
    first.peers.members(&directory);
    assert_eq!(first.peers.keys_to_note(), []);
    let (answer, _) = check(&hello(2, "n2"), shown("n2", 2)).unwrap_err();
    assert!(matches!(answer, Answer::Removed(_)), "{answer:?}");
    let (answer, _) = check(&hello(2, "n2"), shown("n8", 8)).unwrap_err();
    assert_eq!(answer, Answer::Refused);
}

#[test]
fn a_member_vouches_for_one_that_another_does_not_know_yet() {
    let members = members();
    let (first, second) = (node(1, 7, &members), node(2, 7, &members));
    let third = Member {
        node: NodeId(3),
        name: "n3".into(),
        peer_address: "127.0.0.1:1".into(),
        keys: Keys {
            noted: Some(KeyHash([3; kv::KEY_HASH_BYTES])),
            next: None,
        },
        ..Member::default()
    };
    let hello = Hello {
        cluster: ClusterId(7),
        from: NodeId(3),
        to: NodeId(1),
        incarnation: 1,
        name: "n3".into(),
        address: third.peer_address.clone(),
        purpose: Purpose::Groups(Lines::default()),
    };
    let shown = |byte| NodeCertificate {
        names: vec!["n3".to_owned()],
        key: KeyHash([byte; kv::KEY_HASH_BYTES]),
    };
    let mut directory = Directory::founded(&members, 1);
    directory.next_node = 4;
    directory.members.push(third);
    second.peers.members(&directory);
    wait_until(&first, "the second to vouch for it", || {
        first.peers.check(&hello, Some(&shown(3))).is_ok()
    });
    let other = first.peers.check(&hello, Some(&shown(4)));
    assert!(other.is_err(), "another key than it was vouched for");
}

fn moved(member: &Member) -> Member {
    Member {
        peer_address: free_address().to_string().into(),
        ..member.clone()
    }
}

#[test]
fn a_full_queue_drops_frames() {
    let most = LIMITS.queued_bytes;
    let queue = Queue::new(LIMITS);
    let mut out = Vec::new();
    assert!(!queue.push(vec![1]), "it is not connected");
    queue.flush();
    assert!(!queue.take_turn(&mut out));
    queue.connect(None);
    assert!(queue.push(vec![2; most - 1]));
    assert!(!queue.push(vec![3; 2]));
    assert!(queue.push(vec![4; 1]));
    assert!(!queue.push(vec![5; 1]));
    assert_eq!(queue.queued_bytes(), most);
    queue.flush();
    assert!(queue.take_turn(&mut out));
    assert_eq!(out.len(), 4 + most - 1);
    queue.end_turn(&mut out);
    // What came meanwhile is the task's too, because there is no outlet.
    assert!(queue.take_turn(&mut out));
    assert_eq!(out, [0, 0, 0, 1, 4]);
    queue.end_turn(&mut out);
    assert!(!queue.take_turn(&mut out));
    assert_eq!(queue.sent_bytes(), 4 + most as u64 - 1 + 5);
}

/// A socket that takes so many bytes, then no more.
struct Narrow(Mutex<(usize, Vec<u8>)>);

impl Outlet for Narrow {
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let (room, taken) = &mut *self.0.lock();
        if *room == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let count = bytes.len().min(*room);
        *room -= count;
        taken.extend_from_slice(&bytes[..count]);
        Ok(count)
    }
}

#[test]
fn what_a_socket_does_not_take_is_left_to_the_task() {
    let queue = Queue::new(LIMITS);
    let narrow = Arc::new(Narrow(Mutex::new((8, Vec::new()))));
    queue.connect(Some(narrow.clone()));
    queue.push(vec![1]);
    queue.flush();
    let mut out = Vec::new();
    assert!(!queue.take_turn(&mut out), "the socket has taken all");
    queue.push(vec![2]);
    queue.flush();
    // The turn is the task's now, and nobody else writes in between.
    queue.push(vec![3]);
    queue.flush();
    assert_eq!(narrow.0.lock().1, [0, 0, 0, 1, 1, 0, 0, 0]);
    assert!(queue.take_turn(&mut out));
    assert_eq!(out, [1, 2, 0, 0, 0, 1, 3]);
    queue.end_turn(&mut out);
    narrow.0.lock().0 = 5;
    queue.push(vec![4]);
    queue.flush();
    assert_eq!(narrow.0.lock().1[8..], [0, 0, 0, 1, 4]);
}
