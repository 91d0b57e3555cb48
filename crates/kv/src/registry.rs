//! What each tree is: the descriptors, in memory, as of the newest applied position.
//!
//! The truth is the tree [`TreeId::DESCRIPTORS`]; this is a copy that every write asks for the
//! indexes of its table. The applier keeps it in step with the tree, and builds it anew from the
//! tree when the group is opened and when a failover takes a descriptor back.
//!
//! ```text
//! table 16384 ──┬─ index 16385: columns 1, 0 desc       a row (k, r) has the entries
//!               └─ index 16386: column 2, unique          16385: r.1 r.0 k   16386: r.2 k
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use base::engine::{Configuration, IndexDescriptor, TreeDescriptor, TreeKind};
use base::hash::HashMap;
use base::key::put_key_column;
use base::limits::KEY_BYTES_MAX;
use base::row::Row;
use base::sync::{Mutex, MutexGuard, RwLock};
use base::{Error, Key, Result, SqlState, TreeId, TxnId};
use storage::Store;

use crate::build::Builds;
use crate::bulk::Announced;
use crate::catalog::CatalogHistory;
use crate::followed::Followed;
use crate::groups::Groups;
use crate::notifications::Listeners;
use crate::parts::{Decisions, Resolutions};
use crate::prepared::Prepared;

/// The secondary indexes of one table, in ascending order of their trees.
pub type Indexes = Arc<[(TreeId, IndexDescriptor)]>;

/// The descriptors of all trees.
#[derive(Debug, Default)]
pub struct Registry {
    trees: RwLock<Trees>,
    catalog: Mutex<CatalogHistory>,
    builds: Builds,
    configurations: Followed<Configuration>,
    groups: Followed<Groups>,
    prepared: Followed<Prepared>,
    decisions: Followed<Decisions>,
    resolutions: Resolutions,
    listeners: Listeners,
    /// What large transactions have announced.
    announced: Mutex<BTreeMap<TxnId, Arc<Announced>>>,
}

#[derive(Debug, Default)]
struct Trees {
    kinds: HashMap<TreeId, TreeKind>,
    indexes: HashMap<TreeId, Indexes>,
}

impl Registry {
    /// The builds that are under way.
    pub fn builds(&self) -> &Builds {
        &self.builds
    }

    /// The settings of the cluster.
    pub fn configurations(&self) -> &Followed<Configuration> {
        &self.configurations
    }

    /// The groups of the cluster, in its first.
    pub fn groups(&self) -> &Followed<Groups> {
        &self.groups
    }

    /// The transactions that are prepared.
    pub fn prepared(&self) -> &Followed<Prepared> {
        &self.prepared
    }

    /// The commits across groups that another group may still ask about.
    pub fn decisions(&self) -> &Followed<Decisions> {
        &self.decisions
    }

    /// The parts of transactions across groups that were committed last.
    pub fn resolutions(&self) -> &Resolutions {
        &self.resolutions
    }

    /// Who listens to notifications on this node.
    pub fn listeners(&self) -> &Listeners {
        &self.listeners
    }

    /// What a large transaction has announced.
    pub fn announced(&self, txn: TxnId) -> Arc<Announced> {
        let announced = self.announced.lock();
        announced.get(&txn).cloned().unwrap_or_default()
    }

    /// Keeps what a large transaction has announced for as long as the store remembers it.
    pub fn announce(&self, store: &Store, txn: TxnId, what: Arc<Announced>) {
        let mut announced = self.announced.lock();
        announced.retain(|txn, _| store.knows_bulk(*txn));
        announced.insert(txn, what);
    }

    /// The secondary indexes of a table.
    pub fn indexes(&self, table: TreeId) -> Option<Indexes> {
        self.trees.read().indexes.get(&table).cloned()
    }

    /// The descriptor of an index; `None` when the tree is none.
    pub fn index(&self, tree: TreeId) -> Option<IndexDescriptor> {
        match self.trees.read().kinds.get(&tree) {
            Some(TreeKind::Index(index)) => Some(index.clone()),
            _ => None,
        }
    }

    /// Whether rows may be written to this tree: it is a table, or one of the system's own.
    pub fn is_table(&self, tree: TreeId) -> bool {
        tree < TreeId::FIRST_USER
            || matches!(self.trees.read().kinds.get(&tree), Some(TreeKind::Table))
    }

    /// All descriptors, in ascending order of trees.
    pub fn all(&self) -> Vec<TreeDescriptor> {
        let trees = self.trees.read();
        let mut all: Vec<_> = trees
            .kinds
            .iter()
            .map(|(id, kind)| TreeDescriptor {
                id: *id,
                kind: kind.clone(),
            })
            .collect();
        all.sort_unstable_by_key(|descriptor| descriptor.id);
        all
    }

    /// Adds a descriptor.
    pub fn insert(&self, descriptor: TreeDescriptor) {
        let mut trees = self.trees.write();
        if let TreeKind::Index(index) = &descriptor.kind {
            let old = trees.indexes.get(&index.table);
            let mut all = old.map_or_else(Vec::new, |old| old.to_vec());
            all.push((descriptor.id, index.clone()));
            all.sort_unstable_by_key(|(id, _)| *id);
            trees.indexes.insert(index.table, all.into());
        }
        trees.kinds.insert(descriptor.id, descriptor.kind);
    }

    /// Removes a descriptor.
    pub fn remove(&self, tree: TreeId) {
        let mut trees = self.trees.write();
        let Some(TreeKind::Index(index)) = trees.kinds.remove(&tree) else {
            return;
        };
        let old = trees.indexes.remove(&index.table);
        let rest: Indexes = old
            .iter()
            .flat_map(|old| old.iter())
            .filter(|(id, _)| *id != tree)
            .cloned()
            .collect();
        if !rest.is_empty() {
            trees.indexes.insert(index.table, rest);
        }
    }

    /// Replaces all descriptors.
    pub fn replace(&self, descriptors: impl IntoIterator<Item = TreeDescriptor>) {
        *self.trees.write() = Trees::default();
        for descriptor in descriptors {
            self.insert(descriptor);
        }
    }

    /// How far the catalog has come, and what changed lately.
    pub fn catalog(&self) -> MutexGuard<'_, CatalogHistory> {
        self.catalog.lock()
    }
}

/// Appends the columns of an index's key, without the row's key that ends it. Two rows may not
/// agree in this prefix if the index is unique and [`has_null`] does not hold.
///
/// # Errors
/// XX001 when `row` is not a row of the table; 54000 when the key grows too long.
pub fn index_prefix(index: &IndexDescriptor, row: &Row<'_>, out: &mut Key) -> Result<()> {
    for column in &index.columns {
        if row.is_long(column.column) {
            let message = format!("index row size exceeds maximum {KEY_BYTES_MAX}");
            return Err(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        let value = index.value(row, column.column);
        put_key_column(out, column.kind, column.order, value)?;
    }
    Ok(())
}

/// Whether a column of the index is NULL in this row; such a row is no duplicate of any other.
pub fn has_null(index: &IndexDescriptor, row: &Row<'_>) -> bool {
    let mut columns = index.columns.iter();
    columns.any(|column| index.value(row, column.column).is_none())
}

/// The key of a row's entry in an index: the columns, then the row's key.
///
/// # Errors
/// As [`index_prefix`].
pub fn index_key(index: &IndexDescriptor, row: &Row<'_>, row_key: &[u8]) -> Result<Key> {
    let mut key = Key::new();
    index_prefix(index, row, &mut key)?;
    key.extend_from_slice(row_key);
    if key.len() > KEY_BYTES_MAX {
        let message = format!(
            "index row size {} exceeds maximum {KEY_BYTES_MAX}",
            key.len()
        );
        return Err(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::engine::IndexColumn;
    use base::key::KeyKind;
    use base::row::RowBuilder;

    fn index(id: u64, table: u64) -> TreeDescriptor {
        TreeDescriptor {
            id: TreeId(id),
            kind: TreeKind::Index(IndexDescriptor {
                table: TreeId(table),
                columns: vec![IndexColumn {
                    column: 1,
                    kind: KeyKind::Bytes,
                    order: base::key::ColumnOrder::ASCENDING,
                }],
                unique: true,
                missing: Vec::new(),
            }),
        }
    }

    #[test]
    fn a_table_knows_its_indexes() {
        let registry = Registry::default();
        registry.insert(TreeDescriptor {
            id: TreeId(20_000),
            kind: TreeKind::Table,
        });
        registry.insert(index(20_002, 20_000));
        registry.insert(index(20_001, 20_000));
        let indexes = registry.indexes(TreeId(20_000)).unwrap();
        let ids: Vec<_> = indexes.iter().map(|(id, _)| id.0).collect();
        assert_eq!(ids, [20_001, 20_002]);
        assert!(registry.is_table(TreeId(20_000)));
        assert!(!registry.is_table(TreeId(20_001)));
        registry.remove(TreeId(20_001));
        registry.remove(TreeId(20_002));
        assert!(registry.indexes(TreeId(20_000)).is_none());
    }

    #[test]
    fn an_entry_is_the_columns_and_the_key() {
        let TreeKind::Index(index) = index(20_001, 20_000).kind else {
            panic!("an index")
        };
        let bytes = RowBuilder::new(2).value(b"x").value(b"ab").finish();
        let row = Row::parse(&bytes).unwrap();
        let key = index_key(&index, &row, b"KEY").unwrap();
        assert_eq!(key, b"\x01ab\x00\x00KEY");
        assert!(!has_null(&index, &row));
        let bytes = RowBuilder::new(1).value(b"x").finish();
        let old = Row::parse(&bytes).unwrap();
        assert!(has_null(&index, &old));
        let index = IndexDescriptor {
            missing: vec![(1, b"cd".to_vec())],
            ..index
        };
        assert!(!has_null(&index, &old));
        let key = index_key(&index, &old, b"KEY").unwrap();
        assert_eq!(key, b"\x01cd\x00\x00KEY");
        let null = RowBuilder::new(2).value(b"x").null().finish();
        assert!(has_null(&index, &Row::parse(&null).unwrap()));
    }
}
