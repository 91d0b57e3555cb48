//! Several columns, or expressions, of a sample together: how many combinations of values there are, which
//! parts follow from others, and which combinations are the most common ones ([`catalog::extended`]).
//!
//! ```text
//! city    zip        combinations 3; zip => city: 1.0, city => zip: 0.25
//! Paris   75001      common (Paris, 75001) 0.5, by chance 0.375
//! Paris   75001
//! Paris   75002
//! Lyon    69001
//! ```
//! | what | how |
//! |---|---|
//! | combinations | as many as the estimator `Duj1` says (Haas and Stokes, 1998), like the values of one column |
//! | `a => b` | the part of the rows in groups of equal `a` in which `b` is the same (Ilyas and others, *CORDS*, 2004, has the idea) |
//! | common ones | those of which the sample has enough that their share is known to 20 percent or so |
//!
//! Values are given ranks first, so that all that follows compares numbers.
//!
//! # Invariants
//! - NULL is a value like others here, and is equal to NULL.
//! - Rows with a value of more than [`WIDTH_MAX`] bytes count for combinations only.
//!
//! # What it leaves out
//! Of equally common combinations those come first whose values are less; in PostgreSQL that is left open.

use base::{coro, Result};
use catalog::extended::{Combination, Combined, CommonCombinations, Degree};
use types::width::width;
use types::{compare, Datum, TypeId};

use super::column::{COMPARE_WORK, WIDTH_MAX};

/// What comparing two rows by their ranks counts for, in the units of [`coro::work`].
const RANKS_WORK: usize = 4;

/// The values of parts in the rows of a sample.
#[derive(Debug)]
pub struct Together {
    types: Vec<TypeId>,
    numbers: Vec<i16>,
    values: Vec<Vec<Datum>>,
    ranks: Vec<Vec<u32>>,
    /// Rows that have a value which is too wide.
    wide: Vec<bool>,
    /// How many rows the table has.
    of: f64,
}

impl Together {
    /// Of parts with these types and numbers, each with its values in all rows of a sample; the table has so
    /// many rows.
    ///
    /// # Errors
    /// The pending interrupt.
    pub fn new(
        types: Vec<TypeId>,
        numbers: Vec<i16>,
        values: Vec<Vec<Datum>>,
        of: f64,
    ) -> Result<Together> {
        assert_eq!(types.len(), values.len(), "types of parts");
        assert_eq!(types.len(), numbers.len(), "numbers of parts");
        let rows = values.first().map_or(0, Vec::len);
        let mut wide = vec![false; rows];
        let mut ranks = Vec::with_capacity(values.len());
        for (ty, values) in types.iter().zip(&values) {
            assert_eq!(values.len(), rows, "rows of a part");
            for (wide, value) in wide.iter_mut().zip(values) {
                *wide |= !value.is_null() && width(*ty, value).raw > WIDTH_MAX;
            }
            ranks.push(ranks_of(*ty, values)?);
        }
        Ok(Together {
            types,
            numbers,
            values,
            ranks,
            wide,
            of,
        })
    }

    fn rows(&self) -> usize {
        self.wide.len()
    }

    /// How many combinations there are of each two or more parts.
    ///
    /// # Errors
    /// The pending interrupt.
    pub fn distinct(&self) -> Result<Vec<Combined>> {
        let mut all = Vec::new();
        for size in 2..=self.types.len() {
            for chosen in combinations(self.types.len(), size) {
                let rows = (0..self.rows()).collect();
                let groups = self.groups(rows, &chosen)?;
                let once = groups.iter().filter(|group| group.len() == 1).count();
                all.push(Combined {
                    parts: self.named(&chosen),
                    distinct: distinct_of_table(groups.len(), once, self.rows(), self.of),
                });
            }
        }
        Ok(all)
    }

    /// Which parts follow from others; none if nothing does.
    ///
    /// # Errors
    /// The pending interrupt.
    pub fn dependencies(&self) -> Result<Option<Vec<Degree>>> {
        let mut all = Vec::new();
        let count = self.types.len();
        for size in 1..count {
            for determining in combinations(count, size) {
                let groups = self.groups(self.narrow_rows(), &determining)?;
                for last in (0..count).filter(|last| !determining.contains(last)) {
                    let degree = self.degree(&groups, last)?;
                    if degree > 0.0 {
                        let mut parts = self.named(&determining);
                        parts.push(self.numbers[last]);
                        all.push(Degree { parts, degree });
                    }
                }
            }
        }
        Ok((!all.is_empty()).then_some(all))
    }

    /// The part of the rows that are in groups in all of whose rows a part is the same.
    fn degree(&self, groups: &[Vec<usize>], part: usize) -> Result<f64> {
        let ranks = &self.ranks[part];
        let mut supporting = 0;
        for group in groups {
            coro::work(group.len() * RANKS_WORK)?;
            if group.iter().all(|row| ranks[*row] == ranks[group[0]]) {
                supporting += group.len();
            }
        }
        Ok(supporting as f64 / self.rows() as f64)
    }

    /// So many of the most common combinations at most; none if no combination is common.
    ///
    /// # Errors
    /// The pending interrupt.
    pub fn common(&self, target: usize) -> Result<Option<CommonCombinations>> {
        let all: Vec<usize> = (0..self.types.len()).collect();
        let mut groups = self.groups(self.narrow_rows(), &all)?;
        groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
        let least = least_count(self.rows(), self.of);
        let kept = groups.iter().take(target);
        let kept = kept.take_while(|group| group.len() as f64 >= least);
        let kept = kept.count();
        if kept == 0 {
            return Ok(None);
        }
        let mut counts: Vec<Vec<usize>> = Vec::with_capacity(all.len());
        for ranks in &self.ranks {
            let mut of_part = vec![0; self.rows()];
            for row in self.narrow_rows() {
                of_part[ranks[row] as usize] += 1;
            }
            counts.push(of_part);
        }
        let share = |count: usize| count as f64 / self.rows() as f64;
        let items = groups[..kept].iter().map(|group| {
            let row = group[0];
            let by_part = counts.iter().zip(&self.ranks);
            let shares = by_part.map(|(counts, ranks)| share(counts[ranks[row] as usize]));
            Combination {
                values: self.values.iter().map(|part| part[row].clone()).collect(),
                frequency: share(group.len()),
                base_frequency: shares.product(),
            }
        });
        Ok(Some(CommonCombinations {
            items: items.collect(),
            types: self.types.clone(),
        }))
    }

    /// The rows whose values are all kept.
    fn narrow_rows(&self) -> Vec<usize> {
        (0..self.rows()).filter(|row| !self.wide[*row]).collect()
    }

    /// Rows in groups in which these parts are equal, in the order of their values.
    fn groups(&self, mut rows: Vec<usize>, chosen: &[usize]) -> Result<Vec<Vec<usize>>> {
        let order = |a: &usize, b: &usize| {
            let parts = chosen.iter().map(|part| &self.ranks[*part]);
            let mut orders = parts.map(|ranks| ranks[*a].cmp(&ranks[*b]));
            orders.find(|order| order.is_ne()).unwrap_or(a.cmp(b))
        };
        coro::interruptible(|| {
            rows.sort_unstable_by(|a, b| {
                coro::work_or_unwind(RANKS_WORK);
                order(a, b)
            });
        })?;
        let is_same = |a: usize, b: usize| {
            let mut parts = chosen.iter().map(|part| &self.ranks[*part]);
            parts.all(|ranks| ranks[a] == ranks[b])
        };
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for row in rows {
            coro::work(RANKS_WORK)?;
            match groups.last_mut() {
                Some(group) if is_same(group[0], row) => group.push(row),
                _ => groups.push(vec![row]),
            }
        }
        Ok(groups)
    }

    fn named(&self, chosen: &[usize]) -> Vec<i16> {
        chosen.iter().map(|part| self.numbers[*part]).collect()
    }
}

/// For each value how many different ones are less; NULL is the greatest.
fn ranks_of(ty: TypeId, values: &[Datum]) -> Result<Vec<u32>> {
    let mut rows: Vec<usize> = (0..values.len()).collect();
    let order = |a: usize, b: usize| match (&values[a], &values[b]) {
        (Datum::Null, Datum::Null) => std::cmp::Ordering::Equal,
        (Datum::Null, _) => std::cmp::Ordering::Greater,
        (_, Datum::Null) => std::cmp::Ordering::Less,
        // What is not read is taken to differ from all others.
        (Datum::Long(_), Datum::Long(_)) => a.cmp(&b),
        (Datum::Long(_), _) => std::cmp::Ordering::Greater,
        (_, Datum::Long(_)) => std::cmp::Ordering::Less,
        (a, b) => compare(ty, a, b),
    };
    coro::interruptible(|| {
        rows.sort_unstable_by(|a, b| {
            coro::work_or_unwind(COMPARE_WORK);
            order(*a, *b).then(a.cmp(b))
        });
    })?;
    let mut ranks = vec![0; values.len()];
    let mut rank = 0;
    for pair in rows.windows(2) {
        coro::work(COMPARE_WORK)?;
        if order(pair[0], pair[1]).is_ne() {
            rank += 1;
        }
        ranks[pair[1]] = rank;
    }
    Ok(ranks)
}

/// So many of the numbers below another, in all ways, in order.
fn combinations(of: usize, size: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for _ in 0..size {
        let longer = all.iter().flat_map(|chosen: &Vec<usize>| {
            let next = chosen.last().map_or(0, |last| last + 1);
            (next..of).map(move |part| chosen.iter().copied().chain([part]).collect())
        });
        all = longer.collect();
    }
    all
}

/// How many combinations a table has of which a sample has so many, some of them once.
fn distinct_of_table(seen: usize, once: usize, rows: usize, of: f64) -> f64 {
    let (seen, once, rows) = (seen as f64, once as f64, rows as f64);
    let estimate = rows * seen / (rows - once + once * rows / of);
    (estimate.max(seen).min(of) + 0.5).floor()
}

/// How often a sample must have something so that the share of the table's rows is known with a relative
/// error of a fifth or so: where the standard error of a sample without replacement is that much.
fn least_count(rows: usize, of: f64) -> f64 {
    let rows = rows as f64;
    let wanted = of - rows + 0.04 * rows * (of - 1.0);
    match wanted == 0.0 {
        true => 0.0,
        false => rows * (of - rows) / wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn together(columns: &[&[i32]], of: f64) -> Together {
        let value = |value: &i32| match value {
            -1 => Datum::Null,
            value => Datum::Int4(*value),
        };
        let values = columns.iter().map(|of| of.iter().map(value).collect());
        let types = vec![TypeId::INT4; columns.len()];
        let numbers = (1..=columns.len() as i16).collect();
        Together::new(types, numbers, values.collect(), of).expect("parts")
    }

    /// The picture at the top of this module.
    #[test]
    fn cities_and_their_codes() {
        let all = together(&[&[2, 2, 2, 1], &[75_001, 75_001, 75_002, 69_001]], 4.0);
        let distinct = all.distinct().unwrap();
        assert_eq!((distinct.len(), distinct[0].distinct), (1, 3.0));
        assert_eq!(distinct[0].parts, [1, 2]);
        let degrees = all.dependencies().unwrap().expect("some");
        let shown: Vec<_> = degrees
            .iter()
            .map(|one| (&one.parts[..], one.degree))
            .collect();
        assert_eq!(shown, [(&[1, 2][..], 0.25), (&[2, 1][..], 1.0)]);
        let common = all.common(100).unwrap().expect("some");
        assert_eq!(common.items.len(), 3);
        assert_eq!(common.items[0].frequency, 0.5);
        assert_eq!(common.items[0].base_frequency, 0.375);
        assert_eq!(all.common(2).unwrap().expect("some").items.len(), 2);
    }

    #[test]
    fn nulls_are_equal() {
        let all = together(&[&[-1, -1, 3], &[-1, -1, -1]], 3.0);
        assert_eq!(all.distinct().unwrap()[0].distinct, 2.0);
        let degrees = all.dependencies().unwrap().expect("some");
        // The second tells nothing of the first.
        assert_eq!((degrees.len(), degrees[0].degree), (1, 1.0));
        assert_eq!(degrees[0].parts, [1, 2]);
        let common = all.common(10).unwrap().expect("some");
        assert_eq!(common.items[0].values, [Datum::Null, Datum::Null]);
    }

    /// Three parts: four combinations of them, and nine dependencies at most, in this order.
    #[test]
    fn combinations_and_dependencies_are_in_order() {
        assert_eq!(combinations(3, 2), [[0, 1], [0, 2], [1, 2]]);
        let all = together(&[&[1, 2], &[1, 2], &[1, 2]], 2.0);
        let distinct = all.distinct().unwrap().into_iter();
        let parts: Vec<_> = distinct.map(|one| one.parts).collect();
        assert_eq!(parts, [&[1, 2][..], &[1, 3], &[2, 3], &[1, 2, 3]]);
        let degrees = all.dependencies().unwrap().expect("some");
        let parts: Vec<_> = degrees.into_iter().map(|one| one.parts).collect();
        let wanted: [&[i16]; 9] = [
            &[1, 2],
            &[1, 3],
            &[2, 1],
            &[2, 3],
            &[3, 1],
            &[3, 2],
            &[1, 2, 3],
            &[1, 3, 2],
            &[2, 3, 1],
        ];
        assert_eq!(parts, wanted);
    }

    /// 300 rows of 30,000, each another: as many combinations as there are rows; none of them is common.
    #[test]
    fn a_sample_of_a_large_table() {
        let numbers: Vec<i32> = (0..300).collect();
        let all = together(&[&numbers, &numbers], 30_000.0);
        assert_eq!(all.distinct().unwrap()[0].distinct, 30_000.0);
        assert!(all.common(100).unwrap().is_none());
        // 300 · 29,700 / (29,700 + 0.04 · 300 · 29,999)
        assert!((least_count(300, 30_000.0) - 22.86).abs() < 0.01);
    }

    #[test]
    fn wide_values_count_for_combinations_only() {
        let wide = |letter: &str| Datum::text(letter.repeat(2_000));
        let values = vec![
            vec![wide("a"), wide("b"), Datum::text("c")],
            vec![Datum::text("x"); 3],
        ];
        let types = vec![TypeId::TEXT; 2];
        let all = Together::new(types, vec![1, 2], values, 3.0).unwrap();
        assert_eq!(all.distinct().unwrap()[0].distinct, 3.0);
        let degrees = all.dependencies().unwrap().expect("some");
        assert_eq!(degrees[0].degree, 1.0 / 3.0);
        assert_eq!(all.common(10).unwrap().expect("some").items.len(), 1);
    }
}
