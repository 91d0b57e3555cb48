//! What is to be built, as the log has it.

use std::collections::BTreeSet;

use base::codec::{put_bytes, put_varint, Reader};
use base::engine::{Build, IndexDescriptor, RowKey, TreeDescriptor, TreeKind};
use base::key::put_key_column;
use base::row::{Row, RowBuilder};
use base::{Error, Key, Result, TreeId};

/// The key that a row gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewKey {
    /// This one.
    Is(Key),
    /// None, because this column is NULL.
    Null(usize),
}

/// The key of a row that is made of the columns of an index.
///
/// # Errors
/// XX001 when `row` is not a row of the table; 54000 when the key grows too long.
pub fn key_of_columns(index: &IndexDescriptor, row: &Row<'_>) -> Result<NewKey> {
    let mut key = Key::new();
    for column in &index.columns {
        let Some(value) = index.value(row, column.column) else {
            return Ok(NewKey::Null(column.column));
        };
        put_key_column(&mut key, column.kind, column.order, Some(value))?;
    }
    Ok(NewKey::Is(key))
}

/// What the new keys of rows are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewKeys {
    /// Made of the columns of such an index.
    Columns(IndexDescriptor),
    /// Numbers from this one on, in the order of the old keys.
    Numbers(u64),
}

/// One build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The tree of the table's rows.
    pub source: TreeId,
    /// The tree that gets the same rows under other keys.
    pub rekeyed: Option<(TreeId, NewKeys)>,
    /// New indexes.
    pub indexes: Vec<(TreeId, IndexDescriptor)>,
    /// The keys of rows that the transaction has changed itself.
    pub except: BTreeSet<Key>,
}

impl Plan {
    /// The plan of a build. `first` is the first of the numbers that rows get, if they do.
    pub fn new(build: &Build, first: u64, except: BTreeSet<Key>) -> Plan {
        let rekeyed = build.rekeyed.as_ref().map(|new| {
            let keys = match &new.key {
                RowKey::Columns(index) => NewKeys::Columns(index.clone()),
                RowKey::Numbers(_) => NewKeys::Numbers(first),
            };
            (new.tree, keys)
        });
        Plan {
            source: build.source,
            rekeyed,
            indexes: build.indexes.clone(),
            except,
        }
    }

    /// The trees that it makes.
    pub fn trees(&self) -> impl Iterator<Item = TreeId> + '_ {
        let table = self.rekeyed.iter().map(|(tree, _)| *tree);
        table.chain(self.indexes.iter().map(|(tree, _)| *tree))
    }

    /// The first of these, whose descriptor's key is also the key in [`TreeId::BUILDS`].
    pub fn id(&self) -> TreeId {
        self.trees().next().unwrap_or(self.source)
    }

    /// The descriptors of its trees.
    pub fn descriptors(&self) -> Vec<TreeDescriptor> {
        let table = self.rekeyed.iter().map(|(id, _)| TreeDescriptor {
            id: *id,
            kind: TreeKind::Table,
        });
        let indexes = self.indexes.iter().map(|(id, index)| TreeDescriptor {
            id: *id,
            kind: TreeKind::Index(index.clone()),
        });
        table.chain(indexes).collect()
    }

    /// As stored in [`TreeId::BUILDS`]: a row of one column.
    pub fn to_row(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, self.source.0);
        match &self.rekeyed {
            None => out.push(KEPT),
            Some((tree, NewKeys::Numbers(first))) => {
                out.push(NUMBERS);
                put_varint(&mut out, tree.0);
                put_varint(&mut out, *first);
            }
            Some((tree, NewKeys::Columns(index))) => {
                out.push(COLUMNS);
                put_bytes(&mut out, &index_row(*tree, index));
            }
        }
        put_varint(&mut out, self.indexes.len() as u64);
        for (id, index) in &self.indexes {
            put_bytes(&mut out, &index_row(*id, index));
        }
        put_varint(&mut out, self.except.len() as u64);
        self.except.iter().for_each(|key| put_bytes(&mut out, key));
        RowBuilder::new(1).value(&out).finish()
    }

    /// Reads what [`Plan::to_row`] made.
    ///
    /// # Errors
    /// XX001 when it is something else.
    pub fn from_row(row: &[u8]) -> Result<Plan> {
        let row = Row::parse(row)?;
        let bytes = row
            .column(0)
            .ok_or_else(|| Error::corrupted("a build without a plan"))?;
        let mut reader = Reader::new(bytes);
        let source = TreeId(reader.varint()?);
        let rekeyed = match reader.u8()? {
            KEPT => None,
            NUMBERS => {
                let tree = TreeId(reader.varint()?);
                Some((tree, NewKeys::Numbers(reader.varint()?)))
            }
            COLUMNS => {
                let (tree, index) = read_index(reader.bytes()?)?;
                Some((tree, NewKeys::Columns(index)))
            }
            other => return Err(Error::corrupted(format!("new keys of kind {other}"))),
        };
        let count: usize = reader.varint_as()?;
        let indexes: Vec<_> = (0..count)
            .map(|_| read_index(reader.bytes()?))
            .collect::<Result<_>>()?;
        let count: usize = reader.varint_as()?;
        let except = (0..count)
            .map(|_| Ok(reader.bytes()?.to_vec()))
            .collect::<Result<_>>()?;
        reader.finish()?;
        if rekeyed.is_none() && indexes.is_empty() {
            return Err(Error::corrupted("a build of no tree"));
        }
        Ok(Plan {
            source,
            rekeyed,
            indexes,
            except,
        })
    }
}

const KEPT: u8 = 0;
const COLUMNS: u8 = 1;
const NUMBERS: u8 = 2;

fn index_row(id: TreeId, index: &IndexDescriptor) -> Vec<u8> {
    let kind = TreeKind::Index(index.clone());
    TreeDescriptor { id, kind }.to_row()
}

fn read_index(row: &[u8]) -> Result<(TreeId, IndexDescriptor)> {
    let descriptor = TreeDescriptor::from_row(row)?;
    match descriptor.kind {
        TreeKind::Index(index) => Ok((descriptor.id, index)),
        TreeKind::Table => Err(Error::corrupted("a table among the indexes of a build")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::engine::IndexColumn;
    use base::key::KeyKind;

    #[test]
    fn plans_come_back() {
        let column = IndexColumn {
            column: 2,
            kind: KeyKind::Bytes,
            order: base::key::ColumnOrder::DESCENDING,
        };
        let index = IndexDescriptor {
            table: TreeId(20_001),
            columns: vec![column],
            unique: false,
            missing: vec![(2, Vec::new())],
        };
        let keys = [
            None,
            Some((TreeId(20_001), NewKeys::Numbers(7))),
            Some((TreeId(20_001), NewKeys::Columns(index.clone()))),
        ];
        for rekeyed in keys {
            let plan = Plan {
                source: TreeId(20_000),
                rekeyed,
                indexes: vec![(TreeId(20_002), index.clone())],
                except: BTreeSet::from([b"a".to_vec(), Vec::new()]),
            };
            let row = plan.to_row();
            assert_eq!(Plan::from_row(&row).unwrap(), plan);
            for end in 0..row.len() {
                assert!(Plan::from_row(&row[..end]).is_err(), "cut at {end}");
            }
        }
    }
}
