//! Many row locks of one transaction: they become locks of ranges of keys.
//!
//! A transaction that changes ten million rows would fill the leader's memory with their locks. So
//! when it has more than [`ROW_LOCKS_MAX`], those of one tree and strength become few: each range
//! from one of its keys to another, with no row in between that somebody else has locked. Nobody
//! is asked and nobody waits for that. The price is that rows in between, which it never touched,
//! are locked until it ends, and keys in between that are not there yet. From then on its further
//! row locks go into its ranges a few at a time ([`ROW_LOCKS_STEP`]): they never fill the memory
//! again, nor the processor's cache. Where keys only grow and nobody else has a row lock in the
//! tree, not even that: the last range is made longer, and there is no row lock.
//!
//! ```text
//! row locks   a b   c      d e   g h          mine: a b c e g h      another's: d
//! ranges      [a ─── c]      [e ─── h]        f is locked too; d is not
//! ```
//!
//! # How
//! A range is a lock like any other, with a name of its own, and an entry in [`Ranges`], where
//! whoever locks a row looks. It looks *after* it has got the row's lock; whoever makes a range
//! looks for the locks of others after the range is in there. So one of the two sees the other:
//!
//! - Who finds its row in another's range gives the row up, waits for the range's lock as for any
//!   (in line, with its deadlock check and timeouts), gives that up too, and begins anew.
//! - Who finds another's row lock in its new range makes two of it.
//! - Who would make a range longer does so only while [`RowCounts`] has no row lock, with the ranges
//!   latched: whoever gets a row's lock after that finds the longer range.
//!
//! A row lock for which somebody stands in line stays what it is.
//!
//! # Invariants
//! - At no moment between its row lock and its range is a row of the transaction unlocked.
//! - A rollback to a savepoint keeps a range in which there is a row locked before it.
//! - An entry of [`Ranges`] is gone before its lock is given up.
//! - [`RowCounts`] has counted a row lock before its owner looks at ranges.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;

use base::engine::{LockWait, RowLock};
use base::hash::{HashMap, HashSet};
use base::large::{Large, DROP_WORK};
use base::limits::ROWS_PER_YIELD;
use base::sync::RwLock;
use base::{coro, Key, Result, TreeId};

use super::modes::{Mode, Modes};
use super::owner::Owner;
use super::queue::Lock;
use super::{put_name, Acquired, Held, LockTable, Name, TxnLocks, KEY, TREE_BYTES};

/// Row locks of one transaction, beyond which they become locks of ranges.
pub const ROW_LOCKS_MAX: usize = if cfg!(test) { 40 } else { 100_000 };

/// Row locks that a transaction which has ranges holds besides, before they go into them, unless the
/// table has more locks to be looked through. Few are cheap: they are in the processor's cache.
const ROW_LOCKS_STEP: usize = if cfg!(test) { 10 } else { 1_000 };

/// Ranges that row locks of one tree and strength become at most. Where those of others lie so
/// close that there would be more, the rest stay row locks.
const RANGES_MAX: usize = if cfg!(test) { 8 } else { 1_000 };

/// Among more ranges of a tree none is made longer without row locks: they are all looked at.
const RANGES_GROWN_AMONG: usize = 8;

/// What looking at a row's lock counts for, and comparing two keys, in the units of [`coro::work`].
const LOOK_WORK: usize = 128;
const COMPARE_WORK: usize = 16;

/// What comes after the tree in the name of a range's lock; then its number.
pub(super) const RANGE: u8 = 3;

const STRENGTHS: [RowLock; 4] = [
    RowLock::Update,
    RowLock::NoKeyUpdate,
    RowLock::Share,
    RowLock::KeyShare,
];

/// A range of keys, both ends included, that one transaction has locked.
#[derive(Clone, Debug)]
struct Range {
    first: Key,
    last: Key,
    owner: Owner,
    mode: Mode,
    name: Name,
}

impl Range {
    fn has(&self, key: &[u8]) -> bool {
        self.first.as_slice() <= key && key <= self.last.as_slice()
    }
}

/// Trees share counts, so that there are few.
const ROW_COUNTS: usize = 64;

/// How many row locks there are, by tree, or more.
#[derive(Debug)]
pub(super) struct RowCounts([AtomicUsize; ROW_COUNTS]);

impl Default for RowCounts {
    fn default() -> RowCounts {
        RowCounts(std::array::from_fn(|_| AtomicUsize::new(0)))
    }
}

impl RowCounts {
    fn of_tree(&self, tree: TreeId) -> &AtomicUsize {
        &self.0[tree.0 as usize % ROW_COUNTS]
    }

    fn of(&self, name: &[u8]) -> Option<&AtomicUsize> {
        row_of(name).map(|(tree, _)| self.of_tree(tree))
    }

    /// There is a lock of this name now.
    pub(super) fn added(&self, name: &[u8]) {
        if let Some(count) = self.of(name) {
            count.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// The lock of this name is no more.
    pub(super) fn removed(&self, name: &[u8]) {
        if let Some(count) = self.of(name) {
            count.fetch_sub(1, Ordering::SeqCst);
        }
    }

    #[cfg(test)]
    pub(super) fn total(&self) -> usize {
        self.0
            .iter()
            .map(|count| count.load(Ordering::SeqCst))
            .sum()
    }
}

/// The ranges that transactions have locked, by tree.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    /// How many there are: mostly none.
    count: AtomicUsize,
    next: AtomicU64,
    trees: RwLock<BTreeMap<TreeId, Vec<Range>>>,
}

impl Ranges {
    pub(super) fn clear(&self) {
        let mut trees = self.trees.write();
        trees.clear();
        self.count.store(0, Ordering::SeqCst);
    }

    fn add(&self, tree: TreeId, range: Range) {
        let mut trees = self.trees.write();
        trees.entry(tree).or_default().push(range);
        self.count.fetch_add(1, Ordering::SeqCst);
    }

    fn remove(&self, name: &[u8]) {
        let (tree, _) = split(name);
        let mut trees = self.trees.write();
        let Some(ranges) = trees.get_mut(&tree) else {
            return;
        };
        if let Some(place) = ranges.iter().position(|range| *range.name == *name) {
            ranges.swap_remove(place);
            self.count.fetch_sub(1, Ordering::SeqCst);
        }
        if ranges.is_empty() {
            trees.remove(&tree);
        }
    }

    /// Whether a party has such a range already: (covered, or the range of another in the way).
    fn look(&self, tree: TreeId, key: &[u8], owner: Owner, mode: Mode) -> Found {
        if self.count.load(Ordering::SeqCst) == 0 {
            return Found::Nothing;
        }
        let trees = self.trees.read();
        let ranges = trees.get(&tree).into_iter().flatten();
        let mut found = Found::Nothing;
        for range in ranges.filter(|range| range.has(key)) {
            let held = Modes::NONE.with(range.mode);
            if range.owner == owner && held.covers(mode) {
                return Found::Covered;
            }
            if range.owner.party != owner.party && mode.conflicts().intersects(held) {
                found = Found::InTheWay(range.name.clone());
            }
        }
        found
    }

    /// Makes the last range of an owner longer, so that it has a key behind it; false where that
    /// is not for sure in nobody's way.
    fn grow(
        &self,
        (tree, key): (TreeId, &[u8]),
        (owner, mode): (Owner, Mode),
        rows: &RowCounts,
    ) -> bool {
        let mut trees = self.trees.write();
        let few = |ranges: &&mut Vec<Range>| ranges.len() <= RANGES_GROWN_AMONG;
        let Some(ranges) = trees.get_mut(&tree).filter(few) else {
            return false;
        };
        let is_own =
            |range: &Range| range.owner == owner && Modes::NONE.with(range.mode).covers(mode);
        let own = ranges.iter().enumerate().filter(|(_, range)| is_own(range));
        let Some((place, last)) = own.max_by_key(|(_, range)| &range.last) else {
            return false;
        };
        let is_between = |range: &Range| range.first.as_slice() <= key && range.last > last.last;
        let others = ranges
            .iter()
            .filter(|range| range.owner.party != owner.party);
        let is_free = last.last.as_slice() < key
            && rows.of_tree(tree).load(Ordering::SeqCst) == 0
            && !others.into_iter().any(is_between);
        if is_free {
            let last = &mut ranges[place].last;
            last.clear();
            last.extend_from_slice(key);
        }
        is_free
    }

    /// The ends of a range, and in which mode it is locked.
    pub(super) fn find(&self, name: &[u8]) -> Option<(Key, Key, Mode)> {
        let trees = self.trees.read();
        let mut ranges = trees.get(&split(name).0)?.iter();
        let range = ranges.find(|range| *range.name == *name)?;
        Some((range.first.clone(), range.last.clone(), range.mode))
    }

    /// A range is another owner's from now on.
    pub(super) fn hand_over(&self, name: &[u8], other: Owner) {
        let mut trees = self.trees.write();
        let mut ranges = trees.get_mut(&split(name).0).into_iter().flatten();
        if let Some(range) = ranges.find(|range| *range.name == *name) {
            range.owner = other;
        }
    }

    fn of(&self, tree: TreeId, owner: Owner, mode: Mode) -> Vec<Range> {
        let trees = self.trees.read();
        let ranges = trees.get(&tree).into_iter().flatten();
        let own = ranges.filter(|range| range.owner == owner && range.mode == mode);
        own.cloned().collect()
    }
}

enum Found {
    Nothing,
    Covered,
    InTheWay(Name),
}

pub(super) fn split(name: &[u8]) -> (TreeId, &[u8]) {
    let (tree, rest) = name.split_at(TREE_BYTES);
    let tree = tree.iter().fold(0, |id, byte| id << 8 | u64::from(*byte));
    (TreeId(tree), rest)
}

/// The tree and the key of a row's lock.
fn row_of(name: &[u8]) -> Option<(TreeId, &[u8])> {
    match split(name) {
        (tree, [KEY, key @ ..]) => Some((tree, key)),
        _ => None,
    }
}

/// Whether a name is that of a range's lock.
pub(super) fn is_range(name: &[u8]) -> bool {
    name.get(TREE_BYTES) == Some(&RANGE)
}

impl LockTable {
    /// Gives up the entry of a range, whose lock is given up next.
    pub(super) fn forget_range(&self, name: &[u8]) {
        self.ranges.remove(name);
    }

    /// The modes in which an owner holds a lock that nobody else waits for.
    fn held_alone(&self, name: &[u8], owner: Owner) -> Option<Modes> {
        let shard = self.shard(name);
        let lock = shard.locks.get(name)?;
        (!lock.is_waited_for()).then(|| lock.held_by(owner))
    }

    /// The keys of a tree between two that others have locked in a way that a mode excludes. The range
    /// is there already: nobody else gets a lock in it meanwhile.
    fn locked_by_others(&self, tree: TreeId, range: &Range) -> Vec<Key> {
        let mut keys = Vec::new();
        for shard in &self.shards {
            // Of one shard there are not many.
            let shard = shard.lock();
            let seen = shard.locks.len();
            for (name, lock) in &shard.locks {
                let Some((_, key)) = row_of(name).filter(|(of, _)| *of == tree) else {
                    continue;
                };
                let others = lock.held_by_others(range.owner);
                if range.has(key) && range.mode.conflicts().intersects(others) {
                    keys.push(key.to_vec());
                }
            }
            drop(shard);
            coro::work_uninterrupted(seen * COMPARE_WORK);
        }
        keys.sort_unstable();
        keys
    }

    /// Adds a range and its lock.
    fn add_range(&self, tree: TreeId, range: &mut Range) {
        let number = self.ranges.next.fetch_add(1, Ordering::SeqCst);
        let mut name = Vec::new();
        put_name(&mut name, tree, None);
        name.push(RANGE);
        name.extend_from_slice(&number.to_be_bytes());
        range.name = Name::from(name);
        let lock = Lock::held(range.owner, range.mode);
        let name = range.name.clone();
        self.shard(&range.name).locks.insert(name, lock);
        self.ranges.add(tree, range.clone());
    }

    fn drop_range(&self, range: &Range) {
        self.ranges.remove(&range.name);
        self.change(&range.name, |lock, served| {
            lock.give_up(range.owner, Modes::NONE, served);
        });
    }

    /// Gives up a row's lock if its modes are covered and nobody waits for it; whether it did.
    fn give_up_if_covered(&self, name: &[u8], owner: Owner, covered: Modes) -> bool {
        let mut shard = self.shard(name);
        let Some(lock) = shard.locks.get_mut(name) else {
            return false;
        };
        if lock.is_waited_for() || !lock.held_by(owner).is_within(covered) {
            return false;
        }
        lock.give_up(owner, Modes::NONE, &mut Vec::new());
        shard.forget_if_free(name, self);
        true
    }
}

/// A range around all keys, while others are made of it. Dropped, it is given up.
struct Whole {
    table: Arc<LockTable>,
    range: Range,
}

impl Drop for Whole {
    fn drop(&mut self) {
        self.table.drop_range(&self.range);
    }
}

impl TxnLocks {
    /// Takes a range that nobody has locked any of.
    pub(super) fn take_range(&mut self, tree: TreeId, (first, last): (Key, Key), mode: Mode) {
        let mut range = Range {
            first,
            last,
            owner: self.owner,
            mode,
            name: Name::from(&[][..]),
        };
        self.table.add_range(tree, &mut range);
        self.note(range.name, Modes::NONE);
        self.has_ranges = true;
    }

    /// As [`TxnLocks::row`], with an eye on ranges.
    pub(super) fn row_or_range(
        &mut self,
        tree: TreeId,
        key: &[u8],
        strength: RowLock,
        wait: LockWait,
    ) -> Result<Acquired> {
        let mode = Mode::from(strength);
        let (row, who) = ((tree, key), (self.owner, mode));
        if self.has_ranges && self.table.ranges.grow(row, who, &self.table.rows) {
            return Ok(Acquired::Held);
        }
        if let Found::Covered = self.table.ranges.look(tree, key, self.owner, mode) {
            return Ok(Acquired::Held);
        }
        loop {
            put_name(&mut self.name, tree, Some(key));
            let before = self.mark();
            let acquired = self.acquire(mode, wait)?;
            if acquired == Acquired::Skipped {
                return Ok(Acquired::Skipped);
            }
            let found = self.table.ranges.look(tree, key, self.owner, mode);
            let Found::InTheWay(range) = found else {
                self.coarsen()?;
                return Ok(acquired);
            };
            if acquired == Acquired::Held {
                // The range was made around it, and is about to be two.
                return Ok(acquired);
            }
            self.rollback_to(before);
            self.name.clear();
            self.name.extend_from_slice(&range);
            if self.acquire(mode, wait)? == Acquired::Skipped {
                return Ok(Acquired::Skipped);
            }
            self.rollback_to(before);
        }
    }

    /// Makes ranges of row locks, where there are too many. Gives others their turn.
    fn coarsen(&mut self) -> Result<()> {
        if self.held.len() < self.coarsen_at {
            return Ok(());
        }
        let before = self.held.len();
        type Places = Large<Vec<(Key, usize)>>;
        let mut rows: BTreeMap<(TreeId, usize), Places> = BTreeMap::new();
        for (place, held) in self.held.iter().enumerate() {
            give_way(place)?;
            let Some((tree, key)) = row_of(&held.name) else {
                continue;
            };
            let Some(modes) = self.table.held_alone(&held.name, self.owner) else {
                continue;
            };
            let covering = |strength: &RowLock| modes.covers(Mode::from(*strength));
            if let Some(strength) = STRENGTHS.iter().position(covering) {
                let rows = rows.entry((tree, strength)).or_default();
                rows.push((key.to_vec(), held.number));
            }
        }
        for ((tree, strength), keys) in rows {
            let result = self.coarsen_tree(tree, STRENGTHS[strength].into(), keys);
            self.held.sort_by_key(|held| held.number);
            result?;
        }
        self.recount_memory();
        let left = self.held.len();
        let step = match left <= before / 2 {
            true => ROW_LOCKS_STEP.max(self.table.len()),
            // What could not become ranges is not tried again at once.
            false => ROW_LOCKS_MAX,
        };
        self.coarsen_at = left + step.min(ROW_LOCKS_MAX);
        Ok(())
    }

    /// Makes ranges of the row locks of one tree and strength, and of its ranges, if it has some.
    fn coarsen_tree(
        &mut self,
        tree: TreeId,
        mode: Mode,
        keys: Large<Vec<(Key, usize)>>,
    ) -> Result<()> {
        let owner = self.owner;
        let old = self.table.ranges.of(tree, owner, mode);
        // Each member as a range, with the lowest number of its locks.
        let ranges = self.held.iter().filter(|held| is_range(&held.name));
        let numbers: HashMap<&Name, usize> = ranges.map(|held| (&held.name, held.number)).collect();
        let mut members: Large<Vec<(Key, Key, usize)>> = old
            .iter()
            .map(|range| {
                let number = numbers.get(&range.name).copied().unwrap_or(0);
                (range.first.clone(), range.last.clone(), number)
            })
            .collect::<Vec<_>>()
            .into();
        for (key, number) in keys {
            coro::work(LOOK_WORK)?;
            members.push((key.clone(), key, number));
        }
        coro::interruptible(|| {
            members.sort_unstable_by(|a, b| {
                coro::work_or_unwind(COMPARE_WORK);
                a.cmp(b)
            });
        })?;
        let last = members.iter().map(|member| &member.1).max();
        let (Some(first), Some(last)) = (members.first(), last) else {
            return Ok(());
        };
        let mut all = Range {
            first: first.0.clone(),
            last: last.clone(),
            owner,
            mode,
            name: Arc::from([]),
        };
        self.table.add_range(tree, &mut all);
        let whole = Whole {
            table: self.table.clone(),
            range: all,
        };
        let others = self.table.locked_by_others(tree, &whole.range);
        let mut made = join(members, &others, &whole.range);
        if made.len() > RANGES_MAX {
            return Ok(());
        }
        self.has_ranges = true;
        for (range, number) in &mut made {
            self.table.add_range(tree, range);
            self.held.push(Held {
                name: range.name.clone(),
                before: Modes::NONE,
                number: *number,
            });
        }
        drop(whole);
        let gone: HashSet<Name> = old.iter().map(|range| range.name.clone()).collect();
        let covered = Modes::NONE.with(mode);
        if !gone.is_empty() {
            self.held.retain(|held| !gone.contains(&held.name));
        }
        old.iter().for_each(|range| self.table.drop_range(range));
        let is_in = |held: &&Held| {
            coro::work_uninterrupted(LOOK_WORK + made.len() * COMPARE_WORK);
            row_of(&held.name)
                .is_some_and(|(of, key)| of == tree && made.iter().any(|(range, _)| range.has(key)))
        };
        let rows: Vec<Name> = self
            .held
            .iter()
            .filter(is_in)
            .map(|h| h.name.clone())
            .collect();
        let mut given_up: Large<HashSet<Name>> = Large::default();
        let mut result = Ok(());
        for (place, name) in rows.into_iter().enumerate() {
            if self.table.give_up_if_covered(&name, owner, covered) {
                given_up.insert(name);
            }
            // What is given up and still noted as held, if the transaction ends here, does no harm.
            result = give_way(place);
            if result.is_err() {
                break;
            }
        }
        self.held.retain(|held| {
            coro::work_uninterrupted(LOOK_WORK);
            !given_up.contains(&held.name)
        });
        result
    }
}

/// Lets others run now and then.
fn give_way(place: usize) -> Result<()> {
    match place % ROWS_PER_YIELD == ROWS_PER_YIELD - 1 && coro::inside() {
        true => Ok(coro::yield_now()?),
        false => Ok(()),
    }
}

/// Joins members that are next to one another, where no key of another lies between.
fn join(
    members: Large<Vec<(Key, Key, usize)>>,
    others: &[Key],
    like: &Range,
) -> Vec<(Range, usize)> {
    let mut joined: Vec<(Range, usize)> = Vec::new();
    for (first, last, number) in members {
        coro::work_uninterrupted(LOOK_WORK + DROP_WORK);
        let lies_between = |range: &Range| {
            let after = others.partition_point(|key| *key <= range.last);
            others.get(after).is_some_and(|key| *key < first)
        };
        match joined.last_mut() {
            Some((range, lowest)) if !lies_between(range) => {
                range.last = last.max(std::mem::take(&mut range.last));
                *lowest = number.min(*lowest);
            }
            _ => joined.push((
                Range {
                    first,
                    last,
                    ..like.clone()
                },
                number,
            )),
        }
    }
    joined
}
