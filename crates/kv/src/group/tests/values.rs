//! Values of SQL's sequences, through crashes and failovers.

use std::sync::Arc;

use base::engine::{SequencePosition, SequenceSpec};
use base::hash::HashSet;
use base::{Debt, Durability, NodeId, Result, SequenceId};

use super::cluster::{millis, Cluster};
use crate::group::Group;

const SEQUENCE: SequenceId = SequenceId(1 << 40);
const NODES: [NodeId; 3] = [NodeId(1), NodeId(2), NodeId(3)];

fn plain() -> SequenceSpec {
    SequenceSpec {
        begins_at: 1,
        increment: 1,
        min: 1,
        max: i64::MAX,
        cycle: false,
    }
}

fn take(group: &Group, spec: &SequenceSpec) -> Option<i64> {
    let (values, _) = group.next_values(SEQUENCE, spec, 1).expect("it leads");
    (values.count > 0).then_some(values.first)
}

fn settle(cluster: &mut Cluster, group: &Arc<Group>, debt: &Debt) -> Result<()> {
    let position = debt.groups().next().expect("a debt").position;
    cluster.world.run(group.settle(position, Durability::On))
}

#[test]
fn values_follow_their_specification() {
    let mut cluster = Cluster::new(7, 1);
    cluster.create_table();
    let (_, group) = cluster.leader();
    let spec = SequenceSpec {
        begins_at: 3,
        increment: -2,
        min: -4,
        max: 5,
        cycle: false,
    };
    let values: Vec<_> = (0..5).map(|_| take(&group, &spec)).collect();
    assert_eq!(values, [Some(3), Some(1), Some(-1), Some(-3), None]);
    let cycling = SequenceSpec {
        cycle: true,
        ..spec
    };
    let values: Vec<_> = (0..6).map(|_| take(&group, &cycling)).collect();
    assert_eq!(values, [5, 3, 1, -1, -3, 5].map(Some));
    // Other steps count from where it stands.
    let up = SequenceSpec {
        increment: 10,
        max: 40,
        ..spec
    };
    assert_eq!([take(&group, &up), take(&group, &up)], [Some(15), Some(25)]);
    let (many, _) = group.next_values(SEQUENCE, &up, 5).expect("it leads");
    assert_eq!((many.first, many.count), (35, 1), "no more until its end");
    let set = SequencePosition {
        last: 7,
        called: false,
    };
    group.set_sequence(SEQUENCE, set).expect("it leads");
    let (at, _, _) = group.sequence_position(SEQUENCE, &up).expect("it leads");
    assert_eq!(at, set);
    assert_eq!([take(&group, &up), take(&group, &up)], [Some(7), Some(17)]);
}

#[test]
fn a_grant_reaches_to_the_end_of_all_numbers() {
    let mut cluster = Cluster::new(8, 1);
    cluster.create_table();
    let (_, group) = cluster.leader();
    let spec = SequenceSpec {
        begins_at: i64::MAX - 1,
        ..plain()
    };
    let values: Vec<_> = (0..3).map(|_| take(&group, &spec)).collect();
    assert_eq!(values, [Some(i64::MAX - 1), Some(i64::MAX), None]);
}

#[test]
fn a_value_that_was_told_is_never_given_again() {
    let mut cluster = Cluster::new(9, 1);
    cluster.create_table();
    let mut told = HashSet::default();
    for _ in 0..5 {
        for _ in 0..100 {
            let (_, group) = cluster.leader();
            let (values, debt) = group.next_values(SEQUENCE, &plain(), 3).expect("it leads");
            settle(&mut cluster, &group, &debt).expect("settled");
            for value in values.first..values.first + 3 {
                assert!(told.insert(value), "{value} was given twice");
            }
        }
        cluster.crash(NODES[0]);
        cluster.start(NODES[0]);
    }
}

#[test]
fn a_position_that_was_set_survives_a_crash() {
    let mut cluster = Cluster::new(10, 1);
    cluster.create_table();
    let (_, group) = cluster.leader();
    let set = SequencePosition {
        last: -5,
        called: true,
    };
    let debt = group.set_sequence(SEQUENCE, set).expect("it leads");
    settle(&mut cluster, &group, &debt).expect("settled");
    drop(group);
    cluster.crash(NODES[0]);
    cluster.start(NODES[0]);
    let (_, group) = cluster.leader();
    let (at, _, _) = group
        .sequence_position(SEQUENCE, &plain())
        .expect("it leads");
    assert_eq!(at, set);
}

#[test]
fn what_a_lost_leader_gave_is_told_to_nobody_or_never_given_again() {
    for seed in 0..10 {
        let mut cluster = Cluster::new(seed, 3);
        cluster.create_table();
        let (old, group) = cluster.leader();
        let mut told = Vec::new();
        for _ in 0..40 {
            let (values, debt) = group.next_values(SEQUENCE, &plain(), 1).expect("it leads");
            settle(&mut cluster, &group, &debt).expect("settled");
            told.push(values.first);
        }
        for other in NODES.into_iter().filter(|other| *other != old) {
            cluster.world.link(old, other, false);
        }
        // Within its last grant and beyond it, cut off.
        let lost: Vec<_> = (0..200)
            .map(|_| group.next_values(SEQUENCE, &plain(), 1).expect("it leads"))
            .collect();
        cluster.groups.remove(&old);
        let (new, leader) = cluster.leader();
        assert_ne!(new, old);
        let first = take(&leader, &plain()).expect("there are more");
        let most = told.iter().max().expect("some were told");
        assert!(first > *most, "{first} after {most} was told");
        for other in NODES.into_iter().filter(|other| *other != old) {
            cluster.world.link(old, other, true);
        }
        cluster.world.pass(millis(3_000));
        for (values, debt) in lost {
            // A value of a grant that lived on may be told; then the new leader is past it.
            if settle(&mut cluster, &group, &debt).is_ok() {
                assert!(values.first < first, "{} was given twice", values.first);
            }
        }
    }
}
