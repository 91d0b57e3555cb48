//! A transaction that keeps what is local to itself and hands on the rest.

use std::collections::BTreeMap;
use std::time::Duration;

use base::coro;
use base::engine::*;
use base::large::Large;
use base::limits::{ROWS_PER_YIELD, SCAN_BATCH_ROWS};
use base::{Debt, Durability, Error, Key, KeyRange, Result, SqlState, TreeId, TxnId};

use super::store::{entry, View};
use super::{Inner, Local, FIRST_OID, FIRST_TREE};
use crate::layout::local_part;

/// What looking at, settling or taking back a row counts for, in the units of [`coro::work`].
const ROW_WORK: usize = 256;

/// What writing a row or an entry of a new index counts for.
const BUILD_WORK: usize = 1_024;

pub struct LocalTransaction {
    /// None once it has been committed.
    inner: Option<Box<dyn Transaction>>,
    local: Local,
    id: u64,
    command: u32,
    /// The newest command there was, by which writes are stamped.
    latest: u32,
    /// The rows written, in order.
    journal: Large<Vec<(TreeId, Key)>>,
    savepoints: Vec<(Savepoint, usize)>,
    views: BTreeMap<ViewId, u32>,
    changed_catalog: bool,
    /// It has locked a local table.
    has_used: bool,
    /// Of what is local and of the rest.
    catalog_writes: Vec<(TreeId, Key)>,
}

impl LocalTransaction {
    pub fn new(inner: Box<dyn Transaction>, local: Local) -> LocalTransaction {
        let catalog_writes = inner.catalog_writes().to_vec();
        let id = {
            let mut inner = local.inner.lock();
            inner.transactions += 1;
            inner.transactions
        };
        LocalTransaction {
            inner: Some(inner),
            local,
            id,
            command: 0,
            latest: 0,
            journal: Large::default(),
            savepoints: Vec::new(),
            views: BTreeMap::new(),
            changed_catalog: false,
            has_used: false,
            catalog_writes,
        }
    }

    fn inner(&mut self) -> &mut dyn Transaction {
        let inner = self.inner.as_mut();
        inner.expect("it is there until the commit").as_mut()
    }

    fn shared(&self) -> &dyn Transaction {
        let inner = self.inner.as_ref();
        inner.expect("it is there until the commit").as_ref()
    }

    fn seen(&self) -> View {
        View {
            transaction: self.id,
            before: Some(self.command),
        }
    }

    fn newest(&self) -> View {
        View {
            transaction: self.id,
            before: None,
        }
    }

    fn write(
        &mut self,
        inner: &mut Inner,
        tree: TreeId,
        key: &[u8],
        row: Option<Vec<u8>>,
    ) -> Result<()> {
        inner.store.write(tree, key, (self.id, self.latest), row)?;
        self.journal.push((tree, key.to_vec()));
        self.note_catalog_write(tree, key);
        self.changed_catalog |= tree < TreeId::FIRST_USER;
        Ok(())
    }

    fn note_catalog_write(&mut self, tree: TreeId, key: &[u8]) {
        if (TreeId::FIRST_CATALOG..TreeId::FIRST_USER).contains(&tree) {
            self.catalog_writes.push((tree, key.to_vec()));
        }
    }

    /// Writes a row and the entries of its indexes; the unique index that refuses it, if any.
    fn put(&mut self, tree: TreeId, key: &[u8], row: Option<&[u8]>) -> Result<Option<TreeId>> {
        let local = self.local.clone();
        let mut inner = local.inner.lock();
        let newest = self.newest();
        let old = inner.store.get(tree, key, newest).map(<[u8]>::to_vec);
        let indexes = inner.store.indexes_of(tree);
        for (id, index) in indexes.iter().filter(|index| index.1.unique) {
            let Some((prefix, false)) = row.map(|row| entry(index, row)).transpose()? else {
                continue;
            };
            let range = KeyRange::prefix(&prefix);
            let mut own = prefix.clone();
            own.extend_from_slice(key);
            let mut others = inner.store.range(*id, &range, newest);
            if others.any(|(other, _)| *other != own) {
                return Ok(Some(*id));
            }
        }
        for (id, index) in &indexes {
            let place = |row: Option<&[u8]>| -> Result<Option<Key>> {
                let Some(row) = row else { return Ok(None) };
                let (mut place, _) = entry(index, row)?;
                place.extend_from_slice(key);
                Ok(Some(place))
            };
            let (before, after) = (place(old.as_deref())?, place(row)?);
            if before == after {
                continue;
            }
            if let Some(before) = before {
                self.write(&mut inner, *id, &before, None)?;
            }
            if let Some(after) = after {
                self.write(&mut inner, *id, &after, Some(Vec::new()))?;
            }
        }
        self.write(&mut inner, tree, key, row.map(<[u8]>::to_vec))?;
        Ok(None)
    }

    fn inserted(&mut self, tree: TreeId, key: &[u8], row: &[u8]) -> Result<Inserted> {
        let newest = self.newest();
        let there = {
            let inner = self.local.inner.lock();
            inner.store.get(tree, key, newest).is_some()
        };
        if there {
            return Ok(Inserted::Duplicate(tree));
        }
        Ok(match self.put(tree, key, Some(row))? {
            Some(index) => Inserted::Duplicate(index),
            None => Inserted::Done,
        })
    }

    fn scan_local(
        &self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        most: usize,
        view: View,
        batch: &mut RowBatch,
    ) -> Result<Option<KeyRange>> {
        batch.clear();
        let mut rest = None;
        loop {
            let left = (rest.as_ref().unwrap_or(range), direction);
            rest = {
                let inner = self.local.inner.lock();
                inner.store.scan(tree, left, most, view, batch)
            };
            if rest.is_none() || !batch.is_empty() {
                return Ok(rest);
            }
            coro::work(SCAN_BATCH_ROWS * ROW_WORK)?;
        }
    }

    /// Takes back what was written since, the newest first, in turns.
    fn take_back(&mut self, mark: usize) {
        while self.journal.len() > mark {
            {
                let mut inner = self.local.inner.lock();
                let first = self.journal.len().saturating_sub(ROWS_PER_YIELD).max(mark);
                for (tree, key) in self.journal.drain(first..).rev() {
                    inner.store.take_back(tree, &key);
                }
            }
            coro::work_uninterrupted(ROWS_PER_YIELD * ROW_WORK);
        }
    }

    /// Makes what was written the only versions, in turns.
    fn settle(&mut self) {
        let mut journal = Large::from(self.journal.take());
        for rows in journal.chunks(ROWS_PER_YIELD) {
            let gone: Vec<_> = {
                let mut inner = self.local.inner.lock();
                let settled = rows
                    .iter()
                    .map(|(tree, key)| inner.store.settle(*tree, key));
                settled.flatten().collect()
            };
            self.local.drop_trees(gone);
            coro::work_uninterrupted(rows.len() * ROW_WORK);
        }
        if !self.changed_catalog {
            return;
        }
        let catalog = TreeId::FIRST_CATALOG..TreeId::FIRST_USER;
        journal.retain(|(tree, _)| {
            coro::work_uninterrupted(ROW_WORK);
            catalog.contains(tree)
        });
        self.local.inner.lock().changes.add(journal.take());
    }

    /// Makes the rows of a local table anew under other keys, or the entries of new indexes.
    fn build_local(&mut self, build: &Build) -> Result<Built> {
        let into = build.rekeyed.as_ref().map_or(build.source, |new| new.tree);
        if into != build.source {
            let kind = TreeKind::Table;
            let row = TreeDescriptor { id: into, kind }.to_row();
            self.inserted(TreeId::DESCRIPTORS, &into.descriptor_key(), &row)?;
        }
        for (id, index) in &build.indexes {
            let kind = TreeKind::Index(index.clone());
            let row = TreeDescriptor { id: *id, kind }.to_row();
            self.inserted(TreeId::DESCRIPTORS, &id.descriptor_key(), &row)?;
        }
        let (mut batch, mut left) = (RowBatch::default(), Some(KeyRange::all()));
        while let Some(range) = left {
            let (direction, newest) = (Direction::Forward, self.newest());
            let most = SCAN_BATCH_ROWS;
            left = self.scan_local(build.source, &range, direction, most, newest, &mut batch)?;
            if let Some(refused) = self.build_rows(build, into, &batch)? {
                return Ok(refused);
            }
        }
        Ok(Built::Done)
    }

    /// As [`LocalTransaction::build_local`], of some rows; what is in the way.
    fn build_rows(
        &mut self,
        build: &Build,
        into: TreeId,
        rows: &RowBatch,
    ) -> Result<Option<Built>> {
        for (old, row) in rows.iter() {
            coro::work((1 + build.indexes.len()) * BUILD_WORK + row.len())?;
            let key = match build.rekeyed.as_ref().map(|new| &new.key) {
                None => old.to_vec(),
                Some(RowKey::Numbers(sequence)) => {
                    let mut inner = self.local.inner.lock();
                    let next = inner.counters.entry(*sequence).or_insert(1);
                    *next += 1;
                    (*next - 1).to_be_bytes().to_vec()
                }
                Some(RowKey::Columns(index)) => {
                    let parsed = base::row::Row::parse(row)?;
                    let null = |of: &&IndexColumn| index.value(&parsed, of.column).is_none();
                    if let Some(IndexColumn { column, .. }) = index.columns.iter().find(null) {
                        return Ok(Some(Built::NullKey { column: *column }));
                    }
                    entry(index, row)?.0
                }
            };
            let refused = match into == build.source {
                false => match self.inserted(into, &key, row)? {
                    Inserted::Done => None,
                    Inserted::Duplicate(tree) => Some(tree),
                },
                true => self.index_row(build, &key, row)?,
            };
            if let Some(tree) = refused {
                let row = row.to_vec();
                return Ok(Some(Built::Duplicate { tree, row }));
            }
        }
        Ok(None)
    }

    /// Adds the entries of a row to new indexes.
    fn index_row(&mut self, build: &Build, key: &[u8], row: &[u8]) -> Result<Option<TreeId>> {
        let local = self.local.clone();
        let mut inner = local.inner.lock();
        for (id, index) in &build.indexes {
            let (prefix, has_null) = entry(index, row)?;
            if index.unique && !has_null {
                let range = KeyRange::prefix(&prefix);
                if inner
                    .store
                    .range(*id, &range, self.newest())
                    .next()
                    .is_some()
                {
                    return Ok(Some(*id));
                }
            }
            let mut place = prefix;
            place.extend_from_slice(key);
            self.write(&mut inner, *id, &place, Some(Vec::new()))?;
        }
        Ok(None)
    }
}

/// Whether a row is local.
fn is_local(tree: TreeId, key: &[u8]) -> bool {
    if tree >= FIRST_TREE {
        return true;
    }
    if tree == TreeId::DESCRIPTORS {
        let id = key.first_chunk().map(|id| u64::from_be_bytes(*id));
        return id.is_some_and(|id| id >= FIRST_TREE.0);
    }
    tree < TreeId::FIRST_USER && local_part(tree, key).is_some_and(|oid| oid >= FIRST_OID)
}

impl Transaction for LocalTransaction {
    fn id(&self) -> TxnId {
        self.shared().id()
    }

    fn isolation(&self) -> Isolation {
        self.shared().isolation()
    }

    fn set_options(&mut self, options: TxnOptions) {
        self.inner().set_options(options);
    }

    fn begin_statement(&mut self) -> Result<()> {
        self.latest += 1;
        self.command = self.latest;
        self.inner().begin_statement()
    }

    fn next_command(&mut self) {
        self.latest += 1;
        self.command = self.latest;
        self.inner().next_command();
    }

    fn owe(&mut self, debt: &Debt) {
        self.inner().owe(debt);
    }

    fn debt(&self) -> &Debt {
        self.shared().debt()
    }

    fn advisory(&mut self) -> Result<&mut dyn AdvisoryLocking> {
        self.inner().advisory()
    }

    fn outcome(&mut self) -> Result<&mut dyn TxnOutcome> {
        self.inner().outcome()
    }

    fn snapshots(&mut self) -> Result<&mut dyn SnapshotSharing> {
        self.inner().snapshots()
    }

    fn notifying(&mut self) -> Result<&mut dyn Notifying> {
        self.inner().notifying()
    }

    fn end_reading(&mut self) -> bool {
        self.journal.is_empty() && self.inner().end_reading()
    }

    fn begin_again(&mut self, options: TxnOptions) -> bool {
        self.command = 0;
        self.latest = 0;
        self.has_used = false;
        self.savepoints.clear();
        self.views.clear();
        self.catalog_writes.clear();
        self.inner().begin_again(options)
    }

    fn commit(mut self: Box<Self>, durability: Durability) -> Result<Debt> {
        let Some(inner) = self.inner.take() else {
            return Err(Error::internal("a transaction is committed twice"));
        };
        let debt = inner.commit(durability)?;
        self.settle();
        Ok(debt)
    }

    fn prepare(
        mut self: Box<Self>,
        preparation: Preparation,
        durability: Durability,
    ) -> Result<Debt> {
        if !self.journal.is_empty() || self.has_used {
            let message = "cannot PREPARE a transaction that has operated on temporary objects";
            return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        match self.inner.take() {
            Some(inner) => inner.prepare(preparation, durability),
            None => Err(Error::internal("a transaction is prepared after its end")),
        }
    }
}

impl Reading for LocalTransaction {
    fn is_far(&self, tree: TreeId) -> bool {
        tree < FIRST_TREE && self.shared().is_far(tree)
    }

    fn read_ahead(&mut self, tree: TreeId, keys: &[Key]) -> Result<()> {
        match self.is_far(tree) {
            true => self.inner().read_ahead(tree, keys),
            false => Ok(()),
        }
    }

    fn scan_ahead(&mut self, tree: TreeId, range: &KeyRange, direction: Direction) -> Result<()> {
        match self.is_far(tree) {
            true => self.inner().scan_ahead(tree, range, direction),
            false => Ok(()),
        }
    }

    fn get(&mut self, tree: TreeId, key: &[u8], row: &mut Vec<u8>) -> Result<bool> {
        if !is_local(tree, key) {
            return self.inner().get(tree, key, row);
        }
        row.clear();
        let inner = self.local.inner.lock();
        let found = inner.store.get(tree, key, self.seen());
        if let Some(found) = found {
            row.extend_from_slice(found);
        }
        Ok(found.is_some())
    }

    fn get_to_lock(
        &mut self,
        tree: TreeId,
        key: &[u8],
        strength: RowLock,
        row: &mut Vec<u8>,
    ) -> Result<bool> {
        match is_local(tree, key) {
            true => self.get(tree, key, row),
            false => self.inner().get_to_lock(tree, key, strength, row),
        }
    }

    fn scan(
        &mut self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
        batch: &mut RowBatch,
    ) -> Result<Option<KeyRange>> {
        let most = limit.min(SCAN_BATCH_ROWS);
        if is_local(tree, &range.start) {
            return self.scan_local(tree, range, direction, most, self.seen(), batch);
        }
        let rest = self.inner().scan(tree, range, direction, limit, batch)?;
        if rest.is_some() || tree >= TreeId::FIRST_USER || direction == Direction::Backward {
            return Ok(rest);
        }
        // What is local of a tree of the catalog comes after the rest.
        let inner = self.local.inner.lock();
        let first = inner.store.range(tree, range, self.seen()).next();
        Ok(first.map(|(key, _)| KeyRange {
            start: key.clone(),
            end: range.end.clone(),
        }))
    }

    fn scan_newest_in(
        &mut self,
        tree: TreeId,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
        batch: &mut RowBatch,
    ) -> Result<Option<KeyRange>> {
        if !is_local(tree, &range.start) {
            return self
                .inner()
                .scan_newest_in(tree, range, direction, limit, batch);
        }
        let most = limit.min(SCAN_BATCH_ROWS);
        self.scan_local(tree, range, direction, most, self.newest(), batch)
    }
}

impl Locking for LocalTransaction {
    fn set_lock_timeout(&mut self, timeout: Duration) {
        self.inner().set_lock_timeout(timeout);
    }

    fn lock_row(
        &mut self,
        tree: TreeId,
        key: &[u8],
        strength: RowLock,
        wait: LockWait,
        newest: &mut Vec<u8>,
    ) -> Result<LockedRow> {
        if !is_local(tree, key) {
            return self.inner().lock_row(tree, key, strength, wait, newest);
        }
        let there = {
            let inner = self.local.inner.lock();
            inner.store.get(tree, key, self.newest()).is_some()
        };
        Ok(match there && !self.is_written_by_command(tree, key) {
            true => LockedRow::Unchanged,
            false => LockedRow::Gone,
        })
    }

    fn lock_ahead(
        &mut self,
        tree: TreeId,
        keys: &[Key],
        strength: RowLock,
        wait: LockWait,
    ) -> Result<()> {
        match tree >= FIRST_TREE {
            true => Ok(()),
            false => self.inner().lock_ahead(tree, keys, strength, wait),
        }
    }

    fn lock_row_in_the_way(
        &mut self,
        tree: TreeId,
        key: &[u8],
        strength: RowLock,
        newest: &mut Vec<u8>,
    ) -> Result<LockedRow> {
        match is_local(tree, key) {
            true => self.lock_row(tree, key, strength, LockWait::Block, newest),
            false => self
                .inner()
                .lock_row_in_the_way(tree, key, strength, newest),
        }
    }

    fn lock_key(
        &mut self,
        tree: TreeId,
        key: &[u8],
        strength: RowLock,
        wait: LockWait,
    ) -> Result<bool> {
        match is_local(tree, key) {
            true => Ok(true),
            false => self.inner().lock_key(tree, key, strength, wait),
        }
    }

    fn wait_for_key(&mut self, tree: TreeId, key: &[u8], strength: RowLock) -> Result<()> {
        match is_local(tree, key) {
            true => Ok(()),
            false => self.inner().wait_for_key(tree, key, strength),
        }
    }

    fn announce(&mut self, tree: TreeId, key: &[u8], note: &[u8]) -> Result<Ticket> {
        match is_local(tree, key) {
            true => Ok(Ticket::ALONE),
            false => self.inner().announce(tree, key, note),
        }
    }

    fn announced(&mut self, tree: TreeId, prefix: &[u8], ticket: Ticket) -> Result<Vec<Announced>> {
        match is_local(tree, prefix) {
            true => Ok(Vec::new()),
            false => self.inner().announced(tree, prefix, ticket),
        }
    }

    fn wait_for_announced(&mut self, announced: &Announced) -> Result<()> {
        self.inner().wait_for_announced(announced)
    }

    fn withdraw(&mut self, ticket: Ticket) {
        self.inner().withdraw(ticket);
    }

    fn lock_tables_ahead(&mut self, tables: &[(TreeId, TableLock)]) -> Result<()> {
        let others = tables.iter().filter(|(tree, _)| *tree < FIRST_TREE);
        let others: Vec<_> = others.copied().collect();
        self.inner().lock_tables_ahead(&others)
    }

    fn lock_table(&mut self, tree: TreeId, mode: TableLock, wait: LockWait) -> Result<bool> {
        let local = tree >= FIRST_TREE;
        self.has_used |= local;
        if mode >= TableLock::ShareUpdateExclusive {
            self.local.decide(local);
        }
        match local {
            true => Ok(true),
            false => self.inner().lock_table(tree, mode, wait),
        }
    }
}

impl Writing for LocalTransaction {
    fn insert(&mut self, tree: TreeId, key: &[u8], row: &[u8]) -> Result<Inserted> {
        match is_local(tree, key) {
            true => self.inserted(tree, key, row),
            false => {
                self.note_catalog_write(tree, key);
                self.inner().insert(tree, key, row)
            }
        }
    }

    fn insert_new(&mut self, tree: TreeId, key: &[u8], row: &[u8]) -> Result<Inserted> {
        match is_local(tree, key) {
            true => self.inserted(tree, key, row),
            false => {
                self.note_catalog_write(tree, key);
                self.inner().insert_new(tree, key, row)
            }
        }
    }

    fn update(&mut self, tree: TreeId, key: &[u8], row: &[u8]) -> Result<Inserted> {
        if !is_local(tree, key) {
            self.note_catalog_write(tree, key);
            return self.inner().update(tree, key, row);
        }
        Ok(match self.put(tree, key, Some(row))? {
            Some(index) => Inserted::Duplicate(index),
            None => Inserted::Done,
        })
    }

    fn post(&mut self, tree: TreeId, key: &[u8], write: Write<'_>) -> Result<Option<Post>> {
        match is_local(tree, key) {
            true => Ok(None),
            false => self.inner().post(tree, key, write),
        }
    }

    fn posted(&mut self, since: Post) -> Result<Option<(Post, TreeId)>> {
        self.inner().posted(since)
    }

    fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<()> {
        match is_local(tree, key) {
            true => self.put(tree, key, None).map(|_| ()),
            false => {
                self.note_catalog_write(tree, key);
                self.inner().delete(tree, key)
            }
        }
    }

    fn note_moved(&mut self, tree: TreeId, key: &[u8]) {
        // Nobody else waits for what is local.
        if !is_local(tree, key) {
            self.inner().note_moved(tree, key);
        }
    }

    fn was_moved(&self, tree: TreeId, key: &[u8]) -> Result<bool> {
        match is_local(tree, key) {
            true => Ok(false),
            false => self.shared().was_moved(tree, key),
        }
    }

    fn is_written_by_command(&self, tree: TreeId, key: &[u8]) -> bool {
        if !is_local(tree, key) {
            return self.shared().is_written_by_command(tree, key);
        }
        let inner = self.local.inner.lock();
        let writer = inner.store.writer(tree, key);
        writer.is_some_and(|(id, command)| id == self.id && command >= self.command)
    }

    fn catalog_writes(&self) -> &[(TreeId, Key)] {
        &self.catalog_writes
    }
}

impl Building for LocalTransaction {
    fn build(&mut self, build: &Build) -> Result<Built> {
        match build.source >= FIRST_TREE {
            true => self.build_local(build),
            false => self.inner().build(build),
        }
    }
}

impl Savepoints for LocalTransaction {
    fn savepoint(&mut self) -> Savepoint {
        let savepoint = self.inner().savepoint();
        self.savepoints.push((savepoint, self.journal.len()));
        savepoint
    }

    fn rollback_to(&mut self, savepoint: Savepoint) {
        self.inner().rollback_to(savepoint);
        let known = self.savepoints.iter().find(|known| known.0 == savepoint);
        // One that is older than the first local object.
        let mark = known.map_or(0, |known| known.1);
        self.take_back(mark);
        self.savepoints.retain(|known| known.0 <= savepoint);
    }

    fn release(&mut self, savepoint: Savepoint) {
        self.inner().release(savepoint);
        self.savepoints.retain(|known| known.0 < savepoint);
    }
}

impl Views for LocalTransaction {
    fn keep_view(&mut self) -> Result<ViewId> {
        let view = self.inner().keep_view()?;
        self.views.insert(view, self.command);
        Ok(view)
    }

    fn swap_view(&mut self, view: ViewId) -> Result<()> {
        self.inner().swap_view(view)?;
        if let Some(command) = self.views.get_mut(&view) {
            std::mem::swap(command, &mut self.command);
        }
        Ok(())
    }

    fn drop_view(&mut self, view: ViewId) {
        self.views.remove(&view);
        self.inner().drop_view(view);
    }
}

impl Drop for LocalTransaction {
    fn drop(&mut self) {
        self.take_back(0);
    }
}
