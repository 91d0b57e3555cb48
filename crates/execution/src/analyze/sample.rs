//! A sample of a table's rows: so many, each as likely as any other, in the order of the table.
//!
//! ```text
//! rows 1 … 300       all of them are taken
//! row 301            takes the place of one of these with probability 300/301
//! row 302            … 300/302
//! ```
//! (Algorithm R; Vitter, *Random Sampling with a Reservoir*, 1985.) So one pass does, and how many rows
//! there are need not be known.
//!
//! # Invariants
//! - Rows are kept as the store has them, and take [`SAMPLE_BYTES_MAX`] at most: where they would take
//!   more, half of them go, chosen at random, which leaves as good a sample of fewer rows.
//!
//! # What it leaves out
//! Rows are read to be counted, also those that are not taken.

use base::memory::Reservation;
use base::Result;

/// Bytes of the rows of a sample.
pub const SAMPLE_BYTES_MAX: usize = 64 << 20;

/// Rows that were taken, and how many there were.
#[derive(Debug)]
pub struct Sample {
    rows: Vec<(u64, Box<[u8]>)>,
    rows_max: usize,
    bytes: usize,
    bytes_max: usize,
    seen: u64,
    random: Random,
    held: Reservation,
}

impl Sample {
    /// An empty sample, which will have so many rows at most. What is drawn follows from the seed.
    pub fn new(rows_max: usize, seed: u64) -> Sample {
        Sample::bounded(rows_max, SAMPLE_BYTES_MAX, seed)
    }

    fn bounded(rows_max: usize, bytes_max: usize, seed: u64) -> Sample {
        Sample {
            rows: Vec::new(),
            rows_max: rows_max.max(1),
            bytes: 0,
            bytes_max,
            seen: 0,
            random: Random(seed),
            held: Reservation::of("A sample"),
        }
    }

    /// Shows it the next row of the table.
    ///
    /// # Errors
    /// As [`Reservation::grow`].
    pub fn offer(&mut self, row: &[u8]) -> Result<()> {
        let number = self.seen;
        self.seen += 1;
        if self.rows.len() < self.rows_max {
            self.rows.push((number, row.into()));
            self.bytes += row.len();
        } else {
            let place = self.random.below(self.seen);
            let Some(old) = usize::try_from(place)
                .ok()
                .and_then(|place| self.rows.get_mut(place))
            else {
                return Ok(());
            };
            self.bytes = self.bytes + row.len() - old.1.len();
            *old = (number, row.into());
        }
        while self.bytes > self.bytes_max && self.rows.len() > 1 {
            self.halve();
        }
        self.held
            .set(self.bytes + self.rows.len() * size_of::<(u64, Box<[u8]>)>())
    }

    fn halve(&mut self) {
        self.rows_max = self.rows.len() / 2;
        while self.rows.len() > self.rows_max {
            let place = self.random.below(self.rows.len() as u64) as usize;
            let (_, row) = self.rows.swap_remove(place);
            self.bytes -= row.len();
        }
    }

    /// How many rows the table has.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// The rows that were taken, in the table's order, and the memory that they take.
    pub fn into_rows(mut self) -> (Vec<Box<[u8]>>, Reservation) {
        self.rows.sort_unstable_by_key(|row| row.0);
        let rows = self.rows.into_iter().map(|row| row.1);
        (rows.collect(), self.held)
    }
}

/// Random numbers that follow from a seed (Steele, Lea and Flood, *Fast Splittable Pseudorandom Number
/// Generators*, 2014).
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below another, which is not 0; each as likely as any other, to 2^-64 or so of it.
    fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_rows_are_all_taken() {
        let mut sample = Sample::new(10, 1);
        (0..10_u8).for_each(|row| sample.offer(&[row]).unwrap());
        assert_eq!(sample.seen(), 10);
        let (rows, _) = sample.into_rows();
        assert_eq!(rows.concat(), (0..10).collect::<Vec<u8>>());
    }

    #[test]
    fn each_row_is_as_likely_as_any_other_and_they_stay_in_order() {
        let mut taken = [0_u32; 100];
        for seed in 0..2_000 {
            let mut sample = Sample::new(10, seed * 7_919);
            (0..100_u8).for_each(|row| sample.offer(&[row]).unwrap());
            let (rows, _) = sample.into_rows();
            assert_eq!(rows.len(), 10);
            assert!(rows.is_sorted());
            rows.iter().for_each(|row| taken[usize::from(row[0])] += 1);
        }
        // 200 are expected; the deviation is 13.4.
        assert!(
            taken.iter().all(|count| (140..260).contains(count)),
            "{taken:?}"
        );
    }

    #[test]
    fn wide_rows_make_a_smaller_sample() {
        let mut taken = [0_u32; 64];
        for seed in 0..500 {
            let mut sample = Sample::bounded(40, 1_000, seed * 104_729);
            (0..64_u8).for_each(|row| sample.offer(&[row; 100]).unwrap());
            assert_eq!(sample.seen(), 64);
            let (rows, _) = sample.into_rows();
            assert!((1..=10).contains(&rows.len()));
            rows.iter().for_each(|row| taken[usize::from(row[0])] += 1);
        }
        let (first, last) = taken.split_at(32);
        let (first, last) = (first.iter().sum::<u32>(), last.iter().sum::<u32>());
        assert!(first.abs_diff(last) < (first + last) / 8, "{first} {last}");
    }
}
