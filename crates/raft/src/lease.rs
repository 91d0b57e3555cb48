//! The leader's lease: until when nobody else can have been elected.
//!
//! A leader with a lease may serve reads from its own tree without asking anybody. The consensus
//! library's own notion of a lease looks at no clock, so this one is ours, and independent of it.
//!
//! # How it runs
//! ```text
//! leader    ──s─────────────────────────────── s + E − drift ┤ the lease ends
//!             ╲ LeaseRequest(round, E) ╱ LeaseResponse
//! voter     ───╲────t─────────────────╱─────────────── t + E ┤ may vote again
//! ```
//! With every heartbeat a leader asks its followers ([`Rounds::begin`]), and remembers when it
//! asked, `s`, for its own election timeout E. A follower of this leader in this term answers, and
//! from then on, `t`, neither votes nor campaigns for E on its own clock, or for its own election
//! timeout if that is longer ([`Promise`]). Once the answers cover a majority (both majorities of a
//! joint configuration), the leader has a lease until E − drift after the sending of the oldest
//! round that the majority needs. So nodes need not agree on the election timeout.
//!
//! # Why no two leases overlap, and no lease survives another leader's election
//! Let a leader L hold a lease in term T at the real time x, and suppose somebody was elected in a
//! term above T before x. Take the first such election; let its winner be N.
//!
//! 1. Its votes come from a majority, and L's answers came from a majority, so some voter V gave
//!    both (configurations that two replicas act on at one time are the same or neighbours, and
//!    majorities of neighbours meet).
//! 2. V did not vote for N before it answered: then its term would have been above T, and an
//!    answer is given only in term T itself.
//! 3. So V voted after it answered, at t. Until t + E on its clock it drops every request for a
//!    vote and does not campaign. If it restarted in between, it has forgotten that; but its disk
//!    had a length of at least E before it answered, and a restarted voter is banned from both for
//!    the length that is there, or for its own election timeout if that is longer, from its start,
//!    which lies after t.
//! 4. The only way around the promise is a leadership transfer. The leader of term T starts one
//!    only after it has given up its lease for the rest of T; a transfer of an earlier term asks
//!    for votes in a term of at most T; and one of a later term presupposes an election before
//!    N's. So the vote was not forced, and lies at least E of V's clock after t ≥ s.
//! 5. The lease ends E − drift of L's clock after s. As long as E − drift of L's clock is not
//!    longer than E of V's, that is before V's vote. With clocks whose rates differ from true by
//!    at most r, drift ≥ 2·r·E/(1+r) suffices; [`DRIFT_DIVISOR`] makes that a tenth of E.
//!
//! The leader counts itself. That is a promise too: when it steps down it keeps it, by dropping
//! requests for votes until its lease has ended.
//!
//! # What the driver owes
//! * The clock it passes with a message was read after the message had arrived.
//! * The clock it checks a lease with was read after the snapshot was taken.
//! * The clock counts time in suspend.
//!
//! A voter that stood still wakes with its promise run out by the clock, which is right: the time
//! did pass. Election ticks, in contrast, are never made up, so it does not campaign at once.

use std::collections::VecDeque;
use std::time::Duration;

use base::env::Instant;
use base::hash::HashMap;
use base::{NodeId, Term};

use crate::planted::{is_planted, Bug};
use crate::types::Membership;
use crate::watermarks::majority;

/// A lease is shorter than the election timeout by its one in so many parts.
pub const DRIFT_DIVISOR: u32 = 10;

/// Questions whose answers are still counted; answers to older ones come too late to matter.
pub const ROUNDS_MAX: usize = 64;

/// Until when a leader may serve reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The leader's term.
    pub term: Term,
    /// Valid before this instant; the last instant of all in a group of one voter.
    pub until: Instant,
}

impl Lease {
    /// Whether it holds at an instant, which must have been read after the snapshot was taken.
    pub fn is_valid(&self, now: Instant) -> bool {
        now < self.until
    }
}

/// The default allowance for clocks that do not run equally fast.
pub fn default_drift(election_timeout: Duration) -> Duration {
    election_timeout / DRIFT_DIVISOR
}

/// A leader's questions of one term and their answers.
#[derive(Debug)]
pub(crate) struct Rounds {
    term: Term,
    /// Election timeout less drift.
    length: Duration,
    next: u64,
    /// When each unanswered question was asked, oldest first.
    asked: VecDeque<(u64, Instant)>,
    /// For each voter, when the newest question that it answered was asked.
    answered: HashMap<NodeId, Instant>,
    given_up: bool,
}

impl Rounds {
    pub(crate) fn new(term: Term, length: Duration) -> Rounds {
        Rounds {
            term,
            length,
            next: 1,
            asked: VecDeque::new(),
            answered: HashMap::default(),
            given_up: false,
        }
    }

    /// Begins a question, which is asked at once or later.
    pub(crate) fn begin(&mut self, now: Instant) -> u64 {
        let round = self.next;
        self.next += 1;
        self.asked.push_back((round, now));
        if self.asked.len() > ROUNDS_MAX {
            self.asked.pop_front();
        }
        round
    }

    /// The newest question.
    pub(crate) fn newest(&self) -> u64 {
        self.next - 1
    }

    /// Takes an answer.
    pub(crate) fn answer(&mut self, from: NodeId, round: u64) {
        let Some((_, asked)) = self.asked.iter().find(|(asked, _)| *asked == round) else {
            return;
        };
        let newest = self.answered.entry(from).or_insert(*asked);
        *newest = (*newest).max(*asked);
    }

    /// No lease any more in this term.
    pub(crate) fn give_up(&mut self) {
        self.given_up = true;
    }

    /// Whether the lease was given up.
    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up
    }

    /// As if it never had been: wrong, and only for [`crate::planted`].
    pub(crate) fn forget_that_it_was_given_up(&mut self) {
        self.given_up = false;
    }

    /// The lease under this membership, if a majority ever answered.
    pub(crate) fn lease(&self, leader: NodeId, membership: &Membership) -> Option<Lease> {
        if self.given_up {
            return None;
        }
        let asked = majority(membership, |node| {
            if node == leader {
                return u64::MAX;
            }
            self.answered.get(&node).map_or(0, |asked| asked.0)
        });
        match asked {
            0 => None,
            asked => Some(Lease {
                term: self.term,
                until: Instant(asked).after(self.length),
            }),
        }
    }
}

/// A voter's word not to take part in electing another leader, and what its disk knows of how long
/// such a word may be.
///
/// Invariant: no answer that rests on a promise leaves before [`Promise::is_kept`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Promise {
    /// Neither votes nor campaigns before this.
    until: Instant,
    /// Votes for a leadership transfer neither: set by a restart.
    strict_until: Instant,
    /// The replica's own election timeout: none of its promises is shorter.
    own: Duration,
    /// The longest promise of this life.
    given: Duration,
    /// The longest promise of an earlier life that may not have run out.
    inherited: Duration,
    /// What the disk has after a crash at any moment, at least.
    kept: Duration,
    /// What it has once everything handed out for it is there.
    handed_out: Duration,
}

impl Promise {
    /// Of a replica that never took part in anything.
    pub(crate) fn new(own: Duration) -> Promise {
        Promise {
            own,
            ..Promise::default()
        }
    }

    /// After a restart nothing is known of promises but how long they may have been, so everything
    /// is taken for promised.
    pub(crate) fn after_restart(now: Instant, own: Duration, kept: Duration) -> Promise {
        let until = now.after(own.max(kept));
        Promise {
            until,
            strict_until: until,
            inherited: kept,
            kept,
            handed_out: kept,
            ..Promise::new(own)
        }
    }

    /// Promises, at an instant, what a leader asks for, and its own election timeout at least.
    pub(crate) fn give(&mut self, now: Instant, asked: Duration) {
        let length = match is_planted(Bug::PromiseByOwnSetting) {
            true => self.own,
            false => asked.max(self.own),
        };
        self.given = self.given.max(length);
        self.extend(now.after(length));
    }

    /// Extends the promise by what this replica, as a leader, counted on itself.
    pub(crate) fn extend(&mut self, until: Instant) {
        self.until = self.until.max(until);
    }

    /// Forgets promises of an earlier life that have run out.
    pub(crate) fn forget_expired(&mut self, now: Instant) {
        if now >= self.strict_until {
            self.inherited = Duration::ZERO;
        }
    }

    /// What the disk should have: by a leader's own election timeout its lease counts on itself.
    fn wanted(&self) -> Duration {
        self.own.max(self.given).max(self.inherited)
    }

    /// Whether the disk has all that was promised, so that answers may leave.
    pub(crate) fn is_kept(&self) -> bool {
        self.given <= self.kept
    }

    /// Whether what was promised has still to be handed out for the disk.
    pub(crate) fn is_to_be_kept(&self) -> bool {
        self.given > self.handed_out
    }

    /// What is handed out for the disk now.
    pub(crate) fn hand_out(&mut self) -> Duration {
        self.handed_out = self.wanted();
        self.kept = self.kept.min(self.handed_out);
        self.handed_out
    }

    /// All that was handed out is on disk.
    pub(crate) fn persisted(&mut self) {
        self.kept = self.handed_out;
    }

    /// Whether a vote may be given, or asked for, now.
    pub(crate) fn allows(&self, now: Instant, transfer: bool) -> bool {
        if transfer {
            now >= self.strict_until
        } else {
            now >= self.until
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consensus::ELECTION_TIMEOUT;

    /// Clocks whose rates are off by at most this, in thousandths, keep leases apart.
    const RATE_ERROR: u128 = 50;

    #[test]
    fn the_drift_covers_clocks_that_are_off_by_a_twentieth() {
        let timeout = ELECTION_TIMEOUT.as_nanos();
        let lease = (ELECTION_TIMEOUT - default_drift(ELECTION_TIMEOUT)).as_nanos();
        // In true time: the lease on the slowest clock, the promise on the fastest.
        let longest_lease = lease * 1000 / (1000 - RATE_ERROR);
        let shortest_promise = timeout * 1000 / (1000 + RATE_ERROR);
        assert!(
            longest_lease <= shortest_promise,
            "{longest_lease} > {shortest_promise}"
        );
    }

    fn rounds() -> Rounds {
        Rounds::new(Term(1), Duration::from_nanos(100))
    }

    fn until(rounds: &Rounds, membership: &Membership) -> Option<u64> {
        rounds
            .lease(NodeId(1), membership)
            .map(|lease| lease.until.0)
    }

    #[test]
    fn a_lease_runs_from_the_oldest_question_that_the_majority_needs() {
        let five = Membership::new(&[1, 2, 3, 4, 5].map(NodeId), &[]);
        let mut rounds = rounds();
        let first = rounds.begin(Instant(10));
        let second = rounds.begin(Instant(20));
        rounds.answer(NodeId(2), second);
        assert_eq!(until(&rounds, &five), None);
        rounds.answer(NodeId(3), first);
        assert_eq!(until(&rounds, &five), Some(110));
        rounds.answer(NodeId(9), second);
        assert_eq!(until(&rounds, &five), Some(110), "no voter");
        rounds.answer(NodeId(4), second);
        assert_eq!(until(&rounds, &five), Some(120));
        rounds.answer(NodeId(2), first);
        assert_eq!(until(&rounds, &five), Some(120), "answers do not go back");
        rounds.give_up();
        assert_eq!(until(&rounds, &five), None);
    }

    #[test]
    fn a_joint_configuration_needs_both_majorities() {
        let mut joint = Membership::new(&[1, 2, 3].map(NodeId), &[]);
        joint.outgoing = [1, 4, 5].map(NodeId).to_vec();
        let mut rounds = rounds();
        let round = rounds.begin(Instant(10));
        rounds.answer(NodeId(2), round);
        rounds.answer(NodeId(3), round);
        assert_eq!(until(&rounds, &joint), None);
        rounds.answer(NodeId(4), round);
        assert_eq!(until(&rounds, &joint), Some(110));
    }

    #[test]
    fn a_sole_voter_always_has_it() {
        let alone = Membership::new(&[NodeId(1)], &[NodeId(2)]);
        assert_eq!(until(&rounds(), &alone), Some(u64::MAX));
    }

    #[test]
    fn an_answer_to_nothing_asked_counts_for_nothing() {
        let three = Membership::new(&[1, 2, 3].map(NodeId), &[]);
        let mut rounds = rounds();
        rounds.answer(NodeId(2), 1);
        assert_eq!(until(&rounds, &three), None);
    }
}
