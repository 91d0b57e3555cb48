//! An engine in memory for unit tests: one thread, no waiting, no conflicts.
//!
//! A transaction reads what is committed and, over it, what its earlier commands wrote; COMMIT puts
//! its writes into the shared maps. Row locks are always free. That is enough for everything SQL
//! does with one session at a time; what several do at once is tested on the real engine.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

use base::engine::*;
use base::env::{BoxFuture, Disk, Env, Instant, Net, Reactor, Severity, TaskStart};
use base::key::put_key_column;
use base::row::Row;
use base::sync::Mutex;
use base::{
    Debt, Durability, Error, Key, KeyRange, Lsn, Position, Result, SequenceId, Term, Timestamp,
    TreeId, TxnId,
};
use catalog::shared::Catalogs;

type Trees = BTreeMap<TreeId, BTreeMap<Key, Vec<u8>>>;

#[derive(Default)]
struct State {
    trees: Trees,
    sequences: BTreeMap<SequenceId, u64>,
    positions: BTreeMap<SequenceId, SequencePosition>,
    catalog: CatalogVersion,
    /// What changed with each generation.
    catalog_changes: Vec<(TreeId, Key)>,
    lsn: u64,
}

/// The engine.
#[derive(Clone)]
pub struct FakeEngine {
    /// Whether nothing needs to be waited for.
    settles_by_itself: bool,
    /// How often something was waited for.
    pub waits: Arc<AtomicU64>,
    state: Arc<Mutex<State>>,
    next: Arc<AtomicU64>,
    /// What its sessions share.
    pub catalogs: Arc<Catalogs>,
}

impl Default for FakeEngine {
    fn default() -> FakeEngine {
        FakeEngine {
            settles_by_itself: true,
            waits: Arc::default(),
            state: Arc::default(),
            next: Arc::default(),
            catalogs: Arc::default(),
        }
    }
}

impl FakeEngine {
    /// One where nothing is durable before it is waited for.
    pub fn of_slow_disks() -> FakeEngine {
        FakeEngine {
            settles_by_itself: false,
            ..FakeEngine::default()
        }
    }

    /// The engine of its sessions: it has no locks, keeps no outcomes and has no cluster.
    pub fn to_engine(&self) -> Engine {
        let fake = Arc::new(self.clone());
        Engine {
            transactions: fake.clone(),
            gate: fake.clone(),
            sequences: fake.clone(),
            settings: fake.clone(),
            cluster: fake.clone(),
            storage: fake,
            locks: None,
            outcomes: None,
            notifications: None,
            prepared: None,
            administrator: None,
            temp: None,
        }
    }
}

impl Transactions for FakeEngine {
    fn begin(&self, options: TxnOptions) -> Result<Box<dyn Transaction>> {
        Ok(Box::new(FakeTransaction {
            engine: self.clone(),
            id: TxnId(self.next.fetch_add(1, Ordering::Relaxed) + 1),
            options,
            command: 0,
            writes: BTreeMap::new(),
            journal: Vec::new(),
            catalog_writes: Vec::new(),
            savepoints: Vec::new(),
            views: Vec::new(),
            debt: Debt::NONE,
        }))
    }

    fn catalog_version(&self) -> CatalogVersion {
        self.state.lock().catalog
    }

    fn catalog_changes(&self, since: CatalogVersion) -> Option<CatalogChanges> {
        let state = self.state.lock();
        let first = usize::try_from(since.generation).unwrap();
        Some(CatalogChanges {
            to: state.catalog,
            keys: state.catalog_changes.get(first..)?.to_vec(),
        })
    }
}

impl Sequences for FakeEngine {
    fn advance(&self, sequence: SequenceId, count: u64) -> Result<(u64, Debt)> {
        let mut state = self.state.lock();
        let next = state.sequences.entry(sequence).or_insert(1);
        *next += count;
        Ok((*next - count, Debt::NONE))
    }

    fn next_values(
        &self,
        sequence: SequenceId,
        spec: &SequenceSpec,
        count: u64,
    ) -> Result<(SequenceValues, Debt)> {
        let (at, _, debt) = self.sequence_position(sequence, spec)?;
        let Some(first) = spec.next(at) else {
            return Ok((SequenceValues { first: 0, count: 0 }, debt));
        };
        let count = count.min(spec.room(first));
        let last = spec.after(first, count - 1);
        self.set_sequence(sequence, SequencePosition { last, called: true })?;
        Ok((SequenceValues { first, count }, debt))
    }

    fn set_sequence(&self, sequence: SequenceId, to: SequencePosition) -> Result<Debt> {
        self.state.lock().positions.insert(sequence, to);
        Ok(Debt::NONE)
    }

    fn sequence_position(
        &self,
        sequence: SequenceId,
        spec: &SequenceSpec,
    ) -> Result<(SequencePosition, u64, Debt)> {
        let known = self.state.lock().positions.get(&sequence).copied();
        let fresh = SequencePosition {
            last: spec.begins_at,
            called: false,
        };
        Ok((known.unwrap_or(fresh), 0, Debt::NONE))
    }
}

impl Gate for FakeEngine {
    fn is_settled(&self, _: &Debt, _: Durability) -> bool {
        self.settles_by_itself
    }

    fn settle(&self, _: Debt, _: Durability) -> BoxFuture<'static, Result<()>> {
        self.waits.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::ready(Ok(())))
    }
}

impl ClusterMonitor for FakeEngine {
    fn status(&self) -> ClusterStatus {
        ClusterStatus::default()
    }

    fn is_standby(&self) -> bool {
        false
    }

    fn replayed_until(&self) -> Option<Timestamp> {
        None
    }
}

impl StorageMonitor for FakeEngine {
    fn tree_size(&self, tree: TreeId) -> Option<TreeSize> {
        let state = self.state.lock();
        let rows = state.trees.get(&tree)?;
        let bytes: usize = rows.iter().map(|(key, row)| key.len() + row.len()).sum();
        Some(TreeSize {
            bytes: bytes as u64,
            rows: rows.len() as u64,
        })
    }

    fn storage(&self) -> Vec<StorageStatus> {
        Vec::new()
    }
}

/// Nothing is ever loaded.
impl ClusterSettings for FakeEngine {
    fn configuration(&self) -> Arc<Configuration> {
        Arc::default()
    }

    fn generation(&self) -> u64 {
        0
    }

    fn check(&self, name: &str, _: &str) -> Result<()> {
        Err(Error::unsupported(format!("setting \"{name}\" here")))
    }

    fn configured(&self, _: Debt) -> BoxFuture<'static, Result<()>> {
        let error = Error::unsupported("changing the configuration here");
        Box::pin(std::future::ready(Err(error)))
    }
}

/// A row's versions within a transaction, by command; none is a deletion.
type Versions = Vec<(u32, Option<Vec<u8>>)>;

struct FakeTransaction {
    engine: FakeEngine,
    id: TxnId,
    options: TxnOptions,
    command: u32,
    writes: BTreeMap<(TreeId, Key), Versions>,
    /// The keys written, in order, for savepoints.
    journal: Vec<(TreeId, Key)>,
    catalog_writes: Vec<(TreeId, Key)>,
    savepoints: Vec<usize>,
    /// The commands of kept views.
    views: Vec<u32>,
    debt: Debt,
}

impl FakeTransaction {
    fn write(&mut self, tree: TreeId, key: &[u8], row: Option<Vec<u8>>) {
        let place = (tree, key.to_vec());
        if tree.is_catalog() {
            self.catalog_writes.push(place.clone());
        }
        self.journal.push(place.clone());
        self.writes
            .entry(place)
            .or_default()
            .push((self.command, row));
    }

    /// The newest version, what this command wrote included.
    fn newest(&self, tree: TreeId, key: &[u8]) -> Option<Vec<u8>> {
        match self
            .writes
            .get(&(tree, key.to_vec()))
            .and_then(|versions| versions.last())
        {
            Some((_, row)) => row.clone(),
            None => self.committed(tree, key),
        }
    }

    fn committed(&self, tree: TreeId, key: &[u8]) -> Option<Vec<u8>> {
        self.engine.state.lock().trees.get(&tree)?.get(key).cloned()
    }

    /// What the current command sees.
    fn visible(&self, tree: TreeId) -> BTreeMap<Key, Vec<u8>> {
        let mut rows = self
            .engine
            .state
            .lock()
            .trees
            .get(&tree)
            .cloned()
            .unwrap_or_default();
        let own = self.writes.range((tree, Key::new())..);
        for ((_, key), versions) in own.take_while(|entry| entry.0 .0 == tree) {
            match versions.iter().rfind(|version| version.0 < self.command) {
                Some((_, Some(row))) => {
                    rows.insert(key.clone(), row.clone());
                }
                Some((_, None)) => {
                    rows.remove(key);
                }
                None => {}
            }
        }
        rows
    }

    /// All rows of a tree, what this command wrote included.
    fn newest_rows(&self, tree: TreeId) -> Vec<(Key, Vec<u8>)> {
        let committed = self.engine.state.lock().trees.get(&tree).cloned();
        let mut keys: Vec<Key> = committed.unwrap_or_default().into_keys().collect();
        let own = self.writes.keys().filter(|place| place.0 == tree);
        keys.extend(own.map(|place| place.1.clone()));
        keys.sort();
        keys.dedup();
        keys.into_iter()
            .filter_map(|key| self.newest(tree, &key).map(|row| (key, row)))
            .collect()
    }

    fn descriptors(&self) -> Vec<TreeDescriptor> {
        let mut keys = self
            .engine
            .state
            .lock()
            .trees
            .get(&TreeId::DESCRIPTORS)
            .cloned();
        let keys = keys.get_or_insert_default();
        for ((tree, key), versions) in &self.writes {
            if *tree != TreeId::DESCRIPTORS {
                continue;
            }
            match versions.last() {
                Some((_, Some(row))) => keys.insert(key.clone(), row.clone()),
                _ => keys.remove(key),
            };
        }
        keys.values()
            .map(|row| TreeDescriptor::from_row(row).unwrap())
            .collect()
    }

    fn index(&self, tree: TreeId) -> Option<IndexDescriptor> {
        self.descriptors()
            .into_iter()
            .find_map(|descriptor| match descriptor.kind {
                TreeKind::Index(index) if descriptor.id == tree => Some(index),
                _ => None,
            })
    }

    /// The unique index that refuses a row, looking at the newest versions.
    fn refused(&self, tree: TreeId, key: &[u8], row: &[u8]) -> Option<TreeId> {
        for descriptor in self.descriptors() {
            let TreeKind::Index(index) = descriptor.kind else {
                continue;
            };
            if index.table != tree || !index.unique {
                continue;
            }
            let Some(wanted) = entry(&index, row, true) else {
                continue;
            };
            let mut keys: Vec<Key> = self
                .engine
                .state
                .lock()
                .trees
                .get(&tree)
                .into_iter()
                .flat_map(|rows| rows.keys().cloned())
                .collect();
            keys.extend(
                self.writes
                    .keys()
                    .filter(|place| place.0 == tree)
                    .map(|p| p.1.clone()),
            );
            for other in keys {
                let newest = self.newest(tree, &other);
                let same = newest.and_then(|row| entry(&index, &row, true));
                if other != key && same.as_ref() == Some(&wanted) {
                    return Some(descriptor.id);
                }
            }
        }
        None
    }
}

/// The key of a row's entry; none if it may be there twice because of a NULL.
fn entry(index: &IndexDescriptor, row: &[u8], for_unique: bool) -> Option<Key> {
    let row = Row::parse(row).unwrap();
    let mut key = Key::new();
    for column in &index.columns {
        let value = index.value(&row, column.column);
        if for_unique && value.is_none() {
            return None;
        }
        put_key_column(&mut key, column.kind, column.order, value).unwrap();
    }
    Some(key)
}

impl Transaction for FakeTransaction {
    fn id(&self) -> TxnId {
        self.id
    }

    fn isolation(&self) -> Isolation {
        self.options.isolation
    }

    fn set_options(&mut self, options: TxnOptions) {
        self.options = options;
    }

    fn begin_statement(&mut self) -> Result<()> {
        self.command += 1;
        Ok(())
    }

    fn next_command(&mut self) {
        self.command += 1;
    }

    fn owe(&mut self, debt: &Debt) {
        self.debt.merge(debt);
    }

    fn debt(&self) -> &Debt {
        &self.debt
    }

    fn end_reading(&mut self) -> bool {
        false
    }

    fn begin_again(&mut self, _: TxnOptions) -> bool {
        false
    }

    fn commit(self: Box<Self>, _: Durability) -> Result<Debt> {
        if self.writes.is_empty() {
            return Ok(Debt::NONE);
        }
        let mut state = self.engine.state.lock();
        state.lsn += 1;
        let lsn = Lsn(state.lsn);
        for ((tree, key), versions) in self.writes {
            if tree.is_catalog() {
                state.catalog.generation += 1;
                state.catalog.lsn = lsn;
                state.catalog_changes.push((tree, key.clone()));
            }
            let rows = state.trees.entry(tree).or_default();
            match versions.into_iter().next_back() {
                Some((_, Some(row))) => rows.insert(key, row),
                _ => rows.remove(&key),
            };
        }
        let term = Term(1);
        Ok(Debt::of(base::ids::FIRST_GROUP, Position { term, lsn }))
    }
}

impl Reading for FakeTransaction {
    fn get(&mut self, tree: TreeId, key: &[u8], row: &mut Vec<u8>) -> Result<bool> {
        row.clear();
        let versions = self.writes.get(&(tree, key.to_vec()));
        let own = versions.and_then(|v| v.iter().rfind(|version| version.0 < self.command));
        let found = match own {
            Some((_, row)) => row.clone(),
            None => self.committed(tree, key),
        };
        if let Some(found) = &found {
            row.extend_from_slice(found);
        }
        Ok(found.is_some())
    }

    fn scan(
        &mut self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
        batch: &mut RowBatch,
    ) -> Result<Option<KeyRange>> {
        batch.clear();
        let mut rows: Vec<(Key, Vec<u8>)> = match self.index(tree) {
            None => self.visible(tree).into_iter().collect(),
            Some(index) => {
                let entries = self.visible(index.table).into_iter().map(|(key, row)| {
                    let mut entry = entry(&index, &row, false).unwrap();
                    entry.extend(key);
                    (entry, Vec::new())
                });
                entries.collect()
            }
        };
        rows.sort();
        rows.retain(|(key, _)| range.contains(key));
        if direction == Direction::Backward {
            rows.reverse();
        }
        let most = limit.min(base::limits::SCAN_BATCH_ROWS);
        rows.iter()
            .take(most)
            .for_each(|(key, row)| batch.push(key, row));
        let Some((next, _)) = rows.get(most) else {
            return Ok(None);
        };
        let mut rest = range.clone();
        match direction {
            Direction::Forward => rest.start = next.clone(),
            Direction::Backward => {
                let mut end = next.clone();
                end.push(0);
                rest.end = Some(end);
            }
        }
        Ok(Some(rest))
    }

    fn scan_newest_in(
        &mut self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
        batch: &mut RowBatch,
    ) -> Result<Option<KeyRange>> {
        self.command += 1;
        self.scan(tree, range, direction, limit, batch)
    }
}

impl Locking for FakeTransaction {
    /// Nobody waits for a lock here.
    fn set_lock_timeout(&mut self, _: Duration) {}

    fn lock_row(
        &mut self,
        tree: TreeId,
        key: &[u8],
        _: RowLock,
        _: LockWait,
        _: &mut Vec<u8>,
    ) -> Result<LockedRow> {
        let gone = self.newest(tree, key).is_none() || self.is_written_by_command(tree, key);
        Ok(match gone {
            true => LockedRow::Gone,
            false => LockedRow::Unchanged,
        })
    }

    fn lock_key(&mut self, _: TreeId, _: &[u8], _: RowLock, _: LockWait) -> Result<bool> {
        Ok(true)
    }

    fn wait_for_key(&mut self, _: TreeId, _: &[u8], _: RowLock) -> Result<()> {
        Ok(())
    }

    fn announce(&mut self, _: TreeId, _: &[u8], _: &[u8]) -> Result<Ticket> {
        Ok(Ticket::ALONE)
    }

    fn announced(&mut self, _: TreeId, _: &[u8], _: Ticket) -> Result<Vec<Announced>> {
        Ok(Vec::new())
    }

    fn wait_for_announced(&mut self, _: &Announced) -> Result<()> {
        Ok(())
    }

    fn withdraw(&mut self, _: Ticket) {}

    fn lock_table(&mut self, _: TreeId, _: TableLock, _: LockWait) -> Result<bool> {
        Ok(true)
    }
}

impl Writing for FakeTransaction {
    fn insert(&mut self, tree: TreeId, key: &[u8], row: &[u8]) -> Result<Inserted> {
        if self.newest(tree, key).is_some() {
            return Ok(Inserted::Duplicate(tree));
        }
        if let Some(index) = self.refused(tree, key, row) {
            return Ok(Inserted::Duplicate(index));
        }
        self.write(tree, key, Some(row.to_vec()));
        Ok(Inserted::Done)
    }

    fn update(&mut self, tree: TreeId, key: &[u8], row: &[u8]) -> Result<Inserted> {
        assert!(
            self.newest(tree, key).is_some(),
            "a row that is not there is updated"
        );
        if let Some(index) = self.refused(tree, key, row) {
            return Ok(Inserted::Duplicate(index));
        }
        self.write(tree, key, Some(row.to_vec()));
        Ok(Inserted::Done)
    }

    fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<()> {
        assert!(
            self.newest(tree, key).is_some(),
            "a row that is not there is deleted"
        );
        self.write(tree, key, None);
        Ok(())
    }

    fn note_moved(&mut self, _: TreeId, _: &[u8]) {}

    fn was_moved(&self, _: TreeId, _: &[u8]) -> Result<bool> {
        Ok(false)
    }

    fn is_written_by_command(&self, tree: TreeId, key: &[u8]) -> bool {
        let versions = self.writes.get(&(tree, key.to_vec()));
        versions
            .and_then(|v| v.last())
            .is_some_and(|version| version.0 == self.command)
    }

    fn catalog_writes(&self) -> &[(TreeId, Key)] {
        &self.catalog_writes
    }
}

impl Building for FakeTransaction {
    fn build(&mut self, build: &Build) -> Result<Built> {
        let rows = self.newest_rows(build.source);
        let into = build.rekeyed.as_ref().map_or(build.source, |new| new.tree);
        if into != build.source {
            let kind = TreeKind::Table;
            let row = TreeDescriptor { id: into, kind }.to_row();
            self.write(TreeId::DESCRIPTORS, &into.descriptor_key(), Some(row));
        }
        for (id, index) in &build.indexes {
            let kind = TreeKind::Index(index.clone());
            let row = TreeDescriptor { id: *id, kind }.to_row();
            self.write(TreeId::DESCRIPTORS, &id.descriptor_key(), Some(row));
        }
        for (old, row) in rows {
            let key = match build.rekeyed.as_ref().map(|new| &new.key) {
                None => old,
                Some(RowKey::Numbers(sequence)) => {
                    let (number, _) = self.engine.advance(*sequence, 1)?;
                    number.to_be_bytes().to_vec()
                }
                Some(RowKey::Columns(index)) => {
                    let parsed = Row::parse(&row)?;
                    let null = |of: &&IndexColumn| index.value(&parsed, of.column).is_none();
                    if let Some(IndexColumn { column, .. }) = index.columns.iter().find(null) {
                        return Ok(Built::NullKey { column: *column });
                    }
                    entry(index, &row, true).unwrap()
                }
            };
            let refused = match into == build.source {
                true => self.refused(into, &key, &row),
                false => match self.insert(into, &key, &row)? {
                    Inserted::Done => None,
                    Inserted::Duplicate(tree) => Some(tree),
                },
            };
            if let Some(tree) = refused {
                return Ok(Built::Duplicate { tree, row });
            }
        }
        Ok(Built::Done)
    }
}

impl Savepoints for FakeTransaction {
    fn savepoint(&mut self) -> Savepoint {
        self.savepoints.push(self.journal.len());
        Savepoint(self.savepoints.len() as u32)
    }

    fn rollback_to(&mut self, savepoint: Savepoint) {
        let mark = self.savepoints[savepoint.0 as usize - 1];
        self.savepoints.truncate(savepoint.0 as usize);
        while self.journal.len() > mark {
            let place = self.journal.pop().unwrap();
            let versions = self.writes.get_mut(&place).unwrap();
            versions.pop();
            if versions.is_empty() {
                self.writes.remove(&place);
            }
        }
    }

    fn release(&mut self, savepoint: Savepoint) {
        self.savepoints.truncate(savepoint.0 as usize - 1);
    }
}

impl Views for FakeTransaction {
    fn keep_view(&mut self) -> Result<ViewId> {
        self.views.push(self.command);
        Ok(ViewId(self.views.len() as u32 - 1))
    }

    fn swap_view(&mut self, view: ViewId) -> Result<()> {
        std::mem::swap(&mut self.views[view.0 as usize], &mut self.command);
        Ok(())
    }

    /// Its number stays taken.
    fn drop_view(&mut self, _: ViewId) {}
}

/// A world whose clock moves a microsecond each time it is read.
#[derive(Default)]
pub struct FakeEnv(AtomicU64);

impl Env for FakeEnv {
    fn now(&self) -> Instant {
        Instant(self.0.fetch_add(1_000, Ordering::Relaxed))
    }
    fn wall_clock(&self) -> Timestamp {
        Timestamp(762_525_296_789_012 + (self.now().0 / 1_000) as i64)
    }
    fn random(&self) -> u64 {
        self.now().0.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
    fn secret(&self) -> [u8; 32] {
        base::env::no_secret(self.random())
    }

    fn sleep_until(&self, _: Instant) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
    fn spawn(&self, _: Reactor, _: &'static str, _: TaskStart) {
        unreachable!("SQL spawns nothing")
    }
    fn session_reactors(&self) -> usize {
        1
    }
    fn disk(&self) -> Arc<dyn Disk> {
        unreachable!("SQL has no disk")
    }
    fn net(&self) -> Arc<dyn Net> {
        unreachable!("SQL has no network")
    }
    fn log(&self, _: Severity, _: &str) {}
    fn stop_node(&self, reason: &str) {
        unreachable!("SQL stops no node: {reason}")
    }
}
