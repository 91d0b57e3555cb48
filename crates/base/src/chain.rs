//! The chain of a log: one number for all entries up to one.
//!
//! Term and LSN name an entry as long as every voter remembers whom it voted for. Where one has
//! forgotten, two leaders of one term may have given the same LSN to different entries, and nothing
//! in the two numbers shows it. The chain does: it covers the content of every entry before.
//!
//! ```text
//!  n1   (3, 40) chain a   (3, 41) insert 7   chain b   (3, 42) … chain c
//!  n2   (3, 40) chain a   (3, 41) insert 8   chain x   (3, 42) … chain y
//! ```
//! Each link is the CRC-32C of the link before and of the entry's digest, which is the CRC-32C of its
//! term, LSN, kind and content: of bytes that are at hand when they are framed for the disk anyway.
//!
//! # What it leaves out
//! Two histories have the same chain by accident once in 2³²; nobody is defended against who wants
//! that. Logs of earlier builds that do not go back to the first entry have no chain, until an entry
//! of the kind [`BEGINS`], which its leader logs for that reason, begins one for everybody.

use crate::codec::{checksum, checksum_append};
use crate::ids::Position;

/// The kind of an entry with which a chain begins anew.
pub const BEGINS: u8 = 3;

/// The chain up to one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Chain(pub u32);

impl Chain {
    /// That of no entries at all.
    pub const START: Chain = Chain(0);

    /// The chain behind an entry, if that before it is known or the entry begins one.
    pub fn next(before: Option<Chain>, kind: u8, digest: u32) -> Option<Chain> {
        let before = match kind {
            BEGINS => Chain::START,
            _ => before?,
        };
        Some(Chain(checksum_append(before.0, &digest.to_le_bytes())))
    }
}

/// The digest of an entry.
pub fn digest(position: Position, kind: u8, data: &[u8]) -> u32 {
    let mut head = [kind; 17];
    head[..8].copy_from_slice(&position.term.0.to_le_bytes());
    head[8..16].copy_from_slice(&position.lsn.0.to_le_bytes());
    checksum_append(checksum(&head), data)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Lsn, Term};

    fn chain(before: Option<Chain>, lsn: u64, kind: u8, data: &[u8]) -> Option<Chain> {
        let position = Position {
            term: Term(3),
            lsn: Lsn(lsn),
        };
        Chain::next(before, kind, digest(position, kind, data))
    }

    #[test]
    fn a_difference_stays() {
        let start = Some(Chain::START);
        let (mut one, mut other) = (chain(start, 1, 1, b"a"), chain(start, 1, 1, b"b"));
        for lsn in 2..1_000 {
            assert_ne!(one, other, "{lsn}");
            one = chain(one, lsn, 1, b"same");
            other = chain(other, lsn, 1, b"same");
        }
        assert_ne!(chain(start, 1, 0, b""), chain(start, 1, 1, b""));
        assert_ne!(chain(start, 1, 1, b""), chain(start, 2, 1, b""));
    }

    #[test]
    fn what_is_not_known_is_not_until_a_chain_begins() {
        assert_eq!(chain(None, 7, 1, b"a"), None);
        let begun = chain(None, 8, BEGINS, b"x");
        assert!(begun.is_some());
        assert_eq!(chain(Some(Chain(77)), 8, BEGINS, b"x"), begun);
    }
}
