//! TPC-C's randomness: uniform numbers, NURand, last names, strings (clauses 2.1.6, 4.3.2, 4.3.3).

use crate::tpcc::{CUSTOMERS_PER_DISTRICT, ITEMS};

/// A small generator, the same stream for the same seed: xorshift with a multiplication at its end.
#[derive(Clone, Debug)]
pub struct Random(u64);

/// What NURand adds to customers' last names and numbers and to items; the same for all terminals
/// (clause 2.1.6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constants {
    /// For last names.
    pub last_name: u64,
    /// For customers' numbers.
    pub customer: u64,
    /// For items.
    pub item: u64,
}

/// The constant that last names are loaded with.
pub const LOADED_LAST_NAME: u64 = 123;

/// How far the run's constant for last names is from the load's: in 65 to 119, and neither 96 nor
/// 112 (clause 2.1.6.1).
const LAST_NAME_DELTA: u64 = 85;

impl Constants {
    /// Those of a run.
    pub const RUN: Constants = Constants {
        last_name: LOADED_LAST_NAME + LAST_NAME_DELTA,
        customer: 259,
        item: 7_911,
    };
}

const SYLLABLES: [&str; 10] = [
    "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING",
];

const LETTERS: &[u8; 62] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

impl Random {
    /// A generator; different seeds give unrelated streams.
    pub fn new(seed: u64) -> Random {
        let mut state = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Random((state ^ (state >> 31)) | 1)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        assert!(low <= high, "{low} to {high}");
        low + ((u128::from(self.bits()) * u128::from(high - low + 1)) >> 64) as u64
    }

    /// True so many times in a hundred.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.between(1, 100) <= percent
    }

    /// From 0 to 1, without 1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// NURand(a, low, high) with a constant `c`.
    pub fn non_uniform(&mut self, a: u64, low: u64, high: u64, c: u64) -> u64 {
        let mixed = self.between(0, a) | self.between(low, high);
        (mixed + c) % (high - low + 1) + low
    }

    /// A customer's number within its district.
    pub fn customer(&mut self, constants: Constants) -> u64 {
        self.non_uniform(1_023, 1, CUSTOMERS_PER_DISTRICT, constants.customer)
    }

    /// An item's number.
    pub fn item(&mut self, constants: Constants) -> u64 {
        self.non_uniform(8_191, 1, ITEMS, constants.item)
    }

    /// The number of a last name.
    pub fn last_name(&mut self, constant: u64) -> u64 {
        self.non_uniform(255, 0, 999, constant)
    }

    /// Appends letters and digits, from `low` to `high` of them.
    pub fn letters(&mut self, out: &mut Vec<u8>, low: u64, high: u64) {
        for _ in 0..self.between(low, high) {
            out.push(LETTERS[self.between(0, 61) as usize]);
        }
    }

    /// Appends so many digits.
    pub fn digits(&mut self, out: &mut Vec<u8>, count: u64) {
        for _ in 0..count {
            out.push(b'0' + self.between(0, 9) as u8);
        }
    }
}

/// The last name of a number from 0 to 999: three syllables.
pub fn last_name(number: u64) -> String {
    [number / 100 % 10, number / 10 % 10, number % 10]
        .map(|syllable| SYLLABLES[syllable as usize])
        .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_names_are_the_specifications() {
        assert_eq!(last_name(0), "BARBARBAR");
        assert_eq!(last_name(371), "PRICALLYOUGHT");
        assert_eq!(last_name(999), "EINGEINGEING");
    }

    #[test]
    fn numbers_stay_in_their_ranges_and_nurand_is_not_uniform() {
        let mut random = Random::new(7);
        let mut counts = vec![0u32; ITEMS as usize + 1];
        for _ in 0..1_000_000 {
            let item = random.item(Constants::RUN);
            assert!((1..=ITEMS).contains(&item), "{item}");
            counts[item as usize] += 1;
        }
        counts.sort_unstable();
        let popular: u32 = counts[counts.len() - 10_000..].iter().sum();
        assert!(
            popular > 200_000,
            "the top tenth has {popular} of a million"
        );
        let uniform: Vec<u64> = (0..1_000).map(|_| random.between(5, 7)).collect();
        assert!([5, 6, 7].iter().all(|value| uniform.contains(value)));
        let delta = Constants::RUN.last_name - LOADED_LAST_NAME;
        assert!(
            (65..=119).contains(&delta) && delta != 96 && delta != 112,
            "{delta}"
        );
    }
}
