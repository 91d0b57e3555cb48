//! Bytes from peers: whatever they are, they are decoded or refused, and a replica that takes what
//! was decoded goes on.

use std::time::Duration;

use base::env::Instant;
use base::NodeId;
use raft::{Entry, EntryKind, HardState, Membership, Message};

use crate::cluster::{Cluster, MILLISECOND};

/// Messages made up.
const TRIES: usize = 60_000;

/// Messages as they really occur.
fn samples() -> Vec<Vec<u8>> {
    let mut cluster = Cluster::new(&[1, 2, 3], &[4], 5);
    cluster.record = Some(Vec::new());
    cluster.run(900 * MILLISECOND);
    for round in 0..4 {
        let leader = cluster.leader().expect("a leader");
        let down = NodeId(leader.0 % 3 + 1);
        cluster.crash(down);
        cluster.propose(leader, &[7; 40]).unwrap();
        cluster.run(60 * MILLISECOND);
        cluster.compact(leader);
        cluster.start(down);
        cluster.run(400 * MILLISECOND);
        let target = NodeId((leader.0 + round) % 3 + 1);
        if cluster.up(leader).transfer_leadership(target).is_ok() {
            cluster.drain(leader);
        }
        cluster.run(900 * MILLISECOND);
    }
    cluster.record.take().unwrap_or_default()
}

#[test]
fn decoding_is_total_and_what_it_gives_can_be_taken() {
    let samples = samples();
    let mut cluster = Cluster::new(&[1, 2, 3], &[4], 9);
    cluster.run(900 * MILLISECOND);
    let (mut decoded, mut taken) = (0, 0);
    for index in 0..TRIES {
        let mut bytes = samples[cluster.random() as usize % samples.len()].clone();
        for _ in 0..cluster.random() % 5 {
            let at = cluster.random() as usize % bytes.len();
            match cluster.random() % 4 {
                0 => bytes[at] = cluster.random() as u8,
                1 => bytes[at] = bytes[at].wrapping_add(1),
                2 => bytes.insert(at, cluster.random() as u8),
                _ => bytes.truncate(at.max(1)),
            }
        }
        if index % 3 == 0 {
            bytes = (0..cluster.random() % 40)
                .map(|_| cluster.random() as u8)
                .collect();
        }
        let Ok(message) = Message::decode(&bytes) else {
            continue;
        };
        decoded += 1;
        assert_eq!(Message::decode(&message.encode()).unwrap(), message);
        // A replica that was lied to may refuse to go on, but it does not fall over. Here it is
        // thrown away after each lie, because lies of one's own group have no bounds.
        let node = NodeId(cluster.random() % 4 + 1);
        let from = NodeId(cluster.random() % 4 + 1);
        cluster.crash(node);
        cluster.start(node);
        let now = Instant(cluster.replicas[&node].now(cluster.time).0 + 400 * MILLISECOND);
        if cluster.up(node).step(from, message, now).is_ok() {
            taken += 1;
            while let Ok(Some(ready)) = cluster.up(node).ready() {
                cluster.obey_in_memory(node, ready);
            }
        }
    }
    assert!(decoded > TRIES / 10 && taken > 0, "{decoded} decoded");
}

#[test]
fn hard_states_and_memberships_come_back() {
    let state = HardState {
        term: base::Term(7),
        vote: Some(NodeId(3)),
        commit: base::Lsn(12),
        promise: Duration::from_millis(300),
    };
    assert_eq!(HardState::decode(&state.encode()).unwrap(), state);
    assert_eq!(HardState::decode(&[]).unwrap(), HardState::default());
    assert!(HardState::decode(&[1]).is_err());
    let without_promise = HardState {
        promise: Duration::ZERO,
        ..state
    };
    assert_eq!(HardState::decode(&[7, 3, 12]).unwrap(), without_promise);
    let membership = Membership {
        voters: vec![NodeId(1), NodeId(2)],
        learners: vec![NodeId(5)],
        outgoing: vec![NodeId(1), NodeId(3)],
        learners_next: vec![NodeId(3)],
        auto_leave: true,
        context: vec![7, 8],
    };
    let mut bytes = Vec::new();
    membership.encode(&mut bytes);
    let mut reader = base::codec::Reader::new(&bytes);
    assert_eq!(Membership::decode(&mut reader).unwrap(), membership);
    let twice = Membership {
        learners: vec![NodeId(1)],
        ..membership
    };
    assert!(twice.validate().is_err());
    for kind in [
        EntryKind::Empty,
        EntryKind::Normal,
        EntryKind::ConfChange,
        EntryKind::ChainBegins,
    ] {
        assert_eq!(EntryKind::from_code(kind.code()).unwrap(), kind);
    }
    let entry = Entry {
        term: base::Term(1),
        lsn: base::Lsn(2),
        kind: EntryKind::Normal,
        data: vec![1],
    };
    assert_eq!(entry.position().lsn, base::Lsn(2));
}
