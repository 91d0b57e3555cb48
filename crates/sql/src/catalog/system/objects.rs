//! What there is: types, tables, columns, indexes, roles, databases, settings.

use base::Result;

use super::SystemTable;
use crate::catalog::{Catalog, RelationKind, Table, PG_CATALOG, SUPERUSER};
use crate::exec::Exec;
use crate::plan::Row;
use crate::types::type_id::TYPES as BUILT_IN;
use crate::types::{Array, Category, Datum, TypeId};

fn text(text: &str) -> Datum {
    Datum::text(text)
}

fn char(value: u8) -> Datum {
    Datum::Char(value)
}

fn small(value: usize) -> Datum {
    Datum::Int2(i16::try_from(value).unwrap_or(i16::MAX))
}

fn vector(element: TypeId, elements: Vec<Datum>) -> Datum {
    Datum::Array(std::sync::Arc::new(Array::of(element, elements)))
}

pub(super) const NAMESPACES: SystemTable = SystemTable {
    oid: 2615,
    name: "pg_namespace",
    columns: "oid oid, nspname name, nspowner oid, nspacl _text",
    rows: |catalog, _| {
        let row = |schema: &crate::catalog::Schema| {
            vec![
                Datum::Oid(schema.oid),
                text(&schema.name),
                Datum::Oid(schema.owner),
                Datum::Null,
            ]
        };
        Ok(catalog.schemas.iter().map(row).collect())
    },
};

pub(super) const DATABASES: SystemTable = SystemTable {
    oid: 1262,
    name: "pg_database",
    columns: "oid oid, datname name, datdba oid, encoding int4, datlocprovider char, \
              datistemplate bool, datallowconn bool, datconnlimit int4, datfrozenxid xid, \
              datminmxid xid, dattablespace oid, datcollate text, datctype text, \
              daticulocale text, datcollversion text, datacl _text",
    rows: |catalog, _| {
        let row = |database: &crate::catalog::Database| {
            vec![
                Datum::Oid(database.oid),
                text(&database.name),
                Datum::Oid(database.owner),
                Datum::Int4(6),
                char(b'c'),
                Datum::Bool(false),
                Datum::Bool(true),
                Datum::Int4(-1),
                Datum::Oid(0),
                Datum::Oid(0),
                Datum::Oid(1663),
                text("C.UTF-8"),
                text("C.UTF-8"),
                Datum::Null,
                Datum::Null,
                Datum::Null,
            ]
        };
        Ok(catalog.databases.iter().map(row).collect())
    },
};

pub(super) const ROLES: SystemTable = SystemTable {
    oid: 1260,
    name: "pg_authid",
    columns: "oid oid, rolname name, rolsuper bool, rolinherit bool, rolcreaterole bool, \
              rolcreatedb bool, rolcanlogin bool, rolreplication bool, rolbypassrls bool, \
              rolconnlimit int4, rolpassword text, rolvaliduntil timestamptz",
    rows: |catalog, _| Ok(catalog.roles.iter().map(role_row).collect()),
};

fn role_row(role: &crate::catalog::Role) -> Row {
    let all = Datum::Bool(role.superuser);
    vec![
        Datum::Oid(role.oid),
        text(&role.name),
        all.clone(),
        Datum::Bool(true),
        all.clone(),
        all.clone(),
        Datum::Bool(role.login),
        all.clone(),
        all,
        Datum::Int4(-1),
        Datum::Null,
        Datum::Null,
    ]
}

pub(super) const ROLES_VIEW: SystemTable = SystemTable {
    oid: 12_000,
    name: "pg_roles",
    columns: "rolname name, rolsuper bool, rolinherit bool, rolcreaterole bool, \
              rolcreatedb bool, rolcanlogin bool, rolreplication bool, rolconnlimit int4, \
              rolpassword text, rolvaliduntil timestamptz, rolbypassrls bool, \
              rolconfig _text, oid oid",
    rows: |catalog, _| {
        let row = |role: &crate::catalog::Role| {
            let all = Datum::Bool(role.superuser);
            vec![
                text(&role.name),
                all.clone(),
                Datum::Bool(true),
                all.clone(),
                all.clone(),
                Datum::Bool(role.login),
                all.clone(),
                Datum::Int4(-1),
                text("********"),
                Datum::Null,
                all,
                Datum::Null,
                Datum::Oid(role.oid),
            ]
        };
        Ok(catalog.roles.iter().map(row).collect())
    },
};

pub(super) const CLASSES: SystemTable = SystemTable {
    oid: 1259,
    name: "pg_class",
    columns: "oid oid, relname name, relnamespace oid, reltype oid, reloftype oid, \
              relowner oid, relam oid, relfilenode oid, reltablespace oid, relpages int4, \
              reltuples float4, relallvisible int4, reltoastrelid oid, relhasindex bool, \
              relisshared bool, relpersistence char, relkind char, relnatts int2, \
              relchecks int2, relhasrules bool, relhastriggers bool, relhassubclass bool, \
              relrowsecurity bool, relforcerowsecurity bool, relispopulated bool, \
              relreplident char, relispartition bool, relrewrite oid, relfrozenxid xid, \
              relminmxid xid, relacl _text, reloptions _text, relpartbound text",
    rows: classes,
};

fn classes(catalog: &Catalog, _: &mut Exec<'_>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for table in &catalog.tables {
        let kind = match table.kind {
            RelationKind::Table => b'r',
            RelationKind::View => b'v',
            RelationKind::MaterializedView => b'm',
            RelationKind::Sequence => b'S',
            RelationKind::System if is_view(table) => b'v',
            RelationKind::System => b'r',
        };
        let indexed = !table.indexes.is_empty();
        let natts = table.columns.len();
        let checks = table.checks.len();
        rows.push(class_row(
            table,
            table.oid,
            &table.name,
            kind,
            natts,
            checks,
            indexed,
        ));
        for index in &table.indexes {
            let natts = index.columns.len();
            rows.push(class_row(
                table,
                index.oid,
                &index.name,
                b'i',
                natts,
                0,
                false,
            ));
        }
    }
    Ok(rows)
}

fn is_view(table: &Table) -> bool {
    // The names of views over the catalog's own tables.
    table.name.starts_with("pg_stat_")
        || matches!(
            table.name.as_str(),
            "pg_roles" | "pg_tables" | "pg_indexes" | "pg_settings" | "pg_replication_slots"
        )
}

fn class_row(
    table: &Table,
    oid: u32,
    name: &str,
    kind: u8,
    natts: usize,
    checks: usize,
    has_index: bool,
) -> Row {
    const HEAP: u32 = 2;
    const BTREE: u32 = 403;
    let method = match kind {
        b'r' => HEAP,
        b'i' => BTREE,
        _ => 0,
    };
    let no = Datum::Bool(false);
    vec![
        Datum::Oid(oid),
        text(name),
        Datum::Oid(table.schema),
        Datum::Oid(0),
        Datum::Oid(0),
        Datum::Oid(table.owner),
        Datum::Oid(method),
        Datum::Oid(oid),
        Datum::Oid(0),
        Datum::Int4(0),
        Datum::Float4(-1.0),
        Datum::Int4(0),
        Datum::Oid(0),
        Datum::Bool(has_index),
        no.clone(),
        char(b'p'),
        char(kind),
        small(natts),
        small(checks),
        no.clone(),
        no.clone(),
        no.clone(),
        no.clone(),
        no.clone(),
        Datum::Bool(true),
        char(if kind == b'r' { b'd' } else { b'n' }),
        no,
        Datum::Oid(0),
        Datum::Oid(0),
        Datum::Oid(0),
        Datum::Null,
        Datum::Null,
        Datum::Null,
    ]
}

pub(super) const ATTRIBUTES: SystemTable = SystemTable {
    oid: 1249,
    name: "pg_attribute",
    columns: "attrelid oid, attname name, atttypid oid, attstattarget int4, attlen int2, \
              attnum int2, attndims int4, attcacheoff int4, atttypmod int4, attbyval bool, \
              attalign char, attstorage char, attcompression char, attnotnull bool, \
              atthasdef bool, atthasmissing bool, attidentity char, attgenerated char, \
              attisdropped bool, attislocal bool, attinhcount int4, attcollation oid, \
              attacl _text, attoptions _text, attfdwoptions _text, attmissingval text",
    rows: attributes,
};

fn attributes(catalog: &Catalog, _: &mut Exec<'_>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for table in &catalog.tables {
        for (place, column) in table.columns.iter().enumerate() {
            rows.push(attribute_row(table.oid, column, place + 1));
        }
        for index in &table.indexes {
            for (place, indexed) in index.columns.iter().enumerate() {
                let mut column = table.columns[indexed.column].clone();
                column.not_null = false;
                column.default = None;
                rows.push(attribute_row(index.oid, &column, place + 1));
            }
        }
    }
    Ok(rows)
}

fn attribute_row(relation: u32, column: &crate::catalog::Column, number: usize) -> Row {
    const DEFAULT_COLLATION: u32 = 100;
    let collated = column.type_id.category() == Category::String;
    let no = Datum::Bool(false);
    vec![
        Datum::Oid(relation),
        text(&column.name),
        Datum::Oid(column.type_id.0),
        Datum::Int4(-1),
        Datum::Int2(column.type_id.len()),
        small(number),
        Datum::Int4(i32::from(column.type_id.array_element().is_some())),
        Datum::Int4(-1),
        Datum::Int4(column.typmod),
        Datum::Bool(matches!(column.type_id.len(), 1 | 2 | 4 | 8)),
        char(b'i'),
        char(if column.type_id.len() < 0 { b'x' } else { b'p' }),
        char(0),
        Datum::Bool(column.not_null),
        Datum::Bool(column.default.is_some()),
        no.clone(),
        char(0),
        char(0),
        Datum::Bool(column.dropped),
        Datum::Bool(true),
        Datum::Int4(0),
        Datum::Oid(if collated { DEFAULT_COLLATION } else { 0 }),
        Datum::Null,
        Datum::Null,
        Datum::Null,
        Datum::Null,
    ]
}

pub(super) const DEFAULTS: SystemTable = SystemTable {
    oid: 2604,
    name: "pg_attrdef",
    columns: "oid oid, adrelid oid, adnum int2, adbin text",
    rows: |catalog, _| {
        let mut rows = Vec::new();
        for table in &catalog.tables {
            for (place, column) in table.columns.iter().enumerate() {
                if let Some(default) = &column.default {
                    rows.push(vec![
                        Datum::Oid(table.oid),
                        Datum::Oid(table.oid),
                        small(place + 1),
                        text(default),
                    ]);
                }
            }
        }
        Ok(rows)
    },
};

pub(super) const INDEXES: SystemTable = SystemTable {
    oid: 2610,
    name: "pg_index",
    columns: "indexrelid oid, indrelid oid, indnatts int2, indnkeyatts int2, \
              indisunique bool, indnullsnotdistinct bool, indisprimary bool, \
              indisexclusion bool, indimmediate bool, indisclustered bool, indisvalid bool, \
              indcheckxmin bool, indisready bool, indislive bool, indisreplident bool, \
              indkey int2vector, indcollation oidvector, indclass oidvector, \
              indoption int2vector, indexprs text, indpred text",
    rows: |catalog, _| {
        let mut rows = Vec::new();
        for table in &catalog.tables {
            for index in &table.indexes {
                let keys = index.columns.iter().map(|column| small(column.column + 1));
                let zeros = || index.columns.iter().map(|_| Datum::Oid(0)).collect();
                let options = index.columns.iter().map(|column| {
                    // Descending, and with it NULLs first.
                    Datum::Int2(if column.descending { 3 } else { 0 })
                });
                let (yes, no) = (Datum::Bool(true), Datum::Bool(false));
                rows.push(vec![
                    Datum::Oid(index.oid),
                    Datum::Oid(table.oid),
                    small(index.columns.len()),
                    small(index.columns.len()),
                    Datum::Bool(index.unique),
                    no.clone(),
                    Datum::Bool(index.primary),
                    no.clone(),
                    yes.clone(),
                    no.clone(),
                    yes.clone(),
                    no.clone(),
                    yes.clone(),
                    yes,
                    no,
                    vector(TypeId::INT2, keys.collect()),
                    vector(TypeId::OID, zeros()),
                    vector(TypeId::OID, zeros()),
                    vector(TypeId::INT2, options.collect()),
                    Datum::Null,
                    Datum::Null,
                ]);
            }
        }
        Ok(rows)
    },
};

pub(super) const CONSTRAINTS: SystemTable = SystemTable {
    oid: 2606,
    name: "pg_constraint",
    columns: "oid oid, conname name, connamespace oid, contype char, condeferrable bool, \
              condeferred bool, convalidated bool, conrelid oid, contypid oid, conindid oid, \
              conparentid oid, confrelid oid, confupdtype char, confdeltype char, \
              confmatchtype char, conislocal bool, coninhcount int4, connoinherit bool, \
              conkey _int2, confkey _int2, conbin text",
    rows: |catalog, _| {
        let mut rows = Vec::new();
        for table in &catalog.tables {
            for index in table.indexes.iter().filter(|index| index.constraint != 0) {
                let keys = index.columns.iter().map(|column| small(column.column + 1));
                let kind = if index.primary { b'p' } else { b'u' };
                let keys = vector(TypeId::INT2, keys.collect());
                let id = (index.constraint, index.name.as_str());
                rows.push(constraint_row(
                    table,
                    id,
                    kind,
                    index.oid,
                    keys,
                    Datum::Null,
                ));
            }
            for check in &table.checks {
                let id = (check.oid, check.name.as_str());
                let condition = text(&check.condition);
                rows.push(constraint_row(table, id, b'c', 0, Datum::Null, condition));
            }
        }
        Ok(rows)
    },
};

fn constraint_row(
    table: &Table,
    (oid, name): (u32, &str),
    kind: u8,
    index: u32,
    keys: Datum,
    condition: Datum,
) -> Row {
    let (yes, no) = (Datum::Bool(true), Datum::Bool(false));
    vec![
        Datum::Oid(oid),
        text(name),
        Datum::Oid(table.schema),
        char(kind),
        no.clone(),
        no,
        yes.clone(),
        Datum::Oid(table.oid),
        Datum::Oid(0),
        Datum::Oid(index),
        Datum::Oid(0),
        Datum::Oid(0),
        char(b' '),
        char(b' '),
        char(b' '),
        yes.clone(),
        Datum::Int4(0),
        yes,
        keys,
        Datum::Null,
        condition,
    ]
}

pub(super) const TYPES: SystemTable = SystemTable {
    oid: 1247,
    name: "pg_type",
    columns: "oid oid, typname name, typnamespace oid, typowner oid, typlen int2, \
              typbyval bool, typtype char, typcategory char, typispreferred bool, \
              typisdefined bool, typdelim char, typrelid oid, typelem oid, typarray oid, \
              typnotnull bool, typbasetype oid, typtypmod int4, typndims int4, \
              typcollation oid, typdefault text",
    rows: |_, _| {
        let arrays = BUILT_IN.iter().filter_map(|info| info.id.array_of());
        let all = BUILT_IN.iter().map(|info| info.id).chain(arrays);
        Ok(all.filter_map(type_row).collect())
    },
};

fn type_row(id: TypeId) -> Option<Row> {
    let info = id.info()?;
    let pseudo = info.category == Category::Pseudo;
    let category = match info.category {
        Category::Array => b'A',
        Category::Boolean => b'B',
        Category::DateTime => b'D',
        Category::Network => b'I',
        Category::Numeric => b'N',
        Category::Pseudo => b'P',
        Category::String => b'S',
        Category::Timespan => b'T',
        Category::User => b'U',
        Category::Unknown => b'X',
        Category::Internal => b'Z',
    };
    Some(vec![
        Datum::Oid(id.0),
        text(&id.name()),
        Datum::Oid(PG_CATALOG),
        Datum::Oid(SUPERUSER),
        Datum::Int2(info.len),
        Datum::Bool(matches!(info.len, 1 | 2 | 4 | 8)),
        char(if pseudo { b'p' } else { b'b' }),
        char(category),
        Datum::Bool(info.preferred),
        Datum::Bool(true),
        char(b','),
        Datum::Oid(0),
        Datum::Oid(info.element.0),
        Datum::Oid(info.array.0),
        Datum::Bool(false),
        Datum::Oid(0),
        Datum::Int4(-1),
        Datum::Int4(0),
        Datum::Oid(if info.category == Category::String {
            100
        } else {
            0
        }),
        Datum::Null,
    ])
}

pub(super) const ACCESS_METHODS: SystemTable = SystemTable {
    oid: 2601,
    name: "pg_am",
    columns: "oid oid, amname name, amhandler regproc, amtype char",
    rows: |_, _| {
        let row = |oid: u32, name: &str, kind: u8| {
            vec![Datum::Oid(oid), text(name), Datum::Oid(0), char(kind)]
        };
        Ok(vec![row(2, "heap", b't'), row(403, "btree", b'i')])
    },
};

pub(super) const DESCRIPTIONS: SystemTable = SystemTable {
    oid: 2609,
    name: "pg_description",
    columns: "objoid oid, classoid oid, objsubid int4, description text",
    rows: |_, _| Ok(Vec::new()),
};

pub(super) const INHERITS: SystemTable = SystemTable {
    oid: 2611,
    name: "pg_inherits",
    columns: "inhrelid oid, inhparent oid, inhseqno int4, inhdetachpending bool",
    rows: |_, _| Ok(Vec::new()),
};

pub(super) const TABLES_VIEW: SystemTable = SystemTable {
    oid: 12_010,
    name: "pg_tables",
    columns: "schemaname name, tablename name, tableowner name, tablespace name, \
              hasindexes bool, hasrules bool, hastriggers bool, rowsecurity bool",
    rows: |catalog, _| {
        let tables = catalog.tables.iter().filter(|table| !is_view(table));
        Ok(tables
            .map(|table| {
                let schema = catalog.schema_by_oid(table.schema);
                let owner = catalog.role_by_oid(table.owner);
                vec![
                    schema.map_or(Datum::Null, |schema| text(&schema.name)),
                    text(&table.name),
                    owner.map_or(Datum::Null, |owner| text(&owner.name)),
                    Datum::Null,
                    Datum::Bool(!table.indexes.is_empty()),
                    Datum::Bool(false),
                    Datum::Bool(false),
                    Datum::Bool(false),
                ]
            })
            .collect())
    },
};

pub(super) const INDEXES_VIEW: SystemTable = SystemTable {
    oid: 12_020,
    name: "pg_indexes",
    columns: "schemaname name, tablename name, indexname name, tablespace name, indexdef text",
    rows: |catalog, _| {
        let mut rows = Vec::new();
        for table in &catalog.tables {
            let schema = catalog.schema_by_oid(table.schema);
            for index in &table.indexes {
                rows.push(vec![
                    schema.map_or(Datum::Null, |schema| text(&schema.name)),
                    text(&table.name),
                    text(&index.name),
                    Datum::Null,
                    text(&crate::exec::session_functions::index_definition(
                        catalog, table, index,
                    )),
                ]);
            }
        }
        Ok(rows)
    },
};

pub(super) const SETTINGS: SystemTable = SystemTable {
    oid: 12_100,
    name: "pg_settings",
    columns: "name text, setting text, unit text, category text, short_desc text, \
              extra_desc text, context text, vartype text, source text, min_val text, \
              max_val text, enumvals _text, boot_val text, reset_val text, sourcefile text, \
              sourceline int4, pending_restart bool",
    rows: |_, cx| {
        let all = cx.session.settings.show_all();
        Ok(all
            .into_iter()
            .map(|(name, value, description)| {
                let value = text(&value);
                vec![
                    text(name),
                    value.clone(),
                    Datum::Null,
                    text("Quorate"),
                    text(description),
                    Datum::Null,
                    text("user"),
                    text("string"),
                    text("default"),
                    Datum::Null,
                    Datum::Null,
                    Datum::Null,
                    value.clone(),
                    value,
                    Datum::Null,
                    Datum::Null,
                    Datum::Bool(false),
                ]
            })
            .collect())
    },
};
