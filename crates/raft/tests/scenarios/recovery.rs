//! What a replica makes of its disk when it starts.

use std::cell::RefCell;
use std::rc::Rc;

use base::env::Instant;
use base::{GroupId, Lsn, NodeId, Position, Result, Term};
use raft::{Config, Consensus, Entry, EntryKind, HardState, LogView, Membership, Recovered, Role};

use crate::cluster::{Content, MemoryLog};

/// A log that goes on after LSN `before` of term 1, with entries of the terms given.
fn log(before: u64, terms: &[u64]) -> MemoryLog {
    let entries = terms.iter().zip(before + 1..).map(|(term, lsn)| Entry {
        term: Term(*term),
        lsn: Lsn(lsn),
        kind: EntryKind::Normal,
        data: vec![1],
    });
    let content = Content {
        before: Position {
            term: Term(u64::from(before > 0)),
            lsn: Lsn(before),
        },
        entries: entries.collect(),
        ..Content::default()
    };
    MemoryLog(Rc::new(RefCell::new(content)))
}

fn start(
    log: MemoryLog,
    term: u64,
    commit: u64,
    checkpoint: u64,
    voters: &[u64],
) -> Result<Consensus<MemoryLog>> {
    let voters: Vec<NodeId> = voters.iter().copied().map(NodeId).collect();
    let recovered = Recovered {
        hard_state: HardState {
            term: Term(term),
            vote: None,
            commit: Lsn(commit),
            ..HardState::default()
        },
        checkpoint: Lsn(checkpoint),
        membership: Membership::new(&voters, &[]),
        ..Recovered::default()
    };
    let config = Config::new(GroupId(1), NodeId(1), 1);
    Consensus::new(config, log, recovered, Instant(0))
}

#[test]
fn the_commit_index_is_raised_to_the_checkpoint() {
    let consensus = start(log(0, &[1, 1, 2]), 2, 1, 2, &[1, 2, 3]).unwrap();
    assert_eq!(consensus.committed(), Lsn(2));
    assert_eq!(consensus.last(), Lsn(3));
    assert_eq!(consensus.flushed(), Lsn(3));
}

#[test]
fn a_commit_index_ahead_of_the_log_is_cut() {
    let consensus = start(log(0, &[1, 1]), 1, 9, 0, &[1, 2, 3]).unwrap();
    assert_eq!(consensus.committed(), Lsn(2));
}

#[test]
fn a_compacted_log_goes_on_after_its_checkpoint() {
    let consensus = start(log(7, &[]), 1, 0, 7, &[1, 2, 3]).unwrap();
    assert_eq!(consensus.last(), Lsn(7));
    assert_eq!(consensus.entry_term(Lsn(7)), Some(Term(1)));
    assert_eq!(consensus.entry_term(Lsn(8)), None);
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let refused = |result: Result<Consensus<MemoryLog>>| {
        let error = result.err().expect("an error");
        assert_eq!(error.class(), base::ErrorClass::Node, "{error}");
    };
    // A checkpoint beyond the log, a gap after the checkpoint, a forgotten term, no voters.
    refused(start(log(0, &[1, 1]), 1, 0, 3, &[1, 2, 3]));
    refused(start(log(7, &[1]), 1, 0, 5, &[1, 2, 3]));
    refused(start(log(0, &[1, 4]), 3, 0, 0, &[1, 2, 3]));
    refused(start(log(0, &[1]), 1, 0, 0, &[]));
}

#[test]
fn a_sole_voter_leads_at_its_first_tick_even_after_a_restart() {
    let log = log(0, &[1, 1]);
    let mut consensus = start(log.clone(), 1, 0, 0, &[1]).unwrap();
    consensus.tick(consensus.next_tick());
    assert_eq!(consensus.role(), Role::Leader);
    let ready = consensus.ready().unwrap().expect("a first entry");
    assert!(ready.must_sync);
    assert_eq!(ready.entries[0].kind, EntryKind::Empty);
    log.0.borrow_mut().entries.extend(ready.entries);
    consensus.advance(ready.number);
    assert_eq!(consensus.committed(), Lsn(0), "not before it is flushed");
    consensus.persisted(ready.number, Instant(0));
    assert_eq!(consensus.committed(), Lsn(3));
    assert_eq!(log.last(), Lsn(3));
}

#[test]
fn late_ticks_are_not_made_up() {
    let mut consensus = start(log(0, &[]), 0, 0, 0, &[1, 2, 3]).unwrap();
    // An hour passes at once: that is one tick, and no reason to stand for election.
    for seconds in [3_600, 7_200, 10_800] {
        consensus.tick(Instant(seconds * 1_000_000_000));
        assert_eq!(consensus.role(), Role::Follower);
    }
}
