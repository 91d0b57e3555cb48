//! A set of keys as disjoint ranges.

use std::collections::BTreeMap;
use std::ops::Bound;

use base::{Key, KeyRange};

/// Disjoint ranges, each with its end; none is to the last key.
#[derive(Debug, Default)]
pub struct Ranges {
    ends: BTreeMap<Key, Option<Key>>,
}

/// Whether a range that ends at `end` reaches `key`: contains it, or ends just before it.
fn reaches(end: Option<&Key>, key: &[u8]) -> bool {
    end.is_none_or(|end| end.as_slice() >= key)
}

impl Ranges {
    /// How many ranges there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Adds a range, melting it together with those that it touches.
    pub fn add(&mut self, range: &KeyRange) {
        let mut end = range.end.clone();
        if end.as_ref().is_some_and(|end| *end <= range.start) {
            return;
        }
        let mut start = range.start.as_slice();
        let before = (Bound::Unbounded, Bound::Included(start));
        let known = self.ends.range::<[u8], _>(before).next_back();
        let known = known.filter(|(_, end)| reaches(end.as_ref(), start));
        if let Some((known_start, known_end)) = known {
            let covers = match (known_end, &end) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(known), Some(end)) => known >= end,
            };
            if covers {
                return;
            }
            start = known_start;
        }
        let start = start.to_vec();
        // Those that begin within it melt into it.
        loop {
            let within = (Bound::Included(start.as_slice()), Bound::Unbounded);
            let next = self.ends.range::<[u8], _>(within).next();
            let Some((next, _)) = next.filter(|(next, _)| reaches(end.as_ref(), next)) else {
                break;
            };
            let next = next.clone();
            let next_end = self.ends.remove(&next).expect("it was just seen");
            end = match (end, next_end) {
                (Some(one), Some(other)) => Some(one.max(other)),
                _ => None,
            };
        }
        self.ends.insert(start, end);
    }

    /// Whether a key lies in one of the ranges.
    pub fn contains(&self, key: &[u8]) -> bool {
        let before = (Bound::Unbounded, Bound::Included(key));
        let last = self.ends.range::<[u8], _>(before).next_back();
        last.is_some_and(|(_, end)| end.as_deref().is_none_or(|end| key < end))
    }

    /// The smallest range that holds all of them.
    pub fn hull(&self) -> Option<KeyRange> {
        let (start, _) = self.ends.first_key_value()?;
        let (_, end) = self.ends.last_key_value()?;
        Some(KeyRange {
            start: start.clone(),
            end: end.clone(),
        })
    }

    /// Makes one range of them, which holds more.
    pub fn coarsen(&mut self) {
        if let Some(hull) = self.hull() {
            self.ends.clear();
            self.ends.insert(hull.start, hull.end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u8, end: u8) -> KeyRange {
        KeyRange {
            start: vec![start],
            end: (end != 0).then(|| vec![end]),
        }
    }

    #[test]
    fn ranges_hold_what_was_added_and_nothing_else() {
        // Every set of three ranges over a few keys, against a plain set.
        let all: Vec<(u8, u8)> = (1..7).flat_map(|s| (0..8).map(move |e| (s, e))).collect();
        let mut state = 7_u64;
        for _ in 0..20_000 {
            let mut ranges = Ranges::default();
            let mut plain = [false; 9];
            for _ in 0..4 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let (start, end) = all[(state >> 33) as usize % all.len()];
                ranges.add(&range(start, end));
                let end = if end == 0 { 9 } else { end };
                for key in start..end {
                    plain[usize::from(key)] = true;
                }
            }
            for key in 0..9_u8 {
                let found = ranges.contains(&[key]);
                assert_eq!(found, plain[usize::from(key)], "{key} in {ranges:?}");
            }
            let runs = plain.windows(2).filter(|w| !w[0] && w[1]).count();
            assert_eq!(
                ranges.len(),
                runs,
                "{ranges:?} is not as few ranges as possible"
            );
        }
    }

    #[test]
    fn a_hull_holds_everything_between() {
        let mut ranges = Ranges::default();
        ranges.add(&range(1, 2));
        ranges.add(&range(5, 6));
        assert!(!ranges.contains(&[3]));
        ranges.coarsen();
        assert!(ranges.contains(&[3]) && !ranges.contains(&[6]));
        assert_eq!(ranges.len(), 1);
    }
}
