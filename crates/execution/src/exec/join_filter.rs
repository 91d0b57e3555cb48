//! Join filters: a scan leaves out rows for which a hash join above it will find no pair.
//!
//! ```text
//! select … from lineitem, part where l_partkey = p_partkey and p_brand = 'Brand#23'
//!
//! Hash Join            has kept 200 parts by the hash of p_partkey, and tells the left input
//! ├─ Scan lineitem     makes l_partkey, looks for its hash, and makes nothing else of most rows
//! └─ Scan part
//! ```
//! A join that has read its right rows makes a Bloom filter of their hashes and hands it to its left
//! input ([`super::Cursor::restrict`]). It goes down to whatever scan makes the columns that are
//! hashed, past joins, conditions and projections that only hand them on.
//!
//! # Invariants
//! - A filter only leaves out rows that the join which made it would give no pair for, and which it
//!   would not show alone. Whatever stands between must lose nothing else by that: a row that is
//!   left out of the input that an outer join keeps the *other* rows of would show one of those alone.
//! - Nothing volatile is computed for fewer rows than it is written for: past that, no filter goes.
//! - A filter forgets nothing that was added: rows of equal keys pass. Others may too, and meet the join.
//!
//! # What it leaves out
//! Keys that are computed, and joins whose right rows are in scratch space.

use std::rc::Rc;

use base::memory::Reservation;
use base::{coro, Result};
use types::{self, Datum, TypeId};

/// Bits for each key: with two of them set, one in fifty other keys passes.
const BITS_PER_KEY: usize = 16;

/// So many hashes are added before others get their turn, if it is theirs.
const HASHES_AT_ONCE: usize = 1_024;

/// The hashes of a join's right rows.
#[derive(Debug)]
struct Hashes {
    /// A power of two of words; a hash has its two bits in one of them.
    words: Vec<u64>,
    _held: Reservation,
}

/// What a join knows of the rows that it can use.
#[derive(Clone, Debug)]
pub struct JoinFilter {
    /// The columns that are hashed, by their places in the row.
    columns: Vec<usize>,
    types: Rc<[TypeId]>,
    hashes: Rc<Hashes>,
}

impl JoinFilter {
    /// A filter by columns of these types, for what has one of these hashes.
    ///
    /// # Errors
    /// As [`Reservation::grow`].
    pub fn of(
        columns: Vec<usize>,
        types: Rc<[TypeId]>,
        hashes: &[Option<u64>],
    ) -> Result<JoinFilter> {
        let count = (hashes.len() * BITS_PER_KEY / 64).next_power_of_two();
        let mut held = Reservation::of("A join");
        held.grow(count * size_of::<u64>())?;
        let mut words = vec![0; count];
        for some in hashes.chunks(HASHES_AT_ONCE) {
            coro::work(some.len())?;
            for hash in some.iter().flatten() {
                let (word, bits) = place_of(*hash, count);
                words[word] |= bits;
            }
        }
        Ok(JoinFilter {
            columns,
            types,
            hashes: Rc::new(Hashes { words, _held: held }),
        })
    }

    /// The columns that it looks at, by their places in the row.
    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// The same over other rows, in which each column has another place; none where one has none.
    pub fn moved(&self, place: impl Fn(usize) -> Option<usize>) -> Option<JoinFilter> {
        let columns = self.columns.iter().map(|column| place(*column));
        Some(JoinFilter {
            columns: columns.collect::<Option<_>>()?,
            ..self.clone()
        })
    }

    /// Whether the join may find a pair for a row.
    #[inline]
    pub fn passes(&self, row: &[Datum]) -> bool {
        let values = || self.columns.iter().map(|column| &row[*column]);
        if values().any(Datum::is_null) {
            return false;
        }
        if values().any(Datum::is_long) {
            return true;
        }
        let words = &self.hashes.words;
        let (word, bits) = place_of(types::hash_values(&self.types, values()), words.len());
        words[word] & bits == bits
    }
}

/// The word of a hash among so many, a power of two, and its bits there.
#[inline]
fn place_of(hash: u64, words: usize) -> (usize, u64) {
    // Multiplied by the golden ratio, all bits of a hash decide on the upper ones.
    let mixed = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let word = (mixed >> 32) as usize & (words - 1);
    (word, 1 << (mixed >> 26 & 63) | 1 << (mixed >> 20 & 63))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(key: i32) -> [Datum; 2] {
        [Datum::Null, Datum::Int4(key)]
    }

    #[test]
    fn all_keys_pass_and_few_others_do() {
        let types: Rc<[TypeId]> = Rc::from([TypeId::INT4]);
        let hash = |key: i32| types::hash_row(&types, &[Datum::Int4(key)]);
        let hashes: Vec<_> = (0..10_000).map(|key| Some(hash(key * 7))).collect();
        let filter = JoinFilter::of(vec![1], types.clone(), &hashes).unwrap();
        assert!((0..10_000).all(|key| filter.passes(&row(key * 7))));
        let others = (0..70_000).filter(|key| key % 7 != 0);
        let passing = others.filter(|key| filter.passes(&row(*key))).count();
        assert!(passing < 3_000, "{passing} of 60000 others pass");
        assert!(!filter.passes(&[Datum::Null, Datum::Null]));
        let none = JoinFilter::of(vec![1], types.clone(), &[None]).unwrap();
        assert!((0..100).all(|key| !none.passes(&row(key))));
        let moved = filter.moved(|place| place.checked_sub(1)).unwrap();
        assert_eq!(moved.columns(), [0]);
        assert!(moved.passes(&[Datum::Int4(7)]));
        assert!(filter.moved(|place| place.checked_sub(2)).is_none());
    }
}
