//! A replica that lacks much of the log, and what that costs the others.

use base::NodeId;

use crate::cluster::{Cluster, MILLISECOND};

/// An entry's bytes, and how many of them are missed.
const ENTRY_BYTES: usize = 160 << 10;
const MISSED: u64 = 50;

/// No message has more: the leader reads and sends it at one time, and does nothing else meanwhile.
const MESSAGE_BYTES_MAX: usize = 5 << 20;

#[test]
fn it_is_sent_a_little_at_a_time() {
    let (leader, late) = (NodeId(1), NodeId(3));
    let mut cluster = Cluster::new(&[1, 2, 3], &[], 1);
    let now = cluster.replicas[&leader].now(cluster.time);
    cluster.up(leader).campaign(now);
    cluster.drain(leader);
    cluster.run(100 * MILLISECOND);
    cluster.isolate(late);
    for _ in 0..MISSED {
        cluster
            .propose(leader, &vec![7; ENTRY_BYTES])
            .expect("it leads");
        cluster.run(2 * MILLISECOND);
    }
    cluster.run(100 * MILLISECOND);
    cluster.cut.clear();
    cluster.record = Some(Vec::new());
    // What is proposed meanwhile goes to the others at once, and to that one in its turn.
    for _ in 0..40 {
        cluster.propose(leader, b"more").expect("it leads");
        cluster.run(5 * MILLISECOND);
    }
    cluster.run(500 * MILLISECOND);
    let messages = cluster.record.take().expect("what was sent");
    let longest = messages.iter().map(Vec::len).max();
    assert!(
        longest < Some(MESSAGE_BYTES_MAX),
        "{longest:?} bytes in one message"
    );
    let sent: usize = messages.iter().map(Vec::len).sum();
    let missed = MISSED as usize * ENTRY_BYTES;
    assert!(
        (missed..missed * 2).contains(&sent),
        "{sent} bytes were sent"
    );
    let last = cluster.up(leader).last();
    assert_eq!(cluster.up(late).flushed(), last);
}
