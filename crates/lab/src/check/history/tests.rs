//! Histories of each anomaly, and which level forbids it.

use super::*;

fn transaction(began: u64, ended: u64, steps: Vec<Step>) -> Transaction {
    at(Isolation::Serializable, began, ended, steps)
}

fn at(level: Isolation, began: u64, ended: u64, steps: Vec<Step>) -> Transaction {
    Transaction {
        level,
        steps,
        began: Instant(began),
        ended: Instant(ended),
        end: End::Committed,
    }
}

fn read(key: u64, list: &[u64]) -> Step {
    Step::Read(key, Some(list.to_vec()))
}

fn last(lists: &[(u64, &[u64])]) -> BTreeMap<u64, Vec<u64>> {
    lists
        .iter()
        .map(|(key, list)| (*key, list.to_vec()))
        .collect()
}

#[test]
fn what_some_order_explains_is_sound() {
    let history = [
        transaction(0, 1, vec![Step::Append(1, 10), read(2, &[])]),
        transaction(0, 5, vec![read(1, &[10]), Step::Append(2, 20)]),
        transaction(6, 7, vec![read(1, &[10]), read(2, &[20])]),
    ];
    assert_eq!(judge(&history, &last(&[(1, &[10]), (2, &[20])])), []);
}

#[test]
fn write_skew_is_a_circle() {
    let history = [
        transaction(0, 9, vec![read(1, &[]), Step::Append(2, 20)]),
        transaction(0, 9, vec![read(2, &[]), Step::Append(1, 10)]),
    ];
    let wrong = judge(&history, &last(&[(1, &[10]), (2, &[20])]));
    let expected = "a circle at SERIALIZABLE or above (G2): T0 –rw→ T1 –rw→ T0";
    assert_eq!(wrong, [Wrong::Serializable(expected.to_owned())]);
}

#[test]
fn half_a_transaction_is_a_circle() {
    let history = [
        transaction(0, 9, vec![Step::Append(1, 10), Step::Append(2, 20)]),
        transaction(0, 9, vec![read(1, &[10]), read(2, &[])]),
    ];
    let wrong = judge(&history, &last(&[(1, &[10]), (2, &[20])]));
    let [Wrong::Serializable(said)] = &wrong[..] else {
        panic!("{wrong:?}");
    };
    assert!(said.contains("G-single"), "{said}");
}

#[test]
fn a_stale_read_is_against_time_only() {
    let history = [
        transaction(0, 1, vec![Step::Append(1, 10)]),
        transaction(2, 3, vec![read(1, &[])]),
    ];
    let wrong = judge(&history, &last(&[(1, &[10])]));
    let expected = "a circle at SERIALIZABLE or above (G-single-realtime): T1 –rw→ T0 –time→ T1";
    let other = "a circle at SERIALIZABLE or above (G-single-realtime): T0 –time→ T1 –rw→ T0";
    let [Wrong::Strict(said)] = &wrong[..] else {
        panic!("{wrong:?}");
    };
    assert!(said == expected || said == other, "{said}");
}

#[test]
fn losses_ghosts_and_forks_are_found() {
    let mut refused = transaction(0, 1, vec![Step::Append(1, 11)]);
    refused.end = End::Refused;
    let history = [
        transaction(0, 1, vec![Step::Append(1, 10)]),
        refused,
        transaction(2, 3, vec![read(1, &[10, 11])]),
    ];
    let wrong = judge(&history, &last(&[(1, &[])]));
    assert!(
        wrong.iter().any(|one| matches!(one, Wrong::Lost(_))),
        "{wrong:?}"
    );
    assert!(
        wrong
            .iter()
            .any(|one| matches!(one, Wrong::Serializable(said) if said.contains("G1a"))),
        "{wrong:?}"
    );
    let fork = [
        transaction(0, 1, vec![Step::Append(1, 10)]),
        transaction(0, 1, vec![Step::Append(1, 11)]),
        transaction(2, 3, vec![read(1, &[10])]),
        transaction(2, 3, vec![read(1, &[11])]),
    ];
    let wrong = judge(&fork, &last(&[(1, &[10, 11])]));
    assert!(
        matches!(&wrong[0], Wrong::Serializable(said) if said.contains("neither the beginning")),
        "{wrong:?}"
    );
}

/// Three histories at a level: what is found, and how.
fn found(level: Isolation, spans: &[(u64, u64, Vec<Step>)], lists: &[(u64, &[u64])]) -> Vec<Wrong> {
    let history: Vec<Transaction> = spans
        .iter()
        .map(|(began, ended, steps)| at(level, *began, *ended, steps.clone()))
        .collect();
    judge(&history, &last(lists))
}

fn assert_found(wrong: &[Wrong], class: &str) {
    let said = |one: &Wrong| match one {
        Wrong::Serializable(said) | Wrong::Strict(said) | Wrong::Lost(said) => said.contains(class),
    };
    assert!(wrong.iter().any(said), "{class} is not in {wrong:?}");
}

#[test]
fn dirty_writes_are_found_at_every_level() {
    // Each overwrites the other: G0.
    let spans = [
        (0, 9, vec![Step::Append(1, 10), Step::Append(2, 20)]),
        (0, 9, vec![Step::Append(1, 11), Step::Append(2, 21)]),
    ];
    for level in Isolation::ALL {
        let wrong = found(level, &spans, &[(1, &[10, 11]), (2, &[21, 20])]);
        assert_found(&wrong, "(G0): ");
    }
}

#[test]
fn circular_information_flow_is_found_at_every_level() {
    let spans = [
        (0, 9, vec![Step::Append(1, 10), read(2, &[20])]),
        (0, 9, vec![Step::Append(2, 20), read(1, &[10])]),
    ];
    for level in Isolation::ALL {
        let wrong = found(level, &spans, &[(1, &[10]), (2, &[20])]);
        assert_found(&wrong, "(G1c): ");
    }
}

#[test]
fn halves_of_transactions_are_found_at_every_level() {
    let spans = [
        (0, 9, vec![Step::Append(1, 10), Step::Append(1, 11)]),
        (0, 9, vec![read(1, &[10])]),
    ];
    for level in Isolation::ALL {
        assert_found(&found(level, &spans, &[(1, &[10, 11])]), "(G1b)");
    }
}

#[test]
fn lost_updates_and_read_skew_are_allowed_at_read_committed_alone() {
    // Both have read the same, and both append: the second did not see the first.
    let lost_update = [
        (0, 9, vec![read(1, &[]), Step::Append(1, 10)]),
        (0, 9, vec![read(1, &[]), Step::Append(1, 11)]),
    ];
    let read_skew = [
        (0, 9, vec![Step::Append(1, 10), Step::Append(2, 20)]),
        (0, 9, vec![read(1, &[]), read(2, &[20])]),
    ];
    let lists: [&[(u64, &[u64])]; 2] = [&[(1, &[10, 11])], &[(1, &[10]), (2, &[20])]];
    for (spans, lists) in [&lost_update, &read_skew].into_iter().zip(lists) {
        assert_eq!(found(Isolation::Committed, spans, lists), []);
        assert_found(&found(Isolation::Snapshot, spans, lists), "(G-single): ");
        assert_found(
            &found(Isolation::Serializable, spans, lists),
            "(G-single): ",
        );
    }
}

#[test]
fn write_skew_is_allowed_between_snapshots_and_two_forks_are_not() {
    let write_skew = [
        (0, 9, vec![read(1, &[]), Step::Append(2, 20)]),
        (0, 9, vec![read(2, &[]), Step::Append(1, 10)]),
    ];
    let lists: &[(u64, &[u64])] = &[(1, &[10]), (2, &[20])];
    assert_eq!(found(Isolation::Snapshot, &write_skew, lists), []);
    assert_found(
        &found(Isolation::Serializable, &write_skew, lists),
        "(G2): ",
    );
    // Two writers, and two readers who see them in different orders: no snapshots do that.
    let long_fork = [
        (0, 9, vec![Step::Append(1, 10)]),
        (0, 9, vec![Step::Append(2, 20)]),
        (0, 9, vec![read(1, &[10]), read(2, &[])]),
        (0, 9, vec![read(1, &[]), read(2, &[20])]),
    ];
    assert_found(
        &found(Isolation::Snapshot, &long_fork, lists),
        "(G-nonadjacent): ",
    );
    assert_eq!(found(Isolation::Committed, &long_fork, lists), []);
}

#[test]
fn one_at_a_lower_level_excuses_a_circle() {
    let mut history = vec![
        transaction(0, 9, vec![read(1, &[]), Step::Append(2, 20)]),
        transaction(0, 9, vec![read(2, &[]), Step::Append(1, 10)]),
    ];
    let lists = last(&[(1, &[10]), (2, &[20])]);
    assert_found(&judge(&history, &lists), "(G2): ");
    history[0].level = Isolation::Snapshot;
    assert_eq!(judge(&history, &lists), []);
}

#[test]
fn a_snapshot_older_than_the_transaction_is_against_time() {
    let spans = [
        (0, 1, vec![Step::Append(1, 10)]),
        (2, 3, vec![read(1, &[])]),
    ];
    for level in [Isolation::Snapshot, Isolation::Serializable] {
        let wrong = found(level, &spans, &[(1, &[10])]);
        assert_found(&wrong, "(G-single-realtime): ");
        assert!(matches!(wrong[..], [Wrong::Strict(_)]), "{wrong:?}");
    }
}

#[test]
fn order_goes_through_transactions_of_lower_levels() {
    // 11 is of a lower level and lies between; that its writer is passed over hides nothing.
    let history = [
        transaction(0, 9, vec![Step::Append(1, 10), Step::Append(2, 20)]),
        at(
            Isolation::Committed,
            0,
            9,
            vec![Step::Append(1, 11), Step::Append(2, 21)],
        ),
        transaction(0, 9, vec![Step::Append(1, 12), Step::Append(2, 22)]),
    ];
    let lists = last(&[(1, &[10, 11, 12]), (2, &[22, 21, 20])]);
    assert_found(&judge(&history, &lists), "at SERIALIZABLE or above (G0): ");
}

#[test]
fn what_a_failed_transaction_was_shown_must_not_vanish() {
    let mut shown = transaction(2, 3, vec![Step::Append(1, 12), read(1, &[10, 11, 12])]);
    shown.end = End::Refused;
    let history = [
        transaction(0, 1, vec![Step::Append(1, 10)]),
        transaction(0, 1, vec![Step::Append(1, 11)]),
        shown,
    ];
    assert_eq!(judge(&history, &last(&[(1, &[10, 11])])), []);
    let wrong = judge(&history, &last(&[(1, &[11, 10])]));
    assert_found(&wrong, "neither the beginning");
}
