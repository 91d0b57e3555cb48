//! The rows of local trees: committed ones, and what the transaction at work has written over them.

use std::collections::BTreeMap;
use std::ops::Bound;

use base::engine::{Direction, IndexDescriptor, RowBatch, TreeDescriptor, TreeKind, TreeSize};
use base::key::put_key_column;
use base::large::Large;
use base::memory::Reservation;
use base::row::Row;
use base::{Error, Key, KeyRange, Result, SqlState, TreeId};

use super::LOCAL_BYTES_MAX;

/// What a version takes beside its key and row: places in the map, and the allocator's.
const VERSION_BYTES: usize = 192;

/// Rows that one call of a scan looks at, at most: most of them may have been deleted.
const LOOKED_MAX: usize = if cfg!(test) { 4 } else { 1_024 };

/// Who wrote a version: no transaction that is still at work, or which one and in which command.
pub type Writer = Option<(u64, u32)>;

/// The versions of one row, oldest first; none is a deletion.
type Versions = Vec<(Writer, Option<Vec<u8>>)>;

/// The indexes of tables, by the tree of the table.
type Indexes = BTreeMap<TreeId, Vec<(TreeId, IndexDescriptor)>>;

/// A local tree.
#[derive(Default)]
pub struct Tree {
    rows: Large<BTreeMap<Key, Versions>>,
    versions: usize,
    /// The bytes of all versions, each with its key.
    bytes: usize,
}

#[derive(Default)]
pub struct Store {
    trees: BTreeMap<TreeId, Tree>,
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

impl Tree {
    /// Drops it, out of the latch; what the store is to forget then.
    pub fn end(self) -> (usize, usize) {
        (self.bytes, self.versions)
    }
}

impl Store {
    pub fn get(&self, tree: TreeId, key: &[u8], view: View) -> Option<&[u8]> {
        view.pick(self.trees.get(&tree)?.rows.get(key)?)
    }

    /// Who wrote the newest version of a row.
    pub fn writer(&self, tree: TreeId, key: &[u8]) -> Writer {
        self.trees.get(&tree)?.rows.get(key)?.last()?.0
    }

    /// The rows of a range that a view shows.
    pub fn range<'s>(
        &'s self,
        tree: TreeId,
        range: &'s KeyRange,
        view: View,
    ) -> impl DoubleEndedIterator<Item = (&'s Key, &'s [u8])> {
        let rows = self.versions(tree, range);
        rows.filter_map(move |(key, versions)| Some((key, view.pick(versions)?)))
    }

    /// The rows of a range, with all versions.
    fn versions<'s>(
        &'s self,
        tree: TreeId,
        range: &'s KeyRange,
    ) -> impl DoubleEndedIterator<Item = (&'s Key, &'s Versions)> {
        let start = Bound::Included(range.start.clone());
        let end = match &range.end {
            // A range that ends before it begins has nothing.
            Some(end) => Bound::Excluded(end.clone().max(range.start.clone())),
            None => Bound::Unbounded,
        };
        let rows = self.trees.get(&tree).into_iter();
        rows.flat_map(move |tree| tree.rows.range((start.clone(), end.clone())))
    }

    /// Adds the first rows of a range that a view shows, until there are so many or [`LOOKED_MAX`]
    /// were looked at; what is left of the range then.
    pub fn scan(
        &self,
        tree: TreeId,
        (range, direction): (&KeyRange, Direction),
        most: usize,
        view: View,
        batch: &mut RowBatch,
    ) -> Option<KeyRange> {
        let rows = self.versions(tree, range);
        let rows: Box<dyn Iterator<Item = _>> = match direction {
            Direction::Forward => Box::new(rows),
            Direction::Backward => Box::new(rows.rev()),
        };
        for (looked, (key, versions)) in rows.enumerate() {
            if batch.len() == most || looked == LOOKED_MAX {
                let mut rest = range.clone();
                match direction {
                    Direction::Forward => rest.start = key.clone(),
                    Direction::Backward => rest.end = KeyRange::point(key).end,
                }
                return Some(rest);
            }
            if let Some(row) = view.pick(versions) {
                batch.push(key, row);
            }
        }
        None
    }

    /// How large a tree is in memory, all its versions together.
    pub fn size(&self, tree: TreeId) -> TreeSize {
        let mut size = TreeSize::default();
        if let Some(tree) = self.trees.get(&tree) {
            size.rows = tree.rows.len() as u64;
            size.bytes = tree.bytes as u64;
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
        let tree = self.trees.entry(tree).or_default();
        tree.versions += 1;
        tree.bytes += bytes;
        let versions = tree.rows.entry(key.to_vec()).or_default();
        versions.push((Some(writer), row));
        Ok(())
    }

    fn drop_version(&mut self, tree: TreeId, key: &[u8], place: usize) {
        let Some(tree) = self.trees.get_mut(&tree) else {
            return;
        };
        if let Some(versions) = tree.rows.get_mut(key) {
            let (_, row) = versions.remove(place);
            let bytes = key.len() + row.as_ref().map_or(0, Vec::len);
            if versions.is_empty() {
                tree.rows.remove(key);
            }
            tree.versions -= 1;
            tree.bytes -= bytes;
            self.forget(bytes, 1);
        }
    }

    /// So many versions of so many bytes are gone.
    pub fn forget(&mut self, bytes: usize, versions: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
        self.held.shrink(bytes + VERSION_BYTES * versions);
    }

    fn versions_of(&mut self, tree: TreeId, key: &[u8]) -> Option<&mut Versions> {
        self.trees.get_mut(&tree)?.rows.get_mut(key)
    }

    /// Takes the newest version of a row back.
    pub fn take_back(&mut self, tree: TreeId, key: &[u8]) {
        if tree == TreeId::DESCRIPTORS {
            self.indexes = None;
        }
        let versions = self.versions_of(tree, key).map(|versions| versions.len());
        if let Some(place) = versions.and_then(|count| count.checked_sub(1)) {
            self.drop_version(tree, key, place);
        }
    }

    /// Makes the newest version of a row the only one. Trees that are gone with it are returned, as
    /// by [`Store::remove`].
    #[must_use]
    pub fn settle(&mut self, tree: TreeId, key: &[u8]) -> Vec<Tree> {
        while self
            .versions_of(tree, key)
            .is_some_and(|versions| versions.len() > 1)
        {
            self.drop_version(tree, key, 0);
        }
        let Some(versions) = self.versions_of(tree, key) else {
            return Vec::new();
        };
        let gone = match versions.first_mut() {
            Some(version) => {
                version.0 = None;
                version.1.is_none()
            }
            None => true,
        };
        if !gone {
            return Vec::new();
        }
        self.drop_version(tree, key, 0);
        match key.try_into() {
            Ok(id) if tree == TreeId::DESCRIPTORS => self.remove(TreeId(u64::from_be_bytes(id))),
            _ => Vec::new(),
        }
    }

    /// Takes out all rows of a tree, and the entries of its indexes. What they take counts until the
    /// store is told to forget it.
    #[must_use]
    pub fn remove(&mut self, tree: TreeId) -> Vec<Tree> {
        let indexes: Vec<_> = self.indexes_of(tree).iter().map(|index| index.0).collect();
        let trees = std::iter::once(tree).chain(indexes);
        trees.filter_map(|tree| self.trees.remove(&tree)).collect()
    }

    /// The indexes of a table, as the newest descriptors have them.
    pub fn indexes_of(&mut self, table: TreeId) -> Vec<(TreeId, IndexDescriptor)> {
        let trees = &self.trees;
        let indexes = self.indexes.get_or_insert_with(|| {
            let mut indexes = Indexes::new();
            let rows = trees.get(&TreeId::DESCRIPTORS);
            let rows = rows.into_iter().flat_map(|tree| tree.rows.iter());
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
