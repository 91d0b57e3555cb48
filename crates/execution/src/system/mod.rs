//! The rows of the relations of `pg_catalog` and `information_schema`.
//!
//! Their names and columns are in [`catalog::system`]; what their rows are says one of
//!
//! | where | what | kept |
//! |---|---|---|
//! | [`builtin`], [`standard`] | what is built into the binary: types, functions, operators | once a process |
//! | [`objects`], [`roles`] | what was created | once a catalog version |
//! | [`SESSION`] | what this session or the cluster is just doing | never |
//!
//! ```text
//! select relname from pg_class where oid = 16384      found by the index of the kept rows
//! ```
//! Large objects ([`large_objects`]) are read from their own tree. A relation that none of them knows has no rows: there are no such objects here. The executor
//! reaches this through [`SystemRelations`], which it declares.

use std::sync::{Arc, OnceLock};

use base::hash::HashMap;
use base::Result;

use crate::exec::{Exec, SystemRelations};
use catalog::cluster::Address;
use catalog::layout::FIRST_USER_OID;
use catalog::system::relations;
use catalog::system::{acl_items, Kept};
use catalog::{Catalog, Table};
use planner::plan::Row;
use types::Datum;

mod access;
mod audit;
mod builtin;
mod cluster;
mod counts;
mod extended;
mod extensions;
mod large_objects;
mod locks;
mod objects;
mod partitions;
mod replication;
mod roles;
mod routines;
mod rows;
mod sessions;
mod settings;
mod standard;
mod statistics;
mod storage;
mod triggers;
mod type_functions;
mod user_types;

use rows::Rows;

type OfSession = fn(&Catalog, &mut Exec<'_>) -> Result<Vec<Row>>;

/// What this session or the cluster is just doing.
const SESSION: &[(&str, OfSession)] = &[
    ("pg_settings", settings::settings),
    ("pg_file_settings", settings::of_file),
    ("pg_backend_memory_contexts", sessions::memory),
    ("pg_prepared_statements", settings::prepared),
    ("pg_prepared_xacts", sessions::prepared_transactions),
    ("pg_locks", locks::locks),
    ("pg_hba_file_rules", access::hba_rules),
    ("pg_stat_ssl", access::ssl),
    ("pg_stat_activity", sessions::activity),
    ("pg_stat_archiver", counts::archiver),
    ("pg_stat_gssapi", counts::gssapi),
    ("pg_stat_recovery_prefetch", counts::prefetch),
    ("pg_stat_wal", counts::wal),
    ("pg_cursors", sessions::cursors),
    ("pg_stat_replication", replication::replication),
    ("pg_replication_slots", replication::slots),
    ("pg_stat_wal_receiver", replication::receiver),
    ("nodes", cluster::nodes),
    ("groups", cluster::groups),
    ("inconsistencies", cluster::inconsistencies),
    ("tablets", cluster::tablets),
    ("storage", storage::storage),
    ("audit", audit::entries),
];

type OfBinary = (&'static str, fn(&mut Rows));
type OfCatalog = (&'static str, fn(&Catalog, &mut Rows));

/// The rows that are built into the binary.
fn of_binary(table: &Arc<Table>) -> &'static Kept {
    static KEPT: OnceLock<HashMap<u32, Kept>> = OnceLock::new();
    static NONE: OnceLock<Kept> = OnceLock::new();
    let kept = KEPT.get_or_init(|| {
        let made = relations::all().iter().filter_map(|relation| {
            let table = &relation.table;
            let makers = builtin::ROWS.iter().chain(objects::BUILT_IN);
            let makers = makers.chain(extensions::ROWS).chain(standard::ROWS);
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
    catalog.system.get(table.oid, || {
        let mut rows = Rows::new(table);
        let made = objects::ROWS.iter().chain(roles::ROWS);
        let made = made.chain(routines::ROWS).chain(statistics::ROWS);
        let made = made.chain(extended::ROWS);
        let made = made.chain(extensions::MADE);
        for (_, make) in made.filter(|known| known.0 == table.name) {
            make(catalog, &mut rows);
        }
        rows.rows
    })
}

/// The system relations, for the executor.
#[derive(Debug)]
pub struct Relations;

impl SystemRelations for Relations {
    fn rows(
        &self,
        table: &Arc<Table>,
        catalog: &Catalog,
        key: Option<(usize, Datum)>,
        cx: &mut Exec<'_>,
    ) -> Result<Vec<Row>> {
        rows(table, catalog, key, cx)
    }
}

fn rows(
    table: &Arc<Table>,
    catalog: &Catalog,
    key: Option<(usize, Datum)>,
    cx: &mut Exec<'_>,
) -> Result<Vec<Row>> {
    if let Some(rows) = large_objects::rows(table.oid, catalog, key.as_ref(), cx)? {
        return Ok(rows);
    }
    if let Some((_, rows)) = SESSION.iter().find(|known| known.0 == table.name) {
        let rows = rows(catalog, cx)?;
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
            out.reserve(binary.rows().len() + own.rows().len());
            out.extend(binary.rows().iter().cloned());
            out.extend(own.rows().iter().cloned());
        }
    }
    put_privileges(table, catalog, &mut out);
    if table.oid == storage::CLASS_OID {
        storage::put_sizes(table, catalog, cx, &mut out);
    }
    storage::put_ages(table, cx, &mut out);
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
        ..Address::of(class, FIRST_USER_OID - 1)
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

#[cfg(test)]
mod tests {
    use super::*;
    use catalog::system::tables;

    #[test]
    fn rows_are_made_for_relations_that_are_there() {
        let makers = [
            builtin::ROWS,
            objects::BUILT_IN,
            extensions::ROWS,
            standard::ROWS,
        ]
        .concat();
        let of_catalog = objects::ROWS.iter().chain(roles::ROWS);
        let names = makers.iter().map(|known| known.0);
        let names = names.chain(of_catalog.map(|known| known.0));
        for name in names.chain(SESSION.iter().map(|known| known.0)) {
            assert!(tables().iter().any(|table| table.name == name), "{name}");
        }
    }
}
