//! The inputs of a hash join whose right one does not fit in memory, divided by the hash.
//!
//! ```text
//! left   ─► ▪▪▪ │ ▪▪▪ │ ▪▪▪▪      equal keys are in the same pair of parts;
//! right  ─► ▪▪  │ ▪▪▪ │ ▪▪▪▪▪▪▪   each pair is a join of its own
//! ```
//! A right part that is still too large is divided again, with its left one, unless one key has all of
//! it or it was divided often enough: then it is taken in pieces that fit, and the left part is gone
//! over for each piece.
//!
//! # Invariants
//! - Of a part in pieces it is noted which left rows had a pair: each is shown without one, or for
//!   having one, once.

use base::memory::Reservation;
use base::Result;

use super::parts::Part;
use crate::spool::{Spill, SpoolReader, Spooled};
use planner::plan::{JoinKind, Row};

/// So often a part is divided again.
pub const LEVELS_MAX: u32 = 4;

/// Rows of both sides that may have equal keys.
pub struct Pair {
    left: Spooled,
    right: Spooled,
    level: u32,
}

/// What is left of such a join.
pub struct SpilledJoin {
    /// How large a piece may be.
    pub spill: Spill,
    kind: JoinKind,
    pending: Vec<Pair>,
    at_work: Option<AtWork>,
}

/// The pair at work.
struct AtWork {
    pair: Pair,
    left: SpoolReader,
    right: SpoolReader,
    /// The number of the next left row.
    next: usize,
    /// Whether there is no further piece.
    is_last: bool,
    /// Which left rows had a pair, where there are several pieces.
    matched: Vec<bool>,
    held: Reservation,
}

impl SpilledJoin {
    /// A join whose inputs are divided into these parts, by their numbers.
    pub fn new(spill: Spill, kind: JoinKind, left: Vec<Part>, right: Vec<Part>) -> SpilledJoin {
        let mut join = SpilledJoin {
            spill,
            kind,
            pending: Vec::new(),
            at_work: None,
        };
        join.add(left, right);
        join
    }

    /// Whether a left row counts where there is no right one.
    pub fn needs_left(kind: JoinKind) -> bool {
        matches!(kind, JoinKind::Left | JoinKind::Full | JoinKind::Anti)
    }

    /// Whether a right row counts where there is no left one.
    pub fn needs_right(kind: JoinKind) -> bool {
        matches!(kind, JoinKind::Right | JoinKind::Full)
    }

    fn add(&mut self, left: Vec<Part>, right: Vec<Part>) {
        let kind = self.kind;
        let pairs = left.into_iter().zip(right).filter_map(|(left, right)| {
            let counts = match (left.rows.is_empty(), right.rows.is_empty()) {
                (true, true) => false,
                (true, false) => SpilledJoin::needs_right(kind),
                (false, true) => SpilledJoin::needs_left(kind),
                (false, false) => true,
            };
            counts.then_some(Pair {
                left: left.rows,
                right: right.rows,
                level: left.level,
            })
        });
        self.pending.extend(pairs);
    }

    /// Whether the piece at work is the last of its part.
    pub fn is_part_done(&self) -> bool {
        self.at_work.as_ref().is_none_or(|work| work.is_last)
    }

    /// Puts the next pair to work; its level, or none when there are no more.
    pub fn begin_pair(&mut self) -> Option<u32> {
        self.at_work = None;
        let pair = self.pending.pop()?;
        let level = pair.level;
        self.at_work = Some(AtWork {
            pair,
            left: SpoolReader::new(),
            right: SpoolReader::new(),
            next: 0,
            is_last: false,
            matched: Vec::new(),
            held: Reservation::of("A join"),
        });
        Some(level)
    }

    /// The next right row of the pair; false at its end.
    ///
    /// # Errors
    /// What reading raises.
    pub fn next_right(&mut self, row: &mut Row) -> Result<bool> {
        let Some(work) = &mut self.at_work else {
            return Ok(false);
        };
        let is_there = work.right.next_into(&work.pair.right, row)?;
        work.is_last |= !is_there;
        Ok(is_there)
    }

    /// The next left row of the pair; false at its end.
    ///
    /// # Errors
    /// What reading raises.
    pub fn next_left(&mut self, row: &mut Row) -> Result<bool> {
        let Some(work) = &mut self.at_work else {
            return Ok(false);
        };
        let is_there = work.left.next_into(&work.pair.left, row)?;
        work.next += usize::from(is_there);
        Ok(is_there)
    }

    /// Another piece of the right part begins, for which the left one is gone over from its start.
    ///
    /// # Errors
    /// 53200 when there is no memory to note which left rows have a pair.
    pub fn begin_piece(&mut self) -> Result<()> {
        let Some(work) = &mut self.at_work else {
            return Ok(());
        };
        work.left.restart();
        work.next = 0;
        if !work.is_last && work.matched.is_empty() {
            let rows = work.pair.left.len();
            work.held.grow(rows)?;
            work.matched.resize(rows, false);
        }
        Ok(())
    }

    /// The parts into which the pair at work was divided take its place.
    pub fn replace(&mut self, left: Vec<Part>, right: Vec<Part>) {
        self.at_work = None;
        self.add(left, right);
    }

    /// Whether the left row that was read last had a pair in an earlier piece.
    pub fn had_match(&self) -> bool {
        let work = self.at_work.as_ref();
        work.is_some_and(|work| {
            let place = work.next.wrapping_sub(1);
            work.matched.get(place).copied().unwrap_or(false)
        })
    }

    /// The left row that was read last has or has not a pair in this piece: whether it is shown now, for
    /// having one or for having none.
    pub fn gives(&mut self, matched: bool) -> bool {
        let before = self.had_match();
        let mut is_last = true;
        if let Some(work) = &mut self.at_work {
            is_last = work.is_last;
            if let Some(known) = work.matched.get_mut(work.next.wrapping_sub(1)) {
                *known |= matched;
            }
        }
        match self.kind {
            JoinKind::Semi => matched && !before,
            JoinKind::Anti | JoinKind::Left | JoinKind::Full => is_last && !(matched || before),
            JoinKind::Inner | JoinKind::Right => false,
        }
    }
}
