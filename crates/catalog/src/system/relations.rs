//! The relations of `pg_catalog` and `information_schema`, as `relations.txt` lists them, and rows
//! for them by column name.

use base::key::ColumnOrder;
use std::sync::{Arc, OnceLock};

use base::hash::HashMap;
use base::TreeId;

use crate::index_form::IndexForm;

use crate::{
    Column, Index, IndexedColumn, RelationKind, Table, INFORMATION_SCHEMA, PG_CATALOG, SUPERUSER,
};
use types::{OwnKind, TypeId};

const LISTED: &str = include_str!("relations.txt");

/// The oid of `pg_statistic`.
const PG_STATISTIC: u32 = 2_619;

/// One relation.
pub struct Relation {
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
        type_id: type_named(ty).unwrap_or_else(|| panic!("type {ty}")),
        typmod,
        not_null,
        ..Column::default()
    }
}

fn type_named(name: &str) -> Option<TypeId> {
    match name {
        // The rows of a relation that stands in front.
        "_pg_statistic" => TypeId::own(OwnKind::Row, PG_STATISTIC)?.array_of(),
        name => TypeId::by_name(name),
    }
}

fn read_index(line: &str, table: &Table) -> Index {
    let words: Vec<_> = line.split(' ').collect();
    let [kind, name, oid, columns @ ..] = &words[..] else {
        panic!("not an index: {line}");
    };
    let oid: u32 = oid.parse().expect("an oid");
    Index {
        clustered: false,
        replica_identity: false,
        oid,
        name: (*name).to_owned(),
        primary: *kind == "p",
        unique: *kind != "i",
        nulls_equal: false,
        checked: None,
        exclusion: None,
        // Unique indexes of the system are constraints too, and lend them their oids.
        constraint: if *kind == "i" { 0 } else { oid },
        tree: TreeId(0),
        columns: columns
            .iter()
            .map(|column| IndexedColumn {
                column: table.column(column).expect("a column of the table"),
                order: ColumnOrder::ASCENDING,
            })
            .collect(),
        include: Vec::new(),
        computed: None,
        form: IndexForm::default(),
    }
}

/// All relations, in the order of the list.
pub fn all() -> &'static [Relation] {
    &relations().all
}

/// The relation of that oid.
pub fn by_oid(oid: u32) -> Option<&'static Relation> {
    let relations = relations();
    Some(&relations.all[*relations.by_oid.get(&oid)?])
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
