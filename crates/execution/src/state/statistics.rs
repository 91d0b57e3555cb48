//! What was done with relations, routines and databases: counted by each session, shown by
//! `pg_stat_user_tables` and its kin.
//!
//! ```text
//! Counting (of a session: its open transaction)
//!    │ the transaction ends
//!    ▼
//! Tally (of a session, where others can look) ── many relations, or the session ends ──► Statistics (of a node)
//!    └────────────────────────── Snapshot: both, as a reader asks ───────────────────────────┘
//! ```
//! So what a statement does costs an addition in memory that nobody else looks at, and the end of a
//! transaction one in the session's own [`Tally`], whose latch nobody else holds but a reader. Nothing is
//! allocated for a relation that the session has used before.
//!
//! # Invariants
//! - A reader sees everything of transactions that have ended.
//! - A snapshot is the same until the transaction ends that took it, or `pg_stat_clear_snapshot()`.
//!
//! # What it leaves out
//! Nothing of this is logged: a node counts what its own sessions do, from its start. A new leader begins
//! at 0, as PostgreSQL does after a crash. Blocks are not counted for each relation. What was rolled back
//! to a savepoint counts as changed if the transaction is committed.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use base::engine::StorageStatus;
use base::hash::HashMap;
use base::memory::Reservation;
use base::sync::Mutex;
use base::Result;

use super::activity::Activity;
use super::statements::Statements;

/// A transaction counts so many relations; what it does with more is not counted.
const TRANSACTION_RELATIONS_MAX: usize = 10_000;

/// A session keeps the counts of so many relations; with more, they go to those of the node.
const SESSION_RELATIONS_MAX: usize = 64;

/// A node keeps the counts of so many relations; what is done with more is not counted.
const NODE_RELATIONS_MAX: usize = 200_000;

/// A map that had more places is given back instead of being used again.
const PLACES_KEPT_MAX: usize = 256;

/// What was done with a table or an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RelationCounts {
    /// Scans: of a table from its first row, or by an index.
    pub scans: u64,
    /// Rows, or entries, that they read.
    pub returned: u64,
    /// Rows that entries led to.
    pub fetched: u64,
    /// Rows that were inserted, also by transactions that were rolled back.
    pub inserted: u64,
    /// Rows that were updated, likewise.
    pub updated: u64,
    /// Rows that were deleted, likewise.
    pub deleted: u64,
    /// Rows that committed transactions have inserted, updated or deleted.
    pub changed: u64,
}

impl RelationCounts {
    fn add(&mut self, other: &RelationCounts) {
        self.scans += other.scans;
        self.returned += other.returned;
        self.fetched += other.fetched;
        self.inserted += other.inserted;
        self.updated += other.updated;
        self.deleted += other.deleted;
        self.changed += other.changed;
    }
}

/// How a routine was called. Times are in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoutineCounts {
    /// Calls.
    pub calls: u64,
    /// The time that they took.
    pub total: u64,
    /// The same without what the routines took that they have called.
    pub own: u64,
}

impl RoutineCounts {
    fn add(&mut self, other: &RoutineCounts) {
        self.calls += other.calls;
        self.total += other.total;
        self.own += other.own;
    }
}

/// What was done in a database. Times are in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatabaseCounts {
    /// Transactions that were committed.
    pub commits: u64,
    /// Transactions that were rolled back.
    pub rollbacks: u64,
    /// Statements that a deadlock has ended.
    pub deadlocks: u64,
    /// Sets of rows that went to scratch space.
    pub temp_files: u64,
    /// Their bytes.
    pub temp_bytes: u64,
    /// Sessions that began.
    pub sessions: u64,
    /// Those whose clients were lost.
    pub abandoned: u64,
    /// Those that an error has ended.
    pub fatal: u64,
    /// Those that an operator has ended.
    pub killed: u64,
    /// How long there were sessions.
    pub session_time: u64,
    /// How long they ran statements.
    pub active_time: u64,
    /// How long they idled in transactions.
    pub idle_in_transaction_time: u64,
    /// What was done with all relations.
    pub relations: RelationCounts,
}

impl DatabaseCounts {
    fn add(&mut self, other: &DatabaseCounts) {
        self.commits += other.commits;
        self.rollbacks += other.rollbacks;
        self.deadlocks += other.deadlocks;
        self.temp_files += other.temp_files;
        self.temp_bytes += other.temp_bytes;
        self.sessions += other.sessions;
        self.abandoned += other.abandoned;
        self.fatal += other.fatal;
        self.killed += other.killed;
        self.session_time += other.session_time;
        self.active_time += other.active_time;
        self.idle_in_transaction_time += other.idle_in_transaction_time;
        self.relations.add(&other.relations);
    }
}

/// How a session has ended, if not because its client said goodbye.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Its client was lost.
    Abandoned,
    /// By an error.
    Fatal,
    /// By an operator.
    Killed,
}

/// What the transactions of a session have done that have ended.
#[derive(Debug, Default)]
pub struct Tally {
    /// The database; 0 while the session has not begun.
    database: u32,
    counts: DatabaseCounts,
    relations: HashMap<u32, RelationCounts>,
    routines: HashMap<u32, RoutineCounts>,
}

impl Tally {
    /// The session has begun, a client's or the node's own.
    pub fn begin(&mut self, database: u32, is_client: bool) {
        self.database = database;
        self.counts.sessions += u64::from(is_client);
    }

    /// The session ends.
    pub fn end(&mut self, how: Ended) {
        match how {
            Ended::Abandoned => self.counts.abandoned += 1,
            Ended::Fatal => self.counts.fatal += 1,
            Ended::Killed => self.counts.killed += 1,
        }
    }

    fn forget(&mut self) {
        self.counts = DatabaseCounts::default();
        self.relations.clear();
        self.routines.clear();
    }
}

/// What the open transaction of a session does, and what the session has looked at.
#[derive(Debug, Default)]
pub struct Counting {
    relations: HashMap<u32, RelationCounts>,
    routines: HashMap<u32, RoutineCounts>,
    deadlocks: u64,
    /// What was said of scratch space before.
    temp: (u64, u64),
    /// What the routines took that the one at work has called.
    inner: u64,
    snapshot: Option<Rc<Snapshot>>,
}

impl Counting {
    /// What the transaction has done with a relation, to be added to.
    #[inline]
    fn relation(&mut self, oid: u32) -> Option<&mut RelationCounts> {
        let is_full = self.relations.len() >= TRANSACTION_RELATIONS_MAX;
        if is_full && !self.relations.contains_key(&oid) {
            return None;
        }
        Some(self.relations.entry(oid).or_default())
    }

    /// A scan begins.
    #[inline]
    pub fn scanned(&mut self, oid: u32) {
        if let Some(counts) = self.relation(oid) {
            counts.scans += 1;
        }
    }

    /// A scan has read rows; `by_index` says that the relation is an index.
    #[inline]
    pub fn read(&mut self, oid: u32, rows: usize, by_index: bool) {
        if let Some(counts) = self.relation(oid) {
            counts.returned += rows as u64;
            counts.fetched += if by_index { rows as u64 } else { 0 };
        }
    }

    /// A row was looked up by its key.
    #[inline]
    pub fn looked_up(&mut self, oid: u32, found: bool) {
        if let Some(counts) = self.relation(oid) {
            counts.scans += 1;
            counts.returned += u64::from(found);
            counts.fetched += u64::from(found);
        }
    }

    /// A row was inserted.
    #[inline]
    pub fn inserted(&mut self, oid: u32) {
        if let Some(counts) = self.relation(oid) {
            counts.inserted += 1;
        }
    }

    /// A row was updated.
    #[inline]
    pub fn updated(&mut self, oid: u32) {
        if let Some(counts) = self.relation(oid) {
            counts.updated += 1;
        }
    }

    /// A row was deleted.
    #[inline]
    pub fn deleted(&mut self, oid: u32) {
        if let Some(counts) = self.relation(oid) {
            counts.deleted += 1;
        }
    }

    /// A deadlock has ended a statement.
    pub fn deadlocked(&mut self) {
        self.deadlocks += 1;
    }

    /// A routine is called: what the one around it had until now. To be given to
    /// [`Counting::came_back`].
    pub fn called(&mut self) -> u64 {
        std::mem::take(&mut self.inner)
    }

    /// A routine that took so many microseconds has returned.
    pub fn came_back(&mut self, oid: u32, took: u64, before: u64) {
        let inner = std::mem::replace(&mut self.inner, before + took);
        let counts = self.routines.entry(oid).or_default();
        counts.calls += 1;
        counts.total += took;
        counts.own += took.saturating_sub(inner);
    }

    /// What the transaction has done with a relation until now.
    pub fn of_relation(&self, oid: u32) -> Option<RelationCounts> {
        self.relations.get(&oid).copied()
    }

    /// How the transaction has called a routine until now.
    pub fn of_routine(&self, oid: u32) -> Option<RoutineCounts> {
        self.routines.get(&oid).copied()
    }

    /// What readers see, if they have looked already.
    pub fn snapshot(&self) -> Option<&Rc<Snapshot>> {
        self.snapshot.as_ref()
    }

    /// Keeps what a reader sees.
    pub fn keep(&mut self, snapshot: Rc<Snapshot>) {
        self.snapshot = Some(snapshot);
    }

    /// Forgets what readers have seen.
    pub fn clear_snapshot(&mut self) {
        self.snapshot = None;
    }

    /// The transaction has ended: what it has done goes to the session's tally, where it `counts`.
    /// `temp` is what the session has ever written to scratch space.
    pub fn end(
        &mut self,
        (committed, counts): (bool, bool),
        temp: (u64, u64),
        activity: &Activity,
        node: impl FnOnce() -> Option<Arc<Statistics>>,
    ) {
        self.snapshot = None;
        self.inner = 0;
        let before = std::mem::replace(&mut self.temp, temp);
        let deadlocks = std::mem::take(&mut self.deadlocks);
        if counts {
            let mut tally = activity.tally();
            match committed {
                true => tally.counts.commits += 1,
                false => tally.counts.rollbacks += 1,
            }
            tally.counts.deadlocks += deadlocks;
            tally.counts.temp_files += temp.0.saturating_sub(before.0);
            tally.counts.temp_bytes += temp.1.saturating_sub(before.1);
            for (oid, counts) in &mut self.relations {
                if committed {
                    counts.changed = counts.inserted + counts.updated + counts.deleted;
                }
                tally.relations.entry(*oid).or_default().add(counts);
                tally.counts.relations.add(counts);
            }
            for (oid, counts) in &self.routines {
                tally.routines.entry(*oid).or_default().add(counts);
            }
            let is_large = |len: usize, capacity: usize| {
                len > SESSION_RELATIONS_MAX || capacity > PLACES_KEPT_MAX
            };
            let relations = (tally.relations.len(), tally.relations.capacity());
            let routines = (tally.routines.len(), tally.routines.capacity());
            if is_large(relations.0, relations.1) || is_large(routines.0, routines.1) {
                if let Some(node) = node() {
                    node.totals.lock().take(&mut tally);
                }
            }
        }
        clear(&mut self.relations);
        clear(&mut self.routines);
    }
}

fn clear<T>(map: &mut HashMap<u32, T>) {
    match map.capacity() > PLACES_KEPT_MAX {
        true => *map = HashMap::default(),
        false => map.clear(),
    }
}

/// What is known of a relation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Relation {
    /// What was done with it.
    pub counts: RelationCounts,
    /// What had been changed when ANALYZE last looked at it.
    pub changed_then: u64,
    /// What had been inserted when VACUUM last did.
    pub inserted_then: u64,
    /// When that was, and how often it did.
    pub vacuumed: Option<(i64, u64)>,
    /// When everything about it was forgotten, if it was.
    pub reset: Option<i64>,
}

impl Relation {
    /// How many rows were changed since ANALYZE last looked.
    pub fn changed(&self) -> u64 {
        self.counts.changed.saturating_sub(self.changed_then)
    }
}

/// What is known of a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Database {
    /// What was done there.
    pub counts: DatabaseCounts,
    /// When anything about it was last forgotten, if it was.
    pub reset: Option<i64>,
    /// When everything was.
    pub cleared: Option<i64>,
    /// How many sessions there are.
    pub sessions: u32,
}

#[derive(Debug, Default)]
struct Totals {
    relations: BTreeMap<(u32, u32), Relation>,
    routines: BTreeMap<(u32, u32), RoutineCounts>,
    databases: BTreeMap<u32, Database>,
    /// When statistics of the node as a whole were last forgotten, by their names, and what it had done
    /// by then.
    shared: BTreeMap<&'static str, (i64, StorageStatus)>,
}

impl Totals {
    /// Takes what a session has counted.
    fn take(&mut self, tally: &mut Tally) {
        let database = tally.database;
        let of = self.databases.entry(database).or_default();
        of.counts.add(&std::mem::take(&mut tally.counts));
        let mut left = NODE_RELATIONS_MAX.saturating_sub(self.relations.len());
        for (oid, counts) in std::mem::take(&mut tally.relations) {
            match self.relations.get_mut(&(database, oid)) {
                Some(known) => known.counts.add(&counts),
                None if left == 0 => {}
                None => {
                    left -= 1;
                    let known = Relation {
                        counts,
                        ..Relation::default()
                    };
                    self.relations.insert((database, oid), known);
                }
            }
        }
        for (oid, counts) in std::mem::take(&mut tally.routines) {
            let is_full = self.routines.len() >= NODE_RELATIONS_MAX;
            if !is_full || self.routines.contains_key(&(database, oid)) {
                self.routines
                    .entry((database, oid))
                    .or_default()
                    .add(&counts);
            }
        }
    }
}

/// What was done on a node by sessions that have ended, and by others.
#[derive(Debug, Default)]
pub struct Statistics {
    totals: Mutex<Totals>,
    /// What statements have cost.
    pub statements: Statements,
}

impl Statistics {
    /// A session that was counted has ended, at that time.
    pub fn finish(&self, activity: &Activity, now: i64) {
        let mut tally = activity.tally();
        if tally.database == 0 {
            return;
        }
        add_times(&mut tally.counts, activity, now);
        self.totals.lock().take(&mut tally);
        tally.database = 0;
    }

    /// Everything about a database, with what its sessions have counted.
    ///
    /// # Errors
    /// 53200 when it does not fit in memory.
    pub fn snapshot(
        &self,
        database: u32,
        sessions: &[Arc<Activity>],
        now: i64,
    ) -> Result<Snapshot> {
        let mut snapshot = Snapshot::new(now);
        {
            let totals = self.totals.lock();
            snapshot.databases = totals.databases.clone();
            snapshot.shared = totals.shared.clone();
            let of = (database, 0)..=(database, u32::MAX);
            for ((_, oid), known) in totals.relations.range(of.clone()) {
                snapshot.relations.insert(*oid, *known);
            }
            for ((_, oid), counts) in totals.routines.range(of) {
                snapshot.routines.insert(*oid, *counts);
            }
        }
        snapshot.take(database, sessions, now)
    }

    /// ANALYZE has looked at a table.
    pub fn analyzed(&self, database: u32, oid: u32, sessions: &[Arc<Activity>]) {
        let pending = pending(database, oid, sessions);
        let mut totals = self.totals.lock();
        let known = totals.relations.entry((database, oid)).or_default();
        known.changed_then = known.counts.changed + pending.changed;
    }

    /// VACUUM has looked at a table.
    pub fn vacuumed(&self, database: u32, oid: u32, sessions: &[Arc<Activity>], now: i64) {
        let pending = pending(database, oid, sessions);
        let mut totals = self.totals.lock();
        let known = totals.relations.entry((database, oid)).or_default();
        known.inserted_then = known.counts.inserted + pending.inserted;
        let count = known.vacuumed.map_or(0, |(_, count)| count);
        known.vacuumed = Some((now, count + 1));
    }

    /// How many rows of each table of a database were changed since ANALYZE last looked at it.
    pub fn changed(&self, database: u32, sessions: &[Arc<Activity>]) -> HashMap<u32, u64> {
        let mut changed: HashMap<u32, (u64, u64)> = HashMap::default();
        for session in sessions {
            let tally = session.tally();
            if tally.database != database {
                continue;
            }
            for (oid, counts) in &tally.relations {
                changed.entry(*oid).or_default().0 += counts.changed;
            }
        }
        let totals = self.totals.lock();
        for ((_, oid), known) in totals.relations.range((database, 0)..=(database, u32::MAX)) {
            let counts = changed.entry(*oid).or_default();
            *counts = (counts.0 + known.counts.changed, known.changed_then);
        }
        drop(totals);
        let changed = changed.into_iter().filter(|(_, (all, then))| all > then);
        changed
            .map(|(oid, (all, then))| (oid, all - then))
            .collect()
    }

    /// Forgets the relations of a database that are not there any more, as `is_there` says, and
    /// databases that are gone.
    pub fn retain(&self, database: u32, is_there: impl Fn(u32) -> bool, databases: &[u32]) {
        let has = |of: u32| databases.contains(&of);
        let stays = |(of, oid): &(u32, u32)| has(*of) && (*of != database || is_there(*oid));
        let mut totals = self.totals.lock();
        totals.relations.retain(|place, _| stays(place));
        totals.routines.retain(|place, _| has(place.0));
        totals.databases.retain(|of, _| has(*of));
    }

    /// Forgets everything about a database.
    pub fn reset(&self, database: u32, sessions: &[Arc<Activity>], now: i64) {
        for session in sessions {
            let mut tally = session.tally();
            if tally.database == database {
                tally.forget();
                drop(tally);
                session.forget_times(now);
            }
        }
        let mut totals = self.totals.lock();
        totals.relations.retain(|(of, _), _| *of != database);
        totals.routines.retain(|(of, _), _| *of != database);
        let reset = Database {
            reset: Some(now),
            cleared: Some(now),
            ..Database::default()
        };
        totals.databases.insert(database, reset);
    }

    /// Forgets what was done with a relation.
    pub fn reset_relation(&self, database: u32, oid: u32, sessions: &[Arc<Activity>], now: i64) {
        for session in sessions {
            let mut tally = session.tally();
            if tally.database == database {
                tally.relations.remove(&oid);
            }
        }
        let mut totals = self.totals.lock();
        let reset = Relation {
            reset: Some(now),
            ..Relation::default()
        };
        totals.relations.insert((database, oid), reset);
        totals.databases.entry(database).or_default().reset = Some(now);
    }

    /// Forgets how a routine was called.
    pub fn reset_routine(&self, database: u32, oid: u32, sessions: &[Arc<Activity>], now: i64) {
        for session in sessions {
            let mut tally = session.tally();
            if tally.database == database {
                tally.routines.remove(&oid);
            }
        }
        let mut totals = self.totals.lock();
        totals.routines.remove(&(database, oid));
        totals.databases.entry(database).or_default().reset = Some(now);
    }

    /// Notes that statistics of the node as a whole were forgotten.
    pub fn reset_shared(&self, what: &'static str, now: i64, then: StorageStatus) {
        self.totals.lock().shared.insert(what, (now, then));
    }
}

/// What sessions have counted of a relation and not yet handed on.
fn pending(database: u32, oid: u32, sessions: &[Arc<Activity>]) -> RelationCounts {
    let mut pending = RelationCounts::default();
    for session in sessions {
        let tally = session.tally();
        if let Some(counts) = tally
            .relations
            .get(&oid)
            .filter(|_| tally.database == database)
        {
            pending.add(counts);
        }
    }
    pending
}

fn add_times(counts: &mut DatabaseCounts, activity: &Activity, now: i64) {
    let Some(times) = activity.times(now) else {
        return;
    };
    counts.session_time += times.session;
    counts.active_time += times.active;
    counts.idle_in_transaction_time += times.idle_in_transaction;
}

/// What was known at one moment.
#[derive(Debug)]
pub struct Snapshot {
    /// The moment.
    pub at: i64,
    /// The relations of the reader's database.
    pub relations: HashMap<u32, Relation>,
    /// Its routines.
    pub routines: HashMap<u32, RoutineCounts>,
    /// All databases.
    pub databases: BTreeMap<u32, Database>,
    /// When statistics of the node as a whole were last forgotten, by their names, and what it had done
    /// by then.
    pub shared: BTreeMap<&'static str, (i64, StorageStatus)>,
    /// What it takes.
    held: Reservation,
}

impl Snapshot {
    fn new(at: i64) -> Snapshot {
        Snapshot {
            at,
            relations: HashMap::default(),
            routines: HashMap::default(),
            databases: BTreeMap::new(),
            shared: BTreeMap::new(),
            held: Reservation::of("A snapshot of statistics"),
        }
    }

    /// What sessions have counted, where there is no node.
    ///
    /// # Errors
    /// As [`Statistics::snapshot`].
    pub fn of_sessions(database: u32, sessions: &[Arc<Activity>], now: i64) -> Result<Snapshot> {
        Snapshot::new(now).take(database, sessions, now)
    }

    fn take(mut self, database: u32, sessions: &[Arc<Activity>], now: i64) -> Result<Snapshot> {
        for session in sessions {
            let tally = session.tally();
            if tally.database == 0 {
                continue;
            }
            let of = self.databases.entry(tally.database).or_default();
            of.counts.add(&tally.counts);
            of.sessions += 1;
            add_times(&mut of.counts, session, now);
            if tally.database != database {
                continue;
            }
            for (oid, counts) in &tally.relations {
                self.relations.entry(*oid).or_default().counts.add(counts);
            }
            for (oid, counts) in &tally.routines {
                self.routines.entry(*oid).or_default().add(counts);
            }
        }
        // A map has room for about twice as much.
        let relations = self.relations.len() * 2 * size_of::<(u32, Relation)>();
        let routines = self.routines.len() * 2 * size_of::<(u32, RoutineCounts)>();
        self.held.grow(relations + routines)?;
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(database: u32) -> Arc<Activity> {
        let activity = Arc::new(Activity::new(7));
        activity.tally().begin(database, true);
        activity
    }

    fn insert(counting: &mut Counting, oid: u32, rows: usize) {
        (0..rows).for_each(|_| counting.inserted(oid));
    }

    #[test]
    fn a_transaction_counts_when_it_ends() {
        let (node, one) = (Arc::new(Statistics::default()), session(5));
        let mut counting = Counting::default();
        insert(&mut counting, 10, 3);
        let sessions = [one.clone()];
        let seen = |database| node.snapshot(database, &sessions, 1).expect("a snapshot");
        assert!(seen(5).relations.is_empty());
        counting.end((true, true), (0, 0), &one, || None);
        insert(&mut counting, 10, 2);
        counting.end((false, true), (1, 8), &one, || None);
        let seen_now = seen(5);
        let known = seen_now.relations[&10];
        assert_eq!((known.counts.inserted, known.changed()), (5, 3));
        let counts = seen_now.databases[&5].counts;
        assert_eq!((counts.commits, counts.rollbacks), (1, 1));
        assert_eq!((counts.temp_files, counts.temp_bytes), (1, 8));
        assert!(seen(6).relations.is_empty());
        node.analyzed(5, 10, &sessions);
        assert_eq!(seen(5).relations[&10].changed(), 0);
        node.finish(&one, 1);
        assert_eq!(seen(5).relations[&10].counts.inserted, 5);
        node.reset(5, &sessions, 9);
        assert!(seen(5).relations.is_empty());
        assert_eq!(seen(5).databases[&5].reset, Some(9));
    }

    #[test]
    fn many_relations_go_to_the_node() {
        let (node, one) = (Arc::new(Statistics::default()), session(5));
        let mut counting = Counting::default();
        let relations = TRANSACTION_RELATIONS_MAX + 1;
        for oid in 0..relations {
            counting.scanned(oid as u32);
        }
        counting.end((true, true), (0, 0), &one, || Some(node.clone()));
        assert!(one.tally().relations.is_empty());
        let seen = node.snapshot(5, &[one], 1).expect("a snapshot");
        assert_eq!(seen.relations.len(), TRANSACTION_RELATIONS_MAX);
        node.retain(5, |oid| oid < 10, &[5]);
        let seen = node.snapshot(5, &[], 1).expect("a snapshot");
        assert_eq!(seen.relations.len(), 10);
    }

    #[test]
    fn a_routine_s_own_time_is_without_that_of_others() {
        let mut counting = Counting::default();
        let outer = counting.called();
        let inner = counting.called();
        counting.came_back(2, 30, inner);
        counting.came_back(1, 100, outer);
        let counts = |oid| counting.of_routine(oid).expect("it was called");
        assert_eq!((counts(1).total, counts(1).own), (100, 70));
        assert_eq!((counts(2).total, counts(2).own), (30, 30));
    }
}
