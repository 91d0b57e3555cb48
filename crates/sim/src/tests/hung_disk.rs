//! A disk that hangs costs whole nodes and their clients no more than a failover.

use std::time::Duration;

use crate::faults::SOUND_DISK;
use crate::tests::full_disk::{ask, cluster, insert, settles};

const HANGS: Duration = Duration::from_secs(10);

/// Writes that are asked for at each node in turn while the disk of one hangs.
const WRITES: usize = 150;

#[test]
fn writes_go_on_and_the_node_comes_back() {
    for (seed, of_leader) in [(1, true), (2, true), (3, false), (4, false)] {
        let mut cluster = cluster(seed, 3);
        let (leader, _) = cluster.leader().expect("a leader");
        let hung = if of_leader { leader } else { (leader + 1) % 3 };
        let host = cluster.host(hung);
        cluster.world.set_disk_delay(host, HANGS);
        let begun = cluster.world.elapsed();
        for number in 0..WRITES {
            let asked = cluster.world.elapsed();
            let mut written = ask(&mut cluster, number % 3, &insert(number));
            if written.is_err() {
                // What was in flight when leadership moved is not known, and asked for once more.
                written = ask(&mut cluster, number % 3, &insert(number + 10_000));
            }
            assert_eq!(written, Ok(String::new()), "seed {seed}, row {number}");
            let took = cluster.world.elapsed() - asked;
            assert!(
                took < Duration::from_secs(1),
                "seed {seed}, row {number}: {took:?}"
            );
        }
        let took = cluster.world.elapsed() - begun;
        assert!(took < Duration::from_secs(4), "seed {seed}: {took:?}");
        let trouble = cluster.node(hung).expect("it runs").status().trouble;
        assert_eq!(trouble, Some("slow"), "seed {seed}");
        let moved = cluster.leader().map(|(node, _)| node) != Some(leader);
        assert_eq!(moved, of_leader, "seed {seed}");
        cluster.world.set_disk_delay(host, SOUND_DISK);
        cluster.world.run_for(HANGS * 2);
        assert_eq!(cluster.stopped(), None);
        settles(&mut cluster);
        let trouble = cluster.node(hung).expect("it runs").status().trouble;
        assert_eq!(trouble, None, "seed {seed}");
    }
}
