//! The very source of the gate under a model checker (`base/src/model.rs` says what that shows and
//! what not).

#[allow(dead_code, clippy::duplicate_mod)]
#[path = "../../base/src/model/threads.rs"]
mod threads;

#[allow(dead_code, clippy::duplicate_mod)]
#[path = "../../base/src/sync.rs"]
mod sync;

#[allow(dead_code, clippy::duplicate_mod)]
#[path = "gate.rs"]
mod gate;

use std::sync::Arc;
use std::task::Waker;

use base::{Durability, Lsn, Position, SqlState, Term};
use gate::Gate;

use shuttle::future::block_on;
use shuttle::thread;
use threads::check;

fn at(term: u64, lsn: u64) -> Position {
    Position {
        term: Term(term),
        lsn: Lsn(lsn),
    }
}

fn raise(gate: &Gate, lsn: u64) {
    let mut released = Vec::new();
    gate.raise(Lsn(lsn), [Lsn(lsn); 5], &mut released);
    released.into_iter().for_each(Waker::wake);
}

#[test]
fn whoever_waits_is_released_at_its_position() {
    check(|| {
        let gate = Arc::new(Gate::new(Lsn(0)));
        let waiters = [2, 5, 5].map(|lsn| {
            let gate = gate.clone();
            thread::spawn(move || {
                block_on(gate.settle(at(1, lsn), Durability::On)).unwrap();
                assert!(gate.commit() >= Lsn(lsn));
                assert!(gate.is_settled(at(1, lsn), Durability::On));
            })
        });
        for lsn in [2, 4, 6] {
            raise(&gate, lsn);
        }
        let [_, _, _] = waiters.map(|waiter| waiter.join().unwrap());
    });
}

/// The log is cut below a position and grows beyond it again, while somebody looks whether a reply
/// that rests on it may leave.
#[test]
fn what_was_cut_is_never_settled_by_what_came_after() {
    check(|| {
        let gate = Arc::new(Gate::new(Lsn(3)));
        let looks = gate.clone();
        let looks = thread::spawn(move || {
            assert!(!looks.is_settled(at(1, 6), Durability::On));
            let below = looks.is_settled(at(1, 4), Durability::On);
            assert!(!below || looks.commit() >= Lsn(4));
        });
        let waits = gate.clone();
        let waits = thread::spawn(move || {
            let error = block_on(waits.settle(at(1, 6), Durability::On)).unwrap_err();
            assert_eq!(error.state(), SqlState::SERIALIZATION_FAILURE);
        });
        gate.cut(Term(2), Lsn(4), true);
        raise(&gate, 7);
        assert!(gate.is_settled(at(2, 6), Durability::On));
        looks.join().unwrap();
        waits.join().unwrap();
    });
}

#[test]
fn a_gate_that_closes_forgets_nobody() {
    check(|| {
        let gate = Arc::new(Gate::new(Lsn(0)));
        let waiters = [1, 2].map(|lsn| {
            let gate = gate.clone();
            thread::spawn(move || block_on(gate.settle(at(1, lsn), Durability::RemoteWrite)))
        });
        let raises = gate.clone();
        let raises = thread::spawn(move || raise(&raises, 1));
        gate.close();
        let [one, two] = waiters.map(|waiter| waiter.join().unwrap());
        raises.join().unwrap();
        let unknown =
            |error: base::Error| error.state() == SqlState::TRANSACTION_RESOLUTION_UNKNOWN;
        assert!(one.is_ok() || one.is_err_and(unknown));
        assert!(two.is_err_and(unknown));
    });
}
