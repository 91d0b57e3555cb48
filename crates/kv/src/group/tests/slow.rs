//! Disks that hang, that are slow, and that are full, ways that are slow in one direction, and who
//! leads then.

use std::time::Duration;

use base::{Durability, NodeId};

use super::cluster::{insert, millis, rows, Cluster};

/// Leadership moves within this.
const MOVED_WITHIN: Duration = Duration::from_millis(500);

fn three(seed: u64) -> (Cluster, NodeId) {
    let mut cluster = Cluster::new(seed, 3);
    cluster.create_table();
    for i in 0..20 {
        cluster.commit_at(insert(&format!("before{i}"), "1"), Durability::On);
    }
    let (leader, _) = cluster.leader();
    (cluster, leader)
}

fn others(leader: NodeId) -> [NodeId; 2] {
    [NodeId(leader.0 % 3 + 1), NodeId((leader.0 + 1) % 3 + 1)]
}

/// Commits for so long, one after another; who led, in turn, and the longest commit.
fn commit_for(cluster: &mut Cluster, name: &str, time: Duration) -> (Vec<NodeId>, Duration) {
    let begun = cluster.world.now();
    let (mut led, mut longest) = (Vec::new(), Duration::ZERO);
    for number in 0.. {
        let at = cluster.world.now();
        if at.since(begun) >= time {
            break;
        }
        let row = insert(&format!("{name}{number:05}"), "1");
        // One that stands in the way of a handover is refused, and comes again.
        if let Ok(position) = cluster.commit(row) {
            let (leader, group) = cluster.leader();
            if led.last() != Some(&leader) {
                led.push(leader);
            }
            let _ = cluster.world.run(group.settle(position, Durability::On));
            longest = longest.max(cluster.world.now().since(at));
        }
        cluster.world.pass(millis(5));
    }
    (led, longest)
}

fn is_whole_again(cluster: &mut Cluster) {
    cluster.world.pass(millis(12_000));
    let (node, _) = cluster.leader();
    cluster.commit_at(insert("after", "1"), Durability::On);
    cluster.world.pass(millis(500));
    cluster.assert_equal();
    for node in [1, 2, 3].map(NodeId) {
        assert_eq!(cluster.world.stopped(node), None);
        assert_eq!(cluster.groups[&node].disk_hangs_for(), None);
    }
    assert!(rows(&cluster.groups[&node]).len() > 21);
}

#[test]
fn a_leader_whose_disk_hangs_gives_way() {
    for seed in 0..10 {
        let (mut cluster, leader) = three(seed);
        cluster
            .world
            .slow_disk(leader, Some(Duration::from_secs(10)));
        cluster.commit_at(insert("hangs", "1"), Durability::On);
        let begun = cluster.world.now();
        let groups = cluster.groups.clone();
        let leads = |node: &NodeId| groups[node].holds_lease();
        let elsewhere = others(leader);
        cluster
            .world
            .until("another leader", |_| elsewhere.iter().any(leads));
        let took = cluster.world.now().since(begun);
        assert!(took < MOVED_WITHIN, "seed {seed}: it took {took:?}");
        assert!(groups[&leader].disk_hangs_for().is_some(), "it says so");
        cluster.world.slow_disk(leader, None);
        // What it is in the middle of takes its time; nobody waits for it.
        let (led, longest) = commit_for(&mut cluster, "more", Duration::from_secs(3));
        assert_eq!(led.len(), 1, "seed {seed}: {led:?}");
        assert!(longest < millis(50), "seed {seed}: {longest:?}");
        is_whole_again(&mut cluster);
    }
}

#[test]
fn a_follower_whose_disk_hangs_harms_nobody() {
    for seed in 0..10 {
        let (mut cluster, leader) = three(seed);
        let [hung, _] = others(leader);
        cluster.world.slow_disk(hung, Some(Duration::from_secs(10)));
        let (led, longest) = commit_for(&mut cluster, "more", Duration::from_secs(3));
        assert_eq!(led, [leader], "seed {seed}");
        assert!(longest < millis(50), "seed {seed}: {longest:?}");
        assert!(cluster.groups[&hung].disk_hangs_for().is_some());
        cluster.world.slow_disk(hung, None);
        is_whole_again(&mut cluster);
    }
}

#[test]
fn leadership_does_not_wander_where_all_disks_are_slow() {
    for seed in 0..5 {
        let (mut cluster, leader) = three(seed);
        for node in [1, 2, 3].map(NodeId) {
            cluster
                .world
                .slow_disk(node, Some(Duration::from_millis(900)));
        }
        let (led, _) = commit_for(&mut cluster, "more", Duration::from_secs(40));
        let moves = led.iter().filter(|node| **node != leader).count();
        assert_eq!(moves, 0, "seed {seed}: {led:?}");
        for node in [1, 2, 3].map(NodeId) {
            cluster.world.slow_disk(node, None);
        }
        is_whole_again(&mut cluster);
    }
}

#[test]
fn a_leader_does_not_give_way_to_one_that_is_as_slow() {
    for seed in 0..5 {
        let (mut cluster, leader) = three(seed);
        for node in others(leader) {
            cluster
                .world
                .slow_disk(node, Some(Duration::from_millis(500)));
        }
        // They have shown how slow they are.
        let (led, _) = commit_for(&mut cluster, "slow", Duration::from_secs(3));
        assert_eq!(led, [leader], "seed {seed}");
        cluster
            .world
            .slow_disk(leader, Some(Duration::from_millis(500)));
        let (led, _) = commit_for(&mut cluster, "more", Duration::from_secs(5));
        assert_eq!(led, [leader], "seed {seed}");
    }
}

#[test]
fn leadership_goes_from_disk_to_disk_once_in_a_while() {
    let (mut cluster, leader) = three(1);
    let mut led = vec![leader];
    let begun = cluster.world.now();
    // Whoever leads has a disk that hangs.
    while led.len() < 4 {
        let (now, _) = cluster.leader();
        if led.last() != Some(&now) {
            led.push(now);
        }
        for node in [1, 2, 3].map(NodeId) {
            let sync = (node == now).then_some(Duration::from_millis(1_500));
            cluster.world.slow_disk(node, sync);
        }
        let name = format!("row{:?}", cluster.world.now());
        if let Ok(position) = cluster.commit(insert(&name, "1")) {
            let (_, group) = cluster.leader();
            let _ = cluster.world.run(group.settle(position, Durability::On));
        }
        cluster.world.pass(millis(5));
    }
    let took = cluster.world.now().since(begun);
    assert!(took >= Duration::from_secs(20), "{led:?} in {took:?}");
    assert!(took < Duration::from_secs(40), "{led:?} in {took:?}");
}

#[test]
fn a_leader_whose_disk_is_full_gives_way_to_one_with_room() {
    for seed in 0..5 {
        let (mut cluster, leader) = three(seed);
        cluster.world.fill_disk(leader, true);
        let value = "x".repeat(2_000);
        let mut written = 0;
        for number in 0..400 {
            let row = insert(&format!("long{number:04}"), &value);
            written += usize::from(cluster.commit(row).is_ok());
            cluster.world.pass(millis(5));
        }
        let (now, group) = cluster.leader();
        assert_ne!(now, leader, "seed {seed}");
        assert!(written > 350, "seed {seed}: {written} were written");
        assert_eq!(rows(&group).len(), written + 20);
        cluster.world.fill_disk(leader, false);
        is_whole_again(&mut cluster);
    }
}

/// Makes all that a node sends, or all that it hears, late.
fn slow_ways(cluster: &mut Cluster, node: NodeId, outward: bool, more: Duration) {
    for other in others(node) {
        let (from, to) = match outward {
            true => (node, other),
            false => (other, node),
        };
        cluster.world.slow_link(from, to, more);
    }
}

#[test]
fn a_leader_that_is_far_in_one_direction_gives_way() {
    for (seed, outward) in (0..10).flat_map(|seed| [(seed, true), (seed, false)]) {
        let (mut cluster, leader) = three(seed);
        // Bit by bit: nobody is ever silent for an election timeout.
        for more in (50..=400).step_by(50) {
            slow_ways(&mut cluster, leader, outward, millis(more));
            cluster.world.pass(millis(60));
        }
        let begun = cluster.world.now();
        let groups = cluster.groups.clone();
        let leads = |node: &NodeId| groups[node].holds_lease();
        let elsewhere = others(leader);
        cluster
            .world
            .until("another leader", |_| elsewhere.iter().any(leads));
        let took = cluster.world.now().since(begun);
        assert!(
            took < millis(1_500),
            "seed {seed}, outward {outward}: it took {took:?}"
        );
        let (led, longest) = commit_for(&mut cluster, "more", Duration::from_secs(3));
        assert_eq!(led.len(), 1, "seed {seed}, outward {outward}: {led:?}");
        assert!(longest < millis(50), "seed {seed}: {longest:?}");
        slow_ways(&mut cluster, leader, outward, Duration::ZERO);
        is_whole_again(&mut cluster);
    }
}

#[test]
fn leadership_comes_to_rest_where_everybody_is_far_for_a_while() {
    for seed in 0..5 {
        let (mut cluster, _) = three(seed);
        for node in [1, 2, 3].map(NodeId) {
            slow_ways(&mut cluster, node, true, millis(400));
        }
        cluster.world.pass(Duration::from_secs(5));
        for node in [1, 2, 3].map(NodeId) {
            slow_ways(&mut cluster, node, true, Duration::ZERO);
        }
        cluster.world.pass(Duration::from_secs(3));
        let (led, longest) = commit_for(&mut cluster, "more", Duration::from_secs(3));
        assert_eq!(led.len(), 1, "seed {seed}: {led:?}");
        assert!(longest < millis(50), "seed {seed}: {longest:?}");
        is_whole_again(&mut cluster);
    }
}
