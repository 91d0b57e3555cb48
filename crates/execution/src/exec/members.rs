//! The rows of a subquery, found by their values: for `IN` and its kin, and for subqueries whose rows
//! are had by keys ([`planner::plan::keyed`]).
//!
//! ```text
//! (x, k) in the rows (1, 7) (2, 7) (NULL, 8), where k is a key
//!     (2, 7) true      (3, 7) false      (3, 8) unknown      (3, 9) false
//! ```
//! A row has values, and keys behind them. Values are compared with NULLs as SQL has it; keys are equal
//! or they are not, and a row with a NULL among its keys is nobody's.

use base::Result;

use super::{collect_in_memory, Exec};
use crate::kept::{HashedPlaces, RowStore, HASHED_BYTES};
use planner::plan::{Plan, Row};
use types::{self, hash_row, Datum, TypeId};

/// The rows of a subquery.
pub(super) struct Members {
    rows: RowStore,
    /// The types of the keys; of none, all rows belong to the only key there is.
    keys: Vec<TypeId>,
    /// How many values come before them.
    width: usize,
    /// The types of the values, where they are compared by plain equality of one type.
    values: Option<Vec<TypeId>>,
    /// All rows by their keys, where there are any.
    by_key: HashedPlaces,
    /// Rows without NULLs by their keys and values; only where the types of these are known.
    by_value: HashedPlaces,
    /// Rows with NULLs among such values, by their keys.
    unknown: HashedPlaces,
}

impl Members {
    /// The rows of a plan, whose values are of these types if they are compared by plain equality.
    ///
    /// # Errors
    /// What the plan raises; 53200.
    pub(super) fn of(
        plan: &Plan,
        values: Option<Vec<TypeId>>,
        (width, keys): (usize, Vec<TypeId>),
        cx: &mut Exec<'_>,
    ) -> Result<Members> {
        let rows = collect_in_memory(plan, "A subquery", cx)?;
        let mut members = Members {
            rows,
            keys,
            width,
            values,
            by_key: HashedPlaces::default(),
            by_value: HashedPlaces::default(),
            unknown: HashedPlaces::default(),
        };
        members.hash(cx)?;
        Ok(members)
    }

    fn hash(&mut self, cx: &mut Exec<'_>) -> Result<()> {
        let hashes = usize::from(!self.keys.is_empty()) + usize::from(self.values.is_some());
        self.rows.grow(self.rows.len() * HASHED_BYTES * hashes)?;
        cx.check_held(self.rows.bytes())?;
        for (place, row) in self.rows.iter().enumerate() {
            cx.tick()?;
            let (values, keys) = row.split_at(row.len() - self.keys.len());
            if keys.iter().any(Datum::is_null) {
                continue;
            }
            let of_key = hash_row(&self.keys, keys);
            if !self.keys.is_empty() {
                self.by_key.add(of_key, place);
            }
            match &self.values {
                None => {}
                Some(_) if values.iter().any(Datum::is_null) => self.unknown.add(of_key, place),
                Some(types) => self
                    .by_value
                    .add(both(of_key, hash_row(types, values)), place),
            }
        }
        Ok(())
    }

    /// The rows of a key.
    pub(super) fn rows_of<'m>(
        &'m self,
        key: &'m [Datum],
    ) -> Box<dyn Iterator<Item = &'m Row> + 'm> {
        if self.keys.is_empty() {
            return Box::new(self.rows.iter());
        }
        let of_key = hash_row(&self.keys, key);
        Box::new(self.found(&self.by_key, of_key, key))
    }

    /// The rows of a key at the places of a hash.
    fn found<'m>(
        &'m self,
        places: &'m HashedPlaces,
        hash: u64,
        key: &'m [Datum],
    ) -> impl Iterator<Item = &'m Row> {
        let has = !key.iter().any(Datum::is_null);
        let first = places.first(hash).filter(|_| has);
        let all = std::iter::successors(first, |place| places.next(*place));
        let rows = all.map(|place| &self.rows[place]);
        rows.filter(move |row| equal(&self.keys, &row[row.len() - key.len()..], key))
    }

    /// Whether values equal those of a row of a key; none where hashes cannot tell, and each row must
    /// be looked at.
    pub(super) fn has(&self, values: &[Datum], key: &[Datum]) -> Option<Datum> {
        let types = self.values.as_ref()?;
        if values.iter().any(Datum::is_null) {
            // A single NULL is unknown to whatever there is.
            let is_there = self.width == 1;
            return is_there.then(|| match self.rows_of(key).next() {
                None => Datum::Bool(false),
                Some(_) => Datum::Null,
            });
        }
        let of_key = hash_row(&self.keys, key);
        let hash = both(of_key, hash_row(types, values));
        let mut same = self.found(&self.by_value, hash, key);
        if same.any(|row| equal(types, &row[..values.len()], values)) {
            return Some(Datum::Bool(true));
        }
        match self.found(&self.unknown, of_key, key).next() {
            None => Some(Datum::Bool(false)),
            Some(_) if self.width == 1 => Some(Datum::Null),
            Some(_) => None,
        }
    }
}

/// The hash of a key with values.
fn both(key: u64, values: u64) -> u64 {
    key.rotate_left(17) ^ values
}

fn equal(types: &[TypeId], left: &[Datum], right: &[Datum]) -> bool {
    let mut pairs = types.iter().zip(left.iter().zip(right));
    pairs.all(|(ty, (a, b))| types::equal(*ty, a, b))
}
