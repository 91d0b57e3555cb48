//! The relations of `pg_catalog` and `information_schema`: views over the [`Catalog`], the tables
//! of functions and types, the settings and the cluster.
//!
//! `system/relations.txt` lists them all, with PostgreSQL 15's oids, columns and types; what their
//! rows are says one of
//!
//! | where | what | kept |
//! |---|---|---|
//! | [`builtin`] | what is built into the binary: types, functions, operators | once a process |
//! | [`objects`], [`roles`] | what was created | once a catalog version |
//! | [`SESSION`] | what this session or the cluster is just doing | never |
//! | [`views`] | SQL over the others | |
//!
//! A relation that none of them knows has no rows: there are no such objects here.
//!
//! Rows that are kept have indexes by the values of single columns, made when a statement first
//! looks for one (`attrelid = 16384`), so that psql's many small queries do not read everything.

use std::sync::{Arc, OnceLock};

use base::hash::HashMap;
use base::sync::Mutex;
use base::Result;

use super::cluster::Address;
use super::{Column, RelationKind, Table, PG_CATALOG, QUORATE, SUPERUSER};
use crate::catalog::Catalog;
use crate::exec::Exec;
use crate::plan::Row;
use crate::types::{Datum, TypeId};

mod access;
mod audit;
mod builtin;
mod cluster;
mod extensions;
pub(crate) mod facts;
mod locks;
mod objects;
pub(super) mod relations;
mod replication;
mod roles;
mod sessions;
mod settings;
mod storage;
mod views;

pub use builtin::{language_named, language_or_tablespace, tablespace_named, Language};
pub(crate) use objects::acl_items;
use relations::Rows;

/// A relation whose rows are asked for anew each time.
struct SystemTable {
    oid: u32,
    name: &'static str,
    /// `name type` pairs, separated by commas; for a relation that the list does not have.
    columns: &'static str,
    rows: fn(&Catalog, &mut Exec<'_>) -> Result<Vec<Row>>,
}

const SESSION: &[&SystemTable] = &[
    &settings::SETTINGS,
    &settings::PREPARED,
    &locks::LOCKS,
    &access::HBA_RULES,
    &access::SSL,
    &sessions::ACTIVITY,
    &replication::REPLICATION,
    &replication::SLOTS,
    &replication::RECEIVER,
    &sessions::CURSORS,
    &cluster::NODES,
    &cluster::GROUPS,
    &storage::STORAGE,
    &audit::AUDIT,
];

type OfBinary = (&'static str, fn(&mut Rows));
type OfCatalog = (&'static str, fn(&Catalog, &mut Rows));

/// All relations as tables.
pub fn tables() -> &'static [Arc<Table>] {
    static BUILT: OnceLock<Vec<Arc<Table>>> = OnceLock::new();
    BUILT.get_or_init(|| {
        let listed = relations::all().iter().map(|relation| &relation.table);
        let mut tables: Vec<_> = listed.cloned().collect();
        for own in SESSION {
            if tables.iter().all(|table| table.name != own.name) {
                tables.push(Arc::new(build(own)));
            }
        }
        tables
    })
}

fn build(table: &SystemTable) -> Table {
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
            cluster::NODES_OID | cluster::GROUPS_OID | storage::STORAGE_OID | audit::AUDIT_OID => {
                QUORATE
            }
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
    fn new(rows: Vec<Row>) -> Kept {
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

    fn find(&self, column: usize, value: &Datum, out: &mut Vec<Row>) {
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

/// The rows that are built into the binary.
fn of_binary(table: &Arc<Table>) -> &'static Kept {
    static KEPT: OnceLock<HashMap<u32, Kept>> = OnceLock::new();
    static NONE: OnceLock<Kept> = OnceLock::new();
    let kept = KEPT.get_or_init(|| {
        let made = relations::all().iter().filter_map(|relation| {
            let table = &relation.table;
            let makers = builtin::ROWS.iter().chain(objects::BUILT_IN);
            let makers = makers.chain(extensions::ROWS);
            let mut rows = Rows::new(table);
            for (_, make) in makers.filter(|known| known.0 == table.name) {
                make(&mut rows);
            }
            (!rows.rows.is_empty()).then(|| (table.oid, Kept::new(rows.rows)))
        });
        made.collect()
    });
    match kept.get(&table.oid) {
        Some(kept) => kept,
        None => NONE.get_or_init(Kept::default),
    }
}

/// The rows that were created.
fn of_catalog(table: &Arc<Table>, catalog: &Catalog) -> Arc<Kept> {
    if let Some(kept) = catalog.system.0.lock().get(&table.oid) {
        return kept.clone();
    }
    let mut rows = Rows::new(table);
    let made = objects::ROWS.iter().chain(roles::ROWS);
    for (_, make) in made.filter(|known| known.0 == table.name) {
        make(catalog, &mut rows);
    }
    let kept = Arc::new(Kept::new(rows.rows));
    let mut cache = catalog.system.0.lock();
    cache.insert(table.oid, kept.clone());
    kept
}

/// The rows of a relation; with a key, only those whose column has that value.
///
/// # Errors
/// What computing them raises.
pub fn rows(
    table: &Arc<Table>,
    catalog: &Catalog,
    key: Option<(usize, Datum)>,
    cx: &mut Exec<'_>,
) -> Result<Vec<Row>> {
    if table.kind == RelationKind::Sequence {
        return crate::exec::sequences::rows(table, cx);
    }
    if let Some(found) = SESSION.iter().find(|known| known.name == table.name) {
        let rows = (found.rows)(catalog, cx)?;
        for row in &rows {
            assert_eq!(row.len(), table.columns.len(), "columns of {}", table.name);
        }
        return Ok(rows);
    }
    let binary = of_binary(table);
    let own = of_catalog(table, catalog);
    let mut out = Vec::new();
    match key {
        Some((column, value)) => {
            binary.find(column, &value, &mut out);
            own.find(column, &value, &mut out);
        }
        None => {
            out.reserve(binary.rows.len() + own.rows.len());
            out.extend(binary.rows.iter().cloned());
            out.extend(own.rows.iter().cloned());
        }
    }
    put_privileges(table, catalog, &mut out);
    if table.oid == storage::CLASS_OID {
        storage::put_sizes(table, catalog, cx, &mut out);
    }
    Ok(out)
}

/// Shows what was said of the privileges on what is built in, in rows that are kept for all.
fn put_privileges(table: &Table, catalog: &Catalog, rows: &mut [Row]) {
    let (class, names) = match table.oid {
        Address::CLASS => (Address::CLASS, ["oid", "", "relacl"]),
        Address::ATTRIBUTE => (Address::CLASS, ["attrelid", "attnum", "attacl"]),
        Address::PROC => (Address::PROC, ["oid", "", "proacl"]),
        Address::TYPE => (Address::TYPE, ["oid", "", "typacl"]),
        Address::LANGUAGE => (Address::LANGUAGE, ["oid", "", "lanacl"]),
        Address::TABLESPACE => (Address::TABLESPACE, ["oid", "", "spcacl"]),
        _ => return,
    };
    let first = Address::of(class, 0);
    let last = Address {
        column: u32::MAX,
        ..Address::of(class, super::FIRST_USER_OID - 1)
    };
    let said = catalog.acls.range(first..=last);
    let said = said.filter(|(at, _)| (at.column != 0) == (table.oid == Address::ATTRIBUTE));
    let said: Vec<_> = said.collect();
    let [Some(object), column, Some(shown)] = names.map(|name| table.column(name)) else {
        return;
    };
    for (at, acl) in said {
        let is_it = |row: &&mut Row| {
            let number = column.map_or(Some(0), |column| row[column].as_i64());
            matches!(row[object], Datum::Oid(oid) if oid == at.object)
                // Those of the columns that every table has are negative.
                && number == Some(i64::from(at.column as i32))
        };
        for row in rows.iter_mut().filter(is_it) {
            row[shown] = acl_items(catalog, acl);
        }
    }
}

/// Whether rows of a relation can be looked up by a column.
pub fn has_lookup(table: &Table, column: usize) -> bool {
    let ty = table.columns[column].type_id;
    let session = SESSION.iter().any(|known| known.name == table.name);
    (ty.is_oid_like() || ty == TypeId::NAME) && !session
}

/// Relations that not everyone may read: they hold passwords, or say who gets in.
const SECRET: [&str; 15] = [
    "audit",
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
];

/// The role that may read a relation which not everyone may read.
pub fn reader(oid: u32) -> Option<u32> {
    (oid == audit::AUDIT_OID).then_some(super::access::READ_ALL_STATS)
}

/// Whether everyone may read a relation unless someone says otherwise.
pub fn is_readable(oid: u32) -> bool {
    relations::by_oid(oid).is_some_and(|known| !SECRET.contains(&known.table.name.as_str()))
        || SESSION
            .iter()
            .any(|known| known.oid == oid && !SECRET.contains(&known.name))
}

/// The comment on what is there from the start.
pub fn comment(address: Address) -> Option<&'static str> {
    if address == Address::of(Address::NAMESPACE, super::PUBLIC) {
        return Some("standard public schema");
    }
    let same = |known: &&(u32, u32, &str)| Address::of(known.0, known.1) == address;
    let found = builtin::COMMENTS.iter().find(same);
    match found {
        Some(known) => Some(known.2),
        None => facts::description(address),
    }
}
