//! A full disk is an error for whoever writes, and for nobody else.

use std::sync::Arc;
use std::time::Duration;

use base::env::Reactor;
use base::sync::Mutex;
use base::SqlState;
use lab::client::{Client, Failure};

use crate::cluster::Cluster;

const LIMIT: Duration = Duration::from_secs(3);

/// Whoever has waited for so long stands there as somebody who does not know.
const NO_ANSWER: SqlState = SqlState::TRANSACTION_RESOLUTION_UNKNOWN;

pub(super) fn cluster(seed: u64, nodes: usize) -> Cluster {
    let settings = [
        ("quorate.log_segment_size", "64kB".to_owned()),
        ("quorate.checkpoint_log_size", "96kB".to_owned()),
        ("shared_buffers", "128kB".to_owned()),
    ];
    let mut cluster = Cluster::new(seed, nodes, &settings);
    for node in 0..nodes {
        cluster.start(node);
    }
    let world = Duration::from_secs(20);
    let lead = |cluster: &Cluster| cluster.leader().is_some();
    while !lead(&cluster) && cluster.world.elapsed() < world {
        cluster.world.run_for(Duration::from_millis(20));
    }
    assert!(lead(&cluster), "nobody leads after {world:?}");
    ask(
        &mut cluster,
        0,
        "create table t (k int primary key, v text)",
    )
    .unwrap();
    cluster
}

/// The first column of the first row, or the error's SQLSTATE, asked at a node.
/// [`NO_ANSWER`] where none comes.
pub(super) fn ask(cluster: &mut Cluster, node: usize, sql: &str) -> Result<String, SqlState> {
    let env = cluster.world.env(cluster.client_host());
    let address = cluster.address(node);
    let (task_env, sql) = (env.clone(), sql.to_owned());
    let answer = Arc::new(Mutex::new(None));
    let slot = answer.clone();
    let body = async move {
        let mut client = Client::connect(&*task_env, &address, LIMIT).await.unwrap();
        let said = client.query(&*task_env, &sql, LIMIT).await;
        *slot.lock() = Some(match said {
            Ok(reply) => Ok(reply.text(0, 0).unwrap_or("").to_owned()),
            Err(Failure::Refused(error)) => Err(error.state()),
            Err(Failure::Broken(_)) => Err(NO_ANSWER),
        });
    };
    env.spawn(Reactor::Session(0), "ask", Box::new(move || Box::pin(body)));
    let done = answer.clone();
    cluster
        .world
        .run_until(LIMIT * 3, move |_| done.lock().is_some());
    let answer = answer.lock().take();
    answer.expect("an answer")
}

pub(super) fn insert(number: usize) -> String {
    format!("insert into t values ({number}, repeat('x', 900))")
}

fn fill(cluster: &mut Cluster, node: usize, room: Option<u64>) {
    let host = cluster.host(node);
    cluster.world.set_disk_room(host, room);
}

/// Writes from `first` on until somebody is told 53100; how many were written.
fn write_until_full(cluster: &mut Cluster, at: usize, first: usize) -> usize {
    for number in 0..2_000 {
        match ask(cluster, at, &insert(first + number)) {
            Ok(_) => {}
            Err(state) => {
                // Where the others' disks are full too, what the leader still had room for waits.
                assert!(
                    [SqlState::DISK_FULL, NO_ANSWER].contains(&state),
                    "{state:?}"
                );
                return number;
            }
        }
    }
    panic!("the disk never gets full");
}

pub(super) fn settles(cluster: &mut Cluster) {
    for _ in 0..400 {
        cluster.world.run_for(Duration::from_millis(50));
        if cluster.is_settled(1) {
            return;
        }
    }
    panic!("the cluster does not settle");
}

#[test]
fn a_full_leader_refuses_writes_and_serves_reads() {
    let mut cluster = cluster(5, 1);
    let leader = cluster.leader();
    fill(&mut cluster, 0, Some(0));
    let written = write_until_full(&mut cluster, 0, 0);
    let count = ask(&mut cluster, 0, "select count(*) from t");
    assert_eq!(count, Ok(written.to_string()));
    let refused = ask(&mut cluster, 0, &insert(written));
    assert_eq!(refused, Err(SqlState::DISK_FULL));
    // Longer than any timeout: it still leads, and still serves.
    cluster.world.run_for(Duration::from_secs(10));
    assert_eq!(cluster.leader(), leader);
    assert_eq!(cluster.stopped(), None);
    let row = ask(&mut cluster, 0, "select k from t where k = 1");
    assert_eq!(row, Ok("1".to_owned()));
    fill(&mut cluster, 0, None);
    ask(&mut cluster, 0, &insert(written)).expect("there is room again");
    let count = ask(&mut cluster, 0, "select count(*) from t");
    assert_eq!(count, Ok((written + 1).to_string()));
    settles(&mut cluster);
}

#[test]
fn a_full_leader_gives_way_to_one_with_room() {
    let mut cluster = cluster(5, 3);
    let (full, _) = cluster.leader().unwrap();
    fill(&mut cluster, full, Some(0));
    let mut written = 0;
    for number in 0..400 {
        match ask(&mut cluster, number % 3, &insert(number)) {
            Ok(_) => written += 1,
            Err(state) => assert!(
                [SqlState::DISK_FULL, NO_ANSWER].contains(&state),
                "{state:?}"
            ),
        }
    }
    assert!(written > 390, "{written} of 400 were written");
    assert_ne!(cluster.leader().map(|(node, _)| node), Some(full));
    assert_eq!(cluster.stopped(), None);
    for node in 0..3 {
        let count = ask(&mut cluster, node, "select count(*) from t");
        assert_eq!(count, Ok(written.to_string()), "at node {node}");
    }
    fill(&mut cluster, full, None);
    settles(&mut cluster);
}

#[test]
fn a_full_follower_harms_nobody_and_catches_up() {
    let mut cluster = cluster(6, 3);
    let leader = cluster.leader();
    let (leads, _) = leader.unwrap();
    let full = (leads + 1) % 3;
    fill(&mut cluster, full, Some(100_000));
    for number in 0..600 {
        let written = ask(&mut cluster, number % 3, &insert(number));
        assert_eq!(written, Ok(String::new()), "row {number}");
    }
    assert_eq!(cluster.leader(), leader);
    assert_eq!(cluster.stopped(), None);
    let applied = |cluster: &Cluster, node| cluster.node(node).unwrap().status().applied;
    let behind = applied(&cluster, leads) - applied(&cluster, full);
    assert!(behind > 100, "{behind} behind");
    fill(&mut cluster, full, None);
    settles(&mut cluster);
    assert_eq!(applied(&cluster, leads), applied(&cluster, full));
}

/// What is appended without asking for space (votes, entries of other leaders) waits for it.
#[test]
fn a_full_node_that_comes_to_lead_stops_for_nothing() {
    let mut cluster = cluster(7, 3);
    for round in 0..3 {
        let (leads, _) = cluster.leader().unwrap();
        for node in 0..3 {
            fill(&mut cluster, node, Some(0));
        }
        write_until_full(&mut cluster, leads, round * 10_000);
        cluster.crash(leads, true);
        cluster.world.run_for(Duration::from_secs(2));
        assert_eq!(cluster.stopped(), None);
        let others = (0..3).filter(|node| *node != leads);
        others.for_each(|node| fill(&mut cluster, node, None));
        cluster.restart(leads);
        cluster.world.run_for(Duration::from_secs(2));
        assert!(cluster.lacked_space(leads), "a new segment needs space");
        assert_eq!(cluster.stopped(), None);
        fill(&mut cluster, leads, None);
        cluster.start_again(true);
        settles(&mut cluster);
        ask(&mut cluster, leads, &insert(round * 10_000 + 9_999)).expect("there is room");
    }
}
