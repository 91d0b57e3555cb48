//! How large tables, indexes and databases are on this node.
//!
//! | function | counts |
//! |---|---|
//! | `pg_relation_size` | one tree: a table's rows, or an index's entries |
//! | `pg_table_size` | that of a table, with its long values |
//! | `pg_indexes_size` | its secondary indexes |
//! | `pg_total_relation_size` | both |
//! | `pg_database_size` | all tables of a database, with their indexes |
//!
//! The rows of a table lie in the order of its primary key, in one tree: the primary key has no
//! bytes of its own.
//!
//! What is counted are pages as they are now, whatever the statement's snapshot shows. What a
//! transaction has not committed yet is in no page, unless it came in chunks; old versions of rows
//! are in no tree.

use base::engine::{StorageMonitor, TreeSize};
use base::{Error, Result, SqlState, TreeId};

use super::Exec;
use catalog::access::{Guarded, Privileges, READ_ALL_STATS};
use catalog::{store, Catalog, Database, Table};
use functions::session::SizeFunction;
use types::Datum;

/// The tablespaces that there are: oid, name, and whether it has all data.
const TABLESPACES: [(u32, &str, bool); 2] =
    [(1_663, "pg_default", true), (1_664, "pg_global", false)];

/// Computes one of them; NULL for what is not there.
pub(super) fn call(cx: &mut Exec<'_>, which: SizeFunction, args: &[Datum]) -> Result<Datum> {
    let bytes = match which {
        SizeFunction::Database => return database_size(cx, &args[0]),
        SizeFunction::Tablespace => return tablespace_size(cx, &args[0]),
        SizeFunction::Relation => {
            let main = is_main_fork(args)?;
            relation_size(cx, &args[0]).map(|bytes| if main { bytes } else { 0 })
        }
        SizeFunction::Table => whole_size(cx, &args[0], true, false),
        SizeFunction::Indexes => whole_size(cx, &args[0], false, true),
        SizeFunction::Total => whole_size(cx, &args[0], true, true),
    };
    Ok(bytes.map_or(Datum::Null, number))
}

fn number(bytes: u64) -> Datum {
    Datum::Int8(i64::try_from(bytes).unwrap_or(i64::MAX))
}

fn oid(datum: &Datum) -> u32 {
    match datum {
        Datum::Oid(oid) => *oid,
        other => other.as_i64().map_or(0, |oid| oid as u32),
    }
}

/// Tables have their main fork only; the others are empty.
fn is_main_fork(args: &[Datum]) -> Result<bool> {
    match args.get(1).map(Datum::as_str) {
        None | Some("main") => Ok(true),
        Some("fsm" | "vm" | "init") => Ok(false),
        Some(_) => Err(
            Error::new(SqlState::INVALID_PARAMETER_VALUE, "invalid fork name")
                .with_hint("Valid fork names are \"main\", \"fsm\", \"vm\", and \"init\"."),
        ),
    }
}

fn bytes_of(storage: &dyn StorageMonitor, tree: TreeId) -> u64 {
    storage.tree_size(tree).map_or(0, |size| size.bytes)
}

/// The trees that a table's rows are in.
fn row_trees(table: &Table) -> impl Iterator<Item = TreeId> + '_ {
    let long = (table.long_tree != store::NO_TREE).then_some(table.long_tree);
    let trees = std::iter::once(table.tree).chain(long);
    trees.filter(|_| table.kind.has_rows())
}

fn index_trees(table: &Table) -> impl Iterator<Item = TreeId> + '_ {
    let secondary = table.indexes.iter().filter(|index| !index.primary);
    secondary.map(|index| index.tree)
}

/// One relation's own tree; none when there is no such relation.
fn relation_size(cx: &Exec<'_>, relation: &Datum) -> Option<u64> {
    size_of_relation(cx.catalog, &*cx.host.shared().engine.storage, oid(relation))
        .map(|size| size.bytes)
}

/// How large one relation's own tree is.
pub fn size_of_relation(
    catalog: &Catalog,
    storage: &dyn StorageMonitor,
    oid: u32,
) -> Option<TreeSize> {
    if let Some((_, index)) = catalog.index_by_oid(oid) {
        let own = (!index.primary).then(|| storage.tree_size(index.tree));
        return Some(own.flatten().unwrap_or_default());
    }
    let table = catalog.table_by_oid(oid)?;
    let own = table.kind.has_rows().then(|| storage.tree_size(table.tree));
    Some(own.flatten().unwrap_or_default())
}

/// A table's rows, its indexes, or both. An index is asked for like a table without indexes.
fn whole_size(cx: &Exec<'_>, relation: &Datum, rows: bool, indexes: bool) -> Option<u64> {
    let storage = &*cx.host.shared().engine.storage;
    let Some(table) = cx.catalog.table_by_oid(oid(relation)) else {
        let own = relation_size(cx, relation)?;
        return Some(if rows { own } else { 0 });
    };
    let rows = row_trees(table).filter(|_| rows);
    let indexes = index_trees(table).filter(|_| indexes);
    Some(
        rows.chain(indexes)
            .map(|tree| bytes_of(storage, tree))
            .sum(),
    )
}

fn database_size(cx: &mut Exec<'_>, asked: &Datum) -> Result<Datum> {
    let found = match asked {
        Datum::Text(name) => {
            let mut known = cx.catalog.databases.iter();
            let found = known.find(|database| database.name == **name);
            Some(found.ok_or_else(|| {
                let message = format!("database \"{name}\" does not exist");
                Error::new(SqlState::of("3D000"), message)
            })?)
        }
        other => cx.catalog.database_by_oid(oid(other)),
    };
    let Some(database) = found.cloned() else {
        return Ok(Datum::Null);
    };
    check_may_ask(cx, &database)?;
    let engine = cx.host.shared().engine.clone();
    let sum = |catalog: &Catalog| -> u64 {
        let trees = catalog.tables.iter();
        let trees = trees.flat_map(|table| row_trees(table).chain(index_trees(table)));
        trees.map(|tree| bytes_of(&*engine.storage, tree)).sum()
    };
    if database.oid == cx.catalog.database.oid {
        return Ok(number(sum(cx.catalog)));
    }
    let content = store::load(
        cx.host.txn(),
        engine.transactions.catalog_version(),
        &database.name,
    )?;
    Ok(content.map_or(Datum::Null, |catalog| number(sum(&catalog))))
}

fn check_may_ask(cx: &Exec<'_>, database: &Database) -> Result<()> {
    let catalog = cx.catalog;
    let own = cx.role();
    let connect = Privileges::CONNECT;
    let may = catalog.holds(own, Guarded::Database, database.oid, connect)
        || catalog.has_privileges_of(own, READ_ALL_STATS);
    match may {
        true => Ok(()),
        false => Err(Error::new(
            SqlState::INSUFFICIENT_PRIVILEGE,
            format!("permission denied for database {}", database.name),
        )),
    }
}

/// All data is in one tablespace.
fn tablespace_size(cx: &Exec<'_>, asked: &Datum) -> Result<Datum> {
    let found = match asked {
        Datum::Text(name) => {
            let found = TABLESPACES.iter().find(|known| known.1 == &**name);
            Some(found.ok_or_else(|| {
                let message = format!("tablespace \"{name}\" does not exist");
                Error::new(SqlState::UNDEFINED_OBJECT, message)
            })?)
        }
        other => TABLESPACES.iter().find(|known| known.0 == oid(other)),
    };
    Ok(match found {
        None => Datum::Null,
        Some((_, _, false)) => number(0),
        Some((_, _, true)) => {
            let replicas = cx.host.shared().engine.storage.storage();
            let used = replicas.iter().map(|one| one.file_bytes - one.free_bytes);
            number(used.sum())
        }
    })
}
