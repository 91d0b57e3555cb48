//! What trees there are: the first ids, and the descriptors of all others.
//!
//! ```text
//! insert (20 000 → Index of 19 999, by column 3) into DESCRIPTORS   makes the tree
//! delete (20 000)                                                   drops it
//! ```
//! The id of a tree says in which group it lies ([`TreeId::group`]), so nobody has to ask a map for
//! that, and a tree never changes its group: what moves goes to a tree of another id.
//!
//! ```text
//! 0x0000_0000_0000_4e20   tree 20 000, in the first group
//! 0x0000_0002_0000_4e21   tree 20 001, in group 2
//! ```
//! # Invariants
//! - A tree from [`TreeId::FIRST_USER`] on exists exactly while its descriptor does.
//! - Descriptors are rows like any others: they have versions, and are rolled back and replicated.
//!   Each is a row of the group in which its tree lies.

use crate::codec::{put_bytes, put_varint, Reader};
use crate::error::{Error, Result};
use crate::ids::{GroupId, TreeId, FIRST_GROUP};
use crate::key::{ColumnOrder, Key, KeyKind};

/// From this bit on, the id of a tree says in which group it lies; 0 is the first.
const GROUP_SHIFT: u32 = 32;

/// What is left of those bits for a group. Bits above them belong to whoever makes ids.
const GROUP_MASK: u64 = 0xffff;

impl TreeId {
    /// The tree of [`TreeDescriptor`]s; the key is the tree's id as 8 bytes, big-endian.
    pub const DESCRIPTORS: TreeId = TreeId(1);
    /// The tree of sequence states, kept by the engine.
    pub const SEQUENCES: TreeId = TreeId(2);
    /// The tree of builds that are under way, kept by the engine.
    pub const BUILDS: TreeId = TreeId(3);
    /// The tree of the cluster's settings ([`Configuration`]): SQL writes it, the engine obeys.
    pub const CONFIGURATION: TreeId = TreeId(4);
    /// The tree of the terms that there were and where each begins, kept by the engine.
    pub const TERMS: TreeId = TreeId(5);
    /// The tree of committed transactions whose ids were asked for, kept by the engine.
    pub const OUTCOMES: TreeId = TreeId(6);
    /// The tree of what sessions that were passed on have appended, kept by the engine.
    pub const SESSIONS: TreeId = TreeId(7);
    /// The tree of the cluster's groups but the first ([`GroupId`](crate::GroupId)), kept by the
    /// engine in that.
    pub const GROUPS: TreeId = TreeId(8);
    /// The tree of prepared transactions: as what, when, and their locks; kept by the engine.
    pub const PREPARED: TreeId = TreeId(9);
    /// The tree of what prepared transactions have written, kept by the engine.
    pub const PREPARED_CHANGES: TreeId = TreeId(10);
    /// The tree of notifications, in the order of their commits, kept by the engine.
    pub const NOTIFICATIONS: TreeId = TreeId(11);
    /// The tree of commits across groups that another group may still ask about, kept by the engine.
    pub const DECISIONS: TreeId = TreeId(12);
    /// The first id that SQL may give to a tree of its catalog; these need no descriptor.
    pub const FIRST_CATALOG: TreeId = TreeId(16);
    /// The first id of a tree that has a descriptor.
    pub const FIRST_USER: TreeId = TreeId(16_384);

    /// The tree of this number, below 2³², in a group.
    #[must_use]
    pub fn in_group(self, group: GroupId) -> TreeId {
        match group {
            FIRST_GROUP => self,
            group => TreeId(self.0 | u64::from(group.0) << GROUP_SHIFT),
        }
    }

    /// The group in which this tree lies.
    #[inline]
    pub fn group(self) -> GroupId {
        match self.0 >> GROUP_SHIFT & GROUP_MASK {
            0 => FIRST_GROUP,
            group => GroupId(group as u32),
        }
    }

    /// The tree whose key in [`TreeId::DESCRIPTORS`] this is.
    ///
    /// # Errors
    /// XX001 when it is the key of none.
    pub fn of_descriptor_key(key: &[u8]) -> Result<TreeId> {
        let id = <[u8; 8]>::try_from(key);
        let id = id.map_err(|_| Error::corrupted("a descriptor's key is not 8 bytes"))?;
        Ok(TreeId(u64::from_be_bytes(id)))
    }

    /// The key of this tree in [`TreeId::DESCRIPTORS`].
    pub fn descriptor_key(self) -> Key {
        self.0.to_be_bytes().to_vec()
    }

    /// Whether cached plans and catalog entries depend on this tree.
    pub fn is_catalog(self) -> bool {
        let is_kept = TreeId::SEQUENCES <= self && self < TreeId::FIRST_CATALOG;
        self < TreeId::FIRST_USER && !is_kept
    }
}

/// What a tree is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeDescriptor {
    /// The tree.
    pub id: TreeId,
    /// Rows of a table, or entries of an index.
    pub kind: TreeKind,
}

/// Rows of a table, or entries of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeKind {
    /// The rows of a table, keyed by its primary key or by hidden row numbers.
    Table,
    /// A secondary index; its entries are derived from the table's rows when they are applied.
    Index(IndexDescriptor),
}

/// How the entries of a secondary index follow from the rows of its table: the key is the index's
/// columns followed by the row's key, the value is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexDescriptor {
    /// The tree of the table's rows.
    pub table: TreeId,
    /// The columns, most significant first.
    pub columns: Vec<IndexColumn>,
    /// Whether two rows may not agree in all columns (rows with a NULL among them may).
    pub unique: bool,
    /// The values that rows have which are older than a column of the index, by its place.
    pub missing: Vec<(usize, Vec<u8>)>,
}

impl IndexDescriptor {
    /// The value of one of its columns in a row; `None` is NULL.
    pub fn value<'a>(&'a self, row: &crate::row::Row<'a>, column: usize) -> Option<&'a [u8]> {
        if self.missing.is_empty() || column < row.columns().len() {
            return row.column(column);
        }
        let found = self.missing.iter().find(|(place, _)| *place == column);
        found.map(|(_, value)| &value[..])
    }
}

/// One column of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexColumn {
    /// Its place in the row, from 0.
    pub column: usize,
    /// How its bytes become ordered ones.
    pub kind: KeyKind,
    /// How it is ordered.
    pub order: ColumnOrder,
}

impl TreeDescriptor {
    /// As stored in [`TreeId::DESCRIPTORS`]: a row of one column.
    pub fn to_row(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, self.id.0);
        match &self.kind {
            TreeKind::Table => out.push(0),
            TreeKind::Index(index) => {
                out.push(1);
                put_varint(&mut out, index.table.0);
                out.push(u8::from(index.unique));
                put_varint(&mut out, index.columns.len() as u64);
                for column in &index.columns {
                    put_varint(&mut out, column.column as u64);
                    out.push(column.kind.code());
                    out.push(column.order.code());
                }
                put_varint(&mut out, index.missing.len() as u64);
                for (place, value) in &index.missing {
                    put_varint(&mut out, *place as u64);
                    put_bytes(&mut out, value);
                }
            }
        }
        crate::row::RowBuilder::new(1).value(&out).finish()
    }

    /// Reads what [`TreeDescriptor::to_row`] made.
    ///
    /// # Errors
    /// XX001 when it is something else.
    pub fn from_row(row: &[u8]) -> Result<TreeDescriptor> {
        let row = crate::row::Row::parse(row)?;
        let bytes = row
            .column(0)
            .ok_or_else(|| Error::corrupted("a tree without a descriptor"))?;
        let mut reader = Reader::new(bytes);
        let id = TreeId(reader.varint()?);
        let kind = match reader.u8()? {
            0 => TreeKind::Table,
            1 => {
                let table = TreeId(reader.varint()?);
                let unique = reader.u8()? != 0;
                let count: usize = reader.varint_as()?;
                let columns = (0..count)
                    .map(|_| {
                        Ok(IndexColumn {
                            column: reader.varint_as()?,
                            kind: KeyKind::from_u8(reader.u8()?)?,
                            order: ColumnOrder::from_code(reader.u8()?)?,
                        })
                    })
                    .collect::<Result<_>>()?;
                let count: usize = reader.varint_as()?;
                let missing = (0..count)
                    .map(|_| Ok((reader.varint_as()?, reader.bytes()?.to_vec())))
                    .collect::<Result<_>>()?;
                TreeKind::Index(IndexDescriptor {
                    table,
                    columns,
                    unique,
                    missing,
                })
            }
            other => return Err(Error::corrupted(format!("a tree of kind {other}"))),
        };
        reader.finish()?;
        Ok(TreeDescriptor { id, kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_say_in_which_group_a_tree_lies() {
        let tree = TreeId(20_000);
        assert_eq!(
            (tree.group(), tree.in_group(FIRST_GROUP)),
            (FIRST_GROUP, tree)
        );
        let there = tree.in_group(GroupId(7));
        assert_eq!(there.group(), GroupId(7));
        assert_ne!(there, tree.in_group(GroupId(8)));
        assert_eq!(TreeId(there.0 | 1 << 56).group(), GroupId(7));
        assert_eq!(
            TreeId::of_descriptor_key(&there.descriptor_key()).ok(),
            Some(there)
        );
        assert!(TreeId::of_descriptor_key(b"k").is_err());
    }

    #[test]
    fn descriptors_come_back() {
        let index = TreeDescriptor {
            id: TreeId(20_000),
            kind: TreeKind::Index(IndexDescriptor {
                table: TreeId(19_999),
                columns: vec![IndexColumn {
                    column: 3,
                    kind: KeyKind::Bytes,
                    order: ColumnOrder::DESCENDING,
                }],
                unique: true,
                missing: vec![(3, b"x".to_vec())],
            }),
        };
        assert_eq!(TreeDescriptor::from_row(&index.to_row()).unwrap(), index);
        assert!(TreeDescriptor::from_row(b"\x01\x03\x01\x07").is_err());
    }
}
