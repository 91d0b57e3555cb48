//! The gate, decision by decision.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use base::{Durability, Lsn, Position, Result, SqlState, Term};

use crate::gate::{Gate, Satisfied, Settle, Verdict};

fn at(term: u64, lsn: u64) -> Position {
    Position {
        term: Term(term),
        lsn: Lsn(lsn),
    }
}

fn raise(gate: &Gate, commit: Lsn, satisfied: Satisfied) {
    let mut released = Vec::new();
    gate.raise(commit, satisfied, &mut released);
    released.into_iter().for_each(Waker::wake);
}

fn numbers(local: u64, write: u64, on: u64, apply: u64) -> Satisfied {
    [0, local, write, on, apply].map(Lsn)
}

fn poll(settle: &mut Settle) -> Poll<Result<()>> {
    Pin::new(settle).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn each_level_has_its_own_number() {
    let gate = Gate::new(Lsn(2));
    raise(&gate, Lsn(5), numbers(9, 7, 5, 3));
    let settled = |lsn| Durability::ALL.map(|level| gate.is_settled(at(1, lsn), level));
    assert_eq!(settled(3), [true; 5]);
    assert_eq!(settled(4), [true, true, true, true, false]);
    assert_eq!(settled(6), [true, true, true, false, false]);
    assert_eq!(settled(8), [true, true, false, false, false]);
    assert_eq!(settled(10), [true, false, false, false, false]);
}

#[test]
fn a_waiter_is_released_when_its_number_is_reached() {
    let gate = Arc::new(Gate::new(Lsn(0)));
    let mut waiter = gate.settle(at(1, 5), Durability::On);
    assert!(poll(&mut waiter).is_pending());
    raise(&gate, Lsn(4), numbers(5, 5, 4, 4));
    assert!(poll(&mut waiter).is_pending());
    raise(&gate, Lsn(5), numbers(5, 5, 5, 4));
    assert_eq!(poll(&mut waiter), Poll::Ready(Ok(())));
}

#[test]
fn what_lies_above_a_cut_never_happened() {
    let gate = Arc::new(Gate::new(Lsn(3)));
    let mut below = gate.settle(at(1, 4), Durability::On);
    let mut above = gate.settle(at(1, 6), Durability::On);
    assert!(poll(&mut below).is_pending());
    assert!(poll(&mut above).is_pending());
    gate.cut(Term(2), Lsn(4), true);
    assert!(poll(&mut below).is_pending());
    let Poll::Ready(Err(error)) = poll(&mut above) else {
        panic!("it was taken back")
    };
    assert_eq!(error.state(), SqlState::SERIALIZATION_FAILURE);
    raise(&gate, Lsn(9), numbers(9, 9, 9, 9));
    assert_eq!(poll(&mut below), Poll::Ready(Ok(())));
    assert!(!gate.is_settled(at(1, 6), Durability::On));
    assert!(gate.is_settled(at(2, 6), Durability::On));
}

#[test]
fn a_lower_cut_covers_a_higher_one() {
    let gate = Gate::new(Lsn(3));
    gate.cut(Term(2), Lsn(4), true);
    raise(&gate, Lsn(8), numbers(8, 8, 8, 8));
    gate.cut(Term(4), Lsn(9), true);
    let level = Durability::On;
    raise(&gate, Lsn(20), numbers(20, 20, 20, 20));
    assert_eq!(gate.verdict(at(1, 5), level), Verdict::TakenBack);
    assert_eq!(gate.verdict(at(2, 5), level), Verdict::Settled);
    assert_eq!(gate.verdict(at(3, 10), level), Verdict::TakenBack);
    assert_eq!(gate.verdict(at(3, 9), level), Verdict::Settled);
    assert_eq!(gate.verdict(at(4, 12), level), Verdict::Settled);
}

#[test]
fn a_change_of_term_takes_back_all_but_the_commit_index() {
    let gate = Gate::new(Lsn(0));
    raise(&gate, Lsn(5), numbers(9, 8, 5, 5));
    gate.change_term(Lsn(5), numbers(5, 5, 5, 5));
    assert!(!gate.is_settled(at(1, 7), Durability::RemoteWrite));
    assert!(gate.is_settled(at(1, 5), Durability::RemoteWrite));
}

#[test]
fn a_closed_gate_keeps_nobody_waiting() {
    let gate = Arc::new(Gate::new(Lsn(3)));
    let mut waiter = gate.settle(at(1, 5), Durability::On);
    assert!(poll(&mut waiter).is_pending());
    gate.close();
    let Poll::Ready(Err(error)) = poll(&mut waiter) else {
        panic!("nobody will know")
    };
    assert_eq!(error.state(), SqlState::TRANSACTION_RESOLUTION_UNKNOWN);
}
