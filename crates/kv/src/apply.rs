//! From records to the trees: what one record changes on this replica.
//!
//! Two steps, because the leader takes the first before it stands in line for the log, while the
//! transaction's locks keep the rows that it reads from changing:
//!
//! 1. [`derive()`] reads the rows before the record, merges deltas, and derives what happens to
//!    secondary indexes;
//! 2. [`apply`] hands all of it to the store as the changes of one LSN.
//!
//! A record is applied exactly once, to exactly the state that it was made for. So an insert over
//! a row that is there, or a change of one that is not, is an error: damage on a replica (P6), a
//! bug of the transaction on the leader.
//!
//! # Descriptors
//! The insert of a descriptor makes its tree before any row of the record is written, and the
//! delete of one drops the tree after. An index made on a table that has rows gets its entries
//! here, in line, which is for small tables and those of the same record; the trees of a
//! [build](crate::build) are there already, and are switched to.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::engine::{
    read_configuration, Configuration, Direction, IndexDescriptor, RowBatch, SequencePosition,
    Stage, TreeDescriptor, TreeKind,
};
use base::limits::SCAN_BATCH_ROWS;
use base::row::{Row, RowBuilder};
use base::{Error, Key, KeyRange, Lsn, Position, Result, SequenceId, Timestamp, TreeId, TxnId};
use storage::{Gap, Store};

use crate::build::Plan;
use crate::bulk::Announced;
use crate::group::outcomes;
use crate::groups::Groups;
use crate::notifications::{placed, Channels};
use crate::parts::Decisions;
use crate::prepared::Prepared;
use crate::record::{Body, Change, Record, RowChange};
use crate::registry::{index_key, Indexes, Registry};

/// What one record changes, ready for the store.
#[derive(Debug, Default)]
pub struct Derived {
    made: Vec<TreeDescriptor>,
    dropped: Vec<TreeId>,
    changes: Vec<Written>,
    catalog: bool,
    /// The rows of the catalog that change.
    catalog_keys: Vec<(TreeId, Key)>,
    /// Whether settings of the cluster change.
    configuration: bool,
    /// Whether groups of the cluster do.
    groups: bool,
    /// What it does to what is prepared.
    prepared: Vec<RowChange>,
    /// What it does to decisions on transactions across groups.
    decisions: Vec<RowChange>,
    /// To whom it tells something.
    told: Option<Channels>,
    /// Builds that begin.
    begun: Vec<Plan>,
    /// Builds that end …
    ended: Vec<TreeId>,
    /// … and the trees among `made` that they have made.
    adopted: Vec<TreeId>,
    /// The trees among `made` that chunks of the same transaction have made.
    announced: Vec<TreeId>,
    /// This is a chunk of that transaction, with what it announces.
    chunk: Option<(TxnId, Option<Arc<Announced>>)>,
    /// Transactions that came in chunks and end here; whether they are committed.
    decided: Vec<(TxnId, bool)>,
}

/// Among fewer rows of a tree nobody looks for gaps.
const GAP_ROWS_MIN: usize = 16;

#[derive(Debug)]
struct Written {
    tree: TreeId,
    key: Key,
    row: Option<Vec<u8>>,
    /// The row before was read.
    read: bool,
}

impl Written {
    fn place(&self) -> (TreeId, &[u8]) {
        (self.tree, &self.key)
    }
}

impl Derived {
    fn write(&mut self, tree: TreeId, key: Key, row: Option<Vec<u8>>) {
        self.changes.push(Written {
            tree,
            key,
            row,
            read: false,
        });
    }

    /// Changes the last byte of texts that end in a digit: what [`raft::planted::Bug::RowAltered`] does.
    pub(crate) fn alter_rows(&mut self) {
        for written in self.changes.iter_mut() {
            let row = written.row.as_deref_mut().unwrap_or_default();
            if let [.., before, last] = row {
                let is_text = before.is_ascii_graphic() && last.is_ascii_digit();
                *last ^= u8::from(is_text && written.tree >= TreeId::FIRST_USER);
            }
        }
    }

    /// The record has this timestamp, which what it prepares proposes.
    pub fn stamp(&mut self, timestamp: Timestamp) {
        if self.prepared.is_empty() {
            return;
        }
        for change in &mut self.prepared {
            if let Change::Insert(row) = &mut change.change {
                crate::prepared::stamp(row, timestamp);
            }
        }
        let written = self.changes.iter_mut();
        written
            .filter(|written| written.tree == TreeId::PREPARED)
            .filter_map(|written| written.row.as_mut())
            .for_each(|row| crate::prepared::stamp(row, timestamp));
    }

    /// All keys that change.
    pub fn keys(&self) -> impl Iterator<Item = (TreeId, &[u8])> {
        self.changes.iter().map(Written::place)
    }

    /// Those whose leaves were not looked at.
    pub fn keys_not_read(&self) -> impl Iterator<Item = (TreeId, &[u8])> {
        let written = self.changes.iter().filter(|written| !written.read);
        written.map(Written::place)
    }
}

/// Removes the changes of trees that were made and dropped again by the same transaction, so that
/// no descriptor of theirs is left in it.
pub fn drop_orphans(registry: &Registry, changes: &mut Vec<RowChange>) -> Result<()> {
    let touches_users = changes.last().is_some_and(|c| c.tree >= TreeId::FIRST_USER);
    if !touches_users {
        return Ok(());
    }
    let made = made_by(changes)?;
    let is_made = |tree| made.iter().any(|made: &TreeDescriptor| made.id == tree);
    changes.retain(|change| registry.is_table(change.tree) || is_made(change.tree));
    Ok(())
}

/// The descriptors that a transaction inserts.
pub(crate) fn made_by(changes: &[RowChange]) -> Result<Vec<TreeDescriptor>> {
    let descriptors = changes.iter().filter_map(|change| match &change.change {
        Change::Insert(row) if change.tree == TreeId::DESCRIPTORS => Some((&change.key, row)),
        _ => None,
    });
    descriptors
        .map(|(key, row)| {
            let descriptor = TreeDescriptor::from_row(row)?;
            if descriptor.id.descriptor_key() != *key || descriptor.id < TreeId::FIRST_USER {
                let message = format!("tree {} under another's key", descriptor.id);
                return Err(Error::corrupted(message));
            }
            Ok(descriptor)
        })
        .collect()
}

/// What a record that is in the log does to the newest state.
///
/// # Errors
/// As [`derive()`].
pub fn derive_record(store: &Store, registry: &Registry, record: &Record) -> Result<Derived> {
    let mut derived = derive_body(store, registry, &record.body)?;
    derived.stamp(record.timestamp);
    Ok(derived)
}

fn derive_body(store: &Store, registry: &Registry, body: &Body) -> Result<Derived> {
    match body {
        Body::Transaction { changes, .. } => derive(store, registry, changes),
        Body::Chunk { txn, changes } => derive_chunk(store, registry, *txn, changes),
        Body::Decision {
            txn,
            committed,
            changes,
        } => derive_decision(store, registry, (*txn, *committed), changes),
        Body::Sequence { sequence, next } => Ok(derive_sequence(*sequence, *next)),
        Body::Position { sequence, at } => Ok(derive_position(*sequence, *at)),
    }
}

/// What a transaction's changes, in the order of a record, do to the newest state.
///
/// # Errors
/// XX001 when they do not fit it; 54000 when an index's key grows too long.
pub fn derive(store: &Store, registry: &Registry, changes: &[RowChange]) -> Result<Derived> {
    derive_with(store, registry, changes, Derived::default())
}

/// What the end of a transaction that came in chunks does.
///
/// # Errors
/// As [`derive()`].
pub fn derive_decision(
    store: &Store,
    registry: &Registry,
    decided: (TxnId, bool),
    changes: &[RowChange],
) -> Result<Derived> {
    let announced = registry.announced(decided.0);
    let derived = Derived {
        decided: vec![decided],
        announced: announced.made.iter().map(|made| made.id).collect(),
        ..Derived::default()
    };
    derive_with(store, registry, changes, derived)
}

/// What a chunk of a transaction does.
///
/// # Errors
/// As [`derive()`].
pub fn derive_chunk(
    store: &Store,
    registry: &Registry,
    txn: TxnId,
    changes: &[RowChange],
) -> Result<Derived> {
    let mut derived = Derived::default();
    let announces = changes
        .first()
        .is_some_and(|first| first.tree == TreeId::DESCRIPTORS);
    if announces {
        let announced = Announced::read(changes)?;
        for made in &announced.made {
            if let TreeKind::Index(index) = &made.kind {
                build_index(store, made.id, index, &[], &mut derived)?;
            }
        }
        derived.made.clone_from(&announced.made);
        derived.chunk = Some((txn, Some(Arc::new(announced))));
        return Ok(derived);
    }
    let announced = registry.announced(txn);
    let scope = Scope {
        made: announced.made.iter().map(|made| made.id).collect(),
        adopted: Vec::new(),
        dropped: announced.dropped.clone(),
        indexes: announced.indexes().collect(),
    };
    for rows in changes.chunk_by(|a, b| a.tree == b.tree) {
        derive_tree(store, registry, rows, &scope, &mut derived)?;
    }
    derived.chunk = Some((txn, None));
    Ok(derived)
}

/// What a record's rows are derived in view of.
struct Scope {
    /// Trees that the transaction makes, and all of whose rows are in its records.
    made: Vec<TreeId>,
    /// Trees that it makes and that have rows already.
    adopted: Vec<TreeId>,
    /// Trees that go.
    dropped: Vec<TreeId>,
    /// Indexes that nobody else knows, and whose entries follow from the rows.
    indexes: Vec<(TreeId, IndexDescriptor)>,
}

fn derive_with(
    store: &Store,
    registry: &Registry,
    changes: &[RowChange],
    mut derived: Derived,
) -> Result<Derived> {
    derived.made = made_by(changes)?;
    for change in changes {
        derived.catalog |= change.tree.is_catalog();
        if change.tree >= TreeId::FIRST_CATALOG && change.tree.is_catalog() {
            derived.catalog_keys.push((change.tree, change.key.clone()));
        }
        derived.configuration |= change.tree == TreeId::CONFIGURATION;
        derived.groups |= change.tree == TreeId::GROUPS;
        match change.tree {
            TreeId::PREPARED => derived.prepared.push(change.clone()),
            TreeId::DECISIONS => derived.decisions.push(change.clone()),
            _ => {}
        }
        match (change.tree, &change.change) {
            (TreeId::DESCRIPTORS, Change::Delete) => derived
                .dropped
                .push(TreeId::of_descriptor_key(&change.key)?),
            (TreeId::BUILDS, Change::Insert(row)) => derived.begun.push(Plan::from_row(row)?),
            (TreeId::BUILDS, Change::Delete) => {
                derived.ended.push(TreeId::of_descriptor_key(&change.key)?)
            }
            _ => {}
        }
    }
    derived.told = Channels::told_by(changes)?;
    adopt_builds(store, registry, &mut derived)?;
    let is_adopted = |made: &&TreeDescriptor| derived.adopted.contains(&made.id);
    let scope = Scope {
        made: (derived.made.iter())
            .filter(|made| !is_adopted(made))
            .map(|made| made.id)
            .collect(),
        adopted: derived.adopted.clone(),
        dropped: derived.dropped.clone(),
        indexes: (derived.made.iter().filter(is_adopted))
            .filter_map(|made| match &made.kind {
                TreeKind::Index(index) => Some((made.id, index.clone())),
                TreeKind::Table => None,
            })
            .collect(),
    };
    for rows in changes.chunk_by(|a, b| a.tree == b.tree) {
        derive_tree(store, registry, rows, &scope, &mut derived)?;
    }
    let made = std::mem::take(&mut derived.made);
    for descriptor in &made {
        let is_there = |trees: &[TreeId]| trees.contains(&descriptor.id);
        if is_there(&derived.adopted) || is_there(&derived.announced) {
            continue;
        }
        if let TreeKind::Index(index) = &descriptor.kind {
            build_index(store, descriptor.id, index, changes, &mut derived)?;
        }
    }
    derived.made = made;
    Ok(derived)
}

/// Finds which of the trees that a record makes were built beside it, and does what is left to do
/// of them.
fn adopt_builds(store: &Store, registry: &Registry, derived: &mut Derived) -> Result<()> {
    let builds = registry.builds();
    for id in &derived.ended {
        let build = builds.get(*id);
        let build = build.ok_or_else(|| Error::corrupted(format!("tree {id} is not built")))?;
        let is_made = |tree: &TreeId| derived.made.iter().any(|made| made.id == *tree);
        let first = derived.adopted.len();
        derived.adopted.extend(build.plan.trees().filter(is_made));
        if derived.adopted.len() > first {
            builds.complete(store, *id)?;
        }
    }
    Ok(())
}

/// What the first entry of a new term changes: the term is noted, builds of earlier terms end, and
/// transactions whose chunks have no end are aborted.
///
/// # Errors
/// As [`derive()`].
pub fn derive_new_term(store: &Store, registry: &Registry, first: Position) -> Result<Derived> {
    let prepared = registry.prepared().newest();
    let builds = registry.builds().all().into_iter();
    // The locks of what is prepared do not end.
    let ended = builds.filter(|build| !prepared.builds(build.plan.id()));
    let mut changes: Vec<_> = ended
        .map(|build| RowChange {
            tree: TreeId::BUILDS,
            key: build.plan.id().descriptor_key(),
            change: Change::Delete,
        })
        .collect();
    changes.push(outcomes::note_term(first));
    crate::record::sort(&mut changes);
    let open = store.open_bulks().into_iter();
    let derived = Derived {
        decided: open.map(|txn| (txn, false)).collect(),
        ..Derived::default()
    };
    derive_with(store, registry, &changes, derived)
}

fn derive_tree(
    store: &Store,
    registry: &Registry,
    rows: &[RowChange],
    scope: &Scope,
    derived: &mut Derived,
) -> Result<()> {
    let tree = rows[0].tree;
    if scope.dropped.contains(&tree) {
        return Ok(());
    }
    let made = scope.made.contains(&tree);
    if !made && !scope.adopted.contains(&tree) && !registry.is_table(tree) {
        return Err(Error::corrupted(format!("rows of tree {tree}, no table")));
    }
    let indexes = indexes_after(registry, tree, scope);
    let mut old = Vec::new();
    // Where many rows come in order, most lie in the gap that the one before has found.
    let mut gap: Option<Gap> = None;
    for change in rows {
        let looks = rows.len() >= GAP_ROWS_MIN && matches!(change.change, Change::Insert(_));
        let is_absent = made || looks && lies_in_gap(store, tree, &change.key, &mut gap)?;
        let exists = !is_absent && store.get(tree, &change.key, Lsn::MAX, &mut old)?.exists;
        let old = exists.then_some(&old[..]);
        let new = after(change, old)?;
        if let Some(indexes) = &indexes {
            derive_entries(indexes, scope, &change.key, (old, new.as_deref()), derived)?;
        }
        derived.changes.push(Written {
            tree,
            key: change.key.clone(),
            row: new,
            read: !made,
        });
    }
    Ok(())
}

/// Whether a key lies in a gap of a tree: in one that a smaller key has found, or its own.
fn lies_in_gap(store: &Store, tree: TreeId, key: &[u8], gap: &mut Option<Gap>) -> Result<bool> {
    if !gap.as_ref().is_some_and(|gap| gap.has(key)) {
        *gap = store.gap(tree, key)?;
    }
    Ok(gap.is_some())
}

/// The indexes of a table, with those that the transaction makes.
fn indexes_after(registry: &Registry, table: TreeId, scope: &Scope) -> Option<Indexes> {
    let known = registry.indexes(table);
    if scope.indexes.is_empty() {
        return known;
    }
    let mut all = known.map_or_else(Vec::new, |known| known.to_vec());
    let made = scope.indexes.iter();
    all.extend(made.filter(|(_, index)| index.table == table).cloned());
    (!all.is_empty()).then(|| all.into())
}

/// The row after a change, given the row before it.
fn after(change: &RowChange, old: Option<&[u8]>) -> Result<Option<Vec<u8>>> {
    match (&change.change, old) {
        (Change::Insert(row), None) => Ok(Some(row.clone())),
        (Change::Update(delta), Some(old)) => Ok(Some(delta.apply(old)?)),
        (Change::Delete, Some(_)) => Ok(None),
        (Change::Insert(_), Some(_)) => Err(misfit(change, "inserted over one that is there")),
        (_, None) => Err(misfit(change, "changed, and is not there")),
    }
}

fn misfit(change: &RowChange, what: &str) -> Error {
    Error::corrupted(format!(
        "row {:02x?} of tree {} is {what}",
        change.key, change.tree
    ))
}

fn derive_entries(
    indexes: &Indexes,
    scope: &Scope,
    row_key: &[u8],
    (old, new): (Option<&[u8]>, Option<&[u8]>),
    derived: &mut Derived,
) -> Result<()> {
    let old = old.map(Row::parse).transpose()?;
    let new = new.map(Row::parse).transpose()?;
    for (tree, index) in indexes.iter() {
        if scope.dropped.contains(tree) {
            continue;
        }
        let key_in = |row: &Row<'_>| index_key(index, row, row_key);
        let before = old.as_ref().map(key_in).transpose()?;
        let after = new.as_ref().map(key_in).transpose()?;
        if before == after {
            continue;
        }
        if let Some(key) = before {
            derived.write(*tree, key, None);
        }
        if let Some(key) = after {
            derived.write(*tree, key, Some(Vec::new()));
        }
    }
    Ok(())
}

/// The entries of an index that the record makes: of the table's rows as the record leaves them.
fn build_index(
    store: &Store,
    tree: TreeId,
    index: &IndexDescriptor,
    changes: &[RowChange],
    derived: &mut Derived,
) -> Result<()> {
    let mut keys: BTreeMap<Key, Option<Key>> = BTreeMap::new();
    for_each_row(store, index.table, |row_key, row| {
        let entry = index_key(index, &Row::parse(row)?, row_key)?;
        keys.insert(row_key.to_vec(), Some(entry));
        Ok(())
    })?;
    let mut written = derived.changes.iter();
    for change in changes.iter().filter(|change| change.tree == index.table) {
        let row = written.find(|w| w.tree == change.tree && w.key == change.key);
        let row = row.and_then(|written| written.row.as_deref());
        let entry = match row {
            Some(row) => Some(index_key(index, &Row::parse(row)?, &change.key)?),
            None => None,
        };
        keys.insert(change.key.clone(), entry);
    }
    for entry in keys.into_values().flatten() {
        derived.write(tree, entry, Some(Vec::new()));
    }
    Ok(())
}

/// Calls `f` with every key and row of a tree, as of the newest position.
pub fn for_each_row(
    store: &Store,
    tree: TreeId,
    mut f: impl FnMut(&[u8], &[u8]) -> Result<()>,
) -> Result<()> {
    let mut rest = Some(KeyRange::all());
    let mut batch = RowBatch::default();
    while let Some(range) = rest {
        let direction = Direction::Forward;
        rest = store
            .scan(
                tree,
                &range,
                direction,
                Lsn::MAX,
                SCAN_BATCH_ROWS,
                &mut batch,
            )?
            .rest;
        batch.iter().try_for_each(|(key, row)| f(key, row))?;
    }
    Ok(())
}

/// Makes one record's changes those of `lsn`, and keeps the registry in step.
///
/// # Errors
/// Only errors that stop the node.
pub fn apply(store: &Store, registry: &Registry, lsn: Lsn, derived: Derived) -> Result<()> {
    let whole = Pieces::new(derived).apply(store, registry, lsn, usize::MAX)?;
    assert!(whole, "a piece without an end is all");
    Ok(())
}

/// A record's changes, of which some were applied.
#[derive(Debug)]
pub struct Pieces {
    derived: Derived,
    begun: bool,
    next: usize,
}

impl Pieces {
    /// Nothing was applied yet.
    pub fn new(derived: Derived) -> Pieces {
        Pieces {
            derived,
            begun: false,
            next: 0,
        }
    }

    /// The keys of so many more changes.
    pub fn next_keys(&self, count: usize) -> impl Iterator<Item = (TreeId, &[u8])> {
        let next = self.derived.changes[self.next..].iter().take(count);
        next.map(Written::place)
    }

    /// Applies so many more changes; true when those were the last, and the record is applied.
    ///
    /// # Errors
    /// Only errors that stop the node.
    pub fn apply(
        &mut self,
        store: &Store,
        registry: &Registry,
        lsn: Lsn,
        count: usize,
    ) -> Result<bool> {
        if !std::mem::replace(&mut self.begun, true) {
            self.begin(store, lsn)?;
        }
        let derived = &mut self.derived;
        let end = self.next.saturating_add(count).min(derived.changes.len());
        let changes: Vec<_> = derived.changes[self.next..end]
            .iter()
            .map(|written| storage::Change {
                tree: written.tree,
                key: &written.key,
                row: written.row.as_deref(),
            })
            .collect();
        let is_last = end == derived.changes.len();
        self.next = end;
        match &derived.chunk {
            Some((txn, _)) => store.apply_chunk(lsn, *txn, &changes)?,
            None if is_last && derived.decided.is_empty() => store.apply(lsn, &changes)?,
            None => store.apply_part(lsn, &changes)?,
        }
        if !is_last {
            return Ok(false);
        }
        for (txn, committed) in std::mem::take(&mut derived.decided) {
            store.decide(lsn, txn, committed)?;
        }
        if store.applied() < lsn {
            store.advance(lsn)?;
        }
        if let Some((txn, announced)) = derived.chunk.take() {
            if let Some(announced) = announced {
                registry.announce(store, txn, announced);
            }
            return Ok(true);
        }
        for descriptor in std::mem::take(&mut derived.made) {
            registry.insert(descriptor);
        }
        for tree in std::mem::take(&mut derived.dropped) {
            registry.remove(tree);
        }
        for id in std::mem::take(&mut derived.ended) {
            registry.builds().end(store, id);
        }
        for plan in std::mem::take(&mut derived.begun) {
            registry.builds().begin(store, lsn, plan)?;
        }
        if derived.catalog {
            let keys = std::mem::take(&mut derived.catalog_keys);
            registry.catalog().changed(lsn, keys);
        }
        if derived.configuration {
            load_configuration(store, registry, lsn)?;
        }
        if derived.groups {
            registry.groups().note(lsn, groups(store)?);
        }
        if !derived.decisions.is_empty() {
            note_resolved(registry, &derived.decisions, lsn)?;
        }
        if !derived.prepared.is_empty() {
            let prepared = registry.prepared().newest();
            let prepared = prepared.changed(&derived.prepared, lsn)?;
            registry.prepared().note(lsn, prepared);
        }
        if !derived.decisions.is_empty() {
            let decisions = registry.decisions().newest();
            let decisions = decisions.changed(&derived.decisions, lsn)?;
            registry.decisions().note(lsn, decisions);
        }
        if let Some(channels) = derived.told {
            registry.listeners().note(lsn, channels);
        }
        Ok(true)
    }

    /// Trees come before their rows, and those that go are left as they are. What the record tells
    /// others gets its place.
    fn begin(&mut self, store: &Store, lsn: Lsn) -> Result<()> {
        let derived = &mut self.derived;
        if derived.told.is_some() {
            let rows = derived.changes.iter_mut();
            rows.filter(|written| written.tree == TreeId::NOTIFICATIONS)
                .for_each(|written| placed(&mut written.key, lsn));
        }
        for descriptor in &derived.made {
            let id = descriptor.id;
            match &derived.chunk {
                _ if derived.announced.contains(&id) => {}
                _ if derived.adopted.contains(&id) => store.adopt_tree(lsn, id)?,
                Some((txn, _)) => store.create_tree_in_chunk(lsn, *txn, id)?,
                None => store.create_tree(lsn, id)?,
            }
        }
        for tree in &derived.dropped {
            store.drop_tree(lsn, *tree)?;
        }
        Ok(())
    }
}

/// Notes the parts that a record has resolved, before they stand no more.
fn note_resolved(registry: &Registry, changes: &[RowChange], lsn: Lsn) -> Result<()> {
    let decided = Decisions::default().changed(changes, lsn)?;
    let prepared = registry.prepared().newest();
    for (id, kept) in decided.iter() {
        if let Some(part) = prepared.parts().find(|part| part.id == id) {
            let resolutions = registry.resolutions();
            resolutions.note(id, part.lsn, kept.timestamp, lsn);
        }
    }
    Ok(())
}

/// Builds the registry from the newest state of the store, builds left out.
pub fn load_registry(store: &Store, registry: &Registry, lsn: Lsn) -> Result<()> {
    let mut descriptors = Vec::new();
    for_each_row(store, TreeId::DESCRIPTORS, |_, row| {
        descriptors.push(TreeDescriptor::from_row(row)?);
        Ok(())
    })?;
    registry.replace(descriptors);
    registry.catalog().begin_anew(lsn);
    Ok(())
}

/// Notes the settings of the cluster as they are at the newest position, which is `lsn`.
pub fn load_configuration(store: &Store, registry: &Registry, lsn: Lsn) -> Result<()> {
    let configuration = configuration(store, lsn)?;
    registry.configurations().note(lsn, configuration);
    Ok(())
}

/// The groups of the cluster but the first as they are at the newest position.
pub fn groups(store: &Store) -> Result<Groups> {
    let mut groups = Groups::default();
    for_each_row(store, TreeId::GROUPS, |key, row| groups.take(key, row))?;
    Ok(groups)
}

/// What is prepared as of the newest position, which is `lsn`.
pub fn prepared(store: &Store, lsn: Lsn) -> Result<Prepared> {
    let mut prepared = Prepared::default();
    for_each_row(store, TreeId::PREPARED, |key, row| {
        prepared.take(key, row, lsn)
    })?;
    Ok(prepared)
}

/// The decisions that are kept as of the newest position, which is `lsn`.
pub fn decisions(store: &Store, lsn: Lsn) -> Result<Decisions> {
    let mut decisions = Decisions::default();
    for_each_row(store, TreeId::DECISIONS, |key, row| {
        decisions.take(key, row, lsn)
    })?;
    Ok(decisions)
}

/// The settings of the cluster as they are at the newest position, which is `lsn`.
pub fn configuration(store: &Store, lsn: Lsn) -> Result<Configuration> {
    let mut values = BTreeMap::new();
    for_each_row(store, TreeId::CONFIGURATION, |key, row| {
        values.extend(read_configuration(Stage::Loaded, key, row)?);
        Ok(())
    })?;
    Ok(Configuration { lsn, values })
}

/// The first number of a sequence that is not granted, as of the newest position.
pub fn sequence_next(store: &Store, sequence: SequenceId) -> Result<u64> {
    let mut row = Vec::new();
    let key = sequence.0.to_be_bytes();
    let found = store.get(TreeId::SEQUENCES, &key, Lsn::MAX, &mut row)?;
    if !found.exists {
        return Ok(1);
    }
    let row = Row::parse(&row)?;
    let bytes = row.column(0).and_then(|bytes| bytes.try_into().ok());
    bytes
        .map(u64::from_be_bytes)
        .ok_or_else(|| Error::corrupted("a sequence's state is not 8 bytes"))
}

/// What the grant of a sequence's numbers changes.
pub fn derive_sequence(sequence: SequenceId, next: u64) -> Derived {
    let mut derived = Derived::default();
    let row = RowBuilder::new(1).value(&next.to_be_bytes()).finish();
    let key = sequence.0.to_be_bytes().to_vec();
    derived.write(TreeId::SEQUENCES, key, Some(row));
    derived
}

/// Where a sequence of SQL stands as of the newest position, if it was ever used.
pub fn sequence_position(store: &Store, sequence: SequenceId) -> Result<Option<SequencePosition>> {
    let mut row = Vec::new();
    let key = sequence.0.to_be_bytes();
    if !store
        .get(TreeId::SEQUENCES, &key, Lsn::MAX, &mut row)?
        .exists
    {
        return Ok(None);
    }
    let row = Row::parse(&row)?;
    let last = row.column(0).and_then(|bytes| bytes.try_into().ok());
    match (last, row.column(1)) {
        (Some(last), Some([called])) => Ok(Some(SequencePosition {
            last: i64::from_be_bytes(last),
            called: *called != 0,
        })),
        _ => Err(Error::corrupted("a sequence's state is not 8 bytes and 1")),
    }
}

/// What setting a sequence, or logging its values ahead, changes.
pub fn derive_position(sequence: SequenceId, at: SequencePosition) -> Derived {
    let mut derived = Derived::default();
    let row = RowBuilder::new(2)
        .value(&at.last.to_be_bytes())
        .value(&[u8::from(at.called)])
        .finish();
    let key = sequence.0.to_be_bytes().to_vec();
    derived.write(TreeId::SEQUENCES, key, Some(row));
    derived
}
