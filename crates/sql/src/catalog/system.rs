//! The tables of `pg_catalog`: views over the [`Catalog`], the settings and the cluster.
//!
//! Source: PostgreSQL 15 manual, chapters 53 and 54; columns and types as there.

use std::sync::{Arc, OnceLock};

use base::{Result, TreeId};

use super::{Column, RelationKind, Table, PG_CATALOG, SUPERUSER};
use crate::catalog::Catalog;
use crate::exec::Exec;
use crate::plan::Row;
use crate::types::TypeId;

mod objects;
mod replication;
mod sessions;

/// A table of `pg_catalog`.
struct SystemTable {
    oid: u32,
    name: &'static str,
    /// `name type` pairs, separated by commas.
    columns: &'static str,
    rows: fn(&Catalog, &mut Exec<'_>) -> Result<Vec<Row>>,
}

const TABLES: &[&SystemTable] = &[
    &objects::TYPES,
    &objects::ATTRIBUTES,
    &objects::CLASSES,
    &objects::ROLES,
    &objects::DATABASES,
    &objects::DEFAULTS,
    &objects::CONSTRAINTS,
    &objects::INDEXES,
    &objects::NAMESPACES,
    &objects::ACCESS_METHODS,
    &objects::DESCRIPTIONS,
    &objects::INHERITS,
    &objects::TABLES_VIEW,
    &objects::INDEXES_VIEW,
    &objects::SETTINGS,
    &objects::ROLES_VIEW,
    &replication::ACTIVITY,
    &replication::REPLICATION,
    &replication::SLOTS,
    &sessions::CURSORS,
];

/// The tables of `pg_catalog`.
pub fn tables() -> &'static [Arc<Table>] {
    static BUILT: OnceLock<Vec<Arc<Table>>> = OnceLock::new();
    BUILT.get_or_init(|| TABLES.iter().map(|table| Arc::new(build(table))).collect())
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
        schema: PG_CATALOG,
        name: table.name.to_owned(),
        owner: SUPERUSER,
        kind: RelationKind::System,
        tree: TreeId(0),
        columns,
        ..Table::default()
    }
}

/// The rows of such a table.
///
/// # Errors
/// What computing them raises.
pub fn rows(table: &Table, catalog: &Catalog, cx: &mut Exec<'_>) -> Result<Vec<Row>> {
    if table.kind == RelationKind::Sequence {
        return crate::exec::sequences::rows(table, cx);
    }
    let Some(found) = TABLES.iter().find(|known| known.oid == table.oid) else {
        return Ok(Vec::new());
    };
    let rows = (found.rows)(catalog, cx)?;
    for row in &rows {
        assert_eq!(row.len(), table.columns.len(), "columns of {}", table.name);
    }
    Ok(rows)
}
