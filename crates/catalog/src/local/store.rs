//! The rows of local trees: committed ones, and what the transaction at work has written over them.

use std::collections::BTreeMap;
use std::ops::Bound;

use base::engine::{IndexDescriptor, TreeDescriptor, TreeKind, TreeSize};
use base::key::put_key_column;
use base::memory::Reservation;
use base::row::Row;
use base::{Error, Key, KeyRange, Result, SqlState, TreeId};

use super::LOCAL_BYTES_MAX;

/// What a version takes beside its key and row: places in the map, and the allocator's.
const VERSION_BYTES: usize = 192;

/// Who wrote a version: no transaction that is still at work, or which one and in which command.
pub type Writer = Option<(u64, u32)>;

/// The versions of one row, oldest first; none is a deletion.
type Versions = Vec<(Writer, Option<Vec<u8>>)>;

/// The indexes of tables, by the tree of the table.
type Indexes = BTreeMap<TreeId, Vec<(TreeId, IndexDescriptor)>>;

#[derive(Default)]
pub struct Store {
    trees: BTreeMap<TreeId, BTreeMap<Key, Versions>>,
    bytes: usize,
    held: Reservation,
    /// Made of the descriptors when it is asked for.
    indexes: Option<Indexes>,
}

/// What a reader sees: versions of its own transaction before a command, or all of them.
#[derive(Clone, Copy)]
pub struct View {
    pub transaction: u64,
    /// None: the newest.
    pub before: Option<u32>,
}

impl View {
    fn sees(self, writer: Writer) -> bool {
        match (writer, self.before) {
            (None, _) => true,
            (Some((transaction, _)), None) => transaction == self.transaction,
            (Some((transaction, command)), Some(before)) => {
                transaction == self.transaction && command < before
            }
        }
    }

    fn pick(self, versions: &Versions) -> Option<&[u8]> {
        let seen = versions.iter().rfind(|version| self.sees(version.0));
        seen.and_then(|version| version.1.as_deref())
    }
}

impl Store {
    pub fn get(&self, tree: TreeId, key: &[u8], view: View) -> Option<&[u8]> {
        view.pick(self.trees.get(&tree)?.get(key)?)
    }

    /// Who wrote the newest version of a row.
    pub fn writer(&self, tree: TreeId, key: &[u8]) -> Writer {
        self.trees.get(&tree)?.get(key)?.last()?.0
    }

    /// The rows of a range that a view shows.
    pub fn range<'s>(
        &'s self,
        tree: TreeId,
        range: &'s KeyRange,
        view: View,
    ) -> impl DoubleEndedIterator<Item = (&'s Key, &'s [u8])> {
        let start = Bound::Included(range.start.clone());
        let end = match &range.end {
            // A range that ends before it begins has nothing.
            Some(end) => Bound::Excluded(end.clone().max(range.start.clone())),
            None => Bound::Unbounded,
        };
        let rows = self.trees.get(&tree).into_iter();
        let rows = rows.flat_map(move |rows| rows.range((start.clone(), end.clone())));
        rows.filter_map(move |(key, versions)| Some((key, view.pick(versions)?)))
    }

    /// How large a tree is in memory, all its versions together.
    pub fn size(&self, tree: TreeId) -> TreeSize {
        let mut size = TreeSize::default();
        for (key, versions) in self.trees.get(&tree).into_iter().flatten() {
            size.rows += 1;
            let rows = versions.iter().flat_map(|(_, row)| row);
            let bytes = rows.fold(key.len(), |bytes, row| bytes + row.len());
            size.bytes += bytes as u64;
        }
        size
    }

    /// Adds a version.
    ///
    /// # Errors
    /// 53200 when there is too much.
    pub fn write(
        &mut self,
        tree: TreeId,
        key: &[u8],
        writer: (u64, u32),
        row: Option<Vec<u8>>,
    ) -> Result<()> {
        let bytes = key.len() + row.as_ref().map_or(0, Vec::len);
        if row.is_some() && self.bytes + bytes > LOCAL_BYTES_MAX {
            return Err(
                Error::new(SqlState::of("53200"), "out of memory").with_detail(format!(
                    "The temporary tables of a session have {LOCAL_BYTES_MAX} bytes."
                )),
            );
        }
        self.held.grow(bytes + VERSION_BYTES)?;
        self.bytes += bytes;
        if tree == TreeId::DESCRIPTORS {
            self.indexes = None;
        }
        let rows = self.trees.entry(tree).or_default();
        let versions = rows.entry(key.to_vec()).or_default();
        versions.push((Some(writer), row));
        Ok(())
    }

    fn drop_version(&mut self, tree: TreeId, key: &[u8], place: usize) {
        let Some(rows) = self.trees.get_mut(&tree) else {
            return;
        };
        if let Some(versions) = rows.get_mut(key) {
            let (_, row) = versions.remove(place);
            let bytes = key.len() + row.as_ref().map_or(0, Vec::len);
            self.bytes = self.bytes.saturating_sub(bytes);
            self.held.shrink(bytes + VERSION_BYTES);
            if versions.is_empty() {
                rows.remove(key);
            }
        }
    }

    /// Takes the newest version of a row back.
    pub fn take_back(&mut self, tree: TreeId, key: &[u8]) {
        if tree == TreeId::DESCRIPTORS {
            self.indexes = None;
        }
        let newest = self.trees.get(&tree).and_then(|rows| rows.get(key));
        if let Some(place) = newest.and_then(|versions| versions.len().checked_sub(1)) {
            self.drop_version(tree, key, place);
        }
    }

    /// Makes the newest version of a row the only one.
    pub fn settle(&mut self, tree: TreeId, key: &[u8]) {
        while self
            .trees
            .get(&tree)
            .and_then(|rows| rows.get(key))
            .is_some_and(|versions| versions.len() > 1)
        {
            self.drop_version(tree, key, 0);
        }
        let Some(versions) = self.trees.get_mut(&tree).and_then(|rows| rows.get_mut(key)) else {
            return;
        };
        let gone = match versions.first_mut() {
            Some(version) => {
                version.0 = None;
                version.1.is_none()
            }
            None => true,
        };
        if !gone {
            return;
        }
        self.drop_version(tree, key, 0);
        if tree == TreeId::DESCRIPTORS {
            if let Ok(id) = key.try_into() {
                self.clear(TreeId(u64::from_be_bytes(id)));
            }
        }
    }

    /// Removes all rows of a tree, and the entries of its indexes.
    pub fn clear(&mut self, tree: TreeId) {
        let indexes: Vec<_> = self.indexes_of(tree).iter().map(|index| index.0).collect();
        for tree in std::iter::once(tree).chain(indexes) {
            for (key, versions) in self.trees.remove(&tree).unwrap_or_default() {
                let rows = versions.iter().map(|version| version.1.as_ref());
                let rows: usize = rows.map(|row| row.map_or(0, Vec::len)).sum();
                let bytes = rows + key.len() * versions.len();
                self.bytes = self.bytes.saturating_sub(bytes);
                self.held.shrink(bytes + VERSION_BYTES * versions.len());
            }
        }
    }

    /// The indexes of a table, as the newest descriptors have them.
    pub fn indexes_of(&mut self, table: TreeId) -> Vec<(TreeId, IndexDescriptor)> {
        let trees = &self.trees;
        let indexes = self.indexes.get_or_insert_with(|| {
            let mut indexes = Indexes::new();
            let rows = trees.get(&TreeId::DESCRIPTORS).into_iter().flatten();
            let newest = rows.filter_map(|(_, versions)| versions.last()?.1.as_ref());
            for descriptor in newest.filter_map(|row| TreeDescriptor::from_row(row).ok()) {
                if let TreeKind::Index(index) = descriptor.kind {
                    let of = indexes.entry(index.table).or_default();
                    of.push((descriptor.id, index));
                }
            }
            indexes
        });
        indexes.get(&table).cloned().unwrap_or_default()
    }
}

/// The key of a row's entry without the row's own key, and whether it holds a NULL.
pub fn entry(index: &IndexDescriptor, row: &[u8]) -> Result<(Key, bool)> {
    let row = Row::parse(row)?;
    let (mut key, mut has_null) = (Key::new(), false);
    for column in &index.columns {
        let value = index.value(&row, column.column);
        has_null |= value.is_none();
        put_key_column(&mut key, column.kind, column.order, value)?;
    }
    Ok((key, has_null))
}
