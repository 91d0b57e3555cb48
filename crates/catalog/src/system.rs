//! The relations of `pg_catalog` and `information_schema`: their names, columns and oids, and who may
//! read them.
//!
//! `system/relations.txt` lists them all, with PostgreSQL 15's oids, columns and types, and
//! `system/views.sql` has those that are SQL over others. The rows of the rest are made in
//! `crate::system`, above the executor; those that follow from a [`Catalog`] alone are kept with it
//! ([`Cache`]), with indexes by the values of single columns, made when a statement first looks for
//! one (`attrelid = 16384`), so that psql's many small queries do not read everything.

use std::sync::{Arc, OnceLock};

use base::hash::HashMap;
use base::sync::Mutex;

use super::access::Acl;
use super::cluster::Address;
use super::{Column, RelationKind, Table, PG_CATALOG, QUORATE, SUPERUSER};
use crate::Catalog;
use types::{Array, Datum, TypeId};

pub mod facts;
mod names;
pub mod relations;
mod session;
mod views;

pub use names::{
    language_named, language_or_tablespace, tablespace_named, Language, BTREE, C, COMMENTS,
    HANDLER, HEAP, INTERNAL, LANGUAGES, PLPGSQL, PLPGSQL_EXTENSION, QUORATE_EXTENSION, SQL,
    TABLESPACES,
};
use session::SessionRelation;

/// A row of a system relation.
type Row = Vec<Datum>;

/// All relations as tables.
pub fn tables() -> &'static [Arc<Table>] {
    static BUILT: OnceLock<Vec<Arc<Table>>> = OnceLock::new();
    BUILT.get_or_init(|| {
        let listed = relations::all().iter().map(|relation| &relation.table);
        let mut tables: Vec<_> = listed.cloned().collect();
        for own in session::ALL {
            if tables.iter().all(|table| table.oid != own.oid) {
                tables.push(Arc::new(build(own)));
            }
        }
        tables
    })
}

fn build(table: &SessionRelation) -> Table {
    let columns = table
        .columns
        .split(',')
        .map(|column| {
            let (name, ty) = column.trim().split_once(' ').expect("a name and a type");
            Column {
                name: name.to_owned(),
                type_id: TypeId::by_name(ty.trim()).expect("a built-in type"),
                typmod: -1,
                ..Column::default()
            }
        })
        .collect();
    Table {
        oid: table.oid,
        schema: match table.oid {
            session::NODES_OID
            | session::GROUPS_OID
            | session::INCONSISTENCIES_OID
            | session::TABLETS_OID
            | session::STORAGE_OID
            | session::AUDIT_OID => QUORATE,
            _ => PG_CATALOG,
        },
        name: table.name.to_owned(),
        owner: SUPERUSER,
        kind: RelationKind::System,
        tree: base::TreeId(0),
        columns,
        ..Table::default()
    }
}

/// `relkind` of such a relation.
pub fn kind(table: &Table) -> u8 {
    relations::by_oid(table.oid).map_or(b'v', |relation| relation.kind)
}

/// The text of a relation that is SQL over others.
pub fn view(table: &Table) -> Option<&'static str> {
    views::text(table)
}

/// Rows that are kept, with indexes that statements have asked for.
#[derive(Debug, Default)]
pub struct Kept {
    rows: Vec<Row>,
    indexes: Mutex<HashMap<usize, Arc<Places>>>,
}

/// By the value of a column, the places of the rows that have it.
#[derive(Debug, Default)]
struct Places {
    oids: HashMap<u32, Vec<u32>>,
    texts: HashMap<Arc<str>, Vec<u32>>,
}

impl Kept {
    /// These rows.
    pub fn new(rows: Vec<Row>) -> Kept {
        Kept {
            rows,
            indexes: Mutex::default(),
        }
    }

    fn index(&self, column: usize) -> Arc<Places> {
        if let Some(known) = self.indexes.lock().get(&column) {
            return known.clone();
        }
        let mut places = Places::default();
        for (place, row) in self.rows.iter().enumerate() {
            let place = u32::try_from(place).unwrap_or(u32::MAX);
            match &row[column] {
                Datum::Oid(oid) => places.oids.entry(*oid).or_default().push(place),
                Datum::Text(text) => places.texts.entry(text.clone()).or_default().push(place),
                _ => {}
            }
        }
        let places = Arc::new(places);
        self.indexes.lock().insert(column, places.clone());
        places
    }

    /// All of them.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Adds those whose column has a value.
    pub fn find(&self, column: usize, value: &Datum, out: &mut Vec<Row>) {
        let places = self.index(column);
        let found = match value {
            Datum::Oid(oid) => places.oids.get(oid),
            Datum::Text(text) => places.texts.get(text),
            _ => None,
        };
        let found = found.into_iter().flatten();
        out.extend(found.map(|place| self.rows[*place as usize].clone()));
    }
}

/// Rows of one catalog that someone has asked for, by the relation's oid.
#[derive(Debug, Default)]
pub struct Cache(Mutex<HashMap<u32, Arc<Kept>>>);

impl Cache {
    /// The rows of a relation, made if nobody has asked for them yet.
    pub fn get(&self, relation: u32, make: impl FnOnce() -> Vec<Row>) -> Arc<Kept> {
        if let Some(kept) = self.0.lock().get(&relation) {
            return kept.clone();
        }
        let kept = Arc::new(Kept::new(make()));
        self.0.lock().insert(relation, kept.clone());
        kept
    }
}

/// A list of privileges as `aclitem[]`.
pub fn acl_items(catalog: &Catalog, acl: &Acl) -> Datum {
    let name = |role: u32| match catalog.role_by_oid(role) {
        Some(role) => role.name.clone(),
        None => role.to_string(),
    };
    let items = acl.iter().map(|item| Datum::text(item.print(&name)));
    let items = Array::of(TypeId::ACLITEM, items.collect());
    Datum::Array(Arc::new(items))
}

/// Whether the rows of a relation are asked for anew each time.
fn is_of_session(table: &Table) -> bool {
    session::ALL.iter().any(|known| known.oid == table.oid)
}

/// Whether rows of a relation can be looked up by a column.
pub fn has_lookup(table: &Table, column: usize) -> bool {
    let ty = table.columns[column].type_id;
    (ty.is_oid_like() || ty == TypeId::NAME) && !is_of_session(table)
}

/// Relations that not everyone may read: they hold passwords, or say who gets in.
const SECRET: [&str; 17] = [
    "audit",
    "inconsistencies",
    "pg_authid",
    "pg_backend_memory_contexts",
    "pg_config",
    "pg_file_settings",
    "pg_hba_file_rules",
    "pg_ident_file_mappings",
    "pg_largeobject",
    "pg_replication_origin_status",
    "pg_shadow",
    "pg_shmem_allocations",
    "pg_statistic",
    "pg_statistic_ext_data",
    "pg_subscription",
    "pg_user_mapping",
    "sql_parts",
];

/// The role that may read a relation which not everyone may read.
pub fn reader(oid: u32) -> Option<u32> {
    let all = [
        session::AUDIT_OID,
        session::MEMORY_OID,
        session::SHARED_MEMORY_OID,
    ];
    all.contains(&oid).then_some(super::access::READ_ALL_STATS)
}

/// Whether everyone may read a relation unless someone says otherwise.
pub fn is_readable(oid: u32) -> bool {
    relations::by_oid(oid).is_some_and(|known| !SECRET.contains(&known.table.name.as_str()))
        || session::ALL
            .iter()
            .any(|known| known.oid == oid && !SECRET.contains(&known.name))
}

/// The comment on what is there from the start.
pub fn comment(address: Address) -> Option<&'static str> {
    if address == Address::of(Address::NAMESPACE, super::PUBLIC) {
        return Some("standard public schema");
    }
    let same = |known: &&(u32, u32, &str)| Address::of(known.0, known.1) == address;
    let found = COMMENTS.iter().find(same);
    match found {
        Some(known) => Some(known.2),
        None => facts::description(address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relations_of_the_session_are_there() {
        for own in session::ALL {
            let named = tables().iter().find(|table| table.name == own.name);
            let oid = named.map(|table| table.oid);
            assert_eq!(oid, Some(own.oid), "{}", own.name);
        }
    }
}
