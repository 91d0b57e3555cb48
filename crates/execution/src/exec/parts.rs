//! Rows divided by a hash: what does not fit in memory is worked through a part at a time.
//!
//! ```text
//! rows ─► part 0 ▪▪▪▪    each in scratch space; equal rows are in one part,
//!      ─► part 1 ▪▪▪     in the order in which they came
//!      ─► part 2 ▪▪▪▪▪ ─► too large still: divided again, one level deeper, by other bits
//! ```
//! # Invariants
//! - Levels divide independently of one another, as long as hashes differ: whoever divides again says
//!   what happens to rows of one hash.

use base::Result;

use crate::spool::{Spill, SpoolWriter, Spooled};
use types::Datum;

/// Rows that are being divided.
pub struct Parts {
    writers: Vec<SpoolWriter>,
    level: u32,
}

/// Rows of one part, and the level by which it was divided.
pub struct Part {
    /// The rows.
    pub rows: Spooled,
    /// From 0 on.
    pub level: u32,
}

impl Parts {
    /// No rows yet, to be divided on that level, for what an error names so.
    pub fn new(spill: &Spill, what: &'static str, level: u32) -> Parts {
        let writer = || SpoolWriter::new(spill, what);
        Parts {
            writers: (0..spill.parts()).map(|_| writer()).collect(),
            level,
        }
    }

    /// The part of a hash.
    pub fn part_of(&self, hash: u64) -> usize {
        (mixed(hash, self.level) % self.writers.len() as u64) as usize
    }

    /// Puts a row to others of its hash.
    ///
    /// # Errors
    /// As [`SpoolWriter::push`].
    pub fn push(&mut self, hash: u64, row: &[Datum]) -> Result<()> {
        let part = self.part_of(hash);
        self.writers[part].push(row)
    }

    /// All parts, in the order of their numbers.
    ///
    /// # Errors
    /// As [`SpoolWriter::push`].
    pub fn finish(self) -> Result<Vec<Part>> {
        let level = self.level;
        let part = |writer: SpoolWriter| {
            let rows = writer.finish()?;
            Ok(Part { rows, level })
        };
        self.writers.into_iter().map(part).collect()
    }

    /// The parts that have rows.
    ///
    /// # Errors
    /// As [`SpoolWriter::push`].
    pub fn finish_filled(self) -> Result<impl Iterator<Item = Part>> {
        let parts = self.finish()?;
        Ok(parts.into_iter().filter(|part| !part.rows.is_empty()))
    }
}

/// Bits of a hash that differ from level to level (the finalizer of SplitMix64).
fn mixed(hash: u64, level: u32) -> u64 {
    let seed = u64::from(level).wrapping_add(1);
    let mut bits = hash.wrapping_add(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}
