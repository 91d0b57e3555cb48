//! Indexes whose entries do not follow from columns alone: on expressions, with a condition, and
//! those to which NULLs are equal.
//!
//! ```text
//! create unique index on users (lower(name)) where deleted_at is null
//!
//!   users:  7 │ Ann │ null          its tree:  'ann' │ 7
//!           8 │ Bob │ 2024-01-01               (nothing: the row does not meet the condition)
//! ```
//!
//! # Who makes the entries
//! The engine derives the entries of plain indexes when it applies a record, on every replica, and
//! knows nothing of SQL. An expression is SQL: applying a record must neither fail nor depend on
//! the version of the program that runs it. So entries of computed indexes are made where the row
//! is written ([`crate::exec::entries`]), and are rows of a tree of their own, which the engine
//! takes for a table: it logs them, keeps versions of them, locks them, takes them back and sends
//! them like any rows. It is how long values are kept too ([`crate::exec::long`]).
//!
//! The other way that was weighed are hidden generated columns with a derived index on them. It
//! would make each row longer, write a whole table anew for a new index, and every place that shows
//! or numbers columns would have to pass over them.
//!
//! # The tree
//! | index | the row's keys | key of the entry | value |
//! |---|---|---|---|
//! | not unique | any | keys, then the row's key | nothing |
//! | unique | one is NULL | keys, then the row's key | nothing |
//! | unique, NULLS NOT DISTINCT | any | keys | the row's key |
//! | unique | none is NULL | keys | the row's key |
//!
//! So the keys of a unique index are keys of rows to the engine: who inserts one waits for others
//! that insert or delete the same, and is told of a duplicate.
//!
//! # Invariants
//! - [`Index::columns`](super::Index::columns) of such an index is empty: whoever looks for columns
//!   by which to find rows passes over it.
//! - Nothing of it is in [`base::engine::TreeKind::Index`], so the engine derives nothing for it.
//! - The texts name the table's columns as they are called now: renaming one writes them anew.
//!
//! # What it leaves out
//! INCLUDE columns are kept in the catalog and shown, but not in entries: there are no scans of an
//! index that do not look at the row. Entries are logged, not derived, so building such an index
//! sends them to the other nodes.

use base::codec::{put_bytes, put_signed, put_varint, Reader};
use base::key::ColumnOrder;
use base::{Error, Result};

use super::descriptor::{put_text, read_text};
use super::lists::read_list;
use super::{Column, Index, IndexedColumn, Table};
use types::TypeId;

/// What an index has that is on expressions or has a condition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Computed {
    /// Its keys, most significant first.
    pub keys: Vec<ComputedKey>,
    /// What a row must meet to have an entry, as SQL.
    pub condition: Option<String>,
    /// The places of all columns that keys and condition look at, ascending.
    pub uses: Vec<usize>,
}

/// A key of a computed index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComputedKey {
    /// Where its values come from.
    pub source: KeySource,
    /// How it is ordered.
    pub order: ColumnOrder,
}

/// Where the values of a key come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// A column of the table, by its place.
    Column(usize),
    /// An expression over the columns.
    Expression {
        /// What the column of the index is called.
        name: String,
        /// The expression, as SQL.
        text: String,
        /// Its type.
        type_id: TypeId,
        /// The type's modifier, or -1.
        typmod: i32,
    },
}

/// How values of a key of an index are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyOrder {
    /// Their type.
    pub type_id: TypeId,
    /// Their order.
    pub order: ColumnOrder,
}

impl ComputedKey {
    /// The type of its values in such a table.
    pub fn type_id(&self, table: &Table) -> TypeId {
        match &self.source {
            KeySource::Column(place) => table.columns[*place].type_id,
            KeySource::Expression { type_id, .. } => *type_id,
        }
    }

    /// The expression, if it is one.
    pub fn text(&self) -> Option<&str> {
        match &self.source {
            KeySource::Column(_) => None,
            KeySource::Expression { text, .. } => Some(text),
        }
    }
}

impl Index {
    /// How many keys it has; what it only includes is none.
    pub fn key_count(&self) -> usize {
        match &self.computed {
            Some(computed) => computed.keys.len(),
            None => self.columns.len(),
        }
    }

    /// The same index, derived by the engine, to which NULLs are not equal; on columns.
    pub fn of_columns(mut self) -> Index {
        self.nulls_equal = false;
        for key in self.computed.take().into_iter().flat_map(|own| own.keys) {
            if let KeySource::Column(column) = key.source {
                self.columns.push(IndexedColumn {
                    column,
                    order: key.order,
                });
            }
        }
        self
    }

    /// How one of its keys is ordered.
    pub fn key_order(&self, table: &Table, place: usize) -> Option<KeyOrder> {
        if let Some(computed) = &self.computed {
            let key = computed.keys.get(place)?;
            return Some(KeyOrder {
                type_id: key.type_id(table),
                order: key.order,
            });
        }
        let column = self.columns.get(place)?;
        Some(KeyOrder {
            type_id: table.columns.get(column.column)?.type_id,
            order: column.order,
        })
    }

    /// The column that one of its keys is; none for an expression.
    pub fn key_column(&self, place: usize) -> Option<usize> {
        match &self.computed {
            Some(computed) => match computed.keys.get(place)?.source {
                KeySource::Column(column) => Some(column),
                KeySource::Expression { .. } => None,
            },
            None => self.columns.get(place).map(|column| column.column),
        }
    }

    /// The places of the table's columns that it rests on, each once, in the order of its own.
    pub fn uses(&self) -> Vec<usize> {
        let keys = self.columns.iter().map(|column| &column.column);
        let computed = self.computed.iter().flat_map(|computed| &computed.uses);
        let mut places = Vec::new();
        for place in keys.chain(computed).chain(&self.include) {
            if !places.contains(place) {
                places.push(*place);
            }
        }
        places
    }

    /// Its columns as `pg_attribute` has them: the keys, then what it includes.
    pub fn shown_columns(&self, table: &Table) -> Vec<Column> {
        let plain = |place: usize| {
            let column = &table.columns[place];
            Column {
                name: column.name.clone(),
                type_id: column.type_id,
                typmod: column.typmod,
                said_storage: column.said_storage,
                compression: column.compression,
                ..Column::default()
            }
        };
        let keys = (0..self.key_count()).map(|place| match self.key_column(place) {
            Some(column) => plain(column),
            None => match self.computed.as_ref().map(|own| &own.keys[place].source) {
                Some(KeySource::Expression {
                    name,
                    type_id,
                    typmod,
                    ..
                }) => Column {
                    name: name.clone(),
                    type_id: *type_id,
                    typmod: *typmod,
                    ..Column::default()
                },
                _ => Column {
                    type_id: TypeId::UNKNOWN,
                    typmod: -1,
                    ..Column::default()
                },
            },
        });
        let included = self.include.iter().map(|place| plain(*place));
        let mut columns: Vec<Column> = Vec::new();
        for mut column in keys.chain(included) {
            let base = std::mem::take(&mut column.name);
            column.name = numbered(base, |name| columns.iter().any(|own| own.name == name));
            columns.push(column);
        }
        columns
    }
}

/// A name with the first number behind it that makes it a new one, if it is taken.
fn numbered(base: String, taken: impl Fn(&str) -> bool) -> String {
    let mut name = base.clone();
    let mut number = 0;
    while taken(&name) {
        number += 1;
        name = format!("{base}{number}");
    }
    name
}

/// Appends the stored form.
pub fn encode(computed: &Computed, out: &mut Vec<u8>) {
    put_varint(out, computed.keys.len() as u64);
    for key in &computed.keys {
        match &key.source {
            KeySource::Column(place) => {
                out.push(COLUMN);
                put_varint(out, *place as u64);
            }
            KeySource::Expression {
                name,
                text,
                type_id,
                typmod,
            } => {
                out.push(EXPRESSION);
                put_bytes(out, name.as_bytes());
                put_bytes(out, text.as_bytes());
                put_varint(out, u64::from(type_id.0));
                put_signed(out, i64::from(*typmod));
            }
        }
        out.push(key.order.code());
    }
    put_text(out, computed.condition.as_deref());
    put_varint(out, computed.uses.len() as u64);
    for place in &computed.uses {
        put_varint(out, *place as u64);
    }
}

const COLUMN: u8 = 0;
const EXPRESSION: u8 = 1;

/// Reads what [`encode`] made.
///
/// # Errors
/// XX001 when it is something else.
pub fn decode(reader: &mut Reader<'_>) -> Result<Computed> {
    Ok(Computed {
        keys: read_list(reader, |reader| {
            let source = match reader.u8()? {
                COLUMN => KeySource::Column(reader.varint_as()?),
                EXPRESSION => KeySource::Expression {
                    name: reader.str()?.to_owned(),
                    text: reader.str()?.to_owned(),
                    type_id: TypeId(reader.varint_as()?),
                    typmod: i32::try_from(reader.signed()?)
                        .map_err(|_| Error::corrupted("a type modifier of more than 32 bits"))?,
                },
                other => return Err(Error::corrupted(format!("a key of kind {other}"))),
            };
            Ok(ComputedKey {
                source,
                order: ColumnOrder::from_code(reader.u8()?)?,
            })
        })?,
        condition: read_text(reader)?,
        uses: read_list(reader, |reader| reader.varint_as())?,
    })
}
