//! The output queue against a gate that is opened by hand.
//!
//! Each test tells what a session pushes and what settles, and reads what has left.

use base::error::{Error, SqlState};
use base::{Debt, Durability, GroupId, Lsn, Position, Term};

use crate::backend::{put_error, put_notice, Backend, DataRow, Severity, TransactionStatus};
use crate::frame::{Framer, Side};
use crate::output::{Content, Output, Undone};

/// Output, what each level has settled, and what has left.
#[derive(Default)]
struct Rig {
    output: Output,
    settled: [u64; 5],
    term: u64,
    left: Vec<u8>,
}

impl Rig {
    fn debt(&self, lsn: u64) -> Debt {
        let position = Position {
            term: Term(self.term),
            lsn: Lsn(lsn),
        };
        Debt::of(GroupId(1), position)
    }

    fn owe(&mut self, lsn: u64, level: Durability) {
        let debt = self.debt(lsn);
        self.output.owe(&debt, level);
    }

    fn tag(&mut self, tag: &str) {
        let message = Backend::CommandComplete(tag.as_bytes());
        self.output.push(Content::Tag, |out| message.encode(out));
    }

    fn row(&mut self, value: &str) {
        self.output.push(Content::Shown, |out| {
            let mut row = DataRow::begin(out, 1);
            row.value(Some(value.as_bytes()));
            row.finish();
        });
    }

    fn notice(&mut self, text: &str) {
        let notice = Error::new(SqlState::SUCCESSFUL_COMPLETION, text);
        self.output.push(Content::Shown, |out| {
            put_notice(out, Severity::Notice, &notice);
        });
        self.output.flush();
    }

    fn engine_error(&mut self) {
        self.output.push(Content::Free, |out| {
            put_error(out, Severity::Error, &Error::serialization("no"));
        });
    }

    fn end(&mut self, status: TransactionStatus) {
        self.output.end_cycle(status);
        self.output.end_message();
    }

    /// One message that commits at `lsn` and shows nothing.
    fn commit(&mut self, lsn: u64, tag: &str) {
        let commit = self.debt(lsn);
        self.output.committed(&commit);
        self.owe(lsn, Durability::On);
        self.tag(tag);
        self.end(TransactionStatus::Idle);
    }

    /// Everything up to `lsn` is durable at this level and the weaker ones.
    fn settle(&mut self, lsn: u64, level: Durability) {
        for weaker in Durability::ALL {
            if weaker <= level {
                let settled = &mut self.settled[weaker as usize];
                *settled = lsn.max(*settled);
            }
        }
    }

    fn cancel(&mut self) -> Undone {
        let settled = self.settled;
        let error = Error::from(base::coro::Interrupt::Cancel);
        self.output.cancel(&error, gate(&settled))
    }

    /// Lets out what may leave and shows it.
    fn leaves(&mut self) -> String {
        let settled = self.settled;
        self.output.open(gate(&settled));
        let writable = self.output.writable().to_vec();
        self.left.extend_from_slice(&writable);
        self.output.wrote(writable.len());
        super::transcript(&writable)
    }
}

fn gate(settled: &[u64; 5]) -> impl FnMut(&Debt, Durability) -> bool + '_ {
    |debt, level| {
        let settled = settled[level as usize];
        let mut parts = debt.groups();
        parts.all(|part| part.position.lsn.0 <= settled)
    }
}

use TransactionStatus::{Block, Failed, Idle};

#[test]
fn a_commit_is_held_until_its_level_is_reached() {
    let mut rig = Rig::default();
    rig.commit(10, "INSERT 0 1");
    assert_eq!(rig.leaves(), "");
    rig.settle(10, Durability::RemoteWrite);
    assert_eq!(rig.leaves(), "");
    assert!(rig.output.holds_outcome().is_some());
    rig.settle(10, Durability::On);
    assert_eq!(rig.leaves(), "INSERT 0 1, I");
    assert_eq!(rig.output.pending(), 0);
}

#[test]
fn what_owes_nothing_leaves_at_the_end_of_its_cycle() {
    let mut rig = Rig::default();
    rig.tag("BEGIN");
    assert_eq!(rig.leaves(), "");
    rig.end(Block);
    assert_eq!(rig.leaves(), "BEGIN, T");
}

#[test]
fn order_holds_back_what_owes_nothing() {
    let mut rig = Rig::default();
    rig.commit(10, "INSERT 0 1");
    rig.tag("SET");
    rig.end(Idle);
    rig.commit(12, "INSERT 0 1");
    rig.settle(10, Durability::On);
    assert_eq!(rig.leaves(), "INSERT 0 1, I, SET, I");
    rig.settle(12, Durability::On);
    assert_eq!(rig.leaves(), "INSERT 0 1, I");
}

#[test]
fn replies_that_become_due_together_leave_together() {
    let mut rig = Rig::default();
    for lsn in 10..20 {
        rig.commit(lsn, "OK");
    }
    rig.settle(19, Durability::On);
    assert_eq!(rig.leaves(), ["OK, I"; 10].join(", "));
}

#[test]
fn one_cycle_of_the_extended_protocol_waits_once_and_leaves_in_one_write() {
    let mut rig = Rig::default();
    rig.output
        .push(Content::Free, |out| Backend::BindComplete.encode(out));
    rig.owe(7, Durability::On);
    rig.tag("INSERT 0 1");
    rig.output.end_message();
    rig.output.committed(&Debt::NONE);
    rig.owe(9, Durability::On);
    rig.end(Idle);
    let owes = rig.output.waits_for().unwrap().clone();
    assert_eq!(owes.iter().next().unwrap().0, rig.debt(9));
    rig.settle(8, Durability::On);
    assert_eq!(rig.leaves(), "");
    rig.settle(9, Durability::On);
    assert_eq!(rig.leaves(), "bound, INSERT 0 1, I");
}

#[test]
fn a_notice_between_commits_of_one_statement_pays_what_was_committed() {
    let mut rig = Rig::default();
    rig.output.committed(&Debt::NONE);
    rig.owe(10, Durability::On);
    rig.notice("ten");
    rig.output.committed(&Debt::NONE);
    rig.owe(11, Durability::On);
    rig.tag("DO");
    rig.end(Idle);
    rig.settle(10, Durability::On);
    assert_eq!(rig.leaves(), "NOTICE 00000");
    rig.settle(11, Durability::On);
    assert_eq!(rig.leaves(), "DO, I");
}

#[test]
fn each_level_waits_for_its_own_debt() {
    let mut rig = Rig::default();
    rig.owe(10, Durability::Off);
    rig.owe(5, Durability::On);
    rig.tag("DO");
    rig.end(Idle);
    rig.settle(10, Durability::Off);
    rig.settle(4, Durability::On);
    assert_eq!(rig.leaves(), "");
    rig.settle(5, Durability::On);
    assert_eq!(rig.leaves(), "DO, I");
}

#[test]
fn errors_of_the_engine_owe_nothing_of_their_own() {
    let mut rig = Rig::default();
    rig.owe(10, Durability::On);
    rig.engine_error();
    rig.end(Failed);
    assert_eq!(rig.leaves(), "");
    rig.settle(10, Durability::On);
    assert_eq!(rig.leaves(), "ERROR 40001, E");

    let mut rig = Rig::default();
    rig.engine_error();
    rig.end(Failed);
    assert_eq!(rig.leaves(), "ERROR 40001, E");
}

#[test]
fn many_rows_leave_before_the_end_of_their_cycle() {
    let mut rig = Rig::default();
    rig.row(&"x".repeat(5_000));
    assert!(rig.output.writable().is_empty());
    rig.row(&"x".repeat(5_000));
    assert!(rig.output.writable().len() > 10_000);
    let count = rig.output.writable().len();
    rig.output.wrote(count);
    assert_eq!(rig.output.pending(), 0);
}

#[test]
fn a_commit_that_never_happened_is_answered_with_40001() {
    let mut rig = Rig::default();
    rig.commit(10, "INSERT 0 1");
    rig.tag("SET");
    rig.end(Idle);
    let undone = rig.output.fail(&Error::serialization("gone"));
    assert!(matches!(
        undone,
        Undone::Replaced {
            session_fails: false
        }
    ));
    assert_eq!(rig.leaves(), "ERROR 40001, I, SET, I");
}

#[test]
fn rows_that_cannot_stand_fail_their_block() {
    let mut rig = Rig::default();
    rig.owe(10, Durability::On);
    rig.row("1");
    rig.tag("SELECT 1");
    rig.end(Block);
    let undone = rig.output.fail(&Error::serialization("gone"));
    assert!(matches!(
        undone,
        Undone::Replaced {
            session_fails: true
        }
    ));
    assert_eq!(rig.leaves(), "ERROR 40001, E");
}

#[test]
fn the_rest_of_a_replaced_cycle_is_silent() {
    let mut rig = Rig::default();
    rig.output.committed(&Debt::NONE);
    rig.owe(10, Durability::On);
    rig.notice("ten");
    let undone = rig.output.fail(&Error::serialization("gone"));
    assert!(matches!(
        undone,
        Undone::Replaced {
            session_fails: true
        }
    ));
    rig.notice("eleven");
    rig.engine_error();
    rig.end(Idle);
    rig.tag("SET");
    rig.end(Idle);
    assert_eq!(rig.leaves(), "ERROR 40001, I, SET, I");
}

#[test]
fn a_block_with_more_behind_it_cannot_be_taken_back() {
    let mut rig = Rig::default();
    rig.owe(10, Durability::On);
    rig.row("1");
    rig.end(Block);
    rig.tag("INSERT 0 1");
    rig.end(Block);
    let undone = rig.output.fail(&Error::serialization("gone"));
    let Undone::Close(error) = undone else {
        panic!("{undone:?}");
    };
    assert_eq!(error.state(), SqlState::SERIALIZATION_FAILURE);
    rig.output.close(&error);
    assert_eq!(rig.leaves(), "FATAL 40001");
}

/// One query string that commits twice, the second time under a later term: what took the first
/// commit back need not have taken the second.
#[test]
fn a_commit_of_a_later_term_is_not_denied() {
    let mut rig = Rig::default();
    let first = rig.debt(10);
    rig.output.committed(&first);
    rig.owe(10, Durability::On);
    rig.tag("COMMIT");
    rig.term = 2;
    let second = rig.debt(11);
    rig.output.committed(&second);
    rig.owe(11, Durability::On);
    rig.tag("COMMIT");
    rig.end(Idle);
    let undone = rig.output.fail(&Error::serialization("gone"));
    let Undone::Unknown(commit) = undone else {
        panic!("{undone:?}");
    };
    // The newest: had it been made, so was the other.
    assert_eq!(commit, second);
}

#[test]
fn a_cancelled_wait_for_ones_own_commit_promises_only_local() {
    let mut rig = Rig::default();
    rig.commit(10, "INSERT 0 1");
    rig.settle(10, Durability::Local);
    assert!(matches!(rig.cancel(), Undone::Released));
    assert_eq!(rig.leaves(), "WARNING 01000, INSERT 0 1, I");
}

#[test]
fn a_cancelled_wait_before_the_local_flush_leaves_the_outcome_unknown() {
    let mut rig = Rig::default();
    rig.commit(10, "INSERT 0 1");
    let undone = rig.cancel();
    let Undone::Unknown(commit) = undone else {
        panic!("{undone:?}");
    };
    assert_eq!(commit, rig.debt(10));
}

#[test]
fn a_cancelled_wait_for_what_was_read_discards_it() {
    let mut rig = Rig::default();
    rig.owe(10, Durability::On);
    rig.row("1");
    rig.tag("SELECT 1");
    rig.end(Idle);
    assert!(rig.output.waits_for_read());
    assert!(matches!(
        rig.cancel(),
        Undone::Replaced {
            session_fails: false
        }
    ));
    assert_eq!(rig.leaves(), "ERROR 57014, I");
}

#[test]
fn rows_of_a_statement_that_has_committed_cannot_be_discarded() {
    let mut rig = Rig::default();
    rig.owe(9, Durability::On);
    rig.row("1");
    rig.commit(10, "INSERT 0 1");
    rig.settle(10, Durability::Local);
    let undone = rig.cancel();
    let Undone::Unknown(commit) = undone else {
        panic!("{undone:?}");
    };
    assert_eq!(commit, rig.debt(10));
}

#[test]
fn a_row_that_fails_half_way_leaves_no_trace() {
    let mut rig = Rig::default();
    let failed = rig.output.try_push(Content::Shown, |out| {
        out.extend_from_slice(b"half a row");
        Err(Error::internal("no such format"))
    });
    assert!(failed.is_err());
    rig.tag("OK");
    rig.end(Idle);
    assert_eq!(rig.leaves(), "OK, I");
}

#[test]
fn written_bytes_do_not_pile_up() {
    let mut rig = Rig::default();
    for lsn in 1..=2_000 {
        rig.owe(lsn, Durability::On);
        rig.row(&"x".repeat(200));
        rig.end(Idle);
        rig.settle(lsn.saturating_sub(3), Durability::On);
        rig.leaves();
        assert!(rig.output.pending() < 1_000);
    }
    rig.settle(2_000, Durability::On);
    rig.leaves();
    assert_eq!(rig.output.pending(), 0);
    let mut framer = Framer::new(Side::Backend);
    framer.feed(&rig.left);
    let mut count = 0;
    while framer.next().unwrap().is_some() {
        count += 1;
    }
    assert_eq!(count, 4_000);
}
