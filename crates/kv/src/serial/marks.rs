//! What serializable transactions have read and written, tree by tree.
//!
//! Reads leave marks: keys, also of rows that are not there, and the ranges that were scanned, gaps
//! included. Writes are published when their transaction is about to commit. Marking a read and
//! looking for writes of it is one step under the tree's latch, and so is publishing a write and
//! looking for reads of it: of a read and a write of one key, the later always finds the earlier.
//!
//! # Bounds
//! A transaction that reads more than [`POINTS_MAX`] keys of a tree has read the whole tree as far
//! as others are concerned; more than [`RANGES_MAX`] ranges become one that holds them all; more
//! than [`WRITES_MAX`] written keys are the whole tree.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use base::hash::HashMap;
use base::sync::{Mutex, MutexGuard};
use base::{KeyRange, TreeId};

use super::ranges::Ranges;
use super::SerialId;

/// Keys of one tree that a transaction's marks name, at most.
pub const POINTS_MAX: usize = if cfg!(test) { 4 } else { 4_096 };

/// Ranges of one tree that a transaction's marks name, at most.
pub const RANGES_MAX: usize = if cfg!(test) { 2 } else { 256 };

/// Keys of one tree that a transaction's published writes name, at most.
pub const WRITES_MAX: usize = if cfg!(test) { 3 } else { 16_384 };

/// Latches over the trees' marks.
const SHARDS: usize = 16;

const _: () = assert!(SHARDS.is_power_of_two());

type Name = Arc<[u8]>;

/// What one transaction has read of a tree.
#[derive(Debug, Default)]
struct Reads {
    points: Vec<Name>,
    ranges: Ranges,
}

#[derive(Debug, Default)]
struct Tree {
    reads: BTreeMap<SerialId, Reads>,
    /// Who has read these keys.
    points: HashMap<Name, Vec<SerialId>>,
    /// Who has read ranges.
    ranged: BTreeSet<SerialId>,
    writes: BTreeMap<Name, Vec<SerialId>>,
    written: HashMap<SerialId, Vec<Name>>,
    /// Who has written keys that are not named.
    wrote_all: BTreeSet<SerialId>,
}

impl Tree {
    fn is_empty(&self) -> bool {
        self.reads.is_empty() && self.written.is_empty() && self.wrote_all.is_empty()
    }

    fn has_read(&self, id: SerialId, key: &[u8]) -> bool {
        self.reads.get(&id).is_some_and(|r| r.ranges.contains(key))
            || self
                .points
                .get(key)
                .is_some_and(|ids| ids.iter().rev().any(|known| *known == id))
    }

    fn mark_key(&mut self, id: SerialId, key: &[u8]) {
        if self.has_read(id, key) {
            return;
        }
        let reads = self.reads.entry(id).or_default();
        if reads.points.len() >= POINTS_MAX {
            return self.mark_range(id, &KeyRange::all());
        }
        let name = match self.points.get_key_value(key) {
            Some((name, _)) => name.clone(),
            None => Name::from(key),
        };
        reads.points.push(name.clone());
        self.points.entry(name).or_default().push(id);
    }

    fn mark_range(&mut self, id: SerialId, range: &KeyRange) {
        let reads = self.reads.entry(id).or_default();
        reads.ranges.add(range);
        if reads.ranges.len() > RANGES_MAX {
            reads.ranges.coarsen();
        }
        self.ranged.insert(id);
        if *range == KeyRange::all() {
            for name in std::mem::take(&mut reads.points) {
                forget(&mut self.points, &name, id);
            }
        }
    }

    fn publish(&mut self, id: SerialId, key: &[u8]) {
        let written = self.written.entry(id).or_default();
        if written.len() >= WRITES_MAX {
            self.wrote_all.insert(id);
        }
        if self.wrote_all.contains(&id) {
            return;
        }
        let name = match self.writes.get_key_value(key) {
            Some((name, _)) => name.clone(),
            None => Name::from(key),
        };
        written.push(name.clone());
        self.writes.entry(name).or_default().push(id);
    }

    fn readers(&self, key: &[u8], out: &mut Vec<SerialId>) {
        out.extend(self.points.get(key).into_iter().flatten());
        let ranged = self.ranged.iter();
        out.extend(ranged.filter(|id| self.reads[id].ranges.contains(key)));
    }

    fn writers(&self, range: &KeyRange, out: &mut Vec<SerialId>) {
        out.extend(&self.wrote_all);
        let end = range.end.as_deref();
        if end.is_none_or(|end| range.start.as_slice() < end) {
            let bounds = (
                Bound::Included(range.start.as_slice()),
                end.map_or(Bound::Unbounded, Bound::Excluded),
            );
            out.extend(
                self.writes
                    .range::<[u8], _>(bounds)
                    .flat_map(|(_, ids)| ids),
            );
        }
    }

    fn forget(&mut self, id: SerialId) {
        if let Some(reads) = self.reads.remove(&id) {
            for name in reads.points {
                forget(&mut self.points, &name, id);
            }
            self.ranged.remove(&id);
        }
        self.wrote_all.remove(&id);
        for name in self.written.remove(&id).unwrap_or_default() {
            if let Some(ids) = self.writes.get_mut(&name) {
                ids.retain(|known| *known != id);
                if ids.is_empty() {
                    self.writes.remove(&name);
                }
            }
        }
    }

    /// Makes what `id` did something that `old` did, more coarsely.
    fn summarise(&mut self, id: SerialId, old: SerialId) {
        let mut hull = Ranges::default();
        if let Some(reads) = self.reads.get(&id) {
            reads
                .points
                .iter()
                .for_each(|p| hull.add(&KeyRange::point(p)));
            reads.ranges.hull().iter().for_each(|range| hull.add(range));
        }
        let wrote = self.written.contains_key(&id) || self.wrote_all.contains(&id);
        self.forget(id);
        if let Some(range) = hull.hull() {
            self.mark_range(old, &range);
        }
        if wrote {
            self.wrote_all.insert(old);
        }
    }
}

fn forget(points: &mut HashMap<Name, Vec<SerialId>>, name: &Name, id: SerialId) {
    if let Some(ids) = points.get_mut(name) {
        ids.retain(|known| *known != id);
        if ids.is_empty() {
            points.remove(name);
        }
    }
}

/// The marks of all trees.
#[derive(Debug)]
pub struct Marks {
    shards: Box<[Mutex<HashMap<TreeId, Tree>>]>,
}

impl Marks {
    /// No marks.
    pub fn new() -> Marks {
        Marks {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
        }
    }

    fn shard(&self, tree: TreeId) -> MutexGuard<'_, HashMap<TreeId, Tree>> {
        self.shards[tree.0 as usize & (SHARDS - 1)].lock()
    }

    /// Marks a key as read; others that have published a write of it are added to `writers`.
    pub fn read_key(&self, id: SerialId, tree: TreeId, key: &[u8], writers: &mut Vec<SerialId>) {
        let mut shard = self.shard(tree);
        let marks = shard.entry(tree).or_default();
        marks.mark_key(id, key);
        writers.extend(marks.writes.get(key).into_iter().flatten());
        writers.extend(&marks.wrote_all);
    }

    /// Marks a range as read; others that have published a write in it are added to `writers`.
    pub fn read_range(
        &self,
        id: SerialId,
        tree: TreeId,
        range: &KeyRange,
        writers: &mut Vec<SerialId>,
    ) {
        let mut shard = self.shard(tree);
        let marks = shard.entry(tree).or_default();
        marks.mark_range(id, range);
        marks.writers(range, writers);
    }

    /// Publishes a write; others that have read the key are added to `readers`.
    pub fn write(&self, id: SerialId, tree: TreeId, key: &[u8], readers: &mut Vec<SerialId>) {
        let mut shard = self.shard(tree);
        let marks = shard.entry(tree).or_default();
        marks.publish(id, key);
        marks.readers(key, readers);
    }

    /// Publishes that a tree was dropped: whoever has read anything of it is a reader.
    pub fn drop_tree(&self, id: SerialId, tree: TreeId, readers: &mut Vec<SerialId>) {
        let mut shard = self.shard(tree);
        let marks = shard.entry(tree).or_default();
        marks.wrote_all.insert(id);
        readers.extend(marks.reads.keys());
    }

    /// Who has read a key.
    pub fn readers(&self, tree: TreeId, key: &[u8], readers: &mut Vec<SerialId>) {
        if let Some(marks) = self.shard(tree).get(&tree) {
            marks.readers(key, readers);
        }
    }

    /// Forgets what a transaction has read and written of these trees.
    pub fn forget(&self, id: SerialId, trees: &[TreeId]) {
        self.change(trees, |tree| tree.forget(id));
    }

    /// Makes what a transaction did something that `old` did, more coarsely.
    pub fn summarise(&self, id: SerialId, old: SerialId, trees: &[TreeId]) {
        self.change(trees, |tree| tree.summarise(id, old));
    }

    fn change(&self, trees: &[TreeId], mut change: impl FnMut(&mut Tree)) {
        for tree in trees {
            let mut shard = self.shard(*tree);
            if let Some(marks) = shard.get_mut(tree) {
                change(marks);
                if marks.is_empty() {
                    shard.remove(tree);
                }
            }
        }
    }

    /// Forgets everything.
    pub fn clear(&self) {
        for shard in &self.shards {
            shard.lock().clear();
        }
    }

    /// Whether there is no mark at all.
    pub fn is_empty(&self) -> bool {
        self.shards.iter().all(|shard| shard.lock().is_empty())
    }
}
