//! The relations of `pg_catalog` and `information_schema`, as `relations.txt` lists them, and rows
//! for them by column name.

use std::sync::{Arc, OnceLock};

use base::hash::HashMap;
use base::TreeId;

use crate::catalog::{
    Column, Index, IndexedColumn, RelationKind, Table, INFORMATION_SCHEMA, PG_CATALOG, SUPERUSER,
};
use crate::plan::Row;
use crate::types::{Datum, TypeId};

const LISTED: &str = include_str!("relations.txt");

/// One relation.
pub(in crate::catalog) struct Relation {
    /// As a table without a tree.
    pub table: Arc<Table>,
    /// `relkind`: `r` or `v`.
    pub kind: u8,
    /// Whether it is of the whole cluster.
    pub shared: bool,
}

struct Relations {
    all: Vec<Relation>,
    by_oid: HashMap<u32, usize>,
}

fn relations() -> &'static Relations {
    static READ: OnceLock<Relations> = OnceLock::new();
    READ.get_or_init(|| {
        let mut all: Vec<Relation> = Vec::new();
        for line in LISTED.lines().filter(|line| !line.starts_with('#')) {
            match line.strip_prefix("+ ") {
                Some(index) => {
                    let of = all.last_mut().expect("an index comes after its table");
                    let table = Arc::get_mut(&mut of.table).expect("nobody has it yet");
                    let index = read_index(index, table);
                    match index.primary {
                        true => table.indexes.insert(0, index),
                        false => table.indexes.push(index),
                    }
                }
                None => all.push(read_relation(line)),
            }
        }
        let by_oid = all.iter().enumerate();
        let by_oid = by_oid.map(|(place, relation)| (relation.table.oid, place));
        Relations {
            by_oid: by_oid.collect(),
            all,
        }
    })
}

fn read_relation(line: &str) -> Relation {
    let (head, columns) = line.split_once(": ").expect("columns");
    let words: Vec<_> = head.split(' ').collect();
    let [name, oid, kind] = words[..] else {
        panic!("not a relation: {head}");
    };
    let (schema, name) = name.split_once('.').expect("a schema");
    let table = Table {
        oid: oid.parse().expect("an oid"),
        schema: match schema {
            "pg_catalog" => PG_CATALOG,
            _ => INFORMATION_SCHEMA,
        },
        name: name.to_owned(),
        owner: SUPERUSER,
        kind: RelationKind::System,
        tree: TreeId(0),
        columns: columns.split(", ").map(read_column).collect(),
        ..Table::default()
    };
    Relation {
        table: Arc::new(table),
        kind: if kind == "v" { b'v' } else { b'r' },
        shared: kind == "s",
    }
}

fn read_column(column: &str) -> Column {
    let (name, ty) = column.split_once(' ').expect("a name and a type");
    let (ty, not_null) = match ty.strip_suffix('!') {
        Some(ty) => (ty, true),
        None => (ty, false),
    };
    let (ty, typmod) = match ty {
        // yes_or_no of information_schema.
        "varchar(3)" => ("varchar", 7),
        ty => (ty, -1),
    };
    Column {
        name: name.to_owned(),
        type_id: TypeId::by_name(ty).unwrap_or_else(|| panic!("type {ty}")),
        typmod,
        not_null,
        ..Column::default()
    }
}

fn read_index(line: &str, table: &Table) -> Index {
    let words: Vec<_> = line.split(' ').collect();
    let [kind, name, oid, columns @ ..] = &words[..] else {
        panic!("not an index: {line}");
    };
    let oid: u32 = oid.parse().expect("an oid");
    Index {
        oid,
        name: (*name).to_owned(),
        primary: *kind == "p",
        unique: *kind != "i",
        nulls_equal: false,
        // Unique indexes of the system are constraints too, and lend them their oids.
        constraint: if *kind == "i" { 0 } else { oid },
        tree: TreeId(0),
        columns: columns
            .iter()
            .map(|column| IndexedColumn {
                column: table.column(column).expect("a column of the table"),
                descending: false,
            })
            .collect(),
        include: Vec::new(),
        computed: None,
    }
}

/// All relations, in the order of the list.
pub(in crate::catalog) fn all() -> &'static [Relation] {
    &relations().all
}

/// The relation of that oid.
pub(in crate::catalog) fn by_oid(oid: u32) -> Option<&'static Relation> {
    let relations = relations();
    Some(&relations.all[*relations.by_oid.get(&oid)?])
}

/// Rows that are made for a relation. A column that is not given is NULL, or a zero of its type
/// where the relation says NOT NULL.
pub(super) struct Rows {
    table: Arc<Table>,
    blank: Row,
    pub rows: Vec<Row>,
}

impl Rows {
    pub fn new(table: &Arc<Table>) -> Rows {
        let blank = table.columns.iter().map(|column| match column.not_null {
            true => zero(column.type_id),
            false => Datum::Null,
        });
        Rows {
            blank: blank.collect(),
            table: table.clone(),
            rows: Vec::new(),
        }
    }

    /// Adds a row. Columns are found fastest in the relation's own order.
    pub fn push<const N: usize>(&mut self, values: [(&str, Datum); N]) {
        let mut row = self.blank.clone();
        let columns = &self.table.columns;
        let mut next = 0;
        for (name, value) in values {
            let ahead = columns[next..]
                .iter()
                .position(|column| column.name == name);
            let place = match ahead {
                Some(ahead) => next + ahead,
                None => self
                    .table
                    .column(name)
                    .unwrap_or_else(|| panic!("{} has no column {name}", self.table.name)),
            };
            next = place + 1;
            row[place] = value;
        }
        self.rows.push(row);
    }
}

fn zero(ty: TypeId) -> Datum {
    match ty {
        TypeId::BOOL => Datum::Bool(false),
        TypeId::INT2 => Datum::Int2(0),
        TypeId::INT4 => Datum::Int4(0),
        TypeId::INT8 => Datum::Int8(0),
        TypeId::FLOAT4 => Datum::Float4(0.0),
        TypeId::CHAR => Datum::Char(0),
        TypeId::INT2VECTOR => vector(TypeId::INT2, Vec::new()),
        TypeId::OIDVECTOR => vector(TypeId::OID, Vec::new()),
        ty if ty.is_oid_like() => Datum::Oid(0),
        ty if ty.is_text_like() => Datum::text(""),
        _ => Datum::Null,
    }
}

/// An `int2vector` or `oidvector`: an array that begins at 0.
pub(super) fn vector(element: TypeId, elements: Vec<Datum>) -> Datum {
    let len = i32::try_from(elements.len()).unwrap_or(i32::MAX);
    Datum::Array(Arc::new(crate::types::Array {
        element,
        dimensions: vec![crate::types::Dimension { len, lower: 0 }],
        elements,
    }))
}

/// An array that begins at 1.
pub(super) fn array(element: TypeId, elements: Vec<Datum>) -> Datum {
    Datum::Array(Arc::new(crate::types::Array::of(element, elements)))
}

pub(super) fn oid(oid: u32) -> Datum {
    Datum::Oid(oid)
}

pub(super) fn text(text: impl AsRef<str>) -> Datum {
    Datum::text(text)
}

pub(super) fn char(value: u8) -> Datum {
    Datum::Char(value)
}

pub(super) fn flag(value: bool) -> Datum {
    Datum::Bool(value)
}

pub(super) fn small(value: usize) -> Datum {
    Datum::Int2(i16::try_from(value).unwrap_or(i16::MAX))
}

pub(super) fn int(value: i32) -> Datum {
    Datum::Int4(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_can_be_read() {
        assert!(all().len() > 100, "{} relations", all().len());
        let class = by_oid(1_259).unwrap();
        assert_eq!(class.table.name, "pg_class");
        assert_eq!(class.table.columns.len(), 33);
        assert!(class.table.primary_key().is_some());
    }
}
