//! Functions that ask the session, the catalog or the cluster.

use base::coro;
use base::env;
use base::{Error, Result, SqlState};

use super::{sequences, Exec};
use crate::catalog::{Catalog, Index, RelationRef, Table};
use crate::functions::Function;
use crate::session::quote;
use crate::types::{Array, Datum, TypeId};

/// Computes such a function. It is not called with a NULL argument if it is strict.
pub fn call(cx: &mut Exec<'_>, function: &Function, args: &[Datum]) -> Result<Datum> {
    let name = function.name;
    match name {
        "current_user" | "session_user" => Ok(Datum::text(&cx.session.start.user)),
        "current_database" => Ok(Datum::text(&cx.catalog.database.name)),
        "current_schema" => Ok(schemas(cx, false).into_iter().next().unwrap_or(Datum::Null)),
        "current_schemas" => {
            let all = schemas(cx, args[0].is_true());
            Ok(Datum::Array(std::sync::Arc::new(Array::of(
                TypeId::NAME,
                all,
            ))))
        }
        "getdatabaseencoding" | "pg_client_encoding" | "pg_encoding_to_char" => {
            Ok(Datum::text("UTF8"))
        }
        "current_setting" => current_setting(cx, args),
        "set_config" => set_config(cx, args),
        "pg_backend_pid" => Ok(Datum::Int4(cx.session.start.backend_pid)),
        "inet_client_addr" => Ok(text_or_null(cx.session.start.client_address.as_deref())),
        "inet_client_port" => Ok(port(cx.session.start.client_port)),
        "inet_server_addr" => {
            let address = cx.session.start.server_address.as_ref();
            Ok(text_or_null(address.map(|address| address.0.as_str())))
        }
        "inet_server_port" => Ok(port(cx.session.start.server_address.as_ref().map(|a| a.1))),
        "pg_is_in_recovery" | "pg_is_other_temp_schema" | "pg_relation_is_publishable" => {
            Ok(Datum::Bool(false))
        }
        "pg_current_wal_lsn" | "pg_current_wal_insert_lsn" | "pg_current_wal_flush_lsn" => {
            let status = cx.session.engine.status();
            let own = status
                .replicas
                .iter()
                .find(|replica| replica.node == status.node);
            let lsn = own.map_or(status.commit, |own| match name {
                "pg_current_wal_flush_lsn" => own.flushed,
                _ => own.received.max(own.flushed),
            });
            Ok(Datum::Unsigned8(lsn.0))
        }
        "txid_current" => Ok(Datum::Int8(cx.txn.id().0 as i64)),
        "pg_current_xact_id" => Ok(Datum::Unsigned8(cx.txn.id().0)),
        "pg_sleep" => sleep(cx, args),
        "nextval" | "currval" | "setval" | "lastval" => sequences::call(cx, name, args),
        "pg_trigger_depth" | "pg_my_temp_schema" => Ok(match name {
            "pg_my_temp_schema" => Datum::Oid(0),
            _ => Datum::Int4(0),
        }),
        _ => catalog_function(cx, name, args),
    }
}

fn text_or_null(text: Option<&str>) -> Datum {
    text.map_or(Datum::Null, Datum::text)
}

fn port(port: Option<u16>) -> Datum {
    port.map_or(Datum::Null, |port| Datum::Int4(i32::from(port)))
}

/// The schemas of `search_path` that exist; with those searched anyway.
fn schemas(cx: &Exec<'_>, implicit: bool) -> Vec<Datum> {
    let path = &cx.session.settings.parsed().search_path;
    let user = &cx.session.start.user;
    let mut names = Vec::new();
    if implicit && !path.iter().any(|name| name == "pg_catalog") {
        names.push(Datum::text("pg_catalog"));
    }
    for name in path {
        let name = if name == "$user" { user } else { name };
        if cx.catalog.schema(name).is_some() {
            names.push(Datum::text(name));
        }
    }
    names
}

fn current_setting(cx: &Exec<'_>, args: &[Datum]) -> Result<Datum> {
    let missing_ok = args.get(1).is_some_and(Datum::is_true);
    match cx.session.settings.show(args[0].as_str()) {
        Ok((_, value)) => Ok(Datum::text(value)),
        Err(_) if missing_ok => Ok(Datum::Null),
        Err(error) => Err(error),
    }
}

fn set_config(cx: &mut Exec<'_>, args: &[Datum]) -> Result<Datum> {
    let [name, value, local] = args else {
        return Err(Error::internal("set_config has three arguments"));
    };
    if name.is_null() {
        return Err(Error::new(
            SqlState::of("22004"),
            "SET requires parameter name",
        ));
    }
    let value = (!value.is_null()).then(|| value.as_str());
    cx.session
        .settings
        .set(name.as_str(), value, local.is_true())?;
    cx.session
        .settings
        .show(name.as_str())
        .map(|shown| Datum::text(shown.1))
}

fn sleep(cx: &Exec<'_>, args: &[Datum]) -> Result<Datum> {
    let Datum::Float8(seconds) = args[0] else {
        return Ok(Datum::Void);
    };
    if seconds > 0.0 && coro::inside() {
        // Longer than anyone waits, and no overflow.
        let seconds = seconds.min(1e9);
        let duration = std::time::Duration::from_secs_f64(seconds);
        coro::wait(env::sleep(cx.session.env.as_ref(), duration))?;
    }
    Ok(Datum::Void)
}

/// Functions over the catalog, for the queries of psql and its kin.
fn catalog_function(cx: &mut Exec<'_>, name: &str, args: &[Datum]) -> Result<Datum> {
    let oid = match args.first() {
        Some(Datum::Oid(oid)) => *oid,
        _ => 0,
    };
    let catalog = cx.catalog;
    match name {
        "pg_get_userbyid" => Ok(match catalog.role_by_oid(oid) {
            Some(role) => Datum::text(&role.name),
            None => Datum::text(format!("unknown (OID={oid})")),
        }),
        "pg_table_is_visible" => Ok(match catalog.relation_name(oid) {
            Some((schema, name)) => {
                let known = schemas(cx, true);
                let visible = known.iter().find_map(|schema| {
                    let schema = catalog.schema(schema.as_str())?;
                    catalog.relation(schema.oid, name).map(|_| schema.oid)
                });
                Datum::Bool(visible == Some(schema))
            }
            None => Datum::Null,
        }),
        "pg_type_is_visible"
        | "pg_function_is_visible"
        | "pg_opclass_is_visible"
        | "pg_operator_is_visible"
        | "pg_collation_is_visible" => Ok(Datum::Bool(true)),
        _ if name.starts_with("has_") || name == "pg_has_role" => Ok(Datum::Bool(true)),
        "obj_description"
        | "col_description"
        | "shobj_description"
        | "pg_get_viewdef"
        | "pg_get_ruledef"
        | "pg_get_triggerdef"
        | "pg_get_partkeydef"
        | "pg_get_statisticsobjdef_columns"
        | "pg_tablespace_location"
        | "txid_status"
        | "pg_xact_status"
        | "pg_last_wal_receive_lsn"
        | "pg_last_wal_replay_lsn" => Ok(Datum::Null),
        "pg_get_serial_sequence" => sequences::of_column(cx, args[0].as_str(), args[1].as_str()),
        "pg_get_indexdef" => Ok(match catalog.index_by_oid(oid) {
            Some((table, index)) => match args.get(1).and_then(Datum::as_i64) {
                Some(column) if column > 0 => index_column(table, index, column as usize - 1),
                _ => Datum::text(index_definition(catalog, table, index)),
            },
            None => Datum::Null,
        }),
        "pg_get_constraintdef" => Ok(constraint_definition(catalog, oid)),
        "pg_get_expr" => Ok(args.first().cloned().unwrap_or(Datum::Null)),
        "to_regclass" => Ok(match named_relation(cx, args[0].as_str()) {
            Some(oid) => Datum::Oid(oid),
            None => Datum::Null,
        }),
        "pg_relation_size"
        | "pg_table_size"
        | "pg_total_relation_size"
        | "pg_database_size"
        | "pg_indexes_size" => Ok(Datum::Int8(0)),
        "pg_relation_filenode" => Ok(Datum::Oid(oid)),
        _ => Err(Error::unsupported(format!("function {name}"))),
    }
}

fn named_relation(cx: &Exec<'_>, name: &str) -> Option<u32> {
    let (schema, name) = match name.split_once('.') {
        Some((schema, name)) => (Some(schema), name),
        None => (None, name),
    };
    let path = match schema {
        Some(schema) => vec![Datum::text(schema)],
        None => schemas(cx, true),
    };
    path.iter().find_map(|schema| {
        let schema = cx.catalog.schema(schema.as_str())?;
        match cx.catalog.relation(schema.oid, name)? {
            RelationRef::Table(table) => Some(cx.catalog.tables[table].oid),
            RelationRef::Index(table, index) => Some(cx.catalog.tables[table].indexes[index].oid),
        }
    })
}

fn index_column(table: &Table, index: &Index, place: usize) -> Datum {
    match index.columns.get(place) {
        Some(column) => Datum::text(quote(&table.columns[column.column].name)),
        None => Datum::Null,
    }
}

fn column_list(table: &Table, index: &Index) -> String {
    let columns: Vec<_> = index
        .columns
        .iter()
        .map(|column| {
            let name = quote(&table.columns[column.column].name);
            if column.descending {
                format!("{name} DESC")
            } else {
                name
            }
        })
        .collect();
    columns.join(", ")
}

/// `CREATE INDEX …`, as it could be given.
pub(crate) fn index_definition(catalog: &Catalog, table: &Table, index: &Index) -> String {
    let unique = if index.unique { "UNIQUE " } else { "" };
    let schema = catalog
        .schema_by_oid(table.schema)
        .map_or("", |schema| &schema.name);
    format!(
        "CREATE {unique}INDEX {} ON {}.{} USING btree ({})",
        quote(&index.name),
        quote(schema),
        quote(&table.name),
        column_list(table, index)
    )
}

fn constraint_definition(catalog: &Catalog, oid: u32) -> Datum {
    for table in &catalog.tables {
        let own = |index: &&Index| index.constraint == oid && oid != 0;
        if let Some(index) = table.indexes.iter().find(own) {
            let kind = if index.primary {
                "PRIMARY KEY"
            } else {
                "UNIQUE"
            };
            return Datum::text(format!("{kind} ({})", column_list(table, index)));
        }
        if let Some(check) = table.checks.iter().find(|check| check.oid == oid) {
            return Datum::text(format!("CHECK (({}))", check.condition));
        }
    }
    Datum::Null
}
