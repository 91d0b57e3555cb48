//! Which part of a table's rows meets a condition on a column of which ANALYZE has found something
//! (PostgreSQL 15 manual, section 72.1).
//!
//! ```text
//! state = 'open'    a common value: as often as it was found                      0.3
//! state = 'odd'     none: what is left, divided by the values that are left       0.05 / 17
//! price < 120       common values below it, and the bounds of the histogram       0.1 + 0.6 * 0.42
//! ```
//! All are pure functions of [`Facts`] and values. [`super::conditions`] finds out what a condition says;
//! where nothing was found of a column, the constants of [`super::estimate`] stand.
//!
//! # Invariants
//! - Every answer lies from 0 to 1.
//!
//! # What it leaves out
//! What columns have to do with one another, which is for [`super::together`].

use std::cmp::Ordering;
use std::sync::Arc;

use catalog::statistics::ColumnStatistics;
use functions::pattern::like;
use types::{compare, Datum, TypeId};

use super::estimate::DISTINCT_UNKNOWN;
use super::prefix;
use super::scalar::{fraction, number};

/// How often a range between two values holds that cannot be.
const RANGE: f64 = 0.005;
/// A histogram with fewer bounds than this tells less of a pattern than the pattern itself.
const PATTERN_BOUNDS: usize = 100;
/// With fewer than this, nothing.
const PATTERN_BOUNDS_MIN: usize = 10;
/// What a character, a `_` and a `%` of a pattern make of the number of texts that match.
const FIXED_CHARACTER: f64 = 0.2;
const ANY_CHARACTER: f64 = 0.9;
const ANY_TEXT: f64 = 5.0;

/// What is known of a column.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    /// What ANALYZE has found.
    pub found: Arc<ColumnStatistics>,
    /// How many rows the table has.
    pub rows: f64,
    /// Whether no two rows have the same value.
    pub unique: bool,
}

/// A comparison of order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inequality {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Inequality {
    /// By its operator.
    pub(super) fn named(name: &str) -> Option<Inequality> {
        Some(match name {
            "<" => Inequality::Less,
            "<=" => Inequality::LessOrEqual,
            ">" => Inequality::Greater,
            ">=" => Inequality::GreaterOrEqual,
            _ => return None,
        })
    }

    /// With its sides changed.
    pub(super) fn turned(self) -> Inequality {
        match self {
            Inequality::Less => Inequality::Greater,
            Inequality::LessOrEqual => Inequality::GreaterOrEqual,
            Inequality::Greater => Inequality::Less,
            Inequality::GreaterOrEqual => Inequality::LessOrEqual,
        }
    }

    /// Whether it bounds values from below.
    pub(super) fn is_low(self) -> bool {
        matches!(self, Inequality::Greater | Inequality::GreaterOrEqual)
    }

    fn is_strict(self) -> bool {
        matches!(self, Inequality::Greater | Inequality::Less)
    }

    pub(super) fn holds(self, order: Ordering) -> bool {
        match self {
            Inequality::Less => order.is_lt(),
            Inequality::LessOrEqual => order.is_le(),
            Inequality::Greater => order.is_gt(),
            Inequality::GreaterOrEqual => order.is_ge(),
        }
    }
}

impl Facts {
    /// How many values the column has.
    pub(super) fn distinct(&self) -> f64 {
        let distinct = match self.unique {
            true => self.rows * (1.0 - self.nulls()),
            false => match self.found.distinct_of(self.rows) {
                Some(distinct) => distinct,
                None => DISTINCT_UNKNOWN.min(self.rows),
            },
        };
        distinct.max(1.0)
    }

    /// Which part of the rows has NULL.
    pub(super) fn nulls(&self) -> f64 {
        f64::from(self.found.null_fraction)
    }

    /// Which part has one of the common values.
    fn common(&self) -> f64 {
        self.found.frequencies.iter().map(|of| f64::from(*of)).sum()
    }

    /// Whether some value is so common that others are no measure for it.
    pub(super) fn is_skewed(&self) -> bool {
        let most = self
            .found
            .frequencies
            .first()
            .copied()
            .map_or(0.0, f64::from);
        most * self.distinct() > 4.0
    }

    fn order(&self, a: &Datum, b: &Datum) -> Option<Ordering> {
        order(self.found.type_id, a, b)
    }

    /// Which part of the common values meets something, of all rows.
    fn common_where(&self, meets: impl Fn(&Datum) -> bool) -> f64 {
        let common = self.found.common.iter().zip(&self.found.frequencies);
        let met = common.filter(|(value, _)| meets(value));
        met.map(|(_, of)| f64::from(*of)).sum()
    }
}

/// The order of two values of which the first is of a column of that type, if they can be compared.
pub(super) fn order(type_id: TypeId, a: &Datum, b: &Datum) -> Option<Ordering> {
    match std::mem::discriminant(a) == std::mem::discriminant(b) {
        true => Some(compare(type_id, a, b)),
        false => number(a)?.partial_cmp(&number(b)?),
    }
}

fn fitting(fraction: f64) -> f64 {
    match fraction.is_nan() {
        true => 0.5,
        false => fraction.clamp(0.0, 1.0),
    }
}

/// The column equals a value; none: one that is not known yet.
pub(super) fn equal(facts: &Facts, value: Option<&Datum>) -> f64 {
    let Some(value) = value else {
        return equal_to_any(facts);
    };
    if value.is_null() {
        return 0.0;
    }
    if facts.unique && facts.rows >= 1.0 {
        return 1.0 / facts.rows;
    }
    let found = &facts.found;
    let same = |known: &Datum| facts.order(known, value) == Some(Ordering::Equal);
    if let Some(place) = found.common.iter().position(same) {
        return fitting(f64::from(found.frequencies[place]));
    }
    let mut rest = fitting(1.0 - facts.common() - facts.nulls());
    let others = facts.distinct() - found.common.len() as f64;
    if others > 1.0 {
        rest /= others;
    }
    // Whatever is no common value is no more common than the last of them.
    let last = found.frequencies.last().copied().map_or(1.0, f64::from);
    fitting(rest.min(last))
}

fn equal_to_any(facts: &Facts) -> f64 {
    if facts.unique && facts.rows >= 1.0 {
        return 1.0 / facts.rows;
    }
    let each = (1.0 - facts.nulls()) / facts.distinct();
    let first = facts
        .found
        .frequencies
        .first()
        .copied()
        .map_or(1.0, f64::from);
    fitting(each.min(first))
}

/// The column differs from a value; none: one that is not known yet.
pub(super) fn differs(facts: &Facts, value: Option<&Datum>) -> f64 {
    match value.is_some_and(Datum::is_null) {
        true => 0.0,
        false => fitting(1.0 - equal(facts, value) - facts.nulls()),
    }
}

/// The column lies on one side of a value.
pub(super) fn inequality(facts: &Facts, inequality: Inequality, value: &Datum) -> f64 {
    if value.is_null() {
        return 0.0;
    }
    let meets = |known: &Datum| {
        let order = facts.order(known, value);
        order.is_some_and(|order| inequality.holds(order))
    };
    let common = facts.common_where(meets);
    let rest = fitting(1.0 - facts.nulls() - facts.common());
    let of_rest = by_histogram(facts, inequality, value).unwrap_or(0.5);
    fitting(rest * of_rest + common)
}

/// Which part of the values that the histogram is over lies on one side of a value.
///
/// A bound is the greatest value of the part that it ends, so that full parts and the share of the
/// next are what is less or equal; the first part alone has its least value besides.
fn by_histogram(facts: &Facts, inequality: Inequality, value: &Datum) -> Option<f64> {
    let bounds = &facts.found.histogram;
    if bounds.len() < 2 {
        return None;
    }
    let parts = (bounds.len() - 1) as f64;
    // As many bounds lie below the value; itself counts where what equals it does.
    let counts_equal = inequality.is_strict() == inequality.is_low();
    let is_below = |bound: &Datum| match facts.order(bound, value) {
        Some(Ordering::Equal) => counts_equal,
        order => order == Some(Ordering::Less),
    };
    let below = bounds.partition_point(is_below);
    let up_to = if below == 0 {
        0.0
    } else if below == bounds.len() {
        1.0
    } else {
        let (low, high) = (&bounds[below - 1], &bounds[below]);
        let share = fraction(value, low, high).unwrap_or(0.5);
        let others = facts.distinct() - facts.found.common.len() as f64;
        let one = if others > 1.0 { 1.0 / others } else { 0.0 };
        let mut up_to = ((below - 1) as f64 + share) / parts;
        if below == 1 {
            up_to += one * (1.0 - share);
        }
        if inequality.is_strict() != inequality.is_low() {
            up_to -= one;
        }
        up_to
    };
    let held = match inequality.is_low() {
        true => 1.0 - up_to,
        false => up_to,
    };
    // Bounds are neither exact nor of today.
    let cutoff = 0.01 / parts;
    Some(held.clamp(cutoff, 1.0 - cutoff))
}

/// The column lies between two values, of which one and the other side hold so often.
pub(super) fn range(facts: &Facts, low: f64, high: f64) -> f64 {
    // What is NULL is on neither side, and was left out twice.
    let both = low + high - 1.0 + facts.nulls();
    match both {
        both if both > 0.0 => fitting(both),
        both if both < -0.01 => RANGE,
        _ => 1e-10,
    }
}

/// The column is NULL (true), or is not.
pub(super) fn null(facts: &Facts, wanted: bool) -> f64 {
    match wanted {
        true => facts.nulls(),
        false => 1.0 - facts.nulls(),
    }
}

/// The column, of a truth value, is that one (none: NULL).
pub(super) fn truth(facts: &Facts, wanted: Option<bool>) -> f64 {
    match wanted {
        None => facts.nulls(),
        Some(wanted) => equal(facts, Some(&Datum::Bool(wanted))),
    }
}

/// The column equals one of several values, each of which it equals so often; or (`all`) it differs
/// from all of them, from each so often.
pub(super) fn list(each: impl Iterator<Item = f64> + Clone, all: bool) -> f64 {
    let apart = match all {
        false => each.clone().sum(),
        true => 1.0 + each.clone().map(|one| one - 1.0).sum::<f64>(),
    };
    // They exclude one another, unless that makes no sense.
    if (0.0..=1.0).contains(&apart) {
        return apart;
    }
    match all {
        false => 1.0 - each.map(|one| 1.0 - one).product::<f64>(),
        true => each.product(),
    }
}

/// The column, a text, matches a pattern of LIKE that begins so; what stands behind the beginning is
/// the rest.
pub(super) fn pattern(facts: &Facts, pattern: &str, beginning: &str, whole: bool) -> f64 {
    if whole {
        return equal(facts, Some(&Datum::text(beginning)));
    }
    let matches = |value: &Datum| match value {
        Datum::Text(text) => like(text, pattern).unwrap_or(false),
        _ => false,
    };
    let bounds = &facts.found.histogram;
    let inner = bounds.get(1..bounds.len().saturating_sub(1)).unwrap_or(&[]);
    let seen = match inner.len() >= PATTERN_BOUNDS_MIN {
        true => inner.iter().filter(|bound| matches(bound)).count() as f64 / inner.len() as f64,
        false => 0.0,
    };
    let trust = match inner.len() {
        few if few < PATTERN_BOUNDS_MIN => 0.0,
        _ => (bounds.len() as f64 / PATTERN_BOUNDS as f64).min(1.0),
    };
    let by_itself = match trust < 1.0 {
        true => beginning_of(facts, beginning) * of_rest(pattern, beginning),
        false => 0.0,
    };
    let of_others = (seen * trust + by_itself * (1.0 - trust)).clamp(0.0001, 0.9999);
    let others = fitting(1.0 - facts.nulls() - facts.common());
    fitting(of_others * others + facts.common_where(matches))
}

/// Which part of the values that are not common begins so.
fn beginning_of(facts: &Facts, beginning: &str) -> f64 {
    if beginning.is_empty() {
        return 1.0;
    }
    let least = Datum::text(beginning);
    let from = by_histogram(facts, Inequality::GreaterOrEqual, &least);
    let above = prefix::after_all_with(beginning);
    let below = above.and_then(|above| by_histogram(facts, Inequality::Less, &Datum::text(above)));
    let between = from.unwrap_or(1.0 / 3.0) + below.unwrap_or(1.0) - 1.0;
    fitting(between.max(equal(facts, Some(&least))))
}

/// What a pattern's characters behind its beginning leave of the texts.
fn of_rest(pattern: &str, beginning: &str) -> f64 {
    // Where the beginning has characters that were escaped it is shorter than what was written.
    let mut rest = pattern.strip_prefix(beginning).unwrap_or(pattern);
    if beginning.is_empty() {
        rest = rest.trim_start_matches(['%', '_']);
    }
    let mut left = 1.0;
    let mut characters = rest.chars();
    while let Some(character) = characters.next() {
        left *= match character {
            '%' => ANY_TEXT,
            '_' => ANY_CHARACTER,
            '\\' if characters.next().is_none() => 1.0,
            _ => FIXED_CHARACTER,
        };
    }
    left.min(1.0)
}

/// Pairs of rows of two tables agree in a column of each.
pub(super) fn join(a: &Facts, b: &Facts) -> f64 {
    let (of_a, of_b) = (a.distinct(), b.distinct());
    if a.found.common.is_empty() || b.found.common.is_empty() {
        return fitting((1.0 - a.nulls()) * (1.0 - b.nulls()) / of_a.max(of_b));
    }
    let matched = Matched::of(a, b);
    let one = matched.seen_from((a, matched.of_a, of_a), (b, matched.of_b, of_b));
    let other = matched.seen_from((b, matched.of_b, of_b), (a, matched.of_a, of_a));
    fitting(one.min(other))
}

/// The common values that two columns have both.
struct Matched {
    /// How many there are.
    count: usize,
    /// Which part of the pairs agrees in one of them.
    pairs: f64,
    /// Which part of the rows of each has one of them.
    of_a: f64,
    of_b: f64,
}

impl Matched {
    fn of(a: &Facts, b: &Facts) -> Matched {
        let sorted = |facts: &Facts| {
            let common = facts.found.common.iter().cloned();
            let of = facts.found.frequencies.iter().map(|of| f64::from(*of));
            let mut all: Vec<_> = common.zip(of).collect();
            all.sort_by(|x, y| facts.order(&x.0, &y.0).unwrap_or(Ordering::Equal));
            all
        };
        let (of_a, of_b) = (sorted(a), sorted(b));
        let mut matched = Matched {
            count: 0,
            pairs: 0.0,
            of_a: 0.0,
            of_b: 0.0,
        };
        let (mut x, mut y) = (0, 0);
        while let (Some(one), Some(other)) = (of_a.get(x), of_b.get(y)) {
            match a.order(&one.0, &other.0) {
                None => break,
                Some(Ordering::Less) => x += 1,
                Some(Ordering::Greater) => y += 1,
                Some(Ordering::Equal) => {
                    matched.count += 1;
                    matched.pairs += one.1 * other.1;
                    matched.of_a += one.1;
                    matched.of_b += other.1;
                    (x, y) = (x + 1, y + 1);
                }
            }
        }
        matched
    }

    /// Which part of the pairs agrees, where every value of the first column is taken to be one of the
    /// second's: a common value that the second does not have among its own is one of its others, and
    /// all others are equally common.
    fn seen_from(
        &self,
        (one, of_one, _): (&Facts, f64, f64),
        (other, of_other, distinct): (&Facts, f64, f64),
    ) -> f64 {
        let rest = |facts: &Facts| fitting(1.0 - facts.nulls() - facts.common());
        let unmatched = (one.common() - of_one).max(0.0);
        let unmatched_other = (other.common() - of_other).max(0.0);
        let mut all = self.pairs;
        let common = other.found.common.len() as f64;
        if distinct > common {
            all += unmatched * rest(other) / (distinct - common);
        }
        if distinct > self.count as f64 {
            all += rest(one) * (rest(other) + unmatched_other) / (distinct - self.count as f64);
        }
        all
    }
}

/// How many groups so many of a table's rows make, by values of which there are so many each.
///
/// Of values that are spread evenly, `n (1 - (1 - r / R)^(R / n))` are among `r` of `R` rows (Yao,
/// *Approximating Block Accesses in Database Organizations*, 1977).
pub(super) fn groups(distinct: &[f64], rows: f64, of: f64) -> f64 {
    let most = distinct.iter().copied().fold(1.0, f64::max);
    let mut all: f64 = distinct.iter().product();
    if distinct.len() > 1 {
        // Columns have something to do with one another.
        all = all.min((of * 0.1).max(most));
    }
    all = all.min(of).max(1.0);
    if rows < of && of > 0.0 {
        all *= 1.0 - ((of - rows) / of).powf(of / all);
    }
    all.round().clamp(1.0, rows.max(1.0))
}

#[cfg(test)]
#[path = "selectivity_tests.rs"]
mod tests;
