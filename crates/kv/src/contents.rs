//! What a replica holds, summed up by ranges of keys: where two of them differ can be said without
//! laying their rows side by side.
//!
//! A range begins with a tree, and with every key whose checksum ends in a certain way, which is one
//! in [`RANGE_ROWS`]. So ranges begin at the same keys wherever those are there, and a row more or less
//! changes one range or two, not all that follow:
//!
//! ```text
//! n1   tree 7   │ a b c │ d e f g │ h i
//! n2   tree 7   │ a b c │ d e   g │ h i      differ from d on to before h
//! n3   tree 7   │ a b c   e f g   │ h i      d is missing: differ from a on to before h
//! ```
//!
//! # What it leaves out
//! Two ranges that differ have the same sum once in 2⁶⁴, by accident.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use base::codec::checksum;
use base::engine::range_words;
use base::{Key, TreeId};

/// Rows of a range, on average.
const RANGE_ROWS: u32 = 64;

/// Rows, and a checksum over their keys and contents, in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// How many.
    pub rows: u64,
    /// The checksum. It is none of those that pages and logs have: what changes a page and leaves its
    /// CRC as it was would leave the same CRC of its rows.
    pub checksum: u64,
}

impl Sum {
    /// Takes the next row.
    pub fn add(&mut self, tree: TreeId, key: &[u8], row: &[u8]) {
        self.rows += 1;
        self.mix(tree.0);
        self.mix_bytes(key);
        self.mix_bytes(row);
    }

    fn mix_bytes(&mut self, bytes: &[u8]) {
        self.mix(bytes.len() as u64);
        for word in bytes.chunks(8) {
            let mut padded = [0; 8];
            padded[..word.len()].copy_from_slice(word);
            self.mix(u64::from_le_bytes(padded));
        }
    }

    /// Two sums that differ still do after the same word.
    fn mix(&mut self, word: u64) {
        let mixed = (self.checksum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.checksum = mixed ^ mixed >> 32;
    }
}

/// A range of one tree, summed up from a key on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSum {
    /// Its rows.
    pub sum: Sum,
    /// The first key after it; none where it goes to the end of the tree.
    pub end: Option<Key>,
}

/// What a replica holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Each range, by the tree and the key with which it begins; the first of a tree by no key.
    ranges: BTreeMap<(TreeId, Key), Sum>,
}

/// Keys of a tree between which two replicas differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The tree.
    pub tree: TreeId,
    /// From this key on; empty for the first of the tree.
    pub from: Key,
    /// Up to this one, which is not among them; none for the end of the tree.
    pub to: Option<Key>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&range_words(self.tree, &self.from, self.to.as_deref()))
    }
}

impl Contents {
    /// Takes the next row. They come in order.
    pub fn add(&mut self, tree: TreeId, key: &[u8], row: &[u8]) {
        let last = self.ranges.last_key_value().map(|((tree, _), _)| *tree);
        if last != Some(tree) {
            self.ranges.insert((tree, Key::new()), Sum::default());
        } else if checksum(key) % RANGE_ROWS == 0 {
            self.ranges.insert((tree, key.to_vec()), Sum::default());
        }
        if let Some(mut range) = self.ranges.last_entry() {
            range.get_mut().add(tree, key, row);
        }
    }

    /// How many rows and entries there are.
    pub fn rows(&self) -> u64 {
        self.ranges.values().map(|sum| sum.rows).sum()
    }

    /// Where it differs from what another replica holds.
    pub fn differences(&self, other: &Contents) -> Vec<Difference> {
        let starts: BTreeSet<_> = self.ranges.keys().chain(other.ranges.keys()).collect();
        let mut found: Vec<Difference> = Vec::new();
        // What differs and ends where the next range of both begins.
        let mut open: Option<Difference> = None;
        // Where the last range began that both have.
        let mut common: Option<&(TreeId, Key)> = None;
        for start in starts {
            let sums = (self.ranges.get(start), other.ranges.get(start));
            let is_common = sums.0.is_some() && sums.1.is_some();
            let is_new_tree = start.1.is_empty();
            if is_common || is_new_tree {
                let to = (!is_new_tree).then(|| start.1.clone());
                found.extend(open.take().map(|one| Difference { to, ..one }));
                common = Some(start);
            }
            if sums.0 != sums.1 && open.is_none() {
                let (tree, from) = common.unwrap_or(start).clone();
                open = Some(Difference {
                    tree,
                    from,
                    to: None,
                });
            }
        }
        found.extend(open);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREES: [TreeId; 2] = [TreeId(7), TreeId(9)];

    fn contents(skip: impl Fn(TreeId, u32) -> bool, row: impl Fn(TreeId, u32) -> u32) -> Contents {
        let mut contents = Contents::default();
        for tree in TREES {
            for key in (0..1_000).filter(|key| !skip(tree, *key)) {
                contents.add(tree, &u32::to_be_bytes(key), &row(tree, key).to_be_bytes());
            }
        }
        contents
    }

    fn is_in(difference: &Difference, tree: TreeId, key: u32) -> bool {
        let key = &key.to_be_bytes()[..];
        let below = difference.to.as_deref().is_none_or(|to| key < to);
        difference.tree == tree && &difference.from[..] <= key && below
    }

    #[test]
    fn where_two_differ_is_found_to_a_range() {
        let sound = contents(|_, _| false, |_, key| key);
        assert_eq!(sound.rows(), 2_000);
        assert!(sound.ranges.len() > 10 && sound.ranges.len() < 100);
        assert_eq!(sound.differences(&sound), []);
        for at in 0..1_000 {
            let other = |tree, key| {
                if (tree, key) == (TREES[0], at) {
                    1_000_000
                } else {
                    key
                }
            };
            let changed = contents(|_, _| false, other);
            let missing = contents(|tree, key| (tree, key) == (TREES[1], at), |_, key| key);
            for (other, tree) in [(changed, TREES[0]), (missing, TREES[1])] {
                for (one, other) in [(&sound, &other), (&other, &sound)] {
                    let found = one.differences(other);
                    assert_eq!(found.len(), 1, "{at}");
                    assert!(is_in(&found[0], tree, at), "{at}: {found:?}");
                    let wide = (0..1_000).filter(|key| is_in(&found[0], tree, *key));
                    assert!(wide.count() < 600, "{at}: {found:?}");
                }
            }
        }
    }

    #[test]
    fn a_tree_that_one_of_two_lacks_is_a_difference_of_its_own() {
        let sound = contents(|_, _| false, |_, key| key);
        for (place, tree) in TREES.into_iter().enumerate() {
            let lacking = contents(|one, _| one == tree, |_, key| key);
            for found in [sound.differences(&lacking), lacking.differences(&sound)] {
                assert!(!found.is_empty(), "{place}");
                assert!(found.iter().all(|one| one.tree == tree), "{found:?}");
                assert!(found[0].from.is_empty());
                assert_eq!(found[found.len() - 1].to, None);
            }
        }
    }
}
