//! Comparing the logs of replicas that are stopped: whether they are of one history.
//!
//! ```text
//! n1   base 40 ──────────────────────── last 95      commit 90
//! n2            base 60 ────────────────────── last 97   commit 93
//!                   compared: 60 … 95
//! ```
//! Where the two agree at the end of what both have, they do everywhere, because the
//! [chain](base::chain) covers all before. Where they do not, the first difference says from where on
//! they are two histories. At the end of a log that is no damage: what a leader could not spread is
//! replaced when it follows the next one.

use base::{Chain, Lsn, Position, Term};

/// What the log of one replica says of its history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// The position before the first entry.
    pub base: Position,
    /// The chain there, if it is known.
    pub base_chain: Option<Chain>,
    /// Up to here at least everything is committed, as the replica knew.
    pub commit: Lsn,
    /// Term and chain of each entry.
    pub entries: Vec<(Term, Option<Chain>)>,
}

/// What two histories are to one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// One history up to here, where the shorter ends, or where what nobody committed begins.
    One(Lsn),
    /// Two from this LSN on.
    Two(Lsn),
    /// They were two before the first LSN that both logs have.
    TwoBefore(Lsn),
    /// The log of one ends before that of the other begins.
    Apart,
}

impl History {
    /// The last LSN.
    pub fn last(&self) -> Lsn {
        Lsn(self.base.lsn.0 + self.entries.len() as u64)
    }

    fn at(&self, lsn: Lsn) -> Option<(Term, Option<Chain>)> {
        match lsn.0.checked_sub(self.base.lsn.0)? {
            0 => Some((self.base.term, self.base_chain)),
            above => self.entries.get(above as usize - 1).copied(),
        }
    }

    /// Compares it with that of another replica of the group.
    pub fn compare(&self, other: &History) -> Compared {
        let first = self.base.lsn.max(other.base.lsn);
        let last = self.last().min(other.last());
        if first > last {
            return Compared::Apart;
        }
        let committed = self.commit.min(other.commit);
        for lsn in (first.0..=last.0).map(Lsn) {
            let (Some(mine), Some(theirs)) = (self.at(lsn), other.at(lsn)) else {
                return Compared::Apart;
            };
            let differ_in_chain = matches!((mine.1, theirs.1), (Some(a), Some(b)) if a != b);
            match mine.0 == theirs.0 {
                true if !differ_in_chain => {}
                // The end of one of the two is taken back when they meet.
                false if lsn > committed => return Compared::One(lsn.prev()),
                _ if lsn == first => return Compared::TwoBefore(lsn),
                _ => return Compared::Two(lsn),
            }
        }
        Compared::One(last)
    }
}

/// Which replicas agree, given whether two of them do: the most first.
///
/// It is enough to agree with the first of those who agree: a chain covers all before it.
pub fn agreeing(count: usize, agree: impl Fn(usize, usize) -> bool) -> Vec<Vec<usize>> {
    let mut parties: Vec<Vec<usize>> = Vec::new();
    for replica in 0..count {
        match parties.iter_mut().find(|party| agree(party[0], replica)) {
            Some(party) => party.push(replica),
            None => parties.push(vec![replica]),
        }
    }
    parties.sort_by_key(|party| std::cmp::Reverse(party.len()));
    parties
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(base: u64, commit: u64, entries: &[(u64, u32)]) -> History {
        let entry = |(term, chain): &(u64, u32)| (Term(*term), Some(Chain(*chain)));
        History {
            base: Position {
                term: Term(1),
                lsn: Lsn(base),
            },
            base_chain: Some(Chain(base as u32)),
            commit: Lsn(commit),
            entries: entries.iter().map(entry).collect(),
        }
    }

    #[test]
    fn the_first_difference_is_found() {
        let one = history(0, 4, &[(1, 1), (1, 2), (2, 3), (2, 4)]);
        assert_eq!(one.compare(&one), Compared::One(Lsn(4)));
        let shorter = history(2, 2, &[(2, 3)]);
        assert_eq!(one.compare(&shorter), Compared::One(Lsn(3)));
        // Two leaders of one term.
        let other = history(0, 4, &[(1, 1), (1, 2), (2, 9), (2, 8), (2, 7)]);
        assert_eq!(one.compare(&other), Compared::Two(Lsn(3)));
        assert_eq!(other.compare(&one), Compared::Two(Lsn(3)));
        // A tail that nobody committed, and one that somebody did.
        let tail = history(0, 2, &[(1, 1), (1, 2), (1, 5)]);
        assert_eq!(one.compare(&tail), Compared::One(Lsn(2)));
        let lost = history(0, 3, &[(1, 1), (1, 2), (1, 5)]);
        assert_eq!(one.compare(&lost), Compared::Two(Lsn(3)));
        let compacted = History {
            base_chain: Some(Chain(77)),
            ..history(2, 4, &[(2, 78)])
        };
        assert_eq!(one.compare(&compacted), Compared::TwoBefore(Lsn(2)));
        assert_eq!(one.compare(&history(9, 9, &[])), Compared::Apart);
        let unknown = History {
            entries: vec![(Term(1), None), (Term(1), None), (Term(2), None)],
            ..history(0, 3, &[])
        };
        assert_eq!(one.compare(&unknown), Compared::One(Lsn(3)));
    }
    #[test]
    fn the_most_who_agree_come_first() {
        let values = [1, 2, 3, 2, 2, 1];
        let parties = agreeing(values.len(), |a, b| values[a] == values[b]);
        assert_eq!(parties, [vec![1, 3, 4], vec![0, 5], vec![2]]);
    }
}
