//! What statements have cost, by their texts without constants: what `pg_stat_statements` shows.
//!
//! ```text
//! session: select v from t where k = 17 has run      Key { user 10, database 5, id of … k = $1, toplevel }
//!    │  one addition, under the latch of the shard that the id names
//!    ▼
//! Statements (of a node) ── 16 shards of entries ──► pg_stat_statements(true), every shard in turn
//!    └─ as many entries as pg_stat_statements.max: the twentieth that is used least goes
//! ```
//! Each node counts what its own sessions run. All sessions of a cluster but those that read on standbys
//! are served by the node that leads, whichever node their clients came to, so that is where to look;
//! a statement that a standby ran for a session with `quorate.follower_reads` is counted there.
//!
//! It is switched on where a database of the cluster has the extension, which sessions look after when
//! they begin. While none has it, a statement costs one look at a flag.
//!
//! # Invariants
//! - No latch is held but for a look-up and some additions, nor two of shards at once.
//! - There are at most as many entries as `pg_stat_statements.max` says, but for those that sessions
//!   add at the same time, and their texts have at most [`TEXTS_BYTES_MAX`] bytes together.
//!
//! # What it leaves out
//! Nothing of this is logged or kept: a node counts from its start, and a new leader begins with nothing,
//! whatever `pg_stat_statements.save` says. Blocks, scratch space, the log and what PostgreSQL compiles
//! are not counted by statement. An entry is made when its statement has run, not when it is planned, so
//! there are none that wait for their first execution.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;

use base::engine::{CatalogVersion, Transactions, TxnOptions};
use base::hash::HashMap;
use base::sync::Mutex;
use base::Result;

use super::secrets::mask;
use catalog::extension_store;

/// The extension by which this is switched on.
pub const EXTENSION: &str = "pg_stat_statements";

/// Bytes of the text of an entry; a longer one is cut.
pub const TEXT_BYTES_MAX: usize = 64 << 10;

/// Bytes of all texts; where there are more, entries are given up as if there were too many.
pub const TEXTS_BYTES_MAX: usize = 64 << 20;

/// Entries lie in so many places.
const SHARDS: usize = 16;

/// Of a hundred entries so many are given up when there are too many, but no fewer than
/// [`VICTIMS_MIN`].
const VICTIMS_PERCENT: usize = 5;
const VICTIMS_MIN: usize = 10;

/// What an entry's use is worth once others were given up.
const USAGE_KEPT: f64 = 0.99;

/// Whose statement it is, and which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The role with whose rights it ran.
    pub user: u32,
    /// The database.
    pub database: u32,
    /// The id of its text.
    pub id: i64,
    /// Whether a client gave it, and no routine.
    pub toplevel: bool,
}

/// One run of a statement.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ran {
    /// How long planning it took, if that is counted and it was planned for this.
    pub planning: Option<Duration>,
    /// How long it took.
    pub took: Duration,
    /// The rows that it gave or wrote.
    pub rows: u64,
}

/// How long something took, in milliseconds, over all times it was done.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Times {
    /// How often it was done.
    pub count: u64,
    /// All times together.
    pub total: f64,
    /// The shortest.
    pub min: f64,
    /// The longest.
    pub max: f64,
    /// Their mean.
    pub mean: f64,
    /// The sum of the squares of what each differs from it.
    squares: f64,
}

impl Times {
    fn add(&mut self, took: Duration) {
        let took = took.as_secs_f64() * 1_000.0;
        self.count += 1;
        self.total += took;
        if self.count == 1 {
            (self.min, self.max, self.mean) = (took, took, took);
            return;
        }
        self.min = self.min.min(took);
        self.max = self.max.max(took);
        // Welford's way, which loses nothing where times are alike.
        let before = self.mean;
        self.mean += (took - before) / self.count as f64;
        self.squares += (took - before) * (took - self.mean);
    }

    /// By how much they differ.
    pub fn deviation(&self) -> f64 {
        match self.count {
            0 | 1 => 0.0,
            count => (self.squares / count as f64).sqrt(),
        }
    }
}

/// What was counted of a statement.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// How it was planned.
    pub planning: Times,
    /// How it was run.
    pub running: Times,
    /// The rows that it gave or wrote.
    pub rows: u64,
}

#[derive(Debug)]
struct Entry {
    text: Arc<str>,
    counts: Counts,
    /// How often it was used, less what time has taken from that.
    usage: f64,
}

impl Entry {
    fn add(&mut self, ran: &Ran) {
        if let Some(took) = ran.planning {
            self.counts.planning.add(took);
        }
        self.counts.running.add(ran.took);
        self.counts.rows += ran.rows;
        self.usage += 1.0;
    }
}

type Shard = HashMap<Key, Entry>;

/// What the statements of a node have cost.
#[derive(Debug, Default)]
pub struct Statements {
    /// Whether a database has the extension.
    on: AtomicBool,
    /// The catalog that this was looked up in.
    looked: Mutex<Option<CatalogVersion>>,
    shards: [Mutex<Shard>; SHARDS],
    count: AtomicUsize,
    bytes: AtomicUsize,
    /// Held by who gives entries up.
    eviction: Mutex<()>,
    evictions: AtomicI64,
    /// When everything was last forgotten, or counting began.
    since: AtomicI64,
}

impl Statements {
    /// Whether statements are counted.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// A session begins: looks whether a database has the extension, if the catalog has changed since
    /// one did that.
    ///
    /// # Errors
    /// As reads.
    pub fn look(&self, transactions: &dyn Transactions, now: i64) -> Result<()> {
        // What is read after this is no older.
        let version = transactions.catalog_version();
        if *self.looked.lock() == Some(version) {
            return Ok(());
        }
        let mut txn = transactions.begin(TxnOptions::default())?;
        txn.begin_statement()?;
        let is_on = extension_store::is_anywhere(txn.as_mut(), EXTENSION)?;
        self.switch(is_on, now);
        *self.looked.lock() = Some(version);
        Ok(())
    }

    /// A database has the extension now, or none has it any more.
    pub fn switch(&self, is_on: bool, now: i64) {
        if is_on {
            // Only the first time.
            let set = (Ordering::Relaxed, Ordering::Relaxed);
            let _ = self.since.compare_exchange(0, now, set.0, set.1);
        }
        self.on.store(is_on, Ordering::Relaxed);
    }

    fn shard(&self, key: &Key) -> &Mutex<Shard> {
        &self.shards[(key.id as u64 % SHARDS as u64) as usize]
    }

    /// Counts a run of a statement; its text is asked for once. `most` is `pg_stat_statements.max`.
    pub fn count(&self, key: Key, ran: &Ran, most: usize, text: impl FnOnce() -> Arc<str>) {
        if let Some(entry) = self.shard(&key).lock().get_mut(&key) {
            return entry.add(ran);
        }
        let text = shown(text());
        self.make_room(most, text.len());
        let mut shard = self.shard(&key).lock();
        let entry = shard.entry(key).or_insert_with(|| {
            self.count.fetch_add(1, Ordering::Relaxed);
            self.bytes.fetch_add(text.len(), Ordering::Relaxed);
            Entry {
                text,
                counts: Counts::default(),
                usage: 0.0,
            }
        });
        entry.add(ran);
    }

    /// Gives up those that are used least, until there is room for one more.
    fn make_room(&self, most: usize, bytes: usize) {
        let is_full = || {
            self.count.load(Ordering::Relaxed) >= most
                || self.bytes.load(Ordering::Relaxed) + bytes > TEXTS_BYTES_MAX
        };
        while is_full() {
            let _alone = self.eviction.lock();
            // Somebody else may have made room meanwhile.
            if !is_full() || self.evict() == 0 {
                return;
            }
        }
    }

    /// Gives up the twentieth that is used least; returns how many those were.
    fn evict(&self) -> usize {
        let mut usages = Vec::new();
        for shard in &self.shards {
            for (key, entry) in shard.lock().iter_mut() {
                usages.push((entry.usage, *key));
                entry.usage *= USAGE_KEPT;
            }
        }
        let victims = usages.len() * VICTIMS_PERCENT / 100;
        let victims = victims.max(VICTIMS_MIN).min(usages.len());
        if victims == 0 {
            return 0;
        }
        usages.select_nth_unstable_by(victims - 1, |one, other| {
            one.0.total_cmp(&other.0).then(one.1.cmp(&other.1))
        });
        for (_, key) in &usages[..victims] {
            self.remove(key);
        }
        self.evictions.fetch_add(1, Ordering::Relaxed);
        victims
    }

    fn remove(&self, key: &Key) {
        if let Some(entry) = self.shard(key).lock().remove(key) {
            self.count.fetch_sub(1, Ordering::Relaxed);
            self.bytes.fetch_sub(entry.text.len(), Ordering::Relaxed);
        }
    }

    /// Everything that was counted, in the order of users, databases and ids.
    pub fn all(&self) -> Vec<(Key, Arc<str>, Counts)> {
        let mut all = Vec::new();
        for shard in &self.shards {
            let shard = shard.lock();
            let entries = shard.iter();
            all.extend(entries.map(|(key, entry)| (*key, entry.text.clone(), entry.counts)));
        }
        all.sort_unstable_by_key(|entry| entry.0);
        all
    }

    /// How often entries were given up, and since when everything is counted.
    pub fn info(&self) -> (i64, i64) {
        let load = |of: &AtomicI64| of.load(Ordering::Relaxed);
        (load(&self.evictions), load(&self.since))
    }

    /// Forgets the statements of a user, of a database, of an id, or of several of these; 0 is any.
    pub fn reset(&self, user: u32, database: u32, id: i64, now: i64) {
        let is_meant = |key: &Key| {
            (user == 0 || key.user == user)
                && (database == 0 || key.database == database)
                && (id == 0 || key.id == id)
        };
        let all: Vec<_> = self.all();
        let meant: Vec<_> = all.iter().filter(|entry| is_meant(&entry.0)).collect();
        for (key, _, _) in &meant {
            self.remove(key);
        }
        if meant.len() == all.len() {
            self.evictions.store(0, Ordering::Relaxed);
            self.since.store(now, Ordering::Relaxed);
        }
    }
}

/// A text as it is shown: without passwords, and not too long.
fn shown(text: Arc<str>) -> Arc<str> {
    let masked = mask(&text);
    if masked.len() == text.len() && text.len() <= TEXT_BYTES_MAX {
        return text.clone();
    }
    let ends = (0..=TEXT_BYTES_MAX.min(masked.len())).rev();
    let end = ends.into_iter().find(|end| masked.is_char_boundary(*end));
    Arc::from(&masked[..end.unwrap_or(0)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: i64) -> Key {
        Key {
            user: 10,
            database: 5,
            id,
            toplevel: true,
        }
    }

    fn ran(millis: u64) -> Ran {
        Ran {
            took: Duration::from_millis(millis),
            rows: 2,
            ..Ran::default()
        }
    }

    fn count(all: &Statements, id: i64, most: usize) {
        all.count(key(id), &ran(1), most, || Arc::from(format!("text {id}")));
    }

    #[test]
    fn times_are_those_of_all_runs() {
        let all = Statements::default();
        for millis in [1, 2, 3, 6] {
            all.count(key(1), &ran(millis), 100, || Arc::from("text"));
        }
        let (_, text, counts) = all.all().remove(0);
        let times = counts.running;
        assert_eq!((&*text, times.count, counts.rows), ("text", 4, 8));
        assert_eq!(
            (times.total, times.min, times.max, times.mean),
            (12.0, 1.0, 6.0, 3.0)
        );
        assert!((times.deviation() - 3.5_f64.sqrt()).abs() < 1e-9);
        assert_eq!(counts.planning, Times::default());
    }

    #[test]
    fn those_that_are_used_least_are_given_up() {
        let all = Statements::default();
        for id in 1..=100 {
            for _ in 0..if id <= 5 { 50 } else { 1 } {
                count(&all, id, 100);
            }
        }
        assert_eq!((all.all().len(), all.info().0), (100, 0));
        for id in 101..=10_000 {
            count(&all, id, 100);
            // What is not used again loses to what is, however often it once was.
            if id % 100 == 0 {
                (1..=5).for_each(|often| count(&all, often, 100));
            }
        }
        let left = all.all();
        assert!((90..=100).contains(&left.len()), "{}", left.len());
        assert!((1..=5).all(|id| left.iter().any(|entry| entry.0.id == id)));
        // Ten at a time.
        assert_eq!(all.info().0, 990);
        let bytes: usize = left.iter().map(|entry| entry.1.len()).sum();
        assert_eq!(all.bytes.load(Ordering::Relaxed), bytes);
    }

    #[test]
    fn parts_are_forgotten() {
        let all = Statements::default();
        all.switch(true, 7);
        for id in 1..=3 {
            count(&all, id, 100);
            let other = Key {
                user: 11,
                ..key(id)
            };
            all.count(other, &ran(1), 100, || Arc::from("text"));
        }
        all.reset(10, 0, 2, 8);
        assert_eq!((all.all().len(), all.info()), (5, (0, 7)));
        all.reset(11, 5, 0, 8);
        assert_eq!((all.all().len(), all.info()), (2, (0, 7)));
        all.reset(0, 0, 0, 9);
        assert_eq!((all.all().len(), all.info()), (0, (0, 9)));
    }

    #[test]
    fn passwords_are_not_shown() {
        let all = Statements::default();
        all.count(key(1), &ran(1), 100, || {
            Arc::from("create role ann password 'sesame'")
        });
        assert_eq!(&*all.all()[0].1, "create role ann password '********'");
    }
}
