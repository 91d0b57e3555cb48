//! One column of a sample: how many values are NULL, how wide the others are, how many differ, which are
//! the most common ones, how the rest is spread, and how far it is in order.
//!
//! ```text
//! a a a b c c d e f     9 rows of 9: common a 3/9, c 2/9; histogram b d e f
//! ```
//! How many values a table has of which a sample has `d`, `f1` of them once, is
//! `n d / (n - f1 + f1 n / N)` for `n` rows of `N` (Haas and Stokes, *Estimating the Number of Classes in
//! a Finite Population*, 1998, the estimator `Duj1`). If that is more than a tenth of the rows, it is
//! taken to grow with them.
//!
//! # Invariants
//! - Values of more than [`WIDTH_MAX`] bytes are counted, not kept: each is taken to be there once.
//!
//! # What it leaves out
//! Types with an equality and without an order: only NULLs and widths are told of them.

use std::cmp::Ordering;

use base::{coro, Result};
use catalog::statistics::ColumnStatistics;
use types::width::width;
use types::{compare, Datum, TypeId};

/// Values of more bytes are not kept.
pub const WIDTH_MAX: usize = 1_024;

/// What comparing two values counts for, in the units of [`coro::work`].
pub(super) const COMPARE_WORK: usize = 32;

/// Of which rows the values of a column are.
#[derive(Clone, Copy, Debug)]
pub struct Sampled {
    /// How many rows the sample has.
    pub rows: usize,
    /// How many the table has.
    pub of: f64,
    /// How many common values, and parts of a histogram, are kept at most.
    pub target: usize,
}

/// The values of a column as they are taken from the rows, one after the other.
#[derive(Debug)]
pub struct Values {
    type_id: TypeId,
    /// Whether they are computed, so that none is as short as it would be in a row.
    computed: bool,
    nulls: usize,
    others: usize,
    width: f64,
    too_wide: usize,
    /// Those that are kept, each with its number among them.
    kept: Vec<(Datum, usize)>,
}

impl Values {
    /// None yet, of a column of that type.
    pub fn new(type_id: TypeId) -> Values {
        Values {
            type_id,
            computed: false,
            nulls: 0,
            others: 0,
            width: 0.0,
            too_wide: 0,
            kept: Vec::new(),
        }
    }

    /// None yet, of an expression of that type.
    pub fn of_expression(type_id: TypeId) -> Values {
        Values {
            computed: true,
            ..Values::new(type_id)
        }
    }

    /// Takes the value of the next row.
    pub fn take(&mut self, value: Datum) {
        if value.is_null() {
            self.nulls += 1;
            return;
        }
        self.others += 1;
        let width = width(self.type_id, &value);
        let has_raw = self.computed && width.raw != usize::MAX;
        self.width += if has_raw { width.raw } else { width.stored } as f64;
        if width.raw > WIDTH_MAX {
            self.too_wide += 1;
        } else if self.type_id.is_sortable() && self.type_id.has_equality() {
            self.kept.push((value, self.kept.len()));
        }
    }

    /// What they tell of the column; none if there was no row.
    ///
    /// # Errors
    /// The pending interrupt.
    pub fn finish(mut self, sampled: Sampled) -> Result<Option<ColumnStatistics>> {
        let mut found = ColumnStatistics {
            type_id: self.type_id,
            null_fraction: (self.nulls as f64 / sampled.rows as f64) as f32,
            width: self.average_width(),
            ..ColumnStatistics::default()
        };
        let has_order = self.type_id.is_sortable() && self.type_id.has_equality();
        if sampled.rows == 0 {
            return Ok(None);
        }
        if self.others == 0 || !has_order {
            return Ok(Some(found));
        }
        if self.kept.is_empty() {
            // Whatever was too wide is taken to differ.
            found.distinct = -(1.0 - found.null_fraction);
            return Ok(Some(found));
        }
        let runs = self.sort()?;
        found.correlation = self.correlation();
        let distinct = Distinct {
            values: runs.len(),
            repeated: runs.iter().filter(|run| run.count > 1).count(),
            too_wide: self.too_wide,
            nulls: self.nulls,
        };
        found.distinct = distinct.of_table(sampled, found.null_fraction);
        let common = self.common(&runs, sampled, &found);
        let keep = |run: &Run| self.kept[run.first].0.clone();
        found.common = common.iter().map(keep).collect();
        let frequency = |run: &Run| (run.count as f64 / sampled.rows as f64) as f32;
        found.frequencies = common.iter().map(frequency).collect();
        found.histogram = self.histogram(runs.len(), common, sampled.target);
        Ok(Some(found))
    }

    fn average_width(&self) -> i32 {
        match usize::try_from(self.type_id.len()) {
            Ok(fixed) => fixed as i32,
            Err(_) if self.others == 0 => 0,
            Err(_) => (self.width / self.others as f64) as i32,
        }
    }

    /// Sorts them; the runs of equal ones.
    fn sort(&mut self) -> Result<Vec<Run>> {
        let type_id = self.type_id;
        let order = |a: &(Datum, usize), b: &(Datum, usize)| {
            coro::work_or_unwind(COMPARE_WORK);
            compare(type_id, &a.0, &b.0).then(a.1.cmp(&b.1))
        };
        coro::interruptible(|| self.kept.sort_unstable_by(order))?;
        let mut runs: Vec<Run> = Vec::new();
        for (place, (value, _)) in self.kept.iter().enumerate() {
            coro::work(COMPARE_WORK)?;
            match runs.last_mut() {
                Some(run)
                    if compare(type_id, &self.kept[run.first].0, value) == Ordering::Equal =>
                {
                    run.count += 1;
                }
                _ => runs.push(Run {
                    first: place,
                    count: 1,
                }),
            }
        }
        Ok(runs)
    }

    /// How far their order is that of the rows.
    fn correlation(&self) -> Option<f32> {
        let count = self.kept.len() as f64;
        if self.kept.len() < 2 {
            return None;
        }
        let products = self.kept.iter().enumerate();
        let products: f64 = products
            .map(|(place, kept)| place as f64 * kept.1 as f64)
            .sum();
        let sum = (count - 1.0) * count / 2.0;
        let squares = (count - 1.0) * count * (2.0 * count - 1.0) / 6.0;
        let correlation = (count * products - sum * sum) / (count * squares - sum * sum);
        Some(correlation as f32)
    }

    /// The most common ones that are worth keeping, the most common one first.
    fn common(&self, runs: &[Run], sampled: Sampled, found: &ColumnStatistics) -> Vec<Run> {
        let mut common: Vec<_> = runs.iter().filter(|run| run.count > 1).copied().collect();
        // Of equally common ones the least come first.
        common.sort_by_key(|run| std::cmp::Reverse(run.count));
        common.truncate(sampled.target);
        let is_all = common.len() == runs.len() && self.too_wide == 0 && found.distinct > 0.0;
        if !is_all {
            let counts: Vec<_> = common.iter().map(|run| run.count).collect();
            common.truncate(worth_keeping(&counts, sampled, found));
        }
        common
    }

    /// Values that divide all but the common ones into parts with equally many rows.
    fn histogram(&self, distinct: usize, mut common: Vec<Run>, target: usize) -> Vec<Datum> {
        let bounds = (distinct - common.len()).min(target + 1);
        if bounds < 2 {
            return Vec::new();
        }
        common.sort_by_key(|run| run.first);
        let count = self.kept.len() - common.iter().map(|run| run.count).sum::<usize>();
        // The place of one of them, as there were no common ones before it.
        let mut passed = common.iter().peekable();
        let mut skipped = 0;
        let place = |bound: usize| bound * (count - 1) / (bounds - 1);
        (0..bounds)
            .map(|bound| {
                while let Some(run) = passed.next_if(|run| run.first <= place(bound) + skipped) {
                    skipped += run.count;
                }
                self.kept[place(bound) + skipped].0.clone()
            })
            .collect()
    }
}

/// Equal values among the sorted ones.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: usize,
    count: usize,
}

/// How many values of a sample differ.
struct Distinct {
    values: usize,
    /// Those that are there more than once.
    repeated: usize,
    too_wide: usize,
    nulls: usize,
}

impl Distinct {
    /// How many values of the table differ, as [`ColumnStatistics::distinct`] says it.
    fn of_table(&self, sampled: Sampled, null_fraction: f32) -> f32 {
        let others = 1.0 - f64::from(null_fraction);
        let distinct = if self.repeated == 0 {
            return -others as f32;
        } else if self.too_wide == 0 && self.repeated == self.values {
            self.values as f64
        } else {
            let once = (self.values - self.repeated + self.too_wide) as f64;
            let seen = once + self.repeated as f64;
            let rows = (sampled.rows - self.nulls) as f64;
            let of = sampled.of * others;
            let estimate = match of > 0.0 {
                true => rows * seen / (rows - once + once * rows / of),
                false => 0.0,
            };
            (estimate.max(seen).min(of) + 0.5).floor()
        };
        // As wide as it is kept.
        let distinct = f64::from(distinct as f32);
        match distinct > 0.1 * sampled.of {
            true => -(distinct / sampled.of) as f32,
            false => distinct as f32,
        }
    }
}

/// How many of the most common values are so much more common than the others that it is no chance:
/// by more than two deviations of the hypergeometric distribution.
fn worth_keeping(counts: &[usize], sampled: Sampled, found: &ColumnStatistics) -> usize {
    let (sample, table) = (sampled.rows as f64, sampled.of);
    if sample == table || table <= 1.0 {
        return counts.len();
    }
    let distinct = match f64::from(found.distinct) {
        distinct if distinct < 0.0 => -distinct * table,
        distinct => distinct,
    };
    let mut before: usize = counts.iter().sum();
    for kept in (1..=counts.len()).rev() {
        let count = counts[kept - 1] as f64;
        before -= counts[kept - 1];
        let rest = 1.0 - before as f64 / sample - f64::from(found.null_fraction);
        let mut expected = rest.clamp(0.0, 1.0);
        let others = distinct - (kept - 1) as f64;
        if others > 1.0 {
            expected /= others;
        }
        let of_table = table * count / sample;
        let variance = sample * of_table * (table - of_table) * (table - sample)
            / (table * table * (table - 1.0));
        if count > expected * sample + 2.0 * variance.sqrt() + 0.5 {
            return kept;
        }
    }
    0
}

#[cfg(test)]
#[path = "column_tests.rs"]
mod tests;
