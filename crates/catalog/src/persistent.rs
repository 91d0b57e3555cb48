//! Collections whose copies share what they have in common, so that the next version of a catalog
//! costs what it changes.
//!
//! ```text
//! version 7   [ • | • | • ]        version 8 = version 7 with 16391 put in
//!               |   |   |
//!              1-90 91-180 181-…   a new list of chunks, a new third chunk; the others are shared
//! ```
//! A map is a sorted list of chunks of at most [`CHUNK_MAX`] entries: a change of one copies one chunk
//! and the list, some hundred pointers with ten thousand entries. Further changes of the same copy
//! are made in place.
//!
//! # Invariants
//! - Keys ascend, and no chunk is empty or has more than [`CHUNK_MAX`] entries.
//!
//! # What it leaves out
//! More than two levels: the list of chunks of a map of a million entries has ten thousand.

use std::cmp::Ordering;
use std::fmt;
use std::ops::{Bound, Deref, RangeBounds};
use std::sync::Arc;

/// Entries of a chunk; one with more is divided.
const CHUNK_MAX: usize = 128;

/// Entries of the chunks of a map that is made at once, so that there is room in each.
const CHUNK_BUILT: usize = 96;

type Chunk<K, V> = Arc<Vec<(K, V)>>;

/// An ordered map.
pub struct SharedMap<K, V> {
    chunks: Arc<Vec<Chunk<K, V>>>,
    len: usize,
}

impl<K, V> Clone for SharedMap<K, V> {
    fn clone(&self) -> SharedMap<K, V> {
        SharedMap {
            chunks: self.chunks.clone(),
            len: self.len,
        }
    }
}

impl<K, V> Default for SharedMap<K, V> {
    fn default() -> SharedMap<K, V> {
        SharedMap {
            chunks: Arc::default(),
            len: 0,
        }
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for SharedMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K, V> SharedMap<K, V> {
    /// Whether both share everything: neither has been changed since one was made of the other.
    pub fn is_shared_with(&self, other: &SharedMap<K, V>) -> bool {
        Arc::ptr_eq(&self.chunks, &other.chunks)
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All entries, in the order of keys.
    pub fn iter(&self) -> Entries<'_, K, V> {
        self.entries_from(0, 0)
    }

    /// All values, in the order of keys.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    fn entries_from(&self, chunk: usize, entry: usize) -> Entries<'_, K, V> {
        let (first, rest) = match self.chunks.get(chunk..) {
            Some([first, rest @ ..]) => (&first[entry.min(first.len())..], rest),
            _ => (&[][..], &[][..]),
        };
        Entries {
            chunk: first.iter(),
            rest: rest.iter(),
        }
    }

    /// The place of the first entry that `is_before` does not hold for; it holds for those before.
    fn place(&self, is_before: impl Fn(&K) -> bool) -> (usize, usize) {
        let chunk = self
            .chunks
            .partition_point(|chunk| chunk.last().is_some_and(|last| is_before(&last.0)));
        let entry = self.chunks.get(chunk).map_or(0, |chunk| {
            chunk.partition_point(|(known, _)| is_before(known))
        });
        (chunk, entry)
    }

    /// The entry of the key that `order` says is equal to what is looked for; smaller keys are less.
    pub fn find(&self, order: impl Fn(&K) -> Ordering) -> Option<(&K, &V)> {
        let (chunk, entry) = self.place(|known| order(known) == Ordering::Less);
        let (key, value) = self.chunks.get(chunk)?.get(entry)?;
        (order(key) == Ordering::Equal).then_some((key, value))
    }
}

impl<K: Ord, V> SharedMap<K, V> {
    /// The value of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.find(|known| known.cmp(key)).map(|(_, value)| value)
    }

    /// Whether there is a key.
    pub fn contains_key(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    /// The entries of a range, in the order of keys.
    pub fn range<'m, R: RangeBounds<K> + 'm>(
        &'m self,
        range: R,
    ) -> impl Iterator<Item = (&'m K, &'m V)> {
        let (chunk, entry) = self.place(|known| match range.start_bound() {
            Bound::Included(start) => known < start,
            Bound::Excluded(start) => known <= start,
            Bound::Unbounded => false,
        });
        let entries = self.entries_from(chunk, entry);
        entries.take_while(move |(key, _)| match range.end_bound() {
            Bound::Included(end) => *key <= end,
            Bound::Excluded(end) => *key < end,
            Bound::Unbounded => true,
        })
    }
}

impl<K: Ord + Clone, V: Clone> SharedMap<K, V> {
    /// Puts a value under a key, instead of the one that is there.
    pub fn insert(&mut self, key: K, value: V) {
        let (place, entry) = self.place(|known| *known < key);
        let chunks = Arc::make_mut(&mut self.chunks);
        // Behind all others: into the last chunk.
        let place = place.min(chunks.len().saturating_sub(1));
        let Some(chunk) = chunks.get_mut(place) else {
            chunks.push(Arc::new(vec![(key, value)]));
            self.len = 1;
            return;
        };
        let chunk = Arc::make_mut(chunk);
        let entry = match chunk.last() {
            Some(last) if last.0 < key => chunk.len(),
            _ => entry,
        };
        match chunk.get_mut(entry) {
            Some(known) if known.0 == key => {
                known.1 = value;
                return;
            }
            _ => chunk.insert(entry, (key, value)),
        }
        self.len += 1;
        if chunk.len() > CHUNK_MAX {
            let upper = chunk.split_off(CHUNK_MAX / 2);
            chunks.insert(place + 1, Arc::new(upper));
        }
    }

    /// Removes a key; what was its value.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let (place, entry) = self.place(|known| known < key);
        if self.chunks.get(place)?.get(entry)?.0 != *key {
            return None;
        }
        let chunks = Arc::make_mut(&mut self.chunks);
        let chunk = Arc::make_mut(chunks.get_mut(place)?);
        let (_, value) = chunk.remove(entry);
        self.len -= 1;
        let left = chunk.len();
        // What is left of neighbours that have few goes together, so that chunks do not get small.
        let next = chunks.get(place + 1).map_or(usize::MAX, |next| next.len());
        if left == 0 {
            chunks.remove(place);
        } else if left.saturating_add(next) <= CHUNK_MAX / 2 {
            let next = chunks.remove(place + 1);
            Arc::make_mut(&mut chunks[place]).extend(next.iter().cloned());
        }
        Some(value)
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for SharedMap<K, V> {
    /// Of entries in any order; of those with the same key the last.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> SharedMap<K, V> {
        let mut all: Vec<(K, V)> = entries.into_iter().collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all.reverse();
        all.dedup_by(|earlier, later| earlier.0 == later.0);
        let len = all.len();
        let mut chunks = Vec::with_capacity(len.div_ceil(CHUNK_BUILT));
        while !all.is_empty() {
            let mut chunk = all.split_off(all.len().saturating_sub(CHUNK_BUILT));
            chunk.reverse();
            chunks.push(Arc::new(chunk));
        }
        SharedMap {
            chunks: Arc::new(chunks),
            len,
        }
    }
}

impl<'m, K, V> IntoIterator for &'m SharedMap<K, V> {
    type Item = (&'m K, &'m V);
    type IntoIter = Entries<'m, K, V>;

    fn into_iter(self) -> Entries<'m, K, V> {
        self.iter()
    }
}

/// Entries of a map, in order.
pub struct Entries<'m, K, V> {
    chunk: std::slice::Iter<'m, (K, V)>,
    rest: std::slice::Iter<'m, Chunk<K, V>>,
}

impl<'m, K, V> Iterator for Entries<'m, K, V> {
    type Item = (&'m K, &'m V);

    fn next(&mut self) -> Option<(&'m K, &'m V)> {
        loop {
            if let Some((key, value)) = self.chunk.next() {
                return Some((key, value));
            }
            self.chunk = self.rest.next()?.iter();
        }
    }
}

/// A list, copied whole when a copy that is shared is changed: for what there are few of.
#[derive(Debug)]
pub struct SharedList<T>(Arc<Vec<T>>);

impl<T> Clone for SharedList<T> {
    fn clone(&self) -> SharedList<T> {
        SharedList(self.0.clone())
    }
}

impl<T> Deref for SharedList<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> From<Vec<T>> for SharedList<T> {
    fn from(list: Vec<T>) -> SharedList<T> {
        SharedList(Arc::new(list))
    }
}

impl<'l, T> IntoIterator for &'l SharedList<T> {
    type Item = &'l T;
    type IntoIter = std::slice::Iter<'l, T>;

    fn into_iter(self) -> std::slice::Iter<'l, T> {
        self.0.iter()
    }
}

impl<T> SharedList<T> {
    /// Whether both are one list: neither has been changed since one was made of the other.
    pub fn is_shared_with(&self, other: &SharedList<T>) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T: Clone> SharedList<T> {
    /// The list, to be changed.
    pub fn make_mut(&mut self) -> &mut Vec<T> {
        Arc::make_mut(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Checks the invariants, and that the map has just these entries.
    fn check(map: &SharedMap<u32, u32>, model: &BTreeMap<u32, u32>) {
        assert!(map.iter().eq(model.iter()));
        assert_eq!(map.len(), model.len());
        let sizes = map.chunks.iter().map(|chunk| chunk.len());
        assert!(sizes.clone().all(|size| (1..=CHUNK_MAX).contains(&size)));
    }

    #[test]
    fn it_is_a_map() {
        let (mut map, mut model) = (SharedMap::default(), BTreeMap::new());
        let mut random = 1u32;
        for step in 0..20_000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let key = (random >> 8) % 3_000;
            // It grows, and shrinks again.
            match (random >> 4) % 8 < if step < 10_000 { 6 } else { 2 } {
                true => {
                    map.insert(key, step);
                    model.insert(key, step);
                }
                false => assert_eq!(map.remove(&key), model.remove(&key)),
            }
            if step % 500 == 0 {
                check(&map, &model);
                assert!(map.range(key..=key + 700).eq(model.range(key..=key + 700)));
                assert_eq!(map.get(&key), model.get(&key));
            }
        }
        check(&map, &model);
        check(&model.clone().into_iter().collect(), &model);
    }

    #[test]
    fn of_equal_keys_the_last_counts() {
        let map: SharedMap<u32, u32> = [(2, 1), (1, 1), (2, 5)].into_iter().collect();
        assert!(map.iter().eq([(&1, &1), (&2, &5)]));
    }

    #[test]
    fn a_change_copies_one_chunk() {
        let old: SharedMap<u32, u32> = (0..100_000).map(|key| (key, key)).collect();
        let mut new = old.clone();
        new.insert(50_000, 1);
        assert_eq!(old.get(&50_000), Some(&50_000));
        let pairs = old.chunks.iter().zip(new.chunks.iter());
        assert_eq!(pairs.filter(|(a, b)| !Arc::ptr_eq(a, b)).count(), 1);
    }
}
