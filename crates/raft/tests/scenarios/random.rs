//! Random schedules: whatever happens, committed entries agree, there is one leader a term, and
//! no lease is valid once somebody else was elected (the cluster checks all three as it runs).

use base::NodeId;

use crate::cluster::{Cluster, MILLISECOND};

/// Schedules tried; each simulates about twelve seconds of faults.
const SEEDS: u64 = 150;

/// Schedules of attacks tried.
const ATTACKED_SEEDS: u64 = 40;

/// The fastest and slowest clock, in thousandths: what the default drift allows for.
const CLOCK_RATES: (u64, u64) = (950, 1050);

fn pick(cluster: &mut Cluster) -> NodeId {
    let nodes: Vec<NodeId> = cluster.replicas.keys().copied().collect();
    let index = cluster.random() as usize % nodes.len();
    nodes[index]
}

fn between(cluster: &mut Cluster, low: u64, high: u64) -> u64 {
    low + cluster.random() % (high - low + 1)
}

fn fault(cluster: &mut Cluster) {
    let node = pick(cluster);
    let is_up = cluster.replicas[&node].consensus.is_some();
    match cluster.random() % 12 {
        0 if is_up => cluster.crash(node),
        1 if is_up && !cluster.replicas[&node].stalled => {
            cluster.crash(node);
            cluster.start(node);
        }
        0..=3 if !is_up => cluster.start(node),
        2 | 3 if is_up => cluster.replica(node).stalled = true,
        4 | 5 => {
            for node in cluster.replicas.keys().copied().collect::<Vec<_>>() {
                if cluster.replicas[&node].stalled {
                    cluster.resume(node);
                }
            }
        }
        6 => cluster.isolate(node),
        7 => {
            let other = pick(cluster);
            cluster.cut.insert((node, other));
        }
        8 | 9 => cluster.cut.clear(),
        10 => {
            cluster.replica(node).flush_latency =
                MILLISECOND * [1, 1, 30, 100][(node.0 % 4) as usize]
        }
        _ => {
            if let Some(leader) = cluster.leader() {
                let target = pick(cluster);
                if cluster.up(leader).transfer_leadership(target).is_ok() {
                    cluster.drain(leader);
                }
            }
        }
    }
}

fn schedule(seed: u64, voters: &[u64], learners: &[u64]) -> Cluster {
    let mut cluster = Cluster::new(voters, learners, seed);
    cluster.latency = (MILLISECOND / 10, 40 * MILLISECOND);
    cluster.lossy = 20;
    for node in cluster.replicas.keys().copied().collect::<Vec<_>>() {
        let rate = between(&mut cluster, CLOCK_RATES.0, CLOCK_RATES.1);
        cluster.replica(node).clock_rate = rate;
    }
    for step in 0..120 {
        if cluster.random() % 3 == 0 {
            fault(&mut cluster);
        }
        if let Some(leader) = cluster.leader() {
            let _ = cluster.propose(leader, format!("{seed}/{step}").as_bytes());
            if cluster.random() % 20 == 0 {
                cluster.compact(leader);
            }
        }
        let pause = between(&mut cluster, 1, 200) * MILLISECOND;
        cluster.run(pause);
    }
    recover(&mut cluster);
    cluster
}

/// When the faults are over, the group works again, and all replicas get everything.
fn recover(cluster: &mut Cluster) {
    cluster.cut.clear();
    cluster.lossy = 0;
    cluster.latency = (MILLISECOND / 10, MILLISECOND);
    for node in cluster.replicas.keys().copied().collect::<Vec<_>>() {
        cluster.replica(node).flush_latency = MILLISECOND;
        if cluster.replicas[&node].consensus.is_none() {
            cluster.start(node);
        }
        if cluster.replicas[&node].stalled {
            cluster.resume(node);
        }
    }
    cluster.run(3_000 * MILLISECOND);
    let leader = cluster.leader().expect("a leader");
    let last = cluster.propose(leader, b"last").expect("it leads");
    cluster.run(1_000 * MILLISECOND);
    for replica in cluster.replicas.values() {
        let consensus = replica.consensus.as_ref().expect("it is up");
        assert_eq!(consensus.committed(), last.lsn, "node {}", replica.id);
    }
    let now = cluster.replicas[&leader].now(cluster.time);
    assert!(cluster.up(leader).lease_is_valid(now));
}

#[test]
fn no_lease_outlives_an_election() {
    let (mut elections, mut leases, mut committed) = (0, 0, 0);
    for seed in 1..=SEEDS {
        let cluster = match seed % 3 {
            0 => schedule(seed, &[1, 2, 3], &[]),
            1 => schedule(seed, &[1, 2, 3], &[4]),
            _ => schedule(seed, &[1, 2, 3, 4, 5], &[]),
        };
        elections += cluster.leaders.len();
        leases += cluster.leases_seen;
        committed += cluster.committed.len();
    }
    println!("{elections} elections, {leases} valid leases seen, {committed} entries committed");
    assert!(elections > SEEDS as usize * 3, "{elections} elections");
    assert!(committed > SEEDS as usize * 40, "{committed} entries");
}

/// One attack on a lease: the leader is cut off or stands still, some of the others restart, and
/// all of them try to be elected again and again.
fn attack(cluster: &mut Cluster) {
    cluster.cut.clear();
    for node in cluster.replicas.keys().copied().collect::<Vec<_>>() {
        if cluster.replicas[&node].stalled {
            cluster.resume(node);
        }
    }
    let wait = between(cluster, 1_200, 1_400) * MILLISECOND;
    cluster.run(wait);
    let Some(leader) = cluster.leader() else {
        return;
    };
    let others: Vec<NodeId> = cluster.replicas.keys().copied().collect();
    let others: Vec<NodeId> = others.into_iter().filter(|node| *node != leader).collect();
    let _ = cluster.propose(leader, b"before the attack");
    if cluster.random() % 4 == 0 && cluster.up(leader).transfer_leadership(others[0]).is_ok() {
        cluster.drain(leader);
    }
    match cluster.random() % 4 {
        0 => cluster.replica(leader).stalled = true,
        1 => cluster.isolate(leader),
        2 => cluster
            .cut
            .extend(others.iter().map(|node| (*node, leader))),
        _ => {
            let spared = cluster.random() as usize % others.len();
            for (index, node) in others.iter().enumerate() {
                if index != spared {
                    cluster.cut.insert((leader, *node));
                    cluster.cut.insert((*node, leader));
                }
            }
        }
    }
    let restart_all = cluster.random() % 2 == 0;
    for node in &others {
        if restart_all || cluster.random() % 3 == 0 {
            cluster.crash(*node);
            cluster.start(*node);
        }
    }
    for _ in 0..60 {
        for node in &others {
            if cluster.random() % 4 == 0 {
                let now = cluster.replicas[node].now(cluster.time);
                cluster.up(*node).campaign(now);
                cluster.drain(*node);
            }
        }
        cluster.run(10 * MILLISECOND);
    }
}

/// Election timeouts that a replica may have after any start, in milliseconds.
const MIXED_TIMEOUTS: &[u64] = &[120, 700];

#[test]
fn no_lease_falls_to_an_attack() {
    attacks(&[]);
}

#[test]
fn no_lease_falls_to_an_attack_where_settings_differ_and_change() {
    attacks(MIXED_TIMEOUTS);
}

fn attacks(election_timeouts: &'static [u64]) {
    let mut elections = 0;
    for seed in 1..=ATTACKED_SEEDS {
        let mut cluster = Cluster::new(&[1, 2, 3], &[], seed);
        cluster.election_timeouts = election_timeouts;
        cluster.latency = (MILLISECOND / 10, [2, 20][(seed % 2) as usize] * MILLISECOND);
        for node in [1, 2, 3].map(NodeId) {
            // The clocks differ as much as they may.
            let rate = [CLOCK_RATES.0, CLOCK_RATES.1][(cluster.random() % 2) as usize];
            cluster.replica(node).clock_rate = rate;
        }
        for _ in 0..12 {
            attack(&mut cluster);
        }
        recover(&mut cluster);
        elections += cluster.leaders.len();
    }
    assert!(
        elections > ATTACKED_SEEDS as usize * 6,
        "{elections} elections"
    );
}

#[test]
fn a_sole_voter_with_learners_survives_anything() {
    for seed in 1..=30 {
        schedule(seed, &[1], &[2, 3]);
    }
}

#[test]
fn the_same_seed_gives_the_same_history() {
    let history = |seed| {
        let cluster = schedule(seed, &[1, 2, 3], &[4]);
        (cluster.transitions.clone(), cluster.committed.clone())
    };
    assert_eq!(history(11), history(11));
}
